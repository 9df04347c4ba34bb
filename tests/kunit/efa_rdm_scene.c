// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two endpoints of fabric efa, and the network. */
#include <linux/moduleparam.h>
#include <linux/vmalloc.h>
#include "efa_rdm_scene.h"
#include "../../prov/efa/rdm/atomic.h"
#include "../../prov/efa/rdm/knobs.h"

bool rdm_long;
module_param(rdm_long, bool, 0444);
MODULE_PARM_DESC(rdm_long, "Try all moments and take all steps in suites kefa_rdm_*, not only some (default 0)");

#define CLOSE(obj)							\
do {									\
	if (obj)							\
		WARN_ON(fi_close(&(obj)->fid));				\
	(obj) = NULL;							\
} while (0)

static void pair_close(void *data)
{
	struct rdm_pair *pair = data;
	int i;

	for (i = 0; i < 2; i++) {
		CLOSE(pair->end[i].ep);
		CLOSE(pair->end[i].cntr);
		CLOSE(pair->end[i].remote);
		CLOSE(pair->end[i].far);
		CLOSE(pair->end[i].cq);
		CLOSE(pair->end[i].av);
	}
	CLOSE(pair->domain);
	CLOSE(pair->fabric);
	fi_freeinfo(pair->info);
	kfree(pair->out);
	kfree(pair->in);
	rdm_theirs_forget(&pair->theirs);
}

static void end_count_rma(struct kunit *test, struct rdm_pair *pair, struct rdm_end *end)
{
	struct fi_cntr_attr bytes = { .events = FI_CNTR_EVENTS_BYTES }, number = { };

	KUNIT_ASSERT_EQ(test, fi_cntr_open(pair->domain, &bytes, &end->remote, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cntr_open(pair->domain, &number, &end->far, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(end->ep, &end->far->fid, FI_READ | FI_WRITE), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(end->ep, &end->remote->fid,
					 FI_REMOTE_READ | FI_REMOTE_WRITE), 0);
}

static void end_open(struct kunit *test, struct rdm_pair *pair, struct rdm_end *end,
		     const struct rdm_opts *opts)
{
	struct fi_cq_attr cq_attr = {
		.format		= FI_CQ_FORMAT_TAGGED,
		.size		= opts->cq_size,
		.wait_obj	= opts->sleepers ? FI_WAIT_UNSPEC : FI_WAIT_NONE,
		.handler	= opts->handler,
		.flags		= opts->handler ? FI_CQ_SOFTIRQ : 0,
	};
	struct fi_cntr_attr cntr_attr = { };
	struct fi_av_attr av_attr = { };
	size_t len = sizeof(end->name);
	const bool no = false;
	int ret;

	KUNIT_ASSERT_EQ(test, fi_av_open(pair->domain, &av_attr, &end->av, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_cq_open(pair->domain, &cq_attr, &end->cq, NULL), 0);
	kefa_knobs.local_transfer = opts->local;
	ret = fi_endpoint(pair->domain, pair->info, &end->ep, NULL);
	kefa_knobs.local_transfer = false;
	KUNIT_ASSERT_EQ(test, ret, 0);
	if (opts->not_local && end == &pair->end[1])
		KUNIT_ASSERT_EQ(test, fi_setopt(&end->ep->fid, FI_OPT_ENDPOINT,
						FI_OPT_SHARED_MEMORY_PERMITTED, &no, sizeof(no)),
				0);
	/* Few cases deliver all answers. */
	rdm_of(end)->linger_ms = opts->linger_ms;
	KUNIT_ASSERT_EQ(test, fi_ep_bind(end->ep, &end->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV |
					 (opts->selective ? FI_SELECTIVE_COMPLETION : 0)), 0);
	if (opts->counted) {
		KUNIT_ASSERT_EQ(test, fi_cntr_open(pair->domain, &cntr_attr, &end->cntr, NULL), 0);
		KUNIT_ASSERT_EQ(test, fi_ep_bind(end->ep, &end->cntr->fid, FI_SEND | FI_RECV), 0);
	}
	if (opts->rma) {
		end_count_rma(test, pair, end);
		KUNIT_ASSERT_EQ(test, fi_setopt(&end->ep->fid, FI_OPT_ENDPOINT,
						FI_OPT_EFA_USE_DEVICE_RDMA, &opts->rdma,
						sizeof(bool)), 0);
	}
	if (opts->as_msg)
		KUNIT_ASSERT_EQ(test, fi_setopt(&end->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_AS_MSG,
						&(size_t){ 1 }, sizeof(size_t)), 0);
	if (opts->watch && end == &pair->end[0])
		KUNIT_ASSERT_EQ(test, fi_setopt(&end->ep->fid, FI_OPT_ENDPOINT, KOFI_OPT_WATCH,
						&opts->watch, sizeof(opts->watch)), 0);
	if (opts->min_read && end == &pair->end[0])
		KUNIT_ASSERT_EQ(test, fi_setopt(&end->ep->fid, FI_OPT_ENDPOINT,
						FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE,
						&opts->min_read, sizeof(size_t)), 0);
	if (opts->homogeneous)
		KUNIT_ASSERT_EQ(test, fi_setopt(&end->ep->fid, FI_OPT_ENDPOINT,
						FI_OPT_EFA_HOMOGENEOUS_PEERS,
						&opts->homogeneous, sizeof(bool)), 0);
	KUNIT_ASSERT_EQ(test, fi_enable(end->ep), 0);
	end->qp = efake_last_qp(pair->fake);
	KUNIT_ASSERT_EQ(test, fi_getname(&end->ep->fid, &end->name, &len), 0);
}

static struct fi_info *pair_info(struct kunit *test, struct rdm_pair *pair,
				 const struct rdm_opts *opts)
{
	struct fi_info *hints, *info = NULL;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, FI_EFA_FABRIC, pair->fake->dev->name);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->caps = KEFA_RDM_CAPS;
	if (!opts->rma)
		hints->caps &= ~(FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |
				 FI_REMOTE_WRITE | FI_RMA_EVENT);
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	KUNIT_ASSERT_NOT_NULL(test, info);
	if (opts->caps)
		info->caps = opts->caps;
	if (opts->no_order) {
		info->rx_attr->msg_order = 0;
		info->tx_attr->msg_order = 0;
	}
	if (opts->tx_size)
		info->tx_attr->size = opts->tx_size;
	return info;
}

void rdm_learn(struct rdm_pair *pair, const u8 *gid, u16 slid)
{
	struct kefa_domain *dom = to_kefa_domain(pair->domain);
	struct kefa_ah *ah;

	kefa_dev_lock(dom->dev);
	rcu_read_lock();
	ah = kefa_ah_find(dom, gid);
	rcu_read_unlock();
	if (!WARN_ON(!ah)) {
		kefa_slid_learn(ah, slid);
		kefa_slid_sure(ah, slid, true);
	}
	kefa_dev_unlock(dom->dev);
}

struct rdm_pair *rdm_pair_new(struct kunit *test, const struct rdm_opts *opts)
{
	static const struct rdm_opts none;
	struct rdm_pair *pair;
	int i;

	opts = opts ?: &none;
	pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pair);
	pair->fake = efake_make(test, EFA_DEVICE);
	pair->fake->dev->tx_depth = opts->depth ?: EFAKE_TX_DEPTH;
	pair->fake->dev->rx_depth = opts->depth ?: EFAKE_RX_DEPTH;
	pair->fake->dev->mtu = opts->mtu ?: EFAKE_MTU;
	pair->fake->max_map = opts->max_map ?: SIZE_MAX;
	efake_publish(pair->fake);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pair_close, pair), 0);
	pair->test = test;
	rdm_theirs_init(&pair->theirs);
	pair->theirs.homogeneous = opts->homogeneous;
	/* It doesn't know reads and writes. */
	pair->theirs.off = opts->rma || opts->local;
	prandom_seed_state(&pair->net.rnd, 1);
	pair->out = kzalloc(SZ_128K, GFP_KERNEL);
	pair->in = kzalloc(SZ_128K, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, pair->out && pair->in);
	pair->info = pair_info(test, pair, opts);
	KUNIT_ASSERT_EQ(test, fi_fabric(pair->info->fabric_attr, &pair->fabric, NULL), 0);
	KUNIT_ASSERT_EQ(test, fi_domain(pair->fabric, pair->info, &pair->domain, NULL), 0);
	for (i = 0; i < 2; i++) {
		end_open(test, pair, &pair->end[i], opts);
		rdm_of(&pair->end[i])->check_ms = 3600 * MSEC_PER_SEC;
	}
	for (i = 0; i < 2; i++)
		if (!i || !opts->stranger)
			KUNIT_ASSERT_EQ(test, fi_av_insert(pair->end[i].av, &pair->end[!i].name,
							   1, &pair->end[i].peer, 0, NULL), 1);
	efake_settle();
	/* Both endpoints use one address handle, as they are on one device. */
	if (!opts->unlearned)
		rdm_learn(pair, pair->end[0].name.gid, RDM_SLID);
	return pair;
}

void rdm_check_peers(struct kefa_rdm *rdm)
{
	if (!READ_ONCE(rdm->listening))
		return;
	mod_delayed_work(kefa_wq, &rdm->silent, 0);
	/* flush_delayed_work() would run it once more if it had armed its timer again. */
	flush_work(&rdm->silent.work);
}

void rdm_pair_end(struct rdm_pair *pair)
{
	struct kunit *test = pair->test;
	struct efake *fake = pair->fake;

	kunit_release_action(test, pair_close, pair);
	kunit_kfree(test, pair);
	efake_end(fake);
}

/* --- the network --- */

static bool chance(struct rdm_net *net, unsigned int of_1000)
{
	return of_1000 && prandom_u32_state(&net->rnd) % 1000 < of_1000;
}

/* Return: true if the work request was a read, which is done now. */
static bool was_read(struct rdm_pair *pair, struct efake_wr *wr)
{
	struct rdm_net *net = &pair->net;
	u32 status;

	if (wr->opcode != IB_WR_RDMA_READ)
		return false;
	net->reads++;
	status = net->bad_reads || chance(net, net->bad_read) ? 7 : efake_wr_rdma(wr);
	if (net->bad_reads)
		net->bad_reads--;
	efake_wr_done(wr, status);
	return true;
}

/* Return: true if the work request was a write, which is done now. */
static bool was_write(struct rdm_pair *pair, struct efake_wr *wr)
{
	const bool imm = wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct efake_qp *to = efake_qp(pair->fake, wr->qpn);
	struct efake_wr *recv = to ? efake_recv(to, 0) : NULL;
	struct rdm_net *net = &pair->net;
	const struct kefa_wc wc = {
		.src_qpn	= wr->qp->hq->qpn,
		.slid		= RDM_SLID,
		.write		= true,
		.has_imm	= true,
		.imm		= wr->imm,
	};
	u32 status;

	if (wr->opcode != IB_WR_RDMA_WRITE && !imm)
		return false;
	if (imm && (!recv || chance(net, net->rnr))) {
		efake_wr_done(wr, KEFA_STATUS_RNR);
		return true;
	}
	net->writes++;
	status = net->bad_writes ? 7 : efake_wr_rdma(wr);
	if (net->bad_writes)
		net->bad_writes--;
	if (imm && !status)
		efake_recv_done(recv, &wc);
	efake_wr_done(wr, status);
	return true;
}

/* Return: false if the test itself has delivered packets, or left some out. */
static bool judged(struct rdm_pair *pair)
{
	struct rdm_end *end;
	int i;

	for (i = 0; i < 2; i++) {
		end = &pair->end[i];
		if (!end->ep || efake_qp(pair->fake, end->name.qpn) != end->qp ||
		    end->qp->packets != end->packets)
			pair->theirs.off = true;
	}
	return !pair->theirs.off;
}

/* A packet arrives. Fail the case if libfabric wouldn't expect it. */
static void judge(struct rdm_pair *pair, const struct efake_wr *wr, const u8 *buf, size_t len)
{
	const int from = wr->qp == pair->end[1].qp;
	const char *why;

	if (!judged(pair))
		return;
	pair->end[0].packets++;
	pair->end[1].packets++;
	if (!len)
		return;
	why = rdm_theirs_packet(&pair->theirs, from, buf, len);
	if (why)
		KUNIT_FAIL(pair->test, "end %d sends %s", from, why);
}

static bool delivered(struct rdm_pair *pair, struct efake_wr *wr)
{
	const struct kefa_wc late = { .status = 0 };
	struct rdm_net *net = &pair->net;
	struct efake_qp *to = efake_qp(pair->fake, wr->qpn);
	struct efake_wr *recv = to ? efake_recv(to, 0) : NULL;
	static u8 buf[SZ_16K] __aligned(8);
	struct kefa_wc wc = {
		.src_qpn	= wr->qp->hq->qpn,
		.slid		= RDM_SLID,
		.imm		= wr->imm,
		.has_imm	= wr->opcode == IB_WR_SEND_WITH_IMM,
	};

	if (was_read(pair, wr) || was_write(pair, wr))
		return true;
	wc.len = efake_wr_read(wr, buf, sizeof(buf));
	if (!to || wr->qkey != to->hq->qkey) {
		efake_wr_done(wr, 9);
		return true;
	}
	if (net->lost && buf[0] == net->lost && net->nlost) {
		net->nlost--;
		efake_wr_done(wr, net->status);
		return true;
	}
	if (!recv || chance(net, net->rnr)) {
		efake_wr_done(wr, KEFA_STATUS_RNR);
		return true;
	}
	net->seen[buf[0]]++;
	judge(pair, wr, buf, wc.len);
	efake_wr_write(recv, buf, wc.len);
	efake_recv_done(recv, &wc);
	/* Let the receiver answer before the sender gets its completion. */
	if (chance(net, net->late))
		efake_settle();
	efake_recv_done(wr, &late);
	return true;
}

/* The nth work request, or the first one after it, that isn't a registration. */
static struct efake_wr *under_way(struct efake_qp *qp, unsigned int n)
{
	struct efake_wr *wr;

	while ((wr = efake_sent(qp, n)) && wr->mr)
		n++;
	return wr;
}

bool rdm_deliver(struct rdm_pair *pair, int from)
{
	struct efake_wr *wr;
	unsigned int i;

	for (i = 0; (wr = efake_sent(pair->end[from].qp, i)); i++)
		if (!wr->mr && wr->qpn == pair->end[!from].name.qpn)
			return delivered(pair, wr);
	return false;
}

bool rdm_step(struct rdm_pair *pair)
{
	unsigned int i, n, first = prandom_u32_state(&pair->net.rnd) & 1;
	struct efake_wr *wr;
	struct efake_qp *qp;

	for (i = 0; i < 2; i++) {
		if (!pair->end[i ^ first].ep)
			continue;
		qp = pair->end[i ^ first].qp;
		n = READ_ONCE(qp->nsent);
		if (!n)
			continue;
		n = chance(&pair->net, pair->net.reorder) ?
		    prandom_u32_state(&pair->net.rnd) % n : 0;
		wr = under_way(qp, n) ?: under_way(qp, 0);
		if (wr)
			return delivered(pair, wr);
	}
	return false;
}

/* Longer delays are set by cases on purpose. */
bool rdm_waits(struct rdm_end *end)
{
	struct kefa_ep *ep;
	bool soon = false;

	if (!end->ep)
		return false;
	ep = to_kefa_ep(end->ep);
	spin_lock_bh(&ep->lock);
	if (ep->state == KEFA_EP_ENABLED)
		soon = ktime_before(kefa_backoff_next(&rdm_of(end)->backoffs),
				    ktime_add_ms(ktime_get(), 50));
	spin_unlock_bh(&ep->lock);
	return soon;
}

void rdm_run(struct rdm_pair *pair)
{
	unsigned int idle, n;

	for (idle = 0; idle < 3;) {
		for (n = 0; rdm_step(pair); n++)
			if (n % 16 == 15)
				efake_settle();
		efake_settle_all();
		if (n) {
			idle = 0;
			continue;
		}
		/* A timer may have expired just now: check several times. */
		idle = rdm_waits(&pair->end[0]) || rdm_waits(&pair->end[1]) ? 0 : idle + 1;
		usleep_range(200, 300);
	}
}

struct efake_wr *rdm_run_until(struct rdm_pair *pair, int from, u8 type)
{
	struct efake_qp *qp = pair->end[from].qp;
	struct efake_wr *wr;
	unsigned int i, n;
	u8 is = 0;

	for (n = 0; n < 1000; n++) {
		efake_settle_all();
		for (i = 0; (wr = efake_sent(qp, i)); i++) {
			if (wr->opcode == IB_WR_SEND)
				efake_wr_read(wr, &is, 1);
			if (type ? wr->opcode == IB_WR_SEND && is == type :
				   wr->opcode == IB_WR_RDMA_READ)
				return wr;
		}
		if (!rdm_step(pair))
			return NULL;
	}
	return NULL;
}

struct rdm_pair *rdm_reading_pair(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	int i;

	for (i = 0; i < 2; i++)
		rdm_of(&pair->end[i])->lim.min_read_message = RDM_READ_FROM;
	return pair;
}

struct rdm_pair *rdm_ready_pair(struct kunit *test, const struct rdm_opts *opts)
{
	struct rdm_pair *pair = rdm_pair_new(test, opts);

	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, 8, 5, 2), 0);
	rdm_run(pair);
	if (opts && opts->selective)
		return pair;
	rdm_expect(test, &pair->end[0], 2, 8);
	rdm_expect(test, &pair->end[1], 1, 8);
	return pair;
}

void rdm_finish_sent(struct rdm_pair *pair, int at, u32 status)
{
	struct efake_qp *qp = pair->end[at].qp;
	unsigned int n;

	for (n = 0; qp->nsent && n < 1000; n++) {
		efake_wr_done(efake_sent(qp, 0), status);
		efake_settle();
	}
}

u8 *rdm_scattered(struct kunit *test, u8 *pages, size_t size)
{
	const unsigned int n = PFN_UP(size);
	struct page **list = kunit_kcalloc(test, n, sizeof(*list), GFP_KERNEL);
	unsigned int i;
	u8 *mem;

	KUNIT_ASSERT_NOT_NULL(test, list);
	for (i = 0; i < n; i++)
		list[i] = virt_to_page(pages + (n - 1 - i) * PAGE_SIZE);
	mem = vmap(list, n, VM_MAP, PAGE_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	return mem;
}

/* --- results --- */

unsigned int rdm_read_all(struct rdm_end *end, unsigned int n)
{
	while (rdm_read(end).ret == 1)
		n++;
	return n;
}

u32 rdm_uses(const struct kefa_rdm *rdm)
{
	u32 i, n = 0;

	for (i = 0; i < rdm->rops.size; i++)
		n += rdm->rops.ops[i].gen;
	return n;
}

struct rdm_comp rdm_read(struct rdm_end *end)
{
	struct rdm_comp comp = { };

	comp.ret = fi_cq_readfrom(end->cq, &comp.entry, 1, &comp.src);
	if (comp.ret == -FI_EAVAIL)
		fi_cq_readerr(end->cq, &comp.error, 0);
	return comp;
}

void rdm_expect(struct kunit *test, struct rdm_end *end, long ctx, size_t len)
{
	struct rdm_comp comp = rdm_read(end);

	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, comp.error.err, 0);
	if (comp.ret != 1)
		return;
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, ctx);
	KUNIT_EXPECT_EQ(test, comp.entry.len, len);
}

void rdm_expect_error(struct kunit *test, struct rdm_end *end, long ctx, int err)
{
	struct rdm_comp comp = rdm_read(end);

	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, ctx);
	KUNIT_EXPECT_EQ(test, comp.error.err, err);
}

void rdm_expect_nothing(struct kunit *test, struct rdm_end *end)
{
	KUNIT_EXPECT_EQ(test, rdm_read(end).ret, -EAGAIN);
}

void rdm_inject(struct rdm_pair *pair, const void *buf, size_t len)
{
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	const struct kefa_wc wc = {
		.len		= len,
		.src_qpn	= pair->end[0].name.qpn,
		.slid		= RDM_SLID,
	};

	efake_wr_write(recv, buf, len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

u32 rdm_regions(struct rdm_end *end)
{
	return list_count_nodes(&rdm_of(end)->sources_free);
}

/* Return: the number of atomic operations that the ULP could post. */
static size_t free_atomics(const struct kefa_rdm *rdm)
{
	const struct kefa_atomic *atomic;
	size_t n = 0;

	for (atomic = rdm->atomics_free; atomic; atomic = atomic->next)
		n++;
	return n;
}

void rdm_expect_whole(struct kunit *test, struct rdm_pair *pair)
{
	struct kefa_rdm *rdm;
	u64 deaths = 0;
	int i;

	for (i = 0; i < 2; i++) {
		if (!pair->end[i].ep)
			continue;
		rdm = rdm_of(&pair->end[i]);
		deaths += rdm->stats.deaths;
		KUNIT_EXPECT_EQ(test, rdm->rops.used, 0U);
		KUNIT_EXPECT_EQ(test, rdm->ts_nfree, rdm->nts);
		KUNIT_EXPECT_EQ(test, rdm->kept, 0ULL);
		KUNIT_EXPECT_EQ(test, rdm->msgs.entries, 0U);
		KUNIT_EXPECT_EQ(test, rdm->fair.begun, 0U);
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->fair.untold));
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->reading));
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->owing));
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->asked));
		KUNIT_EXPECT_TRUE(test, list_empty(&rdm->sending));
		KUNIT_EXPECT_EQ(test, rdm->ntargets, rdm->targets ? KEFA_TARGETS : 0U);
		KUNIT_EXPECT_EQ(test, rdm_regions(&pair->end[i]), rdm->nsources);
		KUNIT_EXPECT_EQ(test, free_atomics(rdm), rdm->atomics ? rdm->ep.tx.base.size : 0);
		KUNIT_EXPECT_EQ(test, rdm->ep.nregs, rdm->ep.nregs_done);
		KUNIT_EXPECT_EQ(test, (size_t)rdm->ep.tx.nfree, rdm->ep.tx.base.size);
		KUNIT_EXPECT_EQ(test, (size_t)rdm->ep.rx.nfree, rdm->ep.rx.base.size);
	}
	/* A dead peer is owed nothing. */
	for (i = 0; i < 2 && !deaths && judged(pair); i++)
		KUNIT_EXPECT_EQ(test, rdm_theirs_waiting(&pair->theirs, i), 0U);
}
