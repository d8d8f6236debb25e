// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The registration of a client transport.

use crate::kapi::{
    sunrpc::{
        class::Registered,
        setup::Setup,
        transport::Transport, //
    },
    sys::workqueue::OwnedQueue, //
};
use core::marker::PhantomData;
use kernel::prelude::*;

/// The class of a client transport is registered while this lives.
pub(crate) struct ClassRegistration<T: Transport> {
    _class: Registered,
    _transport: PhantomData<T>,
}

impl<T: Transport> ClassRegistration<T> {
    /// Registers `T::class()`, with one queue for all its transports. Errors as
    /// those of `Class::register`. May sleep.
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        let queue = Some(OwnedQueue::new(c"rpcrdma", GFP_KERNEL)?);
        let (class, setup, netids) = (T::class(), Setup::<T>::setup, &T::NETIDS);
        // SAFETY: `setup` is written for this: a transport of the type `T`, with our table of
        // calls.
        let class = unsafe { class.register(module, T::IDENT, T::NAME, netids, setup, queue) }?;
        Ok(Self {
            _class: class,
            _transport: PhantomData,
        })
    }
}
