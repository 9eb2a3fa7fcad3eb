// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: the wheel against a model that is too simple to be wrong
 *
 * The model is an array of timers that is scanned for all it wants to know.
 * Both are given the same random operations, on a clock that stands still in
 * between. Delays and steps of the clock mostly lie on and around the
 * boundaries of the levels, since that is where wheels have their bugs.
 *
 * A failure tells seed and step. With the seed as module parameter the same
 * operations are done again.
 */
#include "../hwtw_wheel.c"
#include "../hwtw_memory.c"

#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include "hwtw_kunit.h"

static unsigned long long seed;
module_param(seed, ullong, 0444);
MODULE_PARM_DESC(seed, "seed of the random operations, 0: a random one");

static unsigned int steps = 200000;
module_param(steps, uint, 0444);
MODULE_PARM_DESC(steps, "operations for each tick shift");

static unsigned int check = 64;
module_param(check, uint, 0444);
MODULE_PARM_DESC(check, "look at the whole structure every so many operations");

#define MODEL_TIMERS	1024
#define MODEL_DEAD	256
/* Most records of a read. */
#define MODEL_READ	96
#define MODEL_INDICES	(64 << HWTW_PLACE_BITS)
/* So many operations does a wheel live, on average. */
#define MODEL_LIFE	6000
/* Stale claims beyond the valid ones: to begin a sweep, and until it is through. */
#define MODEL_STALE	(HWTW_STALE_MIN + 4096)

enum model_state { MODEL_FREE, MODEL_PENDING, MODEL_UNREAD };

/**
 * struct model_timer - a timer as the model sees it
 * @id: its id
 * @expires: deadline in ns
 * @interval: 0 or interval in ns
 * @user_data: what its record has to say
 * @due: the tick in which it expires
 * @armed: when it was armed, see &struct model.order
 * @expired: when it expired
 * @state: enum model_state
 * @moved: re-armed, or a later period: arming order says nothing about it
 * @was_due: it was due when it was armed
 * @overdue: a period that had passed when the record before it was taken
 */
struct model_timer {
	u64 id;
	u64 expires;
	u64 interval;
	u64 user_data;
	u64 due;
	u64 armed;
	u64 expired;
	u8 state;
	bool moved;
	bool was_due;
	bool overdue;
};

/**
 * struct model - the model and the wheel
 * @test: the test
 * @w: the wheel
 * @rnd: the source of all choices
 * @seed: what it was begun with
 * @shift: a tick is 2^shift ns
 * @start: tick at which the wheel was made
 * @step: operations so far
 * @op: the present one
 * @arg: what it was given
 * @failed: something was wrong
 * @now: the clock, in ns
 * @known: the latest time that the wheel was told
 * @clk: the wheel's clock after the last operation
 * @order: counts what happens
 * @partial: the last bucket in which a run came to the end of its budget
 * @exact: give the wheel no chunk to spare
 * @wraps: the numbers of claims come round, and late timers are sorted by them
 * @rewinds: the clock may be set back
 * @disorder: it was, while there were unread records
 * @prepared: the wheel was given what it needs for the operations that follow
 * @tidy: operations per hwtw_wheel_tidy()
 * @untidy: operations since
 * @seq: the number of the newest claim then
 * @wanted: so many timers are aimed at
 * @live: timers that are not free
 * @pending: timers by state
 * @unread: timers by state
 * @batch: records that are looked at
 * @again: and once more
 * @armed: timers armed so far
 * @rearmed: times a timer was re-armed
 * @cancelled: timers cancelled
 * @delivered: records delivered
 * @overruns: of those
 * @nr_dead: entries of @dead in use
 * @dead: ids that are gone
 * @gen: the last generation of each slot
 * @timer: the timers
 */
struct model {
	struct kunit *test;
	struct hwtw_wheel *w;
	struct rnd_state rnd;
	u64 seed;
	u32 shift;
	u64 start;
	u64 step;
	const char *op;
	u64 arg[4];
	bool failed;
	u64 now;
	u64 known;
	u64 clk;
	u64 order;
	u64 partial;
	bool exact;
	bool wraps;
	bool rewinds;
	bool disorder;
	bool prepared;
	unsigned int tidy;
	unsigned int untidy;
	u32 seq;
	unsigned int wanted;
	unsigned int live;
	unsigned int pending;
	unsigned int unread;
	struct hwtw_batch batch;
	struct hwtw_batch again;
	u64 armed;
	u64 rearmed;
	u64 cancelled;
	u64 delivered;
	u64 overruns;
	unsigned int nr_dead;
	u64 dead[MODEL_DEAD];
	u32 gen[MODEL_INDICES];
	struct model_timer timer[MODEL_TIMERS];
};

static void model_fail(struct model *m, int line, const char *what)
{
	if (m->failed)
		return;
	m->failed = true;
	KUNIT_FAIL(m->test,
		   "line %d: not so: %s\nseed=%llu shift=%u start=%#llx step=%llu op=%s(%#llx, %#llx, %#llx, %#llx) now=%#llx clk=%#llx next=%#llx wake=%#llx partial=%#llx pending=%u/%u unread=%u/%u",
		   line, what, m->seed, m->shift, m->start, m->step, m->op, m->arg[0], m->arg[1],
		   m->arg[2], m->arg[3], m->now, m->w->clk, m->w->next, m->w->wake, m->partial,
		   m->w->pending, m->pending, m->w->unread, m->unread);
}

#define MODEL_MUST(m, cond)						\
do {									\
	if (!(cond))							\
		model_fail(m, __LINE__, #cond);				\
} while (0)

/*
 * Choices
 */

static u32 model_below(struct model *m, u32 end)
{
	return (u64)prandom_u32_state(&m->rnd) * end >> 32;
}

static bool model_one_in(struct model *m, u32 n)
{
	return !model_below(m, n);
}

static u64 model_random64(struct model *m)
{
	u64 high = prandom_u32_state(&m->rnd);

	return high << 32 | prandom_u32_state(&m->rnd);
}

/* A number of ticks, mostly small and on or around the size of a bucket. */
static u64 model_ticks(struct model *m, unsigned int levels)
{
	unsigned int level = 0;
	u64 size;

	while (level < levels && model_below(m, 5) < 2)
		level++;
	size = 1ULL << level * HWTW_LEVEL_BITS;
	switch (model_below(m, 8)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return size - 1;
	case 3:
	case 4:
		return size;
	case 5:
		return size + 1;
	case 6:
		return size * model_below(m, 130) + model_below(m, 3) - 1;
	default:
		return model_random64(m) & (size * 64 - 1);
	}
}

static u64 model_add(struct model *m, u64 ns, u64 ticks)
{
	u64 limit = (HWTW_TIME_MAX_NS - ns) >> m->shift;

	return (s64)ticks < 0 || ticks > limit ? HWTW_TIME_MAX_NS : ns + (ticks << m->shift);
}

/* Some ns more or less. */
static u64 model_jitter(struct model *m, u64 ns)
{
	switch (model_below(m, 8)) {
	case 0:
		ns++;
		break;
	case 1:
		ns -= !!ns;
		break;
	case 2:
		ns += model_random64(m) & ((1ULL << m->shift) - 1);
		break;
	case 3:
		ns = ns >> m->shift << m->shift;
		break;
	case 4:
		ns |= (1ULL << m->shift) - 1;
		break;
	}
	return min(ns, HWTW_TIME_MAX_NS);
}

static u64 model_deadline(struct model *m)
{
	u64 base = m->now;

	switch (model_below(m, 32)) {
	case 0:
		return HWTW_TIME_MAX_NS - model_below(m, 2);
	case 1:
		return model_random64(m) >> (1 + model_below(m, 63));
	case 2:
	case 3:
	case 4:
		base -= min(base, model_ticks(m, 3) << m->shift);
		return model_jitter(m, base);
	case 5:
	case 6:
		/* As the wheel sees it. */
		base = min(m->w->clk << m->shift, HWTW_TIME_MAX_NS);
		break;
	case 7:
	case 8:
	case 9:
		/* The beginning of a bucket. */
		base = base >> m->shift >> 6 << 6 << m->shift;
		break;
	}
	return model_jitter(m, model_add(m, base, model_ticks(m, 7)));
}

static u64 model_interval(struct model *m)
{
	u64 ns;

	if (!model_one_in(m, 4))
		return 0;
	ns = model_jitter(m, model_add(m, 0, model_ticks(m, 7)));
	return max(ns, 1ULL << m->shift);
}

/* Callers look at the clock before they have the lock, unless it may be set back. */
static u64 model_now(struct model *m)
{
	u64 now = m->now;

	if (!m->rewinds && model_one_in(m, 8))
		now -= min(now, model_ticks(m, 2) << m->shift);
	m->known = max(m->known, now);
	return now;
}

static struct model_timer *model_pick(struct model *m)
{
	unsigned int i = model_below(m, MODEL_TIMERS);

	if (!m->live)
		return NULL;
	while (m->timer[i].state == MODEL_FREE)
		i = (i + 1) % MODEL_TIMERS;
	return &m->timer[i];
}

/*
 * The model
 */

static u64 model_tick(const struct model *m, u64 ns)
{
	return (ns >> m->shift) + !!(ns & ((1ULL << m->shift) - 1));
}

/* The bucket of its tick is being read, and nobody knows how far. */
static bool model_unclear(const struct model *m, const struct model_timer *t)
{
	return t->state == MODEL_PENDING && t->due == m->partial && m->partial > m->w->clk;
}

static void model_expire(struct model *m, struct model_timer *t)
{
	t->state = MODEL_UNREAD;
	t->expired = ++m->order;
	m->pending--;
	m->unread++;
}

/* What the wheel's clock passed has expired, and nothing else. */
static void model_sync(struct model *m)
{
	struct hwtw_wheel *w = m->w;
	unsigned int i, unclear = 0;
	u64 first = U64_MAX;

	MODEL_MUST(m, w->clk >= m->clk);
	MODEL_MUST(m, w->clk <= max(m->known >> m->shift, m->start));
	m->clk = w->clk;
	for (i = 0; i < MODEL_TIMERS; i++) {
		struct model_timer *t = &m->timer[i];

		if (t->state != MODEL_PENDING)
			continue;
		if (t->due <= w->clk) {
			model_expire(m, t);
			continue;
		}
		if (model_unclear(m, t)) {
			unclear++;
			/* It may have expired, and a sweep have emptied the bucket. */
			if (hwtw_kunit_state(w, t->id) == HWTW_EXPIRED)
				continue;
		}
		first = min(first, t->due);
	}
	MODEL_MUST(m, w->next <= first);
	MODEL_MUST(m, w->next > w->clk);
	MODEL_MUST(m, w->wake <= w->next);
	MODEL_MUST(m, w->pending <= m->pending && w->pending + unclear >= m->pending);
	MODEL_MUST(m, w->pending + w->unread == m->pending + m->unread);
	MODEL_MUST(m, w->armed == m->armed);
	MODEL_MUST(m, w->rearmed == m->rearmed);
	MODEL_MUST(m, w->cancelled == m->cancelled);
	MODEL_MUST(m, w->delivered == m->delivered);
	MODEL_MUST(m, w->overruns == m->overruns);
	if (!m->unread)
		m->disorder = false;
}

static void model_state_must(struct model *m, const struct model_timer *t, int state)
{
	if (model_unclear(m, t))
		MODEL_MUST(m, state == HWTW_PENDING || state == HWTW_EXPIRED);
	else if (t->state == MODEL_PENDING)
		MODEL_MUST(m, state == HWTW_PENDING);
	else
		MODEL_MUST(m, state == HWTW_EXPIRED);
}

static void model_forget(struct model *m, struct model_timer *t)
{
	unsigned int i = m->nr_dead < MODEL_DEAD ? m->nr_dead++ : model_below(m, MODEL_DEAD);

	m->dead[i] = t->id;
	m->pending -= t->state == MODEL_PENDING;
	m->unread -= t->state == MODEL_UNREAD;
	t->state = MODEL_FREE;
	m->live--;
}

/* An id that was never there before. */
static void model_id_must(struct model *m, u64 id)
{
	u32 index = id & HWTW_INDEX_MASK;
	u32 gen = id >> HWTW_GEN_SHIFT;

	MODEL_MUST(m, id);
	MODEL_MUST(m, hwtw_id_wheel(id) == m->w->nr);
	MODEL_MUST(m, index < MODEL_INDICES);
	if (m->failed)
		return;
	MODEL_MUST(m, gen > m->gen[index]);
	m->gen[index] = gen;
}

static void model_refill(struct model *m, unsigned int arms, unsigned int rearms)
{
	if (!m->prepared)
		hwtw_kunit_refill(m->test, m->w, arms, rearms, m->exact);
}

/* Returns true if there may be more to expire. */
static bool model_run_some(struct model *m, u64 now, unsigned int budget)
{
	struct hwtw_wheel *w = m->w;
	bool more = hwtw_wheel_run(w, now, budget);

	if (more) {
		MODEL_MUST(m, w->next <= now >> m->shift);
		m->partial = w->next;
	} else {
		MODEL_MUST(m, w->clk >= now >> m->shift);
		MODEL_MUST(m, w->next > now >> m->shift);
	}
	return more;
}

/* The wheel has to run first. */
static void model_catch_up(struct model *m, u64 now)
{
	m->prepared = false;
	while (model_run_some(m, now, 1 + model_below(m, 100)) && !m->failed)
		;
	model_sync(m);
}

/* It has a new deadline and is in the wheel. */
static void model_inserted(struct model *m, struct model_timer *t, bool due)
{
	t->armed = ++m->order;
	t->due = model_tick(m, t->expires);
	t->was_due = due;
	t->overdue = false;
	t->state = MODEL_PENDING;
	m->pending++;
	if (due)
		model_expire(m, t);
}

/* The argument of an operation, by deadline or by delay. */
static struct hwtw_timer model_timer_of(struct model *m, u64 now, u64 id, u64 expires,
					u64 interval)
{
	bool delay = expires >= now && model_one_in(m, 2);

	return (struct hwtw_timer) {
		.id		= id,
		.time_ns	= delay ? expires - now : expires,
		.interval_ns	= interval,
		.flags		= delay ? 0 : HWTW_TIMER_ABS,
	};
}

static void model_arm(struct model *m)
{
	struct hwtw_wheel *w = m->w;
	u64 expires = model_deadline(m), interval = model_interval(m), now = model_now(m);
	struct hwtw_timer timer = model_timer_of(m, now, 0, expires, interval);
	unsigned int tries = 0, i = 0;
	struct model_timer *t;
	bool due;
	int state;

	if (m->live == MODEL_TIMERS)
		return;
	while (m->timer[i].state != MODEL_FREE)
		i++;
	t = &m->timer[i];
	m->op = "arm";
	m->arg[0] = now;
	m->arg[1] = expires;
	m->arg[2] = interval;
	t->user_data = model_random64(m) << 16 | i;
	for (;;) {
		model_refill(m, 1, 0);
		due = expires <= now || model_tick(m, expires) <= m->w->clk;
		timer.user_data = t->user_data;
		state = hwtw_kunit_try(w, now, HWTW_OP_ARM, &timer);
		if (state != -EAGAIN)
			break;
		MODEL_MUST(m, due);
		MODEL_MUST(m, tries++ < 2);
		if (m->failed)
			return;
		model_catch_up(m, now);
	}
	MODEL_MUST(m, state == (due ? HWTW_EXPIRED : HWTW_PENDING));
	model_id_must(m, timer.id);
	t->id = timer.id;
	t->expires = expires;
	t->interval = interval;
	t->moved = false;
	m->live++;
	m->armed++;
	model_inserted(m, t, due);
}

static u64 model_new_deadline(struct model *m, const struct model_timer *t)
{
	u64 ticks = model_ticks(m, 4) << m->shift;

	switch (model_below(m, 8)) {
	case 0:
		return t->expires;
	case 1:
	case 2:
		return model_jitter(m, t->expires - min(t->expires, ticks));
	case 3:
	case 4:
		return model_jitter(m, model_add(m, t->expires, ticks >> m->shift));
	case 5:
		return model_jitter(m, m->now - min(m->now, ticks));
	default:
		return model_deadline(m);
	}
}

static void model_rearm(struct model *m)
{
	struct hwtw_wheel *w = m->w;
	struct model_timer *t = model_pick(m);
	struct hwtw_timer timer;
	unsigned int tries = 0;
	u64 expires, interval, now;
	bool due;
	int state;

	if (!t)
		return;
	expires = model_new_deadline(m, t);
	interval = model_interval(m);
	now = model_now(m);
	m->op = "rearm";
	m->arg[0] = now;
	m->arg[1] = t->id;
	m->arg[2] = expires;
	m->arg[3] = interval;
	timer = model_timer_of(m, now, t->id, expires, interval);
	for (;;) {
		model_refill(m, 0, 1);
		due = expires <= now || model_tick(m, expires) <= m->w->clk;
		state = hwtw_kunit_try(w, now, HWTW_OP_REARM, &timer);
		if (state != -EAGAIN)
			break;
		MODEL_MUST(m, due);
		MODEL_MUST(m, tries++ < 2);
		if (m->failed)
			return;
		model_catch_up(m, now);
	}
	model_state_must(m, t, state);
	m->rearmed++;
	m->pending -= t->state == MODEL_PENDING;
	m->unread -= t->state == MODEL_UNREAD;
	t->expires = expires;
	t->interval = interval;
	t->moved = true;
	model_inserted(m, t, due);
}

static void model_cancel(struct model *m, struct model_timer *t)
{
	int state;

	if (!t)
		return;
	m->op = "cancel";
	m->arg[0] = t->id;
	state = hwtw_kunit_cancel(m->w, t->id);
	model_state_must(m, t, state);
	m->cancelled++;
	model_forget(m, t);
}

static void model_query_one(struct model *m, const struct model_timer *t)
{
	struct hwtw_timer timer = { .id = t->id };
	int state = hwtw_kunit_try(m->w, 0, HWTW_OP_QUERY, &timer);

	model_state_must(m, t, state);
	MODEL_MUST(m, timer.id == t->id);
	MODEL_MUST(m, timer.user_data == t->user_data);
	MODEL_MUST(m, timer.time_ns == t->expires);
	MODEL_MUST(m, timer.interval_ns == t->interval);
	MODEL_MUST(m, timer.flags == HWTW_TIMER_ABS);
}

static void model_query_all(struct model *m)
{
	unsigned int i;

	for (i = 0; i < MODEL_TIMERS; i++) {
		if (m->timer[i].state != MODEL_FREE)
			model_query_one(m, &m->timer[i]);
	}
}

/* Ids that are gone stay gone. */
static void model_dead(struct model *m)
{
	u64 id = model_random64(m);

	m->op = "dead";
	if (m->nr_dead)
		id = m->dead[model_below(m, m->nr_dead)];
	m->arg[0] = id;
	m->known = m->now;
	MODEL_MUST(m, hwtw_kunit_state(m->w, id) == -ENOENT);
	MODEL_MUST(m, hwtw_kunit_cancel(m->w, id) == -ENOENT);
	MODEL_MUST(m, hwtw_kunit_rearm(m->test, m->w, m->now, id, HWTW_TIME_MAX_NS, 0) == -ENOENT);
}

/* All timers are listed once, as they are. */
static void model_list(struct model *m)
{
	bool cancel = m->live < 40 && model_one_in(m, 4);
	unsigned int nr, i, listed = 0, wanted = m->live;
	struct hwtw_timer timer[16];
	u32 index = 0;

	m->op = "list";
	m->arg[0] = cancel;
	while (index != U32_MAX && !m->failed) {
		u32 from = index;

		nr = hwtw_wheel_list(m->w, &index, timer, 1 + model_below(m, ARRAY_SIZE(timer)));
		MODEL_MUST(m, index > from);
		for (i = 0; i < nr && !m->failed; i++) {
			struct model_timer *t = &m->timer[timer[i].user_data & (MODEL_TIMERS - 1)];

			MODEL_MUST(m, timer[i].id == t->id);
			MODEL_MUST(m, timer[i].user_data == t->user_data);
			MODEL_MUST(m, timer[i].time_ns == t->expires);
			MODEL_MUST(m, timer[i].interval_ns == t->interval);
			MODEL_MUST(m, timer[i].flags == HWTW_TIMER_ABS);
			model_state_must(m, t, timer[i].state);
			if (cancel) {
				m->cancelled++;
				model_forget(m, t);
			}
		}
		if (cancel)
			hwtw_wheel_cancel(m->w, timer, nr);
		listed += nr;
	}
	MODEL_MUST(m, listed == wanted);
}

static void model_run(struct model *m, bool complete)
{
	static const unsigned int budgets[] = { 0, 1, 1, 2, 3, 15, 16, 1000 };
	unsigned int pieces = 1 + model_below(m, 4);
	u64 now = model_now(m);

	m->op = "run";
	m->arg[0] = now;
	m->arg[1] = complete;
	if (complete) {
		model_catch_up(m, now);
		return;
	}
	while (pieces--) {
		unsigned int budget = budgets[model_below(m, ARRAY_SIZE(budgets))];

		m->arg[2] = budget;
		model_run_some(m, now, budget);
		model_sync(m);
	}
}

static void model_advance(struct model *m)
{
	unsigned int i;
	u64 first = U64_MAX;

	m->op = "advance";
	switch (model_below(m, 4)) {
	case 0:
		/* To the next deadline, or just before it. */
		for (i = 0; i < MODEL_TIMERS; i++) {
			if (m->timer[i].state == MODEL_PENDING)
				first = min(first, m->timer[i].due);
		}
		if (first <= HWTW_TIME_MAX_NS >> m->shift &&
		    (first << m->shift) - m->now <= 64ULL << 6 << m->shift)
			m->now = max(m->now, (first << m->shift) - model_below(m, 2));
		break;
	case 1:
		m->now = min(m->now + model_below(m, 1 << m->shift), HWTW_TIME_MAX_NS);
		break;
	default:
		m->now = max(m->now, model_jitter(m, model_add(m, m->now, model_ticks(m, 6))));
	}
	model_run(m, !model_one_in(m, 3));
}

/* The clock is set back, once more perhaps while the wheel follows it. */
static void model_set_back(struct model *m)
{
	u64 clk = m->w->clk;
	unsigned int i;

	if (!m->rewinds)
		return;
	m->op = "set_back";
	for (i = 0; i < MODEL_TIMERS; i++) {
		struct model_timer *t = &m->timer[i];

		if (model_unclear(m, t) && hwtw_kunit_state(m->w, t->id) == HWTW_EXPIRED)
			model_expire(m, t);
	}
	m->partial = 0;
	m->now -= min(m->now, model_ticks(m, 5) << m->shift);
	m->now = model_jitter(m, m->now);
	m->arg[0] = m->now;
	while (hwtw_wheel_rewind(m->w, m->now, model_below(m, 100))) {
		if (model_one_in(m, 8))
			m->now -= min(m->now, model_ticks(m, 2) << m->shift);
	}
	m->known = m->now;
	m->start = min(m->start, m->now >> m->shift);
	MODEL_MUST(m, m->w->clk <= m->now >> m->shift);
	m->clk = m->w->clk;
	if (m->clk == clk)
		return;
	m->disorder = m->disorder || m->unread;
	/* A period that had passed already is to come again. */
	for (i = 0; i < MODEL_TIMERS; i++) {
		struct model_timer *t = &m->timer[i];

		if (t->state != MODEL_PENDING)
			continue;
		t->due = max(min(t->due, model_tick(m, t->expires)), m->clk + 1);
		t->overdue = t->due != model_tick(m, t->expires);
	}
}

/*
 * Delivery
 */

/**
 * struct model_taken - order of the records of a tick
 * @tick: the tick
 * @plain: the last one in arming order that was armed in time
 * @due: the last one that was due when it was armed
 */
struct model_taken {
	u64 tick;
	u64 plain;
	u64 due;
};

/* It may come behind those that were taken. */
static void model_order_must(struct model *m, const struct model_timer *t,
			     const struct model_taken *last)
{
	u64 tick = model_tick(m, t->expires);

	if (t->overdue)
		return;
	if (m->disorder)
		return;
	MODEL_MUST(m, tick >= last->tick);
	if (t->moved || tick != last->tick)
		return;
	MODEL_MUST(m, t->armed > last->plain);
	/* One that was due at once does not wait for those that are pending. */
	if (t->was_due ? !m->wraps : t->expired < last->due)
		MODEL_MUST(m, t->armed > last->due);
}

/* It was taken, or comes before others that are. */
static void model_passed(struct model *m, const struct model_timer *t, struct model_taken *last)
{
	u64 tick = model_tick(m, t->expires);

	if (t->overdue)
		return;
	if (tick != last->tick)
		*last = (struct model_taken) { .tick = tick };
	if (!t->moved && t->was_due)
		last->due = max(last->due, t->armed);
	else if (!t->moved)
		last->plain = t->armed;
}

static struct model_timer *model_timer_told(struct model *m, const struct hwtw_event *ev)
{
	return &m->timer[ev->user_data & (MODEL_TIMERS - 1)];
}

static void model_record(struct model *m, const struct hwtw_event *ev, u64 now, u64 last_tick,
			 struct model_taken *last)
{
	struct model_timer *t = model_timer_told(m, ev);
	u64 overruns = 0;

	MODEL_MUST(m, t->state == MODEL_UNREAD || model_unclear(m, t));
	MODEL_MUST(m, ev->user_data == t->user_data);
	MODEL_MUST(m, ev->id == t->id);
	MODEL_MUST(m, ev->expires_ns == t->expires);
	MODEL_MUST(m, ev->flags == 0);
	if (t->interval && now > t->expires)
		overruns = min_t(u64, div64_u64(now - t->expires, t->interval), U32_MAX);
	MODEL_MUST(m, ev->overruns == overruns);
	MODEL_MUST(m, model_tick(m, t->expires) <= last_tick);
	if (m->failed)
		return;
	if (t->state == MODEL_PENDING)
		model_expire(m, t);
	model_order_must(m, t, last);
	model_passed(m, t, last);
}

/* The batch holds so many of the same records as another one, from there on. */
static bool model_same(const struct hwtw_batch *a, const struct hwtw_batch *b, unsigned int from)
{
	unsigned int nr = a->nr - from;

	return b->nr >= nr && !memcmp(&a->slot[from], b->slot, nr * sizeof(*a->slot)) &&
	       !memcmp(&a->ev[from], b->ev, nr * sizeof(*a->ev));
}

/* It is pending again, at the next tick at the earliest. */
static void model_go_on(struct model *m, struct model_timer *t, u64 periods)
{
	if (div64_u64(HWTW_TIME_MAX_NS - t->expires, t->interval) < periods)
		t->expires = HWTW_TIME_MAX_NS;
	else
		t->expires += t->interval * periods;
	t->due = max(model_tick(m, t->expires), m->w->clk + 1);
	t->overdue = t->due != model_tick(m, t->expires);
	t->moved = true;
	t->state = MODEL_PENDING;
	m->unread--;
	m->pending++;
}

/* The first @nr records of the batch were delivered. */
static void model_take(struct model *m, unsigned int nr, struct model_taken *last)
{
	unsigned int i, gone = 0;

	for (i = 0; i < nr; i++) {
		const struct hwtw_event *ev = &m->batch.ev[i];
		struct model_timer *t = model_timer_told(m, ev);

		model_passed(m, t, last);
		m->delivered++;
		m->overruns += ev->overruns;
		if (t->interval) {
			model_go_on(m, t, ev->overruns + 1ULL);
			continue;
		}
		gone++;
		model_forget(m, t);
	}
	MODEL_MUST(m, hwtw_wheel_take(m->w, &m->batch, nr) == gone);
}

/*
 * Look at some records and take them, as far as they can be delivered. Returns
 * how many were, and sets *@all to false if there were more, or may be.
 */
static unsigned int model_read_some(struct model *m, u64 now, u64 last_tick, unsigned int max,
				    struct model_taken *last, bool *all)
{
	u64 dropped = m->w->dropped;
	unsigned int nr = hwtw_wheel_peek(m->w, now, last_tick, &m->batch, max);
	struct model_taken seen = *last;
	unsigned int delivered = nr, i;

	MODEL_MUST(m, nr == m->batch.nr);
	MODEL_MUST(m, nr <= max && nr <= HWTW_CHUNK_CLAIMS);
	for (i = 0; i < nr && !m->failed; i++)
		model_record(m, &m->batch.ev[i], now, last_tick, &seen);
	if (m->failed || !nr) {
		*all = !nr && m->w->dropped - dropped < HWTW_TAKE_BUDGET / 2;
		return 0;
	}
	if (model_one_in(m, 4)) {
		/* Looking changes nothing. */
		hwtw_wheel_peek(m->w, now, last_tick, &m->again, max);
		MODEL_MUST(m, m->again.nr == nr && m->again.claims == m->batch.claims);
		MODEL_MUST(m, model_same(&m->batch, &m->again, 0));
	}
	if (model_one_in(m, 3))
		delivered = model_below(m, nr + 1);
	model_take(m, delivered, last);
	if (delivered < nr) {
		/* The others come again, in the same order. */
		hwtw_wheel_peek(m->w, now, last_tick, &m->again, max);
		MODEL_MUST(m, model_same(&m->batch, &m->again, delivered));
		*all = false;
	}
	return delivered;
}

static void model_read(struct model *m)
{
	unsigned int max = model_one_in(m, 2) ? 1 + model_below(m, 4) :
						1 + model_below(m, MODEL_READ);
	u64 now = model_now(m), last_tick = U64_MAX;
	unsigned int left = max, some, i;
	struct model_taken last = { };
	bool all = true;

	if (model_one_in(m, 4)) {
		u64 first = hwtw_wheel_unread_tick(m->w);

		last_tick = first == U64_MAX ? 0 : first + model_below(m, 3);
	}
	m->op = "read";
	m->arg[0] = now;
	m->arg[1] = last_tick;
	m->arg[2] = max;
	do {
		some = model_read_some(m, now, last_tick, left, &last, &all);
		left -= some;
	} while (some && all && left && !m->failed);
	for (i = 0; i < MODEL_TIMERS && !m->failed; i++) {
		struct model_timer *t = &m->timer[i];

		if (t->state != MODEL_UNREAD)
			continue;
		/* It is not one of those that had to be taken. */
		model_order_must(m, t, &last);
		if (left && all && !m->disorder && !t->overdue)
			MODEL_MUST(m, model_tick(m, t->expires) > last_tick);
	}
}

/*
 * Steps
 */

static void model_tidy(struct model *m)
{
	struct hwtw_wheel *w = m->w;

	m->op = "tidy";
	/* There are not enough of them for it to begin often. */
	if (!w->sweep.active && model_one_in(m, 20))
		w->sweep.seq = w->seq - HWTW_SWEEP_SEQS - 1;
	hwtw_kunit_tidy(w, m->seq, m->untidy);
	m->untidy = 0;
	m->seq = w->seq;
	MODEL_MUST(m, w->claims <= 4 * hwtw_valid(w) + MODEL_STALE);
}

/* Operations of one call: the wheel gets what it needs for all of them first. */
static void model_submit(struct model *m)
{
	unsigned int arms = model_below(m, 33), rearms = model_below(m, 33);

	arms = min(arms, MODEL_TIMERS - m->live);
	hwtw_kunit_refill(m->test, m->w, arms, rearms, m->exact);
	m->prepared = true;
	while (arms + rearms && !m->failed) {
		if (model_below(m, arms + rearms) < arms) {
			model_arm(m);
			arms--;
		} else {
			model_rearm(m);
			rearms--;
		}
		if (model_one_in(m, 4))
			model_cancel(m, model_pick(m));
		m->untidy++;
		model_sync(m);
	}
	m->prepared = false;
}

static void model_step(struct model *m)
{
	unsigned int dice = model_below(m, 91);

	if (dice < 26) {
		if (m->live < m->wanted || model_one_in(m, 8))
			model_arm(m);
		else
			model_cancel(m, model_pick(m));
	} else if (dice < 46) {
		model_rearm(m);
	} else if (dice < 54) {
		model_cancel(m, model_pick(m));
	} else if (dice < 66) {
		model_advance(m);
	} else if (dice < 74) {
		model_run(m, false);
	} else if (dice < 86) {
		model_read(m);
	} else if (dice < 88) {
		struct model_timer *t = model_pick(m);

		m->op = "query";
		if (t)
			model_query_one(m, t);
	} else if (dice < 90) {
		model_dead(m);
	} else if (model_one_in(m, 3)) {
		model_list(m);
	} else if (model_one_in(m, 4)) {
		model_set_back(m);
	} else if (model_one_in(m, 2)) {
		model_submit(m);
	} else {
		static const unsigned int wanted[] = { 3, 30, 150, 400, MODEL_TIMERS };

		m->wanted = wanted[model_below(m, ARRAY_SIZE(wanted))];
		if (model_one_in(m, 4)) {
			while (m->live > m->wanted)
				model_cancel(m, model_pick(m));
		}
	}
	model_sync(m);
	if (++m->untidy >= m->tidy)
		model_tidy(m);
}

/* Where the clock starts: around 0, 2^32, each 64^k and the end of time. */
static u64 model_start(struct model *m, unsigned int nr)
{
	u64 last = HWTW_TIME_MAX_NS >> m->shift, tick;

	nr %= HWTW_LEVELS + 3;
	if (nr == 0)
		tick = 1ULL << 32;
	else if (nr <= HWTW_LEVELS)
		tick = 1ULL << (nr - 1) * HWTW_LEVEL_BITS;
	else if (nr == HWTW_LEVELS + 1)
		tick = 0;
	else
		tick = last - model_ticks(m, 4);
	if (tick > last)
		tick = last / 2 + 1;
	if (model_one_in(m, 2))
		tick -= min_t(u64, tick, model_below(m, 70));
	else
		tick += min_t(u64, last - tick, model_below(m, 3));
	return tick;
}

/* A new wheel; @nr chooses where its clock starts. */
static void model_begin(struct model *m, unsigned int nr)
{
	static const unsigned int tidy[] = { 1, 1, 8, 64 };

	memset(m->gen, 0, sizeof(m->gen));
	memset(m->timer, 0, sizeof(m->timer));
	m->nr_dead = 0;
	m->live = 0;
	m->pending = 0;
	m->unread = 0;
	m->untidy = 0;
	m->start = model_start(m, nr);
	m->now = model_jitter(m, m->start << m->shift);
	m->start = m->now >> m->shift;
	m->known = m->now;
	m->clk = m->start;
	m->partial = 0;
	m->exact = nr & 1;
	m->tidy = tidy[model_below(m, ARRAY_SIZE(tidy))];
	m->wanted = 30;
	memset(m->w, 0, sizeof(*m->w));
	hwtw_wheel_init(m->w, model_below(m, HWTW_WHEELS_MAX), m->shift, m->now);
	m->rewinds = model_one_in(m, 2);
	m->disorder = false;
	m->w->rewinds = m->rewinds;
	m->armed = 0;
	m->rearmed = 0;
	m->cancelled = 0;
	m->delivered = 0;
	m->overruns = 0;
	m->wraps = model_one_in(m, 2);
	if (m->wraps)
		m->w->seq = U32_MAX - 1 - model_below(m, MODEL_LIFE);
	m->w->sweep.seq = m->w->seq;
	m->seq = m->w->seq;
}

/* An operation, and a look at what it did. */
static void model_next(struct model *m)
{
	const char *why;

	model_step(m);
	m->step++;
	if (m->failed || (check > 1 && m->step % check))
		return;
	why = hwtw_kunit_check(m->w);
	if (why)
		model_fail(m, __LINE__, why);
	model_query_all(m);
}

/* What is broken is better not walked. */
static void model_end(struct model *m)
{
	if (!m->failed)
		hwtw_kunit_destroy(m->w);
}

/* A wheel from its beginning to its end. */
static void model_life(struct model *m, unsigned int nr, unsigned int life)
{
	model_begin(m, nr);
	while (life-- && !m->failed) {
		model_next(m);
		if (!(m->step % 256))
			cond_resched();
		/* Time is over. */
		if (m->now == HWTW_TIME_MAX_NS && model_one_in(m, 200))
			break;
	}
	model_end(m);
}

/*
 * Anything at all that a few operations together get wrong (D-0, B-12, B-61): an event
 * too early, too late, twice or never, or a structure that is not as it says (D-10).
 */
static void hwtw_model(struct kunit *test)
{
	const u32 *shift = test->param_value;
	struct model *m;
	unsigned int nr;

	m = kvzalloc(sizeof(*m), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m);
	m->test = test;
	m->w = hwtw_kunit_new(test, 0, *shift, 0);
	m->shift = *shift;
	m->seed = seed ?: get_random_u64();
	m->op = "none";
	prandom_seed_state(&m->rnd, m->seed);
	kunit_info(test, "seed=%llu steps=%u check=%u", m->seed, steps, check);
	for (nr = model_below(m, 64); m->step < steps && !m->failed; nr++)
		model_life(m, nr, min_t(u64, steps - m->step, model_below(m, 2 * MODEL_LIFE)));
	kvfree(m);
}

static const u32 model_shifts[] = { HWTW_TICK_SHIFT_MIN, 20, HWTW_TICK_SHIFT_MAX };

static void model_shift_desc(const u32 *shift, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "ticks of 2^%u ns", *shift);
}

KUNIT_ARRAY_PARAM(model_shift, model_shifts, model_shift_desc);

static struct kunit_case hwtw_model_cases[] = {
	KUNIT_CASE_PARAM(hwtw_model, model_shift_gen_params),
	{}
};

static struct kunit_suite hwtw_model_suite = {
	.name = "hwtw_model",
	.test_cases = hwtw_model_cases,
};

kunit_test_suite(hwtw_model_suite);

MODULE_DESCRIPTION("Random operations on the hwtw timer wheel against a model");
MODULE_LICENSE("GPL");
