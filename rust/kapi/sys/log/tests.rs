// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a peer that has many lines logged costs a few of them, and it is said how many more
//! there were; no other peer's are left out for that.

use super::*;
use crate::kunit::same;

#[kunit_tests(rpcrdma_log)]
mod suite {
    use super::*;

    #[test]
    fn a_few_lines_and_the_count_of_others() -> Result {
        let lines = PeerLines::new();
        for _ in 0..MOST {
            same("first", lines.admit(1, 7), Some(0))?;
        }
        for _ in 0..5 {
            same("too many", lines.admit(1, 7), None)?;
        }
        same("later", lines.admit(1, 9), Some(5))?;
        same("later", lines.admit(1, 9), Some(0))?;
        same("later still", lines.admit(1, 10), Some(0))
    }

    #[test]
    fn another_peer_is_not_held_to_that() -> Result {
        let lines = PeerLines::new();
        for _ in 0..MOST + 5 {
            let _ = lines.admit(1, 7);
        }
        same("another", lines.admit(2, 7), Some(0))
    }

    #[test]
    fn a_peer_is_a_host() -> Result {
        let address = SocketAddress::for_test;
        same("the same", address(1).hash(), address(1).hash())?;
        same("another", address(1).hash() == address(2).hash(), false)
    }
}
