// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Replies of a connection that are being pulled, and those that wait for that.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/pulls.rs"]
mod tests;

use crate::{
    client::call::WaitingReply,
    kapi::sys::fifo::Fifo, //
};
use kernel::prelude::*;

/// One that was begun.
pub(super) struct Begun {
    /// No other was under way.
    alone: bool,
    number: u64,
}

/// The Replies of a connection that are being pulled.
pub(crate) struct Pulls<T = WaitingReply> {
    under_way: u32,
    /// Those that were ever begun.
    begun: u64,
    /// Those for which there were no regions of the device's: only some need any.
    waiting: Fifo<T>,
    /// The XID of one that the server has refused, if its memory is not back yet.
    refused: Option<u32>,
}

impl<T> Pulls<T> {
    /// For so many RPCs at once. May sleep.
    pub(super) fn new(calls: u32) -> Result<Self> {
        Ok(Self {
            under_way: 0,
            begun: 0,
            waiting: Fifo::with_capacity(calls as usize)?,
            refused: None,
        })
    }

    /// One is under way.
    pub(super) fn begin(&mut self) -> Begun {
        self.under_way = self.under_way.saturating_add(1);
        self.begun = self.begun.wrapping_add(1);
        Begun {
            alone: self.under_way == 1,
            number: self.begun,
        }
    }

    /// One that was under way is not any more. Returns one that has waited for that.
    pub(super) fn end(&mut self) -> Option<T> {
        self.under_way = self.under_way.saturating_sub(1);
        self.waiting.pop()
    }

    /// One that is under way did not get all that it needs: it waits until another ends, and one is
    /// returned that can be tried at once, if all have. It comes back if no other had any: there
    /// will never be enough.
    pub(super) fn wait(&mut self, begun: &Begun, provided: T) -> Result<Option<T>, T> {
        if begun.alone && begun.number == self.begun {
            return Err(provided);
        }
        self.waiting.push(provided)?;
        self.under_way = self.under_way.saturating_sub(1);
        Ok(match self.under_way {
            0 => self.waiting.pop(),
            _ => None,
        })
    }

    /// Takes one that waits and of which that is true.
    pub(super) fn take_one(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut taken = None;
        for _ in 0..self.waiting.len() {
            match self.waiting.pop()? {
                one if taken.is_none() && is_wanted(&one) => taken = Some(one),
                // There is room, since it came from there.
                one => _ = self.waiting.push(one),
            }
        }
        taken
    }

    /// The server has refused the RDMA Reads of one: the first, since the connection ends with it.
    pub(super) fn refuse(&mut self, xid: u32) {
        self.refused.get_or_insert(xid);
    }

    /// Whether that is the one that was refused.
    pub(super) fn was_refused(&self, xid: u32) -> bool {
        self.refused == Some(xid)
    }

    /// Those that wait, at the end of the connection.
    pub(super) fn take_waiting(&mut self) -> Fifo<T> {
        core::mem::take(&mut self.waiting)
    }
}
