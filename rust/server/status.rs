// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What an administrator is told of the private data of a client and of this end.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/server_status.rs"]
mod tests;

use crate::{
    kapi::ib::DeviceLimits,
    transport::terms::Terms, //
};
use xdr::PrivateData;

/// Returns what the private data of both ends come to, where it is known why `no_pulls`, if so.
pub(super) fn terms(
    client: &PrivateData,
    device: &DeviceLimits,
    no_pulls: Option<&'static str>,
) -> Terms {
    Terms {
        checks_keys: device.checks_keys(),
        no_invalidation: match client.remote_invalidation {
            true => None,
            false => Some("the client does not take it"),
        },
        no_pulls,
    }
}

/// Returns why no Replies can be provided for a client that has asked for so many RDMA `reads`,
/// where that is `allowed` or not.
pub(super) fn no_pulls(client: &PrivateData, reads: u8, allowed: bool) -> &'static str {
    if !client.pulls.may_pull {
        "the client does not"
    } else if reads == 0 {
        "the client asks for no RDMA Reads"
    } else if !allowed {
        "svc_rdma/reliable_reply is 0"
    } else {
        "the device cannot"
    }
}
