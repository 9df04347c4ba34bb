#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma python3 dmsetup mkfs.ext4
# modules: null_blk configfs hmac sha256_generic crc32c_generic dm_delay ext4
# full: yes
# timeout: 600
#
# Guarantees for a client when its server is restarted: no data is lost without an error, only
# the server can end its disk, and an old write never takes effect after a newer one.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

QUICK="reconnect_delay=1,keep_alive_tmo=5"

# --- what was written, but not flushed ---

# serve_file ATTRIBUTE=VALUE...
serve_file()
{
	modprobe kofiblk_srv && configfs_up &&
		export_add file /tmp/file uuid=$UUID allow_any=1 "$@" && port_up file
}

write_some()
{
	dd if=/dev/urandom of="/dev/$DISK" bs=64k count=4 oflag=direct 2> /dev/null
}

# Use fsync of the block device.
flush()
{
	dd if=/dev/null of="/dev/$DISK" conv=fsync,notrunc
}

# comes_back WHAT
comes_back()
{
	check "the client has a new session after $1" wait_for 40 session_after "$was"
}

# flush_is RESULT WHAT
flush_is()
{
	flush_text=$(errno_of flush)
	check "a flush $2 ends with $1: $flush_text" [ "$flush_text" = "$1" ]
}

# A server that is stopped flushes its store, and tells the client.
planned()
{
	check "data is written" write_some
	before
	meet planned
	meet planned-done
	comes_back "a planned restart"
	flush_is success "after a planned restart"
}

# The server goes as in a crash: the client gets no message, and the server's cache is lost.
unheard()
{
	check "data is written" write_some
	before
	meet unheard
	meet unheard-done
	comes_back "a restart without a message"
	check "the loss is counted" [ "$(counter losses)" = 1 ]
	check "the loss is in the log" sh -c "dmesg | grep -q 'written and not flushed may be lost'"
	flush_is Input/output_error "of writes that may be lost"
	flush_is Input/output_error "of another user"
	check "the loss is accepted" sh -c "echo 0 > /sys/block/$DISK/kofiblk/lost"
	flush_is success "after the loss was accepted"
	before
	meet unheard-clean
	meet unheard-clean-done
	comes_back "another restart without a message"
	flush_is success "of a disk without unflushed writes"
}

# clean HOW: data is written, and the server restarts in a way that loses nothing, but isn't heard
clean()
{
	check "data is written" write_some
	before
	meet "$1"
	meet "$1-done"
	comes_back "$1"
	check "no loss is counted after $1" [ "$(counter losses)" = "$losses" ]
	flush_is success "after $1"
}

# A disk learns that it needs no flushes when it is attached.
stable()
{
	check "the disk is detached" detach
	check "a stable file is attached" attach file "client=b,$QUICK"
	losses=0
	check "the disk has no write cache" [ "$(cat "/sys/block/$DISK/queue/write_cache")" = "write through" ]
	clean crash-of-stable
}

server_restarts()
{
	meet planned
	check "the server is unloaded" server_gone
	check "the server is loaded again" serve_file
	meet planned-done
	meet unheard
	restarts_unheard
	meet unheard-done
	meet unheard-clean
	restarts_unheard
	meet unheard-clean-done
	meet disabled
	unheard_by_client is_disabled
	meet disabled-done
	meet epoch
	unheard_by_client restarts_with_epoch
	meet epoch-done
	is_turned
	meet stable
	check "the server is unloaded" server_gone
	check "the file is exported as stable" serve_file stable=1
	meet stable-serving
	meet crash-of-stable
	unheard_by_client restarts stable=1
	meet crash-of-stable-done
}

# unheard_by_client COMMAND...
unheard_by_client()
{
	network_gone
	"$@"
	network_back
}

# restarts ATTRIBUTE=VALUE...: without the epoch, as after a crash
restarts()
{
	check "the server is unloaded, without a message to the client" server_gone
	check "the server is loaded again" serve_file "$@"
}

restarts_unheard()
{
	unheard_by_client restarts
}

is_disabled()
{
	export_dir=$CONFIG/exports/file
	check "an open store shows no epoch" [ "$(cat $export_dir/epoch)" = 0x0 ]
	check "the export is disabled" disabled "$export_dir"
	check "its epoch is kept" [ "$(cat $export_dir/epoch)" != 0x0 ]
	check "the export is enabled" sh -c "echo 1 > $export_dir/enable"
}

# As kofiblk-server stop and start.
restarts_with_epoch()
{
	export_dir=$CONFIG/exports/file
	check "the export is disabled" disabled "$export_dir"
	epoch=$(cat $export_dir/epoch)
	restarts "epoch=$epoch"
	check "the export is disabled again" disabled "$export_dir"
	check "the epoch is the same" [ "$(cat $export_dir/epoch)" = "$epoch" ]
	echo /tmp/file > $export_dir/path
	check "another path has another epoch" [ "$(cat $export_dir/epoch)" = 0x0 ]
	echo "$epoch" > $export_dir/epoch
	check "the export is enabled again" sh -c "echo 1 > $export_dir/enable"
}

client_flushes()
{
	check "the client attaches a file as a disk" attach file "client=b,$QUICK"
	planned
	unheard
	losses=1
	clean disabled
	clean epoch
	turns
	meet stable
	meet stable-serving
	stable
	check "the disk is detached" detach
}

# --- a stop that takes longer than the client waits for a keep-alive ---

STOP=8000	# ms that a write takes
KEEP_ALIVE=5

# A file system whose disk is slow from now on. What is written to the file is in the page cache
# until the stop.
slow_files()
{
	slow_disk 0 && mkdir -p /tmp/slow && host mkfs.ext4 -q -F -O ^has_journal /dev/mapper/slow &&
		mount -t ext4 /dev/mapper/slow /tmp/slow &&
		dd if=/dev/zero of=/tmp/slow/file bs=64k count=64 2> /dev/null && sync &&
		slow_writes $STOP
}

# slow_writes MS: change the delay. Without --nolockfs the file system would be written back.
slow_writes()
{
	dmsetup suspend --nolockfs slow && dmsetup reload slow --table "$(slow_table "$1")" &&
		dmsetup resume slow
}

slow_files_gone()
{
	slow_writes 0 && umount /tmp/slow && slow_gone
}

serve_slow_file()
{
	modprobe kofiblk_srv && configfs_up &&
		export_add file /tmp/slow/file uuid=$UUID allow_any=1 && port_up file
}

stops_slowly()
{
	meet stop
	begin=$(cut -d. -f1 /proc/uptime)
	check "the server is unloaded" server_gone
	took=$(($(cut -d. -f1 /proc/uptime) - begin))
	check "the stop took longer than a keep-alive timeout: $took s" [ $took -gt $KEEP_ALIVE ]
	check "the server is loaded again" serve_slow_file
	meet stopped
}

# The client writes all the time, so that there is something to flush until the last moment.
slow_stop()
{
	check "the client attaches a file on a slow disk" attach file "client=b,reconnect_delay=1,keep_alive_tmo=$KEEP_ALIVE"
	check "data is written" write_some
	rm -f /tmp/load.stop
	while [ ! -e /tmp/load.stop ]; do
		write_some
		usleep 20000
	done &
	before
	meet stop
	meet stopped
	comes_back "a slow stop"
	touch /tmp/load.stop
	wait $!
	check "no loss is counted" [ "$(counter losses)" = 0 ]
	flush_is success "after a slow stop"
	check "the disk is detached" detach
}

# --- an export whose attributes change for a while ---

# turned ATTRIBUTE VALUE: disable the export, set the attribute, enable it
turned()
{
	turned_dir=$CONFIG/exports/file
	disabled "$turned_dir" && echo "$2" > "$turned_dir/$1" &&
		echo 1 > "$turned_dir/enable"
}

is_turned()
{
	for value in 1 0 1 0; do
		meet "turn $value"
		check "the export is read_only=$value" turned read_only $value
		meet "turned $value"
	done
}

# The disk supports discards, which a read-only one doesn't need.
turns()
{
	for value in 1 0 1 0; do
		before
		meet "turn $value"
		meet "turned $value"
		comes_back "read_only=$value"
		check "the disk has read_only=$value" wait_for 20 [ "$(cat "/sys/block/$DISK/ro")" = $value ]
	done
	check "the disk can be written to again" write_some
}

# --- an old write and a newer one ---

serve_slow()
{
	slow_disk && modprobe kofiblk_srv && configfs_up &&
		export_add slow /dev/mapper/slow uuid=$UUID allow_any=1 &&
		export_add other /tmp/file uuid=$UUID allow_any=1 && port_up slow other
}

is_late()
{
	meet late
	check "a write is outstanding at the slow disk" wait_for 60 under_way
	meet under-way
}

# fresh_disk OPTION,...
fresh_disk()
{
	check "the client attaches a slow disk" attach slow "client=b,ctrl_loss_tmo=0,$1"
}

sum()
{
	dd if="/dev/$DISK" bs=64k count=1 iflag=direct 2> /dev/null | md5sum
}

# The client's module is reloaded without a message to the server, which still has the old
# session, live, with an outstanding write of its store.
reloaded()
{
	pattern /tmp/p 64 6
	fresh_disk keep_alive_tmo=60
	dd if=/tmp/p of="/dev/$DISK" bs=64k oflag=direct 2> /dev/null &
	meet late
	meet under-way
	ip link set eth0 down
	check "the disk is removed, without a message to the server" give_up
	wait $!
	check "the client's module is unloaded" rmmod kofiblk
	ip link set eth0 up
	check "the client's module is loaded again" modprobe kofiblk
	check "a disk of another export is attached" attach other client=b
	check "the other disk is detached without waiting for the slow one" detach
	check "the slow disk is attached again" wait_for 60 attach slow client=b
	was_sum=$(sum)
	check "the slow disk has the data of the outstanding write" [ "$was_sum" = "$(md5sum < /tmp/p)" ]
	sleep 20
	check "the data doesn't change any more" [ "$(sum)" = "$was_sum" ]
	check "the disk is detached" detach
}

# --- what can't be exported, and what can't be stopped ---

zoned()
{
	zoned_dir=/sys/kernel/config/nullb/zoned
	mkdir "$zoned_dir" || return
	for setting in size=16 memory_backed=1 zoned=1 zone_size=4 power=1; do
		echo "${setting#*=}" > "$zoned_dir/${setting%%=*}" || return
	done
	[ -b /dev/zoned ]
}

is_stuck()
{
	check "a zoned disk is created" zoned
	refuse "exporting the zoned disk is refused" export_add zoned /dev/zoned
	rmdir $CONFIG/exports/zoned
	check "the zoned disk is removed" ram_gone zoned
	meet stuck
	check "a write is outstanding again" wait_for 60 under_way
	sh -c "echo 0 > $CONFIG/exports/slow/enable" &
	disabling=$!
	usleep 500000
	kill -9 $disabling
	begin=$(cut -d. -f1 /proc/uptime)
	wait $disabling
	refuse "enabling the export is refused while it is being disabled" sh -c "echo 1 > $CONFIG/exports/slow/enable"
	rm $CONFIG/ports/1/exports/slow
	# A task that waits for the end of the sessions doesn't keep others from the directories.
	sh -c "echo 0 > $CONFIG/exports/slow/enable" 2> /tmp/disabling &
	disabling=$!
	usleep 500000
	check "the export is removed" rmdir $CONFIG/exports/slow
	check "another export can be made" mkdir $CONFIG/exports/next
	rmdir $CONFIG/exports/next
	took=$(($(cut -d. -f1 /proc/uptime) - begin))
	check "no task waits for the store: $took s" [ $took -le 10 ]
	wait $disabling
	check "the wait for the sessions has a limit" grep -q "in progress" /tmp/disabling
	check "the write is still outstanding" under_way
	meet unstuck
}

stuck()
{
	fresh_disk keep_alive_tmo=60
	dd if=/tmp/p of="/dev/$DISK" bs=64k oflag=direct 2> /dev/null &
	meet stuck
	meet unstuck
	check "the disk is detached with an outstanding write" detach
	wait $!
}

# --- forged messages ---

# An impostor at the server's address, who doesn't know the secret, refuses the client for
# good: by this version of the protocol, by another one, and by a BYE.
impostor()
{
	host python3 - "${SERVER%:*}" > /tmp/impostor << 'END'
import socket, struct, sys

REJECT, BYE = 6, 8
reject = bytes(32) + struct.pack("<IHHHHB3x64s", 0, 18, 0, 0, 0, 0, b"go away")
bye = bytes(32) + struct.pack("<QBB6x", 1, 1, 0)
listener = socket.create_server((sys.argv[1], 4420), reuse_port=False)
for kind, body, newer in ((REJECT, reject, 0), (REJECT, reject, 1), (BYE, bye, 0)):
    talk = listener.accept()[0]
    magic, version = struct.unpack_from("<IH", talk.recv(4096))
    print(version, flush=True)
    talk.sendall(struct.pack("<IHHII", magic, version + newer, kind, 16 + len(body), 0) + body)
    talk.close()
END
}

serve_secret()
{
	modprobe kofiblk_srv && configfs_up &&
		export_add secret /tmp/file uuid=$UUID && allow secret b "$SECRET" &&
		port_up secret
}

is_impersonated()
{
	meet impostor
	ip link set eth0 down
	check "the server is unloaded, without a message to the client" server_gone
	ip link set eth0 up
	check "an impostor answers the client three times" impostor
	meet impostor-done
	check "the server with the secret is loaded again" serve_secret
	meet impostor-gone
}

stays()
{
	check "the client attaches a disk with a secret" attach secret "client=b,secret=$SECRET,$QUICK"
	before
	check "data is written" write_some
	meet impostor
	meet impostor-done
	check "the disk keeps connecting" state_is connecting
	check "the impostor's refusal is in the log" \
		sh -c "dmesg | grep -q 'refused by $SERVER: go away: -71'"
	meet impostor-gone
	comes_back "the impostor's answers"
}

# A client that is removed, or whose secret is, has no session any more.
not_live()
{
	! state_is live
}

is_let_in()
{
	client=$CONFIG/exports/secret/clients/b
	meet rotate
	echo "$OTHER_SECRET" > "$client/secret_alt"
	meet rotate-alt
	meet rotate-moved
	echo "$OTHER_SECRET" > "$client/secret"
	echo > "$client/secret_alt"
	meet rotated
	meet revoke
	check "the client is removed" rmdir "$client"
	meet revoked
	meet revoked-seen
	check "the client is allowed again" allow secret b "$OTHER_SECRET"
	meet restored
}

rotates()
{
	secret_disk=$DISK
	before
	meet rotate
	meet rotate-alt
	check "the disk keeps its session with a second secret" [ "$(attribute reconnects)" = "$was" ]
	echo "$OTHER_SECRET" > "/sys/block/$DISK/kofiblk/secret"
	echo 1 > "/sys/block/$DISK/kofiblk/reset"
	comes_back "the change to the second secret"
	before
	meet rotate-moved
	meet rotated
	sleep 2
	check "the session survives the removal of the first secret" [ "$(attribute reconnects)" = "$was" ]
	check "the session is live" state_is live
	meet revoke
	meet revoked
	check "a removed client loses its session" wait_for 20 not_live
	refuse "a removed client gets no new session" attach secret "client=b,secret=$OTHER_SECRET"
	DISK=$secret_disk
	meet revoked-seen
	meet restored
	comes_back "the client is allowed again"
	check "the disk is detached" detach
}

load_fabric
at server truncate -s 8M /tmp/file
at server check "the server is loaded" serve_file
at client check "the client's module is loaded" modprobe kofiblk
meet serving
at server server_restarts
at client client_flushes
meet flushed
at server check "the server is unloaded" server_gone
at server check "a server with a secret is loaded" serve_secret
meet secret
at server is_impersonated
at client stays
at server is_let_in
at client rotates
meet let-in
at server check "the server is unloaded" server_gone
at server check "a file system on a slow disk is mounted" slow_files
at server check "a server of a file on it is loaded" serve_slow_file
meet slow-file
at server stops_slowly
at client slow_stop
meet slow-file-gone
at server check "the server is unloaded" server_gone
at server check "the file system is unmounted" slow_files_gone
at server check "a server with a slow disk is loaded" serve_slow
meet slow
at server is_late
at client reloaded
at server is_stuck
at client stuck
at client check "the client's module is unloaded" rmmod kofiblk
at client check "the client leaves nothing open" nothing_open
meet client-gone
at server check "the server is unloaded at the end" server_gone
at server check "the server leaves nothing open" nothing_open
at server check "the slow disk is removed" slow_gone
at server rm -f /tmp/file
meet end
unload_fabric
