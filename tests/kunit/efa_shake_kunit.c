// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * HANDSHAKEs between two endpoints of the provider, and with each version of libfabric, as
 * bytes.
 */
#include <kunit/test.h>
#include <linux/slab.h>
#include "../../prov/efa/rdm/shape.h"

#define CONNID	0x1234567

struct scene {
	struct kunit		*test;
	spinlock_t		lock;	/* in place of the endpoint's lock */
	struct kefa_peers	peers;
	struct kefa_self	self;
	struct kefa_rpeer	*peer;
	struct kefa_pkt		pkt;
	u8			buf[KEFA_HDR_ROOM];
};

/* A peer with an address handle; takes the lock. */
static struct scene *scene(struct kunit *test)
{
	static const u8 gid[16] = { 0xfe, 0x80, 1 };
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	spin_lock_init(&s->lock);
	s->self.features = kefa_shake_features(true, true);
	s->self.device_version = 0xefa1;
	s->self.connid = CONNID;
	memset(s->self.raw, 0x55, KEFA_RAW_ADDR_BYTES);
	*(__le32 *)(s->self.raw + offsetof(struct kefa_raw_addr, qkey)) = cpu_to_le32(CONNID);
	KUNIT_ASSERT_EQ(test, kefa_peers_init(&s->peers, &s->lock, 0, 0), 0);
	s->peer = kefa_rpeer_new(&s->peers, gid, 10, 100, 0);
	KUNIT_ASSERT_NOT_NULL(test, s->peer);
	spin_lock_bh(&s->lock);
	kefa_peers_insert(&s->peers, s->peer, NULL);
	return s;
}

static void leave(struct scene *s)
{
	kefa_peers_del(&s->peers, s->peer, false);
	spin_unlock_bh(&s->lock);
	kefa_rpeer_free(&s->peers, s->peer);
	kefa_peers_fini(&s->peers);
}

/* Build a packet to bytes, and parse it. */
static size_t pass(struct scene *s)
{
	size_t len = kefa_build(&s->pkt, s->buf, sizeof(s->buf));

	KUNIT_ASSERT_GT(s->test, len, 0);
	KUNIT_EXPECT_EQ(s->test, kefa_parse(s->buf, len, &s->pkt), KEFA_OK);
	return len;
}

/* Receive a HANDSHAKE with @features. */
static bool shake(struct scene *s, u64 features, u32 device_version)
{
	struct kefa_self other = {
		.features	= features,
		.device_version	= device_version,
		.connid		= 100,
	};

	kefa_shake_fill(&other, &s->pkt);
	pass(s);
	return kefa_shake_take(&s->peers, s->peer, &s->pkt);
}

static void shake_says_what_we_can(struct kunit *test)
{
	struct scene *s = scene(test);

	KUNIT_EXPECT_EQ(test, kefa_shake_features(true, true), 0x7b);
	KUNIT_EXPECT_EQ(test, kefa_shake_features(false, false), 0x5a);
	KUNIT_EXPECT_EQ(test, kefa_shake_features(true, false), 0x5b);
	kefa_shake_fill(&s->self, &s->pkt);
	/* A packet that fits inline. */
	KUNIT_EXPECT_EQ(test, pass(s), 32);
	KUNIT_EXPECT_EQ(test, s->pkt.shake.extra[0], 0x7b);
	KUNIT_EXPECT_EQ(test, s->pkt.shake.nextra_p3, 4);
	KUNIT_EXPECT_EQ(test, s->pkt.shake.device_version, 0xefa1);
	KUNIT_EXPECT_EQ(test, s->pkt.connid, CONNID);
	kefa_shake_trigger(&s->self, &s->pkt);
	KUNIT_EXPECT_EQ(test, pass(s), 48);
	KUNIT_EXPECT_EQ(test, s->pkt.rma_iov_count, 0);
	KUNIT_EXPECT_EQ(test, s->pkt.data_len, 0);
	KUNIT_EXPECT_EQ(test, s->pkt.connid, CONNID);
	/* All peers accept it. */
	KUNIT_EXPECT_TRUE(test, kefa_pkt_may_send(s->pkt.row, 0));
	leave(s);
}

static void shake_once(struct kunit *test)
{
	struct scene *s = scene(test);

	KUNIT_EXPECT_TRUE(test, kefa_shake_heard(s->peer));
	KUNIT_EXPECT_EQ(test, s->peer->owes, KEFA_OWES_HANDSHAKE);
	KUNIT_EXPECT_FALSE(test, kefa_rpeer_idle(s->peer));
	KUNIT_EXPECT_FALSE(test, kefa_shake_heard(s->peer));
	kefa_shake_told(s->peer);
	KUNIT_EXPECT_EQ(test, s->peer->owes, 0);
	KUNIT_EXPECT_FALSE(test, kefa_shake_heard(s->peer));
	KUNIT_EXPECT_EQ(test, s->peer->owes, 0);
	leave(s);
}

static void shake_before_the_first_request(struct kunit *test)
{
	struct scene *s = scene(test);

	KUNIT_EXPECT_FALSE(test, kefa_shake_ready(&s->self, s->peer));
	KUNIT_EXPECT_TRUE(test, kefa_shake_ask(&s->self, &s->peers, s->peer));
	KUNIT_EXPECT_EQ(test, s->peer->state, KEFA_RPEER_SHAKING);
	KUNIT_EXPECT_FALSE(test, kefa_shake_ask(&s->self, &s->peers, s->peer));
	KUNIT_EXPECT_FALSE(test, kefa_shake_ready(&s->self, s->peer));
	KUNIT_EXPECT_TRUE(test, shake(s, 0x7b, 0xefa1));
	KUNIT_EXPECT_TRUE(test, kefa_shake_ready(&s->self, s->peer));
	KUNIT_EXPECT_FALSE(test, kefa_shake_ask(&s->self, &s->peers, s->peer));
	/* Later ones change nothing. */
	KUNIT_EXPECT_FALSE(test, shake(s, 0, 0));
	KUNIT_EXPECT_EQ(test, s->peer->features, 0x7b);
	kefa_rpeer_set_state(&s->peers, s->peer, KEFA_RPEER_DYING);
	KUNIT_EXPECT_FALSE(test, kefa_shake_ready(&s->self, s->peer));
	KUNIT_EXPECT_FALSE(test, shake(s, 0x7b, 0xefa1));
	kefa_rpeer_set_state(&s->peers, s->peer, KEFA_RPEER_DEAD);
	KUNIT_EXPECT_FALSE(test, kefa_shake_ready(&s->self, s->peer));
	leave(s);
	/* The HANDSHAKE wasn't requested, as the peer was the first to send. */
	s = scene(test);
	KUNIT_EXPECT_TRUE(test, shake(s, 0x5a, 0));
	KUNIT_EXPECT_TRUE(test, kefa_shake_ready(&s->self, s->peer));
	leave(s);
}

static void shake_homogeneous(struct kunit *test)
{
	struct scene *s = scene(test);

	s->self.homogeneous = true;
	KUNIT_EXPECT_TRUE(test, kefa_shake_ready(&s->self, s->peer));
	KUNIT_EXPECT_FALSE(test, kefa_shake_ask(&s->self, &s->peers, s->peer));
	KUNIT_EXPECT_TRUE(test, kefa_shake_reads(&s->self, s->peer));
	KUNIT_EXPECT_TRUE(test, kefa_shake_writes(&s->self, s->peer, true));
	/* The peer doesn't know this endpoint yet. */
	s->pkt = (struct kefa_pkt) { .row = kefa_row_of(KEFA_EAGER_TAGRTM_PKT) };
	kefa_shake_sign(&s->self, s->peer, &s->pkt);
	KUNIT_EXPECT_EQ(test, s->pkt.flags, KEFA_REQ_OPT_RAW_ADDR_HDR);
	KUNIT_EXPECT_TRUE(test, shake(s, 0x7b, 0xefa1));
	s->pkt = (struct kefa_pkt) { .row = kefa_row_of(KEFA_EAGER_TAGRTM_PKT) };
	kefa_shake_sign(&s->self, s->peer, &s->pkt);
	KUNIT_EXPECT_EQ(test, s->pkt.flags, KEFA_PKT_CONNID_HDR);
	kefa_rpeer_set_state(&s->peers, s->peer, KEFA_RPEER_DYING);
	KUNIT_EXPECT_FALSE(test, kefa_shake_ready(&s->self, s->peer));
	kefa_rpeer_set_state(&s->peers, s->peer, KEFA_RPEER_DEAD);
	KUNIT_EXPECT_FALSE(test, kefa_shake_ready(&s->self, s->peer));
	leave(s);
}

struct kind {
	const char	*name;
	u64		features;
	u32		device_version;
	bool		reads, writes, writes_data, dc, nack;
	u16		req;		/* expected flags of a request to the peer */
	u16		data;		/* expected flags of a CTSDATA */
};

static const struct kind kinds[] = {
	{ "1.9", 0, 0, .req = 0, .data = 0 },
	{ "1.17 without device RDMA", 0x1a, 0, .dc = true,
	  .req = KEFA_PKT_CONNID_HDR, .data = KEFA_PKT_CONNID_HDR },
	/* It doesn't name its device, so a later generation is assumed. */
	{ "1.17", 0x1b, 0, .reads = true, .dc = true,
	  .req = KEFA_PKT_CONNID_HDR, .data = KEFA_PKT_CONNID_HDR },
	{ "1.17 zero copy", 0x1f, 0, .reads = true, .dc = true,
	  .req = KEFA_REQ_OPT_RAW_ADDR_HDR, .data = KEFA_PKT_CONNID_HDR },
	{ "2.1", 0x7b, 0xefa1, true, true, true, true, true,
	  KEFA_PKT_CONNID_HDR, KEFA_PKT_CONNID_HDR },
	{ "2.1 on the first device", 0x7b, 0xefa0, false, true, true, true, true,
	  KEFA_PKT_CONNID_HDR, KEFA_PKT_CONNID_HDR },
	{ "2.6", 0x17b, 0xefa2, true, true, false, true, true,
	  KEFA_PKT_CONNID_HDR, KEFA_PKT_CONNID_HDR },
	{ "of the future", ~0x84ULL, 0xefa9, true, true, false, true, true,
	  KEFA_PKT_CONNID_HDR, KEFA_PKT_CONNID_HDR },
};

static u16 signed_flags(struct scene *s, u8 type)
{
	s->pkt = (struct kefa_pkt) { .row = kefa_row_of(type) };
	kefa_shake_sign(&s->self, s->peer, &s->pkt);
	KUNIT_EXPECT_EQ(s->test, s->pkt.has_connid, !!s->pkt.flags);
	KUNIT_EXPECT_EQ(s->test, s->pkt.connid, s->pkt.flags ? CONNID : 0);
	return s->pkt.flags;
}

static void shake_with_each(struct kunit *test)
{
	const struct kind *k;
	struct scene *s;
	u64 can;

	for (k = kinds; k < kinds + ARRAY_SIZE(kinds); k++) {
		s = scene(test);
		/* Before that, the address is sent, and only features of all versions are used. */
		KUNIT_EXPECT_EQ(test, signed_flags(s, KEFA_EAGER_RTW_PKT),
				KEFA_REQ_OPT_RAW_ADDR_HDR);
		KUNIT_EXPECT_FALSE(test, kefa_shake_reads(&s->self, s->peer));
		KUNIT_EXPECT_TRUE(test, shake(s, k->features, k->device_version));
		can = kefa_shake_can(&s->self, s->peer);
		KUNIT_EXPECT_EQ_MSG(test, kefa_shake_reads(&s->self, s->peer), k->reads, "%s",
				    k->name);
		KUNIT_EXPECT_EQ_MSG(test, kefa_shake_writes(&s->self, s->peer, false), k->writes,
				    "%s", k->name);
		KUNIT_EXPECT_EQ_MSG(test, kefa_shake_writes(&s->self, s->peer, true),
				    k->writes_data, "%s", k->name);
		KUNIT_EXPECT_EQ_MSG(test, kefa_pkt_may_send(kefa_row_of(KEFA_DC_EAGER_MSGRTM_PKT),
							    can), k->dc, "%s", k->name);
		KUNIT_EXPECT_EQ_MSG(test, kefa_pkt_may_send(kefa_row_of(KEFA_READ_NACK_PKT), can),
				    k->nack, "%s", k->name);
		KUNIT_EXPECT_EQ_MSG(test, signed_flags(s, KEFA_EAGER_TAGRTM_PKT), k->req, "%s",
				    k->name);
		KUNIT_EXPECT_EQ_MSG(test, signed_flags(s, KEFA_CTSDATA_PKT), k->data, "%s",
				    k->name);
		KUNIT_EXPECT_EQ(test, signed_flags(s, KEFA_EOR_PKT), KEFA_PKT_CONNID_HDR);
		KUNIT_EXPECT_FALSE(test, s->peer->flags & KEFA_RPEER_HEADERLESS);
		/* Limits of the local device don't depend on the peer. */
		s->self.features = kefa_shake_features(false, false);
		KUNIT_EXPECT_FALSE(test, kefa_shake_reads(&s->self, s->peer));
		KUNIT_EXPECT_FALSE(test, kefa_shake_writes(&s->self, s->peer, false));
		leave(s);
	}
}

/* libfabric 1.22 to 2.5 with zero-copy receives. */
static void shake_headerless(struct kunit *test)
{
	struct scene *s = scene(test);

	s->pkt = (struct kefa_pkt) {
		.row	= kefa_row_of(KEFA_HANDSHAKE_PKT),
		.flags	= KEFA_PKT_CONNID_HDR | KEFA_HANDSHAKE_HOST_ID_HDR |
			  KEFA_HANDSHAKE_USER_RECV_QP_HDR,
		.connid	= 100,
		.shake	= {
			.nextra_p3	= 4,
			.extra[0]	= 0xfb,
			.host_id	= 5,
			.qpn		= 77,
			.qkey		= 0x7777,
		},
	};
	pass(s);
	KUNIT_EXPECT_TRUE(test, kefa_shake_take(&s->peers, s->peer, &s->pkt));
	KUNIT_EXPECT_TRUE(test, s->peer->flags & KEFA_RPEER_HEADERLESS);
	KUNIT_EXPECT_EQ(test, s->peer->rq_qpn, 77);
	KUNIT_EXPECT_EQ(test, s->peer->rq_qkey, 0x7777);
	leave(s);
	/* It announces zero-copy receives, but not its buffer. */
	s = scene(test);
	KUNIT_EXPECT_TRUE(test, shake(s, 0xfb, 0xefa1));
	KUNIT_EXPECT_FALSE(test, s->peer->flags & KEFA_RPEER_HEADERLESS);
	leave(s);
}

static int shake_suite_init(struct kunit_suite *suite)
{
	return kefa_rpeer_cache_init();
}

static void shake_suite_exit(struct kunit_suite *suite)
{
	kefa_rpeer_cache_fini();
}

/* A prepared header is the same as one that is built for the message. */
static void shake_shapes(struct kunit *test)
{
	const struct kefa_rdm_limits lim = { .mtu = 4096 };
	u8 built[KEFA_SHAPE_ROOM] __aligned(8), written[KEFA_SHAPE_ROOM] __aligned(8);
	struct scene *s = scene(test);
	struct kefa_shape shape;
	struct kefa_pkt pkt;
	size_t len;
	int i;

	for (i = 0; i < 2 * KEFA_SIGNS; i++) {
		pkt = (struct kefa_pkt) {
			.row	= kefa_row_of(KEFA_EAGER_MSGRTM_PKT + i % 2),
			.msg_id	= 0x1234567 + i,
			.tag	= i % 2 ? 0x123456789abcdefULL : 0,
		};
		kefa_shake_sign_as(&s->self, i / 2, &pkt);
		len = kefa_build(&pkt, built, sizeof(built));
		kefa_shape_make(&shape, &lim, &s->self, i / 2, i % 2);
		KUNIT_EXPECT_EQ(test, (size_t)shape.hdr, len);
		KUNIT_EXPECT_EQ(test, (size_t)shape.room, lim.mtu - len);
		kefa_shape_write(&shape, written, pkt.msg_id, pkt.tag);
		KUNIT_EXPECT_EQ(test, memcmp(built, written, len), 0);
		KUNIT_EXPECT_EQ(test, (int)kefa_parse(written, len, &pkt), KEFA_OK);
	}
	leave(s);
}

static struct kunit_case shake_cases[] = {
	KUNIT_CASE(shake_shapes),
	KUNIT_CASE(shake_says_what_we_can),
	KUNIT_CASE(shake_once),
	KUNIT_CASE(shake_before_the_first_request),
	KUNIT_CASE(shake_homogeneous),
	KUNIT_CASE(shake_with_each),
	KUNIT_CASE(shake_headerless),
	{}
};

static struct kunit_suite shake_suite = {
	.name		= "kefa_shake",
	.suite_init	= shake_suite_init,
	.suite_exit	= shake_suite_exit,
	.test_cases	= shake_cases,
};

kunit_test_suite(shake_suite);
