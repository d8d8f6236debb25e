// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Why a device is of no use.

use crate::kapi::ib::Part;
use core::fmt;
use kernel::prelude::*;

/// What a device has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Queues that are so long.
    Queues,
    /// A region of so many pages.
    Regions,
}

impl From<Part> for Refused {
    fn from(part: Part) -> Self {
        match part {
            Part::Region => Self::Regions,
            Part::CompletionQueue | Part::ProtectionDomain | Part::QueuePair => Self::Queues,
        }
    }
}

/// A device is of no use; the text says why, as what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It has no memory-management extensions.
    CannotRegister,
    /// The core registers memory for all RDMA by it, since it was told to.
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
    Refuses {
        what: Refused,
        size: u32,
        error: Error,
    },
}

impl fmt::Display for Unfit {
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
            Self::Refuses { what, size, error } => {
                let (what, of) = match what {
                    Refused::Queues => ("queues", "requests"),
                    Refused::Regions => ("regions", "pages"),
                };
                write!(
                    f,
                    "refuses {what} of {size} {of} ({error:?}), and fewer are not enough"
                )
            }
        }
    }
}

impl From<Unfit> for Error {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            // There may be memory for it later.
            Unfit::Refuses { error, .. } => error,
            _ => EOPNOTSUPP,
        }
    }
}
