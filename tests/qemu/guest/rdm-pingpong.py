# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Play the TCP side of fi_pingpong's server for the kernel's kofi_echo:  rdm-pingpong.py

The two sides exchange their addresses, then for each size that they are ready and the number of
messages. The program ends when the client does."""

import pathlib
import socket
import struct

PARAMETERS = pathlib.Path("/sys/module/kofi_echo/parameters")
PORT = 47592
FI_ADDR_EFA = 12
NAME = struct.Struct("!I")          # length of the address
FORMAT = struct.Struct("=I")
COUNT = 10


def take(client, length):
    data = b""
    while len(data) < length:
        more = client.recv(length - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def introduce(client):
    name = bytes.fromhex((PARAMETERS / "name").read_text())
    client.sendall(NAME.pack(len(name)) + FORMAT.pack(FI_ADDR_EFA) + name)
    (length,) = NAME.unpack(take(client, NAME.size))
    take(client, FORMAT.size)
    (PARAMETERS / "peer").write_text(take(client, length).hex())


def serve(client):
    introduce(client)
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


with socket.create_server(("127.0.0.1", PORT)) as server:
    print("ready", flush=True)
    serve(server.accept()[0])
