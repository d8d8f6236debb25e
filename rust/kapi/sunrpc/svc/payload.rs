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

/// The parts of one result, in order. Most results have one at most, which takes no memory.
#[derive(Default)]
pub(super) struct Payloads {
    first: [Payload; 1],
    len: usize,
    /// All, where there are several.
    all: KVec<Payload>,
}

impl Payloads {
    /// Takes note of a part. There are no more than operations in a request. May sleep; without
    /// memory it is sent inline.
    pub(super) fn add(&mut self, offset: usize, length: usize) {
        let part = Payload { offset, length };
        // A request that was deferred is executed from the beginning.
        let last = self.as_mut_slice().last();
        if last.is_none_or(|last| offset <= last.offset) {
            self.all.clear();
            (self.first, self.len) = ([part], 1);
        } else if self.add_another(part).is_ok() {
            self.len += 1;
        }
    }

    #[cold]
    fn add_another(&mut self, part: Payload) -> Result {
        let [first] = self.first;
        if self.all.is_empty() {
            self.all.push(first, GFP_KERNEL)?;
        }
        Ok(self.all.push(part, GFP_KERNEL)?)
    }

    /// Returns the parts.
    pub(super) fn as_mut_slice(&mut self) -> &mut [Payload] {
        match self.len {
            0 => &mut [],
            1 => &mut self.first,
            _ => &mut self.all,
        }
    }
}
