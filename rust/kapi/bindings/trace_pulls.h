/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Trace events of Replies that the client pulls, see
 * Documentation/reliable-reply.rst; the C module has none of them. Part of
 * trace.h, which includes it again and again, behind those of the two ends, and
 * nobody else does.
 */

/* The numbers are those of client::trace. */
#define show_expected(x)					\
	__print_symbolic(x,					\
			 { 0, "unknown" },			\
			 { 1, "short" },			\
			 { 2, "long" },				\
			 { 3, "refused" })

TRACE_EVENT(xprtrdma_reply_mechanism,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid, u32 prog,
		 u32 vers, u32 proc, u32 room, u32 expected, bool offered),
	TP_ARGS(task, xid, prog, vers, proc, room, expected, offered),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(u32, xid)
		__field(u32, prog)
		__field(u32, vers)
		__field(u32, proc)
		__field(unsigned int, room)
		__field(unsigned int, expected)
		__field(bool, offered)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->xid = xid;
		__entry->prog = prog;
		__entry->vers = vers;
		__entry->proc = proc;
		__entry->room = room;
		__entry->expected = expected;
		__entry->offered = offered;
	),
	TP_printk(TASK_FORMAT " xid=0x%08x prog=%u vers=%u proc=%u room=%u %s: %s",
		  TASK_VALUES, __entry->xid, __entry->prog, __entry->vers,
		  __entry->proc, __entry->room,
		  show_expected(__entry->expected),
		  __entry->offered ? "reply chunk" : "pull")
);

DECLARE_EVENT_CLASS(xprtrdma_pull_class,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid, u32 length,
		 int ret),
	TP_ARGS(task, xid, length, ret),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(u32, xid)
		__field(unsigned int, length)
		__field(int, ret)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->xid = xid;
		__entry->length = length;
		__entry->ret = ret;
	),
	TP_printk(TASK_FORMAT " xid=0x%08x length=%u ret=%d", TASK_VALUES,
		  __entry->xid, __entry->length, __entry->ret)
);

#define PULL_EVENT(name)					\
	DEFINE_EVENT(xprtrdma_pull_class, name,			\
		TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid,	\
			 u32 length, int ret),			\
		TP_ARGS(task, xid, length, ret))

PULL_EVENT(xprtrdma_pull);
PULL_EVENT(xprtrdma_pulled);

TRACE_EVENT(xprtrdma_done,
	TP_PROTO(u32 xid, u32 handle, int ret),
	TP_ARGS(xid, handle, ret),
	TP_STRUCT__entry(
		__field(u32, xid)
		__field(u32, handle)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->xid = xid;
		__entry->handle = handle;
		__entry->ret = ret;
	),
	TP_printk("xid=0x%08x handle=0x%08x ret=%d", __entry->xid,
		  __entry->handle, __entry->ret)
);

TRACE_EVENT(svcrdma_provide,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 xid, u32 segments,
		 u32 length, int ret),
	TP_ARGS(cid, xid, segments, length, ret),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(u32, xid)
		__field(unsigned int, segments)
		__field(unsigned int, length)
		__field(int, ret)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->xid = xid;
		__entry->segments = segments;
		__entry->length = length;
		__entry->ret = ret;
	),
	TP_printk(CID_FORMAT " xid=0x%08x segments=%u length=%u ret=%d",
		  CID_VALUES, __entry->xid, __entry->segments, __entry->length,
		  __entry->ret)
);

TRACE_EVENT(svcrdma_pulled,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 xid, int ret),
	TP_ARGS(cid, xid, ret),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(u32, xid)
		__field(int, ret)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->xid = xid;
		__entry->ret = ret;
	),
	TP_printk(CID_FORMAT " xid=0x%08x ret=%d", CID_VALUES, __entry->xid,
		  __entry->ret)
);

DEFINE_EVENT(svcrdma_xid_class, svcrdma_pull_overdue,
	TP_PROTO(u32 xid), TP_ARGS(xid));
