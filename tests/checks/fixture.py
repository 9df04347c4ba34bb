# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Small trees for the tests of the checks."""

import os
import tempfile
import unittest

import tree


class TreeTest(unittest.TestCase):
    """Makes a tree of {path: text} and collects what a check says of it."""

    def complaints(self, check, files):
        with tempfile.TemporaryDirectory() as top:
            for path, text in files.items():
                full = os.path.join(top, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as f:
                    f.write(text)
            report = tree.Report()
            check(top, report)
            return report.lines

    def accepts(self, check, files):
        self.assertEqual(self.complaints(check, files), [])

    def refuses(self, check, files, *words):
        lines = self.complaints(check, files)
        self.assertEqual(len(lines), 1, lines)
        for word in words:
            self.assertIn(word, lines[0])
