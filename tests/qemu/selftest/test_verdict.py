# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The verdict on a recorded guest: green as it is, red after any one change.

The selftest-* boots prove that real bugs leave the traces that are changed
here; this proves that one trace alone is enough.
"""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bed"))

import boot         # pylint: disable=wrong-import-position
import tree         # pylint: disable=wrong-import-position
import verdict      # pylint: disable=wrong-import-position

CONSOLE = """\
[    0.000000] Linux version 6.12.117-kofi-test
[    6.812294] 1..0
[    8.374219] bed: up
[    8.435631] kofi_bed_kunit: loading out-of-tree module taints kernel.
[   12.201122] bed: done
"""

SUITE = """\
KTAP version 1
1..1
    KTAP version 1
    # Subtest: kofi_bed
    1..2
    ok 1 bed_lock_order
    ok 2 bed_expectation
# kofi_bed: pass:2 fail:0 skip:0 total:2
# Totals: pass:2 fail:0 skip:0 total:2
ok 1 kofi_bed
"""

RESULTS = f"""\
@@file load
@@end
@@file kunit/kofi_bed
{SUITE}@@end
@@file guest/traffic
# something is said
ok 1 - there
ok 2 - and back
# status 0
@@end
@@file state/traffic
tainted 266240
debug_locks 1
@@end
@@file unload/traffic
@@end
@@file state/end
tainted 266240
debug_locks 1
@@end
@@file unload/end
@@end
@@file leaks
scanned
@@end
@@file state/unloaded
tainted 266240
debug_locks 1
@@end
@@file end

@@end
"""

SPLATS = [
    "WARNING: CPU: 0 PID: 66 at kofi/cq.c:1 kofi_cq_read+0x1/0x2 [kofi]",
    "WARNING: possible circular locking dependency detected",
    "WARNING: possible recursive locking detected",
    "WARNING: suspicious RCU usage",
    "BUG: KASAN: slab-use-after-free in kofi_cq_read+0x1/0x2 [kofi]",
    "BUG: sleeping function called from invalid context at mm/slab.h:1",
    "BUG: scheduling while atomic: kunit_try_catch/66/0x2",
    "BUG: unable to handle page fault for address: 0000000000000000",
    "BUG kmalloc-128 (Tainted: G): Objects remaining on kmem_cache_close()",
    "UBSAN: array-index-out-of-bounds in kofi/cq.c:1:2",
    "Oops: general protection fault, 0000 [#1] PREEMPT SMP KASAN",
    "Kernel panic - not syncing: Fatal exception",
    "kmemleak: 1 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 26s!",
    "INFO: task modprobe:66 blocked for more than 120 seconds.",
    "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0",
    "DMA-API: kofi: device driver frees DMA memory it has not allocated",
    "debugfs: File 'cq' in directory 'kofi' already present!",
    "ODEBUG: free active (active state 0) object: work_struct",
    "kofi: Unknown symbol kofi_registry (err -2)",
    "** 5 printk messages dropped **",
    "unregister_netdevice: waiting for eth0 to become free. Usage count = 2",
    "irq 11: nobody cared (try booting with the \"irqpoll\" option)",
    "Out of memory: Killed process 66 (modprobe) total-vm:4kB",
]


STATE = "tainted 266240\n"
LOCKS = "debug_locks 1\n"
CASE = "    ok 2 bed_expectation"
# A word of the failure, text of the recording, and its replacement.
RED = [
    ("tainted", STATE, ""),
    ("lockdep", LOCKS, "debug_locks 0\n"),
    ("lockdep", LOCKS, ""),
    ("1 leaked", "scanned", "scanned\nunreferenced object 0xffff888100000000 (size 104):"),
    ("not scanned", "scanned", "no kmemleak"),
    ("not scanned", "@@file leaks\n", "@@file other\n"),
    ("left on and injected nothing", LOCKS, f"{LOCKS}fault failslab 1000000\n"),
    ("left on", LOCKS, f"{LOCKS}fault failslab 999990\n"),
    ("bed_expectation (failure)", CASE, "    not ok 2 bed_expectation"),
    ("(skipped)", CASE, CASE + " # SKIP no reason"),
    ("kofi_bed (failure)", "\nok 1 kofi_bed", "\nnot ok 1 kofi_bed"),
    ("KTAP", CASE + "\n", ""),
    ("no test case", SUITE, ""),
    ("no test case", SUITE, "KTAP version 1\n1..0\n"),
    ("cut off", SUITE + "@@end\n", SUITE),
    ("cannot load", "@@file load\n", "@@file load\ncannot load kofi_bed_kunit\n"),
    ("not loaded", "@@file load", "@@file other"),
    ("not ok 2", "ok 2 - and", "not ok 2 - and"),
    ("skipped", "and back", "and back # SKIP no network"),
    ("no result", "ok 1 - there\nok 2 - and back\n", ""),
    ("status 1", "# status 0", "# status 1"),
    ("did not end", "# status 0\n@@end\n", ""),
    ("did not run", "@@file guest/traffic", "@@file other"),
    ("without saying", "@@file end", "@@file other"),
]
RED += [(f"bit {bit}", STATE, f"tainted {266240 | 1 << bit}\n") for bit in verdict.TAINTS]
for at in ("unload/end", "unload/traffic"):
    RED += [("still loaded", f"@@file {at}\n", f"@@file {at}\nstill loaded: kofi 1\n"),
            ("not unloaded", f"@@file {at}", "@@file other")]
# A command that isn't there.
RED += [(line, "ok 2 - and", f"{line}\nok 2 - and") for line in (
    "/bed/guest/traffic.sh: line 12: nobody: not found",
    "/bed/guest/traffic.sh: nobody: not found", "sh: usleep: not found")]
# Output of a job that outlives its test.
RED += [("outside of all sections: not ok 3 - late", f"@@file {at}", f"not ok 3 - late\n@@file {at}")
        for at in ("state/traffic", "unload/traffic", "state/end", "leaks")]
RED += [(line, at, f"{at}{line}\n") for line in ("not ok 3 - late", "late") for at in (STATE, LOCKS)]


class Recorded(unittest.TestCase):
    """Judges the recording after a replacement of text in it."""

    @classmethod
    def setUpClass(cls):
        cls.kunit = verdict.Kunit(tree.script("kernel.sh", "source"))

    def judge(self, old="", new="", console=CONSOLE, status=verdict.EXIT_DONE,
              listed=("kofi_bed",)):
        self.assertIn(old, RESULTS)
        with tempfile.TemporaryDirectory() as log:
            outcome = boot.Outcome(
                boot.Boot("kunit", suites=("kofi_bed_kunit",), tests=("traffic",),
                          kmemleak=True),
                "a", pathlib.Path(log), status=status, console=console,
                sections=boot.split_sections(RESULTS.replace(old, new)))
            return verdict.judge(self.kunit, outcome, listed)

    def assert_red(self, reason, *args, **kwargs):
        with self.subTest(reason, args=args):
            failures = self.judge(*args, **kwargs).failures
            self.assertTrue(any(reason in f for f in failures), f"{reason}: {failures}")

    def test_good(self):
        result = self.judge()
        self.assertEqual(result.failures, [])
        self.assertEqual(result.passed, 14)
        said = "# file.c: not found\nmodprobe: module efa not found in modules.dep\n"
        self.assertEqual(self.judge("ok 2 - and", said + "ok 2 - and").failures, [])

    def test_results(self):
        for reason, old, new in RED:
            self.assert_red(reason, old, new)

    def test_console(self):
        for splat in SPLATS:
            self.assert_red(splat, console=f"{CONSOLE}[    9.0] {splat}\n")
        for console in ("", *(CONSOLE.replace(line, "") for line in ("bed: up", "bed: done"))):
            self.assert_red("console is cut off", console=console)

    def test_exit(self):
        # QEMU exits with status 1 if it can't start.
        for reason, status in (("crashed", 0), ("crashed", 1), ("timeout", verdict.EXIT_TIMEOUT),
                               ("dead", None), ("QEMU was ended by signal 9 (Killed)", -9)):
            self.assert_red(reason, status=status)

    def test_suite_list(self):
        self.assert_red("absent: listed", listed=("kofi_bed", "absent"))
        self.assert_red("not listed", listed=())


if __name__ == "__main__":
    unittest.main()
