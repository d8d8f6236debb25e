// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a request that others are to be sent before stays in front of those that the window
//! has no room for, so that nobody waits for the window when nothing is under way.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use core::ptr::NonNull;
use kernel::prelude::*;

/// A transport with requests that wait to be sent, counted in the window or not.
///
/// # Invariants
///
/// The transport is of `xprt_alloc`, and not freed. Its queue has the requests, and no others.
struct Sending {
    xprt: NonNull<bindings::rpc_xprt>,
    rqsts: KVec<KBox<bindings::rpc_rqst>>,
}

impl Sending {
    fn new(counted: &[i32]) -> Result<Self> {
        // SAFETY: The initial network namespace always exists.
        let xprt = unsafe {
            let size = core::mem::size_of::<bindings::rpc_xprt>();
            bindings::xprt_alloc(&raw mut bindings::init_net, size, 1, 1)
        };
        let mut sending = Self {
            xprt: NonNull::new(xprt).ok_or(ENOMEM)?,
            rqsts: KVec::new(),
        };
        for &counted in counted {
            // SAFETY: All zeros are a request without anything.
            let mut rqst = KBox::new(unsafe { core::mem::zeroed() }, GFP_KERNEL)?;
            sending.wait(&mut rqst, counted);
            sending.rqsts.push(rqst, GFP_KERNEL)?;
        }
        Ok(sending)
    }

    fn wait(&mut self, rqst: &mut bindings::rpc_rqst, counted: i32) {
        rqst.rq_cong = counted;
        let own = &raw mut rqst.rq_xmit;
        // SAFETY: The queue is the transport's, and nobody else knows that. What is in it stays as
        // long as that.
        unsafe {
            let queue = &raw mut (*self.xprt.as_ptr()).xmit_queue;
            let last = (*queue).prev;
            ((*own).prev, (*own).next) = (last, queue);
            ((*last).next, (*queue).prev) = (own, own);
        }
    }

    /// Puts the request of that number last. Whether there were others.
    fn put_last(&mut self, number: usize) -> Result<bool> {
        let rqst = &raw mut **self.rqsts.get_mut(number).ok_or(ENOENT)?;
        // SAFETY: Valid by the type invariant.
        let xprt = unsafe { Xprt::from_raw(self.xprt.as_ptr()) };
        Ok(xprt.put_last(rqst))
    }

    /// The numbers of the requests in the order of the queue.
    fn order(&self) -> Result<KVec<usize>> {
        let mut order = KVec::new();
        // SAFETY: The transport is valid by the type invariant.
        let queue = unsafe { &raw mut (*self.xprt.as_ptr()).xmit_queue };
        // SAFETY: The queue's head is valid, too, and so are its elements by the type invariant.
        let mut next = unsafe { (*queue).next };
        while next != queue {
            let is_next = |rqst: &KBox<bindings::rpc_rqst>| core::ptr::eq(&rqst.rq_xmit, next);
            let number = self.rqsts.iter().position(is_next).ok_or(ENOENT)?;
            order.push(number, GFP_KERNEL)?;
            // SAFETY: It is an element of the queue.
            next = unsafe { (*next).next };
        }
        Ok(order)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        // SAFETY: Of `xprt_alloc` by the type invariant, and known to nobody else.
        unsafe { bindings::xprt_free(self.xprt.as_ptr()) };
    }
}

#[kunit_tests(rpcrdma_xmit_queue)]
mod suite {
    use super::*;

    #[test]
    fn the_last_of_those_that_are_counted() -> Result {
        let mut sending = Sending::new(&[1, 1, 1, 0, 1])?;
        claim(sending.put_last(0)?, "others are counted")?;
        same("order", &sending.order()?[..], &[1, 2, 0, 3, 4])?;
        claim(sending.put_last(1)?, "others are counted")?;
        same("order", &sending.order()?[..], &[2, 0, 1, 3, 4])?;
        claim(!sending.put_last(1)?, "it is not the first")?;
        same("order", &sending.order()?[..], &[2, 0, 1, 3, 4])
    }

    #[test]
    fn one_that_would_wait_for_the_window_is_not_let_in_front() -> Result {
        let mut sending = Sending::new(&[1, 0, 0])?;
        claim(!sending.put_last(0)?, "it is the only one that is counted")?;
        same("order", &sending.order()?[..], &[0, 1, 2])?;
        let mut sending = Sending::new(&[0, 1])?;
        claim(!sending.put_last(0)?, "it is not counted")?;
        same("order", &sending.order()?[..], &[0, 1])
    }
}
