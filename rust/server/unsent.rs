// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Why a Reply is not sent.

use crate::transport::header::Reason;
use kernel::prelude::*;

/// Why a Reply cannot be sent.
pub(super) enum Unsent {
    /// The client is told the reason (RFC 8166, section 4.5.3).
    Refused(Reason),
    Failed(Error),
}

impl From<Error> for Unsent {
    fn from(error: Error) -> Self {
        match error {
            EMSGSIZE => Self::Refused(Reason::Chunks),
            _ => Self::Failed(error),
        }
    }
}
