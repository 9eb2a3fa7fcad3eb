// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtwctl selftest: does the loaded module keep its promises on this machine?
 *
 * Short and harmless: some thousand timers of its own. How late timers are is
 * told and not judged, since any busy machine makes a reader late.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hwtwctl.h"

#define MANY		2000
#define SPAN_NS		(200 * NSEC_PER_MSEC)
#define TIMEOUT_MS	20000
#define MINUTE_NS	(60 * NSEC_PER_SEC)

/* The test under way. */
static struct {
	jmp_buf over;
	bool failed, skipped;
	char text[160];
	struct hwtw_info info;
	int fd;
} now;

static void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(now.text, sizeof(now.text), fmt, ap);
	va_end(ap);
}

#define FAIL(...)	do { note(__VA_ARGS__); now.failed = true; longjmp(now.over, 1); } while (0)
#define SKIP(...)	do { note(__VA_ARGS__); now.skipped = true; longjmp(now.over, 1); } while (0)

/* @what gave @got, and not @want as it should. */
static void expect(const char *what, int64_t got, int64_t want)
{
	if (got != want)
		FAIL("%s: %" PRId64 " instead of %" PRId64, what, got, want);
}

static int64_t call(const char *what, int64_t ret)
{
	if (ret < 0)
		FAIL("%s: %s", what, strerror(-ret));
	return ret;
}

static uint64_t arm(uint64_t time_ns, uint64_t interval_ns, uint32_t flags, uint64_t user_data)
{
	uint64_t id;

	call("ARM", hwtw_arm(now.fd, time_ns, interval_ns, flags, user_data, &id));
	return id;
}

/* The next record, within a time that is generous for any machine. */
static struct hwtw_event next_event(void)
{
	struct pollfd p = { .fd = now.fd, .events = POLLIN };
	struct hwtw_event event;
	ssize_t len;

	expect("poll for the next record", poll(&p, 1, TIMEOUT_MS), 1);
	len = read(now.fd, &event, sizeof(event));
	if (len < 0)
		FAIL("read: %s", strerror(errno));
	expect("bytes read", len, sizeof(event));
	return event;
}

static void nothing_more(void)
{
	struct hwtw_event event;

	if (read(now.fd, &event, sizeof(event)) >= 0)
		FAIL("a record of timer %" PRIu64 " where there should be none",
		     (uint64_t)event.user_data);
	expect("read with nothing expired: errno", errno, EAGAIN);
}

/* The tests */

static void test_info(void)
{
	const struct hwtw_info *i = &now.info;

	expect("abi", i->abi, HWTW_ABI);
	expect("event_size", i->event_size, sizeof(struct hwtw_event));
	if (i->tick_ns & (i->tick_ns - 1) || i->tick_ns < i->tick_min_ns ||
	    i->tick_ns > i->tick_max_ns)
		FAIL("a tick of %" PRIu64 " ns", (uint64_t)i->tick_ns);
	if (!i->max_timers || !i->max_batch)
		FAIL("limits of 0");
	note("tick %s, %" PRIu64 " timers", show_duration(i->tick_ns), (uint64_t)i->max_timers);
}

static void test_errors(void)
{
	struct hwtw_event event;

	expect("CANCEL of no timer", hwtw_cancel(now.fd, 1), -ENOENT);
	expect("ARM later than ever", hwtw_arm(now.fd, HWTW_TIME_MAX_NS + 1, 0, 0, 0, NULL), -EINVAL);
	expect("ARM with unknown flags", hwtw_arm(now.fd, 0, 0, 1U << 31, 0, NULL), -EINVAL);
	expect("read of less than a record", read(now.fd, &event, 1) < 0 ? -errno : 0, -EINVAL);
	arm(MINUTE_NS, 0, 0, 0);
	expect("SETUP after the first timer", hwtw_set_up(now.fd, CLOCK_MONOTONIC, 0, 0), -EBUSY);
}

/* Never early, none lost, none twice, in the order of their ticks. */
static void expire_many(uint32_t clockid)
{
	static bool seen[MANY];
	uint64_t base = clock_ns(clockid) + 20 * NSEC_PER_MSEC, last_tick = 0, worst = 0;
	cpu_set_t all, one;

	memset(seen, 0, sizeof(seen));
	/* Their order is promised to what is armed on one CPU. */
	if (sched_getaffinity(0, sizeof(all), &all))
		FAIL("sched_getaffinity: %s", strerror(errno));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		FAIL("sched_setaffinity: %s", strerror(errno));
	for (uint32_t i = 0; i < MANY; i++)
		arm(base + i * 7919ULL % MANY * (SPAN_NS / MANY), 0, HWTW_TIMER_ABS, i);
	sched_setaffinity(0, sizeof(all), &all);
	for (uint32_t n = 0; n < MANY; n++) {
		struct hwtw_event e = next_event();
		uint64_t after = clock_ns(clockid), i = e.user_data, tick;

		if (i >= MANY || seen[i])
			FAIL("timer %" PRIu64 " came twice, or never was", i);
		seen[i] = true;
		if (e.expires_ns != base + i * 7919ULL % MANY * (SPAN_NS / MANY))
			FAIL("timer %" PRIu64 " came with another deadline", i);
		if (after < e.expires_ns)
			FAIL("timer %" PRIu64 " came %s early", i,
			     show_duration(e.expires_ns - after));
		tick = (e.expires_ns + now.info.tick_ns - 1) / now.info.tick_ns;
		if (tick < last_tick)
			FAIL("timer %" PRIu64 " came after one of a later tick", i);
		last_tick = tick;
		if (after - e.expires_ns > worst)
			worst = after - e.expires_ns;
	}
	nothing_more();
	note("%d timers, the last by %s late", MANY, show_duration(worst));
}

static void test_monotonic(void)
{
	expire_many(CLOCK_MONOTONIC);
}

static void test_boottime(void)
{
	call("SETUP", hwtw_set_up(now.fd, CLOCK_BOOTTIME, 0, 0));
	expire_many(CLOCK_BOOTTIME);
}

static void test_realtime(void)
{
	if (!(now.info.features & HWTW_FEATURE_REALTIME))
		SKIP("this module has no realtime");
	call("SETUP", hwtw_set_up(now.fd, CLOCK_REALTIME, 0, 0));
	expire_many(CLOCK_REALTIME);
}

static void test_cancel(void)
{
	uint64_t pending = arm(MINUTE_NS, 0, 0, 1), expired = arm(0, 0, 0, 2), read;
	struct pollfd p = { .fd = now.fd, .events = POLLIN };

	expect("CANCEL of a pending timer", hwtw_cancel(now.fd, pending), HWTW_PENDING);
	expect("CANCEL of an expired timer", hwtw_cancel(now.fd, expired), HWTW_EXPIRED);
	expect("poll after that", poll(&p, 1, 0), 0);
	nothing_more();
	expect("CANCEL once more", hwtw_cancel(now.fd, expired), -ENOENT);
	read = arm(0, 0, 0, 3);
	expect("record", next_event().user_data, 3);
	expect("CANCEL of what was read", hwtw_cancel(now.fd, read), -ENOENT);
}

static void test_rearm(void)
{
	uint64_t id = arm(MINUTE_NS, 0, 0, 1), start = clock_ns(CLOCK_MONOTONIC);

	expect("REARM to an earlier time", hwtw_rearm(now.fd, id, 10 * NSEC_PER_MSEC, 0, 0),
	       HWTW_PENDING);
	expect("record", next_event().id, id);
	if (clock_ns(CLOCK_MONOTONIC) - start < 10 * NSEC_PER_MSEC)
		FAIL("it came early");
	id = arm(0, 0, 0, 2);
	expect("REARM of an expired timer", hwtw_rearm(now.fd, id, MINUTE_NS, 0, 0), HWTW_EXPIRED);
	nothing_more();
	expect("QUERY", hwtw_query(now.fd, id, &(struct hwtw_timer) { 0 }), HWTW_PENDING);
}

static void test_periodic(void)
{
	const uint64_t interval = 5 * NSEC_PER_MSEC;
	uint64_t first = clock_ns(CLOCK_MONOTONIC) + interval, periods = 0;
	struct timespec nap = { 0, 50 * NSEC_PER_MSEC };
	struct hwtw_event e;

	if (!(now.info.features & HWTW_FEATURE_PERIODIC))
		SKIP("this module has no periodic timers");
	arm(first, interval, HWTW_TIMER_ABS, 1);
	for (int i = 0; i < 10; i++) {
		e = next_event();
		if (e.expires_ns != first + periods * interval)
			FAIL("expiry %d is not a whole number of periods after the first", i);
		if (clock_ns(CLOCK_MONOTONIC) < e.expires_ns + e.overruns * interval)
			FAIL("expiry %d came early", i);
		periods += 1 + e.overruns;
		/* Periods pass while nobody reads. */
		if (i == 5)
			nanosleep(&nap, NULL);
		if (i == 6 && e.overruns < 8)
			FAIL("%u overruns after 10 periods", e.overruns);
	}
}

struct batch_result {
	int nr, ok;
	int64_t first_error;
};

static void count_result(const struct hwtw_op *op, void *arg)
{
	struct batch_result *r = arg;

	r->nr++;
	if (!op->result)
		r->ok++;
	else if (!r->first_error)
		r->first_error = op->result;
}

static void test_batch(void)
{
	struct batch_result r = { 0 };
	struct hwtw_batch *batch;

	call("a batch", hwtw_batch_new(&batch, now.fd, 64, count_result, &r));
	for (int i = 0; i < 100; i++)
		call("ARM in a batch", hwtw_batch_arm(batch, 0, 0, 0, i));
	call("CANCEL in a batch", hwtw_batch_cancel(batch, 1, 0));
	call("ARM in a batch", hwtw_batch_arm(batch, 0, 0, 0, 100));
	call("SUBMIT", hwtw_batch_flush(batch));
	hwtw_batch_free(batch);
	expect("results", r.nr, 102);
	expect("successes", r.ok, 101);
	expect("the bad one", r.first_error, -ENOENT);
	for (int i = 0; i <= 100; i++)
		next_event();
	nothing_more();
}

static void test_limit(void)
{
	uint64_t id = 0;

	call("SETUP", hwtw_set_up(now.fd, CLOCK_MONOTONIC, 0, 3));
	for (int i = 0; i < 3; i++)
		id = arm(MINUTE_NS, 0, 0, i);
	expect("ARM beyond the limit", hwtw_arm(now.fd, MINUTE_NS, 0, 0, 3, NULL), -ENOSPC);
	call("CANCEL", hwtw_cancel(now.fd, id));
	arm(MINUTE_NS, 0, 0, 3);
}

static void test_list(void)
{
	struct hwtw_timer timers[7];
	static bool seen[100];
	uint64_t cursor = 0, base = clock_ns(CLOCK_MONOTONIC) + MINUTE_NS;
	int nr, sum = 0;

	if (!(now.info.features & HWTW_FEATURE_LIST))
		SKIP("this module has no list");
	for (int i = 0; i < 100; i++)
		arm(base + i, 0, HWTW_TIMER_ABS, i);
	while ((nr = call("LIST", hwtw_walk(now.fd, timers, 7, 0, &cursor))) > 0) {
		for (int i = 0; i < nr; i++) {
			uint64_t n = timers[i].user_data;

			if (n >= 100 || seen[n])
				FAIL("timer %" PRIu64 " is listed twice, or never was", n);
			seen[n] = true;
			expect("deadline listed", timers[i].time_ns, base + n);
			expect("flags listed", timers[i].flags, HWTW_TIMER_ABS);
			expect("state listed", timers[i].state, HWTW_PENDING);
		}
		sum += nr;
	}
	expect("timers listed", sum, 100);
	expect("cursor at the end", cursor, 0);
	while ((nr = call("LIST_CANCEL", hwtw_walk(now.fd, timers, 7, HWTW_LIST_CANCEL, &cursor))) > 0)
		sum -= nr;
	expect("timers left after LIST_CANCEL", sum, 0);
	expect("and listed", hwtw_walk(now.fd, timers, 7, 0, &cursor), 0);
}

static void test_stats(void)
{
	struct instances found = { 0 };
	struct hwtw_stats s;
	size_t n = 0;

	if (!(now.info.features & HWTW_FEATURE_STATS))
		SKIP("this module does not count");
	for (int i = 0; i < 5; i++)
		arm(0, 0, 0, i);
	for (int i = 0; i < 4; i++)
		call("CANCEL", hwtw_cancel(now.fd, arm(MINUTE_NS, 0, 0, i)));
	for (int i = 0; i < 3; i++)
		arm(MINUTE_NS, 0, 0, i);
	for (int i = 0; i < 2; i++)
		next_event();
	call("STATS", hwtw_get_stats(now.fd, &s));
	expect("armed", s.armed, 12);
	expect("cancelled", s.cancelled, 4);
	expect("expired", s.expired, 5);
	expect("delivered", s.delivered, 2);
	expect("completed", s.completed, 2);
	expect("unread", s.unread, 3);
	expect("pending", s.pending, 3);

	find_instances(&found, getpid());
	while (n < found.nr && found.list[n].fd != now.fd)
		n++;
	if (n == found.nr)
		FAIL("the instance is not in /proc/self/fdinfo");
	expect("armed in fdinfo", found.list[n].stats.armed, 12);
	expect("pending in fdinfo", found.list[n].stats.pending, 3);
	expect("unread in fdinfo", found.list[n].stats.unread, 3);
	free(found.list);
	note("%s bytes of kernel memory", show_bytes(s.memory));
}

static const struct test {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "what the module says of itself", test_info },
	{ "errors", test_errors },
	{ "never early, each once, in order", test_monotonic },
	{ "the same on the clock boottime", test_boottime },
	{ "the same on the clock realtime", test_realtime },
	{ "a cancel is final", test_cancel },
	{ "re-arm", test_rearm },
	{ "periodic timers and overruns", test_periodic },
	{ "batches", test_batch },
	{ "the limit on timers", test_limit },
	{ "list", test_list },
	{ "counters, and those in fdinfo", test_stats },
};

static void run_test(const struct test *test)
{
	now.fd = open_device(O_NONBLOCK);
	get_info(now.fd, &now.info);
	now.failed = now.skipped = false;
	now.text[0] = 0;
	if (!setjmp(now.over))
		test->run();
	close(now.fd);
}

static int selftest_run(int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS };
	unsigned int passed = 0, failed = 0, skipped = 0;

	next_option(&cmd_selftest, argc, argv, options);
	no_more_arguments(argc, argv);
	/* Says so in one line if there is none, before anything is printed. */
	close(open_device(0));
	if (json) {
		json_open(NULL, '{');
		json_open("tests", '[');
	}
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		const char *result;

		run_test(&tests[i]);
		result = now.failed ? "FAILED" : now.skipped ? "skipped" : "ok";
		failed += now.failed;
		skipped += now.skipped;
		passed += !now.failed && !now.skipped;
		if (json) {
			json_open(NULL, '{');
			json_string("test", tests[i].name);
			json_string("result", result);
			json_string("note", now.text);
			json_close('}');
		} else {
			printf("%-8s %s%s%s\n", result, tests[i].name, now.text[0] ? ": " : "",
			       now.text);
			fflush(stdout);
		}
	}
	if (json) {
		json_close(']');
		json_u64("passed", passed);
		json_u64("failed", failed);
		json_u64("skipped", skipped);
		json_close('}');
		json_end();
	} else {
		printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	}
	return failed ? EXIT_FAILED : EXIT_OK;
}

const struct command cmd_selftest = {
	.name = "selftest",
	.summary = "does the module keep its promises here?",
	.help =
"usage: hwtwctl selftest [--json]\n"
"\n"
"Checks the loaded module in a few seconds, with some thousand timers of its own:\n"
"none early, none lost, none twice, in order, on each clock; cancel, re-arm,\n"
"periodic timers, batches, limits, list and counters. What this module does not\n"
"have is skipped. Other instances are left alone.\n"
"\n"
"How late the last timer was read is told, not judged: it says how busy the machine\n"
"is.\n"
"\n"
"  --json   one object\n"
"\n"
"Exit status: 0 if nothing failed, 1 if something did, else see \"hwtwctl --help\".\n"
"\n"
"Examples:\n"
"  hwtwctl selftest\n"
"  hwtwctl selftest --json | jq '.tests[] | select(.result == \"FAILED\")'\n",
	.run = selftest_run,
};
