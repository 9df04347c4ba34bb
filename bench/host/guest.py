# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The guest: one CPU, a clock that counts instructions, a plugin that counts them by
address."""

import dataclasses
import pathlib
import re
import stat
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "qemu" / "bed"))

# pylint: disable=wrong-import-position
import boot as boots
import tree
import verdict

KERNEL = "stock-6.12"
TIMEOUT = 900           # seconds of ours
FOR_EVER = 10 ** 9      # seconds of the guest's

# A string instruction that moves as much as it likes would be counted once for each
# byte, so the CPU gets none that the kernel prefers for that reason.
CPU = f"{boots.CPU},erms=off,fsrm=off"

MODULES = ("ib_uverbs", "rdma_rxe", "dummy", "crc32_generic", "crc32c_generic", "configfs",
           "null_blk", "nvme_loop", "nvme_tcp", "nvmet_tcp", "nvme_rdma", "nvmet_rdma")

PLUGIN = "plugin.so"


def build_plugin(logs):
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden",
                    "-o", logs / PLUGIN, TOP / "bench" / "plugin.c"], check=True)


def libraries(program):
    """A program and the libraries that it is linked with."""
    out = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    return [pathlib.Path(program),
            *map(pathlib.Path, re.findall(r"(/\S+) \(0x", out))]


def archive_program(program):
    """An archive with a program of the host and its libraries."""
    members = b""
    have = set()
    for path in libraries(program):
        for parent in reversed(path.parents):
            name = str(parent).lstrip("/")
            # These are in the guest already, or links there.
            if name and name not in have and name not in ("bin", "sbin"):
                have.add(name)
                members += tree.record(name, stat.S_IFDIR | 0o755, b"")
        members += tree.record(str(path).lstrip("/"), stat.S_IFREG | 0o755,
                               path.read_bytes())
    return members + tree.record("TRAILER!!!", 0, b"")


def files(tests):
    rdma = subprocess.run(["which", "rdma"], stdout=subprocess.PIPE, text=True,
                          check=False).stdout.strip()
    if not rdma:
        raise SystemExit("bench: the program rdma is missing; it is in the package iproute2")
    return b"".join((
        archive_program(rdma),
        tree.archive_file("bed/blk.sh", (TOP / "bench" / "blk.sh").read_text()),
        tree.archive_file("bed/tests", "".join(f"{t}\n" for t in tests))))


@dataclasses.dataclass
class Run:
    """Results of a guest."""
    lines: list             # of the guest's script
    counts: pathlib.Path    # of the plugin
    seconds: float


def run(built, script, logs, name, options="", plugin="", archive=b"", **more):
    """Boots, and runs a script of bench/; the plugin has been built."""
    counts = logs / f"{name}.counts"
    text = (TOP / "bench" / script).read_text()
    boot = boots.Boot(
        name, kernel=built.name, tests=("bench",), timeout=TIMEOUT, patience=FOR_EVER,
        accel="tcg,thread=single", cpu=CPU, clock="tsc=reliable no_timer_check",
        cmdline=f"nokaslr norandmaps preempt=none noreplace-smp {options}",
        files=tree.archive_file("bed/guest/bench.sh", text) + archive,
        qemu=("-icount", "shift=0,sleep=off", "-rtc", "clock=vm,base=2026-01-01",
              "-seed", "42", "-plugin", f"{logs / PLUGIN},out={counts}{plugin}"), **more)
    outcome = boots.run(boot, {built.name: built}, logs)[0]
    judged = verdict.judge(None, outcome, [])
    if judged.failures:
        raise SystemExit("\n".join(["bench: the guest failed:", *judged.failures,
                                    f"logs in {logs / name}"]))
    return Run(outcome.sections["guest/bench"], counts, outcome.seconds)


def run_tests(built, tests, logs, name, pair=False, driver=None):
    """Boots, and runs these tests. With two CPUs, by turns, the plugin looks what both write.
    driver: a build of Amazon's driver, which then drives the soft device's PCI functions."""
    archive, options = files(tests), ""
    if driver:
        archive += tree.archive_file("bed/efa.ko", pathlib.Path(driver).read_bytes())
        options = "memmap=64M$0x20000000"
    return run(built, "guest.sh", logs, name, options, smp=2 if pair else 1, mem="2G",
               modules=MODULES, plugin=",lines=on" * pair, archive=archive)
