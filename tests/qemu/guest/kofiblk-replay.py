# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Replay a log of dm-log-writes, as if power had failed at many points of it.

  kofiblk-replay.py LOG DIRECTORY MEGABYTES CHECKS ROUNDS

LOG is the log of a disk of MEGABYTES MiB with an ext4 filesystem, on which files were written in
ROUNDS rounds. The points are the marks and CHECKS places after flushes and FUA writes, evenly
spread. At each point, an image of what had been written is put into DIRECTORY and its journal is
replayed. Then e2fsck must find no error, and all files of earlier rounds must be there. Prints
TAP.
"""

import os
import struct
import subprocess
import sys

# The format is that of the kernel's drivers/md/dm-log-writes.c.
MAGIC = 0x6a736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
SUPER = struct.Struct("<QQQI")
ENTRY = struct.Struct("<QQQQ")

# Number of problems after which to stop.
ENOUGH = 5
# Sizes of each round's files in KiB: see kofiblk-log.sh
FILES = (1, 5, 33, 130)


def pattern(kib, seed):
    """Return: what pattern() of kofiblk.sh writes."""
    return b"".join(b"%015d\n" % ((seed * 7919 + i * 104729) % 999999937)
                    for i in range(kib * 64))


def entries(log):
    """Entries: (offset of the data in the log, first byte, number of bytes, flags, mark)."""
    magic, version, count, size = SUPER.unpack(log.read(SUPER.size))
    if magic != MAGIC or version != 1:
        raise SystemExit("not a log")
    offset = size
    for _ in range(count):
        log.seek(offset)
        head = log.read(size)
        sector, sectors, flags, length = ENTRY.unpack_from(head)
        mark = head[ENTRY.size:ENTRY.size + length].rstrip(b"\0").decode() \
            if flags & MARK else None
        offset += size
        yield offset, sector * size, sectors * size, flags, mark
        if not flags & (DISCARD | MARK):
            offset += sectors * size


def places(log, made, checks):
    """Return: the indices of the entries after which to check."""
    marks = {i for i, e in enumerate(log) if e[3] & MARK and i >= made}
    others = [i for i, e in enumerate(log) if e[3] & (FLUSH | FUA) and i > made]
    step = max(1, len(others) // checks)
    print(f"# {len(log)} entries, {len(others)} flushes and FUA writes after the "
          f"filesystem was made, {len(marks)} marks; checks 1 of {step}")
    return marks | set(others[::step])


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)


def wrong(image, work, rounds):
    """Return: a description of what is wrong with the image, or None."""
    copy = os.path.join(work, "copy")
    with open(copy, "wb") as file:
        file.write(image)
    replayed = run("e2fsck", "-E", "journal_only", "-y", copy)
    if replayed.returncode not in (0, 1):
        return f"no journal: {replayed.stdout[-300:]}"
    checked = run("e2fsck", "-f", "-n", copy)
    if checked.returncode:
        return f"e2fsck: {checked.stdout[-300:]}"
    names = [(r, i) for r in rounds for i in range(len(FILES))]
    commands = os.path.join(work, "commands")
    with open(commands, "w", encoding="ascii") as file:
        for r, i in names:
            print(f"dump /r{r}-{i} {work}/r{r}-{i}", file=file)
    run("debugfs", "-f", commands, copy)
    for r, i in names:
        path = f"{work}/r{r}-{i}"
        if not os.path.exists(path):
            return f"file {i} of round {r} is missing"
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        if data != pattern(FILES[i], 10 * r + i):
            return f"file {i} of round {r} differs: {len(data)} bytes"
    return None


def main():
    path, work, megabytes, checks, expected = sys.argv[1:]
    image = bytearray(int(megabytes) << 20)
    rounds, problems, count = [], [], 0
    with open(path, "rb") as file:
        log = list(entries(file))
        made = next(i for i, e in enumerate(log) if e[4] == "made")
        where = places(log, made, int(checks))
        for i, (offset, start, length, flags, mark) in enumerate(log):
            if mark and mark.startswith("round"):
                rounds.append(int(mark[5:]))
            elif flags & DISCARD:
                image[start:start + length] = bytes(length)
            elif length:
                file.seek(offset)
                image[start:start + length] = file.read(length)
            if i not in where:
                continue
            count += 1
            problem = wrong(image, work, rounds)
            if problem:
                problems.append(f"at entry {i}, rounds {rounds}: {problem}")
            if len(problems) == ENOUGH:
                break
    for i, problem in enumerate(problems):
        print(f"not ok {i + 3} - {problem}")
    print(f"{'not ' if problems else ''}ok 1 - {len(problems)} of {count} places have "
          f"errors")
    complete = rounds == list(range(1, int(expected) + 1))
    print(f"{'' if complete else 'not '}ok 2 - {len(rounds)} of {expected} rounds")
    print(f"1..{2 + len(problems)}")


main()
