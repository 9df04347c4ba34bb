/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Kernel verbs as the harness' peer and the ULP without kOFI use them: a queue
 * pair with its own completion queue, of EFA's SRD type or a plain RC one.
 */
#ifndef KOFI_BENCH_VERBS_H
#define KOFI_BENCH_VERBS_H

#include <rdma/ib_verbs.h>
#include <efa_verbs.h>
#include "bench.h"

#define KB_DEPTH	128

/**
 * struct kb_qp - a queue pair
 * @dev: the device, referenced
 * @pd: protection domain
 * @cq: completion queue for both directions
 * @qp: the queue pair
 * @ah: address handle of the peer, for SRD
 * @srd: the queue pair has EFA's SRD type
 * @gid: GID of the device
 * @gid_index: index of @gid in the device's table
 * @qkey: Q_Key, for SRD
 */
struct kb_qp {
	struct ib_device	*dev;
	struct ib_pd		*pd;
	struct ib_cq		*cq;
	struct ib_qp		*qp;
	struct ib_ah		*ah;
	bool			srd;
	union ib_gid		gid;
	u32			gid_index;
	u32			qkey;
};

/* qp.c */
int kb_qp_open(struct kb_qp *q, const char *name, u32 depth,
	       ib_comp_handler handler, void *context);
int kb_qp_connect(struct kb_qp *q, const struct kb_addr *peer);
void kb_qp_addr(const struct kb_qp *q, struct kb_addr *addr);
void kb_qp_close(struct kb_qp *q);

/* peer.c */

/**
 * struct kb_peer - the peer, which the harness controls
 * @q: queue pair of the peer
 * @buf: memory for messages and for the ULP's reads and writes
 * @size: size of @buf in bytes
 * @stride: distance between packets, if the ULP writes them
 * @dma: DMA address of @buf
 * @mr: region of @buf
 */
struct kb_peer {
	struct kb_qp	q;
	void		*buf;
	size_t		size;
	u32		stride;
	u64		dma;
	struct ib_mr	*mr;
};

struct kb_peer *kb_peer_open(const struct kb_test *test, bool packets, struct kb_addr *addr);
int kb_peer_connect(struct kb_peer *peer, const struct kb_addr *addr);
int kb_peer_region(struct kb_peer *peer, struct kb_addr *addr);
void kb_peer_close(struct kb_peer *peer);
int kb_peer_recv(struct kb_peer *peer, const struct kb_test *test);
int kb_peer_send(struct kb_peer *peer, struct kb_end *end);
int kb_peer_greet(struct kb_peer *peer, struct kb_end *end);
int kb_peer_drain(struct kb_peer *peer, const struct kb_test *test);

#endif /* KOFI_BENCH_VERBS_H */
