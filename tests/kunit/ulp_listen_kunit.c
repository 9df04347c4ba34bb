// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Half-open connections that a listener of kofi_ulp shuts down. They have no sockets here. */
#include "../../ulp/lib/listen.c"
#include <kunit/test.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#define PEERS	4

static struct kulp_listener listener;

static struct kulp_conn *connect(struct kunit *test, u64 peer)
{
	struct kulp_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	kulp_net_init(&conn->net);
	conn->peer = peer;
	kulp_conn_admit(&listener, conn);
	return conn;
}

/* Silent connections from a few addresses don't keep other addresses out. */
static void silent_addresses(struct kunit *test)
{
	struct kulp_conn *silent[PEERS][KULP_HALF_OPEN / PEERS];
	struct kulp_conn *honest[3], *conn;
	unsigned int i, j, stopped = 0;

	for (j = 0; j < KULP_HALF_OPEN / PEERS; j++)
		for (i = 0; i < PEERS; i++)
			silent[i][j] = connect(test, 10 + i);
	for (i = 0; i < ARRAY_SIZE(honest); i++)
		honest[i] = connect(test, 99);
	for (j = 0; j < 1000; j++) {
		conn = connect(test, 10 + j % PEERS);
		KUNIT_EXPECT_FALSE(test, conn->net.shut);
	}
	for (i = 0; i < ARRAY_SIZE(honest); i++)
		KUNIT_EXPECT_FALSE(test, honest[i]->net.shut);
	for (i = 0; i < PEERS; i++)
		for (j = 0; j < KULP_HALF_OPEN / PEERS; j++)
			stopped += silent[i][j]->net.shut;
	KUNIT_EXPECT_EQ(test, stopped, (unsigned int)KULP_HALF_OPEN);
}

/* If all addresses differ, the oldest connection is closed. */
static void many_addresses(struct kunit *test)
{
	struct kulp_conn *first = connect(test, 1000), *second, *conn;
	unsigned int i;

	second = connect(test, 1001);
	for (i = 0; i < KULP_HALF_OPEN - 2; i++)
		connect(test, 2000 + i);
	KUNIT_EXPECT_FALSE(test, first->net.shut);
	conn = connect(test, 3000);
	KUNIT_EXPECT_TRUE(test, first->net.shut);
	KUNIT_EXPECT_FALSE(test, second->net.shut);
	KUNIT_EXPECT_FALSE(test, conn->net.shut);
	/* A proof that the first peer has sent meanwhile comes too late. */
	KUNIT_EXPECT_FALSE(test, kulp_conn_settled(&listener, first));
	KUNIT_EXPECT_TRUE(test, kulp_conn_settled(&listener, second));
}

/* A peer that has proved who it is doesn't count, nor does one that has left. */
static void settled(struct kunit *test)
{
	struct kulp_conn *proven = connect(test, 1), *gone = connect(test, 1);
	unsigned int i;

	kulp_conn_settled(&listener, proven);
	kulp_conn_settled(&listener, gone);
	kulp_conn_settled(&listener, gone);
	for (i = 0; i < 2 * KULP_HALF_OPEN; i++)
		connect(test, 1);
	KUNIT_EXPECT_FALSE(test, proven->net.shut);
	KUNIT_EXPECT_FALSE(test, gone->net.shut);
}

static int listen_init(struct kunit *test)
{
	kulp_listener_init(&listener);
	return 0;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(silent_addresses),
	KUNIT_CASE(many_addresses),
	KUNIT_CASE(settled),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_ulp_listen",
	.init		= listen_init,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofi_ulp's listeners");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_ULP);
