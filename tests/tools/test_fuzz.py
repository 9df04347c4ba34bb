# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The wire parsers in user space, under the sanitizers, with messages made of a corpus."""

import pathlib
import subprocess
import tempfile
import unittest

FUZZ = pathlib.Path(__file__).resolve().parents[1] / "fuzz"
SEEDS = (1, 2)
COUNT = 1_000_000


class BlkWire(unittest.TestCase):
    def test_messages(self):
        files = sorted(str(p) for p in (FUZZ / "corpus").iterdir())
        with tempfile.TemporaryDirectory() as out:
            subprocess.run(["make", "-s", "-C", FUZZ, f"OUT={out}"], check=True)
            for seed in SEEDS:
                run = subprocess.run([f"{out}/blk_wire", str(seed), str(COUNT), *files],
                                     capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, run.stderr[-2000:])
                counts = {name: [int(n) for n in numbers.split()] for name, numbers in
                          (line.split(": ") for line in run.stdout.splitlines())}
                # Everything in the corpus is a message, and some of what it became.
                self.assertEqual(sum(counts["corpus"]), len(files))
                self.assertTrue(all(counts["passed"][1:]), run.stdout)


if __name__ == "__main__":
    unittest.main()
