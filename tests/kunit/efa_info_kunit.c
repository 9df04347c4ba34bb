// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* fi_getinfo() of the EFA provider: capabilities and limits, and what addresses select. */
#include "efa_scene.h"
#include "../../prov/efa/rdm/rdm.h"

#define RMA	(FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* --- RMA --- */

/* Hints; the fabric of the first entry, efa-direct or not, and RMA of that entry. */
static const struct asked {
	const char	*desc;
	bool		no_hints;
	u64		caps;
	u64		mode;
	size_t		msg_size;
	bool		write;		/* the device can write */
	bool		direct;
	bool		rma;
} asked[] = {
	{ "no hints", .no_hints = true, .write = true, .direct = true, .rma = true },
	{ "empty hints", .write = true, .direct = true },
	{ "empty hints, no write", .direct = true, .rma = true },
	{ "the mode alone", .mode = FI_RX_CQ_DATA, .write = true, .direct = true, .rma = true },
	{ "RMA", .caps = FI_RMA, .mode = FI_RX_CQ_DATA, .write = true, .direct = true,
	  .rma = true },
	{ "messages", .caps = FI_MSG, .write = true, .direct = true },
	{ "messages, with the mode", .caps = FI_MSG, .mode = FI_RX_CQ_DATA, .write = true,
	  .direct = true },
	{ "messages of one packet", .caps = FI_MSG, .msg_size = EFAKE_MTU, .write = true,
	  .direct = true },
	{ "messages of more than a packet", .caps = FI_MSG, .msg_size = EFAKE_MTU + 1,
	  .write = true },
	{ "messages of more than a packet, no write", .caps = FI_MSG, .msg_size = EFAKE_MTU + 1 },
	{ "RMA, without the mode", .caps = FI_RMA, .write = true, .rma = true },
	{ "any of more than a packet", .mode = FI_RX_CQ_DATA, .msg_size = EFAKE_MTU + 1,
	  .write = true, .direct = true, .rma = true },
};

KUNIT_ARRAY_PARAM_DESC(asked, asked, desc);

/* An entry promises no more than an endpoint opened with it has. */
static void with_rma(struct kunit *test)
{
	const struct asked *row = test->param_value;
	struct fi_fabric_attr fabric = { .prov_name = FI_EFA_PROV_NAME };
	struct fi_ep_attr ep = { .max_msg_size = row->msg_size };
	struct fi_info hints = {
		.fabric_attr = &fabric, .ep_attr = &ep, .caps = row->caps, .mode = row->mode,
	};
	struct efake *fake = efake_make(test, EFA_DEVICE);
	struct fi_info *list, *info;

	fake->dev->rdma_write = row->write;
	efake_publish(fake);
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0,
					 row->no_hints ? NULL : &hints, &list), 0);
	/* Without hints, there may be other providers. */
	for (info = list; info; info = info->next)
		if (!strcmp(info->fabric_attr->prov_name, FI_EFA_PROV_NAME))
			break;
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_EXPECT_STREQ(test, info->fabric_attr->name,
			   row->direct ? FI_EFA_FABRIC_DIRECT : FI_EFA_FABRIC);
	KUNIT_EXPECT_EQ(test, !!(info->caps & RMA), row->rma);
	KUNIT_EXPECT_EQ(test, !!(info->tx_attr->caps & RMA), row->rma);
	KUNIT_EXPECT_EQ(test, !!(info->rx_attr->caps & RMA), row->rma);
	KUNIT_EXPECT_EQ(test, info->mode, row->direct && row->rma && row->write ? FI_RX_CQ_DATA :
			0);
	KUNIT_EXPECT_EQ(test, info->rx_attr->mode, info->mode);
	if (row->direct)
		KUNIT_EXPECT_EQ(test, info->ep_attr->max_msg_size,
				row->rma ? KEFA_MAX_RDMA : EFAKE_MTU);
	else
		KUNIT_EXPECT_EQ(test, info->ep_attr->max_msg_size, KEFA_RDM_MAX_MSG);
	fi_freeinfo(list);
}

/* --- RMA on fabric efa, which needs nothing of the device but memory that the CPU sees, too --- */

static const struct rdm_asked {
	const char	*desc;
	u64		caps;
	bool		device;		/* the device can read and write */
	bool		incoherent;
	int		ret;
	u64		has;
} rdm_asked[] = {
	{ "empty hints", .device = true, .has = RMA },
	{ "RMA", .caps = FI_RMA, .device = true, .has = RMA },
	{ "RMA, no device", .caps = FI_RMA, .has = RMA },
	{ "a reader", .caps = FI_MSG | FI_RMA | FI_READ, .device = true,
	  .has = FI_RMA | FI_READ },
	{ "a target", .caps = FI_TAGGED | FI_RMA | FI_REMOTE_WRITE | FI_RMA_EVENT,
	  .has = FI_RMA | FI_REMOTE_WRITE },
	{ "messages", .caps = FI_MSG | FI_TAGGED, .device = true },
	{ "initiator, incoherent", .caps = FI_RMA, .incoherent = true,
	  .has = FI_RMA | FI_READ | FI_WRITE },
	{ "target, incoherent", .caps = FI_RMA | FI_REMOTE_READ, .incoherent = true,
	  .ret = -ENODATA },
};

KUNIT_ARRAY_PARAM_DESC(rdm_asked, rdm_asked, desc);

static void rdm_rma(struct kunit *test)
{
	const struct rdm_asked *row = test->param_value;
	struct fi_fabric_attr fabric = {
		.prov_name = FI_EFA_PROV_NAME, .name = FI_EFA_FABRIC,
	};
	struct fi_info hints = { .fabric_attr = &fabric, .caps = row->caps };
	struct efake *fake = efake_make(test, EFA_DEVICE);
	struct fi_info *info;

	fake->dev->rdma_read = row->device;
	fake->dev->rdma_write = row->device;
	fake->incoherent = row->incoherent;
	efake_publish(fake);
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, &hints, &info), row->ret);
	if (row->ret)
		return;
	KUNIT_EXPECT_EQ(test, info->caps & RMA, row->has);
	KUNIT_EXPECT_EQ(test, !!(info->tx_attr->caps & FI_RMA), !!row->has);
	KUNIT_EXPECT_EQ(test, !!(info->rx_attr->caps & FI_RMA), !!row->has);
	KUNIT_EXPECT_EQ(test, !(info->caps & FI_RMA_EVENT), row->incoherent);
	KUNIT_EXPECT_EQ(test, info->mode, 0);
	KUNIT_EXPECT_EQ(test, info->rx_attr->mode, 0);
	KUNIT_EXPECT_EQ(test, info->tx_attr->rma_iov_limit, 4);
	KUNIT_EXPECT_EQ(test, info->ep_attr->max_msg_size, KEFA_RDM_MAX_MSG);
	KUNIT_EXPECT_NULL(test, info->next);
	fi_freeinfo(info);
}

/* --- other attributes --- */

/* A plain receive of fabric efa must not become a buffer for several messages. */
static void default_flags(struct kunit *test)
{
	struct efake *fake = efake_make(test, EFA_DEVICE);
	struct fi_info *list, *info;

	efake_publish(fake);
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &list), 0);
	for (info = list; info; info = info->next) {
		if (strcmp(info->fabric_attr->prov_name, FI_EFA_PROV_NAME))
			continue;
		KUNIT_EXPECT_EQ(test, info->tx_attr->op_flags & FI_INJECT, 0);
		KUNIT_EXPECT_EQ(test, info->rx_attr->op_flags & FI_MULTI_RECV, 0);
	}
	fi_freeinfo(list);
}

/* fi_efa(7): an address vector of type FI_AV_MAP is a table. */
static void map_is_table(struct kunit *test)
{
	struct efake *fake = efake_make(test, EFA_DEVICE);
	struct fi_fabric_attr fabric = { .prov_name = FI_EFA_PROV_NAME };
	struct fi_domain_attr domain = { .av_type = FI_AV_MAP };
	struct fi_info hints = {
		.fabric_attr = &fabric, .domain_attr = &domain, .caps = FI_MSG,
	};
	struct fi_info *info;

	efake_publish(fake);
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, &hints, &info), 0);
	KUNIT_EXPECT_EQ(test, info->domain_attr->av_type, FI_AV_TABLE);
	KUNIT_EXPECT_NOT_NULL(test, info->next);
	fi_freeinfo(info);
}

/* --- addresses --- */

/* Two devices, with the GIDs fe00::1 and fe00::2. */
static void two_devices(struct kunit *test)
{
	struct efake *one = efake_make(test, "efake1"), *two = efake_make(test, "efake2");

	memset(one->dev->gid, 0, sizeof(one->dev->gid));
	memset(two->dev->gid, 0, sizeof(two->dev->gid));
	one->dev->gid[0] = 0xfe;
	one->dev->gid[15] = 1;
	two->dev->gid[0] = 0xfe;
	two->dev->gid[15] = 2;
	efake_publish(one);
	efake_publish(two);
}

/* Arguments of fi_getinfo(), and the devices of its entries. */
static const struct place {
	const char	*desc;
	const char	*node;
	const char	*service;
	bool		source;		/* FI_SOURCE */
	u8		src;		/* last byte of hints' source address; 0 for none */
	u8		dest;		/* the same for the peer's address */
	size_t		len;		/* length of hints' addresses; 0 for the right one */
	int		ret;
	u8		devices;	/* as bits */
	const char	*peer;		/* the entries' dest_addr */
} places[] = {
	{ "nothing", .devices = 3 },
	{ "local name", "efake2", .source = true, .devices = 2 },
	{ "local name, unknown", "efake3", .source = true, .ret = -ENODATA },
	{ "local GID", "fe00::1", .source = true, .devices = 1 },
	{ "local GID, unknown", "fe00::3", .source = true, .ret = -ENODATA },
	{ "local address", "fi_addr_efa://[fe00::2]:7:8", .source = true, .devices = 2 },
	{ "local name, other source address in the hints", "efake2", .source = true, .src = 1,
	  .devices = 2 },
	{ "local name, peer in the hints", "efake1", .source = true, .dest = 9, .devices = 1,
	  .peer = "fi_addr_efa://[fe80::9]:5:6" },
	{ "peer", "fi_addr_efa://[fe80::3]:68:324", .devices = 3,
	  .peer = "fi_addr_efa://[fe80::3]:68:324" },
	{ "peer, largest numbers", "FI_ADDR_EFA://[fe80::3]:65535:4294967295", .devices = 3,
	  .peer = "fi_addr_efa://[fe80::3]:65535:4294967295" },
	{ "peer, another peer in the hints", "fi_addr_efa://[fe80::3]:68:324", .dest = 9,
	  .devices = 3, .peer = "fi_addr_efa://[fe80::3]:68:324" },
	{ "peer, device in the hints", "fi_addr_efa://[fe80::3]:68:324", .src = 2,
	  .devices = 2, .peer = "fi_addr_efa://[fe80::3]:68:324" },
	{ "name of a local device as a peer", "efake1", .ret = -ENODATA },
	{ "name of a host", "storage.example", .ret = -ENODATA },
	{ "peer's GID alone", "fe80::3", .ret = -ENODATA },
	{ "no numbers", "fi_addr_efa://[fe80::3]", .ret = -ENODATA },
	{ "no key", "fi_addr_efa://[fe80::3]:68", .ret = -ENODATA },
	{ "long number", "fi_addr_efa://[fe80::3]:65536:1", .ret = -ENODATA },
	{ "long key", "fi_addr_efa://[fe80::3]:1:4294967296", .ret = -ENODATA },
	{ "longest key", "fi_addr_efa://[fe80::3]:1:18446744073709551617", .ret = -ENODATA },
	{ "negative number", "fi_addr_efa://[fe80::3]:-1:1", .ret = -ENODATA },
	{ "text behind", "fi_addr_efa://[fe80::3]:68:324?qos=3", .ret = -ENODATA },
	{ "bad GID", "fi_addr_efa://[fe80:::3]:68:324", .ret = -ENODATA },
	{ "GID without end", "fi_addr_efa://[fe80::3", .ret = -ENODATA },
	{ "empty node", "", .ret = -ENODATA },
	{ "empty local node", "", .source = true, .ret = -ENODATA },
	{ "service", NULL, "4", .ret = -ENODATA },
	{ "local service", NULL, "4", .source = true, .ret = -ENODATA },
	{ "device in the hints", .src = 1, .devices = 1 },
	{ "unknown device in the hints", .src = 3, .ret = -ENODATA },
	{ "peer in the hints", .dest = 9, .devices = 3, .peer = "fi_addr_efa://[fe80::9]:5:6" },
	{ "both in the hints", .src = 2, .dest = 9, .devices = 2,
	  .peer = "fi_addr_efa://[fe80::9]:5:6" },
	{ "short device", .src = 1, .len = 16, .ret = -ENODATA },
	{ "long peer", .dest = 9, .len = 33, .ret = -ENODATA },
	{ "peer of no length", .dest = 9, .len = SIZE_MAX, .ret = -ENODATA },
};

KUNIT_ARRAY_PARAM_DESC(place, places, desc);

static void expect_peer(struct kunit *test, const struct fi_info *info, const char *peer)
{
	const struct fi_efa_addr *addr = info->dest_addr;
	char text[64];

	KUNIT_EXPECT_EQ(test, !!addr, !!peer);
	KUNIT_EXPECT_EQ(test, info->dest_addrlen, peer ? sizeof(*addr) : 0);
	if (!addr || !peer)
		return;
	snprintf(text, sizeof(text), "fi_addr_efa://[%pI6c]:%u:%u", addr->gid, addr->qpn,
		 addr->qkey);
	KUNIT_EXPECT_STREQ(test, text, peer);
}

static void addresses(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct fi_efa_addr src = { .gid = { 0xfe, [15] = place->src }, .qpn = 4 };
	struct fi_efa_addr dest = {
		.gid = { 0xfe, 0x80, [15] = place->dest }, .qpn = 5, .qkey = 6,
	};
	struct fi_fabric_attr fabric = { .prov_name = FI_EFA_PROV_NAME };
	struct fi_info hints = { .fabric_attr = &fabric, .caps = FI_MSG };
	size_t len = place->len == SIZE_MAX ? 0 : place->len ?: sizeof(src);
	struct fi_info *list, *info;
	u8 devices = 0;

	hints.src_addr = place->src ? &src : NULL;
	hints.src_addrlen = place->src ? len : 0;
	hints.dest_addr = place->dest ? &dest : NULL;
	hints.dest_addrlen = place->dest ? len : 0;
	two_devices(test);
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), place->node, place->service,
					 place->source ? FI_SOURCE : 0, &hints, &list),
			place->ret);
	for (info = list; info; info = info->next) {
		devices |= strcmp(info->domain_attr->name, "efake1") ? 2 : 1;
		expect_peer(test, info, place->peer);
	}
	KUNIT_EXPECT_EQ(test, devices, place->devices);
	fi_freeinfo(list);
}

/* The text of an endpoint's address leads to that endpoint. */
static void address_of_endpoint(struct kunit *test)
{
	struct efa_scene *scene = efa_scene_new(test, NULL);
	struct fi_fabric_attr fabric = { .prov_name = FI_EFA_PROV_NAME };
	struct fi_info hints = { .fabric_attr = &fabric, .caps = FI_MSG };
	struct fi_efa_addr name;
	size_t len = sizeof(name), room;
	struct fi_info *info;
	fi_addr_t self, again;
	char text[64];

	KUNIT_ASSERT_EQ(test, fi_getname(&scene->ep->fid, &name, &len), 0);
	KUNIT_ASSERT_EQ(test, fi_av_insert(scene->av, &name, 1, &self, 0, NULL), 1);
	room = sizeof(text);
	KUNIT_ASSERT_NOT_NULL(test, fi_av_straddr(scene->av, &name, text, &room));
	KUNIT_ASSERT_EQ(test, fi_getinfo(fi_version(), text, NULL, FI_NUMERICHOST, &hints, &info),
			0);
	KUNIT_ASSERT_NOT_NULL(test, info->dest_addr);
	KUNIT_EXPECT_EQ(test, fi_av_insert(scene->av, info->dest_addr, 1, &again, 0, NULL), 1);
	KUNIT_EXPECT_EQ(test, again, self);
	fi_freeinfo(info);
}

static struct kunit_case info_cases[] = {
	KUNIT_CASE_PARAM(with_rma, asked_gen_params),
	KUNIT_CASE_PARAM(rdm_rma, rdm_asked_gen_params),
	KUNIT_CASE(default_flags),
	KUNIT_CASE(map_is_table),
	KUNIT_CASE_PARAM(addresses, place_gen_params),
	KUNIT_CASE(address_of_endpoint),
	{}
};

static struct kunit_suite info_suite = {
	.name = "kefa_info",
	.test_cases = info_cases,
};

kunit_test_suite(info_suite);
