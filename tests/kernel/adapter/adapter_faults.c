// SPDX-License-Identifier: GPL-2.0
/* What an adapter does not do, when a test wants it to fail. */

#include <linux/module.h>
#include <linux/spinlock.h>

#include "adapter.h"

static const char *const calls[] = {
	[ADAPTER_ALLOC_MR] = "alloc_mr",
	[ADAPTER_CREATE_QP] = "create_qp",
	[ADAPTER_MAP_MR_SG] = "map_mr_sg",
	[ADAPTER_POST_SEND] = "post_send",
};

static DEFINE_SPINLOCK(fault_lock);
/* Each "every" one of these calls fails, none if that is 0. */
static enum adapter_call fault_call;
static unsigned int fault_every, fault_seen, fault_count;

/**
 * adapter_fails() - Whether an adapter is to fail now.
 * @call: at what, once for each work request
 *
 * Return: in any context, whether it is.
 */
bool adapter_fails(enum adapter_call call)
{
	guard(spinlock_irqsave)(&fault_lock);
	if (!fault_every || fault_call != call || ++fault_seen % fault_every)
		return false;
	fault_count++;
	return true;
}

static int set_fault(const char *value, const struct kernel_param *param)
{
	unsigned int every;
	char name[16];
	int call;

	if (sscanf(value, "%15s %u", name, &every) != 2)
		return -EINVAL;
	call = match_string(calls, ARRAY_SIZE(calls), name);
	if (call < 0)
		return call;
	guard(spinlock_irqsave)(&fault_lock);
	fault_call = call;
	fault_every = every;
	fault_seen = 0;
	fault_count = 0;
	return 0;
}

static int get_fault(char *buffer, const struct kernel_param *param)
{
	guard(spinlock_irqsave)(&fault_lock);
	return sysfs_emit(buffer, "%u\n", fault_count);
}

static const struct kernel_param_ops fault_ops = { .set = set_fault, .get = get_fault };
module_param_cb(adapter_fault, &fault_ops, NULL, 0600);
MODULE_PARM_DESC(adapter_fault, "A call and N: have each Nth one fail, none if it is 0; reads as how many did");
