// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random calls to /dev/hwtw
 *
 * Some worker processes run programs. A program has a few instances, some pages
 * of memory of all kinds, and two threads that make calls at the same time:
 * valid ones, ones at the limits of what is valid, and bad ones. When they are
 * through, what each timer went through has to add up.
 *
 * A program is given by a few genes, "seed:calls" each; the threads take turns
 * to run them. Where the kernel has KCOV and the module is built for it, genes
 * that reached new code are kept, and others are made of them. Each program is
 * printed before it runs: the last ones are to be suspected if the kernel dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/hwtw.h>
#include <linux/kcov.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MSEC		1000000ULL
#define SEC		1000000000ULL

#define THREADS		2
#define GENES		8
#define CALLS_MAX	64
#define SLOTS		6	/* descriptors that a program has at hand */
#define INSTANCES	128	/* it may open in all */
#define IDS		64	/* that it remembers */
#define LOG_MAX		65536
#define BATCH_MAX	200	/* operations of most batches */
#define FD_FIRST	64
#define CORPUS		512
#define EDGES		65536
#define KCOV_ENTRIES	(64 << 10)

/* The pages of a thread. Those of the other one follow, and then there are none. */
#define PAGE		4096UL
#define PAGES		8
#define PAGE_UNSTABLE	4	/* goes and comes, in some programs */
#define PAGE_READONLY	5
#define PAGE_NONE	6
#define PAGE_ARG	7	/* good, for what points to the others */

struct gene {
	uint32_t seed;
	uint32_t calls;
};

struct genome {
	unsigned int nr;
	struct gene gene[GENES];
};

struct rnd {
	uint64_t x;
};

/* What was seen to happen to a timer. NOTHING: who wanted to write it was killed. */
enum what { NOTHING, ARMED, REARMED, CANCELLED, READ, UNSURE };

/**
 * struct entry - of a program's log
 * @what: what happened
 * @inst: the instance
 * @interval: of the timer, when it was armed
 * @id: the timer
 * @user_data: its, for ARMED and READ
 * @expires: its deadline: the one asked for, 0 if it is not known; that of the record
 * @mono: CLOCK_MONOTONIC afterwards
 * @real: CLOCK_REALTIME afterwards
 */
struct entry {
	atomic_uchar what;
	uint8_t interval;
	uint16_t inst;
	uint64_t id;
	uint64_t user_data;
	uint64_t expires;
	uint64_t mono;
	uint64_t real;
};

/**
 * struct shared - what a worker shares with the children of its programs
 * @slot: fd and instance + 1 of each descriptor at hand, 0: none
 * @id: ids that were seen
 * @instances: opened so far
 * @next_fd: number for the next descriptor: none is used twice
 * @user_data: of the next timer
 * @unstable: pages go and come
 * @loose: something was done that nobody saw, so that the log tells not all
 * @nr: entries of @log
 * @log: the log
 */
struct shared {
	_Atomic uint64_t slot[SLOTS];
	_Atomic uint64_t id[IDS];
	atomic_uint instances;
	atomic_int next_fd;
	_Atomic uint64_t user_data;
	bool unstable;
	atomic_bool loose;
	atomic_uint nr;
	struct entry log[LOG_MAX];
};

/**
 * struct corpus - what all workers share
 * @seen: edges that were reached
 * @edges: how many
 * @lock: guards all below
 * @nr: genomes that reached new ones
 * @genome: the genomes
 */
struct corpus {
	atomic_uchar seen[EDGES];
	atomic_uint edges;
	atomic_flag lock;
	unsigned int nr;
	struct genome genome[CORPUS];
};

struct caller {
	pthread_t thread;
	unsigned int nr;
	struct rnd rnd;
	uint64_t *cover;
	atomic_bool busy;
};

static struct shared *sh;
static struct corpus *corpus;
static struct genome program;
static char *arena;
static int mem_fd = -1;
static unsigned int worker;
static pthread_barrier_t begin, end;
static struct caller caller[THREADS];
static uint64_t features;
static bool in_child;

static uint64_t rnd_next(struct rnd *r)
{
	uint64_t x = r->x += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
	return x ^ (x >> 32);
}

static uint64_t below(struct rnd *r, uint64_t n)
{
	return (rnd_next(r) >> 32) * n >> 32;
}

static bool one_in(struct rnd *r, unsigned int n)
{
	return !below(r, n);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static void genome_text(const struct genome *g, char *buf, size_t size)
{
	size_t len = 0;
	unsigned int i;

	buf[0] = 0;
	for (i = 0; i < g->nr; i++)
		len += snprintf(buf + len, size - len, "%s%x:%u", i ? "," : "",
				g->gene[i].seed, g->gene[i].calls);
}

/* Something is wrong. */
static void fail(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

static void fail(const char *format, ...)
{
	char text[256], genes[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	genome_text(&program, genes, sizeof(genes));
	fprintf(stderr, "calls: worker %u: %s\ncalls: again with --replay %s\n",
		worker, text, genes);
	fflush(stderr);
	_exit(1);
}

/*
 * The log
 */

static void note(enum what what, unsigned int inst, uint64_t id, uint64_t user_data,
		 uint64_t expires, bool interval)
{
	unsigned int i = atomic_fetch_add(&sh->nr, 1);
	struct entry *e = &sh->log[i];

	if (i >= LOG_MAX)
		fail("the log is full");
	e->interval = interval;
	e->inst = inst;
	e->id = id;
	e->user_data = user_data;
	e->expires = expires;
	e->mono = clock_ns(CLOCK_MONOTONIC);
	e->real = clock_ns(CLOCK_REALTIME);
	atomic_store(&e->what, what);
}

static void remember(struct rnd *r, uint64_t id)
{
	atomic_store(&sh->id[below(r, IDS)], id);
}

/*
 * Memory: the kernel is to meet the bad pages, not this program
 */

static bool poke(uint64_t addr, const void *from, size_t len)
{
	return pwrite(mem_fd, from, len, addr) == (ssize_t)len;
}

static bool peek(void *to, uint64_t addr, size_t len)
{
	return pread(mem_fd, to, len, addr) == (ssize_t)len;
}

static void map_arena(void)
{
	struct rnd r = { 1 };
	unsigned int t, i;

	if (mmap(arena, THREADS * PAGES * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		fail("mmap: %m");
	for (t = 0; t < THREADS; t++) {
		char *readonly = arena + (t * PAGES + PAGE_READONLY) * PAGE;

		for (i = 0; i < PAGE / 8; i++)
			((uint64_t *)readonly)[i] = below(&r, 5);
		mprotect(readonly, PAGE, PROT_READ);
		mprotect(arena + (t * PAGES + PAGE_NONE) * PAGE, PAGE, PROT_NONE);
	}
}

static uint64_t page_address(unsigned int nr, unsigned int page)
{
	return (uintptr_t)arena + (nr * PAGES + page) * PAGE;
}

/* An address of a thread for so many bytes, mostly good. */
static uint64_t choose_address(struct rnd *r, unsigned int nr, size_t len)
{
	if (len > PAGE_READONLY * PAGE)
		len = PAGE_READONLY * PAGE;
	switch (below(r, 60)) {
	case 0:
		return below(r, 3) * 8;
	case 1:
		return 0xffff888000000000ULL + below(r, 1 << 20) * 8;
	case 2:
		return 0x00007ffffffff000ULL - below(r, len + 16);
	case 3:
		return page_address(nr, PAGE_READONLY);
	case 4:
	case 5:
		/* Over the edge of what can be written, or read. */
		return page_address(nr, PAGE_READONLY) - below(r, len + 1);
	case 6:
		return page_address(nr, PAGE_NONE) - below(r, len + 1);
	case 7:
		return page_address(nr, below(r, PAGE_NONE)) + below(r, PAGE);
	case 8:
		return ~0ULL - below(r, len + 8);
	case 9:
	case 10:
	case 11:
		return page_address(nr, PAGE_UNSTABLE) - below(r, len + 1) / 8 * 8;
	default:
		return page_address(nr, 0) + below(r, 64) * 8;
	}
}

/*
 * Behind what calls of a thread get at: poke() does not mind PAGE_NONE, and would
 * go on to PAGE_ARG and to the pages of the next thread.
 */
static bool is_behind(unsigned int nr, uint64_t addr)
{
	return addr > page_address(nr, PAGE_NONE);
}

/* What is there after a call may not be what the call left. */
static bool is_unstable(unsigned int nr, uint64_t addr, size_t len)
{
	uint64_t page = page_address(nr, PAGE_UNSTABLE);

	return sh->unstable && addr + len > page && addr < page + PAGE;
}

/* A thread takes memory away from another one, or gives it back. */
static void change_memory(struct rnd *r)
{
	char *page = (char *)(uintptr_t)page_address(below(r, THREADS), PAGE_UNSTABLE);

	if (!sh->unstable)
		return;
	switch (below(r, 4)) {
	case 0:
		munmap(page, PAGE);
		break;
	case 1:
		mprotect(page, PAGE, below(r, 2) ? PROT_READ : PROT_NONE);
		break;
	case 2:
		madvise(page, PAGE, MADV_DONTNEED);
		break;
	default:
		mmap(page, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
}

/*
 * Descriptors. Their numbers are not used again, so that a call gets the
 * instance it was meant for, or none.
 */

static int new_number(int fd)
{
	int nr = fcntl(fd, F_DUPFD_CLOEXEC, atomic_fetch_add(&sh->next_fd, 1));

	return nr;
}

static void set_slot(struct rnd *r, int fd, unsigned int inst)
{
	uint64_t old = atomic_exchange(&sh->slot[below(r, SLOTS)],
				       (uint64_t)(inst + 1) << 32 | (unsigned int)fd);

	if (old)
		close((int)old);
}

static void do_open(struct rnd *r)
{
	unsigned int inst;
	int fd, nr;

	/* Those of children would not be seen by the others. */
	if (in_child || atomic_load(&sh->instances) >= INSTANCES - THREADS)
		return;
	fd = open("/dev/hwtw", (one_in(r, 8) ? O_RDONLY : O_RDWR) | O_CLOEXEC |
			       (one_in(r, 3) ? 0 : O_NONBLOCK));
	if (fd < 0)
		fail("open: %m");
	inst = atomic_fetch_add(&sh->instances, 1);
	nr = new_number(fd);
	close(fd);
	if (nr < 0)
		fail("dup: %m");
	set_slot(r, nr, inst);
}

/* A descriptor at hand, and its instance. Mostly of the first ones. */
static int choose_fd(struct rnd *r, unsigned int *inst)
{
	unsigned int i, at = one_in(r, 3) ? below(r, SLOTS) : below(r, 2);

	for (i = 0; i < SLOTS; i++) {
		uint64_t slot = atomic_load(&sh->slot[(at + i) % SLOTS]);

		if (slot) {
			*inst = (slot >> 32) - 1;
			return (int)slot;
		}
	}
	return -1;
}

static void do_dup(struct rnd *r)
{
	unsigned int inst;
	int fd = choose_fd(r, &inst);

	if (in_child || fd < 0)
		return;
	fd = new_number(fd);
	if (fd >= 0)
		set_slot(r, fd, inst);
}

static void do_close(struct rnd *r)
{
	uint64_t old;

	if (in_child)
		return;
	old = atomic_exchange(&sh->slot[below(r, SLOTS)], 0);
	if (old)
		close((int)old);
}

/*
 * Timers
 */

static uint64_t choose_time(struct rnd *r, bool absolute)
{
	uint64_t now = absolute ? clock_ns(CLOCK_MONOTONIC) : 0, edge;

	switch (below(r, 16)) {
	case 0:
		return 0;
	case 1:
		return HWTW_TIME_MAX_NS - below(r, 3);
	case 2:
		return HWTW_TIME_MAX_NS + below(r, 3);
	case 3:
		return rnd_next(r);
	case 4:
	case 5:
		/* Around the border of a bucket. */
		edge = 1ULL << (14 + below(r, 49));
		return now + edge + below(r, 3) - 1;
	case 6:
		return now - below(r, 100 * MSEC);
	case 7:
	case 8:
		return now + below(r, 1ULL << (10 + below(r, 53)));
	case 9:
	case 10:
		/* The same tick as others. */
		return (now + 20 * MSEC) & ~(16 * MSEC - 1);
	default:
		return now + below(r, 20 * MSEC);
	}
}

static uint64_t choose_interval(struct rnd *r)
{
	switch (below(r, 24)) {
	case 0:
		return 1 + below(r, 1 << 20);
	case 1:
		return (1ULL << (14 + below(r, 50))) - below(r, 2);
	case 2:
		return MSEC * (2 + below(r, 10));
	case 3:
		return rnd_next(r);
	default:
		return 0;
	}
}

static uint64_t choose_id(struct rnd *r)
{
	uint64_t id = atomic_load(&sh->id[below(r, IDS)]);

	if (one_in(r, 40))
		id ^= 1ULL << below(r, 64);
	return one_in(r, 60) ? rnd_next(r) >> below(r, 64) : id;
}

static struct hwtw_timer choose_timer(struct rnd *r, uint32_t opcode)
{
	struct hwtw_timer t = { .state = (uint32_t)rnd_next(r) };

	if (opcode <= HWTW_OP_REARM) {
		t.flags = below(r, 2) ? HWTW_TIMER_ABS : 0;
		t.time_ns = choose_time(r, t.flags);
		t.interval_ns = choose_interval(r);
	}
	t.id = opcode == HWTW_OP_ARM ? rnd_next(r) : choose_id(r);
	t.user_data = atomic_fetch_add(&sh->user_data, 1);
	if (one_in(r, 50))
		t.flags ^= 1U << below(r, 32);
	return t;
}

/* What an operation did, by its result. @told: what came back. */
static void op_done(struct rnd *r, unsigned int inst, uint32_t opcode,
		    const struct hwtw_timer *asked, const struct hwtw_timer *told, int err)
{
	switch (err) {
	case 0:
		break;
	case -EINVAL:
	case -ENOENT:
	case -ENOSPC:
	case -ENOMEM:
		return;
	default:
		fail("operation %u: error %d", opcode, -err);
	}
	if (told->state != HWTW_PENDING && told->state != HWTW_EXPIRED)
		fail("operation %u: state %u", opcode, told->state);
	switch (opcode) {
	case HWTW_OP_ARM:
		if (!told->id)
			fail("the id is 0");
		remember(r, told->id);
		note(ARMED, inst, told->id, asked->user_data,
		     asked->flags & HWTW_TIMER_ABS ? asked->time_ns : 0, asked->interval_ns);
		break;
	case HWTW_OP_REARM:
		note(REARMED, inst, told->id, 0, 0, false);
		break;
	case HWTW_OP_CANCEL:
		note(CANCELLED, inst, told->id, 0, 0, false);
		break;
	case HWTW_OP_QUERY:
		if (told->time_ns > HWTW_TIME_MAX_NS || told->flags != HWTW_TIMER_ABS)
			fail("QUERY tells of flags %#x, time %#llx", told->flags,
			     (unsigned long long)told->time_ns);
	}
}

/* Results of ioctl() that any command may have. */
static void error_must_be_known(unsigned long cmd, int err)
{
	switch (err) {
	case 0:
	case EINVAL:
	case ENOENT:
	case EBUSY:
	case ENOSPC:
	case ENOMEM:
	case EFAULT:
	case EINTR:
	case ENOTTY:
	case E2BIG:
	case EOPNOTSUPP:
	case EBADF:
		return;
	}
	fail("ioctl %#lx: error %d", cmd, err);
}

static int call(int fd, unsigned long cmd, uint64_t addr)
{
	int err = ioctl(fd, cmd, addr) < 0 ? errno : 0;

	error_must_be_known(cmd, err);
	return -err;
}

/* The same command for a longer or shorter argument. */
static unsigned long resize(unsigned long cmd, size_t size)
{
	return (cmd & ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
	       size << _IOC_SIZESHIFT;
}

static void do_op(struct rnd *r, unsigned int nr, uint32_t opcode)
{
	static const unsigned long cmds[] = {
		[HWTW_OP_ARM] = HWTW_IOC_ARM, [HWTW_OP_REARM] = HWTW_IOC_REARM,
		[HWTW_OP_CANCEL] = HWTW_IOC_CANCEL, [HWTW_OP_QUERY] = HWTW_IOC_QUERY,
	};
	struct hwtw_timer asked = choose_timer(r, opcode), told;
	uint64_t addr = choose_address(r, nr, sizeof(asked));
	unsigned long cmd = cmds[opcode];
	unsigned int inst;
	int fd = choose_fd(r, &inst), err;

	if (one_in(r, 30))
		cmd = resize(cmd, below(r, 2) ? sizeof(asked) + below(r, 64) : below(r, 128));
	poke(addr, &asked, sizeof(asked));
	err = call(fd, cmd, addr);
	if (is_unstable(nr, addr, sizeof(asked))) {
		atomic_store(&sh->loose, true);
		return;
	}
	switch (err) {
	case -ENOTTY:
		fail("operation %u: no such command", opcode);
	case -EFAULT:
	case -EBADF:
	case -E2BIG:
		return;
	}
	/* What failed may not have looked at the address. */
	if (!err && !peek(&told, addr, sizeof(told)))
		fail("operation %u: no result at %#llx", opcode, (unsigned long long)addr);
	op_done(r, inst, opcode, &asked, &told, err);
}

static void do_submit(struct rnd *r, unsigned int nr)
{
	static _Thread_local struct hwtw_op ops[BATCH_MAX], done[BATCH_MAX];
	static const unsigned int sizes[] = { 0, 1, 2, 63, 64, 65, 128, 129, BATCH_MAX };
	struct hwtw_submit submit = { .done = (uint32_t)rnd_next(r) };
	unsigned int inst, i, n = sizes[below(r, ARRAY_SIZE(sizes))];
	uint64_t arg = page_address(nr, PAGE_ARG);
	int fd = choose_fd(r, &inst), err;

	for (i = 0; i < n; i++) {
		uint32_t opcode = 1 + below(r, 4);

		ops[i].opcode = one_in(r, 60) ? (uint32_t)rnd_next(r) : opcode;
		ops[i].result = (int32_t)rnd_next(r);
		ops[i].timer = choose_timer(r, opcode);
	}
	submit.ops = choose_address(r, nr, n * sizeof(*ops));
	submit.nr = n;
	if (one_in(r, 60)) {
		/* Too many, or far more than there is memory for. */
		submit.nr = HWTW_BATCH_MAX + below(r, 3) - 1;
		n = 0;
	}
	for (i = 0; i < n && !is_behind(nr, submit.ops + (i + 1) * sizeof(*ops)); i++)
		poke(submit.ops + i * sizeof(*ops), &ops[i], sizeof(*ops));
	poke(arg, &submit, sizeof(submit));
	err = call(fd, HWTW_IOC_SUBMIT, one_in(r, 60) ? choose_address(r, nr, 16) : arg);
	if (submit.nr != n || is_unstable(nr, submit.ops, n * sizeof(*ops))) {
		atomic_store(&sh->loose, true);
		return;
	}
	peek(&submit, arg, sizeof(submit));
	if (err == -EBADF || submit.done > n)
		return;
	for (i = 0; i < submit.done; i++) {
		uint32_t opcode = ops[i].opcode;

		if (!peek(&done[i], submit.ops + i * sizeof(*ops), sizeof(*ops)))
			fail("operation %u of %u has no result", i, n);
		if (opcode < HWTW_OP_ARM || opcode > HWTW_OP_QUERY) {
			if (done[i].result != -EINVAL)
				fail("opcode %u: result %d", opcode, done[i].result);
			continue;
		}
		op_done(r, inst, opcode, &ops[i].timer, &done[i].timer, done[i].result);
	}
	/* These may have been carried out. */
	for (; i < n; i++)
		note(UNSURE, inst, ops[i].timer.id, 0, 0, false);
}

static void do_list(struct rnd *r, unsigned int nr)
{
	static _Thread_local struct hwtw_timer timer[BATCH_MAX];
	static _Thread_local uint64_t cursor;
	struct hwtw_list list = { .flags = one_in(r, 4) ? HWTW_LIST_CANCEL : 0 };
	uint64_t arg = page_address(nr, PAGE_ARG);
	unsigned int inst, i, room = below(r, 40);
	int fd = choose_fd(r, &inst), err;

	list.nr = one_in(r, 40) ? (uint32_t)rnd_next(r) : room;
	list.cursor = one_in(r, 3) ? 0 : one_in(r, 30) ? rnd_next(r) : cursor;
	list.timers = choose_address(r, nr, room * sizeof(*timer));
	if (one_in(r, 40))
		list.flags ^= 1U << below(r, 32);
	poke(arg, &list, sizeof(list));
	err = call(fd, HWTW_IOC_LIST, arg);
	if (err && err != -EFAULT && err != -EINTR)
		return;
	peek(&list, arg, sizeof(list));
	/* With more room than memory, or bad memory, what it wrote last is open. */
	if (err || list.nr > room || is_unstable(nr, list.timers, room * sizeof(*timer))) {
		if (list.flags & HWTW_LIST_CANCEL)
			atomic_store(&sh->loose, true);
		return;
	}
	cursor = list.cursor;
	if (list.nr && !peek(timer, list.timers, list.nr * sizeof(*timer)))
		fail("LIST: there is nothing of %u timers", list.nr);
	for (i = 0; i < list.nr; i++) {
		if (timer[i].state != HWTW_PENDING && timer[i].state != HWTW_EXPIRED)
			fail("LIST: state %u", timer[i].state);
		if (list.flags & HWTW_LIST_CANCEL)
			note(CANCELLED, inst, timer[i].id, 0, 0, false);
		else
			remember(r, timer[i].id);
	}
}

/*
 * Records
 */

static void record(unsigned int inst, const struct hwtw_event *ev)
{
	if (ev->flags)
		fail("a record has flags %#x", ev->flags);
	note(READ, inst, ev->id, ev->user_data, ev->expires_ns, false);
}

static void read_done(unsigned int nr, unsigned int inst, ssize_t len, size_t size,
		      uint64_t addr)
{
	struct hwtw_event ev;
	ssize_t at;

	if (len < 0) {
		switch (errno) {
		case EINVAL:
		case EAGAIN:
		case EFAULT:
		case EINTR:
		case EBADF:
			return;
		}
		fail("read: %m");
	}
	if (!len ? size != 0 : len % sizeof(ev) || (size_t)len > size)
		fail("read of %zu bytes: %zd", size, len);
	if (len > 0 && is_unstable(nr, addr, size)) {
		atomic_store(&sh->loose, true);
		return;
	}
	for (at = 0; at < len; at += sizeof(ev)) {
		if (!peek(&ev, addr + at, sizeof(ev)))
			fail("read: no record at %#llx", (unsigned long long)addr + at);
		record(inst, &ev);
	}
}

static void do_read(struct rnd *r, unsigned int nr)
{
	static const size_t sizes[] = { 0, 1, 31, 32, 33, 64, 96, 1024, 1023, 1056, 4096, 8192 };
	size_t size = sizes[below(r, ARRAY_SIZE(sizes))];
	uint64_t addr = choose_address(r, nr, size);
	unsigned int inst;
	int fd = choose_fd(r, &inst);

	read_done(nr, inst, read(fd, (void *)(uintptr_t)addr, size), size, addr);
}

static void do_readv(struct rnd *r, unsigned int nr)
{
	size_t size = (1 + below(r, 64)) * sizeof(struct hwtw_event), part = below(r, size + 1);
	uint64_t addr = choose_address(r, nr, size);
	struct iovec iov[] = {
		{ (void *)(uintptr_t)addr, part },
		{ (void *)(uintptr_t)(addr + part), size - part },
	};
	unsigned int inst;
	int fd = choose_fd(r, &inst);

	read_done(nr, inst, readv(fd, iov, 2), size, addr);
}

/*
 * Other calls
 */

static void do_poll(struct rnd *r)
{
	unsigned int inst;
	struct pollfd p[2] = {
		{ .fd = choose_fd(r, &inst), .events = POLLIN | POLLPRI },
		{ .fd = choose_fd(r, &inst), .events = POLLIN | POLLOUT },
	};

	if (poll(p, 1 + below(r, 2), below(r, 4)) > 0 && p[0].revents & (POLLERR | POLLHUP))
		fail("poll: %#x", p[0].revents);
}

static void do_epoll(struct rnd *r)
{
	struct epoll_event ev = { .events = EPOLLIN | (below(r, 2) ? EPOLLET : EPOLLEXCLUSIVE) };
	unsigned int inst;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return;
	epoll_ctl(fd, EPOLL_CTL_ADD, choose_fd(r, &inst), &ev);
	epoll_ctl(fd, EPOLL_CTL_ADD, choose_fd(r, &inst), &ev);
	epoll_wait(fd, &ev, 1, below(r, 3));
	close(fd);
}

static void do_setup(struct rnd *r, unsigned int nr)
{
	static const uint32_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	struct hwtw_setup setup = {
		.clockid = one_in(r, 8) ? below(r, 20) : clocks[below(r, 3)],
		.flags = one_in(r, 20) ? rnd_next(r) : 0,
		.tick_ns = below(r, 4) ? 1ULL << (15 + below(r, 17)) : rnd_next(r) >> below(r, 64),
		.max_timers = below(r, 4) ? 0 : rnd_next(r) >> below(r, 64),
	};
	uint64_t addr = choose_address(r, nr, sizeof(setup));
	unsigned int inst;

	poke(addr, &setup, sizeof(setup));
	call(choose_fd(r, &inst), HWTW_IOC_SETUP, addr);
}

static void do_tell(struct rnd *r, unsigned int nr)
{
	unsigned long cmd = below(r, 2) ? HWTW_IOC_INFO : HWTW_IOC_STATS;
	unsigned int inst;

	if (one_in(r, 4))
		cmd = resize(cmd, below(r, 512));
	call(choose_fd(r, &inst), cmd, choose_address(r, nr, 512));
}

/* A command that there is not, or one with another direction. */
static void do_unknown(struct rnd *r, unsigned int nr)
{
	unsigned long cmd = _IOC(below(r, 4), one_in(r, 4) ? below(r, 256) : HWTW_IOC_TYPE,
				 0x20 + below(r, 0xe0), below(r, 1 << _IOC_SIZEBITS));
	unsigned int inst;
	int fd = choose_fd(r, &inst);

	if (fd >= 0)
		ioctl(fd, cmd, choose_address(r, nr, 64));
}

/* What other files have and this one has not, or not much of. */
static void do_other(struct rnd *r, unsigned int nr)
{
	unsigned int inst;
	int fd = choose_fd(r, &inst), n = 0;
	char path[64], buf[512];

	switch (below(r, 8)) {
	case 0:
		if (write(fd, buf, 32) >= 0)
			fail("it can be written to");
		break;
	case 1:
		if (pread(fd, buf, 32, 0) >= 0 || lseek(fd, 1, SEEK_SET) > 0)
			fail("it can be sought");
		break;
	case 2:
		if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED)
			fail("it can be mapped");
		break;
	case 3:
		ioctl(fd, FIONREAD, choose_address(r, nr, sizeof(n)));
		break;
	case 4:
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		n = open(path, O_RDONLY | O_CLOEXEC);
		if (n >= 0) {
			while (read(n, buf, sizeof(buf)) > 0)
				;
			close(n);
		}
		break;
	case 5:
		fcntl(fd, F_SETOWN, getpid());
		fcntl(fd, F_SETFL, (below(r, 2) ? O_NONBLOCK : 0) | (below(r, 2) ? O_ASYNC : 0));
		break;
	case 6:
		fsync(fd);
		ftruncate(fd, 1);
		break;
	default:
		flock(fd, 0);
		posix_fadvise(fd, 0, 1, POSIX_FADV_DONTNEED);
	}
}

static void do_hop(struct rnd *r)
{
	unsigned int cpus = sysconf(_SC_NPROCESSORS_CONF);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(below(r, cpus), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void do_nap(struct rnd *r)
{
	struct timespec ts = { .tv_nsec = below(r, 4 * MSEC) };

	nanosleep(&ts, NULL);
}

static void run_calls(struct rnd *r, unsigned int nr, unsigned int calls);

/* A child goes on with what it inherited, until it ends or is killed. */
static void do_fork(struct rnd *r, unsigned int nr)
{
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
	bool killed = below(r, 2);
	unsigned int waits = 0;
	pid_t pid;

	if (in_child)
		return;
	if (killed)
		atomic_store(&sh->loose, true);
	pid = fork();
	if (pid < 0)
		return;
	if (!pid) {
		in_child = true;
		close(mem_fd);
		mem_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		setitimer(ITIMER_REAL, &often, NULL);
		r->x ^= 1;
		run_calls(r, nr, 1 + below(r, 20));
		_exit(0);
	}
	if (killed) {
		do_nap(r);
		kill(pid, SIGKILL);
	}
	for (;;) {
		int status;

		if (waitpid(pid, &status, 0) == pid) {
			if (WIFEXITED(status) && WEXITSTATUS(status))
				_exit(1);
			if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
				fail("a child died of signal %d", WTERMSIG(status));
			return;
		}
		if (++waits == 4000) {
			atomic_store(&sh->loose, true);
			kill(pid, SIGKILL);
		}
	}
}

static void run_call(struct rnd *r, unsigned int nr)
{
	unsigned int dice = below(r, 100);

	if (dice < 22)
		do_op(r, nr, HWTW_OP_ARM);
	else if (dice < 30)
		do_op(r, nr, HWTW_OP_REARM);
	else if (dice < 38)
		do_op(r, nr, HWTW_OP_CANCEL);
	else if (dice < 41)
		do_op(r, nr, HWTW_OP_QUERY);
	else if (dice < 51)
		do_submit(r, nr);
	else if (dice < 54)
		do_list(r, nr);
	else if (dice < 67)
		do_read(r, nr);
	else if (dice < 71)
		do_readv(r, nr);
	else if (dice < 75)
		do_poll(r);
	else if (dice < 77)
		do_epoll(r);
	else if (dice < 82)
		do_nap(r);
	else if (dice < 84)
		do_open(r);
	else if (dice < 85)
		do_close(r);
	else if (dice < 87)
		do_dup(r);
	else if (dice < 89)
		do_setup(r, nr);
	else if (dice < 92)
		do_tell(r, nr);
	else if (dice < 93)
		do_unknown(r, nr);
	else if (dice < 96)
		do_other(r, nr);
	else if (dice < 97)
		do_hop(r);
	else if (dice < 99)
		change_memory(r);
	else
		do_fork(r, nr);
}

static void run_calls(struct rnd *r, unsigned int nr, unsigned int calls)
{
	while (calls--)
		run_call(r, nr);
}

/*
 * What it has to add up to
 */

static int entry_cmp(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->inst != b->inst)
		return a->inst < b->inst ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->what - b->what;
}

/* The life of one timer, as far as it was seen. @clockid: -1: not known. */
static void check_timer(const struct entry *e, unsigned int nr, int clockid)
{
	unsigned int count[UNSURE + 1] = {}, i;
	const struct entry *armed = e;

	for (; nr && e->what == NOTHING; nr--)
		armed = ++e;
	if (!nr)
		return;
	for (i = 0; i < nr; i++)
		count[e[i].what]++;
	if (count[ARMED] > 1)
		fail("id %#llx was given %u times", (unsigned long long)e->id, count[ARMED]);
	if (!count[ARMED]) {
		if (!atomic_load(&sh->loose) && !count[UNSURE])
			fail("id %#llx was never armed", (unsigned long long)e->id);
		return;
	}
	for (i = 0; i < nr; i++) {
		uint64_t now = clockid == CLOCK_REALTIME ? e[i].real : e[i].mono;

		if (e[i].what != READ)
			continue;
		if (e[i].user_data != armed->user_data)
			fail("id %#llx: user_data %#llx came back as %#llx",
			     (unsigned long long)e->id, (unsigned long long)armed->user_data,
			     (unsigned long long)e[i].user_data);
		if (clockid >= 0 && e[i].expires > now)
			fail("id %#llx is early by %llu ns", (unsigned long long)e->id,
			     (unsigned long long)(e[i].expires - now));
		if (armed->expires && !armed->interval && !count[REARMED] && !count[UNSURE] &&
		    !atomic_load(&sh->loose) && e[i].expires != armed->expires)
			fail("id %#llx: deadline %#llx came back as %#llx",
			     (unsigned long long)e->id, (unsigned long long)armed->expires,
			     (unsigned long long)e[i].expires);
	}
	if (count[CANCELLED] > 1)
		fail("id %#llx was cancelled %u times", (unsigned long long)e->id,
		     count[CANCELLED]);
	if (armed->interval || count[REARMED] || count[UNSURE] || atomic_load(&sh->loose))
		return;
	if (count[READ] > 1)
		fail("id %#llx was read %u times", (unsigned long long)e->id, count[READ]);
	if (count[READ] && count[CANCELLED])
		fail("id %#llx was read and cancelled", (unsigned long long)e->id);
}

static void check_stats(int fd, unsigned int armed)
{
	struct hwtw_stats st;

	if (ioctl(fd, HWTW_IOC_STATS, &st))
		fail("STATS: %m");
	if (st.armed != st.cancelled + st.completed + st.pending + st.unread)
		fail("armed=%llu but cancelled=%llu completed=%llu pending=%llu unread=%llu",
		     (unsigned long long)st.armed, (unsigned long long)st.cancelled,
		     (unsigned long long)st.completed, (unsigned long long)st.pending,
		     (unsigned long long)st.unread);
	if (st.expired != st.withdrawn + st.delivered + st.unread)
		fail("expired=%llu but withdrawn=%llu delivered=%llu unread=%llu",
		     (unsigned long long)st.expired, (unsigned long long)st.withdrawn,
		     (unsigned long long)st.delivered, (unsigned long long)st.unread);
	if (!atomic_load(&sh->loose) && st.armed != armed)
		fail("%u timers were armed, STATS tells of %llu", armed,
		     (unsigned long long)st.armed);
}

/* Read what there is, and what will be before long. */
static void drain(int fd, unsigned int inst, unsigned int lost)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct hwtw_event ev[64];
	ssize_t len;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (poll(&p, 1, lost ? 20000 : 0) > 0) {
		len = read(fd, ev, sizeof(ev));
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (len < (ssize_t)sizeof(*ev) || len % sizeof(*ev))
			fail("it is readable, but read() returns %zd", len);
		for (unsigned int i = 0; i < len / sizeof(*ev); i++)
			record(inst, &ev[i]);
		/* Were they some of those that are waited for? Count again. */
		if (lost)
			return;
		/* Periodic ones come back for ever. */
		if (atomic_load(&sh->nr) > LOG_MAX / 2)
			return;
	}
	if (lost)
		fail("%u records of instance %u do not come", lost, inst);
}

/* Timers of an instance that fire once, are overdue by now, and were not read. */
static unsigned int count_overdue(unsigned int inst, uint64_t now)
{
	unsigned int nr = atomic_load(&sh->nr), overdue = 0, i, j;

	for (i = 0; i < nr; i++) {
		const struct entry *e = &sh->log[i];
		bool open = e->what == ARMED && e->inst == inst && !e->interval &&
			    e->expires && e->expires < now;

		for (j = 0; j < nr && open; j++)
			open = sh->log[j].what == ARMED || sh->log[j].inst != inst ||
			       sh->log[j].id != e->id;
		overdue += open;
	}
	return overdue;
}

static void check_program(void)
{
	unsigned int i, j, nr, armed;
	int clockid[INSTANCES];

	/* One that was closed does not tell any more. */
	for (i = 0; i < INSTANCES; i++)
		clockid[i] = -1;
	for (i = 0; i < SLOTS; i++) {
		uint64_t slot = atomic_load(&sh->slot[i]);
		unsigned int inst = (slot >> 32) - 1;
		struct hwtw_info info;
		unsigned int lost;
		uint64_t now;

		if (!slot)
			continue;
		if (ioctl((int)slot, HWTW_IOC_INFO, &info))
			fail("INFO: %m");
		clockid[inst] = info.clockid;
		now = clock_ns(info.clockid);
		drain((int)slot, inst, 0);
		while (!atomic_load(&sh->loose) && atomic_load(&sh->nr) < LOG_MAX / 2 &&
		       (lost = count_overdue(inst, now)))
			drain((int)slot, inst, lost);
		for (j = 0, armed = 0; j < atomic_load(&sh->nr); j++)
			armed += sh->log[j].what == ARMED && sh->log[j].inst == inst;
		if (features & HWTW_FEATURE_STATS)
			check_stats((int)slot, armed);
	}
	nr = atomic_load(&sh->nr);
	qsort(sh->log, nr, sizeof(sh->log[0]), entry_cmp);
	for (i = 0; i < nr; i = j) {
		for (j = i + 1; j < nr; j++) {
			if (sh->log[j].inst != sh->log[i].inst || sh->log[j].id != sh->log[i].id)
				break;
		}
		check_timer(&sh->log[i], j - i, clockid[sh->log[i].inst]);
	}
}

/*
 * Programs
 */

static void *caller_main(void *arg)
{
	struct caller *c = arg;
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);

	if (fd >= 0 && !ioctl(fd, KCOV_INIT_TRACE, KCOV_ENTRIES)) {
		c->cover = mmap(NULL, KCOV_ENTRIES * sizeof(uint64_t), PROT_READ | PROT_WRITE,
				MAP_SHARED, fd, 0);
		if (c->cover == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
			c->cover = NULL;
	}
	for (;;) {
		unsigned int i;

		pthread_barrier_wait(&begin);
		if (c->cover)
			__atomic_store_n(&c->cover[0], 0, __ATOMIC_RELAXED);
		for (i = c->nr; i < program.nr; i += THREADS) {
			c->rnd.x = program.gene[i].seed;
			run_calls(&c->rnd, c->nr, program.gene[i].calls);
		}
		atomic_store(&c->busy, false);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

/* Returns the number of edges that no program reached before. */
static unsigned int count_new(void)
{
	unsigned int fresh = 0;

	for (int t = 0; t < THREADS; t++) {
		uint64_t *cover = caller[t].cover, n, i, last = 0;

		if (!cover)
			continue;
		n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
		for (i = 1; i <= n && i < KCOV_ENTRIES; i++) {
			uint64_t edge = (cover[i] ^ last) * 0x9e3779b97f4a7c15ULL >> 48;

			fresh += !atomic_exchange(&corpus->seen[edge], 1);
			last = cover[i] << 1;
		}
	}
	atomic_fetch_add(&corpus->edges, fresh);
	return fresh;
}

static void lock_corpus(void)
{
	while (atomic_flag_test_and_set(&corpus->lock))
		sched_yield();
}

static struct gene new_gene(struct rnd *r)
{
	return (struct gene) { .seed = (uint32_t)rnd_next(r), .calls = 1 + below(r, CALLS_MAX) };
}

static struct genome new_genome(struct rnd *r)
{
	struct genome g = { .nr = THREADS + below(r, GENES - THREADS + 1) };

	for (unsigned int i = 0; i < g.nr; i++)
		g.gene[i] = new_gene(r);
	return g;
}

/* One that reached something, changed. */
static struct genome choose_genome(struct rnd *r)
{
	struct genome g, other;
	unsigned int changes = 1 + below(r, 3);

	lock_corpus();
	if (!corpus->nr || one_in(r, 4)) {
		atomic_flag_clear(&corpus->lock);
		return new_genome(r);
	}
	g = corpus->genome[below(r, corpus->nr)];
	other = corpus->genome[below(r, corpus->nr)];
	atomic_flag_clear(&corpus->lock);
	while (changes--) {
		unsigned int at = below(r, g.nr);

		switch (below(r, 4)) {
		case 0:
			g.gene[at] = new_gene(r);
			break;
		case 1:
			g.gene[at].calls = 1 + below(r, CALLS_MAX);
			break;
		case 2:
			g.gene[at] = other.gene[below(r, other.nr)];
			break;
		default:
			if (g.nr < GENES)
				g.gene[g.nr++] = other.gene[below(r, other.nr)];
		}
	}
	return g;
}

static void keep_genome(const struct genome *g, struct rnd *r)
{
	lock_corpus();
	corpus->genome[corpus->nr < CORPUS ? corpus->nr++ : below(r, CORPUS)] = *g;
	atomic_flag_clear(&corpus->lock);
}

static void run_program(void)
{
	struct rnd r = { program.gene[0].seed };
	char text[256];

	genome_text(&program, text, sizeof(text));
	printf("# %u %s\n", worker, text);
	fflush(stdout);
	map_arena();
	memset(sh->log, 0, atomic_load(&sh->nr) * sizeof(sh->log[0]));
	memset(sh, 0, offsetof(struct shared, log));
	sh->next_fd = FD_FIRST;
	sh->user_data = 1 + ((uint64_t)worker << 32);
	sh->unstable = one_in(&r, 3);
	do_open(&r);
	do_open(&r);
	for (int t = 0; t < THREADS; t++)
		caller[t].busy = true;
	pthread_barrier_wait(&begin);
	/* Who sleeps is woken by a signal now and then. */
	while (caller[0].busy || caller[1].busy) {
		usleep(5000);
		for (int t = 0; t < THREADS; t++) {
			if (caller[t].busy)
				pthread_kill(caller[t].thread, SIGUSR1);
		}
	}
	pthread_barrier_wait(&end);
	check_program();
	for (int i = 0; i < SLOTS; i++) {
		if (sh->slot[i])
			close((int)sh->slot[i]);
	}
}

static void on_signal(int sig)
{
	(void)sig;
}

static void prepare_worker(void)
{
	struct sigaction wake = { .sa_handler = on_signal };
	struct rlimit files = { 4096, 4096 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_NOFILE, &files);
	sigaction(SIGUSR1, &wake, NULL);
	sigaction(SIGALRM, &wake, NULL);
	signal(SIGIO, SIG_IGN);
	mem_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	arena = mmap(NULL, (THREADS * PAGES + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem_fd < 0 || sh == MAP_FAILED || arena == MAP_FAILED)
		fail("no memory: %m");
	pthread_barrier_init(&begin, NULL, THREADS + 1);
	pthread_barrier_init(&end, NULL, THREADS + 1);
	for (unsigned int t = 0; t < THREADS; t++) {
		caller[t].nr = t;
		if (pthread_create(&caller[t].thread, NULL, caller_main, &caller[t]))
			fail("no thread");
	}
}

static void worker_main(uint64_t seed, uint64_t programs, uint64_t seconds)
{
	struct rnd r = { seed + worker * 0x1000003ULL };
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + seconds * SEC, n;
	struct genome again = program;

	prepare_worker();
	for (n = 0; n < programs; n++) {
		if (seconds && clock_ns(CLOCK_MONOTONIC) >= until)
			break;
		program = again.nr ? again : choose_genome(&r);
		run_program();
		if (count_new())
			keep_genome(&program, &r);
	}
	printf("# worker %u: %llu programs\n", worker, (unsigned long long)n);
	fflush(stdout);
	_exit(0);
}

static void parse_genome(const char *text)
{
	while (*text && program.nr < GENES) {
		char *next;
		struct gene *g = &program.gene[program.nr++];

		g->seed = strtoul(text, &next, 16);
		g->calls = *next == ':' ? strtoul(next + 1, &next, 10) : 0;
		if (!g->calls || (*next && *next != ',')) {
			fprintf(stderr, "calls: --replay wants SEED:CALLS,..., as it was printed\n");
			exit(2);
		}
		text = *next ? next + 1 : next;
	}
}

static const char usage[] =
	"calls [options]: random calls to /dev/hwtw\n"
	"  --seed N        what the programs are made from; default: 1\n"
	"  --programs N    so many for each worker; default: 200\n"
	"  --seconds N     stop after so long; default: never\n"
	"  --workers N     processes; default: 2\n"
	"  --replay TEXT   run this program, as it was printed\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "programs", required_argument, NULL, 'p' },
		{ "seconds", required_argument, NULL, 't' },
		{ "workers", required_argument, NULL, 'w' },
		{ "replay", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	uint64_t seed = 1, programs = 0, seconds = 0;
	unsigned int workers = 2;
	struct hwtw_info info;
	int opt, fd, status, failed = 0;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (opt) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'p':
			programs = strtoull(optarg, NULL, 0);
			break;
		case 't':
			seconds = strtoull(optarg, NULL, 0);
			break;
		case 'w':
			workers = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			parse_genome(optarg);
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!programs)
		programs = seconds ? UINT64_MAX : 200;
	fd = open("/dev/hwtw", O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, HWTW_IOC_INFO, &info)) {
		fprintf(stderr, "calls: /dev/hwtw: %m; is the module loaded?\n");
		return 2;
	}
	close(fd);
	features = info.features;
	corpus = mmap(NULL, sizeof(*corpus), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (corpus == MAP_FAILED) {
		fprintf(stderr, "calls: no memory: %m\n");
		return 2;
	}
	for (worker = 0; worker < workers; worker++) {
		pid_t pid = fork();

		if (pid < 0) {
			fprintf(stderr, "calls: fork: %m\n");
			return 2;
		}
		if (!pid)
			worker_main(seed, programs, seconds);
	}
	while (wait(&status) > 0)
		failed |= !WIFEXITED(status) || WEXITSTATUS(status);
	if (corpus->edges)
		printf("# %u edges, %u programs that reached new ones\n", corpus->edges,
		       corpus->nr);
	else
		printf("# without KCOV\n");
	printf("%s 1 random calls\n1..1\n", failed ? "not ok" : "ok");
	return failed;
}
