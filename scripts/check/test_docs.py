# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

import os
import tempfile
import unittest

import docs
from fixture import TreeTest

PAGE = "Documentation/api/x.rst"
HEADER = "/** enum */\nint fi_here(void);\nint fi_there(void);\n"
SOURCE = "/**\n * doc\n */\nint fi_there(void)\n{\n\treturn 0;\n}\n"


class Links(TreeTest):
    def test_links(self):
        self.accepts(docs.links, {"README.md": "[a](Documentation/a.rst#b) [c](https://x.org)\n",
                                  "Documentation/a.rst": "``README.md``, ``and/or``\n"})
        self.refuses(docs.links, {"README.md": "[a](gone.md)\n"}, "README.md:1", "gone.md")
        self.refuses(docs.links, {"d/a.rst": "``d/gone.c``\n"}, "d/gone.c")
        self.accepts(docs.links, {"d/a.md": "```\n[a](gone.md)\n```\n"})


class Interfaces(TreeTest):
    """What the kernel shows has its place in a page."""

    def test_parameters(self):
        page = {"Documentation/man/x.7.rst": "``size``\n    bytes (1)\n"}
        self.accepts(docs.parameters, page | {"kofi/x.c": "module_param(size, int, 0644);\n"})
        for line in ("module_param(other, int, 0644);", "module_param_named(other, x, int, 0);",
                     "module_param_array(other, int, &n, 0);",
                     "module_param_cb(other, &ops, NULL, 0);"):
            self.refuses(docs.parameters, page | {"kofi/x.c": line + "\n"}, "other")
        self.refuses(docs.parameters, page | {"sim/x.c": 'EFASIM_PARAM(other, 1, "x");\n'}, "other")
        # Tests have no pages.
        self.accepts(docs.parameters, {"tests/x.c": "module_param(other, int, 0644);\n"})

    def test_abi(self):
        entry = ("What:\t/sys/x/state\nDate:\tx\nKernelVersion:\tx\nContact:\tx\n"
                 "Description:\tx\n")
        source = {"ulp/blk/x.c": "static DEVICE_ATTR_RO(state);\n"}
        self.accepts(docs.abi, source | {"Documentation/ABI/x": entry})
        self.refuses(docs.abi, {"Documentation/ABI/x": entry.replace("Date:\tx\n", "")}, "Date")
        self.refuses(docs.abi, source | {"Documentation/ABI/x": entry.replace("state", "y")}, "state")
        self.refuses(docs.abi, {"ulp/blk/x.c": "CONFIGFS_ATTR(kb_export_, lost);\n"}, "lost")
        self.refuses(docs.abi, {"ulp/blk/x.c": 'KBC_ATTR_RO(lost, "%d", d->lost);\n'}, "lost")

    def test_versions(self):
        house = {"CHANGELOG.md": "# Changes\n\n## 0.2\n", "dkms.conf": 'PACKAGE_VERSION="0.2"\n',
                 "tools/kofi_info": 'VERSION = "0.2"\n', "tools/kofiblk": 'VERSION = "0.2"\n',
                 "tools/kofiblk-config": 'VERSION = "0.2"\n',
                 "kofi/main.c": 'MODULE_VERSION("0.2");\n'}
        self.accepts(docs.versions, house)
        for path in list(house)[1:]:
            self.refuses(docs.versions, house | {path: house[path].replace("0.2", "0.1")}, path)

    def test_template(self):
        code = "// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause\nint x;\n"
        house = {"samples/template/my_ulp.c": code, "README.md": "```c\nint x;\n```\n"}
        self.accepts(docs.template, house)
        self.refuses(docs.template, house | {"README.md": "```c\nint y;\n```\n"}, "my_ulp.c")


class Api(TreeTest):
    def test_pages(self):
        page = (".. kernel-doc:: include/kofi/x.h\n\n"
                ".. kernel-doc:: kofi/x.c\n   :identifiers:\n      fi_other\n      fi_there\n")
        house = {"include/kofi/x.h": HEADER, "kofi/x.c": SOURCE}
        self.accepts(docs.api, house | {PAGE: page})
        self.refuses(docs.api, house, "has no page")
        self.refuses(docs.api, house | {PAGE: page.replace("fi_there", "fi_x")}, "fi_there")
        self.refuses(docs.api, house | {PAGE: page.replace("include/kofi/x.h", "y.h")},
                     "doesn't show include/kofi/x.h")


class Counters(TreeTest):
    def test_tables(self):
        house = {"prov/efa/debugfs.c": 'seq_printf(s, "qp %u of %u name %s\\n",\n\t   qp->n);\n',
                 "prov/efa/rdm/show.c": '\t[KEFA_DROP_DUP]\t= "dup",\n',
                 "prov/efa/rdm/packet.c": '\t[KEFA_BAD_ADDR]\t\t= "addr",\n'}
        table = "``qp``   number\n``dup``,  reasons, not ``x``\n``addr``\n"
        self.accepts(docs.counters, house | {"Documentation/efa.rst": table})
        for word in ("qp", "dup", "addr"):
            self.refuses(docs.counters, house | {"Documentation/efa.rst": table.replace(word, "x")},
                         f"debugfs shows {word},")


class Maintainers(TreeTest):
    def test_entries(self):
        self.accepts(docs.maintainers, {"MAINTAINERS": "F:\tkofi/\nF:\t*\n", "kofi/x.c": ""})
        self.refuses(docs.maintainers, {"MAINTAINERS": "F:\t*\nF:\tsim/\n"}, "sim/")
        self.refuses(docs.maintainers, {"MAINTAINERS": "F:\t*\n", "kofi/x.c": ""}, "kofi/x.c")


class Extract(unittest.TestCase):
    def test_blocks(self):
        with tempfile.TemporaryDirectory() as top:
            with open(os.path.join(top, "README.md"), "w", encoding="utf-8") as f:
                f.write("text\n```c\nint a;\n```\n```sh\nls\n```\n```c\nint b;\n```\n")
            self.assertEqual(docs.extract(top, top), ["readme1", "readme2"])
            with open(os.path.join(top, "readme2.c"), encoding="utf-8") as f:
                self.assertTrue(f.read().startswith('#line 9 "README.md"\nint b;\n'))

    def test_guide(self):
        with tempfile.TemporaryDirectory() as top:
            with open(os.path.join(top, "x-guide.rst"), "w", encoding="utf-8") as f:
                f.write(".. code-block:: c\n\n   int a(void)\n   {\n\n   }\n\ntext\n\n"
                        ".. code-block:: none\n\n   x\n\n.. code-block:: c\n\n   int b;\n")
            self.assertEqual(docs.extract(top, top), ["x_guide"])
            with open(os.path.join(top, "x_guide.c"), encoding="utf-8") as f:
                text = f.read()
            self.assertTrue(text.startswith('#line 3 "x-guide.rst"\nint a(void)\n{\n\n}\n'))
            self.assertIn('#line 16 "x-guide.rst"\nint b;\n', text)
            self.assertNotIn("x\n#line", text)
