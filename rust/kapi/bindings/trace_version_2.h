/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Trace events of version 2 of the protocol, see
 * Documentation/version-2.rst; the C module has none of them. Part of trace.h,
 * which includes it again and again, behind those of the two ends, and nobody
 * else does. Each end has those of a class under a name of its own. A
 * connection is named by its completion queue for Receives.
 */

/* Numbers and words are those of transport::negotiated. */
#define show_version_reason(x)					\
	__print_symbolic(x,					\
			 { 0, "no other is allowed" },		\
			 { 1, "agreed" },			\
			 { 2, "refused" },			\
			 { 3, "not answered before" })

TRACE_EVENT(xprtrdma_version,
	TP_PROTO(const struct sockaddr *sap, u32 version, u32 why),
	TP_ARGS(sap, version, why),
	TP_STRUCT__entry(
		SERVER_FIELDS
		__field(u32, version)
		__field(unsigned int, why)
	),
	TP_fast_assign(
		SERVER_ASSIGN;
		__entry->version = version;
		__entry->why = why;
	),
	TP_printk(SERVER_FORMAT " version=%u: %s", SERVER_VALUES,
		  __entry->version, show_version_reason(__entry->why))
);

#define show_reverse_support(x)					\
	__print_symbolic(x,					\
			 { 0, "none" },				\
			 { 1, "simple" },			\
			 { 2, "continued" },			\
			 { 3, "general" })

DECLARE_EVENT_CLASS(rpcrdma_properties_class,
	TP_PROTO(u32 queue, u32 send, u32 recv, u32 segment, u32 segments,
		 u32 reverse),
	TP_ARGS(queue, send, recv, segment, segments, reverse),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(unsigned int, send)
		__field(unsigned int, recv)
		__field(unsigned int, segment)
		__field(unsigned int, segments)
		__field(unsigned int, reverse)
	),
	TP_fast_assign(
		__entry->cq_id = queue;
		__entry->send = send;
		__entry->recv = recv;
		__entry->segment = segment;
		__entry->segments = segments;
		__entry->reverse = reverse;
	),
	TP_printk("cq.id=%u send=%u recv=%u segment=%u segments=%u reverse=%s",
		  __entry->cq_id, __entry->send, __entry->recv,
		  __entry->segment, __entry->segments,
		  show_reverse_support(__entry->reverse))
);

#define PROPERTIES_EVENT(name)					\
	DEFINE_EVENT(rpcrdma_properties_class, name,		\
		TP_PROTO(u32 queue, u32 send, u32 recv,		\
			 u32 segment, u32 segments, u32 reverse),	\
		TP_ARGS(queue, send, recv, segment, segments, reverse))

PROPERTIES_EVENT(xprtrdma_properties);
PROPERTIES_EVENT(svcrdma_properties);

DECLARE_EVENT_CLASS(rpcrdma_grant_class,
	TP_PROTO(u32 queue, u32 credits, bool sent),
	TP_ARGS(queue, credits, sent),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(u32, credits)
		__field(bool, sent)
	),
	TP_fast_assign(
		__entry->cq_id = queue;
		__entry->credits = credits;
		__entry->sent = sent;
	),
	TP_printk("cq.id=%u credits=%u %s", __entry->cq_id, __entry->credits,
		  __entry->sent ? "sent" : "received")
);

#define GRANT_EVENT(name)					\
	DEFINE_EVENT(rpcrdma_grant_class, name,			\
		TP_PROTO(u32 queue, u32 credits, bool sent),	\
		TP_ARGS(queue, credits, sent))

GRANT_EVENT(xprtrdma_grant);
GRANT_EVENT(svcrdma_grant);

DECLARE_EVENT_CLASS(rpcrdma_continued_class,
	TP_PROTO(u32 queue, u32 xid, u32 length, u32 messages),
	TP_ARGS(queue, xid, length, messages),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(u32, xid)
		__field(unsigned int, length)
		__field(unsigned int, messages)
	),
	TP_fast_assign(
		__entry->cq_id = queue;
		__entry->xid = xid;
		__entry->length = length;
		__entry->messages = messages;
	),
	TP_printk("cq.id=%u xid=0x%08x length=%u messages=%u", __entry->cq_id,
		  __entry->xid, __entry->length, __entry->messages)
);

#define CONTINUED_EVENT(name)					\
	DEFINE_EVENT(rpcrdma_continued_class, name,		\
		TP_PROTO(u32 queue, u32 xid, u32 length, u32 messages),	\
		TP_ARGS(queue, xid, length, messages))

CONTINUED_EVENT(xprtrdma_continued);
CONTINUED_EVENT(svcrdma_continued);

DECLARE_EVENT_CLASS(rpcrdma_fragment_class,
	TP_PROTO(u32 queue, u32 xid, u32 remaining),
	TP_ARGS(queue, xid, remaining),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(u32, xid)
		__field(unsigned int, remaining)
	),
	TP_fast_assign(
		__entry->cq_id = queue;
		__entry->xid = xid;
		__entry->remaining = remaining;
	),
	TP_printk("cq.id=%u xid=0x%08x remaining=%u", __entry->cq_id,
		  __entry->xid, __entry->remaining)
);

#define FRAGMENT_EVENT(name)					\
	DEFINE_EVENT(rpcrdma_fragment_class, name,		\
		TP_PROTO(u32 queue, u32 xid, u32 remaining),	\
		TP_ARGS(queue, xid, remaining))

FRAGMENT_EVENT(xprtrdma_fragment);
FRAGMENT_EVENT(svcrdma_fragment);
