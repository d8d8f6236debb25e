// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Limits from the first twelve octets, the message from the others: what is accepted is within
//! the limits, and a limit refuses only what would be accepted or malformed without it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xdr::{
    checks::{
        is_over_limit,
        AMPLE, //
    },
    Limits,
    Message,
    WriteChunk, //
};

fuzz_target!(|input: &[u8]| {
    let Some((head, bytes)) = input.split_first_chunk::<12>() else {
        return;
    };
    let count = |at: usize| usize::from(head[at] & 15);
    // Octets are limited in steps of 256, so that small changes of the input matter.
    let octets = |at: usize| u32::from(u16::from_be_bytes([head[at], head[at + 1]])) << 8;
    let limits = Limits {
        read_segments: count(0),
        read_chunks: count(1),
        write_chunks: count(2),
        write_segments: 2 * count(3),
        chunk_segments: count(3),
        read_chunk_bytes: octets(4),
        read_list_bytes: octets(6),
        write_chunk_bytes: octets(8),
        reply_chunk_bytes: octets(10),
    };
    let message = match Message::decode(bytes, &limits) {
        Ok(message) => message,
        Err(rejected) => {
            if !is_over_limit(&rejected.reason) {
                assert!(Message::decode(bytes, &AMPLE).is_err());
            }
            return;
        }
    };
    assert!(Message::decode(bytes, &AMPLE).is_ok());

    let within = |chunk: &WriteChunk<'_>, max: u32| {
        let sum: u64 = chunk.segments().map(|s| u64::from(s.length)).sum();
        assert_eq!(sum, u64::from(chunk.length()));
        assert!(chunk.length() <= max);
        assert!(chunk.segment_count() <= limits.chunk_segments);
    };
    let (writes, reply_chunk) = match &message {
        Message::Call(call) => {
            assert!(call.reads.segments().count() <= limits.read_segments);
            assert!(call.reads.chunks().count() <= limits.read_chunks);
            let mut total = 0;
            for chunk in call.reads.chunks() {
                assert!(chunk.segment_count() <= limits.chunk_segments);
                assert!(chunk.length() <= limits.read_chunk_bytes);
                total += u64::from(chunk.length());
            }
            assert!(total <= u64::from(limits.read_list_bytes));
            (call.writes, call.reply_chunk)
        }
        Message::Reply(reply) => (reply.writes, reply.reply_chunk),
        Message::Error(_) => return,
    };
    assert!(writes.chunk_count() <= limits.write_chunks);
    assert_eq!(writes.chunks().count(), writes.chunk_count());
    let segments = writes.chunks().map(|chunk| chunk.segment_count());
    assert!(segments.sum::<usize>() <= limits.write_segments);
    for chunk in writes.chunks() {
        within(&chunk, limits.write_chunk_bytes);
    }
    if let Some(chunk) = reply_chunk {
        within(&chunk, limits.reply_chunk_bytes);
    }
});
