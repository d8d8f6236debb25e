// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Values of the header prefix, and the header types.

use crate::{
    wire::Writer,
    Direction,
    FixedHeader, //
};

/// `rdma_vers` (the draft, section 4.3).
pub const VERSION: u32 = 2;

/// `rdma_htype`: an error code follows (the draft, section 6.3.1).
pub(crate) const RDMA2_ERROR: u32 = 4;
/// `rdma_htype`: nothing follows (the draft, section 6.3.2).
pub(crate) const RDMA2_GRANT: u32 = 5;
/// `rdma_htype`: transport properties follow, and come with the next message, too (the draft,
/// section 6.3.3).
pub(crate) const RDMA2_CONNPROP_MIDDLE: u32 = 6;
/// `rdma_htype`: the last transport properties follow (the draft, section 6.3.4).
pub(crate) const RDMA2_CONNPROP_FINAL: u32 = 7;
/// `rdma_htype`: chunk lists follow, and the Call chunk holds the Call (the draft, section 6.3.5).
pub(crate) const RDMA2_CALL_EXTERNAL: u32 = 8;
/// `rdma_htype`: a fragment of a Call follows that is not its last (the draft, section 6.3.6).
pub(crate) const RDMA2_CALL_MIDDLE: u32 = 9;
/// `rdma_htype`: chunk lists and a Call, or its last fragment, follow (the draft, section 6.3.7).
pub(crate) const RDMA2_CALL_INLINE: u32 = 10;
/// `rdma_htype`: chunk lists follow, and the Reply chunk holds the Reply (the draft, section
/// 6.3.8).
pub(crate) const RDMA2_REPLY_EXTERNAL: u32 = 11;
/// `rdma_htype`: a fragment of a Reply follows that is not its last (the draft, section 6.3.9).
pub(crate) const RDMA2_REPLY_MIDDLE: u32 = 12;
/// `rdma_htype`: a Write list and a Reply, or its last fragment, follow (the draft, section
/// 6.3.10).
pub(crate) const RDMA2_REPLY_INLINE: u32 = 13;

/// Octets of the header of a fragment that is not the last: the prefix and `rdma_remaining`.
pub const FRAGMENT_HEADER: usize = FixedHeader::SIZE + 4;

/// Way in which a message conveys an RPC message, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// In the Call chunk or the Reply chunk.
    External,
    /// Behind the header, and more of it follows in the next message.
    Middle,
    /// Behind the header, the whole or the end.
    Inline,
}

/// Returns the direction and the form of an RPC message that a header of this type conveys; `None`
/// of other types.
pub(super) const fn conveyed(header_type: u32) -> Option<(Direction, Form)> {
    Some(match header_type {
        RDMA2_CALL_EXTERNAL => (Direction::Call, Form::External),
        RDMA2_CALL_MIDDLE => (Direction::Call, Form::Middle),
        RDMA2_CALL_INLINE => (Direction::Call, Form::Inline),
        RDMA2_REPLY_EXTERNAL => (Direction::Reply, Form::External),
        RDMA2_REPLY_MIDDLE => (Direction::Reply, Form::Middle),
        RDMA2_REPLY_INLINE => (Direction::Reply, Form::Inline),
        _ => return None,
    })
}

/// Begins a message with its prefix.
pub(super) fn begin(buffer: &mut [u8], xid: u32, credits: u32, header_type: u32) -> Writer<'_> {
    let mut writer = Writer::new(buffer);
    let prefix = FixedHeader {
        xid,
        version: VERSION,
        credits,
        procedure: header_type,
    };
    prefix.write(&mut writer);
    writer
}
