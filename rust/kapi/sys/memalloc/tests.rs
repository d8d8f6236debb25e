// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what is allocated on behalf of NFS does not wait for NFS, may take the kernel's
//! reserves where something is swapped to it, and nowhere else.

use crate::{
    kapi::sys::memalloc::*,
    kunit::same, //
};
use kernel::prelude::*;

/// What the current thread's allocations must not enter, and may take: file systems, reserves.
fn marks() -> (bool, bool) {
    // SAFETY: The current task is valid, and nobody else changes these flags of it.
    let flags = unsafe { (*bindings::get_current()).flags };
    let no_file_system = flags & bindings::PF_MEMALLOC_NOFS != 0;
    (no_file_system, flags & bindings::PF_MEMALLOC != 0)
}

const NEITHER: (bool, bool) = (false, false);
const USUAL: (bool, bool) = (true, false);
const SWAPPING: (bool, bool) = (true, true);

#[kunit_tests(rpcrdma_memory)]
mod suite {
    use super::*;

    #[test]
    fn the_reserves_are_for_those_who_swap() -> Result {
        for (reserves, expected) in [(false, USUAL), (true, SWAPPING)] {
            same("before", marks(), NEITHER)?;
            let scope = MemoryScope::enter(reserves);
            same("in the scope", marks(), expected)?;
            drop(scope);
            same("afterwards", marks(), NEITHER)?;
        }
        Ok(())
    }

    #[test]
    fn a_scope_in_another_takes_nothing_away() -> Result {
        for (outer, inner, first, both) in [
            (false, false, USUAL, USUAL),
            (false, true, USUAL, SWAPPING),
            (true, false, SWAPPING, SWAPPING),
            (true, true, SWAPPING, SWAPPING),
        ] {
            let scope = MemoryScope::enter(outer);
            same("in the first", marks(), first)?;
            let second = MemoryScope::enter(inner);
            same("in both", marks(), both)?;
            drop(second);
            same("in the first again", marks(), first)?;
            drop(scope);
            same("afterwards", marks(), NEITHER)?;
        }
        Ok(())
    }
}
