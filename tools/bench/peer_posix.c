// SPDX-License-Identifier: GPL-2.0-only
/*
 * What POSIX and Linux have: a timerfd for each timer, all in one epoll set; and
 * POSIX timers, whose signals are blocked and taken with sigtimedwait().
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"

static uint32_t timers;
static uint32_t arg[CHUNK];
static struct itimerspec spec[CHUNK];

static void prepare(enum op op, uint32_t at, uint32_t timer, uint64_t deadline)
{
	arg[at] = timer;
	spec[at] = (struct itimerspec) { 0 };
	/* A time of 0 stops it. */
	if (op == ARM || op == REARM)
		spec[at].it_value = to_timespec(deadline ? deadline : 1);
}

/* timerfd */

/* A descriptor with its file, its context, and its entry in the epoll set. */
#define TIMERFD_BYTES	1000

static int *fds;
static int epoll;

static const char *timerfd_cannot(uint32_t n)
{
	struct rlimit limit;

	if (memory_size() / TIMERFD_BYTES < n)
		return "no memory for so many descriptors";
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < n + 64)
		return "not so many descriptors allowed";
	return NULL;
}

static void timerfd_open(uint32_t n)
{
	fds = alloc(n * sizeof(*fds));
	timers = n;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		cannot("epoll_create1: %s", strerror(errno));
}

static void timerfd_close(void)
{
	for (uint32_t i = 0; i < timers; i++)
		close(fds[i]);
	close(epoll);
	release(fds, timers * sizeof(*fds));
}

static void timerfd_add(uint32_t timer)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = timer };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	fds[timer] = fd;
	if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		cannot("timer %u of timerfd: %s", timer, strerror(errno));
}

static void timerfd_run(enum op op, uint32_t nr, uint32_t batch)
{
	(void)batch;
	for (uint32_t i = 0; i < nr; i++) {
		if (op == CREATE)
			timerfd_add(arg[i]);
		else if (timerfd_settime(fds[arg[i]], TFD_TIMER_ABSTIME, &spec[i], NULL))
			cannot("timerfd_settime: %s", strerror(errno));
	}
}

static uint32_t timerfd_deliver(uint32_t batch)
{
	static struct epoll_event ev[CHUNK];
	int nr = epoll_wait(epoll, ev, batch > 1 ? batch : 256, -1);
	uint32_t done = 0;
	uint64_t count;

	for (int i = 0; i < nr; i++) {
		if (read(fds[ev[i].data.u32], &count, sizeof(count)) < 0)
			continue;
		expired(ev[i].data.u32);
		done++;
	}
	return done;
}

const struct peer timerfd_peer = {
	.name = "timerfd",
	.call = true,
	.creates = true,
	.cannot = timerfd_cannot,
	.open = timerfd_open,
	.close = timerfd_close,
	.prepare = prepare,
	.run = timerfd_run,
	.deliver = timerfd_deliver,
};

/* POSIX timers */

/* The kernel hashes them into 512 chains, which all calls walk. */
#define POSIX_MAX	200000

static timer_t *ids;
static sigset_t set;

static const char *posix_cannot(uint32_t n)
{
	struct rlimit limit;

	if (n > POSIX_MAX)
		return "takes too long: every call walks a list of n/512";
	if (getrlimit(RLIMIT_SIGPENDING, &limit) || limit.rlim_cur < n + 64)
		return "not so many signals allowed";
	return NULL;
}

static void posix_open(uint32_t n)
{
	ids = alloc(n * sizeof(*ids));
	timers = n;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void posix_close(void)
{
	static const struct timespec zero;

	for (uint32_t i = 0; i < timers; i++)
		timer_delete(ids[i]);
	while (sigtimedwait(&set, NULL, &zero) > 0)
		continue;
	release(ids, timers * sizeof(*ids));
}

static void posix_run(enum op op, uint32_t nr, uint32_t batch)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	int err = 0;

	(void)batch;
	for (uint32_t i = 0; i < nr; i++) {
		if (op == CREATE) {
			ev.sigev_value.sival_int = arg[i];
			err = timer_create(CLOCK_MONOTONIC, &ev, &ids[arg[i]]);
		} else {
			err = timer_settime(ids[arg[i]], TIMER_ABSTIME, &spec[i], NULL);
		}
		if (err)
			cannot("POSIX timer: %s", strerror(errno));
	}
}

static uint32_t posix_deliver(uint32_t batch)
{
	siginfo_t info;

	(void)batch;
	if (sigwaitinfo(&set, &info) < 0)
		cannot("sigwaitinfo: %s", strerror(errno));
	expired(info.si_value.sival_int);
	return 1;
}

const struct peer posix_peer = {
	.name = "POSIX timers",
	.call = true,
	.creates = true,
	.cannot = posix_cannot,
	.open = posix_open,
	.close = posix_close,
	.prepare = prepare,
	.run = posix_run,
	.deliver = posix_deliver,
};
