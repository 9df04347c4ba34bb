/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Devices: dev.c, device.c, probe.c, info.c. */
#ifndef KEFA_DEV_H
#define KEFA_DEV_H

#include <linux/atomic.h>
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

/* Largest inject, unless the device's messages are shorter. */
#define KEFA_INJECT	SZ_4K

/* Kinds of objects of the device of which it has a limited number. */
enum kefa_kind {
	KEFA_QP,
	KEFA_MR,
	KEFA_AH,
	KEFA_KINDS,
};

enum kefa_dev_state {
	KEFA_DEV_PROBING,
	KEFA_DEV_USABLE,
	KEFA_DEV_UNUSABLE,
};

/**
 * struct kefa_dev - a device
 * @list: in kefa_devs; under kefa_devs_lock
 * @state: enum kefa_dev_state; under kefa_devs_lock
 * @refs: one reference while the device is present, and one for each domain
 * @lock: see kefa.h
 * @noio: allocation scope of the task that holds @lock
 * @gone: the device was removed or given up; under @lock
 * @dead: the admin queue is dead, so objects can't be destroyed; under @lock
 * @silenced: the device's access to memory is blocked; under @lock
 * @refused: number of objects that the device refused to destroy; under @lock
 * @set_aside: number of refused objects whose destruction is still retried; under @lock
 * @pinned: the device pins the module; under @lock
 * @domains: open domains; under @lock
 * @end: work item that ends the domains of a device that was given up
 * @probe: work item that probes the device
 * @probed: completed when the device was probed or is being removed
 * @going: the device is being removed, so a probe must end
 * @ibdev: the RDMA device; NULL after removal
 * @dma: device that DMA mappings are for; referenced
 * @name: name of the device; under kefa_devs_lock, except for traces: see kefa_dev_name()
 * @driver: name of the driver
 * @debugfs: file in debugfs
 * @gid: GID of the device
 * @part_id: PCI device id, which has the generation
 * @numa_node: NUMA node of the device
 * @mtu: largest message in bytes
 * @tx_depth: maximum depth of a send queue
 * @rx_depth: maximum depth of a receive queue
 * @max_qp: maximum number of queue pairs
 * @max_mr: maximum number of memory regions
 * @max_ah: maximum number of address handles
 * @used: number of objects that the provider has created and the device hasn't destroyed
 * @max_mr_pages: maximum number of pages of a region
 * @page_size_cap: page sizes that the device supports, as bits
 * @page_sizes: page sizes that regions use, as bits
 * @raw_iova: regions use their DMA address as remote address
 * @vectors: number of completion vectors
 * @next_vector: vector at which the next search starts; under @lock
 * @rnr_retry_ok: the device accepts a limit on retries to a peer without a receive
 * @rdma_read: RDMA read may be used
 * @rdma_write: RDMA write may be used
 * @dgram: datagrams may be used
 * @ud_prefix: bytes that the device writes in front of a received datagram
 */
struct kefa_dev {
	struct list_head		list;
	enum kefa_dev_state		state;
	refcount_t			refs;
	struct mutex			lock;	/* see kefa.h */
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
	u32				max_ah;
	atomic_t			used[KEFA_KINDS];
	u32				max_mr_pages;
	u64				page_size_cap;
	u64				page_sizes;
	bool				raw_iova;
	u32				vectors;
	u32				next_vector;
	bool				rnr_retry_ok;
	bool				rdma_read;
	bool				rdma_write;
	bool				dgram;
	u32				ud_prefix;
};

/* device.c */

enum kefa_driver {
	KEFA_DRIVER_GOOD,
	KEFA_DRIVER_OLD,
	KEFA_DRIVER_UNKNOWN,
};

enum kefa_driver kefa_driver_check(const char *version);
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

/**
 * struct kefa_pick - the devices that a caller of fi_getinfo() asks for
 * @name: name of the device, or NULL for any
 * @gid: GID of the device, or NULL for any
 * @tx_size: least size of the send queue, or 0
 * @rx_size: least size of the receive queue, or 0
 */
struct kefa_pick {
	const char	*name;
	const u8	*gid;
	size_t		tx_size;
	size_t		rx_size;
};

int kefa_devs_info(const struct kefa_pick *pick, struct fi_info **list);
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

/* Values of the parameter rdma. */
enum kefa_rdma {
	KEFA_RDMA_AUTO,
	KEFA_RDMA_NONE,
	KEFA_RDMA_READ,
	KEFA_RDMA_WRITE,
	KEFA_RDMA_ALL,
};

extern enum kefa_rdma kefa_rdma_wanted;

int kefa_probe_dev(struct kefa_dev *dev);

/* info.c */

struct kefa_fabric_kind;

struct fi_info *kefa_info(const struct kefa_dev *dev, const struct kefa_fabric_kind *fabric,
			  const struct kefa_pick *pick);
int kefa_getinfo(u32 version, const char *node, const char *service, u64 flags,
		 const struct fi_info *hints, struct fi_info **info);

#endif /* KEFA_DEV_H */
