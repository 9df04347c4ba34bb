// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Keys of tags: see tag.h. */
#include <linux/export.h>
#include <linux/string.h>
#include <linux/uio.h>
#include <kofi/ulp_auth.h>
#include "tag.h"

int kofiblk_keys_make(const struct kulp_key *key, const u8 proof[KULP_MAC],
		      struct kofiblk_keys *keys)
{
	const struct kvec part = { (void *)proof, KULP_MAC };
	__le64 mac[KULP_MAC / sizeof(__le64)] = {};
	int i, ret = 0;

	if (key)
		ret = kulp_auth_mac(key, KOFIBLK_AUTH_TAGS, &part, 1, (u8 *)mac);
	for (i = 0; i < 2; i++) {
		keys->cmd.key[i] = le64_to_cpu(mac[i]);
		keys->reply.key[i] = le64_to_cpu(mac[i + 2]);
	}
	memzero_explicit(mac, sizeof(mac));
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kofiblk_keys_make, KOFIBLK);
