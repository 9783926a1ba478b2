"""Python loaderx 0.9.4, and NumPy."""

import subprocess
from pathlib import Path

import numpy as np
from loaderx.dataloader import DataLoader
from loaderx.dataset import DenseDataset, RaggedDataset
from loaderx.sampler import Sampler

from protocol import batches, serve


def own_copy(request, store):
    """0.9.4 opens for writing and extends the files: it gets a copy of its own."""
    target = Path(request["copy"]) / Path(store).name
    if not target.exists():
        # As sparse as it is: a table of 256 MiB, most of which is a hole.
        subprocess.run(["cp", "-R", "--sparse=always", store, target], check=True)
    return target


def mapped(request, store):
    """The records of a dense store as a mapped .npy file."""
    path = Path(request["copy"]) / (Path(store).name + ".npy")
    if not path.exists():
        dataset = DenseDataset(own_copy(request, store))
        np.save(path, dataset[np.arange(len(dataset))])
    return np.load(path, mmap_mode="r")


def packed(request, store):
    """The records of a ragged store as one mapped array and offsets."""
    path = Path(request["copy"]) / (Path(store).name + ".values.npy")
    offsets = path.with_suffix(".offsets.npy")
    if not offsets.exists():
        dataset = RaggedDataset(own_copy(request, store))
        records = dataset[np.arange(len(dataset))]
        np.save(path, np.concatenate(records))
        np.save(offsets, np.cumsum([0] + [len(r) for r in records]))
    return np.load(path, mmap_mode="r"), np.load(offsets)


def take_packed(values, offsets, indices):
    lengths = offsets[indices + 1] - offsets[indices]
    out = np.zeros(len(indices) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    positions = np.repeat(offsets[indices] - out[:-1], lengths) + np.arange(out[-1])
    return values[positions], out


def make(request):
    kind, batch, store = request["kind"], request["batch"], request["store"]
    if kind.startswith("draw"):
        sampler = Sampler(60_000, batch, 2 if kind == "draw-cyclic" else 1, 1)
        return sampler.next
    if kind == "load":
        if request["system"] == "numpy":
            images, labels = mapped(request, store), mapped(request, request["labels"])
            random = np.random.default_rng(1)

            def inline():
                indices = random.integers(0, len(images), batch)
                return images[indices], labels[indices]

            return inline
        streams = {"image": own_copy(request, store), "label": own_copy(request, request["labels"])}
        loader = DataLoader(
            {name: DenseDataset(path) for name, path in streams.items()},
            num_workers=request["threads"],
            batch_size=batch,
            mode=2,
        )
        return lambda: next(loader)
    if kind == "export":
        mapped(request, store)
        return None
    if request["system"] == "numpy":
        signed = batches(request, np.int64)
        if kind == "gather-ragged":
            values, offsets = packed(request, store)
            return lambda: take_packed(values, offsets, next(signed))
        array = mapped(request, store)
        return lambda: array[next(signed)]
    turn = batches(request, np.uint64)
    dataset = (RaggedDataset if kind == "gather-ragged" else DenseDataset)(own_copy(request, store))
    return lambda: dataset.__getitems__(next(turn))


serve(make)
