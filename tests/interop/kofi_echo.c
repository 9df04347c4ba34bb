// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kernel's side of the tests with libfabric: it sends each message back to its sender. As its
 * address vector is empty, a client first sends its own address in a message with the tag
 * ECHO_HELLO, or the address is written to the parameter peer. The parameter name has this
 * side's address.
 *
 * A tagged message is sent back with its tag, and with FI_DELIVERY_COMPLETE if the tag has the bit
 * ECHO_DC. While the parameter hold is 1 no receives are posted, so messages are unexpected.
 *
 * With the parameter dgram messages are datagrams. They have no source, so they are sent back to
 * the parameter peer. A text that is written to the parameter ask is sent there first, and must
 * come back.
 */
#define pr_fmt(fmt) "kofi_echo: " fmt

#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <kofi/cm.h>
#include <kofi/efa_ext.h>
#include <kofi/domain.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/tagged.h>

#define ECHO_HELLO	0x48454c4c4fULL
#define ECHO_DC		BIT_ULL(62)
#define ECHO_ROOM	64	/* for the prefix of a message */

static char *domain_name;
module_param_named(domain, domain_name, charp, 0444);
MODULE_PARM_DESC(domain, "name of the domain; without one the module does nothing");

static char name_hex[2 * sizeof(struct fi_efa_addr) + 1];
module_param_string(name, name_hex, sizeof(name_hex), 0444);
MODULE_PARM_DESC(name, "address of the endpoint in hexadecimal (read only)");

static unsigned int max_size = SZ_64K;
module_param(max_size, uint, 0444);
MODULE_PARM_DESC(max_size, "longest message, in bytes");

static unsigned int nslots = 64;
module_param_named(slots, nslots, uint, 0444);
MODULE_PARM_DESC(slots, "number of buffers; without dgram every other one is for tagged messages");

static bool dgram;
module_param(dgram, bool, 0444);
MODULE_PARM_DESC(dgram, "the endpoint is one of datagrams");

static bool hold;
module_param(hold, bool, 0644);
MODULE_PARM_DESC(hold, "post no further receives");

static unsigned int echoed, failed;
module_param(echoed, uint, 0444);
MODULE_PARM_DESC(echoed, "number of messages sent back (read only)");
module_param(failed, uint, 0444);
MODULE_PARM_DESC(failed, "number of operations that failed (read only)");

/**
 * struct echo_slot - a buffer and its use
 * @buf: the buffer
 * @tagged: the slot receives tagged messages
 * @state: state of the slot
 * @len: length of the message to send back
 * @to: address to send the message back to
 * @tag: tag to send the message back with
 */
struct echo_slot {
	void		*buf;
	bool		tagged;
	enum { ECHO_IDLE, ECHO_RECEIVING, ECHO_READY, ECHO_SENDING } state;
	size_t		len;
	fi_addr_t	to;
	u64		tag;
};

static struct echo_slot *slots;
static struct echo_slot ask;	/* of echo_ask(), which sets the state if it is ECHO_IDLE */
static bool asking;
static int answer;
static DECLARE_COMPLETION(answered);
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct task_struct *task;
static u32 prefix;	/* bytes in front of a message */
static fi_addr_t last_peer = FI_ADDR_NOTAVAIL;

static int echo_set_peer(const char *val, const struct kernel_param *kp)
{
	struct fi_efa_addr addr;

	if (!av)
		return -ENODEV;
	if (hex2bin((u8 *)&addr, val, sizeof(addr)))
		return -EINVAL;
	/* The sender uses this field for a pointer. */
	addr.reserved = 0;
	return fi_av_insert(av, &addr, 1, &last_peer, 0, NULL) == 1 ? 0 : -EINVAL;
}

static const struct kernel_param_ops echo_peer_ops = {
	.set	= echo_set_peer,
};
module_param_cb(peer, &echo_peer_ops, NULL, 0200);
MODULE_PARM_DESC(peer, "address of a client that sends no ECHO_HELLO, in hexadecimal");

/* Send a message, and wait for the same one. */
static int echo_ask(const char *val, const struct kernel_param *kp)
{
	const size_t len = strlen(val);

	if (!task || last_peer == FI_ADDR_NOTAVAIL)
		return -ENODEV;
	if (!dgram || !len || len > max_size)
		return -EINVAL;
	/* Pairs with echo_done(): the buffer isn't used any more. */
	if (smp_load_acquire(&ask.state) != ECHO_IDLE)
		return -EBUSY;
	memcpy(ask.buf + prefix, val, len);
	ask.len = prefix + len;
	ask.to = last_peer;
	reinit_completion(&answered);
	WRITE_ONCE(asking, true);
	/* Pairs with echo_go(). */
	smp_store_release(&ask.state, ECHO_READY);
	if (wait_for_completion_timeout(&answered, 10 * HZ))
		return answer;
	WRITE_ONCE(asking, false);
	return -ETIMEDOUT;
}

static const struct kernel_param_ops echo_ask_ops = {
	.set	= echo_ask,
};
module_param_cb(ask, &echo_ask_ops, NULL, 0200);
MODULE_PARM_DESC(ask, "a datagram to send; returns an error unless the same one comes back");

static ssize_t echo_receive(struct echo_slot *slot)
{
	if (slot->tagged)
		return fi_trecv(ep, slot->buf, max_size, NULL, FI_ADDR_UNSPEC, 0, U64_MAX, slot);
	return fi_recv(ep, slot->buf, prefix + max_size, NULL, FI_ADDR_UNSPEC, slot);
}

static ssize_t echo_send(struct echo_slot *slot)
{
	struct kvec iov = { slot->buf, slot->len };
	struct fi_msg_tagged msg = { .addr = slot->to, .tag = slot->tag, .context = slot };

	if (!slot->tagged)
		return fi_send(ep, slot->buf, slot->len, NULL, slot->to, slot);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, slot->len);
	return fi_tsendmsg(ep, &msg, slot->tag & ECHO_DC ? FI_DELIVERY_COMPLETE : 0);
}

static void echo_go(struct echo_slot *slot)
{
	ssize_t ret = -EAGAIN;

	/* Pairs with echo_ask(). */
	switch (smp_load_acquire(&slot->state)) {
	case ECHO_IDLE:
		if (slot == &ask)
			return;
		if (!READ_ONCE(hold))
			ret = echo_receive(slot);
		if (!ret)
			slot->state = ECHO_RECEIVING;
		break;
	case ECHO_READY:
		ret = echo_send(slot);
		if (!ret)
			slot->state = ECHO_SENDING;
		else if (ret != -EAGAIN)
			slot->state = ECHO_IDLE;
		break;
	default:
		return;
	}
	if (ret && ret != -EAGAIN) {
		failed++;
		pr_err("posting failed: %zd\n", ret);
	}
}

/* Insert the address of a client, so that its later messages have a source. */
static bool echo_hello(struct echo_slot *slot)
{
	struct fi_efa_addr addr;

	if (slot->len < sizeof(addr))
		return false;
	memcpy(&addr, slot->buf, sizeof(addr));
	/* The sender uses this field for a pointer. */
	addr.reserved = 0;
	return fi_av_insert(av, &addr, 1, &slot->to, 0, NULL) == 1;
}

static void echo_done(const struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	struct echo_slot *slot = entry->op_context;

	if (dgram)
		src = READ_ONCE(last_peer);
	if (entry->flags & FI_SEND) {
		/* Pairs with echo_ask(). */
		smp_store_release(&slot->state, ECHO_IDLE);
		echoed++;
		return;
	}
	if (READ_ONCE(asking)) {
		WRITE_ONCE(asking, false);
		answer = entry->len == ask.len &&
			 !memcmp(slot->buf + prefix, ask.buf + prefix, ask.len - prefix) ?
			 0 : -EILSEQ;
		slot->state = ECHO_IDLE;
		complete(&answered);
		return;
	}
	slot->len = entry->len;
	slot->tag = entry->tag;
	slot->to = src;
	slot->state = ECHO_READY;
	if (slot->tagged && slot->tag == ECHO_HELLO && echo_hello(slot))
		return;
	if (src == FI_ADDR_NOTAVAIL) {
		pr_err("dropped a message of a peer that isn't in the address vector\n");
		failed++;
		slot->state = ECHO_IDLE;
	}
}

static void echo_error(void)
{
	struct fi_cq_err_entry error = { };
	struct echo_slot *slot;

	if (fi_cq_readerr(cq, &error, 0) != 1)
		return;
	slot = error.op_context;
	/* Not an error here: a client may end before it has its answer. */
	pr_info("an operation failed: err %d, prov_errno %d\n", error.err, error.prov_errno);
	failed++;
	slot->state = ECHO_IDLE;
}

static int echo_thread(void *unused)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;
	ssize_t ret;
	int i;

	while (!kthread_should_stop()) {
		for (i = 0; i < nslots; i++)
			echo_go(&slots[i]);
		echo_go(&ask);
		ret = fi_cq_sreadfrom(cq, &entry, 1, &src, NULL, 20);
		if (ret == 1)
			echo_done(&entry, src);
		else if (ret == -FI_EAVAIL)
			echo_error();
	}
	return 0;
}

static void echo_close(void)
{
	int i;

	if (ep)
		fi_close(&ep->fid);
	if (cq)
		fi_close(&cq->fid);
	if (av)
		fi_close(&av->fid);
	if (domain)
		fi_close(&domain->fid);
	if (fabric)
		fi_close(&fabric->fid);
	fi_freeinfo(info);
	for (i = 0; slots && i < nslots; i++)
		kvfree(slots[i].buf);
	kfree(slots);
	kvfree(ask.buf);
}

static int echo_open(void)
{
	struct fi_cq_attr cq_attr = {
		.format		= FI_CQ_FORMAT_TAGGED,
		.wait_obj	= FI_WAIT_UNSPEC,
	};
	struct fi_av_attr av_attr = { };
	struct fi_info *hints;
	int ret;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, FI_EFA_FABRIC, domain_name);
	if (!hints)
		return -ENOMEM;
	hints->caps = dgram ? FI_MSG : FI_MSG | FI_TAGGED | FI_SOURCE;
	hints->mode = FI_MSG_PREFIX;
	hints->ep_attr->type = dgram ? FI_EP_DGRAM : FI_EP_RDM;
	ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (ret)
		return ret;
	prefix = info->ep_attr->msg_prefix_size;
	return fi_fabric(info->fabric_attr, &fabric, NULL) ?:
	       fi_domain(fabric, info, &domain, NULL) ?:
	       fi_av_open(domain, &av_attr, &av, NULL) ?:
	       fi_cq_open(domain, &cq_attr, &cq, NULL) ?:
	       fi_endpoint(domain, info, &ep, NULL) ?:
	       fi_ep_bind(ep, &av->fid, 0) ?:
	       fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) ?: fi_enable(ep);
}

static int __init echo_init(void)
{
	struct fi_efa_addr name;
	size_t len = sizeof(name);
	int ret, i;

	if (!domain_name)
		return 0;
	slots = kcalloc(nslots, sizeof(*slots), GFP_KERNEL);
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < nslots; i++) {
		slots[i].tagged = !dgram && i & 1;
		slots[i].buf = kvmalloc(max_size + ECHO_ROOM, GFP_KERNEL);
		if (!slots[i].buf) {
			ret = -ENOMEM;
			goto err;
		}
	}
	ask.buf = kvmalloc(max_size + ECHO_ROOM, GFP_KERNEL);
	ret = ask.buf ? echo_open() : -ENOMEM;
	ret = ret ?: fi_getname(&ep->fid, &name, &len);
	if (ret)
		goto err;
	bin2hex(name_hex, &name, sizeof(name));
	task = kthread_run(echo_thread, NULL, "kofi_echo");
	if (!IS_ERR(task))
		return 0;
	ret = PTR_ERR(task);
	task = NULL;
err:
	echo_close();
	return ret;
}
module_init(echo_init);

static void __exit echo_exit(void)
{
	if (task)
		kthread_stop(task);
	echo_close();
}
module_exit(echo_exit);

MODULE_DESCRIPTION("Sends each message back: the kernel's side of tests with libfabric");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI);
