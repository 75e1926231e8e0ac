"""An upstream that crashes: after a number of calls the process ends before it answers. Standard library
only.

    python crashing.py --every N --deaths FILE               # stdio
    python crashing.py --every N --deaths FILE --port P      # Streamable HTTP, legacy; sessions die with it

Each death adds a byte to FILE. Its tools answer with their argument and the name of the server, so that a
misrouted answer is detected.
"""

import http.server
import json
import os
import socket
import socketserver
import sys
import threading

EXIT_CODE = 70
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")


class Dying:
    """Answers requests, and ends the process instead of answering the last one."""

    def __init__(self, name: str, every: int, deaths: str) -> None:
        self._name, self._left, self._deaths = name, every, deaths
        self._counting = threading.Lock()

    def answer(self, message: dict[str, object]) -> dict[str, object] | None:
        """The response; None for a notification."""
        if "id" not in message or "method" not in message:
            return None
        head = {"jsonrpc": "2.0", "id": message["id"]}
        params = message.get("params")
        result = self._result(str(message["method"]), params if isinstance(params, dict) else {})
        if result is None:
            return {**head, "error": {"code": -32601, "message": "no such method"}}
        return {**head, "result": result}

    def _result(self, method: str, params: dict[str, object]) -> dict[str, object] | None:
        match method:
            case "initialize":
                asked = params.get("protocolVersion")
                return {
                    "protocolVersion": asked if asked in LEGACY else LEGACY[-1],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": self._name, "version": "1"},
                }
            case "tools/list":
                schema = {"type": "object", "properties": {"text": {"type": "string"}}}
                return {"tools": [{"name": "echo", "inputSchema": schema}]}
            case "tools/call":
                with self._counting:
                    self._left -= 1
                    if self._left == 0:
                        with open(self._deaths, "ab") as file:
                            file.write(b".")
                        os._exit(EXIT_CODE)
                arguments = params.get("arguments")
                text = arguments.get("text") if isinstance(arguments, dict) else None
                return {"content": [{"type": "text", "text": f"{self._name}: {text}"}]}
            case "ping":
                return {}
            case _:
                return None


def over_stdio(server: Dying) -> None:
    for line in sys.stdin.buffer:
        response = server.answer(json.loads(line))
        if response is not None:
            os.write(1, json.dumps(response).encode() + b"\n")


def over_http(server: Dying, port: int) -> None:
    sessions: set[str] = set()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if message.get("method") == "initialize":
                session = os.urandom(12).hex()
                sessions.add(session)
                self._send(200, server.answer(message), session)
            elif message.get("method") == "server/discover":
                self._send(200, server.answer(message))
            elif self.headers.get("Mcp-Session-Id") not in sessions:
                error = {"code": -32600, "message": "Session not found"}
                self._send(404, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
            else:
                response = server.answer(message)
                self._send(202 if response is None else 200, response)

        def do_GET(self) -> None:
            self._send(405, None)

        def do_DELETE(self) -> None:
            sessions.discard(self.headers.get("Mcp-Session-Id", ""))
            self._send(200, None)

        def _send(self, status: int, body: object, session: str = "") -> None:
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            if session:
                self.send_header("Mcp-Session-Id", session)
            if data:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Listening(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64
        allow_reuse_address = os.name != "nt"

        def server_bind(self) -> None:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            socketserver.TCPServer.server_bind(self)  # less the look-up of our own name
            self.server_name, self.server_port = "127.0.0.1", self.socket.getsockname()[1]

    listening = Listening(("127.0.0.1", port), Handler)
    print(f"listening {listening.server_port}", flush=True)
    listening.serve_forever(poll_interval=60)


def main(argv: list[str]) -> None:
    options = dict(zip(argv[::2], argv[1::2], strict=True))
    port = options.get("--port")
    server = Dying("stdio" if port is None else "http", int(options["--every"]), options["--deaths"])
    if port is None:
        over_stdio(server)
    else:
        over_http(server, int(port))


if __name__ == "__main__":
    main(sys.argv[1:])
