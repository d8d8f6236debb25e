// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: an RPC whose Reply is overdue says nothing of a connection on which it was not sent,
//! nor of one on which it has only just been sent.

use crate::{
    kapi::sunrpc::xprt_ops::*,
    kunit::same, //
};

/// Whether an RPC that was last sent on the connection `sent` makes the connection `present`
/// suspect.
fn suspects(sent: u32, present: u32) -> Result<bool> {
    // SAFETY: All zeroes is what the RPC layer makes of a fresh request, and of a fresh task.
    let (rqst, task): (bindings::rpc_rqst, bindings::rpc_task) =
        unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
    let mut rqst = KBox::new(rqst, GFP_KERNEL)?;
    let mut task = KBox::new(task, GFP_KERNEL)?;
    rqst.rq_connect_cookie = sent;
    task.tk_rqstp = &raw mut *rqst;
    // SAFETY: The task has that request, and both stay for the call.
    Ok(unsafe { was_sent_on(&raw const *task, present) })
}

#[kunit_tests(rpcrdma_overdue)]
mod suite {
    use super::*;

    #[test]
    fn only_what_was_sent_on_it_says_something_of_a_connection() -> Result {
        for (sent, present, expected) in [
            (7, 7, true),
            (0, 0, true),
            // It waits to be sent again.
            (6, 7, false),
            // It was never sent: the RPC layer marks it with the cookie before.
            (u32::MAX, 0, false),
            (8, 7, false),
        ] {
            same("suspects", suspects(sent, present)?, expected)?;
        }
        Ok(())
    }

    #[test]
    fn a_call_that_is_sent_has_some_time() -> Result {
        // The counter begins shortly before it wraps, too.
        for now in [1000, Jiffies::MAX - 5, Jiffies::MAX, 0] {
            for (left, expected) in [(1, 1), (30, 30), (0, 10)] {
                let end = end_of_patience(now, now.wrapping_add(left), || 10);
                same("left", end.wrapping_sub(now), expected)?;
            }
            for over in [1, 9, 10, 11, 1_000_000] {
                let end = end_of_patience(now, now.wrapping_sub(over), || 10);
                same("left", end.wrapping_sub(now), 10)?;
            }
        }
        Ok(())
    }
}
