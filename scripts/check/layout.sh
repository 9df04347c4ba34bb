#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Compares the wire header of fabric efa with libfabric's headers: those of Debian's source
# packages and, with LIBFABRIC=DIR, of the head of a clone. A clone also replaces source packages
# that Debian's mirror doesn't have. Fetched headers stay in the cache. Prints which versions
# were compared. Exit status 3: none of them is available.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../common.sh"

CACHE=$KOFI_CACHE/libfabric
KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
# Releases of Debian and libfabric; the path of the header up to 1.17, and since then.
VERSIONS="bookworm/1.17.0 trixie/2.1.0"
HEADERS="prov/efa/src/rxr/rdm_proto_v4.h prov/efa/src/rdm/efa_rdm_protocol.h"
NOT_HERE=3

# Separate lists, because this machine's may have no sources, or another release.
apt_here()
{
	apt-get -qq -o Dir::Etc::sourcelist="$CACHE/apt/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$CACHE/apt/lists" -o Dir::Cache="$CACHE/apt/cache" \
		-o APT::Sandbox::User=root "$@"
}

from_debian()
{
	local suite=$1 to=$2
	mkdir -p "$CACHE"/apt/{lists,cache}/partial
	echo "deb-src [signed-by=$KEYS] http://deb.debian.org/debian $suite main" \
		> "$CACHE/apt/sources.list"
	(cd "$CACHE/apt" && rm -f libfabric_* && apt_here update &&
		apt_here source --download-only --tar-only libfabric &&
		tar --wildcards -xOf libfabric_*.orig.tar.* '*/rxr/rdm_proto_v4.h' \
			'*/rdm/efa_rdm_protocol.h' > "$to" 2> /dev/null) || [ -s "$to" ]
}

# from_clone REVISION FILE: copy the header from a clone to FILE
from_clone()
{
	local header
	[ -n "${LIBFABRIC-}" ] || return 1
	for header in $HEADERS; do
		! git -C "$LIBFABRIC" show "$1:$header" > "$2" 2> /dev/null || return 0
	done
	return 1
}

fetch()
{
	local suite=${1%/*} version=${1#*/} file=$CACHE/$2
	[ ! -s "$file" ] || return 0
	if ! from_debian "$suite" "$file.tmp" && ! from_clone "v$version" "$file.tmp"; then
		rm -f "$file.tmp"
		return 1
	fi
	mv "$file.tmp" "$file"
}

compare()
{
	make -s -C "$KOFI_TOP/tests/fuzz" OUT="$CACHE/out" THEIRS="$1" layout
}

mkdir -p "$CACHE"
compared=
for version in $VERSIONS; do
	if locked libfabric fetch "$version" "${version#*/}.h" 2> "$CACHE/log"; then
		compare "$CACHE/${version#*/}.h"
		compared+=" ${version#*/}"
	else
		say "libfabric ${version#*/}: $(tail -n 1 "$CACHE/log")"
	fi
done
rm -rf "$CACHE/apt"
if from_clone HEAD "$CACHE/clone.h"; then
	compare "$CACHE/clone.h"
	compared+=" $(git -C "$LIBFABRIC" describe --always HEAD)"
fi
[ -n "$compared" ] || exit $NOT_HERE
echo "libfabric$compared"
