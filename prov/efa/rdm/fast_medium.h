/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of medium messages as nearly all are: their header has the connid and nothing else that
 * is optional. fast_medium.c
 */
#ifndef KEFA_RDM_FAST_MEDIUM_H
#define KEFA_RDM_FAST_MEDIUM_H

#include "fast_eager.h"

/**
 * struct kefa_part - what such a packet says
 * @e: as of an eager message, but that its data is a part of the message, more than 0 bytes
 * @total: bytes of the message
 * @off: where in it the data belongs, which ends within it
 *
 * kefa_parse() says the same of it.
 */
struct kefa_part {
	struct kefa_eager	e;
	u64			total;
	u64			off;
};

/**
 * kefa_part_parse() - read a packet, if it is such a one
 * @buf: the packet, at a multiple of 4
 * @len: its bytes
 * @p: set to what it says
 *
 * Context: Any.
 * Return: whether it is; if not, kefa_parse() says what it is.
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

#endif /* KEFA_RDM_FAST_MEDIUM_H */
