// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many connections between two machines. Without the parameter peer the module is a server, which
 * returns one message of each connection. With it, it is a client, which does what is written to
 * the parameter run:
 *
 *	open N	open N connections, and wait until they are established
 *	echo	send a message over each new connection, and wait until it has come back
 *	kill N	N times: end a connection, by turns from this side and from the server's; and make
 *		another one, with a message
 *	close	close all
 *
 * The write fails with the first error, or if nothing happens for CROWD_MS. A lane has room for
 * fewer receives than it may have connections. Therefore a receive that finds none waits for an
 * earlier one, and no receive follows a message.
 */
#define pr_fmt(fmt) "kofi_crowd: " fmt

#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>

MODULE_DESCRIPTION("kOFI test: many connections");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
KOFI_IMPORT_NS(KOFI);

#define CROWD_QUEUES	16
#define CROWD_BACKLOG	1024
#define CROWD_ASKING	256	/* requests that wait for an answer */
#define CROWD_MS	120000
#define CROWD_TRIES	512	/* sends that find no receive, before other work */
#define CROWD_KILL	U64_MAX	/* has the server close the connection */

static char *prov, *peer;
static unsigned int queues = 4, live, ended, echoed, wrong;
module_param(prov, charp, 0444);
MODULE_PARM_DESC(prov, "name of the provider");
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IP address of the server");
module_param(queues, uint, 0444);
MODULE_PARM_DESC(queues, "number of completion queues");
module_param(live, uint, 0444);
MODULE_PARM_DESC(live, "number of established connections (read only)");
module_param(ended, uint, 0444);
MODULE_PARM_DESC(ended, "number of connections that the peer or a device has ended (read only)");
module_param(echoed, uint, 0444);
MODULE_PARM_DESC(echoed, "number of messages that have come back (read only)");
module_param(wrong, uint, 0444);
MODULE_PARM_DESC(wrong, "number of messages that came back with other bytes (read only)");

/**
 * struct crowd_op - an operation; its address is the context
 * @list: in crowd.recvs or crowd.sends while it can't be posted
 * @conn: the connection
 * @send: a send
 * @buf: the message
 */
struct crowd_op {
	struct list_head	list;
	struct crowd_conn	*conn;
	bool			send;
	u64			buf[2];
};

/**
 * struct crowd_conn - a connection
 * @list: in crowd.conns or crowd.over
 * @ep: the endpoint, NULL when it is closed
 * @queue: number of the completion queue
 * @asked: a client waits for the answer
 * @live: established
 * @over: ended, or to be closed
 * @fresh: the client hasn't sent its message yet
 * @rx: the receive
 * @tx: the send
 */
struct crowd_conn {
	struct list_head	list;
	struct fid_ep		*ep;
	unsigned int		queue;
	bool			asked;
	bool			live;
	bool			over;
	bool			fresh;
	struct crowd_op		rx;
	struct crowd_op		tx;
};

static DECLARE_WAIT_QUEUE_HEAD(crowd_wait);
static DEFINE_MUTEX(crowd_lock);	/* for the client's commands */

static struct crowd {
	struct task_struct	*task;
	bool			woken;
	struct fi_info		*info, *to;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_eq		*eq;
	struct fid_cq		*cq[CROWD_QUEUES];
	struct fid_pep		*pep;
	struct list_head	conns;
	struct list_head	recvs[CROWD_QUEUES];
	struct list_head	sends;
	struct list_head	over;		/* to be closed by a server */
	bool			busy;		/* the step has done something */
	unsigned int		opened;
	unsigned int		asking;
	unsigned long		progress;	/* time of the last one, in jiffies */
	int			err;
} c;

static void crowd_eq_handler(struct fid_eq *eq, void *context)
{
	WRITE_ONCE(c.woken, true);
	wake_up(&crowd_wait);
}

static void crowd_cq_handler(struct fid_cq *cq, void *context)
{
	crowd_eq_handler(NULL, context);
}

/* --- messages --- */

/* Post what waits. An operation of a connection that has ended is dropped. */
static void crowd_post_recvs(struct list_head *recvs)
{
	struct crowd_op *op, *next;

	list_for_each_entry_safe(op, next, recvs, list) {
		if (fi_recv(op->conn->ep, op->buf, sizeof(op->buf), NULL, FI_ADDR_UNSPEC, op) ==
		    -EAGAIN)
			return;
		list_del_init(&op->list);
		c.busy = true;
	}
}

static void crowd_post_sends(void)
{
	struct crowd_op *op, *next;
	unsigned int tries = 0;
	LIST_HEAD(again);
	ssize_t ret;

	list_for_each_entry_safe(op, next, &c.sends, list) {
		ret = fi_send(op->conn->ep, op->buf, sizeof(op->buf), NULL, FI_ADDR_UNSPEC, op);
		if (ret == -EAGAIN || ret == -FI_EOPBADSTATE) {
			list_move_tail(&op->list, &again);
			if (++tries == CROWD_TRIES)
				break;
			continue;
		}
		list_del_init(&op->list);
		c.busy = true;
	}
	list_splice_tail(&again, &c.sends);
}

static void crowd_recv(struct crowd_conn *conn)
{
	list_add_tail(&conn->rx.list, &c.recvs[conn->queue]);
}

static void crowd_send(struct crowd_conn *conn, u64 what)
{
	conn->tx.buf[0] = what;
	conn->tx.buf[1] = ~what;
	list_add_tail(&conn->tx.list, &c.sends);
}

/* A client keeps what has ended for its commands. */
static void crowd_over(struct crowd_conn *conn)
{
	live -= conn->live && !conn->over;
	conn->over = true;
	if (!peer)
		list_move_tail(&conn->list, &c.over);
}

static void crowd_completed(struct crowd_op *op)
{
	struct crowd_conn *conn = op->conn;

	c.progress = jiffies;
	c.busy = true;
	if (op->send || !conn->ep)
		return;
	if (!peer && op->buf[0] == CROWD_KILL) {
		crowd_over(conn);
	} else if (!peer) {
		crowd_send(conn, op->buf[0]);
	} else {
		wrong += op->buf[0] != (unsigned long)conn || op->buf[1] != ~op->buf[0];
		echoed++;
	}
}

static void crowd_read(void)
{
	struct fi_cq_msg_entry entry;
	unsigned int i;
	ssize_t ret;

	for (i = 0; i < queues; i++)
		while ((ret = fi_cq_read(c.cq[i], &entry, 1)) == 1 || ret == -FI_EAVAIL) {
			struct fi_cq_err_entry error = {};

			if (ret == 1)
				crowd_completed(entry.op_context);
			else
				fi_cq_readerr(c.cq[i], &error, 0);
		}
}

/* --- connections --- */

/* fi_close() gives all operations their completions, which are read before the memory is freed. */
static void crowd_close_conn(struct crowd_conn *conn)
{
	list_del_init(&conn->rx.list);
	list_del_init(&conn->tx.list);
	if (conn->ep)
		WARN_ON(fi_close(&conn->ep->fid));
	conn->ep = NULL;
	crowd_read();
	live -= conn->live && !conn->over;
	c.asking -= conn->asked;
	list_del(&conn->list);
	kfree(conn);
}

static void crowd_op_init(struct crowd_op *op, struct crowd_conn *conn, bool send)
{
	INIT_LIST_HEAD(&op->list);
	op->conn = conn;
	op->send = send;
}

/* Connect to @info->dest_addr, or accept the request of @info. After a failure it is refused. */
static int crowd_open_conn(struct fi_info *info)
{
	struct crowd_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int ret = conn ? fi_endpoint(c.domain, info, &conn->ep, conn) : -ENOMEM;

	if (ret) {
		if (info->handle)
			fi_reject(c.pep, info->handle, NULL, 0);
		kfree(conn);
		return ret;
	}
	list_add_tail(&conn->list, &c.conns);
	crowd_op_init(&conn->rx, conn, false);
	crowd_op_init(&conn->tx, conn, true);
	conn->queue = c.opened++ % queues;
	conn->fresh = true;
	ret = fi_ep_bind(conn->ep, &c.eq->fid, 0) ?:
	      fi_ep_bind(conn->ep, &c.cq[conn->queue]->fid, FI_TRANSMIT | FI_RECV) ?:
	      fi_enable(conn->ep) ?:
	      (info->handle ? fi_accept(conn->ep, NULL, 0) :
			      fi_connect(conn->ep, info->dest_addr, NULL, 0));
	if (ret) {
		crowd_close_conn(conn);
	} else if (info->handle) {
		crowd_recv(conn);
	} else {
		conn->asked = true;
		c.asking++;
	}
	return ret;
}

static void crowd_event(u32 event, const struct fi_eq_cm_entry *entry, int err)
{
	struct crowd_conn *conn;

	c.progress = jiffies;
	c.busy = true;
	if (event == FI_CONNREQ) {
		crowd_open_conn(entry->info);
		fi_freeinfo(entry->info);
		return;
	}
	conn = entry->fid->context;
	if (event == FI_CONNECTED) {
		conn->live = true;
		live++;
	} else if (!conn->over) {
		crowd_over(conn);
		ended++;
	}
	c.asking -= conn->asked;
	conn->asked = false;
	if (err && peer && !c.err)
		c.err = -err;
}

static void crowd_events(void)
{
	u8 buf[sizeof(struct fi_eq_cm_entry) + 256] __aligned(8);
	struct fi_eq_cm_entry *entry = (void *)buf;
	ssize_t ret;
	u32 event = 0;

	while ((ret = fi_eq_read(c.eq, &event, buf, sizeof(buf), 0)) != -EAGAIN) {
		struct fi_eq_err_entry error = {};

		if (ret > 0) {
			crowd_event(event, entry, 0);
		} else if (ret == -FI_EAVAIL && fi_eq_readerr(c.eq, &error, 0) > 0) {
			entry->fid = error.fid;
			crowd_event(0, entry, error.err);
		}
	}
}

static void crowd_step(void)
{
	struct crowd_conn *conn;
	unsigned int i;

	c.busy = false;
	crowd_events();
	crowd_read();
	for (i = 0; i < queues; i++)
		crowd_post_recvs(&c.recvs[i]);
	crowd_post_sends();
	while ((conn = list_first_entry_or_null(&c.over, struct crowd_conn, list)))
		crowd_close_conn(conn);
	if (!c.busy)
		wait_event_idle_timeout(crowd_wait, xchg(&c.woken, false) ||
					(c.task && kthread_should_stop()), msecs_to_jiffies(50));
	cond_resched();
}

/* --- commands of the client --- */

/* Go on until a condition is true. */
#define crowd_until(cond)						\
({									\
	int __ret;							\
									\
	c.progress = jiffies;						\
	while (!(__ret = c.err) && !(cond)) {				\
		__ret = -ETIMEDOUT;					\
		if (time_after(jiffies, c.progress + msecs_to_jiffies(CROWD_MS)))	\
			break;						\
		crowd_step();						\
	}								\
	__ret;								\
})

static u64 crowd_memory(void)
{
	struct sysinfo si;

	si_meminfo(&si);
	return (u64)(si.totalram - si.freeram) * PAGE_SIZE;
}

static int crowd_open(unsigned int n)
{
	const u64 start = ktime_get_ns(), memory = crowd_memory();
	const unsigned int first = live;
	unsigned int i;
	s64 bytes;
	u64 us;
	int ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = crowd_open_conn(c.to) ?: crowd_until(c.asking < CROWD_ASKING);
	ret = ret ?: crowd_until(!c.asking);
	if (ret)
		return ret;
	us = max(div_u64(ktime_get_ns() - start, 1000), 1);
	bytes = crowd_memory() - memory;
	pr_info("%u connections in %llu ms, %llu a second; %lld bytes each with this module's %zu\n",
		live - first, div_u64(us, 1000), div64_u64(1000000ULL * n, us), div_s64(bytes, n),
		sizeof(struct crowd_conn));
	return live == first + n ? 0 : -ENOTCONN;
}

static int crowd_echo(void)
{
	const unsigned int before = echoed;
	struct crowd_conn *conn;
	unsigned int n = 0;
	int ret;

	list_for_each_entry(conn, &c.conns, list) {
		if (!conn->fresh)
			continue;
		conn->fresh = false;
		crowd_recv(conn);
		crowd_send(conn, (unsigned long)conn);
		n++;
	}
	ret = crowd_until(echoed - before == n);
	if (n > 1)
		pr_info("%u of %u messages have come back, %u wrong\n", echoed - before, n, wrong);
	return ret ?: wrong ? -EBADMSG : 0;
}

static int crowd_one(void)
{
	return crowd_open_conn(c.to) ?: crowd_until(!c.asking);
}

/* Open a connection, and have the server close it. */
static int crowd_kill_far(void)
{
	struct crowd_conn *conn;
	int ret = crowd_one();

	if (ret)
		return ret;
	conn = list_last_entry(&c.conns, struct crowd_conn, list);
	crowd_send(conn, CROWD_KILL);
	ret = crowd_until(conn->over);
	crowd_close_conn(conn);
	return ret;
}

static int crowd_kill(unsigned int n)
{
	const u64 start = ktime_get_ns();
	struct crowd_conn *conn;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++) {
		conn = list_first_entry_or_null(&c.conns, struct crowd_conn, list);
		if (!conn)
			return -ENOENT;
		crowd_close_conn(conn);
		if (i % 2)
			ret = crowd_kill_far();
		ret = ret ?: crowd_one() ?: crowd_echo();
	}
	if (!ret)
		pr_info("%u kills in %llu ms\n", n,
			div_u64(ktime_get_ns() - start, 1000000));
	return ret;
}

static void crowd_close_all(void)
{
	struct crowd_conn *conn;

	while ((conn = list_first_entry_or_null(&c.conns, struct crowd_conn, list) ?:
		       list_first_entry_or_null(&c.over, struct crowd_conn, list)))
		crowd_close_conn(conn);
}

static int crowd_command(const char *words)
{
	unsigned int n;

	c.err = 0;
	if (sscanf(words, "open %u", &n) == 1)
		return crowd_open(n);
	if (sscanf(words, "kill %u", &n) == 1)
		return crowd_kill(n);
	if (sysfs_streq(words, "echo"))
		return crowd_echo();
	if (!sysfs_streq(words, "close"))
		return -EINVAL;
	crowd_close_all();
	return 0;
}

static int crowd_run(const char *words, const struct kernel_param *param)
{
	int ret = -EINVAL;

	mutex_lock(&crowd_lock);
	if (peer && c.to)
		ret = crowd_command(words);
	mutex_unlock(&crowd_lock);
	if (ret)
		pr_err("error %d of %s", ret, words);
	return ret;
}

static const struct kernel_param_ops crowd_run_ops = { .set = crowd_run };
module_param_cb(run, &crowd_run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "command of a client");

/* --- the module --- */

static int crowd_find(const char *node, u64 flags, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo_for(prov, NULL, NULL);
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->ep_attr->type = FI_EP_MSG;
	ret = fi_getinfo(FI_VERSION(2, 0), node, "7473", flags, hints, info);
	fi_freeinfo(hints);
	return ret;
}

static int crowd_listen(void)
{
	int backlog = CROWD_BACKLOG;

	return fi_passive_ep(c.fabric, c.info, &c.pep, NULL) ?:
	       fi_control(&c.pep->fid, FI_BACKLOG, &backlog) ?:
	       fi_pep_bind(c.pep, &c.eq->fid, 0) ?: fi_listen(c.pep);
}

static int crowd_begin(void)
{
	struct fi_eq_attr eq_attr = { .handler = crowd_eq_handler };
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_MSG, .handler = crowd_cq_handler, .size = 1024,
	};
	unsigned int i;
	int ret;

	INIT_LIST_HEAD(&c.conns);
	INIT_LIST_HEAD(&c.over);
	INIT_LIST_HEAD(&c.sends);
	for (i = 0; i < CROWD_QUEUES; i++)
		INIT_LIST_HEAD(&c.recvs[i]);
	if (!queues || queues > CROWD_QUEUES)
		return -EINVAL;
	ret = crowd_find(NULL, FI_SOURCE, &c.info) ?:
	      fi_fabric(c.info->fabric_attr, &c.fabric, NULL) ?:
	      fi_domain(c.fabric, c.info, &c.domain, NULL) ?:
	      fi_eq_open(c.fabric, &eq_attr, &c.eq, NULL);
	for (i = 0; i < queues && !ret; i++)
		ret = fi_cq_open(c.domain, &cq_attr, &c.cq[i], NULL);
	return ret ?: peer ? crowd_find(peer, 0, &c.to) : crowd_listen();
}

static void crowd_end(void)
{
	unsigned int i;

	if (c.pep)
		fi_close(&c.pep->fid);
	crowd_close_all();
	for (i = 0; i < CROWD_QUEUES; i++)
		if (c.cq[i])
			fi_close(&c.cq[i]->fid);
	if (c.eq)
		fi_close(&c.eq->fid);
	if (c.domain)
		fi_close(&c.domain->fid);
	if (c.fabric)
		fi_close(&c.fabric->fid);
	fi_freeinfo(c.info);
	fi_freeinfo(c.to);
}

static int crowd_thread(void *unused)
{
	while (!kthread_should_stop())
		crowd_step();
	return 0;
}

static int __init crowd_init(void)
{
	int ret = crowd_begin();

	if (!ret && !peer) {
		c.task = kthread_run(crowd_thread, NULL, "kofi_crowd");
		ret = PTR_ERR_OR_ZERO(c.task);
	}
	if (ret)
		crowd_end();
	return fi_to_errno(ret);
}
module_init(crowd_init);

static void __exit crowd_exit(void)
{
	if (!peer)
		kthread_stop(c.task);
	crowd_end();
}
module_exit(crowd_exit);
