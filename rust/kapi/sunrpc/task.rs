// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tasks of the RPC layer.

use crate::kapi::{
    bindings,
    trace::TaskId, //
};
use core::marker::PhantomData;

/// A task that an RPC belongs to, borrowed from whoever knows that it stays.
///
/// # Invariants
///
/// `raw` is a valid task for `'a`, and so is its client, if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    raw: *const bindings::rpc_task,
    _borrow: PhantomData<&'a ()>,
}

/// What the RPC layer ends a task with that was killed.
const KILLED: i32 = -(bindings::ERESTARTSYS as i32);

impl Task<'_> {
    /// # Safety
    ///
    /// `raw` must be as the type invariant says.
    pub(super) unsafe fn from_raw(raw: *const bindings::rpc_task) -> Self {
        // INVARIANT: The contract of this function is the type invariant.
        Self {
            raw,
            _borrow: PhantomData,
        }
    }

    /// Whether it was killed, so that it wants no Reply any more. Any context.
    pub(crate) fn is_killed(&self) -> bool {
        // SAFETY: By the type invariant. Others may change it at any time, as a word.
        unsafe { (&raw const (*self.raw).tk_rpc_status).read_volatile() == KILLED }
    }

    /// What trace events call it.
    pub(crate) fn id(&self) -> TaskId {
        // SAFETY: By the type invariant. One that answers a reverse Call has no client.
        unsafe {
            let client = (*self.raw).tk_client;
            let number = (!client.is_null()).then(|| (*client).cl_clid);
            TaskId::new(u32::from((*self.raw).tk_pid), number)
        }
    }
}
