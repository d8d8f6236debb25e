// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: two RPCs can begin without memory, whatever RPCs were before them, and no more memory
//! than usual is kept for the next ones; and a transport knows whether there is swap on its mount.

use super::*;
use crate::{
    client::idle_buffers::{
        RESERVED,
        USUAL_LEN, //
    },
    kapi::sunrpc::Unmounted,
    kunit::{
        claim,
        same, //
    },
};

/// How many RPCs can begin without memory.
fn idle(mount: &ClientXprt) -> usize {
    mount.buffers.len()
}

/// Memory that an RPC of larger messages has had.
fn large() -> Result<RpcBuffer<Call>> {
    RpcBuffer::new(2 * USUAL_LEN, Call::new(GFP_KERNEL)?)
}

#[kunit_tests(rpcrdma_reserve)]
mod suite {
    use super::*;

    #[test]
    fn the_reserve_is_there_before_the_first_rpc() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        let mount = mount.transport();
        same("idle", idle(mount), RESERVED)?;
        for left in (0..RESERVED).rev() {
            let _ = mount.get_buffer()?;
            same("idle", idle(mount), left)?;
        }
        // With memory there is always one more.
        let more = mount.get_buffer()?;
        same("length", more.len(), USUAL_LEN)
    }

    #[test]
    fn large_messages_do_not_use_it_up() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        let mount = mount.transport();
        let taken = [mount.get_buffer()?, mount.get_buffer()?];
        same("idle", idle(mount), 0)?;
        drop(taken);
        for kept in 1..=RESERVED {
            mount.put_buffer(large()?);
            same("idle", idle(mount), kept)?;
        }
        mount.put_buffer(large()?);
        same("beyond the reserve", idle(mount), RESERVED)?;
        for kept in 1..=RESERVED {
            claim(
                mount.get_buffer()?.len() >= USUAL_LEN,
                "room for the usual messages",
            )?;
            same("left", idle(mount), RESERVED - kept)?;
        }
        Ok(())
    }

    #[test]
    fn usual_memory_is_kept_for_the_next_rpcs() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        let mount = mount.transport();
        for more in 1..=3 {
            let buffer = RpcBuffer::new(USUAL_LEN, Call::new(GFP_KERNEL)?)?;
            mount.put_buffer(buffer);
            same("idle", idle(mount), RESERVED + more)?;
        }
        Ok(())
    }
}

#[kunit_tests(rpcrdma_swapper)]
mod swapper {
    use super::*;

    #[test]
    fn an_end_without_a_beginning_counts_for_nothing() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        let is_swapper = || Ok::<_, Error>(mount.transport().state.xprt.is_swapper());
        // The transport was added to the mount after swapping had begun.
        mount.disable_swap();
        same("in use for swap", is_swapper()?, false)?;
        mount.enable_swap();
        same("after it began", is_swapper()?, true)?;
        mount.disable_swap();
        same("after it ended", is_swapper()?, false)
    }
}
