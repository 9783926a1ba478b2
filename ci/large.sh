#!/usr/bin/env bash
# Imports inputs that are too large for the test suite, made by NumPy and PyArrow: an array larger than the memory that the
# program may use, in both orders; binary and list columns of more than 2 GiB, in one row group or batch. Prints rate and
# peak memory of each. Takes some minutes and 10 GB of disk in LOADERX_LARGE_DIR (a temporary directory by default).
# Arguments choose parts: `many` (2^24 + 1 records, 0.1 GB), `arrays`, `tables`.
set -euo pipefail
cd "$(dirname "$0")/.."

for part in "$@"; do
    case $part in
        many | arrays | tables) ;;
        *)
            echo "there is no part $part; known are many, arrays and tables" >&2
            exit 2
            ;;
    esac
done
target=${CARGO_TARGET_DIR:-target}
environment="$target/formats-venv"
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check numpy pyarrow
cargo build --release --package loaderx-cli --locked
scratch=$(mktemp -d "${LOADERX_LARGE_DIR:-${TMPDIR:-/tmp}}/loaderx-large.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
"$environment/bin/python" tests/python/check_large.py "$target/release/loaderx" "$scratch" "$@"
