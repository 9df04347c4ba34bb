// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_msg's parser in user space, with sanitizers. The first byte of the input is the side that
 * gets the note. An accepted message must be built to the same bytes.
 */
#include "kernel.h"

#include "../../cm/msg/wire.c"

#define ROOM	(1 + KCM_NOTE_MAX + 64)

/* Number of messages of each type that were accepted. */
#define PASSED	KMSG_TYPES
static unsigned long passed[PASSED];

static void parse(const u8 *in, size_t len)
{
	u8 out[KMSG_WIRE_MAX];
	struct kmsg_msg msg;
	size_t at;
	int n;

	for (at = 1; at < len; at += n) {
		n = kmsg_msg_parse(in + at, len - at, in[0] & 1, &msg);
		if (n < 0)
			return;
		if (!n || n > len - at)
			abort();
		passed[msg.type]++;
		if (kmsg_msg_build(&msg, out) != n || memcmp(in + at, out, n))
			abort();
	}
}

#include "drive.h"
