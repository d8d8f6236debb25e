// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a received message gets into the room that the consumer has for it, all of it or as
//! much as fits, and no byte beyond; nor does a chunk cover one, nor a byte without a page.

use crate::{
    kapi::sunrpc::room::*,
    kunit::{
        claim,
        same, //
    },
};

/// Bytes in front of head and tail, and behind them.
const GUARD: usize = 16;
/// What is in all memory before; no message has it.
const BEFORE: u8 = 0xaa;
pub(in crate::kapi::sunrpc) const PAGES: usize = 3;

/// Room for a message, with memory around each part of it.
pub(in crate::kapi::sunrpc) struct Buffer {
    head: KVec<u8>,
    pub(in crate::kapi::sunrpc) pages: KVec<*mut bindings::page>,
    tail: KVec<u8>,
    pub(in crate::kapi::sunrpc) buf: bindings::xdr_buf,
    covers: Covers,
}

impl Buffer {
    /// A head, pages with where they begin, and a tail, of so many bytes.
    pub(in crate::kapi::sunrpc) fn new(
        head: usize,
        base: usize,
        paged: usize,
        tail: usize,
    ) -> Result<Self> {
        let mut room = Self {
            head: KVec::from_elem(BEFORE, head + 2 * GUARD, GFP_KERNEL)?,
            pages: KVec::with_capacity(PAGES, GFP_KERNEL)?,
            tail: KVec::from_elem(BEFORE, tail + 2 * GUARD, GFP_KERNEL)?,
            buf: bindings::xdr_buf::default(),
            covers: Covers::new(),
        };
        for _ in 0..PAGES {
            // SAFETY: No precondition.
            let page = unsafe { bindings::alloc_page(bindings::GFP_KERNEL) };
            claim(!page.is_null(), "there is memory")?;
            room.pages.push(page, GFP_KERNEL)?;
            room.page(page).fill(BEFORE);
        }
        room.buf.head[0].iov_base = room.head.as_mut_ptr().wrapping_add(GUARD).cast();
        room.buf.head[0].iov_len = head;
        room.buf.pages = room.pages.as_mut_ptr();
        room.buf.page_base = base as u32;
        room.buf.page_len = paged as u32;
        room.buf.tail[0].iov_base = room.tail.as_mut_ptr().wrapping_add(GUARD).cast();
        room.buf.tail[0].iov_len = tail;
        room.buf.buflen = (head + paged + tail) as u32;
        Ok(room)
    }

    /// Lets some of its pages go, for whoever receives to fill.
    fn leave_out(&mut self, places: &[usize]) -> Result {
        for place in places {
            let slot = self.pages.get_mut(*place).ok_or(EINVAL)?;
            let page = core::mem::replace(slot, core::ptr::null_mut());
            // SAFETY: Allocated in `new`.
            unsafe { bindings::put_page(page) };
        }
        Ok(())
    }

    /// The bytes of one of its pages.
    fn page(&mut self, page: *mut bindings::page) -> &mut [u8] {
        // SAFETY: The page is of this room, of the direct map, and borrowed with it.
        unsafe { core::slice::from_raw_parts_mut(bindings::page_address(page).cast(), PAGE_SIZE) }
    }

    /// Checks how many references there are to each page.
    pub(in crate::kapi::sunrpc) fn expect_references(&self, expected: i32) -> Result {
        for page in &self.pages {
            // SAFETY: The page is of this room.
            let count = unsafe { bindings::page_count(*page) };
            same("references", count, expected)?;
        }
        Ok(())
    }

    fn room(&mut self) -> Room<'_> {
        let covers = NonNull::from(&self.covers);
        // SAFETY: Head, pages and tail are as long as the buffer says, and nobody else has them.
        unsafe { Room::new(XdrBuf::from_raw(&raw mut self.buf), covers) }
    }

    fn receive(&mut self, message: &[u8]) -> Result<usize> {
        self.room().receive([message])
    }

    /// All memory, with the room in it: for each byte, whether it is a part of that.
    fn bytes(&mut self) -> Result<KVec<(u8, bool)>> {
        let (base, paged) = (self.buf.page_base as usize, self.buf.page_len as usize);
        let mut bytes = KVec::new();
        let head = self.head.len() - GUARD;
        for (i, byte) in self.head.iter().enumerate() {
            bytes.push((*byte, (GUARD..head).contains(&i)), GFP_KERNEL)?;
        }
        for n in 0..PAGES {
            let page = self.pages.get(n).copied().ok_or(EINVAL)?;
            for (i, byte) in self.page(page).iter().enumerate() {
                let at = n * PAGE_SIZE + i;
                bytes.push((*byte, (base..base + paged).contains(&at)), GFP_KERNEL)?;
            }
        }
        let tail = self.tail.len() - GUARD;
        for (i, byte) in self.tail.iter().enumerate() {
            bytes.push((*byte, (GUARD..tail).contains(&i)), GFP_KERNEL)?;
        }
        Ok(bytes)
    }

    /// Checks that the message is in the room, and nothing is behind it or beside it.
    fn expect(&mut self, message: &[u8]) -> Result {
        let mut left = message.iter();
        for (byte, inside) in self.bytes()? {
            let expected = if inside { left.next() } else { None };
            same("byte", byte, *expected.unwrap_or(&BEFORE))?;
        }
        same("bytes that are nowhere", left.len(), 0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        for page in self.pages.iter().filter(|page| !page.is_null()) {
            // SAFETY: Allocated in `new`, or by `fill`.
            unsafe { bindings::put_page(*page) };
        }
    }
}

fn message(len: usize) -> Result<KVec<u8>> {
    let mut message = KVec::with_capacity(len, GFP_KERNEL)?;
    for i in 0..len {
        message.push((i % 160) as u8, GFP_KERNEL)?;
    }
    Ok(message)
}

/// Head, where the pages begin, pages, tail.
const ROOMS: &[(usize, usize, usize, usize)] = &[
    (40, 0, 0, 0),
    (40, 0, 0, 24),
    (0, 0, PAGE_SIZE, 0),
    (120, 0, 2 * PAGE_SIZE, 24),
    (120, 100, PAGE_SIZE, 24),
    (120, PAGE_SIZE - 1, PAGE_SIZE + 2, 24),
    // That of a READ of an odd length.
    (120, 3, 4093, 24),
];

/// Receives a message of `len` bytes, and completes its last word.
fn whole_words(head: usize, base: usize, paged: usize, tail: usize, len: usize) -> Result {
    let mut room = Buffer::new(head, base, paged, tail)?;
    let mut message = message(len)?;
    same("received", room.receive(&message), Ok(len))?;
    let whole = room.room().complete_word(len);
    let (padded, most) = (len.next_multiple_of(4), head + paged + tail);
    let expected = if padded <= most { padded } else { len & !3 };
    same("length", whole, expected)?;
    // Zeros, whatever was there before.
    for _ in len..whole {
        message.push(0, GFP_KERNEL)?;
    }
    room.expect(&message)
}

#[kunit_tests(rpcrdma_room)]
mod suite {
    use super::*;

    #[test]
    fn a_message_that_fits() -> Result {
        for (head, base, paged, tail) in ROOMS {
            let most = head + paged + tail;
            for len in [1, 4, head + 1, head + paged, most - 1, most] {
                let len = len.min(most);
                let mut room = Buffer::new(*head, *base, *paged, *tail)?;
                let message = message(len)?;
                same("received", room.receive(&message), Ok(len))?;
                room.expect(&message)?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_message_that_is_longer_than_its_room() -> Result {
        for (head, base, paged, tail) in ROOMS {
            let most = head + paged + tail;
            for len in [most + 1, most + 4, most + GUARD, most + 2 * PAGE_SIZE] {
                let mut room = Buffer::new(*head, *base, *paged, *tail)?;
                let message = message(len)?;
                // A length that is no multiple of four is refused by the RPC layer.
                let fits = most - most % 4;
                same("received", room.receive(&message), Ok(fits))?;
                room.expect(message.get(..fits).ok_or(EINVAL)?)?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_message_that_ends_inside_a_word() -> Result {
        for (head, base, paged, tail) in ROOMS {
            let most = head + paged + tail;
            for from in [1, head - head % 4, most - 8] {
                for len in from.max(1)..=(from + 8).min(most) {
                    whole_words(*head, *base, *paged, *tail, len)?;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_head_that_is_too_short() -> Result {
        const HEAD: usize = 120;
        const TAIL: usize = 24;
        const ROOM: usize = 200;
        let mut memory = KVec::from_elem(BEFORE, ROOM, GFP_KERNEL)?;
        for (len, expected) in [
            (0, Ok((HEAD, TAIL))),
            (HEAD, Ok((HEAD, TAIL))),
            (HEAD + 4, Ok((HEAD + 4, TAIL))),
            (ROOM - TAIL, Ok((ROOM - TAIL, TAIL))),
            (ROOM - 4, Ok((ROOM - 4, 4))),
            (ROOM, Ok((ROOM, 0))),
            (ROOM + 1, Err(EIO)),
            (usize::MAX, Err(EIO)),
        ] {
            let mut room = Buffer::new(0, 0, PAGE_SIZE, 0)?;
            let start = memory.as_mut_ptr();
            room.buf.head[0].iov_base = start.cast();
            room.buf.head[0].iov_len = HEAD;
            room.buf.tail[0].iov_base = start.wrapping_add(HEAD).cast();
            room.buf.tail[0].iov_len = TAIL;
            room.buf.buflen = (HEAD + PAGE_SIZE + TAIL) as u32;
            // SAFETY: The memory is as long as that, and nobody else has it.
            let stretched = unsafe {
                let buf = XdrBuf::from_raw(&raw mut room.buf);
                stretch_head(buf, len, ROOM).map(|()| (buf.head_len(), buf.tail_len()))
            };
            same("head and tail", stretched, expected)?;
            let (head, tail) = expected.unwrap_or((HEAD, TAIL));
            let behind = start.wrapping_add(head);
            claim(
                room.buf.tail[0].iov_base.cast() == behind,
                "one behind the other",
            )?;
            same("room", room.buf.buflen as usize, head + PAGE_SIZE + tail)?;
        }
        Ok(())
    }

    #[test]
    fn a_head_whose_tail_is_elsewhere() -> Result {
        let mut room = Buffer::new(120, 0, PAGE_SIZE, 24)?;
        // SAFETY: Head, pages and tail are as long as the buffer says, and nobody else has them;
        // behind the head there is that much.
        let stretched =
            unsafe { stretch_head(XdrBuf::from_raw(&raw mut room.buf), 124, 120 + GUARD) };
        same("stretched", stretched, Err(EIO))?;
        same("head", room.buf.head[0].iov_len, 120)
    }

    #[test]
    fn what_a_chunk_may_cover() -> Result {
        for (head, base, paged, tail) in ROOMS {
            let mut room = Buffer::new(*head, *base, *paged, *tail)?;
            let room = room.room();
            // Of the payload no byte more than there is: what is behind it may be an application's.
            same("payload", room.page_pieces().remaining(), *paged)?;
            same("message", room.pieces().remaining(), head + paged + tail)?;
        }
        Ok(())
    }

    #[test]
    fn a_length_beyond_the_room() -> Result {
        for (head, base, paged, tail) in ROOMS {
            let most = (head + paged + tail).next_multiple_of(4);
            // The padding of what just fits may be missing.
            for (len, expected) in [
                (most, most),
                (most + 4, most),
                (most + PAGE_SIZE, most),
                (usize::MAX, most),
            ] {
                let mut room = Buffer::new(*head, *base, *paged, *tail)?;
                same("length", room.room().complete_word(len), expected)?;
                room.expect(&[])?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_page_behind_every_byte() -> Result {
        for (base, paged, expected) in [
            // The second is there before.
            (0, 0, [false, true, false]),
            (0, PAGE_SIZE, [true, true, false]),
            (100, PAGE_SIZE, [true, true, false]),
            (PAGE_SIZE, 2 * PAGE_SIZE, [false, true, true]),
            (0, 3 * PAGE_SIZE, [true, true, true]),
        ] {
            let mut room = Buffer::new(120, base, paged, 24)?;
            let there = room.pages.get(1).copied().ok_or(EINVAL)?;
            room.leave_out(&[0, 2])?;
            let mut copy = bindings::xdr_buf::default();
            for buf in [&mut room.buf, &mut copy] {
                buf.flags = bindings::XDRBUF_SPARSE_PAGES | bindings::XDRBUF_READ;
            }
            // SAFETY: Both are nobody else's, and the array reaches to the end of the pages.
            let filled = unsafe {
                let buf = XdrBuf::from_raw(&raw mut room.buf);
                fill(buf, XdrBuf::from_raw(&raw mut copy)).map(|()| is_filled(buf))
            };
            same("filled", filled, Ok(true))?;
            // The RPC layer compares them.
            same("flags", room.buf.flags, bindings::XDRBUF_READ)?;
            same("flags", copy.flags, bindings::XDRBUF_READ)?;
            let found = room.pages.iter().map(|page| !page.is_null());
            claim(found.eq(expected), "pages are where they are needed")?;
            same("kept", room.pages.get(1).copied(), Some(there))?;
        }
        Ok(())
    }

    #[test]
    fn no_room() -> Result {
        for tail in [0, 3] {
            let mut room = Buffer::new(0, 0, 0, tail)?;
            let message = message(8)?;
            same("received", room.receive(&message), Err(EIO))?;
            room.expect(&[])?;
        }
        Ok(())
    }
}
