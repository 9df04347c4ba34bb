// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* For rc_cm_kunit.c: the sources of kofi_rc that it tests, on sessions and an iw_cm of its own. */
#include <linux/slab.h>
#include "../../ulp/rc/wire.c"
#include "../../ulp/rc/mr.c"
#include "../../ulp/rc/grant.c"
#include "../../ulp/rc/conn.c"
#include "../../ulp/rc/tx.c"
#include "../../ulp/rc/rma.c"
#include "../../ulp/rc/rx.c"
#include "../../ulp/rc/revoke.c"
#include "../../ulp/rc/listen.c"
#include "../../ulp/rc/setup.c"
#include "../../ulp/rc/cm.c"
#include <kunit/test.h>
#include "crew.h"

/* The states of iw_cm, as far as events depend on them. */
enum iw_state {
	IW_IDLE,
	IW_SENT,	/* CONNECT_REPLY must come */
	IW_RECV,	/* ESTABLISHED must come if the connection is accepted */
	IW_UP,		/* CLOSE must come */
	IW_CLOSED,
};

/**
 * struct iw - an id of iw_cm
 * @id: the id
 * @state: its state
 * @refs: references of kofi_rc
 * @wrong: an event came in a wrong state
 * @status: status of CONNECT_REPLY
 * @replies: number of CONNECT_REPLY
 * @no_memory: number of events with private data that fail
 * @priv: first byte of private data
 * @priv_len: bytes of it
 * @ird: reads of the peer that CONNECT_REPLY or ESTABLISHED tells of
 * @ord: reads of this side
 * @local: address of CONNECT_REQUEST
 * @nr: its provider_data
 * @requests: number of CONNECT_REQUEST
 * @slow: ESTABLISHED waits for iw_runs()
 * @heard: calls of the ULP's handler with ESTABLISHED
 * @before: messages that the ULP had when that handler returned
 */
struct iw {
	struct iw_cm_id		id;
	enum iw_state		state;
	int			refs;
	bool			wrong;
	int			status;
	unsigned int		replies;
	unsigned int		no_memory;
	u8			priv;
	u8			priv_len;
	u8			ird;
	u8			ord;
	struct sockaddr_storage	local;
	void			*nr;
	unsigned int		requests;
	bool			slow;
	unsigned int		heard;
	unsigned int		before;
};

/**
 * struct kcm_session - a session, as the suite has it
 * @context: of kofi_rc
 * @instance: what was asked for
 * @to: where to
 * @gones: calls of kcm_gone()
 * @byes: calls of kcm_bye()
 * @disconnects: calls of kcm_disconnect()
 * @accepts: calls of kcm_accept()
 * @rejects: calls of kcm_reject()
 * @reject_err: its argument
 * @reject: its private data, parsed
 * @reject_priv: first byte of the ULP's private data
 * @accept_ret: result of kcm_accept()
 */
struct kcm_session {
	void			*context;
	char			instance[KCM_NAME];
	struct sockaddr_storage	to;
	unsigned int		gones;
	unsigned int		byes;
	unsigned int		disconnects;
	unsigned int		accepts;
	unsigned int		rejects;
	int			reject_err;
	struct krc_reject	reject;
	u8			reject_priv;
	int			accept_ret;
};

static struct scene {
	struct krc_link		link;
	struct krc_net		net;
	struct kulp_fabric	fabric;
	struct kulp_queue	kulp;
	struct krc_queue	queue;
	struct fi_info		*info;
	struct krc_cq		cq;
	struct krc_qp		qp;
	struct iw		iw;
	struct iw		listener;
	struct kcm_session	s;
	int			peers;
	unsigned int		meets;		/* calls of kulp_peer_get() */
	int			credits;
	bool			no_credits;	/* there is no memory for receives */
	int			meet_ret;
	int			connect_ret;	/* result of kcm_connect() */
	bool			flush_in_put;	/* krc_net_put() waits for the queue pair's flush */
	unsigned int		ports;		/* open listeners of kofi_cm */
	int			listen_ret;
	bool			down;		/* the link has no device */
	bool			inited;
	u8			from_peer[sizeof(struct krc_wire_side) + 8];
	size_t			from_peer_len;
	struct sockaddr_storage	local;
	unsigned int		received;	/* receives with a message */
	unsigned int		unreceived;	/* receives that were flushed */
} *scene;

unsigned int krc_port = KRC_PORT;
unsigned int krc_datagram = 4608;
struct kulp_key *krc_key;

/* --- the rest of kofi_rc --- */

void krc_net_send(struct krc_buf *buf)
{
	krc_sent(buf, 0);
}

void krc_net_rma(struct krc_swr *w)
{
}

int krc_net_open_grant(struct krc_grant *g)
{
	return -EOPNOTSUPP;
}

void krc_net_grant(struct krc_grant *g)
{
}

bool krc_net_gone(const struct krc_grant *g)
{
	return true;
}

void krc_net_stuck(struct krc_queue *q)
{
}

int krc_net_close(struct krc_grant *g)
{
	return 0;
}

void krc_net_lost(struct krc_queue *q)
{
}

void krc_up_sent(struct krc_conn *c, const struct krc_swr *w, int err)
{
}

void krc_up_received(struct krc_conn *c, const struct krc_rwr *r, int err)
{
	if (err)
		scene->unreceived++;
	else
		scene->received++;
}

void krc_up_notify(struct krc_conn *c)
{
}

void krc_up_notify_later(struct krc_conn *c)
{
}

void krc_net_put(struct krc_net *net)
{
	if (scene->flush_in_put)
		krc_wait_flushed(&scene->qp.c);
	if (net)
		WARN_ON(refcount_dec_and_test(&net->refs));
}

struct krc_link *krc_link_find(const struct sockaddr_storage *addr)
{
	return ib_device_try_get(&scene->link.ib) ? &scene->link : NULL;
}

struct krc_net *krc_link_net(struct krc_link *link)
{
	return scene->down ? NULL : krc_net_get(&scene->net);
}

/* --- below it --- */

int kulp_peer_get(struct kulp_fabric *f, const void *addr, fi_addr_t *peer)
{
	scene->meets++;
	scene->peers += !scene->meet_ret;
	*peer = 1;
	return scene->meet_ret;
}

void kulp_peer_put(struct kulp_fabric *f, fi_addr_t peer)
{
	scene->peers--;
}

u32 kulp_credits_take(struct kulp_queue *q, u32 want)
{
	if (scene->no_credits)
		return 0;
	scene->credits += want;
	return want;
}

void kulp_credits_give(struct kulp_queue *q, u32 n)
{
	scene->credits -= n;
}

void kulp_key_put(struct kulp_key *key)
{
}

int kcm_listen(const struct kcm_config *config, const struct sockaddr_storage *addr, void *context,
	       struct kcm_listener **listener)
{
	scene->ports += !scene->listen_ret;
	return scene->listen_ret;
}

void kcm_unlisten(struct kcm_listener *l)
{
	scene->ports--;
}

int kcm_connect(const struct kcm_config *config, const struct kcm_client *client, void *context,
		struct kcm_session **session)
{
	struct kcm_session *s = &scene->s;

	s->context = context;
	s->to = client->to;
	strscpy(s->instance, client->instance, sizeof(s->instance));
	if (scene->connect_ret) {
		krc_stop(&scene->qp.c, KRC_BY_ULP, 0);
		return scene->connect_ret;
	}
	*session = s;
	return 0;
}

void kcm_disconnect(struct kcm_session *s)
{
	s->disconnects++;
}

int kcm_accept(struct kcm_session *s, const struct kcm_addrs *addrs, const void *priv, size_t len)
{
	struct krc_side side;

	if (addrs->count != 1 || krc_parse_side(priv, len, &side))
		return -EINVAL;
	s->accepts++;
	return s->accept_ret;
}

bool kcm_reject(struct kcm_session *s, int err, bool again, u32 after_ms, const char *why,
		const void *priv, size_t len)
{
	s->rejects++;
	s->reject_err = err;
	if (krc_parse_reject(priv, len, &s->reject))
		s->reject_err = -EPROTO;
	else if (s->reject.priv_len)
		s->reject_priv = s->reject.priv[0];
	return true;
}

void kcm_gone(struct kcm_session *s)
{
	s->gones++;
}

void kcm_bye(struct kcm_session *s, enum kcm_reason reason, bool again, const void *data,
	     size_t len)
{
	s->byes++;
}

void kcm_set_context(struct kcm_session *s, void *context)
{
	s->context = context;
}

void *kcm_context(const struct kcm_session *s)
{
	return s->context;
}

int kcm_names(const struct kcm_session *s, struct sockaddr_storage *local,
	      struct sockaddr_storage *remote)
{
	*local = scene->local;
	*remote = scene->local;
	return 0;
}

/* --- iw_cm --- */

static void iw_add_ref(struct iw_cm_id *id)
{
	container_of(id, struct iw, id)->refs++;
}

static void iw_rem_ref(struct iw_cm_id *id)
{
	struct iw *iw = container_of(id, struct iw, id);

	/* Without its queue pair, nothing keeps iw_cm loaded. */
	iw->wrong |= iw == &scene->iw && !scene->qp.cm;
	iw->refs--;
}

static void iw_go(struct iw *iw, enum iw_state from, enum iw_state to)
{
	iw->wrong |= iw->state != from;
	iw->state = to;
}

/* The handler of iw_cm's user, which calls the ULP. */
static int iw_handler(struct iw_cm_id *id, struct iw_cm_event *event)
{
	struct iw *iw = container_of(id, struct iw, id);

	flush_work(&scene->queue.work);
	iw->before = scene->received;
	iw->heard++;
	return 0;
}

/* The thread of iw_cm handles ESTABLISHED. */
static void iw_runs(struct iw *iw)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_ESTABLISHED };

	iw->id.cm_handler(&iw->id, &event);
	flush_work(&scene->queue.work);
}

static int iw_event(struct iw_cm_id *id, struct iw_cm_event *event)
{
	struct iw *iw = container_of(id, struct iw, id);

	if (event->private_data_len && iw->no_memory) {
		iw->no_memory--;
		return -ENOMEM;
	}
	iw->priv_len = event->private_data_len;
	iw->priv = iw->priv_len ? *(u8 *)event->private_data : 0;
	if (event->event != IW_CM_EVENT_CLOSE) {
		iw->ird = event->ird;
		iw->ord = event->ord;
	}
	switch (event->event) {
	case IW_CM_EVENT_CONNECT_REQUEST:
		iw->wrong |= event->status;
		iw->requests++;
		iw->local = event->local_addr;
		iw->nr = event->provider_data;
		break;
	case IW_CM_EVENT_CONNECT_REPLY:
		iw->status = event->status;
		iw->replies++;
		iw_go(iw, IW_SENT, event->status ? IW_IDLE : IW_UP);
		break;
	case IW_CM_EVENT_ESTABLISHED:
		iw_go(iw, IW_RECV, IW_UP);
		if (!iw->slow)
			iw_runs(iw);
		break;
	case IW_CM_EVENT_CLOSE:
		iw_go(iw, IW_UP, IW_CLOSED);
		break;
	default:
		iw->wrong = true;
	}
	return 0;
}

static void iw_init(struct iw *iw)
{
	iw->id.device = &scene->link.ib;
	iw->id.event_handler = iw_event;
	iw->id.cm_handler = iw_handler;
	iw->id.add_ref = iw_add_ref;
	iw->id.rem_ref = iw_rem_ref;
}

/* --- begin and end --- */

static void scene_net_init(struct kunit *test)
{
	scene->info = fi_allocinfo();
	KUNIT_ASSERT_NOT_NULL(test, scene->info);
	scene->info->addr_format = 7;
	scene->fabric.info = scene->info;
	scene->fabric.max_msg = 8928;
	scene->fabric.queues = &scene->kulp;
	scene->fabric.nvectors = 1;
	scene->fabric.nqueues = 1;
	scene->kulp.fabric = &scene->fabric;
	scene->kulp.addrlen = 8;
	krc_queue_init(&scene->queue);
	scene->queue.kulp = &scene->kulp;
	refcount_set(&scene->net.refs, 1);
	scene->net.fabric = &scene->fabric;
	scene->net.queues = &scene->queue;
	scene->net.nqueues = 1;
}

static int cm_scene_init(struct kunit *test)
{
	struct krc_conn_attr attr = { .sends = 4, .send_sges = 1, .recvs = 4 };
	struct krc_link *link;

	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	link = &scene->link;
	refcount_set(&link->ib.refcount, 1);
	init_completion(&link->ib.unreg_completion);
	krc_mrs_init(&link->mrs);
	xa_init_flags(&link->qpns, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	scene_net_init(test);
	iw_init(&scene->iw);
	iw_init(&scene->listener);
	attr.mrs = &link->mrs;
	KUNIT_ASSERT_EQ(test, krc_conn_init(&scene->qp.c, &attr), 0);
	scene->inited = true;
	scene->qp.ib.device = &link->ib;
	scene->qp.ib.recv_cq = &scene->cq.ib;
	scene->qp.ib.send_cq = &scene->cq.ib;
	KUNIT_ASSERT_EQ(test, xa_alloc_irq(&link->qpns, &scene->qp.ib.qp_num, &scene->qp,
					   XA_LIMIT(2, 9), GFP_KERNEL), 0);
	return 0;
}

static void cm_scene_exit(struct kunit *test)
{
	if (!scene)
		return;
	if (scene->inited)
		krc_conn_fini(&scene->qp.c);
	if (scene->listener.refs)
		krc_listen_end(&scene->listener.id);
	cancel_work_sync(&scene->queue.work);
	xa_destroy(&scene->link.qpns);
	fi_freeinfo(scene->info);
}

static int cm_suite_init(struct kunit_suite *suite)
{
	krc_wq = alloc_workqueue("rc_cm_scene", WQ_MEM_RECLAIM, 0);
	krc_stop_wq = alloc_workqueue("rc_cm_scene_stop", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return krc_wq && krc_stop_wq ? krc_cm_init() : -ENOMEM;
}

static void cm_suite_exit(struct kunit_suite *suite)
{
	krc_cm_exit();
	destroy_workqueue(krc_stop_wq);
	destroy_workqueue(krc_wq);
	krc_conn_exit();
}
