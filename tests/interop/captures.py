#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Write tests/captures/libfabric-VERSION.txt from the packets that the guest tests rdm-captures
printed in the last run of the bed.

A line of a file is a packet: its type, its length, and its first bytes. Among packets with the
same type and flags, the shortest is kept."""

import os
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
WIRE = TOP / "prov" / "efa" / "rdm" / "wire.h"
HEAD = """# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Packets that libfabric {} sent: type, length, bytes. Written by make captures.
"""


def type_names():
    return {int(number): name for name, number in
            re.findall(r"KEFA_(\w+)_PKT\s*= (\d+),", WIRE.read_text())}


def packets(text):
    """{(type, flags): (length, bytes)}"""
    best = {}
    for length, data in re.findall(r"^# capture (\d+) ([0-9a-f]{8,})$", text, re.M):
        key = (int(data[:2], 16), data[4:8])
        if key not in best or int(length) < best[key][0]:
            best[key] = (int(length), data)
    return best


def main():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "kofi"
    logs = sorted((cache / "log" / "latest").glob("*/a/results"))
    if not logs:
        sys.exit("no guest has left a log")
    names = type_names()
    for log in logs:
        text = log.read_text()
        version = re.search(r"^# libfabric (\d+\.\d+)", text, re.M)
        found = packets(text)
        if not version or not found:
            sys.exit(f"{log} has no packets")
        out = TOP / "tests" / "captures" / f"libfabric-{version[1]}.txt"
        out.parent.mkdir(exist_ok=True)
        out.write_text(HEAD.format(version[1]) + "".join(
            f"{names[kind]} {length} {data}\n"
            for (kind, _), (length, data) in sorted(found.items())))
        print(f"{out.relative_to(TOP)}: {len(found)} packets of {len({k for k, _ in found})} types")


if __name__ == "__main__":
    main()
