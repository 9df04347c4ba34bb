/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs that a peer knows the secret: HMAC-SHA-256 over the messages of both sides.
 */
#ifndef KOFIBLK_AUTH_H
#define KOFIBLK_AUTH_H

#include <linux/kref.h>
#include <linux/types.h>
#include <crypto/algapi.h>
#include "wire.h"

struct crypto_shash;
struct kvec;

/* Length of a secret in bytes. As text it has two hexadecimal digits per byte. */
#define KB_SECRET_MIN	32
#define KB_SECRET_MAX	128

/*
 * Labels that MACs begin with, including the NUL. Each type of message has a label for
 * each sender, so that a MAC can't be reflected or replayed in another message.
 */
#define KB_AUTH_CHALLENGE	"kofiblk server challenge"
#define KB_AUTH_CLIENT		"kofiblk client"
#define KB_AUTH_ACCEPT		"kofiblk server accept"
#define KB_AUTH_REJECT		"kofiblk server reject"
#define KB_AUTH_RESIZE		"kofiblk server resize"
#define KB_AUTH_BYE		"kofiblk server bye"
#define KB_AUTH_CLIENT_BYE	"kofiblk client bye"

/* A key made of a secret, which isn't stored elsewhere. */
struct kb_key {
	struct kref		ref;	/* a session holds one on the key that its client knows */
	struct crypto_shash	*tfm;	/* HMAC-SHA-256 with the secret */
	u8			print[KB_MAC];	/* the same for the same secret; not a secret */
};

/**
 * kb_key_new() - make a key of a secret
 * @secret: the secret, in hexadecimal digits; not needed afterwards
 *
 * The call may load modules, so it must not be made during memory reclaim.
 * Context: Process, sleeps.
 * Return: the key, with a reference; or an error pointer: -EINVAL unless @secret
 * has KB_SECRET_MIN to KB_SECRET_MAX bytes.
 */
struct kb_key *kb_key_new(const char *secret);

/* @key: or NULL. */
static inline struct kb_key *kb_key_get(struct kb_key *key)
{
	if (key)
		kref_get(&key->ref);
	return key;
}

/**
 * kb_key_put() - drop a reference
 * @key: the key, or NULL
 * Context: Process, sleeps.
 */
void kb_key_put(struct kb_key *key);

/**
 * kb_auth_mac() - compute a MAC
 * @key: from kb_key_new()
 * @label: KB_AUTH_CHALLENGE, KB_AUTH_CLIENT, ...
 * @parts: data that the MAC covers after the label
 * @count: number of @parts
 * @mac: takes the MAC
 * Context: Process; doesn't allocate. Concurrent calls for a key are fine.
 * Return: 0 or a negative errno.
 */
int kb_auth_mac(const struct kb_key *key, const char *label,
		const struct kvec *parts, unsigned int count, u8 mac[KB_MAC]);

/**
 * kb_auth_sign() - put a MAC into a message that is sent after AUTH
 * @key: key of the session, or NULL for a MAC of 0
 * @label: label of the type of message
 * @session: MAC of AUTH
 * @msg: the message, which has its MAC after the header
 * @len: length of @msg
 * Context: Process; doesn't allocate.
 * Return: 0 or a negative errno.
 */
int kb_auth_sign(const struct kb_key *key, const char *label,
		 const u8 session[KB_MAC], void *msg, size_t len);

/**
 * kb_auth_check() - verify the MAC of a message that is sent after AUTH
 * @key: key of the session, or NULL for a MAC of 0
 * @label: label of the type of message
 * @session: MAC of AUTH
 * @msg: the message, whose MAC is set to 0
 * @len: length of @msg
 * Context: Process; doesn't allocate.
 * Return: 0, -EACCES if the MAC is wrong, or another negative errno.
 */
int kb_auth_check(const struct kb_key *key, const char *label,
		  const u8 session[KB_MAC], void *msg, size_t len);

/* Compare two MACs in constant time. */
static inline bool kb_auth_equal(const u8 a[KB_MAC], const u8 b[KB_MAC])
{
	return !crypto_memneq(a, b, KB_MAC);
}

#endif /* KOFIBLK_AUTH_H */
