// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofiblk's parsers in user space, with the sanitizers on. What a parser lets
 * through must be built anew to the same bytes, so that no field goes unread.
 *
 *	blk_wire < FILE			one message, for afl-fuzz and the like
 *	blk_wire SEED COUNT FILE...	the files, and COUNT messages made of them
 *
 * The headers of the kernel's that the sources include are empty files: what they need
 * is here.
 */
#include <assert.h>
#include <errno.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define u8	uint8_t
#define u16	uint16_t
#define u32	uint32_t
#define u64	uint64_t
#define __u8	uint8_t
#define __u16	uint16_t
#define __u64	uint64_t
#define __le16	uint16_t
#define __le32	uint32_t
#define __le64	uint64_t
#define le16_to_cpu(x)	le16toh(x)
#define le32_to_cpu(x)	le32toh(x)
#define le64_to_cpu(x)	le64toh(x)
#define cpu_to_le16(x)	htole16(x)
#define cpu_to_le32(x)	htole32(x)
#define cpu_to_le64(x)	htole64(x)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define EXPORT_SYMBOL_NS_GPL(sym, ns)	extern int kb_unused

#include "../../samples/blk/wire.c"
#include "../../samples/blk/wire_net.c"

#define ROOM	(KB_NET_MAX + KB_REPLY_MAX(KB_INLINE_READ_MAX))

/* How often each parser let something through. */
static unsigned long passed[KB_BYE + 3];

union message {
	struct kb_hello_msg	hello;
	struct kb_challenge_msg	challenge;
	struct kb_auth_msg	auth;
	struct kb_accept_msg	accept;
	struct kb_reject_msg	reject;
	struct kb_resize_msg	resize;
	struct kb_bye_msg	bye;
};

static void same(const char *what, const void *in, size_t len, const void *out,
		 size_t out_len)
{
	if (len == out_len && !memcmp(in, out, len))
		return;
	fprintf(stderr, "%s: %zu bytes became %zu others\n", what, len,
		out_len);
	abort();
}

#define TRY(name, index)						\
do {									\
	size_t n;							\
									\
	if (kb_parse_##name(in, len, &msg.name))			\
		break;							\
	passed[index]++;						\
	memset(out, 0xa5, sizeof(out));					\
	n = kb_build_##name(out, &msg.name);				\
	same(#name, in, len, out, n);					\
} while (0)

static void try_hello(const u8 *in, size_t len)
{
	static u8 copy[ROOM], out[ROOM];
	struct kb_hello_msg msg;

	if (kb_parse_hello(in, len, &msg))
		return;
	passed[KB_HELLO]++;
	/* Capabilities that we don't know are left out. */
	memcpy(copy, in, len);
	((struct kb_hello *)copy)->caps &= cpu_to_le32(KB_CAPS);
	same("hello", copy, len, out, kb_build_hello(out, &msg));
	if (!kb_name_ok(msg.client) || !kb_name_ok(msg.export))
		abort();
}

static void try_cmd(const u8 *in, size_t len)
{
	static u8 out[ROOM];
	struct kb_cmd_msg msg;
	size_t n;

	if (kb_parse_cmd(in, len, &msg))
		return;
	passed[KB_BYE + 1]++;
	n = kb_build_cmd(out, &msg);
	if (msg.data)
		memcpy(out + n, msg.data, msg.bytes);
	same("cmd", in, len, out, n + (msg.data ? msg.bytes : 0));
	if (msg.offset + msg.bytes < msg.offset)
		abort();
}

static void try_reply(const u8 *in, size_t len)
{
	static u8 out[ROOM];
	struct kb_reply_msg msg;
	size_t n;

	if (kb_parse_reply(in, len, &msg))
		return;
	passed[KB_BYE + 2]++;
	n = kb_build_reply(out, &msg);
	if (msg.data)
		memcpy(out + n, msg.data, msg.bytes);
	same("reply", in, len, out, n + (msg.data ? msg.bytes : 0));
}

static void parse(const u8 *in, size_t len)
{
	static u8 out[ROOM];
	union message msg;
	size_t whole;
	u16 type;

	if (!kb_parse_net(in, len, &type, &whole) &&
	    (whole > KB_NET_MAX || !strcmp(kb_net_type_name(type), "?")))
		abort();
	try_hello(in, len);
	TRY(challenge, KB_CHALLENGE);
	TRY(auth, KB_AUTH);
	TRY(accept, KB_ACCEPT);
	TRY(reject, KB_REJECT);
	TRY(resize, KB_RESIZE);
	TRY(bye, KB_BYE);
	try_cmd(in, len);
	try_reply(in, len);
}

/* A buffer of just its size, whose end the sanitizer watches. */
static void parse_exactly(const u8 *in, size_t len)
{
	u8 *copy = malloc(len ?: 1);

	if (!copy)
		abort();
	memcpy(copy, in, len);
	parse(copy, len);
	free(copy);
}

static u64 state;

static u64 number(u64 below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x2545f4914f6cdd1dULL >> 20) % below;
}

static size_t mutate(u8 *buf, size_t len)
{
	static const u64 odd[] = {
		0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 511, 512, 513, 4095, 4096,
		0x7fff, 0x8000, 0xffff, 0x10000, 0x3fffff, 0x400000, 0x7fffffff,
		0x80000000, 0xffffffff, 0x7fffffffffffffff, 1ULL << 63, ~0ULL,
	};
	unsigned int changes = 1 + number(3);

	while (changes--) {
		size_t at = len ? number(len) : 0, width = 1 << number(4);
		u64 value = htole64(odd[number(ARRAY_SIZE(odd))]);

		switch (number(6)) {
		case 0:
			if (len)
				buf[at] ^= 1 << number(8);
			break;
		case 1:
			if (len)
				buf[at] = number(256);
			break;
		case 2:
			len = number(len + 1);
			break;
		case 3:
			at = number(ROOM - len + 1);
			at = at > 600 ? at % 600 : at;
			memset(buf + len, number(2) ? 0 : 0xff, at);
			len += at;
			break;
		default:
			at &= ~(width - 1);
			if (at + width <= len)
				memcpy(buf + at, &value, width);
		}
	}
	return len;
}

static size_t load(const char *name, u8 *buf)
{
	FILE *f = fopen(name, "rb");
	size_t len;

	if (!f) {
		perror(name);
		exit(2);
	}
	len = fread(buf, 1, ROOM, f);
	fclose(f);
	return len;
}

int main(int argc, char **argv)
{
	static u8 buf[ROOM], in[ROOM];
	unsigned long i, count;
	int files = argc - 3;
	size_t len;

	if (argc == 1) {
		parse_exactly(buf, fread(buf, 1, ROOM, stdin));
		return 0;
	}
	if (files < 1)
		return 2;
	state = strtoull(argv[1], NULL, 0) * 2 + 1;
	count = strtoul(argv[2], NULL, 0);
	for (i = 0; i < (unsigned long)files; i++) {
		len = load(argv[3 + i], buf);
		parse_exactly(buf, len);
	}
	for (i = 0; i < ARRAY_SIZE(passed); i++)
		printf("%s%lu", i ? " " : "corpus: ", passed[i]);
	for (i = 0; i < count; i++) {
		/* Several changes of one file before the next is read. */
		if (i % 1000 == 0)
			len = load(argv[3 + number(files)], in);
		memcpy(buf, in, len);
		parse_exactly(buf, mutate(buf, len));
	}
	for (i = 0; i < ARRAY_SIZE(passed); i++)
		printf("%s%lu", i ? " " : "\npassed: ", passed[i]);
	printf("\n");
	return 0;
}
