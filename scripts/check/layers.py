#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rules of layering, such as the directories whose headers a directory may include.

The table is the rule; a file is judged by the longest row that matches.
A new layer needs a row before it may hold any C.
"""

import os
import re
from dataclasses import dataclass

import tree


@dataclass
class Layer:
    """Directories, headers and namespaces that one directory's C files may use."""

    trees: tuple = ()           # rows of this table, besides its own
    rdma: bool = False          # <rdma/...> anywhere
    rdma_files: tuple = ()      # <rdma/...> only here
    efa_verbs: tuple = ()       # the EFA kernel-verbs header only here
    provider_api: bool = False  # PROVIDER_API
    namespaces: tuple = ()      # namespaces it may export into


LAYERS = {
    "include/kofi": Layer(),
    "kofi": Layer(("include/kofi", "kofi/queue"), provider_api=True,
                  namespaces=("KOFI", "KOFI_PROVIDER")),
    # Knows nothing of the core's objects but struct fid.
    "kofi/queue": Layer(("include/kofi",), provider_api=True,
                        namespaces=("KOFI", "KOFI_PROVIDER")),
    # The same; and the core itself has no use for it.
    "kofi/match": Layer(("include/kofi",), provider_api=True,
                        namespaces=("KOFI_PROVIDER",)),
    "kofi/atomic": Layer(("include/kofi", "kofi"), provider_api=True,
                         namespaces=("KOFI", "KOFI_PROVIDER")),
    "kofi/connect": Layer(("include/kofi", "kofi"), provider_api=True,
                          namespaces=("KOFI", "KOFI_PROVIDER")),
    # A ULP as far as the rules go.
    "ulp/lib": Layer(("include/kofi", "compat"), namespaces=("KOFI_ULP",)),
    "ulp/blk": Layer(("include/kofi", "compat"), namespaces=("KOFIBLK",)),
    # A ULP below users of RDMA devices; only what is a device to them knows <rdma/...>.
    "ulp/rc": Layer(("include/kofi", "compat"), rdma_files=("rdma.h", "link.c", "verbs.c", "cm.h",
                                                                    "cm.c", "setup.c", "listen.c")),
    # A ULP that knows no device: only addresses.
    "cm": Layer(("include/kofi", "compat"), namespaces=("KOFI_CM",)),
    # It makes endpoints, so it is a provider as far as the rules go.
    "cm/msg": Layer(("include/kofi", "compat"), provider_api=True),
    # hw.* holds the queues and hides the verbs header. device.c is the ib_client.
    "prov/efa": Layer(("include/kofi", "compat"), provider_api=True,
                      rdma_files=("hw.h", "hw.c", "device.c"),
                      efa_verbs=("hw.h",), namespaces=("KOFI",)),
    # The two fabrics use the base. It reaches them through the table of fabrics, and they don't
    # know each other. Endpoints of datagrams are those of efa-direct on another queue pair.
    "prov/efa/direct": Layer(("include/kofi", "compat", "prov/efa"), provider_api=True),
    "prov/efa/dgram": Layer(("include/kofi", "compat", "prov/efa", "prov/efa/direct"),
                            provider_api=True),
    "prov/efa/rdm": Layer(("include/kofi", "compat", "prov/efa"), provider_api=True),
    # The code of tracepoints reads the structs of both fabrics.
    "prov/efa/trace.c": Layer(("prov/efa", "prov/efa/direct", "prov/efa/rdm")),
    "prov/loop": Layer(("include/kofi",), provider_api=True),
    "sim": Layer(("compat",), rdma=True, efa_verbs=("*",), namespaces=("EFASIM",)),
    "samples": Layer(("include/kofi", "compat")),
    # bench/ulp_rdm.c builds packets of fabric efa itself, and bench/ulp_tag.c tags of kofiblk.
    "bench": Layer(("include/kofi", "compat", "prov/efa/rdm", "ulp/blk"), rdma=True,
                   efa_verbs=("*",), provider_api=True, namespaces=("KOFI_BENCH",)),
    "compat": Layer(rdma=True, efa_verbs=("*",)),
    "tests/verbs": Layer(("compat",), rdma=True, efa_verbs=("*",)),
    "tests": Layer(("include/kofi", "kofi", "kofi/queue", "kofi/match", "kofi/atomic", "cm", "cm/msg",
                    "prov/efa",
                    "prov/efa/direct", "prov/efa/dgram", "prov/efa/rdm", "prov/efa/trace.c",
                    "prov/loop",
                    "samples", "sim", "ulp/lib", "ulp/blk", "ulp/rc", "compat"),
                   rdma=True, efa_verbs=("*",), provider_api=True,
                   namespaces=("KOFI", "KOFI_PROVIDER", "KOFI_TEST", "EFASIM")),
    # Fed to the compiler by the checks; ULPs as far as the rules go.
    "scripts": Layer(("include/kofi",)),
}

PROVIDER_API = ("include/kofi/provider.h", "include/kofi/queue.h", "include/kofi/side.h",
                "include/kofi/match.h", "include/kofi/arith.h")
EFA_VERBS = re.compile(r"(^|/)efa_(kernel_)?verbs\.h$")
DEVICE_CALLS = re.compile(r"\b(ib_post_(?:srq_)?(?:send|recv)|ib_poll_cq)\s*\(")
DMA_CALLS = re.compile(r"\b(dma_(?:un)?map_\w+|dma_sync_\w+|dma_need_sync|"
                       r"dma_max_mapping_size|iommu_\w+|pci_clear_master)\s*\(")
VERBS_NAMES = re.compile(r"\b(?:struct|enum|union)\s+(?:ib|rdma)_\w+|\bib_\w+\s*\(")


def layer_of(path):
    best = max((d for d in LAYERS if (path + "/").startswith(d + "/")), key=len, default=None)
    return best, LAYERS.get(best)


def allows(names, path):
    return "*" in names or os.path.basename(path) in names


def resolve(path, kind, name, have):
    """The file of ours that an include directive reaches, or None."""
    if kind == '"':
        local = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if local in have or name.startswith("."):
            return local
    for base in ("include", ""):
        if os.path.join(base, name) in have:
            return os.path.join(base, name)
    # A name of ours that isn't there (yet) is judged all the same.
    return os.path.join("include", name) if name.startswith("kofi/") else None


def check_include(report, path, line, kind, name, have):
    where, layer = layer_of(path)
    target = resolve(path, kind, name, have)
    if EFA_VERBS.search(name):
        if not allows(layer.efa_verbs, path):
            report.add(path, line, f"{where} reaches the EFA verbs header only through hw.h")
        return
    if name.startswith("rdma/") and not (layer.rdma or allows(layer.rdma_files, path)):
        report.add(path, line, f"{where} may not include <{name}> here")
    if target is None:
        if kind == '"':
            report.add(path, line, f'"{name}" is not in this directory')
        return
    if target in PROVIDER_API and not layer.provider_api and path not in PROVIDER_API:
        report.add(path, line, f"{where} may not use the providers' API")
    if target.startswith("tests/") and not path.startswith("tests/"):
        report.add(path, line, f"nothing outside of tests may include {target}")
    elif not reaches(where, layer, target):
        report.add(path, line, f"{where} may not include {target}")


def reaches(where, layer, target):
    owner = layer_of(target)[0]
    return owner == where or owner in layer.trees


def check_code(report, path, text):
    where, layer = layer_of(path)
    code = tree.strip(text)

    def each(pattern, complaint):
        for m in re.finditer(pattern, code):
            report.add(path, code.count("\n", 0, m.start()) + 1,
                       complaint.format(m.group(0).rstrip("( \t")))

    if where != "compat":
        each(r"\b(?:LINUX_VERSION_CODE|KERNEL_VERSION)\b", "{} belongs in compat/")
    if where.startswith("prov/efa") and os.path.basename(path) != "hw.c":
        each(DEVICE_CALLS, "only hw.c calls {}")
    if where.startswith("prov/efa") and os.path.basename(path) not in ("dma.c", "dma.h"):
        each(DMA_CALLS, "only dma.[ch] calls {}")
    if where in ("include/kofi", "kofi", "kofi/queue", "kofi/match", "kofi/atomic", "samples"):
        each(VERBS_NAMES, "no verbs in " + where + ": {}")
    for line, macro, symbol, space in tree.exports(text):
        if macro == "EXPORT_SYMBOL_IF_KUNIT":
            continue
        if macro != "EXPORT_SYMBOL_NS_GPL":
            report.add(path, line, f"{symbol}: export with EXPORT_SYMBOL_NS_GPL, not {macro}")
        elif space not in layer.namespaces:
            report.add(path, line, f"{symbol}: {where} may not export into {space}")
    for m in re.finditer(r'MODULE_LICENSE\(\s*"([^"]*)"', tree.strip(text, strings=False)):
        if m.group(1) != "Dual BSD/GPL":
            report.add(path, text.count("\n", 0, m.start()) + 1,
                       f'licence is "{m.group(1)}", not "Dual BSD/GPL"')


def check_flags(report, path, text):
    """Include paths of Kbuild files: they could get round every rule above."""
    # The template is built elsewhere, with the headers that were installed.
    if path in ("Kbuild", "samples/template/Makefile"):
        return
    if path.startswith("tests/") and not path.startswith("tests/verbs/"):
        return
    for n, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0]
        for flag in re.findall(r"-(?:I|include|iquote|isystem)\s*(\S+)", line):
            if not re.fullmatch(r"(\$\(srctree\)/)?\$\((src|obj)\)/?", flag):
                report.add(path, n, f"include path {flag}: only $(src) may be added")
        if re.search(r"\.\./\S*\.o\b", line):
            report.add(path, n, "objects of another directory belong to that directory")


def check_layers(top, report):
    have = set(tree.files(top))
    for path in sorted(have):
        name = os.path.basename(path)
        where = layer_of(path)[0]
        if where and name in ("Kbuild", "Makefile"):
            check_flags(report, path, tree.read(top, path))
        if not name.endswith((".c", ".h", ".S")):
            continue
        if where is None:
            report.add(path, 1, "belongs to no layer: give it a row in layers.py")
            continue
        text = tree.read(top, path)
        for line, kind, what in tree.includes(text):
            check_include(report, path, line, kind, what, have)
        check_code(report, path, text)


if __name__ == "__main__":
    out = tree.Report()
    check_layers(tree.TOP, out)
    out.finish()
