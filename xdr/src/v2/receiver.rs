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
            Received, //
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
        let mut reader = Reader::new(bytes);
        let header = FixedHeader::read(&mut reader).map_err(|_| Rejected {
            header: None,
            direction: None,
            reason: DecodeError::Short,
        })?;
        let conveyed = conveyed(header.procedure);
        let received = match conveyed {
            // The value is that of version 1, and an error is never answered with an error.
            _ if header.procedure == RDMA2_ERROR => {
                ErrorMessage::decode_2(&header, &mut reader).map(Received::error)
            }
            _ if header.version != VERSION => Err(DecodeError::Version(header.version)),
            Some((direction, form)) => self.rpc(bytes, &header, reader, direction, form),
            None => self.control(&header, reader),
        };
        received.map_err(|reason| Rejected {
            header: Some(header),
            direction: conveyed.map(|(direction, _)| direction),
            reason,
        })
    }

    /// Receives a message that conveys no RPC message.
    fn control<'a>(
        &mut self,
        header: &FixedHeader,
        mut reader: Reader<'a>,
    ) -> Result<Received<'a>, DecodeError> {
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
    ) -> Result<Received<'a>, DecodeError> {
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
        let decoder = self.decoder(bytes, header, direction, arrived);
        let decoded = match form {
            Form::Middle => decoder.fragment(reader).map(|(fragment, arrived)| {
                (
                    Received::Fragment(fragment),
                    Begun::Message(stream, arrived),
                )
            }),
            Form::Inline | Form::External => {
                let received = decoder.message(reader, form == Form::External);
                received.map(|received| (received, Begun::Nothing))
            }
        };
        match decoded {
            Ok((received, begun)) => {
                self.begun = begun;
                Ok(received)
            }
            Err(reason) => {
                self.begun = Begun::Nothing;
                self.refuse(stream, form);
                Err(reason)
            }
        }
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

    /// Returns the decoder of an RPC message, or of a part of one behind what `arrived` before.
    fn decoder<'a, 'l>(
        &'l self,
        bytes: &'a [u8],
        header: &'l FixedHeader,
        direction: Direction,
        arrived: Option<Arrived>,
    ) -> Decoder<'a, 'l> {
        let bounds = &self.bounds;
        let (limits, octets) = match direction {
            Direction::Call => (&bounds.calls, bounds.call_octets),
            Direction::Reply => (&bounds.replies, bounds.reply_octets),
        };
        Decoder {
            bytes,
            header,
            direction,
            limits,
            longest: Longest {
                octets,
                fragments: bounds.fragments,
            },
            arrived,
        }
    }
}
