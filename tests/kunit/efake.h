/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A fake device for the suites of the EFA provider: it implements the functions of
 * prov/efa/hw.h and prov/efa/dma.h for the provider's own sources, which efa_prov.c compiles
 * into the module of the suites.
 *
 * The device does only what a test asks for: a test inspects posted work requests, and
 * completes them in any order, with any status, twice, late or never. The nth call of each
 * kind can be made to fail. A broken rule of the device, and any object that is left behind,
 * fails the case.
 */
#ifndef KOFI_EFAKE_H
#define KOFI_EFAKE_H

/* Makes prov/efa/dma.h use the functions of efake_dma.c. */
#define KEFA_DMA_FAKE
/* No delay, so that efake_settle() waits for the work. */
#define KEFA_WATCH_MS	0
/* Tests wait for sends that nobody waits for by flushing kefa_ep.idle. */
#define KEFA_LAZY_MS	2000

#include <kunit/test.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include "../../prov/efa/ah.h"
#include "../../prov/efa/av.h"
#include "../../prov/efa/direct/direct.h"
#include "../../prov/efa/dma.h"
#include "../../prov/efa/ep.h"
#include "../../prov/efa/kefa.h"
#include "../../prov/efa/mr.h"

struct efake_mem;

/* Calls that can fail. */
enum efake_call {
	EFAKE_PD_CREATE,
	EFAKE_QP_CREATE,
	EFAKE_QP_START,		/* last step of qp_create, after which it must be undone */
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

/* Calls that fail when the admin queue is dead. */
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
 * struct efake_wr - a posted work request
 * @list: in efake_qp.sent, .recvs or .free
 * @qp: queue pair of the work request
 * @id: id that the provider chose
 * @opcode: enum ib_wr_opcode, unused for receives
 * @recv: the work request is a receive
 * @flags: enum ib_send_flags
 * @num_sge: number of entries of @sge
 * @sge: local memory
 * @data: inline data
 * @len: length in bytes
 * @imm: remote CQ data
 * @ah: address handle of the peer
 * @qpn: number of the peer's queue pair
 * @qkey: Q_Key of the peer's queue pair
 * @raddr: remote address
 * @rkey: remote key, or key of a registration
 * @mr: region that is registered
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
 * @fake: device of the queue pair
 * @hq: the provider's struct; NULL after it was destroyed or abandoned
 * @ibqp: verbs object of the queue pair
 * @pd: protection domain of the queue pair
 * @attr: attributes at creation
 * @wrs: memory of all work requests
 * @nwrs: number of @wrs
 * @free: unused work requests
 * @sent: outstanding work requests other than receives, oldest first
 * @recvs: outstanding receives, oldest first
 * @nsent: number of entries of @sent
 * @nrecvs: number of entries of @recvs
 * @ring: completions to poll
 * @head: index of the next completion to poll
 * @tail: index of the next completion to write
 * @armed: the next completion raises an event
 * @abandoned: the provider will never destroy the queue pair
 * @access: access of the last registration
 * @doorbells: number of posted lists of work requests
 * @rx_doorbells: number of posted lists of receives
 * @events: number of events raised
 * @polls: number of polls, without those of @tx_ring
 * @tx_ring: with kefa_hw_qp_attr.split, completions of @sent to poll
 * @tx_head: index of the next of them to poll
 * @tx_tail: index of the next of them to write
 * @tx_armed: the next of them raises an event
 * @tx_arms: number of times that @tx_armed was set
 * @tx_events: number of events raised by them
 * @packets: number of packets that were sent or received without an error
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
	unsigned int		polls;
	struct kefa_wc		*tx_ring;
	unsigned int		tx_head;
	unsigned int		tx_tail;
	bool			tx_armed;
	unsigned int		tx_arms;
	unsigned int		tx_events;
	unsigned int		packets;
};

/**
 * struct efake_fail - how a call fails
 * @count: number of calls so far
 * @nth: countdown to the call that fails; 0 for none
 * @err: negative errno of the failure
 */
struct efake_fail {
	unsigned int	count;
	unsigned int	nth;
	int		err;
};

/**
 * struct efake - the device
 * @test: the test that owns the device
 * @dev: the provider's device; NULL after removal
 * @published: the device is visible to users of the provider
 * @ibdev: verbs device
 * @root: device that DMA mappings are for, parent of @ibdev
 * @seg: DMA parameters of @root
 * @breaches: number of broken rules
 * @lock: protects all members below. Taken in any context
 * @fail: failures, by kind of call
 * @refuse: calls that always fail, by BIT(enum efake_call)
 * @refusal: negative errno of @refuse; 0 for -ENODEV
 * @any: countdown to a call of any kind that fails; 0 for none
 * @then: countdown from that call to a second one that fails; 0 for none
 * @hits: number of calls that failed because of @any and @then
 * @bad: number of work requests of a list that are posted before a post fails
 * @manual_mr: the test completes registrations
 * @auto_tx: the device completes sends, reads and writes
 * @status: status with which the device completes work requests
 * @deny: operations that the device lacks, by BIT_ULL(enum ib_wr_opcode)
 * @max_page: largest page size of regions that can be registered; 0 for no limit
 * @whole_iova: only regions whose remote address is the DMA address can be registered
 * @no_rdma_data: RDMA succeeds without moving data
 * @no_rnr: the device refuses a number of retries
 * @ud_room: bytes in front of a datagram that a queue pair sends to itself
 * @ud_lost: number of such datagrams that get lost
 * @max_mrs: maximum number of regions
 * @pci: the device has a bus that it can master
 * @master: bus mastering is enabled
 * @bounce: memory is only reached through bounce buffers
 * @iommu: memory is reached through an IOMMU, on a kernel where dma_need_sync() is always
 *	true then
 * @incoherent: the CPU's caches hide accesses of the device
 * @max_map: largest mapping in bytes
 * @missed: number of times that arming reports completions, present or not
 * @late: number of work requests that complete while their queue is armed, without event
 * @qps: queue pairs
 * @broken: queue pairs whose destruction failed
 * @objs: existing objects other than queue pairs
 * @lost: objects whose destruction failed
 * @ahs: address handles
 * @max_ahs: number of address handles that the device has room for; 0 for any
 * @mrs: regions
 * @next_qpn: number of the next queue pair
 * @next_key: key of the last region
 * @mem: mapped memory
 * @nmaps: number of mappings
 * @shadow: bytes of memory that the fake uses to check syncs
 */
struct efake {
	struct kunit			*test;
	struct kefa_dev			*dev;
	bool				published;
	struct ib_device		ibdev;
	struct device			*root;
	struct device_dma_parameters	seg;
	atomic_t			breaches;
	spinlock_t			lock;	/* protects all members below */
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
	u32				ud_room;
	unsigned int			ud_lost;
	unsigned int			max_mrs;
	bool				pci;
	bool				master;
	bool				bounce;
	bool				iommu;
	bool				incoherent;
	size_t				max_map;
	unsigned int			missed;
	unsigned int			late;
	struct list_head		qps;
	struct list_head		broken;
	struct list_head		objs;
	struct list_head		lost;
	unsigned int			ahs;
	unsigned int			max_ahs;
	unsigned int			mrs;
	u32				next_qpn;
	u32				next_key;
	struct efake_mem		*mem;
	unsigned int			nmaps;
	size_t				shadow;
};

/* Create a device that isn't published; the end of the case removes it. */
struct efake *efake_make(struct kunit *test, const char *name);
void efake_end(struct efake *fake);
void efake_publish(struct efake *fake);
/* Publish a device by the provider's own probe. */
void efake_start(struct efake *fake);
void efake_remove(struct efake *fake);

/* Make the nth call from now on fail, once. */
void efake_fail(struct efake *fake, enum efake_call call, unsigned int nth,
		int err);
unsigned int efake_calls(struct efake *fake, enum efake_call call);

/* Find a queue pair by its number, or the newest one. Domains have queue pairs, too. */
struct efake_qp *efake_qp(struct efake *fake, u32 qpn);
struct efake_qp *efake_last_qp(struct efake *fake);

/* Approximate memory of a queue pair, and of a number of regions. */
size_t efake_bytes(const struct efake_qp *qp, unsigned int mrs);

/* Return: the nth outstanding work request, from 0, or NULL. */
struct efake_wr *efake_sent(struct efake_qp *qp, unsigned int n);
struct efake_wr *efake_recv(struct efake_qp *qp, unsigned int n);

/* Complete a work request, and raise an event if the queue is armed. */
void efake_wr_done(struct efake_wr *wr, u32 status);
void efake_recv_done(struct efake_wr *wr, const struct kefa_wc *wc);
/* Write an arbitrary completion. */
void efake_qp_push(struct efake_qp *qp, const struct kefa_wc *wc);
/* Raise an event, armed or not. */
void efake_qp_event(struct efake_qp *qp);

/*
 * Carry out the oldest work request of each queue pair, if its peer is of the same device and has a
 * receive. Return: the number of them. @slid is the number of the device's own address handle.
 */
unsigned int efake_move(struct efake *fake, u16 slid);

/* Read and write local memory of a work request, as the device would. */
size_t efake_wr_read(const struct efake_wr *wr, u8 *buf, size_t len);
void efake_wr_write(const struct efake_wr *wr, const u8 *buf, size_t len);
/* Execute a read or write. Return: the device's status. */
u32 efake_wr_rdma(struct efake_wr *wr);
/* Access all memory that the device may still reach. Return: number of accesses. */
unsigned int efake_haunt(struct efake *fake);

/* Make a page that of another PCI device, until the next call; NULL for none. */
void efake_p2p(const struct page *page);
/* Return: the GID of an address handle. */
const u8 *efake_ah_gid(struct ib_ah *ah);
/* Find a region by its key; number of its pages; whether peers can reach it. */
const struct ib_mr *efake_mr(struct efake *fake, u32 rkey);
u32 efake_mr_pages(const struct ib_mr *mr);
u32 efake_mr_room(const struct ib_mr *mr);
bool efake_valid(struct efake *fake, u32 rkey);

/* Wait until the provider has handled all events. */
void efake_settle(void);
/* Wait until the provider has handled all events, and work of the device itself. */
void efake_settle_all(void);

#endif /* KOFI_EFAKE_H */
