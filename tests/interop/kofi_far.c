// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kernel's side of the tests of reads and writes with libfabric: a region of which the
 * parameter region has the remote address and the key, and that a client reads and writes as it
 * likes.
 *
 * A client writes its address to the parameter peer. The kernel reads or writes the client's memory
 * if that is asked for by the parameter go, as "OPERATION OFFSET LEN ADDR KEY": its own memory is
 * the region's at that offset. The client must make progress meanwhile, so another process writes
 * the parameter, which returns the result.
 */
#define pr_fmt(fmt) "kofi_far: " fmt

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <kofi/cm.h>
#include <kofi/domain.h>
#include <kofi/efa_ext.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>

#define FAR_PATIENCE	(120 * HZ)

static char *domain_name;
module_param_named(domain, domain_name, charp, 0444);
MODULE_PARM_DESC(domain, "name of the domain; without one the module does nothing");

static char name_hex[2 * sizeof(struct fi_efa_addr) + 1];
module_param_string(name, name_hex, sizeof(name_hex), 0444);
MODULE_PARM_DESC(name, "address of the endpoint in hexadecimal (read only)");

static unsigned int size = SZ_1M;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "size of the region in bytes");

static char region[40];
module_param_string(region, region, sizeof(region), 0444);
MODULE_PARM_DESC(region, "remote address and key of the region (read only)");

static unsigned int told, strange, failed;
static unsigned long last;
module_param(told, uint, 0444);
MODULE_PARM_DESC(told, "number of writes with data by clients (read only)");
module_param(last, ulong, 0444);
MODULE_PARM_DESC(last, "data of the last of them (read only)");
module_param(strange, uint, 0444);
MODULE_PARM_DESC(strange, "number of those whose writer is in no address vector (read only)");
module_param(failed, uint, 0444);
MODULE_PARM_DESC(failed, "number of the kernel's operations that failed (read only)");

/**
 * struct far_op - an operation of the kernel
 * @local: the kernel's memory
 * @rma: the client's memory
 * @err: positive errno
 * @done: completed with the operation
 */
struct far_op {
	struct kvec		local;
	struct fi_rma_iov	rma;
	int			err;
	struct completion	done;
};

static DEFINE_MUTEX(far_lock);	/* protects client */
static fi_addr_t client = FI_ADDR_NOTAVAIL;
static void *memory;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mr;
static struct task_struct *task;

static int far_set_peer(const char *val, const struct kernel_param *kp)
{
	struct fi_efa_addr addr;
	int ret = -EINVAL;

	if (!av)
		return -ENODEV;
	if (hex2bin((u8 *)&addr, val, sizeof(addr)))
		return -EINVAL;
	/* libfabric uses this field for a pointer. */
	addr.reserved = 0;
	mutex_lock(&far_lock);
	if (fi_av_insert(av, &addr, 1, &client, 0, NULL) == 1)
		ret = 0;
	mutex_unlock(&far_lock);
	return ret;
}

static const struct kernel_param_ops far_peer_ops = {
	.set	= far_set_peer,
};
module_param_cb(peer, &far_peer_ops, NULL, 0200);
MODULE_PARM_DESC(peer, "address of the client, in hexadecimal");

static ssize_t far_post(struct far_op *op, const char *what, fi_addr_t to)
{
	struct fi_msg_rma msg = {
		.addr = to, .rma_iov = &op->rma, .rma_iov_count = 1, .context = op,
		.data = op->rma.len,
	};
	const bool read = !strcmp(what, "read");
	u64 flags = FI_COMPLETION;

	if (!strcmp(what, "writedata"))
		flags |= FI_REMOTE_CQ_DATA;
	else if (!read)
		flags |= FI_DELIVERY_COMPLETE;
	iov_iter_kvec(&msg.msg_iter, read ? ITER_DEST : ITER_SOURCE, &op->local, 1,
		      op->local.iov_len);
	return read ? fi_readmsg(ep, &msg, flags) : fi_writemsg(ep, &msg, flags);
}

static int far_carry_out(struct far_op *op, const char *what, fi_addr_t to)
{
	unsigned long end = jiffies + FAR_PATIENCE;
	ssize_t ret;

	init_completion(&op->done);
	while ((ret = far_post(op, what, to)) == -EAGAIN && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	if (ret)
		return ret;
	wait_for_completion(&op->done);
	return -op->err;
}

static int far_go(const char *val, const struct kernel_param *kp)
{
	unsigned long long off, len, addr, key;
	struct far_op *op;
	fi_addr_t to;
	char what[16];
	int ret;

	if (!ep || !memory)
		return -ENODEV;
	if (sscanf(val, "%15s %llu %llu %llu %llu", what, &off, &len, &addr, &key) != 5 ||
	    off > size || len > size - off)
		return -EINVAL;
	op = kzalloc(sizeof(*op), GFP_KERNEL);
	if (!op)
		return -ENOMEM;
	op->local = (struct kvec) { memory + off, len };
	op->rma = (struct fi_rma_iov) { addr, len, key };
	mutex_lock(&far_lock);
	to = client;
	mutex_unlock(&far_lock);
	/* Other parameters can be used meanwhile. */
	kernel_param_unlock(THIS_MODULE);
	ret = far_carry_out(op, what, to);
	kernel_param_lock(THIS_MODULE);
	kfree(op);
	if (ret) {
		pr_info("%s: %d\n", val, ret);
		failed++;
	}
	return ret;
}

static const struct kernel_param_ops far_go_ops = {
	.set	= far_go,
};
module_param_cb(go, &far_go_ops, NULL, 0200);
MODULE_PARM_DESC(go, "OPERATION OFFSET LEN ADDR KEY: read, write or writedata of the client's memory");

static void far_done(const struct fi_cq_data_entry *entry, fi_addr_t src)
{
	struct far_op *op = entry->op_context;

	if (entry->flags & FI_REMOTE_WRITE) {
		last = entry->data;
		strange += src == FI_ADDR_NOTAVAIL;
		told++;
		return;
	}
	complete(&op->done);
}

static void far_error(void)
{
	struct fi_cq_err_entry error = { };
	struct far_op *op;

	if (fi_cq_readerr(cq, &error, 0) != 1)
		return;
	op = error.op_context;
	op->err = error.err;
	complete(&op->done);
}

static int far_thread(void *unused)
{
	struct fi_cq_data_entry entry;
	fi_addr_t src;
	ssize_t ret;

	while (!kthread_should_stop()) {
		ret = fi_cq_sreadfrom(cq, &entry, 1, &src, NULL, 20);
		if (ret == 1)
			far_done(&entry, src);
		else if (ret == -FI_EAVAIL)
			far_error();
	}
	return 0;
}

static void far_close(void)
{
	if (ep)
		fi_close(&ep->fid);
	if (mr)
		fi_close(&mr->fid);
	if (cq)
		fi_close(&cq->fid);
	if (av)
		fi_close(&av->fid);
	if (domain)
		fi_close(&domain->fid);
	if (fabric)
		fi_close(&fabric->fid);
	fi_freeinfo(info);
	kvfree(memory);
}

static int far_open(void)
{
	struct fi_cq_attr cq_attr = {
		.format		= FI_CQ_FORMAT_DATA,
		.wait_obj	= FI_WAIT_UNSPEC,
	};
	struct fi_av_attr av_attr = { };
	struct fi_info *hints;
	int ret;

	hints = fi_allocinfo_for(FI_EFA_PROV_NAME, FI_EFA_FABRIC, domain_name);
	if (!hints)
		return -ENOMEM;
	hints->caps = FI_MSG | FI_RMA | FI_SOURCE;
	ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	return ret ?: fi_fabric(info->fabric_attr, &fabric, NULL) ?:
	       fi_domain(fabric, info, &domain, NULL) ?:
	       fi_av_open(domain, &av_attr, &av, NULL) ?:
	       fi_cq_open(domain, &cq_attr, &cq, NULL) ?:
	       fi_mr_reg(domain, memory, size, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr,
			 NULL) ?:
	       fi_endpoint(domain, info, &ep, NULL) ?:
	       fi_ep_bind(ep, &av->fid, 0) ?:
	       fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) ?: fi_enable(ep);
}

static int __init far_init(void)
{
	struct fi_efa_addr name;
	size_t len = sizeof(name);
	int ret;

	if (!domain_name)
		return 0;
	memory = kvzalloc(size, GFP_KERNEL);
	if (!memory)
		return -ENOMEM;
	ret = far_open() ?: fi_getname(&ep->fid, &name, &len);
	if (ret)
		goto err;
	bin2hex(name_hex, &name, sizeof(name));
	snprintf(region, sizeof(region), "%llu %llu", mr->base_addr, fi_mr_key(mr));
	task = kthread_run(far_thread, NULL, "kofi_far");
	if (!IS_ERR(task))
		return 0;
	ret = PTR_ERR(task);
err:
	far_close();
	return ret;
}
module_init(far_init);

static void __exit far_exit(void)
{
	if (!domain_name)
		return;
	kthread_stop(task);
	far_close();
}
module_exit(far_exit);

MODULE_DESCRIPTION("Memory to read and write: the kernel's side of tests with libfabric");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI);
