// SPDX-License-Identifier: GPL-2.0
/*
 * One instance of /dev/hwtw in the hands of many: threads and processes that
 * wait for the same records, that pass the descriptor on, that are killed in
 * the middle of a call, and memory cgroups that pay for the timers.
 */
#include "hwtw_test.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TICK	HWTW_TICK_DEFAULT_NS
#define EV	sizeof(struct hwtw_event)

FIXTURE(dev) {
	int fd;
};

FIXTURE_SETUP(dev)
{
	self->fd = hwtw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(dev)
{
	close(self->fd);
}

/* Zeros that children write to and the parent sees, in memory from the start. */
static void *map_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Returns the exit status of a child, or 128 + the signal that killed it. */
static int wait_child(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/* Adds to @seen, by user_data below @nr. Returns how many make no sense. */
static int note_seen(unsigned char *seen, int nr, const struct hwtw_event *ev,
		     int records)
{
	int i, strange = 0;

	for (i = 0; i < records; i++) {
		if (ev[i].user_data < (uint64_t)nr)
			__atomic_add_fetch(&seen[ev[i].user_data], 1,
					   __ATOMIC_SEQ_CST);
		else
			strange++;
	}
	return strange;
}

/* --- EPOLLEXCLUSIVE --- */

#define WORKERS	8

/* A thread with an epoll instance of its own, as of a server that accepts. */
struct worker {
	pthread_t thread;
	int fd;
	int ep;
	bool take;
	int *left;		/* records that are to be read */
	unsigned char *seen;
	int nr;
	int woken;
	int strange;
};

static int add_to(int ep, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct epoll_event e;
	struct hwtw_event ev;
	int n;

	while (epoll_wait(w->ep, &e, 1, 20000) == 1 && e.data.fd == w->fd) {
		__atomic_add_fetch(&w->woken, 1, __ATOMIC_SEQ_CST);
		if (!w->take)
			break;
		n = take(w->fd, &ev, 1);
		if (n != 1)
			continue;
		w->strange += note_seen(w->seen, w->nr, &ev, 1);
		__atomic_sub_fetch(w->left, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* They end when @stop is readable, or after one event unless they @take. */
static int workers_start(struct worker *w, const struct worker *like, int stop,
			 uint32_t flags)
{
	int i, err = 0;

	for (i = 0; i < WORKERS && !err; i++) {
		w[i] = *like;
		w[i].ep = epoll_create1(EPOLL_CLOEXEC);
		err = add_to(w[i].ep, w[i].fd, EPOLLIN | flags);
		if (!err)
			err = add_to(w[i].ep, stop, EPOLLIN);
		if (!err)
			pthread_create(&w[i].thread, NULL, worker_main, &w[i]);
	}
	sleep_ns(50 * NSEC_PER_MSEC);
	return err;
}

static int workers_woken(const struct worker *w)
{
	int i, woken = 0;

	for (i = 0; i < WORKERS; i++)
		woken += __atomic_load_n(&w[i].woken, __ATOMIC_SEQ_CST);
	return woken;
}

static void workers_stop(struct worker *w, int stop)
{
	uint64_t one = 1;
	int i;

	if (write(stop, &one, sizeof(one)) != sizeof(one))
		return;
	for (i = 0; i < WORKERS; i++) {
		pthread_join(w[i].thread, NULL);
		close(w[i].ep);
	}
}

/* Guards against one expiry that wakes all, or none, of those who share it. */
TEST_F(dev, exclusive_wakes_one)
{
	static const uint32_t flags[] = {
		0, EPOLLEXCLUSIVE, EPOLLEXCLUSIVE | EPOLLET,
	};
	struct worker w[WORKERS], like = { .fd = self->fd };
	size_t i, k;
	int stop;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		stop = eventfd(0, EFD_CLOEXEC);
		ASSERT_EQ(0, workers_start(w, &like, stop, flags[i]));
		ASSERT_EQ(0, arm_in(self->fd, 5 * NSEC_PER_MSEC, i, NULL));
		for (k = 0; k < 20000 && !workers_woken(w); k++)
			sleep_ns(NSEC_PER_MSEC);
		sleep_ns(200 * NSEC_PER_MSEC);
		EXPECT_EQ(flags[i] ? 1 : WORKERS, workers_woken(w)) {
			TH_LOG("flags %#x", flags[i]);
		}
		workers_stop(w, stop);
		close(stop);
		ASSERT_EQ(1, take(self->fd, &(struct hwtw_event) {}, 1));
	}
}

/* Guards against records that nobody is woken for, or two take. */
TEST_F(dev, exclusive_workers)
{
	enum { NR = 3000 };
	unsigned char *seen = map_shared(NR);
	int stop = eventfd(0, EFD_CLOEXEC), left = NR, i;
	struct worker w[WORKERS], like = {
		.fd = self->fd,
		.take = true,
		.left = &left,
		.seen = seen,
		.nr = NR,
	};
	struct rnd r = { 31 };

	ASSERT_EQ(0, workers_start(w, &like, stop, EPOLLEXCLUSIVE));
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, arm_in(self->fd, rnd_below(&r, 40 * TICK), i,
				    NULL));
	}
	for (i = 0; i < 20000 && __atomic_load_n(&left, __ATOMIC_SEQ_CST); i++)
		sleep_ns(NSEC_PER_MSEC);
	workers_stop(w, stop);
	close(stop);
	EXPECT_EQ(0, left);
	EXPECT_TRUE(all_bytes(seen, 1, NR));
	for (i = 0; i < WORKERS; i++)
		EXPECT_EQ(0, w[i].strange);
	EXPECT_EQ(-EAGAIN, take(self->fd, &(struct hwtw_event) {}, 1));
}

/* --- Processes --- */

/* Guards against an expiry read twice or by nobody across fork(). */
TEST_F(dev, processes_exactly_once)
{
	enum { NR = 12000, CHILDREN = 3, EACH = NR / CHILDREN };
	unsigned char *seen = map_shared(NR);
	int *read_so_far = map_shared(sizeof(*read_so_far));
	struct hwtw_event ev[32];
	pid_t child[CHILDREN];
	int c, i, n;

	for (c = 0; c < CHILDREN; c++) {
		struct rnd r = { 32 + c };

		child[c] = fork();
		if (child[c])
			continue;
		/* Each arms its share, and reads anybody's. */
		for (i = 0; i < EACH; i++) {
			if (arm_in(self->fd, rnd_below(&r, 4 * TICK),
				   c * EACH + i, NULL))
				_exit(1);
			n = i % 16 ? 0 : take(self->fd, ev, 1 + i % 32);
			if (n > 0) {
				if (note_seen(seen, NR, ev, n))
					_exit(2);
				__atomic_add_fetch(read_so_far, n,
						   __ATOMIC_SEQ_CST);
			}
		}
		while (__atomic_load_n(read_so_far, __ATOMIC_SEQ_CST) < NR) {
			readable(self->fd, 20);
			n = take(self->fd, ev, 32);
			if (n == -EAGAIN)
				continue;
			if (n < 0 || note_seen(seen, NR, ev, n))
				_exit(3);
			__atomic_add_fetch(read_so_far, n, __ATOMIC_SEQ_CST);
		}
		_exit(0);
	}
	for (c = 0; c < CHILDREN; c++) {
		EXPECT_EQ(0, wait_child(child[c]));
	}
	EXPECT_EQ(NR, *read_so_far);
	EXPECT_TRUE(all_bytes(seen, 1, NR));
	EXPECT_EQ(-EAGAIN, take(self->fd, ev, 1));
}

/* Guards against rmmod() under a descriptor that only a socket holds. */
TEST_F(dev, in_flight)
{
	struct hwtw_event ev;
	int sock[2], fd;
	uint64_t id;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	ASSERT_EQ(0, arm_in(self->fd, 5 * NSEC_PER_MSEC, 1, NULL));
	ASSERT_EQ(0, arm_in(self->fd, HOUR_NS, 2, &id));
	ASSERT_EQ(0, send_fd(sock[0], self->fd));
	close(self->fd);
	sleep_ns(10 * NSEC_PER_MSEC);
	EXPECT_EQ(-1, syscall(SYS_delete_module, "hwtw", O_NONBLOCK));
	EXPECT_EQ(EWOULDBLOCK, errno);
	fd = receive_fd(sock[1]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, take_all(fd, &ev, 1));
	EXPECT_EQ(1, ev.user_data);
	EXPECT_EQ(HWTW_PENDING, hwtw_cancel(fd, id));
	/* One more that nobody ever takes out: it goes with the socket. */
	ASSERT_EQ(0, arm_many(fd, 1000, HOUR_NS, 0, 0, NULL));
	ASSERT_EQ(0, send_fd(sock[0], fd));
	close(sock[0]);
	close(sock[1]);
	self->fd = fd;
}

struct blocked {
	pthread_t thread;
	int fd;
	int got;
	struct hwtw_event ev;
};

static void *blocked_main(void *arg)
{
	struct blocked *b = arg;

	b->got = take(b->fd, &b->ev, 1);
	return NULL;
}

/* Guards against readers that starve, or hang, when another holder closes. */
TEST_F(dev, close_while_others_read)
{
	struct hwtw_event *ev = map_shared(2 * EV);
	struct blocked b = { .fd = hwtw_open(0) };
	pid_t child;
	int fd;

	/* Another process. */
	fd = dup(b.fd);
	ASSERT_EQ(0, arm_in(fd, 100 * NSEC_PER_MSEC, 1, NULL));
	child = fork();
	if (!child)
		_exit(take(b.fd, ev, 1) != 1);
	sleep_ns(30 * NSEC_PER_MSEC);
	close(b.fd);
	close(fd);
	EXPECT_EQ(0, wait_child(child));
	EXPECT_EQ(1, ev->user_data);

	/* Another thread, of the very descriptor it reads. */
	b.fd = hwtw_open(0);
	ASSERT_EQ(0, arm_in(b.fd, 100 * NSEC_PER_MSEC, 2, NULL));
	pthread_create(&b.thread, NULL, blocked_main, &b);
	sleep_ns(30 * NSEC_PER_MSEC);
	close(b.fd);
	pthread_join(b.thread, NULL);
	EXPECT_EQ(1, b.got);
	EXPECT_EQ(2, b.ev.user_data);
}

/* --- SIGKILL --- */

/* Waits until *@p is no longer @old, while the child runs. */
static void await_change(const int32_t *p, int32_t old, pid_t child)
{
	siginfo_t info = {};

	while (__atomic_load_n(p, __ATOMIC_ACQUIRE) == old && !info.si_pid)
		waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT);
}

/*
 * Guards against timers of a call that was killed of which nobody knows, and
 * against ids that were told of timers that are not there.
 */
TEST_F_TIMEOUT(dev, submit_killed, TEST_TIMEOUT_SLOW)
{
	enum { NR = HWTW_BATCH_MAX, ROUNDS = 8 };
	struct hwtw_op *ops = map_shared(NR * sizeof(*ops));
	uint64_t *id = calloc(NR, sizeof(*id));
	int round, i, told, middle = 0;
	pid_t child;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, NR));
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < NR; i++)
			ops[i] = arm_op(HOUR_NS, 0, i);
		child = fork();
		if (!child) {
			pin_to(1);
			_exit(hwtw_submit(self->fd, ops, NR, NULL) != 0);
		}
		pin_to(0);
		await_change(&ops[1 + round * 4000].result, POISON32, child);
		kill(child, SIGKILL);
		wait_child(child);
		/* Told are the first ones, without a gap. */
		for (told = 0; told < NR && !ops[told].result; told++)
			id[told] = ops[told].timer.id;
		for (i = told; i < NR; i++)
			ASSERT_EQ((int)POISON32, ops[i].result);
		middle += told && told < NR;
		EXPECT_EQ(told, cancel_many(self->fd, id, told));
		/* Nothing is left if all fit in that may. */
		ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, id));
		EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
		ASSERT_EQ(NR, cancel_many(self->fd, id, NR));
	}
	TH_LOG("killed in the middle: %d of %d", middle, ROUNDS);
	EXPECT_LT(0, middle);
}

/* Guards against records that a killed reader took without having them. */
TEST_F_TIMEOUT(dev, read_killed, TEST_TIMEOUT_SLOW)
{
	enum { NR = 40000, ROUNDS = 60 };
	size_t len = NR * EV;
	struct hwtw_event *ev = map_shared(len), *rest = map_shared(len);
	unsigned char *seen = map_shared(NR);
	int round, got, left, middle = 0;
	pid_t child;

	for (round = 0; round < ROUNDS; round++) {
		memset(ev, POISON, len);
		memset(seen, 0, NR);
		ASSERT_EQ(0, arm_many(self->fd, NR, 0, 0, 0, NULL));
		child = fork();
		if (!child) {
			pin_to(1);
			_exit(take(self->fd, ev, NR) != NR);
		}
		pin_to(0);
		await_change((int32_t *)&ev[round % 20 * 2000].overruns, POISON32,
			     child);
		kill(child, SIGKILL);
		wait_child(child);
		for (got = 0; got < NR && !ev[got].flags; got++)
			;
		left = take(self->fd, rest, NR);
		if (left == -EAGAIN)
			left = 0;
		middle += got && left;
		EXPECT_EQ(NR, got + left) {
			TH_LOG("the last one: id %llx, user_data %llu",
			       ev[got - 1].id, ev[got - 1].user_data);
		}
		EXPECT_EQ(0, note_seen(seen, NR, ev, got));
		EXPECT_EQ(0, note_seen(seen, NR, rest, left));
		EXPECT_TRUE(all_bytes(seen, 1, NR));
	}
	TH_LOG("killed in the middle: %d of %d", middle, ROUNDS);
	EXPECT_LT(0, middle);
}

/* The page that a reader is killed on: it never comes. @uffd tells of who waits for it. */
static void *page_that_never_comes(int *uffd)
{
	void *page = map_pages(1);

	*uffd = fault_open(page, UFFDIO_REGISTER_MODE_MISSING);
	return *uffd < 0 ? NULL : page;
}

/* Guards against records lost with a reader that is killed while it waits for its memory. */
TEST_F(dev, killed_while_copying)
{
	struct hwtw_event ev[4];
	int i, k, sock[2], uffd;
	pid_t child;

	if (!page_that_never_comes(&uffd))
		SKIP(return, "no userfaultfd");
	close(uffd);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, arm_many(self->fd, 3, 0, 0, i, NULL));
		child = fork();
		if (!child) {
			void *page = page_that_never_comes(&uffd);

			_exit(send_fd(sock[1], uffd) ||
			      take(self->fd, page, 3) >= 0);
		}
		uffd = receive_fd(sock[0]);
		ASSERT_LE(0, uffd);
		EXPECT_EQ(1, readable(uffd, 20000));
		/* It waits, and has taken none. */
		EXPECT_EQ(1, readable(self->fd, 0));
		EXPECT_EQ(0, kill(child, SIGKILL));
		EXPECT_EQ(128 + SIGKILL, wait_child(child));
		close(uffd);
		ASSERT_EQ(3, take(self->fd, ev, 4));
		for (k = 0; k < 3; k++) {
			EXPECT_EQ((uint64_t)i + k, ev[k].user_data);
		}
	}
	close(sock[0]);
	close(sock[1]);
}

/* --- Memory cgroups --- */

#define CGROUP	"/tmp/cgroup"
#define GROUP	CGROUP "/test/"

FIXTURE(memcg) {
	int fd;
};

FIXTURE_SETUP(memcg)
{
	self->fd = hwtw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	mkdir(CGROUP, 0755);
	if (mount("cgroup", CGROUP, "cgroup2", 0, NULL) && errno != EBUSY) {
		/* Busy: a test that failed left it. */
		ASSERT_EQ(ENODEV, errno);
		SKIP(return, "no control groups");
	}
	if (put(CGROUP "/cgroup.subtree_control", "+memory"))
		SKIP(return, "no memory controller");
	rmdir(GROUP);
	ASSERT_EQ(0, mkdir(GROUP, 0755));
}

FIXTURE_TEARDOWN(memcg)
{
	close(self->fd);
	put(CGROUP "/cgroup.procs", "0");
	EXPECT_EQ(0, rmdir(GROUP));
	EXPECT_EQ(0, umount(CGROUP));
}

static int64_t charged(void)
{
	return read_number(GROUP "memory.current");
}

/* A limit that leaves @room bytes from now on. */
static int leave_room(int64_t room)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)(charged() + room));
	return put(GROUP "memory.max", text);
}

/* Guards against memory that nobody is charged for (B-29). */
TEST_F(memcg, charged)
{
	enum { NR = 200000 };
	int64_t before, full, after;
	uint64_t *id = map_pages(NR * sizeof(*id) / 4096 + 1);

	ASSERT_EQ(0, put(GROUP "cgroup.procs", "0"));
	before = charged();
	ASSERT_EQ(0, arm_many(self->fd, NR, HOUR_NS, 0, 0, id));
	full = charged() - before;
	ASSERT_EQ(NR, cancel_many(self->fd, id, NR));
	after = charged() - before;
	TH_LOG("%lld KiB charged, %lld KiB left", (long long)full / 1024,
	       (long long)after / 1024);
	EXPECT_LT(24 * NR, full);
	/* Each CPU may keep some pages' charge in stock. */
	EXPECT_GE(full / 2, after);
}

#define MEMCG_NR	(4 * HWTW_BATCH_MAX)

/*
 * Arms in batches until one fails, or @nr are there; every other timer is due
 * at @soon, the others in an hour. Returns the error, and in
 * @armed how many have their id in @ops. The batches are small: the kernel says
 * a hundred lines about each operation that it finds no memory for.
 */
static int arm_until_failure(int fd, struct hwtw_op *ops, int nr, uint64_t soon,
			     int *armed)
{
	uint64_t late = now_ns() + HOUR_NS;
	int step = 16, i, ret;

	*armed = 0;
	while (*armed < nr) {
		for (i = 0; i < step; i++)
			ops[*armed + i] = arm_op(i & 1 ? late : soon,
						 HWTW_TIMER_ABS, *armed + i);
		ret = hwtw_submit(fd, ops + *armed, step, NULL);
		for (i = 0; i < step && !ops[*armed + i].result; i++)
			;
		ret = ret || i == step ? ret : ops[*armed + i].result;
		*armed += i;
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Has all memory that this process will want: once the cgroup is full it could
 * not get another page, not even of its stack.
 */
static int have_all_memory(void)
{
	char deep[64 * 1024];

	memset(deep, 1, sizeof(deep));
	__asm__ volatile("" : : "r" (deep) : "memory");
	return mlockall(MCL_CURRENT) ? -errno : 0;
}

/* Cancels what was armed, in the memory of that. Returns how many. */
static int cancel_armed(int fd, struct hwtw_op *ops, int nr)
{
	int i, n, k, cancelled = 0;

	for (i = 0; i < nr; i++)
		ops[i] = id_op(HWTW_OP_CANCEL, ops[i].timer.id);
	for (i = 0; i < nr; i += n) {
		n = nr - i < HWTW_BATCH_MAX ? nr - i : HWTW_BATCH_MAX;
		if (hwtw_submit(fd, ops + i, n, NULL))
			break;
		for (k = 0; k < n; k++)
			cancelled += !ops[i + k].result;
	}
	return cancelled;
}

/*
 * Guards against timers that a full cgroup loses, that cannot expire in it, or
 * that cost memory though they could not be armed. The OOM killer may not touch
 * this process, so that the kernel's last resort is to refuse.
 */
TEST_F_TIMEOUT(memcg, refused, TEST_TIMEOUT_SLOW)
{
	struct hwtw_op *ops = map_pages(MEMCG_NR / 4096 * sizeof(*ops));
	struct hwtw_op *more = map_pages(MEMCG_NR / 4096 * sizeof(*more));
	struct hwtw_event *ev = map_pages(EV);
	unsigned char *seen = map_shared(MEMCG_NR);
	int armed, half, have, again, i, n;

	ASSERT_EQ(0, pin_to(0));
	ASSERT_EQ(0, have_all_memory());
	ASSERT_EQ(0, put("/proc/self/oom_score_adj", "-1000"));
	ASSERT_EQ(0, put(GROUP "cgroup.procs", "0"));
	ASSERT_EQ(0, leave_room(8 << 20));
	ASSERT_EQ(-ENOMEM, arm_until_failure(self->fd, ops, MEMCG_NR,
					     now_ns() + NSEC_PER_SEC, &armed));
	TH_LOG("%d timers in 8 MiB", armed);
	EXPECT_LT((8 << 20) / 128, armed);

	/* Expiry allocates nothing: the first of two come, once each. */
	half = (armed + 1) / 2;
	for (have = 0; have < half && readable(self->fd, 20000); have += n) {
		n = take(self->fd, ev, 4096);
		ASSERT_LT(0, n);
		ASSERT_EQ(0, note_seen(seen, armed, ev, n));
	}
	EXPECT_EQ(half, have);
	for (i = 0; i < armed; i++)
		ASSERT_EQ(!(i & 1), seen[i]);

	/* There is room again for about as many, and the others are there. */
	ASSERT_EQ(-ENOMEM, arm_until_failure(self->fd, more, MEMCG_NR,
					     now_ns() + HOUR_NS, &again));
	EXPECT_LT(half * 3 / 4, again);
	EXPECT_EQ(armed - half, cancel_armed(self->fd, ops, armed));
	EXPECT_EQ(again, cancel_armed(self->fd, more, again));
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_EQ(0, arm_until_failure(self->fd, ops, half & -16,
				       now_ns() + HOUR_NS, &n));
	EXPECT_EQ(n, cancel_armed(self->fd, ops, n));
}

/* Guards against timers lost, or kept for ever, when the OOM killer comes. */
TEST_F_TIMEOUT(memcg, oom_killed, TEST_TIMEOUT_SLOW)
{
	struct hwtw_op *ops = map_shared(MEMCG_NR * sizeof(*ops));
	uint64_t *id = map_pages(MEMCG_NR / 4096 * sizeof(*id));
	int told = 0, armed, i;
	int64_t full, left;
	pid_t child;

	ASSERT_EQ(0, hwtw_setup(self->fd, CLOCK_MONOTONIC, 0, MEMCG_NR));
	for (i = 0; i < MEMCG_NR; i++)
		ops[i] = arm_op(HOUR_NS, 0, i);
	ASSERT_EQ(0, leave_room(8 << 20));
	child = fork();
	if (!child) {
		if (pin_to(0) || put(GROUP "cgroup.procs", "0"))
			_exit(1);
		_exit(arm_until_failure(self->fd, ops, MEMCG_NR,
					now_ns() + HOUR_NS, &armed) ? 2 : 3);
	}
	EXPECT_EQ(128 + SIGKILL, wait_child(child));
	full = charged();
	while (told < MEMCG_NR && !ops[told].result) {
		id[told] = ops[told].timer.id;
		told++;
	}
	for (i = told; i < MEMCG_NR; i++)
		ASSERT_NE(0, ops[i].result);
	TH_LOG("%d timers of a killed process, %lld KiB", told,
	       (long long)full / 1024);
	EXPECT_LT((8 << 20) / 128, told);
	EXPECT_LT(24 * told, full);
	EXPECT_EQ(told, cancel_many(self->fd, id, told));
	left = charged();
	EXPECT_GT(full / 4, left) {
		TH_LOG("%lld KiB left", (long long)left / 1024);
	}
	/* And no others: all fit in that may. */
	ASSERT_EQ(0, arm_many(self->fd, MEMCG_NR, HOUR_NS, 0, 0, NULL));
	EXPECT_EQ(-ENOSPC, arm_in(self->fd, HOUR_NS, 0, NULL));
}

TEST_HARNESS_MAIN
