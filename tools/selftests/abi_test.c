// SPDX-License-Identifier: GPL-2.0
/*
 * The commands of /dev/hwtw: every errno, every bad value, what is written and
 * what is not, limits, ids. Nothing here depends on how fast the machine is.
 */
#include "hwtw_test.h"

#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define TICK	HWTW_TICK_DEFAULT_NS

/* A command number of the same kind with another size of its argument. */
#define IOC_SIZED(cmd, size) \
	_IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), (size))

static const uint64_t bad_times[] = {
	1ULL << 63, (1ULL << 63) + 1, 0xfffffffffffffff0ULL, UINT64_MAX,
};

static const struct command {
	const char *name;
	unsigned long cmd;
	size_t size;
} commands[] = {
	{ "INFO", HWTW_IOC_INFO, sizeof(struct hwtw_info) },
	{ "SETUP", HWTW_IOC_SETUP, sizeof(struct hwtw_setup) },
	{ "ARM", HWTW_IOC_ARM, sizeof(struct hwtw_timer) },
	{ "REARM", HWTW_IOC_REARM, sizeof(struct hwtw_timer) },
	{ "CANCEL", HWTW_IOC_CANCEL, sizeof(struct hwtw_timer) },
	{ "QUERY", HWTW_IOC_QUERY, sizeof(struct hwtw_timer) },
	{ "SUBMIT", HWTW_IOC_SUBMIT, sizeof(struct hwtw_submit) },
	{ "LIST", HWTW_IOC_LIST, sizeof(struct hwtw_list) },
	{ "STATS", HWTW_IOC_STATS, sizeof(struct hwtw_stats) },
};

/* An argument that this command takes, for an instance with timer @id. */
static void good_argument(const struct command *c, uint64_t id, void *buf)
{
	struct hwtw_setup setup = { .clockid = CLOCK_MONOTONIC };
	struct hwtw_timer timer = { .id = id, .time_ns = HOUR_NS };
	struct hwtw_submit submit = {};
	static struct hwtw_timer listed;
	struct hwtw_list list = { .timers = (uintptr_t)&listed, .nr = 1 };

	if (c->cmd == HWTW_IOC_SETUP)
		memcpy(buf, &setup, sizeof(setup));
	else if (c->cmd == HWTW_IOC_SUBMIT)
		memcpy(buf, &submit, sizeof(submit));
	else if (c->cmd == HWTW_IOC_LIST)
		memcpy(buf, &list, sizeof(list));
	else if (_IOC_DIR(c->cmd) & _IOC_WRITE)
		memcpy(buf, &timer, sizeof(timer));
}

FIXTURE(dev) {
	int fd;
};

FIXTURE_SETUP(dev)
{
	self->fd = hwtw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(dev)
{
	close(self->fd);
}

/* --- Command numbers and sizes --- */

/* Guards against commands that answer to numbers nobody gave them. */
TEST_F(dev, unknown_number)
{
	char arg[4096] = {};
	unsigned int nr, dir;

	for (nr = 9; nr < 256; nr++) {
		for (dir = 0; dir < 4; dir++) {
			EXPECT_EQ(-ENOTTY, hwtw_call(self->fd,
				_IOC(dir, HWTW_IOC_TYPE, nr, 40), arg)) {
				TH_LOG("nr %u dir %u", nr, dir);
			}
		}
	}
	EXPECT_TRUE(all_bytes(arg, 0, sizeof(arg)));
}

/* Guards against a dispatcher that looks at the number alone. */
TEST_F(dev, wrong_type)
{
	char arg[4096] = {};
	unsigned int type;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		for (type = 0; type < 256; type++) {
			/* 'T' and 'f' are taken by the VFS itself. */
			if (type == HWTW_IOC_TYPE || type == 'T' ||
			    type == 'f' || type == 'X')
				continue;
			EXPECT_EQ(-ENOTTY, hwtw_call(self->fd,
				_IOC(_IOC_DIR(commands[i].cmd), type,
				     _IOC_NR(commands[i].cmd),
				     commands[i].size), arg)) {
				TH_LOG("%s type %#x", commands[i].name, type);
			}
		}
	}
}

/* Guards against a read direction that writes, or the other way round. */
TEST_F(dev, wrong_direction)
{
	char arg[4096] = {};
	unsigned int dir;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		for (dir = 0; dir < 4; dir++) {
			if (dir == _IOC_DIR(commands[i].cmd))
				continue;
			EXPECT_EQ(-ENOTTY, hwtw_call(self->fd,
				_IOC(dir, HWTW_IOC_TYPE,
				     _IOC_NR(commands[i].cmd),
				     commands[i].size), arg)) {
				TH_LOG("%s dir %u", commands[i].name, dir);
			}
		}
	}
}

/* Guards against reading less of an argument than the command needs. */
TEST_F(dev, argument_too_short)
{
	uint64_t id;
	size_t i, size;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		int fd = hwtw_open(O_NONBLOCK);

		ASSERT_LE(0, fd);
		if (commands[i].cmd != HWTW_IOC_SETUP)
			ASSERT_EQ(0, arm_in(fd, HOUR_NS, 0, &id));
		for (size = 0; size < commands[i].size; size++) {
			char *arg = map_cliff(1) - size;

			memset(arg, 0, size);
			EXPECT_EQ(-EINVAL, hwtw_call(fd,
				IOC_SIZED(commands[i].cmd, size), arg)) {
				TH_LOG("%s size %zu", commands[i].name, size);
			}
			munmap(arg + size - 4096, 4096);
		}
		close(fd);
	}
}

/* Guards against programs of a newer header failing on this kernel. */
TEST_F(dev, argument_longer)
{
	static const size_t more[] = { 1, 7, 8, 64, 1000 };
	char arg[2048];
	uint64_t id;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		for (k = 0; k < ARRAY_SIZE(more); k++) {
			int fd = hwtw_open(O_NONBLOCK);
			size_t size = commands[i].size + more[k];

			ASSERT_LE(0, fd);
			id = 0;
			if (commands[i].cmd != HWTW_IOC_SETUP)
				ASSERT_EQ(0, arm_in(fd, HOUR_NS, 0, &id));
			memset(arg, 0, sizeof(arg));
			good_argument(&commands[i], id, arg);
			EXPECT_EQ(0, hwtw_call(fd,
				IOC_SIZED(commands[i].cmd, size), arg)) {
				TH_LOG("%s + %zu", commands[i].name, more[k]);
			}
			EXPECT_TRUE(all_bytes(arg + commands[i].size, 0,
					      sizeof(arg) - commands[i].size));
			close(fd);
		}
	}
}

/* Guards against ignoring what a newer program asks for. */
TEST_F(dev, argument_longer_unknown)
{
	char arg[256], before[256];
	uint64_t id;
	size_t i, at;
	int state;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		/* INFO and STATS have nothing to say on the way in. */
		if (!(_IOC_DIR(commands[i].cmd) & _IOC_WRITE))
			continue;
		for (at = commands[i].size; at < commands[i].size + 24; at++) {
			int fd = hwtw_open(O_NONBLOCK);

			ASSERT_LE(0, fd);
			id = 0;
			if (commands[i].cmd != HWTW_IOC_SETUP)
				ASSERT_EQ(0, arm_in(fd, 2 * HOUR_NS, 0, &id));
			memset(arg, 0, sizeof(arg));
			good_argument(&commands[i], id, arg);
			arg[at] = 1;
			memcpy(before, arg, sizeof(arg));
			EXPECT_EQ(-E2BIG, hwtw_call(fd,
				IOC_SIZED(commands[i].cmd,
					  commands[i].size + 24), arg)) {
				TH_LOG("%s byte %zu", commands[i].name, at);
			}
			EXPECT_EQ(0, memcmp(arg, before, sizeof(arg)));
			state = hwtw_query(fd, id, NULL);
			EXPECT_EQ(id ? HWTW_PENDING : -ENOENT, state);
			close(fd);
		}
	}
}

/* Guards against a longer INFO leaving the caller's garbage in new members. */
TEST_F(dev, info_longer_tail)
{
	struct {
		struct hwtw_info info;
		char tail[40];
	} arg;
	int ret;

	memset(&arg, POISON, sizeof(arg));
	ret = hwtw_call(self->fd, IOC_SIZED(HWTW_IOC_INFO, sizeof(arg)), &arg);
	if (ret) {
		EXPECT_EQ(-E2BIG, ret);
	} else {
		EXPECT_EQ(HWTW_ABI, arg.info.abi);
		EXPECT_TRUE(all_bytes(arg.tail, 0, sizeof(arg.tail)));
	}
}

/* --- Pointers --- */

/* Guards against an oops or a half-done command on a bad pointer. */
TEST_F(dev, bad_pointer)
{
	char *cliff = map_cliff(1);
	uint64_t id;
	size_t i, k;

	ASSERT_NE(NULL, cliff);
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		void *bad[] = {
			NULL, cliff, cliff - 1, cliff - commands[i].size + 1,
			(void *)-1UL, (void *)-4096UL, (void *)INTPTR_MIN,
			(void *)0xffff888000000000UL,
		};
		int fd = hwtw_open(O_NONBLOCK);

		ASSERT_LE(0, fd);
		id = 0;
		if (commands[i].cmd != HWTW_IOC_SETUP)
			ASSERT_EQ(0, arm_in(fd, HOUR_NS, 0, &id));
		memset(cliff - 4096, 0, 4096);
		for (k = 0; k < ARRAY_SIZE(bad); k++) {
			EXPECT_EQ(-EFAULT, hwtw_call(fd, commands[i].cmd,
						     bad[k])) {
				TH_LOG("%s pointer %p", commands[i].name,
				       bad[k]);
			}
		}
		if (id)
			EXPECT_EQ(HWTW_PENDING, hwtw_query(fd, id, NULL));
		close(fd);
	}
}

/* Guards against a timer that its owner never learns of (style A3, c.16). */
TEST_F(dev, arm_readonly)
{
	struct hwtw_timer late = { .time_ns = HOUR_NS };
	struct hwtw_timer now = { .time_ns = 0 };
	struct hwtw_event ev;
	void *ro_late = map_readonly(&late, sizeof(late));
	void *ro_now = map_readonly(&now, sizeof(now));
	uint64_t id;
	int i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 1));
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_ARM, ro_late));
		EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_ARM, ro_now));
		EXPECT_EQ(0, readable(self->fd, 0));
	}
	EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
	EXPECT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
}

/* Guards against a CANCEL that took place although it reported a failure. */
TEST_F(dev, cancel_readonly)
{
	struct hwtw_timer t = {};
	struct hwtw_event ev;
	uint64_t pending, expired;
	void *ro;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 1, &pending));
	ASSERT_EQ(0, arm_in(self->fd, 0, 2, &expired));
	t.id = pending;
	ro = map_readonly(&t, sizeof(t));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_CANCEL, ro));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, pending, NULL));
	t.id = expired;
	ro = map_readonly(&t, sizeof(t));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_CANCEL, ro));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, expired, NULL));
	EXPECT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(2, ev.user_data);
}

/* Guards against a REARM that took place although it reported a failure. */
TEST_F(dev, rearm_readonly)
{
	uint64_t pending, expired, deadline = now_ns() + 2 * HOUR_NS;
	struct hwtw_timer t = {}, q;
	struct hwtw_event ev;
	void *ro;

	ASSERT_EQ(0, arm_at(self->fd, deadline, 1, &pending));
	ASSERT_EQ(0, arm_in(self->fd, 0, 2, &expired));
	t.id = pending;		/* to now */
	ro = map_readonly(&t, sizeof(t));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_REARM, ro));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, pending, &q));
	EXPECT_EQ(deadline, q.time_ns);
	t.id = expired;
	t.time_ns = HOUR_NS;
	ro = map_readonly(&t, sizeof(t));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_REARM, ro));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, expired, NULL));
	EXPECT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(2, ev.user_data);
	EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
}

/* Guards against looking only at one end of an argument that lies on two pages. */
TEST_F(dev, argument_half_readonly)
{
	static const unsigned int cmd[] = { HWTW_IOC_ARM, HWTW_IOC_REARM, HWTW_IOC_CANCEL };
	/* The state alone on the second page, the id alone on the first. */
	static const size_t before[] = {
		offsetof(struct hwtw_timer, state), sizeof(uint64_t),
	};
	uint64_t id, deadline = now_ns() + 2 * HOUR_NS;
	struct hwtw_timer q;
	size_t half, c;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 2));
	ASSERT_EQ(0, arm_at(self->fd, deadline, 1, &id));
	for (half = 0; half < 2; half++) {
		char *pages = map_pages(2);
		struct hwtw_timer *t;

		ASSERT_NE(NULL, pages);
		t = (struct hwtw_timer *)(pages + 4096 - before[half]);
		*t = (struct hwtw_timer){ .id = id, .time_ns = HOUR_NS };
		ASSERT_EQ(0, mprotect(pages + (half ? 0 : 4096), 4096, PROT_READ));
		for (c = 0; c < ARRAY_SIZE(cmd); c++) {
			EXPECT_EQ(-EFAULT, hwtw_call(self->fd, cmd[c], t));
			EXPECT_EQ(id, t->id);
			EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, &q));
			EXPECT_EQ(deadline, q.time_ns);
		}
	}
	/* None was armed meanwhile. */
	EXPECT_EQ(0, arm_in(self->fd, HOUR_NS, 0, NULL));
}

/* Guards against the same in the two commands that only report. */
TEST_F(dev, report_readonly)
{
	struct hwtw_info info = {};
	struct hwtw_timer t = {};
	uint64_t id;
	void *ro;

	ro = map_readonly(&info, sizeof(info));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_INFO, ro));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 1, &id));
	t.id = id;
	ro = map_readonly(&t, sizeof(t));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_QUERY, ro));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, t.id, NULL));
}

/* Guards against SETUP needing memory that it only reads to be writable. */
TEST_F(dev, setup_readonly)
{
	struct hwtw_setup s = { .clockid = CLOCK_BOOTTIME };
	struct hwtw_info info;
	void *ro = map_readonly(&s, sizeof(s));

	EXPECT_EQ(0, hwtw_call(self->fd, HWTW_IOC_SETUP, ro));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(CLOCK_BOOTTIME, info.clockid);
}

/* --- INFO --- */

/* Guards against INFO and the header disagreeing. */
TEST_F(dev, info_default)
{
	struct hwtw_info info;

	memset(&info, POISON, sizeof(info));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(HWTW_ABI, info.abi);
	EXPECT_EQ(CLOCK_MONOTONIC, info.clockid);
	EXPECT_EQ(0, info.features & ~(HWTW_FEATURE_PERIODIC |
				       HWTW_FEATURE_REALTIME |
				       HWTW_FEATURE_LIST |
				       HWTW_FEATURE_STATS));
	EXPECT_EQ(HWTW_TICK_DEFAULT_NS, info.tick_ns);
	EXPECT_EQ(HWTW_TICK_MIN_NS, info.tick_min_ns);
	EXPECT_EQ(HWTW_TICK_MAX_NS, info.tick_max_ns);
	EXPECT_EQ(sizeof(struct hwtw_event), info.event_size);
	EXPECT_EQ(HWTW_BATCH_MAX, info.max_batch);
	EXPECT_NE(0, info.max_timers);
	EXPECT_NE(0, info.max_timers_total);
}

/* Guards against INFO of one instance telling of another one. */
TEST_F(dev, info_per_instance)
{
	struct hwtw_info info;
	int other = hwtw_open(0);

	ASSERT_LE(0, other);
	ASSERT_EQ(0, hwtw_setup(other, CLOCK_BOOTTIME, 1 << 24, 3));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(CLOCK_MONOTONIC, info.clockid);
	EXPECT_EQ(HWTW_TICK_DEFAULT_NS, info.tick_ns);
	EXPECT_NE(3, info.max_timers);
	ASSERT_EQ(0, hwtw_info(other, &info));
	EXPECT_EQ(CLOCK_BOOTTIME, info.clockid);
	EXPECT_EQ(1 << 24, info.tick_ns);
	EXPECT_EQ(3, info.max_timers);
	close(other);
}

/* --- SETUP --- */

/* Guards against ticks that are no power of two (B-08, tokio-timer #14). */
TEST_F(dev, setup_tick_rounding)
{
	struct rnd r = { 1 };
	struct hwtw_info info;
	unsigned int shift, i;

	for (shift = 16; shift <= 30; shift++) {
		uint64_t tick = 1ULL << shift;
		uint64_t wish[8] = { tick, tick + 1, tick + tick / 2,
				     2 * tick - 1 };

		for (i = 4; i < 8; i++)
			wish[i] = tick + rnd_below(&r, tick);
		for (i = 0; i < 8; i++) {
			if (wish[i] > HWTW_TICK_MAX_NS)
				continue;
			EXPECT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC,
						wish[i], 0)) {
				TH_LOG("tick wish %llu",
				       (unsigned long long)wish[i]);
			}
			ASSERT_EQ(0, hwtw_info(self->fd, &info));
			EXPECT_EQ(tick, info.tick_ns) {
				TH_LOG("tick wish %llu",
				       (unsigned long long)wish[i]);
			}
		}
	}
}

/* Guards against a tick that spins or never comes (B-10, netty #8277). */
TEST_F(dev, setup_tick_range)
{
	static const uint64_t bad[] = {
		1, 2, 1000, 65535, (1ULL << 30) + 1, (1ULL << 31) - 1,
		1ULL << 31, 1ULL << 32, (1ULL << 32) + 65536, 1ULL << 48,
		(1ULL << 48) + (1 << 20), INT64_MAX, 1ULL << 63, UINT64_MAX,
	};
	struct hwtw_info before, after;
	size_t i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_BOOTTIME, 1 << 22, 7));
	ASSERT_EQ(0, hwtw_info(self->fd, &before));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, hwtw_setup(self->fd, CLOCK_MONOTONIC,
					      bad[i], 0)) {
			TH_LOG("tick wish %llu",
				       (unsigned long long)bad[i]);
		}
		ASSERT_EQ(0, hwtw_info(self->fd, &after));
		EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	}
}

/* Guards against zeros keeping what an earlier SETUP chose. */
TEST_F(dev, setup_zero_is_default)
{
	struct hwtw_info fresh, info;

	ASSERT_EQ(0, hwtw_info(self->fd, &fresh));
	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_BOOTTIME, 1 << 25, 5));
	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 0));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(0, memcmp(&fresh, &info, sizeof(info)));
}

/* Guards against clocks that the instance cannot run on (B-66). */
TEST_F(dev, setup_clock)
{
	struct hwtw_info info;
	uint32_t clockid;

	EXPECT_EQ(0, hwtw_setup(self->fd, CLOCK_BOOTTIME, 0, 0));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(CLOCK_BOOTTIME, info.clockid);
	EXPECT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 0));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(CLOCK_MONOTONIC, info.clockid);

	EXPECT_EQ(0, hwtw_setup(self->fd, CLOCK_REALTIME, 0, 0));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(CLOCK_REALTIME, info.clockid);
	EXPECT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 0));

	for (clockid = 2; clockid < 300; clockid++) {
		if (clockid == CLOCK_BOOTTIME)
			continue;
		EXPECT_EQ(-EINVAL, hwtw_setup(self->fd, clockid, 0, 0)) {
			TH_LOG("clock %u", clockid);
		}
	}
	EXPECT_EQ(-EINVAL, hwtw_setup(self->fd, 1U << 31, 0, 0));
	EXPECT_EQ(-EINVAL, hwtw_setup(self->fd, (1U << 31) + 1, 0, 0));
	EXPECT_EQ(-EINVAL, hwtw_setup(self->fd, 257, 0, 0));
	EXPECT_EQ(-EINVAL, hwtw_setup(self->fd, UINT32_MAX, 0, 0));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(CLOCK_MONOTONIC, info.clockid);
}

/* Guards against flags that are ignored today and mean something tomorrow. */
TEST_F(dev, setup_flags)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		struct hwtw_setup s = {
			.clockid = CLOCK_MONOTONIC,
			.flags = 1U << bit,
		};

		EXPECT_EQ(-EINVAL, hwtw_call(self->fd, HWTW_IOC_SETUP, &s)) {
			TH_LOG("bit %d", bit);
		}
	}
}

/* Guards against a tick that changes under pending timers. */
TEST_F(dev, setup_busy)
{
	struct hwtw_info before, after;
	struct hwtw_event ev;
	uint64_t id;

	ASSERT_EQ(0, hwtw_info(self->fd, &before));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	EXPECT_EQ(-EBUSY, hwtw_setup(self->fd, CLOCK_BOOTTIME, 1 << 22, 1));
	/* Not "no timer now" but "no timer ever". */
	ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
	EXPECT_EQ(-EBUSY, hwtw_setup(self->fd, CLOCK_BOOTTIME, 1 << 22, 1));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(-EBUSY, hwtw_setup(self->fd, CLOCK_BOOTTIME, 1 << 22, 1));
	ASSERT_EQ(0, hwtw_info(self->fd, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
}

/* Guards against SUBMIT being a way around that. */
TEST_F(dev, setup_busy_submit)
{
	struct hwtw_op op = arm_op(HOUR_NS, 0, 0);

	ASSERT_EQ(0, hwtw_submit(self->fd, &op, 1, NULL));
	EXPECT_EQ(-EBUSY, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 0));
}

/* Guards against an ARM that failed counting as the first timer. */
TEST_F(dev, setup_after_failed_arm)
{
	EXPECT_EQ(-EINVAL, hwtw_arm(self->fd, 0, 1U << 31, 0, NULL));
	EXPECT_EQ(-EINVAL, arm_in(self->fd, UINT64_MAX, 0, NULL));
	EXPECT_EQ(0, hwtw_setup(self->fd, CLOCK_BOOTTIME, 1 << 22, 1));
}

/* --- ARM --- */

/* Guards against flags that are ignored today and mean something tomorrow. */
TEST_F(dev, timer_flags)
{
	static const unsigned long cmds[] = {
		HWTW_IOC_ARM, HWTW_IOC_REARM, HWTW_IOC_CANCEL, HWTW_IOC_QUERY,
	};
	uint64_t id;
	size_t i;
	int bit;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 2));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 5, &id));
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		for (bit = 1; bit < 32; bit++) {
			struct hwtw_timer t = {
				.id = id,
				.flags = 1U << bit,
				.state = POISON32,
			};
			struct hwtw_timer before = t;

			EXPECT_EQ(-EINVAL, hwtw_call(self->fd, cmds[i], &t)) {
				TH_LOG("command %zu bit %d", i, bit);
			}
			t.flags |= HWTW_TIMER_ABS;
			before.flags |= HWTW_TIMER_ABS;
			EXPECT_EQ(-EINVAL, hwtw_call(self->fd, cmds[i], &t)) {
				TH_LOG("command %zu bit %d", i, bit);
			}
			EXPECT_EQ(0, memcmp(&t, &before, sizeof(t)));
		}
	}
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, NULL));
	EXPECT_EQ(0, arm_in(self->fd, HOUR_NS, 5, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 5, NULL));
}

/* Guards against overflows that fire at once (B-01, netty #7760). */
TEST_F(dev, time_too_late)
{
	uint64_t id;
	size_t i;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	for (i = 0; i < ARRAY_SIZE(bad_times); i++) {
		EXPECT_EQ(-EINVAL, arm_in(self->fd, bad_times[i], 0, NULL));
		EXPECT_EQ(-EINVAL, arm_at(self->fd, bad_times[i], 0, NULL));
		EXPECT_EQ(-EINVAL, rearm_in(self->fd, id, bad_times[i]));
		EXPECT_EQ(-EINVAL, rearm_at(self->fd, id, bad_times[i]));
	}
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, NULL));
	EXPECT_EQ(0, readable(self->fd, 0));
}

/* Guards against garbage in members that ARM does not own. */
TEST_F(dev, arm_writes)
{
	struct hwtw_timer t = {
		.id = POISON64,
		.user_data = 0x1122334455667788ULL,
		.time_ns = HOUR_NS,
		.state = POISON32,
	};

	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	EXPECT_NE(POISON64, t.id);
	EXPECT_NE(0, t.id);
	EXPECT_EQ(HWTW_PENDING, t.state);
	EXPECT_EQ(0x1122334455667788ULL, t.user_data);
	EXPECT_EQ(HOUR_NS, t.time_ns);
	EXPECT_EQ(0, t.interval_ns);
	EXPECT_EQ(0, t.flags);
}

/* Guards against ARM saying "pending" of what can be read already. */
TEST_F(dev, arm_state_of_past)
{
	struct hwtw_timer t = {};

	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	EXPECT_EQ(HWTW_EXPIRED, t.state);
	t.time_ns = 1;
	t.flags = HWTW_TIMER_ABS;
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	EXPECT_EQ(HWTW_EXPIRED, t.state);
}

/* Guards against results in arguments of calls that failed. */
TEST_F(dev, failure_writes_nothing)
{
	static const unsigned long cmds[] = {
		HWTW_IOC_REARM, HWTW_IOC_CANCEL, HWTW_IOC_QUERY,
	};
	struct hwtw_timer t, before;
	size_t i;

	memset(&t, POISON, sizeof(t));
	t.flags = 0;
	t.time_ns = HOUR_NS;
	t.interval_ns = 0;
	before = t;
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		EXPECT_EQ(-ENOENT, hwtw_call(self->fd, cmds[i], &t));
		EXPECT_EQ(0, memcmp(&t, &before, sizeof(t)));
	}
	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 1));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, NULL));
	EXPECT_EQ(-ENOSPC, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	EXPECT_EQ(0, memcmp(&t, &before, sizeof(t)));
}

/* Guards against a deadline counted from another "now" than the call's. */
TEST_F(dev, deadline_of_delay)
{
	static const uint64_t delays[] = {
		HOUR_NS, HOUR_NS + 1, 1ULL << 42, (1ULL << 42) - 1, 1ULL << 53,
		(1ULL << 53) + 1, 1ULL << 61,
	};
	struct hwtw_timer q;
	uint64_t id, before, after;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		before = now_ns();
		ASSERT_EQ(0, arm_in(self->fd, delays[i], i, &id));
		after = now_ns();
		EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, &q));
		EXPECT_LE(before + delays[i], q.time_ns);
		EXPECT_GE(after + delays[i], q.time_ns);
	}
}

/* Guards against overflow of now + delay (B-01, B-02). */
TEST_F(dev, delay_saturates)
{
	struct hwtw_timer q;
	uint64_t id[4];
	int i;

	ASSERT_EQ(0, arm_in(self->fd, HWTW_TIME_MAX_NS, 0, &id[0]));
	ASSERT_EQ(0, arm_in(self->fd, HWTW_TIME_MAX_NS - 1, 0, &id[1]));
	ASSERT_EQ(0, arm_at(self->fd, HWTW_TIME_MAX_NS, 0, &id[2]));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id[3]));
	ASSERT_EQ(HWTW_PENDING, rearm_in(self->fd, id[3], HWTW_TIME_MAX_NS));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id[i], &q));
		EXPECT_EQ(HWTW_TIME_MAX_NS, q.time_ns);
	}
	EXPECT_EQ(0, readable(self->fd, 50));
	/* The value next to it is not taken for it (D-19). */
	ASSERT_EQ(0, arm_at(self->fd, HWTW_TIME_MAX_NS - 1, 0, &id[0]));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id[0], &q));
	EXPECT_EQ(HWTW_TIME_MAX_NS - 1, q.time_ns);
}

/* Guards against values of user_data with a meaning of their own. */
TEST_F(dev, user_data_any)
{
	struct hwtw_event ev;
	struct hwtw_timer q;
	struct rnd r = { 2 };
	uint64_t data, id;
	int i;

	for (i = 0; i < 64 * 2 + 2 + 100; i++) {
		if (i < 64)
			data = 1ULL << i;
		else if (i < 128)
			data = ~(1ULL << (i - 64));
		else
			data = i == 128 ? 0 : i == 129 ? ~0ULL : rnd_next(&r);
		ASSERT_EQ(0, arm_in(self->fd, 0, data, &id));
		EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, id, &q));
		EXPECT_EQ(data, q.user_data);
		ASSERT_EQ(1, take(self->fd, &ev, 1));
		EXPECT_EQ(data, ev.user_data);
		EXPECT_EQ(id, ev.id);
	}
}

/* --- Intervals --- */

/* Guards against intervals that starve the machine or overflow. */
TEST_F(dev, interval_range)
{
	uint64_t bad[] = { 1, TICK - 1, 1ULL << 63, UINT64_MAX };
	struct hwtw_timer t = { .time_ns = HOUR_NS }, q;
	size_t i;

	if (!(hwtw_features(self->fd) & HWTW_FEATURE_PERIODIC))
		SKIP(return, "no periodic timers");
	t.interval_ns = TICK;
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		t.interval_ns = bad[i];
		EXPECT_EQ(-EINVAL, hwtw_call(self->fd, HWTW_IOC_REARM, &t));
		EXPECT_EQ(-EINVAL, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	}
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, t.id, &q));
	EXPECT_EQ(TICK, q.interval_ns);
	t.interval_ns = 2 * TICK + 1;
	EXPECT_EQ(0, hwtw_call(self->fd, HWTW_IOC_REARM, &t));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, t.id, &q));
	EXPECT_EQ(2 * TICK + 1, q.interval_ns);
}

/* --- QUERY, REARM, CANCEL --- */

/* Guards against QUERY showing anything but what was armed. */
TEST_F(dev, query_pending)
{
	uint64_t deadline = now_ns() + HOUR_NS, id;
	struct hwtw_timer q;

	ASSERT_EQ(0, arm_at(self->fd, deadline, 0x1234, &id));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, &q));
	EXPECT_EQ(id, q.id);
	EXPECT_EQ(0x1234, q.user_data);
	EXPECT_EQ(deadline, q.time_ns);
	EXPECT_EQ(0, q.interval_ns);
	EXPECT_EQ(HWTW_TIMER_ABS, q.flags);
	EXPECT_EQ(0, readable(self->fd, 0));
}

/* Guards against QUERY losing the deadline of what has expired. */
TEST_F(dev, query_expired)
{
	struct hwtw_timer q;
	struct hwtw_event ev;
	uint64_t id;

	ASSERT_EQ(0, arm_at(self->fd, 12345, 0x1234, &id));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, id, &q));
	EXPECT_EQ(12345, q.time_ns);
	EXPECT_EQ(0x1234, q.user_data);
	EXPECT_EQ(HWTW_TIMER_ABS, q.flags);
	/* Asking takes nothing away. */
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(12345, ev.expires_ns);
	EXPECT_EQ(-ENOENT, hwtw_query(self->fd, id, NULL));
}

/* Guards against results of QUERY that cannot be armed as they stand. */
TEST_F(dev, query_then_arm)
{
	struct hwtw_timer q, again;
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 77, &id));
	ASSERT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, &q));
	again = q;
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_CANCEL, &again));
	again = q;
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &again));
	EXPECT_NE(q.id, again.id);
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, again.id, &again));
	EXPECT_EQ(q.time_ns, again.time_ns);
	EXPECT_EQ(77, again.user_data);
}

/* Guards against a CANCEL that tells nothing (B-51, netty #425). */
TEST_F(dev, cancel_states)
{
	struct hwtw_event ev;
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	EXPECT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, id));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id));
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, id));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(id, ev.id);
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, id));
}

/* Guards against a REARM that tells nothing, or takes a dead timer. */
TEST_F(dev, rearm_states)
{
	struct hwtw_event ev;
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	EXPECT_EQ(HWTW_PENDING, rearm_in(self->fd, id, 0));
	EXPECT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id, 0));
	EXPECT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id, HOUR_NS));
	EXPECT_EQ(HWTW_PENDING, rearm_in(self->fd, id, HOUR_NS));
	EXPECT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
	EXPECT_EQ(-ENOENT, rearm_in(self->fd, id, 0));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &id));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(-ENOENT, rearm_in(self->fd, id, 0));
	EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
}

/* Guards against a moved timer becoming another one (B-32, B-48). */
TEST_F(dev, rearm_keeps)
{
	uint64_t deadline = now_ns() + 3 * HOUR_NS, id;
	struct hwtw_timer t = {}, q;
	struct hwtw_event ev;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0xabcd, &id));
	t.id = id;
	t.user_data = POISON64;
	t.time_ns = deadline;
	t.flags = HWTW_TIMER_ABS;
	t.state = POISON32;
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_REARM, &t));
	EXPECT_EQ(id, t.id);
	EXPECT_EQ(HWTW_PENDING, t.state);
	EXPECT_EQ(deadline, t.time_ns);
	EXPECT_EQ(POISON64, t.user_data);
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, &q));
	EXPECT_EQ(deadline, q.time_ns);
	EXPECT_EQ(0xabcd, q.user_data);
	EXPECT_EQ(HWTW_PENDING, rearm_at(self->fd, id, 4711));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(id, ev.id);
	EXPECT_EQ(0xabcd, ev.user_data);
	EXPECT_EQ(4711, ev.expires_ns);
}

/* Guards against moving in small steps piling up timers or claims (B-48). */
TEST_F(dev, rearm_often)
{
	struct rnd r = { 3 };
	struct hwtw_event ev[4];
	uint64_t id, deadline;
	struct hwtw_timer q;
	int i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 1));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 9, &id));
	for (i = 0; i < 50000; i++) {
		deadline = now_ns() + HOUR_NS + rnd_below(&r, HOUR_NS);
		ASSERT_EQ(HWTW_PENDING, rearm_at(self->fd, id, deadline));
	}
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, &q));
	EXPECT_EQ(deadline, q.time_ns);
	EXPECT_EQ(HWTW_PENDING, rearm_in(self->fd, id, 0));
	EXPECT_EQ(1, take(self->fd, ev, 4));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 4));
}

/* Guards against commands failing because of what they need not look at. */
TEST_F(dev, out_members_ignored)
{
	struct hwtw_timer t;
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	memset(&t, 0xff, sizeof(t));
	t.id = id;
	t.flags = 0;
	EXPECT_EQ(0, hwtw_call(self->fd, HWTW_IOC_QUERY, &t));
	memset(&t, 0xff, sizeof(t));
	t.id = id;
	t.flags = HWTW_TIMER_ABS;
	EXPECT_EQ(0, hwtw_call(self->fd, HWTW_IOC_QUERY, &t));
	EXPECT_EQ(0, t.interval_ns);
}

/* --- Ids --- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Guards against two names for one timer, or one for two. */
TEST_F(dev, ids_distinct)
{
	enum { NR = 20000 };
	uint64_t *id = calloc(NR, sizeof(*id));
	int i;

	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, id));
	qsort(id, NR, sizeof(*id), compare_u64);
	EXPECT_NE(0, id[0]);
	for (i = 1; i < NR; i++) {
		ASSERT_NE(id[i - 1], id[i]);
	}
}

/* Guards against a stale id hitting a newer timer (B-41, D-20). */
TEST_F(dev, ids_never_again)
{
	enum { NR = 100000 };
	uint64_t *id = calloc(NR, sizeof(*id)), live;
	int i;

	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, i, &id[i]));
		ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id[i]));
	}
	/* Each of them once more while a timer lives, maybe in their place. */
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &live));
	for (i = 0; i < NR; i++) {
		if (hwtw_cancel(self->fd, id[i]) != -ENOENT)
			break;
	}
	EXPECT_EQ(NR, i);
	for (i = 0; i < NR; i += 97) {
		EXPECT_EQ(-ENOENT, rearm_in(self->fd, id[i], 0));
		EXPECT_EQ(-ENOENT, hwtw_query(self->fd, id[i], NULL));
	}
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, live, NULL));
	qsort(id, NR, sizeof(*id), compare_u64);
	EXPECT_NE(0, id[0]);
	for (i = 1; i < NR; i++) {
		ASSERT_NE(id[i - 1], id[i]);
	}
}

/* Guards against the same after an expiry was read, and in SUBMIT. */
TEST_F(dev, ids_never_again_read)
{
	enum { NR = 64 };
	uint64_t id[NR], newer[NR];
	struct hwtw_op op[NR];
	struct hwtw_event ev[NR];
	int round, i;

	ASSERT_EQ(0, arm_many(self->fd, NR, 0, 0, 0, id));
	ASSERT_EQ(NR, take(self->fd, ev, NR));
	for (round = 0; round < 300; round++) {
		ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, newer));
		for (i = 0; i < NR; i++)
			op[i] = id_op(HWTW_OP_CANCEL, id[i]);
		ASSERT_EQ(0, hwtw_submit(self->fd, op, NR, NULL));
		for (i = 0; i < NR; i++) {
			ASSERT_EQ(-ENOENT, op[i].result);
		}
		ASSERT_EQ(NR, cancel_many(self->fd, newer, NR));
	}
}

/* Guards against the memory of a table page coming back with its old ids. */
TEST_F(dev, ids_never_again_many)
{
	enum { NR = 100000, ROUNDS = 4 };
	uint64_t *id = calloc(NR * ROUNDS, sizeof(*id));
	uint64_t i;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0,
				      id + i * NR));
		ASSERT_EQ(NR, cancel_many(self->fd, id + i * NR, NR));
	}
	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, NULL));
	EXPECT_EQ(0, cancel_many(self->fd, id, NR * ROUNDS));
	qsort(id, NR * ROUNDS, sizeof(*id), compare_u64);
	for (i = 1; i < NR * ROUNDS; i++) {
		ASSERT_NE(id[i - 1], id[i]);
	}
}

/* Guards against an index or a generation that is looked at in part only. */
TEST_F(dev, ids_flipped_bits)
{
	uint64_t id;
	int bit, i;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	for (i = 0; i < 2; i++) {
		for (bit = 0; bit < 64; bit++) {
			EXPECT_EQ(-ENOENT, hwtw_query(self->fd,
						      id ^ 1ULL << bit, NULL));
			EXPECT_EQ(-ENOENT, rearm_in(self->fd,
						    id ^ 1ULL << bit, 0));
			EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd,
						       id ^ 1ULL << bit));
		}
		EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, NULL));
		/* And with a generation that is not the first. */
		ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
		ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	}
}

/* Guards against reading outside the table for ids of no timer. */
TEST_F(dev, ids_garbage)
{
	static const uint64_t fixed[] = {
		0, 1, 2, ~0ULL, ~0ULL - 1, 1ULL << 63, (1ULL << 63) - 1,
		0xffffffff, 1ULL << 32, 0xffffffff00000000ULL, 0x7fffffff,
		0x80000000ULL, POISON64,
	};
	struct rnd r = { 4 };
	uint64_t live, id;
	int i;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &live));
	for (i = 0; i < 6000; i++) {
		id = rnd_next(&r);
		if (i < (int)ARRAY_SIZE(fixed))
			id = fixed[i];
		else if (i % 3 == 1)	/* near the live one */
			id = (live & ~0xffffffffULL) | (uint32_t)id;
		else if (i % 3 == 2)
			id = (live & 0xffffffffULL) | id << 32;
		if (id == live)
			continue;
		EXPECT_EQ(-ENOENT, hwtw_query(self->fd, id, NULL));
		EXPECT_EQ(-ENOENT, rearm_in(self->fd, id, HOUR_NS));
		EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, id));
	}
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, live, NULL));
}

/* Guards against looking up ids in an instance that has no table yet. */
TEST_F(dev, ids_before_first)
{
	EXPECT_EQ(-ENOENT, hwtw_query(self->fd, 1, NULL));
	EXPECT_EQ(-ENOENT, rearm_in(self->fd, 1, 0));
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, 1));
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, 0));
	EXPECT_EQ(0, readable(self->fd, 0));
}

/* Guards against timers of one descriptor seen through another. */
TEST_F(dev, instances_apart)
{
	enum { NR = 100 };
	uint64_t mine[NR], its[NR];
	struct hwtw_event ev[NR];
	struct hwtw_timer q;
	int other = hwtw_open(O_NONBLOCK);
	int i;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 1000, mine));
	for (i = 0; i < NR; i++) {
		EXPECT_EQ(-ENOENT, hwtw_cancel(other, mine[i]));
	}
	/* Ids may be equal then; each instance must still answer for its own. */
	ASSERT_EQ(0, arm_many(other, NR, HOUR_NS, 0, 2000, its));
	for (i = 0; i < NR; i++) {
		EXPECT_EQ(HWTW_PENDING, rearm_in(other, its[i], 0));
	}
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_EQ(NR, take(other, ev, NR));
	for (i = 0; i < NR; i++) {
		EXPECT_LE(2000, ev[i].user_data);
		EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, mine[i], &q));
		EXPECT_EQ(1000 + i, q.user_data);
	}
	close(other);
}

/* --- SUBMIT --- */

/* Guards against a batch doing something else than its single commands. */
TEST_F(dev, submit_each)
{
	uint64_t pending, expired, deadline = now_ns() + HOUR_NS;
	struct hwtw_event ev;
	struct hwtw_op op[8];
	uint32_t done;

	ASSERT_EQ(0, arm_at(self->fd, deadline, 11, &pending));
	ASSERT_EQ(0, arm_in(self->fd, 0, 22, &expired));
	op[0] = arm_op(HOUR_NS, 0, 33);
	op[1] = id_op(HWTW_OP_QUERY, pending);
	op[2] = id_op(HWTW_OP_REARM, pending);
	op[2].timer.time_ns = deadline + 1;
	op[2].timer.flags = HWTW_TIMER_ABS;
	op[3] = id_op(HWTW_OP_QUERY, pending);
	op[4] = id_op(HWTW_OP_CANCEL, pending);
	op[5] = id_op(HWTW_OP_CANCEL, expired);
	op[6] = id_op(HWTW_OP_QUERY, pending);
	op[7] = arm_op(7, HWTW_TIMER_ABS, 44);
	ASSERT_EQ(0, hwtw_submit(self->fd, op, 8, &done));
	EXPECT_EQ(8, done);

	EXPECT_EQ(0, op[0].result);
	EXPECT_EQ(HWTW_PENDING, op[0].timer.state);
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, op[0].timer.id, NULL));
	EXPECT_EQ(0, op[1].result);
	EXPECT_EQ(deadline, op[1].timer.time_ns);
	EXPECT_EQ(11, op[1].timer.user_data);
	EXPECT_EQ(HWTW_TIMER_ABS, op[1].timer.flags);
	EXPECT_EQ(HWTW_PENDING, op[1].timer.state);
	EXPECT_EQ(0, op[2].result);
	EXPECT_EQ(HWTW_PENDING, op[2].timer.state);
	EXPECT_EQ(0, op[3].result);
	EXPECT_EQ(deadline + 1, op[3].timer.time_ns);
	EXPECT_EQ(0, op[4].result);
	EXPECT_EQ(HWTW_PENDING, op[4].timer.state);
	EXPECT_EQ(0, op[5].result);
	EXPECT_EQ(HWTW_EXPIRED, op[5].timer.state);
	EXPECT_EQ(-ENOENT, op[6].result);
	EXPECT_EQ(0, op[7].result);
	EXPECT_EQ(HWTW_EXPIRED, op[7].timer.state);
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(44, ev.user_data);
	EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
}

/* Guards against one bad operation taking the rest down. */
TEST_F(dev, submit_bad_alone)
{
	struct hwtw_op op[12], before[12];
	uint32_t done;
	uint64_t id;
	int i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 5));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	for (i = 0; i < 12; i++)
		op[i] = arm_op(HOUR_NS, 0, i);
	op[0].opcode = 0;
	op[1].timer.flags = 1U << 1;
	op[2].timer.time_ns = 1ULL << 63;
	/* 3: good */
	op[4] = id_op(HWTW_OP_CANCEL, 0);
	op[5].opcode = 1000;
	op[6] = id_op(HWTW_OP_CANCEL, id);
	op[7] = id_op(HWTW_OP_CANCEL, id);
	op[8].opcode = UINT32_MAX;
	/* 9: good */
	op[10] = id_op(HWTW_OP_QUERY, ~0ULL);
	op[11] = id_op(HWTW_OP_REARM, id);
	memcpy(before, op, sizeof(op));
	ASSERT_EQ(0, hwtw_submit(self->fd, op, 12, &done));
	EXPECT_EQ(12, done);
	EXPECT_EQ(-EINVAL, op[0].result);
	EXPECT_EQ(-EINVAL, op[1].result);
	EXPECT_EQ(-EINVAL, op[2].result);
	EXPECT_EQ(0, op[3].result);
	EXPECT_EQ(-ENOENT, op[4].result);
	EXPECT_EQ(-EINVAL, op[5].result);
	EXPECT_EQ(0, op[6].result);
	EXPECT_EQ(-ENOENT, op[7].result);
	EXPECT_EQ(-EINVAL, op[8].result);
	EXPECT_EQ(0, op[9].result);
	EXPECT_EQ(-ENOENT, op[10].result);
	EXPECT_EQ(-ENOENT, op[11].result);
	for (i = 0; i < 12; i++) {
		EXPECT_EQ(before[i].opcode, op[i].opcode);
		if (op[i].result)
			EXPECT_EQ(0, memcmp(&op[i].timer, &before[i].timer,
					    sizeof(op[i].timer))) {
				TH_LOG("operation %d", i);
			}
	}
	/* Two more than the ones that live now: 3 and 9. */
	EXPECT_EQ(0, arm_many(self->fd, 3, HOUR_NS, 0, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
}

/* Guards against opcodes that alias because of a narrow type. */
TEST_F(dev, submit_opcodes)
{
	uint32_t opcode;
	struct hwtw_op op;
	int bit;

	for (opcode = 5; opcode < 300; opcode++) {
		op = arm_op(0, 0, 0);
		op.opcode = opcode;
		EXPECT_EQ(0, hwtw_submit(self->fd, &op, 1, NULL));
		EXPECT_EQ(-EINVAL, op.result);
	}
	for (bit = 3; bit < 32; bit++) {
		op = arm_op(0, 0, 0);
		op.opcode = HWTW_OP_ARM | 1U << bit;
		EXPECT_EQ(0, hwtw_submit(self->fd, &op, 1, NULL));
		EXPECT_EQ(-EINVAL, op.result);
	}
	EXPECT_EQ(0, readable(self->fd, 0));
}

/*
 * Guards against memory that is asked for too late: what a batch cancels makes
 * room for the timers that it arms, but not in the same buckets.
 */
TEST_F(dev, submit_cancel_then_arm)
{
	enum { NR = 32 };
	struct hwtw_op ops[2 * NR];
	uint64_t ids[2 * NR];
	int n, i;

	ASSERT_EQ(0, pin_to(0));
	for (n = 1; n <= NR; n++) {
		int fd = hwtw_open(O_NONBLOCK);

		ASSERT_LE(0, fd);
		for (i = 0; i < n; i++)
			ASSERT_EQ(0, arm_in(fd, (i + 2) * HOUR_NS / 12, 0, &ids[i]));
		for (i = 0; i < n; i++) {
			ops[i] = id_op(HWTW_OP_CANCEL, ids[i]);
			ops[n + i] = arm_op((i + 2) * 5 * HOUR_NS, 0, 0);
		}
		ASSERT_EQ(0, hwtw_submit(fd, ops, 2 * n, NULL));
		for (i = 0; i < 2 * n; i++)
			ASSERT_EQ(0, ops[i].result);
		close(fd);
	}
}

/* Guards against the ends of the range of nr. */
TEST_F(dev, submit_nr)
{
	static const uint32_t bad[] = {
		HWTW_BATCH_MAX + 1, HWTW_BATCH_MAX * 2, 1U << 31, UINT32_MAX,
		UINT32_MAX / sizeof(struct hwtw_op) + 1,
	};
	struct hwtw_op *op = calloc(HWTW_BATCH_MAX + 1, sizeof(*op));
	struct hwtw_event ev;
	uint32_t done;
	uint64_t i;

	for (i = 0; i <= HWTW_BATCH_MAX; i++)
		op[i] = arm_op(HOUR_NS, 0, i);
	/* None. */
	EXPECT_EQ(0, hwtw_submit(self->fd, NULL, 0, &done));
	EXPECT_EQ(0, done);
	EXPECT_EQ(0, hwtw_submit(self->fd, op, 0, &done));
	EXPECT_EQ(0, done);
	EXPECT_EQ(POISON64, op[0].timer.id);
	/* Too many. */
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, hwtw_submit(self->fd, op, bad[i], NULL));
	}
	EXPECT_EQ((int32_t)POISON32, op[0].result);
	EXPECT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 0));
	/* The most, and not one more. */
	EXPECT_EQ(0, hwtw_submit(self->fd, op, HWTW_BATCH_MAX, &done));
	EXPECT_EQ(HWTW_BATCH_MAX, done);
	for (i = 0; i < HWTW_BATCH_MAX; i++) {
		ASSERT_EQ(0, op[i].result);
	}
	EXPECT_EQ((int32_t)POISON32, op[HWTW_BATCH_MAX].result);
	EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
}

/* Guards against order lost inside a batch. */
TEST_F(dev, submit_in_order)
{
	enum { NR = 1000 };
	struct hwtw_op op[NR];
	struct hwtw_timer q;
	uint64_t id, base = now_ns() + HOUR_NS;
	int i;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	for (i = 0; i < NR; i++) {
		op[i] = id_op(HWTW_OP_REARM, id);
		op[i].timer.time_ns = base + (i * 7919ULL) % NR;
		op[i].timer.flags = HWTW_TIMER_ABS;
	}
	ASSERT_EQ(0, hwtw_submit(self->fd, op, NR, NULL));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, &q));
	EXPECT_EQ(op[NR - 1].timer.time_ns, q.time_ns);
}

/* Guards against operations carried out that nobody can learn of. */
TEST_F(dev, submit_partly_unmapped)
{
	static const uint32_t good[] = { 0, 1, 2, 31, 32, 33, 63, 64, 65, 85 };
	struct hwtw_event ev[128];
	uint32_t done, k;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		struct hwtw_op *op = (void *)map_cliff(1);

		/* The next one begins on the page and ends off it. */
		op = (void *)((char *)(op - good[i]) - 8);
		memset((char *)op, 0, 8 + good[i] * sizeof(*op));
		for (k = 0; k < good[i]; k++)
			op[k] = arm_op(0, 0, k);
		EXPECT_EQ(-EFAULT, hwtw_submit(self->fd, op, 100, &done));
		EXPECT_EQ(good[i], done);
		for (k = 0; k < good[i]; k++) {
			EXPECT_EQ(0, op[k].result);
		}
		if (good[i])
			EXPECT_EQ((int)good[i], take(self->fd, ev, 128));
		EXPECT_EQ(-EAGAIN, take(self->fd, ev, 128));
	}
}

/* Guards against the same when operations can be read but not written. */
TEST_F(dev, submit_partly_readonly)
{
	struct hwtw_op *op = map_pages(2);
	struct hwtw_event ev[170];
	uint32_t done, k, good;

	ASSERT_NE(NULL, op);
	for (k = 0; k < 170; k++)
		op[k] = arm_op(0, 0, k);
	ASSERT_EQ(0, mprotect((char *)op + 4096, 4096, PROT_READ));
	good = 4096 / sizeof(*op);
	EXPECT_EQ(-EFAULT, hwtw_submit(self->fd, op, 170, &done));
	EXPECT_EQ(good, done);
	for (k = 0; k < good; k++) {
		EXPECT_EQ(0, op[k].result);
	}
	EXPECT_EQ((int)good, take(self->fd, ev, 170));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 170));
}

/* Guards against a batch that is only looked at at its ends. */
TEST_F(dev, submit_middle_readonly)
{
	struct hwtw_op *op = map_pages(3), *first;
	uint32_t done, k, good;
	uint64_t id[128];

	ASSERT_NE(NULL, op);
	for (k = 0; k < 128; k++)
		ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, k, &id[k]));
	/* From the first page across the second to the third. */
	first = op + 64;
	good = 4096 / sizeof(*op) - 64;
	for (k = 0; k < 128; k++)
		first[k] = id_op(HWTW_OP_CANCEL, id[k]);
	ASSERT_LT(8192, (char *)&first[127] - (char *)op);
	ASSERT_EQ(0, mprotect((char *)op + 4096, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, hwtw_submit(self->fd, first, 128, &done));
	EXPECT_EQ(good, done);
	for (k = 0; k < 128; k++) {
		EXPECT_EQ(k < good ? -ENOENT : HWTW_PENDING,
			  hwtw_query(self->fd, id[k], NULL));
	}
}

/* Guards against CANCEL and REARM taking place without being reported. */
TEST_F(dev, submit_readonly_undo)
{
	struct hwtw_op *op = map_pages(1);
	struct hwtw_event ev[2];
	struct hwtw_timer q;
	uint64_t pending, expired, deadline = now_ns() + HOUR_NS;
	uint32_t done;

	ASSERT_EQ(0, arm_at(self->fd, deadline, 1, &pending));
	ASSERT_EQ(0, arm_in(self->fd, 0, 2, &expired));
	op[0] = id_op(HWTW_OP_CANCEL, pending);
	op[1] = id_op(HWTW_OP_REARM, expired);
	op[1].timer.time_ns = HOUR_NS;
	op[2] = id_op(HWTW_OP_CANCEL, expired);
	ASSERT_EQ(0, mprotect(op, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, hwtw_submit(self->fd, op, 3, &done));
	EXPECT_EQ(0, done);
	EXPECT_EQ(-EFAULT, hwtw_submit(self->fd, op + 1, 2, &done));
	EXPECT_EQ(-EFAULT, hwtw_submit(self->fd, op + 2, 1, &done));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, pending, &q));
	EXPECT_EQ(deadline, q.time_ns);
	EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, expired, NULL));
	EXPECT_EQ(1, take(self->fd, ev, 2));
	EXPECT_EQ(2, ev[0].user_data);
}

/* Guards against an unwritable hwtw_submit hiding what was done. */
TEST_F(dev, submit_done_readonly)
{
	struct hwtw_op op[3] = {
		arm_op(0, 0, 0), arm_op(0, 0, 1), arm_op(0, 0, 2),
	};
	struct hwtw_submit s = { .ops = (uintptr_t)op, .nr = 3 };
	struct hwtw_event ev[4];
	void *ro = map_readonly(&s, sizeof(s));
	int i, done = 0, ret;

	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_SUBMIT, ro));
	for (i = 0; i < 3; i++)
		done += !op[i].result;
	ret = take(self->fd, ev, 4);
	EXPECT_EQ(done, ret == -EAGAIN ? 0 : ret);
}

/* Guards against wild addresses of the operations. */
TEST_F(dev, submit_bad_ops_pointer)
{
	static const uint64_t bad[] = {
		0, 1, 1ULL << 47, 1ULL << 63, 0xffff888000000000ULL,
		-4096ULL, -48ULL, ~0ULL,
	};
	struct hwtw_submit s;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		s = (struct hwtw_submit) {
			.ops = bad[i],
			.nr = HWTW_BATCH_MAX,
			.done = POISON32,
		};
		EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_SUBMIT, &s));
		EXPECT_EQ(0, s.done);
		EXPECT_EQ(bad[i], s.ops);
		EXPECT_EQ(HWTW_BATCH_MAX, s.nr);
	}
}

/* Guards against arguments read again after the call returned (B-48). */
TEST_F(dev, argument_copied)
{
	struct hwtw_timer t = { .user_data = 5, .time_ns = 0 };
	struct hwtw_event ev;

	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	memset(&t, POISON, sizeof(t));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(5, ev.user_data);
}

/* --- Limits --- */

FIXTURE(limits) {
	int fd;
	uint64_t max;		/* of one instance */
	uint64_t total;		/* of the module */
};

FIXTURE_SETUP(limits)
{
	self->fd = hwtw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->max = read_number(HWTW_PARAMS "max_timers");
	self->total = read_number(HWTW_PARAMS "max_timers_total");
	ASSERT_LT(0, (int64_t)self->max);
	ASSERT_LT(0, (int64_t)self->total);
}

FIXTURE_TEARDOWN(limits)
{
	close(self->fd);
}

/* Guards against limits that nobody can ask for. */
TEST_F(limits, info)
{
	struct hwtw_info info;

	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_EQ(self->max, info.max_timers);
	EXPECT_EQ(self->total, info.max_timers_total);
}

/* Guards against SETUP lifting what the administrator set. */
TEST_F(limits, setup_is_cut)
{
	uint64_t wish[] = {
		1, self->max - 1, self->max, self->max + 1, 1ULL << 32,
		INT64_MAX, 1ULL << 63, UINT64_MAX,
	};
	struct hwtw_info info;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wish); i++) {
		EXPECT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, wish[i]));
		ASSERT_EQ(0, hwtw_info(self->fd, &info));
		EXPECT_EQ(wish[i] < self->max ? wish[i] : self->max,
			  info.max_timers);
	}
}

/* Guards against no limit, or one off by one (B-29, netty #5647). */
TEST_F(limits, of_setup)
{
	static const int limit[] = { 1, 2, 17 };
	uint64_t id[17];
	size_t k;
	int i;

	for (k = 0; k < ARRAY_SIZE(limit); k++) {
		int fd = hwtw_open(O_NONBLOCK);

		ASSERT_EQ(0, hwtw_setup(fd, CLOCK_MONOTONIC, 0, limit[k]));
		for (i = 0; i < limit[k]; i++) {
			ASSERT_EQ(0, arm_in(fd, HOUR_NS, i, &id[i]));
		}
		EXPECT_EQ(-ENOSPC, arm_in(fd, HOUR_NS, 0, NULL));
		EXPECT_EQ(-ENOSPC, arm_in(fd, 0, 0, NULL));
		EXPECT_EQ(0, readable(fd, 0));
		EXPECT_EQ(HWTW_PENDING, hwtw_cancel(fd, id[0]));
		EXPECT_EQ(0, arm_in(fd, HOUR_NS, 0, &id[0]));
		EXPECT_EQ(-ENOSPC, arm_in(fd, HOUR_NS, 0, NULL));
		/* Moving one needs no room. */
		EXPECT_EQ(HWTW_PENDING, rearm_in(fd, id[0], 2 * HOUR_NS));
		close(fd);
	}
}

/* Guards against unread records outside the limit, or stuck in it (B-30). */
TEST_F(limits, unread_counts)
{
	struct hwtw_event ev[4];

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 3));
	ASSERT_EQ(0, arm_many(self->fd, 3, 0, 0, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, 0, 0, NULL));
	EXPECT_EQ(1, take(self->fd, ev, 1));
	EXPECT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, 0, 0, NULL));
	EXPECT_EQ(3, take(self->fd, ev, 4));
	EXPECT_EQ(0, arm_many(self->fd, 3, HOUR_NS, 0, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, 0, 0, NULL));
}

/* Guards against a count that drifts with every failure (B-28). */
TEST_F(limits, failures_leave_no_trace)
{
	struct hwtw_op op[8];
	uint64_t id[4];
	int i, k, good;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 4));
	for (i = 0; i < 1000; i++) {
		for (k = 0; k < 8; k++)
			op[k] = arm_op(HOUR_NS, 0, 0);
		ASSERT_EQ(0, hwtw_submit(self->fd, op, 8, NULL));
		for (k = good = 0; k < 8; k++) {
			if (!op[k].result)
				id[good++] = op[k].timer.id;
			else
				ASSERT_EQ(-ENOSPC, op[k].result);
			ASSERT_GE(4, good);
		}
		ASSERT_EQ(4, good);
		ASSERT_EQ(-ENOENT, hwtw_cancel(self->fd, ~id[0]));
		ASSERT_EQ(4, cancel_many(self->fd, id, 4));
		ASSERT_EQ(-EINVAL, arm_in(self->fd, UINT64_MAX, 0, NULL));
	}
}

/* Guards against room that a batch makes and cannot use itself. */
TEST_F(limits, inside_a_batch)
{
	struct hwtw_op op[4];
	uint64_t id;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 1));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	op[0] = arm_op(HOUR_NS, 0, 0);
	op[1] = id_op(HWTW_OP_CANCEL, id);
	op[2] = arm_op(HOUR_NS, 0, 0);
	op[3] = arm_op(HOUR_NS, 0, 0);
	ASSERT_EQ(0, hwtw_submit(self->fd, op, 4, NULL));
	EXPECT_EQ(-ENOSPC, op[0].result);
	EXPECT_EQ(0, op[1].result);
	EXPECT_EQ(0, op[2].result);
	EXPECT_EQ(-ENOSPC, op[3].result);
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
}

/* Guards against the parameter max_timers being for show. */
TEST_F(limits, of_parameter)
{
	uint64_t id;

	if (self->max > 1000 || self->total <= self->max)
		SKIP(return, "needs max_timers below 1000 and max_timers_total");
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	ASSERT_EQ(0, arm_many(self->fd, self->max - 1, HOUR_NS, 0, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
	EXPECT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
	EXPECT_EQ(0, arm_in(self->fd, HOUR_NS, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
}

/* Guards against many instances together going past the module's limit. */
TEST_F(limits, of_module)
{
	struct hwtw_event ev;
	int other = hwtw_open(O_NONBLOCK), third = hwtw_open(O_NONBLOCK);
	uint64_t left = self->total - self->max, id;

	if (self->max > 1000 || !left || left >= self->max)
		SKIP(return, "needs max_timers < max_timers_total < twice that");
	ASSERT_EQ(0, arm_many(self->fd, self->max, HOUR_NS, 0, 0, NULL));
	ASSERT_EQ(0, arm_many(other, left - 1, HOUR_NS, 0, 0, NULL));
	ASSERT_EQ(0, arm_in(third, 0, 0, &id));
	EXPECT_EQ(-ENOSPC, arm_in(third, HOUR_NS, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(other, HOUR_NS, 0, NULL));
	/* Room comes with one read, one cancel, or a whole instance going. */
	ASSERT_EQ(1, take(third, &ev, 1));
	EXPECT_EQ(0, arm_in(other, HOUR_NS, 0, &id));
	EXPECT_EQ(-ENOSPC, arm_in(third, HOUR_NS, 0, NULL));
	ASSERT_EQ(HWTW_PENDING, hwtw_cancel(other, id));
	EXPECT_EQ(0, arm_in(third, HOUR_NS, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(third, HOUR_NS, 0, NULL));
	close(self->fd);
	self->fd = hwtw_open(O_NONBLOCK);
	EXPECT_EQ(0, arm_many(self->fd, self->max, HOUR_NS, 0, 0, NULL));
	close(other);
	close(third);
}

/* --- Other file operations, and the node --- */

/* Guards against operations that succeed and do nothing sensible. */
TEST_F(dev, other_operations)
{
	char buf[64] = {};
	void *p;

	ASSERT_EQ(0, arm_in(self->fd, 0, 0, NULL));
	EXPECT_EQ(-1, write(self->fd, buf, sizeof(buf)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, lseek(self->fd, 0, SEEK_SET));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(-1, lseek(self->fd, 32, SEEK_CUR));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(-1, pread(self->fd, buf, sizeof(buf), 0));
	EXPECT_EQ(ESPIPE, errno);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, 0);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(1, readable(self->fd, 0));
}

/* Guards against a node that everybody may open. */
TEST_F(dev, node_mode)
{
	struct stat st;

	ASSERT_EQ(0, fstat(self->fd, &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	EXPECT_EQ(0600, st.st_mode & 07777);
}

/* Guards against a module that goes away under its users. */
TEST_F(dev, unload_refused)
{
	struct hwtw_event ev;
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	EXPECT_EQ(-1, syscall(SYS_delete_module, "hwtw", O_NONBLOCK));
	/* EAGAIN is the kernel's own word for it. */
	EXPECT_TRUE(errno == EAGAIN || errno == EBUSY) {
		TH_LOG("errno %d", errno);
	}
	EXPECT_EQ(HWTW_PENDING, rearm_in(self->fd, id, 0));
	EXPECT_EQ(1, take(self->fd, &ev, 1));
}

/* Guards against instances that cost descriptors or stay after close. */
TEST_F(dev, open_close)
{
	uint64_t id;
	int i, fd;

	for (i = 0; i < 2000; i++) {
		fd = hwtw_open(0);
		ASSERT_LE(0, fd);
		if (i & 1)
			ASSERT_EQ(0, arm_in(fd, i & 2 ? HOUR_NS : 0, i, &id));
		ASSERT_EQ(0, close(fd));
	}
}

TEST_HARNESS_MAIN
