# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests that failures are detected.

These boots are broken on purpose; their failures must be exactly the expected
ones. Each expectation is a separate test.
"""

import re
import unittest

from boot import Boot
from verdict import Verdict

MODULE = "kofi_bed_kunit"
# No suite has this name, and kofi_bed isn't listed in these boots.
LISTED = ["kofi_absent"]
MISSING = {"a missing suite": r"^kofi_absent: listed, but did not run"}


def broken(*names):
    return "fail=" + ",".join(names)


CUT = {"the end of a guest within a suite": r"the guest ended while suites ran"}

BOOTS = [
    # Failures that a guest survives.
    (Boot("selftest-bugs", level="more", suites=(MODULE,), kmemleak=True, timeout=90,
          suite_parameters=broken("lock_order", "expectation", "skip", "warn",
                                  "atomic_sleep", "shift", "leak",
                                  "use_after_free", "unload"),
          tests=("bad", "early", "empty", "skips", "fault")),
     {**MISSING,
      "an unlisted suite": r"^kofi_bed: ran, but is not listed",
      "a lock order splat": r"^console: WARNING: possible circular locking",
      "lockdep turned off": r": lockdep is off",
      "a failed case": r"^kofi_bed\.bed_expectation \(failure\)",
      "a skipped case": r"^kofi_bed\.bed_skip \(skipped\)",
      "a warning": r"^console: WARNING: CPU",
      "a warning's taint": r": tainted, warning",
      "a sleep in atomic context": r"^console: BUG: (scheduling|sleeping)",
      "a bad shift": r"^console: UBSAN: shift-out-of-bounds",
      "a bad shift's case": r"^kofi_bed\.bed_shift \(failure\)",
      "a use after free": r"^console: BUG: KASAN: slab-use-after-free",
      "a use after free's case": r"^kofi_bed\.bed_use_after_free \(failure\)",
      "a KASAN report's taint": r": tainted, bad page or KASAN",
      "a leak": r"^after unloading: [0-9]+ leaked objects",
      "a leak on the console": r"^console: kmemleak: [0-9]+ new suspected",
      "a module that can't be unloaded": r": still loaded: kofi_bed_kunit",
      "a failed guest test": r"^bad: not ok 2 - broken on purpose",
      "a command that there isn't": r"^bad: /bed/guest/bad.sh: .*nobody_has_this: not found",
      "a refusal by nobody": r"^bad: not ok 3 - what can't be run \(status 127",
      "a guest test's exit status": r"^bad: exited with status 3",
      "its end before its last line": r"^bad: not ok 4 - ended before its last line",
      "an early end that looks good": r"^early: not ok 2 - ended before its last line",
      "a guest test without a result": r"^empty: no result",
      "a skip in a guest test": r"^skips: skipped: ok",
      "a fault knob without effect": r"^fault: not ok . - failslab was on and injected nothing",
      "a fault knob left on": r"^fault: fault knob failslab was left on and injected nothing",
      }),
    (Boot("selftest-panic", level="more", suites=(MODULE,), suite_parameters=broken("null"),
          timeout=60),
     {**MISSING, **CUT,
      "an oops": r"^console: (BUG|Oops|KASAN|general protection|Kernel panic)",
      "a panic's exit": r"^guest crashed: QEMU exited with status 0",
      }),
    # The watchdog reports a soft lockup after twice that many seconds.
    (Boot("selftest-lockup", level="full", suites=(MODULE,), suite_parameters=broken("lockup"),
          cmdline="watchdog_thresh=3", timeout=60),
     {**MISSING, **CUT,
      "a loop": r"^console: (watchdog: BUG: soft lockup|Kernel panic .* softlockup)",
      "its end before the boot's": r"^guest crashed: QEMU exited with status 0",
      }),
    (Boot("selftest-hang", level="full", suites=(MODULE,), suite_parameters=broken("hang"),
          timeout=6),
     {**MISSING, **CUT, "a hang": r"^timeout: no end after 6 s"}),
    # With this patience, the guest's own watchdog doesn't end it before the bed does.
    (Boot("selftest-dead", level="full", suites=(MODULE,), suite_parameters=broken("dead"),
          timeout=4, grace=2, patience=600, smp=1),
     {**MISSING, **CUT, "a dead guest": r"^guest was dead: killed"}),
    # One guest is killed on request, and later crashes by itself.
    (Boot("selftest-lives", level="more", guests=2, lives=3, smp=1, tests=("died",), timeout=120),
     {"a warning before a guest was killed": r"^guest b, life 1: console: WARNING: CPU",
      "what failed before it was killed": r"^guest b, life 1: died: not ok 1 - broken",
      "the end that nobody asked for": r"^guest b, life 2: guest crashed: QEMU exited "
                                       "with status 0",
      "its panic": r"^guest b, life 2: console: Kernel panic",
      "its test": r"^guest b, life 2: died: did not end",
      "a barrier without it": r"^guest a, life 1: died: not ok 2 - barrier dead: guest b is",
      "who has died can't be killed": r"^guest a, life 1: died: not ok 3 - the dead",
      }),
]


def judge(boot_name, expected, failures):
    """Check that a broken boot has exactly the expected failures."""
    verdict = Verdict()
    for what, pattern in expected.items():
        seen = any(re.search(pattern, failure) for failure in failures)
        verdict.check([] if seen else
                      [f"{boot_name}: {what} did not turn the run red"])
    for failure in failures:
        if not any(re.search(pattern, failure) for pattern in expected.values()):
            verdict.failures.append(f"{boot_name}: unexpected: {failure}")
    return verdict


class Counting(unittest.TestResult):
    """Counts the tests that passed with all their subtests."""
    passed = 0

    def addSuccess(self, test):     # pylint: disable=invalid-name
        super().addSuccess(test)
        self.passed += 1


def judge_unittests(directory):
    """Run the tests of programs: of tools/, and of the verdict, which judges recorded
    results, each changed in one way."""
    result = Counting()
    unittest.TestLoader().discover(directory).run(result)
    verdict = Verdict(passed=result.passed)
    for test, trace in result.failures + result.errors:
        verdict.failures.append(f"{test.id()}: {trace.strip().splitlines()[-1]}")
    verdict.failures += [f"{test.id()}: skipped: {why}" for test, why in result.skipped]
    verdict.failures += [f"{test.id()}: succeeded, which it shouldn't"
                         for test in result.unexpectedSuccesses]
    if not result.testsRun:
        verdict.failures.append(f"no test ran in {directory}")
    return verdict
