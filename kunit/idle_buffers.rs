// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: two RPCs can begin without memory, whatever RPCs were before them, and no more memory
//! than usual is kept for the next ones.

use super::*;
use crate::kunit::{
    claim,
    same, //
};

/// Memory that an RPC of larger messages has had.
fn large() -> Result<RpcBuffer<Call>> {
    RpcBuffer::new(2 * USUAL_LEN, Call::new(GFP_KERNEL)?)
}

#[kunit_tests(rpcrdma_reserve)]
mod suite {
    use super::*;

    #[test]
    fn the_reserve_is_there_before_the_first_rpc() -> Result {
        let idle = IdleBuffers::new()?;
        same("idle", idle.len(), RESERVED)?;
        for left in (0..RESERVED).rev() {
            let _ = idle.get()?;
            same("idle", idle.len(), left)?;
        }
        // With memory there is always one more.
        let more = idle.get()?;
        same("length", more.len(), USUAL_LEN)
    }

    #[test]
    fn large_messages_do_not_use_it_up() -> Result {
        let idle = IdleBuffers::new()?;
        let taken = [idle.get()?, idle.get()?];
        same("idle", idle.len(), 0)?;
        drop(taken);
        for kept in 1..=RESERVED {
            idle.put(large()?);
            same("idle", idle.len(), kept)?;
        }
        idle.put(large()?);
        same("beyond the reserve", idle.len(), RESERVED)?;
        for kept in 1..=RESERVED {
            claim(
                idle.get()?.len() >= USUAL_LEN,
                "room for the usual messages",
            )?;
            same("left", idle.len(), RESERVED - kept)?;
        }
        Ok(())
    }

    #[test]
    fn usual_memory_is_kept_for_the_next_rpcs() -> Result {
        let idle = IdleBuffers::new()?;
        for more in 1..=3 {
            idle.put(RpcBuffer::new(USUAL_LEN, Call::new(GFP_KERNEL)?)?);
            same("idle", idle.len(), RESERVED + more)?;
        }
        idle.clear();
        same("in the end", idle.len(), 0)
    }
}
