// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Admin commands: the tables of PDs, QPs, AHs and MRs and their limits.
 *
 * All commands sleep, like those of the real device's admin queue. When the
 * queue dies, the first command waits for its timeout and every later one
 * fails at once. A command that fails frees nothing.
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "priv.h"

static int admin_timed_out(struct efasim_dev *dev, enum efasim_fault fault)
{
	atomic64_inc(&dev->injected[fault]);
	if (!dev->ops->host_waits)
		msleep(READ_ONCE(dev->fault[EFASIM_F_admin_timeout_ms]));
	efasim_count(dev, EFASIM_S_no_completion_cmds);
	WRITE_ONCE(dev->admin_dead, true);
	return -ETIME;
}

/* Simulate the time of a command, which goes to the device and back with an interrupt. */
static void admin_round_trip(struct efasim_dev *dev)
{
	u64 max = READ_ONCE(dev->fault[EFASIM_F_admin_delay_us]);
	u32 us;

	if (!max)
		return;
	mutex_lock(&dev->lock);
	us = prandom_u32_state(&dev->admin_rnd) * (max + 1) >> 32;
	mutex_unlock(&dev->lock);
	if (us)
		fsleep(us);
	atomic64_inc(&dev->injected[EFASIM_F_admin_delay_us]);
}

static int admin_submit(struct efasim_dev *dev)
{
	u32 nth;

	might_sleep();
	efasim_count(dev, EFASIM_S_submitted_cmds);
	if (READ_ONCE(dev->admin_dead))
		return -ENODEV;
	if (READ_ONCE(dev->fault[EFASIM_F_admin_timeout]))
		return admin_timed_out(dev, EFASIM_F_admin_timeout);
	if (READ_ONCE(dev->fault[EFASIM_F_dead]))
		return admin_timed_out(dev, EFASIM_F_dead);

	admin_round_trip(dev);
	mutex_lock(&dev->lock);
	nth = dev->fault[EFASIM_F_admin_fail_nth];
	if (nth)
		WRITE_ONCE(dev->fault[EFASIM_F_admin_fail_nth], nth - 1);
	mutex_unlock(&dev->lock);
	if (nth == 1) {
		atomic64_inc(&dev->injected[EFASIM_F_admin_fail_nth]);
		return -EINVAL;
	}
	return 0;
}

static int admin_begin(struct efasim_dev *dev)
{
	int err = admin_submit(dev);

	if (err) {
		efasim_count(dev, EFASIM_S_cmds_err);
		return err;
	}
	mutex_lock(&dev->lock);
	/* The worker waits for this lock, and memory reclaim may wait for the worker. */
	dev->noio = memalloc_noio_save();
	return 0;
}

static int admin_end(struct efasim_dev *dev, int err)
{
	memalloc_noio_restore(dev->noio);
	mutex_unlock(&dev->lock);
	efasim_count(dev, EFASIM_S_completed_cmds);
	if (err)
		efasim_count(dev, EFASIM_S_cmds_err);
	return err;
}

/* Return: whether a table has reached its limit, or the lower limit of a fault. */
static bool table_full(struct efasim_dev *dev, u32 have, u32 limit, enum efasim_fault fault)
{
	u32 forced = READ_ONCE(dev->fault[fault]);

	if (have >= limit)
		return true;
	if (!forced || have < forced)
		return false;
	atomic64_inc(&dev->injected[fault]);
	return true;
}

int efasim_adm_alloc_pd(struct efasim_dev *dev, u32 *pdn)
{
	int err = admin_begin(dev);

	if (err)
		return err;
	err = xa_alloc(&dev->pds, pdn, dev, XA_LIMIT(1, dev->limits.max_pd),
		       GFP_KERNEL);
	return admin_end(dev, err ? -ENOMEM : 0);
}

int efasim_adm_dealloc_pd(struct efasim_dev *dev, u32 pdn)
{
	int err = admin_begin(dev);

	if (err)
		return err;
	xa_erase(&dev->pds, pdn);
	return admin_end(dev, 0);
}

static void free_cq(struct efasim_cq *cq)
{
	kvfree(cq->serials);
	kfree(cq);
}

static struct efasim_cq *alloc_cq(struct efasim_dev *dev, const struct efasim_cq_params *params)
{
	struct efasim_cq *cq = kzalloc(sizeof(*cq), GFP_KERNEL);

	if (!cq)
		return NULL;
	cq->dev = dev;
	cq->addr = params->addr;
	cq->depth = params->depth;
	cq->entry_size = params->entry_size;
	cq->untold = params->untold;
	cq->src_addr = params->src_addr;
	cq->ctx = params->ctx;
	cq->serials = kvcalloc(dev->limits.subs * cq->depth, sizeof(*cq->serials),
			       GFP_KERNEL);
	if (!cq->serials) {
		kfree(cq);
		return NULL;
	}
	return cq;
}

static int add_cq(struct efasim_dev *dev, struct efasim_cq *cq)
{
	int err;

	if (dev->num_cq >= dev->limits.max_cq)
		return -ENOMEM;
	err = xa_alloc(&dev->cqs, &cq->index, cq, xa_limit_31b, GFP_KERNEL);
	if (!err)
		dev->num_cq++;
	return err;
}

/**
 * efasim_adm_create_cq() - create a completion queue
 * @dev: the device
 * @params: attributes of the queue; the host's memory must be zeroed
 *
 * Context: Process context, may sleep.
 * Return: the queue, or an ERR_PTR().
 */
struct efasim_cq *efasim_adm_create_cq(struct efasim_dev *dev,
				       const struct efasim_cq_params *params)
{
	struct efasim_cq *cq;
	int err;

	if (!is_power_of_2(params->depth) ||
	    params->depth > dev->limits.max_cq_depth ||
	    (params->entry_size != sizeof(struct efasim_rx_cdesc) &&
	     params->entry_size != sizeof(struct efasim_rx_cdesc_ex)))
		return ERR_PTR(-EINVAL);
	cq = alloc_cq(dev, params);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	err = admin_begin(dev);
	if (!err)
		err = admin_end(dev, add_cq(dev, cq));
	if (err) {
		free_cq(cq);
		return ERR_PTR(err);
	}
	return cq;
}

static void erase_cq(struct efasim_dev *dev, struct efasim_cq *cq)
{
	xa_erase(&dev->cqs, cq->index);
	dev->num_cq--;
	free_cq(cq);
}

int efasim_adm_destroy_cq(struct efasim_cq *cq)
{
	struct efasim_dev *dev = cq->dev;
	int err = admin_begin(dev);

	if (err)
		return err;
	if (cq->users)
		return admin_end(dev, -EINVAL);
	erase_cq(dev, cq);
	return admin_end(dev, 0);
}

/* Detach a queue from the front end. The device may still write to it. */
void efasim_cq_forget(struct efasim_cq *cq)
{
	struct efasim_dev *dev = cq->dev;

	mutex_lock(&dev->lock);
	cq->ctx = NULL;
	mutex_unlock(&dev->lock);
}

static void free_qp(struct efasim_qp *qp)
{
	kvfree(qp->ops);
	kvfree(qp->sq);
	kfree(qp);
}

static struct efasim_qp *alloc_qp(const struct efasim_qp_params *params)
{
	struct efasim_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	u32 i;

	if (!qp)
		return NULL;
	INIT_LIST_HEAD(&qp->db);
	INIT_LIST_HEAD(&qp->idle);
	qp->rq_addr = params->rq_addr;
	qp->sq_depth = roundup_pow_of_two(max(params->sq_depth, 1U));
	qp->rq_depth = roundup_pow_of_two(max(params->rq_depth, 1U));
	qp->llq = params->llq;
	qp->unsolicited = params->unsolicited;
	if (!qp->llq)
		qp->sq = kvcalloc(qp->sq_depth, sizeof(*qp->sq), GFP_KERNEL);
	qp->ops = kvcalloc(qp->sq_depth, sizeof(*qp->ops), GFP_KERNEL);
	if ((!qp->sq && !qp->llq) || !qp->ops) {
		free_qp(qp);
		return NULL;
	}
	for (i = 0; i < qp->sq_depth; i++) {
		qp->ops[i].qp = qp;
		list_add_tail(&qp->ops[i].link, &qp->idle);
		INIT_LIST_HEAD(&qp->ops[i].tx);
		timerqueue_init(&qp->ops[i].timer.node);
	}
	return qp;
}

/* A queue pair number has 16 bits, of which the low ones are the index. */
static u32 qp_index_bits(const struct efasim_dev *dev)
{
	return order_base_2(dev->limits.max_qp);
}

/* Return: the queue pair with a number, or NULL. */
struct efasim_qp *efasim_dev_find_qp(struct efasim_dev *dev, u32 qpn)
{
	struct efasim_qp *qp;

	qp = xa_load(&dev->qps, qpn & (BIT(qp_index_bits(dev)) - 1));
	return qp && qp->qpn == qpn ? qp : NULL;
}

/* The generation is never 0, so no number is 0. */
static u32 next_generation(const struct efasim_dev *dev)
{
	return dev->qpn_generation % (BIT(16 - qp_index_bits(dev)) - 1) + 1;
}

/*
 * Indices are assigned cyclically, and the bits above them change after each cycle, so that
 * a stale number is rarely in use. With a fault, the lowest free number is reused at once.
 */
static int assign_qpn(struct efasim_dev *dev, struct efasim_qp *qp)
{
	struct xa_limit limit = XA_LIMIT(0, dev->limits.max_qp - 1);
	u32 index;
	int err;

	if (table_full(dev, dev->num_qp, dev->limits.max_qp, EFASIM_F_qp_limit))
		return -ENOMEM;
	if (READ_ONCE(dev->fault[EFASIM_F_qpn_reuse])) {
		err = xa_alloc(&dev->qps, &index, qp, limit, GFP_KERNEL);
		if (!err)
			atomic64_inc(&dev->injected[EFASIM_F_qpn_reuse]);
	} else {
		err = xa_alloc_cyclic(&dev->qps, &index, qp, limit,
				      &dev->next_qp, GFP_KERNEL);
	}
	if (err < 0)
		return err;
	dev->qpn_generation += err;
	qp->qpn = next_generation(dev) << qp_index_bits(dev) | index;
	return 0;
}

/**
 * efasim_adm_create_qp() - create a queue pair
 * @dev: the device
 * @params: attributes of the queue pair
 *
 * Context: Process context, may sleep.
 * Return: the queue pair in state RESET, or an ERR_PTR().
 */
struct efasim_qp *efasim_adm_create_qp(struct efasim_dev *dev,
				       const struct efasim_qp_params *params)
{
	struct efasim_qp *qp;
	int err;

	qp = alloc_qp(params);
	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->dev = dev;
	qp->type = params->type;
	qp->pdn = params->pdn;
	qp->send_cq = params->send_cq;
	qp->recv_cq = params->recv_cq;

	err = admin_begin(dev);
	if (err)
		goto err_free;
	err = assign_qpn(dev, qp);
	if (!err) {
		qp->serial = ++dev->serial;
		qp->send_cq->users++;
		qp->recv_cq->users++;
		dev->num_qp++;
	}
	err = admin_end(dev, err);
	if (err)
		goto err_free;
	return qp;

err_free:
	free_qp(qp);
	return ERR_PTR(err);
}

/* Drop queued and active work. With @flush some of it completes as flushed. */
static void stop_qp(struct efasim_qp *qp, bool flush)
{
	struct efasim_dev *dev = qp->dev;
	u32 i;

	lockdep_assert_held(&dev->lock);
	if (flush) {
		efasim_dev_flush_ops(qp);
		efasim_dev_flush_rq(qp);
	}
	for (i = 0; i < qp->sq_depth; i++)
		if (qp->ops[i].active)
			efasim_dev_drop_op(&qp->ops[i]);
	spin_lock_irq(&dev->db_lock);
	list_del_init(&qp->db);
	spin_unlock_irq(&dev->db_lock);
	efasim_dev_discard_sq(qp, flush);
	qp->rq_cons = READ_ONCE(qp->rq_prod);
}

/* Restart the rings at their first entries, as the host does. */
static void reset_qp(struct efasim_qp *qp)
{
	stop_qp(qp, false);
	WRITE_ONCE(qp->sq_prod, 0);
	WRITE_ONCE(qp->rq_prod, 0);
	qp->sq_cons = 0;
	qp->rq_cons = 0;
}

/* The states from which each state may be entered. RESET and ERR may be entered from any. */
static const u8 reached_from[] = {
	[EFASIM_QPS_RESET] = U8_MAX,
	[EFASIM_QPS_INIT] = BIT(EFASIM_QPS_RESET) | BIT(EFASIM_QPS_INIT),
	[EFASIM_QPS_RTR] = BIT(EFASIM_QPS_INIT),
	[EFASIM_QPS_RTS] = BIT(EFASIM_QPS_RTR) | BIT(EFASIM_QPS_RTS) |
			   BIT(EFASIM_QPS_SQD) | BIT(EFASIM_QPS_SQE),
	[EFASIM_QPS_SQD] = BIT(EFASIM_QPS_RTS) | BIT(EFASIM_QPS_SQD),
	[EFASIM_QPS_SQE] = 0,
	[EFASIM_QPS_ERR] = U8_MAX,
};

static bool may_modify(const struct efasim_qp *qp, const struct efasim_qp_modify *mod)
{
	if (mod->mask & EFASIM_MODIFY_RNR &&
	    mod->rnr_retry > EFASIM_RNR_INFINITE)
		return false;
	return !(mod->mask & EFASIM_MODIFY_STATE) ||
	       (mod->state < ARRAY_SIZE(reached_from) &&
		reached_from[mod->state] & BIT(qp->state));
}

/* Apply all changes or none. */
static int modify_qp(struct efasim_qp *qp, const struct efasim_qp_modify *mod)
{
	if (!may_modify(qp, mod))
		return -EINVAL;
	if (mod->mask & EFASIM_MODIFY_QKEY)
		qp->qkey = mod->qkey;
	if (mod->mask & EFASIM_MODIFY_PSN)
		qp->sq_psn = mod->sq_psn;
	if (mod->mask & EFASIM_MODIFY_RNR)
		qp->rnr_retry = mod->rnr_retry;
	if (!(mod->mask & EFASIM_MODIFY_STATE))
		return 0;

	qp->state = mod->state;
	if (mod->state == EFASIM_QPS_RESET)
		reset_qp(qp);
	if (mod->state == EFASIM_QPS_ERR)
		stop_qp(qp, true);
	if (mod->state == EFASIM_QPS_RTS)
		efasim_sq_ring(qp);
	return 0;
}

int efasim_adm_modify_qp(struct efasim_qp *qp, const struct efasim_qp_modify *modify)
{
	int err = admin_begin(qp->dev);

	return err ?: admin_end(qp->dev, modify_qp(qp, modify));
}

int efasim_adm_query_qp(struct efasim_qp *qp, struct efasim_qp_modify *out)
{
	int err = admin_begin(qp->dev);

	if (err)
		return err;
	out->state = qp->state;
	out->qkey = qp->qkey;
	out->sq_psn = qp->sq_psn;
	out->rnr_retry = qp->rnr_retry;
	return admin_end(qp->dev, 0);
}

static void erase_qp(struct efasim_dev *dev, struct efasim_qp *qp)
{
	stop_qp(qp, false);
	xa_erase(&dev->qps, qp->qpn & (BIT(qp_index_bits(dev)) - 1));
	qp->send_cq->users--;
	qp->recv_cq->users--;
	dev->num_qp--;
}

int efasim_adm_destroy_qp(struct efasim_qp *qp)
{
	struct efasim_dev *dev = qp->dev;
	int err = admin_begin(dev);

	if (err)
		return err;
	erase_qp(dev, qp);
	admin_end(dev, 0);
	free_qp(qp);
	return 0;
}

/* One entry for each protection domain that has a handle for a GID. */
static const struct rhashtable_params ahs_by_gid = {
	.key_len = EFASIM_GID_LEN,
	.key_offset = offsetof(struct efasim_ah, gid),
	.head_offset = offsetof(struct efasim_ah, node),
};

/* Return: the handle of a protection domain for a GID, or NULL. */
struct efasim_ah *efasim_dev_find_ah(struct efasim_dev *dev, u32 pdn, const u8 *gid)
{
	struct rhlist_head *list, *pos;
	struct efasim_ah *ah, *found = NULL;

	lockdep_assert_held(&dev->lock);
	rcu_read_lock();
	list = rhltable_lookup(&dev->ahs_by_gid, gid, ahs_by_gid);
	rhl_for_each_entry_rcu(ah, pos, list, node) {
		if (ah->pdn == pdn) {
			found = ah;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/* Return: whether any protection domain has a handle for a GID. */
bool efasim_dev_is_known(struct efasim_dev *dev, const u8 *gid)
{
	bool known;

	lockdep_assert_held(&dev->lock);
	rcu_read_lock();
	known = rhltable_lookup(&dev->ahs_by_gid, gid, ahs_by_gid);
	rcu_read_unlock();
	return known;
}

int efasim_dev_ahs_init(struct efasim_dev *dev)
{
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC);
	return rhltable_init(&dev->ahs_by_gid, &ahs_by_gid);
}

void efasim_dev_ahs_free(struct efasim_dev *dev)
{
	rhltable_destroy(&dev->ahs_by_gid);
}

static int new_ah(struct efasim_dev *dev, u32 pdn, const u8 *gid, u16 *number)
{
	struct efasim_ah *ah;
	u32 lag, id;
	int err;

	if (table_full(dev, dev->num_ah, dev->limits.max_ah, EFASIM_F_ah_limit))
		return -ENOMEM;
	ah = kzalloc(sizeof(*ah), GFP_KERNEL);
	if (!ah)
		return -ENOMEM;
	err = xa_alloc(&dev->ahs, &id, ah, XA_LIMIT(0, EFASIM_AH_NONE - 1),
		       GFP_KERNEL);
	if (err)
		goto free;
	memcpy(ah->gid, gid, sizeof(ah->gid));
	err = rhltable_insert(&dev->ahs_by_gid, &ah->node, ahs_by_gid);
	if (err)
		goto erase;
	lag = READ_ONCE(dev->fault[EFASIM_F_slid_lag_us]);
	ah->visible = ktime_add_us(ktime_get(), lag);
	ah->number = id;
	ah->pdn = pdn;
	ah->users = 1;
	dev->num_ah++;
	*number = id;
	return 0;

erase:
	xa_erase(&dev->ahs, id);
free:
	kfree(ah);
	return err;
}

static bool gid_usable(const u8 *gid)
{
	return gid[0] == 0xfe && gid[1] == 0x80;
}

/**
 * efasim_adm_create_ah() - create an address handle
 * @dev: the device
 * @pdn: number of a protection domain
 * @gid: GID of the peer
 * @number: takes the handle's number, which handles of one domain for one GID share
 *
 * Context: Process context, may sleep.
 * Return: 0, -EINVAL for a GID that isn't of this fabric, -ENOMEM when the
 * table is full.
 */
int efasim_adm_create_ah(struct efasim_dev *dev, u32 pdn, const u8 *gid, u16 *number)
{
	struct efasim_ah *ah;
	int err;

	err = admin_begin(dev);
	if (err)
		return err;
	if (!xa_load(&dev->pds, pdn) || !gid_usable(gid))
		return admin_end(dev, -EINVAL);
	ah = efasim_dev_find_ah(dev, pdn, gid);
	if (!ah)
		return admin_end(dev, new_ah(dev, pdn, gid, number));
	ah->users++;
	*number = ah->number;
	return admin_end(dev, 0);
}

/* Work that uses a handle is flushed when the handle is destroyed. */
static void flush_ah(struct efasim_dev *dev, const struct efasim_ah *ah)
{
	struct efasim_peer *peer = efasim_dev_peer(dev, ah->gid, false);
	struct efasim_op *op, *next;

	if (IS_ERR(peer))
		return;
	list_for_each_entry_safe(op, next, &peer->ops, link)
		if (op->wqe.ah == ah->number)
			efasim_dev_complete(op, EFASIM_FLUSHED);
	/* The worker notifies the host of the completions. */
	efasim_kick(dev);
}

static void erase_ah(struct efasim_dev *dev, struct efasim_ah *ah)
{
	xa_erase(&dev->ahs, ah->number);
	rhltable_remove(&dev->ahs_by_gid, &ah->node, ahs_by_gid);
	dev->num_ah--;
	kfree(ah);
}

int efasim_adm_destroy_ah(struct efasim_dev *dev, u32 pdn, u16 number)
{
	struct efasim_ah *ah;
	int err = admin_begin(dev);

	if (err)
		return err;
	ah = xa_load(&dev->ahs, number);
	if (ah && ah->pdn == pdn && !--ah->users) {
		flush_ah(dev, ah);
		erase_ah(dev, ah);
	}
	return admin_end(dev, 0);
}

/* Assign a key to a new region. The key grants no access yet. */
static int add_mr(struct efasim_dev *dev, struct efasim_mr *mr, u32 pdn)
{
	int err;

	if (!xa_load(&dev->pds, pdn))
		return -EINVAL;
	if (dev->mr_pages + mr->max_pages > dev->limits.max_mr_pages ||
	    table_full(dev, dev->num_mr, dev->limits.max_mr, EFASIM_F_mr_limit))
		return -ENOMEM;
	err = xa_alloc_cyclic(&dev->mrs, &mr->index, mr,
			      XA_LIMIT(1, EFASIM_KEY_INDEX_MASK),
			      &dev->next_mr, GFP_KERNEL);
	if (err < 0)
		return err;
	mr->pdn = pdn;
	mr->key = mr->index;
	dev->mr_pages += mr->max_pages;
	dev->num_mr++;
	return 0;
}

static struct efasim_mr *create_mr(struct efasim_dev *dev, u32 pdn,
				   struct efasim_mr *mr)
{
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = admin_begin(dev);
	if (!err)
		err = admin_end(dev, add_mr(dev, mr, pdn));
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return mr;
}

struct efasim_mr *efasim_adm_alloc_mr(struct efasim_dev *dev, u32 pdn,
				      u32 max_pages)
{
	struct efasim_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (mr) {
		mr->max_pages = max_pages;
		mr->fast = true;
	}
	return create_mr(dev, pdn, mr);
}

static int reg_mr(struct efasim_dev *dev, struct efasim_mr *mr, u32 pdn,
		  const struct efasim_reg *reg)
{
	struct efasim_reg named = *reg;
	int err;

	if (!efasim_dev_mr_valid(dev, mr, reg))
		return -EINVAL;
	err = add_mr(dev, mr, pdn);
	if (err)
		return err;
	named.lkey = mr->key;
	efasim_dev_mr_set(mr, &named);
	return 0;
}

/**
 * efasim_adm_reg_mr() - register memory at once
 * @dev: the device
 * @pdn: number of a protection domain
 * @reg: attributes of the region; the device chooses the key
 * @pages: DMA addresses of its pages, allocated with kvmalloc(); belong to the device
 *	after success
 *
 * Context: Process context, may sleep.
 * Return: the region, or an ERR_PTR(): -EINVAL for invalid attributes, -ENOMEM.
 */
struct efasim_mr *efasim_adm_reg_mr(struct efasim_dev *dev, u32 pdn,
				    const struct efasim_reg *reg, u64 *pages)
{
	struct efasim_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_pages = reg->npages;
	mr->copy = pages;
	err = admin_begin(dev);
	if (!err)
		err = admin_end(dev, reg_mr(dev, mr, pdn, reg));
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return mr;
}

/* Create a region of the whole address space, for local access only. */
struct efasim_mr *efasim_adm_dma_mr(struct efasim_dev *dev, u32 pdn)
{
	struct efasim_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (mr) {
		mr->state = EFASIM_MR_DMA;
		mr->length = BIT_ULL(EFASIM_DMA_BITS);
		mr->access = EFASIM_ACCESS_LOCAL_WRITE;
	}
	return create_mr(dev, pdn, mr);
}

static void erase_mr(struct efasim_dev *dev, struct efasim_mr *mr)
{
	xa_erase(&dev->mrs, mr->index);
	dev->mr_pages -= mr->max_pages;
	dev->num_mr--;
	kvfree(mr->copy);
	kfree(mr);
}

int efasim_adm_dereg_mr(struct efasim_dev *dev, struct efasim_mr *mr)
{
	int err = admin_begin(dev);

	if (err)
		return err;
	erase_mr(dev, mr);
	return admin_end(dev, 0);
}

/* Simulate the time and the faults of a command that the front end implements. */
int efasim_adm_other(struct efasim_dev *dev)
{
	int err = admin_begin(dev);

	return err ?: admin_end(dev, 0);
}

/*
 * Reset: destroy all objects that the host left. Peers only notice that the queue pairs are
 * gone.
 */
void efasim_adm_reset(struct efasim_dev *dev)
{
	struct efasim_qp *qp;
	struct efasim_cq *cq;
	struct efasim_mr *mr;
	struct efasim_ah *ah;
	unsigned long i;

	mutex_lock(&dev->lock);
	xa_for_each(&dev->qps, i, qp) {
		erase_qp(dev, qp);
		free_qp(qp);
	}
	xa_for_each(&dev->cqs, i, cq)
		erase_cq(dev, cq);
	xa_for_each(&dev->mrs, i, mr)
		erase_mr(dev, mr);
	xa_for_each(&dev->ahs, i, ah)
		erase_ah(dev, ah);
	mutex_unlock(&dev->lock);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->mrs);
	xa_destroy(&dev->ahs);
	xa_destroy(&dev->pds);
	WRITE_ONCE(dev->admin_dead, false);
}
