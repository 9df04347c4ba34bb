# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

import os
import subprocess
import tempfile
import unittest

import calls
import tree
from fixture import TreeTest

# The options of the kernel's configuration that change the code of a function.
CFLAGS = ["-O2", "-ffunction-sections", "-mindirect-branch=thunk-extern",
          "-mfunction-return=thunk-extern", "-mindirect-branch-register", "-fno-jump-tables",
          "-mindirect-branch-cs-prefix", "-fcf-protection=branch", "-mno-red-zone", "-mno-sse",
          "-pg", "-mfentry", "-fno-pic"]
TYPES = """
struct ep;
struct ops { long (*send)(struct ep *ep, const void *buf); long (*more)(struct ep *ep); };
struct ep { const struct ops *ops; int lock; long count; };
long other(struct ep *ep);
"""


def verdict(body, flags=()):
    """The check's messages about a data call with this body."""
    with tempfile.TemporaryDirectory() as top:
        obj = os.path.join(top, "x.o")
        text = TYPES + f"long call_f(struct ep *ep, const void *buf)\n{{ {body} }}\n"
        subprocess.run(["gcc", *CFLAGS, *flags, "-x", "c", "-", "-c", "-o", obj],
                       input=text, text=True, check=True)
        dump = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", obj],
                              capture_output=True, text=True, check=True).stdout
    report = tree.Report()
    calls.judge(dump, {"f"}, report)
    return report.lines


class Judge(unittest.TestCase):
    SEND = "ep->ops->send(ep, buf)"

    def refused(self, body, word):
        lines = verdict(body)
        self.assertTrue(any(word in line for line in lines), lines)

    def test_one_call(self):
        self.assertEqual(verdict(f"return {self.SEND};"), [])

    def test_one_call_that_returns_here(self):
        self.assertEqual(verdict(f"return {self.SEND} + 1;"), [])

    def test_without_retpolines(self):
        plain = ("-mindirect-branch=keep", "-mfunction-return=keep")
        self.assertEqual(verdict(f"return {self.SEND};", plain), [])
        self.assertEqual(verdict(f"return {self.SEND} + 1;", plain), [])
        self.assertTrue(verdict(f"return {self.SEND} + ep->ops->more(ep);", plain))

    def test_arguments_on_the_stack(self):
        self.assertEqual(verdict(
            "struct { const void *p; long n; } m = { buf, 3 };"
            "return ep->ops->send(ep, &m);"), [])

    def test_two_calls(self):
        self.refused(f"return {self.SEND} + ep->ops->more(ep);", "2 indirect calls")

    def test_no_call(self):
        self.refused("return 0;", "0 indirect calls")

    def test_direct_call(self):
        self.refused(f"other(ep); return {self.SEND};", "direct call of other")

    def test_direct_tail_call(self):
        self.refused("return other(ep);", "direct call of other")

    def test_lock(self):
        self.refused(f"__sync_fetch_and_add(&ep->lock, 1); return {self.SEND};", "locked")

    def test_exchange(self):
        self.refused(f"__atomic_exchange_n(&ep->lock, 1, 5); return {self.SEND};", "writes memory")

    def test_count(self):
        self.refused(f"ep->count++; return {self.SEND};", "writes memory")

    def test_missing(self):
        report = tree.Report()
        calls.judge("", {"f"}, report)
        self.assertEqual(report.lines, ["f: not in the object"])


INLINE = ("static inline long fi_a(struct fid_ep *ep, const void *buf,\n\t\t\tsize_t len)\n"
          "{\n\treturn READ_ONCE(ep->msg)->a(ep, buf, len);\n}\n"
          "static inline long fi_alias(struct fid_ep *ep)\n{\n\treturn fi_a(ep, NULL, 0);\n}\n"
          "static inline int fi_key(struct fid_ep *ep)\n{\n\treturn ep->key(ep);\n}\n")


class Lists(TreeTest):
    def found(self, top, report):
        calls.compare(calls.inlines(top), self.listed, report)

    def test_list(self):
        files = {"include/kofi/x.h": INLINE}
        self.listed = {"fi_a", "fi_alias"}
        self.accepts(self.found, files)
        self.listed = {"fi_a"}
        self.refuses(self.found, files, "fi_alias is a data call")
        self.listed = {"fi_a", "fi_alias", "fi_gone"}
        self.refuses(self.found, files, "fi_gone is no longer")

    def test_claims(self):
        doc = "/**\n * f() - x\n *\n * Context: Data call: any.\n */\n"

        def claims(top, report):
            for path, line, name in calls.claimed(top):
                report.add(path, line, name)
        self.refuses(claims, {"kofi/x.c": doc + "int f(void)\n{\n\treturn 0;\n}\n"}, "f")
        self.accepts(claims, {"kofi/x.c": "int f(void)\n{\n\treturn 0;\n}\n"})

    def test_wrapper(self):
        self.assertEqual(
            calls.wrapper("f", "static inline void __must_hold(x) f(int *a,\n\tint b[2])"),
            "void call_f(int *a, int b[2])\n{\n\tf(a, b);\n}\n")
        self.assertEqual(calls.wrapper("f", "static inline u64 f(void)"),
                         "u64 call_f(void)\n{\n\treturn f();\n}\n")
