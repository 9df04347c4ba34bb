#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# lives: 2
# drive: 256M
# mem: 1G
# host-root: yes
# host-tools: rdma fio flock mkfs.ext4 python3
# modules: nfsd nfsv3 nfsv4 rpcrdma ext4 md5 hmac sha256_generic crc32c_generic
# more: yes
# timeout: 900
#
# The kernel's NFS, versions 3 and 4.2, between two guests on kofi_rc: thousands of small files,
# large ones, locks, and a server whose machine fails and boots again. Guest a is the server.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/rc.sh
. /bed/rc.sh

SRV=/host/tmp/srv		# the server's drive
MNT=/host/tmp/mnt
NFSD=/proc/fs/nfsd
FILES=2000
NEVER=2147483647		# seconds since 1970
FLAGS=$((0x2000 | 0x400 | 0x2))	# fsid=0, no_subtree_check, insecure

# --- the server ---

# exports: what rpc.mountd writes. Guest b may use $SRV/export.
exports()
{
	echo "nfsd $(ip_of b) $NEVER guest-b" > /proc/net/rpc/auth.unix.ip/channel &&
		echo "guest-b $SRV/export $NEVER $FLAGS 65534 65534 0" > \
			/proc/net/rpc/nfsd.export/channel &&
		printf 'guest-b 1 \\x00000000 %s %s\n' $NEVER $SRV/export > \
			/proc/net/rpc/nfsd.fh/channel
}

drive()
{
	mkdir -p $SRV || return
	[ "$LIFE" -gt 1 ] || host mkfs.ext4 -q /dev/vda || return
	mount -t ext4 /dev/vda $SRV && mkdir -p $SRV/export $SRV/clients
}

# The mount daemon needs the handle of the export's root.
daemons()
{
	exports && exec 5<> $NFSD/filehandle && echo "guest-b $SRV/export 64" >&5 &&
		read -r root_handle <&5 && exec 5>&- || return
	host python3 - "$root_handle" < /bed/guest/rc-nfs.py > /tmp/daemons 2>&1 &
	wait_for 30 grep -q ready /tmp/daemons
}

server_up()
{
	echo "rdma 20049" > $NFSD/portlist && echo 4 > $NFSD/threads && exports
}

server_init()
{
	modprobe -a nfsd rpcrdma && mount -t nfsd nfsd $NFSD &&
		echo $SRV/clients > $NFSD/nfsv4recoverydir && echo 10 > $NFSD/nfsv4gracetime &&
		echo 10 > $NFSD/nfsv4leasetime && daemons && server_up
}

server_down()
{
	echo 0 > $NFSD/threads
}

# --- the client ---

# mounts VERSION
mounts()
{
	mkdir -p $MNT
	mounts_options=proto=rdma,port=20049,addr=$SERVER,sec=sys
	case $1 in
	3)
		mounts_options=$mounts_options,mountproto=tcp,mountport=20048,mountaddr=$SERVER
		host mount -i -t nfs -o "vers=3,nolock,$mounts_options" "$SERVER:/" /tmp/mnt
		;;
	*) host mount -i -t nfs4 -o "vers=$1,$mounts_options,clientaddr=$IP" \
		"$SERVER:/" /tmp/mnt ;;
	esac
}

# by_rdma: check that the mount uses RDMA, whatever else the server offers
by_rdma()
{
	grep -q "/tmp/mnt nfs.*proto=rdma" /proc/mounts
}

# small_files: as many as a source tree has, of 0 to 20 KiB
small_files()
{
	mkdir -p /tmp/small && awk -v files=$FILES 'BEGIN {
		for (i = 0; i < files; i++) {
			name = "/tmp/small/" i
			printf "" > name
			for (line = 0; line < i * 7 % 211; line++)
				printf "line %d of file %d, and %d\n", line, i, i * line * line > name
			for (line = 0; i % 100 == 0 && line < 500; line++)
				printf "line %d of large file %d %d\n", line, i, line * line > name
			close(name)
		}
	}'
}

large_file()
{
	dd if=/dev/urandom of=/tmp/large bs=1M count=24 2> /dev/null
}

copies()
{
	cp -r /tmp/small /tmp/large $MNT/
}

same()
{
	diff -r /tmp/small $MNT/small > /tmp/diff 2>&1 && cmp /tmp/large $MNT/large && return
	head -n 5 /tmp/diff | cut -c 1-300 | sed 's/^/# /'
	return 1
}

all_listed()
{
	# shellcheck disable=SC2012 # names are numbers
	[ "$(ls $MNT/small | wc -l)" = $FILES ]
}

renamed_and_removed()
{
	mv $MNT/small $MNT/other && ln $MNT/other/7 $MNT/other/new && cmp $MNT/other/new /tmp/small/7 &&
		ln -s other/8 $MNT/link && cmp $MNT/link /tmp/small/8 && rm -r $MNT/other $MNT/link &&
		[ ! -e $MNT/other ]
}

# verifies FILE MEGABYTES
verifies()
{
	host fio --name="$1" --directory=/tmp/mnt --direct=1 --ioengine=libaio --iodepth=8 \
		--rw=randrw --bsrange=512-1m --size="$2m" --verify=crc32c --verify_fatal=1 \
		--verify_dump=0 --minimal > /tmp/fio.out 2>&1 && return
	tail -n 20 /tmp/fio.out | cut -c 1-300 | sed 's/^/# /'
	return 1
}

# uses VERSION: everything but locks
uses()
{
	check "version $1 is mounted" mounts "$1"
	check "by RDMA" by_rdma
	check "small files and a large one are written" copies
	check "it is unmounted" umount $MNT
	check "it is mounted again" mounts "$1"
	check "all small files are listed" all_listed
	check "all files are right" same
	check "files are renamed, linked and removed" renamed_and_removed
	check "fio verifies a file" verifies "v$1" 16
}

# locks DIRECTORY: lock a file, and keep the lock until the file "unlock" exists. A client whose
# lock was lost can't write.
locks()
{
	host python3 - "$1" <<- END
		import fcntl, os, sys, time
		with open(sys.argv[1] + "/lock", "w") as file:
		    fcntl.lockf(file, fcntl.LOCK_EX)
		    open(sys.argv[1] + "/locked", "w").close()
		    while not os.path.exists(sys.argv[1] + "/unlock"):
		        time.sleep(0.2)
		    file.write("still locked")
		    file.flush()
		    os.fsync(file.fileno())
	END
}

try_lock()
{
	host flock -n /tmp/mnt/lock true
}

# releases DIRECTORY: end the lock, and check that it was held
releases()
{
	: > "$1/unlock"
	wait "$lock_holder" && [ "$(cat "$1/lock")" = "still locked" ] &&
		rm "$1/lock" "$1/locked" "$1/unlock"
}

# --- load ---

file_load_begins()
{
	rm -f /tmp/load.*
	(
		while [ ! -e /tmp/load.stop ]; do
			verifies load 4 || : > /tmp/load.failed
			echo run >> /tmp/load.runs
		done
	) &
	load_pid=$!
}

# --- both ---

# unloads MODULE...: as soon as nobody uses them any more
unloads()
{
	for module in "$@"; do
		wait_for 20 rmmod "$module" || return
	done
}

server()
{
	check "the drive is mounted in life $LIFE" drive
	check "the server is up" server_init
	barrier "up-$LIFE" > /dev/null
	if [ "$LIFE" = 1 ]; then
		barrier used > /dev/null
		locks "${SRV#/host}/export" &
		lock_holder=$!
		check "the server locks a file" wait_for 30 test -e $SRV/export/locked
		barrier locked > /dev/null
		barrier refused > /dev/null
		check "the server's lock ends" releases $SRV/export
		barrier unlocked > /dev/null
		# Guest b kills this one.
		barrier up-2 > /dev/null
	fi
	barrier ended > /dev/null
	check "the server ends" server_down
	check "the drive is unmounted" umount $NFSD $SRV
	check "its modules are unloaded" unloads nfsd rpcrdma
}

client()
{
	check "the client's modules are loaded" modprobe -a rpcrdma nfsv3 nfsv4
	check "small files are made" small_files
	check "a large file is made" large_file
	barrier up-1 > /dev/null
	uses 3
	check "version 3 is unmounted" umount $MNT
	uses 4.2
	barrier used > /dev/null
	barrier locked > /dev/null
	refuse "the client can't lock it" try_lock
	barrier refused > /dev/null
	barrier unlocked > /dev/null
	check "the client can lock it now" try_lock
	locks "${MNT#/host}" &
	lock_holder=$!
	check "the client holds a lock" wait_for 30 test -e $MNT/locked
	file_load_begins
	check "fio begins" goes_on
	check "the server's machine fails" kill_guest a
	barrier up-2 > /dev/null
	check "fio goes on" goes_on
	check "all data was right" load_ends
	check "the lock was never lost" releases $MNT
	check "it is unmounted" umount $MNT
	barrier ended > /dev/null
	check "the client's modules are unloaded" unloads nfsv4 nfsv3 nfs rpcrdma
}

load_link
case $ROLE in
a) server ;;
b) client ;;
esac
for knob in reorder delay drop rnr; do
	check "$knob did something" injected $knob
done
barrier down > /dev/null
unload_link
