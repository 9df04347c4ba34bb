// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofiblk's parsers in user space, with sanitizers. An accepted message must be built to the
 * same bytes, which shows that the parser ignores no field.
 */
#include "kernel.h"

#define EXPORT_SYMBOL_NS_GPL(sym, ns)	extern int kbs_unused

#include "../../ulp/lib/msg.c"
#include "../../ulp/blk/wire.c"
#include "../../ulp/blk/wire_net.c"

#define ROOM	(1024 + KOFIBLK_REPLY_MAX(KOFIBLK_INLINE_READ_MAX))

/* Number of messages that each parser accepted. */
#define PASSED	(KOFIBLK_BYE + 3)
static unsigned long passed[PASSED];

union message {
	struct kofiblk_accept_msg	accept;
	struct kofiblk_resize_msg	resize;
	struct kofiblk_bye_msg	bye;
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
	if (kofiblk_parse_##name(in, len, &msg.name))			\
		break;							\
	passed[index]++;						\
	memset(out, 0xa5, sizeof(out));					\
	n = kofiblk_build_##name(out, &msg.name);				\
	same(#name, in, len, out, n);					\
} while (0)

static void try_hello(const u8 *in, size_t len)
{
	static u8 copy[ROOM], out[ROOM];
	struct kofiblk_hello_msg msg;

	if (kofiblk_parse_hello(in, len, &msg))
		return;
	passed[KOFIBLK_HELLO]++;
	/* The parser drops unknown capabilities. */
	memcpy(copy, in, len);
	((struct kofiblk_hello *)copy)->caps &= cpu_to_le32(KOFIBLK_CAPS);
	same("hello", copy, len, out, kofiblk_build_hello(out, &msg));
}

static void try_cmd(const u8 *in, size_t len)
{
	static u8 out[ROOM];
	struct kofiblk_cmd_msg msg;
	size_t n;

	if (kofiblk_parse_cmd(in, len, &msg))
		return;
	passed[KOFIBLK_BYE + 1]++;
	n = kofiblk_build_cmd(out, &msg);
	if (msg.data)
		memcpy(out + n, msg.data, msg.bytes);
	same("cmd", in, len, out, n + (msg.data ? msg.bytes : 0));
	if (msg.offset + msg.bytes < msg.offset)
		abort();
}

static void try_reply(const u8 *in, size_t len)
{
	static u8 out[ROOM];
	struct kofiblk_reply_msg msg;
	size_t n;

	if (kofiblk_parse_reply(in, len, &msg))
		return;
	passed[KOFIBLK_BYE + 2]++;
	n = kofiblk_build_reply(out, &msg);
	if (msg.data)
		memcpy(out + n, msg.data, msg.bytes);
	same("reply", in, len, out, n + (msg.data ? msg.bytes : 0));
}

static void parse(const u8 *in, size_t len)
{
	static u8 out[ROOM];
	union message msg;
	u16 type;

	if (!kulp_parse_hdr(&kofiblk_proto, in, len, &type) &&
	    (type < KOFIBLK_HELLO || type > KOFIBLK_BYE))
		abort();
	try_hello(in, len);
	TRY(accept, KOFIBLK_ACCEPT);
	TRY(resize, KOFIBLK_RESIZE);
	TRY(bye, KOFIBLK_BYE);
	try_cmd(in, len);
	try_reply(in, len);
}

#include "drive.h"
