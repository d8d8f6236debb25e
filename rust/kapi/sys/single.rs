// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What there is one of.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Release, //
    },
};

/// Something that one owner at a time may have: a place of static memory, a table of C.
pub(in crate::kapi) struct Single(Atomic<bool>);

impl Single {
    /// Creates one that nobody has.
    pub(in crate::kapi) const fn new() -> Self {
        Self(Atomic::new(false))
    }

    /// Takes it. `EBUSY` while another has it. Any context.
    pub(in crate::kapi) fn take(&'static self) -> Result<Taken> {
        if self.0.xchg(true, Full) {
            return Err(EBUSY);
        }
        // INVARIANT: Nobody had it.
        Ok(Taken(self))
    }
}

/// The right to it, until this is dropped.
///
/// # Invariants
///
/// There is no other value for the same [`Single`].
pub(in crate::kapi) struct Taken(&'static Single);

impl Drop for Taken {
    fn drop(&mut self) {
        // What was done with it comes before what the next owner does.
        self.0 .0.store(false, Release);
    }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
