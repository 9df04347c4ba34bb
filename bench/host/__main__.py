# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The benchmarks: python3 bench/host run|check|keep|profile|libfabric
(see Documentation/performance.rst)"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import counts
import guest
import libfabric
import logs as all_logs
import report
import rows as all_about_rows
import tree

OUT = guest.TOP / "out" / "bench"
BASELINE = guest.TOP / "bench" / "baseline.json"
PLOT = guest.TOP / "Documentation" / "performance.svg"
VALIDATE = "validate"
MEMORY = ("memory verbs es0", "memory efa es0", "memory rdm es0")
TOLERANCE = 2.0         # percent, of parts to the whole and of loops to their length
AGREE = 1.0             # percent, of two runs


def say(text):
    print(text, flush=True)


def versions(built):
    def first_line(*command):
        return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                              check=True).stdout.splitlines()[0]
    return {"kernel": built.release, "compiler": first_line("gcc", "--version"),
            "qemu": first_line(guest.boots.QEMU, "--version")}


def percent(now, then):
    return 100 * abs(now - then) / then if then else 100 * (now != then)


def off(what, got, wanted):
    """A message if a figure differs from the expected one."""
    if percent(got, wanted) <= TOLERANCE:
        return []
    return [f"{what}: {got} were counted, {wanted} there are"]


class Measurement:
    """One boot."""

    def __init__(self, run, build):
        self.symbols = counts.Symbols(run.lines, build)
        self.windows = counts.read_windows(run.counts, self.symbols)
        self.tests = {}         # command: [(window, ticks)]
        self.memory = {}        # object: bytes
        self.problems = []
        self._read(run.lines)

    def _read(self, lines):
        command = None
        for line in lines:
            test = re.fullmatch(r"test (.*)", line)
            window = re.fullmatch(r"(?:(loop|copy) (\d+) )?window (\d+) (?:spins \d+ )?"
                                  r"ticks (\d+)", line)
            pair = re.fullmatch(r"pair window (\d+)", line)
            bytes_of = re.fullmatch(r"memory (\w+) (-?\d+)", line)
            if bytes_of:
                self.memory[bytes_of[1]] = int(bytes_of[2])
            elif pair:
                found = self.windows[int(pair[1])]
                self.tests[command].append(found)
                if not all_about_rows.both(found, "harness"):
                    self.problems.append(f"{command}: {line}: a cache line that both CPUs "
                                         "wrote wasn't seen")
            elif test:
                command = test[1]
                self.tests[command] = []
            elif window:
                found = self.windows[int(window[3])]
                self.tests[command].append(found)
                self.problems += off(line, found.total, int(window[4]))
                if window[1] == "loop":
                    self.problems += off(line, found.total, int(window[2]))
                elif window[1] == "copy":
                    self.problems += off(line, sum(found.copied.values()), int(window[2]))

    def figures(self, row):
        return all_about_rows.figures(row, self.tests[row.command()])


def measure(rows, logs):
    """Two boots at a time, as neither's clock knows of the other."""
    built = tree.Tree(guest.KERNEL)
    # Memory before the modules that block devices need are loaded.
    last = [row.command() for row in rows if row.is_disk()]
    first = [row.command() for row in rows if not row.is_disk()]
    commands = [VALIDATE, *first, *MEMORY, *last]
    guest.build_plugin(logs)
    say(f"{len(rows)} rows, two boots")

    def boot(name):
        return guest.run_tests(built, commands, logs, name)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = list(pool.map(boot, ("first", "second")))
    measured = [Measurement(run, built.build) for run in runs]
    say(f"{', '.join(f'{run.seconds:.0f} s' for run in runs)}, "
        f"{len(measured[0].windows)} windows each")
    return built, measured


def share(only):
    """Print the cache lines that two CPUs both write, by row."""
    rows = choose(only, all_about_rows.pairs)
    if not rows:
        return {}
    built = tree.Tree(guest.KERNEL)
    logs = all_logs.new_directory("bench")
    guest.build_plugin(logs)
    boot = guest.run_tests(built, [row.command() for row in rows], logs, "pair", pair=True)
    measured = Measurement(boot, built.build)
    for problem in measured.problems:
        raise SystemExit(f"bench: {problem}")
    return {row.name(): all_about_rows.shared(measured.tests[row.command()]) for row in rows}


def merge(rows, runs):
    """Figures of the first run, both runs' where they are compared, and where they agree."""
    merged = {}
    for row in rows:
        figures, _ = runs[0].figures(row)
        other, _ = runs[1].figures(row)
        figures["both"] = {f: (figures[f], other[f]) for f in report.FIGURES}
        figures["agree"] = {f: percent(other[f], figures[f]) <= AGREE for f in report.FIGURES}
        merged[row.name()] = figures
    return merged


def choose(words, rows=all_about_rows.all_rows):
    return [row for row in rows()
            if not words or all(word in row.name().split() for word in words)]


def profile(args):
    """One boot; for each row the functions that an operation's instructions are in.
    EFA_KO is a build of Amazon's driver to use instead of the soft device's verbs."""
    rows = choose(args.only)
    built = tree.Tree(guest.KERNEL)
    logs = all_logs.new_directory("bench")
    guest.build_plugin(logs)
    boot = guest.run_tests(built, [VALIDATE, *(row.command() for row in rows)], logs, "profile",
                           driver=os.environ.get("EFA_KO"))
    measured = Measurement(boot, built.build)
    for row in rows:
        figures, window = measured.figures(row)
        say(f"\n{row.name()}: host {figures['host']}, added {figures['added']}")
        for (part, name, had), insns in window.functions.most_common():
            each = insns / row.batch
            if part in all_about_rows.HOST and each >= 1:
                say(f"{each:9.1f}  {part:9} {name}{' for ' + had if had else ''}")
        for (part, name, had), copied in window.copied.most_common():
            each = copied / row.batch
            if part in all_about_rows.HOST and each >= 1:
                say(f"{each:9.1f}  bytes copied by {name}{' for ' + had if had else ''}")
        for (whose, name, had), locked in window.locked.most_common():
            if whose in all_about_rows.ADDED:
                say(f"{locked / row.batch:9.2f}  locked in {name}{' for ' + had if had else ''}")
    return 0


def results(rows, only=()):
    """Two boots, and one with two CPUs; what came of them, and whether it can be believed."""
    logs = all_logs.new_directory("bench")
    OUT.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    built, runs = measure(rows, logs)
    problems = [p for one in runs for p in one.problems]
    for problem in problems:
        say(f"FAIL {problem}")
    result = {"versions": versions(built), "rows": merge(rows, runs),
              "memory": runs[0].memory, "shared": share(only)}
    (OUT / "bench.json").write_text(json.dumps(result, indent=1) + "\n")
    (OUT / "bench.md").write_text(report.markdown(result))
    report.plot(result, OUT / "bench.svg", logs)
    say("\n".join(report.markdown(result).split("## Rows")[0].splitlines()[5:]))
    repeat = sum(all(r["agree"].values()) for r in result["rows"].values())
    say(f"{len(rows)} rows, {repeat} repeat within {AGREE:.0f} %; "
        f"{time.monotonic() - started:.0f} s; {OUT}/bench.md")
    return result, not problems


def run(args):
    return 0 if results(choose(args.only), args.only)[1] else 1


def check(args):
    """Exit status 3: nothing to compare with on this machine."""
    base = json.loads(BASELINE.read_text())
    here = versions(tree.Tree(guest.KERNEL))
    different = [f"{k} {here[k]}, not {v}" for k, v in base["versions"].items()
                 if here[k] != v]
    if different:
        say(f"skipped: the baseline is another machine's: {'; '.join(different)}")
        return 3
    gone = base["rows"].keys() - {row.name() for row in all_about_rows.all_rows()}
    rows = choose(args.only, all_about_rows.checked)
    result, good = results(rows, args.only)
    off_base, compared = report.regressions(result, base, [row.name() for row in rows])
    off_base += [f"{name}: two CPUs write {found['lines']} cache lines: {found['where']}"
                 for name, found in result["shared"].items() if found["lines"]]
    off_base += [f"{name}: is in the baseline, and isn't measured any more" for name in gone]
    for line in off_base:
        say(f"FAIL {line}")
    say(f"{compared} figures compared with the baseline, {len(off_base)} failures: more than "
        f"{report.LIMIT:.0f} % above it, far below, or missing")
    return 0 if good and compared and not off_base else 1


def keep(_):
    """The last result becomes the baseline; rows that it lacks stay as they were. The plot takes
    all rows."""
    result = json.loads((OUT / "bench.json").read_text())
    base = report.baseline(result, json.loads(BASELINE.read_text()))
    names = [row.name() for row in all_about_rows.all_rows()]
    base["rows"] = {name: base["rows"][name] for name in names if name in base["rows"]}
    BASELINE.write_text(json.dumps(base, indent=1) + "\n")
    say(f"{BASELINE}")
    if result["rows"].keys() >= set(names):
        shutil.copy(OUT / "bench.svg", PLOT)
        say(f"{PLOT}")
    return 0


def cost_of_libfabric(_):
    """One boot."""
    lines = libfabric.table(libfabric.measure(all_logs.new_directory("bench")))
    header = ("libfabric", "", "bytes", "user", "of libraries", "kernel", "calls", "faults")
    text = "\n".join(report.table(header, [[*line[:3], *(f"{n:.0f}" for n in line[3:6]),
                                            *(f"{n:.2f}" for n in line[6:])]
                                           for line in lines]))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "libfabric.md").write_text(text)
    say(text)
    return 0


COMMANDS = {"run": run, "check": check, "keep": keep, "profile": profile,
            "libfabric": cost_of_libfabric}


def arguments():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in COMMANDS:
        command = commands.add_parser(name)
        command.add_argument("only", nargs="*", help="words that the name of a row must have")
    return parser.parse_args()


def main():
    with tempfile.TemporaryDirectory(prefix="kofi-") as tempfile.tempdir:
        args = arguments()
        try:
            return COMMANDS[args.command](args)
        except tree.Unavailable as reason:
            say(f"the benchmarks can't run: {reason}")
            return 1


sys.exit(main())
