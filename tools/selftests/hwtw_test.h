/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of /dev/hwtw share: calls that return 0 or more, or a negative
 * error number, so that one EXPECT_EQ() states both; clocks; bad memory.
 *
 * Nothing here asserts, so everything can be used in threads and children too.
 */
#ifndef HWTW_TEST_H
#define HWTW_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/hwtw.h>
#include <linux/userfaultfd.h>

#include "kselftest_harness.h"

/* Ends what hangs; a kernel with KASAN in a VM is slow without hanging. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120
#define TEST_TIMEOUT_SLOW	400

#define HWTW_DEV	"/dev/hwtw"
#define HWTW_PARAMS	"/sys/module/hwtw/parameters/"

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL
#define HOUR_NS		(3600 * NSEC_PER_SEC)

#define POISON		0xcc
#define POISON32	0xccccccccU
#define POISON64	0xccccccccccccccccULL

/* Random numbers that are the same in every run. */
struct rnd {
	uint64_t state;
};

static inline uint64_t rnd_next(struct rnd *r)
{
	uint64_t x = r->state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline uint64_t rnd_below(struct rnd *r, uint64_t n)
{
	return rnd_next(r) % n;
}

/* Clocks */

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

static inline uint64_t tick_of(uint64_t ns, uint64_t tick_ns)
{
	return ns / tick_ns + (ns % tick_ns != 0);
}

/* Calls. 0 or more, or -errno. */

static inline int hwtw_open(int flags)
{
	int fd = open(HWTW_DEV, O_RDWR | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

static inline int hwtw_call(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

static inline int hwtw_info(int fd, struct hwtw_info *info)
{
	return hwtw_call(fd, HWTW_IOC_INFO, info);
}

static inline uint64_t hwtw_features(int fd)
{
	struct hwtw_info info = {};

	return hwtw_info(fd, &info) ? 0 : info.features;
}

static inline int hwtw_setup(int fd, uint32_t clockid, uint64_t tick_ns,
			     uint64_t max_timers)
{
	struct hwtw_setup s = {
		.clockid = clockid,
		.tick_ns = tick_ns,
		.max_timers = max_timers,
	};

	return hwtw_call(fd, HWTW_IOC_SETUP, &s);
}

/* The call of ARM with these values. @id may be NULL. */
static inline int hwtw_arm(int fd, uint64_t time_ns, uint32_t flags,
			   uint64_t user_data, uint64_t *id)
{
	struct hwtw_timer t = {
		.id = POISON64,
		.user_data = user_data,
		.time_ns = time_ns,
		.flags = flags,
		.state = POISON32,
	};
	int ret = hwtw_call(fd, HWTW_IOC_ARM, &t);

	if (!ret && id)
		*id = t.id;
	return ret;
}

static inline int arm_in(int fd, uint64_t delay_ns, uint64_t user_data,
			 uint64_t *id)
{
	return hwtw_arm(fd, delay_ns, 0, user_data, id);
}

static inline int arm_at(int fd, uint64_t deadline_ns, uint64_t user_data,
			 uint64_t *id)
{
	return hwtw_arm(fd, deadline_ns, HWTW_TIMER_ABS, user_data, id);
}

/* REARM and CANCEL return the state that the timer was in, or -errno. */
static inline int hwtw_rearm(int fd, uint64_t id, uint64_t time_ns,
			     uint32_t flags)
{
	struct hwtw_timer t = {
		.id = id,
		.user_data = POISON64,
		.time_ns = time_ns,
		.flags = flags,
		.state = POISON32,
	};
	int ret = hwtw_call(fd, HWTW_IOC_REARM, &t);

	return ret ? ret : (int)t.state;
}

static inline int rearm_in(int fd, uint64_t id, uint64_t delay_ns)
{
	return hwtw_rearm(fd, id, delay_ns, 0);
}

static inline int rearm_at(int fd, uint64_t id, uint64_t deadline_ns)
{
	return hwtw_rearm(fd, id, deadline_ns, HWTW_TIMER_ABS);
}

static inline int hwtw_cancel(int fd, uint64_t id)
{
	struct hwtw_timer t = {
		.id = id,
		.state = POISON32,
	};
	int ret = hwtw_call(fd, HWTW_IOC_CANCEL, &t);

	return ret ? ret : (int)t.state;
}

/* The state of the timer, or -errno. */
static inline int hwtw_query(int fd, uint64_t id, struct hwtw_timer *t)
{
	struct hwtw_timer dummy;
	int ret;

	if (!t)
		t = &dummy;
	memset(t, POISON, sizeof(*t));
	t->id = id;
	t->flags = 0;
	ret = hwtw_call(fd, HWTW_IOC_QUERY, t);
	return ret ? ret : (int)t->state;
}

/* @done may be NULL. */
static inline int hwtw_submit(int fd, struct hwtw_op *ops, uint32_t nr,
			      uint32_t *done)
{
	struct hwtw_submit s = {
		.ops = (uintptr_t)ops,
		.nr = nr,
		.done = POISON32,
	};
	int ret = hwtw_call(fd, HWTW_IOC_SUBMIT, &s);

	if (done)
		*done = s.done;
	return ret;
}

static inline struct hwtw_op arm_op(uint64_t time_ns, uint32_t flags,
				    uint64_t user_data)
{
	return (struct hwtw_op) {
		.opcode = HWTW_OP_ARM,
		.result = (int32_t)POISON32,
		.timer = {
			.id = POISON64,
			.user_data = user_data,
			.time_ns = time_ns,
			.flags = flags,
			.state = POISON32,
		},
	};
}

static inline struct hwtw_op id_op(uint32_t opcode, uint64_t id)
{
	return (struct hwtw_op) {
		.opcode = opcode,
		.result = (int32_t)POISON32,
		.timer = {
			.id = id,
			.state = POISON32,
		},
	};
}

/*
 * Arms @nr timers with SUBMIT, user_data from @first on. Fills @ids unless it
 * is NULL. Returns 0, the first error of the call or of an operation.
 */
static inline int arm_many(int fd, uint64_t nr, uint64_t time_ns,
			   uint32_t flags, uint64_t first, uint64_t *ids)
{
	uint64_t step = nr < 4096 ? nr : 4096, i, n, k;
	struct hwtw_op *ops = calloc(step ? step : 1, sizeof(*ops));
	int ret = 0;

	if (!ops)
		return -ENOMEM;
	for (i = 0; i < nr && !ret; i += n) {
		n = nr - i < step ? nr - i : step;
		for (k = 0; k < n; k++)
			ops[k] = arm_op(time_ns, flags, first + i + k);
		ret = hwtw_submit(fd, ops, n, NULL);
		for (k = 0; k < n && !ret; k++) {
			ret = ops[k].result;
			if (ids)
				ids[i + k] = ops[k].timer.id;
		}
	}
	free(ops);
	return ret;
}

/* CANCELs them with SUBMIT. Returns how many it cancelled, or -errno. */
static inline int64_t cancel_many(int fd, const uint64_t *ids, uint64_t nr)
{
	uint64_t step = nr < 4096 ? nr : 4096, i, n, k;
	struct hwtw_op *ops = calloc(step ? step : 1, sizeof(*ops));
	int64_t cancelled = 0;
	int ret = 0;

	if (!ops)
		return -ENOMEM;
	for (i = 0; i < nr && !ret; i += n) {
		n = nr - i < step ? nr - i : step;
		for (k = 0; k < n; k++)
			ops[k] = id_op(HWTW_OP_CANCEL, ids[i + k]);
		ret = hwtw_submit(fd, ops, n, NULL);
		for (k = 0; k < n && !ret; k++)
			cancelled += !ops[k].result;
	}
	free(ops);
	return ret ? ret : cancelled;
}

/* read(2): how many records came, or -errno; -EIO if not whole ones. */
static inline int take(int fd, struct hwtw_event *ev, size_t max)
{
	ssize_t len = read(fd, ev, max * sizeof(*ev));

	if (len < 0)
		return -errno;
	if (!len || len % sizeof(*ev) || len > (ssize_t)(max * sizeof(*ev)))
		return -EIO;
	return len / sizeof(*ev);
}

/*
 * Reads until @nr records came, waiting up to a generous time for each. Returns
 * how many came, or -errno.
 */
static inline int take_all(int fd, struct hwtw_event *ev, size_t nr)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t have = 0;
	int ret;

	while (have < nr && poll(&p, 1, 20000) > 0) {
		ret = take(fd, ev + have, nr - have);
		if (ret == -EAGAIN || ret == -EINTR)
			continue;
		if (ret < 0)
			return ret;
		have += ret;
	}
	return have;
}

/* poll(2): 1 if readable within @timeout_ms, else 0. */
static inline int readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

/* Waits until the timer expired, which takes as long as the machine likes. */
static inline int wait_expired(int fd, uint64_t id)
{
	int state, i;

	for (i = 0; i < 20000; i++) {
		state = hwtw_query(fd, id, NULL);
		if (state != HWTW_PENDING)
			return state;
		sleep_ns(NSEC_PER_MSEC);
	}
	return -ETIMEDOUT;
}

/* A number from a file of /sys or /proc/sys, or -errno. */
static inline int64_t read_number(const char *path)
{
	char buf[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	return len <= 0 ? -EIO : (int64_t)strtoull(buf, NULL, 0);
}

/* Writes @text to a file that is there. Returns 0 or -errno. */
static inline int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

/* CPUs: this thread stays on the @nr-th CPU that it may use (modulo). */
static inline int pin_to(int nr)
{
	static cpu_set_t all;
	static bool known;
	cpu_set_t one;
	int cpu, left;

	if (!known) {
		if (sched_getaffinity(0, sizeof(all), &all))
			return -errno;
		known = true;
	}
	left = nr % CPU_COUNT(&all);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !left--)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

/* Descriptors, over a Unix socket */

static inline int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &m, 0) == 1 ? 0 : -errno;
}

static inline int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(sock, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -EIO;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* Memory */

static inline void *map_pages(size_t nr)
{
	void *p = mmap(NULL, nr * 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The end of @nr good pages, after which nothing is mapped. */
static inline char *map_cliff(size_t nr)
{
	char *p = map_pages(nr + 1);

	if (!p || munmap(p + nr * 4096, 4096))
		return NULL;
	return p + nr * 4096;
}

/* A copy of @len bytes (up to a page) that cannot be written. */
static inline void *map_readonly(const void *src, size_t len)
{
	void *p = map_pages(1);

	if (!p)
		return NULL;
	memcpy(p, src, len);
	return mprotect(p, 4096, PROT_READ) ? NULL : p;
}

/*
 * Have who accesses a page wait: as long as it is missing, and now it is, or, with
 * UFFDIO_REGISTER_MODE_WP, who writes to it, once it is write-protected. Returns a
 * descriptor of userfaultfd(2), readable when somebody waits, or -errno.
 */
static inline int fault_open(void *page, uint64_t mode)
{
	bool wp = mode == UFFDIO_REGISTER_MODE_WP;
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = wp ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0,
	};
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)page, .len = 4096 },
		.mode = mode,
	};
	int err, fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, UFFDIO_API, &api) && (wp || !madvise(page, 4096, MADV_DONTNEED)) &&
	    !ioctl(fd, UFFDIO_REGISTER, &reg))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static inline bool all_bytes(const void *p, int byte, size_t len)
{
	const unsigned char *c = p;

	while (len--)
		if (*c++ != byte)
			return false;
	return true;
}

#endif /* HWTW_TEST_H */
