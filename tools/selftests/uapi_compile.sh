#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/selftests/uapi_compile.sh
#
# Compiles uapi/linux/hwtw.h alone as strict C90, as C++ and for 32 bits, and
# checks sizes, offsets and command numbers against the figures below, which
# never change once released. Prints TAP; fails if any of it fails.
#
#   CC, CXX   compilers (gcc, g++)

set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
cc=${CC:-gcc}
cxx=${CXX:-g++}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nr=0
failed=0

# Where <asm/...> is for -m32 on a system without 32-bit packages.
m32=(-m32 -isystem "/usr/include/$("$cc" -print-multiarch 2>/dev/null)")

# check NAME COMMAND...
check() {
	local name=$1
	shift
	nr=$((nr + 1))
	if "$@" >"$tmp/out" 2>&1; then
		echo "ok $nr $name"
	else
		echo "not ok $nr $name"
		sed 's/^/# /' "$tmp/out"
		failed=1
	fi
}

# skip NAME REASON
skip() {
	nr=$((nr + 1))
	echo "ok $nr $1 # SKIP $2"
}

# layout: static_asserts of the frozen ABI. Struct, member, offset; a dash
# stands for the size.
layout() {
	local struct member name value
	echo '#include <stddef.h>'
	echo '#include <linux/hwtw.h>'
	while read -r struct member value; do
		case $member in
		'') ;;
		-) echo "_Static_assert(sizeof(struct $struct) == $value, \"$struct\");" ;;
		*) echo "_Static_assert(offsetof(struct $struct, $member) == $value, \"$struct.$member\");" ;;
		esac
	done <<-END
		hwtw_info	-		64
		hwtw_info	abi		0
		hwtw_info	clockid		4
		hwtw_info	features	8
		hwtw_info	tick_ns		16
		hwtw_info	tick_min_ns	24
		hwtw_info	tick_max_ns	32
		hwtw_info	max_timers	40
		hwtw_info	max_timers_total 48
		hwtw_info	event_size	56
		hwtw_info	max_batch	60
		hwtw_setup	-		24
		hwtw_setup	clockid		0
		hwtw_setup	flags		4
		hwtw_setup	tick_ns		8
		hwtw_setup	max_timers	16
		hwtw_timer	-		40
		hwtw_timer	id		0
		hwtw_timer	user_data	8
		hwtw_timer	time_ns		16
		hwtw_timer	interval_ns	24
		hwtw_timer	flags		32
		hwtw_timer	state		36
		hwtw_op		-		48
		hwtw_op		opcode		0
		hwtw_op		result		4
		hwtw_op		timer		8
		hwtw_submit	-		16
		hwtw_submit	ops		0
		hwtw_submit	nr		8
		hwtw_submit	done		12
		hwtw_list	-		24
		hwtw_list	timers		0
		hwtw_list	nr		8
		hwtw_list	flags		12
		hwtw_list	cursor		16
		hwtw_stats	-		144
		hwtw_stats	armed		0
		hwtw_stats	rearmed		8
		hwtw_stats	cancelled	16
		hwtw_stats	cancelled_pending	24
		hwtw_stats	withdrawn	32
		hwtw_stats	expired		40
		hwtw_stats	delivered	48
		hwtw_stats	completed	56
		hwtw_stats	overruns	64
		hwtw_stats	pending		72
		hwtw_stats	unread		80
		hwtw_stats	cascaded	88
		hwtw_stats	dropped		96
		hwtw_stats	runs		104
		hwtw_stats	longest_run_ns	112
		hwtw_stats	lag_ticks	120
		hwtw_stats	late_ticks	128
		hwtw_stats	memory		136
		hwtw_event	-		32
		hwtw_event	user_data	0
		hwtw_event	id		8
		hwtw_event	expires_ns	16
		hwtw_event	overruns	24
		hwtw_event	flags		28
	END
	while read -r name value; do
		echo "_Static_assert($name == $value, \"$name\");"
	done <<-END
		HWTW_IOC_INFO		0x8040bd00
		HWTW_IOC_SETUP		0x4018bd01
		HWTW_IOC_ARM		0xc028bd02
		HWTW_IOC_REARM		0xc028bd03
		HWTW_IOC_CANCEL		0xc028bd04
		HWTW_IOC_QUERY		0xc028bd05
		HWTW_IOC_SUBMIT		0xc010bd06
		HWTW_IOC_LIST		0xc018bd07
		HWTW_IOC_STATS		0x8090bd08
		HWTW_LIST_CANCEL	1
		HWTW_ABI		1
		HWTW_TICK_MIN_NS	65536
		HWTW_TICK_DEFAULT_NS	1048576
		HWTW_TICK_MAX_NS	1073741824
		HWTW_TIME_MAX_NS	0x7fffffffffffffffULL
		HWTW_BATCH_MAX		65536
		HWTW_TIMER_ABS		1
		HWTW_PENDING		1
		HWTW_EXPIRED		2
		HWTW_OP_ARM		1
		HWTW_OP_REARM		2
		HWTW_OP_CANCEL		3
		HWTW_OP_QUERY		4
		HWTW_FEATURE_PERIODIC	1
		HWTW_FEATURE_REALTIME	2
		HWTW_FEATURE_LIST	4
		HWTW_FEATURE_STATS	8
	END
	# Signs matter to those who compare.
	echo '_Static_assert(HWTW_TIME_MAX_NS + 1 > 0, "unsigned");'
	echo '_Static_assert((__typeof__(((struct hwtw_op *)0)->result))-1 < 0, "signed");'
	echo 'int main(void) { return 0; }'
}

header=(-I"$top/uapi" -fsyntax-only)
strict=(-Wall -Wextra -Werror -pedantic "${header[@]}")

echo '#include <linux/hwtw.h>' >"$tmp/alone.c"
cp "$tmp/alone.c" "$tmp/alone.cc"
# Twice, and after others: the guard, and names of others.
printf '#include <%s>\n' stdio.h sys/ioctl.h linux/hwtw.h time.h linux/hwtw.h \
	>"$tmp/twice.c"
layout >"$tmp/layout.c"
# C++ has the same assertions under their other name.
sed 's/_Static_assert/static_assert/' "$tmp/layout.c" >"$tmp/layout.cc"

echo "TAP version 13"
check "alone, C90" "$cc" -std=c90 "${strict[@]}" "$tmp/alone.c"
check "alone, C99" "$cc" -std=c99 "${strict[@]}" "$tmp/alone.c"
check "twice and with others" "$cc" -std=gnu11 "${strict[@]}" "$tmp/twice.c"
check "no padding" "$cc" -std=gnu11 "${strict[@]}" -Wpadded "$tmp/alone.c"
check "layout" "$cc" -std=gnu11 -Wall -Wextra -Werror "${header[@]}" "$tmp/layout.c"
if command -v "$cxx" >/dev/null; then
	check "alone, C++17" "$cxx" -std=c++17 "${strict[@]}" "$tmp/alone.cc"
	check "layout, C++17" "$cxx" -std=gnu++17 -Wall -Wextra -Werror \
		"${header[@]}" "$tmp/layout.cc"
else
	skip "alone, C++17" "no $cxx"
	skip "layout, C++17" "no $cxx"
fi
if "$cc" -m32 -fsyntax-only -x c /dev/null 2>/dev/null; then
	check "alone, C90, 32 bits" "$cc" "${m32[@]}" -std=c90 "${strict[@]}" \
		"$tmp/alone.c"
	check "no padding, 32 bits" "$cc" "${m32[@]}" -std=gnu11 "${strict[@]}" \
		-Wpadded "$tmp/alone.c"
	check "layout, 32 bits" "$cc" "${m32[@]}" -std=gnu11 -Wall -Wextra \
		-Werror "${header[@]}" "$tmp/layout.c"
else
	skip "32 bits" "$cc has no -m32"
fi
echo "1..$nr"
exit $failed
