// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Values of the fixed fields.

use crate::FixedHeader;

/// `rdma_vers` (RFC 8166, section 4.2.2).
pub const VERSION: u32 = 1;

/// `rdma_proc`: chunk lists and a Payload stream follow (RFC 8166, section 4.2.4).
pub(crate) const RDMA_MSG: u32 = 0;
/// `rdma_proc`: chunk lists follow, and one of the chunks holds the Payload stream (RFC 8166,
/// section 4.2.4).
pub const RDMA_NOMSG: u32 = 1;
/// `rdma_proc`: reserved, never sent (RFC 8166, section 4.6.1).
pub(crate) const RDMA_MSGP: u32 = 2;
/// `rdma_proc`: reserved (RFC 8166, section 4.6.2), sent between peers alone that pull Replies.
pub(crate) const RDMA_DONE: u32 = 3;
/// `rdma_proc`: an error code follows (RFC 8166, section 4.2.4); the value is fixed for all
/// versions.
pub(crate) const RDMA_ERROR: u32 = 4;

/// Octets of the smallest header that has chunk lists: the fixed fields and three words that say
/// "not present" (RFC 8166, sections 4.5 and 4.7).
pub const MIN_HEADER: usize = 28;

/// Returns the fixed fields of a message of this version.
pub(super) const fn fixed(xid: u32, credits: u32, procedure: u32) -> FixedHeader {
    FixedHeader {
        xid,
        version: VERSION,
        credits,
        procedure,
    }
}
