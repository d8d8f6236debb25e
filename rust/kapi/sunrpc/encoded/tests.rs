// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: pages of an encrypted Call stay as long as a region covers them, whatever its request
//! does.

use crate::kapi::sunrpc::{
    encoded::*,
    room::tests::{
        Buffer,
        PAGES, //
    },
};
use kernel::page::PAGE_SIZE;

/// What a request does with its pages when it is encoded anew. Here it is not.
extern "C" fn let_go(_rqst: *mut bindings::rpc_rqst) {}

#[kunit_tests(rpcrdma_encoded)]
mod suite {
    use super::*;

    #[test]
    fn pages_of_an_encrypted_call_are_kept() -> Result {
        let covers = Covers::new();
        for (encrypted, while_covered) in [(true, 2), (false, 1)] {
            let mut room = Buffer::new(120, 0, PAGE_SIZE, 24)?;
            // SAFETY: All zeroes is what the RPC layer makes of a fresh request.
            let rqst: bindings::rpc_rqst = unsafe { core::mem::zeroed() };
            let mut rqst = KBox::new(rqst, GFP_KERNEL)?;
            rqst.rq_snd_buf = core::mem::take(&mut room.buf);
            rqst.rq_enc_pages = room.pages.as_mut_ptr();
            rqst.rq_enc_pages_num = PAGES as i32;
            rqst.rq_release_snd_buf = encrypted.then_some(let_go as unsafe extern "C" fn(_));
            let rqst = &raw mut *rqst;
            // SAFETY: The request stays, and the buffer is as long as it says.
            let call = unsafe {
                let buf = XdrBuf::from_raw(&raw mut (*rqst).rq_snd_buf);
                EncodedCall::new(buf, rqst, NonNull::from(&covers))
            };
            for pieces in [EncodedCall::pieces, EncodedCall::page_pieces] {
                let pieces = pieces(&call)?;
                // All of them: the tail may be in the last one.
                room.expect_references(while_covered)?;
                drop(pieces);
                room.expect_references(1)?;
            }
        }
        Ok(())
    }
}
