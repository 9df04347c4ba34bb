#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table of libfabric's variables and options in kofi_efa(7), made from efa-knobs.txt.

  knobs.py write    writes the table
  knobs.py          checks it, and that its parameters and tests exist
"""

import re
import sys

import tree

SOURCE = "Documentation/man/efa-knobs.txt"
PAGE = "Documentation/man/kofi_efa.7.rst"
BEGIN, END = ".. From efa-knobs.txt, by scripts/check/knobs.py:\n", ".. End of what was made.\n"
COLUMNS = ("here", "default", "when", "effect")


def entries(top):
    """(name, fields) of each paragraph."""
    text = re.sub(r"(?m)^#.*\n", "", tree.read(top, SOURCE))
    for part in text.strip().split("\n\n"):
        name, *lines = part.splitlines()
        yield name, dict(line.split(": ", 1) for line in lines)


def table(rows, widths, heads):
    out = f".. list-table::\n   :header-rows: 1\n   :widths: {widths}\n\n"
    for row in [heads] + rows:
        out += "".join(f"   {'*' if not n else ' '} - {cell}\n" for n, cell in enumerate(row))
    return out


def made(top):
    known = list(entries(top))
    have = [(f"``{name}``",) + tuple(f[c] for c in COLUMNS) for name, f in known if "none" not in f]
    none = [(f"``{name}``", f["none"]) for name, f in known if "none" in f]
    return (table(have, "30 20 18 14 18",
                  ("fi_efa(7)", "Here", "Default; values", "To be set", "Effect")) +
            "\nThese don't exist here:\n\n" + table(none, "40 60", ("fi_efa(7)", "Because")))


def check(top, report):
    """The page is up to date, and each row has a parameter and tests that exist."""
    page = tree.read(top, PAGE)
    if page.split(BEGIN)[1].split(END)[0] != "\n" + made(top) + "\n":
        report.add(PAGE, 0, f"isn't what {SOURCE} says: run scripts/check/knobs.py write")
    code = "".join(tree.read(top, f) for f in tree.files(top, ".c") if f.startswith("prov/efa/"))
    params = set(re.findall(r"^module_param\w*\((\w+)", code, re.M))
    cases = set()
    for path in tree.files(top, "_kunit.c"):
        text = tree.read(top, path)
        for suite in re.findall(r'\.name\s*= "(\w+)",\n\t\.(?:\w+\s*= \w+,\n\t\.)*test_cases', text):
            cases |= {f"{suite}.{case}" for case in re.findall(r"KUNIT_CASE\w*\((\w+)", text)}
    for name, fields in entries(top):
        for param in set(re.findall(r"parameter (\w+)", fields.get("here", ""))) - params:
            report.add(SOURCE, 0, f"{name}: there is no parameter {param}")
        for case in fields.get("test", "" if "none" in fields else "?").split():
            if case not in cases:
                report.add(SOURCE, 0, f"{name}: there is no test {case}")


def write(top):
    head, _, rest = tree.read(top, PAGE).partition(BEGIN)
    with open(f"{top}/{PAGE}", "w", encoding="utf-8") as f:
        f.write(head + BEGIN + "\n" + made(top) + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    out = tree.Report()
    if sys.argv[1:] == ["write"]:
        write(tree.TOP)
    else:
        check(tree.TOP, out)
    out.finish()
