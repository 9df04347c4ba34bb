// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One operation of each kind that libfabric's efa provider has, between two endpoints of this
 * process: messages of several lengths, tagged or not, writes, reads, atomics, with and without
 * delivery complete. Every byte that arrives is compared. Public API only, of libfabric 1.14
 * or later.
 *
 * fi_kinds DOMAIN [msg|rma|atomic|cost|cost-device|cost-packets]...
 *
 * Which sub-protocols are taken is up to libfabric's variables, FI_EFA_*. "cost" and so on are for
 * bench/plugin.c, which counts one end's instructions: the program marks where a window begins
 * and ends and when it is paused, and prints a line after the windows of each kind of operation.
 */
#include <linux/types.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_SIZE	(2u << 20)
#define PATIENCE_S	90
#define BATCH		16
/* In the context of an operation whose completion says nothing but that it is over. */
#define LOCAL		((void *)1)
#define REMOTE		((void *)2)

enum side { NEAR, FAR, SIDES };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av[SIDES];
static struct fid_cq *cq[SIDES];
static struct fid_ep *ep[SIDES];
static struct fid_mr *mr[SIDES];
/* Of the end, as the other one has it. */
static fi_addr_t addr[SIDES];
static unsigned char *buf[SIDES];
static unsigned int local_done, remote_done;

static void must(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static void open_side(enum side side)
{
	const __u64 access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
				FI_REMOTE_WRITE;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 4096 };
	/* libfabric 1.17 has no vector for two endpoints. */
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	must("fi_av_open", fi_av_open(domain, &av_attr, &av[side], NULL));
	must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq[side], NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &ep[side], NULL));
	must("bind av", fi_ep_bind(ep[side], &av[side]->fid, 0));
	must("bind cq", fi_ep_bind(ep[side], &cq[side]->fid, FI_SEND | FI_RECV));
	must("fi_enable", fi_enable(ep[side]));
	buf[side] = aligned_alloc(4096, MAX_SIZE);
	if (!buf[side])
		exit(1);
	memset(buf[side], 0, MAX_SIZE);
	must("fi_mr_reg", fi_mr_reg(domain, buf[side], MAX_SIZE, access, 0, 0, 0, &mr[side],
				    NULL));
}

static void introduce(enum side side)
{
	char name[64];
	size_t len = sizeof(name);

	must("fi_getname", fi_getname(&ep[side]->fid, name, &len));
	if (fi_av_insert(av[!side], name, 1, &addr[side], 0, NULL) != 1)
		must("fi_av_insert", -FI_EINVAL);
}

static void open_all(const char *name)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("efa");
	hints->domain_attr->name = strdup(name);
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	open_side(NEAR);
	open_side(FAR);
	introduce(NEAR);
	introduce(FAR);
}

static void poll_side(enum side side)
{
	struct fi_cq_tagged_entry entry[BATCH];
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(cq[side], entry, BATCH), i;

	for (i = 0; i < ret; i++) {
		/* Of what a peer did the context is undefined. */
		if (entry[i].flags & (FI_REMOTE_WRITE | FI_REMOTE_READ))
			continue;
		local_done += entry[i].op_context == LOCAL;
		remote_done += entry[i].op_context == REMOTE;
	}
	if (ret != -FI_EAVAIL)
		return;
	fi_cq_readerr(cq[side], &err, 0);
	fprintf(stderr, "completion in error: %s (%d)\n", fi_strerror(err.err), err.prov_errno);
	exit(1);
}

static void progress(void)
{
	poll_side(NEAR);
	poll_side(FAR);
}

/* Posting may have to wait until the peer is known, which takes progress. */
#define POST(what, call) do {				\
	long post_ret = (call);				\
	time_t post_until = 0;				\
	while (post_ret == -FI_EAGAIN) {		\
		if (!post_until)			\
			post_until = time(NULL) + PATIENCE_S;	\
		if (time(NULL) > post_until)		\
			break;				\
		progress();				\
		post_ret = (call);			\
	}						\
	must(what, post_ret);				\
} while (0)

static void finish(const char *what, size_t len, unsigned int local, unsigned int remote)
{
	time_t until = time(NULL) + PATIENCE_S;

	while (local_done < local || remote_done < remote) {
		progress();
		if (time(NULL) <= until)
			continue;
		fprintf(stderr, "%s of %zu bytes doesn't end\n", what, len);
		exit(1);
	}
	local_done = 0;
	remote_done = 0;
}

static void fill(void)
{
	static unsigned int seed;
	size_t i;

	seed++;
	for (i = 0; i < MAX_SIZE; i++)
		buf[NEAR][i] = (unsigned char)(i * 7 + i / 251 + seed);
	memset(buf[FAR], 0, MAX_SIZE);
}

static void same(const char *what, size_t len)
{
	if (!memcmp(buf[NEAR], buf[FAR], len))
		return;
	fprintf(stderr, "%s of %zu bytes arrived different\n", what, len);
	exit(1);
}

static void exchange(size_t len, bool tagged, __u64 flags)
{
	struct iovec iov = { buf[NEAR], len };
	void *desc = fi_mr_desc(mr[NEAR]), *far = fi_mr_desc(mr[FAR]);
	struct fi_msg msg = { &iov, &desc, 1, addr[FAR], LOCAL, 0x12345678 };
	struct fi_msg_tagged tmsg = { &iov, &desc, 1, addr[FAR], 0x7a67, 0, LOCAL, 0x12345678 };

	fill();
	if (tagged) {
		POST("fi_trecv", fi_trecv(ep[FAR], buf[FAR], MAX_SIZE, far, FI_ADDR_UNSPEC,
					  0x7a67, 0, REMOTE));
		POST("fi_tsendmsg", fi_tsendmsg(ep[NEAR], &tmsg, flags | FI_COMPLETION));
	} else {
		POST("fi_recv", fi_recv(ep[FAR], buf[FAR], MAX_SIZE, far, FI_ADDR_UNSPEC,
					REMOTE));
		POST("fi_sendmsg", fi_sendmsg(ep[NEAR], &msg, flags | FI_COMPLETION));
	}
	finish("a message", len, 1, 1);
	same("a message", len);
}

static void messages(void)
{
	static const size_t lens[] = { 8, 3000, 9000, 70000, 1u << 20, 2u << 20 };
	static const __u64 flags[] = { 0, FI_REMOTE_CQ_DATA, FI_DELIVERY_COMPLETE };
	unsigned int i, k;

	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++)
		for (k = 0; k < 3; k++) {
			exchange(lens[i], false, flags[k]);
			exchange(lens[i], true, flags[k]);
		}
}

static void write_one(size_t len, __u64 flags)
{
	struct iovec iov = { buf[NEAR], len };
	struct fi_rma_iov rma = { (uintptr_t)buf[FAR], len, fi_mr_key(mr[FAR]) };
	void *desc = fi_mr_desc(mr[NEAR]);
	struct fi_msg_rma msg = { &iov, &desc, 1, addr[FAR], &rma, 1, LOCAL, 0x87654321 };

	fill();
	POST("fi_writemsg", fi_writemsg(ep[NEAR], &msg, flags | FI_COMPLETION));
	finish("a write", len, 1, 0);
	/* The near end may be told before it has arrived. */
	if (!(flags & FI_DELIVERY_COMPLETE)) {
		time_t until = time(NULL) + PATIENCE_S;

		while (memcmp(buf[NEAR], buf[FAR], len) && time(NULL) <= until)
			progress();
	}
	same("a write", len);
}

static void read_one(size_t len)
{
	fill();
	POST("fi_read", fi_read(ep[FAR], buf[FAR], len, fi_mr_desc(mr[FAR]), addr[NEAR],
				(uintptr_t)buf[NEAR], fi_mr_key(mr[NEAR]), LOCAL));
	finish("a read", len, 1, 0);
	same("a read", len);
}

static void rma(void)
{
	static const size_t lens[] = { 8, 3000, 70000, 1u << 20 };
	unsigned int i;

	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		write_one(lens[i], 0);
		write_one(lens[i], FI_DELIVERY_COMPLETE);
		write_one(lens[i], FI_REMOTE_CQ_DATA);
		read_one(lens[i]);
	}
}

static void atomic_sum(__u64 flags, __u64 sum)
{
	__u64 *operand = (__u64 *)buf[NEAR];
	const __u64 *target = (__u64 *)buf[FAR];
	struct fi_rma_ioc rma = { (uintptr_t)buf[FAR], 1, fi_mr_key(mr[FAR]) };
	void *desc = fi_mr_desc(mr[NEAR]);
	struct fi_ioc ioc = { operand, 1 };
	struct fi_msg_atomic msg = { &ioc, &desc, 1, addr[FAR], &rma, 1, FI_UINT64, FI_SUM, LOCAL,
				     0 };
	time_t until = time(NULL) + PATIENCE_S;

	*operand = 5;
	POST("fi_atomicmsg", fi_atomicmsg(ep[NEAR], &msg, flags | FI_COMPLETION));
	finish("an atomic", 8, 1, 0);
	while (__atomic_load_n(target, __ATOMIC_RELAXED) != sum && time(NULL) <= until)
		progress();
	if (*target != sum)
		must("the sum", -FI_EIO);
}

static void atomics(void)
{
	__u64 *operand = (__u64 *)buf[NEAR], *compare = operand + 1, *result = operand + 2;
	__u64 *target = (__u64 *)buf[FAR];
	void *desc = fi_mr_desc(mr[NEAR]);

	*target = 1;
	atomic_sum(0, 6);
	atomic_sum(FI_DELIVERY_COMPLETE, 11);
	POST("fi_fetch_atomic", fi_fetch_atomic(ep[NEAR], operand, 1, desc, result, desc, addr[FAR],
						(uintptr_t)target, fi_mr_key(mr[FAR]), FI_UINT64,
						FI_SUM, LOCAL));
	finish("a fetching atomic", 8, 1, 0);
	if (*result != 11 || *target != 16)
		must("what was fetched", -FI_EIO);
	*compare = 16;
	*operand = 77;
	POST("fi_compare_atomic", fi_compare_atomic(ep[NEAR], operand, 1, desc, compare, desc,
						    result, desc, addr[FAR], (uintptr_t)target,
						    fi_mr_key(mr[FAR]), FI_UINT64, FI_CSWAP,
						    LOCAL));
	finish("a comparing atomic", 8, 1, 0);
	if (*result != 16 || *target != 77)
		must("what was compared", -FI_EIO);
}

/* --- what messages cost --- */

/* The first window of a row warms up. */
#define WINDOWS		6
#define DEVICE_US	20000
#define TAG		7
#define KNOWN_ROUNDS	100000

enum mark { BEGIN = 1, PAUSE, RESUME, END };

/* A nop that bench/plugin.c knows. */
#define MARK(what) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80; .long 0x6b620000 + %c0" : : "i"(what) : "memory")

static void post_recvs(bool tagged, size_t len, unsigned int n)
{
	void *desc = fi_mr_desc(mr[FAR]);
	unsigned int i;

	for (i = 0; i < n; i++)
		if (tagged)
			POST("fi_trecv", fi_trecv(ep[FAR], buf[FAR], len, desc, FI_ADDR_UNSPEC,
						  TAG, 0, REMOTE));
		else
			POST("fi_recv", fi_recv(ep[FAR], buf[FAR], len, desc, FI_ADDR_UNSPEC,
						REMOTE));
}

static void post_sends(bool tagged, size_t len, unsigned int n)
{
	void *desc = fi_mr_desc(mr[NEAR]);
	unsigned int i;

	for (i = 0; i < n; i++)
		if (tagged)
			POST("fi_tsend", fi_tsend(ep[NEAR], buf[NEAR], len, desc, addr[FAR], TAG,
						  LOCAL));
		else
			POST("fi_send", fi_send(ep[NEAR], buf[NEAR], len, desc, addr[FAR], LOCAL));
}

/* Count the instructions of @call only if @side is the measured end, @counted. */
#define COUNT(side, counted, call) do {	\
	if ((side) == (counted))	\
		MARK(RESUME);		\
	call;				\
	if ((side) == (counted))	\
		MARK(PAUSE);		\
} while (0)

/*
 * A window: what one end does for a batch of messages. The soft device has time between the
 * ends' turns, so that few looks at completion queues are in vain.
 */
static void cost_window(enum side counted, bool tagged, size_t len, unsigned int n)
{
	MARK(BEGIN);
	MARK(PAUSE);
	COUNT(FAR, counted, post_recvs(tagged, len, n));
	COUNT(NEAR, counted, post_sends(tagged, len, n));
	while (local_done < n || remote_done < n) {
		usleep(DEVICE_US);
		COUNT(FAR, counted, poll_side(FAR));
		usleep(DEVICE_US);
		COUNT(NEAR, counted, poll_side(NEAR));
	}
	MARK(END);
	local_done = 0;
	remote_done = 0;
}

static void cost_row(enum side counted, bool tagged, size_t len)
{
	unsigned int n = len < 65536 ? BATCH : 1, w;

	for (w = 0; w < WINDOWS; w++)
		cost_window(counted, tagged, len, n);
	same("the last message", len);
	printf("cost %u.%u %s%s %zu %u\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()),
	       tagged ? "t" : "", counted == FAR ? "recv" : "send", len, n);
	fflush(stdout);
}

static void post_fars(bool read, size_t len, unsigned int n)
{
	void *desc = fi_mr_desc(mr[NEAR]);
	const __u64 key = fi_mr_key(mr[FAR]);
	unsigned int i;

	for (i = 0; i < n; i++)
		if (read)
			POST("fi_read", fi_read(ep[NEAR], buf[NEAR], len, desc, addr[FAR],
						(uintptr_t)buf[FAR], key, LOCAL));
		else
			POST("fi_write", fi_write(ep[NEAR], buf[NEAR], len, desc, addr[FAR],
						  (uintptr_t)buf[FAR], key, LOCAL));
}

/* The same for reads and writes, of which the other end hears nothing or packets. */
static void cost_far_window(enum side counted, bool read, size_t len, unsigned int n)
{
	MARK(BEGIN);
	MARK(PAUSE);
	COUNT(NEAR, counted, post_fars(read, len, n));
	while (local_done < n) {
		usleep(DEVICE_US);
		COUNT(FAR, counted, poll_side(FAR));
		usleep(DEVICE_US);
		COUNT(NEAR, counted, poll_side(NEAR));
	}
	MARK(END);
	local_done = 0;
}

static void cost_far_row(enum side counted, bool read, size_t len, const char *kind)
{
	unsigned int w;

	for (w = 0; w < WINDOWS; w++)
		cost_far_window(counted, read, len, BATCH);
	same("the last read or write", len);
	printf("cost %u.%u %s %zu %u\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()), kind, len,
	       BATCH);
	fflush(stdout);
}

/* Reads and writes by the device, or by packets: as the library has been told. */
static void far_costs(bool device)
{
	write_one(8, 0);
	read_one(8);
	fill();
	if (device) {
		cost_far_row(NEAR, false, 4096, "device_write");
		cost_far_row(NEAR, true, 4096, "device_read");
		return;
	}
	cost_far_row(NEAR, false, 1024, "write_send");
	cost_far_row(FAR, false, 1024, "write_recv");
	cost_far_row(NEAR, true, 1024, "read_send");
	cost_far_row(FAR, true, 1024, "read_recv");
}

/* Two costs that are known beforehand: a loop of two instructions, and system calls. */
static void cost_known(void)
{
	unsigned long rounds = KNOWN_ROUNDS;
	unsigned int i;

	MARK(BEGIN);
	__asm__ volatile("1: dec %0; jnz 1b" : "+r"(rounds) : : "cc");
	for (i = 0; i < BATCH; i++)
		getppid();
	MARK(END);
	printf("known %u %u\n", 2 * KNOWN_ROUNDS, BATCH);
}

static void costs(void)
{
	static const size_t lens[] = { 8, 1024, 1u << 20 };
	unsigned int i;

	cost_known();

	/* The ends learn of each other what they are capable of. */
	exchange(8, false, 0);
	exchange(8, true, 0);
	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		fill();
		cost_row(NEAR, false, lens[i]);
		cost_row(FAR, false, lens[i]);
		cost_row(NEAR, true, lens[i]);
		cost_row(FAR, true, lens[i]);
	}
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 2) {
		fprintf(stderr, "usage: fi_kinds DOMAIN KIND...\n");
		return 2;
	}
	open_all(argv[1]);
	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "msg"))
			messages();
		else if (!strcmp(argv[i], "rma"))
			rma();
		else if (!strcmp(argv[i], "atomic"))
			atomics();
		else if (!strcmp(argv[i], "cost"))
			costs();
		else if (!strcmp(argv[i], "cost-device") || !strcmp(argv[i], "cost-packets"))
			far_costs(!strcmp(argv[i], "cost-device"));
		printf("done: %s\n", argv[i]);
		fflush(stdout);
	}
	for (i = 0; i < SIDES; i++) {
		fi_close(&ep[i]->fid);
		fi_close(&mr[i]->fid);
		fi_close(&cq[i]->fid);
		fi_close(&av[i]->fid);
	}
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	return 0;
}
