# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

from fixture import TreeTest
from layers import check_layers

# Headers that the sources of a test can include.
HOUSE = {path: "" for path in (
    "include/kofi/fabric.h", "include/kofi/provider.h", "include/kofi/queue.h",
    "kofi/kofi.h",
    "kofi/queue/queue.h", "prov/efa/hw.h", "prov/efa/wire.h", "sim/engine.h", "compat/efa_verbs.h",
    "ulp/blk/cli.h", "tests/kunit/fake.h", "tests/verbs/case.h")}


class Includes(TreeTest):
    """Each line is one source that may, or may not, include something."""

    def judge(self, path, *directives):
        text = "".join(f"#include {d}\n" for d in directives)
        return self.complaints(check_layers, HOUSE | {path: text})

    def may(self, path, *directives):
        self.assertEqual(self.judge(path, *directives), [])

    def may_not(self, path, directive):
        self.assertEqual(len(self.judge(path, directive)), 1, (path, directive))

    def test_public(self):
        self.may("include/kofi/rma.h", "<kofi/fabric.h>", "<linux/types.h>")
        self.may_not("include/kofi/rma.h", "<rdma/ib_verbs.h>")
        self.may_not("include/kofi/rma.h", "<kofi/provider.h>")
        self.may_not("include/kofi/rma.h", "<kofi/queue.h>")
        self.may("include/kofi/provider.h", "<kofi/queue.h>")
        self.may_not("include/kofi/rma.h", '"../../kofi/kofi.h"')

    def test_core(self):
        self.may("kofi/cq.c", '"kofi.h"', "<kofi/provider.h>", "<linux/slab.h>")
        self.may("kofi/queue/cq.c", '"queue.h"', "<kofi/provider.h>")
        self.may("kofi/node.c", '"queue/queue.h"')
        self.may_not("kofi/queue/cq.c", '"../kofi.h"')
        self.may_not("kofi/queue/cq.c", "<rdma/ib_verbs.h>")
        self.may_not("kofi/cq.c", "<rdma/ib_verbs.h>")
        self.may_not("kofi/cq.c", '"../../prov/efa/wire.h"')
        self.may_not("kofi/cq.c", '"../tests/kunit/fake.h"')
        self.may_not("kofi/cq.c", '"nosuch.h"')

    def test_samples(self):
        self.may("ulp/blk/main.c", '"cli.h"', "<kofi/fabric.h>")
        self.may_not("ulp/blk/main.c", "<kofi/provider.h>")
        self.may_not("ulp/blk/main.c", "<rdma/ib_verbs.h>")
        self.may_not("ulp/blk/main.c", '"../../kofi/kofi.h"')
        self.may_not("ulp/blk/main.c", '"../../sim/engine.h"')

    def test_provider(self):
        self.may("prov/efa/hw.h", "<rdma/ib_verbs.h>", '"../../compat/efa_verbs.h"')
        self.may("prov/efa/hw.c", '"hw.h"', "<rdma/ib_verbs.h>")
        self.may("prov/efa/ep.c", '"hw.h"', '"wire.h"', "<kofi/provider.h>")
        self.may_not("prov/efa/ep.c", "<rdma/ib_verbs.h>")
        self.may_not("prov/efa/ep.c", '"../../compat/efa_verbs.h"')
        self.may_not("prov/efa/hw.c", "<efa_verbs.h>")
        self.may_not("prov/efa/ep.c", '"../../kofi/kofi.h"')
        self.may_not("prov/efa/ep.c", '"../../sim/engine.h"')

    def test_device_and_its_tests(self):
        for path in ("sim/verbs/main.c", "tests/verbs/send.c"):
            self.may(path, "<rdma/ib_verbs.h>", '"../compat/efa_verbs.h"'
                     if path.startswith("sim") else '"../../compat/efa_verbs.h"')
            self.may_not(path, "<kofi/fabric.h>")
        self.may_not("sim/verbs/main.c", '"../../prov/efa/wire.h"')
        self.may_not("tests/verbs/send.c", '"../../prov/efa/wire.h"')
        self.may_not("tests/verbs/send.c", '"../../sim/engine.h"')
        self.may_not("tests/verbs/send.c", '"../kunit/fake.h"')

    def test_tests(self):
        self.may("tests/kunit/cq_kunit.c", '"fake.h"', '"../../kofi/kofi.h"',
                 '"../../prov/efa/wire.h"', '"../../sim/engine.h"', "<rdma/ib_verbs.h>")

    def test_new_directory(self):
        self.assertEqual(len(self.judge("extras/x.c", "<linux/slab.h>")), 1)

    def test_comments_include_nothing(self):
        self.accepts(check_layers, HOUSE | {
            "kofi/cq.c": "/*\n#include <rdma/ib_verbs.h>\n*/\n"})


class Code(TreeTest):
    def one(self, path, text):
        return {path: text}

    def test_versions(self):
        bad = "#if LINUX_VERSION_CODE < 5\n#endif\n"
        self.refuses(check_layers, self.one("kofi/cq.c", bad), "kofi/cq.c:1", "compat/")
        self.refuses(check_layers, self.one("tests/kunit/x.c", bad), "compat/")
        self.accepts(check_layers, self.one("compat/compat.h", bad))
        self.accepts(check_layers, self.one("kofi/cq.c", "/* no KERNEL_VERSION here */\n"))

    def test_device_calls(self):
        for call in ("ib_post_send(qp, wr, &bad)", "ib_post_recv (qp, wr, &bad)",
                     "ib_poll_cq(cq, 1, &wc)"):
            text = f"void f(void)\n{{\n\t{call};\n}}\n"
            self.refuses(check_layers, self.one("prov/efa/ep.c", text), "only hw.c")
            self.accepts(check_layers, self.one("prov/efa/hw.c", text))
            self.accepts(check_layers, self.one("tests/verbs/send.c", text))

    def test_dma_calls(self):
        for call in ("dma_map_page(d, p, 0, 1, dir)", "dma_unmap_sg(d, sg, 1, dir)",
                     "dma_need_sync(d, a)", "iommu_iova_to_phys(i, a)"):
            text = f"void f(void)\n{{\n\t{call};\n}}\n"
            self.refuses(check_layers, self.one("prov/efa/ep.c", text), "only dma.[ch]")
            self.accepts(check_layers, self.one("prov/efa/dma.h", text))
            self.accepts(check_layers, self.one("sim/mr.c", text))

    def test_no_verbs_above(self):
        for text in ("struct ib_qp *qp;\n", "enum ib_qp_type t;\n",
                     "void f(void)\n{\n\tib_dma_map_single(d, p, 1, 0);\n}\n"):
            for path in ("include/kofi/x.h", "kofi/x.c", "samples/x.c"):
                self.refuses(check_layers, self.one(path, text), "no verbs")
            self.accepts(check_layers, self.one("sim/x.c", text))

    def test_exports(self):
        def export(path, line):
            return self.one(path, f"{line};\n")
        self.accepts(check_layers, export("kofi/x.c", "EXPORT_SYMBOL_NS_GPL(fi_x, KOFI)"))
        self.accepts(check_layers, export("kofi/x.c", 'EXPORT_SYMBOL_NS_GPL(fi_x, "KOFI")'))
        self.accepts(check_layers, export("sim/x.c", "EXPORT_SYMBOL_IF_KUNIT(x)"))
        self.refuses(check_layers, export("kofi/x.c", "EXPORT_SYMBOL(fi_x)"), "fi_x")
        self.refuses(check_layers, export("kofi/x.c", "EXPORT_SYMBOL_GPL(fi_x)"), "fi_x")
        self.refuses(check_layers, export("kofi/x.c", "EXPORT_SYMBOL_NS(fi_x, KOFI)"), "fi_x")
        self.refuses(check_layers, export("kofi/x.c", "EXPORT_SYMBOL_NS_GPL(fi_x, OTHER)"),
                     "OTHER")
        self.refuses(check_layers, export("prov/efa/x.c",
                                          "EXPORT_SYMBOL_NS_GPL(x, KOFI_PROVIDER)"), "x")
        self.refuses(check_layers, export("samples/x.c", "EXPORT_SYMBOL_NS_GPL(x, KOFI)"), "x")

    def test_module_licence(self):
        self.accepts(check_layers, self.one("kofi/x.c", 'MODULE_LICENSE("Dual BSD/GPL");\n'))
        self.refuses(check_layers, self.one("kofi/x.c", 'MODULE_LICENSE("GPL");\n'), "GPL")

    def test_kbuild_flags(self):
        self.accepts(check_layers, self.one("kofi/Makefile", "CFLAGS_trace.o := -I$(src)\n"))
        self.accepts(check_layers, self.one("Kbuild", "ccflags-y += -I$(src)/include\n"))
        self.refuses(check_layers, self.one("sim/Makefile", "ccflags-y := -I$(src)/../prov/efa\n"),
                     "$(src)/../prov/efa")
        self.refuses(check_layers, self.one("kofi/Makefile", "kofi-y := ../prov/efa/wire.o\n"),
                     "another directory")
