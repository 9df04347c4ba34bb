// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fake providers, see fake.h. Most calls of a provider find their fake through the object.
 * getinfo and freeinfo have no object, so each fake has a slot with its own functions.
 */
#include <kunit/test-bug.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "fake_ops.h"

#define FAKE_SLOTS	8

static struct kofi_fake *fake_slots[FAKE_SLOTS];	/* under fake_slots_lock */
static DEFINE_MUTEX(fake_slots_lock);

/* Providers */

static struct fi_info *fake_copy(const struct fi_info *list)
{
	struct fi_info *first = NULL, **last = &first;

	for (; list; list = list->next) {
		*last = fi_dupinfo(list);
		if (!*last) {
			fi_freeinfo(first);
			return NULL;
		}
		last = &(*last)->next;
	}
	return first;
}

static int fake_getinfo(struct kofi_fake *fake, u32 version, const char *node,
			const char *service, u64 flags,
			const struct fi_info *hints, struct fi_info **info)
{
	int ret = fake_enter(fake, FAKE_GETINFO, NULL, version, A(node),
			     A(service), flags, A(hints));

	if (ret && !fake->partial)
		return ret;
	if (!fake->info)
		return ret ?: -ENODATA;
	*info = fake->copies ? fake_copy(fake->info) : fake->info;
	return *info ? ret : -ENOMEM;
}

static void fake_freeinfo(struct kofi_fake *fake, struct fi_info *info)
{
	fake_enter(fake, FAKE_FREEINFO, NULL, A(info));
	if (fake->copies)
		fi_freeinfo(info);
}

#define FAKE_SLOT(n)							\
static int fake_getinfo_##n(u32 version, const char *node,		\
			    const char *service, u64 flags,		\
			    const struct fi_info *hints,		\
			    struct fi_info **info)			\
{									\
	return fake_getinfo(fake_slots[n], version, node, service,	\
			    flags, hints, info);			\
}									\
									\
static void fake_freeinfo_##n(struct fi_info *info)			\
{									\
	fake_freeinfo(fake_slots[n], info);				\
}									\
									\
static int fake_fabric_##n(struct fi_fabric_attr *attr,			\
			   struct fid_fabric **fabric, void *context)	\
{									\
	return fake_fabric(fake_slots[n], attr, fabric, context);	\
}

FAKE_SLOT(0) FAKE_SLOT(1) FAKE_SLOT(2) FAKE_SLOT(3)
FAKE_SLOT(4) FAKE_SLOT(5) FAKE_SLOT(6) FAKE_SLOT(7)

#define FAKE_VECTOR(n) {						\
	.getinfo	= fake_getinfo_##n,				\
	.freeinfo	= fake_freeinfo_##n,				\
	.fabric		= fake_fabric_##n,				\
}

static const struct kofi_provider fake_vectors[FAKE_SLOTS] = {
	FAKE_VECTOR(0), FAKE_VECTOR(1), FAKE_VECTOR(2), FAKE_VECTOR(3),
	FAKE_VECTOR(4), FAKE_VECTOR(5), FAKE_VECTOR(6), FAKE_VECTOR(7),
};

static bool fake_take_slot(struct kofi_fake *fake)
{
	unsigned int i;

	mutex_lock(&fake_slots_lock);
	for (i = 0; i < FAKE_SLOTS; i++) {
		if (fake_slots[i])
			continue;
		fake_slots[i] = fake;
		fake->slot = i;
		fake->provider = fake_vectors[i];
		break;
	}
	mutex_unlock(&fake_slots_lock);
	return i < FAKE_SLOTS;
}

static void fake_free_provider(struct kofi_fake *fake)
{
	mutex_lock(&fake_slots_lock);
	fake_slots[fake->slot] = NULL;
	mutex_unlock(&fake_slots_lock);
	fi_freeinfo(fake->info);
	kfree(fake->provider.name);
	kfree(fake);
}

/* A fake that is still registered can't be freed, which fails the case. */
static void fake_end(void *arg)
{
	struct kunit *test = kunit_get_current_test();
	struct kofi_fake *fake = arg;
	int ret = 0;

	memset(fake->call, 0, sizeof(fake->call));
	if (fake->registered)
		ret = kofi_fake_deregister(fake);
	KUNIT_EXPECT_EQ_MSG(test, ret, 0, "%s is still in use",
			    fake->provider.name);
	KUNIT_EXPECT_EQ_MSG(test, kofi_fake_open(fake), 0,
			    "%s has objects that were never closed",
			    fake->provider.name);
	if (!ret && !kofi_fake_open(fake))
		fake_free_provider(fake);
}

static char *fake_name(const char *name, const char *suffix)
{
	return kasprintf(GFP_KERNEL, "%s%s", name, suffix);
}

static void fake_fill_info(struct kofi_fake *fake, struct fi_info *info,
			   const char *domain_name)
{
	const u64 tx = FI_MSG | FI_RMA | FI_TAGGED | FI_SEND | FI_READ |
		       FI_WRITE;
	const u64 rx = FI_MSG | FI_RMA | FI_TAGGED | FI_RECV | FI_REMOTE_READ |
		       FI_REMOTE_WRITE;

	info->caps = tx | rx;
	info->addr_format = FI_ADDR_STR;
	info->tx_attr->caps = tx;
	info->tx_attr->size = 64;
	info->tx_attr->iov_limit = 4;
	info->rx_attr->caps = rx;
	info->rx_attr->size = 64;
	info->rx_attr->iov_limit = 4;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = SZ_4K;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
	info->domain_attr->name = kstrdup(domain_name, GFP_KERNEL);
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->domain_attr->max_ep_tx_ctx = 1;
	info->domain_attr->max_ep_rx_ctx = 1;
	info->fabric_attr->name = fake_name(fake->provider.name, "-fabric");
	info->fabric_attr->prov_name = kstrdup(fake->provider.name, GFP_KERNEL);
}

struct fi_info *kofi_fake_add_info(struct kunit *test, struct kofi_fake *fake,
				   const char *domain_name)
{
	struct fi_info *info = fi_allocinfo(), **last = &fake->info;

	KUNIT_ASSERT_NOT_NULL(test, info);
	while (*last)
		last = &(*last)->next;
	*last = info;
	fake_fill_info(fake, info, domain_name);
	KUNIT_ASSERT_NOT_NULL(test, info->domain_attr->name);
	KUNIT_ASSERT_NOT_NULL(test, info->fabric_attr->name);
	KUNIT_ASSERT_NOT_NULL(test, info->fabric_attr->prov_name);
	return info;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_add_info, KOFI_TEST);

struct kofi_fake *__kofi_fake_make(struct kunit *test, const char *name,
				   struct module *owner)
{
	struct kofi_fake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);
	char *domain_name;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	mutex_init(&fake->lock);
	INIT_LIST_HEAD(&fake->objects);
	if (!fake_take_slot(fake)) {
		kfree(fake);
		KUNIT_FAIL_AND_ABORT(test, "too many fakes");
	}
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fake_end, fake),
			0);
	fake->provider.name = kstrdup(name, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fake->provider.name);
	fake->provider.version = FI_VERSION(1, 2);
	fake->provider.owner = owner;
	fake->cq_config = (struct kofi_cq_config){
		.default_size = 16, .max_size = 64, .reserve = 4,
	};
	fake_use_ops(fake);
	domain_name = fake_name(name, "-dev0");
	KUNIT_ASSERT_NOT_NULL(test, domain_name);
	kofi_fake_add_info(test, fake, domain_name);
	kfree(domain_name);
	return fake;
}
EXPORT_SYMBOL_NS_GPL(__kofi_fake_make, KOFI_TEST);

struct kofi_fake *__kofi_fake_new(struct kunit *test, const char *name,
				  struct module *owner)
{
	struct kofi_fake *fake = __kofi_fake_make(test, name, owner);

	KUNIT_ASSERT_EQ(test, kofi_fake_register(fake), 0);
	return fake;
}
EXPORT_SYMBOL_NS_GPL(__kofi_fake_new, KOFI_TEST);

int kofi_fake_register(struct kofi_fake *fake)
{
	int ret = kofi_provider_register(KOFI_API_VERSION, &fake->provider);

	if (!ret)
		fake->registered = true;
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_register, KOFI_TEST);

int kofi_fake_deregister(struct kofi_fake *fake)
{
	int ret = kofi_provider_deregister(&fake->provider);

	if (!ret)
		fake->registered = false;
	return ret;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_deregister, KOFI_TEST);

unsigned int kofi_fake_called(struct kofi_fake *fake, enum kofi_fake_op op)
{
	return atomic_read(&fake->call[op].count);
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_called, KOFI_TEST);

unsigned int kofi_fake_open(struct kofi_fake *fake)
{
	unsigned int count;

	mutex_lock(&fake->lock);
	count = list_count_nodes(&fake->objects);
	mutex_unlock(&fake->lock);
	return count;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_open, KOFI_TEST);

void kofi_fake_reap(struct kofi_fake *fake)
{
	struct kofi_fake_obj *obj, *next;

	list_for_each_entry_safe(obj, next, &fake->objects, list)
		if (!obj->fid.node)
			fake_free(obj);
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_reap, KOFI_TEST);

/* Objects that a test opens */

static void fake_close_action(void *arg)
{
	struct kunit *test = kunit_get_current_test();
	int ret = fi_close(arg);

	KUNIT_EXPECT_EQ(test, ret, 0);
}

void kofi_fake_close_later(struct kunit *test, struct fid *fid)
{
	int ret = kunit_add_action_or_reset(test, fake_close_action, fid);

	KUNIT_ASSERT_EQ(test, ret, 0);
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_close_later, KOFI_TEST);

void kofi_fake_close(struct kunit *test, struct fid *fid)
{
	kunit_release_action(test, fake_close_action, fid);
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_close, KOFI_TEST);

void kofi_fake_closed(struct kunit *test, struct fid *fid)
{
	kunit_remove_action(test, fake_close_action, fid);
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_closed, KOFI_TEST);

#define FAKE_OPENED(test, ret, obj)					\
do {									\
	KUNIT_ASSERT_EQ(test, ret, 0);					\
	KUNIT_ASSERT_NOT_NULL(test, obj);				\
	kofi_fake_close_later(test, &(obj)->fid);			\
} while (0)

struct fid_fabric *kofi_fake_fabric(struct kunit *test, struct kofi_fake *fake)
{
	struct fid_fabric *fabric = NULL;
	int ret = fi_fabric(fake->info->fabric_attr, &fabric, NULL);

	FAKE_OPENED(test, ret, fabric);
	return fabric;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_fabric, KOFI_TEST);

struct fid_domain *kofi_fake_domain(struct kunit *test, struct kofi_fake *fake,
				    struct fid_fabric *fabric)
{
	struct fid_domain *domain = NULL;
	int ret = fi_domain(fabric, fake->info, &domain, NULL);

	FAKE_OPENED(test, ret, domain);
	return domain;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_domain, KOFI_TEST);

struct fid_eq *kofi_fake_eq(struct kunit *test, struct fid_fabric *fabric,
			    struct fi_eq_attr *attr)
{
	struct fi_eq_attr standard = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq = NULL;
	int ret = fi_eq_open(fabric, attr ?: &standard, &eq, NULL);

	FAKE_OPENED(test, ret, eq);
	return eq;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_eq, KOFI_TEST);

struct fid_av *kofi_fake_av(struct kunit *test, struct fid_domain *domain)
{
	struct fi_av_attr attr = {};
	struct fid_av *av = NULL;
	int ret = fi_av_open(domain, &attr, &av, NULL);

	FAKE_OPENED(test, ret, av);
	return av;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_av, KOFI_TEST);

struct fid_cq *kofi_fake_cq(struct kunit *test, struct fid_domain *domain,
			    struct fi_cq_attr *attr)
{
	struct fi_cq_attr standard = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cq *cq = NULL;
	int ret = fi_cq_open(domain, attr ?: &standard, &cq, NULL);

	FAKE_OPENED(test, ret, cq);
	return cq;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_cq, KOFI_TEST);

struct fid_cntr *kofi_fake_cntr(struct kunit *test, struct fid_domain *domain,
				struct fi_cntr_attr *attr)
{
	struct fi_cntr_attr standard = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr = NULL;
	int ret = fi_cntr_open(domain, attr ?: &standard, &cntr, NULL);

	FAKE_OPENED(test, ret, cntr);
	return cntr;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_cntr, KOFI_TEST);

struct fid_ep *kofi_fake_ep(struct kunit *test, struct kofi_fake *fake,
			    struct fid_domain *domain)
{
	struct fid_ep *ep = NULL;
	int ret = fi_endpoint(domain, fake->info, &ep, NULL);

	FAKE_OPENED(test, ret, ep);
	return ep;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_ep, KOFI_TEST);

/* With the fake's entry, as if it had connections. */
struct fid_pep *kofi_fake_pep(struct kunit *test, struct kofi_fake *fake,
			      struct fid_fabric *fabric)
{
	struct fi_ep_attr ep_attr = *fake->info->ep_attr;
	struct fi_info info = *fake->info;
	struct fid_pep *pep = NULL;
	int ret;

	ep_attr.type = FI_EP_MSG;
	info.ep_attr = &ep_attr;
	ret = fi_passive_ep(fabric, &info, &pep, NULL);
	FAKE_OPENED(test, ret, pep);
	return pep;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_pep, KOFI_TEST);

struct fid_mr *kofi_fake_mr(struct kunit *test, struct fid_domain *domain)
{
	struct fid_mr *mr = NULL;
	int ret = fi_mr_reg(domain, fake_slots, sizeof(fake_slots),
			    FI_REMOTE_READ, 0, 0, 0, &mr, NULL);

	FAKE_OPENED(test, ret, mr);
	return mr;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_mr, KOFI_TEST);

struct fid_mr *kofi_fake_pool_mr(struct kunit *test, struct fid_domain *domain,
				 struct fid_cq *cq)
{
	const struct fi_mr_alloc_attr attr = {
		.max_pages = 4, .access = FI_REMOTE_READ, .cq = cq,
	};
	struct fid_mr *mr = NULL;
	int ret = fi_mr_alloc(domain, &attr, &mr, NULL);

	FAKE_OPENED(test, ret, mr);
	return mr;
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_pool_mr, KOFI_TEST);

void kofi_fake_open_all(struct kunit *test, struct kofi_fake *fake,
			struct kofi_fake_set *set)
{
	set->fabric = kofi_fake_fabric(test, fake);
	set->eq = kofi_fake_eq(test, set->fabric, NULL);
	set->domain = kofi_fake_domain(test, fake, set->fabric);
	set->av = kofi_fake_av(test, set->domain);
	set->cq = kofi_fake_cq(test, set->domain, NULL);
	set->cntr = kofi_fake_cntr(test, set->domain, NULL);
	set->ep = kofi_fake_ep(test, fake, set->domain);
	set->mr = kofi_fake_mr(test, set->domain);
	set->pool_mr = kofi_fake_pool_mr(test, set->domain, set->cq);
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_open_all, KOFI_TEST);

void kofi_fake_bind_ep(struct kunit *test, struct kofi_fake_set *set)
{
	KUNIT_ASSERT_EQ(test, fi_ep_bind(set->ep, &set->av->fid, 0), 0);
	KUNIT_ASSERT_EQ(test, fi_ep_bind(set->ep, &set->cq->fid,
					 FI_TRANSMIT | FI_RECV), 0);
}
EXPORT_SYMBOL_NS_GPL(kofi_fake_bind_ep, KOFI_TEST);

MODULE_DESCRIPTION("Fake kOFI providers for tests");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
