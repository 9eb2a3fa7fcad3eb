/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_RANDOM_H
#define _NATIVE_LINUX_RANDOM_H

#include <sys/random.h>
#include <native.h>

static inline u64 get_random_u64(void)
{
	u64 x = 0;

	return getrandom(&x, sizeof(x), 0) == sizeof(x) ? x : 1;
}

#endif
