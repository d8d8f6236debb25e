// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counters of all connections since the module was loaded. They are C, in `bindings/counters.c`.

use crate::kapi::bindings;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    /// At the client: Replies pulled.
    ClientPulls,
    /// At the client: bytes of these.
    ClientPullBytes,
    /// At the client: RDMA_DONE messages sent.
    ClientDones,
    /// At the server, as all below. RDMA Reads: for each segment of a Read chunk one, or more where
    /// it goes to several places.
    Read,
    /// Messages received.
    Receive,
    /// RDMA Writes: for each segment that is used of a Write or Reply chunk one, or more where it
    /// comes from several places.
    Write,
    /// Times that something had to wait for room in a send queue.
    Starved,
    /// Replies that were provided for the client to pull.
    Pulls,
    /// Bytes of these.
    PullBytes,
    /// Times that a client said that it has pulled one, or does not want it.
    Pulled,
    /// Replies that were taken back, since the client has not said so in time.
    PullsOverdue,
    /// Replies that were refused instead, since others are not pulled yet.
    PullsRefused,
}

/// Counts one. Any context.
pub(crate) fn count(counter: Counter) {
    count_all(counter, 1);
}

/// Counts `n`. Any context.
pub(crate) fn count_all(counter: Counter, n: usize) {
    let which = match counter {
        Counter::ClientPulls => bindings::rpcrdma_rs_counter_RPCRDMA_RS_PULLS,
        Counter::ClientPullBytes => bindings::rpcrdma_rs_counter_RPCRDMA_RS_PULL_BYTES,
        Counter::ClientDones => bindings::rpcrdma_rs_counter_RPCRDMA_RS_DONES,
        Counter::Read => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_READ,
        Counter::Receive => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_RECV,
        Counter::Write => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_WRITE,
        Counter::Starved => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_SQ_STARVE,
        Counter::Pulls => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULLS,
        Counter::PullBytes => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULL_BYTES,
        Counter::Pulled => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULLED,
        Counter::PullsOverdue => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULLS_OVERDUE,
        Counter::PullsRefused => bindings::rpcrdma_rs_counter_RPCRDMA_RS_SVC_PULLS_REFUSED,
    };
    // SAFETY: The number is that of a counter.
    unsafe { bindings::count(which, n) };
}
