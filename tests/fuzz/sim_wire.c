// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The software device's packet parser in user space, with sanitizers. The headers of an accepted
 * packet must be built to the same bytes, which shows that the parser ignores no field.
 */
#include "kernel.h"

#include "../../sim/wire.c"

#define ROOM	(sizeof(struct efasim_wire_hdr) + sizeof(struct efasim_wire_req) + \
		 EFASIM_MAX_PAYLOAD)

/* Number of packets of each type, and then of refusals for each reason. */
#define PASSED	(EFASIM_PKT_TYPES + EFASIM_WIRE_ERRS)
static unsigned long passed[PASSED];

static void parse(const u8 *in, size_t len)
{
	static u8 out[ROOM];
	struct efasim_pkt pkt;
	enum efasim_wire_err err;
	size_t n;

	err = efasim_wire_parse(in, len, &pkt);
	if (err) {
		assert(err < EFASIM_WIRE_ERRS);
		passed[EFASIM_PKT_TYPES + err]++;
		return;
	}
	passed[pkt.type]++;
	memset(out, 0xa5, sizeof(out));
	n = efasim_wire_build(out, &pkt);
	assert(n == efasim_wire_hdr_len(pkt.type) && n + pkt.length <= len);
	assert(pkt.payload == in + n && pkt.length <= EFASIM_MAX_PAYLOAD);
	assert(pkt.lane == efasim_wire_lane(pkt.type));
	assert(!memcmp(in, out, n));
}

#include "drive.h"
