// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a device without the memory-management extensions is known as such, and is no error;
//! so is one that does not look at the keys which a peer invalidates.

use crate::{
    kapi::ib::{
        device::*,
        fake::Device, //
    },
    kunit::{
        claim,
        same, //
    },
};
use kernel::prelude::*;

/// What is read of a device of the fake kind with these flags, and regions of so many pages.
fn limits(flags: u64, pages: u32) -> Result<DeviceLimits> {
    let device = Device::new()?;
    // SAFETY: The device is valid, nobody else knows it, and it has one port.
    Ok(unsafe {
        let raw = device.as_ptr().as_ptr();
        (*raw).attrs.device_cap_flags = flags;
        (*raw).attrs.max_fast_reg_page_list_len = pages;
        DeviceLimits::of(raw, 1)
    })
}

#[kunit_tests(rpcrdma_device)]
mod suite {
    use super::*;

    #[test]
    fn extensions() -> Result {
        let extensions = bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
        for (flags, pages, registers) in [
            (extensions, 8, true),
            (u64::MAX, 1, true),
            (!extensions, 8, false),
            (0, 8, false),
            // What it says of itself does not agree.
            (extensions, 0, false),
        ] {
            let found = limits(flags, pages)?;
            same("registers", found.registers, registers)?;
            same("pages", found.max_region_pages, pages)?;
            claim(found.iwarp, "the rest is read all the same")?;
        }
        Ok(())
    }

    #[test]
    fn keys_that_a_peer_invalidates() -> Result {
        let limits = limits(u64::MAX, 8)?;
        same("iWARP", limits.checks_keys(), false)?;
        for (ib_or_roce, registers, checks) in [
            (false, true, false),
            (true, true, true),
            (true, false, false),
        ] {
            let device = DeviceLimits {
                ib_or_roce,
                registers,
                ..limits
            };
            same("looks at keys", device.checks_keys(), checks)?;
        }
        Ok(())
    }
}
