// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tunables and counters: those of the client under /proc/sys/sunrpc, those of the
 * server under /proc/sys/sunrpc/svc_rdma.
 */
#include <linux/array_size.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sysctl.h>

#include "helpers.h"

/* With fewer, 1 MiB would not fit in the 16 segments that every server takes. */
#define LEAST_REGION_PAGES (SZ_1M / PAGE_SIZE / 16 + 1)

/* As they are when the module is loaded; kapi/sys/sysctl.rs says what each is. */
static int tunables[] = {
	[RPCRDMA_RS_SLOT_TABLE_ENTRIES]		= 128,
	[RPCRDMA_RS_MAX_INLINE_READ]		= 8192,
	[RPCRDMA_RS_MAX_INLINE_WRITE]		= 8192,
	[RPCRDMA_RS_WRITE_CHUNK_PADDING]	= 0,
	[RPCRDMA_RS_KEEPALIVE_TIME]		= 30,
	[RPCRDMA_RS_REGION_PAGES]		= 0,
	[RPCRDMA_RS_RELIABLE_REPLY]		= 1,
	[RPCRDMA_RS_MAX_VERSION]		= 1,
	[RPCRDMA_RS_SVC_MAX_REQUESTS]		= 128,
	[RPCRDMA_RS_SVC_MAX_REQ_SIZE]		= 8192,
	[RPCRDMA_RS_SVC_RELIABLE_REPLY]		= 1,
	[RPCRDMA_RS_SVC_RELIABLE_REPLY_BYTES]	= 16 << 20,
	[RPCRDMA_RS_SVC_RELIABLE_REPLY_TIMEOUT]	= 60,
	[RPCRDMA_RS_SVC_MAX_VERSION]		= 1,
};

/* Both are tunables, too, which a connection reads when it is made. */
static int set_version(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 1, 2);
}

static const struct kernel_param_ops version = {
	.set	= set_version,
	.get	= param_get_int,
};

module_param_cb(rdma_max_version, &version,
		&tunables[RPCRDMA_RS_MAX_VERSION], 0644);
MODULE_PARM_DESC(rdma_max_version,
		 "highest version that a client tries, 1 or 2");
module_param_cb(svc_max_version, &version,
		&tunables[RPCRDMA_RS_SVC_MAX_VERSION], 0644);
MODULE_PARM_DESC(svc_max_version,
		 "highest version that a server speaks, 1 or 2");

/* Of all connections since the module was loaded. */
static DEFINE_PER_CPU(unsigned long [RPCRDMA_RS_COUNTERS], counters);

unsigned int rpcrdma_rs_tunable(enum rpcrdma_rs_tunable which)
{
	return which < ARRAY_SIZE(tunables) ? READ_ONCE(tunables[which]) : 0;
}

void rpcrdma_rs_count(enum rpcrdma_rs_counter which, unsigned long n)
{
	if (which < RPCRDMA_RS_COUNTERS)
		this_cpu_add(counters[which], n);
}

/* A write of anything makes a counter zero. */
static int counter_handler(const struct ctl_table *entry, int write, void *buffer,
			   size_t *lenp, loff_t *ppos)
{
	unsigned int which = (unsigned long)entry->extra1;
	unsigned long sum = 0;
	const struct ctl_table shown = {
		.procname	= entry->procname,
		.data		= &sum,
		.maxlen		= sizeof(sum),
		.mode		= entry->mode,
	};
	int cpu;

	if (which >= RPCRDMA_RS_COUNTERS)
		return -EINVAL;
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

static int region_pages_handler(const struct ctl_table *entry, int dir,
				void *buffer, size_t *lenp, loff_t *ppos)
{
	int *value = &tunables[RPCRDMA_RS_REGION_PAGES];
	int pages = READ_ONCE(*value);
	const struct ctl_table one = {
		.data	= &pages,
		.maxlen	= sizeof(pages),
		.mode	= entry->mode,
		.extra1	= entry->extra1,
		.extra2	= entry->extra2,
	};
	int rc;

	rc = proc_dointvec_minmax(&one, dir, buffer, lenp, ppos);
	if (rc || !SYSCTL_USER_TO_KERN(dir))
		return rc;
	if (pages && pages < LEAST_REGION_PAGES)
		return -EINVAL;
	WRITE_ONCE(*value, pages);
	return 0;
}

/* As in the C module, a value out of its range is EINVAL. */
#define RANGED(handler, name, value, min, max) {		\
	.procname	= name,					\
	.data		= value,				\
	.maxlen		= sizeof(int),				\
	.mode		= 0644,					\
	.proc_handler	= handler,				\
	.extra1		= (void *)&(const int){ min },		\
	.extra2		= (void *)&(const int){ max },		\
}
#define TUNABLE(name, which, min, max) \
	RANGED(proc_dointvec_minmax, name, &tunables[which], min, max)
/* Is taken, and does nothing, as in the C module. */
#define IGNORED(name, first, min, max) \
	RANGED(proc_dointvec_minmax, name, &(int){ first }, min, max)
#define COUNTER(name, which) {					\
	.procname	= name,					\
	.mode		= 0644,					\
	.proc_handler	= counter_handler,			\
	.extra1		= (void *)(unsigned long)(which),	\
}

static const struct ctl_table client[] = {
	TUNABLE("rdma_slot_table_entries", RPCRDMA_RS_SLOT_TABLE_ENTRIES,
		4, 16384),
	TUNABLE("rdma_max_inline_read", RPCRDMA_RS_MAX_INLINE_READ, 1024, 65536),
	TUNABLE("rdma_max_inline_write", RPCRDMA_RS_MAX_INLINE_WRITE, 1024, 65536),
	IGNORED("rdma_pad_optimize", 0, INT_MIN, INT_MAX),
	IGNORED("rdma_inline_write_padding", 0, 0, PAGE_SIZE),
	IGNORED("rdma_memreg_strategy", 5, 0, 6),
	/* The C module has none of these. */
	TUNABLE("rdma_write_chunk_padding", RPCRDMA_RS_WRITE_CHUNK_PADDING, 0, 1),
	TUNABLE("rdma_keepalive_time", RPCRDMA_RS_KEEPALIVE_TIME, 0, 3600),
	RANGED(region_pages_handler, "rdma_region_pages", NULL,
	       0, SZ_1M / PAGE_SIZE + 1),
	TUNABLE("rdma_reliable_reply", RPCRDMA_RS_RELIABLE_REPLY, 0, 1),
	TUNABLE("rdma_max_version", RPCRDMA_RS_MAX_VERSION, 1, 2),
	COUNTER("rdma_stat_pull", RPCRDMA_RS_PULLS),
	COUNTER("rdma_stat_pull_bytes", RPCRDMA_RS_PULL_BYTES),
	COUNTER("rdma_stat_pull_done", RPCRDMA_RS_DONES),
};

static const struct ctl_table server[] = {
	TUNABLE("max_requests", RPCRDMA_RS_SVC_MAX_REQUESTS, 4, 16384),
	TUNABLE("max_req_size", RPCRDMA_RS_SVC_MAX_REQ_SIZE, 4096, 65536),
	IGNORED("max_outbound_read_requests", 16, 1, 255),
	COUNTER("rdma_stat_read", RPCRDMA_RS_SVC_READ),
	COUNTER("rdma_stat_recv", RPCRDMA_RS_SVC_RECV),
	COUNTER("rdma_stat_write", RPCRDMA_RS_SVC_WRITE),
	COUNTER("rdma_stat_sq_starve", RPCRDMA_RS_SVC_SQ_STARVE),
	IGNORED("rdma_stat_rq_starve", 0, 0, 0),
	IGNORED("rdma_stat_rq_poll", 0, 0, 0),
	IGNORED("rdma_stat_rq_prod", 0, 0, 0),
	IGNORED("rdma_stat_sq_poll", 0, 0, 0),
	IGNORED("rdma_stat_sq_prod", 0, 0, 0),
	/* The C module has none of these. */
	TUNABLE("reliable_reply", RPCRDMA_RS_SVC_RELIABLE_REPLY, 0, 1),
	TUNABLE("reliable_reply_bytes", RPCRDMA_RS_SVC_RELIABLE_REPLY_BYTES,
		65536, 1 << 30),
	TUNABLE("reliable_reply_timeout", RPCRDMA_RS_SVC_RELIABLE_REPLY_TIMEOUT,
		1, 3600),
	TUNABLE("max_version", RPCRDMA_RS_SVC_MAX_VERSION, 1, 2),
	COUNTER("rdma_stat_pull", RPCRDMA_RS_SVC_PULLS),
	COUNTER("rdma_stat_pull_bytes", RPCRDMA_RS_SVC_PULL_BYTES),
	COUNTER("rdma_stat_pull_done", RPCRDMA_RS_SVC_PULLED),
	COUNTER("rdma_stat_pull_overdue", RPCRDMA_RS_SVC_PULLS_OVERDUE),
	COUNTER("rdma_stat_pull_refused", RPCRDMA_RS_SVC_PULLS_REFUSED),
};

static struct ctl_table_header *client_header, *server_header;

int rpcrdma_rs_sysctl_register(void)
{
	/* As the other tunables of sunrpc. */
	if (IS_ENABLED(CONFIG_SUNRPC_DEBUG))
		client_header = register_sysctl("sunrpc", client);
	server_header = register_sysctl("sunrpc/svc_rdma", server);
	if (server_header && (client_header || !IS_ENABLED(CONFIG_SUNRPC_DEBUG)))
		return 0;
	rpcrdma_rs_sysctl_unregister();
	return -ENOMEM;
}

void rpcrdma_rs_sysctl_unregister(void)
{
	/* One that is not registered is NULL. */
	unregister_sysctl_table(server_header);
	unregister_sysctl_table(client_header);
	server_header = NULL;
	client_header = NULL;
}
