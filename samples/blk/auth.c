// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Proofs that a peer knows the secret, by the kernel's crypto API.
 */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/uio.h>
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include "auth.h"

/* By name, so nothing else says that they are needed. */
MODULE_SOFTDEP("pre: crypto-hmac crypto-sha256");

struct crypto_shash *kb_auth_key(const char *secret)
{
	size_t len = strlen(secret);
	struct crypto_shash *key;
	int ret;

	if (len < KB_SECRET_MIN || len > KB_SECRET_MAX)
		return ERR_PTR(-EINVAL);
	key = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(key))
		return key;
	ret = crypto_shash_setkey(key, secret, len);
	if (!ret && crypto_shash_digestsize(key) != KB_MAC)
		ret = -EINVAL;
	if (ret) {
		crypto_free_shash(key);
		return ERR_PTR(ret);
	}
	return key;
}
EXPORT_SYMBOL_NS_GPL(kb_auth_key, KOFIBLK);

void kb_auth_free(struct crypto_shash *key)
{
	if (key)
		crypto_free_shash(key);
}
EXPORT_SYMBOL_NS_GPL(kb_auth_free, KOFIBLK);

int kb_auth_mac(struct crypto_shash *key, const char *label,
		const struct kvec *parts, unsigned int count, u8 mac[KB_MAC])
{
	SHASH_DESC_ON_STACK(desc, key);
	unsigned int i;
	int ret;

	desc->tfm = key;
	ret = crypto_shash_init(desc) ?:
	      crypto_shash_update(desc, label, strlen(label));
	for (i = 0; i < count && !ret; i++)
		ret = crypto_shash_update(desc, parts[i].iov_base,
					  parts[i].iov_len);
	ret = ret ?: crypto_shash_final(desc, mac);
	shash_desc_zero(desc);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kb_auth_mac, KOFIBLK);

bool kb_auth_equal(const u8 a[KB_MAC], const u8 b[KB_MAC])
{
	return !crypto_memneq(a, b, KB_MAC);
}
EXPORT_SYMBOL_NS_GPL(kb_auth_equal, KOFIBLK);
