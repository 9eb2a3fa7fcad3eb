/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_KERNEL_H
#define _NATIVE_LINUX_KERNEL_H

#include <stdio.h>
#include <native.h>

#define UINT_MAX	(~0U)

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define swap(a, b) do {			\
	__typeof__(a) _tmp = (a);	\
	(a) = (b);			\
	(b) = _tmp;			\
} while (0)

#endif
