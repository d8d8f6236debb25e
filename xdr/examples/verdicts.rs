// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the codec makes of messages of version 2, to be compared with what the referee does
//! (`tools/referee`): a connection a line on the standard input, its verdicts on the standard
//! output, in the form that `tools/referee/differential.py` has.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use std::io::{
    self,
    BufWriter,
    Write, //
};

use serde_json::{
    json,
    Value, //
};
use xdr::{
    checks::v2::reencode,
    v2::{
        encode_error,
        error_message,
        Bounds,
        Received,
        Receiver, //
    },
    Call,
    CallPayload,
    ErrorMessage,
    FixedHeader,
    Limits,
    Message,
    RdmaError,
    Rejected,
    Reply,
    ReplyPayload,
    Segment, //
};

/// `rdma_credit` of the errors.
const CREDITS: u32 = 7;
/// Octets of all properties together.
const PROPERTY_OCTETS: u32 = 16384;

fn main() {
    let mut out = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lines() {
        let connection: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let verdicts = verdicts(&connection);
        serde_json::to_writer(&mut out, &verdicts).unwrap();
        out.write_all(b"\n").unwrap();
    }
}

fn verdicts(connection: &Value) -> Value {
    let bounds = bounds(connection);
    let mut receiver = Receiver::new(bounds);
    let messages = connection["messages"].as_array().unwrap();
    let verdicts = messages.iter().map(|message| {
        let bytes = from_hex(message.as_str().unwrap());
        match receiver.receive(&bytes) {
            Ok(received) => accepted(&bytes, &received),
            Err(rejected) => refused(&rejected, &bounds),
        }
    });
    verdicts.collect()
}

fn bounds(connection: &Value) -> Bounds {
    let limit = |name: &str| connection["limits"][name].as_u64().unwrap();
    let count = |name| usize::try_from(limit(name)).unwrap();
    let octets = |name| u32::try_from(limit(name)).unwrap_or(u32::MAX);
    let limits = Limits {
        read_segments: count("read_segments"),
        read_chunks: count("read_chunks"),
        write_chunks: count("write_chunks"),
        write_segments: count("write_segments"),
        chunk_segments: count("chunk_segments"),
        read_chunk_bytes: octets("chunk_bytes"),
        read_list_bytes: octets("chunk_bytes"),
        write_chunk_bytes: octets("chunk_bytes"),
        reply_chunk_bytes: octets("chunk_bytes"),
    };
    // A client takes no chunks in Calls.
    let calls = match connection["role"].as_str() {
        Some("client") => Limits {
            read_segments: 0,
            read_chunks: 0,
            write_chunks: 0,
            write_segments: 0,
            chunk_segments: 0,
            ..limits
        },
        _ => limits,
    };
    Bounds {
        calls,
        replies: limits,
        call_octets: octets("message_bytes"),
        reply_octets: octets("message_bytes"),
        fragments: u32::MAX,
        property_octets: PROPERTY_OCTETS,
    }
}

fn refused(rejected: &Rejected, bounds: &Bounds) -> Value {
    let Some(message) = error_message(rejected, bounds, CREDITS) else {
        return json!({"verdict": "discard"});
    };
    let mut space = [0; 28];
    let length = encode_error(&message, &mut space).unwrap();
    json!({"verdict": "refuse", "answer": hex(&space[..length])})
}

fn accepted(bytes: &[u8], received: &Received<'_>) -> Value {
    let header = FixedHeader::peek(bytes).unwrap();
    let mut space = vec![0; bytes.len() + 64];
    let length = reencode(&header, received, &mut space).unwrap();
    let mut verdict = json!({
        "verdict": "accept",
        "header": hex(&space[..length]),
        "type": header.procedure,
        "xid": header.xid,
        "credits": header.credits,
        "payload": 0,
    });
    let fields = match received {
        Received::Message { message, before } => match message {
            Message::Call(call) => of_call(call, *before),
            Message::Reply(reply) => of_reply(reply, *before),
            Message::Error(error) => of_error(error),
        },
        Received::Fragment(fragment) => json!({
            "remaining": fragment.remaining,
            "payload": fragment.payload.bytes.len(),
        }),
        Received::Grant(_) => json!({}),
        Received::Properties { set, .. } => {
            let props = set
                .iter()
                .map(|property| json!([property.which, hex(property.data)]));
            json!({"props": props.collect::<Value>()})
        }
    };
    let fields = fields.as_object().unwrap().clone();
    verdict.as_object_mut().unwrap().extend(fields);
    verdict
}

fn of_call(call: &Call<'_>, before: u32) -> Value {
    let read = |position: u32, segment: Segment| {
        json!([position, segment.handle, segment.length, segment.offset])
    };
    let reads = call
        .reads
        .segments()
        .map(|entry| read(entry.position, entry.segment));
    let writes = call.writes.chunks().map(|chunk| segments(chunk.segments()));
    let reply = call.reply_chunk.map(|chunk| segments(chunk.segments()));
    let mut fields = json!({
        "inv_handle": call.inv_handle,
        "reads": reads.collect::<Value>(),
        "writes": writes.collect::<Value>(),
        "reply": reply,
    });
    match call.payload {
        CallPayload::Inline(inline) => {
            fields["payload"] = inline.bytes.len().into();
            fields["whole"] = (inline.bytes.len() + before as usize).into();
        }
        CallPayload::PositionZero(chunk) => {
            fields["call"] = chunk.segments().map(|segment| read(0, segment)).collect();
        }
    }
    fields
}

fn of_reply(reply: &Reply<'_>, before: u32) -> Value {
    let writes = reply
        .writes
        .chunks()
        .map(|chunk| segments(chunk.segments()));
    let mut fields = json!({"writes": writes.collect::<Value>()});
    match reply.payload {
        ReplyPayload::Inline(inline) => {
            fields["payload"] = inline.bytes.len().into();
            fields["whole"] = (inline.bytes.len() + before as usize).into();
        }
        ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => {
            fields["reply"] = reply
                .reply_chunk
                .map(|chunk| segments(chunk.segments()))
                .into();
        }
    }
    fields
}

fn of_error(message: &ErrorMessage) -> Value {
    let (code, args): (u32, Vec<u32>) = match message.error {
        RdmaError::Version { low, high } => (1, vec![low, high]),
        RdmaError::Chunk | RdmaError::BadXdr => (2, vec![]),
        RdmaError::BadPropertyValue => (3, vec![]),
        RdmaError::InvalidHeaderType => (4, vec![]),
        RdmaError::InvalidContinuation => (5, vec![]),
        RdmaError::ReadChunks { max } => (6, vec![max]),
        RdmaError::WriteChunks { max } => (7, vec![max]),
        RdmaError::Segments { max } => (8, vec![max]),
        RdmaError::WriteResource { index, needed } => (9, vec![index, needed]),
        RdmaError::ReplyResource { needed } => (10, vec![needed]),
        RdmaError::VersionMismatch => (11, vec![]),
        RdmaError::System => (100, vec![]),
    };
    json!({"error": code, "args": args})
}

fn segments(segments: impl Iterator<Item = Segment>) -> Value {
    segments
        .map(|segment| json!([segment.handle, segment.length, segment.offset]))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
