# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Completion of hwtwctl(1) for bash.

_hwtwctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]-} words='' i

	COMPREPLY=()
	# Behind "--" is a command of its own.
	for ((i = 2; i < COMP_CWORD; i++)); do
		[ "${COMP_WORDS[i]}" = -- ] || continue
		if declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
		else
			mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
		fi
		return
	done
	if [ "$COMP_CWORD" -eq 1 ]; then
		words="info arm stat monitor bench selftest dump restore --help"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
	fi
	case $prev in
	--pid)
		# Those that have it open, as far as one may see.
		words=$(hwtwctl stat --json 2>/dev/null |
			grep -o '"pid":[0-9]*' | cut -d: -f2)
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
		;;
	--clock)
		mapfile -t COMPREPLY < <(compgen -W "monotonic boottime realtime" -- "$cur")
		return
		;;
	--sort)
		words="pending unread rate memory pid"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
		;;
	--fd | --every | --count | --tick | --interval | --timers) return ;;
	esac
	case $command in
	info | stat) words="--pid --fd" ;;
	arm) words="--every --count --clock --tick --" ;;
	monitor) words="--interval --count --sort" ;;
	bench) words="--timers --progress --no-progress" ;;
	selftest) ;;
	dump) words="--pid --fd" ;;
	restore) words="--fd --" ;;
	*) return ;;
	esac
	case $command,$cur in
	*,-*) mapfile -t COMPREPLY < <(compgen -W "$words --json --help" -- "$cur") ;;
	dump,* | restore,*)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		;;
	*) mapfile -t COMPREPLY < <(compgen -W "$words --json --help" -- "$cur") ;;
	esac
}

complete -F _hwtwctl hwtwctl
