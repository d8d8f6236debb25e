// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! References to this module.

use crate::kapi::bindings;
use kernel::time::{
    delay::fsleep,
    Delta, //
};

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
