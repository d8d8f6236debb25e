// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Golden vectors: whole messages worked out by hand from RFC 8166 and RFC 8797, and some that were
//! captured from the in-tree module.
//!
//! Chunk lists follow the examples of RFC 8166, section 4.7, and are written as there: `H` handle,
//! `L` length, `OO` offset, `P` Position. The crate's own encoder has no part in them.

/// Most significant octet first (RFC 4506, section 3).
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "evaluated at compile time"
)]
const fn to_bytes<const N: usize>(words: &[u32]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut index = 0;
    while index < N {
        bytes[index] = (words[index / 4] >> (24 - 8 * (index % 4))) as u8;
        index += 1;
    }
    bytes
}

/// A message in 32-bit words.
macro_rules! words {
    ($($word:expr),+ $(,)?) => {{
        const WORDS: &[u32] = &[$($word),+];
        const BYTES: [u8; WORDS.len() * 4] = to_bytes(WORDS);
        &BYTES
    }};
}

pub mod v2;

/// `rdma_xid` of all vectors.
pub const XID: u32 = 0xa1b2_c3d4;

/// A Call without chunks: "three 32-bit fields that contain zero" (section 4.7), then an NFS
/// version 3 NULL Call with `AUTH_NONE`. Written in octets, to pin the order of those.
pub const SHORT_CALL: &[u8] = &[
    0xa1, 0xb2, 0xc3, 0xd4, // rdma_xid
    0x00, 0x00, 0x00, 0x01, // rdma_vers
    0x00, 0x00, 0x00, 0x20, // rdma_credit: 32 requested
    0x00, 0x00, 0x00, 0x00, // rdma_proc: RDMA_MSG
    0x00, 0x00, 0x00, 0x00, // Read list not present
    0x00, 0x00, 0x00, 0x00, // Write list not present
    0x00, 0x00, 0x00, 0x00, // Reply chunk not present
    0xa1, 0xb2, 0xc3, 0xd4, // xid
    0x00, 0x00, 0x00, 0x00, // msg_type: CALL
    0x00, 0x00, 0x00, 0x02, // RPC version
    0x00, 0x01, 0x86, 0xa3, // program 100003
    0x00, 0x00, 0x00, 0x03, // version 3
    0x00, 0x00, 0x00, 0x00, // procedure NULL
    0x00, 0x00, 0x00, 0x00, // credential flavor AUTH_NONE
    0x00, 0x00, 0x00, 0x00, // credential length
    0x00, 0x00, 0x00, 0x00, // verifier flavor AUTH_NONE
    0x00, 0x00, 0x00, 0x00, // verifier length
];

/// The Reply to [`SHORT_CALL`]: accepted, successful, 16 credits granted.
pub const SHORT_REPLY: &[u8] = words! {
    XID, 1, 16, 0, // fixed fields
    0, 0, 0, // no chunks
    XID, 1, 0, 0, 0, 0, // REPLY, MSG_ACCEPTED, verifier, SUCCESS
};

/// A reverse-direction Call (RFC 8167, section 5.1): `CB_NULL` of program 0x40000000.
pub const REVERSE_CALL: &[u8] = words! {
    XID, 1, 2, 0, // fixed fields
    0, 0, 0, // no chunks
    XID, 0, 2, 0x4000_0000, 1, 0, 0, 0, 0, 0, // RPC Call
};

/// A Read chunk of three segments, `1 PHLOO 1 PHLOO 1 PHLOO 0` (section 4.7), in an NFS version 3
/// WRITE whose data item begins at Position 88.
pub const READ_CHUNK: &[u8] = words! {
    XID, 1, 128, 0, // fixed fields
    1, 88, 0x1111_1111, 4096, 0x0000_7f00, 0x1234_5000, // 1 PHLOO
    1, 88, 0x2222_2222, 4096, 0x0000_7f00, 0x2234_5000, // 1 PHLOO
    1, 88, 0x3333_3333, 1001, 0xffff_ffff, 0x0000_0000, // 1 PHLOO
    0, // end of the Read list
    0, 0, // no Write list, no Reply chunk
    XID, 0, 2, 100_003, 3, 7, 0, 0, 0, 0, // RPC Call
    24, 1, 2, 3, 4, 5, 6, // file handle
    0, 0, // offset
    9193, 2, // count, stable_how
    9193, // length of the data item that the chunk carries
};

/// Read segments of three Read chunks in no order: Positions 52, 44, 52, 8240. The chunk of
/// Position 44 is 8 octets, that of 52 is 8186, that of 8240 is 4. Position 8240 is the end of
/// the Payload stream: 44 octets inline, and 8, 8188 with padding, before it.
pub const READ_LIST: &[u8] = words! {
    XID, 1, 1, 0, // fixed fields
    1, 52, 0x0000_0052, 8000, 0, 0x0001_0000, // 1 PHLOO
    1, 44, 0x0000_0044, 8, 0, 0x0002_0000, // 1 PHLOO
    1, 52, 0x0000_0053, 186, 0, 0x0003_0000, // 1 PHLOO
    1, 8240, 0x0000_8240, 4, 0, 0x0004_0000, // 1 PHLOO
    0, // end of the Read list
    0, 0, // no Write list, no Reply chunk
    XID, 0, 2, 100_003, 4, 1, 0, 0, 0, 0, // RPC Call
    0, // a word of arguments
};

/// A Write chunk of three segments and one of two, `1 3 HLOO HLOO HLOO 1 2 HLOO HLOO 0`
/// (section 4.7).
pub const WRITE_LIST: &[u8] = words! {
    XID, 1, 64, 0, // fixed fields
    0, // no Read list
    1, 3, // Write chunk of three segments
    0x0000_0a01, 1024, 0, 0x1000, // HLOO
    0x0000_0a02, 2048, 0, 0x2000, // HLOO
    0x0000_0a03, 4096, 0x8000_0000, 0x3000, // HLOO
    1, 2, // Write chunk of two segments
    0x0000_0b01, 512, 0, 0x4000, // HLOO
    0x0000_0b02, 256, 0, 0x5000, // HLOO
    0, // end of the Write list
    0, // no Reply chunk
    XID, 0, 2, 100_003, 4, 1, 0, 0, 0, 0, // RPC Call
};

/// The Reply to [`WRITE_LIST`]: 3000 octets in the first chunk, so that its second segment is
/// short and its third empty; the second chunk is unused (section 4.3.2.2).
pub const WRITE_LIST_RETURNED: &[u8] = words! {
    XID, 1, 64, 0, // fixed fields
    0, // no Read list
    1, 3, // Write chunk of three segments
    0x0000_0a01, 1024, 0, 0x1000, // HLOO
    0x0000_0a02, 1976, 0, 0x2000, // HLOO
    0x0000_0a03, 0, 0x8000_0000, 0x3000, // HLOO
    1, 2, // Write chunk of two segments
    0x0000_0b01, 0, 0, 0x4000, // HLOO
    0x0000_0b02, 0, 0, 0x5000, // HLOO
    0, // end of the Write list
    0, // no Reply chunk
    XID, 1, 0, 0, 0, 0, // RPC Reply
};

/// A Reply chunk of two segments, `1 2 HLOO HLOO` (section 4.7), behind an empty Write chunk
/// (section 4.3.2.3).
pub const REPLY_CHUNK: &[u8] = words! {
    XID, 1, 64, 0, // fixed fields
    0, // no Read list
    1, 0, // Write chunk without segments
    0, // end of the Write list
    1, 2, // Reply chunk of two segments
    0x0000_0c01, 8192, 0, 0x6000, // HLOO
    0x0000_0c02, 100, 0, 0x8000, // HLOO
    XID, 0, 2, 100_003, 3, 16, 0, 0, 0, 0, // RPC Call
};

/// A Read chunk of one segment and no other chunk, as in most WRITEs of NFS version 3. The data
/// item is the end of the Payload stream.
pub const ONE_READ_SEGMENT: &[u8] = words! {
    XID, 1, 128, 0, // fixed fields
    1, 88, 0x0000_0e01, 4096, 0x0000_7f00, 0x1234_5000, // 1 PHLOO
    0, // end of the Read list
    0, 0, // no Write list, no Reply chunk
    XID, 0, 2, 100_003, 3, 7, 0, 0, 0, 0, // RPC Call
    24, 1, 2, 3, 4, 5, 6, // file handle
    0, 0, // offset
    4096, 2, // count, stable_how
    4096, // length of the data item that the chunk carries
};

/// A Write chunk of two segments and no other chunk, as in most READs.
pub const ONE_WRITE_CHUNK: &[u8] = words! {
    XID, 1, 64, 0, // fixed fields
    0, // no Read list
    1, 2, // Write chunk of two segments
    0x0000_0f01, 4096, 0, 0x1000, // HLOO
    0x0000_0f02, 1000, 0x8000_0000, 0x2000, // HLOO
    0, // end of the Write list
    0, // no Reply chunk
    XID, 0, 2, 100_003, 3, 6, 0, 0, 0, 0, // RPC Call
};

/// The Reply to [`ONE_WRITE_CHUNK`] with 5000 octets in the chunk.
pub const ONE_WRITE_CHUNK_RETURNED: &[u8] = words! {
    XID, 1, 64, 0, // fixed fields
    0, // no Read list
    1, 2, // Write chunk of two segments
    0x0000_0f01, 4096, 0, 0x1000, // HLOO
    0x0000_0f02, 904, 0x8000_0000, 0x2000, // HLOO
    0, // end of the Write list
    0, // no Reply chunk
    XID, 1, 0, 0, 0, 0, // RPC Reply
};

/// A Long Call (section 3.5.3): `RDMA_NOMSG`, a Position Zero Read chunk of two segments, a Read
/// chunk at Position 1000, and a Write chunk.
pub const LONG_CALL: &[u8] = words! {
    XID, 1, 64, 1, // fixed fields
    1, 0, 0x0000_0d01, 4096, 0, 0x1000, // 1 PHLOO
    1, 0, 0x0000_0d02, 52, 0, 0x2000, // 1 PHLOO
    1, 1000, 0x0000_0d03, 65536, 0, 0x3000, // 1 PHLOO
    0, // end of the Read list
    1, 1, // Write chunk of one segment
    0x0000_0d04, 1_048_576, 0, 0x10_0000, // HLOO
    0, // end of the Write list
    0, // no Reply chunk
};

/// A Long Reply (section 3.5.3) to [`REPLY_CHUNK`]: `RDMA_NOMSG`, 8200 octets in the Reply chunk.
pub const LONG_REPLY: &[u8] = words! {
    XID, 1, 64, 1, // fixed fields
    0, // no Read list
    1, 0, // Write chunk without segments
    0, // end of the Write list
    1, 2, // Reply chunk of two segments
    0x0000_0c01, 8192, 0, 0x6000, // HLOO
    0x0000_0c02, 8, 0, 0x8000, // HLOO
};

/// `RDMA_ERROR`, `ERR_VERS`, versions 1 to 1 (section 4.5.1), in answer to version 2.
pub const ERR_VERS: &[u8] = words![XID, 2, 32, 4, 1, 1, 1];

/// `RDMA_ERROR`, `ERR_VERS`, versions 2 to 3, from a responder that no longer has version 1.
pub const ERR_VERS_RANGE: &[u8] = words![XID, 1, 16, 4, 1, 2, 3];

/// `RDMA_ERROR`, `ERR_CHUNK` (section 4.5.2).
pub const ERR_CHUNK: &[u8] = words![XID, 1, 32, 4, 2];

/// `RDMA_MSGP` (section 4.6.1), with alignment and threshold.
pub const MSGP: &[u8] = words! {
    XID, 1, 32, 2, // fixed fields
    4096, 1024, // rdma_align, rdma_thresh
    0, 0, 0, // no chunks
    XID, 0, 2, 100_003, 3, 7, 0, 0, 0, 0, // RPC Call
};

/// `RDMA_DONE` (section 4.6.2), which has nothing but the fixed fields.
pub const DONE: &[u8] = words![XID, 1, 32, 3];

/// A Reply to [`REPLY_CHUNK`] that its Reply chunk has no room for, in a Read chunk that the
/// responder provides (draft-cel-nfsv4-rpcrdma-reliable-reply, section 4.1).
pub const PROVIDED_REPLY: &[u8] = words! {
    XID, 1, 64, 1, // fixed fields
    1, 0, 0x0000_0e01, 96, 0x1, 0xff40, // 1 PHLOO
    1, 0, 0x0000_0e02, 12000, 0x1, 0, // 1 PHLOO
    0, // end of the Read list
    1, 0, // Write chunk without segments
    0, // end of the Write list
    0, // no Reply chunk
};

/// Captured: the in-tree responder of Linux 7.3.4 answers a NULL Call.
pub const IN_TREE_SHORT_REPLY: &[u8] = words! {
    0x8aa3_4bed, 1, 128, 0, // fixed fields
    0, 0, 0, // no chunks
    0x8aa3_4bed, 1, 0, 0, 0, 0, // accepted, AUTH_NONE, SUCCESS
};

/// Captured: the in-tree responder returns an EXCHANGE_ID result in the Reply chunk.
pub const IN_TREE_LONG_REPLY: &[u8] = words! {
    0x8ba3_4bed, 1, 128, 1, // fixed fields: RDMA_NOMSG
    0, 0, // no Read list, no Write list
    1, 1, 0x29a7, 196, 0x8ba3_4bed, 0x0ac4, // Reply chunk of one segment
};

/// Captured: the in-tree responder returns 262144 octets of a READ in the Write chunk.
pub const IN_TREE_READ_REPLY: &[u8] = words! {
    0xafa3_4bed, 1, 128, 0, // fixed fields
    0, // no Read list
    1, 1, 0x276a, 0x0004_0000, 0xafa3_4bed, 0, 0, // Write chunk of one segment
    0, // no Reply chunk
    0xafa3_4bed, 1, 0, 0, 0, 0, // accepted, AUTH_NONE, SUCCESS
    0, 0, 3, // NFS4_OK, empty tag, three results
    0x35, 0, 0xc90f_016b, 0x5e44_f69a, 0x0400_0000, 0, 0x21, 0, 0x3f, 0x3f, 0, // SEQUENCE
    0x16, 0, // PUTFH
    0x19, 0, 0, 0x0004_0000, // READ: no end of file, the length of what was moved
};

/// All messages that decode, by name.
pub const VALID: &[(&str, &[u8])] = &[
    ("short call", SHORT_CALL),
    ("short reply", SHORT_REPLY),
    ("reverse call", REVERSE_CALL),
    ("read chunk", READ_CHUNK),
    ("read list", READ_LIST),
    ("write list", WRITE_LIST),
    ("write list returned", WRITE_LIST_RETURNED),
    ("reply chunk", REPLY_CHUNK),
    ("one read segment", ONE_READ_SEGMENT),
    ("one write chunk", ONE_WRITE_CHUNK),
    ("one write chunk returned", ONE_WRITE_CHUNK_RETURNED),
    ("long call", LONG_CALL),
    ("long reply", LONG_REPLY),
    ("provided reply", PROVIDED_REPLY),
    ("err vers", ERR_VERS),
    ("err vers range", ERR_VERS_RANGE),
    ("err chunk", ERR_CHUNK),
];

/// Private data (RFC 8797, section 4): remote invalidation, sends 4096 octets, receives 8192.
pub const PRIVATE_DATA: &[u8] = &[0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 7];

/// The same, and a block behind it: the sender may pull Replies, and does not provide any.
pub const PRIVATE_DATA_PULLS: &[u8] = &[
    0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 7, // the message
    0x72, 0xa1, 0xc3, 0x5e, 1, 1, 0, 0, // the block
];

/// The header of an RPC Call (RFC 5531, section 9): WRITE of NFS 3, with a credential of five
/// octets and a verifier of four.
pub const CALL_HEADER: &[u8] = words![
    0x0102_0304,
    0,
    2,
    100_003,
    3,
    7, //
    1,
    5,
    0x6162_6364,
    0x6500_0000, //
    6,
    4,
    0xffff_ffff,
];

/// The same with arguments behind it.
pub const CALL_HEADER_WITH_ARGUMENTS: &[u8] = words![
    0x0102_0304,
    0,
    2,
    100_003,
    3,
    7, //
    1,
    5,
    0x6162_6364,
    0x6500_0000, //
    6,
    4,
    0xffff_ffff, //
    1,
    2,
    3,
];

/// The same as a Reply.
pub const REPLY_HEADER: &[u8] = words![
    0x0102_0304,
    1,
    2,
    100_003,
    3,
    7, //
    1,
    5,
    0x6162_6364,
    0x6500_0000, //
    6,
    4,
    0xffff_ffff,
];

/// The same with a credential that claims to be as long as can be.
pub const CALL_HEADER_TOO_LONG: &[u8] = words![
    0x0102_0304,
    0,
    2,
    100_003,
    3,
    7, //
    1,
    0xffff_ffff,
    0x6162_6364,
    0x6500_0000, //
    6,
    4,
    0xffff_ffff,
];

/// A Call with an RPCSEC_GSS credential (RFC 2203, section 5) of this service.
pub const fn gss_call_header(service: u32) -> [u8; 64] {
    to_bytes(&[
        0x0102_0304,
        0,
        2,
        100_003,
        3,
        7, //
        6,
        24,
        1,
        0,
        9,
        service,
        4,
        0xabcd_abcd, //
        0,
        0,
    ])
}
