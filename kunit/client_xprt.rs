// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a transport knows whether there is swap on its mount.

use super::*;
use crate::{
    kapi::sunrpc::Unmounted,
    kunit::same, //
};

#[kunit_tests(rpcrdma_swapper)]
mod suite {
    use super::*;

    #[test]
    fn an_end_without_a_beginning_counts_for_nothing() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        let is_swapper = || Ok::<_, Error>(mount.transport().state.xprt.is_swapper());
        // The transport was added to the mount after swapping had begun.
        mount.disable_swap();
        same("in use for swap", is_swapper()?, false)?;
        mount.enable_swap();
        same("after it began", is_swapper()?, true)?;
        mount.disable_swap();
        same("after it ended", is_swapper()?, false)
    }
}
