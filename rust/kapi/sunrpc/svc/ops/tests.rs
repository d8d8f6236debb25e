// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: nothing is placed directly of a result that integrity or privacy wraps (RFC 8166,
//! section 8.2.2.3), though nfsd names its parts all the same.

use super::*;
use crate::{
    kunit::same,
    server::Listener, //
};

/// How many parts of a result may be placed of which the RPC layer names one, where its
/// authentication wants so many bytes to spare.
fn placeable(slack: c_int) -> Result<usize> {
    let context = Context::<Listener> {
        message: None,
        payloads: Payloads::default(),
    };
    let mut context = KBox::new(context, GFP_KERNEL)?;
    let mut rqst = KBox::<bindings::svc_rqst>::new_uninit(GFP_KERNEL)?;
    let raw = rqst.as_mut_ptr();
    // SAFETY: There is room for one, and all zeroes is a value of it. Its context is that above.
    unsafe {
        raw.write_bytes(0, 1);
        (*raw).rq_xprt_ctxt = (&raw mut *context).cast();
        (*raw).rq_auth_slack = slack;
        SvcOps::<Listener>::result_payload(raw, 120, 1000);
    }
    Ok(context.payloads.as_mut_slice().len())
}

#[kunit_tests(rpcrdma_svc_ops)]
mod suite {
    use super::*;

    #[test]
    fn what_is_wrapped_is_not_placed() -> Result {
        same("of AUTH_SYS, or Kerberos alone", placeable(0)?, 1)?;
        // So much svcauth_gss.c wants for integrity, and for privacy.
        for slack in [400, 800] {
            same("of what is wrapped", placeable(slack)?, 0)?;
        }
        Ok(())
    }
}
