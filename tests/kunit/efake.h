/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device that isn't there, for the suites of the EFA provider: the functions of
 * prov/efa/hw.h and prov/efa/dma.h, underneath the provider's own sources, which
 * efa_prov.c compiles into the module of the suites.
 *
 * The device does nothing by itself but what a test has asked for: a test sees
 * what was posted, and completes it in any order, with any status, twice, late
 * or never. Each call can be made to fail on its nth time. Whatever breaks one
 * of the device's rules, and whatever is left behind, fails the case.
 */
#ifndef KOFI_EFAKE_H
#define KOFI_EFAKE_H

/* For prov/efa/dma.h: its functions are in efake_dma.c. */
#define KEFA_DMA_FAKE
/* At once, so that efake_settle() waits for it. */
#define KEFA_WATCH_MS	0

#include <kunit/test.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include "../../prov/efa/ah.h"
#include "../../prov/efa/av.h"
#include "../../prov/efa/dma.h"
#include "../../prov/efa/ep.h"
#include "../../prov/efa/kefa.h"
#include "../../prov/efa/mr.h"

struct efake_mem;

/* Calls that can fail. */
enum efake_call {
	EFAKE_PD_CREATE,
	EFAKE_QP_CREATE,
	EFAKE_QP_START,		/* the end of qp_create: there is something to undo */
	EFAKE_QP_DESTROY,
	EFAKE_POST_SEND,
	EFAKE_POST_RECV,
	EFAKE_AH_CREATE,
	EFAKE_AH_DESTROY,
	EFAKE_MR_CREATE,
	EFAKE_MR_MAP,
	EFAKE_MR_DESTROY,
	EFAKE_DMA_MAP,
	EFAKE_CALLS,
};

/* What is refused for good: a dead admin queue. */
#define EFAKE_REFUSE_ALL	(BIT(EFAKE_QP_DESTROY) | BIT(EFAKE_AH_DESTROY) | \
			 BIT(EFAKE_MR_DESTROY))

enum {
	EFAKE_TX_DEPTH	= 64,
	EFAKE_RX_DEPTH	= 64,
	EFAKE_MTU		= 8 * 1024,
	EFAKE_MAX_MR	= 64,
	EFAKE_MR_PAGES	= 1024,
	EFAKE_CQ_RING	= 2048,
};

/**
 * struct efake_wr - a work request that the device has
 * @list: in efake_qp.sent, .recvs or .free
 * @qp: its queue pair
 * @id: the provider's
 * @opcode: what it is; of no meaning to receives
 * @recv: it is a receive
 * @flags: enum ib_send_flags
 * @num_sge: entries of @sge
 * @sge: local memory
 * @data: what came inline
 * @len: bytes
 * @imm: remote CQ data
 * @ah: where to
 * @qpn: and to whom
 * @qkey: and that one's key
 * @raddr: remote address
 * @rkey: remote key, or that of a registration
 * @mr: region to be registered
 * @access: enum ib_access_flags
 */
struct efake_wr {
	struct list_head	list;
	struct efake_qp		*qp;
	u64			id;
	enum ib_wr_opcode	opcode;
	bool			recv;
	int			flags;
	int			num_sge;
	struct ib_sge		sge[KEFA_MAX_SGE];
	u8			data[KEFA_MAX_INLINE];
	u32			len;
	u32			imm;
	struct ib_ah		*ah;
	u32			qpn;
	u32			qkey;
	u64			raddr;
	u32			rkey;
	struct ib_mr		*mr;
	int			access;
};

/**
 * struct efake_qp - a queue pair
 * @list: in efake.qps, or .broken
 * @fake: its device
 * @hq: the provider's side; NULL once that is done with it
 * @ibqp: what the provider has of it
 * @pd: its protection domain
 * @attr: as made
 * @wrs: room for work requests
 * @nwrs: how many
 * @free: that aren't in use
 * @sent: that wait to be completed, in the order of posting
 * @recvs: likewise
 * @nsent: on @sent
 * @nrecvs: on @recvs
 * @ring: completions to be polled
 * @head: next to be polled
 * @tail: next to be written
 * @armed: an event is wanted
 * @abandoned: the provider will never destroy it
 * @access: of the last registration
 * @doorbells: lists posted
 * @rx_doorbells: likewise of receives
 * @events: raised
 */
struct efake_qp {
	struct list_head	list;
	struct efake		*fake;
	struct kefa_hw_qp	*hq;
	struct ib_qp		ibqp;
	struct ib_pd		*pd;
	struct kefa_hw_qp_attr	attr;
	struct efake_wr		*wrs;
	unsigned int		nwrs;
	struct list_head	free;
	struct list_head	sent;
	struct list_head	recvs;
	unsigned int		nsent;
	unsigned int		nrecvs;
	struct kefa_wc		*ring;
	unsigned int		head;
	unsigned int		tail;
	bool			armed;
	bool			abandoned;
	int			access;
	unsigned int		doorbells;
	unsigned int		rx_doorbells;
	unsigned int		events;
};

/**
 * struct efake_fail - how a call fails
 * @count: calls so far
 * @nth: which one fails, counted down to it; 0 for none
 * @err: by this negative errno
 */
struct efake_fail {
	unsigned int	count;
	unsigned int	nth;
	int		err;
};

/**
 * struct efake - the device
 * @test: whose it is
 * @dev: the provider's side; NULL after removal
 * @published: its users see it
 * @ibdev: what the provider has of it
 * @root: whom DMA is for, and the parent of @ibdev
 * @seg: of @root
 * @breaches: rules that were broken
 * @lock: protects what follows. Taken in any context
 * @fail: how calls fail
 * @refuse: calls that always fail, by BIT(enum efake_call)
 * @refusal: with that negative errno; 0 for -ENODEV
 * @any: this call, of whatever kind, fails, counted down to it; 0 for none
 * @then: and then this one, counted from there
 * @hits: calls that failed because of these two
 * @bad: how much of a list is posted before a post fails
 * @manual_mr: registrations are completed by the test
 * @auto_tx: sends, reads and writes are completed by the device
 * @status: what it completes them with, and registrations
 * @deny: operations that the device hasn't, by BIT_ULL(enum ib_wr_opcode)
 * @max_page: regions of larger pages can't be registered; 0 for no limit
 * @whole_iova: nor those whose remote address isn't the DMA address
 * @no_rdma_data: RDMA succeeds, and moves nothing
 * @no_rnr: it can't be told how often to try again
 * @max_mrs: regions that there can be
 * @pci: it has a bus that it masters
 * @master: it masters that bus
 * @bounce: memory is only reached through bounce buffers
 * @iommu: memory is reached through an IOMMU, by a kernel that would have all mappings
 *	synced
 * @max_map: longest piece of memory that can be mapped
 * @missed: times that arming a queue tells of something to poll, there or not
 * @late: work requests that complete as their queue is being armed: no event is raised
 * @qps: queue pairs
 * @broken: those that weren't destroyed when they should have been, yet
 * @objs: the other objects that are there
 * @lost: objects that weren't destroyed when they should have been, yet
 * @ahs: address handles
 * @mrs: regions
 * @next_qpn: number of the next queue pair
 * @next_key: key of the last region
 * @mem: what is mapped
 * @nmaps: how much
 */
struct efake {
	struct kunit			*test;
	struct kefa_dev			*dev;
	bool				published;
	struct ib_device		ibdev;
	struct device			*root;
	struct device_dma_parameters	seg;
	atomic_t			breaches;
	spinlock_t			lock;	/* protects what follows */
	struct efake_fail		fail[EFAKE_CALLS];
	u32				refuse;
	int				refusal;
	unsigned int			any;
	unsigned int			then;
	unsigned int			hits;
	unsigned int			bad;
	bool				manual_mr;
	bool				auto_tx;
	u32				status;
	u64				deny;
	u32				max_page;
	bool				whole_iova;
	bool				no_rdma_data;
	bool				no_rnr;
	unsigned int			max_mrs;
	bool				pci;
	bool				master;
	bool				bounce;
	bool				iommu;
	size_t				max_map;
	unsigned int			missed;
	unsigned int			late;
	struct list_head		qps;
	struct list_head		broken;
	struct list_head		objs;
	struct list_head		lost;
	unsigned int			ahs;
	unsigned int			mrs;
	u32				next_qpn;
	u32				next_key;
	struct efake_mem		*mem;
	unsigned int			nmaps;
};

/* Not yet seen by the provider's users; the end of the case removes it. */
struct efake *efake_make(struct kunit *test, const char *name);
void efake_publish(struct efake *fake);
/* The same by the provider's own probe. */
void efake_start(struct efake *fake);
void efake_remove(struct efake *fake);

/* The nth call from now on fails, once. */
void efake_fail(struct efake *fake, enum efake_call call, unsigned int nth,
		int err);
unsigned int efake_calls(struct efake *fake, enum efake_call call);

/* By its number, or the last that was made; the domain's own is among them. */
struct efake_qp *efake_qp(struct efake *fake, u32 qpn);
struct efake_qp *efake_last_qp(struct efake *fake);

/* About how much memory a queue pair takes, and so many regions. */
size_t efake_bytes(const struct efake_qp *qp, unsigned int mrs);

/* What the device has: the nth, from 0, or NULL. */
struct efake_wr *efake_sent(struct efake_qp *qp, unsigned int n);
struct efake_wr *efake_recv(struct efake_qp *qp, unsigned int n);

/* Complete something, and raise an event if one is wanted. */
void efake_wr_done(struct efake_wr *wr, u32 status);
void efake_recv_done(struct efake_wr *wr, const struct kefa_wc *wc);
/* A completion of whatever it says. */
void efake_qp_push(struct efake_qp *qp, const struct kefa_wc *wc);
/* An event, wanted or not. */
void efake_qp_event(struct efake_qp *qp);

/* Read and write local memory as the device does. */
size_t efake_wr_read(const struct efake_wr *wr, u8 *buf, size_t len);
void efake_wr_write(const struct efake_wr *wr, const u8 *buf, size_t len);
/* Do what a read or write is about. Return: the device's status. */
u32 efake_wr_rdma(struct efake_wr *wr);
/* Use all memory that the device may still use. Return: how often. */
unsigned int efake_haunt(struct efake *fake);

/* Where an address handle leads. */
const u8 *efake_ah_gid(struct ib_ah *ah);
/* The region of that key, how many pages it has, and can peers reach it? */
const struct ib_mr *efake_mr(struct efake *fake, u32 rkey);
u32 efake_mr_pages(const struct ib_mr *mr);
u32 efake_mr_room(const struct ib_mr *mr);
bool efake_valid(struct efake *fake, u32 rkey);

/* The provider has dealt with all events. */
void efake_settle(void);
/* And with what it does about the device itself. */
void efake_settle_all(void);

#endif /* KOFI_EFAKE_H */
