// SPDX-License-Identifier: GPL-2.0
/* The verbs of an adapter: those of the device below it, within its limits. */

#define pr_fmt(fmt) "adapter: " fmt

#include <linux/delay.h>
#include <linux/device.h>
#include <linux/timer.h>
#include <linux/slab.h>

#include "adapter.h"

/* A completion queue that has completions only when its time has come. */
struct late_queue {
	struct ib_cq *cq;
	struct timer_list timer;
	unsigned int ms;
	bool ready;
};

static struct adapter *adapter_of(struct ib_device *device)
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

static bool exceeds(const char *what, u32 wanted, u32 most)
{
	if (wanted > most)
		pr_info("refused: %u %s wanted, there are %u\n", wanted, what, most);
	return wanted > most;
}

static int adapter_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct adapter *adapter = adapter_of(qp->device);
	const struct ib_device_attr *attrs = &qp->device->attrs;
	struct late_queue *late;
	int err;

	if (init->qp_type == IB_QPT_RC &&
	    (exceeds("send requests", init->cap.max_send_wr, attrs->max_qp_wr) ||
	     exceeds("Receives", init->cap.max_recv_wr, attrs->max_qp_wr) ||
	     exceeds("elements of a request", init->cap.max_send_sge, attrs->max_send_sge) ||
	     exceeds("elements of a Receive", init->cap.max_recv_sge, attrs->max_recv_sge)))
		return -EINVAL;
	late = xa_load(&adapter->queues, (unsigned long)init->send_cq);
	if (late)
		late->ms = 5 * adapter->profile->late;
	err = adapter->below->create_qp(qp, init, udata);
	if (err || udata || init->qp_type != IB_QPT_RC)
		return err;
	err = xa_err(xa_store_irq(&adapter->queue_pairs, qp->qp_num, qp, GFP_KERNEL));
	if (err)
		adapter->below->destroy_qp(qp, udata);
	return err;
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
	     exceeds("RDMA Reads begun at once", attr->max_rd_atomic, attrs->max_qp_init_rd_atom)) ||
	    (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	     exceeds("RDMA Reads served at once", attr->max_dest_rd_atomic, attrs->max_qp_rd_atom)))
		return -EINVAL;
	return adapter_of(qp->device)->below->modify_qp(qp, attr, mask, udata);
}

static bool refuses(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	if (wr->opcode == IB_WR_LOCAL_INV && adapter_of(qp->device)->profile->refuses_local_inv) {
		pr_info("refused: a local invalidation\n");
		return true;
	}
	return wr->opcode == IB_WR_RDMA_READ &&
	       exceeds("elements of an RDMA Read", wr->num_sge, qp->device->attrs.max_sge_rd);
}

/* Requests in front of one that is refused are posted, as drivers do. */
static int adapter_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	const struct ib_device_ops *below = adapter_of(qp->device)->below;
	const struct ib_send_wr *each, *last = NULL;
	int err = 0;

	for (each = wr; each && !refuses(qp, each); each = each->next)
		last = each;
	if (!each)
		return below->post_send(qp, wr, bad);
	if (last) {
		/* The list is the caller's again when this returns, and nobody else's now. */
		((struct ib_send_wr *)last)->next = NULL;
		err = below->post_send(qp, wr, bad);
		((struct ib_send_wr *)last)->next = (struct ib_send_wr *)each;
	}
	if (err)
		return err;
	*bad = each;
	return -EINVAL;
}

static struct ib_mr *adapter_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 pages)
{
	struct adapter *adapter = adapter_of(pd->device);

	if (exceeds("pages of a region", pages, pd->device->attrs.max_fast_reg_page_list_len))
		return ERR_PTR(-EINVAL);
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
	return adapter->below->map_mr_sg(mr, list, lesser(adapter->profile->takes, nents), offset);
}

static void late_queue_due(struct timer_list *timer)
{
	struct late_queue *late = timer_container_of(late, timer, timer);

	WRITE_ONCE(late->ready, true);
	late->cq->comp_handler(late->cq, late->cq->cq_context);
}

static int adapter_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *init, struct uverbs_attr_bundle *attrs)
{
	struct adapter *adapter = adapter_of(cq->device);
	struct late_queue *late;
	int err;

	if (exceeds("completions", init->cqe, cq->device->attrs.max_cqe))
		return -EINVAL;
	err = adapter->below->create_cq(cq, init, attrs);
	if (err || !adapter->profile->late)
		return err;
	late = kzalloc(sizeof(*late), GFP_KERNEL);
	if (!late || xa_err(xa_store(&adapter->queues, (unsigned long)cq, late, GFP_KERNEL))) {
		kfree(late);
		adapter->below->destroy_cq(cq, NULL);
		return -ENOMEM;
	}
	late->cq = cq;
	late->ms = adapter->profile->late;
	timer_setup(&late->timer, late_queue_due, 0);
	return 0;
}

/* Its work is cancelled next, and must not come again. */
static int adapter_pre_destroy_cq(struct ib_cq *cq)
{
	struct late_queue *late = xa_load(&adapter_of(cq->device)->queues, (unsigned long)cq);

	if (late)
		timer_shutdown_sync(&late->timer);
	return 0;
}

static int adapter_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	struct adapter *adapter = adapter_of(cq->device);
	struct late_queue *late = xa_erase(&adapter->queues, (unsigned long)cq);

	kfree(late);
	return adapter->below->destroy_cq(cq, udata);
}

static int adapter_poll_cq(struct ib_cq *cq, int entries, struct ib_wc *wc)
{
	struct adapter *adapter = adapter_of(cq->device);
	struct late_queue *late = xa_load(&adapter->queues, (unsigned long)cq);
	int found;

	if (late && !READ_ONCE(late->ready))
		return 0;
	found = adapter->below->poll_cq(cq, entries, wc);
	if (late && found < entries)
		WRITE_ONCE(late->ready, false);
	return found;
}

static int adapter_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	struct adapter *adapter = adapter_of(cq->device);
	struct late_queue *late = xa_load(&adapter->queues, (unsigned long)cq);
	int missed = adapter->below->req_notify_cq(cq, flags);

	if (!late || READ_ONCE(late->ready))
		return missed;
	/* What is there already comes when its time has come. */
	if (missed > 0 && !timer_pending(&late->timer))
		mod_timer(&late->timer, jiffies + msecs_to_jiffies(late->ms));
	return 0;
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
