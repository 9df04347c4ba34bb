/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Private declarations of the engine. All functions run in the device's worker, under
 * efasim_dev.lock.
 */
#ifndef EFASIM_PRIV_H
#define EFASIM_PRIV_H

#include "engine.h"

/* A reliable packet, kept until the peer has acknowledged it. */
struct efasim_txp {
	struct list_head list;
	struct efasim_pkt pkt;
	ktime_t sent;
	u32 tries;
	u32 len;
	bool sacked;
	u8 buf[];
};

struct efasim_rxp {
	struct list_head list;
	u32 len;
	u8 buf[];
};

struct efasim_lane_state {
	u32 tx_next;
	u32 tx_una;
	u32 tx_sacked;	/* highest sequence that a SACK named, plus one */
	u32 rx_next;
	u64 rx_map;	/* bit i: rx_next + i has been received */
	bool rx_synced;
	struct efasim_txp *slot[EFASIM_WINDOW];
};

/*
 * A remote device. There is one for each GID that this device has sent to or received
 * from. It is kept as long as the device exists, because its sequence numbers identify
 * duplicates.
 */
struct efasim_peer {
	struct rhash_head node;	/* in dev->peers_by_gid */
	u8 gid[EFASIM_GID_LEN];
	u32 id;
	u64 incarnation;	/* 0: unknown */
	u64 former;		/* previous incarnation, or 0 */
	bool confirmed;		/* the peer sent a packet since the first of ops began */
	struct efasim_lane_state lane[EFASIM_LANES];
	struct list_head ops;	/* operations that wait for this peer */
	struct list_head txops;	/* operations with segments to send */
	struct list_head resps;	/* responses that wait for room in the window */
	u32 num_resps;
	struct list_head ack;	/* in dev->ackq while an acknowledgment is due */
	struct efasim_timer timer;
	ktime_t heard;
	u32 srtt_us;
	u32 backoff;
};

/* engine.c */
void efasim_dev_arm(struct efasim_dev *dev, struct efasim_timer *timer,
		    ktime_t due);
void efasim_dev_disarm(struct efasim_dev *dev, struct efasim_timer *timer);

/* mr.c */
bool efasim_dev_mr_ok(struct efasim_dev *dev, u32 pdn, u32 key, u64 addr,
		      u32 len, u8 access);
bool efasim_dev_mr_copy(struct efasim_dev *dev, u32 pdn, u32 key, u64 addr,
			void *buf, u32 len, u8 access,
			enum efasim_mr_side side);
bool efasim_dev_sge_copy(struct efasim_dev *dev, u32 pdn,
			 const struct efasim_sge *sge, int num_sge, u32 offset,
			 void *buf, u32 len, enum efasim_mr_side side);
bool efasim_dev_mr_valid(struct efasim_dev *dev, const struct efasim_mr *mr,
			 const struct efasim_reg *reg);
void efasim_dev_mr_set(struct efasim_mr *mr, const struct efasim_reg *reg);
enum efasim_status efasim_dev_mr_reg(struct efasim_qp *qp,
				     const struct efasim_wqe *wqe);
enum efasim_status efasim_dev_mr_inv(struct efasim_qp *qp, u32 key);
void efasim_dev_mr_done(struct efasim_dev *dev, const struct efasim_wqe *wqe);

/* peer.c */
struct efasim_peer *efasim_dev_peer(struct efasim_dev *dev, const u8 *gid,
				    bool create);
struct efasim_txp *efasim_dev_txp(gfp_t gfp, enum efasim_pkt_type type,
				  u32 length);
bool efasim_dev_room(const struct efasim_peer *peer, enum efasim_lane lane);
void efasim_dev_send(struct efasim_dev *dev, struct efasim_peer *peer,
		     struct efasim_txp *txp);
void efasim_dev_respond(struct efasim_dev *dev, struct efasim_peer *peer,
			struct efasim_txp *txp);
void efasim_dev_push(struct efasim_dev *dev, struct efasim_peer *peer);
u32 efasim_dev_input(struct efasim_dev *dev, const void *buf, u32 len,
		     const u8 *source);
void efasim_dev_flush_acks(struct efasim_dev *dev);
int efasim_dev_peers_init(struct efasim_dev *dev);
void efasim_dev_peers_free(struct efasim_dev *dev);

/* hwfmt.c */
enum efasim_status efasim_hw_parse_wqe(const struct efasim_tx_wqe *d,
				       struct efasim_wqe *wqe);
bool efasim_dev_peek_rq(struct efasim_qp *qp, struct efasim_rqe *rqe);
void efasim_dev_cqe(struct efasim_cq *cq, const struct efasim_cqe *cqe);

/* request.c */
void efasim_dev_doorbells(struct efasim_dev *dev);
void efasim_dev_complete(struct efasim_op *op, enum efasim_status status);
void efasim_dev_drop_op(struct efasim_op *op);
void efasim_dev_flush_ops(struct efasim_qp *qp);
void efasim_dev_discard_sq(struct efasim_qp *qp, bool flush);
int efasim_dev_send_segment(struct efasim_dev *dev, struct efasim_peer *peer,
			    struct efasim_op *op);
void efasim_dev_answer(struct efasim_dev *dev, struct efasim_peer *peer,
		       const struct efasim_pkt *pkt);

/* respond.c */
struct efasim_txp *efasim_dev_request(struct efasim_dev *dev,
				      const struct efasim_pkt *pkt);
void efasim_dev_datagram(struct efasim_dev *dev, const struct efasim_pkt *pkt);
void efasim_dev_flush_rq(struct efasim_qp *qp);

/* admin.c */
struct efasim_qp *efasim_dev_find_qp(struct efasim_dev *dev, u32 qpn);
struct efasim_ah *efasim_dev_find_ah(struct efasim_dev *dev, u32 pdn,
				     const u8 *gid);
bool efasim_dev_is_known(struct efasim_dev *dev, const u8 *gid);
int efasim_dev_ahs_init(struct efasim_dev *dev);
void efasim_dev_ahs_free(struct efasim_dev *dev);

/* net.c */
void efasim_dev_xmit(struct efasim_dev *dev, const u8 *gid, const void *buf,
		     u32 len);
void efasim_dev_flush_tx(struct efasim_dev *dev);
bool efasim_dev_rx(struct efasim_dev *dev, u32 budget);
void efasim_dev_drop_held(struct efasim_dev *dev);

#endif /* EFASIM_PRIV_H */
