# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""No more guests at a time than there are slots, whoever runs them."""

import concurrent.futures
import pathlib
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bed"))

import boot         # pylint: disable=wrong-import-position
import limits       # pylint: disable=wrong-import-position


class Slots(unittest.TestCase):
    """Locks are per open file, so threads are to each other what runs are."""

    def setUp(self):
        cache = tempfile.TemporaryDirectory()   # pylint: disable=consider-using-with
        self.addCleanup(cache.cleanup)
        for target, name, value in ((boot.tree, "CACHE", pathlib.Path(cache.name)),
                                    (boot, "CPUS", 2), (boot, "ROOM", 3),
                                    (boot, "LOOK", 0.001)):
            patch = mock.patch.object(target, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.lock = threading.Lock()
        self.now, self.most = 0, 0

    def guests(self, count):
        with boot.slots(count):
            with self.lock:
                self.now += count
                self.most = max(self.most, self.now)
            time.sleep(0.002)
            with self.lock:
                self.now -= count

    def test_never_too_many_and_none_stuck(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self.guests, [1, 2] * 20, timeout=60))
        self.assertEqual(self.most, 2)
        self.assertEqual(self.now, 0)

    def test_two_run_at_once(self):
        with boot.slots(1), boot.slots(1):
            boot.try_lock("guest-0").close()
            self.assertIsNone(boot.try_lock("guest-1"))
            self.assertIsNone(boot.try_lock("guest-2"))

    def test_one_beside_two(self):
        with boot.slots(2, boot.BY_TURNS), boot.slots(1):
            self.assertIsNone(boot.try_lock("guest-2"))

    def test_one_more_if_their_cpus_take_turns(self):
        turns = boot.BY_TURNS
        with boot.slots(1, turns), boot.slots(1, turns), boot.slots(1, turns):
            self.assertIsNone(boot.try_lock("guest-2"))
            boot.try_lock("guest-3").close()

    def test_no_more_than_there_is_memory_for(self):
        for cpus, room, slots in ((8, 3, 3), (8, 20, 8), (2, 1, 2), (2, 0, 2)):
            with self.subTest(room), mock.patch.object(boot, "CPUS", cpus), \
                    mock.patch.object(boot, "ROOM", room):
                self.assertEqual(boot.slot_count(boot.AT_ONCE), slots)

    def test_says_nothing_of_its_own(self):
        said = []
        with mock.patch("builtins.print", lambda text, **_: said.append(text)), \
                concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self.guests, [1, 2] * 20, timeout=60))
        self.assertEqual(said, [])

    def test_says_whom_it_waits_for(self):
        said = []
        other = boot.try_lock("guests")
        with mock.patch("builtins.print", lambda text, **_: said.append(text)), \
                mock.patch.object(boot.time, "sleep", lambda _: other.close()):
            with boot.slots(1):
                pass
        self.assertEqual(said, ["waiting for the guests of another run"])

    def test_begin_in_order(self):
        begun = []

        def run_job(job, held):
            with held:
                begun.append(job[0].name)
                time.sleep(0.002)

        jobs = [(boot.Boot(str(n), guests=1 + n % 2),) for n in range(20)]
        boot.run_all(jobs, run_job)
        self.assertEqual(begun, [job[0].name for job in jobs])

    def test_given_back_after_an_error(self):
        with self.assertRaises(RuntimeError):
            with boot.slots(2):
                raise RuntimeError
        self.assertFalse(boot.ours)
        with boot.slots(2):
            pass


class Machine(unittest.TestCase):
    """What a run may use of it, which is less in a container."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()   # pylint: disable=consider-using-with
        self.addCleanup(directory.cleanup)
        self.top = pathlib.Path(directory.name)
        self.group = self.top / "cgroup" / "system" / "job"
        self.group.mkdir(parents=True)
        self.write("own", "4:memory:/other\n0::/system/job\n")
        self.write("meminfo", "MemTotal: 99999999 kB\nMemAvailable: 8388608 kB\n")
        for target, name, value in ((limits, "CGROUPS", self.top / "cgroup"),
                                    (limits, "OWN_CGROUP", self.top / "own"),
                                    (limits, "MEMINFO", self.top / "meminfo"),
                                    (limits.os, "sched_getaffinity", lambda _: range(16))):
            patch = mock.patch.object(target, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, name, text):
        (self.top / name).write_text(text)

    def test_no_limits(self):
        self.assertEqual((limits.cpus(), limits.room()), (16, 8))
        self.write("cgroup/system/job/cpu.max", "max 100000\n")
        self.write("cgroup/system/job/memory.max", "max\n")
        self.assertEqual((limits.cpus(), limits.room()), (16, 8))

    def test_limits(self):
        self.write("cgroup/system/job/cpu.max", "450000 100000\n")
        self.write("cgroup/system/job/memory.max", f"{6 << 30}\n")
        self.assertEqual((limits.cpus(), limits.room()), (5, 6))

    def test_limits_of_a_group_above(self):
        self.write("cgroup/system/job/cpu.max", "1200000 100000\n")
        self.write("cgroup/cpu.max", "400000 100000\n")
        self.write("cgroup/system/memory.max", f"{5 << 30}\n")
        self.assertEqual((limits.cpus(), limits.room()), (4, 5))

    def test_never_less_than_two(self):
        self.write("cgroup/system/cpu.max", "50000 100000\n")
        self.assertEqual(limits.cpus(), 2)

    def test_no_control_groups(self):
        (self.top / "own").unlink()
        self.assertEqual((limits.cpus(), limits.room()), (16, 8))


if __name__ == "__main__":
    unittest.main()
