// SPDX-License-Identifier: GPL-2.0
/*
 * Many threads on one instance of /dev/hwtw, and random operations against a
 * count of one's own: every timer ends exactly once, in the way it was told.
 *
 * Threads keep what they see in arrays; only the main thread asserts.
 */
#include "hwtw_test.h"

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

/* --- Readers --- */

#define MAX_TIMERS	200000

/* What became of the timer with this user_data. */
struct fate {
	uint32_t reads;
	uint32_t cancels;
	uint64_t expires_ns;	/* of the last record */
	uint64_t id;
};

static struct fate fates[MAX_TIMERS];

/* A reader, until told to stop and there is nothing more. */
struct reader {
	pthread_t thread;
	int fd;
	unsigned int batch;
	bool *stop;
	uint64_t records;
	uint64_t early;		/* records before their deadline */
	uint64_t strange;	/* records that make no sense */
	int error;
};

static void reader_record(struct reader *r, const struct hwtw_event *ev,
			  uint64_t now)
{
	struct fate *f;

	r->records++;
	r->early += ev->expires_ns > now;
	if (ev->user_data >= MAX_TIMERS || ev->flags || ev->overruns) {
		r->strange++;
		return;
	}
	f = &fates[ev->user_data];
	__atomic_store_n(&f->expires_ns, ev->expires_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&f->id, ev->id, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->reads, 1, __ATOMIC_SEQ_CST);
}

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	struct hwtw_event ev[256];
	bool last;
	int i, n;

	for (;;) {
		last = __atomic_load_n(r->stop, __ATOMIC_SEQ_CST);
		if (!last)
			readable(r->fd, 20);
		n = take(r->fd, ev, r->batch);
		if (n == -EAGAIN) {
			if (last)
				return NULL;
			continue;
		}
		if (n < 0) {
			r->error = n;
			return NULL;
		}
		for (i = 0; i < n; i++)
			reader_record(r, &ev[i], clock_ns(CLOCK_MONOTONIC));
	}
}

static void readers_start(struct reader *r, int nr, int fd, bool *stop)
{
	int i;

	memset(fates, 0, sizeof(fates));
	*stop = false;
	for (i = 0; i < nr; i++) {
		r[i] = (struct reader) {
			.fd = fd,
			.batch = i % 4 == 3 ? 256 : i * 7 + 1,
			.stop = stop,
		};
		pthread_create(&r[i].thread, NULL, reader_main, &r[i]);
	}
}

/* Stops them and adds up in the first one what they saw. */
static void readers_stop(struct reader *r, int nr)
{
	int i;

	__atomic_store_n(r->stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < nr; i++)
		pthread_join(r[i].thread, NULL);
	for (i = 1; i < nr; i++) {
		r[0].records += r[i].records;
		r[0].early += r[i].early;
		r[0].strange += r[i].strange;
		if (r[i].error)
			r[0].error = r[i].error;
	}
}

/*
 * Waits for the end of everything: a sentinel that is due after all others,
 * plus a sweep of the ids that are left.
 */
static uint64_t wait_none_pending(int fd, const uint64_t *id, int nr)
{
	uint64_t left = 0;
	int i;

	for (i = 0; i < nr; i++)
		left += wait_expired(fd, id[i]) == -ETIMEDOUT;
	return left;
}

/* Guards against an expiry read twice or by nobody (B-46, camunda #14882). */
TEST_F(dev, readers_exactly_once)
{
	enum { NR = 40000, READERS = 4 };
	uint64_t *id = calloc(NR, sizeof(*id)), twice = 0, never = 0;
	struct reader r[READERS];
	struct rnd rnd = { 11 };
	bool stop;
	int i;

	readers_start(r, READERS, self->fd, &stop);
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, arm_in(self->fd, rnd_below(&rnd, 5 * TICK), i,
				    &id[i]));
	}
	EXPECT_EQ(0, wait_none_pending(self->fd, id, NR));
	readers_stop(r, READERS);
	for (i = 0; i < NR; i++) {
		twice += fates[i].reads > 1;
		never += !fates[i].reads;
		if (fates[i].reads)
			ASSERT_EQ(id[i], fates[i].id);
	}
	EXPECT_EQ(0, twice);
	EXPECT_EQ(0, never);
	EXPECT_EQ(NR, r[0].records);
	EXPECT_EQ(0, r[0].early);
	EXPECT_EQ(0, r[0].strange);
	EXPECT_EQ(0, r[0].error);
}

static void *blocking_reader(void *arg)
{
	struct reader *r = arg;
	struct hwtw_event ev;

	for (;;) {
		r->error = take(r->fd, &ev, 1);
		if (r->error != 1 || ev.user_data == UINT64_MAX)
			return NULL;
		reader_record(r, &ev, now_ns());
	}
}

/* Guards against blocking readers of which one is never woken. */
TEST_F(dev, blocking_readers)
{
	enum { NR = 3000, READERS = 6 };
	struct reader r[READERS];
	int i, fd = hwtw_open(0);
	struct rnd rnd = { 12 };

	memset(fates, 0, sizeof(fates));
	for (i = 0; i < READERS; i++) {
		r[i] = (struct reader) { .fd = fd };
		pthread_create(&r[i].thread, NULL, blocking_reader, &r[i]);
	}
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, arm_in(fd, rnd_below(&rnd, 50 * TICK), i, NULL));
	}
	/* The last word to each of them, after all the rest. */
	ASSERT_EQ(0, hwtw_arm(fd, 60 * TICK, 0, UINT64_MAX, NULL));
	for (i = 1; i < READERS; i++) {
		ASSERT_EQ(0, hwtw_arm(fd, 60 * TICK, 0, UINT64_MAX, NULL));
	}
	for (i = 0; i < READERS; i++) {
		pthread_join(r[i].thread, NULL);
		EXPECT_EQ(1, r[i].error);
		EXPECT_EQ(0, r[i].early);
	}
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(1, fates[i].reads);
	}
	close(fd);
}

/* --- Workers --- */

struct worker {
	pthread_t thread;
	int fd;
	int nr;			/* which worker */
	int from, to;		/* its user_data */
	uint64_t seed;
	uint64_t *id;
	uint64_t armed, cancelled, gone, rearmed, wrong;
	uint64_t *deadline;	/* of the last successful ARM or REARM */
	bool *stop;
};

static void workers_run(struct worker *w, int nr, void *(*fn)(void *))
{
	int i;

	for (i = 0; i < nr; i++)
		pthread_create(&w[i].thread, NULL, fn, &w[i]);
	for (i = 0; i < nr; i++)
		pthread_join(w[i].thread, NULL);
}

static void *arm_cancel_worker(void *arg)
{
	struct worker *w = arg;
	struct rnd r = { w->seed };
	int i, k;

	pin_to(w->nr);
	for (i = w->from; i < w->to; i++) {
		if (arm_in(w->fd, rnd_below(&r, 2) ? HOUR_NS :
			   rnd_below(&r, 4 * TICK), i, &w->id[i]))
			w->wrong++;
		else
			w->armed++;
		if (rnd_below(&r, 3))
			continue;
		k = w->from + rnd_below(&r, i - w->from + 1);
		if (hwtw_cancel(w->fd, w->id[k]) > 0)
			fates[k].cancels++;
	}
	return NULL;
}

/* Guards against counts that drift between threads (B-28, D-24). */
TEST_F_TIMEOUT(dev, arm_and_cancel, TEST_TIMEOUT_SLOW)
{
	enum { NR = 60000, WORKERS = 4, READERS = 2 };
	uint64_t *id = calloc(NR, sizeof(*id)), armed = 0, cancelled = 0;
	struct worker w[WORKERS];
	struct reader r[READERS];
	uint64_t pending = 0, none = 0, both = 0;
	bool stop;
	int i, state;

	readers_start(r, READERS, self->fd, &stop);
	for (i = 0; i < WORKERS; i++)
		w[i] = (struct worker) {
			.fd = self->fd,
			.nr = i,
			.from = i * (NR / WORKERS),
			.to = (i + 1) * (NR / WORKERS),
			.seed = 100 + i,
			.id = id,
		};
	workers_run(w, WORKERS, arm_cancel_worker);
	for (i = 0; i < WORKERS; i++) {
		EXPECT_EQ(0, w[i].wrong);
		armed += w[i].armed;
	}
	sleep_ns(20 * TICK);
	/* What is left are the long ones; cancel them too. */
	for (i = 0; i < NR; i++) {
		state = hwtw_query(self->fd, id[i], NULL);
		if (state == HWTW_PENDING)
			pending++;
		if (state > 0 && hwtw_cancel(self->fd, id[i]) > 0)
			fates[i].cancels++;
	}
	readers_stop(r, READERS);
	for (i = 0; i < NR; i++) {
		cancelled += fates[i].cancels;
		none += !fates[i].cancels && !fates[i].reads;
		both += fates[i].cancels + fates[i].reads > 1;
	}
	EXPECT_EQ(0, none);
	EXPECT_EQ(0, both);
	EXPECT_EQ(armed, cancelled + r[0].records);
	EXPECT_LT(0, pending);
	EXPECT_EQ(0, r[0].early);
	EXPECT_EQ(0, r[0].error);
}

/* Arms in small bunches and cancels each about when it expires. */
static void *cancel_race_worker(void *arg)
{
	struct worker *w = arg;
	struct rnd r = { w->seed };
	int i, k, ret;

	pin_to(w->nr);
	for (i = w->from; i < w->to; i += k) {
		for (k = 0; k < 20 && i + k < w->to; k++)
			w->wrong += arm_in(w->fd, rnd_below(&r, 2 * TICK + 1),
					   i + k, &w->id[i + k]) != 0;
		sleep_ns(rnd_below(&r, TICK));
		for (k = 0; k < 20 && i + k < w->to; k++) {
			ret = hwtw_cancel(w->fd, w->id[i + k]);
			if (ret > 0)
				fates[i + k].cancels++;
			else if (ret == -ENOENT)
				w->gone++;
			else
				w->wrong++;
		}
	}
	return NULL;
}

/* Guards against both or neither of cancelled and expired (B-28, B-42). */
TEST_F_TIMEOUT(dev, cancel_races_expiry, TEST_TIMEOUT_SLOW)
{
	enum { NR = 60000, WORKERS = 3, READERS = 2 };
	uint64_t *id = calloc(NR, sizeof(*id));
	uint64_t none = 0, both = 0, cancelled = 0, gone = 0;
	struct worker w[WORKERS];
	struct reader r[READERS];
	bool stop;
	int i;

	readers_start(r, READERS, self->fd, &stop);
	for (i = 0; i < WORKERS; i++)
		w[i] = (struct worker) {
			.fd = self->fd,
			.nr = i,
			.from = i * (NR / WORKERS),
			.to = (i + 1) * (NR / WORKERS),
			.seed = 200 + i,
			.id = id,
		};
	workers_run(w, WORKERS, cancel_race_worker);
	readers_stop(r, READERS);
	for (i = 0; i < NR; i++) {
		cancelled += fates[i].cancels;
		none += fates[i].cancels + fates[i].reads == 0;
		both += fates[i].cancels + fates[i].reads > 1;
	}
	for (i = 0; i < WORKERS; i++) {
		EXPECT_EQ(0, w[i].wrong);
		gone += w[i].gone;
	}
	TH_LOG("%lu cancelled, %lu read", cancelled, gone);
	EXPECT_EQ(0, none);
	EXPECT_EQ(0, both);
	EXPECT_EQ(gone, r[0].records);
	EXPECT_EQ(NR, cancelled + gone);
	/* It was a race, or the test has to be tuned. */
	EXPECT_LT(0, cancelled);
	EXPECT_LT(0, gone);
	EXPECT_EQ(0, r[0].early);
}

/* Moves each of its timers a few times about when it expires. */
static void *rearm_race_worker(void *arg)
{
	struct worker *w = arg;
	struct rnd r = { w->seed };
	uint64_t at;
	int i, k, round, ret;

	pin_to(w->nr);
	for (i = w->from; i < w->to; i += k) {
		for (k = 0; k < 20 && i + k < w->to; k++) {
			at = now_ns() + rnd_below(&r, 2 * TICK);
			w->deadline[i + k] = at;
			w->wrong += arm_at(w->fd, at, i + k,
					   &w->id[i + k]) != 0;
		}
		for (round = 0; round < 3; round++) {
			sleep_ns(rnd_below(&r, TICK));
			for (k = 0; k < 20 && i + k < w->to; k++) {
				at = now_ns() + rnd_below(&r, 2 * TICK);
				/* Earlier than now half of the time. */
				if (rnd_below(&r, 2))
					at -= TICK;
				ret = rearm_at(w->fd, w->id[i + k], at);
				if (ret > 0) {
					w->deadline[i + k] = at;
					w->rearmed++;
				} else if (ret == -ENOENT) {
					w->gone++;
				} else {
					w->wrong++;
				}
			}
		}
	}
	return NULL;
}

/* Guards against the former expiry read after a REARM (B-38, B-43, B-45). */
TEST_F_TIMEOUT(dev, rearm_races_expiry, TEST_TIMEOUT_SLOW)
{
	enum { NR = 30000, WORKERS = 3, READERS = 2 };
	uint64_t *id = calloc(NR, sizeof(*id));
	uint64_t *deadline = calloc(NR, sizeof(*deadline));
	uint64_t none = 0, twice = 0, former = 0, rearmed = 0, gone = 0;
	struct worker w[WORKERS];
	struct reader r[READERS];
	bool stop;
	int i;

	readers_start(r, READERS, self->fd, &stop);
	for (i = 0; i < WORKERS; i++)
		w[i] = (struct worker) {
			.fd = self->fd,
			.nr = i,
			.from = i * (NR / WORKERS),
			.to = (i + 1) * (NR / WORKERS),
			.seed = 300 + i,
			.id = id,
			.deadline = deadline,
		};
	workers_run(w, WORKERS, rearm_race_worker);
	EXPECT_EQ(0, wait_none_pending(self->fd, id, NR));
	readers_stop(r, READERS);
	for (i = 0; i < NR; i++) {
		none += !fates[i].reads;
		twice += fates[i].reads > 1;
		former += fates[i].reads == 1 &&
			  fates[i].expires_ns != deadline[i];
	}
	for (i = 0; i < WORKERS; i++) {
		EXPECT_EQ(0, w[i].wrong);
		rearmed += w[i].rearmed;
		gone += w[i].gone;
	}
	TH_LOG("%lu moved, %lu too late", rearmed, gone);
	EXPECT_EQ(0, none);
	EXPECT_EQ(0, twice);
	EXPECT_EQ(0, former);
	EXPECT_LT(0, rearmed);
	EXPECT_LT(0, gone);
	EXPECT_EQ(0, r[0].early);
}

static void *move_all_worker(void *arg)
{
	struct worker *w = arg;
	struct rnd r = { w->seed };
	int i, k;

	for (i = 0; !__atomic_load_n(w->stop, __ATOMIC_RELAXED); i++) {
		if (i % 64 == 0)
			pin_to(w->nr + i / 64);
		k = rnd_below(&r, w->to);
		switch (rnd_below(&r, 8)) {
		case 0:
			w->wrong += rearm_in(w->fd, w->id[k], HOUR_NS) < 0;
			break;
		case 1:
			w->wrong += rearm_in(w->fd, w->id[k], 0) < 0;
			break;
		case 2:
			w->wrong += hwtw_query(w->fd, w->id[k], NULL) < 0;
			break;
		default:
			w->wrong += rearm_in(w->fd, w->id[k],
					     rnd_below(&r, 2 * TICK)) < 0;
		}
	}
	return NULL;
}

/* Guards against lists torn by threads moving what expires just now (B-43). */
TEST_F_TIMEOUT(dev, move_what_is_due, TEST_TIMEOUT_SLOW)
{
	enum { NR = 500, WORKERS = 4 };
	struct hwtw_event *ev = calloc(NR + 1, sizeof(*ev));
	struct worker w[WORKERS];
	uint64_t id[NR];
	bool stop = false;
	int i;

	/* Nobody reads: no timer may go, whatever happens to it. */
	ASSERT_EQ(0, arm_many(self->fd, NR, TICK, 0, 0, id));
	for (i = 0; i < WORKERS; i++) {
		w[i] = (struct worker) {
			.fd = self->fd,
			.nr = i,
			.to = NR,
			.seed = 400 + i,
			.id = id,
			.stop = &stop,
		};
		pthread_create(&w[i].thread, NULL, move_all_worker, &w[i]);
	}
	sleep_ns(2 * NSEC_PER_SEC);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < WORKERS; i++) {
		pthread_join(w[i].thread, NULL);
		EXPECT_EQ(0, w[i].wrong);
	}
	for (i = 0; i < NR; i++) {
		ASSERT_LT(0, rearm_in(self->fd, id[i], 0));
	}
	EXPECT_EQ(NR, take(self->fd, ev, NR + 1));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 1));
}

struct handover {
	int fd;
	uint64_t id;		/* 0: taken */
	bool stop;
	uint64_t cancelled, gone, wrong;
};

static void *cancel_handed_over(void *arg)
{
	struct handover *h = arg;
	uint64_t id;
	int ret;

	while (!__atomic_load_n(&h->stop, __ATOMIC_SEQ_CST)) {
		id = __atomic_exchange_n(&h->id, 0, __ATOMIC_SEQ_CST);
		if (!id) {
			sched_yield();
			continue;
		}
		ret = hwtw_cancel(h->fd, id);
		h->cancelled += ret == HWTW_PENDING;
		h->wrong += ret != HWTW_PENDING;
	}
	return NULL;
}

/* Guards against an id that is known before its timer is (B-31, D-25). */
TEST_F(dev, cancel_by_other_thread)
{
	enum { NR = 10000 };
	struct handover h = { .fd = self->fd };
	struct hwtw_event ev;
	pthread_t thread;
	uint64_t id;
	int i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, 2));
	pthread_create(&thread, NULL, cancel_handed_over, &h);
	for (i = 0; i < NR; i++) {
		while (__atomic_load_n(&h.id, __ATOMIC_SEQ_CST))
			sched_yield();
		/* The one before may be on its way out still. */
		while (arm_in(self->fd, HOUR_NS, i, &id) == -ENOSPC)
			sched_yield();
		__atomic_store_n(&h.id, id, __ATOMIC_SEQ_CST);
	}
	while (__atomic_load_n(&h.id, __ATOMIC_SEQ_CST))
		sched_yield();
	__atomic_store_n(&h.stop, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	EXPECT_EQ(NR, h.cancelled);
	EXPECT_EQ(0, h.wrong);
	EXPECT_EQ(-EAGAIN, take(self->fd, &ev, 1));
}

/* Two that cancel the same timers: each goes once. */
static void *cancel_same_worker(void *arg)
{
	struct worker *w = arg;
	int i, ret;

	pin_to(w->nr);
	for (i = 0; i < w->to; i++) {
		ret = hwtw_cancel(w->fd, w->id[i]);
		w->cancelled += ret > 0;
		w->gone += ret == -ENOENT;
	}
	return NULL;
}

/* Guards against one timer cancelled by two threads. */
TEST_F(dev, cancel_same)
{
	enum { NR = 20000, WORKERS = 3 };
	uint64_t *id = calloc(NR, sizeof(*id)), cancelled = 0;
	struct worker w[WORKERS];
	int i, past;

	for (past = 0; past < 2; past++) {
		ASSERT_EQ(0, arm_many(self->fd, NR, past ? 0 : HOUR_NS, 0, 0,
				      id));
		for (i = 0; i < WORKERS; i++)
			w[i] = (struct worker) {
				.fd = self->fd,
				.nr = i,
				.to = NR,
				.id = id,
			};
		workers_run(w, WORKERS, cancel_same_worker);
		for (cancelled = i = 0; i < WORKERS; i++) {
			cancelled += w[i].cancelled;
			EXPECT_EQ(NR, w[i].cancelled + w[i].gone);
		}
		EXPECT_EQ(NR, cancelled);
		EXPECT_EQ(0, readable(self->fd, 0));
	}
}

static void *limit_worker(void *arg)
{
	struct worker *w = arg;
	uint64_t mine[64];
	int i, k, n;

	pin_to(w->nr);
	for (i = 0; i < 300; i++) {
		for (k = n = 0; k < 64; k++) {
			switch (arm_in(w->fd, HOUR_NS, 0, &mine[n])) {
			case 0:
				n++;
				break;
			case -ENOSPC:
				w->gone++;
				break;
			default:
				w->wrong++;
			}
		}
		w->wrong += n > w->to;
		for (k = 0; k < n; k++)
			w->wrong += hwtw_cancel(w->fd, mine[k]) !=
				    HWTW_PENDING;
	}
	return NULL;
}

/* Guards against a limit that threads together get past, or wear down. */
TEST_F(dev, limit_holds)
{
	enum { LIMIT = 100, WORKERS = 4 };
	struct worker w[WORKERS];
	int i;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, LIMIT));
	for (i = 0; i < WORKERS; i++)
		w[i] = (struct worker) {
			.fd = self->fd,
			.nr = i,
			.to = LIMIT,
		};
	workers_run(w, WORKERS, limit_worker);
	for (i = 0; i < WORKERS; i++) {
		EXPECT_EQ(0, w[i].wrong);
	}
	ASSERT_EQ(0, arm_many(self->fd, LIMIT, HOUR_NS, 0, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
}

static void *first_timer(void *arg)
{
	struct worker *w = arg;

	pin_to(w->nr);
	while (!__atomic_load_n(w->stop, __ATOMIC_SEQ_CST))
		;
	w->wrong = arm_in(w->fd, w->nr & 1 ? 0 : HOUR_NS, w->nr, NULL) != 0;
	return NULL;
}

/* Guards against two threads making an instance's parts at the same time. */
TEST_F(dev, first_timers_at_once)
{
	enum { WORKERS = 4 };
	struct hwtw_event ev[WORKERS];
	struct worker w[WORKERS];
	int i, round, fd, ret;
	bool go;

	for (round = 0; round < 300; round++) {
		fd = hwtw_open(O_NONBLOCK);
		go = false;
		for (i = 0; i < WORKERS; i++) {
			w[i] = (struct worker) {
				.fd = fd, .nr = i, .stop = &go,
			};
			pthread_create(&w[i].thread, NULL, first_timer, &w[i]);
		}
		/* SETUP wins or comes too late; both are an answer. */
		__atomic_store_n(&go, true, __ATOMIC_SEQ_CST);
		ret = hwtw_setup(fd, CLOCK_BOOTTIME, 1 << 18, 0);
		EXPECT_TRUE(ret == 0 || ret == -EBUSY);
		for (i = 0; i < WORKERS; i++) {
			pthread_join(w[i].thread, NULL);
			EXPECT_EQ(0, w[i].wrong);
		}
		ASSERT_EQ(WORKERS / 2, take(fd, ev, WORKERS));
		close(fd);
	}
}

static void *faulting_reader(void *arg)
{
	struct worker *w = arg;
	struct hwtw_event *part;
	char *cliff = map_cliff(1);
	int i, n, room;

	for (i = 0; !__atomic_load_n(w->stop, __ATOMIC_SEQ_CST); i++) {
		room = i % 5;
		part = (void *)(cliff - room * sizeof(*part) - 8);
		n = take(w->fd, part, 16);
		if (n > room)
			w->wrong++;
		else if (n > 0)
			for (; n; n--, part++)
				__atomic_add_fetch(
					&fates[part->user_data].reads, 1,
					__ATOMIC_SEQ_CST);
		else
			w->wrong += n != -EAGAIN && n != -EFAULT;
	}
	return NULL;
}

/* Makes the first page read-only as soon as somebody writes to the second one. */
struct spoiler {
	pthread_t thread;
	int uffd;
	char *page;
	bool spoilt;
};

static void *spoiler_main(void *arg)
{
	struct spoiler *s = arg;
	struct uffdio_writeprotect wp = {
		.range = { .start = (uintptr_t)s->page + 4096, .len = 4096 },
	};
	struct pollfd p = { .fd = s->uffd, .events = POLLIN };
	struct uffd_msg msg;

	if (poll(&p, 1, 20000) == 1 && read(s->uffd, &msg, sizeof(msg)) == sizeof(msg))
		s->spoilt = !mprotect(s->page, 4096, PROT_READ);
	ioctl(s->uffd, UFFDIO_WRITEPROTECT, &wp);
	return NULL;
}

/* Returns 0 or -errno. The pages have what they are to have. */
static int spoiler_start(struct spoiler *s)
{
	struct uffdio_writeprotect wp = {
		.range = { .start = (uintptr_t)s->page + 4096, .len = 4096 },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	s->spoilt = false;
	s->uffd = fault_open(s->page + 4096, UFFDIO_REGISTER_MODE_WP);
	if (s->uffd < 0)
		return s->uffd;
	if (ioctl(s->uffd, UFFDIO_WRITEPROTECT, &wp))
		return -errno;
	return -pthread_create(&s->thread, NULL, spoiler_main, s);
}

static bool spoiler_end(struct spoiler *s)
{
	pthread_join(s->thread, NULL);
	close(s->uffd);
	mprotect(s->page, 8192, PROT_READ | PROT_WRITE);
	return s->spoilt;
}

/*
 * Guards against timers whose ids nobody knows: after the kernel has seen that it can
 * write the results, and before it does, the page goes.
 */
TEST_F(dev, undone_if_not_told)
{
	enum { NR = 32, LIMIT = 100, ROOM = 4096 };
	struct spoiler s = { .page = map_pages(2) };
	unsigned int first, i;
	struct hwtw_timer *t;
	struct hwtw_op *op;
	uint64_t id[LIMIT];
	uint32_t done;
	int ret;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, LIMIT));
	for (first = 1; first < NR; first += 10) {
		op = (struct hwtw_op *)(s.page + ROOM) - first;
		for (i = 0; i < NR; i++)
			op[i] = arm_op(HOUR_NS, 0, i);
		ret = spoiler_start(&s);
		if (ret)
			SKIP(return, "no userfaultfd that protects from writes");
		ret = hwtw_submit(self->fd, op, NR, &done);
		ASSERT_TRUE(spoiler_end(&s));
		EXPECT_EQ(-EFAULT, ret);
		EXPECT_EQ(0, done);
		/* All of the room is left. */
		ASSERT_EQ(0, arm_many(self->fd, LIMIT, HOUR_NS, 0, 0, id));
		ASSERT_EQ(LIMIT, cancel_many(self->fd, id, LIMIT));
	}
	/* The id on the first page, the state on the second. */
	t = (void *)(s.page + ROOM - 8);
	*t = (struct hwtw_timer) { .time_ns = HOUR_NS };
	ASSERT_EQ(0, spoiler_start(&s));
	ret = hwtw_call(self->fd, HWTW_IOC_ARM, t);
	ASSERT_TRUE(spoiler_end(&s));
	EXPECT_EQ(-EFAULT, ret);
	EXPECT_EQ(0, t->id);
	EXPECT_EQ(0, arm_many(self->fd, LIMIT, HOUR_NS, 0, 0, id));
	munmap(s.page, 8192);
}

/* Guards against faults, withdrawal and other readers in each other's way. */
TEST_F_TIMEOUT(dev, faults_while_racing, TEST_TIMEOUT_SLOW)
{
	enum { NR = 30000, READERS = 2, FAULTERS = 2, WORKERS = 2 };
	uint64_t *id = calloc(NR, sizeof(*id)), none = 0, both = 0;
	struct worker w[WORKERS], f[FAULTERS];
	struct reader r[READERS];
	bool stop;
	int i;

	readers_start(r, READERS, self->fd, &stop);
	for (i = 0; i < FAULTERS; i++) {
		f[i] = (struct worker) { .fd = self->fd, .stop = &stop };
		pthread_create(&f[i].thread, NULL, faulting_reader, &f[i]);
	}
	for (i = 0; i < WORKERS; i++)
		w[i] = (struct worker) {
			.fd = self->fd,
			.nr = i,
			.from = i * (NR / WORKERS),
			.to = (i + 1) * (NR / WORKERS),
			.seed = 500 + i,
			.id = id,
		};
	workers_run(w, WORKERS, cancel_race_worker);
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < FAULTERS; i++) {
		pthread_join(f[i].thread, NULL);
		EXPECT_EQ(0, f[i].wrong);
	}
	readers_stop(r, READERS);
	for (i = 0; i < NR; i++) {
		struct hwtw_event ev;

		if (take(self->fd, &ev, 1) != 1)
			break;
		fates[ev.user_data].reads++;
	}
	for (i = 0; i < NR; i++) {
		none += fates[i].cancels + fates[i].reads == 0;
		both += fates[i].cancels + fates[i].reads > 1;
	}
	EXPECT_EQ(0, none);
	EXPECT_EQ(0, both);
	EXPECT_EQ(0, r[0].error);
}

static void *close_worker(void *arg)
{
	struct worker *w = arg;
	struct rnd r = { w->seed };
	int i, k, fd;

	for (i = 0; i < 150; i++) {
		pin_to(w->nr + i);
		fd = hwtw_open(O_NONBLOCK);
		for (k = 0; k < 40; k++)
			w->wrong += arm_in(fd, rnd_below(&r, TICK), k,
					   NULL) != 0;
		pin_to(w->nr + i + 1);
		for (k = 0; k < 40; k++)
			w->wrong += arm_in(fd, rnd_below(&r, TICK), k,
					   NULL) != 0;
		close(fd);
	}
	return NULL;
}

/* Guards against close() with timers expiring on every CPU (D-26, B-35). */
TEST_F(dev, close_races_expiry)
{
	enum { WORKERS = 3 };
	struct worker w[WORKERS];
	int i;

	for (i = 0; i < WORKERS; i++)
		w[i] = (struct worker) { .nr = i, .seed = 600 + i };
	workers_run(w, WORKERS, close_worker);
	for (i = 0; i < WORKERS; i++) {
		EXPECT_EQ(0, w[i].wrong);
	}
}

/* --- CPUs that come and go --- */

#define CPU1_ONLINE "/sys/devices/system/cpu/cpu1/online"

/* Guards against timers that go, or wait, with their CPU (B-35). */
TEST_F_TIMEOUT(dev, cpu_offline, TEST_TIMEOUT_SLOW)
{
	enum { NR = 300 };
	struct hwtw_event ev[NR];
	struct rnd r = { 15 };
	uint64_t id[NR], now;
	int round, i, k, n, have;

	if (read_number(CPU1_ONLINE) != 1)
		SKIP(return, "no CPU 1 to take away");
	for (round = 0; round < 4; round++) {
		for (i = 0; i < NR; i++) {
			pin_to(i / 50);
			ASSERT_EQ(0, arm_in(self->fd,
				i % 10 ? rnd_below(&r, 300 * NSEC_PER_MSEC) :
				HOUR_NS, i, &id[i]));
		}
		pin_to(0);
		ASSERT_EQ(0, put(CPU1_ONLINE, round & 1 ? "1" : "0"));
		/* The ids of that CPU's timers are good from everywhere. */
		for (i = 0; i < NR; i += 10) {
			ASSERT_EQ(HWTW_PENDING, i % 20 ?
				  hwtw_cancel(self->fd, id[i]) :
				  rearm_in(self->fd, id[i], NSEC_PER_MSEC));
		}
		n = NR - NR / 20;
		for (have = 0; have < n && readable(self->fd, 20000);) {
			k = take(self->fd, ev, NR);
			now = now_ns();
			ASSERT_LT(0, k);
			for (i = 0; i < k; i++) {
				EXPECT_LE(ev[i].expires_ns, now);
			}
			have += k;
		}
		EXPECT_EQ(n, have);
		EXPECT_EQ(-EAGAIN, take(self->fd, ev, 1));
	}
	put(CPU1_ONLINE, "1");
}

struct plugger {
	pthread_t thread;
	bool stop;
	int rounds;
};

static void *plugger_main(void *arg)
{
	struct plugger *p = arg;

	pin_to(0);
	while (!__atomic_load_n(&p->stop, __ATOMIC_SEQ_CST)) {
		p->rounds += !put(CPU1_ONLINE, "0");
		put(CPU1_ONLINE, "1");
	}
	return NULL;
}

/* Guards against a CPU that goes in the middle of any of it. */
TEST_F_TIMEOUT(dev, cpu_offline_races, TEST_TIMEOUT_SLOW)
{
	enum { NR = 20000, WORKERS = 2, READERS = 2 };
	uint64_t *id = calloc(NR, sizeof(*id)), none = 0, both = 0;
	struct worker w[WORKERS];
	struct reader r[READERS];
	struct plugger p = {};
	bool stop;
	int i;

	if (read_number(CPU1_ONLINE) != 1)
		SKIP(return, "no CPU 1 to take away");
	readers_start(r, READERS, self->fd, &stop);
	pthread_create(&p.thread, NULL, plugger_main, &p);
	for (i = 0; i < WORKERS; i++)
		w[i] = (struct worker) {
			.fd = self->fd,
			.nr = i,
			.from = i * (NR / WORKERS),
			.to = (i + 1) * (NR / WORKERS),
			.seed = 700 + i,
			.id = id,
		};
	workers_run(w, WORKERS, cancel_race_worker);
	__atomic_store_n(&p.stop, true, __ATOMIC_SEQ_CST);
	pthread_join(p.thread, NULL);
	EXPECT_EQ(0, wait_none_pending(self->fd, id, NR));
	readers_stop(r, READERS);
	for (i = 0; i < NR; i++) {
		none += fates[i].cancels + fates[i].reads == 0;
		both += fates[i].cancels + fates[i].reads > 1;
	}
	EXPECT_EQ(0, none);
	EXPECT_EQ(0, both);
	EXPECT_EQ(0, r[0].early);
	EXPECT_LT(0, p.rounds);
}

/* --- One thread against a model --- */

enum own_state { FREE, ALIVE, CANCELLED, DELIVERED };

struct own {
	enum own_state state;
	uint64_t id;
	uint64_t deadline;	/* 0: relative, see low and high */
	uint64_t low, high;
};

/*
 * Guards against any sequence that loses, doubles or invents a timer: armed is
 * cancelled plus delivered plus pending plus unread, at every moment (D.0).
 */
TEST_F_TIMEOUT(dev, identity, TEST_TIMEOUT_SLOW)
{
	enum { NR = 40000, STEPS = 60000 };
	struct own *own = calloc(NR, sizeof(*own)), *o;
	uint64_t armed = 0, cancelled = 0, delivered = 0, pending, unread;
	struct hwtw_event ev[64];
	struct rnd r = { 13 };
	struct hwtw_timer t;
	int step, i, k, n, state, next = 0;
	uint64_t now;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 1 << 17, 0));
	for (step = 0; step < STEPS; step++) {
		o = next ? &own[rnd_below(&r, next)] : own;
		/* Recent ones are the interesting ones. */
		if (next > 50 && rnd_below(&r, 2))
			o = &own[next - 1 - rnd_below(&r, 50)];
		switch (rnd_below(&r, 16)) {
		case 0 ... 6:
			if (next == NR)
				break;
			o = &own[next];
			t = (struct hwtw_timer) { .user_data = next };
			t.time_ns = rnd_below(&r, 4) ?
				    rnd_below(&r, 5 * NSEC_PER_MSEC) :
				    rnd_below(&r, 2) * HOUR_NS;
			o->low = now_ns() + t.time_ns;
			ASSERT_EQ(0, hwtw_call(self->fd, HWTW_IOC_ARM, &t));
			o->high = now_ns() + t.time_ns;
			o->id = t.id;
			o->state = ALIVE;
			next++;
			armed++;
			break;
		case 7 ... 9:
			state = hwtw_cancel(self->fd, o->id);
			ASSERT_EQ(o->state == ALIVE, state > 0);
			if (state > 0) {
				o->state = CANCELLED;
				cancelled++;
			} else {
				ASSERT_EQ(-ENOENT, state);
			}
			break;
		case 10 ... 12:
			now = now_ns() - NSEC_PER_MSEC +
			      rnd_below(&r, 6 * NSEC_PER_MSEC);
			state = rearm_at(self->fd, o->id, now);
			ASSERT_EQ(o->state == ALIVE, state > 0);
			if (state > 0)
				o->low = o->high = now;
			break;
		case 13:
			state = hwtw_query(self->fd, o->id, &t);
			ASSERT_EQ(o->state == ALIVE, state > 0);
			if (state > 0) {
				ASSERT_EQ((uint64_t)(o - own), t.user_data);
				ASSERT_LE(o->low, t.time_ns);
				ASSERT_GE(o->high, t.time_ns);
			}
			if (state == HWTW_EXPIRED)
				ASSERT_LE(t.time_ns, now_ns());
			break;
		default:
			n = take(self->fd, ev, 1 + rnd_below(&r, 64));
			now = now_ns();
			if (n == -EAGAIN)
				break;
			ASSERT_LT(0, n);
			for (k = 0; k < n; k++) {
				ASSERT_GT((uint64_t)next, ev[k].user_data);
				o = &own[ev[k].user_data];
				ASSERT_EQ(ALIVE, o->state);
				ASSERT_EQ(o->id, ev[k].id);
				ASSERT_LE(o->low, ev[k].expires_ns);
				ASSERT_GE(o->high, ev[k].expires_ns);
				ASSERT_LE(ev[k].expires_ns, now);
				o->state = DELIVERED;
				delivered++;
			}
		}
		if (step % 10000 != 9999)
			continue;
		for (i = pending = unread = 0; i < next; i++) {
			state = hwtw_query(self->fd, own[i].id, NULL);
			pending += state == HWTW_PENDING;
			unread += state == HWTW_EXPIRED;
		}
		EXPECT_EQ(armed, cancelled + delivered + pending + unread);
	}
	/* To the end: everything due now comes out, and nothing else does. */
	for (i = 0; i < next; i++)
		if (own[i].state == ALIVE)
			ASSERT_LT(0, rearm_in(self->fd, own[i].id, 0));
	while ((n = take(self->fd, ev, 64)) > 0) {
		for (k = 0; k < n; k++) {
			o = &own[ev[k].user_data];
			ASSERT_EQ(ALIVE, o->state);
			o->state = DELIVERED;
			delivered++;
		}
	}
	EXPECT_EQ(-EAGAIN, n);
	EXPECT_EQ(armed, cancelled + delivered);
	TH_LOG("%lu armed, %lu cancelled, %lu delivered", armed, cancelled,
	       delivered);
}

TEST_HARNESS_MAIN
