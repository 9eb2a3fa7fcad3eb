// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of libhwtw on a real device, in a VM: that its functions do what
 * libhwtw.h says. What the kernel does is tested in tools/selftests.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <libhwtw.h>

#include "kselftest_harness.h"

/* Ends what hangs. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

#define MSEC	1000000ULL
#define MINUTE	60000000000ULL

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

FIXTURE(lib) {
	int fd;
	struct hwtw_event event;
	struct hwtw_timer timer;
	uint64_t id;
};

FIXTURE_SETUP(lib)
{
	self->fd = hwtw_open(O_NONBLOCK);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(lib)
{
	close(self->fd);
}

TEST_F(lib, open)
{
	int fd = hwtw_open(0);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	EXPECT_EQ(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);
	EXPECT_EQ(O_NONBLOCK, fcntl(self->fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(-EINVAL, hwtw_open(O_TRUNC));
	EXPECT_EQ(-EBADF, hwtw_get_info(-1, &(struct hwtw_info) { 0 }));
}

TEST_F(lib, set_up)
{
	struct hwtw_info info;

	EXPECT_EQ(-EINVAL, hwtw_set_up(self->fd, 99, 0, 0));
	ASSERT_EQ(0, hwtw_set_up(self->fd, CLOCK_BOOTTIME, 100000, 77));
	ASSERT_EQ(0, hwtw_get_info(self->fd, &info));
	EXPECT_EQ(HWTW_ABI, info.abi);
	EXPECT_EQ(CLOCK_BOOTTIME, info.clockid);
	EXPECT_EQ(65536, info.tick_ns);
	EXPECT_EQ(77, info.max_timers);
	ASSERT_EQ(0, hwtw_arm(self->fd, MINUTE, 0, 0, 0, NULL));
	EXPECT_EQ(-EBUSY, hwtw_set_up(self->fd, CLOCK_BOOTTIME, 0, 0));
}

TEST_F(lib, arm_and_query)
{
	uint64_t at = now_ns(CLOCK_MONOTONIC) + MINUTE;

	ASSERT_EQ(0, hwtw_arm(self->fd, at, 5 * MSEC, HWTW_TIMER_ABS, 42, &self->id));
	ASSERT_EQ(HWTW_PENDING, hwtw_query(self->fd, self->id, &self->timer));
	EXPECT_EQ(self->id, self->timer.id);
	EXPECT_EQ(42, self->timer.user_data);
	EXPECT_EQ(at, self->timer.time_ns);
	EXPECT_EQ(5 * MSEC, self->timer.interval_ns);
	EXPECT_EQ(HWTW_TIMER_ABS, self->timer.flags);
	EXPECT_EQ(-EINVAL, hwtw_arm(self->fd, HWTW_TIME_MAX_NS + 1, 0, 0, 0, &self->id));
	EXPECT_EQ(-EINVAL, hwtw_arm(self->fd, 0, 1, 0, 0, NULL));
}

TEST_F(lib, rearm_and_cancel)
{
	uint64_t at = now_ns(CLOCK_MONOTONIC) + 2 * MINUTE;

	ASSERT_EQ(0, hwtw_arm(self->fd, MINUTE, 0, 0, 1, &self->id));
	EXPECT_EQ(HWTW_PENDING, hwtw_rearm(self->fd, self->id, at, MINUTE, HWTW_TIMER_ABS));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, self->id, &self->timer));
	EXPECT_EQ(at, self->timer.time_ns);
	EXPECT_EQ(MINUTE, self->timer.interval_ns);
	EXPECT_EQ(1, self->timer.user_data);
	EXPECT_EQ(HWTW_PENDING, hwtw_rearm(self->fd, self->id, 0, 0, 0));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, self->id, &self->timer));
	EXPECT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, self->id));
	EXPECT_EQ(-ENOENT, hwtw_cancel(self->fd, self->id));
	EXPECT_EQ(-ENOENT, hwtw_rearm(self->fd, self->id, 0, 0, 0));
	EXPECT_EQ(-ENOENT, hwtw_query(self->fd, self->id, &self->timer));
}

TEST_F(lib, walk)
{
	uint64_t cursor = 0, base = now_ns(CLOCK_MONOTONIC) + MINUTE;
	struct hwtw_timer timers[8];
	unsigned int seen[50] = { 0 }, calls = 0, sum = 0;
	int nr;

	EXPECT_EQ(0, hwtw_walk(self->fd, timers, 8, 0, &cursor));
	EXPECT_EQ(0, cursor);
	for (int i = 0; i < 50; i++)
		ASSERT_EQ(0, hwtw_arm(self->fd, base + i, 0, HWTW_TIMER_ABS, i, NULL));
	while ((nr = hwtw_walk(self->fd, timers, 8, 0, &cursor)) > 0) {
		calls++;
		for (int i = 0; i < nr; i++) {
			ASSERT_GT(50, timers[i].user_data);
			seen[timers[i].user_data]++;
			EXPECT_EQ(base + timers[i].user_data, timers[i].time_ns);
		}
	}
	EXPECT_EQ(0, nr);
	EXPECT_EQ(7, calls);
	for (int i = 0; i < 50; i++)
		EXPECT_EQ(1, seen[i]);
	EXPECT_EQ(-EINVAL, hwtw_walk(self->fd, timers, 8, ~0U, &cursor));
	cursor = 0;
	while ((nr = hwtw_walk(self->fd, timers, 8, HWTW_LIST_CANCEL, &cursor)) > 0)
		sum += nr;
	EXPECT_EQ(0, nr);
	EXPECT_EQ(50, sum);
	EXPECT_EQ(0, hwtw_walk(self->fd, timers, 8, 0, &(uint64_t) { 0 }));
}

/* What was reported is told, though the rest of the memory is none. */
TEST_F(lib, walk_into_bad_memory)
{
	struct hwtw_timer *timers, last;
	uint64_t cursor = 0;
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int nr, sum;

	ASSERT_NE(MAP_FAILED, (void *)page);
	ASSERT_EQ(0, munmap(page + 4096, 4096));
	timers = (void *)(page + 4096 - 3 * sizeof(*timers));
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(0, hwtw_arm(self->fd, MINUTE, 0, 0, i, NULL));
	nr = hwtw_walk(self->fd, timers, 10, HWTW_LIST_CANCEL, &cursor);
	EXPECT_TRUE(nr == -EFAULT || (nr >= 1 && nr <= 3));
	sum = nr > 0 ? nr : 0;
	while ((nr = hwtw_walk(self->fd, &last, 1, HWTW_LIST_CANCEL, &cursor)) > 0)
		sum += nr;
	EXPECT_EQ(0, nr);
	EXPECT_EQ(10, sum);
}

TEST_F(lib, stats)
{
	struct hwtw_stats stats;

	ASSERT_EQ(0, hwtw_arm(self->fd, MINUTE, 0, 0, 0, NULL));
	ASSERT_EQ(0, hwtw_arm(self->fd, 0, 0, 0, 0, NULL));
	ASSERT_EQ(0, hwtw_get_stats(self->fd, &stats));
	EXPECT_EQ(2, stats.armed);
	EXPECT_EQ(1, stats.pending);
	EXPECT_EQ(1, stats.unread);
}

/* What callbacks were told. */
struct told {
	unsigned int nr;
	struct hwtw_op op[64];
	struct hwtw_batch *batch;
	int busy;
};

static void tell(const struct hwtw_op *op, void *arg)
{
	struct told *told = arg;

	told->op[told->nr++ % 64] = *op;
	if (told->batch)
		told->busy = hwtw_batch_flush(told->batch);
}

TEST_F(lib, batch)
{
	struct told told = { 0 };
	struct hwtw_batch *batch;

	EXPECT_EQ(-EINVAL, hwtw_batch_new(&batch, self->fd, 0, tell, &told));
	EXPECT_EQ(-EINVAL, hwtw_batch_new(&batch, self->fd, HWTW_BATCH_MAX + 1, tell, &told));
	ASSERT_EQ(0, hwtw_batch_new(&batch, self->fd, 4, tell, &told));
	EXPECT_EQ(0, hwtw_batch_flush(batch));
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(0, hwtw_batch_arm(batch, MINUTE, 0, 0, 10 + i));
	/* Full, and not more than that. */
	EXPECT_EQ(0, told.nr);
	EXPECT_EQ(0, hwtw_batch_arm(batch, 0, 0, 1U << 31, 14));
	ASSERT_EQ(4, told.nr);
	EXPECT_EQ(0, hwtw_batch_flush(batch));
	ASSERT_EQ(5, told.nr);
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(HWTW_OP_ARM, told.op[i].opcode);
		EXPECT_EQ(10 + i, told.op[i].timer.user_data);
		EXPECT_EQ(i < 4 ? 0 : -EINVAL, told.op[i].result);
	}

	EXPECT_EQ(0, hwtw_batch_query(batch, told.op[0].timer.id));
	EXPECT_EQ(0, hwtw_batch_rearm(batch, told.op[1].timer.id, 0, 0, 0, 71));
	EXPECT_EQ(0, hwtw_batch_cancel(batch, told.op[2].timer.id, 72));
	EXPECT_EQ(0, hwtw_batch_cancel(batch, told.op[2].timer.id, 73));
	EXPECT_EQ(0, hwtw_batch_flush(batch));
	ASSERT_EQ(9, told.nr);
	EXPECT_EQ(HWTW_OP_QUERY, told.op[5].opcode);
	EXPECT_EQ(10, told.op[5].timer.user_data);
	EXPECT_EQ(71, told.op[6].timer.user_data);
	EXPECT_EQ(HWTW_PENDING, told.op[6].timer.state);
	EXPECT_EQ(72, told.op[7].timer.user_data);
	EXPECT_EQ(0, told.op[7].result);
	EXPECT_EQ(73, told.op[8].timer.user_data);
	EXPECT_EQ(-ENOENT, told.op[8].result);

	/* Only what is flushed is done. */
	EXPECT_EQ(0, hwtw_batch_cancel(batch, told.op[3].timer.id, 0));
	hwtw_batch_free(batch);
	hwtw_batch_free(NULL);
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, told.op[3].timer.id, &self->timer));
}

/* An error keeps what was not carried out; the callback keeps off the batch. */
TEST_F(lib, batch_error)
{
	struct told told = { 0 };
	struct hwtw_batch *batch;
	int null = open("/dev/null", O_RDWR);

	ASSERT_EQ(0, hwtw_batch_new(&batch, null, 2, tell, &told));
	EXPECT_EQ(0, hwtw_batch_arm(batch, MINUTE, 0, 0, 1));
	EXPECT_EQ(0, hwtw_batch_arm(batch, MINUTE, 0, 0, 2));
	EXPECT_EQ(-ENOTTY, hwtw_batch_arm(batch, MINUTE, 0, 0, 3));
	EXPECT_EQ(0, told.nr);
	/* The same descriptor becomes a good one. */
	ASSERT_EQ(null, dup2(self->fd, null));
	told.batch = batch;
	EXPECT_EQ(0, hwtw_batch_arm(batch, MINUTE, 0, 0, 4));
	EXPECT_EQ(-EBUSY, told.busy);
	EXPECT_EQ(0, hwtw_batch_flush(batch));
	ASSERT_EQ(3, told.nr);
	EXPECT_EQ(1, told.op[0].timer.user_data);
	EXPECT_EQ(2, told.op[1].timer.user_data);
	EXPECT_EQ(4, told.op[2].timer.user_data);
	hwtw_batch_free(batch);
	close(null);
}

TEST_F(lib, batch_without_callback)
{
	struct hwtw_batch *batch;

	ASSERT_EQ(0, hwtw_batch_new(&batch, self->fd, 3, NULL, NULL));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(0, hwtw_batch_arm(batch, 0, 0, 0, i));
	EXPECT_EQ(0, hwtw_batch_flush(batch));
	hwtw_batch_free(batch);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(sizeof(self->event), read(self->fd, &self->event, sizeof(self->event)));
	EXPECT_EQ(-1, read(self->fd, &self->event, sizeof(self->event)));
}

TEST_F(lib, reader)
{
	struct hwtw_reader *reader;

	EXPECT_EQ(-EINVAL, hwtw_reader_new(&reader, self->fd, 0));
	EXPECT_EQ(-EINVAL, hwtw_reader_new(&reader, self->fd, UINT32_MAX));
	ASSERT_EQ(0, hwtw_reader_new(&reader, self->fd, 4));
	EXPECT_EQ(0, hwtw_reader_next(reader, &self->event));
	for (int i = 0; i < 6; i++)
		ASSERT_EQ(0, hwtw_arm(self->fd, 0, 0, 0, i, NULL));
	EXPECT_EQ(0, hwtw_reader_buffered(reader));
	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(1, hwtw_reader_next(reader, &self->event));
		EXPECT_EQ(i, self->event.user_data);
		EXPECT_EQ(i < 4 ? 3 - i : 5 - i, hwtw_reader_buffered(reader));
	}
	EXPECT_EQ(0, hwtw_reader_next(reader, &self->event));
	hwtw_reader_free(reader);
	hwtw_reader_free(NULL);
}

static void on_alarm(int nr)
{
	(void)nr;
}

TEST_F(lib, reader_that_sleeps)
{
	struct sigaction action = { .sa_handler = on_alarm };
	/* Again and again: the first may come before the read. */
	struct itimerval alarm = { { 0, 20000 }, { 0, 20000 } };
	struct hwtw_reader *reader;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	ASSERT_EQ(0, hwtw_reader_new(&reader, self->fd, 4));
	ASSERT_EQ(0, hwtw_arm(self->fd, 10 * MSEC, 0, 0, 5, NULL));
	EXPECT_EQ(1, hwtw_reader_next(reader, &self->event));
	EXPECT_EQ(5, self->event.user_data);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &alarm, NULL);
	EXPECT_EQ(-EINTR, hwtw_reader_next(reader, &self->event));
	hwtw_reader_free(reader);
}

TEST(reader_of_something_else)
{
	struct hwtw_reader *reader;
	struct hwtw_event event;
	int fd = open("/dev/null", O_RDONLY);

	ASSERT_EQ(0, hwtw_reader_new(&reader, fd, 4));
	EXPECT_EQ(-EPROTO, hwtw_reader_next(reader, &event));
	close(fd);
	EXPECT_EQ(-EBADF, hwtw_reader_next(reader, &event));
	hwtw_reader_free(reader);
}

TEST(names)
{
	EXPECT_STREQ("pending", hwtw_state_name(HWTW_PENDING));
	EXPECT_STREQ("expired", hwtw_state_name(HWTW_EXPIRED));
	EXPECT_STREQ("unknown", hwtw_state_name(0));
	EXPECT_STREQ("arm", hwtw_op_name(HWTW_OP_ARM));
	EXPECT_STREQ("rearm", hwtw_op_name(HWTW_OP_REARM));
	EXPECT_STREQ("cancel", hwtw_op_name(HWTW_OP_CANCEL));
	EXPECT_STREQ("query", hwtw_op_name(HWTW_OP_QUERY));
	EXPECT_STREQ("unknown", hwtw_op_name(99));
	EXPECT_STREQ("realtime", hwtw_clock_name(CLOCK_REALTIME));
	EXPECT_STREQ("monotonic", hwtw_clock_name(CLOCK_MONOTONIC));
	EXPECT_STREQ("boottime", hwtw_clock_name(CLOCK_BOOTTIME));
	EXPECT_STREQ("unknown", hwtw_clock_name(99));
	EXPECT_STREQ("periodic", hwtw_feature_name(HWTW_FEATURE_PERIODIC));
	EXPECT_STREQ("realtime", hwtw_feature_name(HWTW_FEATURE_REALTIME));
	EXPECT_STREQ("list", hwtw_feature_name(HWTW_FEATURE_LIST));
	EXPECT_STREQ("stats", hwtw_feature_name(HWTW_FEATURE_STATS));
	EXPECT_STREQ("unknown", hwtw_feature_name(3));
	EXPECT_STREQ(hwtw_strerror(-ENOSPC), hwtw_strerror(ENOSPC));
	EXPECT_NE(NULL, strstr(hwtw_strerror(-ENOSPC), "limit"));
	EXPECT_STREQ(strerror(EMFILE), hwtw_strerror(-EMFILE));
}

TEST_HARNESS_MAIN
