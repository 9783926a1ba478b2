#!/usr/bin/env bash
# Runs one target under libFuzzer, guided by coverage, on the stable toolchain and without cargo-fuzz:
#   fuzz/run.sh directory 600
# The flags are those that cargo-fuzz passes, less the sanitizers, which need a nightly toolchain. With one, and with
# cargo-fuzz installed, `cargo +nightly fuzz run directory` is the better way.
set -euo pipefail
cd "$(dirname "$0")"
target=${1:?usage: run.sh TARGET [SECONDS]}
seconds=${2:-60}
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
mkdir -p "corpus/$target" "artifacts/$target"
exec cargo run --quiet --release --target "$host" --bin "$target" -- "corpus/$target" "seeds/$target" \
    -max_total_time="$seconds" -artifact_prefix="artifacts/$target/" -print_final_stats=1
