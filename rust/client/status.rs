// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a transport and its connection are, for an administrator.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/client_status.rs"]
mod tests;

use crate::{
    client::{
        connection::Requester,
        keep_alive,
        xprt_state::XprtState, //
    },
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
        if outage.is_under_way() {
            writeln!(to, "{outage}")?;
        } else if self.xprt.is_connected() {
            writeln!(to, "connected")?;
        } else if self.xprt.is_connecting() {
            writeln!(to, "connecting")?;
        } else {
            writeln!(to, "{outage}")?;
        }
        writeln!(to, "\tgrant: {grant}")?;
        writeln!(to, "\toutstanding: {outstanding}")?;
        writeln!(to, "\tattempts: {}", self.attempts())?;
        let mut losses = outage.losses().iter();
        losses.try_for_each(|(why, count)| writeln!(to, "\tlost: {count}, {why}"))
    }
}

impl Requester {
    /// Writes what the client alone can say of a connection.
    pub(super) fn write_status(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let keep_alive = match keep_alive::interval() {
            Some(_) => "on",
            None => "off",
        };
        writeln!(to, "\ttransport: {}", self.shared.xprt.number())?;
        writeln!(to, "\tkeep-alive: {keep_alive}, {}", self.watch)
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
