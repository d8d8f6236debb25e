// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What is done to names and attributes.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::{sys, Operation};

/// What the standard library's and glibc's readers of directories have.
const DIRECTORY_BUFFER: usize = 32 * 1024;
/// In an entry of a directory: its length, its name.
const ENTRY_LENGTH: usize = 16;
const ENTRY_NAME: usize = 19;

/// A name in an open directory, so that nothing before it is looked up.
struct Name {
    directory: OwnedFd,
    name: CString,
}

impl Name {
    fn new(file: &str) -> io::Result<Self> {
        let (directory, name) = file
            .rsplit_once('/')
            .ok_or_else(|| io::Error::other("wants a path with a directory"))?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        Ok(Self {
            directory: sys::open(None, &sys::path(directory)?, flags)?,
            name: sys::path(name)?,
        })
    }

    fn open(&self, flags: i32) -> io::Result<OwnedFd> {
        sys::open(Some(&self.directory), &self.name, flags)
    }
}

/// A GETATTR.
pub(crate) struct Getattr {
    file: OwnedFd,
}

impl Getattr {
    pub(crate) fn new(file: &str) -> io::Result<Self> {
        Ok(Self {
            file: sys::open(None, &sys::path(file)?, libc::O_RDONLY)?,
        })
    }
}

impl Operation for Getattr {
    fn run(&mut self, count: u64) -> io::Result<()> {
        let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_FORCE_SYNC;
        for _ in 0..count {
            sys::statx(self.file.as_raw_fd(), c"", flags)?;
        }
        Ok(())
    }
}

/// A LOOKUP, on a mount that caches none.
pub(crate) struct Lookup(Name);

impl Lookup {
    pub(crate) fn new(file: &str) -> io::Result<Self> {
        Ok(Self(Name::new(file)?))
    }
}

impl Operation for Lookup {
    fn run(&mut self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            sys::statx(
                self.0.directory.as_raw_fd(),
                &self.0.name,
                libc::AT_STATX_DONT_SYNC,
            )?;
        }
        Ok(())
    }
}

/// An OPEN and a CLOSE.
pub(crate) struct Open(Name);

impl Open {
    pub(crate) fn new(file: &str) -> io::Result<Self> {
        Ok(Self(Name::new(file)?))
    }
}

impl Operation for Open {
    fn run(&mut self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            self.0.open(libc::O_RDONLY)?;
        }
        Ok(())
    }
}

/// A CREATE, or an OPEN that creates, and a REMOVE.
pub(crate) struct Create(Name);

impl Create {
    pub(crate) fn new(file: &str) -> io::Result<Self> {
        Ok(Self(Name::new(file)?))
    }
}

impl Operation for Create {
    fn run(&mut self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            self.0.open(libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY)?;
            sys::unlink(&self.0.directory, &self.0.name)?;
        }
        Ok(())
    }
}

/// READDIRs of a whole directory.
pub(crate) struct List {
    directory: CString,
    entries: u64,
    buffer: Vec<u8>,
}

impl List {
    pub(crate) fn new(directory: &str, entries: u64) -> io::Result<Self> {
        Ok(Self {
            directory: sys::path(directory)?,
            entries,
            buffer: vec![0; DIRECTORY_BUFFER],
        })
    }

    fn once(&mut self) -> io::Result<()> {
        let directory = sys::open(None, &self.directory, libc::O_RDONLY | libc::O_DIRECTORY)?;
        sys::forget(&directory)?;
        let mut found = 0;
        loop {
            let length = sys::getdents(&directory, &mut self.buffer)?;
            if length == 0 {
                break;
            }
            found += count_entries(&self.buffer[..length]);
        }
        if found == self.entries {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "the directory has {found} entries"
            )))
        }
    }
}

impl Operation for List {
    fn run(&mut self, count: u64) -> io::Result<()> {
        (0..count).try_for_each(|_| self.once())
    }
}

/// What is asked once of each entry of a directory, since the client keeps what it was told.
pub(crate) struct Each {
    path: String,
    directory: OwnedFd,
    ask: fn(&Each, &CStr) -> io::Result<()>,
    /// How many have been asked.
    asked: u64,
}

impl Each {
    /// READLINKs of symbolic links.
    pub(crate) fn readlink(path: &str) -> io::Result<Self> {
        Self::new(path, |each, name| {
            sys::readlink(&each.directory, name).map(drop)
        })
    }

    /// GETACLs, of which only the length is wanted.
    pub(crate) fn getacl(path: &str) -> io::Result<Self> {
        Self::new(path, |each, name| {
            let name = name.to_str().map_err(io::Error::other)?;
            let file = sys::path(&format!("{}/{name}", each.path))?;
            sys::length_of_acl(&file).map(drop)
        })
    }

    fn new(path: &str, ask: fn(&Each, &CStr) -> io::Result<()>) -> io::Result<Self> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        Ok(Self {
            path: path.to_owned(),
            directory: sys::open(None, &sys::path(path)?, flags)?,
            ask,
            asked: 0,
        })
    }

    /// The entry after so many others.
    fn name(&self, number: u64) -> io::Result<CString> {
        sys::path(&format!("entry-{}", self.asked + number + 1))
    }
}

impl Operation for Each {
    /// Looks them up.
    fn prepare(&mut self, count: u64) -> io::Result<()> {
        let flags = libc::AT_STATX_DONT_SYNC | libc::AT_SYMLINK_NOFOLLOW;
        for number in 0..count {
            sys::statx(self.directory.as_raw_fd(), &self.name(number)?, flags)?;
        }
        Ok(())
    }

    fn run(&mut self, count: u64) -> io::Result<()> {
        for number in 0..count {
            (self.ask)(self, &self.name(number)?)?;
        }
        self.asked += count;
        Ok(())
    }
}

/// LISTXATTRS. The client keeps a list, but not its length.
pub(crate) struct Listxattr {
    file: OwnedFd,
}

impl Listxattr {
    pub(crate) fn new(file: &str) -> io::Result<Self> {
        Ok(Self {
            file: sys::open(None, &sys::path(file)?, libc::O_RDONLY)?,
        })
    }
}

impl Operation for Listxattr {
    fn run(&mut self, count: u64) -> io::Result<()> {
        (0..count).try_for_each(|_| sys::length_of_list(&self.file).map(drop))
    }
}

/// How many names are in what getdents64 returned, beside the two that every directory has.
fn count_entries(mut entries: &[u8]) -> u64 {
    let mut found = 0;
    while let Some(&[low, high]) = entries.get(ENTRY_LENGTH..ENTRY_LENGTH + 2) {
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let name = entries.get(ENTRY_NAME..length).unwrap_or_default();
        if !name.starts_with(b".\0") && !name.starts_with(b"..\0") {
            found += 1;
        }
        if length == 0 {
            break;
        }
        entries = entries.get(length..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted_without_the_two_of_every_directory() {
        let directory = std::env::temp_dir().join(format!("workload-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for number in 0..1000 {
            std::fs::write(directory.join(format!("entry-{number}")), "").unwrap();
        }
        let path = directory.to_str().unwrap();
        List::new(path, 1000).unwrap().run(2).unwrap();
        assert!(List::new(path, 999).unwrap().run(1).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn every_link_is_read_once() {
        let directory = std::env::temp_dir().join(format!("workload-links-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for number in 1..=3 {
            std::os::unix::fs::symlink("there", directory.join(format!("entry-{number}"))).unwrap();
        }
        let mut links = Each::readlink(directory.to_str().unwrap()).unwrap();
        for count in [1, 2] {
            links.prepare(count).unwrap();
            links.run(count).unwrap();
        }
        assert!(links.prepare(1).is_err());
        assert!(links.run(1).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_created_file_is_removed() {
        let path = format!(
            "{}/workload-create-{}",
            std::env::temp_dir().display(),
            std::process::id()
        );
        Create::new(&path).unwrap().run(3).unwrap();
        assert!(!std::path::Path::new(&path).exists());
    }
}
