/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Eager messages in their most frequent form: one packet, whose header has the connid and no other
 * optional header. Both libfabric and this provider send them in this form after the handshake.
 */
#ifndef KEFA_RDM_FAST_EAGER_H
#define KEFA_RDM_FAST_EAGER_H

#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

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

#endif /* KEFA_RDM_FAST_EAGER_H */
