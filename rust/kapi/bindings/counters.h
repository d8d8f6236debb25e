/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Lines of a sysctl table that show a counter.
 */
#ifndef RPCRDMA_RS_COUNTERS_H
#define RPCRDMA_RS_COUNTERS_H

#include <linux/sysctl.h>

int rpcrdma_rs_counter_handler(const struct ctl_table *table, int write,
			       void *buffer, size_t *lenp, loff_t *ppos);

#define COUNTER(name, which) {					\
	.procname	= name,					\
	.mode		= 0644,					\
	.proc_handler	= rpcrdma_rs_counter_handler,		\
	.extra1		= (void *)(unsigned long)(which),	\
}

#endif /* RPCRDMA_RS_COUNTERS_H */
