"""Servers that turn texts into vectors: Ollama, and those of OpenAI's API.

    Ollama   POST …/api/embed        {"model", "input": […]}  →  {"embeddings": [[…], …]}
    OpenAI   POST …/v1/embeddings    {"model", "input": […]}  →  {"data": [{"index", "embedding": […]}, …]}

(docs.ollama.com/api/embed; platform.openai.com/docs/api-reference/embeddings.)

The rule: what comes back is as many vectors as there were texts, all of one dimension, all finite and none
of them zero, or it is nothing. A redirect is not followed: the key and the texts are for the server that was
named.
"""

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec

from mcpzip.config.schema import Provider, SemanticConfig
from mcpzip.model.retry_after import retry_after
from mcpzip.search.packed_matrix import INT8
from mcpzip.search.remote.service import DOCUMENTS_DEADLINE, REFUSED_PAUSE, Clock, Service, Unavailable
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    import httpx

Vector = Sequence[float]

BATCH = 64
"""Texts a request has."""

_CONNECT = 5.0
"""Seconds."""


class Embedder(Protocol):
    """What turns texts into vectors. method: what it is called. identity: says which vectors are comparable.

    service: whether it may be asked. batch: the most texts it takes at once.
    """

    method: str
    identity: str
    service: Service
    batch: int

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        """The vectors of ``texts``, in their order. Raises Unavailable."""

    async def wake(self) -> None:
        """Do what makes the next query quick, and take the time. Raises Unavailable."""

    async def aclose(self) -> None:
        """Let go of what it holds."""


@dataclass(frozen=True, slots=True)
class Api:
    """How one API is spoken. home: where it is if nobody says; model: which one if nobody says."""

    home: str
    model: str
    path: str


APIS: Mapping[Provider, Api] = {
    "ollama": Api("http://127.0.0.1:11434", "nomic-embed-text", "/api/embed"),
    "openai": Api("https://api.openai.com/v1", "text-embedding-3-small", "/v1/embeddings"),
}

PREFIXES: Mapping[str, tuple[str, str]] = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: ", ""),
}
"""What models were trained to read before a query and before a document (their model cards)."""

_KEEP = "30m"
"""How long Ollama is asked to keep the model loaded; its own 5 min end between two questions."""


class _Ollamas(msgspec.Struct):
    embeddings: list[list[float]]


class _Datum(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _OpenAis(msgspec.Struct):
    data: list[_Datum]


class EmbeddingServer:
    """One server and one model of it, as the config names them. See `Embedder`."""

    batch = BATCH

    def __init__(self, config: SemanticConfig, clock: Clock = time.monotonic) -> None:
        """``config.provider`` is "ollama" or "openai"."""
        api = APIS[config.provider]
        self.method: str = config.provider
        self.service = Service(clock)
        self.url = _address(config.url or api.home, api.path)
        self.model = config.model or api.model
        known = PREFIXES.get(self.model.rpartition("/")[2].partition(":")[0], ("", ""))
        self._prefixes = tuple(
            own if said is None else said
            for said, own in zip((config.query_prefix, config.document_prefix), known, strict=True)
        )
        self._deadline, self._dimensions = config.deadline, config.dimensions
        self._key = config.api_key.reveal() if config.api_key else ""
        self._client: httpx.AsyncClient | None = None
        parts = (self.method, self.url, self.model, str(self._dimensions), self._prefixes[1])
        self.identity = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        """See `Embedder`. A query has the config's deadline, tools have `DOCUMENTS_DEADLINE` a batch."""
        deadline = self._deadline if query else DOCUMENTS_DEADLINE
        prefix = self._prefixes[0 if query else 1]
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            batch = [prefix + text for text in texts[start : start + BATCH]]
            vectors += await self.service.ask(partial(self._post, batch), deadline)
        _check(vectors, len(texts))
        return vectors

    async def wake(self) -> None:
        """See `Embedder`: loads the model, which takes longer than a query may."""
        await self.service.ask(partial(self._post, ["."]), DOCUMENTS_DEADLINE, though_resting=True)

    async def aclose(self) -> None:
        """See `Embedder`."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, texts: list[str]) -> list[list[float]]:
        client = self._client or await self._open()
        import httpx  # which `_open` has done before, in a thread

        body: dict[str, object] = {"model": self.model, "input": texts}
        if self._dimensions:
            body["dimensions"] = self._dimensions
        if self.method == "ollama":
            body["keep_alive"] = _KEEP
        try:
            answer = await client.post(self.url, json=body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unavailable("it can't be reached: is it running?", passing=True) from error
        except httpx.TimeoutException as error:
            raise Unavailable("no answer in time", slow=True) from error
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError) as error:
            raise Unavailable("the address or the key can't be sent", rest=REFUSED_PAUSE) from error
        except httpx.TransportError as error:
            raise Unavailable("the connection broke off", passing=True) from error
        except httpx.HTTPError as error:
            raise Unavailable("it answered something that isn't embeddings") from error
        if answer.status_code != 200:
            raise self._refusal(answer.status_code, answer.headers.get("retry-after"))
        return self._vectors(answer.content, len(texts))

    async def _open(self) -> "httpx.AsyncClient":
        """The client. Importing httpx and reading the certificates take 0.1 s: in a thread."""

        def opened() -> "httpx.AsyncClient":
            import httpx

            return httpx.AsyncClient(
                headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
                timeout=httpx.Timeout(DOCUMENTS_DEADLINE, connect=_CONNECT),
                follow_redirects=False,
                verify=self.url.startswith("https:"),  # reading the certificates takes longer than a query
                trust_env=not _is_this_machine(self.url),  # no proxy stands between us and ourselves
            )

        try:
            client = await in_thread(opened, "embeddings")
        except (ValueError, UnicodeError) as error:
            raise Unavailable("the key can't be sent", rest=REFUSED_PAUSE) from error
        if self._client is not None:  # another question was quicker
            await client.aclose()
        else:
            self._client = client
        return self._client

    def _refusal(self, status: int, wait: str | None) -> Unavailable:
        seconds = retry_after(wait, time.time())
        if status in (401, 403):
            return Unavailable(f"the key is refused ({status})", rest=REFUSED_PAUSE)
        if status == 404:
            return Unavailable(
                f"there is no model {self.model!r}, or no such API, there (404)", rest=REFUSED_PAUSE
            )
        if status == 429:
            return Unavailable("over its limit (429)", passing=True, wait=seconds, rest=seconds or 0.0)
        if status >= 500:
            return Unavailable(f"it has an error ({status})", passing=True, wait=seconds, rest=seconds or 0.0)
        if status < 400:
            return Unavailable(f"it leads elsewhere ({status}), which is not followed", rest=REFUSED_PAUSE)
        return Unavailable(f"it refused the texts ({status})", refused=True)

    def _vectors(self, content: bytes, count: int) -> list[list[float]]:
        try:
            if self.method == "ollama":
                vectors = msgspec.json.decode(content, type=_Ollamas).embeddings
            else:
                data = msgspec.json.decode(content, type=_OpenAis).data
                if all(datum.index is not None for datum in data):
                    data.sort(key=lambda datum: datum.index or 0)
                vectors = [datum.embedding for datum in data]
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise Unavailable("it answered something that isn't embeddings") from error
        _check(vectors, count)
        return vectors


def _check(vectors: Sequence[Vector], count: int) -> None:
    """Raises Unavailable for what can't be the vectors of ``count`` texts."""
    if len(vectors) != count:
        raise Unavailable(f"it answered {len(vectors)} vectors to {count} texts")
    dimensions = {len(vector) for vector in vectors}
    if len(dimensions) > 1 or not dimensions <= set(range(1, INT8.max_dimension + 1)):
        raise Unavailable("it answered vectors of odd dimensions")
    if not all(math.isfinite(sum(vector)) and any(vector) for vector in vectors):
        raise Unavailable("it answered vectors that point nowhere")


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _address(url: str, path: str) -> str:
    """Where to post to: ``url`` itself when it is whole, else with what of ``path`` it lacks."""
    parts = urlsplit(url.strip())
    base = parts.path.rstrip("/")
    first, last = path.rsplit("/", 1)
    if base.endswith("/api/embeddings"):  # Ollama's older endpoint, one text at a time
        base = base.removesuffix("dings")
    if not base.endswith(f"/{last}"):
        base += f"/{last}" if base.endswith(first) else path
    return urlunsplit((parts.scheme.lower(), parts.netloc, base, parts.query, ""))
