/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Extensions of the EFA provider to the common API. */
#ifndef KOFI_EFA_EXT_H
#define KOFI_EFA_EXT_H

#include <linux/build_bug.h>
#include <kofi/endpoint.h>
#include <kofi/fabric.h>

/* Names for fi_fabric_attr. */
#define FI_EFA_PROV_NAME	"efa"
#define FI_EFA_FABRIC		"efa"
#define FI_EFA_FABRIC_DIRECT	"efa-direct"

#define FI_EFA_GID_LEN		16

#define FI_PROV_SPECIFIC_EFA	(0xefa << 16)

/**
 * enum fi_efa_option - EFA's options of an endpoint, of level FI_OPT_ENDPOINT
 * @FI_OPT_EFA_RNR_RETRY: size_t: number of times that the device retries a peer without
 *	a posted receive. On fabric efa-direct the operation then fails with EAGAIN and without
 *	effect; FI_EFA_RNR_INFINITE, the default, has no limit. On fabric efa the packet is sent
 *	again after a delay. Set it before fi_enable(), else -FI_EOPBADSTATE; -EOPNOTSUPP on
 *	a device without a limit. fi_efa(7)
 * @FI_OPT_EFA_EMULATED_READ: bool, fabric efa: reads are carried out by packets, whatever the
 *	peer's device can do. Read-only. fi_efa(7)
 * @FI_OPT_EFA_EMULATED_WRITE: the same for writes
 * @FI_OPT_EFA_EMULATED_ATOMICS: true, because the device has no atomics
 * @FI_OPT_EFA_USE_DEVICE_RDMA: bool, fabric efa: reads, writes and long messages go by RDMA where
 *	both ends' devices can; if false, they go by packets. The default is true if
 *	the device can read; setting it on another device fails with -EOPNOTSUPP. Set it
 *	before fi_enable(), else -FI_EOPBADSTATE. fi_efa(7)
 * @FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES: bool: the device receives each aligned block of
 *	128 bytes in order. The driver's kernel verbs can't be asked for it, so it is false, and
 *	setting it fails with -EOPNOTSUPP. fi_efa(7)
 * @FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES: bool: the same for the device's writes
 * @FI_OPT_EFA_HOMOGENEOUS_PEERS: bool, fabric efa: all peers have the features of this
 *	endpoint, so that the first operation doesn't wait for a handshake. The default is
 *	false. Set it before fi_enable(), else -FI_EOPBADSTATE. fi_efa(7)
 * @FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV: bool: writes with data take no receive. The driver's
 *	kernel verbs have no such queue pairs, so it is false, and setting it fails with
 *	-EOPNOTSUPP. fi_efa(7)
 * @FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE: size_t, fabric efa: length in bytes of the shortest
 *	message of this endpoint that its receiver reads by RDMA, if both ends' devices can. A
 *	message that fits into one packet is never read, and with SIZE_MAX none is. The default
 *	is the module's parameter inter_min_read_message_size when the endpoint is opened. Peers
 *	in the same kernel aren't concerned, unless they use the device. Set it before
 *	fi_enable(), else -FI_EOPBADSTATE; -EOPNOTSUPP on a device that can't read. Kernel only:
 *	libfabric has only a variable for all endpoints
 *
 * The numbers are libfabric's, except those from -FI_PROV_SPECIFIC_EFA + 0x8000 on, which
 * libfabric doesn't have.
 */
enum fi_efa_option {
	FI_OPT_EFA_RNR_RETRY = -FI_PROV_SPECIFIC_EFA,
	FI_OPT_EFA_EMULATED_READ = -FI_PROV_SPECIFIC_EFA + 1,
	FI_OPT_EFA_EMULATED_WRITE = -FI_PROV_SPECIFIC_EFA + 2,
	FI_OPT_EFA_EMULATED_ATOMICS = -FI_PROV_SPECIFIC_EFA + 3,
	FI_OPT_EFA_USE_DEVICE_RDMA = -FI_PROV_SPECIFIC_EFA + 4,
	FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES = -FI_PROV_SPECIFIC_EFA + 5,
	FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES = -FI_PROV_SPECIFIC_EFA + 6,
	FI_OPT_EFA_HOMOGENEOUS_PEERS = -FI_PROV_SPECIFIC_EFA + 7,
	FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV = -FI_PROV_SPECIFIC_EFA + 8,
	FI_OPT_EFA_INTER_MIN_READ_MESSAGE_SIZE = -FI_PROV_SPECIFIC_EFA + 0x8000,
};

#define FI_EFA_RNR_INFINITE	7

/* A common option, fi_endpoint(3), which only EFA has: bool, fabric efa. */
enum {
	FI_OPT_SHARED_MEMORY_PERMITTED	= 11,
};

/**
 * struct fi_efa_addr - an address of format FI_ADDR_EFA
 * @gid: GID of the device
 * @qpn: number of the queue pair
 * @pad: 0
 * @qkey: Q_Key of the queue pair, chosen anew for each queue pair
 * @reserved: 0. libfabric stores a pointer of the process here
 *
 * fi_getname() returns and fi_av_insert() takes such addresses. Layout and length are
 * libfabric's, so that kernel and user space can exchange addresses. Numbers are in host
 * byte order, as in libfabric.
 */
struct fi_efa_addr {
	u8	gid[FI_EFA_GID_LEN];
	u16	qpn;
	u16	pad;
	u32	qkey;
	u64	reserved;
};

static_assert(sizeof(struct fi_efa_addr) == 32);

struct fid_mr;

/* Name of struct fi_efa_ops_domain for fi_open_ops() of a domain. */
#define FI_EFA_DOMAIN_OPS	"efa domain ops"

/* Bits of fi_efa_mr_attr.ic_id_validity. */
enum {
	FI_EFA_MR_ATTR_RECV_IC_ID	= 1 << 0,
	FI_EFA_MR_ATTR_RDMA_READ_IC_ID	= 1 << 1,
	FI_EFA_MR_ATTR_RDMA_RECV_IC_ID	= 1 << 2,
};

/**
 * struct fi_efa_mr_attr - EFA's attributes of a memory region, fi_efa(7)
 * @ic_id_validity: bits FI_EFA_MR_ATTR_* of the following members that are valid; 0 with all of
 *	today's drivers, whose kernel verbs don't tell these numbers
 * @recv_ic_id: interconnect by which the device reaches the memory for receives
 * @rdma_read_ic_id: interconnect for reads by RDMA
 * @rdma_recv_ic_id: interconnect for a peer's writes by RDMA
 */
struct fi_efa_mr_attr {
	u16	ic_id_validity;
	u16	recv_ic_id;
	u16	rdma_read_ic_id;
	u16	rdma_recv_ic_id;
};

/**
 * struct fi_efa_ops_domain - calls of EFA's domains that others don't have
 * @query_mr: describe a region of any of the provider's domains. Process context; doesn't sleep.
 *	Returns 0, or -EINVAL if @mr is no region of the provider or @attr is NULL. fi_efa(7)
 *
 * fi_open_ops() of a domain returns this vector for FI_EFA_DOMAIN_OPS.
 */
struct fi_efa_ops_domain {
	int (*query_mr)(struct fid_mr *mr, struct fi_efa_mr_attr *attr);
};

#endif /* KOFI_EFA_EXT_H */
