// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The access of a peer's request to regions of fabric efa, in user space, with sanitizers. The
 * input is an order and a packet; the packet is parsed, and its memory is checked and accessed as
 * by target.c. A model that knows each byte of the regions says what must have changed.
 */
#include "kernel.h"

#include "../../prov/efa/rdm/packet.c"
#include "../../prov/efa/rdm/parse.c"

/* --- the kernel and the rest of the provider, as far as mr.h and mr_key.c need them --- */

#define PAGE_SIZE		4096UL
#define FI_REMOTE_READ		BIT_ULL(0)
#define FI_REMOTE_WRITE		BIT_ULL(1)
#define FI_ENOMR		1
#define GFP_KERNEL		0
#define min_t(type, a, b)	((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define min3(a, b, c)		min_t(size_t, min_t(size_t, a, b), c)
#define offset_in_page(p)	((unsigned long)(p) & (PAGE_SIZE - 1))
#define PHYS_PFN(p)		((p) / PAGE_SIZE)
#define pfn_to_page(pfn)	((struct page *)((pfn) * PAGE_SIZE))
#define IS_ALIGNED(x, a)	(!((x) % (a)))
#define sg_phys(sg)		((sg)->phys)
#define sg_dma_address(sg)	((sg)->phys)
#define sg_dma_len(sg)		((sg)->length)
#define kvcalloc(n, size, gfp)	calloc(n, size)
#define lockdep_assert_held(lock)
#define rcu_read_lock()
#define rcu_read_unlock()
#define write_lock_bh(lock)	(*(lock) |= 2)
#define write_unlock_bh(lock)	(*(lock) &= ~2)
#define read_lock_bh(lock)	(assert(!*(lock)), *(lock) = 1)
#define read_unlock_bh(lock)	(*(lock) = 0)
#define read_lock(lock)		read_lock_bh(lock)
#define read_unlock(lock)	read_unlock_bh(lock)
#define OPTIMIZER_HIDE_VAR(var)
#define kmap_local_page(page)	((void *)(page))
#define kunmap_local(at)
#define atomic_inc(a)		(++*(a))
#define atomic_dec_and_test(a)	(!--*(a))
#define kefa_hw_key_slot(key)	((u32)(key) & 0xfffff)

/* For functions of mr.h that aren't called. */
#define roundup_pow_of_two(n)	(n)
#define __fls(n)		((n) & 63)
#define __ffs64(n)		((n) & 63)
#define kefa_hw_mr_map(mr, sg, nsegs, size)	((int)(nsegs))

#define phys_addr_t	unsigned long
#define dma_addr_t	unsigned long
#define rwlock_t	int
#define spinlock_t	int
#define atomic_t	int
#define kefa_walk_fn	int

struct list_head { struct list_head *next, *prev; };
struct rcu_head { void *next; };
struct ib_mr { u32 rkey; u64 iova; };
struct fid_mr { u64 key, base_addr; };
struct scatterlist { phys_addr_t phys; u32 length; };
struct page { u8 bytes[PAGE_SIZE]; };
struct kefa_seg { dma_addr_t dma; phys_addr_t phys; u32 len; };
struct kefa_dev { spinlock_t lock; u64 page_sizes; bool raw_iova; };
struct kefa_ep { spinlock_t lock; };
enum dma_data_direction { DMA_NONE };
struct fi_mr_alloc_attr;
struct fi_mr_attr;
struct fid_domain;
struct iov_iter;
struct kofi_cq;
struct work_struct;

/* The regions by kefa_hw_key_slot(), which the model uses, too. */
#define SLOTS	5

struct kefa_domain {
	bool			cpu_rma;
	struct kefa_dev		*dev;
	struct kefa_mr		*keys[SLOTS];
	struct { spinlock_t lock; } mrq;
};

static struct kefa_mr *xa_load(struct kefa_mr *const (*keys)[SLOTS], u32 slot)
{
	return slot < SLOTS ? (*keys)[slot] : NULL;
}

static int xa_insert(struct kefa_mr *(*keys)[SLOTS], u32 slot, struct kefa_mr *mr, int gfp)
{
	if ((*keys)[slot])
		return -EBUSY;
	(*keys)[slot] = mr;
	return 0;
}

static void xa_erase(struct kefa_mr *(*keys)[SLOTS], u32 slot)
{
	(*keys)[slot] = NULL;
}

static void memcpy_to_page(struct page *page, size_t off, const void *from, size_t len)
{
	assert(len && off + len <= PAGE_SIZE);
	memcpy(page->bytes + off, from, len);
}

static void memcpy_from_page(void *to, struct page *page, size_t off, size_t len)
{
	assert(len && off + len <= PAGE_SIZE);
	memcpy(to, page->bytes + off, len);
}

enum { FI_INT64 = 6, FI_UINT64 = 7, FI_SUM = 2 };

/* Sizes from 1 to 16 bytes; most types don't matter here. */
static size_t kofi_arith_size(u32 datatype)
{
	return datatype == FI_INT64 || datatype == FI_UINT64 ? 8 : 1 << datatype % 5;
}

/* Stands for any operation: exclusive or. */
static void kofi_arith(u32 datatype, u32 op, struct page *page, unsigned int off,
		       const void *operand, const void *comparand, void *result, size_t n)
{
	const size_t size = kofi_arith_size(datatype);
	size_t i;

	assert(n && IS_ALIGNED(off, size) && off + n * size <= PAGE_SIZE);
	memcpy(result, page->bytes + off, n * size);
	for (i = 0; i < n * size; i++)
		page->bytes[off + i] ^= ((const u8 *)operand)[i];
}

static u64 kofi_arith_add(u64 *at, u64 operand)
{
	const u64 old = *at;

	assert(IS_ALIGNED((unsigned long)at, sizeof(*at)));
	*at ^= operand;
	return old;
}

/* Their headers need more of the kernel. */
#define KOFI_PROVIDER_H
#define KEFA_DOMAIN_H
#define KEFA_EP_H
#define KEFA_MEM_H
#include "../../prov/efa/mr.h"

static void kefa_mrq_unread(struct kefa_mr *mr)
{
}

#include "../../prov/efa/mr_key.c"

/* --- the regions --- */

#define ENTRIES	4

/* Memory of the entries, in pages, is apart, so that the sanitizer detects accesses beyond it. */
static const struct {
	u32	key;
	u64	base;
	u64	access;
	u32	off[ENTRIES];	/* in the first page */
	u32	len[ENTRIES];
} layout[] = {
	{ 0x00100000, 0x10000, FI_REMOTE_READ | FI_REMOTE_WRITE,
	  { 4000, 0, 100, 4095 }, { 96, 4096, 50, 5000 } },
	{ 0x00200001, 0, FI_REMOTE_READ, { 10 }, { 9000 } },
	{ 0x00000002, 0 - 5000ULL, FI_REMOTE_READ | FI_REMOTE_WRITE, { 96, 0 }, { 4000, 1 } },
	{ 0x00000003, 0x20000, FI_REMOTE_WRITE, { 0 }, { 0 } },
	{ 0x00f00004, 0x30000, FI_REMOTE_READ | FI_REMOTE_WRITE, { 1 }, { 4095 } },
};

#define REGIONS	ARRAY_SIZE(layout)
#define LONGEST	10000

static struct kefa_dev dev;
static struct kefa_domain dom = { .cpu_rma = true, .dev = &dev };
static struct kefa_mr mrs[REGIONS];
static struct scatterlist lists[REGIONS][ENTRIES];
/* The bytes of each region before the access. */
static u8 before[REGIONS][LONGEST];

static void make_region(u32 i)
{
	struct ib_mr ibmr = { layout[i].key };
	const struct kefa_frmr fr = { .mr = &ibmr };
	struct kefa_mr *mr = &mrs[i];
	void *pages;
	u32 j, bytes;

	mr->dom = &dom;
	mr->sg = lists[i];
	mr->max_ents = ENTRIES;
	mr->granted = layout[i].access;
	mr->mr_fid = (struct fid_mr) { layout[i].key, layout[i].base };
	for (j = 0; j < ENTRIES && (!j || layout[i].len[j]); j++) {
		bytes = layout[i].off[j] + layout[i].len[j];
		bytes = ((bytes + PAGE_SIZE - 1) / PAGE_SIZE ?: 1) * PAGE_SIZE;
		if (posix_memalign(&pages, PAGE_SIZE, bytes))
			abort();
		memset(pages, 0xa5, bytes);
		mr->sg[j].phys = (phys_addr_t)pages + layout[i].off[j];
		mr->sg[j].length = layout[i].len[j];
		mr->len += layout[i].len[j];
	}
	mr->nents = j;
	mr->nsegs = j;
	if (kefa_mr_ends_alloc(mr) || kefa_mr_publish(mr, &fr))
		abort();
	kefa_mr_ends_set(mr);
	kefa_mr_set_open(mr, true);
}

/* Address of a byte of a region; for the model alone. */
static u8 *byte_at(u32 i, u64 off)
{
	const struct scatterlist *sg = lists[i];

	for (; off >= sg->length; sg++)
		off -= sg->length;
	return (u8 *)sg->phys + off;
}

/* --- the model --- */

/* Return: the result that kefa_mr_check() must have. */
static enum kefa_fault model_fault(const struct kefa_named *mem, u64 access, u32 *region)
{
	u32 i;

	for (i = 0; i < REGIONS && layout[i].key != mem->key; i++)
		;
	*region = i;
	if (i == REGIONS || !mrs[i].open)
		return KEFA_FAULT_KEY;
	if (access & ~layout[i].access)
		return KEFA_FAULT_ACCESS;
	/* Memory may begin at the end of the region if it is empty. */
	if (mem->addr - layout[i].base > mrs[i].len ||
	    mem->len > mrs[i].len - (mem->addr - layout[i].base))
		return KEFA_FAULT_RANGE;
	return KEFA_FAULT_NONE;
}

static void remember(void)
{
	u32 i;
	u64 off;

	for (i = 0; i < REGIONS; i++)
		for (off = 0; off < mrs[i].len; off++)
			before[i][off] = *byte_at(i, off);
}

/* Check what an access of @len bytes at @off has done, of which @first bytes are allowed. */
static void check_access(const struct kefa_named *mem, const u32 *region, u64 off, u8 *data,
			 size_t len, size_t first, bool write)
{
	size_t i;
	u64 at;
	u32 r;

	for (i = 0; i < len; i++, off++) {
		while (off >= mem->len) {
			off -= mem->len;
			mem++;
			region++;
		}
		at = mem->addr - layout[*region].base + off;
		/* Later pieces may write to the same bytes, so the last ones count. */
		if (i < first && write)
			before[*region][at] = data[i];
		if (i < first && !write)
			assert(data[i] == before[*region][at]);
	}
	for (r = 0; r < REGIONS; r++)
		for (at = 0; at < mrs[r].len; at++)
			assert(*byte_at(r, at) == before[r][at]);
}

/* The device may write to what follows @off in its piece, and in its entry. */
static void check_reach(const struct kefa_named *mem, const u32 *region, u64 off, size_t len,
			size_t first)
{
	struct kefa_seg seg;
	struct kefa_mr *mr;
	u64 at;

	if (!len)
		return;
	for (; off >= mem->len; mem++, region++)
		off -= mem->len;
	len = min_t(u64, len, mem->len - off);
	if (kefa_mr_reach(&dom, mem, FI_REMOTE_WRITE, off, len, &seg, &mr)) {
		assert(!first);
		return;
	}
	assert(first && seg.len && seg.len <= len && mr == &mrs[*region] && mr->reads == 1);
	at = mem->addr - layout[*region].base + off;
	assert((u8 *)seg.phys == byte_at(*region, at));
	assert((u8 *)seg.phys + seg.len - 1 == byte_at(*region, at + seg.len - 1));
	kefa_mr_unreach(mr);
}

/* --- requests --- */

#define ROOM	9000

/*
 * Number of accepted requests by type, of faults by reason, of accesses that were stopped, and of
 * additions to one integer.
 */
#define PASSED	(KEFA_PKT_TYPES + 4 + 1 + 1)
static unsigned long passed[PASSED];

/*
 * First bytes of the input: what happens between the check and the access, and the offset of an
 * access by data that comes later.
 */
struct order {
	u8	ends;		/* bit 0: the registration of @region ends */
	u8	renewed;	/* bit 0: it begins anew, with the same key */
	u8	region;
	u8	sum;		/* bit 0: make the packet's length the sum of its pieces */
	__le32	off;
};

/* Return: the number of bytes in pieces before the first one of a region that has changed. */
static size_t stops_at(const struct kefa_named *mem, const u32 *region, u32 n, u32 changed, u64 off,
		       size_t len)
{
	u64 at = 0;
	u32 i;

	for (i = 0; i < n; at += mem[i++].len)
		if (region[i] == changed && at + mem[i].len > off && mem[i].len)
			return at > off ? min_t(u64, at - off, len) : 0;
	return len;
}

/* Check and read memory at once, as fast_far.c does. */
static void read_once(const struct kefa_named *mem)
{
	struct kefa_named one = *mem;
	static u8 data[ROOM];
	enum kefa_fault fault;
	u32 region, i;

	if (!mem->len || mem->len > ROOM)
		return;
	fault = kefa_mr_once(&dom, &one, data, false);
	assert(fault == model_fault(mem, FI_REMOTE_READ, &region));
	for (i = 0; !fault && i < mem->len; i++)
		assert(data[i] == *byte_at(region, mem->addr - layout[region].base + i));
}

/* --- atomic operations --- */

/* Return: whether rta.c would look at the memory of a request. */
static bool whole(const struct kefa_pkt *pkt, size_t size)
{
	u32 i;

	for (i = 0; i < pkt->rma_iov_count; i++)
		if (le64_to_cpu(pkt->rma_iov[i].addr) % size ||
		    le64_to_cpu(pkt->rma_iov[i].len) % size)
			return false;
	return pkt->msg_length && pkt->msg_length <= ROOM;
}

/* Return: the result that kefa_mr_atomic() must have, after @changed has a new registration. */
static enum kefa_fault model_atomic(const struct kefa_named *mem, u32 region, u32 changed,
				    size_t size)
{
	const u64 off = mem->addr - layout[region].base;

	if (region == changed)
		return KEFA_FAULT_KEY;
	if (mem->len && (unsigned long)byte_at(region, off) % size)
		return KEFA_FAULT_RANGE;
	return KEFA_FAULT_NONE;
}

static void check_atomic(const struct kefa_named *mem, u32 region, const u8 *data, const u8 *old)
{
	u64 i, at = mem->addr - layout[region].base;

	for (i = 0; i < mem->len; i++, at++) {
		assert(old[i] == before[region][at]);
		before[region][at] ^= data[i];
	}
}

/* Check memory and carry out an operation on it at once, as fast_atomic.c does; then undo it. */
static void fetch_once(const struct kefa_named *mem, u32 datatype)
{
	const u64 access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	const size_t size = kofi_arith_size(datatype);
	static u8 data[ROOM], old[ROOM];
	enum kefa_fault fault, expected;
	u32 region, i, undo;
	u64 at;

	if (!mem->len || mem->len > ROOM)
		return;
	for (i = 0; i < mem->len; i++)
		data[i] = i * 5 + 1;
	expected = model_fault(mem, access, &region);
	/* The first region has gaps inside, which mr_map.c refuses. */
	if (!expected && !region && size > 1)
		return;
	expected = expected ?: model_atomic(mem, region, REGIONS, size);
	at = expected ? 0 : mem->addr - layout[region].base;
	for (undo = 0; undo < 2; undo++) {
		struct kefa_arith arith = {
			.datatype = datatype, .op = FI_SUM, .operand = data, .result = old,
		};

		for (i = 0; !expected && i < mem->len; i++)
			old[i] = ~*byte_at(region, at + i);
		fault = kefa_mr_fetch_once(&dom, mem, &arith);
		assert(fault == expected);
		for (i = 0; !fault && i < mem->len; i++)
			assert((old[i] ^ data[i]) == *byte_at(region, at + i));
	}
	passed[KEFA_PKT_TYPES + 5] += !expected && mem->len == size && size == 8;
}

static void carry_out_atomic(const struct order *order, const struct kefa_pkt *pkt)
{
	const u64 access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	const size_t size = kofi_arith_size(pkt->atomic_datatype);
	static u8 data[ROOM], old[ROOM];
	struct kefa_arith arith = {
		.datatype = pkt->atomic_datatype, .operand = data, .result = old,
	};
	struct kefa_named mem[KEFA_IOV_MAX];
	enum kefa_fault fault = KEFA_FAULT_NONE;
	u32 region[KEFA_IOV_MAX], changed, i, r;
	u64 at = 0;

	if (!whole(pkt, size))
		return;
	for (i = 0; i < pkt->rma_iov_count; i++) {
		mem[i] = (struct kefa_named) {
			.addr	= le64_to_cpu(pkt->rma_iov[i].addr),
			.len	= le64_to_cpu(pkt->rma_iov[i].len),
			.key	= le64_to_cpu(pkt->rma_iov[i].key),
		};
		fetch_once(&mem[i], pkt->atomic_datatype);
		fault = kefa_mr_check(&dom, &mem[i], access);
		assert(fault == model_fault(&mem[i], access, &region[i]));
		/* The first region has gaps inside, which mr_map.c refuses. */
		if (fault || (!region[i] && size > 1))
			return;
	}
	passed[pkt->row->type]++;
	for (i = 0; i < pkt->msg_length; i++)
		data[i] = i * 7 + 1;
	remember();
	changed = order->ends & 1 ? order->region % REGIONS : REGIONS;
	if (changed < REGIONS) {
		kefa_mr_set_open(&mrs[changed], false);
		kefa_mr_set_open(&mrs[changed], order->renewed & 1);
	}
	for (i = 0; i < pkt->rma_iov_count && !fault; at += mem[i++].len) {
		fault = kefa_mr_atomic(&dom, &mem[i], access, &arith);
		assert(fault == model_atomic(&mem[i], region[i], changed, size));
		if (!fault)
			check_atomic(&mem[i], region[i], data + at, old + at);
	}
	passed[KEFA_PKT_TYPES + 4] += !!fault;
	for (r = 0; r < REGIONS; r++)
		for (at = 0; at < mrs[r].len; at++)
			assert(*byte_at(r, at) == before[r][at]);
	if (changed < REGIONS)
		kefa_mr_set_open(&mrs[changed], true);
}

/* --- reads and writes --- */

static void carry_out(const struct order *order, const struct kefa_pkt *pkt)
{
	const bool write = pkt->row->data != KEFA_DATA_NONE || pkt->row->flags & KEFA_ROW_READ;
	const u64 access = write ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	const u32 changed = order->region % REGIONS;
	struct kefa_named mem[KEFA_IOV_MAX];
	enum kefa_fault fault, expected;
	u32 region[KEFA_IOV_MAX], i;
	static u8 data[ROOM];
	size_t len, first;
	u64 off;

	for (i = 0; i < pkt->rma_iov_count; i++) {
		mem[i] = (struct kefa_named) {
			.addr	= le64_to_cpu(pkt->rma_iov[i].addr),
			.len	= le64_to_cpu(pkt->rma_iov[i].len),
			.key	= le64_to_cpu(pkt->rma_iov[i].key),
		};
		read_once(&mem[i]);
		fault = kefa_mr_check(&dom, &mem[i], access);
		expected = model_fault(&mem[i], access, &region[i]);
		assert(fault == expected);
		if (fault) {
			passed[KEFA_PKT_TYPES + fault]++;
			return;
		}
	}
	passed[pkt->row->type]++;
	/* The data of the request, or any that comes later; the parser has checked the sum. */
	off = pkt->msg_length ? le32_to_cpu(order->off) % (pkt->msg_length + 1) : 0;
	len = min_t(u64, pkt->msg_length - off, sizeof(data));
	for (i = 0; i < len; i++)
		data[i] = i * 7 + off + 1;
	remember();
	if (order->ends & 1)
		kefa_mr_set_open(&mrs[changed], false);
	if (order->renewed & 1)
		kefa_mr_set_open(&mrs[changed], true);
	first = (order->ends | order->renewed) & 1 ?
		stops_at(mem, region, pkt->rma_iov_count, changed, off, len) : len;
	if (pkt->row->flags & KEFA_ROW_READ)
		check_reach(mem, region, off, len, first);
	fault = write ? kefa_mr_write(&dom, mem, off, data, len) :
			kefa_mr_read(&dom, mem, off, data, len);
	assert(!fault == (first == len));
	passed[KEFA_PKT_TYPES + 4] += !!fault;
	check_access(mem, region, off, data, len, first, write);
	kefa_mr_set_open(&mrs[changed], true);
}

/* Few changes of a packet would be accepted otherwise. */
static void repair(u8 *packet, size_t len)
{
	struct kefa_longcts_rtw_hdr *hdr = (void *)packet;
	const struct kefa_pkt_row *row = len < sizeof(*hdr) ? NULL : kefa_row_of(*packet);
	u64 sum = 0;
	u32 i;

	if (!row || !(row->flags & KEFA_ROW_TOTAL) ||
	    le32_to_cpu(hdr->rma_iov_count) > (len - sizeof(*hdr)) / sizeof(*hdr->rma_iov))
		return;
	for (i = 0; i < le32_to_cpu(hdr->rma_iov_count); i++)
		sum += le64_to_cpu(hdr->rma_iov[i].len);
	hdr->msg_length = cpu_to_le64(sum);
}

static void parse(u8 *in, size_t len)
{
	struct order order;
	struct kefa_pkt pkt;
	u32 i;

	if (!mrs[0].dom)
		for (i = 0; i < REGIONS; i++)
			make_region(i);
	if (len < sizeof(order))
		return;
	memcpy(&order, in, sizeof(order));
	in += sizeof(order);
	len -= sizeof(order);
	if (order.sum & 1)
		repair(in, len);
	if (kefa_parse(in, len, &pkt) || !(pkt.row->flags & KEFA_ROW_RMA) || !pkt.rma_iov_count)
		return;
	if (pkt.row->flags & KEFA_ROW_ORDERED)
		carry_out_atomic(&order, &pkt);
	else
		carry_out(&order, &pkt);
}

#include "drive.h"
