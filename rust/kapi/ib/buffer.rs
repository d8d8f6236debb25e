// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Message buffers that stay mapped for a device.

use crate::kapi::{
    bindings,
    ib::{
        dma_track,
        gate::Poster, //
    },
    sys::uses::Use, //
};
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kernel::{
    dma::DataDirection,
    prelude::*, //
};

/// The flags for all buffers: the task's memory scope narrows them down.
const FLAGS: bindings::gfp_t = bindings::__GFP_ZERO | bindings::__GFP_NOWARN;

/// The context in which a buffer is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// May wait for memory; not for ever, since it may be what writes dirty memory out.
    Task,
    /// Others wait for it that free memory.
    Handler,
}

impl Maker {
    /// Returns the flags to allocate with.
    fn flags(self) -> bindings::gfp_t {
        match self {
            Self::Task => FLAGS | bindings::GFP_KERNEL | bindings::__GFP_NORETRY,
            Self::Handler => FLAGS | bindings::GFP_NOWAIT,
        }
    }
}

/// Returns the constant of our bindings for the way in which data may flow.
pub(super) fn raw(direction: DataDirection) -> bindings::dma_data_direction {
    bindings::dma_data_direction(direction as i32)
}

/// A buffer, of the size of a pointer, since it changes hands for every message.
pub(crate) type DmaBuffer = KBox<MappedBuffer>;

/// A piece of kernel memory, mapped for one device for as long as it lives.
///
/// It is slab memory up to two pages, which siw copies from where it would otherwise send in place
/// (see [`MappedBuffer::is_sent_in_place`]).
///
/// # Invariants
///
/// `data` is an allocation of `len` bytes of `kmalloc`, owned by the buffer, and mapped at
/// `addr` for `device`, which is valid as long as the buffer is counted.
pub(crate) struct MappedBuffer {
    /// A number that its user gives it.
    pub(crate) id: u32,
    data: NonNull<u8>,
    len: usize,
    addr: u64,
    direction: DataDirection,
    device: NonNull<bindings::ib_device>,
    /// The number of the queue pair that it was made for.
    owner: u64,
    /// The tear-down of that waits for it.
    _counted: Use,
}

// SAFETY: The object owns its memory; the device may be used from any thread.
unsafe impl Send for MappedBuffer {}

impl MappedBuffer {
    /// Allocates and maps `len` bytes, zeroed. `ENOBUFS` when they cannot be mapped now, `EINVAL`
    /// for none. May sleep, as the maker and the memory scope of the task allow.
    pub(crate) fn new(
        poster: &Poster<'_>,
        len: usize,
        direction: DataDirection,
        maker: Maker,
    ) -> Result<DmaBuffer> {
        if len == 0 {
            return Err(EINVAL);
        }
        let (counted, device) = (poster.keep_device()?, poster.objects().device);
        // SAFETY: The device is valid, since it is kept. Zeroed, so that no byte that was not meant
        // to be sent or was not received is ever seen.
        let data = unsafe { bindings::kmalloc_near(device.as_ptr(), len, maker.flags()) };
        let data = NonNull::new(data.cast::<u8>()).ok_or(ENOMEM)?;
        // SAFETY: The device is valid, since it is kept; the memory is `len` bytes of lowmem.
        let addr = unsafe {
            let data = data.as_ptr().cast::<c_void>();
            bindings::ib_dma_map_single(device.as_ptr(), data, len, raw(direction))
        };
        // SAFETY: `addr` was returned by the mapping call for this device.
        if unsafe { bindings::ib_dma_mapping_error(device.as_ptr(), addr) } != 0 {
            // SAFETY: The allocation above, not used elsewhere.
            unsafe { bindings::kfree(data.as_ptr().cast::<c_void>()) };
            // Bounce buffers may be short for a moment.
            return Err(ENOBUFS);
        }
        dma_track::mapped(addr, len, raw(direction));
        // INVARIANT: Allocated and mapped above; the device is kept by `counted`.
        let mapped = Self {
            id: 0,
            data,
            len,
            addr,
            direction,
            device,
            owner: poster.number(),
            _counted: counted,
        };
        // `KBox::new` cannot be told the maker's flags.
        // SAFETY: The device is valid, since it is kept.
        let raw =
            unsafe { bindings::kmalloc_near(device.as_ptr(), size_of::<Self>(), maker.flags()) };
        let raw = NonNull::new(raw.cast::<Self>()).ok_or(ENOMEM)?.as_ptr();
        // SAFETY: Memory of `kmalloc` that is large enough, and aligned for a size that is a
        // multiple of its alignment or for any up to that of a word, which a box owns from here on.
        Ok(unsafe {
            raw.write(mapped);
            KBox::from_raw(raw)
        })
    }

    /// Returns whether it was made for that queue pair, and for data that flow so.
    pub(super) fn is_for(&self, owner: u64, direction: DataDirection) -> bool {
        self.owner == owner && self.direction == direction
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address as the device knows it.
    pub(super) fn dma_addr(&self) -> u64 {
        self.addr
    }

    /// Returns whether some devices send the first `len` bytes in place, and call an unsignaled
    /// Send done before the peer has them. siw does so from a page on; but it copies what is slab
    /// memory, from which `kmalloc` serves up to two pages.
    pub(crate) fn is_sent_in_place(&self, len: usize) -> bool {
        len >= kernel::page::PAGE_SIZE && self.len > 2 * kernel::page::PAGE_SIZE
    }

    /// Returns the bytes, for the processor to write. Only for a buffer that is not posted.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: By the type invariant this is an initialised allocation of `len` bytes, and it
        // is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }

    /// Returns the address of the bytes.
    pub(super) fn data(&self) -> NonNull<u8> {
        self.data
    }

    /// Hands the first `len` bytes to the device.
    pub(super) fn sync_for_device(&self, len: usize) {
        let (len, direction) = (len.min(self.len), raw(self.direction));
        let device = self.device.as_ptr();
        // SAFETY: By the type invariant the buffer is mapped at `addr` for the device, and the
        // length is cut to what is mapped.
        unsafe { bindings::ib_dma_sync_single_for_device(device, self.addr, len, direction) };
    }

    /// Takes the first `len` bytes back from the device.
    pub(super) fn sync_for_cpu(&self, len: usize) {
        let (len, direction) = (len.min(self.len), raw(self.direction));
        let device = self.device.as_ptr();
        // SAFETY: By the type invariant the buffer is mapped at `addr` for the device, and the
        // length is cut to what is mapped.
        unsafe { bindings::ib_dma_sync_single_for_cpu(device, self.addr, len, direction) };
    }
}

impl Drop for MappedBuffer {
    fn drop(&mut self) {
        let direction = raw(self.direction);
        dma_track::unmapped(self.addr, self.len, direction);
        // SAFETY: By the type invariant mapped with these values, and allocated by `kmalloc`. The
        // device still lives: it is the fields' turn to be dropped only after this.
        unsafe {
            bindings::ib_dma_unmap_single(self.device.as_ptr(), self.addr, self.len, direction);
            bindings::kfree(self.data.as_ptr().cast::<c_void>());
        }
    }
}
