// SPDX-License-Identifier: GPL-2.0
/*
 * Each call of /dev/hwtw with its first allocation or copy failing, then with
 * its second one, and so on until nothing fails any more: the errno is right,
 * nothing changed that was not reported, and nothing is lost.
 *
 * Needs a kernel with fault injection (tools/vm/kernel kunit), and one with
 * faults in copies from and to user space (debug) for the half of it.
 */
#include "hwtw_test.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define TICK		HWTW_TICK_DEFAULT_NS
#define DEBUGFS		"/sys/kernel/debug/"
#define PRINTK		"/proc/sys/kernel/printk"
/* No call comes near as many; one that never succeeds would go on for ever. */
#define MOST		5000

/* The n-th fault of this thread from now on. */
static int nth_fd = -1;

static void fail_at(unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	/* The fault before may hit this very call, and is over then. */
	if (pwrite(nth_fd, text, strlen(text), 0) < 0 &&
	    pwrite(nth_fd, text, strlen(text), 0) < 0)
		abort();
}

/* Whether it has happened. None will from now on. */
static bool failed(void)
{
	char text[16] = "";
	/* It cannot be told if it hits just this: so it had not happened. */
	bool told = pread(nth_fd, text, sizeof(text) - 1, 0) > 0;

	fail_at(0);
	return told && !atoi(text);
}

/* Let allocations that may sleep fail as well, and let nothing say so in the log. */
static int prepare_faults(void)
{
	static const char *const quiet[] = {
		DEBUGFS "failslab/verbose",
		DEBUGFS "fail_page_alloc/verbose",
		DEBUGFS "fail_usercopy/verbose",
	};
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(quiet); i++) {
		err = put(quiet[i], "0");
		/* The last one is of the debug kernel only. */
		if (err && !strstr(quiet[i], "usercopy"))
			return err;
	}
	err = put(DEBUGFS "failslab/ignore-gfp-wait", "N");
	err = err ? err : put(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N");
	err = err ? err : put(DEBUGFS "fail_page_alloc/min-order", "0");
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return err ? err : nth_fd < 0 ? -errno : 0;
}

static bool copies_fail(void)
{
	return !access(DEBUGFS "fail_usercopy", F_OK);
}

/* An injected fault says one of these, and nothing else does. */
static bool is_fault(int ret)
{
	return ret == -ENOMEM || ret == -EFAULT;
}

#define ROOM	220

FIXTURE(fail) {
	int fd;
	unsigned int faults;
};

FIXTURE_SETUP(fail)
{
	if (prepare_faults())
		SKIP(return, "the kernel injects no faults");
	self->fd = hwtw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, ROOM));
}

FIXTURE_TEARDOWN(fail)
{
	TH_LOG("%u faults", self->faults);
	close(self->fd);
	close(nth_fd);
}

/* Calls until one fails no more. @n counts from 1. */
#define EACH_FAULT(n)							\
	for (n = 1, fail_at(0); n < MOST; n++)

/* Begin anew, so that memory for the first timer has to be had again. */
static int anew(int fd)
{
	close(fd);
	fd = hwtw_open(O_NONBLOCK);
	if (fd >= 0 && hwtw_setup(fd, CLOCK_MONOTONIC, 0, ROOM))
		abort();
	return fd;
}

/*
 * Whether the instance has @live timers, neither more nor less: so many more go
 * in as there is room for. They are cancelled again. Those that are due and
 * unread count.
 */
static bool has_timers(int fd, unsigned int live)
{
	unsigned int room = ROOM - live;
	uint64_t id[ROOM];

	if (arm_many(fd, room, 100 * HOUR_NS, 0, 0, id) ||
	    hwtw_arm(fd, 100 * HOUR_NS, 0, 0, NULL) != -ENOSPC)
		return false;
	return cancel_many(fd, id, room) == (int64_t)room;
}

/* Guards against an open() that fails and leaves a part of an instance. */
TEST_F(fail, open)
{
	unsigned int n;
	int fd;

	EACH_FAULT(n) {
		fail_at(n);
		fd = hwtw_open(0);
		if (fd >= 0)
			close(fd);
		if (!failed()) {
			ASSERT_LE(0, fd);
			break;
		}
		self->faults++;
		ASSERT_TRUE(fd >= 0 || is_fault(fd));
	}
	EXPECT_LT(1, n);
	EXPECT_GT(MOST, n);
}

/* Guards against results half written, and against SETUP half done. */
TEST_F(fail, info_and_setup)
{
	struct hwtw_info info, before;
	unsigned int n;
	int ret;

	if (!copies_fail())
		SKIP(return, "no faults in copies");
	ASSERT_EQ(0, hwtw_info(self->fd, &before));
	EACH_FAULT(n) {
		memset(&info, POISON, sizeof(info));
		fail_at(n);
		ret = hwtw_info(self->fd, &info);
		if (!failed())
			break;
		self->faults++;
		ASSERT_EQ(-EFAULT, ret);
		ASSERT_TRUE(all_bytes(&info, POISON, sizeof(info)));
	}
	EXPECT_EQ(0, ret);
	EXPECT_LT(1, n);
	EXPECT_EQ(0, memcmp(&info, &before, sizeof(info)));

	EACH_FAULT(n) {
		fail_at(n);
		ret = hwtw_setup(self->fd, CLOCK_BOOTTIME, 1 << 17, 7);
		if (!failed())
			break;
		self->faults++;
		ASSERT_EQ(-EFAULT, ret);
		ASSERT_EQ(0, hwtw_info(self->fd, &info));
		ASSERT_EQ(0, memcmp(&info, &before, sizeof(info)));
	}
	EXPECT_EQ(0, ret);
	EXPECT_LT(1, n);
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(7, info.max_timers);
}

/* Guards against a first timer that fails half-way: a limit or memory gone. */
TEST_F(fail, first_arm)
{
	static const uint64_t delays[] = { HOUR_NS, 0 };
	struct hwtw_event ev;
	unsigned int n, k;
	uint64_t id = 0;
	int ret;

	for (k = 0; k < ARRAY_SIZE(delays); k++) {
		EACH_FAULT(n) {
			self->fd = anew(self->fd);
			ASSERT_LE(0, self->fd);
			fail_at(n);
			ret = arm_in(self->fd, delays[k], n, &id);
			if (!failed())
				break;
			self->faults++;
			if (!ret) {
				/* It found memory elsewhere. */
				ASSERT_LT(0, hwtw_cancel(self->fd, id));
			} else {
				ASSERT_TRUE(is_fault(ret));
			}
			ASSERT_EQ(-EAGAIN, take(self->fd, &ev, 1));
			ASSERT_TRUE(has_timers(self->fd, 0));
		}
		EXPECT_EQ(0, ret);
		EXPECT_LT(3, n);
		EXPECT_GT(MOST, n);
		EXPECT_LT(0, hwtw_cancel(self->fd, id));
	}
}

/* Guards against operations of a batch that fail and count, or the reverse. */
TEST_F(fail, batch_of_arms)
{
	enum { NR = 160 };
	struct hwtw_op *op = calloc(NR, sizeof(*op));
	struct hwtw_event ev[NR];
	unsigned int n, k, armed, due, wrong = 0;
	uint32_t done;
	int ret;

	EACH_FAULT(n) {
		self->fd = anew(self->fd);
		ASSERT_LE(0, self->fd);
		/* Due in an odd order: late ones need memory of their own. */
		for (k = 0; k < NR; k++)
			op[k] = arm_op(k % 3 ? k * HOUR_NS : (NR - k) * TICK,
				       HWTW_TIMER_ABS, k);
		fail_at(n);
		ret = hwtw_submit(self->fd, op, NR, &done);
		if (!failed())
			break;
		self->faults++;
		/* Before anything was done, or after so many. */
		if (ret) {
			ASSERT_TRUE(is_fault(ret));
		} else {
			ASSERT_EQ(NR, done);
		}
		if (done == POISON32)
			done = 0;
		for (k = armed = due = 0; k < done; k++) {
			wrong += op[k].result && op[k].result != -ENOMEM;
			armed += !op[k].result;
			due += !op[k].result && op[k].timer.state == HWTW_EXPIRED;
		}
		ASSERT_EQ(0, wrong);
		ASSERT_TRUE(has_timers(self->fd, armed));
		ret = take(self->fd, ev, NR);
		ASSERT_EQ(due ? (int)due : -EAGAIN, ret);
		for (k = 1; k < due; k++) {
			ASSERT_LT(ev[k - 1].expires_ns, ev[k].expires_ns);
		}
		for (k = 0; k < done; k++)
			if (!op[k].result && op[k].timer.state == HWTW_PENDING)
				armed -= hwtw_cancel(self->fd, op[k].timer.id) ==
					 HWTW_PENDING;
		ASSERT_EQ(due, armed);
		ASSERT_TRUE(has_timers(self->fd, 0));
	}
	EXPECT_EQ(0, ret);
	EXPECT_EQ(NR, done);
	for (k = 0; k < NR; k++)
		wrong += op[k].result != 0;
	EXPECT_EQ(0, wrong);
	EXPECT_LT(20, n);
	EXPECT_GT(MOST, n);
	free(op);
}

/* Guards against a REARM that fails and has moved the timer all the same. */
TEST_F(fail, rearm)
{
	enum { NR = 160 };
	struct hwtw_timer t;
	struct hwtw_event ev[NR];
	uint64_t id[NR], at[NR], to;
	unsigned int n, k, faults = 0;
	int ret, state;

	self->fd = anew(self->fd);
	for (k = 0; k < NR; k++) {
		at[k] = (k + 1000) * HOUR_NS;
		ASSERT_EQ(0, arm_at(self->fd, at[k], k, &id[k]));
	}
	/* Each goes earlier, and the past ones before those that wait. */
	for (k = 0; k < NR; k++) {
		to = k % 2 ? (NR - k) * TICK : at[k] - HOUR_NS;
		EACH_FAULT(n) {
			fail_at(n);
			ret = rearm_at(self->fd, id[k], to);
			if (!failed())
				break;
			faults++;
			if (ret > 0)
				break;
			ASSERT_TRUE(is_fault(ret));
			state = hwtw_query(self->fd, id[k], &t);
			ASSERT_EQ(HWTW_PENDING, state);
			ASSERT_EQ(at[k], t.time_ns);
			ASSERT_EQ(k, t.user_data);
		}
		ASSERT_EQ(HWTW_PENDING, ret);
		ASSERT_GT(MOST, n);
		ASSERT_LT(0, hwtw_query(self->fd, id[k], &t));
		ASSERT_EQ(to, t.time_ns);
	}
	EXPECT_LT(0, faults);
	self->faults = faults;
	ASSERT_EQ(NR / 2, take(self->fd, ev, NR));
	for (k = 1; k < NR / 2; k++) {
		ASSERT_LT(ev[k - 1].expires_ns, ev[k].expires_ns);
	}
	EXPECT_TRUE(has_timers(self->fd, NR / 2));
}

/* Guards against CANCEL and QUERY failing, which need nothing. */
TEST_F(fail, cancel_and_query)
{
	unsigned int n, k;
	uint64_t id[100];
	int ret;

	for (k = 0; k < 100; k++) {
		ASSERT_EQ(0, arm_in(self->fd, k % 2 ? HOUR_NS : 0, k, &id[k]));
	}
	for (k = 0; k < 100; k++) {
		EACH_FAULT(n) {
			fail_at(n);
			ret = hwtw_query(self->fd, id[k], NULL);
			if (!failed())
				break;
			self->faults++;
			ASSERT_EQ(-EFAULT, ret);
		}
		ASSERT_LT(0, ret);
		EACH_FAULT(n) {
			fail_at(n);
			ret = hwtw_cancel(self->fd, id[k]);
			if (!failed())
				break;
			self->faults++;
			ASSERT_EQ(-EFAULT, ret);
			ASSERT_LT(0, hwtw_query(self->fd, id[k], NULL));
		}
		ASSERT_LT(0, ret);
	}
	EXPECT_TRUE(has_timers(self->fd, 0));
}

/* Guards against a walk that forgets, or cancels what it could not tell of. */
TEST_F(fail, list_and_stats)
{
	enum { NR = 150 };
	struct hwtw_timer t[NR + 1];
	struct hwtw_list list;
	struct hwtw_stats st;
	unsigned int n, k, told[NR] = { 0 };
	uint64_t id[NR], none;
	int ret, cancel;

	memset(&none, POISON, sizeof(none));
	for (k = 0; k < NR; k++) {
		ASSERT_EQ(0, arm_in(self->fd, k % 2 ? HOUR_NS : 0, k, &id[k]));
	}
	EACH_FAULT(n) {
		fail_at(n);
		ret = hwtw_call(self->fd, HWTW_IOC_STATS, &st);
		if (!failed())
			break;
		self->faults++;
		ASSERT_EQ(-EFAULT, ret);
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(NR, st.pending + st.unread);
	for (cancel = 0; cancel < 2; cancel++) {
		EACH_FAULT(n) {
			list = (struct hwtw_list) {
				.timers	= (uintptr_t)t,
				.nr	= NR + 1,
				.flags	= cancel ? HWTW_LIST_CANCEL : 0,
			};
			memset(t, POISON, sizeof(t));
			fail_at(n);
			ret = hwtw_call(self->fd, HWTW_IOC_LIST, &list);
			/* Those that are gone were told of, and no others. */
			for (k = 0; cancel && k < NR && t[k].id != none; k++) {
				ASSERT_GT(NR, t[k].user_data);
				told[t[k].user_data]++;
				ASSERT_EQ(-ENOENT, hwtw_query(self->fd, t[k].id, NULL));
			}
			if (!failed())
				break;
			self->faults++;
			ASSERT_TRUE(!ret || is_fault(ret));
			ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_STATS, &st));
			for (k = 0; k < NR; k++)
				st.pending += told[k];
			ASSERT_EQ(NR, st.pending + st.unread);
		}
		ASSERT_EQ(0, ret);
		ASSERT_LT(2, n);
		ASSERT_GT(MOST, n);
		if (!cancel)
			EXPECT_EQ(NR, list.nr);
	}
	for (k = 0; k < NR; k++) {
		EXPECT_EQ(1, told[k]);
	}
	EXPECT_TRUE(has_timers(self->fd, 0));
}

/* Guards against a mixed batch of which a fault tears the books. */
TEST_F(fail, mixed_batch)
{
	enum { NR = 160 };
	struct hwtw_op op[NR];
	unsigned int n, k, live, wrong = 0;
	uint64_t id[NR];
	bool gone[NR];
	uint32_t done;
	int ret, state;

	EACH_FAULT(n) {
		self->fd = anew(self->fd);
		ASSERT_LE(0, self->fd);
		for (k = 0; k < NR; k++) {
			ASSERT_EQ(0, arm_in(self->fd, k % 2 ? HOUR_NS : 0, k,
					    &id[k]));
		}
		for (k = 0; k < NR; k++) {
			if (k % 4 == 0)
				op[k] = arm_op(k % 8 ? HOUR_NS : 0, 0, k);
			else
				op[k] = id_op(k % 4 == 1 ? HWTW_OP_REARM :
					      k % 4 == 2 ? HWTW_OP_CANCEL :
					      HWTW_OP_QUERY, id[k]);
			if (k % 4 == 1)
				op[k].timer.time_ns = HOUR_NS / 2;
		}
		fail_at(n);
		ret = hwtw_submit(self->fd, op, NR, &done);
		if (!failed())
			break;
		self->faults++;
		if (ret) {
			ASSERT_TRUE(is_fault(ret));
		} else {
			ASSERT_EQ(NR, done);
		}
		if (done == POISON32)
			done = 0;
		memset(gone, 0, sizeof(gone));
		for (k = 0, live = NR; k < done; k++) {
			wrong += op[k].result && op[k].result != -ENOMEM;
			if (op[k].result)
				continue;
			live += op[k].opcode == HWTW_OP_ARM;
			live -= op[k].opcode == HWTW_OP_CANCEL;
			gone[k] = op[k].opcode == HWTW_OP_CANCEL;
		}
		/*
		 * Behind a fault in the copy of results, operations may have
		 * been carried out: their timers are all that may be missing.
		 */
		for (; k < NR && ret; k++) {
			if (op[k].opcode != HWTW_OP_CANCEL)
				continue;
			gone[k] = hwtw_query(self->fd, id[k], NULL) == -ENOENT;
			live -= gone[k];
		}
		ASSERT_EQ(0, wrong);
		for (k = 0; k < NR; k++) {
			state = hwtw_query(self->fd, id[k], NULL);
			wrong += gone[k] ? state != -ENOENT : state <= 0;
		}
		ASSERT_EQ(0, wrong);
		ASSERT_TRUE(has_timers(self->fd, live));
	}
	EXPECT_EQ(0, ret);
	EXPECT_LT(1, n);
	EXPECT_GT(MOST, n);
}

/* Guards against a record that a failed copy loses, doubles or reorders. */
TEST_F(fail, read)
{
	enum { NR = 100 };
	struct hwtw_event ev[NR + 1];
	unsigned int n, k, got, survived = 0;
	struct iovec iov[3];
	int ret, have = 0;

	if (!copies_fail())
		SKIP(return, "no faults in copies");
	EACH_FAULT(n) {
		self->fd = anew(self->fd);
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, arm_many(self->fd, NR, 0, 0, 0, NULL));
		memset(ev, POISON, sizeof(ev));
		/* Pieces that end within a record. */
		iov[0] = (struct iovec) { ev, 40 };
		iov[1] = (struct iovec) { (char *)ev + 40, 1000 };
		iov[2] = (struct iovec) { (char *)ev + 1040, NR * sizeof(*ev) - 1040 };
		fail_at(n);
		ret = readv(self->fd, iov, 3);
		if (ret < 0)
			ret = -errno;
		if (!failed())
			break;
		self->faults++;
		got = 0;
		if (ret >= 0) {
			ASSERT_EQ(0, ret % sizeof(*ev));
			got = ret / sizeof(*ev);
			ASSERT_LT(0, got);
			ASSERT_GE(NR, got);
			/* It tried again. */
			survived += got == NR;
		} else {
			ASSERT_TRUE(is_fault(ret));
		}
		ASSERT_TRUE(has_timers(self->fd, NR - got));
		ret = take(self->fd, ev + got, NR - got + 1);
		ASSERT_EQ(got == NR ? -EAGAIN : (int)(NR - got), ret);
		for (k = 0; k < NR; k++) {
			ASSERT_EQ(k, ev[k].user_data);
		}
		ASSERT_TRUE(has_timers(self->fd, 0));
	}
	/* Without an error a read tells of all of them. */
	have = ret;
	EXPECT_EQ((int)(NR * sizeof(*ev)), have);
	EXPECT_LT(0, survived);
	EXPECT_LT(3, n);
	EXPECT_GT(MOST, n);
}

/* Guards against a periodic timer that a failed copy stops, or moves on. */
TEST_F(fail, read_periodic)
{
	const struct hwtw_timer first = {
		.time_ns = 1, .interval_ns = HOUR_NS, .flags = HWTW_TIMER_ABS,
	};
	struct hwtw_timer t, again;
	struct hwtw_event ev;
	unsigned int n;
	int ret;

	if (!copies_fail())
		SKIP(return, "no faults in copies");
	t = first;
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	EACH_FAULT(n) {
		fail_at(n);
		ret = take(self->fd, &ev, 1);
		if (!failed())
			break;
		self->faults++;
		if (ret != 1) {
			ASSERT_EQ(-EFAULT, ret);
			ASSERT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, t.id, &t));
			ASSERT_EQ(1, t.time_ns);
			continue;
		}
		/* It tried again, and told of it once. */
		ASSERT_EQ(1, ev.expires_ns);
		ASSERT_EQ(HWTW_PENDING, hwtw_query(self->fd, t.id, &t));
		ASSERT_EQ(1 + (ev.overruns + 1ULL) * HOUR_NS, t.time_ns);
		ASSERT_EQ(-EAGAIN, take(self->fd, &ev, 1));
		again = first;
		again.id = t.id;
		ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_REARM, &again));
	}
	EXPECT_EQ(1, ret);
	EXPECT_LT(1, n);
	EXPECT_EQ(1, ev.expires_ns);
	ASSERT_EQ(HWTW_PENDING, hwtw_query(self->fd, t.id, &t));
	EXPECT_EQ(1 + (ev.overruns + 1ULL) * HOUR_NS, t.time_ns);
}

/* Guards against waiting and signals that a fault half sets up. */
TEST_F(fail, epoll_and_fasync)
{
	struct epoll_event want = { .events = EPOLLIN }, event;
	unsigned int n;
	int ep, ret;

	ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, ep);
	EACH_FAULT(n) {
		fail_at(n);
		ret = epoll_ctl(ep, EPOLL_CTL_ADD, self->fd, &want) ? -errno : 0;
		if (!failed())
			break;
		self->faults++;
		if (!ret) {
			ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_DEL, self->fd, NULL));
		} else {
			ASSERT_TRUE(is_fault(ret));
		}
	}
	ASSERT_EQ(0, ret);
	EXPECT_LT(1, n);
	EACH_FAULT(n) {
		fail_at(n);
		ret = fcntl(self->fd, F_SETFL, O_NONBLOCK | O_ASYNC) ? -errno : 0;
		if (!failed())
			break;
		self->faults++;
		if (ret) {
			ASSERT_EQ(-ENOMEM, ret);
			ASSERT_EQ(0, fcntl(self->fd, F_GETFL) & O_ASYNC);
		} else {
			ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
		}
	}
	ASSERT_EQ(0, ret);
	EXPECT_LT(1, n);
	signal(SIGIO, SIG_IGN);
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	EXPECT_EQ(1, epoll_wait(ep, &event, 1, 0));
	close(ep);
}

/* A knob of fault injection, for when opening a file would fail. */
static int knob(const char *path)
{
	return open(path, O_WRONLY | O_CLOEXEC);
}

static int turn(int knob, unsigned int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return write(knob, text, strlen(text)) < 0 ? -errno : 0;
}

/* Guards against expiry that needs memory: none is to be had while it runs. */
TEST_F(fail, expiry_needs_none)
{
	enum { NR = 160 };
	int slab = knob(DEBUGFS "failslab/probability");
	int page = knob(DEBUGFS "fail_page_alloc/probability");
	struct hwtw_event ev[NR];
	unsigned int k;
	int ret;

	for (k = 0; k < NR; k++) {
		ASSERT_EQ(0, arm_in(self->fd, (k % 100) * TICK, k, NULL));
	}
	/* Whatever may not sleep fails, in whatever context. */
	ASSERT_EQ(0, put(DEBUGFS "failslab/ignore-gfp-wait", "Y"));
	ASSERT_EQ(0, put(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "Y"));
	ASSERT_EQ(0, put(DEBUGFS "failslab/times", "-1"));
	ASSERT_EQ(0, put(DEBUGFS "fail_page_alloc/times", "-1"));
	ASSERT_EQ(0, turn(page, 100));
	ASSERT_EQ(0, turn(slab, 100));
	sleep_ns(200 * TICK);
	ret = turn(slab, 0);
	ret = ret ? ret : turn(page, 0);
	ASSERT_EQ(0, ret);
	ASSERT_EQ(NR, take_all(self->fd, ev, NR));
	EXPECT_TRUE(has_timers(self->fd, 0));
	close(slab);
	close(page);
}

/*
 * Guards against ENOMEM being handled in one place and not in the next: no
 * memory at all from a certain byte on, where large pieces fail in both ways.
 */
TEST_F(fail, out_of_memory)
{
	int slab = knob(DEBUGFS "failslab/probability");
	int page = knob(DEBUGFS "fail_page_alloc/probability");
	int slab_space = knob(DEBUGFS "failslab/space");
	int page_space = knob(DEBUGFS "fail_page_alloc/space");
	unsigned int space, good = 0, bad = 0;
	char printk[64] = "", task[64];
	int ret, fd = open(PRINTK, O_RDONLY);
	uint64_t id;

	ASSERT_LT(0, read(fd, printk, sizeof(printk) - 1));
	close(fd);
	snprintf(task, sizeof(task), "/proc/%d/make-it-fail", getpid());
	ASSERT_EQ(0, put(DEBUGFS "failslab/task-filter", "Y"));
	ASSERT_EQ(0, put(DEBUGFS "fail_page_alloc/task-filter", "Y"));
	ASSERT_EQ(0, put(DEBUGFS "failslab/times", "-1"));
	ASSERT_EQ(0, put(DEBUGFS "fail_page_alloc/times", "-1"));
	ASSERT_EQ(0, put(task, "1"));
	/* The kernel says with a backtrace that there is no memory. */
	ASSERT_EQ(0, put(PRINTK, "1"));
	for (space = 0; space < 1 << 17; space += space < 8192 ? 128 : 4096) {
		self->fd = anew(self->fd);
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, turn(slab_space, space));
		ASSERT_EQ(0, turn(page_space, space));
		ASSERT_EQ(0, turn(page, 100));
		ASSERT_EQ(0, turn(slab, 100));
		ret = arm_in(self->fd, HOUR_NS, 0, &id);
		ASSERT_EQ(0, turn(slab, 0));
		ASSERT_EQ(0, turn(page, 0));
		if (!ret) {
			good++;
			ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
		} else {
			bad++;
			ASSERT_EQ(-ENOMEM, ret);
		}
		ASSERT_TRUE(has_timers(self->fd, 0));
	}
	ASSERT_EQ(0, put(PRINTK, printk));
	ASSERT_EQ(0, put(task, "0"));
	EXPECT_LT(0, good);
	EXPECT_LT(0, bad);
	self->faults = bad;
}

TEST_HARNESS_MAIN
