// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A ULP with connections: it returns the messages of clients, and can be a client of another
 * machine, or of itself. One thread makes all fi_*() calls, so no lock is needed; handlers wake it.
 */
#define pr_fmt(fmt) "kofi_mirror: " fmt

#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>

MODULE_DESCRIPTION("kOFI sample: returns messages of connections");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
KOFI_IMPORT_NS(KOFI);

static char *prov, *peer;
static unsigned int count = 1000;
module_param(prov, charp, 0444);
MODULE_PARM_DESC(prov, "name of the provider (default: the first that has connections)");
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IP address of a mirror to send messages to (default: none)");
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "number of messages to send (default: 1000)");

#define MIRROR_DEPTH	8	/* receives of a connection */
#define MIRROR_LEN	1024	/* bytes of the longest message */

/* A buffer, to receive into or to send from. Its address is the context of the operation. */
struct mirror_op {
	struct list_head	list;	/* in mirror_waiting, if it couldn't be posted */
	struct mirror_conn	*conn;
	bool			send;
	size_t			len;
	char			buf[MIRROR_LEN];
};

struct mirror_conn {
	struct list_head	list;
	struct fid_ep		*ep;	/* NULL when it is closed */
	bool			client;
	bool			stalled;	/* a send waits */
	struct mirror_op	op[2 * MIRROR_DEPTH];	/* the second half are a client's sends */
};

static DECLARE_WAIT_QUEUE_HEAD(mirror_wait);
static LIST_HEAD(mirror_conns);
static LIST_HEAD(mirror_waiting);

static struct mirror {
	struct task_struct	*task;
	bool			woken;
	struct fi_info		*info, *to;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_eq		*eq;
	struct fid_cq		*cq;
	struct fid_pep		*pep;
	unsigned int		sent, returned, bad;
} m;

static void mirror_eq_handler(struct fid_eq *eq, void *context)
{
	WRITE_ONCE(m.woken, true);
	wake_up(&mirror_wait);
}

static void mirror_cq_handler(struct fid_cq *cq, void *context)
{
	mirror_eq_handler(NULL, context);
}

/*
 * After -EAGAIN the queue wakes the thread when there is room, or a receive of the peer. A message
 * may arrive before FI_CONNECTED, and its way back waits for that. Other errors mean that the
 * connection has ended. Sends keep their order.
 */
static void mirror_post(struct mirror_op *op)
{
	ssize_t ret = -EAGAIN;

	if (!op->send)
		ret = fi_recv(op->conn->ep, op->buf, MIRROR_LEN, NULL, FI_ADDR_UNSPEC, op);
	else if (!op->conn->stalled)
		ret = fi_send(op->conn->ep, op->buf, op->len, NULL, FI_ADDR_UNSPEC, op);
	if (ret == -EAGAIN || ret == -FI_EOPBADSTATE) {
		list_add_tail(&op->list, &mirror_waiting);
		op->conn->stalled |= op->send;
	}
}

/* The number of a message determines its length and its bytes. */
static void mirror_send_next(struct mirror_op *op)
{
	if (m.sent == count)
		return;
	op->send = true;
	op->len = m.sent % (MIRROR_LEN + 1);
	memset(op->buf, m.sent++, op->len);
	mirror_post(op);
}

static void mirror_completed(struct mirror_op *op, size_t len)
{
	if (!op->conn->ep)
		return;
	if (!op->conn->client) {
		op->send = !op->send;
		op->len = len;
		mirror_post(op);
	} else if (op->send) {
		mirror_send_next(op);
	} else {
		m.bad += len != m.returned % (MIRROR_LEN + 1) ||
			 memchr_inv(op->buf, m.returned, len);
		if (++m.returned == count)
			pr_info("%u messages came back, %u of them wrong\n", count, m.bad);
		mirror_post(op);
	}
}

/* An operation that failed was the last one with its buffer: the connection ends. */
static void mirror_read(void)
{
	struct fi_cq_msg_entry entry;
	struct mirror_op *op, *next;
	LIST_HEAD(again);
	ssize_t ret;

	while ((ret = fi_cq_read(m.cq, &entry, 1)) == 1 || ret == -FI_EAVAIL) {
		struct fi_cq_err_entry error = {};

		if (ret == 1)
			mirror_completed(entry.op_context, entry.len);
		else
			fi_cq_readerr(m.cq, &error, 0);
	}
	list_splice_init(&mirror_waiting, &again);
	list_for_each_entry(op, &again, list)
		op->conn->stalled = false;
	list_for_each_entry_safe(op, next, &again, list) {
		list_del_init(&op->list);
		mirror_post(op);
	}
}

/* fi_close() gives all operations their completions. They are read before the memory is freed. */
static void mirror_close_conn(struct mirror_conn *conn)
{
	for (int i = 0; i < ARRAY_SIZE(conn->op); i++)
		list_del_init(&conn->op[i].list);
	fi_close(&conn->ep->fid);
	conn->ep = NULL;
	mirror_read();
	list_del(&conn->list);
	kfree(conn);
}

/* Connect to @info->dest_addr, or accept the request of @info. After a failure it is refused. */
static int mirror_open_conn(struct fi_info *info)
{
	struct mirror_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int i, ret = conn ? fi_endpoint(m.domain, info, &conn->ep, NULL) : -ENOMEM;

	if (ret) {
		if (info->handle)
			fi_reject(m.pep, info->handle, NULL, 0);
		kfree(conn);
		return ret;
	}
	conn->client = !info->handle;
	list_add(&conn->list, &mirror_conns);
	for (i = 0; i < ARRAY_SIZE(conn->op); i++) {
		conn->op[i].conn = conn;
		INIT_LIST_HEAD(&conn->op[i].list);
	}
	ret = fi_ep_bind(conn->ep, &m.eq->fid, 0) ?:
	      fi_ep_bind(conn->ep, &m.cq->fid, FI_TRANSMIT | FI_RECV) ?: fi_enable(conn->ep);
	/* Receives that are there from the beginning let the peer send at once. */
	for (i = 0; i < MIRROR_DEPTH && !ret; i++)
		mirror_post(&conn->op[i]);
	ret = ret ?: conn->client ? fi_connect(conn->ep, info->dest_addr, NULL, 0) :
				    fi_accept(conn->ep, NULL, 0);
	if (ret)
		mirror_close_conn(conn);
	return ret;
}

static void mirror_event(u32 event, const struct fi_eq_cm_entry *entry)
{
	struct mirror_conn *conn, *next;

	if (event == FI_CONNREQ) {
		mirror_open_conn(entry->info);
		fi_freeinfo(entry->info);
	}
	list_for_each_entry_safe(conn, next, &mirror_conns, list) {
		if (&conn->ep->fid != entry->fid)
			continue;
		for (int i = 0; event == FI_CONNECTED && conn->client && i < MIRROR_DEPTH; i++)
			mirror_send_next(&conn->op[MIRROR_DEPTH + i]);
		if (event == FI_SHUTDOWN)
			mirror_close_conn(conn);
	}
}

static void mirror_events(void)
{
	u8 buf[sizeof(struct fi_eq_cm_entry) + 256] __aligned(8);	/* with private data */
	struct fi_eq_cm_entry *entry = (void *)buf;
	ssize_t ret;
	u32 event = 0;

	while ((ret = fi_eq_read(m.eq, &event, buf, sizeof(buf), 0)) != -EAGAIN) {
		struct fi_eq_err_entry error = {};

		if (ret > 0) {
			mirror_event(event, entry);
		} else if (ret == -FI_EAVAIL && fi_eq_readerr(m.eq, &error, 0) > 0) {
			pr_err("a connection failed: %s\n", fi_strerror(error.err));
			entry->fid = error.fid;
			mirror_event(FI_SHUTDOWN, entry);
		}
	}
}

static int mirror_find(const char *node, u64 flags, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo_for(prov, NULL, NULL);
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	ret = fi_getinfo(FI_VERSION(2, 0), node, "7472", flags, hints, info);
	fi_freeinfo(hints);
	return ret;
}

static int mirror_open(void)
{
	struct fi_eq_attr eq_attr = { .handler = mirror_eq_handler };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG, .handler = mirror_cq_handler };

	return mirror_find(NULL, FI_SOURCE, &m.info) ?:
	       fi_fabric(m.info->fabric_attr, &m.fabric, NULL) ?:
	       fi_domain(m.fabric, m.info, &m.domain, NULL) ?:
	       fi_eq_open(m.fabric, &eq_attr, &m.eq, NULL) ?:
	       fi_cq_open(m.domain, &cq_attr, &m.cq, NULL) ?:
	       fi_passive_ep(m.fabric, m.info, &m.pep, NULL) ?:
	       fi_pep_bind(m.pep, &m.eq->fid, 0) ?: fi_listen(m.pep) ?:
	       (peer ? mirror_find(peer, 0, &m.to) ?: mirror_open_conn(m.to) : 0);
}

static void mirror_close(void)
{
	struct fid *fid[] = { &m.pep->fid, &m.cq->fid, &m.eq->fid, &m.domain->fid, &m.fabric->fid };
	struct mirror_conn *conn, *next;

	list_for_each_entry_safe(conn, next, &mirror_conns, list)
		mirror_close_conn(conn);
	for (int i = 0; i < ARRAY_SIZE(fid); i++)
		if (fid[i])
			fi_close(fid[i]);
	fi_freeinfo(m.info);
	fi_freeinfo(m.to);
}

static int mirror_thread(void *unused)
{
	while (!kthread_should_stop()) {
		wait_event_idle(mirror_wait, xchg(&m.woken, false) || kthread_should_stop());
		mirror_events();
		mirror_read();
	}
	return 0;
}

static int __init mirror_init(void)
{
	int ret = mirror_open();

	m.task = ret ? NULL : kthread_run(mirror_thread, NULL, "kofi_mirror");
	ret = ret ?: PTR_ERR_OR_ZERO(m.task);
	if (ret)
		mirror_close();
	return fi_to_errno(ret);
}
module_init(mirror_init);

static void __exit mirror_exit(void)
{
	kthread_stop(m.task);
	mirror_close();
}
module_exit(mirror_exit);
