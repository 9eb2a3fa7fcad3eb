// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin for QEMU: how many instructions all CPUs of a VM carry out between
 * two marks that a program in it makes. For CPUs that run at the same time,
 * which they don't when QEMU counts by itself (-icount).
 *
 * A mark is an instruction that does nothing:  nopl 0x68777477(%rax)
 * For each second mark a line with a number is written to the file out=FILE.
 *
 * The few declarations here are those of version 1 of QEMU's interface for
 * plugins, whose header Debian does not package.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT		__attribute__((visibility("default")))
#define MAX_CPUS	64

struct qemu_plugin_tb;
struct qemu_plugin_insn;

typedef uint64_t qemu_plugin_id_t;
typedef void (*tb_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*exec_cb)(unsigned int cpu, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, exec_cb cb, int flags,
					  void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_cb cb, int flags,
					    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

EXPORT int qemu_plugin_version = 1;

/* Each CPU has a line of the cache for its own. */
static struct {
	uint64_t n;
	uint64_t pad[7];
} count[MAX_CPUS];

static FILE *out;

static void on_block(unsigned int cpu, void *data)
{
	count[cpu % MAX_CPUS].n += (uintptr_t)data;
}

static void on_mark(unsigned int cpu, void *data)
{
	static uint64_t before;
	static int open;
	uint64_t sum = 0;

	(void)cpu;
	(void)data;
	for (int i = 0; i < MAX_CPUS; i++)
		sum += __atomic_load_n(&count[i].n, __ATOMIC_RELAXED);
	if (open) {
		fprintf(out, "%llu\n", (unsigned long long)(sum - before));
		fflush(out);
	}
	before = sum;
	open = !open;
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const unsigned char mark[] = { 0x0f, 0x1f, 0x80, 0x77, 0x74, 0x77, 0x68 };
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, 0, (void *)(uintptr_t)n);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (qemu_plugin_insn_size(insn) == sizeof(mark) &&
		    !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, 0, NULL);
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	if (!out) {
		fputs("count: out=FILE is missing, or cannot be written\n", stderr);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
	return 0;
}
