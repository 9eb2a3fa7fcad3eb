/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_MODULEPARAM_H
#define _NATIVE_LINUX_MODULEPARAM_H

#include <native.h>

/* The parameters, for who reads the arguments of the program. */
struct native_param {
	const char *name;
	void *value;
	size_t size;
	struct native_param *next;
};

extern struct native_param *native_params;

/* @type says how wide it is, as the variable does. */
#define module_param(var, type, perm)							\
static __attribute__((constructor)) void native_param_##var(void)			\
{											\
	static struct native_param param = { #var, &(var), sizeof(var), NULL };		\
											\
	param.next = native_params;							\
	native_params = &param;								\
}											\
static_assert(sizeof(var) >= 4)

#define MODULE_PARM_DESC(var, text)	static_assert(sizeof(text) > 0)

#endif
