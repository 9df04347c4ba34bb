// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module that makes connections over the unconnected endpoints of providers. */
#include <linux/kmod.h>
#include "../kofi.h"

static DEFINE_MUTEX(kofi_connector_lock);		/* protects kofi_connector */
static const struct kofi_connector *kofi_connector;

/**
 * kofi_connector_register() - register the connector
 * @connector: the connector; stays valid until it is deregistered
 *
 * Context: Process context; sleeps.
 * Return: 0, -EINVAL when a member is missing, -EEXIST when there is one already.
 */
int kofi_connector_register(const struct kofi_connector *connector)
{
	int ret = 0;

	if (!connector || !connector->derive || !connector->passive_ep || !connector->endpoint ||
	    !connector->removed)
		return -EINVAL;
	mutex_lock(&kofi_connector_lock);
	if (kofi_connector)
		ret = -EEXIST;
	else
		kofi_connector = connector;
	mutex_unlock(&kofi_connector_lock);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kofi_connector_register, KOFI_PROVIDER);

/**
 * kofi_connector_deregister() - deregister the connector, in the exit function of its module
 * @connector: the connector, as registered. None of its objects is open: they pin the module
 *
 * Context: Process context; sleeps.
 */
void kofi_connector_deregister(const struct kofi_connector *connector)
{
	mutex_lock(&kofi_connector_lock);
	if (kofi_connector == connector)
		kofi_connector = NULL;
	mutex_unlock(&kofi_connector_lock);
}
EXPORT_SYMBOL_NS_GPL(kofi_connector_deregister, KOFI_PROVIDER);

static const struct kofi_connector *kofi_connector_pin(void)
{
	const struct kofi_connector *connector;

	mutex_lock(&kofi_connector_lock);
	connector = kofi_connector;
	if (connector && !try_module_get(connector->owner))
		connector = NULL;
	mutex_unlock(&kofi_connector_lock);
	return connector;
}

/**
 * kofi_connector_get() - pin the connector, whose module is loaded if necessary
 *
 * Context: Process context; sleeps.
 * Return: the connector, for kofi_connector_put(), or NULL.
 */
const struct kofi_connector *kofi_connector_get(void)
{
	const struct kofi_connector *connector = kofi_connector_pin();

	if (!connector && !request_module(KOFI_CONNECTOR_ALIAS))
		connector = kofi_connector_pin();
	return connector;
}

/**
 * kofi_connector_put() - undo kofi_connector_get()
 * @connector: the connector, or NULL
 *
 * Context: Any.
 */
void kofi_connector_put(const struct kofi_connector *connector)
{
	if (connector)
		module_put(connector->owner);
}

static int kofi_connector_call(const struct kofi_connector *connector, struct fid *parent,
			       struct fi_info *info, struct fid **fid, void *context)
{
	struct fid_pep *pep = NULL;
	struct fid_ep *ep = NULL;
	int ret;

	if (parent->fclass == FI_CLASS_FABRIC) {
		ret = connector->passive_ep(container_of(parent, struct fid_fabric, fid), info,
					    &pep, context);
		*fid = pep ? &pep->fid : NULL;
	} else {
		ret = connector->endpoint(container_of(parent, struct fid_domain, fid), info, &ep,
					  context);
		*fid = ep ? &ep->fid : NULL;
	}
	return ret;
}

/**
 * kofi_connector_open() - open an endpoint of the connector
 * @parent: a fabric, for a passive endpoint; or a domain
 * @parent_class: class that @parent must have
 * @info: an entry of the connector
 * @fid: takes the endpoint
 * @context: the caller's context
 *
 * Context: Process context; sleeps.
 * Return: 0, -ENODEV when there is no connector, an error of kofi_enter(), -ENOMEM, or the
 * connector's error.
 */
int kofi_connector_open(struct fid *parent, enum fi_class parent_class, struct fi_info *info,
			struct fid **fid, void *context)
{
	struct kofi_node *node;
	int ret;

	ret = kofi_enter(parent, parent_class);
	if (ret)
		return ret;
	node = kofi_node_alloc(parent->node);
	if (IS_ERR(node))
		return PTR_ERR(node);
	/* kofi_node_free() releases the connector. */
	node->connector = kofi_connector_get();
	if (!node->connector)
		ret = -ENODEV;
	ret = ret ?: kofi_connector_call(node->connector, parent, info, fid, context);
	ret = ret ?: kofi_node_publish(node, *fid, parent_class == FI_CLASS_FABRIC ?
					 FI_CLASS_PEP : FI_CLASS_EP, context);
	if (ret)
		kofi_node_free(node);
	return ret;
}
