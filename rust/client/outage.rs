// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The time without a connection to a server, as the log tells of it.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/outage.rs"]
mod tests;

use crate::{
    client::{
        call::ConnectionId,
        losses::Losses, //
    },
    kapi::sys::time::{
        self,
        HZ, //
    },
};
use core::fmt;
use kernel::{
    prelude::*,
    time::Jiffies, //
};

/// The time without a connection of one transport. An administrator is told once of each why there
/// can be none, and when there is one again.
#[derive(Clone, Copy)]
pub(crate) struct Outage {
    /// The time since when there is no connection, although there was one or one was tried.
    since: Option<Jiffies>,
    /// Why there is none, once that is known.
    why: Option<Why>,
    /// Whether it was tried to make one since.
    tried: bool,
    /// Whether the log has it that this failed.
    told: bool,
    /// The number of the first connection whose loss, or end of the outage, would be news.
    next: u64,
    losses: Losses,
}

impl Outage {
    /// Creates the outage of a transport, which has not begun.
    pub(crate) fn new() -> Self {
        Self {
            since: None,
            why: None,
            tried: false,
            told: false,
            next: 0,
            losses: Losses::new(),
        }
    }

    /// Notes that a connection is lost, for a reason in words.
    pub(super) fn lost(&mut self, connection: ConnectionId, why: &'static str) {
        self.losses.count(why);
        if connection.0 >= self.next {
            self.next = connection.0 + 1;
            self.tried |= self.since.is_some();
            self.begin(Why::Lost(why));
        }
    }

    /// Notes why there can be no connection. Returns whether that is to be said: once of each
    /// outage.
    pub(super) fn is_news(&mut self, why: Error) -> bool {
        self.begin(Why::Unmade(Unmade(why)));
        self.tried = true;
        !core::mem::replace(&mut self.told, true)
    }

    /// Ends the outage with a connection that is up, unless that is lost again. Returns its length,
    /// if there was one.
    pub(super) fn end(&mut self, connection: ConnectionId) -> Option<Jiffies> {
        if connection.0 < self.next {
            return None;
        }
        self.next = connection.0;
        self.why = None;
        self.tried = false;
        self.told = false;
        self.since.take().map(time::since)
    }

    fn begin(&mut self, why: Why) {
        self.since.get_or_insert_with(time::jiffies);
        self.why = Some(why);
    }

    /// Returns whether there is no connection, although there was one or one was tried.
    pub(super) fn is_under_way(&self) -> bool {
        self.since.is_some()
    }

    /// Returns the losses so far.
    pub(super) fn losses(&self) -> &Losses {
        &self.losses
    }
}

/// Writes why there is no connection; and for how long, if one was tried: otherwise nobody wants
/// it.
impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.since.filter(|_| self.tried) {
            Some(since) => write!(f, "no connection for {} s", time::since(since) / HZ)?,
            None => f.write_str("not connected")?,
        }
        match &self.why {
            Some(Why::Lost(why)) => write!(f, ", {why}"),
            Some(Why::Unmade(why)) => write!(f, ", {why}"),
            None => Ok(()),
        }
    }
}

/// Why there is no connection.
#[derive(Clone, Copy)]
enum Why {
    /// It was lost, for a reason in words.
    Lost(&'static str),
    Unmade(Unmade),
}

/// The reason for which a connection cannot be made, in the words of the log.
#[derive(Clone, Copy)]
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
        } else if error == EOPNOTSUPP {
            "the device lacks what is needed"
        } else if error == ENOMEM {
            "memory is short"
        } else {
            return write!(f, "{error:?}");
        })
    }
}
