// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `RDMA_MSG` with a single chunk for a payload, as most messages are that have any: those of NFS READ
//! and WRITE. They are looked at as a whole, and what is not like that is looked at part by part.

use crate::{
    wire::Reader,
    Call,
    CallPayload,
    Direction,
    FixedHeader,
    Inline,
    Limits,
    Message,
    ReadList,
    ReadSegment,
    Reply,
    ReplyPayload,
    RpcPrefix,
    Segment,
    Segments,
    WriteList, //
};

/// Octets of a word.
const WORD: usize = 4;

/// The direction of the Payload stream that follows the lists. `None` if it is none that belongs to
/// the header.
#[inline(always)]
fn direction(header: &FixedHeader, bytes: &[u8]) -> Option<Direction> {
    let prefix = RpcPrefix::peek(bytes)?;
    if prefix.xid != header.xid {
        return None;
    }
    prefix.direction()
}

impl<'a> Message<'a> {
    /// What has these fixed fields, and `lists` behind them. `None` if it is not of this kind, or not
    /// well formed.
    #[inline(always)]
    pub(crate) fn with_single_chunk(
        header: &FixedHeader,
        lists: &'a [u8],
        limits: &Limits,
    ) -> Option<Self> {
        Self::with_write_chunk(header, lists, limits)
            .or_else(|| Self::with_read_segment(header, lists, limits))
    }

    /// With a Write chunk and no other.
    #[inline(always)]
    fn with_write_chunk(header: &FixedHeader, lists: &'a [u8], limits: &Limits) -> Option<Self> {
        // No Read list, but a Write list.
        let (lead, rest) = lists.split_first_chunk::<{ 3 * WORD }>()?;
        let mut lead = Reader::new(lead);
        if lead.present().ok()? || !lead.present().ok()? {
            return None;
        }
        let count = lead.count().ok()?;
        let octets = count.checked_mul(Segment::SIZE)?;
        let (segments, rest) = rest.split_at_checked(octets)?;
        // The end of the Write list, and no Reply chunk.
        let (ends, bytes) = rest.split_first_chunk::<{ 2 * WORD }>()?;
        let within = limits.write_chunks != 0
            && count <= limits.write_segments
            && count <= limits.chunk_segments;
        if *ends != [0; 2 * WORD] || !within {
            return None;
        }
        let mut length: u32 = 0;
        for segment in Segments::new(segments) {
            segment.end()?;
            length = length.checked_add(segment.length)?;
        }
        if length > limits.write_chunk_bytes {
            return None;
        }
        let writes = WriteList::known(lists.get(WORD..octets.checked_add(3 * WORD)?)?, 1);
        let inline = Inline {
            offset: octets.checked_add(FixedHeader::SIZE + 5 * WORD)?,
            bytes,
        };
        Some(match direction(header, bytes)? {
            Direction::Call => Self::Call(Call {
                xid: header.xid,
                credits: header.credits,
                reads: ReadList::default(),
                writes,
                reply_chunk: None,
                payload: CallPayload::Inline(inline),
            }),
            Direction::Reply => Self::Reply(Reply {
                xid: header.xid,
                credits: header.credits,
                writes,
                reply_chunk: None,
                payload: ReplyPayload::Inline(inline),
            }),
        })
    }

    /// A Call with a Read chunk of one segment and no other.
    #[inline(always)]
    fn with_read_segment(header: &FixedHeader, lists: &'a [u8], limits: &Limits) -> Option<Self> {
        let (list, rest) = lists.split_first_chunk::<{ ReadSegment::LISTED_SIZE }>()?;
        // The end of the Read list, no Write list and no Reply chunk.
        let (ends, bytes) = rest.split_first_chunk::<{ 3 * WORD }>()?;
        if *ends != [0; 3 * WORD] {
            return None;
        }
        let (reads, position) = ReadList::of_one(list, limits)?;
        if direction(header, bytes)? != Direction::Call {
            return None;
        }
        // Widening: no supported target has a usize of more than 64 bits.
        if position as usize > bytes.len() {
            return None;
        }
        Some(Self::Call(Call {
            xid: header.xid,
            credits: header.credits,
            reads,
            writes: WriteList::default(),
            reply_chunk: None,
            payload: CallPayload::Inline(Inline {
                offset: FixedHeader::SIZE + ReadSegment::LISTED_SIZE + 3 * WORD,
                bytes,
            }),
        }))
    }
}
