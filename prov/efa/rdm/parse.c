// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parsing of received packets. Everything that can be checked without state is checked here and
 * nowhere else, in the order of the bytes, so that nothing is used before it was checked. The
 * receiver checks whether an id names an operation, a key names a region, and an atomic
 * operation is known.
 */
#include <linux/kernel.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "packet.h"

/* The only atomic operation without an operand: FI_ATOMIC_READ of fi_atomic(3). */
#define KEFA_ATOMIC_READ	10

/* Unparsed rest of a packet. */
struct kefa_unread {
	const u8	*at;
	size_t		len;
};

static const void *kefa_take(struct kefa_unread *rest, size_t len)
{
	const u8 *at = rest->at;

	if (len > rest->len)
		return NULL;
	rest->at += len;
	rest->len -= len;
	return at;
}

static u16 kefa_get16(const void *at)
{
	__le16 v;

	memcpy(&v, at, sizeof(v));
	return le16_to_cpu(v);
}

static u32 kefa_get32(const void *at)
{
	__le32 v;

	memcpy(&v, at, sizeof(v));
	return le32_to_cpu(v);
}

static u64 kefa_get64(const void *at)
{
	__le64 v;

	memcpy(&v, at, sizeof(v));
	return le64_to_cpu(v);
}

/* A request has its sender's raw address, or only the connid, or neither. */
static enum kefa_bad kefa_parse_raw(struct kefa_unread *rest, struct kefa_pkt *pkt)
{
	const void *at = kefa_take(rest, sizeof(struct kefa_req_opt_raw_addr_hdr));
	u32 len;

	if (pkt->flags & KEFA_PKT_CONNID_HDR)
		return KEFA_BAD_FLAGS;
	if (!at)
		return KEFA_BAD_SHORT;
	len = kefa_get32(at);
	if (len < KEFA_RAW_ADDR_BYTES || len > KEFA_RAW_ADDR_LEN_MAX || len % 4)
		return KEFA_BAD_ADDR;
	pkt->raw = kefa_take(rest, len);
	if (!pkt->raw)
		return KEFA_BAD_SHORT;
	pkt->raw_len = len;
	pkt->connid = kefa_get32(pkt->raw + offsetof(struct kefa_raw_addr, qkey));
	pkt->has_connid = true;
	return KEFA_OK;
}

static noinline enum kefa_bad kefa_parse_rare(struct kefa_unread *rest, struct kefa_pkt *pkt)
{
	enum kefa_bad bad;
	const void *at;

	if (pkt->flags & KEFA_REQ_OPT_RAW_ADDR_HDR) {
		bad = kefa_parse_raw(rest, pkt);
		if (bad)
			return bad;
	}
	if (pkt->flags & KEFA_REQ_OPT_CQ_DATA_HDR) {
		at = kefa_take(rest, sizeof(struct kefa_req_opt_cq_data_hdr));
		if (!at)
			return KEFA_BAD_SHORT;
		pkt->cq_data = kefa_get64(at);
	}
	return KEFA_OK;
}

static enum kefa_bad kefa_parse_opt(struct kefa_unread *rest, struct kefa_pkt *pkt)
{
	enum kefa_bad bad;
	const void *at;

	if (pkt->flags & (KEFA_REQ_OPT_RAW_ADDR_HDR | KEFA_REQ_OPT_CQ_DATA_HDR)) {
		bad = kefa_parse_rare(rest, pkt);
		if (bad)
			return bad;
	}
	if (pkt->flags & KEFA_PKT_CONNID_HDR) {
		at = kefa_take(rest, sizeof(struct kefa_req_opt_connid_hdr));
		if (!at)
			return KEFA_BAD_SHORT;
		pkt->connid = kefa_get32(at);
		pkt->has_connid = true;
	}
	return KEFA_OK;
}

/* The fixed header has room for a connid, even without KEFA_PKT_CONNID_HDR. */
static enum kefa_bad kefa_parse_connid(struct kefa_unread *rest, struct kefa_pkt *pkt)
{
	const void *at;

	pkt->has_connid = pkt->flags & KEFA_PKT_CONNID_HDR;
	if (!pkt->has_connid) {
		pkt->connid = 0;
	} else if (pkt->row->flags & KEFA_ROW_TAIL_CONNID) {
		at = kefa_take(rest, sizeof(struct kefa_ctsdata_opt_connid_hdr));
		if (!at)
			return KEFA_BAD_SHORT;
		pkt->connid = kefa_get32(at);
	}
	return KEFA_OK;
}

static enum kefa_bad kefa_parse_iov(struct kefa_unread *rest, u32 count, u32 least,
				    const struct kefa_rma_iov **iov, u64 *sum)
{
	u64 addr, len, end;
	u32 i;

	*sum = 0;
	if (count < least || count > KEFA_IOV_MAX)
		return KEFA_BAD_COUNT;
	*iov = kefa_take(rest, count * sizeof(**iov));
	if (!*iov)
		return KEFA_BAD_SHORT;
	for (i = 0; i < count; i++) {
		addr = kefa_get64(&(*iov)[i].addr);
		len = kefa_get64(&(*iov)[i].len);
		if (check_add_overflow(addr, len, &end) || check_add_overflow(*sum, len, sum))
			return KEFA_BAD_RANGE;
	}
	if (!count)
		*iov = NULL;
	return KEFA_OK;
}

static enum kefa_bad kefa_check_part(const struct kefa_pkt *pkt, u64 whole)
{
	u64 end;

	if (!pkt->data_len)
		return KEFA_BAD_LENGTH;
	if (check_add_overflow(pkt->seg_offset, (u64)pkt->data_len, &end) || end > whole)
		return KEFA_BAD_OFFSET;
	return KEFA_OK;
}

/*
 * Check the lengths of the packet, where @rma is the sum of rma_iov[], and set those that the
 * packet has no field for.
 */
static enum kefa_bad kefa_check_data(struct kefa_pkt *pkt, u64 rma)
{
	u64 len = pkt->data_len, end;

	switch ((enum kefa_data)pkt->row->data) {
	case KEFA_DATA_NONE:
		return len ? KEFA_BAD_LENGTH : KEFA_OK;
	case KEFA_DATA_ALL:
		pkt->msg_length = len;
		return KEFA_OK;
	case KEFA_DATA_PART:
		return kefa_check_part(pkt, pkt->msg_length);
	case KEFA_DATA_RUNT:
		if (pkt->runt_length > pkt->msg_length)
			return KEFA_BAD_TOTAL;
		return kefa_check_part(pkt, pkt->runt_length);
	case KEFA_DATA_FIRST:
		return len >= pkt->msg_length ? KEFA_BAD_LENGTH : KEFA_OK;
	case KEFA_DATA_SOME:
		return len > pkt->msg_length ? KEFA_BAD_LENGTH : KEFA_OK;
	case KEFA_DATA_SEGMENT:
		if (!len || len != pkt->seg_length)
			return KEFA_BAD_LENGTH;
		return check_add_overflow(pkt->seg_offset, len, &end) ? KEFA_BAD_OFFSET : KEFA_OK;
	case KEFA_DATA_ANSWER:
		return len == pkt->seg_length ? KEFA_OK : KEFA_BAD_LENGTH;
	case KEFA_DATA_RMA:
		pkt->msg_length = rma;
		return len == rma ? KEFA_OK : KEFA_BAD_LENGTH;
	case KEFA_DATA_OPERAND:
		pkt->msg_length = rma;
		if (!len && pkt->atomic_op == KEFA_ATOMIC_READ)
			return KEFA_OK;
		return len == rma ? KEFA_OK : KEFA_BAD_LENGTH;
	case KEFA_DATA_COMPARE:
		pkt->msg_length = rma;
		return len % 2 || len / 2 != rma ? KEFA_BAD_LENGTH : KEFA_OK;
	case KEFA_DATA_TAIL:
		break;
	}
	return KEFA_OK;
}

static noinline enum kefa_bad kefa_parse_target(struct kefa_unread *rest, struct kefa_pkt *pkt,
						u64 *rma)
{
	const u16 flags = pkt->row->flags;
	enum kefa_bad bad;

	bad = kefa_parse_iov(rest, pkt->rma_iov_count, !(flags & KEFA_ROW_TRIGGER),
			     &pkt->rma_iov, rma);
	if (!bad && flags & KEFA_ROW_TOTAL && *rma != pkt->msg_length)
		return KEFA_BAD_TOTAL;
	return bad;
}

static noinline enum kefa_bad kefa_parse_sources(struct kefa_unread *rest, struct kefa_pkt *pkt)
{
	enum kefa_bad bad;
	u64 sum;

	bad = kefa_parse_iov(rest, pkt->read_iov_count, 1, &pkt->read_iov, &sum);
	if (!bad && (!sum || sum != pkt->msg_length))
		return KEFA_BAD_TOTAL;
	return bad;
}

static enum kefa_bad kefa_parse_body(struct kefa_unread *rest, struct kefa_pkt *pkt)
{
	const u16 flags = pkt->row->flags;
	enum kefa_bad bad = KEFA_OK;
	u64 rma = 0;

	if (flags & KEFA_ROW_WINDOW && !pkt->recv_length)
		return KEFA_BAD_TOTAL;
	if (flags & KEFA_ROW_RMA)
		bad = kefa_parse_target(rest, pkt, &rma);
	if (!bad)
		bad = flags & KEFA_ROW_REQ ? kefa_parse_opt(rest, pkt) :
					     kefa_parse_connid(rest, pkt);
	if (!bad && flags & KEFA_ROW_READ)
		bad = kefa_parse_sources(rest, pkt);
	if (bad)
		return bad;
	pkt->data = rest->at;
	pkt->data_len = rest->len;
	return kefa_check_data(pkt, rma);
}

/* --- HANDSHAKE --- */

static const void *kefa_take_if(struct kefa_unread *rest, const struct kefa_pkt *pkt, u16 flag,
				size_t len, enum kefa_bad *bad)
{
	const void *at = NULL;

	if (pkt->flags & flag) {
		at = kefa_take(rest, len);
		if (!at)
			*bad = KEFA_BAD_SHORT;
	}
	return at;
}

static enum kefa_bad kefa_parse_extra(struct kefa_unread *rest, struct kefa_shake *shake)
{
	const void *at;
	u32 i;

	if (shake->nextra_p3 < KEFA_NEXTRA_P3 ||
	    shake->nextra_p3 > KEFA_NEXTRA_P3 + KEFA_NEXTRA_MAX)
		return KEFA_BAD_FEATURES;
	for (i = 0; i < shake->nextra_p3 - KEFA_NEXTRA_P3; i++) {
		at = kefa_take(rest, sizeof(__le64));
		if (!at)
			return KEFA_BAD_SHORT;
		shake->extra[i] = kefa_get64(at);
	}
	return KEFA_OK;
}

/* Later versions add headers after the known ones, which are ignored. */
static noinline enum kefa_bad kefa_parse_handshake(struct kefa_unread *rest, struct kefa_pkt *pkt)
{
	struct kefa_shake *shake = &pkt->shake;
	enum kefa_bad bad;
	const void *at;

	bad = kefa_parse_extra(rest, shake);
	if (bad)
		return bad;
	at = kefa_take_if(rest, pkt, KEFA_PKT_CONNID_HDR,
			  sizeof(struct kefa_handshake_opt_connid_hdr), &bad);
	pkt->has_connid = at;
	pkt->connid = at ? kefa_get32(at) : 0;
	at = kefa_take_if(rest, pkt, KEFA_HANDSHAKE_HOST_ID_HDR,
			  sizeof(struct kefa_handshake_opt_host_id_hdr), &bad);
	shake->host_id = at ? kefa_get64(at) : 0;
	at = kefa_take_if(rest, pkt, KEFA_HANDSHAKE_DEVICE_VERSION_HDR,
			  sizeof(struct kefa_handshake_opt_device_version_hdr), &bad);
	shake->device_version = at ? kefa_get32(at) : 0;
	at = kefa_take_if(rest, pkt, KEFA_HANDSHAKE_USER_RECV_QP_HDR,
			  sizeof(struct kefa_handshake_opt_user_recv_qp_hdr), &bad);
	shake->qpn = at ? kefa_get32(at) : 0;
	shake->qkey = at ? kefa_get32(at + sizeof(__le32)) : 0;
	at = kefa_take_if(rest, pkt, KEFA_HANDSHAKE_HMEM_P2P_HDR,
			  sizeof(struct kefa_handshake_opt_hmem_cap_hdr), &bad);
	shake->p2p = at ? *(const u8 *)at : 0;
	pkt->data = rest->at;
	pkt->data_len = rest->len;
	return bad;
}

/**
 * kefa_parse() - parse a packet
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 * @pkt: takes the fields of the packet. If the packet is refused, only @pkt->row is valid, if the
 *	type is known
 *
 * The packet may have any contents; nothing outside of it is read. @pkt has pointers into @buf,
 * which must not change while @pkt is in use.
 *
 * Context: Any.
 * Return: KEFA_OK, or the reason of the refusal.
 */
enum kefa_bad kefa_parse(const void *buf, size_t len, struct kefa_pkt *pkt)
{
	const struct kefa_base_hdr *base = buf;
	struct kefa_unread rest = { buf, len };
	const struct kefa_pkt_row *row;
	enum kefa_bad bad;

	memset(pkt, 0, sizeof(*pkt));
	if (len < sizeof(*base))
		return KEFA_BAD_SHORT;
	if (base->version != KEFA_PROTOCOL_VERSION)
		return KEFA_BAD_VERSION;
	row = kefa_row_of(base->type);
	pkt->row = row;
	if (!row)
		return KEFA_BAD_TYPE;
	pkt->flags = kefa_get16(&base->flags);
	if (pkt->flags & ~row->may)
		return KEFA_BAD_FLAGS;
	if (!kefa_take(&rest, row->hdr))
		return KEFA_BAD_SHORT;
	row->load(buf, pkt);
	if (row->flags & KEFA_ROW_TAGGED)
		pkt->tag = kefa_get64(buf + row->hdr - sizeof(__le64));
	if (row->flags & KEFA_ROW_HANDSHAKE)
		bad = kefa_parse_handshake(&rest, pkt);
	else
		bad = kefa_parse_body(&rest, pkt);
	pkt->hdr_len = len - pkt->data_len;
	return bad;
}
