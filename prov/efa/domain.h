/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Domains: domain.c. */
#ifndef KEFA_DOMAIN_H
#define KEFA_DOMAIN_H

#include <linux/list.h>
#include <linux/rhashtable-types.h>
#include <linux/workqueue.h>
#include <kofi/provider.h>
#include "destroy.h"
#include "dev.h"
#include "mrq.h"

enum {
	/* Regions hold 2^n pages. The largest's page list takes 512 KiB. */
	KEFA_MR_ORDERS		= 17,
	KEFA_MR_MIN_ORDER	= 4,
	/* Regions of a domain: the device's table is finite, and shared. */
	KEFA_MR_MAX		= 8192,
};

/**
 * struct kefa_domain - an open domain
 * @domain_fid: the object
 * @dev: its device, referenced
 * @list: in @dev->domains; @dev->lock
 * @pd: protection domain; NULL once the device is gone
 * @rdm: of fabric efa, and not of efa-direct
 * @gone: the device was removed; @dev->lock
 * @refused: objects that the device refused to destroy; @dev->lock
 * @eps: its endpoints; @dev->lock
 * @ahs: its address handles; @dev->lock
 * @ah_table: the same by GID; @dev->lock
 * @ah_work: unmakes those without users
 * @ah_scan: number of the last look for operations; @dev->lock
 * @nothing: a page for SGEs of no bytes
 * @nothing_dma: its DMA address
 * @mrq: registers memory
 * @mrs: regions that are open; @dev->lock
 * @frmrs: the device's regions that nobody uses, oldest first, by size;
 *	@dev->lock
 * @nidle: how many, by size; @dev->lock
 * @nfrmrs: how many there are, in use or not; @dev->lock
 */
struct kefa_domain {
	struct fid_domain	domain_fid;
	struct kefa_dev		*dev;
	struct list_head	list;
	struct ib_pd		*pd;
	bool			rdm;
	bool			gone;
	struct kefa_refused	refused;
	struct list_head	eps;
	struct list_head	ahs;
	struct rhashtable	ah_table;
	struct work_struct	ah_work;
	u32			ah_scan;
	void			*nothing;
	dma_addr_t		nothing_dma;
	struct kefa_mrq		mrq;
	struct list_head	mrs;
	struct list_head	frmrs[KEFA_MR_ORDERS];
	u32			nidle[KEFA_MR_ORDERS];
	u32			nfrmrs;
};

int kefa_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context);
void kefa_domain_remove(struct kefa_domain *dom);

static inline struct kefa_domain *to_kefa_domain(struct fid_domain *domain)
{
	return container_of(domain, struct kefa_domain, domain_fid);
}

#endif /* KEFA_DOMAIN_H */
