/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parsers of requests for reads and writes by packets, and of answers, in their most frequent
 * forms: one piece of memory, and the connid as the only optional header.
 */
#ifndef KEFA_RDM_FAST_FAR_H
#define KEFA_RDM_FAST_FAR_H

#include <linux/overflow.h>
#include "fast_parse.h"

/* Flag that repeats the type, which libfabric sets. */
#define KEFA_FAR_HINT		((u32)KEFA_REQ_RMA << 16)

/* Lengths of requests with one piece of memory and the connid, without data. */
#define KEFA_FAR_TAIL							\
	(sizeof(struct kefa_rma_iov) + sizeof(struct kefa_req_opt_connid_hdr))
#define KEFA_FAR_RTW		(sizeof(struct kefa_eager_rtw_hdr) + KEFA_FAR_TAIL)
#define KEFA_FAR_RTR		(sizeof(struct kefa_rtr_hdr) + KEFA_FAR_TAIL)
#define KEFA_FAR_RTA		(sizeof(struct kefa_rta_hdr) + KEFA_FAR_TAIL)

/**
 * struct kefa_far - contents of a request
 * @connid: connid of the sender
 * @recv_id: of a read, id of the sender's operation
 * @addr: address of the memory
 * @key: key of the memory
 * @len: length of the memory, more than 0
 * @data: of a write, the data
 *
 * The values equal those that kefa_parse() returns.
 */
struct kefa_far {
	u32		connid;
	u32		recv_id;
	u64		addr;
	u64		key;
	u64		len;
	const void	*data;
};

/* Parse the memory and the connid. Return: false if kefa_parse() has to say what is wrong. */
static __always_inline bool kefa_far_parse_tail(const struct kefa_rma_iov *iov, u64 len,
						struct kefa_far *f)
{
	const struct kefa_req_opt_connid_hdr *opt = (const void *)(iov + 1);
	u64 end;

	f->connid = le32_to_cpu(opt->connid);
	f->addr = le64_to_cpu(iov->addr);
	f->key = le64_to_cpu(iov->key);
	f->len = len;
	return len && le64_to_cpu(iov->len) == len && !check_add_overflow(f->addr, len, &end);
}

/**
 * kefa_rtw_parse() - parse an EAGER_RTW packet in its most frequent form
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 * @f: takes the contents
 *
 * Context: Any.
 * Return: whether the packet has this form; if not, the caller calls kefa_parse().
 */
static __always_inline bool kefa_rtw_parse(const void *buf, u32 len, struct kefa_far *f)
{
	const struct kefa_eager_rtw_hdr *hdr = buf;

	if (len < KEFA_FAR_RTW || le32_to_cpu(hdr->rma_iov_count) != 1 ||
	    (le32_to_cpu(*(const __le32 *)buf) & ~KEFA_FAR_HINT) !=
	    KEFA_EAGER_FIRST(KEFA_EAGER_RTW_PKT))
		return false;
	f->data = buf + KEFA_FAR_RTW;
	return kefa_far_parse_tail(hdr->rma_iov, len - KEFA_FAR_RTW, f);
}

/**
 * kefa_rtr_parse() - parse a SHORT_RTR packet in its most frequent form
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 * @f: takes the contents
 *
 * Context: Any.
 * Return: whether the packet has this form, and a window for all data; if not, the caller calls
 * kefa_parse().
 */
static __always_inline bool kefa_rtr_parse(const void *buf, u32 len, struct kefa_far *f)
{
	const struct kefa_rtr_hdr *hdr = buf;
	__le64 total;

	if (len != KEFA_FAR_RTR || le32_to_cpu(hdr->rma_iov_count) != 1 ||
	    (le32_to_cpu(*(const __le32 *)buf) & ~KEFA_FAR_HINT) !=
	    KEFA_EAGER_FIRST(KEFA_SHORT_RTR_PKT))
		return false;
	memcpy(&total, &hdr->msg_length, sizeof(total));
	f->recv_id = le32_to_cpu(hdr->recv_id);
	return le32_to_cpu(hdr->recv_length) >= le64_to_cpu(total) &&
	       kefa_far_parse_tail(hdr->rma_iov, le64_to_cpu(total), f);
}

/**
 * kefa_readrsp_parse() - parse a READRSP packet in its most frequent form
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 *
 * Context: Any.
 * Return: the packet, with @len - sizeof(struct kefa_readrsp_hdr) bytes of data; or NULL if it has
 * another form, and the caller calls kefa_parse().
 */
static __always_inline const struct kefa_readrsp_hdr *kefa_readrsp_parse(const void *buf, u32 len)
{
	const struct kefa_readrsp_hdr *hdr = buf;
	__le64 data;

	if (len <= sizeof(*hdr) ||
	    le32_to_cpu(*(const __le32 *)buf) != KEFA_EAGER_FIRST(KEFA_READRSP_PKT))
		return NULL;
	memcpy(&data, &hdr->seg_length, sizeof(data));
	return le64_to_cpu(data) == len - sizeof(*hdr) ? hdr : NULL;
}

/* --- atomic operations --- */

/* Flag that repeats the type. */
#define KEFA_FETCH_HINT		((u32)KEFA_REQ_ATOMIC << 16)

/**
 * struct kefa_fetch - contents of a FETCH_RTA packet
 * @far: contents that it has in common with other requests
 * @msg_id: number of the operation
 * @datatype: type of the elements
 * @op: the operation
 *
 * The values equal those that kefa_parse() returns.
 */
struct kefa_fetch {
	struct kefa_far	far;
	u32		msg_id;
	u32		datatype;
	u32		op;
};

/**
 * kefa_fetch_parse() - parse a FETCH_RTA packet in its most frequent form
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 * @f: takes the contents
 *
 * Context: Any.
 * Return: whether the packet has this form; if not, the caller calls kefa_parse().
 */
static __always_inline bool kefa_fetch_parse(const void *buf, u32 len, struct kefa_fetch *f)
{
	const struct kefa_rta_hdr *hdr = buf;

	if (len <= KEFA_FAR_RTA || le32_to_cpu(hdr->rma_iov_count) != 1 ||
	    (le32_to_cpu(*(const __le32 *)buf) & ~KEFA_FETCH_HINT) !=
	    KEFA_EAGER_FIRST(KEFA_FETCH_RTA_PKT))
		return false;
	f->msg_id = le32_to_cpu(hdr->msg_id);
	f->datatype = le32_to_cpu(hdr->atomic_datatype);
	f->op = le32_to_cpu(hdr->atomic_op);
	f->far.recv_id = le32_to_cpu(hdr->id);
	f->far.data = buf + KEFA_FAR_RTA;
	return kefa_far_parse_tail(hdr->rma_iov, len - KEFA_FAR_RTA, &f->far);
}

/**
 * kefa_atomrsp_parse() - parse an ATOMRSP packet in its most frequent form
 * @buf: the packet, aligned to 4 bytes
 * @len: length of the packet
 *
 * Context: Any.
 * Return: the packet, with @len - sizeof(struct kefa_atomrsp_hdr) bytes of data; or NULL if it has
 * another form, and the caller calls kefa_parse().
 */
static __always_inline const struct kefa_atomrsp_hdr *kefa_atomrsp_parse(const void *buf, u32 len)
{
	const struct kefa_atomrsp_hdr *hdr = buf;
	__le64 data;

	if (len <= sizeof(*hdr) ||
	    le32_to_cpu(*(const __le32 *)buf) != KEFA_EAGER_FIRST(KEFA_ATOMRSP_PKT))
		return NULL;
	memcpy(&data, &hdr->seg_length, sizeof(data));
	return le64_to_cpu(data) == len - sizeof(*hdr) ? hdr : NULL;
}

#endif /* KEFA_RDM_FAST_FAR_H */
