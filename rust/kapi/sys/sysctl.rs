// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tunables under `/proc/sys/sunrpc`, and the registration of their tables.
//!
//! The tables are C, in `bindings/sysctl.c`, and have the counters, too. Without
//! `CONFIG_SUNRPC_DEBUG` there is no table of the client, and its tunables keep their first values.

use crate::kapi::{
    bindings,
    sys::single::{
        Single,
        Taken, //
    },
};
use kernel::{
    error::to_result,
    prelude::*, //
};

static TABLES: Single = Single::new();

/// Keeps the tables registered.
///
/// # Invariants
///
/// The tables are registered, and nobody else has them.
pub(crate) struct Sysctl {
    _taken: Taken,
}

impl Sysctl {
    /// Registers the tables; that of the client only where the kernel has `CONFIG_SUNRPC_DEBUG`, as
    /// the other tunables of sunrpc.
    ///
    /// `EBUSY` when they are registered. May sleep.
    pub(crate) fn register() -> Result<Self> {
        let taken = TABLES.take()?;
        // SAFETY: Nobody else has the tables, so they are not registered.
        to_result(unsafe { bindings::sysctl_register() })?;
        // INVARIANT: They are registered now, and were taken above.
        Ok(Self { _taken: taken })
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the tables are registered.
        unsafe { bindings::sysctl_unregister() };
    }
}

/// A number that an administrator may set.
///
/// Those of the client are in `/proc/sys/sunrpc`, with the prefix `rdma_`. The number of slots is
/// read when a transport is made, the time of silence at each look, all others for each connection.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Tunable {
    /// Credits that a new transport asks for, 4 to 16384.
    SlotTableEntries = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_SLOT_TABLE_ENTRIES,
    /// Bytes that a Receive of a new connection holds, 1024 to 65536.
    MaxInlineRead = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_MAX_INLINE_READ,
    /// Bytes that a Send of a new connection holds, 1024 to 65536.
    MaxInlineWrite = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_MAX_INLINE_WRITE,
    /// Zero if the Write chunks of a new connection have no room for XDR padding. Not in the C
    /// module.
    WriteChunkPadding = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_WRITE_CHUNK_PADDING,
    /// Seconds of silence after which a server is asked whether it is there, up to 3600; 0 if
    /// never. Not in the C module.
    KeepaliveTime = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_KEEPALIVE_TIME,
    /// Pages that one memory region of a new connection may cover, 17 to 257 where a page has 4
    /// KiB; 0 for as many as the device can. Not in the C module.
    RegionPages = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_REGION_PAGES,
    /// Zero if Replies are not pulled from servers that provide them. Not in the C module.
    ReliableReply = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_RELIABLE_REPLY,
    /// The highest version of the protocol that a new connection tries, 1 or 2. Not in the C
    /// module.
    MaxVersion = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_MAX_VERSION,
    /// Credits of a connection at the server, at most; 4 to 16384. This and all below are in
    /// `/proc/sys/sunrpc/svc_rdma`.
    SvcMaxRequests = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_SVC_MAX_REQUESTS,
    /// Bytes of an inline message on a new connection; 4096 to 65536.
    SvcMaxReqSize = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_SVC_MAX_REQ_SIZE,
    /// Zero if no Replies are provided for clients to pull. Not in the C module.
    SvcReliableReply = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_SVC_RELIABLE_REPLY,
    /// Bytes of Replies that are provided on one connection, at most. Not in the C module.
    SvcReliableReplyBytes = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_SVC_RELIABLE_REPLY_BYTES,
    /// For how many seconds a Reply is provided. Not in the C module.
    SvcReliableReplyTimeout = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_SVC_RELIABLE_REPLY_TIMEOUT,
    /// The highest version of the protocol that a new connection may speak at the server, 1 or 2.
    /// Not in the C module.
    SvcMaxVersion = bindings::rpcrdma_rs_tunable_RPCRDMA_RS_SVC_MAX_VERSION,
}

impl Tunable {
    /// Returns its value. Any context.
    pub(crate) fn get(self) -> u32 {
        // SAFETY: The number is that of a tunable.
        unsafe { bindings::tunable(self as u32) }
    }

    /// Returns whether it is not zero. Any context.
    pub(crate) fn is_set(self) -> bool {
        self.get() != 0
    }
}
