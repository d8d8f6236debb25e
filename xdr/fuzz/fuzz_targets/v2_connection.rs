// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Bounds from the first octet, then the messages of a peer of version 2, one after the other, each
//! behind its length in two octets: what is accepted encodes to the same octets and is within the
//! bounds, what is refused has an answer that decodes, and the fragments of a message are as long
//! as was said.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xdr::{
    checks::v2::{
        reencode,
        BOUNDS, //
    },
    v2::{
        encode_error,
        error_message,
        Bounds,
        Received,
        Receiver, //
    },
    CallPayload,
    DecodeError,
    Direction,
    FixedHeader,
    Limits,
    Message,
    ReplyPayload, //
};

/// Bounds in the middle of what the vectors have.
const TIGHT: Bounds = Bounds {
    calls: Limits {
        read_segments: 2,
        read_chunks: 2,
        write_chunks: 2,
        write_segments: 2,
        chunk_segments: 2,
        read_chunk_bytes: 8192,
        read_list_bytes: 8192,
        write_chunk_bytes: 8192,
        reply_chunk_bytes: 8192,
    },
    replies: BOUNDS.replies,
    call_octets: 64,
    reply_octets: 64,
    fragments: 2,
    property_octets: 128,
};

fuzz_target!(|input: &[u8]| {
    let Some((&head, mut rest)) = input.split_first() else {
        return;
    };
    let bounds = if head & 1 == 0 { BOUNDS } else { TIGHT };
    let mut receiver = Receiver::new(bounds);
    // What was promised of a message that is not ended, and what has come of it.
    let mut open: Option<(u32, u32)> = None;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (bytes, behind) = behind.split_at(length);
        rest = behind;
        match receiver.receive(bytes) {
            Ok(received) => {
                accepted(bytes, &received, &mut open);
                if let Received::Message {
                    message: Message::Call(call),
                    ..
                } = received
                {
                    let limits = &bounds.calls;
                    assert!(call.reads.segments().count() <= limits.read_segments);
                    assert!(call.reads.chunks().count() <= limits.read_chunks);
                    assert!(call.writes.chunk_count() <= limits.write_chunks);
                    assert!(call.writes.segment_count() <= limits.write_segments);
                    for chunk in call.writes.chunks().chain(call.reply_chunk) {
                        assert!(chunk.segment_count() <= limits.chunk_segments);
                        assert!(chunk.length() <= limits.write_chunk_bytes);
                    }
                }
            }
            Err(rejected) => {
                // What may not come there breaks nothing, nor does what is not looked at.
                let breaks = !matches!(
                    rejected.reason,
                    DecodeError::Sequence | DecodeError::Discarded | DecodeError::Version(_)
                );
                if breaks && rejected.direction.is_some() {
                    open = None;
                }
                let Some(header) = rejected.header else {
                    assert!(bytes.len() < 16);
                    continue;
                };
                let Some(message) = error_message(&rejected, &bounds, 1) else {
                    continue;
                };
                assert_ne!(header.procedure, 4, "an error answers an error");
                assert_eq!((message.xid, message.version), (header.xid, header.version));
                let mut space = [0; 28];
                let length = encode_error(&message, &mut space).unwrap();
                let decoded = Receiver::new(BOUNDS).receive(&space[..length]).unwrap();
                assert!(matches!(
                    decoded,
                    Received::Message { message: Message::Error(found), .. } if found == message
                ));
            }
        }
    }
});

fn accepted(bytes: &[u8], received: &Received<'_>, open: &mut Option<(u32, u32)>) {
    let header = FixedHeader::peek(bytes).unwrap();
    let mut space = vec![0; bytes.len() + 8];
    let length = reencode(&header, received, &mut space).unwrap();
    let (payload, before) = match received {
        Received::Fragment(fragment) => {
            let octets = fragment.payload.bytes.len() as u32;
            let (whole, arrived) = open.unwrap_or((octets + fragment.remaining, 0));
            assert_eq!(arrived + octets + fragment.remaining, whole);
            assert!(fragment.remaining > 0 && whole <= BOUNDS.call_octets);
            *open = Some((whole, arrived + octets));
            (fragment.payload, None)
        }
        Received::Message { message, before } => {
            let inline = match message {
                Message::Call(call) => match call.payload {
                    CallPayload::Inline(inline) => Some(inline),
                    CallPayload::PositionZero(_) => None,
                },
                Message::Reply(reply) => match reply.payload {
                    ReplyPayload::Inline(inline) => Some(inline),
                    _ => None,
                },
                Message::Error(_) => None,
            };
            match inline {
                Some(inline) => (inline, Some(*before)),
                None => {
                    assert_eq!(space[..length], bytes[..length]);
                    return;
                }
            }
        }
        Received::Grant(_) => {
            assert_eq!(space[4..length], bytes[4..length]);
            return;
        }
        // Padding may be any.
        Received::Properties { .. } => return,
    };
    assert_eq!(space[..length], bytes[..length]);
    assert_eq!(payload.bytes, &bytes[length..]);
    if let Some(before) = before {
        let whole = before + payload.bytes.len() as u32;
        let (promised, arrived) = open.take().unwrap_or((whole, 0));
        assert_eq!((promised, arrived), (whole, before));
    }
    let is_call = (8..=10).contains(&header.procedure);
    let direction = if is_call {
        Direction::Call
    } else {
        Direction::Reply
    };
    if let Received::Fragment(fragment) = received {
        assert_eq!(fragment.direction, direction);
    }
}
