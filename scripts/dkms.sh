#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Called by dkms in its copy of the tree, to install the headers and Module.symvers, with which
# other modules are built. They must be of the same build as the modules.
#
#   dkms.sh build DIR           copies them to DIR, beside the built modules
#   dkms.sh install DIR MODULES installs them from there into /lib/modules/<release>
#   dkms.sh remove MODULES      removes them
set -e

case $1 in
build)
	mkdir -p "$2/devel/include/kofi"
	cp include/kofi/*.h "$2/devel/include/kofi"
	cp Module.symvers "$2/devel"
	;;
install)
	rm -rf "$3/kofi"
	cp -r "$2/devel" "$3/kofi"
	;;
remove)
	rm -rf "$2/kofi"
	;;
esac
