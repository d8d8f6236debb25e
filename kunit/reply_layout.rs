// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: each payload of a result goes into its own chunk or stays in the Payload stream, never
//! both, padding leaves with it, and nothing is written that the client has not offered.

use super::{
    super::request::{
        only_key,
        Invalidates, //
    },
    *, //
};
use crate::kunit::{
    claim,
    same, //
};
use xdr::{
    Call,
    Encoder,
    Limits,
    Segment, //
};

const XID: u32 = 7;
const ROOM: usize = 600;

fn segment(handle: u32, length: u32) -> Segment {
    Segment {
        handle,
        length,
        offset: 0x1000,
    }
}

/// Encodes a Call with Write chunks and a Reply chunk, of segments of these lengths.
fn encode<'b>(
    buffer: &'b mut [u8; ROOM],
    chunks: &[&[u32]],
    reply_chunk: Option<u32>,
) -> Result<&'b [u8]> {
    let mut writes = Encoder::msg(buffer, XID, 1).end_reads();
    for (i, chunk) in chunks.iter().enumerate() {
        let mut segments = KVec::new();
        for length in *chunk {
            segments.push(segment(i as u32 + 1, *length), GFP_KERNEL)?;
        }
        writes.write_chunk(&segments);
    }
    let end = writes.end_writes();
    let encoded = match reply_chunk {
        Some(length) => end.reply_chunk([segment(99, length)]),
        None => end.no_reply_chunk(),
    };
    let len = encoded.map_err(|_| EINVAL)?;
    // XID and direction of the RPC message.
    let rpc = buffer.get_mut(len..len + 8).ok_or(EINVAL)?;
    rpc.copy_from_slice(&[0, 0, 0, XID as u8, 0, 0, 0, 0]);
    buffer.get(..len + 8).ok_or(EINVAL)
}

fn limits() -> Limits {
    Limits {
        write_chunks: 8,
        write_segments: 128,
        ..Limits::floor(1 << 20)
    }
}

fn decode<'b>(bytes: &'b [u8]) -> Result<Call<'b>> {
    match xdr::Message::decode(bytes, &limits()) {
        Ok(xdr::Message::Call(call)) => Ok(call),
        _ => Err(EINVAL),
    }
}

fn offered<'b>(bytes: &'b [u8]) -> Result<(ReplyCtx, Offer<'b>)> {
    let call = decode(bytes)?;
    Ok((ReplyCtx::new(&call, Invalidates::Any), call.offer()))
}

fn payload(offset: usize, length: usize) -> Payload {
    Payload { offset, length }
}

fn layout<'a>(
    (ctx, offer): &'a (ReplyCtx, Offer<'a>),
    payloads: &'a mut [Payload],
    len: usize,
) -> Result<ReplyLayout<'a>> {
    let layout = ReplyLayout::new(CompletionId::default, ctx, offer, payloads, len);
    layout.map_err(|unsent| match unsent {
        Unsent::Refused(_) => EMSGSIZE,
        Unsent::Failed(e) => e,
    })
}

/// What stays in the Payload stream: offsets and lengths.
fn stream(layout: &ReplyLayout<'_>) -> Result<KVec<(usize, usize)>> {
    let mut parts = KVec::new();
    layout.stream(|offset, len| {
        if len != 0 {
            parts.push((offset, len), GFP_KERNEL)?;
        }
        Ok(())
    })?;
    let lengths = parts.iter().map(|(_, len)| *len);
    same("length", layout.stream_len, lengths.sum())?;
    Ok(parts)
}

/// Writes the header of the Reply.
fn header(layout: &ReplyLayout<'_>, to: &mut [u8], long: Option<u32>) -> Result<usize> {
    let place = long.map_or(ReplyPlace::Inline, ReplyPlace::ReplyChunk);
    let encoded = layout
        .offer
        .encode_reply(to, XID, 0, layout.written(), place);
    encoded.map_err(|_| EMSGSIZE)
}

/// The lengths in the header of the Reply, chunk by chunk, and of the Reply chunk.
fn returned(layout: &ReplyLayout<'_>, long: Option<u32>) -> Result<(KVec<KVec<u32>>, Option<u32>)> {
    let mut buffer = [0; ROOM];
    let len = header(layout, &mut buffer, long)?;
    let rpc = buffer.get_mut(len..len + 8).ok_or(EINVAL)?;
    rpc.copy_from_slice(&[0, 0, 0, XID as u8, 0, 0, 0, 1]);
    let end = if long.is_some() { len } else { len + 8 };
    let bytes = buffer.get(..end).ok_or(EINVAL)?;
    let Ok(xdr::Message::Reply(reply)) = xdr::Message::decode(bytes, &limits()) else {
        return Err(EINVAL);
    };
    let mut chunks = KVec::new();
    for chunk in reply.writes.chunks() {
        let mut lengths = KVec::new();
        for segment in chunk.segments() {
            lengths.push(segment.length, GFP_KERNEL)?;
        }
        chunks.push(lengths, GFP_KERNEL)?;
    }
    Ok((chunks, reply.reply_chunk.map(|chunk| chunk.length())))
}

#[kunit_tests(rpcrdma_reply_layout)]
mod suite {
    use super::*;

    #[test]
    fn nothing_to_place() -> Result {
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[&[4096]], None)?)?;
        let layout = layout(&offer, &mut [], 100)?;
        same("stream", &stream(&layout)?[..], &[(0, 100)])?;
        // It keeps its segments, unused (RFC 8166, section 4.3.2.2).
        let (chunks, _) = returned(&layout, None)?;
        same("chunks", chunks.len(), 1)?;
        same("unused", &chunks[0][..], &[0])
    }

    #[test]
    fn padding_leaves_with_its_payload() -> Result {
        for (length, behind) in [(1000, 1200), (1001, 1204), (1003, 1204)] {
            let mut buffer = [0; ROOM];
            let offer = offered(encode(&mut buffer, &[&[600, 4096]], None)?)?;
            let mut payloads = [payload(200, length)];
            let layout = layout(&offer, &mut payloads, 1300)?;
            let expected = [(0, 200), (behind, 1300 - behind)];
            same("stream", &stream(&layout)?[..], &expected)?;
            let (chunks, _) = returned(&layout, None)?;
            same("filled", &chunks[0][..], &[600, length as u32 - 600])?;
        }
        Ok(())
    }

    #[test]
    fn a_payload_at_the_ends_of_its_result() -> Result {
        /// A payload of a result of that length, and what stays in the Payload stream.
        type Case = (Payload, usize, &'static [(usize, usize)]);
        let cases: [Case; 9] = [
            (payload(200, 1000), 1300, &[(0, 200), (1200, 100)]),
            (payload(200, 1000), 1200, &[(0, 200)]),
            (payload(0, 1000), 1000, &[]),
            (payload(0, 1000), 2000, &[(1000, 1000)]),
            (payload(200, 1001), 1203, &[(0, 200)]),
            (payload(200, 1001), 1204, &[(0, 200)]),
            (payload(200, 1003), 1240, &[(0, 200), (1204, 36)]),
            // Taken back, or nothing.
            (payload(200, 1000), 1199, &[(0, 1199)]),
            (payload(200, 0), 1200, &[(0, 1200)]),
        ];
        for (payload, len, expected) in cases {
            let mut buffer = [0; ROOM];
            let offer = offered(encode(&mut buffer, &[&[600, 4096]], None)?)?;
            let mut payloads = [payload];
            let layout = layout(&offer, &mut payloads, len)?;
            same("stream", &stream(&layout)?[..], expected)?;
        }
        Ok(())
    }

    #[test]
    fn a_payload_that_cannot_be() -> Result {
        for (payload, len) in [
            (payload(usize::MAX, 8), 1200),
            (payload(8, usize::MAX), 1200),
            // There is room for a byte less.
            (payload(200, 4697), 5000),
        ] {
            let mut buffer = [0; ROOM];
            let offer = offered(encode(&mut buffer, &[&[600, 4096]], None)?)?;
            let refused = layout(&offer, &mut [payload], len).err();
            same("refused", refused, Some(EMSGSIZE))?;
        }
        Ok(())
    }

    #[test]
    fn a_result_that_ends_with_its_payload() -> Result {
        // The padding is not there.
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[&[4096]], None)?)?;
        let mut payloads = [payload(200, 1001)];
        let layout = layout(&offer, &mut payloads, 1201)?;
        same("stream", &stream(&layout)?[..], &[(0, 200)])
    }

    #[test]
    fn each_payload_has_its_own_chunk() -> Result {
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[&[100], &[200], &[300]], None)?)?;
        let mut payloads = [payload(40, 100), payload(200, 0), payload(240, 300)];
        let layout = layout(&offer, &mut payloads, 600)?;
        same(
            "stream",
            &stream(&layout)?[..],
            &[(0, 40), (140, 100), (540, 60)],
        )?;
        let (chunks, _) = returned(&layout, None)?;
        // A READ of no bytes keeps the place of its chunk (RFC 8267, section 6.4.1).
        for (chunk, expected) in chunks.iter().zip([100, 0, 300]) {
            same("filled", &chunk[..], &[expected])?;
        }
        Ok(())
    }

    #[test]
    fn payloads_beyond_the_list_stay() -> Result {
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[&[100]], None)?)?;
        let mut payloads = [payload(40, 100), payload(200, 50)];
        let layout = layout(&offer, &mut payloads, 300)?;
        same("stream", &stream(&layout)?[..], &[(0, 40), (140, 160)])
    }

    #[test]
    fn an_empty_chunk_wants_it_inline() -> Result {
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[&[], &[100]], None)?)?;
        let mut payloads = [payload(40, 60), payload(120, 100)];
        let layout = layout(&offer, &mut payloads, 260)?;
        same("stream", &stream(&layout)?[..], &[(0, 120), (220, 40)])?;
        let (chunks, _) = returned(&layout, None)?;
        same("empty", chunks[0].len(), 0)?;
        same("filled", &chunks[1][..], &[100])
    }

    #[test]
    fn what_is_missing_is_told() -> Result {
        let mut buffer = [0; ROOM];
        let (ctx, offer) = offered(encode(&mut buffer, &[&[100], &[60, 40]], Some(500))?)?;
        let mut payloads = [payload(40, 100), payload(200, 101)];
        let short = ReplyLayout::new(CompletionId::default, &ctx, &offer, &mut payloads, 400);
        let told = matches!(
            short.err(),
            Some(Unsent::Refused(Reason::WriteRoom {
                index: 2,
                needed: 101
            }))
        );
        claim(told, "the second chunk")?;
        let cases = [(501, 24, Some(501)), (500, 24, None), (501, 23, None)];
        for (len, room, expected) in cases {
            let layout = ReplyLayout::new(CompletionId::default, &ctx, &offer, &mut [], len);
            let layout = layout.map_err(|_| EINVAL)?;
            let told = match layout.unsent(room, EMSGSIZE) {
                Unsent::Refused(Reason::ReplyRoom { needed }) => Some(needed),
                // It has the room, or no use for more.
                Unsent::Refused(Reason::Chunks) => None,
                _ => return Err(EINVAL),
            };
            same("Reply chunk", told, expected)?;
        }
        let other = ReplyLayout::new(CompletionId::default, &ctx, &offer, &mut [], 501);
        let other = other.map_err(|_| EINVAL)?.unsent(24, ENOMEM);
        claim(matches!(other, Unsent::Failed(ENOMEM)), "another error")
    }

    #[test]
    fn no_more_than_was_offered() -> Result {
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[&[60, 40]], Some(500))?)?;
        claim(
            layout(&offer, &mut [payload(40, 100)], 200).is_ok(),
            "all of it",
        )?;
        let mut payloads = [payload(40, 101)];
        let more = layout(&offer, &mut payloads, 200);
        same("one byte more", more.err(), Some(EMSGSIZE))?;
        let layout = layout(&offer, &mut [], 501)?;
        let mut room = [0; ROOM];
        claim(header(&layout, &mut room, Some(500)).is_ok(), "500")?;
        let more = header(&layout, &mut room, Some(501));
        same("one byte more", more.err(), Some(EMSGSIZE))
    }

    #[test]
    fn a_reply_chunk_that_is_not_needed() -> Result {
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[], Some(500))?)?;
        let layout = layout(&offer, &mut [], 100)?;
        same("inline", returned(&layout, None)?.1, Some(0))?;
        same("long", returned(&layout, Some(100))?.1, Some(100))
    }

    #[test]
    fn payloads_that_cannot_be() -> Result {
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[&[100], &[100]], None)?)?;
        for mut payloads in [
            // One in the other.
            [payload(40, 10), payload(45, 10)],
            [payload(40, 10), payload(usize::MAX, 10)],
        ] {
            claim(layout(&offer, &mut payloads, 100).is_err(), "refused")?;
        }
        Ok(())
    }

    #[test]
    fn payloads_that_were_taken_back() -> Result {
        // nfsd found no room for the second READ, and cut the result off.
        let mut buffer = [0; ROOM];
        let offer = offered(encode(&mut buffer, &[&[100], &[100]], None)?)?;
        let mut payloads = [payload(40, 100), payload(200, 100)];
        let layout = layout(&offer, &mut payloads, 180)?;
        same("stream", &stream(&layout)?[..], &[(0, 40), (140, 40)])?;
        let (chunks, _) = returned(&layout, None)?;
        same("filled", &chunks[0][..], &[100])?;
        same("unused", &chunks[1][..], &[0])
    }

    #[test]
    fn one_key_for_all() -> Result {
        let mut buffer = [0; ROOM];
        let call = decode(encode(&mut buffer, &[&[60, 40]], None)?)?;
        same("one", only_key(&call), Some(1))?;
        let mut buffer = [0; ROOM];
        let call = decode(encode(&mut buffer, &[&[60, 40], &[10]], None)?)?;
        same("two", only_key(&call), None)?;
        let mut buffer = [0; ROOM];
        let call = decode(encode(&mut buffer, &[&[60]], Some(10))?)?;
        same("two", only_key(&call), None)?;
        let mut buffer = [0; ROOM];
        let call = decode(encode(&mut buffer, &[], None)?)?;
        same("none", only_key(&call), None)?;
        let mut buffer = [0; ROOM];
        let call = decode(encode(&mut buffer, &[&[0, 60], &[0]], Some(0))?)?;
        same("one, of no empty segment", only_key(&call), Some(1))?;
        let mut buffer = [0; ROOM];
        let call = decode(encode(&mut buffer, &[&[0]], Some(0))?)?;
        same("of empty segments alone", only_key(&call), None)
    }
}
