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
 * - A bucket is a log of claims, only ever appended, in chunks of 15. A claim
 *   {tick, slot, seq} is valid while its seq is the slot's. Otherwise it is
 *   stale and is dropped when its tick has come.
 *
 * Arm writes a slot and appends a claim. Cancel changes the slot's seq and
 * touches no bucket. Re-arm to a later time stores the new deadline and
 * nothing else: the claim finds out when its tick has come, and moves. Re-arm
 * to an earlier time appends a new claim and leaves the old one stale. A
 * cascade streams claims from log to log and does not look at slots at all. To
 * expire a bucket all slots of a chunk are looked up before the first of them
 * is needed, so that cache misses overlap where a linked list would wait for
 * one after the other.
 *
 * Geometry
 * --------
 * A tick is 2^shift ns. Level n has buckets of 64^n ticks, 64 for each of its
 * windows of 64^(n+1) ticks:
 *
 *   level  bucket (ticks)   with ticks of 2^20 ns    a window
 *     0    1                1.05 ms                  67.1 ms
 *     1    64               67.1 ms                  4.29 s
 *     2    64^2             4.29 s                   4 min 35 s
 *     3    64^3             4 min 35 s               4 h 53 min
 *     4    64^4             4 h 53 min               13.0 days
 *     5    64^5             13.0 days                2.28 years
 *     6    64^6             2.28 years               146 years
 *     7    64^7             146 years                all there is
 *
 * A deadline is rounded up to a tick: tick = ceil(ns / 2^shift). A timer goes
 * to the lowest level n on which its tick lies before end[n]: in the window
 * that the clock is in, i.e. tick and clock differ in no bit above the lower
 * 6 (n + 1), or in the next one, if that is open already (see below). Its
 * bucket is given by the 7 bits of the tick from bit 6 n on: 6 for the place
 * in the window and one that tells the windows apart. No deadline up to
 * 2^63 - 1 ns needs more than 48 bits of ticks, so that the last level never
 * wraps and nothing is clamped (it ends behind its 33rd bucket). A deadline
 * that is not after the clock never gets that far: it is due.
 *
 * All buckets lie ahead of the clock, and those of a level before those of the
 * next level. So the lowest bit of the lowest level that has one is the next
 * bucket, and the clock jumps there.
 *
 * Cascade
 * -------
 * Window k of level n - 1 is what bucket k of level n holds. Before the clock
 * can enter the window the bucket is drained into it, from its head to its
 * tail, and then the window is open: new timers go there. A drain may stop at
 * any claim and go on later. Until it is through, new timers go to the tail of
 * the bucket: no timer overtakes another one of its tick.
 *
 * A bucket on a higher level can hold millions of claims, and to drain it just
 * when its time comes would make the first of them late. So it is drained in
 * advance, once the clock is in the last quarter of the window before; that is
 * what the second row of buckets is for.
 *
 * Error
 * -----
 * A timer expires when the clock reaches ceil(deadline): never early, less
 * than one tick late, whatever its level, since claims keep their exact tick.
 * At a deadline on a tick boundary there is no error.
 *
 * Order
 * -----
 * Expired timers wait in a log, oldest tick first and in arming order within a
 * tick. A timer that was due already when it was armed, earlier than the
 * newest one in the log, waits in a tree beside it, from which a take merges.
 *
 * Memory
 * ------
 * Slots and chunks are had and given back by the page: 32.3 bytes for the slot
 * and 18.2 for the claim of a timer. Expiry allocates nothing and can't fail:
 * chunks move between the logs and a pool, and
 *
 *   chunks >= claims / 15 + min(claims, logs) + HWTW_CHUNK_SLACK
 *
 * holds before and after each operation, where claims counts the stale ones
 * and the late timers, which may be periodic. A log wastes at most one chunk at
 * its end. The slack is for the partly read chunks at the front: of a bucket
 * that expires, of one on each level that is drained in advance, and of the
 * unread log; and some for a sweep. Where the clock may be set back, the logs
 * count twice. Operations that may append ask for chunks first, see
 * hwtw_wheel_need() in hwtw_memory.c. Stale claims are swept out, some with
 * each operation, once there are twice as many as valid ones, and long before
 * the numbers of claims come round again; a valid claim gets a new number then.
 *
 * Clock set back
 * --------------
 * The clock of a wheel only moves forward, but for one case. A wheel whose time
 * was set back has to tell what comes before its clock from what is due. So all
 * buckets are strung together to one log, the clock is set, and the log is
 * drained into the buckets where its claims belong now, in pieces, before
 * anything else is done with the wheel. What has expired stays expired.
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

#include "hwtw_trace.h"
#include "hwtw_wheel.h"

/* Free slots that are not given back. */
#define HWTW_SLOTS_KEEP		128
/* With fewer timers than this a bucket is not worth an interrupt of its own to drain it early. */
#define HWTW_EARLY_MIN		1024
/* Stale claims that one call may skip. */
#define HWTW_TAKE_BUDGET	1024
/* Slots that one call may look at. */
#define HWTW_LIST_BUDGET	1024

static_assert(sizeof(struct hwtw_slot) == 32);
static_assert(sizeof(struct hwtw_page) == HWTW_PAGE_BYTES);
static_assert(offsetof(struct hwtw_page, key) == offsetof(struct hwtw_slot, key));
static_assert(offsetof(struct hwtw_page, seq) == offsetof(struct hwtw_slot, seq));
static_assert(offsetof(struct hwtw_page, slot) == sizeof(struct hwtw_slot));
static_assert(sizeof(struct hwtw_chunk) == HWTW_CHUNK_BYTES);
static_assert(sizeof(struct hwtw_block) == HWTW_PAGE_BYTES);
static_assert(HWTW_PAGE_SLOTS == HWTW_PLACE_MASK);
static_assert(HWTW_GEN_SHIFT + HWTW_GEN_BITS == 64);

struct hwtw_slot hwtw_nobody = { .key = HWTW_KEY_NOBODY };

/* The first tick of 2^shift ns that is not before a time. */
static u64 hwtw_round_up(u64 ns, u32 shift)
{
	return (ns + (1ULL << shift) - 1) >> shift;
}

static u64 hwtw_tick(const struct hwtw_wheel *w, u64 ns)
{
	return hwtw_round_up(ns, w->shift);
}

/*
 * Slots
 */

static enum hwtw_state hwtw_slot_state(const struct hwtw_slot *slot)
{
	return HWTW_KEY_STATE(slot->key);
}

static void hwtw_slot_set(struct hwtw_slot *slot, enum hwtw_state state)
{
	slot->key = HWTW_KEY(HWTW_KEY_GEN(slot->key), state);
}

/* The slot that an id leads to, whoever has it now, or one of nobody. Any id will do. */
static __always_inline struct hwtw_slot *hwtw_id_slot(const struct hwtw_wheel *w, u64 id)
{
	u64 entry;
	/* Too large if it is another wheel's. */
	u32 nr = ((id ^ w->id) >> HWTW_PLACE_BITS) & (BIT(HWTW_WHEEL_BITS + HWTW_PAGE_BITS) - 1);

	if (unlikely(nr >= w->nr_pages))
		return &hwtw_nobody;
	entry = *hwtw_dir_entry(w, array_index_nospec(nr, w->nr_pages));
	if (unlikely(entry & 1))
		return &hwtw_nobody;
	return hwtw_page_slot(hwtw_entry_page(entry), id & HWTW_PLACE_MASK);
}

/* Whether a slot has the pending timer with an id: then its key is the generation. */
static __always_inline bool hwtw_slot_pending(const struct hwtw_slot *slot, u64 id)
{
	return likely(slot->key == id >> HWTW_GEN_SHIFT);
}

/* The slot of a live timer, or NULL. */
static noinline struct hwtw_slot *hwtw_find(const struct hwtw_wheel *w, u64 id)
{
	struct hwtw_slot *slot = hwtw_id_slot(w, id);

	if (HWTW_KEY_GEN(slot->key) != id >> HWTW_GEN_SHIFT ||
	    hwtw_slot_state(slot) == HWTW_SLOT_FREE)
		return NULL;
	return slot;
}

static struct hwtw_page *hwtw_slot_page(const struct hwtw_slot *slot)
{
	return (struct hwtw_page *)((unsigned long)slot & ~(HWTW_PAGE_BYTES - 1UL));
}

static u32 hwtw_slot_place(const struct hwtw_slot *slot)
{
	return ((unsigned long)slot & (HWTW_PAGE_BYTES - 1)) / sizeof(*slot);
}

static u32 hwtw_slot_index(const struct hwtw_slot *slot)
{
	return hwtw_slot_page(slot)->index + hwtw_slot_place(slot);
}

static u64 hwtw_id(const struct hwtw_wheel *w, u32 gen, u32 index)
{
	return (u64)gen << HWTW_GEN_SHIFT | w->id | index;
}

static u64 hwtw_slot_id(const struct hwtw_wheel *w, const struct hwtw_slot *slot, u32 index)
{
	return hwtw_id(w, HWTW_KEY_GEN(slot->key), index);
}

static void hwtw_page_drop(struct hwtw_wheel *w, struct hwtw_page *page)
{
	u32 nr = page->index >> HWTW_PLACE_BITS;
	u64 *entry = hwtw_dir_entry(w, nr);
	u32 gen = 0;
	int i;

	for (i = 0; i < HWTW_PAGE_SLOTS; i++)
		gen = max(gen, page->slot[i].key);
	if (page->free)
		list_del(&page->node);
	w->free_slots -= page->free;
	*entry = HWTW_ENTRY_FREE(w->free_page, HWTW_KEY_GEN(gen));
	/* With a slot that is spent the number is, too. */
	if (page->slots == HWTW_PAGE_SLOTS)
		w->free_page = nr;
	w->pages--;
	hwtw_page_free(page);
}

/* The last timer of a page is gone: let the page go, unless slots get few. */
static noinline void hwtw_page_empty(struct hwtw_wheel *w, struct hwtw_page *page)
{
	if (page->slots < HWTW_PAGE_SLOTS || w->free_slots >= HWTW_PAGE_SLOTS + HWTW_SLOTS_KEEP)
		hwtw_page_drop(w, page);
	else
		list_move_tail(&page->node, &w->partial);
}

/* There is one: hwtw_wheel_need() saw to it. The caller counts it. */
static __always_inline struct hwtw_slot *hwtw_slot_alloc(struct hwtw_wheel *w, u32 *index)
{
	struct hwtw_page *page = list_first_entry(&w->partial, struct hwtw_page, node);
	u32 place = page->free_first;
	struct hwtw_slot *slot = hwtw_page_slot(page, place);

	*index = page->index + place;
	page->free_first = slot->next_free;
	if (unlikely(!--page->free))
		list_del(&page->node);
	return slot;
}

/* A slot has spent its generations: it is not used again. */
static noinline void hwtw_slot_retire(struct hwtw_wheel *w, struct hwtw_slot *slot)
{
	struct hwtw_page *page = hwtw_slot_page(slot);

	slot->key = HWTW_KEY(0, HWTW_SLOT_FREE);
	slot->seq = 0;
	if (page->free == --page->slots)
		hwtw_page_empty(w, page);
}

/* Let the slot of a timer with a generation go. */
static __always_inline void hwtw_slot_free(struct hwtw_wheel *w, struct hwtw_slot *slot, u32 gen,
					   u8 place)
{
	struct hwtw_page *page = hwtw_slot_page(slot);
	u8 free = page->free;

	if (unlikely(gen == HWTW_GEN_MAX)) {
		hwtw_slot_retire(w, slot);
		return;
	}
	slot->key = HWTW_KEY(gen + 1, HWTW_SLOT_FREE);
	slot->seq = 0;

	w->free_slots++;
	if (likely(free)) {
		hwtw_page_slot(page, page->free_last)->next_free = place;
	} else {
		page->free_first = place;
		/* In front, with the fuller ones, so that others get empty. */
		list_add(&page->node, &w->partial);
	}
	page->free_last = place;
	page->free = ++free;
	if (unlikely(free == page->slots))
		hwtw_page_empty(w, page);
}

/*
 * Logs
 */

/* Make room at the end of a log. Returns true if it was empty. */
static noinline bool hwtw_log_extend(struct hwtw_wheel *w, struct hwtw_log *log)
{
	struct hwtw_chunk *chunk = hwtw_chunk_get(w);
	bool empty = !log->tail;

	if (empty)
		log->head = chunk->claim;
	else
		hwtw_chunk_of(log->tail - 1)->link = chunk;
	log->tail = chunk->claim;
	return empty;
}

/* Append a claim, which the caller counts. */
static __always_inline void hwtw_log_append(struct hwtw_wheel *w, struct hwtw_log *log,
					    struct hwtw_claim claim)
{
	if (unlikely(hwtw_chunk_end(log->tail)))
		hwtw_log_extend(w, log);
	*log->tail++ = claim;
}

/* Look up the slots of the first claims, and have them fetched. */
static unsigned int hwtw_log_gather(const struct hwtw_wheel *w, const struct hwtw_log *log,
				    struct hwtw_slot **slot, unsigned int max)
{
	unsigned int nr = hwtw_log_first(log, max);
	unsigned int i;

	for (i = 0; i < nr; i++) {
		slot[i] = hwtw_slot(w, log->head[i].index);
		prefetchw(slot[i]);
	}
	return nr;
}

/*
 * Buckets
 */

/* The bucket of a tick on a level. */
static u32 hwtw_bucket(unsigned int level, u64 tick)
{
	return level * HWTW_ROW + ((tick >> (level * HWTW_LEVEL_BITS)) & (HWTW_ROW - 1));
}

/* The tick from which on a bucket may be drained in advance. */
static u64 hwtw_early(unsigned int level, u64 start)
{
	return start - (1ULL << (level * HWTW_LEVEL_BITS - 2));
}

/* Make room at the end of a bucket. */
static noinline void hwtw_bucket_extend(struct hwtw_wheel *w, struct hwtw_log *log, u64 tick)
{
	u32 bucket = log - w->log;
	unsigned int shift = bucket / HWTW_ROW * HWTW_LEVEL_BITS;
	u64 start = tick >> shift << shift;

	if (!hwtw_log_extend(w, log))
		return;
	*hwtw_bucket_word(w, bucket) |= hwtw_bucket_bit(bucket);
	w->next = min(w->next, start);
	if (shift && w->pending >= HWTW_EARLY_MIN)
		start = max(hwtw_early(shift / HWTW_LEVEL_BITS, start), w->clk + 1);
	w->wake = min(w->wake, start);
}

/* Append a claim, which the caller counts, to the bucket that it belongs to in a row. */
static __always_inline void hwtw_row_append(struct hwtw_wheel *w, struct hwtw_log *row,
					    unsigned int shift, struct hwtw_claim claim)
{
	struct hwtw_log *log = &row[(claim.tick >> shift) & (HWTW_ROW - 1)];

	if (unlikely(hwtw_chunk_end(log->tail)))
		hwtw_bucket_extend(w, log, claim.tick);
	*log->tail++ = claim;
}

/* The same, to the row that it belongs to. It is not due. */
static __always_inline void hwtw_place(struct hwtw_wheel *w, struct hwtw_claim claim)
{
	struct hwtw_log *row = w->log;
	const u64 *end = w->end;
	unsigned int shift = 0;

	while (claim.tick >= *end) {
		end++;
		row += HWTW_ROW;
		shift += HWTW_LEVEL_BITS;
	}
	hwtw_row_append(w, row, shift, claim);
}

/*
 * The first tick of the first bucket with claims, and its level. Or of the
 * bucket that has to be drained before it, though it may have none any more,
 * since the window is not open. U64_MAX if there is nothing.
 */
static u64 hwtw_bucket_next(const struct hwtw_wheel *w, unsigned int *level)
{
	unsigned int n;

	for (n = 0; n < HWTW_LEVELS; n++) {
		unsigned int shift = n * HWTW_LEVEL_BITS;
		u64 window = w->clk >> (shift + HWTW_LEVEL_BITS);
		u64 bits = w->bitmap[n][window % 2];
		u64 start = window << (shift + HWTW_LEVEL_BITS);

		*level = n;
		if (!bits) {
			bits = w->bitmap[n][++window % 2];
			if (!bits)
				continue;
			start = window << (shift + HWTW_LEVEL_BITS);
			if (w->end[n] <= start) {
				++*level;
				return start;
			}
		}
		return start | (u64)__ffs64(bits) << shift;
	}
	return U64_MAX;
}

/* The window of a level that begins with @start is open. */
static void hwtw_open(struct hwtw_wheel *w, unsigned int level, u64 start)
{
	w->end[level] = start + (1ULL << ((level + 1) * HWTW_LEVEL_BITS));
}

/* Move the clock to a tick, before which all is done. */
static void hwtw_clock(struct hwtw_wheel *w, u64 tick)
{
	unsigned int level;

	if (tick <= w->clk)
		return;
	w->clk = tick;
	for (level = 0; w->end[level] <= tick; level++) {
		unsigned int shift = (level + 1) * HWTW_LEVEL_BITS;

		hwtw_open(w, level, tick >> shift << shift);
	}
}

/* Set the clock of a wheel without claims. */
static void hwtw_clock_reset(struct hwtw_wheel *w, u64 tick)
{
	unsigned int level;

	w->clk = 0;
	w->next = U64_MAX;
	w->wake = U64_MAX;
	w->end[HWTW_LEVELS - 1] = U64_MAX;
	for (level = 0; level < HWTW_LEVELS - 1; level++)
		hwtw_open(w, level, 0);
	hwtw_clock(w, tick);
}

/*
 * Late timers
 */

static bool hwtw_late_less(struct rb_node *a, const struct rb_node *b)
{
	const struct hwtw_claim *x = &rb_entry(a, struct hwtw_late, node)->claim;
	const struct hwtw_claim *y = &rb_entry(b, struct hwtw_late, node)->claim;

	if (x->tick != y->tick)
		return x->tick < y->tick;
	if (x->seq != y->seq)
		return x->seq < y->seq;
	return x->index < y->index;
}

static void hwtw_late_add(struct hwtw_wheel *w, struct hwtw_claim claim)
{
	struct hwtw_late *late = hwtw_late_get(w);

	late->claim = claim;
	rb_add_cached(&late->node, &w->late, hwtw_late_less);
	w->nr_late++;
}

static noinline struct hwtw_late *hwtw_late_find(const struct hwtw_wheel *w,
						 const struct hwtw_slot *slot)
{
	struct rb_node *node = w->late.rb_root.rb_node;
	struct hwtw_late key = {
		.claim.tick	= hwtw_tick(w, slot->expires_ns),
		.claim.seq	= slot->seq,
		.claim.index	= hwtw_slot_index(slot),
	};

	while (node) {
		struct hwtw_late *late = rb_entry(node, struct hwtw_late, node);

		if (late->claim.index == key.claim.index)
			return late;
		node = hwtw_late_less(&key.node, node) ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/*
 * Timers
 */

/* The caller's @now may be older than the clock. */
static bool hwtw_due(const struct hwtw_wheel *w, u64 now, u64 expires, u64 tick)
{
	return expires <= now || tick <= w->clk;
}

/* It would come before the newest unread timer. */
static bool hwtw_due_late(const struct hwtw_wheel *w, u64 tick)
{
	return w->unread && tick < w->unread_tick;
}

/*
 * Whether a timer that is due can be inserted now. Not while older ones wait
 * for the wheel to run: they come first. Not without a node, if it is late.
 */
static bool hwtw_due_ready(struct hwtw_wheel *w, u64 now, u64 tick)
{
	if (w->next <= now >> w->shift)
		return false;
	if (hwtw_due_late(w, tick) && !w->late_spare) {
		w->late_wanted = true;
		return false;
	}
	return true;
}

/* Insert a timer that is due. */
static noinline void hwtw_insert_due(struct hwtw_wheel *w, struct hwtw_slot *slot,
				     struct hwtw_claim claim)
{
	if (hwtw_due_late(w, claim.tick)) {
		hwtw_late_add(w, claim);
		hwtw_slot_set(slot, HWTW_SLOT_LATE);
	} else {
		hwtw_log_append(w, &w->log[HWTW_UNREAD], claim);
		w->claims++;
		hwtw_slot_set(slot, HWTW_SLOT_EXPIRED);
		w->unread_tick = claim.tick;
	}
	w->unread++;
	w->expired++;
	trace_hwtw_expire(w, hwtw_slot_id(w, slot, claim.index), slot->user_data,
			  slot->expires_ns);
}

static __always_inline void hwtw_insert(struct hwtw_wheel *w, struct hwtw_slot *slot, u32 index,
					u64 tick, bool due)
{
	struct hwtw_claim claim = { .tick = tick, .index = index, .seq = hwtw_seq_next(w) };

	slot->seq = claim.seq;
	if (unlikely(due)) {
		hwtw_insert_due(w, slot, claim);
		return;
	}
	hwtw_slot_set(slot, HWTW_SLOT_PENDING);
	w->pending++;
	w->claims++;
	hwtw_place(w, claim);
}

/* Leave the state it is in. */
static void hwtw_detach(struct hwtw_wheel *w, struct hwtw_slot *slot)
{
	enum hwtw_state state = hwtw_slot_state(slot);

	if (state == HWTW_SLOT_LATE)
		hwtw_late_del(w, hwtw_late_find(w, slot));
	if (state == HWTW_SLOT_PENDING) {
		w->pending--;
	} else {
		w->unread--;
		w->withdrawn++;
	}
	slot->seq = 0;
}

/*
 * What operations do to timers other than pending ones, and to those that are
 * due. They return a state as userspace knows it or -E*; -EAGAIN: nothing was
 * changed.
 */

/* Give a timer a new time. There is a chunk. Returns the state it was in. */
static noinline int hwtw_rearm(struct hwtw_wheel *w, u64 now, u64 id, u64 expires, u64 interval)
{
	struct hwtw_slot *slot = hwtw_find(w, id);
	u64 tick = hwtw_tick(w, expires);
	enum hwtw_state state;
	bool due;

	if (!slot)
		return -ENOENT;
	state = hwtw_slot_state(slot);
	due = hwtw_due(w, now, expires, tick);
	if (due && !hwtw_due_ready(w, now, tick))
		return -EAGAIN;
	hwtw_detach(w, slot);
	slot->expires_ns = expires;
	slot->interval_ns = interval;
	hwtw_insert(w, slot, hwtw_slot_index(slot), tick, due);
	w->rearmed++;
	return state == HWTW_SLOT_PENDING ? HWTW_PENDING : HWTW_EXPIRED;
}

/* Remove a timer. Returns the state it was in. */
static noinline int hwtw_cancel(struct hwtw_wheel *w, u64 id)
{
	struct hwtw_slot *slot = hwtw_find(w, id);
	enum hwtw_state state;

	if (!slot)
		return -ENOENT;
	state = hwtw_slot_state(slot);
	hwtw_detach(w, slot);
	hwtw_slot_free(w, slot, id >> HWTW_GEN_SHIFT, id & HWTW_PLACE_MASK);
	w->cancelled++;
	if (state == HWTW_SLOT_PENDING)
		return HWTW_PENDING;
	w->cancelled_unread++;
	return HWTW_EXPIRED;
}

/* Fill in what is known about a timer. Returns the state it is in. */
static int hwtw_describe(const struct hwtw_slot *slot, struct hwtw_timer *timer)
{
	timer->user_data = slot->user_data;
	timer->time_ns = slot->expires_ns;
	timer->interval_ns = slot->interval_ns;
	timer->flags = HWTW_TIMER_ABS;
	return hwtw_slot_state(slot) == HWTW_SLOT_PENDING ? HWTW_PENDING : HWTW_EXPIRED;
}

/* The same, of a timer with an id. Or returns -ENOENT. */
static noinline int hwtw_query(const struct hwtw_wheel *w, u64 id, struct hwtw_timer *timer)
{
	struct hwtw_slot *slot = hwtw_find(w, id);

	return slot ? hwtw_describe(slot, timer) : -ENOENT;
}

/*
 * Operations
 */

static bool hwtw_flags_bad(const struct hwtw_timer *timer)
{
	return timer->flags & ~HWTW_TIMER_ABS;
}

static bool hwtw_time_bad(const struct hwtw_timer *timer, u32 shift)
{
	if (timer->time_ns > HWTW_TIME_MAX_NS)
		return true;
	return timer->interval_ns &&
	       (timer->interval_ns >> shift == 0 || timer->interval_ns > HWTW_TIME_MAX_NS);
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
	if (op->opcode < HWTW_OP_ARM || op->opcode > HWTW_OP_QUERY || hwtw_flags_bad(&op->timer))
		return -EINVAL;
	if (op->opcode <= HWTW_OP_REARM && hwtw_time_bad(&op->timer, shift))
		return -EINVAL;
	return 0;
}

/* The deadline that an operation asks for. */
static u64 hwtw_op_expires(const struct hwtw_timer *timer, u64 now)
{
	u64 expires = timer->time_ns;

	if (timer->flags & HWTW_TIMER_ABS)
		return expires;
	return min(expires + now, HWTW_TIME_MAX_NS);
}

static bool hwtw_timer_bad(const struct hwtw_timer *timer, u32 shift)
{
	return unlikely(hwtw_flags_bad(timer) || hwtw_time_bad(timer, shift));
}

/*
 * Report how an operation ended, with a state or -E*. Returns false if it has
 * to be carried out later, or by another wheel.
 */
static __always_inline bool hwtw_op_end(const struct hwtw_wheel *w, struct hwtw_op *op, int state)
{
	if (unlikely(state < 0)) {
		if (state == -EAGAIN ||
		    (state == -ENOENT && hwtw_id_wheel(op->timer.id) != w->nr))
			return false;
		op->result = state;
		return true;
	}
	op->result = 0;
	op->timer.state = state;
	return true;
}

/* Make a timer, as an operation asks for. The caller counts it. */
static __always_inline struct hwtw_claim hwtw_arm(struct hwtw_wheel *w, struct hwtw_op *op,
						  u64 expires, u32 shift, u32 seq)
{
	struct hwtw_claim claim = { .tick = hwtw_round_up(expires, shift), .seq = seq };
	struct hwtw_slot *slot = hwtw_slot_alloc(w, &claim.index);
	struct hwtw_timer *timer = &op->timer;
	u32 gen = HWTW_KEY_GEN(slot->key);

	slot->expires_ns = expires;
	slot->user_data = timer->user_data;
	slot->interval_ns = timer->interval_ns;
	slot->key = HWTW_KEY(gen, HWTW_SLOT_PENDING);
	slot->seq = seq;
	timer->id = hwtw_id(w, gen, claim.index);
	timer->state = HWTW_PENDING;
	op->result = 0;
	return claim;
}

/* The same for one that is due. Returns false if it has to wait. */
static noinline bool hwtw_arm_due(struct hwtw_wheel *w, u64 now, struct hwtw_op *op, u64 expires,
				  u32 seq)
{
	struct hwtw_claim claim;

	if (!hwtw_due_ready(w, now, hwtw_tick(w, expires)))
		return false;
	claim = hwtw_arm(w, op, expires, w->shift, seq);
	hwtw_insert_due(w, hwtw_slot(w, claim.index), claim);
	op->timer.state = HWTW_EXPIRED;
	return true;
}

/*
 * Operations of one kind in a row. Returns how many were carried out. What
 * expires up to @past is due. These are inlined: into a function of its own for
 * each loop, and into the one for a single operation, which then has no loop.
 */

static __always_inline unsigned int hwtw_arm_some(struct hwtw_wheel *w, u64 now, u64 past,
						  unsigned int *credit, struct hwtw_op *op,
						  unsigned int nr)
{
	unsigned int i, due = 0, bad = 0, armed;
	const u32 shift = w->shift, seq = w->seq;

	/* The slots of timers cancelled just before may not be had, if they are spent. */
	nr = min3(nr, *credit, w->free_slots);
	for (i = 0; i < nr && op->opcode == HWTW_OP_ARM; i++, op++) {
		u64 expires;

		if (hwtw_timer_bad(&op->timer, shift)) {
			op->result = -EINVAL;
			bad++;
			continue;
		}
		expires = hwtw_op_expires(&op->timer, now);
		if (unlikely(expires <= past)) {
			if (!hwtw_arm_due(w, now, op, expires, seq + i + 1))
				break;
			due++;
			continue;
		}
		hwtw_place(w, hwtw_arm(w, op, expires, shift, seq + i + 1));
	}
	armed = i - bad;
	w->seq += i;
	w->armed += armed;
	w->free_slots -= armed;
	w->pending += armed - due;
	w->claims += armed - due;
	*credit -= armed;
	return i;
}

static __always_inline unsigned int hwtw_rearm_some(struct hwtw_wheel *w, u64 now, u64 past,
						    struct hwtw_op *op, unsigned int nr)
{
	const u32 shift = w->shift;
	unsigned int i;

	for (i = 0; i < nr && op->opcode == HWTW_OP_REARM; i++, op++) {
		struct hwtw_timer *timer = &op->timer;
		struct hwtw_slot *slot;
		u64 expires;

		if (hwtw_timer_bad(timer, shift)) {
			op->result = -EINVAL;
			continue;
		}
		expires = hwtw_op_expires(timer, now);
		slot = hwtw_id_slot(w, timer->id);
		if (unlikely(!hwtw_slot_pending(slot, timer->id) || expires <= past)) {
			int state = hwtw_rearm(w, now, timer->id, expires, timer->interval_ns);

			if (!hwtw_op_end(w, op, state))
				break;
			continue;
		}
		slot->interval_ns = timer->interval_ns;
		if (expires < slot->expires_ns) {
			struct hwtw_claim claim = {
				.tick	= hwtw_round_up(expires, shift),
				.index	= timer->id & HWTW_INDEX_MASK,
				.seq	= ++w->seq,
			};

			slot->seq = claim.seq;
			w->claims++;
			hwtw_place(w, claim);
		}
		/* Else its claim comes up in time and finds out. */
		slot->expires_ns = expires;
		w->rearmed++;
		op->result = 0;
		timer->state = HWTW_PENDING;
	}
	return i;
}

static __always_inline unsigned int hwtw_cancel_some(struct hwtw_wheel *w,
						     unsigned int *credit, struct hwtw_op *op,
						     unsigned int nr)
{
	unsigned int i, pending = 0, others = 0;

	for (i = 0; i < nr && op->opcode == HWTW_OP_CANCEL; i++, op++) {
		u64 id = op->timer.id;
		struct hwtw_slot *slot;
		int state;

		if (unlikely(hwtw_flags_bad(&op->timer))) {
			op->result = -EINVAL;
			continue;
		}
		slot = hwtw_id_slot(w, id);
		if (hwtw_slot_pending(slot, id)) {
			hwtw_slot_free(w, slot, id >> HWTW_GEN_SHIFT, id & HWTW_PLACE_MASK);
			op->result = 0;
			op->timer.state = HWTW_PENDING;
			pending++;
			continue;
		}
		state = hwtw_cancel(w, id);
		if (!hwtw_op_end(w, op, state))
			break;
		others += state > 0;
	}
	w->pending -= pending;
	w->cancelled += pending;
	*credit += pending + others;
	return i;
}

static noinline unsigned int hwtw_arm_ops(struct hwtw_wheel *w, u64 now, u64 past,
					  unsigned int *credit, struct hwtw_op *op,
					  unsigned int nr)
{
	return hwtw_arm_some(w, now, past, credit, op, nr);
}

static noinline unsigned int hwtw_rearm_ops(struct hwtw_wheel *w, u64 now, u64 past,
					    struct hwtw_op *op, unsigned int nr)
{
	return hwtw_rearm_some(w, now, past, op, nr);
}

static noinline unsigned int hwtw_cancel_ops(struct hwtw_wheel *w, unsigned int *credit,
					     struct hwtw_op *op, unsigned int nr)
{
	return hwtw_cancel_some(w, credit, op, nr);
}

/* An operation that is none of those. */
static unsigned int hwtw_other_op(struct hwtw_wheel *w, struct hwtw_op *op)
{
	int state = -EINVAL;

	if (op->opcode == HWTW_OP_QUERY && !hwtw_flags_bad(&op->timer))
		state = hwtw_query(w, op->timer.id, &op->timer);
	return hwtw_op_end(w, op, state);
}

static noinline void hwtw_trace_ops(const struct hwtw_wheel *w, u64 now,
				    const struct hwtw_op *op, unsigned int nr)
{
	for (; nr; nr--, op++) {
		const struct hwtw_timer *timer = &op->timer;

		if (op->result)
			continue;
		if (op->opcode == HWTW_OP_ARM)
			trace_hwtw_arm(w, timer, hwtw_op_expires(timer, now));
		else if (op->opcode == HWTW_OP_REARM)
			trace_hwtw_rearm(w, timer, hwtw_op_expires(timer, now));
		else if (op->opcode == HWTW_OP_CANCEL)
			trace_hwtw_cancel(w, timer);
	}
}

/* Before operations. Returns up to when what they ask for is due. */
static __always_inline u64 hwtw_ops_begin(struct hwtw_wheel *w, u64 now, unsigned int nr)
{
	u64 tick = now >> w->shift;

	/* Nothing lies between the clock and now: placement is shorter from there. */
	if (tick > w->clk && tick < w->next)
		hwtw_clock(w, tick);
	/* Each operation takes a number at most. */
	if (unlikely(w->seq >= HWTW_SEQ_NONE - 1 - nr))
		w->seq = 0;
	return max(now, w->clk << w->shift);
}

/* After operations, before which there were @pending timers. */
static __always_inline void hwtw_ops_end(struct hwtw_wheel *w, u64 now, const struct hwtw_op *op,
					 unsigned int nr, u32 pending)
{
	if (trace_hwtw_arm_enabled() || trace_hwtw_rearm_enabled() || trace_hwtw_cancel_enabled())
		hwtw_trace_ops(w, now, op, nr);
	/* They have become worth to be drained in advance: a run sees to it. */
	if (unlikely(pending < HWTW_EARLY_MIN && w->pending >= HWTW_EARLY_MIN))
		w->wake = min(w->wake, w->clk + 1);
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
 * and at one for which the wheel has to run up to @now first, or may need
 * memory.
 *
 * Return: the number of operations carried out.
 */
unsigned int hwtw_wheel_ops(struct hwtw_wheel *w, u64 now, unsigned int *credit,
			    struct hwtw_op *op, unsigned int nr)
{
	u64 past = hwtw_ops_begin(w, now, nr);
	unsigned int done = 0, some;
	u32 pending = w->pending;

	do {
		switch (op[done].opcode) {
		case HWTW_OP_ARM:
			some = hwtw_arm_ops(w, now, past, credit, op + done, nr - done);
			break;
		case HWTW_OP_REARM:
			some = hwtw_rearm_ops(w, now, past, op + done, nr - done);
			break;
		case HWTW_OP_CANCEL:
			some = hwtw_cancel_ops(w, credit, op + done, nr - done);
			break;
		default:
			some = hwtw_other_op(w, op + done);
			break;
		}
		done += some;
	} while (some && done < nr);
	hwtw_ops_end(w, now, op, done, pending);
	return done;
}

/**
 * hwtw_wheel_op - carry out one operation
 * @w: the wheel
 * @now: present time in ns
 * @credit: timers that may be armed
 * @op: the operation
 *
 * The same as hwtw_wheel_ops(), and shorter.
 *
 * Return: whether it was carried out, 0 or 1.
 */
unsigned int hwtw_wheel_op(struct hwtw_wheel *w, u64 now, unsigned int *credit,
			   struct hwtw_op *op)
{
	u32 pending = w->pending;
	unsigned int done;

	switch (op->opcode) {
	case HWTW_OP_ARM:
		done = hwtw_arm_some(w, now, hwtw_ops_begin(w, now, 1), credit, op, 1);
		break;
	case HWTW_OP_REARM:
		done = hwtw_rearm_some(w, now, hwtw_ops_begin(w, now, 1), op, 1);
		break;
	case HWTW_OP_CANCEL:
		done = hwtw_cancel_some(w, credit, op, 1);
		break;
	default:
		done = hwtw_other_op(w, op);
		break;
	}
	hwtw_ops_end(w, now, op, done, pending);
	return done;
}

/**
 * hwtw_wheel_list - report live timers, in the order of their slots
 * @w: the wheel
 * @index: where to begin, 0 for the first slot; where to go on, U32_MAX if there
 *	is no other slot
 * @timer: where they go
 * @max: room in @timer
 *
 * Return: the number of timers. It may be less than @max, even 0, if many slots
 * were free.
 */
unsigned int hwtw_wheel_list(const struct hwtw_wheel *w, u32 *index,
			     struct hwtw_timer *timer, unsigned int max)
{
	unsigned int budget = HWTW_LIST_BUDGET;
	u32 end = w->nr_pages << HWTW_PLACE_BITS;
	unsigned int nr = 0;
	u32 i = *index;

	for (; i < end && nr < max && budget; i++, budget--) {
		u32 page = array_index_nospec(i >> HWTW_PLACE_BITS, w->nr_pages);
		u64 entry = *hwtw_dir_entry(w, page);
		const struct hwtw_slot *slot;

		if (entry & 1) {
			i |= HWTW_PLACE_MASK;
			continue;
		}
		slot = hwtw_page_slot(hwtw_entry_page(entry), i & HWTW_PLACE_MASK);
		if (hwtw_slot_state(slot) == HWTW_SLOT_FREE)
			continue;
		timer[nr].state = hwtw_describe(slot, &timer[nr]);
		timer[nr].id = hwtw_slot_id(w, slot, i);
		nr++;
	}
	*index = i < end ? i : U32_MAX;
	return nr;
}

/**
 * hwtw_wheel_cancel - cancel timers that were just listed
 * @w: the wheel
 * @timer: of hwtw_wheel_list()
 * @nr: how many
 */
void hwtw_wheel_cancel(struct hwtw_wheel *w, const struct hwtw_timer *timer, unsigned int nr)
{
	for (; nr; nr--, timer++) {
		hwtw_cancel(w, timer->id);
		trace_hwtw_cancel(w, timer);
	}
}

/**
 * hwtw_wheel_stats - add the counters of a wheel to others
 * @w: the wheel
 * @now: present time in ns
 * @stats: what is added to; runs are not
 */
void hwtw_wheel_stats(const struct hwtw_wheel *w, u64 now, struct hwtw_stats *stats)
{
	unsigned int part;

	stats->armed += w->armed;
	stats->rearmed += w->rearmed;
	stats->cancelled += w->cancelled;
	stats->cancelled_pending += w->cancelled - w->cancelled_unread;
	stats->withdrawn += w->withdrawn;
	stats->expired += w->expired;
	stats->delivered += w->delivered;
	stats->completed += w->completed;
	stats->overruns += w->overruns;
	stats->pending += w->pending;
	stats->unread += w->unread;
	stats->cascaded += w->cascaded;
	stats->dropped += w->dropped;
	if (w->next <= now >> w->shift)
		stats->lag_ticks = max(stats->lag_ticks, (now >> w->shift) - w->next);
	stats->late_ticks = max(stats->late_ticks, w->late_ticks);
	stats->memory += w->chunks / HWTW_BLOCK_CHUNKS * sizeof(struct hwtw_block) +
			 w->pages * sizeof(struct hwtw_page) +
			 (w->nr_late + w->late_spares) * sizeof(struct hwtw_late);
	for (part = 0; part < HWTW_DIR_PARTS && w->dir[part]; part++)
		stats->memory += BIT(part + HWTW_DIR_FIRST) * sizeof(*w->dir[part]);
}

/*
 * Expiry
 */

/* The claims and slots of which some have expired. */
static noinline void hwtw_trace_expired(const struct hwtw_wheel *w, const struct hwtw_claim *claim,
					struct hwtw_slot *const *slot, unsigned int nr)
{
	for (; nr; nr--, claim++, slot++) {
		if (hwtw_claim_valid(*slot, claim))
			trace_hwtw_expire(w, hwtw_slot_id(w, *slot, claim->index),
					  (*slot)->user_data, (*slot)->expires_ns);
	}
}

/* Expire up to @budget claims of the bucket of a tick on level 0. Returns how many. */
static unsigned int hwtw_expire(struct hwtw_wheel *w, struct hwtw_log *log, u64 tick,
				unsigned int budget)
{
	struct hwtw_log *unread = &w->log[HWTW_UNREAD];
	struct hwtw_slot *slot[HWTW_CHUNK_CLAIMS];
	unsigned int nr = hwtw_log_gather(w, log, slot, budget);
	const struct hwtw_claim *claim = log->head;
	unsigned int expired = 0, moved = 0, i;
	u64 due = tick << w->shift;

	for (i = 0; i < nr; i++, claim++) {
		if (unlikely(!hwtw_claim_valid(slot[i], claim)))
			continue;
		if (unlikely(slot[i]->expires_ns > due)) {
			struct hwtw_claim later = *claim;

			/* It was re-armed. A sweep may have been where it goes. */
			later.tick = hwtw_tick(w, slot[i]->expires_ns);
			later.seq = hwtw_seq_next(w);
			slot[i]->seq = later.seq;
			hwtw_place(w, later);
			moved++;
			continue;
		}
		/* It was pending. */
		slot[i]->key |= HWTW_KEY(0, HWTW_SLOT_EXPIRED);
		hwtw_log_append(w, unread, *claim);
		expired++;
	}
	if (trace_hwtw_expire_enabled())
		hwtw_trace_expired(w, log->head, slot, nr);
	if (expired)
		w->unread_tick = tick;
	w->claims += expired + moved;
	w->cascaded += moved;
	w->dropped += nr - expired - moved;
	w->pending -= expired;
	w->unread += expired;
	w->expired += expired;
	hwtw_log_consume(w, log, nr);
	return nr;
}

/* Move up to @budget claims from a bucket of @level one level down. Returns how many. */
static unsigned int hwtw_cascade(struct hwtw_wheel *w, unsigned int level, struct hwtw_log *log,
				 unsigned int budget)
{
	unsigned int nr = hwtw_log_first(log, budget), shift = (level - 1) * HWTW_LEVEL_BITS;
	struct hwtw_log *row = &w->log[(level - 1) * HWTW_ROW];
	const struct hwtw_claim *claim = log->head, *end = claim + nr;

	trace_hwtw_cascade(w, level, claim->tick >> (level * HWTW_LEVEL_BITS) <<
			   (level * HWTW_LEVEL_BITS), nr);
	for (; claim < end; claim++)
		hwtw_row_append(w, row, shift, *claim);
	w->claims += nr;
	w->cascaded += nr;
	hwtw_log_consume(w, log, nr);
	return nr;
}

/*
 * Drain a bucket as far as the budget reaches. If it is through, returns true,
 * and the window that it filled is open, or the tick has passed.
 */
static bool hwtw_drain(struct hwtw_wheel *w, unsigned int level, u64 start, unsigned int *budget)
{
	u32 bucket = hwtw_bucket(level, start);
	struct hwtw_log *log = &w->log[bucket];

	while (!hwtw_log_empty(log)) {
		unsigned int max = min(*budget, HWTW_CHUNK_CLAIMS);

		if (!max)
			return false;
		*budget -= level ? hwtw_cascade(w, level, log, max) :
				   hwtw_expire(w, log, start, max);
	}
	hwtw_bucket_done(w, bucket);
	if (level)
		hwtw_open(w, level - 1, start);
	else
		hwtw_clock(w, start);
	return true;
}

/*
 * Drain the buckets that hold the windows next to the clock, if they are near.
 * From above: one holds the bucket that holds the other. Returns the tick at
 * which there is more to do, or U64_MAX.
 */
static u64 hwtw_prepare(struct hwtw_wheel *w, unsigned int budget)
{
	unsigned int level;
	u64 wake = U64_MAX;

	for (level = HWTW_LEVELS - 1; level; level--) {
		unsigned int shift = level * HWTW_LEVEL_BITS;
		u64 start = ((w->clk >> shift) + 1) << shift;

		if (w->end[level - 1] > start || w->end[level] <= start ||
		    hwtw_log_empty(&w->log[hwtw_bucket(level, start)]))
			continue;
		if (w->clk >= hwtw_early(level, start)) {
			if (!hwtw_drain(w, level, start, &budget))
				return w->clk;
		} else if (w->pending >= HWTW_EARLY_MIN) {
			wake = min(wake, hwtw_early(level, start));
		}
	}
	return wake;
}

/* Append all claims of a bucket to those that need a new place. */
static void hwtw_rewind_bucket(struct hwtw_wheel *w, u32 bucket)
{
	struct hwtw_claim nobody = { .seq = HWTW_SEQ_NONE };
	struct hwtw_log *to = &w->log[HWTW_REWIND];
	struct hwtw_log *from = &w->log[bucket];

	hwtw_bucket_done(w, bucket);
	if (hwtw_log_empty(from))
		return;
	if (to->tail) {
		/* A log has no gap but at its ends. */
		for (; !hwtw_chunk_end(to->tail); w->claims++)
			*to->tail++ = nobody;
		if (from->head != hwtw_chunk_of(from->head)->claim) {
			struct hwtw_claim *claim = hwtw_chunk_of(from->head)->claim;

			for (; claim < from->head; claim++, w->claims++)
				*claim = nobody;
		}
		hwtw_chunk_of(to->tail - 1)->link = hwtw_chunk_of(from->head);
	} else {
		to->head = from->head;
	}
	to->tail = from->tail;
	from->head = NULL;
	from->tail = NULL;
}

/* All buckets need a new place for their claims, since it is @tick now. */
static void hwtw_rewind_start(struct hwtw_wheel *w, u64 tick)
{
	u32 bucket;

	if (w->sweep.active) {
		/* It can't go on, and has to begin anew before long. */
		w->sweep.active = false;
		w->sweep.seq = w->seq - HWTW_SWEEP_SEQS - 1;
	}
	/* From below: what is on a level comes before what would follow it there. */
	for (bucket = 0; bucket < HWTW_BUCKETS; bucket++) {
		if (*hwtw_bucket_word(w, bucket) & hwtw_bucket_bit(bucket))
			hwtw_rewind_bucket(w, bucket);
	}
	hwtw_clock_reset(w, tick);
}

/* Give up to @max claims their new place. Returns how many. */
static unsigned int hwtw_rewind_some(struct hwtw_wheel *w, struct hwtw_log *log, unsigned int max)
{
	struct hwtw_slot *slot[HWTW_CHUNK_CLAIMS];
	unsigned int nr = hwtw_log_gather(w, log, slot, max);
	const struct hwtw_claim *claim = log->head;
	unsigned int i;

	for (i = 0; i < nr; i++, claim++) {
		struct hwtw_claim moved = *claim;

		if (!hwtw_claim_valid(slot[i], claim)) {
			w->dropped++;
			continue;
		}
		/* A period that had passed already is to come again. */
		moved.tick = min(moved.tick, hwtw_tick(w, slot[i]->expires_ns));
		moved.tick = max(moved.tick, w->clk + 1);
		hwtw_place(w, moved);
		w->claims++;
		w->cascaded++;
	}
	hwtw_log_consume(w, log, nr);
	return nr;
}

/**
 * hwtw_wheel_rewind - see whether the clock was set back, and follow it
 * @w: the wheel, with &hwtw_wheel.rewinds set
 * @now: present time in ns
 * @budget: most claims to look at
 *
 * All timers come after the old clock, so none is due meanwhile. If the clock is
 * set back once more, the wheel follows it the first time, and then again.
 *
 * Return: true if the budget was spent: call again. Until then, there can only
 * be looked at the wheel, records be taken, and the wheel be destroyed.
 */
bool hwtw_wheel_rewind(struct hwtw_wheel *w, u64 now, unsigned int budget)
{
	struct hwtw_log *log = &w->log[HWTW_REWIND];

	for (;;) {
		while (!hwtw_log_empty(log)) {
			if (!budget)
				return true;
			budget -= hwtw_rewind_some(w, log, min(budget, HWTW_CHUNK_CLAIMS));
		}
		if (now >> w->shift >= w->clk)
			return false;
		hwtw_rewind_start(w, now >> w->shift);
	}
}

/**
 * hwtw_wheel_run - expire what is due
 * @w: the wheel
 * @now: present time in ns
 * @budget: most claims to look at
 *
 * Return: true if the budget was spent and more may be due. If nothing is, but
 * &hwtw_wheel.wake has come again already, there is work for later to be done.
 */
bool hwtw_wheel_run(struct hwtw_wheel *w, u64 now, unsigned int budget)
{
	unsigned int level;
	u64 wake;

	now >>= w->shift;
	for (;;) {
		u64 expired = w->expired;
		bool through;

		w->next = hwtw_bucket_next(w, &level);
		w->wake = w->next;
		if (w->next > now)
			break;
		hwtw_clock(w, w->next - 1);
		through = hwtw_drain(w, level, w->next, &budget);
		if (w->expired != expired)
			w->late_ticks = max(w->late_ticks, now - w->next);
		if (!through)
			return true;
	}
	hwtw_clock(w, now);
	wake = hwtw_prepare(w, budget);
	w->next = hwtw_bucket_next(w, &level);
	w->wake = min(w->next, wake);
	/* A bucket further away, behind windows without any. */
	if (level && w->next != U64_MAX && w->pending >= HWTW_EARLY_MIN &&
	    hwtw_early(level, w->next) > w->clk)
		w->wake = min(w->wake, hwtw_early(level, w->next));
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
		if (hwtw_claim_valid(hwtw_slot(w, log->head->index), log->head))
			return late ? min(log->head->tick, late->claim.tick) : log->head->tick;
		if (!budget--)
			return 0;
		w->dropped++;
		hwtw_log_consume(w, log, 1);
	}
	return late ? late->claim.tick : U64_MAX;
}

static __always_inline void hwtw_record(const struct hwtw_wheel *w, const struct hwtw_slot *slot,
					u32 index, u64 now, struct hwtw_event *ev)
{
	u64 overruns = 0;

	if (unlikely(slot->interval_ns) && now > slot->expires_ns)
		overruns = min_t(u64, div64_u64(now - slot->expires_ns, slot->interval_ns),
				 U32_MAX);
	ev->user_data = slot->user_data;
	ev->id = hwtw_slot_id(w, slot, index);
	ev->expires_ns = slot->expires_ns;
	ev->overruns = overruns;
	ev->flags = 0;
}

/* Late timers up to a tick, which come before what the log has. */
static noinline void hwtw_peek_late(const struct hwtw_wheel *w, u64 now, u64 last_tick,
				    struct hwtw_batch *batch, unsigned int max)
{
	struct hwtw_late *late = hwtw_late_first(w);
	unsigned int nr = 0;

	while (late && late->claim.tick <= last_tick && nr < max) {
		batch->slot[nr] = hwtw_slot(w, late->claim.index);
		hwtw_record(w, batch->slot[nr], late->claim.index, now, &batch->ev[nr]);
		nr++;
		late = rb_entry_safe(rb_next(&late->node), struct hwtw_late, node);
	}
	batch->nr = nr;
	batch->claims = 0;
}

/**
 * hwtw_wheel_peek - look at the oldest records
 * @w: the wheel
 * @now: present time in ns
 * @last_tick: at none with a later deadline tick
 * @batch: where they go
 * @max: at no more than these
 *
 * Nothing changes but that stale claims are dropped.
 *
 * Return: the number of records. It may be 0 although there are some, if there
 * were many stale claims before them.
 */
unsigned int hwtw_wheel_peek(struct hwtw_wheel *w, u64 now, u64 last_tick,
			     struct hwtw_batch *batch, unsigned int max)
{
	struct hwtw_log *log = &w->log[HWTW_UNREAD];
	struct hwtw_late *late = hwtw_late_first(w);
	u64 last = late ? min(last_tick, late->claim.tick) : last_tick;
	unsigned int budget = HWTW_TAKE_BUDGET, nr = 0;

	batch->nr = 0;
	max = min(max, HWTW_CHUNK_CLAIMS);
	while (max && budget && !hwtw_log_empty(log)) {
		unsigned int claims = hwtw_log_gather(w, log, batch->slot, min(max, budget)), i;
		const struct hwtw_claim *claim = log->head;

		for (i = 0; i < claims; i++, claim++) {
			struct hwtw_slot *slot = batch->slot[i];

			if (unlikely(!hwtw_claim_valid(slot, claim)))
				continue;
			if (claim->tick > last)
				break;
			batch->slot[nr] = slot;
			hwtw_record(w, slot, claim->index, now, &batch->ev[nr++]);
		}
		if (likely(nr)) {
			batch->nr = nr;
			batch->claims = i;
			return nr;
		}
		if (i < claims) {
			last_tick = min(last_tick, claim->tick - 1);
			break;
		}
		w->dropped += i;
		budget -= i;
		hwtw_log_consume(w, log, i);
	}
	if (late && budget)
		hwtw_peek_late(w, now, last_tick, batch, max);
	return batch->nr;
}

/* The claims of the unread log up to that of a record. */
static noinline unsigned int hwtw_claims_to(const struct hwtw_wheel *w, unsigned int record)
{
	const struct hwtw_claim *head = w->log[HWTW_UNREAD].head, *claim = head;

	for (;; claim++) {
		if (hwtw_claim_valid(hwtw_slot(w, claim->index), claim) && !--record)
			return claim - head + 1;
	}
}

/* The deadline so many periods later. */
static u64 hwtw_next_period(const struct hwtw_slot *slot, u64 periods)
{
	u64 left = HWTW_TIME_MAX_NS - slot->expires_ns;

	if (div64_u64(left, slot->interval_ns) < periods)
		return HWTW_TIME_MAX_NS;
	return slot->expires_ns + periods * slot->interval_ns;
}

/**
 * hwtw_wheel_take - take records that were delivered
 * @w: the wheel
 * @batch: of hwtw_wheel_peek(); nothing was done with the wheel since
 * @nr: how many of its records, from the first on
 *
 * One-shot timers are gone. Periodic ones go on with the first deadline that
 * the record did not tell of. If that one has passed too, meanwhile, they
 * expire with the next tick.
 *
 * Return: the number of timers that are gone.
 */
unsigned int hwtw_wheel_take(struct hwtw_wheel *w, const struct hwtw_batch *batch,
			     unsigned int nr)
{
	unsigned int gone = 0, i;

	if (batch->claims && nr) {
		unsigned int claims = batch->claims;

		if (unlikely(nr < batch->nr))
			claims = hwtw_claims_to(w, nr);
		w->dropped += claims - nr;
		hwtw_log_consume(w, &w->log[HWTW_UNREAD], claims);
	}
	for (i = 0; i < nr; i++) {
		const struct hwtw_event *ev = &batch->ev[i];
		struct hwtw_slot *slot = batch->slot[i];

		if (!batch->claims)
			hwtw_late_del(w, hwtw_late_first(w));
		if (likely(!slot->interval_ns)) {
			hwtw_slot_free(w, slot, ev->id >> HWTW_GEN_SHIFT,
				       ev->id & HWTW_PLACE_MASK);
			gone++;
			continue;
		}
		w->overruns += ev->overruns;
		slot->expires_ns = hwtw_next_period(slot, ev->overruns + 1ULL);
		hwtw_insert(w, slot, ev->id & HWTW_INDEX_MASK,
			    max(hwtw_tick(w, slot->expires_ns), w->clk + 1), false);
	}
	w->unread -= nr;
	w->delivered += nr;
	w->completed += gone;
	return gone;
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
	w->id = (u64)nr << HWTW_INDEX_BITS;
	w->shift = shift;
	hwtw_clock_reset(w, now >> shift);
	w->free_page = HWTW_ENTRY_END;
	w->late = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&w->partial);
	INIT_LIST_HEAD(&w->blocks);
}
