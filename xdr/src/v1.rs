// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What version 1 alone has on the wire (RFC 8166).

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod error;
pub(crate) mod header;
pub(crate) mod provided;
