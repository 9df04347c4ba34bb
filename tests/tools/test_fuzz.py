# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The wire parsers in user space, under the sanitizers, with messages made of a corpus."""

import pathlib
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
FUZZ = TOP / "tests" / "fuzz"
SEEDS = (1, 2)
COUNT = 1_000_000


def predictably():
    """Begins a command whose addresses aren't random, if that may be: where they are very
    much so, sanitizers of GCC 12 die at random."""
    prefix = ["setarch", "-R"]
    works = subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL, check=False)
    return [] if works.returncode else prefix


class BlkWire(unittest.TestCase):
    def test_messages(self):
        files = sorted(str(p) for p in (FUZZ / "corpus").iterdir())
        # Not below /tmp, where programs may be forbidden.
        (TOP / "out").mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=TOP / "out") as out:
            subprocess.run(["make", "-s", "-C", FUZZ, f"OUT={out}"], check=True)
            for seed in SEEDS:
                run = subprocess.run([*predictably(), f"{out}/blk_wire", str(seed),
                                      str(COUNT), *files],
                                     capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, run.stderr[-2000:])
                counts = {name: [int(n) for n in numbers.split()] for name, numbers in
                          (line.split(": ") for line in run.stdout.splitlines())}
                # Everything in the corpus is a message, and some of what it became.
                self.assertEqual(sum(counts["corpus"]), len(files))
                self.assertTrue(all(counts["passed"][1:]), run.stdout)


if __name__ == "__main__":
    unittest.main()
