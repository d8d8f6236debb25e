// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the error of an RPC that does not wait yet is not lost; and nobody answers one whose
//! Call was not sent.

use crate::{
    kapi::sunrpc::progress::*,
    kunit::{
        claim,
        same, //
    },
};

#[kunit_tests(rpcrdma_progress)]
mod suite {
    use super::*;

    #[test]
    fn an_error_waits_for_its_rpc() -> Result {
        let progress = Progress::new();
        let error = Err(EIO.to_errno());
        claim(progress.is_unsent(), "nobody may answer")?;
        progress.sent();
        claim(!progress.is_unsent(), "somebody may")?;
        claim(!progress.has_failed(), "no error")?;
        claim(!progress.fail(EIO), "it does not wait yet")?;
        claim(progress.has_failed(), "an error")?;
        same("when it waits", progress.wait(), error)?;
        progress.sent();
        claim(!progress.has_failed(), "not of another Call")?;
        same("when it waits", progress.wait(), Ok(()))?;
        claim(progress.fail(EIO), "who waits has it at once")?;
        progress.unsent();
        claim(progress.is_unsent(), "not when it is sent again")
    }
}
