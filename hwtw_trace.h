/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hwtw: tracepoints
 *
 * Times are nanoseconds on the clock of the instance, which the file's fdinfo
 * gives the number of.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hwtw

#if !defined(_HWTW_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _HWTW_TRACE_H

#include <linux/tracepoint.h>

#include "hwtw.h"

#ifndef HWTW_TRACE_STATES
#define HWTW_TRACE_STATES			\
	{ HWTW_PENDING, "pending" },		\
	{ HWTW_EXPIRED, "expired" }
#endif

DECLARE_EVENT_CLASS(hwtw_place,
	TP_PROTO(const struct hwtw_wheel *w, const struct hwtw_timer *timer, u64 expires_ns),
	TP_ARGS(w, timer, expires_ns),
	TP_STRUCT__entry(
		__field(u32, instance)
		__field(u32, wheel)
		__field(u64, id)
		__field(u64, expires_ns)
		__field(u64, interval_ns)
		__field(u32, state)
	),
	TP_fast_assign(
		__entry->instance = w->instance;
		__entry->wheel = w->nr;
		__entry->id = timer->id;
		__entry->expires_ns = expires_ns;
		__entry->interval_ns = timer->interval_ns;
		__entry->state = timer->state;
	),
	TP_printk("instance=%u wheel=%u id=%#llx expires_ns=%llu interval_ns=%llu state=%s",
		  __entry->instance, __entry->wheel, __entry->id, __entry->expires_ns,
		  __entry->interval_ns, __print_symbolic(__entry->state, HWTW_TRACE_STATES))
);

/* A new timer; the state that it is in. */
DEFINE_EVENT(hwtw_place, hwtw_arm,
	TP_PROTO(const struct hwtw_wheel *w, const struct hwtw_timer *timer, u64 expires_ns),
	TP_ARGS(w, timer, expires_ns)
);

/* A new time for a timer; the state that it was in. */
DEFINE_EVENT(hwtw_place, hwtw_rearm,
	TP_PROTO(const struct hwtw_wheel *w, const struct hwtw_timer *timer, u64 expires_ns),
	TP_ARGS(w, timer, expires_ns)
);

/* A timer is gone; the state that it was in. */
TRACE_EVENT(hwtw_cancel,
	TP_PROTO(const struct hwtw_wheel *w, const struct hwtw_timer *timer),
	TP_ARGS(w, timer),
	TP_STRUCT__entry(
		__field(u32, instance)
		__field(u32, wheel)
		__field(u64, id)
		__field(u32, state)
	),
	TP_fast_assign(
		__entry->instance = w->instance;
		__entry->wheel = w->nr;
		__entry->id = timer->id;
		__entry->state = timer->state;
	),
	TP_printk("instance=%u wheel=%u id=%#llx state=%s", __entry->instance, __entry->wheel,
		  __entry->id, __print_symbolic(__entry->state, HWTW_TRACE_STATES))
);

/* Claims moved one level down: some of the bucket that begins with a tick. */
TRACE_EVENT(hwtw_cascade,
	TP_PROTO(const struct hwtw_wheel *w, unsigned int level, u64 tick, unsigned int claims),
	TP_ARGS(w, level, tick, claims),
	TP_STRUCT__entry(
		__field(u32, instance)
		__field(u32, wheel)
		__field(u32, level)
		__field(u64, tick)
		__field(u32, claims)
	),
	TP_fast_assign(
		__entry->instance = w->instance;
		__entry->wheel = w->nr;
		__entry->level = level;
		__entry->tick = tick;
		__entry->claims = claims;
	),
	TP_printk("instance=%u wheel=%u level=%u tick=%llu claims=%u", __entry->instance,
		  __entry->wheel, __entry->level, __entry->tick, __entry->claims)
);

/* A timer's record can be read. */
TRACE_EVENT(hwtw_expire,
	TP_PROTO(const struct hwtw_wheel *w, u64 id, u64 user_data, u64 expires_ns),
	TP_ARGS(w, id, user_data, expires_ns),
	TP_STRUCT__entry(
		__field(u32, instance)
		__field(u32, wheel)
		__field(u64, id)
		__field(u64, user_data)
		__field(u64, expires_ns)
	),
	TP_fast_assign(
		__entry->instance = w->instance;
		__entry->wheel = w->nr;
		__entry->id = id;
		__entry->user_data = user_data;
		__entry->expires_ns = expires_ns;
	),
	TP_printk("instance=%u wheel=%u id=%#llx user_data=%#llx expires_ns=%llu",
		  __entry->instance, __entry->wheel, __entry->id, __entry->user_data,
		  __entry->expires_ns)
);

/* A timer's record was read. */
TRACE_EVENT(hwtw_deliver,
	TP_PROTO(const struct hwtw_wheel *w, const struct hwtw_event *ev),
	TP_ARGS(w, ev),
	TP_STRUCT__entry(
		__field(u32, instance)
		__field(u32, wheel)
		__field(u64, id)
		__field(u64, user_data)
		__field(u64, expires_ns)
		__field(u32, overruns)
	),
	TP_fast_assign(
		__entry->instance = w->instance;
		__entry->wheel = w->nr;
		__entry->id = ev->id;
		__entry->user_data = ev->user_data;
		__entry->expires_ns = ev->expires_ns;
		__entry->overruns = ev->overruns;
	),
	TP_printk("instance=%u wheel=%u id=%#llx user_data=%#llx expires_ns=%llu overruns=%u",
		  __entry->instance, __entry->wheel, __entry->id, __entry->user_data,
		  __entry->expires_ns, __entry->overruns)
);

/* An interrupt let the wheel run; whether it stopped at its budget. */
TRACE_EVENT(hwtw_run,
	TP_PROTO(const struct hwtw_wheel *w, u64 now_ns, u64 took_ns, bool more),
	TP_ARGS(w, now_ns, took_ns, more),
	TP_STRUCT__entry(
		__field(u32, instance)
		__field(u32, wheel)
		__field(u64, now_ns)
		__field(u64, took_ns)
		__field(u32, pending)
		__field(u32, unread)
		__field(bool, more)
	),
	TP_fast_assign(
		__entry->instance = w->instance;
		__entry->wheel = w->nr;
		__entry->now_ns = now_ns;
		__entry->took_ns = took_ns;
		__entry->pending = w->pending;
		__entry->unread = w->unread;
		__entry->more = more;
	),
	TP_printk("instance=%u wheel=%u now_ns=%llu took_ns=%llu pending=%u unread=%u more=%d",
		  __entry->instance, __entry->wheel, __entry->now_ns, __entry->took_ns,
		  __entry->pending, __entry->unread, __entry->more)
);

#endif /* _HWTW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE hwtw_trace
#include <trace/define_trace.h>
