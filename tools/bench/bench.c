// SPDX-License-Identifier: GPL-2.0-only
/*
 * What hwtw costs: instructions per operation, and bytes per timer.
 *
 * Made for a VM whose clock counts instructions (tools/vm/run --icount): there
 * a nanosecond is an instruction, and the same run twice gives the same
 * figures. Elsewhere the figures are nanoseconds.
 *
 * Only the calls are timed. Their arguments are made before, and what reading
 * the clock costs is taken off. Expiry happens while the program sleeps, so
 * there the time is that of the CPU less what it was idle.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/hwtw.h>

#define DEVICE		"/dev/hwtw"
#define NSEC_PER_SEC	1000000000ULL
#define MAX_LIST	8
#define MAX_ROUNDS	32
/* Delays are uniform over so many ticks. */
#define DELAY_TICKS	60000
/* With small batches only so many of the timers are measured. */
#define SAMPLE		50000
/* Single calls, and descriptors, per measurement. */
#define CALLS		10000
#define DESCRIPTORS	1000
/* Memory of a small n is measured on several instances, to be above the noise. */
#define MEMORY_TIMERS	500000
/* More would take minutes; what one of them costs does not change. */
#define MAX_WAKEUPS	10000
/* Passes of re-arming at random that one sweep of stale claims pays for. */
#define RANDOM_PASSES	4
/* No command of hwtw. */
#define IOC_EMPTY	_IO(HWTW_IOC_TYPE, 0xff)

enum { EXIT_OK, EXIT_USAGE = 2, EXIT_CANNOT };

enum workload {
	ARM, REARM_LATER, REARM_RANDOM, CANCEL,
	READ, EXPIRE_READ, EXPIRE_READ_SCATTERED,
	CALL_EMPTY, CALL_INFO, CALL_ARM, CALL_REARM, CALL_CANCEL,
	PENDING, OPEN, OPEN_ONE,
	NR_WORKLOADS
};

/*
 * The rows. A target holds for 100000 timers in batches of 256; that of a call
 * is a multiple of the empty one; that of memory per timer is for 1000000.
 */
static const struct {
	const char *name, *text;
	double target;
} workloads[] = {
	[ARM] = { "arm", "arm", 180 },
	[REARM_LATER] = { "rearm_later", "re-arm to a later time", 110 },
	[REARM_RANDOM] = { "rearm_random", "re-arm at random", 0 },
	[CANCEL] = { "cancel", "cancel", 110 },
	[READ] = { "read", "read what has expired", 0 },
	[EXPIRE_READ] = { "expire_read", "expire, cascade, read", 180 },
	[EXPIRE_READ_SCATTERED] = { "expire_read_scattered",
		"same, wherever due", 0 },
	[CALL_EMPTY] = { "ioctl_empty", "empty ioctl (ENOTTY)", 0 },
	[CALL_INFO] = { "ioctl_info", "INFO", 0 },
	[CALL_ARM] = { "ioctl_arm", "ARM", 2 },
	[CALL_REARM] = { "ioctl_rearm", "REARM", 2 },
	[CALL_CANCEL] = { "ioctl_cancel", "CANCEL", 2 },
	[PENDING] = { "memory_pending", "pending timer", 64 },
	[OPEN] = { "memory_open", "descriptor, nothing armed", 16384 },
	[OPEN_ONE] = { "memory_open_one", "descriptor, one timer", 16384 },
};

#define GROWTH_TARGET	1.2

static struct {
	uint32_t n[MAX_LIST];
	int nr_n;
	uint32_t batch[MAX_LIST];
	int nr_batch;
	int rounds;
	bool json;

	uint64_t tick_ns;
	uint32_t max_n;
	bool instructions;		/* a nanosecond is an instruction */
	double clock_cost;		/* of one reading, in ns */
	double background;		/* busy share of an idle machine */
	bool has_idle;
	bool heading;

	/* Of max_n timers each. */
	struct hwtw_op *ops;
	struct hwtw_timer *timers;
	uint64_t *id, *deadline;
	uint32_t *order;		/* shuffled */
	struct hwtw_event *events;
} bench;

static void __attribute__((noreturn, format(printf, 1, 2)))
cannot(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(EXIT_CANNOT);
}

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
	va_list ap;

	if (bench.json)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	fflush(stdout);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void *alloc(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		cannot("no memory for %" PRIu32 " operations", bench.max_n);
	return p;
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

/* The first round only warms up. */
static double median(const double *round)
{
	double sorted[MAX_ROUNDS];

	memcpy(sorted, round + 1, bench.rounds * sizeof(*sorted));
	qsort(sorted, bench.rounds, sizeof(*sorted), compare_double);
	return sorted[bench.rounds / 2];
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

static uint64_t sum_after(const char *text, const char *key)
{
	uint64_t sum = 0;

	while (text && (text = strstr(text, key))) {
		text += strlen(key);
		sum += strtoull(text, NULL, 10);
	}
	return sum;
}

/* In pages. Those that wait on the lists of the CPUs are free as well. */
static uint64_t pages_free(void)
{
	const char *text;
	int fd;

	/* Folds the counters of the CPUs, if we may. */
	fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, "1", 1) < 0)
			errno = 0;
		close(fd);
	}
	text = read_proc("/proc/zoneinfo");
	if (!text)
		cannot("/proc/zoneinfo: %s", strerror(errno));
	return sum_after(text, " nr_free_pages ") + sum_after(text, " count:");
}

static double bytes_used(uint64_t before, uint64_t after)
{
	return ((double)before - after) * sysconf(_SC_PAGESIZE);
}

/* How long all CPUs together were idle; false if the kernel does not tell us. */
static bool idle_ns(uint64_t *ns)
{
	static const char key[] = ".idle_sleeptime :";
	const char *text = read_proc("/proc/timer_list");

	*ns = sum_after(text, key);
	return text && strstr(text, key);
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
	uint64_t elapsed;
	double busy;

	for (int i = 0; i < 100; i++) {
		spin(work / 2);
		sleep_ns(10000000);
	}
	busy = stretch_busy(&s, &elapsed);
	return busy - bench.background * elapsed;
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
	say("  busy time: 20000000 instructions more between 100 sleeps come out as %.0f,\n"
	    "  a sleep of its own costs %.0f, and an idle machine %.0f a second\n",
	    more, busy / 100 - 100000, bench.background * 1e9);
}

/* Instances and operations */

static int open_instance(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
		cannot("there is no " DEVICE ": load the module: insmod hwtw.ko");
	if (errno == EACCES || errno == EPERM)
		cannot("you may not open " DEVICE " for reading and writing: become root");
	cannot("%s: %s", DEVICE, strerror(errno));
}

/* Submits the first @nr operations in batches and returns what they took. */
static double submit(int fd, uint32_t nr, uint32_t batch)
{
	struct hwtw_submit s = { 0 };
	uint64_t start, took;
	int err = 0;

	start = now_ns();
	for (uint32_t i = 0; i < nr; i += batch) {
		s.ops = (uintptr_t)(bench.ops + i);
		s.nr = nr - i < batch ? nr - i : batch;
		err |= ioctl(fd, HWTW_IOC_SUBMIT, &s);
	}
	took = now_ns() - start;
	if (err)
		cannot("SUBMIT: %s", strerror(errno));
	for (uint32_t i = 0; i < nr; i++)
		if (bench.ops[i].result)
			cannot("operation %u of opcode %u: %s", i,
			       bench.ops[i].opcode,
			       strerror(-bench.ops[i].result));
	return (took - bench.clock_cost) / nr;
}

static void prepare(uint32_t op, uint32_t opcode, uint32_t timer)
{
	bench.ops[op] = (struct hwtw_op) {
		.opcode = opcode,
		.timer = {
			.id = opcode == HWTW_OP_ARM ? 0 : bench.id[timer],
			.user_data = timer,
			.time_ns = bench.deadline[timer],
			.flags = HWTW_TIMER_ABS,
		},
	};
	if (opcode == HWTW_OP_CANCEL) {
		bench.ops[op].timer.time_ns = 0;
		bench.ops[op].timer.flags = 0;
	}
}

/* Far enough ahead that nothing expires while @n timers are measured. */
static uint64_t safe_start(uint32_t n)
{
	return now_ns() + 20 * NSEC_PER_SEC + n * 20000ULL;
}

static uint64_t draw_deadline(uint64_t start)
{
	return start + draw_below(DELAY_TICKS * bench.tick_ns);
}

/* Arms timers @from to @to with their deadlines; returns the cost of each. */
static double arm(int fd, uint32_t from, uint32_t to, uint32_t batch)
{
	double cost;

	for (uint32_t i = from; i < to; i++)
		prepare(i - from, HWTW_OP_ARM, i);
	cost = submit(fd, to - from, batch);
	for (uint32_t i = from; i < to; i++)
		bench.id[i] = bench.ops[i - from].timer.id;
	return cost;
}

/* An instance with timers 0 to @n pending. */
static int open_pending(uint32_t n)
{
	uint64_t start = safe_start(n);
	int fd = open_instance();

	for (uint32_t i = 0; i < n; i++)
		bench.deadline[i] = draw_deadline(start);
	if (n)
		arm(fd, 0, n, 256);
	return fd;
}

/* Arm, re-arm and cancel */

static void measure_batches(uint32_t n, uint32_t batch, double cost[4])
{
	uint32_t sample = batch >= 256 || n < SAMPLE ? n : SAMPLE;
	uint64_t start;
	int fd;

	/* Those that are not measured are pending before. */
	fd = open_pending(n - sample);
	start = safe_start(n);
	for (uint32_t i = n - sample; i < n; i++)
		bench.deadline[i] = draw_deadline(start);
	cost[ARM] = arm(fd, n - sample, n, batch);

	shuffle(n);
	for (uint32_t i = 0; i < sample; i++) {
		uint32_t timer = bench.order[i];

		bench.deadline[timer] = draw_deadline(bench.deadline[timer] + 1);
		prepare(i, HWTW_OP_REARM, timer);
	}
	cost[REARM_LATER] = submit(fd, sample, batch);

	cost[REARM_RANDOM] = 0;
	for (int pass = 0; pass < RANDOM_PASSES; pass++) {
		start = safe_start(n);
		for (uint32_t i = 0; i < sample; i++) {
			uint32_t timer = bench.order[i];

			bench.deadline[timer] = draw_deadline(start);
			prepare(i, HWTW_OP_REARM, timer);
		}
		cost[REARM_RANDOM] += submit(fd, sample, batch) / RANDOM_PASSES;
	}

	for (uint32_t i = 0; i < sample; i++)
		prepare(i, HWTW_OP_CANCEL, bench.order[i]);
	cost[CANCEL] = submit(fd, sample, batch);
	close(fd);
}

/* Expire, cascade and read */

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
			tick = start + draw_below(DELAY_TICKS) * bench.tick_ns;
		bench.deadline[bench.order[i]] = tick - draw_below(bench.tick_ns);
	}
}

/* Reads all @n records, in batches, and waits for them if need be. */
static void read_all(int fd, uint32_t n, uint32_t batch)
{
	ssize_t len;

	for (uint32_t done = 0; done < n; done += len / sizeof(*bench.events)) {
		len = read(fd, bench.events, batch * sizeof(*bench.events));
		if (len <= 0)
			cannot("read: %s", strerror(errno));
	}
}

/* Timers that are due when they are armed: only read(2) is left to measure. */
static double measure_read(uint32_t n, uint32_t batch)
{
	int fd = open_instance();
	uint64_t start;
	double took;

	memset(bench.deadline, 0, n * sizeof(*bench.deadline));
	arm(fd, 0, n, 256);
	start = now_ns();
	read_all(fd, n, batch);
	took = now_ns() - start - bench.clock_cost;
	close(fd);
	return took / n;
}

/*
 * The time that the CPU was not idle from when all timers are armed to when
 * all are read, less what it does in that time anyway. All counts: interrupts,
 * cascades, waking the reader, read(2).
 */
static double measure_expiry(uint32_t n, uint32_t batch, bool scattered)
{
	uint64_t start, elapsed;
	struct stretch s;
	double busy;
	int fd = open_instance();

	start = now_ns() + NSEC_PER_SEC + n * 2000ULL;
	start -= start % bench.tick_ns;
	draw_clusters(n, scattered ? 1 : batch, start);
	arm(fd, 0, n, 256);
	if (now_ns() > start - bench.tick_ns)
		cannot("arming took too long to measure expiry");

	s = stretch_begin();
	read_all(fd, n, batch);
	busy = stretch_busy(&s, &elapsed);
	close(fd);
	return (busy - bench.background * elapsed) / n;
}

/* Single calls */

static double call(int fd, unsigned long command, uint32_t nr)
{
	uint64_t start, took;

	start = now_ns();
	for (uint32_t i = 0; i < nr; i++)
		ioctl(fd, command, &bench.timers[i]);
	took = now_ns() - start;
	return (took - bench.clock_cost) / nr;
}

static void check_calls(const char *what, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (bench.timers[i].state != HWTW_PENDING)
			cannot("%s failed", what);
}

static void measure_calls(uint32_t n, double cost[5])
{
	uint64_t start;
	int fd;

	fd = open_pending(n);
	cost[0] = call(fd, IOC_EMPTY, CALLS);
	cost[1] = call(fd, HWTW_IOC_INFO, CALLS);

	start = safe_start(n);
	for (uint32_t i = 0; i < CALLS; i++)
		bench.timers[i] = (struct hwtw_timer) {
			.user_data = i,
			.time_ns = draw_deadline(start),
			.flags = HWTW_TIMER_ABS,
		};
	cost[2] = call(fd, HWTW_IOC_ARM, CALLS);
	check_calls("ARM", CALLS);
	for (uint32_t i = 0; i < CALLS; i++) {
		bench.timers[i].time_ns = draw_deadline(bench.timers[i].time_ns);
		bench.timers[i].state = 0;
	}
	cost[3] = call(fd, HWTW_IOC_REARM, CALLS);
	check_calls("REARM", CALLS);
	for (uint32_t i = 0; i < CALLS; i++)
		bench.timers[i] = (struct hwtw_timer) {
			.id = bench.timers[i].id,
		};
	cost[4] = call(fd, HWTW_IOC_CANCEL, CALLS);
	check_calls("CANCEL", CALLS);
	close(fd);
}

/* Memory */

static int descriptors[DESCRIPTORS];

static double measure_pending(uint32_t n)
{
	uint32_t instances = (MEMORY_TIMERS + n - 1) / n;
	uint64_t before, after;

	before = pages_free();
	for (uint32_t i = 0; i < instances; i++)
		descriptors[i] = open_pending(n);
	after = pages_free();
	for (uint32_t i = 0; i < instances; i++)
		close(descriptors[i]);
	return bytes_used(before, after) / n / instances;
}

static double measure_open(uint32_t timers)
{
	uint64_t before, after;

	before = pages_free();
	for (int i = 0; i < DESCRIPTORS; i++)
		descriptors[i] = open_pending(timers);
	after = pages_free();
	for (int i = 0; i < DESCRIPTORS; i++)
		close(descriptors[i]);
	return bytes_used(before, after) / DESCRIPTORS;
}

/* The table */

static void show_json(enum workload w, uint32_t batch, uint32_t n, double value)
{
	if (!bench.json)
		return;
	printf("{\"workload\":\"%s\",\"peer\":\"hwtw\"", workloads[w].name);
	if (batch)
		printf(",\"batch\":%" PRIu32, batch);
	if (n)
		printf(",\"n\":%" PRIu32, n);
	if (w >= PENDING)
		printf(",\"%s\":%.1f}\n", w == PENDING ? "bytes_per_timer" :
		       "bytes_per_descriptor", value);
	else
		printf(",\"%s\":%.1f}\n", bench.instructions ? "instr_per_op" :
		       "ns_per_op", value);
	fflush(stdout);
}

static void show_heading(const char *what)
{
	say("\n%-26s %5s", what, "batch");
	for (int i = 0; i < bench.nr_n; i++)
		say(" %9" PRIu32, bench.n[i]);
	say("   target\n");
}

static int find_n(uint32_t n)
{
	for (int i = 0; i < bench.nr_n; i++)
		if (bench.n[i] == n)
			return i;
	return -1;
}

static const char *verdict(double value, double target)
{
	return value <= target ? "ok" : "over";
}

/*
 * One row. A value of 0 was not measured. Targets are in instructions, so
 * there is no verdict on nanoseconds; @empty is the row to compare calls with.
 */
static void show_row(enum workload w, uint32_t batch, const double *value,
		     const double *empty)
{
	double target = workloads[w].target;
	int first = find_n(10000), main_n = find_n(100000);
	int last = find_n(1000000);

	say("%-26s ", workloads[w].text);
	if (batch)
		say("%5" PRIu32, batch);
	else
		say("%5s", "");
	for (int i = 0; i < bench.nr_n; i++) {
		if (value[i])
			say(" %9.1f", value[i]);
		else
			say(" %9s", "-");
	}
	say("   ");
	if (w == PENDING && last >= 0) {
		say("<= %.0f %s", target, verdict(value[last], target));
	} else if (target && empty && bench.instructions) {
		double ratio = 0;

		for (int i = 0; i < bench.nr_n; i++)
			if (value[i] / empty[i] > ratio)
				ratio = value[i] / empty[i];
		say("<= %.0f x empty: %.2f %s", target, ratio,
		    verdict(ratio, target));
	} else if (target && batch == 256 && main_n >= 0 && bench.instructions) {
		say("<= %.0f %s", target, verdict(value[main_n], target));
		if (first >= 0 && last >= 0 && value[first] && value[last]) {
			double growth = value[last] / value[first];

			say(", growth <= %.1f: %.2f %s", GROWTH_TARGET, growth,
			    verdict(growth, GROWTH_TARGET));
		}
	}
	say("\n");
}

static const char *unit(void)
{
	return bench.instructions ? "instructions per timer" :
				    "nanoseconds per timer";
}

/* The groups of rows */

static void run_batches(void)
{
	double value[4][MAX_LIST], round[4][MAX_ROUNDS], cost[4];

	show_heading(unit());
	for (int b = 0; b < bench.nr_batch; b++) {
		uint32_t batch = bench.batch[b];

		for (int i = 0; i < bench.nr_n; i++) {
			for (int r = 0; r <= bench.rounds; r++) {
				measure_batches(bench.n[i], batch, cost);
				for (int w = ARM; w <= CANCEL; w++)
					round[w][r] = cost[w];
			}
			for (int w = ARM; w <= CANCEL; w++) {
				value[w][i] = median(round[w]);
				show_json(w, batch, bench.n[i], value[w][i]);
			}
		}
		for (int w = ARM; w <= CANCEL; w++)
			show_row(w, batch, value[w], NULL);
	}
}

static void run_expiry(enum workload w, uint32_t batch)
{
	double value[MAX_LIST], round[MAX_ROUNDS];

	for (int i = 0; i < bench.nr_n; i++) {
		value[i] = 0;
		if (w == EXPIRE_READ && bench.n[i] / batch > MAX_WAKEUPS)
			continue;
		for (int r = 0; r <= bench.rounds; r++)
			round[r] = w == READ ?
				measure_read(bench.n[i], batch) :
				measure_expiry(bench.n[i], batch,
					       w == EXPIRE_READ_SCATTERED);
		value[i] = median(round);
		show_json(w, batch, bench.n[i], value[i]);
	}
	show_row(w, batch, value, NULL);
}

static void run_expiries(void)
{
	show_heading(unit());
	for (int b = 0; b < bench.nr_batch; b++)
		run_expiry(READ, bench.batch[b]);
	if (!bench.has_idle) {
		fprintf(stderr, "bench: /proc/timer_list does not tell how long the CPU was idle: expiry is left out\n");
		return;
	}
	for (int b = 0; b < bench.nr_batch; b++)
		run_expiry(EXPIRE_READ, bench.batch[b]);
	run_expiry(EXPIRE_READ_SCATTERED, 256);
}

static void run_calls(void)
{
	double value[5][MAX_LIST], round[5][MAX_ROUNDS], cost[5];

	show_heading(bench.instructions ? "instructions per call" :
					  "nanoseconds per call");
	for (int i = 0; i < bench.nr_n; i++) {
		for (int r = 0; r <= bench.rounds; r++) {
			measure_calls(bench.n[i], cost);
			for (int w = 0; w < 5; w++)
				round[w][r] = cost[w];
		}
		for (int w = 0; w < 5; w++) {
			value[w][i] = median(round[w]);
			show_json(CALL_EMPTY + w, 0, bench.n[i], value[w][i]);
		}
	}
	for (int w = 0; w < 5; w++)
		show_row(CALL_EMPTY + w, 0, value[w], value[0]);
}

static void run_memory(void)
{
	double value[MAX_LIST];

	show_heading("bytes per");
	for (int i = 0; i < bench.nr_n; i++) {
		value[i] = measure_pending(bench.n[i]);
		show_json(PENDING, 0, bench.n[i], value[i]);
	}
	show_row(PENDING, 0, value, NULL);
	for (int w = OPEN; w <= OPEN_ONE; w++) {
		double bytes = measure_open(w == OPEN_ONE);

		show_json(w, 0, 0, bytes);
		say("%-26s %5s %9.1f   <= %.0f %s\n", workloads[w].text, "",
		    bytes, workloads[w].target,
		    verdict(bytes, workloads[w].target));
	}
}

/* The beginning */

static void prepare_all(void)
{
	struct rlimit limit;
	struct hwtw_info info;
	int fd = open_instance();

	if (ioctl(fd, HWTW_IOC_INFO, &info))
		cannot("INFO: %s", strerror(errno));
	close(fd);
	bench.tick_ns = info.tick_ns;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		cannot("RLIMIT_NOFILE: %s", strerror(errno));
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < DESCRIPTORS + 16 ||
	    setrlimit(RLIMIT_NOFILE, &limit))
		cannot("cannot have %d descriptors: raise ulimit -n",
		       DESCRIPTORS);

	for (int i = 0; i < bench.nr_n; i++)
		if (bench.n[i] > bench.max_n)
			bench.max_n = bench.n[i];
	bench.ops = alloc(bench.max_n * sizeof(*bench.ops));
	bench.timers = alloc(CALLS * sizeof(*bench.timers));
	bench.id = alloc(bench.max_n * sizeof(*bench.id));
	bench.deadline = alloc(bench.max_n * sizeof(*bench.deadline));
	bench.order = alloc(bench.max_n * sizeof(*bench.order));
	bench.events = alloc(HWTW_BATCH_MAX * sizeof(*bench.events));
}

static void show_title(void)
{
	struct utsname u = { 0 };

	uname(&u);
	say("hwtw bench: Linux %s, %ld CPUs, a tick of %.1f us, delays over %d ticks,\n"
	    "median of %d rounds\n", u.release, sysconf(_SC_NPROCESSORS_ONLN),
	    bench.tick_ns / 1e3, DELAY_TICKS, bench.rounds);
	if (!bench.instructions)
		fputs("bench: the clock does not count instructions here, so the figures are nanoseconds, without targets: see --help\n",
		      stderr);
}

static void usage(FILE *f)
{
	fputs(
"usage: bench [options]\n"
"\n"
"What hwtw costs. Made for a VM whose clock counts instructions, so that figures\n"
"do not depend on the machine and come out the same each time:\n"
"\n"
"  tools/vm/run --icount --cpus 1 --mem 2048 --timeout 900 -- build/bench/bench\n"
"\n"
"It takes some three minutes. Anywhere else the same is measured in nanoseconds.\n"
"\n"
"  -n LIST        how many timers are pending; 10000,100000,1000000\n"
"  --batch LIST   operations in one SUBMIT, records in one read; 256,16,1\n"
"  --rounds N     rounds of which the median counts, after one to warm up; 3\n"
"  --json         one object a line: workload, peer, batch, n, instr_per_op (or\n"
"                 ns_per_op), bytes_per_timer or bytes_per_descriptor; members\n"
"                 that do not apply are absent\n"
"  --help         this\n"
"\n"
"What is measured. Delays are uniform over 60000 ticks, and timers are taken in\n"
"random order.\n"
"  arm            into an empty instance; with batches below 256 and more than\n"
"                 50000 timers: only the last 50000 of them, here and below\n"
"  re-arm         later: by up to 60000 ticks; at random: anew\n"
"  cancel         and the memory goes back\n"
"  read           records of timers that were due when they were armed\n"
"  expire, cascade, read\n"
"                 all the CPU does from when the last timer is armed to when the\n"
"                 last is read, but for being idle (by .idle_sleeptime of\n"
"                 /proc/timer_list) and what it does anyway. A batch is due in\n"
"                 one tick, and read in one go by a blocking reader; \"wherever\n"
"                 due\": each timer has a tick of its own, up to 256 in one read.\n"
"                 Left out where it means more than 10000 batches\n"
"  calls          single ones while n timers are pending. The empty one is an\n"
"                 ioctl of the same descriptor that does not exist\n"
"  memory         what the free pages of /proc/zoneinfo fall by, with those that\n"
"                 wait on the lists of CPUs. A small n is measured on several\n"
"                 instances\n"
"\n"
"It measures and does not judge: exit status 0 also if a target is missed,\n"
"2 for wrong usage, 3 if it could not run.\n", f);
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
		exit(EXIT_USAGE);
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
			exit(EXIT_USAGE);
		}
		list[nr++] = number(what, text, &end, least, most);
		if (!*end)
			return nr;
		if (*end != ',') {
			fprintf(stderr, "bench: %s: %s: numbers with commas between\n",
				what, text);
			exit(EXIT_USAGE);
		}
		text = end + 1;
	}
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "batch", required_argument, NULL, 'b' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *n = "10000,100000,1000000", *batch = "256,16,1";
	const char *rounds = "3";
	char *end;
	int o;

	while ((o = getopt_long(argc, argv, "n:h", options, NULL)) >= 0) {
		switch (o) {
		case 'n':
			n = optarg;
			break;
		case 'b':
			batch = optarg;
			break;
		case 'r':
			rounds = optarg;
			break;
		case 'j':
			bench.json = true;
			break;
		case 'h':
			usage(stdout);
			exit(EXIT_OK);
		default:
			fputs("bench: see --help\n", stderr);
			exit(EXIT_USAGE);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "bench: what is %s? See --help\n", argv[optind]);
		exit(EXIT_USAGE);
	}
	bench.nr_n = parse_list("-n", n, bench.n, 1000, 100000000);
	bench.nr_batch = parse_list("--batch", batch, bench.batch, 1,
				    HWTW_BATCH_MAX);
	bench.rounds = number("--rounds", rounds, &end, 1, MAX_ROUNDS - 1);
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	/* Else khugepaged copies this program's memory while it measures. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	prepare_all();
	/* The clock of a machine that has just started is still trimmed. */
	sleep_ns(2 * NSEC_PER_SEC);
	calibrate_clock();
	show_title();
	calibrate_idle();
	run_batches();
	run_expiries();
	run_calls();
	run_memory();
	return EXIT_OK;
}
