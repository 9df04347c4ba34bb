// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The EFA provider's own sources except hw.c and dma.c, in whose place the fake device has
 * efake_hw.c and efake_dma.c. They are compiled once more, so that the suites can use private
 * functions without exports.
 */
#define pr_fmt(fmt) "kofi_efa: " fmt

#include "efake.h"

/* Without an alias: fi_getinfo() loads the real provider by that. */
#undef MODULE_ALIAS_KOFI_PROVIDER
#define MODULE_ALIAS_KOFI_PROVIDER(name)	MODULE_INFO(not_alias, name)

/* Suites turn it on for endpoints of their own. */
#define KEFA_LOCAL_TRANSFER	false

#include "../../prov/efa/main.c"
#include "../../prov/efa/wq.c"
#include "../../prov/efa/device.c"
#include "../../prov/efa/dev.c"
#include "../../prov/efa/probe.c"
#include "../../prov/efa/info.c"
#include "../../prov/efa/destroy.c"
#include "../../prov/efa/domain.c"
#include "../../prov/efa/ah.c"
#include "../../prov/efa/slid.c"
#include "../../prov/efa/av.c"
#include "../../prov/efa/ep.c"
#include "../../prov/efa/notify.c"
#include "../../prov/efa/mem.c"
#include "../../prov/efa/copy.c"
#include "../../prov/efa/direct/plain.c"
#include "../../prov/efa/direct/post.c"
#include "../../prov/efa/direct/progress.c"
#include "../../prov/efa/direct/op.c"
#include "../../prov/efa/direct/rest.c"
#include "../../prov/efa/direct/rnr.c"
#include "../../prov/efa/direct/quiet.c"
#include "../../prov/efa/mr.c"
#include "../../prov/efa/direct/mr.c"
#include "../../prov/efa/direct/ep.c"
#include "../../prov/efa/dgram/plain.c"
#include "../../prov/efa/dgram/ep.c"
#include "../../prov/efa/mr_key.c"
#include "../../prov/efa/mr_map.c"
#include "../../prov/efa/mr_pool.c"
#include "../../prov/efa/mrq.c"
#include "../../prov/efa/status.c"
#include "../../prov/efa/cpus.c"
#include "../../prov/efa/debugfs.c"
#include "../../prov/efa/rdm/knobs.c"
#include "../../prov/efa/rdm/local.c"
#include "../../prov/efa/rdm/ep.c"
#include "../../prov/efa/rdm/report.c"
#include "../../prov/efa/rdm/send.c"
#include "../../prov/efa/rdm/recv.c"
#include "../../prov/efa/rdm/tx.c"
#include "../../prov/efa/rdm/rx.c"
#include "../../prov/efa/rdm/msg.c"
#include "../../prov/efa/rdm/ident.c"
#include "../../prov/efa/rdm/strange.c"
#include "../../prov/efa/rdm/early.c"
#include "../../prov/efa/rdm/fast_medium.c"
#include "../../prov/efa/rdm/fast_read.c"
#include "../../prov/efa/rdm/fast_far.c"
#include "../../prov/efa/rdm/fast_atomic.c"
#include "../../prov/efa/rdm/fast_local.c"
#include "../../prov/efa/rdm/answer.c"
#include "../../prov/efa/rdm/longcts.c"
#include "../../prov/efa/rdm/longread.c"
#include "../../prov/efa/rdm/far.c"
#include "../../prov/efa/rdm/rdma.c"
#include "../../prov/efa/rdm/target.c"
#include "../../prov/efa/rdm/asked.c"
#include "../../prov/efa/rdm/fetch.c"
#include "../../prov/efa/rdm/atomic.c"
#include "../../prov/efa/rdm/rta.c"
#include "../../prov/efa/rdm/source.c"
#include "../../prov/efa/rdm/silent.c"
#include "../../prov/efa/rdm/fair.c"
#include "../../prov/efa/rdm/join.c"
#include "../../prov/efa/rdm/quiet.c"
#include "../../prov/efa/rdm/progress.c"
#include "../../prov/efa/rdm/fast_send.c"
#include "../../prov/efa/rdm/fast_eager.c"
#include "../../prov/efa/rdm/show.c"
/* Last, as the tracepoints are created by each trace.h that follows it. */
#include "../../prov/efa/trace.c"
