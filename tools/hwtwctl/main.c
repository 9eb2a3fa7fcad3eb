// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtwctl: look at, use and try out /dev/hwtw
 *
 * Each command is a struct command in a file of its own; here is which there
 * are, and "info".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwtwctl.h"

static const char help[] =
"usage: hwtwctl COMMAND [options]\n"
"\n"
"Looks at, uses and tries out /dev/hwtw: timers by the million behind one\n"
"descriptor.\n"
"\n";

static const char help_end[] =
"\n"
"\"hwtwctl COMMAND --help\" explains one. With --json each prints JSON on stdout\n"
"instead of text.\n"
"\n"
"Times are written as people do: 250ms, 1.5s, 1h30m, 2d, 90 (seconds). Units are\n"
"ns, us, ms, s, m or min, h, d and w.\n"
"\n"
"Exit status:\n"
"  0  it worked\n"
"  1  it did not: a call failed, a test failed, a command that was run failed\n"
"  2  wrong usage\n"
"  3  no /dev/hwtw, or the module lacks a feature: load the module, or a newer one\n"
"  4  no permission: join the group of /dev/hwtw, or become root\n"
"  5  a file of \"hwtwctl dump\" is damaged or of an unknown version\n"
"\n"
"Examples:\n"
"  hwtwctl selftest                           does the module work here?\n"
"  hwtwctl arm 5s 10s --every 1m              three timers, a line for each expiry\n"
"  hwtwctl monitor                            who uses hwtw, and how much, live\n"
"  hwtwctl dump --pid 4711 orders.hwtw        the timers of a process, in a file\n"
"  hwtwctl restore orders.hwtw -- orderd      armed again, for a program\n"
"  hwtwctl bench                              against timerfd, on this machine\n";

static const struct command *const commands[] = {
	&cmd_info, &cmd_arm, &cmd_stat, &cmd_monitor, &cmd_bench, &cmd_selftest, &cmd_dump,
	&cmd_restore,
};

static void usage(FILE *f)
{
	fputs(help, f);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(f, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
	fputs(help_end, f);
}

/* info */

static const uint64_t features[] = {
	HWTW_FEATURE_PERIODIC, HWTW_FEATURE_REALTIME, HWTW_FEATURE_LIST, HWTW_FEATURE_STATS,
};

static void info_json(const struct hwtw_info *info)
{
	json_open(NULL, '{');
	json_u64("abi", info->abi);
	json_open("features", '[');
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (info->features & features[i])
			json_string(NULL, hwtw_feature_name(features[i]));
	json_close(']');
	json_u64("feature_bits", info->features);
	json_string("clock", hwtw_clock_name(info->clockid));
	json_u64("tick_ns", info->tick_ns);
	json_u64("tick_min_ns", info->tick_min_ns);
	json_u64("tick_max_ns", info->tick_max_ns);
	json_u64("max_timers", info->max_timers);
	json_u64("max_timers_total", info->max_timers_total);
	json_u64("event_size", info->event_size);
	json_u64("max_batch", info->max_batch);
	json_close('}');
	json_end();
}

static void info_text(const struct hwtw_info *info)
{
	printf("abi               %u\n", info->abi);
	printf("features         ");
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (info->features & features[i])
			printf(" %s", hwtw_feature_name(features[i]));
	printf("\nclock             %s\n", hwtw_clock_name(info->clockid));
	printf("tick              %s, from %s to %s\n", show_duration(info->tick_ns),
	       show_duration(info->tick_min_ns), show_duration(info->tick_max_ns));
	printf("most timers       %" PRIu64 " of this instance, %" PRIu64 " of all together\n",
	       (uint64_t)info->max_timers, (uint64_t)info->max_timers_total);
	printf("record            %u bytes\n", info->event_size);
	printf("most in a batch   %u operations\n", info->max_batch);
}

static int info_run(int argc, char **argv)
{
	enum { PID, FD };
	static const struct option options[] = {
		{ "pid", required_argument, NULL, PID },
		{ "fd", required_argument, NULL, FD },
		COMMON_OPTIONS
	};
	struct hwtw_info info;
	pid_t pid = 0;
	int fd = -1, o;

	while ((o = next_option(&cmd_info, argc, argv, options)) >= 0) {
		if (o == PID)
			pid = parse_number("pid", optarg, 1, INT32_MAX);
		else
			fd = parse_number("fd", optarg, 0, INT32_MAX);
	}
	no_more_arguments(argc, argv);
	get_info(pid || fd >= 0 ? borrow_instance(pid, fd) : open_device(0), &info);
	if (json)
		info_json(&info);
	else
		info_text(&info);
	return EXIT_OK;
}

const struct command cmd_info = {
	.name = "info",
	.summary = "what the module can do, and what is in force",
	.help =
"usage: hwtwctl info [--pid PID] [--fd N] [--json]\n"
"\n"
"Shows what the module can do: number of its interface, features, ticks, limits.\n"
"Clock, tick and limit are those of a new instance, or of the one that is named.\n"
"\n"
"  --pid PID   an instance of this process (needs the right to trace it)\n"
"  --fd N      descriptor N of that process, which need not be given if it has\n"
"              only one; without --pid: inherited by hwtwctl\n"
"  --json      one object\n"
"\n"
"Examples:\n"
"  hwtwctl info\n"
"  hwtwctl info --pid 4711\n"
"  hwtwctl info --fd 5 5<>/dev/hwtw\n"
"  hwtwctl info --json | jq .tick_ns\n",
	.run = info_run,
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	static char title[32];
	int status;

	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		usage(stdout);
		return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
	}
	if (!*name) {
		usage(stderr);
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(name, commands[i]->name))
			continue;
		/* For messages. */
		snprintf(title, sizeof(title), "hwtwctl %s", name);
		argv[1] = title;
		status = commands[i]->run(argc - 1, argv + 1);
		if (fflush(stdout) || ferror(stdout))
			die(EXIT_FAILED, "cannot write to stdout: %s", strerror(errno));
		return status;
	}
	die(EXIT_USAGE, "there is no command \"%s\", see \"hwtwctl --help\"", name);
}
