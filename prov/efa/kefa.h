/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_efa: the provider's own declarations, file by file.
 *
 * Locks, outermost first:
 *
 *   kefa_av.lock (mutex)	one address vector: insertions and removals
 *   kefa_dev.lock (mutex)	objects that a device creates and destroys by commands:
 *				all opening, closing and removal. Held while
 *				the core is notified of a removal
 *   kefa_devs_lock (mutex)	dev.c: the list of devices, and their names.
 *				Innermost, but memory is allocated under it
 *   kefa_peers.grow (mutex)	rdm/peer.c: tables of an endpoint's peers are allocated.
 *				Memory is allocated and the endpoint's lock taken inside
 *   kefa_ep.lock, kefa_mrq.lock (spinlock, BH)
 *				a queue pair: posts, polls and outstanding operations
 *   kefa_domain.slid_lock (spinlock, BH)
 *				slid.c: the numbers of address handles in completions.
 *				Innermost
 *   kofi_cq.lock		completions are written under the locks above. Innermost
 *   kefa_cpus_lock (spinlock)	cpus.c: the CPUs of endpoints. Innermost
 *
 * Under these locks the provider neither calls a ULP's handler nor waits for a ULP. All
 * tasks allocate memory under the mutexes in a noio scope, because a task that recovers
 * I/O may wait for the mutexes.
 */
#ifndef KEFA_H
#define KEFA_H

#include <linux/moduleparam.h>
#include <linux/workqueue.h>
#include <kofi/provider.h>

struct fi_info;
struct kefa_dev;
struct kefa_domain;

#define KEFA_VERSION	FI_VERSION(0, 1)

/* main.c */

/**
 * struct kefa_fabric_kind - a kind of endpoints that the provider has for devices
 * @name: name of the fabric. If it has several kinds, the first one's functions are the domain's
 * @type: type of the endpoints
 * @init: called when the module is loaded; NULL for nothing
 * @exit: undo @init
 * @offered: return whether a device has such endpoints; NULL if each device has
 * @info: set the capabilities of an entry for fi_getinfo(), and the attributes of endpoints
 * @open: open an endpoint
 * @cpu_rma: peers may ask for reads and writes of regions by packets, so the CPU carries them out
 * @domain: functions of the fabric's domains
 */
struct kefa_fabric_kind {
	const char		*name;
	enum fi_ep_type		type;
	int (*init)(void);
	void (*exit)(void);
	bool (*offered)(const struct kefa_dev *dev);
	void (*info)(const struct kefa_dev *dev, struct fi_info *info);
	int (*open)(struct kefa_domain *dom, const struct fi_info *info, struct fid_ep **ep);
	bool			cpu_rma;
	struct fi_ops_domain	domain;
};

/* direct/ep.c, rdm/ep.c and dgram/ep.c */
extern const struct kefa_fabric_kind kefa_direct_fabric, kefa_rdm_fabric, kefa_dgram_fabric;

/* dev.c */

extern const struct kefa_fabric_kind * const *kefa_fabrics;
extern const struct kofi_provider *kefa_provider;

/**
 * struct kefa_fabric - an open fabric
 * @fabric_fid: the object
 * @kind: the fabric
 */
struct kefa_fabric {
	struct fid_fabric		fabric_fid;
	const struct kefa_fabric_kind	*kind;
};

/* wq.c */

extern struct workqueue_struct *kefa_wq, *kefa_cmd_wq;

int kefa_wqs_init(void);
void kefa_wqs_fini(void);

/* cpus.c */

int kefa_cpus_next(void);
extern const struct kernel_param_ops kefa_cpus_ops;

/* debugfs.c */

void kefa_debugfs_init(void);
void kefa_debugfs_fini(void);
void kefa_debugfs_add(struct kefa_dev *dev);
void kefa_debugfs_del(struct kefa_dev *dev);

/* status.c */

/* The device's status for a peer without a posted receive. */
#define KEFA_STATUS_RNR		10

int kefa_status_errno(u32 status);
const char *kefa_status_text(int status);

#endif /* KEFA_H */
