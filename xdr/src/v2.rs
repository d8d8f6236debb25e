// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What version 2 alone has on the wire.
//!
//! "The draft" is draft-ietf-nfsv4-rpcrdma-version-two. Where it is silent or contradicts itself,
//! `Documentation/version-2.rst` says what is taken for its meaning.

mod continued;
mod credits;
mod decode;
mod encode;
pub(crate) mod error;
mod header;
mod properties;
mod receiver;

pub use self::continued::Fragments;
pub use self::credits::{
    Credits,
    Hostile, //
};
pub(crate) use self::decode::pass_to_lists;
pub use self::decode::{
    Fragment,
    Received,
    Undecoded, //
};
pub use self::encode::{
    encode_fragment,
    encode_grant,
    encode_plain,
    encode_reply, //
};
pub use self::error::{
    encode_error,
    error_message,
    refuses_properties, //
};
pub use self::header::{
    FRAGMENT_HEADER,
    VERSION, //
};
pub use self::properties::{
    encode_properties,
    Properties,
    Property,
    PropertySet,
    ReverseSupport, //
};
pub use self::receiver::{
    rejected_on_arrival,
    Bounds,
    Receiver, //
};
