# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Create a device while the nth allocation fails, for each n:

  nomem.py NAME NETDEV TYPE

The filters in debugfs select the allocations that can fail. The program ends when creating
a device takes fewer than n of them. A device that was created is deleted again. Prints three
numbers: calls that failed, calls that succeeded, and calls of either kind with a wrong result."""

import errno
import itertools
import os
import socket
import struct
import sys

NETLINK_RDMA = 20
NLDEV = 5 << 10
GET, NEWLINK, DELLINK = 1, 3, 4
DEV_INDEX, DEV_NAME, NDEV_NAME, LINK_TYPE = 1, 2, 51, 65
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3
HDR = struct.Struct("=IHHII")
ATTR = struct.Struct("=HH")

# The device itself needs fewer allocations than FIRST, and each of them fails once. Of the later
# ones, which are for registering the device, every STEPth fails.
FIRST = 60
STEP = 8


def attribute(number, data):
    size = ATTR.size + len(data)
    return ATTR.pack(size, number) + data + bytes(-size % 4)


def request(sock, command, flags, *attributes):
    body = b"".join(attributes)
    sock.send(HDR.pack(HDR.size + len(body), NLDEV + command, REQUEST | flags, 0, 0) + body)


def messages(data):
    while data:
        size, kind = HDR.unpack_from(data)[:2]
        yield kind, data[HDR.size:size]
        data = data[size + -size % 4:]


def call(sock, command, *attributes):
    """Send a request. Return: its errno, or 0."""
    request(sock, command, ACK, *attributes)
    for kind, body in messages(sock.recv(65536)):
        if kind == ERROR:
            return -struct.unpack_from("=i", body)[0]
    return errno.EPROTO


def index_of(sock, name):
    """Return: the index of the device with this name, or None."""
    found = None
    request(sock, GET, DUMP)
    while True:
        for kind, body in messages(sock.recv(65536)):
            if kind in (DONE, ERROR):
                return found
            values = {}
            while body:
                size, number = ATTR.unpack_from(body)
                values[number] = body[ATTR.size:size]
                body = body[size + -size % 4:]
            if values.get(DEV_NAME) == name:
                found = values[DEV_INDEX]


def make(sock, name, netdev, kind, nth, knob):
    """Create a device. Return: the errno, and whether an allocation failed."""
    os.pwrite(knob, b"%d" % nth, 0)
    error = call(sock, NEWLINK, attribute(DEV_NAME, name), attribute(LINK_TYPE, kind),
                 attribute(NDEV_NAME, netdev))
    left = int(os.pread(knob, 16, 0))
    os.pwrite(knob, b"0", 0)
    return error, left == 0


def main():
    name, netdev, kind = (word.encode() + b"\0" for word in sys.argv[1:])
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA)
    knob = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
    refused = made = wrong = 0
    for nth in itertools.chain(range(1, FIRST), itertools.count(FIRST, STEP)):
        error, failed = make(sock, name, netdev, kind, nth, knob)
        index = index_of(sock, name)
        wrong += (error == 0) != (index is not None)
        if index is not None:
            wrong += call(sock, DELLINK, attribute(DEV_INDEX, index)) != 0
        if not failed:
            break
        refused += error != 0
        made += error == 0
    print(refused, made, wrong)


main()
