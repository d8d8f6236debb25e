// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory regions, typed by state.
//!
//! ```text
//!             chain posted with Send            reply: this region's rkey remotely invalidated
//!   Idle ──────> Armed ──────> Registered ──────────────────────────────────────────> Idle
//!    ^             │              │  │ reply otherwise: LocalInv posted     completed │
//!    └─ not posted ┘              │  └───────────────> Invalidating ─────────────────┤
//!                                 └── tear-down, both queues drained ──> Dead         v
//! ```
//!
//! A [`Region`] is the right to use one memory region; only a [`Registered`] one has an rkey that
//! a peer may hold. Any of them may be found dead: the tear-down of its queue pair took the
//! region from the device after both queues were drained, so no peer can reach the memory.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    ib::{
        buffer::Direction,
        device::longest_piece,
        ledger, //
    },
    page::{
        KeptPages,
        Pieces, //
    },
    trace::{
        self,
        CoveredRegion, //
    },
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
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
use xdr::Segment;

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
    pub(super) fn direction(self) -> Direction {
        match self {
            Self::RemoteRead => Direction::ToDevice,
            Self::RemoteWrite => Direction::FromDevice,
        }
    }

    pub(super) fn as_raw(self) -> u32 {
        match self {
            Self::RemoteRead => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
            Self::RemoteWrite => {
                bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                    | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
            }
        }
    }
}

/// State: covers nothing.
pub(super) struct Idle;
/// State: covers memory, but no registration was posted.
pub(super) struct Armed;
/// State: the registration was posted; the peer may hold the rkey.
pub(super) struct Registered;
/// State: the local invalidation was posted.
pub(super) struct Invalidating;

/// The part of a memory region that its queue pair's tear-down can reach.
///
/// # Invariants
///
/// - `mr` is a valid region of `device`, which outlives it, until [`Mr::kill`] has begun.
/// - `list` is used by the holder of the region's only [`Region`] while that is [`Idle`], and by
///   whoever holds the lock of `core` otherwise. [`Mr::kill`] uses it while nobody covers anything.
#[pin_data(PinnedDrop)]
pub(super) struct Mr {
    /// The number that the resource tracker has given to it, for trace events.
    pub(super) id: u32,
    mr: NonNull<bindings::ib_mr>,
    device: NonNull<bindings::ib_device>,
    list: UnsafeCell<List>,
    #[pin]
    core: SpinLock<Core>,
}

// SAFETY: Region and device may be used from any thread, and the type invariant says who uses the list.
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
/// - While `mapped` is not zero, that many elements of the region's list are mapped for its device in
///   `direction`, and `kept` has what keeps their memory where its owner does not.
/// - `ending` says that [`Mr::kill`] has begun, `dead` that the device has let go of the region and
///   nothing is mapped.
struct Core {
    ending: bool,
    dead: bool,
    mapped: u32,
    direction: Direction,
    kept: Option<Arc<KeptPages>>,
}

impl Mr {
    /// What it covers, by the region itself, with so many elements mapped.
    ///
    /// # Safety
    ///
    /// [`Self::kill`] must not have begun to deregister it.
    unsafe fn covered(&self, elements: u32, direction: Direction) -> CoveredRegion {
        let mr = self.mr.as_ptr();
        // SAFETY: The region is not deregistered, as the caller promises. A driver writes at most the
        // same values again.
        let segment = unsafe {
            Segment {
                handle: (*mr).rkey,
                length: u32::try_from((*mr).length).unwrap_or(0),
                offset: (*mr).iova,
            }
        };
        CoveredRegion::new(self.id, elements, segment, direction.as_raw())
    }

    /// Takes the memory from the device, if the tear-down has not done so: no peer can reach it.
    fn uncover(&self) {
        let mut core = self.core.lock();
        let ending = core.ending;
        self.unmap(&mut core, |direction, elements| {
            if ending {
                return CoveredRegion::default();
            }
            // SAFETY: The lock is held since its end had not begun.
            unsafe { self.covered(elements, direction) }
        });
    }

    /// Undoes the mapping, if there is one; `covered` says what it was.
    fn unmap(&self, core: &mut Core, covered: impl FnOnce(Direction, u32) -> CoveredRegion) {
        if core.mapped == 0 {
            return;
        }
        let direction = core.direction;
        trace::xprtrdma_mr_unmap(|| covered(direction, core.mapped));
        // INVARIANT: Nothing is mapped after this.
        let mapped = core::mem::take(&mut core.mapped);
        // SAFETY: The lock of `core` is held, and something is mapped, so the region is not idle: by the
        // type invariant nobody else uses the list. It is mapped with these values, and the device is
        // alive.
        unsafe {
            let sg = (*self.list.get()).sg.as_mut_ptr();
            ledger::unmapped(sg as u64, mapped as usize, direction.as_raw());
            bindings::ib_dma_unmap_sg(self.device.as_ptr(), sg, mapped as i32, direction.as_raw());
        };
        // The device cannot reach it any more.
        drop(core.kept.take());
    }
}

impl Mr {
    /// Makes a region of at most `pages` pages. May sleep.
    ///
    /// # Safety
    ///
    /// `pd` must be a valid protection domain of `device`, and both must stay so until
    /// [`Mr::kill`] has returned.
    pub(super) unsafe fn new(
        pd: NonNull<bindings::ib_pd>,
        device: NonNull<bindings::ib_device>,
        pages: u32,
        sg_gaps: bool,
    ) -> Result<Arc<Self>> {
        let kind = if sg_gaps {
            bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS
        } else {
            bindings::ib_mr_type_IB_MR_TYPE_MEM_REG
        };
        let mut sg = KVVec::zeroed(pages as usize, GFP_KERNEL)?;
        // SAFETY: The vector has `pages` elements and is not moved or resized afterwards.
        unsafe { bindings::sg_init_table(sg.as_mut_ptr(), pages) };
        // SAFETY: The caller promises that the protection domain is valid.
        let mr = from_err_ptr(unsafe { bindings::ib_alloc_mr(pd.as_ptr(), kind, pages) })
            .inspect_err(|e| trace::xprtrdma_frwr_alloc(|| (0, *e)))?;
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
            kept: None,
        };
        // INVARIANT: Allocated above, and the device outlives it, as the caller promises.
        let arc = Arc::pin_init(
            pin_init!(Self {
                id,
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
    /// To be called when both queues are drained, so that no work request names it any more, and
    /// nobody who may cover memory with it is left.
    pub(super) fn kill(&self) {
        let mut core = self.core.lock();
        if core::mem::replace(&mut core.ending, true) {
            return;
        }
        // SAFETY: It is deregistered below, by whoever has set the mark above.
        let covered = unsafe { self.covered(core.mapped, core.direction) };
        drop(core);
        // SAFETY: Valid until now by the type invariant, and nobody else comes here.
        let rc = to_result(unsafe { bindings::ib_dereg_mr(self.mr.as_ptr()) });
        if let Err(e) = rc {
            trace::xprtrdma_frwr_dereg(|| (covered, e));
            pr_warn!("a memory region could not be deregistered ({e:?})\n");
        }
        // The memory is unmapped only now that the adapter cannot use it.
        let mut core = self.core.lock();
        self.unmap(&mut core, |_, _| covered);
        core.dead = true;
        // Its memory may be such as is given back only by who may sleep, which whoever drops the last
        // reference may not.
        // SAFETY: The lock is held, and nobody covers anything any more, so by the type invariant
        // nobody else uses the list.
        let sg = unsafe { core::mem::take(&mut (*self.list.get()).sg) };
        drop(core);
        drop(sg);
    }
}

#[pinned_drop]
impl PinnedDrop for Mr {
    fn drop(self: Pin<&mut Self>) {
        // Regions are in the table of their queue pair, which kills them before it lets go.
        kernel::warn_on!(!self.core.lock().dead);
    }
}

/// What a posted registration needs to know.
pub(super) struct Registration {
    pub(super) mr: *mut bindings::ib_mr,
    pub(super) rkey: u32,
    pub(super) access: Access,
}

/// What a posted local invalidation needs to know.
#[derive(Clone, Copy)]
pub(super) struct Invalidation {
    pub(super) rkey: u32,
    /// The number of the region, for trace events.
    pub(super) region: u32,
}

/// The right to use one memory region, in state `S`.
pub(super) struct Region<S> {
    mr: Arc<Mr>,
    segment: Segment,
    access: Access,
    _state: PhantomData<S>,
}

impl<S> Region<S> {
    fn into_state<T>(self) -> Region<T> {
        Region {
            mr: self.mr,
            segment: self.segment,
            access: self.access,
            _state: PhantomData,
        }
    }

    /// Whether tear-down has taken the region from the device.
    pub(super) fn is_dead(&self) -> bool {
        self.mr.core.lock().dead
    }

    /// The number of the region, for trace events.
    pub(super) fn id(&self) -> u32 {
        self.mr.id
    }

    /// What trace events say of it.
    pub(super) fn covered(&self) -> CoveredRegion {
        let elements = self.mr.core.lock().mapped;
        let direction = self.access.direction().as_raw();
        CoveredRegion::new(self.id(), elements, self.segment, direction)
    }
}

impl Region<Idle> {
    /// # Safety
    ///
    /// It must be the only [`Region`] of `mr`.
    pub(super) unsafe fn new(mr: Arc<Mr>) -> Self {
        Self {
            mr,
            segment: Segment {
                handle: 0,
                length: 0,
                offset: 0,
            },
            access: Access::RemoteRead,
            _state: PhantomData,
        }
    }

    /// Covers as many of the pieces as fit into one region, and takes them from `pieces`.
    ///
    /// The peer's address space for it starts at `tag` in the upper half, so that no address of
    /// the kernel gets on the wire. May sleep, as drivers may. `ENOBUFS` when the memory cannot be
    /// mapped, or placed, now; `EIO` when the device refuses it.
    ///
    /// # Safety
    ///
    /// [`Mr::kill`] must not have begun, and must not begin before this has returned.
    #[inline]
    pub(super) unsafe fn arm(
        self,
        pieces: &mut Pieces<'_>,
        sg_gaps: bool,
        access: Access,
        tag: u32,
    ) -> Result<Region<Armed>, (Error, Self)> {
        // SAFETY: The region is idle and this its only token; nobody kills it, as the caller promises.
        match unsafe { self.mr.cover(pieces, sg_gaps, access, tag) } {
            Ok(segment) => {
                let mut armed = self.into_state::<Armed>();
                armed.segment = segment;
                armed.access = access;
                Ok(armed)
            }
            Err(e) => Err((e, self)),
        }
    }
}

impl Mr {
    /// See [`Region::arm`].
    ///
    /// # Safety
    ///
    /// As for that; and the caller must have the region's only token, which is [`Idle`].
    unsafe fn cover(
        &self,
        pieces: &mut Pieces<'_>,
        sg_gaps: bool,
        access: Access,
        tag: u32,
    ) -> Result<Segment> {
        // A driver may allocate memory to cover some (hns_roce does).
        #[cfg(CONFIG_RPCRDMA_DEBUG)]
        kernel::task::might_sleep();
        let whole = pieces.clone();
        // SAFETY: The caller has the token of an idle region, and nobody kills it meanwhile.
        unsafe {
            if let Some(bytes) = self.place(pieces, sg_gaps, access)? {
                *pieces = whole;
                self.place_less(pieces, bytes, sg_gaps, access)?;
            }
        }

        let mr = self.mr.as_ptr();
        // A key is used once: the peer's late use of an old one must fail.
        // SAFETY: The region is valid, since nobody kills it, and nobody else uses it while the caller
        // has its token.
        let segment = unsafe {
            bindings::ib_update_fast_reg_key(mr, bindings::ib_inc_rkey((*mr).rkey) as u8);
            let in_page = (*mr).iova & u64::from(PAGE - 1);
            (*mr).iova = (u64::from(tag) << 32) | in_page;
            Segment {
                handle: (*mr).rkey,
                length: u32::try_from((*mr).length).unwrap_or(0),
                offset: (*mr).iova,
            }
        };
        Ok(segment)
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
        pieces: &mut Pieces<'_>,
        sg_gaps: bool,
        access: Access,
    ) -> Result<Option<usize>> {
        // SAFETY: The caller has the token of an idle region, and nobody kills it meanwhile: by the
        // type invariant nobody else uses the list.
        let List { sg, longest } = unsafe { &mut *self.list.get() };
        let before = pieces.remaining();
        let filled = pieces.fill(sg.as_mut_slice(), sg_gaps, *longest);
        if filled == 0 {
            return Err(EINVAL);
        }
        let bytes = before - pieces.remaining();
        let (device, list) = (self.device.as_ptr(), sg.as_mut_ptr());
        let (mr, direction) = (self.mr.as_ptr(), access.direction());
        // SAFETY: The first `filled` elements were set to memory that the RPC layer keeps until
        // this region is fenced, or the connection until it is dead, or that what the pieces keep
        // does; the device is alive as long as the region is.
        let mapped =
            unsafe { bindings::ib_dma_map_sg(device, list, filled as i32, direction.as_raw()) };
        let address = || sg.first().map_or(0, |element| element.dma_address);
        if mapped <= 0 {
            trace::xprtrdma_frwr_sgerr(|| {
                (self.id, address(), direction.as_raw().0, filled as u32)
            });
            // Bounce buffers are short: the RPC layer tries again later.
            return Err(ENOBUFS);
        }
        ledger::mapped(list as u64, filled, direction.as_raw());

        // SAFETY: The region is valid, since nobody kills it, and the list is mapped for its device; no
        // offset is given. Nobody else uses the region while the caller has its token.
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
        core.kept = pieces.kept();
        let whole = length == bytes as u64;
        if placed == mapped && whole {
            return Ok(None);
        }
        trace::xprtrdma_frwr_maperr(|| {
            (
                self.id,
                address(),
                direction.as_raw().0,
                placed,
                core.mapped,
            )
        });
        // SAFETY: Nobody kills it.
        self.unmap(&mut core, |direction, n| unsafe {
            self.covered(n, direction)
        });
        match usize::try_from(length) {
            Ok(fewer) if placed >= 0 && fewer != 0 && fewer < bytes => Ok(Some(fewer)),
            // Memory for it is short, of which some drivers say that nothing was placed (hns_roce does), before or
            // after they have looked at the length: the RPC layer tries again later.
            _ if placed == ENOMEM.to_errno() => Err(ENOBUFS),
            _ if placed == 0 && (whole || length == 0) => Err(ENOBUFS),
            _ => Err(EIO),
        }
    }

    /// Covers no more than the first `bytes`, since the device takes fewer pieces than a region has room
    /// for: where bounce buffers lose what is in front of a piece in its page, two may not join.
    ///
    /// # Safety
    ///
    /// As for [`Self::cover`].
    #[cold]
    unsafe fn place_less(
        &self,
        pieces: &mut Pieces<'_>,
        mut bytes: usize,
        sg_gaps: bool,
        access: Access,
    ) -> Result {
        for _ in 0..TRIES {
            let mut some = pieces.first(bytes);
            // SAFETY: As the caller promises.
            match unsafe { self.place(&mut some, sg_gaps, access)? } {
                None => {
                    pieces.skip(bytes - some.remaining());
                    return Ok(());
                }
                // Fewer each time.
                Some(fewer) => bytes = fewer,
            }
        }
        Err(EIO)
    }
}

impl Region<Armed> {
    /// How a chunk names it.
    pub(super) fn segment(&self) -> Segment {
        self.segment
    }

    /// Gives the memory back: nothing was posted.
    pub(super) fn disarm(self) -> Region<Idle> {
        self.mr.uncover();
        self.into_state()
    }

    /// What its registration names, for as long as nobody kills it.
    pub(super) fn registration(&self) -> Registration {
        Registration {
            mr: self.mr.mr.as_ptr(),
            rkey: self.segment.handle,
            access: self.access,
        }
    }

    /// The registration was posted, or may have been.
    pub(super) fn posted(self) -> Region<Registered> {
        self.into_state()
    }
}

impl Region<Registered> {
    /// The key that a peer may hold.
    pub(super) fn rkey(&self) -> u32 {
        self.segment.handle
    }

    /// A completed Receive said that this key was invalidated: the memory is ours again.
    ///
    /// Gives the region back as it was when the key is another.
    #[inline]
    pub(super) fn invalidated_by(self, rkey: u32) -> Result<Region<Idle>, Self> {
        if self.rkey() != rkey {
            return Err(self);
        }
        self.mr.uncover();
        Ok(self.into_state())
    }

    /// What its local invalidation names.
    pub(super) fn invalidation(&self) -> Invalidation {
        Invalidation {
            rkey: self.rkey(),
            region: self.id(),
        }
    }

    /// The local invalidation was posted.
    pub(super) fn invalidation_posted(self) -> Region<Invalidating> {
        self.into_state()
    }
}

impl Region<Invalidating> {
    /// The local invalidation has completed well.
    pub(super) fn completed(self) -> Region<Idle> {
        self.mr.uncover();
        self.into_state()
    }
}
