// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RPC-over-RDMA headers.
//!
//! The Transport stream of version 1, [RFC 8166], with the direction of a message as [RFC 8167]
//! needs it and the connection private data of [RFC 8797], and that of [version 2](v2). Both
//! versions have one vocabulary: what a header says is of the same type in either. Nothing here
//! allocates, blocks, logs or knows the kernel: decoders borrow the received bytes, encoders write
//! into the caller's buffer.
//!
//! - [`Message::decode`] turns received bytes into a [`Call`], a [`Reply`] or a peer's
//!   [`ErrorMessage`], or says why not ([`Rejected`]) and what the RFC wants answered
//!   ([`Rejected::answer`]).
//! - [`Encoder`] writes a header in one pass.
//! - [`ReadList::reduces_eligible`] tells which Read chunks the NFS binding forbids ([RFC 8267]).
//! - [`Reply::written`] and its siblings compare returned chunks with what was offered.
//! - [`PrivateData`] is the message that peers exchange while they connect.
//!
//! Bytes from a peer reach no operator that can panic and no index. All multi-byte fields are in
//! network byte order on the wire and in host order here; lengths, offsets and Positions are in
//! octets.
//!
//! [RFC 8166]: https://www.rfc-editor.org/rfc/rfc8166
//! [RFC 8167]: https://www.rfc-editor.org/rfc/rfc8167
//! [RFC 8267]: https://www.rfc-editor.org/rfc/rfc8267
//! [RFC 8797]: https://www.rfc-editor.org/rfc/rfc8797

#![cfg_attr(not(CONFIG_RUST), no_std)]
#![forbid(unsafe_code)]

mod binding;
mod error;
mod limits;
mod lists;
mod message;
mod private_data;
mod read_list;
mod returned;
mod rpc;
mod segment;
mod v1;
pub mod v2;
mod version;
mod wire;
mod write_list;

#[cfg(any(test, feature = "checks", CONFIG_RPCRDMA_KUNIT_TEST))]
pub mod checks;
#[cfg(any(test, feature = "checks", CONFIG_RPCRDMA_KUNIT_TEST))]
pub mod vectors;

pub use self::binding::placeable_of_nfs_4;
pub use self::error::{
    DecodeError,
    EncodeError,
    Rejected,
    Role, //
};
pub use self::limits::Limits;
pub use self::lists::{
    lists_size,
    Encoder,
    ReplyEncoder,
    WriteEncoder, //
};
pub use self::message::{
    Call,
    CallPayload,
    ErrorMessage,
    FixedHeader,
    Inline,
    Message,
    Offer,
    RdmaError,
    Reply,
    ReplyPayload,
    ReplyPlace, //
};
pub use self::private_data::{
    InlineSize,
    PrivateData,
    Pulls, //
};
pub use self::read_list::{
    ReadChunk,
    ReadList,
    ReadSegment, //
};
pub use self::returned::ReturnError;
pub use self::rpc::{
    null_call,
    Direction,
    RpcPrefix, //
};
pub use self::segment::Segment;
pub use self::v1::{
    encode::encode_plain,
    error::peek_err_vers,
    header::{
        MIN_HEADER,
        RDMA_NOMSG,
        VERSION, //
    },
    provided::{
        encode_done,
        peek_done, //
    },
};
pub use self::version::Version;
pub use self::write_list::{
    WriteChunk,
    WriteList, //
};
