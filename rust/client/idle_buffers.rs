// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory for the messages of RPCs to come.

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

/// Memory for the messages of all RPCs but a few.
pub(super) const USUAL_LEN: usize = RpcBuffer::<Call>::capacity_of(PAGE_SIZE);
/// RPCs that need no memory to begin, so that memory can be freed by writing it to the server.
pub(super) const RESERVED: usize = 2;

/// What an RPC begins with where memory is short. May sleep.
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
    /// With what the first RPCs need. May sleep.
    pub(super) fn new() -> Result<Pin<KBox<Self>>> {
        let idle = reserve()?;
        KBox::pin_init(
            pin_init!(Self { idle <- new_spinlock!(idle, "rpcrdma_idle_calls") }),
            GFP_KERNEL,
        )
    }

    /// One for an RPC. Does not sleep. `ENOMEM` where there is none, and no memory for one.
    #[inline]
    pub(super) fn get(&self) -> Result<RpcBuffer<Call>> {
        let idle = self.idle.lock().pop();
        match idle {
            Some(buffer) => Ok(buffer),
            None => RpcBuffer::new(USUAL_LEN, Call::new(GFP_NOWAIT)?),
        }
    }

    /// The RPC has ended. Does not sleep.
    #[inline]
    pub(super) fn put(&self, buffer: RpcBuffer<Call>) {
        let mut idle = self.idle.lock();
        // Memory beyond the usual is for one RPC alone, and what there is no room for in the list
        // is freed; but the reserve stays, for which there is room.
        if idle.len() < RESERVED || buffer.len() <= USUAL_LEN {
            if let Err(full) = idle.push_within_capacity(buffer) {
                let _ = idle.push(full.0, GFP_NOWAIT);
            }
        }
    }

    /// Frees all. There are no RPCs any more.
    pub(super) fn clear(&self) {
        let idle = core::mem::take(&mut *self.idle.lock());
        drop(idle);
    }

    /// How many there are.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(super) fn len(&self) -> usize {
        self.idle.lock().len()
    }
}
