"""Makes the table from the beginning: `python -m tools.semantic.build --work DIR`.

Input: the package registries, `requests/*.tsv`. Output: `DIR/words.bin` and `manifest.json` beside this
file; with `--install`, the table in its place in the package. The steps are `corpus`, `teach`, `adapt`,
`train`; the first two keep what is in DIR, so an interrupted build goes on.
"""

import argparse
import json
import os
import shutil
from pathlib import Path

import torch

from tools import row_index
from tools.semantic import adapt, check, check_requests, corpus, teach, train
from tools.semantic.measure import line, measure
from tools.semantic.settings import ADAPT, TRAIN
from tools.semantic.table import Table, unpack

THREADS = 2  # sums come in another order with another number


def build(work: Path, install: bool) -> None:
    if wrong := check_requests.faults():
        raise SystemExit("\n".join(wrong))
    torch.set_num_threads(THREADS)
    corpus.write(work)
    teach.everything(work)
    adapter, best = adapt.adapt(work, ADAPT)
    adapt.save(adapter, work / "adapt.npz")
    raw, held = train.train(work, TRAIN, hold=True)
    table = Table(*unpack(raw))
    figures = {
        "teacher, adapted": line(best),
        "table": line(measure(held, table.vectors, table.queries, TRAIN.weights)),
    }
    raw, _ = train.train(work, TRAIN, hold=False)
    partial = work / "words.partial"
    partial.write_bytes(raw)
    partial.replace(work / "words.bin")
    manifest = check.manifest(work / "words.bin", work / "corpus", figures)
    manifest["adapter"] = json.loads(check.MANIFEST.read_text("utf-8"))["adapter"]  # which has its own step
    (work / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    if install:
        staged = check.TABLE.with_suffix(".new")
        shutil.copy(work / "words.bin", staged)
        staged.replace(check.TABLE)
        check.TABLE.with_suffix(".idx").write_bytes(row_index.made(check.TABLE))
        shutil.copy(work / "manifest.json", check.MANIFEST)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--install", action="store_true", help="put table and manifest in their places")
    arguments = parser.parse_args()
    os.nice(10)
    build(arguments.work, arguments.install)
