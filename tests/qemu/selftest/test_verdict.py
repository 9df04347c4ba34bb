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
        failures = self.judge(*args, **kwargs).failures
        self.assertTrue(any(reason in f for f in failures), f"{reason}: {failures}")

    def test_good(self):
        result = self.judge()
        self.assertEqual(result.failures, [])
        self.assertEqual(result.passed, 14)

    def test_splats(self):
        for splat in SPLATS:
            with self.subTest(splat):
                self.assert_red(splat, console=f"{CONSOLE}[    9.0] {splat}\n")

    def test_whole_console(self):
        for console in ("", *(CONSOLE.replace(line, "") for line in ("bed: up", "bed: done"))):
            with self.subTest(console):
                self.assert_red("console is cut off", console=console)

    def test_exit(self):
        self.assert_red("crashed", status=0)
        # Of QEMU itself, when it can't start.
        self.assert_red("crashed", status=1)
        self.assert_red("timeout", status=verdict.EXIT_TIMEOUT)
        self.assert_red("dead", status=None)
        self.assert_red("QEMU was ended by signal 9 (Killed)", status=-9)

    def test_taints(self):
        for bit in verdict.TAINTS:
            with self.subTest(bit):
                self.assert_red(f"bit {bit}", "tainted 266240",
                                f"tainted {266240 | 1 << bit}")
        self.assert_red("tainted", "tainted 266240\n", "")

    def test_lockdep(self):
        self.assert_red("lockdep", "debug_locks 1", "debug_locks 0")
        self.assert_red("lockdep", "debug_locks 1\n", "")

    def test_leaks(self):
        leak = "scanned\nunreferenced object 0xffff888100000000 (size 104):"
        self.assert_red("1 leaked", "scanned", leak)
        self.assert_red("not scanned", "scanned", "no kmemleak")
        self.assert_red("not scanned", "@@file leaks\n", "@@file other\n")

    def test_unload(self):
        for at in ("unload/end", "unload/traffic"):
            self.assert_red("still loaded", f"@@file {at}\n",
                            f"@@file {at}\nstill loaded: kofi 1\n")
            self.assert_red("not unloaded", f"@@file {at}", "@@file other")

    def test_faults(self):
        self.assert_red("left on and injected nothing", "debug_locks 1\n",
                        "debug_locks 1\nfault failslab 1000000\n")
        self.assert_red("left on", "debug_locks 1\n",
                        "debug_locks 1\nfault failslab 999990\n")

    def test_suite_list(self):
        self.assert_red("absent: listed", listed=("kofi_bed", "absent"))
        self.assert_red("not listed", listed=())

    def test_suite_results(self):
        case = "    ok 2 bed_expectation"
        self.assert_red("bed_expectation (failure)", case, "    not ok 2 bed_expectation")
        self.assert_red("(skipped)", case, case + " # SKIP no reason")
        self.assert_red("kofi_bed (failure)", "\nok 1 kofi_bed", "\nnot ok 1 kofi_bed")
        self.assert_red("KTAP", case + "\n", "")
        self.assert_red("no test case", SUITE, "")
        self.assert_red("no test case", SUITE, "KTAP version 1\n1..0\n")
        self.assert_red("cut off", SUITE + "@@end\n", SUITE)
        self.assert_red("cannot load", "@@file load\n",
                        "@@file load\ncannot load kofi_bed_kunit\n")
        self.assert_red("not loaded", "@@file load", "@@file other")

    def test_guest_test(self):
        self.assert_red("not ok 2", "ok 2 - and", "not ok 2 - and")
        self.assert_red("skipped", "and back", "and back # SKIP no network")
        self.assert_red("no result", "ok 1 - there\nok 2 - and back\n", "")
        self.assert_red("status 1", "# status 0", "# status 1")
        self.assert_red("did not end", "# status 0\n@@end\n", "")
        self.assert_red("did not run", "@@file guest/traffic", "@@file other")

    def test_commands_that_are_not_there(self):
        for line in ("/bed/guest/traffic.sh: line 12: nobody: not found",
                     "/bed/guest/traffic.sh: nobody: not found", "sh: usleep: not found"):
            with self.subTest(line):
                self.assert_red(line, "ok 2 - and", f"{line}\nok 2 - and")
        said = "# file.c: not found\nmodprobe: module efa not found in modules.dep\n"
        self.assertEqual(self.judge("ok 2 - and", said + "ok 2 - and").failures, [])

    def test_strays(self):
        """Output of a job that outlives its test."""
        for section in ("state/traffic", "unload/traffic", "state/end", "leaks"):
            with self.subTest(section):
                self.assert_red("outside of all sections: not ok 3 - late",
                                f"@@file {section}", f"not ok 3 - late\n@@file {section}")
        for line in ("not ok 3 - late", "late"):
            for where in ("tainted 266240\n", "debug_locks 1\n"):
                self.assert_red(line, where, f"{where}{line}\n")

    def test_end(self):
        self.assert_red("without saying", "@@file end", "@@file other")


if __name__ == "__main__":
    unittest.main()
