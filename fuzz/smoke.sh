#!/usr/bin/env bash
# A short run of every fuzz target on the stable toolchain, with the simple mutator: 60 seconds, or as many as said.
set -euo pipefail
cd "$(dirname "$0")"
exec cargo run --quiet --release --bin smoke -- "${1:-60}"
