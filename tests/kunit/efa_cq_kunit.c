// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions of the EFA provider: each post reserves an entry of the completion queue, and
 * returns it if there is no completion. Counters, handlers and sleepers are notified.
 */
#include <linux/completion.h>
#include "crew.h"
#include "efa_scene.h"

static int credits(struct efa_scene *scene)
{
	return atomic_read(&efa_cq(scene)->credits);
}

static void done(struct efa_scene *scene, u32 status)
{
	efake_wr_done(efake_sent(scene->qp, 0), status);
}

/* A post reserves an entry, and reading the completion releases it. */
static void cq_credit(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4,
	});

	KUNIT_EXPECT_EQ(test, credits(scene), 4);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 2), 0);
	KUNIT_EXPECT_EQ(test, credits(scene), 2);
	done(scene, 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, credits(scene), 2);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, credits(scene), 3);
	efake_wr_done(efake_recv(scene->qp, 0), 11);
	efa_expect_error(test, scene, 2, EMSGSIZE, 11);
	KUNIT_EXPECT_EQ(test, credits(scene), 4);
}

static void cq_full(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4,
	});
	struct kefa_ep *ep = efa_ep(scene);
	int i;

	for (i = 1; i <= 3; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 4), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 5), -EAGAIN);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 5), -EAGAIN);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 64, 5), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 64,
					scene->peer), -EAGAIN);
	KUNIT_EXPECT_EQ(test, ep->stats.again, 4);
	/* Completing makes no room; reading makes room for one. */
	done(scene, 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 5), -EAGAIN);
	efa_expect_done(test, scene, 1);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 5), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 6), -EAGAIN);
	done(scene, 13);
	efa_expect_error(test, scene, 2, ETIMEDOUT, 13);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 6), 0);
	KUNIT_EXPECT_EQ(test, ep->tx.nfree, ep->tx.base.size - 2);
	KUNIT_EXPECT_EQ(test, ep->rx.nfree, ep->rx.base.size - 2);
	/* All completions fit. */
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 4);
	KUNIT_EXPECT_EQ(test, credits(scene), 4);
}

/* A call that is refused for another reason doesn't keep an entry. */
static void cq_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4,
	});
	int i;

	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, efa_send(scene, EFAKE_MTU + 1, 1),
				-EMSGSIZE);
		KUNIT_EXPECT_EQ(test, fi_senddata(scene->ep, scene->buf, 64,
						  NULL, 1ULL << 32,
						  scene->peer, NULL), -EINVAL);
		KUNIT_EXPECT_EQ(test, fi_write(scene->ep, scene->buf, 64, NULL,
					       scene->peer, 0, 1ULL << 32,
					       NULL), -EINVAL);
		scene->fake->refuse = BIT(EFAKE_DMA_MAP);
		KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), -EAGAIN);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -EAGAIN);
		scene->fake->refuse = 0;
	}
	KUNIT_EXPECT_EQ(test, credits(scene), 4);
}

/* One queue, two endpoints. */
static void cq_shared(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4,
	});
	struct fid_ep *ep = efa_scene_ep(test, scene, 0), *first = scene->ep;
	struct efake_qp *qp;
	int i;

	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	qp = efake_last_qp(scene->fake);
	for (i = 1; i <= 2; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
	scene->ep = ep;
	for (i = 3; i <= 4; i++)
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, i), 0);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 5), -EAGAIN);
	efake_wr_done(efake_sent(qp, 1), 0);
	efa_expect_done(test, scene, 4);
	scene->ep = first;
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 5), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&ep->fid), 0);
	efa_expect_error(test, scene, 3, ECANCELED, 0);
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, efa_drain(scene), 3);
}

/* --- selective completion --- */

static ssize_t send_flags(struct efa_scene *scene, long ctx, u64 flags)
{
	struct kvec iov = { scene->buf, 64 };
	struct fi_msg msg = { .addr = scene->peer, .context = (void *)ctx };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 64);
	return fi_sendmsg(scene->ep, &msg, flags);
}

static ssize_t recv_flags(struct efa_scene *scene, long ctx, u64 flags)
{
	struct kvec iov = { scene->buf, 64 };
	struct fi_msg msg = { .addr = FI_ADDR_UNSPEC, .context = (void *)ctx };

	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, 64);
	return fi_recvmsg(scene->ep, &msg, flags);
}

/* Room is notified once: the reader that is notified consumes it. */
static bool told(struct efa_scene *scene)
{
	struct kofi_cq *cq = efa_cq(scene);

	return kofi_soon(READ_ONCE(cq->room)) && xchg(&cq->room, false);
}

/* The ULP is notified when the resource that a post lacked is available. */
static void cq_told_of_slot(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.tx_size = 2, .rx_size = 1, .bind = FI_SELECTIVE_COMPLETION,
	});

	KUNIT_EXPECT_EQ(test, send_flags(scene, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, send_flags(scene, 2, 0), 0);
	KUNIT_EXPECT_EQ(test, recv_flags(scene, 3, 0), 0);
	done(scene, 0);
	efake_settle();
	KUNIT_EXPECT_FALSE(test, efa_cq(scene)->room);
	KUNIT_EXPECT_EQ(test, send_flags(scene, 4, 0), 0);
	KUNIT_EXPECT_EQ(test, send_flags(scene, 5, 0), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 8, scene->peer),
			-EAGAIN);
	/* The operation completes without a completion to read. */
	done(scene, 0);
	KUNIT_EXPECT_TRUE(test, told(scene));
	done(scene, 0);
	efake_settle();
	KUNIT_EXPECT_FALSE(test, efa_cq(scene)->room);
	KUNIT_EXPECT_EQ(test, recv_flags(scene, 5, 0), -EAGAIN);
	efake_wr_done(efake_recv(scene->qp, 0), 0);
	KUNIT_EXPECT_TRUE(test, told(scene));
}

static void cq_told_of_copy(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {});
	int i;

	for (i = 0; i < KEFA_COPIES; i++)
		KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 64,
						scene->peer), 0);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 64, scene->peer),
			-EAGAIN);
	done(scene, 0);
	KUNIT_EXPECT_TRUE(test, told(scene));
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 64, scene->peer), 0);
}

/* No operation is outstanding, so no completion will come. */
static void cq_told_of_dma_space(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {});

	/* The fast path fails, then the slow path. */
	scene->fake->refuse = BIT(EFAKE_DMA_MAP);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), -EAGAIN);
	scene->fake->refuse = 0;
	KUNIT_EXPECT_TRUE(test, told(scene));
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.map_failed, 2);
}

static void cq_selective(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4, .bind = FI_SELECTIVE_COMPLETION,
	});

	KUNIT_EXPECT_EQ(test, send_flags(scene, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, send_flags(scene, 2, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, recv_flags(scene, 3, 0), 0);
	KUNIT_EXPECT_EQ(test, recv_flags(scene, 4, FI_COMPLETION), 0);
	KUNIT_EXPECT_EQ(test, credits(scene), 0);
	done(scene, 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, credits(scene), 1);
	efake_wr_done(efake_recv(scene->qp, 0), 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, credits(scene), 2);
	done(scene, 0);
	efa_expect_done(test, scene, 2);
	efake_wr_done(efake_recv(scene->qp, 0), 0);
	efa_expect_done(test, scene, 4);
	KUNIT_EXPECT_EQ(test, credits(scene), 4);
}

/* Errors are always reported, also those of quiet operations and injects. */
static void cq_quiet_errors(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4, .bind = FI_SELECTIVE_COMPLETION,
	});
	struct efa_comp comp;

	KUNIT_EXPECT_EQ(test, send_flags(scene, 1, 0), 0);
	done(scene, 15);
	efa_expect_error(test, scene, 1, EHOSTUNREACH, 15);
	KUNIT_EXPECT_EQ(test, recv_flags(scene, 2, 0), 0);
	efake_wr_done(efake_recv(scene->qp, 0), 1);
	efa_expect_error(test, scene, 2, ECANCELED, 1);
	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 8,
					scene->peer), 0);
	done(scene, 9);
	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, comp.error.err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, comp.error.prov_errno, 9);
	KUNIT_EXPECT_EQ(test, comp.error.flags, FI_MSG | FI_SEND);
	KUNIT_EXPECT_EQ(test, comp.error.src_addr, FI_ADDR_NOTAVAIL);
	KUNIT_EXPECT_NULL(test, comp.error.op_context);
	KUNIT_EXPECT_EQ(test, credits(scene), 4);
}

/* An inject has no completion, with or without selective completion. */
static void cq_inject(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4,
	});

	KUNIT_EXPECT_EQ(test, fi_inject(scene->ep, scene->buf, 8,
					scene->peer), 0);
	KUNIT_EXPECT_EQ(test, fi_inject_write(scene->ep, scene->buf, 8,
					      scene->peer, EFA_RADDR, EFA_KEY),
			0);
	KUNIT_EXPECT_EQ(test, credits(scene), 2);
	done(scene, 0);
	done(scene, 0);
	efa_expect_nothing(test, scene);
	KUNIT_EXPECT_EQ(test, credits(scene), 4);
	/* An inject with FI_COMPLETION has one. */
	KUNIT_EXPECT_EQ(test, send_flags(scene, 1, FI_INJECT | FI_COMPLETION),
			0);
	done(scene, 0);
	efa_expect_done(test, scene, 1);
}

/* --- contents of completions --- */

static void cq_received(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct kefa_wc wc = { .len = 33 };
	struct efa_comp comp;

	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 1), 0);
	efake_recv_done(efake_recv(scene->qp, 0), &wc);
	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 33);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 0);

	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 2), 0);
	wc = (struct kefa_wc){ .len = 5, .has_imm = true, .imm = 0x89abcdef };
	efake_recv_done(efake_recv(scene->qp, 0), &wc);
	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 5);
	KUNIT_EXPECT_EQ(test, comp.entry.flags,
			FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 0x89abcdef);

	/* The next operation of the slot doesn't inherit any field. */
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 3), 0);
	efake_wr_done(efake_recv(scene->qp, 0), 0);
	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.entry.len, 0);
	KUNIT_EXPECT_EQ(test, comp.entry.flags, FI_MSG | FI_RECV);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.rx_bytes, 38);
}

/* A write with data consumes a receive, also a quiet one. */
static void cq_written(struct kunit *test)
{
	const struct kefa_wc wc = {
		.len = 0x190000 | 200, .has_imm = true, .write = true, .imm = 7,
	};
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.size = 4, .bind = FI_SELECTIVE_COMPLETION,
	});
	struct efa_comp comp;

	KUNIT_EXPECT_EQ(test, recv_flags(scene, 9, 0), 0);
	efake_recv_done(efake_recv(scene->qp, 0), &wc);
	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.ret, 1);
	KUNIT_EXPECT_EQ(test, (long)comp.entry.op_context, 9);
	/* Half of the length that the driver reports belongs to another completion. */
	KUNIT_EXPECT_EQ(test, comp.entry.len, 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.rx_bytes, 0);
	KUNIT_EXPECT_EQ(test, comp.entry.flags,
			FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	KUNIT_EXPECT_EQ(test, comp.entry.data, 7);
	KUNIT_EXPECT_EQ(test, credits(scene), 4);
}

/* A write with data to an endpoint without FI_RMA is reported as an error. */
static void cq_written_unwanted(struct kunit *test)
{
	const struct kefa_wc wc = {
		.len = U32_MAX, .has_imm = true, .write = true, .imm = 7,
	};
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	struct efa_comp comp;

	EFA_CLOSE(test, scene->ep);
	scene->info->caps = FI_MSG | FI_SEND | FI_RECV;
	scene->ep = efa_scene_ep(test, scene, 0);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_EQ(test, recv_flags(scene, 9, 0), 0);
	KUNIT_EXPECT_EQ(test, recv_flags(scene, 10, 0), 0);
	efake_recv_done(efake_recv(scene->qp, 0), &wc);
	efake_settle();
	comp = efa_read(scene);
	KUNIT_EXPECT_EQ(test, comp.ret, -FI_EAVAIL);
	KUNIT_EXPECT_EQ(test, (long)comp.error.op_context, 9);
	KUNIT_EXPECT_EQ(test, comp.error.err, EPROTO);
	KUNIT_EXPECT_EQ(test, comp.error.len, 0);
	KUNIT_EXPECT_EQ(test, efa_ep(scene)->stats.errors, 1);
	/* Messages are still received. */
	efake_recv_done(efake_recv(scene->qp, 0),
			&(struct kefa_wc){ .len = 5 });
	efa_expect_done(test, scene, 10);
}

/* --- counters --- */

static struct fid_cntr *bind_cntr(struct kunit *test, struct efa_scene *scene,
				  u64 flags, enum fi_cntr_events events)
{
	struct fi_cntr_attr attr = {
		.wait_obj = FI_WAIT_UNSPEC, .events = events,
	};
	struct fid_cntr *cntr;

	KUNIT_ASSERT_EQ(test, fi_cntr_open(scene->domain, &attr, &cntr, NULL),
			0);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(scene->ep, &cntr->fid, flags), 0);
	return cntr;
}

static void cq_counters(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true, .bind = FI_SELECTIVE_COMPLETION,
	});
	static const u64 flags[] = { FI_SEND, FI_RECV, FI_READ, FI_WRITE };
	struct fid_cntr *cntr[4];
	int i;

	for (i = 0; i < 4; i++)
		cntr[i] = bind_cntr(test, scene, flags[i],
				    FI_CNTR_EVENTS_COMP);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, send_flags(scene, 1, 0), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, efa_get(scene, 10, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_write(scene, 10, 1), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, recv_flags(scene, 1, 0), 0);
	for (i = 0; i < 6; i++)
		done(scene, i == 1 || i == 3 ? 7 : 0);
	for (i = 0; i < 4; i++)
		efake_wr_done(efake_recv(scene->qp, 0), i == 2 ? 7 : 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr[0]), 2);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr[0]), 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr[1]), 3);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr[1]), 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr[2]), 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr[2]), 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr[3]), 1);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr[3]), 0);
	/* Canceled operations count as errors. */
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, fi_cntr_readerr(cntr[1]), 2);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, fi_close(&cntr[i]->fid), 0);
}

static void cq_counts_bytes(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.idle = true,
	});
	struct fid_cntr *cntr;

	cntr = bind_cntr(test, scene, FI_SEND | FI_RECV,
			 FI_CNTR_EVENTS_BYTES);
	KUNIT_EXPECT_EQ(test, fi_ep_bind(scene->ep, &cntr->fid,
					 FI_REMOTE_WRITE), -EOPNOTSUPP);
	KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
	scene->qp = efake_last_qp(scene->fake);
	KUNIT_EXPECT_EQ(test, efa_send(scene, 1000, 1), 0);
	KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, 2), 0);
	done(scene, 0);
	efake_recv_done(efake_recv(scene->qp, 0), &(struct kefa_wc) {
		.len = 7,
	});
	efake_settle();
	KUNIT_EXPECT_EQ(test, fi_cntr_read(cntr), 1007);
	EFA_CLOSE(test, scene->ep);
	KUNIT_EXPECT_EQ(test, fi_close(&cntr->fid), 0);
}

/* --- notifications --- */

static atomic_t handler_calls, handler_read;

static void count_all(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;
	bool first;

	might_sleep();
	first = atomic_inc_return(&handler_calls) == 1;
	while (fi_cq_read(cq, &entry, 1) == 1)
		atomic_inc(&handler_read);
	/* No lock of the provider is held, so this can post. */
	if (first && context)
		WARN_ON(fi_inject(context, &first, 1, 0));
	WARN_ON(fi_close(&cq->fid) != -EDEADLK);
}

static struct fi_cq_attr with_handler = {
	.wait_obj = FI_WAIT_UNSPEC, .handler = count_all,
};

static void cq_handler(struct kunit *test)
{
	struct efa_scene *scene;
	int i;

	atomic_set(&handler_calls, 0);
	atomic_set(&handler_read, 0);
	scene = efa_scene_new(test, &(struct efa_opts){ .cq = with_handler });
	efa_cq(scene)->attr.handler_context = scene->ep;
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&handler_calls), 0);
	done(scene, 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&handler_calls), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&handler_read), 1);
	/* The handler has posted an operation. */
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 1);
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, efa_recv(scene, 64, i), 0);
	for (i = 0; i < 10; i++)
		efake_wr_done(efake_recv(scene->qp, 0), 0);
	efake_settle();
	KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&handler_read) == 11));
}

static void note_cpu(struct fid_cq *cq, void *context)
{
	struct fi_cq_data_entry entry;

	while (fi_cq_read(cq, &entry, 1) == 1)
		atomic_set((atomic_t *)context, raw_smp_processor_id());
}

/* On any CPU that gets the device's interrupt. */
static void cq_handler_cpu(struct kunit *test)
{
	struct fi_cq_attr attr = { .flags = FI_AFFINITY, .handler = note_cpu };
	struct efa_scene *scene = efa_scene_new(test, NULL);
	atomic_t seen;
	int cpu;

	attr.handler_context = &seen;
	KUNIT_EXPECT_GT(test, num_online_cpus(), 1);
	for_each_online_cpu(cpu) {
		EFA_CLOSE(test, scene->ep);
		EFA_CLOSE(test, scene->cq);
		attr.signaling_vector = cpu;
		KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &attr, &scene->cq,
						 NULL), 0);
		scene->ep = efa_scene_ep(test, scene, 0);
		KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
		scene->qp = efake_last_qp(scene->fake);
		atomic_set(&seen, -1);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
		done(scene, 0);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&seen) == cpu));
	}
	EFA_CLOSE(test, scene->ep);
	EFA_CLOSE(test, scene->cq);
}

static int set_cpus(const char *list)
{
	return kefa_cpus_ops.set(list, NULL);
}

/* Without a CPU from the ULP, the administrator's CPUs are used in turn. */
static void cq_handler_cpus(struct kunit *test)
{
	struct fi_cq_attr attr = { .handler = note_cpu };
	struct efa_scene *scene = efa_scene_new(test, NULL);
	char *shown = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	struct fid_ep *ep;
	atomic_t seen;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, shown);
	KUNIT_ASSERT_GT(test, num_online_cpus(), 1);
	EFA_CLOSE(test, scene->ep);
	EFA_CLOSE(test, scene->cq);
	attr.handler_context = &seen;
	KUNIT_ASSERT_EQ(test, fi_cq_open(scene->domain, &attr, &scene->cq, NULL), 0);
	KUNIT_EXPECT_NE(test, set_cpus("100000"), 0);
	KUNIT_EXPECT_NE(test, set_cpus("one"), 0);
	KUNIT_EXPECT_EQ(test, set_cpus("0-1"), 0);
	KUNIT_EXPECT_EQ(test, kefa_cpus_ops.get(shown, NULL), 4);
	KUNIT_EXPECT_STREQ(test, shown, "0-1\n");
	for (i = 0; i < 4; i++) {
		scene->ep = efa_scene_ep(test, scene, 0);
		KUNIT_ASSERT_EQ(test, fi_enable(scene->ep), 0);
		scene->qp = efake_last_qp(scene->fake);
		atomic_set(&seen, -1);
		KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
		done(scene, 0);
		KUNIT_EXPECT_TRUE(test, kofi_soon(atomic_read(&seen) == i % 2));
		EFA_CLOSE(test, scene->ep);
	}
	KUNIT_EXPECT_EQ(test, set_cpus(""), 0);
	ep = efa_scene_ep(test, scene, 0);
	KUNIT_ASSERT_EQ(test, fi_enable(ep), 0);
	KUNIT_EXPECT_EQ(test, container_of(ep, struct kefa_ep, ep_fid)->work_cpu,
			WORK_CPU_UNBOUND);
	EFA_CLOSE(test, ep);
	EFA_CLOSE(test, scene->cq);
}

/* Post one more operation of each kind than a doorbell can cover. */
static void post_many(struct fid_cq *cq, void *context)
{
	struct efa_scene *scene = context;
	struct fi_cq_data_entry entry;
	u8 data[8];
	int i;

	while (fi_cq_read(cq, &entry, 1) == 1) {
		if (entry.op_context)
			continue;
		for (i = 0; i < 4; i++) {
			/* The caller may reuse the buffer of an inject. */
			memset(data, i, sizeof(data));
			fi_inject(scene->ep, data, sizeof(data), scene->peer);
			fi_send(scene->ep, scene->buf, 64, NULL, scene->peer, (void *)1);
			fi_recv(scene->ep, scene->buf, 64, NULL, FI_ADDR_UNSPEC, (void *)1);
		}
		for (i = 0; i < KEFA_RECVS_MAX; i++)
			fi_recv(scene->ep, scene->buf, 64, NULL, FI_ADDR_UNSPEC, (void *)1);
	}
}

/* Posts of a handler share doorbells, and all are posted when it has returned. */
static void cq_handler_posts(struct kunit *test)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_UNSPEC, .handler = post_many };
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts){ .cq = attr });
	unsigned int doorbells, rx_doorbells;
	u8 got[8], want[8];
	int i;

	efa_cq(scene)->attr.handler_context = scene;
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 0), 0);
	doorbells = scene->qp->doorbells;
	rx_doorbells = scene->qp->rx_doorbells;
	done(scene, 0);
	efake_settle();
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 8);
	KUNIT_EXPECT_EQ(test, scene->qp->doorbells, doorbells + 1);
	KUNIT_EXPECT_EQ(test, scene->qp->nrecvs, 4 + KEFA_RECVS_MAX);
	KUNIT_EXPECT_EQ(test, scene->qp->rx_doorbells, rx_doorbells + 2);
	for (i = 0; i < 4; i++) {
		memset(want, i, sizeof(want));
		KUNIT_EXPECT_EQ(test, efake_wr_read(efake_sent(scene->qp, 2 * i), got,
						    sizeof(got)), sizeof(got));
		KUNIT_EXPECT_MEMEQ(test, got, want, sizeof(got));
	}
	/* A post from outside of a handler isn't held. */
	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	KUNIT_EXPECT_EQ(test, scene->qp->nsent, 9);
	while (scene->qp->nsent)
		done(scene, 0);
	EFA_CLOSE(test, scene->ep);
	EFA_CLOSE(test, scene->cq);
}

/* Receives that the device refuses complete with an error, one by one. */
static void cq_recvs_refused(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	unsigned int i;

	efake_fail(scene->fake, EFAKE_POST_RECV, 3, -EIO);
	/* They are held until the last, as the worker can't run meanwhile. */
	local_bh_disable();
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, recv_flags(scene, i, i < 3 ? FI_MORE : 0), 0);
	local_bh_enable();
	efake_settle();
	KUNIT_EXPECT_GE(test, scene->qp->nrecvs, 2U);
	efa_expect_error(test, scene, 2, EIO, 0);
	if (scene->qp->nrecvs == 2)
		efa_expect_error(test, scene, 3, EIO, 0);
	efa_expect_nothing(test, scene);
}

static void cq_handler_of_quiet(struct kunit *test)
{
	struct efa_scene *scene;
	int i;

	atomic_set(&handler_calls, 0);
	scene = efa_scene_new(test, &(struct efa_opts) {
		.cq = with_handler, .bind = FI_SELECTIVE_COMPLETION,
	});
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, send_flags(scene, 1, 0), 0);
		done(scene, 0);
		efake_settle();
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&handler_calls), 0);
	KUNIT_EXPECT_EQ(test, send_flags(scene, 1, 0), 0);
	done(scene, 9);
	efake_settle();
	KUNIT_EXPECT_EQ(test, atomic_read(&handler_calls), 1);
}

static void sleep_for_one(struct kofi_thread *thread)
{
	struct fid_cq *cq = thread->arg;
	struct fi_cq_data_entry entry;

	thread->ret = fi_cq_sread(cq, &entry, 1, NULL, KOFI_NEVER_MS);
}

static void cq_sleeper(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, &(struct efa_opts) {
		.cq.wait_obj = FI_WAIT_UNSPEC,
	});
	struct kofi_thread thread;

	KUNIT_EXPECT_EQ(test, efa_send(scene, 64, 1), 0);
	kofi_thread_start(test, &thread, sleep_for_one, scene->cq);
	KUNIT_EXPECT_TRUE(test, kofi_soon(kofi_sleepers(&efa_cq(scene)->notifier.wait)));
	done(scene, 0);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_EQ(test, thread.ret, 1);
}

/* --- the worker --- */

static struct {
	struct work_struct	work;
	struct efake		*fake;
	unsigned int		left;
} neighbour;

static void neighbour_work(struct work_struct *work)
{
	neighbour.left = neighbour.fake->missed;
	neighbour.fake->missed = 0;
}

/* The worker yields, so that other work of the CPU can run. */
static void cq_worker_yields(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct efake_qp *qps[] = {
		scene->qp,
		efake_qp(scene->fake, efa_dom(scene)->mrq.hq.qpn),
	};
	int i;

	neighbour.fake = scene->fake;
	INIT_WORK(&neighbour.work, neighbour_work);
	for (i = 0; i < ARRAY_SIZE(qps); i++) {
		scene->fake->missed = 1000;
		local_bh_disable();
		efake_qp_event(qps[i]);
		queue_work_on(smp_processor_id(), kefa_wq, &neighbour.work);
		local_bh_enable();
		flush_work(&neighbour.work);
		efake_settle();
		KUNIT_EXPECT_GE(test, neighbour.left,
				1000 - 2 * KEFA_POLL_BUDGET / KEFA_POLL_BATCH);
	}
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(cq_credit),
	KUNIT_CASE(cq_full),
	KUNIT_CASE(cq_told_of_slot),
	KUNIT_CASE(cq_told_of_copy),
	KUNIT_CASE(cq_told_of_dma_space),
	KUNIT_CASE(cq_refused),
	KUNIT_CASE(cq_shared),
	KUNIT_CASE(cq_selective),
	KUNIT_CASE(cq_quiet_errors),
	KUNIT_CASE(cq_inject),
	KUNIT_CASE(cq_received),
	KUNIT_CASE(cq_written),
	KUNIT_CASE(cq_written_unwanted),
	KUNIT_CASE(cq_counters),
	KUNIT_CASE(cq_counts_bytes),
	KUNIT_CASE(cq_handler),
	KUNIT_CASE(cq_handler_cpu),
	KUNIT_CASE(cq_handler_cpus),
	KUNIT_CASE(cq_handler_of_quiet),
	KUNIT_CASE(cq_handler_posts),
	KUNIT_CASE(cq_recvs_refused),
	KUNIT_CASE(cq_sleeper),
	KUNIT_CASE(cq_worker_yields),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "kefa_cq",
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
