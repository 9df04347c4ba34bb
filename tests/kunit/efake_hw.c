// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Calls of the fake EFA device, with checks of the device's rules. */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include "efake_priv.h"

static void *obj_make(struct efake *fake, size_t size)
{
	struct efake_obj *obj = kvzalloc(size, GFP_KERNEL);
	unsigned long flags;

	if (!obj)
		return NULL;
	obj->fake = fake;
	spin_lock_irqsave(&fake->lock, flags);
	list_add_tail(&obj->list, &fake->objs);
	spin_unlock_irqrestore(&fake->lock, flags);
	return obj;
}

static void obj_free(struct efake_obj *obj)
{
	struct efake *fake = obj->fake;
	unsigned long flags;

	spin_lock_irqsave(&fake->lock, flags);
	list_del(&obj->list);
	spin_unlock_irqrestore(&fake->lock, flags);
	kvfree(obj);
}

static void obj_lose(struct efake_obj *obj)
{
	struct efake *fake = obj->fake;
	unsigned long flags;

	spin_lock_irqsave(&fake->lock, flags);
	list_move_tail(&obj->list, &fake->lost);
	spin_unlock_irqrestore(&fake->lock, flags);
}

static void obj_abandon(struct efake_obj *obj)
{
	struct efake_obj *lost;
	bool found = false;

	list_for_each_entry(lost, &obj->fake->lost, list)
		found |= lost == obj;
	if (!found || obj->abandoned)
		efake_breach(obj->fake, "an object is abandoned for no reason");
	obj->abandoned = true;
}

/* Return: whether the object exists in the device. */
bool efake_lives(struct efake *fake, const struct efake_obj *obj)
{
	struct efake_obj *live;

	lockdep_assert_held(&fake->lock);
	list_for_each_entry(live, &fake->objs, list)
		if (live == obj)
			return true;
	return false;
}

/*
 * Check for a noio scope: write-out of memory may wait for a lock that the caller holds, so
 * allocations must not wait for write-out. A device without users needs no scope.
 */
static void hw_makes(struct efake *fake)
{
	if (fake->published && !(current->flags & PF_MEMALLOC_NOIO))
		efake_breach(fake, "memory is asked for that I/O may be needed for");
}

static struct efake_pd *to_pd(struct ib_pd *pd)
{
	return container_of(pd, struct efake_pd, pd);
}

/* --- protection domains --- */

struct ib_pd *kefa_hw_pd_create(struct ib_device *ibdev)
{
	struct efake *fake = container_of(ibdev, struct efake, ibdev);
	struct efake_pd *pd;
	int err;

	hw_makes(fake);
	if (efake_fails(fake, EFAKE_PD_CREATE, &err))
		return ERR_PTR(err);
	pd = obj_make(fake, sizeof(*pd));
	if (!pd)
		return ERR_PTR(-ENOMEM);
	pd->pd.device = ibdev;
	pd->pd.local_dma_lkey = EFAKE_LKEY;
	return &pd->pd;
}

void kefa_hw_pd_destroy(struct ib_pd *ibpd)
{
	struct efake_pd *pd = to_pd(ibpd);

	if (pd->users)
		efake_breach(pd->obj.fake, "a domain goes that is in use");
	obj_free(&pd->obj);
}

void kefa_hw_pd_abandon(struct ib_pd *ibpd)
{
	struct efake_pd *pd = to_pd(ibpd);

	if (!pd->users)
		efake_breach(pd->obj.fake, "a domain is lost for no reason");
	obj_lose(&pd->obj);
	obj_abandon(&pd->obj);
}

/* --- queue pairs --- */

static bool qp_rooms(struct efake_qp *qp, const struct kefa_hw_qp_attr *attr)
{
	unsigned int i;

	qp->attr = *attr;
	qp->nwrs = attr->tx_depth + attr->rx_depth;
	INIT_LIST_HEAD(&qp->sent);
	INIT_LIST_HEAD(&qp->recvs);
	INIT_LIST_HEAD(&qp->free);
	qp->wrs = kvcalloc(qp->nwrs, sizeof(*qp->wrs), GFP_KERNEL);
	qp->ring = kvcalloc(EFAKE_CQ_RING, sizeof(*qp->ring), GFP_KERNEL);
	if (attr->split)
		qp->tx_ring = kvcalloc(EFAKE_CQ_RING, sizeof(*qp->tx_ring), GFP_KERNEL);
	for (i = 0; qp->wrs && i < qp->nwrs; i++)
		list_add_tail(&qp->wrs[i].list, &qp->free);
	return qp->wrs && qp->ring && (qp->tx_ring || !attr->split);
}

void efake_qp_free(struct efake_qp *qp)
{
	kvfree(qp->wrs);
	kvfree(qp->ring);
	kvfree(qp->tx_ring);
	kfree(qp);
}

size_t efake_bytes(const struct efake_qp *qp, unsigned int mrs)
{
	struct efake_mr *mr;

	return roundup_pow_of_two(qp->nwrs * sizeof(*qp->wrs)) +
	       roundup_pow_of_two(EFAKE_CQ_RING * sizeof(*qp->ring)) +
	       mrs * roundup_pow_of_two(struct_size(mr, segs, EFAKE_MR_PAGES));
}

int kefa_hw_qp_destroy(struct kefa_hw_qp *hq)
{
	struct efake_qp *qp = efake_to_qp(hq);
	struct efake *fake = qp->fake;
	unsigned long flags;
	int err = 0;

	efake_fails(fake, EFAKE_QP_DESTROY, &err);
	if (qp->abandoned)
		efake_breach(fake, "a queue pair is destroyed that was abandoned");
	spin_lock_irqsave(&fake->lock, flags);
	if (err) {
		list_move_tail(&qp->list, &fake->broken);
	} else {
		qp->hq = NULL;
		list_del(&qp->list);
	}
	spin_unlock_irqrestore(&fake->lock, flags);
	if (err)
		return err;
	to_pd(hq->pd)->users--;
	hq->qp = NULL;
	efake_qp_free(qp);
	return 0;
}

void kefa_hw_qp_silence(struct kefa_hw_qp *hq)
{
	struct efake_qp *qp = efake_to_qp(hq);
	unsigned long flags;

	spin_lock_irqsave(&qp->fake->lock, flags);
	qp->hq = NULL;
	spin_unlock_irqrestore(&qp->fake->lock, flags);
}

void kefa_hw_qp_abandon(struct kefa_hw_qp *hq)
{
	struct efake_qp *qp = efake_to_qp(hq);

	if (qp->hq || qp->abandoned)
		efake_breach(qp->fake, "a queue pair is abandoned that isn't silent");
	qp->abandoned = true;
}

int kefa_hw_qp_create(struct kefa_hw_qp *hq,
		      const struct kefa_hw_qp_attr *attr)
{
	struct efake *fake = to_pd(hq->pd)->obj.fake;
	struct efake_qp *qp;
	unsigned long flags;
	int err;

	hw_makes(fake);
	if (!attr->tx_depth || !attr->rx_depth ||
	    attr->tx_depth > fake->dev->tx_depth ||
	    attr->rx_depth > fake->dev->rx_depth ||
	    attr->vector >= fake->dev->vectors ||
	    (attr->rnr_retry > FI_EFA_RNR_INFINITE &&
	     attr->rnr_retry != KEFA_RNR_UNSET) ||
	    (attr->ud && attr->rnr_retry != KEFA_RNR_UNSET))
		efake_breach(fake, "no such queue pair can be made");
	if (efake_fails(fake, EFAKE_QP_CREATE, &err))
		return err;
	qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	if (!qp)
		return -ENOMEM;
	if (!qp_rooms(qp, attr)) {
		efake_qp_free(qp);
		return -ENOMEM;
	}
	qp->fake = fake;
	qp->hq = hq;
	qp->pd = hq->pd;
	to_pd(hq->pd)->users++;
	hq->qp = &qp->ibqp;
	spin_lock_irqsave(&fake->lock, flags);
	hq->qpn = fake->next_qpn++;
	hq->qkey = 0x1000 + hq->qpn;
	qp->ibqp.qp_num = hq->qpn;
	list_add_tail(&qp->list, &fake->qps);
	spin_unlock_irqrestore(&fake->lock, flags);
	err = 0;
	efake_fails(fake, EFAKE_QP_START, &err);
	if (fake->no_rnr && attr->rnr_retry != KEFA_RNR_UNSET)
		err = -EINVAL;
	return err;
}

/* --- address handles --- */

struct ib_ah *kefa_hw_ah_create(struct ib_pd *pd, const u8 *gid)
{
	struct efake *fake = to_pd(pd)->obj.fake;
	struct efake_ah *ah;
	int err;

	hw_makes(fake);
	if (efake_fails(fake, EFAKE_AH_CREATE, &err))
		return ERR_PTR(err);
	if (fake->max_ahs && fake->ahs >= fake->max_ahs)
		return ERR_PTR(-ENOMEM);
	ah = obj_make(fake, sizeof(*ah));
	if (!ah)
		return ERR_PTR(-ENOMEM);
	ah->ah.pd = pd;
	memcpy(ah->gid, gid, sizeof(ah->gid));
	to_pd(pd)->users++;
	fake->ahs++;
	return &ah->ah;
}

int kefa_hw_ah_destroy(struct ib_ah *ibah)
{
	struct efake_ah *ah = efake_to_ah(ibah);
	struct efake *fake = ah->obj.fake;
	int err;

	if (efake_fails(fake, EFAKE_AH_DESTROY, &err)) {
		obj_lose(&ah->obj);
		return err;
	}
	fake->ahs--;
	to_pd(ibah->pd)->users--;
	obj_free(&ah->obj);
	return 0;
}

void kefa_hw_ah_abandon(struct ib_ah *ibah)
{
	struct efake_ah *ah = efake_to_ah(ibah);

	ah->obj.fake->ahs--;
	obj_abandon(&ah->obj);
}

const u8 *efake_ah_gid(struct ib_ah *ah)
{
	return efake_to_ah(ah)->gid;
}

/* --- regions --- */

struct ib_mr *kefa_hw_mr_create(struct ib_pd *pd, u32 max_pages)
{
	struct efake *fake = to_pd(pd)->obj.fake;
	struct efake_mr *mr;
	int err;

	hw_makes(fake);
	if (!max_pages || max_pages > fake->dev->max_mr_pages)
		efake_breach(fake, "no such region can be made");
	if (efake_fails(fake, EFAKE_MR_CREATE, &err))
		return ERR_PTR(err);
	if (fake->mrs >= fake->max_mrs)
		return ERR_PTR(-ENOSPC);
	mr = obj_make(fake, struct_size(mr, segs, max_pages));
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->obj.is_mr = true;
	mr->max_pages = max_pages;
	mr->mr.pd = pd;
	mr->mr.rkey = ++fake->next_key;
	mr->mr.lkey = mr->mr.rkey ^ EFAKE_LOCAL;
	to_pd(pd)->users++;
	fake->mrs++;
	return &mr->mr;
}

static int mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct efake_mr *mr = efake_to_mr(ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->npages++;
	return 0;
}

int kefa_hw_mr_map(struct ib_mr *ibmr, struct scatterlist *sg, int count,
		   unsigned int page_size)
{
	struct efake_mr *mr = efake_to_mr(ibmr);
	struct efake *fake = mr->obj.fake;
	struct scatterlist *each;
	int i, err;

	if (mr->valid || mr->busy)
		efake_breach(fake, "a region is described that is in use");
	if (!(fake->dev->page_sizes & page_size))
		efake_breach(fake, "no such page size");
	if (efake_fails(fake, EFAKE_MR_MAP, &err))
		return err;
	mr->npages = 0;
	mr->nsegs = min_t(u32, count, mr->max_pages);
	for_each_sg(sg, each, mr->nsegs, i)
		mr->segs[i] = (struct efake_seg) {
			sg_dma_address(each), sg_dma_len(each),
		};
	ibmr->page_size = page_size;
	return ib_sg_to_pages(ibmr, sg, count, NULL, mr_set_page);
}

int kefa_hw_mr_destroy(struct ib_mr *ibmr)
{
	struct efake_mr *mr = efake_to_mr(ibmr);
	struct efake *fake = mr->obj.fake;
	int err;

	if (efake_fails(fake, EFAKE_MR_DESTROY, &err)) {
		obj_lose(&mr->obj);
		return err;
	}
	fake->mrs--;
	to_pd(ibmr->pd)->users--;
	obj_free(&mr->obj);
	return 0;
}

void kefa_hw_mr_abandon(struct ib_mr *mr)
{
	obj_abandon(&efake_to_mr(mr)->obj);
}

struct efake_mr *efake_mr_find(struct efake *fake, u32 rkey)
{
	struct efake_obj *obj;
	struct efake_mr *mr;

	lockdep_assert_held(&fake->lock);
	list_for_each_entry(obj, &fake->objs, list) {
		mr = container_of(obj, struct efake_mr, obj);
		if (obj->is_mr && mr->mr.rkey == rkey)
			return mr;
	}
	return NULL;
}

const struct ib_mr *efake_mr(struct efake *fake, u32 rkey)
{
	struct efake_mr *mr;
	unsigned long flags;

	spin_lock_irqsave(&fake->lock, flags);
	mr = efake_mr_find(fake, rkey);
	spin_unlock_irqrestore(&fake->lock, flags);
	return mr ? &mr->mr : NULL;
}

u32 efake_mr_pages(const struct ib_mr *mr)
{
	return container_of(mr, struct efake_mr, mr)->npages;
}

u32 efake_mr_room(const struct ib_mr *mr)
{
	return container_of(mr, struct efake_mr, mr)->max_pages;
}

bool efake_valid(struct efake *fake, u32 rkey)
{
	struct efake_mr *mr;
	unsigned long flags;
	bool valid;

	spin_lock_irqsave(&fake->lock, flags);
	mr = efake_mr_find(fake, rkey);
	valid = mr && mr->valid;
	spin_unlock_irqrestore(&fake->lock, flags);
	return valid;
}

bool efake_mr_reach(struct efake_mr *mr, u64 raddr, dma_addr_t *addr, size_t *len)
{
	u64 off = raddr - mr->mr.iova;
	struct efake_seg *seg;

	if (!mr->valid)
		return false;
	for (seg = mr->segs; seg < mr->segs + mr->nsegs; off -= seg++->len)
		if (off < seg->len) {
			*len = min_t(u64, *len, seg->len - off);
			*addr = seg->addr + off;
			return true;
		}
	return false;
}

static bool mr_misses(struct efake_mr *mr, dma_addr_t addr, size_t len)
{
	struct efake_seg *seg;

	if (!mr->valid && !mr->busy)
		return false;
	for (seg = mr->segs; seg < mr->segs + mr->nsegs; seg++)
		if (seg->addr < addr + len && addr < seg->addr + seg->len &&
		    !efake_dma_reach(mr->obj.fake, seg->addr, seg->len,
				     EFAKE_EITHER))
			return true;
	return false;
}

bool efake_mrs_miss(struct efake *fake, dma_addr_t addr, size_t len)
{
	struct efake_obj *obj;

	lockdep_assert_held(&fake->lock);
	list_for_each_entry(obj, &fake->objs, list)
		if (obj->is_mr && mr_misses(container_of(obj, struct efake_mr,
							 obj), addr, len))
			return true;
	return false;
}
