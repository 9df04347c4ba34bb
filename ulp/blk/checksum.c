// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* End-to-end checksums: see checksum.h. */
#include <linux/module.h>
#include <linux/highmem.h>
#include "../../compat/crc32c.h"
#include "checksum.h"

MODULE_DESCRIPTION("kofiblk: common code of client and server");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");
MODULE_IMPORT_NS(KOFI_ULP);

/* The fields of a command that its checksum covers, in wire format. */
struct kofiblk_sum_head {
	__le64	session;
	__le64	id;
	__le64	offset;
	__le64	bytes;
	__le16	flags;
	__u8	op;
	__u8	reserved[5];
};

u32 kofiblk_sum_cmd(const struct kofiblk_cmd_msg *cmd)
{
	const struct kofiblk_sum_head head = {
		.session	= cpu_to_le64(cmd->session),
		.id		= cpu_to_le64(cmd->id),
		.offset		= cpu_to_le64(cmd->offset),
		.bytes		= cpu_to_le64(cmd->bytes),
		.flags		= cpu_to_le16(cmd->flags),
		.op		= cmd->op,
	};

	return crc32c(~0U, &head, sizeof(head));
}
EXPORT_SYMBOL_NS_GPL(kofiblk_sum_cmd, KOFIBLK);

u32 kofiblk_sum_bvecs(u32 sum, const struct bio_vec *bvec, size_t bytes)
{
	struct bvec_iter iter, start = { .bi_size = bytes };
	struct bio_vec bv;
	void *data;

	for_each_bvec(bv, bvec, iter, start) {
		data = bvec_kmap_local(&bv);
		sum = crc32c(sum, data, bv.bv_len);
		kunmap_local(data);
	}
	return sum;
}
EXPORT_SYMBOL_NS_GPL(kofiblk_sum_bvecs, KOFIBLK);
