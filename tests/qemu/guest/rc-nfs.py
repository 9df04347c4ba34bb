# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The user space of an NFS server of version 3:  rc-nfs.py FILEHANDLE

A portmapper, at which the kernel registers its services, and a mount daemon that returns the same
file handle, in hexadecimal digits, for any path. FILEHANDLE begins with \\x."""

import socketserver
import struct
import sys
import threading

PORTMAPPER, MOUNT = 100000, 100005
PORTS = {111: (PORTMAPPER, 2), 20048: (MOUNT, 3)}
REPLY, ACCEPTED = 1, 0
SUCCESS, NO_PROGRAM, NO_VERSION, NO_PROCEDURE = range(4)
AUTH_SYS = 1
LAST = 0x80000000           # fragment of a message


def words(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def opaque(data):
    return words(len(data)) + data + bytes(-len(data) % 4)


# Results of a service's procedures.
RESULTS = {
    PORTMAPPER: {0: b"", 1: words(1), 2: words(1), 3: words(0)},
    MOUNT: {0: b"", 1: words(0) + opaque(bytes.fromhex(sys.argv[1].removeprefix("\\x"))) +
            words(1, AUTH_SYS), 3: b""},
}


def answer(call, program, version):
    """The reply to a call, for the service at one port."""
    xid, _, _, wanted, number, procedure = struct.unpack_from(">6I", call)
    head = words(xid, REPLY, ACCEPTED, 0, 0)
    if wanted != program:
        return head + words(NO_PROGRAM)
    if number != version:
        return head + words(NO_VERSION, version, version)
    result = RESULTS[program].get(procedure)
    return head + (words(NO_PROCEDURE) if result is None else words(SUCCESS) + result)


class Connection(socketserver.StreamRequestHandler):
    def message(self):
        """The next message, or nothing if there is none."""
        message, mark = b"", 0
        while not mark & LAST:
            head = self.rfile.read(4)
            if len(head) < 4:
                return b""
            mark = struct.unpack(">I", head)[0]
            message += self.rfile.read(mark & ~LAST)
        return message

    def handle(self):
        while call := self.message():
            reply = answer(call, *PORTS[self.server.server_address[1]])
            self.wfile.write(words(LAST | len(reply)) + reply)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main():
    servers = [Server(("", port), Connection) for port in PORTS]
    for server in servers:
        threading.Thread(target=server.serve_forever).start()
    print("ready", flush=True)


main()
