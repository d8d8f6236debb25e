// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The choice between inline and chunks for the parts of an RPC (RFC 8166, section 3.5; RFC 8267).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/chunks.rs"]
mod tests;

use xdr::lists_size;

/// The parts of an RPC that the choice depends on. All sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The encoded Call.
    pub(crate) call: usize,
    /// The Call's head, in front of its pages.
    pub(crate) call_head: usize,
    /// The Call's pages.
    pub(crate) call_pages: usize,
    /// The pages are an argument that may be placed directly.
    pub(crate) call_is_write: bool,
    /// The room for the Reply.
    pub(crate) reply: usize,
    /// The room for the Reply's pages.
    pub(crate) reply_pages: usize,
    /// The pages are a result that may be placed directly.
    pub(crate) reply_is_read: bool,
    /// No security flavor protects the messages' contents: integrity and privacy forbid to take
    /// data items out of them (RFC 8166, section 8.2.2.3).
    pub(crate) may_place_directly: bool,
}

/// The longest messages of a connection without chunks, in bytes behind the header: within the
/// inline thresholds (RFC 8166, section 3.3.3). And the size of a chunk in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thresholds {
    /// The largest Call that the server receives.
    pub(crate) send: usize,
    /// The largest Reply that we receive.
    pub(crate) receive: usize,
    /// The most segments of a chunk that carries one payload.
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

/// Returns the number of padding bytes that XDR adds to `len` bytes (RFC 4506, section 3).
pub(crate) fn pad(len: usize) -> usize {
    len.wrapping_neg() & 3
}

/// Returns the length in bytes of a Reply with `inline` bytes inline and `written` bytes in its
/// Write chunk. The inline part may hold all, some or none of the padding.
#[inline]
pub(crate) fn reply_len(inline: usize, written: usize) -> usize {
    inline + written + pad(written)
}

/// Returns whether the place of an inline Reply overlaps memory that its RPC has offered as a Write
/// chunk or a Reply chunk. `inline` bytes are inline, `head` of them in front of the pages.
pub(crate) fn overlaps(inline: usize, head: usize, write_chunk: bool, reply_chunk: bool) -> bool {
    // A Reply chunk covers the head, too.
    reply_chunk || (write_chunk && inline > head)
}

/// Chooses the chunk for the results, for the largest Reply that may come.
pub(crate) fn results(shape: &Shape, thresholds: &Thresholds) -> Results {
    let fits = |lists: usize, body: usize| lists.saturating_add(body) <= thresholds.receive;
    if fits(0, shape.reply) {
        return Results::Inline;
    }
    let rest = shape.reply.saturating_sub(shape.reply_pages);
    let direct = shape.may_place_directly && shape.reply_is_read && shape.reply_pages != 0;
    if direct && fits(lists_size(0, [thresholds.segments], None), rest) {
        return Results::WriteChunk;
    }
    Results::ReplyChunk
}

/// Returns whether a Call of `call` bytes and the largest Reply both fit inline, as most do: then
/// [`results`] and [`arguments`] say so, too.
pub(crate) fn fit_inline(call: usize, reply: usize, thresholds: &Thresholds) -> bool {
    call <= thresholds.send && reply <= thresholds.receive
}

/// Chooses the chunk for the arguments, beside result chunks of `write` and `reply` segments.
pub(crate) fn arguments(
    shape: &Shape,
    thresholds: &Thresholds,
    write: usize,
    reply: usize,
) -> Arguments {
    let lists = |reads: usize| {
        let reply = (reply != 0).then_some(reply);
        if write != 0 {
            lists_size(reads, [write], reply)
        } else {
            lists_size(reads, [], reply)
        }
    };
    let fits = |lists: usize, body: usize| lists.saturating_add(body) <= thresholds.send;
    if fits(lists(0), shape.call) {
        return Arguments::Inline;
    }
    let rest = shape.call.saturating_sub(shape.call_pages);
    let direct = shape.may_place_directly && shape.call_is_write && shape.call_pages != 0;
    // A Position is a multiple of 4 (RFC 8166, section 3.4.5), as that of an argument always is.
    if direct && shape.call_head % 4 == 0 && fits(lists(thresholds.segments), rest) {
        return Arguments::ReadChunk;
    }
    Arguments::PositionZero
}
