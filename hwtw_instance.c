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
 * and wakes the readers; hwtw_deliver() copies the records of all wheels out in
 * order, and lets the timers go.
 */
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "hwtw.h"
#include "hwtw_compat.h"
#include "hwtw_trace.h"

/* Claims a run may look at, and pieces of memory a close may free, in one go. */
#define HWTW_RUN_BUDGET		1024
#define HWTW_FREE_BUDGET	256
/*
 * Claims a run may look at when those before it took so long, with no rest
 * between them.
 */
#define HWTW_BUSY_BUDGET	15
#define HWTW_BUSY_NS		NSEC_PER_MSEC
#define HWTW_REST_NS		(10 * NSEC_PER_USEC)
/* Timers reported in one go. */
#define HWTW_LIST_CHUNK		64
/* Pieces delivered in one go. */
#define HWTW_READ_PIECES	4
/* Operations after which the wheel is tidied up. */
#define HWTW_TIDY_OPS		32

/* Paid for by who arms, who is told by ENOMEM: no need to tell the log. */
#define HWTW_GFP		(GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/* Live timers of all instances. */
static atomic_long_t hwtw_total;
/* Instances made so far. */
static atomic_t hwtw_instances;

static u64 hwtw_now(const struct hwtw *hwtw)
{
	switch (hwtw->clockid) {
	case CLOCK_REALTIME:
		return ktime_get_real();
	case CLOCK_BOOTTIME:
		return ktime_get_boottime();
	default:
		return ktime_get();
	}
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

/* Queue the hrtimer, to run the wheel at a certain time. */
static void hwtw_cpu_program(struct hwtw_cpu *cpu, u64 expires)
{
	cpu->programmed = cpu->wheel.wake;
	hrtimer_start(&cpu->timer, expires, HRTIMER_MODE_ABS_SOFT);
}

/* Let others see what was done under the lock. */
static void hwtw_cpu_unlock(struct hwtw_cpu *cpu)
	__releases(&cpu->lock)
{
	struct hwtw_wheel *w = &cpu->wheel;
	struct hwtw *hwtw = cpu->hwtw;
	long more = (long)w->unread - cpu->counted;

	if (more > 0) {
		WRITE_ONCE(cpu->counted, w->unread);
		/* Never more in all than in the parts: hwtw_deliver() would look in vain. */
		smp_mb__before_atomic();
		atomic_long_add(more, &hwtw->unread);
	} else if (more) {
		atomic_long_add(more, &hwtw->unread);
		/* As above. */
		smp_mb__after_atomic();
		WRITE_ONCE(cpu->counted, w->unread);
	}
	if (w->wake < cpu->programmed)
		hwtw_cpu_program(cpu, min(w->wake, KTIME_MAX >> w->shift) << w->shift);
	spin_unlock_bh(&cpu->lock);
	if (more > 0)
		hwtw_wake(hwtw);
}

/*
 * See whether the clock was set back. Returns true if the wheel has not followed
 * it altogether: call again. @now becomes the present time, for which it has.
 */
static bool hwtw_cpu_rewind(struct hwtw_cpu *cpu, u64 *now)
	__must_hold(&cpu->lock)
{
	u64 clk = cpu->wheel.clk;
	bool more;

	if (likely(!cpu->wheel.rewinds))
		return false;
	*now = hwtw_now(cpu->hwtw);
	more = hwtw_wheel_rewind(&cpu->wheel, *now, HWTW_RUN_BUDGET);
	/* If it was to go on soon, it was by the old clock. */
	if (cpu->wheel.clk < clk)
		cpu->programmed = U64_MAX;
	return more;
}

/* Let the wheel follow its clock, before it is used. */
static void hwtw_cpu_settle(struct hwtw_cpu *cpu)
	__must_hold(&cpu->lock)
{
	u64 now;

	while (hwtw_cpu_rewind(cpu, &now)) {
		hwtw_cpu_unlock(cpu);
		cond_resched();
		hwtw_cpu_lock(cpu);
	}
}

/*
 * Runs on a CPU since it last had a rest. Linux runs all hrtimers that are due
 * one after the other, with nobody in between: so the wheels of a CPU, however
 * many, share what one may take. Only the hrtimers of the CPU get here, one at a
 * time.
 */
struct hwtw_load {
	u64 end;
	u64 took;
};

static DEFINE_PER_CPU(struct hwtw_load, hwtw_load);

static bool hwtw_busy(u64 begin)
{
	struct hwtw_load *load = this_cpu_ptr(&hwtw_load);

	if (begin - load->end > HWTW_REST_NS)
		load->took = 0;
	return load->took >= HWTW_BUSY_NS;
}

static void hwtw_busy_add(u64 begin, u64 took)
{
	struct hwtw_load *load = this_cpu_ptr(&hwtw_load);

	load->took += took;
	load->end = begin + took;
}

static enum hrtimer_restart hwtw_timer_fn(struct hrtimer *timer)
{
	struct hwtw_cpu *cpu = container_of(timer, struct hwtw_cpu, timer);
	u64 begin, now, took;
	bool busy, more;

	hwtw_cpu_lock(cpu);
	begin = ktime_get();
	busy = hwtw_busy(begin);
	cpu->programmed = U64_MAX;
	now = hwtw_now(cpu->hwtw);
	more = hwtw_cpu_rewind(cpu, &now);
	if (!more) {
		hwtw_wheel_run(&cpu->wheel, now, busy ? HWTW_BUSY_BUDGET : HWTW_RUN_BUDGET);
		more = cpu->wheel.wake <= now >> cpu->wheel.shift;
	}
	took = ktime_get() - begin;
	hwtw_busy_add(begin, took);
	cpu->runs++;
	cpu->longest_run_ns = max(cpu->longest_run_ns, took);
	trace_hwtw_run(&cpu->wheel, now, took, more);
	if (more) {
		/*
		 * Go on as soon as others had as much time. A time that has
		 * passed would not do: the timer core would come back at once,
		 * before other timers and without leaving the softirq. Time may
		 * have jumped meanwhile.
		 */
		hwtw_cpu_program(cpu, hwtw_now(cpu->hwtw) +
				 (busy ? HWTW_BUSY_NS : clamp_t(u64, took, 1, HWTW_BUSY_NS)));
	}
	hwtw_cpu_unlock(cpu);
	return HRTIMER_NORESTART;
}

static struct hwtw_cpu *hwtw_cpu_create(struct hwtw *hwtw, unsigned int nr)
{
	struct hwtw_cpu *cpu = kvzalloc(sizeof(*cpu), HWTW_GFP);

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
		cpu->wheel.instance = hwtw->nr;
		cpu->wheel.rewinds = hwtw->clockid == CLOCK_REALTIME;
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
		struct hwtw_piece *piece = size == HWTW_PAGE_BYTES ?
					   hwtw_page_alloc(HWTW_GFP) : kmalloc(size, HWTW_GFP);

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
	struct hwtw_piece *blocks = NULL, *pages = NULL, *lates = NULL;
	struct hwtw_wheel *w = &cpu->wheel;
	u64 *dir = NULL;
	bool complete;
	void *p;

	hwtw_cpu_unlock(cpu);
	complete = hwtw_pieces_alloc(&blocks, need->blocks, sizeof(struct hwtw_block)) &&
		   hwtw_pieces_alloc(&lates, need->late, sizeof(struct hwtw_late)) &&
		   hwtw_pieces_alloc(&pages, need->pages, sizeof(struct hwtw_page));
	if (complete && need->dir) {
		dir = kvcalloc(need->dir, sizeof(*dir), HWTW_GFP);
		complete = dir;
	}
	hwtw_cpu_lock(cpu);

	while ((p = hwtw_piece_get(&blocks)))
		hwtw_wheel_give_block(w, p);
	while ((p = hwtw_piece_get(&lates)))
		hwtw_wheel_give_late(w, p);
	if (dir && hwtw_wheel_give_dir(w, dir, need->dir))
		dir = NULL;
	while ((p = hwtw_piece_get(&pages))) {
		if (!hwtw_wheel_give_page(w, p))
			hwtw_page_free(p);
	}
	if (unlikely(dir)) {
		hwtw_cpu_unlock(cpu);
		kvfree(dir);
		hwtw_cpu_lock(cpu);
	}
	return complete ? 0 : -ENOMEM;
}

/*
 * See that the wheel can take some operations: that it has followed its clock,
 * has the memory and, if @run, has expired what is due by @now. The lock may be
 * dropped meanwhile, but is not since all that was seen.
 */
static int hwtw_cpu_prepare(struct hwtw_cpu *cpu, unsigned int arms, unsigned int adds,
			    bool run, u64 *now)
	__must_hold(&cpu->lock)
{
	struct hwtw_need need;
	int err;

	for (;;) {
		while (hwtw_cpu_rewind(cpu, now) ||
		       (run && hwtw_wheel_run(&cpu->wheel, *now, HWTW_RUN_BUDGET))) {
			hwtw_cpu_unlock(cpu);
			cond_resched();
			hwtw_cpu_lock(cpu);
		}
		err = hwtw_wheel_need(&cpu->wheel, arms, adds, &need);
		if (err <= 0)
			return err;
		err = hwtw_cpu_refill(cpu, &need);
		if (err)
			return err;
	}
}

static noinline void hwtw_cpu_tidy_now(struct hwtw_cpu *cpu)
	__must_hold(&cpu->lock)
{
	unsigned int ops = cpu->ops;
	/* Claims are numbered in turn; periods and moves do so, too. */
	unsigned int adds = min(cpu->wheel.seq - cpu->tidied, ops);

	cpu->tidied = cpu->wheel.seq;
	cpu->ops = 0;
	if (likely(!hwtw_wheel_untidy(&cpu->wheel)))
		return;
	while (hwtw_wheel_tidy(&cpu->wheel, adds, ops)) {
		hwtw_cpu_unlock(cpu);
		cond_resched();
		hwtw_cpu_lock(cpu);
		hwtw_cpu_settle(cpu);
	}
}

/* Tidy up after some operations. */
static __always_inline void hwtw_cpu_tidy(struct hwtw_cpu *cpu, unsigned int ops)
	__must_hold(&cpu->lock)
{
	cpu->ops += ops;
	/* A single one is not worth a look, unless it was the last timer's. */
	if (unlikely(cpu->ops >= HWTW_TIDY_OPS || !hwtw_valid(&cpu->wheel)))
		hwtw_cpu_tidy_now(cpu);
}

/*
 * Limits
 */

/* Take up to @nr of what the limit leaves. */
static noinline unsigned int hwtw_limit_take_some(atomic_long_t *count, u64 max, unsigned int nr)
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

static unsigned int hwtw_limit_take(atomic_long_t *count, u64 max, unsigned int nr)
{
	long old = atomic_long_read(count);

	if (likely((u64)old + nr <= max && atomic_long_try_cmpxchg(count, &old, old + nr)))
		return nr;
	return hwtw_limit_take_some(count, max, nr);
}

static void hwtw_limits_give(struct hwtw *hwtw, unsigned int nr)
{
	if (!nr)
		return;
	atomic_long_sub(nr, &hwtw->timers);
	atomic_long_sub(nr, &hwtw_total);
}

/*
 * Take up to @nr timers of what the limits leave. An instance at its own limit
 * takes nothing from the others, not even for a moment.
 */
static unsigned int hwtw_limits_take(struct hwtw *hwtw, unsigned int nr)
{
	unsigned int got, total;

	got = hwtw_limit_take(&hwtw->timers, READ_ONCE(hwtw->max_timers), nr);
	total = hwtw_limit_take(&hwtw_total, READ_ONCE(hwtw_max_timers_total), got);
	if (unlikely(total < got))
		atomic_long_sub(got - total, &hwtw->timers);
	return total;
}

/*
 * Operations
 */

/* The number of the wheel for timers armed here. */
static unsigned int hwtw_this_cpu(const struct hwtw *hwtw)
{
	unsigned int cpu = raw_smp_processor_id();

	return likely(cpu < hwtw->nr_cpus) ? cpu : cpu % hwtw->nr_cpus;
}

/* The wheel that an operation is for, or NULL: then it has its result. */
static __always_inline struct hwtw_cpu *hwtw_op_cpu(struct hwtw *hwtw, struct hwtw_op *op)
{
	bool arm = op->opcode == HWTW_OP_ARM;
	struct hwtw_cpu *cpu = arm ? hwtw_cpu(hwtw, hwtw_this_cpu(hwtw)) :
				     hwtw_cpu_of(hwtw, op->timer.id);

	if (likely(cpu))
		return cpu;
	/* The first timer fixes clock and tick. A bad one is none. */
	op->result = hwtw_op_check(op, READ_ONCE(hwtw->shift));
	if (op->result)
		return NULL;
	op->result = arm ? -ENOMEM : -ENOENT;
	return arm ? hwtw_cpu_create(hwtw, hwtw_this_cpu(hwtw)) : NULL;
}

/*
 * Operations that @cpu may be given in one go. New timers go to the wheel of the
 * CPU that this runs on, or those of a tick would not come in order.
 */
static unsigned int hwtw_ops_for(const struct hwtw_cpu *cpu, const struct hwtw_op *op,
				 unsigned int nr)
{
	unsigned int i = 1;

	if (nr == 1 || op->opcode == HWTW_OP_ARM || cpu->wheel.nr == hwtw_this_cpu(cpu->hwtw))
		return nr;
	while (i < nr && op[i].opcode != HWTW_OP_ARM)
		i++;
	return i;
}

/*
 * Operations that may add a claim, beside those that arm with the credit there
 * is: a cancel adds to it, and what follows may arm with that.
 */
static unsigned int hwtw_adds(const struct hwtw_op *op, unsigned int nr, unsigned int credit)
{
	unsigned int adds = 0;

	if (nr <= credit)
		return 0;
	while (nr--)
		adds += op[nr].opcode == HWTW_OP_ARM || op[nr].opcode == HWTW_OP_REARM;
	return adds - min(adds, credit);
}

static unsigned int hwtw_cpu_ops(struct hwtw_cpu *cpu, u64 now, unsigned int *credit,
				 struct hwtw_op *op, unsigned int nr)
	__must_hold(&cpu->lock)
{
	return nr == 1 ? hwtw_wheel_op(&cpu->wheel, now, credit, op) :
			 hwtw_wheel_ops(&cpu->wheel, now, credit, op, nr);
}

/* Whether memory may be missing for some operations. A cancel alone needs none. */
static __always_inline bool hwtw_ops_short(const struct hwtw_wheel *w, const struct hwtw_op *op,
					   unsigned int nr, unsigned int credit)
{
	if (nr == 1 && op->opcode > HWTW_OP_REARM)
		return false;
	return hwtw_wheel_short(w, credit, nr - min(nr, credit));
}

/* See that the wheel can take one operation, or report why not. */
static bool hwtw_cpu_prepare_op(struct hwtw_cpu *cpu, struct hwtw_op *op, bool run, u64 *now)
	__must_hold(&cpu->lock)
{
	int err = hwtw_cpu_prepare(cpu, op->opcode == HWTW_OP_ARM, op->opcode == HWTW_OP_REARM,
				   run, now);

	if (err)
		op->result = err;
	return !err;
}

/* Carry out operations as far as they are for the same wheel. Returns how many. */
static __always_inline unsigned int hwtw_run_some(struct hwtw_cpu *cpu, u64 now,
						  unsigned int *credit, struct hwtw_op *op,
						  unsigned int nr)
{
	struct hwtw_wheel *w = &cpu->wheel;
	unsigned int done;

	nr = hwtw_ops_for(cpu, op, nr);
	hwtw_cpu_lock(cpu);
	if (unlikely(w->rewinds || hwtw_ops_short(w, op, nr, *credit)) &&
	    hwtw_cpu_prepare(cpu, *credit, hwtw_adds(op, nr, *credit), false, &now)) {
		/* At least the first one. Some need no memory at all. */
		nr = 1;
		if (!hwtw_cpu_prepare_op(cpu, op, false, &now)) {
			hwtw_cpu_unlock(cpu);
			return 1;
		}
	}
	done = hwtw_cpu_ops(cpu, now, credit, op, nr);
	if (unlikely(!done)) {
		/* It is due: what was due before has to expire first. */
		now = hwtw_now(cpu->hwtw);
		done = hwtw_cpu_prepare_op(cpu, op, true, &now) ?
		       hwtw_wheel_op(w, now, credit, op) : 1;
	}
	hwtw_cpu_tidy(cpu, done);
	hwtw_cpu_unlock(cpu);
	return done;
}

/* Operations in a row that arm a timer, the first of which does. */
static unsigned int hwtw_arms(const struct hwtw_op *op, unsigned int nr)
{
	unsigned int arms = 1;

	while (arms < nr && op[arms].opcode == HWTW_OP_ARM)
		arms++;
	return arms;
}

/* One operation alone has its own copy of this, without the loops. */
static __always_inline void hwtw_run(struct hwtw *hwtw, struct hwtw_op *op, unsigned int nr)
{
	unsigned int credit = 0, i;
	u64 now = 0;

	for (i = 0; i < nr;) {
		struct hwtw_cpu *cpu;

		if (op[i].opcode == HWTW_OP_ARM && !credit) {
			credit = hwtw_limits_take(hwtw, hwtw_arms(op + i, nr - i));
			if (!credit) {
				int err = hwtw_op_check(&op[i], READ_ONCE(hwtw->shift));

				op[i++].result = err ?: -ENOSPC;
				continue;
			}
		}
		cpu = hwtw_op_cpu(hwtw, &op[i]);
		if (!cpu) {
			i++;
			continue;
		}
		/* A cancel alone does not ask for the time. */
		if (!now && (nr > 1 || op->opcode <= HWTW_OP_REARM))
			now = hwtw_now(hwtw);
		i += hwtw_run_some(cpu, now, &credit, &op[i], nr - i);
	}
	hwtw_limits_give(hwtw, credit);
}

/**
 * hwtw_run_ops - carry out operations in order
 * @hwtw: the instance
 * @op: the operations, which get their results
 * @nr: their number; the caller bounds it
 */
void hwtw_run_ops(struct hwtw *hwtw, struct hwtw_op *op, unsigned int nr)
{
	hwtw_run(hwtw, op, nr);
}

/**
 * hwtw_run_op - carry out one operation
 * @hwtw: the instance
 * @op: the operation, which gets its result
 */
void hwtw_run_op(struct hwtw *hwtw, struct hwtw_op *op)
{
	hwtw_run(hwtw, op, 1);
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

static noinline void hwtw_trace_delivered(const struct hwtw_wheel *w, const struct hwtw_event *ev,
					  unsigned int nr)
{
	for (; nr; nr--, ev++)
		trace_hwtw_deliver(w, ev);
}

/*
 * Deliver a piece of what a wheel has. A record is taken if and only if it was
 * copied out, with nobody in between, so there is no waiting for memory here.
 * Returns 1, 0 if nothing was found, or -EFAULT if memory was missing.
 */
static int hwtw_deliver_some(struct hwtw_cpu *cpu, u64 now, u64 last_tick, struct iov_iter *to,
			     unsigned int *delivered, unsigned int *gone)
	__must_hold(&cpu->lock)
{
	/* Too large to be cleared for nothing. */
	struct hwtw_batch batch __uninitialized;
	size_t size, copied;
	unsigned int nr;

	if (!hwtw_wheel_peek(&cpu->wheel, now, last_tick, &batch,
			     min(iov_iter_count(to) / sizeof(*batch.ev), UINT_MAX)))
		return 0;
	size = batch.nr * sizeof(*batch.ev);
	pagefault_disable();
	copied = copy_to_iter(batch.ev, size, to);
	pagefault_enable();
	nr = copied / sizeof(*batch.ev);
	*gone += hwtw_wheel_take(&cpu->wheel, &batch, nr);
	*delivered += nr;
	if (trace_hwtw_deliver_enabled())
		hwtw_trace_delivered(&cpu->wheel, batch.ev, nr);
	if (likely(copied == size))
		return 1;
	iov_iter_revert(to, copied % sizeof(*batch.ev));
	return -EFAULT;
}

/**
 * hwtw_deliver - deliver records
 * @hwtw: the instance
 * @to: where they go, as far as there is room; moves on behind them
 *
 * They are all of one wheel. Does not wait for any.
 *
 * Return: the number of records, in order; 0 if there are none; -EFAULT if there
 * was none delivered since memory at @to is not there now: the caller may have
 * it fetched and try again.
 */
int hwtw_deliver(struct hwtw *hwtw, struct iov_iter *to)
{
	unsigned int delivered = 0, gone = 0;
	int more = 1;

	while (more >= 0 && !delivered && hwtw_readable(hwtw)) {
		struct hwtw_cpu *cpu;
		unsigned int piece = 0;
		u64 last_tick, now;

		/* Pairs with hwtw_cpu_unlock(): see of which wheel they are. */
		smp_rmb();
		cpu = hwtw_take_from(hwtw, &last_tick);
		if (!cpu)
			continue;
		hwtw_cpu_lock(cpu);
		hwtw_cpu_settle(cpu);
		now = hwtw_now(hwtw);
		do
			more = hwtw_deliver_some(cpu, now, last_tick, to, &delivered, &gone);
		while (more > 0 && ++piece < HWTW_READ_PIECES);
		hwtw_cpu_tidy(cpu, delivered);
		hwtw_cpu_unlock(cpu);
		cond_resched();
		if (fatal_signal_pending(current))
			break;
	}
	hwtw_limits_give(hwtw, gone);
	return delivered ?: min(more, 0);
}

/*
 * Looking at all timers
 */

/*
 * Report up to @max timers of a wheel, and cancel them if wished. Returns how
 * many, or -EFAULT: then none was cancelled.
 */
static int hwtw_list_some(struct hwtw_cpu *cpu, u32 *index, bool cancel, struct hwtw_timer *timer,
			  struct hwtw_timer __user *to, unsigned int max)
{
	for (;;) {
		unsigned int nr;
		u32 next = *index;
		int err = 0;

		hwtw_cpu_lock(cpu);
		hwtw_cpu_settle(cpu);
		nr = hwtw_wheel_list(&cpu->wheel, &next, timer, max);
		if (cancel) {
			/* One is told of if and only if it is gone: nobody may come between. */
			err = nr ? copy_to_user_nofault(to, timer, nr * sizeof(*timer)) : 0;
			if (!err) {
				hwtw_wheel_cancel(&cpu->wheel, timer, nr);
				hwtw_cpu_tidy(cpu, nr);
			}
		}
		hwtw_cpu_unlock(cpu);
		if (!cancel && copy_to_user(to, timer, nr * sizeof(*timer)))
			return -EFAULT;
		if (!err) {
			*index = next;
			if (cancel)
				hwtw_limits_give(cpu->hwtw, nr);
			return nr;
		}
		/* Only a write tells whether a write can work. */
		if (clear_user(to, nr * sizeof(*timer)))
			return -EFAULT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
}

/**
 * hwtw_list - report timers to userspace
 * @hwtw: the instance
 * @list: as userspace gave it, gets its results, also if it fails but for -EINVAL
 *
 * A position in the walk is a wheel and a slot; 1 is added in the cursor.
 *
 * Return: 0 or a negative error number, see HWTW_IOC_LIST.
 */
int hwtw_list(struct hwtw *hwtw, struct hwtw_list *list)
{
	struct hwtw_timer __user *to = u64_to_user_ptr(list->timers);
	bool cancel = list->flags & HWTW_LIST_CANCEL;
	u64 pos = list->cursor ? list->cursor - 1 : 0;
	u64 end = (u64)hwtw->nr_cpus << HWTW_INDEX_BITS;
	struct hwtw_timer *timer;
	u32 done = 0;
	int err = 0;

	if (list->flags & ~HWTW_LIST_CANCEL || !list->nr || pos > end)
		return -EINVAL;
	timer = kmalloc_array(min_t(u32, list->nr, HWTW_LIST_CHUNK), sizeof(*timer), GFP_KERNEL);
	if (!timer) {
		list->nr = 0;
		return -ENOMEM;
	}
	while (done < list->nr && pos < end) {
		u32 nr = array_index_nospec(pos >> HWTW_INDEX_BITS, hwtw->nr_cpus);
		struct hwtw_cpu *cpu = hwtw_cpu(hwtw, nr);
		u32 index = cpu ? pos & HWTW_INDEX_MASK : U32_MAX;

		if (cpu)
			err = hwtw_list_some(cpu, &index, cancel, timer, to + done,
					     min_t(u32, list->nr - done, HWTW_LIST_CHUNK));
		if (err < 0)
			break;
		done += err;
		err = 0;
		if (index == U32_MAX)
			pos = (u64)(nr + 1) << HWTW_INDEX_BITS;
		else
			pos = (u64)nr << HWTW_INDEX_BITS | index;
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		cond_resched();
	}
	kfree(timer);
	list->nr = done;
	/* A call that reports timers is not the last, so that each way to loop ends. */
	list->cursor = done || err || pos < end ? pos + 1 : 0;
	return err;
}

/**
 * hwtw_stats - sum up the counters of an instance
 * @hwtw: the instance
 * @stats: where they go
 *
 * Those of one wheel are of one moment, and timers don't change wheels: so the
 * sums add up as well.
 */
void hwtw_stats(struct hwtw *hwtw, struct hwtw_stats *stats)
{
	unsigned int nr;

	memset(stats, 0, sizeof(*stats));
	stats->memory = struct_size(hwtw, cpu, hwtw->nr_cpus);
	for (nr = 0; nr < hwtw->nr_cpus; nr++) {
		struct hwtw_cpu *cpu = hwtw_cpu(hwtw, nr);

		if (!cpu)
			continue;
		hwtw_cpu_lock(cpu);
		hwtw_wheel_stats(&cpu->wheel, hwtw_now(hwtw), stats);
		stats->runs += cpu->runs;
		stats->longest_run_ns = max(stats->longest_run_ns, cpu->longest_run_ns);
		hwtw_cpu_unlock(cpu);
		stats->memory += sizeof(*cpu);
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

	hwtw = kvzalloc(struct_size(hwtw, cpu, nr_cpus), HWTW_GFP);
	if (!hwtw)
		return NULL;
	mutex_init(&hwtw->setup);
	hwtw->nr = atomic_inc_return(&hwtw_instances);
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
 * Return: 0, -EINVAL or -EBUSY, see HWTW_IOC_SETUP.
 */
int hwtw_setup(struct hwtw *hwtw, const struct hwtw_setup *setup)
{
	u64 tick_ns = setup->tick_ns ?: HWTW_TICK_DEFAULT_NS;
	u64 max_timers = READ_ONCE(hwtw_max_timers);
	unsigned int nr;
	int err = 0;

	if (setup->flags || tick_ns < HWTW_TICK_MIN_NS || tick_ns > HWTW_TICK_MAX_NS)
		return -EINVAL;
	if (setup->clockid != CLOCK_REALTIME && setup->clockid != CLOCK_MONOTONIC &&
	    setup->clockid != CLOCK_BOOTTIME)
		return -EINVAL;
	if (setup->max_timers)
		max_timers = min(max_timers, setup->max_timers);

	mutex_lock(&hwtw->setup);
	for (nr = 0; nr < hwtw->nr_cpus && !err; nr++) {
		if (hwtw->cpu[nr])
			err = -EBUSY;
	}
	if (!err) {
		hwtw->clockid = setup->clockid;
		WRITE_ONCE(hwtw->shift, ilog2(tick_ns));
		WRITE_ONCE(hwtw->max_timers, max_timers);
	}
	mutex_unlock(&hwtw->setup);
	return err;
}
