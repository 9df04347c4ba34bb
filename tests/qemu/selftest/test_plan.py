# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a run consists of, and whether programs' tests all count."""

import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bed"))

# pylint: disable=wrong-import-position
import plan
import selftest
from boot import Boot


class Names(unittest.TestCase):
    """ONLY="NAME..." """

    def test_there_are(self):
        for level in plan.LEVELS:
            with self.subTest(level):
                self.assertEqual(plan.unknown(["kunit", "hello", "tools", "lives"], level,
                                              ["kunit"]), [])

    def test_there_is_none(self):
        self.assertEqual(plan.unknown(["helo", "hello", "kunit"], "full", []),
                         ["helo", "kunit"])

    def test_not_at_this_level(self):
        self.assertEqual(plan.unknown(["efasim-soak"], "check", []), ["efasim-soak"])
        self.assertEqual(plan.unknown(["efasim-soak"], "full", []), [])


class Accel(unittest.TestCase):
    """Where a guest's CPUs run at once."""

    def at_once(self, level):
        boots = plan.guest_boots(plan.guest_tests(level), level)
        self.assertFalse([b for b in boots if b.smp == 1 and b.accel == plan.AT_ONCE])
        return {boot.kernel for boot in boots if boot.accel == plan.AT_ONCE}

    def test_levels(self):
        self.assertEqual(self.at_once("check"), set())
        self.assertEqual(self.at_once("more"), {"stock-6.12"})
        self.assertEqual(self.at_once("full"), set(plan.KERNELS))


class Order(unittest.TestCase):
    def test_one_guest_beside_two(self):
        boots = [Boot("short", timeout=1), Boot("long", timeout=9), Boot("leaks", kmemleak=True),
                 Boot("two", guests=2, timeout=5), Boot("two long", guests=2, timeout=7)]
        self.assertEqual([boot.name for boot in plan.in_turn(boots)],
                         ["two long", "leaks", "two", "long", "short"])


class Libfabric(unittest.TestCase):
    """LIBFABRIC=/ROOT"""

    test = plan.GuestTest("t", plan.Needs(), plan.Offers(settings=("LIBFABRIC=",)))

    def test_it_must_be_a_root(self):
        with (unittest.mock.patch.dict(os.environ, LIBFABRIC="/nowhere"),
              self.assertRaises(SystemExit)):
            plan.require_programs(self.test)

    def test_it_is_used(self):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(f"{root}/tmp")
            with unittest.mock.patch.dict(os.environ, LIBFABRIC=root):
                plan.require_programs(self.test)
                self.assertEqual(os.environ["LIBFABRIC"], root)

    def test_only_some_tests_get_it(self):
        boots = plan.guest_boots(plan.guest_tests("full"), "full")
        self.assertEqual({test for boot in boots if "LIBFABRIC=" in boot.settings
                          for test in boot.tests if not test.endswith("-new")}, set())


TESTS = """
import unittest

class Three(unittest.TestCase):
    def test_good(self):
        pass

    @unittest.skip("not today")
    def test_skipped(self):
        pass

    @unittest.expectedFailure
    def test_mended(self):
        pass
"""


class Unittests(unittest.TestCase):
    def test_skips_and_surprises_are_failures(self):
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "test_three_kinds.py").write_text(TESTS)
            verdict = selftest.judge_unittests(directory)
        self.assertEqual(verdict.passed, 1)
        self.assertEqual(sorted(f.split(".")[-1] for f in verdict.failures),
                         ["test_mended: succeeded, which it shouldn't",
                          "test_skipped: skipped: not today"])


if __name__ == "__main__":
    unittest.main()
