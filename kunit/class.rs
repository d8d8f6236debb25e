// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: whoever looks for a network identifier finds where the list of each class ends.

use super::same;
use crate::{
    client::ClientXprt,
    kapi::sunrpc::{
        find_transport_ident,
        Transport,
        CLIENT,
        REVERSE, //
    },
};
use kernel::prelude::*;

#[kunit_tests(rpcrdma_class)]
mod suite {
    use super::*;

    #[test]
    fn an_unknown_netid_is_not_found() -> Result {
        // First, since the RPC layer would hold a lock when it falls over one.
        same("netids of mounts", CLIENT.netids()?, 2)?;
        same("of callbacks", REVERSE.netids()?, 0)?;
        for (netid, found) in [
            (c"rdma", Ok(ClientXprt::IDENT)),
            (c"rdma6", Ok(ClientXprt::IDENT)),
            (c"unheard", Err(ENOENT)),
            (c"", Err(ENOENT)),
        ] {
            same("identifier", find_transport_ident(netid), found)?;
        }
        Ok(())
    }
}
