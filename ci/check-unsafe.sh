#!/usr/bin/env bash
# Holds UNSAFE.md to the code: every file with unsafe code stands in its table with the right count, no other
# file has any, and every count is matched by at least as many SAFETY comments.
set -euo pipefail
cd "$(dirname "$0")/.."

found=$(git grep -cE '^[^/]*\bunsafe (\{|impl|fn|trait|extern)' -- '*.rs' | sed 's/:\([0-9]*\)$/ \1/' | sort || true)
stated=$(sed -n 's/^| `\([^`]*\.rs\)` | \([0-9]*\) |.*/\1 \2/p' UNSAFE.md | sort)
if [ "$found" != "$stated" ]; then
    echo "UNSAFE.md does not match the code (< stated, > found; file and number of unsafe blocks, functions and impls):" >&2
    diff <(echo "$stated") <(echo "$found") >&2 || true
    exit 1
fi
while read -r file count; do
    [ -n "$file" ] || continue
    comments=$(grep -cE 'SAFETY:|# Safety' "$file" || true)
    if [ "$comments" -lt "$count" ]; then
        echo "$file has $count unsafe places and only $comments SAFETY comments" >&2
        exit 1
    fi
done <<<"$found"
echo "unsafe code: $(echo "$found" | awk '{n += $2} END {print n + 0}') places in $(echo "$found" | grep -c . || true) files, all listed in UNSAFE.md"
