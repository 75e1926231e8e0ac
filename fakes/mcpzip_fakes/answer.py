"""The answer of a tool, as data, and the result made from it.

The rule: where a scenario has a JSON value, a string there is JSON *text* (TOML has no null, and deep tables
are hard to read). To answer a string, quote it: ``structuredContent = '"done"'``.

With ``fill = true`` every ``{name}`` in ``text``, ``json``, ``content``, ``structuredContent`` and ``error``,
and in the texts of ``progress``, ``log`` and ``notify``, becomes the argument of that name; a string that is
only ``{name}`` becomes the argument itself, with its type.
``{#}`` is the number of this call of this tool, from 1. A missing argument is null, and empty in a longer
string. The client's answer to a question has the question's name, and dots select members:
``{user.content.city}``. With ``made`` the made values (`mcpzip_fakes.made`) have placeholders too, and take
precedence over arguments; ``fill`` is then always on.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct

from mcpzip_fakes import made
from mcpzip_fakes.made import Made

JsonObject = dict[str, object]

PLACE = re.compile(r"\{(#|[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\}")
"""A placeholder in a text."""

_KINDS = ("tools", "prompts", "resources")


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One progress notification. ``wait``: seconds before it."""

    progress: float
    total: float | None = None
    message: str | None = None
    wait: float = 0.0


class Log(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One log notification, sent before the answer. ``data`` is a plain value here, never JSON text.
    ``wait``: seconds before it."""

    level: str = "info"
    data: object = ""
    logger: str | None = None
    wait: float = 0.0


class Notice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Any other notification, known to MCP or not, sent before the answer. params: a JSON value, or its
    text."""

    method: str
    params: object = UNSET
    wait: float = 0.0


class Refusal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A JSON-RPC error instead of a result. ``data``: a JSON value, or its text."""

    code: int
    message: str = ""
    data: object = UNSET


class Ask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question to the client in the middle of a request.

    method: ``sampling/createMessage``, ``elicitation/create`` or ``roots/list``; params: a JSON value, or its
    text; name: of its answer in placeholders; round: the questions of one round are sent together, after the
    answers to the round before; optional: skipped if the client lacks the capability. On a legacy connection
    it is a request; on a modern one it is in a result of type ``input_required`` (MRTR).
    """

    method: str
    params: object = UNSET
    name: str = "question"
    round: int = 1
    optional: bool = False

    def __post_init__(self) -> None:
        check_json("params", self.params)


Asks = Ask | tuple[Ask, ...] | None


def rounds(asks: Asks) -> tuple[tuple[Ask, ...], ...]:
    """The questions by round, in their order."""
    every = () if asks is None else (asks,) if isinstance(asks, Ask) else asks
    numbers = sorted({ask.round for ask in every})
    return tuple(tuple(ask for ask in every if ask.round == number) for number in numbers)


class Answer(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"structured": "structuredContent", "is_error": "isError"},
):
    """A tool's answer. With none of the first group the tool answers with the text ``ok``.

    echo: the arguments, as the received JSON text; text: one text block; json: one text block with this
    value's JSON; content: the content blocks; structured: ``structuredContent`` (and, as the specification
    requires, its JSON as text if there is no other content); size: one text block of so many characters; raw:
    the whole result as JSON text, sent byte for byte over stdio; error: a JSON-RPC error; caller: one text
    block with the JSON of who called (`engine.Engine.caller`).

    is_error, fill, delay (seconds before the answer), progress (steps, or their number, spread over the
    delay), log, notify. made: values of a wished size, by the name of their placeholder. ask: questions to
    the client before the answer; if nothing else is set, the answer is the client's answers. state: whether a
    modern client gets a ``requestState`` with them, without which its answers are refused. hangs_up: over
    Streamable HTTP, the seconds after which its stream is closed for a client of 2025-11-25, which then must
    resume it; the delay follows after that, on any transport. hold: after the delay, wait until the test
    releases the call (`holds`). ignores_cancel: the call goes on, and asks its questions, although it was
    cancelled; it then gets no answer.
    changes: the lists (``tools``, ``prompts``, ``resources``) that change after the answer; updates: the URIs
    of resources that change then.
    """

    echo: bool = False
    text: str | None = None
    json: object = UNSET
    content: object = UNSET
    structured: object = UNSET
    size: int | None = None
    raw: str | None = None
    error: Refusal | None = None
    caller: bool = False

    ask: Asks = None
    state: bool = True
    is_error: bool = False
    fill: bool = False
    made: dict[str, Made] = {}
    delay: float = 0.0
    hold: bool = False
    ignores_cancel: bool = False
    hangs_up: float | None = None
    progress: int | tuple[Step, ...] = 0
    log: tuple[Log, ...] = ()
    notify: tuple[Notice, ...] = ()
    changes: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key, value in (
            ("json", self.json),
            ("content", self.content),
            ("structuredContent", self.structured),
        ):
            check_json(key, value)
        if self.raw is not None:
            check_json("raw", self.raw)
        if self.error is not None:
            check_json("error.data", self.error.data)
        for notice in self.notify:
            check_json("notify.params", notice.params)
        for kind in self.changes:
            if kind not in _KINDS:
                raise ValueError(f"changes names {kind!r}; choose from {', '.join(_KINDS)}")
        if len(self.made) > made.MOST:
            raise ValueError(f"made has {len(self.made)} values; make {made.MOST} at most")
        for name in self.made:
            if not (name.isascii() and name.isidentifier()):
                raise ValueError(f"made has the name {name!r}; write letters, digits and underscores")
        if self.delay < 0:
            raise ValueError("delay is negative; write seconds, 0 or more")
        if self.size is not None and self.size < 0:
            raise ValueError("size is negative; write a number of characters, 0 or more")

    def steps(self) -> tuple[Step, ...]:
        """The progress notifications; a number means that many, spread evenly over ``delay``."""
        if not isinstance(self.progress, int):
            return self.progress
        count = self.progress
        return tuple(Step(progress=n, total=count, wait=self.delay / count) for n in range(1, count + 1))

    @property
    def says_nothing(self) -> bool:
        """Whether its answer can only be the answers to its questions."""
        told = (self.text, self.size, self.raw)
        values = (self.json, self.content, self.structured)
        return (
            not self.echo
            and not self.caller
            and all(it is None for it in told)
            and all(it is UNSET for it in values)
        )

    def result(self, arguments: Mapping[str, object], sent: bytes, call: int) -> JsonObject | bytes:
        """The result of one call: an object to encode, or (for ``raw``) its JSON text.

        arguments: decoded; sent: their received JSON text; call: the number of this call, from 1.
        """
        if self.raw is not None:
            return self.raw.encode()
        if self.made:
            arguments = {**arguments, **made.values(self.made)}
        result: JsonObject = {"content": self._blocks(arguments, sent, call)}
        if self.structured is not UNSET:
            result["structuredContent"] = self._filled(json_value(self.structured), arguments, call)
        if self.is_error:
            result["isError"] = True
        return result

    def _blocks(self, arguments: Mapping[str, object], sent: bytes, call: int) -> object:
        if self.content is not UNSET:
            return self._filled(json_value(self.content), arguments, call)
        return [{"type": "text", "text": self._text(arguments, sent, call)}]

    def _text(self, arguments: Mapping[str, object], sent: bytes, call: int) -> str:
        if self.echo:
            return sent.decode()
        if self.text is not None:
            return (
                str(PLACE.sub(lambda place: _spelled(place, arguments, call), self.text))
                if self.fill or self.made
                else self.text
            )
        if self.size is not None:
            return "x" * self.size
        for value in (self.json, self.structured):
            if value is not UNSET:
                return msgspec.json.encode(self._filled(json_value(value), arguments, call)).decode()
        return "ok"

    def _filled(self, value: object, arguments: Mapping[str, object], call: int) -> object:
        return fill(value, arguments, call) if self.fill or self.made else value


def json_value(value: object) -> object:
    """``value``, decoded if it is JSON text."""
    return msgspec.json.decode(value) if isinstance(value, str) else value


def fill(value: object, arguments: Mapping[str, object], call: int = 1) -> object:
    """``value`` with each ``{name}`` in its strings replaced (see the top of this file)."""
    if isinstance(value, str):
        whole = PLACE.fullmatch(value)
        if whole:
            return call if whole[1] == "#" else _found(whole[1], arguments)
        return PLACE.sub(lambda place: _spelled(place, arguments, call), value)
    if isinstance(value, list):
        return [fill(item, arguments, call) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, arguments, call) for key, item in value.items()}
    return value


def _found(path: str, values: Mapping[str, object], missing: object = None) -> object:
    """The value at the end of a dotted path."""
    found: object = values
    for name in path.split("."):
        found = found.get(name, missing) if isinstance(found, Mapping) else missing
    return found


def _spelled(place: re.Match[str], arguments: Mapping[str, object], call: int) -> str:
    value = call if place[1] == "#" else _found(place[1], arguments, "")
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def check_json(key: str, value: object) -> None:
    """Raises ValueError if ``value`` is a string that is not JSON text; ``key``: its key, for the message."""
    if isinstance(value, str):
        try:
            msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(
                f"{key} is not JSON text ({error}); write JSON, a string in quotes of its own"
            ) from None
