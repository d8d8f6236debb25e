// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Calls of the server on one connection (RFC 8167).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reverse_calls.rs"]
mod tests;

use crate::{
    client::{
        call::WaitingMessage,
        sizes::REVERSE_SLOTS, //
    },
    transport::flow::credits::RECEIVE_BATCH, //
};
use kernel::prelude::*;

/// The most unanswered Calls of the server. Calls beyond its grant are kept if they find a Receive,
/// of which up to a batch more is posted than needed: the connection is worth more than their
/// refusal (RFC 8166, section 3.3.1, leaves the choice).
const MOST: u32 = REVERSE_SLOTS + RECEIVE_BATCH;

/// A Call that waits until the callback service has room for it.
pub(super) struct WaitingCall {
    pub(super) xid: u32,
    pub(super) message: WaitingMessage,
    /// The offset of the Call in the message.
    pub(super) offset: usize,
}

/// The Calls of the server on one connection.
///
/// The callback service may still be executing Calls of an earlier connection. The server has
/// forgotten them, so they do not count here, but its new Calls may have to wait for them.
pub(crate) struct ReverseCalls {
    /// The number of Calls whose Reply was not posted yet.
    unanswered: u32,
    /// The Calls that the callback service has not got yet, in their order.
    pub(super) waiting: KVec<WaitingCall>,
}

impl ReverseCalls {
    /// Creates the state of a new connection. May sleep.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            unanswered: 0,
            waiting: KVec::with_capacity(MOST as usize, GFP_KERNEL)?,
        })
    }

    /// Notes that a Call came. False if there are too many.
    pub(super) fn came(&mut self) -> bool {
        let kept = self.unanswered < MOST;
        if kept {
            self.unanswered += 1;
        }
        kept
    }

    /// Returns the number of Receives that hold waiting Calls.
    pub(super) fn kept(&self) -> u32 {
        let held = |call: &WaitingCall| call.message.receives();
        self.waiting.iter().map(held).sum()
    }

    /// Returns whether there are Calls whose Reply was not posted yet.
    pub(super) fn any(&self) -> bool {
        self.unanswered != 0
    }

    /// Notes that a Call is answered, or never will be: the server may send another.
    pub(super) fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }
}
