// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Proofs that a peer knows the secret: see <kofi/ulp_auth.h>.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uio.h>
#include <crypto/hash.h>
#include <kofi/ulp_auth.h>
#include "auth.h"

/* The algorithms are requested by name, so depmod can't find this dependency itself. */
MODULE_SOFTDEP("pre: crypto-hmac crypto-sha256");

#define KULP_AUTH_PRINT	"kofi_ulp key"

/*
 * Random keys in place of a client's secrets that don't exist, so that all clients cost the same
 * time. They are made with the first secret: without any there is nothing to hide.
 */
static DEFINE_MUTEX(kulp_decoys_lock);
static struct kulp_key *kulp_decoys[KULP_SECRETS];	/* under kulp_decoys_lock, until the end */

static struct kulp_key *kulp_key_make(const u8 *bytes, size_t len)
{
	struct kulp_key *key = kzalloc(sizeof(*key), GFP_KERNEL);
	int ret;

	if (!key)
		return ERR_PTR(-ENOMEM);
	kref_init(&key->ref);
	key->tfm = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(key->tfm)) {
		ret = PTR_ERR(key->tfm);
		kfree(key);
		return ERR_PTR(ret);
	}
	ret = crypto_shash_setkey(key->tfm, bytes, len) ?:
	      kulp_auth_mac(key, KULP_AUTH_PRINT, NULL, 0, key->print);
	if (ret) {
		kulp_key_put(key);
		return ERR_PTR(ret);
	}
	return key;
}

static int kulp_decoys_make(void)
{
	u8 bytes[KULP_SECRET_MIN];
	struct kulp_key *key;
	int i, ret = 0;

	mutex_lock(&kulp_decoys_lock);
	for (i = 0; i < KULP_SECRETS && !ret; i++) {
		if (kulp_decoys[i])
			continue;
		get_random_bytes(bytes, sizeof(bytes));
		key = kulp_key_make(bytes, sizeof(bytes));
		if (IS_ERR(key))
			ret = PTR_ERR(key);
		else
			WRITE_ONCE(kulp_decoys[i], key);
	}
	mutex_unlock(&kulp_decoys_lock);
	memzero_explicit(bytes, sizeof(bytes));
	return ret;
}

struct kulp_key *kulp_key_new(const char *secret)
{
	size_t digits = strlen(secret), len = digits / 2;
	u8 bytes[KULP_SECRET_MAX];
	struct kulp_key *key;
	int ret;

	if (digits % 2 || len < KULP_SECRET_MIN || len > KULP_SECRET_MAX ||
	    hex2bin(bytes, secret, len))
		return ERR_PTR(-EINVAL);
	ret = kulp_decoys_make();
	key = ret ? ERR_PTR(ret) : kulp_key_make(bytes, len);
	memzero_explicit(bytes, sizeof(bytes));
	return key;
}
EXPORT_SYMBOL_NS_GPL(kulp_key_new, KOFI_ULP);

struct kulp_key *kulp_key_derive(const struct kulp_key *key, const char *label, const void *data,
				 size_t len)
{
	const struct kvec part = { (void *)data, len };
	struct kulp_key *derived;
	u8 bytes[KULP_MAC];
	int ret;

	ret = kulp_auth_mac(key, label, &part, 1, bytes);
	if (ret)
		return ERR_PTR(ret);
	derived = kulp_key_make(bytes, sizeof(bytes));
	memzero_explicit(bytes, sizeof(bytes));
	return derived;
}
EXPORT_SYMBOL_NS_GPL(kulp_key_derive, KOFI_ULP);

static void kulp_key_free(struct kref *ref)
{
	struct kulp_key *key = container_of(ref, struct kulp_key, ref);

	crypto_free_shash(key->tfm);
	kfree(key);
}

void kulp_key_put(struct kulp_key *key)
{
	if (key)
		kref_put(&key->ref, kulp_key_free);
}
EXPORT_SYMBOL_NS_GPL(kulp_key_put, KOFI_ULP);

int kulp_auth_mac(const struct kulp_key *key, const char *label,
		  const struct kvec *parts, unsigned int count, u8 mac[KULP_MAC])
{
	SHASH_DESC_ON_STACK(desc, key->tfm);
	unsigned int i;
	int ret;

	desc->tfm = key->tfm;
	ret = crypto_shash_init(desc) ?:
	      crypto_shash_update(desc, label, strlen(label) + 1);
	for (i = 0; i < count && !ret; i++)
		ret = crypto_shash_update(desc, parts[i].iov_base, parts[i].iov_len);
	ret = ret ?: crypto_shash_final(desc, mac);
	shash_desc_zero(desc);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kulp_auth_mac, KOFI_ULP);

int kulp_auth_sign(const struct kulp_key *key, const char *label,
		   const u8 session[KULP_MAC], void *msg, size_t len)
{
	const struct kvec parts[] = {
		{ (void *)session, KULP_MAC },
		{ msg, len },
	};
	u8 *mac = msg + sizeof(struct kulp_hdr);
	u8 value[KULP_MAC];
	int ret;

	memset(mac, 0, KULP_MAC);
	if (!key)
		return 0;
	ret = kulp_auth_mac(key, label, parts, ARRAY_SIZE(parts), value);
	if (!ret)
		memcpy(mac, value, KULP_MAC);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kulp_auth_sign, KOFI_ULP);

int kulp_auth_check(const struct kulp_key *key, const char *label,
		    const u8 session[KULP_MAC], void *msg, size_t len)
{
	u8 *mac = msg + sizeof(struct kulp_hdr);
	u8 said[KULP_MAC];
	bool same;
	int ret;

	memcpy(said, mac, KULP_MAC);
	ret = kulp_auth_sign(key, label, session, msg, len);
	same = kulp_auth_equal(said, mac);
	memset(mac, 0, KULP_MAC);
	if (ret)
		return ret;
	return same ? 0 : -EACCES;
}
EXPORT_SYMBOL_NS_GPL(kulp_auth_check, KOFI_ULP);

static int kulp_shake_mac(const struct kulp_shake *shake, const struct kulp_key *key,
			  const char *label, u8 mac[KULP_MAC])
{
	const struct kvec parts[] = {
		{ (void *)shake->first, shake->len },
		{ (void *)&shake->challenge, sizeof(shake->challenge) },
	};

	return kulp_auth_mac(key, label, parts, ARRAY_SIZE(parts), mac);
}

/* The MAC by the key of the @i-th secret, also if the client has fewer. */
static int kulp_shake_mac_of(const struct kulp_shake *shake,
			     struct kulp_key *const keys[KULP_SECRETS], int nkeys, int i,
			     const char *label, u8 mac[KULP_MAC])
{
	const struct kulp_key *key = i < nkeys ? keys[i] : READ_ONCE(kulp_decoys[i]);

	if (key)
		return kulp_shake_mac(shake, key, label, mac);
	get_random_bytes(mac, KULP_MAC);
	return 0;
}

int kulp_challenge_make(struct kulp_shake *shake, struct kulp_key *const keys[KULP_SECRETS],
			int nkeys)
{
	struct kulp_challenge_msg msg = { .auth = nkeys };
	int i, ret;

	/* The proofs cover the challenge without proofs. */
	get_random_bytes(msg.nonce, sizeof(msg.nonce));
	kulp_build(shake->proto, shake->challenge_type, &shake->challenge, &msg, NULL, 0);
	for (i = 0; i < KULP_SECRETS && msg.auth; i++) {
		ret = kulp_shake_mac_of(shake, keys, nkeys, i, shake->server, msg.macs[i]);
		if (ret)
			return ret;
	}
	kulp_build(shake->proto, shake->challenge_type, &shake->challenge, &msg, NULL, 0);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_challenge_make, KOFI_ULP);

int kulp_proof_check(const struct kulp_shake *shake, struct kulp_key *const keys[KULP_SECRETS],
		     int nkeys, const u8 mac[KULP_MAC])
{
	int i, ret, known = -EACCES;
	u8 right[KULP_MAC] = {};

	if (!nkeys)
		return kulp_auth_equal(right, mac) ? 0 : -EACCES;
	for (i = 0; i < KULP_SECRETS; i++) {
		ret = kulp_shake_mac_of(shake, keys, nkeys, i, shake->client, right);
		if (ret)
			return ret;
		if (kulp_auth_equal(right, mac) && i < nkeys)
			known = i;
	}
	return known;
}
EXPORT_SYMBOL_NS_GPL(kulp_proof_check, KOFI_ULP);

int kulp_challenge_check(struct kulp_shake *shake, const void *buf, size_t len,
			 const struct kulp_key *key)
{
	struct kulp_challenge *challenge = &shake->challenge;
	struct kulp_challenge_msg msg;
	u8 right[KULP_MAC];
	int i, ret;

	ret = kulp_parse(shake->proto, shake->challenge_type, buf, len, &msg);
	if (ret)
		return ret;
	memcpy(challenge, buf, sizeof(*challenge));
	if (msg.auth != !!key)
		return msg.auth ? -ENOKEY : -ENODATA;
	if (!key)
		return 0;
	memset(challenge->macs, 0, sizeof(challenge->macs));
	ret = kulp_shake_mac(shake, key, shake->server, right);
	memcpy(challenge->macs, msg.macs, sizeof(challenge->macs));
	for (i = 0; i < KULP_SECRETS && !ret; i++)
		if (kulp_auth_equal(right, msg.macs[i]))
			return 0;
	return ret ?: -EKEYREJECTED;
}
EXPORT_SYMBOL_NS_GPL(kulp_challenge_check, KOFI_ULP);

int kulp_proof_make(const struct kulp_shake *shake, const struct kulp_key *key,
		    struct kulp_proof *proof, u8 mac[KULP_MAC])
{
	struct kulp_proof_msg msg = {};
	int ret;

	ret = key ? kulp_shake_mac(shake, key, shake->client, msg.mac) : 0;
	if (ret)
		return ret;
	memcpy(mac, msg.mac, KULP_MAC);
	kulp_build(shake->proto, shake->proof_type, proof, &msg, NULL, 0);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_proof_make, KOFI_ULP);

void kulp_auth_exit(void)
{
	int i;

	for (i = 0; i < KULP_SECRETS; i++) {
		kulp_key_put(kulp_decoys[i]);
		kulp_decoys[i] = NULL;
	}
}
