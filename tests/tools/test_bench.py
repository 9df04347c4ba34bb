# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The benchmarks' arithmetic: parts by symbol, baselines, what counts as grown."""

import copy
import json
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
ffffffffc0001100 t kefa_direct_work	[kofi_efa]
ffffffffc0001200 t kefa_direct_soft	[kofi_efa]
ffffffffc0001300 t kefa_mrq_work	[kofi_efa]
ffffffffc0001400 t kefa_mrq_soft	[kofi_efa]
ffffffffc0001500 t kefa_rdm_work	[kofi_efa]
ffffffffc0002000 t efasim_poll_cq	[efasim]
ffffffffc0002100 t efasim_dev_run	[efasim]
ffffffffc0003000 t kbv_work	[kofi_bench_verbs]
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


# Runs of the functions that take completions, each a different number of times.
TAKERS = """\
W 0
ffffffffc0001100 1 1 0 0
ffffffffc0001200 1 2 0 0
ffffffffc0001300 1 4 0 0
ffffffffc0001400 1 8 0 0
ffffffffc0001500 1 10 0 0
ffffffffc0003000 1 20 0 0
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


def result(added=100.0, host=1000.0, agree=True, other=None, name="efa send", workers=(0.0, 0.0)):
    """other: what the second run added, if that isn't the same."""
    return {"versions": {"kernel": "6"}, "rows": {
        name: {"added": added, "host": host, "workers": workers[0],
               "agree": {"added": agree, "host": agree, "workers": workers[0] == workers[1]},
               "both": {"added": (added, other or added), "host": (host, host),
                        "workers": workers}}}}


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

    def test_softirqs_are_no_runs_of_workers(self):
        for mode, runs in (("handler", 1 + 4 + 0x10 + 0x20), ("softirq", 1 + 4 + 0x10)):
            row = rows.Row("efa", "send", 8, mode, batch=1)
            self.assertEqual(rows.figures(row, windows(TAKERS))[0]["workers"], runs)


# The second measurement against the first, and the complaint.
COMPARED = (
    ({}, ""),
    ({"added": 102.9}, ""),
    ({"added": 103.1}, "efa send: added 103, was 100"),
    # The better run counts, if two runs differ.
    ({"added": 300.0, "agree": False, "other": 200.0}, "efa send: added 200, was 100"),
    ({"added": 200.0, "agree": False, "other": 102.0}, ""),
    ({"added": 102.0, "agree": False, "other": 200.0}, ""),
    # Nobody is as good as that: it is counted elsewhere.
    ({"added": 0.0}, "efa send: added 0, was 100"),
    ({"added": 49.0}, "efa send: added 49, was 100"),
)


class Baseline(unittest.TestCase):
    def test_compared(self):
        for now, complaint in COMPARED:
            with self.subTest(now):
                grown, compared = report.regressions(result(**now), report.baseline(result()),
                                                     ["efa send"])
                self.assertEqual((len(grown), compared), (bool(complaint), 1))
                self.assertTrue("".join(grown).startswith(complaint), grown)

    def test_workers_of_single_operations(self):
        for name in ("efa send single", "kofiblk read depth=1"):
            for then in (0.0, 1.0):
                base = report.baseline(result(name=name, workers=(then, then)))
                self.assertEqual(base["rows"][name], {"added": 100.0, "workers": then})
                more = then + 1
                for now, bad in (((then, then), 0), ((more, then), 0), ((more, more), 1)):
                    grown, compared = report.regressions(result(name=name, workers=now), base,
                                                         [name])
                    self.assertEqual((len(grown), compared), (bad, 2), grown)

    def test_workers_of_batches_are_not_compared(self):
        base = report.baseline(result())
        self.assertEqual(base["rows"]["efa send"], {"added": 100.0})
        busy = result(workers=(9.0, 9.0))
        self.assertEqual(report.regressions(busy, base, ["efa send"]), ([], 1))

    def test_nothing_added_is_not_kept(self):
        row = result(added=0.0, name="verbs send single", workers=(1.0, 1.0))
        self.assertEqual(report.baseline(row)["rows"], {})

    def test_what_is_missing_is_bad(self):
        grown, compared = report.regressions({**result(), "rows": {}},
                                             report.baseline(result()), ["efa send"])
        self.assertEqual((len(grown), compared), (1, 0))

    def test_what_the_baseline_lacks_is_bad(self):
        for base in ({}, {"efa send": {}}, {"efa recv": {"added": 100.0}}):
            grown, compared = report.regressions(result(), {"rows": base}, ["efa send"])
            self.assertEqual((len(grown), compared), (1, 0))
            self.assertIn("efa send: added 100, isn't in the baseline", grown[0])

    def test_checked_rows_have_figures(self):
        base = json.loads((TOP / "bench" / "baseline.json").read_text())["rows"]
        checked = {row.name(): report.compared(row.name()) for row in rows.checked()}
        self.assertLessEqual({"efa recv 8B softirq single", "efa inv 4KiB softirq single",
                              "efa regown 4KiB polled single", "kofiblk read 4KiB depth=1",
                              "kofiblk write 4KiB depth=1"}, checked.keys())
        self.assertEqual([f"{name}: {figure}" for name, figures in checked.items()
                          for figure in figures if figure not in base.get(name, {})], [])
        self.assertTrue(all(base[name][figures[0]] for name, figures in checked.items()))

    def test_what_does_not_repeat_is_not_kept(self):
        self.assertEqual(report.baseline(result(agree=False))["rows"], {})

    def test_what_was_not_measured_stays(self):
        former = {"versions": {"kernel": "6"}, "rows": {"efa send": {"added": 50.0},
                                                        "efa recv": {"added": 70.0}}}
        for agree, added in ((True, 100.0), (False, 50.0)):
            self.assertEqual(report.baseline(result(agree=agree), former)["rows"],
                             {"efa send": {"added": added}, "efa recv": {"added": 70.0}})
        former["versions"] = {"kernel": "7"}
        self.assertEqual(report.baseline(result(), former)["rows"], {"efa send": {"added": 100.0}})


if __name__ == "__main__":
    unittest.main()
