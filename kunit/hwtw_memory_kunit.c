// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: memory of the wheel: chunks, pages, ids, stale claims
 */
#include "../hwtw_wheel.c"
#include "../hwtw_memory.c"

#include <linux/mm.h>
#include <linux/module.h>
#include "hwtw_kunit.h"

#define MAX_NS	HWTW_TIME_MAX_NS

static u64 arm(struct kunit *test, u64 now, u64 expires)
{
	u64 id = 0;

	KUNIT_EXPECT_GT(test, hwtw_kunit_arm(test, test->priv, now, expires, 0, expires, &id), 0);
	return id;
}

static u64 *ids_alloc(struct kunit *test, unsigned int nr)
{
	u64 *id = kunit_kzalloc(test, nr * sizeof(*id), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, id);
	return id;
}

static struct hwtw_event *events_alloc(struct kunit *test, unsigned int nr)
{
	struct hwtw_event *ev = kunit_kzalloc(test, nr * sizeof(*ev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ev);
	return ev;
}

/* Take all that is unread, in pieces. Tells how many there were. */
static unsigned int read_all(struct kunit *test, u64 now)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_event ev[16];
	unsigned int nr = 0;

	while (w->unread) {
		unsigned int n = hwtw_kunit_take(w, now, U64_MAX, ev, 16);

		hwtw_kunit_tidy(w, w->seq, n);
		nr += n;
	}
	return nr;
}

/* Sweep all logs, whether it is worth it or not. */
static void sweep(struct hwtw_wheel *w)
{
	w->sweep.seq = w->seq - HWTW_SWEEP_SEQS - 1;
	w->sweep.active = false;
	do
		hwtw_wheel_tidy(w, 64, 64);
	while (w->sweep.active);
}

/*
 * What is needed
 */

/* An operation that lacks memory has done half of its work. */
static void need_tells_and_changes_nothing(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv, *copy;
	struct hwtw_need need;

	copy = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, w, sizeof(*w));
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 1, 0, &need), 1);
	KUNIT_EXPECT_EQ(test, memcmp(copy, w, sizeof(*w)), 0);
	KUNIT_EXPECT_GE(test, need.blocks * HWTW_BLOCK_CHUNKS, 1U + HWTW_CHUNK_SLACK);
	KUNIT_EXPECT_EQ(test, need.pages, 1U);
	KUNIT_EXPECT_EQ(test, need.dir, 1U << HWTW_DIR_FIRST);
	KUNIT_EXPECT_EQ(test, need.late, 0U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 10 * HWTW_PAGE_SLOTS + 1, 0, &need), 1);
	KUNIT_EXPECT_EQ(test, need.pages, 11U);
	hwtw_kunit_refill(test, w, 0, 1, true);
	KUNIT_EXPECT_EQ(test, w->pages, 0U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 0, 1, &need), 0);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 1, 0, &need), 1);
	hwtw_kunit_refill(test, w, 2 * HWTW_PAGE_SLOTS, 0, true);
	KUNIT_EXPECT_EQ(test, w->pages, 2U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 2 * HWTW_PAGE_SLOTS, 0, &need), 0);
	HWTW_EXPECT_SOUND(test, w);
	/* There is no room for a page without an entry. */
	hwtw_kunit_refill(test, w, 0, 300, false);
	w->nr_pages += 62;
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 2 * HWTW_PAGE_SLOTS + 1, 0, &need), 1);
	KUNIT_EXPECT_EQ(test, need.dir, 2U << HWTW_DIR_FIRST);
	w->nr_pages = HWTW_PAGES_MAX;
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 2 * HWTW_PAGE_SLOTS, 0, &need), 0);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 2 * HWTW_PAGE_SLOTS + 1, 0, &need), -ENOSPC);
	w->nr_pages = 2;
}

static void late_timer_asks_for_a_node(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_timer timer = { .time_ns = 5 << 16, .flags = HWTW_TIMER_ABS };
	struct hwtw_need need;

	arm(test, 100 << 16, 10 << 16);
	hwtw_kunit_refill(test, w, 1, 1, false);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_try(w, 100 << 16, HWTW_OP_ARM, &timer), -EAGAIN);
	HWTW_EXPECT_SOUND(test, w);
	KUNIT_EXPECT_EQ(test, w->unread, 1U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 1, 0, &need), 1);
	KUNIT_EXPECT_GE(test, need.late, 1U);
	/* But who cancels timers needs none. */
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 0, 0, &need), 0);
	hwtw_kunit_refill(test, w, 1, 1, false);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_try(w, 100 << 16, HWTW_OP_ARM, &timer), HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, w->nr_late, 1U);
	HWTW_EXPECT_SOUND(test, w);
}

/*
 * @per timers for each bucket that there is below the last level, all of them
 * in one bucket before: the worst that a cascade can do to the pool.
 */
static u64 arm_all_logs(struct kunit *test, unsigned int per)
{
	struct hwtw_wheel *w = test->priv;
	u64 start = 1ULL << HWTW_LAST_SHIFT;
	unsigned int level, bucket, i;

	for (level = 0; level < HWTW_LEVELS - 1; level++) {
		for (bucket = 1; bucket < HWTW_LEVEL_SIZE; bucket++) {
			u64 tick = start + ((u64)bucket << level * HWTW_LEVEL_BITS);

			for (i = 0; i < per; i++) {
				struct hwtw_timer timer = {
					.time_ns = tick << 16,
					.flags = HWTW_TIMER_ABS,
				};

				hwtw_kunit_refill(test, w, 1, 0, true);
				hwtw_kunit_try(w, 0, HWTW_OP_ARM, &timer);
			}
		}
	}
	return start << 16;
}

/* Expiry needs memory when there is none to be had. */
static void cascade_needs_no_memory(struct kunit *test)
{
	static const unsigned int per[] = { 1, 2, 15, 16 };
	struct hwtw_wheel *w = test->priv;
	unsigned int i, j, nr;
	u64 now;

	for (i = 0; i < ARRAY_SIZE(per); i++) {
		u32 chunks;

		hwtw_kunit_reset(w, 16, 0);
		now = arm_all_logs(test, per[i]);
		nr = w->pending;
		chunks = w->chunks;
		while (hwtw_wheel_run(w, now, 7))
			;
		/* One level at a time. */
		KUNIT_EXPECT_EQ(test, w->cascaded, (u64)nr * HWTW_LEVELS / 2);
		for (j = 0; j < HWTW_LEVELS - 1; j++)
			KUNIT_EXPECT_TRUE(test, (w->bitmap[j][0] | w->bitmap[j][1]) == ~1ULL);
		HWTW_EXPECT_SOUND(test, w);
		/* Back into one log, by way of all others. */
		while (hwtw_wheel_run(w, now * 2, 100)) {
			if (!(w->clk & 63))
				HWTW_EXPECT_SOUND(test, w);
			cond_resched();
		}
		KUNIT_EXPECT_EQ(test, w->unread, nr);
		KUNIT_EXPECT_EQ(test, w->chunks, chunks);
		HWTW_EXPECT_SOUND(test, w);
		KUNIT_EXPECT_EQ(test, read_all(test, now * 2), nr);
	}
}

/*
 * Claims that have come to one bucket spread over all of them when the clock is set
 * back, while others are still in buckets of their own, and the pool runs dry.
 */
static void rewind_needs_no_memory(struct kunit *test)
{
	const unsigned int nr = (HWTW_LEVELS - 2) * (HWTW_LEVEL_SIZE - 1);
	struct hwtw_event *ev = events_alloc(test, nr);
	struct hwtw_wheel *w = test->priv;
	u64 last = 1ULL << (HWTW_LEVELS - 2) * HWTW_LEVEL_BITS, base = last * 2, id;
	unsigned int level, bucket;

	w->rewinds = true;
	/* The record tells of 2^32 periods, and leaves a deadline that has passed as well. */
	for (level = 0; level < HWTW_LEVELS - 2; level++) {
		for (bucket = 1; bucket < HWTW_LEVEL_SIZE; bucket++) {
			u64 tick = (u64)bucket << level * HWTW_LEVEL_BITS;

			hwtw_kunit_arm(test, w, 0, tick << 16, 1 << 16, 0, &id);
		}
	}
	hwtw_kunit_run(w, base << 16);
	KUNIT_ASSERT_EQ(test, hwtw_kunit_take(w, base << 16, U64_MAX, ev, nr), nr);
	for (level = 0; level < HWTW_LEVELS - 2; level++) {
		for (bucket = 1; bucket < HWTW_LEVEL_SIZE; bucket++) {
			struct hwtw_timer timer = {
				.time_ns = (base + ((u64)bucket << level * HWTW_LEVEL_BITS)) << 16,
				.flags = HWTW_TIMER_ABS,
			};

			hwtw_kunit_refill(test, w, 1, 0, true);
			hwtw_kunit_try(w, base << 16, HWTW_OP_ARM, &timer);
		}
	}
	HWTW_EXPECT_SOUND(test, w);
	while (hwtw_wheel_rewind(w, 1ULL << 48, 1))
		KUNIT_ASSERT_FALSE(test, hlist_empty(&w->pool));
	HWTW_EXPECT_SOUND(test, w);
	KUNIT_EXPECT_EQ(test, w->pending, 2 * nr);
}

/* Late timers, which have no claim, are periodic and get one each when they are read. */
static void periods_need_no_memory(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	unsigned int i, nr = 1000, taken = 0;
	u64 now = 5000 << 16, last = 0;
	struct hwtw_batch batch;

	for (i = nr; i; i--) {
		/* All over the buckets. */
		struct hwtw_timer timer = {
			.time_ns = i << 16,
			.interval_ns = (5000 + (1 + i % 63ULL) * (1ULL << 6 * (i % 7))) << 16,
			.flags = HWTW_TIMER_ABS,
		};

		do
			hwtw_kunit_refill(test, w, 1, 0, true);
		while (hwtw_kunit_try(w, now, HWTW_OP_ARM, &timer) == -EAGAIN);
	}
	KUNIT_EXPECT_EQ(test, w->nr_late, nr - 1);
	HWTW_EXPECT_SOUND(test, w);
	while (hwtw_wheel_peek(w, now, U64_MAX, &batch, 64)) {
		for (i = 0; i < batch.nr; i++)
			KUNIT_EXPECT_EQ(test, batch.ev[i].expires_ns, last += 1 << 16);
		KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, batch.nr), 0U);
		taken += batch.nr;
		HWTW_EXPECT_SOUND(test, w);
		hwtw_wheel_tidy(w, 0, batch.nr);
		HWTW_EXPECT_SOUND(test, w);
	}
	KUNIT_EXPECT_EQ(test, taken, nr);
	KUNIT_EXPECT_EQ(test, w->pending, nr);
	hwtw_kunit_run(w, MAX_NS);
	KUNIT_EXPECT_EQ(test, w->unread, nr);
	HWTW_EXPECT_SOUND(test, w);
}

/*
 * Stale claims
 */

enum storm { STORM_CANCEL, STORM_EARLIER, STORM_DUE, STORM_FAULT };

struct storm_case {
	const char *desc;
	enum storm storm;
	unsigned int batch;
};

static const struct storm_case storms[] = {
	{ "arm and cancel, one by one", STORM_CANCEL, 1 },
	{ "arm and cancel, batches of 64", STORM_CANCEL, 64 },
	{ "re-arm to earlier, one by one", STORM_EARLIER, 1 },
	{ "re-arm to earlier, batches of 64", STORM_EARLIER, 64 },
	{ "arm when due and cancel, one by one", STORM_DUE, 1 },
	{ "arm when due and cancel, batches of 64", STORM_DUE, 64 },
	{ "reads that fault in between, one by one", STORM_FAULT, 1 },
	{ "reads that fault in between, batches of 64", STORM_FAULT, 64 },
};

static void storm_desc(const struct storm_case *c, char *desc)
{
	strscpy(desc, c->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(storm, storms, storm_desc);

#define STORM_TIMERS	2000
#define STORM_OPS	40000

/* Cancelled timers keep memory until they would have been due, or for ever (B-27). */
static void stale_claims_are_bounded(struct kunit *test)
{
	const struct storm_case *c = test->param_value;
	struct hwtw_wheel *w = test->priv;
	u64 *id = ids_alloc(test, STORM_TIMERS), now = 1ULL << 40, far = 1ULL << 50;
	unsigned int i, ops = 0, most = 0;
	struct hwtw_batch batch;
	u32 seq = w->seq;

	hwtw_kunit_run(w, now);
	for (i = 0; i < STORM_TIMERS; i++) {
		bool due = c->storm == STORM_FAULT && i < STORM_TIMERS / 2;

		id[i] = arm(test, now, due ? now - 1 : far + ((u64)i << 24));
	}
	for (i = 0; i < STORM_OPS; i++) {
		u64 expires = far - ((u64)i << 24);

		if (c->storm == STORM_EARLIER) {
			hwtw_kunit_rearm(test, w, now, id[i % STORM_TIMERS], expires, 0);
		} else {
			if (c->storm != STORM_CANCEL)
				expires = now;
			hwtw_kunit_cancel(w, arm(test, now, expires));
			ops++;
		}
		if (c->storm == STORM_FAULT) {
			hwtw_wheel_peek(w, now, U64_MAX, &batch, 128);
			hwtw_wheel_take(w, &batch, 0);
		}
		if (++ops >= c->batch) {
			hwtw_kunit_tidy(w, seq, ops);
			seq = w->seq;
			ops = 0;
			most = max(most, w->claims);
		}
	}
	KUNIT_EXPECT_LE(test, most, 5 * STORM_TIMERS + 2 * HWTW_STALE_MIN);
	HWTW_EXPECT_SOUND(test, w);
	/* All timers are as they were. */
	KUNIT_EXPECT_EQ(test, w->pending + w->unread, (u32)STORM_TIMERS);
	hwtw_kunit_run(w, far * 2);
	KUNIT_EXPECT_EQ(test, w->unread, (u32)STORM_TIMERS);
	KUNIT_EXPECT_EQ(test, read_all(test, far * 2), (unsigned int)STORM_TIMERS);
	HWTW_EXPECT_SOUND(test, w);
}

/* Tables grow past their end, or never shrink (B-27, D-29). */
static void memory_comes_back(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	unsigned int nr = 20000, i, round;
	u64 *id = kvcalloc(nr, sizeof(*id), GFP_KERNEL), now = 0;
	u32 seq = w->seq;

	KUNIT_ASSERT_NOT_NULL(test, id);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < nr; i++) {
			id[i] = arm(test, now, now + (1ULL << 30) + ((u64)i << 16));
			if (!(i % 64))
				cond_resched();
		}
		KUNIT_EXPECT_GE(test, w->pages, nr / HWTW_PAGE_SLOTS);
		if (round < 2) {
			/* From the front, and from all over. */
			for (i = 0; i < nr; i++) {
				hwtw_kunit_cancel(w, id[round ? i * 7919 % nr : i]);
				if (!(i % 64))
					hwtw_kunit_tidy(w, seq, 64);
				seq = w->seq;
			}
		} else {
			now += 1ULL << 40;
			hwtw_kunit_run(w, now);
			KUNIT_EXPECT_EQ(test, read_all(test, now), nr);
		}
		while (hwtw_wheel_tidy(w, 0, 0))
			cond_resched();
		KUNIT_EXPECT_EQ(test, w->pending + w->unread, 0U);
		KUNIT_EXPECT_LE(test, w->pages, 1 + DIV_ROUND_UP(HWTW_SLOTS_KEEP, HWTW_PAGE_SLOTS));
		KUNIT_EXPECT_EQ(test, w->claims, 0U);
		KUNIT_EXPECT_LE(test, w->chunks, hwtw_chunks_for(w, HWTW_CHUNK_KEEP));
		HWTW_EXPECT_SOUND(test, w);
	}
	kvfree(id);
}

#define SWEEP_STEPS	60
#define SWEEP_ACTS	6

static void sweep_act(struct kunit *test, unsigned int act, u64 now, struct hwtw_event *ev,
		      unsigned int *read)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_batch batch;

	switch (act) {
	case 0:
		/* In part, from somewhere within a chunk. */
		*read += hwtw_kunit_take(w, now, U64_MAX, ev, 2);
		hwtw_wheel_peek(w, now, U64_MAX, &batch, 40);
		*read += hwtw_wheel_take(w, &batch, batch.nr / 2);
		break;
	case 1:
		hwtw_wheel_peek(w, now, U64_MAX, &batch, 3);
		*read += hwtw_wheel_take(w, &batch, 1);
		break;
	case 2:
		*read += hwtw_kunit_take(w, now, U64_MAX, ev, 96);
		break;
	case 3:
		hwtw_wheel_run(w, now + (1ULL << 37), 5);
		break;
	case 4:
		hwtw_kunit_run(w, now + (1ULL << 37));
		break;
	default:
		hwtw_kunit_cancel(w, arm(test, now, now));
		hwtw_kunit_cancel(w, arm(test, now, now + (1ULL << 37)));
		break;
	}
}

static bool bit(const struct hwtw_wheel *w, u32 bucket)
{
	return w->bitmap[bucket / HWTW_ROW][bucket / HWTW_LEVEL_SIZE % 2] >>
	       bucket % HWTW_LEVEL_SIZE & 1;
}

/*
 * A bit that outlives its bucket's last claim makes the clock stop there for nothing,
 * one that goes before it makes the clock pass timers (D-10): whichever way they go.
 */
static void bit_goes_with_last_claim(struct kunit *test)
{
	enum { SWEPT, DROPPED, DRAINED, SET_BACK, WAYS };
	struct hwtw_wheel *w = test->priv;
	unsigned int level, way;
	u64 id[3];

	for (level = 0; level < HWTW_LEVELS; level++) {
		u64 at = 5ULL << level * HWTW_LEVEL_BITS;
		u32 bucket = hwtw_bucket(level, at);

		for (way = 0; way < WAYS; way++) {
			hwtw_kunit_reset(w, HWTW_TICK_SHIFT_MIN, 0);
			w->rewinds = way == SET_BACK;
			KUNIT_EXPECT_FALSE(test, bit(w, bucket));
			id[0] = arm(test, 0, at << 16);
			id[1] = arm(test, 0, at << 16);
			id[2] = arm(test, 0, MAX_NS);
			KUNIT_EXPECT_TRUE(test, bit(w, bucket));
			hwtw_kunit_cancel(w, id[0]);
			sweep(w);
			KUNIT_EXPECT_TRUE(test, bit(w, bucket));
			switch (way) {
			case SWEPT:
				hwtw_kunit_cancel(w, id[1]);
				/* Stale, but there. */
				KUNIT_EXPECT_TRUE(test, bit(w, bucket));
				sweep(w);
				break;
			case DROPPED:
				hwtw_kunit_cancel(w, id[1]);
				hwtw_kunit_cancel(w, id[2]);
				hwtw_kunit_tidy(w, w->seq, 1);
				KUNIT_EXPECT_EQ(test, w->claims, 0U);
				break;
			case DRAINED:
				KUNIT_EXPECT_FALSE(test, hwtw_wheel_run(w, (at - 1) << 16, 100));
				KUNIT_EXPECT_EQ(test, w->unread, 0U);
				KUNIT_EXPECT_FALSE(test, hwtw_wheel_run(w, at << 16, 100));
				KUNIT_EXPECT_EQ(test, read_all(test, at << 16), 1U);
				break;
			default:
				/* To another level, but for the first one. */
				hwtw_kunit_run(w, (at - 1) << 16);
				hwtw_wheel_rewind(w, ((at - 1) << 16) - 1, 100);
				hwtw_kunit_run(w, at << 16);
				KUNIT_EXPECT_EQ(test, read_all(test, at << 16), 1U);
			}
			KUNIT_EXPECT_FALSE(test, bit(w, bucket));
			HWTW_EXPECT_SOUND(test, w);
		}
	}
}

/* A sweep and others who read the log, or write to it, lose each other's claims (D-10). */
static void sweep_stops_anywhere(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 now = 1ULL << 36, *id = ids_alloc(test, 400);
	struct hwtw_event *ev = events_alloc(test, 96);
	unsigned int act, stop, i, read, left;

	for (act = 0; act < SWEEP_ACTS; act++) {
		for (stop = 0; stop < SWEEP_STEPS; stop++) {
			hwtw_kunit_reset(w, 16, now);
			/* A long unread log and a long bucket, two of three claims stale. */
			for (i = 0; i < 400; i++)
				id[i] = arm(test, now, i & 1 ? now : now + (1ULL << 37));
			left = 400;
			for (i = 0; i < 400; i++) {
				if (i % 6 > 1)
					left -= hwtw_kunit_cancel(w, id[i]) > 0;
			}
			/* The unread log is swept last, the bucket near the end. */
			w->sweep.active = true;
			w->sweep.log = stop & 1 ? HWTW_UNREAD : 0;
			w->sweep.read = NULL;
			while (stop % 2 == 0 && w->sweep.active &&
			       hwtw_log_empty(&w->log[w->sweep.log]))
				hwtw_sweep_chunk(w);
			for (i = 0; i < stop / 2 % 10 && w->sweep.active; i++)
				hwtw_sweep_chunk(w);
			HWTW_EXPECT_SOUND(test, w);
			read = 0;
			sweep_act(test, act, now, ev, &read);
			HWTW_EXPECT_SOUND(test, w);
			if (w->sweep.active)
				hwtw_sweep_chunk(w);
			HWTW_EXPECT_SOUND(test, w);
			sweep_act(test, (act + stop / 20) % SWEEP_ACTS, now, ev, &read);
			HWTW_EXPECT_SOUND(test, w);
			while (w->sweep.active)
				hwtw_sweep_chunk(w);
			HWTW_EXPECT_SOUND(test, w);
			hwtw_kunit_run(w, now * 8);
			KUNIT_EXPECT_EQ(test, read + read_all(test, now * 8), left);
			HWTW_EXPECT_SOUND(test, w);
		}
		cond_resched();
	}
}

/* A sweep leaves nothing stale, and all else where it was. */
static void sweep_is_complete(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 now = 1ULL << 36, last = 0, *id = ids_alloc(test, 3000);
	struct hwtw_event ev;
	unsigned int i, left = 0;

	hwtw_kunit_run(w, now);
	for (i = 0; i < 3000; i++)
		id[i] = arm(test, now, i & 1 ? now : now + ((u64)i << 27));
	for (i = 0; i < 3000; i++) {
		if (i % 5)
			hwtw_kunit_cancel(w, id[i]);
		else
			left++;
	}
	sweep(w);
	KUNIT_EXPECT_EQ(test, w->claims, left);
	HWTW_EXPECT_SOUND(test, w);
	hwtw_kunit_run(w, MAX_NS);
	for (i = 0; i < left; i++) {
		KUNIT_ASSERT_EQ(test, hwtw_kunit_take(w, MAX_NS, U64_MAX, &ev, 1), 1U);
		KUNIT_EXPECT_GE(test, ev.expires_ns, last);
		last = ev.expires_ns;
	}
}

/*
 * Numbers that come round
 */

/* A stale claim is taken for the timer's when the numbers start again (D-18). */
static void numbers_of_claims_come_round(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_event ev;
	u64 id[200], last = 0;
	unsigned int i;

	w->seq = U32_MAX - 100;
	w->sweep.seq = w->seq;
	for (i = 0; i < 200; i++) {
		id[i] = arm(test, 0, (1000 + i) << 16);
		hwtw_kunit_rearm(test, w, 0, id[i], (500 + i) << 16, 0);
		HWTW_EXPECT_SOUND(test, w);
	}
	KUNIT_EXPECT_LT(test, w->seq, 1000U);
	hwtw_kunit_run(w, 2000 << 16);
	KUNIT_EXPECT_EQ(test, w->unread, 200U);
	for (i = 0; i < 200; i++) {
		KUNIT_ASSERT_EQ(test, hwtw_kunit_take(w, 2000 << 16, U64_MAX, &ev, 1), 1U);
		KUNIT_EXPECT_GT(test, ev.expires_ns, last);
		last = ev.expires_ns;
	}
	KUNIT_EXPECT_EQ(test, hwtw_kunit_take(w, 2000 << 16, U64_MAX, &ev, 1), 0U);
	HWTW_EXPECT_SOUND(test, w);
}

/* Let so many numbers go by, with as many operations as that takes. */
static void age(struct hwtw_wheel *w, u64 numbers)
{
	while (numbers) {
		u32 some = min_t(u64, numbers, 1 << 28);

		w->seq += some;
		if (!w->seq || w->seq == U32_MAX)
			w->seq = 1;
		numbers -= some;
		do
			hwtw_wheel_tidy(w, 64, 64);
		while (w->sweep.active);
	}
}

/* A claim that was valid all along gets a twin when its number comes again. */
static void old_claims_get_new_numbers(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 now = 1ULL << 40, id[3];
	u32 seq;
	int i;

	hwtw_kunit_run(w, now);
	arm(test, now, now);
	id[0] = arm(test, now, MAX_NS);		/* pending */
	id[1] = arm(test, now, now);		/* unread */
	id[2] = arm(test, now, 100 << 16);	/* late */
	seq = hwtw_find(w, id[0])->seq;
	age(w, (1ULL << 32) - 1000);
	KUNIT_EXPECT_LE(test, w->seq - hwtw_find(w, id[0])->seq, 2 * HWTW_SWEEP_SEQS);
	KUNIT_EXPECT_LE(test, w->seq - hwtw_find(w, id[1])->seq, 2 * HWTW_SWEEP_SEQS);
	HWTW_EXPECT_SOUND(test, w);
	/* The number that a slot had is the next to be given. */
	for (i = 0; i < 3; i++) {
		w->seq = seq + i - 1;
		KUNIT_EXPECT_GT(test, hwtw_kunit_rearm(test, w, now, id[i], now + (1 << 20), 0),
				0);
		HWTW_EXPECT_SOUND(test, w);
	}
	hwtw_kunit_run(w, now * 2);
	KUNIT_EXPECT_EQ(test, w->unread, 4U);
	HWTW_EXPECT_SOUND(test, w);
}

/* A claim that moves to where a sweep has been already escapes it, with its old number. */
static void moved_claims_get_new_numbers(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 id = arm(test, 0, 5 << 16);

	/* The sweep comes from above, and pauses behind this one. */
	arm(test, 0, 200 << 16);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, 0, id, 1ULL << 40, 0), HWTW_PENDING);
	w->seq += HWTW_SWEEP_SEQS + 1;
	hwtw_wheel_tidy(w, 0, 0);
	KUNIT_EXPECT_TRUE(test, w->sweep.active);
	hwtw_kunit_run(w, 5 << 16);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_PENDING);
	while (w->sweep.active)
		hwtw_wheel_tidy(w, 0, 0);
	KUNIT_EXPECT_LE(test, w->seq - hwtw_find(w, id)->seq, HWTW_SWEEP_SEQS / 2);
	HWTW_EXPECT_SOUND(test, w);
}

/* Late timers of one tick, armed a long time apart, are not found again. */
static void late_timers_of_all_ages(struct kunit *test)
{
	static const u32 seqs[] = { 5, 0x7ffffff0, 0x80000010, 0xfffffff0, 0x40000000, 0xc0000000 };
	struct hwtw_wheel *w = test->priv;
	u64 now = 1ULL << 40, id[ARRAY_SIZE(seqs)];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(seqs); i++) {
		hwtw_kunit_reset(w, 16, now);
		arm(test, now, now);
		for (j = 0; j < ARRAY_SIZE(seqs); j++) {
			w->seq = seqs[(i + j) % ARRAY_SIZE(seqs)];
			w->sweep.seq = w->seq;
			id[j] = arm(test, now, 100 << 16);
		}
		HWTW_EXPECT_SOUND(test, w);
		for (j = 0; j < ARRAY_SIZE(seqs); j++) {
			KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[(i + j * 5) % 6]),
					HWTW_EXPIRED);
			HWTW_EXPECT_SOUND(test, w);
		}
		KUNIT_EXPECT_EQ(test, w->nr_late, 0U);
	}
}

/* An old id reaches a newer timer, at once or after the page was made anew (D-20). */
static void ids_never_come_back(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	unsigned int nr = 8 * HWTW_PAGE_SLOTS, i, round;
	u64 *id = ids_alloc(test, nr), *old = ids_alloc(test, nr);
	u32 gen = 0;

	for (round = 0; round < 6; round++) {
		u32 least = U32_MAX, most = 0;

		for (i = 0; i < nr; i++) {
			id[i] = arm(test, 0, MAX_NS);
			least = min_t(u32, least, id[i] >> HWTW_GEN_SHIFT);
			most = max_t(u32, most, id[i] >> HWTW_GEN_SHIFT);
			KUNIT_EXPECT_EQ(test, hwtw_id_wheel(id[i]), w->nr);
		}
		/* All slots were in use in the round before. */
		KUNIT_EXPECT_GE(test, least, round ? 2U : 1U);
		KUNIT_EXPECT_GT(test, most, gen);
		gen = most;
		for (i = 0; i < nr && round; i++) {
			KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, old[i]), -ENOENT);
			KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, old[i]), -ENOENT);
		}
		for (i = 0; i < nr; i++)
			KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[i]), HWTW_PENDING);
		KUNIT_EXPECT_LT(test, w->pages, 4U);
		for (i = 0; i < nr; i++)
			KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[i]), -ENOENT);
		swap(id, old);
		HWTW_EXPECT_SOUND(test, w);
	}
}

/* Ids of slots, pages and generations that there are not (D-29). */
static void strange_ids_are_unknown(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 id = arm(test, 0, MAX_NS), i;

	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, U64_MAX), -ENOENT);
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id ^ 1ULL << i), -ENOENT);
	for (i = 1; i < 1 << HWTW_PLACE_BITS; i++)
		KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id + i), -ENOENT);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_PENDING);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id), HWTW_PENDING);
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id ^ 1ULL << i), -ENOENT);
}

/* Generations come round. */
static void spent_slots_are_not_used_again(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 id[3], dead;
	struct hwtw_need need;
	unsigned int i;

	/* The first page has two generations left. */
	hwtw_kunit_refill(test, w, 1, 0, false);
	for (i = 0; i < HWTW_PAGE_SLOTS; i++) {
		struct hwtw_slot *slot = &hwtw_kunit_page(w, 0)->slot[i];

		slot->key = HWTW_KEY(HWTW_GEN_MAX - 1, HWTW_SLOT_FREE);
	}
	id[0] = arm(test, 0, MAX_NS);
	id[1] = arm(test, 0, MAX_NS);
	KUNIT_EXPECT_EQ(test, id[0] >> HWTW_GEN_SHIFT, HWTW_GEN_MAX - 1ULL);
	hwtw_kunit_cancel(w, id[1]);
	/* Round to the slot that was used before. */
	for (i = 0; i < HWTW_PAGE_SLOTS - 1; i++) {
		dead = arm(test, 0, MAX_NS);
		KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, dead), HWTW_PENDING);
		HWTW_EXPECT_SOUND(test, w);
	}
	KUNIT_EXPECT_EQ(test, dead >> HWTW_GEN_SHIFT, (u64)HWTW_GEN_MAX);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, dead), -ENOENT);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_page(w, 0)->slots, HWTW_PAGE_SLOTS - 1);
	/* So do the others, but for the one that is in use. */
	for (i = 0; i < HWTW_PAGE_SLOTS - 2; i++) {
		dead = arm(test, 0, MAX_NS);
		KUNIT_EXPECT_EQ(test, dead >> HWTW_GEN_SHIFT, (u64)HWTW_GEN_MAX);
		KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, dead), HWTW_PENDING);
		HWTW_EXPECT_SOUND(test, w);
	}
	KUNIT_EXPECT_EQ(test, w->free_slots, 0U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_need(w, 1, 0, &need), 1);
	id[2] = arm(test, 0, MAX_NS);
	KUNIT_EXPECT_EQ(test, (u32)(id[2] & HWTW_INDEX_MASK) >> HWTW_PLACE_BITS, 1U);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[0]), HWTW_PENDING);
	HWTW_EXPECT_SOUND(test, w);
	/* The page goes with its last timer. */
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[0]), HWTW_PENDING);
	KUNIT_EXPECT_NULL(test, hwtw_kunit_page(w, 0));
	/* And its number with it. */
	hwtw_kunit_refill(test, w, 5 * HWTW_PAGE_SLOTS, 0, false);
	KUNIT_EXPECT_NULL(test, hwtw_kunit_page(w, 0));
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[0]), -ENOENT);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, dead), -ENOENT);
	HWTW_EXPECT_SOUND(test, w);
}

/* A full page of which every other slot is spent when it is let go, or all are. */
static void full_page_is_spent(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 id[HWTW_PAGE_SLOTS];
	unsigned int i, step;

	for (step = 2; step; step--) {
		hwtw_kunit_reset(w, 16, 0);
		hwtw_kunit_refill(test, w, 1, 0, false);
		for (i = 0; i < HWTW_PAGE_SLOTS; i++) {
			struct hwtw_slot *slot = &hwtw_kunit_page(w, 0)->slot[i];

			if (i % step == 0)
				slot->key = HWTW_KEY(HWTW_GEN_MAX, HWTW_SLOT_FREE);
		}
		for (i = 0; i < HWTW_PAGE_SLOTS; i++)
			id[i] = arm(test, 0, MAX_NS);
		KUNIT_EXPECT_EQ(test, w->free_slots, 0U);
		for (i = HWTW_PAGE_SLOTS; i--;) {
			KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[i]), HWTW_PENDING);
			HWTW_EXPECT_SOUND(test, w);
			KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[i]), -ENOENT);
		}
		KUNIT_EXPECT_EQ(test, w->pages, 0U);
		KUNIT_EXPECT_EQ(test, w->free_slots, 0U);
	}
}

/* The slot of a timer cancelled in a batch is counted on by one armed behind it. */
static void spent_slot_is_not_counted_on(struct kunit *test)
{
	struct hwtw_op op[2] = {
		{ .opcode = HWTW_OP_CANCEL },
		{ .opcode = HWTW_OP_ARM, .timer.time_ns = MAX_NS },
	};
	struct hwtw_wheel *w = test->priv;
	unsigned int credit = 0, i;

	for (i = 0; i < HWTW_PAGE_SLOTS; i++)
		op[0].timer.id = arm(test, 0, MAX_NS);
	hwtw_find(w, op[0].timer.id)->key = HWTW_GEN_MAX;
	op[0].timer.id |= (u64)HWTW_GEN_MAX << HWTW_GEN_SHIFT;
	KUNIT_ASSERT_EQ(test, w->free_slots, 0U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_ops(w, 0, &credit, op, 2), 1U);
	KUNIT_EXPECT_EQ(test, op[0].result, 0);
	KUNIT_EXPECT_EQ(test, credit, 1U);
	HWTW_EXPECT_SOUND(test, w);
	hwtw_kunit_refill(test, w, 1, 0, false);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_ops(w, 0, &credit, op + 1, 1), 1U);
	KUNIT_EXPECT_EQ(test, op[1].result, 0);
	HWTW_EXPECT_SOUND(test, w);
}

/* Memory stays as long as a single timer does. */
static void memory_comes_back_but_for_one(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	unsigned int nr = 50000, i;
	u64 *id = kvcalloc(nr, sizeof(*id), GFP_KERNEL);
	u32 chunks;

	KUNIT_ASSERT_NOT_NULL(test, id);
	for (i = 0; i < nr; i++)
		id[i] = arm(test, 0, (1ULL << 30) + ((u64)i << 16));
	chunks = w->chunks;
	for (i = 1; i < nr; i++) {
		hwtw_kunit_cancel(w, id[i]);
		if (!(i % 64)) {
			hwtw_kunit_tidy(w, w->seq, 64);
			cond_resched();
		}
	}
	KUNIT_EXPECT_EQ(test, w->pending, 1U);
	KUNIT_EXPECT_LE(test, w->chunks, chunks / 20 + HWTW_LOGS);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[0]), HWTW_PENDING);
	HWTW_EXPECT_SOUND(test, w);
	kvfree(id);
}

/* A large instance is freed in one go, or in part (D-26). */
static void destroy_goes_in_pieces(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	unsigned int pieces, calls = 0, i;
	struct hwtw_block *block;
	struct hwtw_event ev[3];

	hwtw_kunit_run(w, 1000 << 16);
	for (i = 0; i < 1000; i++)
		arm(test, 1000 << 16, (i * 7 % 2000) << 16);
	KUNIT_EXPECT_GT(test, w->nr_late, 0U);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_take(w, 1000 << 16, U64_MAX, ev, 3), 3U);
	hwtw_wheel_run(w, 2000 << 16, 3);
	pieces = w->nr_pages + 2 * w->nr_late + w->late_spares;
	list_for_each_entry(block, &w->blocks, node)
		pieces++;
	while (hwtw_wheel_destroy(w, 1))
		KUNIT_ASSERT_LE(test, ++calls, pieces);
	KUNIT_EXPECT_EQ(test, calls, pieces - 1);
	KUNIT_EXPECT_EQ(test, w->nr_pages, 0U);
	KUNIT_EXPECT_TRUE(test, list_empty(&w->blocks));
	KUNIT_EXPECT_NULL(test, w->late_spare);
	memset(w, 0, sizeof(*w));
	hwtw_wheel_init(w, 0, 16, 0);
}

static struct kunit_case hwtw_memory_cases[] = {
	KUNIT_CASE(need_tells_and_changes_nothing),
	KUNIT_CASE(late_timer_asks_for_a_node),
	KUNIT_CASE(cascade_needs_no_memory),
	KUNIT_CASE(rewind_needs_no_memory),
	KUNIT_CASE(periods_need_no_memory),
	KUNIT_CASE_PARAM(stale_claims_are_bounded, storm_gen_params),
	KUNIT_CASE(memory_comes_back),
	KUNIT_CASE(memory_comes_back_but_for_one),
	KUNIT_CASE(bit_goes_with_last_claim),
	KUNIT_CASE(sweep_stops_anywhere),
	KUNIT_CASE(sweep_is_complete),
	KUNIT_CASE(numbers_of_claims_come_round),
	KUNIT_CASE(old_claims_get_new_numbers),
	KUNIT_CASE(moved_claims_get_new_numbers),
	KUNIT_CASE(late_timers_of_all_ages),
	KUNIT_CASE(ids_never_come_back),
	KUNIT_CASE(strange_ids_are_unknown),
	KUNIT_CASE(spent_slots_are_not_used_again),
	KUNIT_CASE(full_page_is_spent),
	KUNIT_CASE(spent_slot_is_not_counted_on),
	KUNIT_CASE(destroy_goes_in_pieces),
	{}
};

static struct kunit_suite hwtw_memory_suite = {
	.name = "hwtw_memory",
	.init = hwtw_kunit_init,
	.exit = hwtw_kunit_exit,
	.test_cases = hwtw_memory_cases,
};

kunit_test_suite(hwtw_memory_suite);

MODULE_DESCRIPTION("Tests of the memory of the hwtw timer wheel");
MODULE_LICENSE("GPL");
