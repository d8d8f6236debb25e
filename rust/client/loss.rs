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
            completion::Completion,
            log,
            time::{
                self,
                HZ, //
            },
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
    time::Jiffies, //
};

/// Why a connection has to be given up.
pub(crate) enum LossReason {
    /// A work request failed.
    Failed(WcError),
    /// The same, after memory of an RPC that nobody waits for was taken back.
    Killed,
    /// The connection manager says so.
    Event(CmEventKind),
    /// A Reply is overdue.
    Overdue,
    /// The server did not answer the first Call.
    NoAnswer,
    /// The server did not answer when it was asked whether it is there.
    Silent,
    /// Nobody waits for any of the Calls that have credits.
    NoCredits,
    /// Regions could not be taken back from the server, or not in time.
    NotFenced,
    /// The adapter takes nothing to send.
    NotPosted,
    /// What the server provides is more than the device can read at once, or was not read in time.
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

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed(failure) => failure.wc().words(),
            Self::Killed => "a request was killed while the server used its memory",
            Self::Event(CmEventKind::Disconnected) => "the server has closed it",
            Self::Event(CmEventKind::DeviceRemoval) => "the device is being removed",
            Self::Event(CmEventKind::AddressChange) => "the address has moved",
            Self::Event(_) => "the connection manager has given up",
            Self::Overdue => "a reply is overdue",
            Self::NoAnswer => "the server does not answer",
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

impl LossReason {
    /// Returns how many messages are to have come by the connection for it to have been of use.
    fn useful_messages(&self) -> u32 {
        match self {
            // It has lived for as long as the RPC has waited, and the server may be well.
            Self::Overdue => 0,
            // The next one would end like that, too.
            Self::Failed(failure) if !failure.wc().is_flush() => u32::MAX,
            Self::BadMessage | Self::TooManyCalls => u32::MAX,
            _ => USEFUL_MESSAGES,
        }
    }
}

/// A connection that lived for so long, or by which so many messages came, was of use: the next one
/// is made without delay. Else the delay grows.
const USEFUL_LIFE: Jiffies = 5 * HZ;
const USEFUL_MESSAGES: u32 = 8;

/// For how long memory that was taken back is the reason that a connection ends: the adapter ends
/// it where the server still reads or writes there.
const USED_STILL: Jiffies = 10 * HZ;

/// Tells the RPC layer, and the log, once that a connection has to be given up. The RPC layer is
/// told nothing of one that is not up yet: the attempt fails.
#[pin_data]
pub(crate) struct LossNotifier {
    xprt: XprtHandle<Call>,
    address: SocketAddress,
    /// There is a connection, or was.
    connected: Atomic<bool>,
    enabled: Atomic<bool>,
    /// When it came up.
    since: Atomic<Jiffies>,
    reported: Atomic<bool>,
    /// How many messages make the connection one of use.
    useful_messages: Atomic<u32>,
    /// When memory was taken back last of an RPC without a Reply; 0 if never.
    taken_back: Atomic<Jiffies>,
    /// The server has answered the first Call, or the connection is lost.
    #[pin]
    first: Completion,
}

impl LossNotifier {
    /// For a new connection to `address`.
    pub(crate) fn new(xprt: XprtHandle<Call>, address: SocketAddress) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                xprt,
                address,
                connected: Atomic::new(false),
                enabled: Atomic::new(false),
                since: Atomic::new(0),
                reported: Atomic::new(false),
                useful_messages: Atomic::new(USEFUL_MESSAGES),
                taken_back: Atomic::new(0),
                first <- Completion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// The server's address.
    pub(crate) fn address(&self) -> &SocketAddress {
        &self.address
    }

    /// The server has answered a Call of the transport's own. Any context.
    pub(super) fn answered(&self) {
        self.first.complete_all();
    }

    /// Waits until the server has answered the first Call. Sleeps for `timeout` at most.
    ///
    /// `EHOSTUNREACH` when it did not, `ENOTCONN` when the connection is lost.
    pub(super) fn wait_answer(&self, timeout: Jiffies) -> Result {
        if !self.first.wait_timeout(timeout) {
            self.report(LossReason::NoAnswer);
            return Err(EHOSTUNREACH);
        }
        match self.reported.load(Relaxed) {
            true => Err(ENOTCONN),
            false => Ok(()),
        }
    }

    /// There is a connection: its loss is news. That an attempt fails the RPC layer is told.
    pub(super) fn connected(&self) {
        self.connected.store(true, Relaxed);
    }

    /// The connection is up.
    pub(crate) fn enable(&self) {
        self.since.store(time::jiffies(), Relaxed);
        // Both this and `report` write first and look then, so that one of them sees the other.
        self.enabled.xchg(true, Full);
        if self.reported.load(Relaxed) {
            self.xprt.force_disconnect();
        }
    }

    /// Memory is taken back that the server may be using: its RPC has no Reply.
    pub(super) fn memory_taken_back(&self) {
        self.taken_back.store(time::jiffies().max(1), Relaxed);
    }

    /// Why a work request failed.
    pub(crate) fn reason(&self, failure: WcError) -> LossReason {
        let then = self.taken_back.load(Relaxed);
        // It is the server's request that fails, and those of this end are flushed.
        if failure.wc().is_flush() && then != 0 && time::since(then) < USED_STILL {
            return LossReason::Killed;
        }
        LossReason::Failed(failure)
    }

    /// The RPC layer is to close the connection. Any context that may take a spin lock.
    pub(crate) fn report(&self, reason: LossReason) {
        if self.reported.xchg(true, Full) {
            return;
        }
        self.useful_messages
            .store(reason.useful_messages(), Relaxed);
        let address = &self.address;
        if self.connected.load(Relaxed) {
            log::inform_about(
                address,
                format_args!("connection to {address} lost: {reason}"),
            );
        }
        self.first.complete_all();
        if self.enabled.load(Relaxed) {
            self.xprt.force_disconnect();
        }
    }

    /// The connection is being closed: what its end brings about is no news. So many messages have
    /// come by it.
    pub(crate) fn disable(&self, messages: u32) {
        self.reported.store(true, Relaxed);
        let busy = messages >= self.useful_messages.load(Relaxed);
        let long = || time::since(self.since.load(Relaxed)) >= USEFUL_LIFE;
        if self.enabled.load(Relaxed) && (busy || long()) {
            self.xprt.reset_backoff();
        }
    }
}

impl OnLost for Arc<LossNotifier> {
    fn lost(&self, event: CmEventKind) {
        self.report(LossReason::Event(event));
    }
}
