// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order demo: a shop with a million orders that wait for their payment.
 *
 * Every order gets a deadline, all behind one descriptor of /dev/hwtw. Most are
 * paid in time and cancelled, some ask for more time and are re-armed, the rest
 * expire and are read. What becomes of each order is noted in one byte, by the
 * thread that did it and only after the kernel said so; at the end every byte
 * must tell of exactly one end.
 *
 * The whole run is planned before it starts, from a seed: threads have nothing
 * to think about while the clock runs, and the same seed gives the same orders.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/hwtw.h>

#define DEVICE		"/dev/hwtw"
#define BATCH		256
#define MAX_THREADS	64
#define NR_READERS	2
#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL
/* The longest a thread sleeps between two batches while orders arrive. */
#define SLOT_MAX_NS	(5 * NSEC_PER_MSEC)

enum { EXIT_OK, EXIT_BROKEN, EXIT_USAGE, EXIT_CANNOT };

/*
 * What is known of an order. One thread arms, re-arms and cancels it, any
 * reader may deliver it.
 */
#define ORDER_ARMED		0x01
#define ORDER_CANCELLED		0x02
#define ORDER_REARMED		0x04
#define ORDER_DELIVERED		0x08	/* at its first deadline */
#define ORDER_DELIVERED_2	0x10	/* at the deadline it was re-armed to */

/* An entry of the calendar: an order, and whether it pays or asks for time. */
#define ENTRY_REARM		(1U << 31)

struct cost {
	uint64_t ops, ns;
};

struct arming_thread {
	pthread_t thread;
	unsigned int nr;
	/* Read by the progress line while the thread runs. */
	_Atomic uint64_t armed, cancelled, rearmed;
	uint64_t late_payments;		/* CANCEL or REARM: ENOENT */
	uint64_t withdrawn;		/* CANCEL or REARM: expired, not read */
	struct cost arm, rearm, cancel;
	struct hwtw_op ops[BATCH];
	uint32_t orders[BATCH];
} __attribute__((aligned(64)));

struct reading_thread {
	pthread_t thread;
	int epoll_fd;
	_Atomic uint64_t delivered;
	uint64_t early, over_one_tick, duplicates, wrong;
	struct cost read;
	struct hwtw_event events[BATCH];
} __attribute__((aligned(64)));

static struct {
	/* Options. */
	uint32_t orders;
	unsigned int threads;
	uint64_t span_ns;		/* from the first order to the last deadline */
	uint64_t tick_wish_ns;
	uint64_t seed;
	bool json, progress, ascii, scatter;

	int fd, stop_fd;
	struct hwtw_info info;

	/* The plan. A slot is one wake-up of one arming thread. */
	uint64_t slot_ns;
	uint32_t slots, arrival_slots;
	uint64_t window_min_ns, window_span_ns, extension_ns;
	uint32_t *calendar_start;	/* by slot, into calendar */
	uint32_t *calendar;

	/* By order. */
	_Atomic uint8_t *state;
	_Atomic uint64_t *id;
	uint64_t *deadline;		/* the first one, from the start */
	uint32_t *late_ns;		/* of the record, if it was delivered */

	pthread_barrier_t start;
	uint64_t start_ns;		/* on a tick boundary */
	atomic_uint arming;
	struct arming_thread *arm;
	struct reading_thread read[NR_READERS];

	/* Memory: the sample with the most timers pending. */
	uint64_t free_before, free_at_peak, peak;
} demo;

/* All threads may call it at once: the first one is heard. */
static void __attribute__((noreturn, format(printf, 1, 2)))
cannot(const char *fmt, ...)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	va_list ap;

	while (atomic_flag_test_and_set(&said))
		pause();
	fflush(stdout);
	fputs("demo: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	_exit(EXIT_CANNOT);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

/* Memory that is there from the start: it must not blur what the kernel uses. */
static void *alloc(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		cannot("no memory for the books of %" PRIu32 " orders: try fewer, --orders N",
		       demo.orders);
	return p;
}

/* Pages that wait on the lists of the CPUs ("count:") are free as well. */
static uint64_t mem_free(void)
{
	unsigned long long pages, sum = 0;
	char line[256];
	FILE *f = fopen("/proc/zoneinfo", "r");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " nr_free_pages %llu", &pages) == 1 ||
		    sscanf(line, " count: %llu", &pages) == 1)
			sum += pages;
	fclose(f);
	return sum * sysconf(_SC_PAGESIZE);
}

/* Text */

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
	va_list ap;

	if (demo.json)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	fflush(stdout);
}

/* A bar of @width characters, filled to @part of @whole. */
static const char *bar(uint64_t part, uint64_t whole, int width)
{
	static const char * const eighths[] = {
		"", "▏", "▎", "▍", "▌", "▋", "▊", "▉",
	};
	static char text[256];
	uint64_t fill = whole ? (part * width * 8 + whole / 2) / whole : 0;
	char *p = text;
	int used;

	if (part && !fill)
		fill = 1;
	if (demo.ascii)
		fill = (fill + 7) / 8 * 8;
	for (used = 0; used < (int)(fill / 8); used++)
		p = stpcpy(p, demo.ascii ? "#" : "█");
	if (fill % 8) {
		p = stpcpy(p, eighths[fill % 8]);
		used++;
	}
	for (; used < width; used++)
		p = stpcpy(p, " ");
	return text;
}

static const char *duration(uint64_t ns)
{
	static char text[4][32];
	static unsigned int turn;
	char *p = text[turn++ % 4];

	snprintf(p, sizeof(text[0]), "%.3g s", ns / 1e9);
	return p;
}

/* The plan */

/* splitmix64: a stream per order, so that the plan can be made in any order. */
static uint64_t draw(uint64_t *stream)
{
	uint64_t z = *stream += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint64_t draw_below(uint64_t *stream, uint64_t limit)
{
	return ((unsigned __int128)draw(stream) * limit) >> 64;
}

static uint64_t tick_floor(uint64_t ns)
{
	return ns & ~(uint64_t)(demo.info.tick_ns - 1);
}

static uint64_t tick_ceil(uint64_t ns)
{
	return tick_floor(ns + demo.info.tick_ns - 1);
}

static uint32_t slot_of_order(uint32_t order)
{
	return (uint64_t)order * demo.arrival_slots / demo.orders;
}

static uint32_t first_order_of_slot(uint32_t slot)
{
	if (slot >= demo.arrival_slots)
		return demo.orders;
	return ((uint64_t)slot * demo.orders + demo.arrival_slots - 1) /
		demo.arrival_slots;
}

/* The slot of the thread of @slot that comes @ns after it, at least the next. */
static uint32_t slot_after(uint32_t slot, uint64_t ns)
{
	uint64_t turns = ns / (demo.slot_ns * demo.threads);

	return slot + demo.threads * (turns ? turns : 1);
}

struct plan {
	uint64_t deadline_ns;		/* from the start */
	uint32_t rearm_slot, pay_slot;	/* 0: never */
};

/*
 * Of 1000 orders 890 are paid in time, 50 ask for more time, of which 30 are
 * then paid, and 50 are never paid. 10 are paid, and 5 of the 50 ask for time,
 * at the last moment: the deadline is put on the tick right before or right
 * after that slot, so that the call and the expiry race.
 */
static struct plan plan_order(uint32_t order)
{
	uint64_t stream = demo.seed + order * 0xd1342543de82ef95ULL;
	unsigned int kind = draw_below(&stream, 1000);
	uint32_t slot = slot_of_order(order);
	uint64_t arrival = slot * demo.slot_ns;
	uint64_t window = demo.window_min_ns +
			  draw_below(&stream, demo.window_span_ns);
	uint32_t race_slot = 0;
	struct plan p = { 0 };

	p.deadline_ns = arrival + window;
	if (kind < 890) {
		p.pay_slot = slot_after(slot, window / 64 * 25 +
					draw_below(&stream, window / 64 * 38));
	} else if (kind < 900) {
		race_slot = slot_after(slot, window);
		p.pay_slot = race_slot;
	} else if (kind < 950) {
		if (kind < 905)
			race_slot = slot_after(slot, window);
		p.rearm_slot = race_slot ? race_slot :
			slot_after(slot, window / 2 +
				   draw_below(&stream, window / 64 * 30));
		if (kind < 903 || kind >= 923)
			p.pay_slot = slot_after(p.rearm_slot, window / 64 +
				draw_below(&stream, demo.extension_ns / 2));
	}
	if (race_slot) {
		p.deadline_ns = race_slot * demo.slot_ns;
		if (draw(&stream) & 1)
			p.deadline_ns -= demo.info.tick_ns;
	}
	if (demo.scatter)
		p.deadline_ns += draw_below(&stream, demo.info.tick_ns);
	else
		p.deadline_ns = tick_ceil(p.deadline_ns);
	return p;
}

/*
 * Orders arrive in the first quarter of the span and have 30 to 60 % of it to be
 * paid, so that nearly all are open at once; more time is another 10 %.
 */
static void divide_span(void)
{
	uint64_t arrival_ns = demo.span_ns / 4;
	uint64_t slots = (demo.orders + BATCH - 1) / BATCH;
	uint64_t slot_max_ns = SLOT_MAX_NS / demo.threads;

	if (slots < arrival_ns / slot_max_ns)
		slots = arrival_ns / slot_max_ns;
	demo.arrival_slots = slots;
	demo.slot_ns = arrival_ns / slots;
	demo.slots = demo.span_ns / demo.slot_ns + 2 * demo.threads;
	demo.window_min_ns = demo.span_ns / 10 * 3;
	demo.window_span_ns = demo.span_ns / 10 * 3;
	demo.extension_ns = demo.span_ns / 10;
	if (!demo.scatter)
		demo.extension_ns = tick_floor(demo.extension_ns);
}

/* The plan, sorted by slot: who pays and who asks for time when. */
static void make_plan(void)
{
	uint32_t *fill;

	demo.state = alloc(demo.orders * sizeof(*demo.state));
	demo.id = alloc(demo.orders * sizeof(*demo.id));
	demo.deadline = alloc(demo.orders * sizeof(*demo.deadline));
	demo.late_ns = alloc(demo.orders * sizeof(*demo.late_ns));
	demo.calendar_start = alloc((demo.slots + 2) * sizeof(uint32_t));

	/* Count one slot too high, so that the sums are where a slot starts. */
	fill = demo.calendar_start + 1;
	for (uint32_t i = 0; i < demo.orders; i++) {
		struct plan p = plan_order(i);

		demo.deadline[i] = p.deadline_ns;
		if (p.rearm_slot)
			fill[p.rearm_slot + 1]++;
		if (p.pay_slot)
			fill[p.pay_slot + 1]++;
	}
	for (uint32_t s = 1; s <= demo.slots; s++)
		fill[s] += fill[s - 1];
	demo.calendar = alloc((fill[demo.slots] + 1) * sizeof(uint32_t));
	for (uint32_t i = 0; i < demo.orders; i++) {
		struct plan p = plan_order(i);

		if (p.rearm_slot)
			demo.calendar[fill[p.rearm_slot]++] = i | ENTRY_REARM;
		if (p.pay_slot)
			demo.calendar[fill[p.pay_slot]++] = i;
	}
}

/* Arming threads: orders come, are paid, ask for time */

static uint64_t first_deadline(uint32_t order)
{
	return demo.start_ns + demo.deadline[order];
}

static unsigned int set_state(uint32_t order, unsigned int bit)
{
	return atomic_fetch_or(&demo.state[order], bit);
}

/* Adds an operation to the batch of @t, and returns it for the rest. */
static struct hwtw_timer *add_op(struct arming_thread *t, unsigned int *nr,
				 uint32_t opcode, uint32_t order)
{
	struct hwtw_op *op = &t->ops[*nr];

	memset(op, 0, sizeof(*op));
	op->opcode = opcode;
	t->orders[(*nr)++] = order;
	if (opcode == HWTW_OP_ARM)
		op->timer.user_data = order;
	else
		op->timer.id = demo.id[order];
	return &op->timer;
}

static void submit(struct arming_thread *t, unsigned int nr, struct cost *cost)
{
	struct hwtw_submit s = { .ops = (uintptr_t)t->ops, .nr = nr };
	uint64_t before = now_ns();

	if (ioctl(demo.fd, HWTW_IOC_SUBMIT, &s))
		cannot("SUBMIT of %u operations: %s", nr, strerror(errno));
	cost->ns += now_ns() - before;
	cost->ops += nr;
	if (s.done != nr)
		cannot("SUBMIT did %u of %u operations", s.done, nr);
}

static void arm_batch(struct arming_thread *t, unsigned int nr)
{
	submit(t, nr, &t->arm);
	for (unsigned int i = 0; i < nr; i++) {
		int result = t->ops[i].result;

		if (result == -ENOSPC)
			cannot("order %u: the limit on timers is reached: load the module with a higher max_timers, or try --orders N",
			       t->orders[i]);
		if (result)
			cannot("order %u: ARM: %s", t->orders[i],
			       strerror(-result));
		demo.id[t->orders[i]] = t->ops[i].timer.id;
		set_state(t->orders[i], ORDER_ARMED);
	}
	t->armed += nr;
}

/* One batch of CANCEL or of REARM, after which each order is in state @bit. */
static void settle_batch(struct arming_thread *t, unsigned int nr,
			 unsigned int bit)
{
	bool cancel = bit == ORDER_CANCELLED;
	unsigned int settled = 0;

	if (!nr)
		return;
	submit(t, nr, cancel ? &t->cancel : &t->rearm);
	for (unsigned int i = 0; i < nr; i++) {
		int result = t->ops[i].result;

		/* It expired first. Then a reader has it or gets it. */
		if (result == -ENOENT) {
			t->late_payments++;
			continue;
		}
		if (result)
			cannot("order %u: %s: %s", t->orders[i],
			       cancel ? "CANCEL" : "REARM", strerror(-result));
		if (t->ops[i].timer.state == HWTW_EXPIRED)
			t->withdrawn++;
		set_state(t->orders[i], bit);
		settled++;
	}
	if (cancel)
		t->cancelled += settled;
	else
		t->rearmed += settled;
}

static void run_slot(struct arming_thread *t, uint32_t slot)
{
	const uint32_t *entry = demo.calendar + demo.calendar_start[slot];
	const uint32_t *end = demo.calendar + demo.calendar_start[slot + 1];
	uint32_t order, last;
	unsigned int nr = 0;

	for (const uint32_t *e = entry; e < end; e++) {
		if (*e & ENTRY_REARM)
			continue;
		add_op(t, &nr, HWTW_OP_CANCEL, *e);
		if (nr == BATCH) {
			settle_batch(t, nr, ORDER_CANCELLED);
			nr = 0;
		}
	}
	settle_batch(t, nr, ORDER_CANCELLED);

	nr = 0;
	for (const uint32_t *e = entry; e < end; e++) {
		struct hwtw_timer *timer;

		if (!(*e & ENTRY_REARM))
			continue;
		order = *e & ~ENTRY_REARM;
		timer = add_op(t, &nr, HWTW_OP_REARM, order);
		timer->time_ns = first_deadline(order) + demo.extension_ns;
		timer->flags = HWTW_TIMER_ABS;
		if (nr == BATCH) {
			settle_batch(t, nr, ORDER_REARMED);
			nr = 0;
		}
	}
	settle_batch(t, nr, ORDER_REARMED);

	last = first_order_of_slot(slot + 1);
	nr = 0;
	for (order = first_order_of_slot(slot); order < last; order++) {
		struct hwtw_timer *timer = add_op(t, &nr, HWTW_OP_ARM, order);

		timer->time_ns = first_deadline(order);
		timer->flags = HWTW_TIMER_ABS;
	}
	if (nr)
		arm_batch(t, nr);
}

static void *arming_main(void *arg)
{
	struct arming_thread *t = arg;

	prctl(PR_SET_TIMERSLACK, 1);
	pthread_barrier_wait(&demo.start);	/* all threads are there */
	pthread_barrier_wait(&demo.start);	/* the start is known */
	for (uint32_t slot = t->nr; slot < demo.slots; slot += demo.threads) {
		if (slot >= demo.arrival_slots &&
		    demo.calendar_start[slot] == demo.calendar_start[slot + 1])
			continue;
		sleep_until(demo.start_ns + slot * demo.slot_ns);
		run_slot(t, slot);
	}
	demo.arming--;
	return NULL;
}

/* Reading threads: orders expire */

static void deliver(struct reading_thread *t, const struct hwtw_event *e,
		    uint64_t now)
{
	uint64_t late, id, first;
	unsigned int bit;
	uint32_t order;

	order = e->user_data;
	if (e->user_data >= demo.orders || e->flags || e->overruns) {
		t->wrong++;
		return;
	}
	first = first_deadline(order);
	id = demo.id[order];
	bit = e->expires_ns == first ? ORDER_DELIVERED : ORDER_DELIVERED_2;
	/* The id is 0 if the arming thread did not get to note it yet. */
	if ((id && id != e->id) ||
	    (bit == ORDER_DELIVERED_2 &&
	     e->expires_ns != first + demo.extension_ns))
		t->wrong++;
	if (set_state(order, bit) & (ORDER_DELIVERED | ORDER_DELIVERED_2)) {
		t->duplicates++;
		return;
	}
	t->delivered++;
	if (now < e->expires_ns) {
		t->early++;
		return;
	}
	late = now - e->expires_ns;
	if (late > demo.info.tick_ns)
		t->over_one_tick++;
	demo.late_ns[order] = late < UINT32_MAX ? late : UINT32_MAX;
}

/* Reads all there is. The time counted is that of the reader, after read(2). */
static void drain(struct reading_thread *t)
{
	uint64_t before, now;
	ssize_t len;
	int nr;

	for (;;) {
		before = now_ns();
		len = read(demo.fd, t->events, sizeof(t->events));
		now = now_ns();
		if (len < 0 && errno == EAGAIN)
			return;
		if (len < 0)
			cannot("read: %s", strerror(errno));
		nr = len / sizeof(t->events[0]);
		t->read.ns += now - before;
		t->read.ops += nr;
		for (int i = 0; i < nr; i++)
			deliver(t, &t->events[i], now);
	}
}

/*
 * Each reader has an epoll set of its own. EPOLLEXCLUSIVE wakes one of them
 * for what expired and not all; level-triggered, so that what one of them did
 * not take wakes the next.
 */
static void open_epoll(struct reading_thread *t)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLEXCLUSIVE };

	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (t->epoll_fd < 0)
		cannot("epoll_create1: %s", strerror(errno));
	ev.data.fd = demo.fd;
	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, demo.fd, &ev))
		cannot("epoll_ctl: %s", strerror(errno));
	ev.events = EPOLLIN;
	ev.data.fd = demo.stop_fd;
	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, demo.stop_fd, &ev))
		cannot("epoll_ctl: %s", strerror(errno));
}

static void *reading_main(void *arg)
{
	struct reading_thread *t = arg;
	struct epoll_event ev[2];
	int nr;

	pthread_barrier_wait(&demo.start);
	pthread_barrier_wait(&demo.start);
	for (;;) {
		nr = epoll_wait(t->epoll_fd, ev, 2, -1);
		if (nr < 0 && errno != EINTR)
			cannot("epoll_wait: %s", strerror(errno));
		for (int i = 0; i < nr; i++) {
			if (ev[i].data.fd == demo.stop_fd)
				return NULL;
			drain(t);
		}
	}
}

/* The show */

struct count {
	uint64_t armed, rearmed, cancelled, delivered, pending;
};

static struct count count_now(void)
{
	struct count c = { 0 };

	/* What ends an order is read first: else pending could seem negative. */
	for (int i = 0; i < NR_READERS; i++)
		c.delivered += demo.read[i].delivered;
	for (unsigned int i = 0; i < demo.threads; i++) {
		c.cancelled += demo.arm[i].cancelled;
		c.rearmed += demo.arm[i].rearmed;
		c.armed += demo.arm[i].armed;
	}
	c.pending = c.armed - c.cancelled - c.delivered;
	return c;
}

static void show_progress(void)
{
	struct count c = count_now();
	uint64_t now = now_ns(), free_now = mem_free();
	uint64_t elapsed = now > demo.start_ns ? now - demo.start_ns : 0;

	if (c.pending > demo.peak) {
		demo.peak = c.pending;
		demo.free_at_peak = free_now;
	}
	if (!demo.progress)
		return;
	if (elapsed > demo.span_ns)
		elapsed = demo.span_ns;
	say("\r  %5.1f s [%s] armed %-8" PRIu64 "paid %-8" PRIu64
	    "expired %-7" PRIu64 "open %-7" PRIu64,
	    elapsed / 1e9, bar(elapsed, demo.span_ns, 14), c.armed,
	    c.cancelled, c.delivered, c.pending);
}

static void start_threads(void)
{
	demo.stop_fd = eventfd(0, EFD_CLOEXEC);
	if (demo.stop_fd < 0)
		cannot("eventfd: %s", strerror(errno));
	demo.arm = alloc(demo.threads * sizeof(*demo.arm));
	memset(demo.read, 0, sizeof(demo.read));
	pthread_barrier_init(&demo.start, NULL,
			     demo.threads + NR_READERS + 1);
	demo.arming = demo.threads;
	for (int i = 0; i < NR_READERS; i++) {
		open_epoll(&demo.read[i]);
		if (pthread_create(&demo.read[i].thread, NULL, reading_main,
				   &demo.read[i]))
			cannot("cannot start a reading thread");
	}
	for (unsigned int i = 0; i < demo.threads; i++) {
		demo.arm[i].nr = i;
		if (pthread_create(&demo.arm[i].thread, NULL, arming_main,
				   &demo.arm[i]))
			cannot("cannot start an arming thread: try fewer, --threads N");
	}
}

static void run(void)
{
	uint64_t next, give_up;
	uint64_t one = 1;

	start_threads();
	pthread_barrier_wait(&demo.start);
	demo.free_before = mem_free();
	demo.start_ns = tick_ceil(now_ns() + 10 * NSEC_PER_MSEC);
	pthread_barrier_wait(&demo.start);

	/* A tick, and time for the readers, after the last deadline. */
	give_up = demo.start_ns + demo.span_ns + demo.info.tick_ns +
		  NSEC_PER_SEC;
	next = demo.start_ns;
	for (;;) {
		struct count c = count_now();

		if (!demo.arming && (!c.pending || now_ns() > give_up))
			break;
		show_progress();
		next += NSEC_PER_SEC / 2;
		sleep_until(next);
	}
	for (unsigned int i = 0; i < demo.threads; i++)
		pthread_join(demo.arm[i].thread, NULL);
	if (write(demo.stop_fd, &one, sizeof(one)) != sizeof(one))
		cannot("eventfd: %s", strerror(errno));
	for (int i = 0; i < NR_READERS; i++)
		pthread_join(demo.read[i].thread, NULL);
	/* Nothing may be left, and a record too many would be a duplicate. */
	drain(&demo.read[0]);
	show_progress();
	if (demo.progress)
		say("\n");
}

/* The books */

struct result {
	struct count count;
	uint64_t lost, early, over_one_tick, late_payments, withdrawn;
	uint64_t duplicates, after_cancel, after_rearm, wrong;
	struct cost arm, rearm, cancel, read;
	uint32_t *late_ns;		/* sorted */
	uint32_t nr_late;
};

static void add_cost(struct cost *sum, const struct cost *c)
{
	sum->ops += c->ops;
	sum->ns += c->ns;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * What became of every order, from its byte alone. The counters of the threads
 * only serve the progress line.
 */
static void audit_order(struct result *r, uint32_t order)
{
	unsigned int state = demo.state[order];
	bool delivered = state & (ORDER_DELIVERED | ORDER_DELIVERED_2);

	r->count.armed += !!(state & ORDER_ARMED);
	r->count.rearmed += !!(state & ORDER_REARMED);
	r->count.cancelled += !!(state & ORDER_CANCELLED);
	r->count.delivered += delivered;
	if (!delivered && !(state & ORDER_CANCELLED))
		r->lost++;
	if (delivered && (state & ORDER_CANCELLED))
		r->after_cancel++;
	if ((state & ORDER_DELIVERED) && (state & ORDER_REARMED))
		r->after_rearm++;
	if ((state & ORDER_DELIVERED_2) && !(state & ORDER_REARMED))
		r->wrong++;
	if (delivered)
		r->late_ns[r->nr_late++] = demo.late_ns[order];
}

static struct result audit(void)
{
	struct result r = { 0 };

	for (unsigned int i = 0; i < demo.threads; i++) {
		const struct arming_thread *t = &demo.arm[i];

		r.late_payments += t->late_payments;
		r.withdrawn += t->withdrawn;
		add_cost(&r.arm, &t->arm);
		add_cost(&r.rearm, &t->rearm);
		add_cost(&r.cancel, &t->cancel);
	}
	for (int i = 0; i < NR_READERS; i++) {
		const struct reading_thread *t = &demo.read[i];

		r.early += t->early;
		r.over_one_tick += t->over_one_tick;
		r.duplicates += t->duplicates;
		r.wrong += t->wrong;
		add_cost(&r.read, &t->read);
	}
	r.late_ns = alloc(demo.orders * sizeof(*r.late_ns));
	for (uint32_t i = 0; i < demo.orders; i++)
		audit_order(&r, i);
	qsort(r.late_ns, r.nr_late, sizeof(*r.late_ns), compare_u32);
	return r;
}

/* The least lateness that @share of the records do not exceed, in us. */
static double percentile(const struct result *r, double share)
{
	uint64_t rank = r->nr_late * share;

	if (!r->nr_late)
		return 0;
	if (rank >= r->nr_late)
		rank = r->nr_late - 1;
	return r->late_ns[rank] / 1e3;
}

static uint32_t count_below(const struct result *r, uint64_t ns)
{
	uint32_t low = 0, high = r->nr_late;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (r->late_ns[mid] < ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Powers of two from a 128th of the tick to the tick, then on as far as need be. */
static void show_histogram(const struct result *r)
{
	uint64_t tick = demo.info.tick_ns, from = 0, to = tick / 128;
	uint64_t limit[40], count[40], most = 0;
	int nr = 0, one_tick = 0, first = 0;

	while (nr < 40 && (to <= tick || from <= r->late_ns[r->nr_late - 1])) {
		/* A record just one tick late is not over one tick. */
		uint64_t end = to == tick ? to + 1 : to;

		count[nr] = count_below(r, end) -
			    (nr ? count_below(r, from == tick ? from + 1 : from) : 0);
		limit[nr] = to;
		if (count[nr] > most)
			most = count[nr];
		if (to == tick)
			one_tick = nr;
		nr++;
		from = to;
		to *= 2;
	}
	while (first < one_tick && !count[first])
		first++;
	say("\n  How late: from the deadline until a reader has the record\n\n");
	for (int i = first; i < nr; i++) {
		say("  %9.1f - %-9.1f us  %s%9" PRIu64 "\n",
		    i ? limit[i - 1] / 1e3 : 0, limit[i] / 1e3,
		    bar(count[i], most, 36), count[i]);
		if (i == one_tick)
			say("  ---------- one tick ----------\n");
	}
	say("\n  half within %.1f us, 99 %% %.1f us, 99.9 %% %.1f us, the last %.1f us\n",
	    percentile(r, .5), percentile(r, .99), percentile(r, .999),
	    percentile(r, 1));
}

static double ns_per_op(const struct cost *c)
{
	return c->ops ? (double)c->ns / c->ops : 0;
}

static void show_cost(const char *what, const struct cost *c)
{
	double ns = ns_per_op(c);

	say("  %-8s %9" PRIu64 " %9.0f ns %12.0f /s\n", what, c->ops, ns,
	    ns ? 1e9 / ns : 0);
}

static double bytes_per_timer(void)
{
	if (!demo.peak || demo.free_at_peak > demo.free_before)
		return 0;
	return (double)(demo.free_before - demo.free_at_peak) / demo.peak;
}

static void show_result(const struct result *r)
{
	if (r->nr_late)
		show_histogram(r);
	say("\n  What a call took, per order in it, and how many that is per second and thread\n\n");
	show_cost("arm", &r->arm);
	show_cost("re-arm", &r->rearm);
	show_cost("cancel", &r->cancel);
	show_cost("read", &r->read);
	say("\n  Memory: %.1f bytes a timer (free memory fell by %.1f MiB while %"
	    PRIu64 " were open)\n", bytes_per_timer(),
	    bytes_per_timer() * demo.peak / (1 << 20), demo.peak);
	say("  Races: %" PRIu64 " calls came after the expiry was read, %" PRIu64
	    " just before and withdrew it\n\n", r->late_payments, r->withdrawn);
}

static void show_json(const struct result *r)
{
	printf("{\"armed\":%" PRIu64 ",\"cancelled\":%" PRIu64
	       ",\"rearmed\":%" PRIu64 ",\"expired\":%" PRIu64
	       ",\"delivered\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"early\":%" PRIu64 ",\"over_one_tick\":%" PRIu64,
	       r->count.armed, r->count.cancelled, r->count.rearmed,
	       r->count.armed - r->count.cancelled, r->count.delivered,
	       r->lost, r->early, r->over_one_tick);
	printf(",\"duplicates\":%" PRIu64 ",\"after_cancel\":%" PRIu64
	       ",\"after_rearm\":%" PRIu64 ",\"wrong\":%" PRIu64
	       ",\"late_payments\":%" PRIu64 ",\"withdrawn\":%" PRIu64,
	       r->duplicates, r->after_cancel, r->after_rearm, r->wrong,
	       r->late_payments, r->withdrawn);
	printf(",\"late_us\":{\"p50\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"max\":%.3f}",
	       percentile(r, .5), percentile(r, .99), percentile(r, .999),
	       percentile(r, 1));
	printf(",\"ns_per_op\":{\"arm\":%.1f,\"rearm\":%.1f,\"cancel\":%.1f,\"read\":%.1f}",
	       ns_per_op(&r->arm), ns_per_op(&r->rearm),
	       ns_per_op(&r->cancel), ns_per_op(&r->read));
	printf(",\"bytes_per_timer\":%.1f,\"peak\":%" PRIu64
	       ",\"tick_ns\":%llu,\"threads\":%u,\"seed\":%" PRIu64 "}\n",
	       bytes_per_timer(), demo.peak,
	       (unsigned long long)demo.info.tick_ns, demo.threads, demo.seed);
}

/* One line for every promise that was broken. */
static int judge(const struct result *r)
{
	static const char * const promise[] = {
		"orders neither cancelled nor delivered",
		"orders delivered before the deadline",
		"orders delivered twice",
		"orders delivered although CANCEL had said it was gone",
		"orders delivered at the old deadline although REARM had moved it",
		"records of no such order, id or deadline",
	};
	const uint64_t broken[] = {
		r->lost, r->early, r->duplicates, r->after_cancel,
		r->after_rearm, r->wrong,
	};
	int status = EXIT_OK;

	for (unsigned int i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		if (!broken[i])
			continue;
		fprintf(stderr, "demo: broken promise: %s: %" PRIu64 "\n",
			promise[i], broken[i]);
		status = EXIT_BROKEN;
	}
	return status;
}

static int finish(void)
{
	struct result r = audit();
	int status;

	if (demo.json)
		show_json(&r);
	else
		show_result(&r);
	fflush(stdout);
	status = judge(&r);
	say("demo: armed=%" PRIu64 " cancelled=%" PRIu64 " rearmed=%" PRIu64
	    " expired=%" PRIu64 " delivered=%" PRIu64 " lost=%" PRIu64
	    " early=%" PRIu64 " over_one_tick=%" PRIu64 " max_late_us=%.0f\n",
	    r.count.armed, r.count.cancelled, r.count.rearmed,
	    r.count.armed - r.count.cancelled, r.count.delivered, r.lost,
	    r.early, r.over_one_tick, percentile(&r, 1));
	return status;
}

/* The beginning */

static void open_device(void)
{
	struct hwtw_setup setup = {
		.clockid = CLOCK_MONOTONIC,
		.tick_ns = demo.tick_wish_ns,
	};

	demo.fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (demo.fd < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
		cannot("there is no " DEVICE ": load the module: insmod hwtw.ko");
	if (demo.fd < 0 && (errno == EACCES || errno == EPERM))
		cannot("you may not open " DEVICE " for reading and writing: become root, or join the group that ls -l " DEVICE " shows");
	if (demo.fd < 0)
		cannot("%s: %s", DEVICE, strerror(errno));
	if (ioctl(demo.fd, HWTW_IOC_SETUP, &setup))
		cannot("SETUP with a tick of %" PRIu64 " us: %s",
		       demo.tick_wish_ns / 1000, strerror(errno));
	if (ioctl(demo.fd, HWTW_IOC_INFO, &demo.info))
		cannot("INFO: %s", strerror(errno));
}

static void show_title(void)
{
	struct utsname u = { 0 };

	uname(&u);
	say("hwtw demo: %" PRIu32 " orders wait for their payment behind one descriptor\n\n",
	    demo.orders);
	say("  Each has %s to %s. Of 100 orders 90 are paid in time and cancelled,\n"
	    "  5 ask for %s more and are re-armed, of which 3 are then paid, and 5 are\n"
	    "  forgotten and expire. One in 100 is paid just when it expires. In the end\n"
	    "  each order must be gone exactly once.\n\n",
	    duration(demo.window_min_ns),
	    duration(demo.window_min_ns + demo.window_span_ns),
	    duration(demo.extension_ns));
	say("  %u threads arm, re-arm and cancel in batches of %d, %d threads read.\n"
	    "  One tick is %.1f us; %s.\n"
	    "  Linux %s, %ld CPUs.\n\n",
	    demo.threads, BATCH, NR_READERS, demo.info.tick_ns / 1e3,
	    demo.scatter ? "deadlines lie anywhere in it" :
	    "deadlines lie on whole ticks",
	    u.release, sysconf(_SC_NPROCESSORS_ONLN));
}

static void usage(FILE *f)
{
	fputs(
"usage: demo [options]\n"
"\n"
"A shop with a million orders that wait for their payment, each with a deadline,\n"
"all behind one descriptor of " DEVICE ". Most are paid in time (their timer is\n"
"cancelled), some ask for more time (re-armed), the rest expire and are read.\n"
"Needs the module: insmod hwtw.ko\n"
"\n"
"  --orders N     how many, 1000 to 100000000; 1000000\n"
"  --seconds S    from the first order to the last deadline, 1 to 3600; 20, and\n"
"                 longer by itself from a million orders on\n"
"  --threads N    threads that arm, re-arm and cancel, 1 to 64; 2. Two more read\n"
"  --tick-us N    the tick to ask for, rounded down to a power of two of\n"
"                 nanoseconds, 66 to 1073741; 1048\n"
"  --scatter      deadlines anywhere within a tick. By default they lie on whole\n"
"                 ticks, and all lateness is that of the kernel and the readers;\n"
"                 elsewhere the wait for the end of the tick comes on top, and\n"
"                 what is due right after a tick began is read over one late\n"
"  --seed N       other orders; the same seed gives the same ones; 1\n"
"  --json         one object on one line instead of text\n"
"  --progress, --no-progress\n"
"                 the line that tells how far it is; by default on a terminal\n"
"  --ascii        bars of # instead of blocks\n"
"  --help         this\n"
"\n"
"The last line sums it up:\n"
"  armed          orders that got a timer\n"
"  cancelled      CANCEL succeeded; nothing may be read of them any more\n"
"  rearmed        REARM succeeded; nothing may be read of the old deadline\n"
"  expired        all others: armed - cancelled\n"
"  delivered      orders of which a record was read, whichever they are\n"
"  lost           neither cancelled nor delivered\n"
"  early          records read before their deadline\n"
"  over_one_tick  records read later than one tick after their deadline, by the\n"
"                 clock of the reader right after read(2)\n"
"  max_late_us    the latest of all\n"
"\n"
"Memory is what the free pages of /proc/zoneinfo fell by, from before the first\n"
"order to the most timers seen pending, over their number. It means something\n"
"only while nothing else runs; the demo's own memory is there before.\n"
"\n"
"Exit status: 0 all promises kept, 1 an order lost, early, delivered twice or\n"
"after it was cancelled or re-armed (one line on stderr for each kind), 2 wrong\n"
"usage, 3 it could not run. Being late does not fail: a busy machine can make any\n"
"reader late.\n"
"\n"
"Examples:\n"
"  demo                                    the whole show\n"
"  demo --orders 10000 --seconds 2         a quick look\n"
"  demo --tick-us 66 --scatter --seed 7    the finest tick, other orders\n"
"  demo --json --no-progress >result.json\n", f);
}

static uint64_t number(const char *option, const char *text, uint64_t least,
		       uint64_t most)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || *end || !*text || *text == '-' || n < least || n > most) {
		fprintf(stderr, "demo: --%s %s: must be a number from %" PRIu64
			" to %" PRIu64 "\n", option, text, least, most);
		exit(EXIT_USAGE);
	}
	return n;
}

static void parse_options(int argc, char **argv)
{
	enum { ORDERS, SECONDS, THREADS, TICK, SCATTER, SEED, JSON, PROGRESS,
	       NO_PROGRESS, ASCII, HELP };
	static const struct option options[] = {
		[ORDERS] = { "orders", required_argument, NULL, ORDERS },
		[SECONDS] = { "seconds", required_argument, NULL, SECONDS },
		[THREADS] = { "threads", required_argument, NULL, THREADS },
		[TICK] = { "tick-us", required_argument, NULL, TICK },
		[SCATTER] = { "scatter", no_argument, NULL, SCATTER },
		[SEED] = { "seed", required_argument, NULL, SEED },
		[JSON] = { "json", no_argument, NULL, JSON },
		[PROGRESS] = { "progress", no_argument, NULL, PROGRESS },
		[NO_PROGRESS] = { "no-progress", no_argument, NULL, NO_PROGRESS },
		[ASCII] = { "ascii", no_argument, NULL, ASCII },
		[HELP] = { "help", no_argument, NULL, HELP },
		{ 0 }
	};
	uint64_t seconds = 0;
	int o, at;

	demo.orders = 1000000;
	demo.threads = 2;
	demo.seed = 1;
	demo.progress = isatty(STDOUT_FILENO);
	while ((o = getopt_long(argc, argv, "h", options, &at)) >= 0) {
		const char *name = o < HELP ? options[o].name : "";

		switch (o) {
		case ORDERS:
			demo.orders = number(name, optarg, 1000, 100000000);
			break;
		case SECONDS:
			seconds = number(name, optarg, 1, 3600);
			break;
		case THREADS:
			demo.threads = number(name, optarg, 1, MAX_THREADS);
			break;
		case TICK:
			demo.tick_wish_ns = 1000 * number(name, optarg, 66, 1073741);
			break;
		case SEED:
			demo.seed = number(name, optarg, 0, UINT64_MAX);
			break;
		case SCATTER:
			demo.scatter = true;
			break;
		case JSON:
			demo.json = true;
			break;
		case PROGRESS:
		case NO_PROGRESS:
			demo.progress = o == PROGRESS;
			break;
		case ASCII:
			demo.ascii = true;
			break;
		case HELP:
		case 'h':
			usage(stdout);
			exit(EXIT_OK);
		default:
			fputs("demo: see --help\n", stderr);
			exit(EXIT_USAGE);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "demo: what is %s? See --help\n", argv[optind]);
		exit(EXIT_USAGE);
	}
	if (!seconds)
		seconds = demo.orders > 1000000 ? demo.orders / 50000 : 20;
	demo.span_ns = seconds * NSEC_PER_SEC;
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	/* Else khugepaged copies this program's memory while the show runs. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	open_device();
	divide_span();
	show_title();
	make_plan();
	run();
	return finish();
}
