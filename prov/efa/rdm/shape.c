// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Headers that are prepared once for each endpoint. */
#include <linux/bug.h>
#include "shape.h"

/**
 * kefa_shape_make() - prepare a header for eager messages
 * @shape: takes the header
 * @lim: limits of the endpoint
 * @self: the endpoint
 * @how: form in which the header identifies the sender
 * @tagged: the messages have tags
 *
 * Context: Any.
 */
void kefa_shape_make(struct kefa_shape *shape, const struct kefa_rdm_limits *lim,
		     const struct kefa_self *self, enum kefa_signs how, bool tagged)
{
	struct kefa_pkt pkt = {
		.row = kefa_row_of(tagged ? KEFA_EAGER_TAGRTM_PKT : KEFA_EAGER_MSGRTM_PKT),
	};

	kefa_shake_sign_as(self, how, &pkt);
	shape->type = pkt.row->type;
	shape->tagged = tagged;
	shape->hdr = kefa_build(&pkt, shape->bytes, sizeof(shape->bytes));
	WARN_ON_ONCE(!shape->hdr);
	shape->room = lim->mtu - shape->hdr;
}
