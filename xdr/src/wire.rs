// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! XDR words read from, and written to, byte slices.
//!
//! XDR is a sequence of four-octet units, most significant octet first (RFC 4506, section 3).

use crate::DecodeError;

/// Takes fields from the front of received bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been taken yet.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes `N` octets.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        let (field, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(field)
    }

    /// Takes `N` octets if all of them are zero; says whether.
    #[inline]
    pub(crate) fn take_zeros<const N: usize>(&mut self) -> bool {
        match self.rest.split_first_chunk::<N>() {
            Some((field, rest)) if *field == [0; N] => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Takes `count` items of `size` octets, unseparated.
    #[inline]
    pub(crate) fn items(&mut self, count: usize, size: usize) -> Result<&'a [u8], DecodeError> {
        let len = count.checked_mul(size).ok_or(DecodeError::Truncated)?;
        let (items, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(items)
    }

    /// Takes a 32-bit unsigned integer (RFC 4506, section 4.2).
    #[inline]
    pub(crate) fn word(&mut self) -> Result<u32, DecodeError> {
        self.array::<4>().map(|word| u32::from_be_bytes(*word))
    }

    /// Takes the Boolean in front of optional-data (RFC 4506, section 4.19).
    #[inline]
    pub(crate) fn present(&mut self) -> Result<bool, DecodeError> {
        match self.word()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::Discriminator(other)),
        }
    }

    /// Takes the count in front of a counted array (RFC 4506, section 4.13).
    #[inline]
    pub(crate) fn count(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(self.word()?).map_err(|_| DecodeError::Truncated)
    }
}

/// Puts fields into the front of a buffer, and goes on counting when the buffer is full.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    rest: &'b mut [u8],
    room: usize,
    needed: usize,
}

impl<'b> Writer<'b> {
    /// Starts at the first octet of `buffer`.
    #[inline]
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

    /// Puts `N` octets.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, bytes: &[u8; N]) {
        if let Some(field) = self.reserve::<N>() {
            *field = *bytes;
        }
    }

    /// Puts a 32-bit unsigned integer.
    #[inline]
    pub(crate) fn word(&mut self, value: u32) {
        self.array(&value.to_be_bytes());
    }

    /// Puts octets, and returns the copy; `None` when they do not fit.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Option<&'b mut [u8]> {
        self.needed = self.needed.saturating_add(bytes.len());
        let (copy, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(bytes.len())?;
        self.rest = rest;
        copy.copy_from_slice(bytes);
        Some(copy)
    }

    /// Octets that all fields so far take, whether they fitted or not.
    #[inline]
    pub(crate) const fn needed(&self) -> usize {
        self.needed
    }

    /// Octets that the caller's buffer has.
    #[inline]
    pub(crate) const fn room(&self) -> usize {
        self.room
    }
}
