/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs that a peer knows the secret: HMAC-SHA-256 over the messages of both sides.
 *
 *	client				server
 *	first message  ->
 *			<-	challenge	the server's proof
 *	proof	       ->				the client's proof
 *
 * Later messages have a MAC after their header, which covers the client's proof. The server proves
 * its identity first, so that a stranger who listens at its address gets nothing to try secrets
 * on. A server has a nonce in its challenge, and a client one in its first message.
 */
#ifndef KOFI_ULP_AUTH_H
#define KOFI_ULP_AUTH_H

#include <linux/kref.h>
#include <linux/types.h>
#include <crypto/algapi.h>
#include <kofi/ulp_msg.h>

struct crypto_shash;
struct kvec;

/* Length of a secret in bytes. As text it has two hexadecimal digits per byte. */
#define KULP_SECRET_MIN	32
#define KULP_SECRET_MAX	128

/**
 * struct kulp_key - a key made of a secret, which isn't stored elsewhere
 * @ref: references
 * @tfm: HMAC-SHA-256 with the secret
 * @print: the same for the same secret; not a secret
 */
struct kulp_key {
	struct kref		ref;
	struct crypto_shash	*tfm;
	u8			print[KULP_MAC];
};

/**
 * kulp_key_new() - make a key of a secret
 * @secret: the secret, in hexadecimal digits; not needed afterwards
 *
 * The call may load modules, so it must not be made during memory reclaim.
 * Context: Process, sleeps.
 * Return: the key, with a reference; or an error pointer: -EINVAL unless @secret
 * has KULP_SECRET_MIN to KULP_SECRET_MAX bytes.
 */
struct kulp_key *kulp_key_new(const char *secret);

/**
 * kulp_key_derive() - make a key of another key
 * @key: the key
 * @label: purpose of the new key
 * @data: distinguishes the new key from others for the same purpose
 * @len: bytes of @data
 *
 * Knowing the new key doesn't help to find @key. No module is loaded.
 * Context: Process, sleeps.
 * Return: the key, with a reference; or an error pointer.
 */
struct kulp_key *kulp_key_derive(const struct kulp_key *key, const char *label, const void *data,
				 size_t len);

/**
 * kulp_key_get() - take a reference
 * @key: the key, or NULL
 * Context: Any.
 * Return: @key.
 */
static inline struct kulp_key *kulp_key_get(struct kulp_key *key)
{
	if (key)
		kref_get(&key->ref);
	return key;
}

/**
 * kulp_key_put() - drop a reference
 * @key: the key, or NULL
 * Context: Process, sleeps.
 */
void kulp_key_put(struct kulp_key *key);

/**
 * kulp_auth_mac() - compute a MAC
 * @key: from kulp_key_new()
 * @label: begins the data. Each type of message has a label for each sender, so that a MAC
 *	can't be reflected or replayed in another message
 * @parts: data that the MAC covers after the label
 * @count: number of @parts
 * @mac: takes the MAC
 * Context: Process; doesn't allocate. Concurrent calls for a key are fine.
 * Return: 0 or a negative errno.
 */
int kulp_auth_mac(const struct kulp_key *key, const char *label,
		  const struct kvec *parts, unsigned int count, u8 mac[KULP_MAC]);

/**
 * kulp_auth_sign() - put a MAC into a message
 * @key: key of the session, or NULL for a MAC of 0
 * @label: label of the type of message
 * @session: MAC that the peer proved its identity with
 * @msg: the message, which has its MAC after the header
 * @len: length of @msg
 * Context: Process; doesn't allocate.
 * Return: 0 or a negative errno.
 */
int kulp_auth_sign(const struct kulp_key *key, const char *label,
		   const u8 session[KULP_MAC], void *msg, size_t len);

/**
 * kulp_auth_check() - verify the MAC of a message
 * @key: key of the session, or NULL for a MAC of 0
 * @label: label of the type of message
 * @session: MAC that the peer proved its identity with
 * @msg: the message, whose MAC is set to 0
 * @len: length of @msg
 * Context: Process; doesn't allocate.
 * Return: 0, -EACCES if the MAC is wrong, or another negative errno.
 */
int kulp_auth_check(const struct kulp_key *key, const char *label,
		    const u8 session[KULP_MAC], void *msg, size_t len);

/**
 * kulp_auth_equal() - compare two MACs in constant time
 * @a: a MAC
 * @b: another MAC
 * Context: Any.
 * Return: whether they are equal.
 */
static inline bool kulp_auth_equal(const u8 a[KULP_MAC], const u8 b[KULP_MAC])
{
	return !crypto_memneq(a, b, KULP_MAC);
}

/**
 * struct kulp_shake - proofs at the beginning of a session
 * @proto: protocol of the messages
 * @challenge_type: type of a struct kulp_challenge
 * @proof_type: type of a struct kulp_proof
 * @server: label of the server's proof
 * @client: label of the client's proof
 * @first: the client's first message, as it was sent or received
 * @len: length of @first
 * @challenge: the server's answer, as it was sent or received
 */
struct kulp_shake {
	const struct kulp_proto	*proto;
	u16			challenge_type;
	u16			proof_type;
	const char		*server;
	const char		*client;
	const void		*first;
	size_t			len;
	struct kulp_challenge	challenge;
};

/**
 * kulp_challenge_make() - as a server, build the answer to the first message
 * @shake: with all members set but the challenge, which is built here
 * @keys: keys of the client's secrets
 * @nkeys: number of @keys; 0 if the client needs no secret; negative for an unknown client, who
 *	must not learn that it is unknown
 *
 * For secrets that don't exist the MAC is that of a random key, so that a stranger learns neither
 * the names of clients nor how many secrets one has, also not from the time that the answer takes.
 * Context: Process; doesn't allocate.
 * Return: 0 or a negative errno.
 */
int kulp_challenge_make(struct kulp_shake *shake, struct kulp_key *const keys[KULP_SECRETS],
			int nkeys);

/**
 * kulp_proof_check() - as a server, verify a client's proof
 * @shake: after kulp_challenge_make()
 * @keys: as for kulp_challenge_make()
 * @nkeys: as for kulp_challenge_make()
 * @mac: what the client sent
 *
 * This takes the same time for all clients that need a proof.
 * Context: Process; doesn't allocate.
 * Return: index of the key that the client knows, 0 if it needs none; -EACCES; or another errno.
 */
int kulp_proof_check(const struct kulp_shake *shake, struct kulp_key *const keys[KULP_SECRETS],
		     int nkeys, const u8 mac[KULP_MAC]);

/**
 * kulp_challenge_check() - as a client, verify the server's proof
 * @shake: with all members set but the challenge
 * @buf: the message, which is copied into @shake
 * @len: its length
 * @key: key of the secret, or NULL
 * Context: Process; doesn't allocate.
 * Return: 0; -EPROTO; -ENOKEY if the server asks for a secret and there is none; -ENODATA if it has
 * no secret for this client; -EKEYREJECTED if it doesn't know the secret; or another errno.
 */
int kulp_challenge_check(struct kulp_shake *shake, const void *buf, size_t len,
			 const struct kulp_key *key);

/**
 * kulp_proof_make() - as a client, build the proof
 * @shake: after kulp_challenge_check()
 * @key: key of the secret, or NULL
 * @proof: takes the message
 * @mac: takes the proof
 * Context: Process; doesn't allocate.
 * Return: 0 or a negative errno.
 */
int kulp_proof_make(const struct kulp_shake *shake, const struct kulp_key *key,
		    struct kulp_proof *proof, u8 mac[KULP_MAC]);

#endif /* KOFI_ULP_AUTH_H */
