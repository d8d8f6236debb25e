// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What may be reduced of the arguments of a Call.

use super::{
    put,
    require,
    Check,
    AMPLE, //
};
use crate::{
    placeable_of_nfs_4,
    wire::{
        Reader,
        Writer, //
    },
    Call,
    Encoder,
    Message,
    Segment, //
};

const XID: u32 = 7;
const NFS: u32 = 100_003;
/// Octets of the header of a Call with a credential of five octets and without verifier.
const HEADER: u32 = 48;
const ROOM: usize = 1200;

/// Program, version, procedure.
type Procedure = (u32, u32, u32);
/// A Read chunk: its Position, from the beginning of the arguments, and its length.
type Chunk = (u32, u32);

/// Encodes a Call whose arguments are these words, with Read chunks, and has it looked at together
/// with its RPC message.
fn with_call<R>(
    (program, version, procedure): Procedure,
    arguments: &[u32],
    chunks: &[Chunk],
    look: impl FnOnce(&Call<'_>, &[u8]) -> R,
) -> Result<R, &'static str> {
    let mut buffer = [0; ROOM];
    let mut encoder = Encoder::msg(&mut buffer, XID, 1);
    for (position, length) in chunks {
        let segment = Segment {
            handle: 1,
            length: *length,
            offset: 0x1000,
        };
        encoder.read_chunk(HEADER.saturating_add(*position), [segment]);
    }
    let encoded = encoder.end_reads().end_writes().no_reply_chunk();
    let len = encoded.map_err(|_| "the header is encoded")?;
    let (_, room) = buffer.split_at_mut_checked(len).ok_or("there is room")?;
    let mut rpc = Writer::new(room);
    let header = [XID, 0, 2, program, version, procedure, 1, 5, 0x6162_6364];
    for word in header.iter().chain(&[0x6500_0000, 0, 0]).chain(arguments) {
        rpc.words([*word]);
    }
    let needed = rpc.finish().map_err(|_| "there is room for the words")?;
    let end = len.saturating_add(needed);
    let bytes = buffer.get(..end).ok_or("there is room for the words")?;
    match Message::decode(bytes, &AMPLE) {
        Ok(Message::Call(call)) => Ok(look(&call, bytes.get(len..).unwrap_or(&[]))),
        _ => Err("not decoded as a Call"),
    }
}

/// Returns whether the Read chunks of an inline Call may be where they are.
fn allows(procedure: Procedure, arguments: &[u32], chunks: &[Chunk]) -> Result<bool, &'static str> {
    with_call(procedure, arguments, chunks, |call, rpc| {
        call.reads.reduces_eligible_inline(rpc)
    })
}

/// Checks that of all Positions only this one is allowed for a chunk, or none, and no second chunk
/// with it.
fn only(procedure: Procedure, arguments: &[u32], position: Option<u32>) -> Check {
    let end = u32::try_from(arguments.len()).unwrap_or(0);
    for at in (0..=end).filter_map(|word| word.checked_mul(4)) {
        let found = allows(procedure, arguments, &[(at, 100)])?;
        require(found == (Some(at) == position), "one Position alone")?;
    }
    let Some(position) = position else {
        return Ok(());
    };
    let second = [(position, 100), (position.saturating_add(100), 100)];
    require(!allows(procedure, arguments, &second)?, "one chunk alone")
}

/// Returns arguments of NFS 3: handle and name of these lengths, then the rest.
fn handle_and_name<'w>(
    words: &'w mut [u32; 160],
    handle: u32,
    name: Option<u32>,
    rest: &[u32],
) -> &'w [u32] {
    let mut len = 0usize;
    let mut push = |word: u32| {
        if let Some(place) = words.get_mut(len) {
            *place = word;
        }
        len = len.saturating_add(1);
    };
    for octets in [Some(handle), name].into_iter().flatten() {
        push(octets);
        (0..octets.div_ceil(4)).for_each(|_| push(0x6162_6364));
    }
    rest.iter().for_each(|word| push(*word));
    words.get(..len).unwrap_or(&[])
}

/// Checks that in NFS 2 and 3 the one Position that may be follows from what is in front of it;
/// other procedures and programs have none, and neither has what is under integrity or privacy.
pub fn check_eligible() -> Check {
    let mut words = [0; 160];
    only((NFS, 2, 8), &[0; 20], Some(48))?;
    // The data or text is padded, and of a link of NFS 2 attributes follow.
    let name = [1, 2, 3, 4, 5, 6, 7, 8, 3, 0x6162_6300, 9, 0, 0, 0, 0, 0, 0];
    only((NFS, 2, 13), &name, Some(44))?;
    for (handle, padded) in [(0, 0), (1, 4), (28, 28), (31, 32), (63, 64), (64, 64u32)] {
        let rest = [0, 0, 100, 2, 100, 0, 0, 0];
        let arguments = handle_and_name(&mut words, handle, None, &rest);
        only((NFS, 3, 7), arguments, Some(24u32.saturating_add(padded)))?;
        for (attributes, octets) in [
            (&[0, 0, 0, 0, 0, 0][..], 24),
            (&[1, 0o777, 0, 0, 0, 0, 0], 28),
            (&[1, 0o777, 1, 1000, 1, 1000, 1, 0, 4096, 1, 1], 44),
            (&[0, 1, 5, 0, 1, 0, 0, 2, 7, 8, 1], 44),
            (&[1, 5, 1, 5, 1, 5, 1, 0, 5, 2, 7, 8, 2, 7, 8, 100], 60),
        ] {
            let arguments = handle_and_name(&mut words, handle, Some(6), attributes);
            let mut whole = [0; 160];
            for (to, from) in whole.iter_mut().zip(arguments) {
                *to = *from;
            }
            let len = arguments.len().saturating_add(2);
            let whole = whole.get(..len).ok_or("there is room")?;
            // Their counts, and that of the text.
            let position = 20u32.saturating_add(padded).saturating_add(octets);
            only((NFS, 3, 10), whole, Some(position))?;
        }
    }
    check_not_eligible(&mut words)
}

fn check_not_eligible(words: &mut [u32; 160]) -> Check {
    let arguments = handle_and_name(words, 65, None, &[0; 8]);
    only((NFS, 3, 7), arguments, None)?;
    let arguments = handle_and_name(words, 28, Some(5), &[2, 0, 0, 0, 0, 0, 0, 0]);
    only((NFS, 3, 10), arguments, None)?;
    for procedure in [
        (NFS, 2, 6),
        (NFS, 3, 6),
        (NFS, 4, 0),
        (NFS, 5, 1),
        // NFSACL, MOUNT.
        (100_227, 3, 2),
        (100_005, 3, 1),
    ] {
        only(procedure, &[0; 30], None)?;
        require(allows(procedure, &[0; 30], &[])?, "without chunks")?;
    }
    // A header that is not whole where the chunk begins.
    let cut = with_call((NFS, 3, 7), &[0; 30], &[(48, 100)], |call, rpc| {
        (0..48).all(|len| {
            !call
                .reads
                .reduces_eligible_inline(rpc.get(..len).unwrap_or(&[]))
        })
    })?;
    require(cut, "a header that is cut off")?;
    // Under integrity and privacy; the words of a WRITE are behind either of them.
    for (service, allowed) in [(1, true), (2, false), (3, false)] {
        let found = with_call((NFS, 3, 7), &[0; 30], &[(40, 100)], |call, _| {
            let mut rpc = [0; 128];
            put(
                rpc.get_mut(..64).ok_or("there is room")?,
                &crate::vectors::gss_call_header(service),
            )?;
            Ok::<_, &'static str>(call.reads.reduces_eligible_inline(&rpc))
        })??;
        require(found == allowed, "integrity and privacy")?;
    }
    Ok(())
}

/// Checks that in a COMPOUND a WRITE or the CREATE of a link is in front of each chunk, and behind
/// the chunk before.
pub fn check_eligible_in_compound() -> Check {
    const COMPOUND: Procedure = (NFS, 4, 1);
    // A tag of three octets, minor version 2, two WRITEs, the CREATE of a link, and a LOOKUP.
    #[rustfmt::skip]
    let inline = [
        3, 0x6162_6300, 2, 4, //
        38, 1, 2, 3, 4, 0, 0, 2, 99, //
        38, 1, 2, 3, 4, 0, 0, 2, 50, //
        6, 5, 10, 1, 0x6100_0000, 0, 0, //
        15, 4, 0x6162_6364,
    ];
    for (chunks, allowed) in [
        (&[(52, 99)][..], true),
        // Three octets of padding are part of neither chunk.
        (&[(52, 99), (188, 50)], true),
        (&[(52, 99), (188, 50), (252, 10)], true),
        // The padding may come along.
        (&[(52, 100), (188, 52), (252, 12)], true),
        // The second and the third alone, whose operations those before do not move then.
        (&[(88, 50)], true),
        (&[(100, 10)], true),
        (&[(52, 99), (152, 10)], false),
        // Elsewhere.
        (&[(0, 4)], false),
        (&[(4, 4)], false),
        (&[(16, 4)], false),
        (&[(48, 4)], false),
        (&[(56, 4)], false),
        (&[(124, 4)], false),
        (&[(128, 4)], false),
        (&[(52, 99), (184, 50)], false),
        (&[(52, 99), (192, 50)], false),
        // What looks like an operation, and is half in front of the chunk before.
        (&[(52, 4), (68, 4)], false),
    ] {
        require(allows(COMPOUND, &inline, chunks)? == allowed, "in order")?;
        // Whichever comes first in the list.
        let mut turned = [(0, 0); 4];
        let turned = turned.get_mut(..chunks.len()).ok_or("there is room")?;
        for (to, from) in turned.iter_mut().zip(chunks.iter().rev()) {
            *to = *from;
        }
        require(allows(COMPOUND, &inline, turned)? == allowed, "turned")?;
    }
    // What would be an operation in the RPC header, and a CREATE of something else.
    let found = allows((NFS, 4, 1), &[0, 0, 38, 1, 2, 3, 4, 0, 0, 2, 9], &[(44, 9)])?;
    require(!found, "before the first operation")?;
    let found = allows(COMPOUND, &[0, 0, 1, 6, 4, 10, 0, 0], &[(24, 9)])?;
    require(!found, "a CREATE of a device")?;
    check_whole()
}

/// Checks the same for a stream from which nothing is taken out: the data of the chunk before may
/// look like an operation.
fn check_whole() -> Check {
    // One WRITE of 40 octets, and another operation.
    #[rustfmt::skip]
    let whole = [
        0, 0, 2, //
        38, 1, 2, 3, 4, 0, 0, 2, 40, 38, 38, 38, 38, 38, 38, 38, 38, 38, 38, //
        38, 1, 2, 3, 4, 0, 0, 2, 8,
    ];
    for (chunks, allowed) in [
        (&[(48, 40)][..], true),
        (&[(48, 40), (124, 8)], true),
        (&[(48, 40), (120, 8)], false),
        (&[(48, 40), (88, 8)], false),
    ] {
        let found = with_call((NFS, 4, 1), &whole, chunks, |call, rpc| {
            call.reads.reduces_eligible(rpc, |position, _| {
                let at = usize::try_from(position).ok()?;
                Reader::new(rpc.get(at..)?).word().ok()
            })
        })?;
        require(found == allowed, "of the unreduced stream")?;
    }
    Ok(())
}

/// Checks that the data of READ and the text of READLINK may be placed, and nothing of READ_PLUS,
/// whatever is in it.
pub fn check_placeable_of_nfs_4() -> Check {
    const TEXT: u32 = 0x6162_6364;
    for (words, offset, length, expected) in [
        // READ: number, status, end of file, count.
        (&[25, 0, 1, 4, TEXT][..], 16, 4, Some(16)),
        (&[22, 0, 25, 0, 0, 4, TEXT], 24, 4, Some(24)),
        (&[25, 0, 1, 0], 16, 0, Some(16)),
        // One that was taken back.
        (&[25, 10018, 0, 0, 0], 16, 4, None),
        // READLINK: number, status, count.
        (&[27, 0, 4, TEXT], 8, 4, Some(12)),
        (&[27, 0, 0, 0], 8, 0, None),
        // The end of the attributes in front of it looks like a READ.
        (&[9, 0, 25, 0, 27, 0, 4, TEXT], 24, 4, Some(28)),
        (&[9, 0, 25, 0, 27, 0, 0], 24, 0, None),
        // READ_PLUS: number, status, end of file, segments; type, offset, count.
        (&[68, 0, 0, 1, 0, 0, 0, 4, TEXT], 32, 4, None),
        (&[68, 0, 25, 1, 0, 0, 25, 4, TEXT], 32, 4, None),
        (&[68, 0, 0, 1, 0, 27, 0, 4, TEXT], 32, 4, None),
        (&[68, 0, 0, 1, 0, 0, 27, 4, TEXT], 32, 4, None),
        (&[68, 0, 0, 1, 0, 0, 27, 0, 0], 32, 0, None),
        // Nothing in front of it.
        (&[TEXT], 0, 4, None),
    ] {
        let pair = |at: usize| match words.get(at.checked_div(4)?..)? {
            [first, second, ..] => Some([*first, *second]),
            _ => None,
        };
        let found = placeable_of_nfs_4(offset, length, pair);
        require(found == expected, "a result of NFS 4")?;
    }
    Ok(())
}
