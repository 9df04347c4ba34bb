# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Results as tables and a plot for people, and compared with a baseline."""

import subprocess

import counts
import rows

COLUMNS = ("row", *counts.HOST, "host", "added", "over", "locked", "device", "posts", "irqs",
           "workers", "copied")
DISK_PARTS = ("ulp", *counts.BLOCK, *counts.HOST[1:])
DISK_COLUMNS = ("row", *DISK_PARTS, "whole", "at most", "after", "added", "device", "posts",
                "irqs", "workers", "copied")
LIMIT = 3.0             # percent, of what a row may grow
LEAST = 0.5             # of what it was: less isn't thrift, but counted elsewhere
FIGURES = ("added", "host", "workers")

# (what, row, instructions over verbs at most)
TARGETS = [(kind, f"{kind} {size} polled", 300) for kind, size in (
    ("send", "8B"), ("send", "1KiB"), ("recv", "8B"), ("recv", "1KiB"), ("write", "4KiB"),
    ("read", "4KiB"))] + [("reg", "reg 4KiB polled", 400), ("inv", "inv 4KiB polled", 400)]

# Instructions of both ends at most, without *after*.
DISK_TARGETS = {"kofiblk read 4KiB depth=32": 12200, "kofiblk write 4KiB depth=32": 13300,
                "kofiblk read 128KiB depth=32": 30000, "kofiblk write 128KiB depth=32": 32000,
                "kofiblk read 4KiB depth=1": 28000, "kofiblk-polled read 4KiB depth=1": 22000,
                "nvme-rdma read 4KiB depth=32": 28000, "nvme-rdma read 128KiB depth=32": 125000}


def table(header, lines):
    head = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return head + ["| " + " | ".join(str(c) for c in line) + " |" for line in lines] + [""]


def over(result, name):
    """Instructions of a row's ULP and kOFI beyond those of the ULP on verbs for the same work."""
    plain = result["rows"].get(name.replace("efa ", "verbs ", 1).replace("msg ", " ", 1))
    mine = result["rows"][name]
    if not name.startswith("efa ") or not plain:
        return None
    return mine["parts"]["ulp"] + mine["added"] - plain["parts"]["ulp"]


def number(value):
    return "" if value is None else f"{value:.0f}"


def is_disk(name):
    return name.split()[0] in (*rows.DISKS, rows.RDM_DISK, rows.POLLED_DISK)


def last_cells(figures):
    return [number(figures["parts"]["device"]), f"{figures['posts']:.2f}",
            f"{figures['interrupts']:.2f}", f"{figures['workers']:.2f}",
            number(figures["copied"])]


def row_cells(result, name, figures):
    parts = figures["parts"]
    return [name, *(number(parts[p]) for p in counts.HOST), number(figures["host"]),
            number(figures["added"]), number(over(result, name)), f"{figures['locked']:.2f}",
            *last_cells(figures)]


def disk_cells(name, figures):
    parts = figures["parts"]
    return [name, *(number(parts[p]) for p in DISK_PARTS), number(figures["host"]),
            number(DISK_TARGETS.get(name)), number(figures["after"]),
            number(figures["added"]), *last_cells(figures)]


def targets(result):
    for _, row, most in TARGETS:
        name = f"efa {row}"
        if name in result["rows"]:
            figures = result["rows"][name]
            yield [name, number(figures["added"]), number(over(result, name)), most]


def batches(result):
    """Cost of a batch besides its operations: from batches of one and of more."""
    for kind, size in rows.SINGLE:
        for mode in rows.MODES:
            for ulp in ("verbs", "efa"):
                name = f"{ulp} {kind} {rows.size_name(size)} {mode}"
                one = result["rows"].get(f"{name} single")
                many = result["rows"].get(name)
                if not one or not many:
                    continue
                cells = [name]
                for figure, show in (("host", number), ("added", number),
                                     ("locked", "{:.1f}".format)):
                    batch = (one[figure] - many[figure]) * rows.BATCH / (rows.BATCH - 1)
                    cells += [show(batch), show(one[figure] - batch)]
                yield cells


def memory(result):
    """Bytes; those of the device's driver and of the soft device taken off."""
    m = result["memory"]
    if not m:
        return
    deep, shallow = m["endpoint512"] - m["qp512"], m["endpoint64"] - m["qp64"]
    yield ["endpoint, 512 sends and receives", m["endpoint512"], deep]
    yield ["endpoint, 64 sends and receives", m["endpoint64"], shallow]
    # Interpolate the size of a queue pair whose depth isn't one of the two measured.
    rdm = m["rdm256"] - (m["qp64"] * (512 - 256) + m["qp512"] * (256 - 64)) // (512 - 64)
    yield ["endpoint of fabric efa, 256 sends and receives", m["rdm256"], rdm]
    yield ["operation", "", (deep - shallow) // (2 * (512 - 64))]
    yield ["domain, with its queue pair for registrations", m["domain"], ""]
    yield ["address, with the indices", m["address"], m["address"]]


def markdown(result):
    versions = ", ".join(f"{k} {v}" for k, v in result["versions"].items())
    lines = ["# kOFI benchmarks", "",
             "Instructions for each operation, counted at one side (tcp: both sides).",
             f"{versions}.", "", "## Targets", ""]
    lines += table(("row", "added", "over verbs", "at most"), targets(result))
    lines += ["## A batch, beside its operations", ""]
    lines += table(("row", "host: batch", "host: operation", "added: batch",
                    "added: operation", "locked: batch", "locked: operation"),
                   batches(result))
    lines += ["## Bytes of memory", ""]
    lines += table(("object", "all", "kOFI's"), memory(result))
    lines += ["## Two CPUs", "",
              "Cache lines of kOFI's that both write, each with its own endpoints.", ""]
    lines += table(("row", "cache lines", "of them locks", "where"),
                   [[name, s["lines"], s["locks"], "; ".join(s["where"])]
                    for name, s in result["shared"].items()])
    lines += ["## Block devices", "",
              "Instructions for each operation, of both ends together. With one at a time, the "
              "whole includes what is after the device's worker, and *at most* doesn't.", ""]
    lines += table(DISK_COLUMNS, [disk_cells(n, r) for n, r in result["rows"].items()
                                  if is_disk(n)])
    lines += ["## Rows", ""]
    lines += table(COLUMNS, [row_cells(result, n, r) for n, r in result["rows"].items()
                             if not is_disk(n)])
    return "\n".join(lines)


PLOT = """
set terminal svg size 1000,520 font "sans,11" background "white"
set output "{out}"
set style data histograms
set style histogram rowstacked
set style fill solid 0.9 border -1
set boxwidth 0.75
set key outside right top reverse Left
set xtics rotate by -35 nomirror
set ylabel "instructions of the host for one operation"
set grid ytics
set yrange [0:*]
set bmargin 8
plot {plots}
"""


def plot(result, out, directory):
    """Host's parts of the polled rows, verbs beside efa."""
    names = [f"{ulp} {kind} {size} polled"
             for kind, size in (("send", "8B"), ("send", "1KiB"), ("recv", "1KiB"),
                                ("write", "4KiB"), ("read", "4KiB"), ("reg", "4KiB"),
                                ("inv", "4KiB"))
             for ulp in ("verbs", "efa")]
    names = [n for n in names if n in result["rows"]]
    if not names:
        return
    data = directory / "plot.data"
    data.write_text("".join(
        '"%s" %s\n' % (n.removesuffix(" polled"),
                       " ".join(str(result["rows"][n]["parts"][p]) for p in counts.HOST))
        for n in names))
    plots = ", ".join(f'"{data}" using {i + 2}:xtic(1) title "{part.replace("_", " ")}"'
                      for i, part in enumerate(counts.HOST))
    subprocess.run(["gnuplot"], input=PLOT.format(out=out, plots=plots), text=True, check=True)


def compared(name):
    """The figures of a row that are compared. The number of times that a worker is woken for a
    batch is random. Therefore "host" differs between builds of the same source, and isn't compared.
    Rows of tags have no workers, and nothing of them is in modules of kOFI: the functions are
    inline, or the kernel's. For one operation a worker runs a fixed number of times. Each time
    costs the host thousands of instructions, few of which are of modules of kOFI."""
    words = name.split()
    if words[0] == "tag":
        return ("host",)
    return ("added", "workers") if words[-1] in ("single", "depth=1") else ("added",)


def baseline(result, former=None):
    """Of a result, what later ones are held against: what two runs agree about. Rows that the
    result lacks, or about which its runs don't agree, keep the figures of a former baseline for the
    same kernel, compiler and QEMU."""
    kept = dict(former["rows"]) if former and former["versions"] == result["versions"] else {}
    for name, row in result["rows"].items():
        figures = {f: row[f] for f in compared(name) if row["agree"][f]}
        if figures.get(compared(name)[0]):
            kept[name] = {**kept.get(name, {}), **figures}
    return {"versions": result["versions"], "rows": kept}


def regressions(result, base, names):
    """A line for each figure of these rows that has grown by too much, in both runs, or that wasn't
    measured, or hardly, or that the baseline lacks; and how many were compared."""
    lines, count = [], 0
    for name in names:
        row = result["rows"].get(name)
        for figure in compared(name):
            if not row:
                lines.append(f"{name}: {figure} wasn't measured")
                continue
            least, most = sorted(row["both"][figure])
            then = base["rows"].get(name, {}).get(figure)
            if then is None:
                lines.append(f"{name}: {figure} {least:.0f}, isn't in the baseline; keep a new one")
                continue
            count += 1
            if least > then * (1 + LIMIT / 100):
                lines.append(f"{name}: {figure} {least:.0f}, was {then:.0f}")
            elif most < then * LEAST:
                lines.append(f"{name}: {figure} {most:.0f}, was {then:.0f}; if that is right, "
                             "keep a new baseline")
    return lines, count
