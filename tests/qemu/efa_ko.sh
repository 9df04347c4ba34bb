# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# For the tests with a build of Amazon's driver, which the host's EFA_KO names. Its devices are
# efa_0 and so on, on PCI functions of the soft device.

# shellcheck disable=SC2034 # used by the tests
SIM=/sys/kernel/debug/efasim
# shellcheck disable=SC2034
DRIVER=/sys/bus/pci/drivers/efa

# function_of NUMBER: its name on the bus
function_of()
{
	echo "10000:00:0$1.0"
}

# there NUMBER...: these devices are
there()
{
	for device in "$@"; do
		[ -e "/sys/class/infiniband/efa_$device" ] || return 1
	done
}

gone()
{
	[ ! -e /sys/class/infiniband/efa_0 ] && [ ! -e /sys/class/infiniband/efa_1 ]
}

# amazon_up NETDEV...: a function on each, with Amazon's driver
amazon_up()
{
	check "functions on $*" modprobe efasim "pci=$(echo "$*" | tr ' ' ,)" pci_mem=0x20000000
	modprobe ib_uverbs
	check "Amazon's driver loads" insmod /bed/efa.ko
	note "version $(cat /sys/module/efa/version)"
	check "its devices are there" wait_for 20 there "$(($# - 1))"
}

amazon_down()
{
	check "Amazon's driver goes" rmmod efa
	check "the functions go" rmmod efasim
}
