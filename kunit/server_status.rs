// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: an administrator is told of the first reason that is in the way.

use super::*;
use crate::kunit::{
    drivers,
    same, //
};
use kernel::prelude::*;
use xdr::Pulls;

/// A client that may pull, or not.
fn client(may_pull: bool) -> PrivateData {
    PrivateData {
        pulls: Pulls {
            may_pull,
            may_provide: false,
        },
        ..PrivateData::DEFAULT
    }
}

#[kunit_tests(rpcrdma_server_status)]
mod suite {
    use super::*;

    #[test]
    fn why_no_replies_are_provided() -> Result {
        for (may_pull, reads, allowed, why) in [
            (false, 0, false, "the client does not"),
            (true, 0, false, "the client asks for no RDMA Reads"),
            (true, 1, false, "svc_rdma/reliable_reply is 0"),
            (true, 1, true, "the device cannot"),
        ] {
            same("why", no_pulls(&client(may_pull), reads, allowed), why)?;
        }
        Ok(())
    }

    #[test]
    fn keys_are_invalidated_for_who_takes_that() -> Result {
        let mut client = client(false);
        let why =
            |client: &PrivateData| terms(client, &drivers::limits(128, 128), None).no_invalidation;
        let found = why(&client);
        same("not asked", found, Some("the client does not take it"))?;
        client.remote_invalidation = true;
        same("asked", why(&client), None)
    }
}
