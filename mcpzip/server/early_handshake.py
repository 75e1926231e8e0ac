"""Answers the handshake and `tools/list` while the rest of mcpzip is still being loaded.

A client waits for it, so it imports only small parts of the standard library. It answers what it can answer
exactly as the session would, from the results of the last start (`handshake_cache`) or of the config alone
(`config_results`). At the first message
that it can't answer it stops, and keeps that message and all after it, in order. The messages it answered are
replayed to the session, whose responses are dropped, so that both agree about what was negotiated.
"""

import gc
import json
import os
import sys

from mcpzip.config.paths import config_path, find_project, is_named
from mcpzip.server import handshake_cache
from mcpzip.system.lean_imports import import_asyncio, import_msgspec
from mcpzip.system.startup_io import answer_while, open_if_closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from mcpzip.server.handshake_cache import HandshakeCache

    T = TypeVar("T")
    Search = Callable[[bytes, bool], bytes | None]
    Offer = Callable[[Callable[[], Search | None]], None]
    """Takes what makes the search that `EarlyHandshake.search` is, and calls it if somebody waits for it."""

SWITCH_INTERVAL = 0.0005
"""Seconds for which a busy thread (one that imports, or builds an index) may delay a message."""

_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_STAMP = "io.modelcontextprotocol/"
_SOON = 1 << 18
"""Bytes up to which the limit isn't checked, because checking it takes an import."""
_SEARCH = "search_tools"
_DEEPEST = 100
"""Lines with more brackets than this go to the full session, because json and msgspec disagree about the
maximum depth."""


class EarlyHandshake:
    """The early handshake, without I/O: bytes in, responses out.

    answered: the lines it answered; stopped: whether there was a message that only the session can answer.
    wants_search: whether it waits for `search`, which answers calls of `search_tools`. That takes the
    arguments as JSON text and whether the client is of the modern era, and returns the result, or None.
    """

    def __init__(self, cache: "HandshakeCache", *, may_search: bool = False) -> None:
        """may_search: whether there may be a search later."""
        self.answered = b""
        self.stopped = self.wants_search = False
        self.search: Search | None = None
        self._may_search = may_search
        self._cache = cache
        self._era = ""
        self._kept = bytearray()

    @property
    def busy(self) -> bool:
        """Whether anything was answered, or waits for the session."""
        return bool(self.answered) or self.stopped or self.wants_search

    @property
    def sated(self) -> bool:
        """Whether it holds as many bytes as it may."""
        held = len(self._kept) + len(self.answered)
        if held <= _SOON:
            return False
        from mcpzip.model import limits

        return held >= limits.FRONT

    def receive(self, data: bytes) -> bytes:
        """The responses to the lines that ``data`` completes."""
        self._kept += data
        return self._proceed() if b"\n" in data else b""

    def resume(self) -> bytes:
        """The responses to the lines that waited for a search. There will be no other search."""
        self._may_search = self.wants_search = False
        return self._proceed()

    def _proceed(self) -> bytes:
        out, done = b"", 0
        if self.stopped or self.wants_search:
            return out
        for line in bytes(self._kept).split(b"\n")[:-1]:
            reply = self._answer(line)
            if reply is None:
                self.stopped = not self.wants_search
                break
            out += reply
            done += len(line) + 1
        self.answered += self._kept[:done]
        del self._kept[:done]
        return out

    def rest(self) -> bytes:
        """What the session has to handle: the lines that were kept, and an incomplete one."""
        return bytes(self._kept)

    def _answer(self, line: bytes) -> bytes | None:
        if line.count(b"{") + line.count(b"[") > _DEEPEST:
            return None
        try:
            # Text, not bytes: of those json would also take UTF-16. And NaN is no JSON to anybody else.
            message = json.loads(line.decode(), parse_constant=_refuse)
        except ValueError:
            return None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return None
        params = message.get("params", {})
        if not isinstance(params, dict) or "result" in message or "error" in message:
            return None
        method = message.get("method")
        if "id" not in message:
            return b"" if method == "notifications/initialized" else None
        number = message["id"]
        if not _echoes(number, line):
            return None
        if method == "tools/call":
            return self._called(json.dumps(number, ensure_ascii=False), params)
        result = self._result(method, params)
        if result is None:
            return None
        reply = {"jsonrpc": "2.0", "id": number, "result": result}
        return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _called(self, number: str, params: "dict[str, object]") -> bytes | None:
        """The response to a call, if it is of `search_tools`."""
        meta = params.get("_meta")
        modern = self._era != "legacy" and self._is_modern(meta)
        fits = modern or (self._era == "legacy" and not _is_stamped(meta))
        if not fits or params.get("name") != _SEARCH or not isinstance(params.get("arguments"), dict):
            return None
        if self.search is None:
            self.wants_search = self._may_search
            return None
        result = self.search(json.dumps(params["arguments"]).encode(), modern)
        if result is None:
            return None
        if modern:
            self._era = "modern"
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (number.encode(), result)

    def _is_modern(self, meta: object) -> bool:
        keys = meta if isinstance(meta, dict) else {}
        return keys.get(_META_VERSION) == self._cache["modern_version"] and isinstance(
            keys.get(_META_CAPABILITIES), dict
        )

    def _result(self, method: object, params: "dict[str, object]") -> "dict[str, object] | None":
        cache, meta = self._cache, params.get("_meta")
        modern = self._is_modern(meta)
        if method == "initialize" and not self._era and isinstance(params.get("protocolVersion"), str):
            self._era = "legacy"
            asked, versions = params["protocolVersion"], cache["versions"]
            return {"protocolVersion": asked if asked in versions else versions[-1], **cache["initialize"]}
        if modern and self._era != "legacy":
            answers = {"server/discover": cache["discover"], "tools/list": cache["modern_tools"]}
        elif self._era == "legacy" and not _is_stamped(meta):
            answers = {"ping": {}, "tools/list": cache["tools"]}
        else:
            return None
        if not isinstance(method, str) or method not in answers or params.get("cursor") is not None:
            return None
        if modern:
            self._era = "modern"
        return answers[method]


def _is_stamped(meta: object) -> bool:
    """Whether ``_meta`` says what only a client of the modern era says."""
    return isinstance(meta, dict) and any(key.startswith(_STAMP) for key in meta)


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _echoes(number: object, line: bytes) -> bool:
    """Whether this id, decoded and encoded again, has the same bytes."""
    if isinstance(number, str):
        return b"\\" not in line
    return type(number) is int and not (number == 0 and b"-0" in line)


def known_results(config: str, project: str, *, required: bool) -> "HandshakeCache | None":
    """The results of the last start, or those that follow from the config. required: whether a missing
    config is an error.
    """
    cache = handshake_cache.read(config, project)
    if cache is None:
        from mcpzip.server import config_results  # only where there is no cache

        cache = config_results.results(config, project, required=required)
    return cache


def answer_early(
    config: str,
    project: str,
    load: "Callable[[Offer], T]",
    stdin: int = 0,
    stdout: int = 1,
    *,
    required: bool = True,
) -> "tuple[T, bytes, bytes, bool]":
    """Answers what it can while ``load`` runs, which offers a search on its way; returns its result, what was
    answered, what was not, and whether input ended.

    project: the path of the project's file, or "". required: see `known_results`.

    Raises what ``load`` raises.
    """
    cache = known_results(config, project, required=required)
    if cache is None:
        return load(lambda make: None), b"", b"", False
    handshake = EarlyHandshake(cache, may_search=True)

    def work(resume: "Callable[[], None]") -> "T":
        def offer(make: "Callable[[], Search | None]") -> None:
            if handshake.wants_search:
                handshake.search = make()
                resume()

        return load(offer)

    loaded, ended = answer_while(work, handshake, stdin, stdout)
    return loaded, handshake.answered, handshake.rest(), ended


class Unserved:
    """What a client has sent before it is served here: ``answered``, the lines that were answered, ``rest``,
    what comes after them, and whether its input has ``ended``.
    """

    def __init__(self, answered: bytes, rest: bytes, ended: bool) -> None:
        self.answered, self.rest, self.ended = answered, rest, ended


def main(explicit_config: "str | None", unserved: "Unserved | None" = None) -> int:
    """`mcpzip serve` over stdio, without a daemon. unserved: of a client that was served otherwise before.
    Returns the exit code.
    """
    gc.disable()  # nothing is garbage while all that is made is modules; `app.run` switches it on
    sys.setswitchinterval(SWITCH_INTERVAL)
    config, project = config_path(explicit_config, os.environ), find_project(os.environ)
    required = is_named(explicit_config, os.environ)
    for number in range(3):
        open_if_closed(number)
    if sys.stderr is None:  # `print` would take stdout, which is the protocol's
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115 - as long as we live

    def load(offer: "Offer") -> "Prepared":
        import_msgspec()
        from mcpzip.server.prepared import prepare

        prepared = prepare(config, project, required=required)

        def search() -> "Search | None":
            from mcpzip.server.early_search import EarlySearch

            nonlocal prepared
            early = EarlySearch.of(prepared)
            if early is None:
                return None
            prepared = prepared.with_searcher(early.searcher)
            return early.answer

        offer(search)
        import_asyncio()

        return prepared

    try:
        if unserved is None or not (unserved.answered or unserved.rest or unserved.ended):
            prepared, answered, rest, ended = answer_early(config, project, load, required=required)
        else:
            prepared = load(lambda make: None)
            answered, rest, ended = unserved.answered, unserved.rest, unserved.ended
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # the client left before any response
        return 0
    except Exception as error:
        if type(error).__name__ != "ConfigError":
            raise
        from mcpzip.server.log import log_config_error
        from mcpzip.server.stderr import warn

        warn(str(error))
        log_config_error(config, str(error))
        return 2
    from mcpzip.server.stdio import run

    return run(prepared, answered, rest, ended)


if TYPE_CHECKING:
    from mcpzip.server.prepared import Prepared
