#!/usr/bin/env bash
# Runs every command of the documents' `sh` code blocks, line by line: what a reader
# types has to work. Rust code blocks are compiled as doc tests (tests/src/lib.rs includes the README).
#
# Two commands are long, so the gate runs them in a shorter form, and this script says so:
#   cargo test --workspace          ran as a step of its own
#   cargo run --release -p NAME     runs the same program for a few steps, compiled in the profile `dev`,
#                                   in which the tests have compiled the frameworks already
set -euo pipefail
cd "$(dirname "$0")/.."

documents=(README.md)
for required in "cargo run --release -p mnist" "cargo test --workspace"; do
    grep -qxF -- "$required" README.md || { echo "README.md no longer shows: $required" >&2; exit 1; }
done
grep -qF "cargo test --workspace" .ci/run || { echo ".ci/run no longer runs: cargo test --workspace" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LOADERX_DOCS_SCRATCH="$scratch"

commands_of() {
    awk '/^```sh *$/ {inside = 1; next} /^```/ {inside = 0} inside && NF && $1 !~ /^#/' "$1"
}

ran=0
for document in "${documents[@]}"; do
    while IFS= read -r command <&3; do
        case "$command" in
        "bash .ci/run" | "cargo test --workspace" | "cargo bench"* | "git clone"*)
            echo "-- $document: $command (covered by its own step, or too long for the gate)"
            continue
            ;;
        "cargo run --release -p loaderx-cli -- "*)
            command="cargo run -p loaderx-cli -- ${command#cargo run --release -p loaderx-cli -- }"
            ;;
        "cargo run --release -p mnist -- "*)
            command="cargo run -p mnist -- --steps 20 --data-dir $scratch/mnist ${command#cargo run --release -p mnist -- }"
            ;;
        "cargo run --release -p mnist")
            command="cargo run -p mnist -- --steps 20 --data-dir $scratch/mnist"
            ;;
        "cargo run --release -p finetune"*)
            command="cargo run -p finetune -- --steps 5 --data-dir $scratch/finetune"
            ;;
        esac
        echo "-- $document: $command"
        bash -c "$command" </dev/null
        ran=$((ran + 1))
    done 3< <(commands_of "$document")
done
[ "$ran" -gt 0 ] || { echo "no command was found in ${documents[*]}" >&2; exit 1; }
echo "$ran commands of ${documents[*]} ran"
