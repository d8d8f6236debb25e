// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Version 2.

mod credits;
mod decode;
mod encode;
mod error;
mod fragments;
mod properties;
mod sequence;
mod sizes;

use super::{
    require,
    Check,
    Named,
    AMPLE, //
};
use crate::{
    v2::{
        encode_error,
        encode_fragment,
        encode_grant,
        encode_reply,
        Bounds,
        PropertySet,
        Received,
        Receiver, //
    },
    wire::Writer,
    Call,
    CallPayload,
    DecodeError,
    EncodeError,
    Encoder,
    FixedHeader,
    Limits,
    Message,
    Offer,
    Rejected,
    ReplyPayload, //
};

pub use credits::*;
pub use decode::*;
pub use encode::check_encode;
pub use error::*;
pub use fragments::check_fragments;
pub use properties::check_properties;
pub use sequence::*;
pub use sizes::*;

/// All checks of version 2.
pub const CHECKS: &[Named] = &[
    ("v2_connection", check_connection),
    ("v2_truncation", check_truncation),
    ("v2_malformed", check_malformed),
    ("v2_limits", check_limits),
    ("v2_errors", check_errors),
    ("v2_answers", check_answers),
    ("v2_versions", check_versions),
    ("v2_sequence", check_sequence),
    ("v2_remaining", check_remaining),
    ("v2_fragments", check_fragments),
    ("v2_properties", check_properties),
    ("v2_credits", check_credits),
    ("v2_grants", check_grants),
    ("v2_encode", check_encode),
    ("v2_sizes", check_sizes),
    ("v2_found", check_found),
    ("v2_arrival", check_arrival),
];

/// Bounds that all vectors are within.
pub const BOUNDS: Bounds = Bounds {
    calls: AMPLE,
    replies: AMPLE,
    call_octets: 1 << 20,
    reply_octets: 1 << 19,
    fragments: 1 << 10,
    property_octets: 16384,
};

/// Limits of an end that takes no chunks.
const NO_CHUNKS: Limits = Limits {
    read_segments: 0,
    read_chunks: 0,
    write_chunks: 0,
    write_segments: 0,
    chunk_segments: 0,
    ..AMPLE
};

/// Encodes a decoded message, whose prefix is `header`: the header only, without a Payload stream.
///
/// The lists keep their order, so the outcome has to equal the received header octet for octet, but
/// for the fields that are ignored: the XID of a GRANT and padding.
pub fn reencode(
    header: &FixedHeader,
    received: &Received<'_>,
    buffer: &mut [u8],
) -> Result<usize, EncodeError> {
    match received {
        Received::Message { message, .. } => match message {
            Message::Error(error) => encode_error(error, buffer),
            Message::Call(call) => reencode_call(call, buffer),
            Message::Reply(reply) => {
                let offer = Offer {
                    writes: reply.writes,
                    reply_chunk: reply.reply_chunk,
                };
                let written = reply.writes.chunks().map(|chunk| Some(chunk.length()));
                let in_chunk = match reply.payload {
                    ReplyPayload::ReplyChunk => reply.reply_chunk.map(|chunk| chunk.length()),
                    ReplyPayload::Inline(_) | ReplyPayload::Provided(_) => None,
                };
                encode_reply(buffer, reply.xid, reply.credits, &offer, written, in_chunk)
            }
        },
        Received::Fragment(fragment) => encode_fragment(
            buffer,
            fragment.direction,
            fragment.xid,
            fragment.credits,
            fragment.remaining,
        ),
        Received::Grant(credits) => encode_grant(buffer, *credits),
        Received::Properties { set, .. } => reencode_properties(header, set, buffer),
    }
}

fn reencode_call(call: &Call<'_>, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let (xid, credits) = (call.xid, call.credits);
    let inv_handle = call.inv_handle.unwrap_or(0);
    let mut encoder = match call.payload {
        CallPayload::Inline(_) => Encoder::call_inline(buffer, xid, credits, inv_handle),
        CallPayload::PositionZero(chunk) => {
            Encoder::call_external(buffer, xid, credits, inv_handle, chunk.segments())
        }
    };
    for entry in call.reads.segments() {
        encoder.read_chunk(entry.position, [entry.segment]);
    }
    let mut encoder = encoder.end_reads();
    for chunk in call.writes.chunks() {
        encoder.write_chunk(chunk.segments());
    }
    match call.reply_chunk {
        Some(chunk) => encoder.end_writes().reply_chunk(chunk.segments()),
        None => encoder.end_writes().no_reply_chunk(),
    }
}

/// Encodes any set, of which the crate itself sends only its own.
fn reencode_properties(
    header: &FixedHeader,
    set: &PropertySet<'_>,
    buffer: &mut [u8],
) -> Result<usize, EncodeError> {
    let mut writer = Writer::new(buffer);
    header.write(&mut writer);
    let count = set.iter().fold(0, |count: u32, _| count.saturating_add(1));
    writer.words([count]);
    for property in set.iter() {
        let length = property.data.len();
        writer.words([property.which, length as u32]);
        writer.bytes(property.data);
        let padding = [0; 3];
        let padded = length.div_ceil(4).saturating_mul(4).saturating_sub(length);
        writer.bytes(padding.get(..padded).unwrap_or_default());
    }
    writer.finish()
}

/// Returns what the first message of a connection is.
fn first(bytes: &[u8]) -> Result<Received<'_>, Rejected> {
    Receiver::new(BOUNDS).receive(bytes)
}

/// Checks that the first message of a connection is refused for `reason`.
fn refuses(bytes: &[u8], reason: DecodeError, claim: &'static str) -> Check {
    refuses_next(&mut Receiver::new(BOUNDS), bytes, reason, claim)
}

/// Checks that the next message is refused for `reason`.
fn refuses_next(
    receiver: &mut Receiver,
    bytes: &[u8],
    reason: DecodeError,
    claim: &'static str,
) -> Check {
    let found = receiver.receive(bytes).err().map(|refused| refused.reason);
    require(found == Some(reason), claim)
}

/// Checks that the next message is accepted.
fn accepts_next(receiver: &mut Receiver, bytes: &[u8], claim: &'static str) -> Check {
    require(receiver.receive(bytes).is_ok(), claim)
}

/// Returns a copy of a message with another word at `index`, in `space`.
fn with_word<'s>(
    bytes: &[u8],
    index: usize,
    word: u32,
    space: &'s mut [u8],
) -> Result<&'s [u8], &'static str> {
    let copy = space.get_mut(..bytes.len()).ok_or("space for a message")?;
    super::put(copy, bytes)?;
    let at = index.saturating_mul(4);
    let field = copy.get_mut(at..at.saturating_add(4));
    super::put(field.ok_or("a word of the message")?, &word.to_be_bytes())?;
    Ok(copy)
}
