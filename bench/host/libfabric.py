# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Cost of messages for one end of user space's libfabric, on a PCI function of the soft device."""

import dataclasses
import os
import re
import statistics

import counts
import guest
import tree

# Debian's kernel has no driver for the function. A process is the same on any kernel.
KERNEL = "test"
WINDOWS = 6             # of which the first warms up
# Without random addresses the program is below this, and its libraries are above.
LIBRARIES = 0x7f0000000000
USER_END = 1 << 47
# Functions by which a process enters the kernel.
ENTRIES = {"calls": "entry_SYSCALL_64", "faults": "asm_exc_page_fault"}
TOLERANCE = 2.0         # percent, of a loop to its length


@dataclasses.dataclass
class Window:
    """Instructions of one end for a batch."""
    symbols: counts.Symbols
    program: int = 0            # instructions of user space
    libraries: int = 0
    kernel: counts.Window = dataclasses.field(default_factory=counts.Window)

    def add(self, address, insns, count, *more):
        if address >= USER_END:
            self.kernel.add(self.symbols, address, insns, count, *more)
        elif address >= LIBRARIES:
            self.libraries += insns * count
        else:
            self.program += insns * count

    def figures(self):
        """Instructions of each part; those of the kernel without the soft device's."""
        mine = {p: n for p, n in self.kernel.parts.items() if p not in ("device", "harness")}
        entries = {what: sum(n for (name, _), n in self.kernel.calls.items() if name == entry)
                   for what, entry in ENTRIES.items()}
        return {"program": self.program, "libraries": self.libraries,
                "kernel": sum(mine.values()), **entries}


def windows(path, symbols):
    with open(path, encoding="ascii") as lines:
        found = None
        for line in lines:
            fields = line.split()
            if fields[0] != "W":
                found.add(*(int(f, 16) for f in fields))
                continue
            if found:
                yield found.figures()
            found = Window(symbols)
        if found:
            yield found.figures()


def known(figures, insns, calls):
    """Ends the run if what was counted isn't what there is."""
    user = figures["program"] + figures["libraries"]
    if abs(user - insns) > insns * TOLERANCE / 100 or figures["calls"] != calls:
        raise SystemExit(f"bench: {insns} instructions and {calls} calls were counted as "
                         f"{user} and {figures['calls']}")


def measure(logs):
    """{(version, kind, bytes): {figure: median, for one message}}"""
    os.environ["DEBIAN13"] = str(tree.script("newest.sh", "user", "trixie"))
    guest.build_plugin(logs)
    built = tree.Tree(KERNEL)
    run = guest.run(built, "libfabric.sh", logs, "libfabric", smp=1, mem="3G", host_root=True,
                    settings=("DEBIAN13=",), modules=("efa", "ib_uverbs"),
                    options="memmap=32M$0x20000000")
    found = windows(run.counts, counts.Symbols(run.lines, built.build))
    costs = {}
    for line in run.lines:
        sure = re.fullmatch(r"known (\d+) (\d+)", line)
        row = re.fullmatch(r"cost (\S+) (\w+) (\d+) (\d+)", line)
        if sure:
            known(next(found), int(sure[1]), int(sure[2]))
        elif row:
            each = [next(found) for _ in range(WINDOWS)][1:]
            costs[row[1], row[2], int(row[3])] = {
                figure: statistics.median(w[figure] for w in each) / int(row[4])
                for figure in each[0]}
    return costs


def table(costs):
    """Lines of the ends, and of both together."""
    for (version, kind, size), figures in costs.items():
        user = figures["program"] + figures["libraries"]
        yield [version, kind, size, user, figures["libraries"], figures["kernel"],
               figures["calls"], figures["faults"]]
    for (version, kind, size), figures in costs.items():
        # The other end of what the device does has nothing to do.
        if not kind.endswith("send"):
            continue
        other = costs[version, kind.replace("send", "recv"), size]
        yield [version, kind.replace("send", "") + "both", size,
               *(sum(both[f] for both in (figures, other) for f in names)
                 for names in (("program", "libraries"), ("libraries",), ("kernel",),
                               ("calls",), ("faults",)))]
