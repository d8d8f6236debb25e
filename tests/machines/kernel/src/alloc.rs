// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory, of which there always is enough.

use crate::error::*;
use core::{
    ops::{
        Deref,
        DerefMut, //
    },
    pin::Pin,
};
use std::sync::Arc;

/// How an allocation may go about it, which makes no difference here.
pub type Flags = u32;

pub mod flags {
    pub const GFP_ATOMIC: u32 = 0;
    pub const GFP_KERNEL: u32 = 0;
    pub const GFP_NOWAIT: u32 = 0;
}

pub type KBox<T> = Box<T>;

pub trait InPlaceInit<T> {
    type PinnedSelf;

    fn pin_init(value: T, flags: Flags) -> Result<Self::PinnedSelf>;
}

impl<T> InPlaceInit<T> for Box<T> {
    type PinnedSelf = Pin<Self>;

    fn pin_init(value: T, _: Flags) -> Result<Pin<Self>> {
        Ok(Box::pin(value))
    }
}

impl<T> InPlaceInit<T> for Arc<T> {
    type PinnedSelf = Self;

    fn pin_init(value: T, _: Flags) -> Result<Self> {
        Ok(Arc::new(value))
    }
}

pub struct KVec<T>(Vec<T>);

pub type KVVec<T> = KVec<T>;

/// An item for which there was no room.
pub struct PushError<T>(pub T);

impl<T> KVec<T> {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn with_capacity(n: usize, _: Flags) -> Result<Self> {
        Ok(Self(Vec::with_capacity(n)))
    }

    pub fn from_elem(item: T, n: usize, _: Flags) -> Result<Self>
    where
        T: Clone,
    {
        Ok(Self(vec![item; n]))
    }

    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Makes room for so many more and for no other, so that one too few is noticed.
    pub fn reserve(&mut self, more: usize, _: Flags) -> Result {
        self.0.reserve_exact(more);
        Ok(())
    }

    pub fn push(&mut self, item: T, _: Flags) -> Result {
        self.0.push(item);
        Ok(())
    }

    pub fn push_within_capacity(&mut self, item: T) -> Result<(), PushError<T>> {
        if self.0.len() == self.0.capacity() {
            return Err(PushError(item));
        }
        self.0.push(item);
        Ok(())
    }

    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    pub fn remove(&mut self, at: usize) -> Result<T> {
        (at < self.0.len()).then(|| self.0.remove(at)).ok_or(EINVAL)
    }

    pub fn retain(&mut self, is_kept: impl FnMut(&mut T) -> bool) {
        self.0.retain_mut(is_kept);
    }
}

impl<T> Default for KVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for KVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for KVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
