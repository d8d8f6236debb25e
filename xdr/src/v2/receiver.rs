// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The receiving half of a connection of version 2.

use crate::{
    v2::{
        continued::{
            Arrived,
            Begun,
            Longest,
            Stream, //
        },
        decode::{
            Decoder,
            Received,
            Undecoded, //
        },
        header::{
            conveyed,
            Form,
            RDMA2_CONNPROP_FINAL,
            RDMA2_CONNPROP_MIDDLE,
            RDMA2_ERROR,
            RDMA2_GRANT,
            VERSION, //
        },
        properties::PropertySet,
    },
    wire::Reader,
    DecodeError,
    Direction,
    ErrorMessage,
    FixedHeader,
    Limits,
    Message,
    Rejected, //
};

/// Bounds on what is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of the chunks of Calls.
    pub calls: Limits,
    /// Of the chunks of Replies.
    pub replies: Limits,
    /// Octets of the Payload stream of a Call in fragments.
    pub call_octets: u32,
    /// Octets of the Payload stream of a Reply in fragments.
    pub reply_octets: u32,
    /// Fragments of a Call or a Reply, without the last: who keeps the Receive of each until that
    /// comes has no more of them.
    pub fragments: u32,
    /// Octets of all messages together that bring the peer's properties.
    pub property_octets: u32,
}

/// The messages of one peer, in the order of their arrival: what it has begun to send, and not
/// ended.
#[derive(Clone, Debug)]
pub struct Receiver {
    bounds: Bounds,
    begun: Begun,
    /// An RPC message that was refused; the rest of it is discarded (the draft, section 7.1.4).
    refused: Option<Stream>,
    /// The last properties have come (the draft, section 6.3.4).
    has_properties: bool,
}

impl Receiver {
    /// Creates the half of a new connection.
    pub const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            begun: Begun::Nothing,
            refused: None,
            has_properties: false,
        }
    }

    /// Decodes a received message: `bytes` is all that was received and no more.
    ///
    /// A message of fewer than 16 octets, the header prefix, is [`DecodeError::Short`]. Octets
    /// behind a header that no Payload stream follows are ignored.
    pub fn receive<'a>(&mut self, bytes: &'a [u8]) -> Result<Received<'a>, Rejected> {
        Ok(match self.arrive(bytes)? {
            Received::Message { message, before } => Received::Message {
                message: self.bounds.decode(bytes, message)?,
                before,
            },
            Received::Fragment(fragment) => Received::Fragment(fragment),
            Received::Grant(credits) => Received::Grant(credits),
            Received::Properties { set, last } => Received::Properties { set, last },
        })
    }

    /// Receives a message as [`Self::receive`], of which what has chunk lists, or reports an error,
    /// is still to be decoded. In time that does not depend on a list of chunks.
    pub fn arrive<'a>(&mut self, bytes: &'a [u8]) -> Result<Received<'a, Undecoded>, Rejected> {
        let mut reader = Reader::new(bytes);
        let header = FixedHeader::read(&mut reader).map_err(|_| SHORT)?;
        let conveyed = conveyed(header.procedure);
        let received = match conveyed {
            // The value is that of version 1.
            _ if header.procedure == RDMA2_ERROR => Ok(Received::Message {
                message: Undecoded {
                    is_error: true,
                    arrived: None,
                },
                before: 0,
            }),
            _ if header.version != VERSION => Err(DecodeError::Version(header.version)),
            Some((direction, form)) => self.rpc(bytes, &header, reader, direction, form),
            None => self.control(&header, reader),
        };
        received.map_err(|reason| rejected(header, reason))
    }

    /// Returns whether fragments of an RPC message have come, and not its last.
    pub const fn is_in_message(&self) -> bool {
        matches!(self.begun, Begun::Message(..))
    }

    /// Receives a message that conveys no RPC message.
    fn control<'a>(
        &mut self,
        header: &FixedHeader,
        mut reader: Reader<'a>,
    ) -> Result<Received<'a, Undecoded>, DecodeError> {
        let last = match header.procedure {
            RDMA2_GRANT => return Ok(Received::Grant(header.credits)),
            RDMA2_CONNPROP_MIDDLE => false,
            RDMA2_CONNPROP_FINAL => true,
            other => return Err(DecodeError::Procedure(other)),
        };
        let before = match self.begun {
            Begun::Message(..) => return Err(DecodeError::Sequence),
            _ if self.has_properties => return Err(DecodeError::Sequence),
            Begun::Properties(octets) => octets,
            Begun::Nothing => 0,
        };
        let octets = FixedHeader::SIZE.saturating_add(reader.rest().len());
        let octets = before.saturating_add(u32::try_from(octets).unwrap_or(u32::MAX));
        // Whatever is wrong with the values, this is where the peer is in the sequence.
        self.refused = None;
        self.has_properties = last;
        self.begun = match last {
            true => Begun::Nothing,
            false => Begun::Properties(octets),
        };
        if octets > self.bounds.property_octets {
            return Err(DecodeError::PropertyOctets);
        }
        let set = PropertySet::read(&mut reader)?;
        Ok(Received::Properties { set, last })
    }

    /// Receives an RPC message, or a part of one.
    fn rpc<'a>(
        &mut self,
        bytes: &'a [u8],
        header: &FixedHeader,
        reader: Reader<'a>,
        direction: Direction,
        form: Form,
    ) -> Result<Received<'a, Undecoded>, DecodeError> {
        let stream = Stream {
            xid: header.xid,
            direction,
        };
        if self.is_rest(stream, form) {
            return Err(DecodeError::Discarded);
        }
        let arrived = match self.begun {
            Begun::Nothing => None,
            Begun::Message(same, arrived) if same == stream && form != Form::External => {
                Some(arrived)
            }
            Begun::Message(..) | Begun::Properties(_) => {
                self.refuse(stream, form);
                return Err(DecodeError::Sequence);
            }
        };
        // Whatever comes of this one: what is wrong with it ends the message.
        self.begun = Begun::Nothing;
        if form != Form::Middle {
            return Ok(Received::Message {
                message: Undecoded {
                    is_error: false,
                    arrived,
                },
                before: arrived.map_or(0, |arrived| arrived.octets()),
            });
        }
        let decoder = self.bounds.decoder(bytes, header, direction, arrived);
        let decoded = decoder.fragment(reader);
        let (fragment, arrived) = decoded.inspect_err(|_| self.refuse(stream, form))?;
        self.begun = Begun::Message(stream, arrived);
        Ok(Received::Fragment(fragment))
    }

    /// Notes that a message is refused. If it is a fragment others are to come.
    fn refuse(&mut self, stream: Stream, form: Form) {
        if form == Form::Middle {
            self.refused = Some(stream);
        }
    }

    /// Returns whether a message is a fragment of one that was refused. Its `INLINE` ends that, and
    /// so does any other RPC message where none is open.
    fn is_rest(&mut self, stream: Stream, form: Form) -> bool {
        let is_rest = self.refused == Some(stream) && form != Form::External;
        let is_end = match is_rest {
            true => form == Form::Inline,
            false => self.begun == Begun::Nothing,
        };
        if is_end {
            self.refused = None;
        }
        is_rest
    }
}

/// What is known of a message that has no whole prefix.
const SHORT: Rejected = Rejected {
    header: None,
    direction: None,
    reason: DecodeError::Short,
};

/// Returns what is known of a message that [`Receiver::arrive`] has refused for that reason.
pub fn rejected_on_arrival(message: &[u8], reason: DecodeError) -> Rejected {
    FixedHeader::peek(message).map_or(SHORT, |header| rejected(header, reason))
}

fn rejected(header: FixedHeader, reason: DecodeError) -> Rejected {
    Rejected {
        header: Some(header),
        direction: conveyed(header.procedure).map(|(direction, _)| direction),
        reason,
    }
}

impl Bounds {
    /// Decodes a message that has arrived where it may, as [`Receiver::arrive`] said, or before the
    /// version of the connection was known.
    pub fn decode<'a>(
        &self,
        bytes: &'a [u8],
        undecoded: Undecoded,
    ) -> Result<Message<'a>, Rejected> {
        let mut reader = Reader::new(bytes);
        let header = FixedHeader::read(&mut reader).map_err(|_| SHORT)?;
        // One of a version that nobody knows may have come before this one was agreed on.
        if header.version != VERSION && header.procedure != RDMA2_ERROR {
            return Err(rejected(header, DecodeError::Version(header.version)));
        }
        let decoded = match conveyed(header.procedure) {
            Some((direction, form)) => self
                .decoder(bytes, &header, direction, undecoded.arrived)
                .message(reader, form == Form::External),
            // An error is never answered with an error.
            None => ErrorMessage::decode_2(&header, &mut reader).map(Message::Error),
        };
        decoded.map_err(|reason| rejected(header, reason))
    }

    /// Returns the decoder of an RPC message, or of a part of one behind what `arrived` before.
    fn decoder<'a, 'l>(
        &'l self,
        bytes: &'a [u8],
        header: &'l FixedHeader,
        direction: Direction,
        arrived: Option<Arrived>,
    ) -> Decoder<'a, 'l> {
        let (limits, octets) = match direction {
            Direction::Call => (&self.calls, self.call_octets),
            Direction::Reply => (&self.replies, self.reply_octets),
        };
        Decoder {
            bytes,
            header,
            direction,
            limits,
            longest: Longest {
                octets,
                fragments: self.fragments,
            },
            arrived,
        }
    }
}
