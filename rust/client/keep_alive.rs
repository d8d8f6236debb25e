// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Finding out that a server has died without a word (RFC 8267, section 6.7.2).
//!
//! Where nothing was heard of the server for a while, it is sent a NULL Call, for which a credit is
//! kept. If it is dead the adapter finds out when that is not acknowledged; on iWARP, where that may
//! take very long, or when the server is alive and executes nothing any more, there is a limit.

use super::{
    alarm::Reason,
    connection::Connection,
    marshal,
    mount::Shared, //
};
use crate::kapi::sys::{
    sysctl,
    time::HZ,
    workqueue::{
        Timer,
        WorkItem, //
    }, //
};
use kernel::{
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::Jiffies,
};

/// How long the server may take to answer a probe: as long as any RPC.
const PATIENCE: Jiffies = 60 * HZ;
/// How often to look whether it has been switched on, while it is off.
const OFF: Jiffies = 30 * HZ;

/// What was heard of the server on one connection.
pub(crate) struct Watch {
    heard: Atomic<bool>,
    /// Nothing was heard for an interval, and the server was asked.
    suspect: Atomic<bool>,
    /// The XID of the unanswered probe, plus 2^32; 0 if there is none.
    probe: Atomic<u64>,
    /// Program and version of the Calls on this connection; 0 before the first.
    program: Atomic<u64>,
}

impl Watch {
    /// For a new connection.
    pub(super) fn new() -> Self {
        Self {
            // A new connection is proof enough.
            heard: Atomic::new(true),
            suspect: Atomic::new(false),
            probe: Atomic::new(0),
            program: Atomic::new(0),
        }
    }

    /// A message came. Any context.
    pub(super) fn heard(&self) {
        // Not written each time, since other processors look at what is beside it.
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// A Call of a program is sent.
    pub(super) fn sending(&self, of: impl FnOnce() -> (u32, u32)) {
        if self.program.load(Relaxed) == 0 {
            let (program, version) = of();
            let both = u64::from(program) << 32 | u64::from(version);
            self.program.store(both, Relaxed);
        }
    }

    /// Program and version of the Calls on this connection, if there were any.
    pub(super) fn program(&self) -> Option<(u32, u32)> {
        let both = self.program.load(Relaxed);
        (both != 0).then_some(((both >> 32) as u32, both as u32))
    }

    /// A probe of this XID is about to be sent, or was not sent after all.
    pub(super) fn set_probe(&self, xid: Option<u32>) {
        let probe = xid.map_or(0, |xid| 1 << 32 | u64::from(xid));
        self.probe.store(probe, Relaxed);
    }

    /// Whether this is the answer to the probe, which is then over.
    pub(super) fn answered(&self, xid: u32) -> bool {
        let ours = self.probe.load(Relaxed) == (1 << 32 | u64::from(xid));
        if ours {
            self.set_probe(None);
        }
        ours
    }

    /// An interval has passed: what is to be done.
    fn turn(&self) -> Turn {
        let heard = self.heard.xchg(false, Relaxed);
        if heard {
            self.suspect.store(false, Relaxed);
            Turn::Wait
        } else if self.suspect.load(Relaxed) {
            Turn::GiveUp
        } else if self.probe.load(Relaxed) != 0 {
            // Others were answered meanwhile, but nobody is any more.
            self.suspect.store(true, Relaxed);
            Turn::Asked
        } else {
            Turn::Ask
        }
    }

    /// The server was asked.
    fn asked(&self) {
        self.suspect.store(true, Relaxed);
    }
}

/// What is to be done about a server.
#[derive(PartialEq, Eq, Debug)]
enum Turn {
    /// It is there.
    Wait,
    /// Nothing was heard of it.
    Ask,
    /// It was asked before.
    Asked,
    /// It did not answer.
    GiveUp,
}

/// The work item that watches the server.
pub(crate) struct KeepAlive(pub(super) Arc<Shared>);

impl WorkItem for KeepAlive {
    fn run(&self, timer: Timer<'_>) {
        let _scope = self.0.memory_scope();
        // The next connection begins it again.
        let Some(connection) = self.0.connection() else {
            return;
        };
        let next = match interval() {
            Some(interval) => watch(&connection, interval),
            None => OFF,
        };
        timer.queue(next);
    }
}

impl KeepAlive {
    /// When to look for the first time after a connection has come up.
    pub(super) fn first() -> Jiffies {
        interval().unwrap_or(OFF)
    }
}

/// After how long a silence the server is asked; none if never.
fn interval() -> Option<Jiffies> {
    let seconds = sysctl::keepalive_time() as Jiffies;
    (seconds != 0).then_some(seconds * HZ)
}

/// Looks after one connection. Returns when to do so again.
fn watch(connection: &Connection, interval: Jiffies) -> Jiffies {
    let requester = connection.handler();
    match requester.watch.turn() {
        Turn::Wait => interval,
        Turn::Asked => PATIENCE,
        Turn::Ask if marshal::send_probe(connection).is_ok() => {
            requester.watch.asked();
            PATIENCE
        }
        // Not now: a Call has the only credit, and a timeout of its own.
        Turn::Ask => interval,
        Turn::GiveUp => {
            requester.alarm.raise(Reason::Silent);
            interval
        }
    }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/keep_alive.rs"]
mod tests;
