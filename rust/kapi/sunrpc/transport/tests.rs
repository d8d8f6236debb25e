// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what the RPC layer gives to the task that sends ends no RPC, since it may be that of
//! another message.

use crate::{
    kapi::sunrpc::transport::*,
    kunit::same, //
};

#[kunit_tests(rpcrdma_send_error)]
mod suite {
    use super::*;

    #[test]
    fn an_error_of_the_message_is_its_own() -> Result {
        // With these the RPC layer sends again.
        let again = [ENOTCONN, EAGAIN, ENOBUFS, ENOMEM, EBADSLT];
        for errno in 1..200 {
            let error = Error::from_errno(-errno);
            let expected = match error {
                ENOMEM => Some(ENOBUFS),
                other if again.contains(&other) => Some(other),
                _ => None,
            };
            same("told", to_send_again(error), expected)?;
        }
        Ok(())
    }
}
