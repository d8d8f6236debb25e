// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Macros by the names that they have in the kernel. Nothing is pinned here: a value is its own
//! initializer.

use proc_macro::TokenStream;

/// Leaves a KUnit suite as it is: to the compiler its tests are tests.
#[proc_macro_attribute]
pub fn kunit_tests(_name: TokenStream, suite: TokenStream) -> TokenStream {
    suite
}

/// Leaves out which fields are pinned.
#[proc_macro_attribute]
pub fn pin_data(_arguments: TokenStream, structure: TokenStream) -> TokenStream {
    replaced(&structure, "#[pin]", "")
}

/// Initializes fields by values.
#[proc_macro]
pub fn pin_init(structure: TokenStream) -> TokenStream {
    replaced(&structure, "<-", ":")
}

fn replaced(code: &TokenStream, from: &str, to: &str) -> TokenStream {
    let text = code.to_string().replace(from, to);
    text.parse().expect("code without that is code")
}
