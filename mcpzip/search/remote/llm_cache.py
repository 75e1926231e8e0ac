"""The cache of the LLM tier's answers, on disk.

The rule: an answer is reused for the same query to the same model with the same tools, for `TTL`, without any
network. The file has names of tools under hashes, never queries. An unusable file is ignored, never an error.

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
MAX_ANSWERS = 1_000
TTL = 7 * 86_400.0
"""Seconds."""


class _Answer(msgspec.Struct):
    at: float
    names: list[str]


class _File(Head):
    answers: dict[str, _Answer]


class LlmCache:
    """The answers at ``path``; an empty path stores them in memory only. clock: seconds since 1970."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._answers: dict[str, _Answer] | None = None
        self._unsaved: dict[str, _Answer] = {}

    def get(self, key: str) -> tuple[str, ...] | None:
        """The names of the answer for ``key``, best first; None where there is none or it has expired."""
        if self._answers is None:
            self._answers = self._read()
        answer = self._answers.get(key)
        return tuple(answer.names) if answer and self._is_fresh(answer) else None

    def put(self, key: str, names: Sequence[str]) -> None:
        """Store ``names`` under ``key``; in the file only after `save`."""
        self.add(key, names, self._clock())

    def add(self, key: str, names: Sequence[str], at: float) -> None:
        """The same for an answer that was given at the time ``at``, unless there is a later one."""
        if self._answers is None:
            self._answers = self._read()
        known = self._answers.get(key)
        if known is None or known.at <= at:
            self._unsaved[key] = self._answers[key] = _Answer(at, list(names))
            self._answers = self._newest(self._answers)

    def save(self) -> None:
        """Add the new answers to the file. Blocks. Answers that can't be written are lost at the end."""
        unsaved, self._unsaved = self._unsaved, {}
        if not self._path or not unsaved:
            return
        answers = self._newest({**self._read(), **unsaved})
        try:
            write_state(
                self._path, msgspec.json.encode(_File(FORMAT.name, FORMAT.version, answers)), limits.ANSWERS
            )
        except (OSError, UnicodeError):
            pass

    def _read(self) -> dict[str, _Answer]:
        if not self._path:
            return {}
        try:
            file = FORMAT.decode(read_state(self._path, limits.ANSWERS), _File)
        except (OSError, UnusableError):
            return {}
        return self._newest(file.answers)

    def _is_fresh(self, answer: _Answer) -> bool:
        return 0 <= self._clock() - answer.at < TTL

    def _newest(self, answers: dict[str, _Answer]) -> dict[str, _Answer]:
        """The newest `MAX_ANSWERS` of ``answers``, without expired ones."""
        fresh = {key: answer for key, answer in answers.items() if self._is_fresh(answer)}
        if len(fresh) <= MAX_ANSWERS:
            return fresh
        order = sorted(fresh, key=lambda key: (-fresh[key].at, key))
        return {key: fresh[key] for key in order[:MAX_ANSWERS]}


def key_of(version: str, model: str, query: str, limit: int, names: Iterable[str]) -> str:
    """The key of an answer: a hash of the catalog's version, the model, the query and the tools' names."""
    parts = (version, model, str(limit), " ".join(query.split()).casefold(), *sorted(names))
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()
