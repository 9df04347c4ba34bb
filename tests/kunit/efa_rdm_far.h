/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A peer that reads and writes memory of the second endpoint by packets that a case makes up. */
#ifndef KOFI_EFA_RDM_FAR_H
#define KOFI_EFA_RDM_FAR_H

#include "efa_rdm_scene.h"

/* Room for a region, in pages that aren't contiguous. */
#define FAR_BYTES	(32 * PAGE_SIZE)
/* Id of the peer's operation, if a case names no other. */
#define FAR_ID		0x5a5a0003

/**
 * struct far_pkt - a packet of the first endpoint, which hasn't sent it, or of another peer
 * @who: 0 for the first endpoint; or number of a peer that far_friend() has inserted
 * @type: enum kefa_pkt_type
 * @flags: further flags of the packet
 * @id: id of the peer's operation
 * @to: id of the second endpoint's operation
 * @n: number of @mem
 * @mem: memory of the second endpoint
 * @nfrom: number of @from
 * @from: memory of the peer that the second endpoint reads
 * @total: length of the read or write; 0 for the sum of @mem
 * @window: bytes that may be sent
 * @off: offset of the data
 * @data: the data, or NULL
 * @len: length of @data
 * @value: remote CQ data
 * @msg_id: number of an atomic operation
 * @datatype: its type
 * @op: its operation
 */
struct far_pkt {
	u32		who;
	u8		type;
	u16		flags;
	u32		id;
	u32		to;
	u32		n;
	struct fi_rma_iov mem[KEFA_IOV_MAX];
	u32		nfrom;
	struct fi_rma_iov from[KEFA_IOV_MAX];
	u64		total;
	u64		window;
	u64		off;
	const void	*data;
	size_t		len;
	u64		value;
	u32		msg_id;
	u32		datatype;
	u32		op;
};

/**
 * struct far - a pair of endpoints, and a region of the second one
 * @test: the test
 * @pair: the endpoints, which have exchanged HANDSHAKEs
 * @rdm: the second endpoint
 * @pages: pages of the memory
 * @mem: the memory
 * @mr: region with all of @mem, for reads and writes; NULL if the case has closed it
 * @data: memory of FAR_BYTES for data to send
 * @got: data of the last packet that far_take() has taken
 * @hdr: contents of its headers
 */
struct far {
	struct kunit	*test;
	struct rdm_pair	*pair;
	struct kefa_rdm	*rdm;
	u8		*pages;
	u8		*mem;
	struct fid_mr	*mr;
	u8		*data;
	u8		got[SZ_16K] __aligned(8);
	struct kefa_pkt	hdr;
};

struct far *far_new(struct kunit *test, const struct rdm_opts *opts);
/* Return: a piece of the region. */
struct fi_rma_iov far_piece(struct far *far, u64 off, size_t len);
/* Have the second endpoint receive a packet, and handle it. */
void far_send(struct far *far, const struct far_pkt *p);
/*
 * Complete the oldest packet of a type that the second endpoint has sent. Return: whether there was
 * one; @far->hdr and @far->got have its contents.
 */
bool far_take(struct far *far, u8 type, u32 status);
/* The same for a packet to a peer. */
bool far_take_of(struct far *far, u32 who, u8 type, u32 status);
/* Complete all packets of a type to a peer. Return: number of them. */
unsigned int far_take_each(struct far *far, u32 who, u8 type, u32 status);
/* Insert another peer, with a number from 1 on, at the second endpoint. */
fi_addr_t far_friend(struct far *far, u32 who);
/* Complete everything that the second endpoint has sent. */
void far_take_all(struct far *far);
void far_close(struct far *far);
/* For cases with several of them: the others leave theirs to the end of the case. */
void far_end(struct far *far);
/* Return: the peer of an endpoint. */
struct kefa_rpeer *far_peer(struct rdm_end *end);
/* Have delays of the second endpoint's peers last until far_delay_end(), however slow a case is. */
void far_delay(struct far *far);
/* End the delay of the first endpoint as a peer. */
void far_delay_end(struct far *far);
/* Return: number of packets that were dropped for a reason. */
u64 far_dropped(struct far *far, enum kefa_drop why);

#endif /* KOFI_EFA_RDM_FAR_H */
