// SPDX-License-Identifier: GPL-2.0
/* The verbs of an adapter: those of the device below it, within its limits. */

#define pr_fmt(fmt) "adapter: " fmt

#include <linux/delay.h>
#include <linux/device.h>

#include "adapter.h"

/**
 * adapter_of() - The adapter that a device plays.
 * @device: one that plays one
 */
struct adapter *adapter_of(struct ib_device *device)
{
	return dev_get_drvdata(device->dma_device);
}

static int lesser(int limit, int most)
{
	return limit ? min(limit, most) : most;
}

static int adapter_query_device(struct ib_device *device, struct ib_device_attr *attr, struct ib_udata *udata)
{
	const struct adapter_profile *profile = adapter_of(device)->profile;
	int err = adapter_of(device)->below->query_device(device, attr, udata);

	if (err)
		return err;
	attr->max_qp_wr = lesser(profile->max_qp_wr, attr->max_qp_wr);
	attr->max_send_sge = lesser(profile->max_send_sge, attr->max_send_sge);
	attr->max_recv_sge = lesser(profile->max_recv_sge, attr->max_recv_sge);
	attr->max_sge_rd = lesser(profile->max_sge_rd, attr->max_sge_rd);
	attr->max_cqe = lesser(profile->max_cqe, attr->max_cqe);
	attr->max_qp_rd_atom = lesser(profile->max_qp_rd_atom, attr->max_qp_rd_atom);
	attr->max_qp_init_rd_atom = lesser(profile->max_qp_init_rd_atom, attr->max_qp_init_rd_atom);
	attr->max_fast_reg_page_list_len = lesser(profile->max_region_pages, attr->max_fast_reg_page_list_len);
	if (profile->gaps)
		attr->kernel_cap_flags |= IBK_SG_GAPS_REG;
	return 0;
}

/**
 * adapter_exceeds() - Whether more is wanted than there is; says so then.
 * @what: is wanted
 * @wanted: so much
 * @most: there is
 */
bool adapter_exceeds(const char *what, u32 wanted, u32 most)
{
	if (wanted > most)
		pr_info("refused: %u %s wanted, there are %u\n", wanted, what, most);
	return wanted > most;
}

static bool has_no_room(const struct adapter *adapter, const struct ib_qp_cap *cap)
{
	const struct ib_device_attr *attrs = &adapter->device->attrs;

	return adapter_exceeds("send requests", cap->max_send_wr, attrs->max_qp_wr) ||
	       adapter_exceeds("Receives", cap->max_recv_wr, attrs->max_qp_wr) ||
	       adapter_exceeds("elements of a request", cap->max_send_sge, attrs->max_send_sge) ||
	       adapter_exceeds("elements of a Receive", cap->max_recv_sge, attrs->max_recv_sge) ||
	       cap->max_send_wr > lesser(adapter->profile->grants_sends, attrs->max_qp_wr) ||
	       cap->max_recv_wr > lesser(adapter->profile->grants_receives, attrs->max_qp_wr);
}

static int adapter_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct adapter *adapter = adapter_of(qp->device);
	bool is_rc = init->qp_type == IB_QPT_RC;
	int err;

	if (is_rc && has_no_room(adapter, &init->cap))
		return -EINVAL;
	if (is_rc && adapter_fails(ADAPTER_CREATE_QP))
		return -ENOMEM;
	err = adapter->below->create_qp(qp, init, udata);
	if (err || udata || !is_rc)
		return err;
	err = xa_err(xa_store_irq(&adapter->queue_pairs, qp->qp_num, qp, GFP_KERNEL));
	if (err) {
		adapter->below->destroy_qp(qp, udata);
		return err;
	}
	adapter_complete_on(adapter, init->recv_cq, qp->qp_num, false);
	adapter_complete_on(adapter, init->send_cq, qp->qp_num, true);
	return 0;
}

static int adapter_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	xa_erase_irq(&adapter_of(qp->device)->queue_pairs, qp->qp_num);
	return adapter_of(qp->device)->below->destroy_qp(qp, udata);
}

static int adapter_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	const struct ib_device_attr *attrs = &qp->device->attrs;

	if ((mask & IB_QP_MAX_QP_RD_ATOMIC &&
	     adapter_exceeds("RDMA Reads begun at once", attr->max_rd_atomic, attrs->max_qp_init_rd_atom)) ||
	    (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	     adapter_exceeds("RDMA Reads served at once", attr->max_dest_rd_atomic, attrs->max_qp_rd_atom)))
		return -EINVAL;
	return adapter_of(qp->device)->below->modify_qp(qp, attr, mask, udata);
}

/* What a request is refused with; 0 if it is not. */
static int refusal(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	if (wr->opcode == IB_WR_LOCAL_INV && adapter_of(qp->device)->profile->refuses_local_inv)
		return -EINVAL;
	if (wr->opcode == IB_WR_RDMA_READ &&
	    adapter_exceeds("elements of an RDMA Read", wr->num_sge, qp->device->attrs.max_sge_rd))
		return -EINVAL;
	return qp->qp_type == IB_QPT_RC && adapter_fails(ADAPTER_POST_SEND) ? -ENOMEM : 0;
}

/* Requests in front of one that is refused are posted, as drivers do. */
static int adapter_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct adapter *adapter = adapter_of(qp->device);
	const struct ib_send_wr *each, *last = NULL;
	int refused = 0, err = 0;

	for (each = wr; each; each = each->next) {
		refused = refusal(qp, each);
		if (refused)
			break;
		adapter_note_unsignaled(adapter, each);
		last = each;
	}
	if (!each)
		return adapter->below->post_send(qp, wr, bad);
	if (last) {
		/* The list is the caller's again when this returns, and nobody else's now. */
		((struct ib_send_wr *)last)->next = NULL;
		err = adapter->below->post_send(qp, wr, bad);
		((struct ib_send_wr *)last)->next = (struct ib_send_wr *)each;
	}
	if (err)
		return err;
	*bad = each;
	return refused;
}

static struct ib_mr *adapter_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 pages)
{
	struct adapter *adapter = adapter_of(pd->device);
	int most = pd->device->attrs.max_fast_reg_page_list_len;

	if (adapter_exceeds("pages of a region", pages, most) ||
	    pages > lesser(adapter->profile->grants_region_pages, most))
		return ERR_PTR(-EINVAL);
	if (adapter_fails(ADAPTER_ALLOC_MR))
		return ERR_PTR(-ENOMEM);
	/* The core says what it is once it is there. */
	if (adapter->profile->gaps && type == IB_MR_TYPE_SG_GAPS)
		type = IB_MR_TYPE_MEM_REG;
	return adapter->below->alloc_mr(pd, type, pages);
}

static int adapter_map_mr_sg(struct ib_mr *mr, struct scatterlist *list, int nents, unsigned int *offset)
{
	struct adapter *adapter = adapter_of(mr->device);

	if (adapter->profile->map_sleeps)
		msleep(1);
	if (adapter_fails(ADAPTER_MAP_MR_SG))
		return -ENOMEM;
	return adapter->below->map_mr_sg(mr, list, lesser(adapter->profile->takes, nents), offset);
}

const struct ib_device_ops adapter_device_ops = {
	.alloc_mr = adapter_alloc_mr,
	.create_cq = adapter_create_cq,
	.create_qp = adapter_create_qp,
	.destroy_cq = adapter_destroy_cq,
	.destroy_qp = adapter_destroy_qp,
	.map_mr_sg = adapter_map_mr_sg,
	.modify_qp = adapter_modify_qp,
	.poll_cq = adapter_poll_cq,
	.pre_destroy_cq = adapter_pre_destroy_cq,
	.post_send = adapter_post_send,
	.query_device = adapter_query_device,
	.req_notify_cq = adapter_req_notify_cq,
};
