"""LMDB and Lance through their Python packages, as training scripts use them."""

from pathlib import Path

import lance
import lmdb
import numpy as np
import pyarrow as pa

from protocol import batches, serve

GIB = 1 << 30


def exported(request):
    """The dense records, which the first process has left as an .npy file."""
    return np.load(Path(request["copy"]) / (Path(request["store"]).name + ".npy"), mmap_mode="r")


def lmdb_file(request):
    path = Path(request["copy"]) / (Path(request["store"]).name + ".lmdb")
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        with lmdb.open(str(unfinished), map_size=8 * GIB, subdir=False, lock=False) as database:
            with database.begin(write=True) as transaction:
                for index, record in enumerate(exported(request)):
                    transaction.put(index.to_bytes(8, "big"), record.tobytes(), append=True)
        unfinished.rename(path)
    return path


def lance_table(request):
    path = Path(request["copy"]) / (Path(request["store"]).name + ".lance")
    if not path.exists():
        array = exported(request)
        flat = pa.array(np.ascontiguousarray(array).reshape(-1))
        width = flat.type.bit_width // 8
        per_record = len(flat) // len(array)
        column = pa.FixedSizeListArray.from_arrays(flat, per_record)
        assert per_record * width * len(array) == array.nbytes
        lance.write_dataset(pa.table({"record": column}), path)
    return path


def make(request):
    array = exported(request)
    shape, dtype = array.shape[1:], array.dtype
    turn = batches(request, np.int64)
    if request["system"] == "lmdb":
        database = lmdb.open(
            str(lmdb_file(request)), map_size=8 * GIB, subdir=False, lock=False, readonly=True, readahead=False
        )
        transaction = database.begin(buffers=True)

        def gather():
            indices = next(turn)
            batch = np.empty((len(indices), *shape), dtype)
            for row, index in enumerate(indices.tolist()):
                record = transaction.get(index.to_bytes(8, "big"))
                batch[row] = np.frombuffer(record, dtype).reshape(shape)
            return batch

        return gather
    table = lance.dataset(lance_table(request))

    def take():
        indices = next(turn)
        column = table.take(indices, columns=["record"])["record"].combine_chunks()
        return column.values.to_numpy().reshape(len(indices), *shape)

    # The first batch proves that rows come in the order in which they were asked for.
    indices = next(turn)
    column = table.take(indices, columns=["record"])["record"].combine_chunks()
    assert (column.flatten().to_numpy().reshape(len(indices), *shape) == array[indices]).all()
    return take


serve(make)
