// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Log lines that a peer or a broken link can cause, so that their rate must be limited.
//!
//! Nothing is formatted when the line is not printed. Any context. Use with `format_args!`, without
//! a newline; the module's name is put in front.

use crate::kapi::bindings;
use core::fmt::Arguments;
use kernel::prelude::*;

/// Prints a line at level "warning".
pub(crate) fn warn(line: Arguments<'_>) {
    // SAFETY: No precondition.
    if unsafe { bindings::may_warn() } {
        pr_warn!("{line}\n");
    }
}

/// Prints a line for an administrator who wants to see what the server's transports do (`rpcdebug
/// -m rpc -s svcsock`). Not limited in rate.
pub(crate) fn debug_server(line: Arguments<'_>) {
    // SAFETY: No precondition.
    if unsafe { bindings::debugs_server() } {
        pr_info!("{line}\n");
    }
}

/// Prints a line at level "info".
pub(crate) fn info(line: Arguments<'_>) {
    // SAFETY: No precondition.
    if unsafe { bindings::may_inform() } {
        pr_info!("{line}\n");
    }
}
