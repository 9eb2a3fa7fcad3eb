/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * hwtw: a timer wheel for millions of timeouts behind one descriptor
 *
 * Changes of this interface:
 *  ABI 1
 *   - first version
 */
#ifndef _UAPI_LINUX_HWTW_H
#define _UAPI_LINUX_HWTW_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: The interface
 *
 * One open file of /dev/hwtw is one instance: a set of timers with a clock and
 * a tick of its own. Timers are armed, moved and cancelled by ioctl(2);
 * expiries are read back with read(2) as &struct hwtw_event records. poll(2),
 * epoll(7), select(2), O_NONBLOCK, O_ASYNC and io_uring reads work as on any
 * other descriptor; FIONREAD tells how many bytes a read would find, or the
 * most whole records that fit into an int if there are more. Timers live as
 * long as any copy of the descriptor is open.
 *
 * All times are nanoseconds on the clock of the instance. A timer never fires
 * early, and at most one tick late plus the time the kernel needs to run the
 * expiry.
 *
 * Rules that hold for every command:
 *
 * - Success is 0, results are in the argument. Failure is -1 and &errno.
 * - The size of the argument is part of the command number. Structures grow
 *   only at their end and zero means the older behaviour: a shorter (older)
 *   argument is taken as if it went on with zeros, a longer one is taken if
 *   what this kernel does not know is zero.
 * - Members marked "out" are ignored on the way in.
 *
 * Errors that mean the same for every command:
 *
 * ================ =====================================================
 * ``ENOTTY``       no such command
 * ``E2BIG``        the argument is longer than this kernel knows, and what
 *                  it does not know is not zero
 * ``EINVAL``       a value that no instance could take, an unknown flag, or
 *                  a reserved member that is not zero
 * ``ENOENT``       no such timer: never armed, cancelled, or its last record
 *                  already read
 * ``EBUSY``        HWTW_IOC_SETUP after the first timer
 * ``ENOSPC``       the limit on timers of the instance or of the module;
 *                  works again after one cancel or read
 * ``ENOMEM``       memory could not be had; nothing was armed
 * ``EFAULT``       a bad pointer; nothing was changed that was not reported
 * ================ =====================================================
 */

/* HWTW_ABI - number of this interface, see &struct hwtw_info.abi */
#define HWTW_ABI		1

/* HWTW_TICK_MIN_NS - shortest tick, 2^16 ns */
#define HWTW_TICK_MIN_NS	(1ULL << 16)
/* HWTW_TICK_DEFAULT_NS - tick of an instance without HWTW_IOC_SETUP, 2^20 ns */
#define HWTW_TICK_DEFAULT_NS	(1ULL << 20)
/* HWTW_TICK_MAX_NS - longest tick, 2^30 ns */
#define HWTW_TICK_MAX_NS	(1ULL << 30)

/* HWTW_TIME_MAX_NS - latest time; a relative time that would pass it stops there */
#define HWTW_TIME_MAX_NS	0x7fffffffffffffffULL

/* HWTW_BATCH_MAX - most operations in one HWTW_IOC_SUBMIT */
#define HWTW_BATCH_MAX		65536

/* Bits of hwtw_info.features */
/* HWTW_FEATURE_PERIODIC - &struct hwtw_timer.interval_ns may be non-zero */
#define HWTW_FEATURE_PERIODIC	(1ULL << 0)
/* HWTW_FEATURE_REALTIME - instances on CLOCK_REALTIME */
#define HWTW_FEATURE_REALTIME	(1ULL << 1)
/* HWTW_FEATURE_LIST - HWTW_IOC_LIST */
#define HWTW_FEATURE_LIST	(1ULL << 2)
/* HWTW_FEATURE_STATS - HWTW_IOC_STATS */
#define HWTW_FEATURE_STATS	(1ULL << 3)

/**
 * struct hwtw_info - what this module and this instance can do
 * @abi: out: HWTW_ABI of the module
 * @clockid: out: clock of the instance, a CLOCK_* number
 * @features: out: HWTW_FEATURE_* bits
 * @tick_ns: out: tick of the instance, a power of two
 * @tick_min_ns: out: shortest tick that HWTW_IOC_SETUP takes
 * @tick_max_ns: out: longest tick that HWTW_IOC_SETUP takes
 * @max_timers: out: most live timers of this instance
 * @max_timers_total: out: most live timers of all instances together
 * @event_size: out: bytes of one record of read(2)
 * @max_batch: out: most operations of one HWTW_IOC_SUBMIT
 */
struct hwtw_info {
	__u32 abi;
	__u32 clockid;
	__u64 features;
	__u64 tick_ns;
	__u64 tick_min_ns;
	__u64 tick_max_ns;
	__u64 max_timers;
	__u64 max_timers_total;
	__u32 event_size;
	__u32 max_batch;
};

/**
 * struct hwtw_setup - clock, tick and limit of an instance
 * @clockid: CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME (which is the
 *	number 0: @clockid is always taken as it stands)
 * @flags: must be 0
 * @tick_ns: tick wished, HWTW_TICK_MIN_NS to HWTW_TICK_MAX_NS, rounded down to
 *	a power of two; 0: HWTW_TICK_DEFAULT_NS
 * @max_timers: most live timers, cut to what the module allows; 0: all that
 *	the module allows
 *
 * An instance that is never set up runs on CLOCK_MONOTONIC with the default
 * tick and limit. HWTW_IOC_INFO tells what is in force.
 *
 * On CLOCK_REALTIME a delay too becomes a deadline on that clock, and setting
 * the clock moves it. After a step forward all that is due then expires, as soon
 * as the kernel looks at its timers: with its next jiffy at the latest. After a
 * step back nothing expires before the clock comes to its deadline again, and
 * what had expired before stays so. There is no order between records of before
 * and after the step.
 */
struct hwtw_setup {
	__u32 clockid;
	__u32 flags;
	__u64 tick_ns;
	__u64 max_timers;
};

/* HWTW_TIMER_ABS - &struct hwtw_timer.time_ns is a deadline, not a delay */
#define HWTW_TIMER_ABS		(1U << 0)

/* HWTW_PENDING - state of a timer that has not expired */
#define HWTW_PENDING		1
/* HWTW_EXPIRED - state of a timer that expired and whose record is not read yet */
#define HWTW_EXPIRED		2

/**
 * struct hwtw_timer - one timer, argument of ARM, REARM, CANCEL and QUERY
 * @id: out of HWTW_IOC_ARM, in for the others. Never 0, and never used again
 *	for another timer of the instance.
 * @user_data: any value; comes back in every record of this timer. Taken by
 *	ARM, filled in by QUERY, ignored by the others: a re-armed timer keeps it.
 * @time_ns: delay from now, or with HWTW_TIMER_ABS the deadline, 0 to
 *	HWTW_TIME_MAX_NS. QUERY fills in the deadline.
 * @interval_ns: 0 for a timer that fires once. Otherwise the n-th expiry after
 *	the first is due n times this later, at least one tick.
 * @flags: HWTW_TIMER_ABS or 0. QUERY fills in HWTW_TIMER_ABS, so that its
 *	result can be armed as it stands.
 * @state: out: the state it is in (ARM, QUERY) or was in (REARM, CANCEL),
 *	HWTW_PENDING or HWTW_EXPIRED
 */
struct hwtw_timer {
	__u64 id;
	__u64 user_data;
	__u64 time_ns;
	__u64 interval_ns;
	__u32 flags;
	__u32 state;
};

/* HWTW_OP_ARM - as HWTW_IOC_ARM */
#define HWTW_OP_ARM		1
/* HWTW_OP_REARM - as HWTW_IOC_REARM */
#define HWTW_OP_REARM		2
/* HWTW_OP_CANCEL - as HWTW_IOC_CANCEL */
#define HWTW_OP_CANCEL		3
/* HWTW_OP_QUERY - as HWTW_IOC_QUERY */
#define HWTW_OP_QUERY		4

/**
 * struct hwtw_op - one operation of HWTW_IOC_SUBMIT
 * @opcode: HWTW_OP_*; anything else fails with EINVAL in @result
 * @result: out: 0 or a negative error number
 * @timer: argument of the operation
 */
struct hwtw_op {
	__u32 opcode;
	__s32 result;
	struct hwtw_timer timer;
};

/**
 * struct hwtw_submit - many operations in one call
 * @ops: address of an array of &struct hwtw_op
 * @nr: operations in the array, up to HWTW_BATCH_MAX
 * @done: out: operations that were carried out and have their result. Less
 *	than @nr only if the call failed with EFAULT, or a signal that kills
 *	the caller came; also written then.
 *
 * The operations are carried out in order. One that fails does so alone, in
 * its own @result, and the others go on. If the memory of @ops is taken away
 * while the call runs, some operations behind @done may have been carried out,
 * but no timer was armed of which the id could not be told. Until the call is
 * over the array is its own: it writes whole entries, and puts back as it found
 * it what is no result.
 */
struct hwtw_submit {
	__u64 ops;
	__u32 nr;
	__u32 done;
};

/**
 * struct hwtw_list - walk all live timers in pieces
 * @timers: address of an array of &struct hwtw_timer, which is filled in
 * @nr: room in the array; out: timers reported
 * @flags: HWTW_LIST_CANCEL or 0
 * @cursor: 0 begins a walk; out: where the next call goes on, to be handed
 *	back as it is. 0 once the walk is over: the last call reports no timer.
 *
 * A call fills the array as long as there are timers. Each that lives through
 * the whole walk is reported exactly once; those armed, cancelled or read
 * meanwhile are or are not. A timer is reported as HWTW_IOC_QUERY would, with
 * its deadline and HWTW_TIMER_ABS, so that it can be armed as it stands. If
 * memory of @timers turns out to be bad, @nr and @cursor tell how far the call
 * came and the rest of the timers are as they were.
 *
 * With HWTW_LIST_CANCEL a timer is reported if and only if the call cancelled it.
 */
struct hwtw_list {
	__u64 timers;
	__u32 nr;
	__u32 flags;
	__u64 cursor;
};

/* HWTW_LIST_CANCEL - cancel what is reported: stop, and hand back what had not fired */
#define HWTW_LIST_CANCEL	(1U << 0)

/**
 * struct hwtw_stats - counters of an instance
 * @armed: out: timers armed
 * @rearmed: out: times a timer was re-armed
 * @cancelled: out: timers cancelled
 * @cancelled_pending: out: those of them that had not expired
 * @withdrawn: out: records that were unread when their timer was cancelled or
 *	re-armed
 * @expired: out: expiries
 * @delivered: out: records read
 * @completed: out: timers that are gone because their last record was read:
 *	all one-shot ones
 * @overruns: out: sum of &struct hwtw_event.overruns of the records read
 * @pending: out: timers that have not expired
 * @unread: out: timers that expired and whose record was not read yet
 * @cascaded: out: claims moved from bucket to bucket
 * @dropped: out: stale claims dropped
 * @runs: out: times an interrupt looked for expired timers
 * @longest_run_ns: out: the longest one of them
 * @lag_ticks: out: how far expiry is behind the clock now, at most
 * @late_ticks: out: ticks from the deadline tick to the expiry, at worst
 * @memory: out: bytes of kernel memory of the instance
 *
 * At any moment
 *
 *	armed = cancelled + completed + pending + unread
 *	expired = withdrawn + delivered + unread
 *
 * The same values are in /proc/PID/fdinfo/FD, one on a line, with "hwtw-"
 * before the name.
 */
struct hwtw_stats {
	__u64 armed;
	__u64 rearmed;
	__u64 cancelled;
	__u64 cancelled_pending;
	__u64 withdrawn;
	__u64 expired;
	__u64 delivered;
	__u64 completed;
	__u64 overruns;
	__u64 pending;
	__u64 unread;
	__u64 cascaded;
	__u64 dropped;
	__u64 runs;
	__u64 longest_run_ns;
	__u64 lag_ticks;
	__u64 late_ticks;
	__u64 memory;
};

/**
 * struct hwtw_event - one record of read(2)
 * @user_data: &struct hwtw_timer.user_data of the timer
 * @id: id of the timer
 * @expires_ns: the deadline asked for, absolute, on the clock of the instance
 * @overruns: further periods that had passed before this record was read
 * @flags: 0
 *
 * read(2) returns whole records only, at least one, as many as are there and
 * fit. It blocks only for the first. Records come in the order of their
 * deadline ticks, and within a tick in the order in which the timers were armed
 * on one CPU, unless they were re-armed since. A timer that was due already
 * when it was armed is readable at once, and so before those of its tick that
 * are not due yet.
 *
 * Errors: EINVAL (the buffer holds no record), EAGAIN (O_NONBLOCK and nothing
 * expired), EFAULT (nothing was taken), EINTR.
 */
struct hwtw_event {
	__u64 user_data;
	__u64 id;
	__u64 expires_ns;
	__u32 overruns;
	__u32 flags;
};

/* HWTW_IOC_TYPE - type byte of the commands */
#define HWTW_IOC_TYPE		0xBD

/**
 * HWTW_IOC_INFO - what this module and this instance can do
 *
 * Errors: EFAULT.
 */
#define HWTW_IOC_INFO		_IOR(HWTW_IOC_TYPE, 0x00, struct hwtw_info)

/**
 * HWTW_IOC_SETUP - choose clock, tick and limit, before the first timer
 *
 * Errors: EBUSY (a timer was armed before), EINVAL (unknown clock, tick out of
 * range, flags), EFAULT.
 */
#define HWTW_IOC_SETUP		_IOW(HWTW_IOC_TYPE, 0x01, struct hwtw_setup)

/**
 * HWTW_IOC_ARM - a new timer
 *
 * A deadline that has passed already, or a delay of 0, is readable at once.
 *
 * Errors: EINVAL (time or interval out of range, flags), ENOSPC, ENOMEM, EFAULT.
 */
#define HWTW_IOC_ARM		_IOWR(HWTW_IOC_TYPE, 0x02, struct hwtw_timer)

/**
 * HWTW_IOC_REARM - give a timer a new time and interval
 *
 * If it had expired and its record was not read yet, the record is withdrawn.
 * After success no read that begins then returns the former expiry.
 *
 * Errors: ENOENT, EINVAL, ENOMEM, EFAULT.
 */
#define HWTW_IOC_REARM		_IOWR(HWTW_IOC_TYPE, 0x03, struct hwtw_timer)

/**
 * HWTW_IOC_CANCEL - remove a timer
 *
 * If it had expired and its record was not read yet, the record is withdrawn.
 * After success no read that begins then returns a record of this timer.
 *
 * Errors: ENOENT, EINVAL (flags), EFAULT.
 */
#define HWTW_IOC_CANCEL		_IOWR(HWTW_IOC_TYPE, 0x04, struct hwtw_timer)

/**
 * HWTW_IOC_QUERY - deadline, interval, user_data and state of a timer
 *
 * Errors: ENOENT, EINVAL (flags), EFAULT.
 */
#define HWTW_IOC_QUERY		_IOWR(HWTW_IOC_TYPE, 0x05, struct hwtw_timer)

/**
 * HWTW_IOC_SUBMIT - many operations in one call
 *
 * Errors: EINVAL (nr above HWTW_BATCH_MAX), ENOMEM (nothing was done), EFAULT,
 * EINTR (a signal that kills the caller). Errors of single operations are in
 * their result.
 */
#define HWTW_IOC_SUBMIT		_IOWR(HWTW_IOC_TYPE, 0x06, struct hwtw_submit)

/**
 * HWTW_IOC_LIST - walk all live timers, see &struct hwtw_list
 *
 * Errors: EINVAL (flags, no room, a cursor that no call gave), ENOMEM, EFAULT,
 * EINTR (a signal that kills the caller).
 */
#define HWTW_IOC_LIST		_IOWR(HWTW_IOC_TYPE, 0x07, struct hwtw_list)

/**
 * HWTW_IOC_STATS - counters, see &struct hwtw_stats
 *
 * Errors: EFAULT.
 */
#define HWTW_IOC_STATS		_IOR(HWTW_IOC_TYPE, 0x08, struct hwtw_stats)

#endif /* _UAPI_LINUX_HWTW_H */
