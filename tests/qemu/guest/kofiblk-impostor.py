# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A hostile server of kofiblk, over TCP and efasim:  impostor.py

It implements kofi_cm's sessions and the protocol over the fabric, so that it can send anything.
It has the kernel's client connect to it, uses the disk, and checks the results. Prints TAP."""

import contextlib
import errno
import hashlib
import hmac
import mmap
import os
import pathlib
import re
import socket
import struct
import threading
import time
import traceback

ADDRESS = ("127.0.0.1", 4420)
HERE = "10.9.0.2"           # address of the device that this program plays
HOST_ID = "3f1c7a52-9d44-4b0e-8f7b-5e2d6c8a9b10"
SECRET = bytes.fromhex("7d0bd6a4f5a13c1f0d2a5b8e9c6f4e3d2c1b0a99887766554433221100ffeedd")
CONTROL = "/dev/kofiblk-control"

# Messages of kofi_cm, and what is in them
MAGIC = 0x4d434f6b
HELLO, CHALLENGE, AUTH, ACCEPT, READY, REJECT, NOTE, BYE, PING, PONG = range(1, 11)
HDR = struct.Struct("<IHHII")
HELLO_LEN = 248
ACCEPT_HEAD = struct.Struct("<32sQIIHHHH")
REJECT_BODY = struct.Struct("<32sIHHHHB3x64s")
PRIV_MAGIC, VERSION = 0x4b4c424b, 6
PRIV_ACCEPT, PRIV_RESIZE = 2, 3
PRIV_BODY = struct.Struct("<16sQIIIIHHHHQIIIIIIQQ")
FI_ADDR_EFA = 12
READ, WRITE, FLUSH, DISCARD, ZEROES, KEEP_ALIVE, FETCHED, PROVE = range(1, 9)
RDMA_WRITE, CHECKSUM = 0x1, 0x10
CMD_INLINE, CMD_SUM = 0x2, 0x8
REPLY_READY, REPLY_INLINE, REPLY_SUM = 1, 2, 4
CMD = struct.Struct("<BBHHHQQQQQQQ")
REPLY = struct.Struct("<BBHHHQQQQQQ")
WORD = 8
PROTECTION = 9
DISK = 4 << 20
NONCE = 0x0102030405060708
LIMIT = 300
count = 0


def report(good, what):
    global count
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)


# --- CRC-32C, by its definition ---

def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = crc_table()


def crc(data, value=0xffffffff):
    for byte in data:
        value = TABLE[(value ^ byte) & 0xff] ^ value >> 8
    return value


def checksum(cmd, data=b""):
    return crc(data, crc(struct.pack("<QQQQHB5x", cmd.session, cmd.id, cmd.offset, cmd.bytes,
                                     cmd.flags, cmd.op)))


# --- SipHash-2-4, by its definition ---

MASK = 2 ** 64 - 1


def rotated(value, bits):
    return (value << bits | value >> 64 - bits) & MASK


def sip_round(a, b, c, d):
    a = a + b & MASK
    c = c + d & MASK
    b = rotated(b, 13) ^ a
    d = rotated(d, 16) ^ c
    a = rotated(a, 32)
    c = c + b & MASK
    a = a + d & MASK
    b = rotated(b, 17) ^ c
    d = rotated(d, 21) ^ a
    return a, b, rotated(c, 32), d


def siphash(key, data):
    first, second = struct.unpack("<QQ", key)
    state = (first ^ 0x736f6d6570736575, second ^ 0x646f72616e646f6d,
             first ^ 0x6c7967656e657261, second ^ 0x7465646279746573)
    whole = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xff])
    for (word,) in struct.iter_unpack("<Q", whole):
        state = (*state[:3], state[3] ^ word)
        state = sip_round(*sip_round(*state))
        state = (state[0] ^ word, *state[1:])
    state = (*state[:2], state[2] ^ 0xff, state[3])
    for _ in range(4):
        state = sip_round(*state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def tag_of(key, message, at, nonce):
    """The tag of a message without data, whose tag is at this offset."""
    return siphash(key, message[:at] + struct.pack("<Q", nonce) + message[at + 8:])


# --- the device ---

class Device:
    """An efasim device on a network of its own, with one peer."""
    WIRE = struct.Struct(">IBBBB16sQQQQIIIIII")
    REQ = struct.Struct(">QIIIIIIQII")
    RESP = struct.Struct(">QII")
    ACK, _UD, SEND, RDMA_WRITE, RDMA_READ, DONE, DATA = range(7)
    LANE = {SEND: 0, RDMA_WRITE: 0, RDMA_READ: 0, DONE: 1, DATA: 1}
    WINDOW = 48
    SEGMENT = 8192

    def __init__(self, received):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((HERE, 0))
        address, port = self.sock.getsockname()
        self.gid = b"\xfe\x80" + bytes(4) + struct.pack(">H", port) + bytes(2) + \
            b"\xff\xff" + socket.inet_aton(address)
        self.address = self.gid + struct.pack("<HHIQ", 5, 0, 7, 0)
        self.received = received
        self.lock = threading.RLock()
        self.incarnation = 0x1234
        self.meet(bytes(16))
        threading.Thread(target=self.run, daemon=True).start()

    def meet(self, gid):
        self.peer_gid = gid
        self.peer = (socket.inet_ntoa(gid[12:16]), struct.unpack(">H", gid[6:8])[0])
        self.their_incarnation = 0
        self.next_in = [None, None]
        self.early = [set(), set()]
        self.next_out = [1, 1]
        self.base = [1, 1]
        self.sent = [{}, {}]    # by lane and number, until the peer acknowledges them
        self.waiting = {}
        self.ops = 0

    def packet(self, kind, body=b"", payload=b""):
        lane = self.LANE.get(kind)
        seq = 0
        if lane is not None:
            seq = self.next_out[lane]
            self.next_out[lane] += 1
            self.sent[lane][seq] = [time.monotonic(), kind, body, payload]
        self.transmit(kind, body, payload, lane, seq)

    def transmit(self, kind, body, payload, lane, seq):
        acks = [n or 1 for n in self.next_in]
        sacks = [sum(1 << n - ack - 1 for n in early if n > ack)
                 for ack, early in zip(acks, self.early)]
        head = self.WIRE.pack(0x45464153, 3, kind, 0, 0, self.gid, self.incarnation,
                              self.their_incarnation, *sacks, *acks, seq,
                              self.base[lane] if lane is not None else 0, len(payload), 0)
        self.sock.sendto(head + body + payload, self.peer)

    def resend(self):
        """Send packets again that the peer hasn't acknowledged for a while."""
        now = time.monotonic()
        for lane, sent in enumerate(self.sent):
            for seq in [seq for seq in sent if seq < self.base[lane]]:
                del sent[seq]
            for seq, packet in sent.items():
                if now - packet[0] > 0.3:
                    packet[0] = now
                    self.transmit(*packet[1:], lane, seq)

    def sequenced(self, lane, seq, base):
        """Note a sequence number. Return: whether it is new."""
        if self.next_in[lane] is None:
            self.next_in[lane] = base
        if seq < self.next_in[lane] or seq in self.early[lane]:
            return False
        self.early[lane].add(seq)
        while self.next_in[lane] in self.early[lane]:
            self.early[lane].remove(self.next_in[lane])
            self.next_in[lane] += 1
        return True

    def take(self, kind, body, payload):
        if kind == self.SEND:
            req = self.REQ.unpack(body)
            self.packet(self.DONE, self.RESP.pack(req[0], req[1], 0))
            self.received(req[2], payload)
        elif kind in (self.DONE, self.DATA):
            op, seg, status = self.RESP.unpack(body)
            self.waiting[op, seg] = (status, payload)
        else:
            req = self.REQ.unpack(body)
            self.packet(self.DONE, self.RESP.pack(req[0], req[1], 8))

    def datagram(self, data):
        while len(data) >= self.WIRE.size:
            head = self.WIRE.unpack_from(data)
            kind, length = head[2], head[14]
            body = {0: 0, self.DONE: self.RESP.size, self.DATA: self.RESP.size}.get(
                kind, self.REQ.size)
            start = self.WIRE.size + body
            if head[5] == self.peer_gid:
                self.their_incarnation = head[6]
                self.base = [max(old, ack) for old, ack in zip(self.base, head[10:12])]
                lane = self.LANE.get(kind)
                if lane is not None and self.sequenced(lane, head[12], head[13]):
                    self.take(kind, data[self.WIRE.size:start], data[start:start + length])
                if lane is not None:
                    self.packet(self.ACK)
            data = data[start + length:]

    def run(self):
        self.sock.settimeout(0.1)
        while True:
            with contextlib.suppress(TimeoutError):
                data = self.sock.recv(65536)
                with self.lock:
                    self.datagram(data)
            with self.lock:
                self.resend()

    def ask(self, kind, qpn, qkey, payload=b"", raddr=0, rkey=0, rlen=0):
        """Return: the packet's status and data. The device's own thread mustn't call this."""
        end = time.monotonic() + 10
        with self.lock:
            self.ops += 1
            op = self.ops
            body = self.REQ.pack(op, 0, 5, qpn, qkey, 0, rkey, raddr, rlen, 0)
        while time.monotonic() < end:
            with self.lock:
                if self.next_out[0] - self.base[0] < self.WINDOW:
                    self.packet(kind, body, payload)
                    break
            time.sleep(0.005)
        while time.monotonic() < end:
            with self.lock:
                if (op, 0) in self.waiting:
                    return self.waiting.pop((op, 0))
            time.sleep(0.001)
        return None, b""


# --- the server ---

def header(kind, length, **change):
    fields = {"magic": MAGIC, "version": 1, "type": kind, "len": length, "reserved": 0}
    fields.update(change)
    return HDR.pack(*fields.values())


def private(kind, body):
    return HDR.pack(PRIV_MAGIC, VERSION, kind, HDR.size + len(body), 0) + body


def mac(key, label, *parts):
    return hmac.new(key, b"kofi_cm " + label + b"\0" + b"".join(parts), hashlib.sha256).digest()


class Keys:
    """The keys of a session, derived from the client's proof. Without a secret there are none."""
    def __init__(self, proof, secret):
        self.proof = proof
        self.session = mac(secret, b"session", proof) if secret else None
        key = mac(self.session, b"tags")[:16] if secret else bytes(16)
        tags = [struct.pack("<Q", siphash(key, struct.pack("<Q", n))) for n in range(4)]
        self.cmd = b"".join(tags[:2])
        self.reply = b"".join(tags[2:])

    def sign(self, kind, message):
        """Put the MAC into a message, which has room for it behind the header."""
        if not self.session:
            return message
        return message[:16] + mac(self.session, b"passive %d" % kind, self.proof, message) + \
            message[48:]


class Cmd:
    def __init__(self, message):
        (self.version, self.op, self.flags, self.queue, _, self.session, self.id, self.offset,
         self.bytes, self.addr, self.key, self.tag) = CMD.unpack_from(message)
        head = CMD.size
        self.sum = None
        if self.flags & CMD_SUM:
            self.sum = struct.unpack_from("<I", message, head)[0]
            head += WORD
        self.head = message[:head]
        self.data = message[head:]


class Behaviour:
    """The behaviour of an honest server; cases override parts of it."""
    secret = None
    caps = RDMA_WRITE
    deaf = False    # doesn't answer PROVE

    def challenge(self, first):
        body = os.urandom(32) + bytes(64) + bytes([self.secret is not None]) + bytes(7)
        if self.secret:
            blank = header(CHALLENGE, 16 + len(body)) + body
            body = body[:32] + mac(SECRET, b"challenge", first, blank) + os.urandom(32) + body[96:]
        return header(CHALLENGE, 16 + len(body)) + body

    def accept(self, server, signed=True, **change):
        fields = {
            "content": b"\x07" * 16, "epoch": 9, "caps": self.caps & server.asked["caps"],
            "max_io": 65536, "inline_max": 4096, "keep_alive": server.asked["keep_alive"],
            "queues": 1, "depth": 8, "inline_read": 4096, "reserved": 0, "bytes": DISK, "flags": 2,
            "logical": 512, "physical": 4096, "io_min": 4096, "io_opt": 0, "granularity": 0,
            "discard_max": 0, "zeroes_max": 0,
        }
        head = {"mac": bytes(32), "session": server.session, "alive": server.asked["keep_alive"],
                "format": FI_ADDR_EFA, "addr_len": 32, "count": None, "priv_len": None,
                "version": VERSION}
        addrs = change.pop("addrs", None)
        for name, value in change.items():
            (head if name in head else fields)[name] = value
        if head["count"] is None:
            head["count"] = fields["queues"]
        priv = private(PRIV_ACCEPT, PRIV_BODY.pack(*fields.values()))
        if head["priv_len"] is None:
            head["priv_len"] = len(priv)
        if addrs is None:
            addrs = server.device.address * head["count"]
        body = ACCEPT_HEAD.pack(*head.values()) + addrs + priv
        message = header(ACCEPT, 16 + len(body)) + body
        return server.keys.sign(ACCEPT, message) if signed else message

    def answer(self, server, talk):
        """Answer a HELLO."""
        first = talk.message()
        server.hello(first)
        challenge = self.challenge(first)
        talk.send(challenge)
        server.proved(talk.message()[16:48], self.secret)
        talk.send(self.accept(server))

    def read(self, server, cmd, data):
        """Send the data and reply."""
        if cmd.flags & CMD_INLINE:
            server.reply(cmd, flags=REPLY_INLINE, data=data)
            return
        server.write_to(cmd, data)
        server.reply(cmd)

    def command(self, server, cmd):
        if cmd.op == PROVE:
            server.nonce = cmd.key
            if not self.deaf:
                server.reply(cmd, key=NONCE)
        elif cmd.op == KEEP_ALIVE:
            server.reply(cmd)
        elif cmd.op == READ:
            self.read(server, cmd, bytes(server.store[cmd.offset:cmd.offset + cmd.bytes]))
        elif cmd.op == WRITE:
            data = cmd.data or server.read_from(cmd)
            if cmd.sum is not None and checksum(cmd, data) != cmd.sum:
                server.wrong_sums += 1
            server.store[cmd.offset:cmd.offset + cmd.bytes] = data
            server.reply(cmd)
        else:
            server.reply(cmd)


class Talk:
    def __init__(self, sock):
        self.sock = sock
        self.keys = None
        self.number = 0
        self.lock = threading.Lock()
        sock.settimeout(10)

    def send(self, data):
        with contextlib.suppress(OSError):
            self.sock.sendall(data)

    def take(self, n):
        data = b""
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            if not more:
                raise OSError("the client left")
            data += more
        return data

    def message(self):
        head = self.take(HDR.size)
        return head + self.take(HDR.unpack(head)[3] - HDR.size)

    def say(self, kind, data=b"", step=1):
        """Send a numbered message."""
        with self.lock:
            self.number += step
            message = header(kind, 56 + len(data)) + bytes(32) + \
                struct.pack("<Q", self.number) + data
            self.send(self.keys.sign(kind, message))

    def wait(self):
        """Wait until the client closes the connection, and answer its PINGs."""
        self.sock.settimeout(None)
        with contextlib.suppress(OSError):
            while True:
                if HDR.unpack_from(self.message())[2] == PING:
                    self.say(PONG)


class Server:
    def __init__(self):
        self.behave = Behaviour()
        self.store = bytearray(os.urandom(DISK))
        self.talk = None
        self.sessions = self.wrong_sums = self.wrong_tags = 0
        self.session = self.nonce = 0
        self.said = []
        self.keys = Keys(bytes(32), None)
        self.queue = []
        self.wake = threading.Condition()
        self.device = Device(self.received)
        self.listener = socket.create_server(ADDRESS)
        threading.Thread(target=self.accept, daemon=True).start()
        threading.Thread(target=self.work, daemon=True).start()

    def hello(self, message):
        length, number = struct.unpack_from("<HH", message, 232)
        priv = HELLO_LEN + length * number
        self.client = dict(zip(("qpn", "pad", "qkey"),
                               struct.unpack_from("<HHI", message, HELLO_LEN + 16)))
        # The endpoint of a second queue, if the client wants one.
        self.other = (struct.unpack_from("<HHI", message, HELLO_LEN + 48) if number > 1 else
                      (0, 0, 0))
        self.asked = {"caps": struct.unpack_from("<I", message, priv + 32)[0],
                      "keep_alive": struct.unpack_from("<I", message, priv + 44)[0]}
        gid = message[HELLO_LEN:HELLO_LEN + 16]
        with self.device.lock:
            if self.device.peer_gid != gid:
                self.device.meet(gid)
        self.session = int.from_bytes(os.urandom(8), "little") | 1

    def proved(self, proof, secret):
        self.keys = Keys(proof, secret)
        self.talk.keys = self.keys

    def accept(self):
        while True:
            self.talk = Talk(self.listener.accept()[0])
            with contextlib.suppress(OSError, struct.error):
                self.behave.answer(self, self.talk)
                self.sessions += 1
                self.talk.wait()
            self.talk.sock.close()

    def received(self, _qpn, message):
        with self.wake:
            self.queue.append(message)
            self.wake.notify()

    def work(self):
        while True:
            with self.wake:
                self.wake.wait_for(lambda: self.queue)
                cmd = Cmd(self.queue.pop(0))
            if cmd.session == self.session:
                nonce = 0 if cmd.op == PROVE else NONCE
                self.wrong_tags += cmd.tag != tag_of(self.keys.cmd, cmd.head, CMD.size - 8, nonce)
                self.behave.command(self, cmd)

    def say(self, message):
        self.said.append(message)
        return self.device.ask(Device.SEND, self.client["qpn"], self.client["qkey"], message)[0]

    def say_again(self, message):
        """Send a message to both endpoints."""
        self.device.ask(Device.SEND, self.client["qpn"], self.client["qkey"], message)
        self.device.ask(Device.SEND, self.other[0], self.other[2], message)

    def reply(self, cmd, data=b"", **change):
        fields = {"version": VERSION, "op": cmd.op, "flags": 0, "status": 0, "queue": cmd.queue,
                  "session": cmd.session, "id": cmd.id,
                  "bytes": cmd.bytes if cmd.op in (READ, WRITE) else 0, "addr": 0, "key": 0,
                  "tag": None}
        value = change.pop("sum", None)
        fields.update(change)
        tag = fields.pop("tag")
        tail = b""
        if cmd.flags & CMD_SUM and cmd.op == READ and not fields["status"]:
            if value is None:
                whole = data or bytes(self.store[cmd.offset:cmd.offset + cmd.bytes])
                value = checksum(cmd, whole)
            fields["flags"] |= REPLY_SUM
            tail = struct.pack("<II", value, 0)
        head = REPLY.pack(*fields.values(), 0) + tail
        at = REPLY.size - 8
        if tag is None:
            tag = tag_of(self.keys.reply, head, at, self.nonce)
        return self.say(head[:at] + struct.pack("<Q", tag) + head[at + 8:] + data)

    def write_to(self, cmd, data, offset=0):
        status = None
        for at in range(0, len(data), Device.SEGMENT):
            piece = data[at:at + Device.SEGMENT]
            status = self.device.ask(Device.RDMA_WRITE, self.client["qpn"], self.client["qkey"],
                                     piece, (cmd.addr + offset + at) % 2 ** 64, cmd.key,
                                     len(piece))[0]
        return status

    def read_from(self, cmd):
        data = b""
        while len(data) < cmd.bytes:
            length = min(Device.SEGMENT, cmd.bytes - len(data))
            status, piece = self.device.ask(Device.RDMA_READ, self.client["qpn"],
                                            self.client["qkey"], b"", cmd.addr + len(data),
                                            cmd.key, length)
            if status:
                return bytes(cmd.bytes)
            data += piece
        return data


# --- the client ---

class Disk:
    """A disk that the kernel's client has attached."""
    def __init__(self, options=""):
        text = (f"addr={ADDRESS[0]}:{ADDRESS[1]},host_id={HOST_ID},export=disk0,client=host,"
                f"queues=1,depth=8,reconnect_delay=1,keep_alive_tmo=4,ctrl_loss_tmo=20{options}")
        with open(CONTROL, "r+b", buffering=0) as control:
            control.write(text.encode())
            self.name = re.fullmatch(rb"disk=(\w+)\n", control.read(64))[1].decode()
        self.sys = pathlib.Path("/sys/block") / self.name
        number = (self.sys / "dev").read_text().strip().split(":")
        self.node = f"/tmp/{self.name}"
        os.mknod(self.node, 0o60600, os.makedev(*map(int, number)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.unlink(self.node)
        (self.sys / "kofiblk" / "delete").write_text("1")
        end = time.monotonic() + 30
        while self.sys.exists() and time.monotonic() < end:
            time.sleep(0.05)
        report(not self.sys.exists(), f"{self.name} is removed")

    def read(self, offset, length):
        fd = os.open(self.node, os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, length) as room:
                if os.preadv(fd, [room], offset) != length:
                    return b""
                return bytes(room)
        finally:
            os.close(fd)

    def write(self, offset, data):
        fd = os.open(self.node, os.O_WRONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, len(data)) as room:
                room[:] = data
                os.pwritev(fd, [room], offset)
        finally:
            os.close(fd)

    def attribute(self, name):
        return (self.sys / "kofiblk" / name).read_text().strip()

    def counter(self, name):
        return int((self.sys / "kofiblk_stats" / name).read_text())

    def counts(self, name, value):
        """Wait until a counter has a value: a message is acknowledged before it is handled."""
        end = time.monotonic() + 5
        while self.counter(name) < value and time.monotonic() < end:
            time.sleep(0.05)
        return self.counter(name) == value


def failure(function, *args):
    """Return: the errno that the function fails with, or 0."""
    try:
        function(*args)
    except OSError as error:
        return error.errno
    return 0


# --- cases: set-up ---

class Says(Behaviour):
    """Sends something other than a valid CHALLENGE or ACCEPT."""
    def __init__(self, challenge=None, accept=None, secret=None, hang_up=True, **change):
        self.said = challenge
        self.accepted = accept
        self.change = change
        self.secret = secret
        self.hang_up = hang_up

    def answer(self, server, talk):
        first = talk.message()
        server.hello(first)
        challenge = self.challenge(first) if self.said is None else self.said
        talk.send(challenge)
        if self.said is None:
            server.proved(talk.message()[16:48], self.secret)
            talk.send(self.accept(server, **self.change) if self.accepted is None else
                      self.accepted(server))
        if self.hang_up:
            talk.sock.shutdown(socket.SHUT_RDWR)


def refused(server, what, behave, options="", *expected):
    server.behave = behave
    begin = time.monotonic()
    try:
        with Disk(options):
            report(False, f"{what}: a disk was attached")
            return
    except OSError as error:
        took = time.monotonic() - begin
        report((not expected or error.errno in expected) and took < 20,
               f"{what}: {errno.errorcode.get(error.errno, error.errno)}, after {took:.0f} s")


def wrong_challenges(server):
    right = Behaviour().challenge(b"")
    secret = ",secret=" + SECRET.hex()
    for what, message in (
            ("nothing", b""), ("a byte", b"x"), ("half a header", right[:9]),
            ("half a CHALLENGE", right[:60]), ("noise", os.urandom(300)),
            ("magic", header(CHALLENGE, len(right), magic=1) + right[16:]),
            ("another version", header(CHALLENGE, len(right), version=9) + right[16:]),
            ("type 0", header(0, len(right)) + right[16:]),
            ("type 99", header(99, len(right)) + right[16:]),
            ("reserved", header(CHALLENGE, len(right), reserved=1) + right[16:]),
            ("too long", header(CHALLENGE, 0xffffffff) + right[16:]),
            ("no length", header(CHALLENGE, 0) + right[16:]),
            ("MACs without a secret", right[:48] + b"x" * 64 + right[112:]),
            ("auth 2", right[:112] + b"\2" + right[113:]),
            ("ACCEPT at once", header(ACCEPT, 216) + bytes(200)),
            ("a REJECT with status 0", header(REJECT, 128) + bytes(112)),
            ("a REJECT that isn't text", header(REJECT, 128) +
             REJECT_BODY.pack(bytes(32), 0, 18, 0, 0, 0, 1, b"\x1b[2J")),
            ("a secret", right[:48] + b"x" * 64 + b"\1" + right[113:])):
        refused(server, f"CHALLENGE: {what}", Says(message))
    refused(server, "CHALLENGE: no secret, but the client has one", Says(right), secret,
            errno.EACCES)
    refused(server, "CHALLENGE: another secret",
            Says(right[:48] + os.urandom(64) + b"\1" + right[113:]), secret, errno.EACCES)


def wrong_accepts(server):
    for change in (
            {"content": bytes(16)}, {"session": 0}, {"epoch": 0}, {"caps": 0x1f}, {"caps": 1 << 31},
            {"max_io": 0}, {"max_io": 4097}, {"max_io": 0xfffff000}, {"inline_max": 4097},
            {"keep_alive": 0}, {"keep_alive": 0xffffffff}, {"queues": 0}, {"queues": 17},
            {"queues": 2}, {"depth": 0}, {"depth": 9}, {"depth": 65535}, {"addr_len": 0},
            {"addr_len": 64}, {"addr_len": 65535}, {"inline_read": 8193}, {"bytes": 513},
            {"bytes": 1 << 63}, {"flags": 1 << 31}, {"logical": 0}, {"logical": 513},
            {"logical": 8192}, {"physical": 1}, {"io_min": 1}, {"io_opt": 3},
            {"discard_max": 4096}, {"zeroes_max": 4096}, {"addrs": b""}, {"addrs": b"x" * 31},
            {"addrs": b"\xff" * 32}, {"reserved": 1}, {"alive": 0}, {"format": 1}, {"count": 2},
            {"priv_len": 0}, {"priv_len": 65535}, {"version": VERSION + 1}, {"version": 0}):
        name, value = next(iter(change.items()))
        refused(server, f"ACCEPT: {name} {str(value)[:20]}", Says(**change))
    secret = ",secret=" + SECRET.hex()
    refused(server, "ACCEPT: without its MAC",
            Says(secret=SECRET, accept=lambda s: Behaviour().accept(s, signed=False)), secret,
            errno.EACCES)
    refused(server, "ACCEPT: half an ACCEPT", Says(accept=lambda s: Behaviour().accept(s)[:90]))
    refused(server, "ACCEPT: CHALLENGE again", Says(accept=lambda s: Behaviour().challenge(b"")))
    refused(server, "no checksums though the client requires them", Says(hang_up=False),
            ",checksum=1", errno.EOPNOTSUPP)


# --- cases: replies ---

class Once(Behaviour):
    """Answers the next READs in another way, without closing the connection."""
    def __init__(self, instead, caps=RDMA_WRITE, times=1):
        self.instead = instead
        self.caps = caps
        self.times = times
        self.armed = False

    def read(self, server, cmd, data):
        if self.armed and self.times:
            self.times -= 1
            self.instead(server, cmd, data)
        else:
            super().read(server, cmd, data)


def inline(server, cmd, data, **change):
    change.setdefault("flags", REPLY_INLINE)
    server.reply(cmd, data=data, **change)


WRONG_REPLIES = {
    "another command's op": lambda s, c, d: inline(s, c, b"", op=WRITE, flags=0),
    "no data": lambda s, c, d: s.reply(c),
    "less data": lambda s, c, d: inline(s, c, d[:512], bytes=512),
    "more data": lambda s, c, d: inline(s, c, d + d, bytes=2 * len(d)),
    "data to be fetched": lambda s, c, d: s.reply(c, flags=REPLY_READY, addr=4096, key=1),
    "an invalid slot": lambda s, c, d: inline(s, c, d, id=c.id & ~0xffff | 200),
}


def wrong_replies(server):
    server.behave = Behaviour()
    with Disk() as disk:
        report(disk.read(0, 4096) == server.store[:4096], "read from an honest server")
        data = os.urandom(65536)
        disk.write(1 << 20, data)
        report(server.store[1 << 20:(1 << 20) + 65536] == data and
               disk.read(1 << 20, 65536) == data, "write to it and read again, by RDMA")
        for what, instead in WRONG_REPLIES.items():
            before, refused_before = server.sessions, disk.counter("refused")
            server.behave = Once(instead)
            server.behave.armed = True
            report(disk.read(8192, 4096) == server.store[8192:12288] and
                   server.sessions == before + 1 and
                   disk.counter("refused") == refused_before + 1,
                   f"a reply with {what} ends the session, and the next session has the data")
        harmless(server, disk)
        windows(server, disk)


def harmless(server, disk):
    """Replies that match no command have no effect."""
    def noise(s, c, d):
        forged = disk.counter("forged")
        for change in ({"tag": 0}, {"tag": 1 << 63}, {"queue": 1}):
            inline(s, c, bytes(4096), **change)
        report(disk.counts("forged", forged + 3), "replies with a wrong tag are counted")
        for change in ({"session": c.session ^ 1}, {"id": c.id + (1 << 16)},
                       {"id": c.id ^ (1 << 40)}, {"version": 9}, {"op": 99}, {"status": 99},
                       {"flags": 0xff00}):
            inline(s, c, d, **change)
        for _ in range(200):
            s.say(os.urandom(60))
        s.say(b"")
        inline(s, c, d)
        inline(s, c, bytes(4096))

    before = server.sessions
    server.behave = Once(noise)
    server.behave.armed = True
    report(disk.read(8192, 4096) == server.store[8192:12288], "a read among 200 invalid replies")
    report(server.sessions == before and disk.attribute("state") == "live",
           "the session is still live after them")


def windows(server, disk):
    """The server can access a request's memory only until it replies."""
    seen = {}

    def keep(s, c, d):
        seen["beyond"] = s.write_to(c, b"x" * 4096, offset=c.bytes)
        seen["across"] = s.write_to(c, b"x" * 4096, offset=c.bytes - 2048)
        s.write_to(c, d)
        seen["cmd"] = c
        s.reply(c)

    server.behave = Once(keep)
    server.behave.armed = True
    report(disk.read(16384, 65536) == server.store[16384:16384 + 65536], "a long read")
    report(seen["beyond"] not in (0, None) and seen["across"] not in (0, None),
           f"writes beside the memory are refused: {seen['beyond']} {seen['across']}")
    late = server.write_to(seen["cmd"], b"x" * 4096)
    report(late not in (0, None), f"and so are writes after the reply: {late}")


def fetches(server):
    """Without RDMA write in the device, the client reads what the server offers."""
    server.behave = Once(lambda s, c, d: s.reply(c, flags=REPLY_READY, addr=1 << 40, key=77), 0)
    with Disk() as disk:
        report(disk.attribute("rdma_write") == "0", "without RDMA write")
        before = server.sessions
        server.behave.armed = True
        # Each time, the offered memory can't be read.
        server.behave.times = 99
        disk_error = failure(disk.read, 0, 65536)
        report(disk_error in (errno.ENOLINK, errno.EIO, errno.ETIMEDOUT) and
               server.sessions > before, f"a request fails if its data can't be read: {disk_error}")


def next_session(server, before):
    """Wait until there are more sessions than before."""
    end = time.monotonic() + 10
    while server.sessions <= before and time.monotonic() < end:
        time.sleep(0.05)
    return server.sessions > before


def silence(server):
    """A server that stops answering."""
    class Silent(Behaviour):
        silent = False

        def command(self, server, cmd):
            if not self.silent:
                super().command(server, cmd)

    server.behave = Silent()
    with Disk() as disk:
        before = server.sessions
        server.behave.silent = True
        reader = threading.Timer(6, lambda: setattr(server, "behave", Behaviour()))
        reader.start()
        report(disk.read(0, 4096) == server.store[:4096] and server.sessions > before,
               "after a server falls silent, the data comes by another session")
        before = server.sessions
        server.talk.send(header(REJECT, 128) + bytes(112))
        server.talk.send(os.urandom(100))
        report(next_session(server, before) and
               disk.read(4096, 4096) == server.store[4096:8192],
               "noise on the connection ends the session, not the disk")
        sizes(server, disk)


def resize(server, size, step=1):
    server.talk.say(NOTE, private(PRIV_RESIZE, struct.pack("<Q", size)), step)


def size_of(disk):
    return int((disk.sys / "size").read_text()) * 512


def grows(server, disk, size):
    """A RESIZE that must be accepted, in the same session."""
    before = server.sessions
    resize(server, size)
    end = time.monotonic() + 10
    while size_of(disk) != size and time.monotonic() < end:
        time.sleep(0.05)
    report(size_of(disk) == size and disk.read(0, 4096) == server.store[:4096] and
           server.sessions == before, f"RESIZE to {size} is accepted")


def sizes(server, disk):
    """Notes are numbered in each session; a wrong number or an invalid size ends it."""
    for step, size in ((2, 8 << 20), (0, 8 << 20), (1, 1000), (1, 1 << 63)):
        grows(server, disk, DISK + 4096)
        grows(server, disk, DISK - 4096)
        before = server.sessions
        resize(server, size, step)
        report(next_session(server, before) and disk.read(0, 4096) == server.store[:4096] and
               size_of(disk) == DISK, f"RESIZE to {size}, {step} after the last, is refused")
    before = server.sessions
    server.talk.say(NOTE, os.urandom(40))
    report(next_session(server, before) and disk.read(0, 4096) == server.store[:4096],
           "a note that is noise ends the session")


# --- cases: checksums ---

def checksums(server):
    server.behave = Once(lambda s, c, d: inline(s, c, d[:-1] + bytes([d[-1] ^ 1]),
                                                sum=checksum(c, d)), RDMA_WRITE | CHECKSUM)
    with Disk(",checksum=1") as disk:
        report(disk.attribute("checksum") == "1", "a disk with checksums")
        report(disk.read(0, 4096) == server.store[:4096], "a read within the reply")
        report(disk.read(0, 65536) == server.store[:65536], "a read by RDMA")
        data = os.urandom(65536 + 4096)
        disk.write(65536, data[:65536])
        disk.write(131072, data[65536:])
        report(server.store[65536:65536 + len(data)] == data and not server.wrong_sums,
               f"writes have correct checksums: {server.wrong_sums}")
        report(disk.counter("checksum_errors") == 0, "no checksum error is counted")
        before = server.sessions
        server.behave.armed = True
        report(disk.read(8192, 4096) == server.store[8192:12288],
               "data with a wrong byte is read again")
        report(disk.counter("checksum_errors") == 1, "the error is counted")
        server.behave.instead = wrong_place
        server.behave.times = 1
        report(disk.read(32768, 65536) == server.store[32768:98304],
               "data of another place is read again, too, by RDMA")
        report(disk.counter("checksum_errors") == 2 and server.sessions == before,
               "in the same session")
        server.behave.times = 99
        error = failure(disk.read, 32768, 65536)
        report(error == errno.EILSEQ, f"a read fails if the data stays wrong: {error}")
        refused_writes(server, disk)


def tags(server):
    """Commands and replies have tags by keys of the secret."""
    server.behave = Once(lambda s, c, d: [inline(s, c, bytes(len(d)), tag=0), inline(s, c, d)])
    server.behave.secret = SECRET
    with Disk(",secret=" + SECRET.hex()) as disk:
        data = os.urandom(65536)
        disk.write(0, data)
        report(disk.read(0, 65536) == data, "a disk with a secret is written and read")
        server.behave.armed = True
        before = server.sessions
        report(disk.read(4096, 4096) == data[4096:8192] and disk.counter("forged") == 1 and
               server.sessions == before, "a reply without the tag isn't taken for the server's")
    report(server.wrong_tags == 0, f"all commands have the right tag: {server.wrong_tags}")
    server.behave = Behaviour()
    server.behave.deaf = True
    refused(server, "endpoints that don't answer", server.behave, "", errno.ETIMEDOUT)


def copies(server):
    """Right messages that come again, as those who listen on the network can send them."""
    server.behave = Behaviour()
    with Disk(",queues=2") as disk:
        before = server.sessions
        server.said.clear()
        data = os.urandom(65536)
        disk.write(0, data)
        report(disk.read(0, 65536) == data and disk.read(0, 4096) == data[:4096],
               "a disk is written and read")
        # Until a message shows that the server lives.
        end = time.monotonic() + 10
        while time.monotonic() < end and not any(m[1] == KEEP_ALIVE for m in server.said):
            time.sleep(0.1)
        said = {message[1]: message for message in server.said}
        report({READ, WRITE, KEEP_ALIVE} <= set(said), f"replies to {sorted(said)} were sent")
        report(server.other[0] not in (0, server.client["qpn"]),
               f"the client has another endpoint: {server.other}")
        stale = disk.counter("stale")
        for message in said.values():
            server.say_again(message)
        report(disk.counts("stale", stale + 2 * len(said)),
               f"copies of {len(said)} replies at both endpoints are counted: "
               f"{disk.counter('stale') - stale}")
        report(disk.read(4096, 65536 - 4096) == data[4096:] and server.sessions == before and
               disk.attribute("state") == "live", "and don't end the session")


def wrong_place(server, cmd, _data):
    other = server.store[cmd.offset + 512:cmd.offset + 512 + cmd.bytes]
    server.write_to(cmd, bytes(other))
    server.reply(cmd, sum=checksum(cmd, server.store[cmd.offset:cmd.offset + cmd.bytes]))


def refused_writes(server, disk):
    class Refuses(Once):
        refusals = 2

        def command(self, server, cmd):
            if cmd.op == WRITE and self.refusals:
                self.refusals -= 1
                server.reply(cmd, status=PROTECTION, bytes=0)
            else:
                super().command(server, cmd)

    server.behave = Refuses(None, RDMA_WRITE | CHECKSUM, 0)
    data = os.urandom(4096)
    disk.write(0, data)
    report(server.store[:4096] == data, "a write with a checksum error at the server is sent again")
    server.behave.refusals = 99
    error = failure(disk.write, 0, bytes(4096))
    report(error == errno.EILSEQ and server.store[:4096] == data,
           f"and fails if the error persists: {error}")


def say(text):
    """Print a line, and log it in case the output of this program is lost."""
    print("#", text, flush=True)
    with open("/dev/kmsg", "w", encoding="utf-8") as log:
        log.write(f"impostor: {text}\n")


def give_up(server):
    """The program hangs: print the state of the server and of the device."""
    device = server.device
    say(f"sessions {server.sessions}, queue {len(server.queue)}, in {device.next_in}, "
        f"out {device.next_out}, acknowledged {device.base}, ops {device.ops}, "
        f"peer {device.peer} {device.their_incarnation:#x}")
    # Wait for the client to give the disk up, which ends a wait for the disk.
    server.listener.close()
    server.talk.sock.close()
    time.sleep(25)
    report(False, "the program ends in time")
    print(f"1..{count}", flush=True)
    os._exit(1)


def died(args):
    """Log the exception of a thread."""
    for line in traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback):
        say(line.rstrip())


def main():
    threading.excepthook = died
    server = Server()
    watchdog = threading.Timer(LIMIT, give_up, [server])
    watchdog.daemon = True
    watchdog.start()
    wrong_challenges(server)
    wrong_accepts(server)
    wrong_replies(server)
    fetches(server)
    silence(server)
    checksums(server)
    tags(server)
    copies(server)
    print(f"1..{count}")


main()
