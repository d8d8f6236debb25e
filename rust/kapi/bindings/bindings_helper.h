/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What bindgen reads. Sorted alphabetically.
 */

/* An enum declared before it is used keeps its type in bindgen. */
#include <linux/hrtimer_types.h>

#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/bc_xprt.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/metrics.h>
#include <linux/sunrpc/rdma_rn.h>
#include <linux/sunrpc/rpc_rdma.h>
#include <linux/sunrpc/svc_rdma.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/xprt.h>
#include <linux/sunrpc/xprtrdma.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/mr_pool.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>

#include "helpers.h"
#include "trace.h"

/* Constants that are not plain numbers in C. */
const gfp_t RPCRDMA_RS_CONST_GFP_NOFS = GFP_NOFS;
const gfp_t RPCRDMA_RS_CONST_GFP_NOIO = GFP_NOIO;
const gfp_t RPCRDMA_RS_CONST___GFP_NORETRY = __GFP_NORETRY;
const gfp_t RPCRDMA_RS_CONST___GFP_NOMEMALLOC = __GFP_NOMEMALLOC;
const unsigned long RPCRDMA_RS_CONST_HZ = HZ;
const unsigned long RPCRDMA_RS_CONST_ARCH_DMA_MINALIGN = ARCH_DMA_MINALIGN;
const unsigned int RPCRDMA_RS_CONST_TASK_NORMAL = TASK_NORMAL;

/* A constant that `kernel::bindings` has since 7.3. */
const u32 RPCRDMA_RS_CONST_IPPROTO_MAX = IPPROTO_MAX;
