// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What came by a connection and waits for a service thread.

use crate::{
    kapi::{
        ib::RecvBuf,
        page::ReadPages, //
    },
    server::request::Request, //
};
use kernel::prelude::*;

/// Where the memory that was read belongs.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// At a position of the Payload stream, which begins at an offset of the message.
    Within { offset: usize, position: usize },
    /// It is the Payload stream.
    LongCall,
}

/// A Call whose Read chunks are being read.
pub(crate) struct PendingRead {
    pub(super) request: Request,
    pub(super) place: Place,
    /// What was read; none before that.
    pub(super) memory: Option<ReadPages>,
}

impl PendingRead {
    /// Before anything of it was read. May sleep.
    pub(super) fn new(request: Request, place: Place) -> Result<KBox<Self>> {
        let reading = Self {
            request,
            place,
            memory: None,
        };
        Ok(KBox::new(reading, GFP_KERNEL)?)
    }
}

/// What came.
pub(crate) enum RecvItem {
    /// A message, just received.
    Message(RecvBuf),
    /// A Call, with the contents of its Read chunks. In a box, since few have any, and every item
    /// has the size of the largest.
    ReadDone(KBox<PendingRead>),
}
