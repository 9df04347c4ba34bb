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


SEND = "ep->ops->send(ep, buf)"
PLAIN = ("-mindirect-branch=keep", "-mfunction-return=keep")
GOOD = (f"return {SEND};", f"return {SEND} + 1;",
        "struct { const void *p; long n; } m = { buf, 3 }; return ep->ops->send(ep, &m);")
BAD = ((f"return {SEND} + ep->ops->more(ep);", "2 indirect calls"),
       ("return 0;", "0 indirect calls"),
       (f"other(ep); return {SEND};", "direct call of other"),
       ("return other(ep);", "direct call of other"),
       (f"__sync_fetch_and_add(&ep->lock, 1); return {SEND};", "locked"),
       (f"__atomic_exchange_n(&ep->lock, 1, 5); return {SEND};", "writes memory"),
       (f"ep->count++; return {SEND};", "writes memory"))


class Judge(unittest.TestCase):
    def test_good(self):
        for body in GOOD:
            self.assertEqual(verdict(body), [], body)
        for body in GOOD[:2]:
            self.assertEqual(verdict(body, PLAIN), [], body)

    def test_bad(self):
        for body, word in BAD:
            lines = verdict(body)
            self.assertTrue(any(word in line for line in lines), (body, lines))
        self.assertTrue(verdict(BAD[0][0], PLAIN))

    def test_missing(self):
        report = tree.Report()
        calls.judge("", {"f"}, report)
        self.assertEqual(report.lines, ["f: not in the object"])


DOC = "/**\n * {}() - x\n *\n * Context: Data call: any.\n */\n"
INLINE = (DOC.format("fi_a") +
          "static inline long fi_a(struct fid_ep *ep, const void *buf,\n\t\t\tsize_t len)\n"
          "{\n\treturn READ_ONCE(ep->msg)->a(ep, buf, len);\n}\n")
ALIAS = "static inline long fi_alias(struct fid_ep *ep)\n{\n\treturn fi_a(ep, NULL, 0);\n}\n"
KEY = "static inline int fi_key(struct fid_ep *ep)\n{\n\treturn ep->key(ep);\n}\n"


class Lists(TreeTest):
    def test_claims(self):
        def agree(top, report):
            calls.compare(calls.inlines(top), calls.claimed(top), report)
        path = "include/kofi/x.h"
        self.accepts(agree, {path: INLINE + DOC.format("fi_alias") + ALIAS + KEY})
        self.refuses(agree, {path: INLINE + ALIAS}, "fi_alias: is a data call")
        self.refuses(agree, {path: INLINE + DOC.format("fi_key") + KEY}, "fi_key: says")
        self.refuses(agree, {"kofi/x.c": DOC.format("f") + "int f(void)\n{\n\treturn 0;\n}\n"}, "f: says")

    def test_wrapper(self):
        self.assertEqual(
            calls.wrapper("f", "static inline void __must_hold(x) f(int *a,\n\tint b[2])"),
            "void call_f(int *a, int b[2])\n{\n\tf(a, b);\n}\n")
        self.assertEqual(calls.wrapper("f", "static inline u64 f(void)"),
                         "u64 call_f(void)\n{\n\treturn f();\n}\n")
