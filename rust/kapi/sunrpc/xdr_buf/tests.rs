// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a received message gets into the room that the consumer has for it, all of it or as
//! much as fits, and no byte beyond; nor does a chunk cover one. Pages of an encrypted Call stay as
//! long as a region covers them, whatever its request does.

use crate::{
    kapi::sunrpc::xdr_buf::*,
    kunit::{
        claim,
        same, //
    },
};

/// Bytes in front of head and tail, and behind them.
const GUARD: usize = 16;
/// What is in all memory before; no message has it.
const BEFORE: u8 = 0xaa;
const PAGES: usize = 3;

/// Room for a message, with memory around each part of it.
struct Room {
    head: KVec<u8>,
    pages: KVec<*mut bindings::page>,
    tail: KVec<u8>,
    buf: bindings::xdr_buf,
}

impl Room {
    /// A head, pages with where they begin, and a tail, of so many bytes.
    fn new(head: usize, base: usize, paged: usize, tail: usize) -> Result<Self> {
        let mut room = Self {
            head: KVec::from_elem(BEFORE, head + 2 * GUARD, GFP_KERNEL)?,
            pages: KVec::with_capacity(PAGES, GFP_KERNEL)?,
            tail: KVec::from_elem(BEFORE, tail + 2 * GUARD, GFP_KERNEL)?,
            buf: bindings::xdr_buf::default(),
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

    /// The bytes of one of its pages.
    fn page(&mut self, page: *mut bindings::page) -> &mut [u8] {
        // SAFETY: The page is of this room, of the direct map, and borrowed with it.
        unsafe { core::slice::from_raw_parts_mut(bindings::page_address(page).cast(), PAGE_SIZE) }
    }

    /// Checks how many references there are to each page.
    fn expect_references(&self, expected: i32) -> Result {
        for page in &self.pages {
            // SAFETY: The page is of this room.
            let count = unsafe { bindings::page_count(*page) };
            same("references", count, expected)?;
        }
        Ok(())
    }

    fn receive(&mut self, message: &[u8]) -> Result<usize> {
        // SAFETY: Head, pages and tail are as long as the buffer says, and nobody else has them.
        unsafe { XdrBuf::from_raw(&raw mut self.buf) }.receive(message)
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

impl Drop for Room {
    fn drop(&mut self) {
        for page in &self.pages {
            // SAFETY: Allocated in `new`.
            unsafe { bindings::put_page(*page) };
        }
    }
}

/// What a request does with its pages when it is encoded anew. Here it is not.
extern "C" fn let_go(_rqst: *mut bindings::rpc_rqst) {}

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
    let mut room = Room::new(head, base, paged, tail)?;
    let mut message = message(len)?;
    same("received", room.receive(&message), Ok(len))?;
    // SAFETY: Head, pages and tail are as long as the buffer says, and nobody else has them.
    let whole = unsafe { XdrBuf::from_raw(&raw mut room.buf) }.complete_word(len);
    let (padded, most) = (len.next_multiple_of(4), head + paged + tail);
    let expected = if padded <= most { padded } else { len & !3 };
    same("length", whole, expected)?;
    // Zeros, whatever was there before.
    for _ in len..whole {
        message.push(0, GFP_KERNEL)?;
    }
    room.expect(&message)
}

#[kunit_tests(rpcrdma_xdr_buf)]
mod suite {
    use super::*;

    #[test]
    fn a_message_that_fits() -> Result {
        for (head, base, paged, tail) in ROOMS {
            let most = head + paged + tail;
            for len in [1, 4, head + 1, head + paged, most - 1, most] {
                let len = len.min(most);
                let mut room = Room::new(*head, *base, *paged, *tail)?;
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
                let mut room = Room::new(*head, *base, *paged, *tail)?;
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
            let mut room = Room::new(0, 0, PAGE_SIZE, 0)?;
            let start = memory.as_mut_ptr();
            room.buf.head[0].iov_base = start.cast();
            room.buf.head[0].iov_len = HEAD;
            room.buf.tail[0].iov_base = start.wrapping_add(HEAD).cast();
            room.buf.tail[0].iov_len = TAIL;
            room.buf.buflen = (HEAD + PAGE_SIZE + TAIL) as u32;
            // SAFETY: The memory is as long as that, and nobody else has it.
            let stretched = unsafe {
                let mut buf = XdrBuf::from_raw(&raw mut room.buf);
                buf.stretch_head(len, ROOM)
                    .map(|()| (buf.head_len(), buf.tail_len()))
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
        let mut room = Room::new(120, 0, PAGE_SIZE, 24)?;
        // SAFETY: Head, pages and tail are as long as the buffer says, and nobody else has them;
        // behind the head there is that much.
        let stretched =
            unsafe { XdrBuf::from_raw(&raw mut room.buf).stretch_head(124, 120 + GUARD) };
        same("stretched", stretched, Err(EIO))?;
        same("head", room.buf.head[0].iov_len, 120)
    }

    #[test]
    fn what_a_chunk_may_cover() -> Result {
        for (head, base, paged, tail) in ROOMS {
            let mut room = Room::new(*head, *base, *paged, *tail)?;
            // SAFETY: Head, pages and tail are as long as the buffer says, and nobody else has
            // them.
            let buf = unsafe { XdrBuf::from_raw(&raw mut room.buf) };
            // Of the payload no byte more than there is: what is behind it may be an application's.
            same("payload", buf.page_pieces()?.remaining(), *paged)?;
            same("message", buf.pieces()?.remaining(), head + paged + tail)?;
        }
        Ok(())
    }

    #[test]
    fn pages_of_an_encrypted_call_are_kept() -> Result {
        for (encrypted, while_covered) in [(true, 2), (false, 1)] {
            let mut room = Room::new(120, 0, PAGE_SIZE, 24)?;
            // SAFETY: All zeroes is what the RPC layer makes of a fresh request.
            let rqst: bindings::rpc_rqst = unsafe { core::mem::zeroed() };
            let mut rqst = KBox::new(rqst, GFP_KERNEL)?;
            rqst.rq_snd_buf = core::mem::take(&mut room.buf);
            rqst.rq_enc_pages = room.pages.as_mut_ptr();
            rqst.rq_enc_pages_num = PAGES as i32;
            rqst.rq_release_snd_buf = encrypted.then_some(let_go as unsafe extern "C" fn(_));
            let rqst = NonNull::from(&mut *rqst);
            // SAFETY: The request stays, and the buffer is as long as it says.
            let buf = unsafe { XdrBuf::to_send(rqst) };
            for pieces in [XdrBuf::pieces, XdrBuf::page_pieces] {
                let pieces = pieces(&buf)?;
                // All of them: the tail may be in the last one.
                room.expect_references(while_covered)?;
                drop(pieces);
                room.expect_references(1)?;
            }
        }
        Ok(())
    }

    #[test]
    fn no_room() -> Result {
        for tail in [0, 3] {
            let mut room = Room::new(0, 0, 0, tail)?;
            let message = message(8)?;
            same("received", room.receive(&message), Err(EIO))?;
            room.expect(&[])?;
        }
        Ok(())
    }
}
