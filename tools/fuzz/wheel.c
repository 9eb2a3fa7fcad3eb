// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: libFuzzer drives the wheel and its model
 *
 * The operations and what has to come of them are those of the KUnit test. But
 * here the input of the fuzzer makes the choices: a byte each. It keeps inputs
 * that reach new code or branches, and changes those further.
 */
#include "../../kunit/hwtw_model_kunit.c"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct native_param *native_params;

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

void kunit_fail(struct kunit *test, const char *file, int line, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	/* The fuzzer keeps the input. */
	abort();
}

void kunit_info(struct kunit *test, const char *format, ...)
{
}

void *kunit_kzalloc(struct kunit *test, size_t bytes, int flags)
{
	return calloc(1, bytes);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u32 shift[] = { HWTW_TICK_SHIFT_MIN, 20, 20, HWTW_TICK_SHIFT_MAX };
	static struct hwtw_wheel w;
	static struct kunit test;
	static struct model m;

	if (size < 2)
		return 0;
	check = 16;
	m.test = &test;
	m.w = &w;
	m.step = 0;
	m.order = 0;
	m.shift = shift[data[0] % ARRAY_SIZE(shift)];
	m.rnd = (struct rnd_state) { .pos = data + 1, .end = data + size };
	model_begin(&m, data[0]);
	while (m.rnd.pos < m.rnd.end)
		model_next(&m);
	model_end(&m);
	return 0;
}
