/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Domains: domain.c. */
#ifndef KEFA_DOMAIN_H
#define KEFA_DOMAIN_H

#include <linux/atomic.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/rhashtable-types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <kofi/provider.h>
#include "destroy.h"
#include "dev.h"
#include "mrq.h"
#include "slid.h"

enum {
	/* Regions hold 2^n pages. The page list of the largest takes 512 KiB. */
	KEFA_MR_ORDERS		= 17,
	KEFA_MR_MIN_ORDER	= 4,
};

/**
 * struct kefa_domain - an open domain
 * @domain_fid: the object
 * @dev: device of the domain, referenced
 * @fabric: name of the domain's fabric
 * @list: in @dev->domains; under @dev->lock
 * @pd: protection domain; NULL after the device was removed
 * @gone: the device was removed; under @dev->lock
 * @refused: objects that the device refused to destroy; under @dev->lock
 * @eps: endpoints of the domain; under @dev->lock
 * @ahs: address handles of the domain; under @dev->lock
 * @ah_table: address handles by GID; under @dev->lock
 * @ah_work: destroys address handles without users
 * @slid_lock: protects @slids and what address handles know about their numbers; taken inside
 *	kefa_ep.lock
 * @slids: address handles by their number in completions, as far as it is known
 * @ah_scan: number of the last scan for operations; under @dev->lock
 * @nothing: a page for SGEs of length 0
 * @nothing_dma: DMA address of @nothing
 * @mrq: queue pair that registers memory
 * @max_open: maximum number of regions that the ULP can have open
 * @nopen: number of regions that the ULP has open
 * @mrs: regions that peers may reach, open ones and the provider's own; under @dev->lock
 * @frmrs: idle regions of the device by size, oldest first; under @dev->lock
 * @nidle: number of idle regions by size; under @dev->lock
 * @nfrmrs: number of the device's regions, in use or idle; under @dev->lock
 * @atomic: fi_query_atomic() tells what endpoints have, as not all of them are of datagrams
 * @cpu_rma: the CPU reads and writes regions for peers
 * @keys: with @cpu_rma, the ULP's regions by kefa_hw_key_slot(); changed under @dev->lock, read
 *	under RCU
 */
struct kefa_domain {
	struct fid_domain	domain_fid;
	struct kefa_dev		*dev;
	const char		*fabric;
	struct list_head	list;
	struct ib_pd		*pd;
	bool			gone;
	struct kefa_refused	refused;
	struct list_head	eps;
	struct list_head	ahs;
	struct rhashtable	ah_table;
	struct work_struct	ah_work;
	spinlock_t		slid_lock;	/* numbers of address handles */
	DECLARE_HASHTABLE(slids, KEFA_SLID_BITS);
	u32			ah_scan;
	void			*nothing;
	dma_addr_t		nothing_dma;
	struct kefa_mrq		mrq;
	u32			max_open;
	atomic_t		nopen;
	struct list_head	mrs;
	struct list_head	frmrs[KEFA_MR_ORDERS];
	u32			nidle[KEFA_MR_ORDERS];
	u32			nfrmrs;
	bool			atomic;
	bool			cpu_rma;
	struct xarray		keys;
};

int kefa_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context);
int kefa_domain_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			 void *context);
void kefa_domain_remove(struct kefa_domain *dom);

static inline struct kefa_domain *to_kefa_domain(struct fid_domain *domain)
{
	return container_of(domain, struct kefa_domain, domain_fid);
}

#endif /* KEFA_DOMAIN_H */
