/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * End-to-end checksums, where both sides want them: CRC-32C of what identifies a
 * command, and of its data. Whoever has the data from its user computes it; the server
 * checks it before the store is touched, the client when nobody else can write to its
 * memory any more. It is against faults, not against people: it has no secret.
 *
 * The command's part has data that belongs to another request, another place of the disk
 * or an earlier session fail, though each byte of it is right.
 */
#ifndef KOFIBLK_CHECKSUM_H
#define KOFIBLK_CHECKSUM_H

#include <linux/bvec.h>
#include "wire.h"

/**
 * kb_sum_cmd() - the checksum of a command without data
 * @cmd: the command; session, id, op, flags and range count, address and key don't, as
 *	wrong ones have wrong data
 *
 * Context: Any.
 * Return: the checksum, to go on with by kb_sum_bvec().
 */
u32 kb_sum_cmd(const struct kb_cmd_msg *cmd);

/**
 * kb_sum_bvec() - go on with a checksum
 * @sum: of what is before
 * @bv: data; may go across pages
 *
 * Context: Any but hard IRQ.
 * Return: the checksum.
 */
u32 kb_sum_bvec(u32 sum, struct bio_vec bv);

/**
 * kb_sum_bvecs() - go on with a checksum
 * @sum: of what is before
 * @bvec: data
 * @n: entries of @bvec
 * @bytes: how much of it
 *
 * Context: Any but hard IRQ.
 * Return: the checksum.
 */
u32 kb_sum_bvecs(u32 sum, const struct bio_vec *bvec, unsigned int n, size_t bytes);

#endif /* KOFIBLK_CHECKSUM_H */
