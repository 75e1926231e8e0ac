"""The remote semantic tier: the cosines of an embedder's vectors.

The rules:

1. The catalog is embedded in the background, new texts only. Until that is done the tier is absent, with its
   progress as the reason; no search waits for it.
2. A tool has two vectors, of its name and of its whole text; its similarity is the higher cosine of the two,
   because a long description hides the name (nDCG@10 +.025 for MiniLM as it is on 919 tools). For a `brief`
   embedder it has one, of its name with the first sentence of its description.
3. Vectors are stored under a hash of their text. A vector of another dimension comes from another model; then
   all texts are embedded again.
4. After a failure nothing is retried in the background. The next query after the pause starts it again.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

from mcpzip.model.entry import Entry
from mcpzip.search.fields import Fields, first_sentence
from mcpzip.search.lexicon import gloss_text
from mcpzip.search.packed_matrix import INT8, PackedMatrix, quantize
from mcpzip.search.remote.embeddings import Embedder
from mcpzip.search.remote.service import Unavailable
from mcpzip.search.remote.vector_file import VectorFile
from mcpzip.search.tiers import SEMANTIC, TierAbsence, TierAnswer
from mcpzip.system.threads import in_thread

NEAREST = 200
"""Tools of an answer."""

MAX_TOOLS = 20_000
"""Tools of the largest catalog that is embedded; with 1,024 dimensions they take 160 MB."""

LONGEST_TEXT = 1_000
"""Characters of a tool that are embedded, about 250 tokens: the shortest input limit of common models."""

_MAX_QUERY = 1_000  # characters
_CACHED_QUERIES = 256
_SAVED_EVERY = 16  # batches
_MAX_FORMER = 2_000  # vectors of removed tools that are stored, because a server may come back
_MAX_MODEL_CHANGES = 2  # in a row

_WORD_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|[_/]+|(?<=\w)[-.](?=\w)")

Key = bytes
Packed = bytes
"""A vector in 8 bits per number (`INT8`)."""


@dataclass(frozen=True, slots=True)
class _EmbeddedCatalog:
    """names: of the entries. vectors: of `texts_to_embed` or `brief_texts`, in their order."""

    names: tuple[str, ...]
    vectors: PackedMatrix


class RemoteSemanticTier:
    """Finds the tools nearest to a query by an embedder's vectors. path: of their file; "" stores none."""

    def __init__(self, embedder: Embedder, path: str) -> None:
        self._embedder = embedder
        self._file = VectorFile(path, embedder.identity)
        self._entries: Sequence[Entry] = ()
        self._vectors: dict[Key, Packed] | None = None
        self._ready: _EmbeddedCatalog | None = None
        self._stale = False
        self._done, self._all = 0, 0
        self._model_changes = 0  # in a row
        self._embedding: asyncio.Task[None] | None = None
        self._warming_up: asyncio.Task[None] | None = None
        self._queries: OrderedDict[str, Packed] = OrderedDict()

    @property
    def method(self) -> str:
        """The embedder's name."""
        return self._embedder.method

    @property
    def progress(self) -> tuple[int, int]:
        """The number of embedded tools, and of all tools."""
        return self._done, self._all

    def index(self, entries: Sequence[Entry]) -> None:
        """From now on searches are about ``entries``. Embedding starts now if there is an event loop, else
        with the first query.
        """
        if self._entries == (fresh := tuple(entries)) and self._ready:
            return
        self._entries, self._stale, self._ready = fresh, True, None
        self._done, self._all = 0, len(self._entries)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._all <= MAX_TOOLS:
            self._start()

    async def ask(self, query: str) -> TierAnswer | TierAbsence:
        """The cosines of the tools nearest to ``query``, best first. Never raises."""
        try:
            ready = self._ready
            if self._all > MAX_TOOLS:
                raise Unavailable(f"the catalog is too large to embed (more than {MAX_TOOLS:,} tools)")
            if ready is None:
                reason = self._embedder.service.paused()
                if reason:
                    raise Unavailable(reason)
                self._start()
                raise Unavailable(f"embedding the catalog ({self._done} of {self._all})")
            return await self._nearest(ready, query)
        except Unavailable as error:
            return TierAbsence(SEMANTIC, self._embedder.method, error.reason)

    async def settled(self) -> None:
        """Wait until the catalog is embedded, or has failed to be."""
        while self._embedding is not None and not self._embedding.done():
            await asyncio.wait([self._embedding])

    async def aclose(self) -> None:
        """Cancel background tasks, and close the embedder."""
        for task in (self._embedding, self._warming_up):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._embedder.aclose()

    async def _nearest(self, ready: _EmbeddedCatalog, query: str) -> TierAnswer:
        vector = await self._query_vector(_spaced(query)[:_MAX_QUERY])
        if self._ready is not ready:
            raise Unavailable("the catalog has just changed")
        if not ready.names:
            return TierAnswer(SEMANTIC, self._embedder.method, {})
        if len(vector) != ready.vectors.dimension:
            reason = f"vectors have {len(vector)} dimensions now, not {ready.vectors.dimension}"
            self._discard_vectors()
            if self._model_changes >= _MAX_MODEL_CHANGES:
                self._embedder.service.failed(reason)
                raise Unavailable(reason)
            self._start()
            raise Unavailable(f"{reason}; embedding the catalog again")
        self._model_changes = 0
        cosines: Sequence[float] = ready.vectors.cosines(vector)
        if not self._embedder.brief:
            count = len(ready.names)
            cosines = list(map(max, cosines[:count], cosines[count:]))
        pairs = zip(cosines, ready.names, strict=True)
        best = nsmallest(NEAREST, pairs, key=lambda each: (-each[0], each[1]))
        return TierAnswer(SEMANTIC, self._embedder.method, {name: cosine for cosine, name in best})

    async def _query_vector(self, query: str) -> Packed:
        if not query:
            raise Unavailable("the query is empty")
        cached = self._queries.get(query)
        if cached is not None:
            self._queries.move_to_end(query)
            return cached
        try:
            (vector,) = await self._embedder.embed([query], query=True)
        except Unavailable as error:
            if error.timed_out and (self._warming_up is None or self._warming_up.done()):
                self._warming_up = asyncio.create_task(self._warm_up())  # it may be loading its model
            raise
        packed = self._queries[query] = _packed(vector)
        while len(self._queries) > _CACHED_QUERIES:
            self._queries.popitem(last=False)
        return packed

    async def _warm_up(self) -> None:
        try:
            await self._embedder.warm_up()
        except Unavailable:
            pass  # the service has the reason, which the next query reports

    def _discard_vectors(self) -> None:
        """Another model answers now, so the vectors of the former one are useless."""
        self._vectors, self._ready, self._stale = {}, None, True
        self._queries.clear()
        self._done = 0
        self._model_changes += 1

    # --- the catalog ----------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start to embed the catalog, unless that is running."""
        if self._embedding is None or self._embedding.done():
            self._embedding = asyncio.create_task(self._embed_catalog())

    async def _embed_catalog(self) -> None:
        """Embed the catalog; again where it changed meanwhile."""
        try:
            while self._stale:
                self._stale = False
                try:
                    await self._embed_entries(self._entries)
                except _ModelChangedError:
                    self._discard_vectors()
                    if self._model_changes > _MAX_MODEL_CHANGES:
                        raise
        except Unavailable:
            self._stale = True  # the service has the reason, and the next query starts again
        except Exception as error:
            self._stale = True
            changed = isinstance(error, _ModelChangedError)
            why = "the dimension of its vectors keeps changing" if changed else type(error).__name__
            self._embedder.service.failed(f"the catalog can't be embedded: {why}")

    async def _embed_entries(self, entries: Sequence[Entry]) -> None:
        """Embed the texts of ``entries`` that have no vector yet. Returns early where the catalog changes."""
        if self._vectors is None:
            self._vectors = await in_thread(self._file.load, "embeddings")
        texts_of = brief_texts if self._embedder.brief else texts_to_embed
        texts = await in_thread(lambda: texts_of(entries), "embeddings")
        keys = [_key(text) for text in texts]
        known = self._vectors
        # Sorted by length, because a transformer takes as long for each text of a batch as for the longest.
        unknown = {text: key for key, text in zip(keys, texts, strict=True) if key not in known}
        missing = {unknown[text]: text for text in sorted(unknown, key=lambda text: (len(text), text))}
        self._count(keys, known)
        batch_size, unsaved = self._embedder.batch, 0
        try:
            while missing and not self._stale:
                batch = dict(list(missing.items())[:batch_size])
                for key, vector in zip(batch, await self._embed(list(batch.values())), strict=True):
                    if known and len(vector) != len(next(iter(known.values()))):
                        raise _ModelChangedError
                    known[key] = vector
                    del missing[key]
                self._count(keys, known)
                unsaved += 1
                if unsaved >= _SAVED_EVERY:
                    await self._save(known, keys)
                    unsaved = 0
        finally:
            if unsaved:
                await self._save(known, keys)
        if missing or self._stale:
            return
        ready = await in_thread(lambda: _assembled(entries, keys, known), "embeddings")
        if not self._stale:
            self._ready = ready

    async def _embed(self, texts: list[str]) -> list[Packed]:
        """The vectors of ``texts``. Where the server refuses a batch, it is halved, down to single texts; a
        text that is refused alone is shortened.
        """
        try:
            return [_packed(vector) for vector in await self._embedder.embed(texts, query=False)]
        except Unavailable as error:
            if not error.bad_request:
                raise
            if len(texts) > 1:
                half = len(texts) // 2
                return await self._embed(texts[:half]) + await self._embed(texts[half:])
            shorter = texts[0][: len(texts[0]) // 3]
            if len(shorter) < 20:
                self._embedder.service.failed(error.reason)
                raise
            return await self._embed([shorter])

    def _count(self, keys: Sequence[Key], known: dict[Key, Packed]) -> None:
        if not self._stale:
            self._done = sum(key in known for key in keys) // (1 if self._embedder.brief else 2)

    async def _save(self, known: dict[Key, Packed], keys: Sequence[Key]) -> None:
        """Save the vectors of the catalog and the newest former ones; the other former ones are deleted."""
        current = set(keys)
        former = [key for key in known if key not in current]
        for key in former[: -max(_MAX_FORMER, len(current))]:
            del known[key]
        saved = {key: known[key] for key in (*dict.fromkeys(keys), *former) if key in known}
        await in_thread(lambda: self._file.save(saved), "embeddings")


class _ModelChangedError(Exception):
    """A vector has another dimension than the known ones."""


def brief_texts(entries: Sequence[Entry]) -> list[str]:
    """A text for each of ``entries``, at most `LONGEST_TEXT` characters: ``server name: first sentence of the
    description``, or of the title. English words for other scripts come before the sentence.
    """
    texts = []
    for entry in entries:
        name = _spaced(f"{entry.server} {entry.tool}")
        sentence = first_sentence((entry.description or entry.title)[:LONGEST_TEXT])
        said = [gloss_text(f"{name} {sentence}"), sentence]
        texts.append(_sendable(" ".join([f"{name}:", *said]) if sentence else " ".join([name, *said])))
    return texts


def texts_to_embed(entries: Sequence[Entry]) -> list[str]:
    """Two texts for each of ``entries``: first ``server name`` of all of them, then ``server name: title.
    description. parameters`` of all of them. Each is cut at `LONGEST_TEXT` characters.
    """
    fields = [Fields.of(entry) for entry in entries]
    names = [_spaced(f"{each.server} {each.name}") for each in fields]
    summaries = [
        f"{each.title}. {each.description}"
        if each.title and each.title not in each.description
        else each.description
        for each in fields
    ]
    texts = [
        f"{name}: {summary} {_spaced(each.parameters)}"
        for name, summary, each in zip(names, summaries, fields, strict=True)
    ]
    return [_sendable(text) for text in (*names, *texts)]


def _spaced(text: str) -> str:
    """``text`` with identifiers split: ``sendMessage`` and ``send_message`` become ``send message``."""
    return " ".join(_WORD_BOUNDARY.sub(" ", text).split())


def _sendable(text: str) -> str:
    return " ".join(text.split())[:LONGEST_TEXT].encode("utf-8", "replace").decode()


def _key(text: str) -> Key:
    return hashlib.sha256(text.encode()).digest()


def _packed(vector: Sequence[float]) -> Packed:
    try:
        return quantize(vector, INT8)
    except ValueError as error:
        raise Unavailable(f"it returned {error}") from error


def _assembled(entries: Sequence[Entry], keys: Sequence[Key], known: dict[Key, Packed]) -> _EmbeddedCatalog:
    vectors = [known[key] for key in keys]
    matrix = PackedMatrix(vectors, len(vectors[0]) if vectors else 1, INT8)
    return _EmbeddedCatalog(tuple(entry.name for entry in entries), matrix)
