// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! KUnit suites, and what they share.
//!
//! A suite that looks into a module is that module's child: `kunit/<noun>.rs`, or `tests.rs` beside
//! a noun of `rust/kapi`, where `unsafe` is allowed.
//!
//! A failed `assert!` ends the test's thread without running destructors, and outside of a test
//! function it is a panic. So the suites use the functions below: a test returns at the first claim
//! that does not hold, and cleans up.

mod class;
pub(crate) mod drivers;
mod xdr;

use core::{
    fmt::{
        self,
        Arguments,
        Debug, //
    },
    panic::Location, //
};
use kernel::prelude::*;

/// Fails the test unless the claim holds.
#[track_caller]
pub(crate) fn claim(holds: bool, claim: &str) -> Result {
    if holds {
        return Ok(());
    }
    let at = Location::caller();
    pr_err!("# {}:{}: not so: {claim}\n", at.file(), at.line());
    Err(EINVAL)
}

/// Fails the test unless what was found is what was expected.
#[track_caller]
pub(crate) fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result {
    if found == expected {
        return Ok(());
    }
    let at = Location::caller();
    pr_err!(
        "# {}:{}: {what}: found {found:?}, expected {expected:?}\n",
        at.file(),
        at.line()
    );
    Err(EINVAL)
}

/// Fails the test unless a text is what was expected.
pub(crate) fn says(text: Arguments<'_>, expected: &str) -> Result {
    /// What is still to be written, while all was as expected.
    struct Rest<'a>(Option<&'a str>);

    impl fmt::Write for Rest<'_> {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 = self.0.and_then(|rest| rest.strip_prefix(part));
            Ok(())
        }
    }

    let mut rest = Rest(Some(expected));
    let done = fmt::write(&mut rest, text);
    claim(done.is_ok() && rest.0 == Some(""), expected)
}

/// Returns how many bytes a text is.
pub(crate) fn text_len(text: Arguments<'_>) -> usize {
    struct Written(usize);

    impl fmt::Write for Written {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 += part.len();
            Ok(())
        }
    }

    let mut written = Written(0);
    let done = fmt::write(&mut written, text);
    done.map_or(0, |()| written.0)
}
