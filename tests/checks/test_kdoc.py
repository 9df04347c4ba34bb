# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

from fixture import TreeTest
from kdoc import check
from sizes import CODE_LINES
from sizes import check as check_sizes

FULL = "/**\n * f() - do\n *\n * Context: Any.\n * Return: 0.\n */\n"
NO_CONTEXT = "/**\n * f() - do\n *\n * Return: 0.\n */\n"
NO_RETURN = "/**\n * f() - do\n *\n * Context: Any.\n */\n"
HEADER = "include/kofi/x.h"


class KernelDoc(TreeTest):
    def test_inline(self):
        body = "static inline int f(struct fid *fid,\n\t\t    int a)\n{\n\treturn a;\n}\n"
        self.accepts(check, {HEADER: FULL + body})
        self.refuses(check, {HEADER: body}, f"{HEADER}:1", "f() has no kernel-doc")
        self.refuses(check, {HEADER: NO_CONTEXT + body}, "Context")
        self.refuses(check, {HEADER: NO_RETURN + body}, "Return")
        self.refuses(check, {HEADER: FULL.replace("/**", "/*") + body}, "no kernel-doc")

    def test_void_returns_nothing(self):
        self.accepts(check, {HEADER: NO_RETURN + "static inline void f(void)\n{\n}\n"})
        # A pointer to void is something.
        self.refuses(check, {HEADER: NO_RETURN + "static inline void *f(void)\n{\n}\n"}, "Return")

    def test_prototype(self):
        proto = "__printf(1, 2) int f(const char *fmt, ...);\n"
        source = "int f(const char *fmt, ...)\n{\n\treturn 0;\n}\n"
        self.accepts(check, {HEADER: FULL + proto})
        self.accepts(check, {HEADER: proto, "kofi/x.c": FULL + source})
        self.refuses(check, {HEADER: proto, "kofi/x.c": source}, "f() has no kernel-doc")

    def test_types(self):
        for text in ("struct t {\n\tint a;\n};\n", "enum t {\n\tA,\n};\n",
                     "union t {\n\tint a;\n};\n", "struct t {\n\tint a;\n} __packed;\n"):
            self.accepts(check, {HEADER: "/**\n * t\n */\n" + text})
            self.refuses(check, {HEADER: text}, "t has no kernel-doc")
        self.accepts(check, {HEADER: "struct t;\nextern struct t t;\nenum {\n\tA,\n};\n"})

    def test_exported(self):
        source = "int f(void)\n{\n\treturn 0;\n}\nEXPORT_SYMBOL_NS_GPL(f, KOFI_PROVIDER);\n"
        self.accepts(check, {"kofi/x.c": FULL + source})
        self.refuses(check, {"kofi/x.c": source}, "f() has no kernel-doc")
        self.refuses(check, {"prov/efa/x.c": NO_CONTEXT + source}, "Context")

    def test_private_is_free(self):
        self.accepts(check, {"kofi/x.c": "int f(void)\n{\n\treturn 0;\n}\n",
                             "kofi/x.h": "struct t {\n\tint a;\n};\n"})


class Sizes(TreeTest):
    def test_function(self):
        def source(lines):
            return "int f(void)\n{\n" + "\tg();\n" * (lines - 2) + "}\n"
        self.accepts(check_sizes, {"kofi/x.c": source(80)})
        self.refuses(check_sizes, {"kofi/x.c": source(81)}, "f() has 81 lines")

    def test_file(self):
        self.accepts(check_sizes, {"kofi/x.c": "\n" * 1000})
        self.refuses(check_sizes, {"kofi/x.c": "\n" * 1001}, "1001 lines")

    def test_core(self):
        limit = CODE_LINES["kofi/"]
        full = {f"kofi/{n}.c": "/* why */\nint a;\n" * 300 for n in range(9)}
        full |= {"kofi/queue/x.c": "int a;\n" * (limit - 2700), "kofi/match/x.c": "int a;\n" * 500}
        self.accepts(check_sizes, full)
        self.refuses(check_sizes, full | {"kofi/x.c": "int a;\n"}, f"{limit + 1} lines of code")
        self.refuses(check_sizes, full | {"kofi/match/y.c": "int a;\n"}, "501 lines of code")
