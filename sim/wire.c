// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parsing and building of packets. wire.h describes the format.
 */
#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/string.h>
#else
#include <assert.h>
#include <string.h>
#endif
#include <asm/byteorder.h>

#include "wire.h"

static_assert(sizeof(struct efasim_wire_hdr) == 80, "wire format");
static_assert(sizeof(struct efasim_wire_req) == 48, "wire format");
static_assert(sizeof(struct efasim_wire_resp) == 16, "wire format");

/*
 * Statuses that a target may return for a request: 0, or a code for an error of the remote
 * side. Only the initiator sets the other codes.
 */
#define REMOTE_STATUS	0x45f81		/* bits 0, 7 to 12, 14 and 18 */
#define QPN_MAX		0xffff

static const struct {
	__u8 lane;
	__u8 flags;		/* allowed flags */
	__u16 body;
	__u16 max_payload;
} types[EFASIM_PKT_TYPES] = {
	[EFASIM_PKT_ACK] = {
		.lane = EFASIM_LANE_NONE,
		.flags = EFASIM_PKT_F_WHO,
	},
	[EFASIM_PKT_UD] = {
		.lane = EFASIM_LANE_NONE,
		.flags = EFASIM_PKT_F_IMM,
		.body = sizeof(struct efasim_wire_req),
		.max_payload = EFASIM_MAX_PAYLOAD,
	},
	[EFASIM_PKT_SEND] = {
		.lane = EFASIM_LANE_REQ,
		.flags = EFASIM_PKT_F_IMM,
		.body = sizeof(struct efasim_wire_req),
		.max_payload = EFASIM_MAX_PAYLOAD,
	},
	[EFASIM_PKT_WRITE] = {
		.lane = EFASIM_LANE_REQ,
		.flags = EFASIM_PKT_F_IMM,
		.body = sizeof(struct efasim_wire_req),
		.max_payload = EFASIM_MAX_PAYLOAD,
	},
	[EFASIM_PKT_READ] = {
		.lane = EFASIM_LANE_REQ,
		.body = sizeof(struct efasim_wire_req),
	},
	[EFASIM_PKT_RESP] = {
		.lane = EFASIM_LANE_RESP,
		.body = sizeof(struct efasim_wire_resp),
	},
	[EFASIM_PKT_DATA] = {
		.lane = EFASIM_LANE_RESP,
		.body = sizeof(struct efasim_wire_resp),
		.max_payload = EFASIM_MAX_PAYLOAD,
	},
};

/**
 * efasim_wire_lane() - lane of a packet type
 * @type: a valid packet type
 *
 * Context: any.
 * Return: the lane, or EFASIM_LANE_NONE for packets without a sequence number.
 */
enum efasim_lane efasim_wire_lane(enum efasim_pkt_type type)
{
	return types[type].lane;
}

/**
 * efasim_wire_hdr_len() - length of the headers in front of the payload
 * @type: a valid packet type
 *
 * Context: any.
 * Return: length of the common header and the type's body.
 */
size_t efasim_wire_hdr_len(enum efasim_pkt_type type)
{
	return sizeof(struct efasim_wire_hdr) + types[type].body;
}

static enum efasim_wire_err parse_req(const void *buf, struct efasim_pkt *pkt)
{
	struct efasim_wire_req req;

	memcpy(&req, buf, sizeof(req));
	pkt->op = __be64_to_cpu(req.op);
	pkt->seg = __be32_to_cpu(req.seg);
	pkt->src_qpn = __be32_to_cpu(req.src_qpn);
	pkt->dst_qpn = __be32_to_cpu(req.dst_qpn);
	pkt->qkey = __be32_to_cpu(req.qkey);
	pkt->imm = __be32_to_cpu(req.imm);
	pkt->rkey = __be32_to_cpu(req.rkey);
	pkt->raddr = __be64_to_cpu(req.raddr);
	pkt->rlen = __be32_to_cpu(req.rlen);

	if (req.reserved || pkt->src_qpn > QPN_MAX || pkt->dst_qpn > QPN_MAX)
		return EFASIM_WIRE_FIELD_BAD;
	if (pkt->type == EFASIM_PKT_READ && pkt->rlen > EFASIM_MAX_PAYLOAD)
		return EFASIM_WIRE_FIELD_BAD;
	if (pkt->type == EFASIM_PKT_WRITE && pkt->rlen < pkt->length)
		return EFASIM_WIRE_FIELD_BAD;
	if (pkt->raddr + pkt->length < pkt->raddr)
		return EFASIM_WIRE_FIELD_BAD;
	return EFASIM_WIRE_OK;
}

static enum efasim_wire_err parse_resp(const void *buf, struct efasim_pkt *pkt)
{
	struct efasim_wire_resp resp;

	memcpy(&resp, buf, sizeof(resp));
	pkt->op = __be64_to_cpu(resp.op);
	pkt->seg = __be32_to_cpu(resp.seg);
	pkt->status = __be32_to_cpu(resp.status);
	if (pkt->status >= 32 || !(REMOTE_STATUS >> pkt->status & 1))
		return EFASIM_WIRE_FIELD_BAD;
	if (pkt->type == EFASIM_PKT_DATA && pkt->status)
		return EFASIM_WIRE_FIELD_BAD;
	return EFASIM_WIRE_OK;
}

static enum efasim_wire_err parse_hdr(const struct efasim_wire_hdr *hdr,
				      struct efasim_pkt *pkt)
{
	int i;

	if (hdr->magic != __cpu_to_be32(EFASIM_WIRE_MAGIC))
		return EFASIM_WIRE_MAGIC_BAD;
	if (hdr->version != EFASIM_WIRE_VERSION)
		return EFASIM_WIRE_VERSION_BAD;
	if (hdr->type >= EFASIM_PKT_TYPES)
		return EFASIM_WIRE_TYPE_BAD;
	if (hdr->flags & ~types[hdr->type].flags)
		return EFASIM_WIRE_FLAGS_BAD;

	pkt->type = hdr->type;
	pkt->lane = types[hdr->type].lane;
	pkt->flags = hdr->flags;
	memcpy(pkt->src_gid, hdr->src_gid, sizeof(pkt->src_gid));
	pkt->src_inc = __be64_to_cpu(hdr->src_inc);
	pkt->dst_inc = __be64_to_cpu(hdr->dst_inc);
	for (i = 0; i < EFASIM_LANES; i++) {
		pkt->sack[i] = __be64_to_cpu(hdr->sack[i]);
		pkt->ack[i] = __be32_to_cpu(hdr->ack[i]);
	}
	pkt->seq = __be32_to_cpu(hdr->seq);
	pkt->base = __be32_to_cpu(hdr->base);
	pkt->length = __be32_to_cpu(hdr->length);

	if (hdr->reserved || hdr->reserved2 || !pkt->src_inc)
		return EFASIM_WIRE_FIELD_BAD;
	/* A sequence number is within the sender's window, which begins at base. */
	if (pkt->lane != EFASIM_LANE_NONE &&
	    pkt->seq - pkt->base >= EFASIM_WINDOW)
		return EFASIM_WIRE_FIELD_BAD;
	return EFASIM_WIRE_OK;
}

/**
 * efasim_wire_parse() - check and parse a packet
 * @buf: start of a packet in a datagram
 * @len: bytes from @buf to the end of the datagram
 * @pkt: result; its payload points into @buf and ends at the next packet
 *
 * Context: any; accesses only its arguments.
 * Return: EFASIM_WIRE_OK, or the error of the packet; the rest of the datagram must then
 * not be parsed.
 */
enum efasim_wire_err efasim_wire_parse(const void *buf, size_t len,
				       struct efasim_pkt *pkt)
{
	struct efasim_wire_hdr hdr;
	enum efasim_wire_err err;
	size_t body;

	memset(pkt, 0, sizeof(*pkt));
	if (len < sizeof(hdr))
		return EFASIM_WIRE_SHORT;
	memcpy(&hdr, buf, sizeof(hdr));
	err = parse_hdr(&hdr, pkt);
	if (err)
		return err;

	buf = (const char *)buf + sizeof(hdr);
	len -= sizeof(hdr);
	body = types[pkt->type].body;
	if (len < body)
		return EFASIM_WIRE_SHORT;
	if (pkt->length > types[pkt->type].max_payload ||
	    pkt->length > len - body)
		return EFASIM_WIRE_LENGTH_BAD;
	pkt->payload = (const char *)buf + body;

	if (body == sizeof(struct efasim_wire_req))
		return parse_req(buf, pkt);
	if (body == sizeof(struct efasim_wire_resp))
		return parse_resp(buf, pkt);
	return EFASIM_WIRE_OK;
}

static void build_req(void *buf, const struct efasim_pkt *pkt)
{
	struct efasim_wire_req req = {
		.op = __cpu_to_be64(pkt->op),
		.seg = __cpu_to_be32(pkt->seg),
		.src_qpn = __cpu_to_be32(pkt->src_qpn),
		.dst_qpn = __cpu_to_be32(pkt->dst_qpn),
		.qkey = __cpu_to_be32(pkt->qkey),
		.imm = __cpu_to_be32(pkt->imm),
		.rkey = __cpu_to_be32(pkt->rkey),
		.raddr = __cpu_to_be64(pkt->raddr),
		.rlen = __cpu_to_be32(pkt->rlen),
	};

	memcpy(buf, &req, sizeof(req));
}

static void build_resp(void *buf, const struct efasim_pkt *pkt)
{
	struct efasim_wire_resp resp = {
		.op = __cpu_to_be64(pkt->op),
		.seg = __cpu_to_be32(pkt->seg),
		.status = __cpu_to_be32(pkt->status),
	};

	memcpy(buf, &resp, sizeof(resp));
}

/**
 * efasim_wire_build() - write a packet's headers
 * @buf: room for efasim_wire_hdr_len() bytes
 * @pkt: the packet
 *
 * The caller writes the payload behind the headers.
 *
 * Context: any.
 * Return: number of bytes written.
 */
size_t efasim_wire_build(void *buf, const struct efasim_pkt *pkt)
{
	struct efasim_wire_hdr hdr = {
		.magic = __cpu_to_be32(EFASIM_WIRE_MAGIC),
		.version = EFASIM_WIRE_VERSION,
		.type = pkt->type,
		.flags = pkt->flags,
		.src_inc = __cpu_to_be64(pkt->src_inc),
		.dst_inc = __cpu_to_be64(pkt->dst_inc),
		.seq = __cpu_to_be32(pkt->seq),
		.base = __cpu_to_be32(pkt->base),
		.length = __cpu_to_be32(pkt->length),
	};
	void *body = (char *)buf + sizeof(hdr);
	int i;

	memcpy(hdr.src_gid, pkt->src_gid, sizeof(hdr.src_gid));
	for (i = 0; i < EFASIM_LANES; i++) {
		hdr.sack[i] = __cpu_to_be64(pkt->sack[i]);
		hdr.ack[i] = __cpu_to_be32(pkt->ack[i]);
	}
	memcpy(buf, &hdr, sizeof(hdr));

	if (types[pkt->type].body == sizeof(struct efasim_wire_req))
		build_req(body, pkt);
	else if (types[pkt->type].body == sizeof(struct efasim_wire_resp))
		build_resp(body, pkt);
	return efasim_wire_hdr_len(pkt->type);
}
