#!/usr/bin/env bash
# What would be published: each published crate carries its licence, its README and what crates.io asks for, and nothing that is
# large; every other package of the workspace says that it is not published.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=2000000 # bytes
published="loaderx-burn loaderx-candle loaderx-cli loaderx-core"
failed=0

complain() {
    echo "$*" >&2
    failed=1
}

unmarked=$(git grep -L '^publish = false' -- '*/Cargo.toml' | xargs -n1 dirname | sort | tr '\n' ' ')
[ "${unmarked% }" = "$published" ] || complain "these packages may be published: $unmarked; meant are: $published"
for crate in $published; do
    files=$(cargo package --package "$crate" --list --allow-dirty --locked --quiet 2>/dev/null)
    for needed in LICENSE README.md Cargo.toml; do
        grep -qxF "$needed" <<<"$files" || complain "$crate would be published without $needed"
    done
    cmp -s LICENSE "$crate/LICENSE" || complain "$crate/LICENSE is not LICENSE"
    for key in description license readme keywords categories rust-version; do
        grep -qE "^$key(\.workspace)? = " "$crate/Cargo.toml" || complain "$crate/Cargo.toml has no $key"
    done
    grep -qF '[package.metadata.docs.rs]' "$crate/Cargo.toml" || complain "$crate/Cargo.toml says nothing to docs.rs"
    size=$(cd "$crate" && while read -r file; do [ ! -f "$file" ] || wc -c <"$file"; done <<<"$files" | awk '{n += $1} END {print n + 0}')
    [ "$size" -le "$limit" ] || complain "$crate would be published with $size bytes, more than $limit"
    echo "$crate: $(wc -l <<<"$files") files, $size bytes"
done
exit "$failed"
