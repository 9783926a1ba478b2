#!/usr/bin/env bash
# Holds the documents to the code: what a reader copies from them has to work.
#
#   ```sh                      each line is run, from the root of the repository; blocks of `loaderx` lines in a folder
#                              that holds the files which they name (ci/cli-examples.sh)
#   ```sh (not run: REASON)    is listed, with its reason
#   ```rust                    is a doc test: some crate includes the document, and `cargo test --workspace` compiles it
#   ```text                    holds no commands
#
# The examples of `loaderx --help` and of each subcommand's are run too, and links to files have to lead somewhere. Trainings
# run for a few steps (their READMEs name the option), with the binaries that the workspace's tests are compiled with.
# `bash ci/check-docs.sh text` is the part that compiles nothing, `... cli` the part that needs the program alone.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t documents < <(git ls-files README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md UNSAFE.md \
    'docs/*.md' 'examples/*/README.md' 'loaderx-*/README.md')
target=${CARGO_TARGET_DIR:-target}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
ran=0
declare -a skipped=()

complain() {
    echo "$*" >&2
    failed=1
}

# --- What must stay on the first page.
for required in "cargo run --release -p mnist" "cargo test --workspace"; do
    grep -qxF -- "$required" README.md || complain "README.md no longer shows: $required"
done
grep -qF "cargo test --workspace" .ci/run || complain ".ci/run no longer runs: cargo test --workspace"

# --- Kinds of code blocks, and links.
for document in "${documents[@]}"; do
    while IFS= read -r kind; do
        kind=${kind% }
        case "$kind" in
        "sh" | "sh (not run: "*")" | text | hex\ * | vectors | words) ;;
        rust)
            included=$(git grep -hoE 'include_str!\("[^"]+\.md"\)' -- '*/lib.rs' | sed 's/.*("\(\.\.\/\)*//; s/")//')
            case "$document" in
            loaderx-*/README.md) grep -qF '#[doc = include_str!("../README.md")]' "${document%README.md}src/lib.rs" ||
                complain "$document has rust blocks, but ${document%README.md}src/lib.rs does not include it as a doc test" ;;
            *) grep -qxF "$document" <<<"$included" || complain "$document has rust blocks, but tests/src/lib.rs does not include it" ;;
            esac
            ;;
        *) complain "$document: a code block of the kind \"$kind\", which nothing checks" ;;
        esac
    done < <(awk '/^ *```/ {if (inside) inside = 0; else {inside = 1; sub(/^ *```/, ""); print}}' "$document")
    awk -v name="$document" '/^```text/ {inside = 1; next} /^```/ {inside = 0}
        inside && /^ *(cargo|bash|pip|git|loaderx|python3?|unzip) / {print name ": a command in a block of text: " $0; bad = 1}
        END {exit bad}' "$document" >&2 || failed=1
    awk -v name="$document" '/^```/ {inside = !inside} !inside && blank && /^    [^ ]/ {print name ": an indented code block, of no kind: " $0; bad = 1}
        {blank = !NF} END {exit bad}' "$document" >&2 || failed=1
    while IFS= read -r link; do
        [ -e "$(dirname "$document")/${link%%#*}" ] || complain "$document: the link to $link leads nowhere"
    done < <(grep -oE '\]\([^)#][^)]*\)' "$document" | sed 's/^](//; s/)$//' | grep -vE '^(https?|mailto):' || true)
    while IFS= read -r reason; do
        skipped+=("$document: $reason")
    done < <(awk '/^```sh \(not run: / {reason = $0; sub(/.*not run: /, "", reason); sub(/\)$/, "", reason); inside = 1; next}
        /^```/ {inside = 0} inside && NF && $1 !~ /^#/ {print $0 "   <- " reason}' "$document")
done

if [ "${1:-}" = text ]; then
    exit "$failed"
fi

# --- The program's own examples, and its README's.
cargo build --workspace --bin loaderx --locked
export PATH="$(cd "$target/debug" && pwd):$PATH"
bash ci/cli-examples.sh || failed=1
if [ "${1:-}" = cli ]; then
    exit "$failed"
fi

# --- Everything else.
cargo build --workspace --bin mnist --bin finetune --locked
blocks_of() {
    awk '/^```sh *$/ {inside = 1; next} /^```/ {inside = 0} inside && NF && $1 !~ /^#/' "$1"
}
for document in "${documents[@]}"; do
    while IFS= read -r command <&3; do
        command=${command%%   *# *}
        case "$command" in
        loaderx\ *) continue ;; # ci/cli-examples.sh has run it
        "bash .ci/run") skipped+=("$document: $command   <- it is what runs this") && continue ;;
        "cargo test --workspace") skipped+=("$document: $command   <- a step of its own in .ci/run") && continue ;;
        "cargo run --release -p mnist"*) run="mnist --steps 20 --data-dir $scratch/mnist" ;;
        "cargo run --release -p finetune"*) run="finetune --steps 5 --data-dir $scratch/finetune" ;;
        *) run=$command ;;
        esac
        if grep -qxF -- "$run" "$scratch/done" 2>/dev/null; then
            echo "-- $document: $command   (ran for another document)"
            continue
        fi
        echo "$run" >>"$scratch/done"
        if [ "$run" = "$command" ]; then
            echo "-- $document: $command"
        else
            echo "-- $document: $command   (as: $run)"
        fi
        bash -c "$run" </dev/null || complain "$document: this command failed: $command"
        ran=$((ran + 1))
    done 3< <(blocks_of "$document")
done
[ "$ran" -gt 0 ] || complain "no command was found in ${documents[*]}"

printf 'not run: %s\n' "${skipped[@]}"
[ "$failed" -eq 0 ] || exit 1
echo "$ran commands of ${#documents[@]} documents ran"
