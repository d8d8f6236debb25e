// SPDX-License-Identifier: GPL-2.0
/* The completion queues of an adapter: those of the device below it, which may be late, and not tell of everything. */

#include <linux/slab.h>
#include <linux/timer.h>

#include "adapter.h"

/* A completion queue that has completions only when its time has come. */
struct late_queue {
	struct ib_cq *cq;
	struct timer_list timer;
	/* Of which queue pair, once there is one, and of what. */
	u32 qpn;
	bool sends;
	bool ready;
};

static struct late_queue *late_queue_of(struct ib_cq *cq)
{
	return xa_load(&adapter_of(cq->device)->queues, (unsigned long)cq);
}

static unsigned int late_queue_ms(const struct late_queue *late)
{
	struct adapter *adapter = adapter_of(late->cq->device);
	bool flushes = late->qpn && !adapter->is_ready(adapter->device, late->qpn);
	const struct adapter_delay *delay = flushes ? &adapter->profile->flushes : &adapter->profile->late;

	return late->sends ? delay->sends : delay->receives;
}

static void late_queue_due(struct timer_list *timer)
{
	struct late_queue *late = timer_container_of(late, timer, timer);

	WRITE_ONCE(late->ready, true);
	late->cq->comp_handler(late->cq, late->cq->cq_context);
}

static bool is_late(const struct adapter_profile *profile)
{
	return profile->late.sends || profile->late.receives || profile->flushes.sends || profile->flushes.receives;
}

int adapter_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *init, struct uverbs_attr_bundle *attrs)
{
	struct adapter *adapter = adapter_of(cq->device);
	struct late_queue *late;
	int err;

	if (adapter_exceeds("completions", init->cqe, cq->device->attrs.max_cqe))
		return -EINVAL;
	err = adapter->below->create_cq(cq, init, attrs);
	if (err || !is_late(adapter->profile))
		return err;
	late = kzalloc(sizeof(*late), GFP_KERNEL);
	if (!late || xa_err(xa_store_irq(&adapter->queues, (unsigned long)cq, late, GFP_KERNEL))) {
		kfree(late);
		adapter->below->destroy_cq(cq, NULL);
		return -ENOMEM;
	}
	late->cq = cq;
	timer_setup(&late->timer, late_queue_due, 0);
	return 0;
}

/* Its work is cancelled next, and must not come again. */
int adapter_pre_destroy_cq(struct ib_cq *cq)
{
	struct late_queue *late = late_queue_of(cq);

	if (late)
		timer_shutdown_sync(&late->timer);
	return 0;
}

int adapter_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	struct adapter *adapter = adapter_of(cq->device);

	kfree(xa_erase_irq(&adapter->queues, (unsigned long)cq));
	return adapter->below->destroy_cq(cq, udata);
}

/**
 * adapter_complete_on() - A queue pair has its completions in a queue.
 * @adapter: of both
 * @cq: the queue
 * @qpn: the number of the queue pair
 * @sends: whether those of what it sends
 */
void adapter_complete_on(struct adapter *adapter, struct ib_cq *cq, u32 qpn, bool sends)
{
	struct late_queue *late = late_queue_of(cq);

	if (late) {
		late->qpn = qpn;
		late->sends = sends;
	}
}

/**
 * adapter_note_unsignaled() - A request is about to be posted.
 * @adapter: at which
 * @wr: the request; in any context
 */
void adapter_note_unsignaled(struct adapter *adapter, const struct ib_send_wr *wr)
{
	/* That of ib_drain_sq() is not signaled either, but waited for. */
	bool drains = wr->opcode == IB_WR_RDMA_WRITE && !wr->num_sge;
	bool unsignaled = !(wr->send_flags & IB_SEND_SIGNALED) && !drains;
	unsigned long flags;

	if (!adapter->profile->drops_unsignaled || !wr->wr_cqe)
		return;
	xa_lock_irqsave(&adapter->unsignaled, flags);
	/* Without memory for it there is one completion more. */
	__xa_store(&adapter->unsignaled, wr->wr_id, unsignaled ? xa_mk_value(1) : NULL, GFP_ATOMIC);
	xa_unlock_irqrestore(&adapter->unsignaled, flags);
}

/* Without those of unsignaled requests that were flushed, if they are dropped. */
static int dropped(struct adapter *adapter, struct ib_wc *wc, int found)
{
	int i, kept = 0;

	if (!adapter->profile->drops_unsignaled)
		return found;
	for (i = 0; i < found; i++)
		if (wc[i].status != IB_WC_WR_FLUSH_ERR || !xa_load(&adapter->unsignaled, wc[i].wr_id))
			wc[kept++] = wc[i];
	return kept;
}

int adapter_poll_cq(struct ib_cq *cq, int entries, struct ib_wc *wc)
{
	struct adapter *adapter = adapter_of(cq->device);
	struct late_queue *late = late_queue_of(cq);
	int found, kept;

	if (late && late_queue_ms(late) && !READ_ONCE(late->ready))
		return 0;
	do {
		found = adapter->below->poll_cq(cq, entries, wc);
		kept = found > 0 ? dropped(adapter, wc, found) : found;
	} while (found > 0 && !kept);
	if (late && found < entries)
		WRITE_ONCE(late->ready, false);
	return kept;
}

int adapter_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	struct adapter *adapter = adapter_of(cq->device);
	struct late_queue *late = late_queue_of(cq);
	int missed = adapter->below->req_notify_cq(cq, flags);
	unsigned int ms;

	if (!late || READ_ONCE(late->ready))
		return missed;
	ms = late_queue_ms(late);
	if (!ms)
		return missed;
	/* What is there already comes when its time has come. */
	if (missed > 0 && !timer_pending(&late->timer))
		mod_timer(&late->timer, jiffies + msecs_to_jiffies(ms));
	return 0;
}
