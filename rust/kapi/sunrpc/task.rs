// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tasks of the RPC layer.

use crate::kapi::{
    bindings,
    trace::TaskId, //
};
use kernel::types::Opaque;

/// A task that an RPC belongs to, borrowed from whoever knows that it stays, with its client if it
/// has one.
#[repr(transparent)]
pub(crate) struct Task(Opaque<bindings::rpc_task>);

/// What the RPC layer ends a task with that was killed.
const KILLED: i32 = -(bindings::ERESTARTSYS as i32);

impl Task {
    /// Borrows a task.
    ///
    /// # Safety
    ///
    /// `raw` must be a valid task for `'a`, and so must its client, if it has one.
    pub(super) unsafe fn from_raw<'a>(raw: *const bindings::rpc_task) -> &'a Self {
        // SAFETY: Valid by the contract of this function; the type is transparent, and opaque.
        unsafe { &*raw.cast() }
    }

    /// Returns whether it was killed, so that it wants no Reply any more. Any context.
    pub(crate) fn is_killed(&self) -> bool {
        // SAFETY: Valid while it is borrowed. Others may change it at any time, as a word.
        unsafe { (&raw const (*self.0.get()).tk_rpc_status).read_volatile() == KILLED }
    }

    /// Returns what trace events call it.
    pub(crate) fn id(&self) -> TaskId {
        let task = self.0.get();
        // SAFETY: Valid while it is borrowed. One that answers a reverse Call has no client.
        unsafe {
            let client = (*task).tk_client;
            let number = (!client.is_null()).then(|| (*client).cl_clid);
            TaskId::new(u32::from((*task).tk_pid), number)
        }
    }
}
