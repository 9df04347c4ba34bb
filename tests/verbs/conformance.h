/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Conformance test of EFA kernel verbs: functions for test cases.
 *
 * A case gets two open endpoints that are connected to each other, on one device or
 * two, and checks expectations with EXPECT(). The test doesn't depend on the driver.
 */
#ifndef EFA_VERBS_CONFORMANCE_H
#define EFA_VERBS_CONFORMANCE_H

#include <linux/scatterlist.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <efa_verbs.h>

/* Raw status of the device, in ib_wc.vendor_err. */
#define ST_FLUSHED		1
#define ST_INVALID_AH		4
#define ST_INVALID_LKEY		5
#define ST_LOCAL_LENGTH		6
#define ST_BAD_ADDRESS		7
#define ST_BAD_QPN		9
#define ST_RNR			10
#define ST_REMOTE_LENGTH	11
#define ST_UNKNOWN_PEER		14

#define EP_BUF			(256 << 10)	/* the largest mapping of swiotlb */
#define EP_TX			0		/* offset of data to send */
#define EP_RX			(EP_BUF / 2)	/* offset of received data */
#define EP_DEPTH		64
#define NO_SLID			0xffff
#define FIRST_PART_ID		0xefa0

struct ct;

/* One end: a PD, a CQ with its QP, a buffer, and a handle of the other end. */
struct ep {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_ah *ah;
	union ib_gid gid;
	u32 qkey;
	u32 mtu;
	u32 size;		/* size of buf */
	u8 *buf;
	u64 dma;
	wait_queue_head_t wait;
	atomic_t events;
	bool hard_irq;		/* the last event came in hard IRQ context */
	struct ep *other;
};

/* A registered region of single pages. */
struct region {
	struct ep *ep;
	struct ib_mr *mr;
	struct scatterlist *sg;
	unsigned int pages;
	u32 len;
};

struct ep_opts {
	enum ib_qp_type type;
	u32 depth;
	u32 inline_len;
	u32 buf;		/* bytes; 0: EP_BUF */
	u8 rnr_retry;
	bool no_handler;
	bool stay_reset;
	bool signal_all;
};

/* A work request in short form; zero selects the default. */
struct req {
	enum ib_wr_opcode op;
	u32 off;
	u32 len;
	u32 imm;
	u32 qpn;		/* 0: the other end's */
	u32 qkey;		/* 0: the other end's */
	u32 lkey;		/* 0: the PD's */
	u64 raddr;
	u32 rkey;
	u64 id;
	int flags;		/* 0: signaled; -1: none */
	int num_sge;		/* 0: one; -1: none */
	void *inl;		/* inline data */
	struct ib_ah *ah;
	u64 addr;		/* 0: the buffer at off */
};

/* The part that a case tests, and that is wrong if the case fails. */
enum case_of { DRIVER = 1, DEVICE, BOTH };

struct test_case {
	const char *name;
	void (*run)(struct ct *ct);
	enum case_of of;
	struct ep_opts opts;
	bool unsafe;		/* may crash the kernel or corrupt memory */
	bool two_devices;	/* needs ends on two devices */
};

struct ct {
	struct ib_device *dev_a;
	struct ib_device *dev_b;
	struct ep a;
	struct ep b;
	const struct test_case *test;
	unsigned int failed;
	unsigned int messages;
	unsigned int expects;
};

void ct_printf(const char *fmt, ...) __printf(1, 2);
void ct_failed(struct ct *ct, const char *func, int line, const char *what,
	       long long got);

#define EXPECT(ct, cond)						\
	({								\
		bool _ok = (cond);					\
		(ct)->expects++;					\
		if (!_ok)						\
			ct_failed(ct, __func__, __LINE__, #cond, 0);	\
		_ok;							\
	})

#define EXPECT_EQ(ct, left, right)					\
	({								\
		long long _left = (left), _right = (right);		\
		(ct)->expects++;					\
		if (_left != _right)					\
			ct_failed(ct, __func__, __LINE__,		\
				  #left " == " #right, _left);		\
		_left == _right;					\
	})

/* ep.c */
int ep_open(struct ep *ep, struct ib_device *dev, const struct ep_opts *opts);
void ep_close(struct ep *ep);
struct ib_qp *ep_another_qp(struct ep *ep);
int ep_connect(struct ep *ep, const union ib_gid *gid);
int ep_modify(struct ep *ep, enum ib_qp_state state, u8 rnr_retry);
int ep_to_rts(struct ep *ep, u8 rnr_retry);
int ep_post(struct ep *ep, const struct req *req);
int ep_recv(struct ep *ep, u32 off, u32 len, u64 id);
int ep_poll(struct ep *ep, struct ib_wc *wc, int num);
bool ep_wait(struct ep *ep, struct ib_wc *wc, unsigned int ms);
int ep_next(struct ep *ep, struct ib_wc *wc, int num, unsigned int ms);
int ep_arm(struct ep *ep, int flags);
void ep_write(struct ep *ep, u32 off, const void *data, u32 len);
void ep_read(struct ep *ep, u32 off, void *data, u32 len);
void ep_fill(struct ep *ep, u32 off, u32 len, u8 seed);
bool ep_filled(struct ep *ep, u32 off, u32 len, u8 seed);
int ah_new(struct ib_pd *pd, const union ib_gid *gid, u32 flags,
	   struct ib_ah **ah);

/* region.c */
int region_open(struct region *r, struct ep *ep, unsigned int pages);
void region_close(struct region *r);
int region_map(struct region *r);
int region_post(struct region *r, int access);
int region_reg(struct region *r, int access);
int region_post_inv(struct region *r, u32 key);
int region_inv(struct region *r);
void region_fill(struct region *r, u8 seed);
bool region_filled(struct region *r, u32 off, u32 len, u8 seed);

/* cases_*.c */
extern const struct test_case object_cases[], post_cases[], data_cases[];
extern const struct test_case memory_cases[], life_cases[];

/* remote.c */
int remote_serve(struct ib_device *dev);
int remote_peer(const char *gid);
void remote_stop(void);
ssize_t remote_local(char *buf, size_t len);
void remote_run(struct ct *ct, const char *target, const char *only);

/* probe.c */
int probe_run(struct ib_device *dev, const char *what, u32 count, u32 arg);
ssize_t probe_answer(char __user *ubuf, size_t count, loff_t *pos);
void probe_close(void);

#endif /* EFA_VERBS_CONFORMANCE_H */
