#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# usage: fuzz/run.sh TARGET SECONDS [libFuzzer option...]
#        fuzz/run.sh --list
#
# Runs one fuzz target from its corpus, with stable rustc and a C++ compiler: the coverage flags
# are those of cargo-fuzz, without the sanitizers that need a nightly compiler (the crate has no
# unsafe code for them to look at). The checked-in corpus is only read. Inputs found on the way
# stay below $CARGO_TARGET_DIR, or fuzz/target; an input that fails is named in the output.
set -eu

cd "$(dirname "$0")"
if [ "${1-}" = --list ]; then
	sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | sed 1d
	exit
fi
target=${1:?usage: run.sh TARGET SECONDS}
seconds=${2:?usage: run.sh TARGET SECONDS}
shift 2

triple=$(rustc -vV | sed -n 's/^host: //p')
out=${CARGO_TARGET_DIR:-$PWD/target}
found=$out/fuzz/$target
flags="--cfg fuzzing -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 \
-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"

# With --target the flags reach no build script.
RUSTFLAGS="${RUSTFLAGS-} $flags" CARGO_TARGET_DIR=$out \
	cargo build --quiet --release --locked --target "$triple" --bin "$target"
mkdir -p "$found/corpus"
exec "$out/$triple/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
	-max_len=2048 -print_final_stats=1 -verbosity=0 -artifact_prefix="$found/" "$@" \
	"$found/corpus" "corpus/$target"
