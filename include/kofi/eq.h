/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Event queues, completion queues, counters: fi_eq(3), fi_cq(3), fi_cntr(3). */
#ifndef KOFI_EQ_H
#define KOFI_EQ_H

#include <kofi/fabric.h>

struct fid_cntr;
struct fid_cq;
struct fid_domain;
struct fid_eq;

/**
 * DOC: Handlers
 *
 * Handlers are an addition to libfabric. A worker calls the handler in process context,
 * with no lock held, once for each time that the queue was armed. A queue is armed when it
 * is opened and whenever a read finds it empty (-EAGAIN), so a handler reads until -EAGAIN,
 * or makes sure that another task does. fi_cq_readerr() and fi_eq_readerr() don't arm the
 * queue. A handler may make data calls and read queues, but control calls fail (-EDEADLK).
 *
 * A completion queue's handler that doesn't sleep can be called without a worker, in softirq
 * context: see FI_CQ_SOFTIRQ in struct fi_cq_attr. A call of such a handler reads at most 256
 * entries; then its reads return -EAGAIN, and it is called again for the rest.
 */

/**
 * enum fi_wait_obj - how a thread can wait for a queue or counter
 * @FI_WAIT_NONE: threads can't wait
 * @FI_WAIT_UNSPEC: threads wait with fi_eq_sread(), fi_cq_sread(), fi_cntr_wait()
 */
enum fi_wait_obj {
	FI_WAIT_NONE,
	FI_WAIT_UNSPEC,
};

/* Event queues */

/**
 * typedef fi_eq_handler_t - called when an event queue has events to read
 * @eq: the event queue
 * @context: handler_context of its attributes
 *
 * See Handlers, above.
 */
typedef void (*fi_eq_handler_t)(struct fid_eq *eq, void *context);

/**
 * struct fi_eq_attr - an event queue to be opened
 * @size: maximum number of events in the queue; 0 for a default
 * @flags: FI_WRITE to allow fi_eq_write(); FI_DEVICE_EVENTS to get FI_DEVICE_ARRIVED before a
 *	domain is bound to the queue (kernel only)
 * @wait_obj: FI_WAIT_UNSPEC to allow fi_eq_sread(), else FI_WAIT_NONE
 * @handler: called when there are events to read, or NULL (kernel only)
 * @handler_context: second argument of @handler
 */
struct fi_eq_attr {
	size_t			size;
	u64			flags;
	enum fi_wait_obj	wait_obj;
	fi_eq_handler_t		handler;
	void			*handler_context;
};

/**
 * enum fi_eq_event - kind of an event
 * @FI_NOTIFY: event that fi_eq_write() or the provider wrote; struct fi_eq_entry
 * @FI_CONNREQ: a peer wants a connection; struct fi_eq_cm_entry, whose fid is the passive endpoint
 * @FI_CONNECTED: a connection is established; struct fi_eq_cm_entry
 * @FI_SHUTDOWN: a connection has ended; struct fi_eq_cm_entry
 * @FI_DEVICE_REMOVED: a domain's device went away; struct fi_eq_device_entry,
 *	whose fid is the domain (kernel only)
 * @FI_DEVICE_ARRIVED: the provider has a new device, which fi_getinfo() shows;
 *	struct fi_eq_device_entry, whose fid is the fabric (kernel only)
 *
 * A removal reaches the event queue that the domain is bound to, and is never lost.
 * An arrival reaches each event queue of the provider's fabrics that was opened with
 * FI_DEVICE_EVENTS, or that a domain was ever bound to. It is lost if the queue is full; the
 * reader then gets -FI_EOVERRUN. Devices that were there when the queue was opened have no
 * event: open the queue first, and then call fi_getinfo().
 */
enum fi_eq_event {
	FI_NOTIFY		= 0,
	FI_CONNREQ		= 1,
	FI_CONNECTED		= 2,
	FI_SHUTDOWN		= 3,
	FI_DEVICE_REMOVED	= 0x10000,
	FI_DEVICE_ARRIVED	= 0x10001,
};

/**
 * struct fi_eq_entry - an event
 * @fid: object that the entry is about
 * @context: context of @fid
 * @data: depends on the event
 */
struct fi_eq_entry {
	struct fid	*fid;
	void		*context;
	u64		data;
};

/**
 * struct fi_eq_cm_entry - an event of a connection
 * @fid: the endpoint; for FI_CONNREQ the passive endpoint
 * @info: for FI_CONNREQ the entry to open an endpoint with, which the reader frees with
 *	fi_freeinfo(). Otherwise NULL
 * @data: private data of the peer, up to the end of the entry
 */
struct fi_eq_cm_entry {
	struct fid	*fid;
	struct fi_info	*info;
	u8		data[];
};

/**
 * struct fi_eq_device_entry - a device came or went
 * @fid: the domain that lost its device, or the fabric that has a new device
 * @context: context of @fid
 * @domain_name: name in fi_domain_attr
 */
struct fi_eq_device_entry {
	struct fid	*fid;
	void		*context;
	char		domain_name[FI_NAME_MAX];
};

/**
 * struct fi_eq_err_entry - an error that doesn't belong to a data transfer
 * @fid: object that the entry is about
 * @context: context of @fid
 * @data: depends on the operation
 * @err: positive errno
 * @prov_errno: the provider's error, for fi_eq_strerror()
 * @err_data: details in a format of the provider. On input the caller's buffer if
 *	@err_data_size isn't 0; otherwise the queue supplies a buffer, which is valid until
 *	the next read of the queue
 * @err_data_size: size in bytes of @err_data, on input and on output
 */
struct fi_eq_err_entry {
	struct fid	*fid;
	void		*context;
	u64		data;
	int		err;
	int		prov_errno;
	void		*err_data;
	size_t		err_data_size;
};

/**
 * struct fid_eq - an event queue
 * @fid: the common part
 */
struct fid_eq {
	struct fid	fid;
};

/* Reference: page api/eq of kOFI's documentation; libfabric's fi_eq(3) */
int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
	       struct fid_eq **eq, void *context);
ssize_t fi_eq_read(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		   u64 flags);
ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf,
		      u64 flags);
ssize_t fi_eq_write(struct fid_eq *eq, u32 event, const void *buf, size_t len,
		    u64 flags);
ssize_t fi_eq_sread(struct fid_eq *eq, u32 *event, void *buf, size_t len,
		    int timeout, u64 flags);
const char *kofi_strerror(const struct fid *fid, int prov_errno, char *buf, size_t len);

/**
 * fi_eq_strerror() - describe a provider's error
 * @eq: the event queue
 * @prov_errno: from the error entry
 * @err_data: NULL
 * @buf: takes the text, cut to @len; or NULL
 * @len: room at @buf
 *
 * Context: Any.
 * Return: the text. The number of an error that the provider doesn't know is only in @buf.
 */
static inline const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno,
					 const void *err_data, char *buf, size_t len)
{
	return kofi_strerror(&eq->fid, prov_errno, buf, len);
}

/**
 * fi_eq_error() - name of fi_eq_readerr() in the proposal of 2015
 * @eq: the event queue
 * @buf: takes the error
 * @flags: as for fi_eq_readerr()
 *
 * Context: As fi_eq_readerr().
 * Return: as fi_eq_readerr().
 */
static inline ssize_t fi_eq_error(struct fid_eq *eq,
				  struct fi_eq_err_entry *buf, u64 flags)
{
	return fi_eq_readerr(eq, buf, flags);
}

/* Completion queues */

/**
 * enum fi_cq_format - type of the entries that fi_cq_read() stores
 * @FI_CQ_FORMAT_UNSPEC: the provider's choice, stored into the attribute
 * @FI_CQ_FORMAT_CONTEXT: struct fi_cq_entry
 * @FI_CQ_FORMAT_MSG: struct fi_cq_msg_entry
 * @FI_CQ_FORMAT_DATA: struct fi_cq_data_entry
 * @FI_CQ_FORMAT_TAGGED: struct fi_cq_tagged_entry
 */
enum fi_cq_format {
	FI_CQ_FORMAT_UNSPEC,
	FI_CQ_FORMAT_CONTEXT,
	FI_CQ_FORMAT_MSG,
	FI_CQ_FORMAT_DATA,
	FI_CQ_FORMAT_TAGGED,
};

/**
 * enum fi_cq_wait_cond - condition that wakes fi_cq_sread()
 * @FI_CQ_COND_NONE: any entry
 * @FI_CQ_COND_THRESHOLD: a number of entries, passed as cond, a size_t cast to a pointer
 */
enum fi_cq_wait_cond {
	FI_CQ_COND_NONE,
	FI_CQ_COND_THRESHOLD,
};

/**
 * typedef fi_cq_handler_t - called when a completion queue has entries to read
 * @cq: the completion queue
 * @context: handler_context of its attributes
 *
 * See Handlers, above.
 */
typedef void (*fi_cq_handler_t)(struct fid_cq *cq, void *context);

/**
 * struct fi_cq_attr - a completion queue to be opened
 * @size: maximum number of outstanding operations and unread completions; 0 for a default
 * @flags: FI_AFFINITY if @signaling_vector is valid; FI_CQ_SOFTIRQ if @handler doesn't sleep and
 *	makes no control call, so that it may be called with softirqs off (kernel only)
 * @format: type of the entries that fi_cq_read() stores
 * @wait_obj: FI_WAIT_UNSPEC to allow fi_cq_sread(), else FI_WAIT_NONE
 * @signaling_vector: CPU that should process completions, a hint
 * @wait_cond: condition that wakes fi_cq_sread()
 * @handler: called when there are entries to read, or NULL (kernel only)
 * @handler_context: second argument of @handler
 */
struct fi_cq_attr {
	size_t			size;
	u64			flags;
	enum fi_cq_format	format;
	enum fi_wait_obj	wait_obj;
	int			signaling_vector;
	enum fi_cq_wait_cond	wait_cond;
	fi_cq_handler_t		handler;
	void			*handler_context;
};

/**
 * struct fi_cq_entry - a completion in the shortest format
 * @op_context: the operation's context
 */
struct fi_cq_entry {
	void	*op_context;
};

/**
 * struct fi_cq_msg_entry - a completion and the message's length
 * @op_context: the operation's context
 * @flags: kind of operation that completed: FI_SEND, FI_RECV, FI_MSG, FI_RMA, ...
 * @len: bytes received
 */
struct fi_cq_msg_entry {
	void	*op_context;
	u64	flags;
	size_t	len;
};

/**
 * struct fi_cq_data_entry - a completion with remote CQ data
 * @op_context: the operation's context
 * @flags: kind of operation that completed; FI_REMOTE_CQ_DATA if @data is valid
 * @len: bytes received
 * @buf: start of the data in a multi-receive buffer
 * @data: remote CQ data
 */
struct fi_cq_data_entry {
	void	*op_context;
	u64	flags;
	size_t	len;
	void	*buf;
	u64	data;
};

/**
 * struct fi_cq_tagged_entry - a completion with a tag
 * @op_context: the operation's context
 * @flags: kind of operation that completed; FI_REMOTE_CQ_DATA if @data is valid
 * @len: bytes received
 * @buf: start of the data in a multi-receive buffer
 * @data: remote CQ data
 * @tag: the message's tag
 */
struct fi_cq_tagged_entry {
	void	*op_context;
	u64	flags;
	size_t	len;
	void	*buf;
	u64	data;
	u64	tag;
};

/**
 * struct fi_cq_err_entry - an operation that failed
 * @op_context: the operation's context
 * @flags: kind of operation that failed
 * @len: bytes transferred
 * @buf: start of the data in a multi-receive buffer
 * @data: remote CQ data
 * @tag: the message's tag
 * @olen: number of bytes that didn't fit, with FI_ETRUNC
 * @err: positive errno, or enum fi_errno
 * @prov_errno: the provider's error, for fi_cq_strerror()
 * @err_data: details in a format of the provider. With FI_EADDRNOTAVAIL from an endpoint
 *	with FI_SOURCE_ERR, the sender's address, as fi_av_insert() takes it. On input the
 *	caller's buffer if @err_data_size isn't 0; otherwise the queue supplies a buffer,
 *	which is valid until the next read of the queue
 * @err_data_size: size in bytes of @err_data, on input and on output
 * @src_addr: for a receive the sender, for another operation the peer that it was for, or
 *	FI_ADDR_NOTAVAIL if the provider doesn't know
 *
 * Set @err_data_size before each fi_cq_readerr(); otherwise the value that the previous call
 * stored counts as the size of a buffer. If several CPUs read a queue, supply a buffer.
 */
struct fi_cq_err_entry {
	void		*op_context;
	u64		flags;
	size_t		len;
	void		*buf;
	u64		data;
	u64		tag;
	size_t		olen;
	int		err;
	int		prov_errno;
	void		*err_data;
	size_t		err_data_size;
	fi_addr_t	src_addr;
};

/**
 * struct fi_ops_cq - calls of a completion queue
 * @readfrom: see fi_cq_readfrom(); with src_addr NULL fi_cq_read()
 * @readerr: see fi_cq_readerr()
 * @sreadfrom: see fi_cq_sreadfrom(); with src_addr NULL fi_cq_sread()
 * @signal: see fi_cq_signal()
 */
struct fi_ops_cq {
	ssize_t (*readfrom)(struct fid_cq *cq, void *buf, size_t count,
			    fi_addr_t *src_addr);
	ssize_t (*readerr)(struct fid_cq *cq, struct fi_cq_err_entry *buf,
			   u64 flags);
	ssize_t (*sreadfrom)(struct fid_cq *cq, void *buf, size_t count,
			     fi_addr_t *src_addr, const void *cond,
			     int timeout);
	int (*signal)(struct fid_cq *cq);
};

/**
 * struct fid_cq - a completion queue
 * @fid: the common part
 * @ops: calls of the queue
 */
struct fid_cq {
	struct fid			fid;
	const struct fi_ops_cq		*ops;
};

/* Reference: page api/eq of kOFI's documentation; libfabric's fi_cq(3) */
int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
	       struct fid_cq **cq, void *context);

/**
 * fi_cq_strerror() - describe a provider's error
 * @cq: the completion queue
 * @prov_errno: from the error entry
 * @err_data: NULL
 * @buf: takes the text, cut to @len; or NULL
 * @len: room at @buf
 *
 * Context: Any.
 * Return: the text. The number of an error that the provider doesn't know is only in @buf.
 */
static inline const char *fi_cq_strerror(struct fid_cq *cq, int prov_errno,
					 const void *err_data, char *buf, size_t len)
{
	return kofi_strerror(&cq->fid, prov_errno, buf, len);
}

/**
 * fi_cq_read() - read completions
 * @cq: the completion queue
 * @buf: takes entries of the queue's format
 * @count: room at @buf, in entries
 *
 * Several CPUs may read a queue at once.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: entries stored, -EAGAIN when there is none, -FI_EAVAIL when an error
 * is at the head, for fi_cq_readerr().
 */
static inline ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return cq->ops->readfrom(cq, buf, count, NULL);
}

/**
 * fi_cq_readfrom() - read completions and the senders of messages
 * @cq: the completion queue
 * @buf: takes entries of the queue's format
 * @count: room at @buf and @src_addr, in entries
 * @src_addr: takes the senders, or FI_ADDR_NOTAVAIL; may be NULL
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: as fi_cq_read().
 */
static inline ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf,
				     size_t count, fi_addr_t *src_addr)
{
	return cq->ops->readfrom(cq, buf, count, src_addr);
}

/**
 * fi_cq_readerr() - read the error at the head
 * @cq: the completion queue
 * @buf: takes the error; err_data_size is an input, and err_data if the size isn't 0: see
 *	struct fi_cq_err_entry
 * @flags: must be 0
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 1, or -EAGAIN when there is no error at the head.
 */
static inline ssize_t fi_cq_readerr(struct fid_cq *cq,
				    struct fi_cq_err_entry *buf, u64 flags)
{
	return cq->ops->readerr(cq, buf, flags);
}

/**
 * fi_cq_sread() - wait for completions and read them
 * @cq: the completion queue, opened with FI_WAIT_UNSPEC
 * @buf: takes entries of the queue's format
 * @count: room at @buf, in entries
 * @cond: see enum fi_cq_wait_cond
 * @timeout: milliseconds; negative waits for ever
 *
 * Context: Process context; sleeps. Not from a completion handler.
 * Return: as fi_cq_read(). -EAGAIN has three causes, which the caller can't tell apart: the
 * timeout expired; fi_cq_signal() was called; or a post that was refused with -EAGAIN may succeed
 * now. In the last case the queue may have entries as well, so post again and then read again.
 * -ENODEV when the queue is empty and the device went away, although outstanding operations will
 * still complete; -EINTR, -EDEADLK, -EOPNOTSUPP for a queue without a wait object.
 */
static inline ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t count,
				  const void *cond, int timeout)
{
	return cq->ops->sreadfrom(cq, buf, count, NULL, cond, timeout);
}

/**
 * fi_cq_sreadfrom() - wait for completions, read them and the senders of messages
 * @cq: the completion queue, opened with FI_WAIT_UNSPEC
 * @buf: takes entries of the queue's format
 * @count: room at @buf and @src_addr, in entries
 * @src_addr: takes the senders, or FI_ADDR_NOTAVAIL; may be NULL
 * @cond: see enum fi_cq_wait_cond
 * @timeout: milliseconds; negative waits for ever
 *
 * Context: Process context; sleeps. Not from a completion handler.
 * Return: as fi_cq_sread().
 */
static inline ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf,
				      size_t count, fi_addr_t *src_addr,
				      const void *cond, int timeout)
{
	return cq->ops->sreadfrom(cq, buf, count, src_addr, cond, timeout);
}

/**
 * fi_cq_signal() - wake a task that waits in fi_cq_sread()
 * @cq: the completion queue, opened with FI_WAIT_UNSPEC
 *
 * Each call makes one waiting task return. If no task waits, the next task to wait returns
 * at once.
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0, or -EOPNOTSUPP for a queue without a wait object.
 */
static inline int fi_cq_signal(struct fid_cq *cq)
{
	return cq->ops->signal(cq);
}

/**
 * fi_cq_error() - name of fi_cq_readerr() in the proposal of 2015
 * @cq: the completion queue
 * @buf: takes the error
 * @flags: must be 0
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: as fi_cq_readerr().
 */
static inline ssize_t fi_cq_error(struct fid_cq *cq,
				  struct fi_cq_err_entry *buf, u64 flags)
{
	return fi_cq_readerr(cq, buf, flags);
}

/* Counters */

/**
 * enum fi_cntr_events - events that a counter counts
 * @FI_CNTR_EVENTS_COMP: completions
 * @FI_CNTR_EVENTS_BYTES: transferred bytes
 */
enum fi_cntr_events {
	FI_CNTR_EVENTS_COMP,
	FI_CNTR_EVENTS_BYTES,
};

/**
 * struct fi_cntr_attr - a counter to be opened
 * @events: what the counter counts
 * @wait_obj: FI_WAIT_UNSPEC to allow fi_cntr_wait(), else FI_WAIT_NONE
 * @flags: must be 0
 */
struct fi_cntr_attr {
	enum fi_cntr_events	events;
	enum fi_wait_obj	wait_obj;
	u64			flags;
};

/**
 * struct fi_ops_cntr - calls of a counter
 * @read: see fi_cntr_read()
 * @readerr: see fi_cntr_readerr()
 * @add: see fi_cntr_add()
 * @adderr: see fi_cntr_adderr()
 * @set: see fi_cntr_set()
 * @seterr: see fi_cntr_seterr()
 * @wait: see fi_cntr_wait()
 */
struct fi_ops_cntr {
	u64 (*read)(struct fid_cntr *cntr);
	u64 (*readerr)(struct fid_cntr *cntr);
	int (*add)(struct fid_cntr *cntr, u64 value);
	int (*adderr)(struct fid_cntr *cntr, u64 value);
	int (*set)(struct fid_cntr *cntr, u64 value);
	int (*seterr)(struct fid_cntr *cntr, u64 value);
	int (*wait)(struct fid_cntr *cntr, u64 threshold, int timeout);
};

/**
 * struct fid_cntr - a counter
 * @fid: the common part
 * @ops: calls of the counter
 */
struct fid_cntr {
	struct fid			fid;
	const struct fi_ops_cntr	*ops;
};

/* Reference: page api/eq of kOFI's documentation; libfabric's fi_cntr(3) */
int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		 struct fid_cntr **cntr, void *context);

/**
 * fi_cntr_read() - value of a counter
 * @cntr: the counter
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: the value.
 */
static inline u64 fi_cntr_read(struct fid_cntr *cntr)
{
	return cntr->ops->read(cntr);
}

/**
 * fi_cntr_readerr() - error value of a counter
 * @cntr: the counter
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: number of failed operations.
 */
static inline u64 fi_cntr_readerr(struct fid_cntr *cntr)
{
	return cntr->ops->readerr(cntr);
}

/**
 * fi_cntr_add() - add to a counter
 * @cntr: the counter
 * @value: the value to add
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0.
 */
static inline int fi_cntr_add(struct fid_cntr *cntr, u64 value)
{
	return cntr->ops->add(cntr, value);
}

/**
 * fi_cntr_adderr() - add to a counter's error value
 * @cntr: the counter
 * @value: the value to add
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0.
 */
static inline int fi_cntr_adderr(struct fid_cntr *cntr, u64 value)
{
	return cntr->ops->adderr(cntr, value);
}

/**
 * fi_cntr_set() - set a counter
 * @cntr: the counter
 * @value: the new value
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0.
 */
static inline int fi_cntr_set(struct fid_cntr *cntr, u64 value)
{
	return cntr->ops->set(cntr, value);
}

/**
 * fi_cntr_seterr() - set a counter's error value
 * @cntr: the counter
 * @value: the new error value
 *
 * Context: Data call: process or softirq context; doesn't sleep.
 * Return: 0.
 */
static inline int fi_cntr_seterr(struct fid_cntr *cntr, u64 value)
{
	return cntr->ops->seterr(cntr, value);
}

/**
 * fi_cntr_wait() - wait until a counter has reached a value
 * @cntr: the counter, opened with FI_WAIT_UNSPEC
 * @threshold: the value
 * @timeout: milliseconds; negative waits for ever
 *
 * Context: Process context; sleeps. Not from a completion handler.
 * Return: 0 once the counter has reached @threshold; -FI_EAVAIL when its error value
 * differs from the value that fi_cntr_readerr() returned last, initially 0; -EAGAIN when a
 * post that was refused with -EAGAIN may succeed now and the endpoint has no completion
 * queue for it; -ENODEV when the device went away, -ETIMEDOUT, -EINTR, -EDEADLK,
 * -EOPNOTSUPP for a counter without a wait object.
 */
static inline int fi_cntr_wait(struct fid_cntr *cntr, u64 threshold,
			       int timeout)
{
	return cntr->ops->wait(cntr, threshold, timeout);
}

#endif /* KOFI_EQ_H */
