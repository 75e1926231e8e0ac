"""The remote tiers, and those that need an extra: Gemini, embedding servers, a local transformer.

The rule: tiers are queried concurrently, each with its own deadline; a tier without an answer is reported
with a reason. Where no such tier is configured, only this module is imported.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from mcpzip.config import Config, snapshot_path
from mcpzip.config.schema import EMBEDDERS, SemanticConfig
from mcpzip.model.entry import Entry
from mcpzip.search.tiers import LLM, SEMANTIC, TierAbsence, TierAnswer
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from mcpzip.search.remote.embeddings import Embedder
    from mcpzip.search.remote.gemini import Gemini
    from mcpzip.search.remote.llm_cache import LlmCache
    from mcpzip.search.remote.semantic_tier import RemoteSemanticTier
    from mcpzip.search.remote.shared_answers import SharedAnswers

MIN_SELECTED = 10
"""The least limit for the model, so that its cached answer also serves a larger limit later."""

_GRACE = 0.25
"""Seconds after its own deadline until a tier is cancelled, so that it can report the reason itself."""

TierResults = tuple[list[TierAnswer], list[TierAbsence]]


def remote_tiers(config: Config) -> "RemoteTiers | None":
    """The remote tiers of ``config``; None where it has none."""
    return RemoteTiers(config) if config.has_remote_tiers else None


class RemoteTiers:
    """The remote tiers of one config. Their caches are files beside its snapshot.

    clock: monotonic seconds, for pauses after failures. now: seconds since 1970, for the age of answers.
    """

    gemini: "Gemini | None" = None
    semantic: "RemoteSemanticTier | None" = None
    _llm_cache: "LlmCache | None" = None
    _shared_answers: "SharedAnswers | None" = None

    def __init__(
        self,
        config: Config,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        search = config.search
        self._deadlines = {SEMANTIC: search.semantic.deadline, LLM: search.llm_deadline}
        self._version = ""
        self._saving = DelayedSave(self._save, "llm answers")
        if config.gemini_api_key and search.model:
            from mcpzip.search.remote.gemini import Gemini
            from mcpzip.search.remote.llm_cache import LlmCache

            self.gemini = Gemini(config.gemini_api_key, search.model, search.llm_deadline, clock=clock)
            self._llm_cache = LlmCache(cache_path(config.path, "llm-answers.json"), now)
            if config.store is not None:
                from mcpzip.search.remote.shared_answers import SharedAnswers

                self._shared_answers = SharedAnswers(config.store, now)
        if search.semantic.provider in EMBEDDERS:
            from mcpzip.search.remote.semantic_tier import RemoteSemanticTier

            path = cache_path(config.state_path, "embeddings.bin")
            self.semantic = RemoteSemanticTier(embedder(search.semantic, clock), path)

    @property
    def tiers(self) -> tuple[str, ...]:
        """The configured tiers."""
        configured = ((SEMANTIC, self.semantic), (LLM, self.gemini))
        return tuple(tier for tier, it in configured if it is not None)

    def index(self, entries: Sequence[Entry], version: str) -> None:
        """From now on searches are about ``entries``. version: of the catalog, for the cache of answers. Must
        be called on the event loop; returns at once.
        """
        self._version = version
        if self.semantic is not None:
            self.semantic.index(entries)

    async def ask(self, query: str, shortlist: Sequence[Entry], limit: int) -> TierResults:
        """The answers of the tiers to ``query``, and the absent tiers, in the order of `tiers`.

        shortlist: the tools that the LLM chooses from, best first; the semantic tier compares all. Never
        raises; a cancellation cancels the requests.
        """
        queried: list[Awaitable[TierAnswer | TierAbsence]] = []
        if self.semantic is not None:
            queried.append(self._in_time(SEMANTIC, self.semantic.method, self.semantic.ask(query)))
        if self.gemini is not None:
            queried.append(self._in_time(LLM, "gemini", self._choose(self.gemini, query, shortlist, limit)))
        results = await asyncio.gather(*queried)
        return (
            [each for each in results if isinstance(each, TierAnswer)],
            [each for each in results if isinstance(each, TierAbsence)],
        )

    async def settled(self) -> None:
        """Wait until the catalog is embedded, or has failed to be."""
        if self.semantic is not None:
            await self.semantic.settled()

    async def aclose(self) -> None:
        """Cancel background tasks, close connections, save new answers."""
        if self.semantic is not None:
            await self.semantic.aclose()
        if self.gemini is not None:
            await self.gemini.aclose()
        await self._saving.flush()
        if self._shared_answers is not None:
            await self._shared_answers.close()

    async def _choose(
        self, gemini: "Gemini", query: str, shortlist: Sequence[Entry], limit: int
    ) -> TierAnswer | TierAbsence:
        """Gemini's answer, from the cache where it is there."""
        from mcpzip.search.remote.llm_cache import key_of
        from mcpzip.search.remote.prompt import scores

        limit = max(limit, MIN_SELECTED)
        cache = self._llm_cache
        assert cache is not None
        key = key_of(self._version, gemini.model, query, limit, (entry.name for entry in shortlist))
        names = cache.get(key)
        if names is None and self._shared_answers is not None:
            await self._shared_answers.hear(cache)
            names = cache.get(key)
        if names is not None:
            return TierAnswer(LLM, "gemini", scores(names))
        answer = await gemini.rank(query, shortlist, limit)
        if isinstance(answer, TierAnswer) and answer.scores:
            cache.put(key, tuple(answer.scores))
            self._saving.want(0.0)
            if self._shared_answers is not None:
                self._shared_answers.tell(key, list(answer.scores))
        return answer

    async def _save(self) -> None:
        if self._llm_cache is not None:
            await in_thread(self._llm_cache.save, "llm answers")

    async def _in_time(
        self, tier: str, method: str, answer: Awaitable[TierAnswer | TierAbsence]
    ) -> TierAnswer | TierAbsence:
        deadline = self._deadlines[tier]
        try:
            return await asyncio.wait_for(answer, deadline + _GRACE)
        except TimeoutError:
            return TierAbsence(tier, method, f"no answer within {deadline:g} s")


def embedder(config: SemanticConfig, clock: Callable[[], float]) -> "Embedder":
    """The embedder of the provider "onnx", "ollama" or "openai"."""
    if config.provider == "onnx":
        from mcpzip.search.remote.onnx import Transformer

        return Transformer(clock, config.deadline)
    from mcpzip.search.remote.embeddings import EmbeddingServer

    return EmbeddingServer(config, clock)


def cache_path(config_path: str, name: str) -> str:
    """The path of the cache ``name`` of a config: beside its snapshot, with the same prefix."""
    folder, snapshot = os.path.split(snapshot_path(config_path))
    return os.path.join(folder, snapshot.removesuffix("tools.json") + name)
