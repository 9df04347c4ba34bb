#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A core that is no longer thin, files past 800 lines, functions past 80.

The core is what is in kofi/, with the queues that providers share. Counted are
lines with code on them. Prints their number on success, which check.sh shows.
"""

import sys

import tree

FILE_LINES = 800
FUNCTION_LINES = 80
CORE_LINES = 3100


def code_lines(text):
    return sum(1 for line in tree.strip(text).splitlines() if line.strip())


def check(top, report):
    core = 0
    for path in tree.files(top, ".c", ".h"):
        text = tree.read(top, path)
        lines = text.count("\n")
        if path.startswith("kofi/") and path.endswith(".c"):
            core += code_lines(text)
        if lines > FILE_LINES:
            report.add(path, 0, f"{lines} lines, {FILE_LINES} are the limit")
        for item in tree.items(text):
            if item.kind == "function" and item.length > FUNCTION_LINES:
                report.add(path, item.line, f"{item.name}() has {item.length} lines, "
                                            f"{FUNCTION_LINES} are the limit")
    if core > CORE_LINES:
        report.add("kofi/**.c", 0, f"{core} lines of code, {CORE_LINES} are the limit")
    return f"core: {core} lines of code"


if __name__ == "__main__":
    out = tree.Report()
    print(check(sys.argv[1] if len(sys.argv) > 1 else tree.TOP, out))
    out.finish()
