// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Calls of the server on one connection (RFC 8167).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reverse_calls.rs"]
mod tests;

use crate::{
    client::sizes::REVERSE_SLOTS,
    kapi::ib::RecvBuf,
    transport::flow::credits::RECEIVE_BATCH, //
};
use kernel::prelude::*;

/// Calls of the server that may be unanswered. Those beyond its grant, up to as many as a batch of
/// Receives is posted beyond what is needed, are kept if they find a Receive: the connection is
/// worth more than their refusal (RFC 8166, section 3.3.1, leaves the choice).
const MOST: u32 = REVERSE_SLOTS + RECEIVE_BATCH;

/// A Call that waits until the callback service has room for it.
pub(super) struct WaitingCall {
    pub(super) xid: u32,
    pub(super) message: RecvBuf,
    /// Where the Call begins in the message.
    pub(super) offset: usize,
}

/// The Calls of the server on one connection.
///
/// The callback service may still be at work on those of an earlier connection. The server knows
/// nothing of them any more, so they count here for nothing, but its Calls may have to wait for
/// them.
pub(crate) struct ReverseCalls {
    /// Those whose Reply is not on its way yet.
    unanswered: u32,
    /// Those of them that the callback service has not got yet, in their order.
    pub(super) waiting: KVec<WaitingCall>,
}

impl ReverseCalls {
    /// For a new connection. May sleep.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            unanswered: 0,
            waiting: KVec::with_capacity(MOST as usize, GFP_KERNEL)?,
        })
    }

    /// A Call came. False if there are too many.
    pub(super) fn came(&mut self) -> bool {
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
