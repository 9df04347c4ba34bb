// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* fi_tostr(): the text, and that it never exceeds the buffer. */
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "fake.h"

#define ROOM	SZ_16K
#define CANARY	0xa5

/* Values with names, and unknown values. */
static const struct word {
	enum fi_type type;
	u64 value;
	const char *text;
} words[] = {
#define ONE(type, x)	{ FI_TYPE_ ## type, x, #x }
#define BIT_OF(type, x)	{ FI_TYPE_ ## type, x, #x }
	ONE(EP_TYPE, FI_EP_UNSPEC), ONE(EP_TYPE, FI_EP_MSG),
	ONE(EP_TYPE, FI_EP_DGRAM), ONE(EP_TYPE, FI_EP_RDM),
	{ FI_TYPE_EP_TYPE, 99, "99" },
	BIT_OF(CAPS, FI_MSG), BIT_OF(CAPS, FI_RMA), BIT_OF(CAPS, FI_TAGGED),
	BIT_OF(CAPS, FI_ATOMIC), BIT_OF(CAPS, FI_READ), BIT_OF(CAPS, FI_WRITE),
	BIT_OF(CAPS, FI_RECV), BIT_OF(CAPS, FI_SEND),
	BIT_OF(CAPS, FI_REMOTE_READ), BIT_OF(CAPS, FI_REMOTE_WRITE),
	BIT_OF(CAPS, FI_MULTI_RECV), BIT_OF(CAPS, FI_FENCE),
	BIT_OF(CAPS, FI_LOCAL_COMM), BIT_OF(CAPS, FI_REMOTE_COMM),
	BIT_OF(CAPS, FI_RMA_EVENT), BIT_OF(CAPS, FI_SOURCE),
	BIT_OF(CAPS, FI_DIRECTED_RECV), BIT_OF(CAPS, FI_SOURCE_ERR),
	{ FI_TYPE_CAPS, 0, "" },
	{ FI_TYPE_CAPS, FI_MSG | FI_SEND, "FI_MSG, FI_SEND" },
	{ FI_TYPE_CAPS, FI_MSG | BIT_ULL(63) | BIT_ULL(62),
	  "FI_MSG, 0xc000000000000000" },
	{ FI_TYPE_CAPS, BIT_ULL(63), "0x8000000000000000" },
	BIT_OF(OP_FLAGS, FI_MULTI_RECV), BIT_OF(OP_FLAGS, FI_REMOTE_CQ_DATA),
	BIT_OF(OP_FLAGS, FI_MORE), BIT_OF(OP_FLAGS, FI_PEEK),
	BIT_OF(OP_FLAGS, FI_FENCE), BIT_OF(OP_FLAGS, FI_COMPLETION),
	BIT_OF(OP_FLAGS, FI_INJECT), BIT_OF(OP_FLAGS, FI_INJECT_COMPLETE),
	BIT_OF(OP_FLAGS, FI_TRANSMIT_COMPLETE),
	BIT_OF(OP_FLAGS, FI_DELIVERY_COMPLETE), BIT_OF(OP_FLAGS, FI_DISCARD),
	BIT_OF(OP_FLAGS, FI_CLAIM),
	ONE(ADDR_FORMAT, FI_FORMAT_UNSPEC), ONE(ADDR_FORMAT, FI_SOCKADDR),
	ONE(ADDR_FORMAT, FI_SOCKADDR_IN), ONE(ADDR_FORMAT, FI_SOCKADDR_IN6),
	ONE(ADDR_FORMAT, FI_ADDR_STR), ONE(ADDR_FORMAT, FI_ADDR_EFA),
	ONE(THREADING, FI_THREAD_UNSPEC), ONE(THREADING, FI_THREAD_SAFE),
	ONE(THREADING, FI_THREAD_FID), ONE(THREADING, FI_THREAD_DOMAIN),
	ONE(THREADING, FI_THREAD_COMPLETION), ONE(THREADING, FI_THREAD_ENDPOINT),
	ONE(PROGRESS, FI_PROGRESS_UNSPEC), ONE(PROGRESS, FI_PROGRESS_AUTO),
	ONE(PROGRESS, FI_PROGRESS_MANUAL),
	ONE(PROGRESS, FI_PROGRESS_CONTROL_UNIFIED),
	ONE(PROTOCOL, FI_PROTO_UNSPEC), ONE(PROTOCOL, FI_PROTO_EFA),
	ONE(PROTOCOL, FI_PROTO_KOFI_MSG),
	BIT_OF(MSG_ORDER, FI_ORDER_RAR), BIT_OF(MSG_ORDER, FI_ORDER_RAW),
	BIT_OF(MSG_ORDER, FI_ORDER_RAS), BIT_OF(MSG_ORDER, FI_ORDER_WAR),
	BIT_OF(MSG_ORDER, FI_ORDER_WAW), BIT_OF(MSG_ORDER, FI_ORDER_WAS),
	BIT_OF(MSG_ORDER, FI_ORDER_SAR), BIT_OF(MSG_ORDER, FI_ORDER_SAW),
	BIT_OF(MSG_ORDER, FI_ORDER_SAS),
	BIT_OF(MSG_ORDER, FI_ORDER_ATOMIC_RAR), BIT_OF(MSG_ORDER, FI_ORDER_ATOMIC_RAW),
	BIT_OF(MSG_ORDER, FI_ORDER_ATOMIC_WAR), BIT_OF(MSG_ORDER, FI_ORDER_ATOMIC_WAW),
	BIT_OF(MODE, FI_CONTEXT), BIT_OF(MODE, FI_MSG_PREFIX),
	BIT_OF(MODE, FI_RX_CQ_DATA), BIT_OF(MODE, FI_CONTEXT2),
	ONE(AV_TYPE, FI_AV_UNSPEC), ONE(AV_TYPE, FI_AV_MAP),
	ONE(AV_TYPE, FI_AV_TABLE),
	{ FI_TYPE_VERSION, FI_VERSION(2, 0), "2.0" },
	{ FI_TYPE_VERSION, FI_VERSION(65535, 65535), "65535.65535" },
	ONE(EQ_EVENT, FI_NOTIFY), ONE(EQ_EVENT, FI_DEVICE_REMOVED),
	ONE(EQ_EVENT, FI_DEVICE_ARRIVED), ONE(EQ_EVENT, FI_CONNREQ),
	ONE(EQ_EVENT, FI_CONNECTED), ONE(EQ_EVENT, FI_SHUTDOWN),
	BIT_OF(CQ_EVENT_FLAGS, FI_MSG), BIT_OF(CQ_EVENT_FLAGS, FI_RMA),
	BIT_OF(CQ_EVENT_FLAGS, FI_TAGGED), BIT_OF(CQ_EVENT_FLAGS, FI_ATOMIC),
	BIT_OF(CQ_EVENT_FLAGS, FI_READ), BIT_OF(CQ_EVENT_FLAGS, FI_WRITE),
	BIT_OF(CQ_EVENT_FLAGS, FI_RECV), BIT_OF(CQ_EVENT_FLAGS, FI_SEND),
	BIT_OF(CQ_EVENT_FLAGS, FI_REMOTE_READ),
	BIT_OF(CQ_EVENT_FLAGS, FI_REMOTE_WRITE),
	BIT_OF(CQ_EVENT_FLAGS, FI_MULTI_RECV),
	BIT_OF(CQ_EVENT_FLAGS, FI_REMOTE_CQ_DATA),
	BIT_OF(CQ_EVENT_FLAGS, FI_MORE), BIT_OF(CQ_EVENT_FLAGS, FI_CLAIM),
	BIT_OF(MR_MODE, FI_MR_LOCAL), BIT_OF(MR_MODE, FI_MR_RAW),
	BIT_OF(MR_MODE, FI_MR_VIRT_ADDR), BIT_OF(MR_MODE, FI_MR_ALLOCATED),
	BIT_OF(MR_MODE, FI_MR_PROV_KEY), BIT_OF(MR_MODE, FI_MR_RMA_EVENT),
	BIT_OF(MR_MODE, FI_MR_ENDPOINT),
	/* Only four bytes are read. */
	{ FI_TYPE_MR_MODE, BIT_ULL(40) | FI_MR_RAW, "FI_MR_RAW" },
	ONE(RESOURCE_MGMT, FI_RM_UNSPEC), ONE(RESOURCE_MGMT, FI_RM_DISABLED),
	ONE(RESOURCE_MGMT, FI_RM_ENABLED),
	ONE(ATOMIC_TYPE, FI_INT8), ONE(ATOMIC_TYPE, FI_UINT8), ONE(ATOMIC_TYPE, FI_INT16),
	ONE(ATOMIC_TYPE, FI_UINT16), ONE(ATOMIC_TYPE, FI_INT32), ONE(ATOMIC_TYPE, FI_UINT32),
	ONE(ATOMIC_TYPE, FI_INT64), ONE(ATOMIC_TYPE, FI_UINT64), ONE(ATOMIC_TYPE, FI_FLOAT),
	ONE(ATOMIC_TYPE, FI_DOUBLE), ONE(ATOMIC_TYPE, FI_FLOAT_COMPLEX),
	ONE(ATOMIC_TYPE, FI_DOUBLE_COMPLEX), ONE(ATOMIC_TYPE, FI_LONG_DOUBLE),
	ONE(ATOMIC_TYPE, FI_LONG_DOUBLE_COMPLEX), ONE(ATOMIC_TYPE, FI_INT128),
	ONE(ATOMIC_TYPE, FI_UINT128),
	ONE(ATOMIC_OP, FI_MIN), ONE(ATOMIC_OP, FI_MAX), ONE(ATOMIC_OP, FI_SUM),
	ONE(ATOMIC_OP, FI_PROD), ONE(ATOMIC_OP, FI_LOR), ONE(ATOMIC_OP, FI_LAND),
	ONE(ATOMIC_OP, FI_BOR), ONE(ATOMIC_OP, FI_BAND), ONE(ATOMIC_OP, FI_LXOR),
	ONE(ATOMIC_OP, FI_BXOR), ONE(ATOMIC_OP, FI_ATOMIC_READ),
	ONE(ATOMIC_OP, FI_ATOMIC_WRITE), ONE(ATOMIC_OP, FI_CSWAP),
	ONE(ATOMIC_OP, FI_CSWAP_NE), ONE(ATOMIC_OP, FI_CSWAP_LE),
	ONE(ATOMIC_OP, FI_CSWAP_LT), ONE(ATOMIC_OP, FI_CSWAP_GE),
	ONE(ATOMIC_OP, FI_CSWAP_GT), ONE(ATOMIC_OP, FI_MSWAP),
#undef ONE
#undef BIT_OF
};

static void named_values(struct kunit *test)
{
	char buf[64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		KUNIT_EXPECT_PTR_EQ(test, &buf[0],
				    fi_tostr_r(buf, sizeof(buf),
					       &words[i].value, words[i].type));
		KUNIT_EXPECT_STREQ(test, buf, words[i].text);
	}
}

/* Structures: a value in each field, and the expected lines. */
static struct fi_tx_attr tx = {
	.caps = FI_SEND, .mode = FI_CONTEXT, .op_flags = FI_INJECT,
	.msg_order = FI_ORDER_SAS, .comp_order = FI_ORDER_WAW,
	.inject_size = 101, .size = 102, .iov_limit = 103, .rma_iov_limit = 104,
};

static struct fi_rx_attr rx = {
	.caps = FI_RECV, .mode = FI_CONTEXT2, .op_flags = FI_MULTI_RECV,
	.msg_order = FI_ORDER_RAR, .comp_order = FI_ORDER_RAW,
	.size = 201, .iov_limit = 202,
};

static struct fi_ep_attr ep = {
	.type = FI_EP_RDM, .protocol = FI_PROTO_EFA, .protocol_version = 301,
	.max_msg_size = U64_MAX, .msg_prefix_size = 302,
	.max_order_raw_size = 303, .max_order_war_size = 304,
	.max_order_waw_size = 305, .mem_tag_format = 0xaaaa,
	.tx_ctx_cnt = 306, .rx_ctx_cnt = 307,
};

static struct fi_domain_attr domain = {
	.name = "100%s", .threading = FI_THREAD_SAFE,
	.control_progress = FI_PROGRESS_AUTO,
	.data_progress = FI_PROGRESS_MANUAL, .resource_mgmt = FI_RM_ENABLED,
	.av_type = FI_AV_TABLE, .mr_mode = FI_MR_PROV_KEY | FI_MR_LOCAL,
	.mr_key_size = 401, .cq_data_size = 402, .cq_cnt = 403, .ep_cnt = 404,
	.tx_ctx_cnt = 405, .rx_ctx_cnt = 406, .max_ep_tx_ctx = 407,
	.max_ep_rx_ctx = 408, .cntr_cnt = 409, .mr_iov_limit = 410,
	.caps = FI_LOCAL_COMM, .mode = FI_RX_CQ_DATA, .max_err_data = 411,
	.mr_cnt = 412, .numa_node = -1,
};

static struct fi_fabric_attr fabric = {
	.name = "the fabric", .prov_name = "the provider",
	.prov_version = FI_VERSION(5, 1), .api_version = FI_VERSION(5, 2),
};

static struct fid_nic nic = {
	.device_attr = {
		.name = "n", .device_id = "0xefa1", .device_version = "v",
		.vendor_id = "0x1d0f", .driver = "efa", .firmware = "f",
	},
	.link_attr = {
		.address = "fe80::1", .mtu = 601, .speed = 602, .up = true,
		.network_type = "EFA",
	},
	.left_attr = { .queue_pairs = 603, .regions = 604, .address_handles = 605 },
};

static u8 address[] = { 0x00, 0x01, 0xfe, 0xff };

static struct fi_info info = {
	.caps = FI_MSG, .mode = FI_MSG_PREFIX, .addr_format = FI_ADDR_EFA,
	.src_addrlen = 4, .dest_addrlen = 3,
	.src_addr = address, .dest_addr = address,
	.tx_attr = &tx, .rx_attr = &rx, .ep_attr = &ep,
	.domain_attr = &domain, .fabric_attr = &fabric, .nic = &nic,
};

static struct fid fid = { .fclass = FI_CLASS_CNTR };

#define TX_LINES							\
	"fi_tx_attr:", "caps: [ FI_SEND ]", "mode: [ FI_CONTEXT ]",	\
	"op_flags: [ FI_INJECT ]", "msg_order: [ FI_ORDER_SAS ]",	\
	"comp_order: [ FI_ORDER_WAW ]", "inject_size: 101",		\
	"size: 102", "iov_limit: 103", "rma_iov_limit: 104"
#define RX_LINES							\
	"fi_rx_attr:", "caps: [ FI_RECV ]", "mode: [ FI_CONTEXT2 ]",	\
	"op_flags: [ FI_MULTI_RECV ]", "msg_order: [ FI_ORDER_RAR ]",	\
	"comp_order: [ FI_ORDER_RAW ]", "size: 201", "iov_limit: 202"
#define EP_LINES							\
	"fi_ep_attr:", "type: FI_EP_RDM", "protocol: FI_PROTO_EFA",	\
	"protocol_version: 301", "max_msg_size: 18446744073709551615",	\
	"msg_prefix_size: 302", "max_order_raw_size: 303",		\
	"max_order_war_size: 304", "max_order_waw_size: 305",		\
	"mem_tag_format: 0x000000000000aaaa", "tx_ctx_cnt: 306",	\
	"rx_ctx_cnt: 307"
#define DOMAIN_LINES							\
	"fi_domain_attr:", "name: 100%s", "threading: FI_THREAD_SAFE",	\
	"control_progress: FI_PROGRESS_AUTO",				\
	"data_progress: FI_PROGRESS_MANUAL",				\
	"resource_mgmt: FI_RM_ENABLED", "av_type: FI_AV_TABLE",		\
	"mr_mode: [ FI_MR_LOCAL, FI_MR_PROV_KEY ]",			\
	"mr_key_size: 401", "cq_data_size: 402", "cq_cnt: 403",		\
	"ep_cnt: 404", "tx_ctx_cnt: 405", "rx_ctx_cnt: 406",		\
	"max_ep_tx_ctx: 407", "max_ep_rx_ctx: 408", "cntr_cnt: 409",	\
	"mr_iov_limit: 410", "caps: [ FI_LOCAL_COMM ]",			\
	"mode: [ FI_RX_CQ_DATA ]", "max_err_data: 411", "mr_cnt: 412",	\
	"numa_node: -1"
#define FABRIC_LINES							\
	"fi_fabric_attr:", "name: the fabric",				\
	"prov_name: the provider", "prov_version: 5.1", "api_version: 5.2"
#define NIC_LINES							\
	"nic:", "fi_device_attr:", "name: n", "device_id: 0xefa1",	\
	"device_version: v", "vendor_id: 0x1d0f", "driver: efa",	\
	"firmware: f", "fi_link_attr:", "address: fe80::1", "mtu: 601",	\
	"speed: 602", "up: FI_LINK_UP", "network_type: EFA",		\
	"fi_left_attr:", "queue_pairs: 603", "regions: 604",		\
	"address_handles: 605"

static const struct structure {
	const char *desc;
	enum fi_type type;
	const void *data;
	const char *lines[120];
} structures[] = {
	{ "tx_attr", FI_TYPE_TX_ATTR, &tx, { TX_LINES } },
	{ "rx_attr", FI_TYPE_RX_ATTR, &rx, { RX_LINES } },
	{ "ep_attr", FI_TYPE_EP_ATTR, &ep, { EP_LINES } },
	{ "domain_attr", FI_TYPE_DOMAIN_ATTR, &domain, { DOMAIN_LINES } },
	{ "fabric_attr", FI_TYPE_FABRIC_ATTR, &fabric, { FABRIC_LINES } },
	{ "nic", FI_TYPE_NIC, &nic, { NIC_LINES } },
	{ "info", FI_TYPE_INFO, &info, {
		"fi_info:", "caps: [ FI_MSG ]", "mode: [ FI_MSG_PREFIX ]",
		"addr_format: FI_ADDR_EFA", "src_addrlen: 4", "dest_addrlen: 3",
		"src_addr: 0001feff", "dest_addr: 0001fe",
		TX_LINES, RX_LINES, EP_LINES, DOMAIN_LINES, FABRIC_LINES,
		NIC_LINES } },
	{ "fid", FI_TYPE_FID, &fid, { "cntr 0" } },
};

KUNIT_ARRAY_PARAM_DESC(structure, structures, desc);

/* The text has exactly the expected lines, in order. */
static void structure(struct kunit *test)
{
	const struct structure *param = test->param_value;
	const char * const *want;
	char *text, *rest, *line;

	text = fi_tostr(param->data, param->type);
	KUNIT_ASSERT_NOT_NULL(test, text);
	rest = text;
	for (want = param->lines; *want; want++) {
		line = strsep(&rest, "\n");
		KUNIT_EXPECT_NOT_NULL(test, line);
		if (!line)
			break;
		KUNIT_EXPECT_STREQ(test, strim(line), *want);
	}
	KUNIT_EXPECT_TRUE(test, !rest || !*rest);
	kfree(text);
}

static void each_type_tested(struct kunit *test)
{
	u64 seen = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		seen |= BIT_ULL(words[i].type);
	for (i = 0; i < ARRAY_SIZE(structures); i++)
		seen |= BIT_ULL(structures[i].type);
	KUNIT_EXPECT_EQ(test, seen, GENMASK_ULL(FI_TYPE_MAX - 1, 0));
}

/* Buffers of each size from 0 to more than needed. */
static void expect_cut(struct kunit *test, const void *data, enum fi_type type,
		       const char *whole, char *room, size_t len)
{
	char *buf = room + 8;
	size_t text = len ? min(strlen(whole), len - 1) : 0;

	memset(room, CANARY, strlen(whole) + 32);
	KUNIT_EXPECT_PTR_EQ(test, fi_tostr_r(buf, len, data, type),
			    len ? buf : NULL);
	if (len) {
		KUNIT_EXPECT_EQ_MSG(test, strnlen(buf, len), text, "of %zu",
				    len);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(buf, whole, text), 0,
				    "of %zu", len);
	}
	KUNIT_EXPECT_NULL_MSG(test, memchr_inv(room, CANARY, 8), "of %zu", len);
	KUNIT_EXPECT_NULL_MSG(test, memchr_inv(buf + len, CANARY, 8),
			      "of %zu", len);
}

static void expect_cuts(struct kunit *test, const void *data, enum fi_type type)
{
	char *whole = fi_tostr(data, type), *room;
	size_t len;

	KUNIT_ASSERT_NOT_NULL(test, whole);
	room = kmalloc(strlen(whole) + 32, GFP_KERNEL);
	if (room)
		for (len = 0; len < strlen(whole) + 3; len++)
			expect_cut(test, data, type, whole, room, len);
	KUNIT_EXPECT_NOT_NULL(test, room);
	kfree(room);
	kfree(whole);
}

static void cut_values(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!i || words[i].type != words[i - 1].type)
			expect_cuts(test, &words[i].value, words[i].type);
}

static void cut_structure(struct kunit *test)
{
	const struct structure *param = test->param_value;

	expect_cuts(test, param->data, param->type);
}

static void nonsense(struct kunit *test)
{
	u64 value = FI_MSG;
	char buf[8] = "before";

	KUNIT_EXPECT_NULL(test, fi_tostr_r(NULL, 8, &value, FI_TYPE_CAPS));
	KUNIT_EXPECT_NULL(test, fi_tostr_r(buf, 0, &value, FI_TYPE_CAPS));
	KUNIT_EXPECT_NULL(test, fi_tostr_r(buf, 8, NULL, FI_TYPE_CAPS));
	KUNIT_EXPECT_NULL(test, fi_tostr_r(buf, 8, &value, FI_TYPE_MAX));
	KUNIT_EXPECT_NULL(test, fi_tostr_r(buf, 8, &value, (enum fi_type)-1));
	KUNIT_EXPECT_STREQ(test, buf, "before");
	KUNIT_EXPECT_NULL(test, fi_tostr(NULL, FI_TYPE_CAPS));
	KUNIT_EXPECT_NULL(test, fi_tostr(&value, FI_TYPE_MAX));
}

/* Missing attributes are marked as such, or left out. */
static void missing(struct kunit *test)
{
	struct fi_info bare = { .src_addrlen = 5, .dest_addr = address };
	struct fi_fabric_attr nameless = {};
	struct fid unknown = { .fclass = 99 };
	char *text;

	text = fi_tostr(&bare, FI_TYPE_INFO);
	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "    src_addr: (null)\n"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "    dest_addr: (null)\n"));
	KUNIT_EXPECT_NULL(test, strstr(text, "_attr:"));
	KUNIT_EXPECT_NULL(test, strstr(text, "nic:"));
	kfree(text);

	bare.fabric_attr = &nameless;
	text = fi_tostr(&bare, FI_TYPE_INFO);
	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "prov_name: (null)\n"));
	kfree(text);

	text = fi_tostr(&unknown, FI_TYPE_FID);
	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_EXPECT_STREQ(test, text, "? 0");
	kfree(text);
}

struct big {
	struct fi_info info;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;
	struct fid_nic nic;
	u8 addr[64];
	char name[FI_NAME_MAX];
};

static struct big *new_big(struct kunit *test)
{
	struct big *big = kunit_kmalloc(test, sizeof(*big), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, big);
	memset(big, 0xff, sizeof(*big));
	memset(big->name, 'n', sizeof(big->name) - 1);
	big->name[FI_NAME_MAX - 1] = '\0';
	big->info.src_addr = big->addr;
	big->info.dest_addr = big->addr;
	big->info.tx_attr = &big->tx;
	big->info.rx_attr = &big->rx;
	big->info.ep_attr = &big->ep;
	big->info.domain_attr = &big->domain;
	big->info.fabric_attr = &big->fabric;
	big->info.nic = &big->nic;
	big->domain.name = big->name;
	big->fabric.name = big->name;
	big->fabric.prov_name = big->name;
	big->nic.device_attr.name = big->name;
	big->nic.device_attr.device_id = big->name;
	big->nic.device_attr.device_version = big->name;
	big->nic.device_attr.vendor_id = big->name;
	big->nic.device_attr.driver = big->name;
	big->nic.device_attr.firmware = big->name;
	big->nic.link_attr.address = big->name;
	big->nic.link_attr.up = false;
	big->nic.link_attr.network_type = big->name;
	return big;
}

/* The largest possible entry is printed completely. */
static void largest(struct kunit *test)
{
	struct big *big = new_big(test);
	char *text, *room;

	room = kunit_kzalloc(test, ROOM, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, room);
	fi_tostr_r(room, ROOM, &big->info, FI_TYPE_INFO);
	text = fi_tostr(&big->info, FI_TYPE_INFO);
	KUNIT_ASSERT_NOT_NULL(test, text);
	kunit_info(test, "%zu bytes\n", strlen(text));
	KUNIT_EXPECT_EQ(test, strlen(text), strlen(room));
	KUNIT_EXPECT_STREQ(test, text, room);
	kfree(text);
}

static void open_object(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct kofi_fake_set set;
	char *text;

	kofi_fake_open_all(test, fake, &set);
#define EXPECT_CLASS(obj, class)					\
do {									\
	text = fi_tostr(&(obj)->fid, FI_TYPE_FID);			\
	KUNIT_ASSERT_NOT_NULL(test, text);				\
	KUNIT_EXPECT_TRUE_MSG(test, strstarts(text, class " "),		\
			      class ": %s", text);			\
	KUNIT_EXPECT_STRNEQ(test, text, class " 0");			\
	kfree(text);							\
} while (0)
	EXPECT_CLASS(set.fabric, "fabric");
	EXPECT_CLASS(set.eq, "eq");
	EXPECT_CLASS(set.domain, "domain");
	EXPECT_CLASS(set.av, "av");
	EXPECT_CLASS(set.cq, "cq");
	EXPECT_CLASS(set.cntr, "cntr");
	EXPECT_CLASS(set.ep, "ep");
	EXPECT_CLASS(set.mr, "mr");
#undef EXPECT_CLASS
}

static struct kunit_case tostr_cases[] = {
	KUNIT_CASE(named_values),
	KUNIT_CASE_PARAM(structure, structure_gen_params),
	KUNIT_CASE(each_type_tested),
	KUNIT_CASE(cut_values),
	KUNIT_CASE_PARAM(cut_structure, structure_gen_params),
	KUNIT_CASE(nonsense),
	KUNIT_CASE(missing),
	KUNIT_CASE(largest),
	KUNIT_CASE(open_object),
	{}
};

static struct kunit_suite tostr_suite = {
	.name = "kofi_tostr",
	.test_cases = tostr_cases,
};

kunit_test_suite(tostr_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's fi_tostr()");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
