"""Checks import and export against NumPy, PyArrow, safetensors and Pillow, live and in both directions.

    python3 -m venv venv && venv/bin/pip install numpy pyarrow pillow safetensors
    venv/bin/python tests/python/check_formats.py target/debug/loaderx

Each case: Python writes random data, `loaderx import` reads it, `loaderx export` writes it, Python reads it back and
compares every value. Ends with the number of cases, or at the first difference.
"""

import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from safetensors.numpy import save_file

PROGRAM = sys.argv[1]
RANDOM = np.random.default_rng(20261130)
CASES = 0


def loaderx(*args):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True)
    assert done.returncode == 0, (args, done.stderr.decode())
    return done.stdout.decode()


def same(name, wrote, read):
    global CASES
    assert wrote.shape == read.shape, (name, wrote.shape, read.shape)
    assert wrote.dtype.newbyteorder("<") == read.dtype, (name, wrote.dtype, read.dtype)
    assert wrote.astype(read.dtype).tobytes() == read.tobytes(), name
    CASES += 1


def random(shape, dtype):
    count = int(np.prod(shape))
    if np.dtype(dtype).kind == "b":
        return RANDOM.integers(0, 2, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        return RANDOM.normal(size=shape).astype(dtype)
    return np.frombuffer(RANDOM.bytes(count * np.dtype(dtype).itemsize), dtype).reshape(shape)


def arrays(folder):
    for kind in ["b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]:
        for order in "<>":
            for shape in [(7,), (7, 3), (1000, 5, 4), (3, 0), (0, 3)]:
                for fortran in [False, True]:
                    name = f"{order == '<'}-{kind}-{'x'.join(map(str, shape))}-{fortran}"
                    array = random(shape, order + kind)
                    array = np.asfortranarray(array) if fortran else array
                    np.save(folder / f"{name}.npy", array)
                    loaderx("import", folder / f"{name}.npy", folder / name, "--codec", "auto")
                    loaderx("export", folder / name, folder / f"{name}-back.npy")
                    same(name, np.ascontiguousarray(array).reshape(shape), np.load(folder / f"{name}-back.npy"))


def tensors(folder):
    kinds = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
    tensors = {kind.replace("?", "bool"): random((50, 3), kind if kind == "?" else "<" + kind) for kind in kinds}
    save_file(tensors, folder / "x.safetensors")
    loaderx("import", folder / "x.safetensors", folder / "tensors")
    loaderx("export", folder / "tensors", folder / "tensors-back", "--format", "npy")
    for name, tensor in tensors.items():
        same(name, tensor, np.load(folder / "tensors-back" / f"{name}.npy"))


def tables(folder):
    global CASES
    rows = 3000
    words = ["", "a", "größer", "x" * 5000]
    columns = {
        "text": pa.array([words[i % 4] + str(i) for i in range(rows)]),
        "number": pa.array(random((rows,), "<f4")),
        "flag": pa.array(random((rows,), "?")),
        "list": pa.array([list(range(i % 5)) for i in range(rows)], pa.list_(pa.int32())),
        "fixed": pa.FixedSizeListArray.from_arrays(pa.array(random((rows * 4,), "<i2")), 4),
    }
    table = pa.table(columns)
    pq.write_table(table, folder / "x.parquet", row_group_size=700)
    with pa.OSFile(str(folder / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=900)
    for name in ["x.parquet", "x.arrow"]:
        loaderx("import", folder / name, folder / f"{name}-store", "--codec", "zstd")
        loaderx("export", folder / f"{name}-store", folder / f"{name}-back.parquet")
        back = pq.read_table(folder / f"{name}-back.parquet")
        for column in table.column_names:
            wrote = table[column].to_pylist()
            if column == "text":
                wrote = [text.encode() for text in wrote]
            assert back[column].to_pylist() == wrote, (name, column)
            CASES += 1
    with open(folder / "x.jsonl", "w") as file:
        for row in table.to_pylist():
            file.write(json.dumps(row) + "\n")
    loaderx("import", folder / "x.jsonl", folder / "lines", "--type", "number=f32")
    lines = [json.loads(line) for line in loaderx("cat", folder / "lines", "--json").splitlines()]
    assert lines == [json.loads(json.dumps(row)) for row in table.to_pylist()] or all(
        np.float32(line["number"]) == np.float32(row["number"]) and {**line, "number": 0} == {**row, "number": 0}
        for line, row in zip(lines, table.to_pylist(), strict=True)
    )
    CASES += 1


def pictures(folder):
    global CASES
    picture = RANDOM.integers(0, 256, (9, 7, 3), "u1")
    (folder / "classes" / "one").mkdir(parents=True)
    Image.fromarray(picture).save(folder / "classes" / "one" / "a.png")
    loaderx("import", folder / "classes", folder / "pictures", "--resize", "9x7")
    loaderx("cat", folder / "pictures" / "image", "0", "--png", folder / "png")
    with Image.open(io.BytesIO((folder / "png" / "0.png").read_bytes())) as back:
        same("picture", picture, np.asarray(back))


with tempfile.TemporaryDirectory() as scratch:
    for case in [arrays, tensors, tables, pictures]:
        folder = Path(scratch) / case.__name__
        folder.mkdir()
        case(folder)
print(f"{CASES} cases: all equal")
