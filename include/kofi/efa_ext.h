/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What ULPs may know of the EFA provider beyond the common API. */
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
 * enum fi_efa_option - an endpoint's options beyond the common ones
 * @FI_OPT_EFA_RNR_RETRY: size_t: how often a peer that has no receive posted is
 *	tried again by the device, before the operation fails with EAGAIN, and it is
 *	as if it had never been posted; FI_EFA_RNR_INFINITE, the default, for ever.
 *	For fi_setopt() before fi_enable(), else -FI_EOPBADSTATE; -EOPNOTSUPP on a
 *	device that knows no limit. fi_efa(7)
 * @FI_OPT_EFA_USE_DEVICE_RDMA: bool, of fabric efa: long messages are read by the receiver's
 *	device; else they are sent. The default if the device can; -EOPNOTSUPP to have it on a
 *	device that can't. For fi_setopt() before fi_enable(), else -FI_EOPBADSTATE. fi_efa(7)
 * @FI_OPT_EFA_HOMOGENEOUS_PEERS: bool, of fabric efa: all peers can do what this endpoint
 *	can, so that no handshake is waited for before the first operation. Not the default.
 *	For fi_setopt() before fi_enable(), else -FI_EOPBADSTATE. fi_efa(7)
 *
 * Of level FI_OPT_ENDPOINT. Numbers are libfabric's.
 */
enum fi_efa_option {
	FI_OPT_EFA_RNR_RETRY = -FI_PROV_SPECIFIC_EFA,
	FI_OPT_EFA_USE_DEVICE_RDMA = -FI_PROV_SPECIFIC_EFA + 4,
	FI_OPT_EFA_HOMOGENEOUS_PEERS = -FI_PROV_SPECIFIC_EFA + 7,
};

#define FI_EFA_RNR_INFINITE	7

/**
 * struct fi_efa_addr - an address of format FI_ADDR_EFA
 * @gid: GID of the device
 * @qpn: number of the queue pair
 * @pad: 0
 * @qkey: key of the queue pair; it differs each time one is made
 * @reserved: 0. In libfabric a pointer of the process that has no meaning here
 *
 * What fi_getname() gives and fi_av_insert() takes. Layout and length are
 * libfabric's, so that kernel and user space can exchange addresses; like
 * there, numbers are in the byte order of the host.
 */
struct fi_efa_addr {
	u8	gid[FI_EFA_GID_LEN];
	u16	qpn;
	u16	pad;
	u32	qkey;
	u64	reserved;
};

static_assert(sizeof(struct fi_efa_addr) == 32);

#endif /* KOFI_EFA_EXT_H */
