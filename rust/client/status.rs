// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a transport is, for an administrator, and what its connection is by the private data.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/client_status.rs"]
mod tests;

use crate::{
    client::xprt_state::XprtState,
    kapi::{
        ib::DeviceLimits,
        sys::listing::Listed, //
    },
    transport::terms::Terms,
};
use kernel::fmt::{
    self,
    Formatter, //
};
use xdr::PrivateData;

impl Listed for XprtState {
    fn describe(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let (number, server) = (self.xprt.number(), self.xprt.server());
        let (grant, outstanding) = self.xprt.window();
        let outage = *self.outage.lock();
        write!(to, "transport {number} to {server}: ")?;
        match outage.is_under_way() {
            false if self.xprt.is_connected() => writeln!(to, "connected")?,
            false if self.xprt.is_connecting() => writeln!(to, "connecting")?,
            _ => writeln!(to, "{outage}")?,
        }
        writeln!(to, "\tgrant: {grant}")?;
        writeln!(to, "\toutstanding: {outstanding}")?;
        writeln!(to, "\tattempts: {}", self.attempts())?;
        let mut losses = outage.losses().iter();
        losses.try_for_each(|(why, count)| writeln!(to, "\tlost: {count}, {why}"))
    }
}

/// Returns what the private data of both ends come to.
pub(super) fn terms(own: &PrivateData, server: &PrivateData, device: &DeviceLimits) -> Terms {
    Terms {
        checks_keys: device.checks_keys(),
        no_invalidation: if !own.remote_invalidation {
            Some("rdma_write_chunk_padding is 1")
        } else if !server.remote_invalidation {
            Some("the server does not")
        } else {
            None
        },
        no_pulls: if own.pulls_from(server) {
            None
        } else if own.pulls.may_pull {
            Some("the server provides no Replies")
        } else if device.max_rdma_reads_begun == 0 {
            Some("the device cannot")
        } else {
            Some("rdma_reliable_reply is 0")
        },
    }
}
