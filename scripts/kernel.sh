#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Kernels for the tests, built or downloaded to the cache if necessary.
#
#   kernel.sh source            prints the unpacked linux-source-6.12
#   kernel.sh test              prints the test kernel's directory, with
#                                 vmlinux, config, build/ (for make -C),
#                                 modules/lib/modules/RELEASE/
#   kernel.sh stock 6.1|6.12|newest
#                               prints the directory of a Debian kernel, with
#                                 vmlinuz, config, modules/lib/modules/RELEASE/
#   kernel.sh with-efa 6.12|newest
#                               the same with efa.ko of the kernel's source, which Debian's
#                                 kernel doesn't include
#   kernel.sh headers 6.1|6.12  prints its headers (for make -C)
#
# Nothing is installed. Exit status 3: this distribution doesn't have the kernel.
#
# With KOFI_VARIANT=kcsan the test kernel checks for data races instead of memory errors, with
# KOFI_VARIANT=gcov it counts executed lines.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

CONFIG=$KOFI_TOP/tests/qemu/kernel.config
TARBALL=/usr/src/linux-source-6.12.tar.xz
SOURCES=$KOFI_CACHE/source
KERNELS=$KOFI_CACHE/kernel

# KASAN needn't check other checkers: lockdep, and the unwinder for stacks that KASAN
# and kmemleak keep of each allocation. That took half of a boot's time. (Later kernels
# exclude lockdep, too.)
FLAGS=()
for unit in lockdep unwind_frame stacktrace extable tree_lookup; do
	FLAGS+=("KASAN_SANITIZE_$unit.o=n")
done
# KASAN isn't initialized when QEMU enters the kernel, where GCC 14 would call a memcmp() that
# KASAN checks.
FLAGS+=("CFLAGS_enlighten.o=-minline-all-stringops")

# KCSAN checks only modules, because races of the kernel itself aren't searched here.
SUFFIX=${KOFI_VARIANT:+-$KOFI_VARIANT}
[ -z "$SUFFIX" ] || FLAGS=(KCSAN_SANITIZE=n)

NOT_HERE=3

hash_of()
{
	sha256sum | cut -c 1-12
}

# A directory in the cache is complete or absent: it is created as NAME.tmp.
begin()
{
	rm -rf "$1".tmp
	mkdir -p "$1".tmp
}

finish()
{
	touch "$1".tmp
	mv "$1".tmp "$1"
}

# prune DIR COUNT PATTERN: keep those used last, and those that another run may use. Called
# under the lock for creating them.
prune()
{
	local old
	find "$1" -maxdepth 1 -name "$3.tmp" -exec rm -rf {} +
	find "$1" -maxdepth 1 -name "$3" -printf '%T@ %p\n' | sort -rn |
		tail -n +$(($2 + 1)) | cut -d ' ' -f 2- |
		while read -r old; do
			[ -n "$(find "$old" -maxdepth 0 -mmin +360)" ] || continue
			mv "$old" "$old".tmp
			rm -rf "$old".tmp
		done
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
	begin "$dir"
	# amdgpu's register headers are a third of the tree, and aren't needed.
	with_progress "unpacking $TARBALL" "$KOFI_CACHE/unpack.log" . \
		tar -C "$dir".tmp --strip-components 1 -I 'xz -T0' \
		--exclude '*/drivers/gpu/drm/amd/include/*' -xvf "$TARBALL"
	finish "$dir"
	prune "$SOURCES" 2 'linux-*'
}

source_dir()
{
	local version dir
	version=$(source_version)
	dir=$SOURCES/linux-$version
	[ -e "$dir" ] || locked source unpack_source "$dir"
	touch -c "$dir"
	echo "$dir"
}

# --- test kernel ---

# Options that the test kernel must have. KASAN and KCSAN exclude each other, and
# where UBSAN checks a bool, gcc loses a READ_ONCE().
wanted()
{
	if [ -n "$SUFFIX" ]; then
		grep -vE 'CONFIG_(KASAN|UBSAN|DEBUG_KMEMLEAK)' "$CONFIG"
		cat "${CONFIG%/*}/$KOFI_VARIANT.config"
	else
		cat "$CONFIG"
	fi
}

check_config()
{
	local lost
	lost=$(wanted | grep CONFIG_ | grep -vxFf "$1" || :)
	[ -z "$lost" ] || die "Kconfig refused these lines of $CONFIG:
$lost"
}

configure()
{
	local src=$1 obj=$2
	make -s -C "$src" O="$obj" allnoconfig > /dev/null
	wanted > "$obj/wanted"
	(cd "$src" &&
		scripts/kconfig/merge_config.sh -m -O "$obj" "$obj/.config" "$obj/wanted") > /dev/null
	make -s -C "$src" O="$obj" olddefconfig
	check_config "$obj/.config"
}

# Keep the files that later builds and boots need, without the objects.
collect()
{
	local src=$1 obj=$2 out=$3
	begin "$out"
	make -s -C "$src" O="$obj" INSTALL_MOD_PATH="$out".tmp/modules \
		INSTALL_MOD_STRIP=1 modules_install
	make -s -C "$obj" run-command KBUILD_RUN_COMMAND="\
\$(srctree)/scripts/package/install-extmod-build $out.tmp/build"
	cp "$obj"/vmlinux "$obj"/System.map "$out".tmp
	cp "$obj"/.config "$out".tmp/config
	make -s -C "$obj" kernelrelease > "$out".tmp/release
	finish "$out"
}

# The objects stay in one directory for all configurations, so that an
# interrupted build continues, and a changed option rebuilds only what depends on it.
build_test()
{
	local src=$1 out=$2 obj=$KERNELS/obj$SUFFIX
	[ ! -e "$out" ] || return 0
	mkdir -p "$obj"
	configure "$src" "$obj"
	with_progress "building the test kernel" "$KERNELS/build.log" '^  [A-Z]' \
		make -C "$src" O="$obj" -j"$(nproc)" "${FLAGS[@]}" vmlinux modules
	collect "$src" "$obj" "$out"
	prune "$KERNELS" 3 'test-*'
}

test_dir()
{
	local src out key
	src=$(source_dir)
	key=$({ basename "$src"; gcc --version; echo "${FLAGS[@]}"; wanted; } | hash_of)
	out=$KERNELS/test-$key
	[ -e "$out" ] || locked kernel build_test "$src" "$out"
	touch -c "$out"
	echo "$out"
}

# --- Debian's kernels ---

series()
{
	echo "$1" | cut -d . -f 1,2
}

in_lists()
{
	apt-get -qq --print-uris download "$@" > /dev/null 2>&1
}

# Package names contain the point release, so look for the newest
# linux-headers-VERSION*-amd64 that has an image, without its prefix. A name alone may be
# only a dependency of another package.
find_release()
{
	local re="^linux-headers-${1//./\\.}\.[0-9].*-amd64$" release
	for release in $(apt-cache pkgnames "linux-headers-$1." | grep -E "$re" |
			grep -vE -- '-(rt|cloud)-' | sed 's/^linux-headers-//' | sort -rV); do
		if in_lists "linux-headers-$release" "linux-image-$release"; then
			echo "$release"
			return
		fi
	done
}

# release_of KIND VERSION: a mirror has a point release only until the next one, so a kernel that isn't
# in the cache is looked for in new lists.
release_of()
{
	local release lists=0
	release=$(find_release "$2")
	if [ -z "$release" ] || [ ! -e "$KERNELS/$1-$release" ]; then
		update_lists 60 || lists=$?
		release=$(find_release "$2")
	fi
	if [ -z "$release" ]; then
		if ((lists)) || ! in_lists linux-image-amd64; then
			die "cannot tell whether there is a kernel $2: package lists are missing"
		fi
		say "no linux-headers-$2 package on this distribution"
		exit $NOT_HERE
	fi
	echo "$release"
}

# Print the packages that a header package depends on, except the compiler.
header_packages()
{
	apt-cache depends --no-recommends --no-suggests --no-pre-depends "linux-headers-$1" |
		sed -n 's/^ *|\{0,1\}Depends: //p' |
		grep -E '^linux-(headers|kbuild|compiler)-' || :
	echo "linux-headers-$1"
}

# download DIR PACKAGE...
download()
(
	cd "$1" || exit
	shift
	apt-get -qq -o APT::Sandbox::User=root download "$@" >&2
)

# unpack_debs DIR PACKAGE...
unpack_debs()
{
	local dir=$1 debs=$1/debs deb
	shift
	mkdir "$debs"
	download "$debs" "$@" || die "cannot download $*"
	for deb in "$debs"/*.deb; do
		dpkg-deb -x "$deb" "$dir"
	done
	rm -rf "$debs"
}

# check_headers DIR OUT: check that OUT has the files of other packages that the headers in DIR use.
check_headers()
{
	local needed
	for needed in "$(sed -n "s,^include /usr/src,$2/usr/src,p" "$1/Makefile")" "$1/scripts"; do
		[ -e "$needed" ] || die "packages of the headers are missing, there is no $needed"
	done
}

fetch_headers()
{
	local release=$1 out=$2 made=$2.tmp/usr/src/linux-headers-$1
	[ ! -e "$out" ] || return 0
	begin "$out"
	say "fetching the headers of $release"
	# shellcheck disable=SC2046
	unpack_debs "$out".tmp $(header_packages "$release")
	check_headers "$made" "$out".tmp
	# The packages expect to be in /usr/src.
	sed -i "s,^include /usr/src,include $out/usr/src," "$made/Makefile"
	rm -rf "$out".tmp/usr/share
	finish "$out"
	prune "$KERNELS" 1 "headers-$(series "$release").*"
}

headers_dir()
{
	local release out
	release=$(release_of headers "$1")
	out=$KERNELS/headers-$release
	[ -e "$out" ] || locked "headers-$1" fetch_headers "$release" "$out"
	touch -c "$out"
	echo "$out/usr/src/linux-headers-$release"
}

fetch_stock()
{
	local release=$1 out=$2 modules
	[ ! -e "$out" ] || return 0
	begin "$out"
	mkdir -p "$out".tmp/deb "$out".tmp/modules/lib
	say "fetching linux-image-$release"
	unpack_debs "$out".tmp/deb "linux-image-$release"
	modules=$out.tmp/deb/lib/modules
	[ -e "$modules" ] || modules=$out.tmp/deb/usr/lib/modules
	mv "$modules" "$out".tmp/modules/lib/modules
	mv "$out.tmp/deb/boot/vmlinuz-$release" "$out".tmp/vmlinuz
	mv "$out.tmp/deb/boot/config-$release" "$out".tmp/config
	echo "$release" > "$out".tmp/release
	depmod -b "$out".tmp/modules "$release"
	rm -rf "$out".tmp/deb
	finish "$out"
	prune "$KERNELS" 1 "stock-$(series "$release").*"
}

# add_efa RELEASE DIR: build the EFA driver, and put it beside the kernel's other modules.
add_efa()
{
	local release=$1 out=$2 headers src made dir=$2/modules/lib/modules/$1
	[ ! -e "$out/efa" ] || return 0
	headers=$(headers_dir 6.12)
	[[ $headers = *-"$release" ]] || die "there are no headers of $release any more, for efa.ko"
	src=$(source_dir)
	made=$out.tmp/efa
	begin "$out"
	cp -r "$src/drivers/infiniband/hw/efa" "$made"
	make -s -C "$headers" M="$made" CONFIG_INFINIBAND_EFA=m CONFIG_DEBUG_INFO_BTF_MODULES= \
		modules > "$KERNELS/efa.log" 2>&1 || die "efa.ko doesn't build, see $KERNELS/efa.log"
	cp "$made/efa.ko" "$dir/kernel/drivers/infiniband/hw/"
	depmod -b "$out/modules" "$release"
	rm -rf "$out.tmp"
	touch "$out/efa"
}

stock_dir()
{
	local release out
	release=$(release_of stock "$1")
	out=$KERNELS/stock-$release
	[ -e "$out" ] || locked "stock-$1" fetch_stock "$release" "$out"
	touch -c "$out"
	echo "$out"
}

with_efa_dir()
{
	local out
	out=$(stock_dir 6.12)
	locked "stock-6.12" add_efa "$(cat "$out/release")" "$out"
	echo "$out"
}

case ${1-}-${2-} in
source-) source_dir ;;
test-) test_dir ;;
stock-newest) "$KOFI_TOP/scripts/newest.sh" root ;;
stock-[0-9]*) stock_dir "$2" ;;
with-efa-6.12) with_efa_dir ;;
with-efa-newest) "$KOFI_TOP/scripts/newest.sh" efa ;;
headers-[0-9]*) headers_dir "$2" ;;
*) die "usage: kernel.sh source | test | stock VERSION | with-efa VERSION | headers VERSION" ;;
esac
