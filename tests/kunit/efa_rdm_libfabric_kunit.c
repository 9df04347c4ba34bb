// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa and the versions of libfabric: the test is a libfabric peer, and what it would have at
 * the moment decides whether each packet that the engine sends may be sent (efa_rdm_theirs.h). The
 * tables below have the packets that the engine must send; it must send no others.
 */
#include "efa_rdm_scene.h"

#define PART		5000U	/* of a message that the peer sends */
#define GRANT		16000U	/* that the peer grants at a time */
#define MEDIUM		20000U	/* takes three packets */
#define LONGEST		100000U
#define RUNT		9000U	/* takes two packets */
#define OURS		1	/* end of the engine under test */
#define GID		9	/* of all peers, with this number of the address handle */
#define SLID		39

/* Features that each version has in its HANDSHAKE, on a device that can read and write. */
static const struct version {
	const char	*name;
	u64		features;
} versions[] = {
	{ "1.17", 0x01b },
	{ "2.1", 0x17b },
	{ "main", 0x37b },
};

/* The one message between the engine and the peer. */
struct message {
	const struct kefa_pkt_row	*row;
	bool				dc;	/* its sender wants delivery complete */
	u32				msg_id;
	u32				send_id;
	u64				total;
	u64				parts;	/* bytes that are sent with requests */
	u64				done;	/* bytes that were sent, if it isn't repeated */
	u64				granted;
};

/**
 * struct theirs - the libfabric peer
 * @pair: its second end is the engine under test
 * @qp: queue pair of the engine
 * @name: address of the peer
 * @addr: address of the peer in the engine's address vector
 * @version: version of libfabric
 * @device: device version of the engine
 * @rnr: the peer has no receive, the first two times that a packet is sent
 * @refusals: number of times in turn that the peer had no receive
 * @late: the engine sees that a packet was delivered only after the peer has answered it
 * @silent: the peer answers nothing for now
 * @refuses: reads are refused, in the direction of the message
 * @msg: the message
 * @log: a letter for each packet from the engine; equal ones in turn have one
 * @nlog: number of letters
 */
struct theirs {
	struct rdm_pair		*pair;
	struct efake_qp		*qp;
	struct fi_efa_addr	name;
	fi_addr_t		addr;
	const struct version	*version;
	u32			device;
	bool			rnr;
	unsigned int		refusals;
	bool			late;
	bool			silent;
	bool			refuses;
	struct message		msg;
	char			log[32];
	unsigned int		nlog;
};

static const char letters[KEFA_PKT_TYPES] = {
	[KEFA_HANDSHAKE_PKT]		= 'H',
	[KEFA_EAGER_RTW_PKT]		= '?',
	[KEFA_CTS_PKT]			= 'C',
	[KEFA_RECEIPT_PKT]		= 'R',
	[KEFA_EOR_PKT]			= 'E',
	[KEFA_READ_NACK_PKT]		= 'N',
	[KEFA_CTSDATA_PKT]		= 'd',
	[KEFA_EAGER_TAGRTM_PKT]		= 'e',
	[KEFA_MEDIUM_TAGRTM_PKT]	= 'm',
	[KEFA_LONGCTS_TAGRTM_PKT]	= 'l',
	[KEFA_LONGREAD_TAGRTM_PKT]	= 'r',
	[KEFA_RUNTREAD_TAGRTM_PKT]	= 'u',
	[KEFA_DC_EAGER_TAGRTM_PKT]	= 'x',
	[KEFA_DC_MEDIUM_TAGRTM_PKT]	= 'y',
	[KEFA_DC_LONGCTS_TAGRTM_PKT]	= 'z',
};

static void note(struct theirs *t, char letter)
{
	if ((!t->nlog || t->log[t->nlog - 1] != letter) && t->nlog + 1 < sizeof(t->log))
		t->log[t->nlog++] = letter;
}

/* Expect these packets since the last call. */
static void expect_log(struct kunit *test, struct theirs *t, const char *log)
{
	KUNIT_EXPECT_STREQ(test, t->log, log);
	memset(t->log, 0, sizeof(t->log));
	t->nlog = 0;
}

/* --- packets of the peer --- */

static void say(struct theirs *t, struct kefa_pkt *pkt, size_t data)
{
	static u8 buf[SZ_8K] __aligned(8);
	struct kefa_wc wc = { .src_qpn = t->name.qpn, .slid = SLID };
	struct kunit *test = t->pair->test;
	struct efake_wr *recv;
	const char *why;

	pkt->has_connid = true;
	pkt->connid = t->name.qkey;
	if (!pkt->raw)
		pkt->flags |= KEFA_PKT_CONNID_HDR;
	memset(buf, 0, sizeof(buf));
	wc.len = kefa_build(pkt, buf, sizeof(buf)) + data;
	why = rdm_theirs_packet(&t->pair->theirs, !OURS, buf, wc.len);
	if (why)
		KUNIT_FAIL(test, "the peer sends %s", why);
	recv = efake_recv(t->qp, 0);
	KUNIT_ASSERT_NOT_NULL(test, recv);
	efake_wr_write(recv, buf, wc.len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

static void say_handshake(struct theirs *t)
{
	struct kefa_pkt pkt = {
		.row	= kefa_row_of(KEFA_HANDSHAKE_PKT),
		.flags	= KEFA_HANDSHAKE_DEVICE_VERSION_HDR,
		.shake	= {
			.nextra_p3	= KEFA_NEXTRA_P3 + 1,
			.extra[0]	= t->version->features,
			.device_version	= t->device,
		},
	};

	say(t, &pkt, 0);
}

/* Ask for the engine's HANDSHAKE. */
static void say_question(struct theirs *t)
{
	struct kefa_raw_addr raw = {
		.qpn	= cpu_to_le16(t->name.qpn),
		.qkey	= cpu_to_le32(t->name.qkey),
	};
	u8 padded[KEFA_RAW_ADDR_LEN] = { };
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_EAGER_RTW_PKT),
		.flags		= KEFA_REQ_OPT_RAW_ADDR_HDR,
		.raw		= padded,
		.raw_len	= sizeof(padded),
	};

	memcpy(raw.gid, t->name.gid, sizeof(raw.gid));
	memcpy(padded, &raw, sizeof(raw));
	say(t, &pkt, 0);
}

static void say_answer(struct theirs *t, u8 type, u64 window)
{
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(type),
		.send_id	= t->msg.send_id,
		.msg_id		= t->msg.msg_id,
		.recv_id	= type == KEFA_RECEIPT_PKT ? 0 : 0x4321,
		.recv_length	= window,
	};

	say(t, &pkt, 0);
}

/* Send the requests of the message. */
static void say_message(struct theirs *t, bool backwards)
{
	struct message *m = &t->msg;
	const struct kefa_rma_iov iov = {
		cpu_to_le64(0x10000), cpu_to_le64(m->total), cpu_to_le64(7),
	};
	struct kefa_pkt pkt = {
		.row		= m->row,
		.msg_id		= m->msg_id,
		.send_id	= m->send_id,
		.msg_length	= m->total,
		.runt_length	= m->parts,
		.tag		= 5,
		.read_iov	= m->row->flags & KEFA_ROW_READ ? &iov : NULL,
		.read_iov_count	= !!(m->row->flags & KEFA_ROW_READ),
	};
	const u64 len = m->row->data == KEFA_DATA_FIRST ? PART : m->parts;
	unsigned int i, n = max(DIV_ROUND_UP(len, PART), 1);

	for (i = 0; i < n; i++) {
		pkt.seg_offset = (u64)(backwards ? n - 1 - i : i) * PART;
		say(t, &pkt, min_t(u64, PART, len - pkt.seg_offset));
	}
	m->done = len;
}

/* The engine has sent a CTS. */
static void say_granted(struct theirs *t, const struct kefa_pkt *cts)
{
	struct message *m = &t->msg;
	const u64 end = m->done + cts->recv_length;
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(KEFA_CTSDATA_PKT),
		.recv_id	= cts->recv_id,
	};

	while (m->done < end) {
		pkt.seg_offset = m->done;
		pkt.seg_length = min_t(u64, PART, end - m->done);
		m->done += pkt.seg_length;
		say(t, &pkt, pkt.seg_length);
	}
}

/* The engine has sent a READ_NACK. */
static void say_again(struct theirs *t)
{
	const u8 type = t->msg.dc ? KEFA_DC_LONGCTS_TAGRTM_PKT : KEFA_LONGCTS_TAGRTM_PKT;
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(type),
		.flags		= KEFA_REQ_READ_NACK,
		.msg_id		= t->msg.msg_id,
		.send_id	= t->msg.send_id,
		.msg_length	= t->msg.total,
		.tag		= 5,
	};

	say(t, &pkt, 0);
}

/* --- packets of the engine --- */

/* A message from the engine, or a part of it: answer as its receiver. */
static void hear_data(struct theirs *t, const struct kefa_pkt *pkt)
{
	struct message *m = &t->msg;

	if (pkt->row->flags & KEFA_ROW_REQ && !(pkt->flags & KEFA_REQ_READ_NACK) &&
	    (!m->row || m->msg_id != pkt->msg_id)) {
		m->msg_id = pkt->msg_id;
		m->total = pkt->msg_length;
		m->done = 0;
	}
	if (pkt->row->flags & KEFA_ROW_REQ) {
		m->row = pkt->row;
		m->send_id = pkt->send_id;
		m->parts = m->row->flags & KEFA_ROW_READ ? pkt->runt_length : m->total;
		m->granted = m->done + pkt->data_len;
	}
	m->done += pkt->data_len;
	if (t->silent)
		return;
	if (m->done < m->parts && m->row->data != KEFA_DATA_FIRST)
		return;
	if (m->row->flags & KEFA_ROW_READ) {
		say_answer(t, t->refuses ? KEFA_READ_NACK_PKT : KEFA_EOR_PKT, 0);
	} else if (m->done == m->total && m->row->flags & KEFA_ROW_DC) {
		say_answer(t, KEFA_RECEIPT_PKT, 0);
	} else if (m->done < m->total && m->done == m->granted) {
		m->granted = min_t(u64, m->total, m->done + GRANT);
		say_answer(t, KEFA_CTS_PKT, m->granted - m->done);
	}
}

static void hear(struct theirs *t, const struct kefa_pkt *pkt)
{
	if (pkt->row->type == KEFA_CTS_PKT)
		say_granted(t, pkt);
	else if (pkt->row->type == KEFA_READ_NACK_PKT)
		say_again(t);
	else if (pkt->row->flags & KEFA_ROW_ORDERED || pkt->row->type == KEFA_CTSDATA_PKT)
		hear_data(t, pkt);
}

/* Take one work request of the engine. Return: whether there was one. */
static bool take(struct theirs *t)
{
	static u8 buf[SZ_16K] __aligned(8);
	struct kunit *test = t->pair->test;
	struct efake_wr *wr;
	unsigned int n = 0;
	struct kefa_pkt pkt;
	const char *why;
	size_t len;

	while ((wr = efake_sent(t->qp, n)) && wr->mr)
		n++;
	if (!wr)
		return false;
	if (wr->opcode == IB_WR_RDMA_READ) {
		efake_wr_done(wr, t->refuses ? 7 : 0);
		return true;
	}
	if (t->rnr && t->refusals < 2) {
		t->refusals++;
		efake_wr_done(wr, KEFA_STATUS_RNR);
		return true;
	}
	t->refusals = 0;
	len = efake_wr_read(wr, buf, sizeof(buf));
	KUNIT_EXPECT_EQ(test, wr->qpn, (u32)t->name.qpn);
	why = rdm_theirs_packet(&t->pair->theirs, OURS, buf, len);
	if (why)
		KUNIT_FAIL(test, "the engine sends %s", why);
	KUNIT_ASSERT_EQ(test, kefa_parse(buf, len, &pkt), KEFA_OK);
	note(t, letters[pkt.row->type] ?: '!');
	if (!t->late)
		efake_wr_done(wr, 0);
	hear(t, &pkt);
	if (t->late)
		efake_wr_done(wr, 0);
	return true;
}

static void run(struct theirs *t)
{
	unsigned int idle, n;

	for (idle = 0; idle < 3;) {
		for (n = 0; take(t); n++)
			efake_settle();
		efake_settle_all();
		idle = n || rdm_waits(&t->pair->end[OURS]) ? 0 : idle + 1;
		usleep_range(200, 300);
	}
}

/* --- set-up --- */

static struct theirs *theirs_new(struct kunit *test)
{
	struct theirs *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->pair = rdm_pair_new(test, NULL);
	t->qp = t->pair->end[OURS].qp;
	t->device = rdm_of(&t->pair->end[OURS])->self.device_version;
	t->version = &versions[0];
	t->name.qpn = 0x600;
	return t;
}

/* Insert another peer of this version, which has sent nothing yet. */
static void meet(struct kunit *test, struct theirs *t, const struct version *version)
{
	const u16 qpn = t->name.qpn + 1;

	rdm_theirs_forget(&t->pair->theirs);
	rdm_theirs_init(&t->pair->theirs);
	t->version = version;
	t->name = efa_addr(GID, qpn);
	memset(&t->msg, 0, sizeof(t->msg));
	memset(t->log, 0, sizeof(t->log));
	t->nlog = 0;
	t->refusals = 0;
	t->silent = false;
	KUNIT_EXPECT_EQ(test, fi_av_insert(t->pair->end[OURS].av, &t->name, 1, &t->addr, 0, NULL),
			1);
}

static void meet_and_shake(struct kunit *test, struct theirs *t, const struct version *version)
{
	meet(test, t, version);
	say_handshake(t);
	run(t);
	expect_log(test, t, "H");
}

/* Remove the peer. Unless @dead, neither end may have an operation any more. */
static void part(struct kunit *test, struct theirs *t, bool dead)
{
	struct kefa_rdm *rdm = rdm_of(&t->pair->end[OURS]);
	int at;

	for (at = 0; at < 2 && !dead; at++)
		KUNIT_EXPECT_EQ(test, rdm_theirs_waiting(&t->pair->theirs, at), 0U);
	KUNIT_EXPECT_EQ(test, rdm->rops.used, 0U);
	KUNIT_EXPECT_EQ(test, rdm->ts_nfree, rdm->nts);
	KUNIT_EXPECT_EQ(test, rdm_regions(&t->pair->end[OURS]), rdm->nsources);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, (u64)dead);
	rdm->stats.deaths = 0;
	KUNIT_EXPECT_EQ(test, fi_av_remove(t->pair->end[OURS].av, &t->addr, 1, 0), 0);
}

/* --- messages to the engine --- */

/**
 * struct received - a message from libfabric
 * @name: name of the case
 * @type: type of its requests
 * @total: length
 * @runt: bytes that are sent with the requests of a message that is read
 * @dc: the sender wants delivery complete, which a message that is read has anyway
 * @refused: the engine's reads are refused; the sender of a version without READ_NACK is dead then
 * @answers: packets that the engine must send
 * @unread: the same if the engine wants none of the message's bytes
 */
struct received {
	const char	*name;
	u8		type;
	u64		total;
	u64		runt;
	bool		dc;
	bool		refused;
	const char	*answers;
	const char	*unread;
};

static const struct received receiveds[] = {
	{ "eager",		KEFA_EAGER_TAGRTM_PKT, PART, 0, false, false, "", "" },
	{ "medium",		KEFA_MEDIUM_TAGRTM_PKT, MEDIUM, 0, false, false, "", "" },
	{ "long-CTS",		KEFA_LONGCTS_TAGRTM_PKT, LONGEST, 0, false, false, "C", "C" },
	{ "long read",		KEFA_LONGREAD_TAGRTM_PKT, LONGEST, 0, false, false, "E", "E" },
	{ "runt",		KEFA_RUNTREAD_TAGRTM_PKT, LONGEST, RUNT, false, false, "E", "E" },
	{ "whole runt",		KEFA_RUNTREAD_TAGRTM_PKT, RUNT, RUNT, false, false, "", "" },
	{ "DC eager",		KEFA_DC_EAGER_TAGRTM_PKT, PART, 0, true, false, "R", "R" },
	{ "DC medium",		KEFA_DC_MEDIUM_TAGRTM_PKT, MEDIUM, 0, true, false, "R", "R" },
	{ "DC long-CTS",	KEFA_DC_LONGCTS_TAGRTM_PKT, LONGEST, 0, true, false, "CR", "CR" },
	{ "refused long read",	KEFA_LONGREAD_TAGRTM_PKT, LONGEST, 0, false, true, "NC", "E" },
	{ "refused DC",		KEFA_LONGREAD_TAGRTM_PKT, LONGEST, 0, true, true, "NCR", "E" },
	{ "refused runt",	KEFA_RUNTREAD_TAGRTM_PKT, LONGEST, RUNT, false, true, "NC", "E" },
	{ "refused whole runt",	KEFA_RUNTREAD_TAGRTM_PKT, RUNT, RUNT, false, true, "", "" },
};

/* Ways in which the engine's ULP receives the message. */
enum {
	EXPECTED,
	UNEXPECTED,
	TOO_SHORT,	/* the buffer, by a byte */
	DISCARDED,
	CANCELLED,	/* while it is being read or granted; others have arrived by then */
	WAYS
};

static void receive(struct kunit *test, struct theirs *t, size_t room, bool discard)
{
	struct rdm_pair *pair = t->pair;
	struct kvec iov = { pair->in, room };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 5, .context = (void *)1 };

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, room);
	KUNIT_EXPECT_EQ(test, fi_trecvmsg(pair->end[OURS].ep, &msg,
					  discard ? FI_PEEK | FI_DISCARD : 0), 0);
}

static void message_of(struct theirs *t, const struct received *r)
{
	t->refuses = r->refused;
	t->msg = (struct message) {
		.row		= kefa_row_of(r->type),
		.dc		= r->dc,
		.send_id	= 0x1234,
		.total		= r->total,
		.parts		= r->type == KEFA_LONGREAD_TAGRTM_PKT ? 0 : r->runt ?: r->total,
	};
}

static void one_received(struct kunit *test, struct theirs *t, const struct received *r, int way)
{
	const bool unread = way == DISCARDED || way == CANCELLED;
	const bool gone = r->refused && r->answers[0] && !unread &&
			  !(t->version->features & KEFA_FEATURE_READ_NACK);
	const char *answers = unread ? r->unread : r->answers;
	int err = way == TOO_SHORT ? FI_ETRUNC : 0;
	struct rdm_comp comp;

	message_of(t, r);
	if (way != UNEXPECTED && way != DISCARDED)
		receive(test, t, r->total - (way == TOO_SHORT), false);
	say_message(t, way == TOO_SHORT || way == DISCARDED);
	if (way == UNEXPECTED || way == DISCARDED)
		receive(test, t, r->total, way == DISCARDED);
	if (way == CANCELLED && !fi_cancel(&t->pair->end[OURS].ep->fid, (void *)1))
		err = ECANCELED;
	run(t);
	comp = rdm_read(&t->pair->end[OURS]);
	KUNIT_EXPECT_EQ(test, comp.error.err, gone ? EACCES : err);
	expect_log(test, t, gone ? "" : answers);
	part(test, t, gone);
}

static void libfabric_received(struct kunit *test)
{
	const struct received *r = test->param_value;
	struct theirs *t = theirs_new(test);
	int i, way, rnr;

	for (i = 0; i < ARRAY_SIZE(versions); i++)
		for (way = 0; way < WAYS; way++)
			/* A short run has each version and way with one of the two. */
			for (rnr = 0; rnr < (rdm_long ? 2 : 1); rnr++) {
				t->rnr = (rnr + i + way) % 2;
				meet_and_shake(test, t, &versions[i]);
				one_received(test, t, r, way);
			}
}

static void received_name(const struct received *r, char *name)
{
	strscpy(name, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(received, receiveds, received_name);

/*
 * A message may overtake the HANDSHAKE of its sender, so that its features aren't known yet. A
 * READ_NACK has to wait for them.
 */
static void libfabric_overtaken(struct kunit *test)
{
	const struct received *r = test->param_value;
	struct theirs *t = theirs_new(test);
	struct rdm_comp comp;
	bool gone;
	int i;

	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		gone = r->refused && r->answers[0] &&
		       !(versions[i].features & KEFA_FEATURE_READ_NACK);
		meet(test, t, &versions[i]);
		say_question(t);
		run(t);
		expect_log(test, t, "H");
		message_of(t, r);
		receive(test, t, r->total, false);
		say_message(t, false);
		run(t);
		expect_log(test, t, r->refused ? "" : r->answers);
		say_handshake(t);
		run(t);
		comp = rdm_read(&t->pair->end[OURS]);
		KUNIT_EXPECT_EQ(test, comp.error.err, gone ? EOPNOTSUPP : 0);
		expect_log(test, t, r->refused && !gone ? r->answers : "");
		part(test, t, gone);
	}
}

/* --- messages from the engine --- */

/**
 * struct sent - a message to libfabric
 * @name: name of the case
 * @total: length
 * @dc: with delivery complete
 * @read: messages of this length are read, after a runt of @runt bytes
 * @runt: length of the runt
 * @lacks: features that the peer doesn't have
 * @refused: libfabric can't read; not for versions without READ_NACK
 * @packets: packets that the engine must send
 */
struct sent {
	const char	*name;
	u64		total;
	bool		dc;
	bool		read;
	u32		runt;
	u64		lacks;
	bool		refused;
	const char	*packets;
};

static const struct sent sents[] = {
	{ "eager", PART, .packets = "e" },
	{ "DC eager", PART, true, .packets = "x" },
	{ "medium", MEDIUM, .packets = "m" },
	{ "DC medium", MEDIUM, true, .packets = "y" },
	{ "long-CTS", LONGEST, .packets = "ld" },
	{ "DC long-CTS", LONGEST, true, .packets = "zd" },
	{ "long read", LONGEST, false, true, .packets = "r" },
	{ "DC long read", LONGEST, true, true, .packets = "r" },
	{ "runt", LONGEST, false, true, RUNT, .packets = "u" },
	{ "DC runt", LONGEST, true, true, RUNT, .packets = "r" },
	{ "runt that is too long", LONGEST, false, true, 2 * LONGEST, .packets = "u" },
	{ "refused", LONGEST, false, true, .refused = true, .packets = "rld" },
	{ "refused DC", LONGEST, true, true, .refused = true, .packets = "rzd" },
	{ "refused runt", LONGEST, false, true, RUNT, .refused = true, .packets = "uld" },
	{ "eager, no DC", PART, true, .lacks = KEFA_FEATURE_DELIVERY_COMPLETE, .packets = "e" },
	{ "medium, no DC", MEDIUM, true, .lacks = KEFA_FEATURE_DELIVERY_COMPLETE,
	  .packets = "m" },
	{ "long-CTS, no DC", LONGEST, true, .lacks = KEFA_FEATURE_DELIVERY_COMPLETE,
	  .packets = "ld" },
	{ "long read, no reads", LONGEST, false, true, .lacks = KEFA_FEATURE_RDMA_READ,
	  .packets = "ld" },
	{ "runt, no runts", LONGEST, false, true, RUNT, KEFA_FEATURE_RUNT, .packets = "r" },
	{ "refused DC, no DC", LONGEST, true, true, 0, KEFA_FEATURE_DELIVERY_COMPLETE, true,
	  "rld" },
};

static void send_to(struct kunit *test, struct theirs *t, size_t len, u64 flags)
{
	struct kvec iov = { t->pair->out, len };
	struct fi_msg_tagged msg = { .addr = t->addr, .tag = 5, .context = (void *)2 };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, len);
	KUNIT_EXPECT_EQ(test, fi_tsendmsg(t->pair->end[OURS].ep, &msg, flags), 0);
}

static void one_sent(struct kunit *test, struct theirs *t, const struct sent *s,
		     const struct version *version)
{
	struct version lacking = *version;

	lacking.features &= ~s->lacks;
	t->refuses = s->refused;
	meet_and_shake(test, t, &lacking);
	t->version = version;
	send_to(test, t, s->total, s->dc ? FI_DELIVERY_COMPLETE : 0);
	run(t);
	rdm_expect(test, &t->pair->end[OURS], 2, s->total);
	expect_log(test, t, s->packets);
	part(test, t, false);
}

static void libfabric_sent(struct kunit *test)
{
	const struct sent *s = test->param_value;
	struct theirs *t = theirs_new(test);
	struct kefa_rdm *rdm = rdm_of(&t->pair->end[OURS]);
	int i, how;

	rdm->lim.min_read_message = s->read ? LONGEST : U64_MAX;
	rdm->lim.runt = s->runt;
	for (i = 0; i < ARRAY_SIZE(versions); i++)
		for (how = 0; how < 4; how++) {
			if (!rdm_long && (how + i) % 2)
				continue;
			t->rnr = how & 1;
			t->late = how & 2;
			if (s->refused && !(versions[i].features & KEFA_FEATURE_READ_NACK))
				continue;
			one_sent(test, t, s, &versions[i]);
		}
}

static void sent_name(const struct sent *s, char *name)
{
	strscpy(name, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sent, sents, sent_name);

/* --- other packets --- */

/* A peer that doesn't answer is asked for a sign of life again and again. */
static void libfabric_asked(struct kunit *test)
{
	struct theirs *t = theirs_new(test);
	struct kefa_rdm *rdm = rdm_of(&t->pair->end[OURS]);
	int i, n;

	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		meet_and_shake(test, t, &versions[i]);
		t->silent = true;
		send_to(test, t, LONGEST, 0);
		run(t);
		expect_log(test, t, "l");
		for (n = 0; n < 4; n++) {
			rdm_check_peers(rdm);
			run(t);
			/* The first check notes that the peer is silent. */
			expect_log(test, t, n ? "?" : "");
		}
		t->silent = false;
		t->msg.granted = LONGEST;
		say_answer(t, KEFA_CTS_PKT, LONGEST - t->msg.done);
		run(t);
		expect_log(test, t, "d");
		rdm_expect(test, &t->pair->end[OURS], 2, LONGEST);
		part(test, t, false);
	}
}

/*
 * A peer that is removed and inserted again: libfabric doesn't notice, so it gets no other
 * HANDSHAKE, and numbers go on. One that was asked before is asked again.
 */
static void libfabric_inserted_again(struct kunit *test)
{
	struct theirs *t = theirs_new(test);
	struct fid_av *av = t->pair->end[OURS].av;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		meet(test, t, &versions[i]);
		send_to(test, t, PART, 0);
		run(t);
		expect_log(test, t, "?");
		KUNIT_EXPECT_EQ(test, fi_av_remove(av, &t->addr, 1, 0), 0);
		rdm_expect_error(test, &t->pair->end[OURS], 2, ECANCELED);
		KUNIT_EXPECT_EQ(test, fi_av_insert(av, &t->name, 1, &t->addr, 0, NULL), 1);
		say_handshake(t);
		run(t);
		expect_log(test, t, "H");
		for (n = 0; n < 3; n++) {
			send_to(test, t, n & 1 ? MEDIUM : PART, n ? FI_DELIVERY_COMPLETE : 0);
			run(t);
			expect_log(test, t, n ? n & 1 ? "y" : "x" : "e");
			rdm_expect(test, &t->pair->end[OURS], 2, n & 1 ? MEDIUM : PART);
			KUNIT_EXPECT_EQ(test, fi_av_remove(av, &t->addr, 1, 0), 0);
			KUNIT_EXPECT_EQ(test, fi_av_insert(av, &t->name, 1, &t->addr, 0, NULL),
					1);
		}
		part(test, t, false);
	}
}

/*
 * The last check before a packet is sent: if the engine has selected a type that the peer doesn't
 * support, the packet isn't sent, and the peer is dead here.
 */
static void libfabric_unsupported(struct kunit *test)
{
	static const u8 types[] = {
		KEFA_READ_NACK_PKT, KEFA_DC_LONGCTS_TAGRTM_PKT, KEFA_LONGREAD_TAGRTM_PKT,
		KEFA_RUNTREAD_TAGRTM_PKT,
	};
	const struct version old = { "old", KEFA_REQUEST_CONNID_HEADER };
	struct theirs *t = theirs_new(test);
	struct kefa_rdm *rdm = rdm_of(&t->pair->end[OURS]);
	struct kefa_pkt pkt = { };
	struct kefa_rpeer *peer;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		meet_and_shake(test, t, &old);
		send_to(test, t, LONGEST, FI_DELIVERY_COMPLETE);
		t->silent = true;
		run(t);
		expect_log(test, t, "l");
		pkt.row = kefa_row_of(types[i]);
		spin_lock_bh(&rdm->ep.lock);
		peer = kefa_peers_at(&rdm->peers, t->addr);
		KUNIT_EXPECT_TRUE(test, kefa_tx_may(rdm, peer, kefa_row_of(KEFA_EOR_PKT)));
		KUNIT_EXPECT_TRUE(test, kefa_tx_control(rdm, peer, NULL, &pkt));
		KUNIT_EXPECT_EQ(test, peer->state, (u8)KEFA_RPEER_DYING);
		spin_unlock_bh(&rdm->ep.lock);
		run(t);
		expect_log(test, t, "");
		rdm_expect_error(test, &t->pair->end[OURS], 2, EOPNOTSUPP);
		KUNIT_EXPECT_EQ(test, rdm->stats.unsupported, i + 1ULL);
		part(test, t, true);
	}
}

static struct kunit_case libfabric_cases[] = {
	KUNIT_CASE_PARAM(libfabric_received, received_gen_params),
	KUNIT_CASE_PARAM(libfabric_overtaken, received_gen_params),
	KUNIT_CASE_PARAM(libfabric_sent, sent_gen_params),
	KUNIT_CASE(libfabric_asked),
	KUNIT_CASE(libfabric_inserted_again),
	KUNIT_CASE(libfabric_unsupported),
	{}
};

static struct kunit_suite libfabric_suite = {
	.name		= "kefa_rdm_libfabric",
	.test_cases	= libfabric_cases,
};

kunit_test_suite(libfabric_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, what each version of libfabric expects");
MODULE_LICENSE("Dual BSD/GPL");
