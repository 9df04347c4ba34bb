#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A core that is no longer thin, files past 800 lines, functions past 80.

The core is what is directly in kofi/; the queues that providers share have a
directory of their own. Counted are lines with code on them. Prints both on
success, which check.sh shows.
"""

import os
import sys

import tree

FILE_LINES = 800
FUNCTION_LINES = 80
# Room for a call or two more.
CORE_LINES = 2400


def code_lines(text):
    return sum(1 for line in tree.strip(text).splitlines() if line.strip())


def check(top, report):
    parts = {"kofi": 0, "kofi/queue": 0}
    for path in tree.files(top, ".c", ".h"):
        text = tree.read(top, path)
        lines = text.count("\n")
        where = os.path.dirname(path)
        if where in parts and path.endswith(".c"):
            parts[where] += code_lines(text)
        if lines > FILE_LINES:
            report.add(path, 0, f"{lines} lines, {FILE_LINES} are the limit")
        for item in tree.items(text):
            if item.kind == "function" and item.length > FUNCTION_LINES:
                report.add(path, item.line, f"{item.name}() has {item.length} lines, "
                                            f"{FUNCTION_LINES} are the limit")
    if parts["kofi"] > CORE_LINES:
        report.add("kofi/*.c", 0, f"{parts['kofi']} lines of code, "
                                  f"{CORE_LINES} are the limit")
    return f"core: {parts['kofi']} lines of code, and {parts['kofi/queue']} of its queues"


if __name__ == "__main__":
    out = tree.Report()
    print(check(sys.argv[1] if len(sys.argv) > 1 else tree.TOP, out))
    out.finish()
