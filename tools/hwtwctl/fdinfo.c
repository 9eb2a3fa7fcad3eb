// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtwctl: the instances of a machine, as /proc shows them
 *
 * /proc/PID/fdinfo/FD has clock, tick, limit and counters of an instance, for
 * those who may look into the process. Nothing is opened but that.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hwtwctl.h"

#define COUNTER(name)	{ #name, offsetof(struct hwtw_stats, name) }

const struct counter counters[] = {
	COUNTER(armed),
	COUNTER(rearmed),
	COUNTER(cancelled),
	COUNTER(cancelled_pending),
	COUNTER(withdrawn),
	COUNTER(expired),
	COUNTER(delivered),
	COUNTER(completed),
	COUNTER(overruns),
	COUNTER(pending),
	COUNTER(unread),
	COUNTER(cascaded),
	COUNTER(dropped),
	COUNTER(runs),
	COUNTER(longest_run_ns),
	COUNTER(lag_ticks),
	COUNTER(late_ticks),
	COUNTER(memory),
};

const size_t nr_counters = ARRAY_SIZE(counters);

_Static_assert(ARRAY_SIZE(counters) * sizeof(uint64_t) == sizeof(struct hwtw_stats),
	       "a counter is missing");

uint64_t counter_value(const struct hwtw_stats *stats, const struct counter *counter)
{
	uint64_t value;

	memcpy(&value, (const char *)stats + counter->offset, sizeof(value));
	return value;
}

/* A line "hwtw-NAME:\tVALUE". */
static void parse_line(struct instance *it, const char *line, bool *is_hwtw)
{
	const char *value = strchr(line, ':'), *name = line + strlen("hwtw-");
	uint64_t n;

	if (strncmp(line, "hwtw-", strlen("hwtw-")) || !value)
		return;
	n = strtoull(value + 1, NULL, 10);
	if (!strncmp(name, "instance:", 9)) {
		it->number = n;
		*is_hwtw = true;
	} else if (!strncmp(name, "clockid:", 8)) {
		it->clockid = n;
	} else if (!strncmp(name, "tick_ns:", 8)) {
		it->tick_ns = n;
	} else if (!strncmp(name, "max_timers:", 11)) {
		it->max_timers = n;
	}
	for (size_t i = 0; i < nr_counters; i++) {
		if (strlen(counters[i].name) != (size_t)(value - name) ||
		    strncmp(counters[i].name, name, value - name))
			continue;
		memcpy((char *)&it->stats + counters[i].offset, &n, sizeof(n));
		it->has_stats = true;
	}
}

static bool read_fdinfo(struct instance *it)
{
	char path[64], line[128];
	bool is_hwtw = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", it->pid, it->fd);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		parse_line(it, line, &is_hwtw);
	fclose(f);
	return is_hwtw;
}

/* What may be on a terminal, and in JSON. */
static void read_comm(struct instance *it)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", it->pid);
	f = fopen(path, "re");
	if (!f || !fgets(it->comm, sizeof(it->comm), f))
		strcpy(it->comm, "?");
	if (f)
		fclose(f);
	it->comm[strcspn(it->comm, "\n")] = 0;
	for (char *c = it->comm; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* Another descriptor of an instance that is in the list. */
static bool known(const struct instances *found, const struct instance *it)
{
	for (size_t i = 0; i < found->nr; i++) {
		if (found->list[i].number == it->number) {
			found->list[i].copies++;
			return true;
		}
	}
	return false;
}

static void add(struct instances *found, const struct instance *it)
{
	if (known(found, it))
		return;
	if (found->nr == found->room) {
		found->room = found->room ? 2 * found->room : 64;
		found->list = realloc(found->list, found->room * sizeof(*found->list));
		if (!found->list)
			die(EXIT_FAILED, "no memory for %zu instances", found->room);
	}
	found->list[found->nr++] = *it;
}

static void look_into(struct instances *found, pid_t pid)
{
	char path[64], target[128];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir) {
		if (errno == EACCES || errno == EPERM)
			found->hidden++;
		return;
	}
	while ((entry = readdir(dir))) {
		struct instance it = { .pid = pid, .copies = 1 };
		struct stat st;
		ssize_t len;

		if (entry->d_name[0] == '.')
			continue;
		/* The device, wherever a container has it; most descriptors end here. */
		len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = 0;
		if (!strstr(target, "hwtw"))
			continue;
		it.fd = atoi(entry->d_name);
		if (!read_fdinfo(&it) || fstat(dirfd(dir), &st))
			continue;
		it.uid = st.st_uid;
		read_comm(&it);
		add(found, &it);
	}
	closedir(dir);
}

void find_instances(struct instances *found, pid_t pid)
{
	struct dirent *entry;
	DIR *dir;

	found->nr = 0;
	found->hidden = 0;
	if (pid) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d", pid);
		if (access(path, F_OK))
			die(EXIT_FAILED, "there is no process %d", pid);
		look_into(found, pid);
		return;
	}
	dir = opendir("/proc");
	if (!dir)
		die(EXIT_FAILED, "/proc: %s", strerror(errno));
	while ((entry = readdir(dir))) {
		pid = atoi(entry->d_name);
		if (pid > 0)
			look_into(found, pid);
	}
	closedir(dir);
}
