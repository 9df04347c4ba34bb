# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest that is killed on request: what is said of it, and what becomes of it.

The guests here are other programs than QEMU; selftest-lives and the guest test
"lives" are the real thing.
"""

import pathlib
import socket
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bed"))

import boot         # pylint: disable=wrong-import-position
import verdict      # pylint: disable=wrong-import-position

# Cut off within a line.
RESULTS = """\
@@file guest/crash
ok 1 - there
ok 2 - and back
ok"""

CONSOLE = "[    8.374219] bed: up\n"
SPLAT = "[    9.0] WARNING: CPU: 0 PID: 66 at kofi/cq.c:1 kofi_cq_read+0x1/0x2 [kofi]\n"


class Verdict(unittest.TestCase):
    """Judges a life that ended in the middle of its test."""

    def judge(self, results=RESULTS, console=CONSOLE, killed=True):
        outcome = boot.Outcome(boot.Boot("crash", tests=("crash",), lives=2), "b", None,
                               status=None, console=console, killed=killed,
                               sections=boot.split_sections(results))
        return verdict.judge(None, outcome, [])

    def assert_red(self, reason, *args, **kwargs):
        failures = self.judge(*args, **kwargs).failures
        self.assertTrue(any(reason in f for f in failures), f"{reason}: {failures}")

    def test_killed(self):
        result = self.judge()
        self.assertEqual(result.failures, [])
        self.assertEqual(result.passed, 4)

    def test_before_its_test(self):
        self.assertEqual(self.judge("").failures, [])

    def test_not_killed(self):
        self.assert_red("guest was dead", killed=False)
        self.assert_red("did not end", killed=False)

    def test_said(self):
        self.assert_red("not ok 2", RESULTS.replace("ok 2", "not ok 2"))
        self.assert_red("skipped", RESULTS.replace("back", "back # SKIP no network"))

    def test_splat(self):
        self.assert_red("WARNING", console=CONSOLE + SPLAT)


class Program(boot.Guest):
    """A guest that runs some program."""
    program = ("sleep", "60")

    def _command(self, control):
        return list(self.program)


class Brief(Program):
    program = ("true",)


class Shot(Program):
    program = ("sh", "-c", "kill -KILL $$")


class Guests(unittest.TestCase):
    """Guests of that kind."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def guest(self, program=Program, role="a"):
        spec = boot.Boot("crash", tests=("crash",), lives=2, drive="1M", timeout=60)
        guest = program(spec, role, None, self.directory / "log", self.directory)
        self.addCleanup(guest.end)
        return guest


class Lives(Guests):
    """The lives of a guest."""

    def test_killed(self):
        guest = self.guest()
        self.assertTrue(guest.begin_anew())
        guest.end()
        self.assertEqual([(o.life, o.killed, o.status) for o in guest.outcomes()],
                         [(1, True, None), (2, False, None)])
        self.assertEqual([o.name for o in guest.outcomes()], ["a, life 1", "a, life 2"])

    def test_died(self):
        guest = self.guest(Brief)
        guest.process.wait()
        self.assertFalse(guest.begin_anew())
        self.assertEqual([(o.life, o.killed, o.status) for o in guest.outcomes()],
                         [(1, False, 0)])

    def test_died_of_a_signal(self):
        guest = self.guest(Shot)
        guest.process.wait()
        guest.end()
        self.assertEqual([o.status for o in guest.outcomes()], [-9])

    def test_drive(self):
        guest = self.guest()
        drive = self.directory / "drive-a"
        self.assertEqual(drive.stat().st_size, 1 << 20)
        drive.write_text("here")
        guest.begin_anew()
        self.assertEqual(drive.read_text(), "here")

    def test_time(self):
        """All lives together have the time of one."""
        guest = self.guest()
        guest.is_up()
        self.assertFalse(guest.overdue())
        guest.deadline -= 60 + guest.boot.grace
        self.assertTrue(guest.overdue())
        guest.begin_anew()
        guest.is_up()
        self.assertTrue(guest.overdue())
        self.assertIn("export TIMEOUT=1\n", guest.boot.job("a", 2, used=80))
        self.assertIn("export LIFE=2\n", guest.boot.job("a", 2))


class Start(Guests):
    """Of a boot's guests."""

    def test_none_is_left_without_the_others(self):
        started = []

        class Once(Program):
            """Of which a second one can't start."""

            def _start(self):
                if started:
                    raise OSError
                super()._start()
                started.append(self)

        with mock.patch.object(boot, "Guest", Once), self.assertRaises(OSError):
            boot.run_now(boot.Boot("two", guests=2), {"test": None}, self.directory)
        self.assertEqual(started[0].process.returncode, -9)


class Barriers(Guests):
    """What guests are told that come to one."""

    def setUp(self):
        super().setUp()
        guests = [self.guest(role=role) for role in "ab"]
        self.control = boot.Control(guests)
        self.ports = {guest.role: self.port(guest) for guest in guests}

    def port(self, guest):
        port = socket.socket(socket.AF_UNIX)
        self.addCleanup(port.close)
        port.connect(guest.control.getsockname())
        self.control.poll(5)
        return port

    def say(self, role, line):
        self.ports[role].sendall(line.encode() + b"\n")
        self.control.poll(5)

    def leave(self, role):
        self.ports[role].close()
        self.control.poll(5)

    def heard(self, role):
        self.ports[role].settimeout(5)
        return self.ports[role].recv(4096).decode()

    def test_all_are_there(self):
        self.say("a", "barrier met 1")
        self.say("b", "barrier met 2")
        self.assertEqual([self.heard(role) for role in "ab"], ["go met 1 2\n"] * 2)

    def test_different_ones(self):
        self.say("a", "barrier met 1")
        self.say("b", "barrier parted 2")
        self.assertIn("different barriers: met parted", self.heard("a"))

    def test_one_has_gone_since(self):
        self.say("a", "barrier met 1")
        self.leave("b")
        self.assertEqual(self.heard("a"), "guest b is gone\n")

    def test_one_has_gone_before(self):
        self.leave("b")
        for name in ("met", "parted"):
            self.say("a", f"barrier {name} 1")
            self.assertEqual(self.heard("a"), "guest b is gone\n")


if __name__ == "__main__":
    unittest.main()
