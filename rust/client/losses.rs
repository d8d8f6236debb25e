// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The losses of a transport's connections, counted by their reasons.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/losses.rs"]
mod tests;

/// The most reasons that are told apart. A transport meets few of them.
const REASONS: usize = 12;

/// The number of losses for each reason, in words.
#[derive(Clone, Copy)]
pub(crate) struct Losses {
    /// In the order in which they were first met; zero where there is none yet.
    known: [(&'static str, u32); REASONS],
    others: u32,
}

impl Losses {
    /// Creates the counts of a transport that has lost no connection.
    pub(super) fn new() -> Self {
        Self {
            known: [("", 0); REASONS],
            others: 0,
        }
    }

    /// Counts a loss for that reason.
    pub(super) fn count(&mut self, why: &'static str) {
        let mut known = self.known.iter_mut();
        let count = match known.find(|(words, count)| *words == why || *count == 0) {
            Some((words, count)) => {
                *words = why;
                count
            }
            None => &mut self.others,
        };
        *count = count.saturating_add(1);
    }

    /// Returns the reasons with their counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        let others = core::iter::once(("other reasons", self.others));
        let all = self.known.iter().copied().chain(others);
        all.filter(|(_, count)| *count != 0)
    }
}
