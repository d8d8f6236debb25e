// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: one at a time has the Reply of an RPC, whatever a server sends.

use crate::{
    kapi::sunrpc::buffer::*,
    kunit::claim, //
};

#[kunit_tests(rpcrdma_claim)]
mod suite {
    use super::*;

    #[test]
    fn one_at_a_time() -> Result {
        let buffer = RpcBuffer::new(64, Arc::new(0u32, GFP_KERNEL)?)?;
        let data = buffer.into_raw();
        // SAFETY: The bytes are of a buffer that nobody else has, so that no lock is needed.
        let take = || unsafe { RpcBuffer::<u32>::claim(data) };
        let (first, second) = (take(), take());
        // SAFETY: The bytes are of a buffer that nobody else has, and the claim was made above.
        unsafe { RpcBuffer::<u32>::unclaim(data) };
        let third = take();
        // SAFETY: The bytes are not used afterwards.
        drop(unsafe { RpcBuffer::<u32>::from_raw(data) });
        claim(first, "the first has it")?;
        claim(!second, "the second does not")?;
        claim(third, "the next has it")
    }
}
