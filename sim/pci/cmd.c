// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of admin commands, and commands for small objects. Numbers in commands may come
 * from processes, through a driver that doesn't check all of them, so the device checks all.
 */
#include "pci.h"

static int alloc_pd(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		    union efasim_aq_resp *resp)
{
	u32 pdn;
	int err;

	err = efasim_adm_alloc_pd(&fn->eng, &pdn);
	if (err)
		return err;
	resp->number.number = cpu_to_le16(pdn);
	return 0;
}

static int dealloc_pd(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		      union efasim_aq_resp *resp)
{
	u32 pdn = le16_to_cpu(cmd->number.number);

	if (!xa_load(&fn->eng.pds, pdn))
		return -EINVAL;
	return efasim_adm_dealloc_pd(&fn->eng, pdn);
}

static int alloc_uar(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		     union efasim_aq_resp *resp)
{
	int err = efasim_adm_other(&fn->eng);
	u32 uar;

	if (err)
		return err;
	uar = find_first_zero_bit(fn->uars, EFASIM_UARS);
	if (uar == EFASIM_UARS)
		return -ENOMEM;
	__set_bit(uar, fn->uars);
	resp->number.number = cpu_to_le16(uar);
	return 0;
}

static int dealloc_uar(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		       union efasim_aq_resp *resp)
{
	u32 uar = le16_to_cpu(cmd->number.number);
	int err = efasim_adm_other(&fn->eng);

	if (err)
		return err;
	if (uar >= EFASIM_UARS || !__test_and_clear_bit(uar, fn->uars))
		return -EINVAL;
	return 0;
}

static int create_ah(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		     union efasim_aq_resp *resp)
{
	u16 number;
	int err;

	err = efasim_adm_create_ah(&fn->eng, le16_to_cpu(cmd->create_ah.pd),
				   cmd->create_ah.gid, &number);
	if (err)
		return err;
	resp->number.number = cpu_to_le16(number);
	return 0;
}

static int destroy_ah(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		      union efasim_aq_resp *resp)
{
	u16 number = le16_to_cpu(cmd->number.number);
	u16 pd = le16_to_cpu(cmd->number.pd);
	struct efasim_ah *ah;

	/* Only commands change the table, and they run one at a time. */
	ah = xa_load(&fn->eng.ahs, number);
	if (!ah || ah->pdn != pd)
		return -EINVAL;
	return efasim_adm_destroy_ah(&fn->eng, pd, number);
}

static int (* const commands[EFASIM_AQ_OPS])(struct efasim_fn *fn,
					     const union efasim_aq_cmd *cmd,
					     union efasim_aq_resp *resp) = {
	[EFASIM_AQ_CREATE_QP] = efasim_cmd_create_qp,
	[EFASIM_AQ_MODIFY_QP] = efasim_cmd_modify_qp,
	[EFASIM_AQ_QUERY_QP] = efasim_cmd_query_qp,
	[EFASIM_AQ_DESTROY_QP] = efasim_cmd_destroy_qp,
	[EFASIM_AQ_CREATE_AH] = create_ah,
	[EFASIM_AQ_DESTROY_AH] = destroy_ah,
	[EFASIM_AQ_REG_MR] = efasim_cmd_reg_mr,
	[EFASIM_AQ_DEREG_MR] = efasim_cmd_dereg_mr,
	[EFASIM_AQ_CREATE_CQ] = efasim_cmd_create_cq,
	[EFASIM_AQ_DESTROY_CQ] = efasim_cmd_destroy_cq,
	[EFASIM_AQ_GET_FEATURE] = efasim_cmd_get_feature,
	[EFASIM_AQ_SET_FEATURE] = efasim_cmd_set_feature,
	[EFASIM_AQ_GET_STATS] = efasim_cmd_get_stats,
	[EFASIM_AQ_ALLOC_PD] = alloc_pd,
	[EFASIM_AQ_DEALLOC_PD] = dealloc_pd,
	[EFASIM_AQ_ALLOC_UAR] = alloc_uar,
	[EFASIM_AQ_DEALLOC_UAR] = dealloc_uar,
	[EFASIM_AQ_CREATE_EQ] = efasim_cmd_create_eq,
	[EFASIM_AQ_DESTROY_EQ] = efasim_cmd_destroy_eq,
	[EFASIM_AQ_ALLOC_MR] = efasim_cmd_alloc_mr,
};

/**
 * efasim_fn_command() - execute an admin command
 * @fn: the function
 * @cmd: the command, untrusted
 * @resp: takes the response except for its header; zeroed
 *
 * Context: The function's workqueue, may sleep.
 * Return: 0; -ETIME or -ENODEV if no response must be sent; or another negative errno.
 */
int efasim_fn_command(struct efasim_fn *fn, const union efasim_aq_cmd *cmd,
		      union efasim_aq_resp *resp)
{
	u8 op = cmd->hdr.opcode;

	if (op >= EFASIM_AQ_OPS)
		return -EOPNOTSUPP;
	if (!commands[op])
		return -EBADRQC;
	return commands[op](fn, cmd, resp);
}
