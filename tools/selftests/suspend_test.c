// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of /dev/hwtw over suspend to RAM and resume.
 *
 * QEMU's PC wakes up by its RTC only without HPET, so this runs in a VM with
 * "hpet=disable" on the kernel's command line and skips everywhere else, where
 * it might sleep for ever.
 */
#include "hwtw_test.h"

/* What the machine sleeps for, and what the first timers are armed for. */
#define SLEEP_S		6
#define DELAY_NS	NSEC_PER_SEC

#define RTC_ALARM	"/sys/class/rtc/rtc0/wakealarm"

/* How long BOOTTIME is ahead of MONOTONIC. */
static uint64_t slept_ns(void)
{
	uint64_t mono = now_ns();

	return clock_ns(CLOCK_BOOTTIME) - mono;
}

static bool can_suspend(void)
{
	char line[4096] = "";
	FILE *f = fopen("/proc/cmdline", "r");
	bool can;

	if (!f)
		return false;
	can = fgets(line, sizeof(line), f) && strstr(line, "hpet=disable") &&
	      !access(RTC_ALARM, W_OK) && !access("/sys/power/state", W_OK);
	fclose(f);
	return can;
}

static int suspend(void)
{
	char text[16];
	int ret;

	put(RTC_ALARM, "0");
	snprintf(text, sizeof(text), "+%d", SLEEP_S);
	ret = put(RTC_ALARM, text);
	return ret ? ret : put("/sys/power/state", "mem");
}

FIXTURE(suspend) {
	int mono;
	int boot;
	uint64_t slept;
};

FIXTURE_SETUP(suspend)
{
	if (!can_suspend())
		SKIP(return, "needs an RTC, and hpet=disable in a VM");
	self->mono = hwtw_open(O_NONBLOCK);
	self->boot = hwtw_open(O_NONBLOCK);
	ASSERT_EQ(0, hwtw_setup(self->mono, CLOCK_MONOTONIC, 0, 0));
	ASSERT_EQ(0, hwtw_setup(self->boot, CLOCK_BOOTTIME, 0, 0));
	self->slept = slept_ns();
}

FIXTURE_TEARDOWN(suspend)
{
	close(self->mono);
	close(self->boot);
}

/* Guards against clocks mixed up, and overdue timers lost (B-64, D-22). */
TEST_F_TIMEOUT(suspend, clocks, TEST_TIMEOUT_SLOW)
{
	enum { NR = 100 };
	uint64_t mono, boot, slept;
	struct hwtw_event ev[NR];
	int i;

	/* Both would be over after the sleep if their clocks went on. */
	ASSERT_EQ(0, arm_many(self->boot, NR, DELAY_NS, 0, 0, NULL));
	ASSERT_EQ(0, arm_in(self->boot, HOUR_NS, NR, NULL));
	ASSERT_EQ(0, arm_in(self->mono, 2 * DELAY_NS, 0, &mono));
	ASSERT_EQ(0, suspend());
	slept = slept_ns() - self->slept;
	TH_LOG("slept %lu ms", slept / NSEC_PER_MSEC);
	ASSERT_LT(2 * DELAY_NS, slept);

	/* BOOTTIME went on: each of them once, the long one not. */
	ASSERT_EQ(NR, take_all(self->boot, ev, NR));
	boot = clock_ns(CLOCK_BOOTTIME);
	for (i = 0; i < NR; i++) {
		EXPECT_EQ((uint64_t)i, ev[i].user_data);
		EXPECT_LE(ev[i].expires_ns, boot);
	}
	EXPECT_EQ(-EAGAIN, take(self->boot, ev, 1));

	/* MONOTONIC stood still: the rest of the two seconds is to come. */
	ASSERT_EQ(1, take_all(self->mono, ev, 1));
	EXPECT_LE(ev[0].expires_ns, now_ns());
}

/* Guards against a first timer after resume that is not looked at (B-23). */
TEST_F_TIMEOUT(suspend, first_after, TEST_TIMEOUT_SLOW)
{
	uint64_t id[2], boot, mono;
	struct hwtw_event ev;

	ASSERT_EQ(0, arm_in(self->boot, HOUR_NS, 1, &id[0]));
	ASSERT_EQ(0, arm_in(self->mono, HOUR_NS, 1, &id[1]));
	ASSERT_EQ(0, suspend());
	boot = clock_ns(CLOCK_BOOTTIME);
	mono = now_ns();
	ASSERT_EQ(0, arm_in(self->boot, 5 * NSEC_PER_MSEC, 2, NULL));
	ASSERT_EQ(0, arm_in(self->mono, 5 * NSEC_PER_MSEC, 3, NULL));
	ASSERT_EQ(1, take_all(self->boot, &ev, 1));
	EXPECT_EQ(2, ev.user_data);
	/* From now on, on the clock that went on. */
	EXPECT_LE(boot + 5 * NSEC_PER_MSEC, ev.expires_ns);
	EXPECT_LE(ev.expires_ns, clock_ns(CLOCK_BOOTTIME));
	ASSERT_EQ(1, take_all(self->mono, &ev, 1));
	EXPECT_EQ(3, ev.user_data);
	EXPECT_LE(mono + 5 * NSEC_PER_MSEC, ev.expires_ns);
	EXPECT_LE(ev.expires_ns, now_ns());
	EXPECT_EQ(HWTW_PENDING, hwtw_query(self->boot, id[0], NULL));
	EXPECT_EQ(HWTW_PENDING, rearm_in(self->mono, id[1], 0));
	EXPECT_EQ(1, take(self->mono, &ev, 1));
}

TEST_HARNESS_MAIN
