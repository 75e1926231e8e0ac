"""A fake embedding server: Ollama's ``/api/embed`` and OpenAI's ``/v1/embeddings``.

    with FakeEmbeddings(dimensions=32) as server:
        ...  # "semantic": server.url + "/api", or server.url
        assert server.texts[0] == "search_query: send a message"

The rule: the same text has the same vector in every run, and texts that share words are near: a vector counts
the words and the beginnings of words of its text, at indexes given by a hash (K. Weinberger et al., "Feature
Hashing for Large Scale Multitask Learning", ICML 2009).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import ClassVar

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.endpoint import KINDS, Endpoint, EndpointFault, FaultLike, Reply, Seen

DIMENSIONS = 64
_WORD = re.compile(r"[^\W_]+")
_STEM = 4  # letters of a word that count by themselves: "messages" is near "message"


class FakeEmbeddings(Endpoint):
    """key: the bearer token that it accepts; any if empty. models: the existing ones; any if empty.

    dimensions: of its vectors, unless a request sets them; can be set at any time.
    """

    name: ClassVar[str] = "embeddings"
    kinds: ClassVar[Mapping[str, str]] = {
        **KINDS,
        "dimensions": "answers vectors of `dimensions` (8)",
        "count": "answers a vector too few",
        "uneven": "answers vectors of different dimensions",
        "nan": "answers a vector with NaN in it, which is no JSON",
        "infinite": "answers a vector with 1e999 in it",
        "zero": "answers vectors of zeros",
        "too-long": "refuses texts of more than 200 characters (400)",
    }

    def __init__(
        self,
        *,
        key: str = "",
        models: Sequence[str] = (),
        dimensions: int = DIMENSIONS,
        faults: Iterable[FaultLike] = (),
        record: str | None = None,
        port: int = 0,
    ) -> None:
        self.key, self.models, self.dimensions = key, tuple(models), dimensions
        super().__init__(faults, record=record, port=port)

    @property
    def texts(self) -> list[str]:
        """Every text it was asked to embed, in order."""
        return [text for seen in self.requests for text in _texts(seen.body)]

    def answer(self, seen: Seen, fault: EndpointFault | None) -> Reply:
        """See `Endpoint`."""
        path = seen.path.partition("?")[0].removeprefix("/elsewhere")
        ollama = path == "/api/embed"
        if not ollama and not path.endswith("/embeddings"):
            return Reply(404, b"404 page not found")
        if self.key and seen.headers.get("authorization") != f"Bearer {self.key}":
            return _error(ollama, 401, "Incorrect API key provided.", "invalid_api_key")
        model = str(seen.body.get("model"))
        if self.models and model.partition(":")[0] not in self.models:
            return _error(ollama, 404, f'model "{model}" not found, try pulling it first', "model_not_found")
        texts = _texts(seen.body)
        kind = fault.kind if fault else ""
        if kind == "too-long" and max(map(len, texts), default=0) > 200:
            return _error(ollama, 400, "the input length exceeds the context length", "context_length")
        asked = seen.body.get("dimensions")
        size = asked if isinstance(asked, int) else self.dimensions
        if kind == "dimensions" and fault:
            size = fault.dimensions
        vectors = _spoilt([vector(text, size) for text in texts], kind)
        reply = _ollamas(model, vectors) if ollama else _openais(model, vectors)
        if kind == "infinite":
            return Reply(200, reply.content().replace(b"Infinity", b"1e999"))
        return reply

    def failure(self, seen: Seen, fault: EndpointFault) -> Reply:
        """See `Endpoint`."""
        return _error("/api/" in seen.path, fault.status, f"status {fault.status}", "server_error")


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The vector of ``text``: of length 1, and never zero."""
    found = [0.0] * dimensions
    for word in _WORD.findall(text.lower()) or [""]:
        for piece in {word, word[:_STEM]}:
            digest = int.from_bytes(blake2b(piece.encode(), digest_size=8).digest(), "big")
            found[digest % dimensions] += 1.0 if digest >> 63 else -1.0
    if not any(found):
        found[0] = 1.0
    length = math.hypot(*found)
    return [number / length for number in found]


def _ollamas(model: str, vectors: list[list[float]]) -> Reply:
    counted = {"total_duration": 1, "load_duration": 1, "prompt_eval_count": len(vectors)}
    return Reply(200, {"model": model, "embeddings": vectors, **counted})


def _openais(model: str, vectors: list[list[float]]) -> Reply:
    data = [{"object": "embedding", "index": at, "embedding": each} for at, each in enumerate(vectors)]
    usage = {"prompt_tokens": len(vectors), "total_tokens": len(vectors)}
    # In reverse order, because clients must use the index.
    return Reply(200, {"object": "list", "data": data[::-1], "model": model, "usage": usage})


def _spoilt(vectors: list[list[float]], kind: str) -> list[list[float]]:
    match kind:
        case "count":
            return vectors[:-1]
        case "uneven":
            return [each[: len(each) - at] for at, each in enumerate(vectors, 1)]
        case "nan":
            return [[math.nan, *each[1:]] for each in vectors]
        case "infinite":
            return [[math.inf, *each[1:]] for each in vectors]
        case "zero":
            return [[0.0] * len(each) for each in vectors]
    return vectors


def _texts(body: JsonObject) -> list[str]:
    told = body.get("input")
    return [each for each in told if isinstance(each, str)] if isinstance(told, list) else [str(told or "")]


def _error(ollama: bool, status: int, message: str, code: str) -> Reply:
    if ollama:
        return Reply(status, {"error": message})
    return Reply(status, {"error": {"message": message, "type": "invalid_request_error", "code": code}})
