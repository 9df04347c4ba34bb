// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The parser of fabric efa in user space, with sanitizers. An accepted packet must be built to
 * the same bytes, except padding, which tests/kunit/efa_wire_cases.h defines. This shows that
 * the parser ignores no field.
 */
#include "kernel.h"

#include "../../prov/efa/rdm/packet.c"
#include "../../prov/efa/rdm/parse.c"
#include "../../prov/efa/rdm/build.c"
#include "../../prov/efa/rdm/fast_far.h"
#include "../kunit/efa_wire_cases.h"

#define ROOM	WIRE_ROOM

/* Number of accepted packets by type, followed by refused ones by reason. */
#define PASSED	(KEFA_PKT_TYPES + KEFA_BAD_REASONS)
static unsigned long passed[PASSED];

/* Check the invariants that the receiver relies on. */
static void check_promises(const struct kefa_pkt *pkt, const u8 *in, size_t len)
{
	const struct kefa_pkt_row *row = pkt->row;

	assert(pkt->hdr_len + pkt->data_len == len);
	assert((const u8 *)pkt->data == in + pkt->hdr_len);
	if (row->flags & KEFA_ROW_HANDSHAKE)
		return;
	assert(pkt->rma_iov_count <= KEFA_IOV_MAX && pkt->read_iov_count <= KEFA_IOV_MAX);
	if (row->data == KEFA_DATA_PART || row->data == KEFA_DATA_RUNT)
		assert(pkt->seg_offset < pkt->msg_length &&
		       pkt->data_len <= pkt->msg_length - pkt->seg_offset);
	if (row->data == KEFA_DATA_FIRST)
		assert(pkt->data_len < pkt->msg_length);
	if (row->data == KEFA_DATA_SOME)
		assert(pkt->data_len <= pkt->msg_length);
	if (row->data == KEFA_DATA_SEGMENT)
		assert(pkt->data_len && pkt->seg_offset + pkt->data_len > pkt->seg_offset);
}

/* The fast path's parser says what kefa_parse() says. */
static void check_eager(const struct kefa_pkt *pkt, enum kefa_bad bad, const u8 *in, size_t len)
{
	struct kefa_eager e;

	if (!kefa_eager_parse(in, len, &e))
		return;
	assert(!bad && pkt->row->data == KEFA_DATA_ALL && !pkt->raw);
	assert(!(pkt->row->flags & (KEFA_ROW_DC | KEFA_ROW_RMA | KEFA_ROW_READ)));
	assert(e.tagged == !!(pkt->row->flags & KEFA_ROW_TAGGED) && e.tag == pkt->tag);
	assert(e.msg_id == pkt->msg_id && e.connid == pkt->connid && pkt->has_connid);
	assert(e.data == pkt->data && e.len == pkt->data_len);
}

static void check_part(const struct kefa_pkt *pkt, enum kefa_bad bad, const u8 *in, size_t len)
{
	struct kefa_part p;

	if (!kefa_part_parse(in, len, &p))
		return;
	assert(!bad && pkt->row->data == KEFA_DATA_PART && !pkt->raw);
	assert(!(pkt->row->flags & (KEFA_ROW_DC | KEFA_ROW_RMA | KEFA_ROW_READ)));
	assert(p.e.tagged == !!(pkt->row->flags & KEFA_ROW_TAGGED) && p.e.tag == pkt->tag);
	assert(p.e.msg_id == pkt->msg_id && p.e.connid == pkt->connid && pkt->has_connid);
	assert(p.total == pkt->msg_length && p.off == pkt->seg_offset);
	assert(p.e.data == pkt->data && p.e.len == pkt->data_len);
}

static void check_read(const struct kefa_pkt *pkt, enum kefa_bad bad, const u8 *in, size_t len)
{
	const struct kefa_eor_hdr *eor = kefa_eor_parse(in, len);
	struct kefa_read r;

	if (eor) {
		assert(!bad && pkt->row->type == KEFA_EOR_PKT && pkt->has_connid);
		assert(le32_to_cpu(eor->send_id) == pkt->send_id);
		assert(le32_to_cpu(eor->connid) == pkt->connid);
	}
	if (!kefa_read_parse(in, len, &r))
		return;
	assert(!eor && !bad && !pkt->raw);
	assert(pkt->row->type == KEFA_LONGREAD_MSGRTM_PKT + r.e.tagged);
	assert(r.e.msg_id == pkt->msg_id && r.e.connid == pkt->connid && pkt->has_connid);
	assert(r.e.tag == pkt->tag && r.total == pkt->msg_length && r.send_id == pkt->send_id);
	assert(pkt->read_iov_count == 1 && r.addr == le64_to_cpu(pkt->read_iov->addr));
	assert(r.key == le64_to_cpu(pkt->read_iov->key));
	assert(r.e.data == pkt->data && !r.e.len && !pkt->data_len);
}

static void check_far(const struct kefa_pkt *pkt, enum kefa_bad bad, const u8 *in, size_t len)
{
	const struct kefa_readrsp_hdr *rsp = kefa_readrsp_parse(in, len);
	struct kefa_far f;
	bool write;

	if (rsp) {
		assert(!bad && pkt->row->type == KEFA_READRSP_PKT && pkt->has_connid);
		assert(le32_to_cpu(rsp->recv_id) == pkt->recv_id);
		assert(le32_to_cpu(rsp->connid) == pkt->connid);
		assert((const void *)(rsp + 1) == pkt->data && pkt->data_len);
	}
	write = kefa_rtw_parse(in, len, &f);
	if (!write && !kefa_rtr_parse(in, len, &f))
		return;
	assert(!rsp && !bad && !pkt->raw && pkt->has_connid && f.connid == pkt->connid);
	assert(pkt->row->type == (write ? KEFA_EAGER_RTW_PKT : KEFA_SHORT_RTR_PKT));
	assert(pkt->rma_iov_count == 1 && f.addr == le64_to_cpu(pkt->rma_iov->addr));
	assert(f.key == le64_to_cpu(pkt->rma_iov->key) && f.len && f.len == pkt->msg_length);
	assert(f.len == le64_to_cpu(pkt->rma_iov->len));
	if (write)
		assert(f.data == pkt->data && f.len == pkt->data_len);
	else
		assert(f.recv_id == pkt->recv_id && pkt->recv_length >= f.len);
}

static void check_fetch(const struct kefa_pkt *pkt, enum kefa_bad bad, const u8 *in, size_t len)
{
	const struct kefa_atomrsp_hdr *rsp = kefa_atomrsp_parse(in, len);
	struct kefa_fetch f;

	if (rsp) {
		assert(!bad && pkt->row->type == KEFA_ATOMRSP_PKT && pkt->has_connid);
		assert(le32_to_cpu(rsp->recv_id) == pkt->recv_id);
		assert(le32_to_cpu(rsp->connid) == pkt->connid);
		assert((const void *)(rsp + 1) == pkt->data && pkt->data_len);
	}
	if (!kefa_fetch_parse(in, len, &f))
		return;
	assert(!rsp && !bad && !pkt->raw && pkt->has_connid && f.far.connid == pkt->connid);
	assert(pkt->row->type == KEFA_FETCH_RTA_PKT && f.msg_id == pkt->msg_id);
	assert(f.datatype == pkt->atomic_datatype && f.op == pkt->atomic_op);
	assert(pkt->rma_iov_count == 1 && f.far.addr == le64_to_cpu(pkt->rma_iov->addr));
	assert(f.far.key == le64_to_cpu(pkt->rma_iov->key) && f.far.recv_id == pkt->recv_id);
	assert(f.far.len && f.far.len == pkt->msg_length && f.far.len == pkt->data_len);
	assert(f.far.data == pkt->data);
}

static void parse(const u8 *in, size_t len)
{
	static u8 copy[ROOM], out[ROOM];
	struct kefa_pkt pkt;
	enum kefa_bad bad;
	size_t n;

	bad = kefa_parse(in, len, &pkt);
	check_eager(&pkt, bad, in, len);
	check_part(&pkt, bad, in, len);
	check_read(&pkt, bad, in, len);
	check_far(&pkt, bad, in, len);
	check_fetch(&pkt, bad, in, len);
	if (bad) {
		assert(*kefa_bad_text(bad));
		passed[KEFA_PKT_TYPES + bad]++;
		return;
	}
	passed[pkt.row->type]++;
	check_promises(&pkt, in, len);
	memset(out, 0xa5, sizeof(out));
	n = kefa_build(&pkt, out, len);
	assert(n == pkt.hdr_len);
	memcpy(out + n, pkt.data, pkt.data_len);
	memcpy(copy, in, len);
	wire_scrub(copy);
	if (memcmp(copy, out, len)) {
		fprintf(stderr, "%s: built to other bytes\n", pkt.row->name);
		abort();
	}
	assert(!n || !kefa_build(&pkt, out, n - 1));
}

#include "drive.h"
