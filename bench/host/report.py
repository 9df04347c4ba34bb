# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Results as a table for people, and compared with the baseline."""

import counts

COLUMNS = ("row", *counts.PARTS[:-2], "host", "added", "device", "posts", "irqs", "workers",
           "copied")


def cells(name, figures):
    parts = figures["parts"]
    return [name, *(f"{parts[p]:.0f}" for p in counts.PARTS[:-2]),
            f"{figures['host']:.0f}", f"{figures['added']:.0f}", f"{parts['device']:.0f}",
            f"{figures['posts']:.2f}", f"{figures['interrupts']:.2f}",
            f"{figures['workers']:.2f}", f"{figures['copied']:.0f}"]


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |",
             "|---|" + "---:|" * (len(header) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def markdown(result):
    versions = ", ".join(f"{k} {v}" for k, v in result["versions"].items())
    lines = ["# kOFI benchmarks", "",
             f"Instructions for each operation, counted at one side. {versions}.", ""]
    lines += table(COLUMNS, [cells(n, r) for n, r in result["rows"].items()])
    return "\n".join(lines) + "\n"
