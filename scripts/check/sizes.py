#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Limits of sizes: of the core, of files (1,000 lines) and of functions (80 lines).

The core is the code in kofi/, including the queues that providers share. Only lines
with code count. Prints their number on success, which check.sh shows. Matching is
counted separately: it is a helper for providers that match in software, and the core
itself doesn't call it. So are atomic operations, and so is what ULPs share, which is
a module of its own.
"""

import sys

import tree

FILE_LINES = 1000
FILE_LINES_GOOD = 800
FUNCTION_LINES = 80
# The longest directory that a file is in counts.
CODE_LINES = {"kofi/": 3532, "kofi/match/": 500, "kofi/atomic/": 500, "kofi/connect/": 300,
              "ulp/lib/": 1500}


def code_lines(text):
    return sum(1 for line in tree.strip(text).splitlines() if line.strip())


def check(top, report):
    code = dict.fromkeys(CODE_LINES, 0)
    for path in tree.files(top, ".c", ".h"):
        text = tree.read(top, path)
        lines = text.count("\n")
        part = max((d for d in CODE_LINES if path.startswith(d)), key=len, default=None)
        if part and path.endswith(".c"):
            code[part] += code_lines(text)
        if lines > FILE_LINES:
            report.add(path, 0, f"{lines} lines, {FILE_LINES} are the limit")
        elif lines > FILE_LINES_GOOD:
            print(f"warning: {path}: {lines} lines; is it more than one subject?")
        for item in tree.items(text):
            if item.kind == "function" and item.length > FUNCTION_LINES:
                report.add(path, item.line, f"{item.name}() has {item.length} lines, "
                                            f"{FUNCTION_LINES} are the limit")
    for part, limit in CODE_LINES.items():
        if code[part] > limit:
            report.add(f"{part}**.c", 0, f"{code[part]} lines of code, {limit} are the limit")
    return (f"core: {code['kofi/']} lines of code, matching: {code['kofi/match/']}, "
            f"atomics: {code['kofi/atomic/']}, ULPs: {code['ulp/lib/']}")


if __name__ == "__main__":
    out = tree.Report()
    print(check(sys.argv[1] if len(sys.argv) > 1 else tree.TOP, out))
    out.finish()
