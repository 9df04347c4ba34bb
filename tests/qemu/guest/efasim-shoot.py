# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Send invalid datagrams to an efasim device:

  shoot.py ADDRESS PORT [SEED]
  shoot.py ADDRESS PORT flood SECONDS    valid ones, regardless of the window"""

import random
import socket
import struct
import sys
import time

HDR = struct.Struct(">IBBBB16sQQQQIIIIII")
REQ = struct.Struct(">QIIIIIIQII")
MAGIC = 0x45464153
TYPES = range(7)
LENGTHS = (0, 1, 79, 80, 95, 96, 127, 128, 129, 9216 + 128, 9472, 30000)


def header(rng, gid, **change):
    """Return: a valid header, except for the changed fields."""
    fields = {
        "magic": MAGIC, "version": 3, "type": 2, "flags": 0, "reserved": 0,
        "gid": gid, "src_inc": 1, "dst_inc": 0, "sack0": 0, "sack1": 0,
        "ack0": 1, "ack1": 1, "seq": 1, "base": 1, "length": 0, "reserved2": 0,
    }
    fields.update(change)
    return HDR.pack(*fields.values())


def request(rng, **change):
    fields = {
        "op": 0, "seg": 0, "src_qpn": 1, "dst_qpn": 1, "qkey": 0, "imm": 0,
        "rkey": 0, "raddr": 0, "rlen": 0, "reserved": 0,
    }
    fields.update(change)
    return REQ.pack(*fields.values())


def single_faults(rng, gid):
    """Datagrams with one fault each, so that each check of the parser fails once."""
    good = request(rng)
    yield b""
    yield b"x"
    yield header(rng, gid)[:79]
    yield header(rng, gid)                      # no body
    yield header(rng, gid, magic=1) + good
    yield header(rng, gid, version=1) + good
    yield header(rng, gid, type=7) + good
    yield header(rng, gid, type=255) + good
    yield header(rng, gid, flags=0x80) + good
    yield header(rng, gid, type=4, flags=1) + good
    yield header(rng, gid, length=5) + good
    yield header(rng, gid, length=0xffffffff) + good
    yield header(rng, gid) + good + b"more"
    yield (header(rng, gid) + good) * 70        # several in one datagram
    yield header(rng, gid, reserved=1) + good
    yield header(rng, gid, reserved2=1) + good
    yield header(rng, gid, src_inc=0) + good
    yield header(rng, gid, seq=65) + good       # beyond its own window
    yield header(rng, gid, seq=0) + good        # before it
    yield header(rng, gid) + request(rng, dst_qpn=0x10000)
    yield header(rng, gid) + request(rng, reserved=1)
    yield header(rng, gid, type=4) + request(rng, rlen=0xffffffff)
    yield header(rng, gid, type=3, length=8) + request(rng, rlen=4) + bytes(8)
    yield header(rng, gid, type=3, length=8) + \
        request(rng, rlen=8, raddr=2 ** 64 - 4) + bytes(8)
    yield header(rng, bytes(16)) + good         # not the sender's GID
    yield bytes(9472)
    yield bytes(30000)


def anything(rng, gid):
    """Return: a datagram that passes the parser, with random contents."""
    kind = rng.choice(TYPES)
    base = rng.getrandbits(32)
    length = rng.choice((0, 0, 8, 100, 9000))
    head = header(
        rng, gid, type=kind, length=length, src_inc=rng.choice((1, 2, 2 ** 63)),
        dst_inc=rng.choice((0, rng.getrandbits(64))), base=base,
        seq=(base + rng.randrange(70)) % 2 ** 32,
        sack0=rng.getrandbits(64), sack1=rng.getrandbits(64),
        ack0=rng.getrandbits(32), ack1=rng.getrandbits(32))
    body = request(
        rng, op=rng.getrandbits(64), seg=rng.getrandbits(32),
        dst_qpn=rng.randrange(300), qkey=rng.getrandbits(32),
        rkey=rng.getrandbits(24), raddr=rng.getrandbits(64),
        rlen=rng.choice((length, 0, 9216, rng.getrandbits(32))))
    if kind == 0:
        return head
    if kind in (5, 6):
        body = body[:16]
    return head + body + rng.randbytes(length)


def connect(address, port):
    """Return: a socket, and the GID that belongs to its address."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((address, port))
    own, own_port = sock.getsockname()
    return sock, b"\xfe\x80" + bytes(4) + struct.pack(">H", own_port) + bytes(2) + \
        b"\xff\xff" + socket.inet_aton(own)


def flood(address, port, seconds):
    """Have strangers send reads and messages that are refused, and acknowledge nothing."""
    strangers = [connect(address, port) for _ in range(8)]
    end = time.monotonic() + seconds
    sequence = 0
    body = request(None, rlen=9216)
    # First more requests than a stranger may have unacknowledged answers, so that it is given up
    # even if the loop below is slow.
    while sequence < 100:
        sequence += 1
        for sock, gid in strangers:
            sock.send(header(None, gid, type=4, seq=sequence, base=sequence) + body)
    while time.monotonic() < end:
        sequence += 1
        for sock, gid in strangers:
            sock.send(header(None, gid, type=4, seq=sequence, base=sequence) + body)
            sock.send(header(None, gid, type=2, length=8000, seq=sequence,
                             base=sequence) + body + bytes(8000))
    print("#", (2 * sequence - 100) * len(strangers), "datagrams")


def main():
    address, port = sys.argv[1], int(sys.argv[2])
    if sys.argv[3:4] == ["flood"]:
        flood(address, port, int(sys.argv[4]))
        return
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    sock, gid = connect(address, port)
    for datagram in single_faults(rng, gid):
        sock.send(datagram)
    for _ in range(3000):
        sock.send(anything(rng, gid))
    for length in LENGTHS:
        sock.send(rng.randbytes(length))


main()
