/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Devices: dev.c, device.c, probe.c, info.c. */
#ifndef KEFA_DEV_H
#define KEFA_DEV_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>
#include <kofi/efa_ext.h>
#include <kofi/fabric.h>
#include "hw.h"

struct dentry;

/* Longest inject, and no more than a message. */
#define KEFA_INJECT	SZ_4K

enum kefa_dev_state {
	KEFA_DEV_PROBING,
	KEFA_DEV_USABLE,
	KEFA_DEV_UNUSABLE,
};

/**
 * struct kefa_dev - a device
 * @list: in kefa_devs; kefa_devs_lock
 * @state: enum kefa_dev_state; kefa_devs_lock
 * @refs: one for being there, one for each domain
 * @lock: see the top
 * @noio: allocation scope of who holds @lock
 * @gone: it was removed or given up; @lock
 * @dead: its admin queue is, so that objects can't be destroyed; @lock
 * @silenced: and it is kept from memory; @lock
 * @refused: objects that it refused to destroy; @lock
 * @set_aside: those of them that are still tried again; @lock
 * @pinned: it keeps the module loaded; @lock
 * @domains: open on it; @lock
 * @end: gives it up
 * @probe: probes it
 * @probed: it was probed, or goes away
 * @going: it goes away, so that a probe ends
 * @ibdev: the device, until it is removed
 * @dma: whom DMA mappings are for; referenced
 * @name: its name; kefa_devs_lock, but for traces: see kefa_dev_name()
 * @driver: its driver's name
 * @debugfs: its file
 * @gid: its address
 * @part_id: generation
 * @numa_node: where it is
 * @mtu: longest message
 * @tx_depth: of a queue pair at most
 * @rx_depth: likewise
 * @max_qp: queue pairs
 * @max_mr: memory regions
 * @max_mr_pages: pages of a region
 * @page_size_cap: bits of page sizes that the device has
 * @page_sizes: those of them that regions have
 * @raw_iova: regions have their DMA address for a remote address
 * @vectors: completion vectors
 * @next_vector: where to go on looking for one; @lock
 * @rnr_retry_ok: it can be told how often to try a peer again that has no receive
 * @rdma_read: it has RDMA read
 * @rdma_write: it has RDMA write
 */
struct kefa_dev {
	struct list_head		list;
	enum kefa_dev_state		state;
	refcount_t			refs;
	struct mutex			lock;	/* see the top */
	unsigned int			noio;
	bool				gone;
	bool				dead;
	bool				silenced;
	u32				refused;
	u32				set_aside;
	bool				pinned;
	struct list_head		domains;
	struct work_struct		end;
	struct work_struct		probe;
	struct completion		probed;
	bool				going;
	struct ib_device		*ibdev;
	struct device			*dma;
	char				name[FI_NAME_MAX];
	char				driver[MODULE_NAME_LEN];
	struct dentry			*debugfs;
	u8				gid[FI_EFA_GID_LEN];
	u32				part_id;
	int				numa_node;
	u32				mtu;
	u32				tx_depth;
	u32				rx_depth;
	u32				max_qp;
	u32				max_mr;
	u32				max_mr_pages;
	u64				page_size_cap;
	u64				page_sizes;
	bool				raw_iova;
	u32				vectors;
	u32				next_vector;
	bool				rnr_retry_ok;
	bool				rdma_read;
	bool				rdma_write;
};

/* device.c */

enum kefa_driver {
	KEFA_DRIVER_GOOD,
	KEFA_DRIVER_OLD,
	KEFA_DRIVER_UNKNOWN,
};

enum kefa_driver kefa_driver(const char *version);
int kefa_devs_init(void);
void kefa_devs_fini(void);
struct kefa_dev *kefa_dev_alloc(void);
void kefa_dev_start(struct kefa_dev *dev);
int kefa_dev_probe_again(const char *name);
void kefa_dev_retire(struct kefa_dev *dev);

/* dev.c */

void kefa_dev_put(struct kefa_dev *dev);
struct kefa_dev *kefa_dev_find(const char *name);
struct kefa_dev *kefa_dev_find_any(const char *name);
int kefa_devs_info(const char *node, struct fi_info **list);
u32 kefa_dev_vector(struct kefa_dev *dev, int cpu);
u32 kefa_cpu_vector(const struct kefa_dev *dev, unsigned int cpu);
void kefa_dev_name(struct kefa_dev *dev, char name[FI_NAME_MAX]);
void kefa_dev_list(struct kefa_dev *dev);
void kefa_dev_probed(struct kefa_dev *dev, bool usable);
void kefa_dev_unlist(struct kefa_dev *dev);
void kefa_devs_wait(const char *name);
void kefa_dev_rename(struct kefa_dev *dev, const char *name);
void kefa_dev_give_up(struct kefa_dev *dev);
void kefa_dev_dead(struct kefa_dev *dev);

/**
 * kefa_dev_lock() - take kefa_dev.lock
 * @dev: the device
 *
 * Context: Process context; sleeps. Memory is allocated in a noio scope until
 * kefa_dev_unlock().
 */
static inline void kefa_dev_lock(struct kefa_dev *dev)
{
	mutex_lock(&dev->lock);
	dev->noio = memalloc_noio_save();
}

/**
 * kefa_dev_unlock() - undo kefa_dev_lock()
 * @dev: the device
 *
 * Context: Process context.
 */
static inline void kefa_dev_unlock(struct kefa_dev *dev)
{
	unsigned int noio = dev->noio;

	mutex_unlock(&dev->lock);
	memalloc_noio_restore(noio);
}

static inline size_t kefa_inject_size(const struct kefa_dev *dev)
{
	return min_t(size_t, KEFA_INJECT, dev->mtu);
}

/* probe.c */

/* What is said of a device's RDMA: what the probe found, or the administrator. */
enum kefa_rdma {
	KEFA_RDMA_AUTO,
	KEFA_RDMA_NONE,
	KEFA_RDMA_READ,
	KEFA_RDMA_WRITE,
	KEFA_RDMA_ALL,
};

extern enum kefa_rdma kefa_rdma;

int kefa_probe(struct kefa_dev *dev);

/* info.c */

struct fi_info *kefa_info(const struct kefa_dev *dev, bool rdm);
u64 kefa_caps(const struct kefa_dev *dev);

#endif /* KEFA_DEV_H */
