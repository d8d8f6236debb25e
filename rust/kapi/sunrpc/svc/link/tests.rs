// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the reverse transport of a connection leads to it as long as somebody may look there,
//! and no longer; nobody finds one that is gone, and the RPC layer none that it may still give up.

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

    /// A connection and its reverse transport, as the RPC layer has them.
    struct Pair {
        svc: *mut bindings::svc_xprt,
        rev: NonNull<bindings::rpc_xprt>,
        link: Arc<BcLink<()>>,
    }

    impl Pair {
        /// A connection that is up, and a transport that is being made.
        fn new() -> Result<Self> {
            let svc = KBox::into_raw(zeroed::<bindings::svc_xprt>()?);
            let mut rev = zeroed::<bindings::rpc_xprt>()?;
            rev.kref.refcount.refs.counter = 1;
            let pair = Self {
                svc,
                rev: NonNull::from(KBox::leak(rev)),
                link: BcLink::new()?,
            };
            let xprt = NonNull::new(svc).ok_or(EINVAL)?;
            // SAFETY: Valid until it is cleared.
            unsafe { pair.link.set(Arc::new((), GFP_KERNEL)?, xprt) };
            Ok(pair)
        }

        /// The RPC layer has made the transport.
        fn made(&self) {
            // SAFETY: Valid until the end of the test; nobody writes to the name.
            unsafe { (*self.rev.as_ptr()).servername = c"client".as_char_ptr() };
        }

        fn link(&self) -> Result {
            // SAFETY: Nobody looks at what it is of; it is unlinked before it is freed.
            unsafe { self.link.link(self.rev) }
        }

        /// Whether the RPC layer finds the transport by the connection.
        fn known(&self) -> bool {
            // SAFETY: Valid until the end of the test.
            unsafe { (*self.svc).xpt_bc_xprt == self.rev.as_ptr() }
        }

        /// Whether it finds the connection by the transport.
        fn leads_back(&self) -> bool {
            // SAFETY: Valid until the end of the test.
            unsafe { (*self.rev.as_ptr()).bc_xprt == self.svc }
        }

        /// Whether a service thread finds the transport.
        fn found(&self) -> bool {
            let mut found = false;
            self.link.reverse().with(|_| found = true);
            found
        }

        fn references(&self) -> i32 {
            // SAFETY: Valid until the end of the test.
            unsafe { (*self.rev.as_ptr()).kref.refcount.refs.counter }
        }
    }

    impl Drop for Pair {
        fn drop(&mut self) {
            self.link.clear();
            self.link.unlink(self.rev.as_ptr());
            // SAFETY: Both are of the boxes above, and used no more.
            unsafe {
                drop(KBox::from_raw(self.svc));
                drop(KBox::from_raw(self.rev.as_ptr()));
            }
        }
    }

    #[test]
    fn it_is_forgotten_with_the_connection() -> Result {
        let pair = Pair::new()?;
        same("linked", pair.link(), Ok(()))?;
        pair.made();
        claim(pair.link.caller().is_some(), "the connection is there")?;
        claim(pair.known() && pair.leads_back(), "each leads to the other")?;
        same("again", pair.link(), Err(EBUSY))?;
        same("references", pair.references(), 2)?;
        pair.link.detach();
        claim(
            pair.known() && pair.leads_back() && pair.found(),
            "as long as it may be held",
        )?;
        claim(pair.link.caller().is_none(), "nobody calls any more")?;
        let mut seen = false;
        pair.link.with_connection(|()| seen = true);
        claim(seen, "it is still there")?;
        pair.link.clear();
        claim(!pair.leads_back(), "and no longer")?;
        pair.link.unlink(pair.rev.as_ptr());
        claim(!pair.found(), "nor is the transport")
    }

    #[test]
    fn one_that_the_rpc_layer_does_not_make_after_all() -> Result {
        let pair = Pair::new()?;
        same("linked", pair.link(), Ok(()))?;
        claim(!pair.known() && pair.found(), "a service thread knows it")?;
        claim(pair.link.caller().is_some(), "the connection is there")?;
        claim(
            !pair.known(),
            "the RPC layer does not know what is not made",
        )?;
        same("references", pair.references(), 1)?;
        pair.link.unlink(pair.rev.as_ptr());
        claim(!pair.found(), "nobody finds it")?;
        same("the next", pair.link(), Ok(()))
    }

    #[test]
    fn one_that_is_gone_stays_with_the_connection_no_longer() -> Result {
        let pair = Pair::new()?;
        same("linked", pair.link(), Ok(()))?;
        pair.made();
        claim(pair.link.caller().is_some() && pair.known(), "it is known")?;
        pair.link.unlink(pair.rev.as_ptr());
        claim(!pair.known() && !pair.found(), "nobody finds it")
    }

    #[test]
    fn one_that_never_called_is_found_by_who_asks_again() -> Result {
        let pair = Pair::new()?;
        same("linked", pair.link(), Ok(()))?;
        pair.made();
        claim(!pair.known(), "nobody has called")?;
        same("again", pair.link(), Err(EBUSY))?;
        claim(pair.known(), "it is known from then on")
    }

    #[test]
    fn none_comes_when_the_connection_ends() -> Result {
        let (early, late) = (Pair::new()?, Pair::new()?);
        same("linked", early.link(), Ok(()))?;
        early.made();
        early.link.detach();
        claim(early.link.caller().is_none(), "nobody calls any more")?;
        claim(!early.known(), "what the RPC layer knows stays as it is")?;
        late.link.detach();
        same("when it ends", late.link(), Err(ENOTCONN))
    }
}
