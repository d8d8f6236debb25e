// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what is read for a Call goes exactly where the unreduced Payload stream has it,
//! whatever the order and number of its chunks, and positions that cannot be are refused.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use xdr::{
    Encoder,
    Limits,
    Segment, //
};

const ROOM: usize = 1000;

fn segment(length: u32) -> Segment {
    Segment {
        handle: 1,
        length,
        offset: 0x1000,
    }
}

/// A Call with Read chunks at these positions, of these lengths, before `inline` bytes; without
/// any, the chunk at position zero holds the message.
fn with_call<R>(
    chunks: &[(u32, u32)],
    inline: Option<usize>,
    look: impl FnOnce(&Call<'_>) -> Result<R>,
) -> Result<R> {
    let mut buffer = [0; ROOM];
    let mut reads = match inline {
        Some(_) => Encoder::msg(&mut buffer, 7, 1),
        None => Encoder::nomsg(&mut buffer, 7, 1),
    };
    for (position, length) in chunks {
        reads.read_chunk(*position, [segment(*length)]);
    }
    let encoded = reads.end_reads().end_writes().no_reply_chunk();
    let len = encoded.map_err(|_| EINVAL)?;
    let end = len + inline.unwrap_or(0);
    if inline.is_some() {
        // The XID; the direction is zero.
        *buffer.get_mut(len + 3).ok_or(EINVAL)? = 7;
    }
    let bytes = buffer.get(..end).ok_or(EINVAL)?;
    let limits = Limits {
        read_chunks: 8,
        ..Limits::floor(1 << 20)
    };
    match xdr::Message::decode(bytes, &limits) {
        Ok(xdr::Message::Call(call)) => look(&call),
        _ => Err(EPROTO),
    }
}

/// A part of the unreduced stream: offset, length, and whether it is a chunk.
type Part = (usize, usize, bool);

/// The parts of the unreduced stream, and its length.
fn parts(call: &Call<'_>) -> Result<(KVec<Part>, usize)> {
    let reduced = match &call.payload {
        CallPayload::Inline(inline) => inline.bytes.len(),
        CallPayload::PositionZero(chunk) => chunk.length() as usize,
    };
    let mut parts = KVec::new();
    let length = run_through(call, reduced, |offset, source| {
        let (len, chunk) = match source {
            Source::Chunk(chunk) => (chunk.length() as usize, true),
            Source::Stream(len) => (len, false),
        };
        if len != 0 {
            parts.push((offset, len, chunk), GFP_KERNEL)?;
        }
        Ok(())
    })?;
    Ok((parts, length))
}

#[kunit_tests(rpcrdma_arguments)]
mod suite {
    use super::*;

    #[test]
    fn one_chunk_in_the_middle() -> Result {
        with_call(&[(80, 1000)], Some(100), |call| {
            let (parts, length) = parts(call)?;
            let expected = [(0, 80, false), (80, 1000, true), (1080, 20, false)];
            same("parts", &parts[..], &expected)?;
            same("length", length, 1100)
        })
    }

    #[test]
    fn positions_count_in_the_unreduced_stream() -> Result {
        // Two WRITEs of a COMPOUND; the first has one byte of padding.
        with_call(&[(80, 999), (1100, 50)], Some(120), |call| {
            let (parts, length) = parts(call)?;
            let expected = [
                (0, 80, false),
                (80, 999, true),
                (1080, 20, false),
                (1100, 50, true),
                (1152, 20, false),
            ];
            same("parts", &parts[..], &expected)?;
            same("length", length, 1172)
        })
    }

    #[test]
    fn the_order_of_the_list_is_of_no_matter() -> Result {
        let ordered = with_call(&[(80, 999), (1100, 50)], Some(120), parts)?;
        let other = with_call(&[(1100, 50), (80, 999)], Some(120), parts)?;
        same("parts", &other.0[..], &ordered.0[..])
    }

    #[test]
    fn chunks_next_to_each_other() -> Result {
        with_call(&[(80, 100), (180, 100)], Some(80), |call| {
            let (parts, length) = parts(call)?;
            let expected = [(0, 80, false), (80, 100, true), (180, 100, true)];
            same("parts", &parts[..], &expected)?;
            same("length", length, 280)
        })
    }

    #[test]
    fn a_long_call_with_a_chunk_taken_out() -> Result {
        with_call(&[(0, 2000), (80, 1000)], None, |call| {
            let (parts, length) = parts(call)?;
            let expected = [(0, 80, false), (80, 1000, true), (1080, 1920, false)];
            same("parts", &parts[..], &expected)?;
            same("length", length, 3000)
        })
    }

    #[test]
    fn nothing_is_behind_an_empty_chunk() -> Result {
        let of = |given| Argument::reduced(28, 80, given);
        claim(
            matches!(of(0), Argument::Inline { offset: 28 }),
            "a head alone",
        )?;
        claim(
            matches!(of(1), Argument::Reduced { position: 80, .. }),
            "a head, a page and a tail",
        )
    }

    #[test]
    fn positions_that_cannot_be() -> Result {
        for chunks in [
            // Behind the stream.
            &[(104, 10)][..],
            // In the chunk before.
            &[(80, 100), (120, 10)],
            // In its padding.
            &[(80, 97), (176, 10)],
            // So far that there is not enough in between.
            &[(80, 100), (204, 10)],
        ] {
            // The decoder does, so that nobody gets to see them.
            let seen = with_call(chunks, Some(100), |_| Ok(()));
            same("refused", seen.err(), Some(EPROTO))?;
        }
        Ok(())
    }
}
