// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what is said of keys and of pulled Replies is right for the version that a connection
//! speaks in the end, which is not known when the private data are.

use super::*;
use crate::kunit::same;
use kernel::prelude::*;

const NO: &str = "the peer does not";

#[kunit_tests(rpcrdma_terms)]
mod suite {
    use super::*;

    #[test]
    fn what_the_peer_does_not_counts_in_version_1() -> Result {
        let terms = Terms {
            checks_keys: true,
            no_invalidation: Some(NO),
            no_pulls: Some(NO),
        };
        for version in [None, Some(Version::One)] {
            same("keys", terms.no_invalidation(version), Some(NO))?;
            same("Replies", terms.no_pulls(version), Some(NO))?;
        }
        let two = Some(Version::Two);
        same("keys in version 2", terms.no_invalidation(two), None)?;
        let none = terms.no_pulls(two);
        same(
            "it is not the peer's",
            none.is_some_and(|why| why != NO),
            true,
        )
    }

    #[test]
    fn a_device_that_does_not_look_counts_in_both() -> Result {
        let terms = Terms {
            checks_keys: false,
            no_invalidation: None,
            no_pulls: None,
        };
        for version in [None, Some(Version::One), Some(Version::Two)] {
            let off = terms.no_invalidation(version).is_some();
            same("keys are not invalidated", off, true)?;
        }
        same("Replies", terms.no_pulls(Some(Version::One)), None)
    }
}
