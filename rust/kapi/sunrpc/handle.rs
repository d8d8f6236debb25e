// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What keeps a transport's memory from being freed, without being a reference to the transport:
//! the RPC layer may destroy it, and then waits for the last handle to go.

use crate::kapi::sys::completion::Completion;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Where handles are waited for, and what they use beside the transport.
#[pin_data]
pub(super) struct Common<B> {
    /// Completed when the last handle is gone.
    #[pin]
    gone: Completion,
    #[pin]
    pub(super) beside: B,
}

impl<B> Common<B> {
    /// Creates that of one transport. May sleep.
    pub(super) fn new(beside: impl PinInit<B>) -> Result<Pin<KBox<Self>>> {
        KBox::pin_init(
            pin_init!(Self {
                gone <- Completion::new(),
                beside <- beside,
            }),
            GFP_KERNEL,
        )
    }

    /// Waits until the last handle is gone. Sleeps.
    pub(super) fn wait(&self) {
        self.gone.wait();
    }
}

/// What the handles of a transport share.
///
/// # Invariants
///
/// Transport and `common` are valid as long as this is: whoever frees them waits for it.
pub(super) struct HandleInner<X, B> {
    xprt: NonNull<X>,
    common: NonNull<Common<B>>,
}

// SAFETY: The transport is only pointed to; completions may be used by any thread, and so may `B`.
unsafe impl<X, B: Send + Sync> Send for HandleInner<X, B> {}
// SAFETY: The transport is only pointed to; completions may be used by several threads at once, and
// so may `B`.
unsafe impl<X, B: Send + Sync> Sync for HandleInner<X, B> {}

impl<X, B> HandleInner<X, B> {
    /// Creates the first handle of a transport.
    ///
    /// # Safety
    ///
    /// The transport and `common` must not be freed before [`Common::wait`] has returned.
    pub(super) unsafe fn new(xprt: NonNull<X>, common: &Common<B>) -> Result<Arc<Self>> {
        // INVARIANT: The contract of this function is the type invariant.
        let inner = Self {
            xprt,
            common: NonNull::from(common),
        };
        Ok(Arc::new(inner, GFP_KERNEL)?)
    }

    pub(super) fn as_raw(&self) -> *mut X {
        self.xprt.as_ptr()
    }

    /// Returns what they use beside the transport.
    pub(super) fn beside(&self) -> &B {
        // SAFETY: Valid by the type invariant.
        unsafe { &self.common.as_ref().beside }
    }
}

impl<X, B> Drop for HandleInner<X, B> {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant, until it is told here.
        unsafe { self.common.as_ref() }.gone.complete_all();
    }
}
