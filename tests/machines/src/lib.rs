// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The module's state machines, for cargo: the files of `rust/` that do nothing but keep a state,
//! each with its KUnit suite as its tests, at the paths that they have in the module.
//!
//! To add one, name it in `transport`, `client`, `server` or `kapi`. What it uses of the rest of
//! the module is played in `kapi` and `played`, and what it uses of the kernel by the crate
//! `kernel`; where it takes much more than what is there, it is no state machine.

// The module's own build says what nothing uses.
#![allow(dead_code, unused_imports, unused_unsafe)]

mod client;
#[path = "../../../kunit/drivers.rs"]
mod drivers;
mod kapi;
mod played;
mod server;
mod transport;

/// What the suites share.
mod kunit {
    use core::fmt::{
        Arguments,
        Debug, //
    };
    use kernel::prelude::*;

    /// Fails the test unless the claim holds.
    #[track_caller]
    pub(crate) fn claim(holds: bool, claim: &str) -> Result {
        assert!(holds, "not so: {claim}");
        Ok(())
    }

    /// Fails the test unless what was found is what was expected.
    #[track_caller]
    pub(crate) fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result {
        assert_eq!(found, expected, "{what}");
        Ok(())
    }

    /// Fails the test unless a text is what was expected.
    #[track_caller]
    pub(crate) fn says(text: Arguments<'_>, expected: &str) -> Result {
        same("the text", text.to_string().as_str(), expected)
    }

    /// Returns how many bytes a text is.
    pub(crate) fn text_len(text: Arguments<'_>) -> usize {
        text.to_string().len()
    }

    pub(crate) use crate::drivers;
}
