// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls to the client by its own connection (RFC 8167).

use super::{
    connection::Connection,
    grant, //
};
use crate::kapi::sunrpc::RpcMessage;
use kernel::prelude::*;
use xdr::{
    encode_plain,
    MIN_HEADER, //
};

/// Sends a Call. From an RPC task; may sleep.
pub(super) fn call(connection: &Connection, message: &RpcMessage<'_>) -> Result {
    let body = message.send_buf();
    let buffer = connection.qp.send_buffer();
    // The RPC layer would try again at once after `EAGAIN`.
    let mut buffer = buffer.map_err(|e| if e == EAGAIN { ENOBUFS } else { e })?;
    // What is asked for in credits is what can wait for a Reply at once.
    let room = encode_plain(buffer.bytes(), message.xid(), grant::REVERSE);
    let room = room.map_err(|_| EMSGSIZE)?;
    let end = MIN_HEADER + body.len();
    if end > connection.longest_inline(true) {
        // No chunks here (RFC 8167, section 5.3).
        return Err(EMSGSIZE);
    }
    body.copy_to(0, room.get_mut(..body.len()).ok_or(EMSGSIZE)?)?;
    message.note_sent();
    buffer
        .reply(end, None, None, None, false)
        .map_err(|_| ENOTCONN)
        .inspect_err(|_| connection.close())
}
