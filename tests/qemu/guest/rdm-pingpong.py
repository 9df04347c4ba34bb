# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Play the TCP side of fi_pingpong for the kernel's kofi_echo:  rdm-pingpong.py [SIZE COUNT]

The two sides exchange their addresses, then for each size that they are ready and the number of
messages. Without arguments the program is the server, and ends when the client does. Otherwise it is
the client, and has the kernel send COUNT datagrams of SIZE bytes, with the contents that the server
expects."""

import pathlib
import socket
import string
import struct
import sys
import time

PARAMETERS = pathlib.Path("/sys/module/kofi_echo/parameters")
PORT = 47592
FI_ADDR_EFA = 12
NAME = struct.Struct("!I")          # length of the address
FORMAT = struct.Struct("=I")
COUNT = 10                          # bytes in the number of messages
LETTERS = string.digits + string.ascii_lowercase + string.ascii_uppercase
STEP = 7                            # by which the contents of successive messages differ


def take(client, length):
    data = b""
    while len(data) < length:
        more = client.recv(length - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def tell_name(other):
    name = bytes.fromhex((PARAMETERS / "name").read_text())
    other.sendall(NAME.pack(len(name)) + FORMAT.pack(FI_ADDR_EFA) + name)


def take_name(other):
    (length,) = NAME.unpack(take(other, NAME.size))
    take(other, FORMAT.size)
    (PARAMETERS / "peer").write_text(take(other, length).hex())


def serve(client):
    tell_name(client)
    take_name(client)
    sizes = 0
    try:
        while take(client, 2) == b"q\0":
            client.sendall(b"a\0")
            take(client, COUNT)
            client.sendall(b"cnt ok\0")
            sizes += 1
    except EOFError:
        pass
    print(sizes, "sizes")


def contents(number, size):
    start = number * STEP % len(LETTERS)
    return (LETTERS[start:] + LETTERS * (size // len(LETTERS) + 1))[:size]


def connect():
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", PORT))
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise SystemExit("there is no server")


def begin(size, count):
    with connect() as server:
        take_name(server)
        tell_name(server)
        server.sendall(b"q\0")
        assert take(server, 2) == b"a\0"
        for number in range(count):
            (PARAMETERS / "ask").write_text(contents(number, size))
        server.sendall(str(count).encode().ljust(COUNT, b"\0"))
        assert take(server, 7) == b"cnt ok\0"
    print(count, "answers")


def main():
    if len(sys.argv) == 3:
        begin(int(sys.argv[1]), int(sys.argv[2]))
        return
    with socket.create_server(("127.0.0.1", PORT)) as server:
        print("ready", flush=True)
        serve(server.accept()[0])


main()
