/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A hostile peer of the second endpoint: its packets are what a case makes up. */
#ifndef KOFI_EFA_RDM_VILLAIN_H
#define KOFI_EFA_RDM_VILLAIN_H

#include "efa_rdm_scene.h"

/* In the address vector of the second endpoint, if the case inserts it. */
#define VILLAIN_GID	9
#define VILLAIN_SLID	30
#define VILLAIN_QPN	0x500

/**
 * struct villain - a hostile peer
 * @qpn: its queue pair
 * @connid: key of the queue pair
 * @slid: number of its address handle
 * @gid: last byte of its GID
 */
struct villain {
	u32	qpn;
	u32	connid;
	u16	slid;
	u8	gid;
};

/* Fields of a packet; all others are 0. */
struct villain_pkt {
	u8	type;
	bool	raw;
	u32	msg_id;
	u32	id;
	u64	tag;
	u64	total;
	u64	off;
	size_t	len;
};

static inline struct villain villain(u32 n)
{
	const struct fi_efa_addr addr = efa_addr(VILLAIN_GID, VILLAIN_QPN + n);

	return (struct villain) {
		.qpn	= addr.qpn,
		.connid	= addr.qkey,
		.slid	= VILLAIN_SLID,
		.gid	= VILLAIN_GID,
	};
}

static inline fi_addr_t villain_insert(struct kunit *test, struct rdm_pair *pair)
{
	const struct fi_efa_addr addr = efa_addr(VILLAIN_GID, VILLAIN_QPN);
	fi_addr_t to = FI_ADDR_NOTAVAIL;

	KUNIT_EXPECT_EQ(test, fi_av_insert(pair->end[1].av, &addr, 1, &to, 0, NULL), 1);
	return to;
}

/* Have the second endpoint receive a packet. Return: false if it has posted no receive. */
static inline bool villain_send(struct rdm_pair *pair, const struct villain *v,
				const struct villain_pkt *p)
{
	static u8 packet[SZ_16K];
	struct efake_wr *recv = efake_recv(pair->end[1].qp, 0);
	struct kefa_wc wc = { .src_qpn = v->qpn, .slid = v->slid };
	struct kefa_raw_addr addr = {
		.gid	= { 0xfe, 0x80, [15] = v->gid },
		.qpn	= cpu_to_le16(v->qpn),
		.qkey	= cpu_to_le32(v->connid),
	};
	struct kefa_pkt pkt = {
		.row		= kefa_row_of(p->type),
		.flags		= p->raw ? KEFA_REQ_OPT_RAW_ADDR_HDR : KEFA_PKT_CONNID_HDR,
		.has_connid	= true,
		.connid		= v->connid,
		.msg_id		= p->msg_id,
		.send_id	= p->id,
		.recv_id	= p->id,
		.recv_length	= 1,
		.tag		= p->tag,
		.msg_length	= p->total,
		.seg_offset	= p->off,
	};
	u8 bytes[KEFA_RAW_ADDR_LEN] = { };

	if (!recv)
		return false;
	/* It shares memory with the tag. */
	if (p->type == KEFA_HANDSHAKE_PKT)
		pkt.shake.nextra_p3 = KEFA_NEXTRA_P3 + 1;
	memcpy(bytes, &addr, sizeof(addr));
	pkt.raw = bytes;
	pkt.raw_len = sizeof(bytes);
	wc.len = kefa_build(&pkt, packet, sizeof(packet)) + p->len;
	efake_wr_write(recv, packet, wc.len);
	efake_recv_done(recv, &wc);
	return true;
}

/* Complete, with a status, what the second endpoint has sent to other peers than the first. */
static inline void villain_take(struct rdm_pair *pair, u32 status)
{
	struct efake_qp *qp = pair->end[1].qp;
	unsigned int n, i = 0;
	struct efake_wr *wr;

	for (n = 0; n < 1000 && (wr = efake_sent(qp, i)); n++) {
		if (wr->qpn == pair->end[0].name.qpn)
			i++;
		else
			efake_wr_done(wr, status);
	}
}

/* Send a packet, and take what the second endpoint answers. */
static inline bool villain_says(struct rdm_pair *pair, const struct villain *v,
				const struct villain_pkt *p)
{
	const bool sent = villain_send(pair, v, p);

	efake_settle_all();
	villain_take(pair, 0);
	efake_settle_all();
	return sent;
}

#endif /* KOFI_EFA_RDM_VILLAIN_H */
