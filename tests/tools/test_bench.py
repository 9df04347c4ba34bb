# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The benchmarks' arithmetic: parts by symbol, baselines, what counts as grown."""

import copy
import pathlib
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench" / "host"))

# pylint: disable=wrong-import-position
import counts
import report
import rows

KALLSYMS = """
ffffffff81000000 T memcpy
ffffffff81000100 T schedule
ffffffff81000200 t memcpy_orig
ffffffffc0000000 t kbe_take	[kofi_bench_efa]
ffffffffc0001000 t kefa_tx	[kofi_efa]
ffffffffc0002000 t efasim_poll_cq	[efasim]
ffffffffc0002100 t efasim_dev_run	[efasim]
""".splitlines()

# A block of kofi_efa; the kernel for it, for the device, and for nobody.
COUNTS = """\
W 0
ffffffffc0001000 a 3 0 0 2
ffffffff81000000 5 2 ffffffffc0001004 0 1
ffffffff81000100 7 1 ffffffffc0002100 0 1
ffffffffc0002004 4 1 0 0
W 1
ffffffff81000000 9 1 0 0
W 2
ffffffff81000200 c 3 ffffffffc0001004 0
ffffffff81000210 9 1 ffffffffc0001004 0
ffffffffc0001010 1 10 0 8
"""

# Of a block device: its driver and what is below; what is copied for it, in a loop and
# by string instructions, and the device's own copying; what runs after the device.
DISK_KALLSYMS = """
ffffffff81000000 t memcpy_orig
ffffffff81000100 T schedule
ffffffffc0000000 t kbb_end_io	[kofi_bench_blk]
ffffffffc0001000 t kb_request	[kofiblk_srv]
ffffffffc0002000 t nvmet_tcp_io_work	[nvmet_tcp]
ffffffffc0003000 t null_queue_rq	[null_blk]
ffffffffc0004000 t efasim_dev_run	[efasim]
ffffffffc0004100 t efasim_dev_work	[efasim]
""".splitlines()

DISK_COUNTS = """\
W 0
ffffffffc0000000 8 1 0 0
ffffffffc0001000 a 2 0 0
ffffffffc0002000 4 1 0 0
ffffffffc0002008 1 10 0 8
ffffffffc0003000 6 1 0 0
ffffffffc0004000 3 1 0 0
ffffffffc0004008 1 10 0 8
ffffffff81000000 c 64 ffffffffc0002000 0
ffffffff81000000 c c8 ffffffffc0004000 0
ffffffff81000100 5 1 ffffffffc0001000 0
ffffffff81000100 7 1 ffffffffc0004104 0
"""


class Symbols(counts.Symbols):
    """Without a build to look into."""

    def __init__(self, kallsyms):
        self.driver = {"efasim_poll_cq"}
        self.read(kallsyms)


def windows(text=COUNTS, kallsyms=KALLSYMS):
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write(text)
        file.flush()
        return counts.read_windows(file.name, Symbols(kallsyms))


def result(added=100.0, host=1000.0, agree=True, other=None):
    """other: what the second run added, if that isn't the same."""
    return {"versions": {"kernel": "6"}, "rows": {
        "efa send": {"added": added, "host": host, "agree": {"added": agree, "host": agree},
                     "both": {"added": (added, other or added), "host": (host, host)}}}}


class Counts(unittest.TestCase):
    def test_parts(self):
        window = windows()[0]
        self.assertEqual(dict(window.parts),
                         {"kofi_efa": 30, "kernel": 10, "device": 7, "driver": 4})
        self.assertEqual(window.total, 51)

    def test_windows_are_apart(self):
        self.assertEqual(dict(windows()[1].parts), {"harness": 9})

    def test_copies_by_loops_and_by_string_instructions(self):
        self.assertEqual(dict(windows()[2].copied),
                         {("kernel", "memcpy_orig", "kefa_tx"): 3 * 32,
                          ("kofi_efa", "kefa_tx", ""): 16 * 8})
        self.assertFalse(windows()[0].copied)

    def test_locked_is_whose_code_had_it_run(self):
        locked = windows()[0].locked
        self.assertEqual(sum(n for (whose, _, _), n in locked.items()
                             if whose == "kofi_efa"), 3 * 2 + 2 * 1)
        self.assertEqual(sum(locked.values()), 9)

    def test_calls(self):
        calls = windows()[0].calls
        self.assertEqual(calls["kefa_tx", ""], 3)
        self.assertEqual(calls["memcpy", "kefa_tx"], 2)
        self.assertNotIn(("efasim_poll_cq", ""), calls)

    def test_middle_window(self):
        row = rows.Row("efa", "send", 8, "polled", batch=2)
        many = windows()[:1] + [copy.deepcopy(windows()[0]) for _ in range(2)]
        many[0].parts["kofi_efa"] = 1000
        figures, _ = rows.figures(row, many)
        self.assertEqual(figures["added"], 15)
        self.assertEqual(figures["host"], 22)
        self.assertEqual(figures["parts"]["device"], 3.5)


class Rows(unittest.TestCase):
    def test_what_waits_for_the_device_is_not_compared(self):
        names = [row.name() for row in rows.checked()]
        self.assertIn("efa write 4KiB polled", names)
        self.assertIn("efa reg 1MiB polled", names)
        self.assertNotIn("efa read 64KiB polled", names)
        self.assertNotIn("efa write 1MiB polled", names)


class Disks(unittest.TestCase):
    ROW = rows.Row("nvme-tcp", "read", 4096, "sleeping", batch=1)

    def setUp(self):
        self.figures, _ = rows.figures(self.ROW, windows(DISK_COUNTS, DISK_KALLSYMS))

    def test_parts(self):
        parts = {p: n for p, n in self.figures["parts"].items() if n}
        self.assertEqual(parts, {"ulp": 8, "kofiblk": 20, "nvme": 20, "null_blk": 6,
                                 "kernel": 1205, "device": 2426})

    def test_both_ends_are_one(self):
        self.assertEqual(self.figures["host"], 8 + 20 + 20 + 6 + 1205)
        self.assertEqual(self.figures["added"], 20)

    def test_copies_without_those_of_the_device(self):
        self.assertEqual(self.figures["copied"], 100 * 32 + 16 * 8)

    def test_what_runs_after_the_device(self):
        self.assertEqual(self.figures["after"], 7)

    def test_a_table_of_their_own(self):
        text = report.markdown({"versions": {}, "memory": {}, "shared": {}, "rows": {
            self.ROW.name(): self.figures, "efa send 8B polled": self.figures}})
        disks, others = text.split("## Block devices")[1].split("## Rows")
        self.assertIn("nvme-tcp read 4KiB", disks)
        self.assertNotIn("efa send", disks)
        self.assertNotIn("nvme-tcp", others)
        self.assertIn("efa send 8B polled", others)

    def test_targets_are_of_rows_that_there_are(self):
        self.assertLess(report.DISK_TARGETS.keys(), {row.name() for row in rows.all_rows()})

    def test_ours_are_held_against_the_baseline(self):
        names = {row.name() for row in rows.checked()}
        self.assertIn("kofiblk read 4KiB depth=32", names)
        self.assertNotIn("kofiblk read 4KiB depth=1", names)
        self.assertFalse([n for n in names if n.startswith(("nvme", "null_blk"))])

    def test_commands_name_the_device(self):
        self.assertEqual(self.ROW.command(), "blk nvme-tcp - read sleeping 4096 1 5 0 0")


def compare(now, base):
    return report.regressions(now, base, list(base["rows"]))


class Baseline(unittest.TestCase):
    def test_the_same_is_good(self):
        self.assertEqual(compare(result(), report.baseline(result())), ([], 1))

    def test_less_is_good(self):
        grown, _ = compare(result(added=50.0), report.baseline(result()))
        self.assertEqual(grown, [])

    def test_a_little_more_is_good(self):
        grown, _ = compare(result(added=102.9), report.baseline(result()))
        self.assertEqual(grown, [])

    def test_more_is_bad(self):
        grown, _ = compare(result(added=103.1), report.baseline(result()))
        self.assertEqual(grown, ["efa send: added 103, was 100"])

    def test_more_is_bad_though_runs_differ(self):
        grown, _ = compare(result(added=300.0, agree=False, other=200.0),
                           report.baseline(result()))
        self.assertEqual(grown, ["efa send: added 200, was 100"])

    def test_one_run_as_before_is_good(self):
        for runs in ((200.0, 102.0), (102.0, 200.0)):
            with self.subTest(runs):
                grown, _ = compare(result(added=runs[0], agree=False, other=runs[1]),
                                   report.baseline(result()))
                self.assertEqual(grown, [])

    def test_nearly_nothing_is_bad(self):
        """Nobody is as good as that: it is counted elsewhere."""
        for added in (0.0, 49.0):
            with self.subTest(added):
                grown, _ = compare(result(added=added), report.baseline(result()))
                self.assertEqual(len(grown), 1)
                self.assertIn(f"efa send: added {added:.0f}, was 100", grown[0])

    def test_what_is_chance_is_not_compared(self):
        grown, _ = compare(result(host=2000.0), report.baseline(result()))
        self.assertEqual(grown, [])

    def test_what_is_missing_is_bad(self):
        now = result()
        base = report.baseline(now)
        now["rows"].clear()
        grown, compared = compare(now, base)
        self.assertEqual((len(grown), compared), (1, 0))

    def test_what_was_not_asked_for_is_not_missed(self):
        base = report.baseline(result())
        self.assertEqual(report.regressions(result(), base, []), ([], 0))

    def test_what_does_not_repeat_is_not_kept(self):
        self.assertEqual(report.baseline(result(agree=False))["rows"], {})


if __name__ == "__main__":
    unittest.main()
