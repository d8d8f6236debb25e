// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The registration of a class of transports with the RPC layer.

use crate::kapi::sys::{
    single::Taken,
    workqueue::OwnedQueue, //
};
use kernel::sync::Arc;

/// What the RPC layer knows transports by, of a client or of a server.
pub(crate) trait RpcClass: Sync + 'static {
    /// The RPC layer makes no transport of it any more. May sleep.
    ///
    /// # Safety
    ///
    /// It must be registered.
    unsafe fn unregister(&self);
}

/// A class is registered while this lives.
///
/// # Invariants
///
/// `class` is registered.
pub(crate) struct Registered<C: RpcClass> {
    class: &'static C,
    // What is queued is done before the queue is gone, which is after the class is.
    _queue: Option<Arc<OwnedQueue>>,
    _taken: Taken,
}

impl<C: RpcClass> Registered<C> {
    /// # Safety
    ///
    /// The class must be registered, in the place that was taken, and its transports work on that
    /// queue or on none.
    pub(super) unsafe fn new(
        class: &'static C,
        queue: Option<Arc<OwnedQueue>>,
        taken: Taken,
    ) -> Self {
        // INVARIANT: Registered by the contract of this function.
        Self {
            class,
            _queue: queue,
            _taken: taken,
        }
    }
}

impl<C: RpcClass> Drop for Registered<C> {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant.
        unsafe { self.class.unregister() };
    }
}
