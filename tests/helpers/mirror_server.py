"""A server that answers with the very bytes it is told to, on every transport.

The rule: nothing reads or writes what it carries. A call holds the answer as JSON text in a string; that text
stands in the response as it is. So the wire between it and mcpzip holds exactly what a test says, also what
no SDK would write, and what the client gets can be held against it.

    python mirror_server.py                          # over stdio
    with mirroring() as port: ...             # http://127.0.0.1:{port}/json, /stream (Streamable HTTP), /sse

Its tools: ``mirror`` answers ``arguments.result`` or fails with ``arguments.error``; ``seen`` answers the
whole request as it came, as a text.
"""

import json
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = ",".join(f'{{"name":"{name}","inputSchema":{{"type":"object"}}}}' for name in ("mirror", "seen"))
WELCOME = '"capabilities":{"tools":{}},"serverInfo":{"name":"mirror","version":"1"}'


def reply(request: bytes) -> bytes | None:
    """The response to a message; None to a notification."""
    message = json.loads(request)
    if "id" not in message:
        return None
    return f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{_outcome(message, request)}}}'.encode()


def _outcome(message: dict[str, object], request: bytes) -> str:
    match message:
        case {"method": "initialize"}:
            return f'"result":{{"protocolVersion":"2025-11-25",{WELCOME}}}'
        case {"method": "tools/list"}:
            return f'"result":{{"tools":[{TOOLS}]}}'
        case {"method": "tools/call", "params": {"name": "mirror", "arguments": {"result": str(text)}}}:
            return f'"result":{text}'
        case {"method": "tools/call", "params": {"name": "mirror", "arguments": {"error": str(text)}}}:
            return f'"error":{text}'
        case {"method": "tools/call", "params": {"name": "seen"}}:
            return f'"result":{{"content":[{{"type":"text","text":{json.dumps(request.decode())}}}]}}'
    return '"error":{"code":-32601,"message":"Method not found"}'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    streams: "dict[str, queue.SimpleQueue[bytes | None]]"

    def do_POST(self) -> None:
        answer = reply(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/post/"):
            if answer is not None:
                self.streams[self.path].put(answer)
            self._send(202, b"", "text/plain")
        elif answer is None:
            self._send(202, b"", "text/plain")
        elif self.path == "/stream":
            self._send(200, _event("message", answer), "text/event-stream")
        else:
            self._send(200, answer, "application/json")

    def do_GET(self) -> None:
        if self.path != "/sse":
            self._send(405, b"", "text/plain")
            return
        events: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        place = f"/post/{len(self.streams)}"
        self.streams[place] = events
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(_event("endpoint", place.encode()))
        self.wfile.flush()
        while (message := events.get()) is not None:
            self.wfile.write(_event("message", message))
            self.wfile.flush()
        self.close_connection = True

    def do_DELETE(self) -> None:
        self._send(405, b"", "text/plain")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


def _event(kind: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


@contextmanager
def mirroring() -> Iterator[int]:
    """Serve over HTTP, from a thread; the port."""
    streams: dict[str, queue.SimpleQueue[bytes | None]] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"streams": streams}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        for events in streams.values():
            events.put(None)
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    """Serve stdin and stdout until they are closed."""
    for line in sys.stdin.buffer:
        if (answer := reply(line)) is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
