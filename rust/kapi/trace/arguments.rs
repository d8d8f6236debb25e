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

/// What an event takes, as C has it.
///
/// # Safety
///
/// [`Self::raw`] is a number, or a pointer to what C expects there, valid as long as `self` is
/// borrowed.
pub(in crate::kapi) unsafe trait Argument {
    /// The type that C has for it.
    type Raw;

    /// The value for C.
    fn raw(&self) -> Self::Raw;
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: A number.
        unsafe impl Argument for $type {
            type Raw = $type;

            #[inline]
            fn raw(&self) -> $type {
                *self
            }
        }
    )*};
}

plain!(bool, i32, u32, i64, u64, usize);

// SAFETY: A number.
unsafe impl Argument for Error {
    type Raw = i32;

    #[inline]
    fn raw(&self) -> i32 {
        self.to_errno()
    }
}

/// What work requests are called in events: the number that the resource tracker has given to their
/// completion queue, and one that tells them from others of the same queue. It is that of the
/// buffer, of the transfer or of the memory region, which has one work request or chain of them at
/// a time.
#[derive(Clone, Copy, Default)]
pub(crate) struct CompletionId(bindings::rpc_rdma_cid);

impl CompletionId {
    /// Of a completion queue, and a number.
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

// SAFETY: A pointer to the borrowed structure.
unsafe impl Argument for CompletionId {
    type Raw = *const bindings::rpc_rdma_cid;

    #[inline]
    fn raw(&self) -> Self::Raw {
        &raw const self.0
    }
}

// SAFETY: A pointer to the borrowed address, which is initialised by the type invariant.
unsafe impl Argument for SocketAddress {
    type Raw = *const bindings::sockaddr;

    fn raw(&self) -> Self::Raw {
        self.as_raw()
    }
}

// SAFETY: A pointer into the borrowed array, which ends with a 0 by the type invariant.
unsafe impl Argument for DeviceName {
    type Raw = *const c_char;

    #[inline]
    fn raw(&self) -> Self::Raw {
        self.as_ptr()
    }
}

/// A task of the RPC layer: its number, and that of its client.
#[derive(Clone, Copy)]
pub(crate) struct TaskId(bindings::rpcrdma_rs_task);

impl TaskId {
    /// Of what is sent for no task.
    pub(crate) const NONE: Self = Self(bindings::rpcrdma_rs_task {
        task: 0,
        client: u32::MAX,
    });

    /// Of a task, which may have no client.
    pub(in crate::kapi) fn new(task: u32, client: Option<u32>) -> Self {
        Self(bindings::rpcrdma_rs_task {
            task,
            client: client.unwrap_or(Self::NONE.0.client),
        })
    }
}

// SAFETY: A pointer to the borrowed structure.
unsafe impl Argument for TaskId {
    type Raw = *const bindings::rpcrdma_rs_task;

    #[inline]
    fn raw(&self) -> Self::Raw {
        &raw const self.0
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

// SAFETY: A pointer to the borrowed structure.
unsafe impl Argument for CoveredRegion {
    type Raw = *const bindings::rpcrdma_rs_region;

    #[inline]
    fn raw(&self) -> Self::Raw {
        &raw const self.0
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

// SAFETY: A number.
unsafe impl Argument for Carriage {
    type Raw = u32;

    #[inline]
    fn raw(&self) -> u32 {
        *self as u32
    }
}
