/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Prepared headers of the most frequent messages: those in one packet, without delivery complete
 * and remote CQ data. shake.c makes them once for each endpoint.
 */
#ifndef KEFA_RDM_SHAPE_H
#define KEFA_RDM_SHAPE_H

#include <linux/string.h>
#include "select.h"
#include "shake.h"

#define KEFA_SHAPE_ROOM		64

/* Length of a header with a tag and the connid. */
#define KEFA_SHAPE_SHORT						\
	(sizeof(struct kefa_eager_tagrtm_hdr) + sizeof(struct kefa_req_opt_connid_hdr))

/**
 * struct kefa_shape - prepared header of an eager message
 * @bytes: the header, with 0 for number and tag
 * @room: room for data in the packet, in bytes
 * @hdr: length of the header
 * @tagged: the message has a tag
 * @type: type of the packet
 */
struct kefa_shape {
	u8	bytes[KEFA_SHAPE_ROOM];
	u32	room;
	u8	hdr;
	u8	type;
	bool	tagged;
};

void kefa_shape_make(struct kefa_shape *shape, const struct kefa_rdm_limits *lim,
		     const struct kefa_self *self, enum kefa_signs how, bool tagged);

/**
 * kefa_shape_write() - write a header
 * @shape: the prepared header
 * @to: takes the header, aligned to 8 bytes
 * @msg_id: number of the message
 * @tag: tag of the message, if it has one
 *
 * Context: Any.
 */
static inline void kefa_shape_write(const struct kefa_shape *shape, void *to, u32 msg_id, u64 tag)
{
	struct kefa_eager_tagrtm_hdr *hdr = to;

	memcpy(to, shape->bytes, shape->hdr);
	hdr->hdr.msg_id = cpu_to_le32(msg_id);
	if (shape->tagged)
		hdr->tag = cpu_to_le64(tag);
}

/**
 * kefa_shape_begin() - write a header, except the number and the tag
 * @shape: the prepared header
 * @to: takes the header, aligned to 8 bytes. Write the data later, because bytes after a short
 *	header are overwritten
 *
 * Context: Any.
 */
static __always_inline void kefa_shape_begin(const struct kefa_shape *shape, void *to)
{
	memcpy(to, shape->bytes, KEFA_SHAPE_SHORT);
	if (unlikely(shape->hdr > KEFA_SHAPE_SHORT))
		memcpy(to + KEFA_SHAPE_SHORT, shape->bytes + KEFA_SHAPE_SHORT,
		       KEFA_SHAPE_ROOM - KEFA_SHAPE_SHORT);
}

#endif /* KEFA_RDM_SHAPE_H */
