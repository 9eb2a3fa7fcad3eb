// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the suite of tests that the program was built with, and prints TAP as
 * the kernel does. Arguments are those of the test module: name=value.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <kunit/test.h>
#include <linux/moduleparam.h>

struct native_param *native_params;

void *kunit_kzalloc(struct kunit *test, size_t size, int flags)
{
	/* The data is aligned as malloc() does it. */
	void **block = calloc(1, size + 16);

	(void)flags;
	if (!block)
		return NULL;
	*block = test->block;
	test->block = block;
	return (char *)block + 16;
}

static void free_all(struct kunit *test)
{
	while (test->block) {
		void *next = *(void **)test->block;

		free(test->block);
		test->block = next;
	}
}

void kunit_info(struct kunit *test, const char *format, ...)
{
	va_list ap;

	(void)test;
	printf("# ");
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
}

void kunit_fail(struct kunit *test, const char *file, int line, const char *format, ...)
{
	va_list ap;

	test->failed = true;
	printf("# %s:%d: ", file, line);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
}

static bool run_one(const struct kunit_case *c, const void *param, const char *desc,
		    int indent, unsigned int nr)
{
	struct kunit test = { .param_value = param };

	if (!setjmp(test.abort)) {
		if (kunit_suite->init && kunit_suite->init(&test))
			KUNIT_FAIL(&test, "the suite's init failed");
		else
			c->run_case(&test);
	}
	if (kunit_suite->exit && test.priv)
		kunit_suite->exit(&test);
	free_all(&test);
	printf("%*s%s %u %s%s%s\n", indent, "", test.failed ? "not ok" : "ok", nr, desc,
	       test.skipped ? " # SKIP " : "", test.skipped ?: "");
	fflush(stdout);
	return !test.failed;
}

static bool run_params(const struct kunit_case *c)
{
	const void *param = NULL;
	unsigned int nr = 0;
	bool good = true;

	printf("        KTAP version 1\n        # Subtest: %s\n", c->name);
	for (;;) {
		char desc[KUNIT_PARAM_DESC_SIZE] = "";

		param = c->generate_params(param, desc);
		if (!param)
			break;
		good = run_one(c, param, desc, 8, ++nr) && good;
	}
	return good;
}

static int set_param(const char *arg)
{
	struct native_param *p;
	size_t len = strcspn(arg, "=");

	for (p = native_params; p; p = p->next) {
		if (!arg[len] || strlen(p->name) != len || strncmp(p->name, arg, len))
			continue;
		if (p->size == sizeof(unsigned long long))
			*(unsigned long long *)p->value = strtoull(arg + len + 1, NULL, 0);
		else
			*(unsigned int *)p->value = strtoul(arg + len + 1, NULL, 0);
		return 0;
	}
	fprintf(stderr, "%s: no such parameter; NAME=VALUE, as of the test module\n", arg);
	return 2;
}

int main(int argc, char **argv)
{
	const struct kunit_case *c;
	unsigned int nr = 0;
	bool good = true;
	int i;

	for (i = 1; i < argc; i++) {
		if (set_param(argv[i]))
			return 2;
	}
	for (c = kunit_suite->test_cases; c->run_case; c++)
		nr++;
	printf("KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: %s\n    1..%u\n",
	       kunit_suite->name, nr);
	for (c = kunit_suite->test_cases, nr = 1; c->run_case; c++, nr++) {
		bool ok;

		if (c->generate_params) {
			ok = run_params(c);
			printf("    %s %u %s\n", ok ? "ok" : "not ok", nr, c->name);
		} else {
			ok = run_one(c, NULL, c->name, 4, nr);
		}
		good = good && ok;
	}
	printf("%s 1 %s\n", good ? "ok" : "not ok", kunit_suite->name);
	return !good;
}
