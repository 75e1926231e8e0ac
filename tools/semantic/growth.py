"""How what is found grows with the number of requests: `python -m tools.semantic.growth --work DIR`.

Input: what `build` has taught. Output: for shares of the servers that are learnt from, the map and one table
learnt from these alone, and what it finds of the held-out servers; a line each. It overwrites
`DIR/adapt.npz`, so build again after it.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import torch

from tools.semantic import adapt, train
from tools.semantic.build import THREADS
from tools.semantic.measure import line, measure
from tools.semantic.settings import ADAPT, TRAIN
from tools.semantic.table import Table, unpack

SHARES = (0.125, 0.25, 0.5, 1.0)


def grow(work: Path, shares: tuple[float, ...]) -> None:
    """Prints a line for each share."""
    torch.set_num_threads(THREADS)
    learnt, _ = adapt.split(adapt.taught(work))
    for share in shares:
        some = adapt.portion(learnt, share).tools
        adapter, _ = adapt.adapt(work, ADAPT, report=False, share=share)
        adapt.save(adapter, work / "adapt.npz")
        raw, held = train.train(work, replace(TRAIN, tables=1), hold=True, share=share)
        table = Table(*unpack(raw))
        found = measure(held, table.vectors, table.queries, TRAIN.weights)
        requests = sum(len(tool.requests) for tool in some)
        print(f"{share:.3f}: {len(some)} tools, {requests} requests: {line(found)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    arguments = parser.parse_args()
    os.nice(10)
    grow(arguments.work, tuple(arguments.shares))
