// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Attempts to connect.

use crate::kapi::{
    bindings,
    sys::time, //
};
use kernel::prelude::*;

/// An attempt to connect that the RPC layer waits for. It has locked the transport for it, until
/// this is dropped: an attempt of which nobody says how it ended has failed.
///
/// # Invariants
///
/// The transport is locked by `xprt_lock_connect()` with itself as the cookie, and there is no
/// other value for that lock. It is valid: the RPC layer destroys none that is locked.
pub(crate) struct Connecting {
    xprt: *mut bindings::rpc_xprt,
    program: (u32, u32),
    /// What the tasks are told that wait for it.
    status: Error,
}

// SAFETY: The lock is the cookie's, not a thread's: the RPC layer has it ended by work items.
unsafe impl Send for Connecting {}

impl Connecting {
    /// Takes the lock over from the task that the RPC layer connects for; none if that has not
    /// locked the transport.
    ///
    /// # Safety
    ///
    /// Both must be valid, and the task must have a client.
    pub(super) unsafe fn begin(
        xprt: *mut bindings::rpc_xprt,
        task: *mut bindings::rpc_task,
    ) -> Option<Self> {
        // SAFETY: The task is valid by the contract of this function, and has a client.
        let program = unsafe {
            let client = (*task).tk_client;
            ((*client).cl_prog, (*client).cl_vers)
        };
        // SAFETY: Both are valid by the contract of this function.
        let locked = unsafe { bindings::xprt_lock_connect(xprt, task, xprt.cast()) };
        // INVARIANT: Locked above.
        locked.then_some(Self {
            xprt,
            program,
            status: ENOTCONN,
        })
    }

    /// Returns program and version of the RPC that the RPC layer connects for.
    pub(crate) fn program(&self) -> (u32, u32) {
        self.program
    }

    /// Ends the attempt, which has succeeded. Any context that may take a spin lock.
    pub(crate) fn succeeded(mut self) {
        let xprt = self.xprt;
        // SAFETY: Valid by the type invariant. Only who has it locked changes these; others may
        // read the cookie at any time, as a word.
        unsafe {
            let cookie = &raw mut (*xprt).connect_cookie;
            cookie.write_volatile(cookie.read().wrapping_add(1));
            (*xprt).stat.connect_count += 1;
            (*xprt).stat.connect_time += time::since((*xprt).stat.connect_start);
            bindings::xprt_set_connected(xprt);
        }
        self.status = EAGAIN;
    }

    /// Ends the attempt, which has failed. Any context that may take a spin lock.
    pub(crate) fn failed(mut self, error: Error) {
        self.status = retriable(error);
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        let xprt = self.xprt;
        // SAFETY: Valid, and locked with this cookie, by the type invariant.
        unsafe {
            bindings::xprt_clear_connecting(xprt);
            // Once it is unlocked RPCs are sent, which wait for their Replies where those wait that
            // are to be told.
            bindings::xprt_wake_pending_tasks(xprt, self.status.to_errno());
            bindings::xprt_unlock_connect(xprt, xprt.cast());
        }
    }
}

/// Returns what the RPC layer is told of a failed attempt. Of the errors that it does not know as
/// those of a connection it would make the result of RPCs, even on a hard mount.
fn retriable(error: Error) -> Error {
    match error {
        ENOMEM | EAGAIN => ENOBUFS,
        ENETDOWN => ENETUNREACH,
        ECONNABORTED | ECONNREFUSED | ECONNRESET | EHOSTUNREACH | ENETUNREACH | ENOBUFS
        | ETIMEDOUT => error,
        // There is no way to the address, or no device of use: a mount fails with it at once, and
        // what is mounted tries again.
        EADDRNOTAVAIL | EAFNOSUPPORT | EINVAL | ENODEV | EOPNOTSUPP | EPROTO => EPROTO,
        _ => ENOTCONN,
    }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
