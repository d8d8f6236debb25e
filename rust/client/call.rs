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
        flow::credits::Credit,
        header::inline_len, //
    },
};
use core::ops::Deref;
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

/// Tells the connections of a transport apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// Where an RPC is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No Call of it is under way.
    Idle,
    /// The Call was sent on that connection, and no Reply was accepted.
    Sent(ConnectionId),
    /// The Reply is here, and waits for the local invalidation of the regions.
    Fencing,
}

/// What a Reply comes to for its RPC.
pub(crate) enum Answer {
    /// The Reply is in its place: its length, or an error for the RPC. The head of the room for it
    /// is to be that long, if it is shorter than was planned.
    Ready(Result<usize>, Option<usize>),
    /// The Reply's inline part is in its message, from `offset` on; the server has written that
    /// many bytes into the Write chunk. Its place may be memory that a chunk of the RPC covers:
    /// then it can be put there only when the chunk's regions are fenced (RFC 8166, section 4.4.1).
    Inline {
        offset: usize,
        written: usize,
        covered: bool,
    },
    /// The message says how to pull the Reply; the same.
    Provided { written: usize },
}

impl Answer {
    /// Creates that of an RPC that ends with an error.
    pub(super) fn failed(error: Error) -> Self {
        Self::Ready(Err(error), None)
    }

    /// Returns whether its message is still needed, where the RPC's regions are `fenced` or not.
    #[inline]
    pub(super) fn waits(&self, fenced: bool) -> bool {
        match self {
            Self::Ready(..) => false,
            Self::Inline { covered, .. } => *covered && !fenced,
            Self::Provided { .. } => true,
        }
    }

    /// Returns whether the Reply was too long to come inline. None of an error.
    pub(super) fn is_long(&self, threshold: usize) -> Option<bool> {
        match self {
            Self::Ready(len, _) => len.ok().map(|len| inline_len(len) > threshold),
            Self::Inline { .. } => Some(false),
            Self::Provided { .. } => Some(true),
        }
    }
}

/// A Reply with its RPC, which waits for a fence or for its turn to be pulled.
pub(crate) struct WaitingReply {
    pub(super) rqst: PinnedRqst<Call>,
    pub(super) answer: Answer,
    /// Its message, if that is still needed. The RPC keeps its credit for that.
    pub(super) message: Option<ReplyMessage>,
}

/// The message of a Reply that has to wait.
pub(crate) enum ReplyMessage {
    Received(RecvBuf),
    /// The same, when the Receive had to be given back.
    Copied(KVec<u8>),
}

impl Deref for ReplyMessage {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Received(message) => message.bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

impl WaitingReply {
    /// Returns the message's bytes, none where it is not needed any more.
    pub(super) fn bytes(&self) -> &[u8] {
        self.message.as_deref().unwrap_or(&[])
    }

    /// Returns how many bytes the server has written into the Write chunk.
    pub(super) fn written(&self) -> usize {
        match self.answer {
            Answer::Ready(..) => 0,
            Answer::Inline { written, .. } | Answer::Provided { written } => written,
        }
    }

    /// Gives the Receive back, which takes the lock of its queue pair. None without memory for
    /// that, and of a Reply that was to be pulled: that goes with the connection.
    pub(super) fn detached(mut self) -> Option<Self> {
        if let Answer::Provided { .. } = self.answer {
            return None;
        }
        if let Some(ReplyMessage::Received(message)) = self.message.take() {
            let mut bytes = KVec::new();
            bytes.extend_from_slice(message.bytes(), GFP_NOWAIT).ok()?;
            self.message = Some(ReplyMessage::Copied(bytes));
        }
        Some(self)
    }
}

/// A Reply that is being pulled.
pub(crate) struct Pulling {
    pub(super) rqst: PinnedRqst<Call>,
    /// Bytes that are.
    pub(super) len: usize,
    /// Bytes that the server has written into the Write chunk.
    pub(super) written: usize,
    /// A key of the server's that is of no use then.
    pub(super) key: Option<u32>,
}

/// The state of one RPC.
pub(crate) struct CallState {
    pub(crate) phase: Phase,
    pub(crate) xid: u32,
    /// What its Call offers; with the sender while that is being made.
    pub(super) offer: Option<KBox<Offer>>,
    /// Its Reply, while its regions are being invalidated, or wait for the tear-down.
    pub(crate) waiting: Option<WaitingReply>,
    /// The request, while its Reply is being pulled.
    pub(super) pulling: Option<Pulling>,
    /// Replies to it that were not well formed.
    pub(crate) bad_replies: u32,
    /// What the length of its Reply tells of, where nobody knows that before.
    pub(super) kind: Option<Kind>,
    /// The server had no room to provide its Reply, so that room is to be offered.
    pub(super) refused: bool,
    /// That of its Call, until that is answered and the Receive of the Reply is free again.
    pub(super) credit: Option<Credit>,
}

/// One RPC. Reused for the next, so that none allocates lists.
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
    /// A Call of it is under way, for all that it knows.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self.phase, Phase::Sent(_))
    }

    /// The RPC is over, unless a peer can still reach its memory. Returns whether it is.
    pub(crate) fn end(&mut self) -> bool {
        let fenced = self.is_fenced();
        if fenced {
            self.phase = Phase::Idle;
            self.bad_replies = 0;
            self.refused = false;
        }
        fenced
    }

    /// Whether no peer can reach memory of the RPC. Not while a Call is being made.
    #[inline]
    pub(crate) fn is_fenced(&self) -> bool {
        let offer = self.offer.as_ref();
        offer.is_some_and(|offer| offer.regions.is_fenced())
    }

    /// Its regions, unless a Call is being made.
    pub(crate) fn regions(&mut self) -> Option<&mut Regions> {
        self.offer.as_mut().map(|offer| &mut offer.regions)
    }

    /// What was offered with the Call that was sent on that connection, and of which no Reply was
    /// accepted.
    #[inline]
    pub(super) fn offer_on(&mut self, id: ConnectionId) -> Option<&mut Offer> {
        self.offer
            .as_deref_mut()
            .filter(|_| self.phase == Phase::Sent(id))
    }

    /// Its Call is about to be posted on that connection, with that credit.
    #[inline]
    pub(super) fn sent(&mut self, id: ConnectionId, credit: Option<Credit>) {
        self.phase = Phase::Sent(id);
        self.credit = credit;
    }

    /// Takes the credit of its Call, if that has one of that connection.
    pub(super) fn take_credit(&mut self, id: ConnectionId) -> Option<Credit> {
        self.credit.take_if(|credit| credit.is_of(id.0))
    }

    /// A Call of this XID is to be made, which offers nothing yet. `ENOTCONN` if a peer can reach
    /// memory of the RPC.
    #[inline]
    pub(super) fn begin(&mut self, xid: u32) -> Result {
        let offer = self.offer.as_mut().ok_or(ENOTCONN)?;
        // What an earlier connection knew of it is gone with that.
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
    /// The Reply is overdue.
    pub(super) fn note_overdue(&self) {
        self.overdue.store(true, Relaxed);
    }

    /// Whether the Reply was overdue since this was last asked.
    #[inline]
    pub(super) fn was_overdue(&self) -> bool {
        self.overdue.load(Relaxed) && self.overdue.xchg(false, Relaxed)
    }

    /// State for an RPC. May sleep if `flags` say so.
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
