#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
#   installed.sh 6.1|6.12
#
# Prints a directory with the files of make modules_install install, and in my_ulp/ the module
# of samples/template, built outside of the tree with only these files.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

install_all()
{
	local built=$1 kernel=$2 out=$3 devel release make
	rm -rf "$out"
	release=$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$kernel/include/generated/utsrelease.h")
	# An installed kernel has these files, and depmod wants them.
	mkdir -p "$out/lib/modules/$release"
	touch "$out/lib/modules/$release/modules."{builtin,builtin.modinfo,order}
	# modules.order has the names that the modules had when they were built.
	make=(make -s -C "$built")
	! grep -q "^$PLACE/" "$built/modules.order" ||
		make=(at_place "${built%/src}" make -s -C "$PLACE/src")
	"${make[@]}" KDIR="$kernel" INSTALL_MOD_PATH="$out" DESTDIR="$out" \
		modules_install install 2>&1 | tee "$out/install.log"
	# Beside the modules, where modprobe of the kernel looks for them.
	devel=$(echo "$out"/lib/modules/*/updates)/../kofi
	cp -r "$built/samples/template" "$out/my_ulp"
	make -s -C "$out/my_ulp" KDIR="$kernel" KOFI="$devel" KCFLAGS=-Werror \
		2>&1 | tee "$out/my_ulp/log"
	# Warnings of modpost, of an unknown symbol or a namespace, are no errors for make.
	! grep -i 'warning:' "$out/my_ulp/log"
}

main()
{
	local version=${1:?6.1 or 6.12} built kernel out
	kernel=$("$KOFI_TOP/scripts/kernel.sh" headers "$version")
	built=$("$KOFI_TOP/scripts/build.sh" "product-$version")
	out=${built%/src}/installed
	log=${built%/src}/install.log
	# Not as a condition, which would switch off set -e inside.
	trap 'tail -n 30 "$log" >&2' EXIT
	locked "build-$(basename "${built%/src}")" install_all "$built" "$kernel" "$out" \
		> "$log" 2>&1 < /dev/null
	trap - EXIT
	echo "$out"
}

main "$@"
