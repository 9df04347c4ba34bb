// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Failing allocations: each allocation of the software EFA device's engine fails in turn, alone
 * or with the following ones. A failed command must leave no trace; messages must still
 * arrive, once.
 */
#include <kunit/test.h>
#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/iommu.h>
#include <linux/sched/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/udp.h>

#include "../../sim/engine.h"

/**
 * struct nomem - which allocations fail; no other code runs meanwhile
 * @after: number of allocations that succeed first
 * @burst: number of following allocations that fail
 * @one_in: after that, one in this number fails at random; 0 for none
 * @rnd: random state for @one_in
 * @failed: number of allocations that have failed
 * @held: number of allocations that aren't freed
 * @dev: device under whose lock allocations must not wait for write-out
 * @unsafe: number of allocations that could have waited under it
 */
static struct nomem {
	unsigned int		after;
	unsigned int		burst;
	unsigned int		one_in;
	struct rnd_state	rnd;
	unsigned int		failed;
	int			held;
	struct efasim_dev	*dev;
	unsigned int		unsafe;
} nomem;

/* Only if this task holds the lock; a worker of the device may hold it meanwhile. */
static bool nomem_locked(const struct efasim_dev *dev)
{
#ifdef CONFIG_LOCKDEP
	return lockdep_is_held(&dev->lock) == LOCK_STATE_HELD;
#else
	return false;
#endif
}

static bool nomem_strikes(gfp_t gfp)
{
	if (nomem.dev && nomem_locked(nomem.dev) &&
	    current_gfp_context(gfp) & __GFP_IO)
		nomem.unsafe++;
	if (nomem.after) {
		nomem.after--;
		return false;
	}
	if (nomem.burst)
		nomem.burst--;
	else if (!nomem.one_in || prandom_u32_state(&nomem.rnd) % nomem.one_in)
		return false;
	nomem.failed++;
	return true;
}

static void *nomem_kvcalloc(size_t n, size_t size, gfp_t gfp)
{
	void *ptr = nomem_strikes(gfp) ? NULL : kvcalloc(n, size, gfp);

	nomem.held += !!ptr;
	return ptr;
}

static void *nomem_kmalloc(size_t size, gfp_t gfp)
{
	void *ptr = nomem_strikes(gfp) ? NULL : kmalloc(size, gfp);

	nomem.held += !!ptr;
	return ptr;
}

static void nomem_kvfree(const void *ptr)
{
	nomem.held -= !!ptr;
	kvfree(ptr);
}

static int nomem_xa_alloc(struct xarray *xa, u32 *id, void *entry,
			  struct xa_limit limit, gfp_t gfp)
{
	return nomem_strikes(gfp) ? -ENOMEM : xa_alloc(xa, id, entry, limit, gfp);
}

static int nomem_xa_alloc_cyclic(struct xarray *xa, u32 *id, void *entry,
				 struct xa_limit limit, u32 *next, gfp_t gfp)
{
	return nomem_strikes(gfp) ? -ENOMEM :
	       xa_alloc_cyclic(xa, id, entry, limit, next, gfp);
}

#undef kmalloc
#undef kzalloc
#undef kvmalloc
#undef kvcalloc
#define kmalloc			nomem_kmalloc
#define kvmalloc		nomem_kmalloc
#define kzalloc(size, gfp)	nomem_kvcalloc(1, size, gfp)
#define kvcalloc		nomem_kvcalloc
#define kfree			nomem_kvfree
#define kvfree			nomem_kvfree
#define xa_alloc		nomem_xa_alloc
#define xa_alloc_cyclic		nomem_xa_alloc_cyclic

#include "efasim_engine_pair.c"

#define LENGTH		10000	/* three packets */
#define ROOM_SHIFT	14
#define ROOM		BIT(ROOM_SHIFT)
#define POINTS_MAX	100	/* more than the allocations of any command */
#define STORM		200	/* messages */

/* --- commands --- */

struct command {
	const char *name;
	int (*run)(struct pair *p);
	unsigned int points;	/* number of allocations */
};

static int run_device(struct pair *p)
{
	struct end *end = &p->c;
	int err = create_dev(end);

	if (!err)
		efasim_engine_destroy(&end->dev);
	return err;
}

static int run_pd(struct pair *p)
{
	u32 pdn;

	return efasim_adm_alloc_pd(&p->a.dev, &pdn);
}

static int run_cq(struct pair *p)
{
	const struct efasim_cq_params params = {
		.depth = CQ_DEPTH, .entry_size = sizeof(*p->a.cqes),
	};

	return PTR_ERR_OR_ZERO(efasim_adm_create_cq(&p->a.dev, &params));
}

static int run_qp(struct pair *p)
{
	const struct efasim_qp_params params = {
		.type = EFASIM_QP_SRD, .pdn = p->a.pdn,
		.sq_depth = DEPTH, .rq_depth = DEPTH,
		.send_cq = p->a.hw_cq, .recv_cq = p->a.hw_cq,
	};

	return PTR_ERR_OR_ZERO(efasim_adm_create_qp(&p->a.dev, &params));
}

static int run_ah(struct pair *p)
{
	static const u8 gid[EFASIM_GID_LEN] = { 0xfe, 0x80, 9 };
	u16 number;

	return efasim_adm_create_ah(&p->a.dev, p->a.pdn, gid, &number);
}

static int run_mr(struct pair *p)
{
	return PTR_ERR_OR_ZERO(efasim_adm_alloc_mr(&p->a.dev, p->a.pdn, 1));
}

static int run_dma_mr(struct pair *p)
{
	return PTR_ERR_OR_ZERO(efasim_adm_dma_mr(&p->a.dev, p->a.pdn));
}

static const struct command commands[] = {
	{ "device", run_device, 2 },
	{ "pd", run_pd, 1 },
	{ "cq", run_cq, 3 },
	{ "qp", run_qp, 4 },
	{ "ah", run_ah, 2 },
	{ "mr", run_mr, 2 },
	{ "dma mr", run_dma_mr, 2 },
};

static void command_name(const struct command *command, char *desc)
{
	strscpy(desc, command->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(command, commands, command_name);

static u64 objects(const struct efasim_dev *dev)
{
	return dev->num_qp + dev->num_cq + dev->num_mr + dev->num_ah + dev->mr_pages;
}

static void nomem_command(struct kunit *test)
{
	const struct command *command = test->param_value;
	struct pair *p = test->priv;
	u64 before = objects(&p->a.dev);
	unsigned int nth;
	int held = nomem.held;

	nomem.dev = &p->a.dev;
	for (nth = 0; nth < command->points; nth++) {
		nomem.after = nth;
		nomem.burst = 1;
		KUNIT_EXPECT_EQ(test, command->run(p), -ENOMEM);
		KUNIT_EXPECT_EQ(test, objects(&p->a.dev), before);
		KUNIT_EXPECT_EQ(test, nomem.held, held);
	}
	nomem.after = nth;
	nomem.burst = 1;
	KUNIT_EXPECT_EQ(test, command->run(p), 0);
	KUNIT_EXPECT_EQ(test, nomem.after, 0);
	KUNIT_EXPECT_EQ(test, nomem.burst, 1);
	KUNIT_EXPECT_EQ(test, nomem.unsafe, 0);
}

/* --- messages --- */

struct traffic {
	const char *name;
	enum efasim_qp_type type;
	enum efasim_op_type op;
	u32 length;
	bool imm;
	bool held_back;			/* all packets are delayed */
	unsigned int points;		/* minimum number of allocations */
};

static const struct traffic traffics[] = {
	{ .name = "send", .type = EFASIM_QP_SRD, .op = EFASIM_OP_SEND,
	  .length = 4000, .points = 8 },
	{ .name = "send held back", .type = EFASIM_QP_SRD,
	  .op = EFASIM_OP_SEND, .length = 4000, .held_back = true,
	  .points = 10 },
	{ .name = "write", .type = EFASIM_QP_SRD, .op = EFASIM_OP_WRITE,
	  .length = LENGTH, .imm = true, .points = 16 },
	{ .name = "read", .type = EFASIM_QP_SRD, .op = EFASIM_OP_READ,
	  .length = LENGTH, .points = 14 },
	{ .name = "datagram", .type = EFASIM_QP_UD, .op = EFASIM_OP_SEND,
	  .length = 4000, .points = 2 },
};

static void traffic_name(const struct traffic *traffic, char *desc)
{
	strscpy(desc, traffic->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(traffic, traffics, traffic_name);

struct memory {
	u8 here[ROOM];
	u8 there[ROOM];
};

/* Aligned to its size, as the only page of a region must be. */
static struct memory *get_memory(struct kunit *test)
{
	struct memory *mem = kunit_kmalloc(test, sizeof(*mem), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_TRUE(test, IS_ALIGNED((uintptr_t)mem, ROOM));
	return mem;
}

static u32 local_key(struct kunit *test, struct end *end)
{
	struct efasim_mr *mr = efasim_adm_dma_mr(&end->dev, end->pdn);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	return mr->key;
}

static u32 remote_key(struct kunit *test, struct end *end, void *mem)
{
	struct efasim_mr *mr = efasim_adm_alloc_mr(&end->dev, end->pdn, 1);
	struct efasim_wqe wqe = {
		.reg = {
			.iova = IOVA, .length = ROOM, .pbl = virt_to_phys(mem),
			.npages = 1, .page_shift = ROOM_SHIFT,
			.pbl_inline = true,
			.access = EFASIM_ACCESS_REMOTE_READ |
				  EFASIM_ACCESS_REMOTE_WRITE,
		},
	};

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	wqe.reg.lkey = mr->index | KEY_STEP;
	mutex_lock(&end->dev.lock);
	KUNIT_EXPECT_EQ(test, efasim_dev_mr_reg(end->qp, &wqe), EFASIM_OK);
	mutex_unlock(&end->dev.lock);
	return wqe.reg.lkey;
}

static void post_recv(struct kunit *test, struct end *end, void *mem)
{
	u64 addr = virt_to_phys(mem);

	end->rq[0] = (struct efasim_rx_desc) {
		.buf_addr_lo = cpu_to_le32(addr),
		.buf_addr_hi = cpu_to_le32(addr >> 32),
		.length = cpu_to_le16(ROOM),
		.lkey_ctrl = cpu_to_le32(EFASIM_RX_FIRST | EFASIM_RX_LAST |
					 local_key(test, end)),
	};
	efasim_rq_doorbell(end->qp, 1);
}

static void post_send(struct kunit *test, struct pair *p,
		      const struct traffic *t, struct memory *mem)
{
	const struct efasim_sge local = {
		virt_to_phys(mem->here), t->length, local_key(test, &p->a),
	};
	struct efasim_wqe wqe = {
		.op = t->op, .num_sge = 1, .has_imm = t->imm, .ah = p->a.ah,
		.dest_qpn = p->b.qp->qpn, .qkey = QKEY,
	};

	if (t->op == EFASIM_OP_SEND) {
		wqe.sge[0] = local;
	} else {
		wqe.rdma.local = local;
		wqe.rdma.addr = IOVA;
		wqe.rdma.rkey = remote_key(test, &p->b, mem->there);
	}
	put_wqe(p->a.qp, 0, &wqe);
}

/* Run until the message is done, or a time-out. */
static void drive(struct pair *p)
{
	ktime_t end = ktime_add_ms(ktime_get(), 20000);

	while (!p->a.cq.sent && ktime_before(ktime_get(), end)) {
		run(&p->a);
		run(&p->b);
		usleep_range(200, 500);
	}
	run(&p->b);
}

/* Return: whether any allocation failed. */
static bool fail_traffic(struct kunit *test, const struct traffic *t,
			 struct memory *mem, unsigned int after,
			 unsigned int burst)
{
	bool sure = t->type == EFASIM_QP_SRD;
	struct pair *p = test->priv;
	unsigned int failed = nomem.failed;

	open_pair(test, t->type);
	p->a.dev.fault[EFASIM_F_reorder] = t->held_back ? 1000 : 0;
	memset(mem->here, 0x5a, ROOM);
	memset(mem->there, 0xa5, ROOM);
	post_recv(test, &p->b, mem->there);
	post_send(test, p, t, mem);
	nomem.after = after;
	nomem.burst = burst;
	efasim_sq_doorbell(p->a.qp, 1);
	drive(p);
	nomem.after = 0;
	nomem.burst = 0;
	failed = nomem.failed - failed;

	KUNIT_EXPECT_EQ_MSG(test, p->a.cq.sent, 1, "at %u", after);
	KUNIT_EXPECT_EQ_MSG(test, p->a.cq.status, EFASIM_OK, "at %u", after);
	KUNIT_EXPECT_EQ_MSG(test, stat(&p->a, EFASIM_S_no_memory) +
			    stat(&p->b, EFASIM_S_no_memory), failed,
			    "at %u", after);
	if (sure || !failed)
		KUNIT_EXPECT_EQ_MSG(test, memcmp(mem->here, mem->there,
						 t->length), 0, "at %u", after);
	if (sure || !failed)
		KUNIT_EXPECT_EQ_MSG(test, p->b.cq.received,
				    t->op == EFASIM_OP_SEND || t->imm,
				    "at %u", after);
	close_pair(test);
	KUNIT_EXPECT_EQ_MSG(test, nomem.held, 0, "at %u", after);
	return failed;
}

static void nomem_traffic(struct kunit *test)
{
	const struct traffic *t = test->param_value;
	struct memory *mem = get_memory(test);
	unsigned int nth;

	close_pair(test);
	for (nth = 0; nth < POINTS_MAX; nth++) {
		if (!fail_traffic(test, t, mem, nth, 1))
			break;
		fail_traffic(test, t, mem, nth, 3);
	}
	kunit_info(test, "%s: %u points\n", t->name, nth);
	KUNIT_EXPECT_GE(test, nth, t->points);
	KUNIT_EXPECT_LT(test, nth, POINTS_MAX);
}

/* Messages that are sent during failing allocations arrive as well. */
static void nomem_storm(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	post_recvs(&p->b, STORM);
	nomem.one_in = 3;
	post(&p->a, &p->b, 0, STORM);
	for (i = 0; i < 20000 && p->a.cq.sent < STORM; i++) {
		run(&p->a);
		run(&p->b);
		expect_sane(test, &p->a);
		expect_sane(test, &p->b);
		usleep_range(200, 500);
	}
	nomem.one_in = 0;
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, STORM);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_OK);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, STORM);
	KUNIT_EXPECT_EQ(test, p->b.cq.doubled, 0);
	KUNIT_EXPECT_GT(test, nomem.failed, STORM);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_no_memory) +
			stat(&p->b, EFASIM_S_no_memory), nomem.failed);
}

/* A peer whose state can't be allocated is given up like a silent one. */
static void nomem_for_good(struct kunit *test)
{
	struct pair *p = test->priv;
	ktime_t begun = ktime_get();

	p->a.dev.unresp_ms = 20;
	nomem.burst = UINT_MAX;
	post(&p->a, &p->b, 0, 1);
	drive(p);
	nomem.burst = 0;
	KUNIT_EXPECT_GE(test, ktime_ms_delta(ktime_get(), begun), 20);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 1);
	KUNIT_EXPECT_EQ(test, p->a.cq.status, EFASIM_QP_INTERNAL);
	KUNIT_EXPECT_EQ(test, stat(&p->a, EFASIM_S_no_memory), 21);
	KUNIT_EXPECT_EQ(test, p->a.dev.num_peers, 0);

	/* With memory it can be reached again. */
	post_recvs(&p->b, 1);
	post(&p->a, &p->b, 1, 1);
	run(&p->a);
	run(&p->b);
	run(&p->a);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 2);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 1);
}

/* Work that waits for memory is dropped with its queue pair. */
static void nomem_stopped(struct kunit *test)
{
	const struct efasim_qp_modify error = {
		.mask = EFASIM_MODIFY_STATE, .state = EFASIM_QPS_ERR,
	};
	struct pair *p = test->priv;

	nomem.burst = UINT_MAX;
	post(&p->a, &p->b, 0, 10);
	run(&p->a);
	KUNIT_EXPECT_GE(test, stat(&p->a, EFASIM_S_no_memory), 10);
	KUNIT_EXPECT_NOT_NULL(test, timerqueue_getnext(&p->a.dev.timers));
	KUNIT_EXPECT_EQ(test, efasim_adm_modify_qp(p->a.qp, &error), 0);
	KUNIT_EXPECT_NULL(test, timerqueue_getnext(&p->a.dev.timers));
	nomem.burst = 0;
	usleep_range(2000, 3000);
	run(&p->a);
	run(&p->b);
	KUNIT_EXPECT_EQ(test, p->a.cq.sent, 0);
	KUNIT_EXPECT_EQ(test, p->b.cq.received, 0);
}

static int nomem_init(struct kunit *test)
{
	nomem = (struct nomem) { };
	prandom_seed_state(&nomem.rnd, 13);
	return engine_init(test);
}

static void nomem_exit(struct kunit *test)
{
	close_pair(test);
	KUNIT_EXPECT_EQ(test, nomem.held, 0);
}

static struct kunit_case nomem_cases[] = {
	KUNIT_CASE_PARAM(nomem_command, command_gen_params),
	KUNIT_CASE_PARAM_ATTR(nomem_traffic, traffic_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE(nomem_storm),
	KUNIT_CASE(nomem_for_good),
	KUNIT_CASE(nomem_stopped),
	{ }
};

static struct kunit_suite nomem_suite = {
	.name = "efasim_nomem",
	.suite_init = engine_suite_init,
	.suite_exit = engine_suite_exit,
	.init = nomem_init,
	.exit = nomem_exit,
	.test_cases = nomem_cases,
};

kunit_test_suite(nomem_suite);

MODULE_DESCRIPTION("KUnit tests of the software EFA device when memory is short");
MODULE_LICENSE("Dual BSD/GPL");
