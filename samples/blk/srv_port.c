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
		if (s && !kulp_net_accept(&port->net, &s->net)) {
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
	const char *host = port->addr ?: "";
	struct sockaddr_storage addr;
	char text[KULP_NET_NAME + 16];
	int ret;

	snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port->port);
	ret = kulp_net_parse(text, &addr);
	if (ret)
		return ret;
	ret = kulp_net_listen(&port->net, &addr);
	if (ret)
		kulp_net_close(&port->net);
	else
		pr_info("listening at %s\n", text);
	return ret;
}

/* Start listening; under kb_conf.enabling. */
int kb_port_start(struct kb_conf *conf)
{
	struct kb_port *port = container_of(conf, struct kb_port, conf);
	int ret = kb_port_listen(port);

	if (ret)
		return ret;
	kb_conf_set(conf, true);
	port->thread = kthread_run(kb_port_thread, port, "kofiblk_port");
	if (!IS_ERR(port->thread))
		return 0;
	kb_conf_set(conf, false);
	kulp_net_close(&port->net);
	return PTR_ERR(port->thread);
}

/* Stop listening, and stop all sessions without waiting; under kb_conf.enabling. */
void kb_port_stop(struct kb_conf *conf)
{
	struct kb_port *port = container_of(conf, struct kb_port, conf);

	kulp_net_shutdown(&port->net);
	kthread_stop(port->thread);
	kulp_net_close(&port->net);
	kb_sessions_stop(port, NULL, NULL);
}
