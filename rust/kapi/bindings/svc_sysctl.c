// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tunables and counters of the server under /proc/sys/sunrpc/svc_rdma. The
 * tunables take effect for connections accepted afterwards; those marked dead
 * are accepted and ignored. A write of anything to a counter makes it zero.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/sysctl.h>

#include "helpers.h"

/* Credits of a connection, at most. */
static unsigned int max_requests = 128;
/* Bytes that a Receive or a Send holds, transport header included. */
static unsigned int max_req_size = 8192;
/* Not in the C module: whether Replies are provided for clients to pull; bytes
 * of those of one connection, at most; and seconds until they are taken back.
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
static const unsigned int bytes_range[] = { 0, 1 << 30 };
static const unsigned int timeout_range[] = { 1, 3600 };
static const unsigned int reads_range[] = { 1, 255 };
static const unsigned int unused_range[] = { 0, 0 };

static DEFINE_PER_CPU(unsigned long [RPCRDMA_RS_SVC_COUNTERS], counters);

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

void rpcrdma_rs_svc_count(enum rpcrdma_rs_svc_counter which, unsigned long n)
{
	this_cpu_add(counters[which], n);
}

static int counter_handler(const struct ctl_table *table, int write,
			   void *buffer, size_t *lenp, loff_t *ppos)
{
	unsigned int which = (unsigned long)table->extra1;
	unsigned long sum = 0;
	const struct ctl_table shown = {
		.procname	= table->procname,
		.data		= &sum,
		.maxlen		= sizeof(sum),
		.mode		= table->mode,
	};
	int cpu;

	for_each_possible_cpu(cpu) {
		unsigned long *counter = &per_cpu(counters, cpu)[which];

		if (write)
			WRITE_ONCE(*counter, 0);
		else
			sum += READ_ONCE(*counter);
	}
	if (write) {
		*ppos += *lenp;
		return 0;
	}
	return proc_doulongvec_minmax(&shown, write, buffer, lenp, ppos);
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

#define COUNTER(name, which) {					\
	.procname	= name,					\
	.mode		= 0644,					\
	.proc_handler	= counter_handler,			\
	.extra1		= (void *)(unsigned long)(which),			\
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
