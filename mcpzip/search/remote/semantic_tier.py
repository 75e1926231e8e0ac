"""The semantic tier on vectors that somebody else makes: the catalog's are kept, a query's is asked for.

The rules:

1. The catalog is embedded in the background, only what isn't known yet, and while that lasts the tier is
   absent and says how far it is. Nobody waits for it.
2. A tool has two vectors, of its name and of all it says of itself, and is as near as the nearer of them: a
   long description drowns the name that a request says (nDCG@10 +.025 for MiniLM on 919 tools).
3. A vector is known by the text it is of. One of another dimension is of another model: then all are made
   anew.
4. After a failure nothing goes on by itself. The next question after the rest starts it again.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

from mcpzip.model.entry import Entry
from mcpzip.search.fields import Fields
from mcpzip.search.packed_matrix import INT8, PackedMatrix, quantize
from mcpzip.search.remote.embeddings import Embedder
from mcpzip.search.remote.service import Unavailable
from mcpzip.search.remote.vector_file import VectorFile
from mcpzip.search.tiers import SEMANTIC, TierAbsence, TierAnswer
from mcpzip.system.threads import in_thread

NEAREST = 200
"""Tools an answer has."""

MOST_TOOLS = 20_000
"""Tools that are embedded; with 1,024 dimensions they take 160 MB."""

LONGEST_TEXT = 1_000
"""Characters of a tool that are embedded, about 250 tokens: the least that common models read."""

_LONGEST_QUERY = 1_000
_QUERIES = 256  # whose vectors are kept
_SAVED_EVERY = 16  # batches
_FORMER = 2_000  # vectors that are kept of tools that aren't in the catalog any more

_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])|[_/]+|(?<=\w)[-.](?=\w)")

Key = bytes
Packed = bytes
"""A vector in 8 bits a number (`FINE`)."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """The catalog, all of it embedded. names: of the entries; the vectors are in their order, the first of
    each entry and then the second of each.
    """

    names: tuple[str, ...]
    vectors: PackedMatrix


class RemoteSemanticTier:
    """Finds the tools that are nearest in meaning to a query, by an embedder's vectors.

    path: where they are kept; "" keeps none.
    """

    def __init__(self, embedder: Embedder, path: str) -> None:
        self._embedder = embedder
        self._file = VectorFile(path, embedder.identity)
        self._entries: Sequence[Entry] = ()
        self._known: dict[Key, Packed] | None = None
        self._ready: _Ready | None = None
        self._stale = False
        self._done, self._all = 0, 0
        self._mistaken = 0  # how often in a row the dimensions were others than before
        self._work: asyncio.Task[None] | None = None
        self._waking: asyncio.Task[None] | None = None
        self._queries: OrderedDict[str, Packed] = OrderedDict()

    @property
    def method(self) -> str:
        """What makes the vectors."""
        return self._embedder.method

    @property
    def progress(self) -> tuple[int, int]:
        """How many tools are embedded, of how many."""
        return self._done, self._all

    def index(self, entries: Sequence[Entry]) -> None:
        """The catalog is these now. Embedding begins at once if there is an event loop, else with a query."""
        if self._entries == (fresh := tuple(entries)) and self._ready:
            return
        self._entries, self._stale, self._ready = fresh, True, None
        self._done, self._all = 0, len(self._entries)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._all <= MOST_TOOLS:
            self._begin()

    async def ask(self, query: str) -> TierAnswer | TierAbsence:
        """The tools nearest to ``query``, and their cosines, best first. Raises nothing."""
        try:
            ready = self._ready
            if self._all > MOST_TOOLS:
                raise Unavailable(f"the catalog is too large to embed (more than {MOST_TOOLS:,} tools)")
            if ready is None:
                reason = self._embedder.service.resting()
                if reason:
                    raise Unavailable(reason)
                self._begin()
                raise Unavailable(f"embedding the catalog ({self._done} of {self._all})")
            return await self._nearest(ready, query)
        except Unavailable as error:
            return TierAbsence(SEMANTIC, self._embedder.method, error.reason)

    async def settled(self) -> None:
        """When nothing is embedded any more: all of it is, or it failed."""
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])

    async def aclose(self) -> None:
        """End what goes on in the background, and let go of the embedder."""
        for task in (self._work, self._waking):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._embedder.aclose()

    async def _nearest(self, ready: _Ready, query: str) -> TierAnswer:
        vector = await self._query_vector(_spread(query)[:_LONGEST_QUERY])
        if self._ready is not ready:
            raise Unavailable("the catalog has just changed")
        if not ready.names:
            return TierAnswer(SEMANTIC, self._embedder.method, {})
        if len(vector) != ready.vectors.dimension:
            told = f"vectors have {len(vector)} dimensions now, not {ready.vectors.dimension}"
            self._forget()
            if self._mistaken > 1:
                self._embedder.service.failed(told)
                raise Unavailable(told)
            self._begin()
            raise Unavailable(f"{told}; embedding the catalog again")
        self._mistaken = 0
        both = ready.vectors.cosines(vector)
        count = len(ready.names)
        cosines = map(max, both[:count], both[count:])
        pairs = zip(cosines, ready.names, strict=True)
        best = nsmallest(NEAREST, pairs, key=lambda each: (-each[0], each[1]))
        return TierAnswer(SEMANTIC, self._embedder.method, {name: cosine for cosine, name in best})

    async def _query_vector(self, query: str) -> Packed:
        if not query:
            raise Unavailable("the query is empty")
        kept = self._queries.get(query)
        if kept is not None:
            self._queries.move_to_end(query)
            return kept
        try:
            (vector,) = await self._embedder.embed([query], query=True)
        except Unavailable as error:
            if error.slow:
                self._wake()
            raise
        found = self._queries[query] = _packed(vector)
        while len(self._queries) > _QUERIES:
            self._queries.popitem(last=False)
        return found

    def _wake(self) -> None:
        """Try, with patience, to have the embedder answer the next query: it may be loading its model."""
        if self._waking is None or self._waking.done():
            self._waking = asyncio.create_task(self._embedder_wakes())

    async def _embedder_wakes(self) -> None:
        try:
            await self._embedder.wake()
        except Unavailable:
            pass  # the service remembers the reason, and the next question is told

    def _forget(self) -> None:
        """Another model answers now: what the last one made is of no use."""
        self._known, self._ready, self._stale = {}, None, True
        self._queries.clear()
        self._done = 0
        self._mistaken += 1

    # --- the catalog ----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Embed the catalog, unless that is under way."""
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._embed_all())

    async def _embed_all(self) -> None:
        """Rounds, until the catalog hasn't changed under one."""
        try:
            while self._stale:
                self._stale = False
                try:
                    await self._round(self._entries)
                except _AnotherModel:
                    self._forget()
                    if self._mistaken > 2:
                        raise
        except Unavailable:
            self._stale = True  # the service remembers the reason, and the next question starts again
        except Exception as error:
            self._stale = True
            why = (
                "its vectors keep changing their dimensions"
                if isinstance(error, _AnotherModel)
                else type(error).__name__
            )
            self._embedder.service.failed(f"the catalog can't be embedded: {why}")

    async def _round(self, entries: Sequence[Entry]) -> None:
        if self._known is None:
            self._known = await in_thread(self._file.load, "embeddings")
        texts = await in_thread(lambda: texts_to_embed(entries), "embeddings")
        keys = [_key(text) for text in texts]
        known = self._known
        # Texts of a length go together: a transformer takes as long for each of a batch as for its longest.
        unknown = {text: key for key, text in zip(keys, texts, strict=True) if key not in known}
        missing = {unknown[text]: text for text in sorted(unknown, key=lambda text: (len(text), text))}
        self._count(keys, known)
        batch, unsaved = self._embedder.batch, 0
        try:
            while missing and not self._stale:
                some = dict(list(missing.items())[:batch])
                for key, vector in zip(some, await self._embed(list(some.values())), strict=True):
                    if known and len(vector) != len(next(iter(known.values()))):
                        raise _AnotherModel
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
        ready = await in_thread(lambda: _assemble(entries, keys, known), "embeddings")
        if not self._stale:
            self._ready = ready

    async def _embed(self, texts: list[str]) -> list[Packed]:
        """The vectors of ``texts``. One that the server won't have spoils no others, and is cut for it."""
        try:
            return [_packed(vector) for vector in await self._embedder.embed(texts, query=False)]
        except Unavailable as error:
            if not error.refused:
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
            self._done = sum(key in known for key in keys) // 2

    async def _save(self, known: dict[Key, Packed], keys: Sequence[Key]) -> None:
        """Keep what the catalog needs, and some of what it needed before: a server may come back."""
        current = set(keys)
        former = [key for key in known if key not in current]
        for key in former[: -max(_FORMER, len(current))]:
            del known[key]
        kept = {key: known[key] for key in (*dict.fromkeys(keys), *former) if key in known}
        await in_thread(lambda: self._file.save(kept), "embeddings")


class _AnotherModel(Exception):
    """The vectors that come now aren't comparable to those that came before."""


def texts_to_embed(entries: Sequence[Entry]) -> list[str]:
    """What of ``entries`` is embedded: the names of all, and then of all ``server name: title. description.
    parameters``, cut.
    """
    fields = [Fields.of(entry) for entry in entries]
    names = [_spread(f"{each.server} {each.name}") for each in fields]
    said = [
        f"{each.title}. {each.description}"
        if each.title and each.title not in each.description
        else each.description
        for each in fields
    ]
    texts = [
        f"{name}: {text} {_spread(each.parameters)}"
        for name, text, each in zip(names, said, fields, strict=True)
    ]
    return [_sendable(text) for text in (*names, *texts)]


def _spread(text: str) -> str:
    """``text`` with the names in it as words: ``sendMessage`` and ``send_message`` as ``send message``."""
    return " ".join(_JOINT.sub(" ", text).split())


def _sendable(text: str) -> str:
    return " ".join(text.split())[:LONGEST_TEXT].encode("utf-8", "replace").decode()


def _key(text: str) -> Key:
    return hashlib.sha256(text.encode()).digest()


def _packed(vector: Sequence[float]) -> Packed:
    try:
        return quantize(vector, INT8)
    except ValueError as error:
        raise Unavailable(f"it answered {error}") from error


def _assemble(entries: Sequence[Entry], keys: Sequence[Key], known: dict[Key, Packed]) -> _Ready:
    vectors = [known[key] for key in keys]
    return _Ready(
        tuple(entry.name for entry in entries), PackedMatrix(vectors, len(vectors[0]) if vectors else 1, INT8)
    )
