/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libhwtw: a thin library over /dev/hwtw, timers by the million behind one
 * descriptor. Link with -lhwtw, or `pkg-config --cflags --libs libhwtw`.
 *
 *	int fd = hwtw_open(0);
 *	uint64_t id;
 *	struct hwtw_event event;
 *	int err = fd < 0 ? fd : hwtw_arm(fd, 250000000, 0, 0, 42, &id);
 *
 *	if (!err && read(fd, &event, sizeof(event)) == sizeof(event))
 *		printf("timer %d has expired\n", (int)event.user_data);
 *	else
 *		fprintf(stderr, "%s\n", hwtw_strerror(err));
 *
 * Everything works on the descriptor itself, wherever it comes from: poll,
 * epoll, fcntl, io_uring and read work on it as ever. What the structures and
 * constants mean is told in <hwtw/uapi.h>. All times are nanoseconds on the
 * clock of the instance.
 *
 * Functions return 0 or more, or a negative error number; errno means nothing
 * after them. hwtw_strerror() tells what such a number means here. The library
 * has no threads and no state of its own: a batch or a reader belongs to the
 * thread that uses it, and everything else may be called from anywhere.
 */
#ifndef LIBHWTW_H
#define LIBHWTW_H

#include <stdint.h>

#include <hwtw/uapi.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Instances
 */

/*
 * A new instance. @flags: O_NONBLOCK or 0; O_CLOEXEC is always set. It runs on
 * CLOCK_MONOTONIC with a tick of HWTW_TICK_DEFAULT_NS unless it is set up.
 * Errors: ENOENT (the module is not loaded), EACCES, EMFILE, ENOMEM.
 */
int hwtw_open(int flags);

/*
 * Choose clock, tick and limit, before the first timer. @clockid is taken as it
 * stands, and 0 is CLOCK_REALTIME. @tick_ns and @max_timers: 0 is the default.
 * Errors: EBUSY, EINVAL.
 */
int hwtw_set_up(int fd, uint32_t clockid, uint64_t tick_ns, uint64_t max_timers);

/* What is in force. ENOTTY: this descriptor is something else. */
int hwtw_get_info(int fd, struct hwtw_info *info);

/* Counters. ENOTTY: this module does not count (no HWTW_FEATURE_STATS). */
int hwtw_get_stats(int fd, struct hwtw_stats *stats);

/*
 * Timers, one by one. @flags: HWTW_TIMER_ABS or 0. @interval_ns: 0 is once.
 */

/* A new timer. Its id goes to @id, which may be NULL. */
int hwtw_arm(int fd, uint64_t time_ns, uint64_t interval_ns, uint32_t flags, uint64_t user_data,
	     uint64_t *id);

/*
 * These return the state that the timer is in (query) or was in (the others),
 * HWTW_PENDING or HWTW_EXPIRED. ENOENT: there is no such timer any more.
 */
int hwtw_rearm(int fd, uint64_t id, uint64_t time_ns, uint64_t interval_ns, uint32_t flags);
int hwtw_cancel(int fd, uint64_t id);
int hwtw_query(int fd, uint64_t id, struct hwtw_timer *timer);

/*
 * Walk all live timers. Set *@cursor to 0 and call until it returns 0; it fills
 * in up to @nr of @timers and returns how many. @flags: HWTW_LIST_CANCEL or 0.
 * ENOTTY: this module has no list (no HWTW_FEATURE_LIST).
 *
 *	for (cursor = 0; (nr = hwtw_walk(fd, timers, 256, 0, &cursor)) > 0; )
 *		use(timers, nr);
 */
int hwtw_walk(int fd, struct hwtw_timer *timers, uint32_t nr, uint32_t flags, uint64_t *cursor);

/*
 * Batches: operations are collected and go to the kernel together, when the
 * batch is full and one more comes, or when it is flushed.
 *
 * @done is called for each of them once it was carried out, in order. The
 * operation's result is in @op->result, what it knows of the timer in
 * @op->timer. @op->timer.user_data is the timer's for ARM and QUERY, and the
 * @tag given for REARM and CANCEL. @done must not touch the batch.
 */
struct hwtw_batch;

typedef void (*hwtw_done_fn)(const struct hwtw_op *op, void *arg);

/*
 * A batch of @size operations, 1 to HWTW_BATCH_MAX; a few hundred is all that
 * is ever gained. @done may be NULL. Errors: EINVAL, ENOMEM.
 */
int hwtw_batch_new(struct hwtw_batch **batch, int fd, uint32_t size, hwtw_done_fn done, void *arg);

/*
 * Add an operation. An error is that of a flush, and then it was not added.
 */
int hwtw_batch_arm(struct hwtw_batch *batch, uint64_t time_ns, uint64_t interval_ns,
		   uint32_t flags, uint64_t user_data);
int hwtw_batch_rearm(struct hwtw_batch *batch, uint64_t id, uint64_t time_ns,
		     uint64_t interval_ns, uint32_t flags, uint64_t tag);
int hwtw_batch_cancel(struct hwtw_batch *batch, uint64_t id, uint64_t tag);
int hwtw_batch_query(struct hwtw_batch *batch, uint64_t id);

/*
 * Carry out what is there. Errors of single operations are in their result and
 * are none here. After an error, operations that were not carried out stay.
 */
int hwtw_batch_flush(struct hwtw_batch *batch);

/* Free it. What was not flushed is forgotten. NULL is fine. */
void hwtw_batch_free(struct hwtw_batch *batch);

/*
 * Readers: take many records from the kernel at once, hand them out one by one.
 *
 *	while ((ret = hwtw_reader_next(reader, &event)) > 0)
 *		handle(&event);
 *
 * Before the program waits in poll or epoll the loop must have returned 0: the
 * kernel knows nothing of records that wait in the buffer. To cancel their
 * timers says ENOENT, as for all that was read.
 */
struct hwtw_reader;

/* A reader with room for @size records, at least 1. Errors: EINVAL, ENOMEM. */
int hwtw_reader_new(struct hwtw_reader **reader, int fd, uint32_t size);

/*
 * The next record: 1. 0: nothing has expired (with O_NONBLOCK; else it sleeps).
 * Errors: EINTR, and those of read(2).
 */
int hwtw_reader_next(struct hwtw_reader *reader, struct hwtw_event *event);

/* Records that hwtw_reader_next() would return without a call of the kernel. */
uint32_t hwtw_reader_buffered(const struct hwtw_reader *reader);

/* Free it. Records in the buffer are lost: see hwtw_reader_buffered(). */
void hwtw_reader_free(struct hwtw_reader *reader);

/*
 * Names, for people. Never NULL.
 */

/* HWTW_PENDING: "pending", ... */
const char *hwtw_state_name(uint32_t state);
/* HWTW_OP_ARM: "arm", ... */
const char *hwtw_op_name(uint32_t opcode);
/* CLOCK_MONOTONIC: "monotonic", ... */
const char *hwtw_clock_name(uint32_t clockid);
/* One bit of hwtw_info.features. HWTW_FEATURE_LIST: "list", ... */
const char *hwtw_feature_name(uint64_t feature);
/* What an error number, of either sign, means when a call of hwtw gave it. */
const char *hwtw_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif /* LIBHWTW_H */
