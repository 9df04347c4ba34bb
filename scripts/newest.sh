#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The newest kernel of Debian 13's backports, on a machine with any release of Debian.
#
#   newest.sh root              prints a directory with the kernel, its headers, and the
#                                 compiler and libraries of Debian 13:
#                                 vmlinuz, config, release, modules/lib/modules/RELEASE/
#   newest.sh make DIR ARG...   runs make for these headers; DIR is accessible
#   newest.sh efa               does the same as root, and builds efa.ko, which Debian's
#                                 kernel lacks, among the kernel's modules
#   newest.sh user SUITE        prints a directory with libfabric and rdma-core of Debian 13
#                                 (trixie) or of Debian testing, for processes to have as their
#                                 root
#
# Packages are fetched by apt with separate lists, and unpacked, not installed. The build
# runs in a separate mount namespace, because the compiler needs its libraries.
# Exit status 3: the kernel isn't available, or the directory can't be entered.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

# apt's directory, with the lists of some suites; set by use_suites().
APT=
KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
MIRROR=http://deb.debian.org/debian
NOT_HERE=3
# Programs for the build, besides the dependencies of the kernel's packages.
TOOLS=(bash coreutils dash diffutils findutils gawk grep kmod make perl-base sed xz-utils)
USER_TOOLS=(coreutils dash ibverbs-providers ibverbs-utils libfabric-bin)

# newest_apt COMMAND...: run apt with separate lists, and as if no package were installed.
newest_apt()
{
	APT_CONFIG=$APT/apt.conf "$@"
}

# use_suites NAME SUITE...: have newest_apt() use only these suites from now on. Fails if one of them
# isn't available. The list of testing is valid for a week, but that of a mirror may be older. What
# comes from testing runs only in guests.
use_suites()
{
	local name=$1 suite options
	APT=$KOFI_CACHE/$name
	shift
	mkdir -p "$APT/etc"
	for suite in "$@"; do
		options=signed-by=$KEYS
		[ "$suite" != testing ] || options+=" check-valid-until=no"
		echo "deb [$options] $MIRROR $suite main"
	done > "$APT/etc/sources.list"
	[ -e "$KEYS" ] && locked "$name" set_up_apt
}

set_up_apt()
{
	mkdir -p "$APT"/{etc/apt.conf.d,etc/preferences.d,state/lists/partial} \
		"$APT/cache/archives/partial"
	: > "$APT/status"
	cat > "$APT/apt.conf" <<-END
		Dir::Etc "$APT/etc";
		Dir::State "$APT/state";
		Dir::State::status "$APT/status";
		Dir::Cache "$APT/cache";
		APT::Sandbox::User "";
		APT::Architecture "amd64";
		Debug::NoLocking "1";
	END
	if [ -z "$(find "$APT/updated" -mmin -1440 2> /dev/null)" ]; then
		newest_apt apt-get -qq -o APT::Update::Error-Mode=any update \
			> "$APT/log" 2>&1 || return
		touch "$APT/updated"
	fi
}

# Print the release of the newest kernel on which linux-headers-amd64 depends.
find_newest()
{
	newest_apt apt-cache show linux-headers-amd64 |
		sed -n 's/^Depends:.* linux-headers-\([0-9][^ ,]*-amd64\).*/\1/p' |
		sort -V | tail -n 1
}

# Make Debian's links to directories below /usr, and give tools the names that make uses.
link_root()
{
	local dir tool
	for dir in bin sbin lib lib64; do
		mkdir -p "$1/usr/$dir"
		ln -s "usr/$dir" "$1/$dir"
	done
	for tool in ar as ld nm objcopy objdump readelf strip; do
		ln -s "x86_64-linux-gnu-$tool" "$1/usr/bin/$tool"
	done
	ln -s dash "$1/usr/bin/sh"
	ln -s gawk "$1/usr/bin/awk"
	mkdir -p "$1"/{dev,proc,sys,tmp}
}

# unpack_into DIR SUITE PACKAGE...: unpack these packages and their dependencies
unpack_into()
{
	local dir=$1 suite=$2 deb
	shift 2
	rm -rf "$dir"
	mkdir -p "$dir"
	rm -f "$APT"/cache/archives/*.deb
	newest_apt apt-get -q -y --no-install-recommends --download-only -t "$suite" \
		install "$@" > "$APT/log" 2>&1 || die "cannot download $*, see $APT/log"
	link_root "$dir"
	for deb in "$APT"/cache/archives/*.deb; do
		# These are large, and no build needs them.
		case ${deb##*/} in
		systemd* | udev* | dracut* | *-dbg_*) continue ;;
		esac
		# Keep the links of link_root(), which packages have as directories.
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir" --keep-directory-symlink
	done
	rm -f "$APT"/cache/archives/*.deb
}

fetch_root()
{
	local release=$1 out=$2
	[ ! -e "$out" ] || return 0
	say "fetching the kernel $release and its compiler"
	unpack_into "$out".tmp trixie-backports "linux-headers-$release" "linux-image-$release" \
		"${TOOLS[@]}"
	[ -e "$out.tmp/boot/vmlinuz-$release" ] ||
		ln -s "../usr/lib/modules/$release/vmlinuz" "$out.tmp/boot/vmlinuz-$release"
	ln -s "boot/vmlinuz-$release" "$out".tmp/vmlinuz
	ln -s "usr/src/linux-headers-$release/.config" "$out".tmp/config
	ln -s usr "$out".tmp/modules
	echo "$release" > "$out".tmp/release
	depmod -b "$out".tmp/usr "$release"
	mv "$out".tmp "$out"
	find "${out%/*}" -maxdepth 1 -name 'newest-*' ! -path "$out" -mmin +360 -exec rm -rf {} +
}

root_dir()
{
	local release out
	release=
	if use_suites apt-newest trixie trixie-backports; then
		release=$(find_newest)
	fi
	if [ -z "$release" ]; then
		say "the newest kernel of Debian's backports can't be had here"
		exit $NOT_HERE
	fi
	out=$KOFI_CACHE/kernel/newest-$release
	mkdir -p "${out%/*}"
	[ -e "$out" ] || locked newest fetch_root "$release" "$out"
	touch -c "$out"
	echo "$out"
}

# add_efa ROOT: build the EFA driver of this kernel's source
add_efa()
{
	local root=$1 release version made=$1/tmp/efa
	release=$(cat "$root/release")
	version=${release%%[-+]*}
	version=$(cut -d. -f1,2 <<< "$version")
	[ ! -e "$root/efa" ] || return 0
	say "building efa.ko for $release"
	rm -rf "$made"{,-source}
	rm -f "$APT"/cache/archives/*.deb
	# Nothing else: it recommends compilers.
	newest_apt apt-get -q -y --no-install-recommends --download-only -t trixie-backports \
		install "linux-source-$version" > "$APT/log" 2>&1 ||
		die "cannot download linux-source-$version, see $APT/log"
	mkdir "$made-source"
	dpkg-deb --fsys-tarfile "$APT"/cache/archives/linux-source-"$version"_*.deb |
		tar -x -C "$made-source" --wildcards --strip-components=3 '*.tar.xz'
	rm -f "$APT"/cache/archives/*.deb
	tar -x -C "$made-source" --strip-components=1 -f "$made-source/linux-source-$version.tar.xz" \
		"linux-source-$version/drivers/infiniband/hw/efa"
	mv "$made-source/drivers/infiniband/hw/efa" "$made"
	make_within "$root" "$made" -s M="$made" CONFIG_INFINIBAND_EFA=m \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules > "$root/efa.log" 2>&1 ||
		die "efa.ko doesn't build, see $root/efa.log"
	cp "$made/efa.ko" "$root/usr/lib/modules/$release/kernel/drivers/infiniband/hw/"
	depmod -b "$root/usr" "$release"
	rm -rf "$made"{,-source}
	touch "$root/efa"
}

efa_dir()
{
	local root
	root=$(root_dir)
	locked newest add_efa "$root" >&2
	echo "$root"
}

# candidate PACKAGE: print the version that would be installed
candidate()
{
	newest_apt apt-cache policy "$1" | sed -n 's/^ *Candidate: \([0-9].*\)/\1/p'
}

# fetch_user SUITE DIR
fetch_user()
{
	[ ! -e "$2" ] || return 0
	say "fetching libfabric of Debian's $1"
	unpack_into "$2".tmp "$1" "${USER_TOOLS[@]}"
	mv "$2".tmp "$2"
	find "${2%/*}" -maxdepth 1 -name "$1-*" ! -path "$2" -mmin +360 -exec rm -rf {} +
}

# user_dir SUITE
user_dir()
{
	local suite=$1 version out
	version=
	if use_suites "apt-user-$suite" "$suite"; then
		version=$(candidate libfabric1)
	fi
	if [ -z "$version" ]; then
		say "the libfabric of Debian's $suite can't be had here"
		exit $NOT_HERE
	fi
	out=$KOFI_CACHE/user/$suite-$version-$(candidate ibverbs-providers)
	mkdir -p "${out%/*}"
	[ -e "$out" ] || locked newest fetch_user "$suite" "$out"
	touch -c "$out"
	echo "$out"
}

# make_within ROOT DIR ARG...: DIR has the same path in the namespace.
make_within()
{
	local root=$1 dir=$2 release map=()
	shift 2
	[ "$(id -u)" = 0 ] || map=(--map-root-user)
	release=$(cat "$root/release")
	mkdir -p "$root$dir"
	# shellcheck disable=SC2016
	unshare --mount "${map[@]}" \
		sh -e -c 'mount --bind "$2" "$1$2"
			mount --rbind /dev "$1/dev"
			mount --rbind /proc "$1/proc"
			root=$1 headers=$3
			shift 3
			exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin LC_ALL=C \
				make -C "$headers" "$@"' \
		sh "$root" "$dir" "/usr/src/linux-headers-$release" "$@"
}

case ${1-} in
root) root_dir ;;
efa) efa_dir ;;
user) user_dir "${2:?newest.sh user trixie | testing}" ;;
make)
	root=$(root_dir)
	shift
	make_within "$root" "$@" ;;
*) die "usage: newest.sh root | efa | make DIR ARGUMENT... | user SUITE" ;;
esac
