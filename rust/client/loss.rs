// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The unrequested end of a connection.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/loss.rs"]
mod tests;

use crate::{
    client::{
        call::ConnectionId,
        cm_state::OnLost,
        xprt_state::XprtState, //
    },
    kapi::{
        ib::CmEventKind,
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

/// The reason to give up a connection.
pub(crate) enum LossReason {
    /// A work request failed.
    Failed(WcError),
    /// The same, after memory of a killed RPC was invalidated.
    Killed,
    /// The connection manager reports an event.
    Event(CmEventKind),
    /// A Reply is overdue.
    Overdue,
    /// The server did not answer the first Call.
    NoAnswer,
    /// The server did not answer a probe.
    Silent,
    /// No RPC waits for any of the Calls that have credits.
    NoCredits,
    /// The local invalidation of regions failed, or was late.
    NotFenced,
    /// A message could not be posted.
    NotPosted,
    /// A provided Reply is longer than the device can read at once, or was not read in time.
    NotPulled,
    /// Receives could not be posted.
    NoReceives,
    /// The server sent a message that breaks the protocol.
    BadMessage,
    /// The server has more Calls of its own outstanding than it was granted.
    TooManyCalls,
    /// The callback service has dropped a Call of the server, which would wait for the Reply in
    /// vain (RFC 8166, section 4.5.4).
    Unanswered,
}

impl LossReason {
    /// Returns the words of the log for it.
    fn words(&self) -> &'static str {
        match self {
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
            Self::TooManyCalls => "the server makes too many calls at once",
            Self::Unanswered => "a call of the server was dropped",
        }
    }

    /// Returns the number of received messages that make the connection a useful one.
    fn useful_messages(&self) -> u32 {
        match self {
            // The connection has lived for the RPC's timeout, and the server may be well.
            Self::Overdue => 0,
            // The next connection would end in the same way.
            Self::Failed(failure) if !failure.wc().is_flush() => u32::MAX,
            Self::BadMessage | Self::TooManyCalls => u32::MAX,
            _ => USEFUL_MESSAGES,
        }
    }
}

/// The lifetime and the number of messages that make a connection a useful one: the next attempt is
/// made without delay. Otherwise the delay grows.
const USEFUL_LIFE: Jiffies = 5 * HZ;
const USEFUL_MESSAGES: u32 = 8;

/// The time for which invalidated memory is taken as the reason that a connection ends: the adapter
/// ends it if the server still accesses that memory.
const USED_STILL: Jiffies = 10 * HZ;

/// Reports once, to the RPC layer and the log, that a connection has to be given up. Before it is
/// up the RPC layer is not told: the attempt fails.
#[pin_data]
pub(crate) struct LossNotifier {
    shared: Arc<XprtState>,
    number: ConnectionId,
    address: SocketAddress,
    /// The attempt has led to a connection, if only for a time.
    connected: Atomic<bool>,
    enabled: Atomic<bool>,
    /// The time when the connection came up.
    since: Atomic<Jiffies>,
    reported: Atomic<bool>,
    /// Whether the log has its loss.
    told: Atomic<bool>,
    /// The number of received messages that make the connection a useful one.
    useful_messages: Atomic<u32>,
    /// The time when memory of an RPC without a Reply was last invalidated; 0 if never.
    taken_back: Atomic<Jiffies>,
    /// The server has answered the first Call, or the connection is lost.
    #[pin]
    first: Completion,
    /// The version of the connection is known, or it is lost.
    #[pin]
    version: Completion,
}

impl LossNotifier {
    /// Creates the notifier of a new connection to `address`, which gets a number. May sleep.
    pub(crate) fn new(shared: Arc<XprtState>, address: SocketAddress) -> Result<Arc<Self>> {
        let number = shared.next_id();
        Arc::pin_init(
            pin_init!(Self {
                shared,
                number,
                address,
                connected: Atomic::new(false),
                enabled: Atomic::new(false),
                since: Atomic::new(0),
                reported: Atomic::new(false),
                told: Atomic::new(false),
                useful_messages: Atomic::new(USEFUL_MESSAGES),
                taken_back: Atomic::new(0),
                first <- Completion::new(),
                version <- Completion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the number of the connection.
    pub(super) fn number(&self) -> ConnectionId {
        self.number
    }

    /// Returns whether the log has the loss of the connection.
    pub(super) fn was_told(&self) -> bool {
        self.told.load(Relaxed)
    }

    /// Returns the server's address.
    pub(crate) fn address(&self) -> &SocketAddress {
        &self.address
    }

    /// Notes that the server has answered a Call of the transport's own. Any context.
    pub(super) fn answered(&self) {
        self.first.complete_all();
    }

    /// Returns whether the attempt has led to a connection, if only for a time.
    pub(super) fn was_connected(&self) -> bool {
        self.connected.load(Relaxed)
    }

    /// Notes that the server has said which version it speaks. Any context.
    pub(super) fn version_known(&self) {
        self.version.complete_all();
    }

    /// Waits until the server has answered the first Call. Sleeps for `timeout` at most.
    ///
    /// `EHOSTUNREACH` without an answer in time, `ENOTCONN` when the connection is lost.
    pub(super) fn wait_answer(&self, timeout: Jiffies) -> Result {
        self.wait(&self.first, timeout)
    }

    /// Waits until the server has said which version it speaks, as [`Self::wait_answer`].
    pub(super) fn wait_version(&self, timeout: Jiffies) -> Result {
        self.wait(&self.version, timeout)
    }

    fn wait(&self, event: &Completion, timeout: Jiffies) -> Result {
        if !event.wait_timeout(timeout) {
            self.report(LossReason::NoAnswer);
            return Err(EHOSTUNREACH);
        }
        match self.reported.load(Relaxed) {
            true => Err(ENOTCONN),
            false => Ok(()),
        }
    }

    /// Notes that there is a connection, whose loss is logged. A failed attempt is not.
    pub(super) fn connected(&self) {
        self.connected.store(true, Relaxed);
    }

    /// Notes that the connection is up.
    pub(crate) fn enable(&self) {
        self.since.store(time::jiffies(), Relaxed);
        // Both this and `report` write before they read, so that one of them sees the other.
        self.enabled.xchg(true, Full);
        if self.reported.load(Relaxed) {
            self.shared.xprt.force_disconnect();
        }
    }

    /// Notes that memory is invalidated that the server may be using: its RPC has no Reply.
    pub(super) fn memory_taken_back(&self) {
        self.taken_back.store(time::jiffies().max(1), Relaxed);
    }

    /// Returns the reason for a failed work request.
    pub(crate) fn reason(&self, failure: WcError) -> LossReason {
        let then = self.taken_back.load(Relaxed);
        // The server's request fails there; the requests of this end are flushed.
        if failure.wc().is_flush() && then != 0 && time::since(then) < USED_STILL {
            return LossReason::Killed;
        }
        LossReason::Failed(failure)
    }

    /// Makes the RPC layer close the connection. Any context that may take a spin lock.
    pub(crate) fn report(&self, reason: LossReason) {
        if self.reported.xchg(true, Full) {
            return;
        }
        self.useful_messages
            .store(reason.useful_messages(), Relaxed);
        let address = &self.address;
        if self.connected.load(Relaxed) {
            self.told.store(true, Relaxed);
            let why = reason.words();
            self.shared.outage.lock().lost(self.number, why);
            log::inform_about(address, format_args!("connection to {address} lost: {why}"));
        }
        self.first.complete_all();
        self.version.complete_all();
        if self.enabled.load(Relaxed) {
            self.shared.xprt.force_disconnect();
        }
    }

    /// Silences the notifier, since the connection is being closed. `messages` were received in
    /// all.
    pub(crate) fn disable(&self, messages: u32) {
        self.reported.store(true, Relaxed);
        let busy = messages >= self.useful_messages.load(Relaxed);
        let long = || time::since(self.since.load(Relaxed)) >= USEFUL_LIFE;
        if self.enabled.load(Relaxed) && (busy || long()) {
            self.shared.xprt.reset_backoff();
        }
    }
}

impl OnLost for Arc<LossNotifier> {
    fn lost(&self, event: CmEventKind) {
        self.report(LossReason::Event(event));
    }
}
