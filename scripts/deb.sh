#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
#   deb.sh DIR
#
# Builds DIR/kofi-dkms_VERSION_all.deb and prints its path. The package has the sources of the
# modules, which DKMS builds when the package is installed, and the files of make install.

# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

VERSION=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$KOFI_TOP/dkms.conf")

control()
{
	cat <<-END
		Package: kofi-dkms
		Version: $VERSION
		Architecture: all
		Maintainer: $(sed -n 's/^M:\t//p' "$KOFI_TOP/MAINTAINERS" | sed -n 1p)
		Depends: dkms, python3
		Recommends: linux-headers-amd64
		Section: kernel
		Priority: optional
		Description: OpenFabrics Interfaces (libfabric) for kernel modules
		 The core, the provider for Amazon's Elastic Fabric Adapter (EFA), a software EFA device,
		 and kofiblk, which attaches block devices of other machines over EFA. DKMS builds the
		 modules for each kernel whose headers are installed.
	END
}

# The scripts are those that dh_dkms would generate.
postinst()
{
	cat <<-END
		#!/bin/sh
		set -e
		[ "\$1" = configure ] || exit 0
		exec /usr/lib/dkms/common.postinst kofi $VERSION /usr/share/kofi-dkms "" "\$2"
	END
}

prerm()
{
	cat <<-END
		#!/bin/sh
		set -e
		[ -z "\$(dkms status -m kofi -v $VERSION)" ] || dkms remove -m kofi -v $VERSION --all
	END
}

main()
{
	local out=${1:?the directory for the package} work script
	work=$(mktemp -d)
	# shellcheck disable=SC2064
	trap "rm -rf '$work'" EXIT
	mkdir -p "$out" "$work/DEBIAN" "$work/usr/src/kofi-$VERSION"
	tar -C "$KOFI_TOP" --exclude=./.git --exclude=./.ci --exclude=./Documentation --exclude=./out \
		--exclude-vcs-ignores -c . | tar -C "$work/usr/src/kofi-$VERSION" -x
	make -s -C "$KOFI_TOP" DESTDIR="$work" PREFIX=/usr install > /dev/null
	control > "$work/DEBIAN/control"
	for script in postinst prerm; do
		$script > "$work/DEBIAN/$script"
		chmod 755 "$work/DEBIAN/$script"
	done
	chmod -R u=rwX,go=rX "$work"
	dpkg-deb --root-owner-group --build "$work" "$out" >&2
	echo "$out/kofi-dkms_${VERSION}_all.deb"
}

main "$@"
