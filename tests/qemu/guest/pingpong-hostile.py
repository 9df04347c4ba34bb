# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Hostile peers of pingpong on the loopback provider:  pingpong-hostile.py CASE ADDRESS PORT

The case notes is a client with a session, which sends more messages than the server waits for. The
cases memory and guard are servers, which accept a client with memory for less than one slot, or for
less than a slot's guard bytes. The exit status is 0 if the peer refuses that."""

import os
import socket
import struct
import sys

# Messages of kofi_cm, without a secret
MAGIC = 0x4d434f6b
HELLO, CHALLENGE, AUTH, ACCEPT, READY, REJECT, NOTE, BYE, PING, PONG = range(1, 11)
HDR = struct.Struct("<IHHII")
HEAD = struct.Struct("<32s32s64s64s16sIIHHHHH6x")
NO_MAC = bytes(32)
BYE_PROTOCOL = 4
# Those of pingpong, in private data and notes
PP_MAGIC, PP_VERSION = 0x70696b6f, 3
PP_HELLO, PP_TEST, PP_READY = range(1, 4)
SEND, STREAM = 0, 2
# Any endpoint of the loopback provider
ADDRESS = struct.pack("<II", 0x706f6f6c, 99)


def message(kind, body):
    return HDR.pack(MAGIC, 1, kind, HDR.size + len(body), 0) + body


def inner(kind, body):
    return HDR.pack(PP_MAGIC, PP_VERSION, kind, HDR.size + len(body), 0) + body


def limits(memory):
    return inner(PP_HELLO, struct.pack("<QQQII", 1 << 20, 0, memory, 16, 0))


class Talk:
    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(20)
        self.number = 0

    def take(self, n):
        data = b""
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def recv(self):
        """Return: (type, body) of the next message but PING, or (None, b"") at the end."""
        try:
            while True:
                _, _, kind, length, _ = HDR.unpack(self.take(HDR.size))
                body = self.take(length - HDR.size)
                if kind != PING:
                    return kind, body
        except (OSError, EOFError):
            return None, b""

    def send(self, kind, body):
        self.sock.sendall(message(kind, body))

    def note(self, data):
        self.number += 1
        self.send(NOTE, NO_MAC + struct.pack("<Q", self.number) + data)


def flood(where):
    """Return: whether the server ends the session because of too many notes."""
    talk = Talk(socket.create_connection(where, timeout=20))
    priv = limits(1 << 20)
    talk.send(HELLO, HEAD.pack(os.urandom(32), b"pingpong", b"hostile", b"", os.urandom(16), 60000,
                               0, len(ADDRESS), 1, len(priv), PP_VERSION, PP_VERSION) +
              ADDRESS + priv)
    got = [talk.recv()[0]]
    talk.send(AUTH, NO_MAC)
    got.append(talk.recv()[0])
    talk.send(READY, NO_MAC)
    # The server answers that it is ready, and waits for 1024 messages.
    test = inner(PP_TEST, struct.pack("<HHIIIQ", SEND, STREAM, 0, 1024, 1, 0))
    talk.note(test)
    got.append(talk.recv()[0])
    try:
        for _ in range(1000):
            talk.note(test)
    except OSError:
        pass
    kind, body = talk.recv()
    reason = body[40] if kind == BYE else None
    print(f"# {got}, then {kind} for the reason {reason}")
    return got == [CHALLENGE, ACCEPT, NOTE] and reason == BYE_PROTOCOL


def lacks(where, memory):
    """Return: whether a client refuses a server with so much memory."""
    with socket.create_server(where) as listener:
        listener.settimeout(20)
        talk = Talk(listener.accept()[0])
    got = [talk.recv()[0]]
    talk.send(CHALLENGE, os.urandom(32) + bytes(72))
    got.append(talk.recv()[0])
    priv = limits(memory)
    talk.send(ACCEPT, NO_MAC + struct.pack("<QIIHHHH", 1, 5000, 0, len(ADDRESS), 1, len(priv),
                                           PP_VERSION) + ADDRESS + priv)
    kind = talk.recv()[0]
    print(f"# {got}, then {kind}")
    return got == [HELLO, AUTH] and kind is None


def main():
    case, where = sys.argv[1], (sys.argv[2], int(sys.argv[3]))
    return flood(where) if case == "notes" else lacks(where, {"memory": 63, "guard": 15}[case])


sys.exit(0 if main() else 1)
