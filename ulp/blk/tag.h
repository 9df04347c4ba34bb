/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tags of commands and replies: SipHash-2-4 with a key that client and server derive from their
 * secret for each session. While it is computed, the field of the tag holds a nonce.
 *
 * The server chooses the nonce of commands on a queue, and the client that of replies. PROVE
 * exchanges them over the fabric. So a sender of right tags has received a message at the endpoint
 * that it named during set-up, and can't have named one of another machine. That holds also without
 * a secret, when the keys are 0, for senders that can't listen.
 *
 * A tag covers the command or reply with the word after it, but no data.
 */
#ifndef KOFIBLK_TAG_H
#define KOFIBLK_TAG_H

#include <linux/siphash.h>
#include <asm/byteorder.h>
#include "wire.h"

struct kulp_key;

/* Keys of a session. */
struct kofiblk_keys {
	siphash_key_t	cmd;
	siphash_key_t	reply;
};

/**
 * kofiblk_keys_make() - derive the keys of a session
 * @key: key of the secret, or NULL
 * @proof: the MAC of AUTH
 * @keys: takes the keys, which are 0 without a secret
 * Context: Process; doesn't allocate.
 * Return: 0 or a negative errno.
 */
int kofiblk_keys_make(const struct kulp_key *key, const u8 proof[KULP_MAC],
		      struct kofiblk_keys *keys);

/* Return: the tag of a message of @len bytes without data. Overwrites its field @tag. */
static inline u64 kofiblk_tag(const void *buf, size_t len, __le64 *tag, u64 nonce,
			      const siphash_key_t *key)
{
	*tag = cpu_to_le64(nonce);
	return siphash(buf, len, key);
}

/**
 * kofiblk_cmd_sign() - set the tag of a command
 * @wire: the command
 * @len: length of the command without data
 * @nonce: of the queue's commands; 0 for a PROVE
 * @keys: keys of the session
 * Context: Any.
 */
static inline void kofiblk_cmd_sign(struct kofiblk_cmd *wire, size_t len, u64 nonce,
				    const struct kofiblk_keys *keys)
{
	wire->tag = cpu_to_le64(kofiblk_tag(wire, len, &wire->tag, nonce, &keys->cmd));
}

/**
 * kofiblk_cmd_signed() - check the tag of a command
 * @wire: the command, whose tag is overwritten
 * @msg: the parsed command
 * @nonce: of the queue's commands; 0 for a PROVE
 * @keys: keys of the session
 * Context: Any.
 * Return: whether the tag is right.
 */
static inline bool kofiblk_cmd_signed(struct kofiblk_cmd *wire, const struct kofiblk_cmd_msg *msg,
				      u64 nonce, const struct kofiblk_keys *keys)
{
	size_t len = sizeof(*wire);

	if (msg->flags & (KOFIBLK_CMD_SUM | KOFIBLK_CMD_IMM))
		len += sizeof(struct kofiblk_word);
	return kofiblk_tag(wire, len, &wire->tag, nonce, &keys->cmd) == msg->tag;
}

/**
 * kofiblk_reply_sign() - set the tag of a reply
 * @wire: the reply
 * @len: length of the reply without data
 * @nonce: of the queue's replies
 * @keys: keys of the session
 * Context: Any.
 */
static inline void kofiblk_reply_sign(struct kofiblk_reply *wire, size_t len, u64 nonce,
				      const struct kofiblk_keys *keys)
{
	wire->tag = cpu_to_le64(kofiblk_tag(wire, len, &wire->tag, nonce, &keys->reply));
}

/**
 * kofiblk_reply_signed() - check the tag of a reply
 * @wire: the reply, whose tag is overwritten
 * @msg: the parsed reply
 * @nonce: of the queue's replies
 * @keys: keys of the session
 * Context: Any.
 * Return: whether the tag is right.
 */
static inline bool kofiblk_reply_signed(struct kofiblk_reply *wire,
					const struct kofiblk_reply_msg *msg, u64 nonce,
					const struct kofiblk_keys *keys)
{
	size_t len = sizeof(*wire);

	if (msg->flags & KOFIBLK_REPLY_SUM)
		len += sizeof(struct kofiblk_word);
	return kofiblk_tag(wire, len, &wire->tag, nonce, &keys->reply) == msg->tag;
}

#endif /* KOFIBLK_TAG_H */
