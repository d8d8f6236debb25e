// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The silence of a server, and the actions that follow from it.

use crate::kapi::sys::time::{
    self,
    HZ, //
};
use core::fmt;
use kernel::{
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::Jiffies, //
};

/// The longest time to the answer of a probe: the timeout of RPCs unless the mount sets another.
const PROBE_TIMEOUT: Jiffies = 60 * HZ;
/// The same while a Reply is overdue: its RPC has waited for a timeout already.
const DOUBT_TIMEOUT: Jiffies = 10 * HZ;

/// The record of a server's silence on one connection. Fields without another writer below are
/// written by the work item alone.
pub(crate) struct KeepAliveState {
    /// A message came; set by completion handlers.
    heard: Atomic<bool>,
    /// A Reply is overdue, and no message came since; set by RPC tasks.
    doubted: Atomic<bool>,
    /// The time of the last check.
    looked: Atomic<Jiffies>,
    /// The length of the silence.
    silent: Atomic<Jiffies>,
    /// The time since the server was probed, plus one; 0 if it was not, or a message came since.
    asked: Atomic<Jiffies>,
    /// There were no RPCs at the last check; cleared by senders.
    idle: Atomic<bool>,
}

impl KeepAliveState {
    /// Creates the record of a new connection.
    pub(super) fn new() -> Self {
        Self {
            // The handshake has shown that the server is alive.
            heard: Atomic::new(true),
            doubted: Atomic::new(false),
            looked: Atomic::new(time::jiffies()),
            silent: Atomic::new(0),
            asked: Atomic::new(0),
            idle: Atomic::new(false),
        }
    }

    /// Notes that a message came. Any context.
    pub(super) fn heard(&self) {
        // Written only if it changes, since other processors read the same cache line.
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// Notes that a Reply is overdue. Any context.
    pub(super) fn doubt(&self) {
        self.doubted.store(true, Relaxed);
    }

    /// Returns whether a Reply is overdue and no message came since.
    pub(super) fn is_doubted(&self) -> bool {
        self.doubted.load(Relaxed)
    }

    /// Notes that there are no RPCs, or were none just now: [`Self::was_idle`] tells the next
    /// sender.
    pub(super) fn set_idle(&self, idle: bool) {
        self.idle.store(idle, Relaxed);
    }

    /// Returns whether there were no RPCs at the last check; true at most once for each check.
    #[inline]
    pub(super) fn was_idle(&self) -> bool {
        self.idle.load(Relaxed) && self.idle.xchg(false, Relaxed)
    }

    /// Returns the time since the last call of this function. For the work item.
    pub(super) fn elapsed(&self) -> Jiffies {
        let now = time::jiffies();
        now.wrapping_sub(self.looked.xchg(now, Relaxed))
    }

    /// Returns the next action, `passed` jiffies after the last call. A server that was silent for
    /// `interval`, or is in doubt, is probed.
    pub(super) fn next_action(&self, passed: Jiffies, interval: Option<Jiffies>) -> ProbeAction {
        if self.heard.xchg(false, Relaxed) {
            self.silent.store(0, Relaxed);
            self.asked.store(0, Relaxed);
            self.doubted.store(false, Relaxed);
            return ProbeAction::Wait;
        }
        let doubted = self.is_doubted();
        let silent = self.silent.load(Relaxed).saturating_add(passed);
        self.silent.store(silent, Relaxed);
        let asked = self.asked.load(Relaxed);
        if asked != 0 {
            let asked = asked.saturating_add(passed);
            self.asked.store(asked, Relaxed);
            let most = if doubted {
                DOUBT_TIMEOUT
            } else {
                PROBE_TIMEOUT
            };
            if asked > most {
                ProbeAction::GiveUp
            } else {
                ProbeAction::Wait
            }
        } else if doubted || interval.is_some_and(|interval| silent >= interval) {
            ProbeAction::Ask
        } else {
            ProbeAction::Wait
        }
    }

    /// Notes that the server was probed, now or before other Calls were answered.
    pub(super) fn asked(&self) {
        self.asked.store(1, Relaxed);
    }
}

/// Writes how long the server was silent at the last check.
impl fmt::Display for KeepAliveState {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let probed = match self.asked.load(Relaxed) {
            0 => "",
            _ => ", probed",
        };
        let silent = self.silent.load(Relaxed) / HZ;
        write!(to, "silent for {silent} s{probed}")
    }
}

/// The action that a server's silence calls for.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum ProbeAction {
    /// None: the server is alive, or has some time left.
    Wait,
    /// A probe: no message came.
    Ask,
    /// The end of the connection: the probe was not answered.
    GiveUp,
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/keep_alive_state.rs"]
mod tests;
