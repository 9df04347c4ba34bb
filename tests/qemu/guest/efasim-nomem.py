# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes a link again and again, and each time another allocation fails:

  nomem.py NAME NETDEV

until there is none left to fail. Which ones count is for the filters in debugfs
to say. A link that there is all the same is unmade. Prints how many were refused,
how many made, and how many of either without telling the truth."""

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

# All of what the device needs, which comes first; then some of what being
# registered takes.
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
    """The call's errno, or 0."""
    request(sock, command, ACK, *attributes)
    for kind, body in messages(sock.recv(65536)):
        if kind == ERROR:
            return -struct.unpack_from("=i", body)[0]
    return errno.EPROTO


def index_of(sock, name):
    """The device's, or None."""
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


def make(sock, name, netdev, nth, knob):
    """Errno, and whether an allocation failed."""
    os.pwrite(knob, b"%d" % nth, 0)
    error = call(sock, NEWLINK, attribute(DEV_NAME, name), attribute(LINK_TYPE, b"efasim\0"),
                 attribute(NDEV_NAME, netdev))
    left = int(os.pread(knob, 16, 0))
    os.pwrite(knob, b"0", 0)
    return error, left == 0


def main():
    name, netdev = (word.encode() + b"\0" for word in sys.argv[1:])
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA)
    knob = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
    refused = made = wrong = 0
    for nth in itertools.chain(range(1, FIRST), itertools.count(FIRST, STEP)):
        error, failed = make(sock, name, netdev, nth, knob)
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
