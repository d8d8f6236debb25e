// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The result of an RPC without a Reply (`Documentation/short-reply-chunk.rst`).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/refusal.rs"]
mod tests;

use kernel::prelude::*;
use xdr::RdmaError;

/// Returns the error for an RPC that the server answered with `RDMA_ERROR`: `EOVERFLOW` for a
/// consumer that may ask again with more room (RFC 8267, section 3.1), `EIO` for every other.
///
/// `guess` says that the room for the Reply was a guess. Any context.
pub(super) fn refused(error: RdmaError, guess: bool) -> Error {
    match error {
        // In version 1 the same error stands for a Reply without room and for a Call that makes no
        // sense.
        RdmaError::Chunk | RdmaError::WriteResource { .. } | RdmaError::ReplyResource { .. }
            if guess =>
        {
            EOVERFLOW
        }
        _ => EIO,
    }
}
