// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fabric efa: an attacker who knows everything that crosses the wire, but can't forge what the
 * device reports: the number of its own address handle, and its queue pair. It speaks in the name
 * of a victim, which is a peer in the second endpoint's address vector. Whatever it sends, and
 * whenever, no message is reported as the victim's, and the victim's messages arrive.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include "crew.h"
#include "efa_rdm_scene.h"

/* Last byte of the GIDs. */
#define VICTIM		9
#define ATTACKER	19

static u8 packet[SZ_16K];

/**
 * struct actor - a sender of packets
 * @slid: number that the device reports for the sender's address handle
 * @qpn: queue pair, which the device reports, too
 * @connid: connid in the packets
 * @gid: last bytes of the GID in the raw address
 */
struct actor {
	u16	slid;
	u32	qpn;
	u32	connid;
	u16	gid;
};

enum form { BY_CONNID, BY_RAW, SHAKE, FORMS };

static const char * const forms[FORMS] = {
	[BY_CONNID]	= "message with the connid",
	[BY_RAW]	= "message with the raw address",
	[SHAKE]		= "HANDSHAKE",
};

static struct actor victim(void)
{
	const struct fi_efa_addr addr = efa_addr(VICTIM, 0x500);

	return (struct actor) {
		.slid	= 41,
		.qpn	= addr.qpn,
		.connid	= addr.qkey,
		.gid	= VICTIM,
	};
}

/* Complete all packets of the second endpoint without delivering them. */
static void answer_all(struct rdm_pair *pair)
{
	struct efake_qp *qp = pair->end[1].qp;
	unsigned int n;

	for (n = 0; qp->nsent && n < 1000; n++) {
		efake_wr_done(efake_sent(qp, 0), 0);
		efake_settle_all();
	}
}

static void inject_at(struct rdm_end *end, const struct actor *a, size_t len)
{
	struct efake_wr *recv = efake_recv(end->qp, 0);
	const struct kefa_wc wc = { .len = len, .src_qpn = a->qpn, .slid = a->slid };

	if (!recv)
		return;
	efake_wr_write(recv, packet, len);
	efake_recv_done(recv, &wc);
	efake_settle_all();
}

static size_t build(const struct actor *a, enum form how, u32 msg_id)
{
	const struct kefa_raw_addr addr = {
		.gid	= { 0xfe, 0x80, [14] = a->gid >> 8, [15] = a->gid },
		.qpn	= cpu_to_le16(a->qpn),
		.qkey	= cpu_to_le32(a->connid),
	};
	u8 bytes[KEFA_RAW_ADDR_LEN] = { };
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(how == SHAKE ? KEFA_HANDSHAKE_PKT :
							      KEFA_EAGER_TAGRTM_PKT),
		.flags		= how == BY_RAW ? KEFA_REQ_OPT_RAW_ADDR_HDR : KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= a->connid,
		.msg_id		= msg_id,
		.tag		= how == SHAKE ? 0 : 77,
		.raw		= bytes,
		.raw_len	= sizeof(bytes),
	};

	/* It shares memory with the tag. */
	if (how == SHAKE)
		pkt.shake.nextra_p3 = KEFA_NEXTRA_P3 + 1;
	memcpy(bytes, &addr, sizeof(addr));
	return kefa_build(&pkt, packet, sizeof(packet)) + (how == SHAKE ? 0 : 8);
}

/* Have the second endpoint receive a packet, and its answers arrive. */
static void say(struct rdm_pair *pair, const struct actor *a, enum form how, u32 msg_id)
{
	inject_at(&pair->end[1], a, build(a, how, msg_id));
	answer_all(pair);
}

static fi_addr_t insert(struct kunit *test, struct rdm_end *end, const struct actor *a)
{
	struct fi_efa_addr addr = efa_addr(a->gid, a->qpn);
	fi_addr_t to = FI_ADDR_NOTAVAIL;

	addr.qkey = a->connid;
	KUNIT_EXPECT_EQ(test, fi_av_insert(end->av, &addr, 1, &to, 0, NULL), 1);
	return to;
}

static void set_age(struct rdm_pair *pair, unsigned int ms)
{
	struct kefa_domain *dom = to_kefa_domain(pair->domain);
	struct kefa_ah *ah;

	kefa_dev_lock(dom->dev);
	list_for_each_entry(ah, &dom->ahs, list)
		ah->since = jiffies - msecs_to_jiffies(ms);
	kefa_dev_unlock(dom->dev);
}

/* Have all address handles exist for so long that completions must have their numbers. */
static void grow_old(struct rdm_pair *pair)
{
	set_age(pair, 2 * KEFA_SLID_LAG_MS);
}

static u64 liars(struct rdm_pair *pair)
{
	return rdm_of(&pair->end[1])->peers.stats.liars;
}

/* Post a receive that only the victim may complete. */
static void expect_from(struct kunit *test, struct rdm_pair *pair, fi_addr_t from, long ctx)
{
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[1].ep, pair->in, 64, NULL, from, 77, 0,
				       (void *)ctx), 0);
}

static void expect_got(struct kunit *test, struct rdm_pair *pair, fi_addr_t from, long ctx)
{
	struct rdm_comp comp = rdm_read(&pair->end[1]);

	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, ctx);
	KUNIT_EXPECT_EQ(test, comp.src, from);
}

/* --- attacks on a peer in the address vector --- */

enum when { BEFORE, SPOKEN, SHAKING, SHAKEN, AGAIN, ASKED, WHENS };

static const char * const whens[WHENS] = {
	[BEFORE]	= "before the victim has spoken",
	[SPOKEN]	= "after its first message",
	[SHAKING]	= "while its HANDSHAKE is under way",
	[SHAKEN]	= "after its HANDSHAKE",
	[AGAIN]		= "after it was removed and inserted again",
	[ASKED]		= "when it was asked for its HANDSHAKE",
};

/* Bring the victim to the point of the attack. Return: the number of its next message. */
static u32 act(struct kunit *test, struct rdm_pair *pair, struct actor *v, enum when point,
	       fi_addr_t *to)
{
	u32 msg_id = 0;

	if (point == ASKED)
		KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[1].ep, pair->out, 8, NULL, *to, 3,
					       (void *)5), 0);
	if (point == ASKED || point == BEFORE)
		return 0;
	expect_from(test, pair, *to, 1);
	inject_at(&pair->end[1], v, build(v, BY_RAW, msg_id++));
	expect_got(test, pair, *to, 1);
	if (point == SPOKEN)
		return msg_id;
	answer_all(pair);
	if (point == SHAKING)
		return msg_id;
	say(pair, v, SHAKE, 0);
	if (point == SHAKEN)
		return msg_id;
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, to, 1, 0), 0);
	flush_workqueue(kefa_cmd_wq);
	*to = insert(test, &pair->end[1], v);
	/* The new address handle has another number. */
	v->slid++;
	return msg_id;
}

static void attack(struct kunit *test, bool numbered, enum when point, enum form how)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct actor v = victim(), evil = victim(), own = { 40, 0x600, 6, ATTACKER };
	fi_addr_t to = insert(test, &pair->end[1], &v);
	unsigned int ahs, i;
	u64 lies;
	u32 id;

	/* The attacker has its own honest business, or the endpoint has no handle for it. */
	if (numbered)
		say(pair, &own, BY_RAW, 0);
	evil.slid = numbered ? own.slid : KEFA_NO_SLID;
	id = act(test, pair, &v, point, &to);
	grow_old(pair);
	ahs = pair->fake->ahs;
	expect_from(test, pair, to, 2);
	lies = liars(pair);
	for (i = 0; i < 3; i++)
		say(pair, &evil, how, id + i);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, liars(pair) - lies, 3ULL);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, ahs);
	/* The victim goes on, with its raw address until it has got the HANDSHAKE. */
	if (point == ASKED)
		say(pair, &v, SHAKE, 0);
	if (point == ASKED)
		expect_got(test, pair, FI_ADDR_NOTAVAIL, 5);
	say(pair, &v, point >= SHAKING ? BY_CONNID : BY_RAW, id);
	expect_got(test, pair, to, 2);
	expect_from(test, pair, to, 3);
	say(pair, &v, BY_CONNID, id + 1);
	expect_got(test, pair, to, 3);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 0ULL);
	if (test->status == KUNIT_FAILURE)
		kunit_info(test, "%s, %s, attacker %s a number\n", forms[how], whens[point],
			   numbered ? "with" : "without");
	EFA_CLOSE(test, pair->end[0].ep);
	EFA_CLOSE(test, pair->end[1].ep);
	efake_remove(pair->fake);
}

static void identity_attacks(struct kunit *test)
{
	unsigned int n;

	for (n = 0; n < 2 * WHENS * FORMS && test->status != KUNIT_FAILURE; n++)
		attack(test, n % 2, n / 2 % WHENS, n / 2 / WHENS);
}

/* The number of an instance is learned once, for all endpoints of the domain. */
static void identity_shared(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const struct actor v = victim(), evil = { 40, v.qpn, v.connid, VICTIM };
	fi_addr_t at0 = insert(test, &pair->end[0], &v), to = insert(test, &pair->end[1], &v);
	struct rdm_comp comp;

	say(pair, &v, BY_RAW, 0);
	say(pair, &v, SHAKE, 0);
	KUNIT_EXPECT_EQ(test, fi_trecv(pair->end[0].ep, pair->in, 8, NULL, at0, 77, 0,
				       (void *)1), 0);
	inject_at(&pair->end[0], &evil, build(&evil, BY_RAW, 0));
	inject_at(&pair->end[0], &evil, build(&evil, BY_CONNID, 0));
	rdm_expect_nothing(test, &pair->end[0]);
	inject_at(&pair->end[0], &v, build(&v, BY_CONNID, 0));
	comp = rdm_read(&pair->end[0]);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, comp.src, at0);
	expect_from(test, pair, to, 2);
	expect_got(test, pair, to, 2);
}

/* --- the first packet of an instance that nobody knows --- */

/*
 * Nothing shows that the attacker isn't the victim: its address handle exists, but it has never
 * sent anything in its own name. The victim itself unseats it.
 */
static void identity_unseated(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct actor v = victim(), evil = { 40, v.qpn, v.connid, VICTIM };
	const struct actor own = { 40, 0x600, 6, ATTACKER };
	fi_addr_t to = insert(test, &pair->end[1], &v);

	insert(test, &pair->end[1], &own);
	grow_old(pair);
	say(pair, &evil, BY_RAW, 0);
	say(pair, &evil, BY_RAW, 1);
	KUNIT_EXPECT_EQ(test, rdm->stats.unexpected, 2ULL);
	/* The impostor's messages are dropped, and the victim begins with its first message. */
	say(pair, &v, BY_RAW, 0);
	KUNIT_EXPECT_EQ(test, rdm->peers.stats.unseated, 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_LIAR], 2ULL);
	expect_from(test, pair, to, 1);
	expect_got(test, pair, to, 1);
	expect_from(test, pair, to, 2);
	rdm_expect_nothing(test, &pair->end[1]);
	/* With its HANDSHAKE it can't be unseated any more. */
	say(pair, &v, SHAKE, 0);
	say(pair, &evil, BY_RAW, 1);
	say(pair, &evil, SHAKE, 0);
	say(pair, &evil, BY_CONNID, 1);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, liars(pair), 3ULL);
	say(pair, &v, BY_CONNID, 1);
	expect_got(test, pair, to, 2);
	/* The attacker may still speak in its own name. */
	say(pair, &own, BY_RAW, 0);
	KUNIT_EXPECT_EQ(test, liars(pair), 3ULL);
	KUNIT_EXPECT_EQ(test, rdm->peers.stats.unseated, 1ULL);
}

/* The victim's answer to our HANDSHAKE, which the impostor's packet caused, unseats it, too. */
static void identity_unseated_by_answer(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const struct actor v = victim(), evil = { 40, v.qpn, v.connid, VICTIM };
	const struct actor own = { 40, 0x600, 6, ATTACKER };
	fi_addr_t to = insert(test, &pair->end[1], &v);

	insert(test, &pair->end[1], &own);
	say(pair, &evil, BY_RAW, 0);
	say(pair, &evil, BY_CONNID, 1);
	say(pair, &v, SHAKE, 0);
	KUNIT_EXPECT_EQ(test, rdm->peers.stats.unseated, 1ULL);
	expect_from(test, pair, to, 1);
	say(pair, &evil, BY_CONNID, 0);
	rdm_expect_nothing(test, &pair->end[1]);
	say(pair, &v, BY_CONNID, 0);
	expect_got(test, pair, to, 1);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[1].ep, pair->out, 8, NULL, to, 3, (void *)2), 0);
	answer_all(pair);
	expect_got(test, pair, FI_ADDR_NOTAVAIL, 2);
}

/* Another endpoint has unseated an impostor, which is bound to the peer here. */
static void identity_unseated_elsewhere(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const struct actor v = victim(), evil = { 40, v.qpn, v.connid, VICTIM };
	fi_addr_t to = insert(test, &pair->end[1], &v);

	insert(test, &pair->end[0], &v);
	say(pair, &evil, BY_RAW, 0);
	inject_at(&pair->end[0], &v, build(&v, BY_RAW, 0));
	say(pair, &evil, BY_CONNID, 0);
	expect_from(test, pair, to, 1);
	say(pair, &evil, BY_CONNID, 1);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, liars(pair), 2ULL);
	say(pair, &v, BY_CONNID, 0);
	expect_got(test, pair, to, 1);
}

/* A peer that the device has no number for yet is believed, until it has one. */
static void identity_lag(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const struct actor v = victim(), late = { KEFA_NO_SLID, v.qpn, v.connid, VICTIM };
	fi_addr_t to = insert(test, &pair->end[1], &v);
	long i;

	for (i = 0; i < 4; i++)
		expect_from(test, pair, to, i);
	say(pair, &late, BY_RAW, 0);
	say(pair, &late, SHAKE, 0);
	say(pair, &late, BY_CONNID, 1);
	say(pair, &v, BY_CONNID, 2);
	for (i = 0; i < 3; i++)
		expect_got(test, pair, to, i);
	KUNIT_EXPECT_EQ(test, liars(pair), 0ULL);
	/* The handle is still new, but the peer is confirmed. */
	say(pair, &late, BY_CONNID, 3);
	say(pair, &late, BY_RAW, 3);
	rdm_expect_nothing(test, &pair->end[1]);
	KUNIT_EXPECT_EQ(test, liars(pair), 2ULL);
	say(pair, &v, BY_CONNID, 3);
	expect_got(test, pair, to, 3);
}

/* --- queue pairs and numbers that are used again --- */

/* A queue pair of the victim's own instance: the device tells them apart. */
static void identity_neighbour(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const struct actor v = victim();
	struct actor evil = { v.slid, 0x501, v.connid, VICTIM };
	fi_addr_t to = insert(test, &pair->end[1], &v);
	u32 i;

	say(pair, &v, BY_RAW, 0);
	say(pair, &v, SHAKE, 0);
	expect_from(test, pair, to, 1);
	expect_got(test, pair, to, 1);
	expect_from(test, pair, to, 2);
	for (i = 0; i < FORMS; i++)
		say(pair, &evil, i, 1);
	rdm_expect_nothing(test, &pair->end[1]);
	say(pair, &v, BY_CONNID, 1);
	expect_got(test, pair, to, 2);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 0ULL);
}

/* Only a process on the victim's instance can use its queue pair number after it. */
static void identity_reused(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	struct actor v = victim(), evil = { 40, v.qpn, 7, VICTIM };
	const struct actor own = { 40, 0x600, 6, ATTACKER };
	fi_addr_t to = insert(test, &pair->end[1], &v);

	say(pair, &own, BY_RAW, 0);
	say(pair, &v, BY_RAW, 0);
	say(pair, &v, SHAKE, 0);
	expect_from(test, pair, to, 1);
	expect_got(test, pair, to, 1);
	expect_from(test, pair, to, 2);
	say(pair, &evil, BY_RAW, 0);
	KUNIT_EXPECT_EQ(test, liars(pair), 1ULL);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 0ULL);
	say(pair, &v, BY_CONNID, 1);
	expect_got(test, pair, to, 2);
	/* Another process there: the victim is gone. */
	v.connid = 7;
	say(pair, &v, BY_RAW, 0);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 3), 0);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 4), 0);
	expect_got(test, pair, FI_ADDR_NOTAVAIL, 3);
	expect_got(test, pair, FI_ADDR_NOTAVAIL, 4);
}

/* The number of a destroyed handle may belong to another GID next. */
static void identity_forgotten(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const struct actor v = victim(), next = { v.slid, 0x700, 8, 29 };
	fi_addr_t to = insert(test, &pair->end[1], &v);
	u8 gid[FI_EFA_GID_LEN];

	say(pair, &v, BY_RAW, 0);
	say(pair, &v, SHAKE, 0);
	KUNIT_EXPECT_TRUE(test, kefa_slid_owner(to_kefa_domain(pair->domain), v.slid, gid));
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &to, 1, 0), 0);
	flush_workqueue(kefa_cmd_wq);
	KUNIT_EXPECT_FALSE(test, kefa_slid_owner(to_kefa_domain(pair->domain), v.slid, gid));
	to = insert(test, &pair->end[1], &next);
	expect_from(test, pair, to, 1);
	say(pair, &next, BY_RAW, 0);
	expect_got(test, pair, to, 1);
	KUNIT_EXPECT_EQ(test, liars(pair), 0ULL);
}

/*
 * A packet has the number that its sender had when it arrived. It may be handled after the handle
 * was destroyed, and one with another number created, for a stranger or for an address that was
 * inserted again. It mustn't teach the old number: nothing else of that sender would be accepted.
 */
static void stale(struct kunit *test, bool again, u16 more)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_domain *dom = to_kefa_domain(pair->domain);
	struct actor v = victim(), before = v;
	fi_addr_t to = insert(test, &pair->end[1], &v);
	u8 gid[FI_EFA_GID_LEN];
	long i;

	expect_from(test, pair, to, 1);
	say(pair, &v, BY_RAW, 0);
	say(pair, &v, SHAKE, 0);
	expect_got(test, pair, to, 1);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &to, 1, 0), 0);
	flush_workqueue(kefa_cmd_wq);
	v.slid += more;
	if (again)
		to = insert(test, &pair->end[1], &v);
	say(pair, &before, BY_CONNID, 1);
	say(pair, &v, BY_CONNID, 2);
	grow_old(pair);
	say(pair, &v, BY_CONNID, 3);
	KUNIT_EXPECT_TRUE(test, kefa_slid_owner(dom, v.slid, gid));
	for (i = 1; i <= 3; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 64, 77, i), 0);
		expect_got(test, pair, again ? to : FI_ADDR_NOTAVAIL, i);
	}
	KUNIT_EXPECT_EQ(test, liars(pair), 0ULL);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 0ULL);
	if (test->status == KUNIT_FAILURE)
		kunit_info(test, "inserted again %d, number + %u\n", again, more);
	rdm_pair_end(pair);
}

static void identity_stale(struct kunit *test)
{
	unsigned int way;

	for (way = 0; way < 4 && test->status != KUNIT_FAILURE; way++)
		stale(test, way / 2, !(way % 2));
}

/* --- address handles --- */

/* One queue pair invents GIDs: the second one is a lie. */
static void identity_gids(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const unsigned int before = pair->fake->ahs;
	struct actor evil = { 40, 0x500, 0, 0 };
	u32 i;

	for (i = 0; i < 200; i++) {
		evil.gid = 0x100 + i;
		evil.connid = 1000 + i;
		say(pair, &evil, BY_RAW, 0);
	}
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before + 1);
	KUNIT_EXPECT_EQ(test, liars(pair), 199ULL);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->peers.implicit, 1U);
}

static u64 evicted(struct rdm_pair *pair)
{
	return rdm_of(&pair->end[1])->peers.stats.evicted;
}

/*
 * The same without a number, as of an instance without a handle. Only few of the peers that it
 * invents exist at a time, and they make room for others only after a time, so it can't have
 * handles created as fast as it sends.
 */
static void identity_gids_unnumbered(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const unsigned int before = pair->fake->ahs;
	struct actor evil = { KEFA_NO_SLID, 0x500, 0, 0 };
	const struct actor v = victim();
	fi_addr_t to;
	u32 i;

	for (i = 0; i < 100; i++) {
		evil.gid = 0x100 + i;
		evil.connid = 1000 + i;
		set_age(pair, 0);
		say(pair, &evil, BY_RAW, 0);
	}
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before + KEFA_UNSURE_MAX);
	KUNIT_EXPECT_EQ(test, evicted(pair), 0ULL);
	/* Others aren't concerned. */
	to = insert(test, &pair->end[1], &v);
	expect_from(test, pair, to, 1);
	say(pair, &v, BY_RAW, 0);
	expect_got(test, pair, to, 1);
	/* After a time they are, one by one. */
	grow_old(pair);
	msleep(5 * KEFA_JOIN_RETRY_MS);
	efake_settle_all();
	flush_workqueue(kefa_cmd_wq);
	/* Handles of evicted peers are destroyed by a worker. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(pair->fake->ahs) <=
					  before + 1 + KEFA_UNSURE_MAX));
	KUNIT_EXPECT_EQ(test, evicted(pair), 100ULL - KEFA_UNSURE_MAX);
}

/* A dead peer that the ULP didn't insert gives back its handle; its whole messages stay. */
static void identity_dead(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	struct kefa_rdm *rdm = rdm_of(&pair->end[1]);
	const unsigned int before = pair->fake->ahs;
	struct actor a = { 40, 0x500, 3, ATTACKER };
	fi_addr_t to;

	say(pair, &a, BY_RAW, 0);
	say(pair, &a, SHAKE, 0);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before + 1);
	grow_old(pair);
	memset(packet, 0xff, 16);
	inject_at(&pair->end[1], &a, 16);
	flush_workqueue(kefa_cmd_wq);
	KUNIT_EXPECT_EQ(test, rdm->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before);
	say(pair, &a, BY_CONNID, 1);
	say(pair, &a, BY_RAW, 1);
	KUNIT_EXPECT_EQ(test, rdm->stats.dropped[KEFA_DROP_DEAD], 2ULL);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before);
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 1), 0);
	expect_got(test, pair, FI_ADDR_NOTAVAIL, 1);
	/* Inserted, it has a handle again, and is as dead as before. */
	to = insert(test, &pair->end[1], &a);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before + 1);
	KUNIT_EXPECT_EQ(test, fi_tsend(pair->end[1].ep, pair->out, 8, NULL, to, 3, NULL),
			-EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, fi_av_remove(pair->end[1].av, &to, 1, 0), 0);
	flush_workqueue(kefa_cmd_wq);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before);
}

/* It keeps the handle as long as the device has a packet to it, and as long as it is new. */
static void identity_dead_later(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const unsigned int before = pair->fake->ahs;
	const struct actor a = { 40, 0x500, 3, ATTACKER }, second = { 43, 0x700, 8, 29 };
	unsigned int i;

	inject_at(&pair->end[1], &a, build(&a, BY_RAW, 0));
	KUNIT_EXPECT_EQ(test, pair->end[1].qp->nsent, 1U);
	memset(packet, 0xff, 16);
	inject_at(&pair->end[1], &a, 16);
	flush_workqueue(kefa_cmd_wq);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 1ULL);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before + 1);
	set_age(pair, 0);
	answer_all(pair);
	flush_workqueue(kefa_cmd_wq);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before + 1);
	/* Another one dies meanwhile, at once: its number is too far ahead. */
	say(pair, &second, BY_RAW, KEFA_ORDER_RECV_WINDOW + 1);
	KUNIT_EXPECT_EQ(test, rdm_of(&pair->end[1])->stats.deaths, 2ULL);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before + 2);
	for (i = 0; i < 100 && pair->fake->ahs > before; i++)
		msleep(50);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, before);
}

/* The ULP's addresses win over strangers when the device has no room for handles. */
static void identity_full(struct kunit *test)
{
	struct rdm_pair *pair = rdm_ready_pair(test, NULL);
	const struct actor v = victim(), second = { 43, 0x700, 8, 29 };
	struct actor a = { 50, 0x500, 3, 0 };
	struct fi_efa_addr addr;
	unsigned int i;
	fi_addr_t to;

	for (i = 0; i < 3; i++, a.slid++) {
		a.gid = 0x100 + i;
		say(pair, &a, BY_RAW, 0);
		say(pair, &a, SHAKE, 0);
	}
	pair->fake->max_ahs = pair->fake->ahs;
	/* They aren't idle: their messages are kept. */
	addr = efa_addr(VICTIM, 0x500);
	KUNIT_EXPECT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &to, 0, NULL), -ENOMEM);
	KUNIT_EXPECT_EQ(test, evicted(pair), 0ULL);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, i), 0);
		expect_got(test, pair, FI_ADDR_NOTAVAIL, i);
	}
	to = insert(test, &pair->end[1], &v);
	KUNIT_EXPECT_EQ(test, evicted(pair), 1ULL);
	insert(test, &pair->end[0], &second);
	KUNIT_EXPECT_EQ(test, evicted(pair), 2ULL);
	KUNIT_EXPECT_EQ(test, pair->fake->ahs, pair->fake->max_ahs);
	expect_from(test, pair, to, 5);
	say(pair, &v, BY_RAW, 0);
	expect_got(test, pair, to, 5);
	/* An evicted one goes on where it was as soon as there is room. */
	pair->fake->max_ahs = 0;
	a.slid = 60;
	a.gid = 0x100;
	KUNIT_EXPECT_EQ(test, rdm_trecv(pair, 8, 77, 6), 0);
	say(pair, &a, BY_RAW, 1);
	expect_got(test, pair, FI_ADDR_NOTAVAIL, 6);
}

static struct kunit_case identity_cases[] = {
	KUNIT_CASE_SLOW(identity_attacks),
	KUNIT_CASE(identity_shared),
	KUNIT_CASE(identity_unseated),
	KUNIT_CASE(identity_unseated_by_answer),
	KUNIT_CASE(identity_unseated_elsewhere),
	KUNIT_CASE(identity_lag),
	KUNIT_CASE(identity_neighbour),
	KUNIT_CASE(identity_reused),
	KUNIT_CASE(identity_forgotten),
	KUNIT_CASE(identity_stale),
	KUNIT_CASE(identity_gids),
	KUNIT_CASE(identity_gids_unnumbered),
	KUNIT_CASE(identity_dead),
	KUNIT_CASE(identity_dead_later),
	KUNIT_CASE(identity_full),
	{}
};

static struct kunit_suite identity_suite = {
	.name		= "kefa_rdm_identity",
	.test_cases	= identity_cases,
};

kunit_test_suite(identity_suite);

MODULE_DESCRIPTION("KUnit: fabric efa, attacks on the identity of peers");
MODULE_LICENSE("Dual BSD/GPL");
