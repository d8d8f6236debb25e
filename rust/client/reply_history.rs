// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The lengths of recent Replies whose length is not known before: they decide whether the next
//! Call of the same kind offers a Reply chunk, or has a long Reply pulled
//! (`Documentation/reliable-reply.rst`), or continued in version 2.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reply_history.rs"]
mod tests;

use kernel::prelude::*;

/// The number of kinds of RPC. An NFS client has about ten whose Replies may be long.
const KINDS: usize = 32;
/// The share of long Replies if all are long.
const ALL: u16 = 1 << 12;
/// The weight of one Reply in the share: one part in this number.
const WEIGHT: u16 = 8;
/// The share from which on a Reply chunk is offered for each Call. By measurement, an unused chunk
/// costs as much as pulling a long Reply costs more than its chunk
/// (`Documentation/performance.rst`).
const THRESHOLD: u16 = ALL / 2;

/// The largest room for a Reply of an unseen kind that is left to pulling: a server may be unable
/// to provide many larger ones at once.
const LARGE_CLASS: u32 = Kind::class_of(64 << 10);

/// A kind of RPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) program: u32,
    pub(crate) version: u32,
    /// The procedure as the RPC layer counts it: for NFS 4 it tells the purpose of a COMPOUND.
    pub(crate) procedure: u32,
    /// The size class of the room for the Reply: its length in bits.
    pub(crate) class: u32,
}

impl Kind {
    /// Returns the size class of `room` bytes.
    pub(crate) const fn class_of(room: usize) -> u32 {
        usize::BITS - room.leading_zeros()
    }
}

/// The record of one kind.
struct Record {
    kind: Kind,
    /// The share of long Replies, 0 to [`ALL`].
    share: u16,
    /// The number of the lookup that found it last.
    used: u64,
}

/// The expected form of a Reply that may be long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// Unknown: no Reply of the kind was seen.
    Unknown,
    /// Inline as a rule: a long one is pulled, or continued in version 2.
    Short,
    /// Through a Reply chunk.
    Long,
    /// Through a Reply chunk, since the server had no other way to send it.
    Refused,
}

/// The records of all kinds.
pub(crate) struct ReplyHistory {
    records: KVec<Record>,
    lookups: u64,
}

impl ReplyHistory {
    /// Creates an empty history. May sleep.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            records: KVec::with_capacity(KINDS, GFP_KERNEL)?,
            lookups: 0,
        })
    }

    /// Returns the expected form of the Reply to an RPC of this kind.
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

    /// Notes whether a Reply of this kind was long.
    pub(super) fn replied(&mut self, kind: &Kind, long: bool) {
        let now = if long { ALL } else { 0 };
        match self.records.iter_mut().find(|record| record.kind == *kind) {
            Some(record) => record.share = record.share - record.share / WEIGHT + now / WEIGHT,
            None => self.remember(kind, now),
        }
    }

    /// Notes that a Reply of this kind had no room without a chunk, as if all had been long: the
    /// next RPC may be the same one, made anew.
    pub(super) fn refused(&mut self, kind: &Kind) {
        match self.records.iter_mut().find(|record| record.kind == *kind) {
            Some(record) => record.share = ALL,
            None => self.remember(kind, ALL),
        }
    }

    /// Adds a record with the first Reply of a kind, which tells most of what there is to know.
    fn remember(&mut self, kind: &Kind, share: u16) {
        let record = Record {
            kind: *kind,
            share,
            used: self.lookups,
        };
        let Err(full) = self.records.push_within_capacity(record) else {
            return;
        };
        // It replaces the record that was not looked up for the longest time.
        if let Some(oldest) = self.records.iter_mut().min_by_key(|record| record.used) {
            *oldest = full.0;
        }
    }
}
