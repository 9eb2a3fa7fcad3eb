// SPDX-License-Identifier: GPL-2.0-only
/*
 * linux/slab.h by way of malloc(), for checkers of memory to look at.
 */
#include <stdlib.h>
#include <linux/slab.h>

void *kmalloc(size_t size, int flags)
{
	void *p;

	(void)flags;
	if (size & (size - 1))
		return malloc(size);
	return posix_memalign(&p, max(size, sizeof(p)), size) ? NULL : p;
}

void kfree(const void *p)
{
	free((void *)p);
}

void *kvcalloc(size_t n, size_t size, int flags)
{
	(void)flags;
	return calloc(n, size);
}

void kvfree(const void *p)
{
	free((void *)p);
}
