// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa against a model: messages of all sub-protocols from several peers, whose packets
 * arrive in random order, some of them very late, in polls that end anywhere. The nth receive of a
 * tag must get the nth message of that tag, complete; messages without a tag must fill
 * multi-receive buffers in their order; and no packet may stay behind.
 */
#include <linux/moduleparam.h>
#include <linux/vmalloc.h>
#include "efa_rdm_scene.h"

#define PEERS	3
#define TAGS	2
#define WINDOW	160	/* messages of a peer that haven't completed */
#define RING	512
#define POOL	8192	/* packets under way */
#define POSTED	24	/* receives of a tag */
#define BUFFERS	2	/* for messages without a tag */
#define LONGEST	4096
#define ROOM	(8 * LONGEST)
#define MANY	1200	/* packets of one message */

static unsigned int chaos_steps = 2000;
module_param(chaos_steps, uint, 0444);
MODULE_PARM_DESC(chaos_steps, "Steps of suite kefa_rdm_chaos for each seed (default 2000)");

static unsigned int chaos_seeds = 2;
module_param(chaos_seeds, uint, 0444);
MODULE_PARM_DESC(chaos_seeds, "Seeds of suite kefa_rdm_chaos, up to 10 (default 2)");

enum { SHORT, MEDIUM, RUNT, GRANTED, FETCHED, KINDS };

static const u8 kind_type[KINDS] = {
	[SHORT]		= KEFA_EAGER_MSGRTM_PKT,
	[MEDIUM]	= KEFA_MEDIUM_MSGRTM_PKT,
	[RUNT]		= KEFA_RUNTREAD_MSGRTM_PKT,
	[GRANTED]	= KEFA_LONGCTS_MSGRTM_PKT,
	[FETCHED]	= KEFA_LONGREAD_MSGRTM_PKT,
};

/**
 * struct message - a message of a peer
 * @len: length of the message
 * @asked: bytes that are sent with requests
 * @sent: bytes that were passed to the network
 * @nth: number of the message among those of its tag
 * @place: number of the multi-receive buffer, and offset in it
 * @seed: seed of the data
 * @kind: SHORT and so on
 * @tag: tag of the message; TAGS for none
 * @done: the receive has completed
 */
struct message {
	u32	len;
	u32	asked;
	u32	sent;
	u32	nth;
	u64	place;
	u8	seed;
	u8	kind;
	u8	tag;
	bool	done;
};

/**
 * struct packet - a packet under way
 * @peer: sender of the packet
 * @id: number of the message
 * @off: offset of the data
 * @len: length of the data
 * @recv_id: id of the receiver's operation, if the packet has granted data
 * @late: number of times that the packet isn't delivered although it was chosen
 */
struct packet {
	u8	peer;
	u32	id;
	u32	off;
	u32	len;
	u32	recv_id;
	u32	late;
};

/* A peer. A ring has the messages by number, another one the numbers of the messages of a tag. */
struct sender {
	struct fi_efa_addr	addr;
	u32			first;
	u32			next;
	u64			place;
	struct message		msg[RING];
	u32			of_tag[TAGS][RING];
	u32			nmsg[TAGS];
	u32			nrecv[TAGS];
	u32			ndone[TAGS];
	bool			many;
	u8			*in[TAGS][POSTED];
};

struct chaos {
	struct kunit	*test;
	struct rdm_pair	*pair;
	struct rdm_end	*end;
	struct kefa_rdm	*rdm;
	struct rnd_state rnd;
	struct sender	from[PEERS];
	struct packet	pool[POOL];
	u32		npool;
	u8		*buffer[BUFFERS];
	unsigned long	posted;
	u64		buffers;
	u64		seen[KINDS];
	u64		most;
};

static u8 packet[SZ_8K];
static u8 data[LONGEST];

static u32 below(struct chaos *c, u32 n)
{
	return prandom_u32_state(&c->rnd) % n;
}

static struct message *message(struct sender *s, u32 id)
{
	return &s->msg[id % RING];
}

/* The data says whose it is, if the message has no tag; the rest is a pattern. */
static void write_data(const struct message *m, u8 peer, u32 id)
{
	const __le64 name = cpu_to_le64((u64)peer << 32 | id);

	efa_fill(data, m->len, m->seed);
	if (m->tag == TAGS)
		memcpy(data, &name, sizeof(name));
}

/* --- sending --- */

static void put(struct chaos *c, u8 peer, u32 id, u32 off, u32 len, u32 recv_id)
{
	if (WARN_ON_ONCE(c->npool == POOL))
		return;
	c->pool[c->npool++] = (struct packet) {
		.peer		= peer,
		.id		= id,
		.off		= off,
		.len		= len,
		.recv_id	= recv_id,
		.late		= below(c, 60) ? 0 : below(c, 60),
	};
}

/* Pass the bytes of a message from @sent to @end to the network, in packets of @part bytes. */
static void put_parts(struct chaos *c, u8 peer, u32 id, u32 end, u32 part, u32 recv_id)
{
	struct message *m = message(&c->from[peer], id);
	u32 len;

	for (; m->sent < end; m->sent += len) {
		len = min(part, end - m->sent);
		put(c, peer, id, m->sent, len, recv_id);
	}
}

static u32 some_len(struct chaos *c, u8 kind)
{
	static const u32 most[] = { 60, 600, LONGEST - 16 };

	return 16 + (kind == SHORT ? below(c, 200) : below(c, most[below(c, ARRAY_SIZE(most))]));
}

static void send_one(struct chaos *c, u8 peer)
{
	struct sender *s = &c->from[peer];
	struct message *m = message(s, s->next);
	u32 part = 1 + below(c, below(c, 8) ? 700 : 1500);

	if (s->next - s->first >= WINDOW || c->npool > POOL / 2)
		return;
	*m = (struct message) {
		.kind	= below(c, 2) ? SHORT : below(c, KINDS),
		.tag	= below(c, TAGS + 1),
		.seed	= below(c, 256),
	};
	m->len = some_len(c, m->kind);
	if (m->kind == MEDIUM && !s->many && !below(c, 20)) {
		m->len = MANY;
		part = 1;
		s->many = true;
	}
	part = max(part, m->len == MANY ? 1 : m->len / 8);
	c->seen[m->kind]++;
	switch (m->kind) {
	case RUNT:
		m->asked = 1 + below(c, m->len - 1);
		break;
	case GRANTED:
		m->asked = min(part, m->len - 1);
		break;
	case FETCHED:
		break;
	default:
		m->asked = m->len;
	}
	if (m->tag < TAGS) {
		m->nth = s->nmsg[m->tag]++;
		s->of_tag[m->tag][m->nth % RING] = s->next;
	}
	if (m->kind == FETCHED)
		put(c, peer, s->next, 0, 0, 0);
	put_parts(c, peer, s->next, m->asked, m->kind == SHORT ? m->len : part, 0);
	s->next++;
}

/* --- the network --- */

static size_t build(struct chaos *c, const struct packet *p)
{
	struct sender *s = &c->from[p->peer];
	struct message *m = message(s, p->id);
	struct kefa_rma_iov iov = {
		.addr	= cpu_to_le64((u64)p->peer << 48 | (u64)(p->id % RING) << 32),
		.len	= cpu_to_le64(m->len),
	};
	const bool reads = m->kind == FETCHED || m->kind == RUNT;
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(kind_type[m->kind] + (m->tag < TAGS)),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= s->addr.qkey,
		.msg_id		= p->id,
		.send_id	= p->id,
		.tag		= m->tag < TAGS ? p->peer * TAGS + m->tag : 0,
		.msg_length	= m->kind == SHORT ? 0 : m->len,
		.seg_offset	= m->kind == MEDIUM || m->kind == RUNT ? p->off : 0,
		.runt_length	= m->kind == RUNT ? m->asked : 0,
		.credit_request	= m->kind == GRANTED ? 1 : 0,
		.read_iov_count	= reads,
		.read_iov	= reads ? &iov : NULL,
	};
	const struct kefa_pkt granted = {
		.row		= kefa_row_of(KEFA_CTSDATA_PKT),
		.flags		= KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= s->addr.qkey,
		.recv_id	= p->recv_id,
		.seg_offset	= p->off,
		.seg_length	= p->len,
	};
	size_t hdr = kefa_build(p->recv_id ? &granted : &pkt, packet, sizeof(packet));

	KUNIT_EXPECT_GT(c->test, hdr, (size_t)0);
	write_data(m, p->peer, p->id);
	memcpy(packet + hdr, data + p->off, p->len);
	return hdr + p->len;
}

/* Deliver a packet, if the endpoint has a receive. */
static bool deliver(struct chaos *c)
{
	struct efake_wr *recv = efake_recv(c->end->qp, 0);
	struct kefa_wc wc = { };
	struct packet *p;
	u32 tries = 0;

	if (!recv || !c->npool)
		return false;
	do {
		p = &c->pool[below(c, c->npool)];
	} while (p->late && p->late-- && ++tries < 16);
	wc.src_qpn = c->from[p->peer].addr.qpn;
	wc.slid = 100 + p->peer;
	wc.len = build(c, p);
	*p = c->pool[--c->npool];
	efake_wr_write(recv, packet, wc.len);
	efake_recv_done(recv, &wc);
	return true;
}

/* Deliver packets that the endpoint finds in one poll, or two. */
static void deliver_some(struct chaos *c, u32 n)
{
	spin_lock_bh(&c->rdm->ep.lock);
	while (n-- && deliver(c))
		;
	spin_unlock_bh(&c->rdm->ep.lock);
}

static u8 peer_of(const struct chaos *c, const struct efake_wr *wr)
{
	u8 peer;

	for (peer = 0; peer < PEERS - 1 && c->from[peer].addr.qpn != wr->qpn; peer++)
		;
	return peer;
}

static void was_read(struct chaos *c, struct efake_wr *wr)
{
	const u8 peer = wr->raddr >> 48;
	const u32 at = (wr->raddr >> 32) % RING, off = lower_32_bits(wr->raddr);
	struct sender *s = &c->from[peer];
	u32 id = s->first - s->first % RING + at;

	if ((s32)(id - s->first) < 0)
		id += RING;
	write_data(message(s, id), peer, id);
	efake_wr_write(wr, data + off, LONGEST - off);
}

static void was_granted(struct chaos *c, u8 peer, const struct kefa_pkt *cts)
{
	struct message *m = message(&c->from[peer], cts->send_id);
	const u64 end = m->sent + min_t(u64, cts->recv_length, m->len - m->sent);

	put_parts(c, peer, cts->send_id, end, 100 + below(c, 800), cts->recv_id);
}

/* Complete a work request of the endpoint, and answer a CTS. Return: whether there was one. */
static bool serve(struct chaos *c)
{
	struct efake_qp *qp = c->end->qp;
	struct efake_wr *wr = efake_sent(qp, 0);
	struct kefa_pkt pkt;
	size_t len;

	if (!wr)
		return false;
	wr = efake_sent(qp, below(c, READ_ONCE(qp->nsent))) ?: wr;
	if (wr->opcode == IB_WR_RDMA_READ) {
		was_read(c, wr);
	} else {
		len = efake_wr_read(wr, packet, sizeof(packet));
		KUNIT_EXPECT_EQ(c->test, kefa_parse(packet, len, &pkt), KEFA_OK);
		if (pkt.row->type == KEFA_CTS_PKT)
			was_granted(c, peer_of(c, wr), &pkt);
	}
	efake_wr_done(wr, 0);
	return true;
}

/* --- receiving --- */

static void post_recv(struct chaos *c, u8 peer, u8 tag)
{
	struct sender *s = &c->from[peer];
	const u32 n = s->nrecv[tag];
	ssize_t ret;

	if (n - s->ndone[tag] >= POSTED || (s32)(n - s->nmsg[tag]) >= POSTED / 2)
		return;
	/* A slot of the buffers is free again when its last receive has completed. */
	if (s->in[tag][n % POSTED][LONGEST])
		return;
	ret = fi_trecv(c->end->ep, s->in[tag][n % POSTED], LONGEST, NULL, FI_ADDR_UNSPEC,
		       peer * TAGS + tag, 0, (void *)((u64)n << 8 | peer << 4 | tag));
	if (ret) {
		KUNIT_EXPECT_EQ(c->test, ret, -EAGAIN);
		return;
	}
	s->in[tag][n % POSTED][LONGEST] = 1;
	s->nrecv[tag]++;
}

/* Post a multi-receive buffer. Its context has its number, and its index in @buffer. */
static void post_buffer(struct chaos *c)
{
	const unsigned long i = ffz(c->posted);
	struct kvec iov = { c->buffer[i], ROOM };
	struct fi_msg msg = {
		.addr		= FI_ADDR_UNSPEC,
		.context	= (void *)(c->buffers << 16 | i << 8 | 0xff),
	};

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, ROOM);
	KUNIT_EXPECT_EQ(c->test, fi_recvmsg(c->end->ep, &msg, FI_MULTI_RECV), 0);
	c->posted |= BIT(i);
	c->buffers++;
}

/* Messages end in any order, but they have begun in theirs. */
static void retire(struct chaos *c, struct sender *s)
{
	struct message *m;

	for (; s->first != s->next && message(s, s->first)->done; s->first++) {
		m = message(s, s->first);
		if (m->len == MANY)
			s->many = false;
		if (m->tag < TAGS)
			continue;
		KUNIT_EXPECT_GT(c->test, m->place, s->place);
		s->place = m->place;
	}
}

static void done(struct chaos *c, u8 peer, u32 id, const u8 *in, size_t len)
{
	struct sender *s = &c->from[peer];
	struct message *m = message(s, id);

	KUNIT_ASSERT_LT(c->test, id - s->first, s->next - s->first);
	KUNIT_EXPECT_FALSE(c->test, m->done);
	KUNIT_ASSERT_EQ(c->test, (size_t)m->len, len);
	write_data(m, peer, id);
	KUNIT_EXPECT_EQ(c->test, memcmp(in, data, len), 0);
	m->done = true;
}

/* A message in a multi-receive buffer. */
static void done_multi(struct chaos *c, const struct fi_cq_tagged_entry *e)
{
	const u64 n = (u64)e->op_context >> 16;
	const u32 i = (u64)e->op_context >> 8 & 0xff;
	const u8 *base = c->buffer[i];
	__le64 name;
	u8 peer;
	u32 id;

	memcpy(&name, e->buf, sizeof(name));
	peer = le64_to_cpu(name) >> 32;
	id = lower_32_bits(le64_to_cpu(name));
	KUNIT_ASSERT_LT(c->test, peer, PEERS);
	done(c, peer, id, e->buf, e->len);
	message(&c->from[peer], id)->place = (n + 1) << 32 | ((const u8 *)e->buf - base);
	retire(c, &c->from[peer]);
	if (!(e->flags & FI_MULTI_RECV))
		return;
	c->posted &= ~BIT(i);
	post_buffer(c);
}

static void done_tagged(struct chaos *c, const struct fi_cq_tagged_entry *e)
{
	const u64 ctx = (u64)e->op_context;
	const u8 peer = ctx >> 4 & 0xf, tag = ctx & 0xf;
	struct sender *s = &c->from[peer];
	const u32 n = ctx >> 8;
	u32 id;

	KUNIT_ASSERT_TRUE(c->test, peer < PEERS && tag < TAGS);
	KUNIT_ASSERT_LT(c->test, n, s->nmsg[tag]);
	id = s->of_tag[tag][n % RING];
	done(c, peer, id, s->in[tag][n % POSTED], e->len);
	s->in[tag][n % POSTED][LONGEST] = 0;
	s->ndone[tag]++;
	retire(c, s);
}

/* Return: whether there was a completion. Each read polls the device at most once. */
static bool read_one(struct chaos *c)
{
	struct rdm_comp comp = rdm_read(c->end);

	if (comp.ret == -EAGAIN)
		return false;
	KUNIT_ASSERT_EQ(c->test, comp.ret, 1);
	if (((u64)comp.entry.op_context & 0xff) == 0xff)
		done_multi(c, &comp.entry);
	else
		done_tagged(c, &comp.entry);
	return true;
}

/* --- steps --- */

/* No packet is early whose message has begun. */
static void check_early(struct chaos *c)
{
	const struct kefa_held *held;
	bool past = false;

	spin_lock_bh(&c->rdm->ep.lock);
	list_for_each_entry(held, &c->rdm->early, link)
		past |= (s32)(lower_32_bits(held->node.key) - held->peer->order.exp_id) < 0;
	c->most = max(c->most, c->rdm->kept);
	spin_unlock_bh(&c->rdm->ep.lock);
	KUNIT_EXPECT_FALSE(c->test, past);
}

static void step(struct chaos *c)
{
	u32 n;

	switch (below(c, 10)) {
	case 0:
	case 1:
		for (n = below(c, 4); n; n--)
			send_one(c, below(c, PEERS));
		break;
	case 2:
		for (n = below(c, 6); n; n--)
			post_recv(c, below(c, PEERS), below(c, TAGS));
		break;
	case 3:
		for (n = below(c, 16); n && serve(c); n--)
			;
		break;
	case 4:
		efake_settle();
		check_early(c);
		break;
	case 5:
	case 6:
		for (n = below(c, 8); n && read_one(c); n--)
			;
		break;
	default:
		deliver_some(c, 1 + below(c, 24));
	}
}

static bool all_done(struct chaos *c)
{
	u8 peer;

	for (peer = 0; peer < PEERS; peer++)
		if (c->from[peer].first != c->from[peer].next)
			return false;
	return !c->npool;
}

/* Let all messages end. */
static void finish(struct chaos *c)
{
	u32 tries, i;

	for (tries = 0; tries < 2000 && !all_done(c); tries++) {
		for (i = 0; i < PEERS * TAGS * 4; i++)
			post_recv(c, i % PEERS, i / PEERS % TAGS);
		deliver_some(c, 32);
		efake_settle();
		while (serve(c))
			;
		efake_settle();
		while (read_one(c))
			;
	}
	KUNIT_EXPECT_TRUE(c->test, all_done(c));
	while (serve(c))
		;
	efake_settle_all();
}

static void check_end(struct chaos *c)
{
	const struct kefa_rdm *rdm = c->rdm;
	u64 dropped = 0;
	int i;

	for (i = 0; i < KEFA_DROPS; i++)
		dropped += rdm->stats.dropped[i];
	KUNIT_EXPECT_EQ(c->test, dropped, 0ULL);
	KUNIT_EXPECT_EQ(c->test, rdm->stats.deaths, 0ULL);
	KUNIT_EXPECT_EQ(c->test, rdm->kept, 0ULL);
	KUNIT_EXPECT_EQ(c->test, rdm->msgs.entries, 0U);
	KUNIT_EXPECT_TRUE(c->test, list_empty(&rdm->early));
	KUNIT_EXPECT_TRUE(c->test, list_empty(&rdm->due));
	KUNIT_EXPECT_GT(c->test, rdm->stats.early, 100ULL);
	/* Their number depends on how soon workers post the next receive. */
	KUNIT_EXPECT_GT(c->test, rdm->stats.unexpected, 0ULL);
	kunit_info(c->test, "short %llu medium %llu runt %llu granted %llu read %llu, early %llu starved %llu, at most %llu bytes kept\n",
		   c->seen[SHORT], c->seen[MEDIUM], c->seen[RUNT], c->seen[GRANTED],
		   c->seen[FETCHED], rdm->stats.early, rdm->stats.starved, c->most);
}

static void chaos_free(void *arg)
{
	struct chaos *c = arg;
	int i;

	for (i = 0; i < PEERS * TAGS * POSTED; i++)
		kfree(c->from[i / (TAGS * POSTED)].in[i / POSTED % TAGS][i % POSTED]);
	for (i = 0; i < BUFFERS; i++)
		kfree(c->buffer[i]);
	vfree(c);
}

/* Insert a peer and have its first message arrive. Its numbers wrap soon. */
static void meet(struct chaos *c, u8 peer)
{
	struct sender *s = &c->from[peer];
	const struct kefa_raw_addr raw = {
		.gid	= { 0xfe, 0x80, [15] = 20 + peer },
		.qpn	= cpu_to_le16(0x500 + peer),
		.qkey	= cpu_to_le32(0x600 + peer),
	};
	u8 bytes[KEFA_RAW_ADDR_LEN] = { };
	const struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_EAGER_TAGRTM_PKT),
		.flags		= KEFA_REQ_OPT_RAW_ADDR_HDR,
		.has_connid	= true,
		.connid		= 0x600 + peer,
		.tag		= 99,
		.raw		= bytes,
		.raw_len	= sizeof(bytes),
	};
	const struct kefa_wc wc = {
		.len		= kefa_build(&pkt, packet, sizeof(packet)),
		.src_qpn	= 0x500 + peer,
		.slid		= 100 + peer,
	};
	struct efake_wr *recv;
	fi_addr_t to;

	memcpy(bytes, &raw, sizeof(raw));
	kefa_build(&pkt, packet, sizeof(packet));
	s->addr = efa_addr(20 + peer, 0x500 + peer);
	s->addr.qkey = 0x600 + peer;
	KUNIT_ASSERT_EQ(c->test, fi_av_insert(c->end->av, &s->addr, 1, &to, 0, NULL), 1);
	rdm_learn(c->pair, s->addr.gid, wc.slid);
	KUNIT_EXPECT_EQ(c->test, rdm_trecv(c->pair, 8, 99, 1), 0);
	recv = efake_recv(c->end->qp, 0);
	efake_wr_write(recv, packet, wc.len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
	rdm_finish_sent(c->pair, 1, 0);
	rdm_expect(c->test, c->end, 1, 0);
	s->first = U32_MAX - 300;
	s->next = s->first;
	spin_lock_bh(&c->rdm->ep.lock);
	c->rdm->peers.at[to]->order.exp_id = s->first;
	spin_unlock_bh(&c->rdm->ep.lock);
}

static struct chaos *chaos_new(struct kunit *test, u32 seed)
{
	const size_t least = LONGEST;
	struct chaos *c = vzalloc(sizeof(*c));
	int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, chaos_free, c), 0);
	c->test = test;
	c->pair = rdm_pair_new(test, &(struct rdm_opts) { .depth = 256, .mtu = 2048 });
	c->end = &c->pair->end[1];
	c->rdm = rdm_of(c->end);
	prandom_seed_state(&c->rnd, seed);
	KUNIT_EXPECT_EQ(test, fi_setopt(&c->end->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
					&least, sizeof(least)), 0);
	for (i = 0; i < PEERS * TAGS * POSTED; i++) {
		u8 **in = &c->from[i / (TAGS * POSTED)].in[i / POSTED % TAGS][i % POSTED];

		*in = kzalloc(LONGEST + 1, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, *in);
	}
	for (i = 0; i < PEERS; i++)
		meet(c, i);
	for (i = 0; i < BUFFERS; i++) {
		c->buffer[i] = kzalloc(ROOM, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, c->buffer[i]);
		post_buffer(c);
	}
	return c;
}

/* A case may take five minutes, so each seed is one. */
static void chaos_seed(struct kunit *test)
{
	const u32 seed = *(const u32 *)test->param_value;
	struct chaos *c;
	u32 i;

	if (seed > chaos_seeds)
		return;
	c = chaos_new(test, seed);
	for (i = 0; i < chaos_steps && test->status != KUNIT_FAILURE; i++)
		step(c);
	finish(c);
	check_end(c);
	if (test->status == KUNIT_FAILURE)
		kunit_info(test, "seed %u, step %u of %u\n", seed, i, chaos_steps);
	EFA_CLOSE(test, c->pair->end[1].ep);
	EFA_CLOSE(test, c->pair->end[0].ep);
	efake_remove(c->pair->fake);
}

static const u32 seeds[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };

static void seed_name(const u32 *seed, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "seed %u", *seed);
}

KUNIT_ARRAY_PARAM(seed, seeds, seed_name);

static struct kunit_case chaos_cases[] = {
	KUNIT_CASE_PARAM(chaos_seed, seed_gen_params),
	{}
};

static struct kunit_suite chaos_suite = {
	.name		= "kefa_rdm_chaos",
	.test_cases	= chaos_cases,
};

kunit_test_suite(chaos_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, messages whose packets arrive in any order");
MODULE_LICENSE("Dual BSD/GPL");
