// SPDX-License-Identifier: GPL-2.0
/*
 * The memory that a test device reaches, as a real adapter behind an IOMMU that bounces everything would: addresses of
 * their own, never used twice, and a copy of what is mapped, which only mapping, a sync and unmapping bring up to date.
 * So a sync that is missing shows as wrong data, and each of these is told in the kernel's log, for tests to find:
 *
 *  - the device reaches what is not mapped (any more), more than that, or in the other direction,
 *  - what is unmapped or synced is not mapped so: elsewhere, in another length or direction,
 *  - memory is unmapped while a region that covers it can still be reached through a queue pair,
 *  - memory stays mapped when the device is gone.
 *
 * Elements of a list that meet at the edges of pages become one, as an IOMMU makes them.
 */

#define pr_fmt(fmt) "adapter: " fmt

#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "adapter.h"

/* One page of a mapping. */
struct adapter_page {
	/* Of its first byte that is mapped, and where the device has that in its page. */
	phys_addr_t phys;
	unsigned int offset;
	unsigned int len;
	enum dma_data_direction dir;
	/* What the device sees; the memory itself where that has to be coherent. */
	struct page *seen;
	bool bounced;
	/* How many regions cover it, and the queue pair that the last one was registered through. */
	unsigned int regions;
	u32 qpn;
};

static void *memory_of(const struct adapter_page *page)
{
	return phys_to_virt(page->phys);
}

static void *seen_of(const struct adapter_page *page)
{
	return page_address(page->seen) + page->offset;
}

/* Bytes of a mapped page that begin at this offset in it; NULL if they are not all mapped. */
static struct adapter_page *page_of(struct adapter *adapter, u64 addr, size_t len)
{
	struct adapter_page *page = xa_load(&adapter->pages, addr >> PAGE_SHIFT);
	size_t first;

	if (!page || offset_in_page(addr) < page->offset)
		return NULL;
	first = offset_in_page(addr) - page->offset;
	return first + len <= page->len ? page : NULL;
}

static struct adapter_page *page_create(u64 addr, phys_addr_t phys, unsigned int len, enum dma_data_direction dir,
					unsigned long attrs)
{
	struct adapter_page *page = kzalloc(sizeof(*page), GFP_ATOMIC | __GFP_NOWARN);

	if (!page)
		return NULL;
	page->phys = phys;
	page->offset = offset_in_page(addr);
	page->len = len;
	page->dir = dir;
	page->bounced = !(attrs & DMA_ATTR_REQUIRE_COHERENT);
	if (!page->bounced) {
		page->seen = pfn_to_page(PHYS_PFN(phys));
		get_page(page->seen);
		return page;
	}
	page->seen = alloc_page(GFP_ATOMIC | __GFP_NOWARN);
	if (!page->seen) {
		kfree(page);
		return NULL;
	}
	memcpy(seen_of(page), memory_of(page), len);
	return page;
}

static void page_destroy(struct adapter_page *page)
{
	put_page(page->seen);
	kfree(page);
}

static int insert(struct adapter *adapter, unsigned long number, struct adapter_page *page)
{
	unsigned long flags;
	int err;

	xa_lock_irqsave(&adapter->pages, flags);
	err = xa_err(__xa_store(&adapter->pages, number, page, GFP_ATOMIC | __GFP_NOWARN));
	xa_unlock_irqrestore(&adapter->pages, flags);
	return err;
}

static struct adapter_page *erase(struct adapter *adapter, unsigned long number)
{
	struct adapter_page *page;
	unsigned long flags;

	xa_lock_irqsave(&adapter->pages, flags);
	page = __xa_erase(&adapter->pages, number);
	xa_unlock_irqrestore(&adapter->pages, flags);
	return page;
}

/* Where in its page the device has what begins here in memory: in the same place, unless the adapter's bounce buffers
 * lose that.
 */
static unsigned int offset_of(struct adapter *adapter, phys_addr_t phys)
{
	return adapter->profile->loses_offsets ? 0 : offset_in_page(phys);
}

static unsigned long pages_in(unsigned int offset, size_t size)
{
	return DIV_ROUND_UP(offset + size, PAGE_SIZE);
}

/* Bytes that are in one page. */
static void unmap_page(struct adapter *adapter, u64 addr, unsigned int len, enum dma_data_direction dir, bool sync)
{
	struct adapter_page *page = erase(adapter, addr >> PAGE_SHIFT);

	if (!page) {
		pr_err("unmapped at %#llx, where nothing is mapped\n", addr);
		return;
	}
	if (page->dir != dir || page->offset != offset_in_page(addr) || page->len != len)
		pr_err("unmapped %u bytes at %#llx in direction %d, where %u are mapped at %#x in direction %d\n", len, addr,
		       dir, page->len, page->offset, page->dir);
	if (page->regions && adapter->is_ready(adapter->device, page->qpn))
		pr_err("unmapped at %#llx what %u region(s) of queue pair %u cover\n", addr, page->regions, page->qpn);
	if (sync && page->bounced && dir != DMA_TO_DEVICE)
		memcpy(memory_of(page), seen_of(page), page->len);
	page_destroy(page);
}

static void unmap_range(struct adapter *adapter, u64 addr, size_t size, enum dma_data_direction dir, bool sync)
{
	while (size) {
		unsigned int len = min_t(size_t, size, PAGE_SIZE - offset_in_page(addr));

		unmap_page(adapter, addr, len, dir, sync);
		addr += len;
		size -= len;
	}
}

/* As much as the kernel's own bounce buffers take at once. */
static size_t adapter_max_mapping_size(struct device *dev)
{
	struct adapter *adapter = dev_get_drvdata(dev);

	return adapter->profile->loses_offsets ? SZ_256K : SIZE_MAX;
}

static int map_range(struct adapter *adapter, u64 addr, phys_addr_t phys, size_t size, enum dma_data_direction dir,
		     unsigned long attrs)
{
	size_t done = 0;

	/* As the kernel's own bounce buffers, which have no more room in a row. */
	if (size > adapter_max_mapping_size(adapter_dma_device(adapter)))
		return -ENOMEM;
	while (done < size) {
		unsigned int len = min_t(size_t, size - done, PAGE_SIZE - offset_in_page(addr + done));
		struct adapter_page *page = page_create(addr + done, phys + done, len, dir, attrs);

		if (!page)
			goto undo;
		if (insert(adapter, (addr + done) >> PAGE_SHIFT, page)) {
			page_destroy(page);
			goto undo;
		}
		done += len;
	}
	return 0;
undo:
	if (done)
		unmap_range(adapter, addr, done, dir, false);
	return -ENOMEM;
}

/* Numbers for so many pages, with one behind them that nothing is ever mapped at. */
static unsigned long reserve(struct adapter *adapter, unsigned long pages)
{
	return atomic64_fetch_add(pages + 1, &adapter->next);
}

static dma_addr_t adapter_map_phys(struct device *dev, phys_addr_t phys, size_t size, enum dma_data_direction dir,
				   unsigned long attrs)
{
	struct adapter *adapter = dev_get_drvdata(dev);
	unsigned int offset = offset_of(adapter, phys);
	u64 addr;

	if (attrs & DMA_ATTR_MMIO)
		return DMA_MAPPING_ERROR;
	addr = ((u64)reserve(adapter, pages_in(offset, size)) << PAGE_SHIFT) + offset;
	if (map_range(adapter, addr, phys, size, dir, attrs))
		return DMA_MAPPING_ERROR;
	return addr;
}

static void adapter_unmap_phys(struct device *dev, dma_addr_t addr, size_t size, enum dma_data_direction dir,
			       unsigned long attrs)
{
	unmap_range(dev_get_drvdata(dev), addr, size, dir, !(attrs & DMA_ATTR_SKIP_CPU_SYNC));
}

/* Whether an element goes on where the one before it ends, without a gap in the addresses of the device. */
static bool adjoins(struct adapter *adapter, struct scatterlist *before, struct scatterlist *sg)
{
	return !adapter->profile->loses_offsets && !offset_in_page(sg_phys(before) + before->length) &&
	       !offset_in_page(sg_phys(sg));
}

/* The address of each element, from that of the one before it, or for the first one from @addr. */
static u64 place(struct adapter *adapter, u64 addr, struct scatterlist *before, struct scatterlist *sg)
{
	u64 pages;

	if (!before)
		return (addr & PAGE_MASK) + offset_of(adapter, sg_phys(sg));
	pages = pages_in(offset_in_page(addr), before->length) + !adjoins(adapter, before, sg);
	return (addr & PAGE_MASK) + (pages << PAGE_SHIFT) + offset_of(adapter, sg_phys(sg));
}

static void unmap_list(struct adapter *adapter, struct scatterlist *list, int nents, u64 addr,
		       enum dma_data_direction dir, bool sync)
{
	struct scatterlist *sg, *before = NULL;
	int i;

	for_each_sg(list, sg, nents, i) {
		addr = place(adapter, addr, before, sg);
		unmap_range(adapter, addr, sg->length, dir, sync);
		before = sg;
	}
}

static int adapter_map_sg(struct device *dev, struct scatterlist *list, int nents, enum dma_data_direction dir,
			  unsigned long attrs)
{
	struct adapter *adapter = dev_get_drvdata(dev);
	struct scatterlist *sg, *before = NULL, *made = NULL;
	unsigned long pages = 0;
	int i, count = 0;
	u64 addr, first;

	for_each_sg(list, sg, nents, i)
		pages += pages_in(offset_of(adapter, sg_phys(sg)), sg->length) + 1;
	addr = first = (u64)reserve(adapter, pages) << PAGE_SHIFT;
	for_each_sg(list, sg, nents, i) {
		addr = place(adapter, addr, before, sg);
		if (map_range(adapter, addr, sg_phys(sg), sg->length, dir, attrs)) {
			unmap_list(adapter, list, i, first, dir, false);
			return -ENOMEM;
		}
		if (before && adjoins(adapter, before, sg) &&
		    sg_dma_len(made) + sg->length <= dma_get_max_seg_size(dev)) {
			sg_dma_len(made) += sg->length;
		} else {
			made = made ? sg_next(made) : list;
			sg_dma_address(made) = addr;
			sg_dma_len(made) = sg->length;
			count++;
		}
		before = sg;
	}
	return count;
}

static void adapter_unmap_sg(struct device *dev, struct scatterlist *list, int nents, enum dma_data_direction dir,
			     unsigned long attrs)
{
	unmap_list(dev_get_drvdata(dev), list, nents, sg_dma_address(list), dir, !(attrs & DMA_ATTR_SKIP_CPU_SYNC));
}

/* Bring the device up to date, or the memory. */
static void sync(struct adapter *adapter, u64 addr, size_t size, enum dma_data_direction dir, bool device)
{
	while (size) {
		size_t len = min_t(size_t, size, PAGE_SIZE - offset_in_page(addr));
		struct adapter_page *page = page_of(adapter, addr, len);
		size_t first;

		if (!page || page->dir != dir) {
			pr_err("synced %zu bytes at %#llx in direction %d, where they are not mapped so\n", len, addr, dir);
			return;
		}
		first = offset_in_page(addr) - page->offset;
		if (page->bounced && device && page->dir != DMA_FROM_DEVICE)
			memcpy(seen_of(page) + first, memory_of(page) + first, len);
		if (page->bounced && !device && page->dir != DMA_TO_DEVICE)
			memcpy(memory_of(page) + first, seen_of(page) + first, len);
		addr += len;
		size -= len;
	}
}

static void adapter_sync_for_cpu(struct device *dev, dma_addr_t addr, size_t size, enum dma_data_direction dir)
{
	sync(dev_get_drvdata(dev), addr, size, dir, false);
}

static void adapter_sync_for_device(struct device *dev, dma_addr_t addr, size_t size, enum dma_data_direction dir)
{
	sync(dev_get_drvdata(dev), addr, size, dir, true);
}

static void sync_list(struct adapter *adapter, struct scatterlist *list, int nents, enum dma_data_direction dir,
		      bool device)
{
	struct scatterlist *sg, *before = NULL;
	u64 addr = sg_dma_address(list);
	int i;

	for_each_sg(list, sg, nents, i) {
		addr = place(adapter, addr, before, sg);
		sync(adapter, addr, sg->length, dir, device);
		before = sg;
	}
}

static void adapter_sync_sg_for_cpu(struct device *dev, struct scatterlist *list, int nents,
				    enum dma_data_direction dir)
{
	sync_list(dev_get_drvdata(dev), list, nents, dir, false);
}

static void adapter_sync_sg_for_device(struct device *dev, struct scatterlist *list, int nents,
				       enum dma_data_direction dir)
{
	sync_list(dev_get_drvdata(dev), list, nents, dir, true);
}

const struct dma_map_ops adapter_dma_ops = {
	.map_phys = adapter_map_phys,
	.unmap_phys = adapter_unmap_phys,
	.map_sg = adapter_map_sg,
	.unmap_sg = adapter_unmap_sg,
	.sync_single_for_cpu = adapter_sync_for_cpu,
	.sync_single_for_device = adapter_sync_for_device,
	.sync_sg_for_cpu = adapter_sync_sg_for_cpu,
	.sync_sg_for_device = adapter_sync_sg_for_device,
	.max_mapping_size = adapter_max_mapping_size,
};

/**
 * adapter_get_page() - What the device sees, with a reference.
 * @adapter: of the device
 * @addr: a DMA address
 * @len: in bytes, all of which are in one page
 * @write: whether the device writes
 *
 * Return: a page, in which the bytes are where the address says; NULL if the device may not, as told in the log.
 */
struct page *adapter_get_page(struct adapter *adapter, u64 addr, size_t len, bool write)
{
	struct page *seen = NULL;
	struct adapter_page *page;
	unsigned long flags;

	xa_lock_irqsave(&adapter->pages, flags);
	page = page_of(adapter, addr, len);
	if (page && page->dir != (write ? DMA_TO_DEVICE : DMA_FROM_DEVICE)) {
		seen = page->seen;
		get_page(seen);
	}
	xa_unlock_irqrestore(&adapter->pages, flags);
	if (!seen)
		pr_err("%s %zu bytes at %#llx, which %s\n", write ? "wrote" : "read", len, addr,
		       page ? "are mapped in the other direction" : "are not mapped");
	return seen;
}

/**
 * adapter_copy() - Let the device read or write memory.
 * @adapter: of the device
 * @addr: a DMA address
 * @buf: what is written, or where to read to
 * @len: in bytes
 * @write: whether the device writes
 *
 * Return: 0, or -EFAULT, as told in the log.
 */
int adapter_copy(struct adapter *adapter, u64 addr, void *buf, size_t len, bool write)
{
	while (len) {
		size_t bytes = min_t(size_t, len, PAGE_SIZE - offset_in_page(addr));
		struct page *seen = adapter_get_page(adapter, addr, bytes, write);

		if (!seen)
			return -EFAULT;
		if (write)
			memcpy(page_address(seen) + offset_in_page(addr), buf, bytes);
		else
			memcpy(buf, page_address(seen) + offset_in_page(addr), bytes);
		put_page(seen);
		addr += bytes;
		buf += bytes;
		len -= bytes;
	}
	return 0;
}

/**
 * adapter_region_begin() - A region covers a page from now on.
 * @adapter: of the device
 * @addr: a DMA address in the page
 * @qpn: the queue pair that the region was registered through
 */
void adapter_region_begin(struct adapter *adapter, u64 addr, u32 qpn)
{
	struct adapter_page *page;
	unsigned long flags;

	xa_lock_irqsave(&adapter->pages, flags);
	page = xa_load(&adapter->pages, addr >> PAGE_SHIFT);
	if (page) {
		page->regions++;
		page->qpn = qpn;
	}
	xa_unlock_irqrestore(&adapter->pages, flags);
	if (!page)
		pr_err("registered %#llx, which is not mapped\n", addr);
}

/**
 * adapter_region_end() - A region does not cover a page any more.
 * @adapter: of the device
 * @addr: a DMA address in the page, which may have been unmapped, when its queue pair had failed before
 */
void adapter_region_end(struct adapter *adapter, u64 addr)
{
	struct adapter_page *page;
	unsigned long flags;

	xa_lock_irqsave(&adapter->pages, flags);
	page = xa_load(&adapter->pages, addr >> PAGE_SHIFT);
	if (page)
		page->regions--;
	xa_unlock_irqrestore(&adapter->pages, flags);
}

/**
 * adapter_forget() - The device is gone: let go of what is still mapped, and tell of it.
 * @adapter: of the device
 */
void adapter_forget(struct adapter *adapter)
{
	struct adapter_page *page;
	unsigned long number, left = 0;

	xa_for_each(&adapter->pages, number, page) {
		left++;
		page_destroy(page);
	}
	if (left)
		pr_err("the device is gone, and %lu pages are still mapped\n", left);
	xa_destroy(&adapter->pages);
}
