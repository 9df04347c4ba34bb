// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fi_getinfo(): which entries match the hints. One row for each field of hints.
 */
#include <linux/string.h>
#include "fake.h"

/**
 * struct row - one field, as a provider has it and as hints want it
 * @desc: name of the row
 * @attr: offset of the attribute in struct fi_info; 0 for struct fi_info itself
 * @have_attr: offset of the entry's attribute, if that differs from the hints'
 * @field: offset of the field in the attribute
 * @have_field: offset of the entry's field
 * @size: bytes of the field
 * @have: the entry's value
 * @want: the hints' value
 * @caps: capabilities of the hints, unless that is the field
 * @mode: mode of the hints, unless that is the field
 * @match: whether the entry matches
 */
struct row {
	const char *desc;
	size_t attr;
	size_t have_attr;
	size_t field;
	size_t have_field;
	u8 size;
	u64 have;
	u64 want;
	u64 caps;
	u64 mode;
	bool match;
};

#define ATTR(a)		(((struct fi_info *)0)->a)
#define FIELD(a, f)	.attr = offsetof(struct fi_info, a),		\
			.field = offsetof(typeof(*ATTR(a)), f),		\
			.have_attr = offsetof(struct fi_info, a),	\
			.have_field = offsetof(typeof(*ATTR(a)), f),	\
			.size = sizeof(ATTR(a)->f)
#define INFO(f)		.field = offsetof(struct fi_info, f),		\
			.have_field = offsetof(struct fi_info, f),	\
			.size = sizeof_field(struct fi_info, f)

/* A limit: hints must not ask for more. */
#define LIMIT_IF(a, f, c)						\
	{ #a "." #f " less", FIELD(a, f), .have = 8, .want = 7,		\
	  .caps = c, .match = true },					\
	{ #a "." #f " exact", FIELD(a, f), .have = 8, .want = 8,	\
	  .caps = c, .match = true },					\
	{ #a "." #f " one too many", FIELD(a, f), .have = 8,		\
	  .want = 9, .caps = c, .match = false }
#define LIMIT(a, f)	LIMIT_IF(a, f, 0)

/* A number that doesn't affect matching. */
#define FREE(a, f, c)							\
	{ #a "." #f " more, for nothing", FIELD(a, f), .have = 8,	\
	  .want = 9, .caps = c, .match = true }

/* The domain limits the contexts of an endpoint. */
#define CONTEXTS(f, h, w, m)						\
	{ "ep_attr." #f " " #w " of " #h,				\
	  .attr = offsetof(struct fi_info, ep_attr),			\
	  .field = offsetof(struct fi_ep_attr, f ## _ctx_cnt),		\
	  .have_attr = offsetof(struct fi_info, domain_attr),		\
	  .have_field = offsetof(struct fi_domain_attr,			\
				 max_ep_ ## f ## _ctx),			\
	  .size = sizeof(size_t), .have = h, .want = w, .match = m }

/* Bits of the hints that the entry must have. */
#define BITS(a, f)							\
	{ #a "." #f " some", FIELD(a, f), .have = 7, .want = 5,		\
	  .match = true },						\
	{ #a "." #f " all", FIELD(a, f), .have = 7, .want = 7,		\
	  .match = true },						\
	{ #a "." #f " one too many", FIELD(a, f), .have = 7,		\
	  .want = 8, .match = false }

/* Mode bits of the entry that the caller must accept, in the attribute or the entry. */
#define MODE(a)								\
	{ #a ".mode by itself", FIELD(a, mode), .have = FI_CONTEXT,	\
	  .want = FI_CONTEXT, .match = true },				\
	{ #a ".mode by the whole", FIELD(a, mode), .have = FI_CONTEXT,	\
	  .mode = FI_CONTEXT, .match = true },				\
	{ #a ".mode of its own counts", FIELD(a, mode),			\
	  .have = FI_CONTEXT, .want = FI_CONTEXT2, .mode = FI_CONTEXT,	\
	  .match = false },						\
	{ #a ".mode not accepted", FIELD(a, mode), .have = FI_CONTEXT,	\
	  .match = false }

#define TARGET	(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_RAW | FI_MR_RMA_EVENT)

static const struct row rows[] = {
	{ "caps none", INFO(caps), .have = FI_MSG, .match = true },
	{ "caps all", INFO(caps), .have = FI_MSG | FI_SEND | FI_RECV,
	  .want = FI_MSG | FI_SEND | FI_RECV, .match = true },
	{ "caps one too many", INFO(caps), .have = FI_MSG,
	  .want = FI_MSG | FI_RMA, .match = false },
	{ "mode none", INFO(mode), .match = true },
	{ "mode accepted", INFO(mode), .have = FI_CONTEXT,
	  .want = FI_CONTEXT | FI_MSG_PREFIX, .match = true },
	{ "mode not accepted", INFO(mode), .have = FI_CONTEXT,
	  .want = FI_MSG_PREFIX, .match = false },
	{ "mode of a caller that accepts none", INFO(mode), .have = FI_CONTEXT,
	  .match = false },
	{ "addr_format equal", INFO(addr_format), .have = FI_ADDR_EFA,
	  .want = FI_ADDR_EFA, .match = true },
	{ "addr_format other", INFO(addr_format), .have = FI_ADDR_EFA,
	  .want = FI_ADDR_STR, .match = false },
	{ "addr_format left open", INFO(addr_format), .have = FI_ADDR_EFA,
	  .match = true },
	{ "addr_format any", INFO(addr_format), .have = FI_FORMAT_UNSPEC,
	  .want = FI_ADDR_STR, .match = true },
	{ "addr_format any socket, IPv4", INFO(addr_format),
	  .have = FI_SOCKADDR_IN, .want = FI_SOCKADDR, .match = true },
	{ "addr_format any socket, IPv6", INFO(addr_format),
	  .have = FI_SOCKADDR_IN6, .want = FI_SOCKADDR, .match = true },
	{ "addr_format no socket", INFO(addr_format), .have = FI_ADDR_STR,
	  .want = FI_SOCKADDR, .match = false },
	{ "addr_format IPv4, any socket", INFO(addr_format),
	  .have = FI_SOCKADDR, .want = FI_SOCKADDR_IN, .match = true },
	{ "addr_format IPv4 alone", INFO(addr_format), .have = FI_SOCKADDR_IN6,
	  .want = FI_SOCKADDR_IN, .match = false },

	LIMIT(ep_attr, protocol_version),
	LIMIT(ep_attr, max_msg_size),
	LIMIT_IF(ep_attr, max_order_raw_size, FI_RMA),
	LIMIT_IF(ep_attr, max_order_war_size, FI_RMA),
	LIMIT_IF(ep_attr, max_order_waw_size, FI_RMA),
	FREE(ep_attr, max_order_raw_size, FI_MSG),
	FREE(ep_attr, max_order_war_size, FI_MSG),
	FREE(ep_attr, max_order_waw_size, FI_MSG),
	FREE(ep_attr, mem_tag_format, FI_MSG),
	{ "ep_attr.mem_tag_format fewer bits", FIELD(ep_attr, mem_tag_format),
	  .have = 0xffff, .want = 0xff, .caps = FI_TAGGED, .match = true },
	{ "ep_attr.mem_tag_format as many bits",
	  FIELD(ep_attr, mem_tag_format), .have = 0xaaaa, .want = 0xffff,
	  .caps = FI_TAGGED, .match = true },
	{ "ep_attr.mem_tag_format more bits", FIELD(ep_attr, mem_tag_format),
	  .have = 0xffff, .want = 0x1ffff, .caps = FI_TAGGED, .match = false },
	CONTEXTS(tx, 4, 3, true), CONTEXTS(tx, 4, 4, true),
	CONTEXTS(tx, 4, 5, false),
	CONTEXTS(rx, 4, 3, true), CONTEXTS(rx, 4, 4, true),
	CONTEXTS(rx, 4, 5, false),
	{ "ep_attr.type equal", FIELD(ep_attr, type), .have = FI_EP_DGRAM,
	  .want = FI_EP_DGRAM, .match = true },
	{ "ep_attr.type other", FIELD(ep_attr, type), .have = FI_EP_DGRAM,
	  .want = FI_EP_RDM, .match = false },
	{ "ep_attr.type left open", FIELD(ep_attr, type), .have = FI_EP_DGRAM,
	  .match = true },
	{ "ep_attr.type any", FIELD(ep_attr, type), .want = FI_EP_MSG,
	  .match = true },
	{ "ep_attr.protocol equal", FIELD(ep_attr, protocol),
	  .have = FI_PROTO_EFA, .want = FI_PROTO_EFA, .match = true },
	{ "ep_attr.protocol other", FIELD(ep_attr, protocol),
	  .have = 77, .want = FI_PROTO_EFA, .match = false },
	{ "ep_attr.protocol not said", FIELD(ep_attr, protocol),
	  .want = FI_PROTO_EFA, .match = false },

	LIMIT(domain_attr, mr_key_size),
	LIMIT(domain_attr, cq_data_size),
	LIMIT(domain_attr, ep_cnt),
	LIMIT(domain_attr, cntr_cnt),
	LIMIT(domain_attr, mr_iov_limit),
	LIMIT(domain_attr, mr_cnt),
	LIMIT(domain_attr, max_err_data),
	FREE(domain_attr, cq_cnt, 0),
	FREE(domain_attr, tx_ctx_cnt, 0),
	FREE(domain_attr, rx_ctx_cnt, 0),
	FREE(domain_attr, numa_node, 0),
	BITS(domain_attr, caps),
	{ "domain_attr.mode accepted", FIELD(domain_attr, mode),
	  .have = FI_CONTEXT, .want = FI_CONTEXT, .match = true },
	{ "domain_attr.mode not accepted", FIELD(domain_attr, mode),
	  .have = FI_CONTEXT, .want = FI_CONTEXT2, .match = false },
	{ "domain_attr.av_type equal", FIELD(domain_attr, av_type),
	  .have = FI_AV_MAP, .want = FI_AV_MAP, .match = true },
	{ "domain_attr.av_type other", FIELD(domain_attr, av_type),
	  .have = FI_AV_MAP, .want = FI_AV_TABLE, .match = false },
	{ "domain_attr.av_type map, by a table", FIELD(domain_attr, av_type),
	  .have = FI_AV_TABLE, .want = FI_AV_MAP, .match = true },
	{ "domain_attr.av_type any", FIELD(domain_attr, av_type),
	  .want = FI_AV_TABLE, .match = true },
	{ "domain_attr.mr_mode accepted", FIELD(domain_attr, mr_mode),
	  .have = FI_MR_LOCAL | TARGET, .want = FI_MR_LOCAL | TARGET,
	  .caps = FI_RMA, .match = true },
	{ "domain_attr.mr_mode not all accepted", FIELD(domain_attr, mr_mode),
	  .have = FI_MR_LOCAL | TARGET, .want = FI_MR_LOCAL | FI_MR_PROV_KEY,
	  .caps = FI_RMA, .match = false },
	{ "domain_attr.mr_mode of a target, no RMA asked",
	  FIELD(domain_attr, mr_mode), .have = TARGET | FI_MR_LOCAL,
	  .want = FI_MR_LOCAL, .caps = FI_MSG, .match = true },
	{ "domain_attr.mr_mode local, no RMA asked",
	  FIELD(domain_attr, mr_mode), .have = TARGET | FI_MR_LOCAL,
	  .want = FI_MR_ALLOCATED, .caps = FI_MSG, .match = false },
	{ "domain_attr.mr_mode of a target, asked by an initiator",
	  FIELD(domain_attr, mr_mode), .have = TARGET | FI_MR_LOCAL,
	  .want = FI_MR_LOCAL, .caps = FI_RMA | FI_READ | FI_WRITE,
	  .match = true },
	{ "domain_attr.mr_mode of a target, asked by a target",
	  FIELD(domain_attr, mr_mode), .have = TARGET | FI_MR_LOCAL,
	  .want = FI_MR_LOCAL, .caps = FI_RMA | FI_READ | FI_REMOTE_READ,
	  .match = false },
	{ "domain_attr.mr_mode local, nothing said",
	  FIELD(domain_attr, mr_mode), .have = FI_MR_LOCAL,
	  .caps = FI_MSG, .match = false },
	{ "domain_attr.mr_mode of a target, nothing said",
	  FIELD(domain_attr, mr_mode), .have = TARGET,
	  .caps = FI_RMA, .match = true },
	{ "domain_attr.mr_mode, caps left open", FIELD(domain_attr, mr_mode),
	  .have = FI_MR_PROV_KEY, .want = FI_MR_ALLOCATED, .match = false },

	LIMIT(tx_attr, inject_size),
	LIMIT(tx_attr, size),
	LIMIT(tx_attr, iov_limit),
	LIMIT(tx_attr, rma_iov_limit),
	BITS(tx_attr, op_flags),
	BITS(tx_attr, msg_order),
	BITS(tx_attr, comp_order),
	MODE(tx_attr),
	{ "tx_attr.caps there", FIELD(tx_attr, caps), .have = FI_SEND | FI_MSG,
	  .want = FI_SEND, .match = true },
	{ "tx_attr.caps missing", FIELD(tx_attr, caps), .have = FI_SEND,
	  .want = FI_READ, .match = false },
	{ "tx_attr.caps of the other side", FIELD(tx_attr, caps),
	  .have = FI_SEND, .want = FI_SEND | FI_RECV | FI_MULTI_RECV |
	  FI_SOURCE | FI_DIRECTED_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE,
	  .match = true },

	LIMIT(rx_attr, size),
	LIMIT(rx_attr, iov_limit),
	BITS(rx_attr, op_flags),
	BITS(rx_attr, msg_order),
	BITS(rx_attr, comp_order),
	MODE(rx_attr),
	{ "rx_attr.caps there", FIELD(rx_attr, caps), .have = FI_RECV | FI_MSG,
	  .want = FI_RECV, .match = true },
	{ "rx_attr.caps missing", FIELD(rx_attr, caps), .have = FI_RECV,
	  .want = FI_MULTI_RECV, .match = false },
	{ "rx_attr.caps of the other side", FIELD(rx_attr, caps),
	  .have = FI_RECV, .want = FI_RECV | FI_SEND | FI_READ | FI_WRITE |
	  FI_FENCE, .match = true },
};

KUNIT_ARRAY_PARAM_DESC(row, rows, desc);

static void put(struct fi_info *info, size_t attr, size_t field, u8 size,
		u64 value)
{
	void *base = attr ? *(void **)((void *)info + attr) : info;

	/* All are little-endian machines' integers of 4 or 8 bytes. */
	if (size == sizeof(u32))
		*(u32 *)(base + field) = value;
	else
		*(u64 *)(base + field) = value;
}

static struct fi_info *new_hints(struct kunit *test, struct kofi_fake *fake)
{
	struct fi_info *hints;

	hints = fi_allocinfo_for(fake->provider.name, NULL, NULL);
	KUNIT_ASSERT_NOT_NULL(test, hints);
	return hints;
}

/* 1 if the fake's entry is found, 0 if not, or an unexpected error. */
static int serves(const struct fi_info *hints)
{
	struct fi_info *list;
	int ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &list);

	fi_freeinfo(list);
	return ret == -ENODATA ? 0 : ret ?: 1;
}

static void hint(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "hinted");
	struct fi_info *hints = new_hints(test, fake);
	const struct row *row = test->param_value;

	put(fake->info, row->have_attr, row->have_field, row->size, row->have);
	hints->caps = row->caps;
	hints->mode = row->mode;
	put(hints, row->attr, row->field, row->size, row->want);
	KUNIT_EXPECT_EQ(test, serves(hints), row->match);
	fi_freeinfo(hints);
}

/*
 * Levels: an entry with the left-hand one matches hints with the right-hand one.
 */
static const bool threading_serves[][FI_THREAD_ENDPOINT + 1] = {
#define SHARED(serves_safe, serves_shared, serves_domain) {		\
		[FI_THREAD_UNSPEC]	= true,				\
		[FI_THREAD_SAFE]	= serves_safe,			\
		[FI_THREAD_FID]		= serves_shared,		\
		[FI_THREAD_ENDPOINT]	= serves_shared,		\
		[FI_THREAD_COMPLETION]	= serves_shared,		\
		[FI_THREAD_DOMAIN]	= serves_domain,		\
	}
	[FI_THREAD_UNSPEC]	= SHARED(false, false, false),
	[FI_THREAD_SAFE]	= SHARED(true, true, true),
	[FI_THREAD_FID]		= SHARED(false, true, true),
	[FI_THREAD_ENDPOINT]	= SHARED(false, true, true),
	[FI_THREAD_COMPLETION]	= SHARED(false, true, true),
	[FI_THREAD_DOMAIN]	= SHARED(false, false, true),
#undef SHARED
};

static const bool progress_serves[][FI_PROGRESS_CONTROL_UNIFIED + 1] = {
	/*				unspec auto   manual unified */
	[FI_PROGRESS_UNSPEC]		= { true, false, false, false },
	[FI_PROGRESS_AUTO]		= { true, true, true, true },
	[FI_PROGRESS_MANUAL]		= { true, false, true, true },
	[FI_PROGRESS_CONTROL_UNIFIED]	= { true, false, false, true },
};

static const bool rm_serves[][FI_RM_ENABLED + 1] = {
	/*			unspec disabled enabled */
	[FI_RM_UNSPEC]		= { true, false, false },
	[FI_RM_DISABLED]	= { true, true, false },
	[FI_RM_ENABLED]		= { true, true, true },
};

#define EXPECT_LEVELS(test, fake, hints, field, table)			\
do {									\
	unsigned int __have, __want;					\
									\
	for (__have = 0; __have < ARRAY_SIZE(table); __have++) {	\
		for (__want = 0; __want < ARRAY_SIZE((table)[0]);	\
		     __want++) {					\
			(fake)->info->domain_attr->field = __have;	\
			(hints)->domain_attr->field = __want;		\
			KUNIT_EXPECT_EQ_MSG(test, serves(hints),	\
					    (table)[__have][__want],	\
					    #field " %u for %u",	\
					    __have, __want);		\
		}							\
	}								\
	(fake)->info->domain_attr->field = 1;				\
	(hints)->domain_attr->field = 0;				\
} while (0)

static void levels(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "hinted");
	struct fi_info *hints = new_hints(test, fake);

	EXPECT_LEVELS(test, fake, hints, threading, threading_serves);
	EXPECT_LEVELS(test, fake, hints, control_progress, progress_serves);
	EXPECT_LEVELS(test, fake, hints, data_progress, progress_serves);
	EXPECT_LEVELS(test, fake, hints, resource_mgmt, rm_serves);
	fi_freeinfo(hints);
}

static void device_names(struct kunit *test)
{
	static const struct {
		const char *have;
		const char *want;
		bool match;
	} names[] = {
		{ "efa_0", "efa_0", true },
		{ "efa_0", "EFA_0", true },
		{ "efa_0", NULL, true },
		{ NULL, NULL, true },
		{ "efa_0", "efa_1", false },
		{ "efa_0", "efa", false },
		{ "efa", "efa_0", false },
		{ "efa_0", "", false },
		{ NULL, "efa_0", false },
	};
	struct kofi_fake *fake = kofi_fake_new(test, "hinted");
	struct fi_info *hints = new_hints(test, fake);
	char **have[] = {
		&fake->info->domain_attr->name, &fake->info->fabric_attr->name,
	};
	char **want[] = {
		&hints->domain_attr->name, &hints->fabric_attr->name,
	};
	unsigned int i, j;
	char *old;

	for (i = 0; i < ARRAY_SIZE(have); i++) {
		old = *have[i];
		for (j = 0; j < ARRAY_SIZE(names); j++) {
			*have[i] = (char *)names[j].have;
			*want[i] = (char *)names[j].want;
			KUNIT_EXPECT_EQ_MSG(test, serves(hints), names[j].match,
					    "%u: %s for %s", i,
					    names[j].have ?: "nothing",
					    names[j].want ?: "nothing");
		}
		*have[i] = old;
		*want[i] = NULL;
	}
	fi_freeinfo(hints);
}

/* The version of the provider is that of its registration. */
static void prov_version(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "hinted");
	struct fi_info *hints = new_hints(test, fake);

	fake->info->fabric_attr->prov_version = U32_MAX;
	hints->fabric_attr->prov_version = fake->provider.version;
	KUNIT_EXPECT_EQ(test, serves(hints), 1);
	hints->fabric_attr->prov_version--;
	KUNIT_EXPECT_EQ(test, serves(hints), 1);
	hints->fabric_attr->prov_version += 2;
	KUNIT_EXPECT_EQ(test, serves(hints), 0);
	fi_freeinfo(hints);
}

/* Missing attributes of hints match anything. */
static void partial_hints(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "hinted");
	struct fi_info *hints = new_hints(test, fake);

	KUNIT_EXPECT_EQ(test, serves(hints), 1);
#define WITHOUT(attr)							\
do {									\
	kfree(hints->attr);						\
	hints->attr = NULL;						\
	KUNIT_EXPECT_EQ_MSG(test, serves(hints), 1, "without " #attr);	\
} while (0)
	WITHOUT(tx_attr);
	WITHOUT(rx_attr);
	WITHOUT(ep_attr);
	WITHOUT(domain_attr);
	kfree(hints->fabric_attr->prov_name);
	WITHOUT(fabric_attr);
#undef WITHOUT
	fi_freeinfo(hints);
	KUNIT_EXPECT_EQ(test, serves(NULL), 1);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_GETINFO), 7);
}

/* Several entries: those that match are returned, in their order. */
static void several_entries(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "hinted");
	struct fi_info *hints = new_hints(test, fake);
	struct fi_info *second, *list;

	fake->info->ep_attr->max_msg_size = 100;
	second = kofi_fake_add_info(test, fake, "hinted-dev1");
	second->ep_attr->max_msg_size = 50;
	kofi_fake_add_info(test, fake, "hinted-dev2");

	hints->ep_attr->max_msg_size = 60;
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, hints,
					 &list), 0);
	KUNIT_EXPECT_STREQ(test, list->domain_attr->name, "hinted-dev0");
	KUNIT_ASSERT_NOT_NULL(test, list->next);
	KUNIT_EXPECT_STREQ(test, list->next->domain_attr->name, "hinted-dev2");
	KUNIT_EXPECT_NULL(test, list->next->next);
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static void calling(struct kunit *test)
{
	static const u64 good[] = {
		FI_SOURCE, FI_NUMERICHOST, FI_RESCAN, FI_PROV_ATTR_ONLY,
	};
	struct kofi_fake *fake = kofi_fake_new(test, "hinted");
	struct fi_info *list;
	unsigned int bit, i;
	u64 flags = 0;
	int expected;

	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, NULL,
					 NULL), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(good); i++)
		flags |= good[i];
	for (bit = 0; bit < 64; bit++) {
		list = (void *)1;
		expected = flags & BIT_ULL(bit) ? 0 : -FI_EBADFLAGS;
		KUNIT_EXPECT_EQ_MSG(test,
				    fi_getinfo(fi_version(), "node", NULL,
					       BIT_ULL(bit), NULL, &list),
				    expected, "bit %u", bit);
		if (expected)
			KUNIT_EXPECT_NULL(test, list);
		else
			fi_freeinfo(list);
	}

	list = (void *)1;
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version() + 1, NULL, NULL, 0, NULL,
					 &list), -ENOSYS);
	KUNIT_EXPECT_NULL(test, list);
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, FI_SOURCE,
					 NULL, &list), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_getinfo(FI_VERSION(1, 0), NULL, NULL, 0, NULL,
					 &list), 0);
	fi_freeinfo(list);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_GETINFO), 4);
}

/* FI_PROV_ATTR_ONLY lists providers without calling their getinfo. */
static void prov_attr_only(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "hinted");
	struct fi_info *hints = new_hints(test, fake);
	struct fi_info *list;

	hints->caps = ~0ULL;
	fake->call[FAKE_GETINFO].ret = -EIO;
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL,
					 FI_PROV_ATTR_ONLY, hints, &list), 0);
	KUNIT_EXPECT_NULL(test, list->next);
	KUNIT_EXPECT_STREQ(test, list->fabric_attr->prov_name, "hinted");
	KUNIT_EXPECT_EQ(test, list->fabric_attr->prov_version,
			fake->provider.version);
	KUNIT_EXPECT_NULL(test, list->fabric_attr->name);
	KUNIT_EXPECT_NULL(test, list->domain_attr->name);
	KUNIT_EXPECT_EQ(test, list->caps, 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_GETINFO), 0);
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static struct kunit_case getinfo_cases[] = {
	KUNIT_CASE_PARAM(hint, row_gen_params),
	KUNIT_CASE(levels),
	KUNIT_CASE(device_names),
	KUNIT_CASE(prov_version),
	KUNIT_CASE(partial_hints),
	KUNIT_CASE(several_entries),
	KUNIT_CASE(calling),
	KUNIT_CASE(prov_attr_only),
	{}
};

static struct kunit_suite getinfo_suite = {
	.name = "kofi_getinfo",
	.test_cases = getinfo_cases,
};

kunit_test_suite(getinfo_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's fi_getinfo()");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
