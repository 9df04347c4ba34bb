// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_ulp's proofs that a peer knows a secret: known answers, and what must be refused.
 */
#include <linux/errno.h>
#include <linux/types.h>
#include <crypto/hash.h>

/* Count MACs. */
static unsigned int macs;

#define crypto_shash_final(desc, out)	(macs++, crypto_shash_final(desc, out))
#include "../../ulp/lib/auth.c"

#include <kunit/test.h>

#define SERVER	"test server"
#define CLIENT	"test client"

enum { CHALLENGE = 1, PROOF = 2 };

static const struct kulp_type types[] = {
	[CHALLENGE] = KULP_CHALLENGE_TYPE,
	[PROOF]	    = KULP_PROOF_TYPE,
};

static const struct kulp_proto proto = {
	.magic = 0x12345678, .version = 1, .ntypes = ARRAY_SIZE(types), .types = types,
};

/* HMAC-SHA-256 with the bytes 0 to 31 as the key. */
static const char secret[] = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
static const u8 print[KULP_MAC] = {	/* of "kofi_ulp key\0" */
	0x15, 0xf2, 0x1e, 0xd8, 0xa2, 0xa7, 0x94, 0x7d, 0xc4, 0x85, 0xfd, 0x0b, 0x72, 0x00, 0x07,
	0x95, 0xe2, 0x6f, 0xdb, 0xd4, 0x7b, 0x89, 0x2e, 0x61, 0xf4, 0x92, 0x08, 0x38, 0x85, 0xdc,
	0x15, 0x51,
};

static const u8 labelled[KULP_MAC] = {	/* of "label\0firstsecond" */
	0xc8, 0xa1, 0xac, 0xf5, 0xeb, 0x8d, 0xa1, 0x43, 0xe4, 0x3f, 0xad, 0xb5, 0x90, 0x97, 0xe5,
	0x8b, 0x35, 0x70, 0xc5, 0xad, 0x92, 0xe7, 0x13, 0x08, 0x77, 0x58, 0x88, 0xc5, 0x21, 0x25,
	0x53, 0x37,
};

/* With the bytes 0 to 127 as the key, of "kofi_ulp key\0". */
static const u8 print_max[KULP_MAC] = {
	0x0b, 0x3c, 0xdb, 0xc4, 0x27, 0x98, 0xec, 0xd0, 0xa9, 0x05, 0x1d, 0xfc, 0x61, 0xc6, 0x8f,
	0x57, 0x73, 0xd0, 0xae, 0x40, 0x40, 0xd2, 0x7a, 0xf9, 0x92, 0x36, 0x00, 0xda, 0xc0, 0x36,
	0x50, 0xf7,
};

static struct scene {
	struct kulp_key		*keys[KULP_SECRETS];
	struct kulp_shake	server;
	struct kulp_shake	client;
	u8			first[2][40];
	u8			sent[sizeof(struct kulp_challenge)];
} scene;

static void auth_exit(struct kunit *test)
{
	int i;

	for (i = 0; i < KULP_SECRETS; i++)
		if (!IS_ERR(scene.keys[i]))
			kulp_key_put(scene.keys[i]);
}

static int auth_init(struct kunit *test)
{
	const struct kulp_shake shake = {
		.proto = &proto, .challenge_type = CHALLENGE, .proof_type = PROOF,
		.server = SERVER, .client = CLIENT, .len = sizeof(scene.first[0]),
	};
	char other[sizeof(secret)];

	memset(other, 'a', sizeof(other) - 1);
	other[sizeof(other) - 1] = '\0';
	scene = (struct scene){ .server = shake, .client = shake };
	scene.server.first = scene.first[0];
	scene.client.first = scene.first[1];
	scene.keys[0] = kulp_key_new(secret);
	scene.keys[1] = kulp_key_new(other);
	if (!IS_ERR(scene.keys[0]) && !IS_ERR(scene.keys[1]))
		return 0;
	auth_exit(test);
	return -ENOMEM;
}

/* --- keys and MACs --- */

static void auth_known(struct kunit *test)
{
	const char *text = "firstsecond";
	const struct kvec parts[] = { { "first", 5 }, { "second", 6 } };
	u8 mac[KULP_MAC];
	size_t cut;

	KUNIT_EXPECT_MEMEQ(test, scene.keys[0]->print, print, KULP_MAC);
	KUNIT_EXPECT_EQ(test, kulp_auth_mac(scene.keys[0], "label", parts, 2, mac), 0);
	KUNIT_EXPECT_MEMEQ(test, mac, labelled, KULP_MAC);
	for (cut = 0; cut <= strlen(text); cut++) {
		const struct kvec halves[] = {
			{ (void *)text, cut }, { (void *)text + cut, strlen(text) - cut },
		};

		memset(mac, 0, sizeof(mac));
		KUNIT_EXPECT_EQ(test, kulp_auth_mac(scene.keys[0], "label", halves, 2, mac), 0);
		KUNIT_EXPECT_MEMEQ(test, mac, labelled, KULP_MAC);
	}
}

static int key_error(const char *text)
{
	struct kulp_key *key = kulp_key_new(text);

	if (IS_ERR(key))
		return PTR_ERR(key);
	kulp_key_put(key);
	return 0;
}

static void auth_secrets(struct kunit *test)
{
	char text[2 * KULP_SECRET_MAX + 3];
	struct kulp_key *key;
	size_t len;
	int i, ret;

	for (len = 0; len < sizeof(text); len++) {
		for (i = 0; i < len; i++)
			text[i] = hex_asc_lo(i & 1 ? i / 2 : i / 32);
		text[len] = '\0';
		ret = len % 2 || len < 2 * KULP_SECRET_MIN || len > 2 * KULP_SECRET_MAX ?
		      -EINVAL : 0;
		KUNIT_EXPECT_EQ_MSG(test, key_error(text), ret, "%zu digits", len);
	}
	/* The whole secret counts. */
	text[2 * KULP_SECRET_MAX] = '\0';
	key = kulp_key_new(text);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, key);
	KUNIT_EXPECT_MEMEQ(test, key->print, print_max, KULP_MAC);
	kulp_key_put(key);
	for (i = 0; i < 2 * KULP_SECRET_MAX; i++) {
		text[i] ^= 0x40;
		KUNIT_EXPECT_EQ_MSG(test, key_error(text), -EINVAL, "digit %d", i);
		text[i] ^= 0x40;
	}
}

static void auth_equal(struct kunit *test)
{
	u8 a[KULP_MAC], b[KULP_MAC];
	int bit;

	get_random_bytes(a, sizeof(a));
	memcpy(b, a, sizeof(b));
	KUNIT_EXPECT_TRUE(test, kulp_auth_equal(a, b));
	for (bit = 0; bit < 8 * KULP_MAC; bit++) {
		b[bit / 8] ^= BIT(bit % 8);
		KUNIT_EXPECT_FALSE_MSG(test, kulp_auth_equal(a, b), "bit %d", bit);
		b[bit / 8] ^= BIT(bit % 8);
	}
}

/* --- messages --- */

struct message {
	struct kulp_hdr	hdr;
	u8		mac[KULP_MAC];
	u8		body[24];
};

static struct message signed_by(struct kunit *test, const struct kulp_key *key, const char *label,
				const u8 *session)
{
	struct message msg = { .hdr.magic = cpu_to_le32(proto.magic), .body = "body" };

	KUNIT_EXPECT_EQ(test, kulp_auth_sign(key, label, session, &msg, sizeof(msg)), 0);
	return msg;
}

/* A check overwrites the MAC, so it gets a copy. */
static int checked(const struct kulp_key *key, const char *label, const u8 *session,
		   struct message msg, size_t len)
{
	int ret = kulp_auth_check(key, label, session, &msg, len);

	return memchr_inv(msg.mac, 0, KULP_MAC) ? -EUCLEAN : ret;
}

/* Each byte of a message counts, wherever it is, and so do its length and each byte of the MAC. */
static void auth_message(struct kunit *test)
{
	struct message msg = signed_by(test, scene.keys[0], SERVER, print);
	u8 *bytes = (u8 *)&msg;
	size_t i;

	KUNIT_EXPECT_TRUE(test, memchr_inv(msg.mac, 0, KULP_MAC));
	KUNIT_EXPECT_EQ(test, checked(scene.keys[0], SERVER, print, msg, sizeof(msg)), 0);
	for (i = 0; i < sizeof(msg); i++) {
		bytes[i] ^= 1;
		KUNIT_EXPECT_EQ_MSG(test,
				    checked(scene.keys[0], SERVER, print, msg, sizeof(msg)),
				    -EACCES, "byte %zu", i);
		bytes[i] ^= 1;
	}
	for (i = offsetof(struct message, body); i < sizeof(msg); i++)
		KUNIT_EXPECT_EQ_MSG(test, checked(scene.keys[0], SERVER, print, msg, i), -EACCES,
				    "%zu bytes", i);
}

/* A MAC is for one key, one label and one session. */
static void auth_meant_for(struct kunit *test)
{
	struct message msg = signed_by(test, scene.keys[0], SERVER, print);
	static const char *const labels[] = { CLIENT, "", "test serve", "test server " };
	u8 session[KULP_MAC];
	int i;

	for (i = 0; i < ARRAY_SIZE(labels); i++)
		KUNIT_EXPECT_EQ(test, checked(scene.keys[0], labels[i], print, msg, sizeof(msg)),
				-EACCES);
	KUNIT_EXPECT_EQ(test, checked(scene.keys[1], SERVER, print, msg, sizeof(msg)), -EACCES);
	KUNIT_EXPECT_EQ(test, checked(NULL, SERVER, print, msg, sizeof(msg)), -EACCES);
	memcpy(session, print, sizeof(session));
	for (i = 0; i < KULP_MAC; i++) {
		session[i] ^= 0x80;
		KUNIT_EXPECT_EQ_MSG(test,
				    checked(scene.keys[0], SERVER, session, msg, sizeof(msg)),
				    -EACCES, "byte %d", i);
		session[i] ^= 0x80;
	}
}

/* Without a key the MAC is 0, and nothing else is accepted. */
static void auth_no_key(struct kunit *test)
{
	struct message msg = signed_by(test, NULL, SERVER, print);
	int i;

	KUNIT_EXPECT_EQ(test, checked(NULL, SERVER, print, msg, sizeof(msg)), 0);
	KUNIT_EXPECT_EQ(test, checked(scene.keys[0], SERVER, print, msg, sizeof(msg)), -EACCES);
	for (i = 0; i < KULP_MAC; i++) {
		msg.mac[i] = 1;
		KUNIT_EXPECT_EQ_MSG(test, checked(NULL, SERVER, print, msg, sizeof(msg)), -EACCES,
				    "byte %d", i);
		msg.mac[i] = 0;
	}
}

/* --- proofs --- */

/* The server answers with @nkeys keys, the client checks with a key. Return: the client's result */
static int challenge(struct kunit *test, int nkeys, const struct kulp_key *key)
{
	KUNIT_EXPECT_EQ(test, kulp_challenge_make(&scene.server, scene.keys, nkeys), 0);
	memcpy(scene.sent, &scene.server.challenge, sizeof(scene.sent));
	return kulp_challenge_check(&scene.client, scene.sent, sizeof(scene.sent), key);
}

/* The client's proof, as it was sent. */
static const u8 *proof(struct kunit *test, const struct kulp_key *key)
{
	static struct kulp_proof_msg msg;
	struct kulp_proof proof;
	u8 mac[KULP_MAC];

	KUNIT_EXPECT_EQ(test, kulp_proof_make(&scene.client, key, &proof, mac), 0);
	KUNIT_EXPECT_EQ(test, kulp_parse(&proto, PROOF, &proof, sizeof(proof), &msg), 0);
	KUNIT_EXPECT_MEMEQ(test, msg.mac, mac, KULP_MAC);
	return msg.mac;
}

static int proven(int nkeys, const u8 *mac)
{
	return kulp_proof_check(&scene.server, scene.keys, nkeys, mac);
}

static void auth_shake(struct kunit *test)
{
	int nkeys, i;

	for (nkeys = 1; nkeys <= KULP_SECRETS; nkeys++)
		for (i = 0; i < KULP_SECRETS; i++) {
			KUNIT_EXPECT_EQ(test, challenge(test, nkeys, scene.keys[i]),
					i < nkeys ? 0 : -EKEYREJECTED);
			KUNIT_EXPECT_EQ(test, proven(nkeys, proof(test, scene.keys[i])),
					i < nkeys ? i : -EACCES);
		}
	KUNIT_EXPECT_EQ(test, challenge(test, 1, NULL), -ENOKEY);
	KUNIT_EXPECT_EQ(test, challenge(test, 0, scene.keys[0]), -ENODATA);
	/* Nobody has a secret. */
	KUNIT_EXPECT_EQ(test, challenge(test, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, proven(0, proof(test, NULL)), 0);
	KUNIT_EXPECT_EQ(test, proven(0, proof(test, scene.keys[0])), -EACCES);
	KUNIT_EXPECT_EQ(test, proven(1, proof(test, NULL)), -EACCES);
}

/* An unknown client gets a challenge like a client with secrets, which no proof answers. */
static void auth_unknown_client(struct kunit *test)
{
	struct kulp_challenge_msg msg[2];
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, challenge(test, -1, scene.keys[0]), -EKEYREJECTED);
		KUNIT_EXPECT_EQ(test, kulp_parse(&proto, CHALLENGE, scene.sent, sizeof(scene.sent),
						 &msg[i]), 0);
		KUNIT_EXPECT_TRUE(test, msg[i].auth);
		KUNIT_EXPECT_EQ(test, proven(-1, proof(test, scene.keys[0])), -EACCES);
		KUNIT_EXPECT_EQ(test, proven(-1, proof(test, NULL)), -EACCES);
	}
	for (i = 0; i < KULP_SECRETS; i++)
		KUNIT_EXPECT_MEMNEQ(test, msg[0].macs[i], msg[1].macs[i], KULP_MAC);
	KUNIT_EXPECT_MEMNEQ(test, msg[0].macs[0], msg[0].macs[1], KULP_MAC);
	KUNIT_EXPECT_MEMNEQ(test, msg[0].nonce, msg[1].nonce, KULP_NONCE);
	/* So is a secret that doesn't exist. */
	for (i = 0; i < 2; i++) {
		challenge(test, 1, scene.keys[0]);
		kulp_parse(&proto, CHALLENGE, scene.sent, sizeof(scene.sent), &msg[i]);
		KUNIT_EXPECT_TRUE(test, memchr_inv(msg[i].macs[1], 0, KULP_MAC));
	}
	KUNIT_EXPECT_MEMNEQ(test, msg[0].macs[1], msg[1].macs[1], KULP_MAC);
}

/* An unknown client costs as many MACs as one with secrets, also for a wrong proof. */
static void auth_same_cost(struct kunit *test)
{
	static const int numbers[] = { -1, 1, KULP_SECRETS };
	u8 wrong[KULP_MAC] = { 1 };
	int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		macs = 0;
		KUNIT_EXPECT_EQ(test, kulp_challenge_make(&scene.server, scene.keys, numbers[i]),
				0);
		KUNIT_EXPECT_EQ_MSG(test, macs, KULP_SECRETS, "%d keys", numbers[i]);
		macs = 0;
		KUNIT_EXPECT_EQ(test, proven(numbers[i], wrong), -EACCES);
		KUNIT_EXPECT_EQ_MSG(test, macs, KULP_SECRETS, "%d keys", numbers[i]);
	}
	/* A proof by a random key in place of a secret isn't one. */
	KUNIT_EXPECT_EQ(test, kulp_shake_mac(&scene.server, kulp_decoys[1], CLIENT, wrong), 0);
	KUNIT_EXPECT_EQ(test, proven(1, wrong), -EACCES);
	KUNIT_EXPECT_EQ(test, proven(-1, wrong), -EACCES);
}

static int check_sent(size_t len)
{
	return kulp_challenge_check(&scene.client, scene.sent, len, scene.keys[0]);
}

/* The server's proof covers all of its challenge and the client's first message. */
static void auth_challenge_bytes(struct kunit *test)
{
	const size_t used = offsetof(struct kulp_challenge, macs[1]);
	size_t i;

	KUNIT_EXPECT_EQ(test, challenge(test, 1, scene.keys[0]), 0);
	for (i = 0; i < sizeof(scene.sent); i++) {
		if (i >= used && i < offsetof(struct kulp_challenge, auth))
			continue;
		scene.sent[i] ^= 1;
		KUNIT_EXPECT_NE_MSG(test, check_sent(sizeof(scene.sent)), 0, "byte %zu", i);
		scene.sent[i] ^= 1;
	}
	for (i = 0; i < sizeof(scene.first[1]); i++) {
		scene.first[1][i] = 1;
		KUNIT_EXPECT_EQ_MSG(test, check_sent(sizeof(scene.sent)), -EKEYREJECTED,
				    "first message, byte %zu", i);
		scene.first[1][i] = 0;
	}
	KUNIT_EXPECT_EQ(test, check_sent(sizeof(scene.sent) - 1), -EPROTO);
	KUNIT_EXPECT_EQ(test, check_sent(sizeof(scene.sent)), 0);
}

/* A proof counts once and in one direction, and each of its bytes counts. */
static void auth_proof_bytes(struct kunit *test)
{
	struct kulp_challenge_msg msg;
	u8 mac[KULP_MAC];
	int i;

	KUNIT_EXPECT_EQ(test, challenge(test, 1, scene.keys[0]), 0);
	KUNIT_EXPECT_EQ(test, kulp_parse(&proto, CHALLENGE, scene.sent, sizeof(scene.sent), &msg),
			0);
	KUNIT_EXPECT_EQ(test, proven(1, msg.macs[0]), -EACCES);
	memcpy(mac, proof(test, scene.keys[0]), sizeof(mac));
	for (i = 0; i < KULP_MAC; i++) {
		mac[i] ^= 1;
		KUNIT_EXPECT_EQ_MSG(test, proven(1, mac), -EACCES, "byte %d", i);
		mac[i] ^= 1;
	}
	KUNIT_EXPECT_EQ(test, proven(1, mac), 0);
	for (i = 0; i < sizeof(scene.first[0]); i++) {
		scene.first[0][i] = 1;
		KUNIT_EXPECT_EQ_MSG(test, proven(1, mac), -EACCES, "first message, byte %d", i);
		scene.first[0][i] = 0;
	}
	/* The next challenge has another nonce. */
	KUNIT_EXPECT_EQ(test, challenge(test, 1, scene.keys[0]), 0);
	KUNIT_EXPECT_EQ(test, proven(1, mac), -EACCES);
}

static void auth_suite_exit(struct kunit_suite *suite)
{
	kulp_auth_exit();
}

static struct kunit_case cases[] = {
	KUNIT_CASE(auth_known),
	KUNIT_CASE(auth_secrets),
	KUNIT_CASE(auth_equal),
	KUNIT_CASE(auth_message),
	KUNIT_CASE(auth_meant_for),
	KUNIT_CASE(auth_no_key),
	KUNIT_CASE(auth_shake),
	KUNIT_CASE(auth_unknown_client),
	KUNIT_CASE(auth_same_cost),
	KUNIT_CASE(auth_challenge_bytes),
	KUNIT_CASE(auth_proof_bytes),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_ulp_auth",
	.suite_exit	= auth_suite_exit,
	.init		= auth_init,
	.exit		= auth_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofi_ulp's proofs of a secret");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_ULP);
