// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tunables and counters of the server under /proc/sys/sunrpc/svc_rdma. The
 * tunables take effect for connections accepted afterwards; those marked dead
 * are accepted and ignored.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/sysctl.h>

#include "counters.h"
#include "helpers.h"

/* Credits of a connection, at most. */
static unsigned int max_requests = 128;
/* Bytes that a Receive or a Send holds, transport header included. */
static unsigned int max_req_size = 8192;
/* Not in the C module: whether Replies are provided for clients to pull; bytes
 * of memory for those of one connection, at most; and seconds until they are
 * taken back.
 */
static unsigned int reliable_reply = 1;
static unsigned int reliable_reply_bytes = 16 << 20;
static unsigned int reliable_reply_timeout = 60;
/* Dead. */
static unsigned int max_outbound_read_requests = 16;
static unsigned int unused;

static const unsigned int requests_range[] = { 4, 16384 };
static const unsigned int size_range[] = { 4096, 65536 };
static const unsigned int bool_range[] = { 0, 1 };
static const unsigned int bytes_range[] = { 65536, 1 << 30 };
static const unsigned int timeout_range[] = { 1, 3600 };
static const unsigned int reads_range[] = { 1, 255 };
static const unsigned int unused_range[] = { 0, 0 };

unsigned int rpcrdma_rs_svc_max_requests(void)
{
	return READ_ONCE(max_requests);
}

unsigned int rpcrdma_rs_svc_max_req_size(void)
{
	return READ_ONCE(max_req_size);
}

bool rpcrdma_rs_svc_reliable_reply(void)
{
	return READ_ONCE(reliable_reply);
}

unsigned int rpcrdma_rs_svc_reliable_reply_bytes(void)
{
	return READ_ONCE(reliable_reply_bytes);
}

unsigned int rpcrdma_rs_svc_reliable_reply_timeout(void)
{
	return READ_ONCE(reliable_reply_timeout);
}

/* As in the C module, a value out of its range is EINVAL. No end is above INT_MAX. */
#define RANGED(name, var, range) {				\
	.procname	= name,					\
	.data		= &(var),				\
	.maxlen		= sizeof(var),				\
	.mode		= 0644,					\
	.proc_handler	= proc_dointvec_minmax,		\
	.extra1		= (void *)&(range)[0],			\
	.extra2		= (void *)&(range)[1],			\
}

static const struct ctl_table table[] = {
	RANGED("max_requests", max_requests, requests_range),
	RANGED("max_req_size", max_req_size, size_range),
	RANGED("reliable_reply", reliable_reply, bool_range),
	RANGED("reliable_reply_bytes", reliable_reply_bytes, bytes_range),
	RANGED("reliable_reply_timeout", reliable_reply_timeout, timeout_range),
	RANGED("max_outbound_read_requests", max_outbound_read_requests,
	       reads_range),
	COUNTER("rdma_stat_read", RPCRDMA_RS_SVC_READ),
	COUNTER("rdma_stat_recv", RPCRDMA_RS_SVC_RECV),
	COUNTER("rdma_stat_write", RPCRDMA_RS_SVC_WRITE),
	COUNTER("rdma_stat_sq_starve", RPCRDMA_RS_SVC_SQ_STARVE),
	COUNTER("rdma_stat_pull", RPCRDMA_RS_SVC_PULLS),
	COUNTER("rdma_stat_pull_bytes", RPCRDMA_RS_SVC_PULL_BYTES),
	COUNTER("rdma_stat_pull_done", RPCRDMA_RS_SVC_PULLED),
	COUNTER("rdma_stat_pull_overdue", RPCRDMA_RS_SVC_PULLS_OVERDUE),
	COUNTER("rdma_stat_pull_refused", RPCRDMA_RS_SVC_PULLS_REFUSED),
	RANGED("rdma_stat_rq_starve", unused, unused_range),
	RANGED("rdma_stat_rq_poll", unused, unused_range),
	RANGED("rdma_stat_rq_prod", unused, unused_range),
	RANGED("rdma_stat_sq_poll", unused, unused_range),
	RANGED("rdma_stat_sq_prod", unused, unused_range),
};

static struct ctl_table_header *registered;

int rpcrdma_rs_svc_sysctl_register(void)
{
	registered = register_sysctl("sunrpc/svc_rdma", table);
	return registered ? 0 : -ENOMEM;
}

void rpcrdma_rs_svc_sysctl_unregister(void)
{
	unregister_sysctl_table(registered);
	registered = NULL;
}
