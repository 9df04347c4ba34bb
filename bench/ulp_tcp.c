// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A ULP on kernel sockets: TCP over the loopback device, with both ends in this file. It
 * alternately sends as much as the socket accepts and receives what has arrived.
 */
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include "bench.h"

MODULE_DESCRIPTION("Benchmarks of kOFI: a ULP on TCP");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI_BENCH);

/**
 * struct kbt_end - both ends
 * @end: the harness' part
 * @listen: listening socket that accepted @to
 * @from: sending socket
 * @to: receiving socket
 * @buf: data that is sent and received
 * @sent: bytes of this batch sent
 * @received: bytes of this batch received
 */
struct kbt_end {
	struct kb_end	end;
	struct socket	*listen;
	struct socket	*from;
	struct socket	*to;
	void		*buf;
	size_t		sent;
	size_t		received;
};

static struct kbt_end *to_kbt(struct kb_end *end)
{
	return container_of(end, struct kbt_end, end);
}

/* Return: number of bytes to the end of the current message. */
static size_t kbt_rest(const struct kbt_end *kbt, size_t done)
{
	u32 size = kbt->end.test->size;

	return size - done % size;
}

static int kbt_send(struct kbt_end *kbt)
{
	size_t all = (size_t)kbt->end.test->size * kbt->end.test->batch;
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec iov;
	int ret;

	while (kbt->sent < all) {
		iov.iov_base = kbt->buf;
		iov.iov_len = kbt_rest(kbt, kbt->sent);
		ret = kernel_sendmsg(kbt->from, &msg, &iov, 1, iov.iov_len);
		if (ret == -EAGAIN)
			return 0;
		if (ret < 0)
			return ret;
		kbt->sent += ret;
	}
	return 0;
}

static int kbt_receive(struct kbt_end *kbt)
{
	struct msghdr msg = { };
	struct kvec iov;
	int ret;

	for (;;) {
		iov.iov_base = kbt->buf;
		iov.iov_len = kbt_rest(kbt, kbt->received);
		ret = kernel_recvmsg(kbt->to, &msg, &iov, 1, iov.iov_len,
				     MSG_DONTWAIT);
		if (ret == -EAGAIN)
			return 0;
		if (ret <= 0)
			return ret ?: -ECONNRESET;
		kbt->received += ret;
		kbt->end.done = kbt->received / kbt->end.test->size;
		if (kbt->end.done == kbt->end.test->batch)
			return 0;
	}
}

static int kbt_post(struct kb_end *end)
{
	struct kbt_end *kbt = to_kbt(end);

	kbt->sent = 0;
	kbt->received = 0;
	return kbt_send(kbt);
}

static int kbt_poll(struct kb_end *end)
{
	struct kbt_end *kbt = to_kbt(end);

	return kbt_receive(kbt) ?: kbt_send(kbt);
}

static int kbt_socket(struct socket **sock)
{
	return sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP,
				sock);
}

static int kbt_open_sockets(struct kbt_end *kbt)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct compat_sockaddr *csa = (struct compat_sockaddr *)&addr;
	int ret;

	ret = kbt_socket(&kbt->listen) ?:
	      kernel_bind(kbt->listen, csa, sizeof(addr)) ?:
	      kernel_listen(kbt->listen, 1);
	if (ret)
		return ret;
	ret = kernel_getsockname(kbt->listen, (struct sockaddr *)&addr);
	if (ret < 0)
		return ret;
	ret = kbt_socket(&kbt->from) ?:
	      kernel_connect(kbt->from, csa, sizeof(addr), 0) ?:
	      kernel_accept(kbt->listen, &kbt->to, 0);
	if (ret)
		return ret;
	tcp_sock_set_nodelay(kbt->from->sk);
	return 0;
}

static void kbt_release(struct socket *sock)
{
	if (sock)
		sock_release(sock);
}

static size_t kbt_buf_size(const struct kb_test *test)
{
	return PAGE_ALIGN(max(test->size, 1U));
}

static void kbt_close(struct kb_end *end)
{
	struct kbt_end *kbt = to_kbt(end);

	kbt_release(kbt->from);
	kbt_release(kbt->to);
	kbt_release(kbt->listen);
	if (kbt->buf)
		free_pages_exact(kbt->buf, kbt_buf_size(end->test));
	kfree(kbt);
}

static struct kb_end *kbt_open(const struct kb_test *test)
{
	struct kbt_end *kbt;
	int ret = -ENOMEM;

	if (test->kind != KB_SEND || test->mode != KB_POLLED || !test->size)
		return ERR_PTR(-EOPNOTSUPP);
	kbt = kzalloc(sizeof(*kbt), GFP_KERNEL);
	if (!kbt)
		return ERR_PTR(-ENOMEM);
	kbt->end.test = test;
	kbt->buf = alloc_pages_exact(kbt_buf_size(test),
				     GFP_KERNEL | __GFP_ZERO);
	if (kbt->buf)
		ret = kbt_open_sockets(kbt);
	if (!ret)
		return &kbt->end;
	kbt_close(&kbt->end);
	return ERR_PTR(ret);
}

static int kbt_connect(struct kb_end *end)
{
	return 0;
}

static struct kb_ulp kbt_ulp = {
	.name		= "tcp",
	.alone		= true,
	.open		= kbt_open,
	.connect	= kbt_connect,
	.close		= kbt_close,
	.post		= kbt_post,
	.poll		= kbt_poll,
};

static int __init kbt_init(void)
{
	kb_register(&kbt_ulp);
	return 0;
}
module_init(kbt_init);

static void __exit kbt_exit(void)
{
	kb_deregister(&kbt_ulp);
}
module_exit(kbt_exit);
