#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# orders-test.sh keep|forget
#
# Runs in the VM: kills "orders" again and again while orders come in, are paid
# and run out. With "keep" a supervisor holds the descriptor; with "forget" the
# module is unloaded and loaded each time. Then compares the journal with the
# events. Prints TAP.
set -u
dir=/tmp/orders
mkdir -p $dir
: >$dir/events

# 20000 orders in 5 s; two of three are paid after half a second, some too late.
awk 'BEGIN {
	for (chunk = 0; chunk < 105; chunk++) {
		for (i = chunk * 200; i < chunk * 200 + 200 && i < 20000; i++)
			print "new", i, 200 + i * 7919 % 1500
		for (i = (chunk - 5) * 200; i >= 0 && i < (chunk - 4) * 200; i++)
			if (i % 3)
				print "paid", i
			else if (i < 0)
				break
		fflush()
		system("sleep 0.05")
	}
	print "end"
}' >>$dir/events &

kills="0.1 0.005 0.05 0.01 0.3 0.02 0.004 0.6 0.007 0.25 0.015 0.4 0.03 0.006
	0.7 0.009 0.35 0.5 0.012 0.15 0.8 0.008 0.45"
if [ "$1" = keep ]; then
	keeper orders $dir >$dir/log &
	keeper=$!
	for s in $kills; do
		sleep "$s"
		until kill -9 "$(pidof orders)" 2>/dev/null; do
			sleep 0.005
		done
	done
	wait $keeper || echo "Bail out! keeper failed"
else
	for s in $kills; do
		orders $dir >>$dir/log &
		sleep "$s"
		kill -9 $!
		wait $! 2>/dev/null
		rmmod hwtw && insmod /lib/hwtw.ko || echo "Bail out! no module"
	done
	orders $dir >>$dir/log || echo "Bail out! orders failed"
fi
sed 's/^/# /' $dir/log

awk -v kept="$1" '
function check(good, text) { n++; print (good ? "ok " : "not ok ") n " - " text }
FILENAME ~ /log$/	{ starts++; had += $4; got += $8; next }
FILENAME ~ /events$/	{ if ($1 == "new") orders++; if ($1 == "paid") payments++; next }
$1 == "new"		{ new[$2]++; due[$2] = $3 }
$1 == "paid"		{ paid[$2]++; nr_paid++; if (cancelled[$2]) wrong++ }
$1 == "late"		{ late++; if (!cancelled[$2]) wrong++ }
$1 == "cancel"		{ cancelled[$2]++; nr_cancelled++; if ($3 < due[$2]) early++ }
END {
	for (i = 0; i < orders; i++) {
		if (new[i] != 1)
			lost++
		if (paid[i] + cancelled[i] != 1)
			not_once++
	}
	print "1..7"
	printf "# %d paid, %d cancelled, %d paid too late\n", nr_paid, nr_cancelled, late
	check(orders == 20000 && !lost, "all orders are in the journal, once")
	check(!not_once, "each was either paid or cancelled, once")
	check(!early, "none was cancelled before its time")
	check(!wrong, "what was paid too late had been cancelled")
	check(nr_paid + late == payments && late, "each payment was taken or refused")
	check(starts > 12, "it was killed, and came back " starts - 1 " times")
	if (kept == "keep")
		check(had > 0, "timers outlived it")
	else
		check(!had && got > 0, "timers were made anew")
}' $dir/log $dir/events $dir/journal
