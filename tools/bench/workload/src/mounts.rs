// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections that come and go.

use std::ffi::{CStr, CString};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use crate::{sys, Operation};

/// A connection's end goes on so long after that of its mount, at most.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// A mount by the system calls alone, and a GETATTR, so that it is there.
pub(crate) struct Mount {
    source: CString,
    options: CString,
    place: CString,
    kind: &'static CStr,
    is_there: bool,
}

impl Mount {
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
            is_there: false,
        })
    }

    fn connect(&mut self) -> io::Result<()> {
        sys::mount(&self.source, &self.place, self.kind, &self.options)?;
        self.is_there = true;
        sys::statx(libc::AT_FDCWD, &self.place, libc::AT_STATX_FORCE_SYNC).map(drop)
    }

    fn disconnect(&mut self) -> io::Result<()> {
        if self.is_there {
            sys::umount(&self.place)?;
            self.is_there = false;
            thread::sleep(AFTERWARDS);
        }
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // There is nobody left to tell of it.
        let _ = self.disconnect();
    }
}

/// A connection that comes; its end is not measured.
pub(crate) struct Connect(pub(crate) Mount);

impl Operation for Connect {
    fn prepare(&mut self, count: u64) -> io::Result<()> {
        one_at_most(count)?;
        self.0.disconnect()
    }

    fn run(&mut self, count: u64) -> io::Result<()> {
        (0..count).try_for_each(|_| self.0.connect())
    }
}

/// A connection that goes; its beginning is not measured.
pub(crate) struct Disconnect(pub(crate) Mount);

impl Operation for Disconnect {
    fn prepare(&mut self, count: u64) -> io::Result<()> {
        one_at_most(count)?;
        (0..count).try_for_each(|_| self.0.connect())
    }

    fn run(&mut self, _count: u64) -> io::Result<()> {
        self.0.disconnect()
    }
}

/// Several mounts of one place have one connection.
fn one_at_most(count: u64) -> io::Result<()> {
    if count > 1 {
        return Err(io::Error::other("there is one connection at a time"));
    }
    Ok(())
}
