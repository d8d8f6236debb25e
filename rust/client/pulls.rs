// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Replies of a connection that are being pulled, or wait to be.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/pulls.rs"]
mod tests;

use crate::{
    client::call::WaitingReply,
    kapi::sys::fifo::Fifo, //
};
use kernel::prelude::*;

/// The start of one pull.
pub(super) struct PullTicket {
    /// No other pull was under way.
    alone: bool,
    number: u64,
}

/// The Replies of a connection that are being pulled, or wait to be.
pub(crate) struct Pulls<T = WaitingReply> {
    under_way: u32,
    /// The number of pulls ever begun.
    begun: u64,
    /// The Replies that found no regions of the device's; only some Replies need any.
    waiting: Fifo<T>,
    /// The XID of a Reply whose Reads the server has refused, if their memory is not back yet.
    refused: Option<u32>,
}

impl<T> Pulls<T> {
    /// Creates the state for `calls` RPCs at once. May sleep.
    pub(super) fn new(calls: u32) -> Result<Self> {
        Ok(Self {
            under_way: 0,
            begun: 0,
            waiting: Fifo::with_capacity(calls as usize)?,
            refused: None,
        })
    }

    /// Begins a pull.
    pub(super) fn begin(&mut self) -> PullTicket {
        self.under_way = self.under_way.saturating_add(1);
        self.begun = self.begun.wrapping_add(1);
        PullTicket {
            alone: self.under_way == 1,
            number: self.begun,
        }
    }

    /// Ends a pull. Returns a Reply that has waited for that.
    pub(super) fn end(&mut self) -> Option<T> {
        self.under_way = self.under_way.saturating_sub(1);
        self.waiting.pop()
    }

    /// Makes a pull that lacks resources wait until another ends. Returns a Reply that can be tried
    /// at once, if all others have ended. Gives the Reply back if no other pull was under way:
    /// there will never be enough.
    pub(super) fn wait(&mut self, ticket: &PullTicket, provided: T) -> Result<Option<T>, T> {
        if ticket.alone && ticket.number == self.begun {
            return Err(provided);
        }
        self.waiting.push(provided)?;
        self.under_way = self.under_way.saturating_sub(1);
        Ok(match self.under_way {
            0 => self.waiting.pop(),
            _ => None,
        })
    }

    /// Takes one waiting Reply that `is_wanted`.
    pub(super) fn take_one(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut taken = None;
        for _ in 0..self.waiting.len() {
            match self.waiting.pop()? {
                one if taken.is_none() && is_wanted(&one) => taken = Some(one),
                // There is room, since it was in the queue before.
                one => _ = self.waiting.push(one),
            }
        }
        taken
    }

    /// Notes the refusal of the Reads of a Reply; only the first, since the connection ends with
    /// it.
    pub(super) fn refuse(&mut self, xid: u32) {
        self.refused.get_or_insert(xid);
    }

    /// Returns whether the Reads of this Reply were refused.
    pub(super) fn was_refused(&self, xid: u32) -> bool {
        self.refused == Some(xid)
    }

    /// Takes the waiting Replies, at the end of the connection.
    pub(super) fn take_waiting(&mut self) -> Fifo<T> {
        core::mem::take(&mut self.waiting)
    }
}
