// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: only a consumer that guessed how long its Reply will be may ask again, and only where
//! more room can help; every other RPC ends with `EIO`.

use super::*;
use crate::kunit::same;

#[kunit_tests(rpcrdma_refusal)]
mod suite {
    use super::*;

    /// What may say that there is too little room for a Reply.
    const ROOM: [RdmaError; 3] = [
        RdmaError::Chunk,
        RdmaError::WriteResource {
            index: 1,
            needed: 4096,
        },
        RdmaError::ReplyResource { needed: 65536 },
    ];

    #[test]
    fn who_guessed_may_ask_again() -> Result {
        for error in ROOM {
            same("guessed", refused(error, true), EOVERFLOW)?;
        }
        Ok(())
    }

    #[test]
    fn every_other_rpc_ends() -> Result {
        for error in ROOM {
            same("known", refused(error, false), EIO)?;
        }
        Ok(())
    }

    #[test]
    fn more_room_is_no_help_against_another_error() -> Result {
        let ranges = [(1, 1), (2, 2), (0, u32::MAX)];
        let versions = ranges.map(|(low, high)| RdmaError::Version { low, high });
        let others = [
            RdmaError::BadXdr,
            RdmaError::BadPropertyValue,
            RdmaError::InvalidHeaderType,
            RdmaError::InvalidContinuation,
            RdmaError::ReadChunks { max: 1 },
            RdmaError::WriteChunks { max: 1 },
            RdmaError::Segments { max: 16 },
            RdmaError::VersionMismatch,
            RdmaError::System,
        ];
        for error in Iterator::chain(versions.into_iter(), others) {
            same("guessed", refused(error, true), EIO)?;
            same("known", refused(error, false), EIO)?;
        }
        Ok(())
    }
}
