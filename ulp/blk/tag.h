/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tags of commands and replies: SipHash-2-4 with a key that client and server derive from that of
 * their session of kofi_cm. While it is computed, the field of the tag holds a nonce.
 *
 * The server chooses the nonce of commands on a queue, and the client that of replies. PROVE
 * exchanges them over the fabric. So a sender of right tags has received a message at the endpoint
 * that it named during set-up, and can't have named one of another machine. That holds also without
 * a secret, when anybody can derive the keys, for senders that can't listen.
 *
 * A tag covers the command or reply with the word after it, but no data.
 */
#ifndef KOFIBLK_TAG_H
#define KOFIBLK_TAG_H

#include <linux/siphash.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

/* Keys of a session. */
struct kofiblk_keys {
	siphash_key_t	cmd;
	siphash_key_t	reply;
};

/**
 * kofiblk_keys_make() - derive the keys of a session: the SipHashes of the numbers 0 to 3
 * @secret: 16 bytes that only both sides know, kcm_mac_key(); 0 without a secret
 * @keys: takes the keys
 * Context: Any.
 */
static inline void kofiblk_keys_make(const u8 secret[16], struct kofiblk_keys *keys)
{
	siphash_key_t key;
	__le64 words[2];
	int i;

	memcpy(words, secret, sizeof(words));
	key.key[0] = le64_to_cpu(words[0]);
	key.key[1] = le64_to_cpu(words[1]);
	for (i = 0; i < 2; i++) {
		keys->cmd.key[i] = siphash_1u64(i, &key);
		keys->reply.key[i] = siphash_1u64(i + 2, &key);
	}
	memzero_explicit(words, sizeof(words));
	memzero_explicit(&key, sizeof(key));
}

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
