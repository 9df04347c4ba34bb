# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Decides from the output of a guest which tests passed or failed.

Nothing here accesses a guest: the input is an Outcome, so recorded ones can be
judged as well.
"""

import dataclasses
import io
import re
import signal
import sys

# Lines of the console that no healthy kernel prints.
SPLAT = re.compile(
    r"\bBUG\b|WARNING: |Oops: |KASAN: |KCSAN: |UBSAN: |Kernel panic"
    r"|possible (circular|recursive) locking|possible irq lock inversion"
    r"|inconsistent lock state|suspicious RCU usage|Invalid wait context"
    r"|bad unlock balance|unreferenced object|new suspected memory leaks"
    r"|rcu.* (stall|detected)|soft lockup"
    r"|workqueue lockup|blocked for more than|general protection fault"
    r"|DMA-API: .*(driver|out of memory|overlapping|mapped)"
    r"|cannot create duplicate|already present!|ODEBUG: |refcount_t: "
    r"|Unknown symbol|disagrees about version|scheduling while atomic"
    r"|unregister_netdevice: waiting|: nobody cared|Out of memory: Killed"
    r"|printk messages dropped")

# Messages that init writes to the kernel's log. If one is missing, others may be, too.
MILESTONES = ("bed: up", "bed: done")

# The shell's message about an unknown command, after which a test continues.
NOT_THERE = re.compile(r"(sh|/\S+): (line \d+: )?\S+: not found")

TIMESTAMP = re.compile(r"^\[ *[0-9.]+\] ")
MAX_SPLATS = 12

# Bits of /proc/sys/kernel/tainted. Out-of-tree, unsigned and test modules
# taint as well and are fine.
TAINTS = {1: "forced module load", 3: "forced module unload", 4: "machine check",
          5: "bad page or KASAN report", 7: "oops", 9: "warning", 14: "soft lockup"}

EXIT_DONE = 41          # (20 << 1) | 1, see init
EXIT_TIMEOUT = 5        # (2 << 1) | 1


@dataclasses.dataclass
class Verdict:
    """The number of passed checks, and a line for each failure."""
    passed: int = 0
    failures: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)

    def check(self, problems):
        """Count one check, which passes without problems."""
        if problems:
            self.failures += problems
        else:
            self.passed += 1

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.notes += other.notes


class Kunit:
    """The kernel's own KTAP parser."""

    def __init__(self, source):
        sys.path.insert(0, str(source / "tools" / "testing" / "kunit"))
        import kunit_parser             # pylint: disable=import-outside-toplevel
        import kunit_printer            # pylint: disable=import-outside-toplevel
        self.parser, self.printer = kunit_parser, kunit_printer

    def parse(self, lines):
        """Return the parser's Test tree and its output."""
        shown = io.StringIO()
        self.parser.stdout = self.printer.Printer(shown)
        return self.parser.parse_run_tests(lines), shown.getvalue()

    def failed_cases(self, test, path=()):
        """The cases that didn't pass, as "suite.case (why)", without the suites above them."""
        failed = [name for sub in test.subtests
                  for name in self.failed_cases(sub, (*path, sub.name))]
        if failed or test.status == self.parser.TestStatus.SUCCESS:
            return failed
        name = ".".join(path) or test.name
        return [f"{name} ({test.status.name.lower().replace('_', ' ')})"]


def judge_suite(kunit, name, lines, log):
    """Judge a suite's results, as read from the kernel's debugfs."""
    verdict = Verdict()
    test, shown = kunit.parse(lines)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(shown)
    counts = test.counts
    verdict.passed += counts.passed
    verdict.failures += kunit.failed_cases(test)
    if counts.errors:
        verdict.failures.append(f"{name}: {counts.errors} errors in its KTAP")
    if not counts.total():
        verdict.failures.append(f"{name}: no test case ran")
    if lines and lines[-1] == "@@cut":
        verdict.failures.append(f"{name}: results are cut off")
    if not verdict.failures:
        verdict.notes.append(f"{name}: {counts.passed} cases")
    return verdict


def judge_suites(kunit, outcome, listed):
    verdict = Verdict()
    ran = {name.removeprefix("kunit/"): lines
           for name, lines in outcome.sections.items() if name.startswith("kunit/")}
    for name, lines in ran.items():
        verdict.add(judge_suite(kunit, name, lines, outcome.log / f"{name}.parsed"))
    verdict.failures += [f"{name}: listed, but did not run"
                         for name in listed if name not in ran]
    verdict.failures += [f"{name}: ran, but is not listed in tests/qemu/suites"
                         for name in ran if name not in listed]
    verdict.failures += judge_load(outcome.sections.get("load"))
    return verdict


def judge_load(lines):
    if lines is None:
        return ["suites were not loaded"]
    return ["the guest ended while suites ran" if line == "@@cut" else line
            for line in lines]


def judge_said(name, lines):
    """Judge the TAP lines among the output of a guest test."""
    verdict = Verdict()
    for line in lines:
        if re.match(r"ok\b.*# *SKIP", line, re.I):
            verdict.failures.append(f"{name}: skipped: {line}")
        elif re.match(r"ok\b", line):
            verdict.passed += 1
        elif re.match(r"not ok\b", line) or NOT_THERE.fullmatch(line):
            verdict.failures.append(f"{name}: {line}")
    return verdict


def judge_test(name, lines):
    """Judge a guest test's output."""
    if lines is None:
        return Verdict(failures=[f"{name}: did not run"])
    verdict = judge_said(name, lines)
    if not verdict.passed and not verdict.failures:
        verdict.failures.append(f"{name}: no result")
    status = lines[-1] if lines else "@@cut"
    if status == "@@cut":
        verdict.failures.append(f"{name}: did not end")
    elif status != "# status 0":
        verdict.failures.append(f"{name}: exited with {status.removeprefix('# ')}")
    if not verdict.failures:
        verdict.notes.append(f"{name}: {verdict.passed} ok")
    return verdict


def judge_state(where, lines, debug_kernel):
    """Check taints, lockdep and fault knobs at one point of time."""
    if lines is None:
        return [f"{where}: state not reported"]
    state = dict(line.split(" ", 1) for line in lines if " " in line)
    problems = []
    tainted = int(state.get("tainted", "-1"))
    for bit, what in TAINTS.items():
        if tainted < 0 or tainted & 1 << bit:
            problems.append(f"{where}: tainted, {what} (bit {bit})")
    if debug_kernel and state.get("debug_locks") != "1":
        problems.append(f"{where}: lockdep is off, it found something")
    for line in lines:
        if line.startswith("fault "):
            _, knob, times = line.split()
            problems.append(f"{where}: fault knob {knob} was left on"
                            f"{' and injected nothing' if times == '1000000' else ''}")
        elif not line.startswith(("tainted ", "debug_locks ")):
            problems.append(f"{where}: said by something else: {line}")
    return problems


def judge_leaks(where, lines):
    if lines is None or "scanned" not in lines:
        return [f"{where}: memory was not scanned for leaks ({' '.join(lines or [])})"]
    found = sum(line.startswith("unreferenced object") for line in lines)
    return [f"{where}: {found} leaked objects"] if found else []


def judge_unload(where, lines):
    if lines is None:
        return [f"{where}: modules were not unloaded"]
    return [f"{where}: {line}" for line in lines]


def judge_strays(sections):
    """Output outside of all tests, as of a job that outlives its test, is a failure."""
    return [f"outside of all sections: {line}" for line in sections.get("", [])]


def judge_console(console):
    """Find the first splats on the console."""
    splats = []
    for line in console.splitlines():
        if SPLAT.search(line):
            splat = "console: " + TIMESTAMP.sub("", line).strip()
            if splat not in splats:
                splats.append(splat)
    return splats[:MAX_SPLATS]


def judge_milestones(console):
    """Check that the console output is complete."""
    return [f"the console is cut off: {line!r} isn't there"
            for line in MILESTONES if line not in console]


def judge_exit(status, boot):
    if status == EXIT_DONE:
        return []
    if status is None:
        return [f"guest was dead: killed after {boot.timeout + boot.grace} s"]
    if status == EXIT_TIMEOUT:
        return [f"timeout: no end after {boot.timeout} s"]
    if status < 0:
        return [f"QEMU was ended by signal {-status} ({signal.strsignal(-status)})"]
    return [f"guest crashed: QEMU exited with status {status}"]


def judge_kernel(outcome):
    """Judge a guest, except the results of its tests."""
    boot, sections = outcome.boot, outcome.sections
    debug_kernel = boot.kernel == "test"
    verdict = Verdict()
    verdict.check(judge_exit(outcome.status, boot))
    verdict.check(judge_console(outcome.console))
    verdict.check(judge_strays(sections))
    if outcome.status != EXIT_DONE:
        return verdict          # the rest is missing for the same reason
    verdict.check(judge_milestones(outcome.console))
    for name in boot.tests:
        verdict.check(judge_state(name, sections.get(f"state/{name}"), debug_kernel))
        verdict.check(judge_unload(name, sections.get(f"unload/{name}")))
    verdict.check(judge_state("at the end", sections.get("state/end"), debug_kernel))
    verdict.check(judge_unload("at the end", sections.get("unload/end")))
    verdict.check(judge_state("after unloading", sections.get("state/unloaded"),
                              debug_kernel))
    if boot.kmemleak:
        verdict.check(judge_leaks("after unloading", sections.get("leaks")))
    if "end" not in sections:
        verdict.failures.append("the guest left without saying that it was done")
    return verdict


def judge_killed(outcome):
    """Judge the output of a life up to the kill that a test requested."""
    verdict = Verdict()
    for name in outcome.boot.tests:
        verdict.add(judge_said(name, outcome.sections.get(f"guest/{name}", [])))
    verdict.check(judge_console(outcome.console))
    verdict.check(judge_strays(outcome.sections))
    return verdict


def judge(kunit, outcome, listed):
    """Judge one guest."""
    if outcome.killed:
        return judge_killed(outcome)
    verdict = Verdict()
    if outcome.boot.suites:
        verdict.add(judge_suites(kunit, outcome, listed))
    for name in outcome.boot.tests:
        verdict.add(judge_test(name, outcome.sections.get(f"guest/{name}")))
    verdict.add(judge_kernel(outcome))
    return verdict
