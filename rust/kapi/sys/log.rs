// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Log lines that a peer or a broken link can cause, so that their rate must be limited.
//!
//! Nothing is formatted when the line is not printed. Any context. Use with `format_args!`, without
//! a newline; the module's name is put in front.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    sys::{
        address::SocketAddress,
        time::{
            jiffies,
            HZ, //
        },
    },
};
use core::fmt::Arguments;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::Jiffies, //
};

/// Lines about one peer in a [`PERIOD`], at most.
const MOST: u32 = 6;
const PERIOD: Jiffies = 60 * HZ;

/// How many lines there were about a peer in the latest period with any.
///
/// Nothing is locked, so that a line more or less may be counted.
struct PeerLines {
    /// A hash of its address.
    host: Atomic<u32>,
    period: Atomic<u32>,
    lines: Atomic<u32>,
}

/// Those of the latest peers. One in whose place another comes is forgotten.
static LINES: [PeerLines; 64] = [const { PeerLines::new() }; 64];

impl PeerLines {
    const fn new() -> Self {
        Self {
            host: Atomic::new(0),
            period: Atomic::new(0),
            lines: Atomic::new(0),
        }
    }

    /// Counts a line if there may be one more, and returns how many were left out in the period
    /// before.
    fn admit(&self, host: u32, period: u32) -> Option<u32> {
        let same = self.host.xchg(host, Relaxed) == host;
        if self.period.xchg(period, Relaxed) == period && same {
            return (self.lines.fetch_add(1, Relaxed) < MOST).then_some(0);
        }
        let before = self.lines.xchg(1, Relaxed);
        Some(if same { before.saturating_sub(MOST) } else { 0 })
    }
}

/// Returns whether the rate of lines about a peer allows one more: one that is broken, or means
/// harm, costs a few lines a minute, and hides no line about another. Says how many were left out.
fn admits(peer: &SocketAddress) -> bool {
    let host = peer.hash();
    let period = (jiffies() / PERIOD) as u32;
    let slot = LINES.get(host as usize % LINES.len());
    match slot.map_or(Some(0), |slot| slot.admit(host, period)) {
        None => return false,
        Some(0) => (),
        Some(n) => pr_info!("{}\n", format_args!("{n} lines about {peer} were left out")),
    }
    true
}

/// Prints a line about a peer at level "warning".
pub(crate) fn warn_about(peer: &SocketAddress, line: Arguments<'_>) {
    if admits(peer) {
        warn(line);
    }
}

/// Prints a line about a peer at level "info".
pub(crate) fn inform_about(peer: &SocketAddress, line: Arguments<'_>) {
    // SAFETY: No precondition.
    if admits(peer) && unsafe { bindings::may_inform() } {
        pr_info!("{line}\n");
    }
}

/// Prints a line at level "warning".
pub(crate) fn warn(line: Arguments<'_>) {
    // SAFETY: No precondition.
    if unsafe { bindings::may_warn() } {
        pr_warn!("{line}\n");
    }
}

/// Prints a line for an administrator who wants to see what the server's transports do (`rpcdebug
/// -m rpc -s svcsock`). Not limited in rate.
pub(crate) fn debug_server(line: Arguments<'_>) {
    // SAFETY: No precondition.
    if unsafe { bindings::debugs_server() } {
        pr_info!("{line}\n");
    }
}
