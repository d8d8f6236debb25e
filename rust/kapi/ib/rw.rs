// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA Reads and Writes between memory and the segments of a peer.
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)

use crate::kapi::{
    bindings,
    ib::{
        device::longest_piece,
        gate::{
            Gate,
            Target, //
        },
    },
    page::{
        ExtentIter,
        TransferMemory, //
    },
    sys::uses::Use, //
};
use core::num::NonZero;
use kernel::{
    alloc::Flags,
    error::to_result,
    page::PAGE_SIZE,
    prelude::*, //
};

/// The direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransferKind {
    /// From the peer's memory.
    Read,
    /// Into the peer's memory.
    Write,
}

impl TransferKind {
    fn as_raw(self) -> bindings::dma_data_direction {
        match self {
            Self::Read => bindings::dma_data_direction::DMA_FROM_DEVICE,
            Self::Write => bindings::dma_data_direction::DMA_TO_DEVICE,
        }
    }
}

/// The part of a transfer for one segment.
struct Op {
    context: bindings::rdma_rw_ctx,
    first: usize,
    count: usize,
}

/// The number of ends of runs within a message. No byte is transferred twice, so each is passed
/// once at most, which makes one part more.
const RUN_ENDS: usize = 2;

/// Requests between memory and the segments of a peer, with the memory.
///
/// # Invariants
///
/// - Each part's context is initialised for `count` elements from `first` on, and neither moves:
///   no vector is resized.
/// - `counted` is there as long as parts are, so that the queue pair is valid.
/// - The elements name pieces of `memory`.
pub(crate) struct RwCtx {
    parts: KVVec<Op>,
    elements: KVVec<bindings::bio_vec>,
    kind: TransferKind,
    /// Pages of one element, at most.
    longest: NonZero<u32>,
    target: Target,
    /// The number of the queue pair.
    owner: u64,
    requests: usize,
    memory: TransferMemory,
    /// None once it is unmapped.
    counted: Option<Use>,
}

// SAFETY: The queue pair may be used from any thread, and the rest is owned.
unsafe impl Send for RwCtx {}

/// Memory could not be added.
pub(crate) struct NotAdded {
    /// `EMSGSIZE` if there is no room, or no memory; `EAGAIN` when the core has no region; or what
    /// the device says.
    pub(crate) error: Error,
    /// The number of elements that the device was asked to take, if it was.
    pub(crate) elements: u32,
}

impl From<Error> for NotAdded {
    fn from(error: Error) -> Self {
        Self { error, elements: 0 }
    }
}

impl RwCtx {
    /// Creates one for `parts` calls of [`Self::add`], of that queue pair. May sleep, as `flags`
    /// say.
    pub(super) fn new(
        gate: &Gate,
        kind: TransferKind,
        memory: TransferMemory,
        (parts, flags): (usize, Flags),
    ) -> Result<KBox<Self>> {
        if kind == TransferKind::Read && !memory.is_writable() {
            return Err(EINVAL);
        }
        let (counted, objects) = gate.keep_objects()?;
        let target = objects.target;
        // SAFETY: The queue pair is valid, since this is counted.
        let longest = unsafe { longest_element(target, kind) };
        let elements = Self::elements_for(&memory, parts);
        let elements = KVVec::with_capacity(elements, flags)?;
        let parts = KVVec::with_capacity(parts.saturating_add(RUN_ENDS), flags)?;
        // INVARIANT: There are no parts, and room for all that `add` takes.
        let transfer = init!(Self {
            parts,
            elements,
            kind,
            longest,
            target,
            owner: gate.number(),
            requests: 0,
            memory,
            counted: Some(counted),
        }? Error);
        KBox::init(transfer, flags)
    }

    /// Returns whether the core takes regions for RDMA Writes, too, since it was told to
    /// (`ib_core.force_mr=1`, for tests). The parameter is the core's own, and some devices have
    /// regions for other reasons: so this shows only when one is prepared. May sleep.
    pub(super) fn is_forced(gate: &Gate) -> Result<bool> {
        let memory = TransferMemory::kept(&ExtentIter::scratch(1)?)?;
        let mut write = Self::new(gate, TransferKind::Write, memory, (1, GFP_KERNEL))?;
        match write.add(0, 1, (0, 0)) {
            // The registration is a request of its own.
            Ok(_) => Ok(write.requests() > 1),
            // The pool is empty.
            Err(why) if why.error == EAGAIN => Ok(true),
            Err(why) => Err(why.error),
        }
    }

    /// Returns the number of elements that there is room for, for a number of parts.
    pub(crate) fn elements_for(memory: &TransferMemory, parts: usize) -> usize {
        // Each part may begin and end within a page.
        let ends = parts.saturating_add(RUN_ENDS).saturating_mul(2);
        (memory.len() / PAGE_SIZE).saturating_add(ends)
    }

    /// Returns whether it has RDMA Writes, and not RDMA Reads.
    pub(crate) fn writes(&self) -> bool {
        self.kind == TransferKind::Write
    }

    /// Returns whether it can be posted to the queue pair of that number: once, before it is
    /// unmapped.
    pub(super) fn is_for(&self, owner: u64) -> bool {
        self.owner == owner && self.counted.is_some()
    }

    /// Returns the number of bytes that were added.
    pub(crate) fn bytes(&self) -> u32 {
        let lengths = self.elements.iter().map(|element| element.bv_len);
        lengths.fold(0, u32::wrapping_add)
    }

    /// Returns the number of pieces of memory that were added, each for one segment of the peer;
    /// none once it is unmapped.
    pub(crate) fn pieces(&self) -> usize {
        self.parts.len()
    }

    /// Adds bytes of the memory, up to where it goes on elsewhere, `len` at most, and as many of
    /// the peer's from that address on; says how many. May sleep.
    pub(crate) fn add(
        &mut self,
        offset: usize,
        len: usize,
        (rkey, iova): (u32, u64),
    ) -> Result<usize, NotAdded> {
        if self.counted.is_none() {
            return Err(EINVAL.into());
        }
        let first = self.elements.len();
        let elements = &mut self.elements;
        // What an adapter is to see as one piece must be without gaps.
        let add = |bv_page, bv_offset, bv_len| {
            let element = bindings::bio_vec {
                bv_page,
                bv_len: bv_len as u32,
                bv_offset: bv_offset as u32,
            };
            elements.push_within_capacity(element).map_err(|_| EMSGSIZE)
        };
        let len = self.memory.take_at(offset, len, self.longest, add)?;
        if len == 0 {
            return Err(EMSGSIZE.into());
        }
        let iter = bindings::bvec_iter {
            bi_size: u32::try_from(len).map_err(|_| EMSGSIZE)?,
            ..Default::default()
        };
        let elements = self.elements.as_ptr().wrapping_add(first);
        let part = Op {
            context: bindings::rdma_rw_ctx::default(),
            first,
            count: self.elements.len() - first,
        };
        let at = self.parts.len();
        // The context is initialised in its place, since it points into itself.
        self.parts
            .push_within_capacity(part)
            .map_err(|_| EMSGSIZE)?;
        let part = self.parts.get_mut(at).ok_or(EMSGSIZE)?;
        let (context, n) = (&raw mut part.context, part.count as u32);
        let (Target { qp, port }, way) = (self.target, self.kind.as_raw());
        // SAFETY: The queue pair is valid, since this is counted. The elements name memory
        // that stays as long as `self`. Neither they nor the context move.
        let requests = unsafe {
            bindings::rdma_rw_ctx_init_bvec(context, qp, port, elements, n, iter, iova, rkey, way)
        };
        if requests < 0 {
            let elements = part.count as u32;
            // It is not initialised, so it must not be destroyed.
            let _ = self.parts.pop();
            self.elements.truncate(first);
            let error = to_result(requests).err().unwrap_or(EIO);
            return Err(NotAdded { error, elements });
        }
        // INVARIANT: Initialised above.
        self.requests += requests as usize;
        Ok(len)
    }

    /// Returns the pieces of memory as the core is told of them.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(crate) fn elements(&self) -> &[bindings::bio_vec] {
        &self.elements
    }

    /// Returns the number of work requests.
    pub(crate) fn requests(&self) -> usize {
        self.requests
    }

    /// Links all requests before `last`; without one, the end is signaled to `done`. Returns the
    /// first. To be called once.
    ///
    /// # Safety
    ///
    /// The requests may be used only as long as the transfer stays.
    pub(super) unsafe fn link(
        &mut self,
        mut last: *mut bindings::ib_send_wr,
        done: *mut bindings::ib_cqe,
    ) -> *mut bindings::ib_send_wr {
        for part in self.parts.iter_mut().rev() {
            // SAFETY: The context is initialised, and the queue pair valid, by the type invariant.
            last = unsafe {
                bindings::rdma_rw_ctx_wrs(
                    &mut part.context,
                    self.target.qp,
                    self.target.port,
                    done,
                    last,
                )
            };
        }
        last
    }

    /// Takes the memory from the device.
    ///
    /// A box of the caller's own was not posted, or came back from the ring: the device does not
    /// use the memory, or is past asking.
    pub(super) fn unmap(&mut self) {
        for part in self.parts.iter_mut() {
            let elements = self.elements.as_ptr().wrapping_add(part.first);
            // SAFETY: Initialised with these, and the queue pair valid, by the type invariant.
            unsafe {
                bindings::rdma_rw_ctx_destroy_bvec(
                    &mut part.context,
                    self.target.qp,
                    self.target.port,
                    elements,
                    part.count as u32,
                    self.kind.as_raw(),
                )
            };
        }
        self.parts.clear();
        // INVARIANT: There are none any more.
        self.counted = None;
    }

    /// Takes the memory from the device, and gives it back. It may outlive the queue pair.
    pub(crate) fn into_memory(mut this: KBox<Self>) -> TransferMemory {
        this.unmap();
        // INVARIANT: There are no parts any more, nor elements that name the memory.
        this.elements.clear();
        core::mem::take(&mut this.memory)
    }
}

/// Returns the number of pages of one element, at most.
///
/// # Safety
///
/// The queue pair must be valid.
unsafe fn longest_element(target: Target, kind: TransferKind) -> NonZero<u32> {
    let Target { qp, port } = target;
    // SAFETY: The queue pair is valid, as the caller promises, and so is its device.
    unsafe {
        let device = (*qp).device;
        // These read into regions, for which the core counts elements where the device counts
        // pages.
        if kind == TransferKind::Read && bindings::rdma_protocol_iwarp(device, port) {
            return NonZero::<u32>::MIN;
        }
        longest_piece(device)
    }
}

impl Drop for RwCtx {
    fn drop(&mut self) {
        self.unmap();
    }
}
