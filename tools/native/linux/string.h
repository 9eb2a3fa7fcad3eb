/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_STRING_H
#define _NATIVE_LINUX_STRING_H

#include <stdio.h>
#include <string.h>

#define strscpy(to, from, size)	snprintf(to, size, "%s", from)

#endif
