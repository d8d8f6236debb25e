// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! This module itself: its version, and references to it.

use crate::kapi::bindings;
use kernel::time::{
    delay::fsleep,
    Delta, //
};

/// Says in the log which version this is, and which kernel it was built for. Any context.
pub(crate) fn say_version() {
    // SAFETY: No precondition.
    unsafe { bindings::say_version() };
}

/// Waits until there is no reference to this module, and nobody is in its text any more who has
/// given one back: who does so with a function of the module returns into that. Sleeps.
pub(in crate::kapi) fn wait_until_unused() {
    // SAFETY: No precondition.
    while unsafe { bindings::module_is_used() } {
        fsleep(Delta::from_millis(10));
    }
    // SAFETY: No precondition, but that it may sleep. A task that was preempted there has not
    // waited for anything since.
    unsafe { bindings::synchronize_rcu_tasks() };
}

/// Keeps this module loaded.
///
/// # Invariants
///
/// Owns one reference to this module.
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// Takes a reference; `None` if the module is being unloaded. Any context.
    pub(crate) fn try_get() -> Option<Self> {
        // SAFETY: No precondition.
        let got = unsafe { bindings::try_module_get() };
        // INVARIANT: On success there is a reference to own.
        got.then(|| Self(()))
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: By the type invariant there is a reference to give back.
        unsafe { bindings::module_put() };
    }
}
