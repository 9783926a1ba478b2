"""Python loaderx 0.9.4, driven line by line.

Reads one JSON request a line from standard input, does it with the Python package, answers with one JSON line:
{"ok": value} or {"error": text}. Every request opens the store and closes it again. Records travel as hex.
"""

import json
import sys

import numpy as np

from loaderx.converter import from_iterator, from_numpy
from loaderx.dataset import DenseDataset, RaggedDataset
from loaderx.zrecord import Zrecord


def records_of(texts):
    return [bytes.fromhex(text) for text in texts]


def packed(records):
    offsets = np.cumsum([0] + [len(record) for record in records[:-1]]).astype(np.uint64)
    return np.frombuffer(b"".join(records), dtype=np.uint8), offsets


def read(path):
    """Every record's bytes."""
    with Zrecord(path) as store:
        count = len(store)
        if count == 0:
            return []
        indices = np.arange(count, dtype=np.uint64)
        lengths = store.lengths(indices).astype(np.uint64)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
        room = np.empty(int(offsets[-1]), dtype=np.uint8)
        store.gather(indices, room, offsets[:-1])
        data = room.tobytes()
        return [data[int(a):int(b)].hex() for a, b in zip(offsets[:-1], offsets[1:])]


def append(path, records, codec):
    with Zrecord(path, codec=codec) as store:
        first = store.append(*packed(records_of(records)))
        store.sync()
        return first


def delete(path, indices):
    with Zrecord(path) as store:
        store.delete(np.array(indices, dtype=np.uint64))
        store.sync()


def compact(path):
    with Zrecord(path) as store:
        store.compact()
        store.sync()


def stats(path):
    with Zrecord(path) as store:
        return {key: int(value) for key, value in store.stats().items()}


def train(path, records, target):
    with Zrecord(path) as store:
        records = records_of(records)
        return store.train_dict(packed(records)[0], [len(record) for record in records], target)


def write_dense(path, records, dtype, item_shape, codec):
    array = np.frombuffer(b"".join(records_of(records)), dtype=dtype)
    return from_numpy(path, array.reshape((-1, *item_shape)), codec=codec)


def write_ragged(path, records, dtype, item_shape, codec):
    source = (np.frombuffer(record, dtype=dtype).reshape((-1, *item_shape)) for record in records_of(records))
    return from_iterator(path, source, codec=codec)


def read_dense(path):
    with DenseDataset(path) as data:
        batch = data[:]
        return {
            "dtype": data.dtype.str,
            "item_shape": list(data.item_shape),
            "codec": data.codec,
            "records": [record.tobytes().hex() for record in batch],
        }


def read_ragged(path):
    with RaggedDataset(path) as data:
        batch = data[:]
        assert all(record.shape[1:] == data.item_shape for record in batch)
        return {
            "dtype": data.dtype.str,
            "item_shape": list(data.item_shape),
            "codec": data.codec,
            "records": [record.tobytes().hex() for record in batch],
        }


REQUESTS = {
    function.__name__: function
    for function in (read, append, delete, compact, stats, train, write_dense, write_ragged, read_dense, read_ragged)
}

for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = {"ok": REQUESTS[request.pop("do")](**request)}
    except Exception as error:  # the test decides what an error means
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
