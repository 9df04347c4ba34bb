// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contents of messages, which expose bytes that are wrong, missing, from another message
 * or behind the end.
 */
#include <linux/minmax.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "data.h"

static u64 pp_mix(u64 x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15;
	return x ^ x >> 29;
}

/* Return: 8 bytes of a message, which depend on the seed, its number and the offset. */
static u64 pp_word(u64 seed, u32 seq, u32 offset)
{
	return pp_mix(seed + pp_mix(((u64)seq << 32) + offset + 1));
}

/* Messages that are long enough contain their number, because they may be reordered. */
static u32 pp_seq(u32 size, u32 seq)
{
	return size < PP_HEADER ? 0 : seq;
}

/**
 * pp_seq_of() - read a message's number
 * @buf: the message
 * @size: length of the message
 *
 * Return: the number, or 0 for a message that is too short to contain one.
 */
u32 pp_seq_of(const void *buf, u32 size)
{
	return size < PP_HEADER ? 0 : le32_to_cpu(*(const __le32 *)buf);
}

/**
 * pp_header_ok() - check whether a message is one of a test
 * @buf: the message, of at least PP_HEADER bytes
 * @seed: seed of the test
 *
 * Return: whether its number and the test's seed belong to each other.
 */
bool pp_header_ok(const void *buf, u64 seed)
{
	const __le32 *header = buf;

	return le32_to_cpu(header[1]) == (~le32_to_cpu(header[0]) ^ (u32)seed);
}

/**
 * pp_fill() - write a message's data
 * @buf: takes the data
 * @size: length of the message
 * @seed: seed of the test
 * @seq: number of the message
 */
void pp_fill(void *buf, u32 size, u64 seed, u32 seq)
{
	__le32 *header = buf;
	u32 i = 0;
	u64 word;

	seq = pp_seq(size, seq);
	if (size >= PP_HEADER) {
		header[0] = cpu_to_le32(seq);
		header[1] = cpu_to_le32(~seq ^ (u32)seed);
		i = PP_HEADER;
	}
	for (; i < size; i += sizeof(word)) {
		word = pp_word(seed, seq, i);
		memcpy(buf + i, &word, min_t(u32, size - i, sizeof(word)));
	}
}

/**
 * pp_verify() - check a message's data, and that nothing was written behind it
 * @buf: the message, followed by PP_GUARD bytes of a slot
 * @size: length of the message
 * @seed: seed of the test
 * @seq: number of the message
 *
 * Return: whether every byte is right.
 */
bool pp_verify(const void *buf, u32 size, u64 seed, u32 seq)
{
	const __le32 *header = buf;
	u32 i = 0;
	u64 word;

	seq = pp_seq(size, seq);
	if (size >= PP_HEADER) {
		if (le32_to_cpu(header[0]) != seq || !pp_header_ok(buf, seed))
			return false;
		i = PP_HEADER;
	}
	for (; i < size; i += sizeof(word)) {
		word = pp_word(seed, seq, i);
		if (memcmp(buf + i, &word,
			   min_t(u32, size - i, sizeof(word))))
			return false;
	}
	return !memchr_inv(buf + size, PP_POISON, PP_GUARD);
}
