#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Programs and kernels of Debian 13 and later, on a machine with any release of Debian.
#
#   newest.sh root              prints a directory with the newest kernel of Debian 13's
#                                 backports, its headers and its compiler:
#                                 vmlinuz, config, release, modules/lib/modules/RELEASE/
#   newest.sh make DIR ARG...   runs make for these headers, with DIR at PLACE
#   newest.sh efa               does the same as root, and builds efa.ko, which Debian's
#                                 kernel lacks, among the kernel's modules
#   newest.sh user SUITE        prints a directory with libfabric and rdma-core of Debian 13
#                                 (trixie) or of Debian testing, for processes to have as their
#                                 root
#   newest.sh system SUITE      does the same with systemd, udev and LVM
#
# mmdebstrap unpacks the packages into the cache, once a month. The build runs in a separate mount
# namespace, because the compiler needs its libraries. Exit status 3: the packages aren't
# available, and weren't before.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
MIRROR=http://deb.debian.org/debian
BACKPORTS=trixie-backports
NOT_HERE=3
ROOTS=$KOFI_CACHE/root

# unpack DIR SUITES PACKAGE...: unpack these packages and their dependencies. The lists of testing
# are valid for a week, but those of a mirror may be older; what comes from testing runs only in
# guests.
unpack()
{
	local dir=$1 suites=$2 suite options debootstrap=(mmdebstrap)
	shift 2
	[ "$(id -u)" = 0 ] || debootstrap=(unshare --map-root-user mmdebstrap)
	for suite in $suites; do
		options=signed-by=$KEYS
		[ "$suite" != testing ] || options+=" check-valid-until=no"
		echo "deb [$options] $MIRROR $suite main"
	done > "$ROOTS/sources"
	rm -rf "$dir"
	with_progress "unpacking packages of $suites" "$ROOTS/log" . \
		"${debootstrap[@]}" --mode=root --variant=extract \
		--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
		--aptopt="APT::Default-Release \"${suites##* }\"" \
		--include="$(tr ' ' , <<< "$*")" "" "$dir" "$ROOTS/sources"
	mkdir -p "$dir"/{dev,proc,sys,tmp}
}

# root NAME FINISH SUITES PACKAGE...: print the directory with the packages, which FINISH completes
# before its first use. Guests of other runs may use that of last month.
root()
{
	local name=$1 out last
	out=$ROOTS/$name-$(date +%Y-%m)
	mkdir -p "$ROOTS"
	if ! locked root fetch "$out" "${@:2}"; then
		last=$(find "$ROOTS" -maxdepth 1 -name "$name-????-??" | sort | tail -n 1)
		[ -n "$last" ] || exit $NOT_HERE
		out=$last
	fi
	echo "$out"
}

fetch()
{
	local out=$1 finish=$2
	[ ! -e "$out" ] || return 0
	(unpack "$out.tmp" "${@:3}" && $finish "$out.tmp") >&2 || return
	mv "$out.tmp" "$out"
	# A package may have set the time of the directory.
	touch "$out"
	find "$ROOTS" -maxdepth 1 -path "${out%-*-*}-????-??" -mtime +60 -exec rm -rf {} +
}

# Give the kernel's files the names that they have for Debian's other kernels.
finish_kernel()
{
	local release
	release=$(basename "$1"/usr/src/linux-headers-*-amd64)
	release=${release#linux-headers-}
	[ -e "$1/boot/vmlinuz-$release" ] ||
		ln -s "../usr/lib/modules/$release/vmlinuz" "$1/boot/vmlinuz-$release"
	ln -s "boot/vmlinuz-$release" "$1/vmlinuz"
	ln -s "usr/src/linux-headers-$release/.config" "$1/config"
	ln -s usr "$1/modules"
	ln -sf gawk "$1/usr/bin/awk"
	echo "$release" > "$1/release"
	depmod -b "$1/usr" "$release"
}

kernel()
{
	root kernel finish_kernel "trixie $BACKPORTS" bash binutils ccache coreutils dash diffutils \
		findutils gawk grep kmod linux-headers-amd64 linux-image-amd64 make perl-base sed xz-utils
}

user()
{
	root "user-$1" true "$1" coreutils dash ibverbs-providers ibverbs-utils libfabric-bin
}

system()
{
	root "system-$1" finish_system "$1" base-files bash coreutils dash e2fsprogs fdisk findutils grep kmod \
		libc-bin lvm2 mount procps python3 sed systemd systemd-sysv udev util-linux
}

# Do what the packages' scripts would do.
finish_system()
{
	echo root:x:0:0:root:/root:/bin/bash > "$1/etc/passwd"
	echo root:x:0: > "$1/etc/group"
}

# add_efa ROOT: build the EFA driver of this kernel's source
add_efa()
{
	local root=$1 release version source=$ROOTS/source made=$ROOTS/efa
	[ ! -e "$root/efa" ] || return 0
	release=$(cat "$root/release")
	version=$(cut -d. -f1,2 <<< "${release%%[-+]*}")
	unpack "$source" "trixie $BACKPORTS" "linux-source-$version"
	rm -rf "$made"
	mkdir "$made"
	tar -x -C "$made" --strip-components=5 -f "$source/usr/src/linux-source-$version.tar.xz" \
		"linux-source-$version/drivers/infiniband/hw/efa"
	make_within "$root" "$made" -s M="$PLACE" CONFIG_INFINIBAND_EFA=m \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules > "$root/efa.log" 2>&1 ||
		die "efa.ko doesn't build, see $root/efa.log"
	cp "$made/efa.ko" "$root/usr/lib/modules/$release/kernel/drivers/infiniband/hw/"
	depmod -b "$root/usr" "$release"
	rm -rf "$source" "$made"
	touch "$root/efa"
}

# make_within ROOT DIR ARG...: DIR is at PLACE in the namespace.
make_within()
{
	local root=$1 dir=$2 map=()
	shift 2
	[ "$(id -u)" = 0 ] || map=(--map-root-user)
	mkdir -p "$root$PLACE" "$root$CCACHE_DIR" "$CCACHE_DIR"
	# shellcheck disable=SC2016
	unshare --mount "${map[@]}" \
		sh -e -c 'mount --bind "$2" "$1$3"
			mount --bind "$CCACHE_DIR" "$1$CCACHE_DIR"
			mount --rbind /dev "$1/dev"
			mount --rbind /proc "$1/proc"
			root=$1
			shift 3
			exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin LC_ALL=C HOME=/tmp \
				CCACHE_DIR="$CCACHE_DIR" CCACHE_NOHASHDIR=y \
				make DEBIAN_KERNEL_USE_CCACHE=y -C "$@"' \
		sh "$root" "$dir" "$PLACE" "/usr/src/linux-headers-$(cat "$root/release")" "$@"
}

case ${1-} in
root) kernel ;;
efa)
	root=$(kernel)
	locked root add_efa "$root" >&2
	echo "$root" ;;
user) user "${2:?newest.sh user trixie | testing}" ;;
system) system "${2:?newest.sh system trixie | testing}" ;;
make)
	root=$(kernel)
	make_within "$root" "${@:2}" ;;
*) die "usage: newest.sh root | efa | make DIR ARGUMENT... | user SUITE | system SUITE" ;;
esac
