"""Answers the handshake and `tools/list` while the rest of mcpzip is still being loaded.

The rules: (1) it imports nothing but the standard library's smallest parts, because a client waits for it;
(2) it answers only what it
can answer exactly as the session would: it says what the session said last time (`card`); (3) at the first
message it can't answer it stops, and keeps that message and all after it in order. What it answered is
replayed to the session in silence, so that the two can't disagree about what was negotiated.
"""

import gc
import json
import os
import sys

from mcpzip.config.paths import config_path
from mcpzip.server import card as cards
from mcpzip.system.startup_io import answer_while, open_if_closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from mcpzip.server.card import Card

    T = TypeVar("T")

SWITCH_INTERVAL = 0.0005
"""Seconds a busy thread (one that loads or builds an index) may keep the interpreter from a message."""

_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_STAMP = "io.modelcontextprotocol/"
_SOON = 1 << 18
"""Bytes below which it isn't asked whether they are too many: nothing is imported for that."""
_DEEPEST = 100
"""Brackets in a line that is read here: what is too deep far beyond, json and msgspec see differently."""


class FrontDesk:
    """Sans I/O: bytes in, replies out. ``answered`` is the bytes of the lines it answered.

    full: whether something came that only the session can answer.
    """

    def __init__(self, card: "Card") -> None:
        self.answered = b""
        self.full = False
        self._card = card
        self._era = ""
        self._kept = bytearray()

    @property
    def busy(self) -> bool:
        """Whether anything was answered, or waits for the session."""
        return bool(self.answered) or self.full

    @property
    def sated(self) -> bool:
        """Whether it holds as much as it may."""
        held = len(self._kept) + len(self.answered)
        if held <= _SOON:
            return False
        from mcpzip.model import limits

        return held >= limits.FRONT

    def receive(self, data: bytes) -> bytes:
        """The replies to whatever lines ``data`` completes."""
        self._kept += data
        out, done = b"", 0
        if self.full or b"\n" not in data:
            return out
        for line in bytes(self._kept).split(b"\n")[:-1]:
            reply = self._answer(line)
            if reply is None:
                self.full = True
                break
            out += reply
            done += len(line) + 1
        self.answered += self._kept[:done]
        del self._kept[:done]
        return out

    def rest(self) -> bytes:
        """All that the session has to deal with: the lines kept and the start of one that isn't complete."""
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
        result = self._result(method, params)
        if result is None:
            return None
        reply = {"jsonrpc": "2.0", "id": number, "result": result}
        return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _result(self, method: object, params: "dict[str, object]") -> "dict[str, object] | None":
        card, meta = self._card, params.get("_meta")
        keys = meta if isinstance(meta, dict) else {}
        modern = keys.get(_META_VERSION) == card["modern_version"] and isinstance(
            keys.get(_META_CAPABILITIES), dict
        )
        if method == "initialize" and not self._era and isinstance(params.get("protocolVersion"), str):
            self._era = "legacy"
            asked, versions = params["protocolVersion"], card["versions"]
            return {"protocolVersion": asked if asked in versions else versions[-1], **card["initialize"]}
        if modern and self._era != "legacy":
            answers = {"server/discover": card["discover"], "tools/list": card["modern_tools"]}
        elif self._era == "legacy" and not any(key.startswith(_STAMP) for key in keys):
            answers = {"ping": {}, "tools/list": card["tools"]}
        else:
            return None
        if not isinstance(method, str) or method not in answers or params.get("cursor") is not None:
            return None
        if modern:
            self._era = "modern"
        return answers[method]


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _echoes(number: object, line: bytes) -> bool:
    """Whether this id, decoded and encoded again, has the bytes it came in."""
    if isinstance(number, str):
        return b"\\" not in line
    return type(number) is int and not (number == 0 and b"-0" in line)


def attend(
    config: str, load: "Callable[[], T]", stdin: int = 0, stdout: int = 1
) -> "tuple[T, bytes, bytes, bool]":
    """Answers what it can while ``load`` runs; returns its result, what was answered, what was not, and
    whether input ended.

    Raises what ``load`` raises.
    """
    card = cards.read(config)
    if card is None:
        return load(), b"", b"", False
    desk = FrontDesk(card)
    loaded, ended = answer_while(load, desk, stdin, stdout)
    return loaded, desk.answered, desk.rest(), ended


def main(explicit_config: "str | None") -> int:
    """`mcpzip serve` over stdio. Returns the exit code."""
    gc.disable()  # nothing is garbage while all that is made is modules; `app.run` switches it on
    sys.setswitchinterval(SWITCH_INTERVAL)
    config = config_path(explicit_config, os.environ)
    for number in range(3):
        open_if_closed(number)
    if sys.stderr is None:  # `print` would take stdout, which is the protocol's
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115 - as long as we live

    def load() -> "Prepared":
        from mcpzip.server.app import prepare

        return prepare(config)

    try:
        prepared, answered, rest, ended = attend(config, load)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # the client left before we said a word
        return 0
    except Exception as error:
        if type(error).__name__ != "ConfigError":
            raise
        from mcpzip.server.complaint import complain

        complain(str(error))
        return 2
    from mcpzip.server.app import run

    return run(prepared, answered, rest, ended)


if TYPE_CHECKING:
    from mcpzip.server.app import Prepared
