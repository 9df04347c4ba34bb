#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Everything public has kernel-doc that says where it may be called.

kernel-doc -Wall checks the comments that are there: parameters, members, return
values. This finds those that are missing: on what include/kofi declares and on
what any module exports, with `Context:` and, unless void, `Return:`.
"""

import re
import sys

import tree

PUBLIC = "include/kofi/"


def is_void(head):
    return re.search(r"\bvoid\s+\w+\s*\(", head) is not None


def check_function(report, path, item, docs):
    # The kernel-doc of fi_send() also documents kofi_req_send(), its form for providers.
    doc = item.doc or docs.get(item.name.replace("kofi_req_", "fi_", 1), "")
    if not doc:
        report.add(path, item.line, f"{item.name}() has no kernel-doc")
        return
    if "Context:" not in doc:
        report.add(path, item.line, f"{item.name}(): kernel-doc without Context:")
    if "Return:" not in doc and not is_void(item.head):
        report.add(path, item.line, f"{item.name}(): kernel-doc without Return:")


def check(top, report):
    texts = {p: tree.read(top, p) for p in tree.files(top, ".c", ".h")
             if not p.startswith("tests/")}
    parsed = {p: tree.items(t) for p, t in texts.items()}
    # A function's comment may stand at either of its two places.
    docs, heads = {}, {}
    for path, found in parsed.items():
        for item in found:
            if item.kind in ("function", "prototype"):
                if item.doc:
                    docs[item.name] = item.doc
                if item.kind == "function" or item.name not in heads:
                    heads[item.name] = (path, item)

    seen = set()
    for path, found in parsed.items():
        if not path.startswith(PUBLIC):
            continue
        for item in found:
            if item.kind == "type" and not item.doc:
                report.add(path, item.line, f"{item.name} has no kernel-doc")
            elif item.kind in ("function", "prototype"):
                check_function(report, path, item, docs)
                seen.add(item.name)

    for path, text in texts.items():
        for line, macro, symbol, _ in tree.exports(text):
            if macro == "EXPORT_SYMBOL_IF_KUNIT" or symbol in seen:
                continue
            if symbol in heads:
                check_function(report, *heads[symbol], docs)
    return f"{len(seen)} public functions"


if __name__ == "__main__":
    out = tree.Report()
    print(check(sys.argv[1] if len(sys.argv) > 1 else tree.TOP, out))
    out.finish()
