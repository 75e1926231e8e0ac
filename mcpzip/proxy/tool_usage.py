"""Counts the successful calls of tools, and the words of the searches that led to them, with exponential
decay: signals for search.

The rules:

1. Only names of tools, counts, times and single words are stored, on this machine; never arguments or
results.
   Which words: `mcpzip.search.learned_words`. They never leave this machine.
2. A call counts 1, and half as much after each `HALF_LIFE`. Counts are computed from the file and the time,
so that
   no timer is needed.
3. Several processes may share the file: each adds its own counts to those in the file. There is no lock: if
two
   write within the same milliseconds, the last wins, and the counts of a few seconds are lost.
4. No error in the file stops mcpzip: a damaged file is replaced, one that can't be read or has a later
version is
   left alone, and there is a warning for each.

    {"format":"mcpzip-usage","version":1,"tools":{"slack__send_message":
        {"calls":2.5,"at":1763788000.0,"words":{"cowork":1.5}}}}
"""

import math
import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mcpzip.config import Config, snapshot_path
from mcpzip.model import limits
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.state_files import read_state, write_state
from mcpzip.wire import NotAnObject, split_object

if TYPE_CHECKING:
    from mcpzip.search.learned_words import LearnedWords

FORMAT = Format("mcpzip-usage", 1, "a record of use")
HALF_LIFE = 14 * 86_400.0
"""Seconds."""
MAX_TOOLS = 2_000
"""Tools in the file; those with the lowest counts are dropped."""

_MIN_COUNT = 0.05
"""A lower count is dropped: that of a single call after two months."""
_LARGE, _END = 65_536, 2_048
"""Bytes: of a result from which on only its two ends are searched, and of such an end."""
_FAILED = lazy_pattern(rb'"isError"\s*:\s*true|"resultType"\s*:\s*"input_required"')


class UseCount(msgspec.Struct, frozen=True, omit_defaults=True):
    """The decayed count of a tool's calls at the time ``at`` (Unix seconds). words: of how many of these each
    term was searched for before, decayed like it.
    """

    calls: float
    at: float
    words: dict[str, float] = {}

    def decay(self, now: float) -> float:
        """The factor of the counts at the time ``now``; 1 if ``now`` is earlier than ``at``."""
        return math.exp2(-max(0.0, now - self.at) / HALF_LIFE)

    def now(self, now: float) -> float:
        """The count decayed to the time ``now``; unchanged if ``now`` is earlier than ``at``."""
        return self.calls * self.decay(now)

    def words_now(self, now: float) -> dict[str, float]:
        """``words`` decayed to the time ``now``, highest first, equal ones by name; `LEARNED_WORDS` at most,
        without those that count next to nothing.
        """
        decay = self.decay(now)
        found = sorted((-count * decay, word) for word, count in self.words.items())
        return {word: -count for count, word in found[: limits.LEARNED_WORDS] if -count >= _MIN_COUNT}

    def without_words(self) -> "UseCount":
        """The same count without words."""
        return UseCount(self.calls, self.at) if self.words else self

    def __add__(self, other: "UseCount") -> "UseCount":
        at = max(self.at, other.at)
        words: dict[str, float] = {}
        for each in (self, other):
            decay = each.decay(at) if each.words else 0.0
            for word, count in each.words.items():
                words[word] = words.get(word, 0.0) + count * decay
        return UseCount(self.now(at) + other.now(at), at, words)


UseCounts = Mapping[str, UseCount]
"""By the name of the tool."""


class Marks(NamedTuple):
    """What a file has to do with the counts that machines share (`shared_usage`). origin: its id, "" for none
    yet. seen: the last entry that was taken up.
    """

    origin: str = ""
    seen: int = 0


class _File(Head, omit_defaults=True):
    tools: dict[str, UseCount]
    origin: str = ""
    seen: int = 0


class UnusableUsageFileError(Exception):
    """The file can't be used and must not be replaced. The text has its path and the reason."""


def usage_path(config_path: str) -> str:
    """The file for this config: ``usage.json``, with the same prefix as the snapshot beside it."""
    folder, name = os.path.split(snapshot_path(config_path))
    return os.path.join(folder, f"{name.removesuffix('tools.json')}usage.json")


def added(some: UseCounts, others: UseCounts) -> dict[str, UseCount]:
    """The sums of both, by tool."""
    return {
        **some,
        **{name: some[name] + use if name in some else use for name, use in others.items()},
    }


def counts(uses: UseCounts, now: float) -> dict[str, float]:
    """The counts at the time ``now``, highest first, equal ones by name; `MAX_TOOLS` at most."""
    found = sorted((-count, name) for name, use in uses.items() if (count := use.now(now)) >= _MIN_COUNT)
    return {name: -count for count, name in found[:MAX_TOOLS]}


def learned_words(uses: UseCounts, now: float) -> "LearnedWords | None":
    """The words that led to tools, at the time ``now``; None for none."""
    of_tools = {name: use for name, use in uses.items() if use.words}
    if not of_tools:
        return None
    from mcpzip.search.learned_words import LearnedWords  # needed only once something was learned

    words = {name: use.words for name, use in of_tools.items()}
    return LearnedWords(words, lambda name: of_tools[name].decay(now))


def is_success(result: bytes) -> bool:
    """Whether ``result`` (`CallToolResult`, JSON text) is neither an error nor an `input_required` result.

    Of a large result only the beginning and the end are searched, where servers usually put ``isError``.
    """
    if len(result) > _LARGE:
        return not (_FAILED.search(result[:_END]) or _FAILED.search(result[-_END:]))
    if b'"isError"' not in result and b'"input_required"' not in result:
        return True
    if result.startswith(b"{") and not _FAILED.search(result):  # most servers say that it is none
        return True
    try:
        members = split_object(result)
    except NotAnObject:
        return False
    return members.get("isError") != b"true" and members.get("resultType") != b'"input_required"'


def load(path: str) -> tuple[dict[str, UseCount], tuple[str, ...]]:
    """The counts in the file at ``path``, and warnings. A missing file has no counts and no warning.

    Raises UnusableUsageFileError.
    """
    try:
        data = read_state(path, limits.USAGE)
    except (FileNotFoundError, NotADirectoryError):
        return {}, ()
    except OSError as error:
        raise UnusableUsageFileError(f"{path} can't be read: {error.strerror or error}") from error
    try:
        tools = FORMAT.decode(data, _File).tools
    except UnusableError as error:
        if error.later:
            raise UnusableUsageFileError(
                f"{path} {error}: it is left alone, and uses of tools are not counted"
            ) from None
        return {}, (f"{path} {error}: the counts of used tools start anew.",)
    return {name: _with_sound_words(use) for name, use in tools.items() if is_sound(use)}, ()


def marks_of(path: str) -> Marks:
    """The marks of the file at ``path``; those of a new one if it can't be read."""
    try:
        file = FORMAT.decode(read_state(path, limits.USAGE), _File)
    except (OSError, UnusableError):
        return Marks()
    return Marks(file.origin[:64], max(file.seen, 0))


def save(path: str, uses: UseCounts, now: float, marks: Marks | None = None) -> dict[str, UseCount]:
    """Writes ``uses`` to ``path``, readable only by the owner, without those with too low counts. marks: None
    for those that are there. Returns what was written. Raises OSError.
    """
    origin, seen = marks_of(path) if marks is None else marks
    kept = {
        name: uses[name] for name in counts(uses, now) if name.isprintable()
    }  # lone surrogates can't be encoded
    have_words = set([name for name, use in kept.items() if use.words][: limits.LEARNED_TOOLS])
    tools = {
        name: UseCount(
            round(use.calls, 4),
            round(min(use.at, now)),
            {word: round(count, 4) for word, count in sorted(use.words_now(use.at).items())}
            if name in have_words
            else {},
        )
        for name, use in sorted(kept.items())
    }
    file = _File(FORMAT.name, FORMAT.version, tools, origin, seen)
    write_state(path, msgspec.json.encode(file), limits.USAGE)
    return tools


def forget(path: str, names: Collection[str] | None, now: float) -> tuple[str, ...]:
    """Removes the counts of ``names``, or all. Returns the names that had counts. Raises OSError,
    UnusableUsageFileError.
    """
    kept, _ = load(path)
    gone = tuple(sorted(kept if names is None else set(names) & kept.keys()))
    if names is None and marks_of(path) != Marks():  # else all that others have told would be new
        save(path, {}, now)
    elif names is None:
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
    elif gone:
        save(path, {name: use for name, use in kept.items() if name not in gone}, now)
    return gone


def learns_words(config: Config) -> bool:
    """Whether the words of searches are learned: not where several people use this mcpzip, because what one
    searches for would change what others find.
    """
    return config.search.learn is True and not config.http.has_people


def _with_sound_words(use: UseCount) -> UseCount:
    """``use`` with those of its words that mcpzip may have learned."""
    if not use.words:
        return use
    sound = {
        word: count
        for word, count in use.words.items()
        if 0 < count < 1e9 and len(word) <= limits.LEARNED_WORD and word.isalpha()
    }
    return UseCount(use.calls, use.at, sound)


def is_sound(use: UseCount) -> bool:
    """Whether mcpzip may have counted it."""
    return 0 < use.calls < 1e9 and abs(use.at) < 1e12
