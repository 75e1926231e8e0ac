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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from mcpzip.server.card import Card

    T = TypeVar("T")

SWITCH_INTERVAL = 0.0005
"""Seconds a busy thread (one that loads or builds an index) may keep the interpreter from a message."""

_CHUNK = 1 << 16
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


_STAMP = "io.modelcontextprotocol/"
_DEEPEST = 100
"""Brackets in a line that is read here. How deep is too deep, json and msgspec judge differently."""


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
    ended = _serve(desk, stdin, stdout) if os.name == "nt" else False
    if os.name == "nt":
        return load(), desk.answered, desk.rest(), ended
    loaded, ended = _serve_while(desk, load, stdin, stdout)
    return loaded, desk.answered, desk.rest(), ended


def _serve(desk: FrontDesk, stdin: int, stdout: int) -> bool:
    """Without a selector for pipes: answer the first message, then let the rest wait the moment that loading
    takes.
    """
    while not desk.answered and not desk.full:
        data = os.read(stdin, _CHUNK)
        if not data:
            return True
        _write(stdout, desk.receive(data))
    return False


def _serve_while(desk: FrontDesk, load: "Callable[[], T]", stdin: int, stdout: int) -> "tuple[T, bool]":
    import select
    import threading

    outcome: list[T] = []
    failure: list[BaseException] = []
    bell, ring = os.pipe()

    def work() -> None:
        try:
            outcome.append(load())
        except BaseException as error:
            failure.append(error)
        finally:
            os.write(ring, b"!")

    loader = threading.Thread(target=work, name="load", daemon=True)
    ended = False
    started = False
    try:
        while True:
            # Until the first answer is out, loading would only compete with it for the interpreter.
            if not started and (desk.answered or desk.full or ended):
                loader.start()
                started = True
            waiting = [bell] if ended else [bell, stdin]
            ready = select.select(waiting, (), (), None if started else 0.2)[0]
            if bell in ready:
                break
            if stdin in ready:
                data = os.read(stdin, _CHUNK)
                ended = not data
                _write(stdout, desk.receive(data))
            elif not started:
                loader.start()
                started = True
    finally:
        if started:
            loader.join()
        os.close(bell)
        os.close(ring)
    if failure:
        raise failure[0]
    return outcome[0], ended


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _open_if_closed(fd: int) -> None:
    """A client may start us without one of the three: its number must not become some other file's."""
    try:
        os.fstat(fd)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


def main(explicit_config: "str | None") -> int:
    """`mcpzip serve` over stdio. Returns the exit code."""
    gc.disable()  # nothing is garbage while all that is made is modules; `app.run` switches it on
    sys.setswitchinterval(SWITCH_INTERVAL)
    config = config_path(explicit_config, os.environ)
    for number in range(3):
        _open_if_closed(number)
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
        print(f"mcpzip: {error}", file=sys.stderr)
        return 2
    from mcpzip.server.app import run

    return run(prepared, answered, rest, ended)


if TYPE_CHECKING:
    from mcpzip.server.app import Prepared
