// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/hwtw read by io_uring, with liburing: reads that wait, that are
 * cancelled, that fail, and one read that goes on for ever.
 */
#include "hwtw_test.h"

#include <liburing.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define TICK	HWTW_TICK_DEFAULT_NS
#define EV	sizeof(struct hwtw_event)

/* Linux 6.7; younger than Debian 12's headers. */
#define OP_READ_MULTISHOT	49

#define ENTRIES	64
#define GROUP	3

FIXTURE(ring) {
	struct io_uring r;
	int fd;
	struct io_uring_buf_ring *br;
	struct hwtw_event *bufs;
	int nr_bufs;
	int per_buf;
};

FIXTURE_SETUP(ring)
{
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->r, 0));
	self->fd = hwtw_open(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(ring)
{
	io_uring_queue_exit(&self->r);
	close(self->fd);
}

/* Submits a read. Returns what io_uring_submit() does. */
static int submit_read(struct io_uring *r, int fd, void *buf, size_t len,
		       uint64_t data, unsigned int sqe_flags)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(r);

	io_uring_prep_read(sqe, fd, buf, len, -1);
	sqe->flags |= sqe_flags;
	sqe->user_data = data;
	return io_uring_submit(r);
}

/* The next completion. Returns 0, or -ETIME after a generous time. */
static int next(struct io_uring *r, struct io_uring_cqe *out)
{
	struct __kernel_timespec ts = { .tv_sec = 20 };
	struct io_uring_cqe *cqe;
	int ret;

	do
		ret = io_uring_wait_cqe_timeout(r, &cqe, &ts);
	while (ret == -EINTR);
	if (ret)
		return ret;
	*out = *cqe;
	io_uring_cqe_seen(r, cqe);
	return 0;
}

/* Guards against results that differ from those of read() and readv(). */
TEST_F(ring, results)
{
	struct hwtw_event ev[4];
	struct iovec v[2] = {
		{ (char *)ev, 5 },
		{ (char *)ev + 5, 3 * EV - 6 },
	};
	struct io_uring_sqe *sqe;
	struct io_uring_cqe c;

	/* Nothing there, and not to be waited for. */
	sqe = io_uring_get_sqe(&self->r);
	io_uring_prep_read(sqe, self->fd, ev, EV, -1);
	sqe->rw_flags = RWF_NOWAIT;
	ASSERT_EQ(1, io_uring_submit(&self->r));
	ASSERT_EQ(0, next(&self->r, &c));
	EXPECT_EQ(-EAGAIN, c.res);

	ASSERT_EQ(0, arm_many(self->fd, 5, 0, 0, 0, NULL));
	ASSERT_EQ(1, submit_read(&self->r, self->fd, ev, EV - 1, 2, 0));
	ASSERT_EQ(0, next(&self->r, &c));
	EXPECT_EQ(-EINVAL, c.res);
	ASSERT_EQ(1, submit_read(&self->r, self->fd, (void *)8, EV, 3, 0));
	ASSERT_EQ(0, next(&self->r, &c));
	EXPECT_EQ(-EFAULT, c.res);

	/* Whole records over pieces that are none. */
	sqe = io_uring_get_sqe(&self->r);
	io_uring_prep_readv(sqe, self->fd, v, 2, -1);
	ASSERT_EQ(1, io_uring_submit(&self->r));
	ASSERT_EQ(0, next(&self->r, &c));
	ASSERT_EQ(2 * (int)EV, c.res);
	EXPECT_EQ(0, ev[0].user_data);
	EXPECT_EQ(1, ev[1].user_data);

	/* Memory that the ring knows, and the rest of the records. */
	v[0] = (struct iovec) { ev, sizeof(ev) };
	ASSERT_EQ(0, io_uring_register_buffers(&self->r, v, 1));
	sqe = io_uring_get_sqe(&self->r);
	io_uring_prep_read_fixed(sqe, self->fd, ev, sizeof(ev), -1, 0);
	ASSERT_EQ(1, io_uring_submit(&self->r));
	ASSERT_EQ(0, next(&self->r, &c));
	ASSERT_EQ(3 * (int)EV, c.res);
	EXPECT_EQ(2, ev[0].user_data);
	EXPECT_EQ(4, ev[2].user_data);
}

/* Guards against reads in a ring that a worker thread carries out for it. */
TEST_F(ring, in_worker)
{
	struct hwtw_event ev[2];
	struct io_uring_cqe c;
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, submit_read(&self->r, self->fd, ev, sizeof(ev), i,
					 IOSQE_ASYNC));
		if (i & 1)
			sleep_ns(5 * NSEC_PER_MSEC);
		ASSERT_EQ(0, arm_in(self->fd, i % 3 * TICK, i, NULL));
		ASSERT_EQ(0, next(&self->r, &c));
		ASSERT_EQ((int)EV, c.res);
		EXPECT_EQ((uint64_t)i, ev[0].user_data);
		EXPECT_LE(ev[0].expires_ns, now_ns());
	}
	/* One that waits while its ring goes. */
	ASSERT_EQ(1, submit_read(&self->r, self->fd, ev, sizeof(ev), i,
				 IOSQE_ASYNC));
	sleep_ns(5 * NSEC_PER_MSEC);
}

/*
 * Guards against expiries that a cancelled read took with it, and reads that
 * cannot be cancelled. Both are due at about the same time.
 */
TEST_F(ring, cancel_races_expiry)
{
	enum { NR = 300 };
	struct rnd r = { 41 };
	struct io_uring_sqe *sqe;
	int i, k, read = 0, cancelled = 0;
	struct io_uring_cqe c;
	struct hwtw_event ev, rest;

	for (i = 0; i < NR; i++) {
		memset(&ev, POISON, sizeof(ev));
		ASSERT_EQ(1, submit_read(&self->r, self->fd, &ev, EV, 1, 0));
		ASSERT_EQ(0, arm_in(self->fd, rnd_below(&r, 3 * TICK), i,
				    NULL));
		sleep_ns(rnd_below(&r, 3 * TICK));
		sqe = io_uring_get_sqe(&self->r);
		io_uring_prep_cancel64(sqe, 1, 0);
		sqe->user_data = 2;
		ASSERT_EQ(1, io_uring_submit(&self->r));
		for (k = 0; k < 2; k++) {
			ASSERT_EQ(0, next(&self->r, &c));
			if (c.user_data == 2)
				continue;
			if (c.res == (int)EV) {
				read++;
				continue;
			}
			/* It took nothing: the next one does. */
			ASSERT_EQ(-ECANCELED, c.res);
			cancelled++;
			ASSERT_TRUE(all_bytes(&ev, POISON, EV));
			ASSERT_EQ(1, take(self->fd, &rest, 1));
			ASSERT_EQ((uint64_t)i, rest.user_data);
		}
		EXPECT_EQ(0, readable(self->fd, 0));
	}
	TH_LOG("%d read, %d cancelled", read, cancelled);
	EXPECT_EQ(NR, read + cancelled);
}

/* Guards against a time limit on a read that costs a record. */
TEST_F(ring, linked_timeout)
{
	struct __kernel_timespec ts = { .tv_nsec = 20 * NSEC_PER_MSEC };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe c;
	struct hwtw_event ev;
	int i;

	sqe = io_uring_get_sqe(&self->r);
	io_uring_prep_read(sqe, self->fd, &ev, EV, -1);
	sqe->flags |= IOSQE_IO_LINK;
	sqe->user_data = 1;
	sqe = io_uring_get_sqe(&self->r);
	io_uring_prep_link_timeout(sqe, &ts, 0);
	sqe->user_data = 2;
	ASSERT_EQ(2, io_uring_submit(&self->r));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, next(&self->r, &c));
		EXPECT_EQ(c.user_data == 1 ? -ECANCELED : -ETIME, c.res);
	}
	ASSERT_EQ(0, arm_in(self->fd, 0, 9, NULL));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(9, ev.user_data);
}

/* --- One read that goes on --- */

static bool has_multishot(struct io_uring *r)
{
	struct io_uring_probe *p = io_uring_get_probe_ring(r);
	bool has = p && io_uring_opcode_supported(p, OP_READ_MULTISHOT);

	io_uring_free_probe(p);
	return has;
}

#define NEED_MULTISHOT(self) do {					\
	if (!has_multishot(&(self)->r))					\
		SKIP(return, "no multishot reads before Linux 6.7");	\
} while (0)

/* Gives the ring @nr buffers (a power of two) of @records records each. */
static int give_buffers(FIXTURE_DATA(ring) *self, int nr, int records)
{
	struct io_uring_buf_reg reg = { .ring_entries = nr, .bgid = GROUP };
	int i;

	self->br = map_pages(1);
	self->bufs = map_pages(nr * records * EV / 4096 + 1);
	self->nr_bufs = nr;
	self->per_buf = records;
	io_uring_buf_ring_init(self->br);
	reg.ring_addr = (uintptr_t)self->br;
	for (i = 0; i < nr; i++)
		io_uring_buf_ring_add(self->br, self->bufs + i * records,
				      records * EV, i,
				      io_uring_buf_ring_mask(nr), i);
	io_uring_buf_ring_advance(self->br, nr);
	return io_uring_register_buf_ring(&self->r, &reg, 0);
}

static struct hwtw_event *buffer_of(FIXTURE_DATA(ring) *self,
				    const struct io_uring_cqe *c)
{
	return self->bufs +
	       (c->flags >> IORING_CQE_BUFFER_SHIFT) * self->per_buf;
}

static void give_back(FIXTURE_DATA(ring) *self, const struct io_uring_cqe *c)
{
	io_uring_buf_ring_add(self->br, buffer_of(self, c), self->per_buf * EV,
			      c->flags >> IORING_CQE_BUFFER_SHIFT,
			      io_uring_buf_ring_mask(self->nr_bufs), 0);
	io_uring_buf_ring_advance(self->br, 1);
}

static int submit_multishot(FIXTURE_DATA(ring) *self, uint64_t data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->r);

	io_uring_prep_rw(OP_READ_MULTISHOT, sqe, self->fd, NULL, 0, -1);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->user_data = data;
	return io_uring_submit(&self->r);
}

/* Guards against a read that ends early, and against records lost between two. */
TEST_F(ring, multishot)
{
	enum { NR = 5000 };
	unsigned char *seen = calloc(NR, 1);
	struct rnd r = { 42 };
	struct io_uring_cqe c;
	struct hwtw_event *ev;
	int i, n, armed = 0, have = 0, completions = 0;

	NEED_MULTISHOT(self);
	ASSERT_EQ(0, give_buffers(self, 16, 8));
	ASSERT_EQ(1, submit_multishot(self, 1));
	while (have < NR) {
		/* A burst, at once or soon, and what has come of it by now. */
		n = armed < NR ? 1 + rnd_below(&r, 40) : 0;
		n = n > NR - armed ? NR - armed : n;
		for (i = 0; i < n; i++) {
			ASSERT_EQ(0, arm_in(self->fd,
					    rnd_below(&r, 3) * TICK,
					    armed + i, NULL));
		}
		armed += n;
		while (have < armed) {
			ASSERT_EQ(0, next(&self->r, &c));
			completions++;
			if (c.res == -ENOBUFS) {
				/* All were full when more came. */
				ASSERT_FALSE(c.flags & IORING_CQE_F_MORE);
				ASSERT_EQ(1, submit_multishot(self, 1));
				continue;
			}
			ASSERT_LT(0, c.res);
			ASSERT_EQ(0, c.res % (int)EV);
			ASSERT_TRUE(c.flags & IORING_CQE_F_BUFFER);
			ASSERT_GE(self->per_buf * (int)EV, c.res);
			ev = buffer_of(self, &c);
			for (i = 0; i < c.res / (int)EV; i++) {
				ASSERT_LE(ev[i].expires_ns, now_ns());
				ASSERT_GT(NR, ev[i].user_data);
				seen[ev[i].user_data]++;
			}
			have += i;
			give_back(self, &c);
			if (!(c.flags & IORING_CQE_F_MORE))
				ASSERT_EQ(1, submit_multishot(self, 1));
		}
	}
	TH_LOG("%d records in %d completions", have, completions);
	EXPECT_TRUE(all_bytes(seen, 1, NR));
	EXPECT_EQ(0, readable(self->fd, 0));
}

/* Guards against one submission for each record after all. */
TEST_F(ring, multishot_goes_on)
{
	struct io_uring_cqe c;
	int i;

	NEED_MULTISHOT(self);
	ASSERT_EQ(0, give_buffers(self, 4, 1));
	ASSERT_EQ(1, submit_multishot(self, 7));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, arm_in(self->fd, i % 2 * TICK, i, NULL));
		ASSERT_EQ(0, next(&self->r, &c));
		ASSERT_EQ((int)EV, c.res);
		EXPECT_EQ(7, c.user_data);
		EXPECT_TRUE(c.flags & IORING_CQE_F_MORE);
		EXPECT_EQ((uint64_t)i, buffer_of(self, &c)->user_data);
		give_back(self, &c);
	}
}

/* Guards against records taken for which there is no buffer. */
TEST_F(ring, multishot_no_buffers)
{
	enum { NR = 20, BUFS = 4, EACH = 2 };
	struct hwtw_event rest[NR];
	struct io_uring_cqe c;
	int i;

	NEED_MULTISHOT(self);
	ASSERT_EQ(0, give_buffers(self, BUFS, EACH));
	ASSERT_EQ(0, arm_many(self->fd, NR, 0, 0, 0, NULL));
	ASSERT_EQ(1, submit_multishot(self, 1));
	for (i = 0; i < BUFS; i++) {
		ASSERT_EQ(0, next(&self->r, &c));
		ASSERT_EQ(EACH * (int)EV, c.res);
		EXPECT_EQ((uint64_t)i * EACH,
			  buffer_of(self, &c)->user_data);
	}
	ASSERT_EQ(0, next(&self->r, &c));
	EXPECT_EQ(-ENOBUFS, c.res);
	EXPECT_FALSE(c.flags & IORING_CQE_F_MORE);
	/* The others were left where they are. */
	ASSERT_EQ(NR - BUFS * EACH, take(self->fd, rest, NR));
	for (i = 0; i < NR - BUFS * EACH; i++) {
		EXPECT_EQ((uint64_t)BUFS * EACH + i, rest[i].user_data);
	}
}

/* Guards against a buffer for part of a record. */
TEST_F(ring, multishot_small_buffers)
{
	struct io_uring_buf_reg reg = { .ring_entries = 2, .bgid = GROUP };
	struct io_uring_buf_ring *br = map_pages(1);
	struct io_uring_cqe c;
	struct hwtw_event ev;
	char buf[EV - 1];

	NEED_MULTISHOT(self);
	io_uring_buf_ring_init(br);
	io_uring_buf_ring_add(br, buf, sizeof(buf), 0, 1, 0);
	io_uring_buf_ring_advance(br, 1);
	reg.ring_addr = (uintptr_t)br;
	ASSERT_EQ(0, io_uring_register_buf_ring(&self->r, &reg, 0));
	ASSERT_EQ(0, arm_in(self->fd, 0, 5, NULL));
	ASSERT_EQ(1, submit_multishot(self, 1));
	ASSERT_EQ(0, next(&self->r, &c));
	EXPECT_EQ(-EINVAL, c.res);
	EXPECT_FALSE(c.flags & IORING_CQE_F_MORE);
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(5, ev.user_data);
}

/* Guards against a read that goes on after it was cancelled. */
TEST_F(ring, multishot_cancel)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe c;
	struct hwtw_event ev;
	int i;

	NEED_MULTISHOT(self);
	ASSERT_EQ(0, give_buffers(self, 4, 4));
	ASSERT_EQ(1, submit_multishot(self, 1));
	ASSERT_EQ(0, arm_in(self->fd, 0, 1, NULL));
	ASSERT_EQ(0, next(&self->r, &c));
	EXPECT_EQ((int)EV, c.res);
	sqe = io_uring_get_sqe(&self->r);
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 2;
	ASSERT_EQ(1, io_uring_submit(&self->r));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, next(&self->r, &c));
		EXPECT_EQ(c.user_data == 1 ? -ECANCELED : 0, c.res);
		EXPECT_FALSE(c.flags & IORING_CQE_F_MORE);
	}
	ASSERT_EQ(0, arm_in(self->fd, 0, 2, NULL));
	ASSERT_EQ(1, take(self->fd, &ev, 1));
	EXPECT_EQ(2, ev.user_data);
}

/* --- Many readers of many kinds --- */

struct reader {
	pthread_t thread;
	int fd;
	unsigned char *seen;
	int nr;
	int *left;
	int strange;
};

static int note(struct reader *r, const struct hwtw_event *ev, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (ev[i].user_data >= (uint64_t)r->nr)
			r->strange++;
		else
			__atomic_add_fetch(&r->seen[ev[i].user_data], 1,
					   __ATOMIC_SEQ_CST);
	}
	return __atomic_sub_fetch(r->left, n, __ATOMIC_SEQ_CST);
}

static void *poller_main(void *arg)
{
	struct reader *r = arg;
	struct hwtw_event ev[3];
	struct iovec v = { ev, sizeof(ev) };
	int n;

	while (__atomic_load_n(r->left, __ATOMIC_SEQ_CST) > 0) {
		if (!readable(r->fd, 20))
			continue;
		/* By now another reader may have it. */
		n = preadv2(r->fd, &v, 1, -1, RWF_NOWAIT);
		if (n > 0 && !(n % EV))
			note(r, ev, n / EV);
		else if (n >= 0 || errno != EAGAIN)
			r->strange++;
	}
	return NULL;
}

/* A ring of its own, with some reads under way. */
static void *ring_main(void *arg)
{
	enum { READS = 8 };
	struct __kernel_timespec ts = { .tv_nsec = 20 * NSEC_PER_MSEC };
	struct hwtw_event ev[READS][2];
	struct reader *r = arg;
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int i;

	if (io_uring_queue_init(READS, &ring, 0)) {
		r->strange++;
		return NULL;
	}
	for (i = 0; i < READS; i++)
		submit_read(&ring, r->fd, ev[i], sizeof(ev[i]), i, 0);
	while (__atomic_load_n(r->left, __ATOMIC_SEQ_CST) > 0) {
		if (io_uring_wait_cqe_timeout(&ring, &cqe, &ts))
			continue;
		i = cqe->user_data;
		if (cqe->res > 0 && !(cqe->res % EV))
			note(r, ev[i], cqe->res / EV);
		else if (cqe->res != -EAGAIN)
			r->strange++;
		io_uring_cqe_seen(&ring, cqe);
		submit_read(&ring, r->fd, ev[i], sizeof(ev[i]), i, 0);
	}
	io_uring_queue_exit(&ring);
	return NULL;
}

/* Guards against an expiry read twice or by nobody, whoever reads. */
TEST_F(ring, all_kinds_exactly_once)
{
	enum { NR = 8000, READERS = 4 };
	unsigned char *seen = calloc(NR, 1);
	struct reader r[READERS];
	struct rnd rnd = { 43 };
	int i, left = NR;

	for (i = 0; i < READERS; i++) {
		r[i] = (struct reader) {
			.fd = self->fd,
			.seen = seen,
			.nr = NR,
			.left = &left,
		};
		pthread_create(&r[i].thread, NULL,
			       i & 1 ? ring_main : poller_main, &r[i]);
	}
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, arm_in(self->fd, rnd_below(&rnd, 5 * TICK), i,
				    NULL));
	}
	for (i = 0; i < READERS; i++) {
		pthread_join(r[i].thread, NULL);
		EXPECT_EQ(0, r[i].strange);
	}
	EXPECT_EQ(0, left);
	EXPECT_TRUE(all_bytes(seen, 1, NR));
}

/* Guards against reads of a killed process that take what others wait for. */
TEST_F(ring, killed)
{
	struct hwtw_event ev[4], *got = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, status, sock[2];
	struct io_uring ring;
	pid_t child;
	char byte;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
		child = fork();
		if (!child) {
			if (io_uring_queue_init(8, &ring, 0) ||
			    submit_read(&ring, self->fd, got, EV, 1, 0) != 1 ||
			    submit_read(&ring, self->fd, got, EV, 2,
					IOSQE_ASYNC) != 1 ||
			    write(sock[1], "", 1) != 1)
				_exit(1);
			pause();
		}
		ASSERT_EQ(1, read(sock[0], &byte, 1));
		kill(child, SIGKILL);
		ASSERT_EQ(child, waitpid(child, &status, 0));
		EXPECT_EQ(SIGKILL, WTERMSIG(status));
		ASSERT_EQ(0, arm_many(self->fd, 3, i % 2 * TICK, 0, 0, NULL));
		EXPECT_EQ(3, take_all(self->fd, ev, 3));
		close(sock[0]);
		close(sock[1]);
	}
}

TEST_HARNESS_MAIN
