// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An RPC layer that writes down what it is told, and has no RPCs.

use crate::client::xprt_state::XprtState;
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Jiffies, //
};

pub(crate) struct PinnedRqst<C>(PhantomData<C>);

/// Memory of so many bytes.
pub(crate) struct RpcBuffer<C>(usize, Arc<C>);

impl<C> RpcBuffer<C> {
    pub(crate) const fn capacity_of(size: usize) -> usize {
        size - 64
    }

    pub(crate) fn new(len: usize, call: Arc<C>) -> Result<Self> {
        Ok(Self(len, call))
    }

    pub(crate) fn len(&self) -> usize {
        self.0
    }
}

/// Whether the connection is to be closed, and the delay of the next one.
#[derive(Default)]
struct Told {
    close: bool,
    backoff: Jiffies,
}

pub(crate) struct XprtHandle<C>(Arc<Mutex<Told>>, PhantomData<C>);

impl<C> XprtHandle<C> {
    pub(crate) fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }

    pub(crate) fn force_disconnect(&self) {
        self.0.lock().close = true;
    }

    pub(crate) fn reset_backoff(&self) {
        self.0.lock().backoff = 0;
    }
}

/// A mount and its transport in one.
pub(crate) struct Unmounted<X> {
    state: Arc<XprtState>,
    _of: PhantomData<X>,
}

impl<X> Unmounted<X> {
    pub(crate) fn new() -> Result<Self> {
        let state = Arc::new(XprtState::new(XprtHandle(Arc::default(), PhantomData)));
        let _of = PhantomData;
        Ok(Self { state, _of })
    }

    pub(crate) fn transport(&self) -> &Self {
        self
    }

    pub(crate) fn state(&self) -> &Arc<XprtState> {
        &self.state
    }

    pub(crate) fn attempted(&self) {
        let mut told = self.state.xprt.0.lock();
        told.backoff = (2 * told.backoff).max(1);
    }

    pub(crate) fn backoff(&self) -> Jiffies {
        self.state.xprt.0.lock().backoff
    }

    pub(crate) fn was_to_close(&self) -> bool {
        core::mem::take(&mut self.state.xprt.0.lock().close)
    }
}
