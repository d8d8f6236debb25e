// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How the RPC layer finds classes, for tests.

use crate::kapi::sunrpc::class::*;
use kernel::error::to_result;

impl Place<XprtClass> {
    /// Returns the number of network identifiers of the class, which must be registered: as many
    /// as are in front of the empty string. `EFAULT` if there is a null pointer before it.
    pub(crate) fn netids(&self) -> Result<usize> {
        // SAFETY: What is registered is not written to. Only the array of ours is copied.
        let netids = unsafe { (&raw const (*self.as_raw()).netids).read() };
        for (n, netid) in netids.iter().enumerate() {
            if netid.is_null() {
                return Err(EFAULT);
            }
            // SAFETY: Not null, and so a static string.
            if unsafe { CStr::from_char_ptr(*netid) }.is_empty() {
                return Ok(n);
            }
        }
        Err(EOVERFLOW)
    }
}

/// Returns the identifier of the class with that network identifier; `ENOENT` if there is none. May
/// sleep.
pub(crate) fn find_transport_ident(netid: &CStr) -> Result<c_int> {
    // SAFETY: A terminated string.
    let ident = unsafe { bindings::xprt_find_transport_ident(netid.as_char_ptr()) };
    to_result(ident)?;
    Ok(ident)
}
