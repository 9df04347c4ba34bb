# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""From addresses to symbols, and from symbols to the parts that a row shows."""

import bisect
import collections
import subprocess

# In the order in which they are shown. The kernel's own code is charged to the
# module that had it run, as "kernel" for the host's parts.
HOST = ("ulp", "kofi", "kofi_efa", "ib_core", "driver", "kernel")
# Modules between a block device's user and the above, and those that store its data.
BLOCK = ("kofiblk", "kofi_rc", "kofi_ulp", "nvme", "null_blk")
PARTS = (*HOST, *BLOCK, "device", "harness")

MODULES = {
    "kofi_bench": "harness",
    "kofi_bench_verbs": "ulp", "kofi_bench_efa": "ulp", "kofi_bench_tcp": "ulp",
    "kofi_bench_blk": "ulp", "kofi_bench_match": "ulp", "kofi_bench_rdm": "ulp",
    "kofi_bench_tag": "ulp",
    "kofi": "kofi", "kofi_efa": "kofi_efa", "ib_core": "ib_core",
    "kofiblk": "kofiblk", "kofiblk_srv": "kofiblk", "kofiblk_common": "kofiblk",
    "kofi_msg": "kofi", "kofi_ulp": "kofi_ulp", "kofi_cm": "kofi_ulp", "kofi_rc": "kofi_rc",
    "null_blk": "null_blk",
    "efa": "driver", "rdma_rxe": "device",
}
FAMILIES = (("ib_", "ib_core"), ("nvme", "nvme"))
# The kernel's loops that copy, beside string instructions: each of their blocks that
# is that long copies 32 bytes.
LOOPS = ("memcpy_orig", "memmove")
LOOP_INSNS, LOOP_BYTES = 12, 32


def driver_symbols(build):
    """Symbols of the part of efasim that corresponds to a driver: its verbs, without the
    functions by which they call the device."""
    names = set()
    for path in sorted((build / "sim" / "verbs").glob("*.o")):
        out = subprocess.run(["nm", "--defined-only", path], stdout=subprocess.PIPE,
                             text=True, check=True).stdout
        names.update(line.split()[2] for line in out.splitlines())
    return {n for n in names if not n.startswith("efasim_dev_")}


class Symbols:
    """The guest's kallsyms."""

    def __init__(self, lines, build):
        self.driver = driver_symbols(build)
        self.read(lines)

    def read(self, lines):
        table = []
        for line in lines:
            fields = line.split()
            if len(fields) in (3, 4) and len(fields[0]) == 16 and len(fields[1]) == 1:
                module = fields[3].strip("[]") if len(fields) == 4 else ""
                table.append((int(fields[0], 16), fields[2], module))
        table.sort()
        self.addresses = [row[0] for row in table]
        self.symbols = [(name, module, self._part(name, module))
                        for _, name, module in table]
        self.cache = {}

    def _part(self, name, module):
        if module == "efasim":
            return "driver" if name in self.driver else "device"
        if not module:
            return "kernel"
        family = (part for start, part in FAMILIES if module.startswith(start))
        return MODULES.get(module) or next(family, "device")

    def find(self, address):
        """(address, name, module, part)"""
        found = self.cache.get(address)
        if not found:
            at = bisect.bisect_right(self.addresses, address) - 1
            if at < 0:
                found = (0, "user", "", "kernel")
            else:
                found = (self.addresses[at], *self.symbols[at])
            self.cache[address] = found
        return found


class Window:
    """The counts of a window."""

    def __init__(self):
        self.total = 0
        self.parts = collections.Counter()
        self.functions = collections.Counter()  # (part, symbol, who had it run)
        self.calls = collections.Counter()      # (symbol, who had it run)
        self.copied = collections.Counter()     # likewise of functions: bytes
        self.locked = collections.Counter()     # (whose, symbol, who had it run)
        # by address of a cache line that both CPUs wrote: (CPU, whose, symbol, who had it
        # run, locked)
        self.lines = collections.defaultdict(set)

    def add(self, symbols, address, insns, count, caller, moved, locked=0):
        start, name, module, part = symbols.find(address)
        had, whose = "", part
        if part == "kernel":
            had_by = symbols.find(caller) if caller else (0, "", "", "harness")
            had, whose = had_by[1], had_by[3]
            if had_by[3] in ("device", "harness"):
                part = had_by[3]
        self.total += insns * count
        self.parts[part] += insns * count
        self.functions[part, name, had] += insns * count
        if name in LOOPS and insns >= LOOP_INSNS:
            moved = LOOP_BYTES
        if moved:
            self.copied[part, name, had] += moved * count
        if locked:
            self.locked[whose, name, had] += locked * count
        if start == address:
            self.calls[name, had] += count


    def add_line(self, symbols, line, cpu, address, caller, locked):
        _, name, _, part = symbols.find(address)
        _, had, _, whose = symbols.find(caller) if caller else (0, "", "", part)
        self.lines[line].add((cpu, whose, name, had, bool(locked)))


def read_windows(path, symbols):
    """The plugin's file, as a list of windows."""
    windows = []
    with open(path, encoding="ascii") as lines:
        for line in lines:
            fields = line.split()
            if fields[0] == "W":
                windows.append(Window())
            elif fields[0] == "L":
                windows[-1].add_line(symbols, *(int(f, 16) for f in fields[1:]))
            else:
                windows[-1].add(symbols, *(int(f, 16) for f in fields))
    return windows
