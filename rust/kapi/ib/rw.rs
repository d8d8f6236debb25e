// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA Reads and Writes between memory and the segments of a peer.
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)

mod trace;

use crate::kapi::{
    bindings,
    ib::{
        device::longest_piece,
        forced::Forced,
        qp::Target, //
    },
    page::{
        Gathered,
        Pattern, //
    },
    trace::{
        svcrdma_dma_map_rw_err,
        svcrdma_rwctx_empty,
        CompletionId, //
    },
};
use core::{
    mem::MaybeUninit,
    num::NonZero, //
};
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    },
};

/// Which way data go.
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

/// What belongs to one segment.
struct Part {
    context: bindings::rdma_rw_ctx,
    first: usize,
    count: usize,
}

/// Requests between memory and the segments of a peer, with the memory.
///
/// # Invariants
///
/// - Each part's context is initialised for `count` elements from `first` on, and neither moves:
///   no vector is resized.
/// - The queue pair is valid as long as there are parts.
/// - The elements name pieces of `memory`.
pub(super) struct RwCtx {
    parts: KVVec<Part>,
    elements: KVVec<bindings::bio_vec>,
    kind: TransferKind,
    /// Pages of one element, at most.
    longest: NonZero<u32>,
    target: Target,
    requests: usize,
    /// How many requests come before those for the Reply chunk.
    reply_chunk_from: usize,
    /// What its requests are called in trace events.
    id: CompletionId,
    posted: Option<Instant<Monotonic>>,
    /// Who waits for its regions, if the core takes some for all transfers.
    forced: Option<Arc<Forced>>,
    memory: Gathered,
}

// SAFETY: The queue pair may be used from any thread, and the rest is owned.
unsafe impl Send for RwCtx {}

impl RwCtx {
    /// For `parts` calls of [`Self::add`]; `forced` is whom to tell of regions that come back. May sleep.
    ///
    /// # Safety
    ///
    /// The queue pair must be valid until the result is unmapped or dropped.
    pub(super) unsafe fn new(
        target: Target,
        kind: TransferKind,
        memory: Gathered,
        parts: usize,
        id: CompletionId,
        forced: Option<Arc<Forced>>,
    ) -> Result<KBox<Self>> {
        let longest = match forced {
            // For regions the core counts elements where the device counts pages.
            Some(_) => NonZero::<u32>::MIN,
            // SAFETY: The queue pair is valid, as the caller promises.
            None => unsafe { longest_element(target, kind) },
        };
        // No byte is transferred twice, so each end of a run is passed once at most.
        let parts = parts + 2;
        // Each part may begin and end within a page.
        let elements = memory.len() / PAGE_SIZE + 2 * parts;
        // INVARIANT: There are no parts, and room for all that `add` takes.
        let transfer = init!(Self {
            parts: KVVec::with_capacity(parts, GFP_KERNEL)?,
            elements: KVVec::with_capacity(elements, GFP_KERNEL)?,
            kind,
            longest,
            target,
            requests: 0,
            reply_chunk_from: usize::MAX,
            id,
            posted: None,
            forced,
            memory,
        }? Error);
        KBox::init(transfer, GFP_KERNEL)
            .inspect_err(|_| svcrdma_rwctx_empty(|| (id.queue(), elements as u32)))
    }

    /// What is added from here on is for the Reply chunk.
    pub(super) fn begin_reply_chunk(&mut self) {
        self.reply_chunk_from = self.requests;
    }

    /// How many pieces of memory were added, each for one segment of the peer; none once it is unmapped.
    pub(super) fn pieces(&self) -> usize {
        self.parts.len()
    }

    /// Adds bytes of the memory, up to where it goes on elsewhere, `len` at most, and as many of the peer's
    /// from that address on; says how many. `EMSGSIZE` if there is no room, or no memory.
    pub(super) fn add(
        &mut self,
        offset: usize,
        len: usize,
        (rkey, iova): (u32, u64),
    ) -> Result<usize> {
        let first = self.elements.len();
        let elements = &mut self.elements;
        // What an adapter is to see as one piece must be without gaps.
        let len = self.memory.take_at(offset, len, self.longest, |pattern| {
            add_elements(elements, &pattern)
        })?;
        if len == 0 {
            return Err(EMSGSIZE);
        }
        let iter = bindings::bvec_iter {
            bi_size: u32::try_from(len).map_err(|_| EMSGSIZE)?,
            ..Default::default()
        };
        let elements = self.elements.as_ptr().wrapping_add(first);
        let part = Part {
            context: bindings::rdma_rw_ctx::default(),
            first,
            count: self.elements.len() - first,
        };
        let at = self.parts.len();
        // The context is initialised in its place, since it points into itself.
        self.parts
            .push_within_capacity(part)
            .map_err(|_| EMSGSIZE)?;
        let Some(part) = self.parts.get_mut(at) else {
            return Err(EMSGSIZE);
        };
        let (context, n) = (&raw mut part.context, part.count as u32);
        let (Target { qp, port }, way) = (self.target, self.kind.as_raw());
        // SAFETY: The queue pair is valid: its owner's `Poster` is held. The elements name memory
        // that stays as long as `self`. Neither they nor the context move.
        let requests = unsafe {
            bindings::rdma_rw_ctx_init_bvec(context, qp, port, elements, n, iter, iova, rkey, way)
        };
        if requests < 0 {
            let elements = part.count as u32;
            // It is not initialised, so it must not be destroyed.
            let _ = self.parts.pop();
            self.elements.truncate(first);
            return to_result(requests).map(|()| 0).inspect_err(|e| {
                svcrdma_dma_map_rw_err(|| (self.id.queue(), rkey, iova, elements, *e));
            });
        }
        // INVARIANT: Initialised above.
        self.requests += requests as usize;
        Ok(len)
    }

    /// Whether no other transfer of the queue pair has regions of the pool now.
    pub(super) fn is_only_user(&self) -> bool {
        let own: u32 = self.parts.iter().map(|part| part.context.nr_ops).sum();
        // SAFETY: The queue pair is valid: its owner's `Poster` is held. Others change the number under a
        // lock of the core's; it is read at once.
        let used = unsafe { (&raw const (*self.target.qp).mrs_used).read_volatile() };
        used as u32 == own
    }

    /// The pieces of memory as the core is told of them.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(super) fn elements(&self) -> &[bindings::bio_vec] {
        &self.elements
    }

    /// How many work requests that is.
    pub(super) fn requests(&self) -> usize {
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

    /// Takes the memory from the device, which must not use it any more, or be past asking.
    pub(super) fn unmap(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        self.trace_release();
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
        if let Some(forced) = &self.forced {
            forced.came_back();
        }
    }

    /// Takes the memory of RDMA Reads from the device, as [`Self::unmap`] does.
    pub(super) fn into_fetched(mut this: KBox<Self>) -> Fetched {
        this.unmap();
        this.elements.clear();
        // INVARIANT: There are no parts any more, nor elements that name the memory.
        Fetched(this)
    }
}

/// Memory that RDMA Reads have filled, or some of it, or that there were none for. It may outlive the
/// queue pair.
///
/// # Invariants
///
/// The transfer has no parts, so that the device does not use the memory, and no elements.
pub(crate) struct Fetched(KBox<RwCtx>);

impl Fetched {
    /// Bytes of the memory.
    pub(crate) fn len(&self) -> usize {
        self.0.memory.len()
    }

    /// Copies `to.len()` bytes out, from `offset`. `EMSGSIZE` if there are not so many.
    pub(crate) fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result {
        self.0.memory.copy_to(offset, to)
    }

    /// Puts the pages at the beginning of an array, and lets go of those that were there. Returns the
    /// bytes that are in them. `EINVAL` if the pages may be others', too, or there is no room for them:
    /// then the array stays as it is.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner lets go.
    pub(in super::super) unsafe fn put_into(
        mut self,
        entries: &mut [*mut bindings::page],
    ) -> Result<usize> {
        // SAFETY: The caller promises the same of the entries.
        unsafe { self.0.memory.put_into(entries) }
    }
}

/// Pages of one element, at most.
///
/// # Safety
///
/// The queue pair must be valid.
unsafe fn longest_element(target: Target, kind: TransferKind) -> NonZero<u32> {
    let Target { qp, port } = target;
    // SAFETY: The queue pair is valid, as the caller promises, and so is its device.
    unsafe {
        let device = (*qp).device;
        // These read into regions, for which the core counts elements where the device counts pages.
        if kind == TransferKind::Read && bindings::rdma_protocol_iwarp(device, port) {
            return NonZero::<u32>::MIN;
        }
        longest_piece(device)
    }
}

/// Adds the elements, if there is room.
fn add_elements(elements: &mut KVVec<bindings::bio_vec>, pattern: &Pattern<'_>) -> bool {
    let set = |element: &mut MaybeUninit<_>, bv_page, bv_offset, bv_len| {
        element.write(bindings::bio_vec {
            bv_page,
            bv_len,
            bv_offset,
        });
    };
    let lengthen = |element: &mut MaybeUninit<bindings::bio_vec>, by| {
        // SAFETY: Only what was set before is lengthened.
        let len = unsafe { &mut element.assume_init_mut().bv_len };
        // No message is so long that this wraps.
        *len = len.wrapping_add(by);
    };
    let n = pattern.put(elements.spare_capacity_mut(), set, lengthen);
    // SAFETY: So many elements were set.
    unsafe { elements.inc_len(n.unwrap_or(0)) };
    n.is_some()
}

impl Drop for RwCtx {
    fn drop(&mut self) {
        self.unmap();
    }
}
