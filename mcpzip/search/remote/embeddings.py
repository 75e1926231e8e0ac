"""Embedding servers: Ollama, and servers with OpenAI's API.

    Ollama   POST …/api/embed        {"model", "input": […]}  →  {"embeddings": [[…], …]}
    OpenAI   POST …/v1/embeddings    {"model", "input": […]}  →  {"data": [{"index", "embedding": […]}, …]}

(docs.ollama.com/api/embed; platform.openai.com/docs/api-reference/embeddings.)

The rule: a response is used only if it has as many vectors as there were texts, all of one dimension, finite
and not zero. Redirects are not followed, because the key and the texts are for the configured server only.
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
from mcpzip.search.remote.service import (
    DOCUMENTS_DEADLINE,
    REFUSED_PAUSE,
    Clock,
    Service,
    Unavailable,
    overloaded,
)
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    import httpx

Vector = Sequence[float]

BATCH = 64
"""Texts per request."""

_CONNECT_TIMEOUT = 5.0
"""Seconds."""


class Embedder(Protocol):
    """Computes embeddings. method: its name for users. identity: embedders with equal ones have comparable
    vectors. service: its circuit breaker. batch: the most texts of a call. brief: whether a tool is one
    short text for it (`semantic_tier.brief_texts`), because it has learned from such texts.
    """

    method: str
    identity: str
    service: Service
    batch: int
    brief: bool

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        """The vectors of ``texts``, in their order. Raises Unavailable."""

    async def warm_up(self) -> None:
        """Load the model, so that the next query is answered in time. May be slow. Raises Unavailable."""

    async def aclose(self) -> None:
        """Close connections and free the model."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API's default URL, default model, and path."""

    url: str
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
"""The prefixes of queries and of documents that models were trained with (their model cards)."""

_KEEP_ALIVE = "30m"
"""How long Ollama keeps the model loaded after a request. Its default of 5 minutes is too short."""


class _OllamaResponse(msgspec.Struct):
    embeddings: list[list[float]]


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _OpenAiResponse(msgspec.Struct):
    data: list[_Embedding]


class EmbeddingServer:
    """A model of an embedding server, as configured. See `Embedder`."""

    batch = BATCH
    brief = False

    def __init__(self, config: SemanticConfig, clock: Clock = time.monotonic) -> None:
        """``config.provider`` is "ollama" or "openai"."""
        api = APIS[config.provider]
        self.method: str = config.provider
        self.service = Service(clock)
        self.url = _endpoint(config.url or api.url, api.path)
        self.model = config.model or api.model
        defaults = PREFIXES.get(self.model.rpartition("/")[2].partition(":")[0], ("", ""))
        self._prefixes = tuple(
            default if configured is None else configured
            for configured, default in zip(
                (config.query_prefix, config.document_prefix), defaults, strict=True
            )
        )
        self._deadline, self._dimensions = config.deadline, config.dimensions
        self._key = config.api_key.reveal() if config.api_key else ""
        self._client: httpx.AsyncClient | None = None
        parts = (self.method, self.url, self.model, str(self._dimensions), self._prefixes[1])
        self.identity = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        """See `Embedder`. The deadline of tools is `DOCUMENTS_DEADLINE` a batch, of a query the config's."""
        deadline = self._deadline if query else DOCUMENTS_DEADLINE
        prefix = self._prefixes[0 if query else 1]
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            batch = [prefix + text for text in texts[start : start + BATCH]]
            vectors += await self.service.ask(partial(self._post, batch), deadline)
        _check(vectors, len(texts))
        return vectors

    async def warm_up(self) -> None:
        """See `Embedder`."""
        await self.service.ask(partial(self._post, ["."]), DOCUMENTS_DEADLINE, though_paused=True)

    async def aclose(self) -> None:
        """See `Embedder`."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, texts: list[str]) -> list[list[float]]:
        client = self._client or await self._open()
        import httpx  # already imported by `_open`, in a thread

        body: dict[str, object] = {"model": self.model, "input": texts}
        if self._dimensions:
            body["dimensions"] = self._dimensions
        if self.method == "ollama":
            body["keep_alive"] = _KEEP_ALIVE
        try:
            response = await client.post(self.url, json=body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unavailable("it can't be reached: is it running?", transient=True) from error
        except httpx.TimeoutException as error:
            raise Unavailable("no answer in time", timed_out=True) from error
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError) as error:
            raise Unavailable("the address or the key can't be sent", pause=REFUSED_PAUSE) from error
        except httpx.TransportError as error:
            raise Unavailable("the connection was closed", transient=True) from error
        except httpx.HTTPError as error:
            raise Unavailable("its response has no embeddings") from error
        if response.status_code != 200:
            raise self._failure(response.status_code, response.headers.get("retry-after"))
        return self._decode(response.content, len(texts))

    async def _open(self) -> "httpx.AsyncClient":
        """The HTTP client. Opened in a thread: importing httpx and reading certificates take 0.1 s."""

        def opened() -> "httpx.AsyncClient":
            import httpx

            return httpx.AsyncClient(
                headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
                timeout=httpx.Timeout(DOCUMENTS_DEADLINE, connect=_CONNECT_TIMEOUT),
                follow_redirects=False,
                verify=self.url.startswith("https:"),  # reading the certificates takes longer than a query
                trust_env=not _is_loopback(self.url),  # no proxy for this machine
            )

        try:
            client = await in_thread(opened, "embeddings")
        except (ValueError, UnicodeError) as error:
            raise Unavailable("the key can't be sent", pause=REFUSED_PAUSE) from error
        if self._client is not None:  # opened by another request meanwhile
            await client.aclose()
        else:
            self._client = client
        return self._client

    def _failure(self, status: int, retry_after_header: str | None) -> Unavailable:
        if status in (401, 403):
            return Unavailable(f"the key is refused ({status})", pause=REFUSED_PAUSE)
        if status == 404:
            return Unavailable(f"there is no model {self.model!r}, or no such API (404)", pause=REFUSED_PAUSE)
        if status == 429 or status >= 500:
            return overloaded(status, retry_after(retry_after_header, time.time()))
        if status < 400:
            return Unavailable(f"it redirects ({status}), which is not followed", pause=REFUSED_PAUSE)
        return Unavailable(f"it refused the texts ({status})", bad_request=True)

    def _decode(self, content: bytes, count: int) -> list[list[float]]:
        try:
            if self.method == "ollama":
                vectors = msgspec.json.decode(content, type=_OllamaResponse).embeddings
            else:
                data = msgspec.json.decode(content, type=_OpenAiResponse).data
                if all(each.index is not None for each in data):
                    data.sort(key=lambda each: each.index or 0)
                vectors = [each.embedding for each in data]
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise Unavailable("its response has no embeddings") from error
        _check(vectors, count)
        return vectors


def _check(vectors: Sequence[Vector], count: int) -> None:
    """Raises Unavailable unless ``vectors`` are usable vectors of ``count`` texts."""
    if len(vectors) != count:
        raise Unavailable(f"it returned {len(vectors)} vectors for {count} texts")
    dimensions = {len(vector) for vector in vectors}
    if len(dimensions) > 1 or not dimensions <= set(range(1, INT8.max_dimension + 1)):
        raise Unavailable("it returned vectors of unequal or unsupported dimensions")
    if not all(math.isfinite(sum(vector)) and any(vector) for vector in vectors):
        raise Unavailable("it returned vectors of zeros or infinite numbers")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _endpoint(url: str, path: str) -> str:
    """``url``, completed with the part of ``path`` that it lacks."""
    parts = urlsplit(url.strip())
    base = parts.path.rstrip("/")
    first, last = path.rsplit("/", 1)
    if base.endswith("/api/embeddings"):  # Ollama's older endpoint, for one text at a time
        base = base.removesuffix("dings")
    if not base.endswith(f"/{last}"):
        base += f"/{last}" if base.endswith(first) else path
    return urlunsplit((parts.scheme.lower(), parts.netloc, base, parts.query, ""))
