// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kernel's side of the tests of reads, writes and atomic operations with libfabric: a region
 * that a client accesses as it likes. The parameter region has its remote address and its key.
 *
 * A client writes its address to the parameter peer. The kernel reads or writes the client's memory
 * if that is asked for by the parameter go, as "OPERATION OFFSET LEN ADDR KEY": its own memory is
 * the region's at that offset. Atomic operations are "OPERATION OFFSET COUNT ADDR KEY TYPE OP": the
 * values to compare with are FAR_PART after the operands, and the old values FAR_PART after these.
 * The client must make progress meanwhile, so another process writes the parameter, which returns
 * the result.
 */
#define pr_fmt(fmt) "kofi_far: " fmt

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <kofi/atomic.h>
#include <kofi/cm.h>
#include <kofi/domain.h>
#include <kofi/efa_ext.h>
#include <kofi/endpoint.h>
#include <kofi/eq.h>
#include <kofi/rma.h>

#define FAR_PATIENCE	(120 * HZ)
#define FAR_PART	SZ_16K

static char *domain_name;
module_param_named(domain, domain_name, charp, 0444);
MODULE_PARM_DESC(domain, "name of the domain; without one the module does nothing");

static char name_hex[2 * sizeof(struct fi_efa_addr) + 1];
module_param_string(name, name_hex, sizeof(name_hex), 0444);
MODULE_PARM_DESC(name, "address of the endpoint in hexadecimal (read only)");

static unsigned int size = SZ_1M;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "size of the region in bytes");

static char region[60];
module_param_string(region, region, sizeof(region), 0444);
MODULE_PARM_DESC(region, "remote address and key of the region, and the longest atomic operation (read only)");

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
 * @local: the kernel's memory; of an atomic operation only the address counts
 * @rma: the client's memory; of an atomic operation the length is the number of elements
 * @type: type of an atomic operation
 * @op: the atomic operation
 * @err: positive errno
 * @done: completed with the operation
 */
struct far_op {
	struct kvec		local;
	struct fi_rma_iov	rma;
	u32			type;
	u32			op;
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

/* Return: as a data call; or 1 if there is no such atomic operation. */
static ssize_t far_post_atomic(struct far_op *op, const char *what, fi_addr_t to)
{
	void *local = op->local.iov_base;
	const struct fi_ioc ioc = { local, op->rma.len }, cmp = { local + FAR_PART, op->rma.len };
	struct fi_ioc old = { local + 2 * FAR_PART, op->rma.len };
	const struct fi_rma_ioc rma = { op->rma.addr, op->rma.len, op->rma.key };
	const struct fi_msg_atomic msg = {
		.msg_iov = &ioc, .iov_count = 1, .addr = to, .rma_iov = &rma, .rma_iov_count = 1,
		.datatype = op->type, .op = op->op, .context = op,
	};

	if (!strcmp(what, "atomic"))
		return fi_atomicmsg(ep, &msg, FI_COMPLETION);
	if (!strcmp(what, "atomicdc"))
		return fi_atomicmsg(ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	if (!strcmp(what, "fetch"))
		return fi_fetch_atomicmsg(ep, &msg, &old, NULL, 1, FI_COMPLETION);
	if (!strcmp(what, "compare"))
		return fi_compare_atomicmsg(ep, &msg, &cmp, NULL, 1, &old, NULL, 1, FI_COMPLETION);
	return 1;
}

static int far_carry_out(struct far_op *op, const char *what, fi_addr_t to)
{
	unsigned long end = jiffies + FAR_PATIENCE;
	ssize_t ret;

	init_completion(&op->done);
	do {
		ret = far_post_atomic(op, what, to);
		if (ret == 1)
			ret = far_post(op, what, to);
		if (ret == -EAGAIN)
			schedule_timeout_uninterruptible(1);
	} while (ret == -EAGAIN && time_before(jiffies, end));
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
	u32 type = 0, code = 0;
	char what[16];
	int ret, n;

	if (!ep || !memory)
		return -ENODEV;
	n = sscanf(val, "%15s %llu %llu %llu %llu %u %u", what, &off, &len, &addr, &key, &type,
		   &code);
	if (n < 5 || off > size || len > size - off ||
	    (n == 7 && (off + 3 * FAR_PART > size || len > FAR_PART)))
		return -EINVAL;
	op = kzalloc(sizeof(*op), GFP_KERNEL);
	if (!op)
		return -ENOMEM;
	op->local = (struct kvec) { memory + off, len };
	op->rma = (struct fi_rma_iov) { addr, len, key };
	op->type = type;
	op->op = code;
	mutex_lock(&far_lock);
	to = client;
	mutex_unlock(&far_lock);
	/* Other parameters can be used meanwhile. */
	kernel_param_unlock(THIS_MODULE);
	ret = far_carry_out(op, what, to);
	kernel_param_lock(THIS_MODULE);
	kfree(op);
	/* A client may ask for atomic operations that don't exist. */
	if (ret && ret != -EOPNOTSUPP) {
		pr_info("%s: %d\n", val, ret);
		failed++;
	}
	return ret;
}

static const struct kernel_param_ops far_go_ops = {
	.set	= far_go,
};
module_param_cb(go, &far_go_ops, NULL, 0200);
MODULE_PARM_DESC(go, "OPERATION OFFSET LEN ADDR KEY [TYPE OP]: read, write, writedata, atomic, atomicdc, fetch or compare of the client's memory");

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
	hints->caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_SOURCE;
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
	size_t len = sizeof(name), most = 0, most_len = sizeof(most);
	int ret;

	if (!domain_name)
		return 0;
	memory = kvzalloc(size, GFP_KERNEL);
	if (!memory)
		return -ENOMEM;
	ret = far_open() ?: fi_getname(&ep->fid, &name, &len) ?:
	      fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MAX_ATOMIC_SIZE, &most, &most_len);
	if (ret)
		goto err;
	bin2hex(name_hex, &name, sizeof(name));
	snprintf(region, sizeof(region), "%llu %llu %zu", mr->base_addr, fi_mr_key(mr), most);
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

MODULE_DESCRIPTION("Memory for peers: the kernel's side of tests with libfabric");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI);
