#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Files that grew past 800 lines and functions that grew past 80.

Prints the size of the core on success, which check.sh shows.
"""

import sys

import tree

FILE_LINES = 800
FUNCTION_LINES = 80


def check(top, report):
    core = files = 0
    for path in tree.files(top, ".c", ".h"):
        text = tree.read(top, path)
        lines = text.count("\n")
        if path.startswith("kofi/") and path.endswith(".c"):
            core, files = core + lines, files + 1
        if lines > FILE_LINES:
            report.add(path, 0, f"{lines} lines, {FILE_LINES} are the limit")
        for item in tree.items(text):
            if item.kind == "function" and item.length > FUNCTION_LINES:
                report.add(path, item.line, f"{item.name}() has {item.length} lines, "
                                            f"{FUNCTION_LINES} are the limit")
    return f"core: {core} lines in {files} files"


if __name__ == "__main__":
    out = tree.Report()
    print(check(sys.argv[1] if len(sys.argv) > 1 else tree.TOP, out))
    out.finish()
