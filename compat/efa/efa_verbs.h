/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The project's declaration of the kernel-verbs ABI of the EFA driver, version 1.
 *
 * The mainline efa driver has no kernel verbs, and Amazon's driver has this header only in
 * its source directory, so building must be possible without it. This file has the name of
 * the real header: with EFA_SRC=<the driver's source> that directory comes first, and the
 * same #include finds the real header. efa_verbs_check.h checks that the two agree.
 */
#ifndef COMPAT_EFA_VERBS_H
#define COMPAT_EFA_VERBS_H

#include <rdma/ib_verbs.h>

#define EFA_VERBS_VERSION	1

/* ib_core has no QP type for SRD. */
#define EFA_QPT_SRD		IB_QPT_RESERVED1

/* The key of a region contains a generation, which changes before each IB_WR_REG_MR. */
#define EFA_MR_GEN_SHIFT	20
#define EFA_MR_GEN_MASK		0x00F00000

/**
 * struct ib_srd_wr - a send on an SRD queue pair
 * @wr: the generic part
 * @ah: address handle of the peer
 * @remote_qpn: number of the peer's queue pair
 * @remote_qkey: Q_Key of the peer's queue pair
 */
struct ib_srd_wr {
	struct ib_send_wr wr;
	struct ib_ah *ah;
	u32 remote_qpn;
	u32 remote_qkey;
};

/**
 * struct ib_srd_rdma_wr - an RDMA read or write on an SRD queue pair
 * @wr: the common part with a send
 * @remote_addr: I/O virtual address in the remote region
 * @rkey: key of the remote region
 */
struct ib_srd_rdma_wr {
	struct ib_srd_wr wr;
	u64 remote_addr;
	u32 rkey;
};

static inline const struct ib_srd_wr *srd_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_srd_wr, wr);
}

static inline const struct ib_srd_rdma_wr *
srd_rdma_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_srd_rdma_wr, wr.wr);
}

/* Advance the generation of the rkey, and give the lkey the same one. */
static inline void efa_inc_fast_reg_key_gen(struct ib_mr *mr)
{
	u32 gen = (mr->rkey + BIT(EFA_MR_GEN_SHIFT)) & EFA_MR_GEN_MASK;

	mr->rkey = (mr->rkey & ~EFA_MR_GEN_MASK) | gen;
	mr->lkey = (mr->lkey & ~EFA_MR_GEN_MASK) | gen;
}

#endif /* COMPAT_EFA_VERBS_H */
