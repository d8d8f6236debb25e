// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a responder tries again where memory, or room to bounce it, is short for a moment: a
//! connection that is lost for that is made again, and all is sent again, which takes more of both.

use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
};
use xdr::Role;

/// Waits, each of which is twice as long as the one before.
const WAITS: u32 = 5;
/// Milliseconds of the first wait.
const FIRST: i64 = 10;

/// Counts how often something may be tried again.
pub(super) struct MemoryRetry {
    left: u32,
}

impl MemoryRetry {
    /// Allows a responder to wait. The senders of a requester wait elsewhere, and handlers must
    /// not.
    #[inline]
    pub(super) fn of(role: Role) -> Self {
        Self {
            left: if role == Role::Responder { WAITS } else { 0 },
        }
    }

    /// Waits for memory, if `error` says that it is short for a moment and there was not waited
    /// often enough; else gives the error back. Sleeps.
    #[cold]
    pub(super) fn wait(&mut self, error: Error) -> Result {
        if self.left == 0 || !matches!(error, ENOMEM | ENOBUFS) {
            return Err(error);
        }
        fsleep(Delta::from_millis(FIRST << (WAITS - self.left)));
        self.left -= 1;
        Ok(())
    }
}
