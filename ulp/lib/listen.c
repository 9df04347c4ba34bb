// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Listeners: see <kofi/ulp_net.h>. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <kofi/ulp_net.h>

#define KULP_PAUSE_MS	100

static u32 kulp_half_open_of(const struct kulp_listener *l, u64 peer)
{
	struct kulp_conn *conn;
	u32 n = 0;

	list_for_each_entry(conn, &l->half_open, half_open)
		n += conn->peer == peer;
	return n;
}

/* Return: the oldest half-open connection of the address that has the most, or NULL. */
static struct kulp_conn *kulp_half_open_victim(const struct kulp_listener *l)
{
	struct kulp_conn *conn, *victim = NULL;
	u32 n, most = 0, all = 0;

	lockdep_assert_held(&l->lock);
	list_for_each_entry(conn, &l->half_open, half_open) {
		all++;
		n = kulp_half_open_of(l, conn->peer);
		if (n > most) {
			most = n;
			victim = conn;
		}
	}
	return all > KULP_HALF_OPEN ? victim : NULL;
}

/* The owner of a connection that is shut down here closes it. */
static void kulp_conn_admit(struct kulp_listener *l, struct kulp_conn *conn)
{
	struct kulp_conn *victim;

	mutex_lock(&l->lock);
	list_add_tail(&conn->half_open, &l->half_open);
	victim = kulp_half_open_victim(l);
	if (victim) {
		list_del_init(&victim->half_open);
		kulp_net_shutdown(&victim->net);
	}
	mutex_unlock(&l->lock);
}

bool kulp_conn_settled(struct kulp_listener *l, struct kulp_conn *conn)
{
	bool was_half_open;

	mutex_lock(&l->lock);
	was_half_open = !list_empty(&conn->half_open);
	list_del_init(&conn->half_open);
	mutex_unlock(&l->lock);
	return was_half_open;
}
EXPORT_SYMBOL_NS_GPL(kulp_conn_settled, KOFI_ULP);

static int kulp_listener_thread(void *arg)
{
	struct kulp_listener *l = arg;
	struct kulp_conn *conn;

	while (!kthread_should_stop()) {
		conn = l->alloc(l);
		if (conn && !kulp_net_accept(&l->net, &conn->net)) {
			conn->peer = kulp_net_peer(&conn->net, conn->name);
			kulp_conn_admit(l, conn);
			l->start(l, conn);
			continue;
		}
		if (conn)
			l->free(conn);
		/* Out of memory, or about to be stopped. */
		msleep(KULP_PAUSE_MS);
	}
	return 0;
}

void kulp_listener_init(struct kulp_listener *l)
{
	mutex_init(&l->lock);
	kulp_net_init(&l->net);
	INIT_LIST_HEAD(&l->half_open);
}
EXPORT_SYMBOL_NS_GPL(kulp_listener_init, KOFI_ULP);

int kulp_listen(struct kulp_listener *l, const char *text, const char *name)
{
	struct sockaddr_storage addr;
	int ret;

	ret = kulp_net_parse(text, &addr) ?: kulp_net_listen(&l->net, &addr);
	if (!ret) {
		l->thread = kthread_run(kulp_listener_thread, l, "%s", name);
		ret = PTR_ERR_OR_ZERO(l->thread);
	}
	if (ret)
		kulp_net_close(&l->net);
	else
		pr_info("%s listens at %s\n", name, text);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kulp_listen, KOFI_ULP);

void kulp_listener_stop(struct kulp_listener *l)
{
	kulp_net_shutdown(&l->net);
	kthread_stop(l->thread);
	kulp_net_close(&l->net);
}
EXPORT_SYMBOL_NS_GPL(kulp_listener_stop, KOFI_ULP);
