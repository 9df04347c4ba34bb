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


class Slots(unittest.TestCase):
    """Locks are per open file, so threads are to each other what runs are."""

    def setUp(self):
        cache = tempfile.TemporaryDirectory()   # pylint: disable=consider-using-with
        self.addCleanup(cache.cleanup)
        for target, name, value in ((boot.tree, "CACHE", pathlib.Path(cache.name)),
                                    (boot, "CPUS", 2), (boot, "LOOK", 0.001)):
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
            self.assertIsNone(boot.try_lock("guest-0"))
            self.assertIsNone(boot.try_lock("guest-1"))

    def test_one_more_if_their_cpus_take_turns(self):
        turns = boot.BY_TURNS
        with boot.slots(1, turns), boot.slots(1, turns), boot.slots(1, turns):
            self.assertIsNone(boot.try_lock("guest-2"))
            boot.try_lock("guest-3").close()

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


if __name__ == "__main__":
    unittest.main()
