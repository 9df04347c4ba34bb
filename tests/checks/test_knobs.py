# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

import os
import tempfile

import knobs
from fixture import TreeTest

ROW = """FI_EFA_X
here: parameter x
default: 1
when: ever
effect: some
test: suite.case
"""
C = "module_param_named(x, y, uint, 0644);\n"
SUITE = 'KUNIT_CASE(case),\n	.name = "suite",\n	.test_cases = cases,\n'


class Knobs(TreeTest):
    def tree(self, **other):
        files = {"source": ROW, "c": C, "suite": SUITE} | other
        out = {knobs.SOURCE: files["source"], "prov/efa/k.c": files["c"],
               "tests/kunit/k_kunit.c": files["suite"], knobs.PAGE: knobs.BEGIN + knobs.END}
        with tempfile.TemporaryDirectory() as top:
            for path, text in out.items():
                os.makedirs(os.path.dirname(f"{top}/{path}"), exist_ok=True)
                with open(f"{top}/{path}", "w", encoding="utf-8") as f:
                    f.write(text)
            knobs.write(top)
            with open(f"{top}/{knobs.PAGE}", encoding="utf-8") as f:
                return out | {knobs.PAGE: f.read()}

    def test_good(self):
        self.accepts(knobs.check, self.tree())

    def test_page(self):
        files = self.tree()
        files[knobs.SOURCE] = ROW.replace("default: 1", "default: 2")
        self.refuses(knobs.check, files, "write")

    def test_missing(self):
        self.refuses(knobs.check, self.tree(c=""), "parameter x")
        self.refuses(knobs.check, self.tree(suite=""), "suite.case")
        untested = ROW.replace("test: suite.case\n", "")
        self.refuses(knobs.check, self.tree(source=untested), "FI_EFA_X", "test")
