// SPDX-License-Identifier: GPL-2.0-only
/*
 * libevent, with its heap and with its queues for common timeouts, and libuv.
 *
 * Operations are carried out in a callback, where programs do such things: there
 * the libraries know the time already.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <string.h>
#include <sys/time.h>
#include <uv.h>

#include "bench.h"

static uint32_t timers, delivered;
static uint32_t op_nr;
static enum op op_now;

/* How long from now until a deadline. */
static uint64_t until(uint64_t deadline)
{
	uint64_t now = now_ns();

	return deadline > now ? deadline - now : 0;
}

static uint32_t take_delivered(void)
{
	uint32_t nr = delivered;

	delivered = 0;
	return nr;
}

/* libevent */

/* It allows 256 of them. */
#define COMMON		64
#define COMMON_STEP	(4 * NSEC_PER_SEC)

static struct event_base *base;
static struct event *event;
static struct event operate;
static bool common;
static const struct timeval *common_delay[COMMON];
static struct {
	uint32_t timer;
	struct timeval delay;
	const struct timeval *common;	/* the queue that is next, or NULL */
} event_arg[CHUNK];

static const char *libevent_cannot(uint32_t n)
{
	return memory_size() / 2 / sizeof(*event) < n ? "no memory for so many events" : NULL;
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	delivered++;
	expired((uintptr_t)arg);
}

static void on_event_operate(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	for (uint32_t i = 0; i < op_nr; i++) {
		struct event *ev = &event[event_arg[i].timer];
		int err;

		if (op_now == CANCEL)
			err = event_del(ev);
		else if (event_arg[i].common)
			err = event_add(ev, event_arg[i].common);
		else
			err = event_add(ev, &event_arg[i].delay);
		if (err)
			cannot("libevent: %s", op_now == CANCEL ? "event_del" : "event_add");
	}
}

static void libevent_open(uint32_t n)
{
	struct event_config *config = event_config_new();

	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	base = event_base_new_with_config(config);
	event_config_free(config);
	if (!base)
		cannot("event_base_new failed");
	timers = n;
	delivered = 0;
	event = alloc(n * sizeof(*event));
	common = false;
	event_assign(&operate, base, -1, 0, on_event_operate, NULL);
}

static void libevent_common_open(uint32_t n)
{
	libevent_open(n);
	common = true;
	for (int i = 0; i < COMMON; i++) {
		struct timeval tv = { .tv_sec = 0 };
		uint64_t ns = (i + 1) * COMMON_STEP;

		tv.tv_sec = ns / NSEC_PER_SEC;
		tv.tv_usec = ns % NSEC_PER_SEC / 1000;
		common_delay[i] = event_base_init_common_timeout(base, &tv);
	}
}

static void libevent_close(void)
{
	release(event, timers * sizeof(*event));
	event_base_free_nofinalize(base);
}

static void libevent_prepare(enum op op, uint32_t at, uint32_t timer, uint64_t deadline)
{
	uint64_t ns = op == CANCEL ? 0 : until(deadline);
	uint64_t i = ns / COMMON_STEP;

	event_arg[at].timer = timer;
	event_arg[at].delay.tv_sec = ns / NSEC_PER_SEC;
	event_arg[at].delay.tv_usec = ns % NSEC_PER_SEC / 1000;
	event_arg[at].common = NULL;
	if (common && ns)
		event_arg[at].common = common_delay[i < COMMON ? i : COMMON - 1];
	if (op == ARM)
		event_assign(&event[timer], base, -1, 0, on_event, (void *)(uintptr_t)timer);
}

static void libevent_run(enum op op, uint32_t nr, uint32_t batch)
{
	(void)batch;
	op_now = op;
	op_nr = nr;
	event_active(&operate, EV_TIMEOUT, 1);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static uint32_t libevent_deliver(uint32_t batch)
{
	(void)batch;
	while (!delivered)
		event_base_loop(base, EVLOOP_ONCE);
	return take_delivered();
}

const struct peer libevent_peer = {
	.name = "libevent",
	.cannot = libevent_cannot,
	.open = libevent_open,
	.close = libevent_close,
	.prepare = libevent_prepare,
	.run = libevent_run,
	.deliver = libevent_deliver,
};

const struct peer libevent_common_peer = {
	.name = "libevent common",
	.common = true,
	.cannot = libevent_cannot,
	.open = libevent_common_open,
	.close = libevent_close,
	.prepare = libevent_prepare,
	.run = libevent_run,
	.deliver = libevent_deliver,
};

/* libuv */

static uv_loop_t loop;
static uv_timer_t *uv;
static uint32_t uv_timers;
static uv_idle_t uv_operate;
static struct {
	uint32_t timer;
	uint64_t delay;
} uv_arg[CHUNK];

static const char *libuv_cannot(uint32_t n)
{
	return memory_size() / 2 / sizeof(*uv) < n ? "no memory for so many handles" : NULL;
}

static void on_uv(uv_timer_t *t)
{
	delivered++;
	/* Don't wait for more after the last one that is due. */
	uv_stop(&loop);
	expired((uintptr_t)t->data);
}

static void on_uv_operate(uv_idle_t *idle)
{
	int err = 0;

	for (uint32_t i = 0; i < op_nr; i++) {
		uv_timer_t *t = &uv[uv_arg[i].timer];

		if (op_now == CANCEL)
			err |= uv_timer_stop(t);
		else
			err |= uv_timer_start(t, on_uv, uv_arg[i].delay, 0);
	}
	if (err)
		cannot("libuv: %s", op_now == CANCEL ? "uv_timer_stop" : "uv_timer_start");
	uv_idle_stop(idle);
}

static void libuv_open(uint32_t n)
{
	uv_loop_init(&loop);
	uv = alloc(n * sizeof(*uv));
	uv_timers = n;
	delivered = 0;
	uv_idle_init(&loop, &uv_operate);
	for (uint32_t i = 0; i < n; i++) {
		uv_timer_init(&loop, &uv[i]);
		uv[i].data = (void *)(uintptr_t)i;
	}
}

static void libuv_close(void)
{
	for (uint32_t i = 0; i < uv_timers; i++)
		uv_close((uv_handle_t *)&uv[i], NULL);
	uv_close((uv_handle_t *)&uv_operate, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&loop))
		cannot("uv_loop_close failed");
	release(uv, uv_timers * sizeof(*uv));
}

static void libuv_prepare(enum op op, uint32_t at, uint32_t timer, uint64_t deadline)
{
	uv_arg[at].timer = timer;
	uv_arg[at].delay = op == CANCEL ? 0 :
		(until(deadline) + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
}

static void libuv_run(enum op op, uint32_t nr, uint32_t batch)
{
	(void)batch;
	op_now = op;
	op_nr = nr;
	uv_update_time(&loop);
	uv_idle_start(&uv_operate, on_uv_operate);
	while (uv_is_active((uv_handle_t *)&uv_operate))
		uv_run(&loop, UV_RUN_NOWAIT);
}

static uint32_t libuv_deliver(uint32_t batch)
{
	(void)batch;
	while (!delivered)
		uv_run(&loop, UV_RUN_ONCE);
	return take_delivered();
}

const struct peer libuv_peer = {
	.name = "libuv",
	.cannot = libuv_cannot,
	.open = libuv_open,
	.close = libuv_close,
	.prepare = libuv_prepare,
	.run = libuv_run,
	.deliver = libuv_deliver,
};
