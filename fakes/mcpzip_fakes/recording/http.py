"""Records a server over HTTP: a reverse proxy on 127.0.0.1 between it and its clients.

The rules:

- A client sees what it would see of the server: status, headers, the body as it was on the wire, at once, and
  where a connection breaks. Only URLs of the server lead to the recorder: in ``Location``, and in the
  ``endpoint`` event of legacy SSE.
- The server gets the client's requests unchanged, with the headers of ``--header``. A body is asked for only
  in a coding that can be read.
- What is no MCP request, such as the metadata of an authorization server, is passed on and not recorded.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx
import uvicorn

from mcpzip.cassettes.http_observer import HttpObserver
from mcpzip.cassettes.sse_taps import SseRecorder
from mcpzip.cassettes.tape import Tape
from mcpzip.cassettes.taps import Headers, HttpTap, Tap
from mcpzip.model.errors import ConfigError
from mcpzip.model.limits import MESSAGE

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
_READABLE = ("gzip", "deflate")
_WIND_UP = 1
"""Seconds that open responses get when the recorder ends."""
_CONNECT = 30.0


class Recorder:
    """The ASGI application.

    path: where clients find the server, with ``origin``, the recorder's own.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        tape: Tape,
        path: str,
        client: httpx.AsyncClient,
        *,
        sse: bool,
    ) -> None:
        """url: of the server. headers: sent with every request, instead of the client's."""
        self._url, self._headers, self._tape = url, headers, tape
        self._server = urlsplit(url)
        self.path, self.origin = path, ""
        self._client = client
        writer = tape.writer
        self._observer = HttpObserver(writer.add, tape.masker, writer.session, writer.add_session)
        self._sse = SseRecorder(tape, url) if sse else None
        self._last = 0
        self._led_to: set[str] = set()
        """The paths to which the server redirected requests that are recorded."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """See ASGI 3.0."""
        if scope["type"] != "http":
            return
        body = await _body(receive)
        if body is None:
            await _respond(send, 413, b"mcpzip-fake record: the message is too long to be recorded")
            return
        request = self._request(scope, body)
        self._last += 1
        key = self._last
        tap = self._tap(key, scope, request, body)
        tap.began()
        passing = asyncio.ensure_future(self._pass_on(request, tap, send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((passing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not passing.done():
                passing.cancel()
                await asyncio.wait((passing,))
                tap.ended(left=True)
            else:
                passing.result()
        finally:
            for task in (passing, leaving):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, httpx.HTTPError):
                    await task

    async def send_unrecorded(self, scope: "Scope", body: bytes) -> httpx.Response:
        """Sends the request of ``scope`` with ``body``, and records nothing of it. Returns the response, to
        be closed. Raises httpx.HTTPError.
        """
        return await self._client.send(self._request(scope, body), stream=True)

    async def _pass_on(self, request: httpx.Request, tap: Tap, send: "Send") -> None:
        try:
            response = await self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            tap.ended(cut=True)
            await _respond(send, 502, f"mcpzip-fake record: the server can't be reached ({error})".encode())
            return
        try:
            headers = _end_to_end(response.headers.multi_items())
            tap.responded(
                response.status_code, [(name, self._recorded(name, value)) for name, value in headers]
            )
            start = [
                (name, self._location(value) if name == "location" else value) for name, value in headers
            ]
            if isinstance(tap, HttpTap) and response.is_redirect:
                self._led_to |= {urlsplit(value).path for name, value in start if name == "location"}
            await send(
                {"type": "http.response.start", "status": response.status_code, "headers": raw_headers(start)}
            )
            async for data in tap.passing(response.aiter_raw(), self._location):
                await send({"type": "http.response.body", "body": data, "more_body": True})
        except httpx.HTTPError:
            tap.ended(cut=True)
            raise  # the HTTP server breaks the client's connection
        finally:
            await response.aclose()
        tap.ended()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _tap(self, key: int, scope: "Scope", request: httpx.Request, body: bytes) -> Tap:
        verb, path = scope["method"], scope["path"]
        headers = headers_of(scope["headers"])
        if self._sse is not None:
            return self._sse.tap(verb, path == self.path, str(request.url), headers, body)
        if path not in {self.path, *self._led_to} or verb not in ("GET", "POST", "DELETE"):
            return Tap()
        return HttpTap(self._tape, self._observer, key, verb, headers, body)

    def close(self) -> None:
        """The recorder ends."""
        if self._sse is not None:
            self._sse.close()
        else:
            self._tape.note(self._observer.close)

    # Requests and URLs

    def _request(self, scope: "Scope", body: bytes) -> httpx.Request:
        headers = _end_to_end(headers_of(scope["headers"]))
        own = {name.lower() for name in self._headers}
        kept = [(name, value) for name, value in headers if name not in {"host", "content-length", *own}]
        codings = ", ".join(value for name, value in kept if name == "accept-encoding")
        kept = [(name, value) for name, value in kept if name != "accept-encoding"]
        kept.append(("accept-encoding", "identity" if self._sse else _readable(codings)))
        content = body or (b"" if scope["method"] in ("POST", "PUT", "PATCH") else None)
        target = self._target(scope)
        return httpx.Request(
            scope["method"], target, headers=[*kept, *self._headers.items()], content=content
        )

    def _target(self, scope: "Scope") -> str:
        query = scope["query_string"].decode("latin-1")
        if scope["path"] == self.path:
            joint = "&" if self._server.query else "?"
            return f"{self._url}{joint}{query}" if query else self._url
        path = scope.get("raw_path") or scope["path"].encode()
        return self._server._replace(path=path.decode("latin-1"), query=query, fragment="").geturl()

    def _location(self, value: str) -> str:
        """A URL of the server, as one of the recorder; other URLs as they are."""
        target = urlsplit(urljoin(self._url, value))
        if _origin(target) != _origin(self._server):
            return value
        if target.path == self._server.path:
            query = "" if target.query == self._server.query else target.query
            target = target._replace(path=self.path, query=query)
        here = urlsplit(self.origin)
        return target._replace(scheme=here.scheme, netloc=here.netloc).geturl()

    def _recorded(self, name: str, value: str) -> str:
        """A header as it is recorded: URLs of the server without its origin."""
        if name != "location":
            return value
        target = urlsplit(urljoin(self._url, value))
        own = _origin(target) == _origin(self._server)
        return target._replace(scheme="", netloc="").geturl() if own else value


def serve(
    url: str,
    headers: Mapping[str, str],
    tape: Tape,
    port: int,
    *,
    sse: bool,
) -> None:
    """Records until the process is told to end; prints ``listening URL`` once it accepts connections. The
    tape is closed then. Raises ConfigError, CassetteError."""
    bound = _listen(port)
    tape.begin(url=url)
    path = urlsplit(url).path or "/"
    if tape.masker.url(url.partition("?")[0], "the URL") != url.partition("?")[0]:
        path = "/sse" if sse else "/mcp"  # what is printed holds no secret
    try:
        asyncio.run(_serve(url, headers, tape, path, bound, sse=sse))
    finally:
        tape.close()


async def _serve(
    url: str, headers: Mapping[str, str], tape: Tape, path: str, bound: socket.socket, *, sse: bool
) -> None:
    async with http_client() as client:
        recorder = Recorder(url, headers, tape, path, client, sse=sse)
        recorder.origin = f"http://127.0.0.1:{bound.getsockname()[1]}"
        server = _Server(recorder)
        await server.serve([bound])
        recorder.close()


def http_client() -> httpx.AsyncClient:
    """What sends requests to a real server: it waits for as long as the client does."""
    return httpx.AsyncClient(timeout=httpx.Timeout(None, connect=_CONNECT))


class _Server(uvicorn.Server):
    """uvicorn that says where it listens, and ends without waiting for open streams."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(
            uvicorn.Config(
                recorder,
                lifespan="off",
                http="h11",
                log_config=None,
                log_level="critical",
                ws="none",
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=_WIND_UP,
            )
        )
        self._recorder = recorder

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Ends the server at a signal, and not the process."""
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
            if number := getattr(signal, name, None):
                signal.signal(number, self.handle_exit)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(f"listening {self._recorder.origin}{self._recorder.path}", flush=True)


def _listen(port: int) -> socket.socket:
    try:
        bound = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        why = f"port {port} of 127.0.0.1 can't be had ({error.strerror})"
        raise ConfigError("--port", "", why, "choose another, or 0 for a free one") from error
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    default = {"http": 80, "https": 443}.get(url.scheme)
    return url.scheme, url.hostname, url.port or default


def headers_of(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers of ASGI as text, with names in lower case."""
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]


def raw_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI has them."""
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]


def _end_to_end(headers: Headers) -> Headers:
    """Without those of the connection (RFC 9110, 7.6.1)."""
    lowered = [(name.lower(), value) for name, value in headers]
    named = {
        part.strip().lower() for name, value in lowered if name == "connection" for part in value.split(",")
    }
    return [(name, value) for name, value in lowered if name not in _HOP_BY_HOP | named]


def _readable(codings: str) -> str:
    """Those of the accepted codings that can be decoded."""
    given = {part.partition(";")[0].strip().lower() for part in codings.split(",")}
    return ", ".join(coding for coding in _READABLE if coding in given) or "identity"


async def _body(receive: "Receive") -> bytes | None:
    """The body of a request; None if it is longer than a message may be."""
    pieces: list[bytes] = []
    size = 0
    while True:
        part = await receive()
        pieces.append(part.get("body", b""))
        size += len(pieces[-1])
        if size > MESSAGE:
            return None
        if not part.get("more_body", False):
            return b"".join(pieces)


async def _left(receive: "Receive") -> None:
    """Waits until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _respond(send: "Send", status: int, body: bytes) -> None:
    headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body)))]
    await send({"type": "http.response.start", "status": status, "headers": raw_headers(headers)})
    await send({"type": "http.response.body", "body": body, "more_body": False})
