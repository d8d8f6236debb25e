// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections that come and go.

use std::ffi::{CStr, CString};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use crate::{sys, Operation};

/// A connection's end goes on after that of its mount.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// A mount, a GETATTR and an unmount, by the system calls alone.
pub(crate) struct Connect {
    source: CString,
    options: CString,
    place: CString,
    kind: &'static CStr,
}

impl Connect {
    pub(crate) fn new(source: &str, options: &str, place: &str) -> io::Result<Self> {
        fs::create_dir_all(place)?;
        let kind = if options.contains("vers=4") {
            c"nfs4"
        } else {
            c"nfs"
        };
        Ok(Self {
            source: sys::path(source)?,
            options: sys::path(options)?,
            place: sys::path(place)?,
            kind,
        })
    }
}

impl Operation for Connect {
    fn run(&mut self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            sys::mount(&self.source, &self.place, self.kind, &self.options)?;
            sys::statx(libc::AT_FDCWD, &self.place, libc::AT_STATX_FORCE_SYNC)?;
            sys::umount(&self.place)?;
        }
        thread::sleep(AFTERWARDS);
        Ok(())
    }
}
