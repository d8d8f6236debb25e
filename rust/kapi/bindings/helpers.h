/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Inline functions and macros of the kernel, made callable from Rust. In
 * `kapi::bindings` they appear without the prefix. What the `kernel` crate
 * already exports a helper for (spin_lock(), set_bit(), kmap_local_page(), ...)
 * is not repeated here.
 */
#ifndef RPCRDMA_RS_HELPERS_H
#define RPCRDMA_RS_HELPERS_H

#include <linux/scatterlist.h>
#include <linux/seq_file.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/xprt.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/* Verbs */
struct ib_pd *rpcrdma_rs_ib_alloc_pd(struct ib_device *device,
				     unsigned int flags);
void rpcrdma_rs_ib_dealloc_pd(struct ib_pd *pd);
struct ib_cq *rpcrdma_rs_ib_alloc_cq_any(struct ib_device *device,
					 void *private, int nr_cqe,
					 enum ib_poll_context poll_ctx);
int rpcrdma_rs_ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad_wr);
int rpcrdma_rs_ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			    const struct ib_recv_wr **bad_wr);
int rpcrdma_rs_ib_dereg_mr(struct ib_mr *mr);
void rpcrdma_rs_ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey);
u32 rpcrdma_rs_ib_inc_rkey(u32 rkey);
bool rpcrdma_rs_rdma_protocol_iwarp(const struct ib_device *device,
				    u32 port_num);
bool rpcrdma_rs_rdma_ib_or_roce(const struct ib_device *device, u32 port_num);

/* DMA */
/* Bytes that may be mapped as one. */
size_t rpcrdma_rs_ib_dma_max_piece(struct ib_device *device);
int rpcrdma_rs_ib_dma_mapping_error(struct ib_device *device, u64 addr);
u64 rpcrdma_rs_ib_dma_map_single(struct ib_device *device, void *cpu_addr,
				 size_t size, enum dma_data_direction dir);
void rpcrdma_rs_ib_dma_unmap_single(struct ib_device *device, u64 addr,
				    size_t size, enum dma_data_direction dir);
int rpcrdma_rs_ib_dma_map_sg(struct ib_device *device, struct scatterlist *sg,
			     int nents, enum dma_data_direction dir);
void rpcrdma_rs_ib_dma_unmap_sg(struct ib_device *device,
				struct scatterlist *sg, int nents,
				enum dma_data_direction dir);
void rpcrdma_rs_ib_dma_sync_single_for_cpu(struct ib_device *device, u64 addr,
					   size_t size,
					   enum dma_data_direction dir);
void rpcrdma_rs_ib_dma_sync_single_for_device(struct ib_device *device,
					      u64 addr, size_t size,
					      enum dma_data_direction dir);

/* Connection manager */
struct rdma_cm_id *rpcrdma_rs_rdma_create_id(struct net *net,
					     rdma_cm_event_handler handler,
					     void *context,
					     enum rdma_ucm_port_space ps,
					     enum ib_qp_type qp_type);

/* sunrpc, client side */
void rpcrdma_rs_xprt_set_connected(struct rpc_xprt *xprt);
void rpcrdma_rs_xprt_clear_connecting(struct rpc_xprt *xprt);
void rpcrdma_rs_xprt_set_bound(struct rpc_xprt *xprt);
void rpcrdma_rs_bc_enqueue(struct rpc_rqst *req, struct svc_serv *service);
bool rpcrdma_rs_xdr_buf_room_is_guess(const struct xdr_buf *buf);
unsigned short rpcrdma_rs_rpc_get_port(const struct sockaddr *sap);
void rpcrdma_rs_rpc_set_port(struct sockaddr *sap, unsigned short port);

/* sunrpc, server side */
void rpcrdma_rs_svc_xprt_set_local(struct svc_xprt *xprt,
				   const struct sockaddr *sa);
void rpcrdma_rs_svc_xprt_set_client(struct svc_xprt *xprt,
				    const struct sockaddr *sa);
void rpcrdma_rs_svc_xprt_set_listener(struct svc_xprt *xprt);
struct net *rpcrdma_rs_get_net(struct net *net);
void rpcrdma_rs_put_net(struct net *net);

/* Memory */
void *rpcrdma_rs_kmalloc(size_t size, gfp_t flags);
void *rpcrdma_rs_kmalloc_near(struct ib_device *device, size_t size,
			      gfp_t flags);
int rpcrdma_rs_ibdev_to_node(struct ib_device *device);
char *rpcrdma_rs_kstrdup(const char *s, gfp_t flags);
unsigned int rpcrdma_rs_memalloc_save(bool reserves);
void rpcrdma_rs_memalloc_restore(unsigned int flags);
struct page *rpcrdma_rs_alloc_page(gfp_t flags);
void *rpcrdma_rs_alloc_pages_exact(size_t size, gfp_t flags);
void rpcrdma_rs_get_page(struct page *page);
void rpcrdma_rs_put_page(struct page *page);
int rpcrdma_rs_page_count(const struct page *page);
void rpcrdma_rs_release_pages(struct page **pages, int nr);
void *rpcrdma_rs_page_address(const struct page *page);
struct page *rpcrdma_rs_virt_to_page(const void *addr);

/* Lists */
void rpcrdma_rs_list_move(struct list_head *entry, struct list_head *head);

/* Waiting and time */
unsigned long rpcrdma_rs_jiffies(void);

/* Module */
bool rpcrdma_rs_try_module_get(void);
void rpcrdma_rs___module_get(void);
void rpcrdma_rs_module_put(void);
bool rpcrdma_rs_module_is_used(void);
void rpcrdma_rs_synchronize_rcu_tasks(void);

/* Swapping */
int rpcrdma_rs_xprt_begin_swap(struct rpc_xprt *xprt);
void rpcrdma_rs_xprt_end_swap(struct rpc_xprt *xprt);
bool rpcrdma_rs_xprt_is_swapper(const struct rpc_xprt *xprt);

/* Memory */
unsigned long rpcrdma_rs_totalram_pages(void);
void rpcrdma_rs_kfree_after_readers(const void *object);

/* Text */
int rpcrdma_rs_format_addr(char *buf, size_t size, const struct sockaddr *sap);
void rpcrdma_rs_warn(void);
bool rpcrdma_rs_may_warn(void);
bool rpcrdma_rs_may_inform(void);
bool rpcrdma_rs_debugs_server(void);

void rpcrdma_rs_say_version(void);

/* debugfs, see listing.c. */
void rpcrdma_rs_show_connections(void (*all)(struct seq_file *seq));
void rpcrdma_rs_hide_connections(void);

/* Tunables and counters, see sysctl.c. */
int rpcrdma_rs_sysctl_register(void);
void rpcrdma_rs_sysctl_unregister(void);

enum rpcrdma_rs_tunable {
	/* Of the client. */
	RPCRDMA_RS_SLOT_TABLE_ENTRIES,
	RPCRDMA_RS_MAX_INLINE_READ,
	RPCRDMA_RS_MAX_INLINE_WRITE,
	RPCRDMA_RS_WRITE_CHUNK_PADDING,
	RPCRDMA_RS_KEEPALIVE_TIME,
	RPCRDMA_RS_REGION_PAGES,
	RPCRDMA_RS_RELIABLE_REPLY,
	RPCRDMA_RS_MAX_VERSION,
	/* Of the server. */
	RPCRDMA_RS_SVC_MAX_REQUESTS,
	RPCRDMA_RS_SVC_MAX_REQ_SIZE,
	RPCRDMA_RS_SVC_RELIABLE_REPLY,
	RPCRDMA_RS_SVC_RELIABLE_REPLY_BYTES,
	RPCRDMA_RS_SVC_RELIABLE_REPLY_TIMEOUT,
	RPCRDMA_RS_SVC_MAX_VERSION,
};

unsigned int rpcrdma_rs_tunable(enum rpcrdma_rs_tunable which);

enum rpcrdma_rs_counter {
	/* Of the client. */
	RPCRDMA_RS_PULLS,
	RPCRDMA_RS_PULL_BYTES,
	RPCRDMA_RS_DONES,
	/* Of the server. */
	RPCRDMA_RS_SVC_READ,
	RPCRDMA_RS_SVC_RECV,
	RPCRDMA_RS_SVC_WRITE,
	RPCRDMA_RS_SVC_SQ_STARVE,
	RPCRDMA_RS_SVC_PULLS,
	RPCRDMA_RS_SVC_PULL_BYTES,
	RPCRDMA_RS_SVC_PULLED,
	RPCRDMA_RS_SVC_PULLS_OVERDUE,
	RPCRDMA_RS_SVC_PULLS_REFUSED,
	RPCRDMA_RS_COUNTERS,
};

void rpcrdma_rs_count(enum rpcrdma_rs_counter which, unsigned long n);

#endif /* RPCRDMA_RS_HELPERS_H */
