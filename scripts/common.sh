# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Common functions of the other scripts: the cache, messages, locks.
# Results of long builds are kept outside of the tree, below $KOFI_CACHE.

set -euo pipefail
shopt -s inherit_errexit

# Variables like V=1 of this tree's make have another meaning for the kernel's make.
unset MAKEFLAGS MFLAGS

# Scripts parse apt's output, which is translated to the user's language. The kernel's makefiles
# unset LC_ALL, and perl warns of locales that aren't installed.
unset "${!LC_@}" LANGUAGE
export LANG=C.UTF-8 LC_ALL=C.UTF-8

# depmod is in /usr/sbin, which isn't in every user's PATH. Compilers are run by ccache.
PATH=/usr/lib/ccache:$PATH:/usr/sbin:/sbin

# HOME may be unset in a service.
KOFI_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
KOFI_CACHE=${XDG_CACHE_HOME:-${HOME:-$(getent passwd "$(id -u)" | cut -d : -f 6)}/.cache}/kofi
export KOFI_TOP KOFI_CACHE CCACHE_DIR=$KOFI_CACHE/ccache CCACHE_MAXSIZE=2G CCACHE_NOHASHDIR=y CCACHE_DEPEND=y

# Messages go to stderr, so that a script's stdout has only its result.
say()
{
	echo "$*" >&2
}

die()
{
	say "${0##*/}: $*"
	exit 1
}

case $KOFI_CACHE in
[!/]* | *[[:space:]:]*)
	die "make wants an absolute path without blanks and colons for the cache, in" \
		"XDG_CACHE_HOME: $KOFI_CACHE" ;;
esac
mkdir -p "$KOFI_CACHE/lock"

# as_root COMMAND...: run it as root; fails if that needs a password.
as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n true 2> /dev/null && sudo "$@"
	fi
}

# locked NAME COMMAND...: run it, one at a time on this machine.
locked()
{
	local name=$1 fd rc
	shift
	exec {fd}> "$KOFI_CACHE/lock/$name"
	if ! flock -n "$fd"; then
		say "$name: another run is at it, waiting"
		flock "$fd"
	fi
	"$@"
	rc=$?
	exec {fd}>&-
	return $rc
}

# own_dir PARENT [SUFFIX]: print this checkout's directory in PARENT. A new checkout takes over the
# directory of one that was deleted, because make then builds only what differs.
own_dir()
{
	locked own-dir find_own_dir "$@"
}

find_own_dir()
{
	local dir owner free=
	mkdir -p "$1"
	for dir in "$1"/????????"${2-}"; do
		owner=$(cat "$dir/.checkout" 2> /dev/null) || continue
		if [ "$owner" = "$KOFI_TOP" ]; then
			echo "$dir"
			return
		fi
		# In the first hour a guest may still be running the modules.
		[ -d "$owner" ] || [ -z "$(find "$dir" -maxdepth 0 -mmin +60)" ] || free=$dir
	done
	dir=${free:-$(mktemp -d --suffix="${2-}" "$1/XXXXXXXX")}
	echo "$KOFI_TOP" > "$dir/.checkout"
	echo "$dir"
}

# copy_sources DIR: make DIR a copy of this checkout, in which objects are kept. It compares contents,
# not times: a file that changed gets a new time, even if it is older than the objects.
copy_sources()
{
	mkdir -p "$1"
	rsync -rlp --checksum --delete --exclude /.git --filter ':-p .gitignore' "$KOFI_TOP"/ "$1"/ >&2
}

# ccache compares paths, too, so all checkouts build at this one, where each sees its own directory.
PLACE=$KOFI_CACHE/build/here

# at_place DIR COMMAND...: run COMMAND with DIR mounted at PLACE. Fails without a message if this user
# may not mount.
at_place()
{
	local enter=(unshare --mount)
	[ "$(id -u)" = 0 ] || enter+=(--map-root-user)
	mkdir -p "$PLACE"
	"${enter[@]}" mount --bind "$1" "$PLACE" 2> /dev/null || return
	# shellcheck disable=SC2016
	"${enter[@]}" sh -c 'mount --bind "$1" "$2"; shift 2; exec "$@"' sh "$1" "$PLACE" "${@:2}"
}

# drop_unused DIR: remove directories of checkouts that weren't built for two weeks.
drop_unused()
{
	find "$1" -mindepth 1 -maxdepth 1 -mtime +14 -exec rm -rf {} +
}

# update_lists MINUTES: update apt's lists of packages, unless they are at most that old.
update_lists()
{
	locked apt-update new_lists "$1"
}

# apt waits for dpkg's lock, but not for that of the lists, which a machine holds for a while
# after booting. Fails if any of the lists can't be downloaded.
new_lists()
{
	local stamp=$KOFI_CACHE/apt-update log=$KOFI_CACHE/apt-update.log start=$SECONDS said=
	[ -z "$(find "$stamp" -mmin "-$1" 2> /dev/null)" ] || return 0
	until as_root apt-get -qq -o APT::Update::Error-Mode=any update > "$log" 2>&1; do
		if ! grep -q /lists/lock "$log" || ((SECONDS - start >= 300)); then
			cat "$log" >&2
			return 1
		fi
		[ -n "$said" ] || say "apt's package lists are locked, waiting"
		said=y
		sleep 2
	done
	touch "$stamp"
}

# with_progress WHAT LOG REGEX COMMAND...: output to LOG, every 10 s a line with
# the number of log lines that match REGEX; on failure the end of the log.
with_progress()
{
	local what=$1 log=$2 regex=$3 job start=$SECONDS rc=0
	shift 3
	: > "$log"
	"$@" >> "$log" 2>&1 < /dev/null &
	job=$!
	# shellcheck disable=SC2064
	trap "kill $job 2> /dev/null || :" EXIT
	while kill -0 "$job" 2> /dev/null; do
		sleep 1
		if (((SECONDS - start) % 10 == 9)); then
			say "$what: $(grep -cE "$regex" "$log") steps, $((SECONDS - start)) s"
		fi
	done
	wait "$job" || rc=$?
	trap - EXIT
	if ((rc)); then
		tail -n 30 "$log" >&2
		die "$what failed, see $log"
	fi
	say "$what: done, $(grep -cE "$regex" "$log") steps, $((SECONDS - start)) s"
}
