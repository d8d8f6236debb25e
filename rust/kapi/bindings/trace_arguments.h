/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What trace events take of which there is more than one number.
 */
#ifndef RPCRDMA_RS_TRACE_ARGUMENTS_H
#define RPCRDMA_RS_TRACE_ARGUMENTS_H

#include <linux/types.h>

/* A task of the RPC layer, and its client. */
struct rpcrdma_rs_task {
	u32 task;
	u32 client;
};

/* A memory region, and what it covers. */
struct rpcrdma_rs_region {
	u64 offset;
	u32 length;
	u32 handle;
	u32 id;
	u32 elements;
	int direction;
};

#endif /* RPCRDMA_RS_TRACE_ARGUMENTS_H */
