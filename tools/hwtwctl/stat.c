// SPDX-License-Identifier: GPL-2.0-only
/* hwtwctl stat and monitor: the counters of all instances, once and live */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "hwtwctl.h"

static void instance_json(const struct instance *it)
{
	json_i64("pid", it->pid);
	json_i64("fd", it->fd);
	json_u64("uid", it->uid);
	json_string("command", it->comm);
	json_u64("instance", it->number);
	json_u64("descriptors", it->copies);
	json_string("clock", hwtw_clock_name(it->clockid));
	json_u64("tick_ns", it->tick_ns);
	json_u64("max_timers", it->max_timers);
	for (size_t i = 0; it->has_stats && i < nr_counters; i++)
		json_u64(counters[i].name, counter_value(&it->stats, &counters[i]));
}

/* stat */

static const char hidden_text[] = "could not be looked into: root sees all";

static void stat_text(const struct instances *found)
{
	for (size_t n = 0; n < found->nr; n++) {
		const struct instance *it = &found->list[n];

		printf("%sprocess %d (%s), descriptor %d: instance %" PRIu64
		       ", %s, tick %s, limit %" PRIu64 "\n",
		       n ? "\n" : "", it->pid, it->comm, it->fd, it->number,
		       hwtw_clock_name(it->clockid), show_duration(it->tick_ns), it->max_timers);
		if (it->copies > 1)
			printf("  %-20s %u\n", "descriptors", it->copies);
		for (size_t i = 0; it->has_stats && i < nr_counters; i++)
			printf("  %-20s %" PRIu64 "\n", counters[i].name,
			       counter_value(&it->stats, &counters[i]));
	}
	if (!found->nr)
		printf("no instance is open%s\n", found->hidden ? " that could be seen" : "");
	if (found->hidden)
		warn("%u processes %s", found->hidden, hidden_text);
}

static int stat_run(int argc, char **argv)
{
	enum { PID, FD };
	static const struct option options[] = {
		{ "pid", required_argument, NULL, PID },
		{ "fd", required_argument, NULL, FD },
		COMMON_OPTIONS
	};
	struct instances found = { 0 };
	pid_t pid = 0;
	int fd = -1, o;

	while ((o = next_option(&cmd_stat, argc, argv, options)) >= 0) {
		if (o == PID)
			pid = parse_number("pid", optarg, 1, INT32_MAX);
		else
			fd = parse_number("fd", optarg, 0, INT32_MAX);
	}
	no_more_arguments(argc, argv);
	if (fd >= 0 && !pid)
		die(EXIT_USAGE, "--fd %d: of which process? Add --pid", fd);
	find_instances(&found, pid);
	if (pid && found.hidden)
		die(EXIT_DENIED, "no permission to look into process %d: become its user or root",
		    pid);
	if (fd >= 0) {
		size_t n = 0;

		while (n < found.nr && found.list[n].fd != fd)
			n++;
		if (n == found.nr)
			die(EXIT_FAILED, "descriptor %d of process %d is not of /dev/hwtw, or a copy: see \"hwtwctl stat --pid %d\"",
			    fd, pid, pid);
		found.list[0] = found.list[n];
		found.nr = 1;
	}
	if (!json) {
		stat_text(&found);
		return EXIT_OK;
	}
	json_open(NULL, '[');
	for (size_t n = 0; n < found.nr; n++) {
		json_open(NULL, '{');
		instance_json(&found.list[n]);
		json_close('}');
	}
	json_close(']');
	json_end();
	return EXIT_OK;
}

const struct command cmd_stat = {
	.name = "stat",
	.summary = "counters of all instances on this machine",
	.help =
"usage: hwtwctl stat [--pid PID] [--fd N] [--json]\n"
"\n"
"Shows the counters of all open instances of /dev/hwtw, as /proc/PID/fdinfo has\n"
"them. Needs no access to the device, and sees the processes that the caller may\n"
"look into: his own, or root all. Descriptors that share an instance, in one\n"
"process or in several, are shown once. An instance that no process has open, such\n"
"as one on its way through a socket, is not seen. The number of an instance is the\n"
"one that tracepoints have.\n"
"\n"
"  --pid PID   only this process\n"
"  --fd N      only this descriptor of it\n"
"  --json      an array of objects\n"
"\n"
"What they count:\n"
"  descriptors         that share this instance\n"
"  armed               timers armed\n"
"  rearmed             times a timer was re-armed\n"
"  cancelled           timers cancelled\n"
"  cancelled_pending   those of them that had not expired\n"
"  withdrawn           records unread when their timer was cancelled or re-armed\n"
"  expired             expiries\n"
"  delivered           records read\n"
"  completed           timers that are gone because their last record was read\n"
"  overruns            periods that passed before the record of one before was read\n"
"  pending             timers that have not expired\n"
"  unread              timers that have, and whose record was not read yet\n"
"  cascaded, dropped   work inside: claims moved, stale claims dropped\n"
"  runs                times an interrupt looked for expired timers\n"
"  longest_run_ns      the longest of them\n"
"  lag_ticks           how far expiry is behind the clock now\n"
"  late_ticks          from the deadline to the expiry, at worst\n"
"  memory              bytes of kernel memory\n"
"\n"
"At any moment armed = cancelled + completed + pending + unread, and\n"
"expired = withdrawn + delivered + unread.\n"
"\n"
"Examples:\n"
"  hwtwctl stat\n"
"  hwtwctl stat --pid $(pidof orderd)\n"
"  hwtwctl stat --json | jq 'map(.pending) | add'\n",
	.run = stat_run,
};

/* monitor */

enum sort { BY_PENDING, BY_UNREAD, BY_RATE, BY_MEMORY, BY_PID };

static const char *const sort_names[] = {
	[BY_PENDING] = "pending",
	[BY_UNREAD] = "unread",
	[BY_RATE] = "rate",
	[BY_MEMORY] = "memory",
	[BY_PID] = "pid",
};

/* What happened a second since the last look. */
struct row {
	const struct instance *it;
	bool has_rates;
	double armed, rearmed, cancelled, expired, delivered;
};

static struct {
	enum sort sort;
	bool terminal;
	int width, lines;		/* of the terminal: what is left of it */
	struct termios modes;
	sigset_t signals;
	volatile sig_atomic_t stop, pause, redraw;
} monitor;

static const struct instance *former(const struct instances *before, const struct instance *it)
{
	for (size_t i = 0; i < before->nr; i++)
		if (before->list[i].number == it->number)
			return &before->list[i];
	return NULL;
}

static struct row make_row(const struct instance *it, const struct instances *before,
			   double seconds)
{
	const struct instance *old = former(before, it);
	struct row row = { .it = it, .has_rates = old };

	if (!old)
		return row;
#define RATE(name) ((it->stats.name - old->stats.name) / seconds)
	row.armed = RATE(armed);
	row.rearmed = RATE(rearmed);
	row.cancelled = RATE(cancelled);
	row.expired = RATE(expired);
	row.delivered = RATE(delivered);
#undef RATE
	return row;
}

static double sort_key(const struct row *row)
{
	switch (monitor.sort) {
	case BY_PENDING:
		return row->it->stats.pending;
	case BY_UNREAD:
		return row->it->stats.unread;
	case BY_RATE:
		return row->armed + row->rearmed + row->cancelled + row->delivered;
	case BY_MEMORY:
		return row->it->stats.memory;
	case BY_PID:
		break;
	}
	return -row->it->pid;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double kx = sort_key(x), ky = sort_key(y);

	if (kx != ky)
		return kx < ky ? 1 : -1;
	if (x->it->pid != y->it->pid)
		return x->it->pid < y->it->pid ? -1 : 1;
	return x->it->fd - y->it->fd;
}

static const char *show_rate(const struct row *row, double rate)
{
	return row->has_rates ? show_count(rate + .5) : "-";
}

/* The name of a user, if it is in /etc/passwd: a static program has no more. */
static const char *show_user(uid_t uid)
{
	static char name[33];
	static uid_t last = -1;
	const struct passwd *entry = NULL;
	FILE *f;

	if (uid == last && name[0])
		return name;
	f = fopen("/etc/passwd", "re");
	while (f && (entry = fgetpwent(f)) && entry->pw_uid != uid)
		;
	if (entry)
		snprintf(name, sizeof(name), "%s", entry->pw_name);
	else
		snprintf(name, sizeof(name), "%u", uid);
	if (f)
		fclose(f);
	last = uid;
	return name;
}

/* A line of the table, or as much of it as the terminal has room for. */
static void __attribute__((format(printf, 1, 2))) put_line(const char *fmt, ...)
{
	char line[256];
	va_list ap;

	if (!monitor.lines)
		return;
	monitor.lines--;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (monitor.terminal && strlen(line) >= (size_t)monitor.width)
		printf("%.*s\n", monitor.width, line);
	else
		printf("%s%s\n", line, monitor.terminal ? "\033[K" : "");
}

/* The columns fill 80 with a short name; the clock is for those who have more. */
#define WITH_CLOCK	90

static void put_instance(const struct row *r)
{
	const struct instance *it = r->it;
	char clock[8] = "";

	if (monitor.width >= WITH_CLOCK)
		snprintf(clock, sizeof(clock), "%-5.5s ", hwtw_clock_name(it->clockid));
	put_line("%7d %-8.8s %4d %s%5s %6s %5s %5s %5s %5s %7s %5s %s", it->pid,
		 show_user(it->uid), it->fd, clock, show_count(it->stats.pending),
		 show_count(it->stats.unread), show_rate(r, r->armed), show_rate(r, r->rearmed),
		 show_rate(r, r->cancelled), show_rate(r, r->delivered),
		 show_duration(it->stats.lag_ticks * it->tick_ns), show_bytes(it->stats.memory),
		 it->comm);
}

static void monitor_text(const struct instances *found, const struct row *rows)
{
	struct winsize size = { 0 };
	uint64_t pending = 0, unread = 0;
	char clock[16], shown[32] = "", unseen[48] = "";
	time_t now = time(NULL);

	monitor.width = INT_MAX;
	monitor.lines = INT_MAX;
	if (monitor.terminal) {
		if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col) {
			size.ws_row = 24;
			size.ws_col = 80;
		}
		monitor.width = size.ws_col;
		/* The last is left alone, lest the screen scrolls. */
		monitor.lines = size.ws_row - 1;
		fputs("\033[H", stdout);
	}
	for (size_t i = 0; i < found->nr; i++) {
		pending += found->list[i].stats.pending;
		unread += found->list[i].stats.unread;
	}
	if (monitor.lines > 2 && found->nr > (size_t)monitor.lines - 2)
		snprintf(shown, sizeof(shown), " (%d shown)", monitor.lines - 2);
	if (found->hidden)
		snprintf(unseen, sizeof(unseen), "; %u processes unseen", found->hidden);
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&now));
	put_line("%s  instances %zu%s, pending %s, unread %s%s", clock, found->nr, shown,
		 show_count(pending), show_count(unread), unseen);
	put_line("    PID USER       FD %s PEND UNREAD ARM/s REARM CANCL  READ     LAG   MEM COMMAND",
		 monitor.width >= WITH_CLOCK ? "CLOCK " : "");
	for (size_t i = 0; i < found->nr && monitor.lines; i++)
		put_instance(&rows[i]);
	fputs(monitor.terminal ? "\033[J" : "\n", stdout);
	fflush(stdout);
}

static void monitor_json(const struct instances *found, const struct row *rows)
{
	json_open(NULL, '{');
	json_double("time", clock_ns(CLOCK_REALTIME) / 1e9);
	json_u64("unseen_processes", found->hidden);
	json_open("instances", '[');
	for (size_t i = 0; i < found->nr; i++) {
		const struct row *r = &rows[i];

		json_open(NULL, '{');
		instance_json(r->it);
		if (r->has_rates) {
			json_open("per_second", '{');
			json_double("armed", r->armed);
			json_double("rearmed", r->rearmed);
			json_double("cancelled", r->cancelled);
			json_double("expired", r->expired);
			json_double("delivered", r->delivered);
			json_close('}');
		}
		json_close('}');
	}
	json_close(']');
	json_close('}');
	json_end();
}

static void on_signal(int nr)
{
	switch (nr) {
	case SIGWINCH:
	case SIGCONT:
		monitor.redraw = 1;
		break;
	case SIGTSTP:
		monitor.pause = 1;
		break;
	default:
		monitor.stop = 1;
	}
}

static void catch_signal(int nr, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(nr, &action, NULL);
	sigaddset(&monitor.signals, nr);
}

/* Keys come one by one, and are not shown. */
static void take_terminal(void)
{
	struct termios modes = monitor.modes;

	modes.c_lflag &= ~(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
}

static void give_terminal_back(void)
{
	if (monitor.terminal)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &monitor.modes);
}

static void terminal_begin(void)
{
	const char *term = getenv("TERM");

	sigemptyset(&monitor.signals);
	catch_signal(SIGINT, 0);
	catch_signal(SIGTERM, 0);
	catch_signal(SIGHUP, 0);
	monitor.terminal = !json && term && *term && strcmp(term, "dumb") &&
			   isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) &&
			   !tcgetattr(STDIN_FILENO, &monitor.modes);
	if (!monitor.terminal)
		return;
	catch_signal(SIGWINCH, SA_RESTART);
	catch_signal(SIGCONT, SA_RESTART);
	catch_signal(SIGTSTP, SA_RESTART);
	take_terminal();
	fputs("\033[2J", stdout);
}

/* Ctrl-Z: the shell finds its terminal as it was. */
static void pause_here(void)
{
	sigset_t set;

	give_terminal_back();
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	/* Here it goes on after SIGCONT. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	catch_signal(SIGTSTP, SA_RESTART);
	monitor.pause = 0;
	monitor.redraw = 1;
}

static void handle_key(void)
{
	char key = 0;

	if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q')
		monitor.stop = 1;
	for (size_t i = 0; i < ARRAY_SIZE(sort_names); i++) {
		if (key == (i == BY_PID ? 'i' : sort_names[i][0])) {
			monitor.sort = i;
			monitor.redraw = 1;
		}
	}
}

/* Wait for the time of the next look. True: draw this one anew before, and call again. */
static bool wait_until(uint64_t due_ns)
{
	struct pollfd p = { .fd = monitor.terminal ? STDIN_FILENO : -1, .events = POLLIN };
	bool redraw = false;
	sigset_t before;
	uint64_t now;

	sigprocmask(SIG_BLOCK, &monitor.signals, &before);
	while (!monitor.stop && (now = clock_ns(CLOCK_MONOTONIC)) < due_ns) {
		struct timespec ts = {
			.tv_sec = (due_ns - now) / NSEC_PER_SEC,
			.tv_nsec = (due_ns - now) % NSEC_PER_SEC,
		};

		if (monitor.pause)
			pause_here();
		if (monitor.redraw) {
			monitor.redraw = 0;
			redraw = true;
			take_terminal();
			break;
		}
		if (ppoll(&p, 1, &ts, &before) > 0)
			handle_key();
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return redraw;
}

static enum sort parse_sort(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(sort_names); i++)
		if (!strcmp(text, sort_names[i]))
			return i;
	die(EXIT_USAGE, "--sort %s: must be pending, unread, rate, memory or pid", text);
}

static int monitor_run(int argc, char **argv)
{
	enum { INTERVAL, COUNT, SORT };
	static const struct option options[] = {
		{ "interval", required_argument, NULL, INTERVAL },
		{ "count", required_argument, NULL, COUNT },
		{ "sort", required_argument, NULL, SORT },
		COMMON_OPTIONS
	};
	uint64_t interval = NSEC_PER_SEC, count = UINT64_MAX, last = 0;
	struct instances look[2] = { 0 };
	int o;

	while ((o = next_option(&cmd_monitor, argc, argv, options)) >= 0) {
		switch (o) {
		case INTERVAL:
			interval = parse_duration("interval", optarg);
			if (interval < 100 * NSEC_PER_MSEC || interval > 86400 * NSEC_PER_SEC)
				die(EXIT_USAGE, "--interval %s: must be from 100ms to 1d", optarg);
			break;
		case COUNT:
			count = parse_number("count", optarg, 1, UINT64_MAX);
			break;
		case SORT:
			monitor.sort = parse_sort(optarg);
			break;
		}
	}
	no_more_arguments(argc, argv);
	terminal_begin();
	for (uint64_t n = 0; n < count && !monitor.stop; n++) {
		struct instances *found = &look[n % 2];
		const struct instances *before = &look[(n + 1) % 2];
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		struct row *rows;

		find_instances(found, 0);
		rows = calloc(found->nr + 1, sizeof(*rows));
		if (!rows)
			die(EXIT_FAILED, "no memory for %zu instances", found->nr);
		for (size_t i = 0; i < found->nr; i++)
			rows[i] = make_row(&found->list[i], before, (now - last) / 1e9);
		do {
			qsort(rows, found->nr, sizeof(*rows), compare_rows);
			if (json)
				monitor_json(found, rows);
			else
				monitor_text(found, rows);
		} while (!ferror(stdout) && n + 1 < count && wait_until(now + interval));
		free(rows);
		if (ferror(stdout))
			break;
		last = now;
	}
	give_terminal_back();
	return EXIT_OK;
}

const struct command cmd_monitor = {
	.name = "monitor",
	.summary = "a live view of all instances on this machine",
	.help =
"usage: hwtwctl monitor [--interval TIME] [--count N] [--sort WHAT] [--json]\n"
"\n"
"Shows all open instances of /dev/hwtw, the busiest first, again and again. When\n"
"stdout or stdin is no terminal, or a dumb one, prints one table below the other.\n"
"What it sees, and what it needs, is as of \"hwtwctl stat\".\n"
"\n"
"  --interval TIME   from look to look, 100ms to 1d. Default: 1s\n"
"  --count N         end after N looks\n"
"  --sort WHAT       pending, unread, rate, memory or pid. Default: pending\n"
"  --json            an object on a line of its own for each look\n"
"\n"
"Keys: q ends it; p, u, r, m and i sort by pending, unread, rate, memory and pid.\n"
"\n"
"Columns:\n"
"  PID, USER, FD      whose descriptor it is; one of them, if it is shared\n"
"  CLOCK              monot(onic), boott(ime) or realt(ime); from 90 columns on\n"
"  PEND, UNREAD       timers that have not expired; that have, and are not read yet\n"
"  ARM/s, REARM, CANCL, READ\n"
"                     timers armed, re-armed, cancelled and records read a second;\n"
"                     a dash until there are two looks\n"
"  LAG                how far expiry is behind the clock now\n"
"  MEM                bytes of kernel memory\n"
"\n"
"Examples:\n"
"  hwtwctl monitor\n"
"  ssh -t HOST hwtwctl monitor --sort rate\n"
"  hwtwctl monitor --json --interval 10s >>hwtw.log\n",
	.run = monitor_run,
};
