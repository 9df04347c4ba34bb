# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Figures of bench/baseline.json: :bench:`ROW` is the number of instructions that kOFI adds, and
:bench:`ROW / N` that number divided by N. A row that isn't there, or without it, is an error."""

import json
import os
import re

from docutils import nodes

BASELINE = os.path.abspath("../bench/baseline.json")


def bench(name, rawtext, text, lineno, inliner, options=None, content=None):
    inliner.document.settings.env.note_dependency(BASELINE)
    with open(BASELINE, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    row, divisor = re.fullmatch(r"(.*?)(?: / (\d+))?", text, re.S).groups()
    added = rows.get(row, {}).get("added")
    if added is None:
        message = inliner.reporter.error(f"bench/baseline.json has no row {row}", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    return [nodes.Text(f"{added / int(divisor or 1):.0f}")], []


def setup(app):
    app.add_role("bench", bench)
    return {"parallel_read_safe": True}
