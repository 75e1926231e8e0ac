"""A map of the teacher's vectors, 384 dimensions to fewer, in which requests lie near their tools.

Input: `DIR/corpus/*.txt` and `DIR/pairs/*.txt` with their vectors.
Output: `DIR/adapt.npz`: `A` (384, dimension), `U` (384, hidden) and `W` (hidden, dimension) with their bias
`b`; a vector x becomes the unit vector of `x A + relu(x U + b) W`. Without a hidden layer U, W and b have
no columns.

Begun from the principal components of the corpus. Two losses: InfoNCE both ways between requests and tools
in batches of whole servers, so that siblings are the hard negatives; and the corpus must keep its cosines
(a batch's matrix of them, before and after). Stopped at the epoch that is best for the held-out servers
(R@5 of all requests).
"""

import argparse
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tools.semantic.measure import line, ranks, summary
from tools.semantic.pairs import Tool, held_out, read
from tools.semantic.settings import ADAPT, Adapt, Weights
from tools.semantic.teach import DIMENSION, load

FIELDS = ("name", "server", "description")


class Adapter(nn.Module):
    def __init__(self, start: np.ndarray, hidden: int) -> None:
        super().__init__()
        self.direct = nn.Parameter(torch.from_numpy(start.copy()))
        self.into = nn.Parameter(torch.randn(DIMENSION, hidden) * 0.05)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.out = nn.Parameter(torch.zeros(hidden, start.shape[1]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x @ self.direct
        if self.bias.numel():
            y = y + functional.relu(x @ self.into + self.bias) @ self.out
        return functional.normalize(y, dim=-1)


def principal(vectors: np.ndarray, dimension: int) -> np.ndarray:
    """(384, dimension): the directions of the largest second moments, their signs fixed."""
    _, directions = np.linalg.eigh(vectors.T @ vectors / len(vectors))
    chosen = directions[:, ::-1][:, :dimension]
    return (chosen * np.sign(chosen[np.abs(chosen).argmax(0), np.arange(dimension)])).astype(np.float32)


def corpus_vectors(work: Path, most: int | None = None, seed: int = 0) -> np.ndarray:
    """The vectors of the corpus; at most `most`, drawn."""
    found = np.concatenate(
        [load(t, work / "vectors" / (t.stem + ".f16"))[1] for t in sorted((work / "corpus").glob("*.txt"))]
    )
    if most is not None and len(found) > most:
        found = found[np.sort(np.random.default_rng(seed).choice(len(found), most, replace=False))]
    return found.astype(np.float32)


@dataclass(frozen=True, slots=True)
class Taught:
    """Tools, and the teacher's vectors of their fields and of their requests."""

    tools: list[Tool]
    fields: dict[str, np.ndarray]
    requests: np.ndarray

    def of(self, chosen: list[int]) -> "Taught":
        starts = np.cumsum([0] + [len(t.requests) for t in self.tools])
        rows = [r for i in chosen for r in range(starts[i], starts[i + 1])]
        return Taught(
            [self.tools[i] for i in chosen],
            {k: v[chosen] for k, v in self.fields.items()},
            self.requests[rows],
        )


def taught(work: Path) -> Taught:
    """Raises `ValueError` if the teacher has not read them all."""
    tools = read(work / "pairs")
    stems = [file.stem for file in sorted((work / "pairs").glob("*.tsv"))]
    vectors = {
        field: np.concatenate([_vectors(work, f"{stem}.{field}") for stem in stems]).astype(np.float32)
        for field in (*FIELDS, "requests")
    }
    if len(vectors["name"]) != len(tools) or len(vectors["requests"]) != sum(len(t.requests) for t in tools):
        raise ValueError("The teacher has not read all requests; run tools.semantic.teach again.")
    return Taught(tools, {f: vectors[f] for f in FIELDS}, vectors["requests"])


def _vectors(work: Path, stem: str) -> np.ndarray:
    return load(work / "pairs" / f"{stem}.txt", work / "vectors-pairs" / f"{stem}.f16")[1]


def split(all_tools: Taught) -> tuple[Taught, Taught]:
    """Learnt from, held out."""
    out = [held_out(t.server) for t in all_tools.tools]
    return all_tools.of([i for i, h in enumerate(out) if not h]), all_tools.of(
        [i for i, h in enumerate(out) if h]
    )


def portion(all_tools: Taught, share: float) -> Taught:
    """The tools of this share of the servers, chosen by a checksum of their names; a smaller share is a part
    of a larger one."""
    chosen = [zlib.crc32(f"portion {t.server}".encode()) % 10_000 < share * 10_000 for t in all_tools.tools]
    return all_tools if share >= 1 else all_tools.of([i for i, wanted in enumerate(chosen) if wanted])


def batches(tools: list[Tool], size: int, generator: np.random.Generator) -> list[list[int]]:
    """The tools in batches of whole servers, in an order drawn."""
    servers: dict[str, list[int]] = {}
    for i, tool in enumerate(tools):
        servers.setdefault(tool.server, []).append(i)
    order = list(servers)
    generator.shuffle(order)
    result: list[list[int]] = [[]]
    for server in order:
        if len(result[-1]) >= size:
            result.append([])
        result[-1] += servers[server]
    return result


def both_ways(requests: torch.Tensor, tools: torch.Tensor, temperature: float) -> torch.Tensor:
    """InfoNCE of row i with row i, requests to tools and tools to requests."""
    logits = requests @ tools.T / temperature
    own = torch.arange(len(logits))
    return (functional.cross_entropy(logits, own) + functional.cross_entropy(logits.T, own)) / 2


def kept(mapped: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """How far a map changes the cosines of unit vectors: the mean square."""
    return functional.mse_loss(mapped @ mapped.T, vectors @ vectors.T)


def evaluate(adapter: Adapter, held: Taught, weights: Weights) -> dict[str, tuple[float, float]]:
    with torch.no_grad():
        tools = sum(
            getattr(weights, f) * adapter(torch.from_numpy(held.fields[f]))
            for f in FIELDS
            if getattr(weights, f)
        )
        similarity = adapter(torch.from_numpy(held.requests)) @ functional.normalize(tools, dim=1).T
    return summary(ranks(held.tools, similarity.numpy()))


def adapt(
    work: Path, settings: Adapt, report: bool = True, share: float = 1.0
) -> tuple[Adapter, dict[str, tuple[float, float]]]:
    """The map that is best for the held-out servers, and its figures. share: see `portion`."""
    torch.manual_seed(settings.seed)
    generator = np.random.default_rng(settings.seed)
    corpus = corpus_vectors(work, 60_000)
    learnt, held = split(taught(work))
    learnt = portion(learnt, share)
    adapter = Adapter(principal(corpus, settings.dimension), settings.hidden)
    best, best_state = (
        evaluate(adapter, held, settings.weights),
        {k: v.clone() for k, v in adapter.state_dict().items()},
    )
    if report:
        print("before", line(best), flush=True)
    optimiser = torch.optim.Adam(adapter.parameters(), lr=settings.rate)
    fields = {f: torch.from_numpy(v) for f, v in learnt.fields.items()}
    requests, everything = torch.from_numpy(learnt.requests), torch.from_numpy(corpus)
    starts = np.cumsum([0] + [len(t.requests) for t in learnt.tools])
    for epoch in range(settings.epochs):
        for _ in range(6):
            for batch in batches(learnt.tools, settings.batch, generator):
                asked = torch.tensor([int(generator.integers(starts[i], starts[i + 1])) for i in batch])
                tools = sum(
                    getattr(settings.weights, f) * adapter(fields[f][batch])
                    for f in FIELDS
                    if getattr(settings.weights, f)
                )
                loss = both_ways(
                    adapter(requests[asked]), functional.normalize(tools, dim=1), settings.temperature
                )
                some = everything[torch.from_numpy(generator.integers(0, len(everything), 512))]
                loss = loss + settings.keep * kept(adapter(some), some)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
        found = evaluate(adapter, held, settings.weights)
        if report:
            print(epoch, f"loss {loss.item():.3f}", line(found), flush=True)
        if found["all"][1] > best["all"][1]:
            best, best_state = found, {k: v.clone() for k, v in adapter.state_dict().items()}

    adapter.load_state_dict(best_state)
    return adapter, best


def save(adapter: Adapter, target: Path) -> None:
    state = {k: v.numpy() for k, v in adapter.state_dict().items()}
    np.savez(target, A=state["direct"], U=state["into"], b=state["bias"], W=state["out"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    arguments = parser.parse_args()
    save(adapt(arguments.work, ADAPT)[0], arguments.work / "adapt.npz")
