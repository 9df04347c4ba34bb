# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a run consists of."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bed"))

# pylint: disable=wrong-import-position
import plan


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


if __name__ == "__main__":
    unittest.main()
