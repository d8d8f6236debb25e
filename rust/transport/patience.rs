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

/// How often it is waited, twice as long each time.
const WAITS: u32 = 5;
/// For how many milliseconds at first.
const FIRST: i64 = 10;

/// How often somebody will still wait.
pub(super) struct Patience {
    left: u32,
}

impl Patience {
    /// A requester has none: its senders wait elsewhere, and handlers must not.
    #[inline]
    pub(super) fn of(role: Role) -> Self {
        Self {
            left: if role == Role::Responder { WAITS } else { 0 },
        }
    }

    /// Waits, if `error` says that something is short for a moment, and it was not waited often
    /// enough; else it is given back. Sleeps.
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
