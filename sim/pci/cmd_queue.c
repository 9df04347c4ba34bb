// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Admin commands for queue pairs, completion queues and event queues.
 *
 * The doorbells of an object are in the page of the UAR that it was created with, at an
 * offset that is unique among all objects. So processes don't share a page. Send queues have
 * separate pages for the same reason.
 */
#include <linux/bitfield.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "pci.h"

static void __iomem *db_of(struct efasim_fn *fn, u32 uar, u32 off)
{
	return fn->mem + uar * SZ_4K + off;
}

static bool uar_is_valid(struct efasim_fn *fn, __le16 uar)
{
	return le16_to_cpu(uar) < EFASIM_UARS &&
	       test_bit(le16_to_cpu(uar), fn->uars);
}

static struct efasim_pcq *find_cq(struct efasim_fn *fn, u32 index)
{
	return index < EFASIM_FN_MAX_CQ ? fn->cq_table[index] : NULL;
}

static u32 qp_index(struct efasim_fn *fn, u32 qpn)
{
	return qpn & (roundup_pow_of_two(fn->eng.limits.max_qp) - 1);
}

static struct efasim_pqp *find_qp(struct efasim_fn *fn, __le32 handle)
{
	u32 qpn = le32_to_cpu(handle);
	struct efasim_pqp *qp = fn->qp_table[qp_index(fn, qpn)];

	return qp && qp->hw->qpn == qpn ? qp : NULL;
}

/* Return: number of entries of a ring of @bytes bytes; or -EINVAL. */
static int ring_entries(__le32 bytes, u32 entry, u32 limit)
{
	u32 n = le32_to_cpu(bytes) / entry;

	if (le32_to_cpu(bytes) % entry || !is_power_of_2(n) || n > limit)
		return -EINVAL;
	return n;
}

static int qp_params(struct efasim_fn *fn, const struct efasim_create_qp_cmd *cmd,
		     struct efasim_qp_params *params)
{
	struct efasim_pcq *send_cq = find_cq(fn, le32_to_cpu(cmd->send_cq));
	struct efasim_pcq *recv_cq = find_cq(fn, le32_to_cpu(cmd->recv_cq));
	const struct efasim_limits *limits = &fn->eng.limits;
	const u8 flags = limits->unsolicited ? EFASIM_QP_UNSOLICITED : 0;
	int sq, rq = 0;

	if (cmd->flags & ~flags || !send_cq || !recv_cq ||
	    !uar_is_valid(fn, cmd->uar) ||
	    !xa_load(&fn->eng.pds, le16_to_cpu(cmd->pd)) ||
	    (cmd->type != EFASIM_QP_TYPE_UD && cmd->type != EFASIM_QP_TYPE_SRD))
		return -EINVAL;
	sq = ring_entries(cmd->sq_size, sizeof(struct efasim_tx_wqe),
			  roundup_pow_of_two(limits->max_sq_depth));
	if (cmd->rq_size)
		rq = ring_entries(cmd->rq_size, sizeof(struct efasim_rx_desc),
				  roundup_pow_of_two(limits->max_rq_depth));
	if (sq < 0 || rq < 0)
		return -EINVAL;
	*params = (struct efasim_qp_params) {
		.type = cmd->type == EFASIM_QP_TYPE_UD ? EFASIM_QP_UD :
							 EFASIM_QP_SRD,
		.pdn = le16_to_cpu(cmd->pd),
		.sq_depth = sq,
		.rq_depth = rq,
		.rq_addr = le64_to_cpu(cmd->rq_addr),
		.send_cq = send_cq->hw,
		.recv_cq = recv_cq->hw,
		.unsolicited = cmd->flags & EFASIM_QP_UNSOLICITED,
	};
	return 0;
}

/* Allocate pages of device memory for a send queue. */
static int get_llq(struct efasim_fn *fn, struct efasim_pqp *qp, u32 depth)
{
	u32 pages = DIV_ROUND_UP(depth * sizeof(struct efasim_tx_wqe), SZ_4K);
	unsigned long page;

	page = bitmap_find_next_zero_area(fn->llq_pages, EFASIM_LLQ_PAGES, 0,
					  pages, 0);
	if (page >= EFASIM_LLQ_PAGES)
		return -ENOMEM;
	bitmap_set(fn->llq_pages, page, pages);
	qp->llq_page = page;
	qp->llq_pages = pages;
	return 0;
}

static void release_qp(struct efasim_fn *fn, struct efasim_pqp *qp)
{
	bitmap_clear(fn->llq_pages, qp->llq_page, qp->llq_pages);
	kfree(qp);
}

static struct efasim_pqp *make_qp(struct efasim_fn *fn,
				  struct efasim_qp_params *params)
{
	struct efasim_pqp *qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	int err;

	if (!qp)
		return ERR_PTR(-ENOMEM);
	err = get_llq(fn, qp, params->sq_depth);
	if (err) {
		kfree(qp);
		return ERR_PTR(err);
	}
	params->llq = fn->llq + qp->llq_page * SZ_4K;
	qp->has_rq = params->rq_depth;
	qp->hw = efasim_adm_create_qp(&fn->eng, params);
	if (IS_ERR(qp->hw)) {
		err = PTR_ERR(qp->hw);
		release_qp(fn, qp);
		return ERR_PTR(err);
	}
	return qp;
}

/* Reset the doorbells, because the host's counters start at 0. */
static void clear_doorbells(struct efasim_pqp *qp)
{
	writel(0, qp->db);
	writel(0, qp->db + 4);
	qp->sq_seen = 0;
	qp->rq_seen = 0;
}

int efasim_cmd_create_qp(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp)
{
	struct efasim_create_qp_resp *to = &resp->create_qp;
	u32 uar = le16_to_cpu(cmd->create_qp.uar), index;
	struct efasim_qp_params params;
	struct efasim_pqp *qp;
	int err;

	err = qp_params(fn, &cmd->create_qp, &params);
	if (err)
		return err;
	qp = make_qp(fn, &params);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	index = qp_index(fn, qp->hw->qpn);
	qp->db = db_of(fn, uar, EFASIM_QP_DB(index));
	clear_doorbells(qp);
	fn->qp_table[index] = qp;
	spin_lock_irq(&fn->lock);
	list_add_tail(&qp->node, &fn->qps);
	spin_unlock_irq(&fn->lock);

	to->handle = cpu_to_le32(qp->hw->qpn);
	to->qpn = cpu_to_le16(qp->hw->qpn);
	to->send_sub = cpu_to_le16(EFASIM_SUB_SEND);
	to->recv_sub = cpu_to_le16(efasim_recv_sub(&fn->eng));
	to->sq_db = cpu_to_le32(uar * SZ_4K + EFASIM_QP_DB(index));
	to->rq_db = cpu_to_le32(uar * SZ_4K + EFASIM_QP_DB(index) + 4);
	to->llq = cpu_to_le32(qp->llq_page * SZ_4K);
	return 0;
}

static void unlist(struct efasim_fn *fn, struct list_head *node)
{
	spin_lock_irq(&fn->lock);
	list_del(node);
	spin_unlock_irq(&fn->lock);
}

int efasim_cmd_destroy_qp(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			  union efasim_aq_resp *resp)
{
	struct efasim_pqp *qp = find_qp(fn, cmd->qp.handle);
	u32 qpn;
	int err;

	if (!qp)
		return -EINVAL;
	qpn = qp->hw->qpn;
	/* The engine frees the queue pair, so stop reading its doorbells first. */
	unlist(fn, &qp->node);
	err = efasim_adm_destroy_qp(qp->hw);
	if (err) {
		spin_lock_irq(&fn->lock);
		list_add_tail(&qp->node, &fn->qps);
		spin_unlock_irq(&fn->lock);
		return err;
	}
	fn->qp_table[qp_index(fn, qpn)] = NULL;
	release_qp(fn, qp);
	return 0;
}

int efasim_cmd_modify_qp(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp)
{
	const struct efasim_modify_qp_cmd *m = &cmd->modify_qp;
	struct efasim_pqp *qp = find_qp(fn, m->handle);
	u32 mask = le32_to_cpu(m->mask);
	struct efasim_qp_modify mod = {
		.state = le32_to_cpu(m->state),
		.qkey = le32_to_cpu(m->qkey),
		.sq_psn = le32_to_cpu(m->psn),
		.rnr_retry = m->rnr_retry,
	};
	int err;

	if (!qp)
		return -EINVAL;
	mod.mask = (mask & EFASIM_MODIFY_CMD_STATE ? EFASIM_MODIFY_STATE : 0) |
		   (mask & EFASIM_MODIFY_CMD_QKEY ? EFASIM_MODIFY_QKEY : 0) |
		   (mask & EFASIM_MODIFY_CMD_PSN ? EFASIM_MODIFY_PSN : 0) |
		   (mask & EFASIM_MODIFY_CMD_RNR ? EFASIM_MODIFY_RNR : 0);
	err = efasim_adm_modify_qp(qp->hw, &mod);
	if (err || !(mod.mask & EFASIM_MODIFY_STATE) ||
	    mod.state != EFASIM_QPS_RESET)
		return err;
	spin_lock_irq(&fn->lock);
	clear_doorbells(qp);
	/* A doorbell may have been read after the reset. */
	WRITE_ONCE(qp->hw->sq_prod, 0);
	WRITE_ONCE(qp->hw->rq_prod, 0);
	spin_unlock_irq(&fn->lock);
	return 0;
}

int efasim_cmd_query_qp(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			union efasim_aq_resp *resp)
{
	struct efasim_pqp *qp = find_qp(fn, cmd->qp.handle);
	struct efasim_query_qp_resp *to = &resp->query_qp;
	struct efasim_qp_modify is;
	int err;

	if (!qp)
		return -EINVAL;
	err = efasim_adm_query_qp(qp->hw, &is);
	if (err)
		return err;
	to->state = cpu_to_le32(is.state);
	to->qkey = cpu_to_le32(is.qkey);
	to->psn = cpu_to_le32(is.sq_psn);
	to->rnr_retry = is.rnr_retry;
	return 0;
}

static int cq_params(struct efasim_fn *fn, const struct efasim_create_cq_cmd *cmd,
		     struct efasim_cq_params *params)
{
	bool interrupts = cmd->caps1 & EFASIM_CQ_CMD_INTERRUPT;
	u32 eq = le16_to_cpu(cmd->eq);

	*params = (struct efasim_cq_params) {
		.addr = efasim_addr(cmd->addr_lo, cmd->addr_hi),
		.depth = le16_to_cpu(cmd->depth),
		.entry_size = FIELD_GET(EFASIM_CQ_CMD_ENTRY_WORDS, cmd->caps2) *
			      sizeof(u32),
		.untold = true,
		.src_addr = cmd->caps2 & EFASIM_CQ_CMD_SRC_ADDR,
	};
	if (cmd->caps1 & EFASIM_CQ_CMD_VIRT ||
	    le16_to_cpu(cmd->subs) != fn->eng.limits.subs ||
	    !uar_is_valid(fn, cmd->uar) ||
	    (interrupts && (eq >= fn->vectors || !fn->eqs[eq].depth)) ||
	    (params->src_addr &&
	     params->entry_size != sizeof(struct efasim_rx_cdesc_ex)))
		return -EINVAL;
	return 0;
}

static struct efasim_pcq *make_cq(struct efasim_fn *fn,
				  const struct efasim_cq_params *params)
{
	struct efasim_pcq *cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	int err;

	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->hw = efasim_adm_create_cq(&fn->eng, params);
	if (IS_ERR(cq->hw)) {
		err = PTR_ERR(cq->hw);
		kfree(cq);
		return ERR_PTR(err);
	}
	return cq;
}

int efasim_cmd_create_cq(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp)
{
	const struct efasim_create_cq_cmd *c = &cmd->create_cq;
	struct efasim_create_cq_resp *to = &resp->create_cq;
	struct efasim_cq_params params;
	struct efasim_pcq *cq;
	u32 off;
	int err;

	err = cq_params(fn, c, &params);
	if (err)
		return err;
	cq = make_cq(fn, &params);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	cq->interrupts = c->caps1 & EFASIM_CQ_CMD_INTERRUPT;
	cq->eq = le16_to_cpu(c->eq);
	cq->told = EFASIM_TOLD_NONE;
	off = EFASIM_CQ_DB(cq->hw->index);
	cq->db = db_of(fn, le16_to_cpu(c->uar), off);
	writel(0, cq->db);
	fn->cq_table[cq->hw->index] = cq;
	if (cq->interrupts) {
		spin_lock_irq(&fn->lock);
		list_add_tail(&cq->node, &fn->cqs);
		spin_unlock_irq(&fn->lock);
	}
	to->index = cpu_to_le16(cq->hw->index);
	to->depth = cpu_to_le16(params.depth);
	to->db = cpu_to_le32(le16_to_cpu(c->uar) * SZ_4K + off);
	to->flags = cpu_to_le32(1);
	return 0;
}

int efasim_cmd_destroy_cq(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			  union efasim_aq_resp *resp)
{
	u32 index = le16_to_cpu(cmd->number.number);
	struct efasim_pcq *cq = find_cq(fn, index);
	int err;

	if (!cq || READ_ONCE(cq->hw->users))
		return -EINVAL;
	if (cq->interrupts)
		unlist(fn, &cq->node);
	err = efasim_adm_destroy_cq(cq->hw);
	if (err) {
		/* The queue stays, but raises no more interrupts. */
		cq->interrupts = false;
		return err;
	}
	fn->cq_table[index] = NULL;
	kfree(cq);
	return 0;
}

/* There are as many event queues as vectors. An event queue gets the lowest free number. */
int efasim_cmd_create_eq(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			 union efasim_aq_resp *resp)
{
	const struct efasim_create_eq_cmd *c = &cmd->create_eq;
	u32 words = FIELD_GET(EFASIM_EQ_CMD_ENTRY_WORDS, c->caps);
	struct efasim_peq eq = {
		.addr = efasim_addr(c->addr_lo, c->addr_hi),
		.depth = le16_to_cpu(c->depth),
		.vector = c->vector,
	};
	int err = efasim_adm_other(&fn->eng);
	u32 i;

	if (err)
		return err;
	if (!is_power_of_2(eq.depth) || eq.depth > EFASIM_MAX_EQ_DEPTH ||
	    eq.vector >= fn->vectors ||
	    words * sizeof(u32) != sizeof(struct efasim_eqe))
		return -EINVAL;
	for (i = 0; i < fn->vectors && fn->eqs[i].depth; i++)
		;
	if (i == fn->vectors)
		return -ENOMEM;
	spin_lock_irq(&fn->lock);
	fn->eqs[i] = eq;
	spin_unlock_irq(&fn->lock);
	resp->number.number = cpu_to_le16(i);
	return 0;
}

int efasim_cmd_destroy_eq(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
			  union efasim_aq_resp *resp)
{
	u32 i = le16_to_cpu(cmd->number.number);
	int err = efasim_adm_other(&fn->eng);

	if (err)
		return err;
	if (i >= fn->vectors || !fn->eqs[i].depth)
		return -EINVAL;
	spin_lock_irq(&fn->lock);
	fn->eqs[i].depth = 0;
	spin_unlock_irq(&fn->lock);
	return 0;
}

/* Free all objects that a driver has created, including those that it didn't destroy. */
void efasim_fn_free_objects(struct efasim_fn *fn)
{
	u32 i;

	spin_lock_irq(&fn->lock);
	INIT_LIST_HEAD(&fn->qps);
	INIT_LIST_HEAD(&fn->cqs);
	for (i = 0; i < EFASIM_MAX_VECTORS; i++)
		fn->eqs[i].depth = 0;
	spin_unlock_irq(&fn->lock);
	efasim_adm_reset(&fn->eng);
	for (i = 0; i < EFASIM_FN_MAX_QP; i++) {
		kfree(fn->qp_table[i]);
		fn->qp_table[i] = NULL;
	}
	for (i = 0; i < EFASIM_FN_MAX_CQ; i++) {
		kfree(fn->cq_table[i]);
		fn->cq_table[i] = NULL;
	}
	bitmap_zero(fn->llq_pages, EFASIM_LLQ_PAGES);
	bitmap_zero(fn->uars, EFASIM_UARS);
}
