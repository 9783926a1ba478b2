#!/usr/bin/env bash
# Imports and exports files of the real writers (NumPy, PyArrow, Pillow, safetensors), in both directions. Skipped, with a
# message, where Python 3 with pip or the package index is missing; LOADERX_REQUIRE_PYTHON=1 makes that a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    if [ "${LOADERX_REQUIRE_PYTHON:-}" = 1 ]; then
        echo "the format check needs Python: $1" >&2
        exit 1
    fi
    echo "SKIPPED the format check: $1"
    exit 0
}

command -v python3 >/dev/null || skip "there is no python3"
target=${CARGO_TARGET_DIR:-target}
environment="$target/formats-venv"
if ! [ -x "$environment/bin/python" ]; then
    python3 -m venv "$environment" || skip "python3 cannot make a virtual environment"
fi
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check numpy pyarrow pillow safetensors ||
    skip "numpy, pyarrow, pillow and safetensors cannot be installed"
cargo build --workspace --bin loaderx --locked
"$environment/bin/python" tests/python/check_formats.py "$target/debug/loaderx"
