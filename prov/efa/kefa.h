/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kofi_efa: the provider's own declarations, file by file.
 *
 * Locks, outermost first:
 *
 *   kefa_av.lock (mutex)	one address vector: insertions and removals
 *   kefa_dev.lock (mutex)	what a device makes and unmakes by commands: all
 *				opening, closing and removal. Core calls that
 *				tell of removal are made under it
 *   kefa_devs_lock (mutex)	dev.c: which devices there are, and their names.
 *				Nothing is taken inside but memory
 *   kefa_peers.grow (mutex)	rdm/peer.c: tables of an endpoint's peers are allocated.
 *				Inside: memory, and the endpoint's lock
 *   kefa_ep.lock, kefa_mrq.lock (spinlock, BH)
 *				a queue pair: posts, polls and what is outstanding
 *   kefa_cq.starved_lock (spinlock, BH)
 *				rdm/ep.c: endpoints that wait for room in a completion
 *				queue. Nothing is taken inside
 *   kofi_cq.lock		inside: completions are written under the above
 *   kefa_cpus_lock (spinlock)	cpus.c: which CPUs endpoints get. Nothing is taken inside
 *
 * No handler of a ULP is called, and no ULP waited for, under any of them. Memory is
 * allocated under the mutexes as if for I/O, whoever holds them: somebody may wait
 * for them in order to get I/O going again.
 */
#ifndef KEFA_H
#define KEFA_H

#include <linux/moduleparam.h>
#include <linux/workqueue.h>
#include <kofi/provider.h>

struct kefa_dev;

#define KEFA_VERSION	FI_VERSION(0, 1)

/* main.c */

/**
 * struct kefa_fabric - an open fabric
 * @fabric_fid: the object
 * @rdm: it is efa, and not efa-direct
 */
struct kefa_fabric {
	struct fid_fabric	fabric_fid;
	bool			rdm;
};

extern bool kefa_offer_rdm;
extern struct workqueue_struct *kefa_wq, *kefa_cmd_wq;

extern const struct kofi_provider kefa_provider;

/* cpus.c */

int kefa_cpus_next(void);
extern const struct kernel_param_ops kefa_cpus_ops;

/* debugfs.c */

void kefa_debugfs_init(void);
void kefa_debugfs_fini(void);
void kefa_debugfs_add(struct kefa_dev *dev);
void kefa_debugfs_del(struct kefa_dev *dev);

/* status.c */

int kefa_status_errno(u32 status);
const char *kefa_status_text(int status);

#endif /* KEFA_H */
