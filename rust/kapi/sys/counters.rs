// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counters of all connections since the module was loaded. They are C, in `bindings/sysctl.c`.

use crate::kapi::bindings;

/// What is counted.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Counter {
    /// At the client: Replies pulled.
    ClientPulls = bindings::rpcrdma_rs_counter_RPCRDMA_RS_PULLS,
    /// At the client: bytes of these.
    ClientPullBytes = bindings::rpcrdma_rs_counter_RPCRDMA_RS_PULL_BYTES,
    /// At the client: RDMA_DONE messages sent.
    ClientDones = bindings::rpcrdma_rs_counter_RPCRDMA_RS_DONES,
    /// At the server, as all below. RDMA Reads: for each segment of a Read chunk one, or more where
    /// it goes to several places.
    Read = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_READ,
    /// Messages received.
    Receive = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_RECV,
    /// RDMA Writes: for each segment that is used of a Write or Reply chunk one, or more where it
    /// comes from several places.
    Write = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_WRITE,
    /// Times that something had to wait for room in a send queue.
    Starved = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_SQ_STARVE,
    /// Replies that were provided for the client to pull.
    Pulls = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULLS,
    /// Bytes of these.
    PullBytes = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULL_BYTES,
    /// Times that a client said that it has pulled one, or does not want it.
    Pulled = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULLED,
    /// Replies that were taken back, since the client has not said so in time.
    PullsOverdue = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULLS_OVERDUE,
    /// Replies that were refused instead, since others are not pulled yet.
    PullsRefused = bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULLS_REFUSED,
}

/// Counts one. Any context.
pub(crate) fn count(counter: Counter) {
    count_all(counter, 1);
}

/// Counts `n`. Any context.
pub(crate) fn count_all(counter: Counter, n: usize) {
    // SAFETY: The number is that of a counter.
    unsafe { bindings::count(counter as u32, n) };
}
