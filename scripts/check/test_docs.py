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
