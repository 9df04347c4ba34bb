#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""man_calls.py KERNEL-DOC DIR: writes a manual page for each public call to DIR.

The public calls are those that Documentation/api shows and a header of include/kofi declares.
The section is 3kofi, because libfabric's pages of the same names are in section 3.
"""

import os
import re
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
API = os.path.join(TOP, "Documentation", "api")
SHOWN = re.compile(r"^\.\. kernel-doc:: (\S+)((?:\n +\S.*)*)", re.M)


def declared():
    """The text of all public headers."""
    headers = os.path.join(TOP, "include", "kofi")
    return "".join(open(os.path.join(headers, name), encoding="utf-8").read()
                   for name in sorted(os.listdir(headers)))


def public():
    """(file, names) of Documentation/api; no names stand for all of a header."""
    for page in sorted(os.listdir(API)):
        with open(os.path.join(API, page), encoding="utf-8") as file:
            for m in SHOWN.finditer(file.read()):
                names = re.search(r":identifiers:((?:.|\n)*)", m[2])
                yield m[1], names[1].split() if names else []


def pages(kernel_doc, path, names):
    """(name, text) of each function's page."""
    args = [arg for name in names for arg in ("-function", name)]
    made = subprocess.run(["perl", kernel_doc, "-man", *args, os.path.join(TOP, path)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    for text in re.split(r"(?m)^(?=\.TH )", made.stdout):
        name = re.match(r'\.TH "(\w+)" 9 ', text)
        # Structures and enumerations have pages, too, with a title of two words.
        if name and re.search(r'^\.BI? "\(', text, re.M):
            yield name[1], re.sub(r"^\.TH.*", f'.TH "{name[1]}" 3kofi "" "" "kOFI"', text, count=1)


def main():
    kernel_doc, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    written, headers = 0, declared()
    for path, names in public():
        for name, text in pages(kernel_doc, path, names):
            if name.endswith("_t") or name.isupper() or not re.search(rf"\b{name}\(", headers):
                continue
            with open(os.path.join(out, f"{name}.3kofi"), "w", encoding="utf-8") as file:
                file.write('.\\" SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause\n' + text)
            written += 1
    if not written:
        sys.exit(f"{kernel_doc} wrote no page")


if __name__ == "__main__":
    main()
