// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtwctl bench: what hwtw and timerfd cost on this machine
 *
 * The same timers three times: a timerfd each, hwtw with a call for each, hwtw
 * in batches. A round measures each step once; the table has the median.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "hwtwctl.h"

#define ROUNDS		5
#define BATCH		256
#define SPARE_FDS	16

enum step { ARM, REARM, CANCEL, COLLECT, NR_STEPS };
enum kind { TIMERFD, HWTW_CALLS, HWTW_BATCHES, NR_KINDS };

static const char *const step_names[] = {
	[ARM] = "arm",
	[REARM] = "rearm",
	[CANCEL] = "cancel",
	[COLLECT] = "collect",
};

static const char *const step_text[] = {
	[ARM] = "arm a new one",
	[REARM] = "re-arm it",
	[CANCEL] = "cancel it",
	[COLLECT] = "collect its expiry",
};

static const char *const kind_names[] = {
	[TIMERFD] = "timerfd",
	[HWTW_CALLS] = "hwtw",
	[HWTW_BATCHES] = "hwtw_batches",
};

static struct {
	uint32_t timers;		/* of hwtw */
	uint32_t nr[NR_KINDS];
	bool progress;
	uint64_t ns[NR_KINDS][NR_STEPS][ROUNDS];
	/* Where each is. */
	int epoll_fd;
	int *fd;
	int instance;
	uint64_t *id;
	uint32_t nr_ids;
	struct hwtw_batch *batch;
	uint64_t memory;		/* bytes of hwtw with all armed, 0: not known */
} bench;

static void check(int err, const char *what)
{
	if (err < 0)
		die(EXIT_FAILED, "cannot %s: %s", what, hwtw_strerror(err));
}

/* An even spread that is no order: the low bits of a multiple of a prime. */
static uint64_t delay(uint32_t i, uint64_t span_ns)
{
	return (i * 2654435761U) / (double)UINT32_MAX * span_ns;
}

/* timerfd */

static void set_timerfd(uint32_t i, uint64_t ns)
{
	struct itimerspec spec = {
		.it_value = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC },
	};

	if (timerfd_settime(bench.fd[i], 0, &spec, NULL))
		die(EXIT_FAILED, "timerfd_settime: %s", strerror(errno));
}

static void arm_timerfd(uint32_t i, uint64_t ns)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

	bench.fd[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (bench.fd[i] < 0 || epoll_ctl(bench.epoll_fd, EPOLL_CTL_ADD, bench.fd[i], &event))
		die(EXIT_FAILED, "timerfd %u: %s", i, strerror(errno));
	/* 0 would disarm it. */
	set_timerfd(i, ns + 1);
}

static void collect_timerfd(void)
{
	struct epoll_event events[BATCH];
	uint64_t expiries;
	uint32_t got = 0;

	while (got < bench.nr[TIMERFD]) {
		int nr = epoll_wait(bench.epoll_fd, events, BATCH, -1);

		if (nr < 0)
			die(EXIT_FAILED, "epoll_wait: %s", strerror(errno));
		for (int i = 0; i < nr; i++) {
			int fd = bench.fd[events[i].data.u32];

			got += read(fd, &expiries, sizeof(expiries)) == sizeof(expiries);
		}
	}
}

static void step_timerfd(enum step step, uint64_t from_ns, uint64_t span_ns)
{
	uint32_t nr = bench.nr[TIMERFD];

	switch (step) {
	case ARM:
		for (uint32_t i = 0; i < nr; i++)
			arm_timerfd(i, from_ns + delay(i, span_ns));
		break;
	case REARM:
		for (uint32_t i = 0; i < nr; i++)
			set_timerfd(i, from_ns + delay(i, span_ns));
		break;
	case CANCEL:
		for (uint32_t i = 0; i < nr; i++)
			close(bench.fd[i]);
		break;
	default:
		collect_timerfd();
	}
}

/* hwtw */

static void step_calls(enum step step, uint64_t from_ns, uint64_t span_ns)
{
	for (uint32_t i = 0; i < bench.timers; i++) {
		uint64_t ns = from_ns + delay(i, span_ns);

		if (step == ARM)
			check(hwtw_arm(bench.instance, ns, 0, 0, i, &bench.id[i]), "arm");
		else if (step == REARM)
			check(hwtw_rearm(bench.instance, bench.id[i], ns, 0, 0), "re-arm");
		else
			check(hwtw_cancel(bench.instance, bench.id[i]), "cancel");
	}
}

static void batch_done(const struct hwtw_op *op, void *arg)
{
	(void)arg;
	check(op->result, hwtw_op_name(op->opcode));
	if (op->opcode == HWTW_OP_ARM)
		bench.id[bench.nr_ids++] = op->timer.id;
}

static void step_batches(enum step step, uint64_t from_ns, uint64_t span_ns)
{
	bench.nr_ids = step == ARM ? 0 : bench.timers;
	for (uint32_t i = 0; i < bench.timers; i++) {
		uint64_t ns = from_ns + delay(i, span_ns);

		if (step == ARM)
			check(hwtw_batch_arm(bench.batch, ns, 0, 0, i), "arm");
		else if (step == REARM)
			check(hwtw_batch_rearm(bench.batch, bench.id[i], ns, 0, 0, 0), "re-arm");
		else
			check(hwtw_batch_cancel(bench.batch, bench.id[i], 0), "cancel");
	}
	check(hwtw_batch_flush(bench.batch), "submit a batch");
}

/* With one record a read, or many. */
static void collect_hwtw(bool many)
{
	struct hwtw_event events[BATCH];
	uint32_t got = 0;

	while (got < bench.timers) {
		ssize_t len = read(bench.instance, events,
				   many ? sizeof(events) : sizeof(events[0]));

		if (len < 0)
			die(EXIT_FAILED, "cannot read expiries: %s", strerror(errno));
		got += len / sizeof(events[0]);
	}
}

/* The rounds */

static void run_step(enum kind kind, enum step step, uint64_t from_ns, uint64_t span_ns, int round)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	if (kind == TIMERFD)
		step_timerfd(step, from_ns, span_ns);
	else if (step == COLLECT)
		collect_hwtw(kind == HWTW_BATCHES);
	else if (kind == HWTW_CALLS)
		step_calls(step, from_ns, span_ns);
	else
		step_batches(step, from_ns, span_ns);
	if (round >= 0)
		bench.ns[kind][step][round] = clock_ns(CLOCK_MONOTONIC) - start;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

/* A minute is far beyond the end, so that none expires while the others are measured. */
static void run_round(enum kind kind, int round)
{
	const uint64_t minute = 60 * NSEC_PER_SEC;
	struct hwtw_stats stats;

	run_step(kind, ARM, minute, minute, round);
	/* Later rounds find what is kept of those before. */
	if (kind == HWTW_CALLS && !round && !hwtw_get_stats(bench.instance, &stats))
		bench.memory = stats.memory;
	run_step(kind, REARM, 2 * minute, minute, round);
	run_step(kind, CANCEL, 0, 0, round);
	/* Not measured: wait until all have expired. */
	run_step(kind, ARM, 0, 100 * NSEC_PER_MSEC, -1);
	sleep_ns(110 * NSEC_PER_MSEC);
	run_step(kind, COLLECT, 0, 0, round);
	if (kind == TIMERFD)
		run_step(kind, CANCEL, 0, 0, -1);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median(enum kind kind, enum step step)
{
	uint64_t *ns = bench.ns[kind][step];

	qsort(ns, ROUNDS, sizeof(*ns), compare);
	return (double)ns[ROUNDS / 2] / bench.nr[kind];
}

/* Every timerfd is a descriptor. */
static uint32_t most_timerfds(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die(EXIT_FAILED, "getrlimit: %s", strerror(errno));
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die(EXIT_FAILED, "setrlimit: %s", strerror(errno));
	if (limit.rlim_cur <= SPARE_FDS)
		die(EXIT_FAILED, "only %" PRIu64 " descriptors may be open: raise it with ulimit -n",
		    (uint64_t)limit.rlim_cur);
	return limit.rlim_cur - SPARE_FDS < bench.timers ? limit.rlim_cur - SPARE_FDS :
	       bench.timers;
}

static void show_json(void)
{
	json_open(NULL, '{');
	json_u64("timers", bench.timers);
	json_u64("timerfds", bench.nr[TIMERFD]);
	json_u64("batch", BATCH);
	json_open("ns_per_timer", '{');
	for (int step = 0; step < NR_STEPS; step++) {
		json_open(step_names[step], '{');
		for (int kind = 0; kind < NR_KINDS; kind++)
			json_double(kind_names[kind], median(kind, step));
		json_close('}');
	}
	json_close('}');
	if (bench.memory)
		json_double("bytes_per_timer", (double)bench.memory / bench.timers);
	json_close('}');
	json_end();
}

static void show_text(void)
{
	struct utsname u = { 0 };

	uname(&u);
	printf("%u timers, nanoseconds for each, median of %d rounds, Linux %s\n\n", bench.timers,
	       ROUNDS, u.release);
	printf("                      timerfd  hwtw, a call each  hwtw, in calls of %d\n", BATCH);
	for (int step = 0; step < NR_STEPS; step++) {
		double old = median(TIMERFD, step);
		double calls = median(HWTW_CALLS, step), batches = median(HWTW_BATCHES, step);

		printf("%-20s %8.0f  %8.0f  (%5.1fx)  %8.0f  (%5.1fx)\n", step_text[step], old,
		       calls, old / calls, batches, old / batches);
	}
	if (bench.memory)
		printf("\nKernel memory of hwtw: %.1f bytes a timer.\n",
		       (double)bench.memory / bench.timers);
	if (bench.nr[TIMERFD] < bench.timers)
		printf("\nOnly %u timerfds: each is a descriptor, and ulimit -n allows no more.\n",
		       bench.nr[TIMERFD]);
}

static int bench_run(int argc, char **argv)
{
	enum { TIMERS, PROGRESS, NO_PROGRESS };
	static const struct option options[] = {
		{ "timers", required_argument, NULL, TIMERS },
		{ "progress", no_argument, NULL, PROGRESS },
		{ "no-progress", no_argument, NULL, NO_PROGRESS },
		COMMON_OPTIONS
	};
	int o;

	bench.timers = 10000;
	bench.progress = isatty(STDERR_FILENO);
	while ((o = next_option(&cmd_bench, argc, argv, options)) >= 0) {
		if (o == TIMERS)
			bench.timers = parse_number("timers", optarg, 100, 10000000);
		else
			bench.progress = o == PROGRESS;
	}
	no_more_arguments(argc, argv);

	bench.instance = open_device(0);
	bench.nr[TIMERFD] = most_timerfds();
	bench.nr[HWTW_CALLS] = bench.timers;
	bench.nr[HWTW_BATCHES] = bench.timers;
	bench.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	bench.fd = calloc(bench.timers, sizeof(*bench.fd));
	bench.id = calloc(bench.timers, sizeof(*bench.id));
	if (bench.epoll_fd < 0 || !bench.fd || !bench.id)
		die(EXIT_FAILED, "no memory for %u timers", bench.timers);
	check(hwtw_batch_new(&bench.batch, bench.instance, BATCH, batch_done, NULL),
	      "make a batch");
	for (int round = 0; round < ROUNDS; round++) {
		for (int kind = 0; kind < NR_KINDS; kind++) {
			if (bench.progress)
				fprintf(stderr, "\r\033[Kround %d of %d: %s", round + 1, ROUNDS,
					kind_names[kind]);
			run_round(kind, round);
		}
	}
	if (bench.progress)
		fputs("\r\033[K", stderr);
	if (json)
		show_json();
	else
		show_text();
	return EXIT_OK;
}

const struct command cmd_bench = {
	.name = "bench",
	.summary = "hwtw against timerfd on this machine, in a few seconds",
	.help =
"usage: hwtwctl bench [--timers N] [--json]\n"
"\n"
"Measures what a timer costs on this machine: as a timerfd in an epoll set, in hwtw\n"
"with a call for each timer, and in hwtw with calls for 256. On one thread, with\n"
"all of the timers pending; a few seconds by default.\n"
"\n"
"  --timers N      how many, 100 to 10000000. Default: 10000. Timerfds may be\n"
"                  fewer: each is a descriptor, and ulimit -Hn limits them\n"
"  --progress, --no-progress\n"
"                  a line on stderr that tells how far it is; by default on a\n"
"                  terminal\n"
"  --json          one object\n"
"\n"
"The rows:\n"
"  arm a new one        timerfd: create, add to epoll, settime\n"
"  re-arm it            to another time, a minute later on average\n"
"  cancel it            before it expires; timerfd: close\n"
"  collect its expiry   after all have expired; timerfd: epoll_wait and read\n"
"\n"
"What else runs on the machine is in the figures: each is the median of five\n"
"rounds. What expiry costs in interrupts is not in them.\n"
"\n"
"Examples:\n"
"  hwtwctl bench\n"
"  hwtwctl bench --timers 1000000 --json\n",
	.run = bench_run,
};
