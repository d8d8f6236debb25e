// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the ledger that is in use is not made anew.

use crate::{
    kapi::ib::dma_track::*,
    kunit::same, //
};

#[kunit_tests(rpcrdma_ledger)]
mod suite {
    use super::*;

    #[test]
    fn opened_once() -> Result {
        // The module has opened it when it was loaded.
        let before = count();
        same("error", Ledger::open().err(), Some(EBUSY))?;
        same("mappings", count(), before)
    }
}
