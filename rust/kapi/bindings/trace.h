/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events. Names, fields and text are those of the in-tree module, which
 * scripts know; Documentation/trace-events.rst says when each fires. What they
 * take is copied for them: numbers, text and addresses, never a structure of
 * the RPC layer or of the verbs, which may be gone.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(RPCRDMA_RS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RPCRDMA_RS_TRACE_H

#include <linux/inet.h>
#include <linux/socket.h>
#include <linux/sunrpc/addr.h>
/* <linux/sunrpc/rpc_rdma.h> needs this one. */
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/rpc_rdma.h>
#include <linux/sunrpc/rpc_rdma_cid.h>
#include <linux/tracepoint.h>
/* <trace/misc/rdma.h> needs these. */
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include <trace/misc/rdma.h>
#include <trace/misc/sunrpc.h>

#include "trace_arguments.h"

/* The work request that an event is about. */
#define CID_FIELDS						\
	__field(u32, cq_id)					\
	__field(int, completion_id)
#define CID_ASSIGN						\
	__entry->cq_id = cid->ci_queue_id;			\
	__entry->completion_id = cid->ci_completion_id
#define CID_FORMAT	"cq.id=%u cid=%d"
#define CID_VALUES	__entry->cq_id, __entry->completion_id

/* The address of a peer, as text. */
#define ADDR_FIELD						\
	__dynamic_array(char, addr, INET6_ADDRSTRLEN + 10)
#define ADDR_ASSIGN						\
	snprintf(__get_str(addr), __get_dynamic_array_len(addr), "%pISc", sap)

/* An RDMA segment, or what a memory region covers. */
#define SEGMENT_FIELDS						\
	__field(u32, handle)					\
	__field(u32, length)					\
	__field(u64, offset)
#define SEGMENT_FORMAT	" %u@0x%016llx:0x%08x"
#define SEGMENT_VALUES						\
	__entry->length, (unsigned long long)__entry->offset, __entry->handle

/*
 * Of both ends: work requests
 */

DECLARE_EVENT_CLASS(rpcrdma_cid_class,
	TP_PROTO(const struct rpc_rdma_cid *cid),
	TP_ARGS(cid),
	TP_STRUCT__entry(CID_FIELDS),
	TP_fast_assign(CID_ASSIGN;),
	TP_printk(CID_FORMAT, CID_VALUES)
);

#define CID_EVENT(name)						\
	DEFINE_EVENT(rpcrdma_cid_class, name,			\
		TP_PROTO(const struct rpc_rdma_cid *cid),	\
		TP_ARGS(cid))

DECLARE_EVENT_CLASS(rpcrdma_completion_class,
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
	TP_printk(CID_FORMAT " status=%s (%lu/0x%x)", CID_VALUES,
		  rdma_show_wc_status(__entry->status), __entry->status,
		  __entry->vendor_err)
);

#include "trace_responder.h"
#include "trace_requester.h"
#include "trace_registration.h"
#include "trace_pulls.h"
#include "trace_version_2.h"

#endif /* RPCRDMA_RS_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
/* Kbuild adds this directory to the search path of trace.c. */
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
