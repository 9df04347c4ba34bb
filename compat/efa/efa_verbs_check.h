/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks of the layout in <efa_verbs.h>, whichever header was found. Work requests
 * cross a module boundary with this layout, so a difference must stop the build.
 */
#ifndef COMPAT_EFA_VERBS_CHECK_H
#define COMPAT_EFA_VERBS_CHECK_H

#include <linux/build_bug.h>
#include <efa_verbs.h>

static_assert(EFA_VERBS_VERSION == 1);
static_assert(EFA_QPT_SRD == 0x1000);
static_assert(EFA_MR_GEN_SHIFT == 20);
static_assert(EFA_MR_GEN_MASK == 0x00f00000);

#define EFA_WR_SIZE	sizeof(struct ib_send_wr)

static_assert(offsetof(struct ib_srd_wr, wr) == 0);
static_assert(offsetof(struct ib_srd_wr, ah) == EFA_WR_SIZE);
static_assert(offsetof(struct ib_srd_wr, remote_qpn) == EFA_WR_SIZE + 8);
static_assert(offsetof(struct ib_srd_wr, remote_qkey) == EFA_WR_SIZE + 12);
static_assert(sizeof(struct ib_srd_wr) == EFA_WR_SIZE + 16);
static_assert(offsetof(struct ib_srd_rdma_wr, wr) == 0);
static_assert(offsetof(struct ib_srd_rdma_wr, remote_addr) == EFA_WR_SIZE + 16);
static_assert(offsetof(struct ib_srd_rdma_wr, rkey) == EFA_WR_SIZE + 24);
static_assert(sizeof(struct ib_srd_rdma_wr) == EFA_WR_SIZE + 32);

#undef EFA_WR_SIZE

#endif /* COMPAT_EFA_VERBS_CHECK_H */
