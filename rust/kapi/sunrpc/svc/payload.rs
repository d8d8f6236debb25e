// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Parts of a result that may be placed directly.

use core::mem::MaybeUninit;
use kernel::prelude::*;

/// Parts of one result that are taken note of. Those beyond are sent inline, which is always right.
const MOST: usize = 16;

/// A part of a result.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Payload {
    /// Where it begins, from the beginning of the result.
    pub(crate) offset: usize,
    /// Its length, without padding.
    pub(crate) length: usize,
}

impl Payload {
    /// Where a result of `len` bytes goes on behind it. The padding leaves the result with its payload
    /// (RFC 8166, section 3.4.4.4).
    pub(crate) fn behind(&self, len: usize) -> usize {
        let padded = self.length.saturating_add(3) & !3;
        self.offset.saturating_add(padded).min(len)
    }
}

/// The parts of one result, in order.
///
/// # Invariants
///
/// The first `len` parts are written.
pub(super) struct Payloads {
    parts: MaybeUninit<[Payload; MOST]>,
    len: usize,
}

impl Payloads {
    /// None. Most results have none, so the room for them is left as it is.
    pub(super) fn none() -> impl Init<Self, Error> {
        // INVARIANT: There are none.
        init!(Self {
            parts <- pin_init::uninit::<_, Error>(),
            len: 0,
        }? Error)
    }

    /// Takes note of a part.
    pub(super) fn add(&mut self, offset: usize, length: usize) {
        // A request that was deferred is executed from the beginning.
        let last = self.as_mut_slice().last();
        if last.is_some_and(|last| offset <= last.offset) {
            self.len = 0;
        }
        if self.len < MOST {
            let part = self.parts.as_mut_ptr().cast::<Payload>();
            // SAFETY: It is in the array.
            unsafe { part.add(self.len).write(Payload { offset, length }) };
            // INVARIANT: Written above.
            self.len += 1;
        }
    }

    /// The parts.
    pub(super) fn as_mut_slice(&mut self) -> &mut [Payload] {
        // SAFETY: So many are written, by the type invariant.
        unsafe { core::slice::from_raw_parts_mut(self.parts.as_mut_ptr().cast(), self.len) }
    }
}
