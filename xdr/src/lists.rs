// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Chunk lists of a header, written in one pass.

use core::borrow::Borrow;

use crate::{
    rpc::MIN_CALL_HEADER,
    wire::Writer,
    EncodeError,
    ReadSegment,
    Segment,
    WriteChunk,
    WriteList, //
};

/// Writes an RPC-over-RDMA header into a buffer: fixed fields, Read list, Write list, Reply chunk
/// (RFC 8166, sections 4.2 and 4.3), each once and in this order, by a type for each list.
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
pub struct Encoder<'b>(Lists<'b>);

/// An [`Encoder`] whose Read list has ended.
#[derive(Debug)]
#[must_use]
pub struct WriteEncoder<'b>(Lists<'b>);

/// An [`Encoder`] whose Write list has ended.
#[derive(Debug)]
#[must_use]
pub struct ReplyEncoder<'b>(Lists<'b>);

/// Chunk lists that are written.
#[derive(Debug)]
struct Lists<'b> {
    writer: Writer<'b>,
    error: Option<EncodeError>,
    /// The Payload stream follows the header.
    inline: bool,
    /// There are Read chunks, so this is a Call.
    reads: bool,
    /// The Payload stream has a place.
    payload: bool,
}

impl<'b> Encoder<'b> {
    /// Continues a header behind its fixed fields. If it is `inline` the Payload stream follows it,
    /// else that is in the Position Zero Read chunk of a Call or in the Reply chunk of a Reply.
    pub(crate) fn new(writer: Writer<'b>, inline: bool) -> Self {
        Self(Lists {
            writer,
            error: None,
            inline,
            reads: false,
            payload: inline,
        })
    }

    /// Continues a header of version 2 with a Call chunk, whose segments are a list in front of the
    /// Read list.
    pub(crate) fn behind_call_chunk(
        writer: Writer<'b>,
        segments: impl IntoIterator<Item: Borrow<Segment>>,
    ) -> Self {
        let mut encoder = Self::new(writer, false);
        encoder.read_chunk(0, segments);
        let lists = &mut encoder.0;
        lists.writer.words([0]);
        // Nothing but data items may follow.
        lists.inline = true;
        if !lists.payload {
            lists.fail(EncodeError::NoPayload);
        }
        encoder
    }

    /// Adds a Read chunk: the data item at `position` octets of the unreduced Payload stream
    /// (RFC 8166, section 3.4.5), or with `position` zero the Payload stream itself.
    pub fn read_chunk(
        &mut self,
        position: u32,
        segments: impl IntoIterator<Item: Borrow<Segment>>,
    ) {
        let lists = &mut self.0;
        let usable = match position {
            0 => !lists.inline,
            _ => position & 3 == 0 && position >= MIN_CALL_HEADER,
        };
        if !usable {
            lists.fail(EncodeError::Position(position));
        }
        for segment in segments {
            lists.writer.words([1, position]);
            segment.borrow().write(&mut lists.writer);
            lists.reads = true;
            lists.payload |= position == 0;
        }
    }

    /// Ends the Read list.
    #[inline]
    pub fn end_reads(mut self) -> WriteEncoder<'b> {
        self.0.writer.words([0]);
        WriteEncoder(self.0)
    }

    /// Goes on to the Write list of a header that has no Read list.
    pub(crate) fn no_reads(self) -> WriteEncoder<'b> {
        WriteEncoder(self.0)
    }
}

impl<'b> WriteEncoder<'b> {
    /// Adds a Write chunk (RFC 8166, section 3.4.6). No segments make an empty chunk
    /// (section 4.3.2.3).
    pub fn write_chunk(&mut self, segments: impl IntoIterator<Item: Borrow<Segment>>) {
        self.0.counted(segments);
    }

    /// Adds the chunks of an offer as they came, with the lengths of what was written (RFC 8166,
    /// section 3.4.6), and ends the list. A chunk of which `written` says `None` is returned empty.
    pub(crate) fn return_writes(
        mut self,
        writes: &WriteList<'_>,
        written: impl IntoIterator<Item = Option<u32>>,
    ) -> ReplyEncoder<'b> {
        let lists = &mut self.0;
        let mut written = written.into_iter();
        for chunk in writes.chunks() {
            match written.next().unwrap_or(Some(0)) {
                Some(octets) => lists.filled(&chunk, octets),
                None => lists.writer.words([1, 0]),
            }
        }
        // What has no chunk cannot have been written.
        if written.any(|octets| octets.is_some_and(|octets| octets != 0)) {
            lists.fail(EncodeError::Written);
        }
        self.end_writes()
    }

    /// Ends the Write list.
    #[inline]
    pub fn end_writes(mut self) -> ReplyEncoder<'b> {
        self.0.writer.words([0]);
        ReplyEncoder(self.0)
    }
}

impl ReplyEncoder<'_> {
    /// Adds the Reply chunk (RFC 8166, section 4.3.3). Returns the header's length in octets.
    pub fn reply_chunk(
        mut self,
        segments: impl IntoIterator<Item: Borrow<Segment>>,
    ) -> Result<usize, EncodeError> {
        self.0.counted(segments);
        self.0.finish(true)
    }

    /// Adds the Reply chunk of an offer, into which `octets` octets were written. Returns the
    /// header's length in octets.
    pub(crate) fn return_chunk(
        mut self,
        chunk: &WriteChunk<'_>,
        octets: u32,
    ) -> Result<usize, EncodeError> {
        self.0.filled(chunk, octets);
        self.0.finish(true)
    }

    /// Ends a header that has no place for a Reply chunk. Returns its length in octets.
    pub(crate) fn no_reply_field(self) -> Result<usize, EncodeError> {
        self.0.finish(false)
    }

    /// Marks the Reply chunk as not present. Returns the header's length in octets.
    #[inline]
    pub fn no_reply_chunk(mut self) -> Result<usize, EncodeError> {
        self.0.writer.words([0]);
        self.0.finish(false)
    }
}

impl Lists<'_> {
    /// Keeps the first error.
    fn fail(&mut self, error: EncodeError) {
        self.error.get_or_insert(error);
    }

    /// Puts a chunk that is optional-data and a counted array.
    fn counted(&mut self, segments: impl IntoIterator<Item: Borrow<Segment>>) {
        self.writer.words([1]);
        let count_field = self.writer.reserve();
        let mut count: u32 = 0;
        for segment in segments {
            segment.borrow().write(&mut self.writer);
            count = count.saturating_add(1);
        }
        if let Some(field) = count_field {
            *field = count.to_be_bytes();
        }
    }

    /// Puts a chunk into which `octets` octets were written.
    fn filled(&mut self, chunk: &WriteChunk<'_>, octets: u32) {
        match chunk.filled(octets) {
            Some(segments) => self.counted(segments),
            None => self.fail(EncodeError::Written),
        }
    }

    #[inline]
    fn finish(&self, reply_chunk: bool) -> Result<usize, EncodeError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        // In a Call the Position Zero Read chunk holds the Payload stream; without Read chunks
        // this is a Reply, and the Reply chunk does.
        if !self.payload && (self.reads || !reply_chunk) {
            return Err(EncodeError::NoPayload);
        }
        self.writer.finish()
    }
}

/// Returns the octets of these chunks in a header, beyond one without chunks, for choosing the form
/// of a message before it is written.
///
/// `writes` has the segment count of each Write chunk; `reply` is that of the Reply chunk.
pub fn lists_size(
    read_segments: usize,
    writes: impl IntoIterator<Item = usize>,
    reply: Option<usize>,
) -> usize {
    let segments = |count: usize| count.saturating_mul(Segment::SIZE);
    let reads = read_segments.saturating_mul(ReadSegment::LISTED_SIZE);
    // A Write chunk has a "present" word and a count.
    let lists = writes.into_iter().fold(reads, |sum, count| {
        sum.saturating_add(segments(count)).saturating_add(8)
    });
    // The "present" word of a Reply chunk is part of every header, the count is not.
    let reply = reply.map_or(0, |count| segments(count).saturating_add(4));
    lists.saturating_add(reply)
}
