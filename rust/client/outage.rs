// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The time without a connection to a server, as the log tells of it.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/outage.rs"]
mod tests;

use crate::{
    client::call::ConnectionId,
    kapi::sys::time, //
};
use core::fmt;
use kernel::{
    prelude::*,
    time::Jiffies, //
};

/// The time without a connection of one transport. An administrator is told once of each why there
/// can be none, and when there is one again.
pub(crate) struct Outage {
    /// The time since when there is no connection that is wanted.
    since: Option<Jiffies>,
    /// Whether it was said why.
    told: bool,
    /// The number of the first connection whose loss, or end of the outage, would be news.
    next: u64,
}

impl Outage {
    /// Creates the outage of a transport, which has not begun.
    pub(crate) fn new() -> Self {
        Self {
            since: None,
            told: false,
            next: 0,
        }
    }

    /// Notes that a connection is lost.
    pub(super) fn lost(&mut self, connection: ConnectionId) {
        if connection.0 >= self.next {
            self.next = connection.0 + 1;
            self.begin();
        }
    }

    /// Returns whether it is to be said why there can be no connection: once of each outage.
    pub(super) fn is_news(&mut self) -> bool {
        self.begin();
        !core::mem::replace(&mut self.told, true)
    }

    /// Ends the outage with a connection that is up, unless that is lost again. Returns its length,
    /// if there was one.
    pub(super) fn end(&mut self, connection: ConnectionId) -> Option<Jiffies> {
        if connection.0 < self.next {
            return None;
        }
        self.next = connection.0;
        self.told = false;
        self.since.take().map(time::since)
    }

    fn begin(&mut self) {
        self.since.get_or_insert_with(time::jiffies);
    }
}

/// The reason for which a connection cannot be made, in the words of the log.
pub(super) struct Unmade(pub(super) Error);

impl fmt::Display for Unmade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(error) = *self;
        f.write_str(if error == EPROTO {
            "no RDMA device leads there"
        } else if error == ENETUNREACH {
            "there is no route"
        } else if error == EHOSTUNREACH {
            "there is no answer"
        } else if error == ECONNREFUSED {
            "it is refused"
        } else if error == ENODEV {
            "the device has gone"
        } else if error == ENOMEM {
            "memory is short"
        } else {
            return write!(f, "{error:?}");
        })
    }
}
