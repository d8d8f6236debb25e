/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the requester's memory regions. Part of trace.h, which
 * includes it again and again, behind trace_requester.h, and nobody else does.
 */

TRACE_EVENT(xprtrdma_createmrs,
	TP_PROTO(const struct sockaddr *sap, u32 count),
	TP_ARGS(sap, count),
	TP_STRUCT__entry(
		SERVER_FIELDS
		__field(unsigned int, count)
	),
	TP_fast_assign(
		SERVER_ASSIGN;
		__entry->count = count;
	),
	TP_printk(SERVER_FORMAT " created %u MRs", SERVER_VALUES, __entry->count)
);

TRACE_EVENT(xprtrdma_nomrs_err,
	TP_PROTO(const struct rpcrdma_rs_task *task, const struct sockaddr *sap),
	TP_ARGS(task, sap),
	TP_STRUCT__entry(
		TASK_FIELDS
		SERVER_FIELDS
	),
	TP_fast_assign(
		TASK_ASSIGN;
		SERVER_ASSIGN;
	),
	TP_printk(TASK_FORMAT " " SERVER_FORMAT, TASK_VALUES, SERVER_VALUES)
);

TRACE_EVENT(xprtrdma_frwr_alloc,
	TP_PROTO(u32 mr_id, int rc),
	TP_ARGS(mr_id, rc),
	TP_STRUCT__entry(
		__field(u32, mr_id)
		__field(int, rc)
	),
	TP_fast_assign(
		__entry->mr_id = mr_id;
		__entry->rc = rc;
	),
	TP_printk("mr.id=%u: rc=%d", __entry->mr_id, __entry->rc)
);

TRACE_EVENT(xprtrdma_frwr_dereg,
	TP_PROTO(const struct rpcrdma_rs_region *region, int rc),
	TP_ARGS(region, rc),
	TP_STRUCT__entry(
		REGION_FIELDS
		__field(int, rc)
	),
	TP_fast_assign(
		REGION_ASSIGN;
		__entry->rc = rc;
	),
	TP_printk(REGION_FORMAT ": rc=%d", REGION_VALUES, __entry->rc)
);

TRACE_EVENT(xprtrdma_frwr_sgerr,
	TP_PROTO(u32 mr_id, u64 addr, int dir, u32 nents),
	TP_ARGS(mr_id, addr, dir, nents),
	TP_STRUCT__entry(
		__field(u32, mr_id)
		__field(u64, addr)
		__field(u32, dir)
		__field(int, nents)
	),
	TP_fast_assign(
		__entry->mr_id = mr_id;
		__entry->addr = addr;
		__entry->dir = dir;
		__entry->nents = nents;
	),
	TP_printk("mr.id=%u DMA addr=0x%llx (%s) sg_nents=%d",
		  __entry->mr_id, __entry->addr, show_dma_direction(__entry->dir),
		  __entry->nents)
);

TRACE_EVENT(xprtrdma_frwr_maperr,
	TP_PROTO(u32 mr_id, u64 addr, int dir, int num_mapped, u32 nents),
	TP_ARGS(mr_id, addr, dir, num_mapped, nents),
	TP_STRUCT__entry(
		__field(u32, mr_id)
		__field(u64, addr)
		__field(u32, dir)
		__field(int, num_mapped)
		__field(int, nents)
	),
	TP_fast_assign(
		__entry->mr_id = mr_id;
		__entry->addr = addr;
		__entry->dir = dir;
		__entry->num_mapped = num_mapped;
		__entry->nents = nents;
	),
	TP_printk("mr.id=%u DMA addr=0x%llx (%s) nents=%d of %d",
		  __entry->mr_id, __entry->addr, show_dma_direction(__entry->dir),
		  __entry->num_mapped, __entry->nents)
);

TRACE_EVENT(xprtrdma_dma_maperr,
	TP_PROTO(u64 addr),
	TP_ARGS(addr),
	TP_STRUCT__entry(__field(u64, addr)),
	TP_fast_assign(__entry->addr = addr;),
	TP_printk("dma addr=0x%llx", __entry->addr)
);

DECLARE_EVENT_CLASS(xprtrdma_region_class,
	TP_PROTO(const struct rpcrdma_rs_task *task,
		 const struct rpcrdma_rs_region *region),
	TP_ARGS(task, region),
	TP_STRUCT__entry(
		TASK_FIELDS
		REGION_FIELDS
	),
	TP_fast_assign(
		TASK_ASSIGN;
		REGION_ASSIGN;
	),
	TP_printk(TASK_FORMAT " " REGION_FORMAT, TASK_VALUES, REGION_VALUES)
);

#define REGION_EVENT(name)					\
	DEFINE_EVENT(xprtrdma_region_class, name,		\
		TP_PROTO(const struct rpcrdma_rs_task *task,	\
			 const struct rpcrdma_rs_region *region), \
		TP_ARGS(task, region))

REGION_EVENT(xprtrdma_mr_map);
REGION_EVENT(xprtrdma_mr_fastreg);
REGION_EVENT(xprtrdma_mr_localinv);
REGION_EVENT(xprtrdma_mr_reminv);

/* The RPC may have ended. */
TRACE_EVENT(xprtrdma_mr_unmap,
	TP_PROTO(const struct rpcrdma_rs_region *region),
	TP_ARGS(region),
	TP_STRUCT__entry(REGION_FIELDS),
	TP_fast_assign(REGION_ASSIGN;),
	TP_printk(REGION_FORMAT, REGION_VALUES)
);

TRACE_EVENT(xprtrdma_mrs_zap,
	TP_PROTO(const struct rpcrdma_rs_task *task),
	TP_ARGS(task),
	TP_STRUCT__entry(TASK_FIELDS),
	TP_fast_assign(TASK_ASSIGN;),
	TP_printk(TASK_FORMAT, TASK_VALUES)
);

DECLARE_EVENT_CLASS(xprtrdma_region_completion_class,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 status, u32 vendor_err),
	TP_ARGS(cid, status, vendor_err),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(unsigned long, status)
		__field(unsigned int, vendor_err)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->status = status;
		__entry->vendor_err = vendor_err;
	),
	TP_printk("cq.id=%u mr.id=%d status=%s (%lu/0x%x)", CID_VALUES,
		  rdma_show_wc_status(__entry->status), __entry->status,
		  __entry->vendor_err)
);

#define REGION_COMPLETION_EVENT(name)				\
	DEFINE_EVENT(xprtrdma_region_completion_class, name,	\
		TP_PROTO(const struct rpc_rdma_cid *cid,	\
			 u32 status, u32 vendor_err),		\
		TP_ARGS(cid, status, vendor_err))

REGION_COMPLETION_EVENT(xprtrdma_wc_fastreg);
REGION_COMPLETION_EVENT(xprtrdma_wc_li);
REGION_COMPLETION_EVENT(xprtrdma_wc_li_wake);
REGION_COMPLETION_EVENT(xprtrdma_wc_li_done);
