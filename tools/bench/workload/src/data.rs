// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Reads and writes past the page cache.

use std::io;
use std::os::fd::OwnedFd;

use crate::sys::{self, Buffer};
use crate::Operation;

/// Each transfer begins at a multiple of this, whatever its length.
const ALIGNMENT: u64 = 4096;

/// A file that is read or written from its beginning to its end, again and again, in equal pieces.
pub(crate) struct File {
    pub(crate) file: OwnedFd,
    pub(crate) bytes: usize,
    step: u64,
    /// How many pieces it has.
    pieces: u64,
    next: u64,
}

impl File {
    pub(crate) fn open(path: &str, bytes: u64) -> io::Result<Self> {
        let file = sys::open(None, &sys::path(path)?, libc::O_RDWR | libc::O_DIRECT)?;
        Self::new(file, bytes)
    }

    fn new(file: OwnedFd, bytes: u64) -> io::Result<Self> {
        let file = std::fs::File::from(file);
        let step = bytes.next_multiple_of(ALIGNMENT);
        let pieces = file.metadata()?.len().checked_div(step).unwrap_or(0);
        if pieces == 0 {
            return Err(io::Error::other(format!(
                "not a file with a piece of {bytes} bytes"
            )));
        }
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        Ok(Self {
            file: file.into(),
            bytes,
            step,
            pieces,
            next: 0,
        })
    }

    /// Where the next transfer begins.
    pub(crate) fn next_offset(&mut self) -> i64 {
        let offset = self.next * self.step;
        self.next = (self.next + 1) % self.pieces;
        offset as i64
    }
}

/// One at a time.
pub(crate) struct Single {
    files: Vec<File>,
    buffer: Buffer,
    writes: bool,
}

impl Single {
    pub(crate) fn new(files: Vec<File>, writes: bool) -> io::Result<Self> {
        let buffer = Buffer::new(files[0].bytes)?;
        Ok(Self {
            files,
            buffer,
            writes,
        })
    }
}

impl Operation for Single {
    fn run(&mut self, count: u64) -> io::Result<()> {
        let files = self.files.len() as u64;
        for number in 0..count {
            let file = &mut self.files[(number % files) as usize];
            let offset = file.next_offset();
            sys::transfer(&file.file, self.writes, self.buffer.bytes(), offset)?;
        }
        Ok(())
    }
}

/// A file that need not be on a file system with O_DIRECT.
#[cfg(test)]
pub(crate) fn plain(name: &str, length: u64, bytes: u64) -> File {
    let path = std::env::temp_dir().join(format!("workload-{name}-{}", std::process::id()));
    let file = std::fs::File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    file.set_len(length).unwrap();
    std::fs::remove_file(&path).unwrap();
    File::new(file.into(), bytes).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_go_round_in_whole_pieces() {
        let mut file = plain("offsets", 200_000, 65533);
        let offsets: Vec<_> = (0..4).map(|_| file.next_offset()).collect();
        assert_eq!(offsets, [0, 65536, 131072, 0]);
    }

    #[test]
    fn what_is_written_is_there() {
        let mut single = Single::new(vec![plain("written", 16384, 4096)], true).unwrap();
        single.run(2).unwrap();
        let mut bytes = [0u8; 16384];
        sys::transfer(&single.files[0].file, false, &mut bytes, 0).unwrap();
        assert!(bytes[..8192].iter().all(|&byte| byte == 0x5a));
        assert!(bytes[8192..].iter().all(|&byte| byte == 0));
    }
}
