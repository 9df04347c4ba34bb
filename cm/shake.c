// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parts of the handshake that are the same on both sides. */
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "cm.h"

/**
 * kcm_derive() - derive a session's keys from a secret
 * @s: the session
 * @key: key of the secret, or NULL
 * @auth: MAC of AUTH
 *
 * The secret's own key signs nothing after the proofs.
 * Return: 0 or a negative errno.
 */
int kcm_derive(struct kcm_session *s, const struct kulp_key *key, const u8 auth[KULP_MAC])
{
	struct kulp_key *derived;

	memcpy(s->auth, auth, KULP_MAC);
	if (!key)
		return 0;
	derived = kulp_key_derive(key, "kofi_cm session", auth, KULP_MAC);
	if (IS_ERR(derived))
		return PTR_ERR(derived);
	s->key = derived;
	return kulp_auth_mac(s->key, "kofi_cm tags", NULL, 0, s->sip);
}

/**
 * kcm_agree() - choose the version of the service
 * @s: the session
 * @version_min: oldest version of the peer
 * @version: newest version of the peer
 *
 * Return: 0 or -EPROTONOSUPPORT.
 */
int kcm_agree(struct kcm_session *s, u16 version_min, u16 version)
{
	const struct kcm_config *config = s->config;

	s->version = min(version, config->version);
	return s->version >= max(version_min, config->version_min) ? 0 : -EPROTONOSUPPORT;
}

/**
 * kcm_shaking_free() - free the state of a session's handshake
 * @s: the session
 */
void kcm_shaking_free(struct kcm_session *s)
{
	struct kcm_shaking *shaking = s->shaking;
	int i;

	if (!shaking)
		return;
	for (i = 0; i < KULP_SECRETS; i++)
		kulp_key_put(shaking->keys[i]);
	kfree(shaking->first);
	kfree_sensitive(shaking);
	s->shaking = NULL;
}
