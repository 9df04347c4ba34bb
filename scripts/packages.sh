#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Installs the Debian packages of scripts/packages that are missing.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

wanted()
{
	sed 's/#.*//' "$KOFI_TOP/scripts/packages" | xargs -n 1
}

missing()
{
	local have
	have=$(dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package}\n' |
		sed -n 's/^ii  *\([^:]*\).*/\1/p' | sort)
	comm -23 <(wanted | sort) <(echo "$have")
}

install()
{
	local packages root=()
	packages=$(missing)
	[ -n "$packages" ] || return 0
	# shellcheck disable=SC2086
	set -- $packages
	say "packages: installing $*"
	if [ "$(id -u)" != 0 ]; then
		sudo -n true 2> /dev/null ||
			die "not root; first run: sudo apt-get install --no-install-recommends $*"
		root=(sudo)
	fi
	"${root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update >&2 || :
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=300 \
		install --no-install-recommends "$@" < /dev/null >&2
}

locked packages install
