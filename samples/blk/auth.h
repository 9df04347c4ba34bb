/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs that a peer knows the secret: HMAC-SHA-256 over what both have said.
 */
#ifndef KOFIBLK_AUTH_H
#define KOFIBLK_AUTH_H

#include <linux/kref.h>
#include <linux/types.h>
#include "wire.h"

struct crypto_shash;
struct kvec;

/* Bytes of a secret, which is written as twice as many hexadecimal digits. */
#define KB_SECRET_MIN	32
#define KB_SECRET_MAX	128

/*
 * What a MAC begins with, its NUL included. Each type of message has a label for each
 * sender, so that no MAC can be sent back or in another message.
 */
#define KB_AUTH_CHALLENGE	"kofiblk server challenge"
#define KB_AUTH_CLIENT		"kofiblk client"
#define KB_AUTH_ACCEPT		"kofiblk server accept"
#define KB_AUTH_REJECT		"kofiblk server reject"
#define KB_AUTH_RESIZE		"kofiblk server resize"
#define KB_AUTH_BYE		"kofiblk server bye"
#define KB_AUTH_CLIENT_BYE	"kofiblk client bye"

/**
 * struct kb_key - a secret, made ready for proofs
 * @ref: references; a session keeps the key that its client proved to know
 * @tfm: HMAC-SHA-256 with the secret, which isn't kept otherwise
 * @print: tells whether two keys are of the same secret
 */
struct kb_key {
	struct kref		ref;
	struct crypto_shash	*tfm;
	u8			print[KB_MAC];
};

/**
 * kb_key_new() - make a key of a secret
 * @secret: the secret, in hexadecimal digits; not needed afterwards
 *
 * It may load modules: at set-up, not while memory is being reclaimed.
 *
 * Context: Process, sleeps.
 * Return: the key, with a reference; or an error pointer, -EINVAL for what is no
 * secret of KB_SECRET_MIN to KB_SECRET_MAX bytes.
 */
struct kb_key *kb_key_new(const char *secret);

/**
 * kb_key_get() - take a reference
 * @key: a key that the caller may use, or NULL
 *
 * Context: Any.
 * Return: @key.
 */
struct kb_key *kb_key_get(struct kb_key *key);

/**
 * kb_key_put() - give a reference back
 * @key: the key, or NULL
 *
 * Context: Process, sleeps.
 */
void kb_key_put(struct kb_key *key);

/**
 * kb_key_same() - are two keys of one secret?
 * @a: a key, or NULL
 * @b: likewise
 *
 * Context: Any.
 * Return: whether they are; two NULLs are.
 */
bool kb_key_same(const struct kb_key *a, const struct kb_key *b);

/* A key's name, for whatever its peers are to have alone. It doesn't tell the secret. */
#define KB_KEY_NAME	33

/**
 * kb_key_name() - name a key
 * @key: the key
 * @name: takes the name, the same for each key of one secret
 *
 * Context: Any.
 */
void kb_key_name(const struct kb_key *key, char name[KB_KEY_NAME]);

/**
 * kb_auth_mac() - compute a MAC
 * @key: from kb_key_new()
 * @label: KB_AUTH_CHALLENGE, KB_AUTH_CLIENT, ...
 * @parts: what it is of
 * @count: how many
 * @mac: takes it
 *
 * Context: Process; doesn't allocate. Any number of threads.
 * Return: 0 or a negative errno.
 */
int kb_auth_mac(const struct kb_key *key, const char *label,
		const struct kvec *parts, unsigned int count, u8 mac[KB_MAC]);

/**
 * kb_auth_sign() - put a MAC into a message that follows AUTH
 * @key: the session's, or NULL: the MAC is 0
 * @label: of this type of message
 * @session: AUTH's MAC
 * @msg: the message, with its MAC behind the header
 * @len: its length
 *
 * Context: Process; doesn't allocate.
 * Return: 0 or a negative errno.
 */
int kb_auth_sign(const struct kb_key *key, const char *label,
		 const u8 session[KB_MAC], void *msg, size_t len);

/**
 * kb_auth_check() - is a message that follows AUTH the peer's?
 * @key: as in kb_auth_sign()
 * @label: likewise
 * @session: likewise
 * @msg: the message, whose MAC is 0 afterwards
 * @len: its length
 *
 * Context: Process; doesn't allocate.
 * Return: 0, -EACCES if it isn't, or another negative errno.
 */
int kb_auth_check(const struct kb_key *key, const char *label,
		  const u8 session[KB_MAC], void *msg, size_t len);

/**
 * kb_auth_equal() - compare MACs, in a time that doesn't depend on them
 * @a: one
 * @b: another
 *
 * Context: Any.
 * Return: whether they are the same.
 */
bool kb_auth_equal(const u8 a[KB_MAC], const u8 b[KB_MAC]);

#endif /* KOFIBLK_AUTH_H */
