// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts of io_uring, submitted in batches. One task submits and reaps, and
 * completions are handed over when it asks for them. Success of an update or a
 * removal is not told.
 */
#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "bench.h"

/* A request, and what it has for its timer. */
#define URING_BYTES	600
#define ENTRIES		256
#define COMPLETIONS	65536

static struct io_uring ring;
static struct {
	uint32_t timer;
	struct __kernel_timespec ts;
} arg[CHUNK];
/* Completions that are not expiries: of a failed update or removal. */
#define OTHER		UINT64_MAX

static const char *uring_cannot(uint32_t n)
{
	return memory_size() / URING_BYTES < n ? "no memory for so many requests" : NULL;
}

/* Update and removal walk a list of all timeouts. */
static uint32_t uring_sample(enum op op, uint32_t n)
{
	if (op == ARM)
		return 0;
	return n > 100000 ? 4 : n > 10000 ? 16 : 64;
}

static void uring_open(uint32_t n)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_CQSIZE,
		.cq_entries = n < ENTRIES * 2 ? ENTRIES * 2 :
			      n < COMPLETIONS ? n : COMPLETIONS,
	};
	int err = io_uring_queue_init_params(ENTRIES, &ring, &p);

	if (err)
		cannot("io_uring: %s", strerror(-err));
}

static void uring_close(void)
{
	io_uring_queue_exit(&ring);
}

static void uring_prepare(enum op op, uint32_t at, uint32_t timer, uint64_t deadline)
{
	(void)op;
	arg[at].timer = timer;
	arg[at].ts.tv_sec = deadline / NSEC_PER_SEC;
	arg[at].ts.tv_nsec = deadline % NSEC_PER_SEC;
}

static void uring_one(enum op op, uint32_t i)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (op == ARM) {
		io_uring_prep_timeout(sqe, &arg[i].ts, 0, IORING_TIMEOUT_ABS);
		io_uring_sqe_set_data64(sqe, arg[i].timer);
		return;
	}
	if (op == REARM)
		io_uring_prep_timeout_update(sqe, &arg[i].ts, arg[i].timer, IORING_TIMEOUT_ABS);
	else
		io_uring_prep_timeout_remove(sqe, arg[i].timer, 0);
	io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
	io_uring_sqe_set_data64(sqe, OTHER);
}

/* Take what has completed. Returns how many have expired. */
static uint32_t uring_reap(uint32_t max)
{
	struct io_uring_cqe *cqe;
	uint32_t nr = 0, seen = 0;
	unsigned int head;

	io_uring_for_each_cqe(&ring, head, cqe) {
		if (cqe->user_data == OTHER)
			cannot("io_uring update or removal: %s", strerror(-cqe->res));
		if (cqe->res == -ETIME) {
			expired(cqe->user_data);
			nr++;
		} else if (cqe->res != -ECANCELED) {
			cannot("io_uring timeout: %s", strerror(-cqe->res));
		}
		if (++seen == max)
			break;
	}
	io_uring_cq_advance(&ring, seen);
	return nr;
}

static void uring_run(enum op op, uint32_t nr, uint32_t batch)
{
	for (uint32_t i = 0; i < nr;) {
		for (uint32_t b = 0; b < batch && i < nr; b++, i++)
			uring_one(op, i);
		if (io_uring_submit(&ring) < 0)
			cannot("io_uring_submit: %s", strerror(errno));
		/* A removed timeout completes, when it is asked for. */
		if (op == CANCEL) {
			io_uring_get_events(&ring);
			uring_reap(UINT32_MAX);
		}
	}
}

static uint32_t uring_deliver(uint32_t batch)
{
	uint32_t nr = uring_reap(batch);

	if (nr)
		return nr;
	if (io_uring_submit_and_wait(&ring, 1) < 0)
		cannot("io_uring_submit_and_wait: %s", strerror(errno));
	return uring_reap(batch);
}

const struct peer uring_peer = {
	.name = "io_uring",
	.batches = true,
	.call = true,
	.cannot = uring_cannot,
	.sample = uring_sample,
	.open = uring_open,
	.close = uring_close,
	.prepare = uring_prepare,
	.run = uring_run,
	.deliver = uring_deliver,
};
