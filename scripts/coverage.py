#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lines that ran in the guests of the last make coverage: coverage.py [-l] DIRECTORY

A line for each file of the directory, with the lines that never ran if -l is given. The
suites have copies of the provider's sources: a line has run if it has in one of them.
Exit status 1 if fewer than 90 % of all lines have."""

import base64
import collections
import json
import os
import pathlib
import subprocess
import sys

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path.home() / ".cache") / "kofi"
DEBUGFS = "/sys/kernel/debug/gcov"
LEAST = 90.0    # percent


def counted(results):
    """(path of an object's counts on this machine, its content) of a guest."""
    inside = False
    for line in results.read_text(errors="replace").splitlines():
        if line.startswith("@@"):
            inside = line == "@@file gcov"
        elif inside:
            path, content = line.split()
            yield pathlib.Path(path.removeprefix(DEBUGFS)), base64.b64decode(content)


def run_of(path):
    """gcov's report on an object: (file, line, number of runs)"""
    out = subprocess.run(["gcov", "--json-format", "--stdout", path], cwd=path.parent,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True).stdout
    for text in out.decode().splitlines():
        if not text.startswith("{"):
            continue
        found = json.loads(text)
        for file in found["files"]:
            name = os.path.normpath(os.path.join(found["current_working_directory"],
                                                 file["file"]))
            for line in file["lines"]:
                yield name, line["line_number"], line["count"]


def read(logs, directory):
    """{file of the directory: {line: how often}}"""
    lines = collections.defaultdict(collections.Counter)
    for results in sorted(logs.rglob("results")):
        for path, content in counted(results):
            path.write_bytes(content)
            for name, number, count in run_of(path):
                _, found, rest = name.partition(f"/src/{directory}/")
                if found:
                    lines[rest][number] += count
            path.unlink()
    return lines


def ranges(numbers):
    """3-5 8"""
    parts = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def main():
    names = [word for word in sys.argv[1:] if word != "-l"]
    if len(names) != 1:
        raise SystemExit(__doc__)
    lines = read(CACHE / "log" / "latest", names[0].rstrip("/"))
    ran = total = 0
    for name, counts in sorted(lines.items()):
        never = [number for number, count in counts.items() if not count]
        total += len(counts)
        ran += len(counts) - len(never)
        print(f"{100 * (1 - len(never) / len(counts)):6.1f} %  {len(counts):5}  {name}"
              f"{'  ' + ranges(never) if '-l' in sys.argv else ''}")
    if not total:
        raise SystemExit(f"no line of {names[0]} was counted")
    print(f"{100 * ran / total:6.1f} %  {total:5}  lines of {names[0]}")
    return 0 if 100 * ran / total >= LEAST else 1


sys.exit(main())
