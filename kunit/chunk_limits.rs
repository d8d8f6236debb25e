// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what a responder says of the chunks that it takes is learnt, never unlearnt by what
//! comes later, and no other error is taken for it.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use kernel::prelude::*;

#[kunit_tests(rpcrdma_chunk_limits)]
mod suite {
    use super::*;

    #[test]
    fn properties_bound_segments() -> Result {
        let mut limits = ChunkLimits::NONE;
        limits.apply(&Properties {
            segment_bytes: 8192,
            segments: 6,
            ..Properties::default()
        });
        same("bytes", limits.segment_bytes, 8192)?;
        same("alone", limits.left(0), 6)?;
        same("beside four", limits.left(4), 2)?;
        same("beside more than there may be", limits.left(7), 0)
    }

    #[test]
    fn errors_bound_chunks() -> Result {
        let mut limits = ChunkLimits::NONE;
        claim(limits.refuse(&RdmaError::ReadChunks { max: 1 }), "Read")?;
        claim(limits.refuse(&RdmaError::WriteChunks { max: 0 }), "Write")?;
        claim(limits.refuse(&RdmaError::Segments { max: 2 }), "Segments")?;
        same("Read", limits.read_chunks, 1)?;
        same("Write", limits.write_chunks, 0)?;
        same("Segments", limits.left(0), 2)
    }

    #[test]
    fn a_later_error_gives_nothing_back() -> Result {
        let mut limits = ChunkLimits::NONE;
        for max in [2, 3] {
            limits.refuse(&RdmaError::ReadChunks { max });
            limits.refuse(&RdmaError::WriteChunks { max });
            limits.refuse(&RdmaError::Segments { max });
        }
        same("Read", limits.read_chunks, 2)?;
        same("Write", limits.write_chunks, 2)?;
        same("Segments", limits.left(0), 2)
    }

    #[test]
    fn no_other_error_is_about_chunks() -> Result {
        let mut limits = ChunkLimits::NONE;
        for error in [
            RdmaError::Chunk,
            RdmaError::BadXdr,
            RdmaError::System,
            RdmaError::ReplyResource { needed: 0 },
            RdmaError::WriteResource {
                index: 1,
                needed: 4,
            },
        ] {
            claim(!limits.refuse(&error), "another error")?;
        }
        same("limits", limits, ChunkLimits::NONE)
    }
}
