// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the reverse transport of a connection leads to it as long as somebody may look there,
//! and no longer.

use crate::{
    kapi::sunrpc::svc::link::*,
    kunit::{
        claim,
        same, //
    },
};

#[kunit_tests(rpcrdma_link)]
mod suite {
    use super::*;

    /// A structure that nobody else knows of.
    fn zeroed<S>() -> Result<KBox<S>> {
        let mut raw = KBox::<S>::new_uninit(GFP_KERNEL)?;
        // SAFETY: There is room for one.
        unsafe { raw.as_mut_ptr().write_bytes(0, 1) };
        // SAFETY: All zeroes is a value of these structures of C.
        Ok(unsafe { raw.assume_init() })
    }

    #[test]
    fn it_is_forgotten_with_the_connection() -> Result {
        let (svc, rev) = (
            KBox::into_raw(zeroed::<bindings::svc_xprt>()?),
            KBox::into_raw(zeroed::<bindings::rpc_xprt>()?),
        );
        let outcome = lead(svc, rev);
        // SAFETY: Both are of the boxes above, and used no more.
        unsafe {
            drop(KBox::from_raw(svc));
            drop(KBox::from_raw(rev));
        }
        outcome
    }

    fn lead(svc: *mut bindings::svc_xprt, rev: *mut bindings::rpc_xprt) -> Result {
        // SAFETY: Nobody else knows of it. It has a reference, as one of the RPC layer.
        unsafe { (*rev).kref.refcount.refs.counter = 1 };
        // SAFETY: Valid until the end of the test.
        let known = || unsafe { published(svc) };
        // SAFETY: Valid until the end of the test.
        let leads_to = || unsafe { (&raw const (*rev).bc_xprt).read() };
        let link = BcLink::new()?;
        let xprt = NonNull::new(svc).ok_or(EINVAL)?;
        // SAFETY: Valid until it is cut.
        unsafe { link.set(Arc::new((), GFP_KERNEL)?, xprt) };
        // SAFETY: Nobody looks at what it is of.
        let publish = || unsafe { link.publish(rev) };
        same("published", publish(), Ok(()))?;
        same("again", publish(), Err(EBUSY))?;
        claim(
            known() == rev && leads_to() == svc,
            "each leads to the other",
        )?;
        link.detach();
        claim(
            known() == rev && leads_to() == svc,
            "as long as it may be held",
        )?;
        same("when it ends", publish(), Err(ENOTCONN))?;
        let mut seen = false;
        link.with_connection(|()| seen = true);
        claim(seen, "it is still there")?;
        link.clear();
        claim(leads_to().is_null(), "and no longer")?;
        link.unpublish(rev);
        claim(link.connection().is_none(), "nor is the connection")
    }
}
