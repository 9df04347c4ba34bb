// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TCP connections: see <kofi/ulp_net.h>. A socket is published in kulp_net.sock before anything
 * waits for it.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/net.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <linux/uio.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <kofi/ulp_msg.h>
#include <kofi/ulp_net.h>

#define KULP_NET_BACKLOG	16
/* Time-out of a message after its first byte. */
#define KULP_NET_MS	5000
/* TCP keep-alive, in seconds: detects a dead peer after about 20. */
#define KULP_NET_IDLE	5
#define KULP_NET_INTERVAL	5
#define KULP_NET_PROBES	3

/* Convert an IPv4-mapped IPv6 address to IPv4, so that equal addresses compare equal. */
static void kulp_net_unmap(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 six = *(struct sockaddr_in6 *)addr;
	struct sockaddr_in *four = (struct sockaddr_in *)addr;

	if (addr->ss_family != AF_INET6 || !ipv6_addr_v4mapped(&six.sin6_addr))
		return;
	memset(addr, 0, sizeof(*addr));
	four->sin_family = AF_INET;
	four->sin_port = six.sin6_port;
	four->sin_addr.s_addr = six.sin6_addr.s6_addr32[3];
}

bool kulp_net_here(void)
{
	return net_eq(current->nsproxy->net_ns, &init_net);
}
EXPORT_SYMBOL_NS_GPL(kulp_net_here, KOFI_ULP);

int kulp_net_parse(const char *text, struct sockaddr_storage *addr)
{
	char host[KULP_NET_NAME];
	const char *port = strrchr(text, ':');
	bool six = *text == '[';
	size_t len;

	if (!port || !port[1])
		return -EINVAL;
	len = port - text;
	if (six) {
		if (len < 2 || text[len - 1] != ']')
			return -EINVAL;
		text++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	memset(addr, 0, sizeof(*addr));
	if (inet_pton_with_scope(&init_net, six ? AF_INET6 : AF_INET, host, port + 1, addr))
		return -EINVAL;
	kulp_net_unmap(addr);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_net_parse, KOFI_ULP);

static int kulp_net_publish(struct kulp_net *net, struct socket *sock)
{
	bool shut;

	mutex_lock(&net->lock);
	shut = net->shut;
	if (!shut)
		net->sock = sock;
	mutex_unlock(&net->lock);
	if (!shut)
		return 0;
	sock_release(sock);
	return -ESHUTDOWN;
}

static int kulp_net_socket(struct kulp_net *net, const struct sockaddr_storage *addr)
{
	struct socket *sock;
	int ret;

	ret = sock_create_kern(&init_net, addr->ss_family, SOCK_STREAM, IPPROTO_TCP, &sock);
	return ret ?: kulp_net_publish(net, sock);
}

/* Memory reclaim may wait for a client's disk, so its socket must not start I/O. */
static void kulp_net_set_up(struct socket *sock)
{
	struct sock *sk = sock->sk;

	sk->sk_allocation = GFP_NOIO;
	compat_sock_in_reclaim(sk);
	tcp_sock_set_nodelay(sk);
	sock_set_keepalive(sk);
	tcp_sock_set_keepidle(sk, KULP_NET_IDLE);
	tcp_sock_set_keepintvl(sk, KULP_NET_INTERVAL);
	tcp_sock_set_keepcnt(sk, KULP_NET_PROBES);
}

/* After a shutdown, a socket returns various errors: replace them by -ESHUTDOWN. */
static int kulp_net_err(struct kulp_net *net, int err)
{
	if (READ_ONCE(net->shut))
		return -ESHUTDOWN;
	return err == -EAGAIN || err == -EINPROGRESS ? -ETIMEDOUT : err;
}

int kulp_net_connect(struct kulp_net *net, const struct sockaddr_storage *addr, unsigned int ms)
{
	struct sockaddr_storage copy = *addr;
	int ret;

	ret = kulp_net_socket(net, addr);
	if (ret)
		return ret;
	kulp_net_set_up(net->sock);
	net->sock->sk->sk_sndtimeo = max(msecs_to_jiffies(ms), 1UL);
	ret = kernel_connect(net->sock, (struct compat_sockaddr *)&copy, sizeof(copy), 0);
	return ret ? kulp_net_err(net, ret) : 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_net_connect, KOFI_ULP);

int kulp_net_listen(struct kulp_net *net, const struct sockaddr_storage *addr)
{
	struct sockaddr_storage copy = *addr;
	int ret;

	ret = kulp_net_socket(net, addr);
	if (ret)
		return ret;
	sock_set_reuseaddr(net->sock->sk);
	ret = kernel_bind(net->sock, (struct compat_sockaddr *)&copy, sizeof(copy)) ?:
	      kernel_listen(net->sock, KULP_NET_BACKLOG);
	return ret ? kulp_net_err(net, ret) : 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_net_listen, KOFI_ULP);

int kulp_net_accept(struct kulp_net *listener, struct kulp_net *net)
{
	struct socket *sock;
	int ret;

	ret = kernel_accept(listener->sock, &sock, 0);
	if (ret)
		return kulp_net_err(listener, ret);
	kulp_net_set_up(sock);
	return kulp_net_publish(net, sock);
}
EXPORT_SYMBOL_NS_GPL(kulp_net_accept, KOFI_ULP);

u64 kulp_sock_peer(struct socket *sock, char name[KULP_NET_NAME])
{
	struct sockaddr_storage addr;
	const struct in6_addr *six = &((struct sockaddr_in6 *)&addr)->sin6_addr;

	if (kernel_getpeername(sock, (struct sockaddr *)&addr) < 0) {
		strscpy(name, "?", KULP_NET_NAME);
		return 0;
	}
	snprintf(name, KULP_NET_NAME, "%pISpc", &addr);
	kulp_net_unmap(&addr);
	if (addr.ss_family == AF_INET)
		return be32_to_cpu(((struct sockaddr_in *)&addr)->sin_addr.s_addr);
	return (u64)be32_to_cpu(six->s6_addr32[0]) << 32 | be32_to_cpu(six->s6_addr32[1]);
}
EXPORT_SYMBOL_NS_GPL(kulp_sock_peer, KOFI_ULP);

int kulp_sock_names(struct socket *sock, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote)
{
	int ret;

	memset(local, 0, sizeof(*local));
	memset(remote, 0, sizeof(*remote));
	ret = kernel_getsockname(sock, (struct sockaddr *)local);
	if (ret < 0)
		return ret;
	ret = kernel_getpeername(sock, (struct sockaddr *)remote);
	if (ret < 0)
		return ret;
	kulp_net_unmap(local);
	kulp_net_unmap(remote);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kulp_sock_names, KOFI_ULP);

u64 kulp_net_peer(struct kulp_net *net, char name[KULP_NET_NAME])
{
	return kulp_sock_peer(net->sock, name);
}
EXPORT_SYMBOL_NS_GPL(kulp_net_peer, KOFI_ULP);

/* TCP applies sk_sndtimeo and sk_rcvtimeo to all waits of a call together. */
int kulp_net_send(struct kulp_net *net, const void *buf, size_t len)
{
	struct kvec vec = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	int ret;

	WRITE_ONCE(net->sock->sk->sk_sndtimeo, msecs_to_jiffies(KULP_NET_MS));
	ret = kernel_sendmsg(net->sock, &msg, &vec, 1, len);
	return ret == len ? 0 : kulp_net_err(net, ret < 0 ? ret : -ETIMEDOUT);
}
EXPORT_SYMBOL_NS_GPL(kulp_net_send, KOFI_ULP);

/* Receive @len bytes. Return: 0, -ETIMEDOUT if there are less after @timeout, or an errno. */
static int kulp_net_get(struct kulp_net *net, void *buf, size_t len, long timeout, int flags)
{
	struct kvec vec = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {};
	int ret;

	if (!len)
		return 0;
	WRITE_ONCE(net->sock->sk->sk_rcvtimeo, max(timeout, 0L));
	ret = kernel_recvmsg(net->sock, &msg, &vec, 1, len, flags);
	if (ret == len)
		return 0;
	return kulp_net_err(net, ret > 0 ? -ETIMEDOUT : ret ?: -ECONNRESET);
}

int kulp_net_recv(struct kulp_net *net, void *buf, size_t room, unsigned int ms)
{
	const struct kulp_hdr *hdr = buf;
	unsigned long end;
	size_t len = 0;
	int ret;

	ret = kulp_net_get(net, buf, 1, ms ? max(msecs_to_jiffies(ms), 1UL) : MAX_SCHEDULE_TIMEOUT,
			   MSG_PEEK);
	if (ret)
		return ret;
	end = jiffies + msecs_to_jiffies(KULP_NET_MS);
	ret = kulp_net_get(net, buf, sizeof(*hdr), end - jiffies, MSG_WAITALL);
	if (!ret) {
		len = le32_to_cpu(hdr->len);
		if (len < sizeof(*hdr) || len > room)
			return -EPROTO;
		ret = kulp_net_get(net, buf + sizeof(*hdr), len - sizeof(*hdr), end - jiffies,
				   MSG_WAITALL);
	}
	if (ret)
		return ret == -ETIMEDOUT ? -ECONNABORTED : ret;
	return len;
}
EXPORT_SYMBOL_NS_GPL(kulp_net_recv, KOFI_ULP);

void kulp_net_shutdown(struct kulp_net *net)
{
	mutex_lock(&net->lock);
	WRITE_ONCE(net->shut, true);
	/* Only shut down receiving, because a BYE may still be sent. */
	if (net->sock)
		kernel_sock_shutdown(net->sock, SHUT_RD);
	mutex_unlock(&net->lock);
}
EXPORT_SYMBOL_NS_GPL(kulp_net_shutdown, KOFI_ULP);

void kulp_net_close(struct kulp_net *net)
{
	struct socket *sock;

	mutex_lock(&net->lock);
	sock = net->sock;
	net->sock = NULL;
	net->shut = false;
	mutex_unlock(&net->lock);
	if (sock)
		sock_release(sock);
}
EXPORT_SYMBOL_NS_GPL(kulp_net_close, KOFI_ULP);
