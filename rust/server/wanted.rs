// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How many Receives a connection has to have posted.

/// The Receives that a connection has to have.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// By the grant.
    pub(super) granted: u32,
    /// How many times the client may still say that it has pulled a Reply, for which it needs no
    /// credit.
    pub(super) unsaid: u32,
}

impl Wanted {
    /// So many by the grant, and none else.
    pub(super) fn new(granted: u32) -> Self {
        Self { granted, unsaid: 0 }
    }

    /// All of them.
    pub(super) fn receives(&self) -> u32 {
        self.granted.saturating_add(self.unsaid)
    }

    /// The client has said so once, or need not.
    pub(super) fn said(&mut self) {
        self.unsaid = self.unsaid.saturating_sub(1);
    }
}
