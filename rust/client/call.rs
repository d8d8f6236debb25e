// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The transport's state of one RPC.

use crate::{
    client::{
        offer::Offer,
        reply_history::Kind, //
    },
    kapi::{
        ib::{
            RecvBuf,
            Regions, //
        },
        sunrpc::PinnedRqst,
        sys::completion::Completion, //
    },
    transport::{
        continued::Kept,
        flow::credits::Credit, //
    },
};
use core::{
    iter,
    ops::Deref, //
};
use kernel::{
    alloc::Flags,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
};

/// The number of a connection, unique within its transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// The progress of an RPC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No Call of the RPC is outstanding.
    Idle,
    /// The Call was sent on this connection, and no Reply was accepted.
    Sent(ConnectionId),
    /// The Reply is here, and waits for the local invalidation of the regions.
    Fencing,
}

/// The effect of a Reply on its RPC.
pub(crate) enum Answer {
    /// The Reply is in its place: its length, or an error for the RPC; and the length to which the
    /// head of the receive buffer is trimmed, if it is shorter than was planned.
    Ready(Result<usize>, Option<usize>),
    /// The Reply's inline part is in its message, from `offset` on; the server has written
    /// `written` bytes into the Write chunk. If its place is `covered` by a chunk of the RPC, it is
    /// copied only when the regions are fenced (RFC 8166, section 4.4.1).
    Inline {
        offset: usize,
        written: usize,
        covered: bool,
    },
    /// The Reply is to be pulled; the server has written `written` bytes into the Write chunk.
    Provided { written: usize },
}

impl Answer {
    /// Creates the answer of an RPC that ends with an error.
    pub(super) fn failed(error: Error) -> Self {
        Self::Ready(Err(error), None)
    }

    /// Returns whether the message is still needed, with the RPC's regions `fenced` or not.
    #[inline]
    pub(super) fn waits(&self, fenced: bool) -> bool {
        match self {
            Self::Ready(..) => false,
            Self::Inline { covered, .. } => *covered && !fenced,
            Self::Provided { .. } => true,
        }
    }

    /// Returns whether the Reply was too long to come inline; none for an error.
    pub(super) fn is_long(&self, threshold: usize) -> Option<bool> {
        match self {
            Self::Ready(len, _) => len.ok().map(|len| len > threshold),
            Self::Inline { .. } => Some(false),
            Self::Provided { .. } => Some(true),
        }
    }
}

/// A Reply with its RPC, which waits for a fence or for its turn to be pulled.
pub(crate) struct WaitingReply {
    pub(super) rqst: PinnedRqst<Call>,
    pub(super) answer: Answer,
    /// The message, if it is still needed. The RPC keeps its credit until it is not.
    pub(super) message: Option<ReplyMessage>,
}

/// A message that has to wait, with those in front of it that it is the last of.
pub(crate) struct WaitingMessage {
    pub(super) front: Option<KBox<Kept>>,
    pub(super) message: RecvBuf,
}

impl WaitingMessage {
    /// Returns the number of Receives that it holds.
    pub(super) fn receives(&self) -> u32 {
        let front = self.front.as_ref();
        1 + front.map_or(0, |front| front.iter().count()) as u32
    }
}

/// The message of a Reply that has to wait.
pub(crate) enum ReplyMessage {
    Received(WaitingMessage),
    /// A copy, for Receives that had to be given back, with what was in front of it.
    Copied(KVec<u8>),
}

impl ReplyMessage {
    /// Returns the messages in front of it.
    pub(super) fn front(&self) -> Option<&Kept> {
        match self {
            Self::Received(waiting) => waiting.front.as_deref(),
            Self::Copied(_) => None,
        }
    }
}

impl Deref for ReplyMessage {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Received(waiting) => waiting.message.bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

impl WaitingReply {
    /// Returns the bytes of the message; none if it is not needed any more.
    pub(super) fn bytes(&self) -> &[u8] {
        self.message.as_deref().unwrap_or(&[])
    }

    /// Returns the number of bytes that the server has written into the Write chunk.
    pub(super) fn written(&self) -> usize {
        match self.answer {
            Answer::Ready(..) => 0,
            Answer::Inline { written, .. } | Answer::Provided { written } => written,
        }
    }

    /// Copies the message and gives the Receive back, which takes the lock of its queue pair. None
    /// without memory for the copy, and for a Reply to be pulled, which goes with the connection.
    pub(super) fn detached(mut self) -> Option<Self> {
        if let Answer::Provided { .. } = self.answer {
            return None;
        }
        if let Some(ReplyMessage::Received(waiting)) = &self.message {
            let header = match self.answer {
                Answer::Inline { offset, .. } => offset,
                _ => 0,
            };
            let (header, rest) = waiting.message.bytes().split_at_checked(header)?;
            let front = waiting.front.iter().flat_map(|front| front.iter());
            let mut bytes = KVec::new();
            let parts = Iterator::chain(iter::once(header), front);
            for part in Iterator::chain(parts, [rest]) {
                bytes.extend_from_slice(part, GFP_NOWAIT).ok()?;
            }
            self.message = Some(ReplyMessage::Copied(bytes));
        }
        Some(self)
    }
}

/// A Reply that is being pulled.
pub(crate) struct Pulling {
    pub(super) rqst: PinnedRqst<Call>,
    /// The length of the Reply in bytes.
    pub(super) len: usize,
    /// The number of bytes that the server has written into the Write chunk.
    pub(super) written: usize,
    /// A key of the server's for RDMA_DONE to invalidate.
    pub(super) key: Option<u32>,
}

/// The state of one RPC, under its lock.
pub(crate) struct CallState {
    pub(crate) phase: Phase,
    pub(crate) xid: u32,
    /// The chunks that its Call offers; the sender holds them while it makes the Call.
    pub(super) offer: Option<KBox<Offer>>,
    /// Its Reply, while its regions are being invalidated or wait for the tear-down.
    pub(crate) waiting: Option<WaitingReply>,
    /// The request, while its Reply is being pulled.
    pub(super) pulling: Option<Pulling>,
    /// The number of malformed Replies to it.
    pub(crate) bad_replies: u32,
    /// Its kind, under which the length of its Reply is noted, if that length is not known before.
    pub(super) kind: Option<Kind>,
    /// The server had no way to send the Reply, so the next Call has to offer a Reply chunk.
    pub(super) refused: bool,
    /// The connection on which the server has refused the chunks of its Call.
    pub(super) limited: Option<ConnectionId>,
    /// The credit of its Call, until that is answered and the Receive of the Reply is free again.
    pub(super) credit: Option<Credit>,
}

/// The state of one RPC, reused for the next one, so that no RPC allocates lists.
#[pin_data]
pub(crate) struct Call {
    #[pin]
    pub(crate) state: SpinLock<CallState>,
    /// The Reply to it was overdue.
    overdue: Atomic<bool>,
    /// Completed when the local invalidation that the fence of a cancelled RPC posted has ended.
    #[pin]
    pub(crate) fenced: Completion,
}

impl CallState {
    /// Returns whether a Call of the RPC may be outstanding.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self.phase, Phase::Sent(_))
    }

    /// Ends the RPC, unless a peer can still reach its memory. Returns whether it has ended.
    pub(crate) fn end(&mut self) -> bool {
        let fenced = self.is_fenced();
        if fenced {
            self.phase = Phase::Idle;
            self.bad_replies = 0;
            self.refused = false;
            self.limited = None;
        }
        fenced
    }

    /// Returns whether no peer can reach memory of the RPC. False while a Call is being made.
    #[inline]
    pub(crate) fn is_fenced(&self) -> bool {
        let offer = self.offer.as_ref();
        offer.is_some_and(|offer| offer.regions.is_fenced())
    }

    /// Returns its regions, unless a Call is being made.
    pub(crate) fn regions(&mut self) -> Option<&mut Regions> {
        self.offer.as_mut().map(|offer| &mut offer.regions)
    }

    /// Returns the chunks offered with the Call that was sent on connection `id`, if no Reply to it
    /// was accepted.
    #[inline]
    pub(super) fn offer_on(&mut self, id: ConnectionId) -> Option<&mut Offer> {
        self.offer
            .as_deref_mut()
            .filter(|_| self.phase == Phase::Sent(id))
    }

    /// Notes that its Call is about to be posted on connection `id`, with `credit`.
    #[inline]
    pub(super) fn sent(&mut self, id: ConnectionId, credit: Option<Credit>) {
        self.phase = Phase::Sent(id);
        self.credit = credit;
    }

    /// Takes the credit of its Call, if that is a credit of connection `id`.
    pub(super) fn take_credit(&mut self, id: ConnectionId) -> Option<Credit> {
        self.credit.take_if(|credit| credit.is_of(id.0))
    }

    /// Begins a new Call with this XID, which offers no chunk yet. `ENOTCONN` if a peer can reach
    /// memory of the RPC.
    #[inline]
    pub(super) fn begin(&mut self, xid: u32) -> Result {
        let offer = self.offer.as_mut().ok_or(ENOTCONN)?;
        // Regions of a connection that has ended are dropped.
        if !offer.regions.drop_dead() {
            return Err(ENOTCONN);
        }
        self.xid = xid;
        self.kind = None;
        offer.read.clear();
        offer.write.clear();
        offer.reply.clear();
        Ok(())
    }
}

impl Call {
    /// Notes that the Reply is overdue.
    pub(super) fn note_overdue(&self) {
        self.overdue.store(true, Relaxed);
    }

    /// Returns whether the Reply was overdue since the last call of this function.
    #[inline]
    pub(super) fn was_overdue(&self) -> bool {
        self.overdue.load(Relaxed) && self.overdue.xchg(false, Relaxed)
    }

    /// Creates the state of an RPC. May sleep if `flags` say so.
    pub(crate) fn new(flags: Flags) -> Result<Arc<Self>> {
        let state = CallState {
            phase: Phase::Idle,
            xid: 0,
            offer: Some(KBox::new(Offer::new(flags)?, flags)?),
            waiting: None,
            pulling: None,
            bad_replies: 0,
            kind: None,
            refused: false,
            limited: None,
            credit: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                state <- new_spinlock!(state, "rpcrdma_call"),
                overdue: Atomic::new(false),
                fenced <- Completion::new(),
            }),
            flags,
        )
    }
}
