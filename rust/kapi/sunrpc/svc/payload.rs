// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Parts of a result that may be placed directly.

use kernel::prelude::*;

/// A part of a result.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Payload {
    /// Where it begins, from the beginning of the result.
    pub(crate) offset: usize,
    /// Its length, without padding.
    pub(crate) length: usize,
}

impl Payload {
    /// Returns where a result of `len` bytes goes on behind it. The padding leaves the result with
    /// its payload (RFC 8166, section 3.4.4.4).
    pub(crate) fn behind(&self, len: usize) -> usize {
        let padded = self.length.saturating_add(3) & !3;
        self.offset.saturating_add(padded).min(len)
    }
}

/// The parts of one result, in order. Most results have none, which takes no memory.
#[derive(Default)]
pub(super) struct Payloads(KVec<Payload>);

impl Payloads {
    /// Takes note of a part. There are no more than operations in a request. May sleep; without
    /// memory it is sent inline.
    pub(super) fn add(&mut self, offset: usize, length: usize) {
        // A request that was deferred is executed from the beginning.
        if self.0.last().is_some_and(|last| offset <= last.offset) {
            self.0.clear();
        }
        let _ = self.0.push(Payload { offset, length }, GFP_KERNEL);
    }

    /// Returns the parts.
    pub(super) fn as_mut_slice(&mut self) -> &mut [Payload] {
        &mut self.0
    }
}
