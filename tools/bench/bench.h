/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the peers of the benchmark and its harness share.
 */
#ifndef _BENCH_H
#define _BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL
/* The tick of hwtw and of the wheels in userspace. */
#define TICK_SHIFT	20
#define TICK_NS		(1ULL << TICK_SHIFT)
/* Arguments are prepared for so many operations at a time. */
#define CHUNK		4096

/* Of a timer that was created before, or that needs no creating. */
enum op { ARM, REARM, CANCEL, CREATE };

/**
 * struct peer - a way to keep timers
 * @name: its name
 * @batches: takes operations in batches; otherwise one by one
 * @call: an operation is a call of the kernel, so that a batch of 1 is told of
 * @creates: timers are created before they are armed, with CREATE
 * @whole: work may be put off to later operations, so all timers are measured
 * @common: deadlines come from few different delays
 * @cannot: why it can't have so many timers, or NULL
 * @sample: how many operations to measure at most, 0: no limit of its own
 * @open: make ready for @n timers, none of which exists yet
 * @close: let go of all
 * @prepare: make the arguments of operation @at of the next run()
 * @run: carry out the first @nr operations, in batches; this alone is timed
 * @settle: look at the results
 * @deliver: wait for timers to expire, if none has, and hand over some of them,
 *	about @batch. Returns how many. Each is passed to expired()
 *
 * There is one of it open at a time. Timers have numbers from 0 on.
 */
struct peer {
	const char *name;
	bool batches, call, creates, whole, common;
	const char *(*cannot)(uint32_t n);
	uint32_t (*sample)(enum op op, uint32_t n);
	void (*open)(uint32_t n);
	void (*close)(void);
	void (*prepare)(enum op op, uint32_t at, uint32_t timer, uint64_t deadline);
	void (*run)(enum op op, uint32_t nr, uint32_t batch);
	void (*settle)(enum op op, uint32_t nr);
	uint32_t (*deliver)(uint32_t batch);
};

extern const struct peer hwtw_peer, hwtw_ioctl_peer, timerfd_peer, posix_peer,
	uring_peer, libevent_peer, libevent_common_peer, libuv_peer,
	hashed_peer, linked_peer;

/* An instance of hwtw; and the one that is open as a peer. */
int hwtw_open(void);
int hwtw_fd(void);

void __attribute__((noreturn, format(printf, 1, 2))) cannot(const char *fmt, ...);
uint64_t now_ns(void);
void *alloc(size_t size);
void release(void *p, size_t size);
/* Free memory of the machine, in bytes, and how much it is in all. */
uint64_t memory_free(void);
uint64_t memory_size(void);

/* Whether expiries are looked at, other than counted. */
extern bool watching;
void expired_at(uint32_t timer, uint64_t now);

static inline void expired(uint32_t timer)
{
	if (__builtin_expect(watching, false))
		expired_at(timer, now_ns());
}

static inline struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec) {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};
}

#endif
