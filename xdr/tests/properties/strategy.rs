// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages to test with.

use proptest::{
    collection::vec,
    option,
    prelude::*, //
};
use xdr::{
    Limits,
    ReadSegment,
    Segment, //
};

use crate::model::{
    octets,
    Model,
    Rpc, //
};

/// Lengths of every magnitude, often zero.
fn length() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 1..64_u32, 1..1_048_576_u32]
}

/// Segments that do not wrap.
pub fn segment() -> impl Strategy<Value = Segment> {
    // Often just so low that a longer segment would wrap.
    let offset = prop_oneof![any::<u64>(), Just(u64::MAX)];
    (any::<u32>(), length(), offset).prop_map(|(handle, length, offset)| Segment {
        handle,
        length,
        offset: offset.min(u64::MAX - u64::from(length)),
    })
}

pub fn chunk() -> impl Strategy<Value = Vec<Segment>> {
    vec(segment(), 0..6)
}

/// Read chunks to go into a Payload stream of `words` words, in any order of segments.
fn reads(words: usize) -> impl Strategy<Value = Vec<ReadSegment>> {
    let chunk = (vec(segment(), 1..5), 10..=words);
    vec(chunk, 0..4)
        .prop_map(|mut chunks| {
            chunks.sort_by_key(|(_, place)| *place);
            let mut reads = Vec::new();
            let mut inserted = 0;
            for (mut segments, place) in chunks {
                // An empty chunk would share its Position with the next one.
                segments[0].length = segments[0].length.max(1);
                segments[0].offset = segments[0].offset.min(1 << 63);
                let position = place as u32 * 4 + inserted;
                inserted += segments
                    .iter()
                    .map(|segment| segment.length)
                    .sum::<u32>()
                    .next_multiple_of(4);
                reads.extend(
                    segments
                        .into_iter()
                        .map(|segment| ReadSegment { position, segment }),
                );
            }
            reads
        })
        .prop_shuffle()
}

/// Everything of a message but its Payload stream.
fn shell() -> impl Strategy<Value = Rpc> {
    let writes = vec(chunk(), 0..4);
    (any::<u32>(), any::<u32>(), writes, option::of(chunk())).prop_map(
        |(xid, credits, writes, reply_chunk)| Rpc {
            xid,
            credits,
            payload: None,
            reads: Vec::new(),
            writes,
            reply_chunk,
        },
    )
}

fn payload(xid: u32, msg_type: u32, words: &[u32]) -> Option<Vec<u8>> {
    Some([octets(&[xid, msg_type]), octets(words)].concat())
}

fn inline_call() -> impl Strategy<Value = Rpc> {
    let body =
        vec(any::<u32>(), 8..40).prop_flat_map(|words| (reads(words.len() + 2), Just(words)));
    (shell(), body).prop_map(|(rpc, (reads, words))| Rpc {
        payload: payload(rpc.xid, 0, &words),
        reads,
        ..rpc
    })
}

fn long_call() -> impl Strategy<Value = Rpc> {
    let body = (10..3000_usize).prop_flat_map(|words| (reads(words), Just(words), segment()));
    (shell(), body, any::<prop::sample::Index>()).prop_map(|(rpc, (reads, words, extra), at)| {
        let zero = |segment| ReadSegment {
            position: 0,
            segment,
        };
        let main = Segment {
            handle: 1,
            length: words as u32 * 4,
            offset: 0x1000,
        };
        // Two segments of Position zero among the others.
        let mut reads = reads;
        reads.insert(at.index(reads.len() + 1), zero(main));
        reads.insert(at.index(reads.len() + 1), zero(extra));
        Rpc { reads, ..rpc }
    })
}

fn inline_reply() -> impl Strategy<Value = Rpc> {
    (shell(), vec(any::<u32>(), 0..40)).prop_map(|(rpc, words)| Rpc {
        payload: payload(rpc.xid, 1, &words),
        ..rpc
    })
}

fn long_reply() -> impl Strategy<Value = Rpc> {
    (shell(), chunk(), 8..9000_u32).prop_map(|(rpc, mut chunk, length)| {
        chunk.push(Segment {
            handle: 2,
            length,
            offset: 0x2000,
        });
        Rpc {
            reply_chunk: Some(chunk),
            ..rpc
        }
    })
}

/// With a Write chunk, or one Read segment, and no other chunk.
pub fn single() -> impl Strategy<Value = Rpc> {
    let bare = || {
        (any::<u32>(), any::<u32>(), vec(any::<u32>(), 8..20)).prop_map(|(xid, credits, words)| {
            let rpc = Rpc {
                xid,
                credits,
                payload: None,
                reads: Vec::new(),
                writes: Vec::new(),
                reply_chunk: None,
            };
            (rpc, words)
        })
    };
    let write = (bare(), 0..2_u32, chunk()).prop_map(|((rpc, words), msg_type, chunk)| Rpc {
        payload: payload(rpc.xid, msg_type, &words),
        writes: vec![chunk],
        ..rpc
    });
    // Behind the smallest header, up to the end.
    let read = (bare(), segment(), any::<prop::sample::Index>());
    let read = read.prop_map(|((rpc, words), segment, at)| Rpc {
        payload: payload(rpc.xid, 0, &words),
        reads: vec![ReadSegment {
            position: 4 * (10 + at.index(words.len() + 2 - 9)) as u32,
            segment,
        }],
        ..rpc
    });
    prop_oneof![write, read]
}

/// Valid Calls and Replies of all forms.
pub fn rpc() -> impl Strategy<Value = Rpc> {
    prop_oneof![
        inline_call(),
        long_call(),
        inline_reply(),
        long_reply(),
        single()
    ]
}

/// Valid error messages.
pub fn error() -> impl Strategy<Value = Model> {
    (
        any::<u32>(),
        any::<u32>(),
        option::of((any::<u32>(), any::<u32>())),
    )
        .prop_map(|(xid, credits, range)| Model::Error {
            xid,
            version: 1,
            credits,
            range,
        })
}

/// Limits, often tight.
pub fn limits() -> impl Strategy<Value = Limits> {
    let bytes = || prop_oneof![Just(u32::MAX), 0..100_000_u32];
    (
        (0..8_usize, 0..5_usize, 0..4_usize, 0..12_usize, 0..5_usize),
        (bytes(), bytes(), bytes(), bytes()),
    )
        .prop_map(|(counts, bytes)| Limits {
            read_segments: counts.0,
            read_chunks: counts.1,
            write_chunks: counts.2,
            write_segments: counts.3,
            chunk_segments: counts.4,
            read_chunk_bytes: bytes.0,
            read_list_bytes: bytes.1,
            write_chunk_bytes: bytes.2,
            reply_chunk_bytes: bytes.3,
        })
}

/// A change to a message.
#[derive(Clone, Debug)]
pub enum Mutation {
    Bit(prop::sample::Index, u8),
    Word(prop::sample::Index, u32),
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, u32),
    Cut(prop::sample::Index),
}

/// Words that mean something somewhere in a header.
fn telling_word() -> impl Strategy<Value = u32> {
    prop_oneof![
        0..6_u32,
        Just(u32::MAX),
        Just(0x1000_0001),
        (9..60_u32).prop_map(|word| word * 4),
        any::<u32>(),
    ]
}

pub fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), 0..8_u8).prop_map(|(at, bit)| Mutation::Bit(at, bit)),
        (index(), telling_word()).prop_map(|(at, word)| Mutation::Word(at, word)),
        index().prop_map(Mutation::Remove),
        (index(), telling_word()).prop_map(|(at, word)| Mutation::Insert(at, word)),
        index().prop_map(Mutation::Cut),
    ]
}

pub fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    if bytes.len() < 8 {
        return;
    }
    let words = bytes.len() / 4;
    match mutation {
        Mutation::Bit(at, bit) => *at.get_mut(bytes) ^= 1 << bit,
        Mutation::Word(at, word) => {
            let start = at.index(words) * 4;
            bytes[start..start + 4].copy_from_slice(&word.to_be_bytes());
        }
        Mutation::Remove(at) => {
            let start = at.index(words) * 4;
            bytes.drain(start..start + 4);
        }
        Mutation::Insert(at, word) => {
            let start = at.index(words) * 4;
            bytes.splice(start..start, word.to_be_bytes());
        }
        Mutation::Cut(at) => bytes.truncate(at.index(bytes.len())),
    }
}

/// A plausible beginning, then words that often mean something.
pub fn word_soup() -> impl Strategy<Value = Vec<u8>> {
    (0..6_u32, vec(telling_word(), 0..60))
        .prop_map(|(procedure, words)| [octets(&[7, 1, 1, procedure]), octets(&words)].concat())
}
