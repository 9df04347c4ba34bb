// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofiblk's transport on a queue that no device is behind: operations that are
 * refused, and what they wait for.
 */
#define pr_fmt(fmt) "kofiblk: " fmt
#include <kofi/fabric.h>

/* Endpoints here are nothing that the core knows. */
static int scene_close(struct fid *fid);
#define fi_close scene_close
#include "../../samples/blk/fabric.c"
#undef fi_close

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/minmax.h>
#include "crew.h"

#define REMOTE		0x7000ULL
#define MEMORY		SZ_16K
#define PIECES		40

static struct scene {
	struct kb_fabric	fabric;
	struct kb_queue		queue;
	struct kb_op		op;
	struct fid_cq		cq;
	struct fi_cq_msg_entry	entry;
	unsigned int		entries;
	struct fi_cq_err_entry	error;		/* if it has an err it comes first */
	int			refused;	/* what posting says, */
	unsigned int		refusals;	/* so often */
	unsigned int		posts;
	unsigned int		posts_here;	/* not by the timer */
	struct task_struct	*task;		/* the test's */
	unsigned int		dones;
	unsigned int		gones;
	int			err;
	/* Transfers. */
	spinlock_t		lock;		/* of what follows: a timer posts, too */
	struct fid_ep		ep;
	struct kb_rma		rma;
	struct bio_vec		bvec[PIECES];
	u8			*local;
	u8			remote[MEMORY];
	u8			touched[MEMORY];
	unsigned int		calls;
	unsigned int		max_pieces;	/* that the device takes */
	unsigned int		full_every;	/* which call finds no room */
	unsigned int		open;		/* operations */
	unsigned int		most;
	bool			wrong;		/* a call that none should make */
	/* Closing. */
	unsigned int		closes;
	struct completion	may_close;
	unsigned int		received;
} *scene;

static int scene_post(struct kb_queue *q, struct kb_op *op)
{
	scene->posts_here += current == scene->task;
	return ++scene->posts > scene->refusals ? 0 : scene->refused;
}

static void scene_done(struct kb_queue *q, struct kb_op *op, int err, size_t len)
{
	scene->dones++;
	scene->err = err;
}

static void scene_gone(struct kb_fabric *f)
{
	scene->gones++;
}

static void scene_received(struct kb_queue *q, void *buf, size_t len)
{
	scene->received++;
}

static const struct kb_role scene_role = {
	.name		= "scene",
	.received	= scene_received,
	.gone		= scene_gone,
};

static int scene_close(struct fid *fid)
{
	scene->closes++;
	wait_for_completion(&scene->may_close);
	return 0;
}

static ssize_t scene_readfrom(struct fid_cq *cq, void *buf, size_t count,
			      fi_addr_t *src_addr)
{
	if (scene->error.err)
		return -FI_EAVAIL;
	if (!scene->entries)
		return -EAGAIN;
	scene->entries--;
	memcpy(buf, &scene->entry, sizeof(scene->entry));
	return 1;
}

static ssize_t scene_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf,
			     u64 flags)
{
	*buf = scene->error;
	scene->error.err = 0;
	return 1;
}

static const struct fi_ops_cq scene_cq_ops = {
	.readfrom	= scene_readfrom,
	.readerr	= scene_readerr,
};

/* A retry that runs may have taken an operation, and find the queue closed. */
static void scene_down(void)
{
	kb_fabric_down(&scene->fabric);
	cancel_delayed_work_sync(&scene->queue.retry);
	cancel_delayed_work_sync(&scene->queue.again);
}

/* What a ULP is told of is closed by then, not only refused. */
static void refused_by_a_dead_device(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;

	scene->refused = -ENODEV;
	/* The device's going is another one's work. */
	scene->fabric.gone = 1;
	kb_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->posts_here, 1U);
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	scene_down();
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
	/* And what comes later has nothing to wait for. */
	kb_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->dones, 2U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
}

static void refusal_is_a_loss(struct kunit *test)
{
	scene->refused = -ENODEV;
	kb_submit(&scene->queue, &scene->op);
	flush_work(&scene->fabric.gone_work);
	cancel_delayed_work_sync(&scene->queue.retry);
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
}

static void scene_goes_down(struct kofi_thread *thread)
{
	kb_fabric_down(&scene->fabric);
}

/* The last user goes while the device does, and the work item comes late. */
static void closed_by_two(struct kunit *test)
{
	struct kofi_thread first, second;

	scene->queue.ep = &scene->ep;
	kofi_thread_start(test, &first, scene_goes_down, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->closes)));
	kofi_thread_start(test, &second, scene_goes_down, NULL);
	/* An endpoint is closed once, and neither is done before that. */
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&second, 100));
	KUNIT_EXPECT_EQ(test, scene->closes, 1U);
	complete_all(&scene->may_close);
	kofi_thread_join(test, &first);
	kofi_thread_join(test, &second);
	KUNIT_EXPECT_EQ(test, scene->closes, 1U);
	KUNIT_EXPECT_NULL(test, scene->queue.ep);
}

/* What comes while the queue is closed: its handler may be at the one before. */
static void received_while_closed(struct kunit *test)
{
	struct kb_recv recv = { .op.post = scene_post };

	scene->refusals = 0;
	kb_recv_done(&scene->queue, &recv.op, 0, 64);
	KUNIT_EXPECT_EQ(test, scene->received, 1U);
	scene->queue.up = false;
	kb_recv_done(&scene->queue, &recv.op, 0, 64);
	KUNIT_EXPECT_EQ(test, scene->received, 1U);
}

/* Nobody cancels a timer of a queue twice. */
static void closed_arms_nothing(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;

	scene->refused = -EAGAIN;
	kb_submit(q, &scene->op);
	/* It isn't while it runs, before it is armed again. */
	KUNIT_EXPECT_TRUE(test, kofi_soon(delayed_work_pending(&q->retry)));
	scene_down();
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	kb_submit(q, &scene->op);
	kb_pump(q);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&q->retry));
}

static void room_comes_later(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;

	scene->refused = -EAGAIN;
	scene->refusals = 1;
	kb_submit(q, &scene->op);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->posts) > 1));
	cancel_delayed_work_sync(&q->retry);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_EQ(test, scene->posts_here, 1U);
	KUNIT_EXPECT_TRUE(test, list_empty(&q->waiting));
}

static void no_message(struct kunit *test)
{
	scene->entry = (struct fi_cq_msg_entry) {
		.op_context	= &scene->op,
		.flags		= FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len		= 64,
	};
	scene->entries = 1;
	kb_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -EMSGSIZE);
	scene->entry.flags = FI_MSG | FI_RECV;
	scene->entries = 1;
	kb_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->dones, 2U);
	KUNIT_EXPECT_EQ(test, scene->err, 0);
}

/* The peer had no receive for what was posted. */
static void scene_not_ready(u64 flags)
{
	scene->error = (struct fi_cq_err_entry) {
		.op_context	= &scene->op,
		.flags		= flags,
		.err		= EAGAIN,
	};
	kb_cq_drain(&scene->cq, &scene->queue);
}

static void peer_is_not_ready(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;
	struct kb_op other = { .post = scene_post, .done = scene_done };

	scene->refusals = 0;
	kb_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->posts, 1U);
	scene_not_ready(FI_MSG | FI_SEND);
	/* Others don't wait behind it. */
	kb_submit(q, &other);
	KUNIT_EXPECT_EQ(test, scene->posts_here, 2U);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->posts) > 2));
	KUNIT_EXPECT_EQ(test, scene->posts_here, 2U);
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	/* So often as need be. */
	scene_not_ready(FI_MSG | FI_SEND);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->posts) > 3));
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
}

/* One that takes nothing has others' room for so many at a time. */
static void peers_are_not_ready(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;
	struct kb_op *ops;
	int i;

	ops = kunit_kcalloc(test, KB_BATCH + 1, sizeof(*ops), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ops);
	scene->refusals = 0;
	for (i = 0; i <= KB_BATCH; i++) {
		ops[i] = scene->op;
		list_add_tail(&ops[i].list, &q->refused);
	}
	kb_again(&q->again.work);
	KUNIT_EXPECT_EQ(test, scene->posts_here, (unsigned int)KB_BATCH);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->posts) > KB_BATCH));
	KUNIT_EXPECT_TRUE(test, list_empty(&q->refused));
}

/* Its owner doesn't want it sent any more. */
static void peer_is_given_up(struct kunit *test)
{
	scene->refusals = 0;
	kb_submit(&scene->queue, &scene->op);
	scene->refusals = UINT_MAX;
	scene->refused = -ECANCELED;
	scene_not_ready(FI_MSG | FI_SEND);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->dones)));
	KUNIT_EXPECT_EQ(test, scene->err, -ECANCELED);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
}

/* Transfers need no receive, and a receive that fails isn't sent. */
static void only_sends_wait(struct kunit *test)
{
	scene_not_ready(FI_RMA | FI_WRITE);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -EAGAIN);
	scene_not_ready(FI_MSG | FI_RECV);
	KUNIT_EXPECT_EQ(test, scene->dones, 2U);
	KUNIT_EXPECT_EQ(test, scene->posts, 0U);
}

static void not_ready_at_the_end(struct kunit *test)
{
	struct kb_queue *q = &scene->queue;

	scene->refusals = 0;
	kb_submit(q, &scene->op);
	/* The timer may come first. */
	scene->refusals = UINT_MAX;
	scene->refused = -ECANCELED;
	scene_not_ready(FI_MSG | FI_SEND);
	scene_down();
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_TRUE(test, list_empty(&q->refused));
	/* A handler that was about to say so comes too late. */
	scene_not_ready(FI_MSG | FI_SEND);
	KUNIT_EXPECT_EQ(test, scene->dones, 2U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
	KUNIT_EXPECT_TRUE(test, list_empty(&q->refused));
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&q->again));
}

/* --- transfers --- */

static ssize_t scene_rma_locked(const struct fi_msg_rma *msg, u64 flags,
				bool write)
{
	size_t len = iov_iter_count(&msg->msg_iter);
	struct iov_iter iter = msg->msg_iter;
	u64 at = msg->rma_iov->addr - REMOTE;
	size_t i, bytes = 0, off = iter.iov_offset;
	unsigned int pieces;

	for (pieces = 0; bytes < len; pieces++, off = 0)
		bytes += iter.bvec[pieces].bv_len - off;
	if (pieces > scene->max_pieces)
		return -EMSGSIZE;
	if (scene->full_every && !(++scene->calls % scene->full_every))
		return -EAGAIN;
	if (!len || len > scene->fabric.max_rma || len != msg->rma_iov->len ||
	    at + len > MEMORY || msg->context != &scene->rma.op ||
	    msg->addr != 3 || msg->rma_iov->key != 9 ||
	    !(flags & FI_COMPLETION)) {
		scene->wrong = true;
		return -EINVAL;
	}
	if (write)
		bytes = copy_from_iter(scene->remote + at, len, &iter);
	else
		bytes = copy_to_iter(scene->remote + at, len, &iter);
	scene->wrong |= bytes != len;
	for (i = 0; i < len; i++)
		scene->touched[at + i]++;
	scene->most = max(scene->most, ++scene->open);
	return 0;
}

static ssize_t scene_rma(const struct fi_msg_rma *msg, u64 flags, bool write)
{
	ssize_t ret;

	spin_lock_bh(&scene->lock);
	ret = scene_rma_locked(msg, flags, write);
	spin_unlock_bh(&scene->lock);
	return ret;
}

static ssize_t scene_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     u64 flags)
{
	return scene_rma(msg, flags, false);
}

static ssize_t scene_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			      u64 flags)
{
	if (!(flags & FI_DELIVERY_COMPLETE))
		return -EINVAL;
	return scene_rma(msg, flags, true);
}

static const struct fi_ops_rma scene_rma_ops = {
	.readmsg	= scene_readmsg,
	.writemsg	= scene_writemsg,
};

static const struct transfer {
	const char	*name;
	unsigned int	pieces;
	unsigned int	len;		/* of each piece */
	unsigned int	max_pieces;
	size_t		max_rma;
	unsigned int	full_every;
} transfers[] = {
	{ "one piece", 1, 4096, 16, SZ_1M },
	{ "a byte", 1, 1, 16, SZ_1M },
	{ "as many as there may be", 16, 512, 16, SZ_1M },
	{ "one more", 17, 512, 16, SZ_1M },
	{ "more than are under way at a time", 40, 300, 3, SZ_1M },
	{ "a device that takes one", 8, 512, 1, SZ_1M },
	{ "a device that takes six", 40, 300, 6, SZ_1M },
	{ "longer than the device has it", 3, 4096, 16, 1000 },
	{ "both", 30, 500, 2, 700 },
	{ "a queue that is often full", 40, 300, 5, 1100, 2 },
};

KUNIT_ARRAY_PARAM_DESC(transfer, transfers, name);

static void transfer_begin(struct kunit *test, const struct transfer *t,
			   bool write)
{
	unsigned int i;

	scene->local = kunit_kzalloc(test, MEMORY, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene->local);
	for (i = 0; i < MEMORY; i++) {
		scene->local[i] = write ? i * 7 + i / 256 : 0;
		scene->remote[i] = write ? 0 : i * 5 + i / 256;
	}
	/* Backwards, so that none is next to the one before. */
	for (i = 0; i < t->pieces; i++)
		bvec_set_virt(&scene->bvec[i],
			      scene->local + (t->pieces - 1 - i) * t->len,
			      t->len);
	scene->max_pieces = t->max_pieces;
	scene->full_every = t->full_every;
	scene->fabric.max_rma = t->max_rma;
	scene->ep.rma = &scene_rma_ops;
	scene->queue.ep = &scene->ep;
	scene->rma = (struct kb_rma) {
		.op.done	= scene_done,
		.peer		= 3,
		.addr		= REMOTE,
		.key		= 9,
	};
	iov_iter_bvec(&scene->rma.iter, write ? ITER_SOURCE : ITER_DEST,
		      scene->bvec, t->pieces, t->pieces * t->len);
	kb_rma_submit(&scene->queue, &scene->rma);
}

static bool transfer_completes(int err)
{
	bool open;

	spin_lock_bh(&scene->lock);
	open = scene->open;
	scene->open -= open;
	spin_unlock_bh(&scene->lock);
	if (open)
		scene->rma.op.done(&scene->queue, &scene->rma.op, err, 0);
	return open;
}

/* What was accepted completes; what waits is tried again. */
static void transfer_go_on(void)
{
	unsigned long end = jiffies + msecs_to_jiffies(KOFI_NEVER_MS);

	while (!READ_ONCE(scene->dones) && time_before(jiffies, end)) {
		transfer_completes(0);
		kb_pump(&scene->queue);
		cond_resched();
	}
}

static void transfer_is(struct kunit *test, const struct transfer *t, bool write)
{
	unsigned int i, at, wrong = 0, bytes = t->pieces * t->len;

	transfer_begin(test, t, write);
	transfer_go_on();
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, 0);
	KUNIT_EXPECT_EQ(test, scene->open, 0U);
	KUNIT_EXPECT_FALSE(test, scene->wrong);
	KUNIT_EXPECT_LE(test, scene->most, (unsigned int)KB_RMA_PARTS);
	for (i = 0; i < bytes; i++) {
		at = (t->pieces - 1 - i / t->len) * t->len + i % t->len;
		wrong += scene->remote[i] != scene->local[at];
		wrong += scene->touched[i] != 1;
	}
	for (; i < MEMORY; i++)
		wrong += scene->touched[i];
	KUNIT_EXPECT_EQ(test, wrong, 0U);
}

static void transfer_writes(struct kunit *test)
{
	transfer_is(test, test->param_value, true);
}

static void transfer_reads(struct kunit *test)
{
	transfer_is(test, test->param_value, false);
}

/* Not before all that is under way is over, and nothing more is begun. */
static void transfer_fails(struct kunit *test)
{
	static const struct transfer many = { "", 40, 300, 3, SZ_1M };

	transfer_begin(test, &many, true);
	KUNIT_ASSERT_EQ(test, scene->open, (unsigned int)KB_RMA_PARTS);
	KUNIT_EXPECT_TRUE(test, transfer_completes(-EIO));
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	transfer_go_on();
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -EIO);
	KUNIT_EXPECT_EQ(test, scene->open, 0U);
	KUNIT_EXPECT_EQ(test, scene->most, (unsigned int)KB_RMA_PARTS);
}

/* What a call refuses for good is the end of it. */
static void transfer_is_refused(struct kunit *test)
{
	static const struct transfer none = { "", 2, 300, 0, SZ_1M };

	transfer_begin(test, &none, true);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -EMSGSIZE);
}

static int fabric_init(struct kunit *test)
{
	struct kb_fabric *f;
	struct kb_queue *q;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	f = &scene->fabric;
	f->role = &scene_role;
	f->queues = &scene->queue;
	f->nqueues = 1;
	f->info = fi_allocinfo();
	KUNIT_ASSERT_NOT_NULL(test, f->info);
	INIT_WORK(&f->gone_work, kb_gone);
	mutex_init(&f->down_lock);
	init_completion(&scene->may_close);
	q = f->queues;
	kb_queue_init(f, 0);
	scene->cq.ops = &scene_cq_ops;
	q->cq = &scene->cq;
	q->up = true;
	f->rma_pieces = KB_RMA_PIECES;
	spin_lock_init(&scene->lock);
	scene->refusals = UINT_MAX;
	scene->task = current;
	scene->op.post = scene_post;
	scene->op.done = scene_done;
	return 0;
}

static void fabric_exit(struct kunit *test)
{
	if (!scene)
		return;
	scene->refusals = 0;
	scene->queue.ep = NULL;
	flush_work(&scene->fabric.gone_work);
	scene_down();
	fi_freeinfo(scene->fabric.info);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(refused_by_a_dead_device),
	KUNIT_CASE(refusal_is_a_loss),
	KUNIT_CASE(closed_by_two),
	KUNIT_CASE(received_while_closed),
	KUNIT_CASE(closed_arms_nothing),
	KUNIT_CASE(room_comes_later),
	KUNIT_CASE(no_message),
	KUNIT_CASE(peer_is_not_ready),
	KUNIT_CASE(peers_are_not_ready),
	KUNIT_CASE(peer_is_given_up),
	KUNIT_CASE(only_sends_wait),
	KUNIT_CASE(not_ready_at_the_end),
	KUNIT_CASE_PARAM(transfer_writes, transfer_gen_params),
	KUNIT_CASE_PARAM(transfer_reads, transfer_gen_params),
	KUNIT_CASE(transfer_fails),
	KUNIT_CASE(transfer_is_refused),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofiblk_fabric",
	.init		= fabric_init,
	.exit		= fabric_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);
