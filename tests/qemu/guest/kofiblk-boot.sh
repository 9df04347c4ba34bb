#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# kernel: stock-6.12
# guests: 2
# mem: 1G
# host-root: yes
# host-tools: rdma dmsetup tune2fs
# settings: SYSTEM=
# modules: overlay null_blk configfs hmac sha256_generic crc32c_generic dm_delay ext4
# full: yes
# timeout: 1200
#
# Server and client run Debian's systemd, with udev and LVM, as PID 1 of a namespace. What systemd
# does with the units, and udev with the rules, is what it does on a machine. A filesystem by UUID
# and one on a logical volume are in the client's fstab. They come back when the client reboots, and
# no write fails when the server is stopped or reboots. A reboot here is the end of all processes and
# the unloading of kofiblk's modules, not of the kernel.
# shellcheck source=tests/qemu/lib.sh
. /bed/lib.sh
# shellcheck source=tests/qemu/kofiblk.sh
. /bed/kofiblk.sh

ROOT=/tmp/root
UNITS=$ROOT/etc/systemd/system
DATA=$UUID
LVM=5b6f0b4c-0d6d-4a55-8a0b-0c3a4f6d1e01
PART=5b6f0b4c-0d6d-4a55-8a0b-0c3a4f6d1e02
FILESYSTEM=2f0a9f35-6a3f-4c1f-b7a5-1d2e3f405162
PARTITION=2f0a9f35-6a3f-4c1f-b7a5-1d2e3f405163
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/bin:/sbin

# --- a machine ---

system_made()
{
	modprobe overlay && mkdir -p /tmp/upper /tmp/work $ROOT && mount -t overlay -o \
		"lowerdir=/host$SYSTEM,upperdir=/tmp/upper,workdir=/tmp/work" overlay $ROOT || return
	mkdir -p $ROOT/etc/kofiblk $ROOT/usr/local/sbin $ROOT/usr/lib/modules $UNITS/remote-fs.target.wants \
		$UNITS/multi-user.target.wants $ROOT/etc/udev/rules.d $ROOT/data $ROOT/lv
	tr -d - < /proc/sys/kernel/random/uuid > $ROOT/etc/machine-id
	: > $ROOT/etc/fstab
	for file in kofiblk kofiblk-config kofiblk-server; do
		cp "/bed/tools/$file" $ROOT/usr/local/sbin && chmod 755 "$ROOT/usr/local/sbin/$file" || return
	done
	for file in kofiblk.service kofiblk@.service kofiblk-server.service; do
		sed "s,@SBIN@,/usr/local/sbin," "/bed/tools/$file" > "$UNITS/$file"
	done
	cp /bed/tools/60-kofiblk.rules $ROOT/etc/udev/rules.d
	# eth0 keeps its name, and the console is the bed's.
	ln -s /dev/null $ROOT/etc/udev/rules.d/80-net-setup-link.rules
	ln -s /dev/null "$UNITS/getty.target"
	# As the package's script does.
	ln -s /usr/lib/systemd/system/remote-fs.target "$UNITS/multi-user.target.wants/"
	mount -o bind /lib/modules $ROOT/usr/lib/modules && mount -o bind /dev $ROOT/dev
}

# inside COMMAND...: run it in the machine's namespaces
inside()
{
	nsenter -t "$INIT" -m -p -r "$@"
}

init_found()
{
	INIT=$(cat "/proc/$OUTER/task/$OUTER/children")
	INIT=${INIT% }
	[ -n "$INIT" ]
}

# active UNIT: whether a unit is active. Before systemd listens, systemctl says that all are.
active()
{
	inside test -S /run/systemd/private && inside systemctl -q is-active "$1"
}

# boots UNIT...: start systemd, and wait until these units are active
boots()
{
	# As in a container, systemd leaves the kernel's devices alone in the end.
	container=bed unshare -m -p -f chroot $ROOT /lib/systemd/systemd --show-status=0 < /dev/null \
		> /tmp/systemd.log 2>&1 &
	OUTER=$!
	check "systemd is started" wait_for 20 init_found
	for unit in multi-user.target "$@"; do
		# A look takes a second.
		check "$unit is active" wait_for 20 active "$unit"
		active "$unit" || explain
	done
}

ended()
{
	[ ! -d "/proc/$INIT" ]
}

shuts_down()
{
	inside systemctl --no-block --no-wall reboot
	check "systemd has shut down" wait_for 120 ended
	wait "$OUTER"
}

# Show what systemd thinks of it.
explain()
{
	tail -n 5 /tmp/systemd.log | sed 's/^/# /'
	inside systemctl --no-pager --failed --plain --no-legend | sed 's/^/# /'
	inside systemctl --no-pager list-jobs --plain --no-legend | head -n 20 | sed 's/^/# /'
	inside journalctl --no-pager -b -n 40 -o cat | cut -c 1-200 | sed 's/^/# /'
}

# --- the server ---

# The disk of the filesystem is slow when the server is stopped under load.
stores_made()
{
	slow_disk 0 && ram_disk n1 32 && ram_disk n2 16
}

slow_writes()
{
	dmsetup suspend --nolockfs slow && dmsetup reload slow --table "$(slow_table "$1")" &&
		dmsetup resume slow
}

server_configured()
{
	umask 077
	echo $SECRET > $ROOT/etc/kofiblk/b.secret
	umask 022
	cat > $ROOT/etc/kofiblk/server.json << END
{
	"exports": {
		"data": { "path": "/dev/mapper/slow", "uuid": "$DATA",
			"clients": { "b": { "secret_file": "/etc/kofiblk/b.secret" } } },
		"lvm": { "path": "/dev/n1", "uuid": "$LVM", "allow_any": true },
		"part": { "path": "/dev/n2", "uuid": "$PART", "allow_any": true }
	},
	"ports": { "1": { "addr": "$(ip_of a)", "exports": ["data", "lvm", "part"] } }
}
END
	ln -s ../kofiblk-server.service $UNITS/multi-user.target.wants/
}

server_runs()
{
	check "stores are made" stores_made
	check "the server's root is made" system_made
	server_configured
	boots kofiblk-server
	meet serving
	meet loaded
	check "the disk becomes slow" slow_writes 2000
	check "the server is stopped" inside systemctl stop kofiblk-server
	check "it exports nothing" [ -z "$(find $CONFIG/exports $CONFIG/ports -mindepth 1)" ]
	check "the epochs are kept" [ "$(find $ROOT/var/lib/kofiblk/epochs -type f | wc -l)" = 3 ]
	check "the disk becomes fast" slow_writes 0
	check "the server is started" inside systemctl start kofiblk-server
	meet restarted
	meet loaded-again
	shuts_down
	check "the server's module is unloaded" rmmod kofiblk_srv
	boots kofiblk-server
	meet rebooted
	meet client-down
	check "the filesystem was unmounted" clean
	meet client-up
	meet client-gone
	shuts_down
	check "the server's module is unloaded at the end" rmmod kofiblk_srv
	check "the server leaves nothing open" nothing_open
	umount $ROOT/dev $ROOT/usr/lib/modules $ROOT
	check "the stores are removed" stores_gone
}

stores_gone()
{
	dmsetup remove slow && rmmod dm_delay && ram_gone n3 && ram_gone n2 && ram_gone n1
}

clean()
{
	host tune2fs -l /dev/mapper/slow > /tmp/tune2fs && grep -q '^Filesystem state: *clean$' /tmp/tune2fs &&
		! grep -q needs_recovery /tmp/tune2fs
}

# --- the client ---

client_configured()
{
	umask 077
	echo $SECRET > $ROOT/etc/kofiblk/data.secret
	umask 022
	cat > $ROOT/etc/kofiblk/disks.conf << END
[DEFAULT]
address = $(ip_of a)
client = b
reconnect-delay = 1

[data]
secret-file = /etc/kofiblk/data.secret
[lvm]
[part]
END
	ln -s ../kofiblk.service $UNITS/remote-fs.target.wants/
}

# appears LINK...: check for udev's links in /dev/disk
appears()
{
	for link in "$@"; do
		check "udev makes $link" wait_for 30 [ -b "/dev/disk/$link" ]
	done
}

by_id()
{
	echo "/dev/disk/by-id/kofiblk-uuid.$1"
}

parted()
{
	echo "label: gpt
start=2048, uuid=$PARTITION, name=books" | inside sfdisk -q "$(by_id $PART)"
}

volume_made()
{
	inside pvcreate -q "$(by_id $LVM)" && inside vgcreate -q vg "$(by_id $LVM)" &&
		inside lvcreate -q -y -l 100%FREE -n lv vg
}

# udev watches a disk only some time after it has made the links and has told LVM. What is written
# before that gets no event.
watched()
{
	check "udev watches the disks" inside udevadm settle
}

disks_filled()
{
	appears "by-id/kofiblk-uuid.$DATA" "by-id/kofiblk-uuid.$LVM" "by-id/kofiblk-uuid.$PART"
	watched
	check "a filesystem is made" inside mkfs.ext4 -q -U $FILESYSTEM -L notes "$(by_id $DATA)"
	appears "by-uuid/$FILESYSTEM" by-label/notes
	check "a partition is made" parted
	appears "by-id/kofiblk-uuid.$PART-part1" "by-partuuid/$PARTITION" by-partlabel/books
	check "a logical volume is made" volume_made
	watched
	check "a filesystem is made on it" inside mkfs.ext4 -q -L volume /dev/vg/lv
	appears by-label/volume
	echo "UUID=$FILESYSTEM /data ext4 _netdev 0 0
/dev/vg/lv /lv ext4 _netdev 0 0" > $ROOT/etc/fstab
	check "systemd reads fstab" inside systemctl daemon-reload
	check "the filesystems are mounted" inside systemctl start data.mount lv.mount
	both_mounted
	check "files are written" inside sh -c 'seq 1000 > /data/seq && seq 1000 > /lv/seq && sync'
}

both_mounted()
{
	for where in data lv; do
		check "/$where is mounted" wait_for 10 inside mountpoint -q "/$where"
		inside mountpoint -q "/$where" || explain
	done
}

files_right()
{
	check "the files are there" inside sh -c 'seq 1000 | cmp - /data/seq && seq 1000 | cmp - /lv/seq'
}

# disk_of EXPORT: find the disk of an export
disk_of()
{
	for export in /sys/block/kofiblk*/kofiblk/export; do
		[ "$(cat "$export")" != "$1" ] || DISK=$(echo "$export" | cut -d / -f 4)
	done
}

# survives WHAT BEFORE AFTER: write and flush all the time, until the server is back. It goes and
# comes between these two barriers.
survives()
{
	disk_of data
	before
	rm -f $ROOT/root/stop $ROOT/root/failed $ROOT/root/writes
	inside sh -c 'while [ ! -e /root/stop ]; do
		dd if=/dev/urandom of=/data/load bs=4k count=8 conv=fsync,notrunc 2>> /root/failed > /dev/null && echo
	done > /root/writes' &
	load=$!
	check "data is written and flushed" wait_for 30 [ -s $ROOT/root/writes ]
	meet "$2"
	meet "$3"
	check "the disk has a new session after $1" wait_for 60 session_after "$was"
	lines=$(wc -l < $ROOT/root/writes)
	sleep 3
	check "data is written and flushed after $1" [ "$(wc -l < $ROOT/root/writes)" -gt "$lines" ]
	touch $ROOT/root/stop
	wait $load
	check "no write failed" [ "$(grep -c -v 'records\|copied' $ROOT/root/failed)" = 0 ]
	check "no loss is counted after $1" [ "$(attribute lost) $(counter losses)" = "0 0" ]
}

no_disks()
{
	[ -z "$(ls -d /sys/block/kofiblk* 2> /dev/null)" ]
}

client_goes()
{
	shuts_down
	check "the disks are removed" no_disks
	check "the client's module is unloaded" rmmod kofiblk
}

client_runs()
{
	check "the client's root is made" system_made
	# Two mounts at once may both need the module; the one that doesn't load it fails then.
	modprobe ext4
	client_configured
	meet serving
	boots kofiblk
	disks_filled
	survives "a planned stop" loaded restarted
	survives "a reboot of the server" loaded-again rebooted
	client_goes
	meet client-down
	boots kofiblk remote-fs.target
	both_mounted
	files_right
	meet client-up
	by_hand
	client_goes
	umount $ROOT/dev $ROOT/usr/lib/modules $ROOT
	check "the client leaves nothing open" nothing_open
}

# A disk in use isn't removed by hand. One unit has one disk.
by_hand()
{
	check "stopping the service fails while disks are in use" inside sh -c \
		'systemctl stop kofiblk; systemctl -q is-failed kofiblk'
	both_mounted
	check "the filesystems are unmounted" inside umount /data /lv
	check "the service is started again" inside systemctl start kofiblk
	check "the service is stopped" inside systemctl stop kofiblk
	check "no disk is left" no_disks
	echo "ADDRESS=$(ip_of a)
OPTIONS=--client b" > $ROOT/etc/kofiblk/data.conf
	echo "ADDRESS=$(ip_of a)" > $ROOT/etc/kofiblk/lvm.conf
	for export in data lvm; do
		check "the service of $export is started" inside systemctl start kofiblk@$export
	done
	appears "by-uuid/$FILESYSTEM"
	# LVM activates a volume group by itself only once in a boot.
	check "the logical volume is activated" inside vgchange -q -ay vg
	check "both filesystems are mounted by hand" inside systemctl start data.mount lv.mount
	files_right
}

load_fabric
at server server_runs
at client client_runs
at client meet client-gone
meet end
unload_fabric
