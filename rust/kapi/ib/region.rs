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

use super::super::{
    bindings,
    page::{
        KeptPages,
        Pieces, //
    },
    sys::trace::{
        self,
        CoveredRegion, //
    }, //
};
use super::{
    buffer::Direction,
    device::longest_piece,
    ledger, //
};
use core::{
    marker::PhantomData,
    num::NonZero,
    ptr::NonNull, //
};
use kernel::{
    alloc::Flags,
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
#[pin_data(PinnedDrop)]
pub(super) struct Mr {
    /// The number that the resource tracker has given to it, for trace events.
    pub(super) id: u32,
    #[pin]
    core: SpinLock<Core>,
}

/// # Invariants
///
/// `mr` is a valid region of `device`, or none once its end has begun; `dead` says that the device
/// has let go of it and nothing is mapped. While `mapped` is not zero, that
/// many elements of `sg` are mapped for `device` in `direction`, and `kept` has what keeps their
/// memory where its owner does not. The device outlives `mr`.
struct Core {
    mr: Option<NonNull<bindings::ib_mr>>,
    dead: bool,
    device: NonNull<bindings::ib_device>,
    sg: KVVec<bindings::scatterlist>,
    /// Pages of one element, at most.
    longest: NonZero<u32>,
    mapped: u32,
    direction: Direction,
    kept: Option<Arc<KeptPages>>,
}

// SAFETY: The region and its list are used under the lock alone, from any thread.
unsafe impl Send for Core {}

impl Core {
    /// What it covers, by the region itself.
    fn covered(&self) -> CoveredRegion {
        let Some(mr) = self.mr else {
            return CoveredRegion::default();
        };
        // SAFETY: Valid by the type invariant. A driver writes at most the same values again.
        let (id, segment) = unsafe {
            let mr = mr.as_ptr();
            let segment = Segment {
                handle: (*mr).rkey,
                length: u32::try_from((*mr).length).unwrap_or(0),
                offset: (*mr).iova,
            };
            ((*mr).res.id, segment)
        };
        CoveredRegion::new(id, self.mapped, segment, self.direction.as_raw())
    }

    /// Where the first element is, as the device knows it.
    fn address(&self) -> u64 {
        self.sg.first().map_or(0, |element| element.dma_address)
    }

    /// Undoes the mapping, if there is one; `covered` says what it was.
    fn unmap(&mut self, covered: impl FnOnce(&Self) -> CoveredRegion) {
        if self.mapped == 0 {
            return;
        }
        trace::xprtrdma_mr_unmap(|| covered(self));
        // INVARIANT: Nothing is mapped after this.
        let mapped = core::mem::take(&mut self.mapped);
        self.note_mapping(mapped, ledger::unmapped);
        // SAFETY: By the type invariant mapped with these values, and the device is alive.
        unsafe {
            bindings::ib_dma_unmap_sg(
                self.device.as_ptr(),
                self.sg.as_mut_ptr(),
                mapped as i32,
                self.direction.as_raw(),
            )
        };
        // The device cannot reach it any more.
        drop(self.kept.take());
    }

    /// Tells the ledger of the mapped list as of one mapping: the list goes and comes as a whole.
    fn note_mapping(&self, elements: u32, note: fn(u64, usize, bindings::dma_data_direction)) {
        note(
            self.sg.as_ptr() as u64,
            elements as usize,
            self.direction.as_raw(),
        );
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
        // SAFETY: The protection domain is valid by contract.
        let mr = from_err_ptr(unsafe { bindings::ib_alloc_mr(pd.as_ptr(), kind, pages) })
            .inspect_err(|e| trace::xprtrdma_frwr_alloc(|| (0, *e)))?;
        let mr = NonNull::new(mr).ok_or(ENOMEM)?;
        // SAFETY: Allocated above.
        let id = unsafe { (*mr.as_ptr()).res.id };
        // INVARIANT: Allocated above; nothing is mapped.
        let core = Core {
            mr: Some(mr),
            dead: false,
            device,
            sg,
            // SAFETY: The device is valid by contract.
            longest: unsafe { longest_piece(device.as_ptr()) },
            mapped: 0,
            direction: Direction::ToDevice,
            kept: None,
        };
        let arc = Arc::pin_init(
            pin_init!(Self {
                id,
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
    /// To be called when both queues are drained, so that no work request names it any more.
    pub(super) fn kill(&self) {
        let mut core = self.core.lock();
        let covered = core.covered();
        // INVARIANT: Its end begins; nobody uses it from here on.
        let Some(mr) = core.mr.take() else { return };
        drop(core);
        // SAFETY: Valid until now by the type invariant, and nobody else can find it any more.
        let rc = to_result(unsafe { bindings::ib_dereg_mr(mr.as_ptr()) });
        if let Err(e) = rc {
            trace::xprtrdma_frwr_dereg(|| (covered, e));
            pr_warn!("a memory region could not be deregistered ({e:?})\n");
        }
        // The memory is unmapped only now that the adapter cannot use it.
        let mut core = self.core.lock();
        core.unmap(|_| covered);
        core.dead = true;
        // Its memory may be such as is given back only by who may sleep, which whoever drops the last
        // reference may not.
        let sg = core::mem::take(&mut core.sg);
        drop(core);
        drop(sg);
    }
}

#[pinned_drop]
impl PinnedDrop for Mr {
    fn drop(self: Pin<&mut Self>) {
        // Regions are in the table of their queue pair, which kills them before it lets go.
        kernel::warn_on!(self.core.lock().mr.is_some());
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
    pub(super) fn new(mr: Arc<Mr>) -> Self {
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
    /// the kernel gets on the wire. Does not sleep. `ENOBUFS` when the memory cannot be mapped
    /// now, `EIO` when the device refuses it, `ENOTCONN` when the region is dead.
    #[inline]
    pub(super) fn arm(
        self,
        pieces: &mut Pieces<'_>,
        sg_gaps: bool,
        access: Access,
        tag: u32,
    ) -> Result<Region<Armed>, (Error, Self)> {
        match self.mr.cover(pieces, sg_gaps, access, tag) {
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
    fn cover(
        &self,
        pieces: &mut Pieces<'_>,
        sg_gaps: bool,
        access: Access,
        tag: u32,
    ) -> Result<Segment> {
        let mut guard = self.core.lock();
        let core = &mut *guard;
        let mr = core.mr.ok_or(ENOTCONN)?;

        let filled = pieces.fill(core.sg.as_mut_slice(), sg_gaps, core.longest);
        if filled == 0 {
            return Err(EINVAL);
        }
        let direction = access.direction();
        // SAFETY: The first `filled` elements were set to memory that the RPC layer keeps until
        // this region is fenced, or the connection until it is dead, or that what the pieces keep
        // does; the device is alive as long as the region is.
        let mapped = unsafe {
            bindings::ib_dma_map_sg(
                core.device.as_ptr(),
                core.sg.as_mut_ptr(),
                filled as i32,
                direction.as_raw(),
            )
        };
        let mapped_elements = u32::try_from(mapped).unwrap_or(0);
        if mapped_elements == 0 {
            trace::xprtrdma_frwr_sgerr(|| {
                let direction = direction.as_raw().0;
                (self.id, core.address(), direction, filled as u32)
            });
            // Bounce buffers are short: the RPC layer tries again later.
            return Err(ENOBUFS);
        }
        // INVARIANT: `filled` elements were mapped by the call above.
        core.mapped = filled as u32;
        core.direction = direction;
        core.kept = pieces.kept();
        core.note_mapping(core.mapped, ledger::mapped);

        // SAFETY: The region and the mapped list are valid; no offset is given.
        let placed = unsafe {
            bindings::ib_map_mr_sg(
                mr.as_ptr(),
                core.sg.as_mut_ptr(),
                mapped as i32,
                core::ptr::null_mut(),
                kernel::page::PAGE_SIZE as u32,
            )
        };
        if placed < 0 || placed as u32 != mapped_elements {
            trace::xprtrdma_frwr_maperr(|| {
                let direction = direction.as_raw().0;
                (self.id, core.address(), direction, placed, core.mapped)
            });
            core.unmap(Core::covered);
            return Err(EIO);
        }

        // A key is used once: the peer's late use of an old one must fail.
        // SAFETY: The region is valid, and used by nobody else while this token exists.
        let segment = unsafe {
            let mr = mr.as_ptr();
            bindings::ib_update_fast_reg_key(mr, bindings::ib_inc_rkey((*mr).rkey) as u8);
            let in_page = (*mr).iova & (kernel::page::PAGE_SIZE as u64 - 1);
            (*mr).iova = (u64::from(tag) << 32) | in_page;
            Segment {
                handle: (*mr).rkey,
                length: u32::try_from((*mr).length).unwrap_or(0),
                offset: (*mr).iova,
            }
        };
        Ok(segment)
    }
}

impl Region<Armed> {
    /// How a chunk names it.
    pub(super) fn segment(&self) -> Segment {
        self.segment
    }

    /// Gives the memory back: nothing was posted.
    pub(super) fn disarm(self) -> Region<Idle> {
        self.mr.core.lock().unmap(Core::covered);
        self.into_state()
    }

    /// What its registration names; `ENOTCONN` when it is dead.
    pub(super) fn registration(&self) -> Result<Registration> {
        let mr = self.mr.core.lock().mr.ok_or(ENOTCONN)?;
        Ok(Registration {
            mr: mr.as_ptr(),
            rkey: self.segment.handle,
            access: self.access,
        })
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
        self.mr.core.lock().unmap(Core::covered);
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
        self.mr.core.lock().unmap(Core::covered);
        self.into_state()
    }
}

/// The regions of one RPC.
pub(crate) struct Regions {
    pub(super) armed: KVec<Region<Armed>>,
    pub(super) registered: KVec<Region<Registered>>,
    pub(super) invalidating: KVec<Region<Invalidating>>,
}

impl Drop for Regions {
    fn drop(&mut self) {
        self.bury();
        // The RPC's memory may be reused while a peer can reach it.
        kernel::warn_on!(self.fenced().is_none());
    }
}

/// Proof that no peer can reach memory of an RPC (RFC 8166, section 4.4.1).
pub(crate) struct Fenced(());

impl Regions {
    /// Room for `n` regions. May sleep as `flags` say.
    pub(crate) fn new(n: usize, flags: Flags) -> Result<Self> {
        Ok(Self {
            armed: KVec::with_capacity(n, flags)?,
            registered: KVec::with_capacity(n, flags)?,
            invalidating: KVec::with_capacity(n, flags)?,
        })
    }

    /// Makes room for `n` regions in all, where there is less. May sleep as `flags` say.
    pub(crate) fn make_room(&mut self, n: usize, flags: Flags) -> Result {
        self.armed
            .reserve(n.saturating_sub(self.armed.len()), flags)?;
        self.registered
            .reserve(n.saturating_sub(self.registered.len()), flags)?;
        self.invalidating
            .reserve(n.saturating_sub(self.invalidating.len()), flags)?;
        Ok(())
    }

    /// How many regions there are.
    pub(super) fn count(&self) -> usize {
        self.armed.len() + self.registered.len() + self.invalidating.len()
    }

    /// How many more regions there is room for: each may come to be in any of the lists.
    pub(crate) fn room(&self) -> usize {
        let least = self.armed.capacity().min(self.registered.capacity());
        let least = least.min(self.invalidating.capacity());
        least.saturating_sub(self.count())
    }

    /// What trace events say of the region that was armed last.
    pub(crate) fn last_armed(&self) -> CoveredRegion {
        self.armed.last().map(Region::covered).unwrap_or_default()
    }

    /// Lets go of the regions that tear-down has taken from the device.
    #[inline]
    pub(crate) fn bury(&mut self) {
        // As a rule there are none any more.
        if self.fenced().is_none() {
            self.registered.retain(|region| !region.is_dead());
            self.invalidating.retain(|region| !region.is_dead());
        }
    }

    /// Proof that no peer can reach the memory, if so.
    #[inline]
    pub(crate) fn fenced(&self) -> Option<Fenced> {
        let none = self.registered.is_empty() && self.invalidating.is_empty();
        none.then_some(Fenced(()))
    }
}
