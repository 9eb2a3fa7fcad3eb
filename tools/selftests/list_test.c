// SPDX-License-Identifier: GPL-2.0
/*
 * What /dev/hwtw tells of all its timers: LIST, with and without cancelling,
 * STATS and fdinfo.
 */
#include "hwtw_test.h"

#include <stddef.h>
#include <sys/time.h>

#define TICK	HWTW_TICK_DEFAULT_NS

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

/* One call: returns how many timers were reported, or -errno. */
static int list_some(int fd, struct hwtw_timer *timers, uint32_t nr,
		     uint32_t flags, uint64_t *cursor)
{
	struct hwtw_list list = {
		.timers = (uintptr_t)timers,
		.nr = nr,
		.flags = flags,
		.cursor = *cursor,
	};
	int ret = hwtw_call(fd, HWTW_IOC_LIST, &list);

	*cursor = list.cursor;
	return ret ? ret : (int)list.nr;
}

/*
 * A whole walk in pieces of @piece, up to @max timers. Returns how many, or
 * -errno; -ELOOP if it doesn't end as it should.
 */
static int list_all(int fd, struct hwtw_timer *timers, uint32_t max,
		    uint32_t piece, uint32_t flags)
{
	uint64_t cursor = 0;
	uint32_t have = 0;
	int nr;

	do {
		if (piece > max - have)
			return -ELOOP;
		nr = list_some(fd, timers + have, piece, flags, &cursor);
		if (nr < 0)
			return nr;
		if (!nr != !cursor)
			return -ELOOP;
		have += nr;
		/* Less than there is room for: it is through. */
		if (nr && nr < (int)piece) {
			if (list_some(fd, timers + have, piece, flags, &cursor))
				return -ELOOP;
			return cursor ? -ELOOP : (int)have;
		}
	} while (cursor);
	return have;
}

static int by_data(const void *a, const void *b)
{
	const struct hwtw_timer *x = a, *y = b;

	return (x->user_data > y->user_data) - (x->user_data < y->user_data);
}

/* --- LIST --- */

/* Guards against a walk of nothing that does not end. */
TEST_F(dev, list_empty)
{
	struct hwtw_timer t;
	uint64_t cursor = 0, id;

	memset(&t, POISON, sizeof(t));
	EXPECT_EQ(0, list_some(self->fd, &t, 1, 0, &cursor));
	EXPECT_EQ(0, cursor);
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
	EXPECT_EQ(0, list_some(self->fd, &t, 1, HWTW_LIST_CANCEL, &cursor));
	EXPECT_EQ(0, cursor);
	EXPECT_TRUE(all_bytes(&t, POISON, sizeof(t)));
}

/* Guards against bad arguments that are ignored. */
TEST_F(dev, list_bad)
{
	struct hwtw_timer t[2];
	struct hwtw_list list;
	uint32_t bit;
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	memset(t, POISON, sizeof(t));
	for (bit = 1; bit < 32; bit++) {
		list = (struct hwtw_list) {
			.timers = (uintptr_t)t, .nr = 2,
			.flags = 1U << bit | HWTW_LIST_CANCEL,
		};
		EXPECT_EQ(-EINVAL, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
	}
	list = (struct hwtw_list) {
		.timers = (uintptr_t)t, .flags = HWTW_LIST_CANCEL,
	};
	EXPECT_EQ(-EINVAL, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
	for (bit = 37; bit < 64; bit++) {
		list = (struct hwtw_list) {
			.timers = (uintptr_t)t, .nr = 2,
			.flags = HWTW_LIST_CANCEL, .cursor = 1ULL << bit,
		};
		EXPECT_EQ(-EINVAL, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
		list.cursor = UINT64_MAX;
		EXPECT_EQ(-EINVAL, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
	}
	EXPECT_TRUE(all_bytes(t, POISON, sizeof(t)));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id, NULL));
}

/* Guards against cursors of other walks, or made up, that do harm. */
TEST_F(dev, list_any_cursor)
{
	struct hwtw_timer t[4];
	struct rnd r = { 7 };
	uint64_t cursor;
	int i, nr;

	ASSERT_EQ(0, arm_many(self->fd, 1000, HOUR_NS, 0, 0, NULL));
	for (i = 0; i < 20000; i++) {
		cursor = rnd_next(&r) >> rnd_below(&r, 64);
		nr = list_some(self->fd, t, 4, 0, &cursor);
		EXPECT_TRUE(nr == -EINVAL || (nr >= 0 && nr <= 4));
	}
}

/*
 * Guards against timers that are forgotten or told of twice, and wrong words: those
 * that are due already, and those on any level and CPU (D-28).
 */
TEST_F(dev, list_all)
{
	enum { NR = 3000 };
	static const uint32_t pieces[] = { 1, 7, 63, 64, 65, 1000, NR, NR + 1 };
	struct hwtw_timer *t = calloc(2 * NR + 2, sizeof(*t)), q;
	size_t k;
	int i;

	for (i = 0; i < NR; i++) {
		struct hwtw_timer arm = {
			.user_data = i,
			/* From an hour to centuries: all levels above. */
			.time_ns = i % 3 ? (HOUR_NS + i) << i % 21 : 0,
			.interval_ns = i % 5 ? 0 : HOUR_NS + i,
		};

		ASSERT_EQ(0, pin_to(i / 500));
		ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &arm));
	}
	for (k = 0; k < ARRAY_SIZE(pieces); k++) {
		memset(t, POISON, NR * sizeof(*t));
		ASSERT_EQ(NR, list_all(self->fd, t, 2 * NR + 2, pieces[k], 0));
		qsort(t, NR, sizeof(*t), by_data);
		for (i = 0; i < NR; i++) {
			ASSERT_EQ(i, t[i].user_data);
			ASSERT_EQ(i % 3 ? HWTW_PENDING : HWTW_EXPIRED,
				  hwtw_query(self->fd, t[i].id, &q));
			ASSERT_EQ(0, memcmp(&q, &t[i], sizeof(q)));
			ASSERT_EQ(HWTW_TIMER_ABS, q.flags);
		}
	}
	/* It has not changed anything. */
	EXPECT_EQ(NR / 3, take_all(self->fd, (struct hwtw_event *)t, NR / 3));
	free(t);
}

/* A thread that arms, re-arms and cancels timers of its own. */
struct churn {
	pthread_t thread;
	int fd, cpu;
	bool stop;
	uint64_t ops;
};

static void *churn(void *arg)
{
	struct churn *c = arg;
	uint64_t id[64] = {};
	struct rnd r = { 1000 + c->cpu };
	struct hwtw_event ev[8];

	pin_to(c->cpu);
	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		unsigned int i = rnd_below(&r, 64);
		uint64_t delay = rnd_below(&r, 4) ? HOUR_NS : rnd_below(&r, 20) * TICK;

		if (!id[i]) {
			arm_in(c->fd, delay, UINT64_MAX, &id[i]);
		} else if (rnd_below(&r, 2)) {
			rearm_in(c->fd, id[i], delay);
		} else {
			hwtw_cancel(c->fd, id[i]);
			id[i] = 0;
		}
		if (!rnd_below(&r, 16))
			take(c->fd, ev, 8);
		__atomic_store_n(&c->ops, c->ops + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void churn_start(struct churn *c, int nr, int fd)
{
	int i;

	for (i = 0; i < nr; i++) {
		c[i] = (struct churn) { .fd = fd, .cpu = i };
		pthread_create(&c[i].thread, NULL, churn, &c[i]);
	}
	for (i = 0; i < nr; i++) {
		while (__atomic_load_n(&c[i].ops, __ATOMIC_RELAXED) < 100)
			sched_yield();
	}
}

static void churn_stop(struct churn *c, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		__atomic_store_n(&c[i].stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < nr; i++)
		pthread_join(c[i].thread, NULL);
}

/* Guards against a walk that others confuse. */
TEST_F(dev, list_while_others_arm)
{
	enum { NR = 2000 };
	struct hwtw_timer *t = calloc(20 * NR, sizeof(*t));
	struct churn c[2];
	int round, i, nr;

	ASSERT_EQ(0, arm_many(self->fd, NR / 2, HOUR_NS, 0, 0, NULL));
	churn_start(c, 2, self->fd);
	ASSERT_EQ(0, arm_many(self->fd, NR / 2, HOUR_NS, 0, NR / 2, NULL));
	for (round = 0; round < 30; round++) {
		int found = 0;
		char seen[NR] = "";

		nr = list_all(self->fd, t, 20 * NR, 100, 0);
		ASSERT_LE(NR, nr);
		for (i = 0; i < nr; i++) {
			if (t[i].user_data == UINT64_MAX)
				continue;
			ASSERT_GT(NR, t[i].user_data);
			ASSERT_EQ(0, seen[t[i].user_data]++);
			found++;
		}
		EXPECT_EQ(NR, found);
	}
	churn_stop(c, 2);
	free(t);
}

/* Guards against a shutdown that leaves timers, or their room, behind. */
TEST_F(dev, list_cancel)
{
	enum { NR = 5000 };
	struct hwtw_timer *t = calloc(NR + 100, sizeof(*t));
	struct hwtw_stats st;
	int i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, NR));
	ASSERT_EQ(0, arm_many(self->fd, NR - 100, HOUR_NS, 0, 0, NULL));
	ASSERT_EQ(0, arm_many(self->fd, 100, 0, 0, NR - 100, NULL));
	ASSERT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
	ASSERT_EQ(NR, list_all(self->fd, t, NR + 100, 100, HWTW_LIST_CANCEL));
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_EQ(-EAGAIN, take(self->fd, (struct hwtw_event *)t, 1));
	qsort(t, NR, sizeof(*t), by_data);
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(i, t[i].user_data);
		ASSERT_EQ(i < NR - 100 ? HWTW_PENDING : HWTW_EXPIRED, t[i].state);
		ASSERT_EQ(-ENOENT, hwtw_query(self->fd, t[i].id, NULL));
	}
	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_STATS, &st));
	EXPECT_EQ(NR, st.cancelled);
	EXPECT_EQ(NR - 100, st.cancelled_pending);
	EXPECT_EQ(0, st.pending + st.unread);
	EXPECT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, NULL));
	free(t);
}

/* Guards against a timer that is cancelled and can't be told of. */
TEST_F(dev, list_cancel_fault)
{
	enum { NR = 1000, ROOM = 4096 / sizeof(struct hwtw_timer) };
	struct hwtw_timer *room = (void *)(map_cliff(1) - ROOM * sizeof(*room));
	struct hwtw_timer *t = calloc(NR + 1, sizeof(*t));
	struct hwtw_list list = {
		.timers = (uintptr_t)room,
		.nr = NR,
		.flags = HWTW_LIST_CANCEL,
	};
	char seen[NR] = "";
	uint64_t cursor;
	int i, left;

	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, NULL));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
	EXPECT_GE(ROOM, list.nr);
	EXPECT_LT(0, list.nr);
	for (i = 0; i < (int)list.nr; i++) {
		ASSERT_GT(NR, room[i].user_data);
		ASSERT_EQ(0, seen[room[i].user_data]++);
		EXPECT_EQ(-ENOENT, hwtw_query(self->fd, room[i].id, NULL));
	}
	/* The walk goes on where it was. */
	cursor = list.cursor;
	left = list_some(self->fd, t, NR + 1, 0, &cursor);
	EXPECT_EQ(NR, left + list.nr);
	for (i = 0; i < left; i++) {
		ASSERT_EQ(0, seen[t[i].user_data]++);
		EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, t[i].id, NULL));
	}
	/* Nowhere at all. */
	list = (struct hwtw_list) {
		.timers = (uintptr_t)(room + ROOM), .nr = NR,
		.flags = HWTW_LIST_CANCEL,
	};
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
	EXPECT_EQ(0, list.nr);
	EXPECT_EQ(left, list_all(self->fd, t, NR + 1, NR + 1, 0));
	free(t);
}

/* Guards against a call that tries for ever to report nothing to nowhere. */
TEST_F(dev, list_cancel_nothing)
{
	struct hwtw_list list = {
		.timers = UINT64_MAX - 4095,
		.nr = 1,
		.flags = HWTW_LIST_CANCEL,
	};
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
	ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
	list.nr = 1;
	list.cursor = 0;
	EXPECT_EQ(0, hwtw_call(self->fd, HWTW_IOC_LIST, &list));
	EXPECT_EQ(0, list.nr);
	EXPECT_EQ(0, list.cursor);
}

/* Guards against timers that are cancelled by a call that can't tell how many. */
TEST_F(dev, list_readonly)
{
	struct hwtw_list *list = (void *)map_pages(1);
	struct hwtw_timer t[2];
	uint64_t id;

	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	*list = (struct hwtw_list) {
		.timers	= (uintptr_t)t,
		.nr	= 2,
		.flags	= HWTW_LIST_CANCEL,
	};
	memset(t, POISON, sizeof(t));
	ASSERT_EQ(0, mprotect(list, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, hwtw_call(self->fd, HWTW_IOC_LIST, list));
	EXPECT_TRUE(all_bytes(t, POISON, sizeof(t)));
	EXPECT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id));
	munmap(list, 4096);
}

static void step_clock(int64_t seconds)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	tv.tv_sec += seconds;
	settimeofday(&tv, NULL);
}

/*
 * Guards against a wheel that is used while it follows a clock that was set back:
 * so many timers that it does so in pieces, whoever comes first.
 */
TEST_F(dev, clock_back_in_pieces)
{
	enum { NR = 20000 };
	struct hwtw_timer *t = calloc(2 * NR, sizeof(*t));
	uint64_t *id = calloc(NR, sizeof(*id)), start;
	struct hwtw_event ev;
	int round, i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_REALTIME, 1 << 20, 0));
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, arm_in(self->fd, HOUR_NS + ((uint64_t)i << 24), i, &id[i]));
	}
	for (round = 0; round < 4; round++) {
		start = clock_ns(CLOCK_REALTIME);
		step_clock(-1000);
		switch (round) {
		case 0:
			EXPECT_EQ(NR, list_all(self->fd, t, 2 * NR, NR, 0));
			break;
		case 1:
			EXPECT_EQ(HWTW_PENDING, hwtw_query(self->fd, id[1], NULL));
			break;
		case 2:
			EXPECT_EQ(NR / 2, cancel_many(self->fd, id, NR / 2));
			break;
		default:
			EXPECT_EQ(HWTW_PENDING, rearm_in(self->fd, id[NR - 1], 0));
			EXPECT_EQ(1, take(self->fd, &ev, 1));
			EXPECT_GT(start, ev.expires_ns);
		}
		EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
	}
	step_clock(4 * 1000);
	EXPECT_EQ(NR / 2 - 1, cancel_many(self->fd, id + NR / 2, NR / 2 - 1));
	EXPECT_EQ(0, list_all(self->fd, t, 2 * NR, NR, 0));
	free(id);
	free(t);
}

/* Guards against memory that is not there yet, as a fresh mapping is. */
TEST_F(dev, list_cancel_fresh_memory)
{
	enum { NR = 20000 };
	struct hwtw_timer *t = mmap(NULL, 2 * NR * sizeof(*t), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, t);
	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, NULL));
	EXPECT_EQ(NR, list_all(self->fd, t, 2 * NR, NR, HWTW_LIST_CANCEL));
	EXPECT_EQ(0, list_all(self->fd, t, 2 * NR, NR, 0));
}

struct drain {
	pthread_t thread;
	int fd;
	bool stop;
	uint8_t *seen;
	uint64_t records;
};

static void *drain(void *arg)
{
	struct drain *d = arg;
	struct hwtw_event ev[16];
	int i, nr;

	for (;;) {
		bool last = __atomic_load_n(&d->stop, __ATOMIC_ACQUIRE);

		nr = take(d->fd, ev, 16);
		for (i = 0; i < nr; i++)
			__atomic_fetch_add(&d->seen[ev[i].user_data], 1, __ATOMIC_RELAXED);
		d->records += nr > 0 ? nr : 0;
		if (nr < 0 && last)
			return NULL;
	}
}

/* Guards against an expiry that is handed back and read, or neither. */
TEST_F(dev, list_cancel_or_read)
{
	enum { NR = 20000 };
	struct hwtw_timer *t = calloc(2 * NR, sizeof(*t));
	uint8_t *seen = calloc(NR, 1);
	struct drain d = { .fd = self->fd, .seen = seen };
	int round, i, listed = 0;

	for (round = 0; round < 5; round++) {
		memset(seen, 0, NR);
		d.stop = false;
		for (i = 0; i < NR / 1000; i++)
			ASSERT_EQ(0, arm_many(self->fd, 1000, (i % 8) * TICK, 0,
					      i * 1000, NULL));
		pthread_create(&d.thread, NULL, drain, &d);
		listed = list_all(self->fd, t, 2 * NR, 50, HWTW_LIST_CANCEL);
		ASSERT_LE(0, listed);
		for (i = 0; i < listed; i++)
			__atomic_fetch_add(&seen[t[i].user_data], 1, __ATOMIC_RELAXED);
		/* It left none. */
		ASSERT_EQ(0, list_all(self->fd, t, 2 * NR, 50, 0));
		__atomic_store_n(&d.stop, true, __ATOMIC_RELEASE);
		pthread_join(d.thread, NULL);
		for (i = 0; i < NR; i++)
			ASSERT_EQ(1, seen[i]);
	}
	free(t);
	free(seen);
}

/* Guards against a checkpoint that can't be armed as it stands. */
TEST_F(dev, list_checkpoint)
{
	enum { NR = 500 };
	struct hwtw_timer *t = calloc(2 * NR, sizeof(*t)), q;
	struct hwtw_op *ops = calloc(NR, sizeof(*ops));
	int i, other = hwtw_open(O_NONBLOCK);

	ASSERT_LE(0, other);
	for (i = 0; i < NR; i++) {
		struct hwtw_timer arm = {
			.user_data = i,
			.time_ns = i % 10 ? HOUR_NS + i : 0,
			.interval_ns = i % 2 ? 2 * HOUR_NS : 0,
		};

		ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &arm));
	}
	ASSERT_EQ(NR, list_all(self->fd, t, 2 * NR, 2 * NR, HWTW_LIST_CANCEL));
	for (i = 0; i < NR; i++)
		ops[i] = (struct hwtw_op) { .opcode = HWTW_OP_ARM, .timer = t[i] };
	ASSERT_EQ(0, hwtw_submit(other, ops, NR, NULL));
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, ops[i].result);
		ASSERT_EQ(t[i].state, hwtw_query(other, ops[i].timer.id, &q));
		ASSERT_EQ(t[i].user_data, q.user_data);
		ASSERT_EQ(t[i].time_ns, q.time_ns);
		ASSERT_EQ(t[i].interval_ns, q.interval_ns);
	}
	close(other);
	free(ops);
	free(t);
}

/* --- STATS --- */

static struct hwtw_stats stats(int fd)
{
	struct hwtw_stats st;

	memset(&st, POISON, sizeof(st));
	if (hwtw_call(fd, HWTW_IOC_STATS, &st))
		memset(&st, POISON, sizeof(st));
	return st;
}

static bool adds_up(const struct hwtw_stats *st)
{
	return st->armed == st->cancelled + st->completed + st->pending + st->unread &&
	       st->expired == st->withdrawn + st->delivered + st->unread;
}

/* Guards against counters that begin with something. */
TEST_F(dev, stats_fresh)
{
	struct hwtw_stats st = stats(self->fd);

	EXPECT_LT(0, st.memory);
	EXPECT_GT(16384, st.memory);
	EXPECT_TRUE(all_bytes(&st, 0, offsetof(struct hwtw_stats, memory)));
}

/* Guards against counters that miss something, or count it twice. */
TEST_F(dev, stats_count)
{
	uint64_t id[10], due, periodic;
	struct hwtw_timer t = {
		.time_ns = clock_ns(CLOCK_REALTIME) - 10 * HOUR_NS - HOUR_NS / 2,
		.interval_ns = HOUR_NS,
		.flags = HWTW_TIMER_ABS,
	};
	struct hwtw_event ev[2];
	struct hwtw_stats st;
	int i;

	/* Since boot there were no ten hours. */
	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_REALTIME, 0, 0));
	ASSERT_EQ(0, pin_to(0));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, i, &id[i]));
	st = stats(self->fd);
	EXPECT_EQ(10, st.armed);
	EXPECT_EQ(10, st.pending);
	EXPECT_EQ(0, st.expired + st.unread + st.cancelled + st.rearmed);

	ASSERT_EQ(HWTW_PENDING, rearm_in(self->fd, id[0], 2 * HOUR_NS));
	ASSERT_EQ(HWTW_PENDING, rearm_in(self->fd, id[1], HOUR_NS / 2));
	ASSERT_EQ(HWTW_PENDING, rearm_in(self->fd, id[2], 0));	/* unread now */
	ASSERT_EQ(HWTW_EXPIRED, rearm_in(self->fd, id[2], HOUR_NS));
	ASSERT_EQ(-ENOENT, rearm_in(self->fd, 0, HOUR_NS));
	st = stats(self->fd);
	EXPECT_EQ(4, st.rearmed);
	EXPECT_EQ(1, st.expired);
	EXPECT_EQ(1, st.withdrawn);
	EXPECT_EQ(10, st.pending);
	EXPECT_EQ(0, st.unread);

	ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id[0]));
	ASSERT_EQ(-ENOENT, hwtw_cancel(self->fd, id[0]));
	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &due));
	ASSERT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, due));
	st = stats(self->fd);
	EXPECT_EQ(11, st.armed);
	EXPECT_EQ(2, st.cancelled);
	EXPECT_EQ(1, st.cancelled_pending);
	EXPECT_EQ(2, st.expired);
	EXPECT_EQ(2, st.withdrawn);
	EXPECT_EQ(9, st.pending);

	ASSERT_EQ(0, arm_in(self->fd, 0, 0, &due));
	EXPECT_EQ(1, stats(self->fd).unread);
	ASSERT_EQ(1, take(self->fd, ev, 2));
	st = stats(self->fd);
	EXPECT_EQ(3, st.expired);
	EXPECT_EQ(1, st.delivered);
	EXPECT_EQ(1, st.completed);
	EXPECT_EQ(0, st.overruns);
	EXPECT_EQ(0, st.unread);

	ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
	periodic = t.id;
	ASSERT_EQ(1, take(self->fd, ev, 2));
	EXPECT_EQ(10, ev[0].overruns);
	st = stats(self->fd);
	EXPECT_EQ(13, st.armed);
	EXPECT_EQ(4, st.expired);
	EXPECT_EQ(2, st.delivered);
	EXPECT_EQ(1, st.completed);
	EXPECT_EQ(10, st.overruns);
	EXPECT_EQ(10, st.pending);
	EXPECT_TRUE(adds_up(&st));
	ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, periodic));
	st = stats(self->fd);
	EXPECT_TRUE(adds_up(&st));
	EXPECT_EQ(9, st.pending);
}

/* Guards against records that are counted although they were not read. */
TEST_F(dev, stats_fault)
{
	struct hwtw_event ev[4], *cliff = (void *)map_cliff(1);
	struct hwtw_stats st;

	ASSERT_EQ(0, arm_many(self->fd, 4, 0, 0, 0, NULL));
	EXPECT_EQ(1, take(self->fd, cliff - 1, 4));
	st = stats(self->fd);
	EXPECT_EQ(1, st.delivered);
	EXPECT_EQ(3, st.unread);
	EXPECT_TRUE(adds_up(&st));
	EXPECT_EQ(3, take(self->fd, ev, 4));
	st = stats(self->fd);
	EXPECT_EQ(4, st.completed);
	EXPECT_TRUE(adds_up(&st));
}

/* Guards against an expiry by interrupt that nobody counts. */
TEST_F(dev, stats_runs)
{
	struct hwtw_event ev[16];
	struct hwtw_stats st;
	int i;

	for (i = 1; i <= 10; i++)
		ASSERT_EQ(0, arm_in(self->fd, i * 20 * TICK, i, NULL));
	ASSERT_EQ(10, take_all(self->fd, ev, 10));
	st = stats(self->fd);
	EXPECT_EQ(10, st.expired);
	EXPECT_LE(1, st.runs);
	EXPECT_LT(0, st.longest_run_ns);
	EXPECT_EQ(0, st.lag_ticks);
	/* From level 1 and back. */
	EXPECT_LE(1, st.cascaded);
}

/* Guards against sums of things that were not true together. */
TEST_F(dev, stats_under_load)
{
	struct churn c[2];
	struct hwtw_stats st;
	int i, bad = 0;

	churn_start(c, 2, self->fd);
	for (i = 0; i < 20000; i++) {
		st = stats(self->fd);
		bad += !adds_up(&st);
	}
	churn_stop(c, 2);
	EXPECT_EQ(0, bad);
	st = stats(self->fd);
	EXPECT_TRUE(adds_up(&st));
	EXPECT_LE(100, st.rearmed);
}

/* Guards against memory that is not counted, or does not come back. */
TEST_F(dev, stats_memory)
{
	enum { NR = 100000 };
	uint64_t *id = calloc(NR, sizeof(*id)), before, full;

	ASSERT_EQ(0, pin_to(0));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id[0]));
	ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, id[0]));
	before = stats(self->fd).memory;
	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, id));
	full = stats(self->fd).memory;
	/* 32 for the slot and 16 for the claim at least. */
	EXPECT_LE(NR * 48ULL, full - before);
	EXPECT_GE(NR * 64ULL, full - before);
	ASSERT_EQ(NR, cancel_many(self->fd, id, NR));
	EXPECT_GE(full / 20, stats(self->fd).memory - before);
	free(id);
}

/* A value of /proc/self/fdinfo/FD, or UINT64_MAX. */
static uint64_t fdinfo(int fd, const char *name)
{
	char path[64], key[64], line[256];
	uint64_t value = UINT64_MAX;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	snprintf(key, sizeof(key), "hwtw-%s:\t", name);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, strlen(key)))
			value = strtoull(line + strlen(key), NULL, 10);
	}
	if (f)
		fclose(f);
	return value;
}

/* Guards against fdinfo and STATS telling different tales. */
TEST_F(dev, stats_fdinfo)
{
	struct hwtw_event ev;
	struct hwtw_stats st;
	uint64_t id;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_BOOTTIME, 1 << 16, 5000));
	ASSERT_EQ(0, arm_many(self->fd, 100, HOUR_NS, 0, 0, NULL));
	ASSERT_EQ(0, arm_many(self->fd, 3, 0, 0, 0, NULL));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 0, &id));
	ASSERT_EQ(HWTW_PENDING, rearm_in(self->fd, id, 1));
	ASSERT_EQ(HWTW_EXPIRED, wait_expired(self->fd, id));
	ASSERT_EQ(HWTW_EXPIRED, hwtw_cancel(self->fd, id));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	st = stats(self->fd);
	EXPECT_EQ(CLOCK_BOOTTIME, fdinfo(self->fd, "clockid"));
	EXPECT_EQ(1 << 16, fdinfo(self->fd, "tick_ns"));
	EXPECT_EQ(5000, fdinfo(self->fd, "max_timers"));
#define SAME(name)	EXPECT_EQ(st.name, fdinfo(self->fd, #name))
	SAME(armed);
	SAME(rearmed);
	SAME(cancelled);
	SAME(cancelled_pending);
	SAME(withdrawn);
	SAME(expired);
	SAME(delivered);
	SAME(completed);
	SAME(overruns);
	SAME(pending);
	SAME(unread);
	SAME(cascaded);
	SAME(dropped);
	SAME(runs);
	SAME(longest_run_ns);
	SAME(lag_ticks);
	SAME(late_ticks);
	SAME(memory);
	EXPECT_EQ(104, st.armed);
	EXPECT_EQ(2, st.unread);
}

/* --- Tracepoints --- */

#define TRACING "/sys/kernel/tracing/"

/* Lines of the trace with an event and text behind it. */
static int traced(const char *event, const char *text)
{
	char line[512], *p;
	FILE *f = fopen(TRACING "trace", "r");
	int nr = 0;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		p = strstr(line, event);
		nr += p && strstr(p, text);
	}
	fclose(f);
	return nr;
}

/* Guards against a tracepoint that says nothing, or about another timer. */
TEST_F(dev, trace)
{
	uint64_t at, id, gone;
	struct hwtw_event ev[2];
	char text[200];

	put(TRACING "tracing_on", "0");
	put(TRACING "trace", "");
	ASSERT_EQ(0, put(TRACING "events/hwtw/enable", "1"));
	ASSERT_EQ(0, put(TRACING "tracing_on", "1"));
	at = now_ns() + 2000 * TICK;
	ASSERT_EQ(0, arm_at(self->fd, at + HOUR_NS, 4711, &id));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 4712, &gone));
	ASSERT_EQ(HWTW_PENDING, hwtw_cancel(self->fd, gone));
	ASSERT_EQ(HWTW_PENDING, rearm_at(self->fd, id, at));
	ASSERT_EQ(1, take_all(self->fd, ev, 1));
	ASSERT_EQ(0, put(TRACING "tracing_on", "0"));
	ASSERT_EQ(0, put(TRACING "events/hwtw/enable", "0"));

	snprintf(text, sizeof(text), "instance=%llu ",
		 (unsigned long long)fdinfo(self->fd, "instance"));
	EXPECT_EQ(2, traced("hwtw_arm: ", text));
	EXPECT_LE(1, traced("hwtw_run: ", text));
	EXPECT_LE(1, traced("hwtw_cascade: ", "level=1 "));
	snprintf(text, sizeof(text), "id=%#llx expires_ns=%llu interval_ns=0 state=pending",
		 (unsigned long long)id, (unsigned long long)at + HOUR_NS);
	EXPECT_EQ(1, traced("hwtw_arm: ", text));
	snprintf(text, sizeof(text), "id=%#llx expires_ns=%llu interval_ns=0 state=pending",
		 (unsigned long long)id, (unsigned long long)at);
	EXPECT_EQ(1, traced("hwtw_rearm: ", text));
	snprintf(text, sizeof(text), "id=%#llx state=pending", (unsigned long long)gone);
	EXPECT_EQ(1, traced("hwtw_cancel: ", text));
	snprintf(text, sizeof(text), "id=%#llx user_data=0x1267 expires_ns=%llu",
		 (unsigned long long)id, (unsigned long long)at);
	EXPECT_EQ(1, traced("hwtw_expire: ", text));
	EXPECT_EQ(1, traced("hwtw_deliver: ", text));
}

TEST_HARNESS_MAIN
