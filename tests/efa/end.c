// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ends: opening, connecting, waiting for completions, closing. */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "efa.h"

#define ET_SMALL	SZ_64K

static int et_find(struct et_end *end, const char *device, const struct et_case *test)
{
	struct fi_info *hints;
	int ret;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME,
				 test->rdm ? FI_EFA_FABRIC : FI_EFA_FABRIC_DIRECT, device);
	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | (test->rdm ? FI_TAGGED : FI_RMA) | test->caps;
	hints->mode = FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_RDM;
	ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &end->info);
	fi_freeinfo(hints);
	return ret;
}

static int et_open_objects(struct et_end *end, u64 bind)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = {
		.size		= 2048,
		.format		= FI_CQ_FORMAT_DATA,
		.wait_obj	= FI_WAIT_UNSPEC,
	};
	struct fi_av_attr av_attr = { };

	return fi_fabric(end->info->fabric_attr, &end->fabric, NULL) ?:
	       fi_eq_open(end->fabric, &eq_attr, &end->eq, NULL) ?:
	       fi_domain(end->fabric, end->info, &end->domain, NULL) ?:
	       fi_domain_bind(end->domain, &end->eq->fid, 0) ?:
	       fi_av_open(end->domain, &av_attr, &end->av, NULL) ?:
	       fi_cq_open(end->domain, &cq_attr, &end->cq, NULL) ?:
	       fi_endpoint(end->domain, end->info, &end->ep, NULL) ?:
	       fi_ep_bind(end->ep, &end->av->fid, 0) ?:
	       fi_ep_bind(end->ep, &end->cq->fid,
			  FI_TRANSMIT | FI_RECV | bind) ?:
	       fi_enable(end->ep);
}

int et_open(struct et_end *end, const char *device, const struct et_case *test)
{
	int ret;

	memset(end, 0, sizeof(*end));
	end->buf = vzalloc(ET_BUF);
	/* Not kmalloc(), whose memory can't be leaked in whole pages if the device dies. */
	end->small = alloc_pages_exact(ET_SMALL, GFP_KERNEL | __GFP_ZERO);
	if (!end->buf || !end->small)
		return -ENOMEM;
	ret = et_find(end, device, test);
	return ret ?: et_open_objects(end, test->bind);
}

static int et_close_fid(struct fid *fid)
{
	return fid ? fi_close(fid) : 0;
}

#define ET_CLOSE(obj)	et_close_fid((obj) ? &(obj)->fid : NULL)

/* Close all objects, also after et_open() failed. Return: the first error. */
int et_close(struct et_end *end)
{
	int ret;

	ret = ET_CLOSE(end->ep);
	ret = ET_CLOSE(end->cq) ?: ret;
	ret = ET_CLOSE(end->av) ?: ret;
	ret = ET_CLOSE(end->domain) ?: ret;
	ret = ET_CLOSE(end->eq) ?: ret;
	ret = ET_CLOSE(end->fabric) ?: ret;
	fi_freeinfo(end->info);
	vfree(end->buf);
	if (end->small)
		free_pages_exact(end->small, ET_SMALL);
	memset(end, 0, sizeof(*end));
	return ret;
}

int et_connect(struct et_end *end, struct et_end *other)
{
	struct fi_efa_addr addr;
	size_t len = sizeof(addr);
	int ret;

	ret = fi_getname(&other->ep->fid, &addr, &len);
	if (ret)
		return ret;
	ret = fi_av_insert(end->av, &addr, 1, &end->peer, 0, NULL);
	return ret < 0 ? ret : ret == 1 ? 0 : -EADDRNOTAVAIL;
}

/* Read again after -EAGAIN: a refused post may succeed now, but time isn't up. */
static ssize_t et_sread(struct et_end *end, struct fi_cq_data_entry *entry, int msecs)
{
	unsigned long stop = jiffies + msecs_to_jiffies(msecs);
	ssize_t ret;

	do {
		ret = fi_cq_sread(end->cq, entry, 1, NULL, msecs);
	} while (ret == -EAGAIN && time_before(jiffies, stop));
	return ret;
}

/* Return: 0, -ETIMEDOUT, or the error of the operation. */
int et_wait(struct et_end *end, struct fi_cq_data_entry *entry)
{
	struct fi_cq_err_entry error = { };
	ssize_t ret = et_sread(end, entry, ET_TIMEOUT);

	if (ret == 1)
		return 0;
	if (ret != -FI_EAVAIL)
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	fi_cq_readerr(end->cq, &error, 0);
	et_printf("# error %d, status %d: %s\n", error.err, error.prov_errno,
		  fi_cq_strerror(end->cq, error.prov_errno, NULL, NULL, 0));
	return -error.err;
}

/* Return: 0 for an error, -ENOMSG for a success. */
int et_wait_err(struct et_end *end, struct fi_cq_err_entry *error)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = et_sread(end, &entry, ET_TIMEOUT);

	if (ret == 1)
		return -ENOMSG;
	if (ret != -FI_EAVAIL)
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	return fi_cq_readerr(end->cq, error, 0) == 1 ? 0 : -EIO;
}

/* Return: whether no unexpected completion arrives. */
bool et_quiet(struct et_end *end)
{
	struct fi_cq_data_entry entry;

	return et_sread(end, &entry, 50) == -EAGAIN;
}

void et_fill(u8 *buf, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = seed + i + (i >> 8) * 7;
}

bool et_filled(const u8 *buf, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != (u8)(seed + i + (i >> 8) * 7))
			return false;
	return true;
}
