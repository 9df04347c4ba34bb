#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
#   build.sh test|6.1|6.12|newest [MAKE ARGUMENT...]
#   build.sh product-6.1|product-6.12
#   build.sh clean
#
# Builds this checkout's modules, with warnings as errors, against the test kernel, Debian's
# headers or, with its own compiler, Debian's newest kernel, and prints the directory of the
# result. The sources are copied into the cache first, so that kernels don't share objects.
# product-VERSION excludes modules for tests, measurements and demonstrations.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

kernel_build()
{
	local test
	case ${1#product-} in
	newest) "$KOFI_TOP/scripts/newest.sh" root ;;
	test) test=$("$KOFI_TOP/scripts/kernel.sh" test) && echo "$test/build" ;;
	*) "$KOFI_TOP/scripts/kernel.sh" headers "${1#product-}" ;;
	esac
}

# A changed kernel of the same name (a point release, other options) or a new compiler needs
# a new build.
forget_other_kernel()
{
	local both
	both="$2 $(gcc --version | sed -n 1p)"
	[ "$(cat "$1/.kernel" 2> /dev/null)" = "$both" ] || rm -rf "$1/src"
	touch "$1"
	echo "$both" > "$1/.kernel"
}

# Warnings of modpost, objtool and the linker, which no option turns into errors.
has_warnings()
{
	grep -i 'warning:' "$1" | grep -v 'the compiler differs' > /dev/null
}

build()
{
	local kernel=$1 dir=$2 log=$2/build.log rc=0 make place=$2
	shift 2
	forget_other_kernel "$dir" "$kernel"
	copy_sources "$dir/src"
	# Debian's headers have the kernel's BTF, but adding a module's takes pahole.
	make=(make -C "$kernel")
	if [ -e "$kernel/modules" ]; then
		make=("$KOFI_TOP/scripts/newest.sh" make "$dir")
		place=$PLACE
	# gcov finds counts and sources by their paths.
	elif [ "${KOFI_VARIANT-}" != gcov ] && at_place "$dir" true; then
		make=(at_place "$dir" "${make[@]}")
		place=$PLACE
	fi
	"${make[@]}" M="$place/src" -j"$(nproc)" W=1 KCFLAGS=-Werror \
		CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules > "$log" 2>&1 < /dev/null || rc=1
	# The next make wouldn't repeat the warnings, so build the files again.
	if has_warnings "$log"; then
		rm -rf "$dir/src"
		rc=1
	fi
	if ((rc)); then
		sed -i "s,$place/src/,,g" "$log"
		grep -vE '^  [A-Z]|^make' "$log" | tail -n 60 >&2
		die "the modules don't build against $kernel, see $log"
	fi
}

main()
{
	local tree=${1:?test, 6.1, 6.12, newest, product-6.1, product-6.12 or clean} kernel dir
	shift
	if [ "$tree" = clean ]; then
		grep -lxF "$KOFI_TOP" "$KOFI_CACHE"/build/*/.checkout 2> /dev/null |
			while read -r dir; do rm -rf "${dir%/*}"; done
		return
	fi
	dir=$(own_dir "$KOFI_CACHE/build" "-$tree${KOFI_VARIANT:+-$KOFI_VARIANT}")
	kernel=$(kernel_build "$tree")
	[[ $tree = product-* ]] || set -- KOFI_LAB=1 "$@"
	[ "${KOFI_VARIANT-}" != gcov ] || set -- GCOV_PROFILE=y "$@"
	locked "build-${dir##*/}" build "$kernel" "$dir" "$@"
	drop_unused "${dir%/*}"
	echo "$dir/src"
}

main "$@"
