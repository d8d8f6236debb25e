// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How an RPC ends whose Reply cannot be had (`Documentation/short-reply-chunk.rst`).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/refusal.rs"]
mod tests;

use kernel::prelude::*;
use xdr::RdmaError;

/// The error for an RPC that the server answered with `RDMA_ERROR`: `EOVERFLOW` for a consumer that
/// may ask again with more room (RFC 8267, section 3.1), `EIO` for every other.
///
/// `guess` says that the room for the Reply was a guess. May be called anywhere.
pub(super) fn refused(error: RdmaError, guess: bool) -> Error {
    match error {
        // Whether the Reply found no room, or the server made nothing of the Call, it does not say.
        RdmaError::Chunk if guess => EOVERFLOW,
        RdmaError::Chunk | RdmaError::Version { .. } => EIO,
    }
}
