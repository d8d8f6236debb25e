// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tunables of the client under `/proc/sys/sunrpc`.
//!
//! The table itself is C, in `bindings/sysctl.c`. The number of credits is read when a
//! transport is made, the time of silence at each look, the others for each connection.

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
pub(crate) struct Sysctl {
    _taken: Taken,
}

impl Sysctl {
    /// Registers the table; where the kernel has no `CONFIG_SUNRPC_DEBUG` there is none, as for the
    /// other tunables of sunrpc.
    ///
    /// `EBUSY` when it is registered. May sleep.
    pub(crate) fn register() -> Result<Self> {
        let taken = TABLE.take()?;
        // SAFETY: Nobody else has the table, so it is not registered.
        to_result(unsafe { bindings::sysctl_register() })?;
        // INVARIANT: It is registered now, and was taken above.
        Ok(Self { _taken: taken })
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the table is registered.
        unsafe { bindings::sysctl_unregister() };
    }
}

/// Credits that a new transport asks for, 4 to 16384.
pub(crate) fn slot_table_entries() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::sysctl_slot_table_entries() }
}

/// Seconds of silence after which a server is asked whether it is there, up to 3600; 0 if never.
pub(crate) fn keepalive_time() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::sysctl_keepalive_time() }
}

/// Pages that one memory region of a new connection may cover, 17 to 257 where a page has 4 KiB; 0
/// for as many as the device can.
pub(crate) fn region_pages() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::sysctl_region_pages() }
}

/// Whether the Write chunks of a new connection have no room for XDR padding.
pub(crate) fn pad_optimize() -> bool {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::sysctl_pad_optimize() }
}

/// Bytes that a Receive of a new connection holds, 1024 to 65536.
pub(crate) fn max_inline_read() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::sysctl_max_inline_read() }
}

/// Bytes that a Send of a new connection holds, 1024 to 65536.
pub(crate) fn max_inline_write() -> u32 {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::sysctl_max_inline_write() }
}

/// Whether Replies are pulled from servers that provide them.
pub(crate) fn reliable_reply() -> bool {
    // SAFETY: Reads an integer; no precondition.
    unsafe { bindings::sysctl_reliable_reply() }
}
