"""Answers requests on the standard input: `make JSON` prepares a system, `run ID COUNT` does COUNT batches."""

import json
import sys
import time
from pathlib import Path


def serve(make):
    systems = []
    for line in sys.stdin:
        verb, rest = line.strip().split(" ", 1)
        if verb == "make":
            request = json.loads(rest)
            Path(request["copy"]).mkdir(exist_ok=True)
            systems.append(make(request))
            print("ok", len(systems) - 1, flush=True)
        else:
            system, count = (int(word) for word in rest.split())
            run = systems[system]
            start = time.perf_counter()
            for _ in range(count):
                run()
            print("ok", (time.perf_counter() - start) * 1e6 / count, flush=True)


def iter_forever(items):
    while True:
        yield from items


def batches(request, dtype):
    """The lists of indices that every system gathers, in turn and for ever."""
    import numpy as np

    lists = json.loads(Path(request["indices"]).read_text())
    return iter_forever([np.array(indices, dtype) for indices in lists])
