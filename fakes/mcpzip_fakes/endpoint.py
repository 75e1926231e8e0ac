"""The base class of the HTTP endpoints that are no MCP servers: `gemini` and `embeddings`.

The rule: a real server on a socket of 127.0.0.1, from the standard library, that records every request and
stops at once. It has a list of faults; the first that is due fires.
"""

import json
import os
import socketserver
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import ClassVar, Self

import msgspec

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.errors import ScenarioError, scenario_error
from mcpzip_fakes.record import Writer

KINDS: Mapping[str, str] = {
    "status": "answers with `status` (500), and `retry_after` seconds if that is given",
    "slow": "answers after `seconds` (2)",
    "hang": "never answers",
    "cut": "cuts the connection instead of an answer",
    "garbage": "answers 200 with something that isn't JSON",
    "shape": "answers 200 with JSON of another shape",
    "redirect": "sends the request to another path, where it would be answered",
}
"""The faults of every endpoint, and what they do."""


class EndpointFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault. nth: the first request that it affects, from 1. times: the number of requests; None for all.

    The rest are the options of its kind.
    """

    kind: str
    nth: int = 1
    times: int | None = None
    seconds: float = 2.0
    status: int = 500
    retry_after: float | None = None
    dimensions: int = 8

    def due(self, number: int) -> bool:
        """Whether it fires on the request of this number."""
        return self.nth <= number and (self.times is None or number < self.nth + self.times)


FaultLike = EndpointFault | Mapping[str, object] | str


@dataclass(frozen=True, slots=True)
class Seen:
    """A request. headers: names in lower case. body: its JSON, {} if it is no JSON object."""

    path: str
    headers: Mapping[str, str]
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Reply:
    """A response."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        """The bytes of the body: encoded as JSON, unless they are bytes already."""
        # Python's own encoder, because it writes NaN, which some servers do too.
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Endpoint(ABC):
    """A server that runs as soon as it is created. Subclasses define its answers.

    url: its URL. faults: can be set at any time; requests are then counted from there.
    """

    name: ClassVar[str] = "endpoint"
    kinds: ClassVar[Mapping[str, str]] = KINDS

    def __init__(self, faults: Iterable[FaultLike] = (), *, record: str | None = None, port: int = 0) -> None:
        """Raises ScenarioError for an unknown fault, or a port that is not available."""
        self._lock = threading.Lock()
        self._requests: list[Seen] = []
        self._faults: tuple[EndpointFault, ...] = ()
        self._before = 0
        self.faults = faults
        self.stopping = threading.Event()
        self._record = Writer(record)
        try:
            self._server = _Server(("127.0.0.1", port), self)
        except OSError as error:
            raise ScenarioError(
                "--port", "", f"port {port} of 127.0.0.1 can't be had", "choose another, or 0 for a free one"
            ) from error
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._record.event("start", {"transport": self.name, "url": self.url})
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name=f"fake {self.name} {self.url}", daemon=True
        )
        self._thread.start()

    @property
    def requests(self) -> list[Seen]:
        """Every request so far, in the order they came."""
        with self._lock:
            return list(self._requests)

    @property
    def faults(self) -> "Iterable[FaultLike]":
        """Its faults."""
        return self._faults

    @faults.setter
    def faults(self, faults: "Iterable[FaultLike]") -> None:
        checked = tuple(self._fault(at, each) for at, each in enumerate(faults))
        with self._lock:
            self._faults, self._before = checked, len(self._requests)

    @abstractmethod
    def answer(self, seen: Seen, fault: EndpointFault | None) -> Reply:
        """The response to a request; ``fault``: the firing fault that changes it, if any."""

    @abstractmethod
    def failure(self, seen: Seen, fault: EndpointFault) -> Reply:
        """The error response of this endpoint for the status of ``fault``."""

    def take(self, seen: Seen) -> Reply | None:
        """The reply to ``seen``; None: close the connection without one."""
        with self._lock:
            self._requests.append(seen)
            number = len(self._requests) - self._before
            fault = next((each for each in self._faults if each.due(number)), None)
        self._record.event("http", {"path": seen.path, "headers": dict(seen.headers), "body": seen.body})
        return self._reply(seen, fault)

    def wait(self) -> None:
        """Block until it is stopped."""
        self._thread.join()

    def stop(self) -> None:
        """Stop listening, and end requests that wait. Can be called again."""
        if not self.stopping.is_set():
            self.stopping.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._record.event("exit", {"reason": "stopped", "code": 0})
            self._record.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _reply(self, seen: Seen, fault: EndpointFault | None) -> Reply | None:
        match fault.kind if fault else "":
            case "hang":
                self.stopping.wait()
                return None
            case "cut":
                return None
            case "status":
                assert fault
                told = self.failure(seen, fault)
                after = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
                return Reply(told.status, told.body, {**told.headers, **after})
            case "garbage":
                return Reply(200, b"<html>Welcome</html>")
            case "shape":
                return Reply(200, {"welcome": True})
            case "redirect" if not seen.path.startswith("/elsewhere"):
                return Reply(307, {}, {"Location": f"{self.url}/elsewhere{seen.path}"})
            case "slow":
                assert fault
                if self.stopping.wait(fault.seconds):
                    return None
                return self.answer(seen, None)
        return self.answer(seen, fault)

    def _fault(self, at: int, told: FaultLike) -> EndpointFault:
        if isinstance(told, str):
            told = {"kind": told}
        try:
            fault = told if isinstance(told, EndpointFault) else msgspec.convert(told, EndpointFault)
        except msgspec.ValidationError as error:
            fields = EndpointFault.__struct_fields__
            raise scenario_error(f"{self.name}: faults[{at}]", error, {"": fields}) from error
        if fault.kind not in self.kinds:
            raise ScenarioError(
                f"{self.name}: faults[{at}]", "kind", f"found {fault.kind!r}", f"use {', '.join(self.kinds)}"
            )
        return fault


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = os.name != "nt"  # on Windows it lets other processes use the port too

    def __init__(self, address: tuple[str, int], endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's version makes a needless DNS lookup

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores that a client disconnected; other errors are printed on stderr as usual."""
        import sys

        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """Passes the request to the endpoint and sends its reply."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            body = None
        headers = {key.lower(): value for key, value in self.headers.items()}
        seen = Seen(self.path, headers, body if isinstance(body, dict) else {})
        reply = self.server.endpoint.take(seen)
        if reply is None:
            self.close_connection = True
            return
        content = reply.content()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing: the request is in the record."""
