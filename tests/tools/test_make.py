# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The Makefile: python3 -m unittest discover tests/tools"""

import os
import pathlib
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
ENV = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


class Kernel(unittest.TestCase):
    def asked(self, *goals):
        """The target that make asks the kernel's makefile for."""
        with tempfile.TemporaryDirectory() as kdir:
            pathlib.Path(kdir, "Makefile").write_text("%: FORCE\n\t@echo asked for $@ M=$(M)\n"
                                                      "FORCE: ;\nMakefile: ;\n")
            run = subprocess.run(["make", "--no-print-directory", "-C", TOP, f"KDIR={kdir}", *goals],
                                 stdout=subprocess.PIPE, text=True, env=ENV, check=True)
        return run.stdout.splitlines()[-1]

    def test_targets_of_the_kernel(self):
        for goal in ("kofi/strerror.o", "kofi/main.i", "tags", "nsdeps", "coccicheck"):
            self.assertEqual(self.asked(goal), f"asked for {goal} M={TOP}")

    def test_modules(self):
        self.assertEqual(self.asked("modules"), f"asked for modules M={TOP}")
