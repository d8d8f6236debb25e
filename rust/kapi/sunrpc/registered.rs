// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The registration of a class of transports with the RPC layer.

use crate::kapi::sys::{
    module,
    single::Taken,
    workqueue::OwnedQueue, //
};
use kernel::sync::Arc;

/// What the RPC layer knows transports by, of a client or of a server.
pub(crate) trait RpcClass: Sync + 'static {
    /// Nobody finds it any more, to make a transport of it: whoever has found it has a reference to
    /// this module as long as it uses it, and so does each transport. May sleep.
    ///
    /// # Safety
    ///
    /// It must be registered.
    unsafe fn unregister(&self);
}

/// A class is registered while this lives. Its end waits for all that is of the class, and so for
/// all that uses this module: it is that of the module.
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
        // Nobody finds the class any more. But a set-up may run for who has found it, and there may
        // be transports, where this is not the end of the module, or an initialisation that failed.
        module::wait_until_unused();
    }
}
