// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: an administrator is told of the reason that is in the way at this end first.

use super::*;
use crate::kunit::{
    drivers,
    same, //
};
use kernel::prelude::*;

#[kunit_tests(rpcrdma_client_status)]
mod suite {
    use super::*;

    #[test]
    fn why_replies_are_not_pulled() -> Result {
        let (mut own, mut server) = (PrivateData::DEFAULT, PrivateData::DEFAULT);
        let mut device = drivers::limits(128, 128);
        let why = |own: &_, server: &_, device: &_| terms(own, server, device).no_pulls;
        device.max_rdma_reads_begun = 0;
        let found = why(&own, &server, &device);
        same("no reads", found, Some("the device cannot"))?;
        device.max_rdma_reads_begun = 1;
        let found = why(&own, &server, &device);
        same("not wanted", found, Some("rdma_reliable_reply is 0"))?;
        own.pulls.may_pull = true;
        let found = why(&own, &server, &device);
        same("no server", found, Some("the server provides no Replies"))?;
        server.pulls.may_provide = true;
        same("all", why(&own, &server, &device), None)
    }

    #[test]
    fn why_keys_are_not_invalidated() -> Result {
        let (mut own, mut server) = (PrivateData::DEFAULT, PrivateData::DEFAULT);
        let why =
            |own: &_, server: &_| terms(own, server, &drivers::limits(128, 128)).no_invalidation;
        let found = why(&own, &server);
        same("padding", found, Some("rdma_write_chunk_padding is 1"))?;
        own.remote_invalidation = true;
        same("no server", why(&own, &server), Some("the server does not"))?;
        server.remote_invalidation = true;
        same("both", why(&own, &server), None)
    }
}
