// SPDX-License-Identifier: GPL-2.0-only
/*
 * What timers cost: hwtw and its peers, by the same workloads.
 *
 * Made for a VM whose clock counts instructions (tools/vm/run --icount): there
 * a nanosecond is an instruction, and the same run twice gives the same
 * figures. tools/bench/run starts it and shows what it prints; --help of that
 * explains the workloads.
 *
 * Only the operations are timed. Their arguments are made before, and what
 * reading the clock costs is taken off. Expiry happens while the program
 * sleeps, so there the time is that of the CPU less what it was idle.
 *
 * Prints a line for each result: an object of JSON, or words behind tabs:
 *   "#"     where it is
 *   "no"    peer, workload, timers, reason: not measured
 *   "more"  peer, workload, timers, what, value: what JSON has no key for
 *   "late"  peer, workload, timers, upper bound in ns, count: a histogram
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/hwtw.h>

#include "bench.h"

#define MAX_LIST	8
#define MAX_ROUNDS	9
/* Delays are uniform over so many ticks. */
#define DELAY_TICKS	60000
/* If only some of the timers are measured. */
#define SAMPLE		50000
/* With more timers than this not all is measured. */
#define MANY		1000000
/* Single calls, and descriptors, per measurement. */
#define CALLS		10000
#define DESCRIPTORS	1000
/* Timers to measure memory with. */
#define MEMORY_TIMERS	500000
/* More would take minutes; what one of them costs does not change. */
#define MAX_WAKEUPS	200000
/* Passes of re-arming at random that one sweep of stale claims pays for. */
#define RANDOM_PASSES	4
/* How often the observer wants the CPU. */
#define OBSERVER_NS	50000
/* Buckets of level 2 of the wheels have so many ticks. */
#define BOUNDARY_TICKS	4096
/* Of one long delay, and of being idle. */
#define DAY_NS		(86400 * NSEC_PER_SEC)
#define HOUR_NS		(3600 * NSEC_PER_SEC)
/* No command of hwtw. */
#define IOC_EMPTY	_IO(HWTW_IOC_TYPE, 0xff)
#define NONE		(-1.0)

static const struct peer *const peers[] = {
	&hwtw_peer, &hwtw_ioctl_peer, &timerfd_peer, &posix_peer, &uring_peer,
	&libevent_peer, &libevent_common_peer, &libuv_peer, &hashed_peer, &linked_peer,
};

#define NR_PEERS	(sizeof(peers) / sizeof(peers[0]))

static struct {
	uint32_t n[MAX_LIST];
	int nr_n;
	uint32_t batch[MAX_LIST];
	int nr_batch;
	int rounds;
	uint32_t herd, idle_s;
	const char *peers, *workloads;
	bool counting;			/* only the steps */
	int steps, step;

	bool instructions;		/* a nanosecond is an instruction */
	double clock_cost;		/* of one reading, in ns */
	double background;		/* busy share of an idle machine */
	bool has_idle;
	double idle_busy;		/* work of an idle machine in idle_s */
	uint64_t idle_interrupts;

	uint64_t *deadline;
	uint32_t *order;		/* shuffled */
} bench;

void cannot(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(3);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = to_timespec(ns);

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

void *alloc(size_t size)
{
	void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		cannot("no memory for %zu bytes", size);
	return p;
}

void release(void *p, size_t size)
{
	munmap(p, size ? size : 1);
}

static uint64_t draw_below(uint64_t limit)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ((unsigned __int128)state * limit) >> 64;
}

/* The order that shuffles @n timers. */
static void shuffle(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = draw_below(i + 1);

		bench.order[i] = bench.order[j];
		bench.order[j] = i;
	}
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Files of /proc, read without allocating anything. */

static char proc_text[256 * 1024];

static const char *read_proc(const char *path)
{
	size_t len = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	while ((n = read(fd, proc_text + len, sizeof(proc_text) - 1 - len)) > 0)
		len += n;
	close(fd);
	proc_text[len] = 0;
	return proc_text;
}

static bool write_proc(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) > 0;
	close(fd);
	return done;
}

static uint64_t sum_after(const char *text, const char *key)
{
	uint64_t sum = 0;

	while (text && (text = strstr(text, key))) {
		text += strlen(key);
		sum += strtoull(text, NULL, 10);
	}
	return sum;
}

/* Pages that wait on the lists of the CPUs are free as well. */
uint64_t memory_free(void)
{
	const char *text;

	/* Folds the counters of the CPUs, if we may. */
	write_proc("/proc/sys/vm/stat_refresh", "1");
	text = read_proc("/proc/zoneinfo");
	if (!text)
		cannot("/proc/zoneinfo: %s", strerror(errno));
	return (sum_after(text, " nr_free_pages ") + sum_after(text, " count:")) *
	       sysconf(_SC_PAGESIZE);
}

uint64_t memory_size(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

/*
 * How long all CPUs together were idle; false if nobody tells. /proc/timer_list
 * does, but lists all hrtimers first, and takes the square of their number.
 */
static bool idle_ns(uint64_t *ns)
{
	const char *text = read_proc("/proc/hwtw_bench_idle");

	*ns = text ? strtoull(text, NULL, 10) * 1000 : 0;
	return text;
}

/* A stretch of time of which only the busy part counts. Not cheap to start. */
struct stretch {
	uint64_t start, idle;
};

static struct stretch stretch_begin(void)
{
	struct stretch s;

	idle_ns(&s.idle);
	s.start = now_ns();
	return s;
}

static double stretch_busy(const struct stretch *s, uint64_t *elapsed)
{
	uint64_t end = now_ns(), idle;

	idle_ns(&idle);
	*elapsed = end - s->start;
	return (double)*elapsed - (idle - s->idle) - bench.clock_cost;
}

/* Busy, but for what goes on anyway. */
static double stretch_work(const struct stretch *s)
{
	uint64_t elapsed;
	double busy = stretch_busy(s, &elapsed);

	return busy - bench.background * elapsed;
}

/* What the measuring itself costs */

/* @n turns of a loop of two instructions. */
static void spin(uint64_t n)
{
#if defined(__x86_64__)
	asm volatile("1: dec %0; jnz 1b" : "+r" (n) : : "cc");
#elif defined(__aarch64__)
	asm volatile("1: subs %0, %0, #1; b.ne 1b" : "+r" (n) : : "cc");
#else
	while (n--)
		asm volatile("");
#endif
}

static void calibrate_clock(void)
{
	uint64_t start, best = UINT64_MAX;

	for (int round = 0; round < 5; round++) {
		uint64_t took;

		start = now_ns();
		for (int i = 0; i < 1000; i++)
			now_ns();
		took = now_ns() - start;
		if (took < best)
			best = took;
	}
	bench.clock_cost = best / 1001.0;

	best = UINT64_MAX;
	for (int round = 0; round < 5; round++) {
		uint64_t took;

		start = now_ns();
		spin(1000000);
		took = now_ns() - start;
		if (took < best)
			best = took;
	}
	/* A timer interrupt may have come in between. */
	bench.instructions = best > 1990000 && best < 2020000;
}

/* Busy time of 100 turns of @work instructions and a sleep. */
static double busy_with(uint64_t work)
{
	struct stretch s = stretch_begin();

	for (int i = 0; i < 100; i++) {
		spin(work / 2);
		sleep_ns(10000000);
	}
	return stretch_work(&s);
}

/*
 * Whether the idle time of the kernel is good to measure by: work that is put
 * between sleeps must come out as what it is.
 */
static void calibrate_idle(void)
{
	struct stretch s;
	uint64_t elapsed, idle;
	double more, busy;

	if (!idle_ns(&idle))
		return;
	s = stretch_begin();
	sleep_ns(60 * NSEC_PER_SEC);
	busy = stretch_busy(&s, &elapsed);
	bench.background = busy / elapsed;

	busy = busy_with(100000);
	more = busy_with(300000) - busy;
	bench.has_idle = !bench.instructions ||
			 (more > 19800000 && more < 20200000);
	printf("more\tbench\tcheck\t0\t20000000 instructions came out as\t%.0f\n", more);
	printf("more\tbench\tcheck\t0\tinstructions of an idle machine in a second\t%.0f\n",
	       bench.background * 1e9);
}

/* Results */

/**
 * struct result - what is known about one workload
 * @batch: 0: does not apply
 * @n: timers
 * @instr: per operation, NONE: unknown, as all that follows
 * @bytes: per timer
 * @longest: longest time that others had to wait for the CPU
 * @late: 50, 99 and 99.9 per cent, worst
 */
struct result {
	const char *workload, *peer;
	uint32_t batch, n;
	double instr, bytes, longest, late[4];
};

#define RESULT(w, p, b, count)	{						\
	.workload = w, .peer = p, .batch = b, .n = count,			\
	.instr = NONE, .bytes = NONE, .longest = NONE, .late = { NONE, NONE, NONE, NONE } }

static void show(const struct result *r)
{
	printf("{\"workload\":\"%s\",\"peer\":\"%s\"", r->workload, r->peer);
	if (r->batch)
		printf(",\"batch\":%" PRIu32, r->batch);
	printf(",\"n\":%" PRIu32, r->n);
	if (r->instr != NONE)
		printf(",\"instr_per_op\":%.1f", r->instr);
	if (r->bytes != NONE)
		printf(",\"bytes_per_timer\":%.1f", r->bytes);
	if (r->longest != NONE)
		printf(",\"longest_run_ns\":%.0f", r->longest);
	if (r->late[0] != NONE)
		printf(",\"late_p50_ns\":%.0f,\"late_p99_ns\":%.0f", r->late[0], r->late[1]);
	if (r->late[3] != NONE)
		printf(",\"late_max_ns\":%.0f", r->late[3]);
	printf("}\n");
	if (r->late[0] != NONE)
		printf("more\t%s\t%s\t%" PRIu32 "\tlate_p999_ns\t%.0f\n",
		       r->peer, r->workload, r->n, r->late[2]);
	fflush(stdout);
}

static void show_cost(const char *workload, const struct peer *p, uint32_t batch, uint32_t n,
		      double instr)
{
	struct result r = RESULT(workload, p->name, batch, n);

	r.instr = instr;
	show(&r);
}

/* Lateness */

bool watching;
static double *late;
static uint32_t nr_late, max_late;
static double late_least;

static void watch(uint32_t n)
{
	late = alloc(n * sizeof(*late));
	nr_late = 0;
	max_late = n;
	late_least = 0;
	watching = true;
}

static void late_note(double ns)
{
	if (ns < late_least)
		late_least = ns;
	if (nr_late < max_late)
		late[nr_late++] = ns;
}

void expired_at(uint32_t timer, uint64_t now)
{
	late_note((double)now - bench.deadline[timer]);
}

/* Fills in the lateness of @r, and shows the histogram if asked. */
static void watched(struct result *r, bool histogram)
{
	static const double share[] = { 0.5, 0.99, 0.999 };

	watching = false;
	if (!nr_late)
		return;
	qsort(late, nr_late, sizeof(*late), compare_double);
	for (int i = 0; i < 3; i++)
		r->late[i] = late[(uint32_t)((nr_late - 1) * share[i])];
	r->late[3] = late[nr_late - 1];
	if (late_least < 0)
		printf("more\t%s\t%s\t%" PRIu32 "\tearly by ns\t%.0f\n", r->peer, r->workload,
		       r->n, -late_least);
	if (histogram) {
		uint32_t i = 0;

		/* Steps of a quarter of a power of two. */
		for (int q = 4 * 9; i < nr_late; q++) {
			double bound = exp2(q / 4.0);
			uint32_t count = 0;

			for (; i < nr_late && late[i] <= bound; i++)
				count++;
			if (count)
				printf("late\t%s\t%s\t%" PRIu32 "\t%.0f\t%" PRIu32 "\n",
				       r->peer, r->workload, r->n, bound, count);
		}
	}
	release(late, max_late * sizeof(*late));
}

/* Others on the machine */

static bool others_stop;

static pthread_t start_thread(void *(*run)(void *), void *arg, int priority)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	if (pthread_create(&thread, &attr, run, arg))
		cannot("no thread of real-time priority: become root");
	pthread_attr_destroy(&attr);
	return thread;
}

static double observed;

/*
 * A thread that comes before all others and wants the CPU again and again. How
 * long it has to wait is how long the kernel does not let go.
 */
static void *observer(void *arg)
{
	uint64_t next = now_ns();

	(void)arg;
	observed = 0;
	while (!__atomic_load_n(&others_stop, __ATOMIC_RELAXED)) {
		struct timespec ts;
		uint64_t now;

		next += OBSERVER_NS;
		ts = to_timespec(next);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		now = now_ns();
		if (now - next > observed)
			observed = now - next;
		if (now - next > OBSERVER_NS)
			next = now;
	}
	return NULL;
}

static double neighbour_late;

/*
 * Somebody else's timer of one tick: another instance of hwtw beside hwtw, a
 * timerfd beside the others. The same thread priority for all, so that it is
 * the kernel it waits for.
 */
static void *neighbour(void *arg)
{
	bool hwtw = arg;
	uint64_t first = now_ns() / TICK_NS * TICK_NS + 2 * TICK_NS, expected = first;
	int fd = hwtw ? hwtw_open() : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	neighbour_late = 0;
	if (hwtw) {
		struct hwtw_timer t = {
			.time_ns = first,
			.interval_ns = TICK_NS,
			.flags = HWTW_TIMER_ABS,
		};

		if (ioctl(fd, HWTW_IOC_ARM, &t))
			cannot("ARM: %s", strerror(errno));
	} else {
		struct itimerspec its = { to_timespec(TICK_NS), to_timespec(first) };

		if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &its, NULL))
			cannot("timerfd_settime: %s", strerror(errno));
	}
	while (!__atomic_load_n(&others_stop, __ATOMIC_RELAXED)) {
		struct hwtw_event ev;
		uint64_t count, now;

		if (hwtw) {
			if (read(fd, &ev, sizeof(ev)) != sizeof(ev))
				cannot("read: %s", strerror(errno));
			if (ev.expires_ns != expected)
				cannot("a periodic timer missed a period");
			count = ev.overruns + 1;
		} else if (read(fd, &count, sizeof(count)) < 0) {
			cannot("read: %s", strerror(errno));
		}
		now = now_ns();
		if (now - expected > neighbour_late)
			neighbour_late = now - expected;
		expected += count * TICK_NS;
	}
	close(fd);
	return NULL;
}

struct others {
	pthread_t observer, neighbour;
};

static struct others others_begin(const struct peer *p)
{
	bool hwtw = p == &hwtw_peer || p == &hwtw_ioctl_peer;
	struct others o;

	others_stop = false;
	o.observer = start_thread(observer, NULL, 99);
	o.neighbour = start_thread(neighbour, hwtw ? (void *)1 : NULL, 98);
	sleep_ns(10 * TICK_NS);
	/* What starting them took is not to be seen. */
	observed = 0;
	neighbour_late = 0;
	return o;
}

static void others_end(struct others *o)
{
	__atomic_store_n(&others_stop, true, __ATOMIC_RELAXED);
	pthread_join(o->neighbour, NULL);
	pthread_join(o->observer, NULL);
}

/* The other's lateness is a result of its own. */
static void show_other(const char *workload, const struct peer *p, uint32_t n)
{
	struct result r = RESULT(workload, p->name, 0, n);

	r.late[3] = neighbour_late;
	show(&r);
}

/* Operations */

/* The cost of one run of prepared operations. */
static double timed(const struct peer *p, enum op op, uint32_t nr, uint32_t batch)
{
	uint64_t start = now_ns(), took;

	p->run(op, nr, batch);
	took = now_ns() - start;
	if (p->settle)
		p->settle(op, nr);
	return took - bench.clock_cost;
}

/* An operation on the timers @order[from] to @order[to], or @from to @to. Returns the cost of all. */
static double operate(const struct peer *p, enum op op, const uint32_t *order, uint32_t from,
		      uint32_t to, uint32_t batch)
{
	double cost = 0;

	while (from < to) {
		uint32_t nr = to - from < CHUNK ? to - from : CHUNK;

		for (uint32_t i = 0; i < nr; i++) {
			uint32_t timer = order ? order[from + i] : from + i;

			p->prepare(op, i, timer, bench.deadline[timer]);
		}
		cost += timed(p, op, nr, batch);
		from += nr;
	}
	return cost;
}

/* Creating, where it is needed, is an operation of its own. Returns the cost of all. */
static double create(const struct peer *p, uint32_t n)
{
	return p->creates ? operate(p, CREATE, NULL, 0, n, 1) : 0;
}

/* The batch to use where just one is. */
static uint32_t best_batch(const struct peer *p)
{
	return p->batches ? 256 : 1;
}

/* What a result says of it. */
static uint32_t batch_told(const struct peer *p, uint32_t batch)
{
	return p->batches ? batch : p->call;
}

/* Far enough ahead that nothing expires while @n timers are measured. */
static uint64_t safe_start(uint32_t n)
{
	return now_ns() + 20 * NSEC_PER_SEC + n * 50000ULL;
}

static uint64_t draw_deadline(uint64_t start)
{
	return start + draw_below(DELAY_TICKS * TICK_NS);
}

static void draw_deadlines(uint32_t from, uint32_t to)
{
	uint64_t start = safe_start(to);

	for (uint32_t i = from; i < to; i++)
		bench.deadline[i] = draw_deadline(start);
}

static uint32_t sample_of(const struct peer *p, enum op op, uint32_t n, uint32_t batch)
{
	uint32_t most = p->sample ? p->sample(op, n) : 0;
	uint32_t sample = n;

	if (!p->whole || batch < 256)
		sample = n < SAMPLE ? n : SAMPLE;
	return most && most < sample ? most : sample;
}

/* Arm, re-arm and cancel */

enum basic { B_CREATE_ARM, B_ARM, B_LATER, B_RANDOM, B_CANCEL, NR_BASIC };

static const char *const basic_name[] = {
	"create_arm", "arm", "rearm_later", "rearm_random", "cancel",
};

static void measure_basic(const struct peer *p, uint32_t n, uint32_t batch, double *cost)
{
	uint32_t sample = sample_of(p, ARM, n, batch);
	double created;
	int passes = p->whole ? RANDOM_PASSES : 1;

	p->open(n);
	created = create(p, n) / n;
	/* Those that are not measured are pending before. */
	draw_deadlines(0, n);
	operate(p, ARM, NULL, 0, n - sample, best_batch(p));
	cost[B_ARM] = operate(p, ARM, NULL, n - sample, n, batch) / sample;
	cost[B_CREATE_ARM] = p->creates ? created + cost[B_ARM] : 0;

	shuffle(n);
	sample = sample_of(p, REARM, n, batch);
	for (uint32_t i = 0; i < sample; i++) {
		uint64_t *deadline = &bench.deadline[bench.order[i]];

		*deadline = draw_deadline(*deadline + 1);
	}
	cost[B_LATER] = operate(p, REARM, bench.order, 0, sample, batch) / sample;

	cost[B_RANDOM] = 0;
	for (int pass = 0; pass < passes; pass++) {
		uint64_t start = safe_start(n);

		for (uint32_t i = 0; i < sample; i++)
			bench.deadline[bench.order[i]] = draw_deadline(start);
		cost[B_RANDOM] += operate(p, REARM, bench.order, 0, sample, batch) /
				  sample / passes;
	}

	sample = sample_of(p, CANCEL, n, batch);
	cost[B_CANCEL] = operate(p, CANCEL, bench.order, 0, sample, batch) / sample;
}

/* The first round only warms up, unless there is just one: of many timers that is enough. */
static double median(double *round, int nr)
{
	int warm = nr > 1;

	qsort(round + warm, nr - warm, sizeof(*round), compare_double);
	return round[warm + (nr - warm) / 2];
}

static int rounds_of(uint32_t n, bool slow)
{
	return n >= SAMPLE || slow ? 1 : bench.rounds + 1;
}

static void run_basic(const struct peer *p, uint32_t n)
{
	int batches = p->batches ? bench.nr_batch : 1;

	for (int b = 0; b < batches; b++) {
		double round[NR_BASIC][MAX_ROUNDS + 1], cost[NR_BASIC];
		uint32_t batch = p->batches ? bench.batch[b] : 1;
		int rounds = rounds_of(n, p->sample);

		for (int r = 0; r < rounds; r++) {
			measure_basic(p, n, batch, cost);
			for (int w = 0; w < NR_BASIC; w++)
				round[w][r] = cost[w];
			/* The end of the process is quicker than the last close. */
			if (b < batches - 1 || r < rounds - 1)
				p->close();
		}
		for (int w = 0; w < NR_BASIC; w++)
			if (w != B_CREATE_ARM || p->creates)
				show_cost(basic_name[w], p, batch_told(p, batch), n,
					  median(round[w], rounds));
	}
}

/* Expiry */

/*
 * Deadlines for @n timers that come in clusters of @batch, each due in one tick
 * but anywhere in it; the ticks are uniform, and each timer is armed at random.
 */
static void draw_clusters(uint32_t n, uint32_t batch, uint64_t start)
{
	uint64_t tick = 0;

	shuffle(n);
	for (uint32_t i = 0; i < n; i++) {
		if (i % batch == 0)
			tick = start + draw_below(DELAY_TICKS) * TICK_NS;
		bench.deadline[bench.order[i]] = tick - draw_below(TICK_NS);
	}
}

static void deliver_all(const struct peer *p, uint32_t n, uint32_t batch)
{
	for (uint32_t done = 0; done < n;)
		done += p->deliver(batch);
}

/* When @n timers that are armed from now on may be due at the earliest. */
static uint64_t first_due(const struct peer *p, uint32_t n)
{
	uint64_t each = p->creates ? 6000 : 3000;

	return (now_ns() + NSEC_PER_SEC + n * each) / TICK_NS * TICK_NS;
}

static void must_be_before(uint64_t start)
{
	if (now_ns() > start - TICK_NS)
		cannot("arming took too long to measure expiry");
}

/*
 * The time that the CPU was not idle from when all timers are armed to when
 * all are read, less what it does in that time anyway. All counts: interrupts,
 * cascades, waking the reader, system calls, what libraries do.
 */
static double measure_expiry(const struct peer *p, uint32_t n, uint32_t batch, uint32_t cluster)
{
	uint64_t start;
	struct stretch s;

	p->open(n);
	create(p, n);
	start = first_due(p, n);
	draw_clusters(n, cluster, start);
	operate(p, ARM, NULL, 0, n, best_batch(p));
	must_be_before(start);

	s = stretch_begin();
	deliver_all(p, n, batch);
	/* Few timers may cost less than what goes on anyway varies by. */
	return fmax(stretch_work(&s), 0) / n;
}

static void run_expire(const struct peer *p, uint32_t n)
{
	int batches = p == &hwtw_peer ? bench.nr_batch : 1;

	for (int b = 0; b < batches; b++) {
		uint32_t batch = p == &hwtw_peer ? bench.batch[b] : best_batch(p);
		/* The others get the same deadlines as the largest batch. */
		uint32_t cluster = p == &hwtw_peer ? batch : 256;
		double round[MAX_ROUNDS + 1];
		int rounds = rounds_of(n, p->sample);

		if (n / cluster > MAX_WAKEUPS)
			continue;
		for (int r = 0; r < rounds; r++) {
			round[r] = measure_expiry(p, n, batch, cluster);
			if (b < batches - 1 || r < rounds - 1)
				p->close();
		}
		show_cost("expire", p, batch_told(p, batch), n, median(round, rounds));
	}
}

/* Each timer has a tick of its own, as far as there are enough; and how late that is. */
static void run_scattered(const struct peer *p, uint32_t n)
{
	struct result r = RESULT("expire_scattered", p->name, batch_told(p, best_batch(p)), n);
	uint64_t start;

	r.instr = measure_expiry(p, n, best_batch(p), 1);
	p->close();
	/* Its delays are not those asked for. */
	if (!p->common) {
		p->open(n);
		create(p, n);
		start = first_due(p, n);
		draw_clusters(n, 1, start);
		operate(p, ARM, NULL, 0, n, best_batch(p));
		must_be_before(start);
		watch(n);
		deliver_all(p, n, best_batch(p));
		watched(&r, true);
	}
	show(&r);
}

/* Records that are there: only read(2) is left to measure. */
static void run_read(const struct peer *p, uint32_t n)
{
	for (int b = 0; b < bench.nr_batch; b++) {
		uint64_t start;

		p->open(n);
		memset(bench.deadline, 0, n * sizeof(*bench.deadline));
		operate(p, ARM, NULL, 0, n, 256);
		start = now_ns();
		deliver_all(p, n, bench.batch[b]);
		show_cost("read", p, bench.batch[b], n,
			  (now_ns() - start - bench.clock_cost) / n);
		p->close();
	}
}

/*
 * What a server does: of 100 timeouts 90 are re-armed later, 9 are cancelled
 * and others armed for them, one expires and is armed anew.
 */
static void run_mix(const struct peer *p, uint32_t n)
{
	uint32_t batch = best_batch(p), turns = 40, cycle = n < CHUNK ? n : CHUNK;
	uint32_t rearms, cancels, expiries, at = 0;
	struct stretch s;
	double cost = 0;

	/* It takes its time. */
	if (p->sample && p->sample(REARM, n)) {
		cycle = 100;
		turns = 1;
	}
	rearms = cycle * 90 / 100;
	cancels = cycle * 9 / 100;
	expiries = cycle - rearms - cancels;

	p->open(n);
	create(p, n);
	draw_deadlines(0, n);
	operate(p, ARM, NULL, 0, n, batch);
	shuffle(n);
	for (uint32_t turn = 0; turn < turns; turn++) {
		uint32_t *o = bench.order;
		uint64_t start;

		if (at + cycle > n)
			at = 0;
		start = safe_start(n);
		for (uint32_t i = 0; i < rearms; i++)
			bench.deadline[o[at + i]] = draw_deadline(bench.deadline[o[at + i]] + 1);
		cost += operate(p, REARM, o, at, at + rearms, batch);
		cost += operate(p, CANCEL, o, at + rearms, at + rearms + cancels, batch);
		for (uint32_t i = rearms; i < rearms + cancels; i++)
			bench.deadline[o[at + i]] = draw_deadline(start);
		cost += operate(p, ARM, o, at + rearms, at + rearms + cancels, batch);
		for (uint32_t i = rearms + cancels; i < cycle; i++)
			bench.deadline[o[at + i]] = 0;
		cost += operate(p, REARM, o, at + rearms + cancels, at + cycle, batch);
		s = stretch_begin();
		deliver_all(p, expiries, batch);
		cost += stretch_work(&s);
		start = safe_start(n);
		for (uint32_t i = rearms + cancels; i < cycle; i++)
			bench.deadline[o[at + i]] = draw_deadline(start);
		cost += operate(p, ARM, o, at + rearms + cancels, at + cycle, batch);
		at += cycle;
	}
	show_cost("mix", p, batch_told(p, batch), n, cost / cycle / turns);
}

/* Many at once */

static void draw_herd(uint32_t n, uint64_t start, uint64_t ticks)
{
	for (uint32_t i = 0; i < n; i++)
		bench.deadline[i] = start + draw_below(ticks * TICK_NS) + 1;
}

/* All due within @ticks. First what it costs, then what others feel of it. */
static void run_crowd(const char *workload, const struct peer *p, uint32_t n, uint64_t ticks)
{
	struct result r = RESULT(workload, p->name, batch_told(p, best_batch(p)), n);

	for (int pass = 0; pass < 2; pass++) {
		struct others o;
		struct stretch s;
		uint64_t start;

		p->open(n);
		create(p, n);
		start = first_due(p, n);
		/* A bucket that is one of its own on level 2. */
		if (ticks > 1)
			start = (start / (ticks * TICK_NS) + 1) * ticks * TICK_NS;
		draw_herd(n, start, ticks);
		operate(p, ARM, NULL, 0, n, best_batch(p));
		must_be_before(start);
		if (!pass) {
			s = stretch_begin();
			deliver_all(p, n, best_batch(p));
			r.instr = stretch_work(&s) / n;
			p->close();
			continue;
		}
		/* Delays of a common one are not those asked for. */
		if (!p->common)
			watch(n);
		o = others_begin(p);
		deliver_all(p, n, best_batch(p));
		others_end(&o);
		if (!p->common)
			watched(&r, false);
		r.longest = observed;
	}
	show(&r);
	show_other(ticks > 1 ? "boundary_other" : "herd_other", p, n);
}

static void run_herd(const struct peer *p, uint32_t n)
{
	run_crowd("herd", p, n, 1);
}

static void run_boundary(const struct peer *p, uint32_t n)
{
	run_crowd("boundary", p, n, BOUNDARY_TICKS);
}

static void run_mass_cancel(const struct peer *p, uint32_t n)
{
	struct result r = RESULT("mass_cancel", p->name, batch_told(p, best_batch(p)), n);
	struct others o;

	p->open(n);
	create(p, n);
	draw_deadlines(0, n);
	operate(p, ARM, NULL, 0, n, best_batch(p));
	shuffle(n);
	o = others_begin(p);
	operate(p, CANCEL, bench.order, 0, n, best_batch(p));
	others_end(&o);
	r.longest = observed;
	show(&r);
	show_other("mass_cancel_other", p, n);
}

/* Long delays: from a minute to 30 days, as likely in each power of two. */
static uint64_t draw_long(void)
{
	double span = log2(30.0 * 24 * 60);

	return now_ns() + (uint64_t)(60e9 * exp2(draw_below(1 << 30) * span / (1 << 30)));
}

static void run_long(const struct peer *p, uint32_t n)
{
	static const enum op ops[] = { ARM, REARM, CANCEL };
	uint32_t batch = best_batch(p), sample;
	double cost = 0;

	p->open(n);
	create(p, n);
	for (uint32_t i = 0; i < n; i++)
		bench.deadline[i] = draw_long();
	sample = sample_of(p, ARM, n, batch);
	operate(p, ARM, NULL, 0, n - sample, batch);
	for (uint32_t i = 0; i < n; i++)
		bench.order[i] = n - 1 - i;
	for (int o = 0; o < 3; o++) {
		sample = sample_of(p, ops[o], n, batch);
		if (ops[o] == ARM) {
			cost += operate(p, ARM, NULL, n - sample, n, batch) / sample;
			continue;
		}
		for (uint32_t i = 0; i < sample; i++)
			bench.deadline[bench.order[i]] = draw_long();
		cost += operate(p, ops[o], bench.order, 0, sample, batch) / sample;
	}
	show_cost("long", p, batch_told(p, batch), n, cost);
}

/* Memory of the kernel and of the program */

static void run_memory(const struct peer *p, uint32_t n)
{
	struct result r = RESULT("memory", p->name, batch_told(p, best_batch(p)), n);
	uint64_t before;

	/* A small n is measured several times at once, to be above the noise. */
	int instances = p->creates || n > MEMORY_TIMERS ? 1 : MEMORY_TIMERS / n;

	if (instances > 50)
		instances = 50;
	/* What was there before is freed by RCU. */
	sleep_ns(NSEC_PER_SEC);
	draw_deadlines(0, n);
	before = memory_free();
	for (int i = 0; i < instances; i++) {
		p->open(n);
		create(p, n);
		operate(p, ARM, NULL, 0, n, best_batch(p));
	}
	r.bytes = ((double)before - memory_free()) / n / instances;
	/* The numbers that the program has to know of them. */
	if (p == &hwtw_peer)
		r.bytes -= sizeof(uint64_t);
	show(&r);
}

/* Interrupts of timers so far, of all CPUs. */
static uint64_t interrupts(void)
{
	const char *text = read_proc("/proc/interrupts");
	uint64_t sum = 0;
	char *end;

	text = text ? strstr(text, "LOC:") : NULL;
	if (!text)
		return 0;
	for (text += 4;; text = end) {
		uint64_t n = strtoull(text, &end, 10);

		if (end == text)
			return sum;
		sum += n;
	}
}

/* What goes on in that time anyway. */
static void calibrate_hour(void)
{
	uint64_t elapsed, before = interrupts();
	struct stretch s = stretch_begin();

	sleep_ns(bench.idle_s * NSEC_PER_SEC);
	bench.idle_busy = stretch_busy(&s, &elapsed);
	bench.idle_interrupts = interrupts() - before;
}

/*
 * All timers are far away, from an hour and a half on, but for one: so that
 * programs that have to wake up now and then can do it while they wait.
 */
static void run_idle(const struct peer *p, uint32_t n)
{
	struct result r = RESULT("idle", p->name, batch_told(p, best_batch(p)), n);
	uint64_t span = bench.idle_s * NSEC_PER_SEC, none = bench.idle_interrupts, some, elapsed;
	double share = (double)HOUR_NS / span;
	struct stretch s;

	p->open(n + 1);
	create(p, n + 1);
	for (uint32_t i = 0; i < n; i++)
		bench.deadline[i] = now_ns() + HOUR_NS * 3 / 2 + draw_below(HOUR_NS * 3 / 2);
	operate(p, ARM, NULL, 0, n, best_batch(p));
	bench.deadline[n] = now_ns() + span;
	operate(p, ARM, NULL, n, n + 1, 1);
	some = interrupts();
	s = stretch_begin();
	deliver_all(p, 1, 1);
	r.instr = (stretch_busy(&s, &elapsed) - bench.idle_busy) * share;
	some = interrupts() - some;
	/* Less than it varies by itself. */
	if (r.instr < 0)
		r.instr = 0;
	show(&r);
	printf("more\t%s\tidle\t%" PRIu32 "\twake-ups in an hour\t%.0f\n", p->name, n,
	       some > none ? (some - none) * share : 0);
}

/* What only hwtw has */

static double call(int fd, unsigned long command, struct hwtw_timer *arg)
{
	uint64_t start, took;

	start = now_ns();
	for (uint32_t i = 0; i < CALLS; i++)
		ioctl(fd, command, arg);
	took = now_ns() - start;
	return (took - bench.clock_cost) / CALLS;
}

/* An ioctl of the same descriptor that does not exist, and one that does next to nothing. */
static void run_call(const struct peer *p, uint32_t n)
{
	struct hwtw_info info;
	int fd = hwtw_open();

	show_cost("ioctl_empty", p, 1, n, call(fd, IOC_EMPTY, NULL));
	show_cost("ioctl_info", p, 1, n, call(fd, HWTW_IOC_INFO, (struct hwtw_timer *)&info));
}

/* A descriptor without a timer, or with one. */
static void run_descriptor(const struct peer *p, uint32_t n)
{
	static int fd[DESCRIPTORS];
	uint64_t before;

	(void)n;
	for (uint32_t timers = 0; timers < 2; timers++) {
		struct result r = RESULT("descriptor", p->name, 0, timers);
		struct hwtw_timer t = { .time_ns = HOUR_NS };

		before = memory_free();
		for (int i = 0; i < DESCRIPTORS; i++) {
			fd[i] = hwtw_open();
			if (timers && ioctl(fd[i], HWTW_IOC_ARM, &t))
				cannot("ARM: %s", strerror(errno));
		}
		r.bytes = ((double)before - memory_free()) / DESCRIPTORS;
		for (int i = 0; i < DESCRIPTORS; i++)
			close(fd[i]);
		show(&r);
	}
}

/* In the kernel: tools/bench/kmod */

#define KMOD	"/proc/hwtw_bench"

static void kmod_ask(const char *peer, const char *what, uint32_t n)
{
	char text[64];

	snprintf(text, sizeof(text), "%s %s %" PRIu32, peer, what, n);
	if (!write_proc(KMOD, text))
		cannot("%s: \"%s\": %s", KMOD, text, strerror(errno));
}

/* Prints what the module has measured: workload, batch, operations, ns, bytes. */
static void kmod_show(const char *peer, uint32_t n)
{
	const char *text = read_proc(KMOD);
	uint64_t ops, ns, bytes;
	char workload[32];
	uint32_t batch;
	int len;

	while (text && sscanf(text, "%31s %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 "\n%n",
			      workload, &batch, &ops, &ns, &bytes, &len) == 5) {
		struct result r = RESULT(strdup(workload), peer, batch, n);

		if (ops)
			r.instr = (ns - bench.clock_cost) / ops;
		if (bytes)
			r.bytes = (double)bytes / n;
		show(&r);
		text += len;
	}
}

static void run_kmod(const char *peer, uint32_t n)
{
	kmod_ask(peer, "basic", n);
	kmod_show(peer, n);
}

/* They expire by themselves, in interrupts. */
static void run_kmod_expire(const char *peer, uint32_t n)
{
	struct result r = RESULT("expire", peer, 0, n);
	struct stretch s;

	kmod_ask(peer, "arm", n);
	s = stretch_begin();
	kmod_ask(peer, "wait", n);
	r.instr = fmax(stretch_work(&s), 0) / n;
	show(&r);
}

/*
 * More CPUs: a thread on each arms and cancels on one instance, either its own
 * timers or those that another thread has armed.
 */

#define SHARED_OPS	1000000
#define SHARED_BATCH	256
/* Of which the least counts: a CPU may wait for one that the host does not run. */
#define SHARED_PASSES	3

static int shared_fd;
static uint32_t shared_rounds;
static bool shared_cross;
static struct hwtw_op *shared_box;
static pthread_barrier_t shared_barrier;

static void shared_submit(struct hwtw_op *ops, uint32_t opcode)
{
	struct hwtw_submit s = { .ops = (uintptr_t)ops, .nr = SHARED_BATCH };

	for (uint32_t i = 0; i < SHARED_BATCH; i++)
		ops[i].opcode = opcode;
	if (ioctl(shared_fd, HWTW_IOC_SUBMIT, &s))
		cannot("SUBMIT: %s", strerror(errno));
	for (uint32_t i = 0; i < SHARED_BATCH; i++)
		if (ops[i].result)
			cannot("operation %u of %u: %s", opcode, i, strerror(-ops[i].result));
}

static struct hwtw_op *shared_ops(void)
{
	struct hwtw_op *ops = alloc(SHARED_BATCH * sizeof(*ops));

	for (uint32_t i = 0; i < SHARED_BATCH; i++)
		ops[i].timer.time_ns = draw_deadline(20 * NSEC_PER_SEC);
	return ops;
}

static void *shared_thread(void *arg)
{
	struct hwtw_op *ops = arg;
	uint32_t rounds = shared_rounds;

	pthread_barrier_wait(&shared_barrier);
	while (rounds--) {
		shared_submit(ops, HWTW_OP_ARM);
		if (shared_cross)
			ops = __atomic_exchange_n(&shared_box, ops, __ATOMIC_ACQ_REL);
		shared_submit(ops, HWTW_OP_CANCEL);
	}
	pthread_barrier_wait(&shared_barrier);
	return NULL;
}

/* Contended spinlocks of the whole machine so far, counted by a kprobe. */
static uint64_t contended(void)
{
	const char *text = read_proc("/sys/kernel/tracing/kprobe_profile");

	return sum_after(text, "hwtw_contended ");
}

#define CONTENDED	"/sys/kernel/tracing/events/hwtw/hwtw_contended/"

static bool count_contended(void)
{
	static const char *const probe =
		"p:hwtw/hwtw_contended native_queued_spin_lock_slowpath";

	if (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) && errno != EBUSY)
		return false;
	return write_proc("/sys/kernel/tracing/kprobe_events", probe) &&
	       write_proc(CONTENDED "enable", "0");
}

/* For tools/bench/count.c, which counts instructions from here to the next. */
static void mark(void)
{
#if defined(__x86_64__)
	asm volatile("nopl 0x68777477(%%rax)" : : : "memory");
#endif
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		cannot("no CPU %d", cpu);
}

static void shared_once(const struct peer *p, uint32_t n, int cpus, bool counting)
{
	pthread_t thread[64];

	p->open(n);
	draw_deadlines(0, n);
	/* Each CPU's wheel has as many. */
	for (int i = 0; i < cpus; i++) {
		stay_on(i);
		operate(p, ARM, NULL, (uint64_t)n * i / cpus, (uint64_t)n * (i + 1) / cpus, 256);
	}
	stay_on(0);
	shared_fd = hwtw_fd();
	shared_rounds = SHARED_OPS / 2 / SHARED_BATCH / cpus;
	if (shared_cross) {
		shared_box = shared_ops();
		shared_submit(shared_box, HWTW_OP_ARM);
	}
	pthread_barrier_init(&shared_barrier, NULL, cpus + 1);
	for (int i = 0; i < cpus; i++) {
		pthread_attr_t attr;
		cpu_set_t set;

		pthread_attr_init(&attr);
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
		if (pthread_create(&thread[i], &attr, shared_thread, shared_ops()))
			cannot("no thread on CPU %d", i);
		pthread_attr_destroy(&attr);
	}
	if (!counting)
		mark();
	pthread_barrier_wait(&shared_barrier);
	pthread_barrier_wait(&shared_barrier);
	if (!counting)
		mark();
	for (int i = 0; i < cpus; i++)
		pthread_join(thread[i], NULL);
	p->close();
}

/*
 * Prints lines "cpus", workload, timers, operations; the instructions are
 * counted by QEMU, who has no say here. Contention is counted in another pass.
 */
static void run_shared(const struct peer *p, uint32_t n, int cpus)
{
	bool probe = count_contended();

	for (int cross = 0; cross < 2; cross++) {
		uint64_t before;
		char workload[64];

		shared_cross = cross;
		snprintf(workload, sizeof(workload), "cpus_%d_%s", cpus, cross ? "cross" : "own");
		write_proc(CONTENDED "enable", "0");
		for (int pass = 0; pass < SHARED_PASSES; pass++) {
			shared_once(p, n, cpus, false);
			printf("cpus\t%s\t%" PRIu32 "\t%" PRIu32 "\n", workload, n,
			       shared_rounds * 2 * cpus * SHARED_BATCH);
		}
		if (!probe) {
			printf("no\t%s\t%s\t%" PRIu32 "\tno kprobe to count contention with\n",
			       p->name, workload, n);
			continue;
		}
		write_proc(CONTENDED "enable", "1");
		before = contended();
		shared_once(p, n, cpus, true);
		printf("more\t%s\t%s\t%" PRIu32 "\tcontended in %u calls\t%" PRIu64 "\n",
		       p->name, workload, n, shared_rounds * 2 * cpus, contended() - before);
	}
}

/* The plan */

static void watch_child(pid_t pid, const char *workload, const char *peer, uint32_t n)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		cannot("no process: %s", strerror(errno));
	if (WIFSIGNALED(status))
		printf("no\t%s\t%s\t%" PRIu32 "\tkilled by signal %d\n", peer, workload, n,
		       WTERMSIG(status));
	else if (status)
		printf("no\t%s\t%s\t%" PRIu32 "\tfailed\n", peer, workload, n);
	fflush(stdout);
}

static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *p;

	for (p = list; p && (p = strstr(p, name)); p += len)
		if ((p == list || p[-1] == ',') && (!p[len] || p[len] == ','))
			return true;
	return !list;
}

/* Each measurement has a process of its own, which leaves nothing behind. */
static bool begin(const char *workload, const char *peer, uint32_t n)
{
	pid_t pid;

	if (!listed(bench.peers, peer) || !listed(bench.workloads, workload))
		return false;
	if (bench.counting) {
		bench.steps++;
		return false;
	}
	printf("#\t%d/%d %s, %s, %" PRIu32 " timers\n", ++bench.step, bench.steps, workload,
	       peer, n);
	fflush(stdout);
	pid = fork();
	if (pid)
		watch_child(pid, workload, peer, n);
	return !pid;
}

static void end(void)
{
	fflush(stdout);
	_exit(0);
}

static void plan(const char *workload, void (*run)(const struct peer *p, uint32_t n),
		 const struct peer *p, uint32_t n)
{
	const char *why = p->cannot ? p->cannot(n) : NULL;

	if (!why && !begin(workload, p->name, n))
		return;
	if (why) {
		if (!bench.counting && listed(bench.peers, p->name) &&
		    listed(bench.workloads, workload))
			printf("no\t%s\t%s\t%" PRIu32 "\t%s\n", p->name, workload, n, why);
		return;
	}
	run(p, n);
	end();
}

static void plan_kmod(const char *workload, void (*run)(const char *peer, uint32_t n),
		      const char *peer, uint32_t n)
{
	if (!begin(workload, peer, n))
		return;
	run(peer, n);
	end();
}

static void plan_all(void)
{
	static const char *const kmod[] = { "kernel", "timer_list", "hrtimer" };
	uint32_t last = bench.n[bench.nr_n - 1];
	uint32_t scattered = bench.herd > 10000 ? bench.herd / 10 : bench.herd;

	for (int i = 0; i < bench.nr_n; i++) {
		uint32_t n = bench.n[i];
		/* With few, what goes on anyway is more, and varies by more. */
		bool expire = bench.has_idle && (n >= 10000 || n == last);

		for (unsigned int k = 0; k < NR_PEERS; k++) {
			const struct peer *p = peers[k];

			plan("basic", run_basic, p, n);
			if (p == &hwtw_ioctl_peer) {
				plan("call", run_call, p, n);
				continue;
			}
			plan("memory", run_memory, p, n);
			/* Of very many the others' are told by those above, in minutes less. */
			if (n < MANY || p->whole) {
				plan("mix", run_mix, p, n);
				plan("long", run_long, p, n);
			}
			if (p == &hwtw_peer && n <= MANY)
				plan("read", run_read, p, n);
			if (expire && (n <= MANY || p->whole))
				plan("expire", run_expire, p, n);
		}
		for (unsigned int k = 0; k < 3; k++) {
			plan_kmod("basic", run_kmod, kmod[k], n);
			if (expire && k && n <= MANY)
				plan_kmod("expire", run_kmod_expire, kmod[k], n);
		}
	}
	for (unsigned int k = 0; k < NR_PEERS; k++) {
		const struct peer *p = peers[k];
		uint32_t crowd = p == &timerfd_peer || p == &posix_peer ?
				 bench.herd / 10 : bench.herd;

		if (p == &hwtw_ioctl_peer)
			continue;
		if (bench.has_idle) {
			plan("scattered", run_scattered, p, scattered);
			plan("herd", run_herd, p, crowd);
			plan("boundary", run_boundary, p, crowd);
		}
		plan("mass_cancel", run_mass_cancel, p,
		     p->sample && crowd > 2000 ? 2000 : crowd);
		if (bench.has_idle && bench.idle_s && !p->common) {
			plan("idle", run_idle, p, 1);
			plan("idle", run_idle, p, 100000);
		}
	}
	plan("descriptor", run_descriptor, &hwtw_peer, 1);
}

/* The beginning */

static void prepare_all(void)
{
	struct rlimit limit;
	uint32_t most = bench.herd > 100001 ? bench.herd : 100001;
	struct hwtw_info info;
	char text[32];
	int fd = hwtw_open();

	if (ioctl(fd, HWTW_IOC_INFO, &info))
		cannot("INFO: %s", strerror(errno));
	close(fd);
	if (info.tick_ns != TICK_NS)
		cannot("made for a tick of %llu ns", TICK_NS);
	for (int i = 0; i < bench.nr_n; i++)
		if (bench.n[i] > most)
			most = bench.n[i];
	/* As many descriptors and signals as there is memory for. */
	snprintf(text, sizeof(text), "%u", most + 1024);
	write_proc("/proc/sys/fs/nr_open", text);
	write_proc("/proc/sys/fs/file-max", text);
	limit.rlim_cur = most + 1024;
	limit.rlim_max = most + 1024;
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	limit.rlim_cur = RLIM_INFINITY;
	limit.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_SIGPENDING, &limit);
	/* The observer may have all of the CPU. */
	write_proc("/proc/sys/kernel/sched_rt_runtime_us", "-1");

	bench.deadline = alloc(most * sizeof(*bench.deadline));
	bench.order = alloc(most * sizeof(*bench.order));
}

static void usage(FILE *f)
{
	fputs(
"usage: bench [options]\n"
"\n"
"  -n LIST            how many timers are pending; 1000,10000,100000\n"
"  --batch LIST       operations in one SUBMIT, records in one read; 256,16,1\n"
"  --rounds N         rounds of which the median counts, after one to warm up, up to 50000\n"
"                     timers; 3\n"
"  --herd N           timers of herd, boundary and mass_cancel; 100000\n"
"  --idle SECONDS     how long to be idle; 0: not at all\n"
"  --peers LIST       only these\n"
"  --workloads LIST   only these: basic, call, memory, mix, long, read, expire,\n"
"                     scattered, herd, boundary, mass_cancel, idle, descriptor\n"
"  --cpus             only what more CPUs cost\n"
"  --help             this\n"
"\n"
"tools/bench/run starts it in a VM. It prints a line for each result, see the\n"
"head of bench.c. It measures and does not judge: the exit status is 0, 2 for\n"
"wrong usage, 3 if it could not run.\n", f);
}

static uint32_t number(const char *what, const char *text, char **end,
		       uint32_t least, uint32_t most)
{
	unsigned long n;

	errno = 0;
	n = strtoul(text, end, 10);
	if (errno || *end == text || *text == '-' || n < least || n > most) {
		fprintf(stderr, "bench: %s: %s: must be from %" PRIu32 " to %" PRIu32 "\n",
			what, text, least, most);
		exit(2);
	}
	return n;
}

static uint32_t one_number(const char *what, const char *text, uint32_t least, uint32_t most)
{
	char *end;
	uint32_t n = number(what, text, &end, least, most);

	if (*end) {
		fprintf(stderr, "bench: %s: %s: one number\n", what, text);
		exit(2);
	}
	return n;
}

static int parse_list(const char *what, const char *text, uint32_t *list,
		      uint32_t least, uint32_t most)
{
	int nr = 0;
	char *end;

	for (;;) {
		if (nr == MAX_LIST) {
			fprintf(stderr, "bench: %s: at most %d\n", what, MAX_LIST);
			exit(2);
		}
		list[nr++] = number(what, text, &end, least, most);
		if (!*end)
			return nr;
		if (*end != ',') {
			fprintf(stderr, "bench: %s: %s: numbers with commas between\n",
				what, text);
			exit(2);
		}
		text = end + 1;
	}
}

/* Returns whether only more CPUs are to be measured. */
static bool parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "batch", required_argument, NULL, 'b' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "herd", required_argument, NULL, 'H' },
		{ "idle", required_argument, NULL, 'i' },
		{ "peers", required_argument, NULL, 'p' },
		{ "workloads", required_argument, NULL, 'w' },
		{ "cpus", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *n = "1000,10000,100000", *batch = "256,16,1";
	bool cpus = false;
	int o;

	bench.rounds = 3;
	bench.herd = 100000;
	while ((o = getopt_long(argc, argv, "n:h", options, NULL)) >= 0) {
		switch (o) {
		case 'n':
			n = optarg;
			break;
		case 'b':
			batch = optarg;
			break;
		case 'r':
			bench.rounds = one_number("--rounds", optarg, 1, MAX_ROUNDS);
			break;
		case 'H':
			bench.herd = one_number("--herd", optarg, 1000, 10000000);
			break;
		case 'i':
			bench.idle_s = one_number("--idle", optarg, 0, 3600);
			break;
		case 'p':
			bench.peers = optarg;
			break;
		case 'w':
			bench.workloads = optarg;
			break;
		case 'c':
			cpus = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			fputs("bench: see --help\n", stderr);
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "bench: what is %s? See --help\n", argv[optind]);
		exit(2);
	}
	bench.nr_n = parse_list("-n", n, bench.n, 1000, 10000000);
	bench.nr_batch = parse_list("--batch", batch, bench.batch, 1, CHUNK);
	return cpus;
}

int main(int argc, char **argv)
{
	bool cpus = parse_options(argc, argv);
	struct utsname u = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	uname(&u);
	/* Else khugepaged copies this program's memory while it measures. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	prepare_all();
	if (cpus) {
		run_shared(&hwtw_peer, 100000, sysconf(_SC_NPROCESSORS_ONLN));
		return 0;
	}
	printf("#\tfinding out what measuring costs\n");
	/* The clock of a machine that has just started is still trimmed. */
	sleep_ns(2 * NSEC_PER_SEC);
	calibrate_clock();
	if (!bench.instructions)
		cannot("the clock does not count instructions: run it with tools/bench/run");
	calibrate_idle();
	if (!bench.has_idle)
		printf("no\tbench\texpire\t0\tnobody tells how long the CPU was idle\n");
	printf("more\tbench\tkernel\t0\trelease\t%s\n", u.release);
	if (bench.has_idle && bench.idle_s)
		calibrate_hour();
	bench.counting = true;
	plan_all();
	bench.counting = false;
	plan_all();
	printf("#\tdone\n");
	return 0;
}
