/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints of fabric efa-direct, and functions by file. */
#ifndef KEFA_DIRECT_H
#define KEFA_DIRECT_H

#include <linux/list.h>
#include <linux/workqueue.h>
#include "../copy.h"
#include "../ep.h"
#include "op.h"
#include "rest.h"
#include "rnr.h"

struct kefa_mr;

/**
 * struct kefa_slots - slots of one direction that have no operation; under kefa_ep.lock
 * @first: list of the free slots, the one that was freed last first, because its memory
 *	is still in the cache
 * @ended: list of the slots of operations that ended and aren't reported yet, oldest first
 * @ended_tail: pointer to which the next slot of @ended is linked
 * @nended: number of slots on @ended
 */
struct kefa_slots {
	struct kefa_op	*first;
	struct kefa_op	*ended;
	struct kefa_op	**ended_tail;
	u32		nended;
};

/**
 * struct kefa_direct - an endpoint of fabric efa-direct, or of datagrams
 * @ep: the endpoint
 * @nops: number of slots of both sides
 * @rnr_first: slot of the first work request to be resent, plus 1; 0 for none
 * @ops: the slots, the sending side's first
 * @again: work requests kept for resending, by slot of the sending side; or NULL
 * @rest_mem: memory of all of @rests and @rests_free
 * @rests: partly posted reads and writes, oldest first
 * @rnr_tail: pointer to which the next work request to be resent is linked
 * @special: @again isn't NULL, or kefa_ep.split is set: see kefa_plain_locked()
 * @ah_wanted: an address handle is waiting to be destroyed until operations are done
 * @rnr_ms: FI_OPT_RNR_TIMEOUT, or 0; under kefa_dev.lock
 * @tx: slots of the sending side
 * @rx: slots of the receiving side
 * @prefix: bytes that the device writes in front of a received message
 * @ud: the queue pair is for datagrams
 * @nrnr: with kefa_ep.split, number of outstanding work requests whose receiver was not ready
 * @rests_free: free records for @rests
 * @rnr_work: resends work requests
 *
 * The members from @nops to @rnr_ms are in one cache line, and @tx and @rx in another one. Posts
 * and polls use both. kefa_ep.lock protects all that are written while the endpoint is enabled.
 */
struct kefa_direct {
	struct kefa_ep		ep;
	u32			nops;
	u32			rnr_first;
	struct kefa_op		*ops;
	struct kefa_resend	*again;
	struct kefa_rest	*rest_mem;
	struct list_head	rests;
	u32			*rnr_tail;
	bool			special;
	bool			ah_wanted;
	u32			rnr_ms;
	struct kefa_slots	tx;
	struct kefa_slots	rx;
	u32			prefix;
	bool			ud;
	u32			nrnr;
	struct list_head	rests_free;
	struct delayed_work	rnr_work;
};

static inline struct kefa_direct *to_kefa_direct(const struct kefa_ep *ep)
{
	return container_of(ep, struct kefa_direct, ep);
}

/* ep.c */

struct kefa_direct *kefa_direct_new(struct kefa_domain *dom, const struct fi_info *info,
				    const struct kefa_ep_kind *kind, u64 caps);
int kefa_direct_init(struct kefa_ep *ep, struct kefa_hw_qp_attr *attr);
void kefa_direct_fini(struct kefa_ep *ep);

/* progress.c */

void kefa_direct_work(struct work_struct *work);
void kefa_direct_soft(struct work_struct *work);
unsigned int kefa_direct_poll(struct kefa_ep *ep, unsigned int budget);
void kefa_direct_flush(struct kefa_ep *ep);
void kefa_direct_refused(struct kefa_ep *ep, unsigned int n, int err);
void kefa_direct_rx_refused(struct kefa_ep *ep, unsigned int n, int err);
void kefa_direct_rx_flush(struct kefa_ep *ep);
void kefa_direct_rx_hold(struct kefa_ep *ep, bool more);
void kefa_direct_fail_all(struct kefa_ep *ep, int err);
bool kefa_direct_read(void *arg, bool last, struct kofi_cq_reader *reader);
bool kefa_direct_read_split(void *arg, bool last, struct kofi_cq_reader *reader);

/* post.c */

ssize_t kefa_direct_tx(struct fid_ep *ep_fid, struct kofi_req *req);
ssize_t kefa_direct_rx(struct fid_ep *ep_fid, struct kofi_req *req);
extern const struct kofi_req_ops kefa_direct_req_ops;

/* plain.c */

void kefa_plain_limits(struct kefa_ep *ep);
extern const struct fi_ops_msg kefa_direct_msg_ops;
extern const struct fi_ops_rma kefa_direct_rma_ops;

/* quiet.c */

int kefa_direct_quiet(struct fid_ep *ep_fid, fi_addr_t addr, unsigned int timeout_ms);

/* mr.c */

extern const struct fi_ops_mr kefa_direct_mr_ops;
int kefa_direct_mr_reg(struct kefa_mr *mr, u64 access, u64 flags, void *context);
int kefa_direct_mr_inval(struct kefa_mr *mr, u64 flags, void *context);
void kefa_direct_mr_succeeded(struct kefa_ep *ep, struct kefa_op *op);
bool kefa_direct_mr_done(struct kefa_ep *ep, struct kefa_op *op, int err, u32 prov_errno);
void kefa_direct_mr_refused(struct kefa_ep *ep);
void kefa_direct_mr_lost(struct kefa_ep *ep, struct kefa_op *op);
void kefa_direct_mr_revoked(struct kefa_mr *mr, int err);

#endif /* KEFA_DIRECT_H */
