// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Which arguments may be reduced: what the NFS binding says (RFC 8267), as far as it can be told
//! without decoding a COMPOUND. Inside of one the service decides.

use xdr::{
    Call,
    CallHeader, //
};

const NFS: u32 = 100_003;

/// Whether the Read chunks of a Call, whose RPC message begins with `rpc`, may be where they are.
///
/// Where the RPC header ends before it is whole, a chunk would hold the rest of it.
pub(super) fn may_reduce(call: &Call<'_>, rpc: &[u8]) -> bool {
    // They come in ascending order.
    let Some(first) = call.reads.chunks().find(|chunk| chunk.position() != 0) else {
        return true;
    };
    CallHeader::peek(rpc).is_some_and(|header| {
        has_eligible_argument(&header) && first.position() as usize >= header.size
    })
}

/// Whether the procedure has an argument that may be reduced (RFC 8267, sections 4 and 5.2): none
/// under integrity or privacy (RFC 8166, section 8.2.2.3).
pub(super) fn has_eligible_argument(header: &CallHeader) -> bool {
    if header.wrapped {
        return false;
    }
    match (header.program, header.version) {
        // WRITE and SYMLINK.
        (NFS, 2) => matches!(header.procedure, 8 | 13),
        (NFS, 3) => matches!(header.procedure, 7 | 10),
        // COMPOUND.
        (NFS, 4) => header.procedure == 1,
        _ => false,
    }
}
