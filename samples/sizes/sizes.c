// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each kind of operation, by size, between two endpoints of one domain: what
 * comes back must be what went out. Loading the module prints a table. Here one
 * thread waits for completions; samples/hello has a handler instead.
 */
#define pr_fmt(fmt) "kofi_sizes: " fmt

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <kofi/cm.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>
#include <kofi/tagged.h>

MODULE_DESCRIPTION("kOFI sample: a table of operations by size");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);

static char *provider;
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "name of the provider (default: whichever is there)");

static unsigned int count = 20;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "how often each operation is done (default: 20)");

#define SIZES_TIMEOUT	10000	/* ms */
#define SIZES_TAG		0x7069

static const size_t sz_sizes[] = { 1, 64, 4096, 65536, 1048576 };

struct sizes {
	struct fi_info		*info;
	struct fid_fabric	*fabric;
	struct fid_domain	*domain;
	struct fid_av		*av;
	struct fid_cq		*cq;
	struct fid_ep		*ping, *pong;
	fi_addr_t		to_ping, to_pong;
	struct fid_mr		*mr;		/* back, for ping to reach */
	struct fid_mr		*fast;		/* likewise, for a moment */
	size_t			size;		/* of the buffers */
	u8			*out, *in, *back;
};

/* How many completions; the first that failed decides. */
static int sz_wait(struct sizes *s, int n)
{
	struct fi_cq_err_entry error = { };
	struct fi_cq_entry entry;
	ssize_t ret;

	while (n--) {
		ret = fi_cq_sread(s->cq, &entry, 1, NULL, SIZES_TIMEOUT);
		if (ret == -FI_EAVAIL && fi_cq_readerr(s->cq, &error, 0) == 1)
			return -error.err;
		if (ret != 1)
			return ret == -EAGAIN ? -ETIMEDOUT : ret;
	}
	return 0;
}

/* --- operations: out goes to the other side, and what is there comes in --- */

static int sz_send(struct sizes *s, size_t len)
{
	return fi_recv(s->pong, s->back, len, NULL, FI_ADDR_UNSPEC, NULL) ?:
	       fi_send(s->ping, s->out, len, NULL, s->to_pong, NULL) ?:
	       sz_wait(s, 2) ?:
	       fi_recv(s->ping, s->in, len, NULL, FI_ADDR_UNSPEC, NULL) ?:
	       fi_send(s->pong, s->back, len, NULL, s->to_ping, NULL) ?:
	       sz_wait(s, 2);
}

static int sz_tagged(struct sizes *s, size_t len)
{
	return fi_trecv(s->pong, s->back, len, NULL, FI_ADDR_UNSPEC, SIZES_TAG,
			0, NULL) ?:
	       fi_tsend(s->ping, s->out, len, NULL, s->to_pong, SIZES_TAG,
			NULL) ?:
	       sz_wait(s, 2) ?:
	       fi_trecv(s->ping, s->in, len, NULL, FI_ADDR_UNSPEC, SIZES_TAG,
			0, NULL) ?:
	       fi_tsend(s->pong, s->back, len, NULL, s->to_ping, SIZES_TAG,
			NULL) ?:
	       sz_wait(s, 2);
}

/* An inject has no completion of its own. */
static int sz_inject(struct sizes *s, size_t len)
{
	return fi_recv(s->pong, s->back, len, NULL, FI_ADDR_UNSPEC, NULL) ?:
	       fi_inject(s->ping, s->out, len, s->to_pong) ?:
	       sz_wait(s, 1) ?:
	       fi_recv(s->ping, s->in, len, NULL, FI_ADDR_UNSPEC, NULL) ?:
	       fi_inject(s->pong, s->back, len, s->to_ping) ?:
	       sz_wait(s, 1);
}

static int sz_write(struct sizes *s, size_t len)
{
	int ret;

	ret = fi_write(s->ping, s->out, len, NULL, s->to_pong,
		       s->mr->base_addr, fi_mr_key(s->mr), NULL) ?:
	      sz_wait(s, 1);
	memcpy(s->in, s->back, len);
	return ret;
}

static int sz_read(struct sizes *s, size_t len)
{
	memcpy(s->back, s->out, len);
	return fi_read(s->ping, s->in, len, NULL, s->to_pong,
		       s->mr->base_addr, fi_mr_key(s->mr), NULL) ?:
	       sz_wait(s, 1);
}

/* What a ULP does for each request: register, let the peer write, take back. */
static int sz_register(struct sizes *s, size_t len)
{
	const struct kvec iov = { .iov_base = s->back, .iov_len = len };
	const struct fi_mr_attr attr = {
		.type		= FI_MR_KVEC,
		.mr_iov		= &iov,
		.iov_count	= 1,
		.access		= FI_REMOTE_WRITE,
	};
	int ret;

	ret = fi_mr_post_reg(s->fast, &attr, FI_COMPLETION) ?:
	      sz_wait(s, 1) ?:
	      fi_write(s->ping, s->out, len, NULL, s->to_pong,
		       s->fast->base_addr, fi_mr_key(s->fast), NULL) ?:
	      sz_wait(s, 1) ?:
	      fi_mr_post_inval(s->fast, FI_COMPLETION, NULL) ?:
	      sz_wait(s, 1);
	memcpy(s->in, s->back, len);
	return ret;
}

static const struct {
	const char	*name;
	u64		caps;
	bool		inject;
	int		(*run)(struct sizes *s, size_t len);
} sz_ops[] = {
	{ "send",		FI_MSG,		false,	sz_send },
	{ "inject",		FI_MSG,		true,	sz_inject },
	{ "tagged send",	FI_TAGGED,	false,	sz_tagged },
	{ "write",		FI_RMA,		false,	sz_write },
	{ "read",		FI_RMA,		false,	sz_read },
	{ "register+write",	FI_RMA,		false,	sz_register },
};

/* --- the table --- */

/* The best time, as the others say more about the machine. */
static int sz_row(struct sizes *s, int op, size_t len)
{
	u64 start, ns, best = U64_MAX;
	unsigned int i;
	size_t at;
	int ret;

	for (i = 0; i < count; i++) {
		for (at = 0; at < len; at++)
			s->out[at] = at + (at >> 8) + i + op;
		memset(s->in, 0xee, len);
		memset(s->back, 0xdd, len);
		start = ktime_get_ns();
		ret = sz_ops[op].run(s, len);
		ns = ktime_get_ns() - start;
		best = min(best, ns);
		if (!ret && memcmp(s->in, s->out, len))
			ret = -EBADMSG;
		if (ret) {
			pr_err("%s of %zu bytes: %s\n", sz_ops[op].name, len,
			       fi_strerror(-ret));
			return ret;
		}
	}
	pr_info("| %-15s | %8zu | %6u | %9llu | intact |\n", sz_ops[op].name,
		len, count, div_u64(best, NSEC_PER_USEC));
	return 0;
}

static int sz_table(struct sizes *s)
{
	size_t limit;
	int op, i, ret;

	pr_info("provider %s, domain %s\n", s->info->fabric_attr->prov_name,
		s->info->domain_attr->name);
	pr_info("| operation       |    bytes |  times | best (us) | data   |\n");
	pr_info("|-----------------|----------|--------|-----------|--------|\n");
	for (op = 0; op < ARRAY_SIZE(sz_ops); op++) {
		if (!(s->info->caps & sz_ops[op].caps))
			continue;
		limit = sz_ops[op].inject ? s->info->tx_attr->inject_size :
					    s->size;
		for (i = 0; i < ARRAY_SIZE(sz_sizes); i++) {
			ret = sz_sizes[i] <= limit ?
			      sz_row(s, op, sz_sizes[i]) : 0;
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* --- set-up --- */

/* Everything if it can be had, else messages alone. */
static int sz_find(struct sizes *s)
{
	struct fi_info *hints = fi_allocinfo();
	int ret = -ENOMEM;

	if (!hints)
		return ret;
	hints->ep_attr->type = FI_EP_RDM;
	if (provider) {
		hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
		if (!hints->fabric_attr->prov_name)
			goto out;
	}
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &s->info);
	if (ret == -ENODATA) {
		hints->caps = FI_MSG;
		ret = fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints,
				 &s->info);
	}
out:
	fi_freeinfo(hints);
	return ret;
}

static int sz_endpoint(struct sizes *s, struct fid_ep **ep, fi_addr_t *addr)
{
	u8 name[64];
	size_t len = sizeof(name);
	int ret;

	ret = fi_endpoint(s->domain, s->info, ep, NULL) ?:
	      fi_ep_bind(*ep, &s->av->fid, 0) ?:
	      fi_ep_bind(*ep, &s->cq->fid, FI_TRANSMIT | FI_RECV) ?:
	      fi_enable(*ep) ?:
	      fi_getname(&(*ep)->fid, name, &len);
	if (ret)
		return ret;
	ret = fi_av_insert(s->av, name, 1, addr, 0, NULL);
	return ret == 1 ? 0 : ret ?: -EADDRNOTAVAIL;
}

static int sz_regions(struct sizes *s)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages	= s->size / PAGE_SIZE + 1,
		.access		= FI_REMOTE_WRITE,
		.cq		= s->cq,
	};

	if (!(s->info->caps & FI_RMA))
		return 0;
	return fi_mr_reg(s->domain, s->back, s->size,
			 FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &s->mr,
			 NULL) ?:
	       fi_mr_alloc(s->domain, &attr, &s->fast, NULL);
}

static int sz_buffers(struct sizes *s)
{
	s->size = min(s->info->ep_attr->max_msg_size,
		      sz_sizes[ARRAY_SIZE(sz_sizes) - 1]);
	s->out = kvzalloc(s->size, GFP_KERNEL);
	s->in = kvzalloc(s->size, GFP_KERNEL);
	s->back = kvzalloc(s->size, GFP_KERNEL);
	return s->out && s->in && s->back ? 0 : -ENOMEM;
}

static int sz_open(struct sizes *s)
{
	struct fi_cq_attr cq_attr = {
		.format		= FI_CQ_FORMAT_CONTEXT,
		.wait_obj	= FI_WAIT_UNSPEC,
	};
	struct fi_av_attr av_attr = {};

	return sz_find(s) ?:
	       sz_buffers(s) ?:
	       fi_fabric(s->info->fabric_attr, &s->fabric, NULL) ?:
	       fi_domain(s->fabric, s->info, &s->domain, NULL) ?:
	       fi_av_open(s->domain, &av_attr, &s->av, NULL) ?:
	       fi_cq_open(s->domain, &cq_attr, &s->cq, NULL) ?:
	       sz_endpoint(s, &s->ping, &s->to_ping) ?:
	       sz_endpoint(s, &s->pong, &s->to_pong) ?:
	       sz_regions(s);
}

static void sz_close_one(struct fid *fid)
{
	int ret = fid ? fi_close(fid) : 0;

	if (ret)
		pr_err("close: %s\n", fi_strerror(-ret));
}

#define SIZES_CLOSE(obj) sz_close_one((obj) ? &(obj)->fid : NULL)

/* The endpoints first: after that nobody touches the buffers. */
static void sz_close(struct sizes *s)
{
	SIZES_CLOSE(s->ping);
	SIZES_CLOSE(s->pong);
	SIZES_CLOSE(s->fast);
	SIZES_CLOSE(s->mr);
	SIZES_CLOSE(s->cq);
	SIZES_CLOSE(s->av);
	SIZES_CLOSE(s->domain);
	SIZES_CLOSE(s->fabric);
	fi_freeinfo(s->info);
	kvfree(s->out);
	kvfree(s->in);
	kvfree(s->back);
	kfree(s);
}

static int __init sz_init(void)
{
	struct sizes *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	count = max(count, 1U);
	ret = sz_open(s) ?: sz_table(s);
	if (ret)
		pr_err("failed: %s\n", fi_strerror(-ret));
	sz_close(s);
	return fi_to_errno(ret);
}
module_init(sz_init);

static void __exit sz_exit(void)
{
}
module_exit(sz_exit);
