// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The provider's parameters and options: that each has an effect, and what can't be had is
 * refused. Documentation/man/efa-knobs.txt names the case for each of them.
 */
#include "efa_rdm_scene.h"
#include "../../prov/efa/rdm/knobs.h"

/* --- parameters of the module --- */

static u64 budget(const struct kefa_rdm *rdm)		{ return rdm->budget; }
static u64 max_medium(const struct kefa_rdm *rdm)	{ return rdm->lim.max_medium; }
static u64 credits(const struct kefa_rdm *rdm)		{ return rdm->lim.credits; }
static u64 min_read(const struct kefa_rdm *rdm)		{ return rdm->lim.min_read_message; }
static u64 min_read_write(const struct kefa_rdm *rdm)	{ return rdm->lim.min_read_write; }
static u64 read_segment(const struct kefa_rdm *rdm)	{ return rdm->lim.read_segment; }
static u64 runt(const struct kefa_rdm *rdm)		{ return rdm->lim.runt; }
static u64 nsources(const struct kefa_rdm *rdm)		{ return rdm->nsources; }
static u64 first_us(const struct kefa_rdm *rdm)		{ return rdm->backoffs.first_us; }
static u64 max_us(const struct kefa_rdm *rdm)		{ return rdm->backoffs.max_us; }
static u64 implicit_max(const struct kefa_rdm *rdm)	{ return rdm->peers.implicit_max; }
static u64 shake_checks(const struct kefa_rdm *rdm)	{ return rdm->shake_checks; }
static u64 far_checks(const struct kefa_rdm *rdm)	{ return rdm->far_checks; }

/**
 * struct knob - a parameter and what it sets, of which other suites test the effect
 * @name: name of the parameter
 * @value: the parameter
 * @get: gets what an endpoint has made of it
 * @usual: with the default, on the fake device
 * @set: another value
 * @then: what an endpoint makes of @set
 * @most: what it makes of the largest value; 0 not to try that
 */
struct knob {
	const char *name;
	unsigned int *value;
	u64 (*get)(const struct kefa_rdm *rdm);
	u64 usual;
	unsigned int set;
	u64 then;
	u64 most;
};

static const struct knob knobs[] = {
#define KNOB(name, ...) { #name, &kefa_knobs.name, __VA_ARGS__ }
	KNOB(rx_budget, budget, SZ_4M, SZ_1M, SZ_1M, 0),
	KNOB(inter_max_medium_message_size, max_medium, SZ_64K, 20000, 20000,
	     KEFA_HELD_MAX * (8928 - KEFA_HDR_ROOM)),
	KNOB(tx_min_credits, credits, 32, 0, 1, U32_MAX),
	KNOB(inter_min_read_message_size, min_read, SZ_1M, 5000, 5000, U32_MAX),
	KNOB(inter_min_read_write_size, min_read_write, SZ_64K, 6000, 6000, U32_MAX),
	KNOB(inter_read_segment_size, read_segment, SZ_1G, 1, PAGE_SIZE, KEFA_MAX_RDMA),
	KNOB(runt_size, runt, 0, 7000, 7000, KEFA_HELD_MAX * (8928 - KEFA_HDR_ROOM)),
	KNOB(timeout_interval, first_us, 0, 77, 77, U32_MAX),
	KNOB(max_timeout, max_us, 1000000, 500, 500, U32_MAX),
	KNOB(implicit_av_size, implicit_max, 1024, 3, 3, U32_MAX),
	KNOB(handshake_timeout, shake_checks, 120, 2, 4, 240),
	KNOB(rma_timeout, far_checks, 60, 0, 0, 240),
#undef KNOB
};

static u64 value_now(struct kunit *test, const struct knob *knob)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts){
		.depth = 512, .mtu = 8928, .rma = true, .rdma = true,
	});
	u64 value = knob->get(rdm_of(&pair->end[0]));

	rdm_pair_end(pair);
	return value;
}

/* Each parameter applies to endpoints that are opened afterwards, within its limits. */
static void parameters(struct kunit *test)
{
	const struct knob *knob;
	unsigned int usual;

	for (knob = knobs; knob < knobs + ARRAY_SIZE(knobs); knob++) {
		usual = *knob->value;
		KUNIT_EXPECT_EQ_MSG(test, value_now(test, knob), knob->usual, "%s", knob->name);
		*knob->value = knob->set;
		KUNIT_EXPECT_EQ_MSG(test, value_now(test, knob), knob->then, "%s", knob->name);
		*knob->value = U32_MAX;
		if (knob->most)
			KUNIT_EXPECT_EQ_MSG(test, value_now(test, knob), knob->most, "%s",
					    knob->name);
		*knob->value = usual;
	}
}

/* Regions that peers read from are taken from the device's. */
static void read_regions(struct kunit *test)
{
	static const struct knob knob = { .get = nsources };

	KUNIT_EXPECT_EQ(test, value_now(test, &knob), 8);
	kefa_knobs.read_regions = 3;
	KUNIT_EXPECT_EQ(test, value_now(test, &knob), 3);
	kefa_knobs.read_regions = 8;
}

/* --- sizes of queues --- */

static struct fi_info *sized(struct kunit *test, size_t tx, size_t rx)
{
	struct fi_info *info = NULL, *hints;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, FI_EFA_FABRIC, EFA_DEVICE);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->size = tx;
	hints->rx_attr->size = rx;
	if (fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

/* A queue has the default size, or what the caller asks for, up to what the device has. */
static void queue_sizes(struct kunit *test)
{
	const struct {
		size_t tx, rx, then_tx, then_rx;
	} rows[] = {
		{ 0, 0, 256, 256 }, { 100, 256, 100, 256 }, { 300, 0, 300, 256 },
		{ 0, 512, 256, 512 }, { 512, 512, 512, 512 }, { 513, 0 }, { 0, 513 },
	};
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts){ .depth = 512 });
	struct fi_info *info;
	struct fid_ep *ep;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		info = sized(test, rows[i].tx, rows[i].rx);
		KUNIT_EXPECT_EQ(test, !info, !rows[i].then_tx);
		if (!info)
			continue;
		KUNIT_EXPECT_EQ(test, info->tx_attr->size, rows[i].then_tx);
		KUNIT_EXPECT_EQ(test, info->rx_attr->size, rows[i].then_rx);
		KUNIT_EXPECT_EQ(test, fi_endpoint(pair->domain, info, &ep, NULL), 0);
		EFA_CLOSE(test, ep);
		info->tx_attr->size = 513;
		KUNIT_EXPECT_EQ(test, fi_endpoint(pair->domain, info, &ep, NULL), -EINVAL);
		fi_freeinfo(info);
	}
}

/* All of a queue's entries can be used, and no more. */
static void queue_full(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts){
		.depth = 512, .tx_size = 400,
	});
	int n;

	for (n = 0; n < 1000 && !rdm_tsend(pair, 8, n, n); n++)
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, n, n) == 0, n < 256);
	KUNIT_EXPECT_EQ(test, n, 400);
	rdm_run(pair);
	KUNIT_EXPECT_EQ(test, rdm_read_all(&pair->end[0], 0), 400U);
}

/* --- options --- */

static void expect_unable(struct kunit *test, struct fid_ep *ep)
{
	static const int names[] = {
		FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES,
		FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES,
		FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV,
	};
	struct fid *fid = &ep->fid;
	bool value;
	size_t len;
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		value = true;
		len = sizeof(value);
		KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, names[i], &value, len),
				-EOPNOTSUPP);
		KUNIT_EXPECT_EQ(test, fi_getopt(fid, FI_OPT_ENDPOINT, names[i], &value, &len), 0);
		KUNIT_EXPECT_FALSE(test, value);
		KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, names[i], &value, len), 0);
		KUNIT_EXPECT_EQ(test, fi_setopt(fid, FI_OPT_ENDPOINT, names[i], &value, 4),
				-EINVAL);
	}
}

/* The driver can't be asked whether the device writes in order: it doesn't promise it. */
static void unable(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct efa_scene *scene;

	expect_unable(test, pair->end[0].ep);
	rdm_pair_end(pair);
	scene = efa_scene_new(test, &(struct efa_opts){ .idle = true });
	expect_unable(test, scene->ep);
}

/* --- the length from which messages are read --- */

/* Return: whether the receiver has read a message of one of the endpoints. */
static bool is_read(struct rdm_pair *pair, int from, size_t len)
{
	struct rdm_end *sender = &pair->end[from], *receiver = &pair->end[!from];
	unsigned int requests = pair->net.seen[KEFA_LONGREAD_TAGRTM_PKT];
	const u64 reads = rdm_of(receiver)->stats.reads;
	struct kunit *test = pair->test;

	memset(pair->in, 0, SZ_128K);
	efa_fill(pair->out, len, len + from);
	KUNIT_EXPECT_EQ(test, fi_trecv(receiver->ep, pair->in, SZ_128K, NULL, FI_ADDR_UNSPEC, 5, 0,
				       (void *)1), 0);
	KUNIT_EXPECT_EQ(test, fi_tsend(sender->ep, pair->out, len, NULL, sender->peer, 5,
				       (void *)2), 0);
	rdm_run(pair);
	rdm_expect(test, sender, 2, len);
	rdm_expect(test, receiver, 1, len);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, len, len + from));
	requests = pair->net.seen[KEFA_LONGREAD_TAGRTM_PKT] - requests;
	KUNIT_EXPECT_EQ(test, rdm_of(receiver)->stats.reads - reads, (u64)requests);
	return requests;
}

/* The sender's option decides, and no other endpoint has it. */
static void min_read_64k(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts){ .min_read = SZ_32K });
	struct rdm_comp comp;

	KUNIT_EXPECT_FALSE(test, is_read(pair, 0, SZ_32K - 1));
	KUNIT_EXPECT_TRUE(test, is_read(pair, 0, SZ_32K));
	KUNIT_EXPECT_TRUE(test, is_read(pair, 0, SZ_64K));
	KUNIT_EXPECT_FALSE(test, is_read(pair, 1, SZ_64K));
	KUNIT_EXPECT_FALSE(test, is_read(pair, 1, SZ_128K));
	/* A message with data takes the slow path. */
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, SZ_64K, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, fi_tsenddata(pair->end[0].ep, pair->out, SZ_64K, NULL, 7,
					   pair->end[0].peer, 5, (void *)2), 0);
	rdm_run(pair);
	rdm_expect(test, &pair->end[0], 2, SZ_64K);
	comp = rdm_read(&pair->end[1]);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 7ULL);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.reads, 3ULL);
	rdm_expect_whole(test, pair);
}

/* A message that fits into one packet isn't read; one whose read the device refuses is sent. */
static void min_read_any(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, &(struct rdm_opts){ .min_read = 1 });
	const size_t packet_room = rdm_of(&pair->end[0])->shapes[KEFA_SIGNS_CONNID][1].room;
	LIST_HEAD(none);

	KUNIT_EXPECT_FALSE(test, is_read(pair, 0, 1));
	KUNIT_EXPECT_FALSE(test, is_read(pair, 0, packet_room));
	KUNIT_EXPECT_TRUE(test, is_read(pair, 0, packet_room + 1));
	pair->net.bad_reads = 1;
	KUNIT_EXPECT_TRUE(test, is_read(pair, 0, packet_room + 1));
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_READ_NACK_PKT], 1U);
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_LONGCTS_TAGRTM_PKT], 1U);
	/* Without a free region the message goes as if it were below the limit. */
	list_splice_init(&rdm_of(&pair->end[0])->sources_free, &none);
	KUNIT_EXPECT_FALSE(test, is_read(pair, 0, packet_room + 1));
	KUNIT_EXPECT_EQ(test, pair->net.seen[KEFA_MEDIUM_TAGRTM_PKT], 2U);
	list_splice_init(&none, &rdm_of(&pair->end[0])->sources_free);
	rdm_expect_whole(test, pair);
}

/* The parameter is the default, and an endpoint may have none of its messages read. */
static void min_read_never(struct kunit *test)
{
	struct rdm_pair *pair;

	kefa_knobs.inter_min_read_message_size = SZ_32K;
	pair = rdm_ready_pair(test, &(struct rdm_opts){ .min_read = SIZE_MAX });
	kefa_knobs.inter_min_read_message_size = SZ_1M;
	KUNIT_EXPECT_FALSE(test, is_read(pair, 0, SZ_128K));
	KUNIT_EXPECT_TRUE(test, is_read(pair, 1, SZ_32K));
	KUNIT_EXPECT_FALSE(test, is_read(pair, 1, SZ_32K - 1));
	rdm_expect_whole(test, pair);
}

#define MIN_READ	FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE

static void expect_min_read(struct kunit *test, struct fid_ep *ep, size_t expected)
{
	size_t value = 0, len = sizeof(value);

	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, MIN_READ, &value, &len), 0);
	KUNIT_EXPECT_EQ(test, len, sizeof(value));
	KUNIT_EXPECT_EQ(test, value, expected);
}

static int set_min_read(struct fid_ep *ep, size_t value, size_t len)
{
	return fi_setopt(&ep->fid, FI_OPT_ENDPOINT, MIN_READ, &value, len);
}

static void min_read_option(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, NULL);
	struct fid_ep *ep, *opened = pair->end[0].ep;

	expect_min_read(test, opened, SZ_1M);
	KUNIT_EXPECT_EQ(test, set_min_read(opened, SZ_32K, sizeof(size_t)), -FI_EOPBADSTATE);
	expect_min_read(test, opened, SZ_1M);
	kefa_knobs.inter_min_read_message_size = 5000;
	KUNIT_ASSERT_EQ(test, fi_endpoint(pair->domain, pair->info, &ep, NULL), 0);
	kefa_knobs.inter_min_read_message_size = SZ_1M;
	expect_min_read(test, ep, 5000);
	KUNIT_EXPECT_EQ(test, set_min_read(ep, 1, sizeof(u32)), -EINVAL);
	KUNIT_EXPECT_EQ(test, set_min_read(ep, 1, 0), -EINVAL);
	expect_min_read(test, ep, 5000);
	KUNIT_EXPECT_EQ(test, set_min_read(ep, SIZE_MAX, sizeof(size_t)), 0);
	expect_min_read(test, ep, SIZE_MAX);
	KUNIT_EXPECT_EQ(test, set_min_read(ep, SZ_32K, sizeof(size_t)), 0);
	/* The parameter is for endpoints that are opened afterwards. */
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &pair->end[0].av->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(ep, &pair->end[0].cq->fid, FI_TRANSMIT | FI_RECV), 0);
	KUNIT_EXPECT_EQ(test, fi_enable(ep), 0);
	expect_min_read(test, ep, SZ_32K);
	KUNIT_EXPECT_EQ(test, set_min_read(ep, SZ_64K, sizeof(size_t)), -FI_EOPBADSTATE);
	expect_min_read(test, opened, SZ_1M);
	EFA_CLOSE(test, ep);
	pair->fake->dev->rdma_read = false;
	KUNIT_ASSERT_EQ(test, fi_endpoint(pair->domain, pair->info, &ep, NULL), 0);
	KUNIT_EXPECT_EQ(test, set_min_read(ep, SZ_32K, sizeof(size_t)), -EOPNOTSUPP);
	EFA_CLOSE(test, ep);
	pair->fake->dev->rdma_read = true;
}

/* Messages of fabric efa-direct are never read. */
static void min_read_direct(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts){ .idle = true });
	size_t value, len = sizeof(value);

	KUNIT_EXPECT_EQ(test, set_min_read(scene->ep, SZ_32K, sizeof(size_t)), -ENOPROTOOPT);
	KUNIT_EXPECT_EQ(test, fi_getopt(&scene->ep->fid, FI_OPT_ENDPOINT, MIN_READ, &value, &len),
			-ENOPROTOOPT);
}

/* Peers in the same kernel get the data from the CPU, however short it is. */
static void min_read_local(struct kunit *test)
{
	struct rdm_pair *pair = rdm_pair_new(test, &(struct rdm_opts){
		.local = true, .rma = true, .rdma = true, .min_read = 1,
	});
	int i;

	efa_fill(pair->out, SZ_64K, 3);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, SZ_64K, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, rdm_tsend(pair, SZ_64K, 5, 2), 0);
	for (i = 0; i < 20; i++) {
		kefa_ep_kick(to_kefa_ep(pair->end[i & 1].ep));
		efake_settle();
	}
	rdm_expect(test, &pair->end[0], 2, SZ_64K);
	rdm_expect(test, &pair->end[1], 1, SZ_64K);
	KUNIT_EXPECT_TRUE(test, efa_filled(pair->in, SZ_64K, 3));
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.reads, 0ULL);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, to_kefa_ep(pair->end[i].ep)->stats.doorbells, 0ULL);
}

/* --- calls of the provider's own --- */

static void domain_ops(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_efa_mr_attr attr = { 0xffff, 1, 2, 3 };
	static const struct fi_ops others;
	const struct fi_efa_ops_domain *ops;
	struct fid_mr *mr, other;
	void *vector = NULL;

	KUNIT_EXPECT_EQ(test, fi_open_ops(&scene->domain->fid, "other", 0, &vector, NULL),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, fi_open_ops(&scene->ep->fid, FI_EFA_DOMAIN_OPS, 0, &vector, NULL),
			-EOPNOTSUPP);
	KUNIT_EXPECT_NULL(test, vector);
	KUNIT_ASSERT_EQ(test, fi_open_ops(&scene->domain->fid, FI_EFA_DOMAIN_OPS, 0, &vector,
					  NULL), 0);
	ops = vector;
	KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 4096, FI_REMOTE_READ, 0, 0, 0,
					&mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, ops->query_mr(mr, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, ops->query_mr(NULL, &attr), -EINVAL);
	KUNIT_EXPECT_EQ(test, ops->query_mr((void *)scene->ep, &attr), -EINVAL);
	/* Another provider's region. */
	other = *mr;
	other.fid.ops = &others;
	KUNIT_EXPECT_EQ(test, ops->query_mr(&other, &attr), -EINVAL);
	KUNIT_EXPECT_EQ(test, attr.recv_ic_id, 1);
	KUNIT_EXPECT_EQ(test, ops->query_mr(mr, &attr), 0);
	/* The driver tells none of them. */
	KUNIT_EXPECT_EQ(test, attr.ic_id_validity, 0);
	KUNIT_EXPECT_EQ(test, attr.recv_ic_id, 0);
	KUNIT_EXPECT_EQ(test, attr.rdma_read_ic_id, 0);
	KUNIT_EXPECT_EQ(test, attr.rdma_recv_ic_id, 0);
	EFA_CLOSE(test, mr);
}

/* --- what the device has left --- */

static struct fi_left_attr left_now(struct kunit *test)
{
	struct fi_info *info = efa_info(test, EFA_DEVICE);
	struct fi_left_attr left = info->nic->left_attr;

	fi_freeinfo(info);
	return left;
}

/* Check that what is left is the rest of what the device has: regions are kept for reuse. */
static struct fi_left_attr expect_left(struct kunit *test, struct efa_scene *scene)
{
	const struct kefa_dev *dev = scene->fake->dev;
	struct fi_left_attr left;

	/* A work destroys address handles. */
	efake_settle_all();
	left = left_now(test);
	KUNIT_EXPECT_EQ(test, left.regions, dev->max_mr - scene->fake->mrs);
	KUNIT_EXPECT_EQ(test, left.address_handles, dev->max_ah - scene->fake->ahs);
	return left;
}

/* Each object takes one, and gives it back. */
static void left(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_left_attr before = expect_left(test, scene), now;
	struct kefa_dev *dev = scene->fake->dev;
	struct fid_mr *mr[3];
	fi_addr_t peer;
	int i;

	KUNIT_EXPECT_LT(test, before.queue_pairs, dev->max_qp);
	KUNIT_EXPECT_LT(test, before.address_handles, dev->max_ah);
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		KUNIT_ASSERT_EQ(test, fi_mr_reg(scene->domain, scene->buf, 4096, FI_REMOTE_READ, 0,
						0, 0, &mr[i], NULL), 0);
	peer = efa_insert(test, scene, 77, 5);
	now = expect_left(test, scene);
	KUNIT_EXPECT_EQ(test, now.queue_pairs, before.queue_pairs);
	KUNIT_EXPECT_LE(test, now.regions, before.regions - ARRAY_SIZE(mr));
	KUNIT_EXPECT_EQ(test, now.address_handles, before.address_handles - 1);
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		EFA_CLOSE(test, mr[i]);
	KUNIT_EXPECT_EQ(test, fi_av_remove(scene->av, &peer, 1, 0), 0);
	EFA_CLOSE(test, scene->ep);
	now = expect_left(test, scene);
	KUNIT_EXPECT_EQ(test, now.queue_pairs, before.queue_pairs + 1);
	KUNIT_EXPECT_EQ(test, now.address_handles, before.address_handles);
	dev->max_ah = 0;
	KUNIT_EXPECT_EQ(test, left_now(test).address_handles, 0);
}

/* An object that the device refuses to destroy counts until it is destroyed after all. */
static void left_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct work_struct *watch = &efa_dom(scene)->mrq.watch.work;
	struct fi_left_attr before = expect_left(test, scene), now;

	scene->fake->refuse = BIT(EFAKE_QP_DESTROY) | BIT(EFAKE_AH_DESTROY);
	scene->fake->refusal = -EIO;
	KUNIT_EXPECT_EQ(test, fi_av_remove(scene->av, &scene->peer, 1, 0), 0);
	efake_settle_all();
	KUNIT_EXPECT_EQ(test, scene->fake->dev->set_aside, 1);
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, scene->fake->dev->set_aside, 2);
	now = left_now(test);
	KUNIT_EXPECT_EQ(test, now.queue_pairs, before.queue_pairs);
	KUNIT_EXPECT_EQ(test, now.address_handles, before.address_handles);
	scene->fake->refuse = 0;
	watch->func(watch);
	now = expect_left(test, scene);
	KUNIT_EXPECT_EQ(test, now.queue_pairs, before.queue_pairs + 1);
	KUNIT_EXPECT_EQ(test, now.address_handles, before.address_handles + 1);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_SLOW(parameters),
	KUNIT_CASE(read_regions),
	KUNIT_CASE(queue_sizes),
	KUNIT_CASE(queue_full),
	KUNIT_CASE(unable),
	KUNIT_CASE(min_read_64k),
	KUNIT_CASE(min_read_any),
	KUNIT_CASE(min_read_never),
	KUNIT_CASE(min_read_option),
	KUNIT_CASE(min_read_direct),
	KUNIT_CASE(min_read_local),
	KUNIT_CASE(domain_ops),
	KUNIT_CASE(left),
	KUNIT_CASE(left_refused),
	{}
};

static struct kunit_suite suite = {
	.name = "kefa_rdm_knobs",
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit: parameters and options of the EFA provider");
MODULE_LICENSE("Dual BSD/GPL");
