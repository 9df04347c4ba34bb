# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Hostile clients of kofiblk's server:  hostile.py ADDRESS PORT ADDR_FORMAT [MAY]

Prints TAP. After each of them an ordinary client must be served. With MAY, runs only a client
that opens more than its MAY connections, at a server that is slow."""

import contextlib
import hashlib
import hmac
import os
import pathlib
import random
import select
import socket
import struct
import sys
import time

# Messages of kofi_cm, and its private data
MAGIC = 0x4d434f6b
HELLO, CHALLENGE, AUTH, ACCEPT, READY, REJECT, NOTE, BYE, PING, PONG = range(1, 11)
HDR = struct.Struct("<IHHII")
HEAD = struct.Struct("<32s32s64s64s16sIIHHHHH6x")
PRIV_MAGIC, VERSION = 0x4b4c424b, 6
PRIV = struct.Struct("<16sIIIIHHHHII")
SECRET = bytes.fromhex("7d0bd6a4f5a13c1f0d2a5b8e9c6f4e3d2c1b0a99887766554433221100ffeedd")
OTHER_SECRET = bytes(range(32))
NOENT, ACCESS, BUSY, STALE, PROTO = 14, 15, 16, 17, 18
NOTSUPP, INVAL = 2, 11
# FI_PROTO_EFA, and the version of fabric efa-direct
EFA_DIRECT = 20 << 16 | 1

where = (sys.argv[1], int(sys.argv[2]))
addr_format = int(sys.argv[3])
count = 0


def report(good, what):
    global count
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)


def header(kind, length, **change):
    fields = {"magic": MAGIC, "version": 1, "type": kind, "len": length, "reserved": 0}
    fields.update(change)
    return HDR.pack(*fields.values())


def hello(**change):
    """Return: a valid HELLO, except for the changed fields."""
    fields = {
        "nonce": os.urandom(32), "service": b"kofiblk", "client": b"host", "export": b"disk0",
        "host": os.urandom(16), "alive": 5000, "addr_format": addr_format, "addr_len": 32,
        "count": 1, "priv_len": None, "oldest": VERSION, "newest": VERSION,
    }
    priv = {
        "content": bytes(16), "caps": 15, "max_io": 1 << 20, "inline_max": 4096,
        "keep_alive": 5000, "queues": 1, "depth": 32, "inline_read": 8192, "reserved": 0,
        "protocol": EFA_DIRECT, "reserved2": 0,
    }
    head = change.pop("header", {})
    priv_head = change.pop("priv_header", {})
    addrs = change.pop("addrs", None)
    data = change.pop("data", None)
    for name, value in change.items():
        (priv if name in priv else fields)[name] = value
    if addrs is None:
        addrs = bytes(min(fields["count"] * fields["addr_len"], 3000))
    if data is None:
        body = PRIV.pack(*priv.values())
        words = {"magic": PRIV_MAGIC, "version": VERSION, "type": 1, "len": HDR.size + len(body)}
        words.update(priv_head)
        data = HDR.pack(*words.values(), 0) + body
    if fields["priv_len"] is None:
        fields["priv_len"] = len(data)
    body = HEAD.pack(*fields.values()) + addrs + data
    return header(HELLO, HDR.size + len(body), **head) + body


class Talk:
    def __init__(self, source="127.0.0.1"):
        self.sock = socket.create_connection(where, timeout=15,
                                             source_address=(source, 0))

    def send(self, data):
        with contextlib.suppress(OSError):
            self.sock.sendall(data)

    def take(self, n):
        data = b""
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            if not more:
                return data
            data += more
        return data

    def recv(self):
        """Return: (type, message), or (None, ...) at the end of the connection."""
        try:
            head = self.take(HDR.size)
            if len(head) < HDR.size:
                return None, head
            _, _, kind, length, _ = HDR.unpack(head)
            return kind, head + self.take(length - HDR.size)
        except OSError:
            return None, b""

    def close(self):
        self.sock.close()


def mac(key, label, *parts):
    return hmac.new(key, b"kofi_cm " + label + b"\0" + b"".join(parts), hashlib.sha256).digest()


def proof(key, *parts):
    return mac(key, b"auth", *parts)


def challenge_macs(challenge):
    return [challenge[48:80], challenge[80:112]]


def server_knows(key, first, challenge):
    """Return: whether a MAC of the challenge proves that the server knows the key."""
    blank = challenge[:48] + bytes(64) + challenge[112:]
    return mac(key, b"challenge", first, blank) in challenge_macs(challenge)


def authenticate(talk, first, key=SECRET):
    talk.send(first)
    kind, challenge = talk.recv()
    if kind != CHALLENGE:
        return kind, challenge
    talk.send(header(AUTH, 48) + proof(key, first, challenge))
    return talk.recv()


def status(kind, message):
    return struct.unpack_from("<H", message, 52)[0] if kind == REJECT else None


def again(message):
    return message[60]


def why(message):
    return message[64:].rstrip(b"\0")


def works(what, source="127.0.0.1"):
    """An authenticated client is refused only for its address format."""
    talk = Talk(source)
    kind, message = authenticate(talk, hello(addr_format=0xffff))
    report(status(kind, message) == NOTSUPP, f"an ordinary client is served: {what}")
    talk.close()


def refused(what, data, *expected):
    talk = Talk()
    talk.send(data)
    with contextlib.suppress(OSError):
        talk.sock.shutdown(socket.SHUT_WR)
    kind, message = talk.recv()
    got = status(kind, message)
    report(kind is None and not expected or got in expected,
           f"{what}: {kind} {got}")
    talk.close()


def tried(what, want, key=SECRET, **change):
    """A client that goes on until its proof."""
    talk = Talk()
    got = status(*authenticate(talk, hello(**change), key))
    report(got == want, f"{what}: {got}")
    talk.close()


def wrong_messages():
    right = hello()
    refused("nothing", b"")
    refused("a byte", b"x")
    refused("half a header", right[:9])
    refused("half a HELLO", right[:100])
    for what, change in (
            ("magic", {"magic": 1}), ("version", {"version": 2}), ("type 0", {"kind": 0}),
            ("type 99", {"kind": 99}), ("reserved", {"reserved": 1})):
        kind = change.pop("kind", HELLO)
        refused(what, header(kind, len(right), **change) + right[16:])
    for length in (0, 1, 15, 4097, 1 << 31, (1 << 32) - 1):
        refused(f"length {length}", hello(header={"len": length}))
    refused("only a header", header(HELLO, 16))
    for kind in range(CHALLENGE, PONG + 1):
        refused(f"type {kind} first", header(kind, 48) + bytes(32))
    for change in (
            {"count": 0}, {"count": 17}, {"count": 65535}, {"count": 2, "addrs": bytes(32)},
            {"addr_len": 0}, {"addr_len": 65}, {"addr_len": 65535}, {"alive": 0},
            {"alive": 0xffffffff}, {"priv_len": 65535}, {"client": b""}, {"client": b"a" * 64},
            {"client": b"a\0b"}, {"client": b"a\nb"}, {"export": b"\xff"}):
        name, value = next(iter(change.items()))
        refused(f"{name} {str(value)[:20]}", hello(**change))
    for change in (
            {"host": bytes(16)}, {"client": b"a/b"}, {"client": b".."}, {"export": b"../disk0"},
            {"export": b""}):
        name, value = next(iter(change.items()))
        refused(f"{name} {str(value)[:20]}", hello(**change), INVAL)
    refused("another version", hello(oldest=5, newest=5), PROTO)
    refused("another service", hello(service=b"pingpong"), NOENT)
    refused("another export", hello(export=b"disk1"), NOENT)
    refused("an export that isn't on this port", hello(export=b"hidden"), NOENT)


def wrong_private_data():
    """A client that knows the secret says something wrong."""
    for change in (
            {"queues": 0}, {"queues": 17}, {"queues": 65535}, {"queues": 2}, {"depth": 0},
            {"depth": 257}, {"depth": 65535}, {"max_io": 0}, {"max_io": 0xfffff000},
            {"max_io": 4097}, {"inline_max": 4097}, {"inline_max": 0xffffffff}, {"keep_alive": 0},
            {"keep_alive": 0xffffffff}, {"inline_read": 8193}, {"reserved": 1}, {"reserved2": 1},
            {"data": b""}, {"data": b"x"}, {"data": bytes(64)}, {"data": bytes(1024)},
            {"priv_header": {"magic": MAGIC}}, {"priv_header": {"version": 5}},
            {"priv_header": {"type": 2}}, {"priv_header": {"len": 63}}):
        name, value = next(iter(change.items()))
        tried(f"{name} {str(value)[:20]}", PROTO, **change)


def other_fabric():
    """Another address format is refused with a retry, as the server may get another device. So is
    another protocol with the same address format."""
    for change in {"addr_format": 0xffff}, {"protocol": EFA_DIRECT + 3}:
        talk = Talk()
        kind, message = authenticate(talk, hello(**change))
        report(status(kind, message) == NOTSUPP and again(message) == 1 and
               b"fabric efa-direct" in why(message),
               f"another fabric is refused for now: {message[48:51].hex()}")
        talk.close()


def wrong_proofs():
    tried("another secret", ACCESS, OTHER_SECRET)
    tried("no secret", ACCESS, b"")
    tried("another client", ACCESS, client=b"guest")
    tried("another disk's content", STALE, content=b"x" * 16)
    talk = Talk()
    talk.send(hello())
    talk.recv()
    talk.send(header(AUTH, 48) + bytes(32))
    report(status(*talk.recv()) == ACCESS, "a proof of zeroes")
    talk.close()
    # The proof of one connection is invalid in another.
    first = hello()
    talk = Talk()
    talk.send(first)
    old = talk.recv()[1]
    talk.close()
    talk = Talk()
    talk.send(first)
    talk.recv()
    talk.send(header(AUTH, 48) + proof(SECRET, first, old))
    report(status(*talk.recv()) == ACCESS, "an old proof")
    talk.close()
    talk = Talk()
    talk.send(first)
    talk.recv()
    talk.send(first)
    report(talk.recv()[0] is None, "HELLO twice")
    talk.close()


def device_address():
    """Return: the address of an endpoint that could be on this machine's device."""
    gid = pathlib.Path("/sys/class/infiniband/es0/ports/1/gids/0").read_text(encoding="ascii")
    return bytes.fromhex(gid.strip().replace(":", "")) + struct.pack("<HHIQ", 77, 0, 5, 0)


class Live(Talk):
    """A client that has a session."""
    def __init__(self, key=SECRET, source="127.0.0.1", **change):
        super().__init__(source)
        first = hello(addrs=device_address(), **change)
        self.key = key
        self.send(first)
        challenge = self.recv()[1]
        self.proof = proof(key, first, challenge)
        self.send(header(AUTH, 48) + self.proof)
        self.kind, self.message = self.recv()
        # That of the connection, and that of the fabric.
        self.keep_alive = [struct.unpack_from("<I", self.message, at)[0] for at in (56, 156)] \
            if self.kind == ACCEPT else None
        self.session = mac(key, b"session", self.proof)
        if self.live():
            self.say(READY)

    def proved(self, kind, message):
        blank = message[:16] + bytes(32) + message[48:]
        return message[16:48] == mac(self.session, b"passive %d" % kind, self.proof, blank)

    def live(self):
        return self.kind == ACCEPT and self.proved(ACCEPT, self.message)

    def told_to_come_back(self):
        kind, message = self.recv()
        while kind == PING:
            kind, message = self.recv()
        return kind == BYE and message[57] == 1 and self.proved(BYE, message)

    def say(self, kind, tail=b"", label=None):
        blank = header(kind, 48 + len(tail)) + bytes(32) + tail
        label = label or b"active %d" % kind
        self.send(blank[:16] + mac(self.session, label, self.proof, blank) + blank[48:])

    def bye(self, label=None, number=1):
        self.say(BYE, struct.pack("<QBB6x", number, 0, 1), label)


def sessions():
    """Messages that begin and end sessions."""
    host = os.urandom(16)
    first = Live(host=host, alive=3600000, keep_alive=3600000)
    report(first.live(), "a session")
    report(first.keep_alive == [60000, 60000],
           f"its two keep-alive times are limited to {first.keep_alive} ms")
    second = Live(host=host, source="127.0.0.9")
    report(second.live(), "another session of the same host")
    report(first.told_to_come_back(), "replaces the first session")
    other = Live(alive=60000, keep_alive=60000)
    report(other.live(), "a session of another host")
    for label, number in ((b"passive 8", 1), (b"active 7", 1), (None, 2)):
        talk = Live()
        talk.bye(label, number)
        report(talk.told_to_come_back(),
               f"a BYE with the label {label} and the number {number} is a protocol error")
        talk.close()
    talk = Live()
    talk.say(NOTE, struct.pack("<Q", 1) + b"hello")
    report(talk.told_to_come_back(), "and so is a note")
    talk.close()
    talk = Live()
    talk.bye()
    report(talk.recv()[0] is None, "a valid BYE ends the session")
    talk.close()
    second.send(header(AUTH, 48) + bytes(32))
    report(second.told_to_come_back(), "a client that violates the protocol may come back")
    other.sock.settimeout(1)
    report(other.recv()[0] is None and other.sock.fileno() >= 0, "other sessions aren't affected")
    for talk in (first, second, other):
        talk.close()


def server_first():
    """The server proves itself before the client does, and doesn't reveal which clients exist."""
    seen = []
    for client in (b"host", b"guest"):
        first = hello(client=client)
        talk = Talk()
        talk.send(first)
        kind, challenge = talk.recv()
        talk.close()
        seen.append((kind, len(challenge), challenge[112:]))
        report(server_knows(SECRET, first, challenge) == (client == b"host"),
               f"proof of the server to {client.decode()}")
        report(len(set(challenge_macs(challenge)) | {bytes(32)}) == 3,
               f"the MACs to {client.decode()} are like those to any client")
    report(seen[0] == seen[1], f"known and unknown clients get the same answer: {seen}")
    talk = Talk()
    kind, message = authenticate(talk, hello(addr_format=0xffff))
    talk.close()
    report(kind == REJECT and any(message[16:48]), "messages after the proofs have a MAC")


def forgotten():
    """Wait until the server has closed all connections that were closed here."""
    held = {"01", "08"}     # established, and closed by the client only
    here = f":{where[1]:04X}"
    for _ in range(600):
        with open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in table]
        if not any(row[1].endswith(here) and row[3] in held for row in rows):
            return
        time.sleep(0.1)
    report(False, "the server closes connections that clients have closed")


def slow():
    """Silent clients don't block others, and the server closes their connections in the end."""
    forgotten()
    begin = time.monotonic()
    talks = [Talk(f"127.0.0.{2 + n % 4}") for n in range(120)]
    works("while four addresses have the maximum number of connections", "127.0.0.9")
    for talk in talks:
        talk.send(hello()[:20])
    works("after these have sent half of a HELLO", "127.0.0.9")
    ends = [talk.recv()[0] for talk in talks]
    took = time.monotonic() - begin
    report(ends == [None] * len(talks) and took < 30,
           f"all connections are closed, after {took:.0f} s")
    for talk in talks:
        talk.close()


def crowd(may):
    """A client opens the allowed number of connections, all of which wait, and four more."""
    talks = []
    for n in range(may + 4):
        talk = Talk(f"127.0.1.{1 + n // 4}")
        first = hello()
        talk.send(first)
        challenge = talk.recv()[1]
        talk.send(header(AUTH, 48) + proof(SECRET, first, challenge))
        talks.append(talk)
    begin = time.monotonic()
    answered = select.select([talk.sock for talk in talks], [], [], 5)[0]
    while len(answered) < 4 and time.monotonic() - begin < 5:
        time.sleep(0.2)
        answered = select.select([talk.sock for talk in talks], [], [], 0)[0]
    words = [why(talk.recv()[1]) for talk in talks if talk.sock in answered]
    report(words == [b"too many sessions of this client"] * 4,
           f"{may + 4} connections of a client that may have {may}: {words}")
    talk = Talk("127.0.0.9")
    talk.send(hello())
    kind, message = talk.recv()
    report(kind == CHALLENGE, f"another client is served meanwhile: {kind} {status(kind, message)}")
    talk.close()
    for talk in talks:
        talk.close()


def noise():
    rng = random.Random(1)
    right = hello()
    for _ in range(150):
        data = bytearray(right)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7f, 0x80, 0xff))
        talk = Talk()
        talk.send(data[:rng.choice((len(data), rng.randint(0, len(data))))])
        with contextlib.suppress(OSError):
            talk.sock.shutdown(socket.SHUT_WR)
        talk.recv()
        talk.close()
    report(True, "150 corrupted HELLOs")


def main():
    if len(sys.argv) > 4:
        crowd(int(sys.argv[4]))
        print(f"1..{count}")
        return
    works("at first")
    wrong_messages()
    works("after wrong messages")
    wrong_private_data()
    works("after wrong private data")
    wrong_proofs()
    works("after wrong proofs")
    server_first()
    sessions()
    other_fabric()
    noise()
    works("after noise")
    slow()
    works("after silent clients")
    print(f"1..{count}")


main()
