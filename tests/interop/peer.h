/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One endpoint of libfabric and the kernel as its peer: what the programs of these tests share.
 * Each of them is one file, so all is static.
 */
#ifndef INTEROP_PEER_H
#define INTEROP_PEER_H

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME_LEN	32

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mr;
static fi_addr_t kernel;
static unsigned char *buf;

static void must(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

/* Open everything, with @room bytes at buf, of which a region has the first @len. */
static void open_all(const char *name, struct fi_cq_attr cq_attr, __u64 caps, int mr_mode,
		     size_t room, size_t len)
{
	const __u64 access = caps & FI_RMA ? FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE :
			     FI_SEND | FI_RECV;
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("efa");
	hints->domain_attr->name = strdup(name);
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | mr_mode;
	hints->ep_attr->type = FI_EP_RDM;
	/* Of version 2's fabrics only one has tags. */
	hints->caps = FI_MSG | FI_TAGGED | caps;
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	must("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
	cq_attr.size = 4096;
	must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	must("bind av", fi_ep_bind(ep, &av->fid, 0));
	must("bind cq", fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
	must("fi_enable", fi_enable(ep));
	buf = aligned_alloc(4096, room);
	if (!buf)
		exit(1);
	memset(buf, 0, room);
	must("fi_mr_reg", fi_mr_reg(domain, buf, len, access, 0, 0, 0, &mr, NULL));
}

static void close_all(void)
{
	fi_close(&ep->fid);
	fi_close(&mr->fid);
	fi_close(&cq->fid);
	fi_close(&av->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
}

/* Insert the kernel's name, in hexadecimal, and write one's own to @name. */
static void introduce(const char *hex, unsigned char *name)
{
	size_t len = NAME_LEN;
	unsigned int i, byte;

	for (i = 0; i < NAME_LEN; i++) {
		if (sscanf(hex + (size_t)2 * i, "%2x", &byte) != 1)
			must("name", -FI_EINVAL);
		name[i] = (unsigned char)byte;
	}
	if (fi_av_insert(av, name, 1, &kernel, 0, NULL) != 1)
		must("fi_av_insert", -FI_EINVAL);
	must("fi_getname", fi_getname(&ep->fid, name, &len));
}

#endif
