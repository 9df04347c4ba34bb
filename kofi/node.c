// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lifetime. Each object has a node, which holds its state and counts the objects that
 * depend on it: children, objects that it is bound to, and regions that name it. An object
 * whose count is 1 can be closed, any other is busy. A count of 0 means that the object is
 * being closed and that nothing can be opened from it.
 *
 * The nodes of one provider's objects form a tree below a fabric. A node is linked only
 * while its object is valid: from the end of its opening to the beginning of its close. So
 * code that walks the tree under kofi_tree_lock may access the objects.
 */
#define pr_fmt(fmt) "kofi: " fmt

#include <linux/idr.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "kofi.h"
#include "trace.h"

/* Protects the links between nodes, and the nodes' states. */
DEFINE_MUTEX(kofi_tree_lock);
static LIST_HEAD(kofi_fabrics);		/* kofi_tree_lock */
static DEFINE_IDA(kofi_ids);

static const char * const kofi_class_names[] = {
	[FI_CLASS_UNSPEC]	= "unspec",
	[FI_CLASS_FABRIC]	= "fabric",
	[FI_CLASS_DOMAIN]	= "domain",
	[FI_CLASS_EP]		= "ep",
	[FI_CLASS_AV]		= "av",
	[FI_CLASS_MR]		= "mr",
	[FI_CLASS_EQ]		= "eq",
	[FI_CLASS_CQ]		= "cq",
	[FI_CLASS_CNTR]		= "cntr",
	[FI_CLASS_PEP]		= "pep",
	[FI_CLASS_CONNREQ]	= "connreq",
};

/* The states from which each state may be entered. */
static const u8 kofi_state_from[KOFI_STATES] = {
	[KOFI_OPEN]	= BIT(KOFI_ENABLING),
	[KOFI_ENABLING]	= BIT(KOFI_OPEN),
	[KOFI_ENABLED]	= BIT(KOFI_ENABLING),
	[KOFI_DEAD]	= BIT(KOFI_OPEN) | BIT(KOFI_ENABLING) |
			  BIT(KOFI_ENABLED) | BIT(KOFI_DEAD),
};

static const char * const kofi_state_names[KOFI_STATES] = {
	[KOFI_OPEN]	= "open",
	[KOFI_ENABLING]	= "enabling",
	[KOFI_ENABLED]	= "enabled",
	[KOFI_DEAD]	= "dead",
};

/**
 * kofi_class_name() - name a class of objects
 * @fclass: the class
 *
 * Context: Any.
 * Return: the name.
 */
const char *kofi_class_name(enum fi_class fclass)
{
	return fclass < ARRAY_SIZE(kofi_class_names) ?
	       kofi_class_names[fclass] : "?";
}

struct fid_ep *kofi_to_ep(struct fid *fid)
{
	return container_of(fid, struct fid_ep, fid);
}

/**
 * kofi_enter() - check the object and the context of a control call
 * @fid: the object
 * @fclass: the class that the object must have, or FI_CLASS_UNSPEC for any
 *
 * Context: Process context; warns about callers that can't sleep.
 * Return: 0, -EINVAL for NULL or an object of another class, -EDEADLK in a completion
 * handler, -ENODEV when the object's device went away.
 */
int kofi_enter(const struct fid *fid, enum fi_class fclass)
{
	might_sleep();
	if (!fid || !fid->node || (fclass && fid->fclass != fclass))
		return -EINVAL;
	if (kofi_in_handler())
		return -EDEADLK;
	return kofi_fid_dead(fid) ? -ENODEV : 0;
}

/**
 * kofi_enter_ep() - check the object and the context of a call on an endpoint of either kind
 * @fid: the object
 *
 * Context: Process context; warns about callers that can't sleep.
 * Return: as kofi_enter(), -EINVAL for anything but a struct fid_ep or fid_pep.
 */
int kofi_enter_ep(const struct fid *fid)
{
	return kofi_enter(fid, fid && fid->fclass == FI_CLASS_PEP ? FI_CLASS_PEP : FI_CLASS_EP);
}

/**
 * kofi_node_alloc() - allocate the node of an object that is about to be opened
 * @parent: node of the parent, which the new node pins, or NULL
 *
 * Context: Process context; sleeps. Allocates in the caller's scope.
 * Return: the node, or an ERR_PTR(): -EINVAL when the parent is being closed.
 */
struct kofi_node *kofi_node_alloc(struct kofi_node *parent)
{
	struct kofi_node *node;
	int id;

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return ERR_PTR(-ENOMEM);
	id = ida_alloc_min(&kofi_ids, 1, GFP_KERNEL);
	if (id < 0) {
		kfree(node);
		return ERR_PTR(id);
	}
	node->id = id;
	refcount_set(&node->refs, 1);
	INIT_LIST_HEAD(&node->sibling);
	INIT_LIST_HEAD(&node->children);
	INIT_LIST_HEAD(&node->binds);
	if (parent && !kofi_node_get(parent)) {
		kofi_node_free(node);
		return ERR_PTR(-EINVAL);
	}
	node->parent = parent;
	if (parent)
		node->reg = parent->reg;
	return node;
}

/**
 * kofi_node_free() - undo kofi_node_alloc()
 * @node: a node whose object was never opened, or has been freed
 *
 * Context: Process context; sleeps.
 */
void kofi_node_free(struct kofi_node *node)
{
	if (node->parent)
		kofi_node_put(node->parent);
	kofi_connector_put(node->connector);
	ida_free(&kofi_ids, node->id);
	kfree(node);
}

/**
 * kofi_node_get() - take a reference that keeps an object from being closed
 * @node: the object's node
 *
 * Context: Any.
 * Return: true, or false if the object is being closed.
 */
bool kofi_node_get(struct kofi_node *node)
{
	return refcount_inc_not_zero(&node->refs);
}

/**
 * kofi_node_put() - undo kofi_node_get()
 * @node: the object's node. fi_close() drops the last reference, never this function
 *
 * Context: Any.
 */
void kofi_node_put(struct kofi_node *node)
{
	refcount_dec(&node->refs);
}

static void kofi_node_link(struct kofi_node *node)
{
	lockdep_assert_held(&kofi_tree_lock);
	list_add_tail(&node->sibling, node->parent ? &node->parent->children :
						     &kofi_fabrics);
}

/**
 * kofi_node_set_state() - change the state of an object
 * @node: the object's node
 * @state: the new state
 *
 * The only function that changes a state. KOFI_DEAD wakes the tasks that wait for the
 * object, and tells the connector.
 *
 * Context: Process context, under kofi_tree_lock.
 */
void kofi_node_set_state(struct kofi_node *node, enum kofi_state state)
{
	lockdep_assert_held(&kofi_tree_lock);
	if (WARN_ON_ONCE(!(kofi_state_from[state] & BIT(node->state))))
		return;
	trace_kofi_node_state(node->id, node->fid->fclass, node->state, state);
	WRITE_ONCE(node->state, state);
	if (state != KOFI_DEAD)
		return;
	WRITE_ONCE(node->fid->dead, true);
	if (node->fid->wait)
		wake_up_all(node->fid->wait);
	if (node->connector)
		node->connector->removed(node->fid);
}

/* Return: whether a vector of function pointers has no NULL member. */
static bool kofi_has_all(const void *ops, size_t size)
{
	const void * const *fn = ops;
	size_t i;

	for (i = 0; fn && i < size / sizeof(*fn); i++)
		if (!fn[i])
			return false;
	return fn;
}

#define KOFI_HAS_ALL(ops)	kofi_has_all(ops, sizeof(*(ops)))

/* Data calls don't check their vectors for NULL, so check them when the object is opened. */
static bool kofi_data_calls_whole(struct fid *fid, enum fi_class fclass)
{
	const struct fid_ep *ep = kofi_to_ep(fid);

	switch (fclass) {
	case FI_CLASS_EP:
		return KOFI_HAS_ALL(ep->msg) && KOFI_HAS_ALL(ep->tagged) &&
		       KOFI_HAS_ALL(ep->rma) && KOFI_HAS_ALL(ep->atomic) &&
		       KOFI_HAS_ALL(ep->req);
	case FI_CLASS_MR:
		return KOFI_HAS_ALL(container_of(fid, struct fid_mr, fid)->ops);
	case FI_CLASS_CQ:
		return KOFI_HAS_ALL(container_of(fid, struct fid_cq, fid)->ops);
	case FI_CLASS_CNTR:
		return KOFI_HAS_ALL(container_of(fid, struct fid_cntr, fid)->ops);
	default:
		return true;
	}
}

/**
 * kofi_node_publish() - initialize the common part of an opened object, and link its node
 * @node: from kofi_node_alloc()
 * @fid: the object that the provider returned
 * @fclass: class of the object
 * @context: the caller's context
 *
 * Context: Process context; sleeps.
 * Return: 0, or -EPROTO when the provider returned no valid object. An object that is new and can
 * be closed is closed then.
 */
int kofi_node_publish(struct kofi_node *node, struct fid *fid,
		      enum fi_class fclass, void *context)
{
	const char *why = !fid || !fid->ops || !fid->ops->close ? "can't be closed" :
			  fid->node ? "is open already" : NULL;
	const bool is_new = !why;

	if (is_new && !kofi_data_calls_whole(fid, fclass))
		why = "lacks data calls";
	if (why) {
		pr_err("provider %s: opened a %s that %s\n", node->reg->provider->name,
		       kofi_class_name(fclass), why);
		/* Only the provider knows the object, which would outlive its parent. */
		if (is_new && fid->ops->close(fid))
			pr_err("provider %s: didn't close that %s\n",
			       node->reg->provider->name, kofi_class_name(fclass));
		return -EPROTO;
	}
	fid->fclass = fclass;
	fid->context = context;
	fid->id = node->id;
	node->fid = fid;

	mutex_lock(&kofi_tree_lock);
	fid->node = node;
	kofi_node_link(node);
	/* A domain's device may have gone while the domain was being opened. */
	if (fid->dead || (node->parent && node->parent->state == KOFI_DEAD))
		kofi_node_set_state(node, KOFI_DEAD);
	mutex_unlock(&kofi_tree_lock);
	trace_kofi_node_open(node->id, fclass,
			     node->parent ? node->parent->id : 0,
			     node->reg->provider->name);
	return 0;
}

/**
 * kofi_bind_free() - release a bound object
 * @bind: the binding, in no list
 *
 * Context: Process context.
 */
void kofi_bind_free(struct kofi_bind *bind)
{
	kofi_node_put(bind->node);
	kofi_eq_unreserve(bind->removed);
	kfree(bind);
}

static void kofi_unbind_all(struct kofi_node *node)
{
	struct kofi_bind *bind, *next;

	list_for_each_entry_safe(bind, next, &node->binds, list)
		kofi_bind_free(bind);
}

/* Drop unread events about an object from all event queues of its fabric. */
static void kofi_forget(const struct kofi_node *node)
{
	const struct kofi_node *fabric = node, *child;
	LIST_HEAD(dropped);

	while (fabric->parent)
		fabric = fabric->parent;
	mutex_lock(&kofi_tree_lock);
	list_for_each_entry(child, &fabric->children, sibling)
		if (child->fid->fclass == FI_CLASS_EQ)
			kofi_eq_forget(child->fid, node->id, &dropped);
	mutex_unlock(&kofi_tree_lock);
	kofi_eq_drop(&dropped);
}

static void kofi_node_gone(struct kofi_node *node)
{
	struct kofi_reg *reg = node->parent ? NULL : node->reg;

	kofi_forget(node);
	kofi_unbind_all(node);
	if (node->held)
		kofi_node_put(node->held);
	kofi_node_free(node);
	if (reg)
		kofi_reg_put(reg);
}

/**
 * fi_close() - close an object of any class
 * @fid: the object; NULL does nothing
 *
 * No other call on the object may run meanwhile or, on success, afterwards.
 *
 * For an endpoint: each outstanding operation gets its one completion, with
 * ECANCELED if it didn't finish, and the caller's buffers aren't accessed after this
 * returns. Objects whose device went away are closed the same way. Unread events about the
 * object are dropped. fi_endpoint(3), fi_domain(3) and the others.
 *
 * Context: Process context; may sleep. Not from a completion handler.
 * Return: 0, -EBUSY while the object has children or is bound to another object, -EINVAL,
 * -EDEADLK in a completion handler, or the provider's error, after which the object is
 * unchanged.
 */
int fi_close(struct fid *fid)
{
	struct kofi_node *node;
	u32 id;
	int ret;

	if (!fid)
		return 0;
	ret = kofi_enter(fid, FI_CLASS_UNSPEC);
	if (ret && ret != -ENODEV)
		return ret;
	node = fid->node;
	if (!refcount_dec_if_one(&node->refs))
		return -EBUSY;
	mutex_lock(&kofi_tree_lock);
	list_del_init(&node->sibling);
	mutex_unlock(&kofi_tree_lock);

	id = node->id;
	ret = fid->ops->close(fid);
	trace_kofi_node_close(id, ret);
	if (!ret) {
		kofi_node_gone(node);
		return 0;
	}

	refcount_set(&node->refs, 1);
	mutex_lock(&kofi_tree_lock);
	kofi_node_link(node);
	if (node->parent && node->parent->state == KOFI_DEAD)
		kofi_node_set_state(node, KOFI_DEAD);
	mutex_unlock(&kofi_tree_lock);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(fi_close, KOFI);

/* A dead node has only dead children. The recursion has two levels: a domain and its objects. */
static void kofi_node_remove(struct kofi_node *node, const char *domain_name)
{
	struct kofi_node *child;
	struct kofi_bind *bind;

	lockdep_assert_held(&kofi_tree_lock);
	if (node->state == KOFI_DEAD)
		return;
	kofi_node_set_state(node, KOFI_DEAD);
	list_for_each_entry(child, &node->children, sibling)
		kofi_node_remove(child, domain_name);
	/* Write the event last, so that its reader gets -ENODEV from all objects below. */
	list_for_each_entry(bind, &node->binds, list) {
		if (bind->removed)
			kofi_eq_device(bind->node->fid, FI_DEVICE_REMOVED, bind->removed,
				       node->fid, domain_name);
		bind->removed = NULL;
	}
}

/**
 * kofi_device_removed() - report that an object's device went away
 * @fid: a domain, or another object below the fabric that was opened on the device
 * @domain_name: the device's name, for the event
 *
 * From here on control calls on the object, and on all objects opened from it, return
 * -ENODEV, and an event queue to which a domain is bound gets FI_DEVICE_REMOVED. The
 * provider refuses data calls, completes outstanding operations, and keeps the objects
 * until they are closed. During this call the provider must not let the object's close op
 * return. The call that opens the object may still be running.
 *
 * Context: Process context; sleeps, but never waits for a ULP.
 */
void kofi_device_removed(struct fid *fid, const char *domain_name)
{
	mutex_lock(&kofi_tree_lock);
	if (fid->node)
		kofi_node_remove(fid->node, domain_name);
	else
		/* kofi_node_publish() will make the node dead. */
		WRITE_ONCE(fid->dead, true);
	mutex_unlock(&kofi_tree_lock);
}
EXPORT_SYMBOL_NS_GPL(kofi_device_removed, KOFI_PROVIDER);

/**
 * kofi_device_arrived() - report that a provider has a new device
 * @provider: the provider
 * @domain_name: name of the device, as in fi_getinfo()
 *
 * Writes FI_DEVICE_ARRIVED to each event queue of the provider's fabrics that was opened with
 * FI_DEVICE_EVENTS, or to which a domain was bound at some time.
 *
 * Context: Process context; sleeps, but never waits for a ULP.
 */
void kofi_device_arrived(const struct kofi_provider *provider,
			 const char *domain_name)
{
	struct kofi_node *fabric, *child;

	mutex_lock(&kofi_tree_lock);
	list_for_each_entry(fabric, &kofi_fabrics, sibling) {
		if (fabric->reg->provider != provider)
			continue;
		list_for_each_entry(child, &fabric->children, sibling)
			if (child->device_events)
				kofi_eq_device(child->fid, FI_DEVICE_ARRIVED,
					       NULL, fabric->fid, domain_name);
	}
	mutex_unlock(&kofi_tree_lock);
}
EXPORT_SYMBOL_NS_GPL(kofi_device_arrived, KOFI_PROVIDER);

static void kofi_node_show(struct seq_file *s, const struct kofi_node *node, int depth)
{
	const struct kofi_node *child;
	const struct kofi_bind *bind;

	seq_printf(s, "%*s%s %u: %s, %u refs", depth * 2, "",
		   kofi_class_name(node->fid->fclass), node->id,
		   kofi_state_names[node->state], refcount_read(&node->refs));
	if (!node->parent)
		seq_printf(s, ", provider %s", node->reg->provider->name);
	list_for_each_entry(bind, &node->binds, list)
		seq_printf(s, ", %s %u",
			   kofi_class_name(bind->node->fid->fclass),
			   bind->node->id);
	if (node->held)
		seq_printf(s, ", %s %u",
			   kofi_class_name(node->held->fid->fclass),
			   node->held->id);
	seq_putc(s, '\n');
	list_for_each_entry(child, &node->children, sibling)
		kofi_node_show(s, child, depth + 1);
}

/**
 * kofi_tree_show() - list the open objects
 * @s: output file
 * @unused: for DEFINE_SHOW_ATTRIBUTE()
 *
 * Context: Process context; sleeps.
 * Return: 0.
 */
int kofi_tree_show(struct seq_file *s, void *unused)
{
	const struct kofi_node *fabric;

	mutex_lock(&kofi_tree_lock);
	list_for_each_entry(fabric, &kofi_fabrics, sibling)
		kofi_node_show(s, fabric, 0);
	mutex_unlock(&kofi_tree_lock);
	return 0;
}
