// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Finding out that a server has died without a word (RFC 8267, section 6.7.2).
//!
//! Where nothing was heard of the server for a while, it is sent a NULL Call, for which a credit is
//! kept. If it is dead the adapter finds out when that is not acknowledged; on iWARP, where that may
//! take very long, or when the server is alive and executes nothing any more, there is a limit.

use crate::{
    client::{
        alarm::Reason,
        connection::Connection,
        marshal,
        mount::Shared, //
    },
    kapi::sys::{
        sysctl,
        time::{
            self,
            HZ, //
        },
        workqueue::{
            Timer,
            WorkItem, //
        },
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::Jiffies, //
};

/// How long the server may take to answer a probe: as long as RPCs wait unless the mount says
/// otherwise.
const PATIENCE: Jiffies = 60 * HZ;
/// The longest time from one look to the next, so that a tunable takes effect soon.
const LONGEST_LOOK: Jiffies = 30 * HZ;

/// What was heard of the server on one connection. All but the first is the work item's alone.
pub(crate) struct Watch {
    heard: Atomic<bool>,
    /// When it was last looked at.
    looked: Atomic<Jiffies>,
    /// For how long nothing was heard.
    silent: Atomic<Jiffies>,
    /// How long ago the server was asked, plus one; 0 if it was not, or was heard since.
    asked: Atomic<Jiffies>,
    /// Program and version of the first Call on this connection; 0 before that. Those of the last would
    /// be no better: all are programs of one server, and NULL of any is answered.
    program: Atomic<u64>,
}

impl Watch {
    /// For a new connection.
    pub(super) fn new() -> Self {
        Self {
            // A new connection is proof enough.
            heard: Atomic::new(true),
            looked: Atomic::new(time::jiffies()),
            silent: Atomic::new(0),
            asked: Atomic::new(0),
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

    /// So much time has passed since this was last called: what is to be done. A server that was
    /// silent for `interval` is to be asked; where there is none, never.
    fn turn(&self, passed: Jiffies, interval: Option<Jiffies>) -> Turn {
        if self.heard.xchg(false, Relaxed) {
            self.silent.store(0, Relaxed);
            self.asked.store(0, Relaxed);
            return Turn::Wait;
        }
        let silent = self.silent.load(Relaxed).saturating_add(passed);
        self.silent.store(silent, Relaxed);
        let asked = self.asked.load(Relaxed);
        if asked != 0 {
            let asked = asked.saturating_add(passed);
            self.asked.store(asked, Relaxed);
            if asked > PATIENCE {
                Turn::GiveUp
            } else {
                Turn::Wait
            }
        } else if interval.is_some_and(|interval| silent >= interval) {
            Turn::Ask
        } else {
            Turn::Wait
        }
    }

    /// The server was asked, now or before others were answered.
    fn asked(&self) {
        self.asked.store(1, Relaxed);
    }
}

/// What is to be done about a server.
#[derive(PartialEq, Eq, Debug)]
enum Turn {
    /// Nothing: it is there, or has some time left.
    Wait,
    /// Nothing was heard of it.
    Ask,
    /// It did not answer.
    GiveUp,
}

/// The work item that watches the server, and ends a connection that RPCs with Replies wait for.
pub(crate) struct KeepAlive(pub(super) Arc<Shared>);

impl WorkItem for KeepAlive {
    fn run(&self, timer: Timer<'_>) {
        let _scope = self.0.memory_scope();
        // The next connection begins it again.
        let Some(connection) = self.0.connection() else {
            return;
        };
        if connection.handler().has_put_off() {
            // Not only by the RPC layer, which an RPC that waits for this may keep from it. The alarm is
            // raised, and that has the transport closed.
            connection.shutdown();
            return;
        }
        watch(&connection);
        timer.queue(KeepAlive::look());
    }
}

impl KeepAlive {
    /// When to look next.
    pub(super) fn look() -> Jiffies {
        interval().map_or(LONGEST_LOOK, |interval| interval.min(LONGEST_LOOK))
    }
}

/// After how long a silence the server is asked; none if never.
fn interval() -> Option<Jiffies> {
    let seconds = sysctl::keepalive_time() as Jiffies;
    (seconds != 0).then_some(seconds * HZ)
}

/// Looks after one connection.
fn watch(connection: &Connection) {
    let requester = connection.handler();
    let watch = &requester.watch;
    let now = time::jiffies();
    let passed = now.wrapping_sub(watch.looked.xchg(now, Relaxed));
    match watch.turn(passed, interval()) {
        Turn::Wait => (),
        // Otherwise later: a Call has the only credit, and a timeout of its own.
        Turn::Ask if ask(connection).is_ok() => watch.asked(),
        Turn::Ask => (),
        Turn::GiveUp => requester.alarm.raise(Reason::Silent),
    }
}

/// Asks the server whether it is there. May sleep.
///
/// `EAGAIN` when that is not possible now.
fn ask(connection: &Connection) -> Result {
    let requester = connection.handler();
    // Something was heard since the last probe was sent: the server has dropped that, and may be alive.
    let mut credits = requester.credits.lock();
    let (again, changed) = (credits.drop_probe(), credits.changed());
    drop(credits);
    if let Some(calls) = changed {
        requester.shared.xprt.set_window(calls);
    }
    if !again {
        return Ok(());
    }
    marshal::send_probe(connection)
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/keep_alive.rs"]
mod tests;
