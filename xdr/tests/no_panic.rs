// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! No code path of the crate can panic: compiled as in the kernel, optimised and with overflow
//! checks, neither its object nor that of a user refers to `core::panicking`.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
    process::Command, //
};

fn compile(source: &str, crate_name: &str, extra: &[&str]) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no_panic");
    fs::create_dir_all(&out).unwrap();
    let beside_cargo = Path::new(env!("CARGO")).with_file_name("rustc");
    let rustc = if beside_cargo.exists() {
        beside_cargo
    } else {
        PathBuf::from("rustc")
    };
    let status = Command::new(rustc)
        .args(["--edition=2021", "--crate-type=rlib", "--crate-name"])
        .args([crate_name, "-Copt-level=2", "-Coverflow-checks=on"])
        .args(["-Cpanic=abort", "-Ccodegen-units=1", "--emit=metadata,obj"])
        .args(["--cap-lints=allow", "--out-dir"])
        .arg(&out)
        .arg("-L")
        .arg(&out)
        .args(extra)
        .arg(root.join(source))
        .status()
        .expect("rustc runs");
    assert!(status.success(), "{source} does not compile");
    fs::read(out.join(format!("{crate_name}.o"))).unwrap()
}

fn can_panic(object: &[u8]) -> bool {
    let name = b"panicking";
    object.windows(name.len()).any(|window| window == name)
}

#[test]
fn nothing_panics() {
    // First with the checks, in which a panic would stop the kernel as well.
    for extra in [&["--cfg", "CONFIG_RPCRDMA_KUNIT_TEST"][..], &[]] {
        assert!(
            !can_panic(&compile("src/lib.rs", "xdr", extra)),
            "the crate"
        );
    }
    let probe = |name, extra: &[&str]| {
        let extra = [&["--extern", "xdr"], extra].concat();
        can_panic(&compile("tests/no_panic/probe.rs", name, &extra))
    };
    assert!(!probe("probe", &[]), "a user of the crate");
    assert!(probe("control", &["--cfg", "control"]), "the test itself");
}
