#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Kernels for the tests, made or fetched into the cache when they aren't there.
#
#   kernel.sh source            prints the unpacked linux-source-6.12
#   kernel.sh test              prints the test kernel's directory, with
#                                 bzImage, vmlinux, config, build/ (for make -C),
#                                 modules/lib/modules/RELEASE/
#   kernel.sh stock 6.1|6.12    prints the directory of a Debian kernel, with
#                                 vmlinuz, config, modules/lib/modules/RELEASE/
#   kernel.sh headers 6.1|6.12  prints its headers (for make -C)
#
# Nothing is installed. Exit status 3: this distribution doesn't have it.

. "$(dirname "$0")/common.sh"

CONFIG=$KOFI_TOP/tests/qemu/kernel.config
TARBALL=/usr/src/linux-source-6.12.tar.xz
SOURCES=$KOFI_CACHE/source
KERNELS=$KOFI_CACHE/kernel
NOT_HERE=3

hash_of()
{
	sha256sum | cut -c 1-12
}

# --- source ---

source_version()
{
	[ -e "$TARBALL" ] || "$KOFI_TOP/scripts/packages.sh"
	dpkg-query -W -f '${Version}' linux-source-6.12
}

unpack_source()
{
	local dir=$1
	[ ! -e "$dir" ] || return 0
	rm -rf "$dir".tmp
	mkdir -p "$dir".tmp
	# amdgpu's register headers are a third of the tree and nobody's here.
	with_progress "unpacking $TARBALL" "$KOFI_CACHE/unpack.log" . \
		tar -C "$dir".tmp --strip-components 1 -I 'xz -T0' \
		--exclude '*/drivers/gpu/drm/amd/include/*' -xf "$TARBALL"
	mv "$dir".tmp "$dir"
}

source_dir()
{
	local version dir
	version=$(source_version)
	dir=$SOURCES/linux-$version
	[ -e "$dir" ] || locked source unpack_source "$dir"
	echo "$dir"
}

# --- test kernel ---

check_config()
{
	local lost
	lost=$(grep CONFIG_ "$CONFIG" | grep -vxFf "$1" || :)
	[ -z "$lost" ] || die "Kconfig refused these lines of $CONFIG:
$lost"
}

configure()
{
	local src=$1 obj=$2
	make -s -C "$src" O="$obj" allnoconfig > /dev/null
	(cd "$src" && scripts/kconfig/merge_config.sh -m -O "$obj" "$obj/.config" "$CONFIG") > /dev/null
	make -s -C "$src" O="$obj" olddefconfig
	check_config "$obj/.config"
}

# What later builds and boots need, without the objects.
collect()
{
	local src=$1 obj=$2 out=$3
	rm -rf "$out".tmp
	mkdir -p "$out".tmp
	make -s -C "$src" O="$obj" INSTALL_MOD_PATH="$out".tmp/modules INSTALL_MOD_STRIP=1 modules_install
	# shellcheck disable=SC2016
	make -s -C "$obj" run-command \
		KBUILD_RUN_COMMAND='$(srctree)/scripts/package/install-extmod-build '"$out.tmp/build"
	cp "$obj"/arch/x86/boot/bzImage "$obj"/vmlinux "$obj"/System.map "$out".tmp
	cp "$obj"/.config "$out".tmp/config
	make -s -C "$obj" kernelrelease > "$out".tmp/release
	mv "$out".tmp "$out"
}

# The objects stay in one directory for all configurations, so that an
# interrupted build goes on and a changed option builds only what it touches.
build_test()
{
	local src=$1 out=$2 obj=$KERNELS/obj
	[ ! -e "$out" ] || return 0
	mkdir -p "$obj"
	configure "$src" "$obj"
	with_progress "building the test kernel" "$KERNELS/build.log" '^  [A-Z]' \
		make -C "$src" O="$obj" -j"$(nproc)" bzImage modules
	collect "$src" "$obj" "$out"
	prune_test "$out"
}

# Keep the newest two test kernels.
prune_test()
{
	local old
	touch "$1"
	find "$KERNELS" -maxdepth 1 -name 'test-*' -printf '%T@ %p\n' | sort -rn |
		tail -n +3 | cut -d ' ' -f 2- |
		while read -r old; do
			rm -rf "$old"
		done
}

test_dir()
{
	local src out key
	src=$(source_dir)
	key=$({ basename "$src"; gcc --version; cat "$CONFIG"; } | hash_of)
	out=$KERNELS/test-$key
	[ -e "$out" ] || locked kernel build_test "$src" "$out"
	echo "$out"
}

case ${1-} in
source) source_dir ;;
test) test_dir ;;
*) die "usage: kernel.sh source | test | stock VERSION | headers VERSION" ;;
esac
