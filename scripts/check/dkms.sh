#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
#   dkms.sh 6.1|6.12...
#
# Debian's dkms builds, installs and removes this tree for these kernels, in directories
# of its own. Then dpkg installs and removes the package of make deb, with modules for the
# first of them, in an overlay of the root directory. Nothing is installed on this machine.
# Exit status 3: it takes root, and dkms.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

# installed DIR: print the installed modules, headers and symbols.
installed()
{
	(cd "$1" && find . -name '*.ko*' -o -name Module.symvers -o -name '*.h' | sort)
}

expected()
{
	local module
	for module in efasim kofi kofi_cm kofi_efa kofi_loop kofi_msg kofi_pingpong kofi_rc kofi_ulp kofiblk \
			kofiblk_common kofiblk_srv; do
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
	copy_sources "$work/src/kofi-0.1"
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

# overlay_works DIR: it doesn't in a container whose own root is an overlay
overlay_works()
{
	mkdir -p "$1"/{upper,work,merged}
	unshare --mount mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" \
		overlay "$1/merged" 2> /dev/null
}

# in_overlay DIR HEADERS: have dpkg install and remove DIR/upper/kofi-dkms.deb, with / below, but
# without the modules of this machine's own kernel if that is the same release.
in_overlay()
{
	# shellcheck disable=SC2016
	unshare --mount sh -e -c '
		mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/merged"
		for dir in /dev /proc /sys "$2"; do
			mkdir -p "$1/merged$dir"
			mount --rbind "$dir" "$1/merged$dir"
		done
		modules=/lib/modules/${2##*/linux-headers-}
		exec chroot "$1/merged" sh -e -c "
			rm -rf $modules
			mkdir -p $modules /etc/dkms
			ln -sfn $2 $modules/build
			echo autoinstall_all_kernels=yes > /etc/dkms/framework.conf
			dpkg -i /kofi-dkms.deb
			find $modules -name \"*.ko*\" | sort > /installed
			kofiblk --help > /dev/null
			dpkg -r kofi-dkms
			dkms status kofi > /left
			find $modules/updates $modules/kofi /usr/src/kofi-* /usr/sbin/kofi* \
				>> /left 2> /dev/null || :"
		' sh "$@"
}

package()
{
	local version=$1 work=$2 headers deb
	headers=$("$KOFI_TOP/scripts/kernel.sh" headers "$version")
	mkdir -p "$work"/{upper,work,merged}
	deb=$("$KOFI_TOP/scripts/deb.sh" "$work")
	mv "$deb" "$work/upper/kofi-dkms.deb"
	in_overlay "$work" "$headers"
	diff <(expected | sed 's,.*/,,') <(sed 's,.*/,,; s,\.ko.*,.ko,' "$work/upper/installed")
	! grep . "$work/upper/left" || { echo "dpkg -r left these"; return 1; }
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
	if ! overlay_works "$work/probe"; then
		say "dkms: skipped the package: no overlay of / in $work"
		return
	fi
	package "$1" "$work" > "$work/log" 2>&1 < /dev/null
	: > "$work/log"
	say "dkms: the package was installed and removed, with modules for $1"
}

main "$@"
