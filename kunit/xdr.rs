// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the protocol crate, built with the kernel's compiler flags, does what it does under
//! cargo.

use kernel::prelude::*;
use xdr::checks::{
    v2,
    CHECKS, //
};

#[kunit_tests(rpcrdma_xdr)]
mod suite {
    use super::*;

    #[test]
    fn checks() -> Result {
        let mut result = Ok(());
        for (name, check) in Iterator::chain(CHECKS.iter(), v2::CHECKS) {
            if let Err(reason) = check() {
                pr_err!("# xdr::checks::check_{name}: not so: {reason}\n");
                result = Err(EINVAL);
            }
        }
        result
    }
}
