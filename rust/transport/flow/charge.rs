// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a message uses the credits of a connection.

use xdr::Direction;

/// How a message uses credits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Charge {
    /// Its sender has the credit for it, as for a Call.
    Taken,
    /// As a Reply: in version 2 it needs a credit, for which it waits its turn.
    AtPost,
    /// As a GRANT: beside the credits.
    Beside,
}

impl From<Direction> for Charge {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Call => Self::Taken,
            Direction::Reply => Self::AtPost,
        }
    }
}
