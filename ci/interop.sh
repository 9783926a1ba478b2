#!/usr/bin/env bash
# Writes, reads, appends, deletes and compacts one store from Rust and from Python loaderx 0.9.4 in turn. Skipped, with
# a message, where Python 3 with pip or the package index is missing; LOADERX_REQUIRE_PYTHON=1 makes that a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --package loaderx-tests --test store_python --locked -- --nocapture
