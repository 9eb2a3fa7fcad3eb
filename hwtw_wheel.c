// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: the timer wheel
 *
 * A hierarchical timing wheel with cascading after G. Varghese and T. Lauck,
 * "Hashed and Hierarchical Timing Wheels" (SOSP 1987, scheme 7), in which a
 * bucket only hints and the timer decides:
 *
 * - The timer is a slot in a page. It holds the truth: deadline, interval,
 *   user data, state. Its id leads to it by two array look-ups.
 * - A bucket is a log: claims of 8 bytes, only ever appended, in chunks of 31.
 *   A claim {slot, seq} is valid while its seq is the slot's. Otherwise it is
 *   stale and is dropped when the bucket is next walked.
 *
 * Arm writes a slot and appends a claim. Cancel changes the slot's seq and
 * touches no bucket. Re-arm to a later time stores the new deadline and
 * nothing else: the claim finds out when it is walked, and moves. Re-arm to an
 * earlier time appends a new claim and leaves the old one stale. A walk looks
 * up all slots of a chunk before it needs the first of them, so that cache
 * misses overlap where a linked list would wait for one after the other.
 *
 * Geometry
 * --------
 * A tick is 2^shift ns. Level n has 64 buckets of 64^n ticks each:
 *
 *   level  bucket (ticks)   with ticks of 2^20 ns    level spans
 *     0    1                1.05 ms                  67.1 ms
 *     1    64               67.1 ms                  4.29 s
 *     2    64^2             4.29 s                   4 min 35 s
 *     3    64^3             4 min 35 s               4 h 53 min
 *     4    64^4             4 h 53 min               13.0 days
 *     5    64^5             13.0 days                2.28 years
 *     6    64^6             2.28 years               146 years
 *     7    64^7             146 years                all there is
 *
 * A deadline is rounded up to a tick: tick = ceil(ns / 2^shift). The level of
 * a timer is the highest group of 6 bits in which its tick and the wheel's
 * clock differ, the bucket is the value of that group in its tick. No deadline
 * up to 2^63 - 1 ns needs more than 48 bits of ticks, so that the last level
 * never wraps and nothing is clamped (it ends behind its 33rd bucket). A
 * deadline that is not after the clock differs in no bit: it is due, and never
 * reaches the computation of a level.
 *
 * All buckets of a level lie ahead of the clock, and all of a level come
 * before the first of the next level. So the lowest bit of the lowest level
 * that has one is the next bucket, and the clock jumps there.
 *
 * Cascade
 * -------
 * When the time of a bucket comes it is drained from its head: a timer that is
 * due in the bucket's first tick expires, another one moves to the bucket that
 * it has relative to that tick, always on a lower level or, if it was re-armed
 * to a later time, ahead. The clock passes to the bucket's tick only once the
 * bucket is empty. A drain may stop at any claim and go on later: until it is
 * through, new timers are placed relative to the old clock and so go to the
 * tail of the bucket being drained. No timer overtakes another one of its
 * tick, and no timer is missed.
 *
 * Error
 * -----
 * A timer expires when the clock reaches ceil(deadline): never early, less
 * than one tick late, whatever its level, since the deadline is looked at
 * again in each cascade. At a deadline on a tick boundary there is no error.
 *
 * Order
 * -----
 * Expired timers wait in a log, oldest tick first and in arming order within a
 * tick. A timer that was due already when it was armed, earlier than the
 * newest one in the log, waits in a tree beside it, from which a take merges.
 *
 * Memory
 * ------
 * 40.6 bytes for the slot and 8.3 for the claim of a timer. Expiry allocates
 * nothing and can't fail: chunks move between the logs and a pool, and
 *
 *   chunks >= claims / 31 + min(claims, logs) + HWTW_CHUNK_SLACK
 *
 * holds before and after each operation, where claims counts the stale ones
 * and the records that may become claims when they are put back. A log wastes at most one chunk, its
 * last; the slack is for the partly read chunks of the log being drained and
 * of the unread one, for records put back in front of it, and one to spare.
 * Operations that may append ask for chunks first (hwtw_wheel_need()). Stale
 * claims are swept out, some with each operation, once there are twice as many
 * as valid ones, and long before the numbers of claims come round again; a valid
 * claim gets a new number then.
 *
 * Locks
 * -----
 * None. The owner holds its own around each call; see struct hwtw_cpu.
 */
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "hwtw.h"

/* See "Memory" above. */
#define HWTW_CHUNK_SLACK	4
/* Chunks that are not given back, and how many are asked for at once. */
#define HWTW_CHUNK_KEEP		32
#define HWTW_CHUNK_ASK		8
/* Free slots that are not given back. */
#define HWTW_SLOTS_KEEP		128
/* Nodes for late timers that are not given back, and how many are asked for at once. */
#define HWTW_LATE_KEEP		64
#define HWTW_LATE_ASK		32
/* A sweep begins with so many stale claims for a valid one, and these. */
#define HWTW_STALE_RATIO	2
#define HWTW_STALE_MIN		2048
/* ... or when so many claims were numbered since the last one began. */
#define HWTW_SWEEP_SEQS		(1U << 30)
/* Operations that pay for the sweep of one chunk: some add claims, others don't. */
#define HWTW_SWEEP_ARMS		4
#define HWTW_SWEEP_OPS		32
/* Stale claims that one call may skip, claims given back by one call. */
#define HWTW_TAKE_BUDGET	1024
#define HWTW_TRIM_CHUNKS	32

static_assert(sizeof(struct hwtw_slot) == 40);
static_assert(sizeof(struct hwtw_page) == HWTW_PAGE_BYTES);
static_assert(sizeof(struct hwtw_chunk) == HWTW_CHUNK_BYTES);
static_assert(HWTW_PAGE_SLOTS <= 1 << HWTW_SLOT_BITS);
static_assert(HWTW_INDEX_BITS + HWTW_WHEEL_BITS + HWTW_GEN_BITS == 64);

static u64 hwtw_tick(const struct hwtw_wheel *w, u64 ns)
{
	return (ns + (1ULL << w->shift) - 1) >> w->shift;
}

/*
 * Pages and slots
 *
 * An entry of the directory is the address of a page, or, bit 0 set, what is
 * kept of a page that was freed: the next free page number and the first
 * generation that its slots have not had yet.
 */

#define HWTW_ENTRY_FREE(next, gen)	((u64)(gen) << 32 | (u64)(next) << 1 | 1)
#define HWTW_ENTRY_NEXT(entry)		((u32)(entry) >> 1)
#define HWTW_ENTRY_GEN(entry)		((u32)((entry) >> 32))

#define HWTW_ENTRY_END			((u32)S32_MAX)	/* of the list of free numbers */

/* The part of the directory that has a page's entry. */
static unsigned int hwtw_dir_part(u32 page)
{
	return __fls(page + BIT(HWTW_DIR_FIRST)) - HWTW_DIR_FIRST;
}

static u64 *hwtw_dir_entry(const struct hwtw_wheel *w, u32 page)
{
	unsigned long n = page + BIT(HWTW_DIR_FIRST);
	unsigned long k = __fls(n);

	return &w->dir[k - HWTW_DIR_FIRST][n ^ BIT(k)];
}

static struct hwtw_page *hwtw_entry_page(u64 entry)
{
	return (struct hwtw_page *)(unsigned long)entry;
}

static struct hwtw_page *hwtw_page(const struct hwtw_wheel *w, u32 page)
{
	u64 entry = *hwtw_dir_entry(w, page);

	return entry & 1 ? NULL : hwtw_entry_page(entry);
}

/* The slot that a claim names, or NULL. Whether the claim is valid is another question. */
static struct hwtw_slot *hwtw_claim_slot(const struct hwtw_wheel *w, u64 claim)
{
	u32 index = (u32)claim;
	u64 entry = *hwtw_dir_entry(w, index >> HWTW_SLOT_BITS);

	if (unlikely(entry & 1))
		return NULL;
	return &hwtw_entry_page(entry)->slot[index & (BIT(HWTW_SLOT_BITS) - 1)];
}

static bool hwtw_claim_valid(const struct hwtw_slot *slot, u64 claim)
{
	return slot && slot->seq == (u32)(claim >> 32);
}

/* The index of a slot whose id is not hidden. */
static u32 hwtw_id_index(u64 id)
{
	return id & (BIT(HWTW_INDEX_BITS) - 1);
}

/* The slot of a live timer that no reader holds, or NULL. */
static __always_inline struct hwtw_slot *hwtw_find(const struct hwtw_wheel *w, u64 id)
{
	u32 nr = (id & (BIT(HWTW_INDEX_BITS) - 1)) >> HWTW_SLOT_BITS;
	u32 place = id & (BIT(HWTW_SLOT_BITS) - 1);
	struct hwtw_slot *slot;
	u64 entry;

	if (unlikely(nr >= w->nr_pages))
		return NULL;
	entry = *hwtw_dir_entry(w, array_index_nospec(nr, w->nr_pages));
	if (unlikely(entry & 1))
		return NULL;
	/* A place that there is not becomes 0, the id of which is another one. */
	slot = &hwtw_entry_page(entry)->slot[array_index_nospec(place, HWTW_PAGE_SLOTS)];
	return likely(slot->id == id) ? slot : NULL;
}

/*
 * The slot of a periodic timer whose record is being copied out, or NULL. It
 * lives on after that, so others have to reach it even now.
 */
static noinline struct hwtw_slot *hwtw_find_held(const struct hwtw_wheel *w, u64 id)
{
	struct hwtw_slot *slot;

	if (hwtw_id_index(id) >> HWTW_SLOT_BITS >= w->nr_pages ||
	    (id & (BIT(HWTW_SLOT_BITS) - 1)) >= HWTW_PAGE_SLOTS)
		return NULL;
	slot = hwtw_claim_slot(w, hwtw_id_index(id));
	if (!slot || (slot->id ^ HWTW_ID_HIDDEN) != id || slot->state == HWTW_SLOT_FREE)
		return NULL;
	return slot->interval_ns || slot->state == HWTW_SLOT_REARMED ? slot : NULL;
}

static struct hwtw_page *hwtw_slot_page(const struct hwtw_slot *slot)
{
	return (struct hwtw_page *)((unsigned long)slot & ~(HWTW_PAGE_BYTES - 1UL));
}

static void hwtw_page_free(struct hwtw_wheel *w, struct hwtw_page *page)
{
	u64 *entry = hwtw_dir_entry(w, page->nr);
	u32 gen = 0;
	int i;

	for (i = 0; i < HWTW_PAGE_SLOTS; i++)
		gen = max_t(u32, gen, page->slot[i].id >> HWTW_GEN_SHIFT);
	if (!page->worn) {
		list_del(&page->node);
		w->free_slots -= HWTW_PAGE_SLOTS;
	}
	/* A worn page's number is never used again. */
	*entry = HWTW_ENTRY_FREE(w->free_page, gen);
	if (!page->worn)
		w->free_page = page->nr;
	w->pages--;
	kfree(page);
}

/* The last timer of a page is gone: let the page go, unless slots get few. */
static noinline void hwtw_page_empty(struct hwtw_wheel *w, struct hwtw_page *page)
{
	if (page->worn || w->free_slots >= HWTW_PAGE_SLOTS + HWTW_SLOTS_KEEP)
		hwtw_page_free(w, page);
	else
		list_move_tail(&page->node, &w->partial);
}

/* There is one: hwtw_wheel_need() saw to it. */
static struct hwtw_slot *hwtw_slot_alloc(struct hwtw_wheel *w)
{
	struct hwtw_page *page = list_first_entry(&w->partial, struct hwtw_page, node);
	struct hwtw_slot *slot = &page->slot[page->free_first];

	slot->id ^= HWTW_ID_HIDDEN;
	page->free_first = slot->next_free;
	w->free_slots--;
	if (++page->used == HWTW_PAGE_SLOTS)
		list_del(&page->node);
	return slot;
}

/* A slot has spent its generations: take no more from its page. */
static noinline void hwtw_page_wear(struct hwtw_wheel *w, struct hwtw_page *page)
{
	if (page->worn)
		return;
	page->worn = true;
	if (page->used < HWTW_PAGE_SLOTS) {
		list_del(&page->node);
		w->free_slots -= HWTW_PAGE_SLOTS - page->used;
	}
}

/* The slot at @place of @page, whose id is hidden. */
static __always_inline void hwtw_slot_free(struct hwtw_wheel *w, struct hwtw_slot *slot, u8 place)
{
	struct hwtw_page *page = hwtw_slot_page(slot);

	slot->state = HWTW_SLOT_FREE;
	slot->seq = 0;
	if (unlikely(slot->id >> HWTW_GEN_SHIFT == HWTW_GEN_MAX))
		hwtw_page_wear(w, page);
	slot->id += 1ULL << HWTW_GEN_SHIFT;

	if (likely(page->used < HWTW_PAGE_SLOTS)) {
		page->slot[page->free_last].next_free = place;
	} else {
		page->free_first = place;
		/* In front, with the fuller ones, so that others get empty. */
		if (!page->worn)
			list_add(&page->node, &w->partial);
	}
	page->free_last = place;
	page->used--;
	if (likely(!page->worn))
		w->free_slots++;
	if (unlikely(!page->used))
		hwtw_page_empty(w, page);
}

/*
 * Logs
 */

/* The chunk of a claim. A position behind a claim may be behind its chunk. */
static struct hwtw_chunk *hwtw_chunk_of(const u64 *claim)
{
	return (struct hwtw_chunk *)((unsigned long)claim & ~(HWTW_CHUNK_BYTES - 1UL));
}

/* Behind the last claim of a chunk. */
static u64 *hwtw_chunk_last(struct hwtw_chunk *chunk)
{
	return chunk->claim + HWTW_CHUNK_CLAIMS;
}

/* Behind the last claim of some chunk, or NULL. */
static bool hwtw_chunk_end(const u64 *pos)
{
	return !((unsigned long)pos & (HWTW_CHUNK_BYTES - 1));
}

static bool hwtw_log_empty(const struct hwtw_log *log)
{
	return log->head == log->tail;
}

static struct hwtw_chunk *hwtw_chunk_get(struct hwtw_wheel *w)
{
	struct hwtw_chunk *chunk = w->pool;

	w->pool = chunk->link;
	w->pool_chunks--;
	return chunk;
}

static void hwtw_chunk_put(struct hwtw_wheel *w, struct hwtw_chunk *chunk)
{
	chunk->link = w->pool;
	w->pool = chunk;
	w->pool_chunks++;
}

static noinline u64 *hwtw_log_extend(struct hwtw_wheel *w, struct hwtw_log *log)
{
	struct hwtw_chunk *chunk = hwtw_chunk_get(w);

	if (log->tail)
		hwtw_chunk_of(log->tail - 1)->link = chunk;
	else
		log->head = chunk->claim;
	return chunk->claim;
}

static __always_inline void hwtw_log_append(struct hwtw_wheel *w, struct hwtw_log *log, u64 claim)
{
	u64 *pos = log->tail;

	if (unlikely(hwtw_chunk_end(pos)))
		pos = hwtw_log_extend(w, log);
	*pos++ = claim;
	log->tail = pos;
	w->claims++;
}

static void hwtw_log_prepend(struct hwtw_wheel *w, struct hwtw_log *log, u64 claim)
{
	u64 *pos = log->head;

	if (!pos || pos == hwtw_chunk_of(pos)->claim) {
		struct hwtw_chunk *chunk = hwtw_chunk_get(w);

		if (pos)
			chunk->link = hwtw_chunk_of(pos);
		pos = hwtw_chunk_last(chunk);
		if (!log->tail)
			log->tail = pos;
	}
	*--pos = claim;
	log->head = pos;
	w->claims++;
}

/* The chunk that a sweep writes to was read from, to its end or not. */
static void hwtw_sweep_overtaken(struct hwtw_wheel *w, struct hwtw_log *log, bool whole)
{
	if (whole) {
		/* What follows is the next chunk to read, if there is one. */
		w->sweep.write = log->head ? hwtw_chunk_of(log->head) : NULL;
		w->sweep.read = w->sweep.write;
		w->sweep.out = log->head;
	} else if (w->sweep.out < log->head) {
		w->sweep.out = log->head;
	}
}

/* Drop @nr claims, all of them in the first chunk. */
static void hwtw_log_consume(struct hwtw_wheel *w, struct hwtw_log *log, unsigned int nr)
{
	struct hwtw_chunk *chunk = hwtw_chunk_of(log->head);

	bool whole = true;

	log->head += nr;
	w->claims -= nr;
	if (hwtw_log_empty(log)) {
		log->head = NULL;
		log->tail = NULL;
	} else if (hwtw_chunk_end(log->head)) {
		log->head = chunk->link->claim;
	} else {
		whole = false;
	}
	if (log == &w->log[w->sweep.log] && w->sweep.write == chunk)
		hwtw_sweep_overtaken(w, log, whole);
	if (whole)
		hwtw_chunk_put(w, chunk);
}

/* Look up the slots of the first claims, up to @max and to the end of the chunk. */
static unsigned int hwtw_log_gather(const struct hwtw_wheel *w, const struct hwtw_log *log,
				    struct hwtw_slot **slot, unsigned int max)
{
	struct hwtw_chunk *chunk = hwtw_chunk_of(log->head);
	const u64 *end = hwtw_chunk_last(chunk);
	unsigned int nr, i;

	if (hwtw_chunk_of(log->tail - 1) == chunk)
		end = log->tail;
	nr = min_t(unsigned int, end - log->head, max);
	for (i = 0; i < nr; i++) {
		slot[i] = hwtw_claim_slot(w, log->head[i]);
		prefetchw(slot[i]);
	}
	return nr;
}

/*
 * Buckets
 */

static unsigned int hwtw_level_shift(unsigned int level)
{
	return level * HWTW_LEVEL_BITS;
}

/* The level of a bit of a tick. A table is cheaper than a division. */
#define HWTW_LEVEL(n)	[(n) * HWTW_LEVEL_BITS ... (n) * HWTW_LEVEL_BITS + HWTW_LEVEL_BITS - 1] = (n)
static const u8 hwtw_level_of[HWTW_LEVELS * HWTW_LEVEL_BITS] = {
	HWTW_LEVEL(0), HWTW_LEVEL(1), HWTW_LEVEL(2), HWTW_LEVEL(3),
	HWTW_LEVEL(4), HWTW_LEVEL(5), HWTW_LEVEL(6), HWTW_LEVEL(7),
};

/* Append a claim to the bucket that @tick has relative to @base, an earlier tick. */
static __always_inline void hwtw_place(struct hwtw_wheel *w, u64 base, u64 tick, u64 claim)
{
	unsigned int level = hwtw_level_of[fls64(tick ^ base) - 1];
	unsigned int shift = hwtw_level_shift(level);
	unsigned int bucket = (tick >> shift) & HWTW_LEVEL_MASK;
	u64 start = tick >> shift << shift;

	hwtw_log_append(w, &w->log[level * HWTW_LEVEL_SIZE + bucket], claim);
	w->bitmap[level] |= BIT_ULL(bucket);
	if (start < w->next)
		w->next = start;
}

static void hwtw_bucket_clear(struct hwtw_wheel *w, u32 bucket)
{
	w->bitmap[bucket / HWTW_LEVEL_SIZE] &= ~BIT_ULL(bucket % HWTW_LEVEL_SIZE);
}

/* The next bucket with claims and its first tick, or HWTW_LOGS and U64_MAX. */
static u32 hwtw_bucket_next(const struct hwtw_wheel *w, u64 *start)
{
	unsigned int level;

	for (level = 0; level < HWTW_LEVELS; level++) {
		unsigned int shift = hwtw_level_shift(level);
		u64 window = ~0ULL << (shift + HWTW_LEVEL_BITS);
		unsigned int bucket;

		if (!w->bitmap[level])
			continue;
		bucket = __ffs64(w->bitmap[level]);
		*start = (w->clk & window) | (u64)bucket << shift;
		return level * HWTW_LEVEL_SIZE + bucket;
	}
	*start = U64_MAX;
	return HWTW_LOGS;
}

static u32 hwtw_seq_next(struct hwtw_wheel *w)
{
	if (unlikely(++w->seq == HWTW_SEQ_NONE))
		w->seq = 1;
	return w->seq;
}

/*
 * Late timers
 */

static bool hwtw_late_less(struct rb_node *a, const struct rb_node *b)
{
	const struct hwtw_late *x = rb_entry(a, struct hwtw_late, node);
	const struct hwtw_late *y = rb_entry(b, struct hwtw_late, node);

	if (x->tick != y->tick)
		return x->tick < y->tick;
	if (x->seq != y->seq)
		return x->seq < y->seq;
	return x->index < y->index;
}

static struct hwtw_late *hwtw_late_first(const struct hwtw_wheel *w)
{
	return rb_entry_safe(rb_first_cached(&w->late), struct hwtw_late, node);
}

static struct hwtw_late *hwtw_late_get(struct hwtw_wheel *w)
{
	struct hwtw_late *late = w->late_spare;

	w->late_spare = late->link;
	w->late_spares--;
	return late;
}

static void hwtw_late_put(struct hwtw_wheel *w, struct hwtw_late *late)
{
	late->link = w->late_spare;
	w->late_spare = late;
	w->late_spares++;
}

static void hwtw_late_add(struct hwtw_wheel *w, struct hwtw_slot *slot, u64 tick)
{
	struct hwtw_late *late = hwtw_late_get(w);

	late->tick = tick;
	late->seq = slot->seq;
	late->index = hwtw_id_index(slot->id);
	rb_add_cached(&late->node, &w->late, hwtw_late_less);
	slot->state = HWTW_SLOT_LATE;
	w->nr_late++;
}

static void hwtw_late_del(struct hwtw_wheel *w, struct hwtw_late *late)
{
	rb_erase_cached(&late->node, &w->late);
	hwtw_late_put(w, late);
	w->nr_late--;
}

static noinline struct hwtw_late *hwtw_late_find(const struct hwtw_wheel *w,
					const struct hwtw_slot *slot)
{
	struct hwtw_late key = {
		.tick	= hwtw_tick(w, slot->expires_ns),
		.seq	= slot->seq,
		.index	= hwtw_id_index(slot->id),
	};
	struct rb_node *node = w->late.rb_root.rb_node;

	while (node) {
		struct hwtw_late *late = rb_entry(node, struct hwtw_late, node);

		if (late->index == key.index)
			return late;
		node = hwtw_late_less(&key.node, node) ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/*
 * Timers
 */

/* The last tick that is known to have passed. The clock stays behind during a drain. */
static u64 hwtw_passed(const struct hwtw_wheel *w)
{
	return w->drain == HWTW_LOGS ? w->clk : w->drain_tick;
}

/* The caller's @now may be older than what the wheel knows. */
static bool hwtw_due(const struct hwtw_wheel *w, u64 now, u64 expires, u64 tick)
{
	return expires <= now || tick <= hwtw_passed(w);
}

/* It would come before the newest unread timer. */
static bool hwtw_due_late(const struct hwtw_wheel *w, u64 tick)
{
	return (w->unread || w->delivering) && tick < w->unread_tick;
}

/*
 * Whether a timer that is due can be inserted now. Not while older ones wait
 * for the wheel to run: they come first. Not without a node, if it is late.
 */
static bool hwtw_due_ready(struct hwtw_wheel *w, u64 now, u64 tick)
{
	if (w->next <= now >> w->shift || w->drain != HWTW_LOGS)
		return false;
	if (hwtw_due_late(w, tick) && !w->late_spare) {
		w->late_wanted = true;
		return false;
	}
	return true;
}

static __always_inline void hwtw_insert(struct hwtw_wheel *w, struct hwtw_slot *slot, u64 tick,
					bool due)
{
	u64 claim;

	slot->seq = hwtw_seq_next(w);
	claim = HWTW_CLAIM(hwtw_id_index(slot->id), slot->seq);
	if (unlikely(due)) {
		if (hwtw_due_late(w, tick)) {
			hwtw_late_add(w, slot, tick);
		} else {
			slot->state = HWTW_SLOT_EXPIRED;
			w->unread_tick = tick;
			hwtw_log_append(w, &w->log[HWTW_UNREAD], claim);
		}
		w->unread++;
		return;
	}
	slot->state = HWTW_SLOT_PENDING;
	w->pending++;
	hwtw_place(w, w->clk, tick, claim);
}

/* Leave the state it is in. Returns that state, as userspace knows it. */
static __always_inline int hwtw_detach(struct hwtw_wheel *w, struct hwtw_slot *slot)
{
	if (likely(slot->state == HWTW_SLOT_PENDING)) {
		w->pending--;
		slot->seq = 0;
		return HWTW_PENDING;
	}
	if (slot->state == HWTW_SLOT_LATE)
		hwtw_late_del(w, hwtw_late_find(w, slot));
	w->unread--;
	slot->seq = 0;
	return HWTW_EXPIRED;
}

/* Arm a new timer. There is a slot and a chunk. Returns its state, or -EAGAIN. */
static int hwtw_arm(struct hwtw_wheel *w, u64 now, u64 expires, u64 interval, u64 user_data,
		    u64 *id)
{
	u64 tick = hwtw_tick(w, expires);
	bool due = hwtw_due(w, now, expires, tick);
	struct hwtw_slot *slot;

	if (unlikely(due) && !hwtw_due_ready(w, now, tick))
		return -EAGAIN;
	slot = hwtw_slot_alloc(w);
	slot->expires_ns = expires;
	slot->user_data = user_data;
	slot->interval_ns = interval;
	*id = slot->id;
	hwtw_insert(w, slot, tick, due);
	return due ? HWTW_EXPIRED : HWTW_PENDING;
}

/* Give a timer a new time. There is a chunk. Returns the state it was in, or -E*. */
static int hwtw_rearm(struct hwtw_wheel *w, u64 now, u64 id, u64 expires, u64 interval)
{
	struct hwtw_slot *slot = hwtw_find(w, id);
	bool due;
	u64 tick;
	int state;

	if (unlikely(!slot)) {
		slot = hwtw_find_held(w, id);
		if (!slot)
			return -ENOENT;
		/* It begins anew when the reader lets it go. */
		slot->expires_ns = expires;
		slot->interval_ns = interval;
		slot->state = HWTW_SLOT_REARMED;
		return HWTW_EXPIRED;
	}
	if (likely(slot->state == HWTW_SLOT_PENDING && expires >= slot->expires_ns &&
		   expires > now)) {
		/* Its claim comes up in time and finds out. */
		slot->expires_ns = expires;
		slot->interval_ns = interval;
		return HWTW_PENDING;
	}
	tick = hwtw_tick(w, expires);
	due = hwtw_due(w, now, expires, tick);
	if (unlikely(due) && !hwtw_due_ready(w, now, tick))
		return -EAGAIN;
	state = hwtw_detach(w, slot);
	slot->expires_ns = expires;
	slot->interval_ns = interval;
	hwtw_insert(w, slot, tick, due);
	return state;
}

/* Remove a timer. Returns the state it was in, or -ENOENT. */
static int hwtw_cancel(struct hwtw_wheel *w, u64 id)
{
	struct hwtw_slot *slot = hwtw_find(w, id);
	int state;

	if (unlikely(!slot)) {
		/* Its record was there first, and is the last one. */
		slot = hwtw_find_held(w, id);
		if (slot) {
			slot->interval_ns = 0;
			slot->state = HWTW_SLOT_DELIVERING;
		}
		return -ENOENT;
	}
	state = hwtw_detach(w, slot);
	slot->id ^= HWTW_ID_HIDDEN;
	hwtw_slot_free(w, slot, id & (BIT(HWTW_SLOT_BITS) - 1));
	return state;
}

/* Fill in what is known about a timer. Returns the state it is in, or -ENOENT. */
static int hwtw_query(const struct hwtw_wheel *w, u64 id, struct hwtw_timer *timer)
{
	const struct hwtw_slot *slot = hwtw_find(w, id) ?: hwtw_find_held(w, id);

	if (!slot)
		return -ENOENT;
	timer->user_data = slot->user_data;
	timer->time_ns = slot->expires_ns;
	timer->interval_ns = slot->interval_ns;
	timer->flags = HWTW_TIMER_ABS;
	return slot->state == HWTW_SLOT_PENDING || slot->state == HWTW_SLOT_REARMED ?
	       HWTW_PENDING : HWTW_EXPIRED;
}

/**
 * hwtw_op_check - check the arguments of an operation
 * @op: the operation
 * @shift: a tick is 2^shift ns
 *
 * Return: 0 or -EINVAL.
 */
int hwtw_op_check(const struct hwtw_op *op, u32 shift)
{
	const struct hwtw_timer *timer = &op->timer;

	if (op->opcode < HWTW_OP_ARM || op->opcode > HWTW_OP_QUERY ||
	    timer->flags & ~HWTW_TIMER_ABS)
		return -EINVAL;
	if (op->opcode > HWTW_OP_REARM)
		return 0;
	if (timer->time_ns > HWTW_TIME_MAX_NS)
		return -EINVAL;
	if (timer->interval_ns &&
	    (timer->interval_ns >> shift == 0 || timer->interval_ns > HWTW_TIME_MAX_NS))
		return -EINVAL;
	return 0;
}

/* One operation. Returns a state or -E*; -EAGAIN: nothing was changed. */
static int hwtw_op(struct hwtw_wheel *w, u64 now, struct hwtw_op *op)
{
	struct hwtw_timer *timer = &op->timer;
	u64 expires = timer->time_ns;

	if (hwtw_op_check(op, w->shift))
		return -EINVAL;
	if (op->opcode == HWTW_OP_CANCEL)
		return hwtw_cancel(w, timer->id);
	if (op->opcode == HWTW_OP_QUERY)
		return hwtw_query(w, timer->id, timer);
	if (!(timer->flags & HWTW_TIMER_ABS)) {
		expires += now;
		if (unlikely(expires > HWTW_TIME_MAX_NS))
			expires = HWTW_TIME_MAX_NS;
	}
	if (op->opcode == HWTW_OP_ARM)
		return hwtw_arm(w, now, expires, timer->interval_ns, timer->user_data,
				&timer->id);
	return hwtw_rearm(w, now, timer->id, expires, timer->interval_ns);
}

/**
 * hwtw_wheel_ops - carry out operations
 * @w: the wheel, to which hwtw_wheel_need() said that nothing is missing
 * @now: present time in ns; may be older than that of other calls
 * @credit: timers that may be armed; those cancelled are added
 * @op: operations, which get their results as userspace sees them
 * @nr: how many
 *
 * Stops at an operation for another wheel, at one that arms without credit,
 * and at one for which the wheel has to run up to @now first, or needs memory.
 *
 * Return: the number of operations carried out.
 */
unsigned int hwtw_wheel_ops(struct hwtw_wheel *w, u64 now, unsigned int *credit,
			    struct hwtw_op *op, unsigned int nr)
{
	u64 tick = now >> w->shift;
	unsigned int i;

	/* Nothing lies between the clock and now: placement is shorter from there. */
	if (tick > w->clk && tick < w->next)
		w->clk = tick;
	for (i = 0; i < nr; i++, op++) {
		int state;

		if (op->opcode == HWTW_OP_ARM && !*credit)
			break;
		state = hwtw_op(w, now, op);
		if (unlikely(state < 0)) {
			if (state == -EAGAIN ||
			    (state == -ENOENT && hwtw_id_wheel(op->timer.id) != w->nr))
				break;
			op->result = state;
			continue;
		}
		op->result = 0;
		op->timer.state = state;
		if (op->opcode == HWTW_OP_ARM)
			--*credit;
		else if (op->opcode == HWTW_OP_CANCEL)
			++*credit;
	}
	return i;
}

/*
 * Expiry
 */

/* Drain up to @budget claims of the bucket that begins with @start. */
static unsigned int hwtw_drain(struct hwtw_wheel *w, struct hwtw_log *log, u64 start,
			       unsigned int budget)
{
	struct hwtw_slot *slot[HWTW_CHUNK_CLAIMS];
	unsigned int nr = hwtw_log_gather(w, log, slot, min(budget, HWTW_CHUNK_CLAIMS));
	const u64 *claim = log->head;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		u64 tick;

		if (!hwtw_claim_valid(slot[i], claim[i])) {
			w->dropped++;
			continue;
		}
		tick = hwtw_tick(w, slot[i]->expires_ns);
		if (tick > start) {
			hwtw_place(w, start, tick, claim[i]);
			w->cascaded++;
			continue;
		}
		slot[i]->state = HWTW_SLOT_EXPIRED;
		w->pending--;
		w->unread++;
		w->unread_tick = start;
		hwtw_log_append(w, &w->log[HWTW_UNREAD], claim[i]);
	}
	hwtw_log_consume(w, log, nr);
	return nr;
}

/**
 * hwtw_wheel_run - expire what is due
 * @w: the wheel
 * @now: present time in ns
 * @budget: most claims to look at
 *
 * Return: true if the budget was spent and there may be more to do.
 */
bool hwtw_wheel_run(struct hwtw_wheel *w, u64 now, unsigned int budget)
{
	now >>= w->shift;
	for (;;) {
		struct hwtw_log *log;

		if (w->drain == HWTW_LOGS) {
			u32 bucket = hwtw_bucket_next(w, &w->next);

			if (w->next > now)
				break;
			w->drain = bucket;
			w->drain_tick = w->next;
		}
		log = &w->log[w->drain];
		while (!hwtw_log_empty(log)) {
			if (!budget)
				return true;
			budget -= hwtw_drain(w, log, w->drain_tick, budget);
		}
		hwtw_bucket_clear(w, w->drain);
		w->clk = w->drain_tick;
		w->drain = HWTW_LOGS;
	}
	if (now > w->clk)
		w->clk = now;
	return false;
}

/*
 * Delivery
 */

/**
 * hwtw_wheel_unread_tick - deadline tick of the first unread timer
 * @w: the wheel
 *
 * Return: the tick or an earlier one, U64_MAX if there is none.
 */
u64 hwtw_wheel_unread_tick(struct hwtw_wheel *w)
{
	struct hwtw_late *late = hwtw_late_first(w);
	struct hwtw_log *log = &w->log[HWTW_UNREAD];
	unsigned int budget = HWTW_TAKE_BUDGET;

	if (!w->unread)
		return U64_MAX;
	while (!hwtw_log_empty(log)) {
		struct hwtw_slot *slot = hwtw_claim_slot(w, *log->head);

		if (hwtw_claim_valid(slot, *log->head)) {
			u64 tick = hwtw_tick(w, slot->expires_ns);

			return late ? min(tick, late->tick) : tick;
		}
		if (!budget--)
			return 0;
		w->dropped++;
		hwtw_log_consume(w, log, 1);
	}
	return late ? late->tick : U64_MAX;
}

static void hwtw_take_one(struct hwtw_wheel *w, struct hwtw_slot *slot, u64 now,
			  struct hwtw_event *ev)
{
	u64 overruns = 0;

	if (slot->interval_ns && now > slot->expires_ns)
		overruns = div64_u64(now - slot->expires_ns, slot->interval_ns);
	ev->user_data = slot->user_data;
	ev->id = slot->id;
	ev->expires_ns = slot->expires_ns;
	ev->overruns = min_t(u64, overruns, U32_MAX);
	ev->flags = 0;
	slot->state = HWTW_SLOT_DELIVERING;
	slot->id ^= HWTW_ID_HIDDEN;
	w->unread--;
	w->delivering++;
}

/**
 * hwtw_wheel_take - take records of expired timers for delivery
 * @w: the wheel
 * @now: present time in ns
 * @last_tick: take none with a later deadline tick
 * @ev: where they go
 * @max: room in @ev
 *
 * Takes the oldest ones. Each has to be handed to hwtw_wheel_commit() or to
 * hwtw_wheel_put_back() afterwards; until then its timer can't be found.
 *
 * Return: the number of records. It may be 0 although there are some, if there
 * were many stale claims before them.
 */
unsigned int hwtw_wheel_take(struct hwtw_wheel *w, u64 now, u64 last_tick,
			     struct hwtw_event *ev, unsigned int max)
{
	struct hwtw_log *log = &w->log[HWTW_UNREAD];
	struct hwtw_slot *slot[HWTW_CHUNK_CLAIMS];
	unsigned int budget = HWTW_TAKE_BUDGET;
	unsigned int taken = 0;

	while (taken < max && w->unread && budget) {
		struct hwtw_late *late = hwtw_late_first(w);
		u64 late_tick = late ? late->tick : U64_MAX;
		const u64 *claim = log->head;
		unsigned int nr = 0, i;
		u64 tick = U64_MAX;

		if (!hwtw_log_empty(log))
			nr = hwtw_log_gather(w, log, slot,
					     min3(max - taken, budget, HWTW_CHUNK_CLAIMS));
		for (i = 0; i < nr; i++) {
			if (!hwtw_claim_valid(slot[i], claim[i])) {
				w->dropped++;
				continue;
			}
			tick = hwtw_tick(w, slot[i]->expires_ns);
			if (tick > late_tick || tick > last_tick)
				break;
			hwtw_take_one(w, slot[i], now, &ev[taken++]);
		}
		if (i) {
			hwtw_log_consume(w, log, i);
			budget -= i;
		} else if (late_tick <= last_tick && late) {
			struct hwtw_slot *first = hwtw_claim_slot(w, late->index);

			hwtw_take_one(w, first, now, &ev[taken++]);
			hwtw_late_del(w, late);
			budget--;
		} else {
			break;
		}
	}
	return taken;
}

/* The deadline so many periods later. */
static u64 hwtw_next_period(const struct hwtw_slot *slot, u64 periods)
{
	u64 left = HWTW_TIME_MAX_NS - slot->expires_ns;

	if (div64_u64(left, slot->interval_ns) < periods)
		return HWTW_TIME_MAX_NS;
	return slot->expires_ns + periods * slot->interval_ns;
}

/* A timer that was held by a reader is pending again. */
static void hwtw_go_on(struct hwtw_wheel *w, struct hwtw_slot *slot)
{
	u64 tick = max(hwtw_tick(w, slot->expires_ns), hwtw_passed(w) + 1);

	slot->id ^= HWTW_ID_HIDDEN;
	slot->seq = hwtw_seq_next(w);
	slot->state = HWTW_SLOT_PENDING;
	w->pending++;
	hwtw_place(w, w->clk, tick, HWTW_CLAIM(hwtw_id_index(slot->id), slot->seq));
}

/**
 * hwtw_wheel_commit - records were delivered
 * @w: the wheel
 * @ev: records of hwtw_wheel_take(), as they were
 * @nr: their number
 *
 * One-shot timers are gone. Periodic ones go on with the first deadline that
 * the record did not tell of. If that one has passed too, meanwhile, they
 * expire with the next tick.
 *
 * Return: the number of timers that are gone.
 */
unsigned int hwtw_wheel_commit(struct hwtw_wheel *w, const struct hwtw_event *ev,
			       unsigned int nr)
{
	unsigned int gone = 0, i;

	for (i = 0; i < nr; i++) {
		u32 index = hwtw_id_index(ev[i].id);
		struct hwtw_slot *slot = hwtw_claim_slot(w, index);

		w->delivering--;
		if (likely(!slot->interval_ns && slot->state == HWTW_SLOT_DELIVERING)) {
			hwtw_slot_free(w, slot, index & (BIT(HWTW_SLOT_BITS) - 1));
			gone++;
			continue;
		}
		if (slot->state == HWTW_SLOT_DELIVERING)
			slot->expires_ns = hwtw_next_period(slot, ev[i].overruns + 1ULL);
		hwtw_go_on(w, slot);
	}
	return gone;
}

/**
 * hwtw_wheel_put_back - records could not be delivered
 * @w: the wheel
 * @ev: records of hwtw_wheel_take(), as they were
 * @nr: their number
 *
 * They are unread as before, and the first to be taken. Those of timers that
 * were re-armed meanwhile are withdrawn.
 */
void hwtw_wheel_put_back(struct hwtw_wheel *w, const struct hwtw_event *ev, unsigned int nr)
{
	while (nr--) {
		u32 index = hwtw_id_index(ev[nr].id);
		struct hwtw_slot *slot = hwtw_claim_slot(w, index);

		w->delivering--;
		if (unlikely(slot->state == HWTW_SLOT_REARMED)) {
			hwtw_go_on(w, slot);
			continue;
		}
		slot->id ^= HWTW_ID_HIDDEN;
		w->unread++;
		slot->state = HWTW_SLOT_EXPIRED;
		slot->seq = hwtw_seq_next(w);
		hwtw_log_prepend(w, &w->log[HWTW_UNREAD], HWTW_CLAIM(index, slot->seq));
	}
}

/*
 * Stale claims
 */

/* Claims that are valid. */
static u32 hwtw_valid(const struct hwtw_wheel *w)
{
	return w->pending + w->unread - w->nr_late;
}

static void hwtw_sweep_next_log(struct hwtw_wheel *w)
{
	w->sweep.read = NULL;
	if (++w->sweep.log == HWTW_LOGS)
		w->sweep.active = false;
}

/*
 * Read one chunk of the log being swept and move its valid claims to the front
 * of the log. What is left open behind them, up to the next chunk to read, is
 * filled with claims of nobody, so that others can read the log at any time.
 */
static void hwtw_sweep_chunk(struct hwtw_wheel *w)
{
	struct hwtw_log *log = &w->log[w->sweep.log];
	struct hwtw_chunk *chunk;
	u64 *in, *end, *out;
	bool last;

	if (hwtw_log_empty(log) || w->sweep.log == w->drain) {
		hwtw_sweep_next_log(w);
		return;
	}
	if (!w->sweep.read) {
		w->sweep.read = hwtw_chunk_of(log->head);
		w->sweep.write = w->sweep.read;
		w->sweep.out = log->head;
	}
	chunk = w->sweep.read;
	out = w->sweep.out;
	in = out;
	if (w->sweep.write != chunk) {
		in = chunk->claim;
		w->claims -= hwtw_chunk_last(w->sweep.write) - out;
	}
	last = hwtw_chunk_of(log->tail - 1) == chunk;
	end = last ? log->tail : hwtw_chunk_last(chunk);

	w->claims -= end - in;
	/* Without a valid claim there is no need to look. */
	for (; in < end && hwtw_valid(w); in++) {
		struct hwtw_slot *slot = hwtw_claim_slot(w, *in);

		if (!hwtw_claim_valid(slot, *in))
			continue;
		/* Its number would be given again before long. */
		if (unlikely(w->seq - slot->seq > HWTW_SWEEP_SEQS / 2))
			slot->seq = hwtw_seq_next(w);
		if (w->sweep.write != chunk && hwtw_chunk_end(out)) {
			w->sweep.write = chunk;
			out = chunk->claim;
		}
		*out++ = HWTW_CLAIM((u32)*in, slot->seq);
		w->claims++;
	}
	w->sweep.out = out;

	if (w->sweep.write != chunk) {
		w->sweep.write->link = chunk->link;
		hwtw_chunk_put(w, chunk);
	}
	if (!last) {
		w->sweep.read = w->sweep.write->link;
		for (; out < hwtw_chunk_last(w->sweep.write); out++) {
			*out = HWTW_CLAIM_NONE;
			w->claims++;
		}
		return;
	}
	/* A tail is never at the start of a chunk, and only the first chunk can be let go. */
	if (out == w->sweep.write->claim && w->sweep.write != hwtw_chunk_of(log->head)) {
		*out++ = HWTW_CLAIM_NONE;
		w->claims++;
	}
	log->tail = out;
	if (hwtw_log_empty(log)) {
		log->head = NULL;
		log->tail = NULL;
		hwtw_chunk_put(w, w->sweep.write);
		if (w->sweep.log != HWTW_UNREAD)
			hwtw_bucket_clear(w, w->sweep.log);
	}
	hwtw_sweep_next_log(w);
}

/*
 * Memory
 */

/*
 * Chunks that can hold the claims there are and so many more, however they
 * spread over the logs. Records that are put back become claims, those of late
 * timers too.
 */
static u32 hwtw_chunks_for(const struct hwtw_wheel *w, u32 more)
{
	u32 claims = w->claims + w->nr_late + w->delivering + more;

	return claims / HWTW_CHUNK_CLAIMS + min_t(u32, claims, HWTW_LOGS) + HWTW_CHUNK_SLACK;
}

static noinline void hwtw_sweep(struct hwtw_wheel *w, unsigned int steps)
{
	if (!w->sweep.active) {
		w->sweep.active = true;
		w->sweep.log = 0;
		w->sweep.read = NULL;
		w->sweep.seq = w->seq;
	}
	while (w->sweep.active && steps--)
		hwtw_sweep_chunk(w);
}

static noinline void hwtw_trim(struct hwtw_wheel *w, u32 keep)
{
	unsigned int trim = HWTW_TRIM_CHUNKS;

	while (w->chunks > keep && w->pool && trim--) {
		kfree(hwtw_chunk_get(w));
		w->chunks--;
	}
	while (w->late_spares > HWTW_LATE_KEEP && trim--)
		kfree(hwtw_late_get(w));
}

/**
 * hwtw_wheel_tidy - keep memory in bounds
 * @w: the wheel
 * @arms: operations since the last call that may have added claims
 * @others: other operations since the last call
 *
 * Looks for stale claims if there are too many, in proportion to the
 * operations, and gives back what is not needed any more.
 */
void hwtw_wheel_tidy(struct hwtw_wheel *w, unsigned int arms, unsigned int others)
{
	u32 valid = hwtw_valid(w);
	u32 keep;

	if (unlikely(w->sweep.active ||
		     w->claims - valid > HWTW_STALE_RATIO * valid + HWTW_STALE_MIN ||
		     w->seq - w->sweep.seq > HWTW_SWEEP_SEQS))
		hwtw_sweep(w, 1 + arms / HWTW_SWEEP_ARMS + others / HWTW_SWEEP_OPS);
	keep = hwtw_chunks_for(w, 0) + HWTW_CHUNK_KEEP;
	if (unlikely(w->chunks > keep || w->late_spares > HWTW_LATE_KEEP))
		hwtw_trim(w, keep);
}

/**
 * hwtw_wheel_need - what is missing for some operations
 * @w: the wheel
 * @arms: timers that may be armed
 * @rearms: timers that may be re-armed
 * @need: what is missing
 *
 * Return: 1 if something is missing, 0 if nothing is, -ENOSPC if no page can
 * be added any more.
 */
int hwtw_wheel_need(const struct hwtw_wheel *w, unsigned int arms, unsigned int rearms,
		    struct hwtw_need *need)
{
	u32 want = hwtw_chunks_for(w, arms + rearms);

	if (likely(w->chunks >= want && w->free_slots >= arms && !w->late_wanted))
		return 0;
	memset(need, 0, sizeof(*need));
	if (w->chunks < want)
		need->chunks = want - w->chunks + HWTW_CHUNK_ASK;
	if (w->late_wanted)
		need->late = HWTW_LATE_ASK;
	if (w->free_slots < arms) {
		need->pages = DIV_ROUND_UP(arms - w->free_slots, HWTW_PAGE_SLOTS);
		if (w->free_page == HWTW_ENTRY_END) {
			unsigned int part = hwtw_dir_part(w->nr_pages);

			if (w->nr_pages == HWTW_PAGES_MAX)
				return -ENOSPC;
			if (!w->dir[part])
				need->dir = BIT(part + HWTW_DIR_FIRST);
		}
	}
	return 1;
}

/**
 * hwtw_wheel_give_chunk - add a chunk to the pool
 * @w: the wheel
 * @chunk: memory of kmalloc()
 */
void hwtw_wheel_give_chunk(struct hwtw_wheel *w, struct hwtw_chunk *chunk)
{
	hwtw_chunk_put(w, chunk);
	w->chunks++;
}

/**
 * hwtw_wheel_give_late - add a node for a late timer
 * @w: the wheel
 * @late: memory of kmalloc()
 */
void hwtw_wheel_give_late(struct hwtw_wheel *w, struct hwtw_late *late)
{
	hwtw_late_put(w, late);
	w->late_wanted = false;
}

/**
 * hwtw_wheel_give_dir - add a part of the page directory
 * @w: the wheel
 * @part: memory of kvcalloc()
 * @entries: &struct hwtw_need.dir
 *
 * Return: false if it is not needed any more.
 */
bool hwtw_wheel_give_dir(struct hwtw_wheel *w, u64 *part, unsigned int entries)
{
	unsigned int nr = __fls(entries) - HWTW_DIR_FIRST;

	if (w->dir[nr])
		return false;
	w->dir[nr] = part;
	return true;
}

/**
 * hwtw_wheel_give_page - add a page of slots
 * @w: the wheel
 * @page: memory of kmalloc(), aligned to its size
 *
 * Return: false if there is no room for it in the directory.
 */
bool hwtw_wheel_give_page(struct hwtw_wheel *w, struct hwtw_page *page)
{
	u32 nr = w->free_page;
	u64 *entry, id;
	u32 gen = 1;
	int i;

	if (nr != HWTW_ENTRY_END) {
		entry = hwtw_dir_entry(w, nr);
		gen = HWTW_ENTRY_GEN(*entry);
		w->free_page = HWTW_ENTRY_NEXT(*entry);
	} else {
		nr = w->nr_pages;
		if (nr == HWTW_PAGES_MAX || !w->dir[hwtw_dir_part(nr)])
			return false;
		entry = hwtw_dir_entry(w, nr);
		w->nr_pages++;
	}
	*entry = (unsigned long)page;
	page->nr = nr;
	page->used = 0;
	page->free_first = 0;
	page->free_last = HWTW_PAGE_SLOTS - 1;
	page->worn = false;
	id = (u64)gen << HWTW_GEN_SHIFT | (u64)w->nr << HWTW_INDEX_BITS |
	     (u64)nr << HWTW_SLOT_BITS;
	for (i = 0; i < HWTW_PAGE_SLOTS; i++) {
		page->slot[i].id = (id + i) ^ HWTW_ID_HIDDEN;
		page->slot[i].seq = 0;
		page->slot[i].state = HWTW_SLOT_FREE;
		page->slot[i].next_free = i + 1;
	}
	list_add_tail(&page->node, &w->partial);
	w->free_slots += HWTW_PAGE_SLOTS;
	w->pages++;
	return true;
}

/**
 * hwtw_wheel_init - make an empty wheel
 * @w: zeroed memory
 * @nr: its number, below HWTW_WHEELS_MAX
 * @shift: a tick is 2^shift ns, HWTW_TICK_SHIFT_MIN to HWTW_TICK_SHIFT_MAX
 * @now: present time in ns
 */
void hwtw_wheel_init(struct hwtw_wheel *w, u32 nr, u32 shift, u64 now)
{
	w->nr = nr;
	w->shift = shift;
	w->clk = now >> shift;
	w->next = U64_MAX;
	w->drain = HWTW_LOGS;
	w->free_page = HWTW_ENTRY_END;
	w->late = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&w->partial);
}

/**
 * hwtw_wheel_destroy - free all memory of a wheel
 * @w: the wheel
 * @budget: most pieces of memory to free
 *
 * Return: true if it has to be called again.
 */
bool hwtw_wheel_destroy(struct hwtw_wheel *w, unsigned int budget)
{
	struct hwtw_late *late;
	unsigned int i;

	for (; w->nr_pages; w->nr_pages--) {
		if (!budget--)
			return true;
		kfree(hwtw_page(w, w->nr_pages - 1));
	}
	for (i = 0; i < HWTW_LOGS; i++) {
		struct hwtw_log *log = &w->log[i];

		while (!hwtw_log_empty(log)) {
			struct hwtw_chunk *chunk = hwtw_chunk_of(log->head);

			if (!budget--)
				return true;
			if (chunk == hwtw_chunk_of(log->tail - 1))
				log->head = log->tail;
			else
				log->head = chunk->link->claim;
			kfree(chunk);
		}
	}
	while (w->pool) {
		if (!budget--)
			return true;
		kfree(hwtw_chunk_get(w));
	}
	while ((late = hwtw_late_first(w))) {
		if (!budget--)
			return true;
		hwtw_late_del(w, late);
	}
	while (w->late_spare) {
		if (!budget--)
			return true;
		kfree(hwtw_late_get(w));
	}
	for (i = 0; i < HWTW_DIR_PARTS; i++)
		kvfree(w->dir[i]);
	return false;
}
