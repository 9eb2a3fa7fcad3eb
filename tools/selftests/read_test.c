// SPDX-License-Identifier: GPL-2.0
/*
 * How expiries come out of /dev/hwtw: read(), order, faults, withdrawal, poll
 * and its relatives, descriptors that are shared and passed on, memory.
 */
#include "hwtw_test.h"

#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>

#define TICK	HWTW_TICK_DEFAULT_NS
#define EV	sizeof(struct hwtw_event)

FIXTURE(dev) {
	int fd;
};

FIXTURE_SETUP(dev)
{
	self->fd = hwtw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, pin_to(0));
}

FIXTURE_TEARDOWN(dev)
{
	close(self->fd);
}

static int set_blocking(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

/* --- read() --- */

/* Guards against a record with less, or more, than the contract says. */
TEST_F(dev, record)
{
	struct hwtw_event ev[2];
	uint64_t id;

	memset(ev, POISON, sizeof(ev));
	ASSERT_EQ(0, arm_at(self->fd, 123456789, 42, &id));
	ASSERT_EQ(EV, read(self->fd, ev, sizeof(ev)));
	EXPECT_EQ(42, ev[0].user_data);
	EXPECT_EQ(id, ev[0].id);
	EXPECT_EQ(123456789, ev[0].expires_ns);
	EXPECT_EQ(0, ev[0].overruns);
	EXPECT_EQ(0, ev[0].flags);
	EXPECT_TRUE(all_bytes(&ev[1], POISON, EV));
	EXPECT_EQ(-1, read(self->fd, ev, sizeof(ev)));
	EXPECT_EQ(EAGAIN, errno);
}

/* Guards against expires_ns that was rounded to the tick, or is not absolute. */
TEST_F(dev, record_of_delay)
{
	static const uint64_t delays[] = { 0, 1, 12345, TICK, 3 * TICK + 1 };
	uint64_t before, after;
	struct hwtw_event ev;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		before = now_ns();
		ASSERT_EQ(0, arm_in(self->fd, delays[i], i, NULL));
		after = now_ns();
		ASSERT_EQ(1, take_all(self->fd, &ev, 1));
		EXPECT_LE(ev.expires_ns, now_ns());
		EXPECT_LE(before + delays[i], ev.expires_ns);
		EXPECT_GE(after + delays[i], ev.expires_ns);
	}
}

/* Guards against part of a record. */
TEST_F(dev, buffer_too_small)
{
	char buf[EV];
	size_t len;

	/* Also when there is nothing to read. */
	EXPECT_EQ(-1, read(self->fd, buf, EV - 1));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	memset(buf, POISON, sizeof(buf));
	for (len = 1; len < EV; len++) {
		EXPECT_EQ(-1, read(self->fd, buf, len));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_TRUE(all_bytes(buf, POISON, sizeof(buf)));
	EXPECT_EQ(EV, read(self->fd, buf, EV));
}

/* Guards against the rest of a buffer filled with part of a record. */
TEST_F(dev, whole_records)
{
	char buf[4 * EV];

	ASSERT_EQ(0, arm_many(self->fd, 4, 0, 0, 0, NULL));
	memset(buf, POISON, sizeof(buf));
	EXPECT_EQ(2 * EV, read(self->fd, buf, 2 * EV + EV / 2));
	EXPECT_TRUE(all_bytes(buf + 2 * EV, POISON, 2 * EV));
	EXPECT_EQ(EV, read(self->fd, buf, 2 * EV - 1));
	EXPECT_EQ(EV, read(self->fd, buf, 4 * EV));
	EXPECT_EQ(-1, read(self->fd, buf, 4 * EV));
	EXPECT_EQ(EAGAIN, errno);
}

/* Guards against a read that stops at a batch of the implementation. */
TEST_F(dev, as_many_as_fit)
{
	enum { NR = 20000 };
	struct hwtw_event *ev = calloc(NR + 1, EV);
	int i;

	ASSERT_EQ(0, pin_to(0));
	ASSERT_EQ(0, arm_many(self->fd, NR, 5, HWTW_TIMER_ABS, 0, NULL));
	ASSERT_EQ(NR, take(self->fd, ev, NR + 1));
	for (i = 0; i < NR; i++) {
		ASSERT_EQ((uint64_t)i, ev[i].user_data);
	}
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 1));
}

/* Guards against lengths that overflow, and long ones refused. */
TEST_F(dev, huge_length)
{
	struct hwtw_event *ev = map_pages(1);

	ASSERT_EQ(0, arm_many(self->fd, 3, 0, 0, 0, NULL));
	EXPECT_EQ(3 * EV, read(self->fd, ev, INT32_MAX));
}

/* Guards against records that do not go on in the next piece of a readv(). */
TEST_F(dev, vectors)
{
	struct hwtw_event ev[3];
	struct iovec v[4] = {
		{ (char *)ev, 5 },
		{ (char *)ev + 5, EV },
		{ (char *)ev + 5 + EV, 0 },
		{ (char *)ev + 5 + EV, 2 * EV - 6 },
	};

	/* One byte less than three records. */
	ASSERT_EQ(0, arm_many(self->fd, 3, 0, 0, 70, NULL));
	EXPECT_EQ(2 * EV, readv(self->fd, v, 4));
	EXPECT_EQ(70, ev[0].user_data);
	EXPECT_EQ(71, ev[1].user_data);
	EXPECT_EQ(1, take(self->fd, ev, 3));
	EXPECT_EQ(72, ev[0].user_data);
}

/* Guards against a record that is gone because it could not be copied. */
TEST_F(dev, fault_leaves_unread)
{
	char *cliff = map_cliff(1);
	void *bad[] = { NULL, cliff, cliff - 1, cliff - EV + 1,
			(void *)INTPTR_MIN, (void *)-4096UL };
	struct hwtw_event ev[4];
	void *ro = map_readonly("", 1);
	uint64_t id[3];
	size_t i;

	ASSERT_EQ(0, arm_many(self->fd, 3, 5, HWTW_TIMER_ABS, 0, id));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EFAULT, take(self->fd, bad[i], 2)) {
			TH_LOG("pointer %p", bad[i]);
		}
		EXPECT_EQ(1, readable(self->fd, 0));
	}
	EXPECT_EQ(-EFAULT, take(self->fd, ro, 2));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, id[i], NULL));
	}
	ASSERT_EQ(3, take(self->fd, ev, 4));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(i, ev[i].user_data);
	}
}

#ifdef __x86_64__
/* Read into an array further down the stack than anybody has been. */
static __attribute__((noinline)) long read_to_new_stack(int fd)
{
	struct hwtw_event ev[65536];
	long ret;

	/* A call to a function would touch what is below the array. */
	asm volatile("syscall" : "=a" (ret)
		     : "0" ((long)SYS_read), "D" ((long)fd), "S" (ev), "d" (sizeof(ev))
		     : "rcx", "r11", "memory");
	return ret;
}

/* Guards against memory that has to grow being taken for none. */
TEST_F(dev, read_grows_stack)
{
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	EXPECT_EQ((long)EV, read_to_new_stack(self->fd));
}
#endif

/* Guards against records lost or doubled at a fault half-way through. */
TEST_F(dev, fault_half_way)
{
	enum { NR = 100 };
	static const size_t room[] = {
		EV, EV + 1, 2 * EV - 1, 2 * EV, 5 * EV / 2, 16 * EV + 8,
		31 * EV, 32 * EV + 31, 33 * EV, 64 * EV, 65 * EV + 1,
	};
	struct hwtw_event ev[NR], *part;
	char *cliff = map_cliff(2);
	size_t i, k, n;

	for (i = 0; i < ARRAY_SIZE(room); i++) {
		n = room[i] / EV;
		ASSERT_EQ(0, arm_many(self->fd, NR, 5, HWTW_TIMER_ABS, 0,
				      NULL));
		part = (void *)(cliff - room[i]);
		ASSERT_EQ((int)n, take(self->fd, part, NR)) {
			TH_LOG("room for %zu bytes", room[i]);
		}
		memcpy(ev, part, n * EV);
		ASSERT_EQ(NR - (int)n, take(self->fd, ev + n, NR));
		for (k = 0; k < NR; k++) {
			ASSERT_EQ(k, ev[k].user_data);
		}
		EXPECT_EQ(-EAGAIN, take(self->fd, ev, NR));
	}
}

/* Guards against memory that is there, but has to be fetched, taken for bad. */
TEST_F(dev, fault_is_fetched)
{
	enum { NR = 150 };
	char *page = map_pages(3);
	struct hwtw_event *ev;
	int before, k;

	for (before = 0; before <= 4096; before += 8 + before % 24) {
		/* The last bytes of a page that is there, and the next two. */
		ev = (void *)(page + 4096 - before);
		ASSERT_EQ(0, madvise(page + 4096, 2 * 4096, MADV_DONTNEED));
		ASSERT_EQ(0, arm_many(self->fd, NR, 5, HWTW_TIMER_ABS, 0, NULL));
		ASSERT_EQ(NR, take(self->fd, ev, NR)) {
			TH_LOG("%d bytes before", before);
		}
		for (k = 0; k < NR; k++) {
			ASSERT_EQ(k, ev[k].user_data);
		}
	}
	munmap(page, 3 * 4096);
}

/* Guards against timers that a fault made impossible to cancel or move. */
TEST_F(dev, fault_then_cancel)
{
	char *cliff = map_cliff(1);
	struct hwtw_event ev[4];
	uint64_t id[4];

	ASSERT_EQ(0, arm_many(self->fd, 4, 5, HWTW_TIMER_ABS, 0, id));
	ASSERT_EQ(1, take(self->fd, (void *)(cliff - EV), 4));
	EXPECT_EQ(-EFAULT, take(self->fd, (void *)(cliff - 1), 4));
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, id[0]));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id[1]));
	EXPECT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id[2], HOUR_NS));
	ASSERT_EQ(1, take(self->fd, ev, 4));
	EXPECT_EQ(3, ev[0].user_data);
}

/* Guards against read(0) blocking or taking something. */
TEST_F(dev, zero_length)
{
	struct hwtw_event ev;
	ssize_t ret;

	ASSERT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	ret = read(self->fd, &ev, 0);
	EXPECT_TRUE(ret == 0 || (ret == -1 && errno == EINVAL));
	EXPECT_EQ(1, take(self->fd, &ev, 1));
}

/* --- At once --- */

/* Guards against a past deadline waiting for a tick or a rotation (B-04, B-24). */
TEST_F(dev, past_at_once)
{
	uint64_t now = now_ns();
	uint64_t past[] = { 0, 1, 2, TICK - 1, TICK, TICK + 1, now / 2,
			    now - NSEC_PER_SEC, now - TICK, now - 1, now };
	struct hwtw_event ev;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(past); i++) {
		ASSERT_EQ(0, arm_at(self->fd, past[i], i, NULL));
		EXPECT_EQ(1, readable(self->fd, 0)) {
			TH_LOG("deadline %llu at %llu",
			       (unsigned long long)past[i],
			       (unsigned long long)now);
		}
		ASSERT_EQ(1, take(self->fd, &ev, 1));
		EXPECT_EQ(i, ev.user_data);
		EXPECT_EQ(past[i], ev.expires_ns);
		EXPECT_EQ(0, readable(self->fd, 0));
	}
}

/* Guards against zero delays paying a tick (B-09, tokio #6866). */
TEST_F(dev, zero_delay_at_once)
{
	unsigned int shift;
	struct hwtw_event ev;

	for (shift = 16; shift <= 30; shift++) {
		int fd = hwtw_open(O_NONBLOCK);

		ASSERT_EQ(0, hwtw_setup(fd, CLOCK_MONOTONIC, 1ULL << shift, 0));
		ASSERT_EQ(0, arm_in(fd, 0, 1, NULL));
		EXPECT_EQ(1, take(fd, &ev, 1));
		/* Also when the wheel has work of its own. */
		ASSERT_EQ(0, arm_in(fd, HOUR_NS, 0, NULL));
		ASSERT_EQ(0, arm_in(fd, 0, 2, NULL));
		EXPECT_EQ(1, take(fd, &ev, 1));
		EXPECT_EQ(2, ev.user_data);
		close(fd);
	}
}

/* Guards against reading too soon, at any length of delay (D-5, B-11). */
TEST_F(dev, never_early)
{
	enum { NR = 3000 };
	struct hwtw_event ev[64];
	struct rnd r = { 5 };
	int i, k, n, have = 0;
	uint64_t now;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 1 << 16, 0));
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, arm_in(self->fd,
				    rnd_below(&r, 300 * NSEC_PER_MSEC), i,
				    NULL));
	}
	while (have < NR && readable(self->fd, 20000)) {
		n = take(self->fd, ev, 64);
		now = now_ns();
		ASSERT_LT(0, n);
		for (k = 0; k < n; k++) {
			ASSERT_LE(ev[k].expires_ns, now);
		}
		have += n;
	}
	EXPECT_EQ(NR, have);
}

/* --- Order --- */

/* How many of the records come too soon after the one before. */
static int disorder(const struct hwtw_event *ev, int nr, uint64_t tick)
{
	int i, bad = 0;

	for (i = 1; i < nr; i++)
		bad += tick_of(ev[i - 1].expires_ns, tick) >
		       tick_of(ev[i].expires_ns, tick);
	return bad;
}

/* Guards against records in the order of arming instead of the deadlines. */
TEST_F(dev, order_of_past)
{
	enum { NR = 5000 };
	struct hwtw_event *ev = calloc(NR, EV);
	struct rnd r = { 6 };
	uint64_t now = now_ns();
	static const int piece[] = { NR, 1000, 33, 7 };
	size_t p;
	int i, have, n;

	for (p = 0; p < ARRAY_SIZE(piece); p++) {
		for (i = 0; i < NR; i++) {
			ASSERT_EQ(0, arm_at(self->fd, 1 + rnd_below(&r, now),
					    i, NULL));
		}
		for (have = 0; have < NR; have += n) {
			n = take(self->fd, ev + have, NR - have < piece[p] ?
				 NR - have : piece[p]);
			ASSERT_LT(0, n);
		}
		EXPECT_EQ(0, disorder(ev, NR, TICK)) {
			TH_LOG("in pieces of %d", piece[p]);
		}
	}
}

/* Guards against the same for deadlines that pass in good time. */
TEST_F(dev, order_of_future)
{
	enum { NR = 2000 };
	struct hwtw_event *ev = calloc(NR, EV);
	uint64_t base = now_ns() + 100 * NSEC_PER_MSEC, *id;
	struct rnd r = { 7 };
	int i;

	id = calloc(NR, sizeof(*id));
	for (i = 0; i < NR; i++) {
		/* One in five passed before it is armed. */
		ASSERT_EQ(0, arm_at(self->fd, i % 5 ?
			base + rnd_below(&r, 200 * NSEC_PER_MSEC) :
			1 + rnd_below(&r, base / 2), i, &id[i]));
	}
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(HWTW_EXPIRED, wait_expired(self->fd, id[i]));
	}
	ASSERT_EQ(NR, take(self->fd, ev, NR));
	EXPECT_EQ(0, disorder(ev, NR, TICK));
}

/* Guards against one tick being read backwards or at random. */
TEST_F(dev, order_in_tick)
{
	enum { NR = 3000 };
	struct hwtw_event *ev = calloc(NR, EV);
	uint64_t id = 0, base, delay = 0;
	struct rnd r = { 8 };
	bool in_time;
	int i;

	/* Timers of one tick that were armed on two CPUs come in any order. */
	ASSERT_EQ(0, pin_to(0));
	/* In the past, then in time to come. A slow machine needs more of it. */
	do {
		/* All in the tick that ends at base. */
		base = delay ? now_ns() + delay : now_ns() / 2;
		base = tick_of(base, TICK) * TICK;
		for (i = 0; i < NR; i++) {
			ASSERT_EQ(0, arm_at(self->fd,
					    base - rnd_below(&r, TICK), i,
					    &id));
		}
		/* One that is due already does not wait for the end of its tick. */
		in_time = now_ns() < base - TICK;
		ASSERT_EQ(HWTW_EXPIRED, wait_expired(self->fd, id));
		ASSERT_EQ(NR, take_all(self->fd, ev, NR));
		for (i = 0; i < NR && (in_time || !delay); i++) {
			ASSERT_EQ((uint64_t)i, ev[i].user_data);
		}
		delay = delay ? 4 * delay : 200 * NSEC_PER_MSEC;
	} while (!in_time);
}

/* Guards against a batch that goes on arming on the wheel of a timer it cancelled. */
TEST_F(dev, order_in_tick_behind_cancel)
{
	struct hwtw_event ev[2];
	struct hwtw_op op[3];
	uint64_t id, deadline;

	ASSERT_EQ(0, pin_to(1));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	ASSERT_EQ(0, pin_to(0));
	deadline = now_ns() + 20 * TICK;
	op[0] = id_op(HWTW_OP_CANCEL, id);
	op[1] = arm_op(deadline, HWTW_TIMER_ABS, 1);
	op[2] = arm_op(deadline, HWTW_TIMER_ABS, 2);
	ASSERT_EQ(0, hwtw_submit(self->fd, op, 3, NULL));
	sleep_ns(40 * TICK);
	ASSERT_EQ(2, take_all(self->fd, ev, 2));
	EXPECT_EQ(1, ev[0].user_data);
	EXPECT_EQ(2, ev[1].user_data);
}

/* Guards against a far deadline's cascades turning its tick round (D-27). */
TEST_F(dev, order_in_tick_cascade)
{
	enum { NR = 500 };
	struct hwtw_event *ev = calloc(NR, EV);
	uint64_t tick = HWTW_TICK_MIN_NS, at, id = 0;
	int i;

	ASSERT_EQ(0, pin_to(0));
	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, tick, 0));
	at = tick_of(now_ns() + 600 * NSEC_PER_MSEC, tick) * tick;
	for (i = 0; i < NR; i++) {
		if (i % 100 == 99)
			sleep_ns(90 * NSEC_PER_MSEC);
		ASSERT_EQ(0, arm_at(self->fd, at, i, &id));
	}
	ASSERT_EQ(HWTW_EXPIRED, wait_expired(self->fd, id));
	ASSERT_EQ(NR, take_all(self->fd, ev, NR));
	/* The last may have been armed late on a slow machine: still in order. */
	for (i = 0; i < NR; i++) {
		ASSERT_EQ((uint64_t)i, ev[i].user_data);
	}
}

/* Guards against the CPUs' records coming one CPU after the other. */
TEST_F(dev, order_across_cpus)
{
	enum { NR = 2000 };
	struct hwtw_event *ev = calloc(NR, EV);
	struct rnd r = { 9 };
	uint64_t now = now_ns(), id[NR];
	int i, future;

	for (future = 0; future < 2; future++) {
		for (i = 0; i < NR; i++) {
			if (i % 50 == 0)
				ASSERT_EQ(0, pin_to(i / 50));
			ASSERT_EQ(0, arm_at(self->fd, future ?
				now_ns() + rnd_below(&r, 100 * NSEC_PER_MSEC) :
				1 + rnd_below(&r, now), i, &id[i]));
		}
		for (i = 0; i < NR; i++) {
			ASSERT_EQ(HWTW_EXPIRED, wait_expired(self->fd, id[i]));
		}
		for (i = 0; i < NR; i += 40) {
			ASSERT_EQ(40, take(self->fd, ev + i, 40));
		}
		EXPECT_EQ(0, disorder(ev, NR, TICK));
	}
}

/* --- Withdrawal --- */

/* Guards against a cancelled expiry that is still read (B-38, golang #37196). */
TEST_F(dev, cancel_withdraws)
{
	struct hwtw_event ev;
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
	ASSERT_EQ(1, readable(self->fd, 0));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id));
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
}

/* Guards against a moved timer's former expiry still being read (B-38). */
TEST_F(dev, rearm_withdraws)
{
	struct hwtw_event ev[4];
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
	EXPECT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id, HOUR_NS));
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 1));
	/* Nor once more with the new one. */
	EXPECT_EQ(HWTW_PENDING, rearm_at(self->fd, id, 1234));
	EXPECT_EQ(HWTW_EXPIRED, rearm_at(self->fd, id, 5678));
	ASSERT_EQ(1, take(self->fd, ev, 4));
	EXPECT_EQ(5678, ev[0].expires_ns);
}

/* Guards against a batch of expiries that cannot be changed (B-39, muduo #668). */
TEST_F(dev, cancel_second_of_tick)
{
	struct hwtw_event ev[4];
	uint64_t id[3], at = tick_of(now_ns(), TICK) * TICK + 20 * TICK;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, arm_at(self->fd, at, i, &id[i]));
	}
	ASSERT_EQ(HWTW_EXPIRED, wait_expired(self->fd, id[2]));
	ASSERT_EQ(1, take(self->fd, ev, 1));
	EXPECT_EQ(0, ev[0].user_data);
	EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id[1]));
	EXPECT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id[2], HOUR_NS));
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 4));
}

/* Guards against withdrawal that breaks what is around it (B-44). */
TEST_F(dev, withdraw_every_other)
{
	enum { NR = 1000 };
	struct hwtw_event *ev = calloc(NR, EV);
	uint64_t id[NR];
	int i, k, n;

	for (k = 2; k < 5; k++) {
		ASSERT_EQ(0, arm_many(self->fd, NR, 5, HWTW_TIMER_ABS, 0, id));
		for (i = n = 0; i < NR; i++) {
			if (i % k)
				n++;
			else
				ASSERT_EQ(HWTW_EXPIRED,
					  hwtw_cancel(self->fd, id[i]));
		}
		ASSERT_EQ(n, take(self->fd, ev, NR));
		for (i = 0; i < n; i++) {
			EXPECT_NE(0, ev[i].user_data % k);
			if (i)
				EXPECT_LT(ev[i - 1].user_data, ev[i].user_data);
		}
		EXPECT_EQ(0, readable(self->fd, 0));
	}
}

/* Guards against unread memory growing with every withdrawal. */
TEST_F(dev, withdraw_often)
{
	struct hwtw_event ev[2];
	uint64_t id;
	int i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 1));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
	for (i = 0; i < 50000; i++) {
		ASSERT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id, 0));
	}
	EXPECT_EQ(1, take(self->fd, ev, 2));
	for (i = 0; i < 50000; i++) {
		ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
		ASSERT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id));
	}
	EXPECT_EQ(0, readable(self->fd, 0));
}

/* Guards against a reader that arms delay 0 for what it reads (B-26). */
TEST_F(dev, reader_rearms_zero)
{
	struct hwtw_event ev[8];
	uint64_t other;
	int i, k, n, seen = 0;

	ASSERT_EQ(0, arm_in(self->fd, 0, 1, NULL));
	ASSERT_EQ(0, arm_in(self->fd, 5 * NSEC_PER_MSEC, 2, &other));
	for (i = 0; i < 200000 && !seen; i++) {
		n = take(self->fd, ev, 8);
		ASSERT_LT(0, n);
		ASSERT_GE(2, n);
		for (k = 0; k < n; k++) {
			if (ev[k].user_data == 2)
				seen++;
			else
				ASSERT_EQ(0, arm_in(self->fd, 0, 1, NULL));
		}
	}
	EXPECT_EQ(1, seen);
}

/* --- poll, select, epoll, SIGIO --- */

/* Guards against poll() that promises what read() does not keep. */
TEST_F(dev, poll_tells)
{
	struct pollfd p = {
		.fd = self->fd,
		.events = POLLIN | POLLRDNORM | POLLPRI | POLLOUT | POLLWRNORM,
	};
	struct hwtw_event ev[2];

	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, NULL));
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, arm_many(self->fd, 2, 0, 0, 0, NULL));
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLIN | POLLRDNORM, p.revents);
	ASSERT_EQ(1, take(self->fd, ev, 1));
	EXPECT_EQ(1, poll(&p, 1, 0));
	ASSERT_EQ(1, take(self->fd, ev, 1));
	EXPECT_EQ(0, poll(&p, 1, 0));
}

/* Guards against a sleeper in poll() that nobody wakes. */
TEST_F(dev, poll_wakes)
{
	struct hwtw_event ev;
	uint64_t start;

	ASSERT_EQ(0, arm_in(self->fd, 200 * NSEC_PER_MSEC, 0, NULL));
	EXPECT_EQ(0, readable(self->fd, 0));
	start = now_ns();
	EXPECT_EQ(1, readable(self->fd, 20000));
	/* At the end of its time poll() would look once more. */
	EXPECT_GT(10 * NSEC_PER_SEC, now_ns() - start);
	EXPECT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_LE(ev.expires_ns, now_ns());
}

/* Guards against select() being forgotten. */
TEST_F(dev, select_tells)
{
	struct timeval zero = {}, long_time = { 20, 0 };
	fd_set in, out;
	struct hwtw_event ev;

	FD_ZERO(&in);
	FD_SET(self->fd, &in);
	EXPECT_EQ(0, select(self->fd + 1, &in, NULL, NULL, &zero));
	ASSERT_EQ(0, arm_in(self->fd, 20 * NSEC_PER_MSEC, 0, NULL));
	FD_SET(self->fd, &in);
	EXPECT_EQ(1, select(self->fd + 1, &in, NULL, NULL, &long_time));
	EXPECT_TRUE(FD_ISSET(self->fd, &in));
	EXPECT_EQ(1, take(self->fd, &ev, 1));
	FD_ZERO(&out);
	FD_SET(self->fd, &out);
	zero = (struct timeval) {};
	EXPECT_EQ(0, select(self->fd + 1, NULL, &out, NULL, &zero));
}

static int epoll_with(int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u64 = 7 };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) ? -errno : ep;
}

static int epoll_events(int ep, int timeout_ms)
{
	struct epoll_event e[4];

	return epoll_wait(ep, e, 4, timeout_ms);
}

/* Guards against a level that is not told again, or told when it is not. */
TEST_F(dev, epoll_level)
{
	int ep = epoll_with(self->fd, EPOLLIN);
	struct hwtw_event ev;
	uint64_t id;

	ASSERT_LE(0, ep);
	EXPECT_EQ(0, epoll_events(ep, 0));
	ASSERT_EQ(0, arm_in(self->fd, 5 * NSEC_PER_MSEC, 0, &id));
	EXPECT_EQ(1, epoll_events(ep, 20000));
	EXPECT_EQ(1, epoll_events(ep, 0));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(0, epoll_events(ep, 0));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
	EXPECT_EQ(1, epoll_events(ep, 0));
	ASSERT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id));
	EXPECT_EQ(0, epoll_events(ep, 0));
}

/* Guards against edges that are missed after the records were read. */
TEST_F(dev, epoll_edge_drained)
{
	int ep = epoll_with(self->fd, EPOLLIN | EPOLLET), i;
	struct hwtw_event ev;

	ASSERT_LE(0, ep);
	for (i = 0; i < 20; i++) {
		/* Both ways to expire: at once, and by the clock. */
		ASSERT_EQ(0, arm_in(self->fd, i % 2 * 3 * NSEC_PER_MSEC, i,
				    NULL));
		EXPECT_EQ(1, epoll_events(ep, 20000));
		EXPECT_EQ(0, epoll_events(ep, 0));
		ASSERT_EQ(1, take(self->fd, &ev, 1));
		EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
		EXPECT_EQ(0, epoll_events(ep, 0));
	}
}

/* Guards against an expiry without an edge while older ones are unread. */
TEST_F(dev, epoll_edge_undrained)
{
	int ep = epoll_with(self->fd, EPOLLIN | EPOLLET), i;

	ASSERT_LE(0, ep);
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, arm_in(self->fd, i % 2 * 3 * NSEC_PER_MSEC, i,
				    NULL));
		EXPECT_EQ(1, epoll_events(ep, 5000)) {
			TH_LOG("expiry %d", i);
		}
		EXPECT_EQ(0, epoll_events(ep, 0));
	}
}

/* Guards against EPOLLONESHOT and a late ADD missing what is there. */
TEST_F(dev, epoll_oneshot)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT };
	int ep;

	ASSERT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	ep = epoll_with(self->fd, EPOLLIN | EPOLLONESHOT);
	EXPECT_EQ(1, epoll_events(ep, 0));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	EXPECT_EQ(0, epoll_events(ep, 0));
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_MOD, self->fd, &e));
	EXPECT_EQ(1, epoll_events(ep, 0));
}

/* Guards against FIONREAD that says more or less than a read finds. */
TEST_F(dev, fionread)
{
	struct hwtw_event ev[8];
	uint64_t id[5];
	int bytes = -1;

	ASSERT_EQ(0, ioctl(self->fd, FIONREAD, &bytes));
	EXPECT_EQ(0, bytes);
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, NULL));
	ASSERT_EQ(0, arm_many(self->fd, 5, 0, 0, 0, id));
	ASSERT_EQ(0, ioctl(self->fd, FIONREAD, &bytes));
	EXPECT_EQ(5 * (int)EV, bytes);
	ASSERT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id[1]));
	ASSERT_EQ(0, ioctl(self->fd, FIONREAD, &bytes));
	EXPECT_EQ(4 * (int)EV, bytes);
	ASSERT_EQ(1, take(self->fd, ev, 1));
	ASSERT_EQ(0, ioctl(self->fd, FIONREAD, &bytes));
	EXPECT_EQ(3 * (int)EV, bytes);
	EXPECT_EQ(bytes, read(self->fd, ev, sizeof(ev)));
	ASSERT_EQ(0, ioctl(self->fd, FIONREAD, &bytes));
	EXPECT_EQ(0, bytes);
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, FIONREAD, NULL));
}

/* Guards against SIGIO not coming, or coming when it was not asked for. */
TEST_F(dev, sigio)
{
	struct timespec long_time = { 20, 0 }, short_time = { 0, 50000000 };
	int flags = fcntl(self->fd, F_GETFL);
	struct hwtw_event ev;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ASSERT_EQ(0, fcntl(self->fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, flags | O_ASYNC));
	ASSERT_EQ(0, arm_in(self->fd, 5 * NSEC_PER_MSEC, 0, NULL));
	EXPECT_EQ(SIGIO, sigtimedwait(&set, NULL, &long_time));
	EXPECT_EQ(1, take(self->fd, &ev, 1));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	EXPECT_EQ(SIGIO, sigtimedwait(&set, NULL, &long_time));
	EXPECT_EQ(1, take(self->fd, &ev, 1));

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, flags));
	ASSERT_EQ(0, arm_in(self->fd, NSEC_PER_MSEC, 0, NULL));
	EXPECT_EQ(1, readable(self->fd, 20000));
	EXPECT_EQ(-1, sigtimedwait(&set, NULL, &short_time));
}

/* --- Sleepers --- */

enum waiting { IN_READ, IN_POLL, IN_EPOLL, IN_EPOLLET, WAYS };

static const char * const way_names[] = { "read", "poll", "epoll", "EPOLLET" };

struct sleeper {
	int fd;
	int ep;
	enum waiting how;
	pthread_t thread;
	int got;
	uint64_t read_ns;
	struct hwtw_event ev;
};

/* Waits for one record in its own way and reads it. */
static void *sleeper_main(void *arg)
{
	struct sleeper *s = arg;

	if (s->how == IN_POLL)
		readable(s->fd, 20000);
	else if (s->how != IN_READ)
		epoll_events(s->ep, 20000);
	s->got = take(s->fd, &s->ev, 1);
	s->read_ns = now_ns();
	return NULL;
}

/* Starts it and leaves it time to fall asleep. */
static void sleeper_start(struct sleeper *s, int fd, enum waiting how)
{
	*s = (struct sleeper) { .fd = fd, .how = how };
	if (how == IN_EPOLL)
		s->ep = epoll_with(fd, EPOLLIN);
	else if (how == IN_EPOLLET)
		s->ep = epoll_with(fd, EPOLLIN | EPOLLET);
	pthread_create(&s->thread, NULL, sleeper_main, s);
	sleep_ns(30 * NSEC_PER_MSEC);
}

/* Guards against a sleeper that sleeps on when a timer moves (B-16, B-17). */
TEST_F(dev, rearm_to_past_wakes)
{
	struct sleeper s;
	uint64_t id;
	int how;

	for (how = 0; how < WAYS; how++) {
		int fd = hwtw_open(0);

		ASSERT_EQ(0, arm_in(fd, HOUR_NS, 5, &id));
		sleeper_start(&s, fd, how);
		EXPECT_EQ(HWTW_PENDING, rearm_at(fd, id, 77));
		pthread_join(s.thread, NULL);
		EXPECT_EQ(1, s.got) {
			TH_LOG("in %s", way_names[how]);
		}
		EXPECT_EQ(77, s.ev.expires_ns);
		close(fd);
	}
}

/* Guards against a wheel asleep until its first timer (B-15, FRR #10626). */
TEST_F(dev, earlier_timer_wakes)
{
	struct sleeper s;
	uint64_t id;
	int how, cpu, rearm;

	for (how = 0; how < WAYS; how++) {
		for (cpu = 0; cpu < 2; cpu++) {
			for (rearm = 0; rearm < 2; rearm++) {
				int fd = hwtw_open(0);

				pin_to(0);
				ASSERT_EQ(0, arm_in(fd, HOUR_NS, 5, &id));
				sleeper_start(&s, fd, how);
				pin_to(cpu);
				if (rearm) {
					EXPECT_EQ(HWTW_PENDING, rearm_in(fd,
						id, 5 * NSEC_PER_MSEC));
				} else {
					EXPECT_EQ(0, arm_in(fd,
						5 * NSEC_PER_MSEC, 5, NULL));
				}
				pthread_join(s.thread, NULL);
				EXPECT_EQ(1, s.got) {
					TH_LOG("in %s, CPU %d", way_names[how],
					       cpu);
				}
				EXPECT_LE(s.ev.expires_ns, s.read_ns);
				close(fd);
			}
		}
	}
}

/* Guards against wake-ups for a reader whose record was withdrawn. */
TEST_F(dev, withdrawn_reader_sleeps_on)
{
	struct sleeper s;
	struct hwtw_event ev;
	uint64_t id;
	int i, fd = hwtw_open(0);

	sleeper_start(&s, fd, IN_READ);
	for (i = 0; i < 200; i++) {
		/* Read, or withdrawn: never a read of nothing. */
		ASSERT_EQ(0, arm_in(fd, 0, i, &id));
		if (hwtw_cancel(fd, id) == -ENOENT)
			break;
	}
	if (i == 200)
		ASSERT_EQ(0, arm_in(fd, 0, i, &id));
	pthread_join(s.thread, NULL);
	EXPECT_EQ(1, s.got);
	EXPECT_EQ((uint64_t)i, s.ev.user_data);
	EXPECT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, take(fd, &ev, 1));
	close(fd);
}

/* Guards against one wake-up for many records leaving readers asleep. */
TEST_F(dev, many_sleepers)
{
	enum { NR = 8 };
	struct sleeper s[NR];
	int i, how, fd = hwtw_open(0);
	uint64_t seen;

	for (how = 0; how < 2; how++) {
		for (i = 0; i < NR; i++)
			sleeper_start(&s[i], fd, IN_READ);
		/* All in one tick, or all at once. */
		ASSERT_EQ(0, arm_many(fd, NR, how ? 0 : now_ns() + 20 * TICK,
				      HWTW_TIMER_ABS, 0, NULL));
		for (i = seen = 0; i < NR; i++) {
			pthread_join(s[i].thread, NULL);
			EXPECT_EQ(1, s[i].got);
			seen |= 1ULL << s[i].ev.user_data;
		}
		EXPECT_EQ((1ULL << NR) - 1, seen);
	}
	close(fd);
}

static void on_signal(int sig)
{
	(void)sig;
}

/* Guards against a read that signals cannot interrupt, or that they break. */
TEST_F(dev, signal_in_read)
{
	int restart;

	for (restart = 0; restart < 2; restart++) {
		struct sigaction sa = {
			.sa_handler = on_signal,
			.sa_flags = restart ? SA_RESTART : 0,
		};
		int fd = hwtw_open(0);
		struct sleeper s;

		ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
		sleeper_start(&s, fd, IN_READ);
		pthread_kill(s.thread, SIGUSR1);
		if (restart) {
			sleep_ns(30 * NSEC_PER_MSEC);
			ASSERT_EQ(0, arm_in(fd, 0, 9, NULL));
		}
		pthread_join(s.thread, NULL);
		EXPECT_EQ(restart ? 1 : -EINTR, s.got);
		close(fd);
	}
}

/* Guards against a read that goes on for as long as records come. */
TEST_F(dev, signal_in_long_read)
{
	enum { TIMERS = 20000, ROOM = 1 << 21 };
	struct itimerval soon = { .it_value.tv_usec = 50000 };
	struct sigaction action = { .sa_handler = on_signal };
	struct hwtw_timer timer = { .time_ns = 1 << 16, .interval_ns = 1 << 16 };
	struct hwtw_event *ev;
	int i, got;

	ev = mmap(NULL, ROOM * EV, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)ev);
	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 1 << 16, 0));
	for (i = 0; i < TIMERS; i++) {
		ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &timer));
	}
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
	got = take(self->fd, ev, ROOM);
	EXPECT_LT(0, got);
	EXPECT_GT(ROOM, got);
}

/* Guards against a reader that cannot be killed. */
TEST_F(dev, kill_reader)
{
	struct hwtw_event ev;
	int status, fd = hwtw_open(0);
	pid_t child = fork();

	if (!child) {
		take(fd, &ev, 1);
		_exit(0);
	}
	ASSERT_EQ(0, arm_in(fd, HOUR_NS, 0, NULL));
	sleep_ns(30 * NSEC_PER_MSEC);
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(SIGKILL, WTERMSIG(status));
	close(fd);
}

/* Guards against a blocking read that waits for more than the first record. */
TEST_F(dev, blocks_for_first_only)
{
	struct hwtw_event ev[10];

	ASSERT_EQ(0, set_blocking(self->fd));
	ASSERT_EQ(0, arm_in(self->fd, 20 * NSEC_PER_MSEC, 1, NULL));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 2, NULL));
	EXPECT_EQ(1, take(self->fd, ev, 10));
	EXPECT_EQ(1, ev[0].user_data);
}

/* --- Memory that takes long --- */

/* A reader whose buffer is there only when the test says so. */
struct held {
	pthread_t thread;
	int fd;
	int uffd;
	void *page;
	int max, got;
	struct hwtw_event ev[4];
};

static void *held_main(void *arg)
{
	struct held *h = arg;

	h->got = take(h->fd, h->page, h->max);
	if (h->got > 0)
		memcpy(h->ev, h->page, h->got * EV);
	return NULL;
}

/* Starts to read (up to @max) records. Returns 0 or -errno. */
static int held_start(struct held *h, int fd, int max)
{
	*h = (struct held) { .fd = fd, .max = max, .page = map_pages(1) };
	h->uffd = fault_open(h->page, UFFDIO_REGISTER_MODE_MISSING);
	if (h->uffd < 0)
		return h->uffd;
	pthread_create(&h->thread, NULL, held_main, h);
	return 0;
}

/* Returns when it has a record and waits for its memory, or -errno. */
static int held_wait(struct held *h)
{
	struct pollfd p = { .fd = h->uffd, .events = POLLIN };

	return poll(&p, 1, 20000) == 1 ? 0 : -ETIMEDOUT;
}

/* Lets the memory come, or go for good. */
static void held_finish(struct held *h, bool success)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)h->page, .len = 4096 },
	};

	if (success)
		ioctl(h->uffd, UFFDIO_ZEROPAGE, &zero);
	else
		munmap(h->page, 4096);
	close(h->uffd);
	pthread_join(h->thread, NULL);
}

#define HELD_START(h, fd, max) do {					\
	int _ret = held_start(h, fd, max);				\
									\
	if (_ret == -ENOSYS || _ret == -EPERM)				\
		SKIP(return, "no userfaultfd");				\
	ASSERT_EQ(0, _ret);						\
} while (0)

/* The same, until it waits for its memory. */
#define HELD_STUCK(h, fd, max) do {					\
	HELD_START(h, fd, max);						\
	ASSERT_EQ(0, held_wait(h));					\
} while (0)

/* Guards against records, or a lock, held while a reader waits for its memory. */
TEST_F(dev, held_reader)
{
	struct hwtw_event ev[4];
	struct held h;
	uint64_t id[3], other;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, arm_in(self->fd, 0, i, &id[i]));
	}
	HELD_STUCK(&h, self->fd, 4);
	EXPECT_EQ(1, readable(self->fd, 0));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, id[0], NULL));
	EXPECT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id[0], HOUR_NS));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id[0], NULL));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id[1]));
	EXPECT_EQ(-ENOENT, hwtw_query(self->fd, id[1], NULL));
	ASSERT_EQ(1, take(self->fd, ev, 4));
	EXPECT_EQ(2, ev[0].user_data);
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, id[2]));
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 4));
	/* All the others go on. */
	ASSERT_EQ(0, arm_in(self->fd, 0, 3, NULL));
	ASSERT_EQ(0, arm_in(self->fd, 5 * NSEC_PER_MSEC, 4, NULL));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 5, &other));
	EXPECT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, other));
	ASSERT_EQ(2, take_all(self->fd, ev, 2));
	EXPECT_EQ(3, ev[0].user_data);
	EXPECT_EQ(4, ev[1].user_data);
	/* What is left is for the one that waits. */
	ASSERT_EQ(0, arm_in(self->fd, 0, 6, NULL));
	ASSERT_EQ(0, arm_in(self->fd, 0, 7, NULL));
	held_finish(&h, true);
	EXPECT_EQ(2, h.got);
	EXPECT_EQ(6, h.ev[0].user_data);
	EXPECT_EQ(7, h.ev[1].user_data);
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 4));
	EXPECT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id[0]));
}

/* Guards against a record told of twice, or one that was taken back (B-42). */
TEST_F(dev, held_finds_none)
{
	struct hwtw_timer t = { .interval_ns = 2 * TICK };
	struct hwtw_list list = { .flags = HWTW_LIST_CANCEL };
	struct hwtw_timer listed[4];
	struct hwtw_event ev[4];
	struct held h;
	uint64_t id;
	int how;

	for (how = 0; how < 6; how++) {
		if (how < 4) {
			ASSERT_EQ(0, arm_in(self->fd, 0, how, &id));
		} else {
			if (!(hwtw_features(self->fd) & HWTW_FEATURE_PERIODIC))
				continue;
			ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
			id = t.id;
		}
		HELD_STUCK(&h, self->fd, 4);
		switch (how) {
		case 0:
			ASSERT_EQ(1, take(self->fd, ev, 4));
			EXPECT_EQ(id, ev[0].id);
			break;
		case 1:
			if (!(hwtw_features(self->fd) & HWTW_FEATURE_LIST)) {
				EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id));
				break;
			}
			list.timers = (uintptr_t)listed;
			list.nr = 4;
			ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
			ASSERT_EQ(1, list.nr);
			EXPECT_EQ(id, listed[0].id);
			EXPECT_EQ(HWTW_EXPIRED, listed[0].state);
			break;
		case 2:
		case 4:
			EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id));
			break;
		case 3:
		case 5:
			EXPECT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id, HOUR_NS));
			break;
		}
		held_finish(&h, true);
		EXPECT_EQ(-EAGAIN, h.got);
		/* Nor does a period come. */
		EXPECT_EQ(0, readable(self->fd, how < 4 ? 0 : 100));
		if (how == 3 || how == 5) {
			EXPECT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
		} else {
			EXPECT_EQ(-ENOENT, hwtw_query(self->fd, id, NULL));
		}
	}
}

/* Guards against a reader that gives up, or spins, if the record is gone meanwhile. */
TEST_F(dev, held_waits_again)
{
	int fd = hwtw_open(0);
	struct held h;
	uint64_t id;

	ASSERT_EQ(0, arm_in(fd, 0, 1, &id));
	HELD_STUCK(&h, fd, 4);
	EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(fd, id));
	ASSERT_EQ(0, arm_in(fd, 50 * NSEC_PER_MSEC, 2, NULL));
	held_finish(&h, true);
	EXPECT_EQ(1, h.got);
	EXPECT_EQ(2, h.ev[0].user_data);
	close(fd);
}

/*
 * Guards against a reader that was woken, waits for its memory, and has others
 * sleep on meanwhile though there is a record (D-12).
 */
TEST_F(dev, held_passes_on)
{
	int fd = hwtw_open(0);
	struct sleeper s;
	struct held h;

	HELD_START(&h, fd, 1);
	sleep_ns(30 * NSEC_PER_MSEC);
	/* Behind it in the queue: woken second. */
	sleeper_start(&s, fd, IN_READ);
	ASSERT_EQ(0, arm_in(fd, 0, 9, NULL));
	ASSERT_EQ(0, held_wait(&h));
	pthread_join(s.thread, NULL);
	EXPECT_EQ(1, s.got);
	EXPECT_EQ(9, s.ev.user_data);
	ASSERT_EQ(0, arm_in(fd, 0, 10, NULL));
	held_finish(&h, true);
	EXPECT_EQ(1, h.got);
	EXPECT_EQ(10, h.ev[0].user_data);
	close(fd);
}

/* Guards against memory that never came changing the order, or losing a record. */
TEST_F(dev, held_then_fault)
{
	struct hwtw_event ev[8];
	uint64_t id[4];
	struct held h;
	int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, arm_at(self->fd, 1000 + i * TICK, i, &id[i]));
	}
	HELD_STUCK(&h, self->fd, 4);
	/* Behind, between and before them. */
	ASSERT_EQ(0, arm_at(self->fd, 1000 + 5 * TICK, 4, NULL));
	ASSERT_EQ(0, arm_at(self->fd, 2000, 5, NULL));
	ASSERT_EQ(0, arm_at(self->fd, 0, 6, NULL));
	held_finish(&h, false);
	EXPECT_EQ(-EFAULT, h.got);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, id[i], NULL));
	}
	EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id[1]));
	EXPECT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id[2], HOUR_NS));
	ASSERT_EQ(5, take(self->fd, ev, 8));
	EXPECT_EQ(6, ev[0].user_data);
	EXPECT_EQ(0, disorder(ev, 5, TICK));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 8));
}

/* Guards against readers that sleep on when the one that was woken fails (D-12). */
TEST_F(dev, held_then_fault_wakes)
{
	struct sleeper s;
	struct held h;
	int how, fd;

	for (how = 0; how < WAYS; how++) {
		fd = hwtw_open(0);
		ASSERT_EQ(0, arm_in(fd, 0, 9, NULL));
		HELD_STUCK(&h, fd, 1);
		sleeper_start(&s, fd, how);
		held_finish(&h, false);
		EXPECT_EQ(-EFAULT, h.got);
		pthread_join(s.thread, NULL);
		EXPECT_EQ(1, s.got) {
			TH_LOG("in %s", way_names[how]);
		}
		EXPECT_EQ(9, s.ev.user_data);
		close(fd);
	}
}

/* Guards against close() pulling the memory away from under a copy (D-26). */
TEST_F(dev, held_then_close)
{
	struct held h;
	int fd, success;

	for (success = 0; success < 2; success++) {
		fd = hwtw_open(O_NONBLOCK);
		ASSERT_EQ(0, arm_in(fd, 0, 9, NULL));
		ASSERT_EQ(0, arm_in(fd, NSEC_PER_MSEC, 9, NULL));
		HELD_STUCK(&h, fd, 1);
		close(fd);
		sleep_ns(10 * NSEC_PER_MSEC);
		held_finish(&h, success);
		EXPECT_EQ(success ? 1 : -EFAULT, h.got);
	}
}

/* --- io_uring --- */

struct ring {
	int fd;
	void *sq, *cq;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
};

static int ring_open(struct ring *r)
{
	size_t sq_len, cq_len;

	memset(r, 0, sizeof(*r));
	r->fd = syscall(SYS_io_uring_setup, 8, &r->p);
	if (r->fd < 0)
		return -errno;
	sq_len = r->p.sq_off.array + r->p.sq_entries * sizeof(uint32_t);
	cq_len = r->p.cq_off.cqes +
		 r->p.cq_entries * sizeof(struct io_uring_cqe);
	r->sq = mmap(NULL, sq_len, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	r->cq = mmap(NULL, cq_len, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, r->p.sq_entries * sizeof(*r->sqes),
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		       r->fd, IORING_OFF_SQES);
	return r->sq == MAP_FAILED || r->cq == MAP_FAILED ||
	       r->sqes == MAP_FAILED ? -ENOMEM : 0;
}

/* Submits one read of @len bytes. Returns what io_uring_enter() does. */
static int ring_read(struct ring *r, int fd, void *buf, uint32_t len)
{
	uint32_t *tail = (uint32_t *)((char *)r->sq + r->p.sq_off.tail);
	uint32_t *mask = (uint32_t *)((char *)r->sq + r->p.sq_off.ring_mask);
	uint32_t *array = (uint32_t *)((char *)r->sq + r->p.sq_off.array);
	uint32_t i = *tail & *mask;

	memset(&r->sqes[i], 0, sizeof(r->sqes[i]));
	r->sqes[i].opcode = IORING_OP_READ;
	r->sqes[i].fd = fd;
	r->sqes[i].addr = (uintptr_t)buf;
	r->sqes[i].len = len;
	r->sqes[i].off = -1;
	array[i] = i;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, r->fd, 1, 0, 0, NULL, 0);
}

/* The result of the next completion, or -ETIME if @wait is 0 and none is there. */
static int ring_result(struct ring *r, int wait)
{
	uint32_t *head = (uint32_t *)((char *)r->cq + r->p.cq_off.head);
	uint32_t *tail = (uint32_t *)((char *)r->cq + r->p.cq_off.tail);
	uint32_t *mask = (uint32_t *)((char *)r->cq + r->p.cq_off.ring_mask);
	struct io_uring_cqe *cqes =
		(struct io_uring_cqe *)((char *)r->cq + r->p.cq_off.cqes);
	int res;

	syscall(SYS_io_uring_enter, r->fd, 0, wait, IORING_ENTER_GETEVENTS,
		NULL, 0);
	if (*head == __atomic_load_n(tail, __ATOMIC_ACQUIRE))
		return -ETIME;
	res = cqes[*head & *mask].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return res;
}

/* Guards against io_uring reads that fail, block the ring or never complete. */
TEST_F(dev, io_uring_read)
{
	struct hwtw_event ev[2];
	struct ring r;
	int fd = hwtw_open(0), i;

	if (ring_open(&r))
		SKIP(return, "no io_uring");
	for (i = 0; i < 10; i++) {
		/* Ready before, at once after, and by the clock. */
		if (i % 3 == 0)
			ASSERT_EQ(0, arm_in(fd, 0, i, NULL));
		ASSERT_EQ(1, ring_read(&r, fd, ev, sizeof(ev)));
		if (i % 3) {
			EXPECT_EQ(-ETIME, ring_result(&r, 0));
			ASSERT_EQ(0, arm_in(fd, i % 3 == 1 ? 0 :
					    5 * NSEC_PER_MSEC, i, NULL));
		}
		EXPECT_EQ((int)EV, ring_result(&r, 1));
		EXPECT_EQ((uint64_t)i, ev[0].user_data);
		EXPECT_LE(ev[0].expires_ns, now_ns());
	}
	close(r.fd);
	close(fd);
}

/* Guards against a ring and read() getting the same expiry, or none. */
TEST_F(dev, io_uring_exactly_once)
{
	enum { NR = 6 };
	struct hwtw_event ev[NR], more[NR];
	struct ring r;
	uint64_t seen = 0;
	int fd = hwtw_open(0), i;

	if (ring_open(&r))
		SKIP(return, "no io_uring");
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(1, ring_read(&r, fd, &ev[i], EV));
	}
	ASSERT_EQ(0, arm_many(fd, NR, now_ns() + 20 * TICK, HWTW_TIMER_ABS, 0,
			      NULL));
	for (i = 0; i < NR; i++) {
		EXPECT_EQ((int)EV, ring_result(&r, 1));
	}
	for (i = 0; i < NR; i++)
		seen |= 1ULL << ev[i].user_data;
	EXPECT_EQ((1ULL << NR) - 1, seen);
	EXPECT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, take(fd, more, NR));
	close(r.fd);
	close(fd);
}

/* --- Descriptors --- */

/* Guards against timers that belong to a process instead of the descriptor. */
TEST_F(dev, inherited)
{
	struct hwtw_event ev[4];
	int status;
	pid_t child;

	ASSERT_EQ(0, arm_in(self->fd, 0, 1, NULL));
	child = fork();
	if (!child)
		_exit(take(self->fd, ev, 1) != 1 || ev[0].user_data != 1 ||
		      arm_in(self->fd, 0, 2, NULL) ||
		      arm_in(self->fd, 20 * NSEC_PER_MSEC, 3, NULL));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	/* What the child armed outlives it. */
	ASSERT_EQ(2, take_all(self->fd, ev, 2));
	EXPECT_EQ(2, ev[0].user_data);
	EXPECT_EQ(3, ev[1].user_data);
}

/* Guards against timers that die with the program that armed them. */
TEST_F(dev, passed_on)
{
	struct hwtw_event ev[2];
	int sock[2], status, fd;
	struct hwtw_timer q;
	uint64_t id = 0;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	child = fork();
	if (!child) {
		fd = hwtw_open(O_NONBLOCK);
		_exit(fd < 0 || arm_in(fd, HOUR_NS, 1, &id) ||
		      arm_in(fd, 50 * NSEC_PER_MSEC, 2, NULL) ||
		      send_fd(sock[1], fd) ||
		      write(sock[1], &id, sizeof(id)) != sizeof(id));
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	/* While it is in the socket only, it goes on counting. */
	sleep_ns(60 * NSEC_PER_MSEC);
	fd = receive_fd(sock[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(8, read(sock[0], &id, sizeof(id)));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(fd, id, &q));
	EXPECT_EQ(1, q.user_data);
	ASSERT_EQ(1, take_all(fd, ev, 1));
	EXPECT_EQ(2, ev[0].user_data);
	EXPECT_EQ(HWTW_PENDING, hwtw_cancel(fd, id));
	close(fd);
}

/* Guards against an instance going with the first of its descriptors. */
TEST_F(dev, duplicated)
{
	struct hwtw_event ev[2];
	uint64_t id;
	int fd = dup(self->fd);

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 1, &id));
	close(self->fd);
	EXPECT_EQ(HWTW_PENDING, rearm_in(fd, id, 20 * NSEC_PER_MSEC));
	EXPECT_EQ(1, take_all(fd, ev, 1));
	self->fd = dup(fd);
	ASSERT_EQ(0, arm_in(fd, 0, 2, &id));
	EXPECT_EQ(1, take(self->fd, ev, 2));
	EXPECT_EQ(-EAGAIN, take(fd, ev, 2));
	close(fd);
}

/* Guards against close() that hangs, or hits what is pending (D-26). */
TEST_F(dev, close_with_timers)
{
	struct rnd r = { 10 };
	int i, k, fd, ep;

	for (i = 0; i < 60; i++) {
		fd = hwtw_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		ep = epoll_with(fd, EPOLLIN);
		for (k = 0; k < 200; k++) {
			ASSERT_EQ(0, arm_in(fd, rnd_below(&r, 3) ?
				rnd_below(&r, 4 * TICK) : HOUR_NS, k, NULL));
		}
		if (i & 1)
			sleep_ns(rnd_below(&r, 2 * TICK));
		close(fd);
		close(ep);
	}
}

/* Guards against one instance's records in another one's reads. */
TEST_F(dev, instances_apart)
{
	enum { NR = 20, EACH = 50 };
	struct hwtw_event ev[EACH + 1];
	int fd[NR], i, k;

	for (i = 0; i < NR; i++) {
		fd[i] = hwtw_open(O_NONBLOCK);
		ASSERT_EQ(0, hwtw_setup(fd[i], i & 1 ? CLOCK_BOOTTIME :
					CLOCK_MONOTONIC, 1ULL << (16 + i % 8),
					0));
	}
	for (k = 0; k < EACH; k++) {
		for (i = 0; i < NR; i++) {
			ASSERT_EQ(0, arm_in(fd[i], k * NSEC_PER_MSEC,
					    i * 1000 + k, NULL));
		}
	}
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(EACH, take_all(fd[i], ev, EACH));
		for (k = 0; k < EACH; k++) {
			EXPECT_EQ((uint64_t)i, ev[k].user_data / 1000);
		}
		EXPECT_EQ(-EAGAIN, take(fd[i], ev, 1));
		close(fd[i]);
	}
}

/* Guards against delays counted on the clock of a time namespace. */
TEST_F(dev, time_namespace)
{
	const uint64_t offset = 5000 * NSEC_PER_SEC;
	struct hwtw_event ev;
	struct hwtw_timer q;
	uint64_t before, after, id;
	int status;
	pid_t child;

	if (unshare(CLONE_NEWTIME) ||
	    put("/proc/self/timens_offsets", "monotonic 5000 0\n"))
		SKIP(return, "no time namespaces");
	child = fork();
	if (!child) {
		/* This clock is ahead; the timers' is not. */
		before = now_ns() - offset;
		EXPECT_EQ(0, arm_in(self->fd, 10 * NSEC_PER_MSEC, 1, NULL));
		after = now_ns() - offset;
		EXPECT_EQ(1, take_all(self->fd, &ev, 1));
		EXPECT_LE(before + 10 * NSEC_PER_MSEC, ev.expires_ns);
		EXPECT_GE(after + 10 * NSEC_PER_MSEC, ev.expires_ns);
		EXPECT_LE(ev.expires_ns, now_ns() - offset);
		/* Absolute times are the host's, in and out. */
		EXPECT_EQ(0, arm_at(self->fd, now_ns() - offset / 2, 2, &id));
		EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, &q));
		EXPECT_EQ(HWTW_PENDING, rearm_at(self->fd, id,
						 now_ns() - offset - 1000000));
		EXPECT_EQ(1, take(self->fd, &ev, 1));
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

/* --- Periodic timers --- */

/* Guards against periods counted from "now", and bursts (B-58, D-23). */
TEST_F(dev, periodic)
{
	uint64_t interval = 3 * TICK + 12345, next, before, after;
	struct hwtw_timer t = { .user_data = 6, .interval_ns = interval };
	struct hwtw_event ev[8];
	int i;

	if (!(hwtw_features(self->fd) & HWTW_FEATURE_PERIODIC))
		SKIP(return, "no periodic timers");
	t.time_ns = next = now_ns() - 10 * interval;
	t.flags = HWTW_TIMER_ABS;
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(1, readable(self->fd, 20000));
		if (i % 4 == 3)
			sleep_ns(5 * interval);
		before = now_ns();
		/* With room for more the next period, if it comes meanwhile, is read, too. */
		ASSERT_EQ(1, take(self->fd, ev, 1));
		after = now_ns();
		EXPECT_EQ(t.id, ev[0].id);
		EXPECT_EQ(6, ev[0].user_data);
		EXPECT_EQ(next, ev[0].expires_ns);
		/* All that had passed, and none that had not. */
		EXPECT_LE(next + ev[0].overruns * interval, after);
		EXPECT_GT(next + (ev[0].overruns + 1) * interval, before);
		next += (ev[0].overruns + 1) * interval;
	}
	EXPECT_LE(0, hwtw_cancel(self->fd, t.id));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 8));
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, t.id));
}

/* Guards against a period that goes on after it was moved to one shot. */
TEST_F(dev, periodic_to_oneshot)
{
	struct hwtw_timer t = { .interval_ns = TICK };
	struct hwtw_event ev[8];
	uint64_t id;

	if (!(hwtw_features(self->fd) & HWTW_FEATURE_PERIODIC))
		SKIP(return, "no periodic timers");
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	id = t.id;
	ASSERT_EQ(1, take_all(self->fd, ev, 1));
	ASSERT_LT(0, rearm_in(self->fd, id, 0));
	ASSERT_EQ(1, take(self->fd, ev, 8));
	EXPECT_EQ(0, ev[0].overruns);
	EXPECT_EQ(-ENOENT, hwtw_query(self->fd, id, NULL));
	EXPECT_EQ(0, readable(self->fd, 20));
}

/* Guards against a period that wakes a poller only once. */
TEST_F(dev, periodic_edge)
{
	int ep = epoll_with(self->fd, EPOLLIN | EPOLLET), i;
	struct hwtw_timer t = { .interval_ns = 2 * TICK };
	struct hwtw_event ev;

	if (!(hwtw_features(self->fd) & HWTW_FEATURE_PERIODIC))
		SKIP(return, "no periodic timers");
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(1, epoll_events(ep, 20000));
		ASSERT_EQ(1, take(self->fd, &ev, 1));
		/* A slow machine may have the next period before the read ends. */
		do {
			EXPECT_LE(ev.expires_ns, now_ns());
		} while (take(self->fd, &ev, 1) == 1);
	}
}

/* Guards against a fault that skips a period, or counts it twice. */
TEST_F(dev, periodic_fault)
{
	uint64_t interval = 5 * TICK, next = now_ns() - 7 * interval / 2;
	struct hwtw_timer t = {
		.time_ns = next,
		.interval_ns = interval,
		.flags = HWTW_TIMER_ABS,
	};
	char *cliff = map_cliff(1);
	struct hwtw_event ev;
	int i;

	if (!(hwtw_features(self->fd) & HWTW_FEATURE_PERIODIC))
		SKIP(return, "no periodic timers");
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, readable(self->fd, 20000));
		EXPECT_EQ(-EFAULT, take(self->fd, (void *)(cliff - 8), 1));
		ASSERT_EQ(1, take(self->fd, &ev, 1));
		EXPECT_EQ(next, ev.expires_ns);
		next += (ev.overruns + 1) * interval;
		EXPECT_LT(now_ns(), next + interval * 10);
	}
}

/* --- Scale --- */

/* Guards against descriptors or records as the limit (B-54). */
TEST_F_TIMEOUT(dev, million, TEST_TIMEOUT_SLOW)
{
	enum { NR = 1000000, STEP = 50000 };
	struct rlimit few = { 64, 64 };
	struct hwtw_event *ev = calloc(STEP, EV);
	char *seen = calloc(NR, 1);
	uint64_t *id = calloc(NR, sizeof(*id));
	int i, n, have;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, id));
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_EQ(NR / 2, cancel_many(self->fd, id + NR / 2, NR / 2));
	/* The rest in one tick. */
	ASSERT_EQ(0, arm_many(self->fd, NR / 2, 777, HWTW_TIMER_ABS, NR / 2,
			      id + NR / 2));
	for (have = 0; have < NR / 2; have += n) {
		n = take(self->fd, ev, STEP);
		ASSERT_LT(0, n);
		for (i = 0; i < n; i++) {
			ASSERT_GT(NR, ev[i].user_data);
			seen[ev[i].user_data]++;
		}
	}
	EXPECT_EQ(NR / 2, have);
	EXPECT_TRUE(all_bytes(seen, 0, NR / 2));
	EXPECT_TRUE(all_bytes(seen + NR / 2, 1, NR / 2));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 1));
	EXPECT_EQ(NR / 2, cancel_many(self->fd, id, NR / 2));
}

/* Memory in use that is neither page cache nor free, in bytes. */
static int64_t memory_used(void)
{
	static const char * const minus[] = {
		"MemFree:", "Buffers:", "Cached:",
	};
	char line[128], name[64];
	int64_t used = 0;
	long long kb;
	FILE *f = fopen("/proc/meminfo", "r");
	size_t i;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %lld", name, &kb) != 2)
			continue;
		if (!strcmp(name, "MemTotal:"))
			used += kb * 1024;
		for (i = 0; i < ARRAY_SIZE(minus); i++)
			if (!strcmp(name, minus[i]))
				used -= kb * 1024;
	}
	if (f)
		fclose(f);
	return used;
}

/* The same once it has not fallen any more for half a second. */
static int64_t memory_settled(void)
{
	int64_t used, least = memory_used();
	int i;

	for (i = 0; i < 5; i++) {
		sleep_ns(100 * NSEC_PER_MSEC);
		used = memory_used();
		if (used < least - 64 * 1024)
			i = 0;
		if (used < least)
			least = used;
	}
	return least;
}

/* The kernel's own stock of free pages per CPU is to be small. */
static void small_page_stock(void)
{
	put("/proc/sys/vm/percpu_pagelist_high_fraction", "1000000");
}

/* Guards against memory kept until the deadlines come (B-27, B-34). */
TEST_F_TIMEOUT(dev, memory_comes_back, TEST_TIMEOUT_SLOW)
{
	enum { NR = 1000000 };
	static const char * const ways[] = { "cancel", "read", "close" };
	/* What is left may be 5 % and a small constant. */
	const int64_t constant = 1 << 20;
	uint64_t *id = map_pages(NR * sizeof(*id) / 4096 + 1);
	struct hwtw_event *ev = map_pages(1000 * EV / 4096 + 1);
	int64_t before, full, after;
	int way, have, n;

	small_page_stock();
	/* What only the first timers cost is not theirs. */
	ASSERT_EQ(0, arm_many(self->fd, NR / 10, HOUR_NS, 0, 0, id));
	ASSERT_EQ(NR / 10, cancel_many(self->fd, id, NR / 10));
	for (way = 0; way < 3; way++) {
		before = memory_settled();
		ASSERT_EQ(0, arm_many(self->fd, NR, way == 1 ? 0 : HOUR_NS, 0,
				      0, id));
		full = memory_used() - before;
		/* 24 bytes are less than any timer can do with. */
		EXPECT_LT(24 * NR, full);
		if (way == 0) {
			ASSERT_EQ(NR, cancel_many(self->fd, id, NR));
		} else if (way == 1) {
			for (have = 0; have < NR; have += n) {
				n = take(self->fd, ev, 1000);
				ASSERT_LT(0, n);
			}
		} else {
			close(self->fd);
			self->fd = hwtw_open(O_NONBLOCK);
		}
		after = memory_settled() - before;
		TH_LOG("%s: %lld KiB of %lld KiB left, %lld bytes a timer",
		       ways[way], (long long)after / 1024,
		       (long long)full / 1024, (long long)full / NR);
		EXPECT_GE(full / 20 + constant, after);
	}
}

/* Guards against an empty instance of many kilobytes (B-37, netty #2453). */
TEST_F(dev, memory_of_empty)
{
	enum { NR = 4000 };
	struct rlimit many = { NR + 64, NR + 64 };
	int64_t before, after;
	int i, fd[NR];

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &many));
	small_page_stock();
	before = memory_used();
	for (i = 0; i < NR; i++) {
		fd[i] = hwtw_open(0);
		ASSERT_LE(0, fd[i]);
	}
	after = memory_used();
	TH_LOG("%lld bytes an empty instance",
	       (long long)(after - before) / NR);
	EXPECT_GT(8192, (after - before) / NR);
	for (i = 0; i < NR; i++)
		close(fd[i]);
}

TEST_HARNESS_MAIN
