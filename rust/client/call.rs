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
    transport::credits::Credit, //
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

/// A Reply that is where it belongs.
pub(crate) struct Placed {
    /// Its length, or an error for the RPC.
    pub(crate) result: Result<usize>,
    /// How long the head of the room for it is to be, if shorter than it was.
    pub(crate) head: Option<usize>,
}

impl Placed {
    /// There is no place for it.
    pub(super) fn failed(error: Error) -> Self {
        Self {
            result: Err(error),
            head: None,
        }
    }
}

/// What a Reply has come to.
pub(crate) enum Outcome {
    /// It is where it belongs.
    Placed(Placed),
    /// Its inline part still has to be put where it belongs. Until then it stays in its Receive,
    /// and the RPC keeps its credit for that.
    Inline {
        message: RecvBuf,
        /// Where that part begins in the message.
        offset: usize,
        /// Bytes that the server has written into the Write chunk.
        written: usize,
    },
    /// The same, when the Receive had to be given back.
    Copied { part: KVec<u8>, written: usize },
    /// It has to be pulled, as that message says, beside so many bytes in the Write chunk.
    Provided { message: RecvBuf, written: usize },
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

impl Outcome {
    /// One that keeps no Receive; none without memory for that. Gives the Receive back, which takes
    /// the lock of its queue pair.
    pub(super) fn detached(self) -> Option<Self> {
        let (message, offset, written) = match self {
            Self::Inline {
                message,
                offset,
                written,
            } => (message, offset, written),
            // What it is to be pulled by goes with the connection.
            Self::Provided { .. } => return None,
            other => return Some(other),
        };
        let bytes = message.bytes().get(offset..).unwrap_or(&[]);
        let mut part = KVec::new();
        part.extend_from_slice(bytes, GFP_NOWAIT).ok()?;
        Some(Self::Copied { part, written })
    }
}

/// The state of one RPC.
pub(crate) struct CallState {
    pub(crate) phase: Phase,
    pub(crate) xid: u32,
    /// What its Call offers; with the sender while that is being made.
    pub(super) offer: Option<KBox<Offer>>,
    /// The request and its Reply, while its regions are being invalidated, or wait for the
    /// tear-down.
    pub(crate) waiting: Option<(PinnedRqst<Call>, Outcome)>,
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
