// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Runs the checks that KUnit runs too.

#[test]
fn checks() {
    let checks = xdr::checks::CHECKS.iter().chain(xdr::checks::v2::CHECKS);
    let failed: Vec<_> = checks
        .filter_map(|(name, check)| check().err().map(|claim| format!("{name}: {claim}")))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
