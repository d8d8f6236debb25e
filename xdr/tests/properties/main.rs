// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Properties of the codec over generated messages, held against a second implementation.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub
)]

mod model;
mod strategy;

use proptest::prelude::*;
use xdr::{
    checks::{
        is_over_limit,
        reencode,
        AMPLE, //
    },
    CallPayload,
    EncodeError,
    Encoder,
    InlineSize,
    Limits,
    Message,
    Offer,
    PrivateData,
    Pulls,
    ReadList,
    ReplyPayload,
    ReplyPlace,
    ReturnError,
    Role,
    Segment,
    Version,
    MIN_HEADER, //
};

use model::{
    Model,
    Rpc, //
};

/// Limits that no message of the tests exceeds, sums of lengths excepted.
const UNLIMITED: Limits = Limits {
    read_segments: usize::MAX,
    read_chunks: usize::MAX,
    write_chunks: usize::MAX,
    write_segments: usize::MAX,
    chunk_segments: usize::MAX,
    ..AMPLE
};

/// Decodes `bytes` with the crate and with the model: they agree, and what was accepted encodes to
/// the same octets again.
fn compare(bytes: &[u8], limits: &Limits) -> Result<(), TestCaseError> {
    let expected = model::decode(bytes, limits);
    let decoded = Message::decode(bytes, limits);
    match decoded {
        Ok(message) => {
            prop_assert_eq!(Some(model::lift(&message)), expected);
            check_accepted(&message, bytes)?;
        }
        Err(rejected) => {
            prop_assert_eq!(expected, None, "refused: {:?}", rejected);
            let only_limits = model::decode(bytes, &UNLIMITED).is_some();
            if only_limits {
                prop_assert!(is_over_limit(&rejected.reason));
            }
            // A requester is silent unless it knows that it looks at a Call.
            if rejected.direction != Some(xdr::Direction::Call) {
                prop_assert_eq!(rejected.error_message(Role::Requester, 1), None);
            }
            if let Some(error) = rejected.error_message(Role::Responder, 1) {
                prop_assert!(bytes.len() >= 28);
                prop_assert_eq!(&error.xid.to_be_bytes(), &bytes[..4]);
                prop_assert_eq!(&error.version.to_be_bytes(), &bytes[4..8]);
            }
        }
    }
    Ok(())
}

fn check_accepted(message: &Message<'_>, bytes: &[u8]) -> Result<(), TestCaseError> {
    let inline = match message {
        Message::Call(call) => match call.payload {
            CallPayload::Inline(inline) => Some(inline),
            CallPayload::PositionZero(_) => None,
        },
        Message::Reply(reply) => match reply.payload {
            ReplyPayload::Inline(inline) => Some(inline),
            ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => None,
        },
        Message::Error(_) => None,
    };
    prop_assert_eq!(xdr::peek_done(bytes), None);
    let mut header = vec![0; bytes.len()];
    let len = reencode(message, &mut header).unwrap();
    prop_assert_eq!(&header[..len], &bytes[..len]);
    if let Message::Call(call) = message {
        let zero = call.reads.segments().all(|read| read.position == 0);
        let long = !call.reads.is_empty() && zero;
        prop_assert_eq!(call.as_provided_reply().is_ok(), long);
        if let Ok(reply) = call.as_provided_reply() {
            let mut copy = vec![0; bytes.len()];
            let again = reencode(&Message::Reply(reply), &mut copy).unwrap();
            prop_assert_eq!(&copy[..again], &bytes[..len]);
        }
    }
    if let Some(inline) = inline {
        prop_assert_eq!(inline.offset, len);
        prop_assert_eq!(inline.bytes, &bytes[len..]);
    }
    if let Message::Call(call) = message {
        prop_assert_eq!(Offer::find(bytes), Some(call.offer()));
        prop_assert_eq!(ReadList::find(bytes), Some(call.reads));
        let Model::Rpc(rpc) = model::lift(message) else {
            unreachable!()
        };
        let grouped = rpc.read_chunks();
        let chunks = call.reads.chunks();
        prop_assert!(chunks
            .clone()
            .map(|c| c.position())
            .eq(grouped.keys().copied()));
        prop_assert!(call
            .reads
            .data_chunks()
            .map(|c| c.position())
            .eq(grouped.keys().copied().filter(|at| *at != 0)));
        let segments: usize = call.writes.chunks().map(|c| c.segment_count()).sum();
        prop_assert_eq!(call.writes.segment_count(), segments);
        for chunk in chunks {
            let segments = &grouped[&chunk.position()];
            prop_assert_eq!(chunk.segment_count(), segments.len());
            prop_assert_eq!(&chunk.segments().collect::<Vec<_>>(), segments);
            let sum: u64 = segments.iter().map(|s| u64::from(s.length)).sum();
            prop_assert_eq!(u64::from(chunk.length()), sum);
        }
    }
    Ok(())
}

/// Encodes a Reply chunk by chunk, and segment by segment.
fn encode_reply(offer: &Offer<'_>, written: &[u32], long: Option<u32>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 4096];
    let encoder = match long {
        Some(_) => Encoder::nomsg(&mut buffer, 1, 2),
        None => Encoder::msg(&mut buffer, 1, 2),
    };
    let mut writes = encoder.end_reads();
    let written = written.iter().copied().chain(std::iter::repeat(0));
    for (chunk, octets) in offer.writes.chunks().zip(written) {
        writes.write_chunk(chunk.filled(octets)?);
    }
    let end = writes.end_writes();
    let len = match offer.reply_chunk {
        Some(chunk) => end.reply_chunk(chunk.filled(long.unwrap_or(0))?),
        None => end.no_reply_chunk(),
    };
    buffer.truncate(len.ok()?);
    Some(buffer)
}

/// Encodes with whole Read chunks, as a requester does.
fn encode(rpc: &Rpc, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let mut encoder = match rpc.payload {
        Some(_) => Encoder::msg(buffer, rpc.xid, rpc.credits),
        None => Encoder::nomsg(buffer, rpc.xid, rpc.credits),
    };
    for (position, chunk) in rpc.read_chunks() {
        encoder.read_chunk(position, &chunk);
    }
    let mut encoder = encoder.end_reads();
    for chunk in &rpc.writes {
        encoder.write_chunk(chunk);
    }
    match &rpc.reply_chunk {
        Some(chunk) => encoder.end_writes().reply_chunk(chunk),
        None => encoder.end_writes().no_reply_chunk(),
    }
}

/// A Reply that returns such a Write chunk.
fn reply_with(returned: &[Segment]) -> Vec<u8> {
    let rpc = Rpc {
        xid: 7,
        credits: 1,
        payload: Some(vec![0, 0, 0, 7, 0, 0, 0, 1]),
        reads: Vec::new(),
        writes: vec![returned.to_vec()],
        reply_chunk: None,
    };
    rpc.bytes()
}

/// How much it says was written into what was offered.
fn written(returned: &[Segment], offer: &[Segment]) -> Result<u32, ReturnError> {
    match Message::decode(&reply_with(returned), &AMPLE) {
        Ok(Message::Reply(reply)) => reply.written(offer),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn decode_of_encode_is_identity(rpc in strategy::rpc()) {
        let mut rpc = rpc;
        // The encoder is given whole chunks.
        rpc.reads.sort_by_key(|entry| entry.position);
        let header = rpc.header();
        let mut buffer = vec![0; header.len()];
        prop_assert_eq!(encode(&rpc, &mut buffer), Ok(header.len()));
        prop_assert_eq!(&buffer, &header);
        buffer.extend(rpc.payload.iter().flatten());
        match Message::decode(&buffer, &AMPLE) {
            Ok(message) => prop_assert_eq!(model::lift(&message), Model::Rpc(rpc)),
            Err(rejected) => prop_assert!(false, "{:?}", rejected),
        }
    }

    #[test]
    fn valid_messages_decode(rpc in strategy::rpc()) {
        let bytes = rpc.bytes();
        prop_assert!(Message::decode(&bytes, &AMPLE).is_ok());
        compare(&bytes, &AMPLE)?;
    }

    #[test]
    fn errors_decode(error in strategy::error()) {
        let Model::Error { xid, version, credits, range } = error else { unreachable!() };
        let words = match range {
            Some((low, high)) => vec![xid, version, credits, 4, 1, low, high],
            None => vec![xid, version, credits, 4, 2],
        };
        let bytes = model::octets(&words);
        let message = Message::decode(&bytes, &AMPLE).unwrap();
        prop_assert_eq!(model::lift(&message), error);
        check_accepted(&message, &bytes)?;
    }

    #[test]
    fn limits_hold(rpc in strategy::rpc(), limits in strategy::limits()) {
        compare(&rpc.bytes(), &limits)?;
    }

    #[test]
    fn single_chunks(rpc in strategy::single(), limits in strategy::limits()) {
        compare(&rpc.bytes(), &UNLIMITED)?;
        compare(&rpc.bytes(), &limits)?;
    }

    #[test]
    fn limits_that_are_just_met(
        rpc in strategy::rpc(),
        field in 0..9_usize,
        less in any::<bool>(),
    ) {
        let sum = |segments: &[Segment]| segments.iter().map(|s| u64::from(s.length)).sum::<u64>();
        let reads = rpc.read_chunks();
        let chunks = || rpc.writes.iter().chain(&rpc.reply_chunk);
        let most = |sums: &mut dyn Iterator<Item = u64>| sums.max().unwrap_or(0);
        let exact = match field {
            0 => rpc.reads.len() as u64,
            1 => reads.len() as u64,
            2 => rpc.writes.len() as u64,
            3 => rpc.writes.iter().map(|chunk| chunk.len() as u64).sum(),
            4 => most(&mut reads.values().chain(chunks()).map(|chunk| chunk.len() as u64)),
            5 => most(&mut reads.values().map(|chunk| sum(chunk))),
            6 => reads.values().map(|chunk| sum(chunk)).sum(),
            7 => most(&mut rpc.writes.iter().map(|chunk| sum(chunk))),
            _ => most(&mut rpc.reply_chunk.iter().map(|chunk| sum(chunk))),
        };
        let limit = exact.saturating_sub(u64::from(less));
        let (count, bytes) = (limit as usize, u32::try_from(limit).unwrap_or(u32::MAX));
        let mut limits = UNLIMITED;
        match field {
            0 => limits.read_segments = count,
            1 => limits.read_chunks = count,
            2 => limits.write_chunks = count,
            3 => limits.write_segments = count,
            4 => limits.chunk_segments = count,
            5 => limits.read_chunk_bytes = bytes,
            6 => limits.read_list_bytes = bytes,
            7 => limits.write_chunk_bytes = bytes,
            _ => limits.reply_chunk_bytes = bytes,
        }
        compare(&rpc.bytes(), &limits)?;
        if less && exact != 0 && exact <= u64::from(u32::MAX) {
            prop_assert!(Message::decode(&rpc.bytes(), &limits).is_err());
        }
    }

    #[test]
    fn mutated_messages(
        rpc in strategy::rpc(),
        mutations in prop::collection::vec(strategy::mutation(), 1..4),
        limits in prop_oneof![Just(AMPLE), strategy::limits()],
    ) {
        let mut bytes = rpc.bytes();
        for mutation in &mutations {
            strategy::mutate(&mut bytes, mutation);
        }
        compare(&bytes, &limits)?;
    }

    #[test]
    fn word_soup(
        bytes in strategy::word_soup(),
        limits in prop_oneof![Just(AMPLE), strategy::limits()],
    ) {
        compare(&bytes, &limits)?;
    }

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        compare(&bytes, &UNLIMITED)?;
        prop_assert_eq!(
            PrivateData::decode(&bytes).is_some(),
            bytes.windows(8).any(|window| window.starts_with(&[0xf6, 0xab, 0x0e, 0x18, 1])),
        );
    }

    #[test]
    fn little_room(rpc in strategy::rpc(), room in any::<prop::sample::Index>()) {
        let needed = rpc.header().len();
        let room = room.index(needed);
        let mut buffer = vec![0; room];
        prop_assert_eq!(encode(&rpc, &mut buffer), Err(EncodeError::NoRoom { needed, room }));
    }

    #[test]
    fn replies_return_the_offer(
        rpc in strategy::rpc(),
        parts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        too_much in prop::bool::weighted(0.1),
        long in prop::option::of(any::<prop::sample::Index>()),
        less in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let bytes = rpc.bytes();
        let Ok(Message::Call(call)) = Message::decode(&bytes, &UNLIMITED) else {
            return Ok(());
        };
        let offer = call.offer();
        // Nothing, a part or all of each chunk, or a little more.
        let some = |index: prop::sample::Index, octets: u32| match index.index(8) {
            _ if too_much => octets + 1,
            0 => 0,
            1..4 => octets,
            _ => index.index(octets as usize + 1) as u32,
        };
        let written: Vec<_> = parts
            .into_iter()
            .zip(offer.writes.chunks())
            .map(|(part, chunk)| some(part, chunk.length()))
            .collect();
        let long = long.map(|part| some(part, offer.reply_chunk.map_or(0, |c| c.length())));
        let expected = encode_reply(&offer, &written, long);
        let place = long.map_or(ReplyPlace::Inline, ReplyPlace::ReplyChunk);
        let size = MIN_HEADER + offer.returned_size(Version::One);
        let mut buffer = vec![0; size + 4];
        let len = offer.encode_reply(&mut buffer, 1, 2, written.iter().copied(), place).ok();
        prop_assert_eq!(len.map(|len| &buffer[..len]), expected.as_deref());
        prop_assert!(len.is_none_or(|len| len == size));
        if let Some(less) = less {
            let room = &mut buffer[..less.index(size)];
            prop_assert!(offer.encode_reply(room, 1, 2, written, place).is_err());
        }
    }

    #[test]
    fn what_a_responder_returns_is_accepted(
        offer in strategy::chunk(),
        part in any::<prop::sample::Index>(),
    ) {
        let bytes = reply_with(&offer);
        let Ok(Message::Reply(reply)) = Message::decode(&bytes, &AMPLE) else { unreachable!() };
        let chunk = reply.writes.chunks().next().unwrap();
        let len = part.index(chunk.length() as usize + 1) as u32;
        let filled: Vec<_> = chunk.filled(len).unwrap().collect();
        prop_assert_eq!(written(&filled, &offer), Ok(len));
        prop_assert!(chunk.filled(chunk.length() + 1).is_none());
        // Some return only the segments that they used.
        let used = filled.iter().rposition(|segment| segment.length != 0);
        let short = &filled[..used.map_or(0, |last| last + 1)];
        prop_assert_eq!(written(short, &offer), Ok(len));
    }

    #[test]
    fn other_lengths_are_accepted_just_if_no_octet_follows_a_gap(
        offer in strategy::chunk(),
        lengths in prop::collection::vec(prop_oneof![Just(None), (0..64_u32).prop_map(Some)], 6),
    ) {
        let returned: Vec<_> = offer
            .iter()
            .zip(&lengths)
            .map(|(segment, length)| Segment {
                length: length.unwrap_or(segment.length),
                offset: segment.offset.min(1 << 63),
                ..*segment
            })
            .collect();
        let same_place = returned.iter().zip(&offer).all(|(a, b)| a.offset == b.offset);
        let fits = returned.iter().zip(&offer).all(|(a, b)| a.length <= b.length);
        let total: u32 = returned.iter().map(|segment| segment.length).sum();
        let most: u64 = offer.iter().map(|segment| u64::from(segment.length)).sum();
        let in_order = fits && u64::from(total) <= most && {
            let mut left = total;
            returned.iter().zip(&offer).all(|(a, b)| {
                let length = b.length.min(left);
                left -= length;
                a.length == length
            })
        };
        let outcome = written(&returned, &offer);
        if same_place && fits && in_order {
            prop_assert_eq!(outcome, Ok(total));
        } else if same_place && fits {
            prop_assert_eq!(outcome, Err(ReturnError::Hole));
        } else {
            prop_assert!(outcome.is_err());
        }
    }

    #[test]
    fn private_data(
        r in any::<bool>(),
        send in any::<u32>(),
        receive in any::<u32>(),
        (may_pull, may_provide) in any::<(bool, bool)>(),
        before in 0..64_usize,
        behind in prop::collection::vec(any::<u8>(), 0..16),
    ) {
        let data = PrivateData {
            remote_invalidation: r,
            send_size: InlineSize::from_bytes(send),
            receive_size: InlineSize::from_bytes(receive),
            pulls: Pulls { may_pull, may_provide },
        };
        prop_assert!(data.send_size.bytes() <= send.max(1024));
        let mut bytes = vec![0; before];
        let mut space = [0; PrivateData::MAX_SIZE];
        let len = data.encode(&mut space).unwrap();
        prop_assert_eq!(len == PrivateData::SIZE, data.pulls == Pulls::NONE);
        bytes.extend(&space[..len]);
        prop_assert_eq!(PrivateData::decode(&bytes), Some(data));
        // Without a block, what follows is hardly one by chance.
        bytes.extend(behind);
        prop_assert_eq!(PrivateData::decode(&bytes), Some(data));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_truncation(rpc in strategy::rpc()) {
        let bytes = rpc.bytes();
        for len in 0..bytes.len() {
            compare(&bytes[..len], &AMPLE)?;
        }
    }

    #[test]
    fn every_bit(rpc in strategy::rpc()) {
        let mut bytes = rpc.bytes();
        // And those of the RPC message that are looked at.
        for index in 0..bytes.len().min(rpc.header().len() + 8) * 8 {
            bytes[index / 8] ^= 1 << (index % 8);
            compare(&bytes, &AMPLE)?;
            bytes[index / 8] ^= 1 << (index % 8);
        }
    }
}
