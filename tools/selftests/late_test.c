// SPDX-License-Identifier: GPL-2.0
/*
 * How late /dev/hwtw is, and that it is never early, to the nanosecond.
 *
 * For a VM whose clock counts its instructions and skips idle time
 * (tools/vm/run --icount): there, an hour costs half a minute and a clock that
 * is late is the module's fault. Elsewhere the limits mean nothing; -1 in
 * HWTW_LATE_ALLOWANCE_NS switches them off and leaves "never early".
 */
#include "hwtw_test.h"

#include <sys/epoll.h>
#include <sys/time.h>

/*
 * "At most one tick late plus the time the kernel needs to run the expiry":
 * what it needs from the interrupt on until the reader has the record and the
 * time, on a machine of one instruction per nanosecond. That is the interrupt,
 * the way out of idle, the softirq, the wake-up, epoll_wait() and read(): 17 us
 * at worst in Debian's 6.12, and room for kernels that do more.
 */
#define ALLOWANCE_NS		(100 * NSEC_PER_USEC)
/* The same where up to some hundred others expire at the same moment (126 us). */
#define CROWD_ALLOWANCE_NS	(500 * NSEC_PER_USEC)
/* The same while another instance expires a million timers (86 us). */
#define STORM_ALLOWANCE_NS	(1000 * NSEC_PER_USEC)

/* Timeouts of the harness are in seconds of the VM, hours pass quickly. */
#define LONG_TIMEOUT		40000

static uint64_t allowed(uint64_t ns)
{
	const char *s = getenv("HWTW_LATE_ALLOWANCE_NS");

	return s && !strcmp(s, "-1") ? HWTW_TIME_MAX_NS / 2 : ns;
}

/* One timer and what has to come of it. */
struct due {
	uint64_t low, high;	/* its deadline is in there */
	uint64_t late;		/* most it may be late, without the allowance */
	uint64_t delay;		/* as armed, to tell which one it was */
	uint32_t reads;
};

struct instance {
	int fd;
	clockid_t clock;
	uint64_t tick;
	struct due *due;
	unsigned int nr, max;
};

/* What was wrong, counted, with the worst case. */
struct verdict {
	uint64_t early, late, other_deadline, strange, records;
	uint64_t worst_ns;	/* beyond what it may be late */
	uint64_t worst_delay, worst_tick;
};

static int instance_open(struct instance *in, clockid_t clock, uint64_t tick,
			 unsigned int max)
{
	*in = (struct instance) {
		.clock = clock,
		.tick = tick,
		.max = max,
		.fd = hwtw_open(O_NONBLOCK),
		.due = calloc(max, sizeof(*in->due)),
	};
	if (in->fd < 0)
		return in->fd;
	return hwtw_setup(in->fd, clock, tick, 0);
}

static int instance_arm(struct instance *in, uint64_t time_ns, uint32_t flags)
{
	struct due *d = &in->due[in->nr];
	int ret;

	if (in->nr == in->max)
		return -ENOSPC;
	d->delay = time_ns;
	d->low = d->high = time_ns;
	if (!(flags & HWTW_TIMER_ABS))
		d->low += clock_ns(in->clock);
	ret = hwtw_arm(in->fd, time_ns, flags, in->nr, NULL);
	if (!(flags & HWTW_TIMER_ABS)) {
		d->high += clock_ns(in->clock);
		d->late = in->tick;
	} else {
		/* A deadline on a boundary pays no tick. */
		d->late = time_ns % in->tick ? in->tick : 0;
	}
	in->nr++;
	return ret;
}

/* Judges what one read() returned. */
static void judge(struct instance *in, const struct hwtw_event *ev, int n,
		  uint64_t allowance, struct verdict *v)
{
	uint64_t now = clock_ns(in->clock), late;
	struct due *d;
	int i;

	for (i = 0; i < n; i++) {
		v->records++;
		if (ev[i].user_data >= in->nr || ev[i].flags ||
		    ev[i].overruns) {
			v->strange++;
			continue;
		}
		d = &in->due[ev[i].user_data];
		d->reads++;
		if (ev[i].expires_ns < d->low || ev[i].expires_ns > d->high)
			v->other_deadline++;
		if (now < ev[i].expires_ns) {
			v->early++;
			continue;
		}
		late = now - ev[i].expires_ns;
		late = late > d->late ? late - d->late : 0;
		v->late += late > allowed(allowance);
		if (late > v->worst_ns) {
			v->worst_ns = late;
			v->worst_delay = d->delay;
			v->worst_tick = in->tick;
		}
	}
}

static uint64_t unread(const struct instance *in)
{
	uint64_t bad = 0;
	unsigned int i;

	for (i = 0; i < in->nr; i++)
		bad += in->due[i].reads != 1;
	return bad;
}

#define EXPECT_GOOD(v) do {						\
	EXPECT_EQ(0, (v)->early);					\
	EXPECT_EQ(0, (v)->late);					\
	EXPECT_EQ(0, (v)->other_deadline);				\
	EXPECT_EQ(0, (v)->strange);					\
	TH_LOG("%lu records; the worst came %lu ns after its tick (delay or deadline %lu, tick %lu)", \
	       (v)->records, (v)->worst_ns, (v)->worst_delay,		\
	       (v)->worst_tick);					\
} while (0)

/*
 * The delays at which wheels went wrong: around a tick, around every power of
 * 64 ticks (levels, rotations), and round numbers. Returns how many.
 */
static unsigned int delays_of(uint64_t tick, uint64_t min, uint64_t max,
			      uint64_t *delay)
{
	static const uint64_t round[] = {
		0, 1, 2, 999, NSEC_PER_USEC, NSEC_PER_MSEC, NSEC_PER_SEC,
		60 * NSEC_PER_SEC, 600 * NSEC_PER_SEC, HOUR_NS,
	};
	struct rnd r = { tick };
	unsigned int nr = 0, k;
	uint64_t span, all[160];
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(round); i++)
		all[n++] = round[i];
	for (span = tick, k = 0; span <= max && k < 6; span *= 64, k++) {
		all[n++] = span - 1;
		all[n++] = span;
		all[n++] = span + 1;
		all[n++] = span - tick;
		all[n++] = span + tick;
		all[n++] = 2 * span;		/* more rotations: D-6 */
		all[n++] = 3 * span - 1;
		all[n++] = span * 3 / 2;	/* B-06 */
		all[n++] = span + rnd_below(&r, span);
		all[n++] = span + rnd_below(&r, 63 * span);
	}
	for (i = 0; i < n; i++)
		if (all[i] >= min && all[i] <= max)
			delay[nr++] = all[i];
	return nr;
}

/* Arms one delay in all ways that matter. Returns 0 or -errno. */
static int arm_ways(struct instance *in, uint64_t delay)
{
	uint64_t at = clock_ns(in->clock) + delay;
	uint64_t edge = tick_of(at, in->tick) * in->tick;
	int ret = instance_arm(in, delay, 0);

	ret = ret ? ret : instance_arm(in, at, HWTW_TIMER_ABS);
	ret = ret ? ret : instance_arm(in, edge - 1, HWTW_TIMER_ABS);
	ret = ret ? ret : instance_arm(in, edge, HWTW_TIMER_ABS);
	return ret ? ret : instance_arm(in, edge + 1, HWTW_TIMER_ABS);
}

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

FIXTURE(late) {
	int ep;
	struct verdict v;
};

FIXTURE_SETUP(late)
{
	/* What the boot left to do in the background takes the CPU for 30 ms. */
	if (now_ns() < 10 * NSEC_PER_SEC)
		sleep_ns(10 * NSEC_PER_SEC - now_ns());
	self->ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->ep);
}

FIXTURE_TEARDOWN(late)
{
	close(self->ep);
}

/* Guards against any short delay that is early, or pays too many ticks (B-09). */
TEST_F_TIMEOUT(late, short_delays, LONG_TIMEOUT)
{
	struct hwtw_event ev[8];
	uint64_t delay[160];
	unsigned int shift, c, i, nr, way;
	struct instance in;

	for (shift = 16; shift <= 30; shift++) {
		for (c = 0; c < ARRAY_SIZE(clocks); c++) {
			ASSERT_EQ(0, instance_open(&in, clocks[c],
						   1ULL << shift, 1000));
			nr = delays_of(in.tick, 0, 80 * NSEC_PER_MSEC, delay);
			/* One at a time: nothing else to blame. */
			for (i = 0; i < nr * 2; i++) {
				way = i & 1;
				ASSERT_EQ(0, instance_arm(&in, way ?
					delay[i / 2] + clock_ns(in.clock) :
					delay[i / 2],
					way ? HWTW_TIMER_ABS : 0));
				if (!delay[i / 2])
					in.due[in.nr - 1].late = 0;
				ASSERT_EQ(1, readable(in.fd, 20000));
				judge(&in, ev, take(in.fd, ev, 8), ALLOWANCE_NS,
				      &self->v);
			}
			EXPECT_EQ(0, unread(&in));
			close(in.fd);
			free(in.due);
		}
	}
	EXPECT_GOOD(&self->v);
}

/* Guards against a boundary of a tick, of a bucket or of a level (D-5, D-7). */
TEST_F_TIMEOUT(late, boundaries, LONG_TIMEOUT)
{
	struct hwtw_event ev[8];
	unsigned int shift, i;
	struct instance in;
	uint64_t edge;

	for (shift = 16; shift <= 30; shift++) {
		ASSERT_EQ(0, instance_open(&in, CLOCK_MONOTONIC, 1ULL << shift,
					   1000));
		for (i = 0; i < 130; i++) {
			/* Every level-0 slot twice, a tick or two ahead. */
			edge = tick_of(now_ns(), in.tick) * in.tick;
			edge += in.tick * (1 + (i & 1));
			ASSERT_EQ(0, instance_arm(&in, edge - (i % 3 == 1),
						  HWTW_TIMER_ABS));
			ASSERT_EQ(1, readable(in.fd, 20000));
			judge(&in, ev, take(in.fd, ev, 8), ALLOWANCE_NS,
			      &self->v);
		}
		EXPECT_EQ(0, unread(&in));
		close(in.fd);
		free(in.due);
	}
	EXPECT_GOOD(&self->v);
}

/* Reads all instances until @until_ns has passed. */
static void read_instances(int ep, struct instance *in, unsigned int nr,
			   uint64_t until_ns, struct verdict *v)
{
	struct hwtw_event ev[64];
	struct epoll_event e[64];
	uint64_t now;
	unsigned int i;
	int n, k;

	for (i = 0; i < nr; i++) {
		e[0] = (struct epoll_event) { .events = EPOLLIN, .data.u32 = i };
		epoll_ctl(ep, EPOLL_CTL_ADD, in[i].fd, &e[0]);
	}
	while ((now = now_ns()) < until_ns) {
		n = epoll_wait(ep, e, 64, (until_ns - now) / NSEC_PER_MSEC + 1);
		for (k = 0; k < n; k++) {
			i = e[k].data.u32;
			judge(&in[i], ev, take(in[i].fd, ev, 64),
			      CROWD_ALLOWANCE_NS, v);
		}
	}
}

/* Guards against every level of every tick, up to an hour (B-03, B-05, B-06). */
TEST_F_TIMEOUT(late, long_delays, LONG_TIMEOUT)
{
	enum { NR = 15 * ARRAY_SIZE(clocks) };
	struct instance in[NR];
	uint64_t delay[160], start, hour = HOUR_NS;
	unsigned int i, k, nr;

	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, instance_open(&in[i], clocks[i % 2],
					   1ULL << (16 + i / 2), 1000));
	}
	/* None of them may be due before all are armed. */
	start = now_ns();
	for (i = 0; i < NR; i++) {
		nr = delays_of(in[i].tick, 80 * NSEC_PER_MSEC, hour, delay);
		for (k = 0; k < nr; k++) {
			ASSERT_EQ(0, arm_ways(&in[i], delay[k]));
		}
	}
	TH_LOG("armed in %lu us", (now_ns() - start) / 1000);
	if (allowed(0) == 0)
		ASSERT_LT(now_ns() - start, 80 * NSEC_PER_MSEC);
	read_instances(self->ep, in, NR, now_ns() + hour + 3 * NSEC_PER_SEC,
		       &self->v);
	for (i = 0; i < NR; i++) {
		EXPECT_EQ(0, unread(&in[i]));
	}
	EXPECT_GOOD(&self->v);
}

/* Guards against lateness that grows with every turn (B-13, netty #1959). */
TEST_F_TIMEOUT(late, no_drift, LONG_TIMEOUT)
{
	enum { NR = 5000 };
	struct hwtw_event ev[4];
	struct instance in;
	uint64_t at;
	int i;

	ASSERT_EQ(0, instance_open(&in, CLOCK_MONOTONIC, 1 << 16, NR));
	at = now_ns();
	for (i = 0; i < NR; i++) {
		at += 10 * NSEC_PER_MSEC + i;
		ASSERT_EQ(0, instance_arm(&in, at, HWTW_TIMER_ABS));
		ASSERT_EQ(1, readable(in.fd, 20000));
		judge(&in, ev, take(in.fd, ev, 4), ALLOWANCE_NS, &self->v);
	}
	EXPECT_EQ(0, unread(&in));
	EXPECT_GOOD(&self->v);
}

/* Guards against a timer moved again and again that comes at an old time. */
TEST_F_TIMEOUT(late, rearm_keeps_time, LONG_TIMEOUT)
{
	struct hwtw_event ev[4];
	struct rnd r = { 14 };
	struct instance in;
	uint64_t id, at = 0;
	int i, k;

	ASSERT_EQ(0, instance_open(&in, CLOCK_MONOTONIC, 1 << 18, 1));
	in.nr = 1;
	for (i = 0; i < 400; i++) {
		ASSERT_EQ(0, arm_in(in.fd, HOUR_NS, 0, &id));
		/* Later and earlier, and as idle timeouts do: ever later. */
		for (k = 0; k < 20; k++) {
			at = now_ns() + (i & 1 ? (k + 1) * NSEC_PER_MSEC :
					 rnd_below(&r, 1ULL << (14 + k)) +
					 100 * NSEC_PER_USEC);
			ASSERT_EQ(HWTW_PENDING, rearm_at(in.fd, id, at));
		}
		in.due[0] = (struct due) {
			.low = at, .high = at, .late = in.tick, .delay = at,
		};
		ASSERT_EQ(1, readable(in.fd, 20000));
		judge(&in, ev, take(in.fd, ev, 4), ALLOWANCE_NS, &self->v);
	}
	EXPECT_EQ(400, self->v.records);
	EXPECT_GOOD(&self->v);
}

/* Guards against periods counted from when they were read (B-58, D-23). */
TEST_F_TIMEOUT(late, periodic, LONG_TIMEOUT)
{
	struct verdict *v = &self->v;
	struct hwtw_event ev[4];
	struct instance in;
	unsigned int i, n;

	ASSERT_EQ(0, instance_open(&in, CLOCK_MONOTONIC, 1 << 18, 1));
	if (!(hwtw_features(in.fd) & HWTW_FEATURE_PERIODIC))
		SKIP(return, "no periodic timers");
	in.nr = 1;
	for (i = 0; i < 7; i++) {
		/* From one tick, hardly read in time, to some hundred. */
		uint64_t interval = (in.tick << i * 3 / 2) + i * 4321;
		uint64_t at = now_ns() + interval / 3;
		struct hwtw_timer t = {
			.time_ns = at,
			.interval_ns = interval,
			.flags = HWTW_TIMER_ABS,
		};

		ASSERT_EQ(0, hwtw_call(in.fd, HWTW_IOC_ARM, &t));
		for (n = 0; n < 300; n++) {
			in.due[0] = (struct due) {
				.low = at, .high = at, .late = in.tick,
				.delay = interval,
			};
			ASSERT_EQ(1, readable(in.fd, 20000));
			ASSERT_EQ(1, take(in.fd, ev, 4));
			/* A tick of lateness may hide a period of one tick. */
			EXPECT_GE(i ? 0 : 1, ev[0].overruns);
			at += (ev[0].overruns + 1) * interval;
			ev[0].overruns = 0;
			judge(&in, ev, 1, ALLOWANCE_NS, v);
		}
		ASSERT_LT(0, hwtw_cancel(in.fd, t.id));
	}
	EXPECT_EQ(2100, v->records);
	EXPECT_GOOD(v);
}

/* --- Earlier than what is pending --- */

struct sleeper {
	struct instance *in;
	int how;		/* 0: read(), 1: poll(), 2: epoll, 3: EPOLLET */
	int ep;
	struct verdict *v;
};

static void *sleeper_main(void *arg)
{
	struct sleeper *s = arg;
	struct epoll_event e;
	struct hwtw_event ev[2];

	if (s->how == 1)
		readable(s->in->fd, 20000);
	else if (s->how > 1)
		epoll_wait(s->ep, &e, 1, 20000);
	judge(s->in, ev, take(s->in->fd, ev, 2), ALLOWANCE_NS, s->v);
	return NULL;
}

/* Guards against a wheel asleep until its first timer (B-15, B-16, D-12). */
TEST_F_TIMEOUT(late, earlier_than_pending, LONG_TIMEOUT)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct instance in;
	struct sleeper s;
	pthread_t thread;
	int how, cpu;

	for (how = 0; how < 4; how++) {
		for (cpu = 0; cpu < 2; cpu++) {
			pin_to(0);
			ASSERT_EQ(0, instance_open(&in, CLOCK_MONOTONIC,
						   1 << 20, 4));
			fcntl(in.fd, F_SETFL, 0);
			ASSERT_EQ(0, instance_arm(&in, HOUR_NS, 0));
			s = (struct sleeper) {
				.in = &in, .how = how, .v = &self->v,
				.ep = epoll_create1(0),
			};
			e.events = how == 3 ? EPOLLIN | EPOLLET : EPOLLIN;
			epoll_ctl(s.ep, EPOLL_CTL_ADD, in.fd, &e);
			pthread_create(&thread, NULL, sleeper_main, &s);
			sleep_ns(5 * NSEC_PER_SEC);
			pin_to(cpu);
			ASSERT_EQ(0, instance_arm(&in, 5 * NSEC_PER_MSEC, 0));
			pthread_join(thread, NULL);
			EXPECT_EQ(1, in.due[1].reads);
			close(in.fd);
			close(s.ep);
		}
	}
	EXPECT_EQ(8, self->v.records);
	EXPECT_GOOD(&self->v);
}

/* --- Clock steps --- */

static void step_clock(int64_t seconds)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	tv.tv_sec += seconds;
	settimeofday(&tv, NULL);
}

/* Guards against wall-clock steps moving other clocks' timers (B-65). */
TEST_F_TIMEOUT(late, clock_step, LONG_TIMEOUT)
{
	struct instance in[2];
	unsigned int i, k;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, instance_open(&in[i], clocks[i], 1 << 20, 10));
		for (k = 1; k < 10; k++) {
			ASSERT_EQ(0, instance_arm(&in[i],
						  k * 100 * NSEC_PER_MSEC, 0));
		}
	}
	sleep_ns(50 * NSEC_PER_MSEC);
	step_clock(3600);
	read_instances(self->ep, in, 2, now_ns() + 300 * NSEC_PER_MSEC,
		       &self->v);
	step_clock(-7200);
	read_instances(self->ep, in, 2, now_ns() + 300 * NSEC_PER_MSEC,
		       &self->v);
	step_clock(3600);
	read_instances(self->ep, in, 2, now_ns() + 500 * NSEC_PER_MSEC,
		       &self->v);
	EXPECT_EQ(0, unread(&in[0]));
	EXPECT_EQ(0, unread(&in[1]));
	EXPECT_GOOD(&self->v);
}

/* Guards against wall-clock timers that miss a step, or fire after one back. */
TEST_F_TIMEOUT(late, realtime_step, LONG_TIMEOUT)
{
	uint64_t now, id, allowance = allowed(ALLOWANCE_NS);
	struct hwtw_event ev[2];
	int fd = hwtw_open(O_NONBLOCK);

	if (!(hwtw_features(fd) & HWTW_FEATURE_REALTIME))
		SKIP(return, "no CLOCK_REALTIME");
	ASSERT_EQ(0, hwtw_setup(fd, CLOCK_REALTIME, 1 << 20, 0));
	/* Forward: due at once. */
	ASSERT_EQ(0, arm_at(fd, clock_ns(CLOCK_REALTIME) + HOUR_NS, 1, &id));
	step_clock(2 * 3600);
	now = now_ns();
	EXPECT_EQ(1, readable(fd, 20000));
	/* The CPU that set the clock looks at its timers with the next jiffy. */
	EXPECT_GE((1 << 20) + 10 * NSEC_PER_MSEC + allowance, now_ns() - now);
	EXPECT_EQ(1, take(fd, ev, 2));
	/* Back: later by what the clock lost. */
	now = clock_ns(CLOCK_REALTIME);
	ASSERT_EQ(0, arm_at(fd, now + 10 * NSEC_PER_SEC, 2, &id));
	step_clock(-60);
	EXPECT_EQ(0, readable(fd, 30000));
	EXPECT_EQ(HWTW_PENDING, hwtw_query(fd, id, NULL));
	EXPECT_EQ(1, readable(fd, 60000));
	EXPECT_EQ(1, take(fd, ev, 2));
	EXPECT_LE(ev[0].expires_ns, clock_ns(CLOCK_REALTIME));
	EXPECT_GE(ev[0].expires_ns + (1 << 20) + allowance,
		  clock_ns(CLOCK_REALTIME));
	step_clock(-2 * 3600 + 60);
	close(fd);
}

/*
 * Guards against a clock set back that makes new timers due, late, or overtake
 * others, with so many of them that the wheel has to follow in pieces.
 */
TEST_F_TIMEOUT(late, realtime_back, LONG_TIMEOUT)
{
	enum { NR = 100000 };
	uint64_t start, deadline, id, allowance = allowed(ALLOWANCE_NS);
	struct hwtw_event *ev = calloc(NR + 1, sizeof(*ev));
	struct hwtw_op *ops = calloc(1000, sizeof(*ops));
	int i, k, fd = hwtw_open(O_NONBLOCK);

	ASSERT_EQ(0, hwtw_setup(fd, CLOCK_REALTIME, 1 << 20, 0));
	start = clock_ns(CLOCK_REALTIME);
	for (i = 0; i < NR; i += 1000) {
		for (k = 0; k < 1000; k++)
			ops[k] = arm_op(start + 10 * NSEC_PER_SEC + (i + k) / 10 * NSEC_PER_MSEC,
					HWTW_TIMER_ABS, i + k);
		ASSERT_EQ(0, hwtw_submit(fd, ops, 1000, NULL));
	}
	sleep_ns(5 * NSEC_PER_SEC);
	/* Twice in a row: the second time it may not be through with the first. */
	step_clock(-3600);
	step_clock(-3600);
	for (i = 1; i <= 3; i++) {
		deadline = clock_ns(CLOCK_REALTIME) + i * 100 * NSEC_PER_MSEC;
		ASSERT_EQ(0, arm_at(fd, deadline, NR, &id));
		EXPECT_EQ(0, readable(fd, 0));
		ASSERT_EQ(1, readable(fd, 20000));
		EXPECT_LE(deadline, clock_ns(CLOCK_REALTIME));
		EXPECT_GE(deadline + (1 << 20) + allowance, clock_ns(CLOCK_REALTIME));
		EXPECT_EQ(1, take(fd, ev, 2));
		EXPECT_EQ(id, ev[0].id);
	}
	EXPECT_EQ(0, readable(fd, 10000));
	/* And forward again, over all of them. */
	step_clock(7200 + 10 + NR / 10000 + 1);
	ASSERT_EQ(NR, take_all(fd, ev, NR));
	for (i = 0; i < NR; i++)
		ASSERT_EQ(i, ev[i].user_data);
	step_clock(-10 - NR / 10000 - 1);
	free(ops);
	free(ev);
	close(fd);
}

/* Guards against periods that a step of the clock skips, or repeats. */
TEST_F_TIMEOUT(late, realtime_periodic, LONG_TIMEOUT)
{
	uint64_t first, interval = 100 * NSEC_PER_MSEC;
	struct hwtw_timer t = { .interval_ns = interval, .flags = HWTW_TIMER_ABS };
	int i, fd = hwtw_open(O_NONBLOCK);
	struct hwtw_event ev;

	ASSERT_EQ(0, hwtw_setup(fd, CLOCK_REALTIME, 1 << 20, 0));
	first = clock_ns(CLOCK_REALTIME) + interval;
	t.time_ns = first;
	ASSERT_EQ(0, hwtw_call(fd, HWTW_IOC_ARM, &t));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(1, take_all(fd, &ev, 1));
		EXPECT_EQ(first + i * interval, ev.expires_ns);
	}
	/* Nothing before the clock has come to the next period again. */
	step_clock(-5);
	EXPECT_EQ(0, readable(fd, 4000));
	ASSERT_EQ(1, take_all(fd, &ev, 1));
	EXPECT_EQ(first + 3 * interval, ev.expires_ns);
	EXPECT_LE(ev.expires_ns, clock_ns(CLOCK_REALTIME));
	step_clock(60);
	ASSERT_EQ(1, take_all(fd, &ev, 1));
	EXPECT_EQ(first + 4 * interval, ev.expires_ns);
	EXPECT_LE(59 * NSEC_PER_SEC / interval, ev.overruns);
	EXPECT_GE(60 * NSEC_PER_SEC / interval, ev.overruns);
	step_clock(-55);
	close(fd);
}

/*
 * Guards against periods that are counted one by one while nobody reads, drift
 * when somebody does, or hold up another instance.
 */
TEST_F_TIMEOUT(late, thousand_periods, LONG_TIMEOUT)
{
	enum { NR = 1000, OTHERS = 100 };
	static uint64_t next[NR];
	struct hwtw_event ev[256];
	struct hwtw_stats st;
	uint64_t start, records = 0, wrong = 0;
	int i, n, others = 0, fd = hwtw_open(O_NONBLOCK), other = hwtw_open(O_NONBLOCK);

	start = now_ns();
	for (i = 0; i < NR; i++) {
		struct hwtw_timer t = {
			.user_data = i,
			.time_ns = start + HWTW_TICK_DEFAULT_NS + i,
			.interval_ns = HWTW_TICK_DEFAULT_NS,
			.flags = HWTW_TIMER_ABS,
		};

		next[i] = t.time_ns;
		ASSERT_EQ(0, hwtw_call(fd, HWTW_IOC_ARM, &t));
	}
	sleep_ns(5 * NSEC_PER_SEC);
	ASSERT_EQ(0, hwtw_call(fd, HWTW_IOC_STATS, &st));
	EXPECT_EQ(NR, st.expired);
	EXPECT_EQ(NR, st.unread);
	EXPECT_GE(10, st.runs);

	for (i = 1; i <= OTHERS; i++)
		ASSERT_EQ(0, arm_in(other, i * 10 * HWTW_TICK_DEFAULT_NS, i, NULL));
	while (others < OTHERS) {
		n = take(fd, ev, 256);
		for (i = 0; i < n; i++) {
			uint64_t *at = &next[ev[i].user_data];

			wrong += ev[i].expires_ns != *at || *at > now_ns();
			*at += (1 + ev[i].overruns) * HWTW_TICK_DEFAULT_NS;
		}
		records += n > 0 ? n : 0;
		n = take(other, ev, 256);
		others += n > 0 ? n : 0;
	}
	EXPECT_EQ(0, wrong);
	/* A second of it, at a good part of what was asked for. */
	EXPECT_LE(100 * NR, records);
	ASSERT_EQ(0, hwtw_call(other, HWTW_IOC_STATS, &st));
	EXPECT_GE(1, st.late_ticks);
	ASSERT_EQ(0, hwtw_call(fd, HWTW_IOC_STATS, &st));
	EXPECT_EQ(NR, st.pending + st.unread);
	EXPECT_EQ(records, st.delivered);
	EXPECT_EQ(NR, st.armed);
	close(fd);
	close(other);
}

/* --- Idle, and crowds --- */

#define TRACING "/sys/kernel/tracing/"

/* hwtw's hrtimers that the trace saw expire, by address, and how often. */
struct wakeups {
	char timer[8][32];
	unsigned int nr[8];
	unsigned int timers, all, lines;
};

static int count_wakeups(struct wakeups *w)
{
	char line[512], timer[32], function[64], *p;
	FILE *f = fopen(TRACING "trace", "r");
	unsigned int i;

	if (!f)
		return -errno;
	memset(w, 0, sizeof(*w));
	while (fgets(line, sizeof(line), f)) {
		p = strstr(line, "hrtimer_expire_entry: ");
		if (!p || sscanf(p, "hrtimer_expire_entry: hrtimer=%31s function=%63s",
				 timer, function) != 2)
			continue;
		w->lines++;
		if (strncmp(function, "hwtw", 4))
			continue;
		w->all++;
		for (i = 0; i < w->timers; i++)
			if (!strcmp(w->timer[i], timer))
				break;
		if (i == 8)
			continue;
		if (i == w->timers)
			strcpy(w->timer[w->timers++], timer);
		w->nr[i]++;
	}
	fclose(f);
	return 0;
}

/* Guards against a wheel that turns while nothing is due (B-53, pulsar #6414). */
TEST_F_TIMEOUT(late, idle_hour, LONG_TIMEOUT)
{
	static const uint64_t ticks[] = { 1 << 16, 1 << 20, 1 << 30 };
	struct instance in[ARRAY_SIZE(ticks)], empty, nobody;
	struct hwtw_timer t = { .interval_ns = 1 << 20 };
	struct wakeups w;
	unsigned int i, expected = ARRAY_SIZE(ticks);

	put(TRACING "tracing_on", "0");
	put(TRACING "current_tracer", "nop");
	put(TRACING "buffer_size_kb", "16384");
	put(TRACING "trace", "");
	if (put(TRACING "events/timer/hrtimer_expire_entry/enable", "1"))
		SKIP(return, "no tracefs");
	ASSERT_EQ(0, instance_open(&empty, CLOCK_MONOTONIC, 1 << 16, 1));
	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		ASSERT_EQ(0, instance_open(&in[i], CLOCK_MONOTONIC, ticks[i],
					   1));
	}
	ASSERT_EQ(0, instance_open(&nobody, CLOCK_MONOTONIC, 1 << 20, 1));
	put(TRACING "tracing_on", "1");
	/* A period of which nobody reads the first record rests too. */
	if (hwtw_features(nobody.fd) & HWTW_FEATURE_PERIODIC) {
		t.time_ns = NSEC_PER_SEC;
		ASSERT_EQ(0, hwtw_call(nobody.fd, HWTW_IOC_ARM, &t));
		expected++;
	}
	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		ASSERT_EQ(0, instance_arm(&in[i], HOUR_NS, 0));
	}
	read_instances(self->ep, in, ARRAY_SIZE(ticks),
		       now_ns() + HOUR_NS + 2 * NSEC_PER_SEC, &self->v);
	put(TRACING "tracing_on", "0");
	ASSERT_EQ(0, count_wakeups(&w));
	put(TRACING "events/timer/hrtimer_expire_entry/enable", "0");
	put(TRACING "buffer_size_kb", "1");
	for (i = 0; i < w.timers; i++) {
		TH_LOG("%u wake-ups by %s", w.nr[i], w.timer[i]);
		EXPECT_GT(10, w.nr[i]);
	}
	/* One each, or something was not counted; none of the empty one. */
	EXPECT_EQ(expected, w.timers) {
		TH_LOG("%u timers in the trace", w.lines);
	}
	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		EXPECT_EQ(0, unread(&in[i]));
	}
	EXPECT_GOOD(&self->v);
}

/* Guards against a million expiries that hold up everybody else (B-57, D-30). */
TEST_F_TIMEOUT(late, million_in_one_tick, LONG_TIMEOUT)
{
	enum { NR = 1000000, OTHERS = 400, STEP = 4096 };
	struct hwtw_event *ev = calloc(STEP, sizeof(*ev));
	struct verdict *v = &self->v;
	struct instance in;
	int crowd = hwtw_open(O_NONBLOCK), have, i, n;
	uint64_t at, before;

	ASSERT_EQ(0, instance_open(&in, CLOCK_MONOTONIC, 1 << 16, OTHERS));
	at = now_ns() + 20 * NSEC_PER_SEC;
	ASSERT_EQ(0, arm_many(crowd, NR, at, HWTW_TIMER_ABS, 0, NULL));
	ASSERT_GT(at, now_ns());
	/* One every half millisecond, from before until well after. */
	for (i = 0; i < OTHERS; i++) {
		ASSERT_EQ(0, instance_arm(&in, at - 10 * NSEC_PER_MSEC +
					  i * 500 * NSEC_PER_USEC,
					  HWTW_TIMER_ABS));
	}
	while (v->records < OTHERS && readable(in.fd, 20000))
		judge(&in, ev, take(in.fd, ev, 64), STORM_ALLOWANCE_NS, v);
	EXPECT_EQ(0, unread(&in));
	/* The crowd itself is late by the time it takes, but complete. */
	before = now_ns();
	for (have = 0; have < NR && readable(crowd, 20000); have += n) {
		n = take(crowd, ev, STEP);
		ASSERT_LT(0, n);
	}
	EXPECT_EQ(NR, have);
	TH_LOG("read the crowd in %lu us", (now_ns() - before) / 1000);
	EXPECT_GOOD(v);
}

TEST_HARNESS_MAIN
