// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of a connection that was not asked for.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/loss.rs"]
mod tests;

use crate::{
    client::{
        call::Call,
        cm_state::OnLost, //
    },
    kapi::{
        ib::CmEventKind,
        sunrpc::XprtHandle,
        sys::{
            address::SocketAddress,
            log, //
        },
    },
    transport::endpoint::WcError, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    },
};

/// Why a connection has to be given up.
pub(crate) enum LossReason {
    /// A work request failed.
    Failed(WcError),
    /// The connection manager says so.
    Event(CmEventKind),
    /// A Reply is overdue.
    Overdue,
    /// The server did not answer when it was asked whether it is there.
    Silent,
    /// All credits are with Calls that nobody waits for any more.
    NoCredits,
    /// Regions could not be taken back from the server.
    NotFenced,
    /// The adapter takes nothing to send.
    NotPosted,
    /// What the server provides for an RPC is more than the device can read at once.
    NotPulled,
    /// Receives could not be posted.
    NoReceives,
    /// What the server sent.
    BadMessage,
    /// The server has no room to provide a Reply, for which nothing was offered.
    NotProvided,
    /// The server has more Calls of its own under way than it was granted.
    TooManyCalls,
    /// The callback service has dropped a Call of the server, which would wait for the Reply in
    /// vain (RFC 8166, section 4.5.4).
    Unanswered,
}

impl LossReason {
    /// Whether the server was waited for in vain, as long as an RPC waits.
    fn is_timeout(&self) -> bool {
        matches!(self, Self::Overdue | Self::Silent | Self::NoCredits)
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed(failure) => failure.wc().words(),
            Self::Event(CmEventKind::Disconnected) => "the server has closed it",
            Self::Event(CmEventKind::DeviceRemoval) => "the device is being removed",
            Self::Event(CmEventKind::AddressChange) => "the address has moved",
            Self::Event(_) => "the connection manager has given up",
            Self::Overdue => "a reply is overdue",
            Self::Silent => "the server says nothing any more",
            Self::NoCredits => "the server keeps all credits",
            Self::NotFenced => "local invalidation failed",
            Self::NotPosted => "a message cannot be posted",
            Self::NotPulled => "a reply cannot be pulled",
            Self::NoReceives => "receives cannot be posted",
            Self::BadMessage => "the server breaks the protocol",
            Self::NotProvided => "the server has no room for a reply",
            Self::TooManyCalls => "the server makes too many calls at once",
            Self::Unanswered => "a call of the server was dropped",
        })
    }
}

/// Tells the RPC layer, and the log, once that a connection has to be given up. Nothing is said of
/// one that is not up yet: the outcome of the attempt is reported anyway.
pub(crate) struct LossNotifier {
    xprt: XprtHandle<Call>,
    address: SocketAddress,
    enabled: Atomic<bool>,
    reported: Atomic<bool>,
}

impl LossNotifier {
    /// For a new connection to `address`.
    pub(crate) fn new(xprt: XprtHandle<Call>, address: SocketAddress) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                xprt,
                address,
                enabled: Atomic::new(false),
                reported: Atomic::new(false),
            },
            GFP_KERNEL,
        )?)
    }

    /// The server's address.
    pub(crate) fn address(&self) -> &SocketAddress {
        &self.address
    }

    /// The connection is up.
    pub(crate) fn enable(&self) {
        // Both this and `report` write first and look then, so that one of them sees the other.
        self.enabled.xchg(true, Full);
        if self.reported.load(Relaxed) {
            let address = &self.address;
            log::info(format_args!(
                "connection to {address} lost: as soon as it was up"
            ));
            self.xprt.force_disconnect();
        }
    }

    /// The RPC layer is to close the connection. Any context that may take a spin lock.
    pub(crate) fn report(&self, reason: LossReason) {
        let first = !self.reported.xchg(true, Full);
        if first && self.enabled.load(Relaxed) {
            let address = &self.address;
            log::info(format_args!("connection to {address} lost: {reason}"));
            if reason.is_timeout() {
                // That sets the pace. A delay would come on top, though the server may be well.
                self.xprt.reset_backoff();
            }
            self.xprt.force_disconnect();
        }
    }

    /// The connection is being closed: what its end brings about is no news.
    pub(crate) fn disable(&self) {
        self.reported.store(true, Relaxed);
    }
}

impl OnLost for Arc<LossNotifier> {
    fn lost(&self, event: CmEventKind) {
        self.report(LossReason::Event(event));
    }
}
