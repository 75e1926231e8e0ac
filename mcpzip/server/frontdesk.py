"""Answers the handshake and `tools/list` while the rest of mcpzip is still being loaded.

The rules: (1) it imports nothing but the standard library's smallest parts, because a client waits for it;
(2) it answers only what it
can answer exactly as the session would: it says what the session said last time (`card`); (3) at the first
message it can't answer it stops, and keeps that message and all after it in order. What it answered is
replayed to the session in silence, so that the two can't disagree about what was negotiated.
"""

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

_CHUNK = 1 << 16
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class FrontDesk:
    """Sans I/O: bytes in, replies out. ``answered`` and ``kept`` are the bytes of the lines it did and did
    not answer.
    """

    def __init__(self, card: "Card") -> None:
        self.answered = b""
        self.kept = b""
        self._card = card
        self._partial = b""

    @property
    def full(self) -> bool:
        """Whether something came that only the session can answer."""
        return bool(self.kept)

    def receive(self, data: bytes) -> bytes:
        """The replies to whatever lines ``data`` completes."""
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        out = b""
        for line in lines:
            reply = None if self.kept else self._answer(line)
            if reply is None:
                self.kept += line + b"\n"
            else:
                self.answered += line + b"\n"
                out += reply
        return out

    def rest(self) -> bytes:
        """All that the session has to deal with: the lines kept and the start of one that isn't complete."""
        return self.kept + self._partial

    def _answer(self, line: bytes) -> bytes | None:
        try:
            message = json.loads(line)
        except ValueError:
            return None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return None
        method, number = message.get("method"), message.get("id")
        if method == "notifications/initialized" and "id" not in message:
            return b""
        if type(number) not in (int, str) or not isinstance(message.get("params", {}), dict):
            return None
        result = self._result(method, message.get("params", {}))
        if result is None:
            return None
        reply = {"jsonrpc": "2.0", "id": number, "result": result}
        try:
            return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        except UnicodeEncodeError:
            return None

    def _result(self, method: object, params: "dict[str, object]") -> "dict[str, object] | None":
        card, meta = self._card, params.get("_meta", {})
        modern = isinstance(meta, dict) and (
            meta.get(_META_VERSION) == card["modern_version"]
            and isinstance(meta.get(_META_CAPABILITIES), dict)
        )
        stamped = isinstance(meta, dict) and any(
            str(key).startswith("io.modelcontextprotocol/") for key in meta
        )
        if method == "initialize" and not self.answered and isinstance(params.get("protocolVersion"), str):
            versions = card["versions"]
            asked = params["protocolVersion"]
            return {"protocolVersion": asked if asked in versions else versions[-1], **card["initialize"]}
        if method == "server/discover" and modern:
            return card["discover"]
        if method == "tools/list" and params.get("cursor") is None:
            if modern:
                return card["modern_tools"]
            return card["tools"] if self.answered and not stamped else None
        if method == "ping" and self.answered and not stamped:
            return {}
        return None


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


def main(explicit_config: "str | None") -> int:
    """`mcpzip serve` over stdio. Returns the exit code."""
    config = config_path(explicit_config, os.environ)

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
