// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Room for XDR padding that a peer writes behind a result.
//!
//! Some servers of RFC 5666 write it, although RFC 8166, section 3.4.6.2, forbids that. It must not
//! get into the memory behind the result, which may be an application's. So a Write chunk can have
//! one segment more, of the connection's own memory.
//!
//! One region serves all RPCs at once, for as long as the connection lives: a peer that writes into
//! it at the wrong time spoils bytes that nobody reads. It is registered once and never invalidated,
//! so the proof that an RPC's memory is [fenced](super::region::Fenced) says nothing of it, and the
//! tear-down takes it from the device.

use crate::kapi::{
    bindings,
    ib::{
        mr::{
            Access,
            Covered,
            Mr,
            RemoteKey, //
        },
        region::{
            Mapped,
            Region, //
        },
        trace::{
            deregister,
            not_made,
            not_mapped, //
        },
    },
    page::Pieces, //
};
use core::{
    mem::size_of,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// One unit of XDR, which has room for the longest padding.
type Unit = u32;

/// Memory for padding, and the region that covers it.
pub(super) struct Padding {
    mr: Arc<Mr>,
    key: RemoteKey,
    /// Goes after `drop` has deregistered the region.
    unit: KBox<Opaque<Unit>>,
}

// SAFETY: Nobody but the device touches the memory; the rest may be used by any thread.
unsafe impl Sync for Padding {}

impl Padding {
    /// Makes it, with the region whose registration is to be posted. May sleep.
    ///
    /// Nobody shall ever invalidate that: it is not to be given back. `ENOMEM`, `ENOBUFS` or `EIO` when the device
    /// has no more regions, or refuses the memory.
    ///
    /// # Safety
    ///
    /// `pd` must be a valid protection domain of `device`, and both must stay so until
    /// [`Self::deregister`] has returned.
    pub(super) unsafe fn new(
        pd: NonNull<bindings::ib_pd>,
        device: NonNull<bindings::ib_device>,
    ) -> Result<(Self, Region<Mapped>)> {
        let unit = KBox::new(Opaque::new(0), GFP_KERNEL)?;
        let mut padding = Self {
            // SAFETY: The caller promises that both stay valid until it is deregistered.
            mr: unsafe { Mr::new(pd, device, 1, false) }.inspect_err(not_made)?,
            key: RemoteKey::default(),
            unit,
        };
        let room = (
            padding.unit.get().cast::<u8>().cast_const(),
            size_of::<Unit>(),
        );
        let none = (core::ptr::null(), 0);
        // SAFETY: The allocation is of the direct map, aligned so that it is within one page, and
        // outlives the pieces; it goes after the region that covers it.
        let mut pieces = unsafe { Pieces::new(room, core::ptr::null(), 0, 0, none) };
        // There is no XID to tag the address with: it is that of many RPCs.
        // SAFETY: The region was made above and has no other token; nobody else knows of it yet, so
        // nobody deregisters it.
        let mapped = unsafe {
            Region::new(padding.mr.clone()).map(&mut pieces, false, Access::RemoteWrite, 0)
        };
        let mapped = mapped.map_err(|(why, _)| {
            not_mapped(&why);
            why.error
        })?;
        padding.key = mapped.key();
        Ok((padding, mapped))
    }

    /// How a peer names room for `len` bytes of padding.
    pub(super) fn key(&self, len: usize) -> RemoteKey {
        RemoteKey {
            length: len.min(size_of::<Unit>()) as u32,
            ..self.key
        }
    }

    /// What trace events say of that.
    pub(super) fn covered(&self, len: usize) -> Covered {
        Covered {
            id: self.mr.id,
            elements: 1,
            key: self.key(len),
            direction: Access::RemoteWrite.direction(),
        }
    }

    /// Takes the region from the device: afterwards no peer can reach the memory. May sleep.
    ///
    /// To be called when both queues are drained, so that no work request names it any more.
    pub(super) fn deregister(&self) {
        deregister(&self.mr);
    }
}

impl Drop for Padding {
    fn drop(&mut self) {
        // Nothing is left to do unless making it has failed.
        self.deregister();
    }
}
