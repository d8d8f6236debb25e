// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Parts of a result that may be placed directly.

use core::mem::MaybeUninit;
use kernel::prelude::*;

/// Parts of one result that need no more memory.
const FEW: usize = 16;

/// A part of a result.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Payload {
    /// Where it begins, from the beginning of the result.
    pub(crate) offset: usize,
    /// Its length, without padding.
    pub(crate) length: usize,
}

impl Payload {
    /// Where a result of `len` bytes goes on behind it. The padding leaves the result with its
    /// payload (RFC 8166, section 3.4.4.4).
    pub(crate) fn behind(&self, len: usize) -> usize {
        let padded = self.length.saturating_add(3) & !3;
        self.offset.saturating_add(padded).min(len)
    }
}

/// The parts of one result, in order.
///
/// # Invariants
///
/// The first `len` parts of `few` are written. They are in `many` if there is that.
pub(super) struct Payloads {
    few: MaybeUninit<[Payload; FEW]>,
    len: usize,
    many: Option<KVec<Payload>>,
}

impl Payloads {
    /// None. Most results have none, so the room for them is left as it is.
    pub(super) fn none() -> impl Init<Self, Error> {
        // INVARIANT: There are none.
        init!(Self {
            few <- pin_init::uninit::<_, Error>(),
            len: 0,
            many: None,
        }? Error)
    }

    /// Takes note of a part. There are no more than operations in a request. May sleep; without
    /// memory it is sent inline.
    pub(super) fn add(&mut self, offset: usize, length: usize) {
        // A request that was deferred is executed from the beginning.
        let last = self.as_mut_slice().last();
        if last.is_some_and(|last| offset <= last.offset) {
            self.len = 0;
            self.many = None;
        }
        let part = Payload { offset, length };
        if self.len < FEW {
            let few = self.few.as_mut_ptr().cast::<Payload>();
            // SAFETY: It is in the array.
            unsafe { few.add(self.len).write(part) };
            // INVARIANT: Written above.
            self.len += 1;
        } else {
            let _ = self.add_to_many(part);
        }
    }

    #[cold]
    fn add_to_many(&mut self, part: Payload) -> Result {
        let mut many = match self.many.take() {
            Some(many) => many,
            None => {
                let mut many = KVec::with_capacity(2 * FEW, GFP_KERNEL)?;
                many.extend_from_slice(self.as_mut_slice(), GFP_KERNEL)?;
                many
            }
        };
        let added = many.push(part, GFP_KERNEL);
        self.many = Some(many);
        Ok(added?)
    }

    /// The parts.
    pub(super) fn as_mut_slice(&mut self) -> &mut [Payload] {
        if let Some(many) = &mut self.many {
            return many;
        }
        // SAFETY: So many are written, by the type invariant.
        unsafe { core::slice::from_raw_parts_mut(self.few.as_mut_ptr().cast(), self.len) }
    }
}
