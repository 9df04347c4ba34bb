# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Completion for kofiblk, kofiblk-config and kofiblk-server, with the commands and options that
# their --help lists.

_kofiblk_commands()
{
	case ${1##*/} in
	kofiblk-server) echo start stop status ;;
	*) "$1" --help 2> /dev/null | sed -n 's/^    \([a-z][a-z-]*\)\( .*\)\?$/\1/p' ;;
	esac
}

# _kofiblk_options PROGRAM COMMAND
_kofiblk_options()
{
	[ "$1/$2" != kofiblk-server/start ] && [ "$1/$2" != kofiblk-server/stop ] || return
	"$1" "$2" --help 2> /dev/null | grep -o -e '--[a-z][a-z-]*' | sort -u
}

# _kofiblk_disks COMMAND: print the disks that the command may be about
_kofiblk_disks()
{
	local disk
	case $1 in
	disconnect | list | reset | accept-loss | set-secret)
		for disk in /sys/block/kofiblk*; do
			[ ! -e "$disk" ] || echo "${disk##*/}"
		done ;;
	esac
}

# _kofiblk_names OPTION: print the names of providers, fabrics or domains that kofi_info lists
_kofiblk_names()
{
	local field=${1/#prov/provider}
	kofi_info 2> /dev/null | sed -n "s/^ *$field: //p" | sort -u
}

_kofiblk()
{
	local command=${COMP_WORDS[1]-} words
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		words=$(_kofiblk_commands "$1")
	elif [[ $3 = --config || $3 = --secret-file || ${1##*/} = kofiblk-config && $2 != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
		return
	elif [[ $3 = --prov || $3 = --fabric || $3 = --domain ]]; then
		words=$(_kofiblk_names "${3#--}")
	elif [[ $2 = -* ]]; then
		words=$(_kofiblk_options "$1" "$command")
	else
		words=$(_kofiblk_disks "$command")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$2")
}

complete -o filenames -F _kofiblk kofiblk kofiblk-config kofiblk-server
