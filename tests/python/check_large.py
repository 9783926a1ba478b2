"""Imports inputs of several GiB and checks what came in. Run by ci/large.sh, which says what it needs.

    python tests/python/check_large.py target/release/loaderx SCRATCH_DIRECTORY [many|arrays|tables ...]
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PROGRAM, SCRATCH = sys.argv[1], Path(sys.argv[2])
MIB = 1 << 20
ROWS = 2304


def peak_rss(pid):
    """Anonymous memory: what is mapped from files can be given back at any time."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return max((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), default=0)


def run(name, size, *args, limit=None):
    """Runs the program, in an address space of so many MiB if there is a limit, and prints what it took."""

    def restrict():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit * MIB, limit * MIB))

    started, peak = time.monotonic(), 0
    process = subprocess.Popen([PROGRAM, *map(str, args)], stdout=subprocess.DEVNULL, preexec_fn=restrict)
    while process.poll() is None:
        peak = max(peak, peak_rss(process.pid))
        time.sleep(0.01)
    assert process.returncode == 0, (name, process.returncode)
    seconds = time.monotonic() - started
    within = f", within {limit} MiB of address space" if limit else ""
    print(f"{name}: {size / 2**30:.2f} GiB in {seconds:.1f} s, {size / 1e6 / seconds:.0f} MB/s, "
          f"at most {peak / 1024:.0f} MiB of memory{within}", flush=True)


def record(store, index):
    return subprocess.run([PROGRAM, "cat", store, str(index), "--raw"], capture_output=True, check=True).stdout


def arrays():
    rows, columns = 1_100_000, 4096
    for fortran in [False, True]:
        source, store = SCRATCH / "x.npy", SCRATCH / "x"
        array = np.lib.format.open_memmap(
            source, mode="w+", dtype="u1", shape=(rows, columns), fortran_order=fortran
        )
        marks = {0: 1, 500_001: 2, rows - 1: 3}
        for row, mark in marks.items():
            array[row, ::64] = mark
        del array
        # Sparse where nothing was written, so the disk holds little more than the store.
        run(f"npy, {'Fortran' if fortran else 'C'} order", rows * columns, "import", source, store,
            "--codec", "zstd", "--level", "1", limit=384)
        for row, mark in {**marks, 1: 0, 500_002: 0}.items():
            content = np.frombuffer(record(store, row), "u1")
            assert (content[::64] == mark).all() and content.sum(dtype="u8") == mark * (columns // 64), row
        shutil.rmtree(store)
        os.remove(source)


def many():
    """One record more than version 3 holds: told by the header, and found out on the way."""
    records = (1 << 24) + 1
    values = (np.arange(records) % 251).astype("u1")
    np.save(SCRATCH / "x.npy", values)
    batch = pa.record_batch({"x": pa.array(values)})
    with pa.OSFile(str(SCRATCH / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as file:
        for start in range(0, records, MIB):
            file.write_batch(batch.slice(start, MIB))
    for name in ["x.npy", "x.arrow"]:
        run(f"2^24 + 1 records of a byte, {name}", records, "import", SCRATCH / name, SCRATCH / "x")
        store = SCRATCH / "x" if name == "x.npy" else SCRATCH / "x" / "x"
        for index in [0, 250, records - 2, records - 1]:
            assert record(store, index) == bytes([index % 251]), index
        info = subprocess.run([PROGRAM, "info", store, "--json"], capture_output=True, check=True)
        assert json.loads(info.stdout)["streams"][0]["format_version"] == 4
        shutil.rmtree(SCRATCH / "x")
        os.remove(SCRATCH / name)


def tables():
    values = np.empty((ROWS, MIB // 8), "<i8")
    values[:] = np.arange(ROWS)[:, None]
    ends = pa.py_buffer(np.arange(ROWS + 1, dtype="<i8") * MIB)
    blob = pa.Array.from_buffers(pa.large_binary(), ROWS, [None, ends, pa.py_buffer(values)])
    lists = pa.LargeListArray.from_arrays(
        pa.array(np.arange(ROWS + 1, dtype="i8") * (MIB // 8)), pa.array(values.reshape(-1))
    )
    # The writer closes a page only after this many values, and a page is read whole.
    pages = {"compression": "zstd", "row_group_size": ROWS, "write_batch_size": 8}
    pq.write_table(pa.table({"x": blob}), SCRATCH / "binary.parquet", **pages)
    pq.write_table(pa.table({"x": lists}), SCRATCH / "list.parquet", **pages)
    for name, column in [("binary.arrow", blob), ("list.arrow", lists)]:
        batch = pa.record_batch({"x": column})
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.OSFile(str(SCRATCH / name), "wb") as sink, pa.ipc.new_file(sink, batch.schema, options=options) as file:
            file.write_batch(batch)
    del values, blob, lists, column, batch
    for name in ["binary.parquet", "list.parquet", "binary.arrow", "list.arrow"]:
        store = SCRATCH / "x"
        run(name, ROWS * MIB, "import", SCRATCH / name, store, "--codec", "zstd", "--level", "1")
        for row in [0, 1, 1023, 2047, 2048, ROWS - 1]:
            assert record(store / "x", row) == row.to_bytes(8, "little") * (MIB // 8), (name, row)
        shutil.rmtree(store)


PARTS = {"many": many, "arrays": arrays, "tables": tables}
chosen = sys.argv[3:] or list(PARTS)
for part in chosen:
    PARTS[part]()
print(f"all large inputs came in: {', '.join(chosen)}")
