// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two machines: the one that is loaded with peer= greets the other one, which answers. They meet
 * by a session of kofi_cm, which begins again if one is loaded anew or loses its network.
 *
 *	machine 1: insmod my_pair.ko secret=...			listens at port 7472
 *	machine 2: insmod my_pair.ko secret=... peer=10.0.0.1:7472
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/session.h>
#include <kofi/ulp_net.h>

#define GREETING	"hello, fabric"
#define ANSWER		"hello, machine"
#define SIZE		32

static char *peer, *secret, *listen = "0.0.0.0:7472";
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IP address and port of the other machine; without it, this one listens");
module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen, "IP address and port to listen at");
module_param(secret, charp, 0400);
MODULE_PARM_DESC(secret, "Secret of both machines, 64 hexadecimal digits; none by default");

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_ep *ep;
static struct kulp_key *key;
static struct kcm_listener *listener;
static struct kcm_session *client;
static u8 name[FI_ADDR_MAX];		/* address of the endpoint */
static struct kcm_addrs addrs = { .count = 1, .addr = name };
static char *in, *out;			/* buffers of SIZE bytes, and the operations' contexts */
static fi_addr_t other = FI_ADDR_UNSPEC;	/* the other machine, while there is a session */

static int post_recv(void)
{
	return fi_recv(ep, in, SIZE, NULL, FI_ADDR_UNSPEC, in);
}

static void say(const char *text)
{
	strscpy(out, text, SIZE);
	if (fi_send(ep, out, SIZE, NULL, READ_ONCE(other), out))
		pr_warn("can't send\n");
}

/* Handlers mustn't sleep for long, but may post. A message ends with its 0 or with the buffer. */
static void completed(struct fid_cq *queue, void *context)
{
	struct fi_cq_err_entry error = {};
	struct fi_cq_entry done;
	ssize_t ret;

	while ((ret = fi_cq_read(queue, &done, 1)) == 1 || ret == -FI_EAVAIL) {
		if (ret == -FI_EAVAIL) {
			fi_cq_readerr(queue, &error, 0);
			pr_info("operation ended: %s\n", fi_strerror(error.err));
		} else if (done.op_context == in) {
			pr_info("received: %.*s\n", SIZE, in);
			post_recv();
			if (!client)
				say(ANSWER);
		}
	}
}

static int open_all(struct fi_info *info)
{
	struct fi_cq_attr cq_attr = { .handler = completed };
	struct fi_av_attr av_attr = {};
	size_t len = sizeof(name);
	int ret;

	in = kzalloc(SIZE, GFP_KERNEL);
	out = kzalloc(SIZE, GFP_KERNEL);
	if (!in || !out)
		return -ENOMEM;
	ret = fi_fabric(info->fabric_attr, &fabric, NULL) ?:
	      fi_domain(fabric, info, &domain, NULL) ?:
	      fi_cq_open(domain, &cq_attr, &cq, NULL) ?:
	      fi_av_open(domain, &av_attr, &av, NULL) ?:
	      fi_endpoint(domain, info, &ep, NULL) ?:
	      fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) ?:
	      fi_ep_bind(ep, &av->fid, 0) ?:
	      fi_enable(ep) ?:
	      fi_getname(&ep->fid, name, &len) ?:
	      post_recv();
	addrs.format = info->addr_format;
	addrs.len = len;
	return ret;
}

/* Sessions first: they use the endpoint. Then children before their parents. */
static void close_all(void)
{
	if (client)
		kcm_disconnect(client);
	if (listener)
		kcm_unlisten(listener);
	if (ep)
		fi_close(&ep->fid);
	if (av)
		fi_close(&av->fid);
	if (cq)
		fi_close(&cq->fid);
	if (domain)
		fi_close(&domain->fid);
	if (fabric)
		fi_close(&fabric->fid);
	kulp_key_put(key);
	kfree(in);
	kfree(out);
}

/* --- the session: callbacks of kofi_cm, which may sleep --- */

static int keys(struct kcm_listener *l, const struct kcm_peer *p, struct kulp_key **ours)
{
	ours[0] = kulp_key_get(key);
	return key ? 1 : 0;
}

static int hello(struct kcm_session *s, struct kcm_addrs *mine, const void **p, size_t *n)
{
	*mine = addrs;
	return 0;
}

static int insert(const struct kcm_peer *who)
{
	fi_addr_t addr;
	int ret;

	if (who->addrs.count != 1 || who->addrs.len != addrs.len)
		return -EPROTO;
	ret = fi_av_insert(av, who->addrs.addr, 1, &addr, 0, NULL);
	if (ret == 1)
		WRITE_ONCE(other, addr);
	return ret < 0 ? ret : ret == 1 ? 0 : -EADDRNOTAVAIL;
}

static int accepted(struct kcm_session *s, const struct kcm_peer *who)
{
	return insert(who);
}

/* One machine at a time. An earlier session of the same machine has ended. */
static int request(struct kcm_session *s, const struct kcm_peer *who)
{
	int ret = other == FI_ADDR_UNSPEC ? insert(who) : -EBUSY;

	return ret ?: kcm_accept(s, &addrs, NULL, 0);
}

static void live(struct kcm_session *s)
{
	pr_info("the other machine is there\n");
	if (peer)
		say(GREETING);
}

/* Nothing may use the other machine's address any more when kcm_gone() is called. */
static void stop(struct kcm_session *s, const struct kcm_end *end)
{
	fi_addr_t addr = other;

	WRITE_ONCE(other, FI_ADDR_UNSPEC);
	pr_info("the other machine is gone: %s\n", fi_strerror(-end->err));
	if (addr != FI_ADDR_UNSPEC) {
		fi_flush(ep, addr, 60 * MSEC_PER_SEC);
		fi_av_remove(av, &addr, 1, 0);
	}
	kcm_gone(s);
}

static const struct kcm_ops ops = {
	.keys		= keys,
	.hello		= hello,
	.request	= request,
	.accepted	= accepted,
	.live		= live,
	.stop		= stop,
};

static struct kcm_config config = {
	.net		= &init_net,
	.service	= "my_pair",
	.version_min	= 1,
	.version	= 1,
	.keep_alive_ms	= 5000,
	.replace_ms	= 10000,
	.ops		= &ops,
};

static int meet(void)
{
	struct kcm_client me = {
		.name = "pair", .instance = "", .key = key, .retry_ms = 1000,
	};
	int ret = kulp_net_parse(peer ?: listen, &me.to);

	if (ret)
		return ret;
	return peer ? kcm_connect(&config, &me, NULL, &client) :
		      kcm_listen(&config, &me.to, NULL, &listener);
}

static int __init my_pair_init(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret = hints ? 0 : -ENOMEM;

	if (!ret && secret)
		key = kulp_key_new(secret);
	if (IS_ERR(key)) {
		ret = PTR_ERR(key);
		key = NULL;
	}
	if (!ret) {
		hints->caps = FI_MSG | FI_REMOTE_COMM;
		hints->ep_attr->type = FI_EP_RDM;
		ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &info);
	}
	ret = ret ?: open_all(info) ?: meet();
	fi_freeinfo(info);
	fi_freeinfo(hints);
	if (ret) {
		pr_err("failed: %s\n", fi_strerror(-ret));
		close_all();
	}
	return fi_to_errno(ret);
}
module_init(my_pair_init);
module_exit(close_all);

MODULE_DESCRIPTION("Exchanges a greeting between two machines");
MODULE_LICENSE("Dual BSD/GPL");
KOFI_IMPORT_NS(KOFI);
KOFI_IMPORT_NS(KOFI_CM);
KOFI_IMPORT_NS(KOFI_ULP);
