# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the scripts beside it.

set -euo pipefail

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top_dir=$(cd "$vm_dir/../.." && pwd)
cache=${HWTW_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/hwtw}
me=tools/vm/$(basename "$0")
export vm_dir top_dir cache me

note() {
	printf '%s: %s\n' "$me" "$*" >&2
}

die() {
	note "$*"
	exit 125
}

# The directory of all that is made here, which hides itself from git.
build_dir() {
	mkdir -p "$top_dir/build/$1"
	[ -e "$top_dir/build/.gitignore" ] || echo '*' >"$top_dir/build/.gitignore"
	echo "$top_dir/build/$1"
}

# The leading comment of the script, less its licence line, is its help.
usage() {
	awk 'NR <= 2 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"
}

# as_root CMD...: fails when there is neither root nor a usable sudo.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo "$@"
	elif command -v sudo >/dev/null && [ -t 0 ] && [ -t 2 ]; then
		sudo "$@"
	else
		return 1
	fi
}

apt_update() {
	note "updating the package lists"
	as_root apt-get -qq -o DPkg::Lock::Timeout=120 update >&2
}

# with_lock NAME CMD...: one caller at a time per NAME and cache.
with_lock() {
	local name=$1 status=0 fd
	shift
	mkdir -p "$cache"
	exec {fd}>"$cache/$name.lock"
	if ! flock -n "$fd"; then
		note "waiting for another $name in $cache"
		flock "$fd"
	fi
	"$@" {fd}>&- || status=$?
	exec {fd}>&-
	return $status
}

# scratch: prints a new directory in the cache, and removes what an interrupted
# caller left. All callers hold the lock "fetch".
scratch() {
	rm -rf "$cache"/tmp.*
	mktemp -d "$cache/tmp.XXXXXX"
}

# fetch PACKAGE DIR: download the .deb into DIR.
fetch() {
	local as_root=()
	# Root's downloads are handed to _apt, which may not reach the cache.
	[ "$(id -u)" -ne 0 ] || as_root=(-o APT::Sandbox::User=root)
	note "fetching $1"
	(cd "$2" && apt-get -qq "${as_root[@]}" download "$1") >&2
}
