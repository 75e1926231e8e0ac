"""A Streamable HTTP client in the standard library: one connection, one request at a time.

The rule: it follows the specification (2025-11-25 basic/transports, 2026-07-28 basic/transports) and shares
no code with mcpzip.
"""

import http.client
import json
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

LEGACY, MODERN = "2025-11-25", "2026-07-28"
INFO = {"name": "bench", "version": "1"}
META = "io.modelcontextprotocol/"
STAMP = {
    f"{META}protocolVersion": MODERN,
    f"{META}clientCapabilities": {},
    f"{META}clientInfo": INFO,
}
PATIENCE = 60.0  # s
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class RefusedError(Exception):
    """The server answered with an HTTP status or a JSON-RPC error that a client doesn't expect."""


class HttpClient:
    """One client. era: "legacy" (a session, and a GET stream that stays open) or "modern" (neither). others:
    further servers: each request goes to the next one that can be reached. fresh: on a new connection.
    """

    def __init__(self, url: str, era: str, others: Sequence[str] = (), *, fresh: bool = False) -> None:
        self._path = urlsplit(url).path
        self._addresses = [(parts.hostname or "", parts.port) for parts in map(urlsplit, (url, *others))]
        self._modern, self._fresh = era == "modern", fresh
        self._number = self._turn = 0
        self._session = ""
        self._lines = [http.client.HTTPConnection(*each, timeout=PATIENCE) for each in self._addresses]
        self._stream: http.client.HTTPConnection | None = None

    def begin(self) -> None:
        """The handshake, and the stream for the server's own messages; does nothing in the modern era."""
        if self._modern:
            return
        self.ask("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": INFO})
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, 202)
        self._stream = http.client.HTTPConnection(*self._addresses[0], timeout=PATIENCE)
        self._stream.request("GET", self._path, headers=self._headers("text/event-stream"))
        status = self._stream.getresponse().status
        if status not in (200, 405):
            raise RefusedError(f"GET: HTTP {status}")

    def call(self, tool: str, arguments: dict[str, object]) -> tuple[str, bool]:
        """`tools/call`: the text, and whether it reports an error."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        content = result["content"]
        assert isinstance(content, list)
        return "\n".join(part["text"] for part in content), result.get("isError") is True

    def ask(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """One request's result. Raises RefusedError."""
        self._number += 1
        if self._modern:
            params = {**params, "_meta": STAMP}
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        for answer in self._post(message, 200):
            if answer.get("id") == self._number:
                result = answer.get("result")
                if not isinstance(result, dict):
                    raise RefusedError(json.dumps(answer)[:300])
                return result
        raise RefusedError(f"{method}: the answer to {self._number} isn't in the response")

    def hang_up(self) -> None:
        """Closes the connections; the session stays, and the next request continues it."""
        for line in self._lines:
            line.close()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def leave(self) -> None:
        """Ends the session and closes the connections."""
        if self._session:
            line = self._connected()
            line.request("DELETE", self._path, headers=self._headers("application/json"))
            response = line.getresponse()
            response.read()
            if response.status not in (200, 202, 204):
                raise RefusedError(f"DELETE: HTTP {response.status}")
            self._session = ""
        self.hang_up()

    def _connected(self) -> http.client.HTTPConnection:
        """The connection to the next server that can be reached. Raises ConnectionRefusedError."""
        for _ in self._lines:
            line, self._turn = self._lines[self._turn % len(self._lines)], self._turn + 1
            try:
                if line.sock is None:
                    line.connect()
            except OSError:
                continue
            return line
        raise ConnectionRefusedError("no server can be reached")

    def _headers(self, accept: str) -> dict[str, str]:
        fresh = {"Connection": "close"} if self._fresh else {}
        era = {"MCP-Protocol-Version": MODERN if self._modern else LEGACY}
        session = {"Mcp-Session-Id": self._session} if self._session else {}
        return {"Accept": accept, **fresh, **era, **session}

    def _post(self, message: dict[str, object], expected: int) -> list[dict[str, object]]:
        """The messages of the response."""
        headers = {**self._headers(_JSON["Accept"]), **_JSON}
        params = message.get("params")
        if self._modern and isinstance(params, dict):
            headers |= {"Mcp-Method": str(message["method"]), "Mcp-Name": str(params.get("name", ""))}
        line = self._connected()
        try:
            line.request("POST", self._path, json.dumps(message).encode(), headers)
            response = line.getresponse()
            self._session = response.headers.get("Mcp-Session-Id") or self._session
            body = response.read()
        except (OSError, http.client.HTTPException):
            line.close()
            raise
        if response.status != expected:
            raise RefusedError(f"POST: HTTP {response.status}: {body[:300]!r}")
        if response.headers.get_content_type() == "text/event-stream":
            return [json.loads(data) for data in events(body)]
        return [json.loads(body)] if body else []


def events(body: bytes) -> Iterator[str]:
    """The data of each server-sent event (WHATWG HTML, 9.2.6); those without data are left out."""
    data: list[str] = []
    for line in (*body.decode().splitlines(), ""):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line:
            if any(data):
                yield "\n".join(data)
            data = []
