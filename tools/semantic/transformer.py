"""The adapter of the transformer (the extra `semantic`): a map of its vectors in which requests lie near the
tools that they are for. `python -m tools.semantic.transformer --work DIR [--install]`, after `build`.

Input: the requests and tools of `DIR/pairs` with their vectors, and those of the corpus.
Output: `DIR/minilm_adapter.bin`, as `mcpzip/search/remote/adapter.py` reads it.

As in a search, a tool has two vectors, of its names and of names and description, and counts with the nearer
one. Two losses, as in `adapt`: InfoNCE both ways between requests and tools, in batches of whole servers; and
the corpus keeps its cosines.
"""

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tools.semantic.adapt import Taught, batches, corpus_vectors, kept, split, taught
from tools.semantic.build import THREADS
from tools.semantic.check import ADAPTER, MANIFEST, adapter_record
from tools.semantic.measure import line, ranks, summary
from tools.semantic.settings import TRANSFORMER, Transformer
from tools.semantic.teach import DIMENSION, Teacher


class Adapter(nn.Module):
    """x -> the unit vector of x A + relu(x U + b) W; at first x itself."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.direct = nn.Parameter(torch.eye(DIMENSION))
        self.into = nn.Parameter(torch.randn(DIMENSION, hidden) * 0.05)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Parameter(torch.zeros(hidden, DIMENSION))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x @ self.direct + functional.relu(x @ self.into + self.bias) @ self.out
        return functional.normalize(y, dim=-1)


def shown(work: Path) -> Taught:
    """What was taught, with the vectors of tools as a search has them: ``names`` and ``texts``."""
    known = taught(work)
    names = [f"{tool.server} {tool.name}".replace("_", " ").replace("-", " ") for tool in known.tools]
    texts = [f"{name}: {tool.description}" for name, tool in zip(names, known.tools, strict=True)]
    teacher = Teacher(work / "packages")
    return Taught(
        known.tools, {"names": teacher.vectors(names), "texts": teacher.vectors(texts)}, known.requests
    )


def similarities(adapter: Adapter, requests: torch.Tensor, tools: Sequence[torch.Tensor]) -> torch.Tensor:
    """(requests, tools): the higher cosine of each."""
    asked = adapter(requests)
    names, texts = (asked @ adapter(vectors).T for vectors in tools)
    return torch.maximum(names, texts)


def fit(learnt: Taught, corpus: torch.Tensor, settings: Transformer) -> Adapter:
    torch.manual_seed(settings.seed)
    generator = np.random.default_rng(settings.seed)
    adapter = Adapter(settings.hidden)
    optimiser = torch.optim.Adam(adapter.parameters(), lr=settings.rate)
    names, texts = (torch.from_numpy(learnt.fields[field]) for field in ("names", "texts"))
    requests = torch.from_numpy(learnt.requests)
    starts = np.cumsum([0] + [len(tool.requests) for tool in learnt.tools])
    rounds = [b for _ in range(settings.rounds) for b in batches(learnt.tools, settings.batch, generator)]
    for step, batch in enumerate(rounds):
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * (1 - step / len(rounds))
        asked = torch.tensor([int(generator.integers(starts[i], starts[i + 1])) for i in batch])
        some = functional.dropout(requests[asked], settings.drop)
        logits = similarities(adapter, some, (names[batch], texts[batch])) / settings.temperature
        own = torch.arange(len(batch))
        loss = (functional.cross_entropy(logits, own) + functional.cross_entropy(logits.T, own)) / 2
        drawn = corpus[torch.from_numpy(generator.integers(0, len(corpus), 512))]
        loss = loss + settings.keep * kept(adapter(drawn), drawn)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return adapter


def found(adapter: Adapter, held: Taught) -> str:
    """What it finds of the requests of held-out servers."""
    tools = [torch.from_numpy(held.fields[field]) for field in ("names", "texts")]
    with torch.no_grad():
        cosines = similarities(adapter, torch.from_numpy(held.requests), tools)
    return line(summary(ranks(held.tools, cosines.numpy())))


def packed(adapter: Adapter) -> bytes:
    """float16: A, U, b, W."""
    parts = (adapter.direct, adapter.into, adapter.bias, adapter.out)
    return b"".join(part.detach().numpy().astype("<f2").tobytes() for part in parts)


def make(work: Path, install: bool) -> None:
    torch.set_num_threads(THREADS)
    corpus = torch.from_numpy(corpus_vectors(work, 60_000))
    everything = shown(work)
    learnt, held = split(everything)
    print("before", found(Adapter(0), held), flush=True)
    print("held out", found(fit(learnt, corpus, TRANSFORMER), held), flush=True)
    partial = work / "minilm_adapter.partial"
    partial.write_bytes(packed(fit(everything, corpus, TRANSFORMER)))
    made = partial.replace(work / ADAPTER.name)
    if install:
        staged = ADAPTER.with_suffix(".new")
        shutil.copy(made, staged)
        staged.replace(ADAPTER)
        recorded = json.loads(MANIFEST.read_text("utf-8"))
        recorded["adapter"] = adapter_record(ADAPTER)
        MANIFEST.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--install", action="store_true", help="put it in its place in the package")
    arguments = parser.parse_args()
    os.nice(10)
    make(arguments.work, arguments.install)
