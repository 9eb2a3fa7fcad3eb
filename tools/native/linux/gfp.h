/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whole pages, by way of linux/slab.h.
 */
#ifndef _NATIVE_LINUX_GFP_H
#define _NATIVE_LINUX_GFP_H

#include <linux/slab.h>

#define PAGE_SIZE	4096

static inline unsigned long __get_free_page(gfp_t flags)
{
	return (unsigned long)kmalloc(PAGE_SIZE, flags);
}

static inline void free_page(unsigned long page)
{
	kfree((void *)page);
}

#endif
