// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Version 1 alone: headers (RFC 8166), and Replies that are pulled.

mod decode;
pub(crate) mod encode;
mod error;
pub(crate) mod header;
pub(crate) mod provided;
