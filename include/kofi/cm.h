/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Connections, and addresses of endpoints: fi_cm(3), fi_endpoint(3). */
#ifndef KOFI_CM_H
#define KOFI_CM_H

#include <kofi/fabric.h>

struct fi_ops_cm;
struct fi_ops_ep;
struct fid_ep;

/**
 * struct fid_pep - a passive endpoint: it gets connection requests
 * @fid: the common part
 * @ops: control calls
 * @cm: calls about addresses and connections
 */
struct fid_pep {
	struct fid		fid;
	const struct fi_ops_ep	*ops;
	const struct fi_ops_cm	*cm;
};

/* Reference: page api/cm of kOFI's documentation; libfabric's fi_cm(3), fi_endpoint(3) */
int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
		  struct fid_pep **pep, void *context);
int fi_pep_bind(struct fid_pep *pep, struct fid *bfid, u64 flags);
int fi_listen(struct fid_pep *pep);
int fi_reject(struct fid_pep *pep, struct fid *handle, const void *param,
	      size_t paramlen);
int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int fi_connect(struct fid_ep *ep, const void *addr, const void *param,
	       size_t paramlen);
int fi_shutdown(struct fid_ep *ep, u64 flags);
int fi_setname(struct fid *fid, void *addr, size_t addrlen);
int fi_getname(struct fid *fid, void *addr, size_t *addrlen);
int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);

#endif /* KOFI_CM_H */
