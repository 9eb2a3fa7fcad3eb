// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: instances
 *
 * An instance has a wheel for each CPU on which timers were armed. A timer
 * stays on its wheel for life: its id names the wheel, and the wheel's lock is
 * the only one that it takes to reach it, from whatever CPU.
 *
 * Each wheel has an hrtimer in soft mode, queued for the next bucket that has
 * claims. It is not bound to a CPU: the timer core moves it away from isolated
 * and from dying ones.
 *
 * What happens when a timer expires: hwtw_timer_fn() lets the wheel run, which
 * moves the timer's claim to the log of unread timers; hwtw_cpu_unlock() adds
 * to the instance's count of records, queues the hrtimer for what comes next
 * and wakes the readers; hwtw_take() takes the records of all wheels in order;
 * hwtw_take_done() lets the timers go once they are copied out.
 */
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

#include "hwtw.h"
#include "hwtw_compat.h"

/* Claims a run may look at, and pieces of memory a close may free, in one go. */
#define HWTW_RUN_BUDGET		1024
#define HWTW_FREE_BUDGET	256

/* Live timers of all instances. */
static atomic_long_t hwtw_total;

static u64 hwtw_now(const struct hwtw *hwtw)
{
	return hwtw->clockid == CLOCK_BOOTTIME ? ktime_get_boottime() : ktime_get();
}

/*
 * Wheels
 */

static void hwtw_wake(struct hwtw *hwtw)
{
	if (wq_has_sleeper(&hwtw->wait))
		wake_up_interruptible_poll(&hwtw->wait, EPOLLIN | EPOLLRDNORM);
	kill_fasync(&hwtw->fasync, SIGIO, POLL_IN);
}

static void hwtw_cpu_lock(struct hwtw_cpu *cpu)
	__acquires(&cpu->lock)
{
	spin_lock_bh(&cpu->lock);
}

/* Let others see what was done under the lock. */
static void hwtw_cpu_unlock(struct hwtw_cpu *cpu)
	__releases(&cpu->lock)
{
	struct hwtw_wheel *w = &cpu->wheel;
	struct hwtw *hwtw = cpu->hwtw;
	long more = (long)w->unread - cpu->counted;

	if (more) {
		WRITE_ONCE(cpu->counted, w->unread);
		atomic_long_add(more, &hwtw->unread);
	}
	if (w->next < cpu->programmed) {
		u64 last = KTIME_MAX >> w->shift;

		cpu->programmed = w->next;
		hrtimer_start(&cpu->timer, min(w->next, last) << w->shift,
			      HRTIMER_MODE_ABS_SOFT);
	}
	spin_unlock_bh(&cpu->lock);
	if (more > 0)
		hwtw_wake(hwtw);
}

static enum hrtimer_restart hwtw_timer_fn(struct hrtimer *timer)
{
	struct hwtw_cpu *cpu = container_of(timer, struct hwtw_cpu, timer);

	hwtw_cpu_lock(cpu);
	/* If more is due, the unlock queues the timer at once, behind others. */
	hwtw_wheel_run(&cpu->wheel, hwtw_now(cpu->hwtw), HWTW_RUN_BUDGET);
	cpu->programmed = U64_MAX;
	hwtw_cpu_unlock(cpu);
	return HRTIMER_NORESTART;
}

static struct hwtw_cpu *hwtw_cpu_create(struct hwtw *hwtw, unsigned int nr)
{
	struct hwtw_cpu *cpu = kvzalloc(sizeof(*cpu), GFP_KERNEL_ACCOUNT);

	if (!cpu)
		return NULL;
	mutex_lock(&hwtw->setup);
	if (hwtw->cpu[nr]) {
		kvfree(cpu);
		cpu = hwtw->cpu[nr];
	} else {
		spin_lock_init(&cpu->lock);
		hrtimer_setup(&cpu->timer, hwtw_timer_fn, hwtw->clockid, HRTIMER_MODE_ABS_SOFT);
		cpu->programmed = U64_MAX;
		cpu->hwtw = hwtw;
		hwtw_wheel_init(&cpu->wheel, nr, hwtw->shift, hwtw_now(hwtw));
		/* Pairs with hwtw_cpu(). */
		smp_store_release(&hwtw->cpu[nr], cpu);
	}
	mutex_unlock(&hwtw->setup);
	return cpu;
}

static struct hwtw_cpu *hwtw_cpu(const struct hwtw *hwtw, unsigned int nr)
{
	/* Pairs with hwtw_cpu_create(). */
	return smp_load_acquire(&hwtw->cpu[nr]);
}

/* The wheel of an id, or NULL. */
static struct hwtw_cpu *hwtw_cpu_of(const struct hwtw *hwtw, u64 id)
{
	u32 nr = hwtw_id_wheel(id);

	if (nr >= hwtw->nr_cpus)
		return NULL;
	return hwtw_cpu(hwtw, array_index_nospec(nr, hwtw->nr_cpus));
}

/* The wheel to arm timers on, or NULL without memory. */
static struct hwtw_cpu *hwtw_cpu_local(struct hwtw *hwtw)
{
	unsigned int nr = raw_smp_processor_id() % hwtw->nr_cpus;
	struct hwtw_cpu *cpu = hwtw_cpu(hwtw, nr);

	return likely(cpu) ? cpu : hwtw_cpu_create(hwtw, nr);
}

/*
 * Memory
 */

/* Pieces of memory on their way to a wheel. */
struct hwtw_piece {
	struct hwtw_piece *next;
};

static bool hwtw_pieces_alloc(struct hwtw_piece **list, unsigned int nr, size_t size)
{
	while (nr--) {
		struct hwtw_piece *piece = kmalloc(size, GFP_KERNEL_ACCOUNT);

		if (!piece)
			return false;
		piece->next = *list;
		*list = piece;
	}
	return true;
}

static void *hwtw_piece_get(struct hwtw_piece **list)
{
	struct hwtw_piece *piece = *list;

	if (piece)
		*list = piece->next;
	return piece;
}

/*
 * Get what the wheel needs. The lock is dropped meanwhile, so the need may be
 * another one afterwards. Nothing is lost if only a part could be had.
 */
static int hwtw_cpu_refill(struct hwtw_cpu *cpu, const struct hwtw_need *need)
	__must_hold(&cpu->lock)
{
	struct hwtw_piece *chunks = NULL, *pages = NULL, *lates = NULL;
	struct hwtw_wheel *w = &cpu->wheel;
	u64 *dir = NULL;
	bool complete;
	void *p;

	hwtw_cpu_unlock(cpu);
	complete = hwtw_pieces_alloc(&chunks, need->chunks, sizeof(struct hwtw_chunk)) &&
		   hwtw_pieces_alloc(&lates, need->late, sizeof(struct hwtw_late)) &&
		   hwtw_pieces_alloc(&pages, need->pages, sizeof(struct hwtw_page));
	if (complete && need->dir) {
		dir = kvcalloc(need->dir, sizeof(*dir), GFP_KERNEL_ACCOUNT);
		complete = dir;
	}
	hwtw_cpu_lock(cpu);

	while ((p = hwtw_piece_get(&chunks)))
		hwtw_wheel_give_chunk(w, p);
	while ((p = hwtw_piece_get(&lates)))
		hwtw_wheel_give_late(w, p);
	if (dir && hwtw_wheel_give_dir(w, dir, need->dir))
		dir = NULL;
	while ((p = hwtw_piece_get(&pages))) {
		if (!hwtw_wheel_give_page(w, p))
			kfree(p);
	}
	if (unlikely(dir)) {
		hwtw_cpu_unlock(cpu);
		kvfree(dir);
		hwtw_cpu_lock(cpu);
	}
	return complete ? 0 : -ENOMEM;
}

static int hwtw_cpu_prepare(struct hwtw_cpu *cpu, unsigned int arms, unsigned int rearms)
	__must_hold(&cpu->lock)
{
	struct hwtw_need need;
	int err;

	while ((err = hwtw_wheel_need(&cpu->wheel, arms, rearms, &need)) > 0) {
		err = hwtw_cpu_refill(cpu, &need);
		if (err)
			return err;
	}
	return err;
}

/*
 * Limits
 */

/* Take up to @nr of what the limit leaves. */
static unsigned int hwtw_limit_take(atomic_long_t *count, u64 max, unsigned int nr)
{
	long old = atomic_long_read(count);
	u64 got;

	do {
		got = (u64)old < max ? min_t(u64, max - old, nr) : 0;
		if (!got)
			return 0;
	} while (!atomic_long_try_cmpxchg(count, &old, old + got));
	return got;
}

static void hwtw_limits_give(struct hwtw *hwtw, unsigned int nr)
{
	if (!nr)
		return;
	atomic_long_sub(nr, &hwtw->timers);
	atomic_long_sub(nr, &hwtw_total);
}

/* Take up to @nr timers of what the limits leave. */
static unsigned int hwtw_limits_take(struct hwtw *hwtw, unsigned int nr)
{
	unsigned int total = hwtw_limit_take(&hwtw_total, READ_ONCE(hwtw_max_timers_total), nr);
	unsigned int got = hwtw_limit_take(&hwtw->timers, READ_ONCE(hwtw->max_timers), total);

	if (unlikely(got < total))
		atomic_long_sub(total - got, &hwtw_total);
	return got;
}

/*
 * Operations
 */

/**
 * struct hwtw_ops - operations under way
 * @hwtw: the instance
 * @cpu: the wheel that is locked, or NULL
 * @local: the wheel that timers are armed on, or NULL as long as none was
 * @now: time at which the operations happen, 0: not known yet
 * @credit: timers that the limits grant
 * @arms: operations to come that arm a timer
 * @others: operations to come that don't, this one included
 * @done: operations done on @cpu since it was locked
 * @prepared: @cpu has the memory for all to come
 */
struct hwtw_ops {
	struct hwtw *hwtw;
	struct hwtw_cpu *cpu;
	struct hwtw_cpu *local;
	u64 now;
	unsigned int credit;
	unsigned int arms;
	unsigned int others;
	unsigned int done;
	bool prepared;
};

/*
 * The lock is kept from one operation to the next on the same wheel. Sparse
 * can't follow that and is told that it is dropped.
 */
static void hwtw_ops_leave(struct hwtw_ops *ops)
{
	if (!ops->cpu)
		return;
	__acquire(&ops->cpu->lock);
	hwtw_wheel_tidy(&ops->cpu->wheel, ops->done);
	hwtw_cpu_unlock(ops->cpu);
	ops->cpu = NULL;
}

static void hwtw_ops_enter(struct hwtw_ops *ops, struct hwtw_cpu *cpu)
{
	if (ops->cpu == cpu)
		return;
	hwtw_ops_leave(ops);
	hwtw_cpu_lock(cpu);
	__release(&cpu->lock);
	ops->cpu = cpu;
	ops->prepared = false;
	ops->done = 0;
}

/* See that there is memory, at least for the operation at hand. */
static int hwtw_ops_prepare(struct hwtw_ops *ops)
{
	int err;

	if (likely(ops->prepared))
		return 0;
	err = hwtw_cpu_prepare(ops->cpu, ops->arms, ops->others);
	if (err)
		return hwtw_cpu_prepare(ops->cpu, 1, 1);
	ops->prepared = true;
	return 0;
}

/* The wheel has to run before the timer, which is due already, can be armed. */
static void hwtw_ops_catch_up(struct hwtw_ops *ops)
	__must_hold(&ops->cpu->lock)
{
	struct hwtw_cpu *cpu = ops->cpu;

	ops->prepared = false;
	while (ops->now = hwtw_now(ops->hwtw),
	       hwtw_wheel_run(&cpu->wheel, ops->now, HWTW_RUN_BUDGET)) {
		hwtw_cpu_unlock(cpu);
		cond_resched();
		hwtw_cpu_lock(cpu);
	}
}

static int hwtw_op_check(const struct hwtw *hwtw, const struct hwtw_timer *timer)
{
	if (timer->time_ns > HWTW_TIME_MAX_NS)
		return -EINVAL;
	if (timer->interval_ns &&
	    (timer->interval_ns < 1ULL << hwtw->shift || timer->interval_ns > HWTW_TIME_MAX_NS))
		return -EINVAL;
	return 0;
}

/* Arm a new timer on @cpu, or re-arm one of its timers. */
static int hwtw_op_arm(struct hwtw_ops *ops, struct hwtw_cpu *cpu, struct hwtw_op *op)
{
	struct hwtw_timer *timer = &op->timer;
	u64 expires = timer->time_ns;
	int state;

	if (!ops->now)
		ops->now = hwtw_now(ops->hwtw);
	if (!(timer->flags & HWTW_TIMER_ABS))
		expires = min(expires + ops->now, HWTW_TIME_MAX_NS);
	for (;;) {
		hwtw_ops_enter(ops, cpu);
		state = hwtw_ops_prepare(ops);
		if (unlikely(state))
			return state;
		if (op->opcode == HWTW_OP_ARM)
			state = hwtw_wheel_arm(&cpu->wheel, ops->now, expires,
					       timer->interval_ns, timer->user_data, &timer->id);
		else
			state = hwtw_wheel_rearm(&cpu->wheel, ops->now, timer->id, expires,
						 timer->interval_ns);
		if (likely(state != -EAGAIN))
			return state;
		hwtw_ops_catch_up(ops);
	}
}

static int hwtw_op_run(struct hwtw_ops *ops, struct hwtw_op *op)
{
	struct hwtw_timer *timer = &op->timer;
	struct hwtw *hwtw = ops->hwtw;
	struct hwtw_cpu *cpu;
	int state;

	if (timer->flags & ~HWTW_TIMER_ABS)
		return -EINVAL;

	if (op->opcode == HWTW_OP_ARM) {
		if (hwtw_op_check(hwtw, timer))
			return -EINVAL;
		if (!ops->credit)
			ops->credit = hwtw_limits_take(hwtw, 1);
		if (!ops->credit)
			return -ENOSPC;
		if (!ops->local)
			ops->local = hwtw_cpu_local(hwtw);
		if (!ops->local)
			return -ENOMEM;
		state = hwtw_op_arm(ops, ops->local, op);
		if (state > 0)
			ops->credit--;
	} else {
		if (op->opcode < HWTW_OP_ARM || op->opcode > HWTW_OP_QUERY)
			return -EINVAL;
		if (op->opcode == HWTW_OP_REARM && hwtw_op_check(hwtw, timer))
			return -EINVAL;
		cpu = hwtw_cpu_of(hwtw, timer->id);
		if (!cpu)
			return -ENOENT;
		if (op->opcode == HWTW_OP_REARM) {
			state = hwtw_op_arm(ops, cpu, op);
		} else if (op->opcode == HWTW_OP_CANCEL) {
			hwtw_ops_enter(ops, cpu);
			state = hwtw_wheel_cancel(&cpu->wheel, timer->id);
			if (state > 0)
				ops->credit++;
		} else {
			hwtw_ops_enter(ops, cpu);
			return hwtw_wheel_query(&cpu->wheel, timer->id, timer);
		}
	}
	if (state < 0)
		return state;
	timer->state = state;
	return 0;
}

/**
 * hwtw_run_ops - carry out operations in order
 * @hwtw: the instance
 * @op: the operations, which get their results
 * @nr: their number; the caller bounds it
 */
void hwtw_run_ops(struct hwtw *hwtw, struct hwtw_op *op, unsigned int nr)
{
	struct hwtw_ops ops = { .hwtw = hwtw };
	unsigned int i;

	for (i = 0; i < nr; i++)
		ops.arms += op[i].opcode == HWTW_OP_ARM;
	ops.others = nr - ops.arms;
	if (ops.arms)
		ops.credit = hwtw_limits_take(hwtw, ops.arms);
	for (i = 0; i < nr; i++) {
		op[i].result = hwtw_op_run(&ops, &op[i]);
		ops.done++;
	}
	hwtw_ops_leave(&ops);
	hwtw_limits_give(hwtw, ops.credit);
}

/*
 * Delivery
 */

/*
 * The wheel whose unread timers come first, and the tick up to which they come
 * before those of the others.
 */
static struct hwtw_cpu *hwtw_take_from(struct hwtw *hwtw, u64 *last_tick)
{
	u64 first = U64_MAX, second = U64_MAX;
	struct hwtw_cpu *from = NULL;
	unsigned int nr, found = 0;

	for (nr = 0; nr < hwtw->nr_cpus; nr++) {
		struct hwtw_cpu *cpu = hwtw_cpu(hwtw, nr);

		if (cpu && READ_ONCE(cpu->counted)) {
			from = cpu;
			found++;
		}
	}
	*last_tick = U64_MAX;
	if (found < 2)
		return from;
	for (nr = 0; nr < hwtw->nr_cpus; nr++) {
		struct hwtw_cpu *cpu = hwtw_cpu(hwtw, nr);
		u64 tick;

		if (!cpu || !READ_ONCE(cpu->counted))
			continue;
		hwtw_cpu_lock(cpu);
		tick = hwtw_wheel_unread_tick(&cpu->wheel);
		hwtw_cpu_unlock(cpu);
		if (tick < first) {
			second = first;
			first = tick;
			from = cpu;
		} else if (tick < second) {
			second = tick;
		}
	}
	*last_tick = second;
	return from;
}

/**
 * hwtw_take - take records for delivery
 * @hwtw: the instance
 * @ev: where they go
 * @max: room in @ev
 *
 * Each has to be handed to hwtw_take_done().
 *
 * Return: the number of records, in order.
 */
unsigned int hwtw_take(struct hwtw *hwtw, struct hwtw_event *ev, unsigned int max)
{
	unsigned int taken = 0;

	while (taken < max && hwtw_readable(hwtw)) {
		struct hwtw_cpu *cpu;
		u64 last_tick;

		cpu = hwtw_take_from(hwtw, &last_tick);
		if (!cpu)
			break;
		hwtw_cpu_lock(cpu);
		taken += hwtw_wheel_take(&cpu->wheel, hwtw_now(hwtw), last_tick,
					 ev + taken, max - taken);
		hwtw_cpu_unlock(cpu);
		cond_resched();
	}
	return taken;
}

/* Records at the front, or at the end, of @ev that are of one wheel. */
static unsigned int hwtw_same_wheel(const struct hwtw_event *ev, unsigned int nr, bool end)
{
	u32 wheel = hwtw_id_wheel(ev[end ? nr - 1 : 0].id);
	unsigned int same = 1;

	while (same < nr && hwtw_id_wheel(ev[end ? nr - 1 - same : same].id) == wheel)
		same++;
	return same;
}

/**
 * hwtw_take_done - records were delivered, or could not be
 * @hwtw: the instance
 * @ev: records of hwtw_take(), as they were
 * @delivered: how many of them were delivered
 * @taken: how many there are
 */
void hwtw_take_done(struct hwtw *hwtw, const struct hwtw_event *ev,
		    unsigned int delivered, unsigned int taken)
{
	struct hwtw_cpu *cpu;
	unsigned int nr;

	/* The last ones first: each goes in front of what was put back before. */
	for (; taken > delivered; taken -= nr) {
		nr = hwtw_same_wheel(ev + delivered, taken - delivered, true);
		cpu = hwtw_cpu_of(hwtw, ev[taken - 1].id);
		hwtw_cpu_lock(cpu);
		hwtw_wheel_put_back(&cpu->wheel, ev + taken - nr, nr);
		hwtw_cpu_unlock(cpu);
	}
	for (; delivered; delivered -= nr, ev += nr) {
		unsigned int gone;

		nr = hwtw_same_wheel(ev, delivered, false);
		cpu = hwtw_cpu_of(hwtw, ev->id);
		hwtw_cpu_lock(cpu);
		gone = hwtw_wheel_commit(&cpu->wheel, ev, nr);
		hwtw_wheel_tidy(&cpu->wheel, nr);
		hwtw_cpu_unlock(cpu);
		hwtw_limits_give(hwtw, gone);
	}
}

/*
 * Instances
 */

/**
 * hwtw_create - make an instance
 *
 * Return: the instance, on CLOCK_MONOTONIC with the default tick and limit, or
 * NULL without memory.
 */
struct hwtw *hwtw_create(void)
{
	unsigned int nr_cpus = min(nr_cpu_ids, HWTW_WHEELS_MAX);
	struct hwtw *hwtw;

	hwtw = kvzalloc(struct_size(hwtw, cpu, nr_cpus), GFP_KERNEL_ACCOUNT);
	if (!hwtw)
		return NULL;
	mutex_init(&hwtw->setup);
	init_waitqueue_head(&hwtw->wait);
	hwtw->clockid = CLOCK_MONOTONIC;
	hwtw->shift = ilog2(HWTW_TICK_DEFAULT_NS);
	hwtw->max_timers = READ_ONCE(hwtw_max_timers);
	hwtw->nr_cpus = nr_cpus;
	return hwtw;
}

/**
 * hwtw_destroy - free an instance that nobody uses any more
 * @hwtw: the instance
 */
void hwtw_destroy(struct hwtw *hwtw)
{
	unsigned int nr;

	for (nr = 0; nr < hwtw->nr_cpus; nr++) {
		struct hwtw_cpu *cpu = hwtw->cpu[nr];

		if (!cpu)
			continue;
		hrtimer_cancel(&cpu->timer);
		while (hwtw_wheel_destroy(&cpu->wheel, HWTW_FREE_BUDGET))
			cond_resched();
		kvfree(cpu);
	}
	atomic_long_sub(atomic_long_read(&hwtw->timers), &hwtw_total);
	kvfree(hwtw);
}

/**
 * hwtw_setup - choose clock, tick and limit
 * @hwtw: the instance
 * @setup: as userspace gave it
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP or -EBUSY, see HWTW_IOC_SETUP.
 */
int hwtw_setup(struct hwtw *hwtw, const struct hwtw_setup *setup)
{
	u64 tick_ns = setup->tick_ns ?: HWTW_TICK_DEFAULT_NS;
	u64 max_timers = READ_ONCE(hwtw_max_timers);
	unsigned int nr;
	int err = 0;

	if (setup->flags || tick_ns < HWTW_TICK_MIN_NS || tick_ns > HWTW_TICK_MAX_NS)
		return -EINVAL;
	if (setup->clockid == CLOCK_REALTIME)
		return -EOPNOTSUPP;
	if (setup->clockid != CLOCK_MONOTONIC && setup->clockid != CLOCK_BOOTTIME)
		return -EINVAL;
	if (setup->max_timers)
		max_timers = min(max_timers, setup->max_timers);

	mutex_lock(&hwtw->setup);
	for (nr = 0; nr < hwtw->nr_cpus; nr++) {
		if (hwtw->cpu[nr])
			err = -EBUSY;
	}
	if (!err) {
		hwtw->clockid = setup->clockid;
		hwtw->shift = ilog2(tick_ns);
		WRITE_ONCE(hwtw->max_timers, max_timers);
	}
	mutex_unlock(&hwtw->setup);
	return err;
}
