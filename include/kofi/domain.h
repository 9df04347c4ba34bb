/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Domains, address vectors and memory regions: fi_domain(3), fi_av(3),
 * fi_mr(3).
 */
#ifndef KOFI_DOMAIN_H
#define KOFI_DOMAIN_H

#include <linux/cpumask.h>
#include <linux/string.h>
#include <linux/uio.h>
#include <kofi/fabric.h>

struct bio_vec;
struct device;
struct fi_ops_av;
struct fi_ops_domain;
struct fid_cq;
struct fid_ep;
struct fid_mr;
struct scatterlist;

/**
 * struct fid_domain - an open domain
 * @fid: the common part
 * @ops: the provider's operations
 * @device: see fi_domain_device(); NULL if the provider has none
 * @vectors: see fi_domain_vectors(); 0 if the provider has no interrupts
 * @vector_mask: see fi_domain_vector_mask(); called with a valid vector, doesn't sleep.
 *	Only for providers with interrupts
 *
 * The provider sets @ops to @vector_mask when it opens the domain, and never changes them.
 */
struct fid_domain {
	struct fid			fid;
	const struct fi_ops_domain	*ops;
	struct device			*device;
	unsigned int			vectors;
	void (*vector_mask)(struct fid_domain *domain, unsigned int vector,
			    struct cpumask *mask);
};

/* Reference: page api/domain of kOFI's documentation; libfabric's fi_domain(3) */
int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
	      struct fid_domain **domain, void *context);
int fi_domain_bind(struct fid_domain *domain, struct fid *bfid, u64 flags);

/**
 * fi_domain_device() - the device for which a domain's memory is mapped (kernel only)
 * @domain: the domain
 *
 * The device's attributes say what memory suits it: DMA mask, segment sizes, NUMA node. Providers
 * don't support memory of other PCI devices: operations and regions with its pages fail with
 * -EOPNOTSUPP. The device may be used as long as the domain is open and its event queue hasn't
 * reported FI_DEVICE_REMOVED.
 *
 * Context: Any; doesn't sleep.
 * Return: the device, not referenced for the caller, or NULL if the provider has none.
 */
static inline struct device *fi_domain_device(const struct fid_domain *domain)
{
	return domain->device;
}

/**
 * fi_domain_vectors() - number of interrupts for a domain's completions (kernel only)
 * @domain: the domain
 *
 * Usually a ULP has at most this many queues, and for each a completion queue that is
 * opened with FI_AFFINITY for a CPU of fi_domain_vector_mask().
 *
 * Context: Any; doesn't sleep.
 * Return: the number, 1 if the provider has no interrupts.
 */
static inline unsigned int fi_domain_vectors(const struct fid_domain *domain)
{
	return domain->vectors ?: 1;
}

/**
 * fi_domain_vector_mask() - the CPUs that an interrupt serves (kernel only)
 * @domain: the domain
 * @vector: number of the interrupt, from 0
 * @mask: takes the CPUs
 *
 * Completion queues opened with FI_AFFINITY for one of these CPUs use that interrupt.
 * Each possible CPU is in exactly one mask of a domain, so that for example a block driver
 * can map its hardware queues by them; a mask can be empty. A domain without interrupts has
 * one mask with all CPUs. The masks change when CPUs go online or offline: a CPU without
 * its own interrupt may then use another one.
 *
 * Context: Any; doesn't sleep.
 * Return: 0, or -EINVAL when there is no such vector.
 */
static inline int fi_domain_vector_mask(struct fid_domain *domain,
					unsigned int vector,
					struct cpumask *mask)
{
	if (vector >= fi_domain_vectors(domain))
		return -EINVAL;
	if (domain->vectors)
		domain->vector_mask(domain, vector, mask);
	else
		cpumask_copy(mask, cpu_possible_mask);
	return 0;
}

/* Address vectors */

/**
 * struct fi_av_attr - an address vector to be opened
 * @type: FI_AV_TABLE, FI_AV_MAP, or FI_AV_UNSPEC for the provider's choice; takes the actual type.
 *	A provider may use a table for FI_AV_MAP
 * @rx_ctx_bits: bits of an fi_addr_t that select a receive context; must be 0
 * @count: expected number of addresses, a hint
 * @flags: must be 0
 */
struct fi_av_attr {
	enum fi_av_type	type;
	int		rx_ctx_bits;
	size_t		count;
	u64		flags;
};

/**
 * struct fid_av - an open address vector
 * @fid: the common part
 * @ops: the provider's operations
 */
struct fid_av {
	struct fid		fid;
	const struct fi_ops_av	*ops;
};

/* Reference: page api/domain of kOFI's documentation; libfabric's fi_av(3) */
int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
	       struct fid_av **av, void *context);
int fi_av_insert(struct fid_av *av, const void *addr, size_t count,
		 fi_addr_t *fi_addr, u64 flags, void *context);
int fi_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count,
		 u64 flags);
int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
		 size_t *addrlen);
const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf,
			  size_t *len);

/* Memory regions */

/**
 * enum fi_mr_type - form in which a region's memory is described
 * @FI_MR_KVEC: struct kvec, kmalloc() or vmalloc() memory
 * @FI_MR_BVEC: struct bio_vec
 * @FI_MR_SGL: struct scatterlist, not yet mapped for DMA
 */
enum fi_mr_type {
	FI_MR_KVEC,
	FI_MR_BVEC,
	FI_MR_SGL,
};

/**
 * struct fi_mr_attr - memory to be registered
 * @type: which of @mr_iov, @bvec and @sgl is valid
 * @mr_iov: the memory, for FI_MR_KVEC
 * @bvec: the memory, for FI_MR_BVEC
 * @sgl: the memory, for FI_MR_SGL
 * @iov_count: number of entries. The memory must have no inner gaps: only
 *	the first entry may begin, and only the last may end, within a page
 * @access: FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_SEND, FI_RECV
 * @offset: must be 0
 * @requested_key: used by providers without FI_MR_PROV_KEY
 * @context: the caller's context
 */
struct fi_mr_attr {
	enum fi_mr_type	type;
	union {
		const struct kvec	*mr_iov;
		const struct bio_vec	*bvec;
		struct scatterlist	*sgl;
	};
	size_t		iov_count;
	u64		access;
	u64		offset;
	u64		requested_key;
	void		*context;
};

/**
 * struct fi_mr_alloc_attr - a region that is registered repeatedly, fi_mr_alloc()
 * @max_pages: maximum number of pages of PAGE_SIZE in a registration
 * @access: access that fi_mr_post_reg() may grant
 * @cq: completion queue of the region's registrations and invalidations
 * @ep: endpoint that issues the region's requests, or NULL for the domain, whose regions all
 *	share one queue of the device. The endpoint's sends must complete in @cq as well.
 *	Registrations take room as sends do, which a provider may keep a part of for them, and the
 *	endpoint can't be closed before the region.
 *	A provider may ignore @ep
 * @flags: FI_RETIRE to have fi_close() see to it that the region's keys don't come back with the
 *	next regions, for a ULP that can't tell that peers have finished with them; or 0. Over EFA
 *	that destroys the device's region, which takes a command, and the next one takes another.
 *	Without it the provider keeps the device's region for others, and a key is valid again after
 *	16 registrations. If the device refuses, so that peers may still reach memory that was
 *	registered, the first fi_close() returns -EIO and leaves the region open; the next one
 *	closes it. In between, the ULP waits until the device was reset, and the region takes no
 *	other calls
 */
struct fi_mr_alloc_attr {
	size_t		max_pages;
	u64		access;
	struct fid_cq	*cq;
	struct fid_ep	*ep;
	u64		flags;
};

/**
 * struct fi_ops_mr - data calls of a region made by fi_mr_alloc()
 * @post_reg: see fi_mr_post_reg()
 * @post_inval: see fi_mr_post_inval()
 *
 * A vector is const and has no NULL members. Regions that aren't from fi_mr_alloc() have
 * kofi_mr_no_ops.
 */
struct fi_ops_mr {
	int (*post_reg)(struct fid_mr *mr, const struct fi_mr_attr *attr,
			u64 flags);
	int (*post_inval)(struct fid_mr *mr, u64 flags, void *context);
};

/**
 * struct fid_mr - a memory region
 * @fid: the common part
 * @ops: data calls
 * @mem_desc: local descriptor, for the desc argument of data calls
 * @key: key with which a peer can access the region, or FI_KEY_NOTAVAIL
 * @base_addr: remote address of the region's first byte, chosen by the provider; not a
 *	kernel address
 */
struct fid_mr {
	struct fid		fid;
	const struct fi_ops_mr	*ops;
	void			*mem_desc;
	u64			key;
	u64			base_addr;
};

/* Reference: page api/domain of kOFI's documentation; libfabric's fi_mr(3) */
int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		  u64 flags, struct fid_mr **mr);
int fi_mr_alloc(struct fid_domain *domain, const struct fi_mr_alloc_attr *attr,
		struct fid_mr **mr, void *context);

/**
 * fi_mr_regv() - register memory of several segments
 * @domain: the domain
 * @iov: the segments
 * @count: number of segments
 * @access: FI_REMOTE_READ and so on
 * @offset: must be 0
 * @requested_key: used by providers without FI_MR_PROV_KEY
 * @flags: must be 0
 * @mr: takes the region
 * @context: the caller's context
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: as fi_mr_regattr().
 */
static inline int fi_mr_regv(struct fid_domain *domain, const struct kvec *iov,
			     size_t count, u64 access, u64 offset, u64 requested_key,
			     u64 flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {
		.type		= FI_MR_KVEC,
		.mr_iov		= iov,
		.iov_count	= count,
		.access		= access,
		.offset		= offset,
		.requested_key	= requested_key,
		.context	= context,
	};

	return fi_mr_regattr(domain, &attr, flags, mr);
}

/**
 * fi_mr_reg() - register memory
 * @domain: the domain
 * @buf: the memory, from kmalloc() or vmalloc()
 * @len: length of @buf in bytes
 * @access: FI_REMOTE_READ and so on
 * @offset: must be 0
 * @requested_key: used by providers without FI_MR_PROV_KEY
 * @flags: must be 0
 * @mr: takes the region
 * @context: the caller's context
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: as fi_mr_regattr().
 */
static inline int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len,
			    u64 access, u64 offset, u64 requested_key, u64 flags,
			    struct fid_mr **mr, void *context)
{
	const struct kvec iov = { .iov_base = (void *)buf, .iov_len = len };

	if (!buf || !len)
		return -EINVAL;
	return fi_mr_regv(domain, &iov, 1, access, offset, requested_key,
			  flags, mr, context);
}

/**
 * fi_mr_post_reg() - register memory with an allocated region (kernel only)
 * @mr: region from fi_mr_alloc()
 * @attr: the memory, which stays valid until the region is invalidated. The caller may reuse
 *	@attr itself and its segment array after the call
 * @flags: FI_COMPLETION for an entry in the region's CQ on success; without it only
 *	failures have an entry. FI_MORE if another request to the region's endpoint
 *	follows at once
 *
 * When the operation completes with @attr->context, the registration is in force, and its
 * key and base address are valid. It isn't ordered with other operations, so send the key to
 * a peer only after the completion. A registered region must be invalidated before it is registered
 * again.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, -EAGAIN when the queue is full, or when for now DMA space is short or the region is
 * being replaced, -EMSGSIZE for more pages than the region holds, -EINVAL for memory with inner
 * gaps or for access that the region doesn't allow, -EOPNOTSUPP for memory that
 * the device can reach only through bounce buffers or not at all, -EBUSY when the region is in use,
 * -FI_EBADFLAGS, -ENODEV after the device went away.
 */
static inline int fi_mr_post_reg(struct fid_mr *mr,
				 const struct fi_mr_attr *attr, u64 flags)
{
	return mr->ops->post_reg(mr, attr, flags);
}

/**
 * fi_mr_post_inval() - invalidate a registration (kernel only)
 * @mr: region from fi_mr_alloc()
 * @flags: FI_COMPLETION and FI_MORE, as for fi_mr_post_reg()
 * @context: the caller's context, returned in the completion
 *
 * After a completion with success, or with ENODEV because the device went away, no peer
 * can reach the memory, and the caller can read what peers wrote; if invalidating fails,
 * the provider destroys the region to achieve that. After a completion with any other
 * error peers may reach the memory as long as the device exists: it must not be used for
 * anything else, and the provider never frees its pages. If this function returns an error,
 * peers may reach the memory until the region is closed; see FI_RETIRE for a device that refuses
 * to end that.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, -EAGAIN when the queue is full, -EINVAL when nothing is
 * registered, -FI_EBADFLAGS, -ENODEV after the device went away.
 */
static inline int fi_mr_post_inval(struct fid_mr *mr, u64 flags, void *context)
{
	return mr->ops->post_inval(mr, flags, context);
}

/**
 * fi_mr_desc() - local descriptor of a region
 * @mr: the region
 *
 * Context: Any.
 * Return: the descriptor, for the desc argument of data calls.
 */
static inline void *fi_mr_desc(struct fid_mr *mr)
{
	return mr->mem_desc;
}

/**
 * fi_mr_key() - key of a region, for the peer
 * @mr: the region
 *
 * Context: Any.
 * Return: the key, or FI_KEY_NOTAVAIL.
 */
static inline u64 fi_mr_key(struct fid_mr *mr)
{
	return READ_ONCE(mr->key);
}

/**
 * fi_mr_raw_attr() - remote address and key of a region, for the peer
 * @mr: the region
 * @base_addr: takes the remote address of the region's first byte
 * @raw_key: takes the key, in host byte order
 * @key_size: size of the buffer @raw_key; takes the size of the key
 * @flags: must be 0
 *
 * Context: Any.
 * Return: 0, -FI_ETOOSMALL when @raw_key is too small for the key (@key_size
 * then has the size needed), -FI_EBADFLAGS.
 */
static inline int fi_mr_raw_attr(struct fid_mr *mr, u64 *base_addr,
				 u8 *raw_key, size_t *key_size, u64 flags)
{
	u64 key = fi_mr_key(mr);
	size_t room = *key_size;

	if (flags)
		return -FI_EBADFLAGS;
	*base_addr = READ_ONCE(mr->base_addr);
	*key_size = sizeof(key);
	if (room < sizeof(key))
		return -FI_ETOOSMALL;
	memcpy(raw_key, &key, sizeof(key));
	return 0;
}

#endif /* KOFI_DOMAIN_H */
