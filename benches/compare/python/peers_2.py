"""Python loaderx 2.8.19, which has a format of its own."""

from pathlib import Path

import numpy as np
from loaderx import Allocator, Loader
from loaderx.sampler import Sampler
from loaderx.zrecord import DenseStore, DenseWriter

from protocol import batches, serve


def own_store(request, store):
    """The dense records, which the other process has left as an .npy file, in the format of this version."""
    target = Path(request["copy"]) / (Path(store).name + ".v2")
    if not target.exists():
        array = np.load(Path(request["copy"]) / (Path(store).name + ".npy"), mmap_mode="r")
        unfinished = target.with_suffix(".unfinished")
        with DenseWriter(unfinished, array.dtype, array.shape[1:], codec=request["codec"]) as writer:
            for first in range(0, len(array), 4096):
                writer.append(np.ascontiguousarray(array[first : first + 4096]))
        unfinished.rename(target)
    return DenseStore(target).bind(Allocator("cpu"))


def make(request):
    kind, batch = request["kind"], request["batch"]
    if kind.startswith("draw"):
        mode = Sampler.Mode.CYCLIC if kind == "draw-cyclic" else Sampler.Mode.IID
        return Sampler(60_000, batch, mode, seed=1).next
    images = own_store(request, request["store"])
    if kind == "load":
        labels = own_store(request, request["labels"])
        sampler = Sampler(len(images), batch, Sampler.Mode.CYCLIC, seed=1)
        loader = Loader({"image": [images], "label": [labels]}, sampler, workers=request["threads"])
        return lambda: next(loader)
    turn = batches(request, np.uint64)
    return lambda: images.__getitems__(next(turn))


serve(make)
