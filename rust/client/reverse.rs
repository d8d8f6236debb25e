// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls of the server (RFC 8167).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reverse.rs"]
mod tests;

use crate::{
    client::{
        alarm::Reason,
        connection::{
            Connection,
            Requester, //
        },
        mount::REVERSE_SLOTS,
        reply::send_error,
        settle::give_up, //
    },
    kapi::{
        ib::KeptReceive,
        trace, //
    },
    transport::credits::RECEIVE_BATCH, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::SpinLockGuard, //
};
use xdr::{
    Call,
    CallPayload,
    ErrorMessage,
    RdmaError,
    VERSION, //
};

/// Calls of the server that may be unanswered. Those beyond its grant, up to as many as a batch of
/// Receives is posted beyond what is needed, are kept if they find a Receive: the connection is worth
/// more than their refusal (RFC 8166, section 3.3.1, leaves the choice).
const MOST: u32 = REVERSE_SLOTS + RECEIVE_BATCH;

/// A Call that waits until the callback service has room for it.
struct Waiting {
    xid: u32,
    message: KeptReceive,
    /// Where the Call begins in the message.
    offset: usize,
}

/// The Calls of the server on one connection.
///
/// The callback service may still be at work on those of an earlier connection. The server knows
/// nothing of them any more, so they count here for nothing, but its Calls may have to wait for
/// them.
pub(crate) struct Reverse {
    /// Those whose Reply is not on its way yet.
    unanswered: u32,
    /// Those of them that the callback service has not got yet, in their order.
    waiting: KVec<Waiting>,
}

impl Reverse {
    /// For a new connection. May sleep.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            unanswered: 0,
            waiting: KVec::with_capacity(MOST as usize, GFP_KERNEL)?,
        })
    }

    /// A Call came. False if there are too many.
    fn came(&mut self) -> bool {
        let kept = self.unanswered < MOST;
        if kept {
            self.unanswered += 1;
        }
        kept
    }

    /// Receives that wait with their Calls.
    pub(super) fn kept(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// Whether there are Calls whose Reply is not on its way yet.
    pub(super) fn any(&self) -> bool {
        self.unanswered != 0
    }

    /// The Reply to a Call goes out next, or there will be none: the server may send another.
    pub(super) fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }
}

/// A Call that has to wait until the callback service has room for it; no other can come before it.
pub(super) struct Unserved<'a> {
    reverse: SpinLockGuard<'a, Reverse>,
    xid: u32,
    offset: usize,
}

impl Unserved<'_> {
    /// It waits, in its message.
    pub(super) fn wait(mut self, message: KeptReceive) {
        // There is room for all that may be unanswered.
        let _ = self.reverse.waiting.push_within_capacity(Waiting {
            xid: self.xid,
            message,
            offset: self.offset,
        });
    }
}

/// A Call of the server came. In the completion handler. What is returned has to wait.
pub(super) fn called<'a>(
    requester: &'a Requester,
    connection: &Connection,
    call: &Call<'_>,
) -> Option<Unserved<'a>> {
    let chunks =
        !call.reads.is_empty() || call.writes.chunk_count() != 0 || call.reply_chunk.is_some();
    let part = match &call.payload {
        // Reverse Calls use no chunks (RFC 8167, section 5.3). One that is longer than was agreed
        // on when the session was made is as little use.
        CallPayload::Inline(part) if !chunks && part.bytes.len() <= PAGE_SIZE => part,
        _ => {
            let error = ErrorMessage {
                xid: call.xid,
                version: VERSION,
                credits: REVERSE_SLOTS,
                error: RdmaError::Chunk,
            };
            send_error(requester, connection, &error);
            return None;
        }
    };
    if !requester.shared.reverse_enabled() {
        return None;
    }
    let mut reverse = requester.reverse.lock();
    if !reverse.came() {
        drop(reverse);
        give_up(requester, Reason::TooManyCalls);
        return None;
    }
    // A sender that waits for a credit is not to keep the Reply back.
    requester.shared.xprt.space();
    trace::xprtrdma_cb_call(|| (*requester.alarm.address(), call.xid));
    let waits =
        !reverse.waiting.is_empty() || !hand_over(requester, &mut reverse, call.xid, part.bytes);
    waits.then_some(Unserved {
        reverse,
        xid: call.xid,
        offset: part.offset,
    })
}

/// Gives a Call to the callback service. False if that has no room now.
fn hand_over(requester: &Requester, reverse: &mut Reverse, xid: u32, call: &[u8]) -> bool {
    let xprt = &requester.shared.xprt;
    match xprt.receive_reverse_call(xid, call, requester.id.0) {
        Ok(true) => true,
        // Nobody answers, or not any more.
        Ok(false) => {
            reverse.answered();
            true
        }
        Err(_) => false,
    }
}

/// The callback service has room for another Call. Does not sleep.
pub(super) fn room(requester: &Requester) {
    let mut reverse = requester.reverse.lock();
    while let Ok(next) = reverse.waiting.remove(0) {
        let call = next.message.bytes().get(next.offset..).unwrap_or(&[]);
        if !hand_over(requester, &mut reverse, next.xid, call) {
            // It came from there.
            let _ = reverse.waiting.insert_within_capacity(0, next);
            break;
        }
    }
}

/// Nothing more will be received: what waits goes.
pub(super) fn end(requester: &Requester) {
    loop {
        let mut reverse = requester.reverse.lock();
        let last = reverse.waiting.pop();
        if last.is_none() {
            break;
        }
        reverse.answered();
        drop(reverse);
        drop(last);
    }
}
