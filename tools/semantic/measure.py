"""How well vectors find the tool of a request.

Input: anything that makes unit vectors of texts. Output: for the requests of held-out servers the share
whose tool is first (R@1) or among the first five (R@5) of all held-out tools; and apart, by the kinds of
requests (`pairs`).
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mcpzip.search.fields import first_sentence
from tools.semantic.pairs import Tool
from tools.semantic.settings import Weights
from tools.semantic.texts import cut, name_words

Embed = Callable[[list[str]], np.ndarray]
KINDS = ("far", "far", "far", "far", "step", "detail", "contrast", "plain")


def unit(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)


def tool_texts(tools: Sequence[Tool]) -> Mapping[str, list[str]]:
    """The texts of tools by the field of `Weights`."""
    names = [name_words(t.name) for t in tools]
    servers = [name_words(t.server) for t in tools]
    descriptions = [cut(first_sentence(t.description), 40) for t in tools]
    return {
        "name": names,
        "server": servers,
        "description": descriptions,
    }


def tool_vectors(tools: Sequence[Tool], embed: Embed, weights: Weights) -> np.ndarray:
    texts = tool_texts(tools)
    total: np.ndarray = np.float32(0)  # type: ignore[assignment]
    for field, listed in texts.items():
        weight = getattr(weights, field)
        if weight:
            total = total + weight * embed(listed)
    return unit(total)


def ranks(tools: Sequence[Tool], similarity: np.ndarray) -> list[tuple[str, int]]:
    """The kind of each request and how many tools stand before its own. similarity: (requests, tools)."""
    found: list[tuple[str, int]] = []
    row = 0
    for own, tool in enumerate(tools):
        for place in range(len(tool.requests)):
            scores = similarity[row]
            found.append((KINDS[min(place, 7)], int((scores > scores[own]).sum())))
            row += 1
    return found


def summary(found: Sequence[tuple[str, int]]) -> dict[str, tuple[float, float]]:
    """R@1 and R@5 in per cent: of all, and of each kind."""
    result: dict[str, tuple[float, float]] = {}
    for kind in ("all", *dict.fromkeys(KINDS)):
        places = np.array([rank for k, rank in found if kind in ("all", k)] or [math.inf])
        result[kind] = (100 * float((places < 1).mean()), 100 * float((places < 5).mean()))
    return result


def measure(
    tools: Sequence[Tool], embed: Embed, ask: Embed, weights: Weights
) -> dict[str, tuple[float, float]]:
    """`summary`. embed: of the texts of tools. ask: of requests."""
    requests = ask([r for t in tools for r in t.requests])
    return summary(ranks(tools, requests @ tool_vectors(tools, embed, weights).T))


def line(found: Mapping[str, tuple[float, float]]) -> str:
    return "  ".join(f"{kind} {one:.1f}/{five:.1f}" for kind, (one, five) in found.items())
