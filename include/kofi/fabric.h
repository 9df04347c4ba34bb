/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fabrics, discovery, and the common part of every object.
 *
 * Names, values and meanings are libfabric's: fi_getinfo(3), fi_fabric(3).
 * Documentation/differences.rst lists the exceptions.
 */
#ifndef KOFI_FABRIC_H
#define KOFI_FABRIC_H

#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/types.h>
#include <kofi/errno.h>

/* Version of the libfabric API that the calls implement. */
#define FI_MAJOR_VERSION	2
#define FI_MINOR_VERSION	0

#define FI_VERSION(major, minor)	(((u32)(major) << 16) | (minor))
#define FI_MAJOR(version)		((version) >> 16)
#define FI_MINOR(version)		((version) & 0xFFFF)
#define FI_VERSION_GE(v1, v2)		((v1) >= (v2))
#define FI_VERSION_LT(v1, v2)		((v1) < (v2))

/**
 * KOFI_IMPORT_NS() - import a symbol namespace of kOFI
 * @ns: KOFI, KOFI_ULP, KOFI_CM or KOFI_PROVIDER
 *
 * For a module that is built for several kernels: the argument of MODULE_IMPORT_NS() is a word
 * before Linux 6.13 and a string from then on. For a file that includes <linux/module.h>.
 */
#define KOFI_IMPORT_NS(ns)		MODULE_INFO(import_ns, #ns)

/* Largest size of the name of a provider, fabric or domain, including its NUL. */
#define FI_NAME_MAX		64

/* Largest size in bytes of an endpoint's address, whatever its format. */
#define FI_ADDR_MAX		64

struct fi_ops;
struct fi_ops_fabric;
struct kofi_node;

/* Capabilities, operation flags and completion flags share one space. */
#define FI_MSG			BIT_ULL(1)
#define FI_RMA			BIT_ULL(2)
#define FI_TAGGED		BIT_ULL(3)
#define FI_ATOMIC		BIT_ULL(4)
#define FI_READ			BIT_ULL(8)
#define FI_WRITE		BIT_ULL(9)
#define FI_RECV			BIT_ULL(10)
#define FI_SEND			BIT_ULL(11)
#define FI_TRANSMIT		FI_SEND
#define FI_REMOTE_READ		BIT_ULL(12)
#define FI_REMOTE_WRITE		BIT_ULL(13)
#define FI_MULTI_RECV		BIT_ULL(16)
#define FI_REMOTE_CQ_DATA	BIT_ULL(17)
#define FI_MORE			BIT_ULL(18)
#define FI_PEEK			BIT_ULL(19)
#define FI_FENCE		BIT_ULL(21)
#define FI_COMPLETION		BIT_ULL(24)
#define FI_INJECT		BIT_ULL(25)
#define FI_INJECT_COMPLETE	BIT_ULL(26)
#define FI_TRANSMIT_COMPLETE	BIT_ULL(27)
#define FI_DELIVERY_COMPLETE	BIT_ULL(28)
#define FI_AFFINITY		BIT_ULL(29)
#define FI_RESCAN		BIT_ULL(35)
#define FI_SOURCE_ERR		BIT_ULL(50)
#define FI_LOCAL_COMM		BIT_ULL(51)
#define FI_REMOTE_COMM		BIT_ULL(52)
#define FI_PROV_ATTR_ONLY	BIT_ULL(54)
#define FI_NUMERICHOST		BIT_ULL(55)
#define FI_RMA_EVENT		BIT_ULL(56)
#define FI_SOURCE		BIT_ULL(57)
#define FI_DIRECTED_RECV	BIT_ULL(59)

/* Flags of single calls. They reuse the bits of capabilities. */
#define FI_SELECTIVE_COMPLETION	BIT_ULL(59)	/* fi_ep_bind() with a CQ */
#define FI_LAZY_COMPLETION	BIT_ULL(61)	/* fi_ep_bind() with a CQ, kernel only */
#define FI_DISCARD		BIT_ULL(58)	/* fi_trecvmsg() */
#define FI_CLAIM		BIT_ULL(59)	/* fi_trecvmsg() */
#define FI_DEVICE_EVENTS	BIT_ULL(60)	/* fi_eq_open(), kernel only */
#define FI_RETIRE		BIT_ULL(60)	/* fi_mr_alloc(), kernel only */
#define FI_CQ_SOFTIRQ		BIT_ULL(62)	/* fi_cq_open(), kernel only */

/* Mode bits: requirements of a provider on its caller. See struct fi_context. */
#define FI_CONTEXT		BIT_ULL(59)
#define FI_MSG_PREFIX		BIT_ULL(58)
#define FI_RX_CQ_DATA		BIT_ULL(56)
#define FI_CONTEXT2		BIT_ULL(52)

/* Memory registration mode bits, fi_mr(3). */
#define FI_MR_LOCAL		BIT(2)
#define FI_MR_RAW		BIT(3)
#define FI_MR_VIRT_ADDR		BIT(4)
#define FI_MR_ALLOCATED		BIT(5)
#define FI_MR_PROV_KEY		BIT(6)
#define FI_MR_RMA_EVENT		BIT(8)
#define FI_MR_ENDPOINT		BIT(9)

/* Message ordering, fi_endpoint(3). */
#define FI_ORDER_RAR		BIT_ULL(0)
#define FI_ORDER_RAW		BIT_ULL(1)
#define FI_ORDER_RAS		BIT_ULL(2)
#define FI_ORDER_WAR		BIT_ULL(3)
#define FI_ORDER_WAW		BIT_ULL(4)
#define FI_ORDER_WAS		BIT_ULL(5)
#define FI_ORDER_SAR		BIT_ULL(6)
#define FI_ORDER_SAW		BIT_ULL(7)
#define FI_ORDER_SAS		BIT_ULL(8)
#define FI_ORDER_ATOMIC_RAR	BIT_ULL(36)
#define FI_ORDER_ATOMIC_RAW	BIT_ULL(37)
#define FI_ORDER_ATOMIC_WAR	BIT_ULL(38)
#define FI_ORDER_ATOMIC_WAW	BIT_ULL(39)

/**
 * struct fi_context - memory for the provider in an operation's context, fi_getinfo(3)
 * @internal: for the provider's use
 *
 * With FI_CONTEXT in the mode bits, the context of each operation must point to a struct
 * fi_context, or to a structure that begins with one. The struct belongs to the provider
 * from the call until the operation has completed. libfabric always requires one with
 * FI_CLAIM, fi_tagged(3).
 */
struct fi_context {
	void *internal[4];
};

/**
 * struct fi_context2 - as struct fi_context, for FI_CONTEXT2
 * @internal: for the provider's use
 */
struct fi_context2 {
	void *internal[8];
};

typedef u64 fi_addr_t;

#define FI_ADDR_UNSPEC		((u64)-1)
#define FI_ADDR_NOTAVAIL	((u64)-1)
#define FI_KEY_NOTAVAIL		((u64)-1)

/* Address formats. The values are libfabric's. */
enum {
	FI_FORMAT_UNSPEC	= 0,
	FI_SOCKADDR		= 1,
	FI_SOCKADDR_IN		= 2,
	FI_SOCKADDR_IN6		= 3,
	FI_ADDR_STR		= 9,
	FI_ADDR_EFA		= 12,
};

/* Wire protocols. The values are libfabric's. */
enum {
	FI_PROTO_UNSPEC		= 0,
	FI_PROTO_EFA		= 20,
};

/* Connections over an unconnected endpoint of another protocol (kernel only). */
#define FI_PROTO_KOFI_MSG	((u32)BIT(31) | 1)

/**
 * enum fi_class - class of an object
 * @FI_CLASS_UNSPEC: not open yet, or already closed
 * @FI_CLASS_FABRIC: struct fid_fabric
 * @FI_CLASS_DOMAIN: struct fid_domain
 * @FI_CLASS_EP: struct fid_ep
 * @FI_CLASS_AV: struct fid_av
 * @FI_CLASS_MR: struct fid_mr
 * @FI_CLASS_EQ: struct fid_eq
 * @FI_CLASS_CQ: struct fid_cq
 * @FI_CLASS_CNTR: struct fid_cntr
 * @FI_CLASS_PEP: struct fid_pep
 * @FI_CLASS_CONNREQ: connection request, in fi_info.handle
 */
enum fi_class {
	FI_CLASS_UNSPEC,
	FI_CLASS_FABRIC,
	FI_CLASS_DOMAIN,
	FI_CLASS_EP,
	FI_CLASS_AV,
	FI_CLASS_MR,
	FI_CLASS_EQ,
	FI_CLASS_CQ,
	FI_CLASS_CNTR,
	FI_CLASS_PEP,
	FI_CLASS_CONNREQ,
};

/**
 * struct fid - the common part of every object
 * @fclass: class of the object
 * @context: the caller's context, given when the object was opened
 * @ops: the provider's operations
 * @wait: wait queue of the tasks that sleep on the object, or NULL; kofi_cq_init() and
 *	kofi_cntr_init() set it
 * @node: the core's record of the object's place in the tree and its state; NULL until
 *	the object is open
 * @id: the core's number for the object, in events, traces and debugfs; 0 until the
 *	object is open
 * @dead: the object's device went away; set by the core
 */
struct fid {
	enum fi_class		fclass;
	void			*context;
	const struct fi_ops	*ops;
	struct wait_queue_head	*wait;
	struct kofi_node	*node;
	u32			id;
	bool			dead;
};

/**
 * struct fid_fabric - an open fabric
 * @fid: the common part
 * @ops: the provider's operations
 */
struct fid_fabric {
	struct fid			fid;
	const struct fi_ops_fabric	*ops;
};

/**
 * enum fi_av_type - kind of fi_addr_t that an address vector returns, fi_av(3)
 * @FI_AV_UNSPEC: the provider's choice
 * @FI_AV_MAP: an opaque value that only the provider can interpret
 * @FI_AV_TABLE: an index, counted from 0 in the order of insertion
 */
enum fi_av_type {
	FI_AV_UNSPEC,
	FI_AV_MAP,
	FI_AV_TABLE,
};

/**
 * enum fi_ep_type - kind of an endpoint, fi_endpoint(3)
 * @FI_EP_UNSPEC: any
 * @FI_EP_MSG: connected
 * @FI_EP_DGRAM: unreliable datagrams
 * @FI_EP_RDM: reliable, without a connection
 */
enum fi_ep_type {
	FI_EP_UNSPEC,
	FI_EP_MSG,
	FI_EP_DGRAM,
	FI_EP_RDM,
};

/**
 * enum fi_progress - which side drives operations, fi_domain(3)
 * @FI_PROGRESS_UNSPEC: any
 * @FI_PROGRESS_AUTO: the provider drives operations, independently of its caller
 * @FI_PROGRESS_MANUAL: the caller drives operations by reading queues
 * @FI_PROGRESS_CONTROL_UNIFIED: the caller drives data and control operations together
 */
enum fi_progress {
	FI_PROGRESS_UNSPEC,
	FI_PROGRESS_AUTO,
	FI_PROGRESS_MANUAL,
	FI_PROGRESS_CONTROL_UNIFIED,
};

/**
 * enum fi_threading - which calls the caller serializes, fi_domain(3)
 * @FI_THREAD_UNSPEC: any
 * @FI_THREAD_SAFE: none
 * @FI_THREAD_FID: calls on the same object
 * @FI_THREAD_DOMAIN: calls on objects of one domain
 * @FI_THREAD_COMPLETION: calls on objects that share a queue or counter
 * @FI_THREAD_ENDPOINT: calls on one endpoint, its queues and counters
 */
enum fi_threading {
	FI_THREAD_UNSPEC,
	FI_THREAD_SAFE,
	FI_THREAD_FID,
	FI_THREAD_DOMAIN,
	FI_THREAD_COMPLETION,
	FI_THREAD_ENDPOINT,
};

/**
 * enum fi_resource_mgmt - which side protects queues against overrun, fi_domain(3)
 * @FI_RM_UNSPEC: any
 * @FI_RM_DISABLED: the caller protects queues
 * @FI_RM_ENABLED: the provider protects queues
 */
enum fi_resource_mgmt {
	FI_RM_UNSPEC,
	FI_RM_DISABLED,
	FI_RM_ENABLED,
};

/**
 * struct fi_tx_attr - the sending side of an endpoint, fi_endpoint(3)
 * @caps: capabilities of this side
 * @mode: mode bits of this side
 * @op_flags: default flags, for calls without a flags argument
 * @msg_order: order of messages, FI_ORDER bits
 * @comp_order: order of completions, FI_ORDER bits
 * @inject_size: largest inject in bytes
 * @size: maximum number of outstanding operations
 * @iov_limit: maximum number of segments of a local buffer
 * @rma_iov_limit: maximum number of segments of a remote buffer
 */
struct fi_tx_attr {
	u64	caps;
	u64	mode;
	u64	op_flags;
	u64	msg_order;
	u64	comp_order;
	size_t	inject_size;
	size_t	size;
	size_t	iov_limit;
	size_t	rma_iov_limit;
};

/**
 * struct fi_rx_attr - the receiving side of an endpoint, fi_endpoint(3)
 * @caps: capabilities of this side
 * @mode: mode bits of this side
 * @op_flags: default flags, for calls without a flags argument
 * @msg_order: order of messages, FI_ORDER bits
 * @comp_order: order of completions, FI_ORDER bits
 * @size: maximum number of outstanding receives
 * @iov_limit: maximum number of segments of a buffer
 */
struct fi_rx_attr {
	u64	caps;
	u64	mode;
	u64	op_flags;
	u64	msg_order;
	u64	comp_order;
	size_t	size;
	size_t	iov_limit;
};

/**
 * struct fi_ep_attr - an endpoint, fi_endpoint(3)
 * @type: kind of endpoint
 * @protocol: wire protocol, FI_PROTO
 * @protocol_version: version of @protocol
 * @max_msg_size: largest message or RMA operation in bytes
 * @msg_prefix_size: bytes in front of the data that FI_MSG_PREFIX requires
 * @max_order_raw_size: largest size in bytes at which read after write keeps its order
 * @max_order_war_size: largest size in bytes at which write after read keeps its order
 * @max_order_waw_size: largest size in bytes at which write after write keeps its order
 * @mem_tag_format: layout of a tag, fi_tagged(3)
 * @tx_ctx_cnt: transmit contexts of an endpoint
 * @rx_ctx_cnt: receive contexts of an endpoint
 */
struct fi_ep_attr {
	enum fi_ep_type	type;
	u32		protocol;
	u32		protocol_version;
	size_t		max_msg_size;
	size_t		msg_prefix_size;
	size_t		max_order_raw_size;
	size_t		max_order_war_size;
	size_t		max_order_waw_size;
	u64		mem_tag_format;
	size_t		tx_ctx_cnt;
	size_t		rx_ctx_cnt;
};

/**
 * struct fi_domain_attr - a domain: one device's resources, fi_domain(3)
 * @name: name of the device
 * @threading: how the caller must serialize calls
 * @control_progress: which side drives control operations
 * @data_progress: which side drives data transfers
 * @resource_mgmt: which side protects queues against overrun
 * @av_type: kind of address vector
 * @mr_mode: requirements of memory registration, FI_MR bits
 * @mr_key_size: size in bytes of a memory region's key
 * @cq_data_size: size in bytes of remote CQ data
 * @cq_cnt: optimal number of completion queues
 * @ep_cnt: maximum number of open endpoints
 * @tx_ctx_cnt: optimal number of transmit contexts
 * @rx_ctx_cnt: optimal number of receive contexts
 * @max_ep_tx_ctx: maximum number of transmit contexts of an endpoint
 * @max_ep_rx_ctx: maximum number of receive contexts of an endpoint
 * @cntr_cnt: optimal number of counters
 * @mr_iov_limit: maximum number of segments of a memory region
 * @caps: capabilities of the domain
 * @mode: mode bits of the domain
 * @max_err_data: maximum size in bytes of provider data in an error entry
 * @mr_cnt: maximum number of open memory regions; a domain has the limit that it was opened
 *	with, for which a ULP can ask
 * @numa_node: NUMA node of the device, or NUMA_NO_NODE (kernel only)
 */
struct fi_domain_attr {
	char			*name;
	enum fi_threading	threading;
	enum fi_progress	control_progress;
	enum fi_progress	data_progress;
	enum fi_resource_mgmt	resource_mgmt;
	enum fi_av_type		av_type;
	u32			mr_mode;
	size_t			mr_key_size;
	size_t			cq_data_size;
	size_t			cq_cnt;
	size_t			ep_cnt;
	size_t			tx_ctx_cnt;
	size_t			rx_ctx_cnt;
	size_t			max_ep_tx_ctx;
	size_t			max_ep_rx_ctx;
	size_t			cntr_cnt;
	size_t			mr_iov_limit;
	u64			caps;
	u64			mode;
	size_t			max_err_data;
	size_t			mr_cnt;
	int			numa_node;
};

/**
 * struct fi_fabric_attr - a fabric, fi_fabric(3)
 * @name: name of the fabric
 * @prov_name: name of the provider
 * @prov_version: version of the provider
 * @api_version: API version that the caller requested
 */
struct fi_fabric_attr {
	char	*name;
	char	*prov_name;
	u32	prov_version;
	u32	api_version;
};

/**
 * struct fi_device_attr - the network device's identity
 * @name: name in the system
 * @device_id: device number
 * @device_version: generation or revision
 * @vendor_id: vendor number
 * @driver: kernel driver
 * @firmware: firmware version
 */
struct fi_device_attr {
	char	*name;
	char	*device_id;
	char	*device_version;
	char	*vendor_id;
	char	*driver;
	char	*firmware;
};

/**
 * struct fi_link_attr - the network device's link
 * @address: address of the link as text
 * @mtu: largest packet in bytes
 * @speed: bits per second, 0 when unknown
 * @up: whether the link is up
 * @network_type: kind of network
 */
struct fi_link_attr {
	char	*address;
	size_t	mtu;
	size_t	speed;
	bool	up;
	char	*network_type;
};

/**
 * struct fi_left_attr - objects that the network device has left (kernel only)
 * @queue_pairs: queue pairs that can still be created, one for each enabled endpoint and one for
 *	each domain
 * @regions: memory regions
 * @address_handles: address handles, in each domain one for each device that it has peers on
 *
 * The provider counts its own objects. Those of other users of the device, such as processes,
 * take from the same limits, so that there may be fewer.
 */
struct fi_left_attr {
	size_t	queue_pairs;
	size_t	regions;
	size_t	address_handles;
};

/**
 * struct fid_nic - the network device behind an entry, fi_nic(3)
 * @device_attr: identity
 * @link_attr: link
 * @left_attr: objects left when the entry was made (kernel only)
 */
struct fid_nic {
	struct fi_device_attr	device_attr;
	struct fi_link_attr	link_attr;
	struct fi_left_attr	left_attr;
};

/**
 * struct fi_info - one way to communicate, fi_getinfo(3)
 * @next: next entry of the list
 * @caps: capabilities
 * @mode: mode bits
 * @addr_format: format of addresses
 * @src_addrlen: size in bytes of @src_addr
 * @dest_addrlen: size in bytes of @dest_addr
 * @src_addr: local address; in hints it selects the device that has it, unless with FI_SOURCE
 * @dest_addr: a peer's address, in @addr_format: that of the node that fi_getinfo() was asked for,
 *	or that of the hints. Insert it with fi_av_insert(); opening a domain or an endpoint with
 *	the entry doesn't
 * @tx_attr: attributes of the endpoint's sending side
 * @rx_attr: attributes of the endpoint's receiving side
 * @ep_attr: attributes of the endpoint
 * @domain_attr: attributes of the domain
 * @fabric_attr: attributes of the fabric
 * @nic: the network device, or NULL
 * @handle: connection request that an endpoint is opened for: see fi_accept(). NULL in other
 *	entries. It isn't owned by the entry
 *
 * Everything else that an entry points to is allocated with kmalloc() or
 * kstrdup() and freed by fi_freeinfo().
 */
struct fi_info {
	struct fi_info		*next;
	u64			caps;
	u64			mode;
	u32			addr_format;
	size_t			src_addrlen;
	size_t			dest_addrlen;
	void			*src_addr;
	void			*dest_addr;
	struct fi_tx_attr	*tx_attr;
	struct fi_rx_attr	*rx_attr;
	struct fi_ep_attr	*ep_attr;
	struct fi_domain_attr	*domain_attr;
	struct fi_fabric_attr	*fabric_attr;
	struct fid_nic		*nic;
	struct fid		*handle;
};

/* Commands of fi_control(). */
enum {
	FI_GETOPSFLAG	= 2,	/* u64 *: FI_TRANSMIT or FI_RECV in, flags out */
	FI_SETOPSFLAG	= 3,	/* u64 *: FI_TRANSMIT or FI_RECV and the flags */
	FI_ENABLE	= 6,	/* NULL; the same as fi_enable() */
	FI_BACKLOG	= 7,	/* int *: most unanswered requests of a passive endpoint */
	FI_DISABLE	= 64,	/* NULL; the same as fi_disable(): kernel only */
};

/**
 * enum fi_type - type of the value that fi_tostr() prints
 * @FI_TYPE_INFO: struct fi_info, one entry
 * @FI_TYPE_EP_TYPE: enum fi_ep_type
 * @FI_TYPE_CAPS: u64 of capabilities
 * @FI_TYPE_OP_FLAGS: u64 of operation flags
 * @FI_TYPE_ADDR_FORMAT: u32, FI_ADDR
 * @FI_TYPE_TX_ATTR: struct fi_tx_attr
 * @FI_TYPE_RX_ATTR: struct fi_rx_attr
 * @FI_TYPE_EP_ATTR: struct fi_ep_attr
 * @FI_TYPE_DOMAIN_ATTR: struct fi_domain_attr
 * @FI_TYPE_FABRIC_ATTR: struct fi_fabric_attr
 * @FI_TYPE_THREADING: enum fi_threading
 * @FI_TYPE_PROGRESS: enum fi_progress
 * @FI_TYPE_PROTOCOL: u32, FI_PROTO
 * @FI_TYPE_MSG_ORDER: u64 of FI_ORDER bits
 * @FI_TYPE_MODE: u64 of mode bits
 * @FI_TYPE_AV_TYPE: enum fi_av_type
 * @FI_TYPE_VERSION: u32, made by FI_VERSION()
 * @FI_TYPE_EQ_EVENT: u32, an EQ event
 * @FI_TYPE_CQ_EVENT_FLAGS: u64 of completion flags
 * @FI_TYPE_MR_MODE: u32 of FI_MR bits
 * @FI_TYPE_FID: struct fid
 * @FI_TYPE_RESOURCE_MGMT: enum fi_resource_mgmt (kernel only)
 * @FI_TYPE_NIC: struct fid_nic (kernel only)
 * @FI_TYPE_ATOMIC_TYPE: enum fi_datatype
 * @FI_TYPE_ATOMIC_OP: enum fi_op
 * @FI_TYPE_MAX: number of types
 */
enum fi_type {
	FI_TYPE_INFO,
	FI_TYPE_EP_TYPE,
	FI_TYPE_CAPS,
	FI_TYPE_OP_FLAGS,
	FI_TYPE_ADDR_FORMAT,
	FI_TYPE_TX_ATTR,
	FI_TYPE_RX_ATTR,
	FI_TYPE_EP_ATTR,
	FI_TYPE_DOMAIN_ATTR,
	FI_TYPE_FABRIC_ATTR,
	FI_TYPE_THREADING,
	FI_TYPE_PROGRESS,
	FI_TYPE_PROTOCOL,
	FI_TYPE_MSG_ORDER,
	FI_TYPE_MODE,
	FI_TYPE_AV_TYPE,
	FI_TYPE_VERSION,
	FI_TYPE_EQ_EVENT,
	FI_TYPE_CQ_EVENT_FLAGS,
	FI_TYPE_MR_MODE,
	FI_TYPE_FID,
	FI_TYPE_RESOURCE_MGMT,
	FI_TYPE_NIC,
	FI_TYPE_ATOMIC_TYPE,
	FI_TYPE_ATOMIC_OP,
	FI_TYPE_MAX,
};

/* Reference: page api/fabric of kOFI's documentation; libfabric's fi_version(3), fi_getinfo(3) */
u32 fi_version(void);

int fi_getinfo(u32 version, const char *node, const char *service, u64 flags,
	       const struct fi_info *hints, struct fi_info **info);
struct fi_info *fi_dupinfo(const struct fi_info *info);
struct fi_info *fi_allocinfo_for(const char *prov, const char *fabric,
				 const char *domain);
void fi_freeinfo(struct fi_info *info);

/**
 * fi_allocinfo() - allocate an empty entry, to be filled in as hints
 *
 * The entry has all attributes, and they are zero except for numa_node, which is
 * NUMA_NO_NODE.
 *
 * Context: Process context; may sleep. Allocates in the caller's scope.
 * Return: the entry, for fi_freeinfo(), or NULL when memory is short.
 */
static inline struct fi_info *fi_allocinfo(void)
{
	return fi_dupinfo(NULL);
}

/* Reference: page api/fabric of kOFI's documentation; libfabric's fi_fabric(3), fi_control(3) */
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	      void *context);
int fi_close(struct fid *fid);
int fi_control(struct fid *fid, int command, void *arg);
int fi_open_ops(struct fid *fid, const char *name, u64 flags, void **ops, void *context);

char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type type);
char *fi_tostr(const void *data, enum fi_type type);

#endif /* KOFI_FABRIC_H */
