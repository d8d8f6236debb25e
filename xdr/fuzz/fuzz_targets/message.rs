// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Received bytes: what is accepted encodes to the same octets, what is refused has an answer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xdr::{
    checks::{
        reencode,
        AMPLE, //
    },
    peek_done,
    CallPayload,
    Direction,
    Message,
    ReplyPayload,
    Role, //
};

fuzz_target!(|bytes: &[u8]| {
    let message = match Message::decode(bytes, &AMPLE) {
        Ok(message) => message,
        Err(rejected) => {
            assert!(bytes.len() >= 28 || rejected.header.is_none());
            if rejected.direction != Some(Direction::Call) {
                assert_eq!(rejected.answer(Role::Requester), None);
            }
            if let Some(error) = rejected.error_message(Role::Responder, 1) {
                let mut buffer = [0; 28];
                let len = error.encode(&mut buffer).unwrap();
                assert_eq!(buffer[..8], bytes[..8]);
                let answer = Message::decode(&buffer[..len], &AMPLE).unwrap();
                assert!(matches!(answer, Message::Error(decoded) if decoded == error));
            }
            return;
        }
    };

    assert!(peek_done(bytes).is_none());
    let mut header = vec![0; bytes.len()];
    let len = reencode(&message, &mut header).unwrap();
    assert_eq!(header[..len], bytes[..len]);

    let inline = match &message {
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
    if let Some(inline) = inline {
        assert_eq!(inline.offset, len);
        assert_eq!(inline.bytes, &bytes[len..]);
    }

    if let Message::Call(call) = &message {
        if let Ok(reply) = call.as_provided_reply() {
            let len = reencode(&Message::Reply(reply), &mut header).unwrap();
            assert_eq!(header[..len], bytes[..len]);
        }
        let mut segments = 0;
        let mut end = 0;
        for chunk in call.reads.chunks() {
            assert!(chunk.position() % 4 == 0);
            assert!(chunk.position() == 0 || chunk.position() >= 40);
            assert_eq!(chunk.segments().count(), chunk.segment_count());
            let sum: u64 = chunk.segments().map(|s| u64::from(s.length)).sum();
            assert_eq!(sum, u64::from(chunk.length()));
            if chunk.position() != 0 {
                assert!(u64::from(chunk.position()) >= end);
                end = u64::from(chunk.position()) + sum;
            }
            segments += chunk.segment_count();
        }
        assert_eq!(segments, call.reads.segments().count());
        if let CallPayload::Inline(inline) = call.payload {
            let _ = call.reads.reduces_eligible_inline(inline.bytes);
        }
    }
});
