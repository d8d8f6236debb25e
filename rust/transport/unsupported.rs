// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Why a device is not supported.

use crate::kapi::ib::Part;
use core::fmt;
use kernel::prelude::*;

/// Says why a device is not supported; the text is what the device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsupported {
    /// It has no memory-management extensions.
    CannotRegister,
    /// ib_core registers memory for all RDMA by it, since it was told to.
    RegistersAll,
    /// A region covers `pages`.
    FewPages { pages: u32, needed: u32 },
    /// Its queues hold too little.
    ShortQueues {
        requests: u32,
        completions: u32,
        needed: u32,
    },
    /// It refuses what is needed, though it is within its limits.
    Refused { part: Part, size: u32, error: Error },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotRegister => f.write_str("cannot register memory by work request"),
            Self::RegistersAll => f.write_str(
                "would register memory for all RDMA (ib_core.force_mr), which is not done",
            ),
            Self::FewPages { pages, needed } => {
                write!(
                    f,
                    "covers {pages} pages with a region, and {needed} are needed"
                )
            }
            Self::ShortQueues {
                requests,
                completions,
                needed,
            } => write!(
                f,
                "has queues for {requests} requests and {completions} completions, \
                 and {needed} are needed"
            ),
            Self::Refused { part, size, error } => {
                let (what, of) = match part {
                    Part::Region => ("regions", "pages"),
                    _ => ("queues", "requests"),
                };
                write!(
                    f,
                    "refuses {what} of {size} {of} ({error:?}), and fewer are not enough"
                )
            }
        }
    }
}

impl From<Unsupported> for Error {
    fn from(reason: Unsupported) -> Self {
        match reason {
            // There may be memory for it later.
            Unsupported::Refused { error, .. } => error,
            _ => EOPNOTSUPP,
        }
    }
}
