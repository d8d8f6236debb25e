/* SPDX-License-Identifier: GPL-2.0 */
/* A software RDMA device with the manners of a real adapter. */

#ifndef ADAPTER_H
#define ADAPTER_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

struct dma_map_ops;
struct platform_device;

/* What an adapter may fail at. */
enum adapter_call {
	ADAPTER_ALLOC_MR,
	ADAPTER_CREATE_QP,
	ADAPTER_MAP_MR_SG,
	ADAPTER_POST_SEND,
};

/* How late completions are, in milliseconds. */
struct adapter_delay {
	unsigned int sends;
	unsigned int receives;
};

/* What is particular to an adapter. Of a limit that is 0 the adapter has as much as the device below it. */
struct adapter_profile {
	const char *name;
	int max_qp_wr;
	int max_send_sge;
	int max_recv_sge;
	int max_sge_rd;
	int max_cqe;
	int max_qp_rd_atom;
	int max_qp_init_rd_atom;
	unsigned int max_region_pages;
	int comp_vectors;
	/* Of one element of a list that is mapped, in bytes. */
	unsigned int max_segment;
	/* Bounce buffers begin where they like, and elements do not join. */
	bool loses_offsets;
	/* Regions may have elements of any length. */
	bool gaps;
	/* Covering memory with a region takes a while, and may sleep. */
	bool map_sleeps;
	/* It has registration by work request, but no local invalidation. */
	bool refuses_local_inv;
	/* Of the elements that a region is asked to cover, it takes so many. */
	int takes;
	/* Of the requests of a queue, and the pages of a region, it grants fewer than it says. */
	unsigned int grants_sends;
	unsigned int grants_receives;
	unsigned int grants_region_pages;
	/* Completions come late and all at once: always, and those of requests that are flushed. */
	struct adapter_delay late;
	struct adapter_delay flushes;
	/* Unsignaled requests that are flushed have no completion. */
	bool drops_unsignaled;
};

/* What the verbs of the device below are made into. */
struct adapter {
	const struct adapter_profile *profile;
	const struct ib_device_ops *below;
	struct platform_device *dma;
	/* The mapped pages, by their number in the addresses of the device. */
	struct xarray pages;
	atomic64_t next;
	/* The completion queues that are late, by their addresses. */
	struct xarray queues;
	/* The identifiers of unsignaled requests, where they are dropped. */
	struct xarray unsignaled;
	/* The kernel's queue pairs that hear of events, by their numbers. */
	struct xarray queue_pairs;
	struct list_head all;
	/* Whether requests can still go through a queue pair; in any context. */
	bool (*is_ready)(struct ib_device *device, u32 qpn);
	struct ib_device *device;
};

/* What the drivers call. */
struct adapter *adapter_create(struct ib_device *device, const struct ib_device_ops *below,
			       bool (*is_ready)(struct ib_device *device, u32 qpn));
void adapter_destroy(struct adapter *adapter);
struct device *adapter_dma_device(struct adapter *adapter);

struct page *adapter_get_page(struct adapter *adapter, u64 addr, size_t len, bool write);
int adapter_copy(struct adapter *adapter, u64 addr, void *buf, size_t len, bool write);
void adapter_region_begin(struct adapter *adapter, u64 addr, u32 qpn);
void adapter_region_end(struct adapter *adapter, u64 addr);

/* What the parts of an adapter know of each other. */
extern const struct dma_map_ops adapter_dma_ops;
extern const struct ib_device_ops adapter_device_ops;
bool adapter_fails(enum adapter_call call);
void adapter_forget(struct adapter *adapter);
void adapter_hear(struct adapter *adapter);
void adapter_unhear(struct adapter *adapter);
const struct adapter_profile *adapter_profile(const char *name);
bool adapter_exceeds(const char *what, u32 wanted, u32 most);

/* Of completion queues. */
int adapter_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *init, struct uverbs_attr_bundle *attrs);
int adapter_pre_destroy_cq(struct ib_cq *cq);
int adapter_destroy_cq(struct ib_cq *cq, struct ib_udata *udata);
int adapter_poll_cq(struct ib_cq *cq, int entries, struct ib_wc *wc);
int adapter_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);
void adapter_complete_on(struct adapter *adapter, struct ib_cq *cq, u32 qpn, bool sends);
void adapter_note_unsignaled(struct adapter *adapter, const struct ib_send_wr *wr);
struct adapter *adapter_of(struct ib_device *device);

#endif /* ADAPTER_H */
