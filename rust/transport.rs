// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RPC-over-RDMA as both ends do it.

pub(crate) mod bring_up;
pub(crate) mod chunk_limits;
mod completions;
pub(crate) mod continued;
pub(crate) mod endpoint;
pub(crate) mod flow;
pub(crate) mod header;
mod memory_retry;
pub(crate) mod negotiated;
pub(crate) mod negotiation;
mod padding;
pub(crate) mod plan;
mod posting;
pub(crate) mod provided;
pub(crate) mod provided_total;
pub(crate) mod providing;
pub(crate) mod registration;
pub(crate) mod segment_cursor;
pub(crate) mod send_buffer;
pub(crate) mod send_queue;
pub(crate) mod split;
mod status;
pub(crate) mod terms;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
mod trace;
pub(crate) mod transfer;
mod turns;
pub(crate) mod unsupported;
pub(crate) mod work;
