# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

from fixture import TreeTest
from layers import check_layers

# Headers that the sources of a test can include.
HOUSE = {path: "" for path in (
    "include/kofi/fabric.h", "include/kofi/provider.h", "include/kofi/queue.h", "include/kofi/side.h",
    "kofi/kofi.h",
    "kofi/queue/queue.h", "prov/efa/hw.h", "prov/efa/wire.h", "prov/efa/direct/op.h",
    "prov/efa/rdm/rdm.h", "sim/engine.h", "compat/efa_verbs.h",
    "ulp/blk/cli.h", "tests/kunit/fake.h", "tests/verbs/case.h")}


# A source, and whether it may include each of these.
INCLUDES = (
    ("include/kofi/rma.h", "<kofi/fabric.h> <linux/types.h>",
     '<rdma/ib_verbs.h> <kofi/provider.h> <kofi/queue.h> "../../kofi/kofi.h"'),
    ("include/kofi/provider.h", "<kofi/queue.h>", ""),
    ("kofi/cq.c", '"kofi.h" "queue/queue.h" <kofi/provider.h> <linux/slab.h>',
     '<rdma/ib_verbs.h> "../../prov/efa/wire.h" "../tests/kunit/fake.h" "nosuch.h"'),
    ("kofi/queue/cq.c", '"queue.h" <kofi/provider.h>', '"../kofi.h" <rdma/ib_verbs.h>'),
    ("ulp/blk/main.c", '"cli.h" <kofi/fabric.h>',
     '<kofi/provider.h> <rdma/ib_verbs.h> "../../kofi/kofi.h" "../../sim/engine.h"'),
    ("prov/efa/hw.h", '<rdma/ib_verbs.h> "../../compat/efa_verbs.h"', ""),
    ("prov/efa/hw.c", '"hw.h" <rdma/ib_verbs.h>', "<efa_verbs.h>"),
    ("prov/efa/ep.c", '"hw.h" "wire.h" <kofi/provider.h>',
     '<rdma/ib_verbs.h> "../../compat/efa_verbs.h" "../../kofi/kofi.h" "../../sim/engine.h"'),
    ("prov/efa/direct/op.c", '"op.h" "../hw.h" <kofi/provider.h>', '"../rdm/rdm.h"'),
    ("prov/efa/dgram/ep.c", '"../direct/op.h" "../hw.h" <kofi/provider.h>', '"../rdm/rdm.h"'),
    ("prov/efa/rdm/tx.c", '"rdm.h" "../hw.h" <kofi/provider.h>',
     '"../direct/op.h" <rdma/ib_verbs.h>'),
    ("prov/efa/main.c", "", '"direct/op.h" "rdm/rdm.h"'),
    ("prov/efa/trace.h", "", '"direct/op.h" "rdm/rdm.h"'),
    ("prov/efa/trace.c", '"hw.h" "direct/op.h" "rdm/rdm.h"', ""),
    ("sim/verbs/main.c", '<rdma/ib_verbs.h> "../compat/efa_verbs.h"',
     '<kofi/fabric.h> "../../prov/efa/wire.h"'),
    ("tests/verbs/send.c", '<rdma/ib_verbs.h> "../../compat/efa_verbs.h"',
     '<kofi/fabric.h> "../../prov/efa/wire.h" "../../sim/engine.h" "../kunit/fake.h"'),
    ("tests/kunit/cq_kunit.c", '"fake.h" "../../kofi/kofi.h" "../../prov/efa/wire.h" '
     '"../../sim/engine.h" <rdma/ib_verbs.h>', ""),
    ("extras/x.c", "", "<linux/slab.h>"),
)


class Includes(TreeTest):
    def test_includes(self):
        for path, good, bad in INCLUDES:
            for name in good.split():
                self.accepts(check_layers, HOUSE | {path: f"#include {name}\n"})
            for name in bad.split():
                self.refuses(check_layers, HOUSE | {path: f"#include {name}\n"}, path)

    def test_comments_include_nothing(self):
        self.accepts(check_layers, HOUSE | {
            "kofi/cq.c": "/*\n#include <rdma/ib_verbs.h>\n*/\n"})


VERSION = "#if LINUX_VERSION_CODE < 5\n#endif\n"
# Sources, text, and a word of the complaint or "".
CODE = [
    ("kofi/cq.c", VERSION, "kofi/cq.c:1: LINUX_VERSION_CODE belongs in compat/"),
    ("tests/kunit/x.c", VERSION, "compat/"),
    ("compat/compat.h", VERSION, ""),
    ("kofi/cq.c", "/* no KERNEL_VERSION here */\n", ""),
    ("kofi/x.c sim/x.c", 'MODULE_LICENSE("Dual BSD/GPL");\n', ""),
    ("kofi/x.c", 'MODULE_LICENSE("GPL");\n', "GPL"),
    ("kofi/Makefile", "CFLAGS_trace.o := -I$(src)\n", ""),
    ("Kbuild", "ccflags-y += -I$(src)/include\n", ""),
    ("sim/Makefile", "ccflags-y := -I$(src)/../prov/efa\n", "$(src)/../prov/efa"),
    ("kofi/Makefile", "kofi-y := ../prov/efa/wire.o\n", "another directory"),
    ("kofi/x.c", "EXPORT_SYMBOL_NS_GPL(fi_x, KOFI);\n", ""),
    ("kofi/x.c", 'EXPORT_SYMBOL_NS_GPL(fi_x, "KOFI");\n', ""),
    ("sim/x.c", "EXPORT_SYMBOL_IF_KUNIT(x);\n", ""),
    ("kofi/x.c", "EXPORT_SYMBOL(fi_x);\n", "fi_x"),
    ("kofi/x.c", "EXPORT_SYMBOL_GPL(fi_x);\n", "fi_x"),
    ("kofi/x.c", "EXPORT_SYMBOL_NS(fi_x, KOFI);\n", "fi_x"),
    ("kofi/x.c", "EXPORT_SYMBOL_NS_GPL(fi_x, OTHER);\n", "OTHER"),
    ("prov/efa/x.c", "EXPORT_SYMBOL_NS_GPL(x, KOFI_PROVIDER);\n", "x"),
    ("samples/x.c", "EXPORT_SYMBOL_NS_GPL(x, KOFI);\n", "x"),
]
for call in ("ib_post_send(qp, wr, &bad)", "ib_post_recv (qp, wr, &bad)", "ib_poll_cq(cq, 1, &wc)"):
    CODE += [("prov/efa/ep.c prov/efa/rdm/tx.c", f"\t{call};\n", "only hw.c"),
             ("prov/efa/hw.c tests/verbs/send.c", f"\t{call};\n", "")]
for call in ("dma_map_page(d, p, 0, 1, dir)", "dma_unmap_sg(d, sg, 1, dir)", "dma_need_sync(d, a)",
             "iommu_iova_to_phys(i, a)"):
    CODE += [("prov/efa/ep.c", f"\t{call};\n", "only dma.[ch]"),
             ("prov/efa/dma.h sim/mr.c", f"\t{call};\n", "")]
for verbs in ("struct ib_qp *qp;\n", "enum ib_qp_type t;\n", "\tib_dma_map_single(d, p, 1, 0);\n"):
    CODE += [("include/kofi/x.h kofi/x.c samples/x.c", verbs, "no verbs"), ("sim/x.c", verbs, "")]


class Code(TreeTest):
    def test_code(self):
        for paths, text, word in CODE:
            for path in paths.split():
                if word:
                    self.refuses(check_layers, {path: text}, word)
                else:
                    self.accepts(check_layers, {path: text})
