#!/usr/bin/env bash
# Runs the loader's threads in every order in which they can reach their locks and flags, with two interruptions of
# each thread that could go on: `bash ci/loom.sh [TEST]`. More interruptions: `LOOM_MAX_PREEMPTIONS=3 bash ci/loom.sh`.
set -euo pipefail
cd "$(dirname "$0")/.."

# Dependencies compiled with the flag are others, so they have a folder of their own. No test at all is a failure too.
RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" cargo test --release --locked --no-default-features --package loaderx-core \
    --target-dir "${CARGO_TARGET_DIR:-target}/loom" --lib loom_model:: -- "$@" |
    awk '{print} /^test result: ok\. [1-9]/ {ran = 1} END {exit !ran}'
