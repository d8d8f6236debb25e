// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! References to this module.

use crate::kapi::bindings;

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
