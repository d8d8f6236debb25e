// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What trace events take.
//!
//! All of it is copied from where it is, at the moment of the event: of what may be gone soon, a
//! task or a region, only the numbers are left.

use crate::kapi::{
    bindings,
    ib::{
        Covered,
        DeviceName,
        RecvBuf, //
    },
    sys::address::SocketAddress, //
};
use kernel::{
    ffi::c_char,
    prelude::*, //
};

/// An argument of an event, as C has it.
///
/// # Safety
///
/// [`Self::raw`] is a number, or a pointer to what C expects there, valid as long as `self` is
/// borrowed.
pub(in crate::kapi) unsafe trait Argument {
    /// The type that C has for it.
    type Raw;

    /// Returns the value for C.
    fn raw(&self) -> Self::Raw;
}

/// Makes arguments of types: each with the type that C has for it, and the value of that.
macro_rules! arguments {
    ($($type:ty as $raw:ty: |$value:ident| $of:expr;)*) => {$(
        // SAFETY: The value is a number, or a pointer to what C expects in what is borrowed, as the
        // list of this macro says of each.
        unsafe impl Argument for $type {
            type Raw = $raw;

            #[inline]
            fn raw(&self) -> $raw {
                let $value = self;
                $of
            }
        }
    )*};
}

arguments! {
    // Numbers.
    bool as bool: |on| *on;
    i32 as i32: |number| *number;
    u32 as u32: |number| *number;
    i64 as i64: |number| *number;
    u64 as u64: |number| *number;
    usize as usize: |number| *number;
    Error as i32: |error| error.to_errno();
    Carriage as u32: |carriage| *carriage as u32;
    // Pointers to structures of C, which are all that the borrowed values have.
    CompletionId as *const bindings::rpc_rdma_cid: |id| &raw const id.0;
    TaskId as *const bindings::rpcrdma_rs_task: |id| &raw const id.0;
    CoveredRegion as *const bindings::rpcrdma_rs_region: |region| &raw const region.0;
    // A pointer to the borrowed address, which is initialised by the type invariant.
    SocketAddress as *const bindings::sockaddr: |address| address.as_raw();
    // A pointer into the borrowed array, which ends with a 0 by the type invariant.
    DeviceName as *const c_char: |name| name.as_ptr();
}

/// Names work requests in events: the number that the resource tracker has given to their
/// completion queue, and one that tells them from others of the same queue. It is that of the
/// buffer, of the transfer or of the memory region, which has one work request or chain of them at
/// a time.
#[derive(Clone, Copy, Default)]
pub(crate) struct CompletionId(bindings::rpc_rdma_cid);

impl CompletionId {
    /// Makes one of a completion queue and a number.
    pub(crate) fn new(queue: u32, number: u32) -> Self {
        Self(bindings::rpc_rdma_cid {
            ci_queue_id: queue,
            // Events show it as signed, as those of the in-tree module do.
            ci_completion_id: number as i32,
        })
    }
}

impl From<&RecvBuf> for CompletionId {
    #[inline]
    fn from(message: &RecvBuf) -> Self {
        Self::new(message.cq(), message.index())
    }
}

/// A task of the RPC layer: its number, and that of its client.
#[derive(Clone, Copy)]
pub(crate) struct TaskId(bindings::rpcrdma_rs_task);

impl TaskId {
    /// The task of what is sent for none.
    pub(crate) const NONE: Self = Self(bindings::rpcrdma_rs_task {
        task: 0,
        client: u32::MAX,
    });

    /// Makes one of a task, which may have no client.
    pub(in crate::kapi) fn new(task: u32, client: Option<u32>) -> Self {
        Self(bindings::rpcrdma_rs_task {
            task,
            client: client.unwrap_or(Self::NONE.0.client),
        })
    }
}

/// A memory region, and what it covers.
#[derive(Clone, Copy, Default)]
pub(crate) struct CoveredRegion(bindings::rpcrdma_rs_region);

impl From<Covered> for CoveredRegion {
    fn from(covered: Covered) -> Self {
        Self(bindings::rpcrdma_rs_region {
            offset: covered.key.iova,
            length: covered.key.length,
            handle: covered.key.rkey,
            id: covered.id,
            elements: covered.elements,
            direction: covered.access.direction() as i32,
        })
    }
}

/// How a Call goes out, or its results come back; with the numbers of the in-tree module.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Carriage {
    /// Results inline.
    Inline = 0,
    /// The Call inline, copied behind its header.
    Copied = 1,
    /// A Read chunk.
    ReadChunk = 3,
    /// A Position Zero Read chunk.
    PositionZero = 4,
    /// A Write chunk.
    WriteChunk = 5,
    /// A Reply chunk.
    ReplyChunk = 6,
}
