// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: only a consumer that guessed how long its Reply will be may ask again, and only where
//! more room can help; every other RPC ends with `EIO`.

use super::*;
use crate::kunit::same;

#[kunit_tests(rpcrdma_refusal)]
mod suite {
    use super::*;

    #[test]
    fn who_guessed_may_ask_again() -> Result {
        same("guessed", refused(RdmaError::Chunk, true), EOVERFLOW)
    }

    #[test]
    fn every_other_rpc_ends() -> Result {
        same("known", refused(RdmaError::Chunk, false), EIO)
    }

    #[test]
    fn more_room_is_no_help_against_another_version() -> Result {
        for (low, high) in [(1, 1), (2, 2), (0, u32::MAX)] {
            let error = RdmaError::Version { low, high };
            same("guessed", refused(error, true), EIO)?;
            same("known", refused(error, false), EIO)?;
        }
        Ok(())
    }
}
