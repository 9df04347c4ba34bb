// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A minimal ULP: an endpoint sends itself a message, over any provider. The module does that when
 * it is loaded; if it fails, the module isn't loaded.
 */
#define pr_fmt(fmt) "kofi_hello: " fmt

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>

MODULE_DESCRIPTION("kOFI sample: an endpoint sends itself a message");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
KOFI_IMPORT_NS(KOFI);

static char *provider;
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "name of the provider (default: the first that has reliable datagrams)");

#define HELLO_TEXT	"Hello, fabric!"
#define HELLO_TIMEOUT	(10 * HZ)

/* An operation. Its address is the context in the completion. */
struct hello_op {
	struct completion	done;
	int			err;
	size_t			len;
};

struct hello {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_ep		*ep;
	fi_addr_t		self;
	struct hello_op		recv, send;
	char			*in, *out;
};

/* Handler of the queue. The core calls it again only after a read has found the queue empty. */
static void hello_completed(struct fid_cq *cq, void *context)
{
	struct fi_cq_msg_entry entry;
	struct hello_op *op;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) == 1 || ret == -FI_EAVAIL) {
		struct fi_cq_err_entry error = { };

		if (ret == 1) {
			op = entry.op_context;
			op->len = entry.len;
		} else if (fi_cq_readerr(cq, &error, 0) == 1) {
			op = error.op_context;
			op->err = error.err;
		} else {
			break;
		}
		complete(&op->done);
	}
}

static int hello_find(struct hello *h)
{
	struct fi_info *hints = fi_allocinfo();
	int ret = -ENOMEM;

	if (!hints)
		return ret;
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	if (provider) {
		hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
		if (!hints->fabric_attr->prov_name)
			goto out;
	}
	ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &h->info);
out:
	fi_freeinfo(hints);
	return ret;
}

static int hello_open(struct hello *h)
{
	struct fi_cq_attr cq_attr = {
		.format		= FI_CQ_FORMAT_MSG,
		.handler	= hello_completed,
	};
	struct fi_av_attr av_attr = {};

	return fi_fabric(h->info->fabric_attr, &h->fabric, NULL) ?:
	       fi_domain(h->fabric, h->info, &h->domain, NULL) ?:
	       fi_av_open(h->domain, &av_attr, &h->av, NULL) ?:
	       fi_cq_open(h->domain, &cq_attr, &h->cq, NULL) ?:
	       fi_endpoint(h->domain, h->info, &h->ep, NULL) ?:
	       fi_ep_bind(h->ep, &h->av->fid, 0) ?:
	       fi_ep_bind(h->ep, &h->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	       fi_enable(h->ep);
}

/* Insert the endpoint's own address. Two machines would have to exchange their addresses. */
static int hello_meet(struct hello *h)
{
	u8 name[FI_ADDR_MAX];
	size_t len = sizeof(name);
	int ret;

	ret = fi_getname(&h->ep->fid, name, &len);
	if (ret)
		return ret;
	ret = fi_av_insert(h->av, name, 1, &h->self, 0, NULL);
	if (ret < 0)
		return ret;
	return ret == 1 ? 0 : -EADDRNOTAVAIL;
}

static int hello_wait(struct hello_op *op)
{
	if (!wait_for_completion_timeout(&op->done, HELLO_TIMEOUT))
		return -ETIMEDOUT;
	return -op->err;
}

static int hello_talk(struct hello *h)
{
	ssize_t ret;

	strscpy(h->out, HELLO_TEXT, PAGE_SIZE);
	/* A new endpoint has room for one of each, so -EAGAIN is an error here. */
	ret = fi_recv(h->ep, h->in, PAGE_SIZE, NULL, FI_ADDR_UNSPEC, &h->recv) ?:
	      fi_send(h->ep, h->out, sizeof(HELLO_TEXT), NULL, h->self, &h->send);
	if (ret)
		return ret;
	ret = hello_wait(&h->send) ?: hello_wait(&h->recv);
	if (ret)
		return ret;
	if (h->recv.len != sizeof(HELLO_TEXT) ||
	    memcmp(h->in, h->out, sizeof(HELLO_TEXT)))
		return -EBADMSG;
	pr_info("received \"%s\" on %s of provider %s\n", h->in,
		h->info->domain_attr->name, h->info->fabric_attr->prov_name);
	return 0;
}

static void hello_close_one(struct fid *fid)
{
	int ret = fid ? fi_close(fid) : 0;

	if (ret)
		pr_err("can't close an object: %s\n", fi_strerror(-ret));
}

/* Once the endpoint is closed, the provider doesn't access the buffers any more. */
static void hello_close(struct hello *h)
{
	hello_close_one(h->ep ? &h->ep->fid : NULL);
	hello_close_one(h->cq ? &h->cq->fid : NULL);
	hello_close_one(h->av ? &h->av->fid : NULL);
	hello_close_one(h->domain ? &h->domain->fid : NULL);
	hello_close_one(h->fabric ? &h->fabric->fid : NULL);
	fi_freeinfo(h->info);
	kfree(h->out);
	kfree(h->in);
	kfree(h);
}

static int __init hello_init(void)
{
	struct hello *h = kzalloc(sizeof(*h), GFP_KERNEL);
	int ret = -ENOMEM;

	if (!h)
		return ret;
	init_completion(&h->recv.done);
	init_completion(&h->send.done);
	h->in = kzalloc(PAGE_SIZE, GFP_KERNEL);
	h->out = kzalloc(PAGE_SIZE, GFP_KERNEL);
	if (h->in && h->out)
		ret = hello_find(h) ?: hello_open(h) ?: hello_meet(h) ?:
		      hello_talk(h);
	if (ret)
		pr_err("failed: %s\n", fi_strerror(-ret));
	hello_close(h);
	return fi_to_errno(ret);
}
module_init(hello_init);

static void __exit hello_exit(void)
{
}
module_exit(hello_exit);
