# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The test bed: python3 tests/qemu/bed check|demo|shell (see Documentation/testing.rst)"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

import boot as boots
import logs
import plan
import selftest
import shell
import tree
import verdict as judges

class Report:
    """The lines on the terminal, and the counts. Used by several threads."""

    def __init__(self, directory, verbose):
        self.logs, self.verbose = directory, verbose
        self.lock = threading.Lock()
        self.passed, self.failed, self.skipped = 0, 0, []

    def add(self, name, verdict, seconds=0.0, log=None):
        with self.lock:
            self.passed += verdict.passed
            self.failed += len(verdict.failures)
            state = "FAIL" if verdict.failures else "PASS"
            say(f"{state} {name}: {verdict.passed} passed, "
                f"{len(verdict.failures)} failed, {seconds:.0f} s")
            for note in verdict.notes:
                say(f"     {note}")
            for failure in verdict.failures:
                say(f"     FAIL {failure}")
            if verdict.failures and log:
                say(f"     logs in {log}")
            if self.verbose and log:
                for path in sorted(log.rglob("*.parsed")):
                    say(path.read_text())

    def skip(self, name, reason):
        self.skipped.append(f"SKIP {name}: {reason}")

    def end(self):
        """Print the summary, whose last line is the result."""
        for line in self.skipped:
            say(line)
        say(f"logs: {self.logs}")
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        say(f"{self.passed} passed, {self.failed} failed{skipped}")
        return 1 if self.failed or not self.passed else 0


def say(text):
    print(text, flush=True)


class Check:
    """make check"""

    def __init__(self, args):
        self.args = args
        self.report = Report(logs.new_directory("log"), args.verbose)
        self.trees = {}
        self.unavailable = {}
        self.kunit = judges.Kunit(tree.script("kernel.sh", "source"))
        self.parser_lock = threading.Lock()

    def wanted(self, name, level="check"):
        return (plan.runs(level, self.args.level, self.args.only)
                and (not self.args.only or name in self.args.only))

    def tree_for(self, kernel):
        if kernel in self.unavailable:
            raise self.unavailable[kernel]
        if kernel not in self.trees:
            say(f"building the modules for {kernel}")
            try:
                self.trees[kernel] = tree.Tree(kernel)
            except tree.Unavailable as reason:
                self.unavailable[kernel] = reason
                raise
        return self.trees[kernel]

    def guest_boots(self):
        """The boots of tests that this machine can run; the others are skipped."""
        tests = []
        for test in plan.guest_tests(self.args.level, self.args.only):
            kernel = test.needs.kernel
            try:
                plan.require_tools(test)
                plan.require_programs(test)
                plan.require_blktests(test)
                plan.require_driver(test, self.tree_for(kernel).release)
                tests.append(test)
            except tree.Unavailable as reason:
                self.report.skip(f"{test.name} on {kernel}", reason)
        return plan.guest_boots(tests, self.args.level)

    def jobs(self):
        """(boot, function that judges its outcomes)"""
        listed = plan.listed_suites()
        jobs = []
        for candidate, expected in selftest.BOOTS:
            if self.wanted(candidate.name, candidate.level):
                jobs.append((candidate, lambda outcomes, c=candidate, e=expected:
                             self.judge_selftest(c, e, outcomes)))
        for candidate in plan.suite_boots(self.tree_for("test"), self.args.level,
                                          self.args.only):
            jobs.append((candidate, lambda outcomes, c=candidate:
                         self.judge(outcomes, plan.suites_of(c.name, listed))))
        jobs += [(candidate, lambda outcomes: self.judge(outcomes, []))
                 for candidate in self.guest_boots()]
        order = [boot.name for boot in plan.in_turn([boot for boot, _ in jobs])]
        return sorted(jobs, key=lambda job: order.index(job[0].name))

    def judge(self, outcomes, listed):
        total = judges.Verdict()
        with self.parser_lock:
            for outcome in outcomes:
                verdict = judges.judge(self.kunit, outcome, listed)
                if len(outcomes) > 1:
                    verdict.failures = [f"guest {outcome.name}: {f}" for f in verdict.failures]
                total.add(verdict)
        return total

    def judge_selftest(self, candidate, expected, outcomes):
        return selftest.judge(candidate.name, expected,
                              self.judge(outcomes, selftest.LISTED).failures)

    def run_job(self, job, held):
        candidate, judge = job
        log = self.report.logs / candidate.name
        try:
            with held:
                outcomes = boots.run_now(candidate, self.trees, self.report.logs)
            verdict = judge(outcomes)
            seconds = max(o.seconds for o in outcomes)
        except (Exception, SystemExit):     # pylint: disable=broad-except
            # A bug of the bed, and a script that fails, is a failure of the run, never a pass.
            verdict = judges.Verdict(failures=[traceback.format_exc()])
            seconds = 0.0
        self.report.add(candidate.name, verdict, seconds, log)

    def run(self):
        started = time.monotonic()
        jobs = self.jobs()
        for name in plan.unknown(self.args.only, self.args.level, [b.name for b, _ in jobs]):
            self.report.add(name, judges.Verdict(failures=[
                f"nothing that runs at level {self.args.level} has this name"]))
        for name, directory in plan.UNITTESTS.items():
            if self.wanted(name):
                self.report.add(name, selftest.judge_unittests(directory))
        say(f"{len(jobs)} boots, logs in {self.report.logs}")
        boots.run_all(jobs, self.run_job)
        say(f"{time.monotonic() - started:.0f} s for building and booting")
        return self.report.end()


def terminate(number, _):
    """Nothing is left behind: no guest, no build, no file."""
    boots.kill_all()
    tree.kill_all()
    shutil.rmtree(tempfile.tempdir, ignore_errors=True)
    os._exit(128 + number)


def arguments():
    parser = argparse.ArgumentParser(prog="bed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check")
    check.add_argument("--level", default="check", choices=plan.LEVELS,
                       help="what check leaves out, or all and the long tests")
    check.add_argument("--verbose", action="store_true", help="every case of every suite")
    check.add_argument("only", nargs="*", help="boots (kunit, selftest-bugs, ...) or guest tests")
    demo = commands.add_parser("demo")
    demo.add_argument("--kernel", default="stock-6.12", choices=plan.KERNELS)
    demo.add_argument("name", nargs="?", default="demo", choices=plan.DEMOS)
    guest = commands.add_parser("shell")
    guest.add_argument("--kernel", default="test", choices=plan.KERNELS)
    guest.add_argument("--role", default="", choices=("", "a", "b"))
    guest.add_argument("--gdb", action="store_true", help="listen on port 1234")
    return parser.parse_args()


def run(args):
    if args.command == "check":
        return Check(args).run()
    if args.command == "demo":
        return shell.demo(args, logs.new_directory("log"))
    return shell.shell(args)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="kofi-") as tempfile.tempdir:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, terminate)
        return run(args)


sys.exit(main())
