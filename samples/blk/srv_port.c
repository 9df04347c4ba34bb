// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ports: a thread that accepts connections and starts sessions. */
#define pr_fmt(fmt) "kofiblk_srv: " fmt

#include <linux/delay.h>
#include <linux/kthread.h>
#include "srv.h"

#define KB_PAUSE_MS	100

static int kb_port_thread(void *arg)
{
	struct kb_port *port = arg;
	struct kb_session *s;

	while (!kthread_should_stop()) {
		s = kb_session_new(port);
		if (s && !kb_net_accept(&port->net, &s->net)) {
			kb_session_start(s);
			continue;
		}
		if (s)
			kb_session_forget(s);
		/* Out of memory, or about to be stopped. */
		msleep(KB_PAUSE_MS);
	}
	return 0;
}

static int kb_port_listen(struct kb_port *port)
{
	bool six = strchr(port->addr, ':');
	struct sockaddr_storage addr;
	char text[KB_NET_NAME + 16];
	int ret;

	snprintf(text, sizeof(text), "%s%s%s:%u", six ? "[" : "", port->addr,
		 six ? "]" : "", port->port);
	ret = kb_net_parse(text, &addr);
	if (ret)
		return ret;
	kb_net_init(&port->net);
	ret = kb_net_listen(&port->net, &addr);
	if (ret)
		kb_net_close(&port->net);
	else
		pr_info("listening at %s\n", text);
	return ret;
}

static void kb_port_set(struct kb_port *port, bool enabled)
{
	mutex_lock(&kb_srv_lock);
	port->enabled = enabled;
	mutex_unlock(&kb_srv_lock);
}

int kb_port_enable(struct kb_port *port)
{
	int ret;

	lockdep_assert_held(&port->enabling);
	ret = kb_port_listen(port);
	if (ret)
		return ret;
	kb_port_set(port, true);
	port->thread = kthread_run(kb_port_thread, port, "kofiblk_port");
	if (!IS_ERR(port->thread))
		return 0;
	kb_port_set(port, false);
	kb_net_close(&port->net);
	return PTR_ERR(port->thread);
}

void kb_port_stop(struct kb_port *port)
{
	lockdep_assert_held(&port->enabling);
	if (!port->enabled)
		return;
	kb_port_set(port, false);
	kb_net_shutdown(&port->net);
	kthread_stop(port->thread);
	kb_net_close(&port->net);
	kb_sessions_stop(port, NULL);
}

/* Return: -EINTR if killed. The port is disabled then, but may still have sessions. */
int kb_port_disable(struct kb_port *port)
{
	kb_port_stop(port);
	return wait_event_killable(kb_srv_wait, !READ_ONCE(port->nsessions)) ?
		       -EINTR : 0;
}
