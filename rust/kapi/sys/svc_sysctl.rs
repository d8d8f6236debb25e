// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tunables of the server under `/proc/sys/sunrpc/svc_rdma`.
//!
//! The table itself is C, in `bindings/svc_sysctl.c`. The tunables are read for each connection.

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

static TABLE: Single = Single::new();

/// Keeps the table registered.
///
/// # Invariants
///
/// The table is registered, and nobody else has it.
pub(crate) struct SvcSysctl {
    _taken: Taken,
}

impl SvcSysctl {
    /// Registers the table. `EBUSY` when it is registered. May sleep.
    pub(crate) fn register() -> Result<Self> {
        let taken = TABLE.take()?;
        // SAFETY: Nobody else has the table, so it is not registered.
        to_result(unsafe { bindings::svc_sysctl_register() })?;
        // INVARIANT: It is registered now, and was taken above.
        Ok(Self { _taken: taken })
    }
}

impl Drop for SvcSysctl {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the table is registered.
        unsafe { bindings::svc_sysctl_unregister() };
    }
}

/// Credits of a connection, at most; 4 to 16384.
pub(crate) fn max_requests() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::svc_max_requests() }
}

/// Bytes of an inline message on a new connection; 4096 to 65536.
pub(crate) fn max_request_size() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::svc_max_req_size() }
}

/// Whether Replies are provided for clients to pull.
pub(crate) fn reliable_reply() -> bool {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::svc_reliable_reply() }
}

/// Bytes of Replies that are provided on one connection, at most.
pub(crate) fn reliable_reply_bytes() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::svc_reliable_reply_bytes() }
}

/// For how many seconds a Reply is provided.
pub(crate) fn reliable_reply_timeout() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::svc_reliable_reply_timeout() }
}
