// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Proofs that a peer knows the secret: see auth.h.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uio.h>
#include <crypto/hash.h>
#include "auth.h"

/* The algorithms are requested by name, so depmod can't find this dependency itself. */
MODULE_SOFTDEP("pre: crypto-hmac crypto-sha256");

#define KB_AUTH_PRINT	"kofiblk key"

static int kb_key_set(struct kb_key *key, const char *secret)
{
	size_t digits = strlen(secret), len = digits / 2;
	u8 bytes[KB_SECRET_MAX];
	int ret;

	if (digits % 2 || len < KB_SECRET_MIN || len > KB_SECRET_MAX ||
	    hex2bin(bytes, secret, len))
		return -EINVAL;
	ret = crypto_shash_setkey(key->tfm, bytes, len);
	memzero_explicit(bytes, sizeof(bytes));
	if (ret)
		return ret;
	return kb_auth_mac(key, KB_AUTH_PRINT, NULL, 0, key->print);
}

struct kb_key *kb_key_new(const char *secret)
{
	struct kb_key *key = kzalloc(sizeof(*key), GFP_KERNEL);
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
	ret = kb_key_set(key, secret);
	if (ret) {
		kb_key_put(key);
		return ERR_PTR(ret);
	}
	return key;
}
EXPORT_SYMBOL_NS_GPL(kb_key_new, KOFIBLK);

static void kb_key_free(struct kref *ref)
{
	struct kb_key *key = container_of(ref, struct kb_key, ref);

	crypto_free_shash(key->tfm);
	kfree(key);
}

void kb_key_put(struct kb_key *key)
{
	if (key)
		kref_put(&key->ref, kb_key_free);
}
EXPORT_SYMBOL_NS_GPL(kb_key_put, KOFIBLK);

int kb_auth_mac(const struct kb_key *key, const char *label,
		const struct kvec *parts, unsigned int count, u8 mac[KB_MAC])
{
	SHASH_DESC_ON_STACK(desc, key->tfm);
	unsigned int i;
	int ret;

	desc->tfm = key->tfm;
	ret = crypto_shash_init(desc) ?:
	      crypto_shash_update(desc, label, strlen(label) + 1);
	for (i = 0; i < count && !ret; i++)
		ret = crypto_shash_update(desc, parts[i].iov_base,
					  parts[i].iov_len);
	ret = ret ?: crypto_shash_final(desc, mac);
	shash_desc_zero(desc);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kb_auth_mac, KOFIBLK);

int kb_auth_sign(const struct kb_key *key, const char *label,
		 const u8 session[KB_MAC], void *msg, size_t len)
{
	const struct kvec parts[] = {
		{ (void *)session, KB_MAC },
		{ msg, len },
	};
	u8 *mac = msg + sizeof(struct kb_net_hdr);
	u8 value[KB_MAC];
	int ret;

	memset(mac, 0, KB_MAC);
	if (!key)
		return 0;
	ret = kb_auth_mac(key, label, parts, ARRAY_SIZE(parts), value);
	if (!ret)
		memcpy(mac, value, KB_MAC);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kb_auth_sign, KOFIBLK);

int kb_auth_check(const struct kb_key *key, const char *label,
		  const u8 session[KB_MAC], void *msg, size_t len)
{
	u8 *mac = msg + sizeof(struct kb_net_hdr);
	u8 said[KB_MAC];
	bool same;
	int ret;

	memcpy(said, mac, KB_MAC);
	ret = kb_auth_sign(key, label, session, msg, len);
	same = kb_auth_equal(said, mac);
	memset(mac, 0, KB_MAC);
	if (ret)
		return ret;
	return same ? 0 : -EACCES;
}
EXPORT_SYMBOL_NS_GPL(kb_auth_check, KOFIBLK);
