// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What was heard of the server, and what is to be done when that is nothing.

use crate::kapi::sys::time::{
    self,
    HZ, //
};
use kernel::{
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::Jiffies, //
};

/// How long the server may take to answer a probe: as long as RPCs wait unless the mount says
/// otherwise.
const PROBE_TIMEOUT: Jiffies = 60 * HZ;
/// The same where a Reply is overdue: its RPC has waited for so long already.
const DOUBT_TIMEOUT: Jiffies = 10 * HZ;

/// What was heard of the server on one connection. What no other context is said to write is the
/// work item's alone.
pub(crate) struct KeepAliveState {
    /// A message came; written by completion handlers.
    heard: Atomic<bool>,
    /// A Reply is overdue, and nothing was heard since; written by RPC tasks.
    doubted: Atomic<bool>,
    /// When it was last looked at.
    looked: Atomic<Jiffies>,
    /// For how long nothing was heard.
    silent: Atomic<Jiffies>,
    /// How long ago the server was asked, plus one; 0 if it was not, or was heard since.
    asked: Atomic<Jiffies>,
    /// There were no RPCs at the last look; written by senders.
    idle: Atomic<bool>,
}

impl KeepAliveState {
    /// For a new connection.
    pub(super) fn new() -> Self {
        Self {
            // A new connection is proof enough.
            heard: Atomic::new(true),
            doubted: Atomic::new(false),
            looked: Atomic::new(time::jiffies()),
            silent: Atomic::new(0),
            asked: Atomic::new(0),
            idle: Atomic::new(false),
        }
    }

    /// A message came. Any context.
    pub(super) fn heard(&self) {
        // Not written each time, since other processors look at what is beside it.
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// A Reply is overdue. Any context.
    pub(super) fn doubt(&self) {
        self.doubted.store(true, Relaxed);
    }

    /// Whether one is, and nothing was heard of the server since.
    pub(super) fn is_doubted(&self) -> bool {
        self.doubted.load(Relaxed)
    }

    /// There are no RPCs, or were none a moment ago: [`Self::was_idle`] tells who sends the next.
    pub(super) fn set_idle(&self, idle: bool) {
        self.idle.store(idle, Relaxed);
    }

    /// Whether there were no RPCs at the last look; this is not asked again before the next one.
    #[inline]
    pub(super) fn was_idle(&self) -> bool {
        self.idle.load(Relaxed) && self.idle.xchg(false, Relaxed)
    }

    /// The time since this was last called. For the work item.
    pub(super) fn elapsed(&self) -> Jiffies {
        let now = time::jiffies();
        now.wrapping_sub(self.looked.xchg(now, Relaxed))
    }

    /// So much time has passed since this was last called: what is to be done. A server that was
    /// silent for `interval`, or is in doubt, is to be asked.
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

    /// The server was asked, now or before others were answered.
    pub(super) fn asked(&self) {
        self.asked.store(1, Relaxed);
    }
}

/// What is to be done about a server.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum ProbeAction {
    /// Nothing: it is there, or has some time left.
    Wait,
    /// Nothing was heard of it.
    Ask,
    /// It did not answer.
    GiveUp,
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/keep_alive_state.rs"]
mod tests;
