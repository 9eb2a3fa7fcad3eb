/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_TYPES_H
#define _NATIVE_LINUX_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __LP64__
#define CONFIG_64BIT	1
#endif

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef int gfp_t;

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#endif
