// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A second reading of RFC 8166, written for plainness: vectors, maps and wide integers.
//!
//! It shares nothing with the crate but the plain data types, so that a mistake in one shows as a
//! difference from the other.

use std::collections::BTreeMap;

use xdr::{
    Call,
    CallPayload,
    Limits,
    Message,
    RdmaError,
    ReadSegment,
    Reply,
    ReplyPayload,
    Segment, //
};

/// A message, by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    Rpc(Rpc),
    Error {
        xid: u32,
        version: u32,
        credits: u32,
        /// `None` is `ERR_CHUNK`.
        range: Option<(u32, u32)>,
    },
}

/// `RDMA_MSG` or `RDMA_NOMSG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rpc {
    pub xid: u32,
    pub credits: u32,
    /// `None` for `RDMA_NOMSG`.
    pub payload: Option<Vec<u8>>,
    pub reads: Vec<ReadSegment>,
    pub writes: Vec<Vec<Segment>>,
    pub reply_chunk: Option<Vec<Segment>>,
}

impl Rpc {
    /// Segments by Position.
    pub fn read_chunks(&self) -> BTreeMap<u32, Vec<Segment>> {
        let mut chunks = BTreeMap::<u32, Vec<Segment>>::new();
        for entry in &self.reads {
            chunks
                .entry(entry.position)
                .or_default()
                .push(entry.segment);
        }
        chunks
    }

    /// The header alone.
    pub fn header(&self) -> Vec<u8> {
        let mut words = vec![self.xid, 1, self.credits, u32::from(self.payload.is_none())];
        for entry in &self.reads {
            words.extend([1, entry.position]);
            put_segment(&mut words, &entry.segment);
        }
        words.push(0);
        for chunk in &self.writes {
            words.push(1);
            put_chunk(&mut words, chunk);
        }
        words.push(0);
        match &self.reply_chunk {
            Some(chunk) => {
                words.push(1);
                put_chunk(&mut words, chunk);
            }
            None => words.push(0),
        }
        octets(&words)
    }

    /// The whole message.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header();
        bytes.extend(self.payload.iter().flatten());
        bytes
    }
}

pub fn octets(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn put_segment(words: &mut Vec<u32>, segment: &Segment) {
    words.extend([
        segment.handle,
        segment.length,
        (segment.offset >> 32) as u32,
        segment.offset as u32,
    ]);
}

fn put_chunk(words: &mut Vec<u32>, chunk: &[Segment]) {
    words.push(chunk.len() as u32);
    for segment in chunk {
        put_segment(words, segment);
    }
}

fn sum(segments: &[Segment]) -> i128 {
    segments.iter().map(|s| i128::from(s.length)).sum()
}

/// Takes words from the front; every failure is `None`.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn word(&mut self) -> Option<u32> {
        let field = self.0.get(..4)?;
        self.0 = &self.0[4..];
        Some(u32::from_be_bytes(field.try_into().unwrap()))
    }

    fn present(&mut self) -> Option<bool> {
        match self.word()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn segment(&mut self) -> Option<Segment> {
        let segment = Segment {
            handle: self.word()?,
            length: self.word()?,
            offset: (u64::from(self.word()?) << 32) | u64::from(self.word()?),
        };
        let end = i128::from(segment.offset) + i128::from(segment.length);
        (end < 1 << 64).then_some(segment)
    }

    fn chunk(&mut self, max_segments: usize, max_bytes: u32) -> Option<Vec<Segment>> {
        let count = self.word()?;
        let mut chunk = Vec::new();
        for _ in 0..count {
            chunk.push(self.segment()?);
        }
        (chunk.len() <= max_segments && sum(&chunk) <= i128::from(max_bytes)).then_some(chunk)
    }
}

/// Decodes a message, or refuses it.
pub fn decode(bytes: &[u8], limits: &Limits) -> Option<Model> {
    let mut words = Words(bytes);
    let (xid, version, credits, procedure) =
        (words.word()?, words.word()?, words.word()?, words.word()?);
    if procedure == 4 {
        let range = match words.word()? {
            1 => Some((words.word()?, words.word()?)),
            2 if version == 1 => None,
            _ => return None,
        };
        return Some(Model::Error {
            xid,
            version,
            credits,
            range,
        });
    }
    if bytes.len() < 28 || version != 1 || procedure > 1 {
        return None;
    }

    let mut rpc = Rpc {
        xid,
        credits,
        payload: None,
        reads: Vec::new(),
        writes: Vec::new(),
        reply_chunk: None,
    };
    while words.present()? {
        let position = words.word()?;
        let segment = words.segment()?;
        rpc.reads.push(ReadSegment { position, segment });
    }
    while words.present()? {
        let chunk = words.chunk(limits.chunk_segments, limits.write_chunk_bytes)?;
        rpc.writes.push(chunk);
    }
    if words.present()? {
        let chunk = words.chunk(limits.chunk_segments, limits.reply_chunk_bytes)?;
        rpc.reply_chunk = Some(chunk);
    }
    let chunks = rpc.read_chunks();
    let positions = chunks.keys().all(|&p| p == 0 || (p >= 40 && p % 4 == 0));
    if !within(&rpc, &chunks, limits) || !positions {
        return None;
    }
    if procedure == 0 {
        rpc.payload = Some(words.0.to_vec());
    }
    places_fit(&chunks, reduced(&rpc, &chunks)?).then_some(Model::Rpc(rpc))
}

/// Read chunks by Position.
type Chunks = BTreeMap<u32, Vec<Segment>>;

/// Whether the Read list, and the number of the others, keep to the limits.
fn within(rpc: &Rpc, chunks: &Chunks, limits: &Limits) -> bool {
    let sums: Vec<i128> = chunks.values().map(|chunk| sum(chunk)).collect();
    rpc.reads.len() <= limits.read_segments
        && chunks.len() <= limits.read_chunks
        && rpc.writes.len() <= limits.write_chunks
        && rpc.writes.iter().map(Vec::len).sum::<usize>() <= limits.write_segments
        && chunks.values().all(|c| c.len() <= limits.chunk_segments)
        && sums
            .iter()
            .all(|&s| s <= i128::from(limits.read_chunk_bytes))
        && sums.iter().sum::<i128>() <= i128::from(limits.read_list_bytes)
}

/// The length of the Payload stream before the data items are put back, if there is one.
fn reduced(rpc: &Rpc, chunks: &Chunks) -> Option<i128> {
    let len = match &rpc.payload {
        Some(payload) => {
            let mut prefix = Words(payload);
            let (xid, msg_type) = (prefix.word()?, prefix.word()?);
            let is_reply = msg_type == 1;
            let mixed = is_reply && !chunks.is_empty();
            if xid != rpc.xid || msg_type > 1 || chunks.contains_key(&0) || mixed {
                return None;
            }
            payload.len() as i128
        }
        None if chunks.is_empty() => sum(rpc.reply_chunk.as_ref()?),
        None => sum(chunks.get(&0)?),
    };
    (len >= 8).then_some(len)
}

/// Whether the data items can be put back into a stream of that length, one after the other.
fn places_fit(chunks: &Chunks, reduced: i128) -> bool {
    let mut stream = reduced;
    let mut free_from = 0;
    for (&position, chunk) in chunks.iter().filter(|(&position, _)| position != 0) {
        let position = i128::from(position);
        if position < free_from || position > stream {
            return false;
        }
        let padded = (sum(chunk) + 3) / 4 * 4;
        free_from = position + padded;
        stream += padded;
    }
    true
}

/// What the crate decoded, by value.
pub fn lift(message: &Message<'_>) -> Model {
    match message {
        Message::Error(error) => Model::Error {
            xid: error.xid,
            version: error.version,
            credits: error.credits,
            range: match error.error {
                RdmaError::Version { low, high } => Some((low, high)),
                RdmaError::Chunk => None,
                // Nothing of version 2 is decoded as version 1.
                other => panic!("{other:?}"),
            },
        },
        Message::Call(call) => Model::Rpc(lift_call(call)),
        Message::Reply(reply) => Model::Rpc(lift_reply(reply)),
    }
}

fn lift_call(call: &Call<'_>) -> Rpc {
    Rpc {
        xid: call.xid,
        credits: call.credits,
        payload: match call.payload {
            CallPayload::Inline(inline) => Some(inline.bytes.to_vec()),
            CallPayload::PositionZero(_) => None,
        },
        reads: call.reads.segments().collect(),
        writes: call
            .writes
            .chunks()
            .map(|c| c.segments().collect())
            .collect(),
        reply_chunk: call.reply_chunk.map(|c| c.segments().collect()),
    }
}

fn lift_reply(reply: &Reply<'_>) -> Rpc {
    Rpc {
        xid: reply.xid,
        credits: reply.credits,
        payload: match reply.payload {
            ReplyPayload::Inline(inline) => Some(inline.bytes.to_vec()),
            ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => None,
        },
        reads: Vec::new(),
        writes: reply
            .writes
            .chunks()
            .map(|c| c.segments().collect())
            .collect(),
        reply_chunk: reply.reply_chunk.map(|c| c.segments().collect()),
    }
}
