/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the responder. Part of trace.h, which includes it again and
 * again, and nobody else does.
 */

/*
 * Completions
 */

/* Flushed, since the connection had ended before, or failed by itself. */
#define FAILURE_EVENTS(name)					\
	DEFINE_EVENT(rpcrdma_completion_class, name##_flush,	\
		TP_PROTO(const struct rpc_rdma_cid *cid,	\
			 u32 status, u32 vendor_err),		\
		TP_ARGS(cid, status, vendor_err));		\
	DEFINE_EVENT(rpcrdma_completion_class, name##_err,	\
		TP_PROTO(const struct rpc_rdma_cid *cid,	\
			 u32 status, u32 vendor_err),		\
		TP_ARGS(cid, status, vendor_err))

DECLARE_EVENT_CLASS(rpcrdma_received_class,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 received),
	TP_ARGS(cid, received),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(u32, received)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->received = received;
	),
	TP_printk(CID_FORMAT " received=%u", CID_VALUES, __entry->received)
);

/*
 * Making a connection
 */

DECLARE_EVENT_CLASS(svcrdma_peer_class,
	TP_PROTO(const struct sockaddr *sap, int status),
	TP_ARGS(sap, status),
	TP_STRUCT__entry(
		__field(long, status)
		ADDR_FIELD
	),
	TP_fast_assign(
		__entry->status = status;
		ADDR_ASSIGN;
	),
	TP_printk("addr=%s status=%ld", __get_str(addr), __entry->status)
);

#define PEER_EVENT(name)					\
	DEFINE_EVENT(svcrdma_peer_class, name,			\
		TP_PROTO(const struct sockaddr *sap, int status), \
		TP_ARGS(sap, status))

PEER_EVENT(svcrdma_pd_err);
PEER_EVENT(svcrdma_qp_err);
PEER_EVENT(svcrdma_initdepth_err);
PEER_EVENT(svcrdma_accept_err);

/*
 * Receives
 */

CID_EVENT(svcrdma_post_recv);
TRACE_EVENT(svcrdma_rq_post_err,
	TP_PROTO(const struct sockaddr *sap, int status),
	TP_ARGS(sap, status),
	TP_STRUCT__entry(
		__field(int, status)
		ADDR_FIELD
	),
	TP_fast_assign(
		__entry->status = status;
		ADDR_ASSIGN;
	),
	TP_printk("addr=%s status=%d", __get_str(addr), __entry->status)
);

DEFINE_EVENT(rpcrdma_received_class, svcrdma_wc_recv,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 received),
	TP_ARGS(cid, received));
FAILURE_EVENTS(svcrdma_wc_recv);

/*
 * What a received message says
 */

TRACE_DEFINE_ENUM(RDMA_MSG);
TRACE_DEFINE_ENUM(RDMA_NOMSG);
TRACE_DEFINE_ENUM(RDMA_MSGP);
TRACE_DEFINE_ENUM(RDMA_DONE);
TRACE_DEFINE_ENUM(RDMA_ERROR);

#define HEADER_PROTO						\
	const struct rpc_rdma_cid *cid,				\
	u32 xid, u32 vers, u32 credits, u32 proc
#define HEADER_FIELDS						\
	CID_FIELDS						\
	__field(u32, xid)					\
	__field(u32, vers)					\
	__field(u32, proc)					\
	__field(u32, credits)
#define HEADER_ASSIGN						\
	CID_ASSIGN;						\
	__entry->xid = xid;					\
	__entry->vers = vers;					\
	__entry->proc = proc;					\
	__entry->credits = credits
#define HEADER_FORMAT	CID_FORMAT " xid=0x%08x vers=%u credits=%u"
#define HEADER_VALUES						\
	CID_VALUES, __entry->xid, __entry->vers, __entry->credits

TRACE_EVENT(svcrdma_decode_rqst,
	TP_PROTO(HEADER_PROTO, u32 hdrlen),
	TP_ARGS(cid, xid, vers, credits, proc, hdrlen),
	TP_STRUCT__entry(
		HEADER_FIELDS
		__field(unsigned int, hdrlen)
	),
	TP_fast_assign(
		HEADER_ASSIGN;
		__entry->hdrlen = hdrlen;
	),
	TP_printk(HEADER_FORMAT " proc=%s hdrlen=%u", HEADER_VALUES,
		  __print_symbolic(__entry->proc,
				   { RDMA_MSG, "RDMA_MSG" },
				   { RDMA_NOMSG, "RDMA_NOMSG" },
				   { RDMA_MSGP, "RDMA_MSGP" },
				   { RDMA_DONE, "RDMA_DONE" },
				   { RDMA_ERROR, "RDMA_ERROR" }),
		  __entry->hdrlen)
);

TRACE_EVENT(svcrdma_decode_short_err,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 hdrlen),
	TP_ARGS(cid, hdrlen),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(unsigned int, hdrlen)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->hdrlen = hdrlen;
	),
	TP_printk(CID_FORMAT " hdrlen=%u", CID_VALUES, __entry->hdrlen)
);

DECLARE_EVENT_CLASS(svcrdma_refused_class,
	TP_PROTO(HEADER_PROTO),
	TP_ARGS(cid, xid, vers, credits, proc),
	TP_STRUCT__entry(HEADER_FIELDS),
	TP_fast_assign(HEADER_ASSIGN;),
	TP_printk(HEADER_FORMAT " proc=%u", HEADER_VALUES, __entry->proc)
);

#define REFUSED_EVENT(name)					\
	DEFINE_EVENT(svcrdma_refused_class, name,		\
		TP_PROTO(HEADER_PROTO),				\
		TP_ARGS(cid, xid, vers, credits, proc))

REFUSED_EVENT(svcrdma_decode_badvers_err);
REFUSED_EVENT(svcrdma_decode_badproc_err);
REFUSED_EVENT(svcrdma_decode_drop_err);
REFUSED_EVENT(svcrdma_decode_parse_err);

#define SEGMENT_ASSIGN						\
	__entry->handle = handle;				\
	__entry->length = length;				\
	__entry->offset = offset

TRACE_EVENT(svcrdma_decode_rseg,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 segno, u32 position,
		 u32 handle, u32 length, u64 offset),
	TP_ARGS(cid, segno, position, handle, length, offset),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(u32, segno)
		__field(u32, position)
		SEGMENT_FIELDS
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->segno = segno;
		__entry->position = position;
		SEGMENT_ASSIGN;
	),
	TP_printk(CID_FORMAT " segno=%u position=%u" SEGMENT_FORMAT, CID_VALUES,
		  __entry->segno, __entry->position, SEGMENT_VALUES)
);

DECLARE_EVENT_CLASS(svcrdma_write_segment_class,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 segno,
		 u32 handle, u32 length, u64 offset),
	TP_ARGS(cid, segno, handle, length, offset),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(u32, segno)
		SEGMENT_FIELDS
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->segno = segno;
		SEGMENT_ASSIGN;
	),
	TP_printk(CID_FORMAT " segno=%u" SEGMENT_FORMAT, CID_VALUES,
		  __entry->segno, SEGMENT_VALUES)
);

#define WRITE_SEGMENT_EVENT(name)				\
	DEFINE_EVENT(svcrdma_write_segment_class, name,		\
		TP_PROTO(const struct rpc_rdma_cid *cid, u32 segno, \
			 u32 handle, u32 length, u64 offset),	\
		TP_ARGS(cid, segno, handle, length, offset))

WRITE_SEGMENT_EVENT(svcrdma_decode_wseg);
WRITE_SEGMENT_EVENT(svcrdma_encode_wseg);

/*
 * RDMA Reads and Writes
 */

DECLARE_EVENT_CLASS(svcrdma_requests_class,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 sqecount),
	TP_ARGS(cid, sqecount),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(int, sqecount)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->sqecount = sqecount;
	),
	TP_printk(CID_FORMAT " sqecount=%d", CID_VALUES, __entry->sqecount)
);

#define REQUESTS_EVENT(name)					\
	DEFINE_EVENT(svcrdma_requests_class, name,		\
		TP_PROTO(const struct rpc_rdma_cid *cid, u32 sqecount), \
		TP_ARGS(cid, sqecount))

REQUESTS_EVENT(svcrdma_post_read_chunk);
REQUESTS_EVENT(svcrdma_post_write_chunk);
REQUESTS_EVENT(svcrdma_post_reply_chunk);
REQUESTS_EVENT(svcrdma_cc_release);

TRACE_EVENT(svcrdma_wc_read,
	TP_PROTO(const struct rpc_rdma_cid *cid, s64 read_latency,
		 u32 totalbytes),
	TP_ARGS(cid, read_latency, totalbytes),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(s64, read_latency)
		__field(unsigned int, totalbytes)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->read_latency = read_latency;
		__entry->totalbytes = totalbytes;
	),
	TP_printk(CID_FORMAT " totalbytes=%u latency-us=%lld", CID_VALUES,
		  __entry->totalbytes, __entry->read_latency)
);
FAILURE_EVENTS(svcrdma_wc_read);
CID_EVENT(svcrdma_read_finished);

CID_EVENT(svcrdma_wc_write);
FAILURE_EVENTS(svcrdma_wc_write);
CID_EVENT(svcrdma_wc_reply);
FAILURE_EVENTS(svcrdma_wc_reply);

TRACE_EVENT(svcrdma_dma_map_rw_err,
	TP_PROTO(u32 cq_id, u32 handle, u64 offset, u32 nents, int status),
	TP_ARGS(cq_id, handle, offset, nents, status),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(u32, handle)
		__field(u64, offset)
		__field(unsigned int, nents)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		__entry->handle = handle;
		__entry->offset = offset;
		__entry->nents = nents;
		__entry->status = status;
	),
	TP_printk("cq.id=%u 0x%016llx:0x%08x nents=%u status=%d",
		  __entry->cq_id, (unsigned long long)__entry->offset,
		  __entry->handle, __entry->nents, __entry->status)
);

TRACE_EVENT(svcrdma_rwctx_empty,
	TP_PROTO(u32 cq_id, u32 num_sges),
	TP_ARGS(cq_id, num_sges),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(unsigned int, num_sges)
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		__entry->num_sges = num_sges;
	),
	TP_printk("cq.id=%u num_sges=%u", __entry->cq_id, __entry->num_sges)
);

TRACE_EVENT(svcrdma_page_overrun_err,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 pageno),
	TP_ARGS(cid, pageno),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(unsigned int, pageno)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->pageno = pageno;
	),
	TP_printk(CID_FORMAT " pageno=%u", CID_VALUES, __entry->pageno)
);

TRACE_EVENT(svcrdma_small_wrch_err,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 remaining, u32 seg_no,
		 u32 num_segs),
	TP_ARGS(cid, remaining, seg_no, num_segs),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(unsigned int, remaining)
		__field(unsigned int, seg_no)
		__field(unsigned int, num_segs)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->remaining = remaining;
		__entry->seg_no = seg_no;
		__entry->num_segs = num_segs;
	),
	TP_printk(CID_FORMAT " remaining=%u seg_no=%u num_segs=%u", CID_VALUES,
		  __entry->remaining, __entry->seg_no, __entry->num_segs)
);

/*
 * Sends
 */

TRACE_EVENT(svcrdma_send_pullup,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 hdrlen, u32 msglen),
	TP_ARGS(cid, hdrlen, msglen),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(unsigned int, hdrlen)
		__field(unsigned int, msglen)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->hdrlen = hdrlen;
		__entry->msglen = msglen;
	),
	TP_printk(CID_FORMAT " hdr=%u msg=%u (total %u)", CID_VALUES,
		  __entry->hdrlen, __entry->msglen,
		  __entry->hdrlen + __entry->msglen)
);

TRACE_EVENT(svcrdma_post_send,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 num_sge, u32 inv_rkey),
	TP_ARGS(cid, num_sge, inv_rkey),
	TP_STRUCT__entry(
		CID_FIELDS
		__field(unsigned int, num_sge)
		__field(u32, inv_rkey)
	),
	TP_fast_assign(
		CID_ASSIGN;
		__entry->num_sge = num_sge;
		__entry->inv_rkey = inv_rkey;
	),
	TP_printk(CID_FORMAT " num_sge=%u inv_rkey=0x%08x", CID_VALUES,
		  __entry->num_sge, __entry->inv_rkey)
);
CID_EVENT(svcrdma_wc_send);
FAILURE_EVENTS(svcrdma_wc_send);

TRACE_EVENT(svcrdma_send_err,
	TP_PROTO(const struct sockaddr *sap, u32 xid, int status),
	TP_ARGS(sap, xid, status),
	TP_STRUCT__entry(
		__field(int, status)
		__field(u32, xid)
		ADDR_FIELD
	),
	TP_fast_assign(
		__entry->status = status;
		__entry->xid = xid;
		ADDR_ASSIGN;
	),
	TP_printk("addr=%s xid=0x%08x status=%d", __get_str(addr),
		  __entry->xid, __entry->status)
);

DECLARE_EVENT_CLASS(svcrdma_xid_class,
	TP_PROTO(u32 xid),
	TP_ARGS(xid),
	TP_STRUCT__entry(__field(u32, xid)),
	TP_fast_assign(__entry->xid = xid;),
	TP_printk("xid=0x%08x", __entry->xid)
);

DEFINE_EVENT(svcrdma_xid_class, svcrdma_err_vers,
	TP_PROTO(u32 xid), TP_ARGS(xid));
DEFINE_EVENT(svcrdma_xid_class, svcrdma_err_chunk,
	TP_PROTO(u32 xid), TP_ARGS(xid));

#define ROOM_FIELDS						\
	CID_FIELDS						\
	__field(int, avail)					\
	__field(int, depth)
#define ROOM_ASSIGN						\
	CID_ASSIGN;						\
	__entry->avail = avail;					\
	__entry->depth = depth
#define ROOM_FORMAT	CID_FORMAT " sc_sq_avail=%d/%d"
#define ROOM_VALUES	CID_VALUES, __entry->avail, __entry->depth

DECLARE_EVENT_CLASS(svcrdma_room_class,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 avail, u32 depth),
	TP_ARGS(cid, avail, depth),
	TP_STRUCT__entry(ROOM_FIELDS),
	TP_fast_assign(ROOM_ASSIGN;),
	TP_printk(ROOM_FORMAT, ROOM_VALUES)
);

#define ROOM_EVENT(name)					\
	DEFINE_EVENT(svcrdma_room_class, name,			\
		TP_PROTO(const struct rpc_rdma_cid *cid, u32 avail, u32 depth), \
		TP_ARGS(cid, avail, depth))

ROOM_EVENT(svcrdma_sq_full);
ROOM_EVENT(svcrdma_sq_retry);

TRACE_EVENT(svcrdma_sq_post_err,
	TP_PROTO(const struct rpc_rdma_cid *cid, u32 avail, u32 depth,
		 int status),
	TP_ARGS(cid, avail, depth, status),
	TP_STRUCT__entry(
		ROOM_FIELDS
		__field(int, status)
	),
	TP_fast_assign(
		ROOM_ASSIGN;
		__entry->status = status;
	),
	TP_printk(ROOM_FORMAT " status=%d", ROOM_VALUES, __entry->status)
);

/*
 * The device
 */

TRACE_EVENT(svcrdma_qp_error,
	TP_PROTO(u32 event, const char *device, const struct sockaddr *sap),
	TP_ARGS(event, device, sap),
	TP_STRUCT__entry(
		__field(unsigned int, event)
		__string(device, device)
		__array(__u8, addr, INET6_ADDRSTRLEN + 10)
	),
	TP_fast_assign(
		__entry->event = event;
		__assign_str(device);
		snprintf(__entry->addr, sizeof(__entry->addr), "%pISpc", sap);
	),
	TP_printk("addr=%s dev=%s event=%s (%u)", __entry->addr,
		  __get_str(device), rdma_show_ib_event(__entry->event),
		  __entry->event)
);

TRACE_EVENT(svcrdma_device_removal,
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
