// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kofi_cm's sockets, when they are closed. */
#include <linux/in.h>
#include <linux/net.h>
#include <linux/module.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <kunit/test.h>

static struct scene {
	struct kcm_session	*s;
	unsigned int		unuses;
	unsigned int		releases;
	bool			held;		/* the socket held its namespace then */
} *scene;

static void scene_release(struct socket *sock)
{
	scene->releases++;
	scene->held = sock->sk->sk_net_refcnt;
	sock_release(sock);
}

#define sock_release scene_release
#include "../../cm/sock.c"
#undef sock_release

struct workqueue_struct *kcm_wq;

void kcm_kick(struct kcm_session *s)
{
}

int kcm_net_use(struct net *net)
{
	return 0;
}

void kcm_net_unuse(struct net *net)
{
	scene->unuses++;
}

/* TCP sends the last bytes again if they are lost, which it does only for a socket of a user. */
static void closed(struct kunit *test)
{
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, kcm_sock_create(&init_net, AF_INET, &sock), 0);
	kcm_sock_set_up(scene->s, sock);
	KUNIT_EXPECT_FALSE(test, sock->sk->sk_net_refcnt);
	kcm_sock_close(scene->s);
	KUNIT_EXPECT_EQ(test, scene->releases, 1U);
	KUNIT_EXPECT_TRUE(test, scene->held);
	KUNIT_EXPECT_EQ(test, scene->unuses, 1U);
	KUNIT_EXPECT_NULL(test, scene->s->sock.sock);
}

static int sock_init(struct kunit *test)
{
	scene = kunit_kzalloc(test, sizeof(*scene), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene);
	scene->s = kunit_kzalloc(test, sizeof(*scene->s), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, scene->s);
	return 0;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(closed),
	{}
};

static struct kunit_suite suite = {
	.name		= "kofi_cm_sock",
	.init		= sock_init,
	.test_cases	= cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of kofi_cm's sockets");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_ULP);
