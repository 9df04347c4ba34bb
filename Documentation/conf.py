# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sphinx configuration. Works with Debian 12's Sphinx 5 and Debian 13's 8."""

import os
import sys

kernel_source = os.environ["KERNEL_SOURCE"]
sys.path.insert(0, os.path.join(kernel_source, "Documentation/sphinx"))

project = "kOFI"
author = "kOFI maintainers"
# pylint: disable=redefined-builtin
copyright = "the kOFI authors"

extensions = ["kerneldoc"]
kerneldoc_bin = os.path.join(kernel_source, "scripts/kernel-doc")
kerneldoc_srctree = os.path.abspath("..")

exclude_patterns = ["_build"]
primary_domain = "c"
highlight_language = "c"
# What kernel-doc writes of the kernel's C, and Sphinx's parser doesn't know.
c_id_attributes = ["__must_check", "__always_inline", "__force", "__user",
                   "__iomem", "__rcu", "__percpu", "__packed"]
c_paren_attributes = ["__aligned", "__must_hold", "__printf", "__counted_by"]

man_pages = [("man/kofi_info.8", "kofi_info", "show what kernel modules can communicate over",
              "", 8),
             ("man/kofiblk.8", "kofiblk", "have disks of another machine, over kOFI", "", 8)]

html_theme = "alabaster"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "description": "OpenFabrics Interfaces in the Linux kernel",
    "page_width": "70em",
    "fixed_sidebar": True,
}
