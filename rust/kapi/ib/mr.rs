// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory regions: the objects of ib_core, and the memory that they cover.

use crate::kapi::{
    bindings,
    ib::{
        buffer::Direction,
        device::longest_piece,
        dma_track, //
    },
    page::{
        ExtentIter,
        Keepers, //
    },
};
use core::{
    cell::UnsafeCell,
    ffi::c_int,
    num::NonZero,
    ptr::NonNull, //
};
use kernel::{
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

/// How often the device may say that it takes less than it has just said.
const TRIES: u32 = 8;

/// What a peer may do to a region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// RDMA Read: for Read chunks.
    RemoteRead,
    /// RDMA Write: for Write chunks and the Reply chunk.
    RemoteWrite,
}

impl Access {
    pub(crate) fn direction(self) -> Direction {
        match self {
            Self::RemoteRead => Direction::ToDevice,
            Self::RemoteWrite => Direction::FromDevice,
        }
    }

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
/// - `mr` is a valid region of `device`, which outlives it, until [`Mr::deregister`] has begun.
/// - `list` is used by the holder of the only token of the region ([`Region`]) while that is
///   [`Idle`], and by whoever holds the lock of `core` otherwise. [`Mr::deregister`] uses it while
///   nobody covers anything.
///
/// [`Region`]: super::region::Region
/// [`Idle`]: super::region::Idle
#[pin_data(PinnedDrop)]
pub(super) struct Mr {
    /// The number of the queue pair that it belongs to.
    pub(super) owner: u64,
    /// The number that the resource tracker has given to it, for trace events.
    pub(super) id: u32,
    sg_gaps: bool,
    mr: NonNull<bindings::ib_mr>,
    device: NonNull<bindings::ib_device>,
    list: UnsafeCell<List>,
    #[pin]
    core: SpinLock<Core>,
}

// SAFETY: Region and device may be used from any thread, and the type invariant says who uses the
// list.
unsafe impl Send for Mr {}
// SAFETY: The region and the device may be used by any threads at once, and the type invariant says
// which of them uses the list.
unsafe impl Sync for Mr {}

/// What is covered, piece by piece.
struct List {
    sg: KVVec<bindings::scatterlist>,
    /// Pages of one element, at most.
    longest: NonZero<u32>,
}

/// # Invariants
///
/// - While `mapped` is not zero, that many elements of the region's list are mapped for its device
///   in `direction`, and `keepers` keep their memory.
/// - `ending` says that [`Mr::deregister`] has begun, `dead` that no peer can reach what the region
///   covered, since its queue pair is gone, and nothing is mapped.
struct Core {
    ending: bool,
    dead: bool,
    mapped: u32,
    direction: Direction,
    keepers: Keepers,
}

/// Bytes of `bytes` that the device takes, which has not placed all of them, but `placed` elements,
/// of `length`, or says with that why none. `ENOBUFS` where it may take them later.
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
    /// What it covers, by the region itself, with so many elements mapped.
    ///
    /// # Safety
    ///
    /// [`Self::deregister`] must not have begun to deregister it.
    unsafe fn covered(&self, elements: u32, direction: Direction) -> Covered {
        let mr = self.mr.as_ptr();
        // SAFETY: The region is not deregistered, as the caller promises. A driver writes at most
        // the same values again.
        let key = unsafe {
            RemoteKey {
                rkey: (*mr).rkey,
                length: u32::try_from((*mr).length).unwrap_or(0),
                iova: (*mr).iova,
            }
        };
        Covered {
            id: self.id,
            elements,
            key,
            direction,
        }
    }

    /// The object of ib_core, valid until [`Self::deregister`] has begun.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_mr {
        self.mr.as_ptr()
    }

    /// Whether the device has let go of it.
    pub(super) fn is_dead(&self) -> bool {
        self.core.lock().dead
    }

    /// How many elements are mapped.
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
        let ending = core.ending;
        let Some((direction, elements, (cover, kept))) = self.take_back(&mut core) else {
            return;
        };
        let covered = if ending {
            Covered::default()
        } else {
            // SAFETY: The lock is held since its end had not begun.
            unsafe { self.covered(elements, direction) }
        };
        drop(core);
        if let Some(cover) = cover {
            drop(cover);
        }
        if let Some(kept) = kept {
            drop(kept);
        }
        tell(covered);
    }

    /// Undoes the mapping, if there is one, and returns its direction and elements, and what kept
    /// the memory: that is to be dropped without the lock.
    fn take_back(&self, core: &mut Core) -> Option<(Direction, u32, Keepers)> {
        if core.mapped == 0 {
            return None;
        }
        let direction = core.direction;
        // INVARIANT: Nothing is mapped after this.
        let mapped = core::mem::take(&mut core.mapped);
        // SAFETY: The lock of `core` is held, and something is mapped: either the region is not
        // idle, and by the type invariant nobody else uses the list, or the caller is who has just
        // mapped it. It is mapped with these values, and the device is alive.
        unsafe {
            let sg = (*self.list.get()).sg.as_mut_ptr();
            dma_track::unmapped(sg as u64, mapped as usize, direction.as_raw());
            bindings::ib_dma_unmap_sg(self.device.as_ptr(), sg, mapped as i32, direction.as_raw());
        };
        let (cover, kept) = &mut core.keepers;
        Some((direction, mapped, (cover.take(), kept.take())))
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
        let mut sg = KVVec::zeroed(pages as usize, GFP_KERNEL)?;
        // SAFETY: The vector has `pages` elements and is not moved or resized afterwards.
        unsafe { bindings::sg_init_table(sg.as_mut_ptr(), pages) };
        // SAFETY: The caller promises that the protection domain is valid.
        let mr = from_err_ptr(unsafe { bindings::ib_alloc_mr(pd.as_ptr(), kind, pages) })?;
        let mr = NonNull::new(mr).ok_or(ENOMEM)?;
        // SAFETY: Allocated above.
        let id = unsafe { (*mr.as_ptr()).res.id };
        let list = List {
            sg,
            // SAFETY: The caller promises that the device is valid.
            longest: unsafe { longest_piece(device.as_ptr()) },
        };
        // INVARIANT: Nothing is mapped.
        let core = Core {
            ending: false,
            dead: false,
            mapped: 0,
            direction: Direction::ToDevice,
            keepers: (None, None),
        };
        // INVARIANT: Allocated above, and the device outlives it, as the caller promises.
        let arc = Arc::pin_init(
            pin_init!(Self {
                owner,
                id,
                sg_gaps,
                mr,
                device,
                list: UnsafeCell::new(list),
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

    /// Takes the region from the device: afterwards no peer can reach what it covered. May sleep.
    ///
    /// `tell` is told what it covered. An error says that the device has not let go of it, for all
    /// that is known; it counts as dead all the same, since the queue pair through which a peer
    /// could reach it is gone.
    ///
    /// # Safety
    ///
    /// No queue pair that names it may be left, or it must cover nothing; nor may anybody be left
    /// who may cover memory with it.
    pub(super) unsafe fn deregister(
        &self,
        tell: impl FnOnce(Covered),
    ) -> Result<(), (Covered, Error)> {
        let mut core = self.core.lock();
        if core::mem::replace(&mut core.ending, true) {
            return Ok(());
        }
        // SAFETY: It is deregistered below, by whoever has set the mark above.
        let covered = unsafe { self.covered(core.mapped, core.direction) };
        drop(core);
        // SAFETY: Valid until now by the type invariant, and nobody else comes here.
        let rc = to_result(unsafe { bindings::ib_dereg_mr(self.mr.as_ptr()) });
        if let Err(e) = rc {
            pr_warn!("a memory region could not be deregistered ({e:?})\n");
        }
        // The memory is unmapped only now that the adapter cannot use it.
        let mut core = self.core.lock();
        let mapped = self.take_back(&mut core);
        core.dead = true;
        // Its memory may be such as is given back only by who may sleep, which whoever drops the
        // last reference may not.
        // SAFETY: The lock is held, and nobody covers anything any more, so by the type invariant
        // nobody else uses the list.
        let sg = unsafe { core::mem::take(&mut (*self.list.get()).sg) };
        drop(core);
        drop(sg);
        if mapped.is_some() {
            tell(covered);
        }
        rc.map_err(|e| (covered, e))
    }
}

#[pinned_drop]
impl PinnedDrop for Mr {
    fn drop(self: Pin<&mut Self>) {
        // Regions are in the table of their queue pair, which deregisters them before it lets go.
        kernel::warn_on!(!self.core.lock().dead);
    }
}

/// How a peer names what a region covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoteKey {
    /// The key.
    pub(crate) rkey: u32,
    /// Bytes.
    pub(crate) length: u32,
    /// The address that it begins at for the peer.
    pub(crate) iova: u64,
}

/// What a region covers, for those who tell of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Covered {
    /// The number that the resource tracker has given to the region.
    pub(crate) id: u32,
    /// Elements of its list.
    pub(crate) elements: u32,
    pub(crate) key: RemoteKey,
    pub(crate) direction: Direction,
}

/// Why memory could not be covered.
pub(crate) struct NotMapped {
    /// `ENOBUFS` when it cannot be mapped, or placed, now; `EIO` when the device refuses it;
    /// `EINVAL` when there is none, or regions of another queue pair.
    pub(crate) error: Error,
    /// What was to be covered, up to the direction; of the key the address alone, that of the
    /// device.
    pub(crate) covered: Covered,
    /// What the device has said to the list, if it was asked.
    pub(crate) placed: Option<i32>,
}

impl NotMapped {
    /// Nothing was tried.
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
        // A driver may allocate memory to cover some (hns_roce does).
        #[cfg(CONFIG_RPCRDMA_DEBUG)]
        kernel::task::might_sleep();
        let mark = pieces.mark();
        // SAFETY: The caller has the token of an idle region, and nobody deregisters it meanwhile.
        // The mark is of these pieces.
        unsafe {
            let placed = self.place(pieces, access);
            if !matches!(placed, Ok(None)) {
                pieces.go_back(mark);
            }
            if let Some(bytes) = placed? {
                self.place_less(pieces, bytes, access)?;
            }
        }

        let mr = self.mr.as_ptr();
        // A key is used once: the peer's late use of an old one must fail.
        // SAFETY: The region is valid, since nobody deregisters it, and nobody else uses it while
        // the caller has its token.
        let key = unsafe {
            bindings::ib_update_fast_reg_key(mr, bindings::ib_inc_rkey((*mr).rkey) as u8);
            let in_page = (*mr).iova & u64::from(PAGE - 1);
            (*mr).iova = (u64::from(tag) << 32) | in_page;
            RemoteKey {
                rkey: (*mr).rkey,
                length: u32::try_from((*mr).length).unwrap_or(0),
                iova: (*mr).iova,
            }
        };
        Ok(key)
    }

    /// Maps what one region can cover, and has the device place all of it. Says how many bytes the
    /// device would take if it takes fewer, of which nothing is mapped then.
    ///
    /// # Safety
    ///
    /// As for [`Self::cover`].
    #[inline]
    unsafe fn place(
        &self,
        pieces: &mut ExtentIter<'_>,
        access: Access,
    ) -> Result<Option<usize>, NotMapped> {
        // SAFETY: The caller has the token of an idle region, and nobody deregisters it meanwhile:
        // by the type invariant nobody else uses the list.
        let List { sg, longest } = unsafe { &mut *self.list.get() };
        let before = pieces.remaining();
        let filled = pieces.fill(sg.as_mut_slice(), self.sg_gaps, *longest);
        let refusal = |error, address, placed| NotMapped {
            error,
            covered: self.not_covered(filled, address, access),
            placed,
        };
        let may_write = access == Access::RemoteRead || pieces.is_writable();
        if filled == 0 || !pieces.is_kept() || !may_write {
            return Err(refusal(EINVAL, 0, None));
        }
        let bytes = before - pieces.remaining();
        let (device, list) = (self.device.as_ptr(), sg.as_mut_ptr());
        let (mr, direction) = (self.mr.as_ptr(), access.direction());
        // SAFETY: The first `filled` elements were set to memory that is valid during this call,
        // and kept then until this region is fenced, or dead. If the device writes there, it is
        // nobody else's. The device is alive as long as the region is.
        let mapped =
            unsafe { bindings::ib_dma_map_sg(device, list, filled as i32, direction.as_raw()) };
        // By value: who takes the mapping back uses the list.
        let address = sg.first().map_or(0, |element| element.dma_address);
        if mapped <= 0 {
            // Bounce buffers are short for a moment.
            return Err(refusal(ENOBUFS, address, None));
        }
        dma_track::mapped(list as u64, filled, direction.as_raw());

        // SAFETY: The region is valid, since nobody deregisters it, and the list is mapped for its
        // device; no offset is given. Nobody else uses the region while the caller has its token.
        let (placed, length) = unsafe {
            // A driver that fails early leaves what was there.
            (*mr).length = 0;
            let placed = bindings::ib_map_mr_sg(mr, list, mapped, core::ptr::null_mut(), PAGE);
            (placed, (*mr).length)
        };
        let mut core = self.core.lock();
        // INVARIANT: `filled` elements were mapped above.
        core.mapped = filled as u32;
        core.direction = direction;
        // There are none, since nothing was mapped: so nothing is dropped here.
        core::mem::forget(core::mem::replace(&mut core.keepers, pieces.keep()));
        if placed == mapped && length == bytes as u64 {
            return Ok(None);
        }
        let undone = self.take_back(&mut core);
        drop(core);
        drop(undone);
        match takes_fewer(placed, length, bytes) {
            Ok(fewer) => Ok(Some(fewer)),
            Err(error) => Err(refusal(error, address, Some(placed))),
        }
    }

    /// What trace events say of a cover that came to nothing.
    #[cold]
    fn not_covered(&self, elements: usize, address: u64, access: Access) -> Covered {
        Covered {
            id: self.id,
            elements: elements as u32,
            key: RemoteKey {
                iova: address,
                ..Default::default()
            },
            direction: access.direction(),
        }
    }

    /// Covers no more than the first `bytes`, since the device takes fewer pieces than a region has
    /// room for: where bounce buffers lose what is in front of a piece in its page, two may not
    /// join.
    ///
    /// # Safety
    ///
    /// As for [`Self::cover`].
    #[cold]
    unsafe fn place_less(
        &self,
        pieces: &mut ExtentIter<'_>,
        mut bytes: usize,
        access: Access,
    ) -> Result<(), NotMapped> {
        for _ in 0..TRIES {
            let mut some = pieces.first(bytes);
            // SAFETY: As the caller promises.
            match unsafe { self.place(&mut some, access)? } {
                None => {
                    pieces.skip(bytes - some.remaining());
                    return Ok(());
                }
                // Fewer each time.
                Some(fewer) => bytes = fewer,
            }
        }
        Err(NotMapped {
            error: EIO,
            covered: Covered {
                id: self.id,
                // It has taken fewer each time, but never all of what was less.
                elements: 1,
                direction: access.direction(),
                ..Default::default()
            },
            placed: Some(0),
        })
    }
}
