"""Records the conversations with all servers: one cassette a server (`mcpzip record`).

The rule: nothing of the conversation changes, and it waits for nothing. What signs a request is not recorded:
of a request only the headers that MCP defines are, and requests to other URLs than the server's are not.
"""

import itertools
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import httpx

from mcpzip.cassettes.cassette import Masked
from mcpzip.cassettes.environment_secrets import header_secrets, known_secrets
from mcpzip.cassettes.files import CassetteError
from mcpzip.cassettes.http_observer import HttpObserver
from mcpzip.cassettes.process_tap import ProcessTap
from mcpzip.cassettes.sse_taps import SseRecorder
from mcpzip.cassettes.tape import Tape
from mcpzip.cassettes.taps import HttpTap, Tap
from mcpzip.config import ServerConfig
from mcpzip.model.redaction import registered
from mcpzip.transport.base import ProcessTap as AnyProcessTap

_WRONG = frozenset('<>:"/\\|?*\0')


class Recording:
    """The cassettes of one `mcpzip record`. See `base.Recorder`."""

    def __init__(
        self,
        folder: str,
        environment: Mapping[str, str],
        tell: Callable[[str], None],
        *,
        paths: Sequence[str] = (),
        names: Sequence[str] = (),
        anew: bool = False,
    ) -> None:
        """folder: of the cassettes. environment: in which servers are started. tell: gets a sentence if one
        can't be written. paths, names: see `Masker` and `known_secrets`. anew: replace cassettes. Raises
        ConfigError for one of the names."""
        self._folder, self._environment, self._tell = folder, environment, tell
        self._paths, self._names, self._anew = paths, names, anew
        self._secrets = known_secrets(environment, names)
        self._tapes: dict[str, _ServerTape | None] = {}

    def process(self, server: ServerConfig, argv: Sequence[str]) -> AnyProcessTap:
        """See `base.Recorder`."""
        tape = self._tape(server, argv)
        return _Nothing() if tape is None else ProcessTap(tape.tape)

    def requests(
        self, server: ServerConfig, connections: httpx.AsyncBaseTransport
    ) -> httpx.AsyncBaseTransport:
        """See `base.Recorder`."""
        tape = self._tape(server, ())
        return connections if tape is None else _Tapped(connections, tape)

    def close(self) -> Mapping[str, Sequence[Masked]]:
        """Waits until everything is written. Returns the secrets that were masked, by cassette."""
        tapes = [tape for tape in self._tapes.values() if tape is not None]
        for tape in tapes:
            tape.close()
        return {tape.path: tape.tape.masked for tape in tapes}

    def _tape(self, server: ServerConfig, argv: Sequence[str]) -> "_ServerTape | None":
        """The tape of a server; None if it has none, which was told."""
        if server.name not in self._tapes:
            try:
                self._tapes[server.name] = self._opened(server, argv)
            except CassetteError as error:
                self._tapes[server.name] = None
                self._tell(f"{server.name} is not recorded: {error}")
        return self._tapes[server.name]

    def _opened(self, server: ServerConfig, argv: Sequence[str]) -> "_ServerTape":
        secrets = dict(self._secrets)
        secrets |= dict.fromkeys(registered(), "it is a secret of the config")
        secrets |= known_secrets(server.env) | header_secrets(server.headers)
        file = "".join("_" if char in _WRONG or char < " " else char for char in server.name)
        path = os.path.join(self._folder, f"{file}.toml")
        tape = Tape(path, server.transport, secrets, self._paths, self._tell, anew=self._anew)
        tape.begin(command=argv, url=server.url if server.transport != "stdio" else "")
        return _ServerTape(path, tape, server)


class _ServerTape:
    """The tape of one server, and what makes exchanges of its HTTP requests."""

    def __init__(self, path: str, tape: Tape, server: ServerConfig) -> None:
        self.path, self.tape = path, tape
        self._url = httpx.URL(server.url) if server.transport != "stdio" else None
        self._keys = itertools.count()
        self._signed = ""
        writer = tape.writer
        self._observer = HttpObserver(writer.add, tape.masker, writer.session, writer.add_session)
        self._sse = SseRecorder(tape, server.url) if server.transport == "sse" else None

    def tap(self, request: httpx.Request) -> Tap:
        """What records a request."""
        verb, headers = request.method, request.headers.multi_items()
        signed = request.headers.get("authorization", "")
        if signed and signed != self._signed:
            self._signed = signed
            self.tape.note(self._mask, signed)
        is_server = self._url is not None and request.url == self._url
        if self._sse is not None:
            return self._sse.tap(verb, is_server, str(request.url), headers, request.content)
        if not is_server:
            return Tap()
        return HttpTap(self.tape, self._observer, next(self._keys), verb, headers, request.content)

    def _mask(self, credentials: str, at: float) -> None:
        self.tape.masker.add(credentials, "it signs the requests")

    def close(self) -> None:
        """Hands out what isn't over, and writes everything."""
        if self._sse is not None:
            self._sse.close()
        else:
            self.tape.note(self._observer.close)
        self.tape.close()


class _Tapped(httpx.AsyncBaseTransport):
    """The connections to a server, with what passes recorded."""

    def __init__(self, connections: httpx.AsyncBaseTransport, tape: _ServerTape) -> None:
        self._connections, self._tape = connections, tape

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As httpx does."""
        tap = self._tape.tap(request)
        tap.began()
        try:
            response = await self._connections.handle_async_request(request)
        except BaseException as error:
            tap.ended(cut=isinstance(error, httpx.HTTPError), left=not isinstance(error, httpx.HTTPError))
            raise
        tap.responded(response.status_code, response.headers.multi_items())
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _TappedStream(response.stream, tap)
        return response

    async def aclose(self) -> None:
        """As httpx does."""
        await self._connections.aclose()


class _TappedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, tap: Tap) -> None:
        self._stream, self._tap = stream, tap

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._tap.passing(aiter(self._stream), lambda url: url):
                yield part
        except httpx.HTTPError:
            self._tap.ended(cut=True)
            raise
        self._tap.ended()

    async def aclose(self) -> None:
        self._tap.ended(left=True)
        await self._stream.aclose()


class _Nothing:
    """Records nothing."""

    def client(self, data: bytes) -> None: ...

    def client_closed(self) -> None: ...

    def server(self, data: bytes) -> None: ...

    def stderr(self, data: bytes) -> None: ...

    def ended(self, code: int | None) -> None: ...
