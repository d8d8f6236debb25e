// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints over a device without hardware.

mod endpoint;
mod posting;
mod transfer;
