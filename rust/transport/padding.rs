// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Room for XDR padding that a peer writes behind a result.
//!
//! Some servers of RFC 5666 write it, although RFC 8166, section 3.4.6.2, forbids that. It must not
//! get into the memory behind the result, which may be an application's. So a Write chunk can have
//! one segment more, of the connection's own memory.
//!
//! One region serves all RPCs at once, for as long as the connection lives: a peer that writes into
//! it at the wrong time spoils bytes that nobody reads. It is registered once and never
//! invalidated, so that no RPC counts it among those that cover its memory, and the tear-down takes
//! it from the device.

use crate::{
    kapi::{
        ib::{
            Access,
            Covered,
            Idle,
            Poster,
            Region,
            Regions,
            RemoteKey, //
        },
        page::ExtentIter, //
    },
    transport::trace::not_mapped, //
};
use kernel::prelude::*;

/// Bytes of a unit of XDR.
const UNIT: usize = 4;

/// Holds the region that covers the memory for padding, of which the longest is a byte less than a
/// unit.
pub(super) struct Padding {
    covered: Covered,
    /// Never invalidated.
    region: Regions,
}

impl Padding {
    /// Maps memory for padding to a region, which is to be registered. May sleep. Errors as those
    /// of [`Region::map`].
    pub(super) fn new(region: Region<Idle>, poster: &Poster<'_>) -> Result<Self> {
        let mut regions = Regions::new(1, GFP_KERNEL)?;
        let mut pieces = ExtentIter::scratch(UNIT)?;
        // There is no XID to mark the address with: it is that of many RPCs.
        let what = (&mut pieces, Access::RemoteWrite, 0);
        regions.map(region, poster, what).map_err(|(why, _)| {
            not_mapped(&why);
            why.error
        })?;
        let covered = regions.mapped().first().map(Region::covered);
        Ok(Self {
            covered: covered.unwrap_or_default(),
            region: regions,
        })
    }

    /// Returns the region, for its registration.
    pub(super) fn region(&mut self) -> &mut Regions {
        &mut self.region
    }

    /// Returns the part of the region that `len` bytes of padding are written to.
    pub(super) fn covered(&self, len: usize) -> Covered {
        let key = RemoteKey {
            length: len.min(UNIT) as u32,
            ..self.covered.key
        };
        Covered {
            key,
            ..self.covered
        }
    }
}
