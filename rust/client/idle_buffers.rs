// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Buffers for the messages of RPCs to come.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/idle_buffers.rs"]
mod tests;

use crate::{
    client::call::Call,
    kapi::sunrpc::RpcBuffer, //
};
use kernel::{
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::SpinLock, //
};

/// The buffer length that suits nearly all RPCs.
pub(super) const USUAL_LEN: usize = RpcBuffer::<Call>::capacity_of(PAGE_SIZE);
/// RPCs that can begin without allocating, so that memory can be freed by writing to the server.
pub(super) const RESERVED: usize = 2;

/// Creates the reserve for RPCs that begin while memory is short. May sleep.
fn reserve() -> Result<KVec<RpcBuffer<Call>>> {
    let mut idle = KVec::with_capacity(RESERVED, GFP_KERNEL)?;
    for _ in 0..RESERVED {
        idle.push(
            RpcBuffer::new(USUAL_LEN, Call::new(GFP_KERNEL)?)?,
            GFP_KERNEL,
        )?;
    }
    Ok(idle)
}

/// Buffers of RPCs that have ended, for the next ones.
#[pin_data]
pub(super) struct IdleBuffers {
    #[pin]
    idle: SpinLock<KVec<RpcBuffer<Call>>>,
}

impl IdleBuffers {
    /// Creates the list with the reserve. May sleep.
    pub(super) fn new() -> Result<Pin<KBox<Self>>> {
        let idle = reserve()?;
        KBox::pin_init(
            pin_init!(Self { idle <- new_spinlock!(idle, "rpcrdma_idle_calls") }),
            GFP_KERNEL,
        )
    }

    /// Takes a buffer for an RPC, or makes one; `ENOMEM` without memory. Does not sleep.
    #[inline]
    pub(super) fn get(&self) -> Result<RpcBuffer<Call>> {
        let idle = self.idle.lock().pop();
        match idle {
            Some(buffer) => Ok(buffer),
            None => RpcBuffer::new(USUAL_LEN, Call::new(GFP_NOWAIT)?),
        }
    }

    /// Takes the buffer of an RPC that has ended back. Does not sleep.
    #[inline]
    pub(super) fn put(&self, buffer: RpcBuffer<Call>) {
        let mut idle = self.idle.lock();
        // Larger buffers are of use to one RPC alone and are freed, as are those beyond the list's
        // capacity; but the reserve, for which there is room, is filled first.
        if idle.len() < RESERVED || buffer.len() <= USUAL_LEN {
            if let Err(full) = idle.push_within_capacity(buffer) {
                let _ = idle.push(full.0, GFP_NOWAIT);
            }
        }
    }

    /// Frees all buffers. There are no RPCs any more.
    pub(super) fn clear(&self) {
        let idle = core::mem::take(&mut *self.idle.lock());
        drop(idle);
    }

    /// Returns the number of idle buffers.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(super) fn len(&self) -> usize {
        self.idle.lock().len()
    }
}
