/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs that a peer knows the secret: HMAC-SHA-256 over what both have said.
 */
#ifndef KOFIBLK_AUTH_H
#define KOFIBLK_AUTH_H

#include <linux/types.h>
#include "wire.h"

struct crypto_shash;
struct kvec;

#define KB_SECRET_MIN	8	/* bytes of a secret */
#define KB_SECRET_MAX	256

/* What a proof begins with, so that neither side's can be sent back to it. */
#define KB_AUTH_CLIENT	"kofiblk client"
#define KB_AUTH_SERVER	"kofiblk server"

/**
 * kb_auth_key() - make a key of a secret
 * @secret: the secret, a string; not needed afterwards
 *
 * It may load modules: at set-up, not while memory is being reclaimed.
 *
 * Context: Process, sleeps.
 * Return: the key, for kb_auth_free(); or an error pointer, -EINVAL for a secret
 * that is too short or too long.
 */
struct crypto_shash *kb_auth_key(const char *secret);

/**
 * kb_auth_free() - forget a key
 * @key: from kb_auth_key(), or NULL
 *
 * Context: Process, sleeps.
 */
void kb_auth_free(struct crypto_shash *key);

/**
 * kb_auth_mac() - compute a proof
 * @key: from kb_auth_key()
 * @label: KB_AUTH_CLIENT or KB_AUTH_SERVER; its NUL isn't part of it
 * @parts: the messages
 * @count: how many
 * @mac: takes the proof
 *
 * Context: Process; doesn't allocate. Any number of threads.
 * Return: 0 or a negative errno.
 */
int kb_auth_mac(struct crypto_shash *key, const char *label,
		const struct kvec *parts, unsigned int count, u8 mac[KB_MAC]);

/**
 * kb_auth_equal() - compare proofs, in a time that tells nothing
 * @a: one
 * @b: another
 *
 * Context: Any.
 * Return: whether they are the same.
 */
bool kb_auth_equal(const u8 a[KB_MAC], const u8 b[KB_MAC]);

#endif /* KOFIBLK_AUTH_H */
