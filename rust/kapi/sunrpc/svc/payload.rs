// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Parts of a result that may be placed directly.

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

/// The parts of one result, in order.
#[derive(Default)]
pub(super) struct Payloads {
    parts: [Payload; MOST],
    len: usize,
}

impl Payloads {
    /// Takes note of a part.
    pub(super) fn add(&mut self, offset: usize, length: usize) {
        // A request that was deferred is executed from the beginning.
        if self
            .as_slice()
            .last()
            .is_some_and(|last| offset <= last.offset)
        {
            self.len = 0;
        }
        if let Some(part) = self.parts.get_mut(self.len) {
            *part = Payload { offset, length };
            self.len += 1;
        }
    }

    /// The parts.
    pub(super) fn as_slice(&self) -> &[Payload] {
        self.parts.get(..self.len).unwrap_or(&[])
    }
}
