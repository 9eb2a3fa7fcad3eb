/* SPDX-License-Identifier: GPL-2.0-only */
#include_next <linux/limits.h>

#ifndef _NATIVE_LINUX_LIMITS_H
#define _NATIVE_LINUX_LIMITS_H

#define U32_MAX		((__u32)~0U)
#define S32_MAX		((__s32)(U32_MAX >> 1))
#define U64_MAX		((__u64)~0ULL)

#endif
