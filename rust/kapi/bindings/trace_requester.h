/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the requester. Part of trace.h, which includes it again and
 * again, and nobody else does.
 */

/* The task of an RPC: none has number 0 and client -1. */
#define TASK_FIELDS						\
	__field(unsigned int, task_id)				\
	__field(unsigned int, client_id)
#define TASK_ASSIGN						\
	__entry->task_id = task->task;				\
	__entry->client_id = task->client
#define TASK_FORMAT	SUNRPC_TRACE_TASK_SPECIFIER
#define TASK_VALUES	__entry->task_id, __entry->client_id

/* Address and port of the server, each as text. */
#define SERVER_FIELDS						\
	__dynamic_array(char, addr, INET6_ADDRSTRLEN + 12)	\
	__dynamic_array(char, port, sizeof("65535"))
#define SERVER_ASSIGN						\
	__get_str(addr)[0] = '\0';				\
	rpc_ntop(sap, __get_str(addr), __get_dynamic_array_len(addr)); \
	snprintf(__get_str(port), __get_dynamic_array_len(port), "%u", \
		 rpc_get_port(sap))
#define SERVER_FORMAT	"peer=[%s]:%s"
#define SERVER_VALUES	__get_str(addr), __get_str(port)

/* What a memory region covers, and which way data go. */
#define REGION_FIELDS						\
	__field(u32, mr_id)					\
	__field(int, nents)					\
	SEGMENT_FIELDS						\
	__field(u32, dir)
#define COVERED_ASSIGN						\
	__entry->nents = region->elements;			\
	__entry->handle = region->handle;			\
	__entry->length = region->length;			\
	__entry->offset = region->offset
#define REGION_ASSIGN						\
	__entry->mr_id = region->id;				\
	COVERED_ASSIGN;						\
	__entry->dir = region->direction
#define REGION_FORMAT	"mr.id=%u nents=%d" SEGMENT_FORMAT " (%s)"
#define REGION_VALUES						\
	__entry->mr_id, __entry->nents, SEGMENT_VALUES,		\
	show_dma_direction(__entry->dir)

TRACE_DEFINE_ENUM(DMA_BIDIRECTIONAL);
TRACE_DEFINE_ENUM(DMA_TO_DEVICE);
TRACE_DEFINE_ENUM(DMA_FROM_DEVICE);
TRACE_DEFINE_ENUM(DMA_NONE);

#define show_dma_direction(x)					\
	__print_symbolic(x,					\
			 { DMA_BIDIRECTIONAL, "BIDIR" },	\
			 { DMA_TO_DEVICE, "TO_DEVICE" },	\
			 { DMA_FROM_DEVICE, "FROM_DEVICE" },	\
			 { DMA_NONE, "NONE" })

/*
 * The connection
 */

DECLARE_EVENT_CLASS(xprtrdma_server_class,
	TP_PROTO(const struct sockaddr *sap),
	TP_ARGS(sap),
	TP_STRUCT__entry(SERVER_FIELDS),
	TP_fast_assign(SERVER_ASSIGN;),
	TP_printk(SERVER_FORMAT, SERVER_VALUES)
);

DEFINE_EVENT(xprtrdma_server_class, xprtrdma_op_inject_dsc,
	TP_PROTO(const struct sockaddr *sap), TP_ARGS(sap));

TRACE_EVENT(xprtrdma_op_connect,
	TP_PROTO(const struct sockaddr *sap, unsigned long delay),
	TP_ARGS(sap, delay),
	TP_STRUCT__entry(
		__field(unsigned long, delay)
		SERVER_FIELDS
	),
	TP_fast_assign(
		__entry->delay = delay;
		SERVER_ASSIGN;
	),
	TP_printk(SERVER_FORMAT " delay=%lu", SERVER_VALUES, __entry->delay)
);

TRACE_EVENT(xprtrdma_op_set_cto,
	TP_PROTO(const struct sockaddr *sap, unsigned long connect,
		 unsigned long reconnect),
	TP_ARGS(sap, connect, reconnect),
	TP_STRUCT__entry(
		__field(unsigned long, connect)
		__field(unsigned long, reconnect)
		SERVER_FIELDS
	),
	TP_fast_assign(
		__entry->connect = connect;
		__entry->reconnect = reconnect;
		SERVER_ASSIGN;
	),
	TP_printk(SERVER_FORMAT " connect=%lu reconnect=%lu", SERVER_VALUES,
		  __entry->connect / HZ, __entry->reconnect / HZ)
);

DECLARE_EVENT_CLASS(xprtrdma_connection_class,
	TP_PROTO(const struct sockaddr *sap, int rc, int connect_status),
	TP_ARGS(sap, rc, connect_status),
	TP_STRUCT__entry(
		__field(int, rc)
		__field(int, connect_status)
		SERVER_FIELDS
	),
	TP_fast_assign(
		__entry->rc = rc;
		__entry->connect_status = connect_status;
		SERVER_ASSIGN;
	),
	TP_printk(SERVER_FORMAT " rc=%d connection status=%d", SERVER_VALUES,
		  __entry->rc, __entry->connect_status)
);

#define CONNECTION_EVENT(name)					\
	DEFINE_EVENT(xprtrdma_connection_class, name,		\
		TP_PROTO(const struct sockaddr *sap, int rc,	\
			 int connect_status),			\
		TP_ARGS(sap, rc, connect_status))

CONNECTION_EVENT(xprtrdma_connect);
CONNECTION_EVENT(xprtrdma_disconnect);

TRACE_EVENT(xprtrdma_inline_thresh,
	TP_PROTO(u32 inline_send, u32 inline_recv, u32 max_send, u32 max_recv,
		 const struct sockaddr *src, const struct sockaddr *dst),
	TP_ARGS(inline_send, inline_recv, max_send, max_recv, src, dst),
	TP_STRUCT__entry(
		__field(unsigned int, inline_send)
		__field(unsigned int, inline_recv)
		__field(unsigned int, max_send)
		__field(unsigned int, max_recv)
		__array(unsigned char, srcaddr, sizeof(struct sockaddr_in6))
		__array(unsigned char, dstaddr, sizeof(struct sockaddr_in6))
	),
	TP_fast_assign(
		__entry->inline_send = inline_send;
		__entry->inline_recv = inline_recv;
		__entry->max_send = max_send;
		__entry->max_recv = max_recv;
		memcpy(__entry->srcaddr, src, sizeof(struct sockaddr_in6));
		memcpy(__entry->dstaddr, dst, sizeof(struct sockaddr_in6));
	),
	TP_printk("%pISpc -> %pISpc neg send/recv=%u/%u, calc send/recv=%u/%u",
		  __entry->srcaddr, __entry->dstaddr,
		  __entry->inline_send, __entry->inline_recv,
		  __entry->max_send, __entry->max_recv)
);

TRACE_EVENT(xprtrdma_device_removal,
	TP_PROTO(const char *name, const struct sockaddr *sap),
	TP_ARGS(name, sap),
	TP_STRUCT__entry(
		__string(name, name)
		__array(unsigned char, addr, sizeof(struct sockaddr_in6))
	),
	TP_fast_assign(
		__assign_str(name);
		memcpy(__entry->addr, sap, sizeof(struct sockaddr_in6));
	),
	TP_printk("device %s to be removed, disconnecting %pISpc",
		  __get_str(name), __entry->addr)
);

/*
 * Calls
 */

TRACE_EVENT(xprtrdma_chunk_read,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 pos,
		 const struct rpcrdma_rs_region *region, bool is_last),
	TP_ARGS(task, pos, region, is_last),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(unsigned int, pos)
		__field(int, nents)
		SEGMENT_FIELDS
		__field(bool, is_last)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->pos = pos;
		COVERED_ASSIGN;
		__entry->is_last = is_last;
	),
	TP_printk(TASK_FORMAT " pos=%u" SEGMENT_FORMAT " (%s)", TASK_VALUES,
		  __entry->pos, SEGMENT_VALUES,
		  __entry->is_last ? "last" : "more")
);

DECLARE_EVENT_CLASS(xprtrdma_write_chunk_class,
	TP_PROTO(const struct rpcrdma_rs_task *task,
		 const struct rpcrdma_rs_region *region, bool is_last),
	TP_ARGS(task, region, is_last),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(int, nents)
		SEGMENT_FIELDS
		__field(bool, is_last)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		COVERED_ASSIGN;
		__entry->is_last = is_last;
	),
	TP_printk(TASK_FORMAT SEGMENT_FORMAT " (%s)", TASK_VALUES,
		  SEGMENT_VALUES, __entry->is_last ? "last" : "more")
);

#define WRITE_CHUNK_EVENT(name)					\
	DEFINE_EVENT(xprtrdma_write_chunk_class, name,		\
		TP_PROTO(const struct rpcrdma_rs_task *task,	\
			 const struct rpcrdma_rs_region *region, \
			 bool is_last),				\
		TP_ARGS(task, region, is_last))

WRITE_CHUNK_EVENT(xprtrdma_chunk_write);
WRITE_CHUNK_EVENT(xprtrdma_chunk_wp);
WRITE_CHUNK_EVENT(xprtrdma_chunk_reply);

/* The numbers are those of the in-tree module, and of kapi::sys::trace. */
#define show_carriage(x)					\
	__print_symbolic(x,					\
			 { 0, "inline" },			\
			 { 1, "pullup" },			\
			 { 2, "mapped" },			\
			 { 3, "read list" },			\
			 { 4, "*read list" },			\
			 { 5, "write list" },			\
			 { 6, "reply chunk" })

TRACE_EVENT(xprtrdma_marshal,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid, u32 hdrlen,
		 u32 headlen, u32 pagelen, u32 taillen, u32 rtype, u32 wtype),
	TP_ARGS(task, xid, hdrlen, headlen, pagelen, taillen, rtype, wtype),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(u32, xid)
		__field(unsigned int, hdrlen)
		__field(unsigned int, headlen)
		__field(unsigned int, pagelen)
		__field(unsigned int, taillen)
		__field(unsigned int, rtype)
		__field(unsigned int, wtype)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->xid = xid;
		__entry->hdrlen = hdrlen;
		__entry->headlen = headlen;
		__entry->pagelen = pagelen;
		__entry->taillen = taillen;
		__entry->rtype = rtype;
		__entry->wtype = wtype;
	),
	TP_printk(TASK_FORMAT " xid=0x%08x hdr=%u xdr=%u/%u/%u %s/%s",
		  TASK_VALUES, __entry->xid, __entry->hdrlen,
		  __entry->headlen, __entry->pagelen, __entry->taillen,
		  show_carriage(__entry->rtype), show_carriage(__entry->wtype))
);

DECLARE_EVENT_CLASS(xprtrdma_unsent_class,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid, int ret),
	TP_ARGS(task, xid, ret),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(u32, xid)
		__field(int, ret)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->xid = xid;
		__entry->ret = ret;
	),
	TP_printk(TASK_FORMAT " xid=0x%08x ret=%d", TASK_VALUES, __entry->xid,
		  __entry->ret)
);

#define UNSENT_EVENT(name)					\
	DEFINE_EVENT(xprtrdma_unsent_class, name,		\
		TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid, int ret), \
		TP_ARGS(task, xid, ret))

UNSENT_EVENT(xprtrdma_prepsend_failed);
UNSENT_EVENT(xprtrdma_marshal_failed);

/*
 * Work requests
 */

TRACE_EVENT(xprtrdma_post_send,
	TP_PROTO(const struct rpc_rdma_cid *cid,
		 const struct rpcrdma_rs_task *task, u32 num_sge, int signaled),
	TP_ARGS(cid, task, num_sge, signaled),
	TP_STRUCT__entry(
		CID_FIELDS
		TASK_FIELDS
		__field(int, num_sge)
		__field(int, signaled)
	),
	TP_fast_assign(
		CID_ASSIGN;
		TASK_ASSIGN;
		__entry->num_sge = num_sge;
		__entry->signaled = signaled;
	),
	TP_printk(TASK_FORMAT " " CID_FORMAT " (%d SGE%s) %s", TASK_VALUES,
		  CID_VALUES, __entry->num_sge,
		  (__entry->num_sge == 1 ? "" : "s"),
		  (__entry->signaled ? "signaled" : ""))
);

TRACE_EVENT(xprtrdma_post_send_err,
	TP_PROTO(u32 cq_id, const struct rpcrdma_rs_task *task, int rc),
	TP_ARGS(cq_id, task, rc),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		TASK_FIELDS
		__field(int, rc)
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		TASK_ASSIGN;
		__entry->rc = rc;
	),
	TP_printk(TASK_FORMAT " cq.id=%u rc=%d", TASK_VALUES, __entry->cq_id,
		  __entry->rc)
);

TRACE_EVENT(xprtrdma_post_linv_err,
	TP_PROTO(const struct rpcrdma_rs_task *task, int status),
	TP_ARGS(task, status),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(int, status)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->status = status;
	),
	TP_printk(TASK_FORMAT " status=%d", TASK_VALUES, __entry->status)
);

CID_EVENT(xprtrdma_post_recv);

TRACE_EVENT(xprtrdma_post_recvs,
	TP_PROTO(u32 cq_id, const struct sockaddr *sap, u32 count, u32 posted),
	TP_ARGS(cq_id, sap, count, posted),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(unsigned int, count)
		__field(int, posted)
		SERVER_FIELDS
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		__entry->count = count;
		__entry->posted = posted;
		SERVER_ASSIGN;
	),
	TP_printk(SERVER_FORMAT " cq.id=%u %u new recvs, %d active",
		  SERVER_VALUES, __entry->cq_id, __entry->count,
		  __entry->posted)
);

TRACE_EVENT(xprtrdma_post_recvs_err,
	TP_PROTO(u32 cq_id, const struct sockaddr *sap, int status),
	TP_ARGS(cq_id, sap, status),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(int, status)
		SERVER_FIELDS
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		__entry->status = status;
		SERVER_ASSIGN;
	),
	TP_printk(SERVER_FORMAT " cq.id=%u rc=%d", SERVER_VALUES,
		  __entry->cq_id, __entry->status)
);

/*
 * Completions
 */

TRACE_EVENT(xprtrdma_wc_receive,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 received, u32 status,
		 u32 vendor_err),
	TP_ARGS(cid, received, status, vendor_err),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(u32, received)
		__field(unsigned long, status)
		__field(unsigned int, vendor_err)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->received = received;
		__entry->status = status;
		__entry->vendor_err = vendor_err;
	),
	TP_printk(CID_FORMAT " status=%s (%lu/0x%x) received=%u", CID_VALUES,
		  rdma_show_wc_status(__entry->status), __entry->status,
		  __entry->vendor_err, __entry->received)
);

DEFINE_EVENT(rpcrdma_completion_class, xprtrdma_wc_send,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 status, u32 vendor_err),
	TP_ARGS(cid, status, vendor_err));

/* They are named by their region. */
/*
 * Replies
 */

TRACE_EVENT(xprtrdma_reply,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid, u32 credits),
	TP_ARGS(task, xid, credits),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(u32, xid)
		__field(unsigned int, credits)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->xid = xid;
		__entry->credits = credits;
	),
	TP_printk(TASK_FORMAT " xid=0x%08x credits=%u", TASK_VALUES,
		  __entry->xid, __entry->credits)
);

DECLARE_EVENT_CLASS(xprtrdma_bad_reply_class,
	TP_PROTO(const struct sockaddr *sap, u32 xid, u32 version, u32 proc),
	TP_ARGS(sap, xid, version, proc),
	TP_STRUCT__entry(
		__field(u32, xid)
		__field(u32, version)
		__field(u32, proc)
		SERVER_FIELDS
	),
	TP_fast_assign(
		__entry->xid = xid;
		__entry->version = version;
		__entry->proc = proc;
		SERVER_ASSIGN;
	),
	TP_printk(SERVER_FORMAT " xid=0x%08x version=%u proc=%u",
		  SERVER_VALUES, __entry->xid, __entry->version, __entry->proc)
);

#define BAD_REPLY_EVENT(name)					\
	DEFINE_EVENT(xprtrdma_bad_reply_class, name,		\
		TP_PROTO(const struct sockaddr *sap,		\
			 u32 xid, u32 version, u32 proc),	\
		TP_ARGS(sap, xid, version, proc))

BAD_REPLY_EVENT(xprtrdma_reply_vers_err);
BAD_REPLY_EVENT(xprtrdma_reply_rqst_err);
BAD_REPLY_EVENT(xprtrdma_reply_short_err);
BAD_REPLY_EVENT(xprtrdma_reply_hdr_err);

TRACE_EVENT(xprtrdma_err_vers,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid, u32 min, u32 max),
	TP_ARGS(task, xid, min, max),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(u32, xid)
		__field(u32, min)
		__field(u32, max)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->xid = xid;
		__entry->min = min;
		__entry->max = max;
	),
	TP_printk(TASK_FORMAT " xid=0x%08x versions=[%u, %u]", TASK_VALUES,
		  __entry->xid, __entry->min, __entry->max)
);

TRACE_EVENT(xprtrdma_err_chunk,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid),
	TP_ARGS(task, xid),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(u32, xid)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->xid = xid;
	),
	TP_printk(TASK_FORMAT " xid=0x%08x", TASK_VALUES, __entry->xid)
);

TRACE_EVENT(xprtrdma_err_unrecognized,
	TP_PROTO(const struct rpcrdma_rs_task *task, u32 xid, u32 procedure),
	TP_ARGS(task, xid, procedure),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(u32, xid)
		__field(u32, procedure)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->xid = xid;
		__entry->procedure = procedure;
	),
	TP_printk(TASK_FORMAT " xid=0x%08x procedure=%u", TASK_VALUES,
		  __entry->xid, __entry->procedure)
);

TRACE_EVENT(xprtrdma_decode_seg,
	TP_PROTO(u32 handle, u32 length, u64 offset),
	TP_ARGS(handle, length, offset),
	TP_STRUCT__entry(SEGMENT_FIELDS),
	TP_fast_assign(
		__entry->handle = handle;
		__entry->length = length;
		__entry->offset = offset;
	),
	TP_printk("%u@0x%016llx:0x%08x", SEGMENT_VALUES)
);

TRACE_EVENT(xprtrdma_fixup,
	TP_PROTO(const struct rpcrdma_rs_task *task, unsigned long fixup,
		 size_t headlen, u32 pagelen, size_t taillen),
	TP_ARGS(task, fixup, headlen, pagelen, taillen),
	TP_STRUCT__entry(
		TASK_FIELDS
		__field(unsigned long, fixup)
		__field(size_t, headlen)
		__field(unsigned int, pagelen)
		__field(size_t, taillen)
	),
	TP_fast_assign(
		TASK_ASSIGN;
		__entry->fixup = fixup;
		__entry->headlen = headlen;
		__entry->pagelen = pagelen;
		__entry->taillen = taillen;
	),
	TP_printk(TASK_FORMAT " fixup=%lu xdr=%zu/%u/%zu", TASK_VALUES,
		  __entry->fixup, __entry->headlen, __entry->pagelen,
		  __entry->taillen)
);

/*
 * Calls of the server
 */

TRACE_EVENT(xprtrdma_cb_setup,
	TP_PROTO(const struct sockaddr *sap, u32 reqs),
	TP_ARGS(sap, reqs),
	TP_STRUCT__entry(
		__field(unsigned int, reqs)
		SERVER_FIELDS
	),
	TP_fast_assign(
		__entry->reqs = reqs;
		SERVER_ASSIGN;
	),
	TP_printk(SERVER_FORMAT " %u reqs", SERVER_VALUES, __entry->reqs)
);

DECLARE_EVENT_CLASS(xprtrdma_reverse_class,
	TP_PROTO(const struct sockaddr *sap, u32 xid),
	TP_ARGS(sap, xid),
	TP_STRUCT__entry(
		__field(u32, xid)
		SERVER_FIELDS
	),
	TP_fast_assign(
		__entry->xid = xid;
		SERVER_ASSIGN;
	),
	TP_printk(SERVER_FORMAT " xid=0x%08x", SERVER_VALUES, __entry->xid)
);

DEFINE_EVENT(xprtrdma_reverse_class, xprtrdma_cb_call,
	TP_PROTO(const struct sockaddr *sap, u32 xid), TP_ARGS(sap, xid));
DEFINE_EVENT(xprtrdma_reverse_class, xprtrdma_cb_reply,
	TP_PROTO(const struct sockaddr *sap, u32 xid), TP_ARGS(sap, xid));
