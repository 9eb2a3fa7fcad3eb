// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw, by SUBMIT and by one ioctl for each operation.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/hwtw.h>

#include "bench.h"

static int fd;
static uint64_t *id;
static uint32_t timers;
static struct hwtw_op ops[CHUNK];
static struct hwtw_timer args[CHUNK];
static struct hwtw_event events[CHUNK];

int hwtw_open(void)
{
	int instance = open("/dev/hwtw", O_RDWR | O_CLOEXEC);

	if (instance >= 0)
		return instance;
	if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
		cannot("there is no /dev/hwtw: load the module: insmod hwtw.ko");
	if (errno == EACCES || errno == EPERM)
		cannot("you may not open /dev/hwtw for reading and writing: become root");
	cannot("/dev/hwtw: %s", strerror(errno));
}

int hwtw_fd(void)
{
	return fd;
}

static void hwtw_peer_open(uint32_t n)
{
	/* Not the module's memory. */
	id = alloc(n * sizeof(*id));
	timers = n;
	fd = hwtw_open();
}

static void hwtw_peer_close(void)
{
	close(fd);
	release(id, timers * sizeof(*id));
}

static struct hwtw_timer argument(enum op op, uint32_t timer, uint64_t deadline)
{
	if (op == CANCEL)
		return (struct hwtw_timer) { .id = id[timer], .user_data = timer };
	return (struct hwtw_timer) {
		.id = op == ARM ? 0 : id[timer],
		.user_data = timer,
		.time_ns = deadline,
		.flags = HWTW_TIMER_ABS,
	};
}

static void submit_prepare(enum op op, uint32_t at, uint32_t timer, uint64_t deadline)
{
	static const uint32_t opcode[] = {
		[ARM] = HWTW_OP_ARM, [REARM] = HWTW_OP_REARM, [CANCEL] = HWTW_OP_CANCEL,
	};

	ops[at] = (struct hwtw_op) {
		.opcode = opcode[op],
		.result = 1,
		.timer = argument(op, timer, deadline),
	};
}

static void submit_run(enum op op, uint32_t nr, uint32_t batch)
{
	struct hwtw_submit s = { 0 };

	(void)op;
	for (uint32_t i = 0; i < nr; i += batch) {
		s.ops = (uintptr_t)(ops + i);
		s.nr = nr - i < batch ? nr - i : batch;
		if (ioctl(fd, HWTW_IOC_SUBMIT, &s))
			cannot("SUBMIT: %s", strerror(errno));
	}
}

static void submit_settle(enum op op, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (ops[i].result)
			cannot("operation %u of SUBMIT: %s", i,
			       strerror(-ops[i].result));
		if (op == ARM)
			id[ops[i].timer.user_data] = ops[i].timer.id;
	}
}

static void ioctl_prepare(enum op op, uint32_t at, uint32_t timer, uint64_t deadline)
{
	args[at] = argument(op, timer, deadline);
	args[at].state = UINT32_MAX;
}

static void ioctl_run(enum op op, uint32_t nr, uint32_t batch)
{
	static const unsigned long command[] = {
		[ARM] = HWTW_IOC_ARM, [REARM] = HWTW_IOC_REARM, [CANCEL] = HWTW_IOC_CANCEL,
	};

	(void)batch;
	for (uint32_t i = 0; i < nr; i++)
		if (ioctl(fd, command[op], &args[i]))
			cannot("ioctl: %s", strerror(errno));
}

static void ioctl_settle(enum op op, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (args[i].state == UINT32_MAX)
			cannot("an ioctl told no state");
		if (op == ARM)
			id[args[i].user_data] = args[i].id;
	}
}

static uint32_t hwtw_deliver(uint32_t batch)
{
	ssize_t len = read(fd, events, batch * sizeof(*events));
	uint32_t nr = len / sizeof(*events);

	if (len <= 0)
		cannot("read of hwtw: %s", strerror(errno));
	if (watching) {
		uint64_t now = now_ns();

		for (uint32_t i = 0; i < nr; i++)
			expired_at(events[i].user_data, now);
	}
	return nr;
}

const struct peer hwtw_peer = {
	.name = "hwtw",
	.batches = true,
	.call = true,
	.whole = true,
	.open = hwtw_peer_open,
	.close = hwtw_peer_close,
	.prepare = submit_prepare,
	.run = submit_run,
	.settle = submit_settle,
	.deliver = hwtw_deliver,
};

const struct peer hwtw_ioctl_peer = {
	.name = "hwtw ioctl",
	.call = true,
	.open = hwtw_peer_open,
	.close = hwtw_peer_close,
	.prepare = ioctl_prepare,
	.run = ioctl_run,
	.settle = ioctl_settle,
	.deliver = hwtw_deliver,
};
