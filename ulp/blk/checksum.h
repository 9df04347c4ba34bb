/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * End-to-end checksums, used if both sides support them: CRC-32C over the fields that identify a
 * command, and its data. The source of the data computes the checksum. The server verifies it
 * before it writes to the store, the client when the server can no longer write to the client's
 * memory. A checksum detects faults but not forgery, because it has no key.
 *
 * Since it covers the command, the checksum also detects intact data of another request, another
 * offset of the disk or an earlier session.
 */
#ifndef KOFIBLK_CHECKSUM_H
#define KOFIBLK_CHECKSUM_H

#include <linux/bvec.h>
#include "wire.h"

/**
 * kofiblk_sum_cmd() - compute the checksum of a command without data
 * @cmd: the command. The checksum covers its session, id, op, flags and range. It needn't
 *	cover address and key: if these are wrong, so is the data
 * Context: Any.
 * Return: the checksum, which kofiblk_sum_bvecs() continues.
 */
u32 kofiblk_sum_cmd(const struct kofiblk_cmd_msg *cmd);

/**
 * kofiblk_sum_bvecs() - continue a checksum over pieces of data
 * @sum: checksum of the preceding data
 * @bvec: the data; an entry may cross pages
 * @bytes: number of bytes to cover
 * Context: Any but hard IRQ.
 * Return: the checksum.
 */
u32 kofiblk_sum_bvecs(u32 sum, const struct bio_vec *bvec, size_t bytes);

#endif /* KOFIBLK_CHECKSUM_H */
