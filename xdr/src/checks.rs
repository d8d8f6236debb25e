// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Checks of this crate that run under cargo and, in the kernel, under KUnit.
//!
//! A check says what is wrong instead of panicking, since a panic is a `BUG()` in the kernel.

mod binding;
mod common;
mod decode;
mod encode;
mod header;
mod limits;
mod malformed;
mod offer;
mod private_data;
mod provided;
mod refuse;
mod returned;
mod rpc;
pub mod v2;

use crate::{
    Call,
    CallPayload,
    DecodeError,
    EncodeError,
    Encoder,
    ErrorMessage,
    Limits,
    Message,
    Reply,
    ReplyPayload, //
};

pub use binding::*;
pub use common::*;
pub use decode::*;
pub use encode::*;
pub use header::check_fixed_header;
pub use limits::*;
pub use malformed::check_malformed;
pub use offer::check_offer;
pub use private_data::*;
pub use provided::*;
pub use refuse::*;
pub use returned::*;
pub use rpc::*;

/// Returns whether a message with this fault is well formed as far as read, and asks for more than
/// the [`Limits`] allow.
pub const fn is_over_limit(reason: &DecodeError) -> bool {
    matches!(
        reason,
        DecodeError::ReadSegments
            | DecodeError::ReadChunks
            | DecodeError::WriteChunks
            | DecodeError::WriteSegments
            | DecodeError::ChunkSegments
            | DecodeError::ReadChunkBytes
            | DecodeError::ReadListBytes
            | DecodeError::WriteChunkBytes
            | DecodeError::ReplyChunkBytes
    )
}

/// Outcome of a check: on failure, the claim that does not hold.
pub type Check = Result<(), &'static str>;

/// A check and its name.
pub type Named = (&'static str, fn() -> Check);

/// All checks of version 1 and of what both versions have in common.
pub const CHECKS: &[Named] = &[
    ("fixed_header", check_fixed_header),
    ("short_messages", check_short_messages),
    ("read_chunk", check_read_chunk),
    ("read_list", check_read_list),
    ("write_list", check_write_list),
    ("reply_chunk", check_reply_chunk),
    ("long_messages", check_long_messages),
    ("error_messages", check_error_messages),
    ("in_tree_replies", check_in_tree_replies),
    ("direction", check_direction),
    ("call_header", check_call_header),
    ("null_call", check_null_call),
    ("eligible", check_eligible),
    ("eligible_in_compound", check_eligible_in_compound),
    ("placeable_of_nfs_4", check_placeable_of_nfs_4),
    ("malformed", check_malformed),
    ("limits", check_limits),
    ("length_sums", check_length_sums),
    ("truncation", check_truncation),
    ("answers", check_answers),
    ("reasons", check_reasons),
    ("no_chunks", check_no_chunks),
    ("single_chunk", check_single_chunk),
    ("encode_vectors", check_encode_vectors),
    ("encode_room", check_encode_room),
    ("encode_refused", check_encode_refused),
    ("header_size", check_header_size),
    ("filled", check_filled),
    ("offer", check_offer),
    ("returned_chunk", check_returned_chunk),
    ("returned_reply", check_returned_reply),
    ("private_data", check_private_data),
    ("private_data_search", check_private_data_search),
    ("pulls", check_pulls),
    ("provided_reply", check_provided_reply),
    ("done", check_done),
    ("inline_size", check_inline_size),
];

/// Limits that all vectors are within.
pub const AMPLE: Limits = Limits {
    read_segments: 64,
    read_chunks: 16,
    write_chunks: 16,
    write_segments: 64,
    chunk_segments: 16,
    read_chunk_bytes: u32::MAX,
    read_list_bytes: u32::MAX,
    write_chunk_bytes: u32::MAX,
    reply_chunk_bytes: u32::MAX,
};

/// Encodes a decoded message: the header only, without an inline Payload stream.
///
/// The Read list keeps its order, so the outcome has to equal the received header octet for octet.
pub fn reencode(message: &Message<'_>, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let (mut encoder, writes, reply_chunk) = match message {
        Message::Error(error) => return error.encode(buffer),
        Message::Call(call) => {
            let mut encoder = match call.payload {
                CallPayload::Inline(_) => Encoder::msg(buffer, call.xid, call.credits),
                CallPayload::PositionZero(_) => Encoder::nomsg(buffer, call.xid, call.credits),
            };
            for entry in call.reads.segments() {
                encoder.read_chunk(entry.position, [entry.segment]);
            }
            (encoder.end_reads(), call.writes, call.reply_chunk)
        }
        Message::Reply(reply) => {
            let mut encoder = match reply.payload {
                ReplyPayload::Inline(_) => Encoder::msg(buffer, reply.xid, reply.credits),
                ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => {
                    Encoder::nomsg(buffer, reply.xid, reply.credits)
                }
            };
            if let ReplyPayload::Provided(chunk) = reply.payload {
                encoder.read_chunk(0, chunk.segments());
            }
            (encoder.end_reads(), reply.writes, reply.reply_chunk)
        }
    };
    for chunk in writes.chunks() {
        encoder.write_chunk(chunk.segments());
    }
    match reply_chunk {
        Some(chunk) => encoder.end_writes().reply_chunk(chunk.segments()),
        None => encoder.end_writes().no_reply_chunk(),
    }
}

fn require(holds: bool, claim: &'static str) -> Check {
    if holds {
        return Ok(());
    }
    Err(claim)
}

/// Copies without the panic of `copy_from_slice`.
fn put(field: &mut [u8], bytes: &[u8]) -> Check {
    for (to, from) in field.iter_mut().zip(bytes) {
        *to = *from;
    }
    require(field.len() == bytes.len(), "room is as long as the bytes")
}

fn message(bytes: &[u8]) -> Result<Message<'_>, &'static str> {
    Message::decode(bytes, &AMPLE).map_err(|rejected| rejected.reason.as_str())
}

fn call(bytes: &[u8]) -> Result<Call<'_>, &'static str> {
    match message(bytes)? {
        Message::Call(call) => Ok(call),
        _ => Err("not decoded as a Call"),
    }
}

fn reply(bytes: &[u8]) -> Result<Reply<'_>, &'static str> {
    match message(bytes)? {
        Message::Reply(reply) => Ok(reply),
        _ => Err("not decoded as a Reply"),
    }
}

fn error(bytes: &[u8]) -> Result<ErrorMessage, &'static str> {
    match message(bytes)? {
        Message::Error(error) => Ok(error),
        _ => Err("not decoded as an RDMA_ERROR"),
    }
}
