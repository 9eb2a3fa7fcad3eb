# SPDX-License-Identifier: GPL-2.0-only
# The results of tools/bench/run as tables. Reads more.tsv, then results.jsonl.

BEGIN {
	nr_peers = split("hwtw hwtw/ioctl timerfd POSIX/timers io_uring libevent " \
			 "libevent/common libuv hashed/wheel linked/wheel kernel timer_list " \
			 "hrtimer", peers, " ")
	for (i = 1; i <= nr_peers; i++)
		gsub("/", " ", peers[i])
	FS = "\t"
}

/^more/ { more[$2, $3, $4, $5] = $6; if ($5 == "release") release = $6; if ($5 == "measured") date = $6 }
/^more.*wake-ups/ { wakeups[$2, $4] = $6 }
/^more.*contended/ { contended = contended sprintf("  %-14s %s: %s\n", $3, $5, $6) }
/^no/ { why[$2, $4] = $5; if (!(($2, $4, $5) in told)) no[++nr_no] = $2 ", " $4 " timers: " $5 " (" $3 ")"; told[$2, $4, $5] = 1 }

# A line of JSON, of which all names and values are plain.
function parse(line,	i, nr, part, pair) {
	delete f
	gsub(/^\{|\}$/, "", line)
	nr = split(line, part, /,"/)
	for (i = 1; i <= nr; i++) {
		gsub(/"/, "", part[i])
		split(part[i], pair, ":")
		f[pair[1]] = pair[2]
	}
}

/^\{/ {
	parse($0)
	w = f["workload"]; p = f["peer"]; n = f["n"] + 0; b = f["batch"] + 0
	if (!(n in size)) { size[n] = 1; sizes[++nr_sizes] = n }
	has[w, p, b] = 1
	any[w, n] = 1
	if (!((w, p, b) in listed)) { listed[w, p, b] = 1; batches[w, p] = batches[w, p] " " b }
	for (k in f)
		v[w, p, b, n, k] = f[k]
	if (!((w, p, n) in best) || b > best[w, p, n])
		best[w, p, n] = b
}

function label(p, b) {
	return b > 1 || p == "hwtw" && b ? p " " b : p
}

function num(x) {
	return x >= 100000 ? sprintf("%.3g", x) : x >= 1000 ? sprintf("%.0f", x) : sprintf("%.1f", x)
}

# Peers below each other, numbers of timers beside each other; after each figure
# how many times it is that of @ref, with its largest batch.
function table(title, w, key, ref, from, to,	i, j, k, p, nb, bs, n, x, r, line, shown) {
	for (i = from; i <= to; i++) {
		p = peers[i]
		nb = split(batches[w, p], bs, " ")
		for (j = 1; j <= nb; j++) {
			line = ""
			for (k = 1; k <= nr_sizes; k++) {
				n = sizes[k]
				if (!((w, n) in any))
					continue
				x = v[w, p, bs[j], n, key]
				if (x == "") {
					line = line sprintf(" %9s %6s", "-", "")
					continue
				}
				r = v[w, ref, best[w, ref, n], n, key]
				if (w == "create_arm")
					r = v["arm", ref, best["arm", ref, n], n, key]
				if (r > 0 && !(p == ref && bs[j] == best[w, ref, n]))
					r = sprintf("%.*fx", x / r < 10 ? 1 : 0, x / r)
				else
					r = ""
				line = line sprintf(" %9s %-6s", num(x), r)
			}
			if (line !~ /[0-9]/)
				continue
			if (!shown++) {
				printf "\n%-21s", title
				for (k = 1; k <= nr_sizes; k++)
					if ((w, sizes[k]) in any)
						printf " %9d %6s", sizes[k], ""
				printf "\n"
			}
			printf "  %-19s%s\n", label(p, bs[j]), line
		}
	}
}

function us(x) {
	return x == "" ? "-" : sprintf("%.0f", x / 1000)
}

function crowd(title, w,	i, k, p, n, b, o, shown) {
	for (i = 1; i <= nr_peers; i++) {
		p = peers[i]
		for (k = 1; k <= nr_sizes; k++) {
			n = sizes[k]
			if (!((w, p, n) in best) || p == "kernel")
				continue
			b = best[w, p, n]
			if (!shown++)
				printf "\n%-21s %9s %8s %9s | %9s %9s %9s %9s | %9s\n", title, "timers",
					"instr.", "longest", "half", "99 %", "99.9 %", "last", "other's"
			o = v[w "_other", p, 0, n, "late_max_ns"]
			printf "  %-19s %9d %8s %9s | %9s %9s %9s %9s | %9s\n", p, n,
				(v[w, p, b, n, "instr_per_op"] == "" ? "-" : num(v[w, p, b, n, "instr_per_op"])),
				us(v[w, p, b, n, "longest_run_ns"]), us(v[w, p, b, n, "late_p50_ns"]),
				us(v[w, p, b, n, "late_p99_ns"]), us(more[p, w, n, "late_p999_ns"]),
				us(v[w, p, b, n, "late_max_ns"]), us(o)
		}
	}
}

END {
	for (i = 2; i <= nr_sizes; i++)
		for (j = i; j > 1 && sizes[j] < sizes[j - 1]; j--) {
			t = sizes[j]; sizes[j] = sizes[j - 1]; sizes[j - 1] = t
		}
	printf "Instructions per operation on one CPU, Linux %s, %s; and how many times\n" \
		"hwtw's in its largest batch that is. tools/bench/run --help explains.\n", release, date
	table("arm", "arm", "instr_per_op", "hwtw", 1, 10)
	table("create and arm", "create_arm", "instr_per_op", "hwtw", 1, 10)
	table("re-arm later", "rearm_later", "instr_per_op", "hwtw", 1, 10)
	table("re-arm at random", "rearm_random", "instr_per_op", "hwtw", 1, 10)
	table("cancel", "cancel", "instr_per_op", "hwtw", 1, 10)
	table("expire and deliver", "expire", "instr_per_op", "hwtw", 1, 10)
	table("read", "read", "instr_per_op", "hwtw", 1, 10)
	table("mix", "mix", "instr_per_op", "hwtw", 1, 10)
	table("long delays", "long", "instr_per_op", "hwtw", 1, 10)
	table("empty ioctl", "ioctl_empty", "instr_per_op", "hwtw ioctl", 1, 10)
	table("INFO", "ioctl_info", "instr_per_op", "hwtw ioctl", 1, 10)
	printf "\nIn the kernel, times the bare wheel in its largest batch\n"
	table("arm", "arm", "instr_per_op", "kernel", 11, 13)
	table("re-arm later", "rearm_later", "instr_per_op", "kernel", 11, 13)
	table("re-arm at random", "rearm_random", "instr_per_op", "kernel", 11, 13)
	table("cancel", "cancel", "instr_per_op", "kernel", 11, 13)
	table("expire", "expire", "instr_per_op", "kernel", 11, 13)
	table("expire, scattered", "expire_scattered", "instr_per_op", "kernel", 11, 13)
	table("expire, 30 days", "expire_long", "instr_per_op", "kernel", 11, 13)
	table("\nBytes per timer", "memory", "bytes_per_timer", "hwtw", 1, 10)
	table("Bytes per descriptor", "descriptor", "bytes_per_timer", "", 1, 1)

	printf "\nTimes in microseconds. longest: how long the kernel did not let go of the CPU;\n" \
		"half, 99 %%, 99.9 %%, last: how late; other's: how late somebody else's timer was\n"
	crowd("each at its own tick", "expire_scattered")
	crowd("herd: all in a tick", "herd")
	crowd("boundary", "boundary")
	crowd("mass cancel", "mass_cancel")
	for (i = 1; i <= nr_peers; i++)
		for (k = 1; k <= nr_sizes; k++) {
			p = peers[i]; n = sizes[k]
			if (!((p, n) in wakeups))
				continue
			if (!idle++)
				printf "\n%-21s %9s %9s %14s\n", "idle, in an hour", "timers", "wake-ups", "instructions"
			printf "  %-19s %9d %9d %14.0f\n", p, n, wakeups[p, n], v["idle", p, best["idle", p, n], n, "instr_per_op"]
		}
	for (c = 1; c <= 64; c++)
		for (i = 1; i <= 2; i++) {
			w = "cpus_" c "_" (i == 1 ? "own" : "cross")
			x = v[w, "hwtw", 256, 100000, "instr_per_op"]
			if (x == "")
				continue
			if (c == 1)
				one[i] = x
			if (!shared++)
				printf "\nmore CPUs, arm and cancel on one instance, batches of 256\n"
			printf "  %d %s, %-28s %9s %s\n", c, (c == 1 ? "CPU" : "CPUs"),
				(i == 1 ? "each its own timers" : "each those of others"), num(x),
				(c > 1 && one[i] ? sprintf("%.2fx", x / one[i]) : "")
		}
	if (contended)
		printf "\nspinlocks that a CPU had to wait for, of the whole machine, CPUs in parallel\n%s", contended
	if (nr_no)
		printf "\nnot measured\n"
	for (i = 1; i <= nr_no; i++)
		printf "  %s\n", no[i]
}
