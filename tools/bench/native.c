// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel of hwtw on this machine's own processor, where caches count: the
 * sources of the module as they are, in a program, against the two wheels of
 * wheels.h and a binary heap as libevent has it.
 *
 * All do the same work in the same order, in turns, so that all have the same
 * share of what else goes on here. Take the ratios, not the figures.
 *
 * Steps, each for batches of 256 timers of which the next numbers are at hand:
 *   arm            all timers
 *   rearm_later    each by up to 60000 ticks, in random order
 *   rearm_random   each to a new time, in random order, four times
 *   cancel         all, in random order
 *   turn           the clock goes on: expire, cascade, and re-arm what expired
 */
#include "hwtw_wheel.c"
#include "hwtw_memory.c"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "wheels.h"

#define SHIFT		20
#define TICKS		60000ULL
#define BATCH		256
#define PASSES		4
#define MAX_ROUNDS	15
#define MAX_SIZES	8

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "native: %s\n", what);
	exit(3);
}

/* Of this program alone: others may have the processor in between. */
static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static u64 clock_cost;		/* of reading it */

static void calibrate_clock(void)
{
	u64 start;

	clock_cost = U64_MAX;
	for (int i = 0; i < 1000; i++) {
		start = now_ns();
		clock_cost = min(clock_cost, now_ns() - start);
	}
}

static u64 since(u64 start)
{
	u64 took = now_ns() - start;

	return took - min(took, clock_cost);
}

static u64 random_state = 88172645463325252ULL;

static u64 draw_below(u64 limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return ((unsigned __int128)random_state * limit) >> 64;
}

/* Memory that is there at once, or addresses for much of it. */
static void *pages_flags(size_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED)
		die("out of memory: use smaller -n");
	return p;
}

static void *pages(size_t size)
{
	return memset(pages_flags(size, 0), 0, size);
}

/*
 * Memory of the wheel. The kernel has its pages side by side, and hands out the
 * one that was freed last; malloc() would put something between.
 */

#define SLAB_BYTES	(1UL << 36)	/* of addresses, not of memory */

static struct slab {
	void *free;
	char *start, *fresh;
} page_slab;

static void *slab_alloc(struct slab *s, size_t size)
{
	void *p = s->free;

	if (p) {
		s->free = *(void **)p;
		return p;
	}
	if (!s->start) {
		s->start = pages_flags(SLAB_BYTES, MAP_NORESERVE);
		s->fresh = s->start;
	}
	p = s->fresh;
	s->fresh += size;
	return p;
}

static bool slab_free(struct slab *s, void *p)
{
	if (!s->start || (char *)p < s->start || (char *)p >= s->start + SLAB_BYTES)
		return false;
	*(void **)p = s->free;
	s->free = p;
	return true;
}

void *kmalloc(size_t size, int flags)
{
	(void)flags;
	if (size == sizeof(struct hwtw_page))
		return slab_alloc(&page_slab, size);
	return malloc(size);
}

void kfree(const void *p)
{
	if (!slab_free(&page_slab, (void *)p))
		free((void *)p);
}

void *kvcalloc(size_t n, size_t size, int flags)
{
	(void)flags;
	return calloc(n, size);
}

void kvfree(const void *p)
{
	free((void *)p);
}

/*
 * What is compared. Timers have numbers from 0 on, deadlines are ticks.
 */

enum op { ARM, REARM, CANCEL };

static struct {
	uint32_t timer;
	u64 tick;
} arg[BATCH];

static uint32_t fired[BATCH * 64];
static uint32_t nr_fired;
static u64 clk;			/* the tick of the turn that goes on */

/**
 * struct contender - a way to keep timers
 * @name: its name
 * @open: make ready for @n timers, at tick 0
 * @close: let go of all
 * @prepare: make the arguments from arg[], before time is taken
 * @run: carry out an operation on the first @nr timers of arg[]
 * @settle: look at the results, after time was taken
 * @turn: let the next ones expire, of one tick or more, into fired[] and
 *	nr_fired; they are re-armed after that
 */
struct contender {
	const char *name;
	void (*open)(uint32_t n);
	void (*close)(void);
	void (*prepare)(enum op op, uint32_t nr);
	void (*run)(enum op op, uint32_t nr);
	void (*settle)(enum op op, uint32_t nr);
	void (*turn)(void);
};

/* hwtw, as its device calls it, but for locks. A timer that expired is armed anew. */

static struct hwtw_wheel *wheel;
static u64 *ids;
static size_t ids_size;
static struct hwtw_op ops[BATCH];

static void own_refill(unsigned int arms, unsigned int rearms)
{
	struct hwtw_need need;
	int err;

	while ((err = hwtw_wheel_need(wheel, arms, rearms, &need)) > 0) {
		while (need.blocks--)
			hwtw_wheel_give_block(wheel, hwtw_page_alloc(GFP_KERNEL));
		while (need.late--)
			hwtw_wheel_give_late(wheel, kmalloc(sizeof(struct hwtw_late), GFP_KERNEL));
		if (need.dir)
			hwtw_wheel_give_dir(wheel, kvcalloc(need.dir, sizeof(u64), GFP_KERNEL),
					    need.dir);
		while (need.pages--) {
			struct hwtw_page *page = hwtw_page_alloc(GFP_KERNEL);

			if (!hwtw_wheel_give_page(wheel, page)) {
				hwtw_page_free(page);
				break;
			}
		}
	}
	if (err)
		die("the wheel has no room for so many timers");
}

static void own_open(uint32_t n)
{
	wheel = calloc(1, sizeof(*wheel));
	ids_size = n * sizeof(*ids);
	ids = pages(ids_size);
	hwtw_wheel_init(wheel, 0, SHIFT, 0);
	/* The others have the memory of their timers in advance, too. */
	own_refill(n, 0);
}

static void own_close(void)
{
	while (hwtw_wheel_destroy(wheel, 1000))
		continue;
	free(wheel);
	munmap(ids, ids_size);
}

static void own_prepare(enum op op, uint32_t nr)
{
	static const u32 opcode[] = {
		[ARM] = HWTW_OP_ARM, [REARM] = HWTW_OP_REARM, [CANCEL] = HWTW_OP_CANCEL,
	};

	for (uint32_t i = 0; i < nr; i++)
		ops[i] = (struct hwtw_op) {
			.opcode = opcode[op],
			.timer.id = op == ARM ? 0 : ids[arg[i].timer],
			.timer.user_data = arg[i].timer,
			.timer.time_ns = op == CANCEL ? 0 : arg[i].tick << SHIFT,
			.timer.flags = op == CANCEL ? 0 : HWTW_TIMER_ABS,
		};
}

static void own_run(enum op op, uint32_t nr)
{
	unsigned int credit = BATCH, arms;
	u32 seq = wheel->seq;

	own_refill(op == ARM ? nr : 0, op == REARM ? nr : 0);
	if (hwtw_wheel_ops(wheel, clk << SHIFT, &credit, ops, nr) != nr)
		die("hwtw_wheel_ops stopped");
	arms = min(wheel->seq - seq, nr);
	if (hwtw_wheel_untidy(wheel))
		while (hwtw_wheel_tidy(wheel, arms, nr - arms))
			arms = 0;
}

static void own_settle(enum op op, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (ops[i].result)
			die("an operation of hwtw failed");
		if (op == ARM)
			ids[arg[i].timer] = ops[i].timer.id;
	}
}

static void own_turn(void)
{
	u64 now = wheel->wake << SHIFT;
	unsigned int room = BATCH, nr;
	struct hwtw_batch batch;

	while (hwtw_wheel_run(wheel, now, 1024))
		continue;
	while ((nr = hwtw_wheel_peek(wheel, now, U64_MAX, &batch, room))) {
		for (unsigned int i = 0; i < nr; i++)
			fired[nr_fired++] = batch.ev[i].user_data;
		hwtw_wheel_take(wheel, &batch, nr);
		room -= nr;
	}
	clk = now >> SHIFT;
}

static const struct contender own_contender = {
	"hwtw", own_open, own_close, own_prepare, own_run, own_settle, own_turn,
};

/* The two wheels */

static struct wheel_timer *timers;
static size_t timers_size;
static struct hashed_wheel *hashed;
static struct linked_wheel *linked;

static void wheels_open(uint32_t n)
{
	timers_size = n * sizeof(*timers);
	timers = pages(timers_size);
	for (uint32_t i = 0; i < n; i++)
		timers[i].data = i;
	hashed = pages(sizeof(*hashed));
	linked = pages(sizeof(*linked));
}

static void wheels_close(void)
{
	munmap(timers, timers_size);
	munmap(hashed, sizeof(*hashed));
	munmap(linked, sizeof(*linked));
}

#define WHEEL(wheel_name)							\
static void wheel_name##_run(enum op op, uint32_t nr)				\
{										\
	for (uint32_t i = 0; i < nr; i++) {					\
		struct wheel_timer *t = &timers[arg[i].timer];			\
										\
		if (op == ARM)							\
			wheel_name##_arm(wheel_name, t, arg[i].tick);		\
		else if (op == REARM)						\
			wheel_name##_rearm(wheel_name, t, arg[i].tick);		\
		else								\
			wheel_name##_cancel(wheel_name, t);			\
	}									\
}										\
										\
static void wheel_name##_turn(void)						\
{										\
	static struct wheel_timer *due;						\
										\
	/* What is left of a tick that had more than a batch. */		\
	if (!due) {								\
		clk = wheel_name##_next(wheel_name);				\
		due = wheel_name##_expire(wheel_name, clk);			\
	}									\
	while (due && nr_fired < BATCH) {					\
		fired[nr_fired++] = due->data;					\
		due = due->next;						\
	}									\
}										\
										\
static const struct contender wheel_name##_contender = {			\
	#wheel_name, wheels_open, wheels_close, NULL, wheel_name##_run, NULL, wheel_name##_turn, \
}

WHEEL(hashed);
WHEEL(linked);

/*
 * A binary heap of pointers to events, which know where they are in it: what
 * libevent has. An event of it has 128 bytes.
 */

struct heap_event {
	char callback[56];
	u64 tick;
	uint32_t at, data;
	char flags[56];
};

static struct heap_event *heap_events;
static struct heap_event **heap;
static uint32_t heap_nr;
static size_t heap_size;

static void heap_open(uint32_t n)
{
	heap_size = n;
	heap_nr = 0;
	heap_events = pages(n * sizeof(*heap_events));
	heap = pages(n * sizeof(*heap));
	for (uint32_t i = 0; i < n; i++)
		heap_events[i].data = i;
}

static void heap_close(void)
{
	munmap(heap_events, heap_size * sizeof(*heap_events));
	munmap(heap, heap_size * sizeof(*heap));
}

static void heap_up(uint32_t at, struct heap_event *e)
{
	while (at) {
		uint32_t parent = (at - 1) / 2;

		if (heap[parent]->tick <= e->tick)
			break;
		heap[at] = heap[parent];
		heap[at]->at = at;
		at = parent;
	}
	heap[at] = e;
	e->at = at;
}

static void heap_down(uint32_t at, struct heap_event *e)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= heap_nr)
			break;
		if (child + 1 < heap_nr && heap[child + 1]->tick < heap[child]->tick)
			child++;
		if (e->tick <= heap[child]->tick)
			break;
		heap[at] = heap[child];
		heap[at]->at = at;
		at = child;
	}
	heap[at] = e;
	e->at = at;
}

/* Put @e where the order wants it, from a place that is free on. */
static void heap_fix(uint32_t at, struct heap_event *e)
{
	if (at && heap[(at - 1) / 2]->tick > e->tick)
		heap_up(at, e);
	else
		heap_down(at, e);
}

static void heap_remove(struct heap_event *e)
{
	struct heap_event *last = heap[--heap_nr];

	if (last != e)
		heap_fix(e->at, last);
}

static void heap_run(enum op op, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct heap_event *e = &heap_events[arg[i].timer];

		if (op == CANCEL) {
			heap_remove(e);
			continue;
		}
		e->tick = arg[i].tick;
		if (op == ARM)
			heap_up(heap_nr++, e);
		else
			heap_fix(e->at, e);
	}
}

static void heap_turn(void)
{
	clk = heap[0]->tick;
	while (heap_nr && heap[0]->tick == clk && nr_fired < BATCH) {
		struct heap_event *e = heap[0];

		fired[nr_fired++] = e->data;
		heap_remove(e);
	}
}

static const struct contender heap_contender = {
	"heap", heap_open, heap_close, NULL, heap_run, NULL, heap_turn,
};

/* The measurement */

enum step { S_ARM, S_LATER, S_RANDOM, S_CANCEL, S_TURN, NR_STEPS };

static const char *const step_name[] = {
	"arm", "rearm_later", "rearm_random", "cancel", "expire_rearm",
};

static const struct contender *const contenders[] = {
	&own_contender, &linked_contender, &hashed_contender, &heap_contender,
};

#define NR_CONTENDERS	(sizeof(contenders) / sizeof(contenders[0]))

static u64 *deadline;
static uint32_t *order;

static void shuffle(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = draw_below(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}

/* One batch of arg[]. Returns what it took. */
static u64 run_batch(const struct contender *c, enum op op, uint32_t nr)
{
	u64 start;

	if (c->prepare)
		c->prepare(op, nr);
	start = now_ns();
	c->run(op, nr);
	start = since(start);
	if (c->settle)
		c->settle(op, nr);
	return start;
}

static u64 run_all(const struct contender *c, enum op op, uint32_t n, bool shuffled)
{
	u64 took = 0;
	uint32_t i = 0;

	while (i < n) {
		uint32_t nr = min(n - i, BATCH);

		for (uint32_t j = 0; j < nr; j++) {
			arg[j].timer = shuffled ? order[i + j] : i + j;
			arg[j].tick = deadline[arg[j].timer];
		}
		took += run_batch(c, op, nr);
		i += nr;
	}
	return took;
}

/*
 * The clock goes on until @n timers have expired, each of which is armed anew,
 * so that as many are pending all the time.
 */
static u64 run_turns(const struct contender *c, uint32_t n)
{
	uint32_t done = 0;
	u64 took = 0;

	while (done < n) {
		u64 start = now_ns();

		while (nr_fired < BATCH && done + nr_fired < n)
			c->turn();
		took += since(start);
		for (uint32_t i = 0; i < nr_fired; i += BATCH) {
			uint32_t nr = min(nr_fired - i, BATCH);

			for (uint32_t j = 0; j < nr; j++) {
				arg[j].timer = fired[i + j];
				arg[j].tick = clk + 1 + draw_below(TICKS);
			}
			took += run_batch(c, ARM, nr);
		}
		done += nr_fired;
		nr_fired = 0;
	}
	return took;
}

/* What one timer costs, in ns, in each step. */
static void measure(const struct contender *c, uint32_t n, double cost[NR_STEPS])
{
	u64 took = 0;

	random_state = 88172645463325252ULL;
	clk = 0;
	nr_fired = 0;
	c->open(n);
	for (uint32_t i = 0; i < n; i++)
		deadline[i] = 1 + draw_below(TICKS);
	cost[S_ARM] = (double)run_all(c, ARM, n, false) / n;
	shuffle(n);
	for (uint32_t i = 0; i < n; i++)
		deadline[i] += 1 + draw_below(TICKS);
	cost[S_LATER] = (double)run_all(c, REARM, n, true) / n;
	for (int pass = 0; pass < PASSES; pass++) {
		for (uint32_t i = 0; i < n; i++)
			deadline[i] = 1 + draw_below(TICKS);
		took += run_all(c, REARM, n, true);
	}
	cost[S_RANDOM] = (double)took / n / PASSES;
	/* Until it is as it stays, then measured. */
	run_turns(c, n);
	cost[S_TURN] = (double)run_turns(c, n) / n;
	cost[S_CANCEL] = (double)run_all(c, CANCEL, n, true) / n;
	c->close();
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void run_size(uint32_t n, int rounds, bool json)
{
	static double cost[NR_CONTENDERS][NR_STEPS][MAX_ROUNDS];

	deadline = pages(n * sizeof(*deadline));
	order = pages(n * sizeof(*order));
	for (int r = 0; r < rounds; r++) {
		for (unsigned int c = 0; c < NR_CONTENDERS; c++) {
			double one[NR_STEPS];

			fprintf(stderr, "native: %" PRIu32 " timers, round %d of %d, %s\n", n,
				r + 1, rounds, contenders[c]->name);
			measure(contenders[c], n, one);
			for (int s = 0; s < NR_STEPS; s++)
				cost[c][s][r] = one[s];
		}
	}
	munmap(deadline, n * sizeof(*deadline));
	munmap(order, n * sizeof(*order));
	for (int s = 0; s < NR_STEPS; s++) {
		double hwtw = 0;

		if (!json)
			printf("%-13s %9" PRIu32, step_name[s], n);
		for (unsigned int c = 0; c < NR_CONTENDERS; c++) {
			double ns;

			qsort(cost[c][s], rounds, sizeof(double), compare);
			ns = cost[c][s][rounds / 2];
			if (!c)
				hwtw = ns;
			if (json)
				printf("{\"workload\":\"%s\",\"peer\":\"%s\",\"n\":%" PRIu32
				       ",\"ns_per_op\":%.2f}\n", step_name[s],
				       contenders[c]->name, n, ns);
			else if (!c)
				printf(" %9.1f", ns);
			else
				printf(" %9.1f %6.2f", ns, hwtw / ns);
		}
		if (!json)
			printf("\n");
		fflush(stdout);
	}
}

static const char help[] =
"usage: native [-n LIST] [--rounds N] [--json]\n"
"\n"
"The wheel of hwtw in a program, against a wheel of linked lists, a hashed wheel\n"
"and a binary heap: nanoseconds per timer, median of N rounds, and behind each of\n"
"the others how many times it hwtw takes: less than 1 is better. Take the ratios:\n"
"other work on this machine costs all of them the same, if it is steady.\n"
"\n"
"  -n LIST     numbers of timers; 10000,100000,1000000,10000000\n"
"  --rounds N  5\n"
"  --json      an object a line: workload, peer, n, ns_per_op\n"
"\n"
"expire_rearm: a timer expires, with all cascades that led there, and is armed\n"
"anew. 10000000 timers take 2 GB. tools/bench/native.c tells what is done.\n";

static uint32_t number(const char *text, char **end, uint32_t most)
{
	unsigned long n = strtoul(text, end, 10);

	if (*end == text || *text == '-' || !n || n > most) {
		fprintf(stderr, "native: %s: a number from 1 to %" PRIu32 ", see --help\n", text,
			most);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *sizes = "10000,100000,1000000,10000000";
	uint32_t size[MAX_SIZES];
	int o, nr = 0, rounds = 5;
	bool json = false;
	char *end;

	while ((o = getopt_long(argc, argv, "n:h", options, NULL)) >= 0) {
		switch (o) {
		case 'n':
			sizes = optarg;
			break;
		case 'r':
			rounds = number(optarg, &end, MAX_ROUNDS);
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fputs("native: see --help\n", stderr);
			return 2;
		}
	}
	do {
		if (nr == MAX_SIZES || optind < argc) {
			fputs("native: too many arguments, see --help\n", stderr);
			return 2;
		}
		size[nr++] = number(sizes, &end, 50000000);
		sizes = end + 1;
	} while (*end == ',');
	if (!json) {
		printf("%-13s %9s", "ns per timer", "timers");
		for (unsigned int c = 0; c < NR_CONTENDERS; c++)
			printf(c ? " %16s" : " %9s", contenders[c]->name);
		printf("\n");
	}
	calibrate_clock();
	for (int i = 0; i < nr; i++)
		run_size(size[i], rounds, json);
	return 0;
}
