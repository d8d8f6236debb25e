// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory near a device.

use crate::kapi::bindings;
use core::{
    alloc::Layout,
    ptr::NonNull, //
};
use kernel::{
    alloc::{
        allocator::KVmalloc,
        Allocator,
        NumaNode, //
    },
    prelude::*, //
};

/// The node of a device. Memory of that is near to the device, and to the processors that it
/// interrupts.
#[derive(Clone, Copy)]
pub(super) struct Node(NumaNode);

impl Node {
    /// The node of a device that is on none.
    pub(super) const ANY: Self = Self(NumaNode::NO_NODE);

    /// Returns the node of a device.
    ///
    /// # Safety
    ///
    /// `device` must be valid.
    pub(super) unsafe fn of(device: NonNull<bindings::ib_device>) -> Self {
        // SAFETY: The device is valid, as the caller promises.
        let node = unsafe { bindings::ibdev_to_node(device.as_ptr()) };
        NumaNode::new(node).map_or(Self::ANY, Self)
    }

    /// Makes room for `n` elements, on this node as long as that has memory. May sleep.
    pub(super) fn room_for<T>(self, n: usize) -> Result<KVVec<T>> {
        let layout = Layout::array::<T>(n).map_err(|_| ENOMEM)?;
        if layout.size() == 0 {
            return Ok(KVVec::with_capacity(n, GFP_KERNEL)?);
        }
        let memory = KVmalloc::alloc(layout, GFP_KERNEL, self.0)?;
        // SAFETY: An allocation of that allocator with the layout of `n` elements, none of which is
        // initialised; it belongs to the vector from here on.
        Ok(unsafe { KVVec::from_raw_parts(memory.cast().as_ptr(), 0, n) })
    }
}
