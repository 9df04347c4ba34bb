// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kofi_ulp's operations on a queue without a device: operations that are refused and wait.
 */
#include <kofi/fabric.h>

struct fid_ep;

/* Endpoints of this suite are unknown to the core, and there is no provider. */
static int scene_disable(struct fid_ep *ep);
static int scene_getinfo(u32 version, const char *node, const char *service, u64 flags,
			 const struct fi_info *hints, struct fi_info **info);
#define fi_disable scene_disable
#define fi_getinfo scene_getinfo
#include "../../ulp/lib/fabric.c"
#undef fi_disable
#undef fi_getinfo

/* This suite has no secrets. */
void kulp_auth_exit(void)
{
}

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/minmax.h>
#include "crew.h"

#define REMOTE		0x7000ULL
#define PIECES		40

static struct scene {
	struct kulp_fabric	fabric;
	struct kulp_queue		queue;
	struct kulp_op		op;
	struct fid_cq		cq;
	struct fi_cq_data_entry	entry;
	unsigned int		entries;
	struct fi_cq_err_entry	error;		/* read first if its err isn't 0 */
	int			refused;	/* errno of refused posts */
	unsigned int		refusals;	/* number of posts to refuse */
	unsigned int		posts;
	unsigned int		dones;
	unsigned int		gones;
	unsigned int		drains;
	int			err;
	/* Devices that were asked for. */
	u64			caps[3];
	unsigned int		asked;
	bool			writes[2];	/* fabrics "first" and "second" have writes */
	bool			present;
	bool			no_reads;
	/* Transfers. */
	struct fid_ep		ep;
	struct kulp_rma		rma;
	struct bio_vec		bvec[PIECES];
	bool			wrote;
	bool			wrong;		/* an unexpected call was made */
	/* Opening. */
	struct kulp_fabric	*known;		/* what was found while a device was being opened */
	bool			looks;
	/* Closing. */
	unsigned int		ends;
	struct completion	may_end;
	unsigned int		received;
	unsigned int		written;
	void			*user;		/* user of the latest immediate data */
	u32			data;
} *scene;

static int scene_post(struct kulp_queue *q, struct kulp_op *op)
{
	return ++scene->posts > scene->refusals ? 0 : scene->refused;
}

static void scene_done(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	scene->dones++;
	scene->err = err;
}

static void scene_gone(struct kulp_fabric *f)
{
	scene->gones++;
}

static void scene_received(struct kulp_queue *q, void *buf, size_t len)
{
	scene->received++;
}

static void scene_written(void *user, u32 data)
{
	scene->written++;
	scene->user = user;
	scene->data = data;
}

static void scene_drained(struct kulp_queue *q)
{
	scene->drains++;
}

static const struct kulp_role scene_role = {
	.name		= "scene",
	.received	= scene_received,
	.written	= scene_written,
	.gone		= scene_gone,
};

/* A user that collects what follows from completions, and needs no RDMA. */
static const struct kulp_role scene_collector = {
	.name		= "collector",
	.messages_only	= true,
	.received	= scene_received,
	.drained	= scene_drained,
	.gone		= scene_gone,
};

static const struct kulp_select any;

static int scene_found(const struct fi_info *hints, const char *name, bool writes,
		       struct fi_info **info)
{
	const char *wanted = hints->fabric_attr->name;

	if ((wanted && strcmp(wanted, name)) || (hints->caps & FI_WRITE && !writes) ||
	    (hints->caps & FI_READ && scene->no_reads))
		return -ENODATA;
	*info = fi_allocinfo_for("scene", name, "device");
	return *info ? 0 : -ENOMEM;
}

/*
 * The search for a device, which finds none unless a case has made one present, with two fabrics.
 * A case may look for an open device meanwhile.
 */
static int scene_getinfo(u32 version, const char *node, const char *service, u64 flags,
			 const struct fi_info *hints, struct fi_info **info)
{
	if (scene->looks && mutex_trylock(&kulp_fabrics_lock)) {
		mutex_unlock(&kulp_fabrics_lock);
		scene->known = kulp_fabric_get(&scene_role, &any);
	}
	if (scene->asked < ARRAY_SIZE(scene->caps))
		scene->caps[scene->asked++] = hints->caps;
	if (!scene->present)
		return -ENODATA;
	return scene_found(hints, "first", scene->writes[0], info) ?
	       scene_found(hints, "second", scene->writes[1], info) : 0;
}

static int scene_disable(struct fid_ep *ep)
{
	scene->ends++;
	wait_for_completion(&scene->may_end);
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

/* When done() gets -ENODEV, the endpoints are closed: it isn't enough that they refuse calls. */
static void refused_by_a_dead_device(struct kunit *test)
{
	struct kulp_queue *q = &scene->queue;

	scene->refused = -ENODEV;
	/* A work item handles the removal. */
	scene->fabric.gone = 1;
	kulp_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	kulp_fabric_down(&scene->fabric);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
	/* Later operations fail at once. */
	kulp_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->dones, 2U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
}

static void refusal_is_a_loss(struct kunit *test)
{
	scene->refused = -ENODEV;
	kulp_submit(&scene->queue, &scene->op);
	flush_work(&scene->fabric.gone_work);
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
}

static void scene_goes_down(struct kofi_thread *thread)
{
	kulp_fabric_down(&scene->fabric);
}

/* The last user puts the device during a removal, before the work item runs. */
static void ended_by_two(struct kunit *test)
{
	struct kofi_thread first, second;

	scene->queue.ep = &scene->ep;
	kofi_thread_start(test, &first, scene_goes_down, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->ends)));
	kofi_thread_start(test, &second, scene_goes_down, NULL);
	/* The endpoint is disabled once, and neither side returns before that. */
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&second, 100));
	KUNIT_EXPECT_EQ(test, scene->ends, 1U);
	complete_all(&scene->may_end);
	kofi_thread_join(test, &first);
	kofi_thread_join(test, &second);
	KUNIT_EXPECT_EQ(test, scene->ends, 1U);
	KUNIT_EXPECT_TRUE(test, scene->queue.ended);
}

static void scene_ends(struct kofi_thread *thread)
{
	kulp_fabric_end(&scene->fabric);
}

/* Somebody who has to know that no peer reaches memory any more waits until that is so. */
static void end_waits(struct kunit *test)
{
	struct kofi_thread thread;

	scene->queue.ep = &scene->ep;
	scene->refused = -EAGAIN;
	scene->refusals = UINT_MAX;
	kulp_submit(&scene->queue, &scene->op);
	/* The removal has begun, and its work item hasn't come to the endpoint yet. */
	scene->fabric.gone = true;
	kofi_thread_start(test, &thread, scene_ends, NULL);
	KUNIT_EXPECT_TRUE(test, kofi_soon(READ_ONCE(scene->ends)));
	KUNIT_EXPECT_TRUE(test, kofi_thread_runs(&thread, 100));
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	complete_all(&scene->may_end);
	kofi_thread_join(test, &thread);
	KUNIT_EXPECT_TRUE(test, scene->queue.ended);
	KUNIT_EXPECT_EQ(test, scene->ends, 1U);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
}

/* Completions during the close aren't handled, as the handler may still run. */
static void received_while_closed(struct kunit *test)
{
	struct kulp_recv recv = { .op.post = scene_post };

	scene->refusals = 0;
	kulp_recv_done(&scene->queue, &recv.op, 0, 64);
	KUNIT_EXPECT_EQ(test, scene->received, 1U);
	scene->queue.up = false;
	kulp_recv_done(&scene->queue, &recv.op, 0, 64);
	KUNIT_EXPECT_EQ(test, scene->received, 1U);
}

/*
 * A message that was too long is ignored, as is a peer's write with data to an endpoint that has
 * only messages. With any other error the device can't be used further.
 */
static void failed_receives(struct kunit *test)
{
	struct kulp_recv recv = { .op.post = scene_post };

	scene->refusals = 0;
	kulp_recv_done(&scene->queue, &recv.op, -EMSGSIZE, 0);
	kulp_recv_done(&scene->queue, &recv.op, -EPROTO, 0);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_EQ(test, scene->fabric.gone, 0);
	kulp_recv_done(&scene->queue, &recv.op, -EIO, 0);
	flush_work(&scene->fabric.gone_work);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
	KUNIT_EXPECT_EQ(test, scene->received, 0U);
	/* Receives that end with the device are expected. */
	kulp_recv_done(&scene->queue, &recv.op, -ECANCELED, 0);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
}

/* Where messages have several packets, receives end with their senders. */
static void failed_senders(struct kunit *test)
{
	struct kulp_recv recv = { .op.post = scene_post };

	scene->refusals = 0;
	scene->fabric.parts = true;
	kulp_recv_done(&scene->queue, &recv.op, -ECONNRESET, 0);
	kulp_recv_done(&scene->queue, &recv.op, -EMSGSIZE, 0);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_EQ(test, scene->fabric.gone, 0);
	KUNIT_EXPECT_EQ(test, scene->received, 0U);
	kulp_recv_done(&scene->queue, &recv.op, -ENODEV, 0);
	flush_work(&scene->fabric.gone_work);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_EQ(test, scene->gones, 1U);
}

/* On some fabrics immediate data consumes no receive. */
static void data_alone(struct kunit *test)
{
	int user = 5;

	KUNIT_EXPECT_EQ(test, kulp_user_add(&scene->queue, &user), 0);
	scene->entry = (struct fi_cq_data_entry){
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .data = 0x1234,
	};
	scene->entries = 1;
	kulp_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->written, 1U);
	KUNIT_EXPECT_PTR_EQ(test, scene->user, (void *)&user);
	KUNIT_EXPECT_EQ(test, scene->data, 0x1234U);
	KUNIT_EXPECT_EQ(test, scene->posts, 0U);
	kulp_user_del(&scene->queue, &user);
}

static int scene_post_closing(struct kulp_queue *q, struct kulp_op *op)
{
	kulp_queue_end_waits(q);
	return -EAGAIN;
}

/* The queue is closed while an operation that waited is tried again. */
static void closed_while_pumped(struct kunit *test)
{
	scene->refused = -EAGAIN;
	scene->refusals = UINT_MAX;
	kulp_submit(&scene->queue, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	scene->op.post = scene_post_closing;
	kulp_pump(&scene->queue);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
	KUNIT_EXPECT_TRUE(test, list_empty(&scene->queue.lanes[scene->op.lane]));
}

static bool scene_waits(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < KULP_LANES; i++)
		n += !list_empty(&scene->queue.lanes[i]);
	return n;
}

/* The provider calls the handler when there is room, maybe without completions. */
static void scene_told(void)
{
	kulp_cq_drain(&scene->cq, &scene->queue);
}

static void waits_end(struct kunit *test)
{
	struct kulp_queue *q = &scene->queue;

	scene->refused = -EAGAIN;
	kulp_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	kulp_fabric_down(&scene->fabric);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ENODEV);
	kulp_submit(q, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->dones, 2U);
	scene_told();
	KUNIT_EXPECT_FALSE(test, scene_waits());
}

static void room_comes_later(struct kunit *test)
{
	scene->refused = -EAGAIN;
	scene->refusals = 2;
	kulp_submit(&scene->queue, &scene->op);
	/* The operation is tried again before it waits: the handler may have run already. */
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_TRUE(test, scene_waits());
	scene_told();
	KUNIT_EXPECT_EQ(test, scene->posts, 3U);
	KUNIT_EXPECT_FALSE(test, scene_waits());
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
}

/* Room that appears before the operation waits isn't notified again. */
static void room_came_before(struct kunit *test)
{
	scene->refused = -EAGAIN;
	scene->refusals = 1;
	kulp_submit(&scene->queue, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	KUNIT_EXPECT_FALSE(test, scene_waits());
}

/* The room that the second post lacks appears before the pump has put the operation back. */
static int refused_until_told(struct kulp_queue *q, struct kulp_op *op)
{
	if (++scene->posts == 2)
		scene_told();
	return scene->posts <= 2 ? -EAGAIN : 0;
}

/* The provider notifies once, so a notification while the pump posts must not be lost. */
static void room_came_meanwhile(struct kunit *test)
{
	scene->op.post = refused_until_told;
	kulp_submit(&scene->queue, &scene->op);
	KUNIT_EXPECT_EQ(test, scene->posts, 3U);
	KUNIT_EXPECT_FALSE(test, scene_waits());
}

struct numbered {
	struct kulp_op	op;
	unsigned int	posted;
};

static int numbered_post(struct kulp_queue *q, struct kulp_op *op)
{
	if (++scene->posts <= scene->refusals)
		return -EAGAIN;
	container_of(op, struct numbered, op)->posted = scene->posts;
	return 0;
}

static void room_in_order(struct kunit *test)
{
	struct numbered n[4] = { };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(n); i++) {
		n[i].op = (struct kulp_op) { .post = numbered_post, .done = scene_done };
		kulp_submit(&scene->queue, &n[i].op);
	}
	/* Later operations wait behind the refused one without being posted. */
	KUNIT_EXPECT_EQ(test, scene->posts, 2U);
	scene_told();
	KUNIT_EXPECT_EQ(test, scene->posts, 3U);
	scene->refusals = 4;
	scene_told();
	KUNIT_EXPECT_EQ(test, scene->posts, 4U);
	scene_told();
	for (i = 0; i < ARRAY_SIZE(n); i++)
		KUNIT_EXPECT_EQ(test, n[i].posted, 5 + i);
	KUNIT_EXPECT_FALSE(test, scene_waits());
}

/* Invalidations don't wait for registrations, because they may free resources for these. */
static void lanes_are_apart(struct kunit *test)
{
	enum kulp_lane lane;
	struct numbered n;

	scene->refused = -EAGAIN;
	scene->op.lane = KULP_LANE_REG;
	kulp_submit(&scene->queue, &scene->op);
	KUNIT_EXPECT_TRUE(test, scene_waits());
	for (lane = 0; lane < KULP_LANES; lane++) {
		n = (struct numbered) {
			.op.post = numbered_post, .op.done = scene_done, .op.lane = lane,
		};
		if (lane == KULP_LANE_REG)
			continue;
		scene->refusals = 0;
		kulp_submit(&scene->queue, &n.op);
		KUNIT_EXPECT_GT(test, n.posted, 0U);
	}
	scene_told();
	KUNIT_EXPECT_FALSE(test, scene_waits());
}

/* Registrations and invalidations don't wait for sends, of which there may be more and more. */
static void lanes_in_order(struct kunit *test)
{
	struct numbered n[KULP_LANES];
	enum kulp_lane lane;

	scene->refusals = UINT_MAX;
	for (lane = 0; lane < KULP_LANES; lane++) {
		n[lane] = (struct numbered) {
			.op.post = numbered_post, .op.done = scene_done, .op.lane = lane,
		};
		kulp_submit(&scene->queue, &n[lane].op);
	}
	scene->refusals = 0;
	scene->posts = 0;
	scene_told();
	KUNIT_EXPECT_EQ(test, n[KULP_LANE_INVAL].posted, 1U);
	KUNIT_EXPECT_EQ(test, n[KULP_LANE_REG].posted, 2U);
	KUNIT_EXPECT_EQ(test, n[KULP_LANE_RECV].posted, 3U);
	KUNIT_EXPECT_EQ(test, n[KULP_LANE_SEND].posted, 4U);
}

static int posts_and_fails(struct kulp_queue *q, struct kulp_op *op)
{
	return scene->posts++ ? -EIO : -EAGAIN;
}

static void submits_next(struct kulp_queue *q, struct kulp_op *op, int err, size_t len)
{
	scene->dones++;
	kulp_submit(q, &scene->op);
}

/* done() may submit the next operation, in any context of its call. */
static void ends_lead_to_the_next(struct kunit *test)
{
	struct kulp_op op = { .post = posts_and_fails, .done = submits_next };

	scene->refusals = 0;
	kulp_submit(&scene->queue, &op);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->posts, 3U);
	KUNIT_EXPECT_FALSE(test, scene_waits());
}

static void imm_comes(u32 data)
{
	scene->entry = (struct fi_cq_data_entry) {
		.op_context	= &scene->op,
		.flags		= FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len		= 64,
		.data		= data,
	};
	scene->entries = 1;
	kulp_cq_drain(&scene->cq, &scene->queue);
}

/* Immediate data consumes a receive, which is posted again even if no user takes the data. */
static void no_message(struct kunit *test)
{
	static const struct kulp_role deaf = { .name = "deaf", .received = scene_received };
	struct kulp_queue *q = &scene->queue;
	int users[KULP_USERS + 1], i;

	scene->refusals = 0;
	imm_comes(3);
	KUNIT_EXPECT_EQ(test, scene->posts, 1U);
	KUNIT_EXPECT_EQ(test, scene->written, 0U);
	for (i = 0; i < KULP_USERS; i++)
		KUNIT_EXPECT_EQ(test, kulp_user_add(q, &users[i]), i);
	KUNIT_EXPECT_EQ(test, kulp_user_add(q, &users[i]), -ENOSPC);
	kulp_user_del(q, &users[i]);
	for (i = 0; i < KULP_USERS; i++) {
		imm_comes(KULP_IMM_USER(i) | 0xabcdef0);
		KUNIT_EXPECT_EQ(test, scene->written, i + 1U);
		KUNIT_EXPECT_PTR_EQ(test, scene->user, (void *)&users[i]);
		KUNIT_EXPECT_EQ(test, scene->data, KULP_IMM_USER(i) | 0xabcdef0);
	}
	kulp_user_del(q, &users[2]);
	imm_comes(KULP_IMM_USER(2));
	KUNIT_EXPECT_EQ(test, scene->written, KULP_USERS + 0U);
	KUNIT_EXPECT_EQ(test, kulp_user_add(q, &users[2]), 2);
	/* A role without written(), like the server. */
	scene->fabric.role = &deaf;
	imm_comes(KULP_IMM_USER(2));
	scene->fabric.role = &scene_role;
	KUNIT_EXPECT_EQ(test, scene->written, KULP_USERS + 0U);
	KUNIT_EXPECT_EQ(test, scene->posts, KULP_USERS + 3U);
	/* The handler may still run. */
	q->up = false;
	imm_comes(KULP_IMM_USER(2));
	q->up = true;
	KUNIT_EXPECT_EQ(test, scene->written, KULP_USERS + 0U);
	KUNIT_EXPECT_EQ(test, scene->posts, KULP_USERS + 3U);
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	scene->entry.flags = FI_MSG | FI_RECV;
	scene->entries = 1;
	kulp_cq_drain(&scene->cq, q);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, 0);
}

/* The peer had no receive until the provider's time-out. */
static void peer_is_never_ready(struct kunit *test)
{
	scene->error = (struct fi_cq_err_entry) {
		.op_context	= &scene->op,
		.flags		= FI_MSG | FI_SEND,
		.err		= EAGAIN,
	};
	kulp_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, scene->posts, 0U);
}

/* --- opening --- */

static const struct kulp_select by_owner = { .owner = "peer" };

/* A device that is open can be used while another one is being opened. */
static void opened_meanwhile(struct kunit *test)
{
	struct kulp_fabric *f = &scene->fabric;

	f->refs = 1;
	mutex_lock(&kulp_fabrics_lock);
	list_add(&f->list, &kulp_fabrics);
	mutex_unlock(&kulp_fabrics_lock);
	KUNIT_EXPECT_PTR_EQ(test, kulp_fabric_get(&scene_role, &any), f);
	KUNIT_EXPECT_EQ(test, scene->asked, 0U);
	scene->looks = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(kulp_fabric_get(&scene_role, &by_owner)), -ENODATA);
	KUNIT_EXPECT_GT(test, scene->asked, 0U);
	KUNIT_EXPECT_PTR_EQ(test, scene->known, f);
	mutex_lock(&kulp_fabrics_lock);
	list_del(&f->list);
	mutex_unlock(&kulp_fabrics_lock);
}

/* --- transfers --- */

static ssize_t scene_rma(const struct fi_msg_rma *msg, bool right)
{
	if (++scene->posts <= scene->refusals)
		return scene->refused;
	scene->wrong |= !right || msg->context != &scene->rma.op || msg->addr != 3 ||
			msg->rma_iov_count != 1 || msg->rma_iov->addr != REMOTE ||
			msg->rma_iov->len != iov_iter_count(&msg->msg_iter) ||
			msg->rma_iov->len != PIECES * 512 || msg->rma_iov->key != 9 ||
			msg->msg_iter.bvec != scene->bvec;
	return 0;
}

static ssize_t scene_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     u64 flags)
{
	return scene_rma(msg, flags == FI_COMPLETION && iov_iter_rw(&msg->msg_iter) == READ);
}

static ssize_t scene_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			      u64 flags)
{
	u64 imm = scene->rma.has_imm ? FI_REMOTE_CQ_DATA : 0;

	scene->wrote = true;
	return scene_rma(msg, flags == (FI_COMPLETION | FI_DELIVERY_COMPLETE | imm) &&
			      (!imm || msg->data == scene->rma.imm) &&
			      iov_iter_rw(&msg->msg_iter) == WRITE);
}

static const struct fi_ops_rma scene_rma_ops = {
	.readmsg	= scene_readmsg,
	.writemsg	= scene_writemsg,
};

static void transfer_begin(struct kunit *test, bool write, bool imm)
{
	u8 *memory = kunit_kzalloc(test, 512, GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	for (i = 0; i < PIECES; i++)
		bvec_set_virt(&scene->bvec[i], memory, 512);
	scene->ep.rma = &scene_rma_ops;
	scene->queue.ep = &scene->ep;
	scene->rma = (struct kulp_rma) {
		.op.done	= scene_done,
		.peer		= 3,
		.iov		= { .addr = REMOTE, .key = 9 },
		.has_imm	= imm,
		.imm		= 0xfedcba98,
	};
	iov_iter_bvec(&scene->rma.iter, write ? ITER_SOURCE : ITER_DEST, scene->bvec,
		      PIECES, PIECES * 512);
	kulp_rma_submit(&scene->queue, &scene->rma);
}

/* A transfer is one call for any number of pieces. */
static void transfer(struct kunit *test)
{
	int kind;

	scene->refused = -EAGAIN;
	/* A read, a write, one with immediate data. */
	for (kind = 0; kind < 3; kind++) {
		scene->posts = 0;
		scene->refusals = 2;
		transfer_begin(test, kind, kind == 2);
		KUNIT_EXPECT_TRUE(test, scene_waits());
		scene_told();
		KUNIT_EXPECT_FALSE(test, scene_waits());
		KUNIT_EXPECT_EQ(test, scene->posts, 3U);
		KUNIT_EXPECT_EQ(test, scene->wrote, kind > 0);
		KUNIT_EXPECT_FALSE(test, scene->wrong);
	}
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
}

/* An error other than -EAGAIN and -ENODEV ends the operation. */
static void transfer_is_refused(struct kunit *test)
{
	scene->refused = -EMSGSIZE;
	transfer_begin(test, true, false);
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	KUNIT_EXPECT_EQ(test, scene->err, -EMSGSIZE);
}

/* A user is told of each batch of completions, errors included, but not if there were none. */
static void drained_after_batches(struct kunit *test)
{
	scene->fabric.role = &scene_collector;
	scene->entry = (struct fi_cq_data_entry){ .op_context = &scene->op };
	kulp_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->drains, 0U);
	scene->entries = 3;
	kulp_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->dones, 3U);
	KUNIT_EXPECT_EQ(test, scene->drains, 3U);
	scene->error = (struct fi_cq_err_entry){ .op_context = &scene->op, .err = EIO };
	kulp_cq_drain(&scene->cq, &scene->queue);
	KUNIT_EXPECT_EQ(test, scene->dones, 4U);
	KUNIT_EXPECT_EQ(test, scene->drains, 4U);
}

/* Completions of a polled queue are handled when somebody polls; those of others never so. */
static void polled(struct kunit *test)
{
	struct kulp_queue *q = &scene->queue;

	scene->entry = (struct fi_cq_data_entry){ .op_context = &scene->op };
	scene->entries = 3;
	KUNIT_EXPECT_EQ(test, kulp_poll(q), 0);
	KUNIT_EXPECT_EQ(test, scene->dones, 0U);
	q->polled = true;
	/* An operation that was refused is posted again. */
	scene->refused = -EAGAIN;
	scene->refusals = 2;
	kulp_submit(q, &scene->op);
	KUNIT_EXPECT_TRUE(test, scene_waits());
	KUNIT_EXPECT_EQ(test, kulp_poll(q), 1);
	KUNIT_EXPECT_FALSE(test, scene_waits());
	KUNIT_EXPECT_EQ(test, scene->dones, 1U);
	scene->error = (struct fi_cq_err_entry){ .op_context = &scene->op, .err = EIO };
	KUNIT_EXPECT_EQ(test, kulp_poll(q), 1);
	KUNIT_EXPECT_EQ(test, scene->err, -EIO);
	KUNIT_EXPECT_EQ(test, kulp_poll(q) + kulp_poll(q), 2);
	KUNIT_EXPECT_EQ(test, kulp_poll(q), 0);
	KUNIT_EXPECT_EQ(test, scene->dones, 4U);
	/* While the device is closed, that handles what is left. */
	scene->entries = 1;
	q->up = false;
	KUNIT_EXPECT_EQ(test, kulp_poll(q), 0);
	KUNIT_EXPECT_EQ(test, scene->dones, 4U);
	q->ep = &scene->ep;
	complete_all(&scene->may_end);
	kulp_fabric_down(&scene->fabric);
	KUNIT_EXPECT_EQ(test, scene->dones, 5U);
}

/* Without transfers a device needs no RDMA; with them, it needs reads at least. */
static void devices_asked_for(struct kunit *test)
{
	struct kulp_fabric f = { .role = &scene_collector };
	const struct kulp_select any = {};

	KUNIT_EXPECT_EQ(test, kulp_fabric_open(&f, &any), -ENODATA);
	KUNIT_EXPECT_EQ(test, scene->asked, 1U);
	KUNIT_EXPECT_EQ(test, scene->caps[0], FI_MSG);
	KUNIT_EXPECT_FALSE(test, f.can_write);
	scene->asked = 0;
	f.role = &scene_role;
	KUNIT_EXPECT_EQ(test, kulp_fabric_open(&f, &any), -ENODATA);
	KUNIT_EXPECT_EQ(test, scene->asked, 1U);
	KUNIT_EXPECT_FALSE(test, scene->caps[0] & FI_WRITE);
	KUNIT_EXPECT_TRUE(test, scene->caps[0] & FI_READ);
}

/*
 * Both ends of a session choose a fabric by themselves. So a fabric that isn't named is the first
 * one, whether its device has writes or not.
 */
static void fabrics_chosen(struct kunit *test)
{
	static const struct {
		char	*name;
		bool	writes[2];
		char	*chosen;
		bool	can_write, usual;
	} rows[] = {
		{ NULL, { false, true }, "first", false, true },
		{ NULL, { true, true }, "first", true, true },
		{ "first", { true, true }, "first", true, true },
		{ "second", { true, true }, "second", true, false },
		{ "second", { true, false }, "second", false, false },
	};
	const u64 caps = FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ;
	struct kulp_select select = {};
	struct kulp_fabric f;
	int i;

	scene->present = true;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		f = (struct kulp_fabric){ .role = &scene_role };
		select.fabric = rows[i].name;
		memcpy(scene->writes, rows[i].writes, sizeof(scene->writes));
		KUNIT_ASSERT_EQ(test, kulp_fabric_choose(&f, &select, caps), 0);
		KUNIT_EXPECT_STREQ(test, f.info->fabric_attr->name, rows[i].chosen);
		KUNIT_EXPECT_EQ(test, f.can_write, rows[i].can_write);
		KUNIT_EXPECT_EQ(test, kulp_fabric_usual(&f, &select, caps), rows[i].usual);
		fi_freeinfo(f.info);
	}
	f = (struct kulp_fabric){ .role = &scene_role };
	select.fabric = "third";
	KUNIT_EXPECT_EQ(test, kulp_fabric_choose(&f, &select, caps), -ENODATA);
}

/* A user of messages that reads and writes if it can gets a device that doesn't, too. */
static void fabric_rma_if_it_can(struct kunit *test)
{
	const u64 reads = FI_RMA | FI_READ | FI_REMOTE_READ;
	const u64 writes = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	struct kulp_role role = scene_collector;
	struct kulp_select select = {};
	struct kulp_fabric f;
	int i;

	scene->present = true;
	role.rma = true;
	for (i = 0; i < 4; i++) {
		f = (struct kulp_fabric){ .role = &role };
		scene->writes[0] = i & 1;
		scene->no_reads = !(i & 2);
		scene->asked = 0;
		KUNIT_ASSERT_EQ(test, kulp_fabric_choose(&f, &select, FI_MSG), 0);
		KUNIT_EXPECT_EQ(test, f.can_write, !!(i & 1));
		KUNIT_EXPECT_EQ(test, f.can_read, !!(i & 2));
		KUNIT_EXPECT_STREQ(test, f.info->fabric_attr->name, "first");
		KUNIT_EXPECT_EQ(test, scene->caps[1], FI_MSG | reads);
		KUNIT_EXPECT_EQ(test, scene->caps[2], FI_MSG | writes | (i & 2 ? reads : 0));
		fi_freeinfo(f.info);
	}
}

/* A user that names no fabric doesn't get another one because that is open. */
static void fabrics_known(struct kunit *test)
{
	struct kulp_fabric *f = &scene->fabric;
	struct kulp_select select = {};

	f->info->fabric_attr->name = kstrdup("second", GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->info->fabric_attr->name);
	f->usual = false;
	mutex_lock(&kulp_fabrics_lock);
	list_add(&f->list, &kulp_fabrics);
	mutex_unlock(&kulp_fabrics_lock);
	KUNIT_EXPECT_NULL(test, kulp_fabric_known(&scene_role, &select));
	select.fabric = "first";
	KUNIT_EXPECT_NULL(test, kulp_fabric_known(&scene_role, &select));
	select.fabric = "second";
	KUNIT_EXPECT_PTR_EQ(test, kulp_fabric_known(&scene_role, &select), f);
	f->usual = true;
	select.fabric = NULL;
	KUNIT_EXPECT_PTR_EQ(test, kulp_fabric_known(&scene_role, &select), f);
	/* One who polls needs a device with polled queues, and others don't mind them. */
	select.polled = 2;
	KUNIT_EXPECT_NULL(test, kulp_fabric_known(&scene_role, &select));
	f->polled = 2;
	KUNIT_EXPECT_PTR_EQ(test, kulp_fabric_known(&scene_role, &select), f);
	select.polled = 0;
	KUNIT_EXPECT_PTR_EQ(test, kulp_fabric_known(&scene_role, &select), f);
	mutex_lock(&kulp_fabrics_lock);
	list_del(&f->list);
	mutex_unlock(&kulp_fabrics_lock);
}

static int fabric_init(struct kunit *test)
{
	struct kulp_fabric *f;
	struct kulp_queue *q;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	f = &scene->fabric;
	f->role = &scene_role;
	f->usual = true;
	f->queues = &scene->queue;
	f->nqueues = 1;
	f->info = fi_allocinfo();
	KUNIT_ASSERT_NOT_NULL(test, f->info);
	INIT_WORK(&f->gone_work, kulp_gone);
	mutex_init(&f->down_lock);
	init_completion(&scene->may_end);
	q = f->queues;
	kulp_queue_init(f, 0);
	scene->cq.ops = &scene_cq_ops;
	q->cq = &scene->cq;
	q->up = true;
	scene->refusals = UINT_MAX;
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
	kulp_fabric_down(&scene->fabric);
	fi_freeinfo(scene->fabric.info);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(refused_by_a_dead_device),
	KUNIT_CASE(refusal_is_a_loss),
	KUNIT_CASE(ended_by_two),
	KUNIT_CASE(end_waits),
	KUNIT_CASE(received_while_closed),
	KUNIT_CASE(failed_receives),
	KUNIT_CASE(failed_senders),
	KUNIT_CASE(data_alone),
	KUNIT_CASE(closed_while_pumped),
	KUNIT_CASE(waits_end),
	KUNIT_CASE(room_comes_later),
	KUNIT_CASE(opened_meanwhile),
	KUNIT_CASE(room_came_before),
	KUNIT_CASE(room_came_meanwhile),
	KUNIT_CASE(room_in_order),
	KUNIT_CASE(lanes_are_apart),
	KUNIT_CASE(lanes_in_order),
	KUNIT_CASE(ends_lead_to_the_next),
	KUNIT_CASE(no_message),
	KUNIT_CASE(peer_is_never_ready),
	KUNIT_CASE(transfer),
	KUNIT_CASE(transfer_is_refused),
	KUNIT_CASE(drained_after_batches),
	KUNIT_CASE(polled),
	KUNIT_CASE(devices_asked_for),
	KUNIT_CASE(fabrics_chosen),
	KUNIT_CASE(fabric_rma_if_it_can),
	KUNIT_CASE(fabrics_known),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_ulp_fabric",
	.init		= fabric_init,
	.exit		= fabric_exit,
	.test_cases	= cases,
};

kunit_test_suite(suite);
