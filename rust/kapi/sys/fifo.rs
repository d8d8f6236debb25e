// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A queue whose room is made beforehand, for use under a spin lock.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "fifo/tests.rs"]
mod tests;

use kernel::prelude::*;

/// A queue, first in, first out, of at most as many items as it was made for. Nothing is allocated
/// or moved to put one in or take one out.
///
/// # Invariants
///
/// The `len` places from `first` on, around the end of `places`, have an item each; the others
/// none.
pub(crate) struct Fifo<T> {
    places: KVVec<Option<T>>,
    first: usize,
    len: usize,
}

/// Without room.
impl<T> Default for Fifo<T> {
    fn default() -> Self {
        // INVARIANT: There are no places.
        Self {
            places: KVVec::new(),
            first: 0,
            len: 0,
        }
    }
}

impl<T> Fifo<T> {
    /// Creates one with room for `n` items. May sleep.
    pub(crate) fn with_capacity(n: usize) -> Result<Self> {
        let mut places = KVVec::with_capacity(n, GFP_KERNEL)?;
        for _ in 0..n {
            places.push(None, GFP_KERNEL)?;
        }
        // INVARIANT: None has an item.
        Ok(Self {
            places,
            ..Self::default()
        })
    }

    /// Returns the number of items.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no items.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the place that is `behind` places after the first one.
    #[inline]
    fn place(&self, behind: usize) -> usize {
        // Both are at most the number of places.
        let place = self.first.wrapping_add(behind);
        place.checked_sub(self.places.len()).unwrap_or(place)
    }

    /// Puts an item in behind all others, and returns its place; gives it back if there is no room.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Result<&mut T, T> {
        let last = self.place(self.len);
        match self.places.get_mut(last) {
            // INVARIANT: The place behind the items has one now.
            Some(place @ None) => {
                self.len += 1;
                Ok(place.insert(item))
            }
            _ => Err(item),
        }
    }

    /// Returns whether there is no room for another.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len == self.places.len()
    }

    /// Returns all items, in their order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let first = self.first.min(self.places.len());
        let (wrapped, places) = self.places.split_at_mut(first);
        let places = Iterator::chain(places.iter_mut(), wrapped);
        places.take(self.len).flatten()
    }

    /// Returns the item that has `behind` others in front of it.
    #[inline]
    pub(crate) fn get(&self, behind: usize) -> Option<&T> {
        self.places.get(self.place(behind))?.as_ref()
    }

    /// Takes the item out that has `behind` others in front of it, which stay in their order.
    pub(crate) fn remove(&mut self, behind: usize) -> Option<T> {
        if behind >= self.len {
            return None;
        }
        let mut free = self.place(behind);
        let item = self.places.get_mut(free)?.take();
        for behind in (0..behind).rev() {
            let place = self.place(behind);
            let moved = self.places.get_mut(place)?.take();
            *self.places.get_mut(free)? = moved;
            free = place;
        }
        // INVARIANT: The first place has none now, and those behind it have one each.
        self.first = self.place(1);
        self.len -= 1;
        item
    }

    /// Returns the item that was put in first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// Takes the item out that was put in first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.remove(0)
    }
}
