// SPDX-License-Identifier: GPL-2.0-only
/*
 * multishot: one io_uring read that goes on for ever
 *
 * The read is submitted once. Each time timers expire, the kernel takes one of
 * the buffers it was given, fills in the records and posts a completion: no
 * system call for a read, and none to wait for the next one. Linux 6.7 and
 * newer.
 *
 *	gcc -O2 -Iuapi -o multishot tools/examples/multishot.c -luring
 *	./multishot 1 2.5 0.3		# seconds
 */
#include <err.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/hwtw.h>

#define BUFS		8		/* a power of two */
#define RECORDS		16		/* that fit into a buffer */
#define READ_MULTISHOT	49		/* IORING_OP_READ_MULTISHOT of newer headers */

static struct hwtw_event bufs[BUFS][RECORDS];

static void give_buffer(struct io_uring_buf_ring *br, int i)
{
	io_uring_buf_ring_add(br, bufs[i], sizeof(bufs[i]), i, io_uring_buf_ring_mask(BUFS), 0);
	io_uring_buf_ring_advance(br, 1);
}

static void submit_read(struct io_uring *ring, int timers)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_rw(READ_MULTISHOT, sqe, timers, NULL, 0, -1);
	sqe->flags |= IOSQE_BUFFER_SELECT;	/* of group 0 */
	io_uring_submit(ring);
}

int main(int argc, char **argv)
{
	struct io_uring_buf_reg reg = { .ring_entries = BUFS };
	struct io_uring_buf_ring *br;
	int i, nr, timers, left = argc - 1;
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	timers = open("/dev/hwtw", O_RDWR | O_CLOEXEC);
	if (timers < 0)
		err(1, "/dev/hwtw");
	for (i = 1; i < argc; i++) {
		struct hwtw_timer t = {
			.user_data = i,
			.time_ns = strtod(argv[i], NULL) * 1e9,
		};

		if (ioctl(timers, HWTW_IOC_ARM, &t))
			err(1, "HWTW_IOC_ARM");
	}

	i = io_uring_queue_init(8, &ring, 0);
	if (i)
		errx(1, "io_uring: %s", strerror(-i));
	br = aligned_alloc(4096, 4096);
	io_uring_buf_ring_init(br);
	reg.ring_addr = (uintptr_t)br;
	i = io_uring_register_buf_ring(&ring, &reg, 0);
	if (i)
		errx(1, "io_uring_register_buf_ring: %s", strerror(-i));
	for (i = 0; i < BUFS; i++)
		give_buffer(br, i);

	for (submit_read(&ring, timers); left; io_uring_cqe_seen(&ring, cqe)) {
		i = io_uring_wait_cqe(&ring, &cqe);
		if (i)
			errx(1, "io_uring_wait_cqe: %s", strerror(-i));
		/* All buffers were full for a moment: nothing is lost. */
		if (cqe->res < 0 && cqe->res != -ENOBUFS)
			errx(1, "read: %s", strerror(-cqe->res));
		if (cqe->res > 0) {
			int buf = cqe->flags >> IORING_CQE_BUFFER_SHIFT;

			nr = cqe->res / sizeof(struct hwtw_event);
			for (i = 0; i < nr; i++)
				printf("%s s are over\n", argv[bufs[buf][i].user_data]);
			left -= nr;
			give_buffer(br, buf);
		}
		if (!(cqe->flags & IORING_CQE_F_MORE) && left)
			submit_read(&ring, timers);
	}
	return 0;
}
