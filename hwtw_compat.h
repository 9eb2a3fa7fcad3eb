/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hwtw: what differs between kernels
 *
 * Everything has the name and the meaning it has in the newest kernel. Kbuild
 * looks for the names in the kernel's headers: distributions backport, so the
 * version tells little.
 */
#ifndef _HWTW_COMPAT_H
#define _HWTW_COMPAT_H

#include <linux/hrtimer.h>

/* Added in 6.13 (908a1d775422); hrtimer_init() was removed in 6.15. */
#ifndef HWTW_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

#endif /* _HWTW_COMPAT_H */
