// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Entries: deep copies, independent of their provider, and reduced to the requested
 * attributes.
 */
#include <linux/numa.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "fake.h"

/* Fill memory with a pattern that differs in each byte. */
static void fill(void *data, size_t len, u8 seed)
{
	u8 *byte = data;

	while (len--)
		*byte++ = seed++ | 1;
}

static struct fid_nic *new_nic(struct kunit *test)
{
	struct fid_nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, nic);
	nic->device_attr.name = kstrdup("nic name", GFP_KERNEL);
	nic->device_attr.device_id = kstrdup("device id", GFP_KERNEL);
	nic->device_attr.device_version = kstrdup("version", GFP_KERNEL);
	nic->device_attr.vendor_id = kstrdup("vendor", GFP_KERNEL);
	nic->device_attr.driver = kstrdup("driver", GFP_KERNEL);
	nic->device_attr.firmware = kstrdup("firmware", GFP_KERNEL);
	nic->link_attr.address = kstrdup("address", GFP_KERNEL);
	nic->link_attr.mtu = 8928;
	nic->link_attr.speed = 100000000000ULL;
	nic->link_attr.up = true;
	nic->link_attr.network_type = kstrdup("type", GFP_KERNEL);
	nic->left_attr.regions = 7;
	return nic;
}

/* Make an entry with all attributes and no zero fields. */
static struct fi_info *new_full(struct kunit *test)
{
	struct fi_info *info = fi_allocinfo();

	KUNIT_ASSERT_NOT_NULL(test, info);
	info->caps = 1;
	info->mode = 2;
	info->addr_format = 3;
	info->src_addrlen = 32;
	info->dest_addrlen = 16;
	info->src_addr = kzalloc(32, GFP_KERNEL);
	info->dest_addr = kzalloc(16, GFP_KERNEL);
	fill(info->src_addr, 32, 5);
	fill(info->dest_addr, 16, 6);
	fill(info->tx_attr, sizeof(*info->tx_attr), 10);
	fill(info->rx_attr, sizeof(*info->rx_attr), 20);
	fill(info->ep_attr, sizeof(*info->ep_attr), 30);
	fill(info->domain_attr, sizeof(*info->domain_attr), 40);
	fill(info->fabric_attr, sizeof(*info->fabric_attr), 50);
	info->domain_attr->name = kstrdup("domain", GFP_KERNEL);
	info->fabric_attr->name = kstrdup("fabric", GFP_KERNEL);
	info->fabric_attr->prov_name = kstrdup("provider", GFP_KERNEL);
	info->nic = new_nic(test);
	return info;
}

static void expect_str_copied(struct kunit *test, const char *copy,
			      const char *from)
{
	KUNIT_ASSERT_NOT_NULL(test, copy);
	KUNIT_EXPECT_STREQ(test, copy, from);
	KUNIT_EXPECT_PTR_NE(test, copy, from);
}

#define EXPECT_COPIED(test, copy, from, member, len)			\
do {									\
	KUNIT_ASSERT_NOT_NULL(test, (copy)->member);			\
	KUNIT_EXPECT_MEMEQ(test, (copy)->member, (from)->member, len);	\
	KUNIT_EXPECT_PTR_NE(test, (copy)->member, (from)->member);	\
} while (0)

static void expect_nic_copied(struct kunit *test, const struct fid_nic *copy,
			      const struct fid_nic *from)
{
	KUNIT_ASSERT_NOT_NULL(test, copy);
	KUNIT_EXPECT_PTR_NE(test, copy, from);
	expect_str_copied(test, copy->device_attr.name, from->device_attr.name);
	expect_str_copied(test, copy->device_attr.device_id,
			  from->device_attr.device_id);
	expect_str_copied(test, copy->device_attr.device_version,
			  from->device_attr.device_version);
	expect_str_copied(test, copy->device_attr.vendor_id,
			  from->device_attr.vendor_id);
	expect_str_copied(test, copy->device_attr.driver,
			  from->device_attr.driver);
	expect_str_copied(test, copy->device_attr.firmware,
			  from->device_attr.firmware);
	expect_str_copied(test, copy->link_attr.address,
			  from->link_attr.address);
	expect_str_copied(test, copy->link_attr.network_type,
			  from->link_attr.network_type);
	KUNIT_EXPECT_MEMEQ(test, &copy->left_attr, &from->left_attr, sizeof(from->left_attr));
	KUNIT_EXPECT_EQ(test, copy->link_attr.mtu, from->link_attr.mtu);
	KUNIT_EXPECT_EQ(test, copy->link_attr.speed, from->link_attr.speed);
	KUNIT_EXPECT_EQ(test, copy->link_attr.up, from->link_attr.up);
}

static void dup_full(struct kunit *test)
{
	struct fi_info *from = new_full(test), *copy;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;

	from->next = from;
	copy = fi_dupinfo(from);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	KUNIT_EXPECT_NULL(test, copy->next);
	KUNIT_EXPECT_EQ(test, copy->caps, 1);
	KUNIT_EXPECT_EQ(test, copy->mode, 2);
	KUNIT_EXPECT_EQ(test, copy->addr_format, 3);
	KUNIT_EXPECT_EQ(test, copy->src_addrlen, 32);
	KUNIT_EXPECT_EQ(test, copy->dest_addrlen, 16);
	EXPECT_COPIED(test, copy, from, src_addr, 32);
	EXPECT_COPIED(test, copy, from, dest_addr, 16);
	EXPECT_COPIED(test, copy, from, tx_attr, sizeof(*from->tx_attr));
	EXPECT_COPIED(test, copy, from, rx_attr, sizeof(*from->rx_attr));
	EXPECT_COPIED(test, copy, from, ep_attr, sizeof(*from->ep_attr));
	expect_str_copied(test, copy->domain_attr->name, "domain");
	expect_str_copied(test, copy->fabric_attr->name, "fabric");
	expect_str_copied(test, copy->fabric_attr->prov_name, "provider");
	expect_nic_copied(test, copy->nic, from->nic);

	/* The structures are equal except for the pointers to names. */
	domain = *from->domain_attr;
	domain.name = copy->domain_attr->name;
	KUNIT_EXPECT_MEMEQ(test, copy->domain_attr, &domain, sizeof(domain));
	fabric = *from->fabric_attr;
	fabric.name = copy->fabric_attr->name;
	fabric.prov_name = copy->fabric_attr->prov_name;
	KUNIT_EXPECT_MEMEQ(test, copy->fabric_attr, &fabric, sizeof(fabric));

	from->next = NULL;
	fi_freeinfo(from);
	KUNIT_EXPECT_STREQ(test, copy->nic->device_attr.firmware, "firmware");
	fi_freeinfo(copy);
}

/* Missing attributes are missing in the copy. */
static void dup_sparse(struct kunit *test)
{
	struct fi_domain_attr domain = { .numa_node = 3 };
	struct fi_fabric_attr fabric = { .api_version = 4 };
	struct fid_nic nic = { .link_attr.mtu = 1500 };
	struct fi_info from = { .caps = 5, .src_addr = &from };
	struct fi_info *copy = fi_dupinfo(&from);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	KUNIT_EXPECT_EQ(test, copy->caps, 5);
	KUNIT_EXPECT_NULL(test, copy->src_addr);
	KUNIT_EXPECT_NULL(test, copy->tx_attr);
	KUNIT_EXPECT_NULL(test, copy->rx_attr);
	KUNIT_EXPECT_NULL(test, copy->ep_attr);
	KUNIT_EXPECT_NULL(test, copy->domain_attr);
	KUNIT_EXPECT_NULL(test, copy->fabric_attr);
	KUNIT_EXPECT_NULL(test, copy->nic);
	fi_freeinfo(copy);

	from.domain_attr = &domain;
	from.fabric_attr = &fabric;
	from.nic = &nic;
	copy = fi_dupinfo(&from);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	KUNIT_EXPECT_NULL(test, copy->domain_attr->name);
	KUNIT_EXPECT_EQ(test, copy->domain_attr->numa_node, 3);
	KUNIT_EXPECT_NULL(test, copy->fabric_attr->name);
	KUNIT_EXPECT_NULL(test, copy->fabric_attr->prov_name);
	KUNIT_EXPECT_EQ(test, copy->fabric_attr->api_version, 4);
	KUNIT_EXPECT_NULL(test, copy->nic->device_attr.name);
	KUNIT_EXPECT_EQ(test, copy->nic->link_attr.mtu, 1500);
	fi_freeinfo(copy);
}

static void alloc_empty(struct kunit *test)
{
	static const struct fi_tx_attr tx;
	static const struct fi_rx_attr rx;
	static const struct fi_ep_attr ep;
	static const struct fi_fabric_attr fabric;
	static const struct fi_domain_attr domain = {
		.numa_node = NUMA_NO_NODE,
	};
	struct fi_info *info = fi_allocinfo();

	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_NULL(test, info->next);
	KUNIT_EXPECT_EQ(test, info->caps, 0);
	KUNIT_EXPECT_NULL(test, info->src_addr);
	KUNIT_EXPECT_NULL(test, info->dest_addr);
	KUNIT_EXPECT_NULL(test, info->nic);
	KUNIT_EXPECT_MEMEQ(test, info->tx_attr, &tx, sizeof(tx));
	KUNIT_EXPECT_MEMEQ(test, info->rx_attr, &rx, sizeof(rx));
	KUNIT_EXPECT_MEMEQ(test, info->ep_attr, &ep, sizeof(ep));
	KUNIT_EXPECT_MEMEQ(test, info->domain_attr, &domain, sizeof(domain));
	KUNIT_EXPECT_MEMEQ(test, info->fabric_attr, &fabric, sizeof(fabric));
	fi_freeinfo(info);
	fi_freeinfo(NULL);
}

/* The names are copied; the rest is as empty as after fi_allocinfo(). */
static void alloc_for(struct kunit *test)
{
	struct fi_info *info = fi_allocinfo_for("provider", "fabric", "domain");

	KUNIT_ASSERT_NOT_NULL(test, info);
	expect_str_copied(test, info->fabric_attr->prov_name, "provider");
	expect_str_copied(test, info->fabric_attr->name, "fabric");
	expect_str_copied(test, info->domain_attr->name, "domain");
	KUNIT_EXPECT_EQ(test, info->domain_attr->numa_node, NUMA_NO_NODE);
	fi_freeinfo(info);

	info = fi_allocinfo_for(NULL, NULL, NULL);
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_NULL(test, info->fabric_attr->prov_name);
	KUNIT_EXPECT_NULL(test, info->fabric_attr->name);
	KUNIT_EXPECT_NULL(test, info->domain_attr->name);
	fi_freeinfo(info);
}

static struct fi_info *get(struct kunit *test, const struct fi_info *hints)
{
	struct fi_info *list;

	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, hints,
					 &list), 0);
	return list;
}

static struct fi_info *new_hints(struct kunit *test)
{
	struct fi_info *hints = fi_allocinfo();

	KUNIT_ASSERT_NOT_NULL(test, hints);
	hints->fabric_attr->prov_name = kstrdup("narrow", GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hints->fabric_attr->prov_name);
	return hints;
}

static void outlives_provider(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_make(test, "narrow");
	struct fi_info *hints = new_hints(test), *list;

	fi_freeinfo(fake->info);
	fake->info = new_full(test);
	fake->info->mode = 0;
	fake->info->tx_attr->mode = 0;
	fake->info->rx_attr->mode = 0;
	hints->domain_attr->mr_mode = U32_MAX;
	KUNIT_ASSERT_EQ(test, kofi_fake_register(fake), 0);
	list = get(test, hints);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(fake), 0);
	fi_freeinfo(fake->info);
	fake->info = NULL;

	KUNIT_EXPECT_STREQ(test, list->domain_attr->name, "domain");
	KUNIT_EXPECT_STREQ(test, list->fabric_attr->prov_name, "narrow");
	KUNIT_EXPECT_STREQ(test, list->nic->link_attr.address, "address");
	KUNIT_EXPECT_EQ(test, ((u8 *)list->src_addr)[31], (31 + 5) | 1);
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

#define SECONDARY	(FI_MULTI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define MSG_TX		(FI_MSG | FI_SEND)
#define MSG_RX		(FI_MSG | FI_RECV)
#define RMA_TX		(FI_RMA | FI_READ | FI_WRITE)
#define RMA_RX		(FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SOURCES		(FI_SOURCE | FI_SOURCE_ERR)

static struct kofi_fake *new_narrow(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "narrow");
	struct fi_info *info = fake->info;

	info->tx_attr->caps = MSG_TX | RMA_TX | FI_LOCAL_COMM | FI_REMOTE_COMM;
	info->rx_attr->caps = MSG_RX | RMA_RX | SECONDARY | SOURCES |
			      FI_DIRECTED_RECV;
	info->caps = info->tx_attr->caps | info->rx_attr->caps;
	info->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_PROV_KEY |
				     FI_MR_VIRT_ADDR;
	return fake;
}

/* A caller that supports FI_MR_LOCAL, which is only used on request. */
static struct fi_info *narrow_hints(struct kunit *test)
{
	struct fi_info *hints = new_hints(test);

	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_PROV_KEY |
				      FI_MR_VIRT_ADDR;
	return hints;
}

static const struct caps_case {
	const char *desc;
	u64 hints;
	u64 caps;
	u64 tx;
	u64 rx;
	u32 mr_mode;
} caps_cases[] = {
	/* FI_SOURCE costs time, so it is only set if requested explicitly. */
	{ "all", 0,
	  MSG_TX | MSG_RX | RMA_TX | RMA_RX | FI_DIRECTED_RECV | SECONDARY |
	  SOURCES,
	  MSG_TX | RMA_TX | FI_LOCAL_COMM | FI_REMOTE_COMM,
	  MSG_RX | RMA_RX | FI_DIRECTED_RECV | SECONDARY | SOURCES,
	  FI_MR_LOCAL | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR },
	{ "messages", FI_MSG,
	  MSG_TX | MSG_RX | SECONDARY,
	  MSG_TX | FI_LOCAL_COMM | FI_REMOTE_COMM,
	  MSG_RX | SECONDARY | SOURCES,
	  FI_MR_LOCAL },
	{ "sending", FI_MSG | FI_SEND,
	  MSG_TX | SECONDARY,
	  MSG_TX | FI_LOCAL_COMM | FI_REMOTE_COMM,
	  FI_MSG | FI_RECV | SECONDARY | SOURCES,
	  FI_MR_LOCAL },
	{ "messages and sources", FI_MSG | FI_SOURCE,
	  MSG_TX | MSG_RX | SECONDARY | FI_SOURCE,
	  MSG_TX | FI_LOCAL_COMM | FI_REMOTE_COMM,
	  MSG_RX | SECONDARY | SOURCES,
	  FI_MR_LOCAL },
	{ "messages and unknown sources", FI_MSG | SOURCES,
	  MSG_TX | MSG_RX | SECONDARY | SOURCES,
	  MSG_TX | FI_LOCAL_COMM | FI_REMOTE_COMM,
	  MSG_RX | SECONDARY | SOURCES,
	  FI_MR_LOCAL },
	{ "RMA", FI_RMA,
	  RMA_TX | RMA_RX | SECONDARY,
	  RMA_TX | FI_LOCAL_COMM | FI_REMOTE_COMM,
	  RMA_RX | SECONDARY | SOURCES,
	  FI_MR_LOCAL | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR },
	{ "reading", FI_RMA | FI_READ,
	  FI_RMA | FI_READ | SECONDARY,
	  FI_RMA | FI_READ | FI_LOCAL_COMM | FI_REMOTE_COMM,
	  FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE | SECONDARY | SOURCES,
	  FI_MR_LOCAL },
	{ "being read", FI_RMA | FI_REMOTE_READ,
	  FI_RMA | FI_REMOTE_READ | SECONDARY,
	  FI_RMA | FI_READ | FI_WRITE | FI_LOCAL_COMM | FI_REMOTE_COMM,
	  FI_RMA | FI_REMOTE_READ | SECONDARY | SOURCES,
	  FI_MR_LOCAL | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR },
};

KUNIT_ARRAY_PARAM_DESC(caps, caps_cases, desc);

static void narrow_caps(struct kunit *test)
{
	const struct caps_case *param = test->param_value;
	struct fi_info *hints, *info;

	new_narrow(test);
	hints = narrow_hints(test);
	hints->caps = param->hints;
	info = get(test, hints);
	KUNIT_EXPECT_EQ(test, info->caps, param->caps);
	KUNIT_EXPECT_EQ(test, info->tx_attr->caps, param->tx);
	KUNIT_EXPECT_EQ(test, info->rx_attr->caps, param->rx);
	KUNIT_EXPECT_EQ(test, info->domain_attr->mr_mode, param->mr_mode);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* A caller may request only one direction. */
static void narrow_side_caps(struct kunit *test)
{
	struct fi_info *hints, *info;

	new_narrow(test);
	hints = narrow_hints(test);
	hints->tx_attr->caps = FI_MSG | FI_SEND;
	hints->rx_attr->caps = FI_RMA | FI_REMOTE_READ;
	info = get(test, hints);
	KUNIT_EXPECT_EQ(test, info->tx_attr->caps,
			MSG_TX | FI_LOCAL_COMM | FI_REMOTE_COMM);
	KUNIT_EXPECT_EQ(test, info->rx_attr->caps,
			FI_RMA | FI_REMOTE_READ | SECONDARY);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Numbers and levels take the requested values; zero leaves them unchanged. */
static void narrow_fields(struct kunit *test)
{
	struct kofi_fake *fake = new_narrow(test);
	struct fi_info *hints = narrow_hints(test), *info, *as_is;
	struct fi_info *have = fake->info;

	have->domain_attr->control_progress = FI_PROGRESS_AUTO;
	have->domain_attr->data_progress = FI_PROGRESS_AUTO;
	have->domain_attr->resource_mgmt = FI_RM_ENABLED;
	have->tx_attr->op_flags = FI_COMPLETION | FI_INJECT;
	have->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	have->tx_attr->inject_size = 64;
	have->tx_attr->rma_iov_limit = 4;
	have->ep_attr->max_order_raw_size = 100;
	have->ep_attr->max_order_war_size = 100;
	have->ep_attr->max_order_waw_size = 100;
	have->domain_attr->max_ep_tx_ctx = 4;
	have->domain_attr->max_ep_rx_ctx = 4;
	have->domain_attr->mr_cnt = 100;
	hints->caps = FI_RMA | FI_MSG;
	as_is = get(test, hints);

#define ASK(field, value)	(hints->field = (value))
	ASK(domain_attr->threading, FI_THREAD_DOMAIN);
	ASK(domain_attr->control_progress, FI_PROGRESS_MANUAL);
	ASK(domain_attr->data_progress, FI_PROGRESS_CONTROL_UNIFIED);
	ASK(domain_attr->resource_mgmt, FI_RM_DISABLED);
	ASK(domain_attr->av_type, FI_AV_TABLE);
	ASK(domain_attr->mr_cnt, 15);
	ASK(ep_attr->max_order_raw_size, 10);
	ASK(ep_attr->max_order_war_size, 11);
	ASK(ep_attr->max_order_waw_size, 12);
	ASK(ep_attr->tx_ctx_cnt, 2);
	ASK(ep_attr->rx_ctx_cnt, 3);
	ASK(tx_attr->op_flags, FI_INJECT);
	ASK(tx_attr->inject_size, 32);
	ASK(tx_attr->size, 13);
	ASK(tx_attr->iov_limit, 2);
	ASK(tx_attr->rma_iov_limit, 1);
	ASK(rx_attr->op_flags, FI_MULTI_RECV);
	ASK(rx_attr->size, 14);
	ASK(rx_attr->iov_limit, 3);
#undef ASK
	info = get(test, hints);

#define EXPECT(field, zero)						\
do {									\
	KUNIT_EXPECT_EQ_MSG(test, info->field, hints->field, #field);	\
	KUNIT_EXPECT_EQ_MSG(test, as_is->field, zero, #field);		\
} while (0)
#define KEPT(field)	EXPECT(field, have->field)
	KEPT(domain_attr->threading);
	KEPT(domain_attr->control_progress);
	KEPT(domain_attr->data_progress);
	KEPT(domain_attr->resource_mgmt);
	KEPT(domain_attr->av_type);
	KEPT(domain_attr->mr_cnt);
	KEPT(ep_attr->max_order_raw_size);
	KEPT(ep_attr->max_order_war_size);
	KEPT(ep_attr->max_order_waw_size);
	KEPT(ep_attr->tx_ctx_cnt);
	KEPT(ep_attr->rx_ctx_cnt);
	KEPT(tx_attr->inject_size);
	KEPT(tx_attr->size);
	KEPT(tx_attr->iov_limit);
	KEPT(tx_attr->rma_iov_limit);
	KEPT(rx_attr->size);
	KEPT(rx_attr->iov_limit);
	/* Default flags of operations are the requested ones, or none. */
	EXPECT(tx_attr->op_flags, 0);
	EXPECT(rx_attr->op_flags, 0);
#undef KEPT
#undef EXPECT
	/* A limit isn't lowered to a smaller request. */
	KUNIT_EXPECT_EQ(test, info->ep_attr->max_msg_size,
			have->ep_attr->max_msg_size);
	fi_freeinfo(as_is);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Without hints the entry is the provider's. */
static void narrow_nothing(struct kunit *test)
{
	struct kofi_fake *fake = new_narrow(test);
	struct fi_info *list, *info;

	/* Exceptions: FI_INJECT and FI_MULTI_RECV aren't default flags unless requested. */
	fake->info->tx_attr->op_flags = FI_COMPLETION | FI_INJECT;
	fake->info->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	list = get(test, NULL);
	fake->info->tx_attr->op_flags = FI_COMPLETION;
	fake->info->rx_attr->op_flags = FI_COMPLETION;
	for (info = list; info; info = info->next)
		if (!strcmp(info->fabric_attr->prov_name, "narrow"))
			break;
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_EQ(test, info->caps, fake->info->caps);
	KUNIT_EXPECT_MEMEQ(test, info->tx_attr, fake->info->tx_attr,
			   sizeof(*info->tx_attr));
	KUNIT_EXPECT_MEMEQ(test, info->rx_attr, fake->info->rx_attr,
			   sizeof(*info->rx_attr));
	KUNIT_EXPECT_MEMEQ(test, info->ep_attr, fake->info->ep_attr,
			   sizeof(*info->ep_attr));
	KUNIT_EXPECT_EQ(test, info->domain_attr->mr_mode,
			fake->info->domain_attr->mr_mode);
	fi_freeinfo(list);
}

static struct kunit_case info_cases[] = {
	KUNIT_CASE(dup_full),
	KUNIT_CASE(dup_sparse),
	KUNIT_CASE(alloc_empty),
	KUNIT_CASE(alloc_for),
	KUNIT_CASE(outlives_provider),
	KUNIT_CASE_PARAM(narrow_caps, caps_gen_params),
	KUNIT_CASE(narrow_side_caps),
	KUNIT_CASE(narrow_fields),
	KUNIT_CASE(narrow_nothing),
	{}
};

static struct kunit_suite info_suite = {
	.name = "kofi_info",
	.test_cases = info_cases,
};

kunit_test_suite(info_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's fi_info");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
