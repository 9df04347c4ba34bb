// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>

#define HELLO	"hello, fabric"

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_ep *ep;
static char *buf;

static int open_all(struct fi_info *info)
{
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = {};

	return fi_fabric(info->fabric_attr, &fabric, NULL) ?:
	       fi_domain(fabric, info, &domain, NULL) ?:
	       fi_cq_open(domain, &cq_attr, &cq, NULL) ?:
	       fi_av_open(domain, &av_attr, &av, NULL) ?:
	       fi_endpoint(domain, info, &ep, NULL) ?:
	       fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) ?:
	       fi_ep_bind(ep, &av->fid, 0) ?:
	       fi_enable(ep);
}

/* Close children first. Once the endpoint is closed, the provider uses no buffer. */
static void close_all(void)
{
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
	kfree(buf);
}

/* An endpoint may send to itself, once its own address is in the vector. */
static int find_self(fi_addr_t *self)
{
	u8 name[FI_ADDR_MAX];
	size_t len = sizeof(name);
	int ret = fi_getname(&ep->fid, name, &len);

	if (ret)
		return ret;
	ret = fi_av_insert(av, name, 1, self, 0, NULL);
	if (ret < 0)
		return ret;
	return ret == 1 ? 0 : -EADDRNOTAVAIL;
}

/* Wait for one completion. fi_cq_readerr() returns that of a failed operation. */
static int wait_for_one(void)
{
	struct fi_cq_err_entry error = {};
	struct fi_cq_entry done;
	ssize_t ret = fi_cq_sread(cq, &done, 1, NULL, 1000);

	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
		return -error.err;
	if (ret == -EAGAIN)
		return -ETIMEDOUT;
	return ret < 0 ? ret : 0;
}

static int talk(void)
{
	fi_addr_t self;
	int ret;

	buf = kzalloc(2 * sizeof(HELLO), GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	memcpy(buf, HELLO, sizeof(HELLO));

	ret = find_self(&self) ?:
	      fi_recv(ep, buf + sizeof(HELLO), sizeof(HELLO), NULL,
		      FI_ADDR_UNSPEC, NULL) ?:
	      fi_send(ep, buf, sizeof(HELLO), NULL, self, NULL) ?:
	      wait_for_one() ?: wait_for_one();
	if (!ret)
		pr_info("received: %s\n", buf + sizeof(HELLO));
	return ret;
}

static int __init my_ulp_init(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &info);
	if (ret == -ENODATA)
		pr_err("no provider has reliable datagrams: try modprobe kofi_loop\n");
	ret = ret ?: open_all(info) ?: talk();
	fi_freeinfo(info);
	fi_freeinfo(hints);
	if (ret) {
		pr_err("failed: %s\n", fi_strerror(-ret));
		close_all();
	}
	return fi_to_errno(ret);
}
module_init(my_ulp_init);
module_exit(close_all);

MODULE_DESCRIPTION("Sends a message to itself");
MODULE_LICENSE("Dual BSD/GPL");
KOFI_IMPORT_NS(KOFI);
