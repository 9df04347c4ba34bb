/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endpoints of which nobody waits for all sends: their posts, and one with a queue for sends. */
#ifndef KOFI_EFA_LAZY_H
#define KOFI_EFA_LAZY_H

#include "efa_scene.h"

#define LAZY_ACCESS	(FI_REMOTE_READ | FI_REMOTE_WRITE)

static inline ssize_t lazy_msg_on(struct fid_ep *ep, struct efa_scene *scene, long ctx, u64 flags)
{
	struct kvec iov = { scene->buf, 64 };
	struct fi_msg msg = { .addr = scene->peer, .context = (void *)ctx };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, iov.iov_len);
	return fi_sendmsg(ep, &msg, flags);
}

/* Complete the oldest send. */
static inline void lazy_done(struct efake_qp *qp)
{
	efake_wr_done(efake_sent(qp, 0), 0);
}

static inline struct fid_mr *lazy_mr(struct kunit *test, struct efa_scene *scene,
				     struct fid_ep *ep, struct fid_cq *cq)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 1, .access = LAZY_ACCESS, .cq = cq, .ep = ep,
	};
	struct fid_mr *mr = NULL;

	KUNIT_ASSERT_EQ(test, fi_mr_alloc(scene->domain, &attr, &mr, NULL), 0);
	return mr;
}

static inline int lazy_reg(struct efa_scene *scene, struct fid_mr *mr, u64 flags)
{
	const struct kvec iov = { scene->buf, PAGE_SIZE };
	const struct fi_mr_attr attr = {
		.type = FI_MR_KVEC, .mr_iov = &iov, .iov_count = 1, .access = LAZY_ACCESS,
	};

	return fi_mr_post_reg(mr, &attr, flags);
}

/**
 * struct lazy_two - an endpoint with a queue for sends; that for receives is the scene's
 * @attr: attributes of the queue for sends; neither handler nor wait object by default
 * @bind: flags of binding it besides FI_TRANSMIT
 * @cq: the queue for sends
 * @ep: the endpoint
 * @qp: queue pair of the endpoint
 */
struct lazy_two {
	struct fi_cq_attr	attr;
	u64			bind;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	struct efake_qp		*qp;
};

static inline void two_open(struct kunit *test, struct efa_scene *scene, struct lazy_two *two,
			    u32 cq_size)
{
	struct fi_cq_attr attr = two->attr;

	attr.format = FI_CQ_FORMAT_DATA;
	attr.size = cq_size;
	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &attr, &two->cq, NULL), 0);
	two->ep = efa_scene_apart(test, scene, scene->cq, &two->cq->fid, FI_TRANSMIT | two->bind);
	two->qp = efake_last_qp(scene->fake);
	efake_settle();
	KUNIT_EXPECT_TRUE(test, to_kefa_ep(two->ep)->split);
}

static inline void two_close(struct kunit *test, struct lazy_two *two)
{
	KUNIT_EXPECT_EQ(test, fi_close(&two->ep->fid), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&two->cq->fid), 0);
}

static inline ssize_t two_send(struct efa_scene *scene, struct lazy_two *two)
{
	return fi_send(two->ep, scene->buf, 64, NULL, scene->peer, two);
}

#endif /* KOFI_EFA_LAZY_H */
