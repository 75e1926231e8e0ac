"""A trace: what an agent's model was given and what it answered, request by request (pure)."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    """A call of a tool. arguments: JSON text as the model wrote it. is_own: the harness ran it itself, so no
    MCP proxy has seen it.
    """

    tool: str
    arguments: str
    is_own: bool = False


@dataclass(frozen=True)
class Result:
    """The result of ``call``. raw: a `CallToolResult` as JSON text, without what the harness added."""

    call: Call
    raw: bytes


@dataclass(frozen=True)
class Turn:
    """One request to the model. given: what is new in it, texts and results in their order. said: the words
    of the answer. calls: those of the answer.
    """

    given: tuple[str | Result, ...]
    said: str
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Trace:
    """name: of its file, and its number where the file has several. rest: results that no model has read."""

    name: str
    turns: tuple[Turn, ...]
    rest: tuple[Result, ...] = field(default=())

    def results(self) -> Iterator[Result]:
        """Yields all results in their order."""
        for turn in self.turns:
            yield from (each for each in turn.given if isinstance(each, Result))
        yield from self.rest


class Recorder:
    """Makes a trace of what happened, told in order."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._given: list[str | Result] = []
        self._said: list[str] = []
        self._calls: list[Call] = []
        self._open: dict[str, Call] = {}

    def text(self, text: str) -> None:
        """The model is given a text."""
        self._end_turn()
        self._given.append(text)

    def words(self, text: str) -> None:
        """The model answers."""
        if text:
            self._said.append(text)

    def call(self, key: str, call: Call) -> None:
        """The model calls a tool. key: of the call, to which its result refers."""
        self._calls.append(call)
        self._open[key] = call

    def result(self, key: str, raw: bytes) -> None:
        """The model is given the result of the call ``key``. Raises ValueError if there is no such call."""
        if (call := self._open.pop(key, None)) is None:
            raise ValueError("a result belongs to no call")
        self._end_turn()
        self._given.append(Result(call, raw))

    def trace(self, name: str) -> Trace:
        """What was told."""
        self._end_turn()
        return Trace(name, tuple(self._turns), tuple(e for e in self._given if isinstance(e, Result)))

    def _end_turn(self) -> None:
        if self._said or self._calls:
            self._turns.append(Turn(tuple(self._given), "\n".join(self._said), tuple(self._calls)))
            self._given, self._said, self._calls = [], [], []
