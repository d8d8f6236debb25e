// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Which parts of an RPC go inline, and which through chunks (RFC 8166, section 3.5; RFC 8267).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/chunks.rs"]
mod tests;

use crate::transport::header::{
    header_size,
    inline_len, //
};

/// What the choice depends on. All sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The Call as encoded.
    pub(crate) call: usize,
    /// The Call's head, in front of its pages.
    pub(crate) call_head: usize,
    /// The Call's pages.
    pub(crate) call_pages: usize,
    /// The pages are an argument that may be placed directly.
    pub(crate) call_is_write: bool,
    /// Room for the Reply.
    pub(crate) reply: usize,
    /// Room for the Reply's pages.
    pub(crate) reply_pages: usize,
    /// The pages are a result that may be placed directly.
    pub(crate) reply_is_read: bool,
    /// No security flavor looks into the messages: integrity and privacy forbid to take data
    /// items out of them (RFC 8166, section 8.2.2.3).
    pub(crate) may_place_directly: bool,
}

/// The inline thresholds of a connection, in bytes (RFC 8166, section 3.3.3), and what its chunks
/// may take of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thresholds {
    /// The largest message that the server receives.
    pub(crate) send: usize,
    /// The largest message that we receive.
    pub(crate) receive: usize,
    /// Segments of a chunk that is one payload, at most.
    pub(crate) segments: usize,
}

/// How the results come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Results {
    /// All inline.
    Inline,
    /// The pages through a Write chunk, the rest inline.
    WriteChunk,
    /// All through a Reply chunk, if it is too long to be inline.
    ReplyChunk,
}

/// How the arguments go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// All inline.
    Inline,
    /// The pages through a Read chunk, the rest inline.
    ReadChunk,
    /// All through a Position Zero Read chunk.
    PositionZero,
}

/// Bytes that XDR adds to `len` (RFC 4506, section 3).
pub(crate) fn pad(len: usize) -> usize {
    len.wrapping_neg() & 3
}

/// Bytes of a Reply of which `inline` came inline and `written` bytes were written into its Write
/// chunk. The padding of those may be among them, or none, or a part of it.
#[inline]
pub(crate) fn reply_len(inline: usize, written: usize) -> usize {
    inline + written + pad(written)
}

/// Whether the place of an inline Reply of `inline` bytes, of which `head` have their place in
/// front of the pages, is memory that its RPC has offered as a Write chunk, or as a Reply chunk.
pub(crate) fn overlaps(inline: usize, head: usize, write_chunk: bool, reply_chunk: bool) -> bool {
    // A Reply chunk covers the head, too.
    reply_chunk || (write_chunk && inline > head)
}

/// How to provide for the results: for the largest Reply there can be.
pub(crate) fn results(shape: &Shape, thresholds: &Thresholds) -> Results {
    let fits = |header: usize, body: usize| header.saturating_add(body) <= thresholds.receive;
    if fits(header_size(0, [], None), shape.reply) {
        return Results::Inline;
    }
    let rest = shape.reply.saturating_sub(shape.reply_pages);
    let direct = shape.may_place_directly && shape.reply_is_read && shape.reply_pages != 0;
    if direct && fits(header_size(0, [thresholds.segments], None), rest) {
        return Results::WriteChunk;
    }
    Results::ReplyChunk
}

/// Whether a Call of so many bytes and the largest Reply both fit inline, as most do: then
/// [`results`] and [`arguments`] say so, too.
pub(crate) fn fit_inline(call: usize, reply: usize, thresholds: &Thresholds) -> bool {
    let fits = |body: usize, threshold: usize| inline_len(body) <= threshold;
    fits(call, thresholds.send) && fits(reply, thresholds.receive)
}

/// How to send the arguments, when the chunks for the results have so many segments.
pub(crate) fn arguments(
    shape: &Shape,
    thresholds: &Thresholds,
    write: usize,
    reply: usize,
) -> Arguments {
    let header = |reads: usize| {
        let reply = (reply != 0).then_some(reply);
        if write != 0 {
            header_size(reads, [write], reply)
        } else {
            header_size(reads, [], reply)
        }
    };
    let fits = |header: usize, body: usize| header.saturating_add(body) <= thresholds.send;
    if fits(header(0), shape.call) {
        return Arguments::Inline;
    }
    let rest = shape.call.saturating_sub(shape.call_pages);
    let direct = shape.may_place_directly && shape.call_is_write && shape.call_pages != 0;
    // A Position is a multiple of 4 (RFC 8166, section 3.4.5), which an argument's always is.
    if direct && shape.call_head % 4 == 0 && fits(header(thresholds.segments), rest) {
        return Arguments::ReadChunk;
    }
    Arguments::PositionZero
}
