/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_rc's engine without ib_core and without a device: two connections, whose datagrams wait
 * until a case delivers them, in any order, or has them fail.
 */
#ifndef RC_SCENE_H
#define RC_SCENE_H

#include <kunit/test.h>
#include "../../ulp/rc/conn.h"

#define RC_LOG		256
#define RC_BUFS		256
#define RC_MEMORY	65536
#define RC_SENDS	32
#define RC_RECVS	16
#define RC_MR_PAGES	16
#define RC_OTHERS	8
#define RC_GRANTS	8	/* that a device has */
#define RC_KEYS		16	/* of a region of the device */
#define RC_SLOTS	128	/* of a device, for writes */

/**
 * struct rc_done - a completion
 * @id: the work request's
 * @recv: it is a receive
 * @err: 0 or a negative errno
 * @bytes: bytes of the message
 * @inv: a key was invalidated
 * @key: the key
 */
struct rc_done {
	u64	id;
	bool	recv;
	int	err;
	u32	bytes;
	bool	inv;
	u32	key;
};

/**
 * struct rc_side - one end
 * @q: its queue
 * @c: the connection
 * @mrs: its regions
 * @peer: the other end
 * @log: completions
 * @n: number of @log
 * @notified: calls of krc_up_notify() after which there were new completions
 * @seen: @n at the last of these
 * @stops: calls of krc_up_stopped()
 * @cause: its argument
 * @flushes: calls of krc_up_flushed()
 * @lost: calls of krc_net_lost()
 * @sent: datagrams that wait, struct krc_buf
 * @nsent: number of these
 * @total: number of all that were sent
 * @opened: grants of its device, and regions of the device that these have
 * @nopened: number of regions that the device has made, also of those that are closed
 * @ngrants: number of grants
 * @opens: attempts to open one
 * @open_err: result of opening another one
 * @close_err: result of closing one, as often as @closes_fail says
 * @closes_fail: number of closes that will fail
 * @stucks: calls of krc_net_stuck()
 * @gone: its device was removed
 * @todo: grants that wait for the device
 * @ntodo: number of these
 * @rmas: transfers that wait for the device
 * @nrmas: number of these
 * @bufs: all datagrams
 * @memory: memory of the ULP
 * @inited: @c is initialized
 */
struct rc_side {
	struct krc_queue	q;
	struct krc_conn		c;
	struct krc_mrs		mrs;
	struct rc_side		*peer;
	struct rc_done		log[RC_LOG];
	unsigned int		n;
	unsigned int		notified;
	unsigned int		seen;
	unsigned int		stops;
	enum krc_cause		cause;
	unsigned int		flushes;
	unsigned int		lost;
	struct list_head	sent;
	unsigned int		nsent;
	unsigned int		total;
	struct rc_region {
		struct krc_grant	*g;
		bool			reachable;	/* by its key */
		u64			key;		/* repeats after RC_KEYS registrations */
		u64			base;
		u32			access;
		struct krc_mr_map	map;
		u64			pages[RC_MR_PAGES];
	} opened[RC_GRANTS];
	unsigned int		nopened;
	unsigned int		ngrants;
	unsigned int		opens;
	int			open_err;
	int			close_err;
	unsigned int		closes_fail;
	unsigned int		stucks;
	bool			gone;
	struct list_head	todo;
	unsigned int		ntodo;
	struct krc_swr		*rmas[RC_SENDS];
	unsigned int		nrmas;
	struct krc_buf		*bufs;
	u8			*memory;
	bool			inited;
};

/**
 * struct rc_scene - both ends
 * @a: active side
 * @b: passive side
 * @others: connections of the queue of one of these, from rc_another()
 * @nothers: number of these
 * @ended: nothing waits any more: datagrams end as soon as they are sent
 */
struct rc_scene {
	struct rc_side	a;
	struct rc_side	b;
	struct rc_side	*others[RC_OTHERS];
	unsigned int	nothers;
	bool		ended;
};

extern struct rc_scene *rc;

int rc_scene_init(struct kunit *test);
void rc_scene_exit(struct kunit *test);
int rc_suite_init(struct kunit_suite *suite);
void rc_suite_exit(struct kunit_suite *suite);
void rc_connect(struct kunit *test);
void rc_connect_rma(struct kunit *test, unsigned int grants);
void rc_connect_reads(struct kunit *test, unsigned int grants, bool writes);
struct rc_side *rc_another(struct kunit *test, struct rc_side *s);
void rc_take_bufs(struct rc_side *s, struct list_head *taken, u32 leave);
void rc_give_bufs(struct rc_side *s, struct list_head *taken);

/* Work requests. */
int rc_post(struct rc_side *s, const struct krc_swr *w, const struct krc_sge *sge);
int rc_send(struct rc_side *s, u64 id, const void *data, u32 len);
int rc_send_inv(struct rc_side *s, u64 id, const void *data, u32 len, u32 key);
int rc_write(struct rc_side *s, u64 id, const void *data, u32 len, u32 key, u64 addr);
int rc_read(struct rc_side *s, u64 id, void *data, u32 len, u32 key, u64 addr);
int rc_recv(struct rc_side *s, u64 id, void *buf, u32 len);
struct krc_mr *rc_mr(struct kunit *test, struct rc_side *s, void *memory, u32 pages);
void rc_map(struct krc_mr *mr, void *memory, u32 pages);
int rc_reg(struct rc_side *s, u64 id, struct krc_mr *mr, u64 iova, u64 len, u32 access);
int rc_inval(struct rc_side *s, u64 id, u32 key);

/* Datagrams. */
struct krc_buf *rc_nth(struct rc_side *s, unsigned int n);
void rc_deliver(struct rc_side *s, struct krc_buf *buf);
void rc_end(struct rc_side *s, struct krc_buf *buf, int err);
void rc_arrive(struct rc_side *s, unsigned int n);
void rc_all(void);
void rc_inject(struct rc_side *to, const struct krc_dgram *d, const void *data, u32 len);
void rc_runs(void);

/* Registrations, invalidations and transfers of the device. */
struct krc_grant *rc_grant_nth(struct rc_side *s, unsigned int n);
void rc_grant_end(struct rc_side *s, unsigned int n, int err);
void rc_rma_end(struct rc_side *s, unsigned int n, int err);
bool rc_reaches(const struct rc_side *s, const struct krc_mr *mr);

static inline u32 rc_key(const struct krc_mr *mr)
{
	return KRC_KEY(mr->index, 7);
}

/* Check the nth completion of a side. */
#define RC_EXPECT(test, side, nth, wr, error)				\
do {									\
	KUNIT_ASSERT_GT(test, (side)->n, (unsigned int)(nth));		\
	KUNIT_EXPECT_EQ(test, (side)->log[nth].id, (u64)(wr));		\
	KUNIT_EXPECT_EQ(test, (side)->log[nth].err, error);		\
} while (0)

#endif /* RC_SCENE_H */
