// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What is kept of an RPC message in several Sends (Message Continuation, section 6.6.2 of the
//! draft) until its last message comes.

use crate::kapi::ib::{
    DmaBuffer,
    RecvBuf, //
};
use kernel::{
    prelude::*,
    time::Jiffies, //
};
use xdr::v2::FRAGMENT_HEADER;

/// Fragments of one message, without the last: with the usual inline thresholds they carry 64 KiB
/// and what belongs to that, as lists and attributes have at most.
pub(crate) const MOST_FRAGMENTS: usize = 9;
/// Messages of one RPC message, at most.
pub(crate) const MOST_MESSAGES: u32 = MOST_FRAGMENTS as u32 + 1;

/// The fragments of a message that were received, without the last, in their order. The Receives
/// that they are in are among those that the peer was given credits for.
#[derive(Default)]
pub(crate) struct Kept([Option<RecvBuf>; MOST_FRAGMENTS]);

impl Kept {
    /// Adds a fragment. Gives it back if there are too many.
    pub(super) fn push(&mut self, fragment: RecvBuf) -> Result<(), RecvBuf> {
        match self.0.iter_mut().find(|part| part.is_none()) {
            Some(place) => {
                *place = Some(fragment);
                Ok(())
            }
            None => Err(fragment),
        }
    }

    /// Returns the parts of the Payload stream.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let parts = self.0.iter().flatten();
        parts.map(|part| part.bytes().get(FRAGMENT_HEADER..).unwrap_or(&[]))
    }

    /// Returns the number of bytes of the Payload stream.
    pub(crate) fn len(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }
}

/// A fragment that is to be sent, with the length of its message.
pub(super) type Fragment = (DmaBuffer, usize);

/// The messages in front of the last one of an RPC message that is to be sent.
pub(super) struct Front {
    pub(super) fragments: KVec<Fragment>,
    /// The number of bytes of the whole Payload stream.
    pub(super) payload: u32,
    /// The time when it began to wait for its turn; zero before.
    pub(super) since: Jiffies,
}
