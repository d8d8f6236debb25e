// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The plugin's arguments, as they stand on QEMU's command line.

use std::ffi::{c_char, c_int, CStr};

/// `out=`, `control=` and `peer=`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) out: String,
    pub(crate) control: String,
    pub(crate) peer: Option<String>,
}

impl Arguments {
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let mut found = Self::default();
        for word in words {
            match word.split_once('=') {
                Some(("out", path)) => found.out = path.into(),
                Some(("control", path)) => found.control = path.into(),
                Some(("peer", path)) => found.peer = Some(path.into()),
                _ => return Err(format!("no such argument: {word}")),
            }
        }
        if found.out.is_empty() || found.control.is_empty() {
            return Err("wants out= and control=".into());
        }
        Ok(found)
    }
}

/// The strings of a C program's arguments.
///
/// # Safety
///
/// `argv` has `argc` strings.
pub(crate) unsafe fn words(argc: c_int, argv: *const *const c_char) -> Vec<String> {
    let count = usize::try_from(argc).unwrap_or(0);
    let word = |index| {
        // SAFETY: the caller's promise.
        let word = unsafe { CStr::from_ptr(*argv.add(index)) };
        word.to_string_lossy().into_owned()
    };
    (0..count).map(word).collect()
}
