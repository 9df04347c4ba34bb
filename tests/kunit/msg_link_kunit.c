// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which connections share a link: secrets, network namespaces. */
#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/in.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <net/net_namespace.h>
#include <net/route.h>
#include "msg_test.h"

#define CTX(n)	((void *)(unsigned long)(n))

/* Three secrets of 32 bytes, and one of 128. */
#define DIGITS	"0123456789abcdef0123456789ABCDEF"

static const char secret_a[] = DIGITS DIGITS;
static const char secret_b[] = DIGITS "fedcba98765432100123456789abcdef";
static const char secret_c[] = DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS DIGITS;

static int set_secret(struct fid *fid, int which, const char *secret)
{
	return fi_setopt(fid, FI_OPT_ENDPOINT, which, secret, strlen(secret) + 1);
}

/* Have the server accept one or two secrets, "" for none. */
static void serve(struct kunit *test, struct msg_scene *s, const char *secret, const char *old)
{
	KUNIT_EXPECT_EQ(test, set_secret(&s->pep->fid, FI_OPT_CM_SECRET, secret), 0);
	KUNIT_EXPECT_EQ(test, set_secret(&s->pep->fid, FI_OPT_CM_SECRET_OLD, old), 0);
}

/* Request a connection with a secret, "" for none. */
static struct fid_ep *ask(struct kunit *test, struct msg_scene *s, const char *secret)
{
	struct fid_ep *ep = msg_ep(test, s, s->info, &s->client);

	if (*secret)
		KUNIT_EXPECT_EQ(test, set_secret(&ep->fid, FI_OPT_CM_SECRET, secret), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), 0);
	return ep;
}

/* The server gets no request, and the client an error. */
static void expect_denied(struct kunit *test, struct msg_scene *s, const char *secret)
{
	struct fid_ep *ep = ask(test, s, secret);

	MSG_FAILS(s->client.eq, EACCES, ep);
	msg_quiet(test, s->eq);
	MSG_CLOSE(ep);
}

/**
 * struct two - both ends of a connection
 * @client: the client's end
 * @server: the server's
 * @port: the client's TCP port, the same for connections of one link
 */
struct two {
	struct fid_ep	*client;
	struct fid_ep	*server;
	__be16		port;
};

static struct two join(struct kunit *test, struct msg_scene *s, const char *secret)
{
	struct two two = { .client = ask(test, s, secret) };
	struct msg_event event = msg_next(test, s->eq);
	struct sockaddr_in name = {};
	size_t len = sizeof(name);

	KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
	two.server = msg_ep(test, s, event.info, &s->server);
	fi_freeinfo(event.info);
	KUNIT_EXPECT_EQ(test, fi_accept(two.server, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, two.client);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, two.server);
	KUNIT_EXPECT_EQ(test, fi_getname(&two.client->fid, &name, &len), 0);
	two.port = name.sin_port;
	return two;
}

static void talk(struct kunit *test, struct msg_scene *s, const struct two *two)
{
	KUNIT_EXPECT_EQ(test, fi_recv(two->server, s->server.buf, 8, NULL, 0, CTX(1)), 0);
	MSG_SEND(two->client, s->client.buf, 8, 2);
	MSG_DONE(&s->client, 2, 0);
	MSG_DONE(&s->server, 1, 0);
}

static void part(struct two *two)
{
	MSG_CLOSE(two->client);
	MSG_CLOSE(two->server);
}

/* --- secrets --- */

/* Both sides have the same secret, of any permitted length, or none has any. */
static void secrets(struct kunit *test)
{
	static const char * const all[] = { "", secret_a, secret_b, secret_c };
	struct msg_scene *s = msg_scene(test);
	struct two two;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		serve(test, s, all[i], "");
		for (j = 0; j < ARRAY_SIZE(all); j++) {
			if (i != j) {
				/* Links of earlier rounds may still be there. */
				if (i)
					expect_denied(test, s, all[j]);
				continue;
			}
			two = join(test, s, all[j]);
			talk(test, s, &two);
			part(&two);
		}
	}
}

/* A client with a secret doesn't connect to whoever listens. */
static void secret_of_client(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);

	expect_denied(test, s, secret_a);
}

/* A server accepts two, and later only the new one, also from peers that it knows. */
static void secret_changes(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct two a, b;

	serve(test, s, secret_a, "");
	a = join(test, s, secret_a);
	serve(test, s, secret_b, secret_a);
	b = join(test, s, secret_b);
	KUNIT_EXPECT_NE(test, a.port, b.port);
	expect_denied(test, s, secret_c);
	expect_denied(test, s, "");
	serve(test, s, secret_b, "");
	/* Over the link that is there. */
	expect_denied(test, s, secret_a);
	talk(test, s, &a);
	talk(test, s, &b);
	part(&a);
	a = join(test, s, secret_b);
	KUNIT_EXPECT_EQ(test, a.port, b.port);
	part(&a);
	part(&b);
}

/* A link is for connections with one secret, or without any. */
static void secret_links(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct two open[2], a[2], b;

	open[0] = join(test, s, "");
	open[1] = join(test, s, "");
	KUNIT_EXPECT_EQ(test, open[0].port, open[1].port);
	serve(test, s, secret_a, secret_b);
	/* The peer has proved nothing, although it has a link. */
	expect_denied(test, s, "");
	a[0] = join(test, s, secret_a);
	a[1] = join(test, s, secret_a);
	b = join(test, s, secret_b);
	KUNIT_EXPECT_EQ(test, a[0].port, a[1].port);
	KUNIT_EXPECT_NE(test, a[0].port, open[0].port);
	KUNIT_EXPECT_NE(test, a[0].port, b.port);
	KUNIT_EXPECT_NE(test, b.port, open[0].port);
	/* Connections that were made before go on. */
	talk(test, s, &open[1]);
	talk(test, s, &a[1]);
	part(&open[0]);
	part(&open[1]);
	part(&a[0]);
	part(&a[1]);
	part(&b);
}

/* Another passive endpoint takes the address over, with its own secret. */
static void secret_of_successor(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct two two;

	two = join(test, s, "");
	MSG_CLOSE(s->pep);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->fabric, s->info, &s->pep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(s->pep, &s->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_setname(&s->pep->fid, &s->addr, sizeof(struct sockaddr_in)), 0);
	serve(test, s, "", secret_a);
	KUNIT_EXPECT_EQ(test, fi_listen(s->pep), 0);
	expect_denied(test, s, "");
	talk(test, s, &two);
	part(&two);
	two = join(test, s, secret_a);
	part(&two);
}

static int set_text(struct fid *fid, const char *text, size_t len)
{
	return fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_SECRET, text, len);
}

/* A text that isn't a secret is refused, and the earlier secret stays. */
static void bad_secrets(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid *pep = &s->pep->fid;
	const size_t len = strlen(secret_a);
	static char text[sizeof(secret_c) + 2];
	struct fid_ep *ep = msg_ep(test, s, s->info, &s->client);
	struct fi_info *info;
	size_t n = sizeof(text);

	serve(test, s, secret_a, "");
	KUNIT_EXPECT_EQ(test, set_text(pep, secret_a, len - 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, set_text(pep, secret_a, len - 2), -EINVAL);
	memset(text, '1', sizeof(text));
	KUNIT_EXPECT_EQ(test, set_text(pep, text, sizeof(text)), -EINVAL);
	KUNIT_EXPECT_EQ(test, set_text(pep, text, sizeof(secret_c) + 1), -EINVAL);
	text[len] = 0;
	KUNIT_EXPECT_EQ(test, set_text(pep, text, len + 2), -EINVAL);
	text[7] = 'x';
	KUNIT_EXPECT_EQ(test, set_text(pep, text, len), -EINVAL);
	KUNIT_EXPECT_EQ(test, set_text(pep, NULL, len), -EINVAL);
	KUNIT_EXPECT_EQ(test, set_text(pep, text, 0), -EINVAL);
	/* Nobody can read it. */
	KUNIT_EXPECT_EQ(test, fi_getopt(pep, FI_OPT_ENDPOINT, FI_OPT_CM_SECRET, text, &n),
			-ENOPROTOOPT);
	KUNIT_EXPECT_EQ(test, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_SECRET, text, &n),
			-ENOPROTOOPT);
	/* An active side has one. */
	KUNIT_EXPECT_EQ(test, set_secret(&ep->fid, FI_OPT_CM_SECRET_OLD, secret_a), -ENOPROTOOPT);
	KUNIT_EXPECT_EQ(test, set_text(&ep->fid, secret_a, len), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, set_secret(&ep->fid, FI_OPT_CM_SECRET, secret_b), -FI_EOPBADSTATE);
	s->client.ep = ep;
	info = msg_next(test, s->eq).info;
	KUNIT_ASSERT_NOT_NULL(test, info);
	s->server.ep = msg_ep(test, s, info, &s->server);
	fi_freeinfo(info);
	KUNIT_EXPECT_EQ(test, set_secret(&s->server.ep->fid, FI_OPT_CM_SECRET, secret_a),
			-FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_accept(s->server.ep, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, s->client.ep);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, s->server.ep);
}

/* --- network namespaces --- */

/**
 * struct space - a network namespace, which a process keeps alive
 * @pid: the process
 * @net: the namespace, with a reference
 */
struct space {
	pid_t		pid;
	struct net	*net;
};

static int space_begin(struct subprocess_info *info, struct cred *new)
{
	*(pid_t *)info->data = task_pid_nr(current);
	return 0;
}

/* Have the namespace go. */
static void space_end(void *data)
{
	struct space *space = data;

	rcu_read_lock();
	if (space->pid)
		kill_pid(find_vpid(space->pid), SIGKILL, 1);
	rcu_read_unlock();
	if (space->net)
		put_net(space->net);
	space->pid = 0;
	space->net = NULL;
}

static bool space_found(struct space *space)
{
	struct net *net = get_net_ns_by_pid(space->pid);

	if (IS_ERR(net))
		return false;
	if (net_eq(net, &init_net) || inet_addr_type(net, htonl(INADDR_LOOPBACK)) != RTN_LOCAL) {
		put_net(net);
		return false;
	}
	space->net = net;
	return true;
}

/* A namespace with a loopback device. */
static struct space *space_new(struct kunit *test)
{
	char *argv[6] = {}, *envp[1] = {};
	struct space *space = kunit_kzalloc(test, sizeof(*space), GFP_KERNEL);
	struct subprocess_info *info;

	KUNIT_ASSERT_NOT_NULL(test, space);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, space_end, space), 0);
	argv[0] = "/bin/unshare";
	argv[1] = "-n";
	argv[2] = "/bin/sh";
	argv[3] = "-c";
	argv[4] = "/bin/ip link set lo up; exec /bin/sleep 1000";
	info = call_usermodehelper_setup(argv[0], argv, envp, GFP_KERNEL, space_begin, NULL,
					 &space->pid);
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_ASSERT_EQ(test, call_usermodehelper_exec(info, UMH_WAIT_EXEC), 0);
	KUNIT_ASSERT_TRUE(test, kofi_soon(space_found(space)));
	return space;
}

static int set_net(struct fid *fid, struct net *net)
{
	return fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_NET, &net, sizeof(net));
}

/* Close the server of the scene, and open another one at its address in a namespace. */
static void move_server(struct kunit *test, struct msg_scene *s, struct net *net)
{
	MSG_CLOSE(s->pep);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->fabric, s->info, &s->pep, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(s->pep, &s->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, fi_setname(&s->pep->fid, &s->addr, sizeof(struct sockaddr_in)), 0);
	KUNIT_EXPECT_EQ(test, set_net(&s->pep->fid, net), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(s->pep), 0);
}

static struct fid_ep *ask_in(struct kunit *test, struct msg_scene *s, struct net *net)
{
	struct fid_ep *ep = msg_ep(test, s, s->info, &s->client);

	KUNIT_EXPECT_EQ(test, set_net(&ep->fid, net), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, "in", 2), 0);
	return ep;
}

static struct two join_in(struct kunit *test, struct msg_scene *s, struct net *net,
			  struct fid_pep *pep)
{
	struct two two = { .client = ask_in(test, s, net) };
	struct msg_event event = msg_next(test, s->eq);

	KUNIT_ASSERT_EQ(test, event.what, FI_CONNREQ);
	KUNIT_EXPECT_PTR_EQ(test, event.fid, &pep->fid);
	two.server = msg_ep(test, s, event.info, &s->server);
	fi_freeinfo(event.info);
	KUNIT_EXPECT_EQ(test, fi_accept(two.server, NULL, 0), 0);
	MSG_EXPECT(s->client.eq, FI_CONNECTED, two.client);
	MSG_EXPECT(s->server.eq, FI_CONNECTED, two.server);
	return two;
}

/* An address is one of its namespace, and so is a link. */
static void spaces(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct space *space = space_new(test);
	struct fid_pep *first = s->pep;
	struct fid_ep *ep;
	struct two here, there;

	ep = ask_in(test, s, space->net);
	MSG_FAILS(s->client.eq, ECONNREFUSED, ep);
	MSG_CLOSE(ep);
	s->pep = NULL;
	move_server(test, s, space->net);
	here = join_in(test, s, &init_net, first);
	there = join_in(test, s, space->net, s->pep);
	talk(test, s, &here);
	talk(test, s, &there);
	/* Without the option, it is the first one. */
	MSG_CLOSE(first);
	ep = ask(test, s, "");
	MSG_FAILS(s->client.eq, ECONNREFUSED, ep);
	MSG_CLOSE(ep);
	part(&here);
	part(&there);
}

/* With a namespace its connections end, and nothing begins there any more. */
static void space_ends(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct space *space = space_new(test);
	struct fid_pep *first = s->pep, *late = NULL;
	struct fid_ep *ep, *asked;
	struct two here, there;
	struct msg_event event;

	s->pep = NULL;
	move_server(test, s, space->net);
	here = join_in(test, s, &init_net, first);
	there = join_in(test, s, space->net, s->pep);
	asked = ask_in(test, s, space->net);
	event = msg_next(test, s->eq);
	KUNIT_EXPECT_EQ(test, event.what, FI_CONNREQ);
	fi_freeinfo(event.info);
	ep = msg_ep(test, s, s->info, &s->client);
	KUNIT_EXPECT_EQ(test, set_net(&ep->fid, space->net), 0);
	KUNIT_ASSERT_EQ(test, fi_passive_ep(s->fabric, s->info, &late, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_pep_bind(late, &s->eq->fid, 0), 0);
	KUNIT_EXPECT_EQ(test, set_net(&late->fid, space->net), 0);
	kunit_release_action(test, space_end, space);
	MSG_EXPECT(s->server.eq, FI_SHUTDOWN, there.server);
	MSG_EXPECT(s->client.eq, FI_SHUTDOWN, there.client);
	MSG_FAILS(s->client.eq, ENETDOWN, asked);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), -ENETDOWN);
	KUNIT_EXPECT_EQ(test, fi_listen(late), -ENETDOWN);
	MSG_CLOSE(s->pep);
	KUNIT_EXPECT_EQ(test, fi_setname(&late->fid, &s->addr, sizeof(struct sockaddr_in)), 0);
	KUNIT_EXPECT_EQ(test, fi_listen(late), -ENETDOWN);
	/* Both can be used elsewhere. */
	KUNIT_EXPECT_EQ(test, set_net(&ep->fid, &init_net), 0);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), 0);
	event = msg_next(test, s->eq);
	KUNIT_EXPECT_PTR_EQ(test, event.fid, &first->fid);
	fi_freeinfo(event.info);
	talk(test, s, &here);
	MSG_CLOSE(ep);
	MSG_CLOSE(asked);
	MSG_CLOSE(late);
	part(&here);
	part(&there);
	MSG_CLOSE(first);
}

static void bad_spaces(struct kunit *test)
{
	struct msg_scene *s = msg_scene(test);
	struct fid_ep *ep = msg_ep(test, s, s->info, &s->client);
	struct net *net = &init_net;

	s->client.ep = ep;
	KUNIT_EXPECT_EQ(test, set_net(&ep->fid, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_NET, &net,
					sizeof(net) - 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, set_net(&s->pep->fid, net), -FI_EOPBADSTATE);
	KUNIT_EXPECT_EQ(test, fi_connect(ep, &s->addr, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, set_net(&ep->fid, net), -FI_EOPBADSTATE);
	fi_freeinfo(msg_next(test, s->eq).info);
}

static struct kunit_case msg_link_cases[] = {
	KUNIT_CASE(secrets),
	KUNIT_CASE(secret_of_client),
	KUNIT_CASE(secret_changes),
	KUNIT_CASE(secret_links),
	KUNIT_CASE(secret_of_successor),
	KUNIT_CASE(bad_secrets),
	KUNIT_CASE(spaces),
	KUNIT_CASE(space_ends),
	KUNIT_CASE(bad_spaces),
	{}
};

static struct kunit_suite msg_link_suite = {
	.name = "kofi_msg_link",
	.test_cases = msg_link_cases,
};

kunit_test_suite(msg_link_suite);

MODULE_DESCRIPTION("KUnit suite of links, which connections share");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
