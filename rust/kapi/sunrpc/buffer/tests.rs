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
        // SAFETY: All zeroes is what the RPC layer makes of a fresh request.
        let rqst: bindings::rpc_rqst = unsafe { core::mem::zeroed() };
        let mut rqst = KBox::new(rqst, GFP_KERNEL)?;
        let raw = &raw mut *rqst;
        let buffer = RpcBuffer::new(64, Arc::new(0u32, GFP_KERNEL)?)?;
        // SAFETY: Nobody else has the request.
        unsafe { buffer.lend(raw, 32) };
        // SAFETY: It was lent above, and is taken back below. Nobody else has it, so that no lock
        // is needed.
        let prefix = unsafe { RpcBuffer::<u32>::prefix_of(raw) };
        // SAFETY: Nobody else has it, so that no lock is needed, nor is any use made of a claim.
        let unclaim = || unsafe { prefix.unclaim() };
        // SAFETY: Nobody else has it, so that no lock is needed.
        let claim_it = || unsafe { prefix.claim() };
        // SAFETY: Nobody else has it, so that no lock is needed.
        let withdraw = || unsafe { prefix.withdraw() };
        let early = claim_it();
        prefix.progress.sent();
        let (first, second) = (claim_it(), claim_it());
        let held = withdraw();
        unclaim();
        let third = claim_it();
        unclaim();
        let (free, late) = (withdraw(), claim_it());
        // SAFETY: It was lent above, and the prefix is not used afterwards.
        drop(unsafe { RpcBuffer::<u32>::take_back(raw) });
        same("before it is sent", early, Err(NotFound::Unsent))?;
        same("the first", first, Ok(()))?;
        same("the second", second, Err(NotFound::Answered))?;
        claim(!held, "it is not sent again while it is answered")?;
        same("the next", third, Ok(()))?;
        claim(free, "it is sent again")?;
        same("while it is", late, Err(NotFound::Unsent))
    }
}
