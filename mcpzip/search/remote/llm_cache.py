"""The LLM tier's answers on disk between runs.

The rules: an answer is good for the same question to the same model about the same tools, for `TTL`; a hit
costs no network. What is kept are names of tools under a hash, never what was asked. Nothing in the file can
stop us.

    {"format": "mcpzip-llm-answers", "version": 1, "answers": {"<sha256>": {"at": 1.7e9, "names": ["…"]}}}
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from mcpzip.model import limits
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.state_files import read_state, write_state

FORMAT = Format("mcpzip-llm-answers", 1, "a file of answers")
MOST = 1_000
TTL = 7 * 86_400.0
"""Seconds."""


class _Kept(msgspec.Struct):
    at: float
    names: list[str]


class _File(Head):
    answers: dict[str, _Kept]


class LlmCache:
    """Answers at ``path``; an empty path keeps them in memory only. clock: seconds since 1970."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._kept: dict[str, _Kept] | None = None
        self._fresh: dict[str, _Kept] = {}

    def get(self, key: str) -> tuple[str, ...] | None:
        """The names kept under ``key``, best first; None when there are none, or none so young."""
        if self._kept is None:
            self._kept = self._read()
        kept = self._kept.get(key)
        return tuple(kept.names) if kept and self._young(kept) else None

    def put(self, key: str, names: Sequence[str]) -> None:
        """Keep ``names`` under ``key``; on disk from the next `save` on."""
        if self._kept is None:
            self._kept = self._read()
        self._fresh[key] = self._kept[key] = _Kept(self._clock(), list(names))
        self._kept = self._youngest(self._kept)

    def save(self) -> None:
        """Write what is new to what is on disk. Blocks; a disk that refuses costs the next run time."""
        fresh, self._fresh = self._fresh, {}
        if not self._path or not fresh:
            return
        answers = self._youngest({**self._read(), **fresh})
        try:
            write_state(
                self._path, msgspec.json.encode(_File(FORMAT.name, FORMAT.version, answers)), limits.ANSWERS
            )
        except (OSError, UnicodeError):
            pass

    def _read(self) -> dict[str, _Kept]:
        if not self._path:
            return {}
        try:
            found = FORMAT.decode(read_state(self._path, limits.ANSWERS), _File)
        except (OSError, UnusableError):
            return {}
        return self._youngest(found.answers)

    def _young(self, kept: _Kept) -> bool:
        return 0 <= self._clock() - kept.at < TTL

    def _youngest(self, answers: dict[str, _Kept]) -> dict[str, _Kept]:
        young = {key: kept for key, kept in answers.items() if self._young(kept)}
        if len(young) <= MOST:
            return young
        order = sorted(young, key=lambda key: (-young[key].at, key))
        return {key: young[key] for key in order[:MOST]}


def key_of(version: str, model: str, query: str, limit: int, names: Iterable[str]) -> str:
    """What an answer depends on: the catalog's version, the model, the question, and among which tools."""
    parts = (version, model, str(limit), " ".join(query.split()).casefold(), *sorted(names))
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()
