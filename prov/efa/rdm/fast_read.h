/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of messages that their receiver reads, in their most frequent form: the request has the
 * connid, no other optional header, and a single region. fast_read.c
 */
#ifndef KEFA_RDM_FAST_READ_H
#define KEFA_RDM_FAST_READ_H

#include "fast_eager.h"

struct ib_wc;
struct kefa_rdm;
struct kefa_rop;
struct kefa_rs;
struct kefa_source;
struct kefa_ts;

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
 * kefa_read_is() - check for a packet of a message that its receiver reads
 * @buf: the packet, or what was in the buffer before, if the packet is empty
 *
 * Context: Any.
 * Return: whether the packet may be one for kefa_read_arrived(), which parses it.
 */
static __always_inline bool kefa_read_is(const void *buf)
{
	const u8 type = *(const u8 *)buf;

	return type == KEFA_EOR_PKT || type == KEFA_LONGREAD_MSGRTM_PKT ||
	       type == KEFA_LONGREAD_TAGRTM_PKT;
}

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

bool kefa_read_arrived(struct kefa_rdm *rdm, struct kefa_rs *rs, const struct ib_wc *wc);
bool kefa_read_sent(struct kefa_rdm *rdm, struct kefa_ts *ts, const struct ib_wc *wc);

/* source.c */

struct kefa_source *kefa_source_one(struct kefa_rdm *rdm, void *buf, size_t len);
void kefa_source_post(struct kefa_rdm *rdm, struct kefa_rop *rop, struct kefa_source *s);
void kefa_source_valid(struct kefa_rdm *rdm, struct kefa_rop *rop);
void kefa_source_end(struct kefa_rdm *rdm, struct kefa_rop *rop);

#endif /* KEFA_RDM_FAST_READ_H */
