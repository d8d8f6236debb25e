// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RPC messages that are sent in several messages (Message Continuation, section 6.6.2 of the
//! draft), in one chain. In version 1 there is always one.

use crate::transport::{
    continued::{
        Front,
        MOST_FRAGMENTS,
        MOST_MESSAGES, //
    },
    endpoint::{
        Endpoint,
        Handler, //
    },
    header::Direction,
    send_buffer::{
        Purpose,
        SendBuffer, //
    },
    trace, //
};
use kernel::prelude::*;
use xdr::{
    v2::{
        Fragments,
        ReverseSupport,
        FRAGMENT_HEADER, //
    },
    Role, //
};

impl<H: Handler> Endpoint<H> {
    /// Returns the bytes of the longest Payload stream of a message without chunks, in as many
    /// messages of a threshold as there may be.
    pub(crate) fn longest_message(&self, direction: Direction, threshold: usize) -> usize {
        let fragments = match self.fragment_rooms(0) {
            Some(_) => MOST_FRAGMENTS * threshold.saturating_sub(FRAGMENT_HEADER),
            None => 0,
        };
        fragments + self.longest_inline(direction, threshold)
    }

    /// Returns the bytes of the longest Call that the peer takes in the reverse direction (section
    /// 5.2.5 of the draft).
    pub(crate) fn longest_reverse_call(&self) -> usize {
        let send = self.longest_send();
        let most = self.lock().flow.most_messages();
        match self.negotiated().reverse() {
            ReverseSupport::None => 0,
            ReverseSupport::Continued | ReverseSupport::General if most > MOST_MESSAGES => {
                self.longest_message(Direction::Call, send)
            }
            _ => self.longest_inline(Direction::Call, send),
        }
    }

    /// Returns how a Payload stream of `len` bytes is split that is too long for one message, whose
    /// last has a header of `header` bytes. None where it cannot be, or the peer takes fewer
    /// messages.
    pub(crate) fn split(&self, header: usize, len: usize) -> Option<Fragments> {
        let (last, each) = self.fragment_rooms(header)?;
        let octets = |len: usize| u32::try_from(len).ok();
        let fragments = Fragments::new(octets(len)?, octets(each)?, octets(last)?)?;
        let most = self.lock().flow.most_messages().min(MOST_MESSAGES);
        (fragments.messages() <= most).then_some(fragments)
    }

    /// Returns whether there are buffers for a Reply that is split so, beside one for each RPC:
    /// they may have to wait for credits.
    pub(crate) fn may_fill(&self, fragments: &Fragments) -> bool {
        let needed = fragments.messages().saturating_add(self.plan().rpcs);
        self.lock().free_buffers() >= needed
    }

    /// Returns whether the peer has ever given the credits for a Call that is split so.
    pub(crate) fn may_ever_send(&self, fragments: &Fragments) -> bool {
        fragments.messages() <= self.lock().flow.most_of_call()
    }

    /// Returns whether there are the credits now for a Call that is split so.
    pub(crate) fn may_send_now(&self, fragments: &Fragments) -> bool {
        let more = fragments.messages().saturating_sub(1);
        self.lock().flow.may_get_more(more)
    }
}

impl<H: Handler> SendBuffer<'_, H> {
    /// Writes a message without chunks, whose Payload stream has `len` bytes that `copy` copies
    /// from an offset on; in several messages if it is too long for one. Returns the number of
    /// bytes behind its header. `EMSGSIZE` if it is too long for that, else as
    /// [`Self::continued`].
    pub(crate) fn message(
        &mut self,
        direction: Direction,
        xid: u32,
        len: usize,
        mut copy: impl FnMut(usize, &mut [u8]) -> Result,
    ) -> Result<usize> {
        let endpoint = self.endpoint();
        let room = self.plain(direction, xid)?;
        if len <= endpoint.longest_inline(direction, endpoint.longest_send()) {
            copy(0, room.get_mut(..len).ok_or(EMSGSIZE)?)?;
            return Ok(len);
        }
        let fragments = endpoint.split(self.header_len(), len).ok_or(EMSGSIZE)?;
        self.continued(direction, xid, fragments, copy)
    }

    /// Splits a Payload stream, whose last message this is: its header is written. `copy` copies
    /// the bytes from an offset of the stream on. Returns the number of bytes behind the header.
    /// May sleep where a buffer for a [`Purpose::Message`] does.
    ///
    /// `ENOBUFS` when there are too few credits for a Call, or buffers: nobody is woken for
    /// several.
    pub(crate) fn continued(
        &mut self,
        direction: Direction,
        xid: u32,
        mut fragments: Fragments,
        mut copy: impl FnMut(usize, &mut [u8]) -> Result,
    ) -> Result<usize> {
        let endpoint = self.endpoint();
        let messages = fragments.messages();
        let more = messages.saturating_sub(1);
        // Its sender has the credit of one message.
        let taken = direction == Direction::Call;
        if taken && !endpoint.lock().flow.get_more(more) {
            return Err(ENOBUFS);
        }
        // As in `Endpoint::transfer`: tasks that free memory may wait for what a requester sends.
        let flags = match H::ROLE {
            Role::Requester => GFP_NOWAIT,
            Role::Responder => GFP_KERNEL,
        };
        let mut fill = || {
            let front = Front {
                fragments: KVec::with_capacity(more as usize, flags)?,
                payload: fragments.left(),
                since: 0,
            };
            let front = self.message.front.insert(KBox::new(front, flags)?);
            let mut at = 0;
            for (length, remaining) in fragments.by_ref() {
                let length = length as usize;
                let fragment = endpoint.send_buffer(Purpose::Message);
                let mut fragment = fragment.map_err(|e| if e == EAGAIN { ENOBUFS } else { e })?;
                let room = fragment.fragment(direction, xid, remaining)?;
                copy(at, room.get_mut(..length).ok_or(EMSGSIZE)?)?;
                at += length;
                let fragment = fragment.into_fragment(length).ok_or(EINVAL)?;
                front.fragments.push(fragment, flags)?;
            }
            let left = fragments.left() as usize;
            copy(at, self.room().get_mut(..left).ok_or(EMSGSIZE)?)?;
            trace::continued(H::ROLE, || {
                (endpoint.cqs().1, xid, (at + left) as u32, messages)
            });
            Ok(left)
        };
        fill().inspect_err(|_| {
            if taken {
                endpoint.lock().flow.put_messages(more);
            }
        })
    }
}
