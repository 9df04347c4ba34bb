#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Documents that name files, show code, or should cover every header.

  docs.py links         links and file names in them lead somewhere
  docs.py api           every public header has its page below Documentation/api
  docs.py extract DIR   writes the C of README.md and of the guides to DIR
  docs.py parameters    each module parameter is in a manual page
  docs.py counters      the numbers in debugfs of the EFA provider are in a table
  docs.py abi           sysfs and configfs attributes are in Documentation/ABI
  docs.py versions      modules, tools and packages have the version of CHANGELOG.md
  docs.py template      README.md shows samples/template
"""

import os
import re
import sys

import tree


def check_link(top, report, path, line, target):
    if re.match(r"[a-z]+:|#", target):
        return
    target = target.split("#")[0]
    base = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if not os.path.exists(os.path.join(top, base)):
        report.add(path, line, f"link to {target}, which isn't there")


def links(top, report):
    # A literal that starts with a directory of ours is a file's name.
    dirs = {f.split("/")[0] for f in tree.files(top) if "/" in f}
    for path in tree.files(top, ".md", ".rst"):
        fenced = False
        for n, line in enumerate(tree.read(top, path).splitlines(), 1):
            if line.startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            if path.endswith(".md"):
                for target in re.findall(r"\]\(([^)\s]+)\)", line):
                    check_link(top, report, path, n, target)
            for name in re.findall(r"`([\w.-]+/[\w./-]*)`", line):
                if name.split("/")[0] in dirs and not os.path.exists(os.path.join(top, name)):
                    report.add(path, n, f"names {name}, which isn't there")


def shown_by(page):
    """file -> the identifiers that a page shows of it; None stands for all."""
    shown = {}
    for m in re.finditer(r"^\.\. kernel-doc:: (\S+)((?:\n +\S.*)*)", page, re.M):
        names = re.search(r":identifiers:((?:.|\n)*)", m.group(2))
        shown[m.group(1)] = set(names.group(1).split()) if names else None
    return shown


def api(top, report):
    """A header's page shows the header and what it declares, wherever that has its comment."""
    source = {}
    for path in tree.files(top, ".c"):
        if not path.startswith(("tests/", "samples/")):
            for item in tree.items(tree.read(top, path)):
                if item.doc and item.kind == "function":
                    source[item.name] = path
    for path in tree.files(top, ".h"):
        if not path.startswith("include/kofi/"):
            continue
        stem = os.path.basename(path).removesuffix(".h").replace("_", "-")
        page = f"Documentation/api/{stem}.rst"
        if not os.path.exists(os.path.join(top, page)):
            report.add(path, 0, f"has no page {page}")
            continue
        shown = shown_by(tree.read(top, page))
        text = tree.read(top, path)
        if "/**" in text and shown.get(path, ()) is not None:
            report.add(page, 0, f"doesn't show {path}")
        for item in tree.items(text):
            if item.kind == "prototype" and not item.doc and item.name in source:
                names = shown.get(source[item.name], ())
                if names is not None and item.name not in names:
                    report.add(page, 0, f"doesn't show {item.name}() of {source[item.name]}")


def blocks(text):
    """The (line, code) of each fenced block of C."""
    for m in re.finditer(r"^```c\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, m.start()) + 2, m.group(1)


def code_blocks(text):
    """The (line, code) of each block of C in reStructuredText."""
    for m in re.finditer(r"^\.\. code-block:: c\n\n((?:(?:   .*)?\n)+)", text, re.M):
        yield text.count("\n", 0, m.start()) + 3, re.sub(r"^   ", "", m.group(1), flags=re.M)


def write_module(out, name, path, parts):
    """Makes one source of parts of a file, which may lack what every module has."""
    code = "".join(f'#line {line} "{path}"\n{part}' for line, part in parts)
    if "MODULE_LICENSE" not in code:
        code += '#include <linux/module.h>\nMODULE_LICENSE("Dual BSD/GPL");\n'
    if "MODULE_DESCRIPTION" not in code:
        code += f'MODULE_DESCRIPTION("The example of {path}");\n'
    with open(os.path.join(out, name + ".c"), "w", encoding="utf-8") as f:
        f.write(code)
    return name


PARAMETER = re.compile(r"^\s*(?:module_param|module_param_array|module_param_cb)\((\w+)|"
                       r"^\s*module_param(?:_array)?_named\((\w+)|^EFASIM_PARAM\((\w+), (.*?), \"", re.M)


def parameters(top, report):
    """Each parameter of an installed module has its place in a manual page."""
    pages = {path: tree.read(top, path) for path in tree.files(top, ".rst")
             if path.startswith("Documentation/man/")}
    terms = {term for text in pages.values() for line in text.splitlines()
             if line.startswith("``") for term in re.findall(r"``(\w+)``", line)}
    for path in tree.files(top, ".c"):
        if not path.startswith(("kofi/", "cm/", "prov/", "sim/", "ulp/", "samples/pingpong/")):
            continue
        text = tree.read(top, path)
        for m in PARAMETER.finditer(text):
            name = next(n for n in m.groups()[:3] if n)
            # The parameter of the macro that declares efasim's.
            if not (path == "sim/main.c" and name == "name") and name not in terms:
                report.add(path, text.count("\n", 0, m.start()) + 1,
                           f"parameter {name} is in no manual page")


def counters(top, report):
    """Each number that the EFA provider shows in debugfs is in the first column of a table."""
    terms = {term for path in tree.files(top, ".rst")
             if os.path.basename(path) in ("efa.rst", "efa-users.rst")
             for line in tree.read(top, path).splitlines() if line.startswith("``")
             for term in re.findall(r"``(\w+)``", re.split(r"\s{2,}", line)[0])}
    for path in ("prov/efa/debugfs.c", "prov/efa/rdm/show.c", "prov/efa/rdm/packet.c"):
        text = tree.read(top, path)
        shown = [(m.start(), word) for m in re.finditer(r'seq_printf\(s, "[^;]*', text)
                 for word in re.findall(r"(?<!%)\b(\w+) %(?!s)", m[0])]
        shown += [(m.start(), m[1])
                  for m in re.finditer(r'\[KEFA_(?:DROP|BAD)_\w+\]\s*= "(\w+)"', text)]
        for at, word in shown:
            # "used of all".
            if word != "of" and word not in terms:
                report.add(path, text.count("\n", 0, at) + 1,
                           f"debugfs shows {word}, which no table in efa.rst and efa-users.rst explains")


ABI_TAGS = ("What:", "Date:", "KernelVersion:", "Contact:", "Description:")
ATTRIBUTE = re.compile(r"^(?:CONFIGFS_ATTR(?:_WO|_RO)?\(\w+, (?!_?name\b)(\w+)\)|"
                       r"KBS_(?:TEXT|NUMBER)\(\w+, (\w+)|"
                       r"(?:static DEVICE_ATTR\w*|KBC_ATTR_\w+)\((\w+))", re.M)


def abi(top, report):
    """Each entry of Documentation/ABI is whole, and each attribute has one."""
    known = set()
    for path in tree.files(top):
        if not path.startswith("Documentation/ABI/"):
            continue
        for entry in tree.read(top, path).strip().split("\n\n"):
            tags = set(re.findall(r"^\w+:", entry, re.M))
            if tags != set(ABI_TAGS):
                report.add(path, 0, f"wants {' '.join(ABI_TAGS)}: {entry.splitlines()[0]}")
            known |= set(re.findall(r"^What:.*/(\w+)$", entry, re.M))
    for path in tree.files(top, ".c"):
        if path.startswith("ulp/blk/"):
            for m in ATTRIBUTE.finditer(tree.read(top, path)):
                name = next(n for n in m.groups() if n)
                if name not in known:
                    report.add(path, 0, f"attribute {name} isn't in Documentation/ABI")


VERSION = re.compile(r'^(?:MODULE_VERSION\("|VERSION = "|PACKAGE_VERSION="|## )([0-9.]+)', re.M)


def versions(top, report):
    """Modules, tools, dkms.conf and the newest entry of CHANGELOG.md have one version."""
    paths = [path for path in tree.files(top, ".c")
             if "MODULE_VERSION" in tree.read(top, path)]
    paths += ["tools/kofi_info", "tools/kofiblk", "tools/kofiblk-config",
              "dkms.conf"]
    want = VERSION.search(tree.read(top, "CHANGELOG.md")).group(1)
    for path in paths:
        found = VERSION.search(tree.read(top, path))
        if not found or found.group(1) != want:
            report.add(path, 0, f"its version isn't {want}, that of CHANGELOG.md")


def template(top, report):
    """README.md shows the template, which a guest test loads."""
    path = "samples/template/my_ulp.c"
    if tree.read(top, path) not in ("// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause\n" + code
                                    for _, code in blocks(tree.read(top, "README.md"))):
        report.add("README.md", 0, f"doesn't show {path} as it is")


def extract(top, out):
    """In README.md each block is a module, in a guide all of them together are."""
    names = []
    if os.path.exists(os.path.join(top, "README.md")):
        for n, part in enumerate(blocks(tree.read(top, "README.md")), 1):
            names.append(write_module(out, f"readme{n}", "README.md", [part]))
    for path in tree.files(top, "-guide.rst"):
        parts = list(code_blocks(tree.read(top, path)))
        if parts:
            name = os.path.basename(path).removesuffix(".rst").replace("-", "_")
            names.append(write_module(out, name, path, parts))
    return names


CHECKS = {check.__name__: check for check in
          (links, api, template, parameters, counters, versions, abi)}

if __name__ == "__main__":
    rep = tree.Report()
    if sys.argv[1] == "extract":
        print(" ".join(extract(tree.TOP, sys.argv[2])))
    else:
        for name in sys.argv[1:]:
            CHECKS[name](tree.TOP, rep)
    rep.finish()
