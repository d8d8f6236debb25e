// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The trace events of version 2 of the protocol, of both ends.

use crate::kapi::{
    bindings,
    sys::address::SocketAddress,
    trace::Argument, //
};

events! {
    /// A new connection speaks that version, and why.
    xprtrdma_version(server: SocketAddress, version: u32, why: u32);
    /// The server has told its properties, which are these now.
    xprtrdma_properties(
        queue: u32, send: u32, receive: u32, segment_bytes: u32, segments: u32, reverse: u32
    );
    /// The client has told its properties, which are these now.
    svcrdma_properties(
        queue: u32, send: u32, receive: u32, segment_bytes: u32, segments: u32, reverse: u32
    );
    /// A GRANT is sent to the server, or came from it.
    xprtrdma_grant(queue: u32, credits: u32, sent: bool);
    /// A GRANT is sent to the client, or came from it.
    svcrdma_grant(queue: u32, credits: u32, sent: bool);
    /// A Payload stream of so many bytes is about to be sent to the server in so many messages.
    xprtrdma_continued(queue: u32, xid: u32, length: u32, messages: u32);
    /// A Payload stream of so many bytes is about to be sent to the client in so many messages.
    svcrdma_continued(queue: u32, xid: u32, length: u32, messages: u32);
    /// A message of a Reply or a Call of the server came; so many bytes of it are still to come.
    xprtrdma_fragment(queue: u32, xid: u32, remaining: u32);
    /// A message of a Call or a Reply of the client came; so many bytes of it are still to come.
    svcrdma_fragment(queue: u32, xid: u32, remaining: u32);
}
