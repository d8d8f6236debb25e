// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a message never exceeds an inline threshold, goes inline when it fits, and no data
//! item is taken out of a message that a security flavor covers; nothing is put into memory that
//! the server may still write to.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use kernel::prelude::*;
use xdr::{
    Encoder,
    Limits,
    Message,
    ReturnError,
    Segment, //
};

/// Octets of a header without chunks (RFC 8166, section 4.1).
const HEADER: usize = 28;
/// Segments of a chunk, at most: more than any connection has by default.
const SEGMENTS: usize = 8;
/// Octets of a Write chunk or Reply chunk of the most segments, beyond that.
const WRITE_CHUNK: usize = 8 + SEGMENTS * 16;
const REPLY_CHUNK: usize = 4 + SEGMENTS * 16;
/// Octets of a Read chunk of the most segments, beyond that.
const READ_CHUNK: usize = SEGMENTS * 24;

const fn thresholds(send: usize, receive: usize) -> Thresholds {
    Thresholds {
        send: send - HEADER,
        receive: receive - HEADER,
        segments: SEGMENTS,
    }
}

const SMALL: Thresholds = thresholds(1024, 1024);
const LARGE: Thresholds = thresholds(4096, 4096);
/// What a peer that says nothing gets one way, and a generous peer the other.
const UNEQUAL: [Thresholds; 2] = [thresholds(1024, 65536), thresholds(65536, 1024)];

/// An RPC without pages: a null procedure.
const PLAIN: Shape = Shape {
    call: 40,
    call_head: 40,
    call_pages: 0,
    call_is_write: false,
    reply: 24,
    reply_pages: 0,
    reply_is_read: false,
    may_place_directly: true,
};

/// NFS READ of `len` bytes, with `rest` bytes of the Reply around them.
fn read(len: usize, rest: usize) -> Shape {
    Shape {
        reply: rest + len,
        reply_pages: len,
        reply_is_read: true,
        ..PLAIN
    }
}

/// NFS WRITE of `len` bytes: `head` in front, padding and `tail` after.
fn write(head: usize, len: usize, tail: usize) -> Shape {
    Shape {
        call: head + len + pad(len) + tail,
        call_head: head,
        call_pages: len,
        call_is_write: true,
        ..PLAIN
    }
}

fn private(shape: Shape) -> Shape {
    Shape {
        may_place_directly: false,
        ..shape
    }
}

/// The Write chunk of a READ of 65533 bytes: two regions, and room for padding.
const OFFER: [Segment; 3] = [
    Segment {
        handle: 1,
        length: 60_000,
        offset: 0x1000,
    },
    Segment {
        handle: 2,
        length: 5_533,
        offset: 0x2000,
    },
    Segment {
        handle: 7,
        length: 3,
        offset: 0x30,
    },
];

/// What is made of the chunk when it comes back with these lengths.
fn returned(lengths: &[u32]) -> Result<Result<u32, ReturnError>> {
    let segments = OFFER.iter().zip(lengths).map(|(offer, length)| Segment {
        length: *length,
        ..*offer
    });
    let mut chunk = KVec::new();
    for segment in segments {
        chunk.push(segment, GFP_KERNEL)?;
    }
    let mut message = [0; 256];
    let mut writes = Encoder::msg(&mut message, 7, 1).end_reads();
    writes.write_chunk(&chunk);
    let header = writes.end_writes().no_reply_chunk().map_err(|_| EINVAL)?;
    // The XID, and that it is a Reply.
    let prefix = [0, 0, 0, 7, 0, 0, 0, 1];
    let end = header + prefix.len();
    message
        .get_mut(header..end)
        .ok_or(EINVAL)?
        .copy_from_slice(&prefix);
    match Message::decode(message.get(..end).ok_or(EINVAL)?, &Limits::floor(u32::MAX)) {
        Ok(Message::Reply(reply)) => Ok(reply.written(OFFER)),
        _ => Err(EINVAL),
    }
}

/// Octets of the Call that `arguments` puts behind the header, at the most.
fn inline_call(shape: &Shape, arguments: Arguments) -> usize {
    match arguments {
        Arguments::Inline => shape.call,
        Arguments::ReadChunk => shape.call - shape.call_pages,
        Arguments::PositionZero => 0,
    }
}

#[kunit_tests(rpcrdma_chunks)]
mod suite {
    use super::*;

    #[test]
    fn what_fits_inline_is_inline_both_ways() -> Result {
        for thresholds in [SMALL, LARGE, UNEQUAL[0], UNEQUAL[1]] {
            let (send, receive) = (thresholds.send, thresholds.receive);
            for call in [40, 996, 997, send - 1, send, send + 1, usize::MAX] {
                for reply in [24, 996, 997, receive - 1, receive, receive + 1, usize::MAX] {
                    let shape = Shape {
                        call,
                        reply,
                        ..PLAIN
                    };
                    let inline = results(&shape, &thresholds) == Results::Inline
                        && arguments(&shape, &thresholds, 0, 0) == Arguments::Inline;
                    same("both", fit_inline(call, reply, &thresholds), inline)?;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn padding() -> Result {
        for (len, expected) in [
            (0, 0),
            (1, 3),
            (2, 2),
            (3, 1),
            (4, 0),
            (4095, 1),
            (4096, 0),
            (usize::MAX, 1),
        ] {
            same("padding", pad(len), expected)?;
        }
        Ok(())
    }

    #[test]
    fn padding_of_a_write_chunk() -> Result {
        for (lengths, written) in [
            // A server as it should be, and one that leaves out what it did not use.
            (&[60_000, 5_533, 0][..], 65_533),
            (&[60_000, 5_533], 65_533),
            // Those that write padding, all or a part of it.
            (&[60_000, 5_533, 1], 65_534),
            (&[60_000, 5_533, 2], 65_535),
            (&[60_000, 5_533, 3], 65_536),
            // Less was read. Here padding comes right behind it, into the room for the result.
            (&[60_000, 1, 0], 60_001),
            (&[60_000, 4, 0], 60_004),
            (&[59_999, 0, 0], 59_999),
            (&[0, 0, 0], 0),
        ] {
            same("written", returned(lengths)?, Ok(written))?;
        }
        for (lengths, error) in [
            (&[60_000, 5_533, 4][..], ReturnError::Length),
            (&[60_000, 5_534, 0], ReturnError::Length),
            (&[60_000, 5_532, 1], ReturnError::Hole),
            (&[60_000, 0, 3], ReturnError::Hole),
            (&[0, 0, 3], ReturnError::Hole),
        ] {
            same("refused", returned(lengths)?, Err(error))?;
        }
        Ok(())
    }

    #[test]
    fn length_of_a_reply() -> Result {
        // Whether padding was written or not, and how much of it, makes no difference.
        for (written, expected) in [
            (0, 100),
            (65_533, 100 + 65_536),
            (65_534, 100 + 65_536),
            (65_535, 100 + 65_536),
            (65_536, 100 + 65_536),
            (60_001, 100 + 60_004),
            (60_004, 100 + 60_004),
        ] {
            same("length", reply_len(100, written), expected)?;
        }
        Ok(())
    }

    #[test]
    fn what_comes_inline_into_memory_of_a_chunk() -> Result {
        for (inline, head, write_chunk, reply_chunk, expected) in [
            (100, 100, false, false, false),
            (5000, 100, false, false, false),
            // Beside a Write chunk the head alone is nobody else's.
            (99, 100, true, false, false),
            (100, 100, true, false, false),
            (101, 100, true, false, true),
            (1, 0, true, false, true),
            // A Reply chunk leaves nothing out.
            (28, 100, false, true, true),
            (101, 100, false, true, true),
        ] {
            let found = overlaps(inline, head, write_chunk, reply_chunk);
            same("overlaps", found, expected)?;
        }
        Ok(())
    }

    #[test]
    fn header_sizes() -> Result {
        same("no chunks", lists_size(0, [], None), 0)?;
        same("a Read chunk", lists_size(SEGMENTS, [], None), READ_CHUNK)?;
        same(
            "a Write chunk",
            lists_size(0, [SEGMENTS], None),
            WRITE_CHUNK,
        )?;
        same(
            "a Reply chunk",
            lists_size(0, [], Some(SEGMENTS)),
            REPLY_CHUNK,
        )
    }

    #[test]
    fn small_rpc_is_inline() -> Result {
        for thresholds in [SMALL, LARGE, UNEQUAL[0], UNEQUAL[1]] {
            for shape in [PLAIN, private(PLAIN)] {
                same("results", results(&shape, &thresholds), Results::Inline)?;
                let found = arguments(&shape, &thresholds, 0, 0);
                same("arguments", found, Arguments::Inline)?;
            }
        }
        Ok(())
    }

    #[test]
    fn reply_without_pages() -> Result {
        for thresholds in [SMALL, LARGE, UNEQUAL[0], UNEQUAL[1]] {
            let most = thresholds.receive;
            for (reply, expected) in [
                (0, Results::Inline),
                (most - 1, Results::Inline),
                (most, Results::Inline),
                (most + 1, Results::ReplyChunk),
                (usize::MAX, Results::ReplyChunk),
            ] {
                let shape = Shape { reply, ..PLAIN };
                same("results", results(&shape, &thresholds), expected)?;
                // Nothing to place directly: the flavor makes no difference.
                let found = results(&private(shape), &thresholds);
                same("results with privacy", found, expected)?;
            }
        }
        Ok(())
    }

    #[test]
    fn reply_with_pages_not_for_placement() -> Result {
        // READDIR: pages, but no data item that RFC 8267 allows to place.
        let shape = |len| Shape {
            reply_is_read: false,
            ..read(len, 100)
        };
        for thresholds in [SMALL, LARGE] {
            let most = thresholds.receive - 100;
            for (len, expected) in [
                (most, Results::Inline),
                (most + 1, Results::ReplyChunk),
                (1 << 20, Results::ReplyChunk),
            ] {
                same("results", results(&shape(len), &thresholds), expected)?;
            }
        }
        Ok(())
    }

    #[test]
    fn read_result() -> Result {
        for thresholds in [SMALL, LARGE, UNEQUAL[0], UNEQUAL[1]] {
            let most = thresholds.receive - 100;
            for (len, expected) in [
                (0, Results::Inline),
                (1, Results::Inline),
                (most, Results::Inline),
                (most + 1, Results::WriteChunk),
                (most + 2, Results::WriteChunk),
                (most + 3, Results::WriteChunk),
                ((1 << 20) - 1, Results::WriteChunk),
                (1 << 20, Results::WriteChunk),
                ((1 << 20) + 1, Results::WriteChunk),
            ] {
                same("results", results(&read(len, 100), &thresholds), expected)?;
            }
        }
        Ok(())
    }

    #[test]
    fn read_result_with_a_long_rest() -> Result {
        // What is not in the Write chunk has to fit inline too.
        for thresholds in [SMALL, LARGE] {
            let most = thresholds.receive - WRITE_CHUNK;
            for (rest, expected) in [
                (most - 1, Results::WriteChunk),
                (most, Results::WriteChunk),
                (most + 1, Results::ReplyChunk),
                (1 << 20, Results::ReplyChunk),
            ] {
                let shape = read(1 << 20, rest);
                same("results", results(&shape, &thresholds), expected)?;
            }
        }
        Ok(())
    }

    #[test]
    fn read_result_with_privacy() -> Result {
        for thresholds in [SMALL, LARGE] {
            let most = thresholds.receive - 100;
            for (len, expected) in [
                (most, Results::Inline),
                (most + 1, Results::ReplyChunk),
                (1 << 20, Results::ReplyChunk),
            ] {
                let shape = private(read(len, 100));
                same("results", results(&shape, &thresholds), expected)?;
            }
        }
        Ok(())
    }

    #[test]
    fn empty_read_gets_no_chunk_of_nothing() -> Result {
        let shape = read(0, 1 << 16);
        let found = results(&shape, &SMALL);
        same("results", found, Results::ReplyChunk)
    }

    #[test]
    fn call_without_pages() -> Result {
        for thresholds in [SMALL, LARGE, UNEQUAL[0], UNEQUAL[1]] {
            let most = thresholds.send;
            for (call, expected) in [
                (0, Arguments::Inline),
                (most - 1, Arguments::Inline),
                (most, Arguments::Inline),
                (most + 1, Arguments::PositionZero),
                (usize::MAX, Arguments::PositionZero),
            ] {
                let shape = Shape {
                    call,
                    call_head: call,
                    ..PLAIN
                };
                same("arguments", arguments(&shape, &thresholds, 0, 0), expected)?;
                let found = arguments(&private(shape), &thresholds, 0, 0);
                same("arguments with privacy", found, expected)?;
            }
        }
        Ok(())
    }

    #[test]
    fn write_argument() -> Result {
        for thresholds in [SMALL, LARGE, UNEQUAL[0], UNEQUAL[1]] {
            for tail in [0, 4, 16] {
                let most = (thresholds.send - 100 - tail) & !3;
                for (len, expected) in [
                    (0, Arguments::Inline),
                    (1, Arguments::Inline),
                    // Padding counts: these all are `most` bytes of the Call.
                    (most - 3, Arguments::Inline),
                    (most - 2, Arguments::Inline),
                    (most - 1, Arguments::Inline),
                    (most, Arguments::Inline),
                    (most + 1, Arguments::ReadChunk),
                    (most + 4, Arguments::ReadChunk),
                    ((1 << 20) - 1, Arguments::ReadChunk),
                    (1 << 20, Arguments::ReadChunk),
                    ((1 << 20) + 1, Arguments::ReadChunk),
                ] {
                    let shape = write(100, len, tail);
                    same("arguments", arguments(&shape, &thresholds, 0, 0), expected)?;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn write_argument_with_a_long_rest() -> Result {
        for thresholds in [SMALL, LARGE] {
            let most = thresholds.send - READ_CHUNK;
            for (head, expected) in [
                (most - 4, Arguments::ReadChunk),
                (most, Arguments::ReadChunk),
                (most + 4, Arguments::PositionZero),
                (1 << 20, Arguments::PositionZero),
            ] {
                let shape = write(head, 1 << 20, 0);
                same("arguments", arguments(&shape, &thresholds, 0, 0), expected)?;
                // The same bytes, split over head and tail.
                let shape = write(head - 100, 1 << 20, 100);
                same("arguments", arguments(&shape, &thresholds, 0, 0), expected)?;
            }
        }
        Ok(())
    }

    #[test]
    fn write_argument_with_privacy() -> Result {
        for thresholds in [SMALL, LARGE] {
            let most = (thresholds.send - 100) & !3;
            for (len, expected) in [
                (most, Arguments::Inline),
                (most + 1, Arguments::PositionZero),
                (1 << 20, Arguments::PositionZero),
            ] {
                let shape = private(write(100, len, 0));
                same("arguments", arguments(&shape, &thresholds, 0, 0), expected)?;
            }
        }
        Ok(())
    }

    #[test]
    fn argument_not_for_placement() -> Result {
        // SYMLINK with a long target, SETACL: pages, but nothing that may be placed.
        let shape = Shape {
            call_is_write: false,
            ..write(100, 8192, 0)
        };
        let found = arguments(&shape, &LARGE, 0, 0);
        same("arguments", found, Arguments::PositionZero)
    }

    #[test]
    fn position_is_a_multiple_of_four() -> Result {
        for head in [100, 101, 102, 103] {
            let expected = if head == 100 {
                Arguments::ReadChunk
            } else {
                Arguments::PositionZero
            };
            let found = arguments(&write(head, 8192, 0), &LARGE, 0, 0);
            same("arguments", found, expected)?;
        }
        Ok(())
    }

    #[test]
    fn chunks_for_results_leave_less_room() -> Result {
        for thresholds in [SMALL, LARGE] {
            for (write, reply, taken) in [
                (0, 0, 0),
                (1, 0, 8 + 16),
                (SEGMENTS, 0, WRITE_CHUNK),
                (0, 1, 4 + 16),
                (0, SEGMENTS, REPLY_CHUNK),
            ] {
                let most = thresholds.send - taken;
                for (call, expected) in [
                    (most, Arguments::Inline),
                    (most + 1, Arguments::PositionZero),
                ] {
                    let shape = Shape {
                        call,
                        call_head: call,
                        ..PLAIN
                    };
                    let found = arguments(&shape, &thresholds, write, reply);
                    same("arguments", found, expected)?;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn sent_message_fits_its_threshold() -> Result {
        // Whatever the shape: header and what goes inline are within the threshold, and a chunk is
        // used only where the whole Call would not be.
        for thresholds in [SMALL, LARGE, UNEQUAL[0], UNEQUAL[1]] {
            for head in (0..6000).step_by(29) {
                for len in [0, 1, 3, 512, 4095, 4096, 70_001] {
                    for flags in 0..4 {
                        let shape = Shape {
                            call_is_write: flags & 1 != 0,
                            may_place_directly: flags & 2 != 0,
                            ..write(head, len, 8)
                        };
                        let chosen = arguments(&shape, &thresholds, 0, SEGMENTS);
                        let reads = match chosen {
                            Arguments::Inline => 0,
                            Arguments::ReadChunk | Arguments::PositionZero => SEGMENTS,
                        };
                        let lists = lists_size(reads, [], Some(SEGMENTS));
                        let sent = lists + inline_call(&shape, chosen);
                        claim(sent <= thresholds.send, "the message fits")?;
                        let bare = lists_size(0, [], Some(SEGMENTS));
                        let fits = bare + shape.call <= thresholds.send;
                        claim(
                            fits == (chosen == Arguments::Inline),
                            "what fits goes inline",
                        )?;
                        let direct = shape.call_is_write && shape.may_place_directly && len != 0;
                        claim(
                            direct || chosen != Arguments::ReadChunk,
                            "nothing is taken out that must stay",
                        )?;
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn expected_reply_fits_its_threshold() -> Result {
        for thresholds in [SMALL, LARGE, UNEQUAL[0], UNEQUAL[1]] {
            for rest in (0..6000).step_by(29) {
                for len in [0, 1, 3, 512, 4095, 4096, 70_001] {
                    for flags in 0..4 {
                        let shape = Shape {
                            reply_is_read: flags & 1 != 0,
                            may_place_directly: flags & 2 != 0,
                            ..read(len, rest)
                        };
                        let received = match results(&shape, &thresholds) {
                            Results::Inline => shape.reply,
                            Results::WriteChunk => {
                                let direct = shape.reply_is_read && shape.may_place_directly;
                                claim(direct && len != 0, "nothing is taken out that must stay")?;
                                WRITE_CHUNK + rest
                            }
                            // The server may still send a short Reply inline.
                            Results::ReplyChunk => {
                                claim(shape.reply > thresholds.receive, "what fits comes inline")?;
                                REPLY_CHUNK
                            }
                        };
                        claim(received <= thresholds.receive, "the Reply fits")?;
                    }
                }
            }
        }
        Ok(())
    }
}
