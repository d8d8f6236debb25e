// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits (RFC 8166, section 3.3.1): what an end may send, and what it lets its peer send. Each
//! end does both, since Calls go in both directions (RFC 8167, section 4.1).

pub(crate) mod credits;
pub(crate) mod grant;

use self::{
    credits::Credits,
    grant::Grant, //
};
use xdr::Direction;

/// The credits of one end of a connection. Under the lock of the send queue, so that messages carry
/// them in the order of the posts.
pub(crate) struct Flow {
    /// The credits for the Calls of this end.
    pub(crate) credits: Credits,
    /// The grant for the Calls of the peer.
    pub(crate) grant: Grant,
}

impl Flow {
    /// Returns the credit word of a message that is about to be posted: credits requested in a
    /// Call, and granted in a Reply (RFC 8166, section 4.2.3).
    pub(super) fn word(&mut self, direction: Direction) -> u32 {
        match direction {
            Direction::Call => self.credits.requested(),
            Direction::Reply => self.grant.advertise(),
        }
    }
}
