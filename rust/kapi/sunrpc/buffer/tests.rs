// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: one at a time has the Reply of an RPC, and nobody while its Call is being sent,
//! whatever a server sends.

use crate::{
    kapi::sunrpc::buffer::*,
    kunit::{
        claim,
        same, //
    },
};

#[kunit_tests(rpcrdma_claim)]
mod suite {
    use super::*;

    #[test]
    fn what_the_adapter_writes_is_apart() -> Result {
        let line = bindings::ARCH_DMA_MINALIGN;
        let prefix = size_of::<Prefix<u32>>();
        for call in [0, 1, 4, line, 1000, 4096] {
            let offset = RpcBuffer::<u32>::reply_offset(call).ok_or(EINVAL)?;
            same("offset", (prefix + offset) % line, 0)?;
            claim(offset >= call && offset - call < line, "next to the Call")?;
        }
        same("nowhere", RpcBuffer::<u32>::reply_offset(usize::MAX), None)
    }

    #[test]
    fn one_at_a_time() -> Result {
        let buffer = RpcBuffer::new(64, Arc::new(0u32, GFP_KERNEL)?)?;
        let data = buffer.into_raw();
        // SAFETY: The bytes are of a buffer that nobody else has, so that no lock is needed.
        let take = || unsafe { RpcBuffer::<u32>::claim(data) };
        let early = take();
        // SAFETY: The bytes are of a buffer that nobody else has.
        unsafe { RpcBuffer::<u32>::progress_of(data) }.sent();
        let (first, second) = (take(), take());
        // SAFETY: The bytes are of a buffer that nobody else has, so that no lock is needed.
        let again = || unsafe { RpcBuffer::<u32>::withdraw(data) };
        let held = again();
        // SAFETY: The bytes are of a buffer that nobody else has, and the claim was made above.
        unsafe { RpcBuffer::<u32>::unclaim(data) };
        let third = take();
        // SAFETY: The bytes are of a buffer that nobody else has, and the third has claimed it.
        unsafe { RpcBuffer::<u32>::unclaim(data) };
        let (free, late) = (again(), take());
        // SAFETY: The bytes are not used afterwards.
        drop(unsafe { RpcBuffer::<u32>::from_raw(data) });
        same("before it is sent", early, Err(NotFound::Unsent))?;
        same("the first", first, Ok(()))?;
        same("the second", second, Err(NotFound::Answered))?;
        claim(!held, "it is not sent again while it is answered")?;
        same("the next", third, Ok(()))?;
        claim(free, "it is sent again")?;
        same("while it is", late, Err(NotFound::Unsent))
    }
}
