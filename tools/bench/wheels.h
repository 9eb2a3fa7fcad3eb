/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two wheels to compare with, as a program would have them: timers of 32 bytes
 * on doubly linked lists.
 *
 * Both after G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels"
 * (SOSP 1987):
 *
 *  - hashed (scheme 6): one array of buckets; a timer has a count of rounds, and
 *    each time the wheel comes by, all timers of the bucket are looked at. There
 *    are more buckets than ticks in the usual delay, as one would choose it.
 *  - linked (scheme 7): eight levels of 64 buckets; when the clock enters the
 *    window of a bucket, its timers are moved a level down, one by one.
 *
 * Both skip empty buckets by bitmap.
 */
#ifndef _BENCH_WHEELS_H
#define _BENCH_WHEELS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct wheel_timer {
	struct wheel_timer *next, **link;	/* @link: what points here */
	uint64_t tick;				/* linked: deadline; hashed: rounds left */
	uint64_t data;
};

static inline void wheel_add(struct wheel_timer **head, struct wheel_timer *t)
{
	t->next = *head;
	if (t->next)
		t->next->link = &t->next;
	*head = t;
	t->link = head;
}

static inline void wheel_unlink(struct wheel_timer *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
}

/* Hashed */

#define HASHED_BITS	16
#define HASHED_SIZE	(1U << HASHED_BITS)
#define HASHED_WORDS	(HASHED_SIZE / 64)

struct hashed_wheel {
	uint64_t clk;			/* up to this tick all was looked at */
	uint32_t pending;
	struct wheel_timer *bucket[HASHED_SIZE];
	uint64_t map[HASHED_WORDS];
};

static inline void hashed_arm(struct hashed_wheel *w, struct wheel_timer *t, uint64_t tick)
{
	uint32_t slot;

	if (tick <= w->clk)
		tick = w->clk + 1;
	slot = tick % HASHED_SIZE;
	/* Whole rounds that go by before the one in which it is due. */
	t->tick = (tick - w->clk - 1) / HASHED_SIZE;
	wheel_add(&w->bucket[slot], t);
	w->map[slot / 64] |= 1ULL << slot % 64;
	w->pending++;
}

static inline void hashed_cancel(struct hashed_wheel *w, struct wheel_timer *t)
{
	struct wheel_timer **link = t->link;

	wheel_unlink(t);
	w->pending--;
	/* The last one of a bucket. */
	if (!*link && link >= w->bucket && link < w->bucket + HASHED_SIZE) {
		uint32_t slot = link - w->bucket;

		w->map[slot / 64] &= ~(1ULL << slot % 64);
	}
}

static inline void hashed_rearm(struct hashed_wheel *w, struct wheel_timer *t, uint64_t tick)
{
	hashed_cancel(w, t);
	hashed_arm(w, t, tick);
}

/* The next tick at which a bucket is to be looked at, or UINT64_MAX. */
static inline uint64_t hashed_next(const struct hashed_wheel *w)
{
	uint64_t tick = w->clk + 1;

	if (!w->pending)
		return UINT64_MAX;
	for (uint32_t i = 0; i <= HASHED_WORDS; i++) {
		uint32_t slot = tick % HASHED_SIZE;
		uint64_t bits = w->map[slot / 64] >> slot % 64;

		if (bits)
			return tick + __builtin_ctzll(bits);
		tick = (tick | 63) + 1;
	}
	return UINT64_MAX;
}

/* Take all that is due at @tick, the next one. Returns a list by @next. */
static inline struct wheel_timer *hashed_expire(struct hashed_wheel *w, uint64_t tick)
{
	uint32_t slot = tick % HASHED_SIZE;
	struct wheel_timer *t = w->bucket[slot], *next, *due = NULL;

	w->clk = tick;
	for (; t; t = next) {
		next = t->next;
		if (t->tick) {
			t->tick--;
			continue;
		}
		wheel_unlink(t);
		t->next = due;
		due = t;
		w->pending--;
	}
	if (!w->bucket[slot])
		w->map[slot / 64] &= ~(1ULL << slot % 64);
	return due;
}

/* Linked */

#define LINKED_BITS	6
#define LINKED_SIZE	(1U << LINKED_BITS)
#define LINKED_LEVELS	8

struct linked_wheel {
	uint64_t clk;			/* up to this tick all has expired */
	uint64_t map[LINKED_LEVELS];
	struct wheel_timer *bucket[LINKED_LEVELS * LINKED_SIZE];
};

static inline void linked_arm(struct linked_wheel *w, struct wheel_timer *t, uint64_t tick)
{
	uint32_t level, slot;

	if (tick <= w->clk)
		tick = w->clk + 1;
	/* The highest digit in which deadline and clock differ. */
	level = (63 - __builtin_clzll(tick ^ w->clk)) / LINKED_BITS;
	slot = (tick >> level * LINKED_BITS) % LINKED_SIZE;
	t->tick = tick;
	wheel_add(&w->bucket[level * LINKED_SIZE + slot], t);
	w->map[level] |= 1ULL << slot;
}

static inline void linked_cancel(struct linked_wheel *w, struct wheel_timer *t)
{
	struct wheel_timer **link = t->link;

	wheel_unlink(t);
	if (!*link && link >= w->bucket && link < w->bucket + LINKED_LEVELS * LINKED_SIZE) {
		uint32_t bucket = link - w->bucket;

		w->map[bucket / LINKED_SIZE] &= ~(1ULL << bucket % LINKED_SIZE);
	}
}

static inline void linked_rearm(struct linked_wheel *w, struct wheel_timer *t, uint64_t tick)
{
	linked_cancel(w, t);
	linked_arm(w, t, tick);
}

/* The first tick of the next bucket with timers, or UINT64_MAX. */
static inline uint64_t linked_next(const struct linked_wheel *w)
{
	for (uint32_t level = 0; level < LINKED_LEVELS; level++) {
		uint32_t shift = level * LINKED_BITS;

		if (w->map[level])
			return w->clk >> (shift + LINKED_BITS) << (shift + LINKED_BITS) |
			       (uint64_t)__builtin_ctzll(w->map[level]) << shift;
	}
	return UINT64_MAX;
}

static inline struct wheel_timer *linked_take(struct linked_wheel *w, uint32_t level, uint64_t tick)
{
	uint32_t slot = (tick >> level * LINKED_BITS) % LINKED_SIZE;
	struct wheel_timer *list = w->bucket[level * LINKED_SIZE + slot];

	w->bucket[level * LINKED_SIZE + slot] = NULL;
	w->map[level] &= ~(1ULL << slot);
	return list;
}

/* Take all that is due at @tick, the next one, and cascade. Returns a list by @next. */
static inline struct wheel_timer *linked_expire(struct linked_wheel *w, uint64_t tick)
{
	struct wheel_timer *due = NULL;

	w->clk = tick;
	for (uint32_t level = LINKED_LEVELS - 1; level; level--) {
		struct wheel_timer *t, *next;

		/* The windows that begin here. */
		if (tick & ((1ULL << level * LINKED_BITS) - 1))
			continue;
		for (t = linked_take(w, level, tick); t; t = next) {
			next = t->next;
			if (t->tick == tick) {
				t->next = due;
				due = t;
			} else {
				linked_arm(w, t, t->tick);
			}
		}
	}
	if (!due)
		return linked_take(w, 0, tick);
	/* Those of level 0 came there when the window before was entered: none. */
	return due;
}

#endif
