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
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull, //
};
use kernel::prelude::*;

/// How buffers are allocated: the task's memory scope narrows it down.
const FLAGS: bindings::gfp_t = bindings::__GFP_ZERO | bindings::__GFP_NOWARN;

/// Who makes a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// One who may wait for memory; not for ever, since it may be who is to write dirty memory out.
    Task,
    /// One whom those wait for who free memory.
    Handler,
}

impl Maker {
    fn flags(self) -> bindings::gfp_t {
        match self {
            Self::Task => FLAGS | bindings::GFP_KERNEL | bindings::__GFP_NORETRY,
            Self::Handler => FLAGS | bindings::GFP_NOWAIT,
        }
    }
}

/// Which way data may flow between a buffer and the device.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The device reads.
    #[default]
    ToDevice,
    /// The device writes.
    FromDevice,
}

impl Direction {
    /// As the kernel numbers it.
    pub(crate) fn number(self) -> i32 {
        self.as_raw().0
    }

    /// The kernel's constant for it.
    pub(in crate::kapi) fn as_raw(self) -> bindings::dma_data_direction {
        match self {
            Self::ToDevice => bindings::dma_data_direction::DMA_TO_DEVICE,
            Self::FromDevice => bindings::dma_data_direction::DMA_FROM_DEVICE,
        }
    }
}

/// A piece of kernel memory, mapped for one device for as long as it lives.
///
/// It is slab memory up to two pages, which siw copies from where it would otherwise send in place
/// (see [`Mapped::is_sent_in_place`]). Of the size of a pointer, since it changes hands for every
/// message.
///
/// # Invariants
///
/// It points to an initialised [`Mapped`], allocated by `kmalloc` and owned by this object. (A box
/// of the kernel's could not be told [`Maker::flags`].)
pub(crate) struct DmaBuffer(NonNull<Mapped>);

/// What is known of a buffer.
///
/// # Invariants
///
/// `data` is an allocation of `len` bytes of `kmalloc`, owned by the buffer, and mapped at
/// `addr` for `device`, which is valid as long as the buffer is counted.
pub(crate) struct Mapped {
    /// A number that its user gives it.
    pub(crate) id: u32,
    data: NonNull<u8>,
    len: usize,
    addr: u64,
    direction: Direction,
    device: NonNull<bindings::ib_device>,
    /// The device is software that uses the memory as the processor does: no data have to be
    /// synced.
    is_virtual: bool,
    /// The number of the queue pair that it was made for.
    owner: u64,
    /// The tear-down of that waits for it.
    _counted: Use,
}

// SAFETY: The object owns its memory; the device may be used from any thread.
unsafe impl Send for DmaBuffer {}

impl Deref for DmaBuffer {
    type Target = Mapped;

    #[inline]
    fn deref(&self) -> &Mapped {
        // SAFETY: Valid by the type invariant, and borrowed with the owner.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for DmaBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut Mapped {
        // SAFETY: It points to an initialised object by the type invariant, which is borrowed
        // exclusively with the owner.
        unsafe { self.0.as_mut() }
    }
}

impl DmaBuffer {
    /// Allocates and maps `len` bytes, zeroed. `ENOBUFS` when they cannot be mapped now, `EINVAL`
    /// for none. May sleep, as the maker and the memory scope of the task allow.
    pub(crate) fn new(
        poster: &Poster<'_>,
        len: usize,
        direction: Direction,
        maker: Maker,
    ) -> Result<Self> {
        if len == 0 {
            return Err(EINVAL);
        }
        let (counted, device) = (poster.keep_device()?, poster.objects().device);
        // SAFETY: Allocating has no further requirement. Zeroed, so that no byte that was not
        // meant to be sent or was not received is ever seen.
        let data = unsafe { bindings::kmalloc(len, maker.flags()) };
        let data = NonNull::new(data.cast::<u8>()).ok_or(ENOMEM)?;
        // SAFETY: The device is valid, since it is kept; the memory is `len` bytes of lowmem.
        let addr = unsafe {
            bindings::ib_dma_map_single(
                device.as_ptr(),
                data.as_ptr().cast::<c_void>(),
                len,
                direction.as_raw(),
            )
        };
        // SAFETY: `addr` was returned by the mapping call for this device.
        if unsafe { bindings::ib_dma_mapping_error(device.as_ptr(), addr) } != 0 {
            // SAFETY: The allocation above, not used elsewhere.
            unsafe { bindings::kfree(data.as_ptr().cast::<c_void>()) };
            // Bounce buffers may be short for a moment.
            return Err(ENOBUFS);
        }
        // INVARIANT: Allocated and mapped above; the device is kept by `counted`.
        let mapped = Mapped {
            id: 0,
            data,
            len,
            addr,
            direction,
            device,
            // SAFETY: The device is valid, since it is kept.
            is_virtual: unsafe { bindings::ib_uses_virt_dma(device.as_ptr()) },
            owner: poster.number(),
            _counted: counted,
        };
        // SAFETY: Allocating has no further requirement.
        let room = unsafe { bindings::kmalloc(core::mem::size_of::<Mapped>(), maker.flags()) };
        let Some(room) = NonNull::new(room.cast::<Mapped>()) else {
            // SAFETY: It goes out of scope, and nobody else has seen it.
            unsafe { mapped.undo() };
            return Err(ENOMEM);
        };
        // SAFETY: It has the size, and `kmalloc` aligns for any type.
        unsafe { room.write(mapped) };
        dma_track::mapped(addr, len, direction.as_raw());
        // INVARIANT: Allocated and written above.
        Ok(Self(room))
    }
}

impl Mapped {
    /// Undoes the mapping, and frees the memory.
    ///
    /// # Safety
    ///
    /// To be called once, as the last that is done with it.
    unsafe fn undo(&self) {
        // SAFETY: By the type invariant mapped with these values, and the device still lives.
        unsafe {
            bindings::ib_dma_unmap_single(
                self.device.as_ptr(),
                self.addr,
                self.len,
                self.direction.as_raw(),
            )
        };
        // SAFETY: Owned by the buffer, allocated by `kmalloc`.
        unsafe { bindings::kfree(self.data.as_ptr().cast::<c_void>()) };
    }

    /// Whether it was made for that queue pair, and for data that flow so.
    #[inline]
    pub(super) fn is_for(&self, owner: u64, direction: Direction) -> bool {
        self.owner == owner && self.direction == direction
    }

    /// The length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address as the device knows it.
    #[inline]
    pub(super) fn dma_addr(&self) -> u64 {
        self.addr
    }

    /// Whether some devices send the first `len` bytes in place, and call an unsignaled Send done
    /// before the peer has them. siw does so from a page on; but it copies what is slab memory,
    /// from which `kmalloc` serves up to two pages.
    #[inline]
    pub(crate) fn is_sent_in_place(&self, len: usize) -> bool {
        len >= kernel::page::PAGE_SIZE && self.len > 2 * kernel::page::PAGE_SIZE
    }

    /// The bytes, for the processor to write. Only for a buffer that is not posted.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: By the type invariant this is an initialised allocation of `len` bytes, and it
        // is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }

    /// Where the bytes are.
    #[inline]
    pub(super) fn data(&self) -> NonNull<u8> {
        self.data
    }

    /// Hands the first `len` bytes to the device.
    #[inline]
    pub(super) fn sync_for_device(&self, len: usize) {
        if self.is_virtual {
            return;
        }
        // SAFETY: By the type invariant the buffer is mapped at `addr` for the device, and the
        // length is cut to what is mapped.
        unsafe {
            bindings::ib_dma_sync_single_for_device(
                self.device.as_ptr(),
                self.addr,
                len.min(self.len),
                self.direction.as_raw(),
            )
        };
    }

    /// Takes the first `len` bytes back from the device.
    #[inline]
    pub(super) fn sync_for_cpu(&self, len: usize) {
        if self.is_virtual {
            return;
        }
        // SAFETY: By the type invariant the buffer is mapped at `addr` for the device, and the
        // length is cut to what is mapped.
        unsafe {
            bindings::ib_dma_sync_single_for_cpu(
                self.device.as_ptr(),
                self.addr,
                len.min(self.len),
                self.direction.as_raw(),
            )
        };
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        dma_track::unmapped(self.addr, self.len, self.direction.as_raw());
        // SAFETY: Both are owned by this object, which ends here; what it points to is read once,
        // and freed.
        unsafe {
            self.undo();
            let mapped = self.0.read();
            bindings::kfree(self.0.as_ptr().cast::<c_void>());
            // The last, since the device may go then.
            drop(mapped);
        }
    }
}
