// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: after its end a backchannel hands nothing to a callback service that may be gone, and
//! keeps no request that comes back then.

use crate::{
    kapi::sunrpc::backchannel::*,
    kunit::{
        claim,
        same, //
    },
};
use core::ptr::NonNull;

const SLOTS: usize = 2;

/// A transport that only the RPC layer has made something of.
///
/// # Invariants
///
/// It is of `xprt_alloc`, and not freed.
struct Bare(NonNull<bindings::rpc_xprt>);

impl Bare {
    fn new() -> Result<Self> {
        // SAFETY: The initial network namespace always exists.
        let xprt = unsafe {
            let size = core::mem::size_of::<bindings::rpc_xprt>();
            bindings::xprt_alloc(&raw mut bindings::init_net, size, 1, 1)
        };
        Ok(Self(NonNull::new(xprt).ok_or(ENOMEM)?))
    }

    fn xprt(&self) -> &Xprt {
        // SAFETY: Valid by the type invariant.
        unsafe { Xprt::from_raw(self.0.as_ptr()) }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: Of `xprt_alloc` by the type invariant, and known to nobody else.
        unsafe { bindings::xprt_free(self.0.as_ptr()) };
    }
}

/// What the RPC layer does when it is done with a request that was handed out.
fn come_back(backchannel: &Backchannel, slot: KBox<Slot>) {
    // SAFETY: The request of a slot of `setup`, which nobody else has.
    unsafe { backchannel.put(KBox::into_raw(slot).cast()) };
}

fn free(backchannel: &Backchannel) -> usize {
    backchannel.free.lock().as_ref().map_or(0, |free| {
        free.short.len() + usize::from(free.long.is_some())
    })
}

/// Takes a request for a Call of `len` bytes.
fn take_one(backchannel: &Backchannel, len: usize) -> Result<KBox<Slot>> {
    match &mut *backchannel.free.lock() {
        Some(free) => free.take(len).ok_or(ENOENT),
        None => Err(ENOENT),
    }
}

#[kunit_tests(rpcrdma_callbacks)]
mod suite {
    use super::*;

    #[test]
    fn nothing_is_handed_out_after_the_end() -> Result {
        let bare = Bare::new()?;
        let xprt = bare.xprt();
        let backchannel = KBox::pin_init(Backchannel::new(), GFP_KERNEL)?;
        let receive = || backchannel.receive(xprt, 1, [&[0; 4][..]], 0);
        claim(receive() == Ok(false), "closed before setup")?;

        backchannel.setup(SLOTS, 0)?;
        // There is no service, and the request stays.
        claim(receive() == Ok(false), "no service")?;
        same("free", free(&backchannel), SLOTS)?;

        let out = take_one(&backchannel, 4)?;
        backchannel.destroy();
        come_back(&backchannel, out);
        same("kept after the end", free(&backchannel), 0)?;
        // With requests it would say that all are in use.
        claim(receive() == Ok(false), "closed")?;

        backchannel.setup(SLOTS, 0)?;
        let out = take_one(&backchannel, 4)?;
        come_back(&backchannel, out);
        same("kept in use", free(&backchannel), SLOTS)?;
        backchannel.destroy();
        Ok(())
    }

    #[test]
    fn long_calls_take_turns() -> Result {
        const LONG: usize = SHORT_REVERSE + 4;
        let bare = Bare::new()?;
        let backchannel = KBox::pin_init(Backchannel::new(), GFP_KERNEL)?;
        let zeroes = KVec::from_elem(0, LONG + 1, GFP_KERNEL)?;
        let receive = |len: usize| {
            let (front, rest) = zeroes.split_at_checked(len / 2).ok_or(EINVAL)?;
            let parts = [front, rest.get(..len - front.len()).ok_or(EINVAL)?];
            backchannel.receive(bare.xprt(), 1, parts, 0)
        };
        backchannel.setup(SLOTS, 0)?;
        same("short", backchannel.longest(), SHORT_REVERSE)?;
        claim(receive(SHORT_REVERSE) == Ok(false), "no service")?;
        claim(receive(LONG) == Err(EMSGSIZE), "no request for it")?;

        backchannel.setup(SLOTS, LONG)?;
        same("long", backchannel.longest(), LONG)?;
        claim(receive(LONG) == Ok(false), "a request for it")?;
        same("free", free(&backchannel), SLOTS + 1)?;
        claim(receive(LONG + 1) == Err(EMSGSIZE), "too long")?;
        let out = take_one(&backchannel, LONG)?;
        claim(receive(LONG) == Err(ENOBUFS), "in use")?;
        claim(receive(SHORT_REVERSE) == Ok(false), "a short one beside it")?;
        come_back(&backchannel, out);
        claim(receive(LONG) == Ok(false), "its turn")?;
        for _ in 0..SLOTS {
            drop(take_one(&backchannel, 4)?);
        }
        claim(
            receive(4) == Err(ENOBUFS),
            "the long one is kept for long Calls",
        )?;
        backchannel.destroy();
        Ok(())
    }
}
