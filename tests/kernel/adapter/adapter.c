// SPDX-License-Identifier: GPL-2.0
/* Which adapter a device plays, and what it takes to play one. */

#define pr_fmt(fmt) "adapter: " fmt

#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "adapter.h"

/* No memory of a machine is there, so that nobody takes an address of one kind for one of the other. */
#define FIRST_PAGE (1UL << 36)

static char chosen[16] = "itself";
module_param_string(adapter, chosen, sizeof(chosen), 0644);
MODULE_PARM_DESC(adapter, "What the devices made from now on play: an adapter, or itself");

static int begin(struct adapter *adapter)
{
	struct platform_device_info info = {
		.name = "rpcrdma-test-adapter", .id = PLATFORM_DEVID_AUTO, .dma_mask = DMA_BIT_MASK(64),
	};

	if (!IS_ENABLED(CONFIG_ARCH_HAS_DMA_OPS)) {
		pr_err("this kernel lets no device have DMA operations of its own\n");
		return -EOPNOTSUPP;
	}
	adapter->profile = adapter_profile(chosen);
	if (!adapter->profile) {
		pr_err("there is no adapter %s\n", chosen);
		return -EINVAL;
	}
	adapter->dma = platform_device_register_full(&info);
	if (IS_ERR(adapter->dma))
		return PTR_ERR(adapter->dma);
	/* Where a machine has several nodes, not that of its first processor. */
	set_dev_node(&adapter->dma->dev, find_last_bit(node_online_map.bits, MAX_NUMNODES));
	return 0;
}

/**
 * adapter_create() - The adapter that a device plays, as the module's parameter says.
 * @device: has no operations yet
 * @below: those of its driver
 * @is_ready: whether requests can still go through a queue pair; in any context
 *
 * Return: an adapter, NULL if none is to be played, or an error.
 */
struct adapter *adapter_create(struct ib_device *device, const struct ib_device_ops *below,
			       bool (*is_ready)(struct ib_device *device, u32 qpn))
{
	/* Events are told with its lock held, and who hears them may take locks that memory is mapped under. */
	static struct lock_class_key queue_pairs_key;
	struct adapter *adapter;
	int err;

	if (sysfs_streq(chosen, "itself"))
		return NULL;
	adapter = kzalloc(sizeof(*adapter), GFP_KERNEL);
	if (!adapter)
		return ERR_PTR(-ENOMEM);
	xa_init_flags(&adapter->pages, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&adapter->queues, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&adapter->unsignaled, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&adapter->queue_pairs, XA_FLAGS_LOCK_IRQ);
	lockdep_set_class(&adapter->queue_pairs.xa_lock, &queue_pairs_key);
	atomic64_set(&adapter->next, FIRST_PAGE);
	adapter->below = below;
	adapter->is_ready = is_ready;
	adapter->device = device;
	err = begin(adapter);
	if (err) {
		kfree(adapter);
		return ERR_PTR(err);
	}
	platform_set_drvdata(adapter->dma, adapter);
	device->dev.parent = &adapter->dma->dev;
	set_dma_ops(&adapter->dma->dev, &adapter_dma_ops);
	dma_set_max_seg_size(&adapter->dma->dev, adapter->profile->max_segment ?: SZ_2G);
	if (adapter->profile->comp_vectors)
		device->num_comp_vectors = adapter->profile->comp_vectors;
	/* The first to set an operation has set it. */
	ib_set_device_ops(device, &adapter_device_ops);
	adapter_hear(adapter);
	return adapter;
}

/**
 * adapter_destroy() - The device is gone.
 * @adapter: NULL for none
 */
void adapter_destroy(struct adapter *adapter)
{
	if (!adapter)
		return;
	adapter_unhear(adapter);
	adapter_forget(adapter);
	xa_destroy(&adapter->queues);
	xa_destroy(&adapter->unsignaled);
	xa_destroy(&adapter->queue_pairs);
	platform_device_unregister(adapter->dma);
	kfree(adapter);
}

/**
 * adapter_dma_device() - The device for DMA.
 * @adapter: NULL for none
 *
 * Return: for ib_register_device(): NULL where nothing is to be mapped.
 */
struct device *adapter_dma_device(struct adapter *adapter)
{
	return adapter ? &adapter->dma->dev : NULL;
}
