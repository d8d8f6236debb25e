// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Calls of a connection that the server has not answered, by XID.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/unanswered.rs"]
mod tests;

use kernel::prelude::*;

/// Who a Call is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// An RPC that waits for its Reply.
    Rpc,
    /// Nobody waits for its Reply any more, and nothing ends the wait for its credit.
    Nobody,
    /// It asked whether the server is still there, and was not answered in time; nobody waits for
    /// it either.
    Probe,
}

/// A Call.
#[derive(Clone, Copy)]
struct Call {
    xid: u32,
    owner: Owner,
}

/// Calls by XID: a hash table without lists, at most half full (open addressing, where who is
/// farther from its place goes first: "Robin Hood").
///
/// The RPC layer counts XIDs up, in the order of octets that the machine has and not the network,
/// so that those under way have places of their own as a rule, side by side: each is found at once,
/// and goes without a look at more than the one behind it.
///
/// # Invariants
///
/// The number of places is a power of two, more than `most`, and `len <= most`. `len` places have a
/// Call, `unowned` of them one that nobody waits for. Of the places from the one that the XID of a
/// Call asks for up to the one that it has none is free, and none has a Call that is nearer to its
/// own than this one would be there.
pub(super) struct Unanswered {
    places: KVVec<Option<Call>>,
    most: usize,
    len: usize,
    unowned: usize,
}

impl Unanswered {
    /// Room for `most` Calls. May sleep.
    pub(super) fn new(most: u32) -> Result<Self> {
        let most = most as usize;
        let count = most.saturating_mul(2).max(2).checked_next_power_of_two();
        // INVARIANT: It is more than `most`, and there is no Call.
        Ok(Self {
            places: KVVec::from_elem(None, count.ok_or(ENOMEM)?, GFP_KERNEL)?,
            most,
            len: 0,
            unowned: 0,
        })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody waits for any of them.
    pub(super) fn all_unowned(&self) -> bool {
        self.unowned == self.len
    }

    fn mask(&self) -> usize {
        self.places.len().wrapping_sub(1)
    }

    fn after(&self, place: usize) -> usize {
        place.wrapping_add(1) & self.mask()
    }

    /// The place that `xid` asks for.
    #[inline]
    fn place_of(&self, xid: u32) -> usize {
        xid.to_be() as usize & self.mask()
    }

    /// How far `place` is from the one that `xid` asks for.
    #[inline]
    fn distance(&self, xid: u32, place: usize) -> usize {
        place.wrapping_sub(self.place_of(xid)) & self.mask()
    }

    fn at(&self, place: usize) -> Option<Call> {
        *self.places.get(place)?
    }

    fn put(&mut self, place: usize, call: Option<Call>) {
        if let Some(slot) = self.places.get_mut(place) {
            *slot = call;
        }
    }

    /// A Call of this XID, and its place.
    fn find(&self, xid: u32) -> Option<(usize, Call)> {
        let mut place = self.place_of(xid);
        // There is a free place by the type invariant.
        while let Some(call) = self.at(place) {
            if call.xid == xid {
                return Some((place, call));
            }
            place = self.after(place);
        }
        None
    }

    /// Whether there is a Call of this XID.
    pub(super) fn has(&self, xid: u32) -> bool {
        self.find(xid).is_some()
    }

    /// Whether there is a probe of this XID.
    pub(super) fn has_probe(&self, xid: u32) -> bool {
        let found = self.find(xid);
        found.is_some_and(|(_, call)| call.owner == Owner::Probe)
    }

    /// One Call more. False where there is no room for it.
    ///
    /// There may be one of this XID: they begin again after 2^32, and some are never answered.
    #[inline]
    pub(super) fn insert(&mut self, xid: u32, owner: Owner) -> bool {
        if self.len >= self.most {
            return false;
        }
        let mut call = Call { xid, owner };
        let mut place = self.place_of(xid);
        // INVARIANT: One that is nearer to its own place than the one in hand would be moves on.
        while let Some(other) = self.at(place) {
            if self.distance(other.xid, place) < self.distance(call.xid, place) {
                self.put(place, Some(call));
                call = other;
            }
            place = self.after(place);
        }
        self.put(place, Some(call));
        self.len += 1;
        self.unowned += usize::from(owner != Owner::Rpc);
        true
    }

    /// The Call of this XID is none any more. Says whose it was.
    #[inline]
    pub(super) fn remove(&mut self, xid: u32) -> Option<Owner> {
        let (mut free, Call { owner, .. }) = self.find(xid)?;
        // INVARIANT: Those that follow move up, until one has the place that it asks for.
        let mut place = self.after(free);
        while let Some(call) = self
            .at(place)
            .filter(|call| self.distance(call.xid, place) != 0)
        {
            self.put(free, Some(call));
            free = place;
            place = self.after(place);
        }
        self.put(free, None);
        self.len -= 1;
        self.unowned -= usize::from(owner != Owner::Rpc);
        Some(owner)
    }

    /// Nobody waits for the Reply to this Call any more.
    pub(super) fn abandon(&mut self, xid: u32) {
        let mut place = self.place_of(xid);
        while let Some(call) = self.at(place) {
            if call.xid == xid && call.owner == Owner::Rpc {
                let owner = Owner::Nobody;
                self.put(place, Some(Call { xid, owner }));
                self.unowned += 1;
            }
            place = self.after(place);
        }
    }
}
