// SPDX-License-Identifier: GPL-2.0
/* What an adapter has to say at any time, when a test wants it to. */

#define pr_fmt(fmt) "adapter: " fmt

#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "adapter.h"

static DEFINE_MUTEX(adapters_lock);
static LIST_HEAD(adapters);

static const struct {
	const char *name;
	enum ib_event_type type;
	bool of_queue_pairs;
} events[] = {
	{ "qp_fatal", IB_EVENT_QP_FATAL, true },
	{ "qp_request", IB_EVENT_QP_REQ_ERR, true },
	{ "qp_access", IB_EVENT_QP_ACCESS_ERR, true },
	{ "established", IB_EVENT_COMM_EST, true },
	{ "last_receive", IB_EVENT_QP_LAST_WQE_REACHED, true },
	{ "device_fatal", IB_EVENT_DEVICE_FATAL },
	{ "port_error", IB_EVENT_PORT_ERR },
	{ "port_active", IB_EVENT_PORT_ACTIVE },
	{ "gid_change", IB_EVENT_GID_CHANGE },
};

/* With interrupts off, as drivers may. */
static void tell_queue_pairs(struct adapter *adapter, enum ib_event_type type)
{
	unsigned long index, flags;
	struct ib_qp *qp;

	xa_lock_irqsave(&adapter->queue_pairs, flags);
	xa_for_each(&adapter->queue_pairs, index, qp) {
		struct ib_event event = { .device = adapter->device, .element.qp = qp, .event = type };

		qp->event_handler(&event, qp->qp_context);
	}
	xa_unlock_irqrestore(&adapter->queue_pairs, flags);
}

static int set_event(const char *value, const struct kernel_param *param)
{
	struct adapter *adapter;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(events) && !sysfs_streq(value, events[i].name); i++)
		;
	if (i == ARRAY_SIZE(events))
		return -EINVAL;
	guard(mutex)(&adapters_lock);
	list_for_each_entry(adapter, &adapters, all) {
		struct ib_event event = { .device = adapter->device, .element.port_num = 1, .event = events[i].type };

		/* It may be about to come, or to go. */
		if (!ib_device_try_get(adapter->device))
			continue;
		if (events[i].of_queue_pairs)
			tell_queue_pairs(adapter, events[i].type);
		else
			ib_dispatch_event(&event);
		ib_device_put(adapter->device);
	}
	return 0;
}

static const struct kernel_param_ops event_ops = { .set = set_event };
module_param_cb(adapter_event, &event_ops, NULL, 0200);
MODULE_PARM_DESC(adapter_event, "Have all adapters that are played report an event");

/**
 * adapter_hear() - Have an adapter report events.
 * @adapter: it
 */
void adapter_hear(struct adapter *adapter)
{
	guard(mutex)(&adapters_lock);
	list_add(&adapter->all, &adapters);
}

/**
 * adapter_unhear() - It reports no more.
 * @adapter: it
 */
void adapter_unhear(struct adapter *adapter)
{
	guard(mutex)(&adapters_lock);
	list_del(&adapter->all);
}
