"""A fast MCP server over stdio, standard library only: the upstream of the benchmarks.

    python -I -S upstream.py [--seed N] [--tools N] [--silent-while FILE] [--wait SECONDS]

The rule: its own time must not hide the proxy's, so it concatenates answers as bytes and caches large ones.
Beside ``--tools`` generated tools (about 1.3 kB each) it has `echo` (``payload``), `blob` (``bytes``: a text
of that length) and `sleep` (``ms``). While FILE exists it reads everything and answers nothing. It reads
nothing in its first SECONDS.
"""

import heapq
import json
import os
import sys
import threading
import time

CHUNK = 1 << 16
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

VERBS = ("create", "list", "update", "delete", "archive", "export", "assign", "merge", "restore", "share")
NOUNS = ("invoice", "ticket", "message", "calendar", "document", "branch", "customer", "shipment", "payment",
         "meeting", "folder", "report", "contract", "pipeline", "campaign", "candidate", "device", "budget",
         "survey", "backup")  # fmt: skip
PARTS = ("owner", "status", "label", "region", "priority", "currency", "format", "channel", "deadline",
         "template")  # fmt: skip
KINDS = ("string", "integer", "boolean", "string", "number")

PLAIN: tuple[tuple[str, dict[str, dict[str, str]]], ...] = (
    ("echo", {"payload": {"type": "string", "description": "Text to send back"}}),
    ("blob", {"bytes": {"type": "integer", "description": "Length of the text to return"}}),
    ("sleep", {"ms": {"type": "number", "description": "Milliseconds until the answer"}}),
)


def name_of(number: int) -> str:
    """The unique name of the generated tool ``number``."""
    verb, noun = VERBS[number % len(VERBS)], NOUNS[number // len(VERBS) % len(NOUNS)]
    return f"{verb}_{noun}_{number}"


def generated(number: int) -> dict[str, object]:
    """A tool as a real server would list it."""
    verb, noun, *_ = name_of(number).split("_")
    properties: dict[str, object] = {
        f"{noun}_id": {"type": "string", "description": f"Identifier of the {noun} to {verb}."}
    }
    for step in range(7):
        part = PARTS[(number + step) % len(PARTS)]
        properties[f"{part}_{step}"] = {
            "type": KINDS[(number + step) % len(KINDS)],
            "description": f"The {part} that the {noun} has after the call; left as it is when not given.",
        }
    return {
        "name": name_of(number),
        "description": f"{verb.capitalize()} a {noun} of the workspace. Use it when the {noun} and its "
        f"workspace are known; to look one up take the list tool. Returns the {noun} with its identifier, "
        "status, owner and timestamps.",
        "inputSchema": {"type": "object", "properties": properties, "required": [f"{noun}_id"]},
    }


def listing(first: int, count: int) -> bytes:
    """The result of `tools/list` as JSON text."""
    plain = [{"name": name, "inputSchema": {"type": "object", "properties": props}} for name, props in PLAIN]
    tools = [*plain, *(generated(number) for number in range(first, first + count))]
    return json.dumps({"tools": tools}, separators=(",", ":")).encode()


class Clock:
    """Sends delayed answers, from a thread of its own."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, bytes]] = []
        self._count = 0
        self._changed = threading.Condition()
        self._started = False

    def send_at(self, moment: float, frame: bytes) -> None:
        with self._changed:
            self._count += 1
            heapq.heappush(self._due, (moment, self._count, frame))
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, daemon=True).start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    wait = self._due[0][0] - time.monotonic() if self._due else None
                    self._changed.wait(wait)
                frames = []
                while self._due and self._due[0][0] <= time.monotonic():
                    frames.append(heapq.heappop(self._due)[2])
            send(b"".join(frames))


_sending = threading.Lock()


def send(frame: bytes) -> None:
    with _sending:
        rest = memoryview(frame)
        while rest:
            rest = rest[os.write(1, rest) :]


class Server:
    """Answers one client."""

    def __init__(self, first: int, tools: int) -> None:
        self._first, self._tools = first, tools
        self._clock = Clock()
        self._blobs: dict[int, bytes] = {}

    def answer(self, line: bytes) -> bytes:
        """The frame to send at once, or none."""
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            return b""
        number = json.dumps(message["id"]).encode()
        params = message.get("params") or {}
        match message["method"]:
            case "tools/call":
                result = self._call(number, params["name"], params.get("arguments") or {})
                if result is None:
                    return b""
            case "initialize":
                asked = params.get("protocolVersion")
                version = asked if asked in LEGACY else LEGACY[-1]
                result = (
                    b'{"protocolVersion":"%b","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}'
                    % (version.encode())
                )
            case "tools/list":
                result = listing(self._first, self._tools)
            case "ping":
                result = b"{}"
            case _:
                return (
                    b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"no such method"}}\n' % number
                )
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (number, result)

    def _call(self, number: bytes, tool: str, arguments: dict[str, object]) -> bytes | None:
        match tool:
            case "echo":
                return text(json.dumps(arguments.get("payload", "")).encode())
            case "blob":
                size = int(str(arguments["bytes"]))
                if size not in self._blobs:
                    self._blobs[size] = text(
                        b'"%b"' % (b"lorem ipsum dolor sit amet " * (size // 27 + 1))[:size]
                    )
                return self._blobs[size]
            case "sleep":
                due = time.monotonic() + float(str(arguments["ms"])) / 1000
                self._clock.send_at(
                    due, b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (number, text(b'"slept"'))
                )
                return None
            case _:
                return text(b'"done"')


def text(quoted: bytes) -> bytes:
    return b'{"content":[{"type":"text","text":%b}],"isError":false}' % quoted


def main(argv: list[str], kind: type[Server] = Server) -> None:
    options = dict(zip(argv[::2], argv[1::2], strict=True))
    count = int(options.get("--tools", "0"))
    server = kind(int(options.get("--seed", "0")) * count, count)
    quiet = options.get("--silent-while", "")
    time.sleep(float(options.get("--wait", "0")))
    pieces: list[bytes] = []
    while data := os.read(0, CHUNK):
        pieces.append(data)
        if b"\n" not in data:
            continue
        *lines, rest = b"".join(pieces).split(b"\n")
        pieces = [rest]
        if quiet and os.path.exists(quiet):
            continue
        send(b"".join([server.answer(line) for line in lines]))


if __name__ == "__main__":
    main(sys.argv[1:])
