/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider's interface to the device, and the only header that includes the header of
 * EFA's kernel verbs. All access to the device goes through these functions, so that tests
 * can link the engine with a fake device.
 */
#ifndef KEFA_HW_H
#define KEFA_HW_H

#include <linux/sizes.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <efa_verbs.h>

struct kefa_hw_qp;

/*
 * Limits that the device doesn't report, or reports wrongly.
 *
 * The driver frees queues deeper than 512 wrongly, and more than 32 inline bytes
 * overrun its stack, whatever the device advertises.
 */
enum {
	KEFA_MAX_DEPTH		= 512,
	KEFA_MAX_SGE		= 2,
	KEFA_MAX_INLINE		= 32,
};

/* Don't set the number of retries, which is at most 7. */
#define KEFA_RNR_UNSET		0xff

/* Kernel verbs don't report the limit; all devices with RDMA support at least this. */
#define KEFA_MAX_RDMA		SZ_1G

/* Time after which a ULP is notified after a post failed for lack of DMA space. */
#define KEFA_MAP_RETRY_MS	5
/* Delay after which a ULP is told to try again for which the device has no region. */
#define KEFA_REGION_RETRY_MS	100

/* Completions that a worker polls at a time, and in all before it yields. */
#define KEFA_POLL_BATCH		16
#define KEFA_POLL_BUDGET	256

/**
 * struct kefa_wr - a work request in the format of the device's driver
 * @send: the generic part, which is first in each of the others
 * @srd: a send
 * @ud: a send of a queue pair for datagrams
 * @rdma: a read or write
 * @reg: a fast registration
 * @sge: local memory
 * @data: inline data of a work request that isn't posted at once
 */
struct kefa_wr {
	union {
		struct ib_send_wr	send;
		struct ib_srd_wr	srd;
		struct ib_ud_wr		ud;
		struct ib_srd_rdma_wr	rdma;
		struct ib_reg_wr	reg;
	};
	struct ib_sge	sge[KEFA_MAX_SGE];
	u8		data[KEFA_MAX_INLINE];
};

/**
 * struct kefa_recv_wr - a work request of a receive
 * @wr: the work request of verbs
 * @sge: memory
 */
struct kefa_recv_wr {
	struct ib_recv_wr	wr;
	struct ib_sge		sge[KEFA_MAX_SGE];
};

/**
 * struct kefa_wc - a completion
 * @id: id of the work request
 * @status: raw status of the device
 * @len: bytes received; always 0 for a write with data, because the driver ORs bits of
 *	another completion into its length
 * @imm: immediate data, in host byte order as in libfabric
 * @src_qpn: for a receive, number of the sender's queue pair
 * @slid: for a receive, number of the sender's address handle
 * @write: a write with data consumed a receive
 * @has_imm: @imm is valid
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
 * kefa_wc_failed() - check whether a completion reports a failure
 * @wc: the completion of verbs
 *
 * Context: Any.
 * Return: true if its status or the device's raw status isn't success; the two should
 * always agree.
 */
static inline bool kefa_wc_failed(const struct ib_wc *wc)
{
	return wc->status | wc->vendor_err;
}

/**
 * kefa_wc_read() - convert a completion of verbs
 * @wc: the completion of verbs
 *
 * Context: Any.
 * Return: the completion.
 */
static inline struct kefa_wc kefa_wc_read(const struct ib_wc *wc)
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
 * struct kefa_hw_qp - a queue pair with its own completion queues
 * @pd: protection domain
 * @qp: the queue pair
 * @cq: the completion queue of receives, and without @scq that of both directions
 * @scq: the completion queue of sends, or NULL
 * @event: called in hard interrupt context when there are completions to poll
 * @arg: argument of @event
 * @qpn: number of the queue pair
 * @qkey: Q_Key of the queue pair
 * @bad: after a failed post, number of work requests that were posted; under the caller's
 *	lock
 * @failed: the send work request that failed; under the caller's lock
 * @recv_failed: the receive work request that failed; under the caller's lock
 */
struct kefa_hw_qp {
	struct ib_pd			*pd;
	struct ib_qp			*qp;
	struct ib_cq			*cq;
	struct ib_cq			*scq;
	void				(*event)(void *arg);
	void				*arg;
	u32				qpn;
	u32				qkey;
	unsigned int			bad;
	const struct ib_send_wr		*failed;
	const struct ib_recv_wr		*recv_failed;
};

/**
 * struct kefa_hw_qp_attr - attributes of a new queue pair
 * @tx_depth: maximum number of outstanding work requests
 * @rx_depth: maximum number of outstanding receives
 * @vector: completion vector
 * @rnr_retry: number of times that the device retries a peer without a receive;
 *	KEFA_RNR_UNSET to not set it
 * @ud: the queue pair is for datagrams, whose sends kefa_wr_send_ud() begins
 * @split: sends have a completion queue of their own
 */
struct kefa_hw_qp_attr {
	u32	tx_depth;
	u32	rx_depth;
	u32	vector;
	u8	rnr_retry;
	bool	ud;
	bool	split;
};

/*
 * Functions of a device, implemented by hw.c or by a fake device that is linked in its
 * place. Posting, polling, arming and kefa_hw_mr_map() are called in process or
 * softirq context. Posting, polling and arming need the caller's lock, with bottom halves
 * off, because the driver uses plain spin locks. All other functions sleep.
 *
 * If a destroy function fails, the object remains, and destroy.c retries or abandons it.
 * The same holds if kefa_hw_qp_create() fails with kefa_hw_qp.qp set; it returns -ENXIO
 * when the device has no event queue for the completion queue. An abandoned object is
 * never freed, and neither is its protection domain: see kefa_hw_pd_abandon(). After
 * kefa_hw_qp_silence() a queue pair raises no events.
 *
 * kefa_hw_post_send() returns 0, or a negative errno with the number of posted work
 * requests in kefa_hw_qp.bad; kefa_hw_poll() the number of completions, 0 if there are
 * none; kefa_hw_arm() more than 0 if there are already completions to poll. With
 * kefa_hw_qp_attr.split these two concern receives, and kefa_hw_poll_tx() and kefa_hw_arm_tx()
 * sends;
 * kefa_hw_mr_map() the number of segments that fit.
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
int kefa_hw_poll_tx(struct kefa_hw_qp *hq, struct ib_wc *wcs, int count);
int kefa_hw_arm_tx(struct kefa_hw_qp *hq);
struct ib_ah *kefa_hw_ah_create(struct ib_pd *pd, const u8 *gid);
int kefa_hw_ah_destroy(struct ib_ah *ah);
void kefa_hw_ah_abandon(struct ib_ah *ah);
struct ib_mr *kefa_hw_mr_create(struct ib_pd *pd, u32 max_pages);
int kefa_hw_mr_map(struct ib_mr *mr, struct scatterlist *sg, int count,
		   unsigned int page_size);
int kefa_hw_mr_destroy(struct ib_mr *mr);
void kefa_hw_mr_abandon(struct ib_mr *mr);

/**
 * kefa_wr_init() - initialize a reusable work request
 * @wr: the work request
 * @pd: protection domain of its queue pair
 *
 * Sets the members that are the same for all uses and that no use changes.
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
 * kefa_recv_wr_init() - initialize a reusable work request of a receive
 * @recv: the work request
 * @pd: protection domain of its queue pair
 *
 * There is always an SGE, because a receive without one would never complete.
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
 * kefa_wr_begin() - begin a use of a work request
 * @wr: the work request
 * @id: id for the completion
 * @op: the operation, which sets its own members afterwards
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
 * @id: id for the completion
 * @ah: address handle of the peer
 * @qpn: number of the peer's queue pair
 * @qkey: Q_Key of the peer's queue pair
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
 * kefa_wr_send_ud() - begin a send of a datagram; the caller adds SGEs
 * @wr: the work request
 * @id: id for the completion
 * @ah: address handle of the peer
 * @qpn: number of the peer's queue pair
 * @qkey: Q_Key of the peer's queue pair
 *
 * Context: Any.
 */
static inline void kefa_wr_send_ud(struct kefa_wr *wr, u64 id, struct ib_ah *ah,
				   u32 qpn, u32 qkey)
{
	kefa_wr_begin(wr, id, IB_WR_SEND);
	wr->ud.ah = ah;
	wr->ud.remote_qpn = qpn;
	wr->ud.remote_qkey = qkey;
}

/**
 * kefa_wr_rdma() - begin a read or write; the caller adds one SGE
 * @wr: the work request
 * @id: id for the completion
 * @write: a write, else a read
 * @ah: address handle of the peer
 * @qpn: number of the peer's queue pair
 * @qkey: Q_Key of the peer's queue pair
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
 * @len: length in bytes
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
 * kefa_wr_inline() - put a send's data into the work request
 * @wr: the work request
 * @data: the data, which must stay valid until the work request is posted; use wr->data
 *	for a work request that isn't posted at once
 * @len: length in bytes, at most KEFA_MAX_INLINE
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
 * kefa_hw_key_slot() - get the part of a region's key that doesn't change
 * @key: remote key of a region
 *
 * Context: Any.
 * Return: the key without the generation, which each registration changes.
 */
static inline u32 kefa_hw_key_slot(u32 key)
{
	return key & ~EFA_MR_GEN_MASK;
}

/**
 * kefa_wr_reg() - begin a registration
 * @wr: the work request
 * @id: id for the completion
 * @mr: region that was mapped before; gets a new key
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
 * @id: id for the completion
 * @mr: the region
 *
 * The driver hands the key to the device, which wants the local one.
 *
 * Context: Any.
 */
static inline void kefa_wr_inv(struct kefa_wr *wr, u64 id, const struct ib_mr *mr)
{
	kefa_wr_begin(wr, id, IB_WR_LOCAL_INV);
	wr->send.ex.invalidate_rkey = mr->lkey;
}

/**
 * kefa_wr_imm() - add immediate data to a send or write
 * @wr: the work request
 * @data: the data
 *
 * Context: Any.
 */
static inline void kefa_wr_imm(struct kefa_wr *wr, u32 data)
{
	wr->send.opcode = wr->send.opcode == IB_WR_SEND ?
			  IB_WR_SEND_WITH_IMM : IB_WR_RDMA_WRITE_WITH_IMM;
	/* As in libfabric, the value is in host byte order despite its type. */
	wr->send.ex.imm_data = (__force __be32)data;
}

#endif /* KEFA_HW_H */
