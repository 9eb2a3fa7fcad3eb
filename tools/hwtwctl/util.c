// SPDX-License-Identifier: GPL-2.0-only
/* hwtwctl: messages, values, JSON, instances */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hwtwctl.h"

#define DEVICE	"/dev/hwtw"

bool json;

static void message(const char *fmt, va_list ap)
{
	fflush(stdout);
	fputs("hwtwctl: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(fmt, ap);
	va_end(ap);
}

void die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(fmt, ap);
	va_end(ap);
	exit(status);
}

/* Options */

int next_option(const struct command *cmd, int argc, char **argv, const struct option *options)
{
	int o;

	opterr = 0;
	for (;;) {
		o = getopt_long(argc, argv, ":h", options, NULL);
		switch (o) {
		case OPT_JSON:
			json = true;
			continue;
		case OPT_HELP:
		case 'h':
			fputs(cmd->help, stdout);
			exit(fflush(stdout) ? EXIT_FAILED : EXIT_OK);
		case ':':
			die(EXIT_USAGE, "%s needs a value, see \"%s --help\"", argv[optind - 1],
			    argv[0]);
		case '?':
			if (optopt && optopt <= UCHAR_MAX)
				die(EXIT_USAGE, "what is \"-%c\"? See \"%s --help\"", optopt, argv[0]);
			die(EXIT_USAGE, "what is \"%s\"? See \"%s --help\"", argv[optind - 1],
			    argv[0]);
		}
		return o;
	}
}

void no_more_arguments(int argc, char **argv)
{
	if (optind < argc)
		die(EXIT_USAGE, "what is \"%s\"? See \"%s --help\"", argv[optind], argv[0]);
}

char **cut_command(int *argc, char **argv)
{
	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		if (!argv[i + 1])
			die(EXIT_USAGE, "there is no command behind \"--\"");
		*argc = i;
		return &argv[i + 1];
	}
	return NULL;
}

uint64_t parse_number(const char *name, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || *end || *text < '0' || *text > '9' || n < least || n > most)
		die(EXIT_USAGE, "--%s %s: must be a number from %" PRIu64 " to %" PRIu64, name,
		    text, least, most);
	return n;
}

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "m", 60 * NSEC_PER_SEC },
	{ "min", 60 * NSEC_PER_SEC },
	{ "h", 3600 * NSEC_PER_SEC },
	{ "d", 86400 * NSEC_PER_SEC },
	{ "w", 7 * 86400 * NSEC_PER_SEC },
};

/* Digits with a point somewhere, times @unit. False: too long a time. */
static bool scale(const char *digits, size_t len, uint64_t unit, uint64_t *ns)
{
	uint64_t whole = 0, part = unit;

	for (; len && *digits != '.'; digits++, len--) {
		if (whole > (HWTW_TIME_MAX_NS - (*digits - '0')) / 10)
			return false;
		whole = whole * 10 + (*digits - '0');
	}
	if (whole > HWTW_TIME_MAX_NS / unit)
		return false;
	*ns = whole * unit;
	/* A digit of the fraction is worth a tenth of the one before. */
	for (digits++; len > 1; digits++, len--) {
		part /= 10;
		*ns += part * (*digits - '0');
	}
	return *ns <= HWTW_TIME_MAX_NS;
}

/* "1h30m", "250ms", "1.5s", "90": seconds, as of sleep(1). */
bool duration_ok(const char *text, uint64_t *ns)
{
	uint64_t sum = 0;

	if (!*text)
		return false;
	while (*text) {
		size_t digits = strspn(text, "0123456789."), unit_len, i;
		const char *unit = text + digits;
		const char *point = memchr(text, '.', digits);
		uint64_t value;

		if (!digits || text[0] == '.' || text[digits - 1] == '.' ||
		    (point && memchr(point + 1, '.', unit - point - 1)))
			return false;
		unit_len = strspn(unit, "abcdefghijklmnopqrstuvwxyz");
		/* Without a unit there is one number only. */
		if (!unit_len && (sum || unit[0]))
			return false;
		for (i = 0; unit_len && i < ARRAY_SIZE(units); i++)
			if (strlen(units[i].name) == unit_len &&
			    !strncmp(unit, units[i].name, unit_len))
				break;
		if (i == ARRAY_SIZE(units) ||
		    !scale(text, digits, unit_len ? units[i].ns : NSEC_PER_SEC, &value) ||
		    value > HWTW_TIME_MAX_NS - sum)
			return false;
		sum += value;
		text = unit + unit_len;
	}
	*ns = sum;
	return true;
}

uint64_t parse_duration(const char *name, const char *text)
{
	uint64_t ns;

	if (!duration_ok(text, &ns))
		die(EXIT_USAGE, "%s%s%s%s: not a time such as 250ms, 1.5s, 1h30m, 2d or 90 (seconds)",
		    name ? "--" : "", name ?: "", name ? " " : "", text);
	return ns;
}

uint32_t parse_clock(const char *text)
{
	static const uint32_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (!strcmp(text, hwtw_clock_name(clocks[i])))
			return clocks[i];
	die(EXIT_USAGE, "--clock %s: must be monotonic, boottime or realtime", text);
}

/* Values for people */

static char *scratch(size_t *size)
{
	static char buf[16][48];
	static unsigned int next;

	*size = sizeof(buf[0]);
	return buf[next++ % ARRAY_SIZE(buf)];
}

const char *show_duration(uint64_t ns)
{
	uint64_t s = ns / NSEC_PER_SEC;
	size_t size;
	char *buf = scratch(&size);

	if (ns < NSEC_PER_USEC)
		snprintf(buf, size, "%" PRIu64 "ns", ns);
	else if (ns < NSEC_PER_MSEC)
		snprintf(buf, size, "%.4gus", ns / 1e3);
	else if (ns < NSEC_PER_SEC)
		snprintf(buf, size, "%.4gms", ns / 1e6);
	else if (s < 60)
		snprintf(buf, size, "%.4gs", ns / 1e9);
	else if (s < 3600)
		snprintf(buf, size, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, size, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(buf, size, "%" PRIu64 "d%02" PRIu64 "h", s / 86400, s / 3600 % 24);
	return buf;
}

/* At most five characters. */
static const char *show_scaled(uint64_t n, unsigned int base, const char *units_text)
{
	size_t size;
	char *buf = scratch(&size);
	double value = n;

	if (n < 10000) {
		snprintf(buf, size, "%" PRIu64, n);
		return buf;
	}
	for (; value >= 999.5 && *units_text; units_text++)
		value /= base;
	snprintf(buf, size, "%.*f%c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value,
		 units_text[-1]);
	return buf;
}

const char *show_count(uint64_t n)
{
	return show_scaled(n, 1000, "kMGTPE");
}

const char *show_bytes(uint64_t n)
{
	return show_scaled(n, 1024, "KMGTPE");
}

uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* JSON */

static bool json_comma;

static void json_key(const char *key)
{
	if (json_comma)
		putchar(',');
	json_comma = true;
	if (key)
		printf("\"%s\":", key);
}

void json_open(const char *key, char bracket)
{
	json_key(key);
	putchar(bracket);
	json_comma = false;
}

void json_close(char bracket)
{
	putchar(bracket);
	json_comma = true;
}

void json_u64(const char *key, uint64_t value)
{
	json_key(key);
	printf("%" PRIu64, value);
}

void json_i64(const char *key, int64_t value)
{
	json_key(key);
	printf("%" PRId64, value);
}

void json_double(const char *key, double value)
{
	json_key(key);
	printf("%.3f", value);
}

void json_bool(const char *key, bool value)
{
	json_key(key);
	fputs(value ? "true" : "false", stdout);
}

void json_string(const char *key, const char *value)
{
	json_key(key);
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
		if (*c < 0x20)
			printf("\\u%04x", *c);
		else if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

void json_end(void)
{
	putchar('\n');
	json_comma = false;
	fflush(stdout);
}

/* Instances */

/* Why it cannot be opened, and what helps. */
static void __attribute__((noreturn)) cannot_open(int err)
{
	struct stat st;

	switch (-err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		die(EXIT_NO_DEVICE, "there is no " DEVICE ": load the module, as root: modprobe hwtw");
	case EACCES:
	case EPERM:
		if (!stat(DEVICE, &st) && st.st_gid && (st.st_mode & 0060) == 0060)
			die(EXIT_DENIED, "no permission for " DEVICE ": join its group, as root: usermod -aG hwtw NAME, and log in again");
		die(EXIT_DENIED, "no permission for " DEVICE ", which is root's alone: become root, or install 70-hwtw.rules of hwtw for udev and join the group hwtw");
	}
	die(EXIT_FAILED, DEVICE ": %s", strerror(-err));
}

int open_device(int flags)
{
	int fd = hwtw_open(flags);

	if (fd < 0)
		cannot_open(fd);
	return fd;
}

void get_info(int fd, struct hwtw_info *info)
{
	int err = hwtw_get_info(fd, info);

	if (err == -ENOTTY || err == -EINVAL)
		die(EXIT_FAILED, "descriptor %d is not of " DEVICE, fd);
	if (err)
		die(EXIT_FAILED, "descriptor %d: %s", fd, hwtw_strerror(err));
}

void set_up(int fd, uint32_t clockid, uint64_t tick_ns, uint64_t max_timers)
{
	int err = hwtw_set_up(fd, clockid, tick_ns, max_timers);

	if (err == -EINVAL)
		die(EXIT_USAGE, "a tick of %s: must be from %s to %s", show_duration(tick_ns),
		    show_duration(HWTW_TICK_MIN_NS), show_duration(HWTW_TICK_MAX_NS));
	if (err)
		die(EXIT_FAILED, "cannot set up the instance: %s", hwtw_strerror(err));
}

void need_feature(int fd, uint64_t feature, const char *what)
{
	struct hwtw_info info;

	get_info(fd, &info);
	if (!(info.features & feature))
		die(EXIT_NO_DEVICE, "%s needs a module with the feature \"%s\": load a newer one",
		    what, hwtw_feature_name(feature));
}

/* The one descriptor of hwtw that the process has. */
static int only_instance(pid_t pid)
{
	struct instances found = { 0 };

	find_instances(&found, pid);
	if (found.hidden)
		die(EXIT_DENIED, "no permission to look into process %d: become its user or root",
		    pid);
	if (!found.nr)
		die(EXIT_FAILED, "process %d has no instance of hwtw", pid);
	if (found.nr > 1)
		die(EXIT_USAGE, "process %d has %zu instances: choose one with --fd, \"hwtwctl stat --pid %d\" lists them",
		    pid, found.nr, pid);
	return found.list[0].fd;
}

int borrow_instance(pid_t pid, int fd)
{
	struct hwtw_info info;
	int pidfd, copy;

	if (!pid) {
		if (fcntl(fd, F_GETFD) < 0)
			die(EXIT_USAGE, "descriptor %d is not open: hand it over, such as by %d<>/dev/hwtw, or use --pid",
			    fd, fd);
		get_info(fd, &info);
		return fd;
	}
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		die(EXIT_FAILED, "process %d: %s", pid, strerror(errno));
	if (fd < 0)
		fd = only_instance(pid);
	copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (copy < 0 && errno == EPERM)
		die(EXIT_DENIED, "no permission for the descriptors of process %d: become root, or its user if /proc/sys/kernel/yama/ptrace_scope is 0",
		    pid);
	if (copy < 0 && errno == EBADF)
		die(EXIT_FAILED, "process %d has no descriptor %d: see \"hwtwctl stat --pid %d\"",
		    pid, fd, pid);
	if (copy < 0)
		die(EXIT_FAILED, "descriptor %d of process %d: %s", fd, pid, strerror(errno));
	close(pidfd);
	if (hwtw_get_info(copy, &info))
		die(EXIT_FAILED, "descriptor %d of process %d is not of " DEVICE ": see \"hwtwctl stat --pid %d\"",
		    fd, pid, pid);
	return copy;
}
