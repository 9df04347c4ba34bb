// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sessions with a peer that the case plays: it knows the protocol and the secret, or not. */
#include <linux/delay.h>
#include <linux/slab.h>
#include "cm_scene.h"

/**
 * struct player - a peer of kofi_cm
 * @test: the test
 * @conn: its connection
 * @side: 0 as the active side, 1 as the passive one
 * @shake: proofs
 * @hello: HELLO
 * @key: key of the session
 * @auth: MAC of AUTH
 * @number: number of its last message
 * @buf: the message that was received last
 */
struct player {
	struct kunit		*test;
	struct cm_conn		*conn;
	int			side;
	struct kulp_shake	shake;
	u8			hello[KCM_MSG_MAX] __aligned(8);
	struct kulp_key		*key;
	u8			auth[KULP_MAC];
	u64			number;
	u8			buf[KCM_MSG_MAX] __aligned(8);
};

static struct player *player_new(struct kunit *test, struct cm_conn *conn, int side)
{
	struct player *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->test = test;
	p->conn = conn;
	p->side = side;
	p->shake = (struct kulp_shake) {
		.proto		= &kcm_proto,
		.challenge_type	= KCM_CHALLENGE,
		.proof_type	= KCM_AUTH,
		.server		= "kofi_cm challenge",
		.client		= "kofi_cm auth",
		.first		= p->hello,
	};
	return p;
}

static void player_free(struct player *p)
{
	cm_conn_close(p->conn, p->side);
	kulp_key_put(p->key);
	p->key = NULL;
}

static bool closed(struct player *p)
{
	return READ_ONCE(p->conn->pipe[!p->side].closed);
}

/* Receive a message into p->buf. Return: its type, or 0 if the peer has closed the connection. */
static u16 player_recv(struct player *p)
{
	struct kulp_hdr *hdr = (struct kulp_hdr *)p->buf;
	size_t have = 0, want = sizeof(*hdr);
	unsigned long end = jiffies + 10 * HZ;

	while (have < want && time_before(jiffies, end)) {
		bool was_closed = closed(p);
		size_t n = cm_read(p->conn, p->side, p->buf + have, want - have);

		have += n;
		if (have == sizeof(*hdr))
			want = le32_to_cpu(hdr->len);
		if (!n && was_closed)
			return 0;
		if (!n)
			usleep_range(100, 200);
	}
	KUNIT_EXPECT_EQ(p->test, have, want);
	return le16_to_cpu(hdr->type);
}

static void player_seal(struct player *p, u16 type, u8 *buf, size_t len)
{
	char label[32];

	snprintf(label, sizeof(label), "kofi_cm %s %u", p->side ? "passive" : "active", type);
	KUNIT_EXPECT_EQ(p->test, kulp_auth_sign(p->key, label, p->auth, buf, len), 0);
}

/* Build a valid message of a type in @buf. Return: its length. */
static size_t player_build(struct player *p, u16 type, u8 *buf)
{
	static const u8 addrs[3 * 32] = { [0] = 11, [64] = 13 };
	struct kcm_hello_msg hello = {
		.service = "test", .name = "player", .instance = "disk", .keep_alive = 60000,
		.addr_format = 7, .addr_len = 32, .addr_count = 3, .version_min = 2, .version = 4,
	};
	struct kcm_accept_msg accept = {
		.session = 5, .keep_alive = 60000, .addr_format = 7, .addr_len = 32,
		.addr_count = 2, .version = 4,
	};
	struct kcm_reject_msg reject = { .status = KULP_STS_BUSY };
	struct kcm_note_msg note = { .number = ++p->number };
	struct kcm_bye_msg bye = { .number = p->number, .reason = KCM_BYE_DONE };
	struct kulp_challenge_msg challenge = { .auth = true };
	struct kulp_proof_msg proof = {};
	size_t len;

	switch (type) {
	case KCM_HELLO:
		len = kulp_build(&kcm_proto, type, buf, &hello, addrs, sizeof(addrs));
		break;
	case KCM_CHALLENGE:
		len = kulp_build(&kcm_proto, type, buf, &challenge, NULL, 0);
		break;
	case KCM_AUTH:
		len = kulp_build(&kcm_proto, type, buf, &proof, NULL, 0);
		break;
	case KCM_ACCEPT:
		len = kulp_build(&kcm_proto, type, buf, &accept, addrs, 64);
		break;
	case KCM_READY:
		len = kulp_build(&kcm_proto, type, buf, &proof, NULL, 0);
		break;
	case KCM_REJECT:
		len = kulp_build(&kcm_proto, type, buf, &reject, NULL, 0);
		break;
	case KCM_BYE:
		len = kulp_build(&kcm_proto, type, buf, &bye, NULL, 0);
		break;
	default:
		len = kulp_build(&kcm_proto, type, buf, &note, NULL, 0);
	}
	if (type != KCM_NOTE && type != KCM_BYE && type != KCM_PING && type != KCM_PONG)
		p->number--;
	if (type > KCM_AUTH)
		player_seal(p, type, buf, len);
	return len;
}

static void player_send(struct player *p, u16 type)
{
	u8 *buf = p->buf;
	size_t len = player_build(p, type, buf);

	cm_write(p->conn, p->side, buf, len);
}

/* --- as the active side --- */

static void say_hello(struct player *p)
{
	p->shake.len = player_build(p, KCM_HELLO, p->hello);
	cm_write(p->conn, 0, p->hello, p->shake.len);
}

static void say_auth(struct player *p, struct kulp_key *key)
{
	struct kulp_proof proof;

	KUNIT_ASSERT_EQ(p->test, player_recv(p), KCM_CHALLENGE);
	KUNIT_EXPECT_EQ(p->test,
			kulp_challenge_check(&p->shake, p->buf, sizeof(struct kulp_challenge),
					     cm_active->key), 0);
	KUNIT_EXPECT_EQ(p->test, kulp_proof_make(&p->shake, key, &proof, p->auth), 0);
	p->key = kulp_key_derive(key, "kofi_cm session", p->auth, KULP_MAC);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(p->test, p->key);
	cm_write(p->conn, 0, &proof, sizeof(proof));
}

/* Bring a session of the passive side to a state. */
static struct player *reach(struct kunit *test, enum kcm_state state)
{
	struct kcm_session *s;
	struct player *p = player_new(test, cm_accepted(test, &s), 0);

	if (state == KCM_HALF_OPEN)
		return p;
	say_hello(p);
	if (state == KCM_CHALLENGED) {
		KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(s->state) == KCM_CHALLENGED));
		return p;
	}
	cm_passive->answers = state != KCM_ASKED;
	say_auth(p, cm_active->key);
	if (state == KCM_ASKED) {
		KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(s->state) == KCM_ASKED));
		return p;
	}
	KUNIT_EXPECT_EQ(test, player_recv(p), KCM_ACCEPT);
	if (state == KCM_LIVE) {
		player_send(p, KCM_READY);
		KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(s->state) == KCM_LIVE));
	}
	return p;
}

static const enum kcm_state passive_states[] = {
	KCM_HALF_OPEN, KCM_CHALLENGED, KCM_ASKED, KCM_ACCEPTED, KCM_LIVE,
};

static bool may_come(enum kcm_state state, u16 type)
{
	switch (type) {
	case KCM_HELLO:
		return state == KCM_HALF_OPEN;
	case KCM_AUTH:
		return state == KCM_CHALLENGED;
	case KCM_READY:
		return state == KCM_ACCEPTED;
	case KCM_NOTE:
	case KCM_BYE:
	case KCM_PING:
	case KCM_PONG:
		return state == KCM_LIVE;
	}
	return false;
}

/* Each message in each state of the passive side: those that may not come end the session. */
static void hostile_passive_matrix(struct kunit *test)
{
	unsigned int i, stops, requests = 0;
	struct player *p;
	u16 type;

	cm_listen(test);
	for (i = 0; i < ARRAY_SIZE(passive_states); i++) {
		for (type = 0; type <= KCM_TYPES; type++) {
			/* A valid AUTH isn't built without a challenge; others test it. */
			if (type == KCM_AUTH || type == KCM_BYE)
				continue;
			stops = READ_ONCE(cm_passive->stops);
			p = reach(test, passive_states[i]);
			requests += passive_states[i] >= KCM_ASKED;
			/* The ULP is asked just after the state has changed. */
			KUNIT_EXPECT_TRUE(test,
					  cm_soon(READ_ONCE(cm_passive->requests) == requests));
			if (type && type < KCM_TYPES) {
				player_send(p, type);
			} else {
				struct kulp_hdr hdr = {
					.magic = cpu_to_le32(KCM_MAGIC), .version = cpu_to_le16(1),
					.type = cpu_to_le16(type), .len = cpu_to_le32(16),
				};

				cm_write(p->conn, 0, &hdr, sizeof(hdr));
			}
			if (may_come(passive_states[i], type)) {
				msleep(20);
				KUNIT_EXPECT_FALSE_MSG(test, closed(p), "message %u in state %s",
						       type, kcm_state_names[passive_states[i]]);
			} else {
				KUNIT_EXPECT_TRUE_MSG(test, cm_soon(closed(p)),
						      "message %u in state %s", type,
						      kcm_state_names[passive_states[i]]);
			}
			player_free(p);
			/* The ULP hears of the end of each session that it knows. */
			if (passive_states[i] >= KCM_ASKED)
				KUNIT_EXPECT_TRUE(test,
						  cm_soon(READ_ONCE(cm_passive->stops) > stops));
		}
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(cm_passive->stops), requests);
}

/* A wrong secret after the right challenge. */
static void hostile_auth(struct kunit *test)
{
	struct kulp_key *other = kulp_key_new(CM_OTHER);
	struct player *p;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, other);
	cm_listen(test);
	p = reach(test, KCM_CHALLENGED);
	say_auth(p, other);
	KUNIT_EXPECT_EQ(test, player_recv(p), KCM_REJECT);
	KUNIT_EXPECT_NULL(test, memchr_inv(p->buf + sizeof(struct kulp_hdr), 0, KULP_MAC));
	KUNIT_EXPECT_EQ(test, player_recv(p), 0);
	player_free(p);
	KUNIT_EXPECT_EQ(test, cm_passive->requests, 0U);
	kulp_key_put(other);
}

/* Return: the log line about a client that is challenged, and then leaves or is left. */
static const char *unproven(struct kunit *test, enum kcm_want want)
{
	struct player *p = reach(test, KCM_CHALLENGED);

	*cm_logged = '\0';
	if (want != KCM_WANTS) {
		kcm_want(p->conn->session[1], want);
		KUNIT_EXPECT_TRUE(test, cm_soon(closed(p)));
	}
	player_free(p);
	KUNIT_EXPECT_TRUE(test, cm_soon(cm_all_gone()));
	return cm_logged;
}

/* The log blames a client's secret only if that may be the reason. */
static void hostile_unproven(struct kunit *test)
{
	cm_listen(test);
	KUNIT_EXPECT_NOT_NULL(test, strstr(unproven(test, KCM_WANTS), "its secret may differ"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(unproven(test, KCM_WANT_EVICTED), "made room"));
	KUNIT_EXPECT_STREQ(test, unproven(test, KCM_WANT_CLOSE), "");
	cm_passive->known = false;
	KUNIT_EXPECT_NOT_NULL(test, strstr(unproven(test, KCM_WANTS), "it is unknown"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(unproven(test, KCM_WANT_EVICTED), "made room"));
}

/* Each bit of a sealed message matters. */
static void hostile_bits(struct kunit *test)
{
	size_t len = sizeof(struct kcm_wire_note) + 3, bit;
	struct kcm_note_msg note = { .number = 1 };
	u8 *buf = kunit_kzalloc(test, 256, GFP_KERNEL);
	struct player *p;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	cm_listen(test);
	/* Length, MAC, number and data; a bit of each byte. */
	for (bit = 0; bit < len * 8; bit += 8 + 1) {
		if (bit / 8 == offsetof(struct kulp_hdr, len) ||
		    bit / 8 == offsetof(struct kulp_hdr, len) + 1)
			continue;	/* The rest of a longer message may still come. */
		p = reach(test, KCM_LIVE);
		kulp_build(&kcm_proto, KCM_NOTE, buf, &note, "abc", 3);
		player_seal(p, KCM_NOTE, buf, len);
		buf[bit / 8] ^= 1 << bit % 8;
		cm_write(p->conn, 0, buf, len);
		KUNIT_EXPECT_TRUE_MSG(test, cm_soon(closed(p)), "bit %zu", bit);
		player_free(p);
	}
	KUNIT_EXPECT_EQ(test, cm_passive->notes, 0U);
}

/* A message that is repeated, left out, or another session's. */
static void hostile_numbers(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 256, GFP_KERNEL);
	struct player *p, *q;
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	cm_listen(test);
	p = reach(test, KCM_LIVE);
	len = player_build(p, KCM_NOTE, buf);
	cm_write(p->conn, 0, buf, len);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->notes) == 1));
	cm_write(p->conn, 0, buf, len);
	KUNIT_EXPECT_TRUE(test, cm_soon(closed(p)));
	player_free(p);

	p = reach(test, KCM_LIVE);
	p->number++;
	player_send(p, KCM_NOTE);
	KUNIT_EXPECT_TRUE(test, cm_soon(closed(p)));
	player_free(p);

	p = reach(test, KCM_LIVE);
	len = player_build(p, KCM_NOTE, buf);
	q = reach(test, KCM_LIVE);
	cm_write(q->conn, 0, buf, len);
	KUNIT_EXPECT_TRUE(test, cm_soon(closed(q)));
	player_free(q);
	player_free(p);
	KUNIT_EXPECT_EQ(test, cm_passive->notes, 1U);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_passive->stops) == 4));
}

/* A message of ours, sent back to us. */
static void hostile_reflection(struct kunit *test)
{
	struct player *p;

	cm_listen(test);
	p = reach(test, KCM_LIVE);
	KUNIT_EXPECT_EQ(test, kcm_note(cm_passive->s, "abc", 3), 0);
	KUNIT_EXPECT_EQ(test, player_recv(p), KCM_NOTE);
	cm_write(p->conn, 0, p->buf, le32_to_cpu(((struct kulp_hdr *)p->buf)->len));
	KUNIT_EXPECT_TRUE(test, cm_soon(closed(p)));
	KUNIT_EXPECT_EQ(test, cm_passive->notes, 0U);
	player_free(p);
}

/* A ping is answered. */
static void hostile_ping(struct kunit *test)
{
	struct player *p;

	cm_listen(test);
	p = reach(test, KCM_LIVE);
	player_send(p, KCM_PING);
	KUNIT_EXPECT_EQ(test, player_recv(p), KCM_PONG);
	player_free(p);
}

/* Answers that the peer doesn't take don't pile up. */
static void hostile_pings(struct kunit *test)
{
	struct player *p;
	unsigned int i;

	cm_listen(test);
	p = reach(test, KCM_LIVE);
	for (i = 0; i < 1000; i++) {
		player_send(p, KCM_PING);
		KUNIT_ASSERT_TRUE(test, cm_soon(!READ_ONCE(p->conn->pipe[0].len)));
		KUNIT_ASSERT_LE(test, READ_ONCE(cm_passive->s->npongs), 1U);
	}
	KUNIT_EXPECT_EQ(test, player_recv(p), KCM_PONG);
	KUNIT_EXPECT_FALSE(test, closed(p));
	player_free(p);
}

/* Lengths that don't fit the type are refused before any memory is taken. */
static void hostile_lengths(struct kunit *test)
{
	static const u32 lens[] = { 0, 15, 16, 247, 248 + 2049, 65536, U32_MAX };
	struct player *p;
	unsigned int i;

	cm_listen(test);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		struct kulp_hdr hdr = {
			.magic = cpu_to_le32(KCM_MAGIC), .version = cpu_to_le16(KCM_VERSION),
			.type = cpu_to_le16(KCM_HELLO), .len = cpu_to_le32(lens[i]),
		};

		p = reach(test, KCM_HALF_OPEN);
		cm_write(p->conn, 0, &hdr, sizeof(hdr));
		KUNIT_EXPECT_TRUE_MSG(test, cm_soon(closed(p)), "length %u", lens[i]);
		player_free(p);
	}
}

/* Returns when nothing is left of the session. */
static void ends_at_once(struct cm_conn *conn)
{
	static const u8 garbage[16] = { [0 ... 15] = 0xff };

	cm_write(conn, 0, garbage, sizeof(garbage));
	cm_soon(cm_all_gone());
	/* It is freed a little later. */
	msleep(20);
}

/* The port doesn't use a session any more that has its connection. */
static void hostile_ends_at_once(struct kunit *test)
{
	cm_listen(test);
	cm_adopted = ends_at_once;
	cm_accepted(test, NULL);
	KUNIT_EXPECT_TRUE(test, cm_all_gone());
}

/* A session that its ULP ends may be freed as soon as its work item knows. */
static void hostile_bye_hasty(struct kunit *test)
{
	struct player *p;

	cm_listen(test);
	p = reach(test, KCM_LIVE);
	cm_hasty = current;
	kcm_bye(cm_passive->s, KCM_BYE_STOPPED, true, NULL, 0);
	KUNIT_EXPECT_NULL(test, cm_hasty);
	KUNIT_EXPECT_TRUE(test, cm_soon(cm_all_gone()));
	KUNIT_EXPECT_EQ(test, cm_passive->stops, 1U);
	player_free(p);
}

/* A thousand silent connections of three addresses don't keep an honest client out. */
static void hostile_half_open(struct kunit *test)
{
	struct cm_conn **conns = kunit_kcalloc(test, 1000, sizeof(*conns), GFP_KERNEL);
	unsigned int i, open = 0;
	struct kcm_session *s;

	KUNIT_ASSERT_NOT_NULL(test, conns);
	cm_listen(test);
	for (i = 0; i < 1000; i++) {
		conns[i] = cm_accepted(test, NULL);
		if (i == 500)
			s = cm_connect(test);
	}
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->lives) == 1));
	for (i = 0; i < 1000; i++)
		if (cm_soon(READ_ONCE(conns[i]->pipe[1].closed) || i >= 1000 - KCM_HALF_OPEN_MAX))
			open += !READ_ONCE(conns[i]->pipe[1].closed);
	KUNIT_EXPECT_LE(test, open, (unsigned int)KCM_HALF_OPEN_MAX);
	KUNIT_EXPECT_EQ(test, cm_active->faileds, 0U);
	kcm_disconnect(s);
	for (i = 0; i < 1000; i++)
		cm_conn_close(conns[i], 0);
}

/* --- as the passive side --- */

/* An active session whose HELLO has come. */
static struct player *called(struct kunit *test, struct kcm_session **s)
{
	struct player *p;

	cm_play_passive();
	*s = cm_connect(test);
	p = player_new(test, cm_taken(test), 1);
	KUNIT_EXPECT_EQ(test, player_recv(p), KCM_HELLO);
	p->shake.len = le32_to_cpu(((struct kulp_hdr *)p->buf)->len);
	memcpy(p->hello, p->buf, p->shake.len);
	return p;
}

static void challenge(struct player *p)
{
	struct kulp_key *keys[KULP_SECRETS] = { cm_passive->key };
	struct kulp_proof_msg msg;

	KUNIT_EXPECT_EQ(p->test, kulp_challenge_make(&p->shake, keys, 1), 0);
	cm_write(p->conn, 1, &p->shake.challenge, sizeof(p->shake.challenge));
	KUNIT_ASSERT_EQ(p->test, player_recv(p), KCM_AUTH);
	KUNIT_EXPECT_EQ(p->test, kulp_parse(&kcm_proto, KCM_AUTH, p->buf,
					    sizeof(struct kulp_proof), &msg), 0);
	KUNIT_EXPECT_EQ(p->test, kulp_proof_check(&p->shake, keys, 1, msg.mac), 0);
	memcpy(p->auth, msg.mac, KULP_MAC);
	p->key = kulp_key_derive(keys[0], "kofi_cm session", p->auth, KULP_MAC);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(p->test, p->key);
}

/* A refusal by somebody who doesn't know the secret ends one attempt and no more. */
static void hostile_reject_unproven(struct kunit *test)
{
	struct kcm_session *s;
	struct player *p;

	p = called(test, &s);
	player_send(p, KCM_REJECT);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) == 1));
	KUNIT_EXPECT_FALSE(test, cm_active->end.final);
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -EBUSY);
	player_free(p);

	/* After AUTH, but without a MAC. */
	p->conn = cm_taken(test);
	KUNIT_EXPECT_EQ(test, player_recv(p), KCM_HELLO);
	memcpy(p->hello, p->buf, p->shake.len);
	challenge(p);
	kulp_key_put(p->key);
	p->key = NULL;
	player_send(p, KCM_REJECT);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) == 2));
	KUNIT_EXPECT_FALSE(test, cm_active->end.final);
	player_free(p);
	kcm_disconnect(s);
	KUNIT_EXPECT_EQ(test, cm_active->stops, 0U);
}

static void hostile_reject_proven(struct kunit *test)
{
	struct kcm_session *s;
	struct player *p;

	p = called(test, &s);
	challenge(p);
	player_send(p, KCM_REJECT);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->stops) == 1));
	KUNIT_EXPECT_TRUE(test, cm_active->end.final);
	player_free(p);
	kcm_disconnect(s);
}

/* A server that doesn't know the secret gets no proof to try secrets on. */
static void hostile_server(struct kunit *test)
{
	struct kulp_key *keys[KULP_SECRETS] = { kulp_key_new(CM_OTHER) };
	struct kcm_session *s;
	struct player *p;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, keys[0]);
	p = called(test, &s);
	KUNIT_EXPECT_EQ(test, kulp_challenge_make(&p->shake, keys, 1), 0);
	cm_write(p->conn, 1, &p->shake.challenge, sizeof(p->shake.challenge));
	KUNIT_EXPECT_EQ(test, player_recv(p), 0);
	KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) == 1));
	KUNIT_EXPECT_EQ(test, cm_active->end.err, -EKEYREJECTED);
	kulp_key_put(keys[0]);
	player_free(p);
	kcm_disconnect(s);
}

/* Each message in each state of the active side. */
static void hostile_active_matrix(struct kunit *test)
{
	struct kcm_session *s;
	struct player *p;
	unsigned int i;
	u16 type;

	for (i = 0; i < 3; i++) {
		for (type = KCM_HELLO; type < KCM_TYPES; type++) {
			bool good = (i == 0 && type == KCM_REJECT) ||
				    (i == 1 && (type == KCM_ACCEPT || type == KCM_REJECT)) ||
				    (i == 2 && type >= KCM_NOTE);
			unsigned int faileds = cm_active->faileds, stops = cm_active->stops;

			p = called(test, &s);
			if (i > 0)
				challenge(p);
			if (i == 2) {
				player_send(p, KCM_ACCEPT);
				KUNIT_EXPECT_EQ(test, player_recv(p), KCM_READY);
			}
			player_send(p, type);
			if (good && (type == KCM_ACCEPT || (i == 2 && type != KCM_BYE))) {
				msleep(20);
				KUNIT_EXPECT_FALSE_MSG(test, closed(p), "message %u at step %u",
						       type, i);
			} else {
				KUNIT_EXPECT_TRUE_MSG(test, cm_soon(closed(p)),
						      "message %u at step %u", type, i);
				/* The ULP is told after the connection is closed. */
				KUNIT_EXPECT_TRUE(test, cm_soon(READ_ONCE(cm_active->faileds) -
								faileds +
								READ_ONCE(cm_active->stops) -
								stops == 1));
			}
			player_free(p);
			kcm_disconnect(s);
		}
	}
}

static struct kunit_case hostile_cases[] = {
	KUNIT_CASE(hostile_passive_matrix),
	KUNIT_CASE(hostile_auth),
	KUNIT_CASE(hostile_unproven),
	KUNIT_CASE(hostile_bits),
	KUNIT_CASE(hostile_numbers),
	KUNIT_CASE(hostile_reflection),
	KUNIT_CASE(hostile_ping),
	KUNIT_CASE_SLOW(hostile_pings),
	KUNIT_CASE(hostile_lengths),
	KUNIT_CASE(hostile_ends_at_once),
	KUNIT_CASE(hostile_bye_hasty),
	KUNIT_CASE_SLOW(hostile_half_open),
	KUNIT_CASE(hostile_reject_unproven),
	KUNIT_CASE(hostile_reject_proven),
	KUNIT_CASE(hostile_server),
	KUNIT_CASE(hostile_active_matrix),
	{}
};

static struct kunit_suite hostile_suite = {
	.name		= "kofi_cm_hostile",
	.init		= cm_scene_init,
	.exit		= cm_scene_exit,
	.test_cases	= hostile_cases,
};

kunit_test_suite(hostile_suite);
