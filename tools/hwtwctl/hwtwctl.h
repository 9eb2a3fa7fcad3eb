/* SPDX-License-Identifier: GPL-2.0-only */
/* hwtwctl: what its files share */
#ifndef HWTWCTL_H
#define HWTWCTL_H

#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <libhwtw.h>

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Exit statuses, told by --help. */
enum {
	EXIT_OK,
	EXIT_FAILED,
	EXIT_USAGE,
	EXIT_NO_DEVICE,
	EXIT_DENIED,
	EXIT_DAMAGED,
};

/* Messages on stderr, one line. The last part says what to do. */
void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void die(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

/*
 * Options. Every command takes --json and --help, which next_option() handles:
 * it returns the val of the others, or -1.
 */
struct command {
	const char *name;
	const char *summary;
	const char *help;
	int (*run)(int argc, char **argv);
};

extern const struct command cmd_info, cmd_arm, cmd_stat, cmd_monitor, cmd_bench, cmd_selftest,
	cmd_dump, cmd_restore;

#define OPT_JSON	1000
#define OPT_HELP	1001
#define COMMON_OPTIONS							\
	{ "json", no_argument, NULL, OPT_JSON },			\
	{ "help", no_argument, NULL, OPT_HELP },			\
	{ 0 }

extern bool json;
int next_option(const struct command *cmd, int argc, char **argv, const struct option *options);
void no_more_arguments(int argc, char **argv);
/* Cut @argc at the "--" before a command. Returns the command, or NULL: there is none. */
char **cut_command(int *argc, char **argv);

/* Values as people write them; the program ends if they are none. @name is of the option. */
uint64_t parse_number(const char *name, const char *text, uint64_t least, uint64_t most);
uint64_t parse_duration(const char *name, const char *text);
bool duration_ok(const char *text, uint64_t *ns);
uint32_t parse_clock(const char *text);

/* Values as people read them. The results of the last few calls stay. */
const char *show_duration(uint64_t ns);
const char *show_count(uint64_t n);
const char *show_bytes(uint64_t n);

uint64_t clock_ns(clockid_t clock);

/* Instances */
int open_device(int flags);
void get_info(int fd, struct hwtw_info *info);
void set_up(int fd, uint32_t clockid, uint64_t tick_ns, uint64_t max_timers);
/* Descriptor @fd of process @pid, or with @pid 0 of this one. @fd -1: the only one. */
int borrow_instance(pid_t pid, int fd);
/* Ends the program unless the module has this. @what: who wants it. */
void need_feature(int fd, uint64_t feature, const char *what);

/* JSON on stdout. @key is NULL in arrays. */
void json_open(const char *key, char bracket);
void json_close(char bracket);
void json_u64(const char *key, uint64_t value);
void json_i64(const char *key, int64_t value);
void json_double(const char *key, double value);
void json_bool(const char *key, bool value);
void json_string(const char *key, const char *value);
/* Ends a document that is one line. */
void json_end(void);

/* What /proc tells of the instances of a machine. */
struct counter {
	const char *name;
	size_t offset;
};

extern const struct counter counters[];
extern const size_t nr_counters;
uint64_t counter_value(const struct hwtw_stats *stats, const struct counter *counter);

struct instance {
	pid_t pid;
	int fd;
	uid_t uid;
	char comm[32];
	unsigned int copies;		/* descriptors of it that were seen */
	uint64_t number;		/* its own, as of tracepoints */
	uint32_t clockid;
	uint64_t tick_ns;
	uint64_t max_timers;
	bool has_stats;
	struct hwtw_stats stats;
};

struct instances {
	struct instance *list;
	size_t nr, room;
	unsigned int hidden;		/* processes that could not be looked into */
};

/* Look at process @pid, or with 0 at all. Descriptors of one instance are one entry. */
void find_instances(struct instances *found, pid_t pid);

#endif /* HWTWCTL_H */
