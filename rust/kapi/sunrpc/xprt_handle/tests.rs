// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a failed attempt to connect ends no RPC of a hard mount, except where the mount's
//! network namespace has no network left.

use super::*;
use crate::kunit::same;

#[kunit_tests(rpcrdma_retriable)]
mod suite {
    use super::*;

    #[test]
    fn a_silent_server_is_no_end_of_a_namespace() -> Result {
        same("first namespace", retriable(ENETUNREACH, true), ENETUNREACH)?;
        same("another", retriable(ENETUNREACH, false), EHOSTUNREACH)
    }

    #[test]
    fn a_namespace_without_network_ends_its_mounts() -> Result {
        same("first namespace", retriable(ENETDOWN, true), EPROTO)?;
        same("another", retriable(ENETDOWN, false), ENETUNREACH)
    }

    #[test]
    fn the_rpc_layer_tries_again_after_any_error() -> Result {
        // Those that it does not make the result of an RPC.
        let known = [
            EAGAIN,
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
            let told = retriable(Error::from_errno(-errno), true);
            if !known.contains(&told) {
                return same("told", told, ENOTCONN);
            }
        }
        Ok(())
    }
}
