// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Why an entry of fi_getinfo() doesn't match: the field that is named, and both values as text.
 * With a copy of the core's files, because the log and the trace have what they return.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/string.h>

#include "../../kofi/hints.c"
#include "../../kofi/tostr.c"
#include "../../kofi/attr.c"

/* Only fi_tostr() of an object calls it. */
const char *kofi_class_name(enum fi_class fclass)
{
	return "";
}

struct scene {
	struct fi_info		*info;
	struct fi_info		*hints;
	struct kofi_mismatch	why;
};

static void put_caps(struct scene *s)
{
	s->info->caps = FI_MSG | FI_RMA;
	s->hints->caps = FI_MSG | FI_ATOMIC;
}

static void put_mode(struct scene *s)
{
	s->info->mode = FI_RX_CQ_DATA;
}

static void put_addr_format(struct scene *s)
{
	s->info->addr_format = FI_ADDR_EFA;
	s->hints->addr_format = FI_SOCKADDR;
}

static void put_fabric(struct scene *s)
{
	s->info->fabric_attr->name = "efa-direct";
	s->hints->fabric_attr->name = "nonsense";
}

static void put_domain(struct scene *s)
{
	s->hints->domain_attr->name = "efa_0";
}

static void put_long_name(struct scene *s)
{
	static char name[2 * KOFI_VALUE_SIZE];

	memset(name, 'x', sizeof(name) - 1);
	s->hints->domain_attr->name = name;
}

static void put_av_type(struct scene *s)
{
	s->info->domain_attr->av_type = FI_AV_MAP;
	s->hints->domain_attr->av_type = FI_AV_TABLE;
}

static void put_mr_mode(struct scene *s)
{
	s->hints->caps = FI_RMA;
	s->info->caps = FI_RMA;
	s->info->domain_attr->mr_mode = FI_MR_PROV_KEY;
	s->hints->domain_attr->mr_mode = FI_MR_LOCAL;
}

static void put_domain_mode(struct scene *s)
{
	s->info->domain_attr->mode = FI_CONTEXT;
	s->hints->domain_attr->mode = FI_CONTEXT2;
}

static void put_ctx_cnt(struct scene *s)
{
	s->info->domain_attr->max_ep_tx_ctx = 1;
	s->hints->ep_attr->tx_ctx_cnt = 2;
}

static void put_tag_format(struct scene *s)
{
	s->hints->caps = FI_TAGGED;
	s->info->caps = FI_TAGGED;
	s->info->ep_attr->mem_tag_format = 0xff;
	s->hints->ep_attr->mem_tag_format = 0x1ff;
}

static void put_ep_type(struct scene *s)
{
	s->info->ep_attr->type = FI_EP_RDM;
	s->hints->ep_attr->type = FI_EP_DGRAM;
}

static void put_tx_caps(struct scene *s)
{
	s->hints->tx_attr->caps = FI_SEND;
}

static void put_tx_size(struct scene *s)
{
	s->info->tx_attr->size = 256;
	s->hints->tx_attr->size = 257;
}

static void put_rx_mode(struct scene *s)
{
	s->info->rx_attr->mode = FI_RX_CQ_DATA;
}

static const struct row {
	void (*put)(struct scene *s);
	const char *field;
	const char *offer;
	const char *hint;
} rows[] = {
	{ put_caps, "fi_info.caps", "[ FI_MSG, FI_RMA ]", "[ FI_MSG, FI_ATOMIC ]" },
	{ put_mode, "fi_info.mode", "[ FI_RX_CQ_DATA ]", "[ ]" },
	{ put_addr_format, "fi_info.addr_format", "FI_ADDR_EFA", "FI_SOCKADDR" },
	{ put_fabric, "fi_fabric_attr.name", "efa-direct", "nonsense" },
	{ put_domain, "fi_domain_attr.name", "(null)", "efa_0" },
	{ put_long_name, "fi_domain_attr.name", "(null)", NULL },
	{ put_av_type, "fi_domain_attr.av_type", "FI_AV_MAP", "FI_AV_TABLE" },
	{ put_mr_mode, "fi_domain_attr.mr_mode", "[ FI_MR_PROV_KEY ]", "[ FI_MR_LOCAL ]" },
	{ put_domain_mode, "fi_domain_attr.mode", "[ FI_CONTEXT ]", "[ FI_CONTEXT2 ]" },
	{ put_ctx_cnt, "fi_ep_attr.tx_ctx_cnt", "1", "2" },
	{ put_tag_format, "fi_ep_attr.mem_tag_format", "0x00000000000000ff",
	  "0x00000000000001ff" },
	{ put_ep_type, "fi_ep_attr.type", "FI_EP_RDM", "FI_EP_DGRAM" },
	{ put_tx_caps, "fi_tx_attr.caps", "[ ]", "[ FI_SEND ]" },
	{ put_tx_size, "fi_tx_attr.size", "256", "257" },
	{ put_rx_mode, "fi_rx_attr.mode", "[ FI_RX_CQ_DATA ]", "[ ]" },
};

static struct fi_info *why_info(struct kunit *test)
{
	struct fi_info *info = kunit_kzalloc(test, sizeof(*info), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, info);
#define ATTR(a) info->a = kunit_kzalloc(test, sizeof(*info->a), GFP_KERNEL)
	ATTR(tx_attr);
	ATTR(rx_attr);
	ATTR(ep_attr);
	ATTR(domain_attr);
	ATTR(fabric_attr);
#undef ATTR
	KUNIT_ASSERT_TRUE(test, info->tx_attr && info->rx_attr && info->ep_attr &&
			  info->domain_attr && info->fabric_attr);
	return info;
}

static void names_field_and_values(struct kunit *test)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	const struct row *row;
	char field[64];

	KUNIT_ASSERT_NOT_NULL(test, s);
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		s->info = why_info(test);
		s->hints = why_info(test);
		KUNIT_EXPECT_TRUE(test, kofi_info_serves(s->info, s->hints, &s->why));
		row->put(s);
		KUNIT_EXPECT_FALSE(test, kofi_info_serves(s->info, s->hints, &s->why));
		snprintf(field, sizeof(field), "%s.%s", s->why.type, s->why.field);
		KUNIT_EXPECT_STREQ(test, field, row->field);
		KUNIT_EXPECT_STREQ(test, s->why.offer, row->offer);
		if (row->hint)
			KUNIT_EXPECT_STREQ(test, s->why.hint, row->hint);
		else
			KUNIT_EXPECT_EQ(test, strlen(s->why.hint), KOFI_VALUE_SIZE - 1);
	}
}

static void no_hints(struct kunit *test)
{
	struct kofi_mismatch why;

	KUNIT_EXPECT_TRUE(test, kofi_info_serves(why_info(test), NULL, &why));
}

static struct kunit_case why_cases[] = {
	KUNIT_CASE(names_field_and_values),
	KUNIT_CASE(no_hints),
	{}
};

static struct kunit_suite why_suite = {
	.name		= "kofi_why",
	.test_cases	= why_cases,
};

kunit_test_suite(why_suite);

MODULE_DESCRIPTION("KUnit tests of the reasons why kOFI's entries don't match");
MODULE_LICENSE("Dual BSD/GPL");
