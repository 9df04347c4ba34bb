// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files in /sys/kernel/debug/kofi_pingpong: the state, and the results as a table for people
 * and as JSON for programs. Their formats are no ABI.
 */
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/time64.h>
#include "pingpong.h"

const char * const pp_op_names[PP_OPS] = {
	[PP_SEND]	= "send",
	[PP_WRITE]	= "write",
	[PP_READ]	= "read",
	[PP_WRITEDATA]	= "writedata",
};

/**
 * pp_op_named() - find an operation
 * @name: name of the operation
 *
 * Return: the operation, or PP_OPS.
 */
enum pp_op pp_op_named(const char *name)
{
	enum pp_op op;

	for (op = 0; op < PP_OPS && strcmp(name, pp_op_names[op]); op++)
		;
	return op;
}

static const char * const pp_state_names[PP_STATES] = {
	[PP_WAITING]	= "waiting",
	[PP_RUNNING]	= "running",
	[PP_FINISHED]	= "done",
	[PP_BROKEN]	= "failed",
};

/* --- reports of the thread --- */

/**
 * pp_report_state() - report an instance's state
 * @inst: the instance
 * @state: the new state
 */
void pp_report_state(struct pp_instance *inst, enum pp_state state)
{
	struct pp_report *report = &inst->report;

	mutex_lock(&inst->lock);
	if (state == PP_RUNNING) {
		report->sessions++;
		report->error[0] = '\0';
	}
	report->state = state;
	mutex_unlock(&inst->lock);
}

/**
 * pp_report_fabric() - report a session's fabric
 * @s: the session
 */
void pp_report_fabric(struct pp_session *s)
{
	struct pp_report *report = &s->inst->report;
	const struct fi_info *info = s->info;

	mutex_lock(&s->inst->lock);
	strscpy(report->prov, info->fabric_attr->prov_name,
		sizeof(report->prov));
	strscpy(report->fabric, info->fabric_attr->name,
		sizeof(report->fabric));
	strscpy(report->domain, info->domain_attr->name,
		sizeof(report->domain));
	report->max_msg = s->self.max_msg;
	report->max_rma = s->self.max_rma;
	report->limit = s->self.memory - PP_GUARD;
	report->depth = s->self.depth;
	mutex_unlock(&s->inst->lock);
}

/**
 * pp_report_flow() - report a successful test
 * @s: the session
 */
void pp_report_flow(struct pp_session *s)
{
	struct pp_report *report = &s->inst->report;

	mutex_lock(&s->inst->lock);
	report->tests++;
	report->arrived += s->flow.arrived;
	report->tagged = s->self.can & s->peer.can & PP_CAN_TAGGED;
	report->checked += s->flow.checked;
	report->bad += s->flow.bad;
	report->lossy = s->lossy;
	report->extra += s->flow.extra;
	mutex_unlock(&s->inst->lock);
}

/**
 * pp_report_lost() - report datagrams that were lost
 * @s: the session
 * @lost: number of the client's datagrams that didn't arrive
 */
void pp_report_lost(struct pp_session *s, u32 lost)
{
	mutex_lock(&s->inst->lock);
	s->inst->report.lost += lost;
	mutex_unlock(&s->inst->lock);
}

/**
 * pp_report_row() - report results of one operation at one size
 * @inst: the client
 * @row: the results so far
 */
void pp_report_row(struct pp_instance *inst, const struct pp_row *row)
{
	struct pp_report *report = &inst->report;

	mutex_lock(&inst->lock);
	if (report->nrows < PP_MAX_ROWS)
		report->rows[report->nrows++] = *row;
	mutex_unlock(&inst->lock);
}

/**
 * pp_report_refused() - count an invalid message of a peer
 * @inst: the instance
 */
void pp_report_refused(struct pp_instance *inst)
{
	mutex_lock(&inst->lock);
	inst->report.refused++;
	mutex_unlock(&inst->lock);
}

/**
 * pp_report_error() - report an error
 * @inst: the instance
 * @err: negative errno or negative enum fi_errno
 * @fmt: description of the failed operation
 *
 * Only the first error of a session is kept.
 */
void pp_report_error(struct pp_instance *inst, int err, const char *fmt, ...)
{
	char *text = inst->report.error;
	size_t size = sizeof(inst->report.error), len;
	va_list args;

	mutex_lock(&inst->lock);
	if (!*text) {
		va_start(args, fmt);
		len = vscnprintf(text, size, fmt, args);
		va_end(args);
		scnprintf(text + len, size - len, ": %s", fi_strerror(-err));
		pr_warn_ratelimited("kofi_pingpong: %s: %s\n", inst->name,
				    text);
	}
	mutex_unlock(&inst->lock);
}

/* --- files --- */

/* Print microseconds with one decimal. */
static void pp_show_us(struct seq_file *m, u32 ns)
{
	seq_printf(m, " %7u.%u", ns / 1000, ns % 1000 / 100);
}

static u64 pp_rate(u64 n, u64 ns)
{
	return ns ? mul_u64_u64_div_u64(n, NSEC_PER_SEC, ns) : 0;
}

static u64 pp_row_ops(const struct pp_row *row)
{
	return pp_rate(row->streamed, row->stream_ns);
}

static u64 pp_row_bytes(const struct pp_row *row)
{
	return pp_rate((u64)row->streamed * row->size, row->stream_ns);
}

static void pp_show_row(struct seq_file *m, const struct pp_row *row)
{
	seq_printf(m, "%-10s %8u", pp_op_names[row->op], row->size);
	pp_show_us(m, row->median);
	pp_show_us(m, row->mean);
	pp_show_us(m, row->p99);
	seq_printf(m, " %9llu %6llu.%llu", pp_row_ops(row),
		   pp_row_bytes(row) / 1000000,
		   pp_row_bytes(row) % 1000000 / 100000);
	seq_printf(m, " %8u %6u\n", row->checked, row->bad);
}

static int results_show(struct seq_file *m, void *unused)
{
	struct pp_instance *inst = m->private;
	const struct pp_report *report = &inst->report;
	u32 i;

	mutex_lock(&inst->lock);
	seq_printf(m, "%s: %s\n", inst->name, pp_state_names[report->state]);
	if (*report->error)
		seq_printf(m, "error: %s\n", report->error);
	if (*report->prov)
		seq_printf(m, "provider %s, fabric %s, domain %s\n"
			   "longest message %llu, RMA %llu, buffer %llu; depth %u%s\n",
			   report->prov, report->fabric, report->domain,
			   report->max_msg, report->max_rma, report->limit,
			   report->depth, report->tagged ? ", tagged" :
			   pp_config.connected ? ", connected" : "");
	seq_printf(m, "%u sessions, %u tests, %llu arrived, %llu checked, %llu bad, %u refused\n",
		   report->sessions, report->tests, report->arrived,
		   report->checked, report->bad, report->refused);
	if (report->lossy)
		seq_printf(m, "datagrams: %llu lost, %llu late or repeated\n", report->lost,
			   report->extra);
	if (report->nrows)
		seq_puts(m, "\n                    ------ latency, us ------       ---- stream ----   --- data ----\n"
			 "operation     bytes    median      mean       p99     ops/s     MB/s  checked  wrong\n");
	for (i = 0; i < report->nrows; i++)
		pp_show_row(m, &report->rows[i]);
	mutex_unlock(&inst->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(results);

static void pp_show_string(struct seq_file *m, const char *name,
			   const char *value)
{
	seq_printf(m, "  \"%s\": \"", name);
	seq_escape_str(m, value, ESCAPE_SPECIAL | ESCAPE_NP, "\"\\");
	seq_puts(m, "\",\n");
}

static void pp_show_json_row(struct seq_file *m, const struct pp_row *row)
{
	seq_printf(m, "    {\"operation\": \"%s\", \"size\": %u, \"checked\": %u, \"bad\": %u,\n",
		   pp_op_names[row->op], row->size, row->checked, row->bad);
	seq_printf(m, "     \"latency_ns\": {\"samples\": %u, \"median\": %u, \"mean\": %u, \"p99\": %u},\n",
		   row->samples, row->median, row->mean, row->p99);
	seq_printf(m, "     \"stream\": {\"operations\": %u, \"ns\": %llu}}",
		   row->streamed, row->stream_ns);
}

static int json_show(struct seq_file *m, void *unused)
{
	struct pp_instance *inst = m->private;
	const struct pp_report *report = &inst->report;
	u32 i;

	mutex_lock(&inst->lock);
	seq_puts(m, "{\n");
	pp_show_string(m, "role", inst->name);
	pp_show_string(m, "state", pp_state_names[report->state]);
	pp_show_string(m, "error", report->error);
	pp_show_string(m, "provider", report->prov);
	pp_show_string(m, "fabric", report->fabric);
	pp_show_string(m, "domain", report->domain);
	seq_printf(m, "  \"max_message\": %llu,\n  \"max_rma\": %llu,\n  \"buffer\": %llu,\n  \"depth\": %u,\n  \"tagged\": %s,\n  \"connected\": %s,\n",
		   report->max_msg, report->max_rma, report->limit,
		   report->depth, report->tagged ? "true" : "false",
		   pp_config.connected ? "true" : "false");
	seq_printf(m, "  \"sessions\": %u,\n  \"tests\": %u,\n  \"arrived\": %llu,\n",
		   report->sessions, report->tests, report->arrived);
	seq_printf(m, "  \"checked\": %llu,\n  \"bad\": %llu,\n  \"refused\": %u,\n",
		   report->checked, report->bad, report->refused);
	seq_printf(m, "  \"datagrams\": %s,\n  \"lost\": %llu,\n  \"extra\": %llu,\n  \"rows\": [",
		   report->lossy ? "true" : "false", report->lost, report->extra);
	for (i = 0; i < report->nrows; i++) {
		seq_puts(m, i ? ",\n" : "\n");
		pp_show_json_row(m, &report->rows[i]);
	}
	seq_puts(m, "\n  ]\n}\n");
	mutex_unlock(&inst->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(json);

static int state_show(struct seq_file *m, void *unused)
{
	struct pp_instance *inst = m->private;

	mutex_lock(&inst->lock);
	seq_printf(m, "%s\n", pp_state_names[inst->report.state]);
	mutex_unlock(&inst->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

/**
 * pp_report_init() - create an instance's files
 * @inst: the instance
 * @parent: the module's directory, whose removal removes the files
 */
void pp_report_init(struct pp_instance *inst, struct dentry *parent)
{
	struct dentry *dir = debugfs_create_dir(inst->name, parent);

	debugfs_create_file("state", 0400, dir, inst, &state_fops);
	debugfs_create_file("results", 0400, dir, inst, &results_fops);
	debugfs_create_file("results.json", 0400, dir, inst, &json_fops);
}
