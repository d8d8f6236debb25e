// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transport properties (the draft, section 5).

use core::iter;

use crate::{
    v2::header::{
        begin,
        RDMA2_CONNPROP_FINAL, //
    },
    wire::Reader,
    DecodeError,
    EncodeError, //
};

// `rdma_which` (the draft, section 5.2). The host authentication message is neither sent nor
// recognised.
const SBSIZ: u32 = 1;
const RBSIZ: u32 = 2;
const RSSIZ: u32 = 3;
const RCSIZ: u32 = 4;
const BRS: u32 = 5;

/// Octets of a Receive buffer, at least: the first message of a connection may have so many (the
/// draft, section 4.3).
const MIN_RECEIVE: u32 = 1024;

/// A transport property, as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property<'a> {
    /// `rdma_which`.
    pub which: u32,
    /// `rdma_data`; without octets it stands for the default.
    pub data: &'a [u8],
}

impl<'a> Property<'a> {
    /// Takes a property. `rdma_data` that is longer than the message is a bad value (the draft,
    /// section 5.1).
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let which = reader.word()?;
        let length = reader.count()?;
        let padded = reader
            .items(length.div_ceil(4), 4)
            .map_err(|_| DecodeError::PropertyValue(which))?;
        let data = padded.get(..length).unwrap_or_default();
        Ok(Self { which, data })
    }

    /// Returns the value of a property that is a number; `None` if it is the default.
    fn number(&self) -> Result<Option<u32>, DecodeError> {
        if self.data.is_empty() {
            return Ok(None);
        }
        let number: Result<[u8; 4], _> = self.data.try_into();
        number
            .map(|octets| Some(u32::from_be_bytes(octets)))
            .map_err(|_| DecodeError::PropertyValue(self.which))
    }
}

/// The properties that a message brings, all of which are well formed if they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertySet<'a> {
    raw: &'a [u8],
}

impl<'a> PropertySet<'a> {
    /// Takes a set.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.word()?;
        let start = *reader;
        // Each takes eight octets at least, so this ends with the message.
        for _ in 0..count {
            Property::read(reader)?;
        }
        let set = Self {
            raw: reader.since(start),
        };
        let mut scratch = Properties::default();
        set.iter().try_for_each(|property| scratch.set(&property))?;
        Ok(set)
    }

    /// Returns the properties, in order.
    pub fn iter(&self) -> impl Iterator<Item = Property<'a>> + Clone + 'a {
        let mut reader = Reader::new(self.raw);
        iter::from_fn(move || Property::read(&mut reader).ok())
    }
}

/// What a peer can process of messages in the reverse direction (the draft, section 5.2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReverseSupport {
    /// No message.
    #[default]
    None,
    /// A message in one Send, without chunks.
    Simple,
    /// Fragments, too.
    Continued,
    /// All that it can process in the forward direction.
    General,
}

/// The properties of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Octets of the longest Send (section 5.2.1).
    pub max_send: u32,
    /// Octets of the smallest Receive buffer, at least 1,024 (section 5.2.2).
    pub min_receive: u32,
    /// Octets of the longest segment, not zero (section 5.2.3).
    pub segment_bytes: u32,
    /// Segments in the header of a Call (section 5.2.4).
    pub segments: u32,
    /// Reverse direction (section 5.2.5).
    pub reverse: ReverseSupport,
}

impl Default for Properties {
    /// Returns what holds of a peer that has not said otherwise (the draft, table 1).
    fn default() -> Self {
        Self {
            max_send: 4096,
            min_receive: 4096,
            segment_bytes: 1 << 20,
            segments: 16,
            reverse: ReverseSupport::None,
        }
    }
}

impl Properties {
    /// Applies what a message brings. Unknown properties are skipped.
    pub fn apply(&mut self, set: &PropertySet<'_>) {
        for property in set.iter() {
            // Decoding has tried each.
            let _ = self.set(&property);
        }
    }

    fn set(&mut self, property: &Property<'_>) -> Result<(), DecodeError> {
        let default = Self::default();
        let bad = DecodeError::PropertyValue(property.which);
        match property.which {
            SBSIZ => self.max_send = property.number()?.unwrap_or(default.max_send),
            RBSIZ => {
                let octets = property.number()?.unwrap_or(default.min_receive);
                if octets < MIN_RECEIVE {
                    return Err(bad);
                }
                self.min_receive = octets;
            }
            RSSIZ => {
                let octets = property.number()?.unwrap_or(default.segment_bytes);
                if octets == 0 {
                    return Err(bad);
                }
                self.segment_bytes = octets;
            }
            RCSIZ => self.segments = property.number()?.unwrap_or(default.segments),
            BRS => {
                self.reverse = match property.number()? {
                    None | Some(0) => ReverseSupport::None,
                    Some(1) => ReverseSupport::Simple,
                    Some(2) => ReverseSupport::Continued,
                    Some(3) => ReverseSupport::General,
                    Some(_) => return Err(bad),
                };
            }
            _ => {}
        }
        Ok(())
    }
}

/// Writes an `RDMA2_CONNPROP_FINAL` to the front of `buffer`. Returns its length in octets.
///
/// An end without support for the reverse direction says nothing of it: that is the default, and a
/// server has none to tell of.
pub fn encode_properties(
    properties: &Properties,
    buffer: &mut [u8],
    xid: u32,
    credits: u32,
) -> Result<usize, EncodeError> {
    let reverse = match properties.reverse {
        ReverseSupport::None => 0,
        ReverseSupport::Simple => 1,
        ReverseSupport::Continued => 2,
        ReverseSupport::General => 3,
    };
    let mut writer = begin(buffer, xid, credits, RDMA2_CONNPROP_FINAL);
    writer.words([if reverse == 0 { 4 } else { 5 }]);
    for (which, value) in [
        (SBSIZ, properties.max_send),
        (RBSIZ, properties.min_receive),
        (RSSIZ, properties.segment_bytes),
        (RCSIZ, properties.segments),
    ] {
        writer.words([which, 4, value]);
    }
    if reverse != 0 {
        writer.words([BRS, 4, reverse]);
    }
    writer.finish()
}
