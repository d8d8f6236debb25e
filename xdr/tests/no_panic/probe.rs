// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Uses all of the crate that is compiled into its users: inline and generic functions.

#![no_std]

use xdr::{
    encode_done,
    lists_size,
    peek_done,
    v2,
    Call,
    CallPayload,
    Direction,
    EncodeError,
    Encoder,
    FixedHeader,
    InlineSize,
    Limits,
    Message,
    Offer,
    PrivateData,
    Pulls,
    ReadList,
    Rejected,
    Reply,
    ReplyPayload,
    ReplyPlace,
    ReturnError,
    Role,
    RpcPrefix,
    Segment,
    Version,
    MIN_HEADER,
    RDMA_NOMSG, //
};

#[no_mangle]
pub fn decode(bytes: &[u8], limits: &Limits, visit: fn(u32, Segment)) -> Result<usize, Rejected> {
    let (writes, reply_chunk) = match Message::decode(bytes, limits)? {
        Message::Call(call) => {
            for chunk in call.reads.chunks().chain(call.reads.position_zero()) {
                visit(chunk.length(), Segment::default());
                chunk
                    .segments()
                    .for_each(|segment| visit(chunk.position(), segment));
            }
            call.reads
                .segments()
                .for_each(|entry| visit(entry.position, entry.segment));
            if let CallPayload::Inline(inline) = call.payload {
                let eligible = call
                    .reads
                    .reduces_eligible(inline.bytes, |at, _| u32::try_from(at).ok());
                visit(u32::from(eligible), Segment::default());
            }
            if let Ok(reply) = call.as_provided_reply() {
                visit(reply.xid, Segment::default());
            }
            (call.writes, call.reply_chunk)
        }
        Message::Reply(reply) => {
            if let ReplyPayload::Inline(inline) = reply.payload {
                visit(inline.bytes.len() as u32, Segment::default());
            }
            (reply.writes, reply.reply_chunk)
        }
        Message::Error(error) => return Ok(error.credits as usize),
    };
    for chunk in writes.chunks().chain(reply_chunk) {
        chunk
            .segments()
            .for_each(|segment| visit(chunk.length(), segment));
        if let Some(filled) = chunk.filled(limits.read_chunk_bytes) {
            filled.for_each(|segment| visit(0, segment));
        }
    }
    Ok(writes.chunk_count())
}

#[no_mangle]
pub fn encode(
    buffer: &mut [u8],
    words: [u32; 3],
    read: &[Segment],
    write: &[Segment],
    reply: Option<&[Segment]>,
) -> Result<usize, EncodeError> {
    let mut encoder = match read.len() {
        0 => Encoder::msg(buffer, words[0], words[1]),
        _ => Encoder::nomsg(buffer, words[0], words[1]),
    };
    encoder.read_chunk(words[2], read);
    let mut encoder = encoder.end_reads();
    encoder.write_chunk(write);
    match reply {
        Some(chunk) => encoder.end_writes().reply_chunk(chunk),
        None => encoder.end_writes().no_reply_chunk(),
    }
}

#[no_mangle]
pub fn encode_bare(buffer: &mut [u8], xid: u32, credits: u32) -> Result<usize, EncodeError> {
    xdr::encode_plain(buffer, xid, credits)
}

#[no_mangle]
pub fn offer(call: &Call<'_>, bytes: &[u8]) -> Option<bool> {
    Some(Offer::find(bytes)? == call.offer() && ReadList::find(bytes)? == call.reads)
}

#[no_mangle]
pub fn reply_to_offer(
    offer: &Offer<'_>,
    buffer: &mut [u8],
    words: [u32; 2],
    written: &[u32],
    place: ReplyPlace<'_>,
) -> Option<usize> {
    let written = written.iter().copied();
    let len = offer
        .encode_reply(buffer, words[0], words[1], written, place)
        .ok()?;
    (len == MIN_HEADER.saturating_add(offer.returned_size(Version::One))
        && offer.writes.segment_count() != 0)
        .then_some(len)
}

#[no_mangle]
pub fn size(read: usize, writes: &[usize], reply: Option<usize>) -> usize {
    lists_size(read, writes.iter().copied(), reply)
}

#[no_mangle]
pub fn answer(rejected: &Rejected, role: Role, buffer: &mut [u8]) -> Option<usize> {
    rejected.error_message(role, 1)?.encode(buffer).ok()
}

#[no_mangle]
pub fn returned(reply: &Reply<'_>, offer: &[Segment]) -> Result<u32, ReturnError> {
    reply.nothing_written()?;
    reply.no_reply_written()?;
    reply.reply_written(offer)?;
    reply.written(offer)
}

#[no_mangle]
pub fn stamp(message: &mut [u8], credits: u32) {
    FixedHeader::set_credits(message, credits);
}

#[no_mangle]
pub fn peek(bytes: &[u8]) -> Option<bool> {
    let header = FixedHeader::peek(bytes)?;
    let prefix = RpcPrefix::peek(bytes)?;
    Some(header.procedure == RDMA_NOMSG && prefix.direction().is_some())
}

#[no_mangle]
pub fn private_data(bytes: &[u8], size: u32, buffer: &mut [u8]) -> Option<u32> {
    let peer = PrivateData::decode(bytes)?;
    let own = PrivateData {
        remote_invalidation: true,
        send_size: InlineSize::from_bytes(size),
        receive_size: InlineSize::from_bytes(size),
        pulls: Pulls {
            may_pull: true,
            may_provide: true,
        },
    };
    own.encode(buffer).ok()?;
    if !own.pulls_from(&peer) {
        return None;
    }
    Some(own.send_threshold(&peer).max(own.receive_threshold(&peer)))
}

#[no_mangle]
pub fn done(buffer: &mut [u8], bytes: &[u8]) -> Option<usize> {
    encode_done(buffer, peek_done(bytes)?, 1).ok()
}

#[no_mangle]
pub fn receive(receiver: &mut v2::Receiver, bytes: &[u8], bounds: &v2::Bounds) -> Option<u32> {
    match receiver.receive(bytes) {
        Ok(v2::Received::Message { message, before }) => match message {
            Message::Call(call) => Some(call.inv_handle?.wrapping_add(before)),
            Message::Reply(reply) => Some(reply.credits),
            Message::Error(error) => Some(error.xid),
        },
        Ok(v2::Received::Fragment(fragment)) => Some(fragment.remaining),
        Ok(v2::Received::Grant(credits)) => Some(credits),
        Ok(v2::Received::Properties { set, .. }) => {
            let mut properties = v2::Properties::default();
            properties.apply(&set);
            Some(properties.max_send)
        }
        Err(rejected) => {
            let message = v2::error_message(&rejected, bounds, 1)?;
            let length = v2::encode_error(&message, &mut [0; 28]).ok()?;
            u32::try_from(length).ok()
        }
    }
}

#[no_mangle]
pub fn encode_2(
    buffer: &mut [u8],
    words: [u32; 3],
    segments: &[Segment],
    offer: &Offer<'_>,
    written: &[Option<u32>],
) -> Option<usize> {
    let [xid, credits, handle] = words;
    let mut encoder = match segments.len() {
        0 => Encoder::call_inline(buffer, xid, credits, handle),
        _ => Encoder::call_external(buffer, xid, credits, handle, segments),
    };
    encoder.read_chunk(handle, segments);
    let call = encoder.end_reads().end_writes().no_reply_chunk().ok()?;
    let written = written.iter().copied();
    let reply = v2::encode_reply(buffer, xid, credits, offer, written, None).ok()?;
    let direction = Direction::Reply;
    let plain = v2::encode_plain(buffer, direction, xid, credits).ok()?;
    let middle = v2::encode_fragment(buffer, direction, xid, credits, handle).ok()?;
    let grant = v2::encode_grant(buffer, credits).ok()?;
    let said = v2::Properties::default();
    let properties = v2::encode_properties(&said, buffer, xid, credits).ok()?;
    [call, reply, plain, middle, grant, properties]
        .into_iter()
        .max()
}

#[no_mangle]
pub fn split(payload: u32, rooms: [u32; 2], visit: fn(u32, u32)) -> Option<u32> {
    let mut fragments = v2::Fragments::new(payload, rooms[0], rooms[1])?;
    fragments
        .by_ref()
        .for_each(|(length, remaining)| visit(length, remaining));
    Some(fragments.messages().max(fragments.left()))
}

#[no_mangle]
pub fn flow(credits: &mut v2::Credits, bytes: &[u8], value: u32, advertised: u32) -> Option<u32> {
    credits.receive(value, value & 1 == 0).ok()?;
    credits.arrive(bytes).ok()?;
    let owes = credits.may_owe_grant(value) && credits.owes_grant(advertised, value);
    let grants = owes && credits.take_for_grant();
    if grants || credits.take(credits.most()) {
        return Some(credits.tell(advertised));
    }
    credits.put(1);
    Some(credits.available())
}

/// What the test has to find, to show that it finds anything.
#[cfg(control)]
#[no_mangle]
pub fn control(bytes: &[u8], index: usize) -> u8 {
    bytes[index]
}
