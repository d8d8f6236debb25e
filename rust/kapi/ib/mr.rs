// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory regions: the objects of ib_core, and the memory that they cover.

use crate::kapi::{
    bindings,
    ib::{
        buffer::raw,
        device::longest_piece,
        dma_track,
        node::Node, //
    },
    page::{
        ExtentIter,
        Keepers, //
    },
    sys::warn::warn_if, //
};
use core::{
    ffi::c_int,
    num::NonZero,
    ops::ControlFlow,
    ptr::NonNull, //
};
use kernel::{
    dma::DataDirection,
    error::{
        from_err_ptr,
        to_result, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

/// Bytes of a page, as regions count them.
const PAGE: u32 = kernel::page::PAGE_SIZE as u32;

/// The number of times that the device may say that it takes less than it has just said.
const TRIES: u32 = 8;

/// The right that a peer has to a region.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// RDMA Read: for Read chunks.
    #[default]
    RemoteRead,
    /// RDMA Write: for Write chunks and the Reply chunk.
    RemoteWrite,
}

impl Access {
    /// Returns the way in which data flow.
    pub(crate) fn direction(self) -> DataDirection {
        match self {
            Self::RemoteRead => DataDirection::ToDevice,
            Self::RemoteWrite => DataDirection::FromDevice,
        }
    }

    /// Returns the verbs' flags for it.
    pub(crate) fn as_raw(self) -> u32 {
        match self {
            Self::RemoteRead => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
            Self::RemoteWrite => {
                bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                    | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
            }
        }
    }
}

/// The part of a memory region that its queue pair's tear-down can reach.
///
/// # Invariants
///
/// `mr` is a valid region of `device`, which outlives it, until [`Mr::deregister`] has begun.
#[pin_data(PinnedDrop)]
pub(super) struct Mr {
    /// The number of the queue pair that it belongs to.
    pub(super) owner: u64,
    /// The number that the resource tracker has given to it, for trace events.
    pub(super) id: u32,
    sg_gaps: bool,
    /// Pages of one element, at most.
    longest: NonZero<u32>,
    mr: NonNull<bindings::ib_mr>,
    device: NonNull<bindings::ib_device>,
    #[pin]
    core: SpinLock<Core>,
}

// SAFETY: Region and device may be used from any thread.
unsafe impl Send for Mr {}
// SAFETY: The region and the device may be used by any threads at once.
unsafe impl Sync for Mr {}

/// # Invariants
///
/// - While `mapped` is not zero, that many elements of `sg` are mapped for the region's device for
///   `access`, and `keepers` keep their memory.
/// - `ending` says that [`Mr::deregister`] has begun, `dead` that no peer can reach what the region
///   covered, since its queue pair is gone, and nothing is mapped.
struct Core {
    ending: bool,
    dead: bool,
    mapped: u32,
    access: Access,
    keepers: Keepers,
    /// The pieces that are covered. Empty while [`Mr::cover`] has it.
    sg: KVVec<bindings::scatterlist>,
}

/// Returns the number of bytes of `bytes` that the device takes, which has not placed all of them,
/// but `placed` elements, of `length`, or says with that why none. `ENOBUFS` where it may take them
/// later.
fn takes_fewer(placed: c_int, length: u64, bytes: usize) -> Result<usize> {
    match usize::try_from(length) {
        Ok(fewer) if placed >= 0 && fewer != 0 && fewer < bytes => Ok(fewer),
        // Memory for it is short, of which some drivers say that nothing was placed (hns_roce
        // does), before or after they have looked at the length.
        _ if placed == ENOMEM.to_errno() => Err(ENOBUFS),
        Ok(length) if placed == 0 && (length == bytes || length == 0) => Err(ENOBUFS),
        _ => Err(EIO),
    }
}

impl Mr {
    /// Makes a region of at most `pages` pages, not of none, which may have gaps between them, for
    /// the queue pair of that number. May sleep.
    ///
    /// # Safety
    ///
    /// `pd` must be a valid protection domain of `device`, and both must stay so until
    /// [`Mr::deregister`] has returned.
    pub(super) unsafe fn new(
        (pd, device): (NonNull<bindings::ib_pd>, NonNull<bindings::ib_device>),
        owner: u64,
        pages: u32,
        sg_gaps: bool,
    ) -> Result<Arc<Self>> {
        let kind = if sg_gaps {
            bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS
        } else {
            bindings::ib_mr_type_IB_MR_TYPE_MEM_REG
        };
        if pages == 0 {
            return Err(EINVAL);
        }
        // SAFETY: The caller promises that the device is valid.
        let node = unsafe { Node::of(device) };
        let mut sg = node.room_for(pages as usize)?;
        for _ in 0..pages {
            sg.push(bindings::scatterlist::default(), GFP_KERNEL)?;
        }
        // SAFETY: The vector has `pages` elements and is not resized afterwards.
        unsafe { bindings::sg_init_table(sg.as_mut_ptr(), pages) };
        // SAFETY: The caller promises that the protection domain is valid.
        let mr = from_err_ptr(unsafe { bindings::ib_alloc_mr(pd.as_ptr(), kind, pages) })?;
        let mr = NonNull::new(mr).ok_or(ENOMEM)?;
        // INVARIANT: Nothing is mapped.
        let core = Core {
            ending: false,
            dead: false,
            mapped: 0,
            access: Access::default(),
            keepers: (None, None),
            sg,
        };
        // INVARIANT: Allocated above, and the device outlives it, as the caller promises.
        let arc = Arc::pin_init(
            pin_init!(Self {
                owner,
                // SAFETY: Allocated above.
                id: unsafe { (*mr.as_ptr()).res.id },
                sg_gaps,
                // SAFETY: The caller promises that the device is valid.
                longest: unsafe { longest_piece(device.as_ptr()) },
                mr,
                device,
                core <- new_spinlock!(core, "rpcrdma_region"),
            }),
            GFP_KERNEL,
        );
        if arc.is_err() {
            // SAFETY: Allocated above, and the object that would have owned it was not made.
            unsafe { bindings::ib_dereg_mr(mr.as_ptr()) };
        }
        arc
    }

    /// Returns how a peer names what the region covers.
    ///
    /// # Safety
    ///
    /// [`Self::deregister`] must not have begun to deregister it.
    unsafe fn key(&self) -> RemoteKey {
        let mr = self.mr.as_ptr();
        // SAFETY: The region is not deregistered, as the caller promises. A driver writes at most
        // the same values again.
        unsafe {
            RemoteKey {
                rkey: (*mr).rkey,
                length: u32::try_from((*mr).length).unwrap_or(0),
                iova: (*mr).iova,
            }
        }
    }

    /// Returns what it covers, by the region itself.
    ///
    /// # Safety
    ///
    /// As for [`Self::key`].
    unsafe fn covered(&self, core: &Core) -> Covered {
        Covered {
            id: self.id,
            elements: core.mapped,
            // SAFETY: As the caller promises.
            key: unsafe { self.key() },
            access: core.access,
        }
    }

    /// Returns the object of ib_core, valid until [`Self::deregister`] has begun.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_mr {
        self.mr.as_ptr()
    }

    /// Returns whether the device has let go of it.
    pub(super) fn is_dead(&self) -> bool {
        self.core.lock().dead
    }

    /// Returns the number of elements that are mapped.
    pub(super) fn mapped(&self) -> u32 {
        self.core.lock().mapped
    }

    /// Takes the memory from the device, if the tear-down has not done so: no peer can reach it.
    /// `tell` is told what was covered.
    ///
    /// # Safety
    ///
    /// No peer may be able to reach the memory, unless the tear-down has begun.
    pub(super) unsafe fn uncover(&self, tell: impl FnOnce(Covered)) {
        let mut core = self.core.lock();
        let covered = match core.ending {
            true => Covered::default(),
            // SAFETY: The lock is held since its end had not begun.
            false => unsafe { self.covered(&core) },
        };
        let Some(keepers) = self.take_back(&mut core) else {
            return;
        };
        drop(core);
        drop(keepers);
        tell(covered);
    }

    /// Undoes the mapping, if there is one, and returns what kept the memory: that is to be dropped
    /// without the lock.
    fn take_back(&self, core: &mut Core) -> Option<Keepers> {
        // INVARIANT: Nothing is mapped after this.
        let mapped = core::mem::take(&mut core.mapped);
        if mapped == 0 {
            return None;
        }
        // SAFETY: They are mapped so, by the type invariant, and count as such no more.
        unsafe { self.unmap(&mut core.sg, mapped, core.access) };
        Some(core::mem::take(&mut core.keepers))
    }

    /// Undoes a mapping.
    ///
    /// # Safety
    ///
    /// The first `mapped` elements must be mapped for the device and that access, and be used as
    /// such no more.
    unsafe fn unmap(&self, sg: &mut [bindings::scatterlist], mapped: u32, access: Access) {
        let (device, sg) = (self.device.as_ptr(), sg.as_mut_ptr());
        let direction = raw(access.direction());
        dma_track::unmapped(sg as u64, mapped as usize, direction);
        // SAFETY: Mapped so, as the caller promises, and the device is alive.
        unsafe { bindings::ib_dma_unmap_sg(device, sg, mapped as i32, direction) };
    }

    /// Takes the region from the device: afterwards no peer can reach what it covered. May sleep.
    ///
    /// Returns what it covered, if it did. An error says that the device has not let go of it, for
    /// all that is known; it counts as dead all the same, since the queue pair through which a peer
    /// could reach it is gone.
    ///
    /// # Safety
    ///
    /// No queue pair that names it may be left, or it must cover nothing; nor may anything be left
    /// that may cover memory with it.
    pub(super) unsafe fn deregister(&self) -> Option<(Covered, Result)> {
        let mut core = self.core.lock();
        if core::mem::replace(&mut core.ending, true) {
            return None;
        }
        // SAFETY: It is deregistered below, by whoever has set the mark above.
        let covered = unsafe { self.covered(&core) };
        drop(core);
        // SAFETY: Valid until now by the type invariant, and nobody else comes here.
        let rc = to_result(unsafe { bindings::ib_dereg_mr(self.mr.as_ptr()) });
        if let Err(e) = rc {
            pr_warn!("a memory region could not be deregistered ({e:?})\n");
        }
        // The memory is unmapped only now that the adapter cannot use it.
        let mut core = self.core.lock();
        let keepers = self.take_back(&mut core);
        core.dead = true;
        // Large lists are given back only where one may sleep, and the last reference may be
        // dropped elsewhere.
        let sg = core::mem::take(&mut core.sg);
        drop(core);
        drop(sg);
        (keepers.is_some() || rc.is_err()).then_some((covered, rc))
    }
}

#[pinned_drop]
impl PinnedDrop for Mr {
    fn drop(self: Pin<&mut Self>) {
        // Regions are in the table of their queue pair, which deregisters them before it lets go.
        warn_if(!self.core.lock().dead);
    }
}

/// The name that a peer has for the memory of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoteKey {
    /// The key.
    pub(crate) rkey: u32,
    /// Bytes.
    pub(crate) length: u32,
    /// The address that it begins at for the peer.
    pub(crate) iova: u64,
}

/// The memory that a region covers, for trace events.
#[derive(Clone, Copy, Default)]
pub(crate) struct Covered {
    /// The number that the resource tracker has given to the region.
    pub(crate) id: u32,
    /// Elements of its list.
    pub(crate) elements: u32,
    pub(crate) key: RemoteKey,
    pub(crate) access: Access,
}

/// The reason why memory could not be covered.
pub(crate) struct NotMapped {
    /// `ENOBUFS` when it cannot be mapped, or placed, now; `EIO` when the device refuses it;
    /// `EINVAL` when there is none, or regions of another queue pair.
    pub(crate) error: Error,
    /// The memory that was to be covered, with the access; of the key the address alone, that of
    /// the device.
    pub(crate) covered: Covered,
    /// The answer of the device to the list, if it was asked.
    pub(crate) placed: Option<i32>,
}

impl NotMapped {
    /// Returns that nothing was tried.
    pub(super) fn nothing(error: Error) -> Self {
        Self {
            error,
            covered: Covered::default(),
            placed: None,
        }
    }
}

impl Mr {
    /// Covers as many of the pieces as fit, and takes them from `pieces`, but none after an error;
    /// see [`Region::map`].
    ///
    /// # Safety
    ///
    /// [`Self::deregister`] must not have begun, nor begin before this returns, and the caller must
    /// have the region's only token, which is [`Idle`].
    ///
    /// [`Region::map`]: super::region::Region::map
    /// [`Idle`]: super::region::Idle
    pub(super) unsafe fn cover(
        &self,
        pieces: &mut ExtentIter<'_>,
        access: Access,
        tag: u32,
    ) -> Result<RemoteKey, NotMapped> {
        // A driver may allocate memory to cover some (hns_roce does), so no lock is held. Nobody
        // else wants the list of an idle region.
        #[cfg(CONFIG_RPCRDMA_DEBUG)]
        kernel::task::might_sleep();
        let mut sg = core::mem::take(&mut self.core.lock().sg);
        // SAFETY: As the caller promises.
        let placed = unsafe { self.place_most(&mut sg, pieces, access) };
        let mut core = self.core.lock();
        core.sg = sg;
        let (elements, bytes) = placed?;
        // INVARIANT: So many were mapped.
        core.mapped = elements;
        core.access = access;
        core.keepers = pieces.keep();
        drop(core);
        pieces.skip(bytes);

        let mr = self.mr.as_ptr();
        // SAFETY: The region is valid, since nobody deregisters it, and nobody else uses it while
        // the caller has its token.
        unsafe {
            // A key is used once: the peer's late use of an old one must fail.
            bindings::ib_update_fast_reg_key(mr, bindings::ib_inc_rkey((*mr).rkey) as u8);
            let in_page = (*mr).iova & u64::from(PAGE - 1);
            (*mr).iova = (u64::from(tag) << 32) | in_page;
            Ok(self.key())
        }
    }

    /// Maps what one region can cover, and has the device place it, or fewer bytes of it where the
    /// device takes fewer pieces than a region has room for: where bounce buffers lose what is in
    /// front of a piece in its page, two may not join. Returns the number of elements and of bytes.
    ///
    /// # Safety
    ///
    /// As for [`Self::cover`].
    unsafe fn place_most(
        &self,
        sg: &mut [bindings::scatterlist],
        pieces: &ExtentIter<'_>,
        access: Access,
    ) -> Result<(u32, usize), NotMapped> {
        let mut most = usize::MAX;
        for _ in 0..=TRIES {
            // SAFETY: As the caller promises.
            match unsafe { self.place(sg, pieces, most, access) }? {
                ControlFlow::Break(placed) => return Ok(placed),
                // Fewer each time.
                ControlFlow::Continue(fewer) => most = fewer,
            }
        }
        // It has taken fewer each time, but never all of what was less.
        Err(self.not_mapped(EIO, (1, 0), access, Some(0)))
    }

    /// Maps at most the first `most` bytes, and has the device place all of them. Returns the
    /// number of elements and of bytes; or the number of bytes that the device would take if it
    /// takes fewer, of which nothing is mapped then.
    ///
    /// # Safety
    ///
    /// As for [`Self::cover`].
    unsafe fn place(
        &self,
        sg: &mut [bindings::scatterlist],
        pieces: &ExtentIter<'_>,
        most: usize,
        access: Access,
    ) -> Result<ControlFlow<(u32, usize), usize>, NotMapped> {
        let (filled, bytes) = pieces.fill(most, sg, self.sg_gaps, self.longest);
        let refusal = |e, address, placed| self.not_mapped(e, (filled, address), access, placed);
        let writes = access == Access::RemoteWrite;
        if filled == 0 || !pieces.can_be_covered(writes) {
            return Err(refusal(EINVAL, 0, None));
        }
        let (device, list) = (self.device.as_ptr(), sg.as_mut_ptr());
        let (mr, direction) = (self.mr.as_ptr(), raw(access.direction()));
        // SAFETY: The first `filled` elements were set to memory that is valid during this call,
        // and kept then until this region is fenced, or dead. If the device writes there, it is
        // nobody else's. The device is alive as long as the region is.
        let mapped = unsafe { bindings::ib_dma_map_sg(device, list, filled as i32, direction) };
        let address = sg.first().map_or(0, |element| element.dma_address);
        if mapped <= 0 {
            // Bounce buffers are short for a moment.
            return Err(refusal(ENOBUFS, address, None));
        }
        dma_track::mapped(list as u64, filled, direction);

        // SAFETY: The region is valid, since nobody deregisters it, and the list is mapped for its
        // device; no offset is given. Nobody else uses the region while the caller has its token.
        let (placed, length) = unsafe {
            // A driver that fails early leaves what was there.
            (*mr).length = 0;
            let placed = bindings::ib_map_mr_sg(mr, list, mapped, core::ptr::null_mut(), PAGE);
            (placed, (*mr).length)
        };
        if placed == mapped && length == bytes as u64 {
            return Ok(ControlFlow::Break((filled as u32, bytes)));
        }
        // SAFETY: They were mapped above, and no registration of them is posted.
        unsafe { self.unmap(sg, filled as u32, access) };
        let fewer = takes_fewer(placed, length, bytes);
        fewer
            .map(ControlFlow::Continue)
            .map_err(|e| refusal(e, address, Some(placed)))
    }

    /// Returns what trace events say of a cover that came to nothing.
    #[cold]
    fn not_mapped(
        &self,
        error: Error,
        (elements, iova): (usize, u64),
        access: Access,
        placed: Option<c_int>,
    ) -> NotMapped {
        let key = RemoteKey {
            iova,
            ..Default::default()
        };
        let covered = Covered {
            id: self.id,
            elements: elements as u32,
            key,
            access,
        };
        NotMapped {
            error,
            covered,
            placed,
        }
    }
}
