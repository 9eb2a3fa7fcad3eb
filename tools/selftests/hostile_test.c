// SPDX-License-Identifier: GPL-2.0
/*
 * Users who mean harm: whatever an instance is made to do, others have the CPU
 * and their timers in time, memory stays in bounds, and nothing is told that
 * is none of the caller's business.
 *
 * For a VM with one CPU whose clock counts its instructions (tools/vm/run
 * --icount): there "in time" means the same on every machine. The time that a
 * thread of the highest priority waits for its record is the longest that the
 * kernel kept the CPU to itself.
 */
#include "hwtw_test.h"

#include <sys/resource.h>

#define TICK		HWTW_TICK_DEFAULT_NS
#define FINE_TICK	(1ULL << 16)
/* Seconds of the VM, which pass quickly. */
#define LONG_TIMEOUT	40000

/*
 * Longest time that others may wait, in ns, which are instructions: for a run
 * of the wheel, a call's piece of work until it lets others in, the interrupt
 * and the way to the reader. Linux itself takes more for the end of a process.
 */
#define STALL_NS	(2 * NSEC_PER_MSEC)

/* Somebody who minds his own business: one timer after the other. */
struct victim {
	pthread_t thread;
	int fd;
	bool stop;
	int error;
	uint64_t records, early, worst;
};

static void *victim_main(void *arg)
{
	struct victim *v = arg;
	struct hwtw_event ev;
	uint64_t at, now;

	while (!__atomic_load_n(&v->stop, __ATOMIC_RELAXED)) {
		at = (now_ns() / FINE_TICK + 5) * FINE_TICK;
		v->error = arm_at(v->fd, at, 0, NULL);
		if (!v->error && take(v->fd, &ev, 1) != 1)
			v->error = -EIO;
		if (v->error)
			return NULL;
		now = now_ns();
		v->records++;
		v->early += now < at;
		if (now > at && now - at > v->worst)
			v->worst = now - at;
	}
	return NULL;
}

FIXTURE(hostile) {
	struct victim v;
	uint64_t stall;		/* so long may others wait */
	int fd;
};

FIXTURE_SETUP(hostile)
{
	struct sched_param param = { .sched_priority = 50 };
	pthread_attr_t attr;

	/* What the boot left to do in the background takes the CPU for 30 ms. */
	if (now_ns() < 10 * NSEC_PER_SEC)
		sleep_ns(10 * NSEC_PER_SEC - now_ns());
	self->stall = STALL_NS;
	self->fd = hwtw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->v.fd = hwtw_open(0);
	ASSERT_LE(0, self->v.fd);
	ASSERT_EQ(0, hwtw_setup(self->v.fd, CLOCK_MONOTONIC, FINE_TICK, 0));
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	ASSERT_EQ(0, pthread_create(&self->v.thread, &attr, victim_main, &self->v));
}

FIXTURE_TEARDOWN(hostile)
{
	struct victim *v = &self->v;

	__atomic_store_n(&v->stop, true, __ATOMIC_RELAXED);
	pthread_join(v->thread, NULL);
	close(v->fd);
	close(self->fd);
	TH_LOG("others got %lu records, the last of them %lu us late", v->records,
	       v->worst / 1000);
	EXPECT_EQ(0, v->error);
	EXPECT_EQ(0, v->early);
	EXPECT_LT(0, v->records);
	EXPECT_GT(self->stall, v->worst);
}

static struct hwtw_op *rearm_ops(const uint64_t *id, unsigned int nr, uint64_t at)
{
	struct hwtw_op *op = calloc(nr, sizeof(*op));
	unsigned int i;

	for (i = 0; i < nr; i++) {
		op[i] = id_op(HWTW_OP_REARM, id[i]);
		op[i].timer.flags = HWTW_TIMER_ABS;
		/* Within the time since the machine was started. */
		op[i].timer.time_ns = at - i % 4096 * FINE_TICK;
	}
	return op;
}

/* Guards against what is due already keeping the wheel, and the CPU, busy. */
TEST_F_TIMEOUT(hostile, past_in_a_loop, LONG_TIMEOUT)
{
	enum { NR = HWTW_BATCH_MAX };
	uint64_t *id = calloc(NR, sizeof(*id));
	struct hwtw_op *op;
	int round, i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, FINE_TICK, 0));
	/* One, as often as one likes. */
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, id));
	for (i = 0; i < 50000; i++) {
		ASSERT_EQ(HWTW_EXPIRED, rearm_at(self->fd, id[0], 50000 - i));
	}
	ASSERT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id[0]));
	/* As many as a call takes, the later ones always earlier: the tree. */
	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, id));
	op = rearm_ops(id, NR, now_ns());
	for (round = 0; round < 4; round++) {
		ASSERT_EQ(0, hwtw_submit(self->fd, op, NR, NULL));
		for (i = 0; i < NR; i++) {
			ASSERT_EQ(0, op[i].result);
		}
	}
	EXPECT_EQ(NR, cancel_many(self->fd, id, NR));
	free(id);
	free(op);
}

/* Guards against a reader kept busy for ever by what expires as it reads. */
TEST_F_TIMEOUT(hostile, shortest_periods, LONG_TIMEOUT)
{
	enum { NR = 2000 };
	struct hwtw_timer t = { .interval_ns = FINE_TICK };
	struct hwtw_event *ev = calloc(2 * NR, sizeof(*ev));
	uint64_t end;
	int i, n;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, FINE_TICK, 0));
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	}
	/* Nobody reads. */
	sleep_ns(300 * NSEC_PER_MSEC);
	/* Somebody who does nothing else: each read has an end. */
	for (end = now_ns() + 200 * NSEC_PER_MSEC; now_ns() < end;) {
		n = take(self->fd, ev, 2 * NR);
		ASSERT_TRUE(n > 0 || n == -EAGAIN);
	}
	free(ev);
}

/* Guards against all deadlines on one boundary of all levels at once (B-57, D-30). */
TEST_F_TIMEOUT(hostile, one_boundary, LONG_TIMEOUT)
{
	enum { NR = 300000 };
	uint64_t at, span = TICK << 12;
	struct hwtw_event *ev = calloc(4096, sizeof(*ev));
	int have, n;

	/* The next tick with which a bucket of level 2 begins, seen from afar. */
	at = (now_ns() / span + 2) * span;
	ASSERT_EQ(0, arm_many(self->fd, NR, at, HWTW_TIMER_ABS, 0, NULL));
	ASSERT_GT(at, now_ns());
	/* Nobody reads for a while. */
	sleep_ns(at - now_ns() + 2 * NSEC_PER_SEC);
	for (have = 0; have < NR; have += n) {
		n = take(self->fd, ev, 4096);
		ASSERT_LT(0, n);
	}
	EXPECT_EQ(NR, have);
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 1));
	free(ev);
}

/* Guards against a close(), or a cancel of all, that keeps the CPU. */
TEST_F_TIMEOUT(hostile, million_goes, LONG_TIMEOUT)
{
	enum { NR = 1000000 };
	uint64_t *id = calloc(NR, sizeof(*id));
	int fd = hwtw_open(O_NONBLOCK);

	/* With nothing but stale claims left at the end: the last one pays. */
	ASSERT_EQ(0, arm_many(fd, NR, HOUR_NS, 0, 0, id));
	EXPECT_EQ(NR, cancel_many(fd, id, NR));
	ASSERT_EQ(0, arm_many(fd, NR, HOUR_NS, 0, 0, NULL));
	close(fd);
	/* Expired and never read. */
	fd = hwtw_open(O_NONBLOCK);
	ASSERT_EQ(0, arm_many(fd, NR, 0, 0, 0, NULL));
	close(fd);
	free(id);
}

/* Guards against claims that pile up where nobody comes by. */
TEST_F_TIMEOUT(hostile, stale_claims, LONG_TIMEOUT)
{
	enum { NR = 50000 };
	uint64_t *id = calloc(NR, sizeof(*id)), far = now_ns() + 1000 * HOUR_NS;
	struct hwtw_op *op;
	int round, i;

	ASSERT_EQ(0, arm_many(self->fd, NR, 2000 * HOUR_NS, 0, 0, id));
	op = rearm_ops(id, NR, far);
	for (round = 0; round < 8; round++) {
		/* Earlier each time: a new claim, and the old one is stale. */
		for (i = 0; i < NR; i++)
			op[i].timer.time_ns -= HOUR_NS;
		ASSERT_EQ(0, hwtw_submit(self->fd, op, NR, NULL));
	}
	EXPECT_EQ(NR, cancel_many(self->fd, id, NR));
	free(id);
	free(op);
}

/*
 * Instances that have some timers each, all in one tick, and how long one of them
 * may keep the CPU when they are many. Linux runs all hrtimers that are due one after the other, as it does those of
 * timerfds, and each instance has one: that their number is limited has to be
 * enough.
 */
static void all_due(struct __test_metadata *_metadata, FIXTURE_DATA(hostile) *self,
		    unsigned int nr, unsigned int each, uint64_t stall)
{
	struct rlimit limit = { nr + 100, nr + 100 };
	struct hwtw_event *ev = calloc(each + 1, sizeof(*ev));
	unsigned int i, wrong = 0;
	int *fd = calloc(nr, sizeof(*fd));
	uint64_t at;

	self->stall += nr * stall;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 0; i < nr; i++) {
		fd[i] = hwtw_open(O_NONBLOCK);
		ASSERT_LE(0, fd[i]);
	}
	at = (now_ns() / TICK + 5000) * TICK;
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, arm_many(fd[i], each, at, HWTW_TIMER_ABS, 0, NULL));
	}
	ASSERT_GT(at, now_ns());
	sleep_ns(at - now_ns() + NSEC_PER_SEC);
	for (i = 0; i < nr; i++)
		wrong += take(fd[i], ev, each + 1) != (int)each;
	EXPECT_EQ(0, wrong);
	for (i = 0; i < nr; i++)
		close(fd[i]);
	free(fd);
	free(ev);
}

/* Guards against instances that together do what one must not (B-54). */
TEST_F_TIMEOUT(hostile, ten_thousand_instances, LONG_TIMEOUT)
{
	all_due(_metadata, self, 10000, 1, 2 * NSEC_PER_USEC);
}

/* The same where each of them has all that it may do in one go. */
TEST_F_TIMEOUT(hostile, thousand_full_instances, LONG_TIMEOUT)
{
	all_due(_metadata, self, 1000, 1024, 4 * NSEC_PER_USEC);
}

/* --- Memory that is not there, or goes --- */

struct submitter {
	pthread_t thread;
	int fd, uffd, ret;
	char *page;		/* two of them, the second one is missing */
	struct hwtw_op *op;
	uint32_t nr, done;
};

static void *submitter_main(void *arg)
{
	struct submitter *s = arg;

	s->ret = hwtw_submit(s->fd, s->op, s->nr, &s->done);
	return NULL;
}

/* Returns once the call waits for the second page, or -errno. */
static int submitter_start(struct submitter *s, int fd, unsigned int nr)
{
	struct pollfd p = { .events = POLLIN };
	unsigned int i;

	*s = (struct submitter) { .fd = fd, .nr = nr, .page = map_pages(2) };
	/* The first one ends with an operation. */
	s->op = (void *)(s->page + 4096 % sizeof(*s->op));
	for (i = 0; i < 4096 / sizeof(*s->op); i++)
		s->op[i] = arm_op(HOUR_NS, 0, i);
	s->uffd = fault_open(s->page + 4096, UFFDIO_REGISTER_MODE_MISSING);
	if (s->uffd < 0)
		return s->uffd;
	pthread_create(&s->thread, NULL, submitter_main, s);
	p.fd = s->uffd;
	return poll(&p, 1, 20000) == 1 ? 0 : -ETIMEDOUT;
}

static void submitter_finish(struct submitter *s, bool success)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)s->page + 4096, .len = 4096 },
	};

	if (success)
		ioctl(s->uffd, UFFDIO_ZEROPAGE, &zero);
	else
		munmap(s->page + 4096, 4096);
	close(s->uffd);
	pthread_join(s->thread, NULL);
	munmap(s->page, 8192);
}

/* Timers that the instance has, by the room that is left of @limit. */
static int live_timers(int fd, int limit)
{
	uint64_t id[1000];
	int nr;

	for (nr = 0; nr < limit && nr < 1000; nr++)
		if (arm_in(fd, HOUR_NS, 0, &id[nr]))
			break;
	return cancel_many(fd, id, nr) == nr ? limit - nr : -EIO;
}

/* Guards against a lock, or a count, held while a page is waited for. */
TEST_F_TIMEOUT(hostile, submit_waits_for_page, LONG_TIMEOUT)
{
	enum { FIRST = 4096 / sizeof(struct hwtw_op), LIMIT = 500 };
	static const unsigned int behind[] = { 1, 3, 40 };
	struct submitter s;
	struct hwtw_event ev;
	uint64_t id;
	unsigned int i;
	int ok, ret;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, LIMIT));
	for (i = 0; i < 2 * ARRAY_SIZE(behind); i++) {
		ok = i & 1;
		ret = submitter_start(&s, self->fd, FIRST + behind[i / 2]);
		if (ret == -ENOSYS || ret == -EPERM)
			SKIP(return, "no userfaultfd");
		ASSERT_EQ(0, ret);
		/* All goes on meanwhile. */
		ASSERT_EQ(0, arm_in(self->fd, 0, 7, &id));
		ASSERT_EQ(1, take(self->fd, &ev, 1));
		ASSERT_EQ(7, ev.user_data);
		ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
		ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
		submitter_finish(&s, ok);
		/* Zeros are no operation. */
		EXPECT_EQ(ok ? 0 : -EFAULT, s.ret);
		EXPECT_EQ(ok ? s.nr : FIRST, s.done);
		EXPECT_EQ(FIRST, live_timers(self->fd, LIMIT));
		close(self->fd);
		self->fd = hwtw_open(O_NONBLOCK);
		ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, LIMIT));
	}
}

struct flipper {
	pthread_t thread;
	char *page;
	bool stop;
};

static void *flipper_main(void *arg)
{
	static const int prot[] = { PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE };
	struct flipper *f = arg;
	unsigned int i;

	for (i = 0; !__atomic_load_n(&f->stop, __ATOMIC_RELAXED); i++) {
		mprotect(f->page, 4096, prot[i % 3]);
		if (i % 7 == 0)
			sched_yield();
	}
	mprotect(f->page, 4096, PROT_READ | PROT_WRITE);
	return NULL;
}

/* Guards against timers whose ids were lost with the page that they were for. */
TEST_F_TIMEOUT(hostile, submit_page_goes, LONG_TIMEOUT)
{
	enum { NR = 160, ROUNDS = 3000, LIMIT = 1000 };
	struct flipper f = { .page = map_pages(3) };
	struct hwtw_op *op = (void *)f.page, *good = calloc(NR, sizeof(*good));
	unsigned int i, whole = 0, part = 0;
	uint64_t told;
	uint32_t done;
	int round, ret;

	for (i = 0; i < NR; i++)
		good[i] = arm_op(HOUR_NS, 0, i);
	memcpy(op, good, NR * sizeof(*op));
	f.page += 4096;
	pthread_create(&f.thread, NULL, flipper_main, &f);
	for (round = 0; round < ROUNDS; round++) {
		close(self->fd);
		self->fd = hwtw_open(O_NONBLOCK);
		ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, LIMIT));
		ret = hwtw_submit(self->fd, op, NR, &done);
		ASSERT_TRUE(ret == 0 || ret == -EFAULT);
		ASSERT_EQ(ret == 0, done == NR);
		ASSERT_GE(NR, done);
		told = done;
		whole += !ret;
		part += ret && done;
		ASSERT_EQ(told, (uint64_t)live_timers(self->fd, LIMIT));
	}
	__atomic_store_n(&f.stop, true, __ATOMIC_RELAXED);
	pthread_join(f.thread, NULL);
	TH_LOG("%u whole, %u in part", whole, part);
	EXPECT_LT(0, whole);
	EXPECT_LT(0, part);
	free(good);
}

/* --- What is told --- */

/* An address of the kernel's, at any byte: x86-64's upper half, but for errors. */
static bool has_address(const void *p, size_t len)
{
	const char *c = p;
	uint64_t word;
	size_t i;

	for (i = 0; i + 8 <= len; i++) {
		memcpy(&word, c + i, 8);
		if (word >= 0xffff800000000000ULL && word < -4096ULL)
			return true;
	}
	return false;
}

/* Guards against stacks and addresses of the kernel in what is copied out. */
TEST_F(hostile, tells_no_secrets)
{
	enum { NR = 64 };
	struct hwtw_event ev[NR + 1];
	struct hwtw_timer t[NR + 1];
	struct hwtw_op op[NR];
	struct hwtw_stats stats;
	struct hwtw_info info;
	uint64_t id[NR];
	char text[4096] = "", path[64];
	int i, fd, ret;

	ASSERT_EQ(0, arm_many(self->fd, NR, 0, 0, 0, id));
	memset(&info, POISON, sizeof(info));
	ASSERT_EQ(0, hwtw_info(self->fd, &info));
	EXPECT_FALSE(has_address(&info, sizeof(info)));
	for (i = 0; i < NR; i++) {
		memset(&t[0], POISON, sizeof(t[0]));
		ASSERT_EQ(HWTW_EXPIRED, hwtw_query(self->fd, id[i], &t[0]));
		ASSERT_FALSE(has_address(&t[0], sizeof(t[0])));
		op[i] = id_op(i % 2 ? HWTW_OP_QUERY : HWTW_OP_REARM, id[i]);
	}
	ASSERT_EQ(0, hwtw_submit(self->fd, op, NR, NULL));
	EXPECT_FALSE(has_address(op, sizeof(op)));
	/* Only whole records are written, and each of their bytes. */
	memset(ev, POISON, sizeof(ev));
	ASSERT_EQ(NR, read(self->fd, ev, sizeof(ev)) / (int)sizeof(*ev));
	EXPECT_FALSE(has_address(ev, NR * sizeof(*ev)));
	EXPECT_TRUE(all_bytes(&ev[NR], POISON, sizeof(ev[NR])));
	for (i = 0; i < NR; i++) {
		EXPECT_GT(NR, ev[i].user_data);
		EXPECT_EQ(0, ev[i].flags);
		EXPECT_EQ(0, ev[i].overruns);
	}
	if (hwtw_features(self->fd) & HWTW_FEATURE_STATS) {
		memset(&stats, POISON, sizeof(stats));
		ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_STATS, &stats));
		EXPECT_FALSE(has_address(&stats, sizeof(stats)));
	}
	if (hwtw_features(self->fd) & HWTW_FEATURE_LIST) {
		struct hwtw_list list = { .timers = (uintptr_t)t, .nr = NR / 2 };

		ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, NULL));
		do {
			memset(t, POISON, sizeof(t));
			ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
			ASSERT_GE(NR / 2, list.nr);
			EXPECT_FALSE(has_address(t, list.nr * sizeof(*t)));
			EXPECT_FALSE(has_address(&list.cursor, 8));
			EXPECT_TRUE(all_bytes(&t[list.nr], POISON,
					      (NR + 1 - list.nr) * sizeof(*t)));
		} while (list.cursor);
	}
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ret = read(fd, text, sizeof(text) - 1);
	EXPECT_LT(0, ret);
	/* No 16 hexadecimal digits. */
	EXPECT_EQ(NULL, strstr(text, "ffff8"));
	close(fd);
}

TEST_HARNESS_MAIN
