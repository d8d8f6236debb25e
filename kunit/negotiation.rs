// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a connection speaks the version that its first message says, whichever that is, and a
//! client is not talked into one by a message that makes no sense.

use super::*;
use crate::kunit::same;
use kernel::prelude::*;
use xdr::{
    ErrorMessage,
    RdmaError, //
};

/// Returns the prefix of a message.
fn prefix(version: u32, procedure: u32) -> [u8; 16] {
    let mut message = [0; 16];
    let words = [1, version, 1, procedure];
    for (to, word) in message.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    message
}

/// Returns an error that tells a range of versions, itself under that version.
fn err_vers(version: u32, low: u32, high: u32) -> Result<[u8; 28]> {
    let mut message = [0; 28];
    let error = ErrorMessage {
        xid: 1,
        version,
        credits: 0,
        error: RdmaError::Version { low, high },
    };
    error.encode(&mut message).map_err(|_| EINVAL)?;
    Ok(message)
}

#[kunit_tests(rpcrdma_negotiation)]
mod suite {
    use super::*;

    #[test]
    fn a_server_goes_by_the_first_message() -> Result {
        for (version, expected) in [
            (0, None),
            (1, Some(Version::One)),
            (2, Some(Version::Two)),
            (3, None),
        ] {
            let found = first(Role::Responder, &prefix(version, 7));
            same("its version", found, expected)?;
        }
        let short = prefix(2, 7);
        let short = short.get(..15).ok_or(EINVAL)?;
        same("a short one", first(Role::Responder, short), None)
    }

    #[test]
    fn a_client_goes_by_the_answer() -> Result {
        for (version, expected) in [(0, None), (1, None), (2, Some(Version::Two)), (3, None)] {
            let found = first(Role::Requester, &prefix(version, 7));
            same("its version", found, expected)?;
        }
        for (low, high, expected) in [
            (1, 1, Some(Version::One)),
            (0, 1, Some(Version::One)),
            (1, 2, Some(Version::One)),
            (2, 3, None),
            (0, 0, None),
            (2, 1, None),
        ] {
            for version in [1, 2] {
                let message = err_vers(version, low, high)?;
                let found = first(Role::Requester, &message);
                same("what it supports", found, expected)?;
            }
        }
        Ok(())
    }
}
