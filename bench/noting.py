"""A MCP server over stdio that notes each call before it answers. Standard library only.

    python -I -S noting.py NOTES

Its tool `note` (``number``, ``ms``) appends the number to the file NOTES and answers after ``ms``, unless it
is cancelled by then: a text with the number, and its own process id in ``structuredContent``. At its start it
appends ``start`` and its process id.
"""

import heapq
import json
import os
import select
import sys
import time

CHUNK = 1 << 16


class Noting:
    """The answers to one client."""

    def __init__(self, notes: str) -> None:
        self._notes = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._due: list[tuple[float, str, dict[str, object]]] = []
        self._cancelled: set[str] = set()
        self._note(f"start {os.getpid()}")

    def _note(self, line: str) -> None:
        os.write(self._notes, line.encode() + b"\n")

    def handle(self, line: bytes) -> None:
        """One message of the client."""
        message = json.loads(line)
        id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method == "initialize":
            info = {"name": "noting", "version": "1"}
            said = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            self._answer(id, said)
        elif method == "tools/list":
            schema = {
                "type": "object",
                "properties": {name: {"type": "integer"} for name in ("number", "ms")},
            }
            tool = {"name": "note", "description": "Note a number in the file", "inputSchema": schema}
            self._answer(id, {"tools": [tool]})
        elif method == "tools/call":
            arguments = params["arguments"]
            self._note(f"{arguments['number']}")
            content = [{"type": "text", "text": f"{arguments['number']}"}]
            result = {"content": content, "structuredContent": {"pid": os.getpid()}}
            heapq.heappush(self._due, (time.monotonic() + arguments["ms"] / 1000, json.dumps(id), result))
        elif method == "notifications/cancelled":
            self._cancelled.add(json.dumps(params.get("requestId")))
        elif method == "ping":
            self._answer(id, {})
        elif id is not None and method is not None:
            error = {"code": -32601, "message": "no such method"}
            self._write({"jsonrpc": "2.0", "id": id, "error": error})

    def wait(self) -> float | None:
        """Sends what is due. Returns the seconds until the next answer, None for none."""
        while self._due:
            left = self._due[0][0] - time.monotonic()
            if left > 0:
                return left
            _, id, result = heapq.heappop(self._due)
            if id in self._cancelled:
                self._cancelled.discard(id)
            else:
                self._answer(json.loads(id), result)
        return None

    def _answer(self, id: object, result: object) -> None:
        self._write({"jsonrpc": "2.0", "id": id, "result": result})

    def _write(self, message: object) -> None:
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            rest = rest[os.write(1, rest) :]


def main(notes: str) -> None:
    server, kept = Noting(notes), b""
    while True:
        timeout = server.wait()
        if not select.select([0], [], [], timeout)[0]:
            continue
        data = os.read(0, CHUNK)
        if not data:
            return
        *lines, kept = (kept + data).split(b"\n")
        for line in lines:
            server.handle(line)


if __name__ == "__main__":
    main(sys.argv[1])
