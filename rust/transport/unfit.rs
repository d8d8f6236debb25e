// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Why a device is of no use.

use core::fmt;
use kernel::prelude::*;

/// A device is of no use; the text says why, as what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It has no memory-management extensions.
    CannotRegister,
    /// A region covers `pages`.
    FewPages { pages: u32, needed: u32 },
    /// Its queues hold too little.
    ShortQueues {
        requests: u32,
        completions: u32,
        needed: u32,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotRegister => f.write_str("cannot register memory by work request"),
            Self::FewPages { pages, needed } => {
                write!(f, "covers {pages} pages with a region, and {needed} are needed")
            }
            Self::ShortQueues {
                requests,
                completions,
                needed,
            } => write!(
                f,
                "has queues for {requests} requests and {completions} completions, and {needed} are needed"
            ),
        }
    }
}

impl From<Unfit> for Error {
    fn from(_: Unfit) -> Self {
        EOPNOTSUPP
    }
}
