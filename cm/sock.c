// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Non-blocking TCP sockets. Their callbacks, in softirq context, queue the work item of the session
 * or of the port, which is in sk_user_data until the socket is closed. Kernel sockets don't hold
 * their network namespace before they are closed, so each is counted by kcm_net_use().
 */
#include <linux/net.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>
#include "cm.h"

#define KCM_BACKLOG	64

/* TCP keep-alive, in seconds: detects a dead host after about 20. */
#define KCM_TCP_IDLE		5
#define KCM_TCP_INTERVAL	5
#define KCM_TCP_PROBES		3

static void kcm_sock_event(struct sock *sk)
{
	struct kcm_session *s;

	read_lock_bh(&sk->sk_callback_lock);
	s = sk->sk_user_data;
	if (s)
		kcm_kick(s);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* TCP has set SOCK_NOSPACE when it refused bytes. */
static void kcm_sock_space(struct sock *sk)
{
	if (sk->sk_socket)
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	kcm_sock_event(sk);
}

/* Reclaim may wait for a ULP's disk, so its sockets must not start I/O. */
static void kcm_sock_set_up(struct kcm_session *s, struct socket *sock)
{
	struct sock *sk = sock->sk;

	sk->sk_allocation = GFP_NOIO;
	compat_sock_in_reclaim(sk);
	tcp_sock_set_nodelay(sk);
	sock_set_keepalive(sk);
	tcp_sock_set_keepidle(sk, KCM_TCP_IDLE);
	tcp_sock_set_keepintvl(sk, KCM_TCP_INTERVAL);
	tcp_sock_set_keepcnt(sk, KCM_TCP_PROBES);
	s->sock.sock = sock;
	write_lock_bh(&sk->sk_callback_lock);
	s->sock.data_ready = sk->sk_data_ready;
	s->sock.state_change = sk->sk_state_change;
	s->sock.write_space = sk->sk_write_space;
	sk->sk_data_ready = kcm_sock_event;
	sk->sk_state_change = kcm_sock_event;
	sk->sk_write_space = kcm_sock_space;
	sk->sk_user_data = s;
	/*
	 * Bytes may have arrived before. Under the lock, which kcm_sock_close() takes, because the
	 * work item can free a session that was accepted.
	 */
	kcm_kick(s);
	write_unlock_bh(&sk->sk_callback_lock);
}

static int kcm_sock_create(struct net *net, int family, struct socket **sock)
{
	int ret;

	ret = kcm_net_use(net);
	if (ret)
		return ret;
	ret = sock_create_kern(net, family, SOCK_STREAM, IPPROTO_TCP, sock);
	if (ret)
		kcm_net_unuse(net);
	return ret;
}

static int kcm_addr_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

/**
 * kcm_sock_connect() - begin to connect
 * @s: an active session without a socket
 *
 * Return: 0 or -EINPROGRESS: kcm_sock_connected() tells the result; or another errno.
 */
int kcm_sock_connect(struct kcm_session *s)
{
	struct sockaddr_storage to = s->client.to, from = s->client.from;
	struct socket *sock;
	int ret;

	ret = kcm_sock_create(s->config->net, to.ss_family, &sock);
	if (ret)
		return ret;
	kcm_sock_set_up(s, sock);
	if (from.ss_family != AF_UNSPEC)
		ret = kernel_bind(sock, (struct compat_sockaddr *)&from, kcm_addr_len(&from));
	return ret ?: kernel_connect(sock, (struct compat_sockaddr *)&to, kcm_addr_len(&to),
				     O_NONBLOCK);
}

/**
 * kcm_sock_connected() - look whether a connection is established
 * @s: the session, after kcm_sock_connect()
 *
 * Return: 0 if it is, -EINPROGRESS, or another negative errno.
 */
int kcm_sock_connected(struct kcm_session *s)
{
	struct sock *sk = s->sock.sock->sk;

	switch (READ_ONCE(sk->sk_state)) {
	case TCP_ESTABLISHED:
		return 0;
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return -EINPROGRESS;
	}
	return sock_error(sk) ?: -ECONNREFUSED;
}

/**
 * kcm_sock_peer() - get the address of a socket's peer
 * @sock: from kcm_sock_accept()
 * @name: takes the address as text
 *
 * Return: the address as a number.
 */
u64 kcm_sock_peer(struct socket *sock, char name[KULP_NET_NAME])
{
	return kulp_sock_peer(sock, name);
}

/**
 * kcm_names() - get the IP addresses and ports of a session's connection
 * @s: the session, in one of its callbacks
 * @local: takes this side's
 * @remote: takes the peer's
 * Context: Process, sleeps.
 * Return: 0, or -ENOTCONN if the connection has ended.
 */
int kcm_names(const struct kcm_session *s, struct sockaddr_storage *local,
	      struct sockaddr_storage *remote)
{
	if (!s->sock.sock || kulp_sock_names(s->sock.sock, local, remote))
		return -ENOTCONN;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(kcm_names, KOFI_CM);

/**
 * kcm_sock_adopt() - give an accepted socket to a session
 * @s: a passive session without a socket. The work item runs, and may free it, before the function
 *	returns
 * @sock: from kcm_sock_accept()
 */
void kcm_sock_adopt(struct kcm_session *s, struct socket *sock)
{
	kcm_sock_set_up(s, sock);
}

/**
 * kcm_sock_send() - send as much as TCP takes now
 * @s: the session
 * @buf: bytes
 * @len: number of bytes
 *
 * Return: number of bytes taken, at least 1; -EAGAIN: the work item is queued when there is room;
 * or another negative errno.
 */
int kcm_sock_send(struct kcm_session *s, const void *buf, size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT };
	struct kvec vec = { (void *)buf, len };

	return kernel_sendmsg(s->sock.sock, &msg, &vec, 1, len) ?: -EAGAIN;
}

/**
 * kcm_sock_recv() - receive what has arrived
 * @s: the session
 * @buf: takes the bytes
 * @len: room in bytes
 *
 * Return: number of bytes, at least 1; -EAGAIN: the work item is queued when something arrives;
 * -ECONNRESET at the end of the stream; or another negative errno.
 */
int kcm_sock_recv(struct kcm_session *s, void *buf, size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT };
	struct kvec vec = { buf, len };

	return kernel_recvmsg(s->sock.sock, &msg, &vec, 1, len, MSG_DONTWAIT) ?: -ECONNRESET;
}

/* TCP answers with a reset if something is unread, and the peer may lose the last message. */
static void kcm_sock_drain(struct kcm_session *s)
{
	u8 scratch[64];
	int i;

	for (i = 0; i < KCM_MSG_MAX / sizeof(scratch); i++)
		if (kcm_sock_recv(s, scratch, sizeof(scratch)) < 0)
			break;
}

/*
 * When a socket is closed that doesn't hold its network namespace, TCP stops its timers. If the
 * peer then didn't acknowledge the last bytes, they would never be sent again, and the socket would
 * stay for ever. So have it hold the namespace for the time that TCP needs.
 */
static void kcm_sock_hold_net(struct sock *sk, struct net *net)
{
	if (maybe_get_net(net)) {
		compat_sock_hold_net(sk);
		put_net(net);
	} else {
		/* The namespace goes, and nothing may stay in it. */
		sock_no_linger(sk);
	}
}

/**
 * kcm_sock_close() - close a connection
 * @s: the session, with or without a socket. TCP sends what it has taken
 *
 * The socket doesn't queue the work item afterwards.
 */
void kcm_sock_close(struct kcm_session *s)
{
	struct socket *sock = s->sock.sock;
	struct net *net;
	struct sock *sk;

	if (!sock)
		return;
	kcm_sock_drain(s);
	sk = sock->sk;
	net = sock_net(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = s->sock.data_ready;
	sk->sk_state_change = s->sock.state_change;
	sk->sk_write_space = s->sock.write_space;
	write_unlock_bh(&sk->sk_callback_lock);
	s->sock.sock = NULL;
	kcm_sock_hold_net(sk, net);
	kernel_sock_shutdown(sock, SHUT_RDWR);
	sock_release(sock);
	kcm_net_unuse(net);
}

/* --- listening --- */

static void kcm_port_event(struct sock *sk)
{
	struct kcm_port *port;

	read_lock_bh(&sk->sk_callback_lock);
	port = sk->sk_user_data;
	/* An accepted socket inherits the callback and sk_user_data until it is adopted. */
	if (port && sk->sk_state == TCP_LISTEN)
		mod_delayed_work(kcm_wq, &port->accept, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

/**
 * kcm_sock_listen() - open a port's socket
 * @port: the port, with net and addr
 *
 * Return: 0 or a negative errno.
 */
int kcm_sock_listen(struct kcm_port *port)
{
	struct sockaddr_storage addr = port->addr;
	struct socket *sock;
	struct sock *sk;
	int ret;

	ret = kcm_sock_create(port->net, addr.ss_family, &sock);
	if (ret)
		return ret;
	sk = sock->sk;
	sock_set_reuseaddr(sk);
	port->sock = sock;
	write_lock_bh(&sk->sk_callback_lock);
	port->data_ready = sk->sk_data_ready;
	sk->sk_data_ready = kcm_port_event;
	sk->sk_user_data = port;
	write_unlock_bh(&sk->sk_callback_lock);
	ret = kernel_bind(sock, (struct compat_sockaddr *)&addr, kcm_addr_len(&addr)) ?:
	      kernel_listen(sock, KCM_BACKLOG);
	if (ret)
		kcm_sock_unlisten(port);
	return ret;
}

/**
 * kcm_sock_accept() - accept a connection
 * @port: the port
 * @sock: takes the connection
 *
 * Return: 0, -EAGAIN if there is none, or another negative errno.
 */
int kcm_sock_accept(struct kcm_port *port, struct socket **sock)
{
	struct sock *sk;
	int ret;

	ret = kcm_net_use(port->net);
	if (ret)
		return ret;
	ret = kernel_accept(port->sock, sock, O_NONBLOCK);
	if (ret) {
		kcm_net_unuse(port->net);
		return ret;
	}
	/* The callbacks to put back at its end are those of an ordinary socket. */
	sk = (*sock)->sk;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = port->data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	return 0;
}

/**
 * kcm_sock_unlisten() - close a port's socket
 * @port: the port, with or without a socket
 *
 * The socket doesn't queue the work item afterwards.
 */
void kcm_sock_unlisten(struct kcm_port *port)
{
	struct socket *sock = port->sock;
	struct sock *sk;

	if (!sock)
		return;
	sk = sock->sk;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = port->data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	/* The work item uses the socket. */
	cancel_delayed_work_sync(&port->accept);
	port->sock = NULL;
	kernel_sock_shutdown(sock, SHUT_RDWR);
	sock_release(sock);
	kcm_net_unuse(port->net);
}
