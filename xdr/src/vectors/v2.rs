// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages of version 2, worked out by hand from draft-ietf-nfsv4-rpcrdma-version-two.

use super::{
    to_bytes,
    XID, //
};

/// The first message of a client: all five properties that are numbers (sections 4.3 and 6.3.4).
pub const FINAL: &[u8] = words! {
    XID, 2, 33, 7, // prefix: RDMA2_CONNPROP_FINAL
    5, // properties
    1, 4, 8192, // Maximum Send Size
    2, 4, 8192, // Receive Buffer Size
    3, 4, 0x0100_0000, // Maximum Segment Size
    4, 4, 32, // Maximum Segment Count
    5, 4, 2, // Reverse-Direction Support: RDMA2_RVRSDIR_CONT
};

/// Properties that are not the last: a default, one that nobody knows, of five octets, and a host
/// authentication message (sections 5.1 and 6.3.3).
pub const MIDDLE_PROPERTIES: &[u8] = words! {
    XID, 2, 33, 6, // prefix: RDMA2_CONNPROP_MIDDLE
    3, // properties
    2, 0, // Receive Buffer Size: the default
    0x7777, 5, 0x0102_0304, 0x0500_0000, // unknown
    6, 8, 4, 0xaabb_ccdd, // opaque<> of four octets
};

/// Properties, of which there are none.
pub const NO_PROPERTIES: &[u8] = words! { XID, 2, 1, 7, 0 };

/// Credits alone (section 6.3.2).
pub const GRANT: &[u8] = words! { 0, 2, 0x8000_0001, 5 };

/// A Call without chunks: an NFS version 3 NULL Call.
pub const CALL: &[u8] = words! {
    XID, 2, 40, 10, // prefix: RDMA2_CALL_INLINE
    0, // rdma_inv_handle
    0, 0, 0, // no chunks
    XID, 0, 2, 100_003, 3, 0, 0, 0, 0, 0, // RPC Call
};

/// The Reply to it.
pub const REPLY: &[u8] = words! {
    XID, 2, 41, 13, // prefix: RDMA2_REPLY_INLINE
    0, // no Write chunks; a Reply chunk has no place here
    XID, 1, 0, 0, 0, 0, // RPC Reply
};

/// A Call with a Read chunk of two segments at Position 44, an empty Write chunk, one of two
/// segments, and a Reply chunk. The handle of the second Write segment may be made invalid.
pub const CHUNKS: &[u8] = words! {
    XID, 2, 42, 10, // prefix: RDMA2_CALL_INLINE
    0x4444_4444, // rdma_inv_handle
    1, 44, 0x1111_1111, 4096, 0x0000_7f00, 0x1234_5000,
    1, 44, 0x2222_2222, 1001, 0x0000_7f00, 0x2234_5000,
    0, // end of the Read list
    1, 0, // an empty chunk
    1, 2, 0x3333_3333, 4096, 0, 0x1000, 0x4444_4444, 904, 0, 0x3000,
    0, // end of the Write list
    1, 1, 0x5555_5555, 8192, 0xffff_ffff, 0,
    XID, 0, 2, 100_003, 3, 7, 0, 0, 0, 0, // RPC Call
    1, // a word of the arguments
};

/// The Reply to it: the empty chunk, and one that has 4,196 octets.
pub const CHUNKS_RETURNED: &[u8] = words! {
    XID, 2, 43, 13, // prefix: RDMA2_REPLY_INLINE
    1, 0, // an empty chunk
    1, 2, 0x3333_3333, 4096, 0, 0x1000, 0x4444_4444, 100, 0, 0x3000,
    0, // end of the Write list
    XID, 1, 0, 0, 0, 0, // RPC Reply
};

/// A Call in a Call chunk of two segments, with a Read chunk at Position 200.
pub const EXTERNAL_CALL: &[u8] = words! {
    XID, 2, 44, 8, // prefix: RDMA2_CALL_EXTERNAL
    0x6666_6666, // rdma_inv_handle
    1, 0, 0x6666_6666, 4096, 0, 0x6000,
    1, 0, 0x7777_7777, 4, 0, 0x8000,
    0, // end of the Call chunk
    1, 200, 0x8888_8888, 512, 0, 0x9000,
    0, // end of the Read list
    0, // no Write chunks
    1, 1, 0x9999_9999, 65536, 0, 0xa000, // Reply chunk
};

/// The Reply to it, in 5,000 octets of the Reply chunk.
pub const EXTERNAL_REPLY: &[u8] = words! {
    XID, 2, 45, 11, // prefix: RDMA2_REPLY_EXTERNAL
    0, // no Write chunks
    1, 1, 0x9999_9999, 5000, 0, 0xa000, // Reply chunk
};

/// The first fragment of a Call of 52 octets.
pub const FIRST_FRAGMENT: &[u8] = words! {
    XID, 2, 46, 9, // prefix: RDMA2_CALL_MIDDLE
    32, // rdma_remaining
    XID, 0, 2, 100_003, 3,
};

/// The second.
pub const SECOND_FRAGMENT: &[u8] = words! {
    XID, 2, 47, 9, // prefix: RDMA2_CALL_MIDDLE
    24, // rdma_remaining
    7, 0,
};

/// The last, with a Read chunk at Position 48, which is counted from the first octet of the first.
pub const LAST_FRAGMENT: &[u8] = words! {
    XID, 2, 48, 10, // prefix: RDMA2_CALL_INLINE
    0x1111_1111, // rdma_inv_handle
    1, 48, 0x1111_1111, 4096, 0, 0x1000,
    0, // end of the Read list
    0, 0, // no Write chunks, no Reply chunk
    0, 0, 0, 1, 2, 3,
};

/// The first fragment of a Reply of 28 octets.
pub const FIRST_OF_REPLY: &[u8] = words! {
    XID, 2, 49, 12, // prefix: RDMA2_REPLY_MIDDLE
    8, // rdma_remaining
    XID, 1, 0, 0, 0,
};

/// The last.
pub const LAST_OF_REPLY: &[u8] = words! {
    XID, 2, 50, 13, // prefix: RDMA2_REPLY_INLINE
    0, // no Write chunks
    0, 0x1234_5678,
};

/// A Call whose Write list has one chunk, without segments.
pub const EMPTY_WRITE_CHUNK: &[u8] = words! {
    XID, 2, 40, 10, // prefix: RDMA2_CALL_INLINE
    0, 0, // rdma_inv_handle, no Read chunks
    1, 0, 0, // an empty chunk
    0, // no Reply chunk
    XID, 0, 2, 100_003, 3, 0, 0, 0, 0, 0, // RPC Call
};

/// A Call whose Reply chunk has no segments.
pub const EMPTY_REPLY_CHUNK: &[u8] = words! {
    XID, 2, 40, 10, // prefix: RDMA2_CALL_INLINE
    0, 0, 0, // rdma_inv_handle, no Read chunks, no Write chunks
    1, 0, // an empty chunk
    XID, 0, 2, 100_003, 3, 0, 0, 0, 0, 0, // RPC Call
};

/// A Call in a Call chunk that is not there.
pub const NO_CALL_CHUNK: &[u8] = words! {
    XID, 2, 40, 8, // prefix: RDMA2_CALL_EXTERNAL
    0, 0, 0, 0, 0, // rdma_inv_handle, and no chunks
};

/// A Call in a Call chunk, and nothing else.
pub const EXTERNAL_ALONE: &[u8] = words! {
    XID, 2, 40, 8, // prefix: RDMA2_CALL_EXTERNAL
    0, // rdma_inv_handle
    1, 0, 0x6666_6666, 4096, 0, 0x6000,
    0, // end of the Call chunk
    0, 0, 0, // no other chunks
};

/// Properties without octets: the defaults.
pub const DEFAULTS: &[u8] = words! {
    XID, 2, 1, 7, // prefix: RDMA2_CONNPROP_FINAL
    5, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0,
};

/// Six properties, of which the last has a bad value.
pub const SIXTH_IS_BAD: &[u8] = words! {
    XID, 2, 1, 7, // prefix: RDMA2_CONNPROP_FINAL
    6, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 5, 4, 9,
};

/// Errors: each code with the arguments that its arm has (section 6.3.1).
pub const ERRORS: &[&[u8]] = &[
    words! { XID, 2, 7, 4, 1, 1, 2 },
    words! { XID, 2, 7, 4, 2 },
    words! { XID, 2, 7, 4, 3 },
    words! { XID, 2, 7, 4, 4 },
    words! { XID, 2, 7, 4, 5 },
    words! { XID, 2, 7, 4, 6, 2 },
    words! { XID, 2, 7, 4, 7, 1 },
    words! { XID, 2, 7, 4, 8, 16 },
    words! { XID, 2, 7, 4, 9, 1, 65536 },
    words! { XID, 2, 7, 4, 10, 12345 },
    words! { XID, 2, 7, 4, 11 },
    words! { XID, 2, 7, 4, 100 },
];

/// What a server of version 1 alone may answer to the first message of a client (section 4.3.2).
pub const ERR_VERS_OF_1: &[u8] = words! { XID, 1, 32, 4, 1, 1, 1 };

/// All valid messages, each the first of a connection or what follows those above it.
pub const CONNECTION: &[(&str, &[u8])] = &[
    ("middle properties", MIDDLE_PROPERTIES),
    ("final properties", FINAL),
    ("grant", GRANT),
    ("call", CALL),
    ("reply", REPLY),
    ("chunks", CHUNKS),
    ("chunks returned", CHUNKS_RETURNED),
    ("external call", EXTERNAL_CALL),
    ("external reply", EXTERNAL_REPLY),
    ("first fragment", FIRST_FRAGMENT),
    ("second fragment", SECOND_FRAGMENT),
    ("last fragment", LAST_FRAGMENT),
    ("first of a reply", FIRST_OF_REPLY),
    ("last of a reply", LAST_OF_REPLY),
];
