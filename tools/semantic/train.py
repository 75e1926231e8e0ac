"""The static table: rows whose sum points where the adapted teacher's vector of the text points; and the
layer that the sums of queries pass (`table.Layer`).

Input: `DIR/corpus/*.txt` and `DIR/pairs/*.txt` with their vectors, `DIR/adapt.npz`.
Output: `DIR/words.bin` in the form of `table`.

Rows begin as weighted means of the targets of the texts that they are in, the layer as one that changes
nothing. Two losses, Adam: one minus the cosine to the target, over the corpus and the texts of the pairs;
InfoNCE both ways between requests, which pass the layer, and tools, in batches of whole servers. Rows are
dropped at random, and words of requests and fields of tools too, so that a pair is not learnt by heart. With
`hold` the held-out servers are left out and measured; the table that ships learns from all.
"""

import argparse
import re
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tools.semantic.adapt import Adapter, batches, both_ways, portion, split, taught
from tools.semantic.measure import line, measure, tool_texts
from tools.semantic.pairs import Tool
from tools.semantic.settings import TRAIN, Train
from tools.semantic.table import Layer, Reader, Table, pack, quantise, unpack
from tools.semantic.teach import load, tokenizer_json
from tools.semantic.vocabulary import choose

# A text of the corpus that is a name and what it means.
_NAMED = re.compile(r"([a-z0-9 ,'-]{3,60})(?:\. |: )(.{12,})$")


class Bags:
    """Texts as rows, flat."""

    def __init__(self, texts: list[str], reader: Reader) -> None:
        listed = [reader.rows(t, 96) for t in texts]
        self.flat = torch.tensor([r for rows in listed for r in rows], dtype=torch.long)
        self.starts = torch.tensor(np.cumsum([0] + [len(rows) for rows in listed]), dtype=torch.long)

    def take(self, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the chosen texts, and how many each has."""
        sizes = self.starts[chosen + 1] - self.starts[chosen]
        begins = torch.cumsum(sizes, 0) - sizes
        places = torch.arange(int(sizes.sum())) - torch.repeat_interleave(begins - self.starts[chosen], sizes)
        return self.flat[places], sizes


def targets(vectors: np.ndarray, adapter: Adapter) -> torch.Tensor:
    with torch.no_grad():
        parts = [
            adapter(torch.from_numpy(vectors[i : i + 20_000].astype(np.float32)))
            for i in range(0, len(vectors), 20_000)
        ]
    return torch.cat(parts)


def begin(bags: Bags, goal: torch.Tensor, rows: int, pairs: int) -> torch.Tensor:
    """(rows, dimension): the mean target of the texts with a row, less the mean of all; of pairs a tenth."""
    total, count = torch.zeros(rows, goal.shape[1]), torch.zeros(rows)
    owner = torch.repeat_interleave(torch.arange(len(goal)), bags.starts[1:] - bags.starts[:-1])
    for i in range(0, len(bags.flat), 400_000):
        part = bags.flat[i : i + 400_000]
        total.index_add_(0, part, goal[owner[i : i + 400_000]])
        count.index_add_(0, part, torch.ones(len(part)))
    mean = total.sum(0) / count.sum()
    start = total / (count[:, None] + 3) - mean * (count / (count + 3))[:, None]
    start[rows - pairs :] *= 0.1
    return start


def rounded(rows: torch.Tensor, edge: float) -> torch.Tensor:
    """The rows as the file will hold them: 15 steps from −edge to edge."""
    return (rows.detach() / edge * 7).round_().clamp_(-7, 7).mul_(edge / 7)


class Learner:
    """The table while it learns."""

    def __init__(
        self,
        texts: list[str],
        goal: torch.Tensor,
        vocabulary: list[str],
        tools: list[Tool],
        settings: Train,
        seed: int,
    ) -> None:
        torch.manual_seed(seed)
        self.settings, self.seed = settings, seed
        self.vocabulary = vocabulary
        self.edge: float | None = None
        reader = Reader({entry: i for i, entry in enumerate(vocabulary)})
        self.goal = goal
        self.bags = Bags(texts, reader)
        self.tools = tools
        self.fields = {
            f: Bags(t, reader) for f, t in tool_texts(tools).items() if getattr(settings.weights, f)
        }
        self.requests = Bags([r for t in tools for r in t.requests], reader)
        named = [found.groups() for t in texts if (found := _NAMED.match(t))]
        self.names = Bags([n for n, _ in named], reader)
        self.meanings = Bags([m for _, m in named], reader)
        self.first = np.cumsum([0] + [len(t.requests) for t in tools])
        self.rows = nn.EmbeddingBag(len(vocabulary), goal.shape[1], mode="sum")
        # The same for all tables, so that units mean the same in each and their mean is a layer.
        drawn = torch.randn(
            goal.shape[1], settings.layer, generator=torch.Generator().manual_seed(settings.seed)
        )
        self.into = nn.Parameter(drawn / goal.shape[1] ** 0.5)
        self.bias = nn.Parameter(torch.zeros(settings.layer))
        self.out = nn.Parameter(torch.zeros(settings.layer, goal.shape[1]))
        pairs = sum(" " in entry for entry in vocabulary)
        with torch.no_grad():
            self.rows.weight.copy_(begin(self.bags, goal, len(vocabulary), pairs))

    def vectors(self, parts: list[tuple[Bags, torch.Tensor, float]]) -> list[torch.Tensor]:
        """Unit vectors of texts of several kinds, in one look-up; last in a part: share of rows dropped."""
        taken = [(*bags.take(chosen), drop) for bags, chosen, drop in parts]
        kept = torch.cat([torch.rand(len(rows)) >= drop for rows, _, drop in taken])
        sizes = torch.cat([sizes for _, sizes, _ in taken])
        ends = torch.cumsum(functional.pad(kept, (1, 0)).long(), 0)[
            functional.pad(torch.cumsum(sizes, 0), (1, 0))
        ]
        table = (
            self.rows.weight
            if self.edge is None
            else self.rows.weight + (rounded(self.rows.weight, self.edge) - self.rows.weight).detach()
        )
        found = functional.embedding_bag(
            torch.cat([rows for rows, _, _ in taken])[kept], table, ends[:-1], mode="sum"
        )
        return list(functional.normalize(found, dim=1, eps=1e-6).split([len(sizes) for _, sizes, _ in taken]))

    def asked(self, requests: torch.Tensor) -> torch.Tensor:
        """The unit vectors of requests. requests: those of their rows."""
        inner = functional.relu(requests @ self.into + self.bias)
        return functional.normalize(requests + inner @ self.out, dim=1, eps=1e-6)

    def loss(
        self, chosen: torch.Tensor, batch: list[int], generator: np.random.Generator
    ) -> tuple[torch.Tensor, float]:
        """Of texts of the corpus and of a batch of tools; and the first part alone."""
        settings = self.settings
        owners = torch.tensor(batch, dtype=torch.long)
        asked = torch.tensor(
            [int(generator.integers(self.first[i], self.first[i + 1])) for i in batch], dtype=torch.long
        )
        named = torch.randint(
            0, len(self.names.starts) - 1, (settings.named_batch if settings.named_weight else 0,)
        )
        parts = [(self.bags, chosen, settings.drop), (self.requests, asked, settings.pairs_drop)]
        parts += [(bags, owners, settings.pairs_drop) for bags in self.fields.values()]
        if settings.named_weight:
            parts += [(self.names, named, settings.drop), (self.meanings, named, settings.drop)]
        corpus, requests, *fields = self.vectors(parts if batch else parts[:1]) + (
            [] if batch else [torch.empty(0)]
        )
        likeness = (1 - (corpus * self.goal[chosen]).sum(1)).mean()
        if not batch:
            return likeness, likeness.item()
        extra = torch.zeros(())
        if settings.named_weight:
            *fields, left, right = fields
            extra = settings.named_weight * both_ways(left, right, settings.named_temperature)
        tools = torch.zeros_like(requests)
        for name, field_vectors in zip(self.fields, fields, strict=True):
            shown = (torch.rand(len(batch), 1) >= settings.hidden[name]).float()
            tools = tools + getattr(settings.weights, name) * shown * field_vectors
        tools = functional.normalize(tools, dim=1, eps=1e-6)
        pairs = both_ways(self.asked(requests), tools, settings.temperature)
        return likeness + settings.pairs_weight * pairs + extra, likeness.item()

    def learn(self, held: list[Tool]) -> None:
        """All epochs; the rate falls to nothing."""
        settings = self.settings
        learnt = [self.rows.weight, self.into, self.bias, self.out]
        optimiser = torch.optim.Adam(learnt, lr=settings.rate, betas=(0.9, 0.99), fused=True)
        generator = np.random.default_rng(self.seed)
        usable = torch.nonzero(self.bags.starts[1:] > self.bags.starts[:-1]).flatten()
        steps, step, waiting = len(usable) // settings.batch * settings.epochs, 0, []
        started = time.monotonic()
        for epoch in range(settings.epochs):
            if epoch >= settings.epochs - settings.rounded_epochs and self.edge is None:
                self.edge = float(
                    np.percentile(np.abs(self.rows.weight.detach().numpy()), settings.percentile)
                )
            order = usable[torch.randperm(len(usable))]
            losses = []
            for i in range(0, len(order) - settings.batch + 1, settings.batch):
                chosen = order[i : i + settings.batch]
                if settings.pairs_weight:
                    waiting = waiting or batches(self.tools, settings.pairs_batch, generator)
                loss, likeness = self.loss(chosen, waiting.pop() if waiting else [], generator)
                losses.append(likeness)
                for group in optimiser.param_groups:
                    group["lr"] = settings.rate * min(1, (step + 1) / 50) * (1 - step / steps) + 1e-5
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
                step += 1
            print(
                f"epoch {epoch}: cosine {1 - np.mean(losses):.4f}, {time.monotonic() - started:.0f} s",
                self.figures(held),
                flush=True,
            )

    def figures(self, held: list[Tool]) -> str:
        if not held:
            return ""
        rows = self.rows.weight.detach()
        seen = (rows if self.edge is None else rounded(rows, self.edge)).numpy()
        table = Table(self.vocabulary, seen, Layer(*self.learnt()[1:]))
        return line(measure(held, table.vectors, table.queries, self.settings.weights))

    def learnt(self) -> list[np.ndarray]:
        """The rows, (rows, dimension), and the parts of the layer."""
        parts = (self.rows.weight, self.into, self.bias, self.out)
        return [part.detach().numpy().astype(np.float64) for part in parts]


def read_adapter(source: Path) -> Adapter:
    saved = np.load(source)
    adapter = Adapter(saved["A"], saved["b"].size)
    with torch.no_grad():
        for name, key in (("into", "U"), ("bias", "b"), ("out", "W")):
            getattr(adapter, name).copy_(torch.from_numpy(saved[key]))
    return adapter


def train(work: Path, settings: Train, hold: bool, share: float = 1.0) -> tuple[bytes, list[Tool]]:
    """The file's bytes, and the tools that were held out. share: see `adapt.portion`."""
    texts: list[str] = []
    parts: list[np.ndarray] = []
    for source in sorted((work / "corpus").glob("*.txt")):
        lines, vectors = load(source, work / "vectors" / f"{source.stem}.f16")
        texts += lines
        parts.append(vectors)
    counts = [1] * len(texts)
    learnt, held = split(taught(work)) if hold else (taught(work), None)
    learnt = portion(learnt, share)
    own = tool_texts(learnt.tools)
    for name, vectors in (
        ("description", learnt.fields["description"]),
        ("name", learnt.fields["name"]),
        ("requests", learnt.requests),
    ):
        lines = [r for t in learnt.tools for r in t.requests] if name == "requests" else own[name]
        texts += lines
        counts += [settings.pairs_count] * len(lines)
        parts.append(vectors)
    goal = targets(np.concatenate(parts), read_adapter(work / "adapt.npz"))
    vocabulary = choose(texts, counts, tokenizer_json(work / "packages"), settings.sizes)
    print(
        f"{len(texts)} texts, {len(vocabulary)} rows, {sum(' ' in v for v in vocabulary)} of them pairs",
        flush=True,
    )
    # All begin with the same rows and have the same goal, so that the mean of several is a table too, and a
    # better one: what one has by chance the others don't (M. Wortsman et al., "Model soups", ICML 2022).
    mean: list[np.ndarray] = []
    for seed in range(settings.seed, settings.seed + settings.tables):
        learner = Learner(texts, goal, vocabulary, learnt.tools, settings, seed)
        learner.learn(held.tools if held else [])
        parts = [part / settings.tables for part in learner.learnt()]
        mean = [whole + part for whole, part in zip(mean, parts, strict=True)] if mean else parts
    rows, *layer = mean
    edge = float(np.percentile(np.abs(rows), settings.percentile))
    return pack(vocabulary, quantise(rows, edge), Layer(*layer)), held.tools if held else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--hold", action="store_true", help="leave the held-out servers out and measure them")
    arguments = parser.parse_args()
    raw, held_tools = train(arguments.work, TRAIN, arguments.hold)
    if held_tools:
        table = Table(*unpack(raw))
        print("quantised", line(measure(held_tools, table.vectors, table.queries, TRAIN.weights)))
    partial = arguments.work / "words.partial"
    partial.write_bytes(raw)
    partial.replace(arguments.work / ("words-held.bin" if arguments.hold else "words.bin"))
    print(len(raw), "bytes")
