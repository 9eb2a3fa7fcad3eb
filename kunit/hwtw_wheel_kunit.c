// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: time, order and delivery in the wheel
 *
 * A test for each rule that keeps a kind of bug out. The comment above a test
 * names the bug, as other wheels had it.
 */
#include "../hwtw_wheel.c"
#include "../hwtw_memory.c"

#include <linux/module.h>
#include "hwtw_kunit.h"

#define MAX_NS	HWTW_TIME_MAX_NS

static const u32 shifts[] = { HWTW_TICK_SHIFT_MIN, 20, HWTW_TICK_SHIFT_MAX };

static void shift_desc(const u32 *shift, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "ticks of 2^%u ns", *shift);
}

KUNIT_ARRAY_PARAM(shift, shifts, shift_desc);

static u64 arm(struct kunit *test, u64 now, u64 expires, int state)
{
	u64 id = 0;

	KUNIT_EXPECT_EQ(test, hwtw_kunit_arm(test, test->priv, now, expires, 0, expires, &id),
			state);
	return id;
}

/* Take up to @max records and tell how many there are. */
static unsigned int take(struct kunit *test, u64 now, struct hwtw_event *ev, unsigned int max)
{
	return hwtw_kunit_take(test->priv, now, U64_MAX, ev, max);
}

/*
 * Time
 */

/* Deadlines rounded down fire early; those on a boundary, rounded up twice, a tick late (D-5). */
static void tick_is_rounded_up(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u32 shift = *(const u32 *)test->param_value;
	u64 size = 1ULL << shift;

	hwtw_kunit_reset(w, shift, 0);
	KUNIT_EXPECT_EQ(test, hwtw_tick(w, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, hwtw_tick(w, 1), 1ULL);
	KUNIT_EXPECT_EQ(test, hwtw_tick(w, size - 1), 1ULL);
	KUNIT_EXPECT_EQ(test, hwtw_tick(w, size), 1ULL);
	KUNIT_EXPECT_EQ(test, hwtw_tick(w, size + 1), 2ULL);
	KUNIT_EXPECT_EQ(test, hwtw_tick(w, size << 32), 1ULL << 32);
	KUNIT_EXPECT_EQ(test, hwtw_tick(w, MAX_NS), 1ULL << (63 - shift));
}

/* The bucket of a tick by the definition, group by group. */
static unsigned int bucket_of(u64 clk, u64 tick)
{
	int level;

	for (level = HWTW_LEVELS - 1; level > 0; level--) {
		if (tick >> (level * 6) != clk >> (level * 6))
			break;
	}
	return level * 128 + (tick >> (level * 6)) % 128;
}

/* One timer, @delay ticks after @clk, fires when it has to and not before. */
static void fires_exactly(struct kunit *test, u32 shift, u64 clk, u64 delay)
{
	struct hwtw_wheel *w = test->priv;
	u64 tick = clk + delay, expires = tick << shift;
	struct hwtw_event ev;
	unsigned int bucket;
	u64 id;

	if (tick < clk || tick > MAX_NS >> shift)
		return;
	hwtw_kunit_reset(w, shift, clk << shift);
	id = arm(test, clk << shift, expires, HWTW_PENDING);
	bucket = bucket_of(clk, tick);
	KUNIT_EXPECT_TRUE(test, *hwtw_bucket_word(w, bucket) == hwtw_bucket_bit(bucket));
	KUNIT_EXPECT_LE(test, w->next, tick);
	KUNIT_EXPECT_GT(test, w->next, clk);

	hwtw_kunit_run(w, expires - 1);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_PENDING);
	KUNIT_EXPECT_EQ(test, take(test, expires - 1, &ev, 1), 0U);
	KUNIT_EXPECT_EQ(test, w->next, tick);
	hwtw_kunit_run(w, expires);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, take(test, expires, &ev, 1), 1U);
	KUNIT_EXPECT_EQ(test, ev.id, id);
	KUNIT_EXPECT_EQ(test, ev.expires_ns, expires);
	KUNIT_EXPECT_EQ(test, w->completed, 1ULL);
	HWTW_EXPECT_SOUND(test, w);
}

/*
 * A delay that is a whole number of rotations is filed a rotation off; buckets
 * of several levels are due at once; 32-bit ticks come round (B-03, B-05, B-06,
 * B-12, D-6, D-7, D-9, D-18).
 */
static void fires_at_level_boundaries(struct kunit *test)
{
	static const int around[] = { -65, -64, -1, 0, 1, 64 };
	u32 shift = *(const u32 *)test->param_value;
	unsigned int from, to, i, j;

	for (from = 0; from <= HWTW_LEVELS; from++) {
		u64 clk = from == HWTW_LEVELS ? 1ULL << 32 : 1ULL << (6 * from);

		for (i = 0; i < ARRAY_SIZE(around); i++) {
			if (around[i] < 0 && clk < -around[i])
				continue;
			for (to = 0; to < HWTW_LEVELS; to++) {
				u64 delay = 1ULL << (6 * to);

				for (j = 0; j < 3; j++) {
					if (delay + j > 1)
						fires_exactly(test, shift, clk + around[i],
							      delay + j - 1);
				}
				fires_exactly(test, shift, clk + around[i], delay * 63);
			}
		}
	}
}

/*
 * Values near the largest overflow, are clamped and fire early, or are taken
 * for "none" (B-01, B-02, D-3, D-19).
 */
static void largest_deadlines_wait(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u32 shift = *(const u32 *)test->param_value;
	u64 last = MAX_NS >> shift << shift, id[3], now;

	hwtw_kunit_reset(w, shift, 0);
	id[0] = arm(test, 0, MAX_NS, HWTW_PENDING);
	id[1] = arm(test, 0, MAX_NS - 1, HWTW_PENDING);
	id[2] = arm(test, 0, last, HWTW_PENDING);
	HWTW_EXPECT_SOUND(test, w);
	for (now = 1; now < last; now += now) {
		hwtw_kunit_run(w, now);
		KUNIT_EXPECT_EQ(test, w->pending, 3U);
	}
	hwtw_kunit_run(w, last - 1);
	KUNIT_EXPECT_EQ(test, w->pending, 3U);
	hwtw_kunit_run(w, last);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[2]), HWTW_EXPIRED);
	/* The tick of the other two begins behind the end of time. */
	hwtw_kunit_run(w, MAX_NS);
	KUNIT_EXPECT_EQ(test, w->pending, 2U);
	arm(test, MAX_NS, MAX_NS, HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[0]), HWTW_PENDING);
	HWTW_EXPECT_SOUND(test, w);
}

/* A deadline that is not after the clock has no differing bit: no level, or the wrong one (D-1). */
static void past_deadlines_are_due(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 now = (1000ULL << 16) + 500;

	hwtw_kunit_reset(w, 16, now);
	arm(test, now, now, HWTW_EXPIRED);
	arm(test, now, 0, HWTW_EXPIRED);
	arm(test, now, 1, HWTW_EXPIRED);
	arm(test, now, 1000 << 16, HWTW_EXPIRED);
	arm(test, now, now - 1, HWTW_EXPIRED);
	arm(test, now, now + 1, HWTW_PENDING);
	KUNIT_EXPECT_EQ(test, w->unread, 5U);
	HWTW_EXPECT_SOUND(test, w);
	hwtw_kunit_run(w, (1001ULL << 16) - 1);
	KUNIT_EXPECT_EQ(test, w->unread, 5U);
	hwtw_kunit_run(w, 1001ULL << 16);
	KUNIT_EXPECT_EQ(test, w->unread, 6U);
}

/* The clock goes backwards: upper levels are gone through again, timers fire early (D-4, D-21). */
static void old_clock_changes_nothing(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 id;

	id = arm(test, 0, 5000 << 16, HWTW_PENDING);
	hwtw_kunit_run(w, 4096 << 16);
	KUNIT_EXPECT_EQ(test, w->clk, 4096ULL);
	KUNIT_EXPECT_FALSE(test, hwtw_wheel_run(w, 10 << 16, 100));
	KUNIT_EXPECT_FALSE(test, hwtw_wheel_run(w, 0, 0));
	KUNIT_EXPECT_EQ(test, w->clk, 4096ULL);
	/* Its tick has passed, whatever the caller's clock says. */
	arm(test, 10 << 16, 4096 << 16, HWTW_EXPIRED);
	arm(test, 10 << 16, 20 << 16, HWTW_EXPIRED);
	arm(test, 10 << 16, 4097 << 16, HWTW_PENDING);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_PENDING);
	HWTW_EXPECT_SOUND(test, w);
}

/* One that is due moves no clock, so that one with an older clock gets in front (D-15). */
static void due_timer_moves_the_clock(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_event ev[2];

	arm(test, (50 << 16) + 700, (50 << 16) + 500, HWTW_EXPIRED);
	arm(test, 20 << 16, 30 << 16, HWTW_EXPIRED);
	hwtw_kunit_run(w, 60 << 16);
	KUNIT_EXPECT_EQ(test, take(test, 60 << 16, ev, 2), 2U);
	KUNIT_EXPECT_LT(test, ev[0].expires_ns, ev[1].expires_ns);
	HWTW_EXPECT_SOUND(test, w);
}

/* A stalled or idle wheel catches up tick by tick, with the lock held (D-14). */
static void clock_jumps(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 far = 1ULL << 40, id;

	KUNIT_EXPECT_FALSE(test, hwtw_wheel_run(w, far << 16, 0));
	KUNIT_EXPECT_EQ(test, w->clk, far);
	id = arm(test, far << 16, (2 * far - 1) << 16, HWTW_PENDING);
	/* A claim moves once a level at most, and once to expire. */
	KUNIT_EXPECT_FALSE(test, hwtw_wheel_run(w, (2 * far - 1) << 16, HWTW_LEVELS + 1));
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_EXPIRED);
	KUNIT_EXPECT_LE(test, w->cascaded, (u64)HWTW_LEVELS);
	HWTW_EXPECT_SOUND(test, w);
}

/*
 * The next expiry is not noticed to have come nearer, or the one before is
 * waited for (B-15, D-11).
 */
static void next_is_never_late(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 hour = 3600ULL * 1000000000, ms = 1000000, id;

	KUNIT_EXPECT_EQ(test, w->next, U64_MAX);
	id = arm(test, 0, hour, HWTW_PENDING);
	KUNIT_EXPECT_LE(test, w->next, hwtw_tick(w, hour));
	arm(test, 0, 5 * ms, HWTW_PENDING);
	KUNIT_EXPECT_LE(test, w->next, hwtw_tick(w, 5 * ms));
	KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, 0, id, 2 * ms, 0), HWTW_PENDING);
	KUNIT_EXPECT_LE(test, w->next, hwtw_tick(w, 2 * ms));
	hwtw_kunit_run(w, 10 * ms);
	KUNIT_EXPECT_EQ(test, w->unread, 2U);
	/* The claim that it left behind, and then none. */
	hwtw_kunit_run(w, hour + (1 << 16));
	KUNIT_EXPECT_EQ(test, w->next, U64_MAX);
	KUNIT_EXPECT_EQ(test, w->unread, 2U);
}

/* A timer moved to a later time fires by the deadline that it had (D-17). */
static void moved_timers_fire_when_they_should(struct kunit *test)
{
	static const u64 ticks[] = { 1, 2, 63, 64, 65, 4095, 4096, 4097, 262144, 1ULL << 36 };
	struct hwtw_wheel *w = test->priv;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		for (j = 0; j < ARRAY_SIZE(ticks); j++) {
			u64 start = 4090, to = start + ticks[j], id;

			hwtw_kunit_reset(w, 16, start << 16);
			id = arm(test, start << 16, (start + ticks[i]) << 16, HWTW_PENDING);
			KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, start << 16, id,
							       to << 16, 0), HWTW_PENDING);
			hwtw_kunit_run(w, (to << 16) - 1);
			KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_PENDING);
			hwtw_kunit_run(w, to << 16);
			KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_EXPIRED);
			KUNIT_EXPECT_EQ(test, w->unread, 1U);
			/* Neither twice. */
			hwtw_kunit_run(w, (start + (1ULL << 37)) << 16);
			KUNIT_EXPECT_EQ(test, w->unread, 1U);
			KUNIT_EXPECT_EQ(test, w->claims, 1U);
			HWTW_EXPECT_SOUND(test, w);
		}
	}
}

/*
 * A timer is taken out of the bucket where it would be filed now, which is not
 * the one where it was filed (D-2). There is no taking out.
 */
static void cancel_touches_no_bucket(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv, *copy;
	u64 id[HWTW_LEVELS - 1], ticks, now = 0;
	unsigned int i;

	copy = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	for (i = 0; i < ARRAY_SIZE(id); i++)
		id[i] = arm(test, 0, (3ULL << (6 * i)) << 16, HWTW_PENDING);
	for (i = 0; i < ARRAY_SIZE(id); i++) {
		/* Near enough for another level. */
		ticks = 3ULL << (6 * i);
		now = (ticks - ticks / 3 - 1) << 16;
		hwtw_kunit_run(w, now);
		memcpy(copy, w, sizeof(*w));
		KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[i]), HWTW_PENDING);
		KUNIT_EXPECT_EQ(test, memcmp(copy->log, w->log, sizeof(w->log)), 0);
		KUNIT_EXPECT_EQ(test, memcmp(copy->bitmap, w->bitmap, sizeof(w->bitmap)), 0);
		KUNIT_EXPECT_EQ(test, copy->claims, w->claims);
		KUNIT_EXPECT_EQ(test, copy->pending - 1, w->pending);
		HWTW_EXPECT_SOUND(test, w);
	}
	hwtw_kunit_run(w, MAX_NS);
	KUNIT_EXPECT_EQ(test, w->unread, 0U);
	KUNIT_EXPECT_EQ(test, w->claims, 0U);
}

/* A wheel without a timer goes on being woken for those that are gone (D-13). */
static void ghosts_wake_once(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	unsigned int i, wakes = 0;
	u64 id, last = 0;

	for (i = 0; i < 500; i++) {
		u64 tick = 1 + ((i + 1ULL) << (i % 38));

		id = arm(test, 0, tick << 16, HWTW_PENDING);
		KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id), HWTW_PENDING);
	}
	for (; w->wake != U64_MAX; wakes++) {
		KUNIT_ASSERT_TRUE(test, w->wake > last);
		/* For each something goes, or comes a level nearer. */
		KUNIT_ASSERT_LE(test, wakes, 500U * HWTW_LEVELS);
		last = w->wake;
		hwtw_kunit_run(w, last << 16);
	}
	KUNIT_EXPECT_EQ(test, w->claims, 0U);
	KUNIT_EXPECT_EQ(test, w->unread, 0U);
	HWTW_EXPECT_SOUND(test, w);
}

/* A timer that is armed anew each time comes later and later, or turns short (B-13, D-9). */
static void armed_for_ever_does_not_drift(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	unsigned int level, i;
	struct hwtw_event ev;

	for (level = 0; level < HWTW_LEVELS - 1; level++) {
		/* More than two rotations of the level. */
		u64 delay = (3ULL << (6 * level)) / 7 + 1, tick = 12345;

		hwtw_kunit_reset(w, 16, tick << 16);
		for (i = 0; i < 320; i++) {
			arm(test, tick << 16, (tick + delay) << 16, HWTW_PENDING);
			tick += delay;
			hwtw_kunit_run(w, (tick << 16) - 1);
			KUNIT_ASSERT_EQ(test, take(test, (tick << 16) - 1, &ev, 1), 0U);
			hwtw_kunit_run(w, tick << 16);
			KUNIT_ASSERT_EQ(test, take(test, tick << 16, &ev, 1), 1U);
			KUNIT_ASSERT_EQ(test, ev.expires_ns, tick << 16);
		}
		HWTW_EXPECT_SOUND(test, w);
	}
}

/*
 * Cascades that stop and go on
 */

enum pause { PAUSE_NOTHING, PAUSE_ARM, PAUSE_CANCEL, PAUSE_LATER, PAUSE_EARLIER, PAUSE_OLD,
	     PAUSE_TAKE, NR_PAUSES };

/**
 * struct cascade - what happens to a bucket
 * @level: its level
 * @pause: what happens meanwhile
 * @early: it is drained in advance
 */
struct cascade {
	unsigned int level;
	enum pause pause;
	bool early;
};

static const char * const pauses[] = { "nothing", "arm", "cancel", "re-arm later",
				       "re-arm earlier", "run with an old clock", "take" };

static struct cascade cascades[4 * NR_PAUSES * 2];

static const void *cascade_gen_params(const void *prev, char *desc)
{
	const struct cascade *last = prev;
	struct cascade *c = last ? &cascades[last - cascades + 1] : cascades;

	/* On level 0 nothing can be done in advance. */
	if (c - cascades < 2 * NR_PAUSES && (c - cascades) & 1)
		c++;
	if (c == cascades + ARRAY_SIZE(cascades))
		return NULL;
	c->level = (c - cascades) / NR_PAUSES / 2;
	c->pause = (c - cascades) / 2 % NR_PAUSES;
	c->early = (c - cascades) & 1;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "level %u%s, %s", c->level,
		 c->early ? " in advance" : "", pauses[c->pause]);
	return c;
}

#define CASCADE_TIMERS	70

/**
 * struct cascade_run - timers of one bucket
 * @start: first tick of the bucket
 * @now: the clock while it is drained
 * @tick: the timers' tick, the bucket's first or its last
 * @id: timers
 * @nr: number of them
 * @gone: one that was cancelled or moved away
 * @ev: their records
 * @taken: number of them
 */
struct cascade_run {
	u64 start;
	u64 now;
	u64 tick;
	u64 id[CASCADE_TIMERS + 4];
	unsigned int nr;
	unsigned int gone;
	struct hwtw_event ev[CASCADE_TIMERS + 4];
	unsigned int taken;
};

/* Something happens while the bucket is half drained. */
static void cascade_pause(struct kunit *test, struct cascade_run *r, enum pause pause,
			  unsigned int piece)
{
	struct hwtw_wheel *w = test->priv;
	/* From the front, where they have moved, or from the end. */
	unsigned int victim = piece & 1 ? 1 : r->nr - 2;
	u64 now = r->now << 16;

	switch (pause) {
	case PAUSE_ARM:
		/* If it is due the drain comes to its end first. */
		if (r->nr < ARRAY_SIZE(r->id)) {
			hwtw_kunit_arm(test, w, now, r->tick << 16, 0, r->nr, &r->id[r->nr]);
			r->nr++;
		}
		break;
	case PAUSE_CANCEL:
		if (r->gone == UINT_MAX) {
			r->gone = victim;
			KUNIT_EXPECT_GT(test, hwtw_kunit_cancel(w, r->id[victim]), 0);
		}
		break;
	case PAUSE_LATER:
		if (r->gone == UINT_MAX) {
			r->gone = victim;
			KUNIT_EXPECT_GT(test, hwtw_kunit_rearm(test, w, now, r->id[victim],
							       (r->start + 300000) << 16, 0), 0);
		}
		break;
	case PAUSE_EARLIER:
		if (r->gone == UINT_MAX && r->tick > r->start) {
			r->gone = victim;
			KUNIT_EXPECT_GT(test, hwtw_kunit_rearm(test, w, now, r->id[victim],
							       (r->start + 1) << 16, 0), 0);
		}
		break;
	case PAUSE_OLD:
		/* It goes on with the drain that was begun, and no further. */
		hwtw_wheel_run(w, 0, 1);
		KUNIT_EXPECT_LE(test, w->clk, r->start);
		break;
	case PAUSE_TAKE:
		r->taken += take(test, now, r->ev + r->taken, 1);
		break;
	default:
		break;
	}
}

static void cascade_one(struct kunit *test, struct cascade_run *r, const struct cascade *c,
			unsigned int budget, bool last)
{
	struct hwtw_wheel *w = test->priv;
	u64 size = 1ULL << (6 * c->level);
	unsigned int i, n, piece = 0;

	r->start = 5 * size;
	r->tick = last ? 6 * size - 1 : r->start;
	r->nr = CASCADE_TIMERS;
	r->gone = UINT_MAX;
	r->taken = 0;
	hwtw_kunit_reset(w, 16, 0);
	for (i = 0; i < r->nr; i++)
		hwtw_kunit_arm(test, w, 0, r->tick << 16, 0, i, &r->id[i]);
	if (!c->early)
		KUNIT_EXPECT_FALSE(test, hwtw_wheel_run(w, (r->start - 1) << 16, 0));
	r->now = c->early ? r->start - size / 8 : r->start;
	while (hwtw_wheel_run(w, r->now << 16, budget) || w->wake <= w->clk) {
		KUNIT_EXPECT_LT(test, w->clk, r->start);
		cascade_pause(test, r, c->pause, piece++);
		/* There are many of the small pieces. */
		if (budget > 4 || piece % 8 == 1)
			HWTW_EXPECT_SOUND(test, w);
		if (!budget)
			break;
	}
	if (c->early && budget) {
		/* It is all done before its time. */
		KUNIT_EXPECT_TRUE(test, hwtw_log_empty(&w->log[hwtw_bucket(c->level, r->start)]));
		KUNIT_EXPECT_EQ(test, w->end[c->level - 1], r->start + size);
		KUNIT_EXPECT_EQ(test, w->unread, 0U);
	}
	hwtw_kunit_run(w, r->start << 16);
	KUNIT_EXPECT_EQ(test, w->clk, r->start);
	if (last && r->tick > r->start + 1) {
		hwtw_kunit_run(w, (r->tick << 16) - 1);
		KUNIT_EXPECT_EQ(test, w->unread, (u32)(c->pause == PAUSE_EARLIER &&
						       r->gone != UINT_MAX));
	}
	hwtw_kunit_run(w, r->tick << 16);
	r->taken += take(test, r->tick << 16, r->ev + r->taken, ARRAY_SIZE(r->ev) - r->taken);
	HWTW_EXPECT_SOUND(test, w);

	/* All of them, in arming order, but the one that is gone. */
	n = 0;
	if (c->pause == PAUSE_EARLIER && r->gone != UINT_MAX)
		KUNIT_EXPECT_EQ(test, r->ev[n++].id, r->id[r->gone]);
	for (i = 0; i < r->nr; i++) {
		if (i == r->gone)
			continue;
		if (n >= r->taken || r->ev[n].id != r->id[i]) {
			KUNIT_FAIL(test, "budget %u, tick %llu: record %u is not timer %u of %u",
				   budget, r->tick, n, i, r->nr);
			break;
		}
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, r->taken);
	if (c->pause == PAUSE_LATER && r->gone != UINT_MAX) {
		hwtw_kunit_run(w, ((r->start + 300000) << 16) - 1);
		KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, r->id[r->gone]), HWTW_PENDING);
		hwtw_kunit_run(w, (r->start + 300000) << 16);
		KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, r->id[r->gone]), HWTW_EXPIRED);
	}
}

/*
 * A cascade that runs out of budget loses timers, lets others overtake them, or
 * never ends since timers go to the bucket that is drained (D-8).
 */
static void cascade_stops_anywhere(struct kunit *test)
{
	const struct cascade *c = test->param_value;
	struct cascade_run *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	unsigned int budget;

	KUNIT_ASSERT_NOT_NULL(test, r);
	for (budget = 0; budget <= CASCADE_TIMERS + 1; budget++) {
		cascade_one(test, r, c, budget, false);
		if (c->level)
			cascade_one(test, r, c, budget, true);
		cond_resched();
	}
}

/* Buckets of all levels that begin with one tick are gone through from below (D-7). */
static void levels_cascade_in_order(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 tick = 1ULL << 36, id[8];
	struct hwtw_event ev[8];
	unsigned int i;

	/* All for the same tick, each armed from nearer by. */
	for (i = 0; i < 7; i++) {
		u64 now = tick - (1ULL << (6 * (6 - i)));

		hwtw_kunit_run(w, now << 16);
		id[i] = arm(test, now << 16, tick << 16, HWTW_PENDING);
	}
	hwtw_kunit_run(w, (tick << 16) - 1);
	KUNIT_EXPECT_EQ(test, w->unread, 0U);
	while (hwtw_wheel_run(w, tick << 16, 1))
		HWTW_EXPECT_SOUND(test, w);
	KUNIT_EXPECT_EQ(test, take(test, tick << 16, ev, 8), 7U);
	for (i = 0; i < 7; i++)
		KUNIT_EXPECT_EQ(test, ev[i].id, id[i]);
}

/*
 * Late timers: due when they are armed, earlier than others that wait
 */

static void expect_taken(struct kunit *test, const u64 *tick, unsigned int nr)
{
	struct hwtw_event ev[16];
	unsigned int i;

	KUNIT_ASSERT_EQ(test, take(test, MAX_NS, ev, 16), nr);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, ev[i].expires_ns >> 16, tick[i]);
	HWTW_EXPECT_SOUND(test, test->priv);
}

/* An expired timer is moved or cancelled by the path for pending ones (B-43, D-16). */
static void late_timers_are_in_order(struct kunit *test)
{
	static const u64 sorted[] = { 2, 3, 5, 6, 7, 10, 20 };
	struct hwtw_wheel *w = test->priv;
	u64 now = 100ULL << 16, id[4];

	hwtw_kunit_reset(w, 16, now);
	arm(test, now, 10 << 16, HWTW_EXPIRED);
	arm(test, now, 20 << 16, HWTW_EXPIRED);
	id[0] = arm(test, now, 5 << 16, HWTW_EXPIRED);
	id[1] = arm(test, now, 2 << 16, HWTW_EXPIRED);
	id[2] = arm(test, now, 7 << 16, HWTW_EXPIRED);
	id[3] = arm(test, now, 4 << 16, HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, w->nr_late, 4U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_unread_tick(w), 2ULL);
	HWTW_EXPECT_SOUND(test, w);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[3]), HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, now, id[2], 6 << 16, 0), HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, now, id[1], 200 << 16, 0), HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[1]), HWTW_PENDING);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, now, id[1], 2 << 16, 0), HWTW_PENDING);
	arm(test, now, 3 << 16, HWTW_EXPIRED);
	arm(test, now, 7 << 16, HWTW_EXPIRED);
	HWTW_EXPECT_SOUND(test, w);
	expect_taken(test, sorted, ARRAY_SIZE(sorted));
}

/* Records that could not be delivered come back in another order, or twice. */
static void part_of_a_read_keeps_order(struct kunit *test)
{
	static const u64 sorted[] = { 3, 5, 10, 11, 12, 13 };
	struct hwtw_wheel *w = test->priv;
	u64 now = 100ULL << 16, left[ARRAY_SIZE(sorted) + 1];
	struct hwtw_event ev[16];
	unsigned int i, nr, n;

	for (nr = 0; nr <= ARRAY_SIZE(sorted); nr++) {
		hwtw_kunit_reset(w, 16, now);
		for (i = 10; i < 14; i++)
			arm(test, now, i << 16, HWTW_EXPIRED);
		arm(test, now, 5 << 16, HWTW_EXPIRED);
		arm(test, now, 3 << 16, HWTW_EXPIRED);
		KUNIT_EXPECT_EQ(test, take(test, now, ev, nr), nr);
		for (i = 0; i < nr; i++)
			KUNIT_EXPECT_EQ(test, ev[i].expires_ns >> 16, sorted[i]);
		/* Before the others are read. */
		arm(test, now, 4 << 16, HWTW_EXPIRED);
		HWTW_EXPECT_SOUND(test, w);
		for (n = 0; i < ARRAY_SIZE(sorted) && sorted[i] < 4; i++)
			left[n++] = sorted[i];
		left[n++] = 4;
		for (; i < ARRAY_SIZE(sorted); i++)
			left[n++] = sorted[i];
		expect_taken(test, left, n);
	}
}

/* A take goes beyond what other wheels have. */
static void take_stops_at_a_tick(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 now = 100ULL << 16;
	struct hwtw_event ev[8];

	hwtw_kunit_reset(w, 16, now);
	arm(test, now, 10 << 16, HWTW_EXPIRED);
	arm(test, now, 30 << 16, HWTW_EXPIRED);
	arm(test, now, 20 << 16, HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_take(w, now, 9, ev, 8), 0U);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_take(w, now, 10, ev, 8), 1U);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_take(w, now, 19, ev + 1, 8), 0U);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_take(w, now, 29, ev + 1, 8), 1U);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_take(w, now, 30, ev + 2, 8), 1U);
	KUNIT_EXPECT_EQ(test, w->completed, 3ULL);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_unread_tick(w), U64_MAX);
}

/*
 * Records that are looked at, and taken or not
 */

/* What is only looked at, or with no room for it, is taken. */
static void peek_changes_nothing(struct kunit *test)
{
	static const u64 ticks[] = { 10, 10, 12, 30, 5, 11 };
	struct hwtw_wheel *w = test->priv, *copy;
	u64 now = 100ULL << 16;
	struct hwtw_batch batch;
	unsigned int i, max;

	copy = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, 8), 0U);
	KUNIT_EXPECT_EQ(test, batch.nr, 0U);
	hwtw_kunit_reset(w, 16, now);
	for (i = 0; i < ARRAY_SIZE(ticks); i++)
		arm(test, now, ticks[i] << 16, HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, w->nr_late, 2U);
	memcpy(copy, w, sizeof(*w));
	for (max = 0; max < 8; max++) {
		KUNIT_EXPECT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, max), min(max, 1U));
		KUNIT_EXPECT_EQ(test, batch.nr, min(max, 1U));
		if (max)
			KUNIT_EXPECT_EQ(test, batch.ev[0].expires_ns >> 16, 5ULL);
		KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 0), 0U);
		KUNIT_EXPECT_EQ(test, hwtw_wheel_peek(w, now, 4, &batch, max), 0U);
		KUNIT_EXPECT_EQ(test, batch.nr, 0U);
		KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 0), 0U);
		KUNIT_EXPECT_EQ(test, memcmp(copy, w, sizeof(*w)), 0);
	}
	/* Up to the next late one, and then that one. */
	KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, 8), 1U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 1), 1U);
	KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, 8), 2U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 2), 2U);
	KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, 8), 1U);
	KUNIT_EXPECT_EQ(test, batch.ev[0].expires_ns >> 16, 11ULL);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 1), 1U);
	KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, 8), 2U);
	KUNIT_EXPECT_EQ(test, w->unread, 2U);
	HWTW_EXPECT_SOUND(test, w);
}

/* Many stale claims are gone through with the lock held, or end what there is to read. */
static void peek_skips_stale_claims(struct kunit *test)
{
	static const u64 left[] = { 55, 60 };
	struct hwtw_wheel *w = test->priv;
	unsigned int nr = 2 * HWTW_TAKE_BUDGET + 7, i, calls = 0;
	struct hwtw_batch batch;
	u64 id = 0;

	for (i = 0; i <= nr; i++) {
		id = arm(test, 100 << 16, 50 << 16, HWTW_EXPIRED);
		if (i < nr)
			KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id), HWTW_EXPIRED);
	}
	/* One that comes after those, and a late one between. */
	arm(test, 100 << 16, 60 << 16, HWTW_EXPIRED);
	arm(test, 100 << 16, 55 << 16, HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, w->nr_late, 1U);
	KUNIT_EXPECT_EQ(test, w->claims, nr + 2);
	while (!hwtw_wheel_peek(w, 100 << 16, U64_MAX, &batch, 8)) {
		calls++;
		KUNIT_EXPECT_EQ(test, w->dropped, (u64)calls * HWTW_TAKE_BUDGET);
		KUNIT_ASSERT_LE(test, calls, 2U);
		HWTW_EXPECT_SOUND(test, w);
	}
	KUNIT_EXPECT_EQ(test, calls, 2U);
	KUNIT_EXPECT_EQ(test, batch.nr, 1U);
	KUNIT_EXPECT_EQ(test, batch.ev[0].id, id);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 1), 1U);
	KUNIT_EXPECT_EQ(test, w->dropped, (u64)nr);
	KUNIT_EXPECT_EQ(test, w->claims, 1U);
	expect_taken(test, left, ARRAY_SIZE(left));
	HWTW_EXPECT_SOUND(test, w);
}

/* How many of the first @nr timers are not in a set. */
static unsigned int others(u32 set, unsigned int nr)
{
	unsigned int i, left = 0;

	for (i = 0; i < nr; i++)
		left += !(set >> i & 1);
	return left;
}

/*
 * Records are taken that were not delivered, or the other way round, if there
 * are stale claims before them, between them or behind them.
 */
static void part_is_taken(struct kunit *test)
{
	static const u32 sets[] = {
		0, 0x0001, 0x0003, 0x4000, 0x7000, 0x5555, 0x2aaa, 0x0ff0, 0x7f7f, 0x3fff,
	};
	struct hwtw_wheel *w = test->priv;
	u64 now = 100ULL << 16, id[HWTW_CHUNK_CLAIMS + 1];
	struct hwtw_event ev[HWTW_CHUNK_CLAIMS + 1];
	unsigned int i, j, nr, records, end;
	struct hwtw_batch batch;

	for (i = 0; i < ARRAY_SIZE(sets) * 16; i++) {
		u32 stale = sets[i / 16];

		records = others(stale, HWTW_CHUNK_CLAIMS);
		nr = i % 16;
		if (nr > records)
			continue;
		hwtw_kunit_reset(w, 16, now);
		/* A chunk of them, and one that is in another. Every third is periodic. */
		for (j = 0; j < ARRAY_SIZE(id); j++)
			hwtw_kunit_arm(test, w, now, (20 + j) << 16, j % 3 ? 0 : 1 << 20, j,
				       &id[j]);
		for (j = 0; j < HWTW_CHUNK_CLAIMS; j++) {
			if (stale >> j & 1)
				KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[j]), HWTW_EXPIRED);
		}
		KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, 99), records);
		KUNIT_EXPECT_EQ(test, w->dropped, 0ULL);
		hwtw_wheel_take(w, &batch, nr);
		HWTW_EXPECT_SOUND(test, w);
		KUNIT_EXPECT_EQ(test, w->delivered, (u64)nr);
		KUNIT_EXPECT_EQ(test, w->unread, records + 1 - nr);
		/* The claims are gone up to the last one that was taken. */
		end = 0;
		while (others(stale, end) < nr)
			end++;
		if (nr == records)
			end = HWTW_CHUNK_CLAIMS;
		KUNIT_EXPECT_EQ(test, w->dropped, (u64)(end - nr));
		for (j = 0; j < HWTW_CHUNK_CLAIMS; j++) {
			if (stale >> j & 1)
				KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[j]), -ENOENT);
			else if (others(stale, j) >= nr)
				KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[j]), HWTW_EXPIRED);
			else
				KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[j]),
						j % 3 ? -ENOENT : HWTW_PENDING);
		}
		/* The others are as they were. */
		KUNIT_ASSERT_EQ(test, take(test, now, ev, ARRAY_SIZE(ev)), records + 1 - nr);
		for (j = nr; j < records; j++)
			KUNIT_EXPECT_EQ(test, memcmp(&ev[j - nr], &batch.ev[j], sizeof(*ev)), 0);
		KUNIT_EXPECT_EQ(test, ev[records - nr].id, id[HWTW_CHUNK_CLAIMS]);
		HWTW_EXPECT_SOUND(test, w);
	}
}

/* Late timers are taken that were not delivered, or stay in the tree. */
static void part_of_late_timers_is_taken(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 now = 100ULL << 16, id[20];
	unsigned int nr, i, gone;
	struct hwtw_batch batch;
	struct hwtw_event ev[20];

	for (nr = 0; nr <= HWTW_CHUNK_CLAIMS; nr++) {
		hwtw_kunit_reset(w, 16, now);
		arm(test, now, 90 << 16, HWTW_EXPIRED);
		/* A stale claim before it has nothing to do with them. */
		hwtw_kunit_cancel(w, arm(test, now, 90 << 16, HWTW_EXPIRED));
		for (i = ARRAY_SIZE(id); i--;)
			hwtw_kunit_arm(test, w, now, (20 + i / 2) << 16, i % 3 ? 0 : 1 << 20, i,
				       &id[i]);
		KUNIT_EXPECT_EQ(test, w->nr_late, 20U);
		KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, now, 22, &batch, 99), 6U);
		KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, 2), 2U);
		KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, now, U64_MAX, &batch, 99),
				HWTW_CHUNK_CLAIMS);
		KUNIT_EXPECT_EQ(test, batch.claims, 0U);
		for (gone = 0, i = 0; i < nr; i++)
			gone += batch.ev[i].user_data % 3 > 0;
		KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, nr), gone);
		HWTW_EXPECT_SOUND(test, w);
		KUNIT_EXPECT_EQ(test, w->nr_late, 20 - nr);
		KUNIT_EXPECT_EQ(test, w->unread, 21 - nr);
		KUNIT_EXPECT_EQ(test, w->pending, nr - gone);
		KUNIT_EXPECT_EQ(test, w->completed, (u64)gone);
		KUNIT_EXPECT_EQ(test, w->claims, 2 + nr - gone);
		KUNIT_EXPECT_EQ(test, w->dropped, 0ULL);
		for (i = 0; i < batch.nr; i++) {
			u64 data = batch.ev[i].user_data;

			KUNIT_EXPECT_EQ(test, batch.ev[i].id, id[data]);
			KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, batch.ev[i].id),
					i >= nr ? HWTW_EXPIRED :
					data % 3 ? -ENOENT : HWTW_PENDING);
		}
		KUNIT_ASSERT_EQ(test, take(test, now, ev, 20 - nr), 20 - nr);
		for (i = nr; i < batch.nr; i++)
			KUNIT_EXPECT_EQ(test, memcmp(&ev[i - nr], &batch.ev[i], sizeof(*ev)), 0);
		KUNIT_EXPECT_EQ(test, take(test, now, ev, 20), 1U);
		HWTW_EXPECT_SOUND(test, w);
	}
}

/* Overruns of records that were not delivered are counted, and again the next time. */
static void overruns_count_when_taken(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_batch batch;
	u64 id[2];

	hwtw_kunit_arm(test, w, 0, 10 << 16, 1 << 16, 0, &id[0]);
	hwtw_kunit_arm(test, w, 0, 10 << 16, 1 << 16, 1, &id[1]);
	hwtw_kunit_run(w, 10 << 16);
	KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, 15 << 16, U64_MAX, &batch, 2), 2U);
	KUNIT_EXPECT_EQ(test, batch.ev[1].overruns, 5U);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 1), 0U);
	KUNIT_EXPECT_EQ(test, w->overruns, 5ULL);
	KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, 17 << 16, U64_MAX, &batch, 2), 1U);
	KUNIT_EXPECT_EQ(test, batch.ev[0].id, id[1]);
	KUNIT_EXPECT_EQ(test, batch.ev[0].overruns, 7U);
	KUNIT_EXPECT_EQ(test, w->overruns, 5ULL);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 1), 0U);
	KUNIT_EXPECT_EQ(test, w->overruns, 12ULL);
	/* Each goes on with what its record did not tell of. */
	hwtw_kunit_run(w, 17 << 16);
	KUNIT_ASSERT_EQ(test, hwtw_wheel_peek(w, 18 << 16, U64_MAX, &batch, 2), 1U);
	KUNIT_EXPECT_EQ(test, batch.ev[0].id, id[0]);
	KUNIT_EXPECT_EQ(test, batch.ev[0].expires_ns, 16ULL << 16);
	HWTW_EXPECT_SOUND(test, w);
}

/*
 * States
 */

/*
 * A cancel that came between expiry and delivery counts twice, or the record
 * comes after it (B-28, B-38, B-39, D-16, D-24).
 */
static void cancel_is_final_in_each_state(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_batch batch;
	struct hwtw_event ev[2];
	u64 id[3];

	id[0] = arm(test, 0, 10 << 16, HWTW_PENDING);
	id[1] = arm(test, 0, 10 << 16, HWTW_PENDING);
	id[2] = arm(test, 0, 20 << 16, HWTW_PENDING);
	hwtw_kunit_run(w, 10 << 16);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[1]), HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[1]), -ENOENT);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_peek(w, 10 << 16, U64_MAX, &batch, 2), 1U);
	KUNIT_EXPECT_EQ(test, batch.ev[0].id, id[0]);
	/* It could not be delivered. */
	KUNIT_EXPECT_EQ(test, hwtw_wheel_take(w, &batch, 0), 0U);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[0]), HWTW_EXPIRED);
	/* The record is withdrawn. */
	KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, 10 << 16, id[0], 50 << 16, 0),
			HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, take(test, 10 << 16, ev, 2), 0U);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[2]), HWTW_PENDING);
	hwtw_kunit_run(w, 50 << 16);
	KUNIT_EXPECT_EQ(test, take(test, 50 << 16, ev, 2), 1U);
	KUNIT_EXPECT_EQ(test, ev[0].expires_ns, 50ULL << 16);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id[0]), -ENOENT);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, 0, id[0], 50 << 16, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[0]), -ENOENT);
	KUNIT_EXPECT_EQ(test, w->pending + w->unread, 0U);
	HWTW_EXPECT_SOUND(test, w);
}

/* A batch stops at the wrong operation, or one that fails takes others with it. */
static void batch_stops_where_it_has_to(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 now = 64ULL << 16;
	struct hwtw_op op[6] = {
		{ HWTW_OP_ARM, 1, { .time_ns = MAX_NS } },	/* a delay: saturates */
		{ HWTW_OP_ARM, 1, { .time_ns = MAX_NS + 1 } },
		{ HWTW_OP_ARM, 1, { .time_ns = 1, .interval_ns = (1 << 16) - 1 } },
		{ 0, 1, { .time_ns = 1 } },
		{ HWTW_OP_ARM, 1, { .time_ns = 1, .flags = 2 } },
		{ HWTW_OP_ARM, 1, { .time_ns = 2 << 16, .flags = HWTW_TIMER_ABS } },
	};
	unsigned int credit = 2, i;

	hwtw_kunit_reset(w, 16, now);
	hwtw_kunit_refill(test, w, 6, 6, false);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_ops(w, now, &credit, op, 6), 6U);
	KUNIT_EXPECT_EQ(test, credit, 0U);
	KUNIT_EXPECT_EQ(test, op[0].result, 0);
	for (i = 1; i < 5; i++)
		KUNIT_EXPECT_EQ(test, op[i].result, -EINVAL);
	KUNIT_EXPECT_EQ(test, op[5].result, 0);
	KUNIT_EXPECT_EQ(test, op[5].timer.state, (u32)HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_wheel_ops(w, now, &credit, op, 1), 0U);

	op[0].opcode = HWTW_OP_QUERY;
	op[1] = op[0];
	op[1].opcode = HWTW_OP_CANCEL;
	op[2] = op[1];
	op[3] = op[1];
	op[3].timer.id ^= 1ULL << HWTW_INDEX_BITS;
	KUNIT_EXPECT_EQ(test, hwtw_wheel_ops(w, now, &credit, op, 4), 3U);
	KUNIT_EXPECT_EQ(test, op[0].timer.time_ns, MAX_NS);
	KUNIT_EXPECT_EQ(test, op[1].result, 0);
	KUNIT_EXPECT_EQ(test, op[2].result, -ENOENT);
	KUNIT_EXPECT_EQ(test, credit, 1U);
	HWTW_EXPECT_SOUND(test, w);
}

/* One that is due gets in front of those that wait for the wheel to run (D-15). */
static void due_timer_waits_for_the_wheel(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv, *copy;
	struct hwtw_timer timer = { .time_ns = 10 << 16, .flags = HWTW_TIMER_ABS };
	u64 now = 20 << 16;

	arm(test, 0, 10 << 16, HWTW_PENDING);
	hwtw_kunit_refill(test, w, 1, 0, false);
	copy = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, w, sizeof(*w));
	KUNIT_EXPECT_EQ(test, hwtw_kunit_try(w, now, HWTW_OP_ARM, &timer), -EAGAIN);
	KUNIT_EXPECT_EQ(test, memcmp(copy, w, sizeof(*w)), 0);
	hwtw_kunit_run(w, now);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_try(w, now, HWTW_OP_ARM, &timer), HWTW_EXPIRED);
}

/*
 * Periodic timers
 */

/* The next period is reckoned from now, and drifts (B-58, D-23). */
static void periods_do_not_drift(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 first = 12345678, interval = 20000001, now = 0, periods = 0, id;
	struct hwtw_event ev;
	unsigned int i;

	hwtw_kunit_arm(test, w, 0, first, interval, 7, &id);
	for (i = 0; i < 2000; i++) {
		/* Now on time, now late by some periods. */
		now = first + periods * interval + (i % 7 ? 1 << 16 : (i % 50) * 7000003ULL);
		now = max(now, (hwtw_tick(w, first + periods * interval)) << 16);
		hwtw_kunit_run(w, now);
		KUNIT_ASSERT_EQ(test, take(test, now, &ev, 1), 1U);
		KUNIT_ASSERT_EQ(test, ev.expires_ns, first + periods * interval);
		KUNIT_ASSERT_EQ(test, (u64)ev.overruns, div64_u64(now - ev.expires_ns, interval));
		KUNIT_EXPECT_EQ(test, ev.id, id);
		KUNIT_EXPECT_EQ(test, ev.user_data, 7ULL);
		periods += ev.overruns + 1;
	}
	HWTW_EXPECT_SOUND(test, w);
}

/* The deadline after the record has passed, for the wheel, when the record is read. */
static void period_passed_meanwhile(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_event ev;
	u64 id;

	hwtw_kunit_arm(test, w, 0, 10 << 16, 1 << 16, 0, &id);
	hwtw_kunit_run(w, 15 << 16);
	/* By a clock of some time ago. */
	KUNIT_ASSERT_EQ(test, take(test, 10 << 16, &ev, 1), 1U);
	KUNIT_EXPECT_EQ(test, ev.overruns, 0U);
	HWTW_EXPECT_SOUND(test, w);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id), HWTW_PENDING);
	hwtw_kunit_run(w, 16 << 16);
	KUNIT_ASSERT_EQ(test, take(test, 16 << 16, &ev, 1), 1U);
	KUNIT_EXPECT_EQ(test, ev.expires_ns, 11ULL << 16);
	KUNIT_EXPECT_EQ(test, ev.overruns, 5U);
	hwtw_kunit_run(w, 17 << 16);
	KUNIT_ASSERT_EQ(test, take(test, 17 << 16, &ev, 1), 1U);
	KUNIT_EXPECT_EQ(test, ev.expires_ns, 17ULL << 16);
}

/* Sums of periods overflow. */
static void periods_saturate(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 now = 1ULL << 62, first = 1 << 16, id[3];
	struct hwtw_event ev[2];
	struct hwtw_timer timer = { };

	/* More periods than a record can tell: it tells of some, the next of others. */
	hwtw_kunit_arm(test, w, 0, first, 1 << 16, 0, &id[0]);
	hwtw_kunit_arm(test, w, 0, first, MAX_NS, 0, &id[1]);
	hwtw_kunit_run(w, now);
	KUNIT_ASSERT_EQ(test, take(test, now, ev, 2), 2U);
	KUNIT_EXPECT_EQ(test, ev[0].overruns, U32_MAX);
	KUNIT_EXPECT_EQ(test, ev[1].overruns, 0U);
	timer.id = id[0];
	KUNIT_EXPECT_EQ(test, hwtw_kunit_try(w, now, HWTW_OP_QUERY, &timer), HWTW_PENDING);
	KUNIT_EXPECT_EQ(test, timer.time_ns, first + (1ULL << 48));
	timer.id = id[1];
	KUNIT_EXPECT_EQ(test, hwtw_kunit_try(w, now, HWTW_OP_QUERY, &timer), HWTW_PENDING);
	KUNIT_EXPECT_EQ(test, timer.time_ns, MAX_NS);
	HWTW_EXPECT_SOUND(test, w);
	/* To the very end, and from there. */
	hwtw_kunit_arm(test, w, now, MAX_NS, 1 << 16, 0, &id[2]);
	hwtw_kunit_run(w, MAX_NS);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_rearm(test, w, MAX_NS, id[2], MAX_NS, 1 << 16),
			HWTW_PENDING);
	KUNIT_ASSERT_EQ(test, take(test, MAX_NS, ev, 2), 2U);
	HWTW_EXPECT_SOUND(test, w);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_state(w, id[2]), HWTW_PENDING);
}

/*
 * A bucket of many claims that is drained only when its time comes makes the
 * first of them late, if it was filled while nothing else made the wheel run.
 */
static void burst_is_drained_early(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	u64 start = 5ULL << 18, early = start - (1ULL << 16), id, now;
	unsigned int i, runs = 0;

	for (i = 0; i < 20000; i++)
		hwtw_kunit_arm(test, w, 0, (start + 1 + i % 1000) << 16, 0, i, &id);
	/* The first run may be due at once, to see what there is now. */
	hwtw_kunit_run(w, w->wake << 16);
	KUNIT_EXPECT_EQ(test, w->wake, early);
	for (now = early; w->wake < start; now = max(w->wake, now)) {
		KUNIT_ASSERT_FALSE(test, hwtw_wheel_run(w, now << 16, 1024));
		KUNIT_ASSERT_LE(test, ++runs, 1000U);
	}
	HWTW_EXPECT_SOUND(test, w);
	/* What is left for the last moment is next to nothing. */
	KUNIT_EXPECT_FALSE(test, hwtw_wheel_run(w, (start + 1) << 16, 2048));
	KUNIT_EXPECT_EQ(test, w->unread, 20U);
}

/*
 * A clock set back makes new timers due, makes old ones early or late, or lets
 * new ones overtake those of their tick, wherever it stops.
 */
static void clock_set_back(struct kunit *test)
{
	const u64 tick = 1ULL << HWTW_TICK_SHIFT_MIN, late = 1ULL << 20, early = late - 5000;
	struct hwtw_wheel *w = test->priv;
	struct hwtw_event ev[8];
	unsigned int budget, i;

	for (budget = 1; budget <= 40; budget++) {
		hwtw_kunit_reset(w, HWTW_TICK_SHIFT_MIN, late * tick);
		w->rewinds = true;
		/* One a level, and two of one tick. */
		for (i = 0; i < 5; i++)
			arm(test, late * tick, (late + (1ULL << 6 * i)) * tick, HWTW_PENDING);
		arm(test, late * tick, (late + 1) * tick, HWTW_PENDING);
		KUNIT_EXPECT_FALSE(test, hwtw_wheel_rewind(w, late * tick, budget));
		KUNIT_EXPECT_EQ(test, w->clk, late);
		while (hwtw_wheel_rewind(w, early * tick, budget))
			KUNIT_ASSERT_LE(test, w->clk, early);
		HWTW_EXPECT_SOUND(test, w);
		KUNIT_EXPECT_EQ(test, w->clk, early);
		KUNIT_EXPECT_EQ(test, w->pending, 6);

		/* Between the clocks, and of a tick that others have. */
		arm(test, early * tick, (early + 1) * tick, HWTW_PENDING);
		arm(test, early * tick, (late + 1) * tick, HWTW_PENDING);
		hwtw_kunit_run(w, early * tick);
		KUNIT_EXPECT_EQ(test, w->unread, 0);
		hwtw_kunit_run(w, (early + 1) * tick);
		KUNIT_EXPECT_EQ(test, take(test, U64_MAX, ev, 8), 1);
		KUNIT_EXPECT_EQ(test, w->completed, 1);
		hwtw_kunit_run(w, late * tick);
		KUNIT_EXPECT_EQ(test, w->unread, 0);
		hwtw_kunit_run(w, (late + 1) * tick);
		KUNIT_ASSERT_EQ(test, take(test, U64_MAX, ev, 8), 3);
		KUNIT_EXPECT_LT(test, ev[0].id, ev[2].id);
		KUNIT_EXPECT_LT(test, ev[1].id, ev[2].id);
		KUNIT_EXPECT_EQ(test, w->completed, 4);
		HWTW_EXPECT_SOUND(test, w);
	}
}

/*
 * Half of a bucket has been drained into a level below when the clock is set back,
 * and the other half, armed later, comes before it.
 */
static void clock_set_back_keeps_order(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_event ev[40];
	unsigned int i;
	u64 id;

	w->rewinds = true;
	for (i = 0; i < 40; i++)
		hwtw_kunit_arm(test, w, 0, 70 << 16, 0, i, &id);
	hwtw_wheel_run(w, 63 << 16, 20);
	while (hwtw_wheel_rewind(w, 20 << 16, 7))
		;
	HWTW_EXPECT_SOUND(test, w);
	hwtw_kunit_run(w, 70 << 16);
	KUNIT_ASSERT_EQ(test, take(test, 70 << 16, ev, 40), 40);
	for (i = 0; i < 40; i++)
		KUNIT_EXPECT_EQ(test, ev[i].user_data, i);
}

/* What was cancelled before it fired is what a user wants to know. */
static void cancels_are_told_apart(struct kunit *test)
{
	struct hwtw_wheel *w = test->priv;
	struct hwtw_stats stats = { };
	u64 now = 100 << 16, id;

	hwtw_kunit_run(w, now);
	id = arm(test, now, now + 1, HWTW_PENDING);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id), HWTW_PENDING);
	id = arm(test, now, now, HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id), HWTW_EXPIRED);
	id = arm(test, now, now, HWTW_EXPIRED);
	KUNIT_EXPECT_EQ(test, hwtw_kunit_cancel(w, id), HWTW_EXPIRED);
	hwtw_wheel_stats(w, now, &stats);
	KUNIT_EXPECT_EQ(test, stats.cancelled, 3);
	KUNIT_EXPECT_EQ(test, stats.cancelled_pending, 1);
	KUNIT_EXPECT_EQ(test, stats.withdrawn, 2);
}

static struct kunit_case hwtw_wheel_cases[] = {
	KUNIT_CASE_PARAM(tick_is_rounded_up, shift_gen_params),
	KUNIT_CASE_PARAM(fires_at_level_boundaries, shift_gen_params),
	KUNIT_CASE_PARAM(largest_deadlines_wait, shift_gen_params),
	KUNIT_CASE(past_deadlines_are_due),
	KUNIT_CASE(old_clock_changes_nothing),
	KUNIT_CASE(due_timer_moves_the_clock),
	KUNIT_CASE(clock_jumps),
	KUNIT_CASE(next_is_never_late),
	KUNIT_CASE(moved_timers_fire_when_they_should),
	KUNIT_CASE(cancel_touches_no_bucket),
	KUNIT_CASE(ghosts_wake_once),
	KUNIT_CASE(armed_for_ever_does_not_drift),
	KUNIT_CASE_PARAM(cascade_stops_anywhere, cascade_gen_params),
	KUNIT_CASE(levels_cascade_in_order),
	KUNIT_CASE(late_timers_are_in_order),
	KUNIT_CASE(part_of_a_read_keeps_order),
	KUNIT_CASE(take_stops_at_a_tick),
	KUNIT_CASE(peek_changes_nothing),
	KUNIT_CASE(peek_skips_stale_claims),
	KUNIT_CASE(part_is_taken),
	KUNIT_CASE(part_of_late_timers_is_taken),
	KUNIT_CASE(overruns_count_when_taken),
	KUNIT_CASE(cancel_is_final_in_each_state),
	KUNIT_CASE(batch_stops_where_it_has_to),
	KUNIT_CASE(due_timer_waits_for_the_wheel),
	KUNIT_CASE(periods_do_not_drift),
	KUNIT_CASE(period_passed_meanwhile),
	KUNIT_CASE(periods_saturate),
	KUNIT_CASE(burst_is_drained_early),
	KUNIT_CASE(clock_set_back),
	KUNIT_CASE(clock_set_back_keeps_order),
	KUNIT_CASE(cancels_are_told_apart),
	{}
};

static struct kunit_suite hwtw_wheel_suite = {
	.name = "hwtw_wheel",
	.init = hwtw_kunit_init,
	.exit = hwtw_kunit_exit,
	.test_cases = hwtw_wheel_cases,
};

kunit_test_suite(hwtw_wheel_suite);

MODULE_DESCRIPTION("Tests of time, order and delivery in the hwtw timer wheel");
MODULE_LICENSE("GPL");
