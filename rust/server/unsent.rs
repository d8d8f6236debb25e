// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Why a Reply is not sent.

use crate::transport::header::Reason;
use kernel::prelude::*;

/// Why a Reply cannot be sent.
pub(super) enum Unsent {
    /// The client asked for more than it offered room for (RFC 8166, section 4.5.3).
    Room(Reason),
    Failed(Error),
}

impl From<Error> for Unsent {
    fn from(error: Error) -> Self {
        match error {
            EMSGSIZE => Self::Room(Reason::ReplyRoom { needed: 0 }),
            _ => Self::Failed(error),
        }
    }
}
