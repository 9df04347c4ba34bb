/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Identity of senders: ident.c. */
#ifndef KEFA_RDM_IDENT_H
#define KEFA_RDM_IDENT_H

#include "rdm.h"

bool kefa_pkt_src(const struct kefa_pkt *pkt, const struct kefa_held *held,
		  struct kefa_src *src);
bool kefa_rdm_sender(struct kefa_rdm *rdm, const struct kefa_pkt *pkt,
		     const struct kefa_src *src, bool parked, struct kefa_rpeer **sender);
bool kefa_rdm_recall(struct kefa_rdm *rdm, const struct kefa_src *src, u8 *gid);
void kefa_rdm_liar(struct kefa_rdm *rdm, const struct kefa_src *src);

#endif /* KEFA_RDM_IDENT_H */
