// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that the peer pulls: memory of this end that it may read, until it says that it has done
//! so, or the time for that is over (`Documentation/reliable-reply.rst`).

use crate::{
    kapi::{
        ib::{
            InvalidatedKey,
            Regions, //
        },
        sys::time::is_before, //
    },
    transport::provided_total::ProvidedShare, //
};
use kernel::{
    prelude::*,
    time::Jiffies, //
};

/// A Reply that the peer may read.
pub(crate) struct Provided {
    pub(super) xid: u32,
    /// No other has it: two Replies may have the same XID, one after the other.
    pub(super) number: u32,
    pub(super) regions: Regions,
    /// Memory that is kept for it.
    pub(super) share: ProvidedShare,
    /// When its time is over.
    pub(super) end: Jiffies,
    /// Its regions are being invalidated by this end, or are to be.
    pub(super) withdrawn: bool,
}

impl Provided {
    /// Work requests that it takes to register its regions.
    pub(super) fn registrations(&self) -> usize {
        self.regions.mapped().len()
    }
}

/// What a peer may have provided at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProvidedLimits {
    /// Replies.
    pub(crate) replies: u32,
    /// Regions of all of them.
    pub(crate) regions: u32,
    /// Bytes of memory that is kept for all of them.
    pub(crate) bytes: usize,
    /// Regions of all peers together.
    pub(crate) regions_of_all: u32,
}

/// All of an endpoint, by XID.
///
/// One that is let in counts until it is not to be read any more, whether it is in the table or on
/// the way there, and its bytes until nobody can read it.
///
/// # Invariants
///
/// `all` were let in and not out, wherever they are, and the table has room for as many.
#[derive(Default)]
pub(super) struct ProvidedTable {
    table: KVec<KBox<Provided>>,
    all: usize,
    replies: u32,
    bytes: usize,
    /// What there is of regions, in use or idle.
    regions: Option<ProvidedShare>,
    /// How many were idle ever since it was asked for that.
    least_idle: usize,
}

impl ProvidedTable {
    /// Makes room for one more, of so many bytes. `EMSGSIZE` if that is more than the peer may
    /// have, `ENOMEM` without memory. Does not sleep.
    pub(super) fn let_in(&mut self, bytes: usize, limits: &ProvidedLimits) -> Result {
        let all = self.bytes.saturating_add(bytes);
        if self.replies >= limits.replies || all > limits.bytes {
            return Err(EMSGSIZE);
        }
        let more = (self.all + 1).saturating_sub(self.table.len());
        self.table.reserve(more, GFP_NOWAIT)?;
        // INVARIANT: There is room for one more.
        self.all += 1;
        self.replies += 1;
        self.bytes = all;
        Ok(())
    }

    /// One is not to be read any more.
    fn end(&mut self, provided: &mut Provided) {
        if !core::mem::replace(&mut provided.withdrawn, true) {
            self.replies = self.replies.saturating_sub(1);
        }
    }

    /// One is no more.
    pub(super) fn let_out(&mut self, provided: &mut Provided) {
        self.end(provided);
        // INVARIANT: It was let in, and is so no more.
        self.all = self.all.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(provided.share.bytes());
    }

    /// A region was made.
    pub(super) fn add_region(&mut self, region: ProvidedShare) {
        match &mut self.regions {
            Some(regions) => regions.add_regions(region),
            regions => *regions = Some(region),
        }
    }

    /// A region is no more.
    pub(super) fn put_region(&mut self) {
        if let Some(regions) = &mut self.regions {
            regions.put_region();
        }
    }

    /// One was taken of those that were idle, which so many are still.
    pub(super) fn idle_left(&mut self, idle: usize) {
        self.least_idle = self.least_idle.min(idle);
    }

    /// Returns how many regions were idle all the time since the last call; `idle` are now.
    pub(super) fn long_idle(&mut self, idle: usize) -> usize {
        core::mem::replace(&mut self.least_idle, idle).min(idle)
    }

    /// One that was let in was posted, or comes back.
    pub(super) fn add(&mut self, provided: KBox<Provided>) {
        // There is room by the type invariant.
        let _ = self.table.push_within_capacity(provided);
    }

    /// Takes one out.
    pub(super) fn take(&mut self, is_it: impl Fn(&Provided) -> bool) -> Option<KBox<Provided>> {
        let at = self.table.iter().position(|provided| is_it(provided))?;
        let last = self.table.len().checked_sub(1)?;
        self.table.swap(at, last);
        self.table.pop()
    }

    /// Takes out the one that the peer is told to have pulled, by its XID and the key that it has
    /// made invalid, or none. `EINVAL` for a key of another.
    pub(super) fn pulled(
        &mut self,
        xid: u32,
        key: Option<&InvalidatedKey<'_>>,
    ) -> Result<Option<KBox<Provided>>> {
        let is_it = |one: &Provided| one.xid == xid && !one.withdrawn;
        let Some(key) = key else {
            return Ok(self.end_of(is_it));
        };
        let owner = self.table.iter().find(|one| one.regions.have(key));
        match owner.map(|one| (one.number, one.xid == xid, one.withdrawn)) {
            Some((number, true, false)) => Ok(self.end_of(|one| one.number == number)),
            // It comes too late, or there is another under that XID by now.
            Some((_, true, true)) => Ok(None),
            Some((_, false, _)) => Err(EINVAL),
            None if self.table.iter().any(|one| is_it(one)) => Err(EINVAL),
            // Too late, too: nothing is behind that key.
            None => Ok(None),
        }
    }

    fn end_of(&mut self, is_it: impl Fn(&Provided) -> bool) -> Option<KBox<Provided>> {
        let mut provided = self.take(is_it)?;
        self.end(&mut provided);
        Some(provided)
    }

    fn by_number(&mut self, number: u32) -> Option<&mut KBox<Provided>> {
        self.table
            .iter_mut()
            .find(|provided| provided.number == number)
    }

    /// The regions of one that is withdrawn.
    pub(super) fn withdrawn_regions(&mut self, number: u32) -> Option<&mut Regions> {
        Some(&mut self.by_number(number)?.regions)
    }

    /// Whether there are none, nor on the way.
    pub(super) fn is_empty(&self) -> bool {
        self.replies == 0
    }

    /// When the time of the next one is over, of those that are not withdrawn.
    pub(super) fn next_end(&self) -> Option<Jiffies> {
        let left = self.table.iter().filter(|one| !one.withdrawn);
        let ends = left.map(|one| one.end);
        ends.reduce(|a, b| if is_before(b, a) { b } else { a })
    }

    /// Marks one as withdrawn that is chosen and not that yet. Returns what is to be posted for
    /// that, its XID, and how many bytes are kept for it.
    pub(super) fn withdraw(
        &mut self,
        chosen: impl Fn(&Provided) -> bool,
    ) -> Option<(Withdrawal, u32, usize)> {
        let mut table = self.table.iter_mut();
        let one = table.find(|provided| !provided.withdrawn && chosen(provided))?;
        one.withdrawn = true;
        self.replies = self.replies.saturating_sub(1);
        let withdrawal = Withdrawal {
            number: one.number,
            registered: one.regions.registered().len(),
        };
        Some((withdrawal, one.xid, one.share.bytes()))
    }
}

/// The local invalidations of a Reply that is withdrawn.
#[derive(Clone, Copy)]
pub(super) struct Withdrawal {
    pub(super) number: u32,
    /// Regions of it that are registered.
    pub(super) registered: usize,
}
