// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the private data of both ends come to.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/terms.rs"]
mod tests;

use kernel::fmt::{
    self,
    Formatter, //
};
use xdr::Version;

/// What the private data of both ends come to (RFC 8797, and section 4.1 of the reliable-reply
/// draft).
pub(crate) struct Terms {
    /// The device of this end looks at whole keys, without which none is invalidated remotely.
    pub(crate) checks_keys: bool,
    /// Why none is in version 1, where the device does.
    pub(crate) no_invalidation: Option<&'static str>,
    /// Why no Reply is pulled in version 1.
    pub(crate) no_pulls: Option<&'static str>,
}

impl Terms {
    /// Returns why no keys are invalidated remotely, if so.
    fn no_invalidation(&self, version: Option<Version>) -> Option<&'static str> {
        match (self.checks_keys, version) {
            (false, _) => Some("the device does not check keys"),
            (true, Some(Version::Two)) => None,
            (true, _) => self.no_invalidation,
        }
    }

    /// Returns why no Replies are pulled, if so.
    fn no_pulls(&self, version: Option<Version>) -> Option<&'static str> {
        match version {
            Some(Version::Two) => Some("version 2 continues messages"),
            _ => self.no_pulls,
        }
    }

    pub(super) fn describe(&self, version: Option<Version>, to: &mut Formatter<'_>) -> fmt::Result {
        let off = self.no_invalidation(version);
        choice(to, "remote invalidation", off)?;
        choice(to, "pulls", self.no_pulls(version))?;
        let off = match version {
            Some(Version::Two) => None,
            Some(Version::One) => Some("version 1 has none"),
            None => Some("the version is not known yet"),
        };
        choice(to, "continuation", off)
    }
}

/// Writes that something is on, or why it is `off`.
fn choice(to: &mut Formatter<'_>, name: &str, off: Option<&'static str>) -> fmt::Result {
    match off {
        Some(why) => writeln!(to, "\t{name}: off, {why}"),
        None => writeln!(to, "\t{name}: on"),
    }
}
