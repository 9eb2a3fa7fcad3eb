// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtwctl dump and restore: the timers of an instance, to a file and back
 *
 * The file is text, told by "hwtwctl dump --help". Its last line has a checksum
 * of all before it; a file that does not end with that line is damaged.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hwtwctl.h"

#define MAGIC		"hwtw-dump"
#define VERSION		1
#define BOOT_ID		"/proc/sys/kernel/random/boot_id"
#define LIST_NR		1024

struct timer {
	uint64_t deadline_ns, interval_ns, user_data;
};

struct dump {
	char boot_id[40];
	uint32_t clockid;
	uint64_t clock_ns;		/* at the same moment as ... */
	uint64_t realtime_ns;
	uint64_t tick_ns;
	uint64_t max_timers;
	uint64_t nr, room;
	struct timer *timer;
};

static void read_boot_id(char *id, size_t size)
{
	FILE *f = fopen(BOOT_ID, "re");

	if (!f || !fgets(id, size, f))
		die(EXIT_FAILED, BOOT_ID ": %s", strerror(errno));
	fclose(f);
	id[strcspn(id, "\n")] = 0;
}

static void add_timer(struct dump *d, const struct timer *timer)
{
	if (d->nr == d->room) {
		d->room = d->room ? 2 * d->room : 1024;
		d->timer = reallocarray(d->timer, d->room, sizeof(*d->timer));
		if (!d->timer)
			die(EXIT_FAILED, "no memory for %" PRIu64 " timers", d->room);
	}
	d->timer[d->nr++] = *timer;
}

/* CRC-32 as of zlib, gzip and Ethernet. */
static uint32_t crc32_add(uint32_t crc, const char *data, size_t len)
{
	static uint32_t table[256];

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			table[i] = i;
			for (int bit = 0; bit < 8; bit++)
				table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
		}
	}
	crc = ~crc;
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *data++) & 0xff];
	return ~crc;
}

/* dump */

struct out {
	FILE *f;
	uint32_t crc;
};

static void __attribute__((format(printf, 2, 3))) put(struct out *out, const char *fmt, ...)
{
	char line[128];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	out->crc = crc32_add(out->crc, line, len);
	fwrite(line, 1, len, out->f);
}

static bool write_dump(FILE *f, const struct dump *d)
{
	struct out out = { .f = f };

	put(&out, MAGIC " %d\n", VERSION);
	put(&out, "boot_id %s\n", d->boot_id);
	put(&out, "clock %s\n", hwtw_clock_name(d->clockid));
	put(&out, "clock_ns %" PRIu64 "\n", d->clock_ns);
	put(&out, "realtime_ns %" PRIu64 "\n", d->realtime_ns);
	put(&out, "tick_ns %" PRIu64 "\n", d->tick_ns);
	put(&out, "max_timers %" PRIu64 "\n", d->max_timers);
	put(&out, "timers %" PRIu64 "\n", d->nr);
	for (uint64_t i = 0; i < d->nr; i++)
		put(&out, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", d->timer[i].deadline_ns,
		    d->timer[i].interval_ns, d->timer[i].user_data);
	fprintf(f, "crc32 %08x\n", out.crc);
	return !fflush(f) && !ferror(f);
}

static int compare_timers(const void *a, const void *b)
{
	const struct timer *x = a, *y = b;

	if (x->deadline_ns != y->deadline_ns)
		return x->deadline_ns < y->deadline_ns ? -1 : 1;
	return (x->user_data > y->user_data) - (x->user_data < y->user_data);
}

static void collect(struct dump *d, int fd)
{
	struct hwtw_timer timers[LIST_NR];
	struct hwtw_info info;
	uint64_t cursor = 0;
	int nr;

	need_feature(fd, HWTW_FEATURE_LIST, "dump");
	get_info(fd, &info);
	read_boot_id(d->boot_id, sizeof(d->boot_id));
	d->clockid = info.clockid;
	d->tick_ns = info.tick_ns;
	d->max_timers = info.max_timers;
	d->realtime_ns = clock_ns(CLOCK_REALTIME);
	d->clock_ns = clock_ns(d->clockid);
	while ((nr = hwtw_walk(fd, timers, LIST_NR, 0, &cursor)) > 0) {
		for (int i = 0; i < nr; i++)
			add_timer(d, &(struct timer) {
				.deadline_ns = timers[i].time_ns,
				.interval_ns = timers[i].interval_ns,
				.user_data = timers[i].user_data,
			});
	}
	if (nr < 0)
		die(EXIT_FAILED, "cannot list the timers: %s", hwtw_strerror(nr));
	if (d->nr)
		qsort(d->timer, d->nr, sizeof(*d->timer), compare_timers);
}

/* After a crash there is the old file or the new one, whole. */
static void write_file(const char *path, const struct dump *d)
{
	char *tmp, *dir_path = strdup(path);
	int fd, dir, err;
	FILE *f;

	if (!dir_path || asprintf(&tmp, "%s.XXXXXX", path) < 0)
		die(EXIT_FAILED, "no memory");
	fd = mkostemp(tmp, O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		die(EXIT_FAILED, "%s: %s", tmp, strerror(errno));
	if (!write_dump(f, d) || fsync(fd) || fclose(f) || rename(tmp, path)) {
		err = errno;
		unlink(tmp);
		die(EXIT_FAILED, "%s: %s; there is no new dump", path, strerror(err));
	}
	dir = open(dirname(dir_path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fsync(dir))
		die(EXIT_FAILED, "%s: is written, but may be gone after a crash: %s", path,
		    strerror(errno));
	close(dir);
	free(tmp);
	free(dir_path);
}

static int dump_run(int argc, char **argv)
{
	enum { PID, FD };
	static const struct option options[] = {
		{ "pid", required_argument, NULL, PID },
		{ "fd", required_argument, NULL, FD },
		COMMON_OPTIONS
	};
	struct dump d = { 0 };
	const char *path;
	pid_t pid = 0;
	int fd = -1, o;

	while ((o = next_option(&cmd_dump, argc, argv, options)) >= 0) {
		if (o == PID)
			pid = parse_number("pid", optarg, 1, INT32_MAX);
		else
			fd = parse_number("fd", optarg, 0, INT32_MAX);
	}
	if (optind == argc)
		die(EXIT_USAGE, "into which file? See \"hwtwctl dump --help\"");
	path = argv[optind++];
	no_more_arguments(argc, argv);
	if (!pid && fd < 0)
		die(EXIT_USAGE, "which instance? Name a process with --pid, or a descriptor with --fd");
	collect(&d, borrow_instance(pid, fd));
	if (!strcmp(path, "-")) {
		if (!write_dump(stdout, &d))
			die(EXIT_FAILED, "cannot write to stdout: %s", strerror(errno));
		return EXIT_OK;
	}
	write_file(path, &d);
	if (json) {
		json_open(NULL, '{');
		json_string("file", path);
		json_u64("timers", d.nr);
		json_close('}');
		json_end();
	} else {
		printf("%s: %" PRIu64 " timers\n", path, d.nr);
	}
	return EXIT_OK;
}

const struct command cmd_dump = {
	.name = "dump",
	.summary = "write the timers of an instance to a file",
	.help =
"usage: hwtwctl dump [--pid PID] [--fd N] [--json] FILE\n"
"\n"
"Writes all live timers of an instance to FILE, those that have expired and were\n"
"not read yet too, and leaves them as they are. FILE is written beside its place\n"
"and then moved there: after a crash it is the old one or the new one. It can be\n"
"read by its owner only. \"-\" is stdout.\n"
"\n"
"  --pid PID   an instance of this process (needs the right to trace it)\n"
"  --fd N      descriptor N of that process, which need not be given if it has\n"
"              only one; without --pid: inherited by hwtwctl\n"
"  --json      an object that tells the number of timers\n"
"\n"
"A timer that is read after the dump was made will expire once more when the dump\n"
"is restored. Where that matters, stop the program first: kill -STOP PID.\n"
"\n"
"The file is text:\n"
"  hwtw-dump 1         the version\n"
"  boot_id ID          of the machine, since when clocks other than realtime count\n"
"  clock NAME          of the instance: monotonic, boottime or realtime\n"
"  clock_ns N          what that clock read when the dump was made,\n"
"  realtime_ns N       and what the time of day was then, since 1970\n"
"  tick_ns N\n"
"  max_timers N        limit of the instance\n"
"  timers N            how many follow, a line for each in the order of deadlines:\n"
"  DEADLINE INTERVAL USER_DATA\n"
"                      nanoseconds on the clock of the instance; 0: no interval\n"
"  crc32 X             checksum, as of zlib, of all lines above\n"
"\n"
"Examples:\n"
"  hwtwctl dump --pid 4711 orders.hwtw\n"
"  hwtwctl dump --fd 5 orders.hwtw 5<&5          from a shell that has it as 5\n"
"  ssh HOST hwtwctl dump --pid 4711 - | hwtwctl restore - -- orderd\n",
	.run = dump_run,
};

/* restore */

struct in {
	const char *path;
	FILE *f;
	char *line;
	size_t size;
	uint64_t nr;			/* of the line */
	uint32_t crc;
};

static void __attribute__((noreturn)) damaged(const struct in *in, const char *why)
{
	die(EXIT_DAMAGED, "%s: line %" PRIu64 " %s: nothing was restored", in->path, in->nr, why);
}

/* The next line, without its end. The checksum covers those before the last. */
static char *next_line(struct in *in)
{
	ssize_t len = getline(&in->line, &in->size, in->f);

	in->nr++;
	if (len < 0 && ferror(in->f))
		die(EXIT_FAILED, "%s: %s", in->path, strerror(errno));
	if (len < 0)
		damaged(in, "is missing");
	if (in->line[len - 1] != '\n')
		damaged(in, "is cut off");
	if (strlen(in->line) != (size_t)len)
		damaged(in, "is no text");
	if (strncmp(in->line, "crc32 ", 6))
		in->crc = crc32_add(in->crc, in->line, len);
	in->line[len - 1] = 0;
	return in->line;
}

/* A number at *@text, which @end must follow; moves *@text behind that. */
static uint64_t number(const struct in *in, char **text, char end, uint64_t most)
{
	char *behind;
	uint64_t n;

	errno = 0;
	n = strtoull(*text, &behind, 10);
	if (errno || **text < '0' || **text > '9' || *behind != end || n > most)
		damaged(in, "has a bad number");
	*text = behind + 1;
	return n;
}

static char *value(struct in *in, const char *name)
{
	char *line = next_line(in);
	size_t len = strlen(name);

	if (strncmp(line, name, len) || line[len] != ' ')
		damaged(in, "is not what belongs there");
	return line + len + 1;
}

static uint64_t value_number(struct in *in, const char *name, uint64_t most)
{
	char *text = value(in, name);

	return number(in, &text, 0, most);
}

static uint32_t value_clock(struct in *in)
{
	static const uint32_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	const char *text = value(in, "clock");

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (!strcmp(text, hwtw_clock_name(clocks[i])))
			return clocks[i];
	damaged(in, "names a clock that is not known");
}

static void read_dump(struct dump *d, const char *path)
{
	struct in in = { .path = path };
	char *text, crc[16];
	uint64_t nr;

	in.f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	if (!in.f)
		die(EXIT_FAILED, "%s: %s", path, strerror(errno));
	text = next_line(&in);
	if (strncmp(text, MAGIC " ", strlen(MAGIC " ")))
		die(EXIT_DAMAGED, "%s: not a file of \"hwtwctl dump\"", path);
	if (strcmp(text + strlen(MAGIC " "), "1"))
		die(EXIT_DAMAGED, "%s: version %.20s, this hwtwctl reads version %d", path,
		    text + strlen(MAGIC " "), VERSION);
	snprintf(d->boot_id, sizeof(d->boot_id), "%s", value(&in, "boot_id"));
	d->clockid = value_clock(&in);
	/* 146 years: far enough from the end for shift(). */
	d->clock_ns = value_number(&in, "clock_ns", HWTW_TIME_MAX_NS / 2);
	d->realtime_ns = value_number(&in, "realtime_ns", HWTW_TIME_MAX_NS / 2);
	d->tick_ns = value_number(&in, "tick_ns", HWTW_TICK_MAX_NS);
	d->max_timers = value_number(&in, "max_timers", UINT64_MAX);
	nr = value_number(&in, "timers", UINT64_MAX);
	for (uint64_t i = 0; i < nr; i++) {
		struct timer timer;

		text = next_line(&in);
		timer.deadline_ns = number(&in, &text, ' ', HWTW_TIME_MAX_NS);
		timer.interval_ns = number(&in, &text, ' ', HWTW_TIME_MAX_NS);
		timer.user_data = number(&in, &text, 0, UINT64_MAX);
		add_timer(d, &timer);
	}
	text = value(&in, "crc32");
	snprintf(crc, sizeof(crc), "%08x", in.crc);
	if (strcmp(text, crc))
		damaged(&in, "has another checksum than the file");
	if (getc(in.f) != EOF)
		damaged(&in, "should be the last");
	if (in.f != stdin)
		fclose(in.f);
	free(in.line);
}

/*
 * Since another boot the clock counts from elsewhere: keep the time of day at
 * which they are due. A clock that is behind then makes them due at once.
 */
static bool shift(struct dump *d)
{
	uint64_t now_clock, now_real;
	char boot_id[40];
	int64_t by;

	read_boot_id(boot_id, sizeof(boot_id));
	if (d->clockid == CLOCK_REALTIME || !strcmp(boot_id, d->boot_id))
		return false;
	now_real = clock_ns(CLOCK_REALTIME);
	now_clock = clock_ns(d->clockid);
	by = (int64_t)(now_clock - d->clock_ns) - (int64_t)(now_real - d->realtime_ns);
	for (uint64_t i = 0; i < d->nr; i++) {
		uint64_t *at = &d->timer[i].deadline_ns;

		/* "Never" stays never. */
		if (*at == HWTW_TIME_MAX_NS)
			continue;
		if (by < 0)
			*at = *at < -(uint64_t)by ? 0 : *at + by;
		else
			*at = *at > HWTW_TIME_MAX_NS - by ? HWTW_TIME_MAX_NS : *at + by;
	}
	return true;
}

/* An instance that was used before has its clock. */
static void fit_instance(const struct dump *d, int fd)
{
	int err = hwtw_set_up(fd, d->clockid, d->tick_ns, d->max_timers);
	struct hwtw_info info;

	if (err == -EBUSY) {
		get_info(fd, &info);
		if (info.clockid != d->clockid)
			die(EXIT_FAILED, "descriptor %d runs on the clock %s, the dump on %s: use a new instance",
			    fd, hwtw_clock_name(info.clockid), hwtw_clock_name(d->clockid));
		return;
	}
	if (err)
		set_up(fd, d->clockid, d->tick_ns, d->max_timers);
}

struct restored {
	uint64_t *id;
	uint64_t nr;
	int err;
};

static void restored_one(const struct hwtw_op *op, void *arg)
{
	struct restored *r = arg;

	if (!op->result)
		r->id[r->nr++] = op->timer.id;
	else if (!r->err)
		r->err = op->result;
}

static void cancel_all(int fd, const struct restored *r)
{
	struct hwtw_batch *batch;

	if (hwtw_batch_new(&batch, fd, 256, NULL, NULL))
		return;
	for (uint64_t i = 0; i < r->nr; i++)
		hwtw_batch_cancel(batch, r->id[i], 0);
	hwtw_batch_flush(batch);
	hwtw_batch_free(batch);
}

/* All of them or none. */
static void restore_timers(const struct dump *d, int fd)
{
	struct restored r = { .id = calloc(d->nr + 1, sizeof(*r.id)) };
	struct hwtw_batch *batch;
	int err;

	if (!r.id)
		die(EXIT_FAILED, "no memory for %" PRIu64 " timers", d->nr);
	err = hwtw_batch_new(&batch, fd, 256, restored_one, &r);
	for (uint64_t i = 0; i < d->nr && !err && !r.err; i++)
		err = hwtw_batch_arm(batch, d->timer[i].deadline_ns, d->timer[i].interval_ns,
				     HWTW_TIMER_ABS, d->timer[i].user_data);
	if (!err && !r.err)
		err = hwtw_batch_flush(batch);
	if (!err)
		err = r.err;
	if (err) {
		cancel_all(fd, &r);
		die(EXIT_FAILED, "cannot arm %" PRIu64 " timers: %s; none was left armed", d->nr,
		    hwtw_strerror(err));
	}
	hwtw_batch_free(batch);
	free(r.id);
}

/* As systemd hands descriptors over: the first is 3, the environment says so. */
static void __attribute__((noreturn)) exec_with(int fd, char **command)
{
	char pid[16];
	int err;

	if (fd != 3 && dup2(fd, 3) < 0)
		die(EXIT_FAILED, "descriptor 3: %s", strerror(errno));
	fcntl(3, F_SETFD, 0);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_FDNAMES", "hwtw", 1);
	fflush(stdout);
	execvp(command[0], command);
	err = errno;
	warn("cannot run %s: %s", command[0], strerror(err));
	exit(err == ENOENT ? 127 : 126);
}

static int restore_run(int argc, char **argv)
{
	enum { FD };
	static const struct option options[] = {
		{ "fd", required_argument, NULL, FD },
		COMMON_OPTIONS
	};
	char **command = cut_command(&argc, argv);
	struct dump d = { 0 };
	const char *path;
	bool shifted;
	int fd = -1;

	while (next_option(&cmd_restore, argc, argv, options) >= 0)
		fd = parse_number("fd", optarg, 0, INT32_MAX);
	if (optind == argc)
		die(EXIT_USAGE, "from which file? See \"hwtwctl restore --help\"");
	path = argv[optind++];
	no_more_arguments(argc, argv);
	if (fd < 0 && !command)
		die(EXIT_USAGE, "for whom? Timers are gone when no one has them open: add --fd, or \"-- COMMAND\"");
	read_dump(&d, path);
	fd = fd < 0 ? open_device(0) : borrow_instance(0, fd);
	fit_instance(&d, fd);
	shifted = shift(&d);
	restore_timers(&d, fd);
	if (json) {
		json_open(NULL, '{');
		json_string("file", path);
		json_u64("timers", d.nr);
		json_bool("other_boot", shifted);
		json_close('}');
		json_end();
	} else if (!command) {
		printf("%s: %" PRIu64 " timers%s\n", path, d.nr,
		       shifted ? ", of another boot: due at the same time of day" : "");
	}
	if (command)
		exec_with(fd, command);
	return EXIT_OK;
}

const struct command cmd_restore = {
	.name = "restore",
	.summary = "arm the timers of such a file again",
	.help =
"usage: hwtwctl restore [--json] FILE --fd N\n"
"       hwtwctl restore [--json] FILE [--fd N] -- COMMAND [ARG]...\n"
"\n"
"Arms the timers of a file of \"hwtwctl dump\" again: all of them, or none if the\n"
"file is damaged or one cannot be armed. \"-\" is stdin.\n"
"\n"
"  --fd N      arm them in the instance that is descriptor N, inherited by hwtwctl.\n"
"              It is set up as the dump says, unless it was used before: then it\n"
"              must run on the same clock\n"
"  -- COMMAND  become this program, which has the instance, a new one without --fd,\n"
"              as descriptor 3 and finds in its environment what systemd would put\n"
"              there: LISTEN_FDS=1, LISTEN_PID and LISTEN_FDNAMES=hwtw\n"
"  --json      an object that tells the number of timers\n"
"\n"
"Deadlines are absolute: what has passed meanwhile is readable at once, and a\n"
"periodic timer tells in its overruns how many periods were missed. User data is\n"
"as before, ids are new. If the machine was booted since the dump was made, or is\n"
"another one, monotonic and boottime clocks count from elsewhere; then the timers\n"
"are due at the same time of day, so that needs to be right on both.\n"
"\n"
"Exit status: that of the COMMAND, 127 if there is none, 126 if it cannot be run;\n"
"else see \"hwtwctl --help\".\n"
"\n"
"Examples:\n"
"  hwtwctl restore orders.hwtw -- orderd\n"
"  hwtwctl restore orders.hwtw --fd 5              from a shell that has it as 5\n",
	.run = restore_run,
};
