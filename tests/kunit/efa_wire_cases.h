/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of fabric efa for tests, of each type and form. Also compiled for user space.
 * Padding is defined here independently of the code under test.
 */
#ifndef KOFI_TEST_EFA_WIRE_CASES_H
#define KOFI_TEST_EFA_WIRE_CASES_H

#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "../../prov/efa/rdm/packet.h"

#define WIRE_ROOM	9216

/* A form of a packet: its optional headers, and its number of iovs. */
struct wire_form {
	u16	flags;
	u8	rma;
	u8	read;
};

struct wire_case {
	struct kefa_pkt		pkt;
	struct kefa_rma_iov	rma[KEFA_IOV_MAX];
	struct kefa_rma_iov	read[KEFA_IOV_MAX];
	u8			raw[KEFA_RAW_ADDR_LEN];
	u8			data[64];
};

static inline u64 wire_iov_fill(struct kefa_rma_iov *iov, u32 count, u64 len)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		iov[i].addr = cpu_to_le64(0x1122334455660000ULL + i);
		iov[i].len = cpu_to_le64(len + i);
		iov[i].key = cpu_to_le64(0x8877000000000000ULL + i);
		sum += len + i;
	}
	return sum;
}

/* The last source has the remaining bytes of a message. */
static inline void wire_iov_total(struct kefa_rma_iov *iov, u32 count, u64 total)
{
	u32 i;

	for (i = 0; i + 1 < count; i++)
		total -= le64_to_cpu(iov[i].len);
	iov[i].len = cpu_to_le64(total);
}

static inline void wire_case_data(struct wire_case *c, u64 rma)
{
	struct kefa_pkt *pkt = &c->pkt;

	pkt->data_len = 0;
	switch ((enum kefa_data)pkt->row->data) {
	case KEFA_DATA_NONE:
	case KEFA_DATA_TAIL:
		break;
	case KEFA_DATA_ALL:
		pkt->data_len = 9;
		pkt->msg_length = 9;
		break;
	case KEFA_DATA_PART:
		pkt->data_len = 8;
		pkt->seg_offset = pkt->msg_length - 8;
		break;
	case KEFA_DATA_RUNT:
		pkt->data_len = 8;
		pkt->runt_length = pkt->msg_length - 1;
		pkt->seg_offset = pkt->runt_length - 8;
		break;
	case KEFA_DATA_FIRST:
	case KEFA_DATA_SOME:
		pkt->data_len = 7;
		break;
	case KEFA_DATA_SEGMENT:
	case KEFA_DATA_ANSWER:
		pkt->data_len = 5;
		pkt->seg_length = 5;
		break;
	case KEFA_DATA_RMA:
	case KEFA_DATA_OPERAND:
		pkt->data_len = rma;
		pkt->msg_length = rma;
		break;
	case KEFA_DATA_COMPARE:
		pkt->data_len = 2 * rma;
		pkt->msg_length = rma;
		break;
	}
}

/* Each number has different bytes, so that exchanged fields are detected. */
static inline void wire_case_numbers(struct kefa_pkt *pkt)
{
	u8 hdr[64];
	u32 i;

	for (i = 0; i < sizeof(hdr); i++)
		hdr[i] = 0x80 + i;
	pkt->row->load(hdr, pkt);
	if (pkt->row->flags & KEFA_ROW_TAGGED)
		pkt->tag = 0xf7f6f5f4f3f2f1f0ULL;
	if (pkt->flags & KEFA_REQ_OPT_CQ_DATA_HDR && pkt->row->flags & KEFA_ROW_REQ)
		pkt->cq_data = 0xe7e6e5e4e3e2e1e0ULL;
}

static inline void wire_case_shake(struct kefa_pkt *pkt)
{
	struct kefa_shake *shake = &pkt->shake;

	shake->nextra_p3 = KEFA_NEXTRA_P3 + 1;
	shake->extra[0] = 0x7b;
	if (pkt->flags & KEFA_HANDSHAKE_HOST_ID_HDR)
		shake->host_id = 0xd7d6d5d4d3d2d1d0ULL;
	if (pkt->flags & KEFA_HANDSHAKE_DEVICE_VERSION_HDR)
		shake->device_version = 0xefa1;
	if (pkt->flags & KEFA_HANDSHAKE_USER_RECV_QP_HDR) {
		shake->qpn = 77;
		shake->qkey = 0xc3c2c1c0;
	}
	if (pkt->flags & KEFA_HANDSHAKE_HMEM_P2P_HDR)
		shake->p2p = 1;
}

/* Make a packet of @row in a form. The host must be little-endian, as those of EFA are. */
static inline void wire_case_make(struct wire_case *c, const struct kefa_pkt_row *row,
				  struct wire_form form)
{
	struct kefa_pkt *pkt = &c->pkt;
	u64 rma = 0;
	u32 i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < sizeof(c->raw); i++)
		c->raw[i] = 0x40 + i;
	for (i = 0; i < sizeof(c->data); i++)
		c->data[i] = i * 7;
	pkt->row = row;
	pkt->flags = form.flags | row->hints;
	wire_case_numbers(pkt);
	if (row->flags & KEFA_ROW_HANDSHAKE)
		wire_case_shake(pkt);
	if (row->flags & KEFA_ROW_RMA) {
		pkt->rma_iov_count = form.rma;
		pkt->rma_iov = form.rma ? c->rma : NULL;
		rma = wire_iov_fill(c->rma, form.rma, row->flags & KEFA_ROW_TOTAL ? 100 : 2);
	}
	if (row->flags & KEFA_ROW_TOTAL)
		pkt->msg_length = rma;
	wire_case_data(c, rma);
	if (row->flags & KEFA_ROW_READ) {
		pkt->read_iov_count = form.read;
		pkt->read_iov = c->read;
		wire_iov_fill(c->read, form.read, 10);
		wire_iov_total(c->read, form.read, pkt->msg_length);
	}
	pkt->data = c->data;
	pkt->has_connid = pkt->flags & KEFA_PKT_CONNID_HDR;
	pkt->connid = pkt->has_connid ? 0x73727170 : 0;
	if (row->flags & KEFA_ROW_REQ && pkt->flags & KEFA_REQ_OPT_RAW_ADDR_HDR) {
		pkt->raw = c->raw;
		pkt->raw_len = sizeof(c->raw);
		pkt->has_connid = true;
		pkt->connid = 0x57565554;	/* the bytes of raw[] at its offset */
	}
}

/* Build the packet. Return: its length; 0 if it can't be built. */
static inline size_t wire_case_bytes(const struct wire_case *c, u8 *buf, size_t room)
{
	size_t len = kefa_build(&c->pkt, buf, room);

	if (!len || len + c->pkt.data_len > room)
		return 0;
	memcpy(buf + len, c->data, c->pkt.data_len);
	return len + c->pkt.data_len;
}

/* Make form @n of a type. Return: false if the type has no such form. */
static inline bool wire_form_of(const struct kefa_pkt_row *row, u32 n, struct wire_form *form)
{
	static const u16 opts[] = {
		0, KEFA_PKT_CONNID_HDR, KEFA_REQ_OPT_RAW_ADDR_HDR,
	};

	memset(form, 0, sizeof(*form));
	if (row->flags & KEFA_ROW_HANDSHAKE) {
		form->flags = (n & 15) | (n & 16 ? KEFA_PKT_CONNID_HDR : 0);
		return n < 32;
	}
	if (!(row->flags & KEFA_ROW_REQ)) {
		form->flags = n & 1 ? KEFA_PKT_CONNID_HDR : 0;
		return n < 2;
	}
	form->flags = opts[n % 3];
	n /= 3;
	form->flags |= n & 1 ? KEFA_REQ_OPT_CQ_DATA_HDR : 0;
	n >>= 1;
	form->rma = n % 5;
	n /= 5;
	form->read = n % 5;
	if (n >= 5 || (form->rma && !(row->flags & KEFA_ROW_RMA)) ||
	    (form->read && !(row->flags & KEFA_ROW_READ)))
		return false;
	if (row->flags & KEFA_ROW_RMA && !(row->flags & KEFA_ROW_TRIGGER) && !form->rma)
		return false;
	return form->read || !(row->flags & KEFA_ROW_READ);
}

/* More than the number of forms of any type. */
#define WIRE_FORMS	(3 * 2 * 5 * 5)

struct wire_room {
	u8	type;
	u8	at;
	u8	len;
};

/* Room for a connid in packets that have none, which senders don't initialize. */
static const struct wire_room wire_connids[] = {
	{ KEFA_CTS_PKT, 4, 4 },
	{ KEFA_READRSP_PKT, 4, 4 },
	{ KEFA_ATOMRSP_PKT, 4, 4 },
	{ KEFA_EOR_PKT, 12, 4 },
	{ KEFA_READ_NACK_PKT, 12, 4 },
	{ KEFA_RECEIPT_PKT, 12, 4 },
};

static inline void wire_scrub_shake(u8 *buf, u16 flags)
{
	u32 at = 8 + 8 * (buf[4] - 3);

	if (flags & KEFA_PKT_CONNID_HDR) {
		memset(buf + at + 4, 0, 4);
		at += 8;
	}
	at += flags & KEFA_HANDSHAKE_HOST_ID_HDR ? 8 : 0;
	if (flags & KEFA_HANDSHAKE_DEVICE_VERSION_HDR) {
		memset(buf + at + 4, 0, 4);
		at += 8;
	}
	at += flags & KEFA_HANDSHAKE_USER_RECV_QP_HDR ? 8 : 0;
	if (flags & KEFA_HANDSHAKE_HMEM_P2P_HDR)
		memset(buf + at + 1, 0, 7);
}

/* Normalize an accepted packet to the bytes that the builder creates. */
static inline void wire_scrub(u8 *buf)
{
	u16 flags = buf[2] | buf[3] << 8;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(wire_connids); i++)
		if (wire_connids[i].type == buf[0] && !(flags & KEFA_PKT_CONNID_HDR))
			memset(buf + wire_connids[i].at, 0, wire_connids[i].len);
	if (buf[0] == KEFA_CTSDATA_PKT && flags & KEFA_PKT_CONNID_HDR)
		memset(buf + 28, 0, 4);
	if (buf[0] == KEFA_HANDSHAKE_PKT)
		wire_scrub_shake(buf, flags);
	/* Hint flags, which some versions don't set. */
	buf[2] |= kefa_pkt_rows[buf[0]].hints;
}

#endif /* KOFI_TEST_EFA_WIRE_CASES_H */
