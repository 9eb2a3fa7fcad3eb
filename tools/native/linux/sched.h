/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_SCHED_H
#define _NATIVE_LINUX_SCHED_H

#define cond_resched()	do { } while (0)

#endif
