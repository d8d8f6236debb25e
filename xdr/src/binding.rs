// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Data items that may be reduced by the NFS binding (RFC 8267, sections 4, 5.2 and 6.1).

use crate::{
    rpc::CallHeader,
    wire::Reader,
    DecodeError,
    ReadChunk,
    ReadList, //
};

const NFS: u32 = 100_003;
/// Octets of a file handle of NFS 2 (RFC 1094, section 2.3.3), and at most of one of NFS 3 (RFC
/// 1813, section 2.3.3).
const HANDLE_2: usize = 32;
const HANDLE_3: usize = 64;
/// Octets of a COMPOUND in front of its first operation, without a tag: the count of that, the
/// minor version, and the number of operations (RFC 7530, section 15.2).
const COMPOUND: u64 = 12;
/// Operations, and the type of file that has a text (RFC 7530, sections 13.1 and 16).
const WRITE: u32 = 38;
const CREATE: u32 = 6;
const NF4LNK: u32 = 5;
/// Octets from the beginning of an operation to its data item: number, state id, offset, stability
/// and count of a WRITE; number, type and count of a CREATE.
const WRITE_DATA: u64 = 36;
const CREATE_TEXT: u64 = 12;

impl ReadList<'_> {
    /// Checks as [`Self::reduces_eligible`] the list of a Call whose RPC message is `inline`, which
    /// Read chunks are taken out of.
    pub fn reduces_eligible_inline(&self, inline: &[u8]) -> bool {
        self.reduces_eligible(inline, |position, reduced| {
            let at = usize::try_from(position.checked_sub(reduced)?).ok()?;
            Reader::new(inline.get(at..)?).word().ok()
        })
    }

    /// Returns whether each Read chunk of a Position other than zero begins where the RPC message
    /// may have a data item that is eligible (RFC 8166, section 6.1).
    ///
    /// In the procedures of NFS 2 and 3 one Position may be, which their arguments lead to.
    /// COMPOUNDs are not parsed: in front of the Position there must be what an operation has in
    /// front of such an item. So some that are none pass, which the service finds out, and no item
    /// is refused.
    ///
    /// `beginning` is the Payload stream, as far as it is at hand: at least up to the first of
    /// these chunks, or 1280 octets. What is in it from there on does not count. `word` reads four
    /// octets of the unreduced stream at a Position, in front of which chunks have taken out so
    /// many octets.
    pub fn reduces_eligible(
        &self,
        beginning: &[u8],
        word: impl Fn(u64, u64) -> Option<u32>,
    ) -> bool {
        // They come in ascending order.
        let mut chunks = self.data_chunks();
        let Some(first) = chunks.next() else {
            return true;
        };
        // Where the header ends before it is whole, a chunk would hold the rest of it. Nothing is
        // eligible under integrity or privacy (RFC 8166, section 8.2.2.3).
        let header = CallHeader::peek(beginning).filter(|header| !header.wrapped);
        let arguments = header.and_then(|header| beginning.get(header.size..));
        let (Some(header), Some(arguments)) = (header, arguments) else {
            return false;
        };
        let position = u64::from(first.position());
        let size = u64::try_from(header.size).unwrap_or(u64::MAX);
        let item = match (header.program, header.version, header.procedure) {
            (NFS, 2, 8) => in_front_of_item(arguments, write_2),
            (NFS, 2, 13) => in_front_of_item(arguments, symlink_2),
            (NFS, 3, 7) => in_front_of_item(arguments, write_3),
            (NFS, 3, 10) => in_front_of_item(arguments, symlink_3),
            (NFS, 4, 1) => {
                let end = size.saturating_add(COMPOUND);
                return has_items(self.data_chunks(), end, word);
            }
            _ => None,
        };
        chunks.next().is_none() && item.and_then(|item| size.checked_add(item)) == Some(position)
    }
}

/// Returns whether each Read chunk begins where a COMPOUND, whose first operation is not before
/// `end`, may have a data item.
fn has_items<'a>(
    mut chunks: impl Iterator<Item = ReadChunk<'a>>,
    mut end: u64,
    word: impl Fn(u64, u64) -> Option<u32>,
) -> bool {
    let mut reduced = 0u64;
    chunks.all(|chunk| {
        let position = u64::from(chunk.position());
        // Of the Payload stream behind the chunk before.
        let before = |octets| {
            let at = position.checked_sub(octets).filter(|at| *at >= end)?;
            word(at, reduced)
        };
        let is_item = before(WRITE_DATA) == Some(WRITE)
            || (before(CREATE_TEXT) == Some(CREATE) && before(8) == Some(NF4LNK));
        let padded = u64::from(chunk.length()).saturating_add(3) & !3;
        end = position.saturating_add(padded);
        reduced = reduced.saturating_add(padded);
        is_item
    })
}

/// Returns the offset of a data item of a result of NFS 4, of which the service says that its
/// `length` octets at `offset` may be placed. `None` if they may not: the service says so of the
/// data of READ_PLUS, too, of which nothing is eligible (RFC 8267, section 6.1). `words` reads
/// eight octets of the result.
///
/// For READLINK the service names the place of the count, where the text is meant.
pub fn placeable_of_nfs_4(
    offset: usize,
    length: usize,
    words: impl Fn(usize) -> Option<[u32; 2]>,
) -> Option<usize> {
    const READ: u32 = 25;
    const READLINK: u32 = 27;
    const OK: u32 = 0;

    let before = |octets| words(offset.checked_sub(octets)?);
    // Number and status (RFC 7530, section 16.25), and in front of them anything. READ has there
    // what is no number of an operation, and READ_PLUS the count of its data.
    if before(8) == Some([READLINK, OK]) {
        return offset.checked_add(4).filter(|_| length != 0);
    }
    // Number, status, end of file and count (RFC 7530, section 16.23). READ_PLUS has there the type
    // of its content, which is less (RFC 7862, section 15.10).
    (before(16) == Some([READ, OK])).then_some(offset)
}

/// Returns the octets of the arguments that `pass` passes, and of the count of the data item behind
/// them.
fn in_front_of_item(
    arguments: &[u8],
    pass: fn(&mut Reader<'_>) -> Result<(), DecodeError>,
) -> Option<u64> {
    let start = Reader::new(arguments);
    let mut reader = start;
    pass(&mut reader).and_then(|()| reader.word()).ok()?;
    u64::try_from(reader.since(start).len()).ok()
}

/// Passes file handle, and offsets and count, which have no meaning (RFC 1094, section 2.2.9).
fn write_2(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    reader.items(HANDLE_2 + 12, 1).map(|_| ())
}

/// Passes directory and name (RFC 1094, section 2.2.14).
fn symlink_2(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    reader.items(HANDLE_2, 1)?;
    opaque(reader, usize::MAX)
}

/// Passes file handle, offset, count and stability (RFC 1813, section 3.3.7).
fn write_3(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    opaque(reader, HANDLE_3)?;
    reader.items(16, 1).map(|_| ())
}

/// Passes directory, name and attributes (RFC 1813, section 3.3.10).
fn symlink_3(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    // Set to the time of the client, which follows (RFC 1813, section 2.3.3).
    const SET_TO_CLIENT_TIME: u32 = 2;

    opaque(reader, HANDLE_3)?;
    opaque(reader, usize::MAX)?;
    // Mode, owner, group, size.
    for octets in [4, 4, 4, 8] {
        if reader.present()? {
            reader.items(octets, 1)?;
        }
    }
    // Of the last access and the last modification.
    for _ in 0..2 {
        if reader.word()? == SET_TO_CLIENT_TIME {
            reader.items(8, 1)?;
        }
    }
    Ok(())
}

/// Passes opaque data of variable length and its padding (RFC 4506, section 4.10).
fn opaque(reader: &mut Reader<'_>, most: usize) -> Result<(), DecodeError> {
    let octets = reader.count()?;
    if octets > most {
        return Err(DecodeError::Truncated);
    }
    reader.items(octets.div_ceil(4), 4).map(|_| ())
}
