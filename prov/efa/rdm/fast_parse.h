/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parsers of packets in their most frequent forms: the only optional header is the connid, and a
 * message that is read has a single region. Both libfabric and this provider send such packets
 * after the handshake.
 */
#ifndef KEFA_RDM_FAST_PARSE_H
#define KEFA_RDM_FAST_PARSE_H

#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

/* --- eager messages --- */

/**
 * struct kefa_eager - contents of an eager packet
 * @tagged: the message has a tag
 * @msg_id: number of the message
 * @connid: connid of the sender
 * @len: length of @data
 * @tag: tag of the message, or 0
 * @data: data of the message
 *
 * The values equal those that kefa_parse() returns.
 */
struct kefa_eager {
	bool		tagged;
	u32		msg_id;
	u32		connid;
	u32		len;
	u64		tag;
	const void	*data;
};

/* First four bytes of a header. Flags that repeat the type are ignored. */
#define KEFA_EAGER_HINTS	((u32)(KEFA_REQ_MSG | KEFA_REQ_TAGGED) << 16)
#define KEFA_EAGER_FIRST(type)						\
	((type) | KEFA_PROTOCOL_VERSION << 8 | (u32)KEFA_PKT_CONNID_HDR << 16)

/* The same as kefa_build() makes it for a message, with the flags that repeat the type. */
#define KEFA_RTM_FIRST(form, tagged)						\
	((tagged) ? KEFA_EAGER_FIRST(KEFA_##form##_TAGRTM_PKT) | KEFA_EAGER_HINTS :	\
		    KEFA_EAGER_FIRST(KEFA_##form##_MSGRTM_PKT) | (u32)KEFA_REQ_MSG << 16)

/**
 * kefa_eager_parse() - parse an eager packet in its most frequent form
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 * @e: takes the contents
 *
 * Context: Any.
 * Return: whether the packet has this form; if not, the caller calls kefa_parse().
 */
static __always_inline bool kefa_eager_parse(const void *buf, u32 len, struct kefa_eager *e)
{
	const struct kefa_eager_tagrtm_hdr *hdr = buf;
	const struct kefa_req_opt_connid_hdr *opt = buf + sizeof(hdr->hdr);
	__le64 tag;
	u32 first;

	if (len < sizeof(hdr->hdr) + sizeof(*opt))
		return false;
	first = le32_to_cpu(*(const __le32 *)buf) & ~KEFA_EAGER_HINTS;
	e->tag = 0;
	e->tagged = first == KEFA_EAGER_FIRST(KEFA_EAGER_TAGRTM_PKT);
	if (likely(e->tagged)) {
		opt = buf + sizeof(*hdr);
		if (len < sizeof(*hdr) + sizeof(*opt))
			return false;
		memcpy(&tag, &hdr->tag, sizeof(tag));
		e->tag = le64_to_cpu(tag);
	} else if (first != KEFA_EAGER_FIRST(KEFA_EAGER_MSGRTM_PKT)) {
		return false;
	}
	e->msg_id = le32_to_cpu(hdr->hdr.msg_id);
	e->connid = le32_to_cpu(opt->connid);
	e->data = opt + 1;
	e->len = len - (u32)(e->data - buf);
	return true;
}

/**
 * kefa_copy_data() - copy a message that is likely to be short
 * @to: destination
 * @from: source
 * @len: length in bytes
 *
 * Context: Any.
 */
static __always_inline void kefa_copy_data(void *to, const void *from, size_t len)
{
	u64 first, last;

	/* Copy 8 to 16 bytes by two overlapping moves, which avoids a call. */
	if (len - sizeof(u64) <= sizeof(u64)) {
		memcpy(&first, from, sizeof(first));
		memcpy(&last, from + len - sizeof(last), sizeof(last));
		memcpy(to, &first, sizeof(first));
		memcpy(to + len - sizeof(last), &last, sizeof(last));
		return;
	}
	memcpy(to, from, len);
}

/* --- medium messages --- */

/**
 * struct kefa_part - contents of a MEDIUM packet
 * @e: contents that it has in common with an eager packet; with more than 0 bytes of data
 * @total: length of the message
 * @off: offset of the data in the message; @off + @e.len is at most @total
 *
 * The values equal those that kefa_parse() returns.
 */
struct kefa_part {
	struct kefa_eager	e;
	u64			total;
	u64			off;
};

/**
 * kefa_part_parse() - parse a MEDIUM packet in its most frequent form
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 * @p: takes the contents
 *
 * Context: Any.
 * Return: whether the packet has this form; if not, the caller calls kefa_parse().
 */
static __always_inline bool kefa_part_parse(const void *buf, u32 len, struct kefa_part *p)
{
	const struct kefa_medium_tagrtm_hdr *hdr = buf;
	const struct kefa_req_opt_connid_hdr *opt = buf + sizeof(hdr->hdr);
	__le64 total, off, tag = 0;
	u32 first;

	if (len <= sizeof(hdr->hdr) + sizeof(*opt))
		return false;
	first = le32_to_cpu(*(const __le32 *)buf) & ~KEFA_EAGER_HINTS;
	p->e.tagged = first == KEFA_EAGER_FIRST(KEFA_MEDIUM_TAGRTM_PKT);
	if (!p->e.tagged && first != KEFA_EAGER_FIRST(KEFA_MEDIUM_MSGRTM_PKT))
		return false;
	memcpy(&total, &hdr->hdr.msg_length, sizeof(total));
	memcpy(&off, &hdr->hdr.seg_offset, sizeof(off));
	if (p->e.tagged) {
		if (len <= sizeof(*hdr) + sizeof(*opt))
			return false;
		memcpy(&tag, &hdr->tag, sizeof(tag));
		opt = buf + sizeof(*hdr);
	}
	p->e.msg_id = le32_to_cpu(hdr->hdr.msg_id);
	p->e.connid = le32_to_cpu(opt->connid);
	p->total = le64_to_cpu(total);
	p->off = le64_to_cpu(off);
	p->e.tag = le64_to_cpu(tag);
	p->e.data = opt + 1;
	p->e.len = len - (u32)(p->e.data - buf);
	return p->off < p->total && p->e.len <= p->total - p->off;
}

/* --- messages that their receiver reads --- */

/**
 * struct kefa_read - contents of a LONGREAD packet
 * @e: contents that it has in common with an eager packet; without data
 * @type: enum kefa_pkt_type
 * @total: length of the message, more than 0
 * @send_id: id of the sender's operation
 * @key: key of the sender's region
 * @addr: address of the message in the region
 *
 * The values equal those that kefa_parse() returns.
 */
struct kefa_read {
	struct kefa_eager	e;
	u8			type;
	u64			total;
	u32			send_id;
	u32			key;
	u64			addr;
};

/**
 * kefa_read_parse() - parse a LONGREAD packet in its most frequent form
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 * @r: takes the contents
 *
 * Context: Any.
 * Return: whether the packet has this form; if not, the caller calls kefa_parse().
 */
static __always_inline bool kefa_read_parse(const void *buf, u32 len, struct kefa_read *r)
{
	const struct kefa_longread_tagrtm_hdr *hdr = buf;
	const struct kefa_req_opt_connid_hdr *opt = buf + sizeof(hdr->hdr);
	const struct kefa_rma_iov *iov;
	__le64 total, tag = 0;
	u64 end;
	u32 first;

	if (len < sizeof(hdr->hdr) + sizeof(*opt) + sizeof(*iov))
		return false;
	first = le32_to_cpu(*(const __le32 *)buf) & ~KEFA_EAGER_HINTS;
	r->e.tagged = first == KEFA_EAGER_FIRST(KEFA_LONGREAD_TAGRTM_PKT);
	if (r->e.tagged) {
		memcpy(&tag, &hdr->tag, sizeof(tag));
		opt = buf + sizeof(*hdr);
	} else if (first != KEFA_EAGER_FIRST(KEFA_LONGREAD_MSGRTM_PKT)) {
		return false;
	}
	iov = (const void *)(opt + 1);
	if (len != (const void *)(iov + 1) - buf || le32_to_cpu(hdr->hdr.read_iov_count) != 1)
		return false;
	memcpy(&total, &hdr->hdr.msg_length, sizeof(total));
	r->type = *(const u8 *)buf;
	r->e.msg_id = le32_to_cpu(hdr->hdr.msg_id);
	r->e.connid = le32_to_cpu(opt->connid);
	r->e.tag = le64_to_cpu(tag);
	r->e.data = iov + 1;
	r->e.len = 0;
	r->total = le64_to_cpu(total);
	r->send_id = le32_to_cpu(hdr->hdr.send_id);
	r->addr = le64_to_cpu(iov->addr);
	r->key = le64_to_cpu(iov->key);
	return r->total && le64_to_cpu(iov->len) == r->total &&
	       le64_to_cpu(iov->key) <= U32_MAX &&
	       !check_add_overflow(r->addr, r->total, &end);
}

/**
 * kefa_eor_parse() - parse an EOR packet with the connid
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 *
 * Context: Any.
 * Return: the packet; or NULL if it has another form, and the caller calls kefa_parse().
 */
static __always_inline const struct kefa_eor_hdr *kefa_eor_parse(const void *buf, u32 len)
{
	if (len != sizeof(struct kefa_eor_hdr) ||
	    le32_to_cpu(*(const __le32 *)buf) != KEFA_EAGER_FIRST(KEFA_EOR_PKT))
		return NULL;
	return buf;
}

#endif /* KEFA_RDM_FAST_PARSE_H */
