// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Outcomes of work requests.

use crate::kapi::bindings;
use core::ffi::CStr;
use kernel::prelude::*;

/// The outcome of a work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wc {
    status: u32,
    vendor_err: u32,
}

impl Wc {
    /// Well.
    pub(crate) const SUCCESS: Self = Self::with(bindings::ib_wc_status_IB_WC_SUCCESS);
    /// The connection had ended before.
    pub(crate) const FLUSHED: Self = Self::with(bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR);
    /// The device did not take it.
    pub(crate) const NOT_POSTED: Self = Self::with(bindings::ib_wc_status_IB_WC_GENERAL_ERR);

    const fn with(status: u32) -> Self {
        Self {
            status,
            vendor_err: 0,
        }
    }

    /// Returns what a completion says.
    pub(super) fn of(wc: &bindings::ib_wc) -> Self {
        let status = wc.status;
        let vendor_err = match status {
            // Nobody asks for it, and drivers need not set it.
            bindings::ib_wc_status_IB_WC_SUCCESS => 0,
            _ => wc.vendor_err,
        };
        Self { status, vendor_err }
    }

    /// Returns whether it ended well.
    pub(crate) fn is_ok(self) -> bool {
        self.status == bindings::ib_wc_status_IB_WC_SUCCESS
    }

    /// Returns whether this only says that the connection had ended before.
    pub(crate) fn is_flush(self) -> bool {
        self.status == bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR
    }

    /// Returns whether the request itself was at fault, and not the link or the peer's state.
    pub(crate) fn blames_request(self) -> bool {
        matches!(
            self.status,
            bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR
                | bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR
                | bindings::ib_wc_status_IB_WC_REM_OP_ERR
                | bindings::ib_wc_status_IB_WC_LOC_LEN_ERR
                | bindings::ib_wc_status_IB_WC_LOC_PROT_ERR
        )
    }

    /// Returns whether the peer does not let its memory be used.
    pub(crate) fn is_remote_access(self) -> bool {
        self.status == bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR
    }

    /// Returns the number of the verbs for it.
    pub(crate) fn status(self) -> u32 {
        self.status
    }

    /// Returns what the device's maker says of it.
    pub(crate) fn vendor_err(self) -> u32 {
        self.vendor_err
    }

    /// Returns the meaning of the status.
    pub(crate) fn words(self) -> &'static str {
        // SAFETY: The function takes any number, and returns a constant string.
        let words = unsafe { CStr::from_char_ptr(bindings::ib_wc_status_msg(self.status)) };
        words.to_str().unwrap_or("unknown")
    }
}
