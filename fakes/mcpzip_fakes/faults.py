"""The faults, as a table, and when they fire.

The rule: a fault is a row of `KINDS`. A row has the stage at which it acts, its transports, and its options
with their defaults. Code that plays faults gets those that fire *now* from a `Plan` and looks up its action
by kind; no other code branches on a fault.

Stages, in the order of a process's life:

    start     once, before anything is read
    request   a request has been read, but not handled
    answer    the engine computes the answer
    reply     the answer is ready and is sent
    end       the client has closed its side
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Struct

from mcpzip.wire import INTERNAL_ERROR

STDIO = frozenset({"stdio"})
STREAMABLE = frozenset({"http"})
HTTP = frozenset({"http", "sse"})
EVERY = STDIO | HTTP


class Kind(NamedTuple):
    """One row of the table.

    options: option name -> default. ends: it ends the process, so the server can't run in a thread.
    only: the method that it affects if a fault names neither method nor tool ("" = every request).
    """

    stage: str
    over: frozenset[str]
    about: str
    options: Mapping[str, object] = {}
    only: str = ""
    ends: bool = False


KINDS: Mapping[str, Kind] = {
    "slow-start": Kind(
        "start",
        EVERY,
        "sleeps before it reads anything; over stdio it holds memory MB, and burns busy seconds first",
        {"seconds": 2.0, "memory": 0, "busy": 0.0},
    ),
    "exit-at-once": Kind(
        "start",
        STDIO,
        "writes text to stderr and exits",
        {"code": 1, "text": "fake: no token, giving up"},
        ends=True,
    ),
    "banner": Kind(
        "start", STDIO, "prints text on stdout first", {"text": "Server running on stdio, version 1.0.0"}
    ),
    "stderr": Kind(
        "start",
        STDIO,
        "writes count lines to stderr first",
        {"text": "[warn] the token expires soon", "count": 1},
    ),
    "fork": Kind(
        "start",
        STDIO,
        "starts a grandchild that ignores SIGTERM and SIGHUP, for seconds; its pid is in the record",
        {"seconds": 120.0, "own_session": False, "hold_output": False},
        ends=True,
    ),
    "ignore-sigterm": Kind("start", STDIO, "ignores SIGTERM", ends=True),
    "silence": Kind("request", EVERY, "never answers"),
    "hang": Kind("request", HTTP, "takes every HTTP request, GET and DELETE too, and sends not a byte"),
    "status": Kind(
        "request",
        HTTP,
        "answers with an HTTP status",
        {"status": 500, "headers": {}, "text": ""},
    ),
    "interim": Kind(
        "request",
        HTTP,
        "sends count interim answers (103; 0: without end) before its own",
        {"count": 0},
        only="tools/call",
    ),
    "strict-handshake": Kind(
        "request", STDIO, "exits on any request before initialize", {"code": 1}, ends=True
    ),
    "crash": Kind(
        "request",
        EVERY,
        "exits before, in the middle of or after a reply",
        {"when": "before", "code": 1, "text": ""},
        only="tools/call",
        ends=True,
    ),
    "redirect": Kind(
        "request",
        HTTP,
        "redirects to itself by another path (to = same) or on another origin (to = other)",
        {"status": 307, "to": "same"},
    ),
    "token": Kind(
        "request",
        HTTP,
        "answers status to a bearer token that is refused, or not among the accepted if any are named",
        {"status": 401, "accept": (), "refuse": (), "text": "The token is not valid any more"},
    ),
    "forget-session": Kind(
        "request",
        STREAMABLE,
        "answers 404 to this request and to all later ones of its session",
        only="tools/call",
    ),
    "cut": Kind(
        "request",
        HTTP,
        "cuts the connection before, in the middle of or after a reply, and lives on; clean: in good order",
        {"when": "middle", "clean": False},
        only="tools/call",
    ),
    "error": Kind(
        "answer",
        EVERY,
        "answers with a JSON-RPC error",
        {"code": INTERNAL_ERROR, "message": "Internal error", "data": UNSET},
    ),
    "flood": Kind(
        "answer",
        EVERY,
        "before it answers it sends count messages of what, each with size characters and keys members",
        {"what": "progress", "count": 1_000, "size": 100, "keys": 0},
        only="tools/call",
    ),
    "hostile-text": Kind(
        "answer",
        EVERY,
        "ends every text that a person may read with escapes, markup, a forged line and bidi controls",
        {"text": None},
    ),
    "schema-bomb": Kind(
        "answer",
        EVERY,
        "the first tool, or the one called name, has a schema that is costly to read",
        {"shape": "refs", "size": 100_000, "count": 900, "name": ""},
        only="tools/list",
    ),
    "long-name": Kind(
        "answer", EVERY, "one tool more, whose name has size characters", {"size": 300_000}, only="tools/list"
    ),
    "endless-pages": Kind(
        "answer",
        EVERY,
        "every page has a fresh cursor, and one thing of size characters; count pages more (0: for ever)",
        {"size": 1_000_000, "count": 0},
        only="tools/list",
    ),
    "cursor-loop": Kind("answer", EVERY, "the last page points back to the first", only="tools/list"),
    "empty-cursor": Kind("answer", EVERY, 'the cursor of the second page is ""', only="tools/list"),
    "list-changed": Kind(
        "answer",
        EVERY,
        "after its answer the tools become changed_tools and count notifications say so",
        {"count": 1},
        only="tools/call",
    ),
    "junk": Kind(
        "reply", EVERY, "writes a line that is not JSON before the reply", {"text": "DEBUG: 200 OK"}
    ),
    "invalid-utf8": Kind("reply", EVERY, "writes a line that is not UTF-8 before the reply"),
    "wrong-id": Kind("reply", EVERY, "answers under an id nobody used", only="tools/call"),
    "duplicate": Kind("reply", EVERY, "answers twice", only="tools/call"),
    "huge": Kind("reply", EVERY, "pads the reply with size spaces", {"size": 70_000_000}, only="tools/call"),
    "endless": Kind(
        "reply",
        EVERY,
        "the reply with size spaces in it, made while it goes out: a line, an event or a body without end",
        {"size": 1_000_000_000},
        only="tools/call",
    ),
    "gzip-bomb": Kind(
        "reply",
        STREAMABLE,
        "the reply with size spaces in it, compressed whatever the client accepts",
        {"size": 600_000_000},
        only="tools/call",
    ),
    "many-keys": Kind(
        "reply",
        EVERY,
        "the result, its _meta, its content or an error has count members more, and a lone surrogate",
        {"count": 100_000, "where": "result"},
        only="tools/call",
    ),
    "torn": Kind(
        "reply", EVERY, "writes the reply in count pieces, seconds apart", {"count": 3, "seconds": 0.01}
    ),
    "ignore-eof": Kind(
        "end", STDIO, "stays when stdin is closed, for seconds", {"seconds": 120.0}, ends=True
    ),
}

_MATCHING = ("kind", "method", "tool", "nth", "times", "run", "until")
_OPTIONS = (
    "when",
    "seconds",
    "code",
    "text",
    "message",
    "data",
    "status",
    "headers",
    "count",
    "size",
    "to",
    "accept",
    "refuse",
    "clean",
    "own_session",
    "hold_output",
    "memory",
    "busy",
    "shape",
    "name",
    "what",
    "keys",
    "where",
)
_WORDS = {
    "when": ("before", "middle", "after"),
    "to": ("same", "other"),
    "shape": ("refs", "all-of", "pointer", "anchor", "deep"),
    "what": ("progress", "log", "list-changed", "ping", "request-roots"),
    "where": ("result", "meta", "content", "error"),
}
"""The values of options that are one of several words."""
_CARRIED = frozenset({"hang", "status", "redirect", "token"})
"""The faults of HTTP itself, which affect every HTTP request."""


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One fault. Which requests it affects: ``method``, ``tool`` (a tool's name; implies tools/call), ``nth``
    (from the n-th such request of the process on, counted from 1) and ``times`` (the number of requests; by
    default one with ``nth``, else all). ``run``: only in the n-th process that writes to the same record.
    ``until``: only while no file of this path exists, so that creating the file ends the fault.

    The rest are options; `KINDS` has the options of each kind and their defaults. Raises ValueError if one is
    invalid.
    """

    kind: str
    method: str | None = None
    tool: str | None = None
    nth: int | None = None
    times: int | None = None
    run: int | None = None
    until: str | None = None

    when: str | None = None
    seconds: float | None = None
    code: int | None = None
    text: str | None = None
    message: str | None = None
    data: object = UNSET
    status: int | None = None
    headers: dict[str, str] | None = None
    count: int | None = None
    size: int | None = None
    to: str | None = None
    accept: tuple[str, ...] | None = None
    refuse: tuple[str, ...] | None = None
    clean: bool | None = None
    own_session: bool | None = None
    hold_output: bool | None = None
    memory: int | None = None
    busy: float | None = None
    shape: str | None = None
    name: str | None = None
    what: str | None = None
    keys: int | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        row = KINDS.get(self.kind)
        if row is None:
            raise ValueError(f"there is no fault {self.kind!r}; the faults are {', '.join(KINDS)}")
        for option in _OPTIONS:
            if getattr(self, option) not in (None, UNSET) and option not in row.options:
                takes = ", ".join(row.options) or "none"
                raise ValueError(f"the fault {self.kind!r} has no option {option!r}; its options: {takes}")
        for option, words in _WORDS.items():
            if (said := getattr(self, option)) not in (None, *words):
                *first, last = words
                raise ValueError(f"{option} is {said!r}; write {', '.join(first)} or {last}")
        if row.stage in ("start", "end") and (self.method or self.tool or self.nth or self.times):
            raise ValueError(
                f"the fault {self.kind!r} is not about a request; remove method, tool, nth and times"
            )
        if self.tool and self.method not in (None, "tools/call"):
            raise ValueError(f"tool is set and method is {self.method!r}; a tool is met by tools/call only")

    @property
    def row(self) -> Kind:
        """Its row in `KINDS`."""
        return KINDS[self.kind]

    @property
    def mended(self) -> bool:
        """Whether the file ``until`` exists, so that the fault is over."""
        return self.until is not None and os.path.exists(self.until)

    def matches(self, method: str, tool: str | None) -> bool:
        """Whether the fault affects a request for ``method`` (of ``tool``)."""
        if self.tool is not None:
            return tool == self.tool
        wanted = self.row.only if self.method is None else self.method
        return wanted in ("", method)

    def fires_on(self, meeting: int) -> bool:
        """Whether it fires on the ``meeting``-th request that it affects."""
        first = self.nth or 1
        if self.times is None:
            return meeting == first if self.nth else True
        return first <= meeting < first + self.times

    def number(self, option: str) -> float:
        """A numeric option, or its default."""
        value = self._option(option)
        return value if isinstance(value, int | float) else 0

    def string(self, option: str) -> str:
        """A text option, or its default."""
        value = self._option(option)
        return value if isinstance(value, str) else ""

    def flag(self, option: str) -> bool:
        """A yes/no option, or its default."""
        return self._option(option) is True

    def words(self, option: str) -> tuple[str, ...]:
        """An option that lists texts, or its default."""
        value = self._option(option)
        return value if isinstance(value, tuple) else ()

    def _option(self, option: str) -> object:
        value: object = getattr(self, option)
        return self.row.options.get(option) if value is None else value


class Plan:
    """The faults of one process, and how many requests each has affected.

    run: the number of this process on its record, from 1.
    """

    def __init__(self, faults: Sequence[Fault], run: int = 1) -> None:
        self._faults = tuple(fault for fault in faults if fault.run in (None, run))
        self._met = [0] * len(self._faults)

    def at(self, stage: str) -> list[Fault]:
        """The faults of a stage without a request (``start``, ``end``)."""
        return [fault for fault in self._faults if fault.row.stage == stage and not fault.mended]

    def meet(self, method: str, params: Mapping[str, object], *, carrier: bool = False) -> "Firing":
        """Count one request, and return the faults that fire on it. Call it once a request.

        carrier: it is an HTTP request without a JSON-RPC request, which only the faults of HTTP itself
        affect.
        """
        if not self._faults:
            return NOTHING
        name = params.get("name") if method == "tools/call" else None
        tool = name if isinstance(name, str) else None
        firing = []
        for index, fault in enumerate(self._faults):
            if carrier and fault.kind not in _CARRIED:
                continue
            if fault.row.stage not in ("request", "answer", "reply") or fault.mended:
                continue
            if fault.matches(method, tool):
                self._met[index] += 1
                if fault.fires_on(self._met[index]):
                    firing.append(fault)
        return Firing(tuple(firing))


class Firing(Struct, frozen=True):
    """The faults that fire on one request."""

    faults: tuple[Fault, ...] = ()

    def get(self, kind: str) -> Fault | None:
        """The first of this kind, or None."""
        return next((fault for fault in self.faults if fault.kind == kind), None)


NOTHING = Firing()


def option_keys() -> tuple[str, ...]:
    """Every key a fault table may have."""
    return _MATCHING + _OPTIONS


def fault(kind: str, **options: object) -> Fault:
    """A checked fault: ``fault("crash", when="middle", tool="pay")``. Raises ValueError if it is invalid."""
    try:
        return msgspec.convert({"kind": kind, **options}, Fault)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
