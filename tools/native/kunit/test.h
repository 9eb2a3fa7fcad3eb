/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the wheel use of KUnit, in a program. kunit.c runs them.
 */
#ifndef _NATIVE_KUNIT_TEST_H
#define _NATIVE_KUNIT_TEST_H

#include <setjmp.h>
#include <native.h>

#define KUNIT_PARAM_DESC_SIZE	128

/**
 * struct kunit - a test that runs
 * @priv: the suite's
 * @param_value: the parameter
 * @failed: an expectation was not met
 * @skipped: why it was skipped, or NULL
 * @block: memory of kunit_kzalloc(), chained by its first word
 * @abort: where to go after an assertion that was not met
 */
struct kunit {
	void *priv;
	const void *param_value;
	bool failed;
	const char *skipped;
	void *block;
	jmp_buf abort;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *prev, char *desc);
};

struct kunit_suite {
	const char *name;
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
};

/* The only suite of the program. */
extern struct kunit_suite *const kunit_suite;
#define kunit_test_suite(suite)	struct kunit_suite *const kunit_suite = &(suite)

#define KUNIT_CASE(fn)			{ .run_case = fn, .name = #fn }
#define KUNIT_CASE_PARAM(fn, gen)	{ .run_case = fn, .name = #fn, .generate_params = gen }

#define KUNIT_ARRAY_PARAM(name, array, get_desc)					\
static const void *name##_gen_params(const void *prev, char *desc)			\
{											\
	__typeof__((array)[0]) *next = prev ? (__typeof__(next))prev + 1 : (array);	\
											\
	if (next == (array) + sizeof(array) / sizeof((array)[0]))			\
		return NULL;								\
	get_desc(next, desc);								\
	return next;									\
}

/* Zeroed memory, until the test ends. */
void *kunit_kzalloc(struct kunit *test, size_t size, int flags);
void kunit_info(struct kunit *test, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void kunit_fail(struct kunit *test, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define kunit_skip(test, why) do {			\
	(test)->skipped = (why);			\
	longjmp((test)->abort, 1);			\
} while (0)

#define KUNIT_FAIL(test, ...)	kunit_fail(test, __FILE__, __LINE__, __VA_ARGS__)

/* @end is what there is to do after the failure. */
#define _KUNIT_BINARY(test, a, op, b, end) do {						\
	__typeof__(a) _l = (a);								\
	__typeof__(b) _r = (b);								\
											\
	if (!(_l op _r)) {								\
		KUNIT_FAIL(test, "not so: %s " #op " %s: %lld, %lld", #a, #b,		\
			   (long long)_l, (long long)_r);				\
		end;									\
	}										\
} while (0)

#define _KUNIT_UNARY(test, cond, text, end) do {	\
	if (!(cond)) {					\
		KUNIT_FAIL(test, "not so: %s", text);	\
		end;					\
	}						\
} while (0)

#define _KUNIT_ABORT(test)	longjmp((test)->abort, 1)

#define KUNIT_EXPECT_EQ(test, a, b)	_KUNIT_BINARY(test, a, ==, b, )
#define KUNIT_EXPECT_LT(test, a, b)	_KUNIT_BINARY(test, a, <, b, )
#define KUNIT_EXPECT_LE(test, a, b)	_KUNIT_BINARY(test, a, <=, b, )
#define KUNIT_EXPECT_GT(test, a, b)	_KUNIT_BINARY(test, a, >, b, )
#define KUNIT_EXPECT_GE(test, a, b)	_KUNIT_BINARY(test, a, >=, b, )
#define KUNIT_EXPECT_NE(test, a, b)	_KUNIT_BINARY(test, a, !=, b, )
#define KUNIT_EXPECT_TRUE(test, a)	_KUNIT_UNARY(test, a, #a, )
#define KUNIT_EXPECT_FALSE(test, a)	_KUNIT_UNARY(test, !(a), "!(" #a ")", )
#define KUNIT_EXPECT_NULL(test, a)	_KUNIT_UNARY(test, !(a), "!(" #a ")", )
#define KUNIT_EXPECT_NOT_NULL(test, a)	_KUNIT_UNARY(test, a, #a, )

#define KUNIT_ASSERT_EQ(test, a, b)	_KUNIT_BINARY(test, a, ==, b, _KUNIT_ABORT(test))
#define KUNIT_ASSERT_LE(test, a, b)	_KUNIT_BINARY(test, a, <=, b, _KUNIT_ABORT(test))
#define KUNIT_ASSERT_TRUE(test, a)	_KUNIT_UNARY(test, a, #a, _KUNIT_ABORT(test))
#define KUNIT_ASSERT_FALSE(test, a)	_KUNIT_UNARY(test, !(a), "!(" #a ")", _KUNIT_ABORT(test))
#define KUNIT_ASSERT_NOT_NULL(test, a)	_KUNIT_UNARY(test, a, #a, _KUNIT_ABORT(test))

#endif
