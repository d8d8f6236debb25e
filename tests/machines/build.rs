// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Turns the KUnit suites on.

fn main() {
    println!("cargo:rustc-cfg=CONFIG_RPCRDMA_KUNIT_TEST");
}
