#!/usr/bin/env bash
# Runs each example that `loaderx --help` and its subcommands' help print, and the commands of the program's README, as they
# stand there, in a fresh folder that holds the files which they name. The `loaderx` of the PATH is the one that is run.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# --- The files: 300 images and labels of MNIST's test set, texts, and what the program itself makes of them.
records=300
length='\x00\x00\x01\x2c' # of 300, as IDX writes it
box=$scratch/box
mkdir -p "$box"
cd "$box"
{ printf '\x00\x00\x08\x03'"$length"'\x00\x00\x00\x1c\x00\x00\x00\x1c'; gzip -dc "$root/examples/mnist/data/t10k-images-idx3-ubyte.gz" | tail -c +17 | head -c $((records * 784)) || true; } |
    gzip >train-images-idx3-ubyte.gz
{ printf '\x00\x00\x08\x01'"$length"; gzip -dc "$root/examples/mnist/data/t10k-labels-idx1-ubyte.gz" | tail -c +9 | head -c $records || true; } |
    gzip >train-labels-idx1-ubyte.gz
{ echo text,label; for i in $(seq "$records"); do echo "the words of text $i and some more,$([ "$i" = 7 ] || echo $((i % 10)))"; done; } >train.csv
# A tensor file: the length of its header in 8 bytes, the header, 2 x 3 numbers of 4 bytes.
header='{"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
{ printf "\\x$(printf %x ${#header})"'\0\0\0\0\0\0\0'"$header"; head -c 24 /dev/zero; } >x.safetensors
loaderx -q import image=train-images-idx3-ubyte.gz label=train-labels-idx1-ubyte.gz train >/dev/null
loaderx -q import train.csv texts --select text >/dev/null
mv texts/text train/text
rm -r texts
loaderx -q export train/image images.npy >/dev/null
loaderx -q export train/label labels.npy >/dev/null
mkdir -p snapshot imagenet/cat imagenet/dog files
for split in train test; do loaderx -q export train snapshot/$split-00000-of-00001.parquet >/dev/null; done
loaderx -q cat train/image 1 2 --png imagenet/cat >/dev/null
loaderx -q cat train/image 3 4 --png imagenet/dog >/dev/null
cp imagenet/cat/* files
loaderx -q import files scans --format files >/dev/null
cp -r train/image from-python
rm from-python/schema.msgpack
for copy in all part-1 part-2 part-3; do cp -r train "$copy"; done
mkdir home
cd "$root"

# --- Runs the lines of standard input, one after the other, in a copy of the box; imports and splits find no `train`.
examples=0
failed=0
sandbox() {
    local place=$scratch/run line
    rm -rf "$place"
    cp -r "$box" "$place"
    while IFS= read -r line <&3; do
        case "$line" in "loaderx import"* | "loaderx split"*) rm -rf "$place/train" ;; esac
        echo "-- $1: $line"
        (cd "$place" && HOME="$place/home" bash -c "$line" </dev/null >"$scratch/output" 2>&1) || {
            cat "$scratch/output" >&2
            echo "$1: this example failed: $line" >&2
            failed=1
        }
        examples=$((examples + 1))
    done 3<"$scratch/lines"
}

examples_of() {
    loaderx "$@" --help | awk '/^Examples?:/ {inside = 1; next} !NF {inside = 0} inside {sub(/^ +/, ""); print}'
}

subcommands=$(loaderx --help | awk '/^Commands:/ {inside = 1; next} !NF {inside = 0} inside && /^  [a-z]/ && $1 != "help" {print $1}')
examples_of >"$scratch/lines"
sandbox "loaderx --help"
for subcommand in $subcommands; do
    # The examples of one help text are alternatives, so each has a folder of its own.
    examples_of "$subcommand" >"$scratch/all"
    [ -s "$scratch/all" ] || { echo "loaderx $subcommand --help has no example" >&2; failed=1; }
    while IFS= read -r example <&4; do
        echo "$example" >"$scratch/lines"
        sandbox "loaderx $subcommand --help"
    done 4<"$scratch/all"
done
while IFS= read -r document <&5; do
    awk '/^```sh *$/ {inside = 1; next} /^```/ {inside = 0} inside && /^loaderx /' "$document" >"$scratch/lines"
    [ ! -s "$scratch/lines" ] || sandbox "$document"
done 5< <(git ls-files '*.md')
[ "$failed" -eq 0 ] || exit 1
echo "$examples examples of the program's help and README ran"
