/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Eager messages as nearly all are: one packet, whose header has the connid and nothing else
 * that is optional. libfabric sends them like that to whom it has shaken hands with, and so do
 * we.
 */
#ifndef KEFA_RDM_EAGER_H
#define KEFA_RDM_EAGER_H

#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

/**
 * struct kefa_eager - what such a packet says
 * @tagged: the message has a tag
 * @msg_id: number of the message
 * @connid: who sends it
 * @len: bytes of @data
 * @tag: the tag, or 0
 * @data: the message
 *
 * kefa_parse() says the same of it.
 */
struct kefa_eager {
	bool		tagged;
	u32		msg_id;
	u32		connid;
	u32		len;
	u64		tag;
	const void	*data;
};

/* The first four bytes of a header; flags that only repeat the type may be there or not. */
#define KEFA_EAGER_HINTS	((u32)(KEFA_REQ_MSG | KEFA_REQ_TAGGED) << 16)
#define KEFA_EAGER_FIRST(type)						\
	((type) | KEFA_PROTOCOL_VERSION << 8 | (u32)KEFA_PKT_CONNID_HDR << 16)

/**
 * kefa_eager_parse() - read a packet, if it is such a one
 * @buf: the packet, at a multiple of 4
 * @len: its bytes
 * @e: set to what it says
 *
 * Context: Any.
 * Return: whether it is; if not, kefa_parse() says what it is.
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
 * kefa_copy_data() - copy a message, which is likely to be short
 * @to: where to
 * @from: where from
 * @len: bytes
 *
 * Context: Any.
 */
static __always_inline void kefa_copy_data(void *to, const void *from, size_t len)
{
	u64 first, last;

	/* Two moves that overlap, instead of a call. */
	if (len - sizeof(u64) <= sizeof(u64)) {
		memcpy(&first, from, sizeof(first));
		memcpy(&last, from + len - sizeof(last), sizeof(last));
		memcpy(to, &first, sizeof(first));
		memcpy(to + len - sizeof(last), &last, sizeof(last));
		return;
	}
	memcpy(to, from, len);
}

#endif /* KEFA_RDM_EAGER_H */
