// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How far an RPC is with its Call. Before that is sent nobody may answer it: who sends it has its
//! buffers. Its task has the outcome of sending it before it waits for the Reply, and the RPC layer
//! takes no error in between: it would be forgotten.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::bindings;
use core::ffi::c_int;
use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
};

/// The Call was sent, or is posted now.
const SENT: i32 = 0;
/// The task waits for the Reply.
const WAITS: i32 = 1;
/// The Call was not sent.
const UNSENT: i32 = 2;

/// [`UNSENT`], [`SENT`], [`WAITS`], or the error that the RPC ends with as soon as its task waits.
pub(super) struct Progress(Atomic<i32>);

impl Progress {
    pub(super) fn new() -> Self {
        Self(Atomic::new(UNSENT))
    }

    /// Notes that the Call is posted now, so that no answer to it can have come yet. What was done
    /// before that is seen by whoever answers.
    #[inline]
    pub(super) fn sent(&self) {
        self.0.store(SENT, Release);
    }

    /// Notes that the Call is to be sent, perhaps not for the first time.
    #[inline]
    pub(super) fn unsent(&self) {
        self.0.store(UNSENT, Relaxed);
    }

    /// Returns whether nobody may answer the RPC: its Call was not sent.
    #[inline]
    pub(super) fn is_unsent(&self) -> bool {
        self.0.load(Acquire) == UNSENT
    }

    /// Returns whether the RPC has an error already.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.0.load(Relaxed) < SENT
    }

    /// Notes that the task waits from here on, unless there is an error already.
    #[inline]
    fn wait(&self) -> Result<(), c_int> {
        if self.has_failed() {
            return Err(self.0.load(Relaxed));
        }
        self.0.store(WAITS, Relaxed);
        Ok(())
    }

    /// Ends the RPC with an error; false if its task does not wait yet.
    fn fail(&self, error: Error) -> bool {
        let waits = self.0.load(Relaxed) == WAITS;
        if !waits {
            self.0.store(error.to_errno(), Relaxed);
        }
        waits
    }

    /// Makes the task wait, unless there is an error.
    ///
    /// # Safety
    ///
    /// To be called for a task whose request, of this progress, was sent and is in the receive
    /// queue, the lock of which is held; by that task.
    #[inline]
    pub(super) unsafe fn wait_for_reply(&self, task: *mut bindings::rpc_task) {
        // SAFETY: The contract of this function is that of the RPC layer's.
        unsafe { bindings::xprt_wait_for_reply_request_def(task) };
        if let Err(error) = self.wait() {
            // SAFETY: The contract of this function has that of the other one in it.
            unsafe { end(task, error) };
        }
    }

    /// Ends the RPC with an error, as soon as its task waits.
    ///
    /// # Safety
    ///
    /// To be called for a task whose request, of this progress, is in the receive queue, the lock
    /// of which is held.
    #[cold]
    pub(super) unsafe fn end_with(&self, task: *mut bindings::rpc_task, error: Error) {
        if self.fail(error) {
            // SAFETY: The contract of this function is that of the other one.
            unsafe { end(task, error.to_errno()) };
        }
    }
}

/// Ends the RPC of a task with an error. After `EAGAIN` the RPC layer sends it once more.
///
/// # Safety
///
/// The request of the task, which must have been sent, must be in the receive queue, the lock of
/// which must be held; the task must wait.
unsafe fn end(task: *mut bindings::rpc_task, error: c_int) {
    if error == EAGAIN.to_errno() {
        // One that does not time out would not be encoded again on the connection that it was sent
        // on (rpc_task_need_encode()).
        // SAFETY: A task stays, with its request and the transport of that, as long as the request
        // is in the queue. Who sends it has noted its connection, and waits now.
        unsafe {
            let rqst = (*task).tk_rqstp;
            let cookie = (&raw const (*(*rqst).rq_xprt).connect_cookie).read_volatile();
            (*rqst).rq_connect_cookie = cookie.wrapping_sub(1);
        }
    }
    // SAFETY: A task stays as long as its request is in the queue.
    unsafe {
        (*task).tk_status = error;
        bindings::xprt_complete_rqst(task, 0);
    }
}
