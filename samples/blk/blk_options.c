// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parser of the options written to the control device: "name=value,...". */
#define pr_fmt(fmt) "kofiblk: " fmt

#include <linux/err.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/parser.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <linux/uuid.h>
#include "blk.h"

/* Defaults. The times are those of nvme, in seconds. */
#define KBC_KEEP_ALIVE_TMO	5
#define KBC_RECONNECT_DELAY	10
#define KBC_CTRL_LOSS_TMO	600
#define KBC_DEPTH		64
#define KBC_MAX_IO		SZ_1M

enum {
	KBC_OPT_ADDR,
	KBC_OPT_EXPORT,
	KBC_OPT_CLIENT,
	KBC_OPT_HOST_ID,
	KBC_OPT_SECRET,
	KBC_OPT_PROV,
	KBC_OPT_FABRIC,
	KBC_OPT_DOMAIN,
	KBC_OPT_QUEUES,
	KBC_OPT_DEPTH,
	KBC_OPT_MAX_IO,
	KBC_OPT_RECONNECT_DELAY,
	KBC_OPT_CTRL_LOSS_TMO,
	KBC_OPT_FAST_IO_FAIL_TMO,
	KBC_OPT_KEEP_ALIVE_TMO,
	KBC_OPT_CHECKSUM,
	KBC_OPT_OWN_DOMAIN,
	KBC_OPT_ERR,
};

static const match_table_t kbc_opt_tokens = {
	{ KBC_OPT_ADDR,			"addr=%s" },
	{ KBC_OPT_EXPORT,		"export=%s" },
	{ KBC_OPT_CLIENT,		"client=%s" },
	{ KBC_OPT_HOST_ID,		"host_id=%s" },
	{ KBC_OPT_SECRET,		"secret=%s" },
	{ KBC_OPT_PROV,			"prov=%s" },
	{ KBC_OPT_FABRIC,		"fabric=%s" },
	{ KBC_OPT_DOMAIN,		"domain=%s" },
	{ KBC_OPT_QUEUES,		"queues=%s" },
	{ KBC_OPT_DEPTH,		"depth=%s" },
	{ KBC_OPT_MAX_IO,		"max_io=%s" },
	{ KBC_OPT_RECONNECT_DELAY,	"reconnect_delay=%s" },
	{ KBC_OPT_CTRL_LOSS_TMO,	"ctrl_loss_tmo=%s" },
	{ KBC_OPT_FAST_IO_FAIL_TMO,	"fast_io_fail_tmo=%s" },
	{ KBC_OPT_KEEP_ALIVE_TMO,	"keep_alive_tmo=%s" },
	{ KBC_OPT_CHECKSUM,		"checksum=%s" },
	{ KBC_OPT_OWN_DOMAIN,		"own_domain=%s" },
	{ KBC_OPT_ERR,			NULL },
};

static int kbc_opt_name(char *name, const char *text)
{
	if (!kb_name_ok(text))
		return -EINVAL;
	strscpy(name, text, KB_NAME_MAX);
	return 0;
}

static int kbc_opt_addr(struct kbc_options *opts, const char *text)
{
	if (strscpy(opts->address, text, sizeof(opts->address)) < 0)
		return -EINVAL;
	return kb_net_parse(text, &opts->addr);
}

static int kbc_opt_host_id(struct kbc_options *opts, const char *text)
{
	uuid_t uuid;
	int ret;

	ret = uuid_parse(text, &uuid);
	if (ret)
		return ret;
	if (uuid_is_null(&uuid))
		return -EINVAL;
	static_assert(sizeof(uuid) == sizeof(opts->host));
	memcpy(opts->host, &uuid, sizeof(opts->host));
	return 0;
}

static int kbc_opt_secret(struct kbc_options *opts, const char *text)
{
	struct kb_key *key = kb_key_new(text);

	if (IS_ERR(key))
		return PTR_ERR(key);
	kb_key_put(opts->key);
	opts->key = key;
	return 0;
}

static int kbc_opt_string(char **field, const char *text)
{
	kfree(*field);
	*field = kstrdup(text, GFP_KERNEL);
	return *field ? 0 : -ENOMEM;
}

static int kbc_opt_number(unsigned int *field, const char *text,
			  unsigned int least, unsigned int most)
{
	int ret = kstrtouint(text, 0, field);

	if (ret)
		return ret;
	return *field < least || *field > most ? -EINVAL : 0;
}

static int kbc_opt_max_io(struct kbc_options *opts, const char *text)
{
	/* A disk must accept requests of a page. */
	const unsigned int least = max_t(unsigned int, KB_IO_MIN, PAGE_SIZE);

	return kbc_opt_number(&opts->max_io, text, least, KB_IO_MAX) ?:
	       opts->max_io % KB_IO_MIN ? -EINVAL : 0;
}

static int kbc_opt_tmo(int *field, const char *text)
{
	int ret = kstrtoint(text, 0, field);

	if (ret)
		return ret;
	*field = max(*field, -1);
	return *field > KBC_SECONDS_MAX ? -EINVAL : 0;
}

static int kbc_opt_set(struct kbc_options *opts, int token, const char *text)
{
	switch (token) {
	case KBC_OPT_ADDR:
		return kbc_opt_addr(opts, text);
	case KBC_OPT_EXPORT:
		return kbc_opt_name(opts->export, text);
	case KBC_OPT_CLIENT:
		return kbc_opt_name(opts->client, text);
	case KBC_OPT_HOST_ID:
		return kbc_opt_host_id(opts, text);
	case KBC_OPT_SECRET:
		return kbc_opt_secret(opts, text);
	case KBC_OPT_PROV:
		return kbc_opt_string(&opts->select.prov, text);
	case KBC_OPT_FABRIC:
		return kbc_opt_string(&opts->select.fabric, text);
	case KBC_OPT_DOMAIN:
		return kbc_opt_string(&opts->select.domain, text);
	case KBC_OPT_QUEUES:
		return kbc_opt_number(&opts->queues, text, 1, KB_QUEUES_MAX);
	case KBC_OPT_DEPTH:
		return kbc_opt_number(&opts->depth, text, 1, KB_DEPTH_MAX);
	case KBC_OPT_MAX_IO:
		return kbc_opt_max_io(opts, text);
	case KBC_OPT_RECONNECT_DELAY:
		return kbc_opt_number(&opts->reconnect_delay, text, 1,
				      KBC_SECONDS_MAX);
	case KBC_OPT_CTRL_LOSS_TMO:
		return kbc_opt_tmo(&opts->ctrl_loss_tmo, text);
	case KBC_OPT_FAST_IO_FAIL_TMO:
		return kbc_opt_tmo(&opts->fast_io_fail_tmo, text);
	case KBC_OPT_KEEP_ALIVE_TMO:
		return kbc_opt_number(&opts->keep_alive_tmo, text, 1,
				      KB_KEEP_ALIVE_MAX / MSEC_PER_SEC);
	case KBC_OPT_CHECKSUM:
		return kstrtobool(text, &opts->checksum);
	case KBC_OPT_OWN_DOMAIN:
		return kstrtobool(text, &opts->own_domain);
	default:
		return -EINVAL;
	}
}

/* Print only the name of a bad option, as the value may be a secret. */
static int kbc_opt_one(struct kbc_options *opts, char *option)
{
	substring_t args[MAX_OPT_ARGS];
	int token, ret = -EINVAL;

	token = match_token(option, kbc_opt_tokens, args);
	if (token != KBC_OPT_ERR)
		ret = kbc_opt_set(opts, token, args[0].from);
	if (ret)
		pr_err("option \"%.*s\" is unknown or has an invalid value: %d\n",
		       strchr(option, '=') ? (int)strcspn(option, "=") : 0,
		       option, ret);
	return ret;
}

/* The caller calls kbc_options_free() also on failure. */
int kbc_options_parse(struct kbc_options *opts, char *text)
{
	char *option;
	int ret = 0;

	opts->queues = KB_QUEUES_MAX;
	opts->depth = KBC_DEPTH;
	opts->max_io = KBC_MAX_IO;
	opts->reconnect_delay = KBC_RECONNECT_DELAY;
	opts->ctrl_loss_tmo = KBC_CTRL_LOSS_TMO;
	opts->fast_io_fail_tmo = -1;
	opts->keep_alive_tmo = KBC_KEEP_ALIVE_TMO;
	while (!ret && (option = strsep(&text, ",\n")))
		if (*option)
			ret = kbc_opt_one(opts, option);
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
	ret = kbc_opt_name(opts->client, init_utsname()->nodename);
	if (ret)
		pr_err("client= is required: the host name isn't a valid client name\n");
	return ret;
}

void kbc_options_free(struct kbc_options *opts)
{
	kb_key_put(opts->key);
	kfree(opts->select.prov);
	kfree(opts->select.fabric);
	kfree(opts->select.domain);
}
