// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Trace events.
//!
//! They are defined in `bindings/trace.h`. Here each one is a function of its name, which takes a
//! closure that says what the event has to say: nobody calls it unless the event is on, and until
//! then the function is one instruction that does nothing, on a kernel with `JUMP_LABEL`, or a look
//! at a word where the kernel's headers lack the file for that. Any context.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

/// Returns what an event says of a result: 0, or a negative errno.
pub(crate) fn status(result: kernel::error::Result) -> i32 {
    result.err().map_or(0, |e| e.to_errno())
}

/// Makes the functions of events. The types are those of what `trace.h` has, in the same order.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $type:ty),+);
    )*) => {
        /// Whether an event is on, for what takes more than one call to say.
        pub(crate) mod on {
            use super::*;

            $(
                /// Returns whether the event of that name is on.
                #[inline(always)]
                pub(crate) fn $name() -> bool {
                    #[cfg(all(CONFIG_TRACEPOINTS, rpcrdma_lacks_asm))]
                    kernel::macros::paste! {
                        // SAFETY: The key is that of a tracepoint that C has defined. A volatile
                        // read of a word is one access, as with the kernel's `static_key_count()`.
                        let count = unsafe {
                            let key = &raw const bindings::[<__tracepoint_ $name>].key;
                            let key = key.cast::<kernel::bindings::static_key>();
                            (&raw const (*key).enabled.counter).read_volatile()
                        };
                        return count != 0;
                    }
                    #[cfg(all(CONFIG_TRACEPOINTS, not(rpcrdma_lacks_asm)))]
                    kernel::macros::paste! {
                        // SAFETY: The key is that of a tracepoint that C has defined.
                        return unsafe {
                            kernel::jump_label::static_branch_unlikely!(
                                bindings::[<__tracepoint_ $name>],
                                bindings::tracepoint,
                                key
                            )
                        };
                    }
                    #[cfg(not(CONFIG_TRACEPOINTS))]
                    false
                }
            )*
        }

        $(
            $(#[$doc])*
            #[inline(always)]
            #[allow(unused_parens, reason = "what takes one argument takes no tuple")]
            pub(crate) fn $name(arguments: impl FnOnce() -> ($($type),+)) {
                if !on::$name() {
                    return;
                }
                let ($($argument),+) = arguments();
                #[cfg(CONFIG_TRACEPOINTS)]
                kernel::macros::paste! {
                    // SAFETY: Numbers, and pointers that are valid for the time of the call, by
                    // the contract of `Argument`; what they point to is copied.
                    unsafe { bindings::[<rust_do_trace_ $name>]($($argument.raw()),+) };
                }
                #[cfg(not(CONFIG_TRACEPOINTS))]
                let _ = ($($argument.raw()),+);
            }
        )*
    };
}

mod arguments;
mod requester;
mod responder;
mod version_2;

pub(in crate::kapi) use self::arguments::Argument;
pub(crate) use self::{
    arguments::{
        Carriage,
        CompletionId,
        CoveredRegion,
        TaskId, //
    },
    requester::*,
    responder::*,
    version_2::*, //
};

/// Whether an event is on, for what takes more than one call to say.
pub(crate) mod on {
    pub(crate) use super::{
        requester::on::*,
        responder::on::*, //
    };
}
