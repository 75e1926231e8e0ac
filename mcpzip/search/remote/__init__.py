"""The tiers that run elsewhere, or need more than mcpzip brings: Gemini, embedding servers, a transformer.

The rule: they are asked side by side, each within its own deadline, and whoever can't answer is named with
a reason. What isn't configured isn't there: without a key and without an embedder nothing of this is imported
but this file.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from mcpzip.config import Config, snapshot_path
from mcpzip.model.entry import Entry
from mcpzip.search.tiers import LLM, SEMANTIC, TierAbsence, TierAnswer
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from mcpzip.search.remote.gemini import Gemini
    from mcpzip.search.remote.llm_cache import LlmCache
    from mcpzip.search.remote.semantic_tier import RemoteSemanticTier

MIN_SELECTED = 10
"""Tools a model is asked for at least, so that a longer answer later needs no other question."""

_GRACE = 0.25
"""Seconds a tier may take beyond its deadline to say that it is over."""

_EMBEDDERS = ("onnx", "ollama", "openai")

TierResults = tuple[list[TierAnswer], list[TierAbsence]]


def remote_tiers(config: Config) -> "RemoteTiers | None":
    """The tiers that ``config`` asks for; None when it asks for none of them."""
    wanted = config.search.semantic.provider in _EMBEDDERS or (config.gemini_api_key and config.search.model)
    return RemoteTiers(config) if wanted else None


class RemoteTiers:
    """The remote tiers of one config. What they remember is kept beside its snapshot.

    clock: monotonic seconds, of the rests after failures. now: seconds since 1970, of the age of answers.
    """

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
        self.gemini = _gemini(config, clock)
        self.meaning = _meaning(config, clock)
        self._answers = _answers(config, now) if self.gemini else None
        self._saving = DelayedSave(self._save, "llm answers")

    @property
    def tiers(self) -> tuple[str, ...]:
        """Which tiers there are."""
        there = ((SEMANTIC, self.meaning), (LLM, self.gemini))
        return tuple(tier for tier, it in there if it is not None)

    def index(self, entries: Sequence[Entry], version: str) -> None:
        """The catalog is these now, in this version. Call it from the event loop; it returns at once."""
        self._version = version
        if self.meaning is not None:
            self.meaning.index(entries)

    async def ask(self, query: str, shortlist: Sequence[Entry], limit: int) -> TierResults:
        """What each tier makes of ``query``: the answers, and who is absent and why, in the order of `tiers`.

        shortlist: the tools to choose among for the LLM, best first; the semantic tier looks at all of them.
        Raises nothing; to cancel it cancels its requests.
        """
        asked: list[Awaitable[TierAnswer | TierAbsence]] = []
        if self.meaning is not None:
            asked.append(self._in_time(SEMANTIC, self.meaning.method, self.meaning.ask(query)))
        if self.gemini is not None:
            asked.append(self._in_time(LLM, "gemini", self._choose(self.gemini, query, shortlist, limit)))
        said = await asyncio.gather(*asked)
        return (
            [each for each in said if isinstance(each, TierAnswer)],
            [each for each in said if isinstance(each, TierAbsence)],
        )

    async def settled(self) -> None:
        """When nothing is embedded any more: all of it is, or it failed."""
        if self.meaning is not None:
            await self.meaning.settled()

    async def aclose(self) -> None:
        """End what goes on in the background, keep what is new, close the connections."""
        if self.meaning is not None:
            await self.meaning.aclose()
        if self.gemini is not None:
            await self.gemini.aclose()
        await self._saving.flush()

    async def _choose(
        self, gemini: "Gemini", query: str, shortlist: Sequence[Entry], limit: int
    ) -> TierAnswer | TierAbsence:
        """Gemini's choice, or the one it made before."""
        from mcpzip.search.remote.llm_cache import key_of
        from mcpzip.search.remote.prompt import scores

        limit = max(limit, MIN_SELECTED)
        answers = self._answers
        assert answers is not None
        key = key_of(self._version, gemini.model, query, limit, (entry.name for entry in shortlist))
        kept = answers.get(key)
        if kept is not None:
            return TierAnswer(LLM, "gemini", scores(kept))
        answer = await gemini.rank(query, shortlist, limit)
        if isinstance(answer, TierAnswer) and answer.scores:
            answers.put(key, tuple(answer.scores))
            self._saving.want(0.0)
        return answer

    async def _save(self) -> None:
        if self._answers is not None:
            await in_thread(self._answers.save, "llm answers")

    async def _in_time(
        self, tier: str, method: str, answer: Awaitable[TierAnswer | TierAbsence]
    ) -> TierAnswer | TierAbsence:
        deadline = self._deadlines[tier]
        try:
            return await asyncio.wait_for(answer, deadline + _GRACE)
        except TimeoutError:
            return TierAbsence(tier, method, f"no answer within {deadline:g} s")


def _gemini(config: Config, clock: Callable[[], float]) -> "Gemini | None":
    if not config.gemini_api_key or not config.search.model:
        return None
    from mcpzip.search.remote.gemini import Gemini

    return Gemini(config.gemini_api_key, config.search.model, config.search.llm_deadline, clock=clock)


def _answers(config: Config, now: Callable[[], float]) -> "LlmCache":
    from mcpzip.search.remote.llm_cache import LlmCache

    return LlmCache(cache_path(config.path, "llm-answers.json"), now)


def _meaning(config: Config, clock: Callable[[], float]) -> "RemoteSemanticTier | None":
    if config.search.semantic.provider not in _EMBEDDERS:
        return None
    from mcpzip.search.remote.embedders import embedder
    from mcpzip.search.remote.semantic_tier import RemoteSemanticTier

    return RemoteSemanticTier(
        embedder(config.search.semantic, clock), cache_path(config.path, "embeddings.bin")
    )


def cache_path(config_path: str, name: str) -> str:
    """Where a cache called ``name`` is kept for this config: beside its snapshot, under its name."""
    folder, snapshot = os.path.split(snapshot_path(config_path))
    return os.path.join(folder, snapshot.removesuffix("tools.json") + name)
