// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: the device and the module
 *
 * What crosses the border to userspace is checked, copied and answered here.
 * The rules of the interface are in uapi/linux/hwtw.h.
 */
#include <linux/build_bug.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <asm/ioctls.h>

#include "hwtw.h"

#define CREATE_TRACE_POINTS
#include "hwtw_trace.h"

/* Operations carried out in one go, and those of them for which the stack has room. */
#define HWTW_OPS_CHUNK		128
#define HWTW_OPS_FEW		8

#define HWTW_FEATURES		(HWTW_FEATURE_PERIODIC | HWTW_FEATURE_REALTIME | \
				 HWTW_FEATURE_LIST | HWTW_FEATURE_STATS)

static_assert(sizeof(struct hwtw_info) == 64);
static_assert(sizeof(struct hwtw_setup) == 24);
static_assert(sizeof(struct hwtw_timer) == 40);
static_assert(sizeof(struct hwtw_op) == 48);
static_assert(sizeof(struct hwtw_submit) == 16);
static_assert(sizeof(struct hwtw_event) == 32);
static_assert(sizeof(struct hwtw_list) == 24);
static_assert(sizeof(struct hwtw_stats) == 18 * 8);

unsigned int hwtw_max_timers = 1U << 25;
unsigned int hwtw_max_timers_total = 1U << 28;

static int hwtw_limit_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, S32_MAX);
}

static const struct kernel_param_ops hwtw_limit_ops = {
	.set = hwtw_limit_set,
	.get = param_get_uint,
};

module_param_cb(max_timers, &hwtw_limit_ops, &hwtw_max_timers, 0644);
MODULE_PARM_DESC(max_timers,
		 "Most live timers of one instance, 1 to 2147483647, default 33554432. Instances keep what was in force when they were opened or set up.");
module_param_cb(max_timers_total, &hwtw_limit_ops, &hwtw_max_timers_total, 0644);
MODULE_PARM_DESC(max_timers_total,
		 "Most live timers of all instances together, 1 to 2147483647, default 268435456");

/* Operations on their way: HWTW_OPS_CHUNK of them each. */
static struct kmem_cache *hwtw_ops_cache;

/*
 * With a constructor the memory is not cleared for each batch, where init_on_alloc
 * is set. It need not be: what goes out to a user came in from that user just before.
 */
static void hwtw_ops_clear(void *ops)
{
	memset(ops, 0, HWTW_OPS_CHUNK * sizeof(struct hwtw_op));
}

/*
 * Arguments
 */

/* Copy the first @usize bytes of a result of @ksize bytes, and zeros behind it. */
static int hwtw_copy_out(void __user *to, size_t usize, const void *from, size_t ksize)
{
	if (copy_to_user(to, from, min(usize, ksize)))
		return -EFAULT;
	if (usize > ksize && clear_user(to + ksize, usize - ksize))
		return -EFAULT;
	return 0;
}

/*
 * See that the results of operations can be written, before anything is done
 * that would have to be undone. Writes what is there already. Returns the
 * number of operations for which that is so.
 */
static unsigned int hwtw_ops_touch(struct hwtw_op __user *uop, const struct hwtw_op *op,
				   unsigned int nr)
{
	unsigned int i;

	/* One on each page and the end of the last tell for all. */
	for (i = 0; i < nr; i += PAGE_SIZE / sizeof(*op)) {
		if (put_user(op[i].result, &uop[i].result))
			break;
	}
	if (i >= nr && !put_user(op[nr - 1].timer.state, &uop[nr - 1].timer.state))
		return nr;
	for (i = 0; i < nr; i++) {
		if (put_user(op[i].result, &uop[i].result) ||
		    put_user(op[i].timer.state, &uop[i].timer.state))
			break;
	}
	return i;
}

/* Remove timers whose ids could not be told. */
static void hwtw_ops_undo(struct hwtw *hwtw, struct hwtw_op *op, unsigned int nr)
{
	for (; nr; nr--, op++) {
		if (op->opcode != HWTW_OP_ARM || op->result)
			continue;
		op->opcode = HWTW_OP_CANCEL;
		hwtw_run_op(hwtw, op);
	}
}

/*
 * Commands
 *
 * @arg is the argument in userspace, @size its size there.
 */

static long hwtw_ioc_info(struct hwtw *hwtw, void __user *arg, size_t size)
{
	struct hwtw_info info = {
		.abi			= HWTW_ABI,
		.features		= HWTW_FEATURES,
		.tick_min_ns		= HWTW_TICK_MIN_NS,
		.tick_max_ns		= HWTW_TICK_MAX_NS,
		.max_timers_total	= READ_ONCE(hwtw_max_timers_total),
		.event_size		= sizeof(struct hwtw_event),
		.max_batch		= HWTW_BATCH_MAX,
	};

	mutex_lock(&hwtw->setup);
	info.clockid = hwtw->clockid;
	info.tick_ns = 1ULL << hwtw->shift;
	info.max_timers = hwtw->max_timers;
	mutex_unlock(&hwtw->setup);
	return hwtw_copy_out(arg, size, &info, sizeof(info));
}

static long hwtw_ioc_setup(struct hwtw *hwtw, void __user *arg, size_t size)
{
	struct hwtw_setup setup;
	int err;

	err = copy_struct_from_user(&setup, sizeof(setup), arg, size);
	if (err)
		return err;
	return hwtw_setup(hwtw, &setup);
}

/*
 * Get the argument of a single operation. See too that the result can be
 * written, before there is one: writes what is there already.
 */
static int hwtw_op_get(struct hwtw_op *op, struct hwtw_timer __user *arg, size_t size)
{
	struct hwtw_timer *timer = &op->timer;

	if (size > sizeof(*timer)) {
		int zero = check_zeroed_user(arg + 1, size - sizeof(*timer));

		if (zero <= 0)
			return zero ?: -E2BIG;
	}
	if (!user_access_begin(arg, sizeof(*arg)))
		return -EFAULT;
	unsafe_get_user(timer->id, &arg->id, fault);
	if (op->opcode == HWTW_OP_ARM)
		unsafe_get_user(timer->user_data, &arg->user_data, fault);
	if (op->opcode <= HWTW_OP_REARM) {
		unsafe_get_user(timer->time_ns, &arg->time_ns, fault);
		unsafe_get_user(timer->interval_ns, &arg->interval_ns, fault);
	}
	unsafe_get_user(timer->flags, &arg->flags, fault);
	unsafe_get_user(timer->state, &arg->state, fault);
	unsafe_put_user(timer->id, &arg->id, fault);
	unsafe_put_user(timer->state, &arg->state, fault);
	user_access_end();
	return 0;

fault:
	user_access_end();
	return -EFAULT;
}

/* Write what an operation tells of its timer. */
static int hwtw_op_report(const struct hwtw_op *op, struct hwtw_timer __user *arg)
{
	const struct hwtw_timer *timer = &op->timer;

	if (!user_write_access_begin(arg, sizeof(*arg)))
		return -EFAULT;
	unsafe_put_user(timer->id, &arg->id, fault);
	unsafe_put_user(timer->state, &arg->state, fault);
	if (op->opcode == HWTW_OP_QUERY) {
		unsafe_put_user(timer->user_data, &arg->user_data, fault);
		unsafe_put_user(timer->time_ns, &arg->time_ns, fault);
		unsafe_put_user(timer->interval_ns, &arg->interval_ns, fault);
		unsafe_put_user(timer->flags, &arg->flags, fault);
	}
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

static long hwtw_ioc_op(struct hwtw *hwtw, u32 opcode, struct hwtw_timer __user *arg, size_t size)
{
	struct hwtw_op op __uninitialized;
	int err;

	op.opcode = opcode;
	err = hwtw_op_get(&op, arg, size);
	if (err)
		return err;
	hwtw_run_op(hwtw, &op);
	if (op.result)
		return op.result;
	err = hwtw_op_report(&op, arg);
	if (unlikely(err))
		hwtw_ops_undo(hwtw, &op, 1);
	return err;
}

/*
 * Carry out some operations of a batch. Returns how many, with their results
 * written: with what came in, where there is none.
 */
static unsigned int hwtw_submit_chunk(struct hwtw *hwtw, struct hwtw_op __user *uop,
				      struct hwtw_op *op, unsigned int nr)
{
	unsigned int done;

	nr -= DIV_ROUND_UP(copy_from_user(op, uop, nr * sizeof(*op)), sizeof(*op));
	nr = nr ? hwtw_ops_touch(uop, op, nr) : 0;
	if (!nr)
		return 0;
	hwtw_run_ops(hwtw, op, nr);
	done = nr - DIV_ROUND_UP(copy_to_user(uop, op, nr * sizeof(*op)), sizeof(*op));
	if (unlikely(done < nr))
		hwtw_ops_undo(hwtw, op + done, nr - done);
	return done;
}

static long hwtw_ioc_submit(struct hwtw *hwtw, void __user *arg, size_t size)
{
	struct hwtw_submit __user *uarg = arg;
	struct hwtw_op __user *uop;
	struct hwtw_op few[HWTW_OPS_FEW] __uninitialized;
	struct hwtw_submit submit;
	struct hwtw_op *op = few;
	u32 done = 0;
	long err;

	err = copy_struct_from_user(&submit, sizeof(submit), arg, size);
	if (err)
		return err;
	if (submit.nr > HWTW_BATCH_MAX)
		return -EINVAL;
	/* Before anything is done: see that it can be told. */
	if (put_user(done, &uarg->done))
		return -EFAULT;
	if (!submit.nr)
		return 0;
	if (submit.nr > HWTW_OPS_FEW)
		op = kmem_cache_alloc(hwtw_ops_cache, GFP_KERNEL);
	if (!op)
		return -ENOMEM;

	uop = u64_to_user_ptr(submit.ops);
	while (done < submit.nr) {
		unsigned int nr = min_t(u32, submit.nr - done, HWTW_OPS_CHUNK);
		unsigned int now = hwtw_submit_chunk(hwtw, uop + done, op, nr);

		done += now;
		if (now < nr) {
			err = -EFAULT;
			break;
		}
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		cond_resched();
	}
	if (op != few)
		kmem_cache_free(hwtw_ops_cache, op);
	if (put_user(done, &uarg->done))
		return -EFAULT;
	return err;
}

static long hwtw_ioc_list(struct hwtw *hwtw, void __user *arg, size_t size)
{
	struct hwtw_list __user *uarg = arg;
	struct hwtw_list list;
	long err;

	err = copy_struct_from_user(&list, sizeof(list), arg, size);
	if (err)
		return err;
	/* Before anything is done: see that it can be told. */
	if (put_user(list.nr, &uarg->nr) || put_user(list.cursor, &uarg->cursor))
		return -EFAULT;
	err = hwtw_list(hwtw, &list);
	if (put_user(list.nr, &uarg->nr) || put_user(list.cursor, &uarg->cursor))
		return -EFAULT;
	return err;
}

static long hwtw_ioc_stats(struct hwtw *hwtw, void __user *arg, size_t size)
{
	struct hwtw_stats stats;

	hwtw_stats(hwtw, &stats);
	return hwtw_copy_out(arg, size, &stats, sizeof(stats));
}

/* A command that is one operation has @opcode, any other @fn. */
struct hwtw_command {
	unsigned int cmd;
	unsigned int min_size;
	u32 opcode;
	long (*fn)(struct hwtw *hwtw, void __user *arg, size_t size);
};

/* The size of the argument in the first version of the interface is the least. */
#define HWTW_COMMAND(_cmd, _type, _last, _what, _value)		\
	[_IOC_NR(_cmd)] = {					\
		.cmd = (_cmd),					\
		.min_size = offsetofend(_type, _last),		\
		._what = (_value),				\
	}

static const struct hwtw_command hwtw_commands[] = {
	HWTW_COMMAND(HWTW_IOC_INFO, struct hwtw_info, max_batch, fn, hwtw_ioc_info),
	HWTW_COMMAND(HWTW_IOC_SETUP, struct hwtw_setup, max_timers, fn, hwtw_ioc_setup),
	HWTW_COMMAND(HWTW_IOC_ARM, struct hwtw_timer, state, opcode, HWTW_OP_ARM),
	HWTW_COMMAND(HWTW_IOC_REARM, struct hwtw_timer, state, opcode, HWTW_OP_REARM),
	HWTW_COMMAND(HWTW_IOC_CANCEL, struct hwtw_timer, state, opcode, HWTW_OP_CANCEL),
	HWTW_COMMAND(HWTW_IOC_QUERY, struct hwtw_timer, state, opcode, HWTW_OP_QUERY),
	HWTW_COMMAND(HWTW_IOC_SUBMIT, struct hwtw_submit, done, fn, hwtw_ioc_submit),
	HWTW_COMMAND(HWTW_IOC_LIST, struct hwtw_list, cursor, fn, hwtw_ioc_list),
	HWTW_COMMAND(HWTW_IOC_STATS, struct hwtw_stats, memory, fn, hwtw_ioc_stats),
};

/* FIONREAD, the same for all that can be read: bytes that a read would find. */
static long hwtw_ioc_fionread(struct hwtw *hwtw, int __user *arg)
{
	const long most = INT_MAX / sizeof(struct hwtw_event);
	long records = min(atomic_long_read(&hwtw->unread), most);

	return put_user((int)(records * sizeof(struct hwtw_event)), arg);
}

static long hwtw_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const unsigned int size_mask = _IOC_SIZEMASK << _IOC_SIZESHIFT;
	unsigned int nr = _IOC_NR(cmd);
	const struct hwtw_command *command;

	if (cmd == FIONREAD)
		return hwtw_ioc_fionread(file->private_data, (int __user *)arg);
	if (nr >= ARRAY_SIZE(hwtw_commands))
		return -ENOIOCTLCMD;
	command = &hwtw_commands[array_index_nospec(nr, ARRAY_SIZE(hwtw_commands))];
	if ((cmd ^ command->cmd) & ~size_mask)
		return -ENOIOCTLCMD;
	if (_IOC_SIZE(cmd) < command->min_size)
		return -EINVAL;
	if (command->opcode)
		return hwtw_ioc_op(file->private_data, command->opcode, (void __user *)arg,
				   _IOC_SIZE(cmd));
	return command->fn(file->private_data, (void __user *)arg, _IOC_SIZE(cmd));
}

/*
 * Files
 */

/* Only one of the readers that sleep was woken: wake another one if there is more. */
static void hwtw_pass_on(struct hwtw *hwtw)
{
	if (hwtw_readable(hwtw) && wq_has_sleeper(&hwtw->wait))
		wake_up_interruptible_poll(&hwtw->wait, EPOLLIN | EPOLLRDNORM);
}

/*
 * Wait for the memory that the next record goes to; @again if that was in vain.
 * It is looked up first, which changes nothing: others may see the memory. But
 * only a write tells for sure whether there is any: a stack may have to grow, and
 * what can be looked up may refuse to be written.
 */
static bool hwtw_fetch(struct iov_iter *to, bool again)
{
	size_t there;

	if (!again && !fault_in_iov_iter_writeable(to, sizeof(struct hwtw_event)))
		return true;
	/* Who is killed can't wait for memory: that it did not come tells nothing. */
	if (fatal_signal_pending(current))
		return false;
	there = iov_iter_zero(sizeof(struct hwtw_event), to);
	iov_iter_revert(to, there);
	return there == sizeof(struct hwtw_event);
}

static ssize_t hwtw_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *file = iocb->ki_filp;
	struct hwtw *hwtw = file->private_data;
	bool fetched = false;
	ssize_t total = 0;

	if (iov_iter_count(to) < sizeof(struct hwtw_event))
		return -EINVAL;
	while (iov_iter_count(to) >= sizeof(struct hwtw_event)) {
		int nr = hwtw_deliver(hwtw, to);

		if (nr > 0)
			total += nr * sizeof(struct hwtw_event);
		/* hwtw_deliver() gives up for it: so has this loop to. */
		if (fatal_signal_pending(current)) {
			total = total ?: -ERESTARTSYS;
			break;
		}
		if (nr == -EFAULT) {
			/* Its memory may be long in coming. */
			hwtw_pass_on(hwtw);
			if (!hwtw_fetch(to, fetched)) {
				total = total ?: -EFAULT;
				break;
			}
		}
		fetched = nr == -EFAULT;
		/* More may come for as long as one reads. */
		if (total && (!nr || signal_pending(current)))
			break;
		if (nr)
			continue;
		if (file->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT)
			return -EAGAIN;
		if (wait_event_interruptible_exclusive(hwtw->wait, hwtw_readable(hwtw)))
			return -ERESTARTSYS;
	}
	hwtw_pass_on(hwtw);
	return total;
}

static __poll_t hwtw_poll(struct file *file, poll_table *wait)
{
	struct hwtw *hwtw = file->private_data;

	/*
	 * Who adds a record counts it, and then wakes those in the queue. Here
	 * it is the other way round, so one of the two sees the other.
	 */
	poll_wait(file, &hwtw->wait, wait);
	/* Not all kernels have it in poll_wait(). */
	smp_mb();
	return hwtw_readable(hwtw) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int hwtw_fasync(int fd, struct file *file, int on)
{
	struct hwtw *hwtw = file->private_data;

	return fasync_helper(fd, file, on, &hwtw->fasync);
}

static int hwtw_open(struct inode *inode, struct file *file)
{
	struct hwtw *hwtw = hwtw_create();

	if (!hwtw)
		return -ENOMEM;
	file->private_data = hwtw;
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int hwtw_release(struct inode *inode, struct file *file)
{
	hwtw_destroy(file->private_data);
	return 0;
}

static void hwtw_show(struct seq_file *m, const char *name, u64 value)
{
	seq_printf(m, "hwtw-%s:\t%llu\n", name, value);
}

static void hwtw_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct hwtw *hwtw = file->private_data;
	struct hwtw_stats stats;

	hwtw_stats(hwtw, &stats);
	mutex_lock(&hwtw->setup);
	hwtw_show(m, "instance", hwtw->nr);
	hwtw_show(m, "clockid", hwtw->clockid);
	hwtw_show(m, "tick_ns", 1ULL << hwtw->shift);
	hwtw_show(m, "max_timers", hwtw->max_timers);
	mutex_unlock(&hwtw->setup);
	hwtw_show(m, "armed", stats.armed);
	hwtw_show(m, "rearmed", stats.rearmed);
	hwtw_show(m, "cancelled", stats.cancelled);
	hwtw_show(m, "cancelled_pending", stats.cancelled_pending);
	hwtw_show(m, "withdrawn", stats.withdrawn);
	hwtw_show(m, "expired", stats.expired);
	hwtw_show(m, "delivered", stats.delivered);
	hwtw_show(m, "completed", stats.completed);
	hwtw_show(m, "overruns", stats.overruns);
	hwtw_show(m, "pending", stats.pending);
	hwtw_show(m, "unread", stats.unread);
	hwtw_show(m, "cascaded", stats.cascaded);
	hwtw_show(m, "dropped", stats.dropped);
	hwtw_show(m, "runs", stats.runs);
	hwtw_show(m, "longest_run_ns", stats.longest_run_ns);
	hwtw_show(m, "lag_ticks", stats.lag_ticks);
	hwtw_show(m, "late_ticks", stats.late_ticks);
	hwtw_show(m, "memory", stats.memory);
}

static const struct file_operations hwtw_fops = {
	.owner		= THIS_MODULE,
	.open		= hwtw_open,
	.release	= hwtw_release,
	.read_iter	= hwtw_read_iter,
	.poll		= hwtw_poll,
	.fasync		= hwtw_fasync,
	.show_fdinfo	= hwtw_show_fdinfo,
	.unlocked_ioctl	= hwtw_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static struct miscdevice hwtw_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "hwtw",
	.fops	= &hwtw_fops,
	.mode	= 0600,
};

static int __init hwtw_init(void)
{
	const size_t size = HWTW_OPS_CHUNK * sizeof(struct hwtw_op);
	int err;

	hwtw_ops_cache = kmem_cache_create_usercopy("hwtw_ops", size, 0, SLAB_HWCACHE_ALIGN,
						    0, size, hwtw_ops_clear);
	if (!hwtw_ops_cache)
		return -ENOMEM;
	err = misc_register(&hwtw_misc);
	if (err)
		kmem_cache_destroy(hwtw_ops_cache);
	return err;
}
module_init(hwtw_init);

static void __exit hwtw_exit(void)
{
	misc_deregister(&hwtw_misc);
	kmem_cache_destroy(hwtw_ops_cache);
}
module_exit(hwtw_exit);

MODULE_DESCRIPTION("Timer wheels for millions of timeouts behind one descriptor");
MODULE_LICENSE("GPL");
