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


class Target:
    """A program of tests/fuzz, its name and corpus; judge() looks at its counters: of types of
    packets, and behind them of reasons for refusals."""


    def run_it(self, program, seed, files):
        run = subprocess.run([*predictably(), program, str(seed), str(COUNT), *files],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr[-2000:])
        counts = {name: [int(n) for n in numbers.split()] for name, numbers in
                  (line.split(": ") for line in run.stdout.splitlines())}
        self.judge(files, counts["corpus"], counts["passed"])

    def test_messages(self):
        files = sorted(str(p) for p in (FUZZ / self.corpus).iterdir())
        # Not below /tmp, where programs may be forbidden.
        (TOP / "out").mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=TOP / "out") as out:
            program = f"{out}/{self.name}"
            subprocess.run(["make", "-s", "-C", FUZZ, f"OUT={out}", program], check=True)
            for seed in SEEDS:
                self.run_it(program, seed, files)


class BlkWire(Target, unittest.TestCase):
    name = "blk_wire"
    corpus = "corpus-blk"

    def judge(self, files, corpus, passed):
        # Everything in the corpus is a message, and some of what it became.
        self.assertEqual(sum(corpus), len(files))
        self.assertTrue(all(passed[1:]), passed)


class CmWire(BlkWire):
    name = "cm_wire"
    corpus = "corpus-cm"


class MsgWire(BlkWire):
    name = "msg_wire"
    corpus = "corpus-msg"


class RcWire(BlkWire):
    name = "rc_wire"
    corpus = "corpus-rc"


class EfaWire(Target, unittest.TestCase):
    name = "efa_wire"
    corpus = "corpus-efa"
    reasons = 12

    def judge(self, files, corpus, passed):
        types = corpus[:-self.reasons]
        self.assertEqual(sum(types), len(files))
        self.assertEqual(len(types) - types.count(0), 35)
        # Each type came through, and each reason but "ok" was given.
        self.assertEqual([n > 0 for n in passed[:-self.reasons]], [n > 0 for n in types])
        self.assertTrue(all(passed[1 - self.reasons:]), passed)


class SimWire(Target, unittest.TestCase):
    name = "sim_wire"
    corpus = "corpus-sim"
    reasons = 8

    def judge(self, files, corpus, passed):
        self.assertEqual(sum(corpus), len(files))
        self.assertTrue(all(corpus[:-self.reasons]), corpus)
        # Each type was accepted, and each reason but "ok" was given.
        self.assertTrue(all(passed[:-self.reasons] + passed[1 - self.reasons:]), passed)


class EfaCaptures(unittest.TestCase):
    """The parsers accept libfabric's packets, and the builders make the same ones."""

    def run_it(self, *files):
        return subprocess.run([*predictably(), self.program, *map(str, files)],
                              capture_output=True, text=True, check=False)

    def setUp(self):
        (TOP / "out").mkdir(exist_ok=True)
        out = tempfile.TemporaryDirectory(dir=TOP / "out")
        self.addCleanup(out.cleanup)
        self.out = pathlib.Path(out.name)
        self.program = f"{out.name}/efa_captures"
        subprocess.run(["make", "-s", "-C", FUZZ, f"OUT={out.name}", self.program], check=True)

    def test_captures(self):
        for file in sorted((TOP / "tests" / "captures").glob("*.txt")):
            with self.subTest(file.name):
                run = self.run_it(file)
                self.assertEqual(run.returncode, 0, run.stderr[-2000:])
                self.assertIn("HANDSHAKE", run.stdout)

    def test_judge(self):
        """The program finds what is wrong in a capture, made of the corpus here."""
        corpus = sorted((FUZZ / "corpus-efa").iterdir())
        lines = [f"{p.name} {p.stat().st_size} {p.read_bytes().hex()}" for p in corpus
                 if p.name != "trigger"]
        text = self.out / "text"
        text.write_text("# what was sent\n\n" + "\n".join(lines))
        run = self.run_it(text)
        self.assertEqual((run.returncode, len(run.stdout.splitlines())), (0, 35), run.stderr)
        for bad in ("CTS 2 0304", "cts", "CTS 2 03xx", "CTS 1 0304", "CTS x 03",
                    "EOR " + " ".join(lines[0].split()[1:]), "RECEIPT 4 0a040000"):
            text.write_text("\n".join([*lines, bad]))
            self.assertEqual(self.run_it(text).returncode, 1, bad)


if __name__ == "__main__":
    unittest.main()
