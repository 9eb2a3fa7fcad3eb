// SPDX-License-Identifier: GPL-2.0-only
/* hwtwctl arm: sleep(1) for many */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "hwtwctl.h"

extern char **environ;

struct armed {
	const char *text;		/* as it was given */
	uint64_t ns;
	bool every;
	uint64_t expiries;		/* periods that passed meanwhile included */
};

static struct {
	struct armed *timer;
	uint32_t nr, room;
	uint32_t clockid;
	uint64_t start_ns;
	uint64_t tick_ns;
	char **command;
	bool failed;
} arm;

static void add_timer(const char *text, bool every)
{
	if (arm.nr == arm.room) {
		arm.room = arm.room ? 2 * arm.room : 16;
		arm.timer = realloc(arm.timer, arm.room * sizeof(*arm.timer));
		if (!arm.timer)
			die(EXIT_FAILED, "no memory for %u timers", arm.room);
	}
	arm.timer[arm.nr++] = (struct armed) {
		.text = text,
		.ns = parse_duration(every ? "every" : NULL, text),
		.every = every,
	};
}

static void armed_one(const struct hwtw_op *op, void *arg)
{
	const struct armed *t = &arm.timer[op->timer.user_data];

	(void)arg;
	if (op->result == -EINVAL && t->every)
		die(EXIT_USAGE, "--every %s: must be at least one tick, %s, see --tick", t->text,
		    show_duration(arm.tick_ns));
	if (op->result)
		die(EXIT_FAILED, "cannot arm a timer of %s: %s", t->text,
		    hwtw_strerror(op->result));
}

static void arm_all(int fd)
{
	struct hwtw_batch *batch;
	int err = hwtw_batch_new(&batch, fd, 256, armed_one, NULL);

	/* All begin at the same moment. */
	arm.start_ns = clock_ns(arm.clockid);
	for (uint32_t i = 0; i < arm.nr && !err; i++) {
		struct armed *t = &arm.timer[i];
		uint64_t at = t->ns > HWTW_TIME_MAX_NS - arm.start_ns ? HWTW_TIME_MAX_NS :
			      arm.start_ns + t->ns;

		err = hwtw_batch_arm(batch, at, t->every ? t->ns : 0, HWTW_TIMER_ABS, i);
	}
	if (!err)
		err = hwtw_batch_flush(batch);
	if (err)
		die(EXIT_FAILED, "cannot arm: %s", hwtw_strerror(err));
	hwtw_batch_free(batch);
}

static void set_number(const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	setenv(name, text, 1);
}

static void run_command(const struct armed *t, const struct hwtw_event *event)
{
	pid_t pid;
	int err, status;

	setenv("HWTWCTL_TIMER", t->text, 1);
	set_number("HWTWCTL_NUMBER", t->expiries);
	set_number("HWTWCTL_OVERRUNS", event->overruns);
	fflush(stdout);
	err = posix_spawnp(&pid, arm.command[0], NULL, NULL, arm.command, environ);
	if (err)
		die(EXIT_FAILED, "cannot run %s: %s", arm.command[0], strerror(err));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die(EXIT_FAILED, "cannot wait for %s: %s", arm.command[0], strerror(errno));
	if (status)
		arm.failed = true;
}

static void tell(const struct armed *t, const struct hwtw_event *event, uint64_t now)
{
	uint64_t late = now - event->expires_ns;

	if (json) {
		json_open(NULL, '{');
		json_string("timer", t->text);
		json_bool("every", t->every);
		json_u64("number", t->expiries);
		json_double("elapsed_s", (now - arm.start_ns) / 1e9);
		json_u64("expires_ns", event->expires_ns);
		json_u64("late_ns", late);
		json_u64("overruns", event->overruns);
		json_close('}');
		json_end();
	} else if (!arm.command) {
		printf("%10.3fs  %s%s", (now - arm.start_ns) / 1e9, t->every ? "every " : "",
		       t->text);
		if (t->every)
			printf(" #%" PRIu64, t->expiries);
		if (event->overruns)
			printf(", %u missed", event->overruns);
		printf("  (late by %s)\n", show_duration(late));
		fflush(stdout);
	}
}

static int arm_run(int argc, char **argv)
{
	enum { EVERY, COUNT, CLOCK, TICK };
	static const struct option options[] = {
		{ "every", required_argument, NULL, EVERY },
		{ "count", required_argument, NULL, COUNT },
		{ "clock", required_argument, NULL, CLOCK },
		{ "tick", required_argument, NULL, TICK },
		COMMON_OPTIONS
	};
	uint64_t count = UINT64_MAX, tick = 0, once = 0;
	struct hwtw_reader *reader;
	struct hwtw_event event;
	struct hwtw_info info;
	bool every = false;
	int fd, o, ret;

	arm.clockid = CLOCK_MONOTONIC;
	arm.command = cut_command(&argc, argv);
	while ((o = next_option(&cmd_arm, argc, argv, options)) >= 0) {
		switch (o) {
		case EVERY:
			add_timer(optarg, true);
			every = true;
			break;
		case COUNT:
			count = parse_number("count", optarg, 1, UINT64_MAX);
			break;
		case CLOCK:
			arm.clockid = parse_clock(optarg);
			break;
		case TICK:
			tick = parse_duration("tick", optarg);
			if (!tick)
				die(EXIT_USAGE, "--tick %s: must be more than nothing", optarg);
			break;
		}
	}
	for (; optind < argc; optind++, once++)
		add_timer(argv[optind], false);
	if (!arm.nr)
		die(EXIT_USAGE, "there is no time to arm, such as \"hwtwctl arm 5s\", see \"hwtwctl arm --help\"");
	if (!every && count > once)
		count = once;

	fd = open_device(0);
	set_up(fd, arm.clockid, tick, 0);
	get_info(fd, &info);
	arm.tick_ns = info.tick_ns;
	/* One by one with a command: what expires while it runs is counted, not kept. */
	ret = hwtw_reader_new(&reader, fd, arm.command ? 1 : 256);
	if (ret)
		die(EXIT_FAILED, "%s", hwtw_strerror(ret));
	arm_all(fd);
	while (count--) {
		struct armed *t;

		do {
			ret = hwtw_reader_next(reader, &event);
		} while (ret == -EINTR);
		if (ret < 0)
			die(EXIT_FAILED, "cannot read expiries: %s", hwtw_strerror(ret));
		t = &arm.timer[event.user_data];
		t->expiries += 1 + event.overruns;
		tell(t, &event, clock_ns(arm.clockid));
		if (ferror(stdout))
			break;
		if (arm.command)
			run_command(t, &event);
	}
	return arm.failed ? EXIT_FAILED : EXIT_OK;
}

const struct command cmd_arm = {
	.name = "arm",
	.summary = "wait for many times at once, and run a command at each",
	.help =
"usage: hwtwctl arm [options] TIME... [--every TIME]... [-- COMMAND [ARG]...]\n"
"\n"
"Arms a timer for each TIME, all from the same moment, and prints a line whenever\n"
"one expires: when, which, and by how much the line comes after its deadline.\n"
"With a COMMAND runs that instead, once for each expiry and one after the other.\n"
"Ends when all have expired; with --every that is never, without --count.\n"
"\n"
"  --every TIME   expires again and again; may be repeated\n"
"  --count N      end after N expiries\n"
"  --clock NAME   monotonic, which stands still while the machine is suspended;\n"
"                 boottime, which does not; or realtime, which follows when the\n"
"                 clock is set. Default: monotonic\n"
"  --tick TIME    how fine, from 65.536us to 1.07s, rounded down to a power of two\n"
"                 of nanoseconds. Default: 1.048576ms\n"
"  --json         an object on a line of its own for each expiry, also with a\n"
"                 COMMAND\n"
"\n"
"The COMMAND finds in its environment\n"
"  HWTWCTL_TIMER      the TIME as it was written\n"
"  HWTWCTL_NUMBER     which expiry of this timer it is, from 1 on\n"
"  HWTWCTL_OVERRUNS   how many more periods have passed, because the machine or\n"
"                     the command before was slow; they are in the NUMBER\n"
"\n"
"Exit status: 0; 1 if a COMMAND failed, or could not be run, which ends it all;\n"
"else see \"hwtwctl --help\".\n"
"\n"
"Examples:\n"
"  hwtwctl arm 1h30m                          like sleep, and says how late it was\n"
"  hwtwctl arm 5s 10s --every 1m              three timers\n"
"  hwtwctl arm --every 1s --count 10 -- date\n"
"  hwtwctl arm 3s 1s 2s -- sh -c 'echo \"$HWTWCTL_TIMER is over\"'\n",
	.run = arm_run,
};
