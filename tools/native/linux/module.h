/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_MODULE_H
#define _NATIVE_LINUX_MODULE_H

#include <linux/moduleparam.h>

#define MODULE_DESCRIPTION(text)	static_assert(sizeof(text) > 0)
#define MODULE_LICENSE(text)		static_assert(sizeof(text) > 0)

#endif
