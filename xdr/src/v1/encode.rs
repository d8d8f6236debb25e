// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Headers written in one pass.

use core::{
    borrow::Borrow,
    marker::PhantomData, //
};

use crate::{
    wire::Writer,
    EncodeError,
    FixedHeader,
    Procedure,
    ReadSegment,
    Segment,
    WriteChunk,
    WriteList,
    MIN_CALL_HEADER,
    MIN_HEADER,
    VERSION, //
};

/// Octets of a header with these chunks, for choosing the form of a message before it is written.
///
/// `writes` has the segment count of each Write chunk; `reply` is that of the Reply chunk.
#[inline]
pub fn header_size(
    read_segments: usize,
    writes: impl IntoIterator<Item = usize>,
    reply: Option<usize>,
) -> usize {
    // The "present" word of a Write chunk and its count.
    const WRITE_CHUNK: usize = 8;
    let segments = |count: usize| count.saturating_mul(Segment::SIZE);

    let mut size =
        MIN_HEADER.saturating_add(read_segments.saturating_mul(ReadSegment::LISTED_SIZE));
    for count in writes {
        size = size.saturating_add(segments(count).saturating_add(WRITE_CHUNK));
    }
    if let Some(count) = reply {
        // The "present" word is part of every header, the count is not.
        size = size.saturating_add(segments(count).saturating_add(4));
    }
    size
}

/// Stage of an [`Encoder`]: Read chunks may follow.
#[derive(Debug)]
pub struct ReadStage;
/// Stage of an [`Encoder`]: Write chunks may follow.
#[derive(Debug)]
pub struct WriteStage;
/// Stage of an [`Encoder`]: the Reply chunk follows, or its absence.
#[derive(Debug)]
pub struct ReplyStage;

/// Writes an RPC-over-RDMA header into a buffer: fixed fields, Read list, Write list, Reply chunk
/// (RFC 8166, sections 4.2 and 4.3), each stage once and in this order.
///
/// Segments come from any iterator and go to the buffer directly. When the buffer is full the
/// encoder goes on counting, so that the error at the end says how much room the header needs;
/// what the buffer then holds is of no use.
///
/// ```
/// # use xdr::{EncodeError, Encoder, Segment};
/// # fn example(buffer: &mut [u8], data: &[Segment]) -> Result<usize, EncodeError> {
/// let mut encoder = Encoder::msg(buffer, 0x1234, 32).end_reads();
/// encoder.write_chunk(data);
/// let header_len = encoder.end_writes().no_reply_chunk()?;
/// # Ok(header_len)
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Encoder<'b, Stage> {
    writer: Writer<'b>,
    error: Option<EncodeError>,
    /// Whether the Payload stream follows the header (`RDMA_MSG`).
    inline: bool,
    reads: bool,
    position_zero: bool,
    stage: PhantomData<Stage>,
}

impl<'b> Encoder<'b, ReadStage> {
    /// Begins an `RDMA_MSG` header: the Payload stream follows it in the same Send.
    ///
    /// `credits` is the number requested in a Call, or granted in a Reply.
    #[inline]
    pub fn msg(buffer: &'b mut [u8], xid: u32, credits: u32) -> Self {
        Self::new(buffer, xid, credits, Procedure::Msg)
    }

    /// Begins an `RDMA_NOMSG` header: the Payload stream is in the Position Zero Read chunk of a
    /// Call or in the Reply chunk of a Reply.
    #[inline]
    pub fn nomsg(buffer: &'b mut [u8], xid: u32, credits: u32) -> Self {
        Self::new(buffer, xid, credits, Procedure::NoMsg)
    }

    #[inline]
    fn new(buffer: &'b mut [u8], xid: u32, credits: u32, procedure: Procedure) -> Self {
        let mut writer = Writer::new(buffer);
        let header = FixedHeader {
            xid,
            version: VERSION,
            credits,
            procedure: procedure.to_wire(),
        };
        writer.array(&header.to_wire());
        Self {
            writer,
            error: None,
            inline: matches!(procedure, Procedure::Msg),
            reads: false,
            position_zero: false,
            stage: PhantomData,
        }
    }

    /// Adds a Read chunk: the data item at `position` octets of the unreduced Payload stream
    /// (RFC 8166, section 3.4.5), or with `position` zero the Payload stream itself.
    #[inline]
    pub fn read_chunk<I>(&mut self, position: u32, segments: I)
    where
        I: IntoIterator<Item: Borrow<Segment>>,
    {
        let usable = match position {
            0 => !self.inline,
            _ => position & 3 == 0 && position >= MIN_CALL_HEADER,
        };
        if !usable && self.error.is_none() {
            self.error = Some(EncodeError::Position(position));
        }
        for segment in segments {
            self.writer.word(1);
            self.writer.word(position);
            self.writer.array(&segment.borrow().to_wire());
            self.reads = true;
            self.position_zero |= position == 0;
        }
    }

    /// Ends the header of a message without chunks, as most are. Returns its length in octets,
    /// which is [`MIN_HEADER`].
    #[inline]
    pub fn no_chunks(mut self) -> Result<usize, EncodeError> {
        self.writer.array(&[0; MIN_HEADER - FixedHeader::SIZE]);
        self.finish(false)
    }

    /// Ends the Read list.
    #[inline]
    pub fn end_reads(mut self) -> Encoder<'b, WriteStage> {
        self.writer.word(0);
        self.next_stage()
    }
}

impl<'b> Encoder<'b, WriteStage> {
    /// Adds a Write chunk (RFC 8166, section 3.4.6). No segments make an empty chunk
    /// (section 4.3.2.3).
    #[inline]
    pub fn write_chunk<I>(&mut self, segments: I)
    where
        I: IntoIterator<Item: Borrow<Segment>>,
    {
        self.counted(segments);
    }

    /// Adds a Write list as it came, with the lengths of what was written (RFC 8166, section
    /// 3.4.6): `written` has the octets in each Write chunk, in order, and may end where the others
    /// are not used.
    #[inline]
    pub fn return_writes(&mut self, list: &WriteList<'_>, written: impl IntoIterator<Item = u32>) {
        if let Some(copy) = self.writer.bytes(list.raw()) {
            if fill_list(copy, written).is_none() {
                self.error = Some(EncodeError::Written);
            }
        }
    }

    /// Ends the Write list.
    #[inline]
    pub fn end_writes(mut self) -> Encoder<'b, ReplyStage> {
        self.writer.word(0);
        self.next_stage()
    }
}

impl Encoder<'_, ReplyStage> {
    /// Adds the Reply chunk (RFC 8166, section 4.3.3). Returns the header's length in octets.
    #[inline]
    pub fn reply_chunk<I>(mut self, segments: I) -> Result<usize, EncodeError>
    where
        I: IntoIterator<Item: Borrow<Segment>>,
    {
        self.counted(segments);
        self.finish(true)
    }

    /// Adds a Reply chunk as it came, with the lengths of the `written` octets in it (RFC 8166,
    /// section 3.4.6). Returns the header's length in octets.
    #[inline]
    pub fn return_reply_chunk(
        mut self,
        chunk: &WriteChunk<'_>,
        written: u32,
    ) -> Result<usize, EncodeError> {
        self.writer.word(1);
        // A chunk that was decoded has no more than its count can say.
        let count = u32::try_from(chunk.segment_count()).unwrap_or(u32::MAX);
        self.writer.word(count);
        if let Some(copy) = self.writer.bytes(chunk.raw()) {
            if fill(copy, written).is_none() {
                self.error = Some(EncodeError::Written);
            }
        }
        self.finish(true)
    }

    /// Marks the Reply chunk as not present. Returns the header's length in octets.
    #[inline]
    pub fn no_reply_chunk(mut self) -> Result<usize, EncodeError> {
        self.writer.word(0);
        self.finish(false)
    }
}

impl<'b, Stage> Encoder<'b, Stage> {
    #[inline]
    fn finish(self, reply_chunk: bool) -> Result<usize, EncodeError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        // In a Call the Position Zero Read chunk holds the Payload stream; without Read chunks
        // this is a Reply, and the Reply chunk does.
        if !self.inline && !self.position_zero && (self.reads || !reply_chunk) {
            return Err(EncodeError::NoPayload);
        }
        EncodeError::check_room(&self.writer)
    }

    #[inline]
    fn next_stage<Next>(self) -> Encoder<'b, Next> {
        Encoder {
            writer: self.writer,
            error: self.error,
            inline: self.inline,
            reads: self.reads,
            position_zero: self.position_zero,
            stage: PhantomData,
        }
    }

    /// Puts a chunk that is optional-data and a counted array.
    #[inline]
    fn counted<I>(&mut self, segments: I)
    where
        I: IntoIterator<Item: Borrow<Segment>>,
    {
        self.writer.word(1);
        let count_field = self.writer.reserve::<4>();
        let mut count: u32 = 0;
        for segment in segments {
            self.writer.array(&segment.borrow().to_wire());
            count = count.saturating_add(1);
        }
        if let Some(field) = count_field {
            *field = count.to_be_bytes();
        }
    }
}

/// Makes a copied Write list that of a Reply.
#[inline]
fn fill_list(mut list: &mut [u8], written: impl IntoIterator<Item = u32>) -> Option<()> {
    let mut written = written.into_iter();
    // The words that say "present" and how many segments there are.
    while let Some((words, rest)) = list.split_first_chunk_mut::<8>() {
        let [_, _, _, _, count @ ..] = *words;
        let count = usize::try_from(u32::from_be_bytes(count)).ok()?;
        let octets = count.checked_mul(Segment::SIZE)?;
        let (segments, rest) = rest.split_at_mut_checked(octets)?;
        fill(segments, written.next().unwrap_or(0))?;
        list = rest;
    }
    // What has no chunk cannot have been written.
    written.all(|octets| octets == 0).then_some(())
}

/// Gives copied segments the lengths that say that so many octets were written: each is full before
/// the next begins. `None` when they have less room.
#[inline]
fn fill(segments: &mut [u8], mut written: u32) -> Option<()> {
    for segment in segments.chunks_exact_mut(Segment::SIZE) {
        let (_handle, rest) = segment.split_first_chunk_mut::<4>()?;
        let length = rest.first_chunk_mut::<4>()?;
        let here = u32::from_be_bytes(*length).min(written);
        *length = here.to_be_bytes();
        written = written.saturating_sub(here);
    }
    (written == 0).then_some(())
}
