// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What came by a connection and waits for a service thread.

use super::connection::Responder;
use crate::kapi::{
    ib::KeptReceive,
    sunrpc::Memory, //
};
use kernel::prelude::*;

/// A received message.
pub(crate) type Message = KeptReceive<Responder>;

/// Where the memory that was read belongs.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// At a position of the Payload stream, which begins at an offset of the message.
    Within { offset: usize, position: usize },
    /// It is the Payload stream.
    Whole,
}

/// A Call whose Read chunks are being read.
pub(crate) struct Reading {
    pub(super) message: Message,
    pub(super) xid: u32,
    pub(super) place: Place,
    /// What was read, when all of it is there. In a box, since few have any, and all that arrives has
    /// the size of the largest.
    pub(super) memory: KBox<Memory>,
}

/// What came.
pub(crate) enum Arrival {
    /// A message, just received.
    Message(Message),
    /// A Call, with the contents of its Read chunks.
    Pulled(Reading),
}
