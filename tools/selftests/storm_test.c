// SPDX-License-Identifier: GPL-2.0
/*
 * Everything at once, for as long as one likes: threads that hop between CPUs
 * arm, move, cancel, query, list and read timers of instances that they share,
 * while CPUs and other instances come and go and, from round to round, the
 * module. What each call said is kept, and must add up to the last timer.
 *
 * HWTW_SECONDS in the environment says how long the storm lasts, HWTW_SEED
 * which one it is; it is another one each time. On the kernel's command line
 * both get there by way of init.
 */
#include "hwtw_test.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

#define TICK		HWTW_TICK_DEFAULT_NS
#define SECONDS		8		/* unless told otherwise */
#define ROUND		12		/* seconds between two reloads, at most */
#define MODULE		"/lib/hwtw.ko"
#define CPU_ONLINE	"/sys/devices/system/cpu/cpu%d/online"

#define TIMERS		2000000		/* of a round */
#define INSTANCES	3
#define WORKERS		6
#define READERS		2
#define ROOM		20000		/* of an instance */
#define IMMORTAL	300		/* of an instance: never touched */
#define RECENT		512
#define BATCH		64

enum kind { NONE, ONCE, PERIODIC, UNTOUCHED };

/* What is known of a timer, whose user_data is its place here. */
struct timer {
	uint64_t id;		/* 0 until ARM has told it */
	uint64_t read_id;	/* the record's */
	uint64_t deadline;	/* asked for last, or first if it is periodic */
	uint64_t expires;	/* of the record, or the next one it promised */
	uint32_t interval;
	uint32_t periods;	/* that records told of */
	uint8_t kind;
	uint8_t instance;
	uint8_t reads;
	uint8_t cancels;
};

static struct timer *timers;
static uint32_t nr_timers;
static int fds[INSTANCES];
static bool stop_workers, stop_readers;
static uint64_t features;

/* What must not happen, counted by threads, which cannot assert. */
static struct {
	uint64_t arm, cancel, rearm, query, list, read;	/* errno of no sense */
	uint64_t alive;		/* a timer that was gone */
	uint64_t stranger;	/* an id that led to another timer */
	uint64_t early, odd;	/* records */
	uint64_t missed;	/* a timer that a walk told of not once */
} wrong;

/* What did happen. */
static struct {
	uint64_t armed, cancelled, rearmed, read, walks, plugs, instances;
	uint64_t per_instance[INSTANCES], gone[INSTANCES];
} count;

/* Nothing may be lost of these: no += of what is false. */
#define WRONG(what, cond) do { if (cond) ADD(wrong.what); } while (0)
#define ADD(what)	__atomic_add_fetch(&(what), 1, __ATOMIC_RELAXED)
#define LOAD(what)	__atomic_load_n(&(what), __ATOMIC_ACQUIRE)
#define STORE(what, v)	__atomic_store_n(&(what), v, __ATOMIC_RELEASE)

static unsigned int seconds(void)
{
	const char *s = getenv("HWTW_SECONDS");

	return s && atoi(s) > 0 ? atoi(s) : SECONDS;
}

static uint64_t seed(void)
{
	const char *s = getenv("HWTW_SEED");

	return s ? strtoull(s, NULL, 0) : now_ns();
}

/* --- Workers --- */

struct worker {
	pthread_t thread;
	int nr;
	struct rnd rnd;
	uint32_t mine[RECENT];	/* one-shot timers that it alone moves */
	uint32_t nr_mine;
};

/* A place for a new timer, or NULL: there are enough. */
static struct timer *new_timer(struct rnd *r, enum kind kind)
{
	uint32_t n = __atomic_fetch_add(&nr_timers, 1, __ATOMIC_RELAXED);
	struct timer *t = &timers[n];

	if (n >= TIMERS) {
		__atomic_store_n(&nr_timers, TIMERS, __ATOMIC_RELAXED);
		STORE(stop_workers, true);
		return NULL;
	}
	/* Half of them on one instance. */
	t->instance = rnd_below(r, 2) ? 0 : rnd_below(r, INSTANCES);
	t->kind = kind;
	return t;
}

/* Any timer, rather a recent one, that somebody armed. */
static struct timer *any_timer(struct rnd *r)
{
	uint32_t n = __atomic_load_n(&nr_timers, __ATOMIC_RELAXED);
	uint32_t back = rnd_below(r, 8) ? 1024 : TIMERS;
	struct timer *t;

	n = n < TIMERS ? n : TIMERS;
	if (!n)
		return NULL;
	back = back < n ? back : n;
	t = &timers[n - 1 - rnd_below(r, back)];
	if (!LOAD(t->id) || t->kind == UNTOUCHED || t->kind == NONE)
		return NULL;
	return t;
}

/* Due long ago, now, soon, much later. */
static struct hwtw_timer some_time(struct rnd *r)
{
	struct hwtw_timer t = {};

	switch (rnd_below(r, 8)) {
	case 0:
		t.flags = HWTW_TIMER_ABS;
		t.time_ns = now_ns() - rnd_below(r, 100 * NSEC_PER_MSEC);
		break;
	case 1:
		break;
	case 2 ... 4:
		t.time_ns = rnd_below(r, 4 * TICK);
		break;
	case 5:
		t.flags = HWTW_TIMER_ABS;
		t.time_ns = now_ns() + rnd_below(r, 70 * TICK);
		break;
	case 6:
		t.time_ns = rnd_below(r, 500 * NSEC_PER_MSEC);
		break;
	case 7:
		t.time_ns = HOUR_NS + rnd_below(r, HOUR_NS);
	}
	return t;
}

static struct hwtw_timer arm_time(struct rnd *r, struct timer *t)
{
	struct hwtw_timer arg = some_time(r);

	arg.user_data = t - timers;
	if (t->kind == PERIODIC) {
		t->interval = 3 * NSEC_PER_MSEC + rnd_below(r, 50 * NSEC_PER_MSEC);
		arg.interval_ns = t->interval;
	}
	/* Only the deadline that was asked for is known beforehand. */
	if (!(arg.flags & HWTW_TIMER_ABS)) {
		arg.flags = HWTW_TIMER_ABS;
		arg.time_ns += now_ns();
	}
	t->deadline = arg.time_ns;
	return arg;
}

static void armed(struct worker *w, struct timer *t, const struct hwtw_timer *arg, int ret)
{
	if (ret) {
		WRONG(arm, ret != -ENOSPC);
		t->kind = NONE;
		return;
	}
	ADD(count.armed);
	ADD(count.per_instance[t->instance]);
	/* Before anybody else can know of it. */
	if (t->kind == ONCE)
		w->mine[w->nr_mine++ % RECENT] = t - timers;
	STORE(t->id, arg->id);
}

static void do_arm(struct worker *w)
{
	struct rnd *r = &w->rnd;
	struct timer *t = new_timer(r, rnd_below(r, 50) ? ONCE : PERIODIC);
	struct hwtw_timer arg;

	if (!t)
		return;
	arg = arm_time(r, t);
	armed(w, t, &arg, hwtw_call(fds[t->instance], HWTW_IOC_ARM, &arg));
}

/* Whether it was over before the call that follows. */
static bool is_over(struct timer *t)
{
	return LOAD(t->cancels) || (t->kind == ONCE && LOAD(t->reads));
}

static void cancelled(struct timer *t, bool over, int ret)
{
	if (ret == 0) {
		ADD(t->cancels);
		ADD(count.cancelled);
		ADD(count.gone[t->instance]);
		WRONG(alive, over);
	} else {
		WRONG(cancel, ret != -ENOENT);
	}
}

static void do_cancel(struct worker *w)
{
	struct timer *t = any_timer(&w->rnd);
	bool over;
	int ret;

	if (!t)
		return;
	over = is_over(t);
	ret = hwtw_cancel(fds[t->instance], t->id);
	cancelled(t, over, ret > 0 ? 0 : ret);
}

static void do_query(struct worker *w)
{
	struct timer *t = any_timer(&w->rnd);
	struct hwtw_timer arg;
	bool over;
	int ret;

	if (!t)
		return;
	over = is_over(t);
	ret = hwtw_query(fds[t->instance], t->id, &arg);
	if (ret > 0) {
		WRONG(alive, over);
		WRONG(stranger, arg.user_data != (uint64_t)(t - timers));
	} else {
		WRONG(query, ret != -ENOENT);
	}
}

static void do_rearm(struct worker *w)
{
	struct hwtw_timer arg;
	uint32_t back;
	struct timer *t;
	uint64_t former;
	bool over;
	int ret;

	if (!w->nr_mine)
		return;
	/* Those of just now are the ones that expire meanwhile. */
	back = rnd_below(&w->rnd, 4) ? 8 : RECENT;
	back = back < w->nr_mine ? back : w->nr_mine;
	t = &timers[w->mine[(w->nr_mine - 1 - rnd_below(&w->rnd, back)) % RECENT]];
	former = t->deadline;
	arg = arm_time(&w->rnd, t);
	arg.id = t->id;
	over = is_over(t);
	ret = hwtw_call(fds[t->instance], HWTW_IOC_REARM, &arg);
	if (!ret) {
		WRONG(alive, over);
		ADD(count.rearmed);
	} else {
		t->deadline = former;
		WRONG(rearm, ret != -ENOENT);
	}
}

static void do_batch(struct worker *w)
{
	struct timer *t[BATCH];
	struct hwtw_op op[BATCH];
	bool over[BATCH];
	struct rnd *r = &w->rnd;
	int instance = rnd_below(r, INSTANCES);
	unsigned int i, nr = 0, want = 1 + rnd_below(r, BATCH);
	int ret;

	while (nr < want && !LOAD(stop_workers)) {
		op[nr] = (struct hwtw_op) { .opcode = HWTW_OP_ARM, .result = 1 };
		if (rnd_below(r, 2)) {
			t[nr] = new_timer(r, ONCE);
			if (!t[nr])
				break;
			t[nr]->instance = instance;
			op[nr].timer = arm_time(r, t[nr]);
		} else {
			t[nr] = any_timer(r);
			if (!t[nr] || t[nr]->instance != instance)
				continue;
			op[nr].opcode = HWTW_OP_CANCEL;
			op[nr].timer.id = t[nr]->id;
			over[nr] = is_over(t[nr]);
		}
		nr++;
	}
	ret = hwtw_submit(fds[instance], op, nr, NULL);
	WRONG(arm, ret != 0);
	for (i = 0; i < nr; i++) {
		if (op[i].opcode == HWTW_OP_ARM)
			armed(w, t[i], &op[i].timer, op[i].result);
		else
			cancelled(t[i], over[i], op[i].result);
	}
}

/* Each that is never touched has to come once. */
static void do_list(struct worker *w)
{
	int instance = rnd_below(&w->rnd, INSTANCES);
	static __thread struct hwtw_timer got[100];
	uint8_t seen[INSTANCES * IMMORTAL] = {};
	struct hwtw_list list = { .timers = (uintptr_t)got };
	unsigned int i;

	do {
		list.nr = ARRAY_SIZE(got);
		if (hwtw_call(fds[instance], HWTW_IOC_LIST, &list)) {
			ADD(wrong.list);
			return;
		}
		for (i = 0; i < list.nr; i++)
			if (got[i].user_data < INSTANCES * IMMORTAL)
				seen[got[i].user_data]++;
	} while (list.cursor);
	for (i = 0; i < INSTANCES * IMMORTAL; i++)
		WRONG(missed, seen[i] != (timers[i].instance == instance));
	ADD(count.walks);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct rnd *r = &w->rnd;

	while (!LOAD(stop_workers)) {
		switch (rnd_below(r, 64)) {
		case 0 ... 27:
			do_arm(w);
			break;
		case 28 ... 41:
			do_cancel(w);
			break;
		case 42 ... 52:
			do_rearm(w);
			break;
		case 53 ... 57:
			do_query(w);
			break;
		case 58 ... 60:
			do_batch(w);
			break;
		case 61:
			if (features & HWTW_FEATURE_LIST && !rnd_below(r, 20))
				do_list(w);
			break;
		case 62:
			pin_to(rnd_below(r, 8));
			break;
		case 63:
			sleep_ns(rnd_below(r, TICK / 4));
		}
	}
	return NULL;
}

/* --- Readers --- */

static void take_record(const struct hwtw_event *ev, uint64_t now)
{
	struct timer *t;
	uint64_t next, old;

	if (ev->user_data >= TIMERS || ev->flags) {
		ADD(wrong.odd);
		return;
	}
	t = &timers[ev->user_data];
	if (ev->expires_ns > now)
		ADD(wrong.early);
	__atomic_store_n(&t->read_id, ev->id, __ATOMIC_RELAXED);
	if (t->kind == PERIODIC) {
		next = ev->expires_ns + (ev->overruns + 1ULL) * t->interval;
		old = __atomic_load_n(&t->expires, __ATOMIC_RELAXED);
		while (old < next &&
		       !__atomic_compare_exchange_n(&t->expires, &old, next, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		__atomic_add_fetch(&t->periods, ev->overruns + 1, __ATOMIC_RELAXED);
		return;
	}
	if (ev->overruns)
		ADD(wrong.odd);
	t->expires = ev->expires_ns;
	ADD(count.gone[t->instance]);
	__atomic_add_fetch(&t->reads, 1, __ATOMIC_RELEASE);
}

/* All that there is. */
static void drain(int fd, unsigned int batch)
{
	struct hwtw_event ev[100];
	int i, n;

	while ((n = take(fd, ev, batch)) > 0) {
		uint64_t now = now_ns();

		for (i = 0; i < n; i++)
			take_record(&ev[i], now);
		__atomic_add_fetch(&count.read, n, __ATOMIC_RELAXED);
	}
	if (n != -EAGAIN)
		ADD(wrong.read);
}

/* By edges, or by levels. */
static void *reader_main(void *arg)
{
	bool edge = (uintptr_t)arg & 1;
	struct epoll_event ev[INSTANCES];
	int ep = epoll_create1(0), i, n;

	for (i = 0; i < INSTANCES; i++) {
		ev[0] = (struct epoll_event) {
			.events = EPOLLIN | (edge ? EPOLLET : 0),
			.data.fd = fds[i],
		};
		epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev[0]);
	}
	while (!LOAD(stop_readers)) {
		n = epoll_wait(ep, ev, INSTANCES, 50);
		for (i = 0; i < n; i++)
			drain(ev[i].data.fd, edge ? 100 : 7);
	}
	close(ep);
	return NULL;
}

/* --- What comes and goes meanwhile --- */

static void *plugger_main(void *arg)
{
	struct rnd r = { (uintptr_t)arg };
	int cpus = sysconf(_SC_NPROCESSORS_CONF), cpu;
	char path[80];

	pin_to(0);
	while (cpus > 1 && !LOAD(stop_workers)) {
		cpu = 1 + rnd_below(&r, cpus - 1);
		snprintf(path, sizeof(path), CPU_ONLINE, cpu);
		count.plugs += !put(path, "0");
		sleep_ns(rnd_below(&r, 50 * NSEC_PER_MSEC));
		put(path, "1");
		sleep_ns(rnd_below(&r, 300 * NSEC_PER_MSEC));
	}
	return NULL;
}

/* Instances that are closed with timers of all sorts. */
static void *closer_main(void *arg)
{
	struct rnd r = { (uintptr_t)arg };
	struct hwtw_event ev[4];
	int fd, i, nr;

	while (!LOAD(stop_workers)) {
		fd = hwtw_open(O_NONBLOCK);
		if (fd < 0)
			continue;
		nr = rnd_below(&r, 400);
		for (i = 0; i < nr; i++) {
			struct hwtw_timer t = some_time(&r);

			if (i % 50 == 0)
				pin_to(rnd_below(&r, 8));
			hwtw_call(fd, HWTW_IOC_ARM, &t);
		}
		take(fd, ev, 4);
		close(fd);
		count.instances++;
	}
	return NULL;
}

/* --- The module --- */

static int unload(void)
{
	int i, err = 0;

	/* The last reference of a closed file may take a moment to go. */
	for (i = 0; i < 1000; i++) {
		err = syscall(SYS_delete_module, "hwtw", O_NONBLOCK) ? -errno : 0;
		if (err != -EAGAIN && err != -EBUSY)
			break;
		sleep_ns(NSEC_PER_MSEC);
	}
	return err;
}

static int load(void)
{
	int fd = open(MODULE, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return err;
}

/* --- The storm --- */

FIXTURE(storm) {
	struct worker worker[WORKERS];
	pthread_t reader[READERS], plugger, closer;
};

FIXTURE_SETUP(storm)
{
	timers = mmap(NULL, TIMERS * sizeof(*timers), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, timers);
}

FIXTURE_TEARDOWN(storm)
{
	munmap(timers, TIMERS * sizeof(*timers));
}

static int begin(void)
{
	unsigned int i, k;

	/* Zeros again. */
	if (madvise(timers, TIMERS * sizeof(*timers), MADV_DONTNEED))
		return -errno;
	memset(&wrong, 0, sizeof(wrong));
	memset(&count, 0, sizeof(count));
	nr_timers = 0;
	stop_workers = false;
	stop_readers = false;
	for (i = 0; i < INSTANCES; i++) {
		fds[i] = hwtw_open(O_NONBLOCK);
		if (fds[i] < 0)
			return fds[i];
		features = hwtw_features(fds[i]);
		if (hwtw_setup(fds[i], CLOCK_MONOTONIC, i == 1 ? 1 << 16 : 0, ROOM))
			return -EIO;
		for (k = 0; k < IMMORTAL; k++) {
			struct timer *t = &timers[nr_timers];
			int err;

			t->kind = UNTOUCHED;
			t->instance = i;
			pin_to(k);
			err = arm_in(fds[i], 1000 * HOUR_NS, nr_timers++, &t->id);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Timers that ended neither once nor as the records said. */
static uint64_t settle(void)
{
	uint64_t bad = 0;
	uint32_t i;

	for (i = 0; i < nr_timers; i++) {
		struct timer *t = &timers[i];
		int ret;

		if (t->kind == NONE)
			continue;
		if (t->kind == UNTOUCHED) {
			ret = hwtw_cancel(fds[t->instance], t->id);
			bad += ret != HWTW_PENDING || t->reads || t->read_id;
			continue;
		}
		if (!is_over(t)) {
			ret = hwtw_cancel(fds[t->instance], t->id);
			cancelled(t, false, ret > 0 ? 0 : ret);
		}
		if (t->read_id && t->read_id != t->id)
			bad++;
		if (t->kind == ONCE) {
			bad += t->reads + t->cancels != 1;
			bad += t->reads && t->expires != t->deadline;
		} else {
			bad += t->cancels != 1;
			bad += t->periods && t->expires != t->deadline +
						(uint64_t)t->periods * t->interval;
		}
	}
	return bad;
}

/*
 * Guards against all that only happens together (B-28, B-38, B-42, B-43, B-46,
 * B-61, D-16, D-24, D-25, D-26).
 */
TEST_F_TIMEOUT(storm, adds_up, 7200)
{
	uint64_t start = now_ns(), total = seconds() * NSEC_PER_SEC, from = seed();
	unsigned int round, i;

	TH_LOG("HWTW_SEED=%lu", from);
	for (round = 0; round == 0 || now_ns() - start < total; round++) {
		uint64_t end = start + total, now = now_ns();

		if (end > now + ROUND * NSEC_PER_SEC)
			end = now + ROUND * NSEC_PER_SEC;
		ASSERT_EQ(0, begin());
		for (i = 0; i < READERS; i++)
			pthread_create(&self->reader[i], NULL, reader_main,
				       (void *)(uintptr_t)i);
		for (i = 0; i < WORKERS; i++) {
			self->worker[i] = (struct worker) {
				.nr = i, .rnd = { from + round * 100 + i },
			};
			pthread_create(&self->worker[i].thread, NULL, worker_main,
				       &self->worker[i]);
		}
		pthread_create(&self->plugger, NULL, plugger_main, (void *)(from + round));
		pthread_create(&self->closer, NULL, closer_main, (void *)(from + round + 50));

		while (!LOAD(stop_workers) && now_ns() < end)
			sleep_ns(50 * NSEC_PER_MSEC);
		STORE(stop_workers, true);
		for (i = 0; i < WORKERS; i++)
			pthread_join(self->worker[i].thread, NULL);
		pthread_join(self->plugger, NULL);
		pthread_join(self->closer, NULL);
		STORE(stop_readers, true);
		for (i = 0; i < READERS; i++)
			pthread_join(self->reader[i], NULL);
		for (i = 0; i < INSTANCES; i++)
			drain(fds[i], 100);

		EXPECT_EQ(0, settle());
		EXPECT_EQ(0, wrong.arm);
		EXPECT_EQ(0, wrong.cancel);
		EXPECT_EQ(0, wrong.rearm);
		EXPECT_EQ(0, wrong.query);
		EXPECT_EQ(0, wrong.list);
		EXPECT_EQ(0, wrong.read);
		EXPECT_EQ(0, wrong.alive);
		EXPECT_EQ(0, wrong.stranger);
		EXPECT_EQ(0, wrong.early);
		EXPECT_EQ(0, wrong.odd);
		EXPECT_EQ(0, wrong.missed);
		for (i = 0; i < INSTANCES; i++) {
			struct hwtw_event ev;

			EXPECT_EQ(count.per_instance[i], count.gone[i]);
			EXPECT_EQ(-EAGAIN, take(fds[i], &ev, 1));
			/* All of the room is there again, and no more. */
			EXPECT_EQ(0, arm_many(fds[i], ROOM, HOUR_NS, 0, 0, NULL));
			EXPECT_EQ(-ENOSPC, arm_in(fds[i], HOUR_NS, 0, NULL));
			close(fds[i]);
		}
		TH_LOG("round %u: %lu armed, %lu moved, %lu cancelled, %lu read, "
		       "%lu walks, %lu CPUs gone, %lu instances", round,
		       count.armed, count.rearmed, count.cancelled, count.read,
		       count.walks, count.plugs, count.instances);
		if (_metadata->exit_code)
			break;
		ASSERT_EQ(0, unload());
		ASSERT_EQ(0, load());
	}
}

static void *opener_main(void *arg)
{
	uint64_t *opened = arg;
	int fd;

	while (!LOAD(stop_workers)) {
		fd = hwtw_open(O_NONBLOCK);
		if (fd >= 0) {
			(*opened)++;
			arm_in(fd, 0, 0, NULL);
			arm_in(fd, TICK, 0, NULL);
			arm_in(fd, HOUR_NS, 0, NULL);
			close(fd);
			sleep_ns(5 * NSEC_PER_MSEC);
		} else if (fd != -ENOENT && fd != -ENODEV && fd != -ENXIO) {
			ADD(wrong.odd);
		}
	}
	return NULL;
}

/* Guards against a module that goes while it is opened, or leaves timers behind. */
TEST_F_TIMEOUT(storm, reload, 7200)
{
	uint64_t opened = 0, end = now_ns() + seconds() * NSEC_PER_SEC / 8;
	unsigned int loads = 0, busy = 0;
	pthread_t thread;
	int err;

	memset(&wrong, 0, sizeof(wrong));
	stop_workers = false;
	pthread_create(&thread, NULL, opener_main, &opened);
	while (now_ns() < end || !loads || !opened) {
		err = syscall(SYS_delete_module, "hwtw", O_NONBLOCK) ? -errno : 0;
		if (err) {
			busy++;
			ASSERT_TRUE(err == -EAGAIN || err == -EBUSY);
			continue;
		}
		ASSERT_EQ(0, load());
		loads++;
	}
	STORE(stop_workers, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, wrong.odd);
	TH_LOG("%u loads, %u refused, %lu opened", loads, busy, opened);
}

/*
 * Guards against one lock for all CPUs (B-52): timers armed on different ones
 * are in different wheels, of which each has its own. The number of the wheel
 * is part of the id.
 */
TEST_F(storm, wheel_per_cpu)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), fd = hwtw_open(O_NONBLOCK), i;
	uint64_t id[2], seen = 0, wheel;

	ASSERT_LE(0, fd);
	if (cpus < 2)
		SKIP(return, "one CPU");
	for (i = 0; i < cpus && i < 64; i++) {
		ASSERT_EQ(0, pin_to(i));
		ASSERT_EQ(0, arm_in(fd, HOUR_NS, 0, &id[0]));
		ASSERT_EQ(0, arm_in(fd, HOUR_NS, 0, &id[1]));
		wheel = id[0] >> 26 & 1023;
		EXPECT_EQ(wheel, id[1] >> 26 & 1023);
		EXPECT_GT(64, wheel);
		EXPECT_EQ(0, seen & 1ULL << wheel);
		seen |= 1ULL << wheel;
	}
	close(fd);
}

TEST_HARNESS_MAIN
