// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How long Replies were lately whose length nobody knows before: whether to offer a Reply chunk
//! for the next of the same kind, or to have it pulled if it is long after all
//! (`Documentation/reliable-reply.rst`).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reply_history.rs"]
mod tests;

use kernel::prelude::*;

/// Kinds of RPC that are told apart. An NFS client has about ten whose Replies may be long.
const KINDS: usize = 32;
/// The share of long Replies that is all of them.
const ALL: u16 = 1 << 12;
/// One Reply counts as much as one in so many.
const WEIGHT: u16 = 8;
/// The share from which on a chunk is offered for each. As measured, a chunk for nothing costs as
/// much as the pull of a Reply that is long costs more than its chunk
/// (`Documentation/performance.rst`).
const THRESHOLD: u16 = ALL / 2;

/// Room for a Reply beyond which it is no good to have one pulled of whose kind none was seen: many
/// at once may be more than a server provides.
const LARGE_CLASS: u32 = Kind::class_of(64 << 10);

/// A kind of RPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) program: u32,
    pub(crate) version: u32,
    /// The procedure as the RPC layer counts it: for NFS 4 that tells what a COMPOUND is for.
    pub(crate) procedure: u32,
    /// The size class of the room for the Reply: its length in bits.
    pub(crate) class: u32,
}

impl Kind {
    /// The size class of so much room.
    pub(crate) const fn class_of(room: usize) -> u32 {
        usize::BITS - room.leading_zeros()
    }
}

/// What is known of a kind.
struct Record {
    kind: Kind,
    /// The share of long Replies, 0 to [`ALL`].
    share: u16,
    /// When it was looked up last.
    used: u64,
}

/// How Replies are to come back that may be long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// None of the kind was seen.
    Unknown,
    /// Inline as a rule: one that is not is pulled.
    Short,
    /// Through a Reply chunk.
    Long,
    /// The same, since the server had no room to provide it.
    Refused,
}

/// What is known of all kinds.
pub(crate) struct ReplyHistory {
    records: KVec<Record>,
    lookups: u64,
}

impl ReplyHistory {
    /// Of nothing. May sleep.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            records: KVec::with_capacity(KINDS, GFP_KERNEL)?,
            lookups: 0,
        })
    }

    /// What the Reply to an RPC of that kind is expected to be.
    pub(super) fn expected(&mut self, kind: &Kind) -> Expected {
        self.lookups += 1;
        let lookups = self.lookups;
        match self.records.iter_mut().find(|record| record.kind == *kind) {
            None if kind.class > LARGE_CLASS => Expected::Long,
            None => Expected::Unknown,
            Some(record) => {
                record.used = lookups;
                match record.share >= THRESHOLD {
                    true => Expected::Long,
                    false => Expected::Short,
                }
            }
        }
    }

    /// A Reply of that kind was long, or not.
    pub(super) fn replied(&mut self, kind: &Kind, long: bool) {
        let now = if long { ALL } else { 0 };
        match self.records.iter_mut().find(|record| record.kind == *kind) {
            Some(record) => record.share = record.share - record.share / WEIGHT + now / WEIGHT,
            None => self.remember(kind, now),
        }
    }

    /// The first Reply of a kind tells most of what there is to know.
    fn remember(&mut self, kind: &Kind, share: u16) {
        let record = Record {
            kind: *kind,
            share,
            used: self.lookups,
        };
        let Err(full) = self.records.push_within_capacity(record) else {
            return;
        };
        // In place of the one that nobody has asked for since the longest time.
        if let Some(oldest) = self.records.iter_mut().min_by_key(|record| record.used) {
            *oldest = full.0;
        }
    }
}
