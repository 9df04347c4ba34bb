// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages: every call, every way of passing data, and refused calls. */
#include <linux/delay.h>
#include <linux/string.h>
#include <kofi/tagged.h>
#include "efa.h"

static size_t et_mtu(struct et_end *end)
{
	size_t value = 0, len = sizeof(value);

	fi_getopt(&end->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MAX_MSG_SIZE, &value,
		  &len);
	return value;
}

/* Expect both completions of a message, and its data at @to. */
static void et_expect_msg(struct et *t, const u8 *to, size_t len, u8 seed,
			  u64 data, bool sent)
{
	struct fi_cq_data_entry entry;
	u64 more = data ? FI_REMOTE_CQ_DATA : 0;

	if (!ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0))
		return;
	ET_EXPECT_EQ(t, entry.flags, FI_MSG | FI_RECV | more);
	ET_EXPECT_EQ(t, entry.len, len);
	ET_EXPECT_EQ(t, entry.data, data);
	ET_EXPECT_EQ(t, (long)entry.op_context, 7);
	ET_EXPECT(t, et_filled(to, len, seed));
	if (!sent)
		return;
	ET_EXPECT_EQ(t, et_wait(&t->a, &entry), 0);
	ET_EXPECT_EQ(t, entry.flags, FI_MSG | FI_SEND);
	ET_EXPECT_EQ(t, (long)entry.op_context, 8);
}

static void et_recv(struct et *t, u8 *buf, size_t len)
{
	ET_EXPECT_EQ(t, fi_recv(t->b.ep, buf, len, NULL, FI_ADDR_UNSPEC,
				(void *)7), 0);
}

static void et_sizes(struct et *t)
{
	const size_t sizes[] = { 0, 1, 31, 32, 33, 4095, 4096, et_mtu(&t->a) };
	size_t len;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		len = sizes[i];
		memset(t->b.small, 0, SZ_16K);
		et_fill(t->a.small, len, i);
		et_recv(t, t->b.small, len);
		ET_EXPECT_EQ(t, fi_send(t->a.ep, t->a.small, len, NULL,
					t->a.peer, (void *)8), 0);
		et_expect_msg(t, t->b.small, len, i, 0, true);
	}
}

static void et_data(struct et *t)
{
	et_fill(t->a.small, 100, 3);
	et_recv(t, t->b.small, 4096);
	ET_EXPECT_EQ(t, fi_senddata(t->a.ep, t->a.small, 100, NULL, 0xa1b2c3d4,
				    t->a.peer, (void *)8), 0);
	et_expect_msg(t, t->b.small, 100, 3, 0xa1b2c3d4, true);

	et_recv(t, t->b.small, 4096);
	ET_EXPECT_EQ(t, fi_injectdata(t->a.ep, t->a.small, 100, 5, t->a.peer),
		     0);
	et_expect_msg(t, t->b.small, 100, 3, 5, false);
	ET_EXPECT(t, et_quiet(&t->a));
}

/* The buffer of an inject may be reused at once: overwrite it before it is sent. */
static void et_inject(struct et *t)
{
	const size_t sizes[] = { 0, 1, 32, 33, 4096 };
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		et_fill(t->a.small, sizes[i], i);
		et_recv(t, t->b.small, SZ_8K);
		ET_EXPECT_EQ(t, fi_inject(t->a.ep, t->a.small, sizes[i],
					  t->a.peer), 0);
		memset(t->a.small, 0xee, sizes[i]);
		et_expect_msg(t, t->b.small, sizes[i], i, 0, false);
	}
	ET_EXPECT(t, et_quiet(&t->a));
	ET_EXPECT_EQ(t, fi_inject(t->a.ep, t->a.small, 4097, t->a.peer),
		     -EMSGSIZE);
}

/* Split the pattern of a buffer into pieces. */
static void et_split(struct kvec *iov, int count, u8 *buf, size_t len)
{
	size_t at = 0;
	int i;

	for (i = 0; i < count; i++) {
		iov[i].iov_len = i + 1 < count ? len / count : len - at;
		/* Leave gaps between the pieces, so that no two are contiguous. */
		iov[i].iov_base = memmove(buf + SZ_32K + i * SZ_4K, buf + at,
					  iov[i].iov_len);
		at += iov[i].iov_len;
	}
}

static void et_pieces(struct et *t)
{
	const int counts[] = { 1, 2, 3, 7 };
	struct kvec iov[7], into[2] = {
		{ t->b.small, 100 }, { t->b.small + 100, 3900 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		memset(t->b.small, 0, SZ_8K);
		et_fill(t->a.small, 3000, i);
		et_split(iov, counts[i], t->a.small, 3000);
		ET_EXPECT_EQ(t, fi_recvv(t->b.ep, into, NULL, 2,
					 FI_ADDR_UNSPEC, (void *)7), 0);
		ET_EXPECT_EQ(t, fi_sendv(t->a.ep, iov, NULL, counts[i],
					 t->a.peer, (void *)8), 0);
		et_expect_msg(t, t->b.small, 3000, i, 0, true);
	}
}

/* Send memory that isn't contiguous, from an odd offset in its first page. */
static void et_vmalloc(struct et *t)
{
	size_t len = et_mtu(&t->a);

	et_fill(t->a.buf + 4001, len, 9);
	et_recv(t, t->b.small, len);
	ET_EXPECT_EQ(t, fi_send(t->a.ep, t->a.buf + 4001, len, NULL, t->a.peer,
				(void *)8), 0);
	et_expect_msg(t, t->b.small, len, 9, 0, true);
	et_recv(t, t->b.buf + 100, 4000);
	ET_EXPECT_EQ(t, fi_send(t->a.ep, t->a.buf + 4001, 4000, NULL,
				t->a.peer, (void *)8), 0);
	et_expect_msg(t, t->b.buf + 100, 4000, 9, 0, true);
}

static void et_bvec(struct et *t)
{
	struct bio_vec bv[2] = {
		{ virt_to_page(t->a.small), 1000, 16 },
		{ virt_to_page(t->a.small + SZ_8K), 500, 0 },
	};
	struct fi_msg msg = {
		.addr		= t->a.peer,
		.context	= (void *)8,
		.data		= 77,
	};

	et_fill(t->a.small, 1500, 4);
	memmove(t->a.small + SZ_8K, t->a.small + 1000, 500);
	memmove(t->a.small + 16, t->a.small, 1000);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bv, 2, 1500);
	et_recv(t, t->b.small, 4096);
	ET_EXPECT_EQ(t, fi_sendmsg(t->a.ep, &msg,
				   FI_COMPLETION | FI_REMOTE_CQ_DATA), 0);
	et_expect_msg(t, t->b.small, 1500, 4, 77, true);
}

/* Return: the n-th small buffer. No two of them share a cache line. */
static u8 *et_slot(u8 *buf, int n)
{
	return buf + n % 1024 * 64;
}

static void et_recv_slot(struct et *t, int n)
{
	ET_EXPECT_EQ(t, fi_recv(t->b.ep, et_slot(t->b.small, n), 64, NULL,
				FI_ADDR_UNSPEC, (void *)7), 0);
}

/* A post with FI_MORE and no later post: the worker rings the doorbell. */
static void et_more(struct et *t)
{
	struct fi_msg msg = { .addr = t->a.peer, .context = (void *)8 };
	struct fi_cq_data_entry entry;
	struct kvec iov = { NULL, 64 };
	int i, n = 40;

	for (i = 0; i < n; i++)
		et_recv_slot(t, i);
	for (i = 0; i < n; i++) {
		iov.iov_base = et_slot(t->a.small, i);
		et_fill(iov.iov_base, 64, 1);
		iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 64);
		ET_EXPECT_EQ(t, fi_sendmsg(t->a.ep, &msg,
					   FI_COMPLETION | FI_MORE), 0);
	}
	for (i = 0; i < n; i++) {
		ET_EXPECT_EQ(t, et_wait(&t->a, &entry), 0);
		ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0);
	}
	for (i = 0; i < n; i++)
		ET_EXPECT(t, et_filled(et_slot(t->b.small, i), 64, 1));
}

#define ET_FULL_RECVS	32

/* Without receives all sends stay outstanding: the queue fills, and then drains. */
static void et_full(struct et *t)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = 0;
	int n, i, posted;

	for (n = 0; n < 5000; n++) {
		ret = fi_send(t->a.ep, et_slot(t->a.small, n), 64, NULL,
			      t->a.peer, (void *)8);
		if (ret)
			break;
	}
	ET_EXPECT_EQ(t, ret, -EAGAIN);
	ET_EXPECT_EQ(t, n, t->a.info->tx_attr->size);
	/* Post several at once, because the sender's device waits between retries. */
	for (i = 0, posted = 0; i < n; i++) {
		for (; posted < min(n, i + ET_FULL_RECVS); posted++)
			et_recv_slot(t, posted);
		if (!ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0))
			return;
	}
	for (i = 0; i < n; i++)
		if (!ET_EXPECT_EQ(t, et_wait(&t->a, &entry), 0))
			return;
	ET_EXPECT_EQ(t, fi_inject(t->a.ep, t->a.small, 1, t->a.peer), 0);
}

static void et_selective(struct et *t)
{
	struct fi_msg msg = { .addr = t->a.peer, .context = (void *)8 };
	struct fi_cq_data_entry entry;
	u64 flags = FI_RECV | FI_COMPLETION;
	struct kvec iov = { NULL, 64 };
	int i;

	ET_EXPECT_EQ(t, fi_control(&t->b.ep->fid, FI_SETOPSFLAG, &flags), 0);
	for (i = 0; i < 8; i++)
		et_recv_slot(t, i);
	for (i = 0; i < 8; i++) {
		iov.iov_base = et_slot(t->a.small, i);
		iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 64);
		ET_EXPECT_EQ(t, fi_sendmsg(t->a.ep, &msg, i == 5 ?
					   FI_COMPLETION : 0), 0);
	}
	for (i = 0; i < 8; i++)
		ET_EXPECT_EQ(t, et_wait(&t->b, &entry), 0);
	ET_EXPECT_EQ(t, et_wait(&t->a, &entry), 0);
	ET_EXPECT(t, et_quiet(&t->a));
}

/* Each of these calls is refused, without any effect. */
static void et_bad_input(struct et *t)
{
	struct kvec iov = { t->a.small, 64 };
	struct fi_msg msg = { .addr = t->a.peer };
	size_t mtu = et_mtu(&t->a);
	struct fid_ep *ep = t->a.ep;
	u8 *buf = t->a.small;
	/* kmalloc() memory with gaps, because vmalloc() pages may be contiguous. */
	struct kvec apart[3] = {
		{ buf, 64 }, { buf + SZ_4K, 64 }, { buf + SZ_8K, 64 },
	};

	ET_EXPECT_EQ(t, fi_send(ep, buf, mtu + 1, NULL, t->a.peer, NULL),
		     -EMSGSIZE);
	ET_EXPECT_EQ(t, fi_send(ep, buf, 8, NULL, 12345, NULL), -EHOSTUNREACH);
	ET_EXPECT_EQ(t, fi_send(ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL),
		     -EHOSTUNREACH);
	ET_EXPECT_EQ(t, fi_send(ep, NULL, 64, NULL, t->a.peer, NULL), -EINVAL);
	ET_EXPECT_EQ(t, fi_senddata(ep, buf, 8, NULL, BIT_ULL(32), t->a.peer,
				    NULL), -EINVAL);
	ET_EXPECT_EQ(t, fi_tsend(ep, buf, 8, NULL, t->a.peer, 1, NULL),
		     -EOPNOTSUPP);
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, 64);
	ET_EXPECT_EQ(t, fi_sendmsg(ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	ET_EXPECT_EQ(t, fi_recvmsg(ep, &msg, 0), -EINVAL);
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &iov, 1, 64);
	ET_EXPECT_EQ(t, fi_sendmsg(ep, &msg, 0), -EINVAL);
	ET_EXPECT_EQ(t, fi_recvmsg(ep, &msg, FI_REMOTE_CQ_DATA),
		     -FI_EBADFLAGS);
	ET_EXPECT_EQ(t, fi_recvv(ep, apart, NULL, 3, FI_ADDR_UNSPEC, NULL),
		     -EMSGSIZE);
	ET_EXPECT_EQ(t, fi_cancel(&ep->fid, NULL), -EOPNOTSUPP);
	ET_EXPECT(t, et_quiet(&t->a));
	et_sizes(t);
}

const struct et_case et_msg_cases[] = {
	{ "msg_sizes", et_sizes },
	{ "msg_data", et_data },
	{ "msg_inject", et_inject },
	{ "msg_pieces", et_pieces },
	{ "msg_vmalloc", et_vmalloc },
	{ "msg_bvec", et_bvec },
	{ "msg_more", et_more },
	{ "msg_full", et_full },
	{ "msg_selective", et_selective, .bind = FI_SELECTIVE_COMPLETION },
	{ "msg_bad_input", et_bad_input },
	{ }
};
