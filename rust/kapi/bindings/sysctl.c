// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tunables and counters of the client under /proc/sys/sunrpc. The number of slots
 * takes effect when the next transport is created, the time of silence within
 * half a minute, the others when a transport connects next; those marked dead
 * are accepted and ignored.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/sysctl.h>

#include "counters.h"
#include "helpers.h"

/* Credits asked for by a transport. */
static unsigned int slot_table_entries = 128;
/* Bytes that a Receive or a Send holds, transport header included. */
static unsigned int max_inline_read = 8192;
static unsigned int max_inline_write = 8192;
/* Seconds of silence before a server is asked; 0: never. Not in the C module. */
static unsigned int keepalive_time = 30;
/* Pages that one memory region covers; 0: what the device can do. Not in the C
 * module.
 */
static unsigned int region_pages;
/* Whether Replies are pulled from servers that provide them. Not in the C
 * module.
 */
static unsigned int reliable_reply = 1;
/* Zero: Write chunks have room for XDR padding. */
static int pad_optimize = 1;

unsigned int rpcrdma_rs_sysctl_slot_table_entries(void)
{
	return READ_ONCE(slot_table_entries);
}

unsigned int rpcrdma_rs_sysctl_max_inline_read(void)
{
	return READ_ONCE(max_inline_read);
}

unsigned int rpcrdma_rs_sysctl_max_inline_write(void)
{
	return READ_ONCE(max_inline_write);
}

unsigned int rpcrdma_rs_sysctl_keepalive_time(void)
{
	return READ_ONCE(keepalive_time);
}

unsigned int rpcrdma_rs_sysctl_region_pages(void)
{
	return READ_ONCE(region_pages);
}

bool rpcrdma_rs_sysctl_pad_optimize(void)
{
	return READ_ONCE(pad_optimize);
}

bool rpcrdma_rs_sysctl_reliable_reply(void)
{
	return READ_ONCE(reliable_reply);
}

#if IS_ENABLED(CONFIG_SUNRPC_DEBUG)

/* Dead. */
static unsigned int inline_write_padding;
static unsigned int memreg_strategy = 5;

static const unsigned int slot_range[] = { 4, 16384 };
static const unsigned int inline_range[] = { 1024, 65536 };
static const unsigned int keepalive_range[] = { 0, 3600 };
static const unsigned int bool_range[] = { 0, 1 };
static const unsigned int region_range[] = { 0, SZ_1M / PAGE_SIZE + 1 };
static const unsigned int padding_range[] = { 0, PAGE_SIZE };
static const unsigned int memreg_range[] = { 0, 6 };

/* With fewer, 1 MiB would not fit in the 16 segments that every server takes. */
#define LEAST_REGION_PAGES (SZ_1M / PAGE_SIZE / 16 + 1)

static int region_pages_handler(const struct ctl_table *table, int dir,
				void *buffer, size_t *lenp, loff_t *ppos)
{
	unsigned int pages = READ_ONCE(region_pages);
	const struct ctl_table one = {
		.data	= &pages,
		.maxlen	= sizeof(pages),
		.mode	= table->mode,
		.extra1	= table->extra1,
		.extra2	= table->extra2,
	};
	int rc;

	rc = proc_dointvec_minmax(&one, dir, buffer, lenp, ppos);
	if (rc || !SYSCTL_USER_TO_KERN(dir))
		return rc;
	if (pages && pages < LEAST_REGION_PAGES)
		return -EINVAL;
	WRITE_ONCE(region_pages, pages);
	return 0;
}

#define RANGED_BY(handler, name, var, range) {			\
	.procname	= name,					\
	.data		= &(var),				\
	.maxlen		= sizeof(var),				\
	.mode		= 0644,					\
	.proc_handler	= handler,				\
	.extra1		= (void *)&(range)[0],			\
	.extra2		= (void *)&(range)[1],			\
}
#define RANGED(name, var, range) \
	RANGED_BY(proc_dointvec_minmax, name, var, range)

static const struct ctl_table tunables[] = {
	RANGED("rdma_slot_table_entries", slot_table_entries, slot_range),
	RANGED("rdma_max_inline_read", max_inline_read, inline_range),
	RANGED("rdma_max_inline_write", max_inline_write, inline_range),
	RANGED("rdma_keepalive_time", keepalive_time, keepalive_range),
	RANGED_BY(region_pages_handler, "rdma_region_pages", region_pages,
		  region_range),
	RANGED("rdma_reliable_reply", reliable_reply, bool_range),
	/* Nor are these in the C module. */
	COUNTER("rdma_stat_pull", RPCRDMA_RS_PULLS),
	COUNTER("rdma_stat_pull_bytes", RPCRDMA_RS_PULL_BYTES),
	COUNTER("rdma_stat_pull_done", RPCRDMA_RS_DONES),
	RANGED("rdma_inline_write_padding", inline_write_padding, padding_range),
	RANGED("rdma_memreg_strategy", memreg_strategy, memreg_range),
	{
		.procname	= "rdma_pad_optimize",
		.data		= &pad_optimize,
		.maxlen		= sizeof(pad_optimize),
		.mode		= 0644,
		.proc_handler	= proc_dointvec,
	},
};

static struct ctl_table_header *registered;

int rpcrdma_rs_sysctl_register(void)
{
	registered = register_sysctl("sunrpc", tunables);
	return registered ? 0 : -ENOMEM;
}

void rpcrdma_rs_sysctl_unregister(void)
{
	unregister_sysctl_table(registered);
	registered = NULL;
}

#else

int rpcrdma_rs_sysctl_register(void)
{
	return 0;
}

void rpcrdma_rs_sysctl_unregister(void)
{
}

#endif
