/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints that are never on. */
#ifndef _NATIVE_TRACEPOINT_H
#define _NATIVE_TRACEPOINT_H

#include <stdbool.h>

#define TP_PROTO(...)		__VA_ARGS__
#define TP_ARGS(...)

#define DECLARE_EVENT_CLASS(name, proto, args, fields, assign, print)	struct _trace
#define DEFINE_EVENT(class, name, proto, args)			\
	static inline void trace_##name(proto) { }		\
	static inline bool trace_##name##_enabled(void)		\
	{							\
		return false;					\
	}							\
	struct _trace
#define TRACE_EVENT(name, proto, args, fields, assign, print)	\
	static inline void trace_##name(proto) { }		\
	static inline bool trace_##name##_enabled(void)		\
	{							\
		return false;					\
	}							\
	struct _trace

#endif
