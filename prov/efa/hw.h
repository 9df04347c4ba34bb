/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device as the rest of the provider sees it, and the only place that knows
 * the header of EFA's kernel verbs. Everything goes through the functions below, so
 * that the tests can link the engine with a device that isn't there.
 */
#ifndef KEFA_HW_H
#define KEFA_HW_H

#include <linux/sizes.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <efa_verbs.h>

struct kefa_hw_qp;

/*
 * What can't be asked of the device, or must not be believed.
 *
 * Deeper queues than 512 are freed the wrong way by the driver; more than 32
 * bytes inline overrun its stack, whatever the device advertises.
 */
enum {
	KEFA_MAX_DEPTH		= 512,
	KEFA_MAX_SGE		= 2,
	KEFA_MAX_INLINE		= 32,
};

/* Not to be set; all that can be are at most 7. */
#define KEFA_RNR_UNSET		0xff

/* A kernel user can't ask for it; all devices that have RDMA have at least this. */
#define KEFA_MAX_RDMA		SZ_1G

/* When to have a ULP try again that found no DMA space. */
#define KEFA_MAP_RETRY_MS	5

/* Completions that a worker takes at a time, and before it yields. */
#define KEFA_POLL_BATCH		16
#define KEFA_POLL_BUDGET	256

/**
 * struct kefa_wr - a work request, as the device's driver wants it
 * @send: the generic part, first in each of the others
 * @srd: a send
 * @rdma: a read or write
 * @reg: a fast registration
 * @sge: local memory
 * @data: what goes inline, if it isn't posted at once
 */
struct kefa_wr {
	union {
		struct ib_send_wr	send;
		struct ib_srd_wr	srd;
		struct ib_srd_rdma_wr	rdma;
		struct ib_reg_wr	reg;
	};
	struct ib_sge	sge[KEFA_MAX_SGE];
	u8		data[KEFA_MAX_INLINE];
};

/**
 * struct kefa_recv_wr - a receive's work request
 * @wr: as verbs have it
 * @sge: memory
 */
struct kefa_recv_wr {
	struct ib_recv_wr	wr;
	struct ib_sge		sge[KEFA_MAX_SGE];
};

/**
 * struct kefa_wc - what a completion says
 * @id: the work request's
 * @status: raw status of the device
 * @len: bytes received; of a write with data always 0: the driver ORs another
 *	completion's bits into the length, so nobody knows it
 * @imm: what came with it, in host byte order as libfabric has it
 * @src_qpn: of a receive: the sender's queue pair
 * @slid: and the number of its address handle
 * @write: a receive was used up by a write with data
 * @has_imm: @imm holds
 */
struct kefa_wc {
	u64	id;
	u32	status;
	u32	len;
	u32	imm;
	u32	src_qpn;
	u16	slid;
	bool	write;
	bool	has_imm;
};

/**
 * kefa_wc_failed() - does a completion tell of a failure?
 * @wc: the completion, as verbs have it
 *
 * Context: Any.
 * Return: whether one of two says so, which should never disagree.
 */
static inline bool kefa_wc_failed(const struct ib_wc *wc)
{
	return wc->status | wc->vendor_err;
}

/**
 * kefa_wc() - what a completion says
 * @wc: as verbs have it
 *
 * Context: Any.
 * Return: the completion.
 */
static inline struct kefa_wc kefa_wc(const struct ib_wc *wc)
{
	const u32 other = wc->status == IB_WC_SUCCESS ? 0 : U32_MAX;
	const bool write = wc->opcode == IB_WC_RECV_RDMA_WITH_IMM;

	return (struct kefa_wc) {
		.id		= wc->wr_id,
		.status		= wc->vendor_err ?: other,
		.len		= write ? 0 : wc->byte_len,
		.imm		= (__force u32)wc->ex.imm_data,
		.src_qpn	= wc->src_qp,
		.slid		= wc->slid,
		.write		= write,
		.has_imm	= wc->wc_flags & IB_WC_WITH_IMM,
	};
}

/**
 * struct kefa_hw_qp - a queue pair with the completion queue that is its own
 * @pd: its protection domain
 * @qp: the queue pair
 * @cq: the completion queue, of both directions
 * @event: called in hard interrupt context when there is something to poll
 * @arg: its argument
 * @qpn: its number
 * @qkey: its key
 * @bad: how many work requests were posted, of a list that wasn't; under the
 *	caller's lock
 * @failed: and which one it was that failed; likewise
 * @recv_failed: the same of a receive; likewise
 */
struct kefa_hw_qp {
	struct ib_pd			*pd;
	struct ib_qp			*qp;
	struct ib_cq			*cq;
	void				(*event)(void *arg);
	void				*arg;
	u32				qpn;
	u32				qkey;
	unsigned int			bad;
	const struct ib_send_wr		*failed;
	const struct ib_recv_wr		*recv_failed;
};

/**
 * struct kefa_hw_qp_attr - a queue pair to be made
 * @tx_depth: work requests that can be outstanding
 * @rx_depth: receives that can be outstanding
 * @vector: completion vector
 * @rnr_retry: how often the device tries a peer again that has no receive;
 *	KEFA_RNR_UNSET for a device that can't be told
 */
struct kefa_hw_qp_attr {
	u32	tx_depth;
	u32	rx_depth;
	u32	vector;
	u8	rnr_retry;
};

/*
 * What the provider wants of a device: hw.c, or a fake device that is linked in its
 * place. Posting, polling, arming and kefa_hw_mr_map() are called in process or
 * softirq context; all but the last need the caller's lock, with bottom halves off,
 * as the driver's locks are plain. All the others sleep.
 *
 * The functions that destroy leave the object as it is when they fail, to be tried
 * again or abandoned: that is for destroy.c. So does kefa_hw_qp_create(), if
 * kefa_hw_qp.qp is set when it fails; it returns -ENXIO when the device has no event
 * queue for the completion queue. An object that was abandoned is never freed, and
 * neither is its protection domain, for kefa_hw_pd_abandon(). After
 * kefa_hw_qp_silence() a queue pair raises no event.
 *
 * kefa_hw_post_send() returns 0, or a negative errno, and kefa_hw_qp.bad is how many
 * work requests were posted; kefa_hw_poll() how many completions there were, 0 at the
 * end; kefa_hw_arm() more than 0 when there is something to poll already;
 * kefa_hw_mr_map() how many segments fit.
 */
struct ib_pd *kefa_hw_pd_create(struct ib_device *ibdev);
void kefa_hw_pd_destroy(struct ib_pd *pd);
void kefa_hw_pd_abandon(struct ib_pd *pd);
int kefa_hw_qp_create(struct kefa_hw_qp *hq, const struct kefa_hw_qp_attr *attr);
int kefa_hw_qp_destroy(struct kefa_hw_qp *hq);
void kefa_hw_qp_silence(struct kefa_hw_qp *hq);
void kefa_hw_qp_abandon(struct kefa_hw_qp *hq);
int kefa_hw_post_send(struct kefa_hw_qp *hq, struct kefa_wr *const *wrs, unsigned int count);
int kefa_hw_post_recv(struct kefa_hw_qp *hq, struct kefa_recv_wr *wrs, unsigned int count);
int kefa_hw_poll(struct kefa_hw_qp *hq, struct ib_wc *wcs, int count);
int kefa_hw_arm(struct kefa_hw_qp *hq);
struct ib_ah *kefa_hw_ah_create(struct ib_pd *pd, const u8 *gid);
int kefa_hw_ah_destroy(struct ib_ah *ah);
void kefa_hw_ah_abandon(struct ib_ah *ah);
struct ib_mr *kefa_hw_mr_create(struct ib_pd *pd, u32 max_pages);
int kefa_hw_mr_map(struct ib_mr *mr, struct scatterlist *sg, int count,
		   unsigned int page_size);
int kefa_hw_mr_destroy(struct ib_mr *mr);
void kefa_hw_mr_abandon(struct ib_mr *mr);

/**
 * kefa_wr_init() - prepare a work request, that is used again and again
 * @wr: the work request
 * @pd: its queue pair's
 *
 * Sets what all its uses have in common, and none of them changes.
 *
 * Context: Any.
 */
static inline void kefa_wr_init(struct kefa_wr *wr, struct ib_pd *pd)
{
	int i;

	wr->send.next = NULL;
	wr->send.sg_list = wr->sge;
	for (i = 0; i < KEFA_MAX_SGE; i++)
		wr->sge[i].lkey = pd->local_dma_lkey;
}

/**
 * kefa_recv_wr_init() - prepare a receive's work request likewise
 * @recv: the work request
 * @pd: its queue pair's
 *
 * A receive without an SGE would never complete: there is always one.
 *
 * Context: Any.
 */
static inline void kefa_recv_wr_init(struct kefa_recv_wr *recv,
				     struct ib_pd *pd)
{
	int i;

	recv->wr.next = NULL;
	recv->wr.sg_list = recv->sge;
	for (i = 0; i < KEFA_MAX_SGE; i++)
		recv->sge[i].lkey = pd->local_dma_lkey;
}

/**
 * kefa_wr_begin() - begin a use of a work request; the rest is the operation's
 * @wr: the work request
 * @id: comes back in its completion
 * @op: the operation
 *
 * Context: Any.
 */
static inline void kefa_wr_begin(struct kefa_wr *wr, u64 id,
				 enum ib_wr_opcode op)
{
	wr->send.wr_id = id;
	wr->send.num_sge = 0;
	wr->send.opcode = op;
	wr->send.send_flags = IB_SEND_SIGNALED;
	wr->send.ex.imm_data = 0;
}

/**
 * kefa_wr_send() - begin a send; the caller adds SGEs
 * @wr: the work request
 * @id: comes back in its completion
 * @ah: address handle of the peer
 * @qpn: its queue pair
 * @qkey: and that one's key
 *
 * Context: Any.
 */
static inline void kefa_wr_send(struct kefa_wr *wr, u64 id, struct ib_ah *ah,
				u32 qpn, u32 qkey)
{
	kefa_wr_begin(wr, id, IB_WR_SEND);
	wr->srd.ah = ah;
	wr->srd.remote_qpn = qpn;
	wr->srd.remote_qkey = qkey;
}

/**
 * kefa_wr_rdma() - begin a read or write; the caller adds one SGE
 * @wr: the work request
 * @id: comes back in its completion
 * @write: a write
 * @ah: address handle of the peer
 * @qpn: its queue pair
 * @qkey: and that one's key
 * @addr: address in the peer's region
 * @rkey: the region's key
 *
 * Context: Any.
 */
static inline void kefa_wr_rdma(struct kefa_wr *wr, u64 id, bool write,
				struct ib_ah *ah, u32 qpn, u32 qkey, u64 addr,
				u32 rkey)
{
	kefa_wr_send(wr, id, ah, qpn, qkey);
	wr->send.opcode = write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
	wr->rdma.remote_addr = addr;
	wr->rdma.rkey = rkey;
}

/**
 * kefa_wr_sge() - add local memory to a work request
 * @wr: the work request
 * @addr: DMA address
 * @len: bytes
 *
 * Context: Any.
 */
static inline void kefa_wr_sge(struct kefa_wr *wr, u64 addr, u32 len)
{
	struct ib_sge *sge = &wr->sge[wr->send.num_sge++];

	sge->addr = addr;
	sge->length = len;
}

/**
 * kefa_wr_inline() - have a send's data travel in the work request
 * @wr: the work request
 * @data: the data, which must be there until the work request was posted: its
 *	own, if that isn't at once
 * @len: bytes, KEFA_MAX_INLINE at most
 *
 * Context: Any.
 */
static inline void kefa_wr_inline(struct kefa_wr *wr, const void *data, u32 len)
{
	wr->send.send_flags |= IB_SEND_INLINE;
	wr->send.num_sge = 1;
	wr->sge[0].addr = (uintptr_t)data;
	wr->sge[0].length = len;
}

/**
 * kefa_wr_reg() - begin a registration
 * @wr: the work request
 * @id: comes back in its completion
 * @mr: region that was mapped before; takes a new key
 * @access: enum ib_access_flags
 *
 * Context: Any.
 */
static inline void kefa_wr_reg(struct kefa_wr *wr, u64 id, struct ib_mr *mr,
			       int access)
{
	kefa_wr_begin(wr, id, IB_WR_REG_MR);
	efa_inc_fast_reg_key_gen(mr);
	wr->reg.mr = mr;
	wr->reg.key = mr->rkey;
	wr->reg.access = access;
}

/**
 * kefa_wr_inv() - begin an invalidation
 * @wr: the work request
 * @id: comes back in its completion
 * @key: of the region
 *
 * Context: Any.
 */
static inline void kefa_wr_inv(struct kefa_wr *wr, u64 id, u32 key)
{
	kefa_wr_begin(wr, id, IB_WR_LOCAL_INV);
	wr->send.ex.invalidate_rkey = key;
}

/**
 * kefa_wr_imm() - have data arrive with a send or write
 * @wr: the work request
 * @data: the data
 *
 * Context: Any.
 */
static inline void kefa_wr_imm(struct kefa_wr *wr, u32 data)
{
	wr->send.opcode = wr->send.opcode == IB_WR_SEND ?
			  IB_WR_SEND_WITH_IMM : IB_WR_RDMA_WRITE_WITH_IMM;
	/* As libfabric has it: what looks like big endian is the host's. */
	wr->send.ex.imm_data = (__force __be32)data;
}

#endif /* KEFA_HW_H */
