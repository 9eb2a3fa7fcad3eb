/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hwtw: what the tests of the wheel share
 *
 * Each test module includes hwtw_wheel.c itself and this file after it, so
 * that everything static can be reached.
 */
#ifndef _HWTW_KUNIT_H
#define _HWTW_KUNIT_H

#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/sched.h>

/*
 * The owner of a wheel
 */

/* Leave so many chunks, by keeping others from the wheel for good. */
static inline void hwtw_kunit_leave_chunks(struct hwtw_wheel *w, u32 chunks)
{
	u32 spare = w->chunks - chunks;

	hwtw_chunks_set(w, chunks);
	while (spare--)
		hwtw_chunk_get(w);
}

/*
 * Give the wheel what it needs for some operations, as the device does. If
 * @exact, give the chunks that the rule demands and none to spare.
 */
static inline void hwtw_kunit_refill(struct kunit *test, struct hwtw_wheel *w,
				     unsigned int arms, unsigned int adds, bool exact)
{
	struct hwtw_need need;
	int err;

	while ((err = hwtw_wheel_need(w, arms, adds, &need)) > 0) {
		if (need.blocks) {
			while (need.blocks--) {
				struct hwtw_block *block = hwtw_page_alloc(GFP_KERNEL);

				KUNIT_ASSERT_NOT_NULL(test, block);
				hwtw_wheel_give_block(w, block);
			}
			if (exact) {
				u32 claims = hwtw_claims_max(w) + arms + adds;

				hwtw_kunit_leave_chunks(w, hwtw_chunks_for(w, claims));
				/* Or it would ask for ever. */
				KUNIT_ASSERT_LE(test, claims, w->room);
			}
		}
		while (need.late--) {
			struct hwtw_late *late = kmalloc(sizeof(*late), GFP_KERNEL);

			KUNIT_ASSERT_NOT_NULL(test, late);
			hwtw_wheel_give_late(w, late);
		}
		if (need.dir) {
			u64 *dir = kvcalloc(need.dir, sizeof(*dir), GFP_KERNEL);

			KUNIT_ASSERT_NOT_NULL(test, dir);
			KUNIT_ASSERT_TRUE(test, hwtw_wheel_give_dir(w, dir, need.dir));
		}
		while (need.pages--) {
			struct hwtw_page *page = hwtw_page_alloc(GFP_KERNEL);

			KUNIT_ASSERT_NOT_NULL(test, page);
			if (!hwtw_wheel_give_page(w, page))
				hwtw_page_free(page);
		}
	}
	KUNIT_ASSERT_EQ(test, err, 0);
}

/* Run the wheel up to @now. */
static inline void hwtw_kunit_run(struct hwtw_wheel *w, u64 now)
{
	while (hwtw_wheel_run(w, now, 4096))
		cond_resched();
}

/* Try one operation. Returns a state or -E*, and -EAGAIN if it was not carried out. */
static inline int hwtw_kunit_try(struct hwtw_wheel *w, u64 now, u32 opcode,
				 struct hwtw_timer *timer)
{
	struct hwtw_op op = { .opcode = opcode, .result = 1, .timer = *timer };
	unsigned int credit = 1;

	if (!hwtw_wheel_ops(w, now, &credit, &op, 1)) {
		bool elsewhere = opcode != HWTW_OP_ARM && hwtw_id_wheel(timer->id) != w->nr;

		return elsewhere ? -ENOENT : -EAGAIN;
	}
	*timer = op.timer;
	return op.result ?: (int)op.timer.state;
}

/* One operation as the device does it. Returns a state or -E*. */
static inline int hwtw_kunit_op(struct kunit *test, struct hwtw_wheel *w, u64 now, u32 opcode,
				struct hwtw_timer *timer)
{
	unsigned int tries;
	int state;

	for (tries = 0; tries < 3; tries++) {
		hwtw_kunit_refill(test, w, opcode == HWTW_OP_ARM, opcode == HWTW_OP_REARM, false);
		state = hwtw_kunit_try(w, now, opcode, timer);
		if (state != -EAGAIN)
			return state;
		hwtw_kunit_run(w, now);
	}
	KUNIT_FAIL(test, "operation %u wants to be tried again for ever", opcode);
	return state;
}

/* Arm a timer. Returns its state. */
static inline int hwtw_kunit_arm(struct kunit *test, struct hwtw_wheel *w, u64 now, u64 expires,
				 u64 interval, u64 user_data, u64 *id)
{
	struct hwtw_timer timer = {
		.user_data	= user_data,
		.time_ns	= expires,
		.interval_ns	= interval,
		.flags		= HWTW_TIMER_ABS,
	};
	int state = hwtw_kunit_op(test, w, now, HWTW_OP_ARM, &timer);

	*id = timer.id;
	return state;
}

/* Re-arm a timer. Returns the state it was in, or -ENOENT. */
static inline int hwtw_kunit_rearm(struct kunit *test, struct hwtw_wheel *w, u64 now, u64 id,
				   u64 expires, u64 interval)
{
	struct hwtw_timer timer = {
		.id		= id,
		.time_ns	= expires,
		.interval_ns	= interval,
		.flags		= HWTW_TIMER_ABS,
	};

	return hwtw_kunit_op(test, w, now, HWTW_OP_REARM, &timer);
}

/* Cancel a timer. Returns the state it was in, or -ENOENT. */
static inline int hwtw_kunit_cancel(struct hwtw_wheel *w, u64 id)
{
	struct hwtw_timer timer = { .id = id };

	return hwtw_kunit_try(w, 0, HWTW_OP_CANCEL, &timer);
}

/* The state of a timer, or -ENOENT. */
static inline int hwtw_kunit_state(struct hwtw_wheel *w, u64 id)
{
	struct hwtw_timer timer = { .id = id };

	return hwtw_kunit_try(w, 0, HWTW_OP_QUERY, &timer);
}

/*
 * Take up to @max of the oldest records, as a read does that can copy all of
 * them. Returns how many; fewer than there are if many stale claims come first.
 * Not inline: a batch would be on the stack for each call.
 */
static noinline __maybe_unused unsigned int hwtw_kunit_take(struct hwtw_wheel *w, u64 now,
							    u64 last_tick,
							    struct hwtw_event *ev,
							    unsigned int max)
{
	struct hwtw_batch batch;
	unsigned int nr = 0;

	while (hwtw_wheel_peek(w, now, last_tick, &batch, max - nr)) {
		memcpy(&ev[nr], batch.ev, batch.nr * sizeof(*ev));
		nr += batch.nr;
		hwtw_wheel_take(w, &batch, batch.nr);
	}
	return nr;
}

/* Tidy up after some operations, @seq being the wheel's before them, as the device does. */
static inline void hwtw_kunit_tidy(struct hwtw_wheel *w, u32 seq, unsigned int ops)
{
	unsigned int arms = min(w->seq - seq, ops);

	while (hwtw_wheel_tidy(w, arms, ops)) {
		arms = 0;
		ops = 0;
	}
}

static inline struct hwtw_wheel *hwtw_kunit_new(struct kunit *test, u32 nr, u32 shift, u64 now)
{
	struct hwtw_wheel *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	hwtw_wheel_init(w, nr, shift, now);
	return w;
}

static inline void hwtw_kunit_destroy(struct hwtw_wheel *w)
{
	while (hwtw_wheel_destroy(w, 1000))
		cond_resched();
	memset(w, 0, sizeof(*w));
}

/* Begin anew, with an empty wheel. */
static inline void hwtw_kunit_reset(struct hwtw_wheel *w, u32 shift, u64 now)
{
	u32 nr = w->nr;

	hwtw_kunit_destroy(w);
	hwtw_wheel_init(w, nr, shift, now);
}

/* The wheel of a test that has one. */
static inline int hwtw_kunit_init(struct kunit *test)
{
	test->priv = hwtw_kunit_new(test, 5, HWTW_TICK_SHIFT_MIN, 0);
	return 0;
}

static inline void hwtw_kunit_exit(struct kunit *test)
{
	if (test->priv)
		hwtw_kunit_destroy(test->priv);
}

/*
 * Structure: everything that must be true between two calls
 */

/* A set of slots as a number: equal sets have equal sums, others hardly ever. */
static inline u64 hwtw_kunit_mix(u32 index)
{
	u64 x = (index + 1ULL) * 0x9e3779b97f4a7c15ULL;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ULL;
	return x ^ x >> 32;
}

/**
 * struct hwtw_tally - what hwtw_kunit_check() counts
 * @claims: claims in all logs
 * @valid: valid ones
 * @chunks: chunks in all logs
 * @claimed: sum of the slots with a valid claim
 * @held: sum of the slots that should have one
 * @pending: slots by state
 * @expired: slots by state
 * @late: slots by state
 * @free: free slots to be had
 * @pages: pages
 * @listed: pages in the list of those with free slots, by their state
 * @gone: page numbers that have no page
 * @why: what is wrong, or NULL
 */
struct hwtw_tally {
	u32 claims, valid, chunks;
	u64 claimed, held;
	u32 pending, expired, late;
	u32 free, pages, listed, gone;
	const char *why;
};

static inline void hwtw_kunit_must(struct hwtw_tally *t, bool cond, const char *what)
{
	if (!cond && !t->why)
		t->why = what;
}

#define HWTW_MUST(tally, cond)	hwtw_kunit_must(tally, cond, #cond)

/* The first tick of a bucket, of the window that the clock is in or of the next one. */
static inline u64 hwtw_kunit_start(const struct hwtw_wheel *w, u32 bucket)
{
	unsigned int shift = bucket / HWTW_ROW * HWTW_LEVEL_BITS;
	u64 window = w->clk >> (shift + HWTW_LEVEL_BITS);

	if (window % 2 != bucket / HWTW_LEVEL_SIZE % 2)
		window++;
	return (window << HWTW_LEVEL_BITS | bucket % HWTW_LEVEL_SIZE) << shift;
}

static inline void hwtw_kunit_check_claim(const struct hwtw_wheel *w, struct hwtw_tally *t,
					  u32 bucket, const struct hwtw_claim *claim)
{
	const struct hwtw_slot *slot = hwtw_slot(w, claim->index);

	t->claims++;
	/* Stale ones too have to get to where they are dropped. */
	if (bucket != HWTW_UNREAD) {
		unsigned int level = bucket / HWTW_ROW;

		HWTW_MUST(t, hwtw_bucket(level, claim->tick) == bucket);
		HWTW_MUST(t, claim->tick >> (level * HWTW_LEVEL_BITS) ==
			     hwtw_kunit_start(w, bucket) >> (level * HWTW_LEVEL_BITS));
	}
	if (!hwtw_claim_valid(slot, claim))
		return;
	t->valid++;
	t->claimed += hwtw_kunit_mix(claim->index);
	if (bucket == HWTW_UNREAD) {
		HWTW_MUST(t, hwtw_slot_state(slot) == HWTW_SLOT_EXPIRED);
		return;
	}
	HWTW_MUST(t, hwtw_slot_state(slot) == HWTW_SLOT_PENDING);
	/* Periods that had passed when a record was taken are overdue, for a tick. */
	if (hwtw_tick(w, slot->expires_ns) > w->clk)
		HWTW_MUST(t, hwtw_tick(w, slot->expires_ns) >= claim->tick);
}

static inline void hwtw_kunit_check_logs(const struct hwtw_wheel *w, struct hwtw_tally *t)
{
	u64 first = U64_MAX;
	u32 i;

	for (i = 0; i < HWTW_LOGS; i++) {
		const struct hwtw_log *log = &w->log[i];
		const struct hwtw_claim *pos;
		struct hwtw_chunk *chunk;

		if (i == HWTW_REWIND)
			HWTW_MUST(t, hwtw_log_empty(log));
		if (i < HWTW_BUCKETS) {
			bool bit = w->bitmap[i / HWTW_ROW][i / HWTW_LEVEL_SIZE % 2] >>
				   (i % HWTW_LEVEL_SIZE) & 1;

			HWTW_MUST(t, bit == !hwtw_log_empty(log));
		}
		if (hwtw_log_empty(log)) {
			HWTW_MUST(t, !log->head && !log->tail);
			continue;
		}
		if (i != HWTW_UNREAD) {
			HWTW_MUST(t, hwtw_kunit_start(w, i) > w->clk);
			first = min(first, hwtw_kunit_start(w, i));
		}
		pos = log->head;
		chunk = hwtw_chunk_of(pos);
		t->chunks++;
		for (;;) {
			hwtw_kunit_check_claim(w, t, i, pos++);
			if (pos == log->tail)
				break;
			if (pos == hwtw_chunk_last(chunk)) {
				chunk = chunk->link;
				pos = chunk->claim;
				t->chunks++;
			}
		}
	}
	HWTW_MUST(t, w->next <= first);
	HWTW_MUST(t, w->next > w->clk);
	HWTW_MUST(t, w->wake <= w->next);
	for (i = 0; i < HWTW_LEVELS - 1; i++) {
		unsigned int shift = (i + 1) * HWTW_LEVEL_BITS;

		/* The clock's window is open, and maybe the next one. */
		HWTW_MUST(t, w->end[i] > w->clk);
		HWTW_MUST(t, w->end[i] <= w->end[i + 1]);
		HWTW_MUST(t, w->end[i] >> shift << shift == w->end[i]);
		HWTW_MUST(t, (w->end[i] >> shift) - (w->clk >> shift) <= 2);
	}
}

static inline struct hwtw_page *hwtw_kunit_page(const struct hwtw_wheel *w, u32 nr)
{
	u64 entry = *hwtw_dir_entry(w, nr);

	return entry & 1 ? NULL : hwtw_entry_page(entry);
}

static inline void hwtw_kunit_check_page(const struct hwtw_wheel *w, struct hwtw_tally *t,
					 const struct hwtw_page *page)
{
	unsigned int i, place, free = 0, spent = 0;

	HWTW_MUST(t, page->key == HWTW_KEY_NOBODY && !page->seq);
	for (i = 1; i <= HWTW_PAGE_SLOTS; i++) {
		const struct hwtw_slot *slot = hwtw_page_slot(page, i);
		u32 index = page->index | i;

		HWTW_MUST(t, hwtw_slot_index(slot) == index);
		switch (hwtw_slot_state(slot)) {
		case HWTW_SLOT_FREE:
			HWTW_MUST(t, !slot->seq);
			if (HWTW_KEY_GEN(slot->key))
				free++;
			else
				spent++;
			continue;
		case HWTW_SLOT_PENDING:
			t->pending++;
			t->held += hwtw_kunit_mix(index);
			break;
		case HWTW_SLOT_EXPIRED:
			t->expired++;
			t->held += hwtw_kunit_mix(index);
			break;
		case HWTW_SLOT_LATE:
			t->late++;
			break;
		default:
			HWTW_MUST(t, !"a known state");
		}
		HWTW_MUST(t, slot->seq && HWTW_KEY_GEN(slot->key));
	}
	HWTW_MUST(t, page->free == free);
	HWTW_MUST(t, page->slots == HWTW_PAGE_SLOTS - spent);
	HWTW_MUST(t, page->slots == HWTW_PAGE_SLOTS || page->free < page->slots);
	place = page->free_first;
	for (i = 1; i <= free; i++) {
		if (!place || place > HWTW_PAGE_SLOTS) {
			HWTW_MUST(t, !"the list of free slots is whole");
			break;
		}
		HWTW_MUST(t, hwtw_slot_state(hwtw_page_slot(page, place)) == HWTW_SLOT_FREE);
		HWTW_MUST(t, HWTW_KEY_GEN(hwtw_page_slot(page, place)->key));
		if (i == free)
			HWTW_MUST(t, place == page->free_last);
		place = hwtw_page_slot(page, place)->next_free;
	}
	t->pages++;
	t->listed += free > 0;
	t->free += free;
}

static inline void hwtw_kunit_check_pages(const struct hwtw_wheel *w, struct hwtw_tally *t)
{
	const struct hwtw_page *page;
	u32 nr, listed = 0, numbers = 0;
	u64 entry;

	for (nr = 0; nr < w->nr_pages; nr++) {
		page = hwtw_kunit_page(w, nr);
		if (!page) {
			t->gone++;
			continue;
		}
		HWTW_MUST(t, page->index == nr << HWTW_PLACE_BITS);
		hwtw_kunit_check_page(w, t, page);
	}
	HWTW_MUST(t, t->pages == w->pages);
	HWTW_MUST(t, t->free == w->free_slots);
	list_for_each_entry(page, &w->partial, node) {
		HWTW_MUST(t, page->free);
		if (++listed > t->listed)
			break;
	}
	HWTW_MUST(t, listed == t->listed);
	for (nr = w->free_page; nr != HWTW_ENTRY_END; nr = HWTW_ENTRY_NEXT(entry)) {
		HWTW_MUST(t, nr < w->nr_pages && !hwtw_kunit_page(w, nr));
		if (t->why || ++numbers > t->gone)
			break;
		entry = *hwtw_dir_entry(w, nr);
		HWTW_MUST(t, HWTW_ENTRY_GEN(entry) && HWTW_ENTRY_GEN(entry) <= HWTW_GEN_MAX);
	}
	HWTW_MUST(t, numbers <= t->gone);
}

static inline void hwtw_kunit_check_late(const struct hwtw_wheel *w, struct hwtw_tally *t)
{
	const struct hwtw_late *spare;
	struct rb_node *node;
	u64 tick = 0;
	u32 nr = 0;

	for (node = rb_first_cached(&w->late); node; node = rb_next(node)) {
		struct hwtw_late *late = rb_entry(node, struct hwtw_late, node);
		const struct hwtw_slot *slot = hwtw_slot(w, late->claim.index);

		HWTW_MUST(t, late->claim.tick >= tick);
		HWTW_MUST(t, slot && hwtw_slot_state(slot) == HWTW_SLOT_LATE);
		HWTW_MUST(t, slot && hwtw_tick(w, slot->expires_ns) == late->claim.tick);
		HWTW_MUST(t, slot && hwtw_late_find(w, slot) == late);
		tick = late->claim.tick;
		nr++;
	}
	HWTW_MUST(t, nr == w->nr_late);
	HWTW_MUST(t, t->late == w->nr_late);
	nr = 0;
	for (spare = w->late_spare; spare; spare = spare->link)
		nr++;
	HWTW_MUST(t, nr == w->late_spares);
}

/* Count the free chunks. */
static inline u32 hwtw_kunit_check_blocks(const struct hwtw_wheel *w, struct hwtw_tally *t)
{
	const struct hwtw_block *block;
	const struct hwtw_chunk *chunk;
	u32 free = 0, pool = 0, whole = 0, listed = 0;

	list_for_each_entry(block, &w->blocks, node) {
		HWTW_MUST(t, block->free <= HWTW_BLOCK_CHUNKS);
		free += block->free;
		whole += block->free == HWTW_BLOCK_CHUNKS;
	}
	hlist_for_each_entry(block, &w->whole_blocks, whole) {
		HWTW_MUST(t, block->free == HWTW_BLOCK_CHUNKS);
		if (++listed > whole)
			break;
	}
	HWTW_MUST(t, listed == whole);
	hlist_for_each_entry(chunk, &w->pool, pool) {
		HWTW_MUST(t, hwtw_block_of(chunk)->free);
		if (++pool > free)
			break;
	}
	HWTW_MUST(t, pool == free);
	return free;
}

/* The chunks that there must be. Late timers, if they are periodic, become claims. */
static inline u32 hwtw_kunit_chunks(const struct hwtw_wheel *w)
{
	u32 claims = w->claims + w->nr_late;

	/* If the clock may be set back, for the logs of before and of after. */
	return claims / HWTW_CHUNK_CLAIMS +
	       min_t(u32, claims, HWTW_LOGS) * (w->rewinds ? 2 : 1) + HWTW_CHUNK_SLACK;
}

/* Look at all of the wheel. Returns what is wrong, or NULL. */
static inline const char *hwtw_kunit_check(const struct hwtw_wheel *w)
{
	struct hwtw_tally tally = { }, *t = &tally;

	hwtw_kunit_check_logs(w, t);
	hwtw_kunit_check_pages(w, t);
	hwtw_kunit_check_late(w, t);
	HWTW_MUST(t, t->pending == w->pending);
	HWTW_MUST(t, t->expired + t->late == w->unread);
	HWTW_MUST(t, t->claims == w->claims);
	HWTW_MUST(t, t->valid == w->pending + w->unread - w->nr_late);
	HWTW_MUST(t, t->claimed == t->held);
	HWTW_MUST(t, t->chunks + hwtw_kunit_check_blocks(w, t) == w->chunks);
	/* From the first operation on. */
	HWTW_MUST(t, !w->chunks || w->chunks >= hwtw_kunit_chunks(w));
	if (w->chunks >= hwtw_chunks_for(w, 0)) {
		HWTW_MUST(t, w->chunks >= hwtw_chunks_for(w, w->room));
		HWTW_MUST(t, w->chunks < hwtw_chunks_for(w, w->room + 1));
	}
	HWTW_MUST(t, w->armed == w->cancelled + w->completed + w->pending + w->unread);
	HWTW_MUST(t, w->expired == w->withdrawn + w->delivered + w->unread);
	return t->why;
}

#define HWTW_EXPECT_SOUND(test, w)					\
do {									\
	const char *__why = hwtw_kunit_check(w);			\
									\
	if (__why)							\
		KUNIT_FAIL(test, "not so: %s", __why);			\
} while (0)

#endif /* _HWTW_KUNIT_H */
