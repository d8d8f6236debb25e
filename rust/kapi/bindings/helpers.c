// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Inline functions and macros of the kernel, made callable from Rust: each
 * function does what its name without the prefix does. See helpers.h.
 */
#include <linux/bitops.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/debug.h>

#include "helpers.h"

/* Verbs */

struct ib_pd *rpcrdma_rs_ib_alloc_pd(struct ib_device *device,
				     unsigned int flags)
{
	return ib_alloc_pd(device, flags);
}

void rpcrdma_rs_ib_dealloc_pd(struct ib_pd *pd)
{
	ib_dealloc_pd(pd);
}

struct ib_cq *rpcrdma_rs_ib_alloc_cq_any(struct ib_device *device,
					 void *private, int nr_cqe,
					 enum ib_poll_context poll_ctx)
{
	return ib_alloc_cq_any(device, private, nr_cqe, poll_ctx);
}

/*
 * These want to be told of the request that failed. The place that the inline
 * functions have for those who do not care would cost a checked stack frame.
 */
int rpcrdma_rs_ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad_wr)
{
	return qp->device->ops.post_send(qp, wr, bad_wr);
}

int rpcrdma_rs_ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			    const struct ib_recv_wr **bad_wr)
{
	return qp->device->ops.post_recv(qp, wr, bad_wr);
}

int rpcrdma_rs_ib_dereg_mr(struct ib_mr *mr)
{
	return ib_dereg_mr(mr);
}

void rpcrdma_rs_ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey)
{
	ib_update_fast_reg_key(mr, newkey);
}

u32 rpcrdma_rs_ib_inc_rkey(u32 rkey)
{
	return ib_inc_rkey(rkey);
}

bool rpcrdma_rs_rdma_protocol_iwarp(const struct ib_device *device,
				    u32 port_num)
{
	return rdma_protocol_iwarp(device, port_num);
}

bool rpcrdma_rs_rdma_ib_or_roce(const struct ib_device *device, u32 port_num)
{
	return rdma_ib_or_roce(device, port_num);
}

/* DMA */

size_t rpcrdma_rs_ib_dma_max_piece(struct ib_device *device)
{
	/*
	 * Pages stay single where each may have a tag of its own and the device
	 * goes by addresses, and where they may be bounced: a long piece finds
	 * room more rarely, and Xen bounces just what is joined.
	 */
	if (ib_uses_virt_dma(device) ?
	    IS_ENABLED(CONFIG_KASAN_SW_TAGS) || IS_ENABLED(CONFIG_KASAN_HW_TAGS) :
	    dma_max_mapping_size(device->dma_device) != SIZE_MAX)
		return PAGE_SIZE;

	return ib_dma_max_seg_size(device);
}

int rpcrdma_rs_ib_dma_mapping_error(struct ib_device *device, u64 addr)
{
	return ib_dma_mapping_error(device, addr);
}

u64 rpcrdma_rs_ib_dma_map_single(struct ib_device *device, void *cpu_addr,
				 size_t size, enum dma_data_direction dir)
{
	return ib_dma_map_single(device, cpu_addr, size, dir);
}

void rpcrdma_rs_ib_dma_unmap_single(struct ib_device *device, u64 addr,
				    size_t size, enum dma_data_direction dir)
{
	ib_dma_unmap_single(device, addr, size, dir);
}

int rpcrdma_rs_ib_dma_map_sg(struct ib_device *device, struct scatterlist *sg,
			     int nents, enum dma_data_direction dir)
{
	return ib_dma_map_sg(device, sg, nents, dir);
}

void rpcrdma_rs_ib_dma_unmap_sg(struct ib_device *device,
				struct scatterlist *sg, int nents,
				enum dma_data_direction dir)
{
	ib_dma_unmap_sg(device, sg, nents, dir);
}

void rpcrdma_rs_ib_dma_sync_single_for_cpu(struct ib_device *device, u64 addr,
					   size_t size,
					   enum dma_data_direction dir)
{
	ib_dma_sync_single_for_cpu(device, addr, size, dir);
}

void rpcrdma_rs_ib_dma_sync_single_for_device(struct ib_device *device,
					      u64 addr, size_t size,
					      enum dma_data_direction dir)
{
	ib_dma_sync_single_for_device(device, addr, size, dir);
}

/* Connection manager */

struct rdma_cm_id *rpcrdma_rs_rdma_create_id(struct net *net,
					     rdma_cm_event_handler handler,
					     void *context,
					     enum rdma_ucm_port_space ps,
					     enum ib_qp_type qp_type)
{
	return rdma_create_id(net, handler, context, ps, qp_type);
}

/* sunrpc, client side */

void rpcrdma_rs_xprt_set_connected(struct rpc_xprt *xprt)
{
	xprt_set_connected(xprt);
}

void rpcrdma_rs_xprt_clear_connecting(struct rpc_xprt *xprt)
{
	xprt_clear_connecting(xprt);
}

void rpcrdma_rs_xprt_set_bound(struct rpc_xprt *xprt)
{
	xprt_set_bound(xprt);
}

void rpcrdma_rs_bc_enqueue(struct rpc_rqst *req, struct svc_serv *service)
{
	lwq_enqueue(&req->rq_bc_list, &service->sv_cb_list);
	svc_pool_wake_idle_thread(&service->sv_pools[0]);
}

bool rpcrdma_rs_xdr_buf_room_is_guess(const struct xdr_buf *buf)
{
#ifdef XDRBUF_GUESSED_SIZE
	return buf->flags & XDRBUF_GUESSED_SIZE;
#else
	/* Without Documentation/patches whoever guesses does not say so. */
	return false;
#endif
}

unsigned short rpcrdma_rs_rpc_get_port(const struct sockaddr *sap)
{
	return rpc_get_port(sap);
}

void rpcrdma_rs_rpc_set_port(struct sockaddr *sap, unsigned short port)
{
	rpc_set_port(sap, port);
}

/* sunrpc, server side */

/* Addresses are of IPv4 or IPv6, here and below: others have no known length. */
void rpcrdma_rs_svc_xprt_set_local(struct svc_xprt *xprt,
				   const struct sockaddr *sa)
{
	svc_xprt_set_local(xprt, sa, svc_addr_len(sa));
}

/*
 * A client that connects again has another port, and is the same to the
 * duplicate request cache, and to who filters trace events by its name.
 */
void rpcrdma_rs_svc_xprt_set_client(struct svc_xprt *xprt,
				    const struct sockaddr *sa)
{
	svc_xprt_set_remote(xprt, sa, svc_addr_len(sa));
	rpc_set_port((struct sockaddr *)&xprt->xpt_remote, 0);
	scnprintf(xprt->xpt_remotebuf, sizeof(xprt->xpt_remotebuf), "%pISc",
		  sa);
}

/* Trace events name the peer of any listener so. */
void rpcrdma_rs_svc_xprt_set_listener(struct svc_xprt *xprt)
{
	strscpy(xprt->xpt_remotebuf, "listener");
	set_bit(XPT_LISTENER, &xprt->xpt_flags);
}

struct net *rpcrdma_rs_get_net(struct net *net)
{
	return get_net(net);
}

void rpcrdma_rs_put_net(struct net *net)
{
	put_net(net);
}

/* Memory */

void *rpcrdma_rs_kmalloc(size_t size, gfp_t flags)
{
	return kmalloc(size, flags);
}

void *rpcrdma_rs_kmalloc_near(struct ib_device *device, size_t size,
			      gfp_t flags)
{
	return kmalloc_node(size, flags, ibdev_to_node(device));
}

int rpcrdma_rs_ibdev_to_node(struct ib_device *device)
{
	return ibdev_to_node(device);
}

char *rpcrdma_rs_kstrdup(const char *s, gfp_t flags)
{
	return kstrdup(s, flags);
}

unsigned int rpcrdma_rs_memalloc_save(bool reserves)
{
	return memalloc_flags_save(PF_MEMALLOC_NOFS |
				   (reserves ? PF_MEMALLOC : 0));
}

void rpcrdma_rs_memalloc_restore(unsigned int flags)
{
	memalloc_flags_restore(flags);
}

struct page *rpcrdma_rs_alloc_page(gfp_t flags)
{
	return alloc_page(flags);
}

void *rpcrdma_rs_alloc_pages_exact(size_t size, gfp_t flags)
{
	return alloc_pages_exact(size, flags);
}

void rpcrdma_rs_get_page(struct page *page)
{
	get_page(page);
}

void rpcrdma_rs_put_page(struct page *page)
{
	put_page(page);
}

int rpcrdma_rs_page_count(const struct page *page)
{
	return page_count(page);
}

void rpcrdma_rs_release_pages(struct page **pages, int nr)
{
	release_pages(pages, nr);
}

void *rpcrdma_rs_page_address(const struct page *page)
{
	return page_address(page);
}

struct page *rpcrdma_rs_virt_to_page(const void *addr)
{
	return virt_to_page(addr);
}

/* Lists */

void rpcrdma_rs_list_move(struct list_head *entry, struct list_head *head)
{
	list_move(entry, head);
}

/* Waiting and time */

unsigned long rpcrdma_rs_jiffies(void)
{
	return jiffies;
}

/* Module */

bool rpcrdma_rs_try_module_get(void)
{
	return try_module_get(THIS_MODULE);
}

void rpcrdma_rs___module_get(void)
{
	__module_get(THIS_MODULE);
}

void rpcrdma_rs_module_put(void)
{
	module_put(THIS_MODULE);
}

/* Whether anybody has a reference but who loads it. */
bool rpcrdma_rs_module_is_used(void)
{
#if defined(MODULE) && defined(CONFIG_MODULE_UNLOAD)
	bool loading = THIS_MODULE->state == MODULE_STATE_COMING;

	return module_refcount(THIS_MODULE) > loading;
#else
	return false;
#endif
}

void rpcrdma_rs_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

/* Swapping */

int rpcrdma_rs_xprt_begin_swap(struct rpc_xprt *xprt)
{
	atomic_inc(&xprt->swapper);
	return 0;
}

void rpcrdma_rs_xprt_end_swap(struct rpc_xprt *xprt)
{
	/* Nobody told a transport that was added since of the beginning. */
	atomic_dec_if_positive(&xprt->swapper);
}

bool rpcrdma_rs_xprt_is_swapper(const struct rpc_xprt *xprt)
{
	return atomic_read(&xprt->swapper) > 0;
}

/* Memory */

unsigned long rpcrdma_rs_totalram_pages(void)
{
	return totalram_pages();
}

/* Frees what readers may look at under RCU. Sleeps if there is no memory to note it. */
void rpcrdma_rs_kfree_after_readers(const void *object)
{
	kvfree_rcu_mightsleep(object);
}

/* Text */

/* Writes "address:port", as "[address]:port" for IPv6. */
int rpcrdma_rs_format_addr(char *buf, size_t size, const struct sockaddr *sap)
{
	return scnprintf(buf, size, "%pISpc", sap);
}

void rpcrdma_rs_warn(void)
{
	WARN_ON(1);
}

/*
 * Whether the rate of log lines of this level allows one more. The kernel says
 * how many it did not, in our name.
 */
bool rpcrdma_rs_may_warn(void)
{
	static DEFINE_RATELIMIT_STATE(limit, DEFAULT_RATELIMIT_INTERVAL,
				      DEFAULT_RATELIMIT_BURST);

	return ___ratelimit(&limit, "rpcrdma");
}

bool rpcrdma_rs_may_inform(void)
{
	static DEFINE_RATELIMIT_STATE(limit, DEFAULT_RATELIMIT_INTERVAL,
				      DEFAULT_RATELIMIT_BURST);

	return ___ratelimit(&limit, "rpcrdma");
}

/* Whether rpcdebug(8) has been asked for what server transports do. */
bool rpcrdma_rs_debugs_server(void)
{
	return IS_ENABLED(CONFIG_SUNRPC_DEBUG) && (rpc_debug & RPCDBG_SVCXPRT);
}
