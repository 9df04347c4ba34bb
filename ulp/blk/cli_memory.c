// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of a request. Fetches, and most registrations of a single bio, use the bio's own list of
 * pieces. Other registrations build a list in kbc_queue.bvecs, used only during the call.
 */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/bvec.h>
#include <linux/uio.h>
#include "cli.h"

static const struct bio_vec *kbc_bio_bvecs(const struct bio *bio)
{
	return __bvec_iter_bvec(bio->bi_io_vec, bio->bi_iter);
}

/* Return: the number of bytes in the bio's first piece that precede the bio's data. */
static unsigned int kbc_bio_done(const struct bio *bio)
{
	return mp_bvec_iter_offset(bio->bi_io_vec, bio->bi_iter) - kbc_bio_bvecs(bio)->bv_offset;
}

/* Return: the number of a bio's pieces; 0 if the bio covers a part of the first or last only. */
static unsigned int kbc_bio_pieces(const struct bio *bio)
{
	const struct bio_vec *bv = kbc_bio_bvecs(bio);
	size_t left = bio->bi_iter.bi_size;
	unsigned int n;

	if (kbc_bio_done(bio))
		return 0;
	for (n = 0; left && bv[n].bv_len <= left; n++)
		left -= bv[n].bv_len;
	return left ? 0 : n;
}

/* Return: the number of pieces stored in kbc_queue.bvecs, or -EMSGSIZE. */
static int kbc_memory_list(struct kbc_queue *kq, const struct request *rq)
{
	struct req_iterator iter;
	struct bio_vec bv;
	int n = 0;

	lockdep_assert_held(&kq->lock);
	rq_for_each_bvec(bv, rq, iter) {
		if (n == kq->disk->made.max_bvecs)
			return -EMSGSIZE;
		kq->bvecs[n++] = bv;
	}
	return n;
}

/* Return: as fi_mr_post_reg(), or -EMSGSIZE for too many pieces. */
int kbc_memory_register(struct kbc_slot *slot, struct kulp_op *op)
{
	const struct request *rq = kbc_rq(slot);
	struct kbc_queue *kq = slot->kq;
	struct fi_mr_attr attr = {
		.type		= FI_MR_BVEC,
		.access		= rq_data_dir(rq) == WRITE ? FI_REMOTE_READ :
							     FI_REMOTE_WRITE,
		.context	= op,
	};
	int ret;

	if (rq->bio == rq->biotail)
		attr.iov_count = kbc_bio_pieces(rq->bio);
	if (likely(attr.iov_count)) {
		attr.bvec = kbc_bio_bvecs(rq->bio);
		return fi_mr_post_reg(slot->tag->mr, &attr, FI_COMPLETION);
	}
	spin_lock_bh(&kq->lock);
	ret = kbc_memory_list(kq, rq);
	if (ret > 0) {
		attr.bvec = kq->bvecs;
		attr.iov_count = ret;
		ret = fi_mr_post_reg(slot->tag->mr, &attr, FI_COMPLETION);
	}
	spin_unlock_bh(&kq->lock);
	return ret;
}

/* Get an iterator to write to a bio's memory. It uses the bio's list of pieces. */
void kbc_memory_iter(const struct bio *bio, struct iov_iter *iter)
{
	size_t end = kbc_bio_done(bio) + bio->bi_iter.bi_size, len = 0;
	const struct bio_vec *bv = kbc_bio_bvecs(bio);
	unsigned int n;

	for (n = 0; len < end; n++)
		len += bv[n].bv_len;
	iov_iter_bvec(iter, ITER_DEST, bv, n, bio->bi_iter.bi_size);
	iter->iov_offset = kbc_bio_done(bio);
}

/* List a write's pieces. Return: whether they are few enough to be sent with the command. */
bool kbc_memory_carried(struct kbc_slot *slot)
{
	size_t most = slot->kq->q->fabric->info->tx_attr->iov_limit - 1;
	const struct request *rq = kbc_rq(slot);
	struct req_iterator iter;
	struct bio_vec bv;

	slot->nbvec = 0;
	rq_for_each_bvec(bv, rq, iter) {
		if (slot->nbvec == min_t(size_t, most, KBC_INLINE_BVECS))
			return false;
		slot->bvecs[1 + slot->nbvec++] = bv;
	}
	return true;
}

void kbc_memory_fill(const struct request *rq, const void *data)
{
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_segment(bv, rq, iter) {
		memcpy_to_bvec(&bv, data);
		data += bv.bv_len;
	}
}
