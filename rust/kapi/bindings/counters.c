// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters of all connections since the module was loaded. A write of anything
 * makes one zero.
 */
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/percpu.h>

#include "counters.h"
#include "helpers.h"

static DEFINE_PER_CPU(unsigned long [RPCRDMA_RS_COUNTERS], counters);

void rpcrdma_rs_count(enum rpcrdma_rs_counter which, unsigned long n)
{
	this_cpu_add(counters[which], n);
}

int rpcrdma_rs_counter_handler(const struct ctl_table *table, int write,
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
