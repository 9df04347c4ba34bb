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

refuse()
{
	local sudo=
	if command -v sudo > /dev/null; then
		sudo="sudo "
	fi
	die "Debian packages are missing. Install them, as root:
    ${sudo}apt-get update && ${sudo}apt-get install --no-install-recommends $*"
}

install()
{
	local packages
	packages=$(missing)
	[ -n "$packages" ] || return 0
	# shellcheck disable=SC2086
	set -- $packages
	as_root true || refuse "$@"
	say "packages: installing $*"
	# apt doesn't continue an interrupted installation. If another dpkg is running, apt
	# waits for it.
	if [ -n "$(dpkg --audit)" ]; then
		as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a < /dev/null >&2 || :
	fi
	# A list that can't be downloaded may have none of these packages.
	update_lists 0 || :
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=300 \
		install --no-install-recommends "$@" < /dev/null >&2 ||
		die "apt-get failed. If it finds no linux-source-6.12, add the archive" \
			"bookworm-security to /etc/apt/sources.list"
}

locked packages install
