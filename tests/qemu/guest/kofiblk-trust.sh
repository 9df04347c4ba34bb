#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma python3 dmsetup
# modules: null_blk configfs hmac sha256_generic crc32c_generic dm_delay
# full: yes
# timeout: 500
#
# What a client may rely on when its server comes and goes: that nothing is lost in
# silence, that nobody else ends its disk, and that an old write never follows a new one.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

QUICK="reconnect_delay=1,keep_alive_tmo=5"

# --- what was written, but not flushed ---

serve_file()
{
	modprobe kofiblk_srv && configfs_up &&
		export_add file /tmp/file uuid=$UUID allow_any=1 && port_up file
}

write_some()
{
	dd if=/dev/urandom of="/dev/$DISK" bs=64k count=4 oflag=direct 2> /dev/null
}

# By the block device's own fsync.
flush()
{
	dd if=/dev/null of="/dev/$DISK" conv=fsync,notrunc
}

# comes_back WHAT
comes_back()
{
	check "a session after $1" wait_for 40 session_after "$was"
}

# flush_is RESULT WHAT
flush_is()
{
	flush_text=$(errno_of flush)
	check "a flush $2: $flush_text" [ "$flush_text" = "$1" ]
}

# A server that is told to go flushes, and says so.
planned()
{
	check "data is written" write_some
	before
	meet planned
	meet planned-done
	comes_back "a planned restart"
	flush_is success "after a planned restart"
}

# As after a crash: nobody tells the client, and the server's cache was another one.
unheard()
{
	check "data is written" write_some
	before
	meet unheard
	meet unheard-done
	comes_back "a restart that wasn't announced"
	check "it is counted" [ "$(counter losses)" = 1 ]
	check "and in the log" sh -c "dmesg | grep -q 'written and not flushed may be lost'"
	flush_is Input/output_error "of what may be lost"
	flush_is success "when that is known"
	before
	meet unheard-clean
	meet unheard-clean-done
	comes_back "another"
	flush_is success "when all was flushed before"
}

server_restarts()
{
	meet planned
	check "the server goes" server_gone
	check "and is back" serve_file
	meet planned-done
	meet unheard
	restarts_unheard
	meet unheard-done
	meet unheard-clean
	restarts_unheard
	meet unheard-clean-done
}

restarts_unheard()
{
	ip link set eth0 down
	check "the server goes, and nobody hears" server_gone
	check "and is back" serve_file
	ip link set eth0 up
}

client_flushes()
{
	check "a file as a disk" attach file "client=b,$QUICK"
	planned
	unheard
	check "it goes" detach
}

load_fabric
at server truncate -s 8M /tmp/file
at server check "a server" serve_file
at client check "the client's module" modprobe kofiblk
meet serving
at server server_restarts
at client client_flushes
at client check "the client's module goes" rmmod kofiblk
at client check "the client left nothing open" nothing_open
meet client-gone
at server check "the server goes for good" server_gone
at server check "the server left nothing open" nothing_open
at server rm -f /tmp/file
meet end
unload_fabric
