/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory, as the wheel's owner gets it and the wheel gives it back. slab.c has
 * the functions by way of malloc(); a program may have others of its own.
 */
#ifndef _NATIVE_LINUX_SLAB_H
#define _NATIVE_LINUX_SLAB_H

#include <native.h>

#define GFP_KERNEL	0

/* If @size is a power of two, aligned to it. */
void *kmalloc(size_t size, int flags);
void kfree(const void *p);
void *kvcalloc(size_t n, size_t size, int flags);
#define kvzalloc(size, flags)	kvcalloc(1, size, flags)
void kvfree(const void *p);

#endif
