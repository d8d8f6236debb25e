// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages of version 2, in words.

use std::fmt;

use xdr::{
    v2::{
        error_message,
        Bounds,
        Fragment,
        PropertySet,
        Received,
        Receiver, //
    },
    Call,
    CallPayload,
    Direction,
    FixedHeader,
    Message,
    Rejected,
    Reply,
    ReplyPayload, //
};

use crate::{
    write_inline,
    write_reads,
    write_reason,
    write_segments,
    write_writes,
    Named,
    LIMITS, //
};

/// No receiver of anybody's, so nothing is refused for its size.
const BOUNDS: Bounds = Bounds {
    calls: LIMITS,
    replies: LIMITS,
    call_octets: u32::MAX,
    reply_octets: u32::MAX,
    fragments: u32::MAX,
    property_octets: u32::MAX,
};

/// An end whose messages are received.
pub(crate) struct Peer(Receiver);

impl Peer {
    pub(crate) const fn new() -> Self {
        Self(Receiver::new(BOUNDS))
    }

    /// Its next message, to be written in words.
    pub(crate) fn receive<'a>(&mut self, bytes: &'a [u8]) -> Decoded<'a> {
        Decoded {
            header: FixedHeader::peek(bytes).unwrap_or_default(),
            outcome: self.0.receive(bytes),
        }
    }
}

/// A message, to be written in words.
pub(crate) struct Decoded<'a> {
    header: FixedHeader,
    outcome: Result<Received<'a>, Rejected>,
}

impl fmt::Display for Decoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Ok(Received::Message { message, before }) => match message {
                Message::Call(call) => self.write_call(f, call, *before),
                Message::Reply(reply) => self.write_reply(f, reply, *before),
                Message::Error(error) => {
                    self.write_prefix(f, "RDMA2_ERROR")?;
                    writeln!(f, "  {}", Named(error.error))
                }
            },
            Ok(Received::Fragment(fragment)) => self.write_fragment(f, fragment),
            Ok(Received::Grant(credits)) => writeln!(f, "RDMA2_GRANT: credits up to {credits}"),
            Ok(Received::Properties { set, last }) => self.write_properties(f, set, *last),
            Err(rejected) => write_rejected(f, rejected),
        }
    }
}

impl Decoded<'_> {
    fn write_prefix(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let (xid, credits) = (self.header.xid, self.header.credits);
        writeln!(f, "{name}: XID {xid:#010x}, credits up to {credits}")
    }

    fn write_call(&self, f: &mut fmt::Formatter<'_>, call: &Call<'_>, before: u32) -> fmt::Result {
        self.write_prefix(
            f,
            match call.payload {
                CallPayload::Inline(_) => "RDMA2_CALL_INLINE",
                CallPayload::PositionZero(_) => "RDMA2_CALL_EXTERNAL",
            },
        )?;
        if let Some(handle @ 1..) = call.inv_handle {
            writeln!(f, "  handle {handle:#010x} may be made invalid")?;
        }
        if let CallPayload::PositionZero(chunk) = call.payload {
            writeln!(f, "  Call chunk: {} octets", chunk.length())?;
            write_segments(f, chunk.segments())?;
        }
        write_reads(f, &call.reads)?;
        write_writes(f, &call.writes, call.reply_chunk)?;
        match call.payload {
            CallPayload::Inline(inline) => {
                write_inline(f, &inline)?;
                write_before(f, before)
            }
            CallPayload::PositionZero(_) => Ok(()),
        }
    }

    fn write_reply(
        &self,
        f: &mut fmt::Formatter<'_>,
        reply: &Reply<'_>,
        before: u32,
    ) -> fmt::Result {
        self.write_prefix(
            f,
            match reply.payload {
                ReplyPayload::Inline(_) => "RDMA2_REPLY_INLINE",
                ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => "RDMA2_REPLY_EXTERNAL",
            },
        )?;
        write_writes(f, &reply.writes, reply.reply_chunk)?;
        match reply.payload {
            ReplyPayload::Inline(inline) => {
                write_inline(f, &inline)?;
                write_before(f, before)
            }
            ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => Ok(()),
        }
    }

    fn write_fragment(&self, f: &mut fmt::Formatter<'_>, fragment: &Fragment<'_>) -> fmt::Result {
        self.write_prefix(
            f,
            match fragment.direction {
                Direction::Call => "RDMA2_CALL_MIDDLE",
                Direction::Reply => "RDMA2_REPLY_MIDDLE",
            },
        )?;
        write_inline(f, &fragment.payload)?;
        writeln!(f, "  {} octets are to follow", fragment.remaining)
    }

    fn write_properties(
        &self,
        f: &mut fmt::Formatter<'_>,
        set: &PropertySet<'_>,
        last: bool,
    ) -> fmt::Result {
        self.write_prefix(
            f,
            match last {
                true => "RDMA2_CONNPROP_FINAL",
                false => "RDMA2_CONNPROP_MIDDLE",
            },
        )?;
        for property in set.iter() {
            let name = match property.which {
                1 => "Maximum Send Size",
                2 => "Receive Buffer Size",
                3 => "Maximum Segment Size",
                4 => "Maximum Segment Count",
                5 => "Reverse-Direction Support",
                6 => "Host Authentication Message",
                _ => "unknown property",
            };
            let which = property.which;
            match <[u8; 4]>::try_from(property.data).map(u32::from_be_bytes) {
                Ok(value) => writeln!(f, "  {name} ({which}): {value}")?,
                Err(_) => writeln!(f, "  {name} ({which}): {} octets", property.data.len())?,
            }
        }
        Ok(())
    }
}

fn write_before(f: &mut fmt::Formatter<'_>, before: u32) -> fmt::Result {
    match before {
        0 => Ok(()),
        octets => writeln!(
            f,
            "  it ends a message of which {octets} octets came before"
        ),
    }
}

fn write_rejected(f: &mut fmt::Formatter<'_>, rejected: &Rejected) -> fmt::Result {
    write_reason(f, rejected, "header type")?;
    match error_message(rejected, &BOUNDS, 0) {
        Some(message) => writeln!(f, "; a responder answers {}", Named(message.error)),
        None => writeln!(f, "; nobody answers"),
    }
}
