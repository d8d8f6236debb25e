// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! System calls that the standard library has not, each as a safe function.

use std::ffi::{c_int, c_long, c_void, CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// A path as the kernel wants it.
pub(crate) fn path(text: &str) -> io::Result<CString> {
    Ok(CString::new(text)?)
}

fn checked<T: Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Opens a file, relative to a directory if there is one.
pub(crate) fn open(directory: Option<&OwnedFd>, name: &CStr, flags: c_int) -> io::Result<OwnedFd> {
    let directory = directory.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: the name ends with a zero.
    let file = unsafe { libc::openat(directory, name.as_ptr(), flags, 0o666) };
    let file = checked(file)?;
    // SAFETY: it was just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Removes a file.
pub(crate) fn unlink(directory: &OwnedFd, name: &CStr) -> io::Result<()> {
    // SAFETY: the name ends with a zero.
    checked(unsafe { libc::unlinkat(directory.as_raw_fd(), name.as_ptr(), 0) }).map(drop)
}

/// Asks for the basic attributes; how fresh, the flags say.
pub(crate) fn statx(directory: RawFd, name: &CStr, flags: c_int) -> io::Result<libc::statx> {
    let mut found = MaybeUninit::<libc::statx>::uninit();
    // SAFETY: the name ends with a zero, and there is room for the answer, which is there after
    // success.
    unsafe {
        checked(libc::statx(
            directory,
            name.as_ptr(),
            flags,
            libc::STATX_BASIC_STATS,
            found.as_mut_ptr(),
        ))?;
        Ok(found.assume_init())
    }
}

/// Reads a symbolic link; how long its target is.
pub(crate) fn readlink(directory: &OwnedFd, name: &CStr) -> io::Result<usize> {
    let mut target = [0u8; libc::PATH_MAX as usize];
    // SAFETY: the name ends with a zero, and the kernel writes no more than there is room for.
    let length = checked(unsafe {
        libc::readlinkat(
            directory.as_raw_fd(),
            name.as_ptr(),
            target.as_mut_ptr().cast(),
            target.len(),
        )
    })?;
    usize::try_from(length).map_err(io::Error::other)
}

/// How long the list of a file's extended attributes is.
pub(crate) fn length_of_list(file: &OwnedFd) -> io::Result<usize> {
    // SAFETY: without room for the list the kernel tells its length alone.
    let length = checked(unsafe { libc::flistxattr(file.as_raw_fd(), ptr::null_mut(), 0) })?;
    usize::try_from(length).map_err(io::Error::other)
}

/// How long the ACL of a file is, as NFS 4 has it.
pub(crate) fn length_of_acl(file: &CStr) -> io::Result<usize> {
    let (file, name) = (file.as_ptr(), c"system.nfs4_acl".as_ptr());
    // SAFETY: both strings end with a zero, and outlive the call; without room for the value the
    // kernel tells its length alone.
    let length = checked(unsafe { libc::lgetxattr(file, name, ptr::null_mut(), 0) })?;
    usize::try_from(length).map_err(io::Error::other)
}

/// The next entries of a directory; how many bytes, 0 at the end.
pub(crate) fn getdents(directory: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes no more than the buffer's length.
    let length = checked(unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            c_long::from(directory.as_raw_fd()),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    })?;
    usize::try_from(length).map_err(io::Error::other)
}

/// Drops what is cached of a file's contents, or a directory's.
pub(crate) fn forget(file: &OwnedFd) -> io::Result<()> {
    // SAFETY: no memory is involved.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Reads into, or writes from, all of a buffer.
pub(crate) fn transfer(
    file: &OwnedFd,
    writes: bool,
    buffer: &mut [u8],
    offset: i64,
) -> io::Result<()> {
    let (file, data, length) = (
        file.as_raw_fd(),
        buffer.as_mut_ptr().cast::<c_void>(),
        buffer.len(),
    );
    // SAFETY: the kernel touches no more than the buffer.
    let done = checked(unsafe {
        if writes {
            libc::pwrite64(file, data, length, offset)
        } else {
            libc::pread64(file, data, length, offset)
        }
    })?;
    if usize::try_from(done) == Ok(length) {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "{done} of {length} bytes at {offset}"
        )))
    }
}

/// Mounts without the mount program.
pub(crate) fn mount(source: &CStr, place: &CStr, kind: &CStr, options: &CStr) -> io::Result<()> {
    // SAFETY: all strings end with a zero.
    checked(unsafe {
        libc::mount(
            source.as_ptr(),
            place.as_ptr(),
            kind.as_ptr(),
            0,
            options.as_ptr().cast(),
        )
    })
    .map(drop)
}

/// Unmounts.
pub(crate) fn umount(place: &CStr) -> io::Result<()> {
    // SAFETY: the path ends with a zero.
    checked(unsafe { libc::umount2(place.as_ptr(), 0) }).map(drop)
}

/// Memory at page boundaries, with something in it.
pub(crate) struct Buffer {
    start: *mut u8,
    length: usize,
}

impl Buffer {
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        // SAFETY: a new mapping, which nobody else has.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut buffer = Self {
            start: start.cast(),
            length,
        };
        // So that its pages are there before anything is measured.
        buffer.bytes().fill(0x5a);
        Ok(buffer)
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is this buffer's own, and so long.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }

    /// Where it is, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.start as u64
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this buffer's own.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
