// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a failed attempt to connect ends no RPC of a hard mount.

use crate::{
    kapi::sunrpc::connecting::*,
    kunit::same, //
};

#[kunit_tests(rpcrdma_retriable)]
mod suite {
    use super::*;

    #[test]
    fn the_rpc_layer_tries_again_after_any_error() -> Result {
        // Those that it does not make the result of an RPC.
        let known = [
            ECONNABORTED,
            ECONNREFUSED,
            ECONNRESET,
            EHOSTUNREACH,
            ENETUNREACH,
            ENOBUFS,
            ENOTCONN,
            EPROTO,
            ETIMEDOUT,
        ];
        for errno in 1..200 {
            let told = retriable(Error::from_errno(-errno));
            if !known.contains(&told) {
                return same("told", told, ENOTCONN);
            }
        }
        Ok(())
    }

    #[test]
    fn a_mount_fails_at_once_where_there_is_no_way() -> Result {
        for error in [EADDRNOTAVAIL, EAFNOSUPPORT, EINVAL, ENODEV, EOPNOTSUPP] {
            same("told", retriable(error), EPROTO)?;
        }
        same("told", retriable(ENETDOWN), ENETUNREACH)
    }
}
