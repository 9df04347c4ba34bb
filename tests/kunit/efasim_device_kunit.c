// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The software EFA device: commands, addresses, memory, and knobs for behavior that Amazon's
 * sources leave to the device.
 */
#include "efasim_engine_pair.c"

static u64 injected(const struct end *end, enum efasim_fault fault)
{
	return atomic64_read(&end->dev.injected[fault]);
}

/* Completions don't report a handle's number at first. */
static void device_young_handle(struct kunit *test)
{
	struct pair *p = test->priv;
	u8 gid[EFASIM_GID_LEN] = { 0xfe, 0x80, 9 };
	u16 number;

	p->a.dev.fault[EFASIM_F_slid_lag_us] = 60 * USEC_PER_SEC;
	KUNIT_ASSERT_EQ(test, efasim_adm_create_ah(&p->a.dev, p->a.pdn, gid,
						   &number), 0);
	mutex_lock(&p->a.dev.lock);
	KUNIT_EXPECT_EQ(test, efasim_dev_slid(&p->a.dev, p->a.pdn, gid),
			EFASIM_AH_NONE);
	efasim_dev_find_ah(&p->a.dev, p->a.pdn, gid)->visible = ktime_get();
	KUNIT_EXPECT_EQ(test, efasim_dev_slid(&p->a.dev, p->a.pdn, gid), number);
	/* A handle in another protection domain doesn't count. */
	KUNIT_EXPECT_EQ(test, efasim_dev_slid(&p->a.dev, p->a.pdn + 1, gid),
			EFASIM_AH_NONE);
	mutex_unlock(&p->a.dev.lock);
	KUNIT_EXPECT_EQ(test, injected(&p->a, EFASIM_F_slid_lag_us), 1);
}

/* All values of the knob are valid, also the largest, which is more than an hour. */
static void device_late_registration(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_qp *qp = p->a.qp;

	p->a.dev.fault[EFASIM_F_reg_delay_us] = U32_MAX;
	put_wqe(qp, qp->sq_prod, &(struct efasim_wqe) {
		.op = EFASIM_OP_FAST_INV,
	});
	efasim_sq_doorbell(qp, qp->sq_prod + 1);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 0);
	KUNIT_EXPECT_EQ(test, injected(&p->a, EFASIM_F_reg_delay_us), 1);
	KUNIT_EXPECT_TRUE(test, qp->ops[0].timer.armed);
	KUNIT_EXPECT_GT(test, ktime_us_delta(qp->ops[0].timer.node.expires,
					     ktime_get()), USEC_PER_SEC);
}

static bool dma_fails(struct end *end, u64 addr)
{
	u64 before = stat(end, EFASIM_S_bad_dma_address);
	u8 buf[8] = { };
	bool ok;

	mutex_lock(&end->dev.lock);
	ok = efasim_dev_dma(&end->dev, addr, buf, sizeof(buf),
			    EFASIM_MR_READ_FROM) ||
	     efasim_dev_dma(&end->dev, addr, buf, sizeof(buf),
			    EFASIM_MR_WRITE_TO);
	mutex_unlock(&end->dev.lock);
	return !ok && stat(end, EFASIM_S_bad_dma_address) == before + 2;
}

/* An address without memory, with or without a struct page, is refused. */
static void device_wild_dma(struct kunit *test)
{
	struct pair *p = test->priv;
	unsigned long pfn, holes = 0;

	KUNIT_EXPECT_TRUE(test, dma_fails(&p->a, BIT_ULL(EFASIM_DMA_BITS - 1)));
	for (pfn = 0; pfn < PHYS_PFN(SZ_4G) && holes < 10; pfn++) {
		u8 byte;

		if (!pfn_valid(pfn) ||
		    !copy_from_kernel_nofault(&byte, pfn_to_kaddr(pfn), 1))
			continue;
		KUNIT_EXPECT_TRUE(test, dma_fails(&p->a, PFN_PHYS(pfn)));
		holes++;
	}
	/* Memory may end within a section, and has holes for the firmware. */
	KUNIT_EXPECT_GT(test, holes, 0);
}

/* A refused command changes nothing, and no state can be skipped. */
static void device_modify(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_qp_modify now = { }, modify = {
		.mask = EFASIM_MODIFY_STATE | EFASIM_MODIFY_QKEY |
			EFASIM_MODIFY_PSN | EFASIM_MODIFY_RNR,
		.state = EFASIM_QPS_RTS, .qkey = QKEY + 1, .sq_psn = 99,
		.rnr_retry = EFASIM_RNR_INFINITE + 1,
	};

	KUNIT_EXPECT_EQ(test, efasim_adm_modify_qp(p->a.qp, &modify), -EINVAL);
	modify.rnr_retry = 3;
	modify.state = EFASIM_QPS_INIT;
	KUNIT_EXPECT_EQ(test, efasim_adm_modify_qp(p->a.qp, &modify), -EINVAL);
	modify.state = EFASIM_QPS_SQE;
	KUNIT_EXPECT_EQ(test, efasim_adm_modify_qp(p->a.qp, &modify), -EINVAL);
	modify.state = EFASIM_QPS_ERR + 1;
	KUNIT_EXPECT_EQ(test, efasim_adm_modify_qp(p->a.qp, &modify), -EINVAL);
	KUNIT_ASSERT_EQ(test, efasim_adm_query_qp(p->a.qp, &now), 0);
	KUNIT_EXPECT_EQ(test, now.state, EFASIM_QPS_RTS);
	KUNIT_EXPECT_EQ(test, now.qkey, QKEY);
	KUNIT_EXPECT_EQ(test, now.sq_psn, 0);
	KUNIT_EXPECT_EQ(test, now.rnr_retry, EFASIM_RNR_INFINITE);
	modify.state = EFASIM_QPS_SQD;
	KUNIT_EXPECT_EQ(test, efasim_adm_modify_qp(p->a.qp, &modify), 0);
	KUNIT_ASSERT_EQ(test, efasim_adm_query_qp(p->a.qp, &now), 0);
	KUNIT_EXPECT_EQ(test, now.state, EFASIM_QPS_SQD);
	KUNIT_EXPECT_EQ(test, now.sq_psn, 99);
}

/* One message that waits for a receive. */
static void post_waiting(struct kunit *test, struct pair *p, u32 n)
{
	post(&p->a, &p->b, 0, n);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_ASSERT_EQ(test, p->a.cq.sent, 0);
}

static void to_error(struct kunit *test, struct end *end)
{
	const struct efasim_qp_modify error = {
		.mask = EFASIM_MODIFY_STATE, .state = EFASIM_QPS_ERR,
	};

	KUNIT_EXPECT_EQ(test, efasim_adm_modify_qp(end->qp, &error), 0);
	drain(end);
}

/* In ERR, work that is active, not begun or waiting for a message is flushed, or dropped. */
static void device_err_flush(struct kunit *test)
{
	struct pair *p = test->priv;

	post_waiting(test, p, 3);
	post_recvs(&p->a, 2);
	post(&p->a, &p->b, 3, 4);
	p->a.dev.fault[EFASIM_F_err_flush] = 1000;
	to_error(test, &p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 7);
	KUNIT_EXPECT_EQ(test, p->a.cq.received, 2);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_FLUSHED);
	KUNIT_EXPECT_EQ(test, injected(&p->a, EFASIM_F_err_flush), 9);

	post_recvs(&p->b, 2);
	to_error(test, &p->b);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 0);
	usleep_range(2000, 3000);
	run(&p->a);
	run(&p->b);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 7);
	expect_sane(test, &p->a);
}

/* A handle belongs to its protection domain; work that uses it ends with it. */
static void device_address_handles(struct kunit *test)
{
	struct pair *p = test->priv;
	u16 other, again;
	u32 pdn;

	KUNIT_ASSERT_EQ(test, efasim_adm_alloc_pd(&p->a.dev, &pdn), 0);
	KUNIT_ASSERT_EQ(test, efasim_adm_create_ah(&p->a.dev, pdn, p->b.dev.gid,
						   &other), 0);
	KUNIT_ASSERT_EQ(test, efasim_adm_create_ah(&p->a.dev, p->a.pdn,
						   p->b.dev.gid, &again), 0);
	KUNIT_EXPECT_NE(test, other, p->a.ah);
	KUNIT_EXPECT_EQ(test, again, p->a.ah);

	post_waiting(test, p, 2);
	efasim_adm_destroy_ah(&p->a.dev, pdn, p->a.ah);
	efasim_adm_destroy_ah(&p->a.dev, p->a.pdn, again);
	drain(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 0);
	efasim_adm_destroy_ah(&p->a.dev, p->a.pdn, p->a.ah);
	drain(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 2);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_FLUSHED);

	p->a.ah = other;
	post(&p->a, &p->b, 2, 1);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 3);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_INVALID_AH);
}

/* Return: the byte that a peer reads at @addr with @key, or -1. */
static int byte_at(struct end *end, u32 key, u64 addr)
{
	u8 byte;

	lockdep_assert_held(&end->dev.lock);
	return efasim_dev_mr_copy(&end->dev, end->pdn, key, addr, &byte, 1,
				  EFASIM_ACCESS_REMOTE_READ,
				  EFASIM_MR_READ_FROM) ? byte : -1;
}

/* A change of the page list takes effect if the device reads the list at each use. */
static void device_page_lists(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_mr *mr = efasim_adm_alloc_mr(&p->a.dev, p->a.pdn, 2);
	u8 *pages = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);
	u64 *list = kunit_kzalloc(test, 2 * sizeof(*list), GFP_KERNEL);
	struct efasim_wqe wqe = {
		.op = EFASIM_OP_FAST_REG,
		.reg = {
			.iova = IOVA, .length = 2 * PAGE_SIZE, .npages = 2,
			.page_shift = PAGE_SHIFT,
			.access = EFASIM_ACCESS_REMOTE_READ,
		},
	};
	int copied;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr) || !pages || !list);
	memset(pages + 2 * PAGE_SIZE, 0x5a, 2 * PAGE_SIZE);
	wqe.reg.lkey = mr->index;
	wqe.reg.pbl = virt_to_phys(list);
	mutex_lock(&p->a.dev.lock);
	for (copied = 0; copied < 2; copied++) {
		p->a.dev.fault[EFASIM_F_frwr_copy] = copied * 1000;
		list[0] = virt_to_phys(pages);
		list[1] = list[0] + PAGE_SIZE;
		wqe.reg.lkey += KEY_STEP;
		KUNIT_EXPECT_EQ(test, efasim_dev_mr_reg(p->a.qp, &wqe), 0);
		list[1] += 2 * PAGE_SIZE;
		KUNIT_EXPECT_EQ(test, byte_at(&p->a, wqe.reg.lkey,
					      IOVA + PAGE_SIZE),
				copied ? 0 : 0x5a);
		KUNIT_EXPECT_EQ(test, efasim_dev_mr_inv(p->a.qp,
							wqe.reg.lkey), 0);
	}
	mutex_unlock(&p->a.dev.lock);
	KUNIT_EXPECT_EQ(test, injected(&p->a, EFASIM_F_frwr_copy), 1);
}

/*
 * Only the kernel names physical addresses, in regions for that purpose. A process, which can write
 * into its send queue, must not register its own region again.
 */
static void device_region_of_process(struct kunit *test)
{
	const struct efasim_reg attr = {
		.iova = IOVA, .length = PAGE_SIZE, .npages = 1, .page_shift = PAGE_SHIFT,
		.access = EFASIM_ACCESS_REMOTE_READ,
	};
	void *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	u64 *list = kvmalloc(sizeof(*list), GFP_KERNEL);
	struct efasim_wqe wqe = { .op = EFASIM_OP_FAST_REG, .reg = attr };
	struct pair *p = test->priv;
	struct efasim_mr *mr;

	KUNIT_ASSERT_NOT_NULL(test, list);
	list[0] = virt_to_phys(page);
	mr = efasim_adm_reg_mr(&p->a.dev, p->a.pdn, &attr, list);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	mutex_lock(&p->a.dev.lock);
	KUNIT_EXPECT_EQ(test, efasim_dev_mr_inv(p->a.qp, mr->key), EFASIM_INVALID_LKEY);
	WRITE_ONCE(mr->state, EFASIM_MR_FREE);
	wqe.reg.lkey = mr->key ^ KEY_STEP;
	wqe.reg.pbl = virt_to_phys(page);
	wqe.reg.pbl_inline = true;
	KUNIT_EXPECT_EQ(test, efasim_dev_mr_reg(p->a.qp, &wqe), EFASIM_INVALID_LKEY);
	mutex_unlock(&p->a.dev.lock);
}

/* A write to addresses that don't exist fails at once: nothing is sent that the peer would drop. */
static void device_address_wraps(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_wqe wqe = {
		.op = EFASIM_OP_WRITE, .num_sge = 1, .ah = p->a.ah, .dest_qpn = p->b.qp->qpn,
		.qkey = QKEY, .rdma = { .local.length = 4, .addr = U64_MAX - 3 },
	};

	put_wqe(p->a.qp, 0, &wqe);
	efasim_sq_doorbell(p->a.qp, 1);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 1);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_BAD_ADDRESS);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_tx_pkts), 0);
}

static void post_reg(struct end *end, struct efasim_mr *mr)
{
	struct efasim_qp *qp = end->qp;

	put_wqe(qp, qp->sq_prod, &(struct efasim_wqe) {
		.op = EFASIM_OP_FAST_REG,
	});
	efasim_sq_slot(qp, qp->sq_prod)->reg_mr_req.lkey =
		cpu_to_le32(mr->index | KEY_STEP);
	mr->posted = true;
	efasim_sq_doorbell(qp, qp->sq_prod + 1);
}

/* The request of a region ends when it completes, or when its queue pair stops. */
static void device_reg_posted(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_mr *mr = efasim_adm_alloc_mr(&p->a.dev, p->a.pdn, 1);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	post_reg(&p->a, mr);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 0);
	KUNIT_EXPECT_TRUE(test, mr->posted);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 1);
	KUNIT_EXPECT_FALSE(test, mr->posted);

	post_reg(&p->a, mr);
	to_error(test, &p->a);
	KUNIT_EXPECT_FALSE(test, mr->posted);
}

static void device_rnr_timer(struct kunit *test)
{
	struct pair *p = test->priv;

	p->a.dev.fault[EFASIM_F_rnr_timer_us] = 60 * USEC_PER_SEC;
	post_waiting(test, p, 1);
	KUNIT_EXPECT_TRUE(test, p->a.qp->ops[0].rnr_wait);
	KUNIT_EXPECT_GT(test, ktime_us_delta(p->a.qp->ops[0].timer.node.expires,
					     ktime_get()), 50 * USEC_PER_SEC);
}

/*
 * A message for which no receive is posted is sent again as often as the queue pair was told, and
 * then fails; or for ever.
 */
static void device_rnr_retries(struct kunit *test)
{
	static const u8 retries[] = { 0, 1, EFASIM_RNR_INFINITE - 1, EFASIM_RNR_INFINITE };
	const u64 many = 3 * EFASIM_RNR_INFINITE;
	struct pair *p = test->priv;
	u64 before, refused;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(retries); i++) {
		before = stat(&p->b, EFASIM_S_rnr_nak_sent);
		p->a.qp->rnr_retry = retries[i];
		post(&p->a, &p->b, i, 1);
		for (n = 0; n < 1000 && p->a.cq.sent == i; n++) {
			run(&p->a);
			run(&p->b);
			refused = stat(&p->b, EFASIM_S_rnr_nak_sent) - before;
			if (refused >= many)
				break;
			usleep_range(50, 100);
		}
		if (retries[i] == EFASIM_RNR_INFINITE)
			break;
		KUNIT_EXPECT_EQ(test, p->a.cq.sent, i + 1);
		KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_RNR);
		KUNIT_EXPECT_EQ(test, refused, retries[i] + 1ULL);
	}
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, i);
	KUNIT_EXPECT_EQ(test, refused, many);
	post_recvs(&p->b, 1);
	for (n = 0; n < 1000 && p->a.cq.sent == i; n++) {
		run(&p->a);
		run(&p->b);
		usleep_range(50, 100);
	}
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, i + 1);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 1);
}

/* A dead device transfers nothing, commands time out, and posted work stays. */
static void device_dead(struct kunit *test)
{
	struct pair *p = test->priv;
	u32 pdn;

	/* The worker of the device reads the knob. */
	p->a.dev.stopping = false;
	p->a.dev.fault[EFASIM_F_admin_timeout_ms] = 1;
	p->a.dev.fault[EFASIM_F_dead] = 1;
	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 0, 1);
	flush_work(&p->a.dev.work);
	KUNIT_EXPECT_EQ(test, p->b.dev.rxq.count, 0);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&p->a.dev.timer));
	KUNIT_EXPECT_EQ(test, efasim_adm_alloc_pd(&p->a.dev, &pdn), -ETIME);
	KUNIT_EXPECT_EQ(test, efasim_adm_alloc_pd(&p->a.dev, &pdn), -ENODEV);
	KUNIT_EXPECT_GT(test, injected(&p->a, EFASIM_F_dead), 1);
	p->a.dev.fault[EFASIM_F_dead] = 0;
	efasim_kick(&p->a.dev);
	flush_work(&p->a.dev.work);
	KUNIT_EXPECT_EQ(test, p->b.dev.rxq.count, 1);
	mutex_lock(&p->a.dev.lock);
	p->a.dev.stopping = true;
	mutex_unlock(&p->a.dev.lock);
}

static void device_slow_commands(struct kunit *test)
{
	struct pair *p = test->priv;
	u32 i, pdn;

	p->a.dev.fault[EFASIM_F_admin_delay_us] = 200;
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, efasim_adm_alloc_pd(&p->a.dev, &pdn), 0);
		efasim_adm_dealloc_pd(&p->a.dev, pdn);
	}
	KUNIT_EXPECT_EQ(test, injected(&p->a, EFASIM_F_admin_delay_us), 6);
}

static u32 table_size(struct rhashtable *table)
{
	u32 size;

	/* The table grows in a work item. */
	flush_work(&table->run_work);
	rcu_read_lock();
	size = rht_dereference_rcu(table->tbl, table)->size;
	rcu_read_unlock();
	return size;
}

/* The lists that a packet's peer and address handle are looked up in don't get longer. */
static void device_many_peers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct efasim_dev *dev = &p->a.dev;
	u8 gid[EFASIM_GID_LEN];
	u16 number;
	u32 i, pdn;

	dev->limits.max_ah = 3 * PEERS;
	dev->limits.max_peers = 2 * PEERS;
	KUNIT_ASSERT_EQ(test, efasim_adm_alloc_pd(dev, &pdn), 0);
	for (i = 0; i < PEERS; i++) {
		gid_of(gid, htonl(i), htons(1));
		KUNIT_ASSERT_EQ(test, efasim_adm_create_ah(dev, p->a.pdn, gid, &number), 0);
		KUNIT_ASSERT_EQ(test, efasim_adm_create_ah(dev, pdn, gid, &number), 0);
		mutex_lock(&dev->lock);
		KUNIT_EXPECT_FALSE(test, IS_ERR(efasim_dev_peer(dev, gid, true)));
		mutex_unlock(&dev->lock);
	}
	KUNIT_EXPECT_GE(test, table_size(&dev->peers_by_gid), PEERS);
	KUNIT_EXPECT_GE(test, table_size(&dev->ahs_by_gid.ht), PEERS);

	mutex_lock(&dev->lock);
	for (i = 0; i < PEERS; i++) {
		gid_of(gid, htonl(i), htons(1));
		KUNIT_EXPECT_FALSE(test, IS_ERR(efasim_dev_peer(dev, gid, false)));
		KUNIT_EXPECT_NOT_NULL(test, efasim_dev_find_ah(dev, pdn, gid));
		KUNIT_EXPECT_NULL(test, efasim_dev_find_ah(dev, pdn + 1, gid));
	}
	mutex_unlock(&dev->lock);

	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 0, 1);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 1);
}

static struct kunit_case device_cases[] = {
	KUNIT_CASE_SLOW(device_many_peers),
	KUNIT_CASE(device_young_handle),
	KUNIT_CASE(device_late_registration),
	KUNIT_CASE(device_wild_dma),
	KUNIT_CASE(device_modify),
	KUNIT_CASE(device_err_flush),
	KUNIT_CASE(device_address_handles),
	KUNIT_CASE(device_page_lists),
	KUNIT_CASE(device_region_of_process),
	KUNIT_CASE(device_address_wraps),
	KUNIT_CASE(device_reg_posted),
	KUNIT_CASE(device_rnr_timer),
	KUNIT_CASE(device_rnr_retries),
	KUNIT_CASE(device_dead),
	KUNIT_CASE(device_slow_commands),
	{ }
};

static struct kunit_suite device_suite = {
	.name = "efasim_device",
	.suite_init = engine_suite_init,
	.suite_exit = engine_suite_exit,
	.init = engine_init,
	.exit = close_pair,
	.test_cases = device_cases,
};

kunit_test_suite(device_suite);

MODULE_DESCRIPTION("KUnit tests of the software EFA device's commands and knobs");
MODULE_LICENSE("Dual BSD/GPL");
