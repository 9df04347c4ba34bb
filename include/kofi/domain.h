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
 * @ops: the provider's
 * @device: see fi_domain_device(); NULL if the provider has none
 * @vectors: see fi_domain_vectors(); 0 if the provider has no interrupts
 * @vector_mask: see fi_domain_vector_mask(), of a vector that there is; for providers
 *	with interrupts, and doesn't sleep
 *
 * All are the provider's to set when it opens the domain, and stay as they are.
 */
struct fid_domain {
	struct fid			fid;
	const struct fi_ops_domain	*ops;
	struct device			*device;
	unsigned int			vectors;
	void (*vector_mask)(struct fid_domain *domain, unsigned int vector,
			    struct cpumask *mask);
};

int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
	      struct fid_domain **domain, void *context);
int fi_domain_bind(struct fid_domain *domain, struct fid *bfid, u64 flags);

/**
 * fi_domain_device() - the device for which a domain's memory is mapped (kernel only)
 * @domain: the domain
 *
 * For what the device asks of memory: DMA mask, segment sizes, NUMA node, distance to
 * the memory of other devices. It may be used as long as the domain is open and its
 * event queue hasn't told of FI_DEVICE_REMOVED.
 *
 * Context: Any; doesn't sleep.
 * Return: the device, not referenced for the caller, or NULL if the provider has none.
 */
static inline struct device *fi_domain_device(const struct fid_domain *domain)
{
	return domain->device;
}

/**
 * fi_domain_vectors() - how many interrupts a domain's completions can have (kernel only)
 * @domain: the domain
 *
 * A ULP has no more queues of its own than that, as a rule, and each on a completion
 * queue opened with FI_AFFINITY for a CPU of fi_domain_vector_mask().
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
 * @vector: which, from 0
 * @mask: takes the CPUs
 *
 * Completion queues opened with FI_AFFINITY for one of these CPUs have that interrupt.
 * Each possible CPU is in one mask of a domain, so that a block driver, say, can map its
 * hardware queues by them; a mask can be empty. Without interrupts all CPUs are in the
 * one mask that there is. The masks are those of now: CPUs without an interrupt of their
 * own change theirs when others come or go.
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
 * @type: FI_AV_TABLE, FI_AV_MAP, or FI_AV_UNSPEC for the provider's choice,
 *	which is then stored here
 * @rx_ctx_bits: bits of an fi_addr_t that select a receive context; 0
 * @count: addresses that are expected, a hint
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
 * @ops: the provider's
 */
struct fid_av {
	struct fid		fid;
	const struct fi_ops_av	*ops;
};

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
 * enum fi_mr_type - how a region's memory is described
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
 * @type: which member of the union holds
 * @mr_iov: FI_MR_KVEC
 * @bvec: FI_MR_BVEC
 * @sgl: FI_MR_SGL
 * @iov_count: its entries. The memory must have no gap inside a page: only
 *	the first entry may begin, and only the last may end, within one
 * @access: FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_SEND, FI_RECV
 * @offset: must be 0
 * @requested_key: used by providers without FI_MR_PROV_KEY
 * @context: the caller's
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
 * struct fi_mr_alloc_attr - a region to be filled later, again and again
 * @max_pages: PAGE_SIZE pages that it must be able to hold
 * @access: all that fi_mr_post_reg() may ask of it
 * @cq: where its registrations and invalidations complete
 * @ep: endpoint that registers it, or NULL for the domain. Its sends complete in @cq, too.
 *	The endpoint has room for registrations as for sends, and can't be closed before
 *	the region. A provider may ignore it
 */
struct fi_mr_alloc_attr {
	size_t		max_pages;
	u64		access;
	struct fid_cq	*cq;
	struct fid_ep	*ep;
};

/**
 * struct fi_ops_mr - data calls of a region made by fi_mr_alloc()
 * @post_reg: see fi_mr_post_reg()
 * @post_inval: see fi_mr_post_inval()
 *
 * Const, and without gaps: kofi_mr_no_ops for a region that can't be posted with.
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
 * @key: what a peer must name, or FI_KEY_NOTAVAIL
 * @base_addr: remote address of the region's first byte. The provider chose
 *	it, and it is no kernel address
 */
struct fid_mr {
	struct fid		fid;
	const struct fi_ops_mr	*ops;
	void			*mem_desc;
	u64			key;
	u64			base_addr;
};

int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
		  u64 flags, struct fid_mr **mr);
int fi_mr_alloc(struct fid_domain *domain, const struct fi_mr_alloc_attr *attr,
		struct fid_mr **mr, void *context);

/**
 * fi_mr_regv() - register memory of several segments
 * @domain: the domain
 * @iov: the segments
 * @count: how many
 * @access: FI_REMOTE_READ and so on
 * @offset: must be 0
 * @requested_key: used by providers without FI_MR_PROV_KEY
 * @flags: must be 0
 * @mr: takes the region
 * @context: the caller's
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
 * @len: its length in bytes
 * @access: FI_REMOTE_READ and so on
 * @offset: must be 0
 * @requested_key: used by providers without FI_MR_PROV_KEY
 * @flags: must be 0
 * @mr: takes the region
 * @context: the caller's
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
 * @attr: the memory; it and its segment array stay valid until the region is
 *	invalidated
 * @flags: FI_COMPLETION for an entry in the region's CQ on success; without it the caller
 *	hears of failures alone. FI_MORE if another request to the region's endpoint
 *	follows at once
 *
 * The key, the base address and the memory are in force when this completes
 * with @attr->context. Registration isn't ordered with anything else: no key
 * may leave before. A region that is registered must be invalidated first.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, -EAGAIN when the queue is full or DMA space is short for now,
 * -EMSGSIZE for more pages than the region holds, -EINVAL for memory with inner
 * gaps or access that the region wasn't made for, -EOPNOTSUPP for memory that
 * the device can't reach itself, -EBUSY when the region is in use,
 * -FI_EBADFLAGS, -ENODEV after the device went away.
 */
static inline int fi_mr_post_reg(struct fid_mr *mr,
				 const struct fi_mr_attr *attr, u64 flags)
{
	return mr->ops->post_reg(mr, attr, flags);
}

/**
 * fi_mr_post_inval() - take a registration back (kernel only)
 * @mr: region from fi_mr_alloc()
 * @flags: FI_COMPLETION and FI_MORE, as for fi_mr_post_reg()
 * @context: the caller's, in the completion
 *
 * Once this has completed with success, or with ENODEV as the device went away, no peer
 * can reach the memory, and what peers wrote is there to be read; a provider does what
 * it takes. After a completion with any other error peers may reach the memory as long
 * as there is the device, so it must not be used for anything else; its pages are never
 * freed. An error that is returned says nothing: peers may reach the memory until the
 * region is closed.
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
 * Return: what data calls take as desc.
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
 * @key_size: room at @raw_key; takes the length of the key
 * @flags: must be 0
 *
 * Context: Any.
 * Return: 0, -FI_ETOOSMALL when @raw_key has no room for the key (@key_size
 * then says how much it takes), -FI_EBADFLAGS.
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
