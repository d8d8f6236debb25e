// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What plays those files of `rust/transport` and `rust/client` that do more than keep a state.

pub(crate) mod call {
    use kernel::{
        alloc::Flags,
        prelude::*,
        sync::Arc, //
    };

    pub(crate) struct Call;

    pub(crate) struct WaitingReply;

    pub(crate) struct WaitingMessage;

    impl WaitingMessage {
        pub(crate) fn receives(&self) -> u32 {
            1
        }
    }

    impl Call {
        pub(crate) fn new(_: Flags) -> Result<Arc<Self>> {
            Ok(Arc::new(Self))
        }
    }
}

pub(crate) mod endpoint {
    /// How a work request failed: whether by the end of the connection.
    #[derive(Clone, Copy)]
    pub(crate) struct WcError(bool);

    impl WcError {
        pub(crate) fn flushed() -> Self {
            Self(true)
        }

        pub(crate) fn not_posted() -> Self {
            Self(false)
        }

        pub(crate) fn wc(&self) -> Self {
            *self
        }

        pub(crate) fn is_flush(&self) -> bool {
            self.0
        }

        pub(crate) fn words(&self) -> &'static str {
            "a work request failed"
        }
    }
}

pub(crate) mod xprt {
    pub(crate) struct ClientXprt;
}
