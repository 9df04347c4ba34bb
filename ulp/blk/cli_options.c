// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parser of the options written to the control device: "name=value,...". */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/kstrtox.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <linux/uuid.h>
#include "cli.h"

struct kbc_option {
	const char	*name;
	int		(*set)(void *field, const char *text, const struct kbc_option *o);
	size_t		offset;		/* in struct kbc_options */
	int		least, most;
};

/* Set an int or unsigned int. If @least is -1, all negative numbers mean never. */
int kbc_number(void *field, const char *text, unsigned int base, int least, int most)
{
	int value, ret;

	ret = kstrtoint(text, base, &value);
	if (ret)
		return ret;
	if (least < 0)
		value = max(value, -1);
	if (value < least || value > most)
		return -EINVAL;
	WRITE_ONCE(*(int *)field, value);
	return 0;
}

static int kbc_set_number(void *field, const char *text, const struct kbc_option *o)
{
	return kbc_number(field, text, 0, o->least, o->most);
}

/* A disk must accept requests of a page, and KOFIBLK_IO_MIN isn't more than that. */
static int kbc_set_max_io(void *field, const char *text, const struct kbc_option *o)
{
	int ret = kbc_set_number(field, text, o);

	return ret ?: *(unsigned int *)field % KOFIBLK_IO_MIN ? -EINVAL : 0;
}

static int kbc_set_bool(void *field, const char *text, const struct kbc_option *o)
{
	return kstrtobool(text, field);
}

static int kbc_set_name(void *field, const char *text, const struct kbc_option *o)
{
	if (!kofiblk_name_ok(text))
		return -EINVAL;
	strscpy(field, text, KOFIBLK_NAME_MAX);
	return 0;
}

static int kbc_set_addr(void *field, const char *text, const struct kbc_option *o)
{
	struct kbc_options *opts = container_of(field, struct kbc_options, addr);

	if (strscpy(opts->address, text, sizeof(opts->address)) < 0)
		return -EINVAL;
	return kulp_net_parse(text, &opts->addr);
}

static int kbc_set_host_id(void *field, const char *text, const struct kbc_option *o)
{
	uuid_t uuid;
	int ret;

	ret = uuid_parse(text, &uuid);
	if (ret)
		return ret;
	if (uuid_is_null(&uuid))
		return -EINVAL;
	static_assert(sizeof(uuid) == KOFIBLK_HOST);
	memcpy(field, &uuid, KOFIBLK_HOST);
	return 0;
}

static int kbc_set_secret(void *field, const char *text, const struct kbc_option *o)
{
	struct kulp_key **key = field, *new = kulp_key_new(text);

	if (IS_ERR(new))
		return PTR_ERR(new);
	kulp_key_put(*key);
	*key = new;
	return 0;
}

static int kbc_set_string(void *field, const char *text, const struct kbc_option *o)
{
	char **string = field;

	kfree(*string);
	*string = kstrdup(text, GFP_KERNEL);
	return *string ? 0 : -ENOMEM;
}

#define KBC_OPTION(name, set, field, ...) \
	{ name, kbc_set_##set, offsetof(struct kbc_options, field), __VA_ARGS__ }

static const struct kbc_option kbc_option_table[] = {
	KBC_OPTION("addr", addr, addr),
	KBC_OPTION("export", name, export),
	KBC_OPTION("client", name, client),
	KBC_OPTION("host_id", host_id, host),
	KBC_OPTION("secret", secret, key),
	KBC_OPTION("prov", string, select.prov),
	KBC_OPTION("fabric", string, select.fabric),
	KBC_OPTION("domain", string, select.domain),
	KBC_OPTION("queues", number, queues, 1, KOFIBLK_QUEUES_MAX),
	KBC_OPTION("poll_queues", number, select.polled, 0, KOFIBLK_QUEUES_MAX - 1),
	KBC_OPTION("depth", number, depth, 1, KOFIBLK_DEPTH_MAX),
	KBC_OPTION("max_io", max_io, max_io, PAGE_SIZE, KOFIBLK_IO_MAX),
	KBC_OPTION("reconnect_delay", number, reconnect_delay, 1, KBC_SECONDS_MAX),
	KBC_OPTION("ctrl_loss_tmo", number, ctrl_loss_tmo, -1, KBC_SECONDS_MAX),
	KBC_OPTION("fast_io_fail_tmo", number, fast_io_fail_tmo, -1, KBC_SECONDS_MAX),
	KBC_OPTION("keep_alive_tmo", number, keep_alive_tmo, 1,
		   KOFIBLK_KEEP_ALIVE_MAX / MSEC_PER_SEC),
	KBC_OPTION("checksum", bool, checksum),
	KBC_OPTION("own_domain", bool, own_domain),
	{}
};

/* Print only the name of a bad option, as the value may be a secret. */
static int kbc_option_set(struct kbc_options *opts, char *value)
{
	const char *name = strsep(&value, "=");
	const struct kbc_option *o;
	int ret = -EINVAL;

	for (o = kbc_option_table; value && *value && o->name; o++)
		if (!strcmp(o->name, name))
			ret = o->set((void *)opts + o->offset, value, o);
	if (ret)
		pr_err("option \"%s\" is unknown or has an invalid value: %d\n",
		       value ? name : "", ret);
	return ret;
}

/* @opts is zeroed. The caller calls kbc_options_free() also on failure. */
int kbc_options_parse(struct kbc_options *opts, char *text)
{
	char *option;
	int ret = 0;

	opts->queues = KOFIBLK_QUEUES_MAX;
	opts->depth = 64;
	opts->max_io = SZ_1M;
	/* As with nvme, but a disk that is mounted isn't removed because its server is away. */
	opts->reconnect_delay = 10;
	opts->ctrl_loss_tmo = -1;
	opts->fast_io_fail_tmo = -1;
	opts->keep_alive_tmo = 5;
	while (!ret && (option = strsep(&text, ",\n")))
		if (*option)
			ret = kbc_option_set(opts, option);
	if (ret)
		return ret;
	if (!*opts->address || !*opts->export) {
		pr_err("addr= and export= are required\n");
		return -EINVAL;
	}
	if (!memchr_inv(opts->host, 0, sizeof(opts->host))) {
		pr_err("host_id= is required: a UUID that identifies this machine\n");
		return -EINVAL;
	}
	if (opts->own_domain)
		opts->select.owner = opts->address;
	if (*opts->client)
		return 0;
	ret = kbc_set_name(opts->client, init_utsname()->nodename, NULL);
	if (ret)
		pr_err("client= is required: the host name isn't a valid client name\n");
	return ret;
}

void kbc_options_free(struct kbc_options *opts)
{
	kulp_key_put(opts->key);
	kfree(opts->select.prov);
	kfree(opts->select.fabric);
	kfree(opts->select.domain);
}
