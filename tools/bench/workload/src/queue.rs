// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Many reads or writes at once, by the kernel's asynchronous I/O, which NFS takes without threads.

use std::ffi::{c_long, c_ulong};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::data::File;
use crate::sys::Buffer;
use crate::Operation;

const READ: u16 = 0;
const WRITE: u16 = 1;

/// `struct iocb` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    block: u64,
    result: i64,
    result2: i64,
}

const _: () = assert!(size_of::<ControlBlock>() == 64 && size_of::<Event>() == 32);

/// A context of the kernel's.
struct Context(c_ulong);

impl Context {
    fn new(depth: usize) -> io::Result<Self> {
        let mut context: c_ulong = 0;
        // SAFETY: there is room for the answer.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_setup,
                depth as c_long,
                ptr::from_mut(&mut context),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(context))
    }

    /// Begins all of these.
    ///
    /// # Safety
    ///
    /// The buffers that the blocks name stay, and are not touched, until their events have come.
    unsafe fn submit(&self, blocks: &mut [ControlBlock]) -> io::Result<()> {
        let mut pointers: Vec<_> = blocks.iter_mut().map(ptr::from_mut).collect();
        let mut rest = &mut pointers[..];
        while !rest.is_empty() {
            // SAFETY: so many pointers to blocks, which the kernel copies; the rest is the caller's
            // promise.
            let begun = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.0,
                    rest.len() as c_long,
                    rest.as_mut_ptr(),
                )
            };
            match usize::try_from(begun) {
                Ok(begun) if begun > 0 => rest = &mut rest[begun..],
                _ => return Err(io::Error::last_os_error()),
            }
        }
        Ok(())
    }

    /// Waits for one event, and takes those that are there.
    fn wait<'a>(&self, events: &'a mut [Event]) -> io::Result<&'a [Event]> {
        // SAFETY: room for so many events; no timeout.
        let count = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.0,
                1 as c_long,
                events.len() as c_long,
                events.as_mut_ptr(),
                ptr::null_mut::<libc::timespec>(),
            )
        };
        match usize::try_from(count) {
            Ok(count) => Ok(&events[..count]),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours; the kernel waits for what is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

/// So many under way at any time, over the files in turn.
pub(crate) struct Queue {
    // Before the buffers, since its end is the end of what is under way in them.
    context: Context,
    buffers: Vec<Buffer>,
    files: Vec<File>,
    writes: bool,
    begun: u64,
}

impl Queue {
    pub(crate) fn new(files: Vec<File>, writes: bool, depth: u64) -> io::Result<Self> {
        let bytes = files[0].bytes;
        let buffers = (0..depth)
            .map(|_| Buffer::new(bytes))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(Self {
            context: Context::new(buffers.len())?,
            buffers,
            files,
            writes,
            begun: 0,
        })
    }

    /// The next one, with the buffer of this number.
    fn next(&mut self, buffer: usize) -> ControlBlock {
        let files = self.files.len() as u64;
        let file = &mut self.files[(self.begun % files) as usize];
        self.begun += 1;
        ControlBlock {
            data: buffer as u64,
            opcode: if self.writes { WRITE } else { READ },
            file: file.file.as_raw_fd() as u32,
            buffer: self.buffers[buffer].address(),
            bytes: file.bytes as u64,
            offset: file.next_offset(),
            ..ControlBlock::default()
        }
    }

    fn begin(&mut self, buffers: impl Iterator<Item = usize>) -> io::Result<()> {
        let mut blocks: Vec<_> = buffers.map(|buffer| self.next(buffer)).collect();
        // SAFETY: each buffer is free, is not touched before its event has come, and lives longer
        // than the context.
        unsafe { self.context.submit(&mut blocks) }
    }
}

impl Operation for Queue {
    fn run(&mut self, count: u64) -> io::Result<()> {
        let depth = self.buffers.len();
        let first = depth.min(usize::try_from(count).map_err(io::Error::other)?);
        let mut events = vec![Event::default(); depth];
        self.begin(0..first)?;
        let (mut begun, mut ended) = (first as u64, 0);
        while ended < count {
            let came = self.context.wait(&mut events)?;
            let bytes = self.files[0].bytes as i64;
            if let Some(wrong) = came.iter().find(|event| event.result != bytes) {
                return Err(io::Error::other(format!(
                    "{} instead of {bytes} bytes",
                    wrong.result
                )));
            }
            ended += came.len() as u64;
            let more = (count - begun).min(came.len() as u64);
            begun += more;
            let free: Vec<_> = came
                .iter()
                .take(more as usize)
                .map(|event| event.data as usize)
                .collect();
            self.begin(free.into_iter())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_as_many_as_are_wanted() {
        for count in [3, 8, 100] {
            let files =
                (0..2).map(|number| crate::data::plain(&format!("{count}-{number}"), 65536, 4096));
            let mut queue = Queue::new(files.collect(), true, 8).unwrap();
            queue.run(count).unwrap();
            assert_eq!(queue.begun, count);
        }
    }
}
