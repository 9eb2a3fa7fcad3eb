// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: what timers cost inside the kernel
 *
 * The wheel of hwtw without all that is around it, timer_list and hrtimer, by
 * the same workloads. Memory is had in advance, as it is in the other two,
 * whose timers are part of somebody's structure; but the wheel frees what it
 * gives back while time is taken.
 *
 * Write "PEER WHAT N" to /proc/hwtw_bench, where PEER is one of kernel, timer_list
 * and hrtimer:
 *   basic   measure; then read lines: workload, batch, operations, ns, bytes
 *   arm     arm N timers, to be due from a second on (not of the wheel)
 *   wait    until all of them have expired
 *
 * /proc/hwtw_bench_idle tells how long all CPUs together were idle, in us.
 */
#include "../../../hwtw_wheel.c"
#include "../../../hwtw_memory.c"

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/tick.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "hwtw_compat.h"

#define BENCH_SHIFT	20
#define BENCH_BATCH	256
#define BENCH_TICKS	60000ULL
#define BENCH_BUDGET	1024
#define BENCH_N_MAX	10000000
#define BENCH_DAYS_TICKS	((30ULL * 86400 * NSEC_PER_SEC) >> BENCH_SHIFT)
#define BENCH_LONG_MAX	1000000
#define BENCH_RESULTS	16
/* Passes of re-arming at random that one sweep of stale claims pays for. */
#define BENCH_PASSES	4

/**
 * struct bench_result - what was measured
 * @workload: of what
 * @batch: operations at a time
 * @ops: operations
 * @ns: what they took
 * @bytes: memory, or 0
 */
struct bench_result {
	const char *workload;
	u32 batch;
	u64 ops, ns, bytes;
};

static struct bench_result results[BENCH_RESULTS];
static unsigned int nr_results;
static DEFINE_MUTEX(bench_lock);
static u64 random_state;

static void result(const char *workload, u32 batch, u64 ops, u64 ns, u64 bytes)
{
	if (nr_results < BENCH_RESULTS)
		results[nr_results++] = (struct bench_result) {
			workload, batch, ops, ns, bytes,
		};
}

static u64 draw_below(u64 limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return mul_u64_u64_shr(random_state, limit, 64);
}

/* Numbers from 0 to @n - 1 in random order. */
static u32 *shuffled(u32 n)
{
	u32 *order = vmalloc_array(n, sizeof(*order));
	u32 i;

	for (i = 0; order && i < n; i++) {
		u32 j = draw_below(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

/*
 * The wheel
 */

static struct hwtw_wheel *wheel;
static struct hwtw_op *ops;
static u64 *ids;
static u64 *deadlines;

/* Give the wheel what it needs for so many arms and re-arms. */
static int wheel_give(unsigned int arms, unsigned int rearms)
{
	struct hwtw_need need;
	int err;

	while ((err = hwtw_wheel_need(wheel, arms, rearms, &need)) > 0) {
		while (need.blocks--) {
			struct hwtw_block *block = hwtw_page_alloc(GFP_KERNEL);

			if (!block)
				return -ENOMEM;
			hwtw_wheel_give_block(wheel, block);
		}
		while (need.late--) {
			struct hwtw_late *late = kmalloc(sizeof(*late), GFP_KERNEL);

			if (!late)
				return -ENOMEM;
			hwtw_wheel_give_late(wheel, late);
		}
		if (need.dir) {
			u64 *dir = kvcalloc(need.dir, sizeof(*dir), GFP_KERNEL);

			if (!dir)
				return -ENOMEM;
			if (!hwtw_wheel_give_dir(wheel, dir, need.dir))
				kvfree(dir);
		}
		while (need.pages--) {
			struct hwtw_page *page = hwtw_page_alloc(GFP_KERNEL);

			if (!page)
				return -ENOMEM;
			/* The part of the directory is full: ask for the next one. */
			if (!hwtw_wheel_give_page(wheel, page)) {
				hwtw_page_free(page);
				break;
			}
		}
		cond_resched();
	}
	return err;
}

/*
 * Carry out @op on the timers @order[0] to @order[n - 1], in batches. Adds what
 * it took to @ns, without what the arguments took to be made.
 */
static int wheel_operate(u32 op, const u32 *order, u32 n, u32 batch, u64 *ns)
{
	u32 done, i, nr;

	for (done = 0; done < n; done += nr) {
		unsigned int credit = BENCH_BATCH;
		u32 seq = wheel->seq, at = 0;
		u64 start;
		int err;

		nr = min(n - done, (u32)BENCH_BATCH);
		for (i = 0; i < nr; i++) {
			u32 timer = order ? order[done + i] : done + i;

			ops[i] = (struct hwtw_op) {
				.opcode = op,
				.timer.id = op == HWTW_OP_ARM ? 0 : ids[timer],
				.timer.time_ns = op == HWTW_OP_CANCEL ? 0 : deadlines[timer],
				.timer.flags = op == HWTW_OP_CANCEL ? 0 : HWTW_TIMER_ABS,
			};
		}
		err = wheel_give(op == HWTW_OP_ARM ? nr : 0, op == HWTW_OP_REARM ? nr : 0);
		if (err)
			return err;
		start = ktime_get_ns();
		while (at < nr) {
			u32 some = min(batch, nr - at);

			if (hwtw_wheel_ops(wheel, 0, &credit, ops + at, some) != some)
				return -EIO;
			at += some;
		}
		if (hwtw_wheel_untidy(wheel)) {
			u32 arms = min(wheel->seq - seq, nr);

			hwtw_wheel_tidy(wheel, arms, nr - arms);
		}
		*ns += ktime_get_ns() - start;
		for (i = 0; i < nr; i++) {
			if (ops[i].result)
				return ops[i].result;
			if (op == HWTW_OP_ARM)
				ids[order ? order[done + i] : done + i] = ops[i].timer.id;
		}
		cond_resched();
	}
	return 0;
}

static u64 wheel_bytes(void)
{
	return (u64)wheel->pages * sizeof(struct hwtw_page) +
	       (u64)wheel->chunks / HWTW_BLOCK_CHUNKS * sizeof(struct hwtw_block) + sizeof(*wheel);
}

/* Take all that expires until nothing is left. The clock is whatever comes next. */
static int wheel_expire(u32 n, u64 *ns)
{
	struct hwtw_batch batch;
	u32 gone = 0;
	u64 start;

	while (gone < n) {
		u64 now = wheel->wake << BENCH_SHIFT;
		unsigned int nr;

		if (wheel->wake == U64_MAX)
			return -EIO;
		start = ktime_get_ns();
		while (hwtw_wheel_run(wheel, now, BENCH_BUDGET))
			cond_resched();
		while ((nr = hwtw_wheel_peek(wheel, now, U64_MAX, &batch, BENCH_BATCH)))
			gone += hwtw_wheel_take(wheel, &batch, nr);
		if (hwtw_wheel_untidy(wheel))
			hwtw_wheel_tidy(wheel, 0, BENCH_BATCH);
		*ns += ktime_get_ns() - start;
		cond_resched();
	}
	return 0;
}

static int wheel_one(u32 n, u32 batch, const u32 *order)
{
	u64 ns = 0;
	u32 i, pass;
	int err;

	for (i = 0; i < n; i++)
		deadlines[i] = (1 << BENCH_SHIFT) + draw_below(BENCH_TICKS << BENCH_SHIFT);
	/* One batch first, and the rest of the memory at once. */
	err = wheel_give(n, 0) ?: wheel_operate(HWTW_OP_ARM, NULL, n, batch, &ns);
	if (err)
		return err;
	result("arm", batch, n, ns, wheel_bytes());

	for (i = 0; i < n; i++)
		deadlines[i] += 1 + draw_below(BENCH_TICKS << BENCH_SHIFT);
	ns = 0;
	err = wheel_operate(HWTW_OP_REARM, order, n, batch, &ns);
	if (err)
		return err;
	result("rearm_later", batch, n, ns, 0);

	ns = 0;
	for (pass = 0; pass < BENCH_PASSES; pass++) {
		for (i = 0; i < n; i++)
			deadlines[i] = (1 << BENCH_SHIFT) +
				       draw_below(BENCH_TICKS << BENCH_SHIFT);
		err = wheel_operate(HWTW_OP_REARM, order, n, batch, &ns);
		if (err)
			return err;
	}
	result("rearm_random", batch, (u64)n * BENCH_PASSES, ns, 0);

	ns = 0;
	err = wheel_operate(HWTW_OP_CANCEL, order, n, batch, &ns);
	if (err)
		return err;
	result("cancel", batch, n, ns, 0);
	return 0;
}

/* Timers that are due in clusters, each in one tick, and armed in any order. */
static int wheel_expiry(const char *workload, u32 n, u64 ticks, u32 cluster, const u32 *order)
{
	u64 ns = 0, tick = 0;
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		if (i % cluster == 0)
			tick = wheel->clk + 1 + draw_below(ticks);
		deadlines[order[i]] = tick << BENCH_SHIFT;
	}
	err = wheel_operate(HWTW_OP_ARM, NULL, n, BENCH_BATCH, &ns);
	if (err)
		return err;
	ns = 0;
	err = wheel_expire(n, &ns);
	if (!err)
		result(workload, BENCH_BATCH, n, ns, 0);
	return err;
}

static int wheel_basic(u32 n)
{
	u32 *order = shuffled(n);
	int err = -ENOMEM;

	wheel = kvzalloc(sizeof(*wheel), GFP_KERNEL);
	ops = kvmalloc_array(BENCH_BATCH, sizeof(*ops), GFP_KERNEL);
	ids = vmalloc_array(n, sizeof(*ids));
	deadlines = vmalloc_array(n, sizeof(*deadlines));
	if (wheel && ops && ids && deadlines && order) {
		hwtw_wheel_init(wheel, 0, BENCH_SHIFT, 0);
		err = wheel_one(n, BENCH_BATCH, order) ?: wheel_one(n, 1, order) ?:
		      wheel_expiry("expire", n, BENCH_TICKS, BENCH_BATCH, order) ?:
		      wheel_expiry("expire_scattered", n, BENCH_TICKS, 1, order) ?:
		      /* Each has a run of its own: a million are enough. */
		      (n > BENCH_LONG_MAX ? 0 :
		       wheel_expiry("expire_long", n, BENCH_DAYS_TICKS, 1, order));
		while (hwtw_wheel_destroy(wheel, BENCH_BUDGET))
			cond_resched();
	}
	vfree(deadlines);
	vfree(ids);
	kvfree(ops);
	kvfree(wheel);
	vfree(order);
	return err;
}

/*
 * timer_list and hrtimer
 */

static union {
	struct timer_list *timer;
	struct hrtimer *hrtimer;
	void *memory;
} list;

static u32 list_n;
static bool list_hr;
static atomic_t list_pending;
static DECLARE_WAIT_QUEUE_HEAD(list_wait);

static void list_expired(void)
{
	if (atomic_dec_and_test(&list_pending))
		wake_up(&list_wait);
}

static void list_timer_expired(struct timer_list *timer)
{
	list_expired();
}

static enum hrtimer_restart list_hrtimer_expired(struct hrtimer *timer)
{
	list_expired();
	return HRTIMER_NORESTART;
}

static void list_free(void)
{
	u32 i;

	for (i = 0; i < list_n; i++) {
		if (list_hr)
			hrtimer_cancel(&list.hrtimer[i]);
		else
			timer_delete_sync(&list.timer[i]);
	}
	vfree(list.memory);
	list.memory = NULL;
	list_n = 0;
}

static int list_alloc(u32 n, bool hr)
{
	u32 i;

	list_free();
	list.memory = vmalloc_array(n, hr ? sizeof(*list.hrtimer) : sizeof(*list.timer));
	if (!list.memory)
		return -ENOMEM;
	list_n = n;
	list_hr = hr;
	for (i = 0; i < n; i++) {
		if (hr)
			hrtimer_setup(&list.hrtimer[i], list_hrtimer_expired, CLOCK_MONOTONIC,
				      HRTIMER_MODE_ABS);
		else
			timer_setup(&list.timer[i], list_timer_expired, 0);
	}
	return 0;
}

/* When, in the units of each, so many ticks from now. */
static u64 list_when(u64 ticks)
{
	u64 ns = ktime_get_ns() + (ticks << BENCH_SHIFT);

	return list_hr ? ns : jiffies + nsecs_to_jiffies(ticks << BENCH_SHIFT);
}

/* Arms, or if @when is NULL cancels, the timers @order[0] to @order[n - 1]. */
static u64 list_operate(const u32 *order, const u64 *when, u32 n)
{
	u64 ns = 0;
	u32 done, i, nr;

	for (done = 0; done < n; done += nr) {
		u64 start = ktime_get_ns();

		nr = min(n - done, (u32)BENCH_BATCH);
		if (list_hr && when) {
			for (i = done; i < done + nr; i++)
				hrtimer_start(&list.hrtimer[order[i]],
					      ns_to_ktime(when[i]), HRTIMER_MODE_ABS);
		} else if (list_hr) {
			for (i = done; i < done + nr; i++)
				hrtimer_cancel(&list.hrtimer[order[i]]);
		} else if (when) {
			for (i = done; i < done + nr; i++)
				mod_timer(&list.timer[order[i]], when[i]);
		} else {
			for (i = done; i < done + nr; i++)
				timer_delete(&list.timer[order[i]]);
		}
		ns += ktime_get_ns() - start;
		cond_resched();
	}
	return ns;
}

static int list_basic(u32 n, bool hr)
{
	u64 *when = vmalloc_array(n, sizeof(*when)), *ticks = vmalloc_array(n, sizeof(*ticks));
	u32 *order = shuffled(n);
	int err = -ENOMEM;
	u32 i;

	if (!when || !ticks || !order || list_alloc(n, hr))
		goto out;
	for (i = 0; i < n; i++) {
		ticks[i] = 100000 + draw_below(BENCH_TICKS);
		when[i] = list_when(ticks[i]);
	}
	result("arm", 1, n, list_operate(order, when, n),
	       n * (hr ? sizeof(*list.hrtimer) : sizeof(*list.timer)));
	for (i = 0; i < n; i++) {
		ticks[i] += 1 + draw_below(BENCH_TICKS);
		when[i] = list_when(ticks[i]);
	}
	result("rearm_later", 1, n, list_operate(order, when, n), 0);
	for (i = 0; i < n; i++)
		when[i] = list_when(100000 + draw_below(BENCH_TICKS));
	result("rearm_random", 1, n, list_operate(order, when, n), 0);
	result("cancel", 1, n, list_operate(order, NULL, n), 0);
	list_free();
	err = 0;
out:
	vfree(order);
	vfree(ticks);
	vfree(when);
	return err;
}

static int list_arm(u32 n, bool hr)
{
	u32 *order = shuffled(n);
	u64 when = 0;
	u32 i;
	int err = order ? list_alloc(n, hr) : -ENOMEM;

	atomic_set(&list_pending, err ? 0 : n);
	for (i = 0; !err && i < n; i++) {
		/* A second, and the time that arming takes. */
		if (i % BENCH_BATCH == 0)
			when = list_when(1000 + n / 1000 + draw_below(BENCH_TICKS));
		if (hr)
			hrtimer_start(&list.hrtimer[order[i]],
				      ns_to_ktime(when - draw_below(1 << BENCH_SHIFT)),
				      HRTIMER_MODE_ABS);
		else
			mod_timer(&list.timer[order[i]], when);
		cond_resched();
	}
	vfree(order);
	return err;
}

/*
 * Files
 */

static int bench_ask(const char *peer, const char *what, u32 n)
{
	bool hr = !strcmp(peer, "hrtimer");

	if (!hr && strcmp(peer, "timer_list") && strcmp(peer, "kernel"))
		return -EINVAL;
	random_state = 88172645463325252ULL;
	nr_results = 0;
	if (!strcmp(what, "basic"))
		return strcmp(peer, "kernel") ? list_basic(n, hr) : wheel_basic(n);
	if (!strcmp(what, "arm"))
		return list_arm(n, hr);
	if (strcmp(what, "wait"))
		return -EINVAL;
	return wait_event_interruptible(list_wait, !atomic_read(&list_pending));
}

static ssize_t bench_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	char text[64], peer[16], what[16];
	u32 n;
	int err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = 0;
	if (sscanf(text, "%15s %15s %u", peer, what, &n) != 3 || !n || n > BENCH_N_MAX)
		return -EINVAL;
	mutex_lock(&bench_lock);
	err = bench_ask(peer, what, n);
	mutex_unlock(&bench_lock);
	return err ?: len;
}

static int bench_show(struct seq_file *m, void *v)
{
	unsigned int i;

	mutex_lock(&bench_lock);
	for (i = 0; i < nr_results; i++)
		seq_printf(m, "%s %u %llu %llu %llu\n", results[i].workload, results[i].batch,
			   results[i].ops, results[i].ns, results[i].bytes);
	mutex_unlock(&bench_lock);
	return 0;
}

static int bench_open(struct inode *inode, struct file *file)
{
	return single_open(file, bench_show, NULL);
}

static const struct proc_ops bench_ops = {
	.proc_open = bench_open,
	.proc_read = seq_read,
	.proc_write = bench_write,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

static int idle_show(struct seq_file *m, void *v)
{
	u64 us = 0;
	int cpu;

	for_each_online_cpu(cpu)
		us += get_cpu_idle_time_us(cpu, NULL) + get_cpu_iowait_time_us(cpu, NULL);
	seq_printf(m, "%llu\n", us);
	return 0;
}

static int __init bench_init(void)
{
	if (!proc_create("hwtw_bench", 0600, NULL, &bench_ops))
		return -ENOMEM;
	if (!proc_create_single("hwtw_bench_idle", 0400, NULL, idle_show)) {
		remove_proc_entry("hwtw_bench", NULL);
		return -ENOMEM;
	}
	return 0;
}
module_init(bench_init);

static void __exit bench_exit(void)
{
	remove_proc_entry("hwtw_bench_idle", NULL);
	remove_proc_entry("hwtw_bench", NULL);
	list_free();
}
module_exit(bench_exit);

MODULE_DESCRIPTION("What timers cost inside the kernel");
MODULE_LICENSE("GPL");
