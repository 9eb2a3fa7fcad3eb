// SPDX-License-Identifier: GPL-2.0-only
/*
 * libhwtw: what libhwtw.h promises
 *
 * Built with hidden visibility; what libhwtw.map lists is exported.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "libhwtw.h"

#define PUBLIC	__attribute__((visibility("default")))

#define DEVICE	"/dev/hwtw"

static int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

/* Instances */

PUBLIC int hwtw_open(int flags)
{
	int fd;

	if (flags & ~O_NONBLOCK)
		return -EINVAL;
	fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

PUBLIC int hwtw_set_up(int fd, uint32_t clockid, uint64_t tick_ns, uint64_t max_timers)
{
	struct hwtw_setup setup = {
		.clockid = clockid,
		.tick_ns = tick_ns,
		.max_timers = max_timers,
	};

	return call(fd, HWTW_IOC_SETUP, &setup);
}

PUBLIC int hwtw_get_info(int fd, struct hwtw_info *info)
{
	return call(fd, HWTW_IOC_INFO, info);
}

PUBLIC int hwtw_get_stats(int fd, struct hwtw_stats *stats)
{
	return call(fd, HWTW_IOC_STATS, stats);
}

/* Timers */

PUBLIC int hwtw_arm(int fd, uint64_t time_ns, uint64_t interval_ns, uint32_t flags,
		    uint64_t user_data, uint64_t *id)
{
	struct hwtw_timer timer = {
		.user_data = user_data,
		.time_ns = time_ns,
		.interval_ns = interval_ns,
		.flags = flags,
	};
	int err = call(fd, HWTW_IOC_ARM, &timer);

	if (!err && id)
		*id = timer.id;
	return err;
}

PUBLIC int hwtw_rearm(int fd, uint64_t id, uint64_t time_ns, uint64_t interval_ns,
		      uint32_t flags)
{
	struct hwtw_timer timer = {
		.id = id,
		.time_ns = time_ns,
		.interval_ns = interval_ns,
		.flags = flags,
	};

	return call(fd, HWTW_IOC_REARM, &timer) ?: (int)timer.state;
}

PUBLIC int hwtw_cancel(int fd, uint64_t id)
{
	struct hwtw_timer timer = { .id = id };

	return call(fd, HWTW_IOC_CANCEL, &timer) ?: (int)timer.state;
}

PUBLIC int hwtw_query(int fd, uint64_t id, struct hwtw_timer *timer)
{
	*timer = (struct hwtw_timer) { .id = id };
	return call(fd, HWTW_IOC_QUERY, timer) ?: (int)timer->state;
}

PUBLIC int hwtw_walk(int fd, struct hwtw_timer *timers, uint32_t nr, uint32_t flags,
		     uint64_t *cursor)
{
	struct hwtw_list list = {
		.timers = (uintptr_t)timers,
		.nr = nr,
		.flags = flags,
		.cursor = *cursor,
	};
	int err = call(fd, HWTW_IOC_LIST, &list);

	/* What was reported before the memory turned bad was reported. */
	if (err && !(err == -EFAULT && list.nr && list.nr < nr))
		return err;
	*cursor = list.cursor;
	return list.nr;
}

/* Batches */

struct hwtw_batch {
	int fd;
	uint32_t size, nr;
	bool busy;			/* in a callback */
	hwtw_done_fn done;
	void *arg;
	struct hwtw_op op[];
};

PUBLIC int hwtw_batch_new(struct hwtw_batch **batch, int fd, uint32_t size, hwtw_done_fn done,
			  void *arg)
{
	struct hwtw_batch *b;

	if (!size || size > HWTW_BATCH_MAX)
		return -EINVAL;
	b = malloc(sizeof(*b) + size * sizeof(b->op[0]));
	if (!b)
		return -ENOMEM;
	*b = (struct hwtw_batch) {
		.fd = fd,
		.size = size,
		.done = done,
		.arg = arg,
	};
	*batch = b;
	return 0;
}

PUBLIC int hwtw_batch_flush(struct hwtw_batch *b)
{
	struct hwtw_submit submit = {
		.ops = (uintptr_t)b->op,
		.nr = b->nr,
	};
	int err;

	if (b->busy)
		return -EBUSY;
	if (!b->nr)
		return 0;
	err = call(b->fd, HWTW_IOC_SUBMIT, &submit);
	b->busy = true;
	for (uint32_t i = 0; b->done && i < submit.done; i++)
		b->done(&b->op[i], b->arg);
	b->busy = false;
	b->nr -= submit.done;
	memmove(b->op, b->op + submit.done, b->nr * sizeof(b->op[0]));
	return err;
}

static int batch_add(struct hwtw_batch *b, const struct hwtw_op *op)
{
	int err;

	if (b->busy)
		return -EBUSY;
	if (b->nr == b->size) {
		err = hwtw_batch_flush(b);
		if (err)
			return err;
	}
	b->op[b->nr++] = *op;
	return 0;
}

PUBLIC int hwtw_batch_arm(struct hwtw_batch *b, uint64_t time_ns, uint64_t interval_ns,
			  uint32_t flags, uint64_t user_data)
{
	return batch_add(b, &(struct hwtw_op) {
		.opcode = HWTW_OP_ARM,
		.timer = {
			.user_data = user_data,
			.time_ns = time_ns,
			.interval_ns = interval_ns,
			.flags = flags,
		},
	});
}

PUBLIC int hwtw_batch_rearm(struct hwtw_batch *b, uint64_t id, uint64_t time_ns,
			    uint64_t interval_ns, uint32_t flags, uint64_t tag)
{
	return batch_add(b, &(struct hwtw_op) {
		.opcode = HWTW_OP_REARM,
		.timer = {
			.id = id,
			.user_data = tag,
			.time_ns = time_ns,
			.interval_ns = interval_ns,
			.flags = flags,
		},
	});
}

PUBLIC int hwtw_batch_cancel(struct hwtw_batch *b, uint64_t id, uint64_t tag)
{
	return batch_add(b, &(struct hwtw_op) {
		.opcode = HWTW_OP_CANCEL,
		.timer = { .id = id, .user_data = tag },
	});
}

PUBLIC int hwtw_batch_query(struct hwtw_batch *b, uint64_t id)
{
	return batch_add(b, &(struct hwtw_op) {
		.opcode = HWTW_OP_QUERY,
		.timer = { .id = id },
	});
}

PUBLIC void hwtw_batch_free(struct hwtw_batch *b)
{
	free(b);
}

/* Readers */

struct hwtw_reader {
	int fd;
	uint32_t size, nr, next;
	struct hwtw_event event[];
};

PUBLIC int hwtw_reader_new(struct hwtw_reader **reader, int fd, uint32_t size)
{
	struct hwtw_reader *r;

	/* read(2) takes less than 2 GiB. */
	if (!size || size > INT32_MAX / sizeof(r->event[0]))
		return -EINVAL;
	r = malloc(sizeof(*r) + size * sizeof(r->event[0]));
	if (!r)
		return -ENOMEM;
	*r = (struct hwtw_reader) { .fd = fd, .size = size };
	*reader = r;
	return 0;
}

PUBLIC int hwtw_reader_next(struct hwtw_reader *r, struct hwtw_event *event)
{
	if (r->next == r->nr) {
		ssize_t len = read(r->fd, r->event, r->size * sizeof(r->event[0]));

		if (len < 0)
			return errno == EAGAIN ? 0 : -errno;
		/* The descriptor is something else. */
		if (!len || len % sizeof(r->event[0]))
			return -EPROTO;
		r->nr = len / sizeof(r->event[0]);
		r->next = 0;
	}
	*event = r->event[r->next++];
	return 1;
}

PUBLIC uint32_t hwtw_reader_buffered(const struct hwtw_reader *r)
{
	return r->nr - r->next;
}

PUBLIC void hwtw_reader_free(struct hwtw_reader *r)
{
	free(r);
}

/* Names */

PUBLIC const char *hwtw_state_name(uint32_t state)
{
	switch (state) {
	case HWTW_PENDING:
		return "pending";
	case HWTW_EXPIRED:
		return "expired";
	}
	return "unknown";
}

PUBLIC const char *hwtw_op_name(uint32_t opcode)
{
	switch (opcode) {
	case HWTW_OP_ARM:
		return "arm";
	case HWTW_OP_REARM:
		return "rearm";
	case HWTW_OP_CANCEL:
		return "cancel";
	case HWTW_OP_QUERY:
		return "query";
	}
	return "unknown";
}

PUBLIC const char *hwtw_clock_name(uint32_t clockid)
{
	switch (clockid) {
	case CLOCK_REALTIME:
		return "realtime";
	case CLOCK_MONOTONIC:
		return "monotonic";
	case CLOCK_BOOTTIME:
		return "boottime";
	}
	return "unknown";
}

PUBLIC const char *hwtw_feature_name(uint64_t feature)
{
	switch (feature) {
	case HWTW_FEATURE_PERIODIC:
		return "periodic";
	case HWTW_FEATURE_REALTIME:
		return "realtime";
	case HWTW_FEATURE_LIST:
		return "list";
	case HWTW_FEATURE_STATS:
		return "stats";
	}
	return "unknown";
}

PUBLIC const char *hwtw_strerror(int error)
{
	switch (error < 0 ? -error : error) {
	case ENOTTY:
		return "not a descriptor of /dev/hwtw, or a command that this module does not know";
	case E2BIG:
		return "the argument has more than this module knows";
	case EINVAL:
		return "a value that no instance can take";
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return "no such timer (never armed, cancelled, or its last record already read), or no /dev/hwtw";
	case EBUSY:
		return "a timer was armed already, or the batch is in use";
	case ENOSPC:
		return "the limit on timers is reached";
	case EACCES:
	case EPERM:
		return "no permission for /dev/hwtw";
	case EPROTO:
		return "what was read is not a record of /dev/hwtw";
	}
	return strerror(error < 0 ? -error : error);
}
