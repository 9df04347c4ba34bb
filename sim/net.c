// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Transport of packets between devices, and faults of packets.
 *
 * A GID is fe80::PORT:0:ffff:ADDR, with the device's UDP address. Devices of this
 * kernel find each other in a list and pass packets directly; others are reached
 * by UDP. A device without a network has a random GID and port 0, and uses only the
 * list.
 *
 * Lock order: efasim_dev.lock > local_devs > rxq.lock.
 */
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/random.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/udp.h>

#include "priv.h"

#define RXQ_MAX		1024
#define HELD_MAX	1024
#define REORDER_US	300

#define GID_PORT	6
#define GID_MARK	10
#define GID_ADDR	12

static DECLARE_RWSEM(local_devs);	/* protects local_list */
static LIST_HEAD(local_list);

struct efasim_held {
	struct list_head list;
	struct efasim_timer timer;
	u8 gid[EFASIM_GID_LEN];
	u32 len;
	u8 buf[];
};

static void gid_of(u8 *gid, __be32 addr, __be16 port)
{
	memset(gid, 0, EFASIM_GID_LEN);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	memcpy(gid + GID_PORT, &port, sizeof(port));
	gid[GID_MARK] = 0xff;
	gid[GID_MARK + 1] = 0xff;
	memcpy(gid + GID_ADDR, &addr, sizeof(addr));
}

static bool addr_of(const u8 *gid, struct sockaddr_in *sin)
{
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	memcpy(&sin->sin_port, gid + GID_PORT, sizeof(sin->sin_port));
	memcpy(&sin->sin_addr, gid + GID_ADDR, sizeof(sin->sin_addr));
	return sin->sin_port && gid[GID_MARK] == 0xff;
}

static bool efasim_dev_queue(struct efasim_dev *to, struct efasim_rxp *rxp)
{
	bool room;

	spin_lock(&to->rxq.lock);
	room = to->rxq.count < RXQ_MAX;
	if (room) {
		list_add_tail(&rxp->list, &to->rxq.list);
		to->rxq.count++;
	}
	spin_unlock(&to->rxq.lock);
	if (room)
		efasim_kick(to);
	else
		efasim_count(to, EFASIM_S_rxq_full);
	return room;
}

static void efasim_dev_hand_over(struct efasim_dev *to, const void *buf,
				 u32 len)
{
	struct efasim_rxp *rxp;

	rxp = kmalloc(struct_size(rxp, buf, len), GFP_NOIO | __GFP_NOWARN);
	if (!rxp) {
		efasim_count(to, EFASIM_S_no_memory);
		return;
	}
	rxp->len = len;
	memcpy(rxp->buf, buf, len);
	if (!efasim_dev_queue(to, rxp))
		kfree(rxp);
}

static bool efasim_dev_try_local(struct efasim_dev *dev, const u8 *gid,
				 const void *buf, u32 len)
{
	struct efasim_dev *to;
	bool found = false;

	if (dev->udp_only)
		return false;
	down_read(&local_devs);
	list_for_each_entry(to, &local_list, node) {
		if (memcmp(to->gid, gid, EFASIM_GID_LEN))
			continue;
		efasim_dev_hand_over(to, buf, len);
		found = true;
		break;
	}
	up_read(&local_devs);
	return found;
}

/* Send the datagram that was built. */
void efasim_dev_flush_tx(struct efasim_dev *dev)
{
	struct kvec iov = { .iov_base = dev->txbuf, .iov_len = dev->txlen };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct sockaddr_in sin;

	lockdep_assert_held(&dev->lock);
	if (!dev->txlen)
		return;
	addr_of(dev->txgid, &sin);
	msg.msg_name = &sin;
	msg.msg_namelen = sizeof(sin);
	efasim_count(dev, EFASIM_S_tx_datagrams);
	/* A datagram that can't be sent is lost; its packets are retransmitted later. */
	if (kernel_sendmsg(dev->sock, &msg, &iov, 1, dev->txlen) != dev->txlen)
		efasim_count(dev, EFASIM_S_sock_errors);
	dev->txlen = 0;
}

/*
 * Append a packet to the datagram for a device, up to the MTU. A longer packet is sent in a
 * datagram of its own.
 */
static void efasim_dev_put_together(struct efasim_dev *dev, const u8 *gid,
				    const void *buf, u32 len)
{
	if (dev->txlen + len > dev->limits.mtu ||
	    memcmp(dev->txgid, gid, EFASIM_GID_LEN))
		efasim_dev_flush_tx(dev);
	memcpy(dev->txgid, gid, EFASIM_GID_LEN);
	memcpy(dev->txbuf + dev->txlen, buf, len);
	dev->txlen += len;
}

static void efasim_dev_deliver(struct efasim_dev *dev, const u8 *gid,
			       const void *buf, u32 len)
{
	struct sockaddr_in sin;

	if (efasim_dev_try_local(dev, gid, buf, len))
		return;
	if (dev->sock && addr_of(gid, &sin))
		efasim_dev_put_together(dev, gid, buf, len);
}

static void efasim_dev_release_held(struct efasim_dev *dev,
				    struct efasim_timer *timer)
{
	struct efasim_held *held = container_of(timer, struct efasim_held,
						timer);

	efasim_dev_deliver(dev, held->gid, held->buf, held->len);
	list_del(&held->list);
	dev->num_held--;
	kfree(held);
}

static void efasim_dev_hold(struct efasim_dev *dev, const u8 *gid,
			    const void *buf, u32 len, u32 us)
{
	struct efasim_held *held;

	if (dev->num_held >= HELD_MAX) {
		efasim_dev_deliver(dev, gid, buf, len);
		return;
	}
	held = kmalloc(struct_size(held, buf, len), GFP_NOIO | __GFP_NOWARN);
	if (!held) {
		efasim_count(dev, EFASIM_S_no_memory);
		efasim_dev_deliver(dev, gid, buf, len);
		return;
	}
	memset(held, 0, sizeof(*held));
	memcpy(held->gid, gid, sizeof(held->gid));
	memcpy(held->buf, buf, len);
	held->len = len;
	held->timer.fn = efasim_dev_release_held;
	timerqueue_init(&held->timer.node);
	list_add_tail(&held->list, &dev->held);
	dev->num_held++;
	efasim_dev_arm(dev, &held->timer, ktime_add_us(ktime_get(), us));
}

/* Free the packets that a fault holds back, when the device is removed. */
void efasim_dev_drop_held(struct efasim_dev *dev)
{
	struct efasim_held *held, *next;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry_safe(held, next, &dev->held, list) {
		efasim_dev_disarm(dev, &held->timer);
		kfree(held);
	}
	INIT_LIST_HEAD(&dev->held);
	dev->num_held = 0;
}

static bool efasim_dev_is_mute(struct efasim_dev *dev)
{
	if (!READ_ONCE(dev->fault[EFASIM_F_unresponsive]))
		return false;
	atomic64_inc(&dev->injected[EFASIM_F_unresponsive]);
	return true;
}

/**
 * efasim_dev_xmit() - send a packet, subject to faults
 * @dev: the sending device
 * @gid: GID of the receiving device
 * @buf: the packet, copied
 * @len: length of the packet
 *
 * Context: The device's worker.
 */
void efasim_dev_xmit(struct efasim_dev *dev, const u8 *gid, const void *buf,
		     u32 len)
{
	lockdep_assert_held(&dev->lock);
	efasim_count(dev, EFASIM_S_tx_pkts);
	efasim_add(dev, EFASIM_S_tx_bytes, len);
	if (efasim_dev_is_mute(dev) || efasim_fault(dev, EFASIM_F_drop))
		return;
	if (efasim_fault(dev, EFASIM_F_duplicate))
		efasim_dev_deliver(dev, gid, buf, len);
	if (efasim_fault(dev, EFASIM_F_reorder))
		efasim_dev_hold(dev, gid, buf, len,
				prandom_u32_state(&dev->rnd) % REORDER_US);
	else if (efasim_fault(dev, EFASIM_F_delay))
		efasim_dev_hold(dev, gid, buf, len,
				READ_ONCE(dev->fault[EFASIM_F_delay_us]));
	else
		efasim_dev_deliver(dev, gid, buf, len);
}

static struct efasim_rxp *efasim_dev_dequeue(struct efasim_dev *dev)
{
	struct efasim_rxp *rxp;

	spin_lock(&dev->rxq.lock);
	rxp = list_first_entry_or_null(&dev->rxq.list, struct efasim_rxp, list);
	if (rxp) {
		list_del(&rxp->list);
		dev->rxq.count--;
	}
	spin_unlock(&dev->rxq.lock);
	return rxp;
}

/* Return: number of packets that arrived, 0 for no datagram. */
static u32 efasim_dev_rx_local(struct efasim_dev *dev)
{
	struct efasim_rxp *rxp = efasim_dev_dequeue(dev);
	u32 n = 1;

	if (!rxp)
		return 0;
	if (!efasim_dev_is_mute(dev))
		n = efasim_dev_input(dev, rxp->buf, rxp->len, NULL);
	kfree(rxp);
	return n;
}

static u32 efasim_dev_rx_sock(struct efasim_dev *dev)
{
	struct kvec iov = { .iov_base = dev->rxbuf, .iov_len = EFASIM_RXBUF };
	struct sockaddr_in sin = { };
	struct msghdr msg = { .msg_name = &sin };
	u8 gid[EFASIM_GID_LEN];
	int len;

	if (!dev->sock)
		return 0;
	len = kernel_recvmsg(dev->sock, &msg, &iov, 1, EFASIM_RXBUF,
			     MSG_DONTWAIT);
	if (len == -EAGAIN)
		return 0;
	if (len < 0) {
		/* An ICMP error of an earlier send, or a bad checksum. */
		efasim_count(dev, EFASIM_S_sock_errors);
		return 1;
	}
	if (efasim_dev_is_mute(dev))
		return 1;
	if (msg.msg_flags & MSG_TRUNC) {
		efasim_count(dev, EFASIM_S_wire_length);
		return 1;
	}
	gid_of(gid, sin.sin_addr.s_addr, sin.sin_port);
	return efasim_dev_input(dev, dev->rxbuf, len, gid);
}

/* Add packets that the kernel dropped because the socket was full. */
static void efasim_dev_count_drops(struct efasim_dev *dev)
{
	if (dev->sock)
		atomic64_set(&dev->stats[EFASIM_S_sock_drops],
			     atomic_read(&dev->sock->sk->sk_drops));
}

/* Handle about @budget packets that have arrived. Return: whether more may be there. */
bool efasim_dev_rx(struct efasim_dev *dev, u32 budget)
{
	efasim_dev_count_drops(dev);
	while (budget) {
		u32 n = efasim_dev_rx_local(dev) + efasim_dev_rx_sock(dev);

		if (!n)
			return false;
		budget -= min(budget, n);
	}
	return true;
}

static void sock_ready(struct sock *sk)
{
	struct efasim_dev *dev;

	read_lock_bh(&sk->sk_callback_lock);
	dev = sk->sk_user_data;
	if (dev)
		efasim_kick(dev);
	read_unlock_bh(&sk->sk_callback_lock);
}

static int bind_sock(struct socket *sock, struct sockaddr_in *sin, u16 port)
{
	int i, err = -EADDRINUSE;

	for (i = 0; i < EFASIM_PORT_TRIES && err == -EADDRINUSE; i++) {
		sin->sin_port = htons(port + i);
		err = kernel_bind(sock, (struct compat_sockaddr *)sin,
				  sizeof(*sin));
	}
	return err;
}

static void adopt_sock(struct efasim_dev *dev, struct socket *sock)
{
	struct sock *sk = sock->sk;

	lock_sock(sk);
	sk->sk_allocation = GFP_NOIO;
	sk->sk_rcvbuf = dev->sock_buf;
	sk->sk_sndbuf = dev->sock_buf;
	release_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	dev->sock_saved_ready = sk->sk_data_ready;
	sk->sk_user_data = dev;
	sk->sk_data_ready = sock_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	dev->sock = sock;
}

static int open_sock(struct efasim_dev *dev, struct net *net, __be32 addr,
		     u16 port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = addr,
	};
	struct socket *sock;
	int err;

	err = sock_create_kern(net, AF_INET, SOCK_DGRAM, IPPROTO_UDP, &sock);
	if (err)
		return err;
	err = bind_sock(sock, &sin, port);
	if (err) {
		sock_release(sock);
		return err;
	}
	gid_of(dev->gid, addr, sin.sin_port);
	adopt_sock(dev, sock);
	return 0;
}

/**
 * efasim_net_init() - attach a device to the network
 * @dev: a device that was just created
 * @net: the network namespace
 * @addr: the IPv4 address to use, or 0 for this kernel only
 * @port: first UDP port to try
 *
 * Context: Process context, may sleep.
 * Return: 0, or a negative errno with everything undone.
 */
int efasim_net_init(struct efasim_dev *dev, struct net *net, __be32 addr,
		    u16 port)
{
	int err;

	if (addr) {
		err = open_sock(dev, net, addr, port);
		if (err)
			return err;
	} else {
		gid_of(dev->gid, 0, 0);
		get_random_bytes(dev->gid + 8, EFASIM_GID_LEN - 8);
		dev->gid[GID_MARK] = 0;
	}
	down_write(&local_devs);
	list_add_tail(&dev->node, &local_list);
	up_write(&local_devs);
	return 0;
}

static void close_sock(struct efasim_dev *dev, struct socket *sock)
{
	struct sock *sk = sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = dev->sock_saved_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	sock_release(sock);
}

/**
 * efasim_net_leave() - detach a device from the network
 * @dev: the device
 *
 * When this returns the device gets no more packets and uses nothing of its network
 * namespace. This may be called twice, also concurrently.
 *
 * Context: Process context, may sleep.
 */
void efasim_net_leave(struct efasim_dev *dev)
{
	struct socket *sock;

	down_write(&local_devs);
	list_del_init(&dev->node);
	up_write(&local_devs);
	/* The worker uses the socket under the lock, and finds NULL from here on. */
	mutex_lock(&dev->lock);
	sock = dev->sock;
	dev->sock = NULL;
	dev->txlen = 0;
	mutex_unlock(&dev->lock);
	if (sock)
		close_sock(dev, sock);
}
