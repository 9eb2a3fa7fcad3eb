// SPDX-License-Identifier: GPL-2.0-only
/*
 * A wheel in the program, which sleeps on one timerfd until its next bucket.
 */
#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"
#include "wheels.h"

static struct wheel_timer *timer;
static uint32_t timers;
static int fd;
static uint64_t programmed;	/* tick, UINT64_MAX: none */
static struct wheel_timer *due;
static struct hashed_wheel *hashed;
static struct linked_wheel *linked;
static struct {
	uint32_t timer;
	uint64_t tick;
} arg[CHUNK];

static const char *wheel_cannot(uint32_t n)
{
	return memory_size() / 2 / sizeof(*timer) < n ? "no memory for so many timers" : NULL;
}

static void wheel_open(uint32_t n)
{
	timer = alloc(n * sizeof(*timer));
	timers = n;
	due = NULL;
	programmed = UINT64_MAX;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (fd < 0)
		cannot("timerfd_create: %s", strerror(errno));
}

static void wheel_close(void)
{
	release(timer, timers * sizeof(*timer));
	close(fd);
}

static void hashed_open(uint32_t n)
{
	wheel_open(n);
	hashed = alloc(sizeof(*hashed));
	hashed->clk = now_ns() >> TICK_SHIFT;
}

static void hashed_close(void)
{
	release(hashed, sizeof(*hashed));
	wheel_close();
}

static void linked_open(uint32_t n)
{
	wheel_open(n);
	linked = alloc(sizeof(*linked));
	linked->clk = now_ns() >> TICK_SHIFT;
}

static void linked_close(void)
{
	release(linked, sizeof(*linked));
	wheel_close();
}

static void prepare(enum op op, uint32_t at, uint32_t nr, uint64_t deadline)
{
	(void)op;
	arg[at].timer = nr;
	arg[at].tick = (deadline + TICK_NS - 1) >> TICK_SHIFT;
	timer[nr].data = nr;
}

/* Be woken at a tick. */
static void program(uint64_t tick)
{
	struct itimerspec its = { 0 };

	programmed = tick;
	if (tick != UINT64_MAX)
		its.it_value = to_timespec(tick << TICK_SHIFT);
	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &its, NULL))
		cannot("timerfd_settime: %s", strerror(errno));
}

/* The same for both wheels, which differ in the names of their functions. */
#define RUN_AND_DELIVER(wheel)							\
static void wheel##_run(enum op op, uint32_t nr, uint32_t batch)		\
{										\
	uint64_t next = programmed;						\
										\
	(void)batch;								\
	for (uint32_t i = 0; i < nr; i++) {					\
		struct wheel_timer *t = &timer[arg[i].timer];			\
										\
		if (op == ARM)							\
			wheel##_arm(wheel, t, arg[i].tick);			\
		else if (op == REARM)						\
			wheel##_rearm(wheel, t, arg[i].tick);			\
		else								\
			wheel##_cancel(wheel, t);				\
		if (op != CANCEL && arg[i].tick < next)				\
			next = arg[i].tick;					\
	}									\
	if (next < programmed)							\
		program(next);							\
}										\
										\
/* All that is due is taken from the wheel, so that none of it can come twice. */\
static uint32_t wheel##_deliver(uint32_t batch)					\
{										\
	uint32_t nr = 0;							\
	uint64_t count;								\
										\
	(void)batch;								\
	for (;;) {								\
		uint64_t now = now_ns() >> TICK_SHIFT, next;			\
										\
		while ((next = wheel##_next(wheel)) <= now) {			\
			for (due = wheel##_expire(wheel, next); due; due = due->next) { \
				expired(due->data);				\
				nr++;						\
			}							\
		}								\
		if (nr)								\
			return nr;						\
		program(next);							\
		if (read(fd, &count, sizeof(count)) < 0)			\
			cannot("read of timerfd: %s", strerror(errno));		\
		programmed = UINT64_MAX;					\
	}									\
}

RUN_AND_DELIVER(hashed)
RUN_AND_DELIVER(linked)

const struct peer hashed_peer = {
	.name = "hashed wheel",
	.cannot = wheel_cannot,
	.open = hashed_open,
	.close = hashed_close,
	.prepare = prepare,
	.run = hashed_run,
	.deliver = hashed_deliver,
};

const struct peer linked_peer = {
	.name = "linked wheel",
	.cannot = wheel_cannot,
	.open = linked_open,
	.close = linked_close,
	.prepare = prepare,
	.run = linked_run,
	.deliver = linked_deliver,
};
