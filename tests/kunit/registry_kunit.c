// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registering, deregistering and failing providers. Other providers may be registered on the
 * machine, so results are searched for the fakes.
 */
#include <linux/string.h>
#include "fake.h"
#include "loadable.h"

static int ask(const char *prov_name, struct fi_info **list)
{
	struct fi_fabric_attr fabric = { .prov_name = (char *)prov_name };
	struct fi_info hints = {
		.mode = ~0ULL,
		.fabric_attr = &fabric,
	};

	return fi_getinfo(fi_version(), NULL, NULL, 0, &hints, list);
}

/* Return: number of a provider's entries in the list of all providers. */
static int found(struct kofi_fake *fake)
{
	struct fi_info *list, *info;
	int count = 0, ret;

	ret = ask(NULL, &list);
	if (ret)
		return ret;
	for (info = list; info; info = info->next)
		count += !strcmp(info->fabric_attr->prov_name,
				 fake->provider.name);
	fi_freeinfo(list);
	return count;
}

static void several_providers(struct kunit *test)
{
	static const char * const names[] = { "one", "two", "three" };
	struct kofi_fake *fake[3];
	struct fi_info *list, *info;
	unsigned int i, seen = 0;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		fake[i] = kofi_fake_make(test, names[i]);
		fake[i]->provider.version = FI_VERSION(1, i);
		KUNIT_ASSERT_EQ(test, kofi_fake_register(fake[i]), 0);
		KUNIT_EXPECT_EQ(test, found(fake[i]), 1);
	}
	kofi_fake_add_info(test, fake[1], "two-dev1");

	KUNIT_ASSERT_EQ(test, ask(NULL, &list), 0);
	for (info = list; info; info = info->next) {
		for (i = 0; i < 3; i++)
			if (!strcmp(info->fabric_attr->prov_name, names[i]))
				break;
		if (i == 3)
			continue;
		KUNIT_EXPECT_EQ(test, info->fabric_attr->prov_version,
				FI_VERSION(1, i));
		KUNIT_EXPECT_EQ(test, info->fabric_attr->api_version,
				fi_version());
		seen = seen * 10 + i + 1;
	}
	fi_freeinfo(list);
	/* Entries are in the order of registration. */
	KUNIT_EXPECT_EQ(test, seen, 1223);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, kofi_fake_called(fake[i], FAKE_GETINFO),
				kofi_fake_called(fake[i], FAKE_FREEINFO));

	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(fake[1]), 0);
	KUNIT_EXPECT_EQ(test, found(fake[0]), 1);
	KUNIT_EXPECT_EQ(test, found(fake[1]), 0);
	KUNIT_EXPECT_EQ(test, found(fake[2]), 1);
}

static void ask_by_name(struct kunit *test)
{
	struct kofi_fake *one = kofi_fake_new(test, "one");
	struct kofi_fake *two = kofi_fake_new(test, "two");
	struct fi_info *list = (void *)1;

	KUNIT_ASSERT_EQ(test, ask("two", &list), 0);
	KUNIT_EXPECT_STREQ(test, list->fabric_attr->prov_name, "two");
	KUNIT_EXPECT_NULL(test, list->next);
	fi_freeinfo(list);
	/* Names match case-insensitively. */
	KUNIT_ASSERT_EQ(test, ask("Two", &list), 0);
	KUNIT_EXPECT_STREQ(test, list->fabric_attr->prov_name, "two");
	fi_freeinfo(list);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(one, FAKE_GETINFO), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(two, FAKE_GETINFO), 2);

	list = (void *)1;
	KUNIT_EXPECT_EQ(test, ask("nobody", &list), -ENODATA);
	KUNIT_EXPECT_NULL(test, list);
	KUNIT_EXPECT_EQ(test, ask("no; body", &list), -ENODATA);
	KUNIT_EXPECT_EQ(test, ask("", &list), -ENODATA);
	KUNIT_EXPECT_EQ(test, ask("tw", &list), -ENODATA);
	KUNIT_EXPECT_EQ(test, ask("twos", &list), -ENODATA);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(one, FAKE_GETINFO), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(two, FAKE_GETINFO), 2);
}

static void load_by_name(struct kunit *test)
{
	struct fi_fabric_attr attr = {
		.prov_name = LOADABLE_NAME, .name = LOADABLE_FABRIC,
	};
	struct fid_fabric *fabric = NULL;
	struct fi_info *list;
	int refs = -1;

	KUNIT_ASSERT_EQ(test, ask("LOADable", &list), 0);
	KUNIT_EXPECT_STREQ(test, list->fabric_attr->name, LOADABLE_FABRIC);
	fi_freeinfo(list);

	KUNIT_ASSERT_EQ(test, fi_fabric(&attr, &fabric, NULL), 0);
	kofi_fake_close_later(test, &fabric->fid);
	KUNIT_EXPECT_EQ(test, fi_control(&fabric->fid, LOADABLE_REFCOUNT,
					 &refs), 0);
	KUNIT_EXPECT_EQ(test, refs, 1);

	attr.prov_name = "Loadable";
	KUNIT_ASSERT_EQ(test, fi_fabric(&attr, &fabric, NULL), 0);
	KUNIT_EXPECT_EQ(test, fi_close(&fabric->fid), 0);

	attr.name = "elsewhere";
	KUNIT_EXPECT_EQ(test, fi_fabric(&attr, &fabric, NULL), -ENODEV);
	attr.prov_name = "nobody";
	KUNIT_EXPECT_EQ(test, fi_fabric(&attr, &fabric, NULL), -ENODEV);
	attr.prov_name = "../nobody";
	KUNIT_EXPECT_EQ(test, fi_fabric(&attr, &fabric, NULL), -ENODEV);
}

static void duplicates(struct kunit *test)
{
	struct kofi_fake *one = kofi_fake_new(test, "same");
	struct kofi_fake *two = kofi_fake_make(test, "same");

	KUNIT_EXPECT_EQ(test, kofi_provider_register(KOFI_API_VERSION,
						     &one->provider), -EEXIST);
	KUNIT_EXPECT_EQ(test, kofi_fake_register(two), -EEXIST);
	KUNIT_EXPECT_EQ(test, kofi_provider_deregister(&two->provider),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, found(one), 1);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(two, FAKE_GETINFO), 0);

	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(one), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_register(two), 0);
	KUNIT_EXPECT_EQ(test, found(two), 1);
}

static void mandatory_parts(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_make(test, "whole");
	const struct kofi_provider whole = fake->provider;
	struct kofi_provider part;

	KUNIT_EXPECT_EQ(test, kofi_provider_register(KOFI_API_VERSION, NULL),
			-EINVAL);
#define LACKS(field)							\
do {									\
	part = whole;							\
	part.field = NULL;						\
	KUNIT_EXPECT_EQ(test, kofi_provider_register(KOFI_API_VERSION,	\
						     &part), -EINVAL);	\
} while (0)
	LACKS(name);
	LACKS(getinfo);
	LACKS(freeinfo);
	LACKS(fabric);
#undef LACKS
	/* Module and error texts are optional. */
	part = whole;
	part.owner = NULL;
	KUNIT_EXPECT_NULL(test, part.strerror);
	KUNIT_EXPECT_EQ(test, kofi_provider_register(KOFI_API_VERSION, &part),
			0);
	KUNIT_EXPECT_EQ(test, found(fake), 1);
	KUNIT_EXPECT_EQ(test, kofi_provider_deregister(&part), 0);
}

static const struct name_case {
	const char *desc;
	const char *name;
	int ret;
} name_cases[] = {
	{ "empty", "", -EINVAL },
	{ "one letter", "a", 0 },
	{ "all kinds", "efa-direct_2", 0 },
	{ "longest",
	  "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabc", 0 },
	{ "too long",
	  "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd", -EINVAL },
	{ "upper case", "Efa", -EINVAL },
	{ "space", "efa direct", -EINVAL },
	{ "dot", "efa.direct", -EINVAL },
	{ "slash", "../efa", -EINVAL },
	{ "shell", "efa;reboot", -EINVAL },
	{ "newline", "efa\n", -EINVAL },
	{ "percent", "efa%s", -EINVAL },
	{ "Latin-1", "\351fa", -EINVAL },
	{ "UTF-8", "\303\251fa", -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(name, name_cases, desc);

static void names(struct kunit *test)
{
	const struct name_case *param = test->param_value;
	struct kofi_fake *fake = kofi_fake_make(test, param->name);

	KUNIT_EXPECT_EQ(test, kofi_fake_register(fake), param->ret);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_GETINFO), 0);
}

static void versions(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_make(test, "old");
	static const u32 bad[] = {
		0, FI_VERSION(1, 0), FI_VERSION(1, 99),
		FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION + 1),
		FI_VERSION(FI_MAJOR_VERSION + 1, 0), U32_MAX,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test,
				    kofi_provider_register(bad[i],
							   &fake->provider),
				    -ENOSYS, "%#x", bad[i]);
	KUNIT_EXPECT_EQ(test, found(fake), 0);
}

/* Two providers, one of which fails. */
static void one_fails(struct kunit *test)
{
	struct kofi_fake *bad = kofi_fake_new(test, "bad");
	struct kofi_fake *good = kofi_fake_new(test, "good");
	struct fi_info *list = (void *)1;

	bad->call[FAKE_GETINFO].ret = -EIO;
	KUNIT_EXPECT_EQ(test, found(good), 1);
	KUNIT_EXPECT_EQ(test, found(bad), 0);
	KUNIT_EXPECT_EQ(test, ask("bad", &list), -EIO);
	KUNIT_EXPECT_NULL(test, list);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(bad, FAKE_FREEINFO), 0);

	/* A list that was set by a failing provider is ignored. */
	bad->partial = true;
	KUNIT_EXPECT_EQ(test, found(good), 1);
	KUNIT_EXPECT_EQ(test, found(bad), 0);
	KUNIT_EXPECT_EQ(test, ask("bad", &list), -EIO);
	KUNIT_EXPECT_NULL(test, list);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(bad, FAKE_FREEINFO), 0);

	/* It can be registered again. */
	bad->call[FAKE_GETINFO].ret = 0;
	KUNIT_EXPECT_EQ(test, found(bad), 1);
}

/* The returned error is that of the first provider that failed. */
static void all_fail(struct kunit *test)
{
	struct kofi_fake *one = kofi_fake_new(test, "one");
	struct kofi_fake *two = kofi_fake_new(test, "two");
	struct kofi_fake *three = kofi_fake_new(test, "three");
	struct fi_domain_attr domain = { .name = "two-dev0" };
	struct fi_info hints = { .mode = ~0ULL, .domain_attr = &domain };
	struct fi_info *list;

	one->call[FAKE_GETINFO].ret = -ENODATA;
	two->call[FAKE_GETINFO].ret = -EIO;
	three->call[FAKE_GETINFO].ret = -EACCES;
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, &hints,
					 &list), -EIO);
	two->call[FAKE_GETINFO].ret = -ENODATA;
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, &hints,
					 &list), -EACCES);
	three->call[FAKE_GETINFO].ret = 0;
	KUNIT_EXPECT_EQ(test, fi_getinfo(fi_version(), NULL, NULL, 0, &hints,
					 &list), -ENODATA);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(three, FAKE_FREEINFO), 1);
}

/* A provider's getinfo returns success, but no list. */
static void nothing_found(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "empty");
	struct fi_info *info = fake->info, *list = (void *)1;

	fake->info = NULL;
	KUNIT_EXPECT_EQ(test, ask("empty", &list), -ENODATA);
	KUNIT_EXPECT_NULL(test, list);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_FREEINFO), 0);
	fake->info = info;
}

/* A provider's list isn't modified, and is freed at once by the provider. */
static void own_list(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "own");
	struct fi_info *list;

	fake->info->fabric_attr->prov_version = 77;
	strscpy(fake->info->fabric_attr->prov_name, "ow", 4);
	KUNIT_ASSERT_EQ(test, ask("own", &list), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_FREEINFO), 1);
	KUNIT_EXPECT_PTR_EQ(test, (void *)fake->call[FAKE_FREEINFO].arg[0],
			    (void *)fake->info);
	KUNIT_EXPECT_PTR_NE(test, list, fake->info);
	KUNIT_EXPECT_STREQ(test, list->fabric_attr->prov_name, "own");
	KUNIT_EXPECT_STREQ(test, fake->info->fabric_attr->prov_name, "ow");
	KUNIT_EXPECT_EQ(test, fake->info->fabric_attr->prov_version, 77);
	fi_freeinfo(list);
}

/* An entry that lacks an attribute doesn't hide the next one. */
static void entry_without(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "lacking");

	kofi_fake_add_info(test, fake, "lacking-dev1");
	KUNIT_EXPECT_EQ(test, found(fake), 2);
#define LACKS(attr)							\
do {									\
	void *__attr = fake->info->attr;				\
									\
	fake->info->attr = NULL;					\
	KUNIT_EXPECT_EQ_MSG(test, found(fake), 1, "without " #attr);	\
	fake->info->attr = __attr;					\
} while (0)
	LACKS(tx_attr);
	LACKS(rx_attr);
	LACKS(ep_attr);
	LACKS(domain_attr);
	LACKS(fabric_attr);
#undef LACKS
	KUNIT_EXPECT_EQ(test, kofi_fake_called(fake, FAKE_GETINFO),
			kofi_fake_called(fake, FAKE_FREEINFO));
}

static void arguments(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "args");
	const u64 *arg = fake->call[FAKE_GETINFO].arg;
	struct fi_fabric_attr attr = { .prov_name = "args" };
	struct fi_info hints = { .fabric_attr = &attr };
	struct fi_info *list;

	KUNIT_ASSERT_EQ(test, fi_getinfo(FI_VERSION(1, 9), "node", "service",
					 FI_SOURCE | FI_NUMERICHOST, &hints,
					 &list), 0);
	KUNIT_EXPECT_EQ(test, list->fabric_attr->api_version, FI_VERSION(1, 9));
	KUNIT_EXPECT_EQ(test, arg[0], FI_VERSION(1, 9));
	KUNIT_EXPECT_STREQ(test, (char *)arg[1], "node");
	KUNIT_EXPECT_STREQ(test, (char *)arg[2], "service");
	KUNIT_EXPECT_EQ(test, arg[3], FI_SOURCE | FI_NUMERICHOST);
	KUNIT_EXPECT_PTR_EQ(test, (void *)arg[4], (void *)&hints);
	fi_freeinfo(list);
}

/* Deregistering */

static void deregister_never(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_make(test, "never");
	struct kofi_provider nameless = fake->provider;

	KUNIT_EXPECT_EQ(test, kofi_provider_deregister(&fake->provider),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, kofi_provider_deregister(NULL), -EINVAL);
	nameless.name = NULL;
	KUNIT_EXPECT_EQ(test, kofi_provider_deregister(&nameless), -EINVAL);
	KUNIT_EXPECT_EQ(test, kofi_fake_register(fake), 0);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(fake), 0);
	KUNIT_EXPECT_EQ(test, kofi_provider_deregister(&fake->provider),
			-ENOENT);
}

static void deregister_open(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "open");
	struct fid_fabric *one = kofi_fake_fabric(test, fake);
	struct fid_fabric *two = kofi_fake_fabric(test, fake);

	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(fake), -EBUSY);
	kofi_fake_close(test, &one->fid);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(fake), -EBUSY);
	/* The provider is still registered. */
	KUNIT_EXPECT_EQ(test, found(fake), 1);
	kofi_fake_close(test, &two->fid);
	KUNIT_EXPECT_EQ(test, kofi_fake_deregister(fake), 0);
}

/* The module */

static void count_refs(struct kofi_fake *fake, struct fid *fid, void *arg)
{
	*(int *)arg = module_refcount(THIS_MODULE);
}

static void module_pinned(struct kunit *test)
{
	static const enum kofi_fake_op ops[] = {
		FAKE_GETINFO, FAKE_FREEINFO, FAKE_FABRIC,
	};
	struct kofi_fake *fake = kofi_fake_new(test, "pinned");
	int refs = module_refcount(THIS_MODULE), inside;
	struct fid_fabric *fabric, *bad = NULL;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		inside = 0;
		fake->call[ops[i]].hook = count_refs;
		fake->call[ops[i]].hook_arg = &inside;
		KUNIT_EXPECT_EQ(test, found(fake), 1);
		KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);
		fabric = kofi_fake_fabric(test, fake);
		KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs + 1);
		KUNIT_EXPECT_EQ(test, inside, refs + 1);
		fake->call[ops[i]].hook = NULL;
		kofi_fake_close(test, &fabric->fid);
		KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);
	}

	fake->call[FAKE_GETINFO].ret = -EIO;
	KUNIT_EXPECT_EQ(test, found(fake), 0);
	fake->call[FAKE_FABRIC].ret = -EIO;
	KUNIT_EXPECT_EQ(test, fi_fabric(fake->info->fabric_attr, &bad, NULL),
			-EIO);
	KUNIT_EXPECT_NULL(test, bad);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);

	/* The module is pinned during the close op. */
	fake->call[FAKE_FABRIC].ret = 0;
	fabric = kofi_fake_fabric(test, fake);
	fake->call[FAKE_CLOSE].hook = count_refs;
	fake->call[FAKE_CLOSE].hook_arg = &inside;
	kofi_fake_close(test, &fabric->fid);
	KUNIT_EXPECT_EQ(test, inside, refs + 1);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);
}

static struct kunit_case registry_cases[] = {
	KUNIT_CASE(several_providers),
	KUNIT_CASE(ask_by_name),
	KUNIT_CASE(load_by_name),
	KUNIT_CASE(duplicates),
	KUNIT_CASE(mandatory_parts),
	KUNIT_CASE_PARAM(names, name_gen_params),
	KUNIT_CASE(versions),
	KUNIT_CASE(one_fails),
	KUNIT_CASE(all_fail),
	KUNIT_CASE(nothing_found),
	KUNIT_CASE(own_list),
	KUNIT_CASE(entry_without),
	KUNIT_CASE(arguments),
	KUNIT_CASE(deregister_never),
	KUNIT_CASE(deregister_open),
	KUNIT_CASE(module_pinned),
	{}
};

static struct kunit_suite registry_suite = {
	.name = "kofi_registry",
	.test_cases = registry_cases,
};

kunit_test_suite(registry_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's registry");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
