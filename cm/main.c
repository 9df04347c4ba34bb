// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module, network namespaces, and the list of all sessions. */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/wait_bit.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "cm.h"

MODULE_DESCRIPTION("kOFI: sessions between ULPs");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI_ULP);

struct workqueue_struct *kcm_wq;

static DEFINE_MUTEX(kcm_sessions_lock);	/* protects kcm_sessions */
static LIST_HEAD(kcm_sessions);

/**
 * struct kcm_net - a network namespace
 * @socks: number of sockets in it
 * @gone: it goes, no more sockets are opened
 */
struct kcm_net {
	atomic_t	socks;
	bool		gone;
};

static unsigned int kcm_net_id;

/**
 * kcm_session_add() - show a session in debugfs, and tell it if its network namespace goes
 * @s: the session
 */
void kcm_session_add(struct kcm_session *s)
{
	mutex_lock(&kcm_sessions_lock);
	list_add_tail(&s->all, &kcm_sessions);
	mutex_unlock(&kcm_sessions_lock);
}

/**
 * kcm_session_del() - undo kcm_session_add()
 * @s: the session
 */
void kcm_session_del(struct kcm_session *s)
{
	mutex_lock(&kcm_sessions_lock);
	list_del(&s->all);
	mutex_unlock(&kcm_sessions_lock);
}

/* An active session is in its service's namespace, a passive one in its port's. */
static struct net *kcm_session_net(const struct kcm_session *s)
{
	return s->active ? s->config->net : s->port->net;
}

/**
 * kcm_net_use() - count a socket that is about to be opened
 * @net: its network namespace
 *
 * Return: 0, or -ENETDOWN if the namespace goes.
 */
int kcm_net_use(struct net *net)
{
	struct kcm_net *kn = net_generic(net, kcm_net_id);

	atomic_inc(&kn->socks);
	/* Pairs with that of kcm_net_exit(): one of both sees what the other has written. */
	smp_mb__after_atomic();
	if (!READ_ONCE(kn->gone))
		return 0;
	kcm_net_unuse(net);
	return -ENETDOWN;
}

/**
 * kcm_net_unuse() - undo kcm_net_use()
 * @net: the network namespace
 */
void kcm_net_unuse(struct net *net)
{
	struct kcm_net *kn = net_generic(net, kcm_net_id);

	if (atomic_dec_and_test(&kn->socks))
		wake_up_var(&kn->socks);
}

static int __net_init kcm_net_init(struct net *net)
{
	struct kcm_net *kn = net_generic(net, kcm_net_id);

	atomic_set(&kn->socks, 0);
	return 0;
}

static void __net_exit kcm_net_exit(struct net *net)
{
	struct kcm_net *kn = net_generic(net, kcm_net_id);
	struct kcm_session *s;

	WRITE_ONCE(kn->gone, true);
	smp_mb();	/* pairs with that of kcm_net_use() */
	kcm_ports_net_exit(net);
	mutex_lock(&kcm_sessions_lock);
	list_for_each_entry(s, &kcm_sessions, all)
		if (net_eq(kcm_session_net(s), net))
			kcm_want(s, KCM_WANT_NET_GONE);
	mutex_unlock(&kcm_sessions_lock);
	wait_var_event(&kn->socks, !atomic_read(&kn->socks));
}

static struct pernet_operations kcm_net_ops = {
	.init	= kcm_net_init,
	.exit	= kcm_net_exit,
	.id	= &kcm_net_id,
	.size	= sizeof(struct kcm_net),
};

/**
 * kcm_sessions_show() - list all sessions
 * @m: where to
 */
void kcm_sessions_show(struct seq_file *m)
{
	const struct kcm_session *s;

	mutex_lock(&kcm_sessions_lock);
	list_for_each_entry(s, &kcm_sessions, all)
		seq_printf(m, "%u %s %s %s: %s, lives %u, attempts %u, error %d\n", s->nr,
			   s->config ? s->config->service : "-", s->active ? "to" : "from", s->from,
			   kcm_state_names[READ_ONCE(s->state)], READ_ONCE(s->lives),
			   READ_ONCE(s->attempts), READ_ONCE(s->last_err));
	mutex_unlock(&kcm_sessions_lock);
}

static int __init kcm_init(void)
{
	int ret;

	kcm_wq = alloc_workqueue("kofi_cm", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kcm_wq)
		return -ENOMEM;
	/* Devices of a network namespace are removed before its protocols. */
	ret = register_pernet_device(&kcm_net_ops);
	if (ret) {
		destroy_workqueue(kcm_wq);
		return ret;
	}
	kcm_debugfs_init();
	return 0;
}
module_init(kcm_init);

static void __exit kcm_exit(void)
{
	kcm_debugfs_exit();
	unregister_pernet_device(&kcm_net_ops);
	destroy_workqueue(kcm_wq);
}
module_exit(kcm_exit);
