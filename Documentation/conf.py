# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sphinx configuration. Works with Debian 12's Sphinx 5 and Debian 13's 8."""

import glob
import os
import re
import sys

from docutils import nodes
from sphinx import addnodes

project = "kOFI"
author = "kOFI maintainers"
# pylint: disable=redefined-builtin
copyright = "the kOFI authors"

exclude_patterns = ["_build"]
kernel_source = os.environ.get("KERNEL_SOURCE")
if not kernel_source:
    # The manual pages stand alone, and are made where there is no kernel source.
    root_doc = "man/index"
    exclude_patterns += ["*.rst", "*.md", "api"]
else:
    sys.path[:0] = [os.path.abspath("_ext"), os.path.join(kernel_source, "Documentation/sphinx")]
    extensions = ["kerneldoc", "myst_parser", "pictures", "bench"]
    # README.md links to files that have no page.
    suppress_warnings = ["ref.myst", "myst.xref_missing"]
    kerneldoc_bin = os.path.join(kernel_source, "scripts/kernel-doc")
    kerneldoc_srctree = os.path.abspath("..")


def link_calls(app, doctree):
    """Have the calls and structures that a page names as literals lead to their reference, if
    there is one."""
    if app.builder.format != "html":
        return
    for literal in list(doctree.findall(nodes.literal)):
        name = re.fullmatch(r"(?:(struct|enum) )?((?:fi|kofi|kulp|kcm|kefa)_\w+)(\(\))?", literal.astext())
        if not name or bool(name[1]) == bool(name[3]):
            continue
        if not isinstance(literal.parent, (nodes.reference, addnodes.pending_xref)):
            link = addnodes.pending_xref("", refdomain="c", reftype=name[1] or "func",
                                         reftarget=name[2], refexplicit=True, refwarn=False,
                                         refdoc=app.env.docname)
            literal.replace_self(link)
            link += literal


def setup(app):
    app.connect("doctree-read", link_calls)


primary_domain = "c"
highlight_language = "c"
# Attributes in kernel-doc's output that Sphinx's parser of C doesn't know.
c_id_attributes = ["__must_check", "__always_inline", "__force", "__user",
                   "__iomem", "__rcu", "__percpu", "__packed"]
c_paren_attributes = ["__aligned", "__must_hold", "__printf", "__counted_by"]



def man_page(path):
    """Sphinx's entry for man/NAME.SECTION.rst, which says in a comment what it is."""
    name, section, _ = os.path.basename(path).split(".")
    with open(path, encoding="utf-8") as file:
        about = next(line[len(".. about: "):].strip() for line in file
                     if line.startswith(".. about: "))
    return (f"man/{name}.{section}", name, about, "", int(section))


man_pages = [man_page(path) for path in sorted(glob.glob("man/*.[78].rst"))]

html_theme = "furo"
html_title = "kOFI"
html_static_path = ["_static"]
html_css_files = ["kofi.css"]
html_copy_source = False
html_show_sphinx = False
