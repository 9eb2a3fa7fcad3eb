#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Run by tools/hwtwctl/check in a VM, as root: every command of hwtwctl, its
# errors and exit statuses. Prints TAP. Lines "#json NAME ..." are what it
# printed with --json, for the caller to parse.
#
# In /root are the files that tools/hwtwctl/check made: dumps good and bad.

# shellcheck disable=SC2086,SC2317 # names without spaces; functions called by name
echo "TAP version 13"
n=0
failed=0
out=/tmp/out
err=/tmp/err

# run COMMAND...: sets status; what it said is in $out and $err.
run() {
	status=0
	"$@" >$out 2>$err || status=$?
}

# verdict TEXT COMMAND...
verdict() {
	text=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $text"
		return
	fi
	echo "not ok $n - $text (status $status)"
	sed 's/^/# /' $out $err
	failed=1
}

# gives STATUS TEXT COMMAND...: it exits so, and TEXT is in what it says. An
# error is one line on stderr, with nothing on stdout.
gives() {
	want=$1
	wanted=$2
	shift 2
	run "$@"
	verdict "$* gives $want" said
}

said() {
	[ "$status" -eq "$want" ] || return 1
	if [ "$want" -eq 0 ]; then
		grep -q -e "$wanted" $out
	else
		grep -q -e "$wanted" $err && [ "$(wc -l <$err)" -eq 1 ] && [ ! -s $out ]
	fi
}

# json NAME COMMAND...
json() {
	name=$1
	shift
	run "$@"
	sed "s/^/#json $name /" $out
	verdict "$* gives JSON" [ "$status" -eq 0 ]
}

lines() {
	[ "$status" -eq 0 ] && [ "$(wc -l <$out)" -eq "$1" ]
}

# background COMMAND...: sets pid, and waits until it has an instance with timers.
background() {
	"$@" >/dev/null 2>&1 &
	pid=$!
	until hwtwctl stat --pid $pid --json 2>/dev/null | grep -q '"armed":[1-9]'; do
		sleep 0.01
	done
}

end() {
	kill $pid
	wait $pid 2>/dev/null
}

#
# Help and usage
#

gives 0 '^usage: hwtwctl COMMAND' hwtwctl --help
for c in info arm stat monitor bench selftest dump restore; do
	gives 0 "^usage: hwtwctl $c" hwtwctl $c --help
	gives 2 "what is \"--nonsense\"? See \"hwtwctl $c --help\"" hwtwctl $c --nonsense
done
for c in info stat monitor bench selftest; do
	gives 2 'what is "stray"' hwtwctl $c stray
done
gives 2 'what is "-x"' hwtwctl info -x
gives 2 '\--fd needs a value' hwtwctl info --fd
run hwtwctl
verdict "no command gives 2" [ "$status" -eq 2 ]
gives 2 'no command "nonsense"' hwtwctl nonsense
gives 1 'cannot write to stdout' sh -c 'hwtwctl info >/dev/full'

#
# info
#

gives 0 '^features .*periodic' hwtwctl info
json info hwtwctl info --json
gives 0 '^clock *monotonic' hwtwctl info --fd 5 5<>/dev/hwtw
gives 1 'descriptor 5 is not of /dev/hwtw' hwtwctl info --fd 5 5</dev/null
gives 2 'descriptor 9 is not open' hwtwctl info --fd 9
gives 2 'must be a number' hwtwctl info --fd x
gives 2 'must be a number' hwtwctl info --fd -1
gives 2 'must be a number' hwtwctl info --pid 0

#
# arm
#

in_order() {
	lines 3 && [ "$(awk '{ print $2 }' $out | tr '\n' ' ')" = "10ms 20ms 30ms " ]
}
run hwtwctl arm 30ms 10ms 20ms
verdict "arm: a line for each, in the order of their times" in_order
never_early() {
	lines 1 && awk '{ exit !($1 >= 0.25 && $1 < 60) }' $out
}
run hwtwctl arm 0.25s
verdict "arm: not early" never_early
every() {
	lines 4 && [ "$(grep -c 'every 10ms #' $out)" -ge 3 ]
}
run hwtwctl arm --every 10ms 5ms --count 4
verdict "arm: --every and --count" every
json arm hwtwctl arm --json 1ms --every 2ms --count 3
json arm-command hwtwctl arm --json 1ms -- true
commands() {
	[ "$status" -eq 0 ] && [ "$(cat $out)" = "10ms 1 0
20ms 1 0" ]
}
# shellcheck disable=SC2016 # not this shell's
run hwtwctl arm 20ms 10ms -- \
	sh -c 'echo $HWTWCTL_TIMER $HWTWCTL_NUMBER $HWTWCTL_OVERRUNS'
verdict "arm: the command and its environment" commands
overruns() {
	lines 2 && awk '$1 != last + 1 + $2 { bad = 1 }
		{ last = $1; more = $2 }
		END { exit bad || !more }' $out
}
# shellcheck disable=SC2016
run hwtwctl arm --every 10ms --count 2 -- \
	sh -c 'echo $HWTWCTL_NUMBER $HWTWCTL_OVERRUNS; sleep 0.2'
verdict "arm: periods that pass while a command runs are counted" overruns
run hwtwctl arm 1ms 2ms -- sh -c 'echo called; exit 7'
both_called() {
	[ "$status" -eq 1 ] && [ "$(cat $out)" = "called
called" ]
}
verdict "arm: a command that fails gives 1 and ends nothing" both_called
for clock in monotonic boottime realtime; do
	gives 0 '1ms' hwtwctl arm --clock $clock 1ms
done
gives 0 'every 70us #[2-9]' hwtwctl arm --tick 70us --every 70us --count 2
gives 1 'cannot run /no/such: No such file' hwtwctl arm 1ms -- /no/such
gives 2 'no command behind "--"' hwtwctl arm 1ms --
gives 2 'no time to arm' hwtwctl arm
gives 2 'must be at least one tick' hwtwctl arm --every 1us
gives 2 '\--clock nonsense: must be' hwtwctl arm --clock nonsense 1s
gives 2 'must be from' hwtwctl arm --tick 1us 1s
gives 2 'must be more than nothing' hwtwctl arm --tick 0 1s
gives 2 'must be a number' hwtwctl arm --count 0 1s

for t in '' s 5q 1.2.3s . .5s 5. 5s3 3s5 -1s 1e3 0x10 '1 s' 9223372037s 300y 99999999999w; do
	gives 2 'not a time such as' hwtwctl arm --every "$t"
done

#
# stat and monitor
#

gives 0 'no instance is open' hwtwctl stat
json stat-none hwtwctl stat --json
background hwtwctl arm 1h 2h --every 3h
gives 0 "process $pid (hwtwctl), descriptor 3: instance [1-9][0-9]*, monotonic, tick 1.049ms" \
	hwtwctl stat
numbered() {
	[ "$(sed -n 's/^process.* instance \([0-9]*\),.*/\1/p' $out)" = \
		"$(sed -n 's/^hwtw-instance:\t//p' /proc/$pid/fdinfo/3)" ]
}
verdict "stat: the number that tracepoints have" numbered
gives 0 '^  pending  *3$' hwtwctl stat --pid $pid --fd 3
json stat hwtwctl stat --json
gives 2 'of which process' hwtwctl stat --fd 3
gives 1 'no process 2147483647' hwtwctl stat --pid 2147483647
gives 1 'not of /dev/hwtw' hwtwctl stat --pid $pid --fd 1
shared() {
	[ "$status" -eq 0 ] && [ "$(grep -c '^process' $out)" -eq 2 ] &&
		grep -q '^  descriptors *[2-9]' $out
}
run hwtwctl stat 5<>/dev/hwtw 6<&5
verdict "stat: copies of a descriptor are one instance" shared
end

tables() {
	lines "$1" && [ "$(grep -c "^ *$pid root .* monot .* hwtwctl$" $out)" -eq 3 ] &&
		[ "$(grep -c 'instances 1, pending [01], unread [01]$' $out)" -eq 3 ]
}
background hwtwctl arm --every 2ms
run hwtwctl monitor --count 3 --interval 200ms
verdict "monitor: a table for each look" tables 12
rates() {
	awk "\$1 == $pid { print \$10 }" $out | tr '\n' ' ' |
		awk '{ exit !($1 == "-" && $2 > 50 && $2 <= 600 && $3 > 50 && $3 <= 600) }'
}
verdict "monitor: records read a second" rates
json monitor hwtwctl monitor --count 3 --interval 200ms --json
for sort in pending unread rate memory pid; do
	gives 0 "^ *$pid " hwtwctl monitor --count 1 --sort $sort
done
gives 2 '\--sort nonsense: must be' hwtwctl monitor --sort nonsense
gives 2 'must be from' hwtwctl monitor --interval 1ms
end

sorted() {
	[ "$status" -eq 0 ] &&
		[ "$(sed -n '3,$p' $out | awk '{ print $5 }' | tr '\n' ' ')" = "3 2 1  " ]
}
hwtwctl arm 1h >/dev/null & p1=$!
hwtwctl arm 1h 1h 1h >/dev/null & p3=$!
background hwtwctl arm 1h 1h
sleep 0.2
run hwtwctl monitor --count 1
verdict "monitor: the most pending first" sorted
kill $p1 $p3
end

# The kernel's own terminal has 25 lines of 80, and tells what is on it.
adduser -D -H -s /bin/sh someone 2>/dev/null ||
	echo 'someone:x:1000:1000::/:/bin/sh' >>/etc/passwd
echo 'averylongname:x:1001:1000::/:/bin/sh' >>/etc/passwd
screen() {
	fold -w 80 /dev/vcs1 >$out
	[ "$status" -eq 0 ] && [ ! -s $err ] || return 1
	columns=' +[0-9]+ +0 +[-0] +[-0] +[-0] +[-0] +[0-9a-z.]+ +[0-9.]+[KM]? '
	head -n 1 $out | grep -Eq '^[0-9:]+  instances 32 \(22 shown\), pending 4, unread 0 *$' &&
		sed -n 2p $out | grep -q '^    PID USER       FD  PEND UNREAD .* MEM COMMAND$' &&
		sed -n 3p $out | grep -Eq "^ {0,6}$p1 someone     3 ${columns}hwtwctl\$" &&
		sed -n 4p $out | grep -Eq "^ {0,6}$pid averylon    3 ${columns}hwtwctl\$" &&
		[ "$(sed -n '5,24p' $out | grep -Ec "^ *[0-9]+ root        0 ${columns}sleep  \$")" -eq 20 ] &&
		sed -n 25p $out | grep -q '^ *$'
}
chmod 666 /dev/hwtw
sleepers=
while [ "$(echo $sleepers | wc -w)" -lt 30 ]; do
	sleep 1000 <>/dev/hwtw &
	sleepers="$sleepers $!"
done
background su someone -c 'exec hwtwctl arm 1h 1h 1h'
p1=$pid
background su averylongname -c 'exec hwtwctl arm 1h'
TERM=linux hwtwctl monitor --count 2 --interval 200ms <>/dev/tty1 >&0 2>$err
status=$?
verdict "monitor: fits a terminal of 80 columns, with more instances than lines" screen
chmod 600 /dev/hwtw
kill $p1 $sleepers
end

#
# dump: what is in the file, and what becomes of a duration
#

# dump_values PID: "CLOCK_NS DEADLINE INTERVAL USER_DATA" of each timer.
dump_values() {
	hwtwctl dump --pid "$1" - |
		awk '$1 == "clock_ns" { now = $2 } /^[0-9]/ { print now, $0 }'
}

# seconds TEXT: whether a timer of hwtwctl arm TEXT is due in so many seconds.
seconds() {
	background hwtwctl arm "$1"
	dump_values $pid >$out
	end
	awk -v want="$2" '{ left = ($2 - $1) / 1e9; found = left <= want && left > want - 30 }
		END { exit !found }' $out
}

status=0
while read -r text want; do
	verdict "arm: $text is $want seconds" seconds "$text" "$want"
done <<END
90 90
1m30s 90
1.5m 90
5min 300
1h30m 5400
1.5h 5400
0.5d 43200
2d 172800
1w 604800
3600000ms 3600
3600000000us 3600
3600000000000ns 3600
1h0.5s 3600.5
9223372036s 9223372036
END

background hwtwctl arm 1h 2h --every 30m
dump=/tmp/arm.hwtw
gives 0 "$dump: 3 timers" hwtwctl dump --pid $pid $dump
order() {
	[ "$(awk '/^[0-9]/ { print $2, $3 }' $dump | tr '\n' ' ')" = \
		"1800000000000 0 0 1 0 2 " ] && [ "$(head -n 1 $dump)" = "hwtw-dump 1" ]
}
verdict "dump: intervals and user data, in the order of deadlines" order
verdict "dump: for its owner only" [ "$(stat -c %a $dump)" = 600 ]
verdict "dump: leaves nothing beside it" [ "$(echo $dump*)" = $dump ]
verdict "dump: leaves the timers" \
	sh -c "hwtwctl stat --pid $pid | grep -q '^  pending  *3$'"
json dump hwtwctl dump --pid $pid --fd 3 --json /tmp/other.hwtw
gives 1 'has no descriptor 77' hwtwctl dump --pid $pid --fd 77 /tmp/x
gives 1 'is not of /dev/hwtw' hwtwctl dump --pid $pid --fd 1 /tmp/x
gives 1 'No such file or directory; there is no new dump\|/nowhere/x' \
	hwtwctl dump --pid $pid /nowhere/x
gives 1 'has no instance' hwtwctl dump --pid 1 /tmp/x
gives 1 'No such process' hwtwctl dump --pid 2147483647 /tmp/x
gives 2 'into which file' hwtwctl dump --pid $pid
gives 2 'which instance' hwtwctl dump /tmp/x
gives 2 'what is "/tmp/y"' hwtwctl dump --pid $pid /tmp/x /tmp/y
verdict "dump: what failed left no file" [ ! -e /tmp/x ]
gives 2 'has 2 instances: choose one' \
	sh -c 'hwtwctl dump --pid $$ /tmp/x; exit $?' 5<>/dev/hwtw 6<>/dev/hwtw

# A disk that is full: the old file stays.
mkdir /tmp/full
mount -t tmpfs -o size=8k none /tmp/full
hwtwctl dump --pid $pid /tmp/full/d >/dev/null
cp /tmp/full/d /tmp/before
cat /dev/zero >/tmp/full/zero 2>/dev/null
gives 1 'No space left on device; there is no new dump' hwtwctl dump --pid $pid /tmp/full/d
intact() {
	cmp /tmp/full/d /tmp/before && [ "$(echo /tmp/full/*)" = "/tmp/full/d /tmp/full/zero" ]
}
verdict "dump: the old file is whole, and there is no other" intact
end

#
# restore
#

# timers FILE: the lines of its timers.
timers() {
	grep '^[0-9]* [0-9]* [0-9]*$' "$1"
}

same() {
	[ "$status" -eq 0 ] && timers $dump >/tmp/want && timers "$1" | cmp - /tmp/want
}
# shellcheck disable=SC2016
run sh -c 'hwtwctl restore $0 --fd 5 && hwtwctl dump --fd 5 /tmp/again' $dump 5<>/dev/hwtw
verdict "restore: the same timers in a descriptor of this shell" same /tmp/again
# shellcheck disable=SC2016
run hwtwctl restore $dump -- sh -c 'hwtwctl dump --fd 3 -
	echo "$LISTEN_FDS $LISTEN_FDNAMES $((LISTEN_PID - $$))"'
verdict "restore: the same timers in descriptor 3 of a command" same $out
verdict "restore: the environment says so" [ "$(tail -n 1 $out)" = "1 hwtw 0" ]
# shellcheck disable=SC2016
run sh -c 'hwtwctl dump --fd 5 - | hwtwctl restore - -- hwtwctl dump --fd 3 -' \
	5<>/dev/hwtw
verdict "restore: an empty instance, through a pipe" grep -q '^timers 0$' $out
run hwtwctl restore $dump -- sh -c 'exit 9'
verdict "restore: the status is the command's" [ "$status" -eq 9 ]
gives 127 'cannot run /no/such' hwtwctl restore $dump -- /no/such
gives 126 'cannot run /tmp' hwtwctl restore $dump -- /tmp
json restore hwtwctl restore --json $dump --fd 5 5<>/dev/hwtw
gives 1 '/tmp/none: No such file' hwtwctl restore /tmp/none --fd 5 5<>/dev/hwtw
gives 2 'from which file' hwtwctl restore --fd 5
gives 2 'for whom' hwtwctl restore $dump
gives 2 'descriptor 9 is not open' hwtwctl restore $dump --fd 9
gives 1 'descriptor 5 is not of /dev/hwtw' hwtwctl restore $dump --fd 5 5</dev/null

# What has expired since, or long before, is read at once; "never" stays.
due() {
	[ "$status" -eq 0 ] && grep -q '^  unread  *2$' $out && grep -q '^  pending  *2$' $out
}
run hwtwctl restore /root/other_boot.hwtw -- sh -c 'hwtwctl dump --fd 3 /tmp/again; hwtwctl stat'
verdict "restore: of another boot, what is due is unread" due
left() {
	awk '$1 == "clock_ns" { now = $2 }
		$3 == 3 { hour = ($1 - now) / 1e9 }
		$3 == 4 { never = $1 }
		END { exit !(hour > 3000 && hour < 3700 && never == "9223372036854775807") }' \
		/tmp/again
}
verdict "restore: and the rest is due at the same time of day" left
gives 0 'of another boot: due at the same time of day' \
	hwtwctl restore /root/other_boot.hwtw --fd 5 5<>/dev/hwtw
boottime() {
	[ "$status" -eq 0 ] && grep -q '^clock boottime$' $out && grep -q '^tick_ns 65536$' $out &&
		grep -q '^max_timers 10$' $out && grep -q '^timers 1$' $out
}
run hwtwctl restore /root/boottime.hwtw -- hwtwctl dump --fd 3 -
verdict "restore: clock, tick and limit" boottime
# shellcheck disable=SC2016
gives 1 'runs on the clock monotonic, the dump on boottime' \
	sh -c 'hwtwctl restore $0 --fd 5 >/dev/null; hwtwctl restore /root/boottime.hwtw --fd 5' \
	$dump 5<>/dev/hwtw

# All or none.
limit=/sys/module/hwtw/parameters/max_timers
former=$(cat $limit)
echo 2 >$limit
none_left() {
	[ "$status" -eq 1 ] && grep -q 'limit on timers is reached; none was left' $err &&
		grep -q '^  pending  *0$' $out && grep -q '^  cancelled  *2$' $out
}
# shellcheck disable=SC2016
run sh -c 'hwtwctl restore $0 --fd 5; r=$?; hwtwctl stat; exit $r' $dump 5<>/dev/hwtw
verdict "restore: beyond the limit gives 1, and none is left armed" none_left
echo "$former" >$limit

# Damage. The files are named after what is wrong with them.
untouched() {
	[ "$status" -eq 5 ] && [ "$(wc -l <$err)" -eq 1 ] && grep -q '^  armed  *0$' $out
}
for bad in /root/bad_*; do
	# shellcheck disable=SC2016
	run sh -c 'hwtwctl restore $0 --fd 5; r=$?; hwtwctl stat; exit $r' "$bad" 5<>/dev/hwtw
	verdict "restore: ${bad#/root/} gives 5 and arms nothing" untouched
done

#
# bench and selftest
#

gives 0 '^collect its expiry' hwtwctl bench --timers 200 --no-progress
json bench hwtwctl bench --timers 200 --json --no-progress
gives 2 'must be a number from 100' hwtwctl bench --timers 1
progress() {
	[ "$status" -eq 0 ] && grep -q 'round 5 of 5: hwtw_batches' $err
}
run hwtwctl bench --timers 200 --progress
verdict "bench: --progress" progress
gives 0 '^12 passed, 0 failed, 0 skipped$' hwtwctl selftest
json selftest hwtwctl selftest --json

#
# Without rights, without a device
#

background hwtwctl arm 1h
chmod 755 /root
gives 4 "which is root's alone" su someone -c 'hwtwctl info'
chgrp 999 /dev/hwtw
chmod 660 /dev/hwtw
for c in 'info' 'arm 1s' 'bench' 'selftest' "restore /root/boottime.hwtw -- true"; do
	gives 4 'usermod -aG hwtw' su someone -c "hwtwctl $c"
done
gives 4 'no permission to look into' su someone -c "hwtwctl stat --pid $pid"
gives 4 'no permission' su someone -c "hwtwctl dump --pid $pid --fd 3 /tmp/x"
unseen() {
	[ "$status" -eq 0 ] && grep -q 'no instance is open that could be seen' $out &&
		grep -q 'could not be looked into: root sees all' $err
}
run su someone -c "hwtwctl stat"
verdict "stat: says that others are not seen" unseen
chmod 666 /dev/hwtw
gives 0 '^abi' su someone -c 'hwtwctl info'
end
mv /dev/hwtw /tmp/hwtw
for c in 'info' 'arm 1s' 'bench' 'selftest' "restore $dump -- true"; do
	# shellcheck disable=SC2086 # words
	gives 3 'modprobe hwtw' hwtwctl $c
done
gives 0 'no instance is open' hwtwctl stat
mv /tmp/hwtw /dev/hwtw

echo "1..$n"
exit $failed
