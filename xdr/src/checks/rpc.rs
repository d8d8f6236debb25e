// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a Call says of its procedure.

use super::{
    require,
    Check, //
};
use crate::{
    null_call,
    rpc::CallHeader,
    vectors, //
};

/// Checks that the header of a Call is found whatever its credential and verifier are, and only if
/// whole.
pub fn check_call_header() -> Check {
    let expected = CallHeader {
        program: 100_003,
        version: 3,
        procedure: 7,
        wrapped: false,
        size: vectors::CALL_HEADER.len(),
    };
    let found = CallHeader::peek(vectors::CALL_HEADER);
    require(
        found == Some(expected),
        "a Call with credential and verifier",
    )?;
    for end in 0..vectors::CALL_HEADER.len() {
        let cut = vectors::CALL_HEADER.get(..end).unwrap_or(&[]);
        require(CallHeader::peek(cut).is_none(), "a header that is cut off")?;
    }
    let found = CallHeader::peek(vectors::CALL_HEADER_WITH_ARGUMENTS);
    require(found == Some(expected), "the arguments are not part of it")?;
    for (service, wrapped) in [(1, false), (2, true), (3, true)] {
        let found = CallHeader::peek(&vectors::gss_call_header(service));
        let as_expected = found.is_some_and(|header| header.wrapped == wrapped);
        require(as_expected, "the service of RPCSEC_GSS")?;
    }
    require(
        CallHeader::peek(vectors::REPLY_HEADER).is_none(),
        "a Reply is no Call",
    )?;
    require(
        CallHeader::peek(vectors::CALL_HEADER_TOO_LONG).is_none(),
        "a credential longer than the message",
    )
}

/// Checks that the Call that asks whether a server is there is one of procedure 0 without
/// credential.
pub fn check_null_call() -> Check {
    let call = null_call(0x0102_0304, 100_003, 4);
    let expected = CallHeader {
        program: 100_003,
        version: 4,
        procedure: 0,
        wrapped: false,
        size: call.len(),
    };
    require(CallHeader::peek(&call) == Some(expected), "a NULL Call")?;
    require(
        call.starts_with(&[1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2]),
        "its XID, its type and the version of RPC",
    )?;
    require(
        call.iter().skip(20).all(|byte| *byte == 0),
        "neither credential nor verifier",
    )
}
