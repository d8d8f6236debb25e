// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that the peer pulls: memory of this end that it may read until it reports that it has,
//! or until the Reply expires (`Documentation/reliable-reply.rst`).

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
    /// Unique, unlike the XID, which two Replies may have one after the other.
    pub(super) number: u32,
    pub(super) regions: Regions,
    /// The memory that is held for it.
    pub(super) share: ProvidedShare,
    /// The time when it expires.
    pub(super) end: Jiffies,
    /// Its regions are being invalidated by this end, or are to be.
    pub(super) withdrawn: bool,
}

impl Provided {
    /// Returns the number of work requests that register its regions.
    pub(crate) fn registrations(&self) -> usize {
        self.regions.mapped().len()
    }
}

/// The limits on what is provided to a peer at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProvidedLimits {
    /// The number of Replies.
    pub(crate) replies: u32,
    /// The number of regions of all of them.
    pub(crate) regions: u32,
    /// The number of bytes of memory that is held for all of them.
    pub(crate) bytes: usize,
    /// The number of regions of all peers together.
    pub(crate) regions_of_all: u32,
}

/// The provided Replies of an endpoint, by XID.
///
/// A Reply that was admitted counts until it is not to be read any more, whether it is in the table
/// or on the way there; its bytes count until no peer can read it.
///
/// # Invariants
///
/// `all` Replies are admitted and not removed, and the table has room for as many.
#[derive(Default)]
pub(super) struct ProvidedTable {
    table: KVec<KBox<Provided>>,
    all: usize,
    replies: u32,
    bytes: usize,
    /// The regions that were made, in use or idle.
    regions: Option<ProvidedShare>,
    /// The number of regions that were idle ever since the last check of that.
    least_idle: usize,
}

impl ProvidedTable {
    /// Admits one more Reply, of `bytes` bytes, and makes room for it. `EMSGSIZE` if that is beyond
    /// the peer's `limits`, `ENOMEM` without memory. Does not sleep.
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

    /// Ends the time in which the peer may read a Reply.
    fn end(&mut self, provided: &mut Provided) {
        if !core::mem::replace(&mut provided.withdrawn, true) {
            self.replies = self.replies.saturating_sub(1);
        }
    }

    /// Removes a Reply, which does not exist any more.
    pub(super) fn let_out(&mut self, provided: &mut Provided) {
        self.end(provided);
        // INVARIANT: It was admitted, and is removed now.
        self.all = self.all.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(provided.share.bytes());
    }

    /// Notes that a region was made.
    pub(super) fn add_region(&mut self, region: ProvidedShare) {
        match &mut self.regions {
            Some(regions) => regions.add_regions(region),
            regions => *regions = Some(region),
        }
    }

    /// Notes that a region was deregistered.
    pub(super) fn put_region(&mut self) {
        if let Some(regions) = &mut self.regions {
            regions.put_region();
        }
    }

    /// Notes that a region was taken from the idle ones, of which `idle` are left.
    pub(super) fn idle_left(&mut self, idle: usize) {
        self.least_idle = self.least_idle.min(idle);
    }

    /// Returns the number of regions idle all the time since the last call; `idle` are now.
    pub(super) fn long_idle(&mut self, idle: usize) -> usize {
        core::mem::replace(&mut self.least_idle, idle).min(idle)
    }

    /// Adds an admitted Reply to the table: it was posted, or comes back.
    pub(super) fn add(&mut self, provided: KBox<Provided>) {
        // There is room by the type invariant.
        let _ = self.table.push_within_capacity(provided);
    }

    /// Takes one Reply out of the table.
    pub(super) fn take(&mut self, is_it: impl Fn(&Provided) -> bool) -> Option<KBox<Provided>> {
        let at = self.table.iter().position(|provided| is_it(provided))?;
        let last = self.table.len().checked_sub(1)?;
        self.table.swap(at, last);
        self.table.pop()
    }

    /// Takes out the Reply that the peer reports as pulled, by its XID and the key that it has
    /// invalidated, if any. `EINVAL` for a key of another Reply.
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
            // The report is too late, or there is another Reply with that XID by now.
            Some((_, true, true)) => Ok(None),
            Some((_, false, _)) => Err(EINVAL),
            None if self.table.iter().any(|one| is_it(one)) => Err(EINVAL),
            // The report is too late as well: the key names no region.
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

    /// Returns the regions of a Reply that is withdrawn.
    pub(super) fn withdrawn_regions(&mut self, number: u32) -> Option<&mut Regions> {
        Some(&mut self.by_number(number)?.regions)
    }

    /// Returns whether no Reply is provided, nor on the way.
    pub(super) fn is_empty(&self) -> bool {
        self.replies == 0
    }

    /// Returns the time when the next Reply expires, of those not withdrawn.
    pub(super) fn next_end(&self) -> Option<Jiffies> {
        let left = self.table.iter().filter(|one| !one.withdrawn);
        let ends = left.map(|one| one.end);
        ends.reduce(|a, b| if is_before(b, a) { b } else { a })
    }

    /// Marks a Reply as withdrawn that is `chosen` and not withdrawn yet. Returns its invalidations
    /// to post, its XID, and the number of bytes held for it.
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
    /// The number of its registered regions; none once they are posted.
    pub(super) registered: usize,
}
