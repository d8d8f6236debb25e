// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! XDR words read from, and written to, byte slices.
//!
//! XDR is a sequence of four-octet units, most significant octet first (RFC 4506, section 3).

use crate::{
    DecodeError,
    EncodeError, //
};

/// Received bytes of which fields are taken from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the octets that have not been taken yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the octets taken since `start`, an earlier copy of this reader.
    pub(crate) fn since(&self, start: Self) -> &'a [u8] {
        let taken = start.rest.len().saturating_sub(self.rest.len());
        start.rest.get(..taken).unwrap_or_default()
    }

    /// Takes `count` items of `size` octets, unseparated.
    pub(crate) fn items(&mut self, count: usize, size: usize) -> Result<&'a [u8], DecodeError> {
        let len = count.checked_mul(size);
        let parts = len.and_then(|len| self.rest.split_at_checked(len));
        let (items, rest) = parts.ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(items)
    }

    /// Takes 32-bit unsigned integers (RFC 4506, section 4.2).
    pub(crate) fn words<const N: usize>(&mut self) -> Result<[u32; N], DecodeError> {
        let mut words = [0; N];
        let octets = self.items(N, 4)?.chunks_exact(4);
        for (word, octets) in words.iter_mut().zip(octets) {
            *word = octets.try_into().map_or(0, u32::from_be_bytes);
        }
        Ok(words)
    }

    /// Takes a 32-bit unsigned integer.
    pub(crate) fn word(&mut self) -> Result<u32, DecodeError> {
        self.words().map(|[word]| word)
    }

    /// Takes the Boolean in front of optional-data (RFC 4506, section 4.19).
    pub(crate) fn present(&mut self) -> Result<bool, DecodeError> {
        match self.word()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::Discriminator(other)),
        }
    }

    /// Takes the count in front of a counted array (RFC 4506, section 4.13).
    pub(crate) fn count(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(self.word()?).map_err(|_| DecodeError::Truncated)
    }

    /// Takes a linked list, whose items `take` takes (RFC 4506, section 4.19).
    ///
    /// Returns the items, each with its "present" word; the final zero is left out.
    pub(crate) fn list<T>(
        &mut self,
        take: impl Fn(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<&'a [u8], DecodeError> {
        let start = *self;
        let mut items: &[u8] = &[];
        while self.present()? {
            take(self)?;
            items = self.since(start);
        }
        Ok(items)
    }
}

/// Buffer that fields are put into the front of; fields that do not fit are counted.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    rest: &'b mut [u8],
    room: usize,
    needed: usize,
}

impl<'b> Writer<'b> {
    /// Starts at the first octet of `buffer`.
    pub(crate) fn new(buffer: &'b mut [u8]) -> Self {
        Self {
            room: buffer.len(),
            rest: buffer,
            needed: 0,
        }
    }

    /// Reserves `N` octets; `None` when they do not fit.
    #[inline]
    pub(crate) fn reserve<const N: usize>(&mut self) -> Option<&'b mut [u8; N]> {
        self.needed = self.needed.saturating_add(N);
        // After one field did not fit `rest` stays empty, so nothing is written out of place.
        let (field, rest) = core::mem::take(&mut self.rest).split_first_chunk_mut::<N>()?;
        self.rest = rest;
        Some(field)
    }

    /// Puts octets.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.needed = self.needed.saturating_add(bytes.len());
        // After octets did not fit `rest` stays empty, so nothing is written out of place.
        let rest = core::mem::take(&mut self.rest);
        if let Some((field, rest)) = rest.split_at_mut_checked(bytes.len()) {
            field.copy_from_slice(bytes);
            self.rest = rest;
        }
    }

    /// Puts 32-bit unsigned integers.
    #[inline]
    pub(crate) fn words<const N: usize>(&mut self, words: [u32; N]) {
        self.bytes(words.map(u32::to_be_bytes).as_flattened());
    }

    /// Returns the number of octets written; an error when they did not all fit.
    pub(crate) const fn finish(&self) -> Result<usize, EncodeError> {
        let Self { room, needed, .. } = *self;
        if needed > room {
            return Err(EncodeError::NoRoom { needed, room });
        }
        Ok(needed)
    }
}
