#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
#   dkms.sh 6.1|6.12...
#
# Debian's dkms builds, installs and removes this tree for these kernels, in directories
# of its own: nothing is installed on this machine. Exit status 3: it takes root.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

# Of what install put there, modules and what others are built with.
installed()
{
	(cd "$1" && find . -name '*.ko*' -o -name Module.symvers -o -name '*.h' | sort)
}

expected()
{
	local module
	for module in efasim kofi kofi_efa kofi_loop kofi_pingpong kofiblk kofiblk_common \
			kofiblk_srv; do
		echo "./updates/dkms/$module.ko"
	done
}

one()
{
	local version=$1 work=$2 headers release left name=kofi/0.1
	headers=$("$KOFI_TOP/scripts/kernel.sh" headers "$version")
	release=${headers##*/linux-headers-}
	# dkms wants to find the kernel's configuration there.
	mkdir -p "$work"/{src/kofi-0.1,dkms,modules/"$release"}
	ln -sfn "$headers" "$work/modules/$release/build"
	rsync -rlp --exclude /.git --filter ':- .gitignore' "$KOFI_TOP"/ "$work/src/kofi-0.1/"
	set -- --dkmstree "$work/dkms" --sourcetree "$work/src" \
		--installtree "$work/modules" --kernelsourcedir "$headers" \
		-k "$release" -a x86_64 --no-depmod
	# The kernel's makefiles are told where it is by its link in the module tree.
	[ -e "$work/dkms/kofi" ] || dkms add "$name" "$@"
	if ! dkms build "$name" "$@"; then
		cat "$work"/dkms/kofi/0.1/build/make.log
		return 1
	fi
	dkms install "$name" "$@"
	diff <(expected) <(installed "$work/modules/$release" | sed -n 's,\.ko.*,.ko,p')
	# A module of one's own builds against it.
	cp -r "$KOFI_TOP/samples/template" "$work/ulp-$version"
	make -s -C "$work/ulp-$version" KDIR="$headers" KOFI="$work/modules/$release/kofi" \
		KCFLAGS=-Werror
	dkms remove "$name" "$@"
	left=$(installed "$work/modules/$release"; find "$work/dkms" -name "$release")
	[ -z "$left" ] || { echo "dkms remove left $left"; return 1; }
}

main()
{
	local work version
	if [ "$(id -u)" != 0 ] || ! command -v dkms > /dev/null; then
		say "dkms isn't here, or may not run"
		exit 3
	fi
	work=$(mktemp -d)
	# shellcheck disable=SC2064
	trap "tail -n 40 '$work/log' >&2; rm -rf '$work'" EXIT
	for version in "$@"; do
		# Not as a condition, which would switch off set -e inside.
		one "$version" "$work" > "$work/log" 2>&1 < /dev/null
		: > "$work/log"
		say "dkms: built, installed and removed for $version"
	done
}

main "$@"
