// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Replies of a connection that are being pulled, and those that wait for that.

use crate::{
    client::call::Call,
    kapi::{
        ib::RecvBuf,
        sunrpc::PinnedRqst,
        sys::fifo::Fifo, //
    },
};
use kernel::prelude::*;

/// An RPC whose Reply is provided, in the message that says so. It keeps its credit for that.
pub(crate) struct ProvidedReply {
    pub(super) rqst: PinnedRqst<Call>,
    pub(super) message: RecvBuf,
    /// Bytes that the server has written into the Write chunk.
    pub(super) written: usize,
}

/// The Replies of a connection that are being pulled.
pub(crate) struct Pulls {
    under_way: u32,
    /// Those for which there were no regions of the device's: only some need any.
    waiting: Fifo<ProvidedReply>,
}

impl Pulls {
    /// For so many RPCs at once. May sleep.
    pub(super) fn new(calls: u32) -> Result<Self> {
        Ok(Self {
            under_way: 0,
            waiting: Fifo::with_capacity(calls as usize)?,
        })
    }

    /// One is under way.
    pub(super) fn begin(&mut self) {
        self.under_way = self.under_way.saturating_add(1);
    }

    /// One that was under way is not any more. Returns one that has waited for that.
    pub(super) fn end(&mut self) -> Option<ProvidedReply> {
        self.under_way = self.under_way.saturating_sub(1);
        self.waiting.pop()
    }

    /// The same, of one that is to wait for others; it comes back if there are none.
    pub(super) fn end_and_wait(&mut self, provided: ProvidedReply) -> Result<(), ProvidedReply> {
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way == 0 {
            return Err(provided);
        }
        self.waiting.push(provided).map(|_| ())
    }

    /// Those that wait, at the end of the connection.
    pub(super) fn take_waiting(&mut self) -> Fifo<ProvidedReply> {
        core::mem::take(&mut self.waiting)
    }
}
